"""From a table of curves to a model that is worth its place: `mnp.fit`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from . import _structs as c
from ._arrays import real, whole
from ._context import current, warn
from ._library import lib
from .data import Data
from .errors import InvalidError
from .frames import frame_of, open_data, python_words, usual_kind, words_of_python
from .posterior import seed_of
from .process import Process, model_bytes, model_of

TASKS = ("first", "random")
FitProgress = dict(c.mnp_fit_opts._fields_)["progress"]


def fit(
    table: Any,
    group: str | Sequence[str] | None = None,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    *,
    wide: bool = False,
    seed: int = 0,
    folds: int | None = None,
    effort: float | None = None,
    seconds: float | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> Fit:
    """Fits several models to a table of curves, scores each on curves that it did not see, and
    names the best: the path of `mnp fit`, with the same numbers for the same seed.

    table: a pandas or polars frame, a dict of arrays, or the path of a CSV file, with a row for
    each measurement; or an `mnp.Data`, whose columns are known. group: the column that tells curves
    apart (or several); x: the inputs, numbers, dates or text; y: what is measured. Those that are
    not named are guessed: see `Fit.understood`. wide: one curve in a row. folds: of the
    cross-validation by curve; None: 5 below 80 curves, else a fifth is held out once. effort: how
    long the network is trained, as a factor of the usual; 0 leaves it out. seconds: instead, about
    how long the whole may take. progress: called with (what, done, total); what it raises ends the
    fit, as Ctrl-C does.

    Five lines from a data frame, here of plants that were measured on some days, to a plotted
    forecast; effort and folds are for a quick look:

    >>> import mnp, numpy as np, pandas as pd
    >>> plants = pd.DataFrame({"plant": list("abcdef") * 5, "day": np.repeat(np.arange(5.0), 6)})
    >>> plants["height"] = np.exp(0.3 * plants["day"]) + plants["plant"].map(ord) - 96
    >>> fit = mnp.fit(plants, group="plant", x="day", y="height", effort=0, folds=2)
    >>> axes = fit.plot(plants[plants["plant"] == "a"].head(2))

    and the same as numbers:

    >>> list(fit.predict(plants[plants["plant"] == "a"].head(2), at=[3.0, 4.0]))
    ['plant', 'day', 'mean', 'sd', 'q05', 'q25', 'q50', 'q75', 'q95']
    """
    if isinstance(table, Data) and (wide or any(name is not None for name in (group, x, y))):
        raise InvalidError("the columns of an mnp.Data are known: leave out group, x, y and wide")
    if effort is not None and seconds is not None:
        raise InvalidError("effort and seconds exclude each other: give one of them")
    effort = None if effort is None else real(effort, "effort")
    seconds = None if seconds is None else real(seconds, "seconds")
    if effort is not None and not effort >= 0:
        effort = 0  # as the library has it: below 0 is without the network
    if seconds is not None and not seconds > 0:
        raise InvalidError(f"seconds is {seconds}: give more than 0")
    folds = 0 if folds is None else whole(folds, "folds", 1, 1000)
    seed = seed_of(seed)
    data = table if isinstance(table, Data) else open_data(table, group, x, y, wide=wide, seed=seed)
    ctx = current()
    opts = c.mnp_fit_opts(
        seed=seed,
        folds=folds,
        effort=0.0 if effort is None else float(effort) or -1.0,
        seconds=float(seconds or 0),
        progress=_progress(ctx, progress),
    )
    with python_words():
        handle = ctx.make(
            lib.mnp_fit_run,
            data.handle,
            ctypes.byref(opts),
            destroy=lib.mnp_fit_destroy,
            keep=True,
        )
    ctx.doubts()  # of folds: those about all curves are among the fit's own
    out = Fit(handle, data, seed)
    for line in out.warnings[len(data.warnings) :]:
        warn(line)
    return out


def _progress(ctx, function):
    """Called with a text and two numbers."""
    if function is None:
        return FitProgress()
    return ctx.progress(lambda what, done, total: function(what.decode(), done, total), FitProgress)


class Fit:
    """What came of `mnp.fit`. All models are fitted to all curves of the table.

    A fit pickles with its models and scores; `save`, `report` and `plot()` of held-out curves are
    for the session that made it.

    >>> import mnp, numpy as np
    >>> curve, t = np.repeat(np.arange(6), 5), np.tile(np.arange(5.0), 6)
    >>> fit = mnp.fit({"curve": curve, "t": t, "y": curve + t**2}, effort=0, folds=2)
    >>> fit.curves, fit.columns["group"], fit.best is fit.models[fit.best_name]
    (6, 'curve', True)
    """

    best: Process  #: the best model
    best_name: str  #: "lmm", "gp", ...
    models: dict[str, Process]  #: all models by name
    table: list[dict[str, Any]]  #: scores on curves that a model did not see, one row a task
    why: str  #: why the best is the best, in a line
    warnings: list[str]  #: what is doubtful
    curves: int  #: of the table
    folds: int
    effort: float  #: that was used; below 0: without the network
    columns: dict[str, Any]  #: {"group": name, "x": [names], "y": name}
    understood: str  #: what was read, for people
    seed: int

    def __init__(self, handle, data: Data, seed: int) -> None:
        self._handle = handle
        self._data = data
        count = lib.mnp_fit_models(handle)
        names = [lib.mnp_fit_name(handle, k).decode() for k in range(count)]
        self.models = {
            name: Process(model_of(model_bytes(lib.mnp_fit_model(handle, k))))
            for k, name in enumerate(names)
        }
        self.best_name = names[lib.mnp_fit_best(handle)]
        self.best = self.models[self.best_name]
        self.table = _rows(handle)
        self.why = lib.mnp_fit_why(handle).decode()
        lines = data.warnings + lib.mnp_fit_warnings(handle).decode().splitlines()
        self.warnings = [words_of_python(line) for line in lines]
        self.curves = lib.mnp_fit_curves(handle)
        self.folds = lib.mnp_fit_folds(handle)
        self.effort = lib.mnp_fit_effort(handle)
        self.columns = {"group": data.group_name, "x": data.x_names, "y": data.y_name}
        self.understood = data.report
        self.seed = seed

    # ---- using it --------------------------------------------------------------------------------

    def predict(self, context: Any = None, at: Any = None, **options: Any) -> Any:
        """Forecasts of one or many curves by the best model: see `mnp.frames.forecast`."""
        return self.best.predict(context, at, **options)

    def table_frame(self, kind: str | None = None) -> Any:
        """The table as a pandas or polars frame; without either a dict of arrays."""
        columns = {name: [row[name] for row in self.table] for name in self.table[0]}
        return frame_of(kind or usual_kind(), columns)

    def plot(self, context: Any = None, at: Any = None, **options: Any) -> Any:
        """Forecasts of the curves of a context by the best model (see `mnp.plotting.plot`); without
        a context a picture of some held-out curves given their first points."""
        if context is None and at is None and not options:
            return self.picture()
        return self.best.plot(context, at=at, **options)

    def picture(self) -> Any:
        """Some held-out curves, given their first points: an SVG that notebooks show."""
        from .plotting import Picture

        handle = self._made()
        context = handle.context

        def save(path: str) -> None:
            context.call(lib.mnp_fit_picture, context, handle, os.fsencode(path))

        return Picture(save)

    # ---- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> list[str]:
        """Writes the best model as `path` and the others beside it, m.lmm.safetensors and the like,
        or none: nothing is written over a file that exists. The names of the files."""
        handle = self._made()
        context, name = handle.context, os.fsencode(path)
        context.call(lib.mnp_fit_save, context, handle, name)
        out = []
        for k in range(len(self.models)):
            text = ctypes.create_string_buffer(len(name) + 64)
            lib.mnp_fit_path(handle, k, name, text, len(text))
            out.append(os.fsdecode(text.value))
        return out

    def report(self, path: str | os.PathLike, *, model: str | os.PathLike | None = None) -> None:
        """Writes the report: one HTML page that needs no other file. model: where `save` wrote the
        best, for the page to say."""
        handle = self._made()
        context = handle.context
        opts = c.mnp_fit_report_opts(model=None if model is None else os.fsencode(model))
        context.call(
            lib.mnp_fit_report,
            context,
            handle,
            self._data.handle,
            ctypes.byref(opts),
            os.fsencode(path),
        )

    # ---- life ------------------------------------------------------------------------------------

    def _made(self):
        if self._handle is None:
            raise InvalidError("this fit was pickled: save its models one by one")
        return self._handle

    def __copy__(self) -> Fit:
        """It shares what the library made: it saves and reports as this one does."""
        out = Fit.__new__(Fit)
        out.__dict__.update(self.__dict__)
        return out

    def __deepcopy__(self, memo: dict) -> Fit:
        out = self.__copy__()
        for name, value in self.__dict__.items():
            if name not in ("_handle", "_data"):
                setattr(out, name, deepcopy(value, memo))
        return out

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_handle": None, "_data": None}

    def __repr__(self) -> str:
        return f"<mnp.Fit of {self.curves} curves: {self.best_name} of {', '.join(self.models)}>"


def _rows(handle) -> list[dict[str, Any]]:
    out = []
    score = c.mnp_fit_score()
    while lib.mnp_fit_row(handle, len(out), ctypes.byref(score)):
        row: dict[str, Any] = {
            "model": score.model.decode(),
            "title": score.title.decode(),
            "task": TASKS[score.task],
        }
        for name, _ in score._fields_[4:]:
            value = getattr(score, name)
            if name != "pit":
                row[name] = value
        out.append(row)
    return out


__all__ = ["Fit", "fit"]
