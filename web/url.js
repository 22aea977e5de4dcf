/* url.js: what a picture depends on, as the part of the address after '#', and back. A link makes
 * the same picture again. What is not understood is left out: a link is a stranger's text. */

export const CONDITIONS = ["network", "refine", "exact"];
export const VIEWS = ["functions", "chain"];
export const LAYERS = ["mean", "below", "sd", "draws"];
export const LAYERS_SHOWN = ["bands", "draws", "mean"];
const POINTS_MAX = 2000;

const short = (v) => String(Number(v.toPrecision(12))); // times since 1970 have ten
const pairs = (list, of) => list.map((p) => of(p).map(short).join(",")).join(";");

/** @returns {string} without '#' */
export function encode(s) {
    const q = new URLSearchParams();
    q.set("model", s.model);
    if (s.points.length) q.set("points", pairs(s.points, (p) => [p.x, p.y]));
    if (s.wells.length) q.set("wells", pairs(s.wells, (w) => [w.row, w.col, w.value]));
    if (s.seed) q.set("seed", String(s.seed));
    if (s.condition !== "network") q.set("condition", s.condition);
    if (s.view !== "functions") q.set("view", s.view);
    if (s.view === "chain" && s.step !== null) q.set("step", short(s.step));
    if (s.layer !== "mean") q.set("layer", s.layer);
    if (s.at !== null) q.set("at", short(s.at));
    if (s.truth) q.set("truth", "1");
    if (s.moving) q.set("move", "1");
    const hidden = LAYERS_SHOWN.filter((l) => !s.show[l]);
    if (hidden.length) q.set("hide", hidden.join(","));
    if (s.game) q.set("game", `${s.game.seed},${s.game.revealed ? 1 : 0}`);
    return q.toString().replace(/%2C/g, ",").replace(/%3B/g, ";").replace(/%3A/g, ":");
}

/* "a,b;a,b" as lists of `width` finite numbers; those that are not are left out. */
function numbers(text, width) {
    return (text ?? "").split(";").slice(0, POINTS_MAX).map((p) => p.split(",").map((v) => (v.trim() === "" ? NaN : Number(v))))
        .filter((p) => p.length === width && p.every(Number.isFinite));
}

const whole = (text, most) => {
    const v = Number(text);
    return Number.isInteger(v) && v >= 0 && v <= most ? v : null;
};

const finite = (text) => (text !== null && text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : null);

/** @param {string} hash with or without '#'  @returns {object} the fields of the state it names */
export function decode(hash) {
    const q = new URLSearchParams(hash.replace(/^#/, ""));
    const s = {};
    const one = (name, list, field = name) => {
        if (list.includes(q.get(name))) s[field] = q.get(name);
    };
    if (q.get("model")) s.model = q.get("model").slice(0, 200);
    if (q.has("model") || q.has("points")) s.points = numbers(q.get("points"), 2).map(([x, y]) => ({x, y}));
    if (q.has("wells")) s.wells = numbers(q.get("wells"), 3).map(([row, col, value]) => ({row, col, value}));
    one("condition", CONDITIONS);
    one("view", VIEWS);
    one("layer", LAYERS);
    const seed = whole(q.get("seed") ?? "x", 2 ** 32 - 1);
    if (seed !== null) s.seed = seed;
    if (finite(q.get("step")) !== null) s.step = finite(q.get("step"));
    if (finite(q.get("at")) !== null) s.at = finite(q.get("at"));
    if (q.get("truth") === "1") s.truth = true;
    if (q.get("move") === "1") s.moving = true;
    if (q.has("hide")) {
        const hidden = q.get("hide").split(",");
        s.show = Object.fromEntries(LAYERS_SHOWN.map((l) => [l, !hidden.includes(l)]));
    }
    const [game, revealed] = (q.get("game") ?? "").split(",");
    const gameSeed = game ? whole(game, 2 ** 32 - 1) : null;
    if (gameSeed !== null) s.game = {seed: gameSeed, revealed: revealed === "1"};
    return s;
}
