/* test_page_files.mjs: what goes into the page and comes out of it: models and points of one's own, links, pictures, tables.
 * Tables are held against those of `mnp predict`. */
import assert from "node:assert/strict";
import {readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";

import {done, run} from "./check.mjs";
import {Explorer, TEXT_DROP, csvFile, mnp, sameDigits, scratch, serveSite, startBrowser, staticSite, table} from "./explorer.mjs";

const browser = await startBrowser();
const sites = [await staticSite(), await serveSite()];
const [page0] = sites;

async function on(site, hash, test, options) {
    const e = await Explorer.open(browser, site, hash, options);
    await test(e, e.page);
    await e.close();
}

/* The one sentence that the page says; it goes away when told to. */
async function complaint(e, pattern) {
    await e.page.until("!document.getElementById('error').hidden", "a complaint");
    const text = await e.page.text("#error");
    assert.match(text, pattern);
    assert.doesNotMatch(text, /\n|undefined|\[object/, "one sentence");
    return text;
}

const middle = (e) => e.page.middle("#plot");

function write(name, bytes) {
    const path = join(scratch, name);
    writeFileSync(path, bytes);
    return path;
}

/* ---- models ---------------------------------------------------------------------------------------- */

const small = readFileSync("models/np-rbf.safetensors");

await run("static: a model of one's own is dropped and computes", () => on(page0, "model=mnp-rbf&points=-1,0.8;0.5,-0.3&at=0", async (e, page) => {
    await e.whole();
    await page.drop(await middle(e), [write("my <b>curves.safetensors", small)]); // a name is text, never HTML
    await page.until("/my <b>curves/.test(document.getElementById('family-text').textContent)", "the new model");
    e.ownFile = "models/np-rbf.safetensors";
    assert.equal((await e.points()).length, 2, "the points stay");
    await e.whole();
    assert.match(await page.text("#command"), /mnp predict 'my <b>curves\.safetensors'/);
    await e.shot("own-model");
}));

await run("static: a damaged model is refused with a sentence, and the page goes on", () => on(page0, "model=mnp-rbf&points=-1,0.8&at=0", async (e, page) => {
    await e.whole();
    const random = Buffer.from(Array.from({length: 5000}, (_, i) => (Math.imul(i + 7, 2654435761) >>> 13) & 255));
    const bad = {"cut.safetensors": small.subarray(0, 100000), "noise.safetensors": random, "empty.safetensors": Buffer.alloc(0)};
    for (const [name, bytes] of Object.entries(bad)) {
        await page.choose("#file-model", [write(name, bytes)]);
        await complaint(e, new RegExp(`^${name}: .*\\w`));
        if (name.startsWith("cut")) await e.shot("bad-model");
    }
    assert.equal((await e.model()).name, "mnp-rbf");
    await e.add(1, 0.5);
    await e.whole();
    await page.drop(await middle(e), [csvFile("good.csv", "x,y", [[0, 0]])]); // what works takes the sentence away
    await page.until("document.getElementById('error').hidden");
}));

await run("serve: a server opens no model from the page, and says what to do", () => on(sites[1], "model=mnp-rbf&points=-1,0.8&at=0", async (e, page) => {
    assert.equal(await page.evaluate("document.getElementById('open-model').checkVisibility()"), false, "no button for what cannot be");
    await page.drop(await middle(e), [write("mine.safetensors", small)]);
    await complaint(e, /mnp serve/);
    await page.drop(await middle(e), [csvFile("good.csv", "x,y", [[0, 0]])]);
    await page.until("document.getElementById('error').hidden");
}));

/* ---- points ---------------------------------------------------------------------------------------- */

await run("static: points from a file, good and bad", () => on(page0, "model=mnp-rbf&at=0.5", async (e, page) => {
    const rows = [[-1.5, 0.25], [0.1, -0.5], [1.2, 1]];
    await page.drop(await middle(e), [csvFile("points.csv", "y,x,colour", rows.map(([x, y]) => [y, x, "red"]))]);
    await page.untilSo(async () => (await e.points()).length === 3, "three points");
    assert.deepEqual(await e.points(), rows);
    await e.whole();
    const bad = {"words.csv": ["x,y\n1,two\n", /words\.csv: Line 2: "two".*not a number/], "columns.csv": ["a,b\n1,2\n", /columns\.csv: .*no column "x"/], "none.csv": ["", /none\.csv: .*empty/]};
    for (const [name, [text, pattern]] of Object.entries(bad)) {
        await page.choose("#file-points", [write(name, text)]);
        await page.until(`document.getElementById('error').textContent.startsWith("${name}")`, `a complaint about ${name}`);
        await complaint(e, pattern);
        assert.deepEqual(await e.points(), rows, "the points before stay");
    }
    await page.choose("#file-points", [csvFile("good.csv", "x;y", [["0,5;0,25"]])]); // as spreadsheets of some countries write it
    await page.untilSo(async () => (await e.points()).length === 1, "one point");
    assert.deepEqual(await e.points(), [[0.5, 0.25]]);
    await e.whole();
}));

/* ---- out ------------------------------------------------------------------------------------------- */

for (const site of sites) {
    await run(`${site.name}: the CSV file has the command's numbers`, () => on(site, "model=mnp-monotonic&points=-1.2,-0.7;-0.3,-0.2;0.4,0.1;1.3,0.8&seed=11", async (e, page) => {
        await e.agrees();
        const {name, bytes} = await page.download(() => page.click("#save-csv"));
        assert.equal(name, "mnp-monotonic.csv");
        const got = table(bytes.toString());
        const want = table(mnp("predict", site.file("mnp-monotonic"), "--context", csvFile("context.csv", "x,y", await e.points()), `--grid=${await e.commandOption("grid")}`,
                               "--condition", "network", "--samples", "200", "--seed", "11", "--quiet"));
        assert.deepEqual(got.header, want.header);
        assert.equal(got.rows.length, want.rows.length);
        got.rows.forEach((row, i) => row.forEach((v, k) => sameDigits(v, want.rows[i][k], `${want.header[k]} of row ${i + 1}`)));
    }));

    await run(`${site.name}: a link makes the same numbers again`, () => on(site, "model=mnp-rbf&points=-1,0.8", async (e, page) => {
        await page.click("#reseed");
        await e.add(0.7, -0.4);
        const first = await e.read(0.2);
        await page.click("#copy-link");
        const link = await page.evaluate("navigator.clipboard.readText()");
        assert.equal(link, `${site.url}#${await e.address()}`);
        const points = await e.points();
        await page.close();
        const again = await Explorer.open(browser, site, link.split("#")[1]);
        assert.deepEqual(await again.points(), points);
        await again.page.untilSo(async () => Number.isFinite((await again.reading()).mean), "a reading");
        assert.deepEqual(await again.agrees(), first);
        e.page = again.page;
    }));
}

await run("static: PNG and SVG files show the picture", () => on(page0, "model=mnp-rbf&points=-1,0.8;1,-0.5", async (e, page) => {
    await e.whole();
    const png = (await page.download(() => page.click("#save-png"))).bytes;
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    const size = await page.evaluate("(({width, height}) => [width, height])(document.getElementById('plot').getBoundingClientRect())");
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], size.map((v) => Math.round(2 * v)), "two pixels for one");
    const {name, bytes} = await page.download(() => page.click("#save-svg"));
    assert.equal(name, "mnp-rbf.svg");
    const svg = bytes.toString();
    const valid = await page.evaluate(`new DOMParser().parseFromString(${JSON.stringify(svg)}, "image/svg+xml").querySelector("parsererror") === null`);
    assert.ok(valid, "the SVG file is XML");
    /* the points stand where the axes say */
    const {x: [x0, x1], y: [y0, y1]} = await e.axes();
    const dots = [...svg.matchAll(/<circle cx="([-\d.]+)" cy="([-\d.]+)" r="5.5"/g)].map((m) => [Number(m[1]), Number(m[2])]);
    const read = ([cx, cy]) => [x0.value + ((cx - x0.x) / (x1.x - x0.x)) * (x1.value - x0.value), y0.value + ((cy - y0.y + TEXT_DROP) / (y1.y - y0.y)) * (y1.value - y0.value)];
    assert.equal(dots.length, 2);
    for (const [i, [x, y]] of (await e.points()).entries()) {
        const [gx, gy] = read(dots[i]);
        assert.ok(Math.abs(gx - x) < 0.02 && Math.abs(gy - y) < 0.03, `point ${i + 1} stands at ${gx}, ${gy}, not ${x}, ${y}`);
    }
}));

await run("static: what a visitor loads is small", async () => {
    const site = await staticSite();
    await on(site, "", async (e) => {
        await e.agrees();
    });
    const bytes = (wanted) => [...site.fetched].filter(([path]) => wanted(path)).reduce((sum, [, n]) => sum + n, 0);
    const model = (path) => path.startsWith("/models/");
    assert.ok(bytes((path) => !model(path)) <= 1 << 20, `the page without models has ${bytes((path) => !model(path))} bytes`);
    assert.ok(bytes(() => true) <= 3 << 20, `a first visit loads ${bytes(() => true)} bytes`);
    assert.ok([...site.fetched.keys()].includes("/mnp.wasm"), "the module is counted");
    assert.equal([...site.fetched.keys()].filter(model).length, 1, "one model is loaded, not all");
    site.close();
});

await browser.close();
sites.forEach((site) => site.close());
done();
