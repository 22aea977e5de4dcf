/* module.js: the WebAssembly module as calls on texts (serve/wasm.c has its exports). It computes
 * where it is called: the page does that in worker.js. Works in browsers and in node. */
import {wasi} from "./wasi.js";

/** An error with the status that `mnp serve` would answer. */
export function failure(status, sentence) {
    return Object.assign(new Error(sentence), {status});
}

export class Module {
    /** @param {WebAssembly.Module} compiled */
    static async start(compiled) {
        const module = new Module();
        const instance = await WebAssembly.instantiate(compiled, {
            wasi_snapshot_preview1: wasi(() => module.exports.memory),
            env: {mnp_web_progress: (done, total) => module.onProgress?.(done, total)},
        });
        module.exports = instance.exports;
        module.exports._initialize();
        const status = module.exports.mnp_web_start();
        if (status) throw failure(503, "There is not enough memory to start.");
        return module;
    }

    /**
     * A model file.
     * @param {Uint8Array} bytes
     * @returns {string} the model's object as JSON
     */
    model(name, bytes) {
        return this.ask(this.exports.mnp_web_model, name, bytes, null);
    }

    /**
     * @param {string} verb models, predict, sample, score, chain or map
     * @param {string} body the request as JSON
     * @returns {string} the reply as JSON
     */
    call(verb, body, onProgress = null) {
        return this.ask(this.exports.mnp_web_call, verb, new TextEncoder().encode(body), onProgress);
    }

    ask(call, name, bytes, onProgress) {
        const named = new TextEncoder().encode(name);
        const at = this.exports.mnp_web_alloc(named.length + bytes.length);
        if (!at) throw failure(503, "There is not enough memory for the request.");
        const memory = new Uint8Array(this.exports.memory.buffer);
        memory.set(named, at);
        memory.set(bytes, at + named.length);
        this.onProgress = onProgress;
        call(at, named.length, at + named.length, bytes.length);
        this.exports.mnp_web_free(at);
        const {mnp_web_reply: start, mnp_web_reply_bytes: length, mnp_web_status: status} = this.exports;
        const reply = new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, start(), length()));
        if (status() === 200) return reply;
        throw failure(status(), reply ? JSON.parse(reply).error : "There is not enough memory.");
    }
}
