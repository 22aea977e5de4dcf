"""compare_gpytorch.py: forecasts of new curves by GPyTorch and by mnp, in time and in quality.

    PYTHONPATH=python MNP_LIBRARY=build/libmnp.so python3 lab/python/compare_gpytorch.py

The task: 100 curves of a family with 20 points each to learn from; then 20 new curves, 10 points of
each given, mean and sd asked for at 100 others. Everything is computed in double precision by one
thread. The methods:

    gpytorch curve   an exact GP for each new curve, its hyperparameters fitted to the 10 points
    gpytorch joint   one set of hyperparameters for the 100 curves (a batch); new ones conditioned
    mnp gp           the same model as gpytorch joint, by mnp.train(model="gp")
    mnp network      the shipped network of the family, quick conditioning, 200 draws
    mnp exact        the same network, exact conditioning, 64 draws

Both GPs have a constant mean, an RBF kernel and noise, found by Adam at a rate of 0.1: 100 steps
for a curve, 200 for the joint GP (all curves in each), 3000 for mnp (20 curves in each). Each
method runs in an interpreter of its own. *First* is the time from its start to the first forecast:
imports, learning or loading, conditioning. *Next* is the time of one further curve, *of 20* that
of a curve where all 20 are asked for at once. Times are the processor time of the one thread, so
that a busy machine changes them little; best of all rounds, methods in turns. Log-density (nats)
is that of the normal law with the mean and sd, CRPS that of the forecast; means over the 2000
targets.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import time

import numpy as np

LEARN, POINTS, NEW, GIVEN, ASKED = 100, 20, 20, 10, 100
CURVE_STEPS, JOINT_STEPS, GP_STEPS, RATE = 100, 200, 3000, 0.1
METHODS = ["gpytorch curve", "gpytorch joint", "mnp gp", "mnp network", "mnp exact"]


def tables(family: str):
    """x, y (LEARN, POINTS) to learn from; x, y (NEW, GIVEN + ASKED) of new curves, given first."""
    import mnp

    rng = np.random.default_rng(0)

    def some(data, points):
        picked = [rng.permutation(len(y))[:points] for _, y in data]
        return [np.array([v[i][k] for v, k in zip(data, picked)]) for i in (0, 1)]

    learn = some(mnp.Data.family(family, functions=LEARN, seed=1), POINTS)
    new = some(mnp.Data.family(family, functions=NEW, seed=2, split="test"), GIVEN + ASKED)
    return *learn, *new


def normal_scores(mean, sd, truth):
    """Of a normal forecast, in closed form."""
    from math import erf

    z = (truth - mean) / sd
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    below = 0.5 * (1 + np.vectorize(erf)(z / np.sqrt(2)))
    crps = sd * (z * (2 * below - 1) + 2 * density - 1 / np.sqrt(np.pi))
    return np.mean(-0.5 * z**2 - np.log(np.sqrt(2 * np.pi) * sd)), np.mean(crps)


# ---- GPyTorch ------------------------------------------------------------------------------------


class Torch:
    """One GP, or a batch of them with hyperparameters of each (`own`) or shared."""

    def __init__(self) -> None:
        import gpytorch
        import torch

        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        self.torch, self.gpytorch = torch, gpytorch

    def model(self, x, y, own: tuple[int, ...] = ()):
        gpytorch, torch = self.gpytorch, self.torch
        batch = torch.Size(own)

        class GP(gpytorch.models.ExactGP):
            def __init__(self, x, y, likelihood) -> None:
                super().__init__(x, y, likelihood)
                self.mean = gpytorch.means.ConstantMean(batch_shape=batch)
                self.kernel = gpytorch.kernels.ScaleKernel(
                    gpytorch.kernels.RBFKernel(batch_shape=batch), batch_shape=batch
                )

            def forward(self, x):
                law = gpytorch.distributions.MultivariateNormal
                return law(self.mean(x), self.kernel(x))

        low = gpytorch.constraints.GreaterThan(1e-6)  # the noise may be below the usual 1e-4
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=low, batch_shape=batch
        )
        x, y = torch.as_tensor(x)[..., None], torch.as_tensor(y)
        return GP(x, y, likelihood)

    def fit(self, gp, steps: int) -> None:
        gp.train()
        gp.likelihood.train()
        x, y = gp.train_inputs[0], gp.train_targets
        adam = self.torch.optim.Adam(gp.parameters(), lr=RATE)
        score = self.gpytorch.mlls.ExactMarginalLogLikelihood(gp.likelihood, gp)
        for _ in range(steps):
            adam.zero_grad()
            loss = -score(gp(x), y).sum()
            loss.backward()
            adam.step()

    def predict(self, gp, x):
        gp.eval()
        gp.likelihood.eval()
        with self.torch.no_grad(), self.gpytorch.settings.fast_pred_var():
            law = gp.likelihood(gp(self.torch.as_tensor(x)[..., None]))
            return law.mean.numpy(), law.variance.sqrt().numpy()

    def scores(self, answer, at, truth):
        return normal_scores(*answer, truth)


class TorchCurve(Torch):
    def learn(self, x, y) -> None:
        """A GP of one curve learns from no other."""

    def forecast(self, x, y, at):
        gp = self.model(x, y, own=x.shape[:-1])
        self.fit(gp, CURVE_STEPS)
        return self.predict(gp, at)

    many = forecast


class TorchJoint(Torch):
    def learn(self, x, y) -> None:
        self.gp = self.model(x, y)
        self.fit(self.gp, JOINT_STEPS)

    def forecast(self, x, y, at):
        x, y = self.torch.as_tensor(x)[..., None], self.torch.as_tensor(y)
        self.gp.set_train_data(x, y, strict=False)
        return self.predict(self.gp, at)

    many = forecast


# ---- mnp -----------------------------------------------------------------------------------------


class Mnp:
    def __init__(self, family: str, condition: str | None) -> None:
        import mnp

        mnp.set_threads(1)
        self.mnp, self.family = mnp, family
        self.how = {"condition": condition, "draws": 64 if condition == "exact" else 200}

    def learn(self, x, y) -> None:
        self.process = self.mnp.load(f"models/mnp-{self.family}.safetensors")

    def forecast(self, x, y, at):
        self.posterior = self.process.condition(x, y, **self.how)
        out = self.posterior.predict(at, q=[])
        return out.mean, out.sd

    def many(self, x, y, at):
        out = self.process.condition(list(x), list(y), **self.how).predict(list(at), q=[])
        return np.array(out.mean), np.array(out.sd)

    def scores(self, answer, at, truth):
        """CRPS of the draws, without the bias of their number."""
        draws = np.sort(self.posterior.sample(at, noise=True), axis=0)  # (S, n)
        s = len(draws)
        rank = (2 * np.arange(1, s + 1) - s - 1)[:, None]
        spread = 2 * np.sum(rank * draws, axis=0) / (s * (s - 1))
        crps = np.mean(np.abs(draws - truth), axis=0) - spread / 2
        return normal_scores(*answer, truth)[0], crps.mean()


class MnpGp(Mnp):
    def learn(self, x, y) -> None:
        kernel = {"gp_matern": False, "gp_periodic": False}  # RBF alone, as the other has it
        self.process = self.mnp.train((x, y), "gp", steps=GP_STEPS, lr=RATE, seed=1, **kernel)

    def forecast(self, x, y, at):
        out = self.process.condition(x, y).bands(at, q=[])  # exact: no draws
        return out.mean, out.sd

    def many(self, x, y, at):
        both = [self.forecast(*one) for one in zip(x, y, at)]
        return np.array([m for m, _ in both]), np.array([s for _, s in both])

    def scores(self, answer, at, truth):
        return normal_scores(*answer, truth)


def made(method: str, family: str):
    if method.startswith("gpytorch"):
        return TorchCurve() if method == "gpytorch curve" else TorchJoint()
    if method == "mnp gp":
        return MnpGp(family, None)
    return Mnp(family, method.split()[1])


# ---- one method in an interpreter of its own -----------------------------------------------------


def child(method: str, family: str, score: bool) -> None:
    import warnings

    warnings.simplefilter("ignore")
    with np.load(io.BytesIO(sys.stdin.buffer.read())) as file:
        lx, ly, x, y = (file[k] for k in ("lx", "ly", "x", "y"))
    way = made(method, family)
    way.learn(lx, ly)
    given = x[:, :GIVEN].copy(), y[:, :GIVEN].copy(), x[:, GIVEN:].copy()
    way.forecast(*(a[0] for a in given))
    first = time.process_time()  # since the interpreter began
    took, rows = [], []
    for cx, cy, at, truth in zip(*given, y[:, GIVEN:]):
        began = time.process_time()
        answer = way.forecast(cx, cy, at)
        took.append(time.process_time() - began)
        rows.append(way.scores(answer, at, truth) if score else (np.nan, np.nan))
    together = []
    while len(together) < 5 and sum(together) * NEW < 1 and min(took) < 0.5:
        began = time.process_time()
        way.many(*given)
        together.append((time.process_time() - began) / NEW)
    out = {"first": first, "next": min(took), "many": min(together, default=float("nan"))}
    out["logp"], out["crps"] = (float(np.mean(column)) for column in zip(*rows))
    print(json.dumps(out), flush=True)


def run(method: str, family: str, table: bytes, score: bool) -> dict:
    words = [sys.executable, __file__, "--method", method, "--family", family]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # import as usual
    done = subprocess.run(words + ["--score"] * score, input=table, stdout=-1, check=True, env=env)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Forecasts of new curves, GPyTorch and mnp.")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--family", action="append", help="rbf and monotonic by default")
    parser.add_argument("--method", help=argparse.SUPPRESS)
    parser.add_argument("--score", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.method:
        return child(args.method, args.family[0], args.score)
    for family in args.family or ["rbf", "monotonic"]:
        file = io.BytesIO()
        np.savez(file, **dict(zip(("lx", "ly", "x", "y"), tables(family))))
        best: dict[str, dict] = {}
        for k in range(args.rounds):  # in turns: the machine may be busy
            for method in METHODS[: None if k == 0 else -1]:  # exact is slow: once
                got = run(method, family, file.getvalue(), k == 0)
                old = best.setdefault(method, got)
                for name in ("first", "next", "many"):
                    old[name] = min(old[name], got[name])
        print(f"\n{family}: {NEW} curves, {GIVEN} points given, {ASKED} asked for")
        print("| method | first, s | next, ms | of 20, ms | log-density | CRPS |")
        print("|---|---:|---:|---:|---:|---:|")
        for method, b in best.items():
            many = "" if np.isnan(b["many"]) else f"{1e3 * b['many']:.2f}"
            times = f"{b['first']:.2f} | {1e3 * b['next']:.2f} | {many}"
            print(f"| {method} | {times} | {b['logp']:.2f} | {b['crps']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
