/* colours.js: the palette of style.css for pictures, and colours of maps. */

/** @returns {(name: string) => string} of the variables --plot-NAME; a colour itself stays */
export function palette() {
    const style = getComputedStyle(document.documentElement);
    const known = new Map();
    return (name) => {
        if (name.startsWith("#")) return name;
        if (!known.has(name)) known.set(name, style.getPropertyValue(`--plot-${name}`).trim() || "#888888");
        return known.get(name);
    };
}

/** "#rrggbb" as [r, g, b]. */
export function rgb(hex) {
    const v = parseInt(hex.slice(1), 16);
    return [(v >> 16) & 255, (v >> 8) & 255, v & 255];
}

/** The colour at t in [0, 1] of a ramp of [r, g, b]. */
export function ramp(stops, t) {
    const s = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
    const i = Math.min(Math.floor(s), stops.length - 2);
    return stops[i].map((v, k) => v + (s - i) * (stops[i + 1][k] - v));
}

/**
 * Values as an image.
 * @param {number[]} values (n)  @param {number} lo @param {number} hi
 * @param {number[][]} stops
 * @returns {Uint8ClampedArray} (n * 4)
 */
export function paint(values, lo, hi, stops) {
    const table = Array.from({length: 256}, (_, i) => ramp(stops, i / 255));
    const out = new Uint8ClampedArray(values.length * 4);
    for (let i = 0; i < values.length; i++) {
        const c = table[Math.max(0, Math.min(255, Math.round((255 * (values[i] - lo)) / (hi - lo)) || 0))];
        out.set(c, 4 * i);
        out[4 * i + 3] = 255;
    }
    return out;
}
