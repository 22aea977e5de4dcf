/* surfaces.js: what clicks, drags and keys mean (pointer.js) on a plot of functions and on a map. */
import {interpolate, neat} from "./scene.js";
import {wellAt} from "./rivers.js";

const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);
const without = (list, i) => list.filter((_, k) => k !== i);
const changed = (list, i, item) => list.map((v, k) => (k === i ? item : v));

/**
 * Points of a function. @param {object} app of main.js
 */
export function curvesSurface(app) {
    const {store} = app;
    const s = store.state;
    const toPoint = (px, py) => {
        const {sx, sy, box} = app.layout();
        const x = sx.invert(clamp(px, box.x, box.x + box.w)), y = sy.invert(clamp(py, box.y, box.y + box.h));
        return {x: neat(x, sx.hi - sx.lo), y: neat(y, sy.hi - sy.lo)};
    };
    const inside = (px, py) => {
        const {box} = app.layout();
        return px >= box.x && px <= box.x + box.w && py >= box.y - 6 && py <= box.y + box.h + 6;
    };
    const guessing = () => s.game && !s.game.revealed;
    const still = () => s.view === "chain";
    const cursorHeight = () => {
        if (Number.isFinite(s.atY)) return s.atY;
        const p = app.pictures.picture;
        return p ? interpolate(p.x, p.mean, s.at ?? 0) : 0;
    };
    return {
        chosen: () => s.chosen,
        marks: () => {
            if (s.game || still()) return [];
            const {sx, sy} = app.layout();
            return s.points.map((p) => ({x: sx(p.x), y: sy(p.y)}));
        },
        add(px, py) {
            if (!inside(px, py) || still()) return -1;
            const p = toPoint(px, py);
            if (guessing()) {
                app.guess(p.y);
                return -1;
            }
            if (s.game) return -1;
            store.set({points: [...s.points, p], chosen: s.points.length, at: p.x}, "add");
            return s.points.length - 1;
        },
        choose: (i) => store.set(i >= 0 ? {chosen: i, at: s.points[i].x, atY: null} : {chosen: -1}),
        begin(i, made) {
            if (!made) store.mark();
            app.drag(true);
        },
        move(i, px, py) {
            if (!s.points[i]) return;
            const p = toPoint(px, py);
            store.set({points: changed(s.points, i, p), chosen: i, at: p.x}, "drag");
        },
        end: () => app.drag(false),
        remove: (i) => store.set({points: without(s.points, i), chosen: -1}, "remove"),
        hover(px, py) {
            if (!inside(px, py) || still() || guessing()) return;
            store.set({at: toPoint(px, py).x, atY: null}, "hover");
        },
        nudge(dx, dy, far) {
            const {x, y} = app.limits;
            const step = far ? 0.05 : 0.005;
            const mx = dx * step * (x[1] - x[0]), my = dy * step * (y[1] - y[0]);
            const i = s.game ? -1 : s.chosen;
            const from = i >= 0 ? s.points[i] : {x: s.at ?? (x[0] + x[1]) / 2, y: cursorHeight()};
            const p = {x: guessing() ? from.x : neat(clamp(from.x + mx, ...x), x[1] - x[0]), y: neat(clamp(from.y + my, ...y), y[1] - y[0])};
            if (i >= 0) store.set({points: changed(s.points, i, p), at: p.x}, "key");
            else store.set({at: p.x, atY: dy || s.atY !== null ? p.y : null}, "hover");
        },
        enter() {
            if (still()) return;
            const {x, y} = app.limits;
            const p = {x: neat(s.at ?? 0, x[1] - x[0]), y: neat(cursorHeight(), y[1] - y[0])};
            if (guessing()) app.guess(p.y);
            else if (!s.game) store.set({points: [...s.points, p], chosen: -1, atY: null}, "add");
        },
        key: (key) => app.shortcut(key),
    };
}

/** Wells of a map. @param {object} app of main.js */
export function riversSurface(app) {
    const {store} = app;
    const s = store.state;
    let cursor = null;
    const panelAt = (px, py) => app.layout().panels.findIndex((p) => px >= p.x && px < p.x + p.side && py >= p.y && py < p.y + p.side);
    let panel = 0;
    const toWell = (px, py, value) => {
        const p = app.layout().panels[panel], m = app.model;
        return {row: clamp(Math.floor(((py - p.y) / p.side) * m.rows), 0, m.rows - 1), col: clamp(Math.floor(((px - p.x) / p.side) * m.cols), 0, m.cols - 1), value};
    };
    const middle = () => ({row: Math.floor(app.model.rows / 2), col: Math.floor(app.model.cols / 2)});
    return {
        cursor: () => cursor ?? middle(),
        chosen: () => s.chosen,
        marks: () => s.wells.map((w) => wellAt(w, app.model, app.layout().panels[panel] ?? app.layout().panels[0])),
        add(px, py) {
            if (panelAt(px, py) < 0) return -1;
            panel = panelAt(px, py);
            store.set({wells: [...s.wells, toWell(px, py, app.brush)], chosen: s.wells.length}, "add");
            return s.wells.length - 1;
        },
        choose: (i) => store.set({chosen: i}),
        begin(i, made) {
            if (!made) store.mark();
            app.drag(true);
        },
        move(i, px, py) {
            if (s.wells[i]) store.set({wells: changed(s.wells, i, toWell(px, py, s.wells[i].value)), chosen: i}, "drag");
        },
        end: () => app.drag(false),
        remove: (i) => store.set({wells: without(s.wells, i), chosen: -1}, "remove"),
        hover(px, py) {
            if (panelAt(px, py) >= 0) panel = panelAt(px, py);
        },
        nudge(dx, dy, far) {
            const m = app.model, step = far ? 10 : 1;
            const moved = (w) => ({...w, row: clamp(w.row - dy * step, 0, m.rows - 1), col: clamp(w.col + dx * step, 0, m.cols - 1)});
            if (s.chosen >= 0) store.set({wells: changed(s.wells, s.chosen, moved(s.wells[s.chosen]))}, "key");
            else {
                cursor = moved(cursor ?? middle());
                app.redraw();
            }
        },
        enter: () => store.set({wells: [...s.wells, {...(cursor ?? middle()), value: app.brush}], chosen: -1}, "add"),
        key(key) {
            if (key !== "x") return app.shortcut(key);
            if (s.chosen >= 0) store.set({wells: changed(s.wells, s.chosen, {...s.wells[s.chosen], value: -s.wells[s.chosen].value})}, "add");
            else app.flipBrush();
            return true;
        },
    };
}
