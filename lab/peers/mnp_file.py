"""What the peers read of mnp: model files, their options, and the noise that a seed stands for.

  options, weights = read_model("m.safetensors")     weights by name, (in, out), float32
  latent_noise(seed, functions, samples, T, d_z)     (T, samples, functions, d_z), as mnp eval draws it

NumPy alone; options are read without it.
"""
import json
import struct

try:
    import numpy as np
except ImportError:
    np = None

LATENT_EVAL = 7  # rng_purpose of src/base/rng.h


def value(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"on": True, "off": False}.get(text, text)


def read_options(text):
    """"T=7 encoder=sab layer_norm=off" -> {"T": 7, "encoder": "sab", "layer_norm": False}"""
    return {k: value(v) for k, v in (pair.split("=", 1) for pair in text.split())}


def read_safetensors(path):
    """-> tensors by name, metadata"""
    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(size))
        body = f.read()
    notes = head.pop("__metadata__", {})
    tensors = {}
    for name, t in head.items():
        lo, hi = t["data_offsets"]
        tensors[name] = np.frombuffer(body[lo:hi], kinds[t["dtype"]]).reshape(t["shape"]).copy()
    return tensors, notes


def read_model(path):
    """-> options, weights (scale.x and scale.y with them)"""
    tensors, notes = read_safetensors(path)
    return read_options(notes["mnp.options"]), tensors


# ---- random numbers --------------------------------------------------------------------------


def philox(seed, c):
    """Philox4x32-10 of counters c (4, ...), uint32."""
    c = [a.astype(np.uint64) for a in c]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
        c = [(b >> shift) ^ c[1] ^ np.uint64(k0), b & low, (a >> shift) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def latent_noise(seed, functions, samples, T, d_z, purpose=LATENT_EVAL, step=0):
    """Standard normals of the latents: the point of a counter is t, from 1."""
    shape = (T, samples, functions, (d_z + 3) // 4)
    t, s, f, block = np.indices(shape, dtype=np.uint64)
    high = np.uint64(purpose) << np.uint64(28) | block << np.uint64(18) | s
    w = philox(seed, [t + np.uint64(1), f, np.full(shape, step, np.uint64), high])
    out = []
    for at, turn in ((w[0], w[1]), (w[2], w[3])):
        radius = np.sqrt(-2 * np.log((at.astype(np.float64) + 0.5) / 2.0**32))
        angle = 2 * np.pi * turn.astype(np.float64) / 2.0**32
        out += [radius * np.cos(angle), radius * np.sin(angle)]
    return np.stack(out, -1).reshape(*shape[:3], -1)[..., :d_z].astype(np.float32)
