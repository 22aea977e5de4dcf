#!/usr/bin/env python3
"""The short tables of docs/user/choose.md from a run of `mnp repro predictive`.

    lab/predictive/choose.py DIR ["how: machine, precision"]     fills the page between <!-- choose --> and <!-- /choose -->
    lab/predictive/choose.py --print DIR                         prints them
    lab/predictive/choose.py --page FILE DIR                     another page
    lab/predictive/choose.py --place small DIR                   between <!-- choose small --> and <!-- /choose small -->

Bold are the best model of a column and those that are within two standard errors of it, the
difference taken function by function. Only the standard library is used.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIDDLE = "10"  # points given, of the families


def read(folder):
    path = pathlib.Path(folder) / "predictive.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit(f"choose.py: {path} is not there: mnp repro predictive --out {folder}")


def functions_of(cell, key):
    """How many a mean is over; all targets together may have fewer than the rest."""
    return cell.get("joint_functions", cell["functions"]) if key == "joint" else cell["functions"]


class Table:
    def __init__(self, run):
        self.cells = {(c["task"], c["given"], c["model"]): c for c in run["cells"] if c["state"] == "done" and c.get("functions")}
        self.tasks = list(dict.fromkeys(c["task"] for c in run["cells"]))
        self.models = list(dict.fromkeys(c["model"] for c in run["cells"]))
        self.more = {}
        for d in run["differences"]:
            for key in ("marginal", "joint"):
                at = (d["task"], d["given"], key)
                self.more[(*at, d["from"], d["to"])] = (d[key], d[key + "_se"])
                if d[key] is not None:
                    self.more[(*at, d["to"], d["from"])] = (-d[key], d[key + "_se"])

    def given(self, task):
        sizes = [g for t, g, _ in self.cells if t == task]
        return MIDDLE if MIDDLE in sizes else sizes[0] if sizes else None

    def value(self, task, model, key):
        cell = self.cells.get((task, self.given(task), model))
        return None if cell is None else cell.get(key)

    def score(self, task, model, key):
        """On all functions: of a model that was asked about some of them, the score of mnp on all and what it has more on these."""
        value, given = self.value(task, model, key), self.given(task)
        all_of, own = self.cells.get((task, given, "mnp")), self.cells.get((task, given, model))
        more = self.more.get((task, given, key, "mnp", model), (None,))[0]
        if value is None or more is None or functions_of(all_of, key) == functions_of(own, key):
            return value
        return all_of[key] + more

    def best(self, task, key):
        """The models that are not worse than the best by two standard errors."""
        rows = [m for m in self.models if m != "truth" and self.value(task, m, key) is not None]
        if not rows:
            return set()
        at = (task, self.given(task), key)
        # compared in pairs, since models may have been scored on different numbers of functions
        top = rows[0]
        for m in rows[1:]:
            if (self.more.get((*at, top, m), (0, 0))[0] or 0) > 0:
                top = m
        close = {top}
        for m in rows:
            more, se = self.more.get((*at, top, m), (None, None))
            if more is not None and se is not None and more > -2 * se:
                close.add(m)
        return close

    def rows(self, key, lacking):
        """A line for each model: `lacking` where the truth is known, else the score."""
        known = {t: self.value(t, "truth", key) is not None for t in self.tasks}
        best = {t: self.best(t, key) for t in self.tasks}
        yield "| model |" + "".join(f" `{t}` |" for t in self.tasks)
        yield "|---|" + "---:|" * len(self.tasks)
        for m in self.models:
            if all(self.value(t, m, key) is None for t in self.tasks):
                continue
            line = f"| `{m}` |"
            for t in self.tasks:
                short = known[t] and m != "truth"
                v = self.value(t, m, lacking) if short else self.score(t, m, key)
                text = "" if v is None else f"{v:.3f}"
                if v is not None and m == "truth":
                    text = f"*{text}*"
                line += f" **{text}** |" if m in best[t] and text else f" {text} |"
            yield line

    def others(self):
        yield "| model | parameters | in the 95 % band, % | orders differ by |"
        yield "|---|---:|---:|---:|"
        task = self.tasks[0]
        for m in self.models:
            cell = self.cells.get((task, self.given(task), m))
            if cell is None or m == "truth":
                continue
            order = "0" if cell["order_sd"] is None else f"{cell['order_sd']:.3f}"
            yield f"| `{m}` | {cell['parameters']} | {100 * cell['coverage95']:.1f} | {order} |"


def page_of(run, how):
    table = Table(run)
    n = run["functions"]
    together = f", {run['joint_functions']} of them for all targets together" if run.get("joint_runs") else ""
    exact = f" ({run['exact_functions']} for `mnp-exact`{together})" if "mnp-exact" in table.models else ""
    out = [how, ""] if how else []
    out += [
        f"{n} test functions for all models{exact}, {MIDDLE} points given, or as the task draws them.",
        "Where the truth is known, a number is how far short of it the model is, in nats per target: lower is better. The row *truth* has its score. Elsewhere it is the",
        "score itself: higher is better. Bold: the best, and what is within two standard errors of it, function by function.",
        "",
        "**Each target by itself:**",
        "",
        *table.rows("marginal", "marginal_short"),
        "",
        "**All targets together:**",
        "",
        *table.rows("joint", "joint_short"),
        "",
        f"**Size and bands**, on `{table.tasks[0]}`:",
        "",
        *table.others(),
    ]
    if run["quick"]:
        out.insert(0, "These are quick settings: they say nothing of the models.\n")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--print", action="store_true", dest="show")
    parser.add_argument("--page", default=ROOT / "docs/user/choose.md", type=pathlib.Path)
    parser.add_argument("--place", help="a word in the comments around the tables")
    parser.add_argument("folder")
    parser.add_argument("how", nargs="?", default="")
    args = parser.parse_args()
    text = page_of(read(args.folder), args.how)
    if args.show:
        print(text)
        return
    place = f"choose {args.place}" if args.place else "choose"
    begin, end = f"<!-- {place} -->", f"<!-- /{place} -->"
    page = args.page.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"choose.py: {args.page} has no place for the tables: {begin} and {end}")
    before, rest = page.split(begin)
    args.page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")
    print(f"{args.page}: from {args.folder}")


if __name__ == "__main__":
    main()
