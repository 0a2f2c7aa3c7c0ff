"""Processor time of a call, medians of batches, beside torch.add in the same process. usage: measure_calls.py [--check]"""
import statistics
import sys
import time
import timeit

import numpy as np
import torch

import tile

torch.set_num_threads(1)
BATCH, ROUNDS = 2000, 41


def measure(statements, names):
    """Median nanoseconds of each statement, in turns; less what an empty one takes."""
    timers = {name: timeit.Timer(text, timer=time.thread_time, globals=names) for name, text in {"": "pass", **statements}.items()}
    times = {name: [] for name in timers}
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            times[name].append(timer.timeit(BATCH) / BATCH * 1e9)
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    empty = medians.pop("")
    return {name: ns - empty for name, ns in medians.items()}


def operators(names):
    """The same as operators of PyTorch, without and with gradients."""
    import tile.torch

    m = tile.compile("""
kernel add(x: in f32[N], y: in f32[N], z: out f32[N]) { grid n in tiles(N, 16) { z[n] = x[n] + y[n] } }
kernel add_backward(dz: in f32[N], dx: out f32[N], dy: out f32[N]) {
    grid n in tiles(N, 16) {
        dx[n] = dz[n]
        dy[n] = dz[n]
    }
}
""")
    launch = m.add._detached()

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return launch(x, y)

        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    names |= {"op": tile.torch.op("tile_measure::add", m.add), "apply": Function.apply,
              "op_grad": tile.torch.op("tile_measure::add_grad", m.add, backward=m.add_backward),
              "xg": torch.rand(16, requires_grad=True), "yg": torch.rand(16, requires_grad=True)}
    return {"torch.add": "torch.add(x, y)", "operator": "op(x, y)", "autograd.Function": "apply(xg, yg)",
            "operator with gradient": "op_grad(xg, yg)"}


def main():
    m = tile.compile("""
kernel add(x: in f32[N], y: in f32[N], z: out f32[N]) {
    grid n in tiles(N, 16) { z[n] = x[n] + y[n] }
}
""")
    add = m.add
    x, y, z = (torch.rand(16) for _ in range(3))
    a, b, c = (t.numpy().copy() for t in (x, y, z))
    bound = add.bind(x, y, z)
    bound_numpy = add.bind(a, b, c)
    names = {**globals(), **locals()}
    rows = measure({
        "torch.add(out=)": "torch.add(x, y, out=z)",
        "np.add(out=)": "np.add(a, b, c)",
        "tile, torch tensors": "add(x, y, z)",
        "tile, NumPy arrays": "add(a, b, c)",
        "tile, bound": "bound()",
        "tile, bound (NumPy)": "bound_numpy()",
        "torch.empty_like": "torch.empty_like(x)",
        "tile, torch result": "add(x, y)",
        "np.empty_like": "np.empty_like(a)",
        "tile, NumPy result": "add(a, b)",
        **operators(names),
    }, names)
    base = rows["torch.add(out=)"]
    for name, ns in rows.items():
        print(f"{name:24} {ns:8.0f} ns  {ns / base:5.2f} x torch.add")
    allowed = {"tile, torch tensors": 0.30 * base, "tile, NumPy arrays": 0.30 * base, "tile, bound": 0.11 * base,
               "tile, torch result": 1.2 * rows["torch.empty_like"] + 250, "operator": 2.2 * rows["torch.add"],
               "operator with gradient": rows["autograd.Function"] + 1500}
    failed = [f"{name}: {rows[name]:.0f} ns, allowed {most:.0f}" for name, most in allowed.items() if rows[name] > most]
    print("\n".join(failed) or "all within the limits")
    return 1 if failed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
