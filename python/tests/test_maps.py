"""Maps from wells, to the last digit those of the command."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as tree

import matplotlib.pyplot as pyplot
import numpy as np
import pandas as pd
import pytest
from curve_tables import HERE, read, run, write

import mnp
from mnp import maps

pytestmark = pytest.mark.filterwarnings("ignore::mnp.Warning")
RIVERS = HERE / "models" / "geofluvial-np.safetensors"
WELLS = {
    "row": np.array([1.0, 5.5, 9.0]),
    "col": np.array([2.0, 7.25, 10.0]),
    "value": np.array([0.75, -0.5, 1.0]),
}


@pytest.fixture(scope="module")
def rivers() -> mnp.Process:
    if not RIVERS.is_file():
        pytest.skip("the model of rivers is not here")
    return mnp.load(RIVERS)


@pytest.fixture(scope="module")
def plane() -> mnp.Process:
    """A Gaussian process over two inputs, of tilted planes."""
    rng = np.random.default_rng(4)
    x = [rng.uniform(0, 4, (8, 2)) for _ in range(6)]
    y = [p @ rng.normal(1, 0.3, 2) + rng.normal(0, 0.01, 8) for p in x]
    return mnp.train(mnp.Data.arrays(x, y), model="gp", steps=2)


def same(m: maps.Map, file: dict[str, list[str]], below: str) -> None:
    """The command writes single precision."""
    for name, values in (("mean", m.mean), ("sd", m.sd), (below, m.below)):
        there = np.array([np.float32(text) for text in file[name]])
        assert np.array_equal(values.astype(np.float32).ravel(), there), name


def test_rivers_equal_the_command(rivers, tmp_path):
    write(tmp_path / "wells.csv", WELLS)
    words = ("predict", RIVERS, "--context", "wells.csv", "--grid", "12x14", "--samples", 3)
    table = run(tmp_path, *words, "--seed", 5)
    (tmp_path / "map.csv").write_text(table)
    file = read(tmp_path / "map.csv")
    for wells in (WELLS, pd.DataFrame(WELLS), tmp_path / "wells.csv"):
        m = maps.make(rivers, wells, shape=(12, 14), samples=3, seed=5)
        same(m, file, "p_channel")
        assert m.draws.shape == (3, 12, 14) and m.draws.dtype == np.float32
    pair = np.column_stack([WELLS["row"], WELLS["col"]]), WELLS["value"]
    same(maps.make(rivers, pair, shape=(12, 14), samples=3, seed=5), file, "p_channel")
    run(tmp_path, *words, "--honour", "off", "--threshold", 0.5, "--out", "m")
    plain = maps.make(rivers, WELLS, shape=(12, 14), samples=3, honour=False, threshold=0.5)
    for name, file in (("mean", "mean"), ("sd", "sd"), ("below", "channel"), ("draws", "draws")):
        there = np.load(tmp_path / f"m-{file}.npy")
        assert np.array_equal(getattr(plain, name).astype(np.float32), there), name


def test_more_wells_than_in_training_warn(tmp_path):
    images = np.random.default_rng(3).normal(size=(12, 6, 6)).astype(np.float32)
    np.save(tmp_path / "i.npy", images)
    process = mnp.train(
        f"images:{tmp_path / 'i.npy'}", preset="image-small", steps=2, context=(1, 4)
    )
    places = np.array([[r, r] for r in range(5)], float)
    for n, times in ((4, 0), (5, 1)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            maps.make(process, (places[:n], np.zeros(n)), shape=(6, 6), samples=2)
        many = [w for w in seen if "than the model was trained with (4)" in str(w.message)]
        assert len(many) == times


def test_realisations_pass_through_the_wells(rivers):
    well, options = {"row": [4], "col": [6], "value": [0.75]}, {"shape": (12, 14), "samples": 4}
    here = maps.make(rivers, well, **options).draws[:, 4, 6]
    free = maps.make(rivers, well, honour=False, **options).draws[:, 4, 6]
    assert np.all(abs(here - 0.75) < 0.01) and np.all(abs(free - 0.75) > 0.5)


def test_coordinates_and_codes(rivers):
    """Easting and northing, and facies as words: the same map as by rows and columns."""
    extent = (100.0, 230.0, 0.0, 110.0)  # 10 metres a pixel
    places = {"easting": 100 + 10 * WELLS["col"], "northing": 110 - 10 * WELLS["row"]}
    table = {**places, "facies": ["l", "r", "l"]}
    options = {"shape": (12, 14), "samples": 2}
    codes = {"l": "land", "r": "river"}
    m = maps.make(rivers, table, extent=extent, codes=codes, **options)
    rows = maps.make(rivers, {**WELLS, "value": np.array([1.0, -1.0, 1.0])}, **options)
    assert np.allclose(m.mean, rows.mean, atol=1e-5)
    assert m.x[[0, -1]].tolist() == [100, 230] and m.y[[0, -1]].tolist() == [110, 0]
    data = m.to_xarray()
    assert data["mean"].dims == ("northing", "easting") and data["draws"].shape == (2, 12, 14)
    assert rows.to_xarray()["mean"].dims == ("row", "col")
    assert float(data["mean"].sel(easting=100, northing=110)) == m.mean[0, 0]


def test_two_inputs_equal_the_command(plane, tmp_path):
    plane.save(tmp_path / "m.safetensors")
    wells = {"x1": [1.0, 3.0], "x2": [2.0, 0.5], "y": [3.1, 3.4]}
    write(tmp_path / "wells.csv", wells)
    words = ("--context", "wells.csv", "--grid", "5x7", "--extent", "0,4,0,3", "--samples", 4)
    (tmp_path / "map.csv").write_text(run(tmp_path, "predict", "m.safetensors", *words))
    pair = np.column_stack([wells["x1"], wells["x2"]]), np.array(wells["y"])
    m = maps.make(plane, pair, shape=(5, 7), extent=(0, 4, 0, 3), samples=4)
    file = read(tmp_path / "map.csv")
    same(m, file, "p_below")
    assert m.frame.names == tuple(file)[:2] == ("x1", "x2")
    same(maps.make(plane, wells, shape=(5, 7), extent=(0, 4, 0, 3), samples=4), file, "p_below")


def test_pictures(rivers):
    m = maps.make(rivers, WELLS, shape=(12, 14), samples=2)
    axes = m.plot()
    assert len(axes) == 4 and np.array_equal(axes[0].images[0].get_array(), m.mean)
    well = axes[0].lines[0].get_xydata()
    assert well.tolist() == [[2.0, 1.0], [7.25, 5.5], [10.0, 9.0]]  # to the right, down
    pyplot.close("all")
    svg = m.plot(engine="svg", realisations=0).svg
    assert "p(river)" in " ".join(
        t for e in tree.fromstring(svg.encode()).iter() for t in e.itertext()
    )


@pytest.mark.parametrize(
    ("wells", "options", "said"),
    [
        ({"a": [1], "b": [2], "value": [1]}, {}, "no columns row and col"),
        ({"row": [1], "col": [2], "u": [1], "v": [2]}, {}, "say which has the values"),
        ({"row": [99], "col": [2], "value": [1]}, {}, "99"),
        ({"row": [1, 2], "col": [2, 3], "value": [0, 1]}, {}, "codes={0: 'land', 1: 'river'}"),
        ({"row": [1], "col": [2], "value": ["mud"]}, {}, "'mud' in row 0"),
        ({"row": [1], "col": [2], "value": ["m"]}, {"codes": {"n": "land"}}, "none of codes="),
        ({"row": [None], "col": [2], "value": [1]}, {}, "no place"),
        ((np.zeros(3), np.zeros(3)), {}, "places (n, 2)"),
        ({"row": [1], "col": [2], "value": ["m"]}, {"codes": {"m": "sea"}}, "mean 'sea'"),
        ({"row": [1], "col": [2], "value": ["m"]}, {"codes": ["m"]}, "codes is a list"),
        (None, {"shape": (1, 5)}, "2 to 4096"),
        (None, {"shape": 8}, "give (rows, columns)"),
        (None, {"shape": (8, 8, 3)}, "give (rows, columns)"),
        (None, {"shape": (8.5, 8)}, "give (rows, columns)"),
        (None, {"extent": "wide"}, "extent"),
        (None, {"threshold": "low"}, "threshold is 'low'"),
        (None, {"honour": "much"}, "honour is 'much'"),
        (None, {"extent": (1, 0, 0, 1)}, "x0 < x1"),
        (None, {"samples": 0}, "samples is 0"),
        (None, {"samples": 2.5}, "samples is 2.5"),
        (None, {"device": None}, "device is None"),
        (None, {"gradients": 0}, "gradients is 0"),
        (None, {"condition": "guess"}, "condition is 'guess'"),
    ],
)
def test_bad_maps(rivers, wells, options, said):
    with pytest.raises(mnp.errors.InvalidError) as failure:
        maps.make(rivers, wells, **{"shape": (12, 14), **options})
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("raw", "kind", "said"),
    [
        (None, mnp.errors.FileError, "No such file"),
        (b"", mnp.errors.FormatError, "no header"),
        (b"row,col,value\n1,2,1\n3,4\n", mnp.errors.FormatError, "row 1 has 2 cells"),
        ("row,col,v\xe4lue\n1,2,1\n".encode("latin-1"), mnp.errors.FormatError, "UTF-8"),
    ],
)
def test_bad_files_of_wells(rivers, tmp_path, raw, kind, said):
    path = tmp_path / "wells.csv"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(kind, match=said) as failure:
        maps.make(rivers, path, shape=(12, 14))
    assert "wells.csv" in str(failure.value)


def test_one_input():
    with pytest.raises(mnp.errors.InvalidError, match="two inputs"):
        maps.make(mnp.load("mnp-monotonic"))
