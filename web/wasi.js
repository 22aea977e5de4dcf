/* wasi.js: the few calls of WASI that the module makes, answered without files: a clock, random
 * bytes, text for the console. Works in browsers and in node. */

const SUCCESS = 0, BAD_FILE = 8, NOT_SUPPORTED = 58;

/** The module ended itself. */
export class Exit extends Error {
    constructor(code) {
        super(`the module ended with code ${code}`);
        this.code = code;
    }
}

/**
 * The imports of the module.
 * @param {() => WebAssembly.Memory} memory its memory, which exists only once the module does
 * @param {(line: string) => void} print gets what it writes to its standard streams
 */
export function wasi(memory, print = console.error) {
    const view = () => new DataView(memory().buffer);
    const bytes = (at, length) => new Uint8Array(memory().buffer, at, length);
    const decoder = new TextDecoder();
    let line = "";

    function nothing(count, size) { /* no arguments, no environment */
        view().setUint32(count, 0, true);
        view().setUint32(size, 0, true);
        return SUCCESS;
    }

    function clock(id, precision, out) { /* 0: the time of day; others count from a start of their own */
        const ms = id === 0 ? Date.now() : performance.now();
        view().setBigUint64(out, BigInt(Math.round(ms * 1e6)), true);
        return SUCCESS;
    }

    function random(at, length) { /* a browser fills 64 KiB at a time */
        for (let done = 0; done < length; done += 65536)
            globalThis.crypto.getRandomValues(bytes(at + done, Math.min(65536, length - done)));
        return SUCCESS;
    }

    function write(file, vectors, count, written) {
        if (file !== 1 && file !== 2) return BAD_FILE;
        let total = 0;
        for (let i = 0; i < count; i++) {
            const at = view().getUint32(vectors + 8 * i, true), length = view().getUint32(vectors + 8 * i + 4, true);
            line += decoder.decode(bytes(at, length), {stream: true});
            total += length;
        }
        const lines = line.split("\n");
        line = lines.pop();
        for (const whole of lines) print(whole);
        view().setUint32(written, total, true);
        return SUCCESS;
    }

    const calls = {
        args_get: () => SUCCESS,
        args_sizes_get: nothing,
        environ_get: () => SUCCESS,
        environ_sizes_get: nothing,
        clock_time_get: clock,
        random_get: random,
        fd_write: write,
        fd_prestat_get: () => BAD_FILE, /* no folders */
        proc_exit: (code) => {
            throw new Exit(code);
        },
    };
    /* Whatever else it may import is about files, and there are none. */
    return new Proxy(calls, {get: (all, name) => all[name] ?? (() => NOT_SUPPORTED)});
}
