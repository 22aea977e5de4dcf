/* state.js: all that a picture depends on, in one place. Modules read `state`, change it with
 * `set`, and are told by `watch`. */

/**
 * @typedef {{x: number, y: number}} Point
 * @typedef {{row: number, col: number, value: number}} Well  pixels of the model's own image size
 */
export function initialState() {
    return {
        model: null,         // a name of `models`
        points: [],          // Point[]: the context
        wells: [],           // Well[]
        chosen: -1,          // the point or well that keys and Delete mean
        seed: 0,
        condition: "network",
        view: "functions",   // or "chain"
        step: null,          // of the chain, 0 to T; null: T
        layer: "mean",       // of a map
        at: null,            // the cursor's x
        atY: null,           // the keyboard cursor's y
        truth: false,
        moving: false,
        show: {bands: true, draws: true, mean: true},
        game: null,          // {seed, revealed}: a hidden function
    };
}

/** A store: `state`, `set(patch, why)`, `watch(f)`, `undo()`. f gets (state, names changed, why). */
export function createStore(first) {
    const state = {...first};
    const watchers = [];
    const past = [];
    const remembered = ["points", "wells", "model"];
    const tell = (names, why) => watchers.forEach((f) => f(state, names, why));
    return {
        state,
        watch: (f) => watchers.push(f),
        /** @param {object} patch @param {string} why "drag" while a point moves: not remembered */
        set(patch, why = "") {
            const names = new Set(Object.keys(patch).filter((k) => patch[k] !== state[k]));
            if (!names.size) return;
            if (why !== "drag" && why !== "undo" && remembered.some((k) => names.has(k)))
                past.push(Object.fromEntries(remembered.map((k) => [k, state[k]])));
            if (past.length > 200) past.shift();
            Object.assign(state, patch);
            tell(names, why);
        },
        /** Remembers the points as they are: before a drag. */
        mark() {
            past.push(Object.fromEntries(remembered.map((k) => [k, state[k]])));
        },
        undo() {
            const before = past.pop();
            if (before) this.set({...before, chosen: -1}, "undo");
            return before !== undefined;
        },
    };
}
