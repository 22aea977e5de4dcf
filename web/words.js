/* words.js: what the page says about models and about how functions were drawn. */
import {label} from "./scene.js";

/** Families: a title, one sentence, and a small drawing: y in [0, 1] (down) over x in [0, 1]. */
export const FAMILIES = {
    rbf: {title: "Smooth", text: "Samples of a Gaussian process with a squared-exponential kernel: smooth hills and valleys.",
          shape: (x) => 0.5 + 0.3 * Math.sin(7 * x + 0.6) * Math.cos(2.2 * x)},
    matern: {title: "Rough", text: "A Gaussian process with a Matérn 5/2 kernel: continuous, with more small turns.",
             shape: (x) => 0.5 + 0.2 * Math.sin(6 * x) + 0.1 * Math.sin(19 * x + 1) + 0.04 * Math.sin(47 * x)},
    periodic: {title: "Periodic", text: "A Gaussian process with a periodic kernel: a shape that comes back.",
               shape: (x) => 0.5 + 0.22 * Math.sin(19 * x) + 0.12 * Math.cos(38 * x)},
    monotonic: {title: "Rising", text: "Functions that only rise, from −1 at the left end to 1 at the right. A Gaussian process cannot say this.",
                shape: (x) => 0.85 - 0.7 / (1 + Math.exp(-11 * (x - 0.42)))},
    convex: {title: "Convex", text: "Functions that bend upwards everywhere: one valley, no bumps.",
             shape: (x) => 0.82 - 2.6 * (x - 0.42) ** 2 - 0.0 * x},
    sde: {title: "Diffusion", text: "Paths of a stochastic differential equation that lives between −1 and 1: jagged, and never the same twice.",
          shape: (x) => 0.5 + 0.16 * Math.sin(5 * x) + 0.09 * Math.sin(31 * x) + 0.06 * Math.sin(83 * x + 2)},
    rivers: {title: "Rivers", text: "Maps of a buried river, learned from simulated meanders. Wells say river or land at a few places.",
             shape: (x) => 0.5 + 0.3 * Math.sin(9.5 * x)},
};

/** @returns {string} the key of FAMILIES for a model, or "" */
export function familyOf(model) {
    if (model.rivers) return "rivers";
    return Object.hasOwn(FAMILIES, model.data ?? "") ? model.data : "";
}

export const CONDITION_WORDS = {
    network: "The inference network looks at the points once and guesses which functions fit. The quickest way.",
    refine: "Starts from the network's draws and moves each of them towards the model's own conditional, gradient by gradient. The command's usual way.",
    exact: "Particles are led step by step from the network's guess to the exact conditional of one stochastic process. The slowest way, and the most accurate.",
};

const many = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

/**
 * The report of a drawing in plain words.
 * @param {object} r a reply  @param {number} points of the context
 * @returns {{name: string, value: string, text: string}[]}
 */
export function reportWords(r, points) {
    if (!r) return [];
    if (!points) return [{name: "prior", value: "no points", text: "These are functions before any point is known. All three ways of drawing are the same."}];
    const rows = [];
    const add = (name, value, text) => rows.push({name, value, text});
    if (Number.isFinite(r.fit_after)) {
        const gain = r.fit_after - r.fit_before;
        add("fit", label(r.fit_after, 3), Number.isFinite(gain) && gain > 0.05
            ? `log-density of a point given a function, in nats; the network's draws had ${label(r.fit_before, 3)}. Higher is closer to your points.`
            : "log-density of a point given a function, in nats. Higher is closer to your points.");
    }
    if (r.condition !== "network" && Number.isFinite(r.particle_ess))
        add("effective particles", `${label(r.particle_ess, 3)} of ${r.particles}`,
            r.particle_ess < 0.2 * r.particles ? "few of them are independent: take the picture with care." : "independent draws that they are worth.");
    if (Number.isFinite(r.acceptance))
        add("acceptance", `${Math.round(100 * r.acceptance)} %`, r.acceptance < 0.4 ? "few moves were taken: the functions hardly moved." : "share of moves that were taken; near 80 % is usual.");
    if (Number.isFinite(r.rhat))
        add("rhat", label(r.rhat, 4), r.rhat > 1.1 ? "above 1.1: the particles have not settled." : "near 1: the particles have settled.");
    if (Number.isFinite(r.log_evidence))
        add("log evidence", label(r.log_evidence, 4), `log p(points) under the model, in nats${Number.isFinite(r.log_evidence_sd) ? `, ± ${label(r.log_evidence_sd, 2)}` : ""}.`);
    if (Number.isFinite(r.gradients) && r.gradients > 0) add("gradients", String(r.gradients), "of each function.");
    if (r.condition === "network") add("functions", String(r.particles), "drawn for the bands.");
    if (Number.isFinite(r.seconds)) add("time", `${label(r.seconds, 2)} s`, "");
    return rows;
}

/** Sentences on points where the model knows nothing. */
export function pointWarnings(model, points) {
    const out = [];
    const {lo, hi, name} = model.inputs[0];
    const outside = Number.isFinite(lo) && Number.isFinite(hi) ? points.filter((p) => p.x < lo || p.x > hi).length : 0;
    if (outside)
        out.push(`${many(outside, "point")} ${outside === 1 ? "lies" : "lie"} outside ${name} = ${label(lo)} to ${label(hi)}, where the model was trained. What it says there is a guess.`);
    if (model.context_max > 0 && points.length > model.context_max)
        out.push(`You gave ${points.length} points. In training there were at most ${model.context_max}, so the network may not use them well; exact conditioning still does.`);
    return out;
}

/** The picture in one or two sentences, for those who do not see it. */
export function summary(model, state, reading) {
    const n = state.points.length;
    const head = `${model.name}, ${n ? `given ${many(n, "point")}` : "the prior, no points"}, drawn by ${state.condition}.`;
    if (!reading) return head;
    return `${head} At ${model.inputs[0].name} = ${label(reading.x, 3)} the mean is ${label(reading.mean, 3)}, ` +
        `95 % between ${label(reading.lo, 3)} and ${label(reading.hi, 3)}.`;
}
