"""What conditions, remainders and clamps prove, beside NumPy: the kernels of tests/regressions on data of random sizes, indices
far outside among them. What is not `else` in these kernels would be read outside of a tensor where a proof is wrong."""
import os
import pathlib
import unittest

os.environ["TILE_CACHE_DIR"] = ""  # what is compiled here is compiled anew

import numpy as np

import tile

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "regressions"
EDGES = [0, 1, -1, 2**31, -2**31, 2**63 - 1, -2**63]


def sizes(rng):
    return int(rng.choice([1, 2, 3, 4, 5, 7, 8, 31, 64, 100])), int(rng.choice([0, 1, 3, 4, 9, 33]))


def indices(rng, count, limit):
    near = rng.integers(-limit - 2, 2 * limit + 3, count)
    return np.where(rng.random(count) < 0.2, rng.choice(EDGES, count), near).astype(np.int64)


def taken(x, at, outside=-1):
    inside = (at >= 0) & (at < len(x))
    return np.where(inside, x[np.where(inside, at, 0)], np.float32(outside))


class Conditions(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def load(self, name):
        return tile.load(str(PROGRAMS / f"{name}.tile"))

    def equal(self, got, wanted):
        np.testing.assert_array_equal(got, wanted)

    def test_sides_of_branches(self):
        module = self.load("conditions_prove")
        for _ in range(20):
            n, m = sizes(self.rng)
            x = self.rng.random(n, np.float32)
            got = [np.empty(m, np.float32) for _ in range(4)]
            module.sides(x, *got)
            for one in got:
                self.equal(one, taken(x, np.arange(m) * 3 - 2))
            for off in [0, -2, n, -n, *EDGES]:
                y = np.empty(m, np.float32)
                module.leaves(x, y, off)
                self.equal(y, taken(x, np.arange(m, dtype=np.int64) + np.int64(off)))

    def test_neighbours(self):
        module = self.load("conditions_prove")
        for n in (1, 2, 3, 10, 65):
            x = np.arange(n, dtype=np.float32)
            wanted = x + np.r_[np.float32(0), x[:-1]] + np.r_[x[1:], np.float32(0)]
            self.equal(module.neighbours(x), wanted)

    def test_binary_searches(self):
        module = self.load("conditions_prove")
        for n in (0, 1, 2, 3, 10, 100, 1000):
            x, q = np.sort(self.rng.random(n, np.float32)), self.rng.random(17, np.float32) * 1.5 - 0.25
            q = q.astype(np.float32)
            for found in module.search(x, q):
                self.equal(found, np.searchsorted(x, q))

    def test_indices_that_are_data(self):
        module = self.load("conditions_prove")
        for _ in range(20):
            n, m = sizes(self.rng)
            x, at = self.rng.random(n, np.float32), self.rng.integers(-3, 2 * n, m).astype(np.int32)
            self.equal(module.again(x, at), taken(x, at))

    def test_tiles_of_indices(self):
        module = self.load("index_tiles_prove")
        for _ in range(30):
            n, m = sizes(self.rng)
            x, at = self.rng.random(n, np.float32), indices(self.rng, m, n)
            clamped = x[np.clip(at, 0, n - 1)]
            y, z, _ = module.forced(x, at)
            self.equal(y, clamped)
            self.equal(z, x[at % n])
            self.equal(module.nearest(x, at), clamped + clamped)
            self.equal(module.optional(x, at), x[at % n])
            shift = int(self.rng.choice([0, 1, -1, n, -3 * n - 1, 7]))
            self.equal(module.ring(x, shift), np.roll(x, -shift))
            rows = self.rng.random((n, 4), np.float32)
            self.equal(module.flat(rows, at), rows[at % n, at & 3])

    def test_requirements(self):
        module = self.load("require_relates")
        for n in (0, 1, 3, 4, 5, 8, 33):
            x = self.rng.random(2 * n, np.float32)
            y = np.empty(n, np.float32)
            module.halves(x, y)
            self.equal(y, x[:n] + x[n:])
            module.strided(x, y)
            self.equal(y, x[::2] + x[1::2])
            long = self.rng.random(n + 3, np.float32)
            module.window(long, y)
            self.equal(y, long[:n] + long[3:])
            chunks = self.rng.random(4 * n, np.float32)
            self.equal(module.chunks(chunks), chunks)

    def test_types_of_indices(self):
        module = self.load("index_types")
        x = self.rng.random(256, np.float32)
        for m in (0, 1, 5, 64):
            a, d = self.rng.integers(0, 256, m).astype(np.uint8), self.rng.integers(-9, 300, m).astype(np.int16)
            b = indices(self.rng, m, 256).astype(np.int32)
            c = indices(self.rng, m, 256).astype(np.uint64)
            wanted = x[a] + taken(x, b) + taken(x, (c - np.uint64(1)).astype(np.int64)) + taken(x, d)
            self.equal(module.scalars(x, a, b, c, d), wanted)

    def test_rows_of_any_length(self):
        module = self.load("literals_and_constants")
        for n in (1, 2, 3, 6, 8, 15):
            x = self.rng.random((3, n), np.float32)
            self.equal(module.layout(x), x if n % 2 else np.concatenate([x[:, ::2], x[:, 1::2]], axis=1))


if __name__ == "__main__":
    unittest.main()
