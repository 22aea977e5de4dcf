"""Ctrl-C in long calls, callbacks that raise, logging."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings

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
    def curves(count):  # short ones: the library looks for signals after some dozens
        slopes = np.random.default_rng(1).random(count)
        return mnp.Data.arrays([AT] * count, [a * AT + 0.1 * AT**2 for a in slopes])

    return {
        "draw": lambda: process.condition(
            np.linspace(0, 1, 50), np.linspace(-1, 1, 50), condition="refine", gradients=100000
        ).mean(AT),
        "many": lambda: process.condition_many(
            [X] * 64, [Y] * 64, condition="refine", gradients=100000
        ).mean(AT),
        "evaluate": lambda: process.evaluate(curves(20000), functions=20000, samples=2),
        "watched evaluation": lambda: process.evaluate(
            curves(20000), functions=20000, samples=2, progress=lambda done, total: None
        ),
        "watched fit": lambda: mnp.fit(curves(30), effort=100, progress=lambda *_: None),
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


@pytest.mark.parametrize(
    "what",
    [
        "draw",
        "many",
        "evaluate",
        "watched evaluation",
        "watched fit",
        "train",
        "watched training",
    ],
)
def test_ctrl_c(process, what, capfd):
    interrupted(forever(process)[what])
    assert capfd.readouterr().err == ""  # ctypes prints what a callback cannot raise
    posterior = process.condition(X, Y, condition="network", draws=3)  # and work goes on
    assert np.isfinite(posterior.mean(AT)).all()


def test_ctrl_c_between_two_lines(process, capfd):
    """Signals as fast as they come hit every place of a callback: none is lost or printed."""

    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    data = mnp.Data.arrays([AT] * 8, [AT] * 8)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for k in range(8):
            signal.setitimer(signal.ITIMER_REAL, 0.01 + 0.002 * k)
            with pytest.raises(Stop):
                while True:
                    process.evaluate(data, samples=1, progress=lambda done, total: None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert capfd.readouterr().err == ""


def test_ctrl_c_of_what_another_thread_made(process):
    made = []

    def make():
        many = np.linspace(0, 1, 50)
        made.append(process.condition(many, many, condition="refine", gradients=100000))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    interrupted(lambda: made[0].mean(AT))


def test_what_was_made_when_a_callback_raised(process):
    """The call succeeds, and then the callback's exception comes out: nothing is left behind."""
    context, destroyed = _context.current(), []

    def make(ctx, out):
        out._obj.value = 1234
        context.pending.append(RuntimeError("at the end"))
        return 0

    for keep in (False, True):
        with pytest.raises(RuntimeError, match="at the end"):
            context.make(make, destroy=destroyed.append, keep=keep)
    assert destroyed == [1234, 1234]


def test_callbacks_are_used_again(process):
    def nested(done, total):
        process.condition(X, Y, condition="network", draws=2).mean(AT)

    def use():
        mnp.set_threads(0)
        process.evaluate("monotonic", functions=3, samples=2, progress=nested)

    use()
    before = len(_context.Callbacks.made)
    for _ in range(5):
        use()
    assert len(_context.Callbacks.made) <= before + 1


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


def flat_curves() -> mnp.Data:
    """Data of which the library says something doubtful in its log."""
    return mnp.Data.arrays([X] * 6, [np.ones(3)] * 6)


SAYS = "y is the same at every point"


def test_log_of_the_library(caplog):
    """Doubts are logged, and are warnings of the training that they are about."""
    with caplog.at_level("DEBUG", logger="mnp"), pytest.warns(mnp.Warning, match=SAYS):
        mnp.train(flat_curves(), model="lmm", steps=1)
    assert [r.levelname for r in caplog.records if SAYS in r.getMessage()] == ["WARNING"]
    assert {r.name for r in caplog.records} == {"mnp"}


def test_no_log_of_other_trainings(process):
    """What another thread's context has said is not a warning of this one's."""
    context, mine = _context.current(), []

    def other():
        _context.current().callbacks.log(None, 2, b"of another thread")
        mine.append(_context.current().doubts())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert mine == ["of another thread"] and context.doubts() == ""
    context.callbacks.log(None, 2, b"of before")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mnp.train(mnp.Data.family("monotonic", functions=20), preset="tiny", steps=1)
    assert not [w for w in seen if "of before" in str(w.message)]


def test_levels_of_the_log(caplog):
    context = _context.current()
    with caplog.at_level("DEBUG", logger="mnp"):
        for level, name in enumerate(("DEBUG", "INFO", "WARNING")):
            context.callbacks.log(None, level, b"a line")
            assert (caplog.records[-1].levelname, caplog.records[-1].msg) == (name, "%s")
    assert caplog.records[-1].getMessage() == "a line"
    assert context.doubts() == "a line"  # of the warning alone
    assert context.doubts() == ""


def test_whose_line_a_warning_is(process, tmp_path):
    """That of the program, also where its folder begins like the package's."""
    beside = _context.FOLDER + "_tools/x.py"
    program = compile("posterior.observe(500.0, 3.0)", beside, "exec")
    posterior = process.condition(X, Y, condition="network", draws=2)
    with pytest.warns(mnp.Warning) as seen:
        exec(program, {"posterior": posterior})
    assert seen[0].filename == beside
