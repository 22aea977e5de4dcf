/* curves.js: the picture of functions of one input: bands, draws, mean, points, the truth, the
 * density at the cursor. Numbers in, a scene (scene.js) out. */
import {axes, between, label, neat, scale, trace} from "./scene.js";
import {densityItems} from "./density.js";

/** Pairs of levels whose bands hold 50, 80 and 95 %. */
export const LEVELS = [0.025, 0.1, 0.25, 0.75, 0.9, 0.975];

const DRAWN = 20; // lines; more hide each other

/**
 * Where things are, in CSS pixels.
 * @param {{x: number[], y: number[]}} limits
 */
export function layout(width, height, limits) {
    const small = width < 560;
    const strip = small ? 46 : 92;
    const box = {x: small ? 36 : 48, y: 28, w: 0, h: 0};
    box.w = width - box.x - strip - (small ? 18 : 30);
    box.h = height - box.y - (small ? 40 : 44);
    return {
        width, height, small, box,
        strip: {x: box.x + box.w + (small ? 8 : 14), y: box.y, w: strip, h: box.h},
        sx: scale(limits.x[0], limits.x[1], box.x, box.x + box.w),
        sy: scale(limits.y[0], limits.y[1], box.y + box.h, box.y),
    };
}

/** The inputs of training, [lo, hi]; [-2, 2] where the model's file does not say. */
export function trainedRange(model) {
    const {lo, hi} = model.inputs[0];
    return Number.isFinite(lo) && Number.isFinite(hi) && hi > lo ? [lo, hi] : [-2, 2];
}

/** What is seen: the trained range and a tenth of it to each side; heights of the data and all points. */
export function limitsOf(model, points) {
    const [lo, hi] = trainedRange(model);
    const xs = points.map((p) => p.x);
    const pad = 0.1 * (hi - lo);
    const round = (v) => neat(v, hi - lo);
    const x = [round(Math.min(lo - pad, ...xs)), round(Math.max(hi + pad, ...xs))];
    const ys = points.map((p) => p.y);
    const out = model.output;
    const low = Number.isFinite(out.lo) ? out.lo : -3, high = Number.isFinite(out.hi) ? out.hi : 3;
    const room = 0.14 * (high - low || 1);
    return {x, y: [Math.min(low - room, ...ys.map((v) => v - room / 2)), Math.max(high + room, ...ys.map((v) => v + room / 2))]};
}

/* Ground outside the trained inputs: the model knows nothing there. */
export function outside(model, l) {
    const {lo, hi} = model.inputs[0];
    if (!Number.isFinite(lo) || !Number.isFinite(hi)) return [];
    const {box, sx} = l;
    const left = Math.min(Math.max(sx(lo), box.x), box.x + box.w), right = Math.min(Math.max(sx(hi), box.x), box.x + box.w);
    const items = [];
    if (left > box.x) items.push({k: "rect", x: box.x, y: box.y, w: left - box.x, h: box.h, fill: "outside"});
    if (right < box.x + box.w) items.push({k: "rect", x: right, y: box.y, w: box.x + box.w - right, h: box.h, fill: "outside"});
    return items;
}

function bandItems(p, l) {
    const items = [];
    for (let i = 0; i < LEVELS.length / 2; i++) {
        const low = p.bands[i], high = p.bands[LEVELS.length - 1 - i];
        items.push({k: "area", at: between(p.x, low, high, l.sx, l.sy), fill: `band${i + 1}`});
    }
    return items;
}

function drawItems(x, draws, l, faint) {
    return draws.slice(0, DRAWN).map((d) => ({k: "line", at: trace(x, d, l.sx, l.sy), stroke: "draw", width: 1.1, alpha: faint ? 0.35 : 0.55}));
}

function truthItems(t, l) {
    const line = (y, dash) => ({k: "line", at: trace(t.x, y, l.sx, l.sy), stroke: "truth", width: 1.8, dash});
    return [line(t.bands[0], [5, 4]), line(t.bands[LEVELS.length - 1], [5, 4]), line(t.mean, [])];
}

/** Points, the chosen one with a ring. */
export function pointItems(points, chosen, l) {
    const items = [];
    points.forEach((p, i) => {
        const x = l.sx(p.x), y = l.sy(p.y);
        if (i === chosen) items.push({k: "dot", x, y, r: 11, fill: null, stroke: "accent", width: 2});
        items.push({k: "dot", x, y, r: 5.5, fill: "point", stroke: "paper", width: 2});
    });
    return items;
}

/* About how wide a text of 11 pixels is: a scene knows no fonts. */
function textWidth(text) {
    return [...text].reduce((w, c) => w + ("iljtf:.,' ".includes(c) ? 3.6 : "mw%".includes(c) ? 9.8 : 6.5), 0);
}

/** Signs and their words, in a row above the plot: [{text, kind, colour}]. */
function legend(entries, l) {
    const items = [];
    let x = l.box.x + l.box.w;
    for (const e of [...entries].reverse()) {
        x -= textWidth(e.text);
        items.push({k: "text", x, y: l.box.y - 11, text: e.text, fill: "muted", size: 11});
        x -= 22;
        if (e.kind === "area") items.push({k: "rect", x, y: l.box.y - 19, w: 16, h: 9, fill: e.colour});
        else items.push({k: "line", at: [x, l.box.y - 15, x + 16, l.box.y - 15], stroke: e.colour, width: e.width ?? 2, dash: e.dash});
        x -= 16;
    }
    return items;
}

function legendEntries(v) {
    const {show, picture, truth} = v;
    const list = [];
    if (picture && show.bands) list.push({text: v.layout.small ? "50, 80, 95 %" : "bands of 50, 80, 95 %", kind: "area", colour: "band2"});
    if (picture && show.mean) list.push({text: "mean", kind: "line", colour: "accent", width: 2.4});
    if (picture && show.draws && !v.layout.small) list.push({text: "draws", kind: "line", colour: "draw", width: 1.2});
    if (truth) list.push({text: v.layout.small ? "truth" : "truth: mean, 95 %", kind: "line", colour: "truth", dash: [5, 4]});
    if (v.hidden?.revealed) list.push({text: "hidden function", kind: "line", colour: "ink", dash: [1, 5]});
    return list;
}

/**
 * @param {object} v {layout, model, show, points, chosen, picture, truth, moving, hidden, asked, guessed, density, at, atY, focused}
 *   picture, truth: {x: (n), mean: (n), bands: (6, n), draws: (k, n)}; moving: {x, draws}; hidden: {x, y, revealed}
 */
export function curvesScene(v) {
    const l = v.layout, {box} = l;
    const inside = outside(v.model, l);
    const p = v.picture;
    if (p && v.show.bands) inside.push(...bandItems(p, l));
    const lines = v.moving ?? p;
    if (lines && v.show.draws) inside.push(...drawItems(lines.x, lines.draws, l, v.show.bands));
    if (v.truth) inside.push(...truthItems(v.truth, l));
    if (p && v.show.mean) inside.push({k: "line", at: trace(p.x, p.mean, l.sx, l.sy), stroke: "accent", width: 2.4});
    if (v.hidden?.revealed) inside.push({k: "line", at: trace(v.hidden.x, v.hidden.y, l.sx, l.sy), stroke: "ink", width: 2.4, dash: [1, 5]});
    if (Number.isFinite(v.at)) {
        const x = l.sx(v.at);
        inside.push({k: "line", at: [x, box.y, x, box.y + box.h], stroke: "cursor", width: 1, dash: [2, 3]});
        if (v.focused && Number.isFinite(v.atY)) inside.push({k: "dot", x, y: l.sy(v.atY), r: 6, fill: null, stroke: "accent", width: 2});
    }
    if (v.guessed) inside.push({k: "dot", x: l.sx(v.guessed.x), y: l.sy(v.guessed.y), r: 5, fill: null, stroke: "accent", width: 2});
    if (Number.isFinite(v.asked)) {
        const x = l.sx(v.asked);
        inside.push({k: "line", at: [x, box.y, x, box.y + box.h], stroke: "accent", width: 2, dash: [4, 5]});
        inside.push({k: "text", x: x + (x > box.x + box.w / 2 ? -8 : 8), y: box.y + 18, text: "your guess?", fill: "accent", size: 13, weight: 600,
                     anchor: x > box.x + box.w / 2 ? "end" : "start"});
    }
    const items = axes(box, l.sx, l.sy, {x: v.model.inputs[0].name, y: v.model.output.name}, l.small);
    items.push({k: "clip", x: box.x, y: box.y, w: box.w, h: box.h, items: inside});
    items.push(...pointItems(v.points, v.chosen, l));
    items.push(...legend(legendEntries(v), l));
    if (v.density) items.push(...densityItems(v.density, l, label(v.density.x, 3)));
    return items;
}
