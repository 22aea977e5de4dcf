/* engine.js: who computes: `mnp serve`, where the page comes from it, otherwise the WebAssembly
 * module and the models beside the page. */
import {host} from "./host.js";
import {ServerEngine} from "./engine_server.js";

/** @param {() => Promise<string|null>} askKey @returns {Promise<object>} an engine */
export async function openEngine(askKey) {
    if (host === "server") return new ServerEngine(askKey);
    const {WasmEngine} = await import("./engine_wasm.js");
    return new WasmEngine();
}
