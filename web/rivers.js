/* rivers.js: maps of a river given wells: what is asked for, and the picture. Small while a well is
 * dragged, then the full size. */
import {paint, rgb} from "./colours.js";
import {label} from "./scene.js";

export const FULL = {side: Infinity, samples: 32};
const SIZES = [{side: 32, samples: 8}, {side: 64, samples: 16}, FULL];
const DRAWS = 6;

export const LAYERS = {
    mean: {title: "Mean", text: "The average map: below 0 is river, above 0 land. Where it is pale, the model does not know."},
    below: {title: "River", text: "The probability that a place lies in the river."},
    sd: {title: "Spread", text: "The standard deviation: where another well would teach most."},
    draws: {title: "Realisations", text: "Six maps drawn at random that all agree with the wells. How they differ is what is not known."},
};

/** Wells of a simulated river (examples/data/wells.csv). */
export const FIRST_WELLS = [[72, 5, -1], [75, 32, -1], [66, 91, -1], [73, 115, -1], [44, 30, 1], [64, 57, 1], [98, 64, 1], [82, 88, 1]].map(([row, col, value]) => ({row, col, value}));

/** The place of a well on a map of another size. */
export function rescale(well, rows, cols, model) {
    return [Math.round((well.row * (rows - 1)) / (model.rows - 1)), Math.round((well.col * (cols - 1)) / (model.cols - 1))];
}

/** @returns {object} a request of the verb map */
export function mapRequest(model, wells, seed, size) {
    const rows = Math.min(size.side, model.rows), cols = Math.min(size.side, model.cols);
    return {model: model.name, rows, cols, seed, samples: size.samples, condition: "network", layers: ["mean", "sd", "below"], draws: Math.min(DRAWS, size.samples),
            wells: {pixel: wells.map((w) => rescale(w, rows, cols, model)), value: wells.map((w) => w.value)}};
}

export class Maps {
    /** @param {Queue} queue @param {() => object} view {state, model} @param {object} hooks {changed, failed, progress} */
    constructor(queue, view, hooks) {
        Object.assign(this, {queue, view, ...hooks});
        this.map = null;
        this.turn = 0;
    }

    clear() {
        this.turn++;
        this.map = null;
    }

    async refresh(coarse) {
        const turn = ++this.turn;
        this.queue.drop("slow");
        this.progress(null);
        try {
            for (const size of coarse ? SIZES.slice(0, 1) : SIZES) {
                const {state, model} = this.view();
                const small = size === SIZES[0];
                const text = `map of ${Math.min(size.side, model.rows)} × ${Math.min(size.side, model.cols)}, ${size.samples} realisations`;
                const onProgress = small ? undefined : (done, total) => turn === this.turn && this.progress({done, total, text});
                onProgress?.(0, 1);
                const reply = await this.queue.ask(small ? "picture" : "slow", "map", mapRequest(model, state.wells, state.seed, size), {onProgress});
                if (!reply || model !== this.view().model) return;
                this.map = {...reply, full: size === FULL, images: {}};
                this.changed("map");
                if (turn !== this.turn) return;
            }
            this.progress(null);
        } catch (error) {
            this.progress(null);
            this.failed(error);
        }
    }

    stop() {
        this.turn++;
        this.queue.drop("slow");
        this.progress(null);
    }
}

/** Squares for the maps, in CSS pixels. */
export function riversLayout(width, height, layer) {
    const small = width < 560;
    if (layer !== "draws") {
        const side = Math.floor(Math.min(width - (small ? 8 : 140), height - 16));
        const x = small ? Math.floor((width - side) / 2) : Math.floor((width - side - 110) / 2);
        return {width, height, small, panels: [{x, y: Math.floor((height - side) / 2), side}]};
    }
    const across = small ? 2 : 3, down = DRAWS / across, gap = 10;
    const side = Math.floor(Math.min((width - gap * (across - 1) - 8) / across, (height - gap * (down - 1) - 8) / down));
    const left = (width - across * side - (across - 1) * gap) / 2, top = (height - down * side - (down - 1) * gap) / 2;
    return {width, height, small,
            panels: Array.from({length: DRAWS}, (_, i) => ({x: Math.floor(left + (i % across) * (side + gap)), y: Math.floor(top + Math.floor(i / across) * (side + gap)), side}))};
}

/** Ends and colours of a layer: [lo, hi, stops]. */
function tones(layer, colour) {
    const c = (name) => rgb(colour(name));
    if (layer === "below") return [0, 1, [c("paper"), c("river2"), c("river")]];
    if (layer === "sd") return [0, 1, [c("paper"), c("spread2"), c("spread")]];
    return [-1, 1, [c("river"), c("river2"), c("bank"), c("land2"), c("land")]];
}

function keyItems(layer, l, colour) {
    const p = l.panels[0];
    if (l.small || layer === "draws") return [];
    const [lo, hi, stops] = tones(layer, colour);
    const h = Math.min(180, p.side), x = p.x + p.side + 22, y = p.y;
    const values = Array.from({length: 64}, (_, i) => hi - ((hi - lo) * i) / 63);
    const words = {mean: ["land", "river"], below: ["river", "land"], sd: ["not known", "known"]}[layer];
    return [
        {k: "image", x, y, w: 12, h, cols: 1, rows: 64, rgba: paint(values, lo, hi, stops), smooth: true},
        {k: "text", x: x + 20, y: y + 9, text: `${label(hi)} ${words[0]}`, fill: "muted", size: 12},
        {k: "text", x: x + 20, y: y + h, text: `${label(lo)} ${words[1]}`, fill: "muted", size: 12},
    ];
}

/* The place of a well within a panel. */
export function wellAt(well, model, panel) {
    return {x: panel.x + (panel.side * (well.col + 0.5)) / model.cols, y: panel.y + (panel.side * (well.row + 0.5)) / model.rows};
}

/**
 * @param {object} v {layout, model, layer, map, wells, chosen, colour, focused, cursor}
 *   map: {rows, cols, mean, sd, below: (rows * cols), draws: (k, rows * cols), images}
 */
export function riversScene(v) {
    const {layout: l, map, model, layer, colour} = v;
    const items = [];
    const [lo, hi, stops] = tones(layer, colour);
    l.panels.forEach((p, i) => {
        items.push({k: "rect", x: p.x, y: p.y, w: p.side, h: p.side, fill: "outside"});
        const values = map && (layer === "draws" ? map.draws[i] : map[layer]);
        if (values) {
            const key = `${layer}${i}${colour("paper")}`;
            map.images[key] ??= {k: "image", cols: map.cols, rows: map.rows, rgba: paint(values.flat(), lo, hi, stops)};
            const image = map.images[key];
            Object.assign(image, {x: p.x, y: p.y, w: p.side, h: p.side, smooth: true});
            items.push(image);
        }
        const far = p.x + p.side, low = p.y + p.side;
        items.push({k: "line", at: [p.x, p.y, far, p.y, far, low, p.x, low, p.x, p.y], stroke: "cursor", width: 1, alpha: 0.6});
        const r = layer === "draws" ? 3.5 : 6;
        v.wells.forEach((w, k) => {
            const at = wellAt(w, model, p);
            if (k === v.chosen) items.push({k: "dot", ...at, r: r + 5, fill: null, stroke: "accent", width: 2});
            items.push({k: "dot", ...at, r, fill: w.value < 0 ? "wellriver" : "wellland", stroke: "wellring", width: 2});
        });
        if (i === 0 && v.focused && v.cursor) items.push({k: "dot", ...wellAt(v.cursor, model, p), r: 9, fill: null, stroke: "ink", width: 2});
    });
    items.push(...keyItems(layer, l, colour));
    return items;
}
