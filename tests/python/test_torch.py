"""Kernels on PyTorch's tensors, and as its operators."""
import contextlib
import gc
import os
import sys
import threading
import unittest
import weakref

os.environ["TILE_CACHE_DIR"] = ""

import torch

import tile
import tile.torch

TEXT = """
kernel cube[T: f32 | f64](x: in T[M, N], y: out T[M, N]) {
    grid (m, n) in (tiles(M, 1), tiles(N, 64)) { y[m, n] = x[m, n] * x[m, n] * x[m, n] }
}
kernel cube_backward[T: f32 | f64](x: in T[M, N], dy: in T[M, N], dx: out T[M, N]) {
    grid (m, n) in (tiles(M, 1), tiles(N, 64)) { dx[m, n] = dy[m, n] * x[m, n] * x[m, n] * T(3) }
}
kernel scale[T: f32 | f64](x: in T[N], a: f64, y: out T[N]) {
    grid n in tiles(N, 64) { y[n] = x[n] * T(a) }
}
kernel scale_backward[T: f32 | f64](dy: in T[N], a: f64, dx: out T[N]) {
    grid n in tiles(N, 64) { dx[n] = dy[n] * T(a) }
}
kernel add_to[T: f32 | f64](x: inout T[N], y: in T[N]) { grid n in tiles(N, 64) { x[n] = x[n] + y[n] } }
kernel halves(x: in f32[2 * N], lo: out f32[N], hi: out f32[N]) {
    grid n in tiles(N, 64) {
        lo[n] = x[n]
        hi[n] = x[N + n]
    }
}
"""
m = tile.compile(TEXT)
cube = tile.torch.op("tile_test::cube", m.cube, backward=m.cube_backward)
plain_cube = tile.torch.op("tile_test::plain_cube", m.cube)
scale = tile.torch.op("tile_test::scale", m.scale, backward=m.scale_backward)
add_to = tile.torch.op("tile_test::add_to", m.add_to)
halves = tile.torch.op("tile_test::halves", m.halves)


class Again(unittest.TestCase):
    """Launches like earlier ones, which are noted (ADR 106): what differs from them is found."""

    def setUp(self):
        self.m = tile.compile(TEXT)

    def noted(self, kernel, *args):
        """Launched until it is noted, if it ever is; what was noted."""
        for _ in range(130):
            kernel(*args)
        return kernel._noted()

    def refused(self, argument, code, *args):
        with self.assertRaises(tile.ArgumentError) as caught:
            self.m.cube(*args)
        self.assertEqual((caught.exception.argument, caught.exception.code), (argument, code))

    def check(self, x, y):
        y.fill_(7)
        self.m.cube(x, y)
        torch.testing.assert_close(y, x ** 3)

    def test_other_memory(self):
        base, out = torch.randn(40, 64), torch.zeros(40, 64)
        self.assertEqual(self.noted(self.m.cube, base[:8], out[:8]), 1)
        for row in (8, 16, 30):
            self.check(base[row:row + 8], out[row:row + 8])
            self.assertEqual(out[row + 8:row + 9].abs().max() if row < 16 else 0, 0)
        launches = self.m.cube.stats.launches
        self.check(base[8:16], out[8:16])
        self.assertEqual(self.m.cube.stats.launches, launches + 1)
        self.assertEqual(self.m.cube._noted(), 1)

    def test_memory_of_other_alignment(self):
        base, out = torch.randn(5000), torch.zeros(5000)
        begin = -(base.data_ptr() // 4) % 32, -(out.data_ptr() // 4) % 32
        views = [(base.as_strided((8, 64), (64, 1), begin[0] + i), out.as_strided((8, 64), (64, 1), begin[1] + k))
                 for i, k in ((0, 0), (1, 0), (0, 3), (4, 4), (16, 32), (7, 9))]
        for first in views:
            self.m = tile.compile(TEXT)
            self.assertEqual(self.noted(self.m.cube, *first), 1)
            for x, y in views:
                self.check(x, y)
                self.check(x, y)

    def test_memory_that_is_shared(self):
        base = torch.randn(20, 64)
        self.noted(self.m.cube, base[:8], torch.zeros(8, 64))
        self.refused("y", "OVERLAP", base[:8], base[:8])
        self.refused("y", "OVERLAP", base[:8], base[7:15])
        self.check(base[:8], base[8:16])

    def test_other_shapes_strides_and_types(self):
        base = torch.randn(64, 64)
        self.noted(self.m.cube, base[:8, :8].clone(), torch.zeros(8, 8))
        for x in (base[:8, :8], base[:8, :8].t(), base[:8, :1].expand(8, 8), base[:8, :7], base[:7, :8].clone(), base[:8, :8].double()):
            for _ in range(3):
                self.check(x, torch.empty_like(x, memory_format=torch.contiguous_format))
            self.check(x, torch.zeros(x.shape[::-1], dtype=x.dtype).t())
        out = torch.zeros(64, 64)
        self.noted(self.m.cube, base[:8, :8], out[:8, :8])
        self.check(base[:8, :7], out[:8, :7])
        self.assertTrue(torch.equal(out[:8, 7], base[:8, 7] ** 3))  # as it was
        self.refused("y", "EXTENT", base[:8, :8], out[:8, :7])
        self.refused("y", "EXTENT", base[:8, :8].clone(), torch.zeros(8, 9))
        self.refused("x", "RANK", torch.zeros(8), torch.zeros(8, 8))
        self.refused("x", "TYPE", torch.zeros(8, 8, dtype=torch.int32), torch.zeros(8, 8))

    def test_gradients_and_views_that_negate(self):
        x, y = torch.randn(3, 4), torch.zeros(3, 4)
        self.assertEqual(self.noted(self.m.cube, x, y), 1)
        self.refused("x", "OTHER", x.detach().requires_grad_(), y)
        self.refused("x", "OTHER", torch.nn.Parameter(x), y)
        z = torch.randn(3, 4, dtype=torch.complex64)
        self.noted(self.m.cube, z.imag, y)
        self.refused("x", "OTHER", z.conj().imag, y)
        with torch.no_grad():
            self.check(x.detach().requires_grad_(), y)

    def test_memory_that_is_copied_when_it_is_written(self):
        if not hasattr(torch, "_lazy_clone"):
            self.skipTest("this PyTorch has no such tensors")
        x, y = torch.randn(3, 4), torch.zeros(3, 4)
        self.noted(self.m.cube, x, y)
        later = torch._lazy_clone(y)
        before = y.clone()
        self.m.cube(x, later)
        self.assertTrue(torch.equal(y, before) and torch.equal(later, x ** 3) or torch.equal(before, x ** 3))
        torch.testing.assert_close(later, x ** 3)

    def test_many_shapes(self):
        base = torch.randn(64, 64)
        for _ in range(2):
            for n in range(1, 60):
                for _ in range(3):
                    self.check(base[:n, :n], torch.zeros(n, n))
        self.assertTrue(4 <= self.m.cube._noted() <= 16)

    def test_results_that_are_made(self):
        """Calls that make them are noted apart from those that are given them."""
        base = torch.randn(40, 64)
        self.assertEqual(self.noted(self.m.cube, base[:8]), 1)
        for x in (base[8:16], base[:8].clone(), base[1:9, :63], base[:8].t(), base[0:16:2], base[:8].double(), base[:5], base[:0]):
            for _ in range(2):
                y = self.m.cube(x)
                torch.testing.assert_close(y, x ** 3)
                self.assertTrue(y.is_contiguous() and not y.requires_grad and y.dtype == x.dtype)
        made = [self.m.cube(base[:8]) for _ in range(3)]
        self.assertEqual(len({y.data_ptr() for y in made}), 3)
        self.assertEqual({sys.getrefcount(y) for y in made}, {sys.getrefcount(y) for y in [torch.zeros(1)]})
        noted = self.m.cube._noted()
        self.noted(self.m.cube, base[:8], torch.zeros(64, 8).t())  # the same inputs, and a result in another order
        self.assertEqual(self.m.cube._noted(), noted + 1)
        self.assertTrue(self.m.cube(base[:8]).is_contiguous())
        lo, hi = torch.split(torch.arange(10.0), 5)
        self.noted(self.m.halves, torch.arange(10.0))
        for _ in range(2):
            torch.testing.assert_close(self.m.halves(torch.arange(10.0)), (lo, hi))
        self.refused("x", "OTHER", base[:8].clone().requires_grad_())
        with self.assertRaises(tile.ArgumentError):
            self.m.cube(base[:8].to(torch.int32))
        seen = []
        with tile.observe(lambda name, _: seen.append(name)):
            self.m.cube(base[:8])
        self.assertEqual(seen, ["cube"])

    def test_what_is_not_noted(self):
        x, y = torch.randn(3, 4), torch.zeros(3, 4)
        self.assertEqual(self.noted(self.m.cube, x.numpy(), y.numpy()), 0)
        self.assertEqual(self.noted(self.m.scale, x[0].double(), 2.0, y[0].double()), 0)
        self.assertEqual(self.noted(self.m.cube, x[:0], y[:0]), 0)
        said = tile.compile('kernel say(x: in f32[N], y: out f32[N]) { grid n in N { print(x[n])\n y[n] = x[n] } }').say
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            self.assertEqual(self.noted(said, x[0], y[0]), 0)

    def test_observers_see_them(self):
        x, y, seen = torch.randn(3, 4), torch.zeros(3, 4), []
        self.noted(self.m.cube, x, y)
        with tile.observe(lambda name, _: seen.append(name)):
            self.m.cube(x, y)
        self.m.cube(x, y)
        self.assertEqual(seen, ["cube"])

    def test_they_go_with_the_kernel(self):
        x, y = torch.randn(3, 4), torch.zeros(3, 4)
        counts = []
        for _ in range(3):
            m = tile.compile(TEXT)
            self.assertEqual(self.noted(m.cube, x, y), 1)
            gone = weakref.ref(m.cube)
            counts.append(sys.getrefcount(x))
            del m
            gc.collect()
            self.assertIsNone(gone())
        self.assertEqual(len(set(counts)), 1)


class Calls(unittest.TestCase):
    def refused(self, argument, function, *args):
        with self.assertRaises(tile.ArgumentError) as caught:
            function(*args)
        self.assertEqual(caught.exception.argument, argument, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))  # PyTorch's own reasons go on with its frames

    def test_results(self):
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(5, 130, dtype=dtype)
            y = torch.empty_like(x)
            self.assertIsNone(m.cube(x, y))
            torch.testing.assert_close(y, x ** 3)
            made = m.cube(x)
            self.assertIsInstance(made, torch.Tensor)
            self.assertTrue(torch.equal(made, y))

    def test_layouts(self):
        base = torch.randn(40, 60)
        for x in (base.t(), base[::2, ::3], base[:1].expand(7, 60), base[:, 1:], base[:0], base.as_strided((3, 3), (1, 7))):
            torch.testing.assert_close(m.cube(x), x ** 3)
        self.refused("y", m.cube, base, base)
        self.refused("y", m.cube, base, base[:1].expand(40, 60).clone()[:, :5])
        self.refused("y", m.cube, base[:3], torch.zeros(60).expand(3, 60))

    def test_types_and_devices(self):
        x = torch.randn(3, 4)
        self.refused("x", m.cube, x.int())
        self.refused("x", m.cube, x.bfloat16())
        self.refused("x", m.cube, x[0])
        self.refused("x", m.cube, torch.empty(3, 4, device="meta"))
        self.refused("x", m.cube, x.to_sparse())
        self.refused("x", m.cube, torch.randn(3, 4, dtype=torch.complex64))
        with self.assertRaisesRegex(tile.ArgumentError, "tile.torch.op"):
            torch.func.vmap(m.cube)(torch.randn(2, 3, 4))

    def test_gradients_are_not_lost(self):
        x = torch.randn(3, 4, requires_grad=True)
        self.refused("x", m.cube, x)
        self.refused("y", m.cube, x.detach(), torch.nn.Parameter(torch.zeros(3, 4)))
        self.refused("x", m.cube.bind, x)
        with torch.no_grad():
            torch.testing.assert_close(m.cube(x), x ** 3)
        torch.testing.assert_close(m.cube(x.detach()), x.detach() ** 3)

    def test_views_that_negate(self):
        z = torch.randn(3, 4, dtype=torch.complex64)
        x = z.conj().imag
        self.assertTrue(x.is_neg())
        self.refused("x", m.cube, x)
        self.refused("x", m.cube._detached(), x)
        self.refused("y", m.cube, z.imag, x)
        torch.testing.assert_close(m.cube(x.resolve_neg()), x ** 3)
        torch.testing.assert_close(cube(x), x ** 3)  # the dispatcher resolves it

    def test_types_of_which_only_attributes_are_known(self):
        class Odd(torch.Tensor):
            _cdata = 0  # no address: the attributes are asked at each call

        self.assertEqual(torch.ones(2).as_subclass(Odd)._cdata, 0)
        x = torch.randn(3, 4).as_subclass(Odd)
        torch.testing.assert_close(m.cube(x), (x ** 3).as_subclass(torch.Tensor))
        self.refused("x", m.cube, torch.randn(3, 4, requires_grad=True).as_subclass(Odd))
        self.refused("x", m.cube, torch.randn(3, 4, dtype=torch.complex64).conj().imag.as_subclass(Odd))

    def test_results_of_all_types(self):
        copy = tile.compile("kernel copy[T: f8e4m3 | f8e5m2 | f16 | bf16 | f32 | f64 | i8 | i16 | i32 | i64 | u8 | u16 | u32 | u64 |"
                            " bool](x: in T[M, N], y: out T[M, N]) { grid (m, n) in (tiles(M, 1), tiles(N, 16)) {"
                            " y[m, n] = x[m, n] } }").copy
        for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
                     "uint8", "uint16", "uint32", "uint64", "bool"):
            x = torch.randint(0, 2, (3, 5)).to(getattr(torch, name))
            y = copy(x)
            self.assertEqual((y.dtype, y.stride(), y.is_contiguous()), (x.dtype, (5, 1), True))
            self.assertTrue(torch.equal(y.float(), x.float()), name)
        for shape in ((0, 5), (5, 0), (1, 1)):
            y = copy(torch.zeros(shape))
            self.assertEqual((tuple(y.shape), y.stride()), (shape, torch.empty(shape).stride()))
            y.resize_(4, 4).zero_()  # it is a tensor like any other

    @unittest.skipUnless(hasattr(torch, "float4_e2m1fn_x2"), "PyTorch has no float4_e2m1fn_x2")
    def test_two_numbers_in_a_byte(self):
        m = tile.compile("kernel take(w: in f4e2m1[N, K], y: out f32[N, K]) { grid (n, k) in (tiles(N, 4), tiles(K, 64)) {"
                         " y[n, k] = f32(w[n, k]) } }\n"
                         "kernel give(x: in f8e4m3[N, K], y: out f4e2m1[N, K]) { grid (n, k) in (tiles(N, 4), tiles(K, 64)) {"
                         " y[n, k] = x[n, k] } }\n"
                         "kernel plain(w: in u8[N, K], y: out u8[N, K]) { grid (n, k) in (tiles(N, 4), tiles(K, 64)) {"
                         " y[n, k] = w[n, k] } }")
        numbers = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        numbers = torch.cat([numbers, -numbers])
        data = torch.randint(0, 256, (3, 37), dtype=torch.uint8)
        x = data.view(torch.float4_e2m1fn_x2)
        expected = torch.stack([numbers[(data & 15).long()], numbers[(data >> 4).long()]], -1).reshape(3, 74)
        self.assertTrue(torch.equal(m.take(x), expected))
        y = torch.empty(3, 74)
        m.take(x, y)
        self.assertTrue(torch.equal(y, expected))
        packed = torch.empty_like(data).view(torch.float4_e2m1fn_x2)
        m.give(expected.to(torch.float8_e4m3fn), packed)
        self.assertTrue(torch.equal(packed.view(torch.uint8), data))
        with self.assertRaisesRegex(tile.ArgumentError, "w: type is f4e2m1, expected u8"):
            m.plain(x)

    def test_stdlib(self):
        x = torch.randn(8, 300)
        s = tile.stdlib
        gamma, beta = torch.randn(300), torch.randn(300)
        close = lambda a, b: torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)
        close(s.softmax(x), torch.softmax(x, 1))
        close(s.logsumexp(x), torch.logsumexp(x, 1))
        close(s.layernorm(x, gamma, beta, 1e-5), torch.nn.functional.layer_norm(x, (300,), gamma, beta, 1e-5))
        close(s.rmsnorm(x, gamma, 1e-5), torch.nn.functional.rms_norm(x, (300,), gamma, 1e-5))
        close(s.add(x, x), x + x)
        close(s.cumsum_rows(x), torch.cumsum(x, 1))
        close(s.matmul(x, x.t(), U="f32"), x @ x.t())
        half = x.bfloat16()
        torch.testing.assert_close(s.softmax(half), torch.softmax(half.float(), 1).bfloat16())
        table, at = torch.randn(20, 16), torch.randint(0, 20, (3, 5), dtype=torch.int32)
        close(s.embedding(table=table, token=at), table[at.long()])
        loss, _ = s.cross_entropy(x, torch.arange(8))
        close(loss, torch.nn.functional.cross_entropy(x, torch.arange(8), reduction="none"))

    def test_bind(self):
        x, y = torch.randn(3, 4), torch.zeros(3, 4)
        bound = m.cube.bind(x, y)
        bound()
        torch.testing.assert_close(y, x ** 3)
        made = m.cube.bind(x)
        x.fill_(2)
        made()
        self.assertTrue((made.arguments[1] == 8).all())

    def test_threads(self):
        x = torch.randn(64, 64)
        wanted, wrong = m.cube(x), []

        def work():
            for _ in range(500):
                if not torch.equal(m.cube(x), wanted):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])


    def test_many_launches(self):
        x, y, leaf = torch.randn(1, 16), torch.zeros(1, 16), torch.randn(1, 16, requires_grad=True)

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def launch(count):
            for _ in range(count):
                m.cube(x, y)
            for _ in range(count // 10):
                m.cube(x)
                cube(x)
                cube(leaf)
            for _ in range(count // 100):
                cube(leaf).sum().backward()
                self.refused("x", m.cube, leaf)

        launch(10000)
        gc.collect()
        counts, before = [sys.getrefcount(object) for object in (x, y, leaf, m.cube)], resident()
        launch(int(os.environ.get("TILE_TEST_LAUNCHES", "1000000")))
        gc.collect()
        self.assertLess(resident() - before, 8 << 20)
        self.assertEqual([sys.getrefcount(object) for object in (x, y, leaf, m.cube)], counts)


class Operators(unittest.TestCase):
    def test_writing_is_seen_by_autograd(self):
        """A value that autograd has kept, and that an operator writes, is no longer that value."""
        with_backward = tile.torch.op(f"tile_test::add_to_{id(self)}", m.add_to, backward=lambda ctx, *gradients: (None, None))
        y = torch.randn(6)
        for call in (add_to, torch.ops.tile_test.add_to, with_backward):
            x = torch.zeros(6)
            call(x, y)
            call(x, y)
            self.assertEqual(x._version, 2)
            self.assertTrue(torch.equal(x, y + y))
            with torch.inference_mode():
                call(torch.zeros(6), y)
            b = torch.ones(6, requires_grad=True) * 2
            c = (b * b).sum()
            call(b.detach(), y)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                c.backward()
        compiled = torch.compile(lambda x, y: (add_to(x, y), x * 2)[1], fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(torch.zeros(6), y), y * 2)

    def test_results(self):
        x = torch.randn(5, 70)
        torch.testing.assert_close(cube(x), x ** 3)
        torch.testing.assert_close(torch.ops.tile_test.cube(x), x ** 3)
        v = torch.randn(10)
        torch.testing.assert_close(scale(v, 2.5), v * 2.5)
        lo, hi = halves(v)
        self.assertTrue(torch.equal(torch.cat([lo, hi]), v))
        w = v.clone()
        self.assertIsNone(add_to(w, v))
        torch.testing.assert_close(w, 2 * v)

    def test_opcheck(self):
        x, v = torch.randn(5, 70), torch.randn(10)
        for call, args in ((cube, (x.clone().requires_grad_(),)), (plain_cube, (x,)), (halves, (v,)),
                           (scale, (v.clone().requires_grad_(), 0.5)), (add_to, (v.clone(), v))):
            torch.library.opcheck(call, args)

    def test_gradcheck(self):
        x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(cube, (x,)))
        v = torch.randn(6, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda t: scale(t, 1.5), (v,)))

    def test_without_a_backward_pass(self):
        x = torch.randn(3, 4, requires_grad=True)
        y = plain_cube(x)
        torch.testing.assert_close(y, x ** 3)
        with self.assertRaisesRegex(RuntimeError, "tile_test::plain_cube has no backward pass"):
            y.sum().backward()
        self.assertFalse(plain_cube(x.detach()).requires_grad)

    def test_mistakes_in_calls(self):
        x = torch.randn(3, 4)
        for call in (cube, plain_cube):
            with self.assertRaises(tile.ArgumentError) as caught:
                call(x[0])
            self.assertEqual((caught.exception.argument, caught.exception.code), ("x", "RANK"))
            with self.assertRaises(tile.ArgumentError):
                call(x.int())
            with self.assertRaises((TypeError, RuntimeError)):
                call()
            with self.assertRaises((TypeError, RuntimeError)):
                call(x, x)

    def test_seen_by_profilers_and_function_modes(self):
        from torch.overrides import TorchFunctionMode

        names = []

        class Mode(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                names.append(str(function))
                return function(*args, **(kwargs or {}))

        x = torch.randn(3, 4)
        with Mode():
            cube(x)
        self.assertIn("tile_test.cube.default", names)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            torch.ops.tile_test.cube(x)
        self.assertIn("tile_test::cube", [event.key for event in profile.key_averages()])

    def test_compile_without_a_break(self):
        torch._dynamo.reset()

        def f(x):
            return cube(x * 2).sum() + scale(x[0], 3.0).sum()

        compiled = torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (3, 5, 6):
            x = torch.randn(rows, 7, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            a, b = compiled(x), f(y)
            torch.testing.assert_close(a, b)
            a.backward()
            b.backward()
            torch.testing.assert_close(x.grad, y.grad)

    def test_gradients_of_gradients_and_modes(self):
        from torch.utils._python_dispatch import TorchDispatchMode

        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                seen.append(str(function))
                return function(*args, **(kwargs or {}))

        x = torch.randn(3, 4, requires_grad=True)
        with Mode():
            cube(x).sum().backward()
        self.assertIn("tile_test.cube.default", seen)
        self.assertIn("tile_test.cube_backward.default", seen)
        torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)
        self.assertFalse(cube(x.detach()).requires_grad)
        with torch.no_grad():
            self.assertFalse(cube(x).requires_grad)
        parameter = torch.nn.Parameter(torch.randn(3, 4))
        cube(parameter).sum().backward()
        torch.testing.assert_close(parameter.grad, 3 * parameter.detach() ** 2)
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            fake = mode.from_tensor(torch.randn(3, 4)).requires_grad_()
            made = cube(fake)
            self.assertEqual((made.shape, made.requires_grad), ((3, 4), True))

    def test_vmap(self):
        x = torch.randn(4, 3, 5)
        torch.testing.assert_close(torch.vmap(cube)(x), x ** 3)
        torch.testing.assert_close(torch.vmap(cube, in_dims=2, out_dims=1)(x),
                                   torch.vmap(lambda t: t ** 3, in_dims=2, out_dims=1)(x))

    def launches(self, function, *args, **dims):
        """The result under vmap, and how many launches it took."""
        seen = []
        with tile.observe(lambda name, status: seen.append(name), None):
            made = torch.vmap(function, **dims)(*args)
        return made, len(seen)

    def test_a_batch_is_one_launch_where_rows_are_independent(self):
        x, b = torch.randn(4, 3, 70), torch.randn(4, 70)
        for dims in (0, 1, 2, -1):
            made, count = self.launches(cube, x, in_dims=dims)
            torch.testing.assert_close(made, x.movedim(dims, 0) ** 3)
            self.assertEqual(count, 1)
        made, count = self.launches(lambda v: scale(v, 2.0), b)
        torch.testing.assert_close(made, b * 2)
        self.assertEqual(count, 1)
        made, count = self.launches(torch.vmap(cube), x[None].expand(2, 4, 3, 70))
        self.assertEqual((count, made.shape), (1, (2, 4, 3, 70)))
        for empty in (x[:, :0], x[:, :, :0]):
            self.assertEqual(self.launches(cube, empty)[0].shape, empty.shape)
        # What is the same for all rows must not differ from one element to another.
        biased = tile.torch.op("tile_test::biased", tile.compile(
            "kernel biased(x: in f32[M, N], b: in f32[N], y: out f32[M, N], s: out f32[M]) {\n    grid m in M {\n"
            "        var t = f32(0)\n        for n in tiles(N, 32) {\n            let v = x[m, n] + b[n]\n            y[m, n] = v\n"
            "            t = t + sum(v)\n        }\n        s[m] = t\n    }\n}\n").biased)
        for dims, count, wanted in (((0, None), 1, x + b[0]), ((0, 0), 4, x + b[:, None]), ((None, 0), 4, x[0] + b[:, None])):
            (y, s), launches = self.launches(biased, x if dims[0] == 0 else x[0], b if dims[1] == 0 else b[0], in_dims=dims)
            torch.testing.assert_close(y, wanted)
            torch.testing.assert_close(s, wanted.sum(-1))
            self.assertEqual(launches, count)
        # halves mixes elements of its only axis.
        made, count = self.launches(halves, b)
        self.assertEqual(count, 4)
        torch.testing.assert_close(torch.cat(made, 1), b)

    def test_transforms(self):
        x, z = torch.randn(3, 4), torch.randn(3, 4)
        close = torch.testing.assert_close
        grad, vmap = torch.func.grad, torch.vmap
        close(grad(lambda x: cube(x).sum())(x), 3 * x ** 2)
        close(torch.func.vjp(cube, x)[1](z)[0], 3 * x ** 2 * z)
        close(torch.func.jacrev(cube)(x).sum((2, 3)), 3 * x ** 2)
        close(vmap(grad(lambda r: cube(r).sum()))(torch.stack([x, z])), 3 * torch.stack([x, z]) ** 2)
        close(grad(lambda x: vmap(cube)(x[None]).sum())(x), 3 * x ** 2)
        close(grad(lambda z: (cube(x) * z).sum())(z), x ** 3)
        close(grad(lambda y: grad(lambda z: (cube(y) * z).sum())(z).sum())(x), 3 * x ** 2)
        v = torch.randn(6)
        close(grad(lambda t: scale(t, 2.0).sum())(v), torch.full((6,), 2.0))

    def test_no_forward_mode(self):
        from torch.autograd import forward_ad

        x = torch.randn(3, 4)
        for call in (cube, plain_cube):
            with self.assertRaisesRegex(NotImplementedError, "no derivative in forward mode"):
                torch.func.jvp(call, (x,), (x,))
            with forward_ad.dual_level():
                with self.assertRaisesRegex(NotImplementedError, "no derivative in forward mode"):
                    call(forward_ad.make_dual(x, x))
                torch.testing.assert_close(call(x), x ** 3)

    def test_no_gradients_of_gradients(self):
        x = torch.randn(3, 4, requires_grad=True)
        first, = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "tile_test::cube_backward has no backward pass"):
            first.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "tile_test::cube_backward has no backward pass"):
            torch.func.grad(lambda y: torch.func.grad(lambda x: cube(x).sum())(y).sum())(x.detach())

    def test_an_operator_is_registered_again(self):
        """As when a notebook's cell is run once more, with another text."""
        for factor in (2, 3):
            m = tile.compile(f"""
kernel times(x: in f32[N], y: out f32[N]) {{ grid n in tiles(N, 64) {{ y[n] = x[n] * {factor} }} }}
kernel times_backward(dy: in f32[N], dx: out f32[N]) {{ grid n in tiles(N, 64) {{ dx[n] = dy[n] * {factor} }} }}
""")
            times = tile.torch.op("tile_test_again::times", m.times, backward=m.times_backward)
            x = torch.ones(3, requires_grad=True)
            times(x).sum().backward()
            torch.testing.assert_close(x.grad, torch.full((3,), float(factor)))
            torch.testing.assert_close(torch.ops.tile_test_again.times(x), factor * x)
            compiled = torch.compile(lambda v: times(v) + 1, backend="aot_eager", fullgraph=True)
            torch.testing.assert_close(compiled(x), factor * x + 1)
            torch.testing.assert_close(torch.func.vmap(times)(torch.ones(2, 3)), torch.full((2, 3), float(factor)))
            torch.library.opcheck(times, (x,))

    def test_mistakes(self):
        with self.assertRaises(ValueError):
            tile.torch.op("nameless", m.cube)
        with self.assertRaises(ValueError):
            tile.torch.op("tile_test::wrong", m.cube, backward=m.scale)
        s = tile.stdlib
        with self.assertRaisesRegex(ValueError, "rstd is neither .* use a forward kernel that has it as a result"):
            tile.torch.op("tile_test::rms", s.rmsnorm, backward=s.rmsnorm_backward)
        rms = tile.torch.op("tile_test::rms", s.rmsnorm_forward, backward=s.rmsnorm_backward)
        x, gamma = torch.randn(4, 64, requires_grad=True), torch.randn(64)
        rms(x, gamma, 1e-6)[0].square().sum().backward()
        y = x.detach().requires_grad_()
        torch.nn.functional.rms_norm(y, (64,), gamma, 1e-6).square().sum().backward()
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
        with self.assertRaises(TypeError):
            tile.torch.op("tile_test::function", print)


if __name__ == "__main__":
    unittest.main()
