/* export.js: the picture and its numbers as files, and the command that says the same. */
import {toCsv} from "./csv.js";
import {imageCanvas} from "./scene_canvas.js";

/** Hands a file to the person. @param {Blob} blob */
export function saveBlob(blob, name) {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(blob);
    a.download = name;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

/** The data: address of an image item of a scene. */
export function imageUrl(item) {
    return imageCanvas(item).toDataURL("image/png");
}

/** Quantiles of `mnp predict` as it names its columns. */
export const CSV_LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95];

/** A reply of predict as the table of `mnp predict`. */
export function predictionCsv(reply, input) {
    const names = CSV_LEVELS.map((p) => `q${String(Math.round(100 * p)).padStart(2, "0")}`);
    return toCsv([input, "mean", "sd", ...names], [reply.x, reply.mean, reply.sd, ...reply.quantiles.values]);
}

/** A reply of map as the table of `mnp predict --grid`. */
export function mapCsv(map) {
    const n = map.rows * map.cols;
    const row = Array.from({length: n}, (_, i) => Math.floor(i / map.cols)), col = Array.from({length: n}, (_, i) => i % map.cols);
    return toCsv(["row", "col", "mean", "sd", "p_channel"], [row, col, map.mean.flat(), map.sd.flat(), map.below.flat()]);
}

/* Names come from a stranger's model file: as words of a shell they are quoted. */
const quote = (text) => (/^[\w.,\-/]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
const table = (file, header, rows) => (rows.length ? `printf '%s\\n' ${[header, ...rows].map(quote).join(" ")} > ${file}\n` : "");

/** The model's file as one would type it. @param {boolean} shipped with the command */
export function fileOf(name, shipped) {
    return quote(`${shipped ? "models/" : ""}${name}.safetensors`);
}

/**
 * The command whose numbers the CSV file has.
 * @param {object} c {file, input, output, points, grid: [lo, hi, n], condition, seed}
 */
export function predictCommand(c) {
    const rows = c.points.map((p) => `${p.x},${p.y}`);
    return `${table("points.csv", `${c.input},${c.output}`, rows)}mnp predict ${c.file}${rows.length ? " \\\n  --context points.csv" : ""} \\\n` +
        `  --grid=${c.grid.join(":")} \\\n  --condition ${c.condition} --seed ${c.seed} \\\n  --out forecast.csv`;
}

/** Likewise of a map. @param {object} c {file, wells, rows, cols, samples, seed} */
export function mapCommand(c) {
    const rows = c.wells.map((w) => `${w.row},${w.col},${w.value}`);
    return `${table("wells.csv", "row,col,value", rows)}mnp predict ${c.file}${rows.length ? " \\\n  --context wells.csv" : ""} \\\n` +
        `  --grid ${c.rows}x${c.cols} --samples ${c.samples} \\\n  --condition network --seed ${c.seed} \\\n  --out map`;
}
