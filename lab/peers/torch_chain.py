"""The chain of mnp in PyTorch for any of its options: what it computes, written down plainly.

Weights are a dict under mnp's own names, matrices (in, out). Sets are masked, nothing is shared or
arranged: this is what torch_packed.py, the fast arrangement, is compared with, and what is compared
with mnp itself:

  mnp train --data rbf --set ... --steps 1 --out m.safetensors
  mnp gen rbf --split test --seed 3 --functions 4 --out sets.npz
  mnp eval m.safetensors --data rbf --functions 4 --seed 3 --samples 5 --protocol authors --json
  torch_chain.py m.safetensors sets.npz --seed 3 --samples 5      the same bound, in nats per point

torch_chain.py --check MNP does this for many options and says where they differ.
"""
import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from mnp_file import latent_noise, read_model


@dataclasses.dataclass(frozen=True)
class Shape:
    """Options of the model, as mnp names them, that change what is computed."""
    x_dim: int = 1
    T: int = 7
    transition: str = "rqs"
    encoder: str = "sab"
    rff: int = 80
    rff_append_x: bool = False
    d_z: int = 128
    d_r: int = 64
    head_hidden: int = 64
    head_layers: int = 2
    sigma_z: str = "sigmoid"
    sigma_z_floor: float = 0.05
    enc_width: int = 64
    heads: int = 4
    n_sab: int = 2
    n_inducing: int = 32
    ds_layers: int = 2
    enc_out_relu: bool = False
    layer_norm: bool = False
    pool: str = "mean"
    flow_hidden: int = 128
    flow_layers: int = 2
    bins: int = 10
    bound: float = 5.0
    min_width: float = 1e-3
    min_height: float = 1e-3
    min_derivative: float = 1e-3
    kappa: float = 5.0
    kl_weight: float = 1.0
    objective: str = "elbo"
    train_score: str = "all"

    @classmethod
    def of(cls, options):
        """From all options of a model, those that are not of the chain left out."""
        for name, only in (("kl", "analytic"), ("sigma_z", "sigmoid"), ("attend", False)):
            if options.get(name, only) != only:
                raise ValueError(f"the peer has no {name}={'on' if options[name] is True else options[name]}")
        if options.get("transition") == "affine" and options.get("kappa") == 0:
            raise ValueError("the peer has no softplus in affine maps: kappa=0")
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in options.items() if k in known})

    @property
    def features(self):
        return 2 * self.rff + (self.x_dim if self.rff_append_x else 0) if self.rff else self.x_dim

    @property
    def numbers(self):
        """that a map takes at every point"""
        return 3 * self.bins - 1 if self.transition == "rqs" else 2


# ---- weights ---------------------------------------------------------------------------------


def layer(out, name, rows, cols):
    out[f"{name}.w"], out[f"{name}.b"] = (rows, cols), (1, cols)


def block(out, s, name):
    layer(out, f"{name}.out", s.enc_width, s.enc_width)
    for k in (0, 1) if s.layer_norm else ():
        out[f"{name}.norm{k}.gain"] = out[f"{name}.norm{k}.shift"] = (1, s.enc_width)


def declare_encoder(out, s):
    d, f = s.enc_width, s.features
    if s.encoder == "deepset":
        out.update({"enc.0.wphi": (f, d), "enc.0.b": (1, d), "enc.0.wy": (1, d)})
        for k in range(1, s.ds_layers + 1):
            layer(out, f"enc.{k}", d, d)
    else:
        out.update({"enc.0.qkv.wphi": (f, 3 * d), "enc.0.qkv.b": (1, 3 * d), "enc.0.qkv.wy": (1, 3 * d)})
        for k in range(s.n_sab):
            if k:
                layer(out, f"enc.{k}.qkv", d, 3 * d)
            if s.encoder == "sab":
                block(out, s, f"enc.{k}")
                continue
            out[f"enc.{k}.inducing"] = (s.n_inducing, d)
            layer(out, f"enc.{k}.inner.q", d, d)
            block(out, s, f"enc.{k}.inner")
            layer(out, f"enc.{k}.outer.kv", d, 2 * d)
            block(out, s, f"enc.{k}.outer")
        out["enc.pool.seed"] = (1, d)
        layer(out, "enc.pool.q", d, d)
        layer(out, "enc.pool.kv", d, 2 * d)
        block(out, s, "enc.pool")
    layer(out, "enc.r", d, s.d_r)
    out["enc.empty"] = (1, s.d_r)


def declare(s):
    """Shapes of all weights that are trained, by name."""
    out = {}
    declare_encoder(out, s)
    for t in range(1, s.T + 1):
        for what in ("mu", "sigma"):
            width = s.head_hidden if s.head_layers else s.d_z
            out[f"{what}.{t}.0.wr"], out[f"{what}.{t}.0.b"] = (s.d_r, width), (1, width)
            if t < s.T:
                out[f"{what}.{t}.0.wz"] = (s.d_z, width)
            for k in range(1, s.head_layers + 1):
                layer(out, f"{what}.{t}.{k}", width, s.d_z if k == s.head_layers else width)
        out[f"flow.{t}.0.wx"] = (s.features, s.flow_hidden)
        out[f"flow.{t}.0.wz"], out[f"flow.{t}.0.b"] = (s.d_z, s.flow_hidden), (1, s.flow_hidden)
        for k in range(1, s.flow_layers + 1):
            layer(out, f"flow.{t}.{k}", s.flow_hidden,
                  s.numbers if k == s.flow_layers else s.flow_hidden)
    return out


def draw_weights(s, generator=None, biases=0.0):
    """Xavier's, gains of one; biases uniform up to a number, which makes them seen in checks."""
    w = {"features.freq": torch.randn(s.rff, s.x_dim, generator=generator)}
    for name, (rows, cols) in declare(s).items():
        noise = 2 * torch.rand(rows, cols, generator=generator) - 1
        if name.endswith(".gain"):
            w[name] = 1 + biases * noise
        elif name.endswith((".b", ".shift")):
            w[name] = biases * noise
        else:
            gain = 0.1 if name.startswith("flow") and name.endswith(f".{s.flow_layers}.w") else 1.0
            w[name] = gain * math.sqrt(6 / (rows + cols)) * noise
    return w


# ---- the chain -------------------------------------------------------------------------------


def features(s, x, frequency):
    """x (..., X) -> (..., features)"""
    if not s.rff:
        return x
    turns = x.double() @ frequency.double().T
    angle = 2 * math.pi * (turns - turns.round())
    phi = [angle.cos().to(x.dtype), angle.sin().to(x.dtype)]
    return torch.cat(phi + [x] * s.rff_append_x, -1)


def dense(w, name, x):
    return x @ w[f"{name}.w"] + w[f"{name}.b"]


def norm(s, w, name, x):
    if not s.layer_norm:
        return x
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.gain"][0], w[f"{name}.shift"][0])


def mab(s, w, name, q, k, v, mask):
    """q (..., a, D), k and v (..., b, D), mask (..., b): which of k count."""
    def split(a):
        return a.unflatten(-1, (s.heads, -1)).transpose(-2, -3)

    scores = split(q) @ split(k).transpose(-1, -2) / math.sqrt(s.enc_width)
    if mask is not None:
        scores = scores.masked_fill(~mask[..., None, None, :], -math.inf)
    share = scores.softmax(-1).nan_to_num(0.0)  # of an empty set
    o = norm(s, w, f"{name}.norm0", q + (share @ split(v)).transpose(-2, -3).flatten(-2))
    return norm(s, w, f"{name}.norm1", o + torch.relu(dense(w, f"{name}.out", o)))


def attend(s, w, k, h, qkv, mask):
    q, key, v = qkv.chunk(3, -1)
    if s.encoder == "sab":
        return mab(s, w, f"enc.{k}", q, key, v, mask)
    seeds = dense(w, f"enc.{k}.inner.q", w[f"enc.{k}.inducing"])
    seeds = mab(s, w, f"enc.{k}.inner", seeds.expand(*qkv.shape[:-2], *seeds.shape), key, v, mask)
    return mab(s, w, f"enc.{k}.outer", q, *dense(w, f"enc.{k}.outer.kv", seeds).chunk(2, -1), None)


def summary(s, w, phi, y, mask):
    """phi (B, n, F), y (..., B, n), mask (B, n) -> r (..., B, D_R)"""
    name = "enc.0" if s.encoder == "deepset" else "enc.0.qkv"
    first = phi @ w[f"{name}.wphi"] + w[f"{name}.b"] + y.unsqueeze(-1) * w[f"{name}.wy"]
    if s.encoder == "deepset":
        h = torch.relu(first)
        for k in range(1, s.ds_layers + 1):
            h = dense(w, f"enc.{k}", h)
            h = torch.relu(h) if k < s.ds_layers else h
        pooled = (h * mask.unsqueeze(-1)).sum(-2)
        if s.pool == "mean":
            pooled = pooled / mask.sum(-1, keepdim=True).clamp(min=1)
        return torch.relu(dense(w, "enc.r", pooled))
    h = None
    for k in range(s.n_sab):
        h = attend(s, w, k, h, first if k == 0 else dense(w, f"enc.{k}.qkv", h), mask)
    seed = dense(w, "enc.pool.q", w["enc.pool.seed"])
    h = mab(s, w, "enc.pool", seed.expand(*h.shape[:-2], *seed.shape),
            *dense(w, "enc.pool.kv", h).chunk(2, -1), mask)
    r = dense(w, "enc.r", h.squeeze(-2))
    return torch.relu(r) if s.enc_out_relu else r


def perceptron(w, name, h, layers):
    """What follows the first layer, h before its ReLU."""
    for k in range(1, layers + 1):
        h = dense(w, f"{name}.{k}", torch.relu(h))
    return h


def head(s, w, name, r, z):
    h = r @ w[f"{name}.0.wr"] + w[f"{name}.0.b"]
    if z is not None:
        h = h + z @ w[f"{name}.0.wz"]
    return perceptron(w, name, h, s.head_layers)


def knots(raw, least, bound):
    share = least + (1.0 - raw.shape[-1] * least) * raw.softmax(-1)
    inner = 2 * bound * share[..., :-1].cumsum(-1) - bound
    return F.pad(F.pad(inner, (1, 0), value=-bound), (0, 1), value=bound)


def spline(s, y, raw):
    """Rational-quadratic map data -> noise and its log-derivative; identity beyond the bound."""
    b = s.bins
    x_knot, y_knot = knots(raw[..., :b], s.min_width, s.bound), knots(raw[..., b : 2 * b], s.min_height, s.bound)
    slope = F.pad(s.min_derivative + F.softplus(raw[..., 2 * b :]), (1, 1), value=1.0)
    inside = (y >= -s.bound) & (y <= s.bound)
    at = torch.where(inside, y, torch.zeros_like(y)).unsqueeze(-1)
    k = (at >= x_knot[..., 1:-1]).sum(-1, keepdim=True)
    both = torch.cat([k, k + 1], -1)
    (x0, x1), (y0, y1) = x_knot.gather(-1, both).unbind(-1), y_knot.gather(-1, both).unbind(-1)
    d0, d1 = slope.gather(-1, both).unbind(-1)
    w, h = x1 - x0, y1 - y0
    ratio, theta = h / w, (at.squeeze(-1) - x0) / w
    p = theta * (1 - theta)
    low = ratio * (1 - 2 * p) + (d0 + d1) * p
    out = y0 + h * (ratio * theta * theta + d0 * p) / low
    m = d1 * theta * theta + 2 * ratio * p + d0 * (1 - theta) ** 2
    logdet = 2 * ratio.log() + m.log() - 2 * low.log()
    return torch.where(inside, out, y), torch.where(inside, logdet, torch.zeros_like(y))


def affine(s, y, raw):
    a = s.kappa * torch.tanh(raw[..., 1] / s.kappa)
    return (y - raw[..., 0]) * torch.exp(-a), -a


def sigma_of(s, raw):
    return s.sigma_z_floor + (1 - s.sigma_z_floor) * torch.sigmoid(raw)


def walk(s, w, x, y, eps, m, k):
    """x (B, n, X), y (B, n), eps (T, S, B, D_Z), m (B) points of context, k seen by the posterior.

    -> log-density of each point (S, B, n); KL and log p(z) / q(z), both (S, B)"""
    phi, place = features(s, x, w.get("features.freq")), torch.arange(y.shape[1], device=y.device)
    given, seen = place < m[:, None], (place < k).expand(*y.shape)
    y, z, logdet, kl, ratio = y[None], None, 0.0, 0.0, 0.0
    for t in range(s.T, 0, -1):
        r_p = torch.where((m > 0)[:, None], summary(s, w, phi, y, given), w["enc.empty"])
        r_q = summary(s, w, phi, y, seen)
        (mu_q, s_q), (mu_p, s_p) = ((head(s, w, f"mu.{t}", r, z), sigma_of(s, head(s, w, f"sigma.{t}", r, z)))
                                    for r in (r_q, r_p))
        z = mu_q + s_q * eps[t - 1]
        kl = kl + ((s_p / s_q).log() + (s_q**2 + (mu_q - mu_p) ** 2) / (2 * s_p**2) - 0.5).sum(-1)
        ratio = ratio + ((s_q / s_p).log() + 0.5 * eps[t - 1]**2 - 0.5 * ((z - mu_p) / s_p) ** 2).sum(-1)
        h = (phi @ w[f"flow.{t}.0.wx"] + w[f"flow.{t}.0.b"]) + (z @ w[f"flow.{t}.0.wz"]).unsqueeze(-2)
        y, d = (spline if s.transition == "rqs" else affine)(s, y, perceptron(w, f"flow.{t}", h, s.flow_layers))
        logdet = logdet + d
    return logdet - 0.5 * y * y - 0.5 * math.log(2 * math.pi), kl, ratio


def scored(s, n, m, k):
    """(B, n): the points that training scores."""
    first = torch.zeros_like(m) if s.train_score == "all" else torch.full_like(m, k) if k < n else m
    return torch.arange(n, device=m.device) >= first[:, None]


def loss_of(s, w, x, y, eps, m, k):
    """-> loss and KL per point, as training has them"""
    logp, kl, ratio = walk(s, w, x, y, eps, m, k)
    which = scored(s, y.shape[1], m, k)
    points, logp = which.sum(-1).clamp(min=1), (logp * which).sum(-1)
    if s.objective == "iwae":
        score = (logp + ratio).logsumexp(0) - math.log(eps.shape[1])
    else:
        score = (logp - s.kl_weight * kl).mean(0)
    return (-score / points).mean(), (kl.mean(0) / points).mean()


# ---- beside mnp ------------------------------------------------------------------------------


def bound(path, sets, seed, samples):
    """What mnp eval --protocol authors gives for these sets: mean over sets of nats per point."""
    options, weights = read_model(path)
    s = Shape.of(options)
    data = np.load(sets)
    assert data["mask"].all(), "sets of one size"
    scale = {k: weights.pop(f"scale.{k}").astype(np.float64) for k in "xy"}
    missing = set(weights) ^ ({"features.freq"} if s.rff else set()) ^ set(declare(s))
    assert not missing, f"weights that only one side has: {sorted(missing)}"
    w = {k: torch.tensor(v, dtype=torch.float64) for k, v in weights.items()}
    x = (data["x"] - scale["x"][0]) / scale["x"][1]
    y = (data["y"] - scale["y"].reshape(-1)[0]) / scale["y"].reshape(-1)[1]
    eps = latent_noise(seed, len(y), samples, s.T, s.d_z)
    with torch.no_grad():
        logp, _, ratio = walk(s, w, torch.tensor(x), torch.tensor(y), torch.tensor(eps).double(),
                              torch.tensor(data["context"]), y.shape[1])
    score = (logp.sum(-1) + ratio).logsumexp(0) - math.log(samples)
    return float((score / y.shape[1]).mean() - math.log(scale["y"].reshape(-1)[1]))


CHECKED = ["", "enc_width=32 heads=4 T=3", "enc_width=48 heads=2 d_z=20 flow_hidden=40", "encoder=isab n_inducing=5 n_sab=2",
           "encoder=deepset ds_layers=3", "encoder=deepset pool=sum transition=affine", "transition=affine", "layer_norm=on",
           "encoder=isab layer_norm=on enc_out_relu=on", "head_layers=1 flow_layers=1 rff_append_x=on",
           "head_layers=0 flow_layers=3 bins=6 bound=3", "rff=0 T=2"]


def check(mnp, folder):
    """Small models of many options, trained for a few steps, scored by mnp and here."""
    def run(*words):
        done = subprocess.run([mnp, *words], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"torch_chain.py: mnp {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    data, sets, model = "rbf:points=24,context=0:20", f"{folder}/sets.npz", f"{folder}/m.safetensors"
    run("gen", data, "--split", "test", "--seed", "3", "--functions", "6", "--out", sets)
    worst = 0.0
    for options in CHECKED:
        flags = [word for pair in options.split() for word in ("--set", pair)]
        run("train", "--data", data, "--preset", "tiny", "--functions", "50", "--steps", "20", "--batch", "10",
            "--set", "lr=1e-2", "--out", model, *flags)
        said = json.loads(run("eval", model, "--data", data, "--functions", "6", "--seed", "3", "--samples", "4",
                              "--protocol", "authors", "--draws", "0", "--json").splitlines()[-1])
        here = bound(model, sets, 3, 4)
        worst = max(worst, abs(said["loglik"] - here))
        print(f"mnp {said['loglik']:10.6f}  here {here:10.6f}  {options or 'preset tiny'}")
    print(f"at most {worst:.1e} nats per point apart, allowed 2e-05: {'they agree' if worst <= 2e-5 else 'THEY DIFFER'}")
    return 0 if worst <= 2e-5 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", nargs="?", help="a model file of mnp")
    p.add_argument("sets", nargs="?", help=".npz of mnp gen")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--samples", type=int, default=20)
    p.add_argument("--check", metavar="MNP", help="compare with this program, for many options")
    o = p.parse_args()
    torch.set_num_threads(2)
    if o.check:
        with tempfile.TemporaryDirectory() as folder:
            return check(os.path.abspath(o.check), folder)
    print(f"{bound(o.model, o.sets, o.seed, o.samples):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
