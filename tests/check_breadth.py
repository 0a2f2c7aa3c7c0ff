#!/usr/bin/env python3
"""The breadth table (bench/breadth.py) has rows of every kernel of the standard library, tests/programs and examples, in f32
and bf16, at two shapes or more; or the reason is here why not."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from breadth import TABLES

# Files and kernels without rows.
EXCUSED = {
    "tests/programs/clusters.tile": "norm:layernorm, softmax:softmax_passes, whose blocks the model lets share rows",
    "tests/programs/constants.tile": "of the language: constants",
    "tests/programs/tests.tile": "of the language: tests of kernels",
    "tests/programs/values.tile": "of the language: forms of values, most of them a line",
    "tests/programs/conditions.tile": "of the language: what conditions prove, and forms of indices, extents and literals",
    "tests/programs/sorts.tile": "of the language: forms of sorting and counting; sort:sort_rows and others have rows",
    "tests/programs/float8.tile": "of the language: arithmetic on 8-bit floats",
    "tests/programs/packed.tile": "of the language: numbers of 4 bits; PyTorch has no product of mx formats on all devices",
    "tests/programs/packed_tensors.tile": "of the language: tensors of numbers of 4 bits, which PyTorch holds as bytes",
    "tests/programs/temporaries.tile": "of the language: temporaries of programs",
    "tests/programs/bilinear.tile": "samples at points, which PyTorch takes in another form",
    "tests/programs/doubles.tile": "rows are of f32 and bf16; bench/gpu_goals.py has one of f64",
    "tests/programs/mandelbrot.tile": "PyTorch has no loop on data",
    "tests/programs/conv2d_3x3.tile": "conv:conv2d",
    "tests/programs/group_norm.tile": "norm:group_norm",
    "tests/programs/layernorm_bwd_params.tile": "norm:layernorm_backward_params",
    "tests/programs/matmul_epilogue.tile": "matmul:matmul/bias_relu",
    "tests/programs/swiglu.tile": "gates:geglu, gates:swiglu_pair",
    "tests/programs/varlen_attention.tile": "attention:attention_varlen",
    "examples/digits/digits.tile": "a classifier's layers, like matmul:matmul and softmax:softmax_row",
    "examples/link_c/network.tile": "a network's layers, like matmul:matmul/bias_relu and softmax:softmax",
    "examples/link_cpp/blend.tile": "like elementwise:axpy and stencils:filter1d",
    "examples/pass/polynomial.tile": "shows a pass",
}
# Texts as users of Triton write them: their results are NumPy's (tests/python/test_from_triton.py), and the library has the same
# operations, with rows.
EXCUSED_FOLDERS = ("examples/from-triton/",)
# Types and shapes that a kernel has not.
ONLY_TYPES = {"matmul:matmul_f8": "PyTorch gives bf16", "attention:attention_f8": "of 8-bit floats", "updates:histogram": "counts integers", "statistics:confusion": "counts integers", "fourier:fft_rows": "of f32 parts",
              "fourier:fft_long": "of f32 parts",
              "optimisers:newton_schulz_step": "of f32 in full"}


def kernels_of(path):
    return re.findall(r"^kernel (\w+)", path.read_text(), re.M)


def main():
    had = {}
    for table in TABLES:
        for row in table.rows(False):
            types, shapes = had.setdefault((row.file, row.kernel()), (set(), set()))
            types.add(row.kind)
            shapes.add(row.shape)
    files = [p for folder in ("stdlib", "tests/programs", "examples") for p in sorted((ROOT / folder).glob("**/*.tile"))]
    wrong, count, there = [], 0, set()
    for path in files:
        file = str(path.relative_to(ROOT))
        there.add(file)
        for kernel in kernels_of(path):
            there.add((file, kernel))
            name = f"{path.stem}:{kernel}"
            if (file, kernel) not in had:
                if file not in EXCUSED and not file.startswith(EXCUSED_FOLDERS):
                    wrong.append(f"{file}: {kernel} has no row in the breadth table (bench/breadth_*.py), nor a reason here why not")
                continue
            count += 1
            types, shapes = had[file, kernel]
            if len(types) < 2 and name not in ONLY_TYPES:
                wrong.append(f"{file}: {kernel} has rows of {', '.join(types)} only")
            if len(shapes) < 2:
                wrong.append(f"{file}: {kernel} has rows of one shape only")
    wrong += [f"{file}: {kernel} has rows, but there is no such kernel" for file, kernel in had if (file, kernel) not in there]
    wrong += [f"{file} has a reason for having no rows, but is not there" for file in EXCUSED if file not in there]
    print("\n".join(wrong) if wrong else f"{count} kernels have rows in the breadth table")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
