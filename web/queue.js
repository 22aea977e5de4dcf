/* queue.js: one request at a time, and of each kind only the newest: what a person has moved on
 * from is never computed. */

/** Kinds by urgency: a picture goes before what decorates it. */
const URGENCY = ["picture", "truth", "cursor", "file", "slow", "motion", "other"];
const LONG = ["file", "slow"]; // are stopped while they run

export class Queue {
    /** @param {{call: Function}} engine */
    constructor(engine) {
        this.engine = engine;
        this.waiting = new Map(); // kind -> job
        this.running = null;
    }

    /**
     * @param {string} kind of URGENCY  @param {string} verb  @param {object} request
     * @param {{onProgress?: Function}} options
     * @returns {Promise<object|null>} the reply; null where a newer request took its place
     */
    ask(kind, verb, request, options = {}) {
        this.waiting.get(kind)?.resolve(null);
        return new Promise((resolve, reject) => {
            this.waiting.set(kind, {kind, verb, request, options, resolve, reject});
            this.next();
        });
    }

    /** Forgets what waits, of one kind or all, and stops a long request that runs. */
    drop(kind = null) {
        for (const k of [...this.waiting.keys()]) {
            if (kind && k !== kind) continue;
            this.waiting.get(k).resolve(null);
            this.waiting.delete(k);
        }
        const job = this.running;
        if (job && LONG.includes(job.kind) && (!kind || kind === job.kind) && !job.dropped) {
            job.dropped = true;
            job.stop.abort();
        }
    }

    async next() {
        if (this.running) return;
        const kind = URGENCY.find((k) => this.waiting.has(k));
        if (!kind) return;
        const job = this.waiting.get(kind);
        this.waiting.delete(kind);
        job.stop = new AbortController();
        this.running = job;
        try {
            const reply = await this.engine.call(job.verb, job.request, {...job.options, signal: job.stop.signal});
            job.resolve(job.dropped ? null : reply);
        } catch (error) {
            if (job.dropped || error?.name === "AbortError") job.resolve(null);
            else job.reject(error);
        } finally {
            this.running = null;
            this.next();
        }
    }
}
