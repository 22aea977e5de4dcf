/* test_page_points.mjs: functions of one input as a person touches them: points added, dragged and removed, ways of
 * drawing, the truth, the chain, the cursor, motion, the game. Numbers are held against `mnp predict`. */
import assert from "node:assert/strict";

import {done, run} from "./check.mjs";
import {sleep} from "./chromium.mjs";
import {Explorer, TEXT_DROP, mnp, csvFile, scratch, serveSite, startBrowser, staticSite} from "./explorer.mjs";

const browser = await startBrowser();
const sites = [await staticSite(), await serveSite()];

async function on(site, hash, test, options) {
    const e = await Explorer.open(browser, site, hash, options);
    await test(e, e.page);
    await e.close();
}

const near = (got, want, off, what) => assert.ok(Math.abs(got - want) <= off, `${what}: ${got}, not ${want} within ${off}`);

const number = (text) => parseFloat(text.replace("−", "-"));

/* What the command says of a way of drawing, given the points on the page. */
async function conditioned(e, way) {
    const context = csvFile("conditioned.csv", "x,y", await e.points());
    return JSON.parse(mnp("predict", e.site.file((await e.model()).name), "--context", context, `--grid=${await e.commandOption("grid")}`, "--samples", "50",
                          "--condition", way, "--seed", "0", "--json", "--quiet", "--out", `${scratch}/conditioned-out.csv`));
}

for (const site of sites) {
    await run(`${site.name}: points are added, dragged, removed, and the numbers follow`, () => on(site, "model=mnp-rbf", async (e, page) => {
        assert.deepEqual(await e.points(), []);
        const prior = await e.whole();
        assert.ok(prior.sd > 0.5, `sd of the prior: ${prior.sd}`);
        await e.add(-1, 0.8);
        const [[x, y]] = await e.points();
        near(x, -1, 0.02, "x of the click");
        near(y, 0.8, 0.03, "y of the click");
        const one = await e.whole();
        near(one.x, x, 1e-9, "the cursor goes to the point");
        near(one.mean, y, 0.25, "the mean passes near the point");
        assert.ok(one.sd < prior.sd / 2, `sd at the point: ${one.sd}`);
        await e.add(1, -0.5);
        await e.whole();
        await e.shot("two-points");
        await e.drag([-1, 0.8], [-0.4, -1.2]);
        const moved = (await e.points())[0];
        near(moved[0], -0.4, 0.03, "x after the drag");
        near(moved[1], -1.2, 0.05, "y after the drag");
        const after = await e.whole();
        near(after.mean, moved[1], 0.3, "the mean follows the point");
        await page.click("#undo");
        assert.deepEqual((await e.points())[0], [x, y]);
        await e.whole();
        await e.remove(x, y);
        assert.equal((await e.points()).length, 1);
        await e.whole();
        await page.click("#clear");
        assert.deepEqual(await e.points(), []);
        await e.read(x);
        const again = await e.whole();
        near(again.sd, prior.sd, 0.3 * prior.sd, "the prior comes back");
    }));

    /* between two near points: the line is a mean of fewer functions than the numbers, which here are nearly the same */
    const close = "points=-1,0.8;0.3,0.3;0.7,-0.2;1,-0.5&at=0.5";
    await run(`${site.name}: the mean is drawn where the numbers say, and can be hidden`, () => on(site, `model=mnp-rbf&${close}`, async (e, page) => {
        const {x, mean} = await e.whole();
        for (const id of ["show-bands", "show-draws"]) await page.click(`#${id}`);
        await e.read(-1.5); // the cursor's line goes elsewhere
        const blue = async (y) => (await e.colours(x, y)).some(([r, , b]) => b - r > 80);
        assert.equal(await blue(mean), true, "the mean is a blue line");
        assert.equal(await blue(mean + 0.4), false);
        await page.click("#show-mean");
        assert.equal(await blue(mean), false, "without it there is only ground");
    }));

    await run(`${site.name}: refine and exact report how they went`, () => on(site, "model=mnp-monotonic&points=-1,-0.6;0.5,0.3&at=0", async (e, page) => {
        await e.whole();
        for (const way of ["refine", "exact"]) {
            const told = await conditioned(e, way);
            await page.click(`[data-testid=conditions-${way}]`);
            await page.untilSo(async () => {
                const {gradients, "log evidence": evidence} = await e.report();
                return gradients?.startsWith(`${told.gradients} `) && (way === "exact") === (evidence !== undefined) && e.hidden("progress");
            }, async () => `${way} with ${told.gradients} gradients: ${JSON.stringify(await e.report())}`);
            const says = await e.report();
            /* chains of many steps, where the last bit of a number may turn a choice */
            near(number(says.fit), told.fit_after, 0.1, `fit of ${way}`);
            near(number(says["effective particles"]), told.particle_ess, 0.2 * told.particles, `effective particles of ${way}`);
            assert.match(says.acceptance, /^\d+ %/);
            if (way === "exact") near(number(says["log evidence"]), told.log_evidence, 0.01 + told.log_evidence_sd, "log evidence");
            assert.equal(await page.evaluate(`document.querySelector("[data-testid=conditions-${way}]").getAttribute("aria-checked")`), "true");
        }
        await e.shot("exact");
        await page.click("[data-testid=conditions-network]");
        await e.whole();
    }));

    await run(`${site.name}: the truth is laid over, and is the process's own`, () => on(site, "model=mnp-rbf&points=-1,0.8;0.4,0.1&at=0.4", async (e, page) => {
        await e.whole();
        for (const id of ["show-bands", "show-draws", "show-mean"]) await page.click(`#${id}`);
        const orange = async (x, y) => (await e.colours(x, y)).some(([r, , b]) => r - b > 60);
        assert.equal(await orange(1.6, 0), false);
        await page.click("#truth");
        assert.equal(await page.evaluate("document.getElementById('truth').checked"), true);
        /* far from its points this Gaussian process is again what it was: of mean 0 and variance 1 */
        await page.untilSo(() => orange(1.6, 0), "the true mean");
        const dashes = [];
        for (let x = 1.5; x < 1.7; x += 0.02) dashes.push(await orange(x, 1.96), await orange(x, -1.96));
        assert.ok(dashes.includes(true), "95 % lie between -1.96 and 1.96");
        assert.equal(await orange(1.6, 1), false);
        assert.match(await e.address(), /truth=1/);
        await e.chooseModel("mnp-monotonic");
        assert.equal(await page.evaluate("document.getElementById('truth').disabled"), true, "no truth is known of rising functions");
    }));

    await run(`${site.name}: the chain goes from noise to a function`, () => on(site, "model=mnp-monotonic&points=0,0", async (e, page) => {
        await page.click("[data-testid=views-chain]");
        await page.until("document.getElementById('chain-step').value > 0", "the chain to play");
        await page.click("#chain-play");
        const steps = (await e.model()).steps;
        const rough = async (step) => {
            await page.evaluate(`(() => { const r = document.getElementById("chain-step"); r.value = "${step}"; r.dispatchEvent(new Event("input", {bubbles: true})); })()`);
            const {bytes} = await page.download(() => page.click("#save-svg"));
            return turns(longestLine(bytes.toString()));
        };
        const first = await rough(0), last = await rough(steps);
        assert.ok(first > 50 && last < first / 2, `turns of the line: ${first} at f(0), ${last} at f(${steps})`);
        await e.shot("chain");
        await page.click("[data-testid=views-functions]");
        await e.whole();
    }));

    await run(`${site.name}: the cursor reads anywhere`, () => on(site, "model=mnp-monotonic&points=-1,-0.6;0.5,0.3", async (e) => {
        await e.whole();
        let before = -Infinity;
        for (const x of [-1.6, -0.2, 1.4]) {
            const {mean, lo, hi} = await e.read(x);
            assert.ok(lo < mean && mean < hi && mean > before, `rising functions: ${mean} after ${before}`);
            before = mean;
            const peak = await densityPeak(e);
            assert.ok(peak > lo && peak < hi, `the density is largest at ${peak}, 95 % lie between ${lo} and ${hi}`);
        }
    }));

    await run(`${site.name}: points outside the trained inputs are flagged`, () => on(site, "model=mnp-rbf&points=2.3,0.5;0,0", async (e, page) => {
        await e.whole();
        await page.until("/1 point lies outside/.test(document.getElementById('notices').textContent)");
        await e.shot("outside");
        await e.remove(2.3, 0.5);
        await e.whole();
        await page.until("!/point lies outside/.test(document.getElementById('notices').textContent)");
    }));

    await run(`${site.name}: a hidden function is guessed and revealed`, () => on(site, "model=mnp-rbf", async (e, page) => {
        await page.click("#game-start");
        await page.until("!document.getElementById('game-reveal').hidden");
        for (let k = 1; k <= 2; k++) {
            await page.click(await e.at(0, 0.2));
            await page.until(`/After ${k} guess/.test(document.getElementById('game-text').textContent)`);
            assert.equal((await e.points()).length, k);
        }
        await page.click("#game-next");
        await page.untilSo(async () => (await e.points()).length === 3, "a third point");
        await page.click("#game-reveal");
        await page.until("/dotted line/.test(document.getElementById('game-text').textContent)");
        const {bytes} = await page.download(() => page.click("#save-svg"));
        assert.match(bytes.toString(), /hidden function/);
        await e.shot("game");
        await page.click("#game-end");
        assert.deepEqual(await e.points(), []);
    }));

    await run(`${site.name}: functions move until they are stopped`, () => on(site, "model=mnp-rbf&points=0,0.5", async (e, page) => {
        await e.whole();
        const still = await resting(page);
        await page.click("#moving");
        await page.untilSo(async () => (await picture(page)) !== still, "another picture");
        const one = await picture(page);
        await page.untilSo(async () => (await picture(page)) !== one, "yet another picture");
        await page.click("#moving");
        await resting(page);
    }));
}

await run("static: a person who asked for less motion gets none unasked", () => on(sites[0], "model=mnp-monotonic&points=0,0&move=1", async (e, page) => {
    await e.whole();
    assert.equal(await page.evaluate("document.getElementById('moving').checked"), false);
    await page.click("[data-testid=views-chain]");
    await page.until("!document.getElementById('chain-bar').checkVisibility || document.getElementById('chain-bar').checkVisibility()");
    assert.equal(Number(await page.evaluate("document.getElementById('chain-step').value")), (await e.model()).steps, "the chain stands at its end");
    assert.equal(await page.text("#chain-play"), "Play");
}, {calm: true}));

/* ---- of pictures --------------------------------------------------------------------------------- */

/* Where the density at the right of the plot is largest, by the axis. */
async function densityPeak(e) {
    const {bytes} = await e.page.download(() => e.page.evaluate("document.getElementById('save-svg').click()"));
    const {x, y: [a, b]} = await e.axes();
    const areas = [...bytes.toString().matchAll(/<path d="([^"]*)Z"/g)].map((m) => m[1].match(/-?\d+(\.\d+)?/g).map(Number));
    const area = areas.find((at) => at.every((v, i) => i % 2 === 1 || v > x[1].x));
    const points = area.map((v, i) => [v, area[i + 1]]).filter((_, i) => i % 2 === 0);
    const [, top] = points.reduce((best, p) => (p[0] > best[0] ? p : best));
    return a.value + ((top - a.y + TEXT_DROP) / (b.y - a.y)) * (b.value - a.value);
}

/* A digest of the canvas. */
function picture(page) {
    return page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const c = document.getElementById("canvas"), {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height);
        let h = 0;
        for (let i = 0; i < data.length; i++) h = (Math.imul(h, 31) + data[i]) | 0;
        resolve(h);
    })))`);
}

/* The same, once it no longer changes. */
async function resting(page) {
    let last = null;
    await page.untilSo(async () => {
        const now = await picture(page);
        const same = now === last;
        last = now;
        await sleep(700);
        return same;
    }, "a picture that rests");
    return last;
}

/* Heights of the line with most points of an SVG picture. */
function longestLine(svg) {
    const lines = [...svg.matchAll(/(?:points|d)="([^"]*)"/g)].map((m) => m[1].match(/-?\d+(\.\d+)?/g)?.map(Number) ?? []);
    const longest = lines.reduce((a, b) => (b.length > a.length ? b : a), []);
    return longest.filter((_, i) => i % 2 === 1);
}

/* How often a line turns from up to down or back. */
function turns(y) {
    let n = 0;
    for (let i = 2; i < y.length; i++) if ((y[i] - y[i - 1]) * (y[i - 1] - y[i - 2]) < 0) n++;
    return n;
}

await browser.close();
sites.forEach((site) => site.close());
done();
