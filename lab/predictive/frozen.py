#!/usr/bin/env python3
"""The test sets of the predictive tasks, and how to know them again.

    lab/predictive/frozen.py [--mnp build/mnp] DIR     writes DIR/TASK.npz and prints the table
    lab/predictive/frozen.py --check TABLE DIR         the same, and compares with the table

The same build on the same kind of processor gives the same bytes: the column sha256. On another
processor last digits may differ; the columns that are compared do not notice that: how many points
are context and targets, and sums over all of them, to 1e-3. Only the standard library is used.
"""

import argparse
import array
import ast
import csv
import hashlib
import math
import pathlib
import subprocess
import sys
import zipfile

TASKS = ("tnp-rbf", "tnp-matern", "tnp-periodic", "np-eq", "np-matern", "np-weakly-periodic", "sawtooth")
FUNCTIONS = 1000
SUMS = ("sum_y", "sum_y2", "sum_xy")
CODES = {"<f4": "f", "<i8": "q", "|u1": "B"}


def read(path):
    """The arrays of an .npz file, flat."""
    out = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            data = file.read(name)
            length = int.from_bytes(data[8:10], "little")
            header = ast.literal_eval(data[10 : 10 + length].decode())
            values = array.array(CODES[header["descr"]])
            values.frombytes(data[10 + length :])
            out[name.removesuffix(".npy")] = values
    return out


def describe(task, path):
    arrays = read(path)
    used = [i for i, m in enumerate(arrays["mask"]) if m]
    x, y = arrays["x"], arrays["y"]
    row = {"task": task, "functions": len(arrays["context"]), "seed": 0}
    row |= {"context": sum(arrays["context"]), "targets": sum(arrays["targets"])}
    row["sum_y"] = math.fsum(y[i] for i in used)
    row["sum_y2"] = math.fsum(y[i] * y[i] for i in used)
    row["sum_xy"] = math.fsum(x[i] * y[i] for i in used)
    row["sha256"] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    return row


def same(row, want):
    return all(str(row[k]) == want[k] for k in ("functions", "seed", "context", "targets")) and all(
        abs(row[k] - float(want[k])) <= 1e-3 for k in SUMS
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnp", default="build/mnp")
    parser.add_argument("--check", metavar="TABLE")
    parser.add_argument("folder")
    args = parser.parse_args()
    wanted = {}
    if args.check:
        with open(args.check, newline="", encoding="utf-8") as file:
            wanted = {row["task"]: row for row in csv.DictReader(file)}
    writer, bad = None, 0
    for task in TASKS:
        path = pathlib.Path(args.folder) / f"{task}.npz"
        command = [args.mnp, "gen", task, "--split", "test", "--seed", "0", "--quiet"]
        subprocess.run([*command, "--functions", str(FUNCTIONS), "--out", str(path)], check=True)
        row = describe(task, path)
        if args.check and not (task in wanted and same(row, wanted[task])):
            print(f"{task}: not the frozen set: {row}", file=sys.stderr)
            bad += 1
        row |= {k: f"{row[k]:.6f}" for k in SUMS}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, row, lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
