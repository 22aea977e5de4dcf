/* chain.js: the picture of the chain from f(0), independent noise at every input, to f(T), a
 * function. Between two steps values move in straight lines: only the steps themselves are the model's. */
import {outside} from "./curves.js";
import {axes, label, scale, trace} from "./scene.js";

/** Values at a step that need not be whole. @param {number[][][]} path (T+1, samples, n) */
export function atStep(path, step) {
    const last = path.length - 1;
    const t = Math.min(Math.max(step, 0), last);
    const low = Math.min(Math.floor(t), last - 1), part = t - low;
    if (last === 0) return path[0];
    return path[low].map((f, s) => f.map((y, i) => y + part * (path[low + 1][s][i] - y)));
}

/** Limits that hold nearly all values of all steps. */
export function chainLimits(path) {
    const all = path.flat(2).sort((a, b) => a - b);
    const low = all[Math.floor(0.002 * all.length)], high = all[Math.ceil(0.998 * all.length) - 1];
    const room = 0.08 * (high - low || 1);
    return [low - room, high + room];
}

/**
 * @param {object} v {layout, model, chain: {x, path, y: limits}, step}
 */
export function chainScene(v) {
    const {layout: l, chain, step, model} = v;
    const {box} = l;
    const wide = {...box, w: l.width - box.x - 24};
    const sx = scale(l.sx.lo, l.sx.hi, wide.x, wide.x + wide.w);
    const sy = scale(chain.y[0], chain.y[1], wide.y + wide.h, wide.y);
    const now = atStep(chain.path, step);
    const inside = [];
    now.forEach((f, s) => {
        const first = s === 0;
        if (first) inside.push({k: "line", at: trace(chain.x, f, sx, sy), stroke: "accent", width: 1.4, alpha: 0.9});
        f.forEach((y, i) => inside.push({k: "dot", x: sx(chain.x[i]), y: sy(y), r: first ? 2.6 : 1.7, fill: first ? "accent" : "draw", alpha: first ? 1 : 0.5}));
    });
    inside.push(inside.shift());
    inside.unshift(...outside(model, {box: wide, sx}));
    const steps = chain.path.length - 1;
    return [
        ...axes(wide, sx, sy, {x: model.inputs[0].name, y: "f"}, l.small),
        {k: "clip", x: wide.x, y: wide.y, w: wide.w, h: wide.h, items: inside},
        {k: "text", x: wide.x + wide.w, y: wide.y - 11, text: `f(${label(Math.round(step * 10) / 10)}) of f(0) … f(${steps})`, fill: "muted", size: 12, anchor: "end"},
    ];
}
