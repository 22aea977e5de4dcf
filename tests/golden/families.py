#!/usr/bin/env python3
"""families.py: quantiles of the families monotonic and convex from an independent implementation.

Only the definition is shared with the library: other language, other random numbers, inputs sorted
instead of built from spacings, Hermite form instead of powers, Simpson's rule (exact for cubics)
for the integral. About half a minute.

    python3 tests/golden/families.py > tests/golden/families.json
"""
import json
import random
from bisect import bisect_right
from itertools import accumulate

FUNCTIONS = 20000
POINTS = 128
LO, HI = -2.0, 2.0
INDEX = [16, 48, 64, 80, 112]
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def poisson(rng, mean):
    count, time = 0, rng.expovariate(1.0)
    while time < mean:
        count, time = count + 1, time + rng.expovariate(1.0)
    return count


def rising_nodes(rng, alpha):
    inner = poisson(rng, 5.0)
    raw = [rng.gammavariate(alpha, 1.0) for _ in range(inner + 1)]
    gaps = [g / sum(raw) + 0.01 for g in raw]
    x = [LO] + [LO + (HI - LO) * s / sum(gaps) for s in accumulate(gaps)]
    x[-1] = HI
    y = list(accumulate(rng.gammavariate(2.0, 1.0) for _ in x))
    return x, y


def end(h0, h1, m0, m1):
    """Three-point end slope; the data rise, so only a negative slope needs care."""
    return max(((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1), 0.0)


def slopes(x, y):
    h = [b - a for a, b in zip(x, x[1:])]
    m = [(b - a) / w for a, b, w in zip(y, y[1:], h)]
    if len(m) == 1:
        return [m[0], m[0]]
    d = [end(h[0], h[1], m[0], m[1])]
    for k in range(1, len(m)):
        w1, w2 = 2 * h[k] + h[k - 1], h[k] + 2 * h[k - 1]
        d.append((w1 + w2) / (w1 / m[k - 1] + w2 / m[k]))
    return d + [end(h[-1], h[-2], m[-1], m[-2])]


class Curve:
    def __init__(self, x, y):
        self.x, self.y, self.d = x, y, slopes(x, y)
        self.area = [0.0]
        for k in range(len(x) - 1):
            self.area.append(self.area[-1] + self.part(k, x[k + 1]))

    def at(self, k, q):
        h = self.x[k + 1] - self.x[k]
        t = (q - self.x[k]) / h
        u = 1 - t
        return (self.y[k] * u * u * (1 + 2 * t) + self.y[k + 1] * t * t * (3 - 2 * t)
                + h * self.d[k] * t * u * u - h * self.d[k + 1] * t * t * u)

    def part(self, k, q):
        a = self.x[k]
        return (q - a) / 6 * (self.at(k, a) + 4 * self.at(k, (a + q) / 2) + self.at(k, q))

    def segment(self, q):
        return min(max(bisect_right(self.x, q) - 1, 0), len(self.x) - 2)

    def value(self, q):
        return self.at(self.segment(q), q)

    def integral(self, q):
        k = self.segment(q)
        return self.area[k] + self.part(k, q)


def min_max(v):
    lo, hi = min(v), max(v)
    return [2 * (a - lo) / (hi - lo) - 1 for a in v]


def monotonic(rng, alpha):
    f = Curve(*rising_nodes(rng, alpha))
    x = sorted(rng.uniform(LO, HI) for _ in range(POINTS))
    return x, [v + rng.gauss(0, 0.01) for v in min_max([f.value(q) for q in x])]


def convex(rng):
    f = Curve(*rising_nodes(rng, 1.0))
    x = sorted(rng.uniform(LO, HI) for _ in range(POINTS))
    turn = f.value(rng.uniform(LO, HI))
    return x, min_max([f.integral(q) - turn * q for q in x])


def quantiles(v):
    v = sorted(v)
    return [v[int(p * len(v))] for p in LEVELS]


def describe(name, seed, draw):
    rng = random.Random(seed)
    sets = [draw(rng) for _ in range(FUNCTIONS)]
    return {"name": name,
            "y": [quantiles(y[i] for _, y in sets) for i in INDEX],
            "x_of_least_y": quantiles(x[y.index(min(y))] for x, y in sets),
            "mean_y": quantiles(sum(y) / POINTS for _, y in sets)}


print(json.dumps({"functions": FUNCTIONS, "levels": LEVELS, "index": INDEX, "families": [
    describe("monotonic", 1, lambda r: monotonic(r, 1.0)),
    describe("monotonic:alpha=0.5", 2, lambda r: monotonic(r, 0.5)),
    describe("convex", 3, convex)]}, indent=1))
