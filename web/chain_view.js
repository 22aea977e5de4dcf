/* chain_view.js: the chain on the page: asks for it, its slider, and playing it. */
import {chainLimits} from "./chain.js";
import {$, showError} from "./controls.js";
import {contextOf} from "./picture.js";

const PLAY_MS = 7000; // f(0) to f(T)
const SIZE = {samples: 8, places: 120};

export class ChainView {
    /** @param {object} app of main.js */
    constructor(app) {
        this.app = app;
        this.clear();
        this.plays = 0;
        $("chain-play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
        $("chain-step").addEventListener("input", (e) => {
            this.pause();
            app.store.set({step: Number(e.target.value)});
        });
    }

    clear() {
        this.chain = null; // {x: (n), path: (T+1, samples, n), y: limits}
        this.pause();
    }

    async refresh() {
        const {state, queue, limits, model, redraw} = this.app;
        try {
            const reply = await queue.ask("picture", "chain", {model: state.model, context: contextOf(state.points), grid: [...limits.x, SIZE.places],
                                                               samples: SIZE.samples, seed: state.seed, condition: "network", noise: true});
            if (!reply || state.view !== "chain" || model !== this.app.model) return;
            this.chain = {x: reply.x, path: reply.path, y: chainLimits(reply.path)};
            redraw();
        } catch (error) {
            showError(error);
        }
    }

    /** The view is chosen: the first time it plays by itself, unless the system asks for less motion. */
    enter() {
        const {state, model, calm} = this.app;
        if (state.step === null) {
            state.step = calm.matches ? model.steps : 0;
            if (!calm.matches) this.play();
        }
        $("chain-step").value = String(state.step);
    }

    play() {
        const {store, state, model} = this.app;
        const mine = this.playing = ++this.plays;
        let before = null;
        if ((state.step ?? 0) >= model.steps) store.set({step: 0}, "play");
        const tick = (now) => {
            if (this.playing !== mine || state.view !== "chain") return;
            if (this.chain && before !== null) {
                const step = Math.min((state.step ?? 0) + ((now - before) / PLAY_MS) * model.steps, model.steps);
                $("chain-step").value = String(step);
                store.set({step}, "play");
                if (step >= model.steps) {
                    this.pause();
                    return;
                }
            }
            before = now;
            requestAnimationFrame(tick);
        };
        $("chain-play").textContent = "Pause";
        requestAnimationFrame(tick);
    }

    pause() {
        this.playing = 0;
        $("chain-play").textContent = "Play";
    }
}
