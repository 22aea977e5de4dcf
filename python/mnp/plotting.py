"""Pictures of forecasts: matplotlib where it is installed, else SVG drawn by the library.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> picture = process.plot([0.1, 0.5], [-0.4, 0.2], condition="network", engine="svg")
>>> picture.svg.startswith("<?xml") or picture.svg.startswith("<svg")
True
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import address, inputs, numbers, one_set, outputs, whole
from ._context import current, warn
from ._library import lib
from .errors import Error, InvalidError, NotInstalledError
from .frames import (
    Question,
    Table,
    is_date,
    kind_of,
    moments,
    moving_input,
    outputs_of,
    read_context,
)

if TYPE_CHECKING:
    from .posterior import Posterior
    from .process import Process

BANDS = (0.95, 0.8, 0.5)
BLUE, VERMILION = "#0072B2", "#D55E00"  # of Okabe and Ito, as the library's pictures have them
PLACES = 200
PANELS = 12  # in a picture


class Picture:
    """A picture drawn by the library. Notebooks show it; `save` writes .svg, and .png or .pdf where
    cairo is installed."""

    def __init__(self, save: Callable[[str], None]) -> None:
        self._save = save
        self._svg: str | None = None

    @property
    def svg(self) -> str:
        """The picture as SVG text."""
        if self._svg is None:
            with tempfile.TemporaryDirectory(prefix="mnp") as folder:
                path = os.path.join(folder, "picture.svg")
                self._save(path)
                with open(path, encoding="utf-8") as file:
                    self._svg = file.read()
        return self._svg

    def save(self, path: str | os.PathLike) -> None:
        self._save(os.fspath(path))

    def _repr_svg_(self) -> str:
        return self.svg


class Forecast(NamedTuple):
    """What a panel shows of one curve, along one input."""

    title: str
    along: int  #: the number of that input
    y: str  #: what is measured
    x: np.ndarray  #: (n,) rising
    share: np.ndarray  #: (bands,), widest first
    lo: np.ndarray  #: (bands, n), noise included
    hi: np.ndarray
    mean: np.ndarray  #: (n,)
    draws: np.ndarray  #: (draws, n), whole functions without noise
    given: tuple[np.ndarray, np.ndarray]  #: x and y of the points
    held: tuple[np.ndarray, np.ndarray]


class Look(NamedTuple):
    """What a picture is labelled with."""

    x: str
    y: str | None  #: None: what each panel measures
    dates: str | None  #: of the x axis: "D", "s" or None
    title: str | None


# ---- what is shown -------------------------------------------------------------------------------


def _shares(bands: Any) -> np.ndarray:
    shares = np.sort(np.atleast_1d(numbers(bands, "bands")))[::-1]
    if shares.ndim != 1 or not np.all((shares > 0) & (shares < 1)):
        raise InvalidError("bands are shares between 0 and 1, as (0.95, 0.5)")
    return np.ascontiguousarray(shares)


class Side(NamedTuple):
    """What of a curve a panel shows; y is shift + scale times what the model has."""

    title: str = ""
    y: str = "y"
    shift: float = 0.0
    scale: float = 1.0
    output: int | None = None  #: of several outputs: the input that is 1 for it

    def of(self, x: np.ndarray, y: np.ndarray, along: int) -> tuple[np.ndarray, np.ndarray]:
        """The points that are shown."""
        keep = np.ones(len(y), bool) if self.output is None else x[:, self.output] == 1
        return np.ascontiguousarray(x[keep, along]), self.shift + self.scale * y[keep]


def _see(
    posterior: Posterior,
    x: np.ndarray,
    along: int,
    shares: np.ndarray,
    draws: int,
    side: Side,
    held: tuple[np.ndarray, np.ndarray] | None = None,
) -> Forecast:
    """A posterior at x (n, x_dim), along one of the inputs; held: x (m, x_dim) and y."""
    levels = np.round(np.concatenate([(1 - shares) / 2, (1 + shares) / 2]), 12)  # 0.05, as typed
    x = _sorted(x, along)
    bands = posterior.bands(x, levels)
    quantiles = side.shift + side.scale * bands.quantiles
    functions = np.empty((0, len(x)))
    if draws:
        functions = side.shift + side.scale * posterior.sample(x, draws)
    own = posterior.x.reshape(len(posterior), x.shape[1])
    return Forecast(
        side.title,
        along,
        side.y,
        np.ascontiguousarray(x[:, along]),
        shares,
        np.ascontiguousarray(quantiles[: len(shares)]),
        np.ascontiguousarray(quantiles[len(shares) :]),
        side.shift + side.scale * bands.mean,
        np.ascontiguousarray(functions),
        side.of(own, posterior.y, along),
        side.of(*held, along) if held is not None else (np.empty(0), np.empty(0)),
    )


def _range(process: Process, k: int, own: np.ndarray) -> tuple[float, float]:
    """Of input k over the training curves and the points that are drawn."""
    lo, hi = ctypes.c_double(), ctypes.c_double()
    ends = [float(own.min()), float(own.max())] if own.size else []
    if lib.mnp_model_range(process.handle, k, ctypes.byref(lo), ctypes.byref(hi)):
        ends += [lo.value, hi.value]
    else:
        ends += _range_of_data(process, k)
    ends = ends or [-2.0, 2.0]
    if min(ends) == max(ends):
        ends = [min(ends) - 1, max(ends) + 1]
    return min(ends), max(ends)


def _range_of_data(process: Process, k: int) -> list[float]:
    try:
        xs = np.concatenate([x.reshape(len(y), -1)[:, k] for x, y in process.data("test", 100)])
    except Error:  # it was trained on arrays, or the file is gone
        return []
    return [float(xs.min()), float(xs.max())]


def _places(process: Process, at: Any, own: np.ndarray) -> np.ndarray:
    """(n, x_dim): what was asked for, or the usual range of a single input."""
    if at is None:
        if process.x_dim != 1:
            raise InvalidError(
                f"the model has {process.x_dim} inputs: say where with at=(n, {process.x_dim}), "
                "along one of them; mnp.maps draws two"
            )
        return np.linspace(*_range(process, 0, own), PLACES).reshape(-1, 1)
    x = inputs(at, process.x_dim, "at").reshape(-1, process.x_dim)
    if len(x) < 2:
        raise InvalidError("a picture wants two places or more: give at as an array")
    return x


def _along(x: np.ndarray) -> int:
    """The first input that changes."""
    moving = np.flatnonzero(x.min(axis=0) < x.max(axis=0))
    if not len(moving):
        raise InvalidError("all places are the same: a picture wants a range of an input")
    return int(moving[0])


def _sorted(x: np.ndarray, along: int) -> np.ndarray:
    return np.ascontiguousarray(x[np.argsort(x[:, along], kind="stable")])


# ---- curves of a table ---------------------------------------------------------------------------


def _default_at(process: Process, context: Any, names: dict) -> Any:
    """A grid along the one input that changes within a curve, over the range of the training curves
    and of the context."""
    name = moving_input(process)
    k = process.x_names.index(name)
    own = read_context(process, context, **names)
    x = own.x(process.x_dim)[:, k] if own is not None else np.empty(0)
    values = np.linspace(*_range(process, k, x), PLACES)
    unit = is_date(process, k)
    return {name: moments(values, unit) if unit else values}


def _curves(process: Process, context: Any, at: Any, truth: Any, names: dict, make) -> list:
    """A Forecast for each curve that is asked about, and for each of several outputs;
    make(x, y, places, side, held)."""
    if at is None:
        at = _default_at(process, context, names)
    question = Question.of(process, context, at, **names)
    d = process.x_dim
    places, seen = question.places, question.context
    x, curve = places.x(d), places.curve_of
    held = read_context(process, truth, **names) if truth is not None else None
    out, left = [], 0
    for g, name in enumerate(places.curves):
        own_x, own_y = _points(seen, name, d)
        first = own_x[0] if len(own_x) else np.full(d, np.nan)
        where = np.where(np.isnan(x), first, x)
        rest = _points(held, name, d) if held is not None else None
        for rows, side in _sides(process, places, name, np.flatnonzero(curve == g), where):
            if len(out) < PANELS:
                out.append(make(own_x, own_y, where[rows], side, rest))
            else:
                left += 1
    if left > 0:
        warn(f"{PANELS} panels are drawn, and {left} are left out: give fewer curves")
    return out


def _sides(process: Process, places: Table, name: str, rows: np.ndarray, x: np.ndarray) -> list:
    """Rows of a curve, and what a panel shows of them: all, or those of an output."""
    outputs = outputs_of(process)
    if not outputs:
        return [(rows, Side(name, process.y_name))]
    out = []
    for output, k in outputs.items():
        own = rows[x[rows, k] == 1]
        if len(own):
            shift = lib.mnp_table_raw(places.handle, int(own[0]), 0.0)
            scale = lib.mnp_table_raw(places.handle, int(own[0]), 1.0) - shift
            out.append((own, Side(name, output, shift, scale, k)))
    return out


def _points(table: Table | None, name: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """x (n, d) and y (n,) of a curve."""
    known = [] if table is None else table.curves
    if name not in known:
        return np.empty((0, d)), np.empty(0)
    rows = table.curve_of == known.index(name)
    return table.x(d)[rows], table.y[rows]


# ---- verbs ---------------------------------------------------------------------------------------


def plot(
    process: Process,
    x: Any = None,
    y: Any = None,
    *,
    at: Any = None,
    truth: Any = None,
    group: str | Sequence[str] | None = None,
    x_columns: str | Sequence[str] | None = None,
    y_column: str | Sequence[str] | None = None,
    bands: Any = BANDS,
    draws: int = 5,
    samples: int = 200,
    condition: str | None = None,
    gradients: int | None = None,
    seed: int = 0,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Any = None,
    engine: str | None = None,
) -> Any:
    """Draws a process given points: bands that hold 50, 80 and 95 % of new measurements, the mean,
    some whole functions, and the points.

    x, y: points of one curve, (n,) or (n, x_dim) and (n,); or x alone, a frame or CSV file of one
    or many curves, which get a panel each. Without any: the prior. at: where, an array, or what
    `predict` takes; None: the range of the training data. truth: points held back, drawn as rings:
    a pair (x, y), or a frame. bands: shares. draws: functions that are drawn; samples: those behind
    the bands.

    engine: "matplotlib" (the answer is its Axes, or an array of them), "svg" (a `Picture`), or
    None: matplotlib where it is installed. ax: Axes to draw into.
    """
    shares = _shares(bands)
    draws = whole(draws, "draws", 0, 1000)
    how = {"condition": condition, "gradients": gradients, "seed": seed, "draws": samples}

    def make(own_x, own_y, where, side, held=None) -> Forecast:
        posterior = process.condition(own_x, own_y, **how)
        if held is not None:
            keep = ~_among(np.column_stack(held), np.column_stack([own_x, own_y]))
            held = held[0][keep], held[1][keep]
        return _see(posterior, where, _along(where), shares, draws, side, held)

    if y is not None and kind_of(x):
        raise InvalidError("x is a frame of curves, which has the y: leave y out, or name y_column")
    if y is None and x is not None:
        if not kind_of(x) and not isinstance(x, (str, os.PathLike)):
            raise InvalidError("y is missing: give x and y, or a frame of curves")
        names = {"group": group, "x": x_columns, "y": y_column}
        shown = _curves(process, x, at, truth, names, make)
    else:
        d = process.x_dim
        own_x = inputs(np.empty(0) if x is None else x, d).reshape(-1, d)
        own_y = outputs(np.empty(0) if y is None else y, len(own_x))
        held = None
        if truth is not None:
            if not isinstance(truth, (tuple, list)) or len(truth) != 2:
                raise InvalidError("truth is a pair (x, y) here, as the points are")
            held_x = inputs(truth[0], d, "truth").reshape(-1, d)
            held = held_x, outputs(truth[1], len(held_x), "truth")
        where = _places(process, at, own_x[:, 0])
        shown = [make(own_x, own_y, where, Side(y=process.y_name), held)]
    return _draw(shown, _look(process, shown, title, xlabel, ylabel), ax, engine)


def _among(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which rows are among the known ones: no test of a forecast."""
    seen = {tuple(row) for row in known.tolist()}
    return np.array([tuple(row) in seen for row in rows.tolist()], bool)


def plot_posterior(
    posterior: Posterior,
    at: Any = None,
    *,
    bands: Any = BANDS,
    draws: int = 5,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Any = None,
    engine: str | None = None,
) -> Any:
    """Draws a posterior along an input: see `plot`."""
    from .process import Process

    process = Process(posterior._model)
    own = posterior.x.reshape(len(posterior), process.x_dim)
    where = _places(process, at, own[:, 0])
    side = Side(y=process.y_name)
    shown = [_see(posterior, where, _along(where), _shares(bands), draws, side)]
    return _draw(shown, _look(process, shown, title, xlabel, ylabel), ax, engine)


def _look(process: Process, shown: list[Forecast], title, xlabel, ylabel) -> Look:
    k = shown[0].along
    return Look(
        process.x_names[k] if xlabel is None else xlabel,
        ylabel,
        is_date(process, k),
        title,
    )


# ---- drawing -------------------------------------------------------------------------------------


def choose_engine(engine: str | None, needed: bool = False) -> Any:
    """matplotlib.pyplot, or None for the library's pictures."""
    if engine not in (None, "matplotlib", "svg"):
        raise InvalidError(f"engine is {engine!r}: give matplotlib or svg")
    if engine == "svg":
        return None
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        if engine or needed:
            raise NotInstalledError("matplotlib is not installed: engine='svg'") from None
        return None
    return pyplot


def _draw(shown: list[Forecast], look: Look, ax: Any, engine: str | None) -> Any:
    pyplot = choose_engine(engine, ax is not None)
    if pyplot is None:
        return _with_library(shown, look)
    return _with_matplotlib(pyplot, shown, look, ax)


def _grid(count: int) -> tuple[int, int]:
    cols = min(count, 2 if count in (2, 4) else 3)
    return -(-count // cols), cols


def _with_matplotlib(pyplot: Any, shown: list[Forecast], look: Look, ax: Any) -> Any:
    rows, cols = _grid(len(shown))
    if ax is None:
        size = (6.4, 4.0) if len(shown) == 1 else (3.6 * cols, 2.8 * rows)
        one = len({f.y for f in shown}) == 1
        options = {"sharex": True, "sharey": one, "squeeze": False}
        figure, grid = pyplot.subplots(rows, cols, figsize=size, layout="constrained", **options)
        axes = list(grid.flat)
        for empty in axes[len(shown) :]:
            empty.set_visible(False)
        if look.title:
            figure.suptitle(look.title)
    else:
        axes = list(np.atleast_1d(ax).flat)
        if len(axes) < len(shown):
            raise InvalidError(f"there are {len(shown)} curves, and {len(axes)} Axes to draw into")
    for k, (one, f) in enumerate(zip(axes, shown)):
        _panel(one, f, look)
        if k % cols == 0 or f.y != shown[k - 1].y or ax is not None:
            one.set_ylabel(look.y or f.y)
        if k + cols >= len(shown) or ax is not None:
            one.set_xlabel(look.x)
    if len(shown) == 1:
        axes[0].legend(loc="best", frameon=False, fontsize="small")
        return axes[0]
    if ax is None:
        labels = {
            label: line for one in axes for line, label in zip(*one.get_legend_handles_labels())
        }
        figure.legend(labels.values(), labels, loc="outside lower center", ncol=4, frameon=False)
    return np.array(axes[: len(shown)], object)


def _panel(ax: Any, f: Forecast, look: Look) -> None:
    def when(values: np.ndarray) -> np.ndarray:
        return moments(values, look.dates) if look.dates else values

    x = when(f.x)
    for k, share in enumerate(f.share):
        last = k + 1 == len(f.share)
        label = f"{100 * share:g} %" + (" of measurements, noise included" if last else "")
        ax.fill_between(
            x, f.lo[k], f.hi[k], color=BLUE, alpha=0.13 + 0.08 * k, linewidth=0, label=label
        )
    for k, draw in enumerate(f.draws):
        label = "draws, without noise" if k == 0 else None
        ax.plot(x, draw, color=BLUE, linewidth=0.7, alpha=0.6, label=label)
    ax.plot(x, f.mean, color=VERMILION, linewidth=2, label="mean")
    if len(f.held[0]):
        ax.plot(when(f.held[0]), f.held[1], "o", color="black", mfc="white", ms=5, label="held out")
    if len(f.given[0]):
        ax.plot(when(f.given[0]), f.given[1], "o", color="black", ms=5, label="observed")
    if f.title:
        ax.set_title(f.title, fontsize="medium")


def _with_library(shown: list[Forecast], look: Look) -> Picture:
    rows, cols = _grid(len(shown))
    context = current()
    figure = context.make(lib.mnp_plot_create, rows, cols, destroy=lib.mnp_plot_destroy, keep=True)
    if look.title:
        lib.mnp_plot_title(figure, look.title.encode())
    if len(shown) > 1:
        lib.mnp_plot_same(figure, True, len({f.y for f in shown}) == 1)
        lib.mnp_plot_legend_below(figure, True)
    for k, f in enumerate(shown):
        panel = lib.mnp_plot_panel(figure, k // cols, k % cols)
        lib.mnp_panel_labels(panel, look.x.encode(), (look.y or f.y).encode())
        if f.title:
            lib.mnp_panel_title(panel, f.title.encode())
        if look.dates:
            unit = c.MNP_PLOT_DAYS if look.dates == "D" else c.MNP_PLOT_SECONDS
            lib.mnp_panel_dates(panel, c.MNP_PLOT_X, unit)
        lib.mnp_panel_forecast(panel, ctypes.byref(_forecast_struct(f)))
    return Picture(lambda path: context.call(lib.mnp_plot_save, figure, os.fsencode(path)))


def _forecast_struct(f: Forecast) -> c.mnp_plot_forecast:
    """It points into the arrays of the forecast."""
    return c.mnp_plot_forecast(
        n=len(f.x),
        x=address(f.x),
        bands=len(f.share),
        share=address(f.share),
        lo=address(f.lo),
        hi=address(f.hi),
        draws=len(f.draws),
        draw=address(f.draws) if len(f.draws) else None,
        mean=address(f.mean),
        given=one_set(*f.given),
        held=one_set(*f.held),
    )


__all__ = ["Forecast", "Picture", "plot", "plot_posterior"]
