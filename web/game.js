/* game.js: hide and reveal. A function is drawn and hidden; you guess its value at one input after
 * the other, see it, and the model learns with you. */
import {interpolate} from "./scene.js";

const PLACES = 201;

/** Numbers in [0, 1) that depend on the seed alone (mulberry32). */
export function random(seed) {
    let a = seed >>> 0;
    return () => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = a;
        t = Math.imul(t ^ (t >>> 15), t | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

/** The input that is asked about after `shown` others: within [lo, hi], not close to those before. */
export function nextInput(seed, shown, lo, hi) {
    const next = random(seed);
    const taken = [];
    for (let k = 0; ; k++) {
        let best = 0, far = -1;
        for (let i = 0; i < 8; i++) {
            const u = 0.04 + 0.92 * next();
            const d = Math.min(1, ...taken.map((t) => Math.abs(t - u)));
            if (d > far) [best, far] = [u, d];
        }
        taken.push(best);
        if (k === shown) return Number((lo + best * (hi - lo)).toPrecision(5));
    }
}

/** The hidden function: from the true process where it is known, otherwise from the model itself.
 * @param {number[]} range of inputs [lo, hi] */
export async function hide(queue, model, range, seed) {
    const reply = await queue.ask("other", "sample", {model: model.truth ?? model.name, context: {x: [], y: []}, grid: [...range, PLACES],
                                                      samples: 1, seed, condition: "network"});
    return reply && {x: reply.x, y: reply.draws[0]};
}

export class Score {
    constructor() {
        this.yours = [];
        this.models = [];
        this.held = 0;
    }

    /** @param {number} guess @param {number} value true @param {object} picture before the value was known */
    add(guess, value, x, picture) {
        const at = (row) => interpolate(picture.x, row, x);
        this.yours.push(Math.abs(guess - value));
        this.models.push(Math.abs(at(picture.mean) - value));
        if (value >= at(picture.bands[1]) && value <= at(picture.bands[4])) this.held++;
    }

    words() {
        const n = this.yours.length;
        if (!n) return "";
        const mean = (v) => (v.reduce((a, b) => a + b, 0) / n).toFixed(3);
        return `After ${n} ${n === 1 ? "guess" : "guesses"}: you were off by ${mean(this.yours)} on average, the model's mean by ${mean(this.models)}. ` +
            `Its 80 % band held the value ${this.held} of ${n} times.`;
    }
}
