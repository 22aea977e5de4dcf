"""Handles are freed, objects pickle and copy, a program ends quietly."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from contextlib import ExitStack

import numpy as np
import pytest
from conftest import AT, X, Y

import mnp
from mnp._library import lib

ROUND_TRIPS = [
    ("pickle", lambda o: pickle.loads(pickle.dumps(o))),
    ("copy", copy.copy),
    ("deepcopy", copy.deepcopy),
]


@pytest.mark.parametrize("way", [w for _, w in ROUND_TRIPS], ids=[n for n, _ in ROUND_TRIPS])
def test_copies(process, way):
    other = way(process)
    assert other.to_bytes() == process.to_bytes() and other.handle is not process.handle
    posterior = process.condition(X, Y, condition="network", draws=5, seed=9)
    posterior.observe(0.6, 0.3)
    again = way(posterior)
    assert np.array_equal(again.sample(AT), posterior.sample(AT))
    again.observe(0.7, 0.4)
    assert (len(again), len(posterior)) == (5, 4)
    functions = posterior.functions(2)
    assert np.array_equal(way(functions)(AT), functions(AT))
    many = process.condition([X, X[:1]], [Y, Y[:1]], condition="network", draws=3)
    assert np.array_equal(way(many).mean(AT), many.mean(AT))


def test_data_pickles():
    data = mnp.Data.family("monotonic", functions=3, seed=2)
    again = pickle.loads(pickle.dumps(data))
    assert len(again) == 3
    for (x, y), (u, v) in zip(data, again):
        assert np.array_equal(x, u) and np.array_equal(y, v)


def test_bytes_are_the_file(process, tmp_path):
    path = tmp_path / "m.safetensors"
    process.save(path)
    assert path.read_bytes() == process.to_bytes()
    assert mnp.load(path).notes == process.notes


class Counted:
    """Stands for a _destroy and counts its calls."""

    def __init__(self, name: str) -> None:
        self.name, self.call, self.count = name, getattr(lib, name), 0

    def __call__(self, address) -> None:
        self.count += 1
        self.call(address)

    def __enter__(self):
        setattr(lib, self.name, self)
        return self

    def __exit__(self, *_):
        setattr(lib, self.name, self.call)


def test_everything_is_destroyed_once(process):
    gc.collect()  # what other tests left
    names = ("mnp_predictor_destroy", "mnp_model_destroy", "mnp_data_destroy")
    with ExitStack() as stack:
        predictors, models, data = (stack.enter_context(Counted(name)) for name in names)
        mine = copy.copy(process)
        posterior = mine.condition(X, Y, condition="network", draws=3)
        posterior.sample(AT, 2)  # a second drawing
        kept = mnp.Data.family("monotonic", functions=2)
        del mine
        assert models.count == 0  # the posterior needs it
        del posterior, kept
        gc.collect()
        mnp.Data.family("monotonic", functions=1).close()
        assert (predictors.count, models.count, data.count) == (2, 1, 2)


def test_a_failure_leaves_no_handle(process):
    gc.collect()
    with Counted("mnp_predictor_destroy") as predictors:
        for _ in range(3):
            with pytest.raises(mnp.Error):
                process.condition([0.1], [float("nan")])
        gc.collect()
        assert predictors.count == 3  # made, and refused the points


def test_context_of_a_thread_goes_with_it():
    import threading

    from mnp import _context

    seen = []
    thread = threading.Thread(target=lambda: seen.append(weakref.ref(_context.current())))
    thread.start()
    thread.join()
    gc.collect()
    assert seen[0]() is None


def test_context_managers(process):
    with copy.copy(process) as mine, mine.condition(X, Y, condition="network") as posterior:
        assert posterior.mean(AT).shape == AT.shape
    with pytest.raises(mnp.errors.ClosedError):
        posterior.mean(AT)


def test_memory_does_not_grow(python):
    out = python(
        "import mnp, numpy as np, resource\n"
        "p = mnp.load('mnp-monotonic')\n"
        "def work(n):\n"
        "    for k in range(n):\n"
        "        q = p.condition([0.1, 0.5], [0.1, 0.2], condition='network', draws=2, seed=k)\n"
        "        q.mean([0.3]); mnp.Data.family('monotonic', functions=1)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "first = work(60)\n"
        "print(work(200) - first < 8000)\n"
    )
    assert out == "True\n"


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "gc.disable()", "del p", "mnp = None"])
def test_a_program_ends_quietly(python, end):
    """Nothing on stderr, whatever is alive when it ends, cycles and threads included."""
    out = python(
        "import gc, sys, threading, mnp, numpy as np\n"
        "p = mnp.load('mnp-monotonic')\n"
        "q = p.condition([0.1], [0.1], condition='network', draws=2)\n"
        "q.mean([0.5]); m = p.condition([[0.1]] * 3, [[0.1]] * 3, condition='network', draws=2)\n"
        "m.mean([0.5]); q.me = q\n"
        "t = threading.Thread(target=lambda: q.mean([0.2])); t.start(); t.join()\n"
        "class Late:\n"
        "    def __del__(self, q=q): q.mean\n"
        "late = Late(); late.me = late\n"
        f"print('done', flush=True)\n{end}\n"
    )
    assert out == "done\n"


def test_reprs(process):
    assert repr(process).startswith("<mnp.Process mnp: 1 input, ")
    posterior = process.condition(X, Y, condition="network", draws=3)
    assert repr(posterior) == "<mnp.Posterior given 3 points, network, 3 draws>"
    assert repr(process.condition([X], [Y])) == "<mnp.Posteriors of 1 contexts>"
    data = mnp.Data.family("monotonic", functions=2)
    assert repr(data).startswith("<mnp.Data monotonic: 2 functions, ")
