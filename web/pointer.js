/* pointer.js: a person's mouse, finger, pen and keys on the plot. It knows no picture: a surface
 * says where its marks are and what adding, moving and removing one means.
 *
 * surface: {marks(): {x, y}[], add(px, py): index or -1, move(i, px, py), remove(i), choose(i),
 *           hover(px, py), begin(i), end(i), nudge(dx, dy, shift), enter(), key(event): boolean, chosen(): index} */

const NEAR = {mouse: 12, pen: 16, touch: 26}; // pixels
const LONG_MS = 650;
const DOUBLE_MS = 400;
const STILL = 6; // pixels that a finger may tremble

/** The index of the mark nearest to a place, -1 where none is within reach. */
export function nearest(marks, x, y, reach) {
    let best = -1, least = reach * reach;
    marks.forEach((m, i) => {
        const d = (m.x - x) ** 2 + (m.y - y) ** 2;
        if (d <= least) [best, least] = [i, d];
    });
    return best;
}

export function attachPointer(element, surface) {
    let held = null;     // {id, mark, x, y, moved, made, timer}
    let last = {at: 0, mark: -1};
    let newest = null;   // the last place of a drag that is not yet handed on
    const place = (e) => {
        const r = element.getBoundingClientRect();
        return [e.clientX - r.left, e.clientY - r.top];
    };
    const reach = (e) => NEAR[e.pointerType] ?? NEAR.mouse;
    const hit = (e) => nearest(surface().marks(), ...place(e), reach(e));

    const handOn = () => {
        if (!newest) return;
        surface().move(newest.mark, newest.x, newest.y);
        newest = null;
    };

    element.addEventListener("pointerdown", (e) => {
        if (e.button !== 0 || held) return;
        const [x, y] = place(e);
        let mark = hit(e);
        const twice = mark >= 0 && mark === last.mark && e.timeStamp - last.at < DOUBLE_MS;
        if (twice) {
            last = {at: 0, mark: -1};
            surface().remove(mark);
            return;
        }
        const touch = e.pointerType === "touch";
        let made = false;
        if (mark < 0 && !touch) {
            mark = surface().add(x, y);
            made = true;
        } else if (mark >= 0) surface().choose(mark);
        held = {id: e.pointerId, mark, x, y, moved: false, made, timer: 0};
        if (mark >= 0) {
            element.setPointerCapture(e.pointerId);
            if (!made) held.timer = setTimeout(() => {
                if (held && !held.moved) {
                    surface().remove(held.mark);
                    held = null;
                }
            }, touch ? LONG_MS : 1e9);
        }
        last = made ? {at: 0, mark: -1} : {at: e.timeStamp, mark};
    });

    element.addEventListener("pointermove", (e) => {
        const [x, y] = place(e);
        if (!held) {
            element.classList.toggle("over-mark", hit(e) >= 0);
            surface().hover(x, y);
            return;
        }
        if (e.pointerId !== held.id) return;
        if (!held.moved && Math.hypot(x - held.x, y - held.y) < (e.pointerType === "mouse" ? 2 : STILL)) return;
        if (!held.moved && held.mark >= 0) surface().begin(held.mark, held.made);
        held.moved = true;
        clearTimeout(held.timer);
        if (held.mark < 0) return;
        last = {at: 0, mark: -1};
        if (!newest) requestAnimationFrame(handOn);
        newest = {mark: held.mark, x, y};
    });

    const finish = (e, cancelled) => {
        if (!held || e.pointerId !== held.id) return;
        const {mark, moved, timer} = held;
        held = null;
        clearTimeout(timer);
        handOn();
        if (mark >= 0 && moved) surface().end(mark);
        else if (mark < 0 && !moved && !cancelled && e.pointerType === "touch") surface().add(...place(e));
    };
    element.addEventListener("pointerup", (e) => finish(e, false));
    element.addEventListener("pointercancel", (e) => finish(e, true));
    /* A finger on a mark drags it; anywhere else it scrolls the page. */
    element.addEventListener("touchstart", (e) => {
        const r = element.getBoundingClientRect();
        const t = e.changedTouches[0];
        if (nearest(surface().marks(), t.clientX - r.left, t.clientY - r.top, NEAR.touch) >= 0) e.preventDefault();
    }, {passive: false});
    element.addEventListener("contextmenu", (e) => {
        if (hit(e) >= 0) e.preventDefault();
    });

    const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
    element.addEventListener("keydown", (e) => {
        const s = surface();
        if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "z") s.key("undo");
        else if (e.ctrlKey || e.metaKey || e.altKey) return;
        else if (ARROWS[e.key]) s.nudge(...ARROWS[e.key], e.shiftKey);
        else if (e.key === "Enter") s.enter();
        else if (e.key === "Delete" || e.key === "Backspace") {
            if (s.chosen() >= 0) s.remove(s.chosen());
        } else if (e.key === "Escape") s.choose(-1);
        else if (e.key === "[" || e.key === "]") {
            const n = s.marks().length;
            if (n) s.choose((s.chosen() + (e.key === "]" ? 1 : s.chosen() < 0 ? n : n - 1)) % n);
        } else if (!s.key(e.key)) return;
        e.preventDefault();
    });
}
