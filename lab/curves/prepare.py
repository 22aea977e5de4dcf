"""prepare.py: which curves and points are held out, the same for every method.

    python3 lab/curves/prepare.py [OUT [SEED]]   (OUT: out/curves; reads OUT/data, writes OUT/sets)

Another SEED holds out others: folds that no choice in the models was made with.

A row of OUT/sets/SET.csv is a measurement: curve, x, y, covariates, then
    fold   the curve is held out in this fold and trained on in the others
    F3     1: one of the curve's first three points, which are given in the task F3
    R3     1: one of three random points, which are given in the task R3
and row, its number. Ties and missing values: equal times stay in the table's order, rows without
y are dropped. Curves with fewer than four points are trained on, never asked about (fold -1)."""
import csv
import os
import random
import sys

FOLDS = 3
GIVEN = 3


def read_sets(folder):
    with open(os.path.join(folder, "sets.csv"), newline="") as f:
        return [
            {**r, "group": r["group"].split(), "covariates": r["covariates"].split()}
            for r in csv.DictReader(f)
        ]


def measured(text):
    return text not in ("", "NA", "NaN", "nan")


def read_curves(path, s):
    """Curves by name, in the order of the table, points by x."""
    curves = {}
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if measured(row[s["y"]]):
                curves.setdefault("_".join(row[g] for g in s["group"]), []).append(row)
    for points in curves.values():
        points.sort(key=lambda r: float(r[s["x"]]))
    return curves


def split(curves, seed):
    """(fold, random points) of each curve. Sets of one table have the same."""
    dice = random.Random(seed)
    names = [n for n in curves if len(curves[n]) > GIVEN]
    dice.shuffle(names)
    fold = {n: k % FOLDS for k, n in enumerate(names)}
    given = {n: set(dice.sample(range(len(curves[n])), GIVEN)) for n in names}
    return fold, given


def prepare(out, s, seed):
    curves = read_curves(os.path.join(out, "data", s["table"] + ".csv"), s)
    fold, given = split(curves, " ".join(["mnp", s["table"], *seed]))
    with open(os.path.join(out, "sets", s["set"] + ".csv"), "w", newline="") as f:
        table = csv.writer(f, lineterminator="\n")
        table.writerow(["row", "curve", "x", "y", *s["covariates"], "fold", "F3", "R3"])
        row = 0
        for name, points in curves.items():
            for k, p in enumerate(points):
                asked = name in fold
                table.writerow(
                    [row, name, p[s["x"]], p[s["y"]], *(p[c] for c in s["covariates"])]
                    + [fold.get(name, -1), int(asked and k < GIVEN)]
                    + [int(asked and k in given[name])]
                )
                row += 1
    return len(curves), row


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    out = sys.argv[1] if len(sys.argv) > 1 else "out/curves"
    os.makedirs(os.path.join(out, "sets"), exist_ok=True)
    for s in read_sets(here):
        curves, points = prepare(out, s, sys.argv[2:3])
        print(f"{s['set']:18} {curves:4} curves, {points:5} points")


if __name__ == "__main__":
    main()
