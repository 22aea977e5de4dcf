/* files.js: a person's own points, wells and models. A file is a stranger's: what is wrong with it
 * becomes one sentence. */
import {showError} from "./controls.js";
import {readColumns} from "./csv.js";

const TABLE_BYTES = 4e6;
const WELLS = 500;

function openWells(app, text) {
    const {store, model} = app;
    const rows = readColumns(text, ["row", "col", "value"], WELLS).map(([r, c, value]) => [Math.round(r), Math.round(c), value]);
    const wrong = rows.find(([r, c]) => !(r >= 0 && r < model.rows && c >= 0 && c < model.cols));
    if (wrong) throw new Error(`A well at row ${wrong[0]}, column ${wrong[1]} lies outside the map of ${model.rows} × ${model.cols} pixels.`);
    store.set({wells: rows.map(([row, col, value]) => ({row, col, value})), chosen: -1}, "file");
}

function openPoints(app, text) {
    const {store, model} = app;
    const names = [model.inputs[0].name, model.output.name];
    let rows;
    try {
        rows = readColumns(text, ["x", "y"]);
    } catch (error) {
        if (names.join() === "x,y") throw error;
        rows = readColumns(text, names);
    }
    store.set({points: rows.map(([x, y]) => ({x, y})), game: null, chosen: -1}, "file");
}

async function openModel(app, file) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    app.pictures.stop(); /* it would wait for exact conditioning to end */
    const added = await app.engine.load(file.name.replace(/\.safetensors$/, ""), bytes);
    app.own.add(added.name);
    app.models = [...app.models.filter((m) => m.name !== added.name), added];
    app.choose(added.name);
}

/** @param {object} app of main.js @param {FileList|File[]} files */
export async function openFiles(app, files) {
    for (const file of files) {
        try {
            showError(null);
            if (file.name.endsWith(".safetensors")) await openModel(app, file);
            else if (file.size > TABLE_BYTES) throw new Error("it is too large for a table of points: 4 MB at most.");
            else (app.model.rivers ? openWells : openPoints)(app, await file.text());
        } catch (error) {
            showError(new Error(`${file.name}: ${error.message}`));
        }
    }
}
