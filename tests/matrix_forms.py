"""What the kernel matrix has of kernels of tests/programs that each show a form of the language: a few rows on every target."""

from matrix_kernels import FEW_VIEWS, GPUS, PLAIN, ROW_TO_ROW, WIDE, Kernel

ROWS = ["contiguous", "rows"]
USUAL = ("normal",)
TIES = ("normal", "integers")
HOSTILE = ("normal", "hostile")
FLOAT8 = ["f8e4m3", "f8e5m2"]
LINE = {"-": {"N": [0, 1, 15, 33]}}
HALVES = {"K": lambda sizes: 2 * sizes["H"]}
BYTES = {"-": {"N": [1, 5], "H": [1, 4, 9, 0]}}
SINGLES = {"-": {"N": [1, 5], "K": [1, 7, 8, 21]}}
IN_BYTES = {"H": lambda sizes: (sizes["K"] + 1) // 2}


def form(file, name, tensors, tunes, types=("f32",), budget=3, **more):
    return Kernel(f"../tests/programs/{file}:{name}", tensors, tunes, types=list(types), budget=budget, **more)


FORMS = [
    form("values", "fibonacci", [("y", FEW_VIEWS), ("z", PLAIN)], {"-": {"N": [0, 1, 40]}}, data=USUAL),
    form("values", "last_max", [("x", FEW_VIEWS), ("at", PLAIN)], {"BM=2 BN=4": {"M": [0, 1, 5], "N": [0, 1, 4, 11]}},
         data=("normal", "integers", "special")),
    form("values", "outer_sum", [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("z", ROWS)], {"BM=4 BN=8": {"M": [0, 1, 9], "N": [1, 8, 21]}}),
    form("values", "neighbours", [("x", FEW_VIEWS), ("left", ROWS), ("has_left", ROWS)], {"BM=4": {"M": [0, 1, 5], "N": [4, 7, 33]}}),
    form("values", "between", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], {"B=8": {"N": [0, 1, 2, 8, 19, 70]}}, data=USUAL),
    form("values", "both_sides", [("a", ["contiguous", "transposed"]), ("x", FEW_VIEWS), ("w", FEW_VIEWS)],
         {"BM=16 BK=16": {"M": [1, 16, 37], "K": [1, 15, 45]}}, types=("f32", "bf16"), gpus=GPUS),
    form("values", "shared_right", [("a", FEW_VIEWS), ("b", ["contiguous", "transposed"]), ("c", ROWS)],
         {"-": {"B": [1, 3], "M": [1, 6], "K": [4, 17], "N": [2, 9]}}),
    form("values", "letters", [("a", FEW_VIEWS), ("b", FEW_VIEWS), ("y", ROWS)],
         {"-": {"B": [1, 2], "I": [1, 3], "J": [1, 5], "K": [2, 3], "L": [1, 4]}}),
    form("values", "stages", [("x", FEW_VIEWS), ("y", ROWS), ("z", PLAIN)], {"BM=4 BN=8": {"M": [0, 1, 5, 33], "N": [0, 1, 8, 21]}}),
    form("values", "bits", [("x", FEW_VIEWS), ("ones", ["contiguous", "strided"])], {"B=16": {"N": [0, 1, 16, 237]}},
         types=("i8", "u8", "i32"), data=("integers",)),
    form("values", "parts", [("x", FEW_VIEWS), ("next", PLAIN)], {"B=16": {"N": [0, 1, 16, 77]}}, types=("f32", "f16", "bf16", "f64"), data=USUAL),
    *(form("float8", name, [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("a", PLAIN)], {"B=16": {"N": [0, 1, 16, 237]}}, types=FLOAT8,
           data=("normal", "wide")) for name in ("operators", "functions")),
    form("float8", "lines", [("x", FEW_VIEWS), ("sorted", ROWS)], {"BM=4": {"M": [0, 1, 5], "N": [1, 7, 33]}}, types=FLOAT8, data=TIES),
    form("float8", "accumulate", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], {"B=16": {"M": [0, 1, 20], "N": [1, 16, 37]}},
         types=FLOAT8, data=USUAL),
    form("float8", "folded", [("x", FEW_VIEWS)], {"BM=4": {"M": [0, 1, 5], "N": [1, 7, 33]}}, types=("f8e4m3",), data=TIES),
    form("conditions", "flat", [("x", FEW_VIEWS), ("at", PLAIN), ("y", ["contiguous", "strided"]), ("v", ROWS)],
         {"B=16 BM=4": {"M": [0, 1, 5], "N": [1, 16, 35], "P": [0, 1, 4, 11]}}, types=("f32", "bf16"), budget=5, data=("normal", "hostile", "special"),
         derive={"Q": lambda sizes: sizes["M"] * sizes["N"]}),
    form("temporaries", "places", [("x", FEW_VIEWS), ("y", ROWS)], {"-": {"M": [0, 1, 5]}}, data=HOSTILE, derive={"P": lambda _: 16}),
    form("constants", "k", [("x", FEW_VIEWS), ("y", FEW_VIEWS)], LINE, data=("integers",)),
    form("tests", "scale", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], {"B=4": {"N": [0, 1, 4, 11]}, "B=16": {"N": [37]}},
         types=("f32", "bf16")),
    form("tests", "convert", ROW_TO_ROW, {"-": {"M": [0, 1, 5], "N": [1, 8, 21]}}, types=("f16:f32", "bf16:f64", "f32:f16"), data=USUAL),
    form("tests", "convert/integers", ROW_TO_ROW, {"-": {"M": [0, 1, 5], "N": [1, 8, 21]}}, types=("f32:i32", "bf16:i8"), data=USUAL),
    form("tests", "take", [("x", FEW_VIEWS), ("rows", FEW_VIEWS), ("y", ROWS)], {"-": {"M": [1, 5], "N": [1, 8, 21], "K": [0, 1, 9]}},
         data=("normal", "hostile", "special")),
    form("tests", "halves", [("x", FEW_VIEWS), ("y", ROWS), ("sums", ["contiguous", "strided"])], {"-": {"M": [0, 1, 5], "N": [1, 8, 21]}},
         derive={"W": lambda sizes: 2 * sizes["N"], "C": lambda _: 2}),
    form("tests", "total", [("x", FEW_VIEWS)], LINE, data=WIDE),
    form("packed", "formats", [("x", FEW_VIEWS), ("i", ["contiguous", "strided"]), ("same", ROWS)], {"-": {"N": [1, 16, 33]}}, data=USUAL,
         derive={"K": lambda sizes: 2 * sizes["N"], "C": lambda _: 3}),
    *(form("packed_tensors", name, [("x", FEW_VIEWS), ("y", ROWS)], BYTES, data=USUAL, derive=HALVES) for name in ("wide_i4", "rows", "single_u4")),
    form("packed_tensors", "sums_u4", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], BYTES, data=USUAL, derive=HALVES),
    form("packed_tensors", "column_i4", [("x", FEW_VIEWS)], {"-": {"N": [1, 9], "H": [1, 5], "A": [0, 1, -1, 7, 10]}}, data=USUAL, derive=HALVES),
    form("packed_tensors", "gathered", [("x", FEW_VIEWS), ("at", FEW_VIEWS), ("y", ROWS)], {"-": {"N": [1, 5], "H": [1, 5], "M": [0, 1, 11]}},
         data=HOSTILE, derive=HALVES),
    form("packed_tensors", "gathered_flat", [("x", FEW_VIEWS), ("row", FEW_VIEWS)], {"-": {"N": [1, 5], "H": [1, 5], "M": [0, 1, 11]}},
         data=HOSTILE, derive=HALVES),
    *(form("packed_tensors", name, [("x", FEW_VIEWS), ("y", ROWS)], SINGLES, data=USUAL, derive=IN_BYTES) for name in ("narrow_i4", "narrow_f4")),
    form("packed_tensors", "added", [("x", ["contiguous", "rows"])], {"-": {"N": [1, 5], "H": [1, 8, 21]}}, data=USUAL),
    form("packed_tensors", "through", ROW_TO_ROW, SINGLES, data=USUAL),
    form("packed_tensors", "through_own", ROW_TO_ROW, {"-": {"N": [0, 1, 7]}}, data=USUAL, derive={"K": lambda _: 6}),
    form("packed_tensors", "products", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("c", PLAIN)],
         {"-": {"M": [1, 16, 21], "N": [1, 17], "H": [4, 16, 21]}}, data=USUAL, derive=HALVES, gpus=GPUS),
    form("packed_tensors", "powers", [("x", FEW_VIEWS), ("y", FEW_VIEWS)], {"-": {"N": [0, 1, 8, 300]}}, data=USUAL),
    *(form("sorts", name, ROW_TO_ROW, {"BM=4": {"M": [0, 1, 5], "N": [1, 7, 16, 33]}}, types=("f32", "bf16"), data=TIES)
      for name in ("sorted_rows", "ranked_rows")),
    form("sorts", "sorted_columns", ROW_TO_ROW, {"-": {"M": [0, 1, 16, 21], "N": [1, 4, 9]}}, types=("f32", "i8", "u8", "i32"), data=TIES, budget=5),
    form("sorts", "sorted_kept", ROW_TO_ROW, {"-": {"M": [0, 1, 5], "N": [1, 16, 37]}}, data=TIES),
    form("sorts", "top_three", ROW_TO_ROW, {"-": {"M": [0, 1, 5], "N": [1, 2, 7, 16]}}, types=("f32", "f16"), data=TIES, derive={"C": lambda _: 3}),
    form("sorts", "counts", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], {"-": {"N": [0, 1, 16, 77]}}, types=("i32", "i64"), data=HOSTILE,
         derive={"A": lambda _: 10}),
    form("sorts", "row_counts", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])], {"-": {"M": [0, 1, 5], "N": [0, 1, 48, 133]}}, types=("u8", "i32", "i64"),
         data=HOSTILE, derive={"A": lambda _: 320}),
    form("sorts", "places", [("table", FEW_VIEWS), ("x", FEW_VIEWS)], {"-": {"N": [1, 5, 16], "M": [0, 1, 21]}}, data=USUAL, derive={"A": lambda _: 7}),
]
