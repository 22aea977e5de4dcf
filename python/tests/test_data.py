"""Data: families, arrays, tables in files and in memory; processes as they describe themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mnp
from mnp import errors

TABLE = "who,t,y\na,0,1\na,1,2\na,2,4\nb,0,3\nb,2,5\nc,1,0\nc,3,1\n"


def test_families():
    known = mnp.families()
    assert {"rbf", "monotonic", "sde"} <= set(known) and all(known.values())
    a, b = (mnp.Data.family("monotonic", functions=4, seed=3) for _ in range(2))
    assert len(a) == 4 and a.name == "monotonic" and a.points == sum(len(y) for _, y in a)
    for (x, y), (u, v) in zip(a, b):
        assert np.array_equal(x, u) and np.array_equal(y, v)
        assert x.dtype == y.dtype == np.float64 and x.shape == y.shape
    other = mnp.Data.family("monotonic", functions=4, seed=3, split="test")
    assert not np.array_equal(a[0][1], other[0][1])
    assert mnp.Data.family("rbf:length=0.5", functions=1).name == "rbf:length=0.5"
    wheel = mnp.Data.family("wheel", functions=1)
    assert wheel[0][0].shape == (len(wheel[0][1]), wheel.x_dim)


def test_indices():
    data = mnp.Data.family("monotonic", functions=3)
    assert np.array_equal(data[-1][1], data[2][1])
    for i in (3, -4):
        with pytest.raises(IndexError):
            data[i]
    with pytest.raises(mnp.errors.InvalidError, match="split is 'all'"):
        mnp.Data.family("monotonic", split="all")


def test_arrays():
    x = np.linspace(0, 1, 4)
    data = mnp.Data.arrays([x, x[:2]], [x**2, x[:2]])
    assert [len(y) for _, y in data] == [4, 2] and data.x_dim == 1
    assert np.array_equal(data[0][1], (x**2).astype(np.float32))
    same = mnp.Data.arrays(x, np.stack([x, 2 * x]))
    assert len(same) == 2 and np.array_equal(same[1][0], x.astype(np.float32))
    wide = mnp.Data.arrays(np.zeros((3, 5, 2)), np.ones((3, 5)))
    assert wide.x_dim == 2 and wide[1][0].shape == (5, 2)
    for xs, ys, says in (
        (x, x, "y is of one curve"),
        ([x], [x, x], "x is of 1 curves and y of 2"),
        ([x], [[1, 2]], r"y\[0\] has the shape \(2,\)"),
        ([x], [[0, 1, 2, float("nan")]], "y of point 3|finite|number"),
        ([[]], [[]], "set 0"),
    ):
        with pytest.raises(mnp.errors.InvalidError, match=says):
            mnp.Data.arrays(xs, ys)


def test_times_keep_their_digits():
    """Seconds since 1970 have more digits than single precision."""
    t = 1.7e9 + np.arange(5.0)
    data = mnp.Data.arrays([t], [np.arange(5.0)])
    assert np.array_equal(data[0][0], t)


def test_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    for data in (mnp.Data.csv(path), mnp.Data.text(TABLE), mnp.Data.text(TABLE.encode())):
        assert (data.group_name, data.x_names, data.y_name) == ("who", ["t"], "y")
        assert [y.tolist() for _, y in data] == [[1, 2, 4], [3, 5], [0, 1]]
        assert "3 curves" in data.report
    named = mnp.Data.text(TABLE.replace("who,t,y", "y,who,t"), group="y", x="who", y=["t"])
    assert (named.group_name, named.x_names, named.y_name) == ("y", ["who"], "t")
    again = tmp_path / "again.csv"
    mnp.Data.text(TABLE).to_csv(again)
    assert [len(y) for _, y in mnp.Data.csv(again)] == [3, 2, 2]


def test_tables_in_wide_form():
    data = mnp.Data.text("who,1,2,3\na,1,2,3\nb,4,5,6\n", wide=True)
    assert len(data) == 2 and data[1][1].tolist() == [4, 5, 6]


def test_doubtful_tables_warn():
    with pytest.warns(mnp.Warning, match="one curve only") as seen:
        data = mnp.Data.text("who,t,y\na,0,1\na,1,2\na,2,3\n")
    assert data.warnings and str(seen[0].message) == data.warnings[0]
    assert seen[0].filename == __file__


def test_bad_tables():
    for text, says in (
        ("", "a table in memory"),
        ("who,t,y\n", "a table in memory"),
        ("who,t,y\na,0\n", "a table in memory:2"),
        ("who,t,y\na,0,1\na,1,x\nb,0,1\nb,1,2\n", "in memory"),
    ):
        with pytest.raises((mnp.errors.FormatError, mnp.errors.InvalidError), match=says):
            mnp.Data.text(text)


def test_failures_name_arguments():
    """Where the command would say --y."""
    with pytest.raises(mnp.Error, match="y=") as caught:
        mnp.Data.text("who,a,b,c\n1,2,3,4\n1,3,4,6\n2,3,3,1\n2,5,2,2\n")
    assert "--" not in str(caught.value)


def test_a_model_of_a_table_in_memory():
    rows = [f"{k},{t},{k + t}" for k in range(6) for t in range(4)]
    data = mnp.Data.text("\n".join(["id,day,height", *rows]))
    trained = mnp.train(data, model="lmm")
    assert (trained.x_names, trained.y_name, trained.kind) == (["day"], "height", "lmm")
    with pytest.raises(mnp.errors.InvalidError, match="a table in memory, which no file holds"):
        trained.evaluate()
    assert trained.evaluate(data, functions=3).functions == 3
    like = mnp.Data.text("\n".join(["id,day,height", *rows]), like=trained)
    assert len(like) == 6 and like.x_names == ["day"]


# ---- what a process says of itself ---------------------------------------------------------------


def test_process(process):
    assert "mnp-monotonic" in mnp.models()
    assert (process.kind, process.x_dim, process.x_names, process.y_name) == ("mnp", 1, ["x"], "y")
    assert process.steps == int(process.options["T"])
    assert process.latent == int(process.options["d_z"])
    assert process.notes["data"] == "monotonic"
    weights = process.weights()
    trained = sum(w.size for n, w in weights.items())
    assert trained >= process.parameters > 0
    own = process.data("test", functions=2)
    assert len(own) == 2 and own.name == "monotonic"


def test_notes(process):
    mine = mnp.Process.from_bytes(process.to_bytes())
    mine.note("why", "a test")
    assert mine.notes["why"] == "a test" and "why" not in process.notes
    mine.note("why", None)
    assert "why" not in mine.notes
    with pytest.raises(mnp.errors.InvalidError):
        mine.note("mnp.kind", "other")


def test_what_a_gaussian_process_learned(process):
    assert process.learned == ""
    gp = mnp.train(mnp.Data.family("rbf", functions=10), model="gp", steps=1)
    assert "RBF: sd " in gp.learned and "; noise: sd " in gp.learned


def test_training_from_another_model(process):
    data = mnp.Data.family("monotonic", functions=10)
    trained = mnp.train(data, init=process, steps=1, batch=2)
    assert all(trained.options[k] == process.options[k] for k in ("kind", "T", "d_z", "bins"))
    assert "init" in trained.notes
    assert mnp.train(data, init=process, steps=1, batch=2, attend="on").options["attend"] == "on"
    with pytest.raises(mnp.errors.InvalidError, match="init has its own options"):
        mnp.train(data, init=process, preset="tiny")
    with pytest.raises(mnp.errors.InvalidError, match="keeps its d_z"):
        mnp.train(data, init=process, d_z=3)


def test_validation_data():
    data = mnp.Data.family("monotonic", functions=10)
    seen: list[mnp.process.Progress] = []
    for valid in (None, mnp.Data.family("monotonic", functions=5, split="valid")):
        mnp.train(data, valid=valid, preset="tiny", steps=2, progress=seen.append, valid_every=1)
    assert np.isnan(seen[1].valid) and np.isfinite(seen[-1].valid)


def test_options_as_python_has_them():
    data = mnp.Data.family("monotonic", functions=5)
    trained = mnp.train(
        data, preset="tiny", steps=1, T=2, layer_norm=True, context=(1, 3), fresh=False
    )
    assert (trained.options["T"], trained.options["layer_norm"]) == ("2", "on")
    assert "context=1:3" in trained.notes["train"]


def test_pickles_keep_names():
    """Also a copy, and with numbers of which float32 alone would lose digits."""
    rows = [(g, 45000 + t / 7, g + t / 3) for g in (1, 2) for t in range(4)]
    text = "who,day,h\n" + "".join(f"p{g},{x!r},{y!r}\n" for g, x, y in rows)
    data = mnp.Data.text(text)
    for again in (pickle.loads(pickle.dumps(data)), copy.copy(data), copy.deepcopy(data)):
        assert (again.group_name, again.x_names, again.y_name) == ("who", ["day"], "h")
        assert len(again) == 2 and again.x_dim == 1
        for (x, y), (u, v) in zip(data, again):
            assert np.array_equal(x, u) and np.array_equal(y, v)
    two = mnp.Data.text(
        "g,a,b,y\n" + "".join(f"{g},{k},{k * k},{k}\n" for g in "pq" for k in (1, 2))
    )
    two = pickle.loads(pickle.dumps(two))
    assert (two.x_names, two.x_dim, len(two)) == (["a", "b"], 2, 2)
    odd = mnp.Data.text('"who, when",t,y\na,0,1\na,1,2\nb,0,3\nb,2,5\n', x="t", y="y")
    assert len(pickle.loads(pickle.dumps(odd))) == 2


@pytest.mark.parametrize("d", [1, 2, 3])
def test_nested_lists(d):
    rng = np.random.default_rng(d)
    xs, ys = [rng.random((n, d)).tolist() for n in (4, 2)], [[1, 2, 3, 4], [5, 6]]
    data = mnp.Data.arrays(xs, ys)
    assert data.x_dim == d
    for (x, y), u, v in zip(data, xs, ys):
        assert np.allclose(x.reshape(-1, d), u) and y.tolist() == v


def test_shared_places():
    for x in ([0, 0.5, 1], (0, 0.5, 1), np.array([0, 0.5, 1])):
        data = mnp.Data.arrays(x, [[1, 2, 3], [4, 5, 6]])
        assert len(data) == 2 and data[1][0].tolist() == [0, 0.5, 1]


def test_refused():
    for make, says in (
        (lambda: mnp.Data.arrays(None, [[1.0]]), "x is missing"),
        (lambda: mnp.Data.arrays(3, [[1.0]]), "x is of the type int"),
        (lambda: mnp.Data.arrays([], [[1.0]]), "x is of 0 curves"),
        (lambda: mnp.Data.family(None), "the name of the data is None"),
        (lambda: mnp.Data.family("monotonic\0"), "zero byte"),
        (lambda: mnp.Data.family("monotonic", functions=1.5), "functions is 1.5"),
        (lambda: mnp.Data.family("monotonic", seed=-1), "seed is -1"),
        (lambda: mnp.Data.family("monotonic", split=["test"]), "split is"),
        (lambda: mnp.Data.text(3), "text is of the type int"),
        (lambda: mnp.Data.text("x,y\n1,2\n", like="name"), "like is of the type str"),
    ):
        with pytest.raises(errors.InvalidError, match=says):
            make()
