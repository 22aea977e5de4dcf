"""mnp.fit gives what the command mnp fit gives, to the last digit."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from curve_tables import SEED, floats, new_plants, places, plants, read, run, write

import mnp

HOW = {"seed": SEED, "folds": 2, "effort": 0}
pytestmark = pytest.mark.filterwarnings("ignore::mnp.Warning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the command makes of the table."""
    folder = tmp_path_factory.mktemp("fit")
    write(folder / "plants.csv", plants())
    words = ("fit", "plants.csv", "--effort", 0, "--folds", 2, "--seed", SEED, "--json")
    (folder / "fit.json").write_text(run(folder, *words))
    return folder


@pytest.fixture(scope="module")
def fit() -> mnp.Fit:
    return mnp.fit(pd.DataFrame(plants()), **HOW)


def test_equals_the_command(fit, folder):
    said = json.loads((folder / "fit.json").read_text().splitlines()[-1])
    assert (fit.best_name, fit.why) == (said["best"], said["why"])
    assert (fit.curves, fit.folds, fit.seed) == (said["curves"], said["folds"], said["seed"])
    assert fit.columns == said["columns"]
    assert fit.warnings == said["warnings"]
    assert len(fit.table) == len(said["table"])
    for here, there in zip(fit.table, said["table"]):
        assert {name: here[name] for name in there} == there


def test_models_equal_the_command(fit, folder):
    """The same weights and notes, but for the name of the file."""
    for name, process in fit.models.items():
        middle = "" if name == fit.best_name else f".{name}"
        there = mnp.load(folder / f"plants{middle}.safetensors")
        for weight, values in there.weights().items():
            assert np.array_equal(process.weights()[weight], values), (name, weight)
        different = {k for k, v in there.notes.items() if process.notes.get(k) != v}
        assert different == {"data"}


def test_files(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "plants.csv", plants())
    fit = mnp.fit("plants.csv", **HOW)
    files = fit.save("m.safetensors")
    for name, file in zip(fit.models, files):  # byte for byte what the command wrote
        middle = "" if name == fit.best_name else f".{name}"
        there = folder / f"plants{middle}.safetensors"
        assert (tmp_path / file).read_bytes() == there.read_bytes()
    assert sorted(files) == sorted(p.name for p in tmp_path.glob("*.safetensors"))
    assert len(files) == len(fit.models)
    with pytest.raises(mnp.errors.InvalidError, match="exists"):
        fit.save("m.safetensors")
    fit.report("m.html", model="m.safetensors")
    page = (tmp_path / "m.html").read_text()
    assert "</html>" in page and "m.safetensors" in page and "height" in page
    assert fit.picture().svg == (folder / "plants.svg").read_text()
    fit.plot().save("m.svg")
    assert (tmp_path / "m.svg").read_text() == fit.picture()._repr_svg_()


def test_predict_equals_the_command(fit, folder):
    write(folder / "new.csv", new_plants())
    write(folder / "at.csv", places())
    words = ("--context", "new.csv", "--at", "at.csv", "--out", "p.csv")
    run(folder, "predict", "plants.safetensors", *words)
    file = read(folder / "p.csv")
    out = fit.predict(pd.DataFrame(new_plants()), pd.DataFrame(places()))
    loaded = mnp.load(folder / "plants.safetensors").predict(new_plants(), places())
    for name in list(file)[1:]:
        assert out[name].tolist() == loaded[name].tolist() == floats(file[name]).tolist()


def test_five_lines():
    """As the docstring has it: import, read, fit, choose a curve, plot."""
    table = pd.DataFrame(plants())
    fit = mnp.fit(table, effort=0, folds=2)
    ax = fit.plot(table[table["plant"] == "a"].head(3))
    lines = {line.get_label(): line for line in ax.lines}
    own = table[["day", "height"]].to_numpy()[:3]
    assert np.array_equal(lines["observed"].get_xydata(), own)
    mean = fit.best.condition(own[:, 0], own[:, 1]).bands(lines["mean"].get_xdata()).mean
    assert np.array_equal(lines["mean"].get_ydata(), mean)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day", "height")


def test_kinds_are_one_fit(fit):
    for table in (pl.DataFrame(plants()), {k: list(v) for k, v in plants().items()}):
        other = mnp.fit(table, **HOW)
        assert other.table == fit.table and other.best.to_bytes() == fit.best.to_bytes()


def test_table_frame(fit):
    frame = fit.table_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == len(fit.table)
    assert frame["crps"].tolist() == [row["crps"] for row in fit.table]
    assert isinstance(fit.table_frame("polars"), pl.DataFrame)
    assert set(frame["task"]) == {"first", "random"} and set(frame["model"]) == set(fit.models)


def test_warnings_are_warnings(capfd):
    seen = []
    with pytest.warns(mnp.Warning, match="8 curves are few") as caught:
        fit = mnp.fit(plants(), progress=lambda *row: seen.append(row), **HOW)
    assert [str(w.message) for w in caught] == fit.warnings
    assert {w.filename for w in caught} == {__file__}
    assert capfd.readouterr() == ("", "")  # nothing is printed
    assert seen[-1][1] == seen[-1][2] and all(isinstance(row[0], str) for row in seen)


def test_what_progress_raises_comes_out():
    def stop(what: str, done: int, total: int) -> None:
        raise LookupError(what)

    with pytest.raises(LookupError):
        mnp.fit(plants(), progress=stop, **HOW)
    assert mnp.load("mnp-monotonic").x_dim == 1  # and the library works on


def test_interrupt():
    """Ctrl-C inside progress; and from outside, while the library trains the network."""
    with pytest.raises(KeyboardInterrupt):
        mnp.fit(plants(), progress=lambda *_: os.kill(os.getpid(), signal.SIGINT), **HOW)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            mnp.fit(plants(), seed=SEED, effort=1000)  # would take an hour
    finally:
        timer.cancel()


def test_wide(tmp_path):
    """One curve in a row; the forecast is asked of curves in rows of their own."""
    days = [0, 2, 4, 6, 8]
    rng = np.random.default_rng(6)
    heights = rng.normal(10, 2, (6, 1)) * np.tanh(np.array(days) / 4) + rng.normal(0, 0.1, (6, 5))
    table = {"plant": list("abcdef"), **{f"day{d}": heights[:, k] for k, d in enumerate(days)}}
    write(tmp_path / "wide.csv", table)
    words = ("fit", "wide.csv", "--wide", "--effort", 0, "--folds", 2, "--json")
    there = json.loads(run(tmp_path, *words).splitlines()[-1])
    fit = mnp.fit(pd.DataFrame(table), wide=True, effort=0, folds=2)
    assert [row["crps"] for row in fit.table] == [row["crps"] for row in there["table"]]
    assert fit.columns == there["columns"]
    new = {"plant": ["n", "m"], "day0": [0.1, 0.0], "day2": [4.0, 5.0]}
    write(tmp_path / "new.csv", new)
    words = ("--context", "new.csv", "--grid", "4:8:2", "--out", "p.csv")
    run(tmp_path, "predict", there["out"], *words)
    out, file = fit.predict(new, [4.0, 8.0]), read(tmp_path / "p.csv")
    assert out["plant"].tolist() == file["plant"]
    assert out["mean"].tolist() == floats(file["mean"]).tolist()


def test_pickle(fit):
    other = pickle.loads(pickle.dumps(fit))
    assert other.table == fit.table and other.best.to_bytes() == fit.best.to_bytes()
    assert other.predict(new_plants(), [5.0])["mean"].tolist() == (
        fit.predict(new_plants(), [5.0])["mean"].tolist()
    )
    with pytest.raises(mnp.errors.InvalidError, match="was pickled"):
        other.save("nowhere.safetensors")


def test_copy(fit, tmp_path):
    """A copy works as the fit does: its files, its picture, its models."""
    for k, other in enumerate((copy.copy(fit), copy.deepcopy(fit))):
        assert len(other.save(tmp_path / f"m{k}.safetensors")) == len(fit.models)
        other.report(tmp_path / f"m{k}.html")
        assert other.picture().svg == fit.picture().svg and other.table == fit.table
        assert other.best is other.models[other.best_name]
        assert other.best.to_bytes() == fit.best.to_bytes()
    assert other.table is not fit.table and other.best is not fit.best


@pytest.mark.parametrize("options", [{"group": "a"}, {"x": "b"}, {"y": "c"}, {"wide": True}])
def test_columns_of_data_are_known(options):
    data = mnp.Data.text("who,t,y\na,0,1\na,1,2\nb,0,3\nb,2,5\n")
    with pytest.raises(mnp.errors.InvalidError, match="leave out group, x, y and wide"):
        mnp.fit(data, **options)


def test_curves_without_a_name_are_told():
    """A text that means "missing" in a CSV file is a name in a frame; None is none."""
    table = plants("abcdefg")
    names = table["plant"].astype(object)
    names[names == "a"], names[names == "b"] = "NA", None
    how = {"group": "plant", "x": "day", "y": "height", "effort": 0, "folds": 2}
    said = "12 rows have no plant and were dropped ('NA' means missing in a table: rename"
    with pytest.warns(mnp.Warning) as caught:
        assert mnp.fit({**table, "plant": names}, **how).curves == 5
    assert any(str(w.message).startswith(said) for w in caught)
    names[names == "NA"] = "x"
    with pytest.warns(mnp.Warning, match="^6 rows have no plant and were dropped$"):
        assert mnp.fit(pd.DataFrame({**table, "plant": names}), **how).curves == 6


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ({k: v[:0] for k, v in plants().items()}, {}, "rows"),
        ({k: v[:6] for k, v in plants().items()}, {"group": "plant"}, "curve"),
        (plants(), {"group": "plnt"}, 'no column "plnt"'),
        (plants(), {"y": "weight"}, 'no column "weight"'),
        ({**plants(), "day": [object()] * 48}, {}, "holds a object"),
        ({**plants(), "height": ["tall"] * 48}, {"group": "plant", "y": "height"}, "row 0"),
        (plants(), {"effort": 1, "seconds": 5}, "exclude each other"),
        (plants(), {"folds": 0}, "folds is 0"),
        (plants(), {"group": 3}, "group is 3"),
        (plants(), {"x": ["day", 1]}, "x is ['day', 1]"),
        (plants(), {"effort": "much"}, "effort is 'much'"),
        (plants(), {"folds": 2.5}, "folds is 2.5"),
        (plants(), {"seconds": 0}, "seconds is 0"),
        ("monotonic", {}, "built-in family"),
        ("no such file.csv", {}, "no such file.csv"),
        ([[1, 2]], {}, "no table"),
    ],
)
def test_bad_tables(table, options, said):
    with pytest.raises(mnp.Error) as failure:
        mnp.fit(table, **options)
    assert said in str(failure.value) and "\n" not in str(failure.value)
    assert "--" not in str(failure.value)
