/* engine_server.js: the engine that asks `mnp serve` (docs/dev/explorer.md, Requests). Same calls
 * as engine_wasm.js. The key, where the server wants one, is kept for this tab alone. */

const KEY = "mnp-key";

function keyOf() {
    try {
        return sessionStorage.getItem(KEY) ?? "";
    } catch {
        return "";
    }
}

function keepKey(key) {
    try {
        sessionStorage.setItem(KEY, key);
    } catch {
        /* a browser without storage asks again */
    }
}

async function sentenceOf(response) {
    try {
        const body = await response.json();
        if (typeof body.error === "string") return body.error;
    } catch {
        /* not ours: a proxy's page */
    }
    return `The server answered with status ${response.status}.`;
}

export class ServerEngine {
    kind = "server";

    /** @param {() => Promise<string|null>} askKey shows a form; null: the person gave up */
    constructor(askKey) {
        this.askKey = askKey;
        this.stop = null;
    }

    async fetch(path, options = {}) {
        for (let typed = keyOf();;) {
            const headers = {...options.headers, ...(typed ? {Authorization: `Bearer ${typed}`} : {})};
            const response = await fetch(path, {...options, headers, cache: "no-store"});
            if (response.status !== 401) {
                if (typed) keepKey(typed);
                return response;
            }
            typed = await this.askKey(typed !== "");
            if (!typed) throw new Error("This server wants a key: reload the page to type it.");
        }
    }

    async models() {
        const response = await this.fetch("v1/models");
        if (!response.ok) throw new Error(await sentenceOf(response));
        return response.json();
    }

    /**
     * @param {string} verb predict, sample, score, chain or map
     * @param {{onProgress?: (done: number, total: number) => void, signal?: AbortSignal}} options
     */
    async call(verb, request, {onProgress, signal} = {}) {
        this.stop = new AbortController();
        signal?.addEventListener("abort", () => this.stop.abort(), {once: true});
        const response = await this.fetch(`v1/${verb}`, {
            method: "POST",
            headers: {"Content-Type": "application/json", ...(onProgress ? {Accept: "application/x-ndjson"} : {})},
            body: JSON.stringify(request),
            signal: this.stop.signal,
        });
        if (!response.ok) throw new Error(await sentenceOf(response));
        if (!(response.headers.get("Content-Type") ?? "").includes("ndjson")) return response.json();
        return lines(response.body, onProgress);
    }

    async load() {
        throw new Error("This page is computed by a server, which opens no files from here: start it with your file, as in `mnp serve FILE`.");
    }

    cancel() {
        this.stop?.abort();
    }
}

/* Lines {"done", "total"}, and last {"reply"} or {"error"}. */
async function lines(body, onProgress) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
        const {done, value} = await reader.read();
        text += done ? decoder.decode() : decoder.decode(value, {stream: true});
        const parts = text.split("\n");
        text = done ? "" : parts.pop();
        for (const part of parts) {
            if (!part.trim()) continue;
            const line = JSON.parse(part);
            if (line.error) throw new Error(line.error);
            if (line.reply) return line.reply;
            onProgress?.(line.done, line.total);
        }
        if (done) throw new Error("The server ended its answer too early: try again.");
    }
}
