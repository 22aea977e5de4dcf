/* chromium.mjs: Chromium without a window, driven as a person would: mouse, finger, keys, files. It speaks
 * the DevTools protocol over a pipe (messages end with a NUL byte), so it needs node and chromium alone. */
import {spawn} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {delimiter, join} from "node:path";

const PATIENCE = Number(process.env.PATIENCE ?? 120000); // ms, over any wait: a loaded machine is slow, a page that hangs is wrong
const POLL = 40;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The path of Chromium, or null. CHROMIUM names another one. */
export function findChromium() {
    const names = process.env.CHROMIUM ? [process.env.CHROMIUM] : ["chromium", "chromium-browser", "google-chrome"];
    for (const name of names)
        for (const folder of ["", ...(process.env.PATH ?? "").split(delimiter)])
            if (existsSync(join(folder, name)) && (folder || name.includes("/"))) return join(folder, name);
    return null;
}

/** Ends a test file where there is no Chromium: what is missing is said, and counted. */
export function needChromium() {
    if (findChromium()) return;
    console.log("skip chromium is not installed: scripts/setup.sh web installs it (Debian's package chromium)");
    console.log("0 passed, 0 failed, 1 skipped");
    process.exit(0);
}

/* Root in a container has no user namespaces for a sandbox, and often a small /dev/shm and no GPU. */
const FLAGS = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
               "--no-default-browser-check", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
               "--disable-sync", "--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
               "--force-color-profile=srgb", "--hide-scrollbars", "--mute-audio"];

export class Browser {
    static async start() {
        const browser = new Browser();
        browser.folder = mkdtempSync(join(tmpdir(), "mnp-chromium-"));
        browser.child = spawn(findChromium(), [...FLAGS, `--user-data-dir=${browser.folder}/profile`, "about:blank"],
                              {stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"], env: {...process.env, HOME: browser.folder}});
        browser.stderr = "";
        browser.child.stderr.on("data", (text) => { browser.stderr = (browser.stderr + text).slice(-4000); });
        browser.child.on("exit", (code) => browser.ended(`chromium ended with ${code}: ${browser.stderr}`));
        browser.child.stdio[3].on("error", () => {}); // its end says more
        browser.listen(browser.child.stdio[4]);
        await browser.send("Browser.getVersion");
        return browser;
    }

    constructor() {
        this.count = 0;
        this.waiting = new Map(); // id: {resolve, reject}
        this.pages = new Map();   // session: Page
        this.listeners = [];
    }

    listen(stream) {
        let parts = [];
        stream.on("data", (chunk) => {
            for (let end; (end = chunk.indexOf(0)) >= 0; chunk = chunk.subarray(end + 1)) {
                parts.push(chunk.subarray(0, end));
                this.receive(JSON.parse(Buffer.concat(parts).toString()));
                parts = [];
            }
            if (chunk.length) parts.push(chunk);
        });
    }

    receive(message) {
        const waits = this.waiting.get(message.id);
        this.waiting.delete(message.id);
        if (waits && message.error) waits.reject(new Error(`${waits.method}: ${message.error.message}`));
        else if (waits) waits.resolve(message.result);
        else if (message.method) this.tell(message);
    }

    tell({method, params, sessionId}) {
        this.pages.get(sessionId)?.happened(method, params, sessionId);
        for (const listener of this.listeners) listener(method, params);
    }

    send(method, params = {}, sessionId = undefined) {
        return new Promise((resolve, reject) => {
            if (this.over) return reject(new Error(this.over));
            const id = ++this.count;
            this.waiting.set(id, {resolve, reject, method});
            this.child.stdio[3].write(`${JSON.stringify({id, method, params, sessionId})}\0`);
        });
    }

    ended(why) {
        this.over = why;
        for (const {reject} of this.waiting.values()) reject(new Error(why));
        this.waiting.clear();
    }

    /**
     * A page of its own: no cookies, no storage of others.
     * @param {{width?: number, height?: number, touch?: boolean, dark?: boolean, calm?: boolean}} options
     */
    async open(url, options = {}) {
        const {browserContextId} = await this.send("Target.createBrowserContext");
        const {targetId} = await this.send("Target.createTarget", {url: "about:blank", browserContextId});
        const {sessionId} = await this.send("Target.attachToTarget", {targetId, flatten: true});
        const page = new Page(this, sessionId, browserContextId);
        this.pages.set(sessionId, page);
        await page.prepare(options);
        await page.go(url);
        return page;
    }

    async close() {
        const gone = new Promise((resolve) => this.child.once("exit", resolve));
        this.send("Browser.close").catch(() => {});
        const late = setTimeout(() => this.child.kill("SIGKILL"), 5000);
        await gone;
        clearTimeout(late);
        rmSync(this.folder, {recursive: true, force: true, maxRetries: 5});
    }
}

/** Keys that are no letters: [code, number of the key]. */
const KEYS = {ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Delete: 46, Escape: 27, Tab: 9, Backspace: 8, Home: 36, End: 35, " ": 32};
const MODIFIERS = {Alt: 1, Control: 2, Meta: 4, Shift: 8};

export class Page {
    constructor(browser, session, context) {
        Object.assign(this, {browser, session, context, troubles: [], downloads: join(browser.folder, session)});
    }

    send(method, params) {
        return this.browser.send(method, params, this.session);
    }

    async prepare({width = 1280, height = 860, touch = false, dark = false, calm = false}) {
        this.touch = touch;
        mkdirSync(this.downloads);
        await Promise.all([
            ...["Page", "Runtime", "Log", "DOM"].map((domain) => this.send(`${domain}.enable`)),
            this.send("Target.setAutoAttach", {autoAttach: true, waitForDebuggerOnStart: false, flatten: true}), // workers
            this.send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: touch ? 2 : 1, mobile: touch}),
            this.send("Emulation.setTouchEmulationEnabled", {enabled: touch}),
            this.send("Emulation.setEmulatedMedia", {features: [{name: "prefers-color-scheme", value: dark ? "dark" : "light"},
                                                                {name: "prefers-reduced-motion", value: calm ? "reduce" : "no-preference"}]}),
            this.browser.send("Browser.grantPermissions", {browserContextId: this.context, permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"]}),
            this.browser.send("Browser.setDownloadBehavior", {behavior: "allow", browserContextId: this.context, downloadPath: this.downloads, eventsEnabled: true}),
        ]);
    }

    /* What a person would find in the console in red: exceptions, errors, what the page's policy forbids. */
    happened(method, params, session) {
        if (method === "Target.attachedToTarget") this.watch(params.sessionId);
        else if (method === "Runtime.exceptionThrown") {
            const {exceptionDetails: e} = params;
            this.troubles.push(e.exception?.description ?? e.text);
        } else if (method === "Runtime.consoleAPICalled" && ["error", "assert"].includes(params.type))
            this.troubles.push(params.args.map((a) => a.value ?? a.description).join(" "));
        else if (method === "Log.entryAdded" && params.entry.level === "error")
            this.troubles.push(`${params.entry.source}: ${params.entry.text} ${params.entry.url ?? ""}`);
        else if (method === "Inspector.targetCrashed") this.troubles.push(`${session === this.session ? "the page" : "a worker"} crashed`);
    }

    watch(session) {
        this.browser.pages.set(session, this);
        for (const domain of ["Runtime", "Log"]) this.browser.send(`${domain}.enable`, {}, session).catch(() => {}); // gone already
    }

    /** Loads an address anew, even where only the part after # differs. */
    async go(url) {
        await this.send("Page.navigate", {url: "about:blank"});
        await this.until("location.href === 'about:blank'");
        const {errorText} = await this.send("Page.navigate", {url});
        if (errorText) throw new Error(`${url}: ${errorText}`);
        await this.until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /** The value of an expression in the page; promises are awaited. */
    async evaluate(expression) {
        const {result, exceptionDetails: e} = await this.send("Runtime.evaluate", {expression, awaitPromise: true, returnByValue: true, userGesture: true});
        if (e) throw new Error(`${expression}: ${e.exception?.description ?? e.text}`);
        return result.value;
    }

    /** Waits until an expression holds. @returns its value */
    async until(expression, what = expression) {
        return this.untilSo(() => this.evaluate(expression).catch((error) => {
            if (/context|navigat/.test(error.message)) return false; // between two documents
            throw error;
        }), what);
    }

    /** Waits until a function gives what counts as true. */
    async untilSo(f, what) {
        for (const end = Date.now() + PATIENCE; ; await sleep(POLL)) {
            const value = await f();
            if (value) return value;
            if (Date.now() > end) throw new Error(`waited in vain: ${typeof what === "function" ? await what() : what}`);
        }
    }

    /** The middle of an element, scrolled into view. */
    async middle(selector) {
        return this.evaluate(`(() => {
            const e = document.querySelector(${JSON.stringify(selector)});
            if (!e) throw new Error("no element ${selector.replace(/["\\]/g, "")}");
            e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
            const r = e.getBoundingClientRect();
            if (!r.width || !r.height) throw new Error("not to be seen: ${selector.replace(/["\\]/g, "")}");
            return {x: r.left + r.width / 2, y: r.top + r.height / 2};
        })()`);
    }

    text(selector) {
        return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`);
    }

    /* ---- mouse and finger ------------------------------------------------------------------------ */

    mouse(type, {x, y}, more = {}) {
        return this.send("Input.dispatchMouseEvent", {type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1, ...more});
    }

    finger(type, points) {
        return this.send("Input.dispatchTouchEvent", {type, touchPoints: points.map(({x, y}) => ({x, y}))});
    }

    async hover(at) {
        await this.mouse("mouseMoved", at, {button: "none", buttons: 0});
    }

    /** Clicks or taps a place, or the middle of an element. */
    async click(target) {
        const at = typeof target === "string" ? await this.middle(target) : target;
        if (this.touch) {
            await this.finger("touchStart", [at]);
            await this.finger("touchEnd", []);
            return;
        }
        await this.hover(at);
        await this.mouse("mousePressed", at);
        await this.mouse("mouseReleased", at);
    }

    async doubleClick(at) {
        await this.hover(at);
        for (const clickCount of [1, 2]) {
            await this.mouse("mousePressed", at, {clickCount});
            await this.mouse("mouseReleased", at, {clickCount});
        }
    }

    /** Drags from one place to another in small steps. */
    async drag(from, to, steps = 12) {
        const at = (k) => ({x: from.x + ((to.x - from.x) * k) / steps, y: from.y + ((to.y - from.y) * k) / steps});
        if (!this.touch) await this.hover(from);
        await (this.touch ? this.finger("touchStart", [from]) : this.mouse("mousePressed", from));
        for (let k = 1; k <= steps; k++) {
            await (this.touch ? this.finger("touchMove", [at(k)]) : this.mouse("mouseMoved", at(k)));
            await sleep(16);
        }
        await (this.touch ? this.finger("touchEnd", []) : this.mouse("mouseReleased", to));
    }

    /** A finger that rests. */
    async longPress(at, ms = 1200) {
        await this.finger("touchStart", [at]);
        await sleep(ms);
        await this.finger("touchEnd", []);
    }

    /* ---- keys ------------------------------------------------------------------------------------ */

    /** Presses a key: "a", "Enter", "Shift+Tab", "Control+z". */
    async press(keys, times = 1) {
        const parts = keys === "+" ? ["+"] : keys.split("+");
        const key = parts.pop();
        const modifiers = parts.reduce((sum, name) => sum + MODIFIERS[name], 0);
        const special = Object.hasOwn(KEYS, key);
        const number = special ? KEYS[key] : key.toUpperCase().charCodeAt(0);
        const text = key === "Enter" ? "\r" : special && key !== " " ? undefined : modifiers & ~MODIFIERS.Shift ? undefined : key;
        const params = {key, modifiers, windowsVirtualKeyCode: number, code: special ? (key === " " ? "Space" : key) : undefined};
        for (let k = 0; k < times; k++) {
            await this.send("Input.dispatchKeyEvent", {type: text ? "keyDown" : "rawKeyDown", text, unmodifiedText: text, ...params});
            await this.send("Input.dispatchKeyEvent", {type: "keyUp", ...params});
        }
    }

    async type(text) {
        for (const letter of text) await this.press(letter === "+" ? "+" : letter);
    }

    /** Presses Tab until the element has the focus. */
    async tabTo(selector, most = 80) {
        for (let k = 0; k < most; k++) {
            if (await this.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`)) return;
            await this.press("Tab");
        }
        throw new Error(`Tab does not reach ${selector}`);
    }

    /* ---- files ----------------------------------------------------------------------------------- */

    /** Drops files from the disk on a place. */
    async drop(at, files) {
        const data = {items: [], files, dragOperationsMask: 1};
        for (const type of ["dragEnter", "dragOver", "drop"]) await this.send("Input.dispatchDragEvent", {type, ...at, data});
    }

    /** Chooses files in a file input. */
    async choose(selector, files) {
        const {result} = await this.send("Runtime.evaluate", {expression: `document.querySelector(${JSON.stringify(selector)})`});
        await this.send("DOM.setFileInputFiles", {files, objectId: result.objectId});
    }

    /** Does something that saves a file. @returns {Promise<{name: string, bytes: Buffer}>} */
    async download(action) {
        let name = null, done = false;
        const listener = (method, params) => {
            if (method === "Browser.downloadWillBegin") name = params.suggestedFilename;
            if (method === "Browser.downloadProgress" && params.state !== "inProgress") done = params.state;
        };
        this.browser.listeners.push(listener);
        try {
            await action();
            await this.untilSo(() => name && done, "a file to be saved");
        } finally {
            this.browser.listeners = this.browser.listeners.filter((f) => f !== listener);
        }
        const path = join(this.downloads, name);
        const bytes = readFileSync(path);
        rmSync(path);
        return {name, bytes};
    }

    async screenshot(path, whole = false) {
        const {data} = await this.send("Page.captureScreenshot", {format: "png", captureBeyondViewport: whole});
        writeFileSync(path, Buffer.from(data, "base64"));
    }

    async close() {
        for (const [session, page] of this.browser.pages) if (page === this) this.browser.pages.delete(session);
        await this.browser.send("Target.disposeBrowserContext", {browserContextId: this.context});
    }
}
