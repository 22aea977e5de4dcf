"""Answers against closed forms, integration and other ways to the same number."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from conftest import AT, X, Y

import mnp
from mnp._arrays import numbers

LENGTH, NOISE = 0.25, 0.01  # of the family rbf; its variance is 1


def network(process, x=X, y=Y, **more):
    return process.condition(x, y, condition="network", **more)


# ---- a Gaussian process, by NumPy ----------------------------------------------------------------


def kernel(a, b):
    return np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * LENGTH**2))


def conditional(x, y, at):
    """Mean and covariance of measurements at the targets."""
    K = kernel(x, x) + NOISE**2 * np.eye(len(x))
    k = kernel(at, x)
    mean = k @ np.linalg.solve(K, y)
    return mean, kernel(at, at) + NOISE**2 * np.eye(len(at)) - k @ np.linalg.solve(K, k.T)


def test_bands_are_exact(oracle):
    mean, cov = conditional(X, Y, AT)
    bands = oracle.condition(X, Y).bands(AT, [0.05, 0.5])
    sd = np.sqrt(np.diag(cov))
    assert np.allclose(bands.mean, mean, atol=1e-4)
    assert np.allclose(bands.sd, sd, rtol=2e-3, atol=1e-5)
    assert np.allclose(bands.quantiles[1], mean, atol=1e-4)
    assert np.allclose(bands.quantiles[0], mean - 1.6448536 * sd, atol=4e-3)


def test_joint_density_is_exact(oracle):
    at, y = np.array([0.2, 0.5, 0.7]), np.array([-0.2, 0.1, 0.5])
    mean, cov = conditional(X, Y, at)
    r = y - mean
    want = -0.5 * (r @ np.linalg.solve(cov, r) + np.linalg.slogdet(2 * np.pi * cov)[1])
    posterior = oracle.condition(X, Y)
    assert posterior.log_prob(at, y) == pytest.approx(want, rel=2e-3)
    each = posterior.log_prob(at, y, pointwise=True)
    var = np.diag(cov)
    assert np.allclose(each, -0.5 * (r**2 / var + np.log(2 * np.pi * var)), rtol=2e-3)


def test_draws_have_the_covariance(oracle):
    """20 000 draws: the error of a mean is 1 / 141 of a deviation, of a covariance 1 / 100."""
    at = np.array([0.2, 0.3, 0.65])
    mean, cov = conditional(X, Y, at)
    draws = oracle.condition(X, Y, seed=1).sample(at, 20_000, noise=True)
    sd = np.sqrt(np.diag(cov))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4 * sd / 141)
    assert np.allclose(np.cov(draws.T) / np.outer(sd, sd), cov / np.outer(sd, sd), atol=0.05)
    smooth = oracle.condition(X, Y, seed=1).sample(at, 20_000)
    inner = (cov - NOISE**2 * np.eye(3)) / np.outer(sd, sd)
    assert np.allclose(np.cov(smooth.T) / np.outer(sd, sd), inner, atol=0.05)


def test_functions_need_latents(oracle):
    with pytest.raises(mnp.errors.UnsupportedError, match="sample"):
        oracle.condition(X, Y).functions(3)


# ---- a model with latents ------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["network", "refine"])
def test_density_integrates_to_one(process, condition):
    posterior = process.condition(X, Y, condition=condition, draws=8)
    y = np.linspace(-3, 3, 6001)
    logp = posterior.log_prob(np.full_like(y, 0.5), y, pointwise=True)
    assert np.exp(logp).sum() * (y[1] - y[0]) == pytest.approx(1, abs=2e-3)
    one = [posterior.log_prob([0.5], [v]) for v in y[3000:3003]]
    assert np.allclose(one, logp[3000:3003], rtol=1e-6)


def test_density_is_that_of_the_draws(process):
    """Shares of many noisy draws against the integral of the density."""
    posterior = network(process, draws=300)
    draws = posterior.sample([0.5], noise=True)[:, 0]
    edges = np.quantile(draws, [0.1, 0.5, 0.9])
    y = np.linspace(-1.5, 1.5, 301)
    logp = posterior.log_prob(np.full_like(y, 0.5), y, pointwise=True)
    below = np.cumsum(np.exp(logp)) * (y[1] - y[0])
    assert np.allclose(np.interp(edges, y, below), [0.1, 0.5, 0.9], atol=0.07)


def test_summary_is_numpy_on_the_draws(process):
    posterior = network(process, draws=33, seed=4)
    for noise in (True, False):
        draws = posterior.sample(AT, noise=noise)
        assert np.allclose(posterior.mean(AT, noise=noise), draws.mean(axis=0), rtol=1e-12)
        assert np.allclose(posterior.sd(AT, noise=noise), draws.std(axis=0, ddof=1), rtol=1e-12)
        want = np.quantile(draws, [0, 0.3, 1], axis=0)
        assert np.allclose(posterior.quantile(AT, [0, 0.3, 1], noise=noise), want, rtol=1e-12)
    assert posterior.quantile(AT, 0.3).shape == AT.shape


def test_bands_agree_with_many_draws(process):
    """Those of the same functions: noise alone is between them."""
    posterior = network(process, draws=500)
    at = AT[::2]
    bands, p = posterior.bands(at), posterior.predict(at)
    assert np.all(np.abs(bands.mean - p.mean) < 5 * p.sd / np.sqrt(500))
    assert np.allclose(bands.sd, p.sd, rtol=0.2)


def test_functions_stay(process):
    posterior = network(process, draws=5, seed=2)
    functions = posterior.functions(4)
    before = functions(AT)
    assert before.shape == (4, len(AT)) and len(functions) == 4
    assert np.array_equal(before, posterior.sample(AT, 4))
    for k, f in enumerate(functions):
        assert np.array_equal(f(AT), before[k])
        assert np.array_equal(f(AT[3:5]), before[k, 3:5])
    posterior.observe(0.6, 0.2)
    assert np.array_equal(functions[1](AT), before[1])
    assert not np.array_equal(posterior.sample(AT, 4), before)
    assert np.array_equal(functions[-1](AT), before[3]) and len(functions[1:3]) == 2
    with pytest.raises(IndexError):
        functions[4]


def test_functions_one_after_the_other(process, monkeypatch):
    """All of them cost one call for each x; an answer that is changed changes no other."""
    functions = network(process, draws=5).functions(6)
    want, asked = functions(AT), []
    sample = mnp.Posterior.sample
    monkeypatch.setattr(mnp.Posterior, "sample", lambda *a: asked.append(1) or sample(*a))
    for _ in range(2):
        for k, f in enumerate(functions):
            got = f(AT)
            assert np.array_equal(got, want[k])
            got[:] = 0
    assert len(asked) == 1
    assert np.array_equal(functions[2](AT[:3]), want[2, :3])
    assert len(asked) == 2


def test_chain_ends_at_the_functions(process):
    """This model's own units are those of y."""
    posterior = network(process, draws=3)
    path = posterior.chain(AT)
    assert path.shape == (process.steps + 1, 3, len(AT))
    assert np.all(path[0] == 0)
    assert np.allclose(path[-1], posterior.sample(AT), rtol=1e-6, atol=1e-7)
    noisy = posterior.chain(AT, 2, noise=True)
    assert noisy.shape == (process.steps + 1, 2, len(AT)) and np.all(noisy[0] != 0)


def test_observing(process):
    """Points one by one, all at once, or from the beginning: the same functions."""
    x, y = np.linspace(0.1, 0.9, 6), np.linspace(-0.6, 0.6, 6)
    want = network(process, x, y, draws=6).mean(AT)
    one = network(process, x[:2], y[:2], draws=6)
    one.mean(AT)
    for k in range(2, 6):
        assert one.observe(x[k], y[k]) is one
    several = network(process, x[:2], y[:2], draws=6).observe(x[2:], y[2:])
    for posterior in (one, several):
        assert len(posterior) == 6
        assert np.array_equal(posterior.x, x) and np.array_equal(posterior.y, y)
        assert np.allclose(posterior.mean(AT), want, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore::mnp.Warning")
def test_exact_goes_on_with_its_particles(process):
    x, y = np.linspace(0.1, 0.9, 6), np.linspace(-0.6, 0.6, 6)
    posterior = process.condition(x[:5], y[:5], condition="exact", draws=64, gradients=40)
    first = posterior.report
    assert (first.condition, first.added, first.particles) == ("exact", 0, 64)
    posterior.observe(x[5], y[5])
    then = posterior.report
    assert then.added == 1 and np.isfinite(then.log_added)
    assert then.log_evidence == pytest.approx(first.log_evidence + then.log_added, rel=1e-9)


def test_the_seed_decides(process):
    a, b = (network(process, draws=5, seed=s).sample(AT) for s in (1, 2))
    assert np.array_equal(a, network(process, draws=5, seed=1).sample(AT))
    assert not np.array_equal(a, b)


def test_kinds_of_arrays(process):
    """float32, integers, strides, lists and a column give the numbers of float64."""
    posterior = network(process, draws=4)
    want = posterior.mean(AT)
    wide = np.repeat(AT, 2)
    for at in (AT.tolist(), AT[:, None], wide[::2], AT.copy(order="F"), tuple(AT)):
        assert np.array_equal(posterior.mean(at), want)
    halves = np.array([0, 0.5, 1])
    assert np.array_equal(posterior.mean(halves.astype(np.float32)), posterior.mean(halves))
    assert np.array_equal(posterior.mean(np.array([0, 1])), posterior.mean([0.0, 1.0]))
    assert np.array_equal(network(process, X.tolist(), Y.tolist(), draws=4).mean(AT), want)
    read_only = AT.copy()
    read_only.flags.writeable = False
    assert np.array_equal(posterior.mean(read_only), want)


def test_no_copy_of_good_arrays():
    from mnp._arrays import inputs, numbers

    for array in (AT, AT.reshape(-1, 1)):
        assert inputs(array, 1) is array
    assert numbers(AT.astype(np.float32), "x").dtype == np.float64


def test_points_are_copied(process):
    x, y = X.copy(), Y.copy()
    posterior = network(process, x, y, draws=4)
    y[:] = 5
    assert np.array_equal(posterior.y, Y)
    posterior.x[:] = 7
    assert np.array_equal(posterior.x, X)
    assert np.array_equal(posterior.sample(AT, 6), network(process, draws=6).sample(AT))


# ---- many contexts -------------------------------------------------------------------------------


def contexts(count=5):
    return [X[: k % 4] for k in range(count)], [Y[: k % 4] for k in range(count)]


def test_many_are_single_ones(process):
    xs, ys = contexts()
    many = process.condition(xs, ys, condition="network", draws=7, seed=3)
    assert isinstance(many, mnp.Posteriors) and len(many) == 5
    p, draws = many.predict(AT, [0.1, 0.9]), many.sample(AT, 3)
    assert p.mean.shape == (5, 7) and p.quantiles.shape == (5, 2, 7) and draws.shape == (5, 3, 7)
    for k in range(5):
        one = network(process, xs[k], ys[k], draws=7, seed=3 + k)
        want = one.predict(AT, [0.1, 0.9])
        assert np.array_equal(p.mean[k], want.mean) and np.array_equal(p.sd[k], want.sd)
        assert np.array_equal(p.quantiles[k], want.quantiles)
        assert np.array_equal(draws[k], one.sample(AT, 3))
        assert np.array_equal(many[k].mean(AT), want.mean)
    assert np.array_equal(many.mean(AT), p.mean) and np.array_equal(many.sd(AT), p.sd)
    assert np.array_equal(many.quantile(AT, 0.1), p.quantiles[:, 0])
    assert np.array_equal(many.quantile(AT, [0.1, 0.9]), p.quantiles)
    assert [r.condition for r in many.reports] == ["network"] * 5


def test_many_with_targets_of_their_own(process):
    xs, ys = contexts()
    at = [AT[: 1 + k] for k in range(5)]
    many = process.condition_many(xs, ys, condition="network", draws=7)
    mean, draws = many.mean(at), many.sample(at, 2)
    assert isinstance(mean, list)
    for k in range(5):
        one = network(process, xs[k], ys[k], draws=7, seed=k)
        assert np.array_equal(mean[k], one.mean(at[k]))
        assert np.array_equal(draws[k], one.sample(at[k], 2))
    stacked = np.tile(AT, (5, 1))
    assert np.array_equal(many.mean(stacked), many.mean(AT))


def test_many_as_arrays(process):
    xs, ys = np.tile(X, (4, 1)), np.tile(Y, (4, 1))
    many = process.condition(xs, ys, condition="network", draws=4)
    assert np.array_equal(many.mean(AT)[2], network(process, draws=4, seed=2).mean(AT))


@pytest.mark.filterwarnings("ignore:.*(fit|accepted|settled|trained with):mnp.Warning")
def test_many_large_contexts_by_default(process):
    """Where the default leaves a large context to the network, the others are refined."""
    large = np.linspace(0, 1, 400)
    xs, ys = [X, large, X], [Y, large, Y]
    many = process.condition_many(xs, ys, draws=60, gradients=5)
    many.sample(AT, 2)  # few draws: all are refined
    assert [r.condition for r in many.reports] == ["refine"] * 3
    with pytest.warns(mnp.Warning, match="many"):
        one = process.condition(large, large, draws=60, seed=1)
        want = one.mean(AT)
    many = process.condition_many(xs[1:], ys[1:], draws=60, seed=1, gradients=5)
    with pytest.warns(mnp.Warning, match="1 of 2 contexts have many points"):
        assert np.array_equal(many.mean(AT)[0], want)
    assert [r.condition for r in many.reports] == ["network", "refine"]
    one = process.condition(X, Y, draws=60, seed=2, gradients=5)
    assert repr(one.report) == repr(many.reports[1])  # NaN are NaN


def test_warnings_of_draws(process):
    """Points that contradict each other are missed."""
    posterior = process.condition([0.5, 0.5], [-1, 1], condition="refine", draws=10)
    with pytest.warns(mnp.Warning) as seen:
        posterior.mean(AT)
    assert posterior.report.warnings == tuple(str(w.message) for w in seen)
    assert seen[0].filename == __file__
    many = process.condition_many([[0.5, 0.5]] * 2, [[-1, 1]] * 2, condition="refine", draws=10)
    with pytest.warns(mnp.Warning, match="of 2 contexts: ") as seen:
        many.mean(AT)
    assert seen[0].filename == __file__


# ---- points far from the training data -----------------------------------------------------------


def test_far_points_warn(process):
    posterior = network(process, draws=2)
    for ask in (posterior.mean, posterior.predict, posterior.sample, posterior.bands):
        with pytest.warns(mnp.Warning, match="1 of 2 asked points .* from -2 to 2") as seen:
            ask([0.5, 1e4])
        assert seen[0].filename == __file__
    with pytest.warns(mnp.Warning, match="1 of 1 observed points .* from -2 to 2") as seen:
        network(process, [1e4], [0], draws=2)
    assert seen[0].filename == __file__
    with pytest.warns(mnp.Warning, match="1 of 1 observed points .* units right") as seen:
        posterior.observe(0.5, 1e4)
    assert seen[0].filename == __file__


def test_points_outside_a_table_warn():
    """The command has the same line."""
    rows = [f"{k},{t},{k + t}" for k in range(6) for t in range(4)]
    trained = mnp.train(mnp.Data.text("\n".join(["id,day,height", *rows])), model="lmm")
    line = "1 of 3 observed points lie outside the training curves: day goes from 0 to 50, theirs"
    with pytest.warns(mnp.Warning, match=line + " from 0 to 3"):
        trained.condition([0, 1, 50], [1, 2, 3])
    with pytest.warns(mnp.Warning, match="height goes from 1 to 90"):
        posterior = trained.condition([0, 1, 2], [1, 2, 90])
    with pytest.warns(mnp.Warning, match="1 of 1 asked points .* day"):
        posterior.mean([9])


def test_a_function_of_a_number(process):
    """As root finders ask."""
    posterior = process.condition(X, Y, condition="network", draws=3)
    functions = posterior.functions(3)
    want = posterior.sample([0.3])[:, 0]
    for f, value in zip(functions, want):
        assert type(f(0.3)) is float and f(0.3) == value == f(np.float64(0.3))
    assert np.array_equal(functions(0.3), want)


def test_unaligned_numbers(process):
    block = np.zeros(8 * len(X) + 1, np.uint8)
    odd = np.frombuffer(block.data, np.float64, len(X), offset=1)
    odd[:] = X
    assert not odd.flags.aligned
    assert numbers(odd, "x").flags.aligned and np.array_equal(numbers(odd, "x"), X)
    got = process.condition(odd, Y, condition="network", draws=3).mean(AT)
    assert np.array_equal(got, process.condition(X, Y, condition="network", draws=3).mean(AT))


def test_far_points_of_many(process):
    """Warnings as of one, with the points of all contexts together."""
    with pytest.warns(mnp.Warning, match="1 of 4 observed points lie outside"):
        many = process.condition([X, [1e5]], [Y, [0.2]], condition="network", draws=3)
    with pytest.warns(mnp.Warning, match="1 of 2 asked points lie outside"):
        many.mean([0.1, 1e5])
    with pytest.warns(mnp.Warning, match="2 of 3 asked points lie outside"):
        many.mean([[0.1, 1e5], [1e5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        process.condition([X, []], [Y, []], condition="network", draws=3).mean(AT)


# ---- more points than in training ----------------------------------------------------------------


def too_many(seen) -> list[str]:
    return [str(w.message) for w in seen if "trained with" in str(w.message)]


def points(n):
    """n points on the diagonal, which the family monotonic comes near to."""
    return np.linspace(0.05, 0.95, n), np.linspace(-0.5, 0.5, n)


@pytest.mark.parametrize("model", ["mnp", "np", "cnp", "tnp", "convcnp"])
def test_more_points_than_in_training_warn(model):
    """With the line of `mnp predict`, once, and only beyond the number in training."""
    data = mnp.Data.family("monotonic", functions=30, seed=1)
    process = mnp.train(data, model=model, preset="tiny", steps=2, context=(2, 6))
    how = {"condition": "network", "draws": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = process.condition(*points(6), **how)
    for make in (process.condition, lambda *a, **b: process.condition([a[0]], [a[1]], **b)):
        with pytest.warns(mnp.Warning) as seen:
            make(*points(7), **how)
        line = "7 observed points are more than the model was trained with (6)"
        assert too_many(seen) == [line] and seen[0].filename == __file__
    with pytest.warns(mnp.Warning) as seen:
        posterior.observe(0.5, 0.0)
    assert too_many(seen) == [line] and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.observe(0.6, 0.1)  # it is known by now
        posterior.mean(AT)


def test_a_warning_that_is_an_error_adds_no_point(process):
    posterior = network(process, *points(20), draws=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(mnp.Warning, match="21 observed points .* trained with"):
            posterior.observe(0.5, 0.0)
    assert len(posterior) == 20


def test_a_process_takes_any_number_of_points(oracle):
    """The truth is no network: more points than its family shows are no reason to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oracle.condition(np.linspace(-2, 2, 200), np.zeros(200), draws=2)


def test_log_prob_of_many(process):
    many = process.condition([X, X[:1]], [Y, Y[:1]], condition="network", draws=20, seed=4)
    at, y = AT[:2], [[0.1, 0.2], [0.3, 0.1]]
    want = [
        process.condition(a, b, condition="network", draws=20, seed=4 + k).log_prob(at, y[k])
        for k, (a, b) in enumerate(((X, Y), (X[:1], Y[:1])))
    ]
    assert np.array_equal(many.log_prob(at, y), want)
    assert np.array_equal(many.log_prob([at, at], np.array(y)), want)
    with pytest.raises(mnp.errors.InvalidError, match="of 2 curves"):
        many.log_prob(at, y[:1])


def test_predictors_in_turn():
    """cnp has a joint density in turn only: that of growing the context by hand."""
    data = mnp.Data.family("rbf:points=16", functions=40, seed=1)
    process = mnp.train(data, model="cnp", preset="tiny", steps=5)
    x, y = np.array([0.4, -0.3, 0.9]), np.array([0.1, 0.2, -0.4])
    posterior = process.condition([0.0], [0.5])
    by_hand, given_x, given_y = 0.0, [0.0], [0.5]
    for k in np.argsort(x):
        one = process.condition(given_x, given_y)
        by_hand += one.log_prob(x[[k]], y[[k]])
        given_x.append(x[k])
        given_y.append(y[k])
    assert posterior.score_in_turn(x, y, order="x")[0] == pytest.approx(by_hand, abs=1e-4)
    assert np.ptp(posterior.score_in_turn(x, y, orders=4)) > 0
    drawn = posterior.sample_in_turn(x, 3)
    assert drawn.shape == (3, 3)
    assert np.array_equal(drawn, posterior.sample_in_turn(x, 3))
    scores = process.evaluate(functions=3, order="random", orders=2)
    assert np.isfinite(scores.loglik_in_turn) and scores.order_sd > 0
    assert np.isnan(process.evaluate(functions=3).loglik_in_turn)
    with pytest.raises(mnp.errors.UnsupportedError, match="by itself"):
        posterior.functions(2)
    with pytest.raises(mnp.errors.InvalidError, match="random or x"):
        posterior.score_in_turn(x, y, order="y")
