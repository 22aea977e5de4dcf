"""Frames in and out; forecasts of many curves, to the last digit those of the command."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from curve_tables import SEED, floats, new_plants, places, plants, read, run, trained, write

import mnp
from mnp import frames

pytestmark = pytest.mark.filterwarnings("ignore::mnp.Warning")


@pytest.fixture(scope="module")
def process() -> mnp.Process:
    return trained(plants(), group="plant", x="day", y="height")


def parsed(table) -> list[list[str]]:
    return list(csv.reader(io.StringIO(frames.to_csv(table).decode())))


# ---- as CSV --------------------------------------------------------------------------------------


def test_numbers_read_back_exactly():
    values = np.array([0.1, 1 / 3, 1e-300, 1.7976931348623157e308, -0.0, 5.0, 2.0**60])
    column = [row[0] for row in parsed({"v": values})[1:]]
    assert [float(t) for t in column] == values.tolist()
    assert column[5] == "5"  # a group that pandas made a float keeps its name
    narrow = np.array([0.1], np.float32)
    assert float(parsed({"v": narrow})[1][0]) == float(narrow[0])


def in_polars(table: pd.DataFrame) -> pl.DataFrame:
    """Its own from_pandas needs a further library for texts and missing numbers."""
    columns = {name: table[name].tolist() for name in table.columns}
    return pl.DataFrame(
        {name: [None if pd.isna(v) else v for v in column] for name, column in columns.items()}
    )


def test_missing_is_an_empty_cell():
    table = pd.DataFrame(
        {
            "f": [1.5, np.nan],
            "i": pd.array([7, None], "Int64"),
            "o": ["a", None],
            "t": pd.to_datetime(["2024-03-01", None]),
            "c": pd.Categorical(["u", None]),
        }
    )
    assert parsed(table)[1:] == [["1.5", "7", "a", "2024-03-01", "u"], [""] * 5]
    assert parsed(in_polars(table))[1:] == parsed(table)[1:]
    masked = {"m": np.ma.array([1.0, 2.0], mask=[False, True]), "n": [None, 3]}
    assert parsed(masked)[1:] == [["1", ""], ["", "3"]]


def test_dates_are_iso():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2024, 3, 1, 12, 30), datetime.datetime(2024, 3, 2)]
    aware = [m.replace(tzinfo=zone) for m in moments]
    days = [datetime.date(2024, 3, 1), None]
    as_text = [datetime.datetime.fromisoformat(r[0]) for r in parsed({"t": moments})[1:]]
    assert as_text == moments
    assert [r[0] for r in parsed({"t": days})[1:]] == ["2024-03-01", ""]
    for table in (
        {"t": aware},
        pd.DataFrame({"t": pd.to_datetime(aware)}),
        pl.DataFrame({"t": aware}),
    ):
        texts = [datetime.datetime.fromisoformat(r[0][:19]) for r in parsed(table)[1:]]
        assert texts == [m - datetime.timedelta(hours=2) for m in moments], type(table)
    hours = {"t": np.array(["2024-03-01T05", "2024-03-01T06"], "datetime64[h]")}
    assert parsed(hours)[1] == ["2024-03-01T05:00:00"]


def test_text_is_quoted():
    table = {"a,b": ['x"y', " z", "1;2", "a\nb"], "c": [True, decimal.Decimal("1.50"), "é", ""]}
    texts = parsed(table)
    assert texts[0] == ["a,b", "c"]
    assert [r[0] for r in texts[1:]] == table["a,b"]
    assert [r[1] for r in texts[1:]] == ["True", "1.50", "é", ""]


def test_kinds_are_one_text():
    table = plants()
    text = frames.to_csv(table)
    assert frames.to_csv(pd.DataFrame(table)) == text
    assert frames.to_csv(pl.DataFrame(table)) == text
    assert frames.to_csv({k: list(v) for k, v in table.items()}) == text
    assert frames.to_csv(pd.DataFrame(table).set_index("plant")) == text


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "one name"),
        ({"a": [1, 2], "b": [1]}, "different lengths: a 2, b 1"),
        ({"a": [[1, 2], [3]]}, "holds a list in row 0"),
        ({"a": "text"}, "is a str"),
        ({"a": np.zeros((2, 2))}, "shape (2, 2)"),
        ({"a": np.array([1], "timedelta64[s]")}, "holds durations"),
        ({"a": np.array([1j])}, "holds complex128"),
        ({"a": [datetime.date(2024, 1, 1), 5]}, "in row 1 5"),
        ({}, "no columns"),
        (pd.DataFrame(np.zeros((2, 2))), "the columns are called 0, 1"),
        ([1, 2], "a list is no table"),
        (pl.DataFrame({"a": [1]}).lazy(), "collect()"),
    ],
)
def test_bad_frames(table, said):
    with pytest.raises(mnp.errors.InvalidError) as failure:
        frames.to_csv(table)
    assert said in str(failure.value)


# ---- forecasts -----------------------------------------------------------------------------------


def same_numbers(frame, file: dict[str, list[str]], names) -> None:
    for name in names:
        assert np.array_equal(np.asarray(frame[name]), floats(file[name])), name


QUANTILES = ["q05", "q25", "q50", "q75", "q95"]


def test_equals_the_command(process, tmp_path):
    """The places of --at in their order, each curve given its own points."""
    process.save(tmp_path / "m.safetensors")
    write(tmp_path / "new.csv", new_plants())
    write(tmp_path / "at.csv", places())
    words = ("predict", "m.safetensors", "--context", "new.csv", "--seed", SEED)
    run(tmp_path, *words, "--at", "at.csv", "--out", "p.csv")
    file = read(tmp_path / "p.csv")
    here = process.predict(pd.DataFrame(new_plants()), pd.DataFrame(places()), seed=SEED)
    assert list(here.columns) == list(file)
    assert here["plant"].tolist() == file["plant"] == ["n2", "n1", "n2"]
    same_numbers(here, file, ["day", "mean", "sd", *QUANTILES])
    run(tmp_path, *words, "--grid", "1:9:3", "--quantiles", "0.025,0.975", "--out", "g.csv")
    file = read(tmp_path / "g.csv")
    levels = {"quantiles": (0.025, 0.975), "seed": SEED}
    for at in ("1:9:3", [1.0, 5.0, 9.0], {"day": [1, 5, 9]}):
        here = process.predict(new_plants(), at, **levels)
        assert list(here) == list(file)
        assert here["plant"].tolist() == file["plant"]
        same_numbers(here, file, ["day", "mean", "sd", "q0.025", "q0.975"])


def test_draws_equal_the_command(process, tmp_path):
    process.save(tmp_path / "m.safetensors")
    write(tmp_path / "at.csv", places())
    words = ("predict", "m.safetensors", "--at", "at.csv", "--samples", 3, "--draws")
    run(tmp_path, *words, "--out", "p.csv")
    here = process.predict(at=tmp_path / "at.csv", samples=3, draws=True, as_="dict")
    file = read(tmp_path / "p.csv")
    assert list(here) == list(file)
    same_numbers(here, file, ["mean", "draw1", "draw2", "draw3"])
    smooth = process.predict(at=tmp_path / "at.csv", samples=3, draws=True, as_="dict", noise=False)
    assert not np.array_equal(smooth["draw1"], here["draw1"])


def test_networks_equal_the_command(tmp_path):
    """A model with latents: refined as it comes, and by the network."""
    process = mnp.load("mnp-monotonic")
    process.save(tmp_path / "m.safetensors")
    context, at = {"x": [0.1, 0.6], "y": [-0.5, 0.25]}, {"x": [0.2, 0.9]}
    write(tmp_path / "c.csv", context)
    write(tmp_path / "a.csv", at)
    for condition in (None, "network"):
        chosen = [] if condition is None else ["--condition", condition]
        words = ("predict", "m.safetensors", "--context", "c.csv", "--at", "a.csv", *chosen)
        run(tmp_path, *words, "--samples", 20, "--out", f"{condition}.csv")
        here = process.predict(context, at, samples=20, condition=condition)
        same_numbers(here, read(tmp_path / f"{condition}.csv"), ["x", "mean", "sd", *QUANTILES])


def test_more_points_than_in_training(tmp_path):
    """Of the curves that are asked about, in one line: that of the command."""
    rows = "".join(f"{k},{t},{k + t}\n" for k in range(8) for t in range(9))
    (tmp_path / "grown.csv").write_text("plant,day,height\n" + rows)
    process = mnp.train(tmp_path / "grown.csv", model="cnp", preset="tiny", steps=2, context=(1, 3))
    process.save(tmp_path / "m.safetensors")
    plants = {"few": 2, "more": 4, "most": 5}
    context = {
        "plant": [name for name, n in plants.items() for _ in range(n)],
        "day": [t for n in plants.values() for t in range(n)],
        "height": [t + 2 for n in plants.values() for t in range(n)],
    }
    write(tmp_path / "c.csv", context)
    for asked, line in (
        (["few"], None),
        (["few", "more"], "4 observed points are more than the model was trained with (3)"),
        (list(plants), "5 observed points are more than the model was trained with (3)"),
    ):
        at = {"plant": asked, "day": [1.5] * len(asked)}
        write(tmp_path / "a.csv", at)
        words = ("predict", "m.safetensors", "--context", "c.csv", "--at", "a.csv")
        said = json.loads(run(tmp_path, *words, "--out", "p.csv", "--json"))["warnings"]
        assert [w for w in said if "trained with" in w] == ([line] if line else [])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            process.predict(context, at)
        many = [str(w.message) for w in seen if "trained with" in str(w.message)]
        assert many == ([line] if line else [])


def test_kinds_come_back(process):
    wanted = process.predict(new_plants(), places())
    assert isinstance(wanted, dict)
    pandas = process.predict(new_plants(), pd.DataFrame(places(), index=[5, 7, 9]))
    polars = process.predict(new_plants(), pl.DataFrame(places()))
    assert isinstance(pandas, pd.DataFrame) and pandas.index.tolist() == [5, 7, 9]
    assert isinstance(polars, pl.DataFrame)
    for name, values in wanted.items():
        assert pandas[name].tolist() == values.tolist()
        assert polars[name].to_list() == values.tolist()
    spread = process.predict(pl.DataFrame(new_plants()), at=[1.0])
    assert isinstance(spread, pl.DataFrame) and spread["plant"].to_list() == ["n1", "n2"]
    mixed = process.predict(pl.DataFrame(new_plants()), at=pd.DataFrame({"day": [1.0]}))
    assert isinstance(mixed, pd.DataFrame) and mixed["plant"].tolist() == ["n1", "n2"]
    assert isinstance(process.predict(new_plants(), at=[1.0], as_="pandas"), pd.DataFrame)


def test_other_columns_stay(process):
    at = pd.DataFrame({"note": ["u", "v", "w"], **places(), "mean": [1.0, 2.0, 3.0]})
    at["plant"] = at["plant"].astype("category")
    with pytest.warns(mnp.Warning, match="column mean of the places is left out"):
        out = process.predict(new_plants(), at)
    assert list(out.columns)[:3] == ["plant", "note", "day"]
    assert out["plant"].dtype == "category" and out["note"].tolist() == ["u", "v", "w"]
    assert not np.array_equal(out["mean"], at["mean"])


def test_a_stranger_gets_the_population(process):
    with pytest.warns(mnp.Warning, match="no points in the context"):
        out = process.predict(new_plants(), {"plant": ["zz"], "day": [5.0]})
    alone = process.predict(at={"plant": ["zz"], "day": [5.0]})
    assert out["mean"] == alone["mean"]


def test_blanks_around_names(process):
    """As pandas has them from a file with "plant, day, height"."""
    spaced = pd.DataFrame(new_plants()).rename(columns=lambda name: f" {name}")
    out = process.predict(spaced, {" plant": ["n1"], "day ": [2.0]})
    assert out["mean"] == process.predict(new_plants(), {"plant": ["n1"], "day": [2.0]})["mean"]


def test_other_names(process):
    renamed = pd.DataFrame(new_plants()).rename(columns={"plant": "id", "day": "t", "height": "cm"})
    at = pd.DataFrame(places()).rename(columns={"plant": "id", "day": "t"})
    out = process.predict(renamed, at, group="id", x="t", y="cm")
    wanted = process.predict(new_plants(), places())
    assert out["mean"].tolist() == wanted["mean"].tolist() and list(out.columns)[:2] == ["id", "t"]


def test_dates_categories_and_composite_groups(tmp_path):
    """Two columns tell curves apart, x are dates, soil is text and constant in a curve."""
    rng = np.random.default_rng(2)
    rows = [
        (site, plot, np.datetime64("2024-03-01") + int(d), soil, top + d * slope)
        for site in ("north", "south")
        for plot, soil in ((1, "clay"), (2, "sand"), (3, "sand"))
        for top, slope in [(rng.normal(5, 1), rng.normal(0.3, 0.05))]
        for d in np.sort(rng.choice(60, 7, replace=False))
    ]
    table = pd.DataFrame(rows, columns=["site", "plot", "day", "soil", "yield"])
    table["day"] = pd.to_datetime(table["day"])
    columns = {"group": ["site", "plot"], "x": ["day", "soil"], "y": "yield"}
    process = trained(table, **columns)
    process.save(tmp_path / "m.safetensors")
    new = table[(table["site"] == "south")].groupby("plot").head(2)
    at = pd.DataFrame({"day": pd.to_datetime(["2024-04-01", "2024-05-01"])})
    new.to_csv(tmp_path / "new.csv", index=False)  # pandas' own hand
    at.to_csv(tmp_path / "at.csv", index=False)
    words = ("--context", "new.csv", "--at", "at.csv", "--samples", 50, "--out", "p.csv")
    run(tmp_path, "predict", "m.safetensors", *words)
    file = read(tmp_path / "p.csv")
    for kind in (pd.DataFrame, pl.DataFrame):
        same, where = (new, at) if kind is pd.DataFrame else map(in_polars, (new, at))
        out = process.predict(same, where, samples=50)
        assert isinstance(out, kind)
        same_numbers(out, file, ["mean", "sd", *QUANTILES])
        assert list(out["site"]) == file["site"] and [str(p) for p in out["plot"]] == file["plot"]
        assert [str(d)[:10] for d in out["day"]] == file["day"]
        assert out["plot"].dtype == same["plot"].dtype and out["day"].dtype == where["day"].dtype
    assert process.predict(new, at=at["day"].to_numpy(), samples=50)["mean"].tolist() == (
        floats(file["mean"]).tolist()
    )
    grid = process.predict(new, "2024-04-01:2024-05-01:2", samples=50)
    assert grid["mean"].tolist() == floats(file["mean"]).tolist()
    assert grid["day"].astype(str).tolist() == file["day"]
    files = process.predict(tmp_path / "new.csv", tmp_path / "at.csv", samples=50, as_="dict")
    assert files["mean"].tolist() == floats(file["mean"]).tolist()
    assert files["day"].astype("datetime64[D]").astype(str).tolist() == file["day"]


def test_several_outputs(tmp_path):
    """Places that do not say which output is meant are asked about each."""
    rng = np.random.default_rng(3)
    t = np.tile(np.linspace(0, 1, 5), 6)
    shift = np.repeat(rng.normal(size=6), 5)
    table = {"id": np.repeat(list("uvwxyz"), 5), "t": t}
    table |= {"temp": 20 + shift + t, "mass": 1000 * (2 + t - 0.5 * shift)}
    process = trained(table, group="id", x="t", y=["temp", "mass"])
    process.save(tmp_path / "m.safetensors")
    context = {"id": ["n"], "t": [0.5], "temp": [21.0], "mass": [2300.0]}
    write(tmp_path / "c.csv", context)
    write(tmp_path / "a.csv", {"t": [0.25, 0.75]})
    words = ("--context", "c.csv", "--at", "a.csv", "--out", "p.csv")
    run(tmp_path, "predict", "m.safetensors", *words)
    file = read(tmp_path / "p.csv")
    out = process.predict(context, {"t": np.array([0.25, 0.75])})
    assert list(out) == list(file)
    assert [out["t"].tolist(), out["output"].tolist()] == [
        floats(file["t"]).tolist(),
        file["output"],
    ]
    same_numbers(out, file, ["mean", "sd", *QUANTILES])


@pytest.mark.parametrize(
    ("context", "at", "said"),
    [
        (None, None, "say where"),
        ({"plant": ["a"], "day": [1.0]}, [1.0], 'no column "height"'),
        ({"plant": ["a"], "day": ["soon"], "height": [1.0]}, [1.0], 'row 0: column "day": "soon"'),
        ({"plant": ["a"], "day": [np.inf], "height": [1.0]}, [1.0], "row 0: "),
        ({k: v[:0] for k, v in new_plants().items()}, [1.0], "no curve with a point"),
        (None, {"plant": [], "day": []}, "no rows to predict at"),
        (None, {"plant": ["a", "b"], "day": [1.0, None]}, "row 1: an input is missing"),
        (None, "9:1:3", "lo:hi:n"),
    ],
)
def test_bad_questions(process, context, at, said):
    with pytest.raises(mnp.Error) as failure:
        process.predict(context, at)
    assert said in str(failure.value) and "\n" not in str(failure.value)


def test_bad_options(process):
    for options in (
        {"quantiles": [2]},
        {"quantiles": [0.5, 0.5]},
        {"as_": "arrow"},
        {"samples": 0},
    ):
        with pytest.raises(mnp.errors.InvalidError):
            process.predict(at=places(), **options)


# ---- xarray --------------------------------------------------------------------------------------


def test_xarray(process):
    options = {"quantiles": [0.1, 0.9], "draws": True, "samples": 5}
    out = process.predict(new_plants(), places(), as_="xarray", **options)
    frame = process.predict(new_plants(), places(), **options)
    assert dict(out.sizes) == {"point": 3, "quantile": 2, "draw": 5}
    assert out["plant"].values.tolist() == ["n2", "n1", "n2"]
    assert out["mean"].values.tolist() == frame["mean"].tolist()
    assert out["quantiles"].sel(quantile=0.9).values.tolist() == frame["q0.9"].tolist()
    assert out["draws"].isel(draw=4).values.tolist() == frame["draw5"].tolist()
    posterior = process.condition([1.0], [2.0])
    drawn = posterior.to_xarray([0.5, 1.5], 4)
    assert drawn.dims == ("draw", "point") and drawn["day"].values.tolist() == [0.5, 1.5]
    assert drawn.name == "height"
    assert np.array_equal(drawn.values, posterior.sample([0.5, 1.5], 4))


# ---- frames as data ------------------------------------------------------------------------------


def test_training_on_a_frame(tmp_path):
    """With the split of the file: the same weights."""
    table = plants("abcdefghijkl", 5)
    options = {"preset": "tiny", "steps": 3, "seed": SEED}
    here = mnp.train(pl.DataFrame(table), **options)
    there = mnp.train(write(tmp_path / "p.csv", table), **options)
    for name, weight in there.weights().items():
        assert np.array_equal(here.weights()[name], weight), name


def test_training_on_named_columns(tmp_path):
    """As the command is told them; and what has no columns is refused."""
    table = plants("abcdefghijkl", 5)
    table = {"height": table["height"], "weight": table["height"] ** 2, **table}
    names = {"group": "plant", "x": ["day"], "y": "weight"}
    write(tmp_path / "p.csv", table)
    words = ("--group", "plant", "--x", "day", "--y", "weight", "--steps", 3, "--seed", SEED)
    run(tmp_path, "train", "--data", "p.csv", *words, "--preset", "tiny", "--out", "m.safetensors")
    there = mnp.load(tmp_path / "m.safetensors")
    for data in (pd.DataFrame(table), tmp_path / "p.csv"):
        here = mnp.train(data, preset="tiny", steps=3, seed=SEED, **names)
        assert (here.x_names, here.y_name) == (["day"], "weight")
        for name, weight in there.weights().items():
            assert np.array_equal(here.weights()[name], weight), name
    for data in ("monotonic", mnp.Data.family("monotonic", functions=2), ([[0.0]], [[1.0]])):
        with pytest.raises(mnp.errors.InvalidError, match="only a frame or a CSV file"):
            mnp.train(data, y="weight")
    with pytest.raises(mnp.errors.InvalidError, match="group is 3: give the name of a column"):
        mnp.train(table, group=3)


def test_curves_of_a_frame(process):
    table = plants("xyz", 4)
    shuffled = {name: table[name] for name in ("height", "plant", "day")}
    data = mnp.data.as_data(shuffled, like=process)
    assert len(data) == 3 and data.x_names == ["day"] and data.y_name == "height"
    assert np.array_equal(data[0][1], table["height"][:4].astype(np.float32))


def test_scores_of_a_frame(process, tmp_path):
    """Read as the model's own table, whatever the order of the columns; as the file is."""
    table = plants("xyz", 6)
    shuffled = pd.DataFrame({name: table[name] for name in ("height", "plant", "day")})
    here = process.evaluate(shuffled, samples=2, seed=SEED)
    there = process.evaluate(write(tmp_path / "t.csv", table), samples=2, seed=SEED)
    assert here.functions == 3 and (here.loglik, here.crps) == (there.loglik, there.crps)


def test_columns_are_points(process):
    """A column of a frame is an array as any other, whatever its index."""
    x, y, at = [1.0, 4.0, 9.0], [2.0, 3.0, 4.5], [5.0, 6.0]
    want = process.condition(x, y).mean(at)
    frame = pd.DataFrame({"x": x, "y": y, "at": [0.0, 5.0, 6.0]}, index=[7, 3, 5])
    assert np.array_equal(process.condition(frame["x"], frame["y"]).mean(frame["at"][1:]), want)
    frame = in_polars(frame)
    assert np.array_equal(process.condition(frame["x"], frame["y"]).mean(frame["at"][1:]), want)
