"""Pictures: matplotlib shows the numbers of the posterior, the library's SVG is whole."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as tree

import matplotlib.pyplot as pyplot
import numpy as np
import pandas as pd
import pytest
from curve_tables import new_plants, plants, trained

import mnp

X, Y, AT = np.array([1.0, 4.0]), np.array([2.0, 7.0]), np.linspace(0, 10, 9)
pytestmark = pytest.mark.filterwarnings("ignore::mnp.Warning")


@pytest.fixture(scope="module")
def process() -> mnp.Process:
    return trained(plants(), group="plant", x="day", y="height")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def texts(svg: str) -> str:
    return " ".join(t for e in tree.fromstring(svg.encode()).iter() for t in e.itertext())


def test_axes_show_the_posterior(process):
    ax = process.plot(X, Y, at=AT, bands=(0.5, 0.9), draws=2, title="t")
    posterior = process.condition(X, Y)
    bands = posterior.bands(AT, [0.05, 0.25, 0.75, 0.95])
    wide, narrow = (c.get_paths()[0].vertices for c in ax.collections)
    for shown, lo, hi in ((wide, 0, 3), (narrow, 1, 2)):
        for k, x in enumerate(AT):
            at_x = shown[shown[:, 0] == x, 1]
            assert at_x.min() == bands.quantiles[lo, k] and at_x.max() == bands.quantiles[hi, k]
    lines = {line.get_label(): line for line in ax.lines}
    assert np.array_equal(lines["mean"].get_ydata(), bands.mean)
    assert np.array_equal(lines["draws, without noise"].get_ydata(), posterior.sample(AT, 2)[0])
    assert lines["observed"].get_xydata().tolist() == [[1.0, 2.0], [4.0, 7.0]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("day", "height")


def test_a_panel_for_each_curve(process):
    """A frame of curves, with held-back points as rings; those that are given are no test."""
    new = pd.DataFrame(new_plants()).dropna()
    truth = pd.concat([new, pd.DataFrame({"plant": ["n1"], "day": [9.0], "height": [9.5]})])
    axes = process.plot(new, at=AT, truth=truth, draws=0)
    assert [ax.get_title() for ax in axes] == ["n1", "n2"]
    lines = {line.get_label(): line for line in axes[0].lines}
    assert lines["observed"].get_xydata().tolist() == [[1.25, 2.5], [3.75, 5.5]]
    assert lines["held out"].get_xydata().tolist() == [[9.0, 9.5]]
    mine = process.condition([2.0], [4.0 / 3.0]).bands(AT).mean
    shown = next(line for line in axes[1].lines if line.get_label() == "mean")
    assert np.array_equal(shown.get_ydata(), mine)
    lo, hi = process.plot(new, draws=0)[0].lines[0].get_xdata()[[0, -1]]
    assert [lo, hi] == [plants()["day"].min(), plants()["day"].max()]  # of the training curves


def test_into_given_axes(process):
    _, axes = pyplot.subplots(1, 2)
    assert process.plot(X, Y, at=AT, ax=axes[1], draws=0) is axes[1]
    assert len(axes[0].lines) == 0 and len(axes[1].lines) == 2
    with pytest.raises(mnp.errors.InvalidError, match="2 curves, and 1 Axes"):
        process.plot(new_plants(), at=AT, ax=axes[0])


def test_svg_without_matplotlib(process, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    picture = process.plot(new_plants(), at=AT, title="Growth & more", draws=1)
    said = texts(picture._repr_svg_())
    for word in ("day", "height", "n1", "n2", "Growth & more", "95", "mean"):
        assert word in said, word
    picture.save(tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text() == picture.svg
    with pytest.raises(mnp.Error, match="p.gif"):
        picture.save(tmp_path / "p.gif")
    with pytest.raises(mnp.errors.UnsupportedError, match="matplotlib is not installed"):
        process.plot(X, Y, at=AT, engine="matplotlib")


def test_posterior_and_prior():
    process = mnp.load("mnp-monotonic")
    options = {"condition": "network", "draws": 10}
    ax = process.condition([0.1, 0.5], [-0.5, 0.5], **options).plot(np.linspace(0, 1, 5), draws=1)
    assert ax.get_xlabel() == "x" and len(ax.lines) == 3
    prior = process.plot(condition="network", samples=4, draws=0, at=[0.0, 1.0], engine="svg")
    assert prior.svg.count("<") > 20


def test_dates():
    table = plants()
    table["day"] = np.datetime64("2024-03-01") + np.rint(table["day"] * 10).astype(int)
    process = trained(table, group="plant", x="day", y="height")
    new = {"plant": ["n"], "day": np.array(["2024-03-05"], "datetime64[D]"), "height": [3.0]}
    ax = process.plot(new, draws=0, bands=0.9)
    given = next(line for line in ax.lines if line.get_label() == "observed")
    assert str(given.get_xdata()[0])[:10] == "2024-03-05"
    assert "2024" in texts(process.plot(new, draws=0, engine="svg").svg)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((X,), {}, "y is missing"),
        ((X, Y), {"at": [1.0]}, "two places or more"),
        ((X, Y), {"at": [1.0, 1.0]}, "all places are the same"),
        ((X, Y), {"bands": [95]}, "bands are shares"),
        ((X, Y), {"bands": "a"}, "bands holds"),
        ((X, Y), {"draws": 2.5}, "draws is 2.5"),
        ((X, Y), {"engine": "gnuplot"}, "engine is 'gnuplot'"),
        ((X, Y), {"draws": -1}, "draws is -1"),
        ((X, Y[:1]), {}, "shape (1,)"),
        ((X, Y), {"truth": 3}, "truth is a pair"),
        ((new_plants(), Y), {}, "x is a frame of curves"),
    ],
)
def test_bad_pictures(process, arguments, options, said):
    with pytest.raises(mnp.errors.InvalidError) as failure:
        process.plot(*arguments, **options)
    assert said in str(failure.value)


def test_what_is_constant_in_a_curve():
    """soil is text and stays; the picture runs along the day, in the units of the table."""
    table = plants()
    table["soil"] = np.where(np.isin(table["plant"], ["a", "c", "e"]), "clay", "sand")
    process = trained(table, group="plant", x=["soil", "day"], y="height")
    new = {"plant": ["n", "n"], "soil": ["clay"] * 2, "day": [1.0, 3.0], "height": [2.0, 5.0]}
    ax = process.plot(new, draws=0)
    assert ax.get_xlabel() == "day"
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["observed"].get_xydata().tolist() == [[1.0, 2.0], [3.0, 5.0]]
    day = lines["mean"].get_xdata()
    assert [day[0], day[-1]] == [table["day"].min(), table["day"].max()]
    clay = [1.0 if name == "soil=clay" else 0.0 for name in process.x_names[:-1]]
    inputs = np.column_stack([*(np.full(len(day), v) for v in clay), day])
    own = np.column_stack([*(np.full(2, v) for v in clay), new["day"]])
    mean = process.condition(own, new["height"]).bands(inputs).mean
    assert np.array_equal(lines["mean"].get_ydata(), mean)


def test_several_outputs():
    """A panel for each output of a curve, in its own units."""
    rng = np.random.default_rng(3)
    t, shift = np.tile(np.linspace(0, 1, 5), 6), np.repeat(rng.normal(size=6), 5)
    table = {"id": np.repeat(list("uvwxyz"), 5), "t": t}
    table.update(temp=20 + shift + t, mass=1000 * (2 + t - 0.5 * shift))
    process = trained(table, group="id", x="t", y=["temp", "mass"])
    new = {"id": ["n", "n"], "t": [0.0, 0.5], "temp": [21.0, 21.5], "mass": [1900.0, 2300.0]}
    axes = process.plot(new, at=np.linspace(0, 1, 5), draws=0, truth=table)
    assert [ax.get_ylabel() for ax in axes] == ["temp", "mass"]
    drawn = process.predict(new, np.linspace(0, 1, 5), as_="pandas")  # by 200 draws
    for ax, name in zip(axes, ("temp", "mass")):
        lines = {line.get_label(): line for line in ax.lines}
        seen = lines["observed"].get_xydata()
        assert np.allclose(seen, np.column_stack([new["t"], new[name]]))
        own = drawn[drawn["output"] == name]
        assert np.all(abs(lines["mean"].get_ydata() - own["mean"]) < 4 * own["sd"] / 200**0.5)
    svg = texts(process.plot(new, at=np.linspace(0, 1, 5), draws=0, engine="svg").svg)
    assert "temp" in svg and "mass" in svg
