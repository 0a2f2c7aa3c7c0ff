"""Kernels under JAX, by XLA's FFI."""
import os
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import jax
import jax.numpy as jnp
import numpy as np

import tile
import tile.jax

m = tile.compile("""
kernel add[T: f16 | bf16 | f32](x: in T[M, N], y: in T[M, N], z: out T[M, N]) {
    grid (m, n) in (tiles(M, 1), tiles(N, 64)) { z[m, n] = x[m, n] + y[m, n] }
}
kernel scale(x: in f32[N], a: f32, k: i32, flip: bool, y: out f32[N]) {
    grid n in tiles(N, 64) { y[n] = where(flip, -x[n], x[n]) * a + f32(k) }
}
kernel twice(x: inout f32[N]) { grid n in tiles(N, 64) { x[n] = x[n] * 2 } }
kernel halves(x: in f32[2 * N], lo: out f32[N], hi: out f32[N]) {
    grid n in tiles(N, 64) {
        lo[n] = x[n]
        hi[n] = x[N + n]
    }
}
""")


class Jax(unittest.TestCase):
    def test_results(self):
        x = jnp.arange(12.0).reshape(3, 4)
        np.testing.assert_array_equal(tile.jax.call(m.add, x, x), 2 * x)
        half = x.astype(jnp.bfloat16)
        made = tile.jax.call(m.add, half, half)
        self.assertEqual(made.dtype, jnp.bfloat16)
        np.testing.assert_array_equal(made, half + half)
        v = jnp.arange(10.0)
        np.testing.assert_array_equal(tile.jax.call(m.scale, v, 2.5, -3, True), -v * 2.5 - 3)
        lo, hi = tile.jax.call(m.halves, v)
        np.testing.assert_array_equal(jnp.concatenate([lo, hi]), v)
        np.testing.assert_allclose(tile.jax.call(tile.stdlib.softmax, x), jax.nn.softmax(x, 1), rtol=1e-6)

    def test_inout_leaves_its_argument_alone(self):
        v = jnp.arange(10.0)
        np.testing.assert_array_equal(tile.jax.call(m.twice, v), 2 * np.arange(10.0))
        np.testing.assert_array_equal(v, np.arange(10.0))

    def test_jit_and_vmap(self):
        f = jax.jit(lambda x: tile.jax.call(m.add, x * 2, x).sum())
        for rows in (2, 5, 2):
            x = jnp.ones((rows, 6))
            self.assertEqual(f(x), 3 * rows * 6)
        x = jnp.arange(24.0).reshape(2, 3, 4)
        np.testing.assert_array_equal(jax.vmap(lambda t: tile.jax.call(m.add, t, t))(x), 2 * x)

    def test_a_batch_is_one_call_where_rows_are_independent(self):
        x = jnp.arange(24.0).reshape(2, 3, 4)
        one = jax.jit(jax.vmap(lambda t, u: tile.jax.call(m.add, t, u), in_axes=(0, None)))
        np.testing.assert_array_equal(one(x, x[0]), x + x[0])
        self.assertNotIn("while", str(one.lower(x, x[0]).as_text()))
        each = jax.jit(jax.vmap(lambda t: tile.jax.call(m.halves, t)[1]))
        v = jnp.arange(12.0).reshape(3, 4)
        np.testing.assert_array_equal(each(v), v[:, 2:])
        self.assertIn("while", str(each.lower(v).as_text()))
        np.testing.assert_array_equal(jax.vmap(lambda t: tile.jax.call(m.scale, t, 2.0, 1, False), in_axes=1, out_axes=1)(v), v * 2 + 1)
        np.testing.assert_array_equal(jax.vmap(jax.vmap(lambda t: tile.jax.call(m.add, t, t)))(x[None]), 2 * x[None])

    def test_what_does_not_fit(self):
        x = jnp.ones((2, 3))
        with self.assertRaises(TypeError):
            tile.jax.call(m.add, x)
        with self.assertRaisesRegex(Exception, "add: y: dimension 1"):
            jax.block_until_ready(tile.jax.call(m.add, x, jnp.ones((2, 4))))
        with self.assertRaises(Exception):
            jax.block_until_ready(tile.jax.call(m.add, x, x.astype(jnp.int32)))

    def test_arrays_on_a_gpu_beside_those_of_pytorch(self):
        """What JAX has queued comes first, and the memory of an array that is dropped is not given away while the kernel reads it."""
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        if not (torch.cuda.is_available() and tile.backends.cuda.is_available() and tile.jax._has_gpu()):
            self.skipTest("there is no GPU that JAX, PyTorch and Tile can use")
        device, stream = jax.devices("gpu")[0], torch.cuda.Stream()
        make = jax.jit(lambda i: (jnp.ones((512, 2048)) @ jnp.ones((2048, 2048))) * 0 + i)
        t, z = torch.zeros(512, 2048, device="cuda"), torch.zeros(512, 2048, device="cuda")
        torch.cuda.synchronize()
        for i in range(20):
            with jax.default_device(device), torch.cuda.stream(stream):
                x = make(float(i))
                torch.cuda._sleep(200000)
                t.fill_(1)
                m.add(*((x, t) if i % 2 else (t, x)), z)
                del x
                other = make(-1000.0)
                found = z + 0
                t.fill_(5)
                other.block_until_ready()
            torch.cuda.synchronize()
            self.assertTrue((found == i + 1).all().item(), i)

    def test_arrays_are_read_by_dlpack(self):
        x = jax.device_put(jnp.ones((2, 3)), jax.devices("cpu")[0])
        y = np.zeros((2, 3), np.float32)
        m.add(x, x, y)
        np.testing.assert_array_equal(y, 2 * np.ones((2, 3)))
        with self.assertRaises(tile.ArgumentError) as caught:
            m.add(y, y, x)
        self.assertEqual((caught.exception.argument, caught.exception.code), ("z", "READ_ONLY"))


if __name__ == "__main__":
    unittest.main()
