"""A training step of a peer, captured on a GPU: noise, forward, backward, Adam, replayed as one graph."""
import time

import torch


class Step:
    """net(x, y, noise, width, mask, some) -> loss, KL. batch: x, y and a mask (B, width) or None. noise:
    the shape of the standard normals that a step draws, or None. clip: the longest gradient; 0: any."""

    def __init__(self, net, batch, width, noise, cuda, graph=True, lr=1e-3, clip=0.0):
        self.clip, self.net, self.width, self.cuda = clip, net, width, cuda
        self.x, self.y, self.mask = (None if a is None else a.clone() for a in batch)
        device = self.x.device
        self.noise = None if noise is None else torch.empty(noise, device=device)
        self.rate = torch.tensor(0.0, device=device)  # the first steps only compile
        self.trained = [p for p in net.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(self.trained, lr=self.rate, fused=True, capturable=cuda)
        self.loss = None
        self.body()
        self.graph = self.capture() if cuda and graph else None
        self.forget()
        self.rate.fill_(lr)

    def body(self):
        if self.noise is not None:
            self.noise.normal_()
        mask = some = None
        if self.mask is not None:
            some = self.mask.any(1, keepdim=True)
            mask = self.mask[:, None, None, :]
        self.adam.zero_grad(set_to_none=True)
        self.loss, self.kl = self.net(self.x, self.y, self.noise, self.width, mask, some)
        self.loss.backward()
        if self.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.trained, self.clip, foreach=True)
        self.adam.step()

    def forget(self):
        for state in self.adam.state.values():
            for value in state.values():
                value.zero_()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.body()
        torch.cuda.current_stream().wait_stream(side)
        self.adam.zero_grad(set_to_none=True)
        self.loss = self.kl = None
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.body()
        return graph

    def run(self, rate, x, y, mask=None):
        self.x.copy_(x)
        self.y.copy_(y)
        if mask is not None:
            self.mask.copy_(mask)
        self.rate.fill_(rate)
        if self.graph:
            self.graph.replay()
        else:
            self.body()

    def times(self, batches, rounds, seconds, each=10):
        """Milliseconds a step, rounds of ten: by the device's clock, elsewhere by the wall's."""
        end, number, out = time.perf_counter() + seconds, 0, []
        while len(out) < rounds and (not out or time.perf_counter() < end):
            start, steps = time.perf_counter(), each if self.cuda else 1
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if self.cuda else None
            if marks:
                marks[0].record()
            for _ in range(steps):
                self.run(1e-3, *batches[number % len(batches)])
                number += 1
            if marks:
                marks[1].record()
                marks[1].synchronize()
                out.append(marks[0].elapsed_time(marks[1]) / steps)
            else:
                out.append(1e3 * (time.perf_counter() - start))
        return sorted(out)
