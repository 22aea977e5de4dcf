/* scene.js: a picture as plain data, and the scales and ticks that place it. scene_canvas.js and
 * scene_svg.js draw the same list, so that what is exported is what was seen.
 *
 * An item is one of
 *   {k: "rect", x, y, w, h, fill, alpha}
 *   {k: "line", at: [x0, y0, x1, y1, ...], stroke, width, alpha, dash: [on, off]}
 *   {k: "area", at: [...], fill, alpha}                        closed
 *   {k: "dot", x, y, r, fill, stroke, width, alpha}
 *   {k: "text", x, y, text, fill, size, anchor: "start|middle|end", weight, turn: degrees}
 *   {k: "image", x, y, w, h, cols, rows, rgba: Uint8ClampedArray (rows * cols * 4), smooth}
 *   {k: "clip", x, y, w, h, items}
 * Colours are names of the palette ("accent", "ink", ...); lengths are CSS pixels. */

/**
 * A linear scale from values to pixels.
 * @param {number} lo @param {number} hi values  @param {number} from @param {number} to pixels
 */
export function scale(lo, hi, from, to) {
    const slope = (to - from) / (hi - lo);
    const s = (value) => from + (value - lo) * slope;
    s.invert = (pixel) => lo + (pixel - from) / slope;
    s.lo = lo;
    s.hi = hi;
    return s;
}

/**
 * Round numbers within [lo, hi], about `wanted` of them, in steps of 1, 2 or 5 times a power of ten.
 * @returns {number[]}
 */
export function ticks(lo, hi, wanted = 6) {
    if (!(hi > lo) || !Number.isFinite(hi - lo)) return [];
    const rough = (hi - lo) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const digits = Math.max(0, 1 - Math.floor(Math.log10(step)));
    const out = [];
    for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + 1e-9 * step; i++)
        out.push(Number((i * step).toFixed(digits)));
    return out;
}

/** A number for people: a true minus sign, no needless zeros. */
export function label(value, digits = 4) {
    if (!Number.isFinite(value)) return "—";
    const size = Math.abs(value);
    const text = size !== 0 && (size >= 1e5 || size < 1e-4) ? value.toExponential(2)
                                                            : String(Number(value.toPrecision(digits)));
    return text.replace("-", "−");
}

/** n places from lo to hi, as the library has them. */
export function grid(lo, hi, n) {
    return Array.from({length: n}, (_, i) => lo + ((hi - lo) * i) / (n - 1));
}

/** A number with as many digits as one sees where `span` fills the plot. */
export const neat = (v, span) => Number(v.toFixed(Math.max(0, 3 - Math.floor(Math.log10(span)))));

/** The value at x of a curve through (xs, ys), xs rising; ends are held. */
export function interpolate(xs, ys, x) {
    const last = xs.length - 1;
    if (!(x > xs[0])) return ys[0];
    if (x >= xs[last]) return ys[last];
    let lo = 0, hi = last;
    while (hi - lo > 1) {
        const mid = (lo + hi) >> 1;
        if (xs[mid] <= x) lo = mid;
        else hi = mid;
    }
    const part = (x - xs[lo]) / (xs[hi] - xs[lo]);
    return ys[lo] + part * (ys[hi] - ys[lo]);
}

/** [x0, y0, x1, y1, ...] in pixels of a curve. */
export function trace(xs, ys, sx, sy) {
    const at = new Array(2 * xs.length);
    for (let i = 0; i < xs.length; i++) {
        at[2 * i] = sx(xs[i]);
        at[2 * i + 1] = sy(ys[i]);
    }
    return at;
}

/** The closed outline between two curves over the same places. */
export function between(xs, low, high, sx, sy) {
    const at = trace(xs, low, sx, sy);
    for (let i = xs.length - 1; i >= 0; i--) at.push(sx(xs[i]), sy(high[i]));
    return at;
}

/**
 * Axes of a plot: light lines at the ticks, numbers, names.
 * @param {{x: number, y: number, w: number, h: number}} box
 */
export function axes(box, sx, sy, names, small = false) {
    const items = [];
    const size = small ? 11 : 12;
    for (const t of ticks(sx.lo, sx.hi, Math.max(3, box.w / 90))) {
        const x = Math.round(sx(t)) + 0.5;
        items.push({k: "line", at: [x, box.y, x, box.y + box.h], stroke: "grid", width: 1});
        items.push({k: "text", x, y: box.y + box.h + size + 6, text: label(t), fill: "muted", size, anchor: "middle"});
    }
    for (const t of ticks(sy.lo, sy.hi, Math.max(3, box.h / 54))) {
        const y = Math.round(sy(t)) + 0.5;
        items.push({k: "line", at: [box.x, y, box.x + box.w, y], stroke: "grid", width: 1});
        items.push({k: "text", x: box.x - 8, y: y + size * 0.35, text: label(t), fill: "muted", size, anchor: "end"});
    }
    if (names.x)
        items.push({k: "text", x: box.x + box.w, y: box.y + box.h + 2 * size + 10, text: names.x, fill: "muted", size, anchor: "end", weight: 600});
    if (names.y)
        items.push({k: "text", x: names.y.length > 4 ? 4 : box.x - 8, y: box.y - 10, text: names.y, fill: "muted", size, weight: 600,
                    anchor: names.y.length > 4 ? "start" : "end"});
    return items;
}
