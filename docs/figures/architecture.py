#!/usr/bin/env python3
"""architecture.py: draws architecture.svg, the folders and what flows through them in a training step.

    python3 docs/figures/architecture.py > docs/figures/architecture.svg

Colours follow the reader's light or dark scheme."""

WIDTH, HEIGHT = 920, 640
STYLE = """
text { font-family: Helvetica, Arial, 'DejaVu Sans', sans-serif; font-size: 13px; fill: #1d2733; }
.name { font-weight: bold; } .small { font-size: 11px; fill: #51606f; } .head { font-size: 15px; font-weight: bold; }
.box { stroke-width: 1.2; } .line { fill: none; stroke: #7a8896; stroke-width: 1.4; } .tip { fill: #7a8896; }
.page { fill: #ffffff; } .tool { fill: #fdf0e0; stroke: #d98b1f; } .face { fill: #e4f3ea; stroke: #2e9e64; } .core { fill: #e6f0fa; stroke: #3f7fbf; }
.dev { fill: #f3e8f6; stroke: #9a5fae; } .low { fill: #eef0f2; stroke: #8a96a3; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9ee; } .small { fill: #a3b0bd; } .line { stroke: #8b99a7; } .tip { fill: #8b99a7; }
.page { fill: #0d1117; } .tool { fill: #46330f; stroke: #d98b1f; } .face { fill: #123824; stroke: #2e9e64; } .core { fill: #14304d; stroke: #4f8fcf; }
.dev { fill: #38213f; stroke: #aa70be; } .low { fill: #262c33; stroke: #74808c; }
}"""
out = [f'<rect width="{WIDTH}" height="{HEIGHT}" class="page"/>']


def text(x, y, words, kind="", anchor="middle"):
    out.append(f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>')


def box(x, y, w, h, kind, name, *lines):
    out.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" class="box {kind}"/>')
    top = y + h / 2 + 5 - 7.5 * len(lines)
    text(x + w / 2, top, name, "name")
    for k, line in enumerate(lines):
        text(x + w / 2, top + 15 * (k + 1), line, "small")


def arrow(*points):
    (x0, y0), (x1, y1) = points[-2:]
    path = "M" + " L".join(f"{x} {y}" for x, y in points)
    out.append(f'<path d="{path}" class="line"/>')
    if x0 == x1:
        d = 6 if y1 > y0 else -6
        out.append(f'<path d="M{x1} {y1} l-4 {-d} h8 z" class="tip"/>')
    else:
        d = 6 if x1 > x0 else -6
        out.append(f'<path d="M{x1} {y1} l{-d} -4 v8 z" class="tip"/>')


# left: the folders; an arrow points to what a folder may include
text(20, 30, "Folders: arrows point to what is used", "head", "start")
box(20, 50, 150, 56, "tool", "cli/", "the command mnp")
box(190, 50, 150, 56, "tool", "lab/", "studies, results")
box(360, 50, 150, 56, "tool", "your program", "examples/")
box(20, 136, 490, 48, "face", "include/", "mnp.h and its chapters: bandit, job, map, plot")
for x in (95, 265, 435):
    arrow((x, 106), (x, 136))
arrow((190, 78), (170, 78))
box(20, 214, 490, 42, "face", "src/api/", "checks arguments, holds handles")
arrow((265, 184), (265, 214))
box(20, 286, 150, 56, "core", "src/bandit/", "agents, trials, logs")
box(190, 286, 320, 56, "core", "src/run/", "train, score, predict, summaries, maps")
arrow((95, 256), (95, 286))
arrow((350, 256), (350, 286))
arrow((170, 314), (190, 314))
box(20, 372, 110, 56, "core", "src/data/", "families, CSV,", "images")
box(145, 372, 110, 56, "core", "src/plot/", "charts")
box(270, 372, 110, 56, "core", "src/model/", "chain, encoders,", "transitions")
box(395, 372, 115, 56, "core", "src/nn/", "layers")
for x in (75, 200):
    arrow((225, 342), (225, 357), (x, 357), (x, 372))
arrow((325, 342), (325, 372))
arrow((380, 400), (395, 400))
box(20, 458, 110, 56, "low", "src/comm/", "MPI, NCCL")
box(165, 458, 215, 56, "dev", "src/backend/", "cpu/   ref/   cuda/")
box(395, 458, 115, 56, "core", "src/op/", "one file per op")
arrow((75, 428), (75, 458))
arrow((452, 428), (452, 458))
arrow((380, 494), (395, 494))
arrow((165, 486), (130, 486))
arrow((152, 428), (152, 544))
arrow((262, 342), (262, 458))
box(395, 544, 115, 44, "low", "src/graph/", "record, plan")
arrow((452, 514), (452, 544))
box(20, 544, 170, 44, "low", "src/base/", "memory, random numbers")
box(205, 544, 175, 44, "low", "util/", "text, JSON, CSV, PNG")
arrow((75, 514), (75, 544))
arrow((395, 572), (380, 572))
arrow((190, 566), (205, 566))
text(20, 618, "bench/ may look inside; nothing in src/ knows cli/ or lab/.", "small", "start")

# right: one training step
text(560, 30, "A training step", "head", "start")
steps = [
    ("core", "record", "one function as ops (model, nn, op)"),
    ("core", "append the gradient", "each op records its own reverse"),
    ("low", "plan", "memory by lifetime, once (graph)"),
    ("dev", "compile", "for cpu, ref or cuda (backend)"),
]
for k, (kind, name, line) in enumerate(steps):
    box(560, 50 + 66 * k, 340, 48, kind, name, line)
    if k:
        arrow((730, 32 + 66 * k), (730, 50 + 66 * k))
out.append('<rect x="560" y="322" width="340" height="266" rx="8" class="line" stroke-dasharray="5 4"/>')
text(572, 340, "run, for every step", "small", "start")
arrow((730, 296), (730, 350))
warm = [
    ("draw", "functions and their contexts"),
    ("walk the chain", "encode, sample z, map y(t) to y(t-1), T times"),
    ("the same backwards", "each function adds to a gradient slot"),
    ("sum, clip, Adam", "slots in a fixed order: same bits on any threads"),
]
for k, (name, line) in enumerate(warm):
    box(580, 350 + 58 * k, 300, 44, "dev", name, line)
    if k:
        arrow((730, 336 + 58 * k), (730, 350 + 58 * k))
text(560, 618, "One function's work is its own; only weight gradients meet.", "small", "start")

print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
      'aria-label="Folders and data flow of mnp">')
print(f"<style>{STYLE}</style>")
print("\n".join(out))
print("</svg>")
