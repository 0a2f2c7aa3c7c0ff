"""The published curve from Python: N statements and a sum on inputs of (8, 16), and of ((i % 10) + 4, 16), called directly.
Microseconds of host time a call, medians of batches of 100. usage: measure_curve.py [cpu|cuda] [--check]

With --check, times above the limit are a failure."""
import statistics
import sys
import time

import torch

import tile

STATEMENTS = ("v + 0.1", "sin(v)", "v * 1.1", "cos(v)", "v + 0.2", "max(v, 0.0)", "v - 0.1", "exp(v * 0.5)", "v + 0.3",
              "1.0 / (1.0 + exp(-v))", "v * 1.2", "sin(v)", "v + 0.4", "cos(v)", "v - 0.2", "max(v, 0.0)", "v + 0.5", "exp(v * 0.4)",
              "v * 1.3", "1.0 / (1.0 + exp(-v))")
ROUNDS = 111


def kernel(count):
    body = "".join(f"            v = {STATEMENTS[i % len(STATEMENTS)]}\n" for i in range(count))
    return tile.compile("kernel tiny(x: in f32[M, N], y: out f32[]) {\n    grid one in 1 {\n        var total = f32(0)\n"
                        "        for m in tiles(M, 16) { for n in tiles(N, 16) {\n            var v = x[m, n]\n" + body +
                        "            total = total + sum(v)\n        } }\n        y[] = total\n    }\n}\n").tiny


def batch(function, inputs, y, wait):
    wait()
    start = time.perf_counter()
    for i in range(100):
        function(inputs[i % 10], y)
    return (time.perf_counter() - start) * 1e4


def main(device):
    torch.set_num_threads(1)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    y = torch.zeros((), device=device)
    kernels = {count: kernel(count) for count in (1, 5, 10, 15, 20, 25, 30)}
    inputs = [[torch.randn(s, 16, device=device) for s in sizes] for sizes in ([8] * 10, [i + 4 for i in range(10)])]
    batches = {(count, kind): [] for count in kernels for kind in range(2)}
    for _ in range(ROUNDS):  # in turns: a slow period of the host is in a few batches of every row, and in no median
        for (count, kind), found in batches.items():
            found.append(batch(kernels[count], inputs[kind], y, wait))
    wait()
    times = {row: statistics.median(found[ROUNDS // 10:]) for row, found in batches.items()}
    print("N  fixed  varying  compiles")
    for count, tiny in kernels.items():
        print(f"{count:2} {times[count, 0]:6.2f} {times[count, 1]:8.2f} {tiny.stats.variants:9}")
    worst, limit = max(times.values()), 5 if device == "cuda" else 2
    print(f"at most {worst:.2f} us; allowed {limit}")
    return worst > limit and "--check" in sys.argv


if __name__ == "__main__":
    sys.exit(main("cuda" if "cuda" in sys.argv else "cpu"))
