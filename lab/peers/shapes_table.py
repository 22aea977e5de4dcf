#!/usr/bin/env python3
"""The table of lab/peers/compare_shapes.sh: mnp's rows beside the peer's fastest way at each shape.

  shapes_table.py mnp.json torch.jsonl        JSON of mnp bench shapes, lines of torch_shapes.py

Compared are steps of equal work, the largest context in every function. A bf16 step of mnp stands
beside the peer's fastest bf16 or tf32 way, whichever is faster: it may use fewer digits, and need not.
"""
import json
import math
import os
import sys

from torch_shapes import key_of

AS_GOOD = {"fp32": ("fp32",), "tf32": ("tf32",), "bf16": ("bf16", "tf32")}


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def fastest(ways, row):
    """The line of the fastest way that may stand beside the row, or None, and what failed."""
    ways = [w for w in ways if w["key"] == key_of(row) and w["way"].split(":")[0] in AS_GOOD[row["math"]]]
    timed = [w for w in ways if "ms" in w]
    failed = [f"{w['way']}: {w['error']}" for w in ways if "ms" not in w]
    return min(timed, key=lambda w: w["ms"]) if timed else None, failed


def number(v, width, digits):
    return f"{v:{width}.{digits}f}" if v else f"{'-':>{width}}"


def line_of(row, way, failed):
    """-> text, ratio or None"""
    head = f"{row['shape']:22} {row['math']:4} "
    if row["error"] is not None:
        return head + row["error"], None
    floor = max(row["floor_ms"], row["floor_bytes_ms"])
    ms, full = row.get("ms"), row.get("ms_full")
    head += number(ms, 9, 4) + number(full, 10, 4) + number(row.get("mb"), 9, 1) + number(row["gflop_full"], 9, 1)
    head += number(full and floor and full / floor, 7, 1)
    if way is None or not full:
        return f"{head} {'-':>10} {'-':>6}  {failed[0] if failed else 'not run'}", None
    how = way["way"].replace(":", ", ") + ("" if way["compiled"] else f", uncompiled: {way['note'] or '--eager'}")
    ratio = way["ms"] / full
    return f"{head} {way['ms']:10.4f} {ratio:6.2f}  {how}", ratio


def verdict(name, rows, ratios):
    if not ratios:
        return f"{name}: nothing to compare"
    mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
    slower = sum(r < 1 for r in ratios)
    return (f"{name}: at least 2 times faster in {sum(r >= 2 for r in ratios)} of {len(ratios)} rows"
            f"{'' if len(ratios) == rows else f' ({rows - len(ratios)} more without a peer)'},"
            f" {'none slower' if slower == 0 else f'{slower} SLOWER'},"
            f" least {min(ratios):.2f}, geometric mean {mean:.2f}")


def main():
    with open(sys.argv[1]) as f:
        rows = json.loads(f.read().strip().splitlines()[-1])["shapes"]
    ways, ratios, counts = read(sys.argv[2]), {}, {}
    print(f"{'':22} {'':4} {'mnp: ms':>9} {'ms, full':>9} {'MB':>8} {'GFLOP':>8} {'floors':>6} {'PyTorch':>10} {'ratio':>6}  its way")
    for row in rows:
        text, ratio = line_of(row, *(fastest(ways, row) if row["error"] is None else (None, [])))
        print(text)
        counts[row["math"]] = counts.get(row["math"], 0) + 1
        ratios.setdefault(row["math"], []).extend([ratio] if ratio else [])
    print()
    for name, found in ratios.items():
        print(verdict(name, counts[name], found))
    print(verdict("all", sum(counts.values()), [r for found in ratios.values() for r in found]))
    print("\neach row again: mnp bench shapes --shapes NAME, or mnp train with these options")
    said = set()
    for row in rows:
        if row["shape"] not in said:
            said.add(row["shape"])
            print(f"  {row['shape']:22} --model {row['model']} --preset {row['preset']} --data {row['data']} "
                  f"{row['set']}{' ' if row['set'] else ''}{row['train']} --kernels {row['kernels']}")


if __name__ == "__main__":
    main()
