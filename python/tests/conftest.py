"""What the tests share: the model that is part of the package, and the command mnp."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import mnp

X = np.array([0.1, 0.4, 0.9])
Y = np.array([-0.6, 0.0, 0.7])
AT = np.linspace(0, 1, 7)


@pytest.fixture(scope="session")
def process() -> mnp.Process:
    return mnp.load("mnp-monotonic")


@pytest.fixture(scope="session")
def oracle() -> mnp.Process:
    """The Gaussian process that the family rbf is drawn from: length 0.25, variance 1, noise sd
    0.01."""
    return mnp.train(mnp.Data.family("rbf", functions=5), model="oracle")


@pytest.fixture(scope="session")
def model_file(process, tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    process.save(path)
    return path


@pytest.fixture(scope="session")
def command():
    """Runs the command mnp and returns its JSON object; skips where there is none."""
    from mnp._library import find

    beside = pathlib.Path(find()).parent / "mnp"
    path = os.environ.get("MNP_COMMAND") or (beside if beside.is_file() else None)
    if path is None:
        pytest.skip("the command mnp is not here: set MNP_COMMAND")

    def run(*words: object) -> dict:
        done = subprocess.run(
            [str(path), *map(str, words), "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture
def python():
    """Runs a program in a Python of its own; it must end well and print nothing but its answer."""

    def run(program: str, code: int = 0, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, **environment},
        )
        assert (done.returncode, done.stderr) == (code, ""), done.stderr
        return done.stdout

    return run


def write_csv(path: pathlib.Path, **columns) -> pathlib.Path:
    """Numbers so that they are read back exactly."""
    rows = zip(*(np.asarray(v).tolist() for v in columns.values()))
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def read_csv(path: pathlib.Path) -> dict[str, np.ndarray]:
    lines = [line.split(",") for line in path.read_text().splitlines()]
    return {name: np.array([float(row[k]) for row in lines[1:]]) for k, name in enumerate(lines[0])}
