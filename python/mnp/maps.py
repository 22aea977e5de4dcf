"""Maps of functions of two inputs given measurements (wells): `make`.

Here of planes whose slopes differ, by a Gaussian process; the models of images that the repository
holds (models/geofluvial-np.safetensors) have rows and columns instead of coordinates.

>>> import mnp, numpy as np
>>> rng = np.random.default_rng(0)
>>> places = rng.uniform(0, 4, (6, 8, 2))                     # 6 planes, 8 places of each
>>> heights = (places * rng.normal(1, 0.3, (6, 1, 2))).sum(axis=2)
>>> process = mnp.train((places, heights), "gp", steps=2)
>>> wells = {"x1": [1.0, 3.0], "x2": [2.0, 0.5], "y": [3.1, 3.4]}
>>> m = mnp.maps.make(process, wells, shape=(5, 7), extent=(0, 4, 0, 3), samples=20)
>>> m.mean.shape, m.sd.shape, m.below.shape, m.draws.shape
((5, 7), (5, 7), (5, 7), (20, 5, 7))
>>> m.plot(engine="svg").svg.count("<svg")
1
"""

from __future__ import annotations

import csv
import ctypes
import io
import math
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import address, numbers, one_set, real, text, whole
from ._context import current, warn
from ._library import lib
from ._reach import reach_of
from .errors import Error, FileError, FormatError, InvalidError
from .frames import cells, columns_of, imported
from .posterior import WARNINGS, Report, condition_of, seed_of

if TYPE_CHECKING:
    from .process import Process

USUAL = (  # coordinates to the right and up, by the names they often have
    ("easting", "northing"),
    ("east", "north"),
    ("utm_e", "utm_n"),
    ("e", "n"),
    ("longitude", "latitude"),
    ("lon", "lat"),
    ("x", "y"),
)
RIVER = {"river": -1.0, "land": 1.0}


class Frame(NamedTuple):
    """Where the places of a map are."""

    rows: int
    cols: int
    extent: tuple[float, float, float, float] | None  #: x0, x1, y0, y1; None: rows and columns
    images: bool  #: the model's inputs are row and column, from -1 to 1
    rivers: bool
    values: tuple[float, float]  #: of the images: least and greatest
    names: tuple[str, str]

    @property
    def struct(self) -> c.mnp_map_frame:
        if self.images:
            return c.mnp_map_frame(self.rows, self.cols, (-1.0, -1.0), (1.0, 1.0))
        x0, x1, y0, y1 = self.extent
        return c.mnp_map_frame(self.rows, self.cols, (y1, x0), (y0, x1))  # rows go down


class Map(NamedTuple):
    """A map given measurements. Row 0 is on top. mean, sd and below include the process's own
    noise; a realisation of draws is a function without it."""

    mean: np.ndarray  #: (rows, cols)
    sd: np.ndarray  #: (rows, cols)
    below: np.ndarray  #: (rows, cols): probability of a value below `threshold`
    draws: np.ndarray  #: (samples, rows, cols), float32
    threshold: float
    frame: Frame
    wells: np.ndarray  #: (n, 3): the two coordinates of `frame.names`, and the value
    report: Report  #: how the functions were drawn

    @property
    def x(self) -> np.ndarray:
        """(cols,): the coordinate to the right, or the number of the column."""
        e = self.frame.extent
        return np.arange(self.frame.cols) if e is None else np.linspace(*e[:2], self.frame.cols)

    @property
    def y(self) -> np.ndarray:
        """(rows,): the coordinate upwards of each row, the first on top; or the number of the
        row."""
        e = self.frame.extent
        return np.arange(self.frame.rows) if e is None else np.linspace(e[3], e[2], self.frame.rows)

    def to_xarray(self) -> Any:
        """A Dataset: mean, sd and below over the two coordinates, draws over draw too."""
        coords, right = self.frame.extent is not None, self.frame.names[0]
        up = self.frame.names[1]
        dims = (up, right) if coords else self.frame.names  # names are x, y or row, col
        return imported("xarray").Dataset(
            {
                "mean": (dims, self.mean),
                "sd": (dims, self.sd),
                "below": (dims, self.below),
                "draws": (("draw", *dims), self.draws),
            },
            {dims[0]: self.y, dims[1]: self.x},
        )

    def plot(self, *, realisations: int = 1, title: str | None = None, engine=None) -> Any:
        """Mean, sd, the probability below the threshold and some realisations, with the wells.
        engine as in `mnp.plotting.plot`."""
        return _plot(self, realisations, title, engine)


# ---- measurements --------------------------------------------------------------------------------


def _read_csv(path: str) -> dict[str, list]:
    """Columns of texts; the library reads tables with the columns of a model alone."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            text = file.read()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{path} is no text in UTF-8: save it as such") from None
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    except csv.Error as error:
        raise FormatError(f"{path}: {error}") from None
    if not rows:
        raise FormatError(f"{path}: there is no header")
    head, *rest = rows
    for k, row in enumerate(rest):
        if len(row) != len(head):
            raise FormatError(f"{path}: row {k} has {len(row)} cells, and the header {len(head)}")
    return {name.strip(): [row[k] for row in rest] for k, name in enumerate(head)}


def _find(columns: Mapping[str, Any], name: str) -> str | None:
    return next((own for own in columns if own.lower() == name.lower()), None)


def _well_columns(columns, frame: Frame, x, y, y_name: str) -> tuple[str, str, str]:
    """The names of the two coordinates and of the value."""
    asked = tuple(x.split(",")) if isinstance(x, str) else tuple(x) if x is not None else None
    tried = [asked] if asked else [frame.names]
    if not asked and frame.images and frame.extent is not None:
        tried += USUAL
    for pair in tried:
        found = [_find(columns, name) for name in pair]
        if len(found) == 2 and None not in found:
            break
    else:
        raise InvalidError(
            f"wells have no columns {' and '.join(tried[0])} (they have: {', '.join(columns)}): "
            'name them, x=("easting", "northing"), and say where the map ends, extent='
            "(x0, x1, y0, y1)"
        )
    value = _find(columns, y or y_name)
    left = [name for name in columns if name not in found]
    if value is None and y is None and len(left) == 1:
        value = left[0]
    if value is None:
        raise InvalidError(f"wells have no column {y or y_name!r}: say which has the values, y=")
    return found[0], found[1], value


def _meant(value: Any, frame: Frame) -> float:
    if frame.rivers and value in RIVER:
        return RIVER[value]
    words = f", {' or '.join(map(repr, RIVER))}" if frame.rivers else ""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidError(f"codes mean {value!r}: give numbers{words}") from None


def _decoded(text: str, codes: Mapping, frame: Frame, row: int) -> float:
    for code, value in codes.items():
        same = str(code) == text
        try:
            same = same or float(code) == float(text)
        except (TypeError, ValueError):
            pass
        if same:
            return _meant(value, frame)
    raise InvalidError(f"row {row} of the wells is {text!r}, none of codes={dict(codes)!r}")


def _measured(name: str, column: Any) -> np.ndarray:
    out = np.empty(len(column))
    for k, cell in enumerate(cells(name, column)):
        missing = cell.strip().lower() in ("", "na", "nan")
        try:
            out[k] = math.nan if missing else float(cell)
        except ValueError:
            raise InvalidError(
                f"column {name!r} of the wells holds {cell!r} in row {k}: give numbers, or codes="
            ) from None
    return out


def _read_wells(process, wells, frame: Frame, x, y, codes) -> tuple[np.ndarray, Frame]:
    """(n, 3): coordinates and value; the frame with the names that the coordinates have."""
    if wells is None:
        return np.empty((0, 3)), frame
    if isinstance(wells, tuple) and len(wells) == 2:
        places, values = numbers(wells[0], "wells[0]"), numbers(wells[1], "wells[1]")
        if places.ndim != 2 or places.shape[1] != 2 or values.shape != places.shape[:1]:
            raise InvalidError("wells as a pair are places (n, 2) and values (n,)")
        return np.column_stack([places, values]), frame
    if isinstance(wells, (str, os.PathLike)):
        columns = _read_csv(os.fspath(wells))
    else:
        columns = columns_of(wells)
    first, second, value = _well_columns(columns, frame, x, y, process.y_name)
    if codes is None:
        values = _measured(value, columns[value])
    else:
        texts = cells(value, columns[value])
        values = np.array([_decoded(t, codes, frame, k) for k, t in enumerate(texts)])
    out = np.column_stack(
        [_measured(first, columns[first]), _measured(second, columns[second]), values]
    )
    kept = out[~np.isnan(values)]
    if np.isnan(kept).any():
        raise InvalidError("a well has a value and no place: give both, or leave it out")
    return kept, frame._replace(names=(first, second))


def _check_meaning(process, frame: Frame, values: np.ndarray) -> None:
    """Two codes are never taken for values that the model would read otherwise."""
    text = ctypes.create_string_buffer(256)
    meaning = lib.mnp_map_meaning_of(process.handle, len(values), address(values), text, len(text))
    line = text.value.decode()
    if meaning == c.MNP_MAP_DOUBT:
        warn(f"wells: {line}")
    if meaning == c.MNP_MAP_CODES:
        lo, hi = ("'land'", "'river'") if frame.rivers else (f"{v:g}" for v in frame.values)
        said = f"codes={{{values.min():g}: {lo}, {values.max():g}: {hi}}}"
        raise InvalidError(f"wells: {line}; say which is which: {said}, or the other way round")


# ---- making one ----------------------------------------------------------------------------------


def _rounded(lo: float, hi: float) -> tuple[float, float]:
    """Outwards to round numbers, as the command has it."""
    if not hi > lo:
        return lo, hi
    step = 10 ** (math.floor(math.log10(hi - lo)) - 1)
    return math.floor(lo / step + 1e-9) * step, math.ceil(hi / step - 1e-9) * step


def _frame(process: Process, shape, extent) -> Frame:
    if process.x_dim != 2:
        raise InvalidError(
            f"maps are of functions of two inputs, and the model has {process.x_dim}"
        )
    try:
        rows, cols = (operator.index(n) for n in shape)
    except (TypeError, ValueError):
        raise InvalidError(f"shape is {shape!r}: give (rows, columns)") from None
    if not (2 <= rows <= 4096 and 2 <= cols <= 4096):
        raise InvalidError(f"shape is {(rows, cols)}: give 2 to 4096 rows and columns")
    lo, hi = ctypes.c_double(), ctypes.c_double()
    images = lib.mnp_map_values(process.handle, ctypes.byref(lo), ctypes.byref(hi))
    if extent is not None:
        extent = tuple(numbers(extent, "extent").ravel().tolist())
        if len(extent) != 4 or not (extent[0] < extent[1] and extent[2] < extent[3]):
            raise InvalidError("extent is (x0, x1, y0, y1) with x0 < x1 and y0 < y1")
    elif not images:
        extent = _extent_of_data(process)
    names = ("row", "col") if images and extent is None else ("x", "y")
    if not images:
        names = tuple(process.x_names)
    rivers = lib.mnp_map_rivers(process.handle)
    return Frame(rows, cols, extent, images, rivers, (lo.value, hi.value), names)


def _extent_of_data(process: Process) -> tuple[float, ...]:
    try:
        xs = np.concatenate([x for x, _ in process.data("test", 100)])
    except Error as error:
        raise InvalidError(
            f"say which range the map has, extent=(x0, x1, y0, y1): {error}"
        ) from None
    return (
        *_rounded(float(xs[:, 0].min()), float(xs[:, 0].max())),
        *_rounded(float(xs[:, 1].min()), float(xs[:, 1].max())),
    )


def _inputs(ctx, frame: Frame, places: np.ndarray) -> np.ndarray:
    """Places as inputs of the model, (n, 2)."""
    x = np.array(places)
    if frame.images and len(x):
        struct = frame.struct
        at = (ctypes.byref(struct), len(x), address(x), address(x))
        if frame.extent is not None:
            extent = np.array(frame.extent)
            ctx.call(lib.mnp_map_pixels, ctx, at[0], address(extent), *at[1:])
        ctx.call(lib.mnp_map_inputs, ctx, *at)
    return x


def make(
    process: Process,
    wells: Any = None,
    *,
    shape: Sequence[int] = (128, 128),
    extent: Sequence[float] | None = None,
    x: str | Sequence[str] | None = None,
    y: str | None = None,
    codes: Mapping[Any, Any] | None = None,
    threshold: float | None = None,
    honour: bool | float | None = None,
    samples: int = 100,
    condition: str = "network",
    gradients: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], Any] | None = None,
) -> Map:
    """A map of shape (rows, cols) given measurements, as `mnp predict --grid ROWSxCOLS` makes it.

    wells: a frame or CSV file with the columns row, col and a value; with extent=(x0, x1, y0, y1)
    coordinates, x to the right and y upwards, whose columns x names; or a pair of arrays, places
    (n, 2) and values (n,). y: the column of the value. codes: what facies codes mean, as
    {0: "land", 1: "river"}. threshold: of `Map.below`; None: 0, or the middle of the images'
    values. honour: functions pass through the measurements; a number says how many pixels far they
    are felt; None: for images. samples: realisations.
    """
    kind, samples = condition_of(condition), whole(samples, "samples", 1, 100_000)
    if codes is not None and not isinstance(codes, Mapping):
        raise InvalidError(f"codes is a {type(codes).__name__}: give a dict, as {{0: 'land'}}")
    frame = _frame(process, shape, extent)
    measured, frame = _read_wells(process, wells, frame, x, y, codes)
    values = np.ascontiguousarray(measured[:, 2])
    if frame.images and len(values):
        _check_meaning(process, frame, values)
    ctx = current()
    places = _inputs(ctx, frame, measured[:, :2])
    honour = frame.images if honour is None else honour
    set_ = one_set(places, values)
    kept = set_ if honour is not False else c.mnp_set()
    opts = c.mnp_map_opts(
        samples=samples,
        seed=seed_of(seed),
        device=text(device, "device"),
        honour=ctypes.addressof(kept),
        range=0.0 if isinstance(honour, bool) else real(honour, "honour"),
        threshold=sum(frame.values) / 2 if threshold is None else real(threshold, "threshold"),
        condition=kind,
        gradients=0 if gradients is None else whole(gradients, "gradients", 1),
        progress=ctx.progress(progress),
        turned=not frame.images,
    )
    layers = np.empty((3, frame.rows, frame.cols))
    draws = np.empty((opts.samples, frame.rows, frame.cols), np.float32)
    report, differ = c.mnp_draw_report(), ctypes.c_double()
    out = c.mnp_map(
        mean=address(layers[0]),
        sd=address(layers[1]),
        below=address(layers[2]),
        draws=address(draws),
        report=ctypes.addressof(report),
        differ=ctypes.addressof(differ),
    )
    struct = frame.struct
    reach_of(process.handle).count(len(values))
    ctx.call(
        lib.mnp_map_make,
        ctx,
        process.handle,
        ctypes.byref(struct),
        ctypes.byref(set_),
        ctypes.byref(opts),
        ctypes.byref(out),
    )
    _tell(report, frame, layers[1], differ.value, opts.samples)
    return Map(*layers, draws, opts.threshold, frame, measured, Report.of(report))


def _tell(report, frame: Frame, sd: np.ndarray, differ: float, samples: int) -> None:
    for bit, line in WARNINGS.items():
        if report.warnings & bit:
            warn(line)
    span = frame.values[1] - frame.values[0]
    if samples > 1 and span > 0 and differ < 0.01 * span and sd.mean() > 0.1 * span:
        warn(
            f"the realisations hardly differ (sd {differ:.2g} between them, {sd.mean():.2g} with "
            "noise): the model takes differences between images for noise, and wants more training",
        )


# ---- pictures ------------------------------------------------------------------------------------


def _layers(m: Map, realisations: int) -> list[tuple[str, np.ndarray, float, float]]:
    """Title, values, and the range of the colours; 0, 0: of the values."""
    lo, hi = m.frame.values if m.frame.images else (0.0, 0.0)
    below = "p(river)" if m.frame.rivers else f"p(value < {m.threshold:g})"
    out = [("mean", m.mean, lo, hi), ("sd", m.sd, 0.0, 0.0), (below, m.below, 0.0, 1.0)]
    for k, draw in enumerate(m.draws[:realisations]):
        out.append((f"realisation {k + 1}", draw.astype(np.float64), lo, hi))
    return out


def _bounds(m: Map) -> tuple[float, float, float, float]:
    """Edges of the picture: half a cell beyond the centres."""
    right, up = m.x, m.y
    dx, dy = abs(right[1] - right[0]) / 2, abs(up[1] - up[0]) / 2
    bottom, top = (up[-1] - dy, up[0] + dy) if m.frame.extent else (up[-1] + dy, up[0] - dy)
    return right[0] - dx, right[-1] + dx, bottom, top


def _wells_at(m: Map) -> tuple[np.ndarray, np.ndarray]:
    first, second = m.wells[:, 0], m.wells[:, 1]
    return (first, second) if m.frame.extent else (second, first)  # row, col


def _plot(m: Map, realisations: int, title: str | None, engine: str | None) -> Any:
    from .plotting import choose_engine

    layers, (px, py) = _layers(m, realisations), _wells_at(m)
    pyplot = choose_engine(engine)
    if pyplot is None:
        return _plot_svg(m, layers, px, py, title)
    size = (3.2 * len(layers), 3.2)
    figure, axes = pyplot.subplots(1, len(layers), figsize=size, layout="constrained")
    for ax, (name, values, lo, hi) in zip(axes, layers):
        limits = {} if lo == hi else {"vmin": lo, "vmax": hi}
        image = ax.imshow(values, extent=_bounds(m), cmap="viridis", **limits)
        figure.colorbar(image, ax=ax, shrink=0.7)
        ax.plot(px, py, "o", color="white", mec="black", ms=4)
        ax.set_title(name, fontsize="medium")
    if title:
        figure.suptitle(title)
    return axes


def _plot_svg(m: Map, layers, px: np.ndarray, py: np.ndarray, title: str | None) -> Any:
    from .plotting import Picture

    context = current()
    figure = context.make(
        lib.mnp_plot_create, 1, len(layers), destroy=lib.mnp_plot_destroy, keep=True
    )
    if title:
        lib.mnp_plot_title(figure, title.encode())
    x0, x1, y0, y1 = _bounds(m)
    if m.frame.extent is None:  # the library has y upwards
        y0, y1, py = 0.0, float(m.frame.rows), m.frame.rows - 0.5 - py
    px, py = np.ascontiguousarray(px), np.ascontiguousarray(py)
    for k, (name, values, lo, hi) in enumerate(layers):
        panel = lib.mnp_plot_panel(figure, 0, k)
        values = np.ascontiguousarray(values)
        heat = c.mnp_plot_heatmap(
            *values.shape, address(values), x0, x1, y0, y1, lo, hi, c.MNP_PLOT_MAP_VIRIDIS, True
        )
        lib.mnp_panel_title(panel, name.encode())
        if m.frame.extent is None:
            lib.mnp_panel_bare(panel)
        lib.mnp_panel_heatmap(panel, ctypes.byref(heat))
        style = c.mnp_plot_style(hue=c.MNP_PLOT_BLACK, marker=c.MNP_PLOT_RING)
        if len(px):
            lib.mnp_panel_points(
                panel, ctypes.byref(style), len(px), address(px), address(py), None
            )
    return Picture(lambda path: context.call(lib.mnp_plot_save, figure, os.fsencode(path)))


__all__ = ["Frame", "Map", "make"]
