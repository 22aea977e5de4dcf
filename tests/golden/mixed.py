#!/usr/bin/env python3
"""mixed.py: linear mixed models fitted by another library, statsmodels' MixedLM.

Curves are simulated here. Shared with the library are the definition of the model and the rule of the
knots; the basis is scipy's natural cubic spline, the fit statsmodels' own search over the covariance of
the random effects. Its own search stops early, so it begins again from its own answer until the
log-likelihood stays. Needs numpy, scipy, statsmodels.

    python3 tests/golden/mixed.py > tests/golden/mixed.json
"""
import json
import warnings

import numpy as np
from scipy.interpolate import CubicSpline
from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

warnings.simplefilter("ignore")


def knots_of(x, count):
    values = np.unique(x)
    return np.quantile(values, np.linspace(0, 1, min(count, len(values)))).astype(np.float32).astype(float)


def cardinal(x, knots):
    """The natural splines that are one at a knot and zero at the others; lines outside."""
    if len(knots) == 1:
        return np.ones((len(x), 1))
    if len(knots) == 2:
        b = (x - knots[0]) / (knots[1] - knots[0])
        return np.stack([1 - b, b], 1)
    spline = CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    inside = np.clip(x, knots[0], knots[-1])
    return spline(inside) + (x - inside)[:, None] * spline(inside, 1)


def basis(x, count):
    columns = [np.ones((len(x), 1))]
    for c in range(x.shape[1]):
        if count > 1:
            columns.append(cardinal(x[:, c], knots_of(x[:, c], count))[:, 1:])
    return np.concatenate(columns, 1)


def fit(y, X, Z, groups, reml):
    model = MixedLM(y, X, groups, exog_re=Z)
    best, start = None, None
    for method in ["bfgs", "lbfgs", "powell", "bfgs", "nm", "bfgs"]:
        for _ in range(2):
            found = model.fit(reml=reml, start_params=start, method=method, maxiter=5000, gtol=1e-10)
            if best is None or found.llf > best.llf:
                best = found
            start = MixedLMParams.from_components(
                fe_params=best.fe_params, cov_re=best.cov_re / best.scale
            )
    return best


def covariance(X, Z, groups, psi, scale):
    """Of the fixed effects given the variance components, with the whole covariance of y."""
    same = groups[:, None] == groups[None, :]
    V = scale * np.eye(len(X)) + same * (Z @ np.asarray(psi) @ Z.T)
    return np.linalg.inv(X.T @ np.linalg.solve(V, X))


def simulate(rng, curves, lengths, inputs, fixed, random, noise):
    start = np.concatenate([[0], np.cumsum(lengths)])
    x = rng.uniform(-2, 2, (start[-1], inputs)).round(3).astype(np.float32).astype(float)
    X, Z = basis(x, fixed), basis(x, random)
    beta = rng.normal(0, 2, X.shape[1])
    factor = np.tril(rng.normal(0, 0.5, (Z.shape[1], Z.shape[1]))) + np.eye(Z.shape[1])
    y = X @ beta + noise * rng.normal(size=len(x))
    for i in range(curves):
        rows = slice(start[i], start[i + 1])
        y[rows] += Z[rows] @ (factor @ rng.normal(size=Z.shape[1]))
    return start, x, y.round(4).astype(np.float32).astype(float), X, Z


def case(name, seed, curves, lengths, inputs, fixed, random, noise):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(lengths[0], lengths[1] + 1, curves)
    start, x, y, X, Z = simulate(rng, curves, sizes, inputs, fixed, random, noise)
    groups = np.repeat(np.arange(curves), sizes)
    out = {
        "name": name, "fixed": fixed, "random": random, "inputs": inputs,
        "start": start.tolist(), "x": x.ravel().tolist(), "y": y.tolist(),
    }
    for kind in ["reml", "ml"]:
        r = fit(y, X, Z, groups, kind == "reml")
        out[kind] = {
            "loglik": r.llf, "variance": r.scale, "beta": r.fe_params.tolist(),
            "psi": np.asarray(r.cov_re).ravel().tolist(),
            "beta_covariance": covariance(X, Z, groups, r.cov_re, r.scale).ravel().tolist(),
            "fitted": np.asarray(r.fittedvalues).tolist(),
        }
    return out


cases = [
    case("offsets", 1, 12, (6, 6), 1, 1, 1, 0.5),
    case("a line each", 2, 20, (3, 9), 1, 4, 2, 0.3),
    case("splines, short curves", 3, 30, (1, 7), 1, 5, 3, 0.2),
    case("two inputs", 4, 25, (5, 9), 2, 3, 2, 0.4),
]
print(json.dumps({"made": "tests/golden/mixed.py", "cases": cases}, separators=(",", ":")))
