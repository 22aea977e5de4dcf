"""Where and on how many points a model was trained, and warnings of more or other ones."""

from __future__ import annotations

import ctypes

import numpy as np

from . import _structs as c
from ._context import Handle, warn
from ._library import lib


class Reach:
    """Where the model was trained, to warn of points far from it. Bounds are of each input, and
    the last ones of the output."""

    def __init__(self, model: Handle) -> None:
        self.dims = lib.mnp_model_x_dim(model)
        self.known = [_range(model, k) for k in range(self.dims + 1)]
        bounds = [
            _distant(model, k) if known is None else _slack(known, 0.05 if k < self.dims else 0.25)
            for k, known in enumerate(self.known)
        ]
        self.x_lo, self.x_hi = np.array(bounds[:-1]).T
        if self.dims == 1:
            self.x_lo, self.x_hi = bounds[0]  # numbers are compared quicker
        self.y_lo, self.y_hi = bounds[-1]
        network = lib.mnp_model_latent(model) or lib.mnp_model_factorises(model)
        self.most = lib.mnp_model_context_max(model) if network else 0  # 0: any number will do

    def count(self, points: int, before: int = 0) -> None:
        """Warns where a context has more points than any in training, once: `before` of them were
        there already."""
        if before <= self.most < points and self.most:
            warn(f"{points} observed points are more than the model was trained with ({self.most})")

    def check(self, model: Handle, x: np.ndarray, y: np.ndarray | None, what: str) -> None:
        if self.dims == 1:
            near = LEAST(x, None) >= self.x_lo and MOST(x, None) <= self.x_hi
        else:
            near = bool(((x >= self.x_lo) & (x <= self.x_hi)).all())
        if near and (y is None or (LEAST(y) >= self.y_lo and MOST(y) <= self.y_hi)):
            return
        columns = list(x.reshape(-1, self.dims).T)
        ends = zip(np.atleast_1d(self.x_lo), np.atleast_1d(self.x_hi))
        for k, (v, (lo, hi)) in enumerate(zip(columns, ends)):
            self._tell(model, k, v, np.count_nonzero((v < lo) | (v > hi)), what)
        if y is not None:
            out = np.count_nonzero((y < self.y_lo) | (y > self.y_hi))
            self._tell(model, self.dims, y, out, what)

    def _tell(self, model: Handle, k: int, v: np.ndarray, out: int, what: str) -> None:
        known = self.known[k]
        if out and known is None:
            warn(
                f"{out} of {len(v)} {what} points lie more than {c.MNP_FAR:g} times its spread "
                "from the training data: the model knows nothing there (are the units right?)"
            )
        elif out:
            name = _name(model, k)
            least, most, lo, hi = (_text(model, k, e) for e in (v.min(), v.max(), *known))
            warn(
                f"{out} of {len(v)} {what} points lie outside the training curves: {name} goes "
                f"from {least} to {most}, theirs from {lo} to {hi}"
            )


LEAST, MOST = np.minimum.reduce, np.maximum.reduce


def _range(model: Handle, k: int) -> tuple[float, float] | None:
    lo, hi = ctypes.c_double(), ctypes.c_double()
    known = lib.mnp_model_range(model, k, ctypes.byref(lo), ctypes.byref(hi))
    return (lo.value, hi.value) if known else None


def _slack(known: tuple[float, float], share: float) -> tuple[float, float]:
    slack = share * (known[1] - known[0])
    return known[0] - slack, known[1] + slack


def _distant(model: Handle, k: int) -> tuple[float, float]:
    """Where mnp_model_distance(v) = |v - centre| / spread reaches MNP_FAR. The spread shows far
    away, and with it the centre, once roughly and once more from nearby."""
    far = 1e15
    one, two = (lib.mnp_model_distance(model, k, v) for v in (far, 2 * far))
    spread = far / (two - one)
    centre = far - spread * one
    for _ in range(2):
        near = centre + 10 * spread + abs(centre)
        centre = near - spread * lib.mnp_model_distance(model, k, near)
    return centre - c.MNP_FAR * spread, centre + c.MNP_FAR * spread


def _name(model: Handle, k: int) -> str:
    dims = lib.mnp_model_x_dim(model)
    if k == dims:
        return (lib.mnp_model_note(model, b"y_name") or b"y").decode()
    names = (lib.mnp_model_note(model, b"x_names") or b"").decode().split(",")
    return names[k] if len(names) == dims and names[k] else "x"


def _text(model: Handle, k: int, value: float) -> str:
    text = ctypes.create_string_buffer(64)
    lib.mnp_model_text(model, k, value, text, len(text))
    return text.value.decode()


def reach_of(model: Handle) -> Reach:
    """Found out once for each model."""
    if model.memo is None:
        model.memo = Reach(model)
    return model.memo
