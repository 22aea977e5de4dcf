"""score.py: the table of cells, methods of mnp against the independent baselines.

    python3 lab/curves/score.py OUT METHOD...      (reads OUT/sets, OUT/baseline, OUT/mnp/METHOD)

A cell is a set and a task. Scores are means over the points of a curve, then over all curves that
were held out in any fold. Text on stdout; the same as markdown in OUT/table.md."""
import json
import math
import os
import sys

from tables import TASKS, curves_of, read_csv, read_set, score_normal

BASELINES = {"lmer": "lme4", "gp": "GP", "offset": "nlme offset"}
CRPS, LOGP, COVER95 = 0, 1, 4  # places in a list of scores
FEW = 12  # curves: below this an answer with a warning is enough
PRINTED = {"F3": "first", "R3": "random"}


def mean(a):
    return sum(a) / len(a) if a else math.nan


def error(a):
    """The standard error of a mean."""
    m = mean(a)
    return math.sqrt(sum((v - m) ** 2 for v in a) / max(len(a) - 1, 1) / len(a))


def baseline(out, name, method, rows):
    """Scores of each held-out curve: {(task, curve): [crps, logp, cover50, 80, 95]}."""
    path = os.path.join(out, "baseline", f"{name}.{method}.csv")
    if not os.path.exists(path):
        return {}
    by_row, points = {r["row"]: r for r in rows}, {}
    for p in read_csv(path):
        r = by_row[int(p["row"])]
        points.setdefault((p["task"], r["curve"]), []).append(
            score_normal(r["y"], float(p["mean"]), float(p["sd"])))
    return {k: [mean(s) for s in zip(*v)] for k, v in points.items()}


def of_mnp(out, name, method, folds):
    """The same; {} unless all folds are there."""
    scores = {}
    for fold in folds:
        path = os.path.join(out, "mnp", method, f"{name}.{fold}")
        if not os.path.exists(path + ".json"):
            return {}
        for p in read_csv(path + ".csv"):
            scores[p["task"], p["curve"]] = [float(p[c]) for c in list(p)[3:]]
    return scores


def roughness(out, name, method, folds, task):
    """Over the mixed model's on the same curves, which counts as a tenth of its noise at least."""
    path = os.path.join(out, "baseline", f"{name}.lmer.rough.csv")
    if not os.path.exists(path):
        return math.nan
    smooth = {(r["task"], r["curve"]): r for r in read_csv(path)}
    own, other = [], []
    for fold in folds:
        for r in read_csv(os.path.join(out, "mnp", method, f"{name}.{fold}.rough.csv")):
            m = smooth[r["task"], r["curve"]]
            if r["task"] == task:
                own.append(float(r["rough"]))
                other.append(max(float(m["rough"]), float(m["noise"]) / 10))
    return mean(own) / mean(other)


def printed(out, name, method, folds, task, fresh):
    """How far the CRPS that mnp fit printed is from that of the held-out curves, in standard errors
    of the difference; NaN where a method prints none. The folds' fits share curves, so their
    printed errors are averaged, not pooled."""
    said, errors = [], []
    for fold in folds:
        with open(os.path.join(out, "mnp", method, f"{name}.{fold}.json")) as f:
            report = json.load(f)["printed"]
        row = [r for r in report.get("table", [])
               if r["model"] == report.get("best") and r["task"] == PRINTED[task]]
        if not row or row[0]["crps_se"] is None:
            return math.nan
        said.append(row[0]["crps"])
        errors.append(row[0]["crps_se"])
    return (mean(fresh) - mean(said)) / math.hypot(mean(errors), error(fresh))


def cells_of(out, names, methods):
    for name in names:
        rows = read_set(out, name)
        folds = sorted({r["fold"] for r in rows if r["fold"] >= 0})
        based = {b: baseline(out, name, b, rows) for b in BASELINES}
        ours = {m: of_mnp(out, name, m, folds) for m in methods}
        for task in TASKS:
            def pick(all_scores):
                return {m: [v for (t, _), v in s.items() if t == task]
                        for m, s in all_scores.items() if s}
            cell = {"set": name, "task": task, "name": f"{name} {task}", "folds": folds,
                    "curves": len(curves_of(rows)), "baselines": pick(based), "ours": pick(ours)}
            cell["best"] = min((mean([v[CRPS] for v in s]) for s in cell["baselines"].values()),
                               default=math.nan)
            yield cell


def measure(out, cell, method):
    scores = cell["ours"][method]
    fresh = [v[CRPS] for v in scores]
    return {"ratio": mean(fresh) / cell["best"], "cover": mean([v[COVER95] for v in scores]),
            "rough": roughness(out, cell["set"], method, cell["folds"], cell["task"]),
            "off": printed(out, cell["set"], method, cell["folds"], cell["task"], fresh),
            "tested": len(scores), "curves": cell["curves"]}


def verdict(method, found):
    """The bars of the study, one line each. found: {cell: measures}."""
    found = {k: m for k, m in found.items() if m["ratio"] == m["ratio"]}
    if not found:
        return [f"{method}: no cells yet"]
    worst = max((k for k in found if found[k]["curves"] >= FEW), key=lambda k: found[k]["ratio"],
                default=None)
    rough = max(found, key=lambda k: found[k]["rough"])
    over = [f"{k} {m['ratio']:.2f}" for k, m in found.items() if m["ratio"] > 1.05]
    low = [k for k, m in found.items() if m["tested"] >= 20 and m["cover"] < 0.85]
    off = {k: m["off"] for k, m in found.items() if m["off"] == m["off"]}
    lines = [f"{method}: {len(found)} cells",
             f"  CRPS over the best baseline at most 1.05: {100 * (1 - len(over) / len(found)):.0f} % of cells (must 90)"
             f"; mean {mean([m['ratio'] for m in found.values()]):.3f}; above: {', '.join(over) or 'none'}"]
    if worst:
        lines.append(f"  worst with {FEW} curves or more: {worst} {found[worst]['ratio']:.2f} (must 1.15)")
    lines.append(f"  95 % intervals hold {100 * mean([m['cover'] for m in found.values()]):.1f} % over cells (must 90 to 98)"
                 f"; below 85 % of 20 curves or more: {', '.join(low) or 'none'}")
    lines.append(f"  roughness over the mixed model's: at most {found[rough]['rough']:.2f}, {rough} (must 1.5)")
    if off:
        near = mean([float(abs(v) <= 2) for v in off.values()])
        far = [f"{k} {v:+.1f}" for k, v in off.items() if abs(v) > 2]
        lines.append(f"  printed CRPS within two standard errors of fresh curves': {100 * near:.0f} % of cells (must 90)"
                     f"; beyond: {', '.join(far) or 'none'}")
    return lines


def table_of(cells, found, methods):
    yield ["set (curves)", "task", "CRPS of the best", *BASELINES.values(), *("mnp " + m for m in methods)]
    for c in cells:
        line = [f"{c['set']} ({c['curves']})", c["task"], f"{c['best']:.3g}"]
        for b in BASELINES:
            s = c["baselines"].get(b)
            line.append(f"{mean([v[CRPS] for v in s]) / c['best']:.2f} ({100 * mean([v[COVER95] for v in s]):.0f})" if s else "–")
        for m in methods:
            f = found[m].get(c["name"])
            line.append(f"{f['ratio']:.2f} ({100 * f['cover']:.0f})" if f else "–")
        yield line


def main():
    out, methods = sys.argv[1], sys.argv[2:]
    names = sorted(f[:-4] for f in os.listdir(os.path.join(out, "sets")))
    cells = list(cells_of(out, names, methods))
    found = {m: {c["name"]: measure(out, c, m) for c in cells if m in c["ours"]} for m in methods}
    table = [t for t in table_of(cells, found, methods)]
    widths = [max(len(r[k]) for r in table) for k in range(len(table[0]))]
    for r in table:
        print("  ".join(v.ljust(w) for v, w in zip(r, widths)).rstrip())
    verdicts = [line for m in methods for line in verdict(m, found[m])]
    print("\n" + "\n".join(verdicts))
    with open(os.path.join(out, "table.md"), "w") as f:
        f.writelines("| " + " | ".join(r) + " |\n" + ("|---" * len(r) + "|\n" if k == 0 else "")
                     for k, r in enumerate(table))
        f.write("\n" + "\n".join(verdicts) + "\n")


if __name__ == "__main__":
    main()
