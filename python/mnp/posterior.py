"""A process given the points of one function: Posterior. posteriors.py has many.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> posterior = process.condition([0.1, 0.5, 0.9], [0.2, 0.5, 0.9], condition="network")
>>> posterior.mean([0.3, 0.7]).shape
(2,)
>>> posterior.sample([0.3, 0.7], 5).shape
(5, 2)
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from . import _context
from . import _structs as c
from ._arrays import DRAWS_MAX, address, inputs, numbers, one_set, outputs, seed_of, text, whole
from ._context import Handle, current, opened, warn
from ._library import lib
from ._reach import reach_of
from .errors import ClosedError, InvalidError, UnsupportedError

CONDITIONS = ("network", "refine", "exact")
ORDERS = {"random": c.MNP_ORDER_RANDOM, "x": c.MNP_ORDER_X}
ORDERS_MAX = 10_000
USUAL_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WORK_MAX = 20_000  # points times functions that the default refines, as `mnp predict` has it

WARNINGS = {
    c.MNP_DRAW_RHAT: "the particles have not settled (rhat above 1.1): raise gradients, or use "
    'condition="network"',
    c.MNP_DRAW_REJECTED: "few moves were accepted (less than 0.3): raise gradients, or use "
    'condition="network"',
    c.MNP_DRAW_FIT: "the functions fit the points worse than the network's: use "
    'condition="network"',
    c.MNP_DRAW_HURRIED: "too few gradients for as many temperatures as needed: raise gradients, or "
    'use condition="network"',
    c.MNP_DRAW_FEW: "less than a tenth of the particles are independent: raise gradients or draws, "
    'or use condition="network"',
    c.MNP_DRAW_MISSED: "the functions miss the points, which may contradict each other or lie far "
    'from the training data; compare with condition="network"',
}


class Report(NamedTuple):
    """How the functions were drawn. Numbers that the way of drawing does not have are NaN or 0."""

    condition: str  #: what was done: "network" also without points or latents
    particles: int
    gradients: int  #: of each particle
    acceptance: float
    particle_ess: float  #: independent particles that these are worth
    rhat: float  #: 1 where the particles have settled
    log_evidence: float  #: log p(set), nats
    log_evidence_sd: float
    fit_before: float  #: log p(set | z) per point: the network's draws
    fit_after: float  #: and these
    warnings: tuple[str, ...]
    added: int  #: points since the drawing before, whose particles went on; 0: begun afresh
    log_added: float  #: log p(those points | the set before), nats
    moved: bool  #: weights alone left too few effective particles

    @classmethod
    def of(cls, r: c.mnp_draw_report) -> Report:
        return cls(
            CONDITIONS[r.condition],
            r.particles,
            r.gradients,
            r.acceptance,
            r.particle_ess,
            r.rhat,
            r.log_evidence,
            r.log_evidence_sd,
            r.fit_before,
            r.fit_after,
            tuple(text for bit, text in WARNINGS.items() if r.warnings & bit),
            r.added,
            r.log_added,
            bool(r.moved),
        )


class Prediction(NamedTuple):
    """What is expected at n targets, noise of measurements included unless asked otherwise."""

    mean: np.ndarray  #: (n,)
    sd: np.ndarray  #: (n,)
    quantiles: np.ndarray  #: (levels, n)


class Score(NamedTuple):
    """log p(targets | context) of one function in nats, over all targets together."""

    bound: float  #: importance-weighted; exact for a process without latents
    prior: float  #: prior sampling


def order_of(name: str) -> int:
    """An order of targets in turn, by its name."""
    if name not in ORDERS:
        raise InvalidError(f"order is {name!r}: give random or x")
    return ORDERS[name]


class How(NamedTuple):
    """How functions are drawn given points."""

    condition: int
    given: bool  #: by the caller: nothing else will do
    noted: bool  #: by the model: it was scored so
    draws: int
    gradients: int
    seed: int
    device: bytes


def how_of(
    model: Handle,
    condition: str | None,
    draws: int,
    gradients: int | None,
    seed: int,
    device: str,
) -> How:
    """The arguments, checked; without a condition what `mnp predict` would do."""
    given = condition is not None
    noted = False
    if given:
        kind = condition_of(condition)
    else:
        usual = ctypes.c_int()
        noted = lib.mnp_model_condition(model, ctypes.byref(usual))
        one = lib.mnp_model_x_dim(model) == 1
        kind = usual.value if noted else c.MNP_REFINE if one else c.MNP_NETWORK
    draws = whole(draws, "draws", 1, DRAWS_MAX)
    gradients = 0 if gradients is None else whole(gradients, "gradients", 1)
    return How(kind, given, noted, draws, gradients, seed_of(seed), text(device, "device"))


def condition_of(name: str) -> int:
    """The way of drawing by its name."""
    if name not in CONDITIONS:
        raise InvalidError(f"condition is {name!r}: give one of {', '.join(CONDITIONS)}")
    return CONDITIONS.index(name)


def count_of(n: int | None, usual: int) -> int:
    """How many functions; None for the usual number."""
    return usual if n is None else whole(n, "n", 1, DRAWS_MAX)


def or_by_network(call: Callable[[], Any], opts: Any, given: bool) -> None:
    """A call that draws as opts.condition says. Where the process cannot, and the caller did not
    ask for just that, the network draws."""
    try:
        call()
    except UnsupportedError as error:
        if given or opts.condition == c.MNP_NETWORK:
            raise
        warn(f"drawn by the network: {error}")
        opts.condition = c.MNP_NETWORK
        call()


def too_many(how: How, points: int, draws: int) -> bool:
    """Does the default leave them to the network?"""
    usual = not how.given and not how.noted and how.condition != c.MNP_NETWORK
    return usual and points * draws > WORK_MAX


def levels_of(q: Any) -> np.ndarray:
    levels = np.atleast_1d(numbers(q, "q"))
    if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
        raise InvalidError("q holds probabilities from 0 to 1: a number, or an array (levels,)")
    return levels


class _Drawing:
    """A predictor and the functions it has drawn."""

    __slots__ = ("context", "predictor", "report")

    def __init__(self, context: _context.Context, predictor: Handle) -> None:
        self.context = context
        self.predictor = predictor
        self.report: Report | None = None  # None: to be drawn


# ---- one context ---------------------------------------------------------------------------------


class Posterior:
    """A process given points. Made by `Process.condition`.

    Functions are drawn at the first question, by the seed; they then answer all questions, and stay
    the same functions. `draws` of them are behind `mean`, `sd`, `quantile` and `log_prob`. Numbers
    include the noise of measurements unless `noise=False`, and are those of `mnp predict`. The
    functions of `sample` have no noise unless `noise=True`, as in `mnp sample`.

    Threads may share a posterior: they wait for each other. A pickled posterior, or one that was
    made before a fork, draws its functions again by its seed.
    """

    def __init__(self, model: Handle, x_dim: int, x: Any, y: Any, how: How) -> None:
        self._model: Handle | None = model
        self._x_dim = x_dim
        self._how = how
        if x is None and y is None:
            x, y = np.empty((0, x_dim)), np.empty(0)
        x = inputs(x, x_dim)
        self._x = np.array(x.reshape(-1, x_dim))  # ours: they are read again after a fork
        self._y = np.array(outputs(y, x.shape[0]))
        self._fresh()
        self._drawings[how.draws] = self._begin()  # so that bad points are refused at once
        self._reach = reach_of(model)
        if len(self._y):
            self._reach.check(model, self._x, self._y, "observed")
            self._reach.count(len(self._y))

    def _fresh(self) -> None:
        self._lock = RLock()
        self._generation = _context.generation
        self._drawings: dict[int, _Drawing] = {}

    def _begin(self) -> _Drawing:
        context = current()
        handle = context.make(
            lib.mnp_predictor_create,
            opened(self._model, "Posterior"),
            self._how.device,
            destroy=lib.mnp_predictor_destroy,
            keep=True,
        )
        points = one_set(self._x, self._y)
        context.call(lib.mnp_predictor_condition, handle, ctypes.byref(points))
        return _Drawing(context, handle)

    def _drawn(self, draws: int) -> _Drawing:
        """The drawing of so many functions; the last few are kept. The lock is held."""
        drawing = self._drawings.get(draws)
        if drawing is None:
            if len(self._drawings) > 3:
                del self._drawings[next(k for k in self._drawings if k != self._how.draws)]
            drawing = self._drawings[draws] = self._begin()
        if drawing.report is None:
            self._draw(drawing, draws)
        return drawing

    def _draw(self, drawing: _Drawing, draws: int) -> None:
        how = self._how
        opts = c.mnp_draw_opts(
            condition=how.condition, samples=draws, gradients=how.gradients, seed=how.seed
        )
        report = c.mnp_draw_report()
        if too_many(how, len(self._y), draws) and lib.mnp_model_latent(self._model):
            warn(
                f"{len(self._y)} points and {draws} functions are many: drawn by the network; "
                'condition="refine" is more accurate and takes longer',
            )
            opts.condition = c.MNP_NETWORK
        arguments = (drawing.predictor, ctypes.byref(opts), ctypes.byref(report))
        or_by_network(
            lambda: drawing.context.call(lib.mnp_predictor_draw, *arguments), opts, how.given
        )
        drawing.report = Report.of(report)
        for doubt in drawing.report.warnings:
            warn(doubt)

    def _inside(self) -> RLock:
        """The lock, and the exception for a closed posterior."""
        if self._model is None:
            raise ClosedError("this Posterior is closed")
        if self._generation != _context.generation:
            self._fresh()
        for drawing in list(self._drawings.values()):  # before waiting for one who waits for us
            drawing.context.refuse_inside()
        return self._lock

    # ---- questions -------------------------------------------------------------------------------

    def _summary(
        self, x: Any, levels: np.ndarray | None, noise: bool, mean: bool = True, sd: bool = True
    ) -> Prediction:
        x = self._targets(x)
        n = x.shape[0]
        count = 0 if levels is None else levels.shape[0]
        space = np.empty((2 + count, n))
        at = address(space)
        out = c.mnp_summary(mean=at if mean else None, sd=at + 8 * n if sd else None)
        if count:
            out.levels, out.level, out.quantiles = count, address(levels), at + 16 * n
        with self._inside():
            drawing = self._drawn(self._how.draws)
            drawing.context.call(
                lib.mnp_predictor_summary,
                drawing.predictor,
                address(x),
                n,
                noise,
                ctypes.byref(out),
            )
        return Prediction(space[0], space[1], space[2:])

    def _targets(self, x: Any) -> np.ndarray:
        x = inputs(x, self._x_dim)
        if x.shape[0] == 0:
            raise InvalidError("x is empty: give one place or more")
        self._reach.check(opened(self._model, "Posterior"), x, None, "asked")
        return x

    def predict(self, x: Any, q: Any = USUAL_LEVELS, *, noise: bool = True) -> Prediction:
        """Mean and sd (n,) and quantiles (levels, n) at x (n,) or (n, x_dim), in one call."""
        return self._summary(x, levels_of(q), noise)

    def mean(self, x: Any, *, noise: bool = True) -> np.ndarray:
        """Mean over the functions at x (n,) or (n, x_dim): (n,)."""
        return self._summary(x, None, noise, sd=False).mean

    def sd(self, x: Any, *, noise: bool = True) -> np.ndarray:
        """Standard deviation over the functions at x (n,) or (n, x_dim): (n,)."""
        return self._summary(x, None, noise, mean=False).sd

    def quantile(self, x: Any, q: Any, *, noise: bool = True) -> np.ndarray:
        """Quantiles at x: (n,) for one probability q, (levels, n) for several."""
        levels = levels_of(q)
        out = self._summary(x, levels, noise, False, False).quantiles
        return out[0] if np.ndim(q) == 0 else out

    def bands(self, x: Any, q: Any = USUAL_LEVELS) -> Prediction:
        """What would be measured at each place by itself: smooth in x, as a picture wants it. A
        process without latents (gp, lmm) integrates its density. (n,), (n,), (levels, n)."""
        x = self._targets(x)
        levels = levels_of(q)
        n, count = x.shape[0], levels.shape[0]
        space = np.empty((2 + count, n))
        at = address(space)
        out = c.mnp_summary(
            levels=count, level=address(levels), mean=at, sd=at + 8 * n, quantiles=at + 16 * n
        )
        with self._inside():
            drawing = self._drawn(self._how.draws)
            drawing.context.call(
                lib.mnp_predictor_bands, drawing.predictor, address(x), n, ctypes.byref(out)
            )
        return Prediction(space[0], space[1], space[2:])

    def sample(self, x: Any, n: int | None = None, *, noise: bool = False) -> np.ndarray:
        """n whole functions at x: (n, len(x)). The same n gives the same functions at any x; those
        behind `mean` without n. A process without latents (gp) draws anew for each x."""
        return self._values(lib.mnp_predictor_predict, (), x, n, noise)

    def chain(self, x: Any, n: int | None = None, *, noise: bool = False) -> np.ndarray:
        """The way of n functions through the Markov chain, y_0 to y_T at x: (T + 1, n, len(x)), in
        the model's own units."""
        steps = lib.mnp_model_steps(opened(self._model, "Posterior"))
        return self._values(lib.mnp_predictor_path, (steps + 1,), x, n, noise)

    def _values(self, call, first: tuple, x: Any, n: int | None, noise: bool) -> np.ndarray:
        """What a call says of n functions at x: (*first, n, len(x))."""
        x = self._targets(x)
        draws = count_of(n, self._how.draws)
        out = np.empty((*first, draws, x.shape[0]))
        with self._inside():
            drawing = self._drawn(draws)
            drawing.context.call(
                call, drawing.predictor, address(x), x.shape[0], noise, address(out)
            )
        return out

    def log_prob(self, x: Any, y: Any, *, pointwise: bool = False) -> float | np.ndarray:
        """log p(y at x | context) in nats: of all points together, or (n,) of each by itself.

        It is the log of the mean density over the functions drawn, exact for a process without
        latents. The joint one is uncertain for many points: see `score` for a bound.
        """
        x = self._targets(x)
        y = outputs(y, x.shape[0])
        if not pointwise and not lib.mnp_model_latent(opened(self._model, "Posterior")):
            return self.score(x, y, samples=1).bound
        points = one_set(x, y)
        logp = np.empty((self._how.draws, x.shape[0]))
        with self._inside():
            drawing = self._drawn(self._how.draws)
            drawing.context.call(
                lib.mnp_predictor_logp, drawing.predictor, ctypes.byref(points), address(logp)
            )
        if pointwise:
            top = logp.max(axis=0)
            return top + np.log(np.mean(np.exp(logp - top), axis=0))
        return log_mean_exp(np.cumsum(logp, axis=1)[:, -1])

    def score(self, x: Any, y: Any, *, samples: int = 20, seed: int | None = None) -> Score:
        """Estimates of log p(y at x | context) by `samples` draws of the latents, as `mnp score`
        prints them: they do not depend on how functions are drawn here."""
        x = self._targets(x)
        targets = one_set(x, outputs(y, x.shape[0]))
        context, points = current(), one_set(self._x, self._y)
        bound, prior = ctypes.c_double(), ctypes.c_double()
        context.call(
            lib.mnp_score_set,
            context,
            opened(self._model, "Posterior"),
            ctypes.byref(points),
            ctypes.byref(targets),
            whole(samples, "samples", 1, DRAWS_MAX),
            self._how.seed if seed is None else seed_of(seed),
            ctypes.byref(bound),
            ctypes.byref(prior),
        )
        return Score(bound.value, prior.value)

    def score_in_turn(
        self, x: Any, y: Any, *, order: str = "random", orders: int = 1, seed: int | None = None
    ) -> np.ndarray:
        """log p(y at x | context) by the chain rule, each point given the context and the points
        before it: (orders,), one for each order. For models without latents.

        A process (gp, lmm) gives the same in every order. cnp, tnp and convcnp, which predict each
        point by itself, have a joint density by this alone, and it depends on the order: "random",
        or "x", by the rising first input.

        >>> import mnp
        >>> data = mnp.Data.family("rbf", functions=20)
        >>> posterior = mnp.train(data, model="gp", steps=1).condition([0.0], [0.5])
        >>> scores = posterior.score_in_turn([0.2, 0.4], [0.5, 0.3], orders=3)
        >>> scores.shape, bool(abs(scores[0] - scores[1]) < 1e-6)
        ((3,), True)
        """
        x = self._targets(x)
        targets = one_set(x, outputs(y, x.shape[0]))
        opts = self._turns(order, seed)
        opts.orders = whole(orders, "orders", 1, ORDERS_MAX)
        context, points, out = current(), one_set(self._x, self._y), np.empty(opts.orders)
        context.call(
            lib.mnp_score_in_turn,
            context,
            opened(self._model, "Posterior"),
            ctypes.byref(points),
            ctypes.byref(targets),
            ctypes.byref(opts),
            address(out),
        )
        return out

    def sample_in_turn(
        self, x: Any, n: int | None = None, *, order: str = "random", seed: int | None = None
    ) -> np.ndarray:
        """n draws with noise at x, each place given the context and those drawn before it: (n,
        len(x)). For models without latents; every draw has an order of its own."""
        x = self._targets(x)
        draws = count_of(n, self._how.draws)
        context, points = current(), one_set(self._x, self._y)
        opts, out = self._turns(order, seed), np.empty((draws, x.shape[0]))
        context.call(
            lib.mnp_sample_in_turn,
            context,
            opened(self._model, "Posterior"),
            ctypes.byref(points),
            address(x),
            x.shape[0],
            ctypes.byref(opts),
            draws,
            address(out),
        )
        return out

    def _turns(self, order: str, seed: int | None) -> c.mnp_turn_opts:
        return c.mnp_turn_opts(
            order=order_of(order),
            seed=self._how.seed if seed is None else seed_of(seed),
            device=self._how.device,
        )

    def functions(self, n: int) -> Functions:
        """n functions that stay: callables f(x) -> (len(x),), f(0.3) -> a number, also after
        `observe`.

        >>> import mnp
        >>> posterior = mnp.load("mnp-monotonic").condition([0.5], [0.5])
        >>> f, g = posterior.functions(2)
        >>> bool((f([0.2, 0.4])[1:] == f([0.4])).all())
        True
        """
        model = opened(self._model, "Posterior")
        if lib.mnp_model_factorises(model):
            raise UnsupportedError(
                "the model predicts each point by itself and has no functions: use sample(x, n)"
            )
        if not lib.mnp_model_latent(model):
            raise UnsupportedError(
                "a process without latents draws its functions jointly at the places of one call: "
                "use sample(x, n)"
            )
        how = self._how._replace(draws=count_of(n, self.draws))
        return Functions(Posterior(self._model, self._x_dim, self._x, self._y, how))

    def plot(self, at: Any = None, **options: Any) -> Any:
        """A picture: see `mnp.plotting.plot_posterior`."""
        from .plotting import plot_posterior

        return plot_posterior(self, at, **options)

    def to_xarray(self, x: Any, n: int | None = None, *, noise: bool = False) -> Any:
        """`sample` as an xarray.DataArray with the dimensions draw and point: see
        `mnp.frames.draws_to_xarray`."""
        from .frames import draws_to_xarray

        return draws_to_xarray(self, x, n, noise=noise)

    @property
    def report(self) -> Report:
        """How the functions behind `mean` were drawn; draws them if that is yet to be done."""
        with self._inside():
            return self._drawn(self._how.draws).report

    # ---- points ----------------------------------------------------------------------------------

    def observe(self, x: Any, y: Any) -> Posterior:
        """Adds points: x (m,) or (m, x_dim) and y (m,), or one point (x, y). Returns itself.

        The functions follow at the next question; exact conditioning goes on with its particles.
        """
        y = np.atleast_1d(numbers(y, "y"))
        x = numbers(x, "x")
        if x.ndim == 0 or (x.ndim == 1 and y.shape == (1,) and x.shape[0] == self._x_dim):
            x = x.reshape(1, -1)
        x = inputs(x, self._x_dim).reshape(-1, self._x_dim)
        y = outputs(y, x.shape[0])
        if len(y) == 0:
            return self
        with self._inside():
            self._reach.check(self._model, x, y, "observed")  # a warning may be an error
            self._reach.count(len(self._y) + len(y), len(self._y))
            try:
                for drawing in self._drawings.values():
                    for k in range(x.shape[0]):
                        drawing.context.call(
                            lib.mnp_predictor_observe,
                            drawing.predictor,
                            address(x) + 8 * k * self._x_dim,
                            y[k],
                        )
                    drawing.report = None
            except BaseException:
                self._drawings.clear()  # some have seen a part: they begin again without it
                raise
            self._x = np.concatenate([self._x, x])
            self._y = np.concatenate([self._y, y])
        return self

    @property
    def x(self) -> np.ndarray:
        """The observed places, (n,) or (n, x_dim)."""
        return self._x[:, 0].copy() if self._x_dim == 1 else self._x.copy()

    @property
    def y(self) -> np.ndarray:
        """The observed values, (n,)."""
        return self._y.copy()

    def __len__(self) -> int:
        """How many points are observed."""
        return len(self._y)

    def __bool__(self) -> bool:
        return True

    @property
    def draws(self) -> int:
        return self._how.draws

    @property
    def seed(self) -> int:
        return self._how.seed

    # ---- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees its memory, once nobody uses it. Twice is no error."""
        self._model = None
        self._drawings = {}

    def __enter__(self) -> Posterior:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Posterior:
        return Posterior(opened(self._model, "Posterior"), self._x_dim, self._x, self._y, self._how)

    def __deepcopy__(self, memo: dict) -> Posterior:
        return self.__copy__()

    def __reduce__(self):
        from .process import model_bytes

        parts = (self._x_dim, self._x, self._y, tuple(self._how))
        return _restored, (model_bytes(opened(self._model, "Posterior")), *parts)

    def __repr__(self) -> str:
        if self._model is None:
            return "<mnp.Posterior, closed>"
        kind = CONDITIONS[self._how.condition]
        return f"<mnp.Posterior given {len(self)} points, {kind}, {self.draws} draws>"


def log_mean_exp(values: np.ndarray) -> float:
    """Added up one by one, as the library does it."""
    top = float(values.max())
    total = 0.0
    for v in values.tolist():
        total += math.exp(v - top)
    return top + math.log(total / len(values))


def _restored(model: bytes, x_dim: int, x: np.ndarray, y: np.ndarray, how: tuple) -> Posterior:
    from .process import model_of

    return Posterior(model_of(model), x_dim, x, y, How(*how))


class Function:
    """One function of a posterior: f(x) -> (len(x),); a number for one place, f(0.3)."""

    def __init__(self, of: Functions, k: int) -> None:
        self._of = of
        self._k = k

    def __call__(self, x: Any) -> np.ndarray | float:
        if np.ndim(x) == 0:
            return float(self._of.values([x])[self._k, 0])
        return self._of.values(x)[self._k].copy()


class Functions(Sequence):
    """Functions of a posterior that stay the same: a sequence of callables, and a callable that
    answers for all of them at once: (n, len(x)), or (n,) for one place."""

    def __init__(self, of: Posterior) -> None:
        self._of = of
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def values(self, x: Any) -> np.ndarray:
        """(n, len(x)), not to be changed. One after the other is often asked about the same x: the
        library answers for all of them at once, so the last answer is kept."""
        x = numbers(x, "x")
        last = self._last
        if last is None or last[0].shape != x.shape or not np.array_equal(last[0], x):
            last = self._last = (x.copy(), self._of.sample(x))
        return last[1]

    def __len__(self) -> int:
        return self._of.draws

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not -len(self) <= k < len(self):
            raise IndexError(f"function {k} of {len(self)}")
        return Function(self, k % len(self))

    def __call__(self, x: Any) -> np.ndarray:
        return self._of.sample([x])[:, 0] if np.ndim(x) == 0 else self._of.sample(x)
