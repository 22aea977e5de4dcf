#!/usr/bin/env python3
"""The training step of `mnp train --preset paper` in PyTorch, as a fair opponent.

Same model, objective, schedule and initialisation, and the same four exact savings:

  1. the context's rows are the first rows of the full set, so its flow and first projection are
     the ones already computed;
  2. the features' part of the first encoder projection is taken once per step of training, each of
     the T chain steps adds y times a weight row;
  3. z enters the first layer of a conditioner once per function, not once per point;
  4. the Fourier features get no gradient.

Context sizes differ per function: the context is padded to the largest size and masked; with
--context k:k there is nothing to mask and none is passed. Attention is
scaled_dot_product_attention (fused on CPU and GPU) or, with --attention plain, three separate
operations. Adam is the fused one. On a GPU the whole step (forward, backward, Adam) is captured
once and replayed, and timed by the device's clock with the batches drawn beforehand. --packed is
the arrangement of torch_packed.py, the stronger one on a GPU.

  torch_peer.py --threads 2 --steps 20                        milliseconds per step, eager
  torch_peer.py --threads 2 --steps 20 --compile              the same through torch.compile
  torch_peer.py --device cuda --math tf32 --packed --compile --steps 400
  torch_peer.py --data rbf.csv --steps 300 --log curve.csv    a learning curve
  torch_peer.py --check --batch 4                             both arrangements agree

A compilation that takes longer than --compile-limit seconds is given up, and the same step runs
uncompiled; the line of results says which it was.

Data come as the CSV that `mnp gen` writes (function,x,y; functions of equal length) or as .npy of
shape (functions, points, 2); without --data smooth random curves are made up, for timing.
"""
import argparse
import csv
import math
import os
import statistics
import sys
import threading
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

T, BINS, BOUND, LEAST = 7, 10, 5.0, 1e-3
WIDTH, HEADS, FREQUENCIES, D_Z, D_R, FLOW, HEAD = 64, 4, 80, 128, 64, 128, 64
SIGMA_FLOOR = 0.05


def xavier(fan_in, fan_out, *shape, gain=1.0):
    a = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return nn.Parameter(torch.empty(*shape).uniform_(-a, a))


def zeros(*shape):
    return nn.Parameter(torch.zeros(*shape))


class Attention(nn.Module):
    """What follows the projections of a block: q + attention, then x + relu(x W + b)."""

    def __init__(self, plain):
        super().__init__()
        self.w, self.b, self.plain = xavier(WIDTH, WIDTH, WIDTH, WIDTH), zeros(WIDTH), plain

    def forward(self, q, k, v, mask):
        def split(a):
            return a.view(a.shape[0], a.shape[1], HEADS, -1).transpose(1, 2)

        qh, kh, vh, scale = split(q), split(k), split(v), 1.0 / math.sqrt(WIDTH)
        if self.plain:
            scores = (qh @ kh.transpose(2, 3)) * scale
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf)
            mixed = scores.softmax(-1) @ vh
        else:
            mixed = F.scaled_dot_product_attention(qh, kh, vh, attn_mask=mask, scale=scale)
        o = q + mixed.transpose(1, 2).reshape(q.shape)
        return o + torch.relu(F.linear(o, self.w, self.b))


class Encoder(nn.Module):
    """SAB, SAB, PMA, linear. Projections of q, k and v are one product."""

    def __init__(self, plain):
        super().__init__()
        features = 2 * FREQUENCIES
        self.w_phi = xavier(features + 1, WIDTH, 3 * WIDTH, features)
        self.w_y = xavier(features + 1, WIDTH, 3 * WIDTH)
        self.b0 = zeros(3 * WIDTH)
        self.w1, self.b1 = xavier(WIDTH, WIDTH, 3 * WIDTH, WIDTH), zeros(3 * WIDTH)
        self.seed = xavier(1, WIDTH, 1, WIDTH)
        self.w_q, self.b_q = xavier(WIDTH, WIDTH, WIDTH, WIDTH), zeros(WIDTH)
        self.w_kv, self.b_kv = xavier(WIDTH, WIDTH, 2 * WIDTH, WIDTH), zeros(2 * WIDTH)
        self.sab0, self.sab1, self.pma = Attention(plain), Attention(plain), Attention(plain)
        self.w_r, self.b_r = xavier(WIDTH, D_R, D_R, WIDTH), zeros(D_R)
        self.empty = xavier(1, D_R, 1, D_R)

    def prepare(self, phi):
        return F.linear(phi, self.w_phi, self.b0)

    def points(self, prepared, y):
        return prepared + y.unsqueeze(-1) * self.w_y

    def summary(self, qkv, mask):
        h = self.sab0(*qkv.chunk(3, -1), mask)
        h = self.sab1(*F.linear(h, self.w1, self.b1).chunk(3, -1), mask)
        q = F.linear(self.seed, self.w_q, self.b_q).expand(h.shape[0], 1, WIDTH)
        k, v = F.linear(h, self.w_kv, self.b_kv).chunk(2, -1)
        return F.linear(self.pma(q, k, v, mask).squeeze(1), self.w_r, self.b_r)


class Head(nn.Module):
    """MLP([z_{t+1}, r]), two hidden layers; the top step has z = 0 and no weights for it."""

    def __init__(self, top):
        super().__init__()
        self.w_z = None if top else xavier(D_R + D_Z, HEAD, HEAD, D_Z)
        self.w_r, self.b0 = xavier(D_R + D_Z, HEAD, HEAD, D_R), zeros(HEAD)
        self.w1, self.b1 = xavier(HEAD, HEAD, HEAD, HEAD), zeros(HEAD)
        self.w2, self.b2 = xavier(HEAD, D_Z, D_Z, HEAD), zeros(D_Z)

    def forward(self, r, z):
        """r (2, B, D_R): of the whole set and of the context; z (B, D_Z) or None."""
        h = F.linear(r, self.w_r, self.b0)
        if z is not None:
            h = h + F.linear(z, self.w_z)
        h = torch.relu(F.linear(torch.relu(h), self.w1, self.b1))
        return F.linear(h, self.w2, self.b2)


class Flow(nn.Module):
    """The conditioner MLP([phi, z]) of one step; its product with phi comes from outside."""

    def __init__(self):
        super().__init__()
        out, features = 3 * BINS - 1, 2 * FREQUENCIES
        self.w_x = xavier(features + D_Z, FLOW, FLOW, features)
        self.w_z, self.b0 = xavier(features + D_Z, FLOW, FLOW, D_Z), zeros(FLOW)
        self.w1, self.b1 = xavier(FLOW, FLOW, FLOW, FLOW), zeros(FLOW)
        self.w2, self.b2 = xavier(FLOW, out, out, FLOW, gain=0.1), zeros(out)

    def forward(self, phi, z):
        h = F.linear(phi, self.w_x, self.b0) + F.linear(z, self.w_z).unsqueeze(1)
        return F.linear(torch.relu(F.linear(torch.relu(h), self.w1, self.b1)), self.w2, self.b2)


def knots(raw):
    """(.., K) raw sizes -> (.., K+1) knots from -BOUND to BOUND."""
    share = LEAST + (1.0 - BINS * LEAST) * raw.softmax(-1)
    inner = 2 * BOUND * share[..., :-1].cumsum(-1) - BOUND
    return F.pad(F.pad(inner, (1, 0), value=-BOUND), (0, 1), value=BOUND)


def spline(y, raw):
    """Rational-quadratic map data -> noise and its log-derivative; identity beyond BOUND."""
    x_knot, y_knot = knots(raw[..., :BINS]), knots(raw[..., BINS : 2 * BINS])
    slope = F.pad(LEAST + F.softplus(raw[..., 2 * BINS :]), (1, 1), value=1.0)
    inside = (y >= -BOUND) & (y <= BOUND)
    at = torch.where(inside, y, torch.zeros_like(y)).unsqueeze(-1)
    k = (at >= x_knot[..., 1:-1]).sum(-1, keepdim=True)
    both = torch.cat([k, k + 1], -1)
    (x0, x1), (y0, y1) = x_knot.gather(-1, both).unbind(-1), y_knot.gather(-1, both).unbind(-1)
    d0, d1 = slope.gather(-1, both).unbind(-1)
    w, h = x1 - x0, y1 - y0
    s, theta = h / w, (at.squeeze(-1) - x0) / w
    p = theta * (1 - theta)
    low = s * (1 - 2 * p) + (d0 + d1) * p
    out = y0 + h * (s * theta * theta + d0 * p) / low
    m = d1 * theta * theta + 2 * s * p + d0 * (1 - theta) ** 2
    logdet = 2 * s.log() + m.log() - 2 * low.log()
    return torch.where(inside, out, y), torch.where(inside, logdet, torch.zeros_like(y))


class Peer(nn.Module):
    def __init__(self, math_mode, plain):
        super().__init__()
        self.register_buffer("frequency", torch.randn(FREQUENCIES))
        self.encoder = Encoder(plain)
        self.mu = nn.ModuleList([Head(t == T - 1) for t in range(T)])
        self.raw = nn.ModuleList([Head(t == T - 1) for t in range(T)])
        self.flow = nn.ModuleList([Flow() for t in range(T)])
        self.bf16 = math_mode == "bf16"

    def features(self, x):
        turns = x.unsqueeze(-1) * self.frequency
        angle = 2 * math.pi * (turns - turns.round())
        return torch.cat([angle.cos(), angle.sin()], -1).detach()

    def encode(self, prepared, y, width, mask, has_context):
        """r of the whole set and of the context: (2, B, D_R)."""
        with torch.autocast(y.device.type, torch.bfloat16, enabled=self.bf16):
            rows = self.encoder.points(prepared, y)
            full = self.encoder.summary(rows, None)
            part = self.encoder.summary(rows[:, :width], mask)
        part = torch.where(has_context, part.float(), self.encoder.empty)
        return torch.stack([full.float(), part])

    def forward(self, x, y, eps, width, mask, has_context):
        """x, y (B, n), context first; eps (T, B, D_Z); mask (B, 1, 1, width) or None.

        -> loss and KL per point."""
        n, phi = y.shape[1], self.features(x)
        with torch.autocast(y.device.type, torch.bfloat16, enabled=self.bf16):
            prepared = self.encoder.prepare(phi)
        z, kl, logp = None, 0.0, 0.0
        for t in reversed(range(T)):
            r = self.encode(prepared, y, width, mask, has_context)
            mu_q, mu_p = self.mu[t](r, z).unbind(0)
            sigma = SIGMA_FLOOR + (1 - SIGMA_FLOOR) * torch.sigmoid(self.raw[t](r, z))
            s_q, s_p = sigma.unbind(0)
            z = mu_q + s_q * eps[t]
            kl = kl + ((s_p / s_q).log() + (s_q**2 + (mu_q - mu_p) ** 2) / (2 * s_p**2) - 0.5).sum(1)
            y, logdet = spline(y, self.flow[t](phi, z))
            logp = logp + logdet
        logp = (logp - 0.5 * y * y - 0.5 * math.log(2 * math.pi)).sum(1)
        return ((kl - logp) / n).mean(), (kl / n).mean()


def named(net, of=lambda p: p):
    """The weights, or what `of` takes from them (their gradients), as mnp names them: (in, out)."""
    def dense(name, w, b):
        return {f"{name}.w": of(w).T, f"{name}.b": of(b)[None]}

    e = net.encoder
    out = {"features.freq": net.frequency[:, None], "enc.0.qkv.wphi": of(e.w_phi).T, "enc.0.qkv.wy": of(e.w_y)[None],
           "enc.0.qkv.b": of(e.b0)[None], "enc.pool.seed": of(e.seed), "enc.empty": of(e.empty),
           **dense("enc.0.out", e.sab0.w, e.sab0.b), **dense("enc.1.qkv", e.w1, e.b1),
           **dense("enc.1.out", e.sab1.w, e.sab1.b), **dense("enc.pool.q", e.w_q, e.b_q),
           **dense("enc.pool.kv", e.w_kv, e.b_kv), **dense("enc.pool.out", e.pma.w, e.pma.b),
           **dense("enc.r", e.w_r, e.b_r)}
    for t in range(T):
        for what, h in (("mu", net.mu[t]), ("sigma", net.raw[t]), ("flow", net.flow[t])):
            name = f"{what}.{t + 1}"
            first = {"wx": h.w_x} if what == "flow" else {"wr": h.w_r}
            if h.w_z is not None:
                first["wz"] = h.w_z
            out.update({f"{name}.0.{k}": of(v).T for k, v in first.items()})
            out.update({f"{name}.0.b": of(h.b0)[None], **dense(f"{name}.1", h.w1, h.b1),
                        **dense(f"{name}.2", h.w2, h.b2)})
    return out


def packed(net, o, width, points, how):
    """The same weights in the arrangement of torch_packed.py."""
    import torch_packed
    from torch_chain import Shape
    return torch_packed.Packed(Shape(), named(net), o.batch, points, points, width, o.attention == "plain",
                               net.bf16, how)


# ---- data ------------------------------------------------------------------------------------


def read_data(path):
    """-> x, y (functions, points)"""
    if path.endswith(".npy"):
        both = np.load(path)
        return both[..., 0].astype(np.float32), both[..., 1].astype(np.float32)
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    functions = len(np.unique(rows[:, 0]))
    return tuple(rows[:, k].reshape(functions, -1).astype(np.float32) for k in (1, 2))


def made_up(functions, points, rng):
    x = np.sort(rng.uniform(-2, 2, (functions, points)), 1).astype(np.float32)
    a, f, c = (rng.normal(size=(functions, 1, 4)) for _ in range(3))
    y = (a * np.sin(3 * f * x[..., None] + 3 * c)).sum(-1) / 2
    return x, (y + 0.01 * rng.normal(size=y.shape)).astype(np.float32)


class Batches:
    """Endless epochs over the functions, points in random order, m points of context first."""

    def __init__(self, o, device):
        self.rng = np.random.default_rng(o.seed)
        x, y = read_data(o.data) if o.data else made_up(1000, 128, self.rng)
        self.x, self.y, self.o = torch.tensor(x), torch.tensor(y), o
        self.lo, self.hi = (int(v) for v in o.context.split(":"))
        self.device, self.queue = device, np.empty(0, np.int64)

    def next(self):
        while len(self.queue) < self.o.batch:
            self.queue = np.concatenate([self.queue, self.rng.permutation(len(self.x))])
        which, self.queue = self.queue[: self.o.batch], self.queue[self.o.batch :]
        n = self.x.shape[1]
        order = torch.tensor(np.argsort(self.rng.random((len(which), n)), 1))
        m = self.rng.integers(self.lo, self.hi + 1, len(which))
        m[self.rng.random(len(which)) < self.o.p_empty] = 0
        m = torch.tensor(m)
        x, y = (a[torch.tensor(which)].gather(1, order) for a in (self.x, self.y))
        # An empty context may look at one point: its summary is replaced, and no row is all masked.
        mask = torch.arange(self.hi)[None, :] < m.clamp(min=1)[:, None]
        parts = x, y, mask[:, None, None, :], (m > 0)[:, None]
        return tuple(a.to(self.device) for a in parts)


# ---- training --------------------------------------------------------------------------------


def rate(step, o):
    warmup = min(1000, o.schedule_steps // 20)
    up = (step + 1) / warmup if step + 1 < warmup else 1.0
    return o.lr * up * 0.5 * (1 + math.cos(math.pi * min(step / o.schedule_steps, 1.0)))


def start_again(why):
    """The same command without compiling, in this process. A compiler that is stopped half-way
    leaves half-loaded modules behind, and may take an exception for its own."""
    print(why, file=sys.stderr, flush=True)
    rest = [a for a in sys.argv if a != "--compile"]
    os.execv(sys.executable, [sys.executable] + rest + ["--gave-up", why])


class Trainer:
    def __init__(self, o):
        self.o, self.device, self.cuda = o, torch.device(o.device), o.device == "cuda"
        self.batches = Batches(o, self.device)
        self.x, self.y, self.mask, self.some = self.batches.next()
        self.masked = self.batches.lo != self.batches.hi or o.p_empty > 0
        self.eps = torch.empty(T, o.batch, D_Z, device=self.device)
        self.preparing = 0.0
        if o.compile:
            self.build_in_time()
        else:
            self.build(False)
        self.graph = self.capture() if self.cuda and o.graph else None

    def build(self, compiled):
        """The network and its optimiser; a first step, so that all is compiled."""
        o = self.o
        torch.manual_seed(o.seed)
        net = Peer(o.math, o.attention == "plain").to(self.device)

        def how(f):
            return torch.compile(f, dynamic=False, mode=o.compile_mode) if compiled else f

        if o.packed:
            self.net = self.loss_of = packed(net, o, self.batches.hi, self.x.shape[1], how).to(self.device)
        else:
            self.net, self.loss_of = net, how(net)
        self.rate = torch.tensor(0.0 if compiled else o.lr, device=self.device)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=self.rate, fused=True,
                                     capturable=self.cuda)
        if compiled:
            self.body()  # at rate 0
            self.forget()

    def build_in_time(self):
        # a thread, as the one that compiles may be waiting for the backward pass and hear no signal
        start, why = time.perf_counter(), f"not compiled within {self.o.compile_limit} s"
        watch = threading.Timer(self.o.compile_limit, start_again, [why])
        watch.daemon = True
        watch.start()
        try:
            self.build(True)
        except Exception as error:
            why = str(error).strip().splitlines() or [""]
            start_again(f"not compiled ({type(error).__name__}: {why[0][:120]})")
        watch.cancel()
        self.preparing = time.perf_counter() - start

    def forget(self):
        for state in self.adam.state.values():
            for value in state.values():
                value.zero_()

    def body(self):
        self.eps.normal_()
        mask = self.mask if self.masked else None
        self.adam.zero_grad(set_to_none=True)
        self.loss, self.kl = self.loss_of(
            self.x, self.y, self.eps, self.batches.hi, mask, self.some)
        self.loss.backward()
        self.adam.step()

    def capture(self):
        self.rate.fill_(0.0)  # the steps before the capture must not train
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self.body()
        torch.cuda.current_stream().wait_stream(side)
        self.adam.zero_grad(set_to_none=True)
        self.loss = self.kl = None
        torch.cuda.synchronize()
        self.forget()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.body()
        return graph

    def run(self, batch, number):
        for to, fresh in zip((self.x, self.y, self.mask, self.some), batch):
            to.copy_(fresh)
        self.rate.fill_(rate(number, self.o))
        if self.graph:
            self.graph.replay()
        else:
            self.body()
        return self.loss.detach(), self.kl.detach()

    def step(self, number):
        return self.run(self.batches.next(), number)


def run_on_cuda(trainer, o):
    """Milliseconds a step by the device's clock, in rounds of ten; batches drawn beforehand."""
    each, ring = 10, [trainer.batches.next() for _ in range(16)]
    marks, number = [torch.cuda.Event(enable_timing=True)], 0
    for k in range(max(o.warm, 1)):
        trainer.run(ring[k % len(ring)], k)
    marks[0].record()
    while number < o.steps:
        for _ in range(each):
            loss, kl = trainer.run(ring[number % len(ring)], o.warm + number)
            number += 1
        marks.append(torch.cuda.Event(enable_timing=True))
        marks[-1].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / each for a, b in zip(marks, marks[1:])], loss


def run_steps(trainer, o):
    """-> milliseconds of each step and of the processor's time in it, loss, rows of the log"""
    lines, times, busy = [], [], []
    for k in range(o.steps):
        start, cpu = time.perf_counter(), time.process_time()
        loss, kl = trainer.step(k)
        if o.log:
            lines.append((k + 1, float(loss), float(kl)))
        times.append(1e3 * (time.perf_counter() - start))
        busy.append(1e3 * (time.process_time() - cpu))
    kept = o.warm if o.steps > o.warm else 0
    return times[kept:], busy[kept:], loss, lines


def check(o):
    """Loss and gradients of both arrangements from the same weights, data and noise."""
    from torch_chain import Shape
    from torch_packed import pack
    torch.manual_seed(o.seed)
    device = torch.device(o.device)
    net = Peer(o.math, True).to(device)
    for p in net.parameters():  # zero biases would hide what is done with them
        if p.dim() == 1:
            nn.init.uniform_(p, -0.1, 0.1)
    how = (lambda f: torch.compile(f, dynamic=False)) if o.compile else (lambda f: f)
    batches = Batches(o, device)
    x, y, mask, some = batches.next()
    fast = packed(net, o, batches.hi, x.shape[1], how).to(device)
    mask = mask if batches.lo != batches.hi or o.p_empty > 0 else None
    eps = torch.randn(T, o.batch, D_Z, device=device)
    losses = []
    for f in (net, fast):
        loss, kl = f(x, y, eps, batches.hi, mask, some)
        loss.backward()
        losses.append((loss.item(), kl.item()))
    want = pack(Shape(), named(net, lambda p: torch.zeros_like(p) if p.grad is None else p.grad))
    off = {k: ((v.grad - want[k]).norm() / want[k].norm()).item() for k, v in fast.flat.items()}
    if o.math != "fp32":  # small parts of the gradient are mostly rounding there
        off = {"all": math.sqrt(sum((v.grad - want[k]).norm().item() ** 2 for k, v in
                                    fast.flat.items()) / sum(v.norm().item() ** 2
                                                               for v in want.values()))}
    worst = max(off, key=off.get)
    bar = 0.05 if o.math == "bf16" else 1e-2 if o.math == "tf32" else 1e-4
    ok = off[worst] <= bar and abs(losses[0][0] - losses[1][0]) <= bar * abs(losses[0][0])
    print(f"loss {losses[0][0]:.6f} {losses[1][0]:.6f}, KL {losses[0][1]:.6f} {losses[1][1]:.6f},"
          f" gradients off by at most {off[worst]:.1e} ({worst}), allowed {bar:.0e}:"
          f" {'they agree' if ok else 'THEY DIFFER'}")
    return 0 if ok else 1


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--math", choices=["fp32", "tf32", "bf16"], default="fp32",
                   help="bf16: the encoder; the rest of it as tf32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=20, help="steps to run")
    p.add_argument("--schedule-steps", type=int, help="length of the schedule (default: --steps)")
    p.add_argument("--warm", type=int, default=3, help="first steps that are not timed")
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--context", default="50:50", help="context sizes lo:hi")
    p.add_argument("--p-empty", type=float, default=0.0, help="probability of an empty context")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--data", help="CSV of mnp gen, or .npy (functions, points, 2)")
    p.add_argument("--packed", action="store_true", help="the arrangement of torch_packed.py")
    p.add_argument("--compile", action="store_true", help="torch.compile")
    p.add_argument("--compile-mode", default="default", help="of torch.compile")
    p.add_argument("--compile-limit", type=int, default=600, help="seconds; then uncompiled")
    p.add_argument("--attention", choices=["sdpa", "plain"], default="sdpa")
    p.add_argument("--no-graph", dest="graph", action="store_false", help="cuda: no graph capture")
    p.add_argument("--hold", metavar="FIFO", help="when all is compiled and captured make the file "
                   "FIFO.ready and wait for a line from FIFO before the clock starts")
    p.add_argument("--gave-up", help=argparse.SUPPRESS)  # why it is not compiled
    p.add_argument("--log", help="CSV of step,loss,kl")
    p.add_argument("--check", action="store_true", help="compare both arrangements, and end")
    o = p.parse_args()
    o.schedule_steps = o.schedule_steps or o.steps
    if o.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_peer.py: PyTorch finds no GPU here")
    return o


def wait_for_turn(fifo):
    open(fifo + ".ready", "w").close()
    with open(fifo) as f:
        f.readline()


def main():
    o = options()
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("highest" if o.math == "fp32" else "high")
    if o.check:
        return check(o)
    trainer = Trainer(o)
    if o.hold:
        wait_for_turn(o.hold)
    cpu = ""
    if trainer.cuda and not o.log:
        timed, loss = run_on_cuda(trainer, o)
    else:
        timed, busy, loss, lines = run_steps(trainer, o)
        cpu = f" cpu_best {min(busy):.2f}"
    if o.log:
        with open(o.log, "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["step", "loss", "kl"])
            out.writerows(lines)
    how = f"compiled in {trainer.preparing:.0f} s" if o.compile else "eager"
    if o.gave_up:
        how += f" ({o.gave_up})"
    print(f"torch {torch.__version__} {o.device} {o.math} {'packed' if o.packed else 'unpacked'}"
          f" {how}{' captured' if trainer.graph else ''} {o.attention} threads {o.threads}"
          f" batch {o.batch} steps {o.steps}:"
          f" ms_per_step {statistics.median(timed):.3f} best {min(timed):.3f}{cpu}"
          f" loss {loss.item():.4f}")
    return 0 if math.isfinite(loss.item()) else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the compiler's workers need not be waited for
