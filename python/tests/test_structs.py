"""_structs.py is what the headers say."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
import sys

import pytest

import mnp
from mnp import _structs as c
from mnp._library import lib

TOP = pathlib.Path(__file__).resolve().parents[2]


def structs() -> list[type]:
    found = [v for v in vars(c).values() if isinstance(v, type) and v.__name__.startswith("mnp_")]
    assert len(found) > 30
    return found


def test_written_from_the_headers():
    script = TOP / "scripts" / "python_structs.py"
    if not script.is_file():
        pytest.skip("not in a checkout")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_layout_of_the_compiler(tmp_path):
    """Sizes and places of all members, by a C program."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no compiler")
    lines = ["#include <stdio.h>"]
    lines += [f'#include "{f.name}"' for f in sorted((TOP / "include").glob("mnp*.h"))]
    lines.append("int main(void) {")
    want = []
    for s in structs():
        lines.append(f'printf("%zu\\n", sizeof({s.__name__}));')
        want.append(ctypes.sizeof(s))
        for name, _ in s._fields_:
            lines.append(f'printf("%zu\\n", offsetof({s.__name__}, {name}));')
            want.append(getattr(s, name).offset)
    for name, value in vars(c).items():
        if name.startswith("MNP_"):
            lines.append(f'printf("%.17g\\n", (double){name});')
            want.append(value)
    lines.append("}")
    source = tmp_path / "layout.c"
    source.write_text("\n".join(lines))
    program = tmp_path / "layout"
    subprocess.run([compiler, f"-I{TOP / 'include'}", source, "-o", program], check=True)
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert [float(line) for line in out.split()] == want


def test_every_call_is_there():
    for name in c.CALLS:
        assert getattr(lib, name)
    with pytest.raises(AttributeError):
        lib.mnp_no_such_call  # noqa: B018


def test_version():
    assert mnp.__version__ == c.VERSION == lib.mnp_version().decode()
