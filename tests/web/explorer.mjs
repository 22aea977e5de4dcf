/* explorer.mjs: the explorer's page in Chromium, from a static folder or from `mnp serve`, and the command that
 * its numbers are held against. scripts/web_test.sh names the folder of the page (PAGE). */
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {createInterface} from "node:readline";

import {serve} from "./browser.mjs";
import {Browser, needChromium} from "./chromium.mjs";

export const PAGE = resolve(process.env.PAGE ?? "build/web");
export const MNP = resolve(PAGE, "../mnp");
export const LOGS = join(PAGE, "test-logs");
export const scratch = mkdtempSync(join(tmpdir(), "mnp-page-"));
process.on("exit", () => rmSync(scratch, {recursive: true, force: true}));
mkdirSync(LOGS, {recursive: true});

export async function startBrowser() {
    needChromium();
    return Browser.start();
}

/* ---- where the page comes from ------------------------------------------------------------------- */

/* As strict as mnp serve (serve/http_reply.c): the page must do with it wherever it lies. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The static folder, below a path as most hosts have it. */
export async function staticSite(folder = PAGE) {
    return {
        ...await serve(folder, "/explorer/", {"Content-Security-Policy": POLICY}),
        name: "static",
        file: (model) => join(folder, "models", `${model}.safetensors`),
        models: async () => JSON.parse(readFileSync(join(folder, "models.json"))).models,
    };
}

/** `mnp serve` on a free port. @param {string[]} args @param {string} key that callers must send */
export async function serveSite(args = [], key = "") {
    const env = {...process.env, ...(key ? {MNP_SERVE_KEY: key} : {})};
    const child = spawn(MNP, ["serve", "--port", "0", "--json", "--quiet", ...args], {stdio: ["ignore", "pipe", "pipe"], env});
    let said = "";
    child.stderr.on("data", (text) => { said += text; });
    const line = await new Promise((take, fail) => {
        createInterface({input: child.stdout}).once("line", take);
        child.once("exit", () => fail(new Error(`mnp serve ended: ${said}`)));
    });
    const url = JSON.parse(line).url.replace(/\/?$/, "/");
    return {
        name: "serve", url,
        file: (model) => `models/${model}.safetensors`,
        models: async () => (await (await fetch(`${url}v1/models`, {headers: key ? {Authorization: `Bearer ${key}`} : {}})).json()).models,
        close: () => child.kill("SIGTERM"),
    };
}

/* ---- the command --------------------------------------------------------------------------------- */

/** The rows of a CSV text: its header and its numbers. */
export function table(text) {
    const [header, ...rows] = text.trim().split("\n").map((line) => line.split(","));
    return {header, rows: rows.map((row) => row.map(Number))};
}

export function mnp(...args) {
    const {status, stdout, stderr} = spawnSync(MNP, args, {encoding: "utf8"});
    assert.equal(status, 0, `mnp ${args.join(" ")}: ${stderr}`);
    return stdout;
}

/** A file with these rows. @returns {string} its path */
export function csvFile(name, header, rows) {
    const path = join(scratch, name);
    writeFileSync(path, [header, ...rows.map((row) => row.join(","))].join("\n") + "\n");
    return path;
}

/** Equal to five significant digits; of numbers near 0, to five digits after the point. */
export function sameDigits(got, want, what) {
    const off = Math.abs(got - want) / Math.max(1, Math.abs(want));
    assert.ok(off <= 1e-5, `${what} is ${got}, by the command ${want}`);
}

/* ---- the page ------------------------------------------------------------------------------------ */

/** What a request without a key logs. */
const EXPECTED = /Failed to load resource: .* 401 .*\/v1\/models/;

/* Numbers beside an axis stand this much below their line: a third of their size. */
export const TEXT_DROP = 4.2;

export class Explorer {
    /** @param {string} hash of the address: "model=mnp-rbf&points=0,1" */
    static async open(browser, site, hash = "", options = {}) {
        const e = new Explorer();
        Object.assign(e, {site, hash});
        e.page = await browser.open(`${site.url}${hash ? `#${hash}` : ""}`, options);
        if (options.started !== false) await e.started();
        return e;
    }

    async started() {
        await this.page.until("/^computed/.test(document.getElementById('engine')?.textContent)", "an engine");
        await this.page.until("document.querySelector('[data-testid^=card-]') !== null", "the models");
        this.models = await this.site.models();
    }

    /** The page is closed; nothing was red in its console. */
    async close() {
        const {page} = this;
        assert.equal(await page.evaluate("document.getElementById('error').hidden"), true, await page.text("#error"));
        this.quiet();
        await page.close();
    }

    quiet() {
        assert.deepEqual(this.page.troubles.filter((t) => !EXPECTED.test(t)), []);
    }

    shot(name) {
        return this.page.screenshot(join(LOGS, `${this.site.name}-${name}.png`));
    }

    /* ---- reading ---- */

    hidden(id) {
        return this.page.evaluate(`document.getElementById("${id}").checkVisibility() === false`);
    }

    /** What the address says once it rests. */
    async address() {
        await this.page.evaluate("new Promise((resolve) => setTimeout(resolve, 400))");
        return this.page.evaluate("location.hash.slice(1)");
    }

    async model() {
        const name = await this.page.evaluate("(document.querySelector('.card[aria-pressed=true]').dataset.testid).slice(5)");
        return this.models.find((m) => m.name === name) ?? {name, inputs: [{}], output: {}};
    }

    /** The rows that the command shown on the page would write: [x, y], or [row, col, value]. */
    async points() {
        const text = await this.page.text("#command");
        const rows = /^printf '%s\\n' \S+ (.*) > /.exec(text)?.[1] ?? "";
        return rows ? rows.split(" ").map((row) => row.split(",").map(Number)) : [];
    }

    async commandOption(name) {
        return new RegExp(`--${name}[= ]([^ \\n]+)`).exec(await this.page.text("#command"))[1];
    }

    /** {x, mean, sd, lo, hi} at the cursor: all digits. */
    reading() {
        return this.page.evaluate(`Object.fromEntries(["x", "mean", "sd", "lo", "hi"].map((k) => [k, parseFloat(document.getElementById("reading-" + k).dataset.value)]))`);
    }

    /** {name: text} of the report on how functions were drawn. */
    report() {
        return this.page.evaluate(`Object.fromEntries([...document.querySelectorAll("#report > div")].map((d) =>
            [d.querySelector("dt").textContent, [...d.querySelectorAll("dd")].map((x) => x.textContent).join(" | ")]))`);
    }

    /** What `mnp predict` says at the cursor, given the points on the page. */
    async wanted(x) {
        const model = await this.model();
        const points = await this.points();
        const names = [model.inputs[0].name ?? "x", model.output.name ?? "y"];
        const args = ["predict", this.ownFile ?? this.site.file(model.name), "--at", csvFile("at.csv", names[0], [[x]]), "--quantiles", "0.025,0.975", "--samples", "200",
                      "--condition", "network", "--seed", await this.commandOption("seed"), "--quiet", "--threads", "1"];
        if (points.length) args.push("--context", csvFile("context.csv", names.join(), points));
        const {header, rows} = table(mnp(...args));
        const of = (name) => rows[0][header.indexOf(name)];
        return {x, mean: of("mean"), sd: of("sd"), lo: of("q0.025"), hi: of("q0.975")};
    }

    /** Waits until the numbers at the cursor are those of the command. @returns {object} them */
    async agrees() {
        let got = null, want = null;
        const differs = () => Object.keys(want).find((k) => !(Math.abs(got[k] - want[k]) <= 1e-5 * Math.max(1, Math.abs(want[k]))));
        await this.page.untilSo(async () => {
            got = await this.reading();
            if (!Number.isFinite(got.x)) return false;
            if (want?.x !== got.x) want = await this.wanted(got.x);
            return differs() === undefined;
        }, () => `the page says ${JSON.stringify(got)}, the command ${JSON.stringify(want)}`);
        return got;
    }

    /** Waits for the full picture of the network. */
    async whole() {
        const reading = await this.agrees();
        await this.page.until(`document.querySelector("[data-testid=report-prior]") !== null ||
            parseInt(document.querySelector("[data-testid=report-functions] dd")?.textContent) >= 50`, "the full picture");
        return reading;
    }

    /* ---- doing ---- */

    /** The axes as a person reads them: of each, two numbers and where they stand. They change with the model, the points, the window. */
    async axes() {
        const key = await this.page.evaluate("[document.getElementById('command').textContent, document.getElementById('canvas').clientWidth].join()");
        if (this.known?.key !== key) this.known = {key, axes: await this.readAxes()};
        return this.known.axes;
    }

    async readAxes() {
        const {bytes} = await this.page.download(() => this.page.evaluate("document.getElementById('save-svg').click()"));
        const ticks = [...bytes.toString().matchAll(/<text x="([-\d.]+)" y="([-\d.]+)" [^>]*text-anchor="(middle|end)">([−\d.e]+)<\/text>/g)]
            .map(([, x, y, anchor, text]) => ({x: Number(x), y: Number(y), anchor, value: Number(text.replace("−", "-"))}));
        const ends = (anchor) => ticks.filter((t) => t.anchor === anchor && Number.isFinite(t.value)).filter((_, i, list) => i === 0 || i === list.length - 1);
        return {x: ends("middle"), y: ends("end")};
    }

    /** Where the plot is, scrolled into view where it is not. */
    plot() {
        return this.page.evaluate(`(() => {
            const plot = document.getElementById("plot"), seen = plot.getBoundingClientRect();
            if (seen.top < 0 || seen.bottom > innerHeight) plot.scrollIntoView({block: "center", behavior: "instant"});
            const {left, top, width, height} = plot.getBoundingClientRect();
            return {left, top, width, height};
        })()`);
    }

    /** The pixel of a place of the plot. */
    async at(x, y) {
        const axes = await this.axes();
        const r = await this.plot();
        const on = ([a, b], value, key) => a[key] + ((value - a.value) / (b.value - a.value)) * (b[key] - a[key]);
        return {x: r.left + on(axes.x, x, "x"), y: r.top + on(axes.y, y, "y") - TEXT_DROP};
    }

    /** Moves the cursor to an input. @returns {Promise<object>} the numbers there */
    async read(x) {
        await this.page.hover(await this.at(x, 0));
        await this.page.untilSo(async () => Math.abs((await this.reading()).x - x) < 0.03, `the cursor at ${x}`);
        return this.agrees();
    }

    async add(x, y) {
        const before = (await this.points()).length;
        await this.page.click(await this.at(x, y));
        await this.page.untilSo(async () => (await this.points()).length === before + 1, "one point more");
    }

    async drag(from, to) {
        await this.page.drag(await this.at(...from), await this.at(...to));
    }

    async remove(x, y) {
        const before = (await this.points()).length;
        if (this.page.touch) await this.page.longPress(await this.at(x, y));
        else await this.page.doubleClick(await this.at(x, y));
        await this.page.untilSo(async () => (await this.points()).length === before - 1, "one point less");
    }

    async chooseModel(name) {
        await this.page.click(`[data-testid=card-${name}]`);
        await this.page.until(`document.querySelector("[data-testid=card-${name}]").getAttribute("aria-pressed") === "true"`);
    }

    /** Colours of the picture, [r, g, b], at a place and 2 pixels above and below it; the page draws in frames. */
    async colours(x, y) {
        const {x: px, y: py} = await this.at(x, y);
        return this.page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
            const c = document.getElementById("canvas"), r = c.getBoundingClientRect(), k = c.width / r.width;
            const {data} = c.getContext("2d").getImageData(Math.round((${px} - r.left) * k), Math.round((${py} - r.top) * k) - 2, 1, 5);
            resolve([0, 1, 2, 3, 4].map((i) => [...data.slice(4 * i, 4 * i + 3)]));
        })))`);
    }
}
