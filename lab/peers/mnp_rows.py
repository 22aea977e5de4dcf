#!/usr/bin/env python3
"""Rows of `mnp bench shapes --json` for lab/peers/compare_shapes.sh, kept as they come.

  mnp_rows.py names listed.json 6                     their names, six a line, with commas
  mnp_rows.py keep listed.json said rows.json tf32 paper,T=14 "status 139"
      adds the rows of these shapes, which a process printed to `said`. Those that it says nothing about get
      this error, or are left out where it is empty. A later row of a shape replaces the one before. Prints
      the names that have an error.
"""
import json
import os
import sys


def last_object(path):
    """The object in the last line that has one; {}: none."""
    with open(path) as f:
        for line in reversed(f.read().splitlines()):
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict):
                return said
    return {}


def rows_of(path):
    return last_object(path).get("shapes", []) if os.path.exists(path) else []


def names(listed, many):
    found = list(dict.fromkeys(row["shape"] for row in rows_of(listed)))
    for k in range(0, len(found), int(many)):
        print(",".join(found[k : k + int(many)]))


def keep(listed, said, to, math, asked, why):
    rows, new = rows_of(to), {row["shape"]: row for row in rows_of(said)}
    for row in rows_of(listed):
        name = row["shape"]
        if name not in asked.split(","):
            continue
        at = new.get(name, {**row, "math": math, "error": why})
        if not at["error"] and "ms" not in at:
            continue  # left out: the time was spent
        if at["error"]:
            print(name)
        same = [k for k, old in enumerate(rows) if (old["shape"], old["math"]) == (name, math)]
        if same:
            rows[same[0]] = at
        else:
            rows.append(at)
    with open(to + ".new", "w") as f:
        f.write(json.dumps({"shapes": rows}) + "\n")
    os.replace(to + ".new", to)


if __name__ == "__main__":
    {"names": names, "keep": keep}[sys.argv[1]](*sys.argv[2:])
