"""GPRegressor against scikit-learn's own Gaussian process and the library's; CurveRegressor against
the process beneath it, in pipelines, searches, threads and other processes."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mnp

pytest.importorskip("sklearn", minversion="1.6")

from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    WhiteKernel,
)
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnp.sklearn import CurveRegressor, GPRegressor

# ---- one table -----------------------------------------------------------------------------------


@parametrize_with_checks([GPRegressor()])
def test_is_an_estimator(estimator, check):
    check(estimator)


def table(n: int = 40, d: int = 1, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n + d)
    X = random.uniform(-20, 30, (n, d))
    return X, 7 + 3 * np.sin(X[:, 0] / 5) + noise * random.normal(size=n)


def peer(model: GPRegressor) -> object:
    """The kernel with the same numbers, as scikit-learn writes it; noise apart."""
    k = model.kernel_
    make = {
        "rbf": lambda: RBF(k.length[0]),
        "matern": lambda: Matern(k.length[1], nu=2.5),
        "periodic": lambda: ExpSineSquared(k.length[2], k.period),
    }
    out = None
    for at, part in enumerate(("rbf", "matern", "periodic")):
        if part in k.parts:
            one = ConstantKernel(k.variance[at]) * make[part]()
            out = one if out is None else out + one
    return out


def inside(model: GPRegressor, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised as the docstring says, and the fitted mean taken off."""
    x = (X - model.X_train_.mean(axis=0)) / model.X_train_.std(axis=0)
    return x, (y - model.y_train_.mean()) / model.y_train_.std() - model.kernel_.mean


@pytest.mark.parametrize(
    ("kernel", "d"), [("rbf", 1), ("matern", 3), ("periodic", 1), ("rbf+matern", 2)]
)
def test_predictions_are_those_of_scikit_learn(kernel, d):
    X, y = table(40, d)
    at = np.linspace(-30, 40, 7 * d).reshape(7, d)
    model = GPRegressor(kernel).fit(X, y)
    noise, spread = model.kernel_.noise, y.std()
    white = GaussianProcessRegressor(peer(model) + WhiteKernel(noise), alpha=0, optimizer=None)
    clean = GaussianProcessRegressor(peer(model), alpha=noise, optimizer=None)
    x, u = inside(model, X, y)
    white.fit(x, u), clean.fit(x, u)
    places = inside(model, at, np.zeros(7))[0]
    for theirs, noisy in ((white, True), (clean, False)):
        mean, std = theirs.predict(places, return_std=True)
        _, cov = theirs.predict(places, return_cov=True)
        mean = (mean + model.kernel_.mean) * spread + y.mean()
        np.testing.assert_allclose(model.predict(at), mean, rtol=1e-6)
        ours = model.predict(at, return_std=True, noise=noisy)
        np.testing.assert_allclose(ours[0], mean, rtol=1e-6)
        np.testing.assert_allclose(ours[1], std * spread, rtol=1e-6)
        ours = model.predict(at, return_cov=True, noise=noisy)
        np.testing.assert_allclose(ours[1], cov * spread**2, rtol=1e-6, atol=1e-9 * spread**2)
    lml = white.log_marginal_likelihood(white.kernel_.theta) - len(y) * np.log(spread)
    assert model.log_marginal_likelihood() == pytest.approx(lml, rel=1e-9)


@pytest.mark.parametrize("data", ["waves", "diabetes"])
def test_likelihood_is_at_its_maximum(data):
    """Neither scikit-learn's search nor the library's training finds better numbers."""
    X, y = table(60) if data == "waves" else (a[:80] for a in load_diabetes(return_X_y=True))
    model = GPRegressor("rbf").fit(X, y)
    ours = model.log_marginal_likelihood()
    x, u = inside(model, X, y)
    for start in (
        ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1),
        peer(model) + WhiteKernel(0.1),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = GaussianProcessRegressor(start, alpha=0).fit(x, u)
        best = theirs.log_marginal_likelihood_value_ - len(y) * np.log(y.std())
        assert ours >= best - 1e-3
    assert ours == pytest.approx(best, abs=1e-3)  # the second start is our own
    usual = {"batch": 1, "steps": 300, "lr": 0.1, "max_points": 0}
    only = {"gp_matern": False, "gp_periodic": False, "gp_length": 3, "gp_noise": 0.3}
    trained = mnp.train(mnp.Data.arrays([X], [y]), "gp", **usual, **only)
    reached = trained.condition().log_prob(X, y)
    assert ours - 1 < reached < ours + 1e-2


def test_process_is_that_of_the_library(tmp_path):
    X, y = table(50, 2)
    at = table(9, 2)[0]
    model = GPRegressor("rbf+matern").fit(X, y)
    model.process_.save(tmp_path / "gp.safetensors")
    process = mnp.load(tmp_path / "gp.safetensors")
    assert process.kind == "gp"
    assert process.condition().log_prob(X, y) == pytest.approx(
        model.log_marginal_likelihood(), abs=1e-2
    )
    bands = process.condition(X, y).bands(at)
    mean, std = model.predict(at, return_std=True)
    np.testing.assert_allclose(bands.mean, mean, atol=1e-3 * y.std())
    np.testing.assert_allclose(bands.sd, std, rtol=1e-3)
    again = GPRegressor(process=process).fit(X, y)
    np.testing.assert_allclose(again.predict(at), mean, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"gp_softplus": True, "gp_unsquared": True}])
def test_a_trained_process_is_taken_as_it_is(options):
    """Learnt from many curves, then conditioned on one table."""
    data = mnp.Data.family("periodic", functions=20, seed=1)
    process = mnp.train(data, "gp", steps=20, batch=5, gp_restarts=False, **options)
    x, y = data[0]
    model = GPRegressor(process=process).fit(x[:, None], y)
    bands = process.condition(x, y).bands([0.11, 0.52])
    mean, std = model.predict([[0.11], [0.52]], return_std=True)
    np.testing.assert_allclose(mean, bands.mean, atol=1e-4)
    np.testing.assert_allclose(std, bands.sd, rtol=1e-3)
    assert clone(model).fit(x[:, None], y).predict([[0.11]]) == pytest.approx(mean[:1])


def test_draws_have_the_mean_and_covariance():
    X, y = table(30)
    at = np.array([[-5.0], [-4.0], [28.0], [45.0]])
    model = GPRegressor().fit(X, y)
    for noise in (True, False):
        mean, cov = model.predict(at, return_cov=True, noise=noise)
        draws = model.sample_y(at, 20_000, random_state=1, noise=noise)
        assert draws.shape == (4, 20_000)
        sd = np.sqrt(np.diag(cov))
        both = np.outer(sd, sd)
        np.testing.assert_allclose((draws.mean(axis=1) - mean) / sd, 0, atol=5 / np.sqrt(20_000))
        np.testing.assert_allclose(np.cov(draws) / both, cov / both, atol=0.05)
    assert np.array_equal(model.sample_y(at, 3), model.sample_y(at, 3))
    assert not np.array_equal(model.sample_y(at, 3), model.sample_y(at, 3, random_state=1))


def test_units_do_not_matter():
    X, y = table(40, 2)
    at = table(5, 2)[0]
    mean, std = GPRegressor().fit(X, y).predict(at, return_std=True)
    other = GPRegressor().fit(X * [1e6, 1e-3] + [1e7, 3], y * 1e4 - 1e5)
    mean2, std2 = other.predict(at * [1e6, 1e-3] + [1e7, 3], return_std=True)
    np.testing.assert_allclose(mean2, mean * 1e4 - 1e5, rtol=1e-3)
    np.testing.assert_allclose(std2, std * 1e4, rtol=1e-2)


def test_search_on_some_points_condition_on_all():
    X, y = table(300)
    some = GPRegressor(max_points=50).fit(X, y)
    other = GPRegressor(max_points=50, random_state=1).fit(X, y)
    every = GPRegressor(max_points=None).fit(X, y)
    assert some.kernel_.noise != other.kernel_.noise
    assert every.log_marginal_likelihood() > max(
        some.log_marginal_likelihood(), other.log_marginal_likelihood()
    )
    assert len(some.X_train_) == 300
    np.testing.assert_allclose(some.predict(X), every.predict(X), atol=0.2)


def test_noise_is_no_signal():
    """Numbers without any pattern: new ones are expected at their mean, not at their neighbours."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 3)), random.normal(size=300)
    mean, std = GPRegressor().fit(X, y).predict(X, return_std=True)
    assert np.abs(mean).max() < 0.5
    np.testing.assert_allclose(std, 1, atol=0.15)


def test_many_rows_are_asked_in_blocks(monkeypatch):
    X, y = table(30, 2)
    at = table(50, 2)[0]
    model = GPRegressor().fit(X, y)
    whole = model.predict(at, return_std=True)
    monkeypatch.setattr("mnp.sklearn.BLOCK", 200)
    np.testing.assert_allclose(model.predict(at, return_std=True), whole, rtol=1e-9)
    np.testing.assert_allclose(model.predict(at), whole[0], rtol=1e-9)


def test_gp_copies():
    X, y = table(20)
    model = GPRegressor().fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, y)):
        assert np.array_equal(again.predict(X), model.predict(X))
    assert model.process_.kind == pickle.loads(pickle.dumps(model)).process_.kind


def test_gp_refuses():
    X, y = table(20)
    with pytest.raises(NotFittedError):
        GPRegressor().predict(X)
    with pytest.raises(NotFittedError):
        _ = GPRegressor().process_.kind
    with pytest.raises(ValueError, match="65 features, and a process takes 64 at most"):
        GPRegressor().fit(np.ones((3, 65)), np.arange(3))
    with pytest.raises(mnp.Error, match="y holds numbers beyond 1e100"):
        GPRegressor().fit(X, y * 1e150)
    spline = mnp.train(mnp.Data.arrays([X], [y]), "gp", steps=1, gp_mean="spline")
    with pytest.raises(mnp.Error, match="train it with gp_mean=constant"):
        GPRegressor(process=spline).fit(X, y)
    with pytest.raises(mnp.Error, match="kernel is 'cubic': give one of rbf, matern, periodic"):
        GPRegressor("cubic").fit(X, y)
    with pytest.raises(mnp.Error, match="n_starts is 0"):
        GPRegressor(n_starts=0).fit(X, y)
    with pytest.raises(mnp.Error, match="ask for one of them"):
        GPRegressor().fit(X, y).predict(X, return_std=True, return_cov=True)
    with pytest.raises(mnp.Error, match="of the kind mnp"):
        GPRegressor(process=mnp.load("mnp-monotonic")).fit(X, y)
    with pytest.raises(mnp.Error, match="takes 1 inputs, and X has 2"):
        GPRegressor(process=mnp.load("mnp-monotonic")).fit(*table(20, 2))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        GPRegressor(max_iter=1).fit(X, y)


# ---- many curves ---------------------------------------------------------------------------------


FIXED = {"lmm_fixed": 2, "lmm_random": 2}  # nothing to choose: quick


def plants(curves: int = 24, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Straight lines that differ: X (group, day), y."""
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(curves), n)
    day = np.tile(np.linspace(0, 10, n), curves)
    start, rate = random.normal(5, 1, curves), random.normal(2, 0.5, curves)
    y = start[group] + rate[group] * day + 0.2 * random.normal(size=len(day))
    return np.column_stack([group, day]), y


@pytest.mark.parametrize("model", ["lmm", "gp"])
def test_rows_are_forecast_from_their_curve(model):
    X, y = plants()
    fitted = CurveRegressor(model, group=0, steps=None if model == "lmm" else 100).fit(X, y)
    assert (fitted.model_, fitted.process_.kind, len(fitted.curves_)) == (model, model, 24)
    asked = np.array([[3, 12.0], [99, 2.0], [5, 1.5], [3, 0.5], [98, 2.0]])
    mean, std, quantiles = fitted.predict(asked, return_std=True, quantiles=[0.1, 0.9])
    assert quantiles.shape == (2, 5)
    for i, (group, day) in enumerate(asked):
        own = X[:, 0] == group
        points = (X[own, 1], y[own]) if own.any() else ()
        bands = fitted.process_.condition(*points).bands([day], [0.1, 0.9])
        np.testing.assert_allclose([mean[i], std[i]], [bands.mean[0], bands.sd[0]], rtol=1e-6)
        np.testing.assert_allclose(quantiles[:, i], bands.quantiles[:, 0], rtol=1e-6)
    np.testing.assert_allclose(fitted.predict(asked[::-1])[::-1], mean, rtol=1e-6)
    assert std[1] > 3 * std[0]
    assert abs(mean[0] - 5 - 2 * 12) < 4 * 0.5 * 12


def test_network_answers_from_draws():
    X, y = plants(12)
    fitted = CurveRegressor("mnp", steps=5, draws=20, condition="network", random_state=3)
    fitted.fit(X, y)
    mean, std = fitted.predict(X[:16], return_std=True)
    own = fitted.process_.condition(X[8:16, 1], y[8:16], condition="network", draws=20, seed=3)
    np.testing.assert_array_equal(mean[8:], own.mean(X[8:16, 1]))
    np.testing.assert_array_equal(std[8:], own.sd(X[8:16, 1]))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X[:16]), mean)
    np.testing.assert_array_equal(clone(fitted).fit(X, y).predict(X[:16]), mean)


def test_auto_is_the_path_of_fit():
    X, y = plants(12)
    fitted = CurveRegressor("auto", effort=0, folds=2).fit(X, y)
    curves = [X[:, 0] == g for g in range(12)]
    data = mnp.Data.arrays([X[c, 1] for c in curves], [y[c] for c in curves])
    best = mnp.fit(data, effort=0, folds=2)
    assert (fitted.model_, fitted.why_) == (best.best_name, best.why)
    own = best.best.condition(X[curves[2], 1], y[curves[2]]).bands([11.0])
    assert fitted.predict([[2, 11.0]])[0] == own.mean[0]


def test_context_of_new_and_known_curves():
    X, y = plants()
    fitted = CurveRegressor("lmm").fit(X, y)
    asked = [[77, 9.0], [3, 12.0]]
    context = ([[77, 0.0], [77, 4.0], [3, 11.0]], [9.0, 21.0, 40.0])
    given = fitted.predict(asked, context=context)
    new = fitted.process_.condition([0.0, 4.0], [9.0, 21.0]).bands([9.0]).mean
    own = X[:, 0] == 3
    known = fitted.process_.condition(np.append(X[own, 1], 11.0), np.append(y[own], 40.0))
    np.testing.assert_array_equal(given, [new[0], known.bands([12.0]).mean[0]])
    kept = CurveRegressor("lmm").fit(X, y, context=context)
    np.testing.assert_array_equal(kept.predict(asked), given)
    assert kept.process_.to_bytes() == fitted.process_.to_bytes()  # it did not learn from them
    assert len(fitted.curves_[3][1]) == 8  # a context of predict is not kept


def test_score_shows_the_first_rows_of_new_curves():
    X, y = plants()
    new = X[:, 0] >= 18
    fitted = CurveRegressor("lmm").fit(X[~new], y[~new])
    later = new & (X[:, 1] > X[1, 1])
    mean = fitted.predict(X[later], context=(X[new & ~later], y[new & ~later]))
    shown = fitted.set_params(score_context=2).score(X[new], y[new])
    assert shown == pytest.approx(r2_score(y[later], mean), abs=1e-6)
    blind = fitted.set_params(score_context=0).score(X[new], y[new])
    assert blind == pytest.approx(r2_score(y[new], fitted.predict(X[new])), abs=1e-6)
    assert shown > blind


def model_grid(model) -> dict:
    name = "options" if isinstance(model, CurveRegressor) else "curveregressor__options"
    return {name: [{"lmm_random": 1}, {"lmm_random": 2}]}


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_grid_search_in_parallel(backend):
    """Lines differ in their slope: two knots win over an offset, on curves that were held out."""
    X, y = plants()
    scaled = ColumnTransformer([("day", MinMaxScaler(), [1])], remainder="passthrough")
    model = make_pipeline(scaled, CurveRegressor("lmm", group=-1, score_context=3))
    searched = GridSearchCV(model, model_grid(model), cv=GroupKFold(3))
    with parallel_config(backend, n_jobs=2):
        searched.fit(X, y, groups=X[:, 0])
    one, two = searched.cv_results_["mean_test_score"]
    assert searched.best_params_ == {"curveregressor__options": {"lmm_random": 2}}
    alone = GridSearchCV(model, model_grid(model), cv=GroupKFold(3)).fit(X, y, groups=X[:, 0])
    np.testing.assert_array_equal(alone.cv_results_["mean_test_score"], [one, two])
    assert searched.predict(X[:1]).shape == (1,)


def test_threads_share_a_model():
    X, y = plants(8)
    model = CurveRegressor("mnp", steps=2, draws=20, condition="network").fit(X, y)
    alone = model.predict(X)
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(model.predict, [X] * 8):
            np.testing.assert_array_equal(answer, alone)


def test_search_with_a_context_of_fit():
    """GridSearchCV hands fit a context as it is, for all folds."""
    X, y = plants()
    first = X[:, 1] < 3
    model = CurveRegressor("lmm")
    folds = {"cv": GroupKFold(3), "scoring": "r2"}
    blind = GridSearchCV(model, model_grid(model), **folds)
    blind.fit(X[~first], y[~first], groups=X[~first, 0])
    shown = GridSearchCV(model, model_grid(model), **folds)
    shown.fit(X[~first], y[~first], groups=X[~first, 0], context=(X[first], y[first]))
    assert shown.best_score_ > blind.best_score_


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_by_their_names(library):
    frames = pytest.importorskip(library)
    X, y = plants(16, 5)
    names = [f"plant {g:.0f}" for g in X[:, 0]]
    frame = frames.DataFrame({"day": X[:, 1], "plant": names, "site": 1.0 * (X[:, 0] > 7)})
    fitted = CurveRegressor("lmm", "plant", options=FIXED).fit(frame, y)
    assert list(fitted.feature_names_in_) == ["day", "plant", "site"]
    arrays = np.column_stack([X[:, 1], X[:, 0], X[:, 0] > 7])
    same = CurveRegressor("lmm", 1, options=FIXED).fit(arrays, y)
    np.testing.assert_array_equal(fitted.predict(frame), same.predict(arrays))
    turned = frame[["site", "plant", "day"]]
    np.testing.assert_array_equal(fitted.predict(turned), same.predict(arrays))
    both = CurveRegressor("lmm", ["plant", "site"], options=FIXED).fit(frame, y)
    assert both.process_.x_dim == 1 and ("plant 8", 1.0) in both.curves_
    with pytest.raises(mnp.Error, match="X has no column 'plant', which it had in fit"):
        fitted.predict(frame[["site", "day"]])


def test_trained_models_are_used_as_they_are(tmp_path):
    X, y = plants(4)
    X, y = X * [1, 0.1], y / 20
    process = CurveRegressor("lmm").fit(X, y).process_
    process.save(tmp_path / "m.safetensors")
    asked = [[2, 0.77], [50, 0.3]]
    answers = [
        CurveRegressor(model).fit(X[:16], y[:16]).predict(asked)
        for model in (process, str(tmp_path / "m.safetensors"), tmp_path / "m.safetensors")
    ]
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])
    assert CurveRegressor("mnp-monotonic").fit(X, y).model_ == "mnp"


def test_score_of_curves_is_r2():
    X, y = plants(6)
    model = CurveRegressor("lmm", options=FIXED).fit(X[:-8], y[:-8])
    weight = np.linspace(0, 1, len(y))
    said = model.predict(X)
    assert model.score(X, y) == r2_score(y, said)
    assert model.score(X, y, weight) == r2_score(y, said, sample_weight=weight) != r2_score(y, said)


def test_without_scikit_learn(python):
    program = """if True:
        import sys
        sys.modules["sklearn"] = None
        import mnp
        try:
            import mnp.sklearn
        except ImportError as error:
            print(isinstance(error, mnp.errors.UnsupportedError), "mnp[sklearn]" in str(error))
    """
    assert python(program) == "True True\n"


def test_curves_copy():
    X, y = plants(6)
    model = CurveRegressor("lmm", options=FIXED, random_state=7).fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), clone(model).fit(X, y)):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    other = clone(model).set_params(random_state=np.random.RandomState(1)).fit(X, y)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=0.1)
    assert not np.array_equal(other.predict(X), model.predict(X))  # its seed came from there


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"group": "plant"}, "group is 'plant', and X has 2 columns"),
        ({"group": 5}, "group is 5, and X has 2 columns"),
        ({"group": [0, 1]}, "X has 2 columns, and all are the group"),
        ({"model": "no such model"}, "no model of that name"),
        ({"options": {"lmm_rendom": 1}}, "there is no option 'lmm_rendom'"),
        ({"condition": "guess"}, "condition is 'guess'"),
    ],
)
def test_curves_refuse_parameters(change, text):
    X, y = plants(4)
    with pytest.raises(mnp.Error, match=text):
        CurveRegressor(**{"model": "lmm", **change}).fit(X, y).predict(X)


def test_curves_refuse_data():
    X, y = plants(4)
    model = CurveRegressor("lmm").fit(X, y)
    with pytest.raises(NotFittedError):
        CurveRegressor().predict(X)
    with pytest.raises(mnp.Error, match="y has NaN"):
        CurveRegressor("lmm").fit(X, np.where(X[:, 1] > 9, np.nan, y))
    with pytest.raises(mnp.Error, match="the group column has missing values"):
        model.predict([[np.nan, 1.0]])
    with pytest.raises(mnp.Error, match="1 has NaN or infinite values"):
        model.predict([[1, np.inf]])
    with pytest.raises(mnp.Error, match="3 features, but CurveRegressor is expecting 2"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(mnp.Error, match="Reshape your data"):
        model.predict([1.0, 2.0])
    with pytest.raises(mnp.Error, match="no rows"):
        model.predict(np.ones((0, 2)))
    with pytest.raises(mnp.Error, match="not numbers"):
        model.predict(np.array([["a", "b"]], object))
    with pytest.raises(mnp.Error, match="context is no pair"):
        model.predict(X, context=X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CurveRegressor("lmm").fit(X, y[1:])
    for asked in ((X[:-1], y), (X, y[:-1]), (X, y, y[:-1])):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.score(*asked)
    with pytest.raises(TypeError, match="X is sparse"):
        model.predict(csr_array(X))
    with pytest.raises(mnp.Error, match="the model takes 1 inputs, and X has 2"):
        CurveRegressor("mnp-monotonic").fit(np.column_stack([X, X[:, 1]]), y)


def test_doubts_are_warnings_and_nothing_is_printed(python):
    X, y = plants(3)
    with pytest.warns(mnp.Warning, match="3 curves say little about how curves differ"):
        CurveRegressor("lmm").fit(X, y)
    program = """if True:
        import warnings
        import numpy as np
        from mnp.sklearn import CurveRegressor, GPRegressor
        warnings.simplefilter("ignore")
        X = np.column_stack([np.repeat(range(3), 5), np.tile(range(5), 3)])
        CurveRegressor("lmm").fit(X, X[:, 1] ** 1.5).predict(X)
        GPRegressor(max_iter=1).fit(X, X[:, 1]).sample_y(X)
    """
    assert python(program) == ""
