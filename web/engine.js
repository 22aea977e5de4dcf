/* engine.js: who computes. The page asks its own origin for `mnp serve`; a static folder has the
 * WebAssembly module and models beside the page. */
import {findServer} from "./engine_server.js";

/** @param {() => Promise<string|null>} askKey @returns {Promise<object>} an engine */
export async function openEngine(askKey) {
    const server = await findServer(askKey);
    if (server) return server;
    const {WasmEngine} = await import("./engine_wasm.js");
    return new WasmEngine();
}
