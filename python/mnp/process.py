"""Process: a model of functions. Load, train, save it; condition it on points; score and check it.

>>> import mnp
>>> process = mnp.load("mnp-monotonic")
>>> process.kind, process.x_dim
('mnp', 1)
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _structs as c
from ._arrays import is_many, seed_of, text, whole
from ._arrays import path as as_path
from ._context import Handle, current, opened, warn
from ._library import FOLDER, lib, texts
from .data import Data, as_data
from .errors import FileError, InvalidError
from .posterior import CONDITIONS, Posterior, how_of
from .posteriors import Posteriors

if TYPE_CHECKING:
    from .scores import Calibration, Laws, Scores

SUFFIX = ".safetensors"


# ---- models by name ------------------------------------------------------------------------------


def _folders() -> list[str]:
    """Of the package, and of a checkout for those who work on it."""
    checkout = os.path.dirname(os.path.dirname(FOLDER))
    out = [os.path.join(FOLDER, "models")]
    if os.path.isfile(os.path.join(checkout, "include", "mnp.h")):
        out.append(os.path.join(checkout, "models"))
    return [folder for folder in out if os.path.isdir(folder)]


def models() -> list[str]:
    """The names of the models that came with this package, for `load`.

    >>> import mnp
    >>> "mnp-monotonic" in mnp.models()
    True
    """
    found = {f[: -len(SUFFIX)] for d in _folders() for f in os.listdir(d) if f.endswith(SUFFIX)}
    return sorted(found)


def load(model: str | os.PathLike) -> Process:
    """A model by the name it came with ("mnp-monotonic", see `models`), or from its file.

    >>> import mnp
    >>> mnp.load("mnp-monotonic").latent > 0
    True
    """
    name = os.fsdecode(as_path(model, "model"))
    if not os.path.isfile(name):
        for folder in _folders():
            file = os.path.join(folder, name + SUFFIX)
            if os.path.basename(name) == name and os.path.isfile(file):
                name = file
                break
        else:
            known = ", ".join(models()) or "none"
            raise FileError(f"there is no file {name!r}, and no model of that name: {known}")
    return Process(current().make(lib.mnp_model_load, os.fsencode(name), **_OF_MODELS))


_OF_MODELS = {"destroy": lambda address: lib.mnp_model_destroy(address)}


def model_bytes(model: Handle) -> bytes:
    """The model's file, in memory."""
    context, length = current(), ctypes.c_size_t()
    save = lib.mnp_model_save_memory
    context.call(save, context, model, None, 0, ctypes.byref(length))
    block = ctypes.create_string_buffer(length.value)
    context.call(save, context, model, block, length.value, ctypes.byref(length))
    return block.raw


def model_of(data: bytes) -> Handle:
    return current().make(lib.mnp_model_load_memory, data, len(data), **_OF_MODELS)


# ---- processes -----------------------------------------------------------------------------------


class Process:
    """A model of functions. Threads may share one; it pickles and copies by its bytes."""

    def __init__(self, handle: Handle) -> None:
        self._handle: Handle | None = handle

    @classmethod
    def from_bytes(cls, data: bytes) -> Process:
        """A model from the bytes of its file."""
        return cls(model_of(bytes(data)))

    def to_bytes(self) -> bytes:
        """The bytes of the model's file."""
        return model_bytes(self.handle)

    def save(self, path: str | os.PathLike) -> None:
        """Writes a model file, which the command mnp reads too."""
        context = current()
        context.call(lib.mnp_model_save, context, self.handle, as_path(path, "path"))

    @property
    def handle(self) -> Handle:
        """What calls of the library take; ClosedError after close()."""
        return opened(self._handle, "Process")

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def x_dim(self) -> int:
        """How many inputs."""
        return lib.mnp_model_x_dim(self.handle)

    @property
    def parameters(self) -> int:
        """How many numbers were learnt."""
        return lib.mnp_model_parameters(self.handle)

    @property
    def steps(self) -> int:
        """Steps T of the Markov chain."""
        return lib.mnp_model_steps(self.handle)

    @property
    def latent(self) -> int:
        """Width of one latent z_t; 0: the process has none."""
        return lib.mnp_model_latent(self.handle)

    @property
    def options(self) -> dict[str, str]:
        """All options of the model."""
        words = lib.mnp_model_options(self.handle).decode().split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    @property
    def learned(self) -> str:
        """What a Gaussian process has learned, in a line and in units of its data; "" of others."""
        out = ctypes.create_string_buffer(1024)
        lib.mnp_model_learned(self.handle, out, len(out))
        return out.value.decode()

    @property
    def kind(self) -> str:
        """ "mnp", "np", "gp", ..."""
        return self.options.get("kind", "")

    @property
    def notes(self) -> dict[str, str]:
        """How it was made: "data", "seed", "steps", ..."""
        handle = self.handle
        keys = texts(lib.mnp_model_note_key, handle)
        return {k: lib.mnp_model_note(handle, k.encode()).decode() for k in keys}

    def note(self, key: str, value: str | None) -> None:
        """Sets a note, or removes it (None). No other thread may use the process meanwhile."""
        context = current()
        raw = None if value is None else text(value, "value")
        context.call(lib.mnp_model_set_note, context, self.handle, text(key, "key"), raw)

    @property
    def x_names(self) -> list[str]:
        """Names of the inputs, as the training table had them."""
        noted = lib.mnp_model_note(self.handle, b"x_names")
        if noted:
            return noted.decode().split(",")
        return ["x"] if self.x_dim == 1 else [f"x{k + 1}" for k in range(self.x_dim)]

    @property
    def y_name(self) -> str:
        noted = lib.mnp_model_note(self.handle, b"y_name")
        return noted.decode() if noted else "y"

    def weights(self) -> dict[str, np.ndarray]:
        """Copies of the weights by their names in the file, float32 matrices."""
        context, handle = current(), self.handle
        out = {}
        for name in texts(lib.mnp_model_tensor_name, handle):
            t = c.mnp_tensor()
            context.call(lib.mnp_model_tensor, context, handle, name.encode(), ctypes.byref(t))
            block = (ctypes.c_float * max(t.rows * t.stride, 1)).from_address(t.data)
            whole = np.frombuffer(block, np.float32)[: t.rows * t.stride]
            out[name] = whole.reshape(t.rows, t.stride)[:, : t.cols].copy()
        return out

    # ---- conditioning ----------------------------------------------------------------------------

    def condition(
        self,
        x: Any = None,
        y: Any = None,
        *,
        condition: str | None = None,
        draws: int = 200,
        gradients: int | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> Posterior | Posteriors:
        """The process given points x (n,) or (n, x_dim) and y (n,); without any, its prior.

        condition: "network" (at once, an approximation), "refine", "exact" (the conditional of one
        stochastic process), or None: what the model notes, else "refine", "network" for several
        inputs, as the command predicts. draws: functions behind mean, sd and quantiles. gradients:
        of each particle, None for the usual number.

        Lists of x and y, or arrays (count, n[, x_dim]) and (count, n), are many contexts: the
        answer is a `Posteriors`.

        >>> import mnp
        >>> posterior = mnp.load("mnp-monotonic").condition([0.1, 0.5], [0.1, 0.4])
        >>> posterior.mean([0.2, 0.8]).shape
        (2,)
        """
        if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1 and np.ndim(x) < 3:
            raise InvalidError(
                f"y has the shape {y.shape}: give ({len(y)},), or lists for many contexts"
            )
        if y is not None and is_many(y):
            return self.condition_many(
                x,
                y,
                condition=condition,
                draws=draws,
                gradients=gradients,
                seed=seed,
                device=device,
            )
        if (x is None) != (y is None):
            raise InvalidError(f"{'x' if x is None else 'y'} is missing: give both, or none")
        handle = self.handle
        how = how_of(handle, condition, draws, gradients, seed, device)
        return Posterior(handle, lib.mnp_model_x_dim(handle), x, y, how)

    def condition_many(
        self,
        x: Any,
        y: Any,
        *,
        condition: str | None = None,
        draws: int = 200,
        gradients: int | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> Posteriors:
        """The process given many contexts, each by itself: lists of x and of y. Any may be empty.
        Context k gets the seed `seed + k`."""
        handle = self.handle
        how = how_of(handle, condition, draws, gradients, seed, device)
        return Posteriors(handle, lib.mnp_model_x_dim(handle), x, y, how)

    # ---- scores ----------------------------------------------------------------------------------

    def evaluate(self, data: Any = None, **options: Any) -> Scores:
        """Scores on held-out functions: see `mnp.scores.evaluate`."""
        from .scores import evaluate

        return evaluate(self, data, **options)

    def check(self, data: Any = None, **options: Any) -> Laws:
        """How well the laws of a stochastic process hold: see `mnp.scores.check`."""
        from .scores import check

        return check(self, data, **options)

    def calibrate(self, data: Any = None, **options: Any) -> Calibration:
        """Ranks of the model's own functions among draws: see `mnp.scores.calibrate`."""
        from .scores import calibrate

        return calibrate(self, data, **options)

    def data(self, split: str = "test", functions: int = 0) -> Data:
        """The model's own data again, as its notes say. FileError: the file is gone."""
        from .data import _split

        handle = current().make(
            lib.mnp_data_reopen,
            self.handle,
            _split(split),
            whole(functions, "functions", 0),
            None,
            destroy=lib.mnp_data_destroy,
        )
        warn(lib.mnp_data_warnings(handle))
        return Data(handle)

    def predict(self, context: Any = None, at: Any = None, **options: Any) -> Any:
        """Forecasts of one or many curves, each given its own points in the frame `context`, at the
        places `at`: mean, sd and quantiles in a frame. `mnp.frames.forecast` has the options:
        quantiles, samples, draws, condition, seed, as_, ..."""
        from .frames import forecast

        return forecast(self, context, at, **options)

    def plot(self, *arguments: Any, **options: Any) -> Any:
        """A picture of forecasts: see `mnp.plotting`."""
        from . import plotting

        return plotting.plot(self, *arguments, **options)

    # ---- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees its memory, once nobody uses it; posteriors work on. Twice is no error."""
        self._handle = None

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Process:
        return Process.from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: dict) -> Process:
        return self.__copy__()

    def __reduce__(self):
        return Process.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<mnp.Process, closed>"
        plural = "" if self.x_dim == 1 else "s"
        return (
            f"<mnp.Process {self.kind}: {self.x_dim} input{plural}, {self.parameters} parameters>"
        )


# ---- training ------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """Where a training is. Losses are of the last batch, per point, in raw units."""

    step: int
    steps: int
    loss: float
    kl: float
    loglik: float
    grad_norm: float
    rate: float
    valid: float  #: validation score; NaN before the first
    best_valid: float
    best_step: int
    rounding: float  #: on a GPU in tf32 or bf16: |g - g32| / |g32| of the last step looked at
    sampling: float  #: the standard deviation of g32 from batch to batch, over |g32|
    shift: float  #: loss - loss in fp32
    rounding_at: int  #: the step after which these were found to cost score; 0: they were not
    exact_from: int  #: precision auto: the step from which it computes in fp32; 0: not yet

    @classmethod
    def of(cls, r: c.mnp_train_report) -> Progress:
        return cls(*(getattr(r, name) for name in cls._fields))


def _is_table(data: Any) -> bool:
    """A frame, or the path of a CSV file."""
    from .frames import kind_of

    if isinstance(data, (str, os.PathLike)):
        return bool(lib.mnp_data_path(os.fsencode(data)))
    return not isinstance(data, (Data, tuple)) and kind_of(data) is not None


def _pair(
    data: Any, valid: Any, functions: int, seed: int, names: dict[str, Any]
) -> tuple[Data, Data | None]:
    """Data to train on and to validate with. A family, a file and a frame have their own split.
    names: the columns group, x and y of tables."""
    from .frames import open_data, open_splits

    names = {word: name for word, name in names.items() if name is not None}
    for one in (data, valid):
        if names and one is not None and not _is_table(one):
            raise InvalidError(f"{', '.join(names)}: only a frame or a CSV file has named columns")
    if valid is not None:
        both = (open_data(d, **names) if names else as_data(d) for d in (data, valid))
        return next(both), next(both)
    if _is_table(data):
        return open_splits(data, seed=seed, **names)
    if not isinstance(data, (str, os.PathLike)):
        return as_data(data), None
    name = os.fspath(data)
    return (
        Data.family(name, functions=functions, seed=seed),
        Data.family(name, functions=1000, seed=seed, split="valid"),
    )


def _settings(steps, batch, context, options: dict[str, Any]) -> tuple[str, str]:
    """Options of the model and of the training, "T=5 rff=40"; each has a table in the library."""
    span = context
    if context is not None and not isinstance(context, str):
        if not isinstance(context, (tuple, list)) or len(context) != 2:
            raise InvalidError(f"context is {context!r}: give (lo, hi), or a text")
        span = ":".join(str(whole(n, "context", 0)) for n in context)
    given = {"steps": steps, "batch": batch, "context": span, **options}
    words: dict[str, list[str]] = {"model": [], "train": []}
    for name, value in given.items():
        if value is None:
            continue
        table = next((t for t in words if lib.mnp_options_has(t.encode(), name.encode())), None)
        if table is None:
            known = [n for t in words for n in option_names(t)]
            raise InvalidError(f"there is no option {name!r} (options: {', '.join(known)})")
        if isinstance(value, bool):
            value = "on" if value else "off"
        words[table].append(f"{name}={value}")
    return " ".join(words["model"]), " ".join(words["train"])


def option_names(table: str) -> list[str]:
    """The options of a table of the library: "model", "train"."""
    one, out = c.mnp_option(), []
    while lib.mnp_options_at(table.encode(), len(out), ctypes.byref(one)):
        out.append(one.name.decode())
    return out


def train(
    data: Any,
    model: str = "mnp",
    preset: str | None = None,
    *,
    group: Any = None,
    x: Any = None,
    y: Any = None,
    valid: Any = None,
    functions: int = 0,
    steps: int | None = None,
    batch: int | None = None,
    context: str | tuple[int, int] | None = None,
    init: Process | None = None,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[Progress], Any] | None = None,
    **options: Any,
) -> Process:
    """Trains a model and returns it with its best weights.

    data: an `mnp.Data`, a pair (x, y) of lists of arrays, the name of a family, a CSV file or a
    frame; the last three keep curves back for validation, the others do so with `valid`. group, x,
    y: columns of a file or a frame, guessed where they are not named, as `mnp.fit` does. model: one
    of "mnp", "np", "gp", "cbp", "lmm", ...; preset: "tiny", "paper", ..., None for what suits the
    data. options: any other option of the model or the training, as T=5, lr=1e-3. init: a model to
    start from, with its options; others may add to it, as attend="on". progress:
    called with a `Progress` now and then; it ends the training with True.

    The same seed gives the same weights, and those of `mnp train`.

    >>> import mnp
    >>> data = mnp.Data.family("monotonic", functions=50, seed=1)
    >>> mnp.train(data, preset="tiny", steps=2, seed=1).kind
    'mnp'
    """
    seed = seed_of(seed)
    train_data, valid_data = _pair(data, valid, functions, seed, {"group": group, "x": x, "y": y})
    of_model, of_training = _settings(steps, batch, context, options)
    ctx = current()
    ctx.doubts()  # those of before are not of this training
    if init is None:
        made = (
            lib.mnp_model_create,
            text(model, "model"),
            None if preset is None else text(preset, "preset"),
            text(of_model, "an option"),
            train_data.handle,
            seed,
        )
    elif preset is not None:
        raise InvalidError("init has its own options: leave out preset")
    else:
        changes = text(of_model, "an option")
        made = (lib.mnp_model_extend, init.handle, changes, train_data.handle, seed)
    handle = ctx.make(*made, **_OF_MODELS)
    opts = c.mnp_train_opts(
        options=text(of_training, "an option"), seed=seed, device=text(device, "device")
    )
    trainer = ctx.make(
        lib.mnp_trainer_create,
        handle,
        train_data.handle,
        None if valid_data is None else valid_data.handle,
        ctypes.byref(opts),
        destroy=lib.mnp_trainer_destroy,
        keep=True,
    )
    report = _run(ctx, trainer, progress)
    ctx.call(lib.mnp_trainer_take_best, trainer)
    doubts = ctypes.create_string_buffer(4096)
    lib.mnp_trainer_warnings(trainer, doubts, len(doubts))
    warn(doubts.value)
    warn(ctx.doubts())
    trained = Process(handle)
    if math.isfinite(report.best_valid):
        trained.note("best_valid", f"{report.best_valid:.6f}")  # as mnp_trainer_save_best() has it
    return trained


def _run(ctx, trainer: Handle, progress: Callable[[Progress], Any] | None) -> c.mnp_train_report:
    """In pieces of about a third of a second, where somebody watches."""
    from time import monotonic

    report = c.mnp_train_report()
    ctx.call(lib.mnp_trainer_report, trainer, ctypes.byref(report))
    piece = report.steps if progress is None else 1
    while report.step < report.steps:
        began = monotonic()
        ctx.call(lib.mnp_trainer_run, trainer, piece, ctypes.byref(report))
        each = (monotonic() - began) / piece
        if progress is not None:
            if progress(Progress.of(report)) is True:
                break
            piece = max(1, min(int(0.3 / each), 1000)) if each > 0 else 1000
    return report


__all__ = ["CONDITIONS", "Process", "Progress", "load", "models", "train"]
