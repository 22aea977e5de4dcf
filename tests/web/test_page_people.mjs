/* test_page_people.mjs: the page for all: by keys alone, on a phone, in the dark, with wells on a map, and where the server
 * wants a key. */
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";

import {done, run} from "./check.mjs";
import {Explorer, LOGS, csvFile, mnp, sameDigits, scratch, serveSite, startBrowser, staticSite, table} from "./explorer.mjs";

const browser = await startBrowser();
const site = await staticSite();
const PHONE = {width: 360, height: 740, touch: true};

async function on(where, hash, test, options) {
    const e = await Explorer.open(browser, where, hash, options);
    await test(e, e.page);
    await e.close();
}

/* Waits for the map in full size, which comes after smaller ones. */
async function fullMap(e) {
    await e.page.untilSo(async () => !(await e.hidden("progress")), "a map on its way");
    await e.page.untilSo(async () => (await e.hidden("progress")) && (await e.commandOption("grid")) === "128x128", "the map in full size");
}

await run("keys alone: a whole visit without a mouse", () => on(site, "model=mnp-rbf", async (e, page) => {
    await page.tabTo("#plot");
    await page.press("Shift+ArrowLeft", 6);
    await page.press("Shift+ArrowUp", 2);
    await page.press("Enter");
    await page.untilSo(async () => (await e.points()).length === 1, "a point");
    await e.whole();
    await e.shot("keys");
    await page.press("Shift+ArrowRight", 8);
    await page.press("Enter");
    await page.untilSo(async () => (await e.points()).length === 2, "two points");
    const [[x, y]] = await e.points();
    await page.press("]");
    await page.press("ArrowDown", 3);
    await page.press("ArrowRight");
    const moved = (await e.points())[0];
    assert.ok(moved[1] < y && moved[0] > x, `the chosen point moves: ${moved} from ${[x, y]}`);
    await e.whole();
    await page.press("t");
    assert.equal(await page.evaluate("document.getElementById('truth').checked"), true);
    await page.press("t");
    await page.press("2");
    await page.until("document.querySelector('[data-testid=report-gradients]') !== null", "refine");
    await page.press("1");
    await page.press("Delete");
    assert.equal((await e.points()).length, 1);
    await page.press("Control+z");
    assert.equal((await e.points()).length, 2);
    await page.press("Escape");
    await page.press("c");
    await page.until("document.getElementById('chain-bar').checkVisibility()");
    await page.press("c");
    await page.press("?");
    await page.until("document.getElementById('keys').open");
    await e.shot("keys-dialog");
    await page.press("Escape");
    await page.until("!document.getElementById('keys').open");
    await page.tabTo("[data-testid=conditions-network]");
    await page.press("ArrowRight");
    await page.until("document.querySelector('[data-testid=conditions-refine]').getAttribute('aria-checked') === 'true'");
    await page.press("ArrowLeft");
    await page.tabTo("#save-csv");
    const {bytes} = await page.download(() => page.press("Enter"));
    assert.equal(table(bytes.toString()).rows.length, 200);
    await e.agrees();
    await page.until("/given 2 points/.test(document.getElementById('summary').textContent)", "the summary for those who do not see");
}));

await run("keys alone: the focus is seen wherever it goes", () => on(site, "model=mnp-rbf", async (e, page) => {
    const seen = new Set();
    for (let k = 0; k < 60; k++) {
        await page.press("Tab");
        const at = await page.evaluate(`(() => {
            const a = document.activeElement;
            if (!a || a === document.body) return null;
            const shown = a.matches(".unseen") ? a.nextElementSibling : a, s = getComputedStyle(shown), r = shown.getBoundingClientRect();
            return {name: a.id || a.dataset.testid || a.textContent.trim().slice(0, 20), ring: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2, size: r.width * r.height};
        })()`);
        if (!at || seen.has(at.name)) continue;
        seen.add(at.name);
        assert.ok(at.ring && at.size > 0, `the focus on ${at.name} is not seen`);
    }
    for (const name of ["plot", "save-csv", "theme", "file-model", "show-bands", "copy-link"]) assert.ok(seen.has(name), `Tab does not reach ${name}`);
}));

await run("a phone: nothing sticks out, targets are large, a finger adds, drags, removes", () => on(site, "model=mnp-rbf", async (e, page) => {
    await e.whole();
    await e.add(0, 0.5);
    await e.whole();
    await e.shot("phone");
    await e.drag([0, 0.5], [0.8, -0.6]);
    const [[x, y]] = await e.points();
    assert.ok(Math.abs(x - 0.8) < 0.08 && Math.abs(y + 0.6) < 0.15, `dragged to ${x}, ${y}`);
    await e.whole();
    await fits(e, "functions");
    await page.click("[data-testid=views-chain]");
    await fits(e, "chain");
    await page.click("[data-testid=views-functions]");
    await e.remove(x, y);
    await page.evaluate("document.getElementById('keys').showModal()");
    await fits(e, "keys");
    await page.evaluate("document.getElementById('keys').close()");
    await e.chooseModel("geofluvial");
    await fullMap(e);
    await fits(e, "rivers");
    await page.screenshot(join(LOGS, "static-phone-rivers.png"), true);
}, PHONE));

/* No scrolling sideways; whatever can be touched is at least 40 pixels high and wide. */
async function fits(e, what) {
    const {wide, small} = await e.page.evaluate(`(() => {
        const small = [...document.querySelectorAll("button, select, input, label.check, label.button, a[href]:not(.skip)")].filter((t) => t.checkVisibility({visibilityProperty: true}))
            .map((t) => (t.matches("input") && t.closest("label") ? t.closest("label") : t))
            .map((t) => ({name: t.id || t.textContent.trim(), r: t.getBoundingClientRect()}))
            .filter(({r}) => r.width > 1 && (r.height < 40 || r.width < 40)).map(({name, r}) => name + " " + Math.round(r.width) + "x" + Math.round(r.height));
        return {wide: document.documentElement.scrollWidth - innerWidth, small: [...new Set(small)]};
    })()`);
    assert.ok(wide <= 0, `${what}: ${wide} pixels stick out`);
    assert.deepEqual(small, [], `${what}: targets below 40 pixels`);
}

await run("in the dark the page is dark and its text legible", () => on(site, "model=mnp-rbf&points=-1,0.8;0.5,0&truth=1", async (e, page) => {
    await e.whole();
    await e.shot("dark");
    await legible(e, true);
    await page.evaluate(`(() => { const t = document.getElementById("theme"); t.value = "light"; t.dispatchEvent(new Event("change")); })()`);
    await legible(e, false);
    await page.go(`${site.url}#model=mnp-rbf`);
    await e.started();
    assert.equal(await page.evaluate("document.documentElement.dataset.theme"), "light", "the choice is kept");
}, {dark: true}));

/* Contrast of text and ground, of all texts that are seen (WCAG AA: 4.5). */
async function legible(e, dark) {
    await e.page.evaluate("Promise.all(document.getAnimations().map((a) => a.finished))"); // colours that are on their way
    const {ground, weak} = await e.page.evaluate(`(() => {
        const parse = (c) => { const g = document.createElement("canvas").getContext("2d"); g.fillStyle = c; g.fillRect(0, 0, 1, 1); return [...g.getImageData(0, 0, 1, 1).data]; };
        const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
        const under = (t) => { for (let p = t; p; p = p.parentElement) { const c = parse(getComputedStyle(p).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
        const weak = [];
        for (const t of document.querySelectorAll("body *")) {
            const own = [...t.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
            if (!own || !t.checkVisibility() || t.closest(":disabled, .check:has(:disabled), .unseen, option")) continue;
            const a = light(parse(getComputedStyle(t).color)), b = light(under(t));
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) weak.push(t.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
        }
        return {ground: light(under(document.body)), weak};
    })()`);
    assert.equal(ground < 0.1, dark, `the ground's lightness is ${ground}`);
    assert.deepEqual(weak, [], "texts of too little contrast");
}

await run("light: the text is legible", () => on(site, "model=mnp-rbf&points=-1,0.8;2.3,0", async (e) => {
    await e.whole();
    await legible(e, false);
}));

/* ---- wells ----------------------------------------------------------------------------------------- */

await run("a well is dragged over the map, and the map changes there", () => on(site, "model=geofluvial&wells=30,30,-1", async (e, page) => {
    const map = async () => {
        await fullMap(e);
        const {bytes} = await page.download(() => page.click("#save-csv"));
        return table(bytes.toString());
    };
    const at = ({header, rows}, row, col) => rows.find(([r, c]) => r === row && c === col)[header.indexOf("mean")];
    const before = await map();
    assert.ok(Math.abs(at(before, 30, 30) + 1) < 0.05, `at the well: ${at(before, 30, 30)}`);
    const {left, top, width, height} = await e.plot();
    const place = (row, col) => page.evaluate(`import(new URL("rivers.js", document.baseURI).href).then(({riversLayout, wellAt}) => {
        const {x, y} = wellAt({row: ${row}, col: ${col}}, {rows: 128, cols: 128}, riversLayout(${width}, ${height}, "mean").panels[0]);
        return {x: ${left} + x, y: ${top} + y};
    })`);
    await page.drag(await place(30, 30), await place(90, 80));
    await page.untilSo(async () => Math.abs((await e.points())[0][0] - 90) <= 1, async () => `the well at its new place: ${await e.points()}`);
    const [[row, col]] = await e.points();
    const after = await map();
    await e.shot("rivers");
    assert.ok(Math.abs(at(after, row, col) + 1) < 0.05, `at the well's new place: ${at(after, row, col)}`);
    assert.ok(Math.abs(at(after, row, col) - at(before, row, col)) > 0.2, `before it was ${at(before, row, col)}`);
    assert.ok(Math.abs(at(after, 30, 30) - at(before, 30, 30)) > 0.2, "and the old place is free again");
    /* the command's map */
    const samples = await e.commandOption("samples");
    mnp("predict", site.file("geofluvial"), "--context", csvFile("wells.csv", "row,col,value", await e.points()), "--grid", "128x128", "--samples", samples,
        "--condition", "network", "--seed", "0", "--quiet", "--out", `${scratch}/map`);
    const want = table(readFileSync(`${scratch}/map.csv`, "utf8"));
    for (const [r, c] of [[row, col], [30, 30], [64, 64], [0, 127]]) sameDigits(at(after, r, c), at(want, r, c), `mean at row ${r}, column ${c}`);
    await page.click("[data-testid=views-draws]");
    await e.shot("realisations");
}));

/* ---- the server's key ------------------------------------------------------------------------------ */

await run("serve with a key: the page asks for it, refuses a wrong one, works with the right one", async () => {
    const key = "a-key-of-the-tests-7f3a";
    const guarded = await serveSite([], key);
    const e = await Explorer.open(browser, guarded, "model=mnp-rbf&points=0,0.5", {started: false});
    const {page} = e;
    await page.until("document.getElementById('key-ask').open", "a question for the key");
    await e.shot("key");
    await page.click("#key-value");
    await page.type("not-the-key-not-the-key");
    await page.press("Enter");
    await page.until("document.getElementById('key-ask').open && /does not know/.test(document.getElementById('key-text').textContent)", "the wrong key refused");
    await page.evaluate("document.getElementById('key-value').select()");
    await page.type(key);
    await page.press("Enter");
    await e.started();
    await e.whole();
    await page.go(`${guarded.url}#model=mnp-rbf`);
    await e.started();
    assert.equal(await page.evaluate("document.getElementById('key-ask').open"), false, "this tab knows the key");
    await e.close();
    guarded.close();
});

await browser.close();
site.close();
done();
