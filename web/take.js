/* take.js: what a person takes away: a picture, the numbers, a link, a command (export.js writes them). */
import {$, showError, showProgress} from "./controls.js";
import {palette} from "./colours.js";
import {CSV_LEVELS, fileOf, imageUrl, mapCommand, mapCsv, predictCommand, predictionCsv, saveBlob} from "./export.js";
import {contextOf, READ_SAMPLES} from "./picture.js";
import {FULL, mapRequest} from "./rivers.js";
import {drawScene} from "./scene_canvas.js";
import {sceneToSvg} from "./scene_svg.js";
import {encode} from "./url.js";
import {familyOf} from "./words.js";

const PLACES = 200;
const COPIED_MS = 1600;

/** The command whose numbers the CSV file has. */
export function command({state, model, limits, own}) {
    const file = fileOf(state.model, !own.has(state.model) && familyOf(model) !== "");
    if (model.rivers) return mapCommand({file, wells: state.wells, rows: model.rows, cols: model.cols, samples: FULL.samples, seed: state.seed});
    return predictCommand({file, input: model.inputs[0].name, output: model.output.name, points: state.points, grid: [...limits.x, PLACES],
                           condition: state.condition, seed: state.seed});
}

/* With refine and exact this takes as long as the command: the bar shows it, and can stop it. */
async function csv({state, model, limits, maps, queue}) {
    const onProgress = (done, total) => showProgress({done, total, text: "numbers of the CSV file"});
    if (model.rivers && maps.map?.full) return mapCsv(maps.map);
    onProgress(0, 1);
    try {
        if (model.rivers) {
            const map = await queue.ask("file", "map", mapRequest(model, state.wells, state.seed, FULL), {onProgress});
            return map && mapCsv(map);
        }
        const reply = await queue.ask("file", "predict", {model: state.model, context: contextOf(state.points), grid: [...limits.x, PLACES], samples: READ_SAMPLES,
                                                          seed: state.seed, condition: state.condition, quantiles: CSV_LEVELS}, {onProgress});
        return reply && predictionCsv(reply, model.inputs[0].name);
    } finally {
        showProgress(null);
    }
}

async function save(app, kind) {
    const name = `${app.state.model}.${kind}`;
    const [w, h] = app.size();
    if (kind === "svg") saveBlob(new Blob([sceneToSvg(app.scene(true), w, h, palette(), imageUrl)], {type: "image/svg+xml"}), name);
    else if (kind === "png") {
        const canvas = document.createElement("canvas");
        drawScene(canvas, app.scene(true), w, h, palette(), 2);
        canvas.toBlob((blob) => saveBlob(blob, name), "image/png");
    } else {
        const text = await csv(app);
        if (text) saveBlob(new Blob([text], {type: "text/csv"}), name);
    }
}

async function copy(text, button) {
    const before = button.textContent;
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
    } catch {
        button.textContent = "Not allowed here";
    }
    setTimeout(() => { button.textContent = before; }, COPIED_MS);
}

/** @param {object} app of main.js */
export function bindTake(app) {
    for (const kind of ["png", "svg", "csv"]) $(`save-${kind}`).addEventListener("click", () => save(app, kind).catch(showError));
    $("copy-link").addEventListener("click", (e) => copy(`${location.href.split("#")[0]}#${encode(app.state)}`, e.target));
    $("copy-command").addEventListener("click", (e) => copy(command(app), e.target));
}
