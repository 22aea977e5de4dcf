"""cell.py: one fold of one set by one method of mnp.

    python3 lab/curves/cell.py METHOD SET FOLD [OUT]      (writes OUT/mnp/METHOD/SET.FOLD.*)

METHOD is fit (mnp fit as it comes), classical (mnp fit without its network) or a model of mnp train:
the keys of MODELS. The curves of the fold are in no file that the method sees. Written at the end:
    .csv        curve,task,points and mean scores over the points asked for
    .rough.csv  curve,task,rough: of draws without noise, ten places in each gap between times
    .json       what the fit printed, and how long it took
A cell that is there is not run again. MNP names the command (build/mnp), SAMPLES the draws (400),
LIMIT the seconds of one command (1800), THREADS its threads (1). Standard library only."""
import csv
import json
import os
import subprocess
import sys
import time

from tables import LEVELS, TASKS, covariates_of, curves_of, read_set, score_draws

MNP = os.environ.get("MNP", "build/mnp")
SAMPLES = int(os.environ.get("SAMPLES", "400"))
LIMIT = float(os.environ.get("LIMIT", "1800"))
THREADS = os.environ.get("THREADS", "1")
ROUGH_CURVES, ROUGH_DRAWS, PLACES = 10, 20, 10
SCORES = ["curve", "task", "points", "crps", "logp", *(f"cover{p}" for p in LEVELS)]
MODELS = {
    "lmm": ["--model", "lmm"],
    "smooth": ["--model", "lmm", "--set", "lmm_smooth=on"],
    "average": ["--model", "lmm", "--set", "lmm_average=on", "--set", "lmm_draws=128"],
    "offset": ["--model", "lmm", "--set", "lmm_random=1"],
    "gp": ["--model", "gp", "--set", "gp_mean=spline", "--set", "gp_periodic=off"],
}


def command(*words):
    done = subprocess.run([MNP, *words, "--threads", THREADS], capture_output=True, text=True,
                          timeout=LIMIT)
    if done.returncode:
        raise SystemExit(f"{' '.join([MNP, *words])}: {done.stderr.strip()}")
    return done.stdout


def write_rows(path, columns, rows):
    with open(path, "w", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(columns)
        table.writerows([r[c] for c in columns] for r in rows)


def train(method, data, inputs, model):
    words = ["--group", "curve", "--x", ",".join(inputs), "--y", "y", "--out", model, "--json"]
    if method in ("fit", "classical"):
        return command("fit", data, *words, *(["--effort", "0"] if method == "classical" else []))
    return command("train", "--data", data, "--holdout", "0", "--test", "0", "--quiet", *words,
                   *MODELS[method])


def predict(model, inputs, task, rows, base):
    """Draws with noise at the points asked for, all curves at once: [(row, draws)]."""
    seen, asked = ([r for r in rows if r[task] == g] for g in (1, 0))
    write_rows(base + ".context.csv", ["curve", *inputs, "y"], seen)
    write_rows(base + ".at.csv", ["curve", *inputs], asked)
    text = command("predict", model, "--context", base + ".context.csv", "--at", base + ".at.csv",
                   "--draws", "--samples", str(SAMPLES), "--quiet")
    table = list(csv.reader(text.splitlines()))
    first = table[0].index("draw1")
    return [(r, [float(v) for v in line[first:]]) for r, line in zip(asked, table[1:], strict=True)]


def roughness(model, inputs, seen, curve, base):
    """Mean |second difference| of noise-free draws at ten places in each gap between times."""
    times = sorted({r["x"] for r in curve})
    places = [{**curve[0], "x": a + (b - a) * (k + 0.5) / PLACES}
              for a, b in zip(times, times[1:]) for k in range(PLACES)]
    write_rows(base + ".context.csv", [*inputs, "y"], seen)
    write_rows(base + ".at.csv", inputs, places)
    text = command("sample", model, "--context", base + ".context.csv", "--at", base + ".at.csv",
                   "-n", str(ROUGH_DRAWS), "--base", "zero", "--quiet")
    values = [float(line.rsplit(",", 1)[1]) for line in text.splitlines()[1:]]
    n = len(places)
    second = [abs(values[d * n + i - 1] - 2 * values[d * n + i] + values[d * n + i + 1])
              for d in range(ROUGH_DRAWS) for g in range(len(times) - 1)
              for i in range(g * PLACES + 1, (g + 1) * PLACES - 1)]
    return sum(second) / len(second)


def score(model, inputs, rows, base):
    """Lines of the two tables of scores."""
    points, rough = [], []
    for task in TASKS:
        by_curve = {}
        for r, draws in predict(model, inputs, task, rows, base):
            by_curve.setdefault(r["curve"], []).append(score_draws(r["y"], draws))
        points += [[name, task, len(s), *(sum(v) / len(s) for v in zip(*s))]
                   for name, s in by_curve.items()]
        for curve in curves_of(rows)[:ROUGH_CURVES]:
            seen = [r for r in curve if r[task] == 1]
            rough.append([curve[0]["curve"], task, roughness(model, inputs, seen, curve, base)])
    return points, rough


def write_scores(path, head, lines):
    with open(path, "w", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(head)
        table.writerows([f"{v:.7g}" if isinstance(v, float) else v for v in r] for r in lines)


def main():
    method, name, fold = sys.argv[1], sys.argv[2], int(sys.argv[3])
    out = sys.argv[4] if len(sys.argv) > 4 else "out/curves"
    folder = os.path.join(out, "mnp", method)
    base = os.path.join(folder, f"{name}.{fold}")
    if os.path.exists(base + ".json"):
        return
    os.makedirs(folder, exist_ok=True)

    def clean():
        for f in os.listdir(folder):
            if f.startswith(f"{name}.{fold}.") and not f.endswith((f"{fold}.csv", ".rough.csv")):
                os.remove(os.path.join(folder, f))

    clean()
    rows = read_set(out, name)
    inputs, model = ["x", *covariates_of(rows)], base + ".safetensors"
    write_rows(base + ".train.csv", ["curve", *inputs, "y"], [r for r in rows if r["fold"] != fold])
    start = time.time()
    printed = train(method, base + ".train.csv", inputs, model)
    seconds = time.time() - start
    points, rough = score(model, inputs, [r for r in rows if r["fold"] == fold], base)
    write_scores(base + ".csv", SCORES, points)
    write_scores(base + ".rough.csv", ["curve", "task", "rough"], rough)
    clean()
    with open(base + ".json", "w") as f:
        json.dump({"seconds": seconds, "printed": json.loads(printed.splitlines()[-1])}, f)


if __name__ == "__main__":
    main()
