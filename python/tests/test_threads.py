"""Many threads on one Process and on one Posterior; forks."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import AT, X, Y

import mnp
from mnp import _context


def together(work, count: int = 8) -> list:
    """The answers of as many threads, which begin at the same time."""
    begin = threading.Barrier(count)

    def one(k: int):
        begin.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_one_process(process):
    want = [
        process.condition(X, Y, condition="network", draws=5, seed=k).mean(AT) for k in range(8)
    ]

    def work(k: int):
        return [
            process.condition(X, Y, condition="network", draws=5, seed=k).mean(AT)
            for _ in range(10)
        ]

    for k, answers in enumerate(together(work)):
        assert all(np.array_equal(a, want[k]) for a in answers)


def test_one_posterior(process):
    """Made in this thread, asked by others, with questions that need other drawings."""
    posterior = process.condition(X, Y, condition="network", draws=5)
    want = {
        n: process.condition(X, Y, condition="network", draws=n).sample(AT) for n in range(2, 8)
    }

    def work(k: int):
        return [(n, posterior.sample(AT, n)) for n in (*range(2, 8), 2 + k % 6)]

    for answers in together(work):
        for n, got in answers:
            assert np.array_equal(got, want[n])


def test_observing_while_asking(process):
    """An answer is that of some number of points, never a mixture."""
    xs, ys = np.linspace(0.1, 0.9, 5), np.linspace(-0.5, 0.5, 5)
    posterior = process.condition(xs[:0], ys[:0], condition="network", draws=3)
    want = [
        process.condition(xs[:k], ys[:k], condition="network", draws=3).mean(AT) for k in range(6)
    ]

    def work(k: int):
        if k == 0:
            for x, y in zip(xs, ys):
                posterior.observe(x, y)
            return []
        return [posterior.mean(AT) for _ in range(5)]

    for answers in together(work, 4):
        for got in answers:
            assert any(np.allclose(got, w, rtol=1e-6, atol=1e-7) for w in want)
    assert len(posterior) == 5


def test_a_posterior_outlives_its_thread(process):
    made = []
    thread = threading.Thread(
        target=lambda: made.append(process.condition(X, Y, condition="network", draws=4))
    )
    thread.start()
    thread.join()
    want = process.condition(X, Y, condition="network", draws=4).mean(AT)
    assert np.array_equal(made[0].mean(AT), want)


def test_threads_have_contexts_of_their_own():
    seen = together(lambda k: _context.current(), 4)
    assert len({id(c) for c in seen}) == 4


def test_python_goes_on_during_a_call(process):
    """The library does not hold the interpreter's lock: others count while it works."""
    begun, counted = threading.Event(), 0

    def work():
        posterior = process.condition(X, Y, condition="refine", draws=40, gradients=10)
        begun.set()
        posterior.mean(AT)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    while thread.is_alive():
        counted += 1
    assert counted > 1000


def test_a_callback_does_not_wait_for_its_own_call(python):
    """Another thread has the posterior and waits for our context; we ask the posterior."""
    said = python(
        """
import faulthandler, threading, time, mnp
faulthandler.dump_traceback_later(30, exit=True)
process = mnp.load("mnp-monotonic")
posterior = process.condition([0.1], [0.2], condition="network", draws=3)
posterior.mean([0.1])
now, answers = threading.Event(), []
def other():
    now.wait()
    answers.append(posterior.mean([0.3]).shape)
thread = threading.Thread(target=other)
thread.start()
def progress(done, total):
    now.set()
    time.sleep(0.3)
    try:
        posterior.mean([0.2])
    except mnp.Error as error:
        answers.append(str(error)[:42])
process.evaluate("monotonic", functions=1, samples=2, progress=progress)
thread.join()
print(sorted(map(str, answers)))
"""
    )
    assert "(1,)" in said and "the library is at work in this thread" in said


def test_set_threads(process):
    want = process.condition(X, Y, condition="network", draws=6).mean(AT)
    for threads in (1, 3, 0):
        mnp.set_threads(threads)
        posterior = process.condition(X, Y, condition="network", draws=6)
        assert np.array_equal(posterior.mean(AT), want)
    for threads, says in ((-1, "threads is -1"), ("x", "threads is 'x': give a whole number")):
        with pytest.raises(mnp.errors.InvalidError, match=says):
            mnp.set_threads(threads)


# ---- forks ---------------------------------------------------------------------------------------

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def in_child(work):
    """What `work` answers in a forked process."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    child = context.Process(target=lambda: theirs.send(work()))
    child.start()
    assert mine.poll(60), "the child does not answer"
    answer = mine.recv()
    child.join(60)
    assert child.exitcode == 0
    return answer


def warm(process) -> mnp.Posterior:
    """A posterior whose context has worker threads."""
    posterior = process.condition(X, Y, condition="refine", draws=4, gradients=5)
    posterior.mean(AT)
    process.condition_many([X] * 4, [Y] * 4, condition="network", draws=4).mean(AT)
    return posterior


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::mnp.Warning")
def test_a_fork_is_noticed(process):
    posterior = warm(process)
    many = process.condition_many([X] * 4, [Y] * 4, condition="network", draws=4)
    functions = posterior.functions(3)
    want = posterior.mean(AT), many.mean(AT), functions(AT)

    def child():
        import gc

        answers = (
            posterior.mean(AT),  # of before: it draws its functions again
            many.mean(AT),
            functions(AT),
            process.condition(X, Y, condition="refine", draws=4, gradients=5).mean(AT),
        )
        gc.collect()
        return answers

    for _ in range(2):
        got = in_child(child)
        for a, b in zip(got, (*want, want[0])):
            assert np.array_equal(a, b)
    assert np.array_equal(posterior.mean(AT), want[0])  # and the parent works on


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_belongs_to_an_old_context(process):
    context = _context.current()
    warm(process)

    def child():
        try:
            context.call(lambda: 0)
            return "no exception"
        except mnp.Error as error:
            return str(error)

    assert "fork" in in_child(child)


@fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::mnp.Warning")
def test_fork_while_another_thread_is_inside(process):
    posterior = warm(process)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            posterior.mean(AT)

    thread = threading.Thread(target=busy)
    want = posterior.mean(AT)
    thread.start()
    try:
        for _ in range(3):
            assert np.array_equal(in_child(lambda: posterior.mean(AT)), want)
    finally:
        stop.set()
        thread.join()
