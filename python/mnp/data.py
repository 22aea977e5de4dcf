"""Data: functions to train on and to score. Families that are drawn, arrays, CSV files.

>>> import mnp
>>> data = mnp.Data.family("monotonic", functions=3, seed=1)
>>> len(data), data.x_dim
(3, 1)
>>> x, y = data[0]
>>> x.shape == y.shape
True
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import _structs as c
from ._arrays import Sets, is_many, numbers, seed_of, view, whole
from ._arrays import path as as_path
from ._context import Handle, current, in_python, opened, warn
from ._library import lib, texts
from .errors import InvalidError

SPLITS = {"train": c.MNP_TRAIN, "valid": c.MNP_VALID, "test": c.MNP_TEST}


def families() -> dict[str, str]:
    """The built-in families and a line about each.

    >>> import mnp
    >>> "monotonic" in mnp.families()
    True
    """
    about = ctypes.c_char_p()
    out: dict[str, str] = {}
    while (name := lib.mnp_data_family(len(out), ctypes.byref(about))) is not None:
        out[name.decode()] = about.value.decode()
    return out


def _split(name: str) -> int:
    if not isinstance(name, str) or name not in SPLITS:
        raise InvalidError(f"split is {name!r}: give one of {', '.join(SPLITS)}")
    return SPLITS[name]


def column_names(names: str | Sequence[str] | None, what: str) -> bytes | None:
    """One name, or several in a list; None: to be guessed."""
    if names is None:
        return None
    try:
        return ",".join([names] if isinstance(names, str) else names).encode()
    except TypeError:
        raise InvalidError(
            f"{what} is {names!r}: give the name of a column, or a list of names"
        ) from None


def table_options(
    *,
    group: str | Sequence[str] | None = None,
    x: str | Sequence[str] | None = None,
    y: str | Sequence[str] | None = None,
    action: str | None = None,
    split: str = "train",
    holdout: float = -1,
    test: float = -1,
    seed: int = 0,
    wide: bool = False,
    like: Any = None,
) -> dict[str, Any]:
    return {
        "function_column": column_names(group, "group"),
        "x_columns": column_names(x, "x"),
        "y_column": column_names(y, "y"),
        "action_column": column_names(action, "action"),
        "split": _split(split),
        "holdout": float(holdout),
        "test": float(test),
        "seed": seed_of(seed),
        "wide": bool(wide),
        "like": None if like is None else _process(like)._as_parameter_,
    }


def _process(like: Any) -> Handle:
    from .process import Process

    if not isinstance(like, Process):
        raise InvalidError(f"like is of the type {type(like).__name__}: give an mnp.Process")
    return like.handle


class Data:
    """Functions, each a set of points (x, y). `len(data)` of them; `data[i]` is (x, y) with x
    (n,) or (n, x_dim) and y (n,), float64. Made by `Data.family`, `Data.arrays`,
    `Data.csv` and `Data.text`.

    >>> import numpy as np, mnp
    >>> x = np.linspace(0, 1, 5)
    >>> data = mnp.Data.arrays([x, x[:3]], [x**2, x[:3] ** 3])
    >>> [len(y) for x, y in data]
    [5, 3]
    """

    def __init__(self, handle: Handle) -> None:
        self._handle: Handle | None = handle

    # ---- making ----------------------------------------------------------------------------------

    @classmethod
    def family(cls, name: str, *, functions: int = 0, seed: int = 0, split: str = "train") -> Data:
        """Functions of a built-in family, with its variant: "monotonic", "periodic:noise_var=1e-3".

        functions: how many; 0 means 50 000 to train on, and 5 000 of each other split. The same
        name, seed and split give the same functions.
        """
        functions = whole(functions, "functions", 0)
        return cls._open(name, functions=functions, seed=seed_of(seed), split=_split(split))

    @classmethod
    def csv(cls, path: str | os.PathLike, **options: Any) -> Data:
        """The curves of a CSV file: `Data.text` has the options."""
        return cls._open(path, **table_options(**options))

    @classmethod
    def text(cls, text: str | bytes, **options: Any) -> Data:
        """The curves of a CSV file that is in memory.

        group, x, y: names of columns, one or a list; those not named are guessed (`data.report`).
        holdout and test: the shares of the curves kept for the splits "valid" and "test"; negative,
        the default: none, so that all curves are here. split, seed: which part, and of which
        division. wide: one curve in a row. like: a Process whose table this is read like.

        >>> import mnp
        >>> data = mnp.Data.text("who,t,y\\na,0,1\\na,1,2\\nb,0,3\\nb,2,5\\n")
        >>> data.group_name, data.x_names, data.y_name, len(data)
        ('who', ['t'], 'y', 2)
        """
        if not isinstance(text, (str, bytes, bytearray, memoryview)):
            raise InvalidError(f"text is of the type {type(text).__name__}: give a text, or bytes")
        data = cls._read(text.encode() if isinstance(text, str) else bytes(text), options)
        warn(lib.mnp_data_warnings(data.handle))
        return data

    @classmethod
    def _read(cls, raw: bytes, options: dict[str, Any]) -> Data:
        opts = c.mnp_data_opts(**table_options(**options))
        handle = current().make(
            lib.mnp_data_open_memory,
            raw,
            len(raw),
            ctypes.byref(opts),
            destroy=lib.mnp_data_destroy,
        )
        return cls(handle)

    @classmethod
    def arrays(cls, x: Any, y: Any) -> Data:
        """From arrays: lists with the x (n,) or (n, x_dim) and the y (n,) of each curve, or arrays
        x (count, n[, x_dim]) and y (count, n); x (n,) alone is shared by all curves.

        >>> import mnp
        >>> mnp.Data.arrays([0.0, 0.5, 1.0], [[1, 2, 3], [2, 3, 5]])
        <mnp.Data arrays: 2 functions, 6 points>
        """
        if not is_many(y):
            raise InvalidError("y is of one curve: give a list of arrays, or an array (count, n)")
        if x is None:
            raise InvalidError("x is missing: give the places of the y")
        if np.ndim(x) == 0 if isinstance(x, np.ndarray) else not isinstance(x, Sequence):
            raise InvalidError(f"x is of the type {type(x).__name__}: give a list of arrays")
        if len(x) and np.ndim(x[0]) == 0:
            shared = numbers(x, "x")
            x = [shared] * len(y)
        if len(x) != len(y):
            raise InvalidError(f"x is of {len(x)} curves and y of {len(y)}")
        first = numbers(x[0], "x[0]")
        x_dim = first.shape[1] if first.ndim == 2 else 1
        sets = Sets(x, y, x_dim)
        return cls(
            current().make(
                lib.mnp_data_from_sets, sets.at(), sets.count, x_dim, destroy=lib.mnp_data_destroy
            )
        )

    @classmethod
    def _open(cls, what: str | os.PathLike, **opts: Any) -> Data:
        handle = current().make(
            lib.mnp_data_open,
            as_path(what, "the name of the data"),
            ctypes.byref(c.mnp_data_opts(**opts)),
            destroy=lib.mnp_data_destroy,
        )
        warn(lib.mnp_data_warnings(handle))
        return cls(handle)

    # ---- asking ----------------------------------------------------------------------------------

    @property
    def handle(self) -> Handle:
        """What calls of the library take; ClosedError after close()."""
        return opened(self._handle, "Data")

    def __len__(self) -> int:
        return lib.mnp_data_functions(self.handle)

    def __getitem__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        handle, count = self.handle, len(self)
        if not -count <= i < count:
            raise IndexError(f"function {i} of {count}")
        n, x, y = ctypes.c_int64(), ctypes.c_void_p(), ctypes.c_void_p()
        context = current()
        context.call(
            lib.mnp_data_function,
            context,
            handle,
            i % count,
            ctypes.byref(n),
            ctypes.byref(x),
            ctypes.byref(y),
        )
        d = self.x_dim
        xs = view(x.value, (n.value, d), ctypes.c_float).astype(np.float64)
        ys = view(y.value, (n.value,), ctypes.c_float).astype(np.float64)
        xs += [lib.mnp_data_x_origin(handle, k) for k in range(d)]
        ys += lib.mnp_data_y_origin(handle)
        return (xs[:, 0] if d == 1 else xs), ys

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return (self[i] for i in range(len(self)))

    @property
    def x_dim(self) -> int:
        """How many inputs."""
        return lib.mnp_data_x_dim(self.handle)

    @property
    def points(self) -> int:
        """Of all functions together."""
        return lib.mnp_data_points(self.handle)

    @property
    def name(self) -> str:
        return lib.mnp_data_name(self.handle).decode()

    @property
    def x_names(self) -> list[str]:
        return texts(lib.mnp_data_x_name, self.handle)

    @property
    def y_name(self) -> str:
        return lib.mnp_data_y_name(self.handle).decode()

    @property
    def group_name(self) -> str:
        """The column that tells curves apart; "" where there is none."""
        return lib.mnp_data_group_name(self.handle).decode()

    @property
    def report(self) -> str:
        """What was read, for people."""
        return lib.mnp_data_report(self.handle).decode()

    @property
    def warnings(self) -> list[str]:
        """What is doubtful about it."""
        return in_python(lib.mnp_data_warnings(self.handle).decode()).splitlines()

    def to_csv(self, path: str | os.PathLike) -> None:
        context = current()
        context.call(lib.mnp_data_write_csv, context, self.handle, as_path(path, "path"))

    # ---- life ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees its memory, once nobody uses it. Twice is no error."""
        self._handle = None

    def __enter__(self) -> Data:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self):
        names = [self.group_name, *self.x_names, self.y_name]
        plain = self.group_name and not any(set(name) & set(',"\r\n') for name in names)
        if not plain:
            return Data.arrays, ([x for x, _ in self], [y for _, y in self])
        lines = [",".join(names)]
        for k, (x, y) in enumerate(self):
            rows = np.column_stack([x, y]).tolist()
            lines += [f"{k}," + ",".join(map(repr, row)) for row in rows]
        raw = "\n".join(lines).encode()
        return Data._read, (raw, {"group": names[0], "x": names[1:-1], "y": names[-1]})

    def __repr__(self) -> str:
        if self._handle is None:
            return "<mnp.Data, closed>"
        return f"<mnp.Data {self.name}: {len(self)} functions, {self.points} points>"


def as_data(data: Any, like: Any = None) -> Data:
    """Data, the name of a family, a CSV path, a pair (x, y) of arrays, or a frame, which is read
    as the table of the process `like` was."""
    if isinstance(data, Data):
        return data
    if isinstance(data, (str, os.PathLike)):
        name = os.fspath(data)
        return Data.csv(name) if lib.mnp_data_path(name.encode()) else Data.family(name)
    if isinstance(data, tuple) and len(data) == 2:
        return Data.arrays(*data)
    from .frames import kind_of, open_data

    if kind_of(data):
        return open_data(data, like=like)
    raise InvalidError(
        "data is none of: mnp.Data, the name of a family, the path of a CSV file, a pair (x, y), a "
        "frame"
    )


__all__ = ["Data", "as_data", "families"]
