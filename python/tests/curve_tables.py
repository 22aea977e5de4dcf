"""What the tests of frames, fits, pictures and maps share: tables of curves, the command mnp."""

from __future__ import annotations

import csv
import os
import pathlib
import subprocess

import numpy as np
import pytest

import mnp
from mnp._library import find

HERE = pathlib.Path(__file__).resolve().parents[2]
SEED = 3


def command_path() -> str:
    beside = pathlib.Path(find()).parent / "mnp"
    path = os.environ.get("MNP_COMMAND") or (str(beside) if beside.is_file() else None)
    if path is None:
        pytest.skip("the command mnp is not here: set MNP_COMMAND")
    return path


def run(folder: pathlib.Path, *words: object) -> str:
    """Runs the command in a folder; what it printed."""
    done = subprocess.run(
        [command_path(), *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(path: pathlib.Path) -> dict[str, list[str]]:
    """A table that the command wrote, as texts."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    return {name: [row[k] for row in rows[1:]] for k, name in enumerate(rows[0])}


def floats(texts: list[str]) -> np.ndarray:
    return np.array([float(text) for text in texts])


def plants(curves: str = "abcdefgh", points: int = 6) -> dict[str, np.ndarray]:
    """Saturating growth, with numbers of many digits."""
    rng = np.random.default_rng(1)
    names, days, heights = [], [], []
    for name in curves:
        top = rng.normal(10, 2)
        day = np.sort(rng.uniform(0, 10, points))
        names += [name] * points
        days.append(day)
        heights.append(top * np.tanh(day / 4) + rng.normal(0, 0.2, points))
    days, heights = np.concatenate(days), np.concatenate(heights)
    return {"plant": np.array(names), "day": days, "height": heights}


def new_plants() -> dict[str, np.ndarray]:
    """Some points of two new plants and of one without a measurement."""
    return {
        "plant": np.array(["n1", "n2", "n1", "n3"]),
        "day": np.array([1.25, 2.0, 3.75, 1.0]),
        "height": np.array([2.5, 4.0 / 3.0, 5.5, np.nan]),
    }


def places() -> dict[str, np.ndarray]:
    return {"plant": np.array(["n2", "n1", "n2"]), "day": np.array([9.5, 8.0 / 3.0, 0.5])}


def write(path: pathlib.Path, table: dict[str, np.ndarray]) -> pathlib.Path:
    """As a person's program would write it: numbers by repr."""
    columns = [np.asarray(values).tolist() for values in table.values()]
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(table)
        for row in zip(*columns):
            out.writerow(["" if v != v else repr(v) if isinstance(v, float) else v for v in row])
    return path


def trained(table: dict, **columns) -> mnp.Process:
    """A mixed model of a table: exact, and fitted at once."""
    return mnp.train(mnp.frames.open_data(table, **columns), model="lmm")
