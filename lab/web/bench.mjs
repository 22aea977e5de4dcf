/* bench.mjs: how long the page computes: the WebAssembly module in node and in Chromium beside the
 * native build with one thread. After make wasm:
 *
 *     node lab/web/bench.mjs [BUILD]
 *
 * Requests with a new seed each, mnp-monotonic given 4 points. Native and node: processor time, so that a busy
 * machine does not matter, the mean of several. Chromium: the least time that a caller waits. */
import {readFileSync, statSync} from "node:fs";
import {join} from "node:path";

import {inChromium} from "../../tests/web/browser.mjs";
import {Native} from "../../tests/web/native.mjs";
import {Module} from "../../web/module.js";

const build = process.argv[2] ?? "build", page = join(build, "web"), model = "mnp-monotonic";
const file = join(page, `models/${model}.safetensors`);
const request = {model, context: {x: [-1.5, -0.5, 0.3, 1.2], y: [-1, -0.2, 0.1, 0.9]}};
const cases = [
    ["sample, 12 functions at 100 places", "sample", {grid: [-2, 2, 100], samples: 12, condition: "network"}, 60],
    ["sample, 50 functions at 200 places", "sample", {grid: [-2, 2, 200], samples: 50, condition: "network"}, 20],
    ["predict, 12 functions at 100 places, all drawn", "predict", {grid: [-2, 2, 100], samples: 12, draws: 12, condition: "network"}, 40],
    ["predict, 50 functions at 200 places, 20 of them drawn", "predict", {grid: [-2, 2, 200], samples: 50, draws: 20, condition: "network"}, 15],
    ["sample refined, 12 functions at 100 places", "sample", {grid: [-2, 2, 100], samples: 12, condition: "refine"}, 5],
];

const module = await Module.start(await WebAssembly.compile(readFileSync(join(page, "mnp.wasm"))));
module.model(model, readFileSync(file));
const native = new Native(join(build, "tests/web/native"), [file]);
const engines = {
    native: (verb, body) => native.call(verb, body),
    node: (verb, body) => JSON.parse(module.call(verb, JSON.stringify(body))),
};

const TICK = 10; /* ms, of /proc */
const used = { /* ms of processor time so far */
    native: () => TICK * readFileSync(`/proc/${native.child.pid}/stat`, "utf8").split(") ")[1].split(" ").slice(11, 13).reduce((a, b) => a + Number(b), 0),
    node: () => process.cpuUsage().user / 1000,
};

async function mean(engine, verb, body, times) {
    for (let seed = 0; seed < 3; seed++) await engines[engine](verb, {...request, ...body, seed});
    const before = used[engine]();
    for (let seed = 0; seed < times; seed++) await engines[engine](verb, {...request, ...body, seed});
    return (used[engine]() - before) / times;
}

async function least(ask, verb, body, times) {
    let best = Infinity;
    for (let seed = 0; seed < times; seed++) {
        const start = performance.now();
        await ask(verb, {...request, ...body, seed});
        best = Math.min(best, performance.now() - start);
    }
    return best;
}

const script = ([, verb, body, times]) => `
    const {wasmEngine} = await import("/engine_wasm.js");
    const engine = await wasmEngine("/"), request = ${JSON.stringify(request)};
    ${least}
    const ask = (verb, body) => engine.call(verb, body);
    await least(ask, ${JSON.stringify(verb)}, ${JSON.stringify(body)}, 3);
    return least(ask, ${JSON.stringify(verb)}, ${JSON.stringify(body)}, ${times});`;

console.log(`module ${statSync(join(page, "mnp.wasm")).size} bytes\n`);
console.log("| milliseconds | native, 1 thread | node | node / native | Chromium |\n|---|---|---|---|---|");
for (const one of cases) {
    const [name, verb, body, times] = one;
    const alone = await mean("native", verb, body, times), module = await mean("node", verb, body, times);
    const chromium = await inChromium(page, script(one));
    console.log(`| ${name} | ${alone.toFixed(1)} | ${module.toFixed(1)} | ${(module / alone).toFixed(1)} | ${chromium.toFixed(1)} |`);
}
native.end();
