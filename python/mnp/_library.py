"""libmnp.so: where it is, and its calls.

`lib.mnp_model_load(...)` is the C function, bound at its first use with the types of the headers.
The global interpreter lock is not held while it works. Handles are passed as they are (see
`_context.Handle`), arrays and structs as addresses, `byref(...)` or None.
"""

from __future__ import annotations

import ctypes
import os

from . import _structs as c
from .errors import LibraryError

FOLDER = os.path.dirname(os.path.abspath(__file__))


def find() -> str:
    """The file: MNP_LIBRARY where that is set, else the one inside the package."""
    given = os.environ.get("MNP_LIBRARY")
    if given:
        if os.path.isfile(given):
            return os.path.abspath(given)
        raise LibraryError(f"MNP_LIBRARY is {given!r}, and there is no such file")
    for name in ("libmnp.so", "libmnp.so.0", "libmnp.dylib"):
        for folder in (FOLDER, os.path.join(FOLDER, "lib")):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    raise LibraryError(
        f"there is no libmnp.so in {FOLDER}: install the wheel again, or set MNP_LIBRARY to the "
        "file (in a checkout: build/libmnp.so)"
    )


def _refuse(path: str, why: str) -> LibraryError:
    return LibraryError(
        f"{path} is not the libmnp {c.VERSION} that this package needs: {why} "
        "(install the wheel again, or correct MNP_LIBRARY)"
    )


def load(path: str) -> ctypes.CDLL:
    """Opens a libmnp.so of this package's version; LibraryError says what else it is."""
    try:
        dll = ctypes.CDLL(path)
    except OSError as error:
        raise _refuse(path, str(error)) from None
    try:
        version = dll.mnp_version
    except AttributeError:
        raise _refuse(path, "it has no mnp_version") from None
    version.restype = ctypes.c_char_p
    if version().decode() != c.VERSION:
        raise _refuse(path, f"it is version {version().decode()}")
    return dll


class Library:
    """The calls of the headers as attributes; each is looked up once."""

    _dll: ctypes.CDLL | None = None

    def __getattr__(self, name: str):
        if name not in c.CALLS:
            raise AttributeError(name)
        if self._dll is None:
            self._path = find()
            self._dll = load(self._path)
        try:
            call = self._dll[name]
        except AttributeError:
            raise _refuse(self._path, f"it has no {name}") from None
        call.restype, call.argtypes = c.CALLS[name]
        setattr(self, name, call)
        return call


lib = Library()


def texts(call, *arguments) -> list[str]:
    """All texts of a call that has a k-th: process names, note keys."""
    out: list[str] = []
    while (text := call(*arguments, len(out))) is not None:
        out.append(text.decode())
    return out
