/* worker.js: the thread that computes. A message is {id, ask, ...}; its answer {id, reply} or
 * {id, error, status}, and {id, done, total} while functions are drawn. `broken`: the module cannot
 * go on, and neither can this worker. */
import {Module} from "./module.js";

let module = null;

async function answer({id, ask, compiled, name, bytes, verb, body}) {
    if (ask === "start") {
        module = await Module.start(compiled);
        return "";
    }
    if (ask === "model") return module.model(name, bytes);
    return module.call(verb, body, (done, total) => self.postMessage({id, done, total}));
}

self.onmessage = async ({data}) => {
    try {
        self.postMessage({id: data.id, reply: await answer(data)});
    } catch (error) {
        const status = error.status ?? 500;
        const sentence = error.status ? error.message : `The computation broke off: ${error.message}.`;
        self.postMessage({id: data.id, error: sentence, status, broken: !error.status});
    }
};
