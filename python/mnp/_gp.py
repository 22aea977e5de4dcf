"""The process `gp` in closed form: its kernel, likelihood and conditional, in double precision.

    k(a, b) = sum of the parts asked for, each with a variance v and a lengthscale l:
      rbf        v exp(-d^2 / (2 l^2))
      matern     v (1 + u + u^2 / 3) exp(-u),  u = sqrt(5) d / l
      periodic   v exp(-2 q / l^2),  q = sum_j sin^2(pi d_j / p)

with d the Euclidean distance of two inputs and d_j its components. Measurements add a noise
variance on the diagonal; the process has a constant mean. All this is in standardised units. A
model file has the logarithms of these numbers as its weights. So what is fitted here is a `Process`
too, and what `mnp.train` has fitted can be used here.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import struct
import threading
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from threadpoolctl import ThreadpoolController

from ._context import current
from ._library import lib
from .errors import InvalidError
from .process import _OF_MODELS, Process

PARTS = ("rbf", "matern", "periodic")
INPUTS_MAX = 64  # of a process
NOISE_FLOOR = 1e-7  # the option gp_noise_floor as it is by default
SMALL = 4000  # rows of a matrix that one thread works on
PERIOD_STARTS = (0.25, 0.5, 1.0, 2.0)

# Where the numbers stand in a vector theta of logarithms; the mean is itself.
VARIANCE, LENGTH, PERIOD, NOISE, MEAN = slice(0, 3), slice(3, 6), 6, 7, 8
LIMITS = np.log([[1e-4, 1e4]] * 3 + [[1e-2, 1e3]] * 3 + [[0.05, 20.0], [1e-9, 10.0], [1, 1]])
LIMITS[MEAN] = (-5.0, 5.0)


class Kernel(NamedTuple):
    """Hyperparameters of the process, in standardised units."""

    parts: tuple[str, ...]
    variance: np.ndarray  #: (3,), in the order of PARTS
    length: np.ndarray  #: (3,)
    period: float
    noise: float  #: variance
    mean: float
    power: int = 2  #: of the length in the periodic part: 1 with gp_unsquared


class Scale(NamedTuple):
    """Standardised numbers are (raw - shift) / spread."""

    x_shift: np.ndarray  #: (x_dim,)
    x_spread: np.ndarray
    y_shift: float
    y_spread: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Scale:
        y_shift, y_spread = _moments(y[:, None], "y")
        return cls(*_moments(x, "X"), float(y_shift[0]), float(y_spread[0]))

    def inside(self, x: np.ndarray) -> np.ndarray:
        return (x - self.x_shift) / self.x_spread


def _moments(columns: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of each column; a constant one stays as it is."""
    if np.abs(columns).max() > 1e100:  # squares must be numbers too
        raise InvalidError(f"{name} holds numbers beyond 1e100: take other units")
    shift = columns.mean(axis=0)
    spread = columns.std(axis=0)
    constant = spread <= 1e-12 * np.maximum(np.abs(shift), 1e-300)
    return shift, np.where(constant, 1.0, spread)


def parts_of(kernel: str) -> tuple[str, ...]:
    """ "rbf+matern" as its parts."""
    names = tuple(kernel.split("+")) if isinstance(kernel, str) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= set(PARTS):
        raise InvalidError(
            f'kernel is {kernel!r}: give one of {", ".join(PARTS)}, or a sum as "rbf+matern"'
        )
    return names


class _OneThread:
    """While somebody is inside, BLAS works in one thread: matrices of a few hundred rows gain
    nothing by more, and lose much where other programs want the cores."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.pools: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.pools = self.pools or ThreadpoolController()  # it looks through all libraries
                self.limit = self.pools.limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


_one_thread = _OneThread()


def threads_for(n: int):
    """A context manager for work on n x n matrices."""
    return _one_thread if n <= SMALL else contextlib.nullcontext()


# ---- kernel and likelihood -----------------------------------------------------------------------


def covariance(k: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """K (na, nb) between a (na, x_dim) and b (nb, x_dim), without noise."""
    return sum(value for value, _ in _parts(k, a, b))


def _parts(k: Kernel, a: np.ndarray, b: np.ndarray, slopes: bool = False):
    """Of each part: K, and with `slopes` its derivatives by the places in theta."""
    d2 = cdist(a, b, "sqeuclidean")
    for name in k.parts:
        at = PARTS.index(name)
        v, length = k.variance[at], k.length[at]
        by: dict[int, np.ndarray] = {}
        if name == "rbf":
            value = v * np.exp(-0.5 * d2 / length**2)
            if slopes:
                by[3 + at] = value * d2 / length**2
        elif name == "matern":
            u = math.sqrt(5) / length * np.sqrt(d2)
            fall = v * np.exp(-u)
            value = fall * (1 + u + u * u / 3)
            if slopes:
                by[3 + at] = fall * u * u * (1 + u) / 3
        else:
            c = length**-k.power
            q, turn = _sines(k.period, a, b, slopes)
            value = v * np.exp(-2 * c * q)
            if slopes:
                by[3 + at] = value * 2 * k.power * c * q
                by[PERIOD] = value * 2 * c * turn
        if slopes:
            by[at] = value
        yield value, by


def _sines(period: float, a: np.ndarray, b: np.ndarray, slopes: bool):
    """q of the periodic part, and sum_j t_j sin(2 t_j) with t_j = pi d_j / p."""
    q = np.zeros((len(a), len(b)))
    turn = np.zeros_like(q) if slopes else q
    for j in range(a.shape[1]):
        t = math.pi / period * (a[:, j, None] - b[:, j])
        q += np.sin(t) ** 2
        if slopes:
            turn += t * np.sin(2 * t)
    return q, turn


def factor(k: Kernel, x: np.ndarray) -> np.ndarray:
    """L (n, n), lower, of K + noise."""
    sigma = covariance(k, x, x)
    sigma[np.diag_indices_from(sigma)] += k.noise
    return cholesky(sigma, lower=True, overwrite_a=True, check_finite=False)


def whiten(lower: np.ndarray, values: np.ndarray) -> np.ndarray:
    """L^-1 values."""
    return solve_triangular(lower, values, lower=True, check_finite=False)


def solve(lower: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(L L^T)^-1 values."""
    return cho_solve((lower, True), values, check_finite=False)


def log_likelihood(k: Kernel, lower: np.ndarray, u: np.ndarray) -> float:
    """log p(u), u (n,) standardised, with L from `factor`."""
    white = whiten(lower, u - k.mean)
    return float(
        -0.5 * white @ white - np.log(np.diag(lower)).sum() - 0.5 * len(u) * math.log(2 * math.pi)
    )


def _slopes(k: Kernel, x: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray]:
    """log p(u) and its derivatives by theta: (alpha^T D alpha - tr(Sigma^-1 D)) / 2 with D that of
    Sigma, which is symmetric."""
    sigma, by = np.zeros((len(u), len(u))), {}
    for value, slopes in _parts(k, x, x, True):
        sigma += value
        by.update(slopes)
    sigma[np.diag_indices_from(sigma)] += k.noise
    lower = cholesky(sigma, lower=True, overwrite_a=True, check_finite=False)
    value = log_likelihood(k, lower, u)
    alpha = solve(lower, u - k.mean)
    half = dpotri(lower, lower=1)[0].T  # one triangle of Sigma^-1, zeros in the other
    diagonal = np.diag(half)
    out = np.zeros(len(LIMITS))
    for at, slope in by.items():
        trace = 2 * np.vdot(half, slope) - diagonal @ np.diag(slope)
        out[at] = 0.5 * (alpha @ slope @ alpha - trace)
    out[NOISE] = 0.5 * (alpha @ alpha - diagonal.sum()) * (k.noise - NOISE_FLOOR)
    out[MEAN] = alpha.sum()
    return value, out


# ---- fitting -------------------------------------------------------------------------------------


def kernel_of(theta: np.ndarray, parts: tuple[str, ...]) -> Kernel:
    return Kernel(
        parts,
        np.exp(theta[VARIANCE]),
        np.exp(theta[LENGTH]),
        math.exp(theta[PERIOD]),
        NOISE_FLOOR + math.exp(theta[NOISE]),
        float(theta[MEAN]),
    )


def fit(
    x: np.ndarray, u: np.ndarray, parts: tuple[str, ...], starts: int, steps: int
) -> tuple[np.ndarray, int]:
    """theta that maximises log p(u) for x (n, x_dim) and u (n,), both standardised, from several
    starts; and the steps of the best search. Numbers are single precision, as weights are."""
    limits = LIMITS.copy()
    limits[LENGTH, 0] = math.log(_shortest(x))
    free = [i for i, name in enumerate(PARTS) if name in parts]
    free += [3 + i for i in free] + [NOISE, MEAN] + ([PERIOD] if "periodic" in parts else [])

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta = np.zeros(len(LIMITS))
        theta[free] = point
        try:
            value, slope = _slopes(kernel_of(theta, parts), x, u)
        except LinAlgError:
            return 1e25, np.zeros(len(free))
        return -value, -slope[free]

    end = {"maxiter": steps, "ftol": 1e-9, "gtol": 1e-3}  # a slope that is worth 1e-6 nats
    how = {"method": "L-BFGS-B", "bounds": limits[free], "options": end}
    with threads_for(len(u)):
        found = [
            minimize(loss, np.clip(theta, *limits.T)[free], jac=True, **how)
            for theta in _starts(x.shape[1], parts, starts)
        ]
    best = min(found, key=lambda r: r.fun)
    theta = np.zeros(len(LIMITS))
    theta[free] = best.x
    return theta.astype(np.float32).astype(float), int(best.nit)


def _shortest(x: np.ndarray) -> float:
    """The least lengthscale: half the usual distance of neighbours, for what varies faster than
    that cannot be told from noise."""
    apart = cdist(x, x)
    np.fill_diagonal(apart, np.inf)
    return float(np.clip(0.5 * np.median(apart.min(axis=0)), 1e-2, 1e2))


def _starts(x_dim: int, parts: tuple[str, ...], count: int):
    """Smooth with much noise, wiggly with little, and between them. Distances grow with the root of
    the number of inputs. Periods as the library's trainer starts them."""
    periods = PERIOD_STARTS if "periodic" in parts else (1.0,)
    for period in periods:
        for share in np.linspace(0, 1, count) if count > 1 else [0.5]:
            theta = np.zeros(len(LIMITS))
            theta[VARIANCE] = -math.log(len(parts))
            theta[LENGTH] = math.log(math.sqrt(x_dim)) + share * math.log(0.3)
            theta[PERIOD] = math.log(period)
            theta[NOISE] = math.log(0.3) + share * math.log(0.03)
            yield theta


# ---- model files ---------------------------------------------------------------------------------


def _header(data: bytes) -> tuple[dict, int]:
    """Of a safetensors file: what is where, and where the numbers begin."""
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), 8 + length


def _tensor(data: bytes, header: dict, first: int, name: str) -> np.ndarray:
    entry = header[name]
    lo, hi = (first + offset for offset in entry["data_offsets"])
    kind = {"F32": "<f4", "F64": "<f8"}[entry["dtype"]]
    return np.frombuffer(data, kind, offset=lo, count=(hi - lo) // int(kind[2])).astype(float)


def from_process(process: Process) -> tuple[Kernel, Scale]:
    """What a process of the kind gp has learnt."""
    options = process.options
    if process.kind not in ("gp", "gp_authors", "oracle"):
        raise InvalidError(f"the process is of the kind {process.kind}: give one of the kind gp")
    if options["gp_mean"] == "spline" and process.kind != "oracle":
        raise InvalidError("the mean of the process is a spline: train it with gp_mean=constant")
    if options["gp_season"] != "0" and process.kind != "oracle":
        raise InvalidError("the mean of the process has a season: train it with gp_season=0")
    if options["gp_fading"] == "on":
        raise InvalidError("the periodic part of the process fades: train it with gp_fading=off")
    data = process.to_bytes()
    header, first = _header(data)
    rate, soft = float(options["gp_rate"]), options["gp_softplus"] == "on"

    def number(name: str) -> np.ndarray:
        return rate * _tensor(data, header, first, name)

    def positive(name: str) -> np.ndarray:
        return np.logaddexp(0, number(name)) if soft else np.exp(number(name))

    kernel = Kernel(
        tuple(name for name in PARTS if options[f"gp_{name}"] == "on"),
        positive("gp.variance"),
        positive("gp.length"),
        float(positive("gp.period")[0]),
        float(options["gp_noise_floor"]) + float(positive("gp.noise")[0]),
        float(number("gp.mean")[0]),
        1 if options["gp_unsquared"] == "on" else 2,
    )
    x = _tensor(data, header, first, "scale.x").reshape(2, -1)
    y = _tensor(data, header, first, "scale.y")
    return kernel, Scale(x[0], x[1], float(y[0]), float(y[1]))


def to_process(theta: np.ndarray, parts: tuple[str, ...], scale: Scale) -> Process:
    """A process of the kind gp with these numbers."""
    words = [f"gp_{name}={'on' if name in parts else 'off'}" for name in PARTS]
    text = " ".join([f"x_dim={len(scale.x_shift)}", *words])
    made = current().make(
        lib.mnp_model_create, b"gp", None, text.encode(), None, ctypes.c_uint64(0), **_OF_MODELS
    )
    data = bytearray(Process(made).to_bytes())
    header, first = _header(data)
    weights = {
        "gp.variance": theta[VARIANCE],
        "gp.length": theta[LENGTH],
        "gp.period": [theta[PERIOD]],
        "gp.noise": [theta[NOISE]],
        "gp.mean": [theta[MEAN]],
        "scale.x": np.concatenate([scale.x_shift, scale.x_spread]),
        "scale.y": [scale.y_shift, scale.y_spread],
    }
    for name, values in weights.items():
        lo, hi = (first + offset for offset in header[name]["data_offsets"])
        kind = {"F32": "<f4", "F64": "<f8"}[header[name]["dtype"]]
        data[lo:hi] = np.asarray(values, kind).tobytes()
    return Process.from_bytes(bytes(data))
