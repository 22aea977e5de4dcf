/* test_wasm.mjs: the WebAssembly module gives the native build's numbers, for every process and
 * every call, and survives whatever it is given. Run by scripts/web_test.sh, which names the folder of
 * the page (PAGE), the native program (NATIVE) and the models beside the shipped ones (MODELS). */
import assert from "node:assert/strict";
import {readFileSync, readdirSync} from "node:fs";
import {basename, join} from "node:path";

import {Module} from "../../web/module.js";
import {done, near, run} from "./check.mjs";
import {Native} from "./native.mjs";

const {PAGE, NATIVE, MODELS} = process.env;
const models = [join(PAGE, "models"), MODELS].flatMap((folder) =>
    readdirSync(folder).filter((file) => /^[^.]+\.safetensors$/.test(file)).map((file) => join(folder, file)));
const compiled = await WebAssembly.compile(readFileSync(join(PAGE, "mnp.wasm")));
const module = await Module.start(compiled);
const native = new Native(NATIVE, models);
const nameOf = (path) => basename(path, ".safetensors");
const bytesOf = (name) => readFileSync(models.find((path) => nameOf(path) === name));

/* Numbers of one and the other are in float: sums in another order, other instruction sets. */
const CLOSE = 2e-4;

function ask(verb, request) {
    try {
        return {status: 200, reply: JSON.parse(module.call(verb, JSON.stringify(request)))};
    } catch (error) {
        if (!error.status) throw error; /* a trap */
        return {status: error.status, reply: {error: error.message}};
    }
}

async function same(verb, request, tolerance = CLOSE) {
    const want = await native.call(verb, request), got = ask(verb, request);
    assert.equal(got.status, want.status, `status ${got.status} (${got.reply.error}), not ${want.status} (${want.reply.error})`);
    delete got.reply.seconds;
    delete want.reply.seconds;
    near(got.reply, want.reply, tolerance);
    return got.reply;
}

/* Chains that accept or reject: a difference in the last bit may turn a choice, and one chain goes
 * another way. The others are the same. */
async function mostly(request) {
    const {reply: want} = await native.call("predict", request), {reply: got} = ask("predict", request);
    assert.deepEqual(Object.keys(got), Object.keys(want));
    const off = want.draws.map((draw, s) => Math.max(...draw.map((y, k) => Math.abs(got.draws[s][k] - y))));
    assert.ok(off.filter((d) => d <= 5e-3).length >= 0.7 * off.length, `functions are off by ${off}`);
    near(got.fit_before, want.fit_before, CLOSE * 10, "fit_before");
}

/* Particles that are weighed and drawn again together: means and the evidence are compared by
 * their own errors. */
async function alike(request) {
    const {reply: want} = await native.call("predict", request), {reply: got} = ask("predict", request);
    assert.deepEqual(Object.keys(got), Object.keys(want));
    assert.ok(Math.abs(got.log_evidence - want.log_evidence) <= 4 * Math.hypot(got.log_evidence_sd, want.log_evidence_sd),
        `log evidence ${got.log_evidence} +- ${got.log_evidence_sd}, not ${want.log_evidence} +- ${want.log_evidence_sd}`);
    const share = 4 * Math.sqrt(2 / Math.min(got.particle_ess, want.particle_ess));
    want.mean.forEach((mean, k) => assert.ok(Math.abs(got.mean[k] - mean) <= share * want.sd[k], `mean ${k} is ${got.mean[k]}, not ${mean}`));
}

/* ---- the same numbers ------------------------------------------------------------------------ */

await run("models: the same objects", async () => {
    const alone = await Module.start(compiled);
    const objects = models.map((path) => JSON.parse(alone.model(nameOf(path), readFileSync(path))));
    const want = (await native.call("models", {})).reply;
    near(objects, want.models, 1e-12);
    near(JSON.parse(alone.call("models", "")), want, 1e-12);
});

for (const path of models) module.model(nameOf(path), readFileSync(path));

const contexts = {
    prior: {x: [], y: []},
    "1 point": {x: [0.3], y: [0.4]},
    "4 points": {x: [-1.5, -0.5, 0.3, 1.2], y: [-1, -0.2, 0.1, 0.9]},
    "9 points": {x: [-1.9, -1.4, -1, -0.5, 0, 0.4, 0.9, 1.3, 1.8], y: [-1.2, -1, -0.7, -0.6, 0, 0.1, 0.5, 0.6, 1]},
};
const curves = ["mnp-monotonic", "mnp-rbf", "mnp-periodic", "mnp-sde", "np-rbf", "gp", "cbp", "mnp-tiny", "oracle:matern"];
const targets = {x: [-1.1, 0.7, 1.6], y: [-0.6, 0.5, 0.8]};
for (const model of curves) {
    for (const [name, context] of Object.entries(contexts)) {
        const request = {model, context, samples: 12, seed: 5, condition: "network"};
        await run(`${model}, ${name}: predict`, () =>
            same("predict", {...request, grid: [-2, 2, 21], quantiles: [0.1, 0.5, 0.9], draws: 4}));
    }
    const request = {model, context: contexts["4 points"], samples: 12, seed: 6, condition: "network"};
    await run(`${model}: bands`, () => same("predict", {...request, grid: [-2, 2, 9], bands: true, quantiles: [0.1, 0.9]}, 1e-3));
    await run(`${model}: sample`, () => same("sample", {...request, at: [-1, 0.25, 1.5], noise: true}));
    await run(`${model}: score`, () => same("score", {...request, targets}, 1e-3));
    await run(`${model}: score by itself`, () => same("score", {...request, targets, marginal: true}, 1e-3));
    await run(`${model}: chain`, () => same("chain", {...request, grid: [-2, 2, 5]}));
}
await run("lmm: predict, sample, score", async () => {
    const request = {model: "lmm", context: {x: [15, 30, 45], y: [4, 14, 25]}, samples: 20};
    await same("predict", {...request, grid: [10, 60, 11], draws: 3});
    await same("predict", {...request, grid: [10, 60, 11], bands: true});
    await same("sample", {...request, at: [20, 50], noise: true});
    await same("score", {...request, targets: {x: [25, 50], y: [10, 30]}});
});
for (const model of ["mnp-monotonic", "mnp-rbf", "np-rbf", "mnp-tiny"]) {
    const request = {model, context: contexts["4 points"], samples: 8, seed: 2, grid: [-2, 2, 9]};
    await run(`${model}: functions on a great circle`, () =>
        same("predict", {...request, condition: "network", towards: 9, angle: 0.7, draws: 8}));
    await run(`${model}: refine`, () => mostly({...request, samples: 20, condition: "refine", gradients: 10, draws: 20}));
    await run(`${model}: exact`, () => alike({...request, samples: 40, condition: "exact", gradients: 40}));
}
await run("geofluvial: map", async () => {
    const wells = {pixel: [[6, 46], [9, 87], [40, 20], [100, 64]], value: [1, 1, 0, 1]};
    const request = {model: "geofluvial", rows: 16, cols: 16, samples: 4, seed: 3, condition: "network", threshold: 0.5, draws: 2};
    await same("map", request);
    await same("map", {...request, wells: {pixel: [[2, 3], [9, 14]], value: wells.value.slice(0, 2)}});
});

/* ---- requests that are refused --------------------------------------------------------------- */

await run("refused as natively", async () => {
    const bad = [
        ["predict", {}], ["predict", {model: "no-such"}], ["predict", {model: "np-rbf", grid: [0, 1]}], ["no-such", {}],
        ["predict", {model: "np-rbf", grid: [0, 1, 5], samples: 1e9}], ["predict", {model: "np-rbf", grid: [0, 1, 5], colour: 1}],
        ["predict", {model: "np-rbf", context: {x: [1], y: []}, grid: [0, 1, 5]}], ["map", {model: "np-rbf"}],
        ["predict", {model: "np-rbf", context: {x: [null], y: [1]}, grid: [0, 1, 5]}], ["predict", []],
    ];
    for (const [verb, request] of bad) {
        const want = await native.call(verb, request), got = ask(verb, request);
        assert.notEqual(got.status, 200);
        assert.deepEqual(got, want);
    }
});
await run("progress is told", () => {
    const told = [];
    const request = {model: "mnp-monotonic", context: contexts["4 points"], grid: [-2, 2, 5], samples: 4, condition: "refine", gradients: 15};
    module.call("predict", JSON.stringify({...request, seed: 77}), (done, total) => told.push([done, total]));
    assert.ok(told.length > 1, "told once or never");
    assert.ok(told.every(([done, total], k) => done <= total && (k === 0 || done >= told[k - 1][0])), JSON.stringify(told));
});

/* ---- files that are damaged ------------------------------------------------------------------ */

function loads(bytes) { /* true, or one sentence; a trap is no Error of ours and goes on */
    try {
        module.model("damaged", bytes);
        return true;
    } catch (error) {
        if (error.status !== 422) throw error;
        assert.match(error.message, /^[^\n]{10,}$/);
        return false;
    }
}

await run("truncated models are refused with a sentence", () => {
    for (const name of ["np-rbf", "gp", "lmm"]) {
        const whole = bytesOf(name);
        for (const part of [0, 1, 7, 8, 9, 100, 1000, whole.length >> 1, whole.length - 1])
            if (part < whole.length) assert.equal(loads(whole.subarray(0, part)), false, `${part} bytes of ${name}`);
    }
});
await run("models with wrong bytes are read or refused", () => {
    let state = 1, refused = 0;
    const random = (n) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % n;
    for (let k = 0; k < 600; k++) {
        const bytes = Uint8Array.from(bytesOf(["gp", "lmm", "mnp-tiny"][k % 3]));
        const header = Math.min(bytes.length, 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true)));
        for (let n = 1 + random(4); n > 0; n--) bytes[random(header)] = random(256);
        if (!loads(bytes)) refused++;
    }
    assert.ok(refused > 300, `only ${refused} of 600 were refused`);
});
await run("it works as before", () => same("predict", {model: "np-rbf", context: contexts["4 points"], grid: [-2, 2, 5], seed: 8}));

/* ---- memory ---------------------------------------------------------------------------------- */

await run("out of memory is an error, and the module stays usable", async () => {
    const small = await Module.start(compiled);
    small.model("np-rbf", bytesOf("np-rbf"));
    const request = JSON.stringify({model: "np-rbf", context: contexts["4 points"], grid: [-2, 2, 2000], samples: 2000});
    const taken = [];
    for (let size = 1 << 28; size >= 1 << 16; size >>= 1) /* all but 64 KiB pieces */
        for (let at; (at = small.exports.mnp_web_alloc(size)); taken.push(at));
    assert.throws(() => small.call("predict", request), {status: 503});
    assert.throws(() => small.model("mnp-rbf", bytesOf("mnp-rbf")), {status: 503});
    taken.forEach((at) => small.exports.mnp_web_free(at));
    const reply = JSON.parse(small.call("predict", request));
    assert.equal(reply.mean.length, 2000);
});

native.end();
done();
