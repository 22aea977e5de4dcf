"""What the pages show works: the Python blocks of the guide and of README.md, and the notebooks.

The blocks of a page run one after the other in one namespace, in a folder of its own with examples/
and models/ at hand. What a block prints is compared with the ```text block after it: words exactly,
numbers to two parts in a hundred. A comment before a block changes it for the test, as on the other
pages: <!-- test: skip -->, or <!-- test: s/long/short/ -->.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import os
import re
import shutil
from pathlib import Path

import pytest

import mnp

TOP = Path(__file__).resolve().parents[2]
PAGES = ["docs/user/python.md", "README.md"]
NOTEBOOKS = sorted((TOP / "examples" / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")

pytestmark = pytest.mark.skipif(
    not (TOP / "docs" / "user").is_dir(), reason="the pages are in the repository"
)


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """(line, code, what it prints or None) of the Python blocks."""
    out: list[tuple[int, str, str | None]] = []
    edit, language, start = "", None, 0
    body: list[str] = []
    fresh = False  # is the last thing read a Python block that was kept?
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if language is None and line.startswith("```"):
            language, body, start = line[3:], [], number
        elif line.startswith("```"):
            text = "\n".join(body) + "\n"
            if language == "python" and edit != "skip":
                out.append((start, changed(text, edit), None))
            elif language == "text" and fresh:
                out[-1] = (*out[-1][:2], text)
            fresh = language == "python" and edit != "skip"
            edit, language = "", None
        elif language is not None:
            body.append(line)
        elif line.startswith("<!-- test: "):
            edit = line[len("<!-- test: ") : -len(" -->")]
        elif line.strip():
            edit, fresh = "", False
    return out


def changed(code: str, edit: str) -> str:
    """By a sed script of one s command."""
    if not edit:
        return code
    _, old, new, flags = edit.split(edit[1])
    assert re.search(old, code), f"{edit} changes nothing"
    return re.sub(old, new, code, count=0 if "g" in flags else 1)


def same(printed: str, shown: str) -> bool:
    words = [NUMBER.sub("#", " ".join(text.split())) for text in (printed, shown)]
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (printed, shown)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=0.011)


def test_same_sees_words_and_numbers():
    assert same("mean 1.001\n", "mean  1.00")
    assert not same("mean 1.1", "mean 1.0")
    assert not same("mean 1.0", "sd 1.0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("examples", "models"):
        os.symlink(TOP / name, tmp_path / name)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_page(name, folder):
    found = blocks(TOP / name)
    assert found, f"{name} has no Python"
    space: dict = {"__name__": "__main__"}
    for line, code, shown in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, name, "exec"), space)
        if shown is not None:
            assert same(printed.getvalue(), shown), f"{name}:{line} prints\n{printed.getvalue()}"


@pytest.mark.parametrize("name", [n for n in mnp.__all__ if not n.startswith("__")])
def test_every_name_has_an_example(name):
    """In its docstring or a method's, or in its module's by name. --doctest-modules runs them."""
    thing = getattr(mnp, name)
    assert inspect.getdoc(thing), f"{name} has no docstring"
    examples = doctest.DocTestFinder(recurse=inspect.isclass(thing)).find(thing, name)
    if not any(e.examples for e in examples) and not inspect.ismodule(thing):
        around = doctest.DocTestFinder(recurse=False).find(inspect.getmodule(thing))
        examples = [e for e in around if any(name in line.source for line in e.examples)]
    assert any(e.examples for e in examples), f"{name} has no example"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    copy = tmp_path / "examples" / "notebooks" / notebook.name
    copy.parent.mkdir(parents=True)
    shutil.copy(notebook, copy)
    os.symlink(TOP / "examples" / "data", tmp_path / "examples" / "data")
    os.symlink(TOP / "models", tmp_path / "models")
    book = nbformat.read(copy, as_version=4)
    where = {"metadata": {"path": str(copy.parent)}}
    nbclient.NotebookClient(book, timeout=110, kernel_name="python3", resources=where).execute()
    for cell in book.cells:
        for out in cell.get("outputs", []):
            assert out.output_type != "error", out
    assert notebook.stat().st_size <= 300_000
    assert '"image/' in notebook.read_text(), "run scripts/python_notebooks.py: no pictures"
