"""Threads that load what an extension shares: kernels that are launched for the first time by all of them, launches that are noted,
results, bound calls, refusals, and observers that come and go. usage: load.py ROUNDS [THREADS]     (scripts/test_free_threaded.sh)

With PyTorch's tensors where PyTorch is installed, else with NumPy's arrays alone. All objects but results are made before the threads."""
import os
import random
import sys
import threading

os.environ["TILE_CACHE_DIR"] = ""

import numpy as np

import tile

try:
    import torch
except ImportError:
    torch = None

TEXT = """
kernel add[T: f32 | f64](x: in T[N], y: in T[N], z: out T[N]) { grid n in tiles(N, 64) { z[n] = x[n] + y[n] } }
kernel scale(x: in f32[N], a: f32, y: out f32[N]) { grid n in tiles(N, 64) { y[n] = x[n] * a } }
"""
SIZES, CALLS, TOGETHER = 12, 150, 40


class Round:
    """One round: kernels that no thread has called yet."""

    def __init__(self, seed, threads):
        m = tile.compile(TEXT)
        self.add, self.scale, self.seed, self.threads = m.add, m.scale, seed, threads
        choose = np.random.default_rng(seed)
        self.inputs = [[choose.standard_normal(n).astype(np.float32) for _ in range(2)] for n in choose.integers(1, 300, SIZES)]
        self.sums = [x + y for x, y in self.inputs]
        self.results = [[np.empty_like(x) for x, _ in self.inputs] for _ in range(threads)]
        self.bound = [[m.add.bind(*given, z) for given, z in zip(self.inputs, zs)] for zs in self.results]
        self.wide = [x.astype(np.float64) for x, _ in self.inputs]
        self.other = [(*map(torch.from_numpy, given),) for given in self.inputs] if torch else self.inputs
        self.other_results = [[torch.from_numpy(z) for z in zs] if torch else zs for zs in self.results]
        self.later = [torch.ones(300 + n) if torch else np.ones(300 + n, np.float32) for n in range(TOGETHER)]
        self.later_results = [[0 * x for x in self.later] for _ in range(threads)]
        self.leaf = torch.ones(int(choose.integers(1, 9)), requires_grad=True) if torch else None
        self.barrier, self.wrong = threading.Barrier(threads), []

    def call(self, what, thread, k):
        """True where the result is right."""
        (x, y), z, (a, b), c = self.inputs[k], self.results[thread][k], self.other[k], self.other_results[thread][k]
        if what < 5:
            self.add(a, b, c)
        elif what == 5:
            self.add(x, y, z)
        elif what == 6:
            return bool((np.asarray(self.add(a, b)) == self.sums[k]).all())
        elif what == 7:
            return bool((self.add(self.wide[k], self.wide[k]) == 2 * self.wide[k]).all())
        elif what == 8:
            self.scale(a, 2.0, c)
            return bool((z == 2 * x).all())
        elif what == 9:
            self.bound[thread][k]()
        elif what == 10:
            seen = []
            with tile.observe(lambda name, status: seen.append(name)):
                self.add(a, b, c)
        else:
            try:
                self.add(*((self.leaf,) * 3 if torch else (x, y[:-1], z)))
                return torch is None and len(x) == 1
            except tile.ArgumentError:
                return True
        return bool((z == self.sums[k]).all())

    def work(self, thread):
        choose = random.Random(f"{self.seed} {thread}")
        self.barrier.wait()
        for _ in range(CALLS):
            what, k = choose.randrange(12), choose.randrange(SIZES)
            try:
                if not self.call(what, thread, k):
                    self.wrong.append((what, k))
            except Exception as error:
                self.wrong.append((what, k, repr(error)))
        self.together(thread)

    def together(self, thread):
        """All threads have a size at once that none has launched yet: the second launches note it while others look for it."""
        for k, (x, z) in enumerate(zip(self.later, self.later_results[thread])):
            self.barrier.wait()
            try:
                for _ in range(4):
                    self.add(x, x, z)
                if not bool((z == 2).all()):
                    self.wrong.append(("together", k))
            except Exception as error:
                self.wrong.append(("together", k, repr(error)))

    def run(self):
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.wrong


def main(rounds, threads=8):
    free = not getattr(sys, "_is_gil_enabled", lambda: True)()
    found = [Round(seed, threads) for seed in range(rounds)]
    wrong = [one for round in found for one in round.run()]
    noted = sum(round.add._noted() for round in found)
    print(f"{rounds * threads * (CALLS + 4 * TOGETHER)} calls on {threads} threads, {'without' if free else 'with'} the GIL, "
          f"{'PyTorch ' + torch.__version__ if torch else 'NumPy alone'}: {noted} launches noted, {len(wrong)} wrong", *wrong[:5])
    return bool(wrong or torch and not noted)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
