#!/usr/bin/env python3
"""Training steps of PyTorch at the shapes that `mnp bench shapes` lists, one line of JSON each.

  mnp bench shapes --rounds 0 --json | tail -n 1 >shapes.json
  torch_shapes.py shapes.json --device cuda --out torch.jsonl
  torch_shapes.py shapes.json --check            loss and gradients beside the plain chain, any device

Every context has the largest size of its shape: nothing is padded or masked. A shape is tried in
several ways (--ways): products in tf32 or a bf16 encoder, fused (sdpa) or plain attention; always
packed (torch_packed.py), compiled and, on a GPU, captured. Some processes compile side by side, then
all wait, and the clock runs for one at a time. A way that has not compiled within --limit seconds
runs captured and uncompiled, and its line says so; what fails says why. Each line is written when it
is known. All ends within --seconds.
"""
import argparse
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time

WAYS = "tf32:sdpa,bf16:sdpa,tf32:plain,bf16:plain"
LEAST_SECONDS = 20  # without so many no ways begin
DEVICE_SHARE = 0.75  # of the device's memory, for those that wait together


def read_rows(path):
    """The rows that can be run, one of each kind: --kernels and precision change nothing here."""
    with open(path) as f:
        rows = json.loads(f.read().strip().splitlines()[-1])["shapes"]
    out = {}
    for r in rows:
        if r["error"] is None:
            out.setdefault(key_of(r), r)
    return list(out.values())


def key_of(row):
    """What two rows share when the peer's step is the same."""
    return "|".join(str(row[k]) for k in ("options", "batch", "points", "seen", "context_hi", "samples"))


# ---- one way, a process of its own -----------------------------------------------------------


def network(row, math_name, attention, how, device):
    """-> module, shape of its noise"""
    from mnp_file import read_options
    options, batch, n, m = read_options(row["options"]), row["batch"], row["points"], row["context_hi"]
    if options["kind"] == "mnp":
        import torch_chain
        import torch_packed
        s = torch_chain.Shape.of(options)
        net = torch_packed.Packed(s, torch_chain.draw_weights(s), batch, n, row["seen"], m, attention == "plain",
                                  math_name == "bf16", how)
        return net.to(device), (s.T, row["samples"] * batch, s.d_z)
    import torch_predictors
    o = torch_predictors.Options.of(options)
    net = torch_predictors.Predictor(o, torch_predictors.draw_weights(o), math_name == "bf16", how)
    return net.to(device), None


def some_functions(row, device, count):
    """Smooth curves or surfaces, the points in no order."""
    import torch
    from mnp_file import read_options
    options = read_options(row["options"])
    dims, shape = options["x_dim"], (row["batch"], row["points"])
    out = []
    for _ in range(count):
        x = 4 * torch.rand(*shape, dims, device=device) - 2
        a = torch.randn(3, row["batch"], 1, device=device)
        y = (a[0] * torch.sin(3 * a[1] * x.sum(-1) + 3 * a[2])).contiguous()
        out.append((x if options["kind"] == "mnp" else x[..., 0], y, None))
    return out


def start_again(why):
    """The same without compiling, in this process: a compiler that is stopped half-way leaves
    half-loaded modules behind."""
    rest = [a for a in sys.argv if a != "--compile"]
    os.execv(sys.executable, [sys.executable] + rest + ["--gave-up", why])


def run_way(o):
    import torch
    from torch_step import Step
    row, cuda = json.loads(o.way_row), o.device == "cuda"
    math_name, attention = o.way.split(":")
    torch.set_num_threads(o.threads)
    torch.set_float32_matmul_precision("highest" if math_name == "fp32" else "high")
    torch.backends.cudnn.allow_tf32 = math_name != "fp32"
    torch.manual_seed(0)
    start = time.perf_counter()
    batches = some_functions(row, o.device, 4)

    def how(f):
        return torch.compile(f, dynamic=False) if o.compile else f

    watch = threading.Timer(o.limit, start_again, [f"not compiled within {o.limit} s"])
    watch.daemon = True
    try:
        if o.compile:
            watch.start()
        net, noise = network(row, math_name, attention, how, o.device)
        clip = 0.0 if noise else 1.0  # as mnp trains its chains and its predictors
        step = Step(net, batches[0], row["context_hi"], noise, cuda, clip=clip)
    except Exception as error:  # the compiler's faults are many
        watch.cancel()
        why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"
        hopeless = isinstance(error, torch.cuda.OutOfMemoryError) or str(error).startswith("the peer")
        if o.compile and not hopeless:
            start_again(f"not compiled ({why})")
        print(json.dumps({"error": why}), flush=True)
        return 1
    watch.cancel()
    prepared = time.perf_counter() - start
    print("ready", flush=True)
    sys.stdin.readline()
    step.times(batches, 2, 0.3)
    ms = step.times(batches, o.rounds, o.row_seconds)
    print(json.dumps({"ms": ms[len(ms) // 2], "ms_least": ms[0], "ms_most": ms[-1], "rounds": len(ms),
                      "prepared": round(prepared, 1), "compiled": o.compile, "note": o.gave_up,
                      "mb": torch.cuda.max_memory_allocated() / 1e6 if cuda else None,
                      "loss": float(step.loss.detach()), "torch": torch.__version__}), flush=True)
    return 0


# ---- all of them -----------------------------------------------------------------------------


def understood(line):
    """What a way says of itself: "ready" or a result. None: what a library printed."""
    if line == "ready":
        return line
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and ("ms" in said or "error" in said) else None


class Way:
    """A process that compiles, says that it is ready, and waits for its turn."""

    def __init__(self, o, row, way):
        self.row, self.way, self.lines, self.result = row, way, queue.Queue(), None
        words = [sys.executable, os.path.abspath(__file__), "--way", way, "--way-row", json.dumps(row),
                 "--device", o.device, "--limit", str(o.limit), "--rounds", str(o.rounds),
                 "--row-seconds", str(o.row_seconds), "--threads", str(o.threads)]
        words += [] if o.eager else ["--compile"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE)
        self.errors = []
        for stream, to in ((self.process.stdout, self.lines.put), (self.process.stderr, self.errors.append)):
            threading.Thread(target=self.follow, args=(stream, to), daemon=True).start()

    def follow(self, stream, to):
        for line in stream:
            to(line.strip())
        if to == self.lines.put:
            to(None)

    def hear(self, until):
        """What the process says next; None: it ended or took too long, and is ended."""
        while True:
            left = until - time.perf_counter()
            try:
                line = self.lines.get(timeout=max(0.1, left))
            except queue.Empty:
                self.fail("out of time")
                return None
            if line is None:
                self.fail(self.errors[-1][:160] if self.errors else "ended without a word")
                return None
            said = understood(line)
            if said is not None:
                return said
            if left < 0:  # it talks on
                self.fail("out of time")
                return None

    def fail(self, why):
        self.result = self.result or {"error": why}
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass  # the driver holds it; the others need not wait

    def ready(self, until):
        said = self.hear(until)
        if said is not None and said != "ready":
            self.result = said
            self.end()

    def clock(self, seconds):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it ended while it waited, and hear() finds out why
        said = self.hear(time.perf_counter() + seconds)
        self.result = self.result or (said if isinstance(said, dict) else {"error": "it did not run"})
        self.end()


def gigabytes(row, way):
    """About what a captured step holds: kept activations, and of plain attention the weights too."""
    from mnp_file import read_options
    v = read_options(row["options"])
    sets, n = row["batch"] * row["samples"], row["points"]
    steps = v["T"] if v["kind"] == "mnp" else v["n_sab"] + v["conv_layers"] // 2
    point = 10 * v["enc_width"] * v["n_sab"] + 4 * v["flow_hidden"] + 40 * v["bins"]
    words = sets * n * (point + (5 * v["n_sab"] * v["heads"] * n if way.endswith("plain") else 0))
    return 1 + 4e-9 * steps * words


def has_attention(row):
    return "encoder=deepset" not in row["options"] and "kind=mnp " in row["options"] + " "


def jobs_of(rows, ways):
    """Every shape in its first way, then in the next one."""
    seen = []
    for way in ways:
        for row in rows:
            if way.endswith("sdpa") or has_attention(row):
                seen.append((row, way))
    return seen


def device_gigabytes(device):
    """Of the memory of the first GPU, what ways that wait together may fill; a guess where nobody says."""
    if device != "cuda":
        return 8
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=30).stdout.split()
        return DEVICE_SHARE * 1.048576e-3 * float(said[0])
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return 30


def waves(jobs, workers, gb):
    """Jobs that wait together: so many, and what fits into the device."""
    wave, used = [], 0.0
    for row, way in jobs:
        need = gigabytes(row, way)
        if wave and (len(wave) == workers or used + need > gb):
            yield wave
            wave, used = [], 0.0
        wave.append((row, way))
        used += need
    if wave:
        yield wave


def told(w, out):
    """The line of a way, printed and kept."""
    line = {"shape": w.row["shape"], "way": w.way, "key": key_of(w.row), **w.result}
    said = f"{line['ms']:10.4f} ms" if "ms" in line else line["error"]
    note = "" if line.get("compiled", True) or "ms" not in line else f"  uncompiled: {line['note'] or '--eager'}"
    print(f"{line['shape']:22} {w.way:11} {said}{note}", flush=True)
    if out:
        out.write(json.dumps(line) + "\n")
        out.flush()


def run_wave(o, wave, end, out):
    """They compile side by side; then the clock runs for one after the other. `end`: of everything."""
    now = time.perf_counter()
    until = now + min(0.7 * (end - now), 2 * o.limit)
    running = []
    try:
        running += [Way(o, *job) for job in wave]
        for w in running:
            w.ready(until)
        for w in running:
            left = end - time.perf_counter() - 1
            if w.result is None and left < o.row_seconds:
                w.fail("out of time")
            elif w.result is None:
                w.clock(min(60, 10 * o.row_seconds + 20, left))
            told(w, out)
    finally:
        for w in running:
            w.end()


def run_all(o):
    start, count = time.perf_counter(), 0
    rows, out = read_rows(o.shapes), open(o.out, "a") if o.out else None
    jobs = jobs_of(rows, o.ways.split(","))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(max(1, o.cores // o.workers)))
    for wave in waves(jobs, o.workers, device_gigabytes(o.device)):
        if start + o.seconds - time.perf_counter() < LEAST_SECONDS:
            break
        run_wave(o, wave, start + o.seconds, out)
        count += len(wave)
    print(f"{count} of {len(jobs)} ways of {len(rows)} shapes in {time.perf_counter() - start:.0f} s", flush=True)
    return 0


def check_all(o):
    """Small sets of every chain: loss and gradients in double precision, beside the plain chain."""
    import torch
    import torch_chain
    import torch_packed
    from mnp_file import read_options
    torch.set_default_dtype(torch.float64)
    worst = 0.0
    for row in read_rows(o.shapes):
        options = read_options(row["options"])
        if options["kind"] != "mnp":
            continue
        try:
            s = torch_chain.Shape.of(options)
        except ValueError as error:
            print(f"{row['shape']:22} {error}")
            continue
        for masked, plain in ((False, False), (True, True)):
            part = 6 if row["seen"] < row["points"] else None
            want, got, off = torch_packed.check(s, 2, 10, 4, row["samples"], part, masked, plain, o.device)
            off = max(off, abs(want - got) / abs(want))
            worst = max(worst, off)
        print(f"{row['shape']:22} loss {want:.9f} {got:.9f}, gradients {off:.1e} apart")
    print(f"at most {worst:.1e}, allowed 1e-09: {'they agree' if worst <= 1e-9 else 'THEY DIFFER'}")
    return 0 if worst <= 1e-9 else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("shapes", nargs="?", help="JSON of mnp bench shapes --json")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--ways", default=WAYS, help=f"precision:attention,... (default {WAYS})")
    p.add_argument("--out", help="file to add lines of JSON to")
    p.add_argument("--seconds", type=float, default=math.inf, help="of the whole")
    p.add_argument("--limit", type=float, default=120, help="seconds for compiling one way")
    p.add_argument("--workers", type=int, default=8, help="ways that compile side by side")
    p.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    p.add_argument("--threads", type=int, default=1, help="of the processor, for each way")
    p.add_argument("--rounds", type=int, default=20, help="of ten steps")
    p.add_argument("--row-seconds", type=float, default=1.5, help="for the rounds of one way")
    p.add_argument("--check", action="store_true", help="compare with the plain chain, and end")
    p.add_argument("--eager", action="store_true", help="do not compile")
    p.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)  # of one way
    p.add_argument("--way", help=argparse.SUPPRESS)
    p.add_argument("--way-row", help=argparse.SUPPRESS)
    p.add_argument("--gave-up", help=argparse.SUPPRESS)  # why it is not compiled
    o = p.parse_args()
    if o.way:
        return run_way(o)
    if not o.shapes:
        p.error("the JSON of mnp bench shapes --json")
    return check_all(o) if o.check else run_all(o)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the compiler's workers need not be waited for
