"""What was installed: its version, what it asks for, and what lies inside."""

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import mnp

FOLDER = Path(mnp.__file__).parent
installed = pytest.mark.skipif(
    not (FOLDER / "models").is_dir(), reason="the package is used from the checkout"
)


@installed
def test_one_version():
    command = subprocess.run(
        [os.environ["MNP_COMMAND"], "--version"], capture_output=True, text=True, check=True
    )
    assert metadata.version("mnp") == mnp.__version__
    assert mnp.__version__ in command.stdout.split()


@installed
def test_numpy_is_the_only_requirement():
    needs = [text for text in metadata.requires("mnp") or [] if "extra ==" not in text]
    assert [re.match(r"[\w-]+", text).group() for text in needs] == ["numpy"]


@installed
def test_extras():
    extras = set(metadata.metadata("mnp").get_all("Provides-Extra"))
    assert extras == {"pandas", "polars", "xarray", "sklearn", "plot", "test"}


@installed
def test_models_inside():
    assert mnp.models() == ["mnp-monotonic", "wheel-mnp-t1"]
    assert [mnp.load(name).x_dim for name in mnp.models()] == [1, 7]


@installed
def test_library_inside():
    """The library that is used is the one of the package, wherever the program runs."""
    mnp.load("mnp-monotonic")
    maps = Path("/proc/self/maps").read_text()
    used = {line.split()[-1] for line in maps.splitlines() if "libmnp.so" in line}
    assert used == {str(FOLDER / "libmnp.so")}


def test_typed():
    assert (FOLDER / "py.typed").is_file()
