"""Kernels on NumPy arrays: results, what is refused and how, tools, notebooks. Threads and memory: test_threads.py."""
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest
import weakref

os.environ["TILE_CACHE_DIR"] = ""  # what is compiled here is compiled anew

import numpy as np

import tile

TEXT = """
/// Adds.
kernel add[T: f16 | bf16 | f32 | f64 | i32](x: in T[M, N], y: in T[M, N], z: out T[M, N])
    tune BM in {1, 4}, BN in {64, 256}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { z[m, n] = x[m, n] + y[m, n] }
}

kernel scale(x: in f32[N], a: f32, k: i32, flip: bool, y: out f32[N]) {
    grid n in tiles(N, 64) { y[n] = where(flip, -x[n], x[n]) * a + f32(k) }
}

kernel twice(x: inout f32[N]) { grid n in tiles(N, 64) { x[n] = x[n] * 2 } }

kernel parts(x: in f32[2 * N], lo: out f32[N], hi: out f32[N]) {
    grid n in tiles(N, 64) {
        lo[n] = x[n]
        hi[n] = x[N + n]
    }
}

kernel total(x: in f32[N], y: out f32[]) { grid one in 1 {
    var sum_ = f32(0)
    for n in tiles(N, 64) { sum_ = sum_ + sum(x[n], axis = 0) }
    y[] = sum_
} }

kernel speak(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) {
    let v = sum(x[n], axis = 0)
    print("a tile of {v}")
    y[n] = x[n]
} }

fn double(x: f32) -> f32 { return x + x }
fn half(x: f32) -> f32 { return x * 0.5 }
kernel map(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 64) { y[n] = double(x[n]) } }
"""


def rand(*shape, dtype=np.float32):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.m = tile.compile(TEXT)

    def refused(self, argument, code, function, *args, **keywords):
        with self.assertRaises(tile.ArgumentError) as caught:
            function(*args, **keywords)
        self.assertEqual((caught.exception.argument, caught.exception.code), (argument, code), str(caught.exception))
        return caught.exception


class Results(Case):
    def test_writes_and_allocates(self):
        x, y, z = rand(5, 300), rand(5, 300) + 1, np.zeros((5, 300), np.float32)
        self.assertIsNone(self.m.add(x, y, z))
        np.testing.assert_array_equal(z, x + y)
        made = self.m.add(x, y)
        self.assertEqual((made.dtype, made.shape), (np.float32, (5, 300)))
        np.testing.assert_array_equal(made, x + y)

    def test_types(self):
        for dtype in ("float16", "float32", "float64", "int32"):
            x = (rand(3, 70) * 8).astype(dtype)
            np.testing.assert_array_equal(self.m.add(x, x), x + x)

    def test_bf16(self):
        import ml_dtypes

        x = rand(3, 70).astype(ml_dtypes.bfloat16)
        made = self.m.add(x, x)
        self.assertEqual(made.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(made, x + x)

    def test_bf16_before_all(self):
        """The first array that a process passes decides how those of its type are read: also where no buffer names its elements."""
        subprocess.run([sys.executable, "-c", """
import ml_dtypes, numpy as np, tile
m = tile.compile("kernel k[T: any](x: in T[N], y: out T[N]) { grid n in tiles(N, 64) { y[n] = x[n] } }")
for dtype in (ml_dtypes.float8_e4m3fn, np.float32, ml_dtypes.bfloat16):
    x = np.arange(70).astype(dtype)
    assert (m.k(x) == x).all()
"""], check=True)

    def test_scalars(self):
        x = rand(100)
        for a, k, flip in ((2.0, 3, False), (1, np.int64(-2), True), (np.float32(0.5), np.int8(1), np.bool_(True))):
            np.testing.assert_allclose(self.m.scale(x, a, k, flip), (-x if flip else x) * np.float32(a) + k, rtol=1e-6)
        np.testing.assert_allclose(self.m.scale(x, a=2, k=1, flip=False), x * 2 + 1, rtol=1e-6)

    def test_scalars_of_generic_types(self):
        """Whether a number has to be an integer, only the arrays say."""
        times = tile.compile("kernel times[T: i32 | u64 | f64](x: in T[N], a: T, y: out T[N]) { grid n in tiles(N, 64) { y[n] = x[n] * a } }").times
        for dtype, numbers in (("int32", (4, np.int64(-4), np.uint8(7), np.array(3))), ("uint64", (np.uint64(2**63 + 1), 2**63 + 1)),
                               ("float64", (4, 2.5, np.float32(2.5), np.int8(-3), np.array(2.5), np.array(3), 2**53 + 1))):
            x = np.ones(5, dtype)
            for number in numbers:
                with self.subTest(dtype=dtype, number=number):
                    np.testing.assert_array_equal(times(x, number), x * np.array(number).astype(dtype))
        for number, given in ((2.5, "a floating-point number"), (np.float32(1), "a floating-point number"), (True, "a bool")):
            with self.assertRaisesRegex(tile.ArgumentError, f"times: a: {given} is given, expected T, which is i32 here"):
                times(np.ones(5, np.int32), number)
        with self.assertRaisesRegex(tile.ArgumentError, "a: an object of type str is given, expected T"):
            times(np.ones(5, np.int32), "3")
        with self.assertRaisesRegex(tile.ArgumentError, r"x: an object of type list is given, .* numpy.array\(..\) makes one"):
            times([1, 2], 3)

    def test_inout_and_several_results(self):
        x = rand(90)
        y = x.copy()
        self.assertIsNone(self.m.twice(y))
        np.testing.assert_array_equal(y, x * 2)
        lo, hi = self.m.parts(x)
        np.testing.assert_array_equal(lo, x[:45])
        np.testing.assert_array_equal(hi, x[45:])

    def test_rank_0_and_empty(self):
        y = np.zeros((), np.float32)
        self.m.total(np.ones(100, np.float32), y)
        self.assertEqual(float(y), 100)
        self.assertEqual(float(self.m.total(np.ones(7, np.float32))), 7)
        self.assertEqual(self.m.add(np.zeros((0, 5), np.float32), np.zeros((0, 5), np.float32)).shape, (0, 5))
        self.assertEqual(float(self.m.total(np.ones(0, np.float32))), 0)

    def test_strides(self):
        base = rand(40, 60)
        views = [base[::2, ::3], base[::-1, ::-1], base.T, np.broadcast_to(base[0], (40, 60)), base[:, 1:]]
        for x in views:
            np.testing.assert_array_equal(self.m.add(x, x), x + x)
            z = np.empty(x.shape[::-1], np.float32).T
            self.m.add(x, x, z)
            np.testing.assert_array_equal(z, x + x)

    def test_buffers_of_others(self):
        import array

        x = array.array("f", [1, 2, 3])
        self.m.twice(x)
        self.assertEqual(list(x), [2, 4, 6])
        np.testing.assert_array_equal(self.m.map(memoryview(x)), [4, 8, 12])

    def test_arrays_of_ctypes(self):
        """They give no strides, though they are asked for them."""
        import ctypes

        x, y = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_float * 3)()
        self.m.twice(x)
        self.assertEqual(list(x), [2, 4, 6])
        np.testing.assert_array_equal(self.m.map(x), [4, 8, 12])
        self.m.map(x, y)
        self.assertEqual(list(y), [4, 8, 12])
        rows = ((ctypes.c_float * 3) * 2)((1, 2, 3), (4, 5, 6))
        np.testing.assert_array_equal(self.m.add(rows, rows), [[2, 4, 6], [8, 10, 12]])
        with self.assertRaises(tile.ArgumentError):
            self.m.twice((ctypes.c_double * 3)())
        with self.assertRaises(tile.ArgumentError):
            self.m.twice(ctypes.c_float(1))

    def test_kernels_as_other_functions(self):
        import functools

        kernel = self.m.twice
        self.assertEqual((kernel.__name__, kernel.__qualname__, type(kernel).__name__), ("twice", "twice", "Kernel"))
        self.assertEqual(functools.wraps(kernel)(lambda x: kernel(x)).__name__, "twice")
        bound = kernel.bind(np.ones(4, np.float32))
        found = weakref.ref(bound)
        self.assertIs(weakref.ref(kernel)(), kernel)
        gone = []
        references = [weakref.ref(kernel._detached(), gone.append), weakref.ref(kernel.bind(np.ones(4, np.float32)), gone.append)]
        self.assertEqual(gone, references)  # each was told
        self.assertIs(found(), bound)
        del bound
        self.assertIsNone(found())
        made = tile.compile("kernel one(x: out f32[N]) { grid n in tiles(N, 4) { x[n] = full[4](f32(1)) } }")
        found = weakref.ref(made.one)
        del made
        gc.collect()
        self.assertIsNone(found())

    def test_settings_as_keywords(self):
        x = rand(9, 300)
        z = np.empty_like(x)
        self.m.add(x, x, z, BM=4, BN=64)
        np.testing.assert_array_equal(z, x + x)
        np.testing.assert_array_equal(self.m.add(x, x, T=np.float32, BM=1), x + x)
        special = self.m.add.with_settings(BM=4)
        self.assertIs(special, self.m.add.with_settings(BM=4))
        self.assertIsNot(special, self.m.add)

    def test_function_generics(self):
        x = rand(4, 50)
        np.testing.assert_array_equal(tile.stdlib.map(x, f="math.square"), x * x)
        a, b, bias = rand(8, 16), rand(16, 24), rand(24)
        made = tile.stdlib.matmul(a, b, bias=bias, epi="add_bias", U="f32")
        np.testing.assert_allclose(made, a @ b + bias, rtol=1e-4, atol=1e-4)

    def test_stdlib(self):
        x = rand(6, 1000)
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(tile.stdlib.softmax(x), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
        self.assertIn("layernorm", dir(tile.stdlib))
        for owner in (tile.stdlib, self.m):  # Python proposes a name by these
            with self.assertRaises(AttributeError) as caught:
                owner.sofmax
            self.assertEqual((caught.exception.name, caught.exception.obj), ("sofmax", owner))
        for name in dir(tile.stdlib):
            kernel = getattr(tile.stdlib, name)
            self.assertEqual(kernel.name, name)
            self.assertTrue(kernel.parameters and kernel.signature.startswith(name))


class Refusals(Case):
    def test_arguments(self):
        x = rand(4, 8)
        add, m = self.m.add, self.m
        self.refused("y", "RANK", add, x, rand(8), x.copy())
        self.refused("x", "TYPE", add, x.astype(np.int64), x, x.copy())
        self.refused("y", "TYPE", add, x, x.astype(np.float64), x.copy())
        self.refused("z", "EXTENT", add, x, x, rand(4, 7))
        self.refused("z", "OVERLAP", add, x, x, x)
        self.refused("x", "KIND", add, [1, 2], x, x)
        self.refused("x", "KIND", add, None, x, x)
        self.refused("a", "KIND", m.scale, rand(4), "two", 1, True)
        self.refused("k", "KIND", m.scale, rand(4), 1.0, 1.5, True)
        self.refused("k", "VALUE", m.scale, rand(4), 1.0, 1 << 40, True)
        self.refused("k", "VALUE", m.scale, rand(4), 1.0, 1 << 70, True)
        self.refused("x", "TYPE", add, x.astype(np.complex64), x)
        self.refused("x", "TYPE", add, x.astype(">f4"), x)
        self.refused("x", "TYPE", add, np.array([["a"]]), x)

    def test_read_only(self):
        x = rand(4, 8)
        z = np.zeros_like(x)
        z.flags.writeable = False
        error = self.refused("z", "READ_ONLY", self.m.add, x, x, z)
        self.assertIn("read-only", str(error))
        x.flags.writeable = False
        np.testing.assert_array_equal(self.m.add(x, x), x + x)

    def test_odd_strides(self):
        fields = np.zeros(8, dtype=[("a", "u1"), ("b", "f4")])
        self.refused("x", "ADDRESS", self.m.map, fields["b"])

    def test_counts(self):
        x = rand(4, 8)
        for args, keywords in (((), {}), ((x,), {}), ((x, x, x, x), {}), ((x, x), {"x": x}), ((x, x), {"what": 1})):
            with self.assertRaises(TypeError):
                self.m.add(*args, **keywords)

    def test_unknown_result(self):
        self.refused("y", "EXTENT", tile.compile(
            "kernel iota(y: out f32[N]) { grid n in tiles(N, 8) { y[n] = zeros[8](f32) } }").iota)

    def test_settings(self):
        x = rand(4, 8)
        for wrong in ({"T": "i8"}, {"BM": "k"}, {"BM": 1.5}):  # whether they are met at the call, or were given before
            for call in (lambda: self.m.add(x, x, **wrong), lambda: self.m.add.with_settings(**wrong)(x, x),
                         lambda: tile.compile(TEXT, **wrong).add(x, x)):
                with self.assertRaises(tile.SettingError) as caught:
                    call()
                self.assertIn(*wrong, str(caught.exception))
        with self.assertRaisesRegex(AttributeError, "'nothing'; it has add,"):
            self.m.nothing

    def test_what_shows_itself(self):
        import inspect

        m = tile.compile("""/// Twice.
kernel both(x: in f32[N], y: out f32[N]) tune cpu BN in {32} tune gpu BN in {64} { grid n in tiles(N, BN) { y[n] = 2 * x[n] } }""")
        self.assertEqual(str(inspect.signature(m.both)), "(x: 'in f32[N]', y: 'out f32[N]' = None, *, BN='32')")
        self.assertEqual(m.both.__doc__, "both(x: in f32[N], y: out f32[N])\n\nTwice.")
        bound = m.both.bind(rand(4))
        self.assertEqual(repr(bound), "<tile bound call of both>")
        self.assertEqual(repr(tile.plan(bound, bound)), "<tile plan of 2: both, both>")
        with tile.config(deterministic=True):
            self.assertIn("deterministic = True", repr(tile.backends))

    def test_compile_error(self):
        text = "kernel f(x: in f32[N], y: out f32[N]) {\n    grid n in tiles(N, 8) { y[n] = z[n] }\n}\n"
        with self.assertRaises(tile.CompileError) as caught:
            tile.compile(text, file="mine.tile")
        error = caught.exception
        self.assertIsInstance(error, SyntaxError)
        self.assertEqual((error.filename, error.lineno, error.offset), ("mine.tile", 2, 36))
        self.assertIn("y[n] = z[n]", error.text)
        self.assertIn("nothing is named `z`", error.msg)
        self.assertEqual(error.diagnostics[0]["code"], "unknown-name")

    def test_load(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.tile")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TEXT)
            x = rand(3, 4)
            np.testing.assert_array_equal(tile.load(path).add(x, x), x + x)
            with self.assertRaises(FileNotFoundError):
                tile.load(path + "x")

    def test_assertion(self):
        m = tile.compile("kernel f(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 8) {\n"
                         "    assert(all(x[n] > 0), \"positive\")\n    y[n] = x[n] } }", debug=True)
        with self.assertRaisesRegex(tile.Error, "assertion failed") as caught:
            m.f(np.zeros(8, np.float32))
        self.assertIs(type(caught.exception), tile.Error)


    def test_out_among_keywords(self):
        m = tile.compile("""
            kernel scaled(x: in f32[N], y: out f32[N], k: f32) { grid n in tiles(N, 64) { y[n] = x[n] * k } }
            kernel copied(y: out f32[N], x: in f32[N]) { grid n in tiles(N, 64) { y[n] = x[n] } }
            kernel both(x: in f32[N], y: out f32[N], k: f32, z: out f32[N]) {
                grid n in tiles(N, 64) {
                    y[n] = x[n] * k
                    z[n] = x[n] + k
                }
            }
        """)
        x = rand(5)
        for call in (lambda y: m.scaled(x, y, k=2), lambda y: m.scaled(x, k=2, y=y), lambda y: m.scaled(x, 2, y=y)):
            y = np.zeros_like(x)
            self.assertIsNone(call(y))
            self.assertTrue((y == 2 * x).all())
        for call in (lambda y: m.copied(y, x=x), lambda y: m.copied(x, y=y)):
            y = np.zeros_like(x)
            self.assertIsNone(call(y))
            self.assertTrue((y == x).all())
        self.assertTrue((m.copied(x=x) == x).all())
        y, z = np.zeros_like(x), np.zeros_like(x)
        made = m.both(x, y, k=2)  # the other is made
        self.assertTrue((y == 2 * x).all() and (made == x + 2).all())
        self.assertIsNone(m.both(x, y, k=3, z=z))
        self.assertTrue((y == 3 * x).all() and (z == x + 3).all())
        y, z = m.both(x, k=1)
        self.assertTrue((y == x).all() and (z == x + 1).all())
        m.scaled.bind(x, y, k=4)()
        self.assertTrue((y == 4 * x).all())
        for wrong in (lambda: m.scaled(x, y, x=x), lambda: m.scaled(x, y, 2, k=2), lambda: m.both(x, y, x=x, y=y)):
            with self.assertRaisesRegex(TypeError, "multiple values"):
                wrong()


class Tools(Case):
    def test_bind_and_plan(self):
        x, z = rand(4, 8), np.zeros((4, 8), np.float32)
        bound = self.m.add.bind(x, x, z)
        for value in (1, 2, 3):
            x[:] = value
            bound()
            self.assertTrue((z == 2 * value).all())
        self.refused("z", "EXTENT", self.m.add.bind, x, x, rand(4, 7))
        self.refused("z", "OVERLAP", self.m.add.bind, x, x, x)
        made = self.m.add.bind(x, x)
        made()
        self.assertTrue((made.arguments[2] == 6).all())
        again = self.m.add.bind(made.arguments[2], x, np.zeros((4, 8), np.float32))
        both = tile.plan(made, again)
        x[:] = 1
        both()
        self.assertTrue((again.arguments[2] == 3).all())
        with self.assertRaises(TypeError):
            bound(x)
        with self.assertRaises(TypeError):
            tile.plan()

    def test_bound_arrays_are_kept(self):
        x = rand(64)
        bound = self.m.twice.bind(x)
        with self.assertRaises(ValueError):
            x.resize(1 << 20)
        dead = weakref.ref(x)
        del x
        bound()
        del bound
        gc.collect()
        self.assertIsNone(dead())

    def test_interface(self):
        add = self.m.add
        self.assertEqual(add.name, "add")
        self.assertEqual([p.name for p in add.parameters], ["x", "y", "z"])
        self.assertEqual([p.access for p in self.m.scale.parameters], ["in", None, None, None, "out"])
        self.assertEqual([s.name for s in add.settings], ["T", "BM", "BN"])
        self.assertEqual(add.settings[0].types, ("i32", "f16", "bf16", "f32", "f64"))
        self.assertEqual((add.settings[1].kind, add.settings[1].allowed), ("tune", "1, 4"))
        self.assertIn("Adds.", add.doc)
        self.assertEqual((add.prints, self.m.speak.prints), (False, True))
        self.assertEqual(tile.stdlib.map.settings[1].default, "identity")

    def test_inspect(self):
        import inspect

        self.assertEqual(list(inspect.signature(self.m.scale).parameters), ["x", "a", "k", "flip", "y"])
        self.assertEqual(list(inspect.signature(self.m.add).parameters), ["x", "y", "z", "T", "BM", "BN"])

    def test_prepare_explain_stats_emit(self):
        m = tile.compile(TEXT)
        m.add.prepare("f32[1000, 512]", ("f32", (1000, 512)), ("f32", (1000, 512)))
        self.assertEqual((m.add.stats.variants, m.add.stats.launches), (1, 0))
        x = rand(1000, 512)
        m.add(x, x)
        self.assertEqual((m.add.stats.variants, m.add.stats.launches), (1, 1))
        self.assertIn("launches", m.add.explain(x, x, x.copy()))
        self.assertEqual(m.add.explain(x, x), m.add.explain(x, x, x.copy()))
        counts = sys.getrefcount(x), repr(m.add.stats)
        for _ in range(100):
            m.add.explain(x, x)
        self.assertEqual((sys.getrefcount(x), repr(m.add.stats)), counts)
        with self.assertRaisesRegex(TypeError, "misses the argument 'y'"):
            m.add.explain(x)
        self.assertIn("kernel", m.add.emit("ast"))
        self.assertIn("vadd", m.add.emit("asm", T="f32", target="avx2"))
        self.refused("y", "EXTENT", m.add.prepare, "f32[8, 8]", "f32[8, 9]", "f32[8, 8]")

    def test_print(self):
        import contextlib
        import io

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.m.speak(rand(64))
        self.assertEqual(len(out.getvalue().splitlines()), 16)

    def test_print_without_a_place(self):
        """A process without standard output prints nothing, as with Python's print."""
        from unittest import mock

        unraisable = []
        with mock.patch("sys.stdout", None), mock.patch("sys.unraisablehook", unraisable.append):
            self.m.speak(rand(64))
        self.assertEqual(unraisable, [])

    def test_observer(self):
        seen = []
        x = rand(4)
        with tile.observe(lambda name, status: seen.append(name), lambda name, status: seen.append(status)):
            self.m.twice(x)
        self.m.twice(x)
        self.assertEqual(seen, ["twice", 0])

    def test_observers_that_end_in_another_order(self):
        seen, x = [], rand(4)
        outer, inner = (tile.observe(lambda name, status, who=who: seen.append(who)) for who in ("outer", "inner"))
        outer.__enter__()
        inner.__enter__()
        self.m.twice(x)
        outer.__exit__()
        self.m.twice(x)
        inner.__exit__()
        self.m.twice(x)
        self.assertEqual(seen, ["inner", "inner"])

    def test_interrupt_of_an_observer(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        x = rand(4)
        with self.assertRaises(KeyboardInterrupt):
            with tile.observe(lambda name, status: os.kill(os.getpid(), signal.SIGINT)):
                self.m.twice(x)
                for _ in range(100):
                    pass
        self.m.twice(x)

    def test_pickle(self):
        x = rand(3, 4)
        kernel = pickle.loads(pickle.dumps(self.m.add.with_settings(BM=4)))
        np.testing.assert_array_equal(kernel(x, x), x + x)
        self.assertIs(kernel.module, pickle.loads(pickle.dumps(kernel)).module)

    def test_settings_of_compilers(self):
        self.assertFalse(tile.backends.deterministic)
        with tile.config(deterministic=True, log="compile"):
            self.assertTrue(tile.backends.deterministic)
            with self.assertLogs("tile", "INFO") as logs:
                tile.compile(TEXT).twice(rand(8))
        self.assertIn("compiled in", logs.output[0])
        self.assertFalse(tile.backends.deterministic)
        with tile.config(deterministic=True):
            seen = []
            thread = threading.Thread(target=lambda: seen.append(tile.backends.deterministic))
            thread.start()
            thread.join()
        # A thread has settings of its own, unless Python has it begin with its starter's, as free-threaded ones do.
        self.assertEqual(seen, [bool(getattr(sys.flags, "thread_inherit_context", 0))])
        tile.backends.variant_limit = 4
        self.assertEqual(tile.backends.variant_limit, 4)
        tile.backends.variant_limit = 0
        with self.assertRaises(AttributeError):
            tile.config(nonsense=1)
        with self.assertRaisesRegex(AttributeError, r"with tile.config\(deterministic=True\):"):
            tile.config.deterministic = True  # would be no setting of anything
        self.assertTrue(any(t.name == "avx2" for t in tile.backends.targets()))


class Notebooks(Case):
    def test_kernels_and_modules_show_themselves(self):
        self.assertIn("in T[M, N]", self.m.add._repr_html_())
        self.assertIn("Adds.", self.m._repr_html_())

    def test_layouts(self):
        import math
        import xml.dom.minidom

        for kernel, settings in ((tile.stdlib.softmax, {"T": "f32"}), (tile.stdlib.matmul, {"T": "f16", "U": "f32"})):
            layouts = kernel.layouts(**settings)
            self.assertGreater(len(layouts), 0)
            for layout in layouts:
                self.assertEqual(sorted(layout.places()), list(range(math.prod(layout.extents))), layout.text)
                self.assertIn(layout.text, repr(layouts))
            xml.dom.minidom.parseString(layouts._repr_svg_())
        self.assertTrue(any("f32 acc" in layout.tiles for layout in layouts))
        # Threads 0 and 1 hold four neighbouring elements each: registers are the lowest bits of a position.
        rows = next(l for l in tile.stdlib.softmax.layouts(T="f32") if l.extents[-1] == 1024)
        first = rows.places()
        self.assertEqual([first[n][:2] for n in (0, 1, 2, 3, 4)], [(0, 0)] * 4 + [(0, 1)])

    def test_bench(self):
        import xml.dom.minidom

        x = rand(64, 256)
        result = self.m.add.bench(x, x, seconds=0.02)
        self.assertEqual(result.bytes, 3 * x.nbytes)
        self.assertAlmostEqual(result.rate * result.seconds, result.bytes, delta=1)
        self.assertIn("GB/s", repr(result))
        xml.dom.minidom.parseString(result._repr_svg_())
        a = rand(64, 64)
        result = tile.stdlib.matmul.with_settings(U="f32").bench(a, a, flops=2 * 64 ** 3, seconds=0.02)
        self.assertGreater(result.flop_rate, 0)
        xml.dom.minidom.parseString(result._repr_svg_())

    def test_tune(self):
        x = rand(64, 256)
        tuned = self.m.add.tune(x, x, seconds=0.005)
        self.assertEqual(len(tuned.points), 4)
        self.assertEqual(set(tuned.best), {"BM", "BN"})
        np.testing.assert_array_equal(tuned(x, x), x + x)

    def test_cell_magic(self):
        class Shell:
            user_ns = {}

            def register_magic_function(self, function, kind, name):
                self.magic = (kind, name)
                self.function = function

        shell = Shell()
        tile.load_ipython_extension(shell)
        self.assertEqual(shell.magic, ("cell", "tile"))
        module = shell.function("mine BN=64", TEXT)
        self.assertIs(shell.user_ns["mine"], module)
        self.assertEqual(module.settings, {"BN": "64"})
        with self.assertRaises(tile.CompileError) as caught:
            shell.function("", "kernel")
        self.assertEqual(caught.exception.filename, "<%%tile kernels>")


class Import(unittest.TestCase):
    @unittest.skipIf(os.environ.get("TILE_TEST_SANITIZED"), "sanitizers take their time")
    def test_import_is_light(self):
        script = ("import sys, time\nstart = time.process_time()\nimport tile\nprint((time.process_time() - start) * 1e3)\n"
                  "print([m for m in ('numpy', 'torch', 'logging', 'json', 're') if m in sys.modules])\n")
        runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split(
            "\n") for _ in range(7)]
        self.assertEqual(runs[0][1], "[]")
        fastest = min(float(run[0]) for run in runs)
        print(f"import tile: {fastest:.1f} ms", file=sys.stderr)
        if os.path.exists(os.path.join(os.path.dirname(tile.__file__), "libtile.so.0")):
            self.assertLess(fastest, 10)  # a wheel; builds load the shared LLVM, in whatever time that takes


if __name__ == "__main__":
    unittest.main()
