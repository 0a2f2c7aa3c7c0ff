"""The kernels of examples/from-triton beside plain NumPy in float64: results, and gradients beside differences of the results.
Every file is run in f32 and, where it computes in 16 bits, in bf16, on the best target of this machine and on others, of which GPUs are
emulated; every kernel is called; and a fault in each file is found."""
import unittest

import ml_dtypes
import numpy as np

import tile

import from_triton_liger  # noqa: F401  (its checks are noted in FAMILIES)
import from_triton_tutorials  # noqa: F401
from from_triton import CALLED, FAMILIES, FAULTS, FOLDER, Kernels


class FromTriton(unittest.TestCase):
    def each(self, dtype, target=None):
        for file, check in FAMILIES.items():
            with self.subTest(file, dtype=np.dtype(dtype).name, target=target or "cpu"):
                check(Kernels(file, target=target), dtype)

    def test_f32(self):
        self.each(np.float32)

    def test_bf16(self):
        self.each(ml_dtypes.bfloat16)

    def test_on_targets(self):
        usable = {target.name for target in tile.backends.targets() if target.usable}
        for target in ("interp", "avx2", "sm_80", "sm_90a"):
            if target.startswith("sm_") or target in usable:
                self.each(np.float32, target)

    def test_in_16_bits_on_gpus(self):
        for target in ("sm_80", "sm_90a"):
            self.each(ml_dtypes.bfloat16, target)

    def test_faults_are_found(self):
        for file, check in FAMILIES.items():
            with self.subTest(file), self.assertRaises(AssertionError):
                check(Kernels(file, FAULTS[file]), np.float32)

    def test_every_kernel_is_called(self):
        files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.tile")}
        self.assertEqual(files, set(FAMILIES))
        for file, check in FAMILIES.items():
            kernels = Kernels(file)
            if not any(called == file for called, _ in CALLED):
                check(kernels, np.float32)
            self.assertEqual({name for called, name in CALLED if called == file}, set(kernels.module.kernels), file)


if __name__ == "__main__":
    unittest.main()
