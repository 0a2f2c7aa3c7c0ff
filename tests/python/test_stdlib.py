"""Every kernel of the standard library on PyTorch's tensors and on NumPy's arrays, beside what PyTorch computes: the rows of
bench/breadth.py at their smallest shapes. On the CPU, and on a GPU where there is one: there on a stream of the test's own behind work that takes
its time, and in a graph, which is replayed on other results.

usage: test_stdlib.py [--part=I/N] [TEXT]...     only rows with one of these texts in their names, the Ith of N parts of them"""
import itertools
import os
import pathlib
import sys
import unittest

os.environ.setdefault("TILE_CACHE_DIR", "")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import numpy as np
import torch
from breadth import TABLES, TOLERANCE, Make, blank, error_of, tuple_of

import command
import tile
import tile.torch
from tile import _rows
from tile._arrays import find_type

ROWS = [row for table in TABLES if table.folder == "stdlib" for row in table.rows(True)]
CHOSEN, PART = [], (1, 1)
FLOAT8 = {getattr(torch, name) for name in dir(torch) if name.startswith("float8_")}
HALF = {torch.bfloat16: "bfloat16", torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2"}
UTILITIES_BESIDE_THE_SCHEMA = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def kernel_of(row):
    kernel = tile.stdlib[row.file.removeprefix("stdlib/")][row.kernel()]
    names = {setting.name for setting in kernel.settings}
    return kernel.with_settings(**{name: value for name, value in {"T": row.kind, **row.settings}.items() if name in names})


def to_numpy(value):
    """The tensor as an array of NumPy on the same memory, and with its strides."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype not in HALF:
        return value.detach().numpy()
    import ml_dtypes

    return value.detach().view(torch.uint8 if value.element_size() == 1 else torch.int16).numpy().view(getattr(ml_dtypes, HALF[value.dtype]))


def to_torch(array):
    """And back."""
    if array.dtype.name in HALF.values():
        kind = next(kind for kind, name in HALF.items() if name == array.dtype.name)
        return torch.from_numpy(array.view(np.int16 if array.itemsize == 2 else np.uint8)).view(kind)
    return torch.from_numpy(array)


class Run:
    """A row's case on a device, which can be run again: what the kernel changes is put back."""

    def __init__(self, row, device):
        torch.manual_seed(1)
        self.row, self.kernel = row, kernel_of(row)
        self.case = row.build(Make(row.kind, device), *row.shape)
        self.before = [update.clone() for update in self.case.updates]
        wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() and v.element_size() > 1 else v
                for v in self.case.inputs]
        try:  # what PyTorch adds up in 16 bits may be further off than the kernel
            self.exact = tuple_of(self.case.function(*wide))
        except (RuntimeError, TypeError, NotImplementedError):
            self.exact = None
        self.expected = tuple_of(self.case.function(*self.case.inputs))

    def reset(self):
        for update, value in zip(self.case.updates, self.before):
            update.copy_(value)
        blank(self.case)

    def error(self, results):
        limit = self.case.loose or TOLERANCE[self.row.kind]
        error = (self.case.error or error_of)(results, self.expected)
        if not error <= limit and not self.case.error and self.exact is not None:
            error = error_of(results, self.exact)
        return error, limit

    def made(self, convert=lambda value: value):
        """Results that the call allocates, in place of those of the case; None: their shapes do not follow."""
        given = [convert(a) for a, p in zip(self.case.arguments, self.kernel.parameters) if p.access != "out"]
        outputs = [a for a, p in zip(self.case.arguments, self.kernel.parameters) if p.access == "out"]
        self.reset()
        try:
            made = tuple_of(self.kernel(*given))
        except tile.ArgumentError as error:
            if error.code in ("TYPE", "EXTENT") and "follows from no other argument" in str(error):
                return None
            raise
        return [next((m for m, o in zip(made, outputs) if o is result), result) for result in self.case.results]


class Stdlib(unittest.TestCase):
    def each(self, device, check, wanted=lambda row: True):
        rows = [row for row in filter(wanted, ROWS) if not CHOSEN or any(text in row.key() for text in CHOSEN)]
        rows = rows[PART[0] - 1::PART[1]]
        for row in rows:
            with self.subTest(row.key(), device=device):
                check(Run(row, device))
        self.assertTrue(rows)

    def close(self, run, results, how):
        error, limit = run.error(results)
        self.assertLessEqual(error, limit, f"{run.row.key()}, {how}")

    def test_rows_are_of_every_kernel(self):
        self.assertEqual(set(dir(tile.stdlib)) - {row.kernel() for row in ROWS}, set())

    def test_cpu(self):
        def check(run):
            run.reset()
            run.kernel(*run.case.arguments)
            self.close(run, run.case.results, "results given")
            made = run.made()
            if made is not None:
                self.close(run, made, "results made")

        self.each("cpu", check)

    def test_numpy(self):
        """The same numbers from arrays of NumPy, which the kernel writes, and makes."""
        found = set()

        def check(run):
            run.reset()
            arrays = [to_numpy(a) for a in run.case.arguments]
            run.kernel(*arrays)
            self.close(run, run.case.results, "NumPy, results given")
            found.add(run.kernel.name)
            made = run.made(to_numpy)
            if made is not None:
                self.assertTrue(all(isinstance(m, np.ndarray) or any(m is r for r in run.case.results) for m in made))
                self.close(run, [to_torch(m) if isinstance(m, np.ndarray) else m for m in made], "NumPy, results made")

        self.each("cpu", check)
        if not CHOSEN and PART[1] == 1:
            self.assertEqual(found, {tile.stdlib[row.file.removeprefix("stdlib/")][row.kernel()].name for row in ROWS})

    def test_operators(self):
        """Each as an operator: its schema, fake tensors, traces with symbols for extents."""
        number = itertools.count()

        def check(run):
            given = tuple(a for a, p in zip(run.case.arguments, run.kernel.parameters) if p.access != "out")
            if run.made() is None:
                return
            run.reset()
            op = tile.torch.op(f"tile_test_stdlib::k{next(number)}_{run.kernel.name}", run.kernel)
            before = [value.clone() for value in given if isinstance(value, torch.Tensor)]
            if any(value.dtype in FLOAT8 for value in before):  # PyTorch's check of the schema multiplies what it compares
                op(*given)
                torch.library.opcheck(op, given, test_utils=UTILITIES_BESIDE_THE_SCHEMA)
                after = [value for value in given if isinstance(value, torch.Tensor)]
                for a, b in zip(before, after):
                    bytes = (value.reshape(-1).view(torch.uint8) for value in (a, b))
                    self.assertTrue(torch.equal(*bytes), f"{run.row.key()}: an input changed")
            else:
                torch.library.opcheck(op, given)

        self.each("cpu", check, lambda row: row.kind == "f32")

    def test_batches_as_rows(self):
        """Where the rows of a kernel are said to be independent, two calls are one with the rows of both, bit for bit."""
        found = set()

        def check(run):
            if run.made() is None:
                return
            inputs = [p for p in run.kernel.parameters if p.access != "out"]
            given = [a for a, p in zip(run.case.arguments, run.kernel.parameters) if p.access != "out"]
            types = [find_type(a.dtype)[0] for a, p in zip(given, inputs) if p.access is not None]
            lead = _rows.leading(run.kernel, types)
            if not lead:
                return
            found.add(run.kernel.name)
            other = [a.roll(1, 0) if p.name in lead else a for a, p in zip(given, inputs)]
            both = [torch.cat((a, b)) if p.name in lead else a for a, b, p in zip(given, other, inputs)]
            one, two, all = (tuple_of(run.kernel(*args)) for args in (given, other, both))
            for a, b, c in zip(one, two, all):
                self.assertTrue(torch.equal(torch.cat((a, b)).double().nan_to_num(), c.double().nan_to_num()),
                                run.kernel.name)

        self.each("cpu", check, lambda row: row.kind == "f32")
        if not CHOSEN and PART[1] == 1:
            self.assertLess({"softmax", "layernorm", "rmsnorm", "layernorm_backward"}, found)
        print(f"rows are independent in {len(found)} kernels: {', '.join(sorted(found))}", file=sys.stderr)

    @unittest.skipUnless(torch.cuda.is_available() and tile.backends.cuda.is_available(),
                         "there is no GPU that PyTorch and Tile can use")
    def test_gpu(self):
        stream = torch.cuda.Stream()

        def check(run):
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200000)
                run.reset()
                run.kernel(*run.case.arguments)
                copies = [result.clone() for result in run.case.results]
            stream.synchronize()
            self.close(run, copies, "on a stream")
            with torch.cuda.stream(stream):
                made = run.made()
            stream.synchronize()
            if made is not None:
                self.close(run, made, "results made")
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run.kernel(*run.case.arguments)
            run.reset()
            graph.replay()
            torch.cuda.synchronize()
            self.close(run, run.case.results, "in a graph")

        self.each("cuda", check)


if __name__ == "__main__":
    CHOSEN, PART, others = command.choices(sys.argv[1:])
    command.main(others)
