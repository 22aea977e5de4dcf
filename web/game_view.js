/* game_view.js: hide and reveal on the page (game.js has its rules). */
import {$, showError} from "./controls.js";
import {trainedRange} from "./curves.js";
import {hide, nextInput, Score} from "./game.js";
import {interpolate} from "./scene.js";

const GUESSES = 12;

export class GameView {
    /** @param {object} app of main.js */
    constructor(app) {
        this.app = app;
        this.hidden = null;  // {x, y}
        this.asked = null;   // the input that is asked about
        this.guessed = null; // {x, y}: the last guess
        this.score = new Score();
        const on = (id, f) => $(id).addEventListener("click", f);
        on("game-start", () => this.start(Math.floor(Math.random() * 2 ** 31)));
        on("game-next", () => this.next(null));
        on("game-reveal", () => this.reveal());
        on("game-end", () => this.end());
    }

    /** What is asked about, and which buttons there are, after a change of points or of the game. */
    update() {
        const {state, model} = this.app;
        const on = state.game && !state.game.revealed && this.hidden;
        this.asked = on ? nextInput(state.game.seed, state.points.length, ...trainedRange(model)) : null;
        if (on) state.at = this.asked;
        $("game-start").textContent = state.game ? "Hide another" : "Hide a function";
        for (const id of ["game-next", "game-reveal"]) $(id).hidden = !on;
        $("game-bar").hidden = !state.game;
        if (!state.game) this.say("");
    }

    say(text) {
        $("game-text").textContent = text;
    }

    /** @param {object} patch of the state, as a link has it @returns {Promise<boolean>} it has begun */
    async start(seed, patch = {points: []}) {
        const {state, store, queue, models} = this.app;
        try {
            const from = models.find((m) => m.name === (patch.model ?? state.model));
            const hidden = await hide(queue, from, trainedRange(from), seed);
            if (!hidden) return false;
            this.score = new Score();
            this.guessed = null;
            this.hidden = hidden;
            store.set({...patch, game: {seed, revealed: false}, chosen: -1, view: "functions"}, "game");
            $("plot").scrollIntoView({block: "nearest"});
            this.say("Click the height where you think the function passes the dashed line.");
            return true;
        } catch (error) {
            showError(error);
            return false;
        }
    }

    /** The value where it was asked for is shown. @param {number|null} guess */
    next(guess) {
        const {state, store, pictures} = this.app;
        if (this.asked === null) return;
        const value = Number(interpolate(this.hidden.x, this.hidden.y, this.asked).toPrecision(6));
        if (guess !== null && pictures.picture) {
            this.score.add(guess, value, this.asked, pictures.picture);
            this.guessed = {x: this.asked, y: guess};
        }
        store.set({points: [...state.points, {x: this.asked, y: value}], atY: null}, "add");
        this.say(this.score.words());
        if (state.points.length >= GUESSES) this.reveal();
    }

    reveal() {
        const {state, store} = this.app;
        store.set({game: {...state.game, revealed: true}}, "game");
        this.say(`${this.score.words()} The dotted line is the hidden function.`.trim());
    }

    end() {
        this.guessed = this.hidden = null;
        this.app.store.set({game: null, points: []}, "game");
    }
}
