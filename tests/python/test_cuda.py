"""Kernels on a GPU through PyTorch: on its current stream, inside graphs, as operators. Skipped where there is none.

usage: test_cuda.py [--measure]     with --measure, also the host time of launches beside Triton's"""
import os
import sys
import time
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import torch

import tile
import tile.torch

usable = torch.cuda.is_available() and tile.backends.cuda.is_available()
TEXT = """
kernel add[T: f16 | bf16 | f32](x: in T[N], y: in T[N], z: out T[N]) { grid n in tiles(N, 1024) { z[n] = x[n] + y[n] } }
kernel cube[T: f32 | f64](x: in T[M, N], y: out T[M, N]) {
    grid (m, n) in (tiles(M, 1), tiles(N, 256)) { y[m, n] = x[m, n] * x[m, n] * x[m, n] }
}
kernel cube_backward[T: f32 | f64](x: in T[M, N], dy: in T[M, N], dx: out T[M, N]) {
    grid (m, n) in (tiles(M, 1), tiles(N, 256)) { dx[m, n] = dy[m, n] * x[m, n] * x[m, n] * T(3) }
}
"""


def rand(*shape, **options):
    return torch.randn(*shape, device="cuda", **options)


@unittest.skipUnless(usable, "there is no GPU that PyTorch and Tile can use")
class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tile.compile(TEXT)

    def test_the_device_of_the_arrays_decides(self):
        x, y = rand(1000), rand(1000)
        torch.testing.assert_close(self.m.add(x, y), x + y)
        torch.testing.assert_close(self.m.add(x.cpu(), y.cpu()), (x + y).cpu())
        for args, name in (((x, y.cpu()), "y"), ((x.cpu(), y), "y")):
            with self.assertRaises(tile.ArgumentError) as caught:
                self.m.add(*args)
            self.assertEqual((caught.exception.argument, caught.exception.code), (name, "DEVICE"))

    def test_current_stream(self):
        stream = torch.cuda.Stream()
        x = torch.zeros(1 << 20, device="cuda")
        for i in range(20):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100000)
                x.fill_(i)
                y = self.m.add(x, x)
                z = y + 1
            stream.synchronize()
            self.assertTrue((z == 2 * i + 1).all().item())

    def test_graph(self):
        x, y = rand(4096), torch.zeros(4096, device="cuda")
        bound = self.m.add.bind(x, x, y)
        self.m.add(x, x, y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.m.add(x, x, y)
            bound()
        for value in (1, 2):
            x.fill_(value)
            graph.replay()
            torch.cuda.synchronize()
            self.assertTrue((y == 2 * value).all().item())

    def test_layouts(self):
        base = rand(40, 60)
        for x in (base.t(), base[::2, ::3], base[:1].expand(7, 60), base[:, 1:], base[:0]):
            torch.testing.assert_close(self.m.cube(x), x ** 3)

    def test_stdlib(self):
        s, x = tile.stdlib, rand(64, 1000)
        torch.testing.assert_close(s.softmax(x), torch.softmax(x, 1))
        a, b = rand(128, 64).bfloat16(), rand(64, 256).bfloat16()
        torch.testing.assert_close(s.matmul(a, b, U="f32"), a.float() @ b.float(), rtol=2e-2, atol=2e-2)

    def test_operator(self):
        cube = tile.torch.op("tile_test_cuda::cube", self.m.cube, backward=self.m.cube_backward)
        torch.library.opcheck(cube, (rand(5, 70).requires_grad_(),))
        self.assertTrue(torch.autograd.gradcheck(cube, (rand(3, 4, dtype=torch.float64).requires_grad_(),)))
        compiled = torch.compile(lambda x: cube(x * 2).sum(), fullgraph=True)
        x = rand(8, 16)
        torch.testing.assert_close(compiled(x), ((x * 2) ** 3).sum())

    def test_errors_leave_the_device_usable(self):
        x = rand(10)
        with self.assertRaises(tile.ArgumentError):
            self.m.add(x, x, x)
        torch.testing.assert_close(self.m.add(x, x), x + x)


def host_time(function, count=200):
    """Median nanoseconds of a call, without waiting for the device; the queue is emptied between batches."""
    samples = []
    for _ in range(31):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(count):
            function()
        samples.append((time.perf_counter_ns() - start) / count)
    torch.cuda.synchronize()
    return sorted(samples)[len(samples) // 2]


def measure():
    m = tile.compile(TEXT)
    x, y, z = (rand(1024) for _ in range(3))
    rows = {"torch.add(out=)": lambda: torch.add(x, y, out=z), "tile": lambda: m.add(x, y, z), "tile, bound": m.add.bind(x, y, z)}
    try:
        import triton
        import triton.language as tl

        @triton.jit
        def add(x, y, z, n, B: tl.constexpr):
            at = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(z + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

        rows["Triton"] = lambda: add[(1,)](x, y, z, 1024, B=1024)
    except ImportError:
        print("Triton is not installed")
    for name, function in rows.items():
        function()
        print(f"{name:20} {host_time(function):8.0f} ns a launch, host")


if __name__ == "__main__":
    if "--measure" in sys.argv and usable:
        sys.argv.remove("--measure")
        measure()
    unittest.main()
