"""process.py: the study's Gaussian process, in numpy and scipy, independent of mnp.

    python3 lab/curves/process.py SET [OUT]      (reads OUT/sets, writes OUT/baseline/SET.gp.csv)

    y_i ~ N(X_i beta, a^2 + s^2 k(|x - x'| / length) + sigma^2 I)

beta: natural splines of x, and the covariates; flat, so its doubt is in the answer. a, s, length and
sigma by REML; the shape of k and the number of columns by the likelihood and AIC."""
import os
import sys

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from tables import TASKS, covariates_of, curves_of, read_set

SHAPES = {
    "matern12": lambda d: np.exp(-d),
    "matern32": lambda d: (1 + np.sqrt(3) * d) * np.exp(-np.sqrt(3) * d),
    "matern52": lambda d: (1 + np.sqrt(5) * d + 5 * d * d / 3) * np.exp(-np.sqrt(5) * d),
    "rbf": lambda d: np.exp(-0.5 * d * d),
}


def natural(x, knots):
    """Truncated powers that are straight lines outside the knots, without the constant."""
    last, prev = knots[-1], knots[-2]

    def d(k):
        return (np.maximum(x - k, 0) ** 3 - np.maximum(x - last, 0) ** 3) / (last - k)

    span = last - knots[0]
    return np.stack([x / span] + [(d(k) - d(prev)) / span**2 for k in knots[:-2]], 1)


class Mean:
    """Columns of the population: an intercept, a spline of x, covariates."""

    def __init__(self, rows, size):
        x = np.array([r["x"] for r in rows])
        self.knots = np.unique(np.quantile(x, np.linspace(0, 1, size + 1)))
        self.levels = {}
        for c in covariates_of(rows):
            values = sorted({r[c] for r in rows})
            try:
                number = len(values) > 4 and [float(v) for v in values]
            except ValueError:
                number = None
            self.levels[c] = None if number else values[1:]

    def columns(self, rows):
        x = np.array([r["x"] for r in rows])
        parts = [np.ones((len(x), 1)), natural(x, self.knots)]
        for c, levels in self.levels.items():
            if levels is None:
                parts.append(np.array([[float(r[c])] for r in rows]))
            else:
                parts += [np.array([[float(r[c] == v)] for r in rows]) for v in levels]
        return np.concatenate(parts, 1)


class Process:
    def __init__(self, rows, size, shape):
        self.mean, self.shape = Mean(rows, size), SHAPES[shape]
        y = np.array([r["y"] for r in rows])
        X = self.mean.columns(rows)
        self.scale = np.abs(X).max(0)
        x = np.array([r["x"] for r in rows])
        self.span = x.max() - x.min()
        self.data = []
        for c in curves_of(rows):
            t = np.array([r["x"] for r in c])
            self.data.append((t, self.mean.columns(c) / self.scale, np.array([r["y"] for r in c])))
        spread = np.std(y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) + 1e-12
        best = None
        for length in (0.1, 0.5):
            start = np.log([0.5 * spread, 0.5 * spread, length * self.span, 0.3 * spread])
            box = [(start[0] - 8, start[0] + 3), (start[1] - 8, start[1] + 3)]
            box += [(np.log(self.span / 200), np.log(self.span * 10)), (start[3] - 8, start[3] + 3)]
            r = minimize(lambda p: self.loss(p)[0], start, method="L-BFGS-B", bounds=box,
                         options={"maxiter": 60})
            if best is None or r.fun < best.fun:
                best = r
        self.p, self.reml = best.x, best.fun
        _, self.beta, self.cov = self.loss(self.p)
        self.aic = 2 * self.loss(self.p, False)[0] + 2 * (X.shape[1] + 4)

    def kernel(self, p, t, u):
        d = np.abs(t[:, None] - u[None, :]) / np.exp(p[2])
        return np.exp(2 * p[0]) + np.exp(2 * p[1]) * self.shape(d)

    def loss(self, p, reml=True):
        """Minus the REML (or ML) log-likelihood; beta and its covariance."""
        logdet, H, g, q, n, known = 0, 0, 0, 0, 0, {}
        for t, X, y in self.data:
            key = t.tobytes()
            if key not in known:
                V = self.kernel(p, t, t) + (np.exp(2 * p[3]) + 1e-10 * np.exp(2 * p[1])) * np.eye(len(t))
                c = cho_factor(V, lower=True)
                known[key] = c, 2 * np.log(np.diag(c[0])).sum()
            c, ld = known[key]
            W = cho_solve(c, np.column_stack([X, y]))
            logdet += ld
            H, g, q = H + X.T @ W[:, :-1], g + X.T @ W[:, -1], q + y @ W[:, -1]
            n += len(y)
        cov = np.linalg.inv(H)
        beta = cov @ g
        loss = 0.5 * (logdet + q - g @ beta + n * np.log(2 * np.pi))
        if reml:
            loss += 0.5 * (np.linalg.slogdet(H)[1] - len(beta) * np.log(2 * np.pi))
        return loss, beta, cov

    def given(self, seen, asked):
        """Mean and covariance of the rows asked for, without noise."""
        s, a = (np.array([r["x"] for r in rows]) for rows in (seen, asked))
        Xs, Xa = (self.mean.columns(rows) / self.scale for rows in (seen, asked))
        y = np.array([r["y"] for r in seen])
        K = self.kernel(self.p, s, s) + Xs @ self.cov @ Xs.T + np.exp(2 * self.p[3]) * np.eye(len(s))
        C = self.kernel(self.p, s, a) + Xs @ self.cov @ Xa.T
        k = np.linalg.solve(K, C)
        return (Xa @ self.beta + k.T @ (y - Xs @ self.beta),
                self.kernel(self.p, a, a) + Xa @ self.cov @ Xa.T - k.T @ C)


def fit(rows):
    values = len({r["x"] for r in rows})
    best = None
    for size in (2, 3, 4, 5, 6, 8, 10):
        if size + 1 > values:
            break
        here = Process(rows, size, "matern32")
        if best is None or here.aic < best[0].aic:
            best = here, size
    tried = [Process(rows, best[1], shape) for shape in SHAPES]
    return min(tried, key=lambda p: p.reml), best[1]


def main():
    name, out = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "out/curves"
    rows = read_set(out, name)
    os.makedirs(os.path.join(out, "baseline"), exist_ok=True)
    points = []
    for fold in sorted({r["fold"] for r in rows if r["fold"] >= 0}):
        p, size = fit([r for r in rows if r["fold"] != fold])
        shape = next(k for k, v in SHAPES.items() if v is p.shape)
        print(f"{name} gp fold {fold}: df {size}, {shape}, offset, sd, length, noise {np.exp(p.p)}", flush=True)
        for curve in curves_of([r for r in rows if r["fold"] == fold]):
            for task in TASKS:
                seen, asked = ([r for r in curve if r[task] == g] for g in (1, 0))
                mean, cov = p.given(seen, asked)
                sd = np.sqrt(np.maximum(np.diag(cov), 0) + np.exp(2 * p.p[3]))
                points += [(r["row"], task, m, s) for r, m, s in zip(asked, mean, sd)]
    with open(os.path.join(out, "baseline", name + ".gp.csv"), "w") as f:
        f.write("row,task,mean,sd\n")
        f.writelines(f"{r},{t},{m:.17g},{s:.17g}\n" for r, t, m, s in points)


if __name__ == "__main__":
    main()
