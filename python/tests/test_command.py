"""The same seed gives the numbers of the command, to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import AT, X, Y, read_csv, write_csv

import mnp

pytestmark = pytest.mark.filterwarnings("ignore::mnp.Warning")


def files(tmp_path):
    return write_csv(tmp_path / "c.csv", x=X, y=Y), write_csv(tmp_path / "a.csv", x=AT)


@pytest.mark.parametrize("condition", [None, "network", "exact"])
def test_predict(process, model_file, command, tmp_path, condition):
    context, at = files(tmp_path)
    said = () if condition is None else ("--condition", condition)
    out = tmp_path / "p.csv"
    told = command(
        *("predict", model_file, "--context", context, "--at", at, "--out", out, "--draws"),
        *("--samples", 20, "--seed", 3, *said),
    )
    want = read_csv(out)
    posterior = process.condition(X, Y, condition=condition, draws=20, seed=3)
    p = posterior.predict(AT)
    assert np.array_equal(p.mean, want["mean"])
    assert np.array_equal(p.sd, want["sd"])
    for k, name in enumerate(["q05", "q25", "q50", "q75", "q95"]):
        assert np.array_equal(p.quantiles[k], want[name])
    assert np.array_equal(posterior.mean(AT), want["mean"])
    assert np.array_equal(posterior.sd(AT), want["sd"])
    assert np.array_equal(posterior.quantile(AT, 0.25), want["q25"])
    draws = posterior.sample(AT, noise=True)
    assert np.array_equal(draws, [want[f"draw{s}"] for s in range(1, 21)])
    for name in ("condition", "particles", "gradients"):
        assert getattr(posterior.report, name) == told[name]
    for name in ("acceptance", "particle_ess", "rhat", "log_evidence", "fit_before", "fit_after"):
        got, there = getattr(posterior.report, name), told[name]
        assert got == there or (np.isnan(got) and there is None)


@pytest.mark.parametrize("kind", ["oracle", "lmm", "gp"])
def test_predict_without_latents(oracle, command, tmp_path, kind):
    """Joint draws at the places of one call; a table's model takes its units and names."""
    trained = oracle
    if kind != "oracle":
        rows = [f"{k},{t},{(3 + k % 4) * t + 90}" for k in range(8) for t in range(5)]
        table = mnp.Data.text("\n".join(["id,x,y", *rows]))
        trained = mnp.train(table, model=kind, steps=None if kind == "lmm" else 3)
    path, out = tmp_path / "m.safetensors", tmp_path / "p.csv"
    trained.save(path)
    context, at = write_csv(tmp_path / "k.csv", x=[0.0, 1.0], y=[90.0, 95.0]), files(tmp_path)[1]
    words = ("--context", context, "--at", at, "--out", out, "--samples", 30, "--seed", 4)
    command("predict", path, *words, *(() if kind == "oracle" else ("--group", "")))
    want = read_csv(out)
    p = trained.condition([0.0, 1.0], [90.0, 95.0], draws=30, seed=4).predict(AT)
    assert np.array_equal(p.mean, want["mean"]) and np.array_equal(p.sd, want["sd"])
    assert np.array_equal(p.quantiles[2], want["q50"])


def test_prior(process, model_file, command, tmp_path):
    _, at = files(tmp_path)
    out = tmp_path / "p.csv"
    command("predict", model_file, "--at", at, "--out", out, "--samples", 10)
    assert np.array_equal(process.condition(draws=10).mean(AT), read_csv(out)["mean"])


@pytest.mark.parametrize("base", ["zero", "normal"])
def test_sample(process, model_file, command, tmp_path, base):
    context, at = files(tmp_path)
    out = tmp_path / "s.csv"
    command(
        *("sample", model_file, "--context", context, "--at", at, "--out", out, "-n", 4),
        *("--base", base, "--seed", 5),
    )
    want = read_csv(out)["y"].reshape(4, len(AT))
    posterior = process.condition(X, Y, seed=5)
    assert np.array_equal(posterior.sample(AT, 4, noise=base == "normal"), want)


def test_score(process, model_file, command, tmp_path):
    context, _ = files(tmp_path)
    targets = write_csv(tmp_path / "t.csv", x=[0.2, 0.6], y=[-0.4, 0.3])
    words = ("score", model_file, "--context", context, "--targets", targets, "--seed", 2)
    told = command(*words, "--samples", 20, "--condition", "refine")
    posterior = process.condition(X, Y, condition="refine", draws=20, seed=2)
    score = posterior.score([0.2, 0.6], [-0.4, 0.3])
    assert (score.bound, score.prior) == (told["total"], told["total_prior_sampling"])
    assert posterior.log_prob([0.2, 0.6], [-0.4, 0.3]) / 2 == told["loglik_draws"]


def test_eval(process, model_file, command):
    words = ("eval", model_file, "--data", "monotonic", "--functions", 4, "--samples", 3)
    told = command(*words, "--seed", 7)
    scores = process.evaluate("monotonic", functions=4, samples=3, seed=7)
    for name in ("loglik", "se", "elbo", "kl", "ess", "crps", "coverage50", "coverage95"):
        assert getattr(scores, name) == told[name]
    rows = [[row[k] for k in ("lo", "hi", "functions")] for row in told["by_context"]]
    assert rows == [[r.lo, r.hi, r.functions] for r in scores.by_context]


def test_eval_draws(process, model_file, command):
    words = ("eval", model_file, "--data", "monotonic", "--functions", 3, "--samples", 2)
    told = command(*words, "--draws", 10)
    scores = process.evaluate("monotonic", functions=3, samples=2, draws=10)
    assert (scores.crps, scores.coverage80) == (told["crps"], told["coverage80"])
    assert scores.predictive[0].crps == told["crps"]


def test_check(process, model_file, command):
    words = ("check", model_file, "--data", "monotonic", "--functions", 2, "--samples", 3)
    told = command(*words, "--context", 4)
    laws = process.check("monotonic", functions=2, samples=3, context=4)
    for name in ("permutation", "marginal", "conditional", "conditional_se", "joint"):
        assert getattr(laws, name) == told[name], name


def test_calibration(process, model_file, command):
    words = ("check", model_file, "--data", "monotonic", "--functions", 5, "--calibration")
    told = command(*words, "--draws", 9, "--context", 3)["calibration"][0]
    got = process.calibrate("monotonic", functions=5, draws=9, context=3)
    assert got.ranks.tolist() == told["ranks"]
    assert (got.mean, got.spread, got.inside95) == (
        told["rank_mean"],
        told["rank_spread"],
        told["inside95"],
    )


@pytest.mark.parametrize("data", ["family", "file"])
def test_train(command, tmp_path, data):
    out = tmp_path / "m.safetensors"
    what, functions = "monotonic", ("--functions", 30)
    if data == "file":
        what, functions = tmp_path / "d.csv", ()
        mnp.Data.family("monotonic", functions=20, seed=4).to_csv(what)
    words = ("train", "--data", what, *functions, "--steps", 6, "--batch", 5, "--preset", "tiny")
    told = command(*words, "--out", out, "--seed", 3, "--set", "T=2")
    seen: list[mnp.process.Progress] = []
    trained = mnp.train(
        what if data == "file" else "monotonic",
        preset="tiny",
        functions=30 if data == "family" else 0,
        steps=6,
        batch=5,
        T=2,
        seed=3,
        progress=seen.append,
    )
    want = mnp.load(out)
    assert (seen[-1].loss, seen[-1].best_valid) == (told["loss"], told["best_valid"])
    assert trained.options == want.options and trained.notes == want.notes
    for name, weight in want.weights().items():
        assert np.array_equal(weight, trained.weights()[name]), name
