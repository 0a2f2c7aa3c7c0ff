"""Which kernels have independent rows (tile._rows), and that a batch of their calls is one with more rows."""
import os
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import numpy as np

import tile
from tile import _rows

m = tile.compile("""
kernel scale[T: f32 | f64](x: in T[N], a: T, y: out T[N]) { grid n in tiles(N, 64) { y[n] = x[n] * a } }
kernel points(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[m, n] + x[m, 0] } }
}
kernel sums(x: in f32[M, N], b: in f32[N], y: out f32[M, N], s: out f32[M]) {
    grid m in tiles(M, 4) {
        var t = zeros[4](f32)
        for n in tiles(N, 32) {
            y[m, n] = x[m, n] + b[n][_, :]
            t = t + sum(x[m, n], axis = 1)
        }
        s[m] = t
    }
}
kernel linear(x: in f32[M, K], w: in f32[K, N], y: out f32[M, N]) {
    grid (m, n) in (tiles(M, 16), tiles(N, 16)) {
        var acc = zeros[16, 16](f32)
        for k in tiles(K, 16) { acc = dot(x[m, k], w[k, n], acc) }
        y[m, n] = acc
    }
}
kernel sorted(x: in f32[M, 32], y: out f32[M, 32]) { grid m in M { y[m, :] = sort(x[m, :]) } }

kernel another_row(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[m, n] + x[0, n] } }
}
kernel reversed(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[M - 1 - m, n] } }
}
kernel number_of_rows(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[m, n] / f32(M) } }
}
kernel number_of_row(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[m, n] + f32(m) } }
}
kernel place_in_tile(x: in f32[M, N], y: out f32[M, N]) {
    grid m in tiles(M, 4) { for n in tiles(N, 32) { y[m, n] = x[m, n] + f32(iota[4])[:, _] } }
}
kernel across_rows(x: in f32[M, N], y: out f32[M, N]) {
    grid m in tiles(M, 4) {
        for n in tiles(N, 32) {
            let v = x[m, n]
            y[m, n] = v + sum(v, axis = 0)[_, :]
        }
    }
}
kernel last_row_is_odd(x: in f32[M, N], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = if m == M - 1 { x[m, n] } else { -x[m, n] } } }
}
kernel chosen_row(x: in f32[M, N], at: in i32[M], y: out f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[max(min(i64(at[m]), M - 1), 0), n] } }
}
kernel square(x: in f32[M, M], y: out f32[M, M]) {
    grid m in M { for n in tiles(M, 32) { y[m, n] = x[m, n] } }
}
kernel all_rows(x: in f32[M, N], y: out f32[N]) {
    grid n in tiles(N, 32) {
        var t = zeros[32](f32)
        for m in 0..M { t = t + x[m, n] }
        y[n] = t
    }
}
kernel some_rows(x: in f32[M, N], y: inout f32[M, N]) {
    grid m in M { for n in tiles(N, 32) { y[m, n] = x[m, n] } }
}
kernel half_the_rows(x: in f32[M, N], y: out f32[M, N]) {
    grid m in cdiv(M, 2) { for n in tiles(N, 32) { y[m, n] = x[m, n] } }
}
""")
INDEPENDENT = {"scale": {"x", "y"}, "points": {"x", "y"}, "sums": {"x", "y", "s"}, "linear": {"x", "y"}, "sorted": {"x", "y"}}
NAMES = [name for name in dir(m) if isinstance(getattr(m, name), tile.Kernel)]


class Rows(unittest.TestCase):
    def test_which_are_independent(self):
        self.assertGreater(len(NAMES), 15)
        for name in NAMES:
            types = [p.dtype or "f32" for p in m[name].parameters if p.access not in ("out", None)]
            lead = _rows.leading(m[name], types)
            self.assertEqual(lead and set(lead), INDEPENDENT.get(name), name)

    def test_a_batch_is_more_rows(self):
        random = np.random.default_rng(3)
        for name in INDEPENDENT:
            kernel = m[name]
            for rows in (1, 5, 16, 37):
                def make(p):
                    if p.access is None:
                        return 1.5
                    return random.standard_normal([32 if d == "32" else rows if p.dimensions.index(d) == 0 and p.name == "x"
                                                   else 40 for d in p.dimensions]).astype(np.float32)

                inputs = [p for p in kernel.parameters if p.access != "out"]
                one = [make(p) for p in inputs]
                two = [make(p) if p.name == "x" else a for p, a in zip(inputs, one)]
                both = [np.concatenate((a, b)) if p.name == "x" else a for p, a, b in zip(inputs, one, two)]
                made = [r if isinstance(r, tuple) else (r,) for r in (kernel(*one), kernel(*two), kernel(*both))]
                for a, b, c in zip(*made):
                    np.testing.assert_array_equal(np.concatenate((a, b)), c, name)


if __name__ == "__main__":
    unittest.main()
