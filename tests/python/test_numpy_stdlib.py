"""Kernels of the standard library on NumPy's arrays, beside what NumPy computes in f64: on arrays as they are, on strided views
of larger ones, and with results that the call makes. test_stdlib.py compares the kernels with PyTorch."""
import os
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import numpy as np
import numpy_rows_float8  # noqa: F401, they add their rows
import numpy_rows_images  # noqa: F401
from numpy_rows import ROWS, Any, Make, Out, Up

import tile


def distance_to_nearest(exact, dtype):
    """From each number to the nearest one of a type of 8 bits."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    return np.abs(exact[..., None] - numbers[np.isfinite(numbers)]).min(-1)


def spread(array):
    """The same numbers as every second of each dimension, in descending order along the first one."""
    larger = np.zeros(tuple(2 * n + 1 for n in array.shape), array.dtype)
    if not array.ndim:
        return np.array(array)
    view = larger[tuple(slice(1, 2 * n, 2) for n in array.shape)][::-1]
    view[...] = array
    return view


def arguments(row, place=np.array):
    """What the kernel gets, and [(array, what it must be)]."""
    given, results = [], []
    for value in row:
        if isinstance(value, Up):
            value, right = place(value.before), value
        elif isinstance(value, Out):
            value, right = place(np.full(value.right.shape, 113, value.dtype)), value
        elif isinstance(value, Any):
            value, right = place(np.full(value.shape, 113, value.dtype)), value
        else:
            given.append(place(value) if isinstance(value, np.ndarray) else value)
            continue
        given.append(value)
        results.append((value, right))
    return given, results


class NumpyStdlib(unittest.TestCase):
    def check(self, found, right):
        self.assertEqual(found.dtype, right.dtype)
        if isinstance(right, Any):
            self.assertTrue(right.check(found))
        elif right.dtype.kind in "iub":
            wrong = np.abs(found.astype(np.int64) - right.right.astype(np.int64))
            self.assertLessEqual(wrong.max(initial=0), right.dtype == np.int8)  # halves may be rounded either way
        elif right.dtype.itemsize == 1:
            wrong = np.abs(found.astype(np.float64) - right.right) - distance_to_nearest(right.right, right.dtype)
            self.assertTrue((wrong <= 1e-6 * np.abs(right.right)).all())
        else:
            scale = np.abs(right.right).max(initial=0) + 1e-30
            self.assertLessEqual(np.abs(found - right.right).max(initial=0) / scale, 5e-6)

    def each(self, run):
        for number, (name, settings, make) in enumerate(ROWS):
            with self.subTest(name, **settings):
                kernel = getattr(tile.stdlib, name)
                names = {setting.name for setting in kernel.settings}
                wanted = {key: value for key, value in {"T": "f32", **settings}.items() if key in names}
                run(kernel.with_settings(**wanted), make(Make(number)))

    def test_every_kernel_has_a_row(self):
        self.assertEqual(set(dir(tile.stdlib)) - {name for name, _, _ in ROWS}, set())

    def test_results_given(self):
        def run(kernel, row):
            given, results = arguments(row)
            self.assertIsNone(kernel(*given))
            for found, right in results:
                self.check(found, right)

        self.each(run)

    def test_strided_views(self):
        def run(kernel, row):
            given, results = arguments(row, spread)
            kernel(*given)
            for found, right in results:
                self.check(found, right)

        self.each(run)

    def test_results_made(self):
        made = set()

        def run(kernel, row):
            given, results = arguments(row)
            inputs = [a for a, p in zip(given, kernel.parameters) if p.access != "out"]
            try:
                found = kernel(*inputs)
            except tile.ArgumentError as error:
                self.assertIn("follows from no other argument", str(error))
                return
            made.add(kernel.name)
            found = iter(found if isinstance(found, tuple) else () if found is None else (found,))
            outputs = [a is not None and p.access == "out" for a, p in zip(given, kernel.parameters) if p.access in ("out", "inout")]
            for is_made, (before, right) in zip(outputs, results):
                self.check(next(found) if is_made else before, right)

        self.each(run)
        self.assertGreater(len(made), 80)


if __name__ == "__main__":
    unittest.main()
