"""Estimators for scikit-learn (`pip install mnp[sklearn]`).

`GPRegressor`     the process `gp` on one table: exact mean, standard deviation and covariance
`CurveRegressor`  many curves, told apart by a group column: each is forecast from its own points

>>> import numpy as np
>>> from mnp.sklearn import GPRegressor
>>> X = np.linspace(0, 6, 30)[:, None]
>>> model = GPRegressor().fit(X, np.sin(X[:, 0]))
>>> mean, std = model.predict([[1.0], [2.0]], return_std=True)
>>> bool(np.allclose(mean, np.sin([1.0, 2.0]), atol=0.01))
True
"""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import (
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    from .errors import NotInstalledError

    raise NotInstalledError(
        f"mnp.sklearn needs scikit-learn 1.6 or later ({error}): pip install mnp[sklearn]"
    ) from error

from . import _gp
from ._arrays import whole
from ._library import lib
from .data import Data
from .errors import InvalidError, NumericError
from .posterior import Prediction, levels_of
from .process import Process, load, train

# ---- one table -----------------------------------------------------------------------------------

BLOCK = 4_000_000  # numbers of a covariance between rows and training points


class GPRegressor(RegressorMixin, BaseEstimator):
    """The Gaussian process `gp` on one table X (n, d), y (n,), with d up to 64.

    X and y are standardised inside, so units do not matter. The variances, lengthscales, noise and
    mean maximise the likelihood; what they leave is exact: no draws, no approximation. It costs
    n^3 / 3 operations and n^2 numbers of memory.

    Parameters
    ----------
    kernel : "rbf", "matern" (5/2), "periodic", or a sum of them as "rbf+matern"
    process : a Process of the kind gp whose numbers are taken as they are (`mnp.train(..., "gp")`,
        `mnp.load`); nothing is fitted then, and `kernel` is not read
    n_starts : searches for the best numbers, from smooth to wiggly
    max_iter : steps of each search
    max_points : the search uses so many points at most, chosen at random; None uses all. The
        process is conditioned on all points in any case.
    random_state : of that choice

    Attributes
    ----------
    kernel_ : the fitted numbers, in standardised units
    process_ : the same as a `Process`, which `save` writes for the command mnp
    X_train_, y_train_ : the points it is conditioned on
    n_iter_ : steps of the best search
    n_features_in_, feature_names_in_

    >>> import numpy as np
    >>> from mnp.sklearn import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 5, (40, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    >>> model = GPRegressor("rbf").fit(X, y)
    >>> mean, cov = model.predict(X[:3], return_cov=True)
    >>> mean.shape, cov.shape, model.sample_y(X[:3], 5).shape
    ((3,), (3, 3), (3, 5))
    """

    def __init__(
        self,
        kernel: str = "matern",
        *,
        process: Process | None = None,
        n_starts: int = 2,
        max_iter: int = 200,
        max_points: int | None = 500,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.process = process
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.max_points = max_points
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GPRegressor:
        """Finds the kernel's numbers for X (n, d) and y (n,), n of 2 or more, and conditions on
        all points."""
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2, order="C"
        )
        y = y.astype(np.float64)
        if X.shape[1] > _gp.INPUTS_MAX:
            raise InvalidError(
                f"X has {X.shape[1]} features, and a process takes {_gp.INPUTS_MAX} at most: "
                "choose some of them, or reduce them with PCA"
            )
        if self.process is None:
            self._search(X, y)
        else:
            self._take(X)
        x, u = self._scale.inside(X), (y - self._scale.y_shift) / self._scale.y_spread
        try:
            with _gp.threads_for(len(u)):
                self._lower = _gp.factor(self.kernel_, x)
        except np.linalg.LinAlgError:
            raise NumericError(
                f"the covariance of the {len(u)} rows is not positive definite: remove rows that "
                "repeat each other, or take a process with more noise"
            ) from None
        with _gp.threads_for(len(u)):
            self._weights = _gp.solve(self._lower, u - self.kernel_.mean)
        self._x = x
        self.X_train_, self.y_train_ = X, y
        return self

    def _search(self, X: np.ndarray, y: np.ndarray) -> None:
        parts = _gp.parts_of(self.kernel)
        for name in ("n_starts", "max_iter"):
            whole(getattr(self, name), name, 1)
        self._scale = _gp.Scale.of(X, y)
        x, u = self._scale.inside(X), (y - self._scale.y_shift) / self._scale.y_spread
        if self.max_points is not None and len(u) > whole(self.max_points, "max_points", 2):
            random = check_random_state(self.random_state)
            some = np.sort(random.choice(len(u), self.max_points, replace=False))
            x, u = x[some], u[some]
        self._theta, self.n_iter_ = _gp.fit(x, u, parts, self.n_starts, self.max_iter)
        self.kernel_ = _gp.kernel_of(self._theta, parts)
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"the likelihood still grew after max_iter={self.max_iter} steps: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _take(self, X: np.ndarray) -> None:
        if not isinstance(self.process, Process):
            raise InvalidError("process is no mnp.Process: load one with mnp.load, or train it")
        if self.process.x_dim != X.shape[1]:
            raise InvalidError(
                f"the process takes {self.process.x_dim} inputs, and X has {X.shape[1]}"
            )
        self.kernel_, self._scale = _gp.from_process(self.process)
        self.n_iter_ = 0

    @property
    def process_(self) -> Process:
        """The fitted process, which knows no points: `process_.condition(X, y)` is given some."""
        check_is_fitted(self)
        if self.process is not None:
            return self.process
        return _gp.to_process(self._theta, self.kernel_.parts, self._scale)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        noise: bool = True,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Mean (m,) at X (m, d); with its standard deviation (m,) or covariance (m, m), in the
        units of y. They are of new measurements; noise=False: of the function beneath them."""
        check_is_fitted(self)
        if return_std and return_cov:
            raise InvalidError("return_std and return_cov: ask for one of them")
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        at, scale = self._scale.inside(X), self._scale
        with _gp.threads_for(max(len(self._x), len(at))):
            if return_cov:
                mean, cov = self._given(at, noise)
                return mean, scale.y_spread**2 * cov
            most = max(1, BLOCK // len(self._x))  # rows at once: memory stays small
            blocks = [self._ask(at[i : i + most], return_std) for i in range(0, len(at), most)]
        mean = np.concatenate([mean for mean, _ in blocks])
        if not return_std:
            return mean
        variance = np.concatenate([v for _, v in blocks]) + (self.kernel_.noise if noise else 0)
        return mean, scale.y_spread * np.sqrt(variance)

    def _cross(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariance (m, n) with the training points, and the mean (m,) in the units of y."""
        cross, scale = _gp.covariance(self.kernel_, at, self._x), self._scale
        inside = self.kernel_.mean + cross @ self._weights
        return cross, scale.y_shift + scale.y_spread * inside

    def _ask(self, at: np.ndarray, variances: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean, and the function's variance, standardised."""
        cross, mean = self._cross(at)
        if not variances:
            return mean, None
        white = _gp.whiten(self._lower, cross.T)  # (n, m)
        prior = sum(self.kernel_.variance[_gp.PARTS.index(part)] for part in self.kernel_.parts)
        return mean, np.maximum(prior - np.einsum("ij,ij->j", white, white), 0)

    def _given(self, at: np.ndarray, noise: bool) -> tuple[np.ndarray, np.ndarray]:
        """Mean, and the covariance, standardised."""
        cross, mean = self._cross(at)
        white = _gp.whiten(self._lower, cross.T)
        cov = _gp.covariance(self.kernel_, at, at) - white.T @ white
        if noise:
            cov[np.diag_indices_from(cov)] += self.kernel_.noise
        return mean, cov

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, noise: bool = True
    ) -> np.ndarray:
        """Joint draws at X (m, d): (m, n_samples). They are of measurements, whose mean and
        covariance `predict` gives; noise=False: functions without their noise."""
        mean, cov = self.predict(X, return_cov=True, noise=noise)
        random = check_random_state(random_state)
        with _gp.threads_for(len(mean)):
            return random.multivariate_normal(mean, cov, n_samples, check_valid="ignore").T

    def log_marginal_likelihood(self) -> float:
        """log p(y_train_) in nats, of y in its own units."""
        check_is_fitted(self)
        scale = self._scale
        u = (self.y_train_ - scale.y_shift) / scale.y_spread
        with _gp.threads_for(len(u)):
            inside = _gp.log_likelihood(self.kernel_, self._lower, u)
        return inside - len(u) * float(np.log(scale.y_spread))


# ---- many curves ---------------------------------------------------------------------------------

Points = tuple[np.ndarray, np.ndarray]

# What `mnp fit` gives a Gaussian process of a person's curves.
USUAL = {"gp": {"gp_mean": "spline", "gp_periodic": False, "max_points": 48}}
CLASSICAL = ("gp", "gp_authors", "lmm")  # they have no presets


class CurveRegressor(RegressorMixin, BaseEstimator):
    """Forecasts of curves: a column of X tells them apart, the other columns are inputs.

    `fit` learns how curves of this population look, and keeps the points of each. `predict` answers
    each row for the curve it belongs to: a curve of the training rows is forecast from its points
    there, a new one is the population's. A new curve's points are given as `context=(Xc, yc)`, to
    `predict`, or to `fit`, which then does not learn from them. Points of a curve that has some
    already are added to these.

    In a search by GroupKFold the test curves are new, so they would be scored as the population's.
    With `score_context=k` their first k rows are shown to the model, and the others are scored.

    Parameters
    ----------
    model : "auto" (several are tried on held-out curves, as `mnp fit` does), "lmm" (mixed
        model), "gp", "mnp" or another kind that `mnp.train` takes; or a trained model: a `Process`,
        the name of one that came with the package, or a file
    group : name or position of the column that tells curves apart; several in a list
    preset, steps : of the training; None for the usual ones
    options : more options of the model or its training, a dict as {"lr": 1e-3}
    effort, seconds, folds : of "auto", as `mnp.fit` takes them
    condition, draws : how functions are drawn given points, and how many: see `Process.condition`.
        Kinds without latents ("lmm", "gp") have their density integrated instead.
    score_context : rows of each new curve that `score` shows to the model
    random_state : seed

    Attributes
    ----------
    process_ : the trained `Process`
    model_ : its name; for "auto" the best, and `why_` says why
    curves_ : points (x, y) of each curve that is known, by its label
    n_features_in_, feature_names_in_

    >>> import numpy as np
    >>> from mnp.sklearn import CurveRegressor
    >>> day = np.tile(np.arange(8.0), 10)
    >>> plant = np.repeat(np.arange(10), 8)
    >>> height = (2 + plant % 3) * np.sqrt(day) + 0.01 * np.sin(7 * day + plant)
    >>> X = np.column_stack([plant, day])
    >>> model = CurveRegressor("lmm", group=0).fit(X, height)
    >>> known = model.predict([[3, 7.5]])
    >>> new, std = model.predict([[99, 7.5]], return_std=True)
    >>> context = ([[99, 0.0], [99, 1.0], [99, 4.0]], [0.0, 3.0, 6.0])
    >>> given, less = model.predict([[99, 7.5]], return_std=True, context=context)
    >>> bool(less[0] < std[0])
    True
    """

    def __init__(
        self,
        model: str | os.PathLike | Process = "auto",
        group: Any = 0,
        *,
        preset: str | None = None,
        steps: int | None = None,
        options: dict[str, Any] | None = None,
        effort: float | None = None,
        seconds: float | None = None,
        folds: int | None = None,
        condition: str | None = None,
        draws: int = 200,
        score_context: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.model = model
        self.group = group
        self.preset = preset
        self.steps = steps
        self.options = options
        self.effort = effort
        self.seconds = seconds
        self.folds = folds
        self.condition = condition
        self.draws = draws
        self.score_context = score_context
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # ---- fitting ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, context: tuple[Any, Any] | None = None) -> CurveRegressor:
        """Learns from X (n, columns) and y (n,), and keeps each curve's points. context: more
        points (Xc, yc), of these or other curves, that are kept and not learnt from."""
        self._learn_columns(X)
        curves = self._curves(X, y)
        self._seed = _seed(self.random_state)
        self.why_ = ""
        xs, ys = zip(*curves.values())
        self._train(Data.arrays(list(xs), list(ys)))
        if self.process_.x_dim != xs[0].shape[1]:
            raise InvalidError(
                f"the model takes {self.process_.x_dim} inputs, and X has {xs[0].shape[1]} beside "
                "the group"
            )
        self.curves_ = _joined(curves, self._context(context))
        return self

    def _train(self, data: Data) -> None:
        model = self.model
        if isinstance(model, Process):
            self.process_, self.model_ = model, model.kind
        elif model == "auto":
            self._choose(data)
        elif model in _kinds():
            usual = None if model in CLASSICAL else "tiny" if len(data) < 5000 else "paper"
            options = {**USUAL.get(model, {}), **(self.options or {})}
            self.model_ = model
            self.process_ = train(
                data,
                model,
                self.preset or usual,
                steps=self.steps,
                seed=self._seed,
                **options,
            )
        else:
            self.process_ = load(model)
            self.model_ = self.process_.kind

    def _choose(self, data: Data) -> None:
        """The path of `mnp fit`."""
        from .fitting import fit

        found = fit(
            data, seed=self._seed, folds=self.folds, effort=self.effort, seconds=self.seconds
        )
        self.process_, self.model_, self.why_ = found.best, found.best_name, found.why

    # ---- columns ---------------------------------------------------------------------------------

    def _learn_columns(self, X: Any) -> None:
        names = _names(X)
        count = len(names) if names is not None else _matrix(X).shape[1]
        self._groups = [
            _position(g, names, count)
            for g in (self.group if isinstance(self.group, (list, tuple)) else [self.group])
        ]
        if len(set(self._groups)) == count:
            raise InvalidError(f"X has {count} columns, and all are the group: give an input too")
        self.n_features_in_ = count
        if names is not None and all(isinstance(n, str) for n in names):
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _columns(self, X: Any) -> list[np.ndarray]:
        """The columns of X, in the order of `fit`: those of a frame by their names."""
        names = _names(X)
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None:
            missing = [n for n in known if n not in names]
            if missing:
                raise InvalidError(f"X has no column {missing[0]!r}, which it had in fit")
            return [np.asarray(X[n]) for n in known]
        columns = [np.asarray(X[n]) for n in names] if names is not None else list(_matrix(X).T)
        if len(columns) != self.n_features_in_:
            raise InvalidError(
                f"X has {len(columns)} features, but CurveRegressor is expecting "
                f"{self.n_features_in_} features as input"
            )
        return columns

    def _read(self, X: Any) -> tuple[list[Hashable], np.ndarray]:
        """Labels of the rows, and their inputs (n, x_dim)."""
        columns = self._columns(X)
        if len(columns[0]) == 0:
            raise InvalidError("X has no rows: give one or more")
        of = [columns[g].tolist() for g in self._groups]
        for values in of:
            if any(v is None or v != v for v in values):
                raise InvalidError("the group column has missing values: fill or remove them")
        known = getattr(self, "feature_names_in_", range(len(columns)))
        inputs = [
            _numbers(columns[k], known[k]) for k in range(len(columns)) if k not in self._groups
        ]
        labels = of[0] if len(of) == 1 else list(zip(*of))
        return labels, np.ascontiguousarray(np.column_stack(inputs))

    def _curves(self, X: Any, y: Any) -> dict[Hashable, Points]:
        """Points (x, y) of each curve by its label, in the order of their rows."""
        labels, x = self._read(X)
        y = _numbers(column_or_1d(y, warn=True), "y")
        check_consistent_length(labels, y)
        return {label: (x[rows], y[rows]) for label, rows in _rows(labels).items()}

    def _context(self, context: tuple[Any, Any] | None) -> dict[Hashable, Points]:
        if context is None:
            return {}
        if not isinstance(context, (tuple, list)) or len(context) != 2:
            raise InvalidError("context is no pair: give (Xc, yc), with the columns of X")
        return self._curves(*context)

    # ---- answers ---------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        context: tuple[Any, Any] | None = None,
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Forecast of a measurement for each row of X: its mean (n,). With return_std also its
        standard deviation (n,), with quantiles (probabilities) also these, (levels, n); then the
        answer is a tuple, in this order. context: points (Xc, yc) of new curves, or more of known
        ones."""
        check_is_fitted(self)
        labels, x = self._read(X)
        known = _joined(self.curves_, self._context(context))
        levels = levels_of([] if quantiles is None else quantiles)
        out = np.empty((2 + len(levels), len(labels)))
        rows = _rows([label if label in known else _NEW for label in labels])
        for label, at in rows.items():
            points = known.get(label, (None, None))
            mean, sd, q = self._ask(points, x[at], levels)
            out[0, at], out[1, at], out[2:, at] = mean, sd, q
        answer = (out[0], out[1], out[2:])
        wanted = (True, return_std, quantiles is not None)
        chosen = tuple(a for a, w in zip(answer, wanted) if w)
        return chosen if len(chosen) > 1 else chosen[0]

    def _ask(self, points: tuple, x: np.ndarray, levels: np.ndarray) -> Prediction:
        """One seed for all curves: the answer for a row does not depend on the others."""
        posterior = self.process_.condition(
            *points, condition=self.condition, draws=self.draws, seed=self._seed
        )
        if self.process_.latent:
            return posterior.predict(x, levels)
        return posterior.bands(x, levels)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        context: tuple[Any, Any] | None = None,
    ) -> float:
        """R^2 of `predict`, over all rows but those that `score_context` shows to the model.
        sample_weight: (n,), of the rows; None: all the same."""
        check_is_fitted(self)
        shown = whole(self.score_context, "score_context", 0)
        labels, x = self._read(X)
        y = _numbers(column_or_1d(y), "y")
        check_consistent_length(labels, y)
        weight = None
        if sample_weight is not None:
            weight = _numbers(column_or_1d(sample_weight), "sample_weight")
            check_consistent_length(labels, weight)
        given = _joined(self.curves_, self._context(context))
        mean = np.full(len(y), np.nan)
        none = np.empty(0, levels_of([]).dtype)
        for label, at in _rows(labels).items():
            points = given.get(label)
            if points is None:
                first, at = np.split(at, [min(shown, len(at) - 1)])
                points = (x[first], y[first]) if len(first) else (None, None)
            mean[at] = self._ask(points, x[at], none).mean
        asked = ~np.isnan(mean)
        from sklearn.metrics import r2_score

        weight = weight if weight is None else weight[asked]
        return r2_score(y[asked], mean[asked], sample_weight=weight)


class _New:
    """The label of curves that nothing is known of."""


_NEW = _New()


def _kinds() -> list[str]:
    """What `mnp.train` knows."""
    out: list[str] = []
    while (name := lib.mnp_model_process(len(out), None)) is not None:
        out.append(name.decode())
    return out


def _seed(random_state: Any) -> int:
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _names(X: Any) -> list | None:
    """Of the columns of a frame."""
    return list(X.columns) if hasattr(X, "columns") and hasattr(X, "__getitem__") else None


def _matrix(X: Any) -> np.ndarray:
    if hasattr(X, "tocsr"):
        raise TypeError("X is sparse: give a dense array or a frame (X.toarray())")
    try:
        array = np.asarray(X)
    except ValueError:
        raise InvalidError("X has rows of different lengths") from None
    if array.ndim != 2:
        raise InvalidError(f"X has the shape {array.shape}: give (n, columns). Reshape your data")
    return array


def _position(group: Any, names: list | None, count: int) -> int:
    if names is not None and group in names:
        return names.index(group)
    if isinstance(group, numbers.Integral) and -count <= group < count:
        return int(group) % count
    have = f"columns {', '.join(map(str, names))}" if names is not None else f"{count} columns"
    raise InvalidError(f"group is {group!r}, and X has {have}: name one of them, or its position")


def _numbers(column: np.ndarray, name: Any) -> np.ndarray:
    if column.dtype.kind in "mM":
        raise InvalidError(f"{name} holds times: convert them to numbers, as days since a start")
    try:
        out = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        raise InvalidError(f"{name} holds {column.dtype}, not numbers: encode it") from None
    if not np.isfinite(out).all():
        raise InvalidError(f"{name} has NaN or infinite values: remove or fill them")
    return out


def _rows(labels: list[Hashable]) -> dict[Hashable, np.ndarray]:
    """The rows of each label."""
    out: dict[Hashable, list[int]] = {}
    for i, label in enumerate(labels):
        out.setdefault(label, []).append(i)
    return {label: np.array(rows) for label, rows in out.items()}


def _joined(a: dict[Hashable, Points], b: dict[Hashable, Points]) -> dict[Hashable, Points]:
    """The points of both, those of `b` last."""
    out = dict(a)
    for label, (x, y) in b.items():
        if label in out:
            x, y = np.concatenate([out[label][0], x]), np.concatenate([out[label][1], y])
        out[label] = (x, y)
    return out


__all__ = ["CurveRegressor", "GPRegressor"]
