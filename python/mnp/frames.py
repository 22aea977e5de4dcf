"""Frames in and out: tables of curves in pandas, polars or a dict of arrays; xarray out.

A frame goes to the library as the text of a CSV file would: numbers with all their digits, dates as
ISO, categories as text, what is missing as an empty cell. So a frame and its file give the same
numbers. Neither pandas nor polars is imported here: a frame brings its own.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> seen = {"x": [0.1, 0.5], "y": [-0.4, 0.2]}
>>> mnp.frames.forecast(process, seen, at=[0.3, 0.8], condition="network")["mean"].shape
(2,)
"""

from __future__ import annotations

import ctypes
import datetime
import decimal
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import address, view
from ._context import Handle, current, in_python, text_of, warn
from ._library import lib
from ._reach import reach_of
from .data import Data, column_names, table_options
from .errors import Error, InvalidError, NotInstalledError
from .posterior import WARNINGS, WORK_MAX, how_of, levels_of, or_by_network

if TYPE_CHECKING:
    from .posterior import Posterior
    from .process import Process

USUAL = {0.05: "q05", 0.25: "q25", 0.5: "q50", 0.75: "q75", 0.95: "q95"}
EPOCH = np.datetime64("1970-01-01")


# ---- what kind of frame --------------------------------------------------------------------------


def kind_of(value: Any) -> str | None:
    """ "pandas", "polars" or "dict"; None: no frame."""
    if isinstance(value, Mapping):
        return "dict"
    for base in type(value).__mro__:
        root = base.__module__.partition(".")[0]
        if base.__name__ == "DataFrame" and root in ("pandas", "polars"):
            return root
    if type(value).__name__ == "LazyFrame":
        raise InvalidError("this is a LazyFrame: collect() it first")
    return None


def columns_of(frame: Any) -> dict[str, Any]:
    """Its columns by name, as the frame holds them; blanks around a name are dropped. Named levels
    of a pandas index count too."""
    kind = kind_of(frame)
    if kind == "pandas":
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()
        columns = [(name, frame.iloc[:, k]) for k, name in enumerate(frame.columns)]
    elif kind == "polars":
        columns = [(name, frame.get_column(name)) for name in frame.columns]
    elif kind == "dict":
        columns = [(name, _column(str(name), value)) for name, value in frame.items()]
    else:
        raise InvalidError(
            f"a {type(frame).__name__} is no table: give a pandas or polars DataFrame, a dict of "
            "arrays, or the path of a CSV file"
        )
    out = {str(name).strip(): column for name, column in columns}
    if len(out) < len(columns):
        names = ", ".join(str(name) for name, _ in columns)
        raise InvalidError(f"two columns of the frame have one name: {names}")
    lengths = {name: len(column) for name, column in out.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InvalidError(f"the columns have different lengths: {said}")
    return out


def _column(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        raise InvalidError(f"column {name!r} is a {type(value).__name__}: give an array or a list")
    if getattr(value, "ndim", 1) != 1:
        raise InvalidError(f"column {name!r} has the shape {value.shape}: give (n,)")
    return value


# ---- as the text of a CSV file -------------------------------------------------------------------


def _number(value: float) -> str:
    """The shortest text that reads back exactly; 1.0 is 1, as a group's name may have it."""
    text = repr(value)
    return text[:-2] if text.endswith(".0") else text if value == value else ""


def _moments(array: np.ndarray) -> list[str]:
    """datetime64 as ISO: days where all are midnight."""
    missing = np.isnat(array)
    days = array.astype("datetime64[D]")
    if np.all((days == array) | missing):
        texts = np.datetime_as_string(days)
    elif np.datetime_data(array.dtype)[0] in ("h", "m"):
        texts = np.datetime_as_string(array.astype("datetime64[s]"))
    else:
        texts = np.datetime_as_string(array)
    return ["" if lost else str(text) for text, lost in zip(texts, missing)]


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def _as_numpy_dates(name: str, values: list) -> np.ndarray:
    """Python's dates and moments; those with a time zone in UTC."""
    out = np.empty(len(values), "datetime64[us]")
    for k, v in enumerate(values):
        if _is_missing(v):
            out[k] = np.datetime64("NaT")
        elif not isinstance(v, datetime.date):
            raise InvalidError(
                f"column {name!r} holds dates, and in row {k} {v!r}: make them all dates"
            )
        else:
            if getattr(v, "tzinfo", None) is not None:
                v = v.astimezone(datetime.timezone.utc).replace(tzinfo=None)
            out[k] = np.datetime64(v, "us")
    return out


def _cell(name: str, row: int, value: Any) -> str:
    if _is_missing(value):
        return ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (bool, int, str)):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return "" if value.is_nan() else str(value)
    raise InvalidError(
        f"column {name!r} holds a {type(value).__name__} in row {row}: give numbers, dates or text"
    )


def cells(name: str, column: Any) -> list[str]:
    """The texts of a column."""
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "kind", "") == "M" and getattr(dtype, "tz", None) is not None:  # pandas
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        dtype = column.dtype
    if isinstance(dtype, np.dtype) and not np.ma.isMaskedArray(column):
        array = np.asarray(column)
        if array.dtype.kind == "M":
            return _moments(array)
        if array.dtype.kind == "f":
            return [_number(v) for v in array.astype(np.float64).tolist()]
        if array.dtype.kind in "iubU":
            return [str(v) for v in array.tolist()]
        if array.dtype.kind == "m":
            raise InvalidError(
                f"column {name!r} holds durations: make numbers of them, as hours or days"
            )
        if array.dtype.kind != "O":
            raise InvalidError(f"column {name!r} holds {array.dtype}: give numbers, dates or text")
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    first = next((v for v in values if not _is_missing(v)), None)
    if isinstance(first, datetime.date):
        return _moments(_as_numpy_dates(name, values))
    return [_cell(name, k, v) for k, v in enumerate(values)]


_UNSAFE = re.compile(r'[,;"\n\r\t]|^\s|\s$')


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _UNSAFE.search(text) else text


def _quoted_cells(name: str, column: Any) -> list[str]:
    texts = cells(name, column)
    safe = getattr(getattr(column, "dtype", None), "kind", "O") in "fiubM"
    return texts if safe else [_quoted(text) for text in texts]


def to_csv(frame: Any) -> bytes:
    """The frame as a CSV file, in UTF-8.

    >>> import mnp.frames
    >>> print(mnp.frames.to_csv({"plant": ["a", "a"], "day": [1, 2.5]}).decode())
    plant,day
    a,1
    a,2.5
    <BLANKLINE>
    """
    columns = columns_of(frame)
    if not columns:
        raise InvalidError("the frame has no columns")
    if all(name.replace(".", "", 1).isdigit() for name in columns):
        raise InvalidError(
            f"the columns are called {', '.join(columns)}: give them names, such as x and y"
        )
    names = ",".join(_quoted(name) for name in columns)
    texts = [_quoted_cells(name, column) for name, column in columns.items()]
    rows = [",".join(row) or '""' for row in zip(*texts)]
    return "\n".join([names, *rows, ""]).encode()


# ---- tables of the library -----------------------------------------------------------------------


NAME = "the table"  # what messages call a frame


def words_of_python(text: str) -> str:
    """Lines of the library in the words of this package: rows for lines, arguments for flags."""
    text = text.replace("a table in memory", NAME)
    text = re.sub(NAME + r":(\d+): ", lambda m: f"row {max(int(m[1]) - 2, 0)}: ", text)
    return in_python(text)


@contextmanager
def python_words() -> Iterator[None]:
    """Failures inside are told in the words of this package."""
    try:
        yield
    except Error as error:
        raise type(error)(words_of_python(str(error))) from None


def _opened(table: Any, of_file, of_text) -> Handle:
    """What of_file(path) or of_text(bytes, length) makes of a path, a frame or its CSV text."""
    with python_words():
        if isinstance(table, (str, os.PathLike)):
            return of_file(os.fsencode(table))
        text = table if isinstance(table, bytes) else to_csv(table)
        return of_text(text, len(text))


def open_data(
    table: Any,
    group: str | Sequence[str] | None = None,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    *,
    wide: bool = False,
    seed: int = 0,
    like: Process | None = None,
) -> Data:
    """All curves of a frame or of a CSV file; columns that are not named are guessed. like: a
    process whose table this is read like, with its columns, units and categories."""
    if isinstance(table, str) and not lib.mnp_data_path(table.encode()):
        raise InvalidError(f"{table!r} is a built-in family: give a table of curves")
    holdout = -1.0 if like is None else 0.0  # 0: as the table of the process
    data = _data(
        table, group=group, x=x, y=y, holdout=holdout, test=0.0, seed=seed, wide=wide, like=like
    )
    _tell_of_data(table, data)
    return data


def open_splits(table: Any, *, seed: int = 0, **names: Any) -> tuple[Data, Data]:
    """The curves of a frame or a CSV file to train on, and those to validate with, as `mnp train`
    divides them. names: of the columns, group, x and y."""
    source = to_csv(table) if kind_of(table) else table
    of = {"holdout": 0.0, "test": 0.0, "seed": seed, **names}
    train, valid = (_data(source, split=split, **of) for split in ("train", "valid"))
    _tell_of_data(table, train)
    return train, valid


def _data(table: Any, **options: Any) -> Data:
    opts = c.mnp_data_opts(**table_options(**options))
    make, how = current().make, {"destroy": lib.mnp_data_destroy}
    return Data(
        _opened(
            table,
            lambda path: make(lib.mnp_data_open, path, ctypes.byref(opts), **how),
            lambda text, n: make(lib.mnp_data_open_memory, text, n, ctypes.byref(opts), **how),
        )
    )


def _tell_of_data(table: Any, data: Data) -> None:
    """What is doubtful about it."""
    warn(words_of_python(lib.mnp_data_warnings(data.handle).decode("utf-8", "replace")))
    warn(nameless(table, data))


MEAN_MISSING = ("na", "nan", "n/a", "#n/a", "null", ".")  # texts, as the library reads a CSV file


def nameless(table: Any, data: Data) -> str:
    """A line about the rows that belong to no curve, or "". Their label is missing, or it is a text
    that means "missing" in a CSV file."""
    found = re.search(r"(\d+) rows? without a curve's name", data.report)
    if found is None:
        return ""
    rows = "1 row has" if found[1] == "1" else f"{found[1]} rows have"
    line = f"{rows} no {data.group_name} and were dropped"
    columns = columns_of(table) if kind_of(table) else {}
    labels = {t for g in _group_columns(columns, data) for t in cells(g, columns[g])}
    words = sorted(repr(t) for t in labels if t.lower() in MEAN_MISSING)
    if words:
        line += f" ({', '.join(words)} means missing in a table: rename that curve to keep it)"
    return line


def _group_columns(columns: Mapping[str, Any], data: Data) -> list[str]:
    """Of a frame: the library joins the names of several by "/"."""
    name = data.group_name
    return [name] if name in columns else [g for g in name.split("/") if g in columns]


class Table:
    """Rows for a model: points of curves (with y), or places to ask about."""

    def __init__(self, handle: Handle, source: Any = None) -> None:
        self.handle = handle
        self.source = source  # the frame, or None
        said = lib.mnp_table_warnings(handle).decode("utf-8", "replace")
        self.warnings = words_of_python(said)

    @classmethod
    def open(cls, process: Process, table: Any, with_y: bool, group, x, y) -> Table:
        opts = c.mnp_data_opts(
            function_column=column_names(group, "group"),
            x_columns=column_names(x, "x"),
            y_column=column_names(y, "y") if with_y else None,
        )
        make, model = current().make, process.handle
        how = {"destroy": lib.mnp_table_destroy}
        last = (with_y, ctypes.byref(opts))
        handle = _opened(
            table,
            lambda path: make(lib.mnp_table_open, model, path, *last, **how),
            lambda text, n: make(
                lib.mnp_table_open_memory, model, NAME.encode(), text, n, *last, **how
            ),
        )
        return cls(handle, table if kind_of(table) else None)

    @classmethod
    def grid(cls, process: Process, text: str) -> Table:
        make = current().make
        return cls(
            make(lib.mnp_table_grid, process.handle, text.encode(), destroy=lib.mnp_table_destroy)
        )

    def spread(self, process: Process, over: Table) -> Table:
        """These places, asked of every curve of another table."""
        make = current().make
        handle = make(
            lib.mnp_table_spread,
            process.handle,
            self.handle,
            over.handle,
            destroy=lib.mnp_table_destroy,
        )
        return Table(handle, self.source)

    def __len__(self) -> int:
        return lib.mnp_table_rows(self.handle)

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Names, and what each was taken for."""
        return [
            (
                lib.mnp_table_column(self.handle, k).decode("utf-8", "replace"),
                lib.mnp_table_column_is(self.handle, k),
            )
            for k in range(lib.mnp_table_columns(self.handle))
        ]

    @property
    def groups(self) -> list[str]:
        """The columns that tell curves apart."""
        return [name for name, kind in self.columns if kind == c.MNP_COLUMN_GROUP]

    @property
    def curves(self) -> list[str]:
        """The names of its curves."""
        count = lib.mnp_table_groups(self.handle)
        return [lib.mnp_table_group_name(self.handle, k).decode() for k in range(count)]

    @property
    def curve_of(self) -> np.ndarray:
        """(rows,): the number of each row's curve."""
        number = lib.mnp_table_group
        return np.array([number(self.handle, i) for i in range(len(self))], np.int64)

    def x(self, x_dim: int) -> np.ndarray:
        """(rows, inputs); NaN: for the context to say."""
        return view(lib.mnp_table_x(self.handle), (len(self), x_dim))

    @property
    def y(self) -> np.ndarray:
        return view(lib.mnp_table_y(self.handle), (len(self),))

    def texts(self, k: int) -> list[str]:
        """Column k as it stands in the file."""
        cell = lib.mnp_table_cell
        return [cell(self.handle, i, k).decode("utf-8", "replace") for i in range(len(self))]

    def values(self, k: int, process: Process) -> np.ndarray:
        """Column k as numbers, dates or text."""
        kind, x_dim = self.columns[k][1], process.x_dim
        if kind not in (c.MNP_COLUMN_NUMBER, c.MNP_COLUMN_DATE):
            return np.array(self.texts(k))
        i = next(i for i in range(x_dim) if lib.mnp_table_x_column(self.handle, i) == k)
        x, unit = self.x(x_dim)[:, i], is_date(process, i)
        return moments(x, unit) if unit else x


# ---- answers as frames ---------------------------------------------------------------------------


def _taken(column: Any, rows: np.ndarray) -> Any:
    """Rows of a column, of the same type."""
    if hasattr(column, "gather"):  # polars
        return column.gather(rows)
    if hasattr(column, "iloc"):  # pandas
        return column.iloc[rows]
    if isinstance(column, np.ndarray):
        return column[rows]
    return np.asarray([column[i] for i in rows.tolist()])


def imported(library: str) -> Any:
    """pandas, polars or xarray, which nothing else here imports."""
    try:
        return import_module(library)
    except ImportError:
        raise NotInstalledError(f"{library} is not installed: pip install mnp[{library}]") from None


def _is_range(rows: np.ndarray, n: int) -> bool:
    return len(rows) == n and bool(np.all(rows == np.arange(n)))


def frame_of(kind: str, columns: dict[str, Any], index: Any = None) -> Any:
    """A frame of a kind from columns of any; index: of a pandas frame."""
    if kind == "dict":
        return {name: np.asarray(column) for name, column in columns.items()}
    library = imported(kind)
    if kind == "polars":
        plain = {
            n: v if isinstance(v, library.Series) else np.asarray(v) for n, v in columns.items()
        }
        return library.DataFrame(plain)
    plain = {n: v.array if hasattr(v, "iloc") else np.asarray(v) for n, v in columns.items()}
    return library.DataFrame(plain, index=index)


def _as_in(column: Any, name: str, texts: list[str]) -> Any:
    """Values of a column by their texts; the texts where one is not there."""
    first: dict[str, int] = {}
    for i, text in enumerate(cells(name, column)):
        first.setdefault(text, i)
    found = [first.get(text, -1) for text in texts]
    return np.array(texts) if -1 in found else _taken(column, np.array(found, np.int64))


def _columns_of_places(question: Question, process: Process) -> tuple[dict[str, Any], Any]:
    """The group, then the columns of the places, in the order of the rows; and the index of the
    pandas frame whose rows these are."""
    places, context = question.places, question.context
    own = columns_of(places.source) if places.source is not None else {}
    seen = columns_of(context.source) if context is not None and context.source is not None else {}
    n = len(next(iter(own.values()))) if own else len(places)
    # a row of the frame becomes one for each output, and all of them one for each curve
    rows = np.arange(len(places)) % question.each // max(question.each // n, 1)
    groups: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for k, (name, kind) in enumerate(places.columns):
        to = groups if kind == c.MNP_COLUMN_GROUP else others
        if name in own:
            to[name] = _taken(own[name], rows)
        elif name in seen and to is groups:
            to[name] = _as_in(seen[name], name, places.texts(k))
        elif name:
            to[name] = places.values(k, process)
    index = None
    if kind_of(places.source) == "pandas" and _is_range(rows, n):
        named = any(name is not None for name in places.source.index.names)
        index = None if named else places.source.index
    return {**groups, **others}, index


# ---- forecasts of many curves --------------------------------------------------------------------


class _Levels(NamedTuple):
    of: np.ndarray
    names: list[str]


def _levels(quantiles: Any) -> _Levels:
    if quantiles is None:
        return _Levels(np.array(list(USUAL)), list(USUAL.values()))
    of = levels_of(quantiles)
    if len(set(of.tolist())) < len(of):
        raise InvalidError("quantiles has a probability twice: give different ones")
    return _Levels(of, [f"q{_number(p)}" for p in of.tolist()])


def _open_places(process: Process, at: Any, context: Table | None, group, x) -> Table:
    """A frame, a file, a grid "lo:hi:n", or values of the one input that is asked about."""
    if at is None:
        raise InvalidError("say where: at=a frame with the inputs, an array, or a grid 'lo:hi:n'")
    if isinstance(at, str) and not os.path.isfile(at) and ":" in at:
        return Table.grid(process, at)
    if not kind_of(at) and not isinstance(at, (str, os.PathLike)):
        at = {moving_input(process): np.atleast_1d(np.asarray(at))}
    if context is not None and context.groups:
        group = context.groups
    places = Table.open(process, at, False, group, x, None)
    if len(places) == 0:
        raise InvalidError("at has no rows to predict at")
    return places


def _noted_table(process: Process) -> dict[str, Any]:
    """What the model notes of its table: its columns, and its outputs where there are several."""
    text = lib.mnp_model_note(process.handle, b"table")
    return json.loads(text) if text else {}


def moving_input(process: Process) -> str:
    """The one input that changes within a curve."""
    names = process.x_names
    if len(names) == 1:
        return names[0]
    inputs = _noted_table(process).get("x", [])
    moving = [i["name"] for i in inputs if not i.get("constant") and i.get("unit") != "category"]
    if len(moving) == 1:
        return moving[0]
    raise InvalidError(f"the model has {len(names)} inputs: give at as a frame with their columns")


def outputs_of(process: Process) -> dict[str, int]:
    """Where there are several outputs, their names and the input that is 1 for each."""
    names = [output["name"] for output in _noted_table(process).get("outputs", [])]
    return {name: process.x_dim - len(names) + k for k, name in enumerate(names)}


def read_context(process: Process, context: Any, group=None, x=None, y=None) -> Table | None:
    if context is None:
        return None
    return Table.open(process, context, True, group, x, y)


class Question(NamedTuple):
    """Curves with their points, and where they are asked about."""

    context: Table | None
    places: Table
    each: int  #: rows of the places before they were asked of every curve

    @classmethod
    def of(cls, process: Process, context: Any, at: Any, group=None, x=None, y=None) -> Question:
        seen = read_context(process, context, group, x, y)
        places = _open_places(process, at, seen, group, x)
        each = len(places)
        lines = (seen.warnings if seen else "") + places.warnings
        if seen is not None and seen.groups and not places.groups:
            places = places.spread(process, seen)
            if len(places) == 0:
                raise InvalidError("the context has no curve with a point")
        ctx = current()
        seen_handle = None if seen is None else seen.handle
        lines += text_of(lib.mnp_table_match, ctx, seen_handle, places.handle)
        warn(lines)
        return cls(seen, places, each)

    @property
    def most(self) -> int:
        """The most points that a curve is given of those that are asked about."""
        seen, rows = self.context, lib.mnp_table_group_rows
        if seen is None or not seen.curves:
            return 0
        if bool(seen.groups) != bool(self.places.groups):
            return rows(seen.handle, 0)
        find = lib.mnp_table_find
        own = (find(seen.handle, name.encode()) for name in self.places.curves)
        return max((rows(seen.handle, k) for k in own), default=0)


def forecast(
    process: Process,
    context: Any = None,
    at: Any = None,
    *,
    group: str | Sequence[str] | None = None,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    quantiles: Any = None,
    samples: int = 200,
    draws: bool = False,
    noise: bool = True,
    condition: str | None = None,
    gradients: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], Any] | None = None,
    as_: str | None = None,
) -> Any:
    """Forecasts of one or many curves, each given its own points in `context`, as `mnp predict`
    makes them.

    context: a frame (pandas, polars, a dict of arrays) or the path of a CSV file, with the columns
    of the training table; None: the population. at: where to predict: a frame or a file with the
    inputs and perhaps the group of each row; an array (n,) of the input, or a grid "lo:hi:n", which
    are asked of every curve. What is constant in a curve may be left out. group, x, y: columns that
    are called otherwise here.

    The answer is a frame of the same kind as `at` (else as `context`): the group, the columns of
    `at` in their order, then mean, sd and a column for each quantile: q05, q25, q50, q75, q95, or
    q0.025 and the like for quantiles=(0.025, ...); with draws=True draw1 to the number of samples.
    Numbers include the noise of measurements, unless noise=False. A curve's numbers depend on the
    seed and its name alone. as_: "pandas", "polars", "dict" or "xarray".
    """
    if as_ not in (None, "pandas", "polars", "dict", "xarray"):
        raise InvalidError(f"as_ is {as_!r}: give pandas, polars, dict or xarray")
    levels = _levels(quantiles)
    how = how_of(process.handle, condition, samples, gradients, seed, device)
    question = Question.of(process, context, at, group, x, y)
    numbers = _ask(process, question, levels.of, how, draws, noise, progress)
    columns, index = _columns_of_places(question, process)
    if as_ == "xarray":
        return _dataset(columns, numbers, levels.of)
    results = {"mean": numbers["mean"], "sd": numbers["sd"]}
    results.update(zip(levels.names, numbers["quantiles"]))
    results.update((f"draw{k + 1}", d) for k, d in enumerate(numbers.get("draws", ())))
    for name in [name for name in columns if name in results]:
        warn(f"the column {name} of the places is left out: the forecast has one of that name")
        del columns[name]
    kind = as_ or kind_of(at) or kind_of(context) or usual_kind()
    return frame_of(kind, {**columns, **results}, index if kind == "pandas" else None)


def usual_kind() -> str:
    return "pandas" if find_spec("pandas") else "dict"


def _ask(process, question, levels, how, draws, noise, progress) -> dict[str, np.ndarray]:
    """mean and sd (rows,), quantiles (levels, rows), draws (S, rows)."""
    n = len(question.places)
    curves = lib.mnp_table_groups(question.places.handle)
    out = {"mean": np.empty(n), "sd": np.empty(n), "quantiles": np.empty((len(levels), n))}
    if draws:
        out["draws"] = np.empty((how.draws, n))
    reports = (c.mnp_draw_report * curves)()
    for r in reports:
        r.size = ctypes.sizeof(c.mnp_draw_report)
    ctx = current()
    usual = not how.given and not how.noted
    opts = c.mnp_groups_opts(
        samples=how.draws,
        seed=how.seed,
        device=how.device,
        condition=how.condition,
        gradients=how.gradients,
        work_max=WORK_MAX if usual else 0,
        smooth=int(not noise),
        reports=ctypes.addressof(reports),
        progress=ctx.progress(progress),
    )
    reach_of(process.handle).count(question.most)
    places = {name: address(array) for name, array in out.items()}
    to = c.mnp_summary(levels=len(levels), level=address(levels), **places)
    context = None if question.context is None else question.context.handle
    call = (lib.mnp_predict_groups, ctx, process.handle, context, question.places.handle)
    or_by_network(lambda: ctx.call(*call, ctypes.byref(opts), ctypes.byref(to)), opts, how.given)
    _tell(process, question, opts, reports)
    return out


def _tell(process, question, opts, reports) -> None:
    """What is doubtful about the drawing."""
    context, many = question.context, 0
    if context is not None and opts.condition != c.MNP_NETWORK and opts.work_max and process.latent:
        most = opts.work_max // opts.samples
        rows = lib.mnp_table_group_rows
        many = sum(rows(context.handle, g) > most for g in range(len(context.curves)))
    if many:
        warn(
            f"{many} of {len(reports)} curves have many points: drawn by the network; "
            'condition="refine" is more accurate and takes longer',
        )
    for bit, text in WARNINGS.items():
        of = sum(1 for r in reports if r.warnings & bit)
        if of:
            warn(text if len(reports) == 1 else f"{of} of {len(reports)} curves: {text}")


# ---- xarray --------------------------------------------------------------------------------------


def _dataset(columns: dict[str, Any], numbers: dict[str, np.ndarray], levels: np.ndarray) -> Any:
    """Dimensions draw, quantile, point; the columns of the places are coordinates of point."""
    coords: dict[str, Any] = {name: ("point", np.asarray(v)) for name, v in columns.items()}
    coords["quantile"] = levels
    data = {
        "mean": ("point", numbers["mean"]),
        "sd": ("point", numbers["sd"]),
        "quantiles": (("quantile", "point"), numbers["quantiles"]),
    }
    if "draws" in numbers:
        data["draws"] = (("draw", "point"), numbers["draws"])
    return imported("xarray").Dataset(data, coords)


def draws_to_xarray(
    posterior: Posterior, x: Any, n: int | None = None, *, noise: bool = False
) -> Any:
    """n functions of a posterior at x as a DataArray: dimensions draw and point, the inputs as
    coordinates of point."""
    y = posterior.sample(x, n, noise=noise)
    places = np.asarray(x, np.float64).reshape(y.shape[1], -1)
    from .process import Process

    process = Process(posterior._model)
    coords = {name: ("point", places[:, k]) for k, name in enumerate(process.x_names)}
    return imported("xarray").DataArray(y, coords, ("draw", "point"), name=process.y_name)


def is_date(process: Process, k: int) -> str | None:
    """Are the values of input k dates? "D" or "s" of datetime64, or None."""
    text = ctypes.create_string_buffer(64)
    lib.mnp_model_text(process.handle, k, 0.0, text, len(text))
    if not text.value.startswith(b"1970-01-01"):
        return None
    return "s" if b":" in text.value else "D"


def moments(values: np.ndarray, unit: str) -> np.ndarray:
    """Numbers of a date column as datetime64[ms]."""
    scale = 86400e3 if unit == "D" else 1e3
    return EPOCH.astype("datetime64[ms]") + np.rint(values * scale).astype("timedelta64[ms]")


__all__ = ["Question", "Table", "columns_of", "forecast", "kind_of", "open_data", "to_csv"]
