/* motion.js: draws that move. The latents' noise goes round a great circle from that of one seed to
 * that of the next, so each picture is as likely as any other, and none jumps. Frames are asked for
 * a little ahead and joined by lines: the model's functions move little between two of them. */
import {contextOf} from "./picture.js";

const FRAMES = 36;     // from one seed to the next
const FRAME_MS = 150;
const SIZE = {samples: 14, places: 100};

/** Seeds and angle of the k-th frame. */
export function frame(seed, k) {
    const turn = Math.floor(k / FRAMES);
    return {seed: seed + turn, towards: seed + turn + 1, angle: ((k % FRAMES) / FRAMES) * (Math.PI / 2)};
}

/** (draws, n) between two frames. */
export function blend(a, b, part) {
    return a.map((d, s) => d.map((y, i) => y + part * (b[s][i] - y)));
}

export class Motion {
    /** @param {Queue} queue @param {() => object} view {state, limits} @param {Function} changed @param {Function} failed */
    constructor(queue, view, changed, failed) {
        Object.assign(this, {queue, view, changed, failed});
        this.on = false;
        this.lines = null; // {x, draws} now
    }

    start() {
        if (this.on) return;
        this.on = true;
        this.k = 0;
        this.restart();
        const tick = (now) => {
            if (!this.on) return;
            this.step(now);
            requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
    }

    /** What was asked for is no longer so: the same frame anew. */
    restart() {
        this.frames = [];
        this.clock = null;
        this.asking = false;
        this.run = (this.run ?? 0) + 1;
    }

    stop() {
        this.on = false;
        this.lines = null;
        this.restart();
    }

    step(now) {
        const since = this.clock === null ? 0 : Math.min(now - this.clock, 100);
        this.clock = now;
        const [a, b] = this.frames;
        if (a && b) {
            this.part = Math.min((this.part ?? 0) + since / FRAME_MS, 1);
            this.lines = {x: a.x, draws: blend(a.draws, b.draws, this.part)};
            if (this.part >= 1 && this.frames.length > 2) {
                this.frames.shift();
                this.part = 0;
                this.k++;
            }
            this.changed();
        }
        if (!this.asking && this.frames.length < 3) this.ask();
    }

    async ask() {
        const {state, limits} = this.view();
        const run = this.run;
        this.asking = true;
        try {
            const reply = await this.queue.ask("motion", "sample", {
                model: state.model, context: contextOf(state.points), grid: [...limits.x, SIZE.places],
                samples: SIZE.samples, condition: "network", ...frame(state.seed, this.k + this.frames.length)});
            if (run !== this.run) return;
            if (reply) this.frames.push({x: reply.x, draws: reply.draws});
            if (this.frames.length === 1) this.part = 0;
        } catch (error) {
            if (run === this.run) {
                this.stop();
                this.failed(error);
            }
        } finally {
            if (run === this.run) this.asking = false;
        }
    }
}
