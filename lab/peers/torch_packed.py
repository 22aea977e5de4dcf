"""The step of torch_peer.py arranged for a GPU: the same mathematics in few and large operations.

  - one transition of the chain is one function of tensors, called T times: torch.compile sees it
    once, whatever T is;
  - weights lie in flat vectors, one of the encoder and one for each transition: gradients of the
    T uses of the encoder add up in one operation, and Adam has nine tensors to go through;
  - the rows of all points and of all contexts lie in one matrix after the first attention: every
    dense layer is one product for both; q, k and v, and the heads of mean and deviation, too;
  - pooling: q is the same for all sets, so scores are h (W_k^T q) and W_v is applied to the pooled
    rows; the keys' bias shifts all scores of a set alike and drops out;
  - the spline's bin is found without a gradient, and what belongs to it is picked by masked sums:
    no gather, whose gradient would be a scatter;
  - in bf16 the encoder's rows and weights are bfloat16, the rest stays as it is.

torch_peer.py --check compares loss and gradients with its own plain arrangement.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from torch_peer import (BINS, BOUND, D_R, D_Z, FLOW, FREQUENCIES, HEAD, HEADS, LEAST, SIGMA_FLOOR, T,
                        WIDTH)

DEPTH = WIDTH // HEADS
RAW = 32  # outputs of the flow net, 29 of them used: rows of whole vectors

FIRST = [(3 * WIDTH, 2 * FREQUENCIES), (3 * WIDTH,)]
# w_y, w0 b0, w1 b1 (q, k, v), w2 b2, then pooling: v, its dense layer, the summary, empty; at the
# end the scores' weights and q, which are made once in a step
ENCODER = [(3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH),
           (WIDTH,), (HEADS, DEPTH, WIDTH), (WIDTH,), (WIDTH, WIDTH), (WIDTH,), (D_R, WIDTH),
           (D_R,), (D_R,)]
MADE = [(HEADS, WIDTH), (WIDTH,)]
SEED = [(1, WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH, WIDTH)]
# heads (mean and deviation side by side): w_r b0 w_z w1 b1 w2 b2; flow: w_x b0 w_z w1 b1 w2 b2
STEP = [(2 * HEAD, D_R), (2 * HEAD,), (2 * HEAD, D_Z), (2, HEAD, HEAD), (2, 1, HEAD),
        (2, D_Z, HEAD), (2, 1, D_Z), (FLOW, 2 * FREQUENCIES), (FLOW,), (FLOW, D_Z), (FLOW, FLOW),
        (FLOW,), (RAW, FLOW), (RAW,)]


def cut(flat, shapes):
    parts = flat.split([math.prod(s) for s in shapes])
    return [p.view(s) for p, s in zip(parts, shapes)]


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def pack(net, of=lambda p: p):
    """The flat vectors of a Peer, or of what `of` takes from its parameters (their gradients)."""
    e = net.encoder
    w_k, w_v = of(e.w_kv).chunk(2)
    vectors = {
        "first": flat([of(e.w_phi), of(e.b0)]),
        "seed": flat([of(e.seed), of(e.w_q), of(e.b_q), w_k]),
        "encoder": flat([of(e.w_y), of(e.sab0.w), of(e.sab0.b), of(e.w1), of(e.b1), of(e.sab1.w),
                         of(e.sab1.b), w_v, of(e.b_kv).chunk(2)[1], of(e.pma.w), of(e.pma.b),
                         of(e.w_r), of(e.b_r), of(e.empty)])}
    for t in range(T):
        mu, raw, f = net.mu[t], net.raw[t], net.flow[t]

        def both(name):
            a, b = getattr(mu, name), getattr(raw, name)
            return torch.cat([torch.zeros(2 * HEAD, D_Z, device=of(mu.b0).device)] if a is None
                             else [of(a), of(b)])

        pad = RAW - f.w2.shape[0]
        vectors[f"step{t}"] = flat([both(k) for k in ("w_r", "b0", "w_z", "w1", "b1", "w2", "b2")] + [
            of(f.w_x), of(f.b0), of(f.w_z), of(f.w1), of(f.b1), F.pad(of(f.w2), (0, 0, 0, pad)),
            F.pad(of(f.b2), (0, pad))])
    return {k: v.detach().clone() for k, v in vectors.items()}


# ---- one transition --------------------------------------------------------------------------


def attention(qkv, mask, plain):
    """qkv (B, n, 3 WIDTH) -> q + mixed, as rows (B n, WIDTH)."""
    sets, n = qkv.shape[:2]
    q, k, v = qkv.view(sets, n, 3, HEADS, DEPTH).permute(2, 0, 3, 1, 4).unbind(0)
    if plain:
        scores = (q @ k.transpose(2, 3)).float() * (1.0 / math.sqrt(WIDTH))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        mixed = scores.softmax(-1).to(v.dtype) @ v
    else:
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / math.sqrt(WIDTH))
    return qkv[..., :WIDTH].reshape(-1, WIDTH) + mixed.transpose(1, 2).reshape(-1, WIDTH)


def dense(o, w, b):
    return o + torch.relu(F.linear(o, w, b))


def pooled(h, scores, mask):
    """h (S, n, WIDTH), scores (S, n, HEADS) -> (S, HEADS, WIDTH)"""
    scores = scores.float()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(1).to(h.dtype).transpose(1, 2) @ h


def summaries(y, prepared, weights, width, mask, some, plain):
    """r of the whole sets, then of the contexts: (2 B, D_R)."""
    (w_y, w0, b0, w1, b1, w2, b2, w_v, b_v, w3, b3, w_r, b_r, empty, u, q) = weights
    sets, n = y.shape
    rows = (prepared + y.unsqueeze(-1) * w_y).to(prepared.dtype)
    h = dense(torch.cat([attention(rows, None, plain),
                         attention(rows[:, :width], mask, plain)]), w0, b0)
    qkv = F.linear(h, w1, b1)
    full, part = qkv[: sets * n].view(sets, n, -1), qkv[sets * n :].view(sets, width, -1)
    h = dense(torch.cat([attention(full, None, plain), attention(part, mask, plain)]), w2, b2)
    scores = F.linear(h, u)
    narrow = None if mask is None else mask.view(sets, width, 1)
    pool = torch.cat([
        pooled(h[: sets * n].view(sets, n, WIDTH), scores[: sets * n].view(sets, n, HEADS), None),
        pooled(h[sets * n :].view(sets, width, WIDTH),
               scores[sets * n :].view(sets, width, HEADS), narrow)])
    mixed = (pool.transpose(0, 1) @ w_v.transpose(1, 2)).transpose(0, 1).reshape(-1, WIDTH) + b_v
    r = F.linear(dense(q + mixed, w3, b3), w_r, b_r).float()
    if mask is None:
        return r
    return torch.cat([r[:sets], torch.where(some, r[sets:], empty.float())])


def heads(r, z, w_r, b0, w_z, w1, b1, w2, b2):
    """-> means and deviations (2 B, D_Z), posterior first."""
    sets = z.shape[0]
    h = F.linear(r, w_r, b0).view(2, sets, -1) + F.linear(z, w_z)
    h = torch.relu(h).view(2 * sets, 2, HEAD).transpose(0, 1)
    h = torch.relu(torch.baddbmm(b1, h, w1.transpose(1, 2)))
    mu, raw = torch.baddbmm(b2, h, w2.transpose(1, 2)).unbind(0)
    return mu, SIGMA_FLOOR + (1 - SIGMA_FLOOR) * torch.sigmoid(raw)


def spline(y, raw):
    """As torch_peer.spline(); raw (B, n, RAW)."""
    def share(r):
        return 2 * BOUND * (LEAST + (1.0 - BINS * LEAST) * r.softmax(-1))

    xs, ys = share(raw[..., :BINS]), share(raw[..., BINS : 2 * BINS])
    inner = LEAST + F.softplus(raw[..., 2 * BINS : 3 * BINS - 1])
    inside = (y >= -BOUND) & (y <= BOUND)
    at = torch.where(inside, y, 0.0)
    k = (at.detach().unsqueeze(-1) >= xs.detach()[..., :-1].cumsum(-1) - BOUND).sum(-1, keepdim=True)
    bins = torch.arange(BINS, device=y.device)
    below, here = bins < k, bins == k
    x0, y0 = torch.where(below, xs, 0.0).sum(-1) - BOUND, torch.where(below, ys, 0.0).sum(-1) - BOUND
    w, h = torch.where(here, xs, 0.0).sum(-1), torch.where(here, ys, 0.0).sum(-1)
    # inner slope j stands between bins j and j + 1; at both ends the slope is 1
    k1 = k.squeeze(-1)
    d0 = torch.where(here[..., 1:], inner, 0.0).sum(-1) + (k1 == 0).float()
    d1 = torch.where(here[..., :-1], inner, 0.0).sum(-1) + (k1 == BINS - 1).float()
    s, theta = h / w, (at - x0) / w
    p = theta * (1 - theta)
    low = s * (1 - 2 * p) + (d0 + d1) * p
    out = y0 + h * (s * theta * theta + d0 * p) / low
    m = d1 * theta * theta + 2 * s * p + d0 * (1 - theta) ** 2
    logdet = 2 * s.log() + m.log() - 2 * low.log()
    return torch.where(inside, out, y), torch.where(inside, logdet, 0.0).sum(1)


def transition(y, z, phi, prepared, eps, encoder, step, width, mask, some, plain):
    """y (B, n), z (B, D_Z) of the step above -> y, z, KL (B), log-determinant (B)."""
    sets, n = y.shape
    p = cut(step, STEP)
    r = summaries(y, prepared, cut(encoder, ENCODER + MADE), width, mask, some, plain)
    mu, sigma = heads(r, z, *p[:7])
    (mu_q, mu_p), (s_q, s_p) = mu.view(2, sets, D_Z).unbind(0), sigma.view(2, sets, D_Z).unbind(0)
    kl = ((s_p / s_q).log() + (s_q**2 + (mu_q - mu_p) ** 2) / (2 * s_p**2) - 0.5).sum(1)
    z = mu_q + s_q * eps
    w_x, b0, w_z, w1, b1, w2, b2 = p[7:]
    h = F.linear(phi, w_x, b0).view(sets, n, FLOW) + F.linear(z, w_z).unsqueeze(1)
    h = torch.relu(F.linear(torch.relu(h).view(-1, FLOW), w1, b1))
    y, logdet = spline(y, F.linear(h, w2, b2).view(sets, n, RAW))
    return y, z, kl, logdet


def opening(x, frequency, first, seed, encoder, dtype):
    """Once in a step: features, their part of the first projections, the pooling's query."""
    turns = x.unsqueeze(-1) * frequency
    angle = 2 * math.pi * (turns - turns.round())
    phi = torch.cat([angle.cos(), angle.sin()], -1).view(-1, 2 * FREQUENCIES)
    w_phi, b = cut(first, FIRST)
    prepared = F.linear(phi.to(dtype), w_phi.to(dtype), b.to(dtype)).view(*x.shape, 3 * WIDTH)
    at, w_q, b_q, w_k = cut(seed, SEED)
    q = F.linear(at, w_q, b_q).view(HEADS, 1, DEPTH)
    u = (q @ w_k.view(HEADS, DEPTH, WIDTH)).squeeze(1) / math.sqrt(WIDTH)
    return phi, prepared, torch.cat([encoder, u.reshape(-1), q.reshape(-1)]).to(dtype)


def ending(y, kl, logp):
    """-> loss and KL per point; kl and logp (T, B)"""
    n = y.shape[1]
    logp = logp.sum(0) + (-0.5 * y * y - 0.5 * math.log(2 * math.pi)).sum(1)
    return ((kl.sum(0) - logp) / n).mean(), (kl.sum(0) / n).mean()


class Packed(nn.Module):
    """Called as Peer is. `how` compiles (torch.compile with options) or leaves functions alone."""

    def __init__(self, net, plain, how=lambda f: f):
        super().__init__()
        self.register_buffer("frequency", net.frequency.detach().clone())
        self.flat = nn.ParameterDict({k: nn.Parameter(v) for k, v in pack(net).items()})
        self.plain, self.dtype = plain, torch.bfloat16 if net.bf16 else torch.float32
        self.opening, self.transition, self.ending = how(opening), how(transition), how(ending)

    def forward(self, x, y, eps, width, mask, some):
        w = self.flat
        phi, prepared, encoder = self.opening(x, self.frequency, w["first"], w["seed"],
                                              w["encoder"], self.dtype)
        # The topmost z is 0. That it and y ask for gradients costs little, and makes the first
        # transition like the others: one function to compile.
        y, z = y.detach().requires_grad_(), torch.zeros_like(eps[0]).requires_grad_()
        kls, logps = [], []
        for t in reversed(range(T)):
            y, z, kl, logp = self.transition(y, z, phi, prepared, eps[t], encoder, w[f"step{t}"],
                                             width, mask, some, self.plain)
            kls.append(kl)
            logps.append(logp)
        return self.ending(y, torch.stack(kls), torch.stack(logps))
