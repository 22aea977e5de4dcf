/* controls.js: buttons, switches and texts around the picture. They show the state and change it;
 * nothing is computed here. */
import {label} from "./scene.js";
import {CONDITION_WORDS, FAMILIES, familyOf, pointWarnings, reportWords} from "./words.js";
import {LAYERS} from "./rivers.js";
import {CONDITIONS} from "./url.js";

export const $ = (id) => document.getElementById(id);

function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
}

/** A group of buttons of which one is chosen; arrow keys move the choice, as in a radio group. */
export function segments(host, options, choose) {
    host.replaceChildren(...options.map(({value, title}) => {
        const b = element("button", "", title);
        b.type = "button";
        b.setAttribute("role", "radio");
        b.dataset.value = value;
        b.dataset.testid = `${host.id}-${value}`;
        b.addEventListener("click", () => choose(value));
        return b;
    }));
    host.onkeydown = (e) => {
        const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
        if (!step) return;
        const list = [...host.children];
        const next = list[(list.indexOf(document.activeElement) + step + list.length) % list.length];
        next.focus();
        choose(next.dataset.value);
        e.preventDefault();
    };
}

export function mark(host, value) {
    for (const b of host.children) {
        const on = b.dataset.value === value;
        b.setAttribute("aria-checked", String(on));
        b.tabIndex = on ? 0 : -1;
    }
}

function glyph(family) {
    const shape = FAMILIES[family]?.shape ?? ((x) => 0.75 - 0.5 * x);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 38 26");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", Array.from({length: 49}, (_, i) => `${i ? "L" : "M"}${(1 + (36 * i) / 48).toFixed(1)} ${(26 * shape(i / 48)).toFixed(1)}`).join(""));
    svg.append(path);
    return svg;
}

/** Models in the order of the families, one for each; then the others. */
export function arrange(models) {
    const shown = models.filter((m) => m.inputs.length === 1 || m.rivers);
    const first = Object.keys(FAMILIES).map((f) => shown.find((m) => familyOf(m) === f && m.process === "mnp")).filter(Boolean);
    return {first, others: shown.filter((m) => !first.includes(m))};
}

/** Cards of the models. @param {object[]} models @param {(name: string) => void} choose */
export function showCards(models, chosen, choose) {
    const {first, others} = arrange(models);
    const cards = first.map((m) => ({m, title: FAMILIES[familyOf(m)].title}));
    const asCards = others.length <= 2 ? others : others.filter((m) => m.name === chosen);
    cards.push(...asCards.map((m) => ({m, title: m.name})));
    const nodes = cards.map(({m, title}) => {
        const b = element("button", "card");
        b.type = "button";
        b.dataset.testid = `card-${m.name}`;
        b.title = m.name;
        b.setAttribute("aria-pressed", String(m.name === chosen));
        b.append(glyph(familyOf(m)), element("span", "", title));
        b.addEventListener("click", () => choose(m.name));
        return b;
    });
    if (others.length > 2) {
        const select = element("select", "card-more");
        select.setAttribute("aria-label", "Other models");
        select.id = "other-models";
        select.append(new Option("Other models …", ""), ...others.map((m) => new Option(m.name, m.name)));
        select.value = "";
        select.addEventListener("change", () => select.value && choose(select.value));
        nodes.push(select);
    }
    $("cards").replaceChildren(...nodes);
}

export function showFamily(model) {
    const family = FAMILIES[familyOf(model)];
    const {lo, hi, name} = model.inputs[0];
    const range = model.rivers ? `${model.rows} × ${model.cols} pixels` : Number.isFinite(lo) ? `${name} from ${label(lo)} to ${label(hi)}` : "";
    const rest = [model.name, `${model.parameters.toLocaleString("en").replace(/,/g, "\u202f")} parameters`, range].filter(Boolean).join(" · ");
    const text = family?.text ?? `${model.output.name} by ${name}: a model of kind ${model.process}.`;
    $("family-text").replaceChildren(`${text} `, element("span", "model-line", rest));
}

/** Numbers at the cursor: rounded for the eye, whole in data-value. */
export function showReading(reading, model) {
    const put = (id, value, digits) => {
        $(id).textContent = reading ? label(value, digits) : "—";
        $(id).dataset.value = reading ? String(value) : "";
    };
    $("reading-x-name").textContent = model.inputs[0].name;
    put("reading-x", reading?.x, 4);
    put("reading-mean", reading?.mean, 4);
    put("reading-sd", reading?.sd, 3);
    put("reading-lo", reading?.lo, 4);
    put("reading-hi", reading?.hi, 4);
}

export function showReport(report, points) {
    $("report").replaceChildren(...reportWords(report, points).map((r) => {
        const row = element("div");
        row.dataset.testid = `report-${r.name.replace(/ /g, "-")}`;
        row.append(element("dt", "", r.name), element("dd", "", r.value));
        if (r.text) row.append(element("dd", "words", r.text));
        return row;
    }));
}

export function showNotices(model, state, warnings) {
    const texts = model.rivers ? [] : pointWarnings(model, state.points);
    /* The ground outside is grey, and points there have their own sentence. */
    texts.push(...(warnings ?? []).filter((w) => !w.includes("outside the training")));
    $("notices").replaceChildren(...texts.map((t) => element("p", "", t)));
}

export function showProgress(p) {
    $("progress").hidden = !p;
    if (!p) return;
    $("progress-text").textContent = p.text;
    $("progress-value").value = p.total > 0 ? p.done / p.total : 0;
}

let errorTimer = 0;
export function showError(error) {
    clearTimeout(errorTimer);
    $("error").hidden = !error;
    $("error").textContent = error ? error.message ?? String(error) : "";
    if (!error) return;
    errorTimer = setTimeout(() => showError(null), 12000);
}

/** What can be chosen for a model: views, conditions, switches. */
export function showAbilities(model, set) {
    const rivers = model.rivers;
    const latents = model.latents > 0;
    $("plot").classList.toggle("map", rivers);
    const views = [{value: "functions", title: "Functions"}];
    if (model.steps > 0) views.push({value: "chain", title: "Chain"});
    if (rivers) segments($("views"), Object.entries(LAYERS).map(([value, l]) => ({value, title: l.title})), (layer) => set({layer}));
    else segments($("views"), views, (view) => set({view}));
    $("views").hidden = !rivers && views.length < 2;
    segments($("conditions"), CONDITIONS.map((value) => ({value, title: value})), (condition) => set({condition}));
        $("move-label").hidden = rivers || !latents;
    $("move-note").hidden = !latents;
    $("well-bar").hidden = $("panel-map").hidden = !rivers;
    $("file-points-name").textContent = rivers ? "Wells …" : "Points …";
    $("files-points-text").textContent = rivers ? "Wells: a CSV file with the columns row, col (pixels from the top left) and value (below 0: river)."
                                                : `Points: a CSV file with the columns ${[...new Set(["x and y", `${model.inputs[0].name} and ${model.output.name}`])].join(", or ")}.`;
    $("truth").disabled = !model.truth;
    $("truth-text").textContent = model.truth ? "mean and 95 % band of the process that made the training functions" : "not known for these functions";
    $("chain-step").max = String(model.steps);
    $("chain-end").textContent = `f(${model.steps})`;
}

export function showState(s, model) {
    mark($("views"), model.rivers ? s.layer : s.view);
    mark($("conditions"), s.condition);
    $("condition-text").textContent = CONDITION_WORDS[s.condition];
    for (const l of ["bands", "draws", "mean"]) $(`show-${l}`).checked = s.show[l];
    $("truth").checked = s.truth && Boolean(model.truth);
    $("moving").checked = s.moving && s.condition === "network";
    $("moving").disabled = s.condition !== "network" || s.view === "chain";
    $("chain-bar").hidden = model.rivers || s.view !== "chain";
    for (const id of ["panel-reading", "panel-show", "panel-game"]) $(id).hidden = model.rivers || s.view === "chain";
    $("panel-condition").hidden = model.rivers || !(model.latents > 0) || s.view === "chain";
    const n = model.rivers ? s.wells.length : s.points.length;
    $("clear").disabled = n === 0 && !s.game;
    $("layer-text").textContent = LAYERS[s.layer].text;
}
