"""Every kernel of the standard library with arguments that are unusual or wrong: each result is that of plain arguments, or the
exception names the argument. The rows are those of test_stdlib.py in f32, on PyTorch's tensors and on NumPy's arrays.

usage: test_arguments.py [--part=I/N] [TEXT]...     only rows with one of these texts in their names, the Ith of N parts of them"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np
import torch

import command
import tile
from test_stdlib import ROWS, Run, error_of, to_numpy, to_torch

CHOSEN, PART = [], (1, 1)
GPU = torch.cuda.is_available() and tile.backends.cuda.is_available()


def parameters(run):
    return [(i, p) for i, p in enumerate(run.kernel.parameters) if p.access is not None]


def clones(run):
    run.reset()
    return [a.clone() if isinstance(a, torch.Tensor) else a for a in run.case.arguments]


def written(run, arguments):
    return [arguments[i] for i, p in parameters(run) if p.access != "in"]


def difference(found, expected):
    """None, or how results differ: numbers by the error of all together, what is infinite or no number in each place."""
    for a, b in zip(found, expected):
        a = (to_torch(np.array(a, order="C")) if isinstance(a, np.ndarray) else a).double()
        b = b.double()
        if a.shape != b.shape:
            return f"the shape is {a.shape}"
        odd = ~b.isfinite()
        if not torch.equal(a[odd].nan_to_num(1e30), b[odd].nan_to_num(1e30)) or not a[~odd].isfinite().all():
            return "what is infinite or no number differs"
        error = error_of([a[~odd]], [b[~odd]])
        if not error <= 5e-5:
            return f"the error is {error}"
    return None


# ---- other layouts of the same numbers ----


def apart(t):
    """Every second element of each dimension of something larger."""
    view = torch.zeros([2 * n + 1 for n in t.shape], dtype=t.dtype, device=t.device)[tuple(slice(1, None, 2) for _ in t.shape)]
    return view.copy_(t)


def turned(t):
    """The first dimension the fastest."""
    return t.permute(*reversed(range(t.ndim))).contiguous().permute(*reversed(range(t.ndim)))


def backwards(a):
    """Each dimension from its end on, of an array of NumPy."""
    every = (slice(None, None, -1),) * a.ndim
    return a[every].copy()[every] if a.ndim else a


def constant(a):
    """The array itself, read-only."""
    a.flags.writeable = False
    return a


class Arguments(unittest.TestCase):
    device = "cpu"

    def each(self, check):
        rows = [row for row in ROWS if row.kind == "f32" and (not CHOSEN or any(text in row.key() for text in CHOSEN))]
        rows = rows[PART[0] - 1::PART[1]]
        self.assertTrue(rows)
        for row in rows:
            with self.subTest(row.key(), device=self.device):
                run = Run(row, self.device)
                run.plain = clones(run)
                run.kernel(*run.plain)
                check(run)

    def same(self, run, arguments, expected, how):
        """The launch writes the same, or it is refused by an argument's name, which is given."""
        try:
            run.kernel(*arguments)
        except tile.ArgumentError as error:
            self.assertIn(error.argument, [p.name for _, p in parameters(run)], f"{how}: {error}")
            return error.argument
        self.assertIsNone(difference(written(run, arguments), written(run, expected)), how)
        return None

    def refused(self, run, i, value, how, codes):
        """The launch with this argument is refused by its name."""
        arguments = clones(run)
        arguments[i] = value
        with self.assertRaises(tile.ArgumentError, msg=f"{how} {run.kernel.parameters[i].name}") as caught:
            run.kernel(*arguments)
        self.assertEqual(caught.exception.argument, run.kernel.parameters[i].name, f"{how}: {caught.exception}")
        self.assertIn(caught.exception.code, codes, f"{how}: {caught.exception}")

    def test_layouts(self):
        def check(run):
            for how in (apart, turned):
                arguments = [how(a) if isinstance(a, torch.Tensor) and a.ndim else a for a in clones(run)]
                refused = self.same(run, arguments, run.plain, how.__name__)
                self.assertTrue(refused is None or packed(run, refused), f"{how.__name__}: {refused} is refused")

        self.each(check)

    def test_broadcast(self):
        def check(run):
            for i, p in parameters(run):
                plain, wide = clones(run), clones(run)
                if not plain[i].ndim or not plain[i].numel():
                    continue
                wide[i] = plain[i][:1].expand(plain[i].shape)
                plain[i] = wide[i].clone(memory_format=torch.contiguous_format)
                if p.access == "in":
                    run.kernel(*plain)
                    self.assertIsNone(self.same(run, wide, plain, f"{p.name} broadcast"))
                elif plain[i].shape[0] > 1:
                    self.refused(run, i, wide[i], "broadcast", ("OVERLAP", "STRIDE", "OTHER"))

        self.each(check)

    def test_rank_0_and_empty(self):
        def check(run):
            for i, p in parameters(run):
                if run.plain[i].ndim:
                    self.refused(run, i, run.plain[i].new_zeros(()), "0-d", ("RANK",))
                    arguments = clones(run)
                    arguments[i] = run.plain[i][:0]
                    try:  # alone it is of another extent than others, unless its extent is its own
                        run.kernel(*arguments)
                    except tile.ArgumentError as error:
                        self.assertIn(error.code, ("EXTENT", "REQUIRE", "OTHER"), f"{p.name} empty: {error}")
            self.check_empty(run)

        self.each(check)

    def check_empty(self, run):
        """With each extent of the row's shape 0. PyTorch's results are those of the CPU."""
        for k in range(len(run.row.shape)):
            row = run.row
            try:
                empty = Run(type(row)(row.name, row.kind, (*row.shape[:k], 0, *row.shape[k + 1:]), row.build, row.settings, row.file),
                            "cpu")
            except Exception:  # PyTorch, or the making of the case, has none
                continue
            empty.reset()
            arguments = [a.to(self.device) if isinstance(a, torch.Tensor) else a for a in empty.case.arguments]
            try:
                empty.kernel(*arguments)
            except tile.ArgumentError as error:
                self.assertTrue(error.argument or error.code == "REQUIRE", f"extent {k} empty: {error}")
            except tile.CompileError as error:  # of an instance with a static extent of 0
                self.assertIn("in the instance", error.report, f"extent {k} empty: {error}")
            else:
                found = [next(b for a, b in zip(empty.case.arguments, arguments) if a is result) for result in empty.case.results]
                self.assertIsNone(difference([r.cpu() for r in found], empty.expected), f"extent {k} empty")

    def test_types_devices_and_gradients(self):
        def check(run):
            for i, p in parameters(run):
                a = run.plain[i]
                self.refused(run, i, a.new_zeros(a.shape, dtype=torch.complex64), "complex", ("TYPE",))
                self.refused(run, i, torch.empty(a.shape, dtype=a.dtype, device="meta"), "meta", ("DEVICE", "KIND", "OTHER"))
                self.refused(run, i, None, "None", ("KIND",))
                if GPU and len(parameters(run)) > 1:
                    self.of_another_device(run, i, a.cpu() if a.is_cuda else a.cuda())
                if a.is_floating_point():
                    self.refused(run, i, a.detach().clone().requires_grad_(), "leaf", ("OTHER",))

        self.each(check)

    def of_another_device(self, run, i, value):
        """The first array says where the others are to be."""
        arguments = clones(run)
        arguments[i] = value
        with self.assertRaises(tile.ArgumentError) as caught:
            run.kernel(*arguments)
        names = [p.name for _, p in parameters(run)]
        self.assertIn(caught.exception.argument, names if i == parameters(run)[0][0] else [run.kernel.parameters[i].name])
        self.assertEqual(caught.exception.code, "DEVICE")


class OnGpu(Arguments):
    device = "cuda"

    def setUp(self):
        if not GPU:
            self.skipTest("there is no GPU that PyTorch and Tile can use")


class OfNumPy(Arguments):
    """The same kernels on arrays of NumPy, for what only they have."""

    test_layouts = test_broadcast = test_rank_0_and_empty = test_types_devices_and_gradients = None

    def test_backwards(self):
        def check(run):
            arguments = [backwards(to_numpy(a)) if isinstance(a, torch.Tensor) else a for a in clones(run)]
            refused = self.same(run, arguments, run.plain, "backwards")
            self.assertTrue(refused is None or packed(run, refused), f"{refused} is refused")

        self.each(check)

    def test_read_only(self):
        def check(run):
            arguments = [to_numpy(a) for a in clones(run)]
            for i, p in parameters(run):
                if p.access == "in":
                    constant(arguments[i])
            self.assertIsNone(self.same(run, arguments, run.plain, "read-only inputs"))
            for i, p in parameters(run):
                if p.access != "in":
                    self.refused(run, i, constant(to_numpy(run.plain[i].clone())), "read-only", ("READ_ONLY",))

        self.each(check)

    def test_types(self):
        def check(run):
            for i, _ in parameters(run):
                a = to_numpy(run.plain[i])
                for kind in (np.complex64, "U1", a.dtype.newbyteorder(">") if a.itemsize > 1 else np.complex128):
                    self.refused(run, i, np.zeros(a.shape, kind), str(kind), ("TYPE",))

        self.each(check)


def packed(run, name):
    """Two numbers in each byte, whose bytes lie side by side."""
    p = next(p for p in run.kernel.parameters if p.name == name)
    return (p.dtype or p.type) in ("i4", "u4", "f4e2m1") or name == ""


if __name__ == "__main__":
    CHOSEN, PART, others = command.choices(sys.argv[1:])
    command.main(others)
