/* test_engine.mjs: the engine of the static page in Chromium: its models, its numbers (those of the
 * module in node), progress, cancelling, a person's own files. See test_wasm.mjs for PAGE and MODELS. */
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";

import {Module} from "../../web/module.js";
import {inChromium} from "./browser.mjs";
import {done, near, run} from "./check.mjs";
import {needChromium} from "./chromium.mjs";

needChromium();
const {PAGE, MODELS} = process.env;
const request = {model: "mnp-monotonic", context: {x: [-1, 0.5], y: [-0.5, 0.25]}, grid: [-2, 2, 21], samples: 8, seed: 4, condition: "network"};
const own = readFileSync(join(MODELS, "lmm.safetensors")).toString("base64");

const script = `
    const {WasmEngine, wasmEngine} = await import("/engine_wasm.js");
    const request = ${JSON.stringify(request)}, failed = (error) => ({name: error.name, status: error.status, message: error.message});
    const engine = await wasmEngine("/");
    const out = {isolated: crossOriginIsolated};
    out.models = await engine.models();
    out.network = await engine.call("predict", request);

    out.told = [];
    const onProgress = (done, total) => out.told.push([done, total]);
    out.refine = await engine.call("predict", {...request, condition: "refine", gradients: 10}, {onProgress});

    const long = {...request, condition: "exact", gradients: 2000, samples: 500};
    const first = new Promise((resolve) => {
        out.cancelled = engine.call("predict", long, {onProgress: resolve}).then(() => "answered", failed);
    });
    await first;
    engine.cancel();
    out.cancelled = await out.cancelled;
    out.after = await engine.call("predict", request);

    const stop = new AbortController();
    out.aborted = await engine.call("predict", long, {onProgress: () => stop.abort(), signal: stop.signal}).then(() => "answered", failed);

    const bytes = Uint8Array.from(atob("${own}"), (c) => c.charCodeAt(0));
    out.own = await engine.load("plants", bytes);
    out.again = await engine.load("plants", bytes.slice());
    engine.cancel();
    out.plants = await engine.call("predict", {model: "plants", context: {x: [15, 30], y: [4, 14]}, grid: [10, 60, 6]});
    out.listed = (await engine.models()).models.map((model) => model.name);
    out.damaged = await engine.load("damaged", bytes.slice(0, 1000)).then(() => "loaded", failed);
    out.unknown = await engine.call("predict", {...request, model: "no-such"}).then(() => "answered", failed);
    out.oracle = await engine.call("predict", {model: "oracle:rbf", grid: [0, 1, 3]});

    const nowhere = new WasmEngine(new URL("/nowhere/", location));
    out.nowhere = await nowhere.models().then(() => "listed", failed);
    return out;`;

let got = null;
await run("the engine answers in Chromium", async () => {
    got = await inChromium(PAGE, script);
});
if (got) {
    const module = await Module.start(await WebAssembly.compile(readFileSync(join(PAGE, "mnp.wasm"))));
    module.model(request.model, readFileSync(join(PAGE, `models/${request.model}.safetensors`)));
    const want = (more) => JSON.parse(module.call("predict", JSON.stringify({...request, ...more})));
    const same = (reply, more) => {
        const {seconds, ...rest} = want(more);
        const {seconds: here, ...numbers} = reply;
        assert.ok(seconds >= 0 && here >= 0);
        near(numbers, rest, 1e-9);
    };
    await run("it needs no special headers", () => assert.equal(got.isolated, false));
    await run("the models beside the page", () => {
        near(got.models, JSON.parse(readFileSync(join(PAGE, "models.json"))), 0);
        assert.equal(got.models.models.length, 7);
    });
    await run("the numbers of the module", () => {
        same(got.network, {});
        same(got.refine, {condition: "refine", gradients: 10});
    });
    await run("progress", () => {
        assert.ok(got.told.length > 1 && got.told.every(([k, total]) => k <= total), JSON.stringify(got.told));
    });
    await run("cancel ends what is computed, and the next call works", () => {
        assert.deepEqual([got.cancelled.name, got.cancelled.status], ["AbortError", 503]);
        same(got.after, {});
        assert.deepEqual([got.aborted.name, got.aborted.status], ["AbortError", 503]);
    });
    await run("a model of one's own stays after cancel, with a name of its own", () => {
        assert.equal(got.own.name, "plants");
        assert.equal(got.own.process, "lmm");
        assert.equal(got.again.name, "plants-2");
        assert.equal(got.plants.mean.length, 6);
        assert.deepEqual(got.listed.slice(-2), ["plants", "plants-2"]);
        assert.equal(got.oracle.mean.length, 3);
    });
    await run("failures are one sentence and a status", () => {
        assert.equal(got.damaged.status, 422);
        assert.equal(got.unknown.status, 404);
        assert.equal(got.nowhere.status, 404);
        for (const {message} of [got.damaged, got.unknown, got.nowhere]) assert.match(message, /^[^\n]{10,}$/);
    });
}
done();
