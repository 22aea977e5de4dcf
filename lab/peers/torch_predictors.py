#!/usr/bin/env python3
"""The predictors cnp, tnp (TNP-D) and convcnp of mnp in PyTorch: same architecture, widths, start,
objective and schedule; for scores and times beside `mnp train --model tnp` on the same functions.

  mnp gen rbf --functions 20000 --seed 1 --out train.npz
  mnp gen rbf --functions 5000 --seed 1 --split test --out test.npz
  torch_predictors.py --model tnp --train train.npz --test test.npz --steps 20000 --device cuda --math tf32 --compile
  mnp train --data rbf --functions 20000 --seed 1 --model tnp --steps 20000 --device cuda --math tf32 --out t.safetensors
  mnp eval t.last.safetensors --data rbf --seed 1 --functions 5000 --draws 0

The line of JSON comes twice, first without the time of a step alone: the score is there when training ends.
Both score the points outside the contexts, with the contexts of test.npz, in nats per point. On a GPU
the step is compiled (--compile) and captured. Sets are padded to the largest context and masked, as
contexts differ in size; a benchmark of one size (torch_shapes.py) has no mask and asks for the points
outside the context alone.

  torch_predictors.py --check build/mnp      densities of models that mnp trained, point by point
"""
import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from mnp_file import read_model

FLOOR_OF_DENSITY = 1e-6  # of a grid: data fade where no context is near


@dataclasses.dataclass(frozen=True)
class Options:
    """As mnp names them; the defaults are those that all three share."""
    kind: str = "cnp"
    rff: int = 80
    rff_std: float = 1.0
    rff_append_x: bool = True
    d_r: int = 128
    enc_width: int = 128
    heads: int = 8
    n_sab: int = 6
    ds_layers: int = 2
    pool: str = "mean"
    flow_hidden: int = 128
    flow_layers: int = 1
    flow_gain: float = 1.0
    y_gain: float = 1.0
    conv_layers: int = 12
    conv_taps: int = 5
    grid_points: int = 256
    grid_lo: float = -2.4
    grid_hi: float = 2.4
    sigma_floor: float = 1e-3
    head: str = "normal"
    head_parts: int = 10

    @classmethod
    def of(cls, options):
        if options["kind"] == "cnp" and options["encoder"] != "deepset":
            raise ValueError("the peer of cnp takes means: encoder=deepset")
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in options.items() if k in known})

    @classmethod
    def preset(cls, kind):
        """--preset paper"""
        more = {"cnp": {"flow_layers": 3}, "tnp": {},
                "convcnp": {"enc_width": 96, "flow_hidden": 96, "flow_gain": 0.1}}
        return cls(kind=kind, **more[kind])

    @property
    def features(self):
        return 2 * self.rff + self.rff_append_x if self.rff else 1

    @property
    def numbers(self):
        return 3 * self.head_parts if self.head == "mixture" else 2


# ---- weights ---------------------------------------------------------------------------------


def dense(out, name, rows, cols, gain=1.0):
    out[f"{name}.w"], out[f"{name}.b"] = (rows, cols, rows, gain), (1, cols, 0, 0.0)


def perceptron(out, o, rows):
    """The layers of the decoder after its first."""
    for k in range(1, o.flow_layers + 1):
        last = k == o.flow_layers
        dense(out, f"dec.{k}", rows, o.numbers if last else rows, o.flow_gain if last else 1.0)


def declare(o):
    """Rows, columns, inputs and gain of Xavier's start, by name; no inputs: all the gain."""
    d, f, out = o.enc_width, o.features, {}

    def norm(name):
        out[f"{name}.gain"], out[f"{name}.shift"] = (1, d, 0, 1.0), (1, d, 0, 0.0)

    if o.kind == "cnp":
        out.update({"enc.0.wphi": (f, d, f + 1, 1.0), "enc.0.b": (1, d, 0, 0.0),
                    "enc.0.wy": (1, d, f + 1, o.y_gain)})
        for k in range(1, o.ds_layers + 1):
            dense(out, f"enc.{k}", d, d)
        dense(out, "enc.r", d, o.d_r)
        out["enc.empty"] = (1, o.d_r, 1, 1.0)
        fan = f + o.d_r
        out.update({"dec.0.wx": (f, o.flow_hidden, fan, 1.0), "dec.0.b": (1, o.flow_hidden, 0, 0.0),
                    "dec.0.wr": (o.d_r, o.flow_hidden, fan, 1.0)})
    elif o.kind == "tnp":
        out.update({"token.0.wx": (f, d, f + 2, 1.0), "token.0.wy": (1, d, f + 2, o.y_gain),
                    "token.0.wc": (1, d, f + 2, 1.0), "token.0.b": (1, d, 0, 0.0)})
        dense(out, "token.1", d, d)
        for k in range(o.n_sab):
            name = f"block.{k}"
            norm(f"{name}.norm0")
            dense(out, f"{name}.kv", d, 2 * d)
            dense(out, f"{name}.q", d, d)
            dense(out, f"{name}.out", d, d, 0.5)
            norm(f"{name}.norm1")
            dense(out, f"{name}.hidden", d, 2 * d)
            dense(out, f"{name}.onto", 2 * d, d, 0.5)
        norm("norm")
        dense(out, "dec.0", d, o.flow_hidden)
    else:
        spacing = (o.grid_hi - o.grid_lo) / (o.grid_points - 1)
        out["grid.length"] = (1, 1, 0, math.log(2 * spacing))
        for k in range(o.conv_layers + 1):
            dense(out, f"conv.{k}", o.conv_taps * (d if k else 2), d, 0.5 if k else 1.0)
        dense(out, "dec.0", d, o.flow_hidden)
    perceptron(out, o, o.flow_hidden)
    return out


def draw_weights(o):
    w = {"features.freq": o.rff_std * torch.randn(o.rff, 1)} if o.kind != "convcnp" and o.rff else {}
    for name, (rows, cols, fan, gain) in declare(o).items():
        most = gain * math.sqrt(6 / (fan + cols)) if fan else 0.0
        w[name] = torch.full((rows, cols), gain) if not fan else most * (2 * torch.rand(rows, cols) - 1)
    return w


# ---- what they compute -----------------------------------------------------------------------


def linear(w, name, x):
    return x @ w[f"{name}.w"] + w[f"{name}.b"]


def decode(o, w, h):
    """h: the first layer before its ReLU -> numbers of the density"""
    for k in range(1, o.flow_layers + 1):
        h = linear(w, f"dec.{k}", torch.relu(h))
    return h


def features(o, w, x):
    """x (B, n) -> (B, n, F)"""
    x = x.unsqueeze(-1)
    if not o.rff:
        return x
    turns = x * w["features.freq"][:, 0]
    angle = 2 * math.pi * (turns - turns.round())
    return torch.cat([angle.cos(), angle.sin()] + [x] * o.rff_append_x, -1)


def of_cnp(o, w, xc, yc, mask, x):
    phi = features(o, w, xc)
    h = torch.relu(phi @ w["enc.0.wphi"] + w["enc.0.b"] + yc.unsqueeze(-1) * w["enc.0.wy"])
    for k in range(1, o.ds_layers + 1):
        h = linear(w, f"enc.{k}", h)
        h = torch.relu(h) if k < o.ds_layers else h
    if mask is None:
        r = torch.relu(linear(w, "enc.r", h.mean(1) if o.pool == "mean" else h.sum(1)))
    else:
        m = mask.sum(1, keepdim=True)
        pooled = (h * mask.unsqueeze(-1)).sum(1) / (m.clamp(min=1) if o.pool == "mean" else 1)
        r = torch.where(m > 0, torch.relu(linear(w, "enc.r", pooled)), w["enc.empty"])
    row = (r @ w["dec.0.wr"]).unsqueeze(1)
    return decode(o, w, features(o, w, x) @ w["dec.0.wx"] + w["dec.0.b"] + row)


def normed(w, name, h):
    return F.layer_norm(h, h.shape[-1:], w[f"{name}.gain"][0], w[f"{name}.shift"][0])


def attend(o, w, name, h, n, kv, mask, some):
    def split(a):
        return a.unflatten(-1, (o.heads, -1)).transpose(1, 2)

    q = linear(w, f"{name}.q", n)
    k, v = kv.chunk(2, -1)
    mixed = F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask,
                                           scale=1 / math.sqrt(o.enc_width))
    mixed = mixed.transpose(1, 2).flatten(-2)
    mixed = mixed if some is None else mixed * some  # of no context there is nothing to mix
    h = h + linear(w, f"{name}.out", q + mixed)
    hidden = torch.relu(linear(w, f"{name}.hidden", normed(w, f"{name}.norm1", h)))
    return h + linear(w, f"{name}.onto", hidden)


def of_tnp(o, w, xc, yc, mask, x):
    """All tokens, the context's first, go through each dense layer as one product."""
    width, rest = xc.shape[1], x.shape[1]
    a = features(o, w, torch.cat([xc, x], 1)) @ w["token.0.wx"] + w["token.0.b"]
    more = w["token.0.wc"] + yc.unsqueeze(-1) * w["token.0.wy"]
    h = linear(w, "token.1", torch.relu(torch.cat([a[:, :width] + more, a[:, width:]], 1)))
    some = None
    if mask is not None:
        some = mask.any(1)[:, None, None].to(h.dtype)
        mask = (mask | ~mask.any(1, keepdim=True))[:, None, None, :]
    for k in range(o.n_sab):
        name = f"block.{k}"
        if k + 1 == o.n_sab:  # nobody reads the context's tokens after it
            n = normed(w, f"{name}.norm0", h)
            kv, h, n = linear(w, f"{name}.kv", n[:, :width]), h[:, width:], n[:, width:]
        else:
            n = normed(w, f"{name}.norm0", h)
            kv = linear(w, f"{name}.kv", n[:, :width])
        h = attend(o, w, name, h, n, kv, mask, some)
    h = normed(w, "norm", h if o.n_sab else h[:, -rest:])
    return decode(o, w, linear(w, "dec.0", h))


def spread(o, w, xc, yc, mask):
    """The context on the grid: density and mean of y, (B, 2, G)"""
    grid = torch.linspace(o.grid_lo, o.grid_hi, o.grid_points, device=xc.device, dtype=xc.dtype)
    near = torch.exp(-0.5 * ((grid[:, None] - xc[:, None, :]) * torch.exp(-w["grid.length"])) ** 2)
    near = near if mask is None else near * mask[:, None, :]
    density = near.sum(-1)
    return torch.stack([density, (near @ yc.unsqueeze(-1)).squeeze(-1) / (density + FLOOR_OF_DENSITY)], 1)


def interpolated(o, h, x):
    """h (B, C, G) at x (B, n), by cubic convolution, zero outside: (B, n, C), by a product with the
    weights of the grid's points, which has no gather to differentiate"""
    spacing = (o.grid_hi - o.grid_lo) / (o.grid_points - 1)
    at = (x - o.grid_lo) / spacing
    apart = (at.unsqueeze(-1) - torch.arange(o.grid_points, device=x.device)).abs()
    inner, outer = 1 + apart**2 * (1.5 * apart - 2.5), 2 + apart * (-4 + apart * (2.5 - 0.5 * apart))
    weight = torch.where(apart < 1, inner, torch.where(apart < 2, outer, 0.0))
    return weight @ h.transpose(1, 2)


def of_convcnp(o, w, xc, yc, mask, x):
    h = spread(o, w, xc, yc, mask)
    for k in range(o.conv_layers + 1):
        apart = 1 << (k - 1) % 4 if k else 1
        taps = w[f"conv.{k}.w"].view(o.conv_taps, -1, o.enc_width).permute(2, 1, 0)
        c = torch.relu(F.conv1d(h, taps, w[f"conv.{k}.b"][0], padding=o.conv_taps // 2 * apart, dilation=apart))
        h = c if k == 0 else h + c
    return decode(o, w, linear(w, "dec.0", interpolated(o, h, x)))


def logp(o, raw, y):
    """(B, n) of numbers (B, n, *)"""
    half = 0.5 * math.log(2 * math.pi)
    if o.head == "mixture":
        share, mean, s = raw.chunk(3, -1)
        s = o.sigma_floor + (1 - o.sigma_floor) * F.softplus(s)
        part = share.log_softmax(-1) - 0.5 * ((y.unsqueeze(-1) - mean) / s) ** 2 - s.log() - half
        return part.logsumexp(-1)
    s = o.sigma_floor + (1 - o.sigma_floor) * F.softplus(raw[..., 1])
    return -0.5 * ((y - raw[..., 0]) / s) ** 2 - s.log() - half


NETWORKS = {"cnp": of_cnp, "tnp": of_tnp, "convcnp": of_convcnp}


class Predictor(nn.Module):
    """loss, 0 = predictor(x, y, noise, width, mask, some), as torch_packed.Packed has it: x and y
    (B, n), context first; mask (B, 1, 1, width) or None: then every context has `width` points."""

    def __init__(self, o, w, bf16=False, how=lambda f: f):
        super().__init__()
        self.o, self.bf16 = o, bf16
        self.names = {k: k.replace(".", "/") for k in w}
        self.w = nn.ParameterDict({self.names[k]: nn.Parameter(v.clone(), k != "features.freq")
                                   for k, v in w.items()})
        self.compiled = how(self.loss)

    def weights(self):
        return {k: self.w[v] for k, v in self.names.items()}

    def numbers(self, xc, yc, mask, x):
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.bf16):
            return NETWORKS[self.o.kind](self.o, self.weights(), xc, yc, mask, x).float()

    def loss(self, x, y, width, mask):
        xc, yc = x[:, :width], y[:, :width]
        if mask is None:
            x, y = x[:, width:], y[:, width:]
            return -logp(self.o, self.numbers(xc, yc, None, x), y).mean()
        mask = mask.view(-1, width)
        rest = F.pad(~mask, (0, x.shape[1] - width), value=True)
        each = logp(self.o, self.numbers(xc, yc, mask, x), y)
        return -((each * rest).sum(1) / rest.sum(1).clamp(min=1)).mean()

    def forward(self, x, y, noise, width, mask, some):
        loss = self.compiled(x, y, width, mask)
        return loss, torch.zeros_like(loss)


# ---- training --------------------------------------------------------------------------------


class Functions:
    """Endless epochs over the functions of a file, points in random order, context first."""

    def __init__(self, path, o, device):
        data = np.load(path)
        self.x = torch.tensor(data["x"][..., 0], device=device)
        self.y = torch.tensor(data["y"], device=device)
        self.lo, self.hi = (int(v) for v in o.context.split(":"))
        self.o, self.queue = o, torch.empty(0, dtype=torch.long, device=device)
        self.rng = torch.Generator(device).manual_seed(o.seed)

    def next(self):
        o, device = self.o, self.x.device
        while len(self.queue) < o.batch:
            order = torch.randperm(len(self.x), generator=self.rng, device=device)
            self.queue = torch.cat([self.queue, order])
        which, self.queue = self.queue[: o.batch], self.queue[o.batch :]
        order = torch.rand(o.batch, self.x.shape[1], generator=self.rng, device=device).argsort(1)
        m = torch.randint(self.lo, self.hi + 1, (o.batch,), generator=self.rng, device=device)
        m[torch.rand(o.batch, generator=self.rng, device=device) < o.p_empty] = 0
        mask = torch.arange(self.hi, device=device) < m[:, None]
        return self.x[which].gather(1, order), self.y[which].gather(1, order), mask


def rate(step, o):
    warmup = min(1000, o.steps // 20)
    up = (step + 1) / warmup if step + 1 < warmup else 1.0
    return o.lr * up * 0.5 * (1 + math.cos(math.pi * min(step / o.steps, 1.0)))


def score(net, path, device, at_once=200):
    """Mean and standard error over sets of nats per point outside the context, as mnp eval."""
    data, each = np.load(path), []
    x, y = torch.tensor(data["x"][..., 0], device=device), torch.tensor(data["y"], device=device)
    m = torch.tensor(data["context"], device=device)
    for k in range(0, len(x), at_once):
        part = slice(k, k + at_once)
        mask = torch.arange(int(m.max()), device=device) < m[part, None]
        with torch.no_grad():
            raw = net.numbers(x[part, : mask.shape[1]], y[part, : mask.shape[1]], mask, x[part])
            rest = torch.arange(x.shape[1], device=device) >= m[part, None]
            each.append((logp(net.o, raw, y[part]) * rest).sum(1) / rest.sum(1))
    each = torch.cat(each).double()
    return each.mean().item(), each.std().item() / math.sqrt(len(each))


def train(o):
    device = torch.device(o.device)
    torch.manual_seed(o.seed)
    torch.set_float32_matmul_precision("highest" if o.math == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = o.math != "fp32"
    batches, options = Functions(o.train, o, device), Options.preset(o.model)
    if o.model == "convcnp":  # a tenth beyond the data on both sides, as mnp's
        lo, hi = batches.x.min().item(), batches.x.max().item()
        options = dataclasses.replace(options, grid_lo=lo - 0.1 * (hi - lo), grid_hi=hi + 0.1 * (hi - lo))
    how = (lambda f: torch.compile(f, dynamic=False)) if o.compile else (lambda f: f)
    net = Predictor(options, draw_weights(options), o.math == "bf16", how).to(device)
    from torch_shapes import start_again
    from torch_step import Step
    watch = threading.Timer(o.compile_limit, start_again, [f"not compiled within {o.compile_limit} s"])
    watch.daemon = True
    if o.compile:
        watch.start()
    step = Step(net, batches.next(), batches.hi, None, o.device == "cuda", clip=o.clip)
    watch.cancel()
    start = time.perf_counter()
    for k in range(o.steps):
        step.run(rate(k, o), *batches.next())
        if (k + 1) % max(1, o.steps // 10) == 0:
            print(f"step {k + 1}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    if o.device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    loglik, se = score(net, o.test, device)
    said = {"model": o.model, "device": o.device, "math": o.math, "steps": o.steps, "batch": o.batch,
            "compiled": o.compile, "note": o.gave_up, "ms": 1e3 * seconds / o.steps, "loglik": loglik, "se": se,
            "loss": float(step.loss.detach())}
    print(json.dumps(said), flush=True)
    alone = step.times([batches.next() for _ in range(4)], 20, 2.0)  # trains on: the score is taken
    print(json.dumps({**said, "ms_step": alone[len(alone) // 2]}), flush=True)
    return 0 if math.isfinite(loglik) else 1


# ---- beside mnp ------------------------------------------------------------------------------


def loaded(path):
    options, weights = read_model(path)
    scale = {k: weights.pop(f"scale.{k}").astype(np.float64).reshape(-1) for k in "xy"}
    assert all((v == (0, 1)).all() for v in scale.values()), "a family's model, which is not scaled"
    o = Options.of(options)
    frequencies = {"features.freq"} if o.rff and o.kind != "convcnp" else set()
    missing = set(weights) ^ frequencies ^ set(declare(o))
    assert not missing, f"weights that only one side has: {sorted(missing)}"
    return Predictor(o, {k: torch.tensor(v) for k, v in weights.items()})


def table(path, x, y):
    with open(path, "w") as f:
        f.write("x,y\n")
        f.writelines(f"{a:.9g},{b:.9g}\n" for a, b in zip(x, y))


def check(mnp, folder):
    """Models that mnp trained for a few steps: scores of sets, and densities of one set's points."""
    def run(*words):
        done = subprocess.run([mnp, *words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"torch_predictors.py: mnp {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    data, sets, model, worst = "rbf:points=24,context=0:20", f"{folder}/s.npz", f"{folder}/m.safetensors", 0.0
    run("gen", data, "--split", "test", "--seed", "3", "--functions", "6", "--out", sets)
    for kind, more in (("cnp", ""), ("tnp", ""), ("convcnp", ""), ("cnp", "head=mixture"), ("tnp", "rff=0 n_sab=1"),
                       ("convcnp", "conv_taps=3 grid_points=50")):
        flags = [word for pair in more.split() for word in ("--set", pair)]
        run("train", "--data", data, "--model", kind, "--preset", "tiny", "--functions", "50", "--steps", "20",
            "--batch", "10", "--set", "lr=1e-2", "--out", model, *flags)
        said = json.loads(run("eval", model, "--data", data, "--functions", "6", "--seed", "3", "--draws", "0",
                              "--json").splitlines()[-1])["loglik"]
        net = loaded(model)
        here, _ = score(net, sets, torch.device("cpu"))
        one = np.load(sets)
        k = int(np.argmax(one["context"]))
        m, x, y = int(one["context"][k]), one["x"][k, :, 0], one["y"][k]
        table(f"{folder}/c.csv", x[:m], y[:m])
        table(f"{folder}/t.csv", x[m:], y[m:])
        alone = json.loads(run("score", model, "--context", f"{folder}/c.csv", "--targets", f"{folder}/t.csv",
                               "--json").splitlines()[-1])
        tx, ty = torch.tensor(x), torch.tensor(y)
        with torch.no_grad():
            raw = net.numbers(tx[None, :m], ty[None, :m], None, tx[None, m:])
            own = logp(net.o, raw, ty[None, m:]).mean().item()
        worst = max(worst, abs(said - here), abs(alone["loglik"] - own))
        print(f"{kind:8} mnp {said:10.6f} here {here:10.6f}; one set: mnp {alone['loglik']:10.6f} here {own:10.6f}  {more}")
    print(f"at most {worst:.1e} nats per point apart, allowed 1e-05: {'they agree' if worst <= 1e-5 else 'THEY DIFFER'}")
    return 0 if worst <= 1e-5 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--check", metavar="MNP", help="compare with this program")
    p.add_argument("--model", choices=sorted(NETWORKS), default="tnp")
    p.add_argument("--train", help=".npz of mnp gen")
    p.add_argument("--test", help="likewise, --split test")
    p.add_argument("--steps", type=int, default=20000)
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--context", default="2:50", help="context sizes lo:hi")
    p.add_argument("--p-empty", type=float, default=0.05, help="probability of an empty context")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--clip", type=float, default=1.0, help="longest gradient; 0: any (default 1, as mnp's predictors)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--math", choices=["fp32", "tf32", "bf16"], default="fp32")
    p.add_argument("--compile", action="store_true", help="torch.compile")
    p.add_argument("--compile-limit", type=float, default=300, help="seconds; then uncompiled (default 300)")
    p.add_argument("--threads", type=int, default=2, help="of the processor")
    p.add_argument("--gave-up", help=argparse.SUPPRESS)  # why it is not compiled
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    if o.check:
        with tempfile.TemporaryDirectory() as folder:
            return check(os.path.abspath(o.check), folder)
    if not o.train or not o.test:
        p.error("--train and --test, or --check")
    return train(o)


if __name__ == "__main__":
    sys.exit(main())
