/* main.js: puts the page together: the state, an engine, pictures, controls. */
import {$, mark, segments, showAbilities, showCards, showError, showFamily, showNotices, showProgress, showReading, showReport, showState} from "./controls.js";
import {chainLimits, chainScene} from "./chain.js";
import {palette} from "./colours.js";
import {readColumns} from "./csv.js";
import {curvesScene, layout, limitsOf, trainedRange} from "./curves.js";
import {openEngine} from "./engine.js";
import {CSV_LEVELS, fileOf, imageUrl, mapCommand, mapCsv, predictCommand, predictionCsv, saveBlob} from "./export.js";
import {hide, nextInput, Score} from "./game.js";
import {Motion} from "./motion.js";
import {contextOf, Pictures, READ_SAMPLES} from "./picture.js";
import {attachPointer} from "./pointer.js";
import {Queue} from "./queue.js";
import {FIRST_WELLS, FULL, mapRequest, Maps, riversLayout, riversScene} from "./rivers.js";
import {interpolate} from "./scene.js";
import {drawScene} from "./scene_canvas.js";
import {sceneToSvg} from "./scene_svg.js";
import {createStore, initialState} from "./state.js";
import {curvesSurface, riversSurface} from "./surfaces.js";
import {startTheme} from "./theme.js";
import {CONDITIONS, decode, encode} from "./url.js";
import {familyOf, summary} from "./words.js";

const SETTLE_MS = 160;      // after a change of points the full picture
const CHAIN_MS = 7000;      // f(0) to f(T)
const CHAIN_SIZE = {samples: 8, places: 120};
const GUESSES = 12;
const EXPORT_PLACES = 200;
const RIVER_SIDE = 128;     // where a file does not say the size of its images
const FIRST = {model: "mnp-rbf", points: [{x: -1.4, y: -0.6}, {x: -0.5, y: 0.9}, {x: 0.3, y: 0.2}]};

const store = createStore(initialState());
const s = store.state;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let engine, queue, pictures, maps, motion, curves, rivers;
let models = [];            // objects of the protocol
const own = new Set();      // names of models from the person's disk
let model = null;           // the chosen one
let limits = null;          // {x: [lo, hi], y: [lo, hi]}
let chain = null;           // {x, path, y}
let score = new Score();
let guessed = null;         // {x, y}: the last guess
let asked = null;           // the input of the game
let brush = -1;
let dragging = false;
let settle = 0;
let drawn = false;          // a frame is asked for

const view = () => ({state: s, model, limits});

/* ---- the picture --------------------------------------------------------------------------------- */

function size() {
    const r = $("plot").getBoundingClientRect();
    return [Math.max(r.width, 200), Math.max(r.height, 200)];
}

function currentLayout() {
    const [w, h] = size();
    return model.rivers ? riversLayout(w, h, s.layer) : layout(w, h, limits);
}

function scene(forFile = false) {
    const focused = !forFile && $("plot").matches(":focus-visible");
    const chosen = forFile ? -1 : s.chosen;
    const l = currentLayout();
    if (model.rivers)
        return riversScene({layout: l, model, layer: s.layer, map: maps.map, wells: s.wells, chosen, colour: palette(), focused, cursor: rivers.cursor()});
    if (s.view === "chain")
        return chain ? chainScene({layout: l, model, chain, step: s.step ?? model.steps}) : [];
    const hidden = pictures.hidden && {...pictures.hidden, revealed: s.game?.revealed};
    return curvesScene({layout: l, model, show: s.show, points: s.points, chosen, picture: forFile ? pictures.picture : pictures.now(), truth: s.truth ? pictures.truth : null,
                        moving: s.moving ? motion.lines : null, hidden, asked, guessed, density: pictures.density, at: s.at, atY: s.atY, focused});
}

function redraw() {
    if (drawn || !model) return;
    drawn = true;
    requestAnimationFrame(() => {
        drawn = false;
        if (!model) return;
        const [w, h] = size();
        drawScene($("canvas"), scene(), w, h, palette(), Math.min(devicePixelRatio || 1, 3));
        if (pictures.turning) redraw();
    });
}

/* ---- asking -------------------------------------------------------------------------------------- */

/* Heights that functions of a model reach: from its file, or else from its prior. */
async function knowHeights(m) {
    if (m.rivers || (Number.isFinite(m.output.lo) && Number.isFinite(m.output.hi))) return;
    const reply = await engine.call("predict", {model: m.name, grid: [...trainedRange(m), 41], samples: 40, condition: "network", quantiles: [0.025, 0.975]});
    const [low, high] = reply.quantiles.values;
    m.output = {...m.output, lo: Math.min(...low), hi: Math.max(...high)};
}

async function refreshChain() {
    try {
        const reply = await queue.ask("picture", "chain", {model: s.model, context: contextOf(s.points), grid: [...limits.x, CHAIN_SIZE.places],
                                                           samples: CHAIN_SIZE.samples, seed: s.seed, condition: "network", noise: true});
        if (!reply || s.view !== "chain") return;
        chain = {x: reply.x, path: reply.path, y: chainLimits(reply.path)};
        redraw();
    } catch (error) {
        showError(error);
    }
}

function refresh(coarse) {
    if (!model) return;
    if (model.rivers) maps.refresh(coarse);
    else if (s.view === "chain") refreshChain();
    else pictures.refresh(coarse);
    if (motion.on) motion.restart();
}

/* Coarse at once, fine when nothing has moved for a moment. */
function refreshSoon() {
    refresh(true);
    clearTimeout(settle);
    settle = setTimeout(() => refresh(false), SETTLE_MS);
}

function setMotion() {
    const on = s.moving && s.condition === "network" && model && !model.rivers && model.latents > 0 && s.view === "functions" && !document.hidden;
    if (on) motion.start();
    else if (motion.on) motion.stop();
    redraw();
}

/* ---- models -------------------------------------------------------------------------------------- */

function usable(m) {
    return m.inputs.length === 1 || m.rivers;
}

/** @returns {boolean} whether there is such a model */
function choose(name) {
    const next = models.find((m) => m.name === name);
    if (!next) {
        showError(new Error(`There is no model "${name}" here: if it is your own file, open it below under “Your own”.`));
        return false;
    }
    if (!usable(next)) {
        showError(new Error(`${name} has ${next.inputs.length} inputs: this page shows functions of one input, and maps of rivers.`));
        return false;
    }
    const other = model && (model.rivers !== next.rivers || model.inputs[0].lo !== next.inputs[0].lo || model.inputs[0].hi !== next.inputs[0].hi);
    const patch = {model: name, chosen: -1, view: next.steps > 0 ? s.view : "functions"};
    if (s.game) patch.game = null;
    if (s.game || (other && !next.rivers)) patch.points = [];
    if (next.rivers && !s.wells.length) patch.wells = FIRST_WELLS;
    knowHeights(next).then(() => store.set(patch, "model"), showError);
    return true;
}

function modelChanged() {
    model = models.find((m) => m.name === s.model);
    queue.drop();
    pictures.clear();
    maps.clear();
    chain = null;
    limits = limitsOf(model, s.points);
    const middle = (limits.x[0] + limits.x[1]) / 2;
    if (s.at === null || s.at < limits.x[0] || s.at > limits.x[1]) s.at = Number((middle + 0.2 * (limits.x[1] - limits.x[0])).toPrecision(3));
    showCards(models, s.model, choose);
    showAbilities(model, (patch) => store.set(patch));
    showFamily(model);
    $("plot").setAttribute("aria-label", model.rivers ? "Map of a river. Arrow keys move the cursor, Enter adds a well."
                                                      : "Plot of functions. Arrow keys move the cursor, Enter adds a point.");
}

/* ---- what follows a change ----------------------------------------------------------------------- */

const ASKED = ["model", "points", "wells", "seed", "condition", "view"];

function changed(_, names, why) {
    if (names.has("model")) modelChanged();
    if (!model) return;
    if (names.has("points") && !dragging) limits = limitsOf(model, s.points);
    if (names.has("view") && s.view === "chain") startChain();
    if (names.has("view") && s.view !== "chain") playing = 0;
    if (names.has("game") || names.has("points")) setAsked();
    const soon = (names.has("points") || names.has("wells")) && !names.has("model");
    if (soon) refreshSoon();
    else if (ASKED.some((n) => names.has(n))) refresh(false);
    else if (names.has("truth")) refreshTruth();
    else if (names.has("at")) pictures.refreshCursor();
    if (["moving", "condition", "view", "model"].some((n) => names.has(n))) setMotion();
    showState(s, model);
    showTexts();
    if (why !== "hover" && (s.points.length || s.wells.length) && (why === "add" || why === "drag")) closeHint();
    keepAddress();
    redraw();
}

async function refreshTruth() {
    try {
        await pictures.refreshTruth({places: EXPORT_PLACES, samples: 1});
        await pictures.refreshCursor();
    } catch (error) {
        showError(error);
    }
    redraw();
}

function showTexts() {
    const report = model.rivers ? maps.map : pictures.picture?.report;
    showReading(pictures.reading, model);
    showReport(model.rivers || !report ? null : report, s.points.length);
    showNotices(model, s, report?.warnings);
    $("command").textContent = command();
    sayLater();
}

let sayTimer = 0;
function sayLater() {
    clearTimeout(sayTimer);
    sayTimer = setTimeout(() => {
        const text = model.rivers ? `River map given ${s.wells.length} wells, layer ${s.layer}.` : summary(model, s, pictures.reading);
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

/* ---- the chain ----------------------------------------------------------------------------------- */

let playing = 0; // counts plays; 0: none
let plays = 0;

function startChain() {
    if (s.step === null) {
        s.step = calm.matches ? model.steps : 0;
        if (!calm.matches) play();
    }
    $("chain-step").value = String(s.step);
}

function play() {
    const mine = playing = ++plays;
    let before = null;
    if ((s.step ?? 0) >= model.steps) store.set({step: 0}, "play");
    const tick = (now) => {
        if (playing !== mine || s.view !== "chain") return;
        if (chain && before !== null) {
            const step = Math.min((s.step ?? 0) + ((now - before) / CHAIN_MS) * model.steps, model.steps);
            $("chain-step").value = String(step);
            store.set({step}, "play");
            if (step >= model.steps) return pause();
        }
        before = now;
        requestAnimationFrame(tick);
    };
    $("chain-play").textContent = "Pause";
    requestAnimationFrame(tick);
}

function pause() {
    playing = 0;
    $("chain-play").textContent = "Play";
}

/* ---- hide and reveal ----------------------------------------------------------------------------- */

function setAsked() {
    const on = s.game && !s.game.revealed && pictures.hidden;
    asked = on ? nextInput(s.game.seed, s.points.length, ...trainedRange(model)) : null;
    if (on) s.at = asked;
    $("game-start").textContent = s.game ? "Hide another" : "Hide a function";
    for (const id of ["game-next", "game-reveal"]) $(id).hidden = !on;
    $("game-end").hidden = !s.game;
    if (!s.game) $("game-text").textContent = "";
}

async function startGame(seed, patch = {points: []}) {
    try {
        const from = models.find((m) => m.name === (patch.model ?? s.model));
        const hidden = await hide(queue, from, trainedRange(from), seed);
        if (!hidden) return;
        score = new Score();
        guessed = null;
        store.set({...patch, game: {seed, revealed: false}, chosen: -1, view: "functions"}, "game");
        pictures.hidden = hidden;
        setAsked();
        $("game-text").textContent = "Click the height where you think the function passes the dashed line.";
        redraw();
    } catch (error) {
        showError(error);
    }
}

function showNext(guess) {
    if (!asked || !pictures.hidden) return;
    const value = Number(interpolate(pictures.hidden.x, pictures.hidden.y, asked).toPrecision(6));
    if (guess !== null && pictures.picture) {
        score.add(guess, value, asked, pictures.picture);
        guessed = {x: asked, y: guess};
    }
    store.set({points: [...s.points, {x: asked, y: value}], atY: null}, "add");
    if (s.points.length >= GUESSES) reveal();
    $("game-text").textContent = score.words();
}

function reveal() {
    store.set({game: {...s.game, revealed: true}}, "game");
    $("game-text").textContent = `${score.words()} The dotted line is the hidden function.`.trim();
}

function endGame() {
    guessed = null;
    pictures.hidden = null;
    store.set({game: null, points: []}, "game");
}

/* ---- files --------------------------------------------------------------------------------------- */

async function openPoints(file) {
    const text = await file.text();
    if (model.rivers) {
        const rows = readColumns(text, ["row", "col", "value"], 500);
        const wrong = rows.find(([r, c]) => !(r >= 0 && r < model.rows && c >= 0 && c < model.cols));
        if (wrong) throw new Error(`A well at row ${wrong[0]}, column ${wrong[1]} lies outside the map of ${model.rows} × ${model.cols} pixels.`);
        store.set({wells: rows.map(([row, col, value]) => ({row: Math.round(row), col: Math.round(col), value})), chosen: -1}, "file");
        return;
    }
    let rows;
    try {
        rows = readColumns(text, ["x", "y"]);
    } catch (error) {
        const names = [model.inputs[0].name, model.output.name];
        if (names.join() === "x,y") throw error;
        rows = readColumns(text, names);
    }
    store.set({points: rows.map(([x, y]) => ({x, y})), game: null, chosen: -1}, "file");
}

async function openModel(file) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const added = await engine.load(file.name.replace(/\.safetensors$/, ""), bytes);
    own.add(added.name);
    models = [...models.filter((m) => m.name !== added.name), added];
    choose(added.name);
}

async function openFiles(files) {
    for (const file of files) {
        try {
            showError(null);
            if (file.name.endsWith(".safetensors")) await openModel(file);
            else if (file.size > 4e6) throw new Error(`${file.name} is too large for a table of points: 4 MB at most.`);
            else await openPoints(file);
        } catch (error) {
            showError(new Error(`${file.name}: ${error.message}`));
        }
    }
}

/* ---- out ----------------------------------------------------------------------------------------- */

function command() {
    const file = fileOf(s.model, !own.has(s.model) && familyOf(model) !== "");
    if (model.rivers)
        return mapCommand({file, wells: s.wells, rows: model.rows, cols: model.cols, samples: FULL.samples, seed: s.seed});
    return predictCommand({file, input: model.inputs[0].name, output: model.output.name, points: s.points, grid: [...limits.x, EXPORT_PLACES],
                           condition: s.condition, seed: s.seed});
}

async function csv() {
    if (model.rivers) {
        const map = maps.map?.full ? maps.map : await queue.ask("other", "map", mapRequest(model, s.wells, s.seed, FULL));
        return map && mapCsv(map);
    }
    const reply = await queue.ask("other", "predict", {model: s.model, context: contextOf(s.points), grid: [...limits.x, EXPORT_PLACES], samples: READ_SAMPLES,
                                                       seed: s.seed, condition: s.condition, quantiles: CSV_LEVELS});
    return reply && predictionCsv(reply, model.inputs[0].name);
}

async function save(kind) {
    const name = `${s.model}.${kind}`;
    const [w, h] = size();
    try {
        if (kind === "svg") saveBlob(new Blob([sceneToSvg(scene(true), w, h, palette(), imageUrl)], {type: "image/svg+xml"}), name);
        else if (kind === "png") {
            const canvas = document.createElement("canvas");
            drawScene(canvas, scene(true), w, h, palette(), 2);
            canvas.toBlob((blob) => saveBlob(blob, name), "image/png");
        } else {
            const text = await csv();
            if (text) saveBlob(new Blob([text], {type: "text/csv"}), name);
        }
    } catch (error) {
        showError(error);
    }
}

async function copy(text, button) {
    const before = button.textContent;
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
    } catch {
        button.textContent = "Copy it from the address bar";
    }
    setTimeout(() => { button.textContent = before; }, 1600);
}

/* ---- controls ------------------------------------------------------------------------------------ */

function shortcut(key) {
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
    brush = value;
    mark($("brush"), String(brush));
}

function bind() {
    const on = (id, f) => $(id).addEventListener("click", f);
    for (const l of ["bands", "draws", "mean"])
        $(`show-${l}`).addEventListener("change", (e) => store.set({show: {...s.show, [l]: e.target.checked}}));
    $("truth").addEventListener("change", (e) => store.set({truth: e.target.checked}));
    $("moving").addEventListener("change", (e) => store.set({moving: e.target.checked}));
    on("reseed", () => store.set({seed: (s.seed + 101) % 2 ** 31}));
    on("undo", () => store.undo());
    on("clear", () => (model.rivers ? store.set({wells: [], chosen: -1}) : s.game ? endGame() : store.set({points: [], chosen: -1})));
    on("cancel", () => (model.rivers ? maps : pictures).stop());
    on("hint-close", closeHint);
    $("hint").addEventListener("pointerdown", (e) => e.stopPropagation());
    on("keys-open", () => $("keys").showModal());
    on("about-open", () => $("about").showModal());
    on("game-start", () => startGame(Math.floor(Math.random() * 2 ** 31)));
    on("game-next", () => showNext(null));
    on("game-reveal", reveal);
    on("game-end", endGame);
    on("chain-play", () => (playing ? pause() : play()));
    $("chain-step").addEventListener("input", (e) => {
        pause();
        store.set({step: Number(e.target.value)});
    });
    for (const kind of ["png", "svg", "csv"]) on(`save-${kind}`, () => save(kind));
    on("copy-link", (e) => copy(`${location.href.split("#")[0]}#${encode(s)}`, e.target));
    on("copy-command", (e) => copy(command(), e.target));
    for (const id of ["file-points", "file-model"])
        $(id).addEventListener("change", async (e) => {
            await openFiles(e.target.files);
            e.target.value = "";
        });
    segments($("brush"), [{value: "-1", title: "River"}, {value: "1", title: "Land"}], (v) => setBrush(Number(v)));
    setBrush(-1);
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
        openFiles(e.dataTransfer.files);
    });
    addEventListener("hashchange", () => {
        if (location.hash !== address) restore(location.hash).catch(showError);
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

function askKey(again) {
    const dialog = $("key-ask");
    $("key-text").classList.toggle("again", again);
    if (again) $("key-text").textContent = "The server does not know this key. Try another.";
    dialog.showModal();
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? $("key-value").value.trim() : null), {once: true});
    });
}

/* ---- start --------------------------------------------------------------------------------------- */

async function restore(hash) {
    const wanted = decode(hash);
    const {game, ...rest} = wanted;
    const first = models.find((m) => m.name === FIRST.model) ?? models.find(usable);
    if (!first) throw new Error("There is no model of functions here: start the server as in `mnp serve models/mnp-rbf.safetensors`.");
    const known = models.some((m) => m.name === rest.model && usable(m));
    if (rest.model && !known) choose(rest.model);
    const start = {...initialState(), ...(rest.model ? {} : {points: first.name === FIRST.model ? FIRST.points : []}), ...rest, model: known ? rest.model : first.name};
    const target = models.find((m) => m.name === start.model);
    if (target.rivers && !rest.wells) start.wells = FIRST_WELLS;
    if (!(target.steps > 0)) start.view = "functions";
    if (start.moving && calm.matches) start.moving = false;
    await knowHeights(target);
    if (game) startGame(game.seed, start).then(() => game.revealed && reveal());
    else store.set({...start, game: null}, "link");
}

async function start() {
    bind();
    engine = await openEngine(askKey);
    queue = new Queue(engine);
    const hooks = {changed: () => { showTexts(); redraw(); }, failed: showError, progress: showProgress, calm: () => calm.matches};
    pictures = new Pictures(queue, view, hooks);
    maps = new Maps(queue, view, hooks);
    motion = new Motion(queue, view, redraw, showError);
    const app = {store, pictures, layout: currentLayout, limits: () => limits, model: () => model, brush: () => brush, shortcut, redraw,
                 flipBrush: () => setBrush(-brush), guess: showNext,
                 drag: (on) => {
                     dragging = on;
                     if (!on) {
                         limits = limitsOf(model, s.points);
                         clearTimeout(settle);
                         refresh(false);
                     }
                 }};
    curves = curvesSurface(app);
    rivers = riversSurface(app);
    attachPointer($("plot"), () => (model?.rivers ? rivers : curves));
    const {version, models: list} = await engine.models();
    models = list.map((m) => (m.rivers ? {...m, rows: m.rows ?? RIVER_SIDE, cols: m.cols ?? RIVER_SIDE} : m));
    $("engine").textContent = engine.kind === "server" ? `computed by mnp serve ${version ?? ""}` : `computed in this browser, mnp ${version ?? ""}`;
    $("where").textContent = engine.kind === "server" ? "this server" : "this browser";
    if (engine.kind === "server") $("files-text").textContent = "You may also drop a file on the page. A model of your own: start the server with it, as in mnp serve FILE.";
    store.watch(changed);
    startTheme($("theme"), redraw);
    const linked = location.hash.length > 1;
    await restore(location.hash);
    if (!linked) showHint();
}

start().catch((error) => {
    $("engine").textContent = "not running";
    showError(error);
});
