/* engine_wasm.js: the engine that computes in this browser: the library as WebAssembly in a worker.
 * Same calls as engine_server.js. models.json lists the models beside the page; a model's file is
 * fetched when it is first asked for, and kept, so that a new worker has the same models. */
import {failure} from "./module.js";

const BUSY = 503;

export class WasmEngine {
    kind = "wasm";

    /** @param {string|URL} base the folder of mnp.wasm and models.json */
    constructor(base = new URL(".", import.meta.url)) {
        this.base = new URL(base, import.meta.url);
        this.files = new Map(); /* name: a promise of the bytes of its file */
        this.opened = []; /* objects of the models that a person opened */
        this.pending = new Map(); /* id: who waits for an answer */
        this.count = 0;
        this.worker = null;
    }

    /** @returns {Promise<{version: string, models: object[]}>} */
    async models() {
        const {version, models} = await this.index();
        return {version, models: [...models, ...this.opened]};
    }

    /**
     * @param {string} verb predict, sample, score, chain or map
     * @param {{onProgress?: (done: number, total: number) => void, signal?: AbortSignal}} options
     */
    async call(verb, request, {onProgress, signal} = {}) {
        signal?.throwIfAborted();
        const stop = () => this.cancel();
        signal?.addEventListener("abort", stop, {once: true});
        try {
            const worker = await this.start();
            await this.give(worker, request.model);
            return JSON.parse(await this.ask(worker, {ask: "call", verb, body: JSON.stringify(request)}, onProgress));
        } finally {
            signal?.removeEventListener("abort", stop);
        }
    }

    /**
     * A model file of the person.
     * @param {ArrayBuffer|Uint8Array} bytes
     * @returns {Promise<object>} the model's object, with the name that it got
     */
    async load(name, bytes) {
        const file = new Uint8Array(bytes);
        const free = await this.freeName(name);
        const worker = await this.start();
        const model = JSON.parse(await this.ask(worker, {ask: "model", name: free, bytes: file}));
        this.files.set(model.name, Promise.resolve(file));
        worker.has.set(model.name, Promise.resolve());
        this.opened.push(model);
        return model;
    }

    /** Ends what is being computed. Who waits for it gets an error; the models stay. */
    cancel() {
        this.end(Object.assign(failure(BUSY, "Cancelled."), {name: "AbortError"}));
        this.start().catch(() => {}); /* the next call says what is wrong */
    }

    /* ---- inside ---------------------------------------------------------------------------- */

    async fetch(path) {
        const response = await fetch(new URL(path, this.base));
        if (!response.ok) throw failure(response.status, `${path} is not beside this page (status ${response.status}).`);
        return response;
    }

    /* What is fetched once; a failure may be tried again. */
    once(key, make) {
        if (this[key]) return this[key];
        const made = make().catch((error) => {
            if (this[key] === made) this[key] = null; /* a later try stays */
            throw error;
        });
        this[key] = made;
        return made;
    }

    index() {
        return this.once("indexed", async () => (await this.fetch("models.json")).json());
    }

    compiled() {
        return this.once("code", async () => {
            const bytes = await (await this.fetch("mnp.wasm")).arrayBuffer();
            return WebAssembly.compile(bytes).catch(() => {
                throw failure(501, "This browser cannot run the computation: it needs WebAssembly with 128-bit SIMD, as in Chrome 91, Firefox 89, Safari 16.4 or later.");
            });
        });
    }

    start() {
        return this.once("worker", async () => {
            const compiled = await this.compiled();
            const worker = new Worker(new URL("./worker.js", import.meta.url), {type: "module"});
            worker.has = new Map(); /* name: a promise that ends when the worker has the model */
            worker.onmessage = ({data}) => this.receive(data);
            worker.onerror = (event) => this.end(failure(500, event.message || "The worker of this page could not be started."));
            this.thread = worker;
            await this.ask(worker, {ask: "start", compiled});
            return worker;
        });
    }

    async freeName(name) {
        const {models} = await this.models();
        const taken = new Set(models.map((model) => model.name));
        let free = name;
        for (let k = 2; taken.has(free); k++) free = `${name}-${k}`;
        return free;
    }

    /* The worker gets the model, once. Names that are not known are the module's to refuse. */
    async give(worker, name) {
        if (worker.has.has(name)) return worker.has.get(name);
        const entry = (await this.index()).models.find((model) => model.name === name);
        if (!entry && !this.files.has(name)) return undefined;
        if (!this.files.has(name))
            this.files.set(name, this.fetch(`models/${encodeURIComponent(name)}.safetensors`).then(async (file) => new Uint8Array(await file.arrayBuffer())));
        const given = this.files.get(name).then((bytes) => this.ask(worker, {ask: "model", name, bytes}));
        worker.has.set(name, given);
        given.catch(() => {
            worker.has.delete(name);
            if (entry) this.files.delete(name);
        });
        return given;
    }

    ask(worker, message, onProgress = null) {
        return new Promise((resolve, reject) => {
            if (worker !== this.thread) return reject(failure(BUSY, "Cancelled."));
            const id = ++this.count;
            this.pending.set(id, {resolve, reject, onProgress});
            worker.postMessage({id, ...message});
        });
    }

    receive({id, reply, error, status, broken, done, total}) {
        const waits = this.pending.get(id);
        if (!waits) return;
        if (total !== undefined) {
            waits.onProgress?.(done, total);
            return;
        }
        this.pending.delete(id);
        if (error === undefined) waits.resolve(reply);
        else waits.reject(failure(status, error));
        if (broken) this.end(failure(status, error));
    }

    end(why) {
        this.thread?.terminate();
        this.thread = this.worker = null;
        const waiting = [...this.pending.values()];
        this.pending.clear();
        for (const {reject} of waiting) reject(why);
    }
}

/** @param {string|URL} base the folder of mnp.wasm and models.json */
export async function wasmEngine(base) {
    const engine = new WasmEngine(base);
    await engine.start();
    return engine;
}
