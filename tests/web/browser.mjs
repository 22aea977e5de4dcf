/* browser.mjs: runs a script in Chromium on a page beside the files of a folder, without the page's
 * own scripts. The script is the body of an async function; what it returns comes back. */
import {readFileSync} from "node:fs";
import {createServer} from "node:http";
import {extname, join, normalize} from "node:path";

import {Browser} from "./chromium.mjs";

const TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json",
               ".wasm": "application/wasm", ".safetensors": "application/octet-stream"};
const EMPTY = "/empty.html";

/**
 * A plain server of the folder's files. `url` is where it listens, `fetched` bytes by path.
 * @param {string} under the path that stands for the folder  @param {object} headers of every answer
 */
export async function serve(folder, under = "/", headers = {}) {
    const fetched = new Map();
    const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
        const name = path.replace(under, "/").replace(/\/$/, "/index.html");
        try {
            const bytes = name === EMPTY ? Buffer.from("<!DOCTYPE html><title>script</title>") : readFileSync(join(folder, normalize(name)));
            fetched.set(name, bytes.length);
            response.writeHead(200, {...headers, "Content-Type": TYPES[extname(name)] ?? "text/plain"}).end(bytes);
        } catch {
            response.writeHead(404, headers).end();
        }
    });
    await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
    const close = () => {
        server.close();
        server.closeAllConnections();
    };
    return {url: `http://127.0.0.1:${server.address().port}${under}`, fetched, close};
}

export async function inChromium(folder, script, seconds = 100) {
    const site = await serve(folder);
    const browser = await Browser.start();
    let late = 0;
    try {
        const page = await browser.open(new URL(EMPTY, site.url).href);
        const patience = new Promise((_, reject) => {
            late = setTimeout(() => reject(new Error(`nothing came from Chromium in ${seconds} s`)), 1000 * seconds);
        });
        return await Promise.race([page.evaluate(`(async () => {${script}\n})()`), patience]);
    } finally {
        clearTimeout(late);
        await browser.close();
        site.close();
    }
}
