"""A process given many contexts, each by itself.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> many = process.condition([[0.1, 0.5], [0.7]], [[0.2, 0.3], [0.9]], condition="network")
>>> many.mean([0.2, 0.4, 0.6]).shape
(2, 3)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _structs as c
from ._arrays import Sets, address, is_many
from ._context import Handle, current, opened, warn
from ._library import lib
from ._reach import reach_of
from .errors import InvalidError
from .posterior import (
    USUAL_LEVELS,
    WARNINGS,
    How,
    Posterior,
    Prediction,
    Report,
    count_of,
    levels_of,
    or_by_network,
    too_many,
)

REPORT = ctypes.sizeof(c.mnp_draw_report)


class Posteriors:
    """One process given many contexts, each by itself. Every question is one call of the library,
    which uses all cores. Made by `Process.condition` with lists of x and y.

    Targets x are (n,) or (n, x_dim), the same for all contexts, and answers are stacked; or a list
    of such arrays, one for each, and answers are lists. Context k has the numbers of a Posterior of
    its own with the seed `seed + k`. Each question draws the functions anew: `predict` asks for
    mean, sd and quantiles at once. Points are not copied: do not change the arrays meanwhile.

    >>> import mnp
    >>> process = mnp.load("mnp-monotonic")
    >>> two = process.condition([[0.1, 0.5], [0.3]], [[-0.2, 0.4], [0.0]])
    >>> two.mean([0.2, 0.4, 0.8]).shape
    (2, 3)
    """

    def __init__(self, model: Handle, x_dim: int, xs: Sequence, ys: Sequence, how: How) -> None:
        self._model: Handle | None = model
        self._x_dim = x_dim
        self._how = how
        if xs is None or ys is None:
            raise InvalidError(f"{'x' if xs is None else 'y'} is missing: give lists of both")
        self._sets = Sets(xs, ys, x_dim)
        self._raw_reports: np.ndarray | None = None
        if self._sets.count == 0:
            raise InvalidError("x holds no context: give one or more")
        self._check(self._sets, "observed")
        reach_of(opened(model, "Posteriors")).count(max(self._sets.lengths))

    def _check(self, sets: Sets, what: str) -> None:
        """Warns of points far from where the model was trained, of all contexts together."""
        x = np.concatenate([x.ravel() for x in sets.xs])
        if x.size:
            y = np.concatenate(sets.ys) if sets.ys else None
            model = opened(self._model, "Posteriors")
            reach_of(model).check(model, x.reshape(-1, self._x_dim), y, what)

    def __len__(self) -> int:
        return self._sets.count

    def __getitem__(self, k: int) -> Posterior:
        if not -len(self) <= k < len(self):
            raise IndexError(f"context {k} of {len(self)}")
        k %= len(self)
        x, y = self._sets.xs[k], self._sets.ys[k]
        how = self._how._replace(seed=(self._how.seed + k) % 2**64)
        return Posterior(opened(self._model, "Posteriors"), self._x_dim, x, y, how)

    def _runs(self, draws: int) -> list[tuple[int, int, int]]:
        """Contexts first .. last - 1 that are drawn in one way: (first, last, condition)."""
        how = self._how
        latent = lib.mnp_model_latent(opened(self._model, "Posteriors"))
        out: list[tuple[int, int, int]] = []
        for k, n in enumerate(self._sets.lengths):
            many = latent and too_many(how, n, draws)
            kind = c.MNP_NETWORK if many else how.condition
            if out and out[-1][2] == kind:
                out[-1] = (out[-1][0], k + 1, kind)
            else:
                out.append((k, k + 1, kind))
        return out

    def _ask(
        self,
        x: Any,
        levels: np.ndarray | None = None,
        noise: bool = True,
        draws: int | None = None,
        wanted: tuple[str, ...] = ("mean", "sd"),
    ) -> tuple[dict[str, Any], Callable]:
        """Numbers for all contexts as flat arrays, and how they are cut."""
        count = len(self)
        shared = not is_many(x, self._x_dim)
        targets = Sets([x] if shared else x, None, self._x_dim, "targets ")
        if not shared and targets.count != count:
            raise InvalidError(f"x is of {targets.count} curves, and there are {count} contexts")
        self._check(targets, "asked")
        lengths = targets.lengths * (count if shared else 1)
        first = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        samples = self._how.draws if draws is None else draws
        n_levels = 0 if levels is None else len(levels)
        each = {"mean": 1, "sd": 1, "quantiles": n_levels, "draws": samples}
        out = {name: np.empty(each[name] * first[-1]) for name in wanted}
        reports = np.zeros((count, REPORT // 8), np.uint64)
        reports[:, 0] = REPORT  # its first member is its size
        context, runs = current(), self._runs(samples)
        left = sum(hi - lo for lo, hi, kind in runs if kind != self._how.condition)
        if left:
            warn(
                f"{left} of {count} contexts have many points: drawn by the network; "
                'condition="refine" is more accurate and takes longer'
            )
        for lo, hi, kind in runs:
            opts = c.mnp_many_opts(
                samples=samples,
                seed=(self._how.seed + lo) % 2**64,
                base=int(noise),
                device=self._how.device,
                condition=kind,
                gradients=self._how.gradients,
                reports=address(reports) + REPORT * lo,
            )
            places = {name: address(a) + 8 * each[name] * int(first[lo]) for name, a in out.items()}
            to = c.mnp_summary(**places)
            if n_levels:
                to.levels, to.level = n_levels, address(levels)
            self._call(context, opts, to, lo, hi, targets, shared)
        self._tell(reports)

        def cut(name: str, last: tuple[int, ...] = ()):
            parts = [
                out[name][each[name] * a : each[name] * b].reshape(*last, b - a)
                for a, b in zip(first[:-1], first[1:])
            ]
            stacked = shared or isinstance(x, np.ndarray)
            return out[name].reshape(count, *last, -1) if stacked else parts

        return out, cut

    def _call(self, context, opts, to, lo, hi, targets, shared) -> None:
        model = opened(self._model, "Posteriors")
        arguments = (
            context,
            model,
            self._sets.at(lo),
            hi - lo,
            targets.at(0 if shared else lo),
            1 if shared else hi - lo,
            ctypes.byref(opts),
            ctypes.byref(to),
        )
        or_by_network(lambda: context.call(lib.mnp_predict_many, *arguments), opts, self._how.given)

    def _tell(self, reports: np.ndarray) -> None:
        self._raw_reports = reports
        warned = reports.view(np.uint32)[:, c.mnp_draw_report.warnings.offset // 4]
        for bit, text in WARNINGS.items():
            of = int(np.count_nonzero(warned & bit))
            if of:
                warn(f"{of} of {len(self)} contexts: {text}")

    def predict(self, x: Any, q: Any = USUAL_LEVELS, *, noise: bool = True) -> Prediction:
        """Mean, sd and quantiles of all contexts in one call: (count, n), (count, n) and
        (count, levels, n), or lists."""
        levels = levels_of(q)
        _, cut = self._ask(x, levels, noise, wanted=("mean", "sd", "quantiles"))
        return Prediction(cut("mean"), cut("sd"), cut("quantiles", (len(levels),)))

    def mean(self, x: Any, *, noise: bool = True):
        """(count, n), or a list of (n_k,)."""
        return self._ask(x, None, noise, wanted=("mean",))[1]("mean")

    def sd(self, x: Any, *, noise: bool = True):
        """(count, n), or a list of (n_k,)."""
        return self._ask(x, None, noise, wanted=("sd",))[1]("sd")

    def quantile(self, x: Any, q: Any, *, noise: bool = True):
        """(count, n) for one probability q, (count, levels, n) for several; or a list."""
        levels = levels_of(q)
        last = () if np.ndim(q) == 0 else (len(levels),)
        return self._ask(x, levels, noise, wanted=("quantiles",))[1]("quantiles", last)

    def sample(self, x: Any, n: int | None = None, *, noise: bool = False):
        """n functions of each context: (count, n, len(x)), or a list of (n, n_k)."""
        draws = count_of(n, self._how.draws)
        return self._ask(x, None, noise, draws, ("draws",))[1]("draws", (draws,))

    def log_prob(self, x: Any, y: Any) -> np.ndarray:
        """log p(y at x | context) in nats, of all points of a context together: (count,). x as for
        `mean`; y (count, n), or a list. One context after the other, as `Posterior.log_prob`."""
        many = is_many(x, self._x_dim)
        if not is_many(y) or len(y) != len(self) or (many and len(x) != len(self)):
            raise InvalidError(f"give x and y of {len(self)} curves, or one x for all of them")
        pairs = zip(x if many else [x] * len(self), y)
        return np.array([self[k].log_prob(*pair) for k, pair in enumerate(pairs)])

    @property
    def reports(self) -> list[Report]:
        """How the functions of the last question were drawn, for each context."""
        if self._raw_reports is None:
            raise InvalidError("nothing was asked yet: reports speak of the last question")
        rows = (c.mnp_draw_report * len(self)).from_buffer(self._raw_reports)
        return [Report.of(r) for r in rows]

    def close(self) -> None:
        self._model = None

    def __enter__(self) -> Posteriors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self):
        from .process import model_bytes

        return _restored_many, (
            model_bytes(opened(self._model, "Posteriors")),
            self._x_dim,
            self._sets.xs,
            self._sets.ys,
            tuple(self._how),
        )

    def __repr__(self) -> str:
        return f"<mnp.Posteriors of {len(self)} contexts>"


def _restored_many(model: bytes, x_dim: int, xs: list, ys: list, how: tuple) -> Posteriors:
    from .process import model_of

    return Posteriors(model_of(model), x_dim, xs, ys, How(*how))
