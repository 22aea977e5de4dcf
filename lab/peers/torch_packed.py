"""The training step of mnp arranged for a GPU in PyTorch: the same mathematics as torch_chain.py in
few and large operations.

  - one transition of the chain is one function of tensors, called T times: torch.compile sees it
    once, whatever T is (twice with several draws: at the top of the chain they share a set);
  - weights lie in flat vectors, one of the encoder and one for each transition: gradients of the
    T uses of the encoder add up in one operation, and Adam has few tensors to go through;
  - the rows of all points and of all contexts lie in one matrix after the first attention: every
    dense layer is one product for both; q, k and v, and the heads of mean and deviation, too;
  - pooling: q is the same for all sets, so scores are h (W_k^T q) and W_v is applied to the pooled
    rows; the keys' bias shifts all scores of a set alike and drops out;
  - the spline's bin is found without a gradient, and what belongs to it is picked by masked sums:
    no gather, whose gradient would be a scatter;
  - what does not depend on the draw is computed once: products with the features, and at the top
    of the chain the encoder;
  - in bf16 the encoder's rows and weights are bfloat16, the rest stays as it is.

Contexts are the first points of a set. They are padded to the largest and masked, or all have one
size and there is no mask. check() compares loss and gradients with torch_chain.py.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

import torch_chain


def cut(flat, shapes):
    """The parts of a flat vector by name."""
    parts = flat.split([math.prod(s) for s in shapes.values()])
    return {name: p.view(s) for (name, s), p in zip(shapes.items(), parts)}


def whole_vectors(numbers):
    """Outputs of the flow net, rows of whole vectors."""
    return (numbers + 7) // 8 * 8


class Layout:
    """Where each weight lies: shapes (out, in) by name, one dict for every flat vector."""

    def __init__(self, s):
        d, self.s, self.attends = s.enc_width, s, s.encoder != "deepset"
        wide = 3 * d if self.attends else d
        self.first = {"w_phi": (wide, s.features), "b": (wide,)}
        self.seed = {"at": (1, d), "w_q": (d, d), "b_q": (d,), "w_k": (d, d)} if self.attends else {}
        self.encoder, self.made = {"w_y": (wide,)}, {}
        if self.attends:
            self.of_attention(s, d)
        else:
            for k in range(1, s.ds_layers + 1):
                self.dense(f"{k}", d, d)
        self.encoder.update({"w_r": (s.d_r, d), "b_r": (s.d_r,), "empty": (s.d_r,)})
        width = s.head_hidden if s.head_layers else s.d_z
        self.step = {"w_r": (2 * width, s.d_r), "b_0": (2 * width,), "w_z": (2 * width, s.d_z)}
        for k in range(1, s.head_layers + 1):
            out = s.d_z if k == s.head_layers else width
            self.step.update({f"head w{k}": (2, out, width), f"head b{k}": (2, 1, out)})
        self.step.update({"w_x": (s.flow_hidden, s.features), "b_x": (s.flow_hidden,),
                          "flow w_z": (s.flow_hidden, s.d_z)})
        for k in range(1, s.flow_layers + 1):
            out = whole_vectors(s.numbers) if k == s.flow_layers else s.flow_hidden
            self.step.update({f"flow w{k}": (out, s.flow_hidden), f"flow b{k}": (out,)})

    def dense(self, name, rows, cols):
        self.encoder.update({f"{name} w": (rows, cols), f"{name} b": (rows,)})

    def block(self, name, d):
        self.dense(f"{name} out", d, d)
        for k in (0, 1) if self.s.layer_norm else ():
            self.encoder.update({f"{name} gain{k}": (d,), f"{name} shift{k}": (d,)})

    def of_attention(self, s, d):
        for k in range(s.n_sab):
            if k:
                self.dense(f"{k} qkv", 3 * d, d)
            if s.encoder == "sab":
                self.block(f"{k}", d)
                continue
            self.encoder[f"{k} inducing"] = (s.n_inducing, d)
            self.dense(f"{k} q", d, d)
            self.block(f"{k} inner", d)
            self.dense(f"{k} kv", 2 * d, d)
            self.block(f"{k} outer", d)
        self.encoder.update({"w_v": (s.heads, d // s.heads, d), "b_v": (d,)})
        self.block("pool", d)
        # the scores' weights and q, which are made once in a step
        self.made = {"u": (s.heads, d), "q": (d,)}


# ---- packing ---------------------------------------------------------------------------------


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def encoder_parts(s, w):
    """What lies where in Layout.encoder, from weights under mnp's names, (in, out)."""
    def dense(to, name):
        return {f"{to} w": w[f"{name}.w"].T, f"{to} b": w[f"{name}.b"]}

    def block(to, name):
        out = dense(f"{to} out", f"{name}.out")
        for k in (0, 1) if s.layer_norm else ():
            out.update({f"{to} gain{k}": w[f"{name}.norm{k}.gain"], f"{to} shift{k}": w[f"{name}.norm{k}.shift"]})
        return out

    out = {"w_r": w["enc.r.w"].T, "b_r": w["enc.r.b"], "empty": w["enc.empty"]}
    if s.encoder == "deepset":
        out["w_y"] = w["enc.0.wy"]
        for k in range(1, s.ds_layers + 1):
            out.update(dense(f"{k}", f"enc.{k}"))
        return out
    out.update({"w_y": w["enc.0.qkv.wy"], **block("pool", "enc.pool")})
    out["w_v"], out["b_v"] = w["enc.pool.kv.w"].chunk(2, 1)[1].T, w["enc.pool.kv.b"].chunk(2, 1)[1]
    for k in range(s.n_sab):
        if k:
            out.update(dense(f"{k} qkv", f"enc.{k}.qkv"))
        if s.encoder == "sab":
            out.update(block(f"{k}", f"enc.{k}"))
            continue
        out.update({f"{k} inducing": w[f"enc.{k}.inducing"], **dense(f"{k} q", f"enc.{k}.inner.q"),
                    **block(f"{k} inner", f"enc.{k}.inner"), **dense(f"{k} kv", f"enc.{k}.outer.kv"),
                    **block(f"{k} outer", f"enc.{k}.outer")})
    return out


def step_parts(s, w, t):
    def both(name, turn=True):
        a, b = w[f"mu.{t}.{name}"], w[f"sigma.{t}.{name}"]
        return torch.stack([a.T, b.T] if turn else [a, b])

    out = {"w_r": both("0.wr"), "b_0": both("0.b", False),
           "w_z": both("0.wz") if t < s.T else w[f"flow.{t}.0.b"].new_zeros(
               2, s.head_hidden if s.head_layers else s.d_z, s.d_z)}
    for k in range(1, s.head_layers + 1):
        out.update({f"head w{k}": both(f"{k}.w"), f"head b{k}": both(f"{k}.b", False)})
    out.update({"w_x": w[f"flow.{t}.0.wx"].T, "b_x": w[f"flow.{t}.0.b"], "flow w_z": w[f"flow.{t}.0.wz"].T})
    for k in range(1, s.flow_layers + 1):
        pad = whole_vectors(s.numbers) - s.numbers if k == s.flow_layers else 0
        out.update({f"flow w{k}": F.pad(w[f"flow.{t}.{k}.w"].T, (0, 0, 0, pad)),
                    f"flow b{k}": F.pad(w[f"flow.{t}.{k}.b"], (0, pad))})
    return out


def pack(s, w):
    """The flat vectors of weights under mnp's names, or of their gradients."""
    at, first = Layout(s), "enc.0.qkv" if s.encoder != "deepset" else "enc.0"
    vectors = {"first": flat([w[f"{first}.wphi"].T, w[f"{first}.b"]])}
    if at.attends:
        vectors["seed"] = flat([w["enc.pool.seed"], w["enc.pool.q.w"].T, w["enc.pool.q.b"],
                                w["enc.pool.kv.w"].chunk(2, 1)[0].T])
    parts = encoder_parts(s, w)
    vectors["encoder"] = flat([parts[name] for name in at.encoder])
    for t in range(1, s.T + 1):
        parts = step_parts(s, w, t)
        vectors[f"step{t}"] = flat([parts[name] for name in at.step])
    return {k: v.detach().clone() for k, v in vectors.items()}


# ---- the encoder -----------------------------------------------------------------------------


def wide(a):
    return a.float() if a.dtype == torch.bfloat16 else a


def linear(w, name, x):
    return F.linear(x, w[f"{name} w"], w[f"{name} b"])


class Encoder:
    """Summaries of sets: of the points that the posterior sees, and of contexts."""

    def __init__(self, s, plain, seen):
        self.s, self.plain, self.seen, self.scale = s, plain, seen, 1 / math.sqrt(s.enc_width)

    def mixed(self, q, k, v, mask):
        """softmax(q k^T) v: (sets, a, D), (sets, b, D) twice -> (sets a, D)"""
        def split(a):
            return a.reshape(a.shape[0], a.shape[1], self.s.heads, -1).transpose(1, 2)

        q, k, v = split(q), split(k), split(v)
        if self.plain:
            scores = wide(q @ k.transpose(2, 3)) * self.scale
            if mask is not None:
                scores = scores.masked_fill(~mask, -math.inf)
            out = scores.softmax(-1).to(v.dtype) @ v
        else:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)
        return out.transpose(1, 2).reshape(-1, self.s.enc_width)

    def onward(self, w, name, o):
        """What follows attention in a block."""
        s, d = self.s, (self.s.enc_width,)
        if s.layer_norm:
            o = F.layer_norm(o, d, w[f"{name} gain0"], w[f"{name} shift0"])
        o = o + torch.relu(linear(w, f"{name} out", o))
        return F.layer_norm(o, d, w[f"{name} gain1"], w[f"{name} shift1"]) if s.layer_norm else o

    def attended(self, w, k, sets):
        """One block over several lots of sets [(qkv, mask)] -> rows of all."""
        if self.s.encoder == "sab":
            rows = [self.mixed(*qkv.chunk(3, -1), mask) for qkv, mask in sets]
            q = [qkv[..., : self.s.enc_width].reshape(-1, self.s.enc_width) for qkv, _ in sets]
            return self.onward(w, f"{k}", torch.cat(q) + torch.cat(rows))
        d, many = self.s.enc_width, self.s.n_inducing
        seeds = linear(w, f"{k} q", w[f"{k} inducing"])
        rows = [self.mixed(seeds.expand(qkv.shape[0], many, d), *qkv.chunk(3, -1)[1:], mask) for qkv, mask in sets]
        h = torch.cat(rows).view(-1, many, d) + seeds
        kv = linear(w, f"{k} kv", self.onward(w, f"{k} inner", h.view(-1, d))).view(-1, many, 2 * d)
        rows, q, at = [], [], 0
        for qkv, _ in sets:
            own = kv[at : at + qkv.shape[0]]
            at += qkv.shape[0]
            rows.append(self.mixed(qkv[..., :d], *own.chunk(2, -1), None))
            q.append(qkv[..., :d].reshape(-1, d))
        return self.onward(w, f"{k} outer", torch.cat(q) + torch.cat(rows))

    def pooled(self, h, scores, mask):
        """h (sets, n, D), scores (sets, n, H) -> (sets, H, D)"""
        scores = wide(scores)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        return scores.softmax(1).to(h.dtype).transpose(1, 2) @ h

    def of_attention(self, w, rows, width, mask):
        """rows (sets, seen or width, 3 D) -> pooled rows of the whole sets, then of contexts"""
        s, (sets, _, d) = self.s, rows.shape
        d //= 3
        lots = [rows[:, : self.seen], rows[:, :width]]
        for k in range(s.n_sab):
            if k:
                rows = linear(w, f"{k} qkv", h)
                rows = rows.split([sets * self.seen, sets * width])
                lots = [r.view(sets, -1, 3 * d) for r in rows]
            h = self.attended(w, k, [(lots[0], None), (lots[1], mask)])
        scores = F.linear(h, w["u"])
        narrow = None if mask is None else mask.view(sets, width, 1)
        pool = torch.cat([
            self.pooled(a.view(sets, -1, d), b.view(sets, -1, s.heads), m)
            for a, b, m in zip(h.split([sets * self.seen, sets * width]),
                               scores.split([sets * self.seen, sets * width]), (None, narrow))])
        v = (pool.transpose(0, 1) @ w["w_v"].transpose(1, 2)).transpose(0, 1).reshape(-1, d)
        return self.onward(w, "pool", w["q"] + v + w["b_v"])

    def of_mean(self, w, rows, width, mask):
        h = torch.relu(rows)
        for k in range(1, self.s.ds_layers + 1):
            h = linear(w, f"{k}", h)
            h = torch.relu(h) if k < self.s.ds_layers else h
        mean, part = self.s.pool == "mean", wide(h[:, :width])
        if mask is not None:
            part = part * mask.view(-1, width, 1)
        whole, part = wide(h[:, : self.seen]).sum(1), part.sum(1)
        if mean:
            whole = whole / self.seen
            part = part / (width if mask is None else mask.view(-1, width).sum(1, keepdim=True))
        return torch.cat([whole, part]).to(rows.dtype)

    def summaries(self, y, prepared, w, width, mask, some):
        """r of the whole sets, then of the contexts: (2 sets, D_R)."""
        s, (B, n) = self.s, prepared.shape[:2]
        rows = prepared + y[:, :n].reshape(-1, B, n, 1) * w["w_y"]
        rows = rows.to(prepared.dtype).view(-1, n, prepared.shape[2])
        attends = s.encoder != "deepset"
        h = (self.of_attention if attends else self.of_mean)(w, rows, width, mask)
        r = wide(F.linear(h, w["w_r"], w["b_r"]))
        r = torch.relu(r) if s.enc_out_relu or not attends else r
        if mask is None:
            return r
        return torch.cat([r[: len(y)], torch.where(some, r[len(y) :], wide(w["empty"]))])


# ---- one transition --------------------------------------------------------------------------


def heads(s, r, z, p):
    """-> means and deviations (2 sets, D_Z), posterior first."""
    sets = z.shape[0]
    h = F.linear(r, p["w_r"], p["b_0"]).view(2, sets, -1) + F.linear(z, p["w_z"])
    h = h.view(2 * sets, 2, -1).transpose(0, 1)
    for k in range(1, s.head_layers + 1):
        h = torch.baddbmm(p[f"head b{k}"], torch.relu(h), p[f"head w{k}"].transpose(1, 2))
    mu, raw = h.unbind(0)
    return mu, s.sigma_z_floor + (1 - s.sigma_z_floor) * torch.sigmoid(raw)


def spline(s, y, raw):
    """As torch_chain.spline(); raw (B, n, 3 K - 1 and padding)."""
    bins = s.bins

    def share(r, least):
        return 2 * s.bound * (least + (1.0 - bins * least) * r.softmax(-1))

    xs, ys = share(raw[..., :bins], s.min_width), share(raw[..., bins : 2 * bins], s.min_height)
    inner = s.min_derivative + F.softplus(raw[..., 2 * bins : 3 * bins - 1])
    inside = (y >= -s.bound) & (y <= s.bound)
    at = torch.where(inside, y, 0.0)
    k = (at.detach().unsqueeze(-1) >= xs.detach()[..., :-1].cumsum(-1) - s.bound).sum(-1, keepdim=True)
    number = torch.arange(bins, device=y.device)
    below, here = number < k, number == k
    x0, y0 = torch.where(below, xs, 0.0).sum(-1) - s.bound, torch.where(below, ys, 0.0).sum(-1) - s.bound
    w, h = torch.where(here, xs, 0.0).sum(-1), torch.where(here, ys, 0.0).sum(-1)
    # inner slope j stands between bins j and j + 1; at both ends the slope is 1
    k1 = k.squeeze(-1)
    d0 = torch.where(here[..., 1:], inner, 0.0).sum(-1) + (k1 == 0).float()
    d1 = torch.where(here[..., :-1], inner, 0.0).sum(-1) + (k1 == bins - 1).float()
    ratio, theta = h / w, (at - x0) / w
    p = theta * (1 - theta)
    low = ratio * (1 - 2 * p) + (d0 + d1) * p
    out = y0 + h * (ratio * theta * theta + d0 * p) / low
    m = d1 * theta * theta + 2 * ratio * p + d0 * (1 - theta) ** 2
    logdet = 2 * ratio.log() + m.log() - 2 * low.log()
    return torch.where(inside, out, y), torch.where(inside, logdet, 0.0)


class Transition:
    """y (sets, n), z (sets, D_Z) of the step above -> y, z, KL or minus its sampled ratio (draws of
    all sets), log-determinant (likewise)."""

    def __init__(self, s, plain, seen, first_scored):
        self.s, self.first_scored, self.layout = s, first_scored, Layout(s)
        self.encoder = Encoder(s, plain, seen)

    def divergence(self, eps, z, mu_q, s_q, mu_p, s_p):
        if self.s.objective == "iwae":
            return ((s_p / s_q).log() - 0.5 * eps**2 + 0.5 * ((z - mu_p) / s_p) ** 2).sum(-1)
        return ((s_p / s_q).log() + (s_q**2 + (mu_q - mu_p) ** 2) / (2 * s_p**2) - 0.5).sum(-1)

    def __call__(self, y, z, phi, prepared, eps, encoder, step, width, mask, some):
        s, sets, (B, n) = self.s, y.shape[0], (prepared.shape[0], y.shape[1])
        p, w = cut(step, self.layout.step), cut(encoder, {**self.layout.encoder, **self.layout.made})
        r = self.encoder.summaries(y, prepared, w, width, mask, some)
        mu, sigma = heads(s, r, z, p)
        (mu_q, mu_p), (s_q, s_p) = (a.view(2, sets, s.d_z).unbind(0) for a in (mu, sigma))
        if len(eps) != sets:  # the draws begin here: (draws, B, D_Z) from B sets
            eps = eps.view(-1, sets, s.d_z)
        z = mu_q + s_q * eps
        kl = self.divergence(eps, z, mu_q, s_q, mu_p, s_p)
        z, kl = z.reshape(-1, s.d_z), kl.expand(eps.shape[:-1]).reshape(-1)
        h = F.linear(phi, p["w_x"], p["b_x"]).view(B, n, -1)
        h = h + F.linear(z, p["flow w_z"]).view(-1, B, 1, s.flow_hidden)
        h = h.view(-1, s.flow_hidden)
        for k in range(1, s.flow_layers + 1):
            h = F.linear(torch.relu(h), p[f"flow w{k}"], p[f"flow b{k}"])
        y = y.repeat(len(z) // sets, 1) if len(z) != sets else y
        raw = h.view(*y.shape, -1)
        y, logdet = spline(s, y, raw) if s.transition == "rqs" else torch_chain.affine(s, y, raw)
        return y, z, kl, logdet[:, self.first_scored :].sum(1)


# ---- the step --------------------------------------------------------------------------------


class Opening:
    """Once in a step: features, their part of the first projections, the pooling's query."""

    def __init__(self, s, read):
        self.s, self.read, self.layout = s, read, Layout(s)

    def __call__(self, x, frequency, first, seed, encoder, dtype):
        s, at = self.s, cut(first, self.layout.first)
        phi = x
        if s.rff:
            turns = (x.unsqueeze(-2) * frequency).sum(-1)
            angle = 2 * math.pi * (turns - turns.round())
            phi = torch.cat([angle.cos(), angle.sin()] + [x] * s.rff_append_x, -1)
        rows = phi[:, : self.read].reshape(-1, s.features).to(dtype)
        prepared = F.linear(rows, at["w_phi"].to(dtype), at["b"].to(dtype)).view(len(x), self.read, -1)
        if self.layout.attends:
            w, d = cut(seed, self.layout.seed), s.enc_width
            q = F.linear(w["at"], w["w_q"], w["b_q"]).view(s.heads, 1, -1)
            u = (q @ w["w_k"].view(s.heads, -1, d)).squeeze(1) / math.sqrt(d)
            encoder = torch.cat([encoder, u.reshape(-1), q.reshape(-1)])
        return phi.reshape(-1, s.features), prepared, encoder.to(dtype)


class Ending:
    """-> loss and KL per point; kl and logp (T, draws of all sets)"""

    def __init__(self, s, first_scored, sets):
        self.s, self.first_scored, self.sets = s, first_scored, sets

    def __call__(self, y, kl, logp):
        s, y = self.s, y[:, self.first_scored :]
        n, kl = y.shape[1], kl.sum(0).view(-1, self.sets)
        logp = (logp.sum(0) + (-0.5 * y * y - 0.5 * math.log(2 * math.pi)).sum(1)).view(-1, self.sets)
        if s.objective == "iwae":
            score = (logp - kl).logsumexp(0) - math.log(len(kl))
        else:
            score = (logp - s.kl_weight * kl).mean(0)
        return -(score / n).mean(), (kl.mean(0) / n).mean()


class Packed(nn.Module):
    """loss, KL = packed(x, y, eps, width, mask, some): x (B, n) or (B, n, X), y (B, n), context first;
    eps (T, draws times B, D_Z), mask (B, 1, 1, width) and some (B, 1), or None.

    w: weights under mnp's names. `how` compiles (torch.compile with options) or leaves functions
    alone. seen: points of the posterior; width: the largest context."""

    def __init__(self, s, w, sets, points, seen, width, plain, bf16=False,
                 how=lambda f: f):
        super().__init__()
        first = 0 if s.train_score == "all" else seen if seen < points else width
        self.register_buffer("frequency", w["features.freq"].detach().clone() if s.rff else None)
        self.flat = nn.ParameterDict({k: nn.Parameter(v) for k, v in pack(s, w).items()})
        self.s, self.dtype = s, torch.bfloat16 if bf16 else w["enc.empty"].dtype
        self.opening = how(Opening(s, max(seen, width)).__call__)
        self.transition = how(Transition(s, plain, seen, first).__call__)
        self.ending = how(Ending(s, first, sets).__call__)

    def forward(self, x, y, eps, width, mask, some):
        w, s = self.flat, self.s
        x = x if x.dim() == 3 else x.unsqueeze(-1)
        phi, prepared, encoder = self.opening(x, self.frequency, w["first"], w["seed"] if "seed" in w else None,
                                              w["encoder"], self.dtype)
        # The topmost z is 0. That it and y ask for gradients costs little, and makes the first
        # transition like the others: one function to compile.
        z = eps.new_zeros(len(y), s.d_z).requires_grad_()
        y = y.detach().requires_grad_()
        kls, logps = [], []
        for t in range(s.T, 0, -1):
            y, z, kl, logp = self.transition(y, z, phi, prepared, eps[t - 1], encoder, w[f"step{t}"],
                                             width, mask, some)
            if mask is not None and len(mask) != len(y):
                mask, some = (a.repeat(len(y) // len(a), *[1] * (a.dim() - 1)) for a in (mask, some))
            kls.append(kl)
            logps.append(logp)
        return self.ending(y, torch.stack(kls), torch.stack(logps))


# ---- beside the plain arrangement ------------------------------------------------------------


def check(s, sets=4, points=12, width=5, samples=1, seen=None, masked=True, plain=True, device="cpu",
          bf16=False, how=lambda f: f, seed=0):
    """-> loss of both, the part by which gradients differ from those of the plain arrangement."""
    g = torch.Generator().manual_seed(seed)
    w = torch_chain.draw_weights(s, g, biases=0.1)
    seen = seen or points
    x = 4 * torch.rand(sets, points, s.x_dim, generator=g) - 2
    y = torch.randn(sets, points, generator=g)
    m = torch.randint(0, width + 1, (sets,), generator=g) if masked else torch.full((sets,), width)
    eps = torch.randn(s.T, samples, sets, s.d_z, generator=g)
    place = torch.arange(width) < m.clamp(min=1)[:, None]
    w = {k: v.to(device).requires_grad_(k != "features.freq") for k, v in w.items()}
    x, y, m, eps, place = (a.to(device) for a in (x, y, m, eps, place))
    want, _ = torch_chain.loss_of(s, w, x, y, eps, m, seen)
    want.backward()
    net = Packed(s, w, sets, points, seen, width, plain, bf16, how).to(device)
    mask, some = (place[:, None, None, :], (m > 0)[:, None]) if masked else (None, None)
    got, _ = net(x, y, eps.reshape(s.T, -1, s.d_z), width, mask, some)
    got.backward()
    grads = pack(s, {k: torch.zeros_like(v) if v.grad is None else v.grad for k, v in w.items()})
    off = sum((net.flat[k].grad - v).norm().item() ** 2 for k, v in grads.items())
    return want.item(), got.item(), math.sqrt(off / sum(v.norm().item() ** 2 for v in grads.values()))
