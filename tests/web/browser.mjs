/* browser.mjs: runs a script in Chromium on a page beside the files of a folder, without the page's
 * own scripts. The script is the body of an async function; what it returns comes back. */
import {spawn} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {extname, join, normalize} from "node:path";

const TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm"};

const wrapped = (script) => `<!doctype html><meta charset="utf-8"><title>script</title><script type="module">
const send = (result) => fetch("/result", {method: "POST", body: JSON.stringify(result)});
try {
    send({value: await (async () => {${script}})()});
} catch (error) {
    send({error: error.stack ?? String(error)});
}
</script>`;

/** A plain server of the folder's files; `extra` answers paths of its own. */
export function serve(folder, extra = () => false) {
    const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
        if (extra(path, request, response)) return;
        try {
            const file = readFileSync(join(folder, normalize(path)));
            response.writeHead(200, {"Content-Type": TYPES[extname(path)] ?? "application/octet-stream"}).end(file);
        } catch {
            response.writeHead(404).end();
        }
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/* It has children, which write to the profile for a moment longer. */
async function end(chromium) {
    const gone = new Promise((resolve) => chromium.once("exit", resolve));
    process.kill(-chromium.pid, "SIGKILL");
    await gone;
}

async function remove(folder) {
    for (let tries = 0; tries < 50; tries++) {
        try {
            return rmSync(folder, {recursive: true, force: true});
        } catch {
            await new Promise((resolve) => setTimeout(resolve, 100));
        }
    }
}

export async function inChromium(folder, script, seconds = 100) {
    const profile = mkdtempSync(join(tmpdir(), "mnp-chromium-"));
    let chromium = null, server = null;
    try {
        return await new Promise((resolve, reject) => {
            const take = (text) => {
                const {value, error} = JSON.parse(text);
                if (error) reject(new Error(error));
                else resolve(value);
            };
            const extra = (path, request, response) => {
                if (path === "/script.html") response.writeHead(200, {"Content-Type": "text/html"}).end(wrapped(script));
                else if (path === "/result") {
                    let text = "";
                    request.on("data", (part) => (text += part)).on("end", () => (response.end(), take(text)));
                } else return false;
                return true;
            };
            setTimeout(() => reject(new Error(`nothing came from Chromium in ${seconds} s`)), 1000 * seconds).unref();
            serve(folder, extra).then((listening) => {
                server = listening;
                const url = `http://127.0.0.1:${server.address().port}/script.html`;
                chromium = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                    `--user-data-dir=${profile}`, url], {stdio: "ignore", detached: true});
                chromium.on("error", reject);
            }, reject);
        });
    } finally {
        if (chromium?.pid) await end(chromium);
        server?.closeAllConnections?.();
        server?.close();
        await remove(profile);
    }
}
