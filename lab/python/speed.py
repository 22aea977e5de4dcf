"""speed.py: what Python costs on top of C. Three measurements, each printed with its bar.

    PYTHONPATH=python MNP_LIBRARY=build/libmnp.so python3 lab/python/speed.py [calls|import|many]

- calls: one call from Python and the same call from a C program, with as little work inside as a
  model allows; the difference is the overhead.
- import: what `import mnp` adds to `import numpy`, by -X importtime, in new interpreters.
- many: 1000 contexts in one call, from Python and from C, on all cores.

Best of many runs, Python and C in turns: the machine may be busy. Needs cc and include/.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

import numpy as np

import mnp
from mnp._library import find

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTEXTS, POINTS, TARGETS, DRAWS = 1000, 10, 20, 4
ROUNDS = 7

# The same calls in C: prints the best microseconds of a summary, a conditioning
# and of CONTEXTS contexts, each of the questions that Python asks below.
PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include <mnp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONTEXTS = %(contexts)d, POINTS = %(points)d, TARGETS = %(targets)d, DRAWS = %(draws)d };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}
static void must(mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return;
    fprintf(stderr, "%%s\n", mnp_last_error(ctx));
    exit(1);
}
#define BEST(times, what)                       \
    double best = 1e300;                        \
    for (int k = 0; k < (times); k++) {         \
        double began = now();                   \
        what;                                   \
        double took = now() - began;            \
        if (took < best) best = took;           \
    }                                           \
    printf("%%.3f\n", best);

static double xs[CONTEXTS][POINTS], ys[CONTEXTS][POINTS], mean[CONTEXTS][TARGETS];
static mnp_set sets[CONTEXTS];

int main(int argc, char **argv) {
    double x[TARGETS], y[POINTS];
    mnp_ctx *ctx;
    mnp_model *model;
    if (argc < 3 || mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    must(ctx, mnp_model_load(ctx, argv[1], &model));
    for (int i = 0; i < TARGETS; i++) x[i] = -2 + 4.0 * i / (TARGETS - 1);
    for (int i = 0; i < POINTS; i++) y[i] = 0.1 * i;
    mnp_set one = {POINTS, x, y};
    mnp_summary out = {.size = sizeof out, .mean = mean[0]};
    if (!strcmp(argv[2], "summary")) {
        mnp_predictor *p;
        mnp_draw_opts how = {.size = sizeof how, .samples = 1};
        mnp_draw_report report = {.size = sizeof report};
        must(ctx, mnp_predictor_create(ctx, model, "cpu", &p));
        must(ctx, mnp_predictor_condition(p, &one));
        must(ctx, mnp_predictor_draw(p, &how, &report));
        BEST(20000, must(ctx, mnp_predictor_summary(p, x, 1, MNP_BASE_NORMAL, &out)))
        mnp_predictor_destroy(p);
    } else if (!strcmp(argv[2], "condition")) {
        mnp_predictor *p;
        BEST(5000, must(ctx, mnp_predictor_create(ctx, model, "cpu", &p));
             must(ctx, mnp_predictor_condition(p, &one)); mnp_predictor_destroy(p))
    } else {
        for (int k = 0; k < CONTEXTS; k++) {
            for (int i = 0; i < POINTS; i++) {
                xs[k][i] = -2 + 4.0 * i / (POINTS - 1);
                ys[k][i] = 0.3 * xs[k][i] * (1 + 0.001 * k);
            }
            sets[k] = (mnp_set){POINTS, xs[k], ys[k]};
        }
        mnp_set targets = {TARGETS, x, NULL};
        mnp_many_opts how = {.size = sizeof how, .samples = DRAWS, .base = MNP_BASE_NORMAL};
        BEST(1, must(ctx, mnp_predict_many(ctx, model, sets, CONTEXTS, &targets, 1, &how, &out)))
        fprintf(stderr, "%%.17g\n", mean[CONTEXTS - 1][TARGETS - 1]);
    }
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return 0;
}
"""


def best(function, times: int) -> float:
    """Microseconds."""
    least = float("inf")
    for _ in range(times):
        began = perf_counter()
        function()
        least = min(least, perf_counter() - began)
    return 1e6 * least


def program(folder: str) -> str:
    """The C program, linked with the library that Python has loaded."""
    source, out = os.path.join(folder, "speed.c"), os.path.join(folder, "speed")
    with open(source, "w") as f:
        sizes = {"contexts": CONTEXTS, "points": POINTS, "targets": TARGETS, "draws": DRAWS}
        f.write(PROGRAM % sizes)
    library = find()
    subprocess.run(
        ["cc", "-O2", "-I", os.path.join(TOP, "include"), source, library]
        + [f"-Wl,-rpath,{os.path.dirname(library)}", "-o", out],
        check=True,
    )
    return out


def in_c(path: str, model: str, what: str) -> tuple[float, str]:
    file = os.path.join(TOP, "models", model + ".safetensors")
    done = subprocess.run([path, file, what], check=True, capture_output=True, text=True)
    return float(done.stdout), done.stderr.strip()


def line(what: str, text: str, bar: str) -> None:
    print(f"{what:44s} {text:40s} bar {bar}", flush=True)


def calls(path: str) -> None:
    """One target, one function: a summary takes the model a few microseconds."""
    model = mnp.load("mnp-monotonic")
    x = np.linspace(-2, 2, TARGETS)[:POINTS].copy()
    y, at = 0.1 * np.arange(POINTS), np.array([-2.0])
    posterior = model.condition(x, y, condition="network", draws=1)
    posterior.mean(at)

    def condition() -> None:
        model.condition(x, y, condition="network", draws=1)

    for what, python, times in (
        ("summary", lambda: posterior.mean(at), 20000),
        ("condition", condition, 5000),
    ):
        ours = theirs = float("inf")
        for _ in range(ROUNDS):
            theirs = min(theirs, in_c(path, "mnp-monotonic", what)[0])
            ours = min(ours, best(python, times))
        name = {"summary": "posterior.mean(x)", "condition": "process.condition(x, y)"}[what]
        text = f"{ours:.1f} us, C {theirs:.1f} us: {ours - theirs:.1f} us more"
        line(name, text, "20 us")


def imports(folder: str) -> None:
    """Cumulative microseconds by -X importtime, in an interpreter that had NumPy before; compiled
    by the first of them, as an installed package is."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = folder
    least = float("inf")
    for _ in range(3 * ROUNDS):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", "import numpy, mnp"],
            capture_output=True,
            text=True,
            check=True,
            env=env,
        )
        for row in done.stderr.splitlines():
            if row.endswith("| mnp"):
                least = min(least, float(row.split("|")[1]))
    line("import mnp after numpy", f"{least / 1000:.1f} ms", "20 ms")


def many(path: str) -> None:
    """The list of arrays is what people have; one array for all contexts does as well."""
    model = mnp.load("mnp-monotonic")
    x = np.linspace(-2, 2, POINTS)
    xs = [x.copy() for _ in range(CONTEXTS)]
    ys = [0.3 * x * (1 + 0.001 * k) for k in range(CONTEXTS)]
    at = np.linspace(-2, 2, TARGETS)
    ours = theirs = float("inf")
    for _ in range(ROUNDS):
        took, last = in_c(path, "mnp-monotonic", "many")
        theirs = min(theirs, took)
        began = perf_counter()
        mean = model.condition(xs, ys, condition="network", draws=DRAWS).mean(at)
        ours = min(ours, 1e6 * (perf_counter() - began))
    same = "the same bits" if float(last) == mean[-1, -1] else f"OTHER NUMBERS ({last})"
    more = 100 * (ours / theirs - 1)
    text = f"{ours / 1000:.0f} ms, C {theirs / 1000:.0f} ms: {more:+.1f} %, {same}"
    line(f"{CONTEXTS} contexts in one call, all cores", text, "10 %")


def main() -> None:
    parts = sys.argv[1:] or ["calls", "import", "many"]
    with tempfile.TemporaryDirectory() as folder:
        path = program(folder) if {"calls", "many"} & set(parts) else ""
        if "calls" in parts:
            calls(path)
        if "import" in parts:
            imports(folder)
        if "many" in parts:
            many(path)


if __name__ == "__main__":
    main()
