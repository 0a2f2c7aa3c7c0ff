"""Where PyTorch keeps what it says of a tensor (python/src/torch_layout.c): it is found, all that can change is seen, and
where it cannot be found PyTorch's functions are asked."""
import ctypes
import os
import subprocess
import sys
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import torch

import tile
import tile.torch
from tile import _probes, _tile

MOST_RANK = 8


def text_of(rank):
    """copy2(x: in T[A, B], y: out T[A, B]) and so on, and the same with a number before the tensors. Tiles have five dimensions
    at most, so those before are indices."""
    names = "ABCDEFGH"[:rank]
    low = [name.lower() for name in names]
    ways = [name if i + 4 < rank else f"tiles({name}, 4)" for i, name in enumerate(names)]
    grid = f"grid ({', '.join(low)}) in ({', '.join(ways)})" if rank > 1 else "grid a in tiles(A, 4)"
    at, shape, types = ", ".join(low), ", ".join(names), "f32 | f64 | i16 | bf16 | bool"
    return "\n".join(f"kernel {name}{rank}[T: {types}]({first}x: in T[{shape}], y: out T[{shape}]) {{ {grid} {{ y[{at}] = x[{at}] }} }}"
                     for name, first in (("copy", ""), ("numbered", "number: i32, ")))


m = tile.compile("\n".join(text_of(rank) for rank in range(1, MOST_RANK + 1)))


def copy(x, ignores_grad=False):
    kernel = getattr(m, f"copy{x.dim()}")
    return (kernel._detached() if ignores_grad else kernel)(x)


class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        copy(torch.ones(3))

    def same(self, x):
        """Twice: a tensor of a kind that was not known is read by functions the first time. With the result given, and behind
        a number, tensors are read in other ways."""
        for _ in range(2):
            y = torch.empty(x.shape, dtype=x.dtype)
            getattr(m, f"copy{x.dim()}")(x, y)
            self.assertTrue(torch.equal(y, x), (x.shape, x.stride(), x.dtype))
            self.assertTrue(torch.equal(copy(x), x))
            y.zero_()
            getattr(m, f"numbered{x.dim()}")(1, x, y)
            self.assertTrue(torch.equal(y, x))

    def refused(self, x):
        """With and without a result given."""
        kernel = getattr(m, f"copy{x.dim()}")
        y = torch.empty(x.shape, dtype=torch.float32)
        for call in (lambda: kernel(x, y), lambda: kernel(x)) * 2:
            with self.assertRaises(tile.ArgumentError) as caught:
                call()
            self.assertEqual(caught.exception.argument, "x", str(caught.exception))

    def test_it_is_found(self):
        """Otherwise a launch costs half as much again, and nothing says so."""
        found = _tile.torch_layout()
        self.assertIsNotNone(found)
        self.assertGreaterEqual(found["most_rank"], 4)
        self.same(torch.ones(5, dtype=torch.int16))
        again = _tile.torch_layout()
        self.assertGreaterEqual(again["kinds"], 2)
        self.same(torch.ones(7, dtype=torch.int16))
        self.assertEqual(_tile.torch_layout(), again)

    def test_every_rank_type_and_order(self):
        for dtype in (torch.float32, torch.float64, torch.int16, torch.bfloat16, torch.bool):
            base = (torch.arange(5040) % 251).to(dtype)
            for shape in ((5040,), (70, 72), (7, 9, 80), (7, 8, 9, 10), (2, 3, 4, 5, 42), (2, 3, 1, 4, 5, 42),
                          (1, 2, 3, 1, 4, 5, 42), (2, 1, 2, 3, 1, 2, 5, 42)):
                x = base.view(shape)
                self.same(x)
                if dtype != torch.float32: continue
                self.same(x.transpose(0, -1))
                self.same(x[..., 3::2])
                self.same(x[..., :1].expand(shape))
            self.same(base.view(7, 8, 9, 10).contiguous(memory_format=torch.channels_last))

    def test_what_changes_is_seen(self):
        """One tensor whose shape, memory, type and need of a gradient change between launches."""
        x = torch.arange(24.)
        self.same(x)
        x.resize_(4, 6)
        self.same(x)
        x.t_()
        self.same(x)
        x.unsqueeze_(0)
        self.same(x)
        x.resize_(1, 2, 1, 3, 1, 2, 2)
        self.same(x)
        x.resize_(3, 8)
        self.same(x)
        x.as_strided_((3, 4), (5, 1), 2)
        self.same(x)
        x.set_(torch.arange(50.)[7:19])
        self.same(x)
        x.data = torch.arange(30, dtype=torch.float64).view(5, 6)
        self.same(x)
        torch.utils.swap_tensors(x, torch.arange(9, dtype=torch.int16))
        self.same(x)
        x = torch.arange(12.).view(3, 4)
        x.requires_grad_()
        self.refused(x)
        self.assertTrue(torch.equal(copy(x, ignores_grad=True), x))
        with torch.no_grad():
            self.same(x)
        x.requires_grad_(False)
        self.same(x)
        self.refused((x + 0).requires_grad_().exp())

    def test_bits_that_are_not_set(self):
        """What PyTorch leaves as the memory was is not part of a kind."""
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc_usable_size.argtypes = libc.free.argtypes = (ctypes.c_void_p,)
        found, seen, masked = _tile.torch_layout(), set(), set()
        size = libc.malloc_usable_size(torch.ones(1)._cdata)
        for byte in (0, 255) * 20:
            chunks = [libc.malloc(ctypes.c_size_t(size)) for _ in range(4)]
            for chunk in chunks:
                ctypes.memset(chunk, byte, size)
            for chunk in chunks:
                libc.free(chunk)
            word = ctypes.c_uint64.from_address(torch.ones(1)._cdata + found["kind"]).value
            seen.add(word)
            masked.add(word & found["kind_mask"])
        self.assertEqual(len(masked), 1, sorted(map(hex, seen)))

    def test_other_kinds(self):
        z = torch.arange(12.).view(3, 4) * (1 + 2j)
        self.same(z.real)
        self.same(z.imag)
        self.refused(z.conj().imag)
        self.same(torch.ones(3, 4))
        self.refused(torch._neg_view(torch.ones(3, 4)))  # but for its keys it is as the one before
        self.same(z.imag)
        self.refused(z)
        self.refused(z.conj())
        self.refused(torch.ones(3, 4).to_sparse())
        self.refused(torch.ones(3, 4, device="meta"))
        self.refused(torch._efficientzerotensor((3, 4)))
        self.refused(torch.ones(3, 4, dtype=torch.int64))
        with torch.inference_mode():
            self.same(torch.ones(3, 4))
            made = copy(torch.ones(3, 4))
        self.same(made)
        self.same(torch.nn.Parameter(torch.ones(3, 4), requires_grad=False))
        self.refused(torch.nn.Parameter(torch.ones(3, 4)))

    def test_memory_that_is_copied_when_it_is_written(self):
        x = torch.arange(8.)
        y = torch._lazy_clone(x)
        self.same(y)
        m.copy1(torch.full((8,), 7.), y)
        self.assertEqual((x.tolist(), y.tolist()), (list(range(8)), [7.] * 8))

    def test_probes_that_do_not_agree(self):
        """Whatever does not hold in all tensors is not found."""
        rows = _probes.torch_probes()
        first = _tile.torch_layout()
        # Bits that are not set are found where memory is taken again, which no probe can be sure of.
        self.assertEqual({**_tile.torch_layout(rows), "kinds": first["kinds"], "kind_mask": first["kind_mask"]}, first)
        kind, tensor, keys = rows[0]

        def without(unwanted):
            return [row for row in rows if not unwanted(row[1])]

        falsified = {
            "nothing": [], "none": None, "one": rows[:1],
            "another set of keys": [(kind, tensor, keys ^ 1)] + rows[1:],
            "a gradient that is none": rows[:1] + [(_probes.GRAD, rows[2][1], rows[2][2])] + rows[1:],
            "no gradient that is one": rows + [(_probes.PLAIN, torch.ones(2, requires_grad=True), rows[0][2])],
            "none with a gradient": without(lambda x: x.requires_grad),
            "none elsewhere": without(lambda x: x.is_meta or x.is_neg() or x.is_sparse),
            "all of one rank": without(lambda x: x.dim() != 2),
            "a row that is none": rows + [3], "no tensor": rows + [(0, 3, 4)]}
        for name, wrong in falsified.items():
            with self.subTest(name):
                self.assertIsNone(_tile.torch_layout(wrong))

    def test_without_it(self):
        """All of the other tests here, where PyTorch keeps things elsewhere."""
        if "TILE_TEST_WITHOUT_LAYOUT" in os.environ:
            self.skipTest("this process is the one that test_without_it started")
        program = ("import unittest, tile._probes; tile._probes.torch_probes = lambda: None; import test_torch_layout as t; "
                   "case = t.Layout; del case.test_it_is_found, case.test_probes_that_do_not_agree; "
                   "del case.test_bits_that_are_not_set; case.setUpClass(); "
                   "assert t._tile.torch_layout() is None; unittest.main(t, argv=['without'])")
        environment = {**os.environ, "TILE_TEST_WITHOUT_LAYOUT": "1",
                       "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_mode_of_the_caller_is_not_seen(self):
        """The first tensor of a process may come within one."""
        program = ("import torch, tile\nfrom tile import _tile\n"
                   "from torch.utils._python_dispatch import TorchDispatchMode\n"
                   "class Refuses(TorchDispatchMode):\n"
                   "    def __torch_dispatch__(self, function, types, args=(), kwargs=None): raise RuntimeError('seen')\n"
                   "m = tile.compile('kernel copy(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] } }')\n"
                   "x, y = torch.ones(3), torch.zeros(3)\n"
                   "torch.set_default_device('meta')\n"
                   "with torch.inference_mode(), Refuses(): m.copy(x, y)\n"
                   "assert y.tolist() == [1, 1, 1] and _tile.torch_layout() is not None\n")
        done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
