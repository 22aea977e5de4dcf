"""Bad input: one exception of the family, which names what is wrong."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from conftest import AT, X, Y

import mnp
from mnp import errors

NAN = float("nan")


def test_family():
    for kind, builtin in (
        (errors.InvalidError, ValueError),
        (errors.OutOfMemoryError, MemoryError),
        (errors.FileError, OSError),
        (errors.FormatError, ValueError),
        (errors.UnsupportedError, NotImplementedError),
        (errors.DeviceError, RuntimeError),
        (errors.NumericError, ArithmeticError),
        (errors.CancelledError, RuntimeError),
        (errors.PeerError, ConnectionError),
        (errors.ClosedError, ValueError),
        (errors.LibraryError, ImportError),
    ):
        assert issubclass(kind, mnp.Error) and issubclass(kind, builtin)
        assert str(kind("a line")) == "a line"
    from mnp import _structs as c

    assert set(errors.OF_STATUS) == set(range(c.MNP_OK + 1, c.MNP_EPEER + 1))
    assert issubclass(mnp.Warning, UserWarning)


@pytest.mark.parametrize(
    "x, y, says",
    [
        (np.array([0.1, None], object), [1, 2], "x holds object"),
        (["a", "b"], [1, 2], "x holds <U1"),
        ([0.1, 0.2], np.array([1, 2j]), "y holds complex128"),
        ([0.1, NAN], [1, 2], "x of observed point 1 is not a finite number"),
        ([0.1, 0.2], [NAN, 2], "y of observed point 0 is not a finite number"),
        ([0.1, np.inf], [1, 2], "x of observed point 1 is not a finite number"),
        ([0.1, 0.2], [1], r"y has the shape \(1,\): give \(2,\)"),
        ([[0.1, 0.2]], [1], r"x has the shape \(1, 2\), and the model takes one input"),
        (0.5, [1], r"x has the shape \(\)"),
        ([0.1, 0.2], 1, r"y has the shape \(\)"),
        ([[0.1], [0.2, 0.3]], [1, 2], "x has rows of different lengths"),
        ([0.1, 0.2], np.array([[1], [2]]), r"y has the shape \(2, 1\): give \(2,\)"),
        (np.ma.masked_array([0.1, 0.2], [False, True]), [1, 2], "x has masked values"),
        (np.array(["2024-01-01"], "M8[D]"), [1], r"x holds datetime64\[D\]"),
        ([0.1], None, "y is missing"),
        (None, [0.1], "x is missing"),
        ([1e300], [0], "x of observed point 0"),
    ],
)
def test_points(process, x, y, says):
    with pytest.raises(mnp.Error, match=says) as caught:
        process.condition(x, y)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"condition": "guess"}, "condition is 'guess': give one of network, refine, exact"),
        ({"draws": 0}, "draws is 0"),
        ({"draws": 10**6}, "draws is 1000000"),
        ({"gradients": 0}, "gradients is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"device": "abacus"}, "abacus"),
        ({"condition": ["exact"]}, "condition is"),
        ({"draws": 2.5}, "draws is 2.5: give a whole number"),
        ({"draws": "a"}, "draws is 'a': give a whole number"),
        ({"gradients": NAN}, "gradients is nan: give a whole number"),
        ({"seed": 1.5}, "seed is 1.5: give a whole number"),
        ({"seed": None}, "seed is None: give a whole number"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"device": None}, "device is None: give a text"),
        ({"device": "c\0"}, "device has a zero byte"),
    ],
)
def test_options_of_condition(process, options, says):
    with pytest.raises(errors.InvalidError, match=says):
        process.condition(X, Y, **options)


def test_questions(process):
    posterior = process.condition(X, Y, condition="network", draws=3)
    for x, says in (
        ([NAN], "x of target 0 is not a finite number"),
        ([], "x is empty"),
        (np.zeros((2, 3)), r"x has the shape \(2, 3\)"),
        (np.array(["now"]), "x holds <U3"),
    ):
        for ask in (posterior.mean, posterior.sd, posterior.sample, posterior.bands):
            with pytest.raises(errors.InvalidError, match=says):
                ask(x)
    for q in (-0.1, 1.5, NAN, [[0.5]], "half"):
        with pytest.raises(errors.InvalidError, match="^q "):
            posterior.quantile(AT, q)
    with pytest.raises(errors.InvalidError, match="n is 0"):
        posterior.sample(AT, 0)
    with pytest.raises(errors.InvalidError, match="y of target 1|y .*finite"):
        posterior.log_prob([0.1, 0.2], [0, NAN])


@pytest.mark.filterwarnings("ignore::mnp.Warning")
def test_a_bad_observation_changes_nothing(process):
    posterior = process.condition(X, Y, condition="network", draws=3)
    want = posterior.mean(AT)
    for x, y in (([0.2, NAN], [0, 0]), ([0.2, 0.3], [0, NAN]), ([0.2, 1e300], [0, 0]), ("a", 1)):
        with pytest.raises(errors.InvalidError):
            posterior.observe(x, y)
        assert len(posterior) == 3 and np.array_equal(posterior.mean(AT), want)


def test_a_warning_that_is_an_error_changes_nothing(process):
    posterior = process.condition(X, Y, condition="network", draws=3)
    want = posterior.mean(AT)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mnp.Warning)
        with pytest.raises(mnp.Warning, match="1 of 1 observed points"):
            posterior.observe(500.0, 3.0)
    assert len(posterior) == 3 and np.array_equal(posterior.mean(AT), want)
    assert posterior.observe([], []) is posterior and len(posterior) == 3


def test_a_model_of_other_inputs(oracle):
    data = mnp.Data.arrays([np.zeros((3, 2)) + k for k in range(4)], [np.arange(3.0)] * 4)
    with pytest.raises(mnp.Error, match="input"):
        oracle.evaluate(data)
    two = mnp.train(data, model="gp", steps=1)
    assert two.x_dim == 2
    with pytest.raises(errors.InvalidError, match=r"x has the shape \(3,\), and the .* 2 inputs"):
        two.condition(X, Y)


def test_many(process):
    with pytest.raises(errors.InvalidError, match=r"y\[1\] has the shape \(2,\)"):
        process.condition([X, X], [Y, Y[:2]])
    with pytest.raises(errors.InvalidError, match="x is of 1 curves and y of 2"):
        process.condition([X], [Y, Y])
    with pytest.raises(errors.InvalidError, match="no context"):
        process.condition_many([], [])
    many = process.condition([X, X], [Y, Y], condition="network", draws=2)
    with pytest.raises(errors.InvalidError, match="x is of 3 curves, and there are 2 contexts"):
        many.mean([AT, AT, AT])
    with pytest.raises(errors.InvalidError, match="context 1"):
        process.condition([X, [NAN]], [Y, [0]], condition="network").mean(AT)
    with pytest.raises(errors.InvalidError, match="nothing was asked"):
        many.reports  # noqa: B018
    for n in (0, -1, 2**40, 2.5, "a"):  # 0 is 200 in C, which would not fit into the answer
        with pytest.raises(errors.InvalidError, match="^n is "):
            many.sample(AT, n)
    for x, y, says in (
        (None, [[1.0]], "x is missing"),
        (None, None, "x is missing"),
        ([X], None, "y is missing"),
        (3, [Y], "x is 3: give a list of arrays"),
        ([X], np.array(1.0), "y is of the type ndarray: give a list of arrays"),
    ):
        with pytest.raises(errors.InvalidError, match=says):
            process.condition_many(x, y)
    with pytest.raises(errors.InvalidError, match="x is missing"):
        process.condition(None, [[1.0]])
    with pytest.raises(IndexError):
        many[2]


def test_zero_of_what_an_answer_has_room_for(process):
    """C takes 0 as its own default, and would write more than was asked for."""
    for options, says in (
        ({"functions": 0}, "functions is 0: give 1 to 10000"),
        ({"functions": -1}, "functions is -1"),
        ({"functions": 2.5}, "functions is 2.5: give a whole number"),
        ({"functions": 10**6}, "functions is 1000000"),
        ({"draws": 0}, "draws is 0"),
        ({"context": 0}, "context is 0"),
    ):
        with pytest.raises(errors.InvalidError, match=says):
            process.calibrate("monotonic", **options)
    for options, says in (
        ({"context": 3}, "context is 3: give"),
        ({"draws": 0}, "draws is 0"),
        ({"device": None}, "device is None: give a text"),
    ):
        with pytest.raises(errors.InvalidError, match=says):
            process.evaluate("monotonic", functions=2, **options)
    with pytest.raises(errors.InvalidError, match="functions is 0"):
        process.check("monotonic", functions=0)


def test_models():
    with pytest.raises(errors.FileError, match="no file 'nobody', and no model .*mnp-monotonic"):
        mnp.load("nobody")
    with pytest.raises(errors.FileError, match="no file"):
        mnp.load("nowhere/m.safetensors")
    with pytest.raises(errors.FileError, match="no file 'nobody'"):
        mnp.load(b"nobody")
    with pytest.raises(errors.InvalidError, match="model is None: give a path"):
        mnp.load(None)


def test_files(process, tmp_path):
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"no model")
    with pytest.raises(errors.FormatError, match="bad.safetensors"):
        mnp.load(bad)
    with pytest.raises(errors.FormatError):
        mnp.Process.from_bytes(b"no model")
    with pytest.raises(errors.FileError, match="nowhere"):
        process.save(tmp_path / "nowhere" / "m.safetensors")
    with pytest.raises(errors.InvalidError, match="path has a zero byte"):
        process.save(f"{tmp_path}/a\0b")
    assert not (tmp_path / "a").exists()
    with pytest.raises(errors.FileError, match="none.csv"):
        mnp.Data.csv(tmp_path / "none.csv")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(errors.FormatError, match="empty.csv"):
        mnp.Data.csv(empty)


def test_training():
    data = mnp.Data.family("monotonic", functions=5)
    for options, says in (
        ({"no_such": 1}, "there is no option 'no_such'"),
        ({"model": "magic"}, "magic"),
        ({"model": None}, "model is None: give a text"),
        ({"context": 5}, "context is 5: give"),
        ({"context": (1, 2.5)}, "context is 2.5: give a whole number"),
        ({"device": None}, "device is None: give a text"),
        ({"preset": "huge"}, "huge"),
        ({"steps": -5}, "steps"),
        ({"device": "abacus"}, "abacus"),
        ({"seed": -3}, "seed is -3"),
    ):
        with pytest.raises(errors.InvalidError, match=says):
            mnp.train(data, **options)
    with pytest.raises(errors.InvalidError, match="data is none of"):
        mnp.train(3)
    with pytest.raises(errors.InvalidError, match="no file is called"):
        mnp.train("no_such_family")


def test_closed(process, tmp_path):
    mine = copy.copy(process)
    posterior = mine.condition(X, Y, condition="network", draws=3)
    many = mine.condition([X], [Y], condition="network", draws=3)
    want = posterior.mean(AT)
    mine.close()
    mine.close()
    assert repr(mine) == "<mnp.Process, closed>"
    for use in (
        lambda: mine.x_dim,
        lambda: mine.condition(X, Y),
        lambda: mine.save(tmp_path / "m"),
        lambda: mine.evaluate("monotonic", functions=2),
        lambda: copy.copy(mine),
    ):
        with pytest.raises(errors.ClosedError, match="this Process is closed"):
            use()
    assert np.array_equal(posterior.mean(AT), want)  # it works on
    assert np.array_equal(posterior.functions(3)(AT), posterior.sample(AT))
    posterior.close()
    for use in (
        lambda: posterior.mean(AT),
        lambda: posterior.log_prob([0.1], [0.2]),
        lambda: posterior.observe(0.1, 0.2),
        lambda: posterior.functions(2),
        lambda: posterior.report,
        lambda: copy.copy(posterior),
    ):
        with pytest.raises(errors.ClosedError, match="this Posterior is closed"):
            use()
    many.close()
    with pytest.raises(errors.ClosedError, match="this Posteriors is closed"):
        many.mean(AT)
    with mnp.Data.family("monotonic", functions=2) as data:
        assert len(data) == 2
    with pytest.raises(errors.ClosedError, match="this Data is closed"):
        len(data)
