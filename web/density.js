/* density.js: the density of the output at one input, drawn along the height of the plot. */
import {grid} from "./scene.js";

/**
 * Heights at which a density is asked for: close together where it is large.
 * @param {number} low @param {number} high its 2.5 and 97.5 % quantiles  @param {number[]} limits of the plot
 */
export function heights(low, high, limits, n = 81) {
    const room = Math.max(0.6 * (high - low), 1e-6 * (limits[1] - limits[0]));
    return grid(low - room, high + room, n);
}

/* The deviation, or what the middle half of the values says of it where that is less: a few that lie
 * far away must not blur the others. */
function usualDeviation(values, deviation) {
    const sorted = [...values].sort((a, b) => a - b), at = (p) => sorted[Math.round(p * (sorted.length - 1))];
    const middle = (at(0.75) - at(0.25)) / 1.349;
    return middle > 0 ? Math.min(deviation, middle) : deviation;
}

/**
 * A kernel density. The values have no noise, but the deviation does: what it has more than they
 * widens the kernel.
 * @param {number[]} values @param {number} sd with noise @param {number[]} y where
 * @returns {{y: number[], p: number[]}}
 */
export function kernel(values, sd, y) {
    const n = values.length, mean = values.reduce((a, b) => a + b, 0) / n;
    const spread = values.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(n - 1, 1);
    const noise = Math.sqrt(Math.max(sd * sd - spread, 0));
    const width = Math.hypot(0.9 * usualDeviation(values, Math.sqrt(spread)) * n ** -0.2, noise) || 1e-9;
    const p = y.map((at) => values.reduce((a, v) => a + Math.exp(-0.5 * ((at - v) / width) ** 2), 0) / (n * width * Math.sqrt(2 * Math.PI)));
    return {y, p};
}

/* One outline: the density to the right of the strip's left edge. */
function outline(d, l, most) {
    const at = [];
    d.y.forEach((y, i) => {
        at.push(l.strip.x + (0.92 * l.strip.w * d.p[i]) / most, l.sy(y));
    });
    return at;
}

/**
 * @param {{model: {y, p}, truth: {y, p}|null}} density  @param {object} l the layout
 * @param {string} where the input, as text
 */
export function densityItems(density, l, where) {
    const {strip} = l;
    const d = density.model;
    const most = Math.max(...d.p, ...(density.truth ? density.truth.p : [0])) || 1;
    const shape = outline(d, l, most);
    const inside = [{k: "area", at: [strip.x, l.sy(d.y[0]), ...shape, strip.x, l.sy(d.y[d.y.length - 1])], fill: "band2"},
                    {k: "line", at: shape, stroke: "accent", width: 1.6}];
    if (density.truth) inside.push({k: "line", at: outline(density.truth, l, most), stroke: "truth", width: 1.6, dash: [5, 4]});
    return [
        {k: "line", at: [strip.x + 0.5, strip.y, strip.x + 0.5, strip.y + strip.h], stroke: "cursor", width: 1},
        {k: "clip", x: strip.x, y: strip.y, w: strip.w + 4, h: strip.h, items: inside},
        {k: "text", x: strip.x, y: strip.y + strip.h + 17, text: l.small ? "density" : `density at ${where}`, fill: "muted", size: 11},
    ];
}
