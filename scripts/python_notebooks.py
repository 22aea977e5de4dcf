#!/usr/bin/env python3
"""python_notebooks.py [NOTEBOOK...]: runs the notebooks in place, keeps what they print and draw.

    PYTHONPATH=python MNP_LIBRARY=build/libmnp.so python3 scripts/python_notebooks.py

Without names: all of examples/notebooks. Needs nbclient, ipykernel and matplotlib. The tests run
copies of them (python/tests/test_docs.py).
"""

import os
import sys
import time
from pathlib import Path

import nbclient
import nbformat

os.environ.pop("MPLBACKEND", None)  # pictures go into the notebooks
FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"

for path in [Path(name).resolve() for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
    began = time.monotonic()
    book = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources=where, record_timing=False
    ).execute()
    book.metadata = {  # the same on every machine
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(book, path)
    print(f"{path.name}: {time.monotonic() - began:.0f} s, {path.stat().st_size // 1000} kB")
