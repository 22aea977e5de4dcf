"""tables.py: the sets' files, and the scores of predictions. Standard library only."""
import csv
import math
import os
from statistics import NormalDist

NORMAL = NormalDist()
OWN = ("row", "curve", "x", "y", "fold", "F3", "R3")
TASKS = ("F3", "R3")
LEVELS = (50, 80, 95)


def read_csv(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def read_set(out, name):
    """The measurements of a set, as prepare.py wrote them."""
    rows = read_csv(os.path.join(out, "sets", name + ".csv"))
    for r in rows:
        for c in ("row", "fold", "F3", "R3"):
            r[c] = int(r[c])
        r["x"], r["y"] = float(r["x"]), float(r["y"])
    return rows


def covariates_of(rows):
    return [c for c in rows[0] if c not in OWN]


def curves_of(rows):
    found = {}
    for r in rows:
        found.setdefault(r["curve"], []).append(r)
    return list(found.values())


def score_normal(y, mean, sd):
    """CRPS, log-density and which intervals hold y, of a normal prediction."""
    z = (y - mean) / sd
    crps = sd * (z * (2 * NORMAL.cdf(z) - 1) + 2 * NORMAL.pdf(z) - 1 / math.sqrt(math.pi))
    logp = -0.5 * z * z - math.log(sd) - 0.5 * math.log(2 * math.pi)
    return [crps, logp, *(float(abs(z) <= NORMAL.inv_cdf(0.5 + p / 200)) for p in LEVELS)]


def quantile(draws, p):
    """Of sorted draws: the one that lies at p (S + 1), between its neighbours."""
    at = min(max(p * (len(draws) + 1) - 1, 0), len(draws) - 1)
    k = min(int(at), len(draws) - 2)
    return draws[k] + (at - k) * (draws[k + 1] - draws[k])


def score_draws(y, draws):
    """The same of draws with noise. CRPS without the bias of a finite number of draws; the density
    by normal kernels (Silverman's width), which is a little low."""
    draws = sorted(draws)
    S = len(draws)
    spread = sum((2 * k + 1 - S) * d for k, d in enumerate(draws)) / (S * (S - 1))
    crps = sum(abs(d - y) for d in draws) / S - spread
    mean = sum(draws) / S
    sd = math.sqrt(sum((d - mean) ** 2 for d in draws) / (S - 1))
    middle = (quantile(draws, 0.75) - quantile(draws, 0.25)) / 1.34
    width = max(0.9 * min(sd, middle) * S**-0.2, 1e-300)
    far = [-0.5 * ((y - d) / width) ** 2 for d in draws]
    top = max(far)
    logp = top + math.log(sum(math.exp(f - top) for f in far) / S)
    logp -= math.log(width) + 0.5 * math.log(2 * math.pi)
    holds = [float(quantile(draws, 0.5 - p / 200) <= y <= quantile(draws, 0.5 + p / 200))
             for p in LEVELS]
    return [crps, logp, *holds]
