"""A library that is missing, foreign or of another version; importing costs little."""

from __future__ import annotations

import builtins
import ctypes.util
import os
import shutil

import pytest

import mnp
from mnp._library import find

LOADS = """
import mnp
try:
    mnp.families()
except mnp.Error as error:
    print(type(error).__name__, isinstance(error, ImportError), error)
"""


def test_missing(python):
    out = python(LOADS, MNP_LIBRARY="/nowhere/libmnp.so")
    assert out.startswith("LibraryError True MNP_LIBRARY is '/nowhere/libmnp.so', and there is no")


def test_missing_in_the_package(python, tmp_path):
    shutil.copytree(
        os.path.dirname(mnp.__file__),
        tmp_path / "mnp",
        ignore=lambda _, names: [n for n in names if "." in n and not n.endswith(".py")],
    )
    out = python(LOADS, PYTHONPATH=str(tmp_path), MNP_LIBRARY="")
    assert "there is no libmnp.so in " in out and "install the wheel again" in out


def test_no_library_at_all(python, tmp_path):
    path = tmp_path / "libmnp.so"
    path.write_text("this is no library")
    out = python(LOADS, MNP_LIBRARY=str(path))
    assert out.startswith(f"LibraryError True {path} is not the libmnp")


def test_foreign_library(python):
    import _ctypes  # an extension module is a shared library that every Python has

    path = getattr(_ctypes, "__file__", None) or ctypes.util.find_library("c")
    out = python(LOADS, MNP_LIBRARY=path)
    assert "it has no mnp_version" in out


def test_another_version(python, tmp_path):
    path = tmp_path / "libmnp.so"
    own = mnp.__version__.encode()
    data = open(find(), "rb").read()
    assert b"\0" + own + b"\0" in data
    path.write_bytes(data.replace(b"\0" + own + b"\0", b"\0" + b"9" * len(own) + b"\0"))
    out = python(LOADS, MNP_LIBRARY=str(path))
    assert f"it is version {'9' * len(own)}" in out


def test_import_is_lazy(python):
    out = python(
        "import sys, mnp\n"
        "print([m for m in ('logging', 'pandas', 'matplotlib', 'dataclasses', 'mnp.scores')"
        " if m in sys.modules], mnp._library.lib._dll)"
    )
    assert out == "[] None\n"


def test_names():
    for name in mnp.__all__:
        assert getattr(mnp, name) is not None
        assert not hasattr(builtins, name)  # that import * would hide
    assert "fit" in dir(mnp)
    with pytest.raises(AttributeError, match="no_such_name"):
        mnp.no_such_name  # noqa: B018
