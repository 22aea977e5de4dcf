"""Ctrl-C in long calls, callbacks that raise, logging."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from conftest import AT, X, Y

import mnp
from mnp import _context


def interrupted(work, after: float = 0.2) -> float:
    """Sends this process SIGINT while `work` is inside the library; how long it then took."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.monotonic() - sent[0]
    finally:
        timer.cancel()
        timer.join()


def forever(process):
    return {
        "draw": lambda: process.condition(
            np.linspace(0, 1, 50), np.linspace(-1, 1, 50), condition="refine", gradients=100000
        ).mean(AT),
        "many": lambda: process.condition_many(
            [X] * 64, [Y] * 64, condition="refine", gradients=100000
        ).mean(AT),
        "evaluate": lambda: process.evaluate("monotonic", functions=100000, samples=20),
        "train": lambda: mnp.train(
            mnp.Data.family("monotonic", functions=50), preset="tiny", steps=10**8
        ),
        "watched training": lambda: mnp.train(
            mnp.Data.family("monotonic", functions=50),
            preset="tiny",
            steps=10**8,
            progress=lambda p: None,
        ),
    }


@pytest.mark.parametrize("what", ["draw", "many", "train", "watched training"])
def test_ctrl_c(process, what):
    interrupted(forever(process)[what])
    posterior = process.condition(X, Y, condition="network", draws=3)  # and work goes on
    assert np.isfinite(posterior.mean(AT)).all()


def test_another_handler(process):
    """What the handler raises comes out of the call."""

    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop("now")

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Stop, match="now"):
            forever(process)["draw"]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_signal_without_consequence(process):
    """A handler that returns does not disturb the work."""
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        posterior = process.condition(X, Y, condition="refine", draws=30, gradients=20)
        got = posterior.mean(AT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    want = process.condition(X, Y, condition="refine", draws=30, gradients=20).mean(AT)
    assert seen and np.array_equal(got, want)


def test_progress_that_raises(process):
    def progress(done, total):
        raise RuntimeError(f"at {done} of {total}")

    with pytest.raises(RuntimeError, match="at .* of 8"):
        process.evaluate("monotonic", functions=8, samples=2, progress=progress)
    assert process.condition(X, Y, condition="network").mean(AT).shape == AT.shape


def test_progress_counts(process):
    seen = []
    process.evaluate(
        "monotonic", functions=3, samples=2, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (3, 3) and seen == sorted(seen)


def test_calls_inside_a_callback(process):
    """Another context answers; what belongs to the one at work says that it is busy."""
    want = process.condition(X, Y, condition="network", draws=3).mean(AT)
    old = process.condition(X, Y, condition="network", draws=3)
    old.mean(AT)
    seen: list = []

    def progress(done, total):
        seen.append(process.condition(X, Y, condition="network", draws=3).mean(AT))
        with pytest.raises(mnp.Error, match="at work in this thread"):
            old.mean(AT)

    process.evaluate("monotonic", functions=2, samples=2, progress=progress)
    assert len(seen) >= 1 and all(np.array_equal(s, want) for s in seen)


def test_training_stops_when_told(process):
    seen = []
    trained = mnp.train(
        mnp.Data.family("monotonic", functions=20),
        preset="tiny",
        steps=10**8,
        progress=lambda p: bool(seen.append(p)) or len(seen) == 3,
    )
    assert len(seen) == 3 and seen[0].step == 1 and seen[2].steps == 10**8
    assert trained.condition(X, Y, condition="network").mean(AT).shape == AT.shape


def test_logging(caplog):
    with caplog.at_level("DEBUG", logger="mnp"):
        for level, name in enumerate(("DEBUG", "INFO", "WARNING")):
            _context._log_call(None, level, b"a line")
            assert caplog.records[-1].levelname == name
    assert caplog.records[-1].getMessage() == "a line"
    assert _context.doubts() == "a line"  # of the warning alone, for train() to pass on
    assert _context.doubts() == ""


def test_log_of_the_library(process, caplog):
    """Where there is no GPU, "auto" takes the cpu and says so in the log."""
    with caplog.at_level("DEBUG", logger="mnp"):
        posterior = process.condition(X, Y, condition="network", draws=2, device="auto")
        posterior.mean(AT)
    if caplog.records:
        assert caplog.records[0].name == "mnp"
    else:  # there is one
        assert posterior.report.condition == "network"
