/* picture.js: asks the engine for what curves.js draws, and keeps what came. Coarse while a point
 * moves, fine when it rests; with "refine" the network's draws first, then better ones as they come. */
import {LEVELS} from "./curves.js";
import {heights, kernel} from "./density.js";
import {interpolate} from "./scene.js";

const COARSE = {samples: 12, places: 100, bands: false};
const COARSEST = {samples: 8, places: 60, bands: false}; // where that takes more than SLOW_MS
const SLOW_MS = 90;
const FINE = {samples: 50, places: 200, bands: true};
const FULL = {...FINE, bands: false}; // comes first: smooth bands take twice as long
const FULL_MS = 350; // where FULL took less, FINE comes after it,
const SMOOTH = {samples: 200, places: 200, bands: true}; // or as many functions as the command takes
const SMOOTH_MS = 100; // where it took less than this
const REFINE_STEPS = [5, 15, 30];
const TURN_MS = 450;
const DRAWS = 20;
export const READ_SAMPLES = 200; // the command's default

/** The context of a request. @param {{x: number, y: number}[]} points */
export function contextOf(points) {
    return {x: points.map((p) => p.x), y: points.map((p) => p.y)};
}

function pictureOf(reply) {
    return {x: reply.x, mean: reply.mean, sd: reply.sd, bands: reply.quantiles.values, draws: reply.draws ?? [], report: reply};
}

/** Two pictures of the same places, and what lies between them. */
export function between(a, b, part) {
    const mix = (u, v) => v.map((y, i) => u[i] + part * (y - u[i]));
    const rows = (u, v) => v.slice(0, u.length).map((row, i) => mix(u[i], row));
    return {...b, mean: mix(a.mean, b.mean), bands: rows(a.bands, b.bands), draws: rows(a.draws, b.draws)};
}

export class Pictures {
    /**
     * @param {Queue} queue  @param {() => object} view {state, model, limits}
     * @param {object} hooks {changed, failed, progress, calm}: functions
     */
    constructor(queue, view, hooks) {
        Object.assign(this, {queue, view, ...hooks});
        this.turn = 0; // counts changes of what is asked for
        this.took = 0; // milliseconds of the last coarse picture
        this.clear();
    }

    clear() {
        this.turn++;
        this.turning = null; // {from, start}: a picture that turns into the next
        this.picture = this.truth = this.density = this.reading = null;
    }

    request(size, more) {
        const {state, limits} = this.view();
        return {model: state.model, context: contextOf(state.points), grid: [...limits.x, size.places], samples: size.samples,
                seed: state.seed, condition: "network", quantiles: LEVELS, bands: size.bands, draws: Math.min(DRAWS, size.samples), ...more};
    }

    /** Asks and keeps. @returns {Promise<boolean>} false where something newer took its place */
    async show(kind, request, options) {
        const turn = this.turn;
        const reply = await this.queue.ask(kind, "predict", request, options);
        if (!reply || request.model !== this.view().state.model) return false;
        const before = this.picture;
        this.picture = pictureOf(reply);
        const gently = reply.condition === "refine" && before?.x.length === reply.x.length && !this.calm();
        this.turning = gently ? {from: before, start: performance.now()} : null;
        if (request.samples === COARSE.samples) this.took = 1000 * reply.seconds;
        this.changed("picture");
        return turn === this.turn;
    }

    /** What is to be drawn: refined functions move to their new places. */
    now() {
        if (!this.turning) return this.picture;
        const part = (performance.now() - this.turning.start) / TURN_MS;
        if (part < 1) return between(this.turning.from, this.picture, part * part * (3 - 2 * part));
        this.turning = null;
        return this.picture;
    }

    /** The whole picture anew, coarse or fine. @param {boolean} coarse while something is dragged */
    async refresh(coarse) {
        this.turn++;
        this.queue.drop("slow");
        this.progress(null);
        try {
            const slow = this.took > SLOW_MS;
            const size = coarse ? (slow ? COARSEST : COARSE) : FULL;
            const rest = this.show("picture", this.request(size));
            this.refreshTruth(size);
            const newest = await rest;
            this.refreshCursor();
            if (!newest || coarse) return;
            const {state} = this.view();
            const way = state.points.length ? state.condition : "network";
            if (way === "refine") await this.refine();
            else if (way === "exact") await this.exact();
            else await this.smooth(1000 * this.picture.report.seconds);
        } catch (error) {
            this.progress(null);
            this.failed(error);
        }
    }

    /** Smooth bands of the network's functions. @param {number} took milliseconds of FULL */
    async smooth(took) {
        if (took < FULL_MS) await this.show("slow", this.request(took < SMOOTH_MS ? SMOOTH : FINE));
    }

    async refine() {
        for (const gradients of REFINE_STEPS) {
            this.progress({done: gradients, total: REFINE_STEPS[REFINE_STEPS.length - 1], text: `refine: ${gradients} gradients`});
            if (!(await this.show("slow", this.request(FINE, {condition: "refine", gradients, draws: FINE.samples})))) return;
            this.refreshCursor();
        }
        this.progress(null);
    }

    async exact() {
        const turn = this.turn;
        const onProgress = (done, total) => {
            if (turn === this.turn) this.progress({done, total, text: "exact: particles are on their way"});
        };
        onProgress(0, 1);
        const ok = await this.show("slow", this.request(FINE, {condition: "exact", draws: FINE.samples}), {onProgress});
        if (turn === this.turn) this.progress(null);
        if (ok) this.refreshCursor();
    }

    /** Stops refine and exact; the draws that are there stay. */
    stop() {
        this.turn++;
        this.queue.drop("slow");
        this.progress(null);
    }

    /** The true process given the same points, where it is known and wanted. */
    async refreshTruth(size = FINE) {
        const {state, model} = this.view();
        const before = this.truth;
        try {
            if (!state.truth || !model.truth) this.truth = null;
            else {
                const request = {...this.request({...size, places: 2 * size.places, bands: true}), model: model.truth, samples: 1, draws: 0};
                const reply = await this.queue.ask("truth", "predict", request);
                if (!reply || !this.view().state.truth || model !== this.view().model) return;
                this.truth = pictureOf(reply);
                this.changed("truth");
            }
        } catch (error) {
            this.failed(error);
        }
        if (!before !== !this.truth) await this.refreshCursor();
    }

    /** Numbers and density at the cursor. */
    async refreshCursor() {
        const {state} = this.view();
        if (!this.picture || !Number.isFinite(state.at) || state.view === "chain") return;
        try {
            if (this.picture.report.condition === "network" || !state.points.length) await this.askCursor();
            else this.readPicture();
            this.changed("cursor");
            await this.askExactDensities();
            this.changed("cursor");
        } catch (error) {
            this.failed(error);
        }
    }

    /* Of refine and exact the functions are there, and drawing others would take as long again. */
    readPicture() {
        const {state} = this.view();
        const p = this.picture, x = state.at;
        const at = (row) => interpolate(p.x, row, x);
        this.keepReading({x, mean: at(p.mean), sd: at(p.sd), lo: at(p.bands[0]), hi: at(p.bands[LEVELS.length - 1])}, p.draws.map(at));
    }

    /* Of the network: the numbers of `mnp predict`. */
    async askCursor() {
        const {state, model} = this.view();
        const x = state.at;
        const reply = await this.queue.ask("cursor", "predict", {model: state.model, context: contextOf(state.points), seed: state.seed, condition: "network",
                                                                 samples: READ_SAMPLES, at: [x], quantiles: [0.025, 0.975], draws: READ_SAMPLES});
        if (!reply || model !== this.view().model) return;
        const [[lo], [hi]] = reply.quantiles.values;
        this.keepReading({x, mean: reply.mean[0], sd: reply.sd[0], lo, hi}, (reply.draws ?? []).map((d) => d[0]));
    }

    keepReading(reading, values) {
        const {limits} = this.view();
        this.reading = reading;
        this.density = {x: reading.x, model: kernel(values, reading.sd, heights(reading.lo, reading.hi, limits.y)), truth: this.density?.truth ?? null};
    }

    /* The density itself, where no latents have to be drawn for it. */
    async askDensity(name, lo, hi) {
        const {state, limits} = this.view();
        const y = heights(lo, hi, limits.y), x = y.map(() => state.at);
        const reply = await this.queue.ask("cursor", "score", {model: name, context: contextOf(state.points), targets: {x, y}, marginal: true});
        return reply && {y, p: reply.logp.map(Math.exp)};
    }

    async askExactDensities() {
        const {state, model} = this.view();
        const density = this.density; /* another model has another */
        if (!density) return;
        if (!(model.latents > 0)) density.model = (await this.askDensity(state.model, this.reading.lo, this.reading.hi)) ?? density.model;
        density.truth = null;
        const t = this.truth;
        if (!state.truth || !model.truth || !t) return;
        const at = (row) => interpolate(t.x, row, state.at);
        density.truth = await this.askDensity(model.truth, at(t.bands[0]), at(t.bands[LEVELS.length - 1]));
    }
}
