"""Scores of a process on functions it has not seen, the laws it should keep, and calibration.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> scores = process.evaluate("monotonic", functions=2, samples=2)
>>> scores.functions
2
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import seed_of, text, whole
from ._context import current
from ._library import lib
from .data import Data, as_data
from .errors import InvalidError
from .posterior import ORDERS_MAX, condition_of, order_of

if TYPE_CHECKING:
    from .process import Process


class ContextScore(NamedTuple):
    """The score of functions whose contexts have lo to hi points."""

    lo: int
    hi: int
    functions: int
    loglik: float
    se: float


class Predictive(NamedTuple):
    """Scores of draws, target by target. Log-densities in nats per target, means over functions;
    what is not known or was not asked for is NaN. docs/user/scores.md has the definitions."""

    context_lo: int
    context_hi: int
    functions: int
    targets: int
    marginal: float
    marginal_se: float
    marginal_mixture: float
    marginal_mixture_half: float
    marginal_true: float
    marginal_short: float
    marginal_short_se: float
    crps: float
    crps_true: float
    kl_true: float
    coverage50: float
    coverage80: float
    coverage95: float
    pit: tuple[float, ...]
    context_off: float
    joint_exact: float
    joint_exact_se: float
    joint_exact_bias: float
    joint_true: float
    joint_short: float
    joint_short_se: float
    gradients: float
    acceptance: float
    particle_ess: float
    rhat: float
    warned: int
    sandwich_lower: float
    sandwich_upper: float
    sandwich_gap: float
    sandwich_se: float
    joint_hurried: float


class Scores(NamedTuple):
    """Nats per scored point; higher is better."""

    loglik: float  #: importance-weighted bound; exact for a process without latents
    se: float  #: its standard error over functions
    elbo: float
    kl: float
    ess: float
    loglik_prior_sampling: float
    se_prior_sampling: float
    loglik_true: float  #: of the process that made the data; NaN where it is not known
    se_true: float
    coverage50: float
    coverage80: float
    coverage95: float
    crps: float  #: in units of y
    functions: int
    points: int
    samples: int  #: 0: the scores are exact
    loglik_pixels: float  #: images
    se_pixels: float
    loglik_in_turn: float  #: targets in turn, the mean over orders; NaN where not asked for
    se_in_turn: float
    order_sd: float  #: how much the orders of a function differ; NaN for one
    by_context: tuple[ContextScore, ...]
    predictive: tuple[Predictive, ...]  #: of draws: all functions, then by context size; or ()
    predictive_network: tuple[Predictive, ...]  #: of the network's draws, to compare with; or ()


class Laws(NamedTuple):
    """How far the laws of a stochastic process are from holding (mnp_laws of mnp.h)."""

    permutation: float
    marginal: float
    conditional: float
    conditional_se: float
    functions: int
    samples: int
    conditional_noise: float
    conditional_errors: float
    joint: float
    joint_se: float
    half_samples: int
    half_conditional: float
    half_conditional_se: float
    half_conditional_noise: float
    half_joint: float
    half_joint_se: float
    hurried: int


class Calibration(NamedTuple):
    """Ranks of functions of the model itself among draws: uniform where the draws are right."""

    functions: int
    draws: int
    context: int
    chance: float
    mean: float
    spread: float
    acceptance: float
    hurried: int
    inside95: bool
    inside99: bool
    ranks: np.ndarray  #: (functions,), 0 to draws


def _taken(kind: type, struct: ctypes.Structure, **more: Any) -> Any:
    """The members of a struct by the names of the tuple."""
    out = dict(more)
    for name in kind._fields:
        if name not in out:
            value = getattr(struct, name)
            out[name] = tuple(value) if isinstance(value, ctypes.Array) else value
    return kind(**out)


def _test_data(process: Process, data: Any, functions: int, seed: int) -> Data:
    """The model's own test functions, those of a family's test split, of a file that is read as
    the model's own was, or what is given."""
    if data is None:
        return process.data("test", functions)
    if not isinstance(data, (str, os.PathLike)):
        return as_data(data, like=process)
    return Data._open(
        os.fspath(data),
        functions=functions,
        seed=seed_of(seed),
        split=c.MNP_TEST,
        like=process.handle._as_parameter_,
    )


def evaluate(
    process: Process,
    data: Any = None,
    *,
    functions: int = 1000,
    samples: int = 20,
    draws: int | None = None,
    condition: str | None = None,
    gradients: int | None = None,
    joint: int = 0,
    joint_particles: int = 0,
    sandwich: bool = False,
    context: Sequence[int] | str | None = None,
    order: str | None = None,
    orders: int = 1,
    protocol: str = "strict",
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], Any] | None = None,
) -> Scores:
    """Scores on held-out functions, as `mnp eval` gives them.

    data: an `mnp.Data`, the name of a family, a CSV file, a pair (x, y); None: the model's own.
    context: sizes of the contexts, (lo, hi), or a list of three or more rising sizes, each used for
    every function; None: the data's own. draws, condition, joint or sandwich ask for scores of
    draws too (`Scores.predictive`), and coverage and CRPS are then theirs. joint: replicates of the
    joint score, of joint_particles (64) each. order: "random" or "x" scores the targets in turn
    too, in `orders` orders
    (`Posterior.score_in_turn`). protocol: "strict" (points outside the context) or "authors" (all
    points).
    """
    functions = whole(functions, "functions", 0)
    samples = whole(samples, "samples", 0)
    draws = _given(draws, "draws")
    gradients = _given(gradients, "gradients")
    joint = whole(joint, "joint", 0)
    joint_particles = whole(joint_particles, "joint_particles", 0)
    wanted = bool(draws or condition is not None or joint or sandwich)
    own = _test_data(process, data, functions, seed)
    ctx = current()
    call = ctx.progress(progress)
    opts = c.mnp_eval_opts(
        functions=functions,
        samples=samples,
        protocol=_protocol(protocol),
        seed=seed_of(seed),
        device=text(device, "device"),
        progress=call,
    )
    kept = _sizes(opts, context)
    if order is not None:
        opts.order, opts.orders = order_of(order), whole(orders, "orders", 1, ORDERS_MAX)
    if wanted:
        opts.draws = -1
    scores = c.mnp_scores()
    model, handle = process.handle, own.handle
    ctx.call(lib.mnp_evaluate, ctx, model, handle, ctypes.byref(opts), ctypes.byref(scores))
    predictive: tuple[Predictive, ...] = ()
    network: tuple[Predictive, ...] = ()
    more: dict[str, Any] = {}
    if wanted:
        opts.draws, opts.orders = draws, 0
        how = c.mnp_predictive_opts(
            draws=draws,
            condition=condition_of(condition or "network"),
            gradients=gradients,
            replicates=joint,
            particles=joint_particles,
            sandwich=bool(sandwich),
        )
        predictive = _predictive(ctx, process, own, opts, how)
        if how.condition != c.MNP_NETWORK:
            plain = c.mnp_predictive_opts(draws=draws)
            network = _predictive(ctx, process, own, opts, plain)
        more = {k: getattr(predictive[0], k) for k in ("coverage50", "coverage80", "coverage95")}
        more["crps"] = predictive[0].crps
    del kept
    bins = tuple(
        ContextScore(
            scores.bin_lo[k],
            scores.bin_hi[k],
            scores.bin_functions[k],
            scores.bin_loglik[k],
            scores.bin_se[k],
        )
        for k in range(scores.bins)
    )
    return _taken(
        Scores, scores, by_context=bins, predictive=predictive, predictive_network=network, **more
    )


def _given(value: int | None, name: str) -> int:
    """A number that is 1 or more; 0, the library's default, for None."""
    return 0 if value is None else whole(value, name, 1)


def _protocol(name: str) -> int:
    if name not in ("strict", "authors"):
        raise InvalidError(f"protocol is {name!r}: give strict or authors")
    return c.MNP_STRICT if name == "strict" else c.MNP_AUTHORS


def _sizes(opts: c.mnp_eval_opts, context: Sequence[int] | str | None) -> Any:
    """Sizes into the options; what they point at is for the caller to keep."""
    if context is None:
        return None
    if isinstance(context, str):
        opts.context = text(context, "context")
        return None
    if not isinstance(context, (Sequence, np.ndarray)):
        raise InvalidError(f"context is {context!r}: give (lo, hi), a list of sizes, or a text")
    sizes = [whole(n, "context", 0) for n in context]
    if len(sizes) == 2:
        opts.context_lo, opts.context_hi = sizes
        return None
    block = (ctypes.c_int64 * len(sizes))(*sizes)
    opts.sizes, opts.n_sizes = ctypes.addressof(block), len(sizes)
    return block


def _predictive(ctx, process, data, opts, how) -> tuple[Predictive, ...]:
    rows = (c.mnp_predictive * c.MNP_PREDICTIVE_ROWS)()
    for row in rows:
        row.size = ctypes.sizeof(c.mnp_predictive)
    ctx.call(
        lib.mnp_evaluate_draws,
        ctx,
        process.handle,
        data.handle,
        ctypes.byref(opts),
        ctypes.byref(how),
        ctypes.byref(rows),
        len(rows),
    )
    return tuple(_taken(Predictive, row) for row in rows if row.functions)


def check(
    process: Process,
    data: Any = None,
    *,
    condition: str = "network",
    functions: int = 20,
    samples: int | None = None,
    gradients: int | None = None,
    replicates: int = 2,
    context: int = 0,
    targets: int = 0,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], Any] | None = None,
) -> Laws:
    """How well the laws of a stochastic process hold, as `mnp check` measures it.

    condition: "network" or "exact". samples: draws for a score, particles for exact. context:
    points of the context, 0 for sizes that the data have; targets: points that are scored, 0 for
    all others (exact: 8).
    """
    functions = whole(functions, "functions", 1)
    own = _test_data(process, data, functions, seed)
    ctx = current()
    opts = c.mnp_laws_opts(
        condition=condition_of(condition),
        functions=functions,
        samples=_given(samples, "samples"),
        gradients=_given(gradients, "gradients"),
        replicates=whole(replicates, "replicates", 2, 1024),
        context=whole(context, "context", 0),
        targets=whole(targets, "targets", 0),
        seed=seed_of(seed),
        device=text(device, "device"),
        progress=ctx.progress(progress),
    )
    laws = c.mnp_laws()
    ctx.call(
        lib.mnp_check_laws,
        ctx,
        process.handle,
        own.handle,
        ctypes.byref(opts),
        ctypes.byref(laws),
    )
    return _taken(Laws, laws)


def calibrate(
    process: Process,
    data: Any = None,
    *,
    condition: str = "network",
    functions: int = 500,
    draws: int = 100,
    context: int = 10,
    gradients: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], Any] | None = None,
) -> Calibration:
    """Ranks functions of the model itself among draws given `context` of their points, as
    `mnp check --calibration` does. The data give the inputs."""
    functions = whole(functions, "functions", 1, 10_000)  # ranks has room for just these
    own = _test_data(process, data, functions, seed)
    ctx = current()
    opts = c.mnp_calibration_opts(
        condition=condition_of(condition),
        functions=functions,
        draws=whole(draws, "draws", 1, 1000),
        context=whole(context, "context", 1),
        gradients=_given(gradients, "gradients"),
        seed=seed_of(seed),
        device=text(device, "device"),
        progress=ctx.progress(progress),
    )
    ranks = np.empty(functions, np.int64)
    out = c.mnp_calibration()
    ctx.call(
        lib.mnp_calibrate,
        ctx,
        process.handle,
        own.handle,
        ctypes.byref(opts),
        ranks.ctypes.data,
        ctypes.byref(out),
    )
    return _taken(Calibration, out, ranks=ranks)
