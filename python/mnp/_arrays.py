"""Arguments: whole numbers, texts, paths, and NumPy in and out. float64 arrays that are
C-contiguous are used where they lie; others are converted once. What is refused is refused here by
its name, or by the library, which looks at every number."""

from __future__ import annotations

import ctypes
import operator
import os
from typing import Any

import numpy as np

from . import _structs as c
from .errors import InvalidError

FLOAT = np.dtype(np.float64)
DRAWS_MAX = 131_072  # functions of one drawing, as the library has it


# ---- whole numbers, texts, paths -----------------------------------------------------------------


def whole(value: Any, name: str, lo: int, hi: int = 2**63 - 1) -> int:
    """A whole number from lo to hi."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidError(f"{name} is {_shown(value)}: give a whole number") from None
    if lo <= number <= hi:
        return number
    wanted = f"{lo} or more" if hi >= 2**63 - 1 else f"{lo} to {hi}"
    raise InvalidError(f"{name} is {number}: give {wanted}")


def seed_of(seed: Any) -> int:
    return whole(seed, "seed", 0, 2**64 - 1)


def text(value: Any, name: str) -> bytes:
    """A text for the library."""
    if not isinstance(value, str):
        raise InvalidError(f"{name} is {_shown(value)}: give a text")
    return _without_zero(value.encode("utf-8", "surrogateescape"), name)


def path(value: Any, name: str) -> bytes:
    """A path for the library."""
    try:
        return _without_zero(os.fsencode(value), name)
    except TypeError:
        raise InvalidError(f"{name} is {_shown(value)}: give a path") from None


def _without_zero(raw: bytes, name: str) -> bytes:
    """A zero byte would end the text early."""
    if b"\0" in raw:
        raise InvalidError(f"{name} has a zero byte: {raw!r}")
    return raw


def _shown(value: Any) -> str:
    line = repr(value)
    plain = value is None or isinstance(value, (bool, int, float, str, bytes))
    return line if plain and len(line) <= 60 else f"of the type {type(value).__name__}"


# ---- arrays --------------------------------------------------------------------------------------


def numbers(value: Any, name: str) -> np.ndarray:
    """As float64, C-contiguous and aligned."""
    if type(value) is np.ndarray and value.dtype == FLOAT:
        flags = value.flags
        if flags.c_contiguous and flags.aligned:
            return value
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidError(f"{name} has rows of different lengths: give a list of arrays") from None
    mask = getattr(value, "mask", None)  # of masked arrays; that of a pandas Series is a method
    if isinstance(mask, (np.ndarray, np.bool_)) and np.any(mask):
        raise InvalidError(f"{name} has masked values: leave those points out")
    if array.dtype.kind not in "fiub":
        raise InvalidError(f"{name} holds {array.dtype}, not numbers: convert it to float64")
    return np.require(array, FLOAT, ("C", "A"))


def inputs(value: Any, x_dim: int, name: str = "x") -> np.ndarray:
    """Places: (n,) or (n, 1) for one input, (n, x_dim) for several."""
    x = numbers(value, name)
    if (x.ndim == 1 and x_dim == 1) or (x.ndim == 2 and x.shape[1] == x_dim):
        return x
    if x.ndim == 1 and x.shape[0] == 0:
        return x
    wanted = "(n,) or (n, 1)" if x_dim == 1 else f"(n, {x_dim})"
    inputs_word = "one input" if x_dim == 1 else f"{x_dim} inputs"
    raise InvalidError(
        f"{name} has the shape {x.shape}, and the model takes {inputs_word}: give {wanted}"
    )


def outputs(value: Any, n: int, name: str = "y") -> np.ndarray:
    """Values (n,) at n places."""
    y = numbers(value, name)
    if y.ndim == 1 and y.shape[0] == n:
        return y
    raise InvalidError(f"{name} has the shape {y.shape}: give ({n},), a value for each of the x")


def address(array: np.ndarray) -> int:
    """Where its numbers are; the caller keeps the array."""
    return array.__array_interface__["data"][0]


def is_many(value: Any, x_dim: int | None = None) -> bool:
    """Is it a value of several curves? A list of sequences, or an array with one dimension more
    than one curve's: x (count, n) or (count, n, x_dim), y (count, n)."""
    if isinstance(value, np.ndarray):
        if x_dim is None:
            return value.ndim == 2
        return value.ndim == 3 or (value.ndim == 2 and x_dim == 1 and value.shape[1] != 1)
    if not isinstance(value, (list, tuple)) or len(value) == 0:
        return False
    first = value[0]
    if x_dim is None or x_dim == 1:
        return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0
    return getattr(first, "ndim", 0) > 1 or (
        isinstance(first, (list, tuple)) and len(first) > 0 and not np.isscalar(first[0])
    )


SET = np.dtype([("n", np.int64), ("x", np.uintp), ("y", np.uintp)])  # mnp_set


class Sets:
    """Many curves as an array of mnp_set; it keeps what these point at. x and y are lists of
    arrays, or arrays with one dimension more."""

    def __init__(self, xs: Any, ys: Any, x_dim: int, name: str = "") -> None:
        for value, what in ((xs, "x"), ((), "y") if ys is None else (ys, "y")):
            try:
                len(value)
            except TypeError:
                wrong = f"{name}{what} is {_shown(value)}: give a list of arrays"
                raise InvalidError(wrong) from None
        if ys is not None and len(xs) != len(ys):
            raise InvalidError(f"{name}x is of {len(xs)} curves and {name}y of {len(ys)}")
        if isinstance(xs, np.ndarray):
            xs = numbers(xs, f"{name}x")
        if isinstance(ys, np.ndarray):
            ys = numbers(ys, f"{name}y")
        self.count = len(xs)
        self.xs = [inputs(x, x_dim, f"{name}x[{k}]") for k, x in enumerate(xs)]
        self.lengths = [x.shape[0] for x in self.xs]
        self.ys: list[np.ndarray] = []
        self.table = np.zeros(self.count, SET)
        self.table["n"] = self.lengths
        self.table["x"] = [address(x) for x in self.xs]
        if ys is not None:
            pairs = zip(ys, self.lengths)
            self.ys = [outputs(y, n, f"{name}y[{k}]") for k, (y, n) in enumerate(pairs)]
            self.table["y"] = [address(y) for y in self.ys]

    def at(self, k: int = 0) -> int:
        """Where the k-th is."""
        return address(self.table) + SET.itemsize * k


def one_set(x: np.ndarray, y: np.ndarray | None) -> c.mnp_set:
    return c.mnp_set(x.shape[0], address(x), None if y is None else address(y))


def view(pointer: int, shape: tuple[int, ...], kind=ctypes.c_double) -> np.ndarray:
    """Numbers of the library as an array of our own."""
    count = int(np.prod(shape))
    if count == 0:
        return np.empty(shape, kind)
    block = (kind * count).from_address(pointer)
    return np.frombuffer(block, kind).reshape(shape).copy()


def real(value: Any, name: str) -> float:
    """One number."""
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise InvalidError(f"{name} is {value!r}: give a number")
