/* main.js: puts the page together: the state, an engine, pictures, controls. */
import {$, mark, segments, showAbilities, showCards, showError, showFamily, showNotices, showProgress, showReading, showReport, showState} from "./controls.js";
import {chainScene} from "./chain.js";
import {ChainView} from "./chain_view.js";
import {palette} from "./colours.js";
import {curvesScene, layout, limitsOf, trainedRange} from "./curves.js";
import {openEngine} from "./engine.js";
import {openFiles} from "./files.js";
import {GameView} from "./game_view.js";
import {Motion} from "./motion.js";
import {Pictures} from "./picture.js";
import {attachPointer} from "./pointer.js";
import {Queue} from "./queue.js";
import {FIRST_WELLS, Maps, riversLayout, riversScene} from "./rivers.js";
import {neat} from "./scene.js";
import {drawScene} from "./scene_canvas.js";
import {createStore, initialState} from "./state.js";
import {curvesSurface, riversSurface} from "./surfaces.js";
import {bindTake, command} from "./take.js";
import {startTheme} from "./theme.js";
import {CONDITIONS, decode, encode} from "./url.js";
import {summary} from "./words.js";

const SETTLE_MS = 160;      // after a change of points the full picture
const RIVER_SIDE = 128;     // where a file does not say the size of its images
const FIRST = {model: "mnp-rbf", points: [{x: -1.4, y: -0.6}, {x: -0.5, y: 0.9}, {x: 0.3, y: 0.2}]};
const ASKED = ["model", "points", "wells", "seed", "condition", "view"]; // what a picture is computed from

const store = createStore(initialState());
const s = store.state;

/** What the parts of the page share. */
const app = {
    store,
    state: s,
    engine: null,
    queue: null,
    models: [],             // objects of the protocol
    own: new Set(),         // names of models from the person's disk
    model: null,            // the chosen one
    limits: null,           // {x: [lo, hi], y: [lo, hi]}
    brush: -1,              // the value of new wells
    calm: matchMedia("(prefers-reduced-motion: reduce)"),
    pictures: null, maps: null, motion: null, chain: null, game: null, curves: null, rivers: null,
    redraw, scene, size, choose, shortcut, drag, layout: currentLayout,
    guess: (y) => app.game.next(y),
    flipBrush: () => setBrush(-app.brush),
};
let dragging = false;
let settle = 0;
let frameAsked = false;

/* ---- the picture --------------------------------------------------------------------------------- */

function size() {
    const r = $("plot").getBoundingClientRect();
    return [Math.max(r.width, 200), Math.max(r.height, 200)];
}

function currentLayout() {
    const [w, h] = size();
    return app.model.rivers ? riversLayout(w, h, s.layer) : layout(w, h, app.limits);
}

/** The scene of what is chosen. @param {boolean} forFile without marks of the keyboard */
function scene(forFile = false) {
    const {model, pictures, game} = app;
    const focused = !forFile && $("plot").matches(":focus-visible");
    const chosen = forFile ? -1 : s.chosen;
    const l = currentLayout();
    if (model.rivers)
        return riversScene({layout: l, model, layer: s.layer, map: app.maps.map, wells: s.wells, chosen, colour: palette(), focused, cursor: app.rivers.cursor()});
    if (s.view === "chain") return app.chain.chain ? chainScene({layout: l, model, chain: app.chain.chain, step: s.step ?? model.steps}) : [];
    return curvesScene({layout: l, model, show: s.show, points: s.points, chosen, picture: forFile ? pictures.picture : pictures.now(),
                        truth: s.truth ? pictures.truth : null, moving: s.moving ? app.motion.lines : null,
                        hidden: s.game && game.hidden && {...game.hidden, revealed: s.game.revealed}, asked: game.asked, guessed: game.guessed,
                        density: pictures.density, at: s.at, atY: s.atY, focused});
}

function redraw() {
    if (frameAsked || !app.model) return;
    frameAsked = true;
    requestAnimationFrame(() => {
        frameAsked = false;
        const [w, h] = size();
        drawScene($("canvas"), scene(), w, h, palette(), Math.min(devicePixelRatio || 1, 3));
        if (app.pictures.turning) redraw();
    });
}

function refresh(coarse) {
    if (app.model.rivers) app.maps.refresh(coarse);
    else if (s.view === "chain") coarse || app.chain.refresh();
    else app.pictures.refresh(coarse);
    if (app.motion.on) app.motion.restart();
}

/* Coarse at once, fine when nothing has moved for a moment. */
function refreshSoon() {
    refresh(true);
    clearTimeout(settle);
    settle = setTimeout(() => refresh(false), SETTLE_MS);
}

/** A point is taken or let go: heights hold still in between. */
function drag(on) {
    dragging = on;
    if (on) return;
    app.limits = limitsOf(app.model, s.points);
    clearTimeout(settle);
    refresh(false);
}

function setMotion() {
    const {model, motion} = app;
    const on = s.moving && s.condition === "network" && !model.rivers && model.latents > 0 && s.view === "functions" && !document.hidden;
    if (on) motion.start();
    else if (motion.on) motion.stop();
    redraw();
}

/* ---- models -------------------------------------------------------------------------------------- */

const usable = (m) => m.inputs.length === 1 || m.rivers;

/* Heights that functions of a model reach: from its file, or else from its prior. */
async function knowHeights(m) {
    if (m.rivers || (Number.isFinite(m.output.lo) && Number.isFinite(m.output.hi))) return;
    const reply = await app.queue.ask("other", "predict", {model: m.name, grid: [...trainedRange(m), 25], samples: 24, condition: "network", quantiles: [0.025, 0.975]});
    if (!reply) return;
    const [low, high] = reply.quantiles.values;
    m.output = {...m.output, lo: Math.min(...low), hi: Math.max(...high)};
}

/* Why a model cannot be shown; "" where it can. */
function refusal(name, m) {
    if (!m) return `There is no model "${name}" here: if it is your own file, open it under “Your own”.`;
    return usable(m) ? "" : `${name} has ${m.inputs.length} inputs: this page shows functions of one input, and maps of rivers.`;
}

let choosing = 0; // counts choices: the last one is shown

async function choose(name) {
    const {model} = app, mine = ++choosing;
    const next = app.models.find((m) => m.name === name);
    try {
        if (refusal(name, next)) throw new Error(refusal(name, next));
        await knowHeights(next);
    } catch (error) {
        showError(error);
        return;
    }
    if (mine !== choosing) return;
    const other = model && (model.rivers !== next.rivers || model.inputs[0].lo !== next.inputs[0].lo || model.inputs[0].hi !== next.inputs[0].hi);
    const patch = {model: name, chosen: -1, game: null, view: next.steps > 0 ? s.view : "functions"};
    if (s.game || (other && !next.rivers)) patch.points = [];
    if (next.rivers && !s.wells.length) patch.wells = FIRST_WELLS;
    showError(null);
    store.set(patch, "model");
}

function modelChanged() {
    const model = app.model = app.models.find((m) => m.name === s.model);
    app.queue.drop();
    app.pictures.clear();
    app.maps.clear();
    app.chain.clear();
    app.limits = limitsOf(model, s.points);
    const [lo, hi] = app.limits.x;
    if (s.at === null || s.at < lo || s.at > hi) s.at = neat(lo + 0.7 * (hi - lo), hi - lo);
    showCards(app.models, s.model, choose);
    showAbilities(model, (patch) => store.set(patch));
    showFamily(model);
    $("plot").setAttribute("aria-label", model.rivers ? "Map of a river. Arrow keys move the cursor, Enter adds a well."
                                                      : "Plot of functions. Arrow keys move the cursor, Enter adds a point.");
}

/* ---- what follows a change ----------------------------------------------------------------------- */

function changed(_, names, why) {
    const has = (...list) => list.some((n) => names.has(n));
    if (has("model")) modelChanged();
    if (has("points") && !dragging) app.limits = limitsOf(app.model, s.points);
    if (has("view") && s.view === "chain") app.chain.enter();
    if (has("view") && s.view !== "chain") app.chain.pause();
    if (has("game", "points")) app.game.update();
    if (has("model", "points", "wells")) refreshSoon();
    else if (has(...ASKED)) refresh(false);
    else if (has("truth")) app.pictures.refreshTruth();
    else if (has("at")) app.pictures.refreshCursor();
    if (has("moving", "condition", "view", "model")) setMotion();
    showState(s, app.model);
    showTexts();
    if (why === "add" || why === "drag") closeHint();
    keepAddress();
    redraw();
}

function showTexts() {
    const {model, pictures} = app;
    const report = model.rivers ? app.maps.map : pictures.picture?.report;
    showReading(pictures.reading, model);
    showReport(model.rivers ? null : report, s.points.length);
    showNotices(model, s, report?.warnings);
    $("command").textContent = command(app);
    sayLater();
}

let sayTimer = 0;
function sayLater() {
    clearTimeout(sayTimer);
    sayTimer = setTimeout(() => {
        const text = app.model.rivers ? `River map given ${s.wells.length} wells, layer ${s.layer}.` : summary(app.model, s, app.pictures.reading);
        if ($("summary").textContent !== text) $("summary").textContent = text;
    }, 500);
}

let addressTimer = 0;
let address = "";
function keepAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
        address = `#${encode(s)}`;
        history.replaceState(null, "", address);
    }, 250);
}

/* ---- controls ------------------------------------------------------------------------------------ */

/** Keys of one letter on the plot. @returns {boolean} whether it is one */
function shortcut(key) {
    const {model} = app;
    const does = {
        undo: () => store.undo(), u: () => store.undo(), m: () => $("moving").click(), t: () => $("truth").click(), n: () => $("reseed").click(),
        c: () => model.steps > 0 && !model.rivers && store.set({view: s.view === "chain" ? "functions" : "chain"}), "?": () => $("keys").showModal(),
    };
    if (CONDITIONS[Number(key) - 1] && !model.rivers) store.set({condition: CONDITIONS[Number(key) - 1]});
    else if (Object.hasOwn(does, key)) does[key]();
    else return false;
    return true;
}

function setBrush(value) {
    app.brush = value;
    mark($("brush"), String(value));
}

function clearAll() {
    if (app.model.rivers) store.set({wells: [], chosen: -1});
    else if (s.game) app.game.end();
    else store.set({points: [], chosen: -1});
}

function bind() {
    const on = (id, f) => $(id).addEventListener("click", f);
    const onChange = (id, f) => $(id).addEventListener("change", f);
    for (const l of ["bands", "draws", "mean"]) onChange(`show-${l}`, (e) => store.set({show: {...s.show, [l]: e.target.checked}}));
    onChange("truth", (e) => store.set({truth: e.target.checked}));
    onChange("moving", (e) => store.set({moving: e.target.checked}));
    on("reseed", () => store.set({seed: (s.seed + 101) % 2 ** 31}));
    on("undo", () => store.undo());
    on("clear", clearAll);
    on("cancel", () => {
        app.queue.drop("file");
        (app.model.rivers ? app.maps : app.pictures).stop();
    });
    on("hint-close", closeHint);
    $("hint").addEventListener("pointerdown", (e) => e.stopPropagation());
    for (const id of ["file-points", "file-model"])
        onChange(id, async (e) => {
            await openFiles(app, [...e.target.files]);
            e.target.value = "";
        });
    segments($("brush"), [{value: "-1", title: "River"}, {value: "1", title: "Land"}], (v) => setBrush(Number(v)));
    setBrush(-1);
    bindTake(app);
    bindWindow();
}

function bindWindow() {
    addEventListener("dragover", (e) => {
        e.preventDefault();
        $("drop").hidden = false;
    });
    addEventListener("dragleave", (e) => {
        if (!e.relatedTarget) $("drop").hidden = true;
    });
    addEventListener("drop", (e) => {
        e.preventDefault();
        $("drop").hidden = true;
        openFiles(app, [...e.dataTransfer.files]);
    });
    addEventListener("hashchange", () => {
        const link = location.hash.includes("="); /* "Go to the plot" is none */
        if (link && location.hash !== address) restore(location.hash).catch(showError);
    });
    document.addEventListener("visibilitychange", setMotion);
    $("plot").addEventListener("focus", redraw);
    $("plot").addEventListener("blur", redraw);
    new ResizeObserver(redraw).observe($("plot"));
}

/* The first visit has a hint, unless it follows a link to a picture; it goes with the first point. */
function showHint() {
    try {
        $("hint").hidden = localStorage.getItem("mnp-hint") === "seen";
    } catch {
        $("hint").hidden = false;
    }
}

function closeHint() {
    if ($("hint").hidden) return;
    $("hint").hidden = true;
    try {
        localStorage.setItem("mnp-hint", "seen");
    } catch {
        /* shown again next time */
    }
}

/* ---- start --------------------------------------------------------------------------------------- */

/** @param {boolean} again a key was refused @returns {Promise<string|null>} null: the person gave up */
function askKey(again) {
    const dialog = $("key-ask");
    if (again) $("key-text").textContent = "The server does not know this key. Try another.";
    dialog.returnValue = "";
    dialog.showModal();
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? $("key-value").value.trim() : null), {once: true});
    });
}

/** The state that a link names; without one, the first picture. */
async function restore(hash) {
    const {game, ...wanted} = decode(hash);
    const first = app.models.find((m) => m.name === FIRST.model) ?? app.models.find(usable);
    if (!first) throw new Error("There is no model of functions here: start the server as in `mnp serve models/mnp-rbf.safetensors`.");
    const named = app.models.find((m) => m.name === wanted.model);
    const why = wanted.model ? refusal(wanted.model, named) : "";
    if (why) showError(new Error(why));
    const model = wanted.model && !why ? named : first;
    const start = {...initialState(), ...(wanted.model || first.name !== FIRST.model ? {} : {points: FIRST.points}), ...wanted, model: model.name, game: null};
    if (model.rivers && !wanted.wells) start.wells = FIRST_WELLS;
    if (!(model.steps > 0)) start.view = "functions";
    if (app.calm.matches) start.moving = false;
    await knowHeights(model);
    store.set(start, "link");
    if (!game || model.rivers || !(await app.game.start(game.seed, start))) return;
    if (game.revealed) app.game.reveal();
}

function createParts() {
    const view = () => app;
    const hooks = {changed: () => { showTexts(); redraw(); }, failed: showError, progress: showProgress, calm: () => app.calm.matches};
    app.queue = new Queue(app.engine);
    app.pictures = new Pictures(app.queue, view, hooks);
    app.maps = new Maps(app.queue, view, hooks);
    app.motion = new Motion(app.queue, view, redraw, showError);
    app.chain = new ChainView(app);
    app.game = new GameView(app);
    app.curves = curvesSurface(app);
    app.rivers = riversSurface(app);
}

function showEngine(version) {
    const server = app.engine.kind === "server";
    $("engine").textContent = server ? `computed by mnp serve ${version}` : `computed in this browser, mnp ${version}`;
    $("where").textContent = server ? "this server" : "this browser";
    $("open-model").hidden = server;
    if (server) $("files-text").textContent = "You may also drop a file on the page. A model of your own: start the server with it, as in mnp serve FILE.";
}

async function start() {
    for (const id of ["keys", "about"]) $(`${id}-open`).addEventListener("click", () => $(id).showModal());
    startTheme($("theme"), redraw);
    app.engine = await openEngine(askKey);
    const {version, models} = await app.engine.models();
    app.models = models.map((m) => (m.rivers ? {...m, rows: m.rows ?? RIVER_SIDE, cols: m.cols ?? RIVER_SIDE} : m));
    createParts();
    showEngine(version ?? "");
    store.watch(changed);
    const linked = location.hash.length > 1;
    await restore(location.hash);
    bind();
    attachPointer($("plot"), () => (app.model.rivers ? app.rivers : app.curves));
    if (!linked) showHint();
}

start().catch((error) => {
    $("engine").textContent = "not running";
    showError(error);
});
