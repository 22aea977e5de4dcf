/* test_page_units.mjs: the parts of the page that need no browser, in node. `node FILE` fails with
 * the first that is wrong. */
import assert from "node:assert/strict";
import {readdirSync, readFileSync} from "node:fs";
import test from "node:test";

import {atStep, chainLimits} from "../../web/chain.js";
import {paint, ramp} from "../../web/colours.js";
import {fields, readColumns, toCsv} from "../../web/csv.js";
import {curvesScene, layout, limitsOf} from "../../web/curves.js";
import {heights, kernel} from "../../web/density.js";
import {mapCommand, predictCommand, predictionCsv} from "../../web/export.js";
import {nextInput, random, Score} from "../../web/game.js";
import {blend, frame} from "../../web/motion.js";
import {nearest} from "../../web/pointer.js";
import {Queue} from "../../web/queue.js";
import {mapRequest, rescale, riversLayout, riversScene} from "../../web/rivers.js";
import {grid, interpolate, label, scale, ticks} from "../../web/scene.js";
import {escapeXml, sceneToSvg} from "../../web/scene_svg.js";
import {createStore, initialState} from "../../web/state.js";
import {decode, encode} from "../../web/url.js";
import {pointWarnings, reportWords} from "../../web/words.js";

const MODEL = {name: "m", inputs: [{name: "x", lo: -2, hi: 2}], output: {name: "y", lo: -1, hi: 1}, context_max: 3};

/* ---- files of points ----------------------------------------------------------------------------- */

test("columns are found by name, in any order, with gaps left out", () => {
    assert.deepEqual(readColumns("\uFEFFy,note,x\r\n1,a,2\r\n,b,3\r\n\r\n4,c,5\r\n", ["x", "y"]), [[2, 1], [5, 4]]);
    assert.deepEqual(readColumns("x;y\n1,5;2\n", ["x", "y"]), [[1.5, 2]]);
    assert.deepEqual(readColumns('"x","y"\n"1","2e-3"\n', ["x", "y"]), [[1, 0.002]]);
    assert.deepEqual(fields('a,"b ""c"", d",', ","), ["a", 'b "c", d', ""]);
});

test("a bad file is one sentence that names the place", () => {
    assert.throws(() => readColumns("", ["x", "y"]), /empty/);
    assert.throws(() => readColumns("a,b\n1,2\n", ["x", "y"]), /no column "x"/);
    assert.throws(() => readColumns("x,y\n1,two\n", ["x", "y"]), /Line 2: "two" in column y/);
    assert.throws(() => readColumns("x,y\n", ["x", "y"]), /no rows/);
    assert.throws(() => readColumns("x,y\n1,Infinity\n", ["x", "y"]), /not a number/);
    assert.throws(() => readColumns("x,y\n1,2\n3,4\n", ["x", "y"], 1), /more than 1 row/);
});

test("a table holds every digit", () => {
    assert.equal(toCsv(["x", "mean"], [[0.1, 2], [1 / 3, -1e-20]]), `x,mean\n0.1,${1 / 3}\n2,-1e-20\n`);
    const reply = {x: [1], mean: [2], sd: [3], quantiles: {values: [[4], [5], [6], [7], [8]]}};
    assert.equal(predictionCsv(reply, "day"), "day,mean,sd,q05,q25,q50,q75,q95\n1,2,3,4,5,6,7,8\n");
});

/* ---- addresses ----------------------------------------------------------------------------------- */

test("a link makes the same state again", () => {
    const s = {...initialState(), model: "mnp-rbf", points: [{x: -1.25, y: 3e-4}, {x: 2, y: 0}], wells: [{row: 3, col: 127, value: -1}], seed: 7,
               condition: "exact", view: "chain", step: 2.5, layer: "sd", at: 0.5, truth: true, moving: true, show: {bands: true, draws: false, mean: true},
               game: {seed: 4294967295, revealed: true}};
    const back = {...initialState(), ...decode(`#${encode(s)}`)};
    assert.deepEqual(back, s);
    const plain = {...initialState(), model: "own file & more.v2"};
    assert.deepEqual({...initialState(), ...decode(encode(plain))}, plain);
});

test("what a link does not say rightly is left out", () => {
    const s = decode("#model=m&points=1,2;x,3;4;5,6,7;,1;8,Infinity;9,1e3&seed=-1&condition=magic&view=__proto__&at=&game=abc");
    assert.deepEqual(s, {model: "m", points: [{x: 1, y: 2}, {x: 9, y: 1000}]});
    assert.deepEqual(decode(""), {});
});

/* ---- scales and scenes --------------------------------------------------------------------------- */

test("ticks are round numbers inside the limits", () => {
    assert.deepEqual(ticks(-2.4, 2.4, 6), [-2, -1, 0, 1, 2]);
    assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
    assert.deepEqual(ticks(0.1, 0.3, 2), [0.1, 0.2, 0.3]);
    assert.deepEqual(ticks(1, 1), []);
    for (const [lo, hi] of [[-1e-7, 3e-7], [1e6, 7.3e6], [-0.03, 0.91]])
        for (const t of ticks(lo, hi)) assert.ok(t >= lo - 1e-9 * (hi - lo) && t <= hi + 1e-9 * (hi - lo));
    assert.equal(label(-0.25), "−0.25");
    assert.equal(label(NaN), "—");
});

test("a scale and its inverse, a grid, values between", () => {
    const s = scale(-2, 2, 100, 500);
    assert.equal(s(0), 300);
    assert.ok(Math.abs(s.invert(s(1.3)) - 1.3) < 1e-12);
    assert.deepEqual(grid(0, 1, 3), [0, 0.5, 1]);
    assert.equal(interpolate([0, 1, 3], [0, 10, 30], 2), 20);
    assert.equal(interpolate([0, 1], [5, 6], -1), 5);
    assert.equal(interpolate([0, 1], [5, 6], 9), 6);
});

const colour = (name) => ({paper: "#ffffff"})[name] ?? "#123456";

test("the scene of curves as SVG: every draw, band and point is there", () => {
    const x = grid(-2, 2, 5), flat = (v) => x.map(() => v);
    const picture = {x, mean: flat(0), bands: [-0.9, -0.5, -0.2, 0.2, 0.5, 0.9].map(flat), draws: [flat(0.1), flat(-0.1)]};
    const l = layout(800, 500, limitsOf(MODEL, []));
    const items = curvesScene({layout: l, model: {...MODEL, output: {...MODEL.output, name: "<y>"}}, show: {bands: true, draws: true, mean: true}, points: [{x: 0, y: 0.5}],
                               chosen: 0, picture, truth: null, moving: null, hidden: null, asked: null, density: null, at: 1});
    const clip = items.find((i) => i.k === "clip");
    assert.equal(clip.items.filter((i) => i.k === "area").length, 3);
    assert.equal(clip.items.filter((i) => i.stroke === "draw").length, 2);
    assert.equal(clip.items.filter((i) => i.fill === "outside").length, 2);
    const svg = sceneToSvg(items, 800, 500, colour);
    assert.equal(svg.match(/<circle/g).length, 2); // the point and its ring
    assert.ok(svg.includes("&lt;y&gt;") && !svg.includes("<y>"));
    assert.ok(!/NaN|undefined/.test(svg));
    const outer = clip.items.find((i) => i.k === "area" && i.fill === "band1");
    assert.ok(Math.abs(l.sy.invert(outer.at[1]) + 0.9) < 1e-9);
    assert.equal(escapeXml(`<a b="c">&'`), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
});

test("an hour of times since 1970 is a range, and a link keeps its seconds", () => {
    const hour = {...MODEL, inputs: [{name: "time", lo: 1700000000, hi: 1700003600}]};
    assert.deepEqual(limitsOf(hour, []).x, [1699999640, 1700003960]);
    const s = {...initialState(), model: "m", points: [{x: 1700001234, y: 0.5}]};
    assert.deepEqual(decode(encode(s)).points, s.points);
});

test("limits hold the trained range and all points", () => {
    const {x, y} = limitsOf(MODEL, [{x: 5, y: 9}]);
    assert.deepEqual(x, [-2.4, 5]);
    assert.ok(y[0] < -1 && y[1] > 9);
});

/* ---- densities ----------------------------------------------------------------------------------- */

test("a kernel density has mass one, and the noise that the deviation tells", () => {
    const values = grid(-1, 1, 50), y = grid(-4, 4, 801);
    const {p} = kernel(values, 0.8, y);
    const mass = p.reduce((a, b) => a + b, 0) * 0.01;
    assert.ok(Math.abs(mass - 1) < 1e-6);
    const spike = kernel(values.map(() => 0.3), 0.1, y); // functions agree: a normal density of sd 0.1
    assert.ok(Math.abs(Math.max(...spike.p) - 1 / (0.1 * Math.sqrt(2 * Math.PI))) < 1e-9);
    const close = grid(-0.05, 0.05, 200), y2 = grid(-0.2, 0.2, 401);
    const alone = Math.max(...kernel(close, 0.03, y2).p);
    const withOne = [...close.slice(1), 3], sd = Math.sqrt(withOne.reduce((s, v) => s + (v - 0.015) ** 2, 0) / 199);
    assert.ok(Math.max(...kernel(withOne, sd, y2).p) > 0.9 * alone, "one function that lies far away does not blur the others");
    const at = heights(0, 1, [-2, 2]);
    assert.ok(at[0] < -0.5 && at[at.length - 1] > 1.5);
});

/* ---- motion, chain, game ------------------------------------------------------------------------- */

test("frames go from seed to seed without a jump", () => {
    assert.deepEqual(frame(3, 0), {seed: 3, towards: 4, angle: 0});
    assert.deepEqual(frame(3, 36), {seed: 4, towards: 5, angle: 0});
    assert.ok(frame(3, 35).angle < Math.PI / 2 && frame(3, 35).seed === 3);
    assert.deepEqual(blend([[0, 2]], [[1, 4]], 0.5), [[0.5, 3]]);
});

test("the chain at a step and between steps", () => {
    const path = [[[0, 0]], [[1, 2]], [[3, 4]]];
    assert.deepEqual(atStep(path, 0), [[0, 0]]);
    assert.deepEqual(atStep(path, 1.5), [[2, 3]]);
    assert.deepEqual(atStep(path, 99), [[3, 4]]);
    const [lo, hi] = chainLimits(path);
    assert.ok(lo < 0 && hi > 4);
});

test("the game asks at the same inputs again, inside, and apart", () => {
    const asked = [0, 1, 2, 3, 4, 5].map((k) => nextInput(99, k, -2, 2));
    assert.deepEqual(asked, [0, 1, 2, 3, 4, 5].map((k) => nextInput(99, k, -2, 2)));
    asked.forEach((a, i) => {
        assert.ok(a > -2 && a < 2);
        for (const b of asked.slice(0, i)) assert.ok(Math.abs(a - b) > 0.05);
    });
    const r = random(1), mean = grid(0, 1, 4000).reduce((s) => s + r(), 0) / 4000;
    assert.ok(Math.abs(mean - 0.5) < 5 * Math.sqrt(1 / 12 / 4000));
});

test("the score of guesses", () => {
    const picture = {x: [0, 1], mean: [0, 0], bands: [-2, -1, -0.5, 0.5, 1, 2].map((v) => [v, v])};
    const score = new Score();
    assert.equal(score.words(), "");
    score.add(0.5, 0.75, 0.5, picture);
    score.add(0, 1.25, 0.5, picture);
    assert.match(score.words(), /After 2 guesses: you were off by 0\.750 on average, the model's mean by 1\.000\. Its 80 % band held the value 1 of 2/);
});

/* ---- maps ---------------------------------------------------------------------------------------- */

test("wells keep their place on a smaller map", () => {
    const model = {name: "r", rivers: true, rows: 128, cols: 128};
    assert.deepEqual(rescale({row: 127, col: 0}, 32, 32, model), [31, 0]);
    assert.deepEqual(rescale({row: 64, col: 30}, 128, 128, model), [64, 30]);
    const request = mapRequest(model, [{row: 127, col: 64, value: -1}], 5, {side: 32, samples: 8});
    assert.deepEqual([request.rows, request.cols, request.wells, request.seed], [32, 32, {pixel: [[31, 16]], value: [-1]}, 5]);
    const map = {rows: 2, cols: 2, mean: [-1, 1, 1, -1], images: {}};
    const items = riversScene({layout: riversLayout(900, 600, "mean"), model, layer: "mean", map, wells: [{row: 0, col: 0, value: -1}], chosen: -1, colour});
    assert.equal(items.filter((i) => i.k === "image" && i.rows === 2).length, 1);
    assert.equal(items.filter((i) => i.k === "dot").length, 1);
    assert.equal(riversLayout(340, 340, "draws").panels.length, 6);
});

test("values become colours", () => {
    assert.deepEqual(ramp([[0, 0, 0], [100, 200, 50]], 0.5), [50, 100, 25]);
    assert.deepEqual([...paint([0, 1, NaN, 9], 0, 1, [[0, 0, 0], [255, 0, 0]])], [0, 0, 0, 255, 255, 0, 0, 255, 0, 0, 0, 255, 255, 0, 0, 255]);
});

/* ---- commands and words -------------------------------------------------------------------------- */

test("the command names the file, the points and what was asked", () => {
    const c = {file: "models/m.safetensors", input: "x", output: "y", points: [{x: 1, y: -2}], grid: [-2, 2, 9], condition: "exact", seed: 4};
    assert.equal(predictCommand(c), "printf '%s\\n' x,y 1,-2 > points.csv\nmnp predict models/m.safetensors \\\n  --context points.csv \\\n  --grid=-2:2:9 \\\n" +
        "  --condition exact --seed 4 \\\n  --out forecast.csv");
    assert.ok(!predictCommand({...c, points: []}).includes("--context"));
    assert.match(predictCommand({...c, output: "y'; rm -r ~ #%s"}), /^printf '%s\\n' 'x,y'\\''; rm -r ~ #%s' 1,-2 > points\.csv\n/);
    assert.match(mapCommand({file: "f", wells: [{row: 1, col: 2, value: -1}], rows: 128, cols: 128, samples: 32, seed: 0}), /--grid 128x128 --samples 32/);
});

test("points where the model knows nothing are named", () => {
    assert.deepEqual(pointWarnings(MODEL, [{x: 0, y: 0}]), []);
    assert.match(pointWarnings(MODEL, [{x: 3, y: 0}])[0], /1 point lies outside x = −2 to 2/);
    assert.match(pointWarnings(MODEL, Array(4).fill({x: 0, y: 0}))[0], /4 points.*at most 3/);
    assert.match(reportWords({condition: "exact", rhat: 1.4, particles: 64, particle_ess: 5}, 2).map((r) => r.text).join(), /few of them.*not settled/);
    assert.match(reportWords({}, 0)[0].text, /before any point/);
});

/* ---- state and queue ----------------------------------------------------------------------------- */

test("undo goes back over a whole drag", () => {
    const store = createStore({...initialState(), points: [{x: 0, y: 0}]});
    store.mark();
    for (let i = 1; i < 5; i++) store.set({points: [{x: i, y: i}]}, "drag");
    assert.ok(store.undo());
    assert.deepEqual(store.state.points, [{x: 0, y: 0}]);
    assert.equal(store.undo(), false);
});

test("only the newest request of a kind is computed, and pictures go first", async () => {
    const asked = [];
    let open;
    const engine = {call: (verb, request) => new Promise((resolve) => {
        asked.push(request.n);
        open = () => resolve({n: request.n});
    })};
    const queue = new Queue(engine);
    const replies = [1, 2, 3].map((n) => queue.ask("picture", "predict", {n}));
    const motion = queue.ask("motion", "sample", {n: 9});
    const truth = queue.ask("truth", "predict", {n: 5});
    for (let i = 0; i < 4; i++) {
        open();
        await new Promise(setImmediate);
    }
    assert.deepEqual(asked, [1, 3, 5, 9]);
    assert.deepEqual(await Promise.all([...replies, truth, motion]), [{n: 1}, null, {n: 3}, {n: 5}, {n: 9}]);
});

test("the numbers of a file wait for no picture, and none takes their place", async () => {
    const asked = [];
    const queue = new Queue({call: async (verb, request) => (asked.push(request.k), request.k)});
    const first = queue.ask("picture", "predict", {k: 0}), file = queue.ask("file", "predict", {k: 1}), smooth = queue.ask("slow", "predict", {k: 2});
    queue.drop("slow");
    assert.deepEqual(await Promise.all([first, file, smooth]), [0, 1, null]);
    assert.deepEqual(asked, [0, 1]);
});

test("a slow request is stopped when it is dropped", async () => {
    const engine = {call: (_, __, {signal}) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("gone"))))};
    const queue = new Queue(engine);
    const slow = queue.ask("slow", "predict", {});
    queue.drop("slow");
    assert.equal(await slow, null);
});

test("the nearest mark within reach", () => {
    const marks = [{x: 0, y: 0}, {x: 10, y: 0}];
    assert.equal(nearest(marks, 8, 1, 12), 1);
    assert.equal(nearest(marks, 50, 0, 12), -1);
});

/* ---- the files of the page ----------------------------------------------------------------------- */

const WEB = new URL("../../web/", import.meta.url);
const page = readFileSync(new URL("index.html", WEB), "utf8");
const modules = readdirSync(WEB).filter((f) => f.endsWith(".js")).map((f) => [f, readFileSync(new URL(f, WEB), "utf8")]);

test("the page keeps its own content security policy", () => {
    assert.ok(!/\sstyle=|\son[a-z]+=|<style|<script(?![^>]*\ssrc=)/i.test(page), "nothing inline");
    assert.ok(!/(src|href)="(https?:)?\/\//.test(page), "nothing from elsewhere");
    for (const [file, text] of modules) {
        assert.ok(!/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/.test(text), file);
        assert.ok(!/["'`]https?:\/\/(?!www\.w3\.org)/.test(text), `${file} names another origin`);
    }
});

test("every element that a module asks for is in the page, once", () => {
    const ids = [...page.matchAll(/\sid="([^"]+)"/g)].map((m) => m[1]);
    assert.equal(new Set(ids).size, ids.length);
    for (const [file, text] of modules)
        for (const [, id] of text.matchAll(/\$\("([^"]+)"\)/g)) assert.ok(ids.includes(id), `${file}: ${id}`);
    for (const [, id] of page.matchAll(/aria-(?:labelledby|describedby)="([^"]+)"/g)) assert.ok(ids.includes(id), id);
});

test("modules import what is there", () => {
    const files = new Set(modules.map(([f]) => f));
    for (const [file, text] of modules)
        for (const [, from] of text.matchAll(/from "\.\/([^"]+)"|import\("\.\/([^"]+)"\)/g)) if (from) assert.ok(files.has(from), `${file}: ${from}`);
});
