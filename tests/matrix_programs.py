"""What the kernel matrix has of the kernels of examples and of tests/programs that are of other kinds than the library's: a few rows on every target."""

from matrix_kernels import (BACKWARD, FEW_VIEWS, GPUS, GROUPS, HEAD, HELD_ROWS, Kernel, LINES, MATMUL, PLAIN, ROTARY,
                            ROW, ROW_TO_ROW, WIDE, XY, around)

# Texts as users write them, and the examples' kernels.
PLANE_3X3 = {"BW=8 BO=16 BC=16": {"B": [1, 0, 2], "H": [3, 0, 1, 5], "W": [8, 0, 1, 7, 9], "C": [16, 1, 15, 17],
                                  "O": [16, 0, 1, 15, 17], "R": [3], "S": [3], "X": [1], "Y": [1], "Z": [1]}}
SEQUENCES = {"BS=16 BL=16": {"H": [2, 1, 3], "L": [33, 0, 1, 15, 16, 17, 70], "D": [8, 5, 16], "E": [3, 2, 6],
                             "Z": [200]}}
SHORT_LINE = {"-": {"N": [0, 1, 1023, 1024, 1025]}}
EPILOGUE = {"BM=32 BN=32 BK=16": {"M": around(32), "N": around(32), "K": around(16)}}
LAYER = {"BM=16 BN=64 BK=64": {"M": around(16), "N": around(64), "K": around(64)}}


def program(name, *arguments, **more):
    return Kernel(f"../tests/programs/{name.split('/')[0]}:{name}", *arguments, budget=12, **more)


EXAMPLES = [
    program("swiglu", XY, {"BM=1 BN=128": {"M": [0, 1, 3], "N": around(128)}},
            derive={"W": lambda sizes: 2 * sizes["N"]}),
    program("conv2d_3x3", [("x", "in"), ("wt", "in"), ("y", "out")], PLANE_3X3,
            derive={"P": lambda sizes: sizes["H"], "Q": lambda sizes: sizes["W"]}, gpus=GPUS),
    program("group_norm", XY, {"BC=4 BP=128": {"B": [0, 1, 3], "C": [0, 2, 8, 10], "P": around(128)}}),
    program("layernorm_bwd_params", BACKWARD + [("dgamma", FEW_VIEWS)],
            {"BM=16 BN=32 BP=8": {"M": around(16), "N": around(32)}}),
    program("matmul_epilogue", MATMUL, EPILOGUE, gpus=GPUS),
    program("matmul_epilogue/bias_relu", MATMUL + [("bias", "in")], EPILOGUE, gpus=GPUS),
    program("matmul_epilogue/gate_residual", MATMUL + [("old", "in")], EPILOGUE, gpus=GPUS),
    program("varlen_attention", [("q", "in"), ("k", "in"), ("v", "in"), ("cu", "in"), ("o", "out")], SEQUENCES,
            derive={"U": lambda sizes: sizes["L"] + 1}, gpus=GPUS),
    program("bilinear", [("img", "in"), ("px", FEW_VIEWS), ("y", "out")],
            {"BN=16 BC=4": {"H": [5, 0, 1], "W": [4, 0, 1, 7], "C": [4, 1, 3, 5], "N": around(16)}}, types=["f32"]),
    program("mandelbrot", [("n", "out")], {"BH=4 BW=32": {"H": [0, 1, 3, 4, 5, 30], "W": around(32)}}, types=["f32"],
            data=("normal",)),
    Kernel("../examples/link_c/network:layer", [("x", "in"), ("w", "in"), ("y", "out")], LAYER, types=["f32"], budget=12),
    Kernel("../examples/link_c/network:softmax", [("s", "in"), ("p", "out")],
           {"BM=4 BN=64": {"M": [0, 1, 5], "N": around(64)}}, types=["f32", "f16"], budget=12),
    Kernel("../examples/link_cpp/blend:blend", XY, {"BM=4 BN=64": {"M": [0, 1, 5], "N": around(64)}}, types=["f32"],
           budget=12),
    Kernel("../examples/link_cpp/blend:window", XY, {"-": {"M": around(64)}}, types=["f32"],
           derive={"N": lambda sizes: sizes["M"] + 2}, budget=12),
    Kernel("../examples/pass/polynomial:polynomial", XY, SHORT_LINE, types=["f32"], budget=12),
    Kernel("../examples/digits/digits:dense", [("x", "in"), ("weight", "in"), ("y", "out")],
           {"-": {"M": [1, 0, 111, 113], "N": [10, 0, 1, 65], "K": [64, 0, 1, 257]}}, types=["f32"], budget=12),
    Kernel("../examples/digits/digits:softmax", XY, {"-": HELD_ROWS}, types=["f32"], budget=12),
    Kernel("../examples/digits/digits:argmax_rows", [("x", "in"), ("digit", "out")], {"-": HELD_ROWS}, types=["f32"],
           budget=12),
]


# Kernels of other kinds than the library's: a few configurations each, with small tiles.
def other(file, name, tensors, tunes, types=("f32", "bf16"), **more):
    return Kernel(f"../tests/programs/{file}:{name}", tensors, tunes, types=list(types), budget=5, **more)


def both(block):
    return [1, block - 1, 2 * block + 5]


GRID = {"BM=4 BN=16": {"M": [1, 3, 9, 0], "N": both(16)}}
PIXELS = {"BH=4 BW=16": {"B": [1, 2], "C": [1, 3], "H": [1, 4, 9], "W": [1, 15, 37]}}
TWICE = {"Y": lambda sizes: 2 * sizes["H"], "Z": lambda sizes: 2 * sizes["W"]}
SIX_MORE = {"Y": lambda sizes: sizes["H"] + 6, "Z": lambda sizes: sizes["W"] + 6}
PAIRS = {"BM=16 BN=32 BK=16": {"M": [1, 16, 37], "N": [1, 31, 69], "K": [1, 16, 45]}}
DOUBLES = {"BM=32 BN=64 BK=16": {"M": both(32), "N": both(64), "K": [0, 1, 16, 45]}, "BM=64 BN=32 BK=32": {"M": both(64), "N": both(32), "K": [32, 7, 80]}}
DISTANCES = [("a", ["contiguous", "transposed"]), ("b", FEW_VIEWS)]
# Rows that blocks of a cluster share: fewer tiles than blocks, some blocks with none, a ragged end, and as many whole tiles as stay in registers.
SHARED = {"BM=2 BN=256 cluster=4": {"M": [1, 3], "N": [1, 256, 700, 2049]}, "BM=1 BN=512 cluster=2": {"M": [1, 2], "N": [8192, 8191, 4096]},
          "BM=1 BN=256 cluster=8": {"M": [2], "N": [16384, 5000]}}
PROGRAMS = [
    other("clusters", "layernorm_shared", [("x", "in"), ("gamma", FEW_VIEWS), ("beta", FEW_VIEWS), ("y", "out")], SHARED, gpus=["sm_90a"]),
    other("clusters", "image_statistics_shared", [("x", FEW_VIEWS)],
          {"BW=8 BC=32 cluster=4": {"B": [1, 2], "H": [1, 5, 17], "W": [1, 8, 13], "C": [1, 32, 40]}, "BW=8 BC=64 cluster=8": {"B": [1], "H": [33], "W": [9], "C": [70]}},
          gpus=["sm_90a"]),
    other("clusters", "group_norm_shared", [("x", FEW_VIEWS), ("gamma", PLAIN), ("beta", PLAIN), ("y", ["contiguous", "rows"])],
          {"BC=4 BP=64 cluster=4": {"B": [1, 2], "C": [2, 10, 12], "P": [1, 64, 300, 513]}, "BC=2 BP=64 cluster=8": {"B": [1], "C": [6], "P": [1000]}}, gpus=["sm_90a"]),
    other("clusters", "above_mean_shared", [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BP=64 cluster=4": {"B": [1, 2, 3, 9], "C": [1, 3], "P": [1, 64, 300]}, "BP=64 cluster=8": {"B": [1, 5], "C": [2], "P": [1000]}}, gpus=["sm_90a"]),
    other("clusters", "product_shared", [("a", PLAIN), ("b", PLAIN), ("bias", PLAIN), ("c", ["contiguous", "rows"])],
          {"BM=64 BN=64 cluster=4": {"M": [64, 1, 72], "N": [64, 8, 136], "K": [64, 0, 1, 300]}, "BM=128 BN=64 cluster=2": {"M": [128, 200], "N": [64, 72], "K": [512, 65]},
           "BM=64 BN=128 cluster=8": {"M": [64, 40], "N": [128, 96], "K": [520, 64]}}, types=["f16", "bf16"], gpus=["sm_90a"]),
    other("clusters", "gram_shared", [("a", PLAIN), ("b", PLAIN)],
          {"BM=64 BN=64 BW=32 cluster=4": {"B": [1, 2, 0], "H": [1, 5], "W": [32, 40, 7], "M": [64, 72], "N": [64, 8]},
           "BM=64 BN=128 BW=64 cluster=2": {"B": [2], "H": [3], "W": [64, 30], "M": [64, 16], "N": [128, 72]}}, types=["f16", "bf16"], gpus=["sm_90a"]),
    other("doubles", "product_of_doubles", MATMUL, DOUBLES, types=["f64"], gpus=GPUS),
    other("doubles", "turned_doubles", [("a", "in"), ("b", "in"), ("c", ["contiguous", "rows"])], DOUBLES, types=["f64"], gpus=GPUS),
    other("doubles", "weighted_doubles", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("b", PLAIN), ("c", PLAIN)], DOUBLES, types=["f64"], gpus=GPUS),
    other("values", "windows", ROW_TO_ROW, {"BM=4": {"M": [0, 1, 5], "N": [4, 7, 33]}}),
    other("conditions", "chosen", ROW_TO_ROW, {"BM=4 BN=16": {"M": [0, 1, 5], "N": [1, 16, 35, 66]}}),
    other("conditions", "guarded", [("x", FEW_VIEWS), ("y", ["contiguous", "rows"]), ("turned", PLAIN), ("lower", PLAIN)],
          {"BN=16": {"M": [0, 1, 5], "N": [1, 15, 33]}}),
    other("conditions", "literals", ROW_TO_ROW, {"BM=4": {"M": [0, 1, 5], "N": [1, 6, 33, 64]}}),
    other("values", "row_products", [("a", FEW_VIEWS), ("x", ["contiguous", "strided"]), ("y", PLAIN)],
          {"BM=16 BK=16": {"M": [1, 15, 37], "K": [1, 16, 45]}}),
    Kernel("../tests/programs/values:packed",
           [("a", ["rows", "contiguous", "transposed", "negative"]), ("x", FEW_VIEWS), ("y", ["contiguous", "rows"])],
           {"-": {"B": [1, 3], "M": [1, 63, 131], "N": [1, 64, 77], "K": [0, 1, 65, 130]}}, types=["f16", "bf16", "f32"],
           budget=14, gpus=["sm_90a"]),
    other("values", "by_letters", [("a", ["contiguous", "transposed"]), ("x", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BM=16 BN=16 BK=16": {"B": [1, 3], "M": [1, 17], "N": [1, 15, 33], "K": [1, 16, 45]}}),
    *(other("stencils", name, ROW_TO_ROW, GRID) for name in ("heat5", "sobel")),
    other("stencils", "laplace7", ROW_TO_ROW, {"BH=4 BW=16": {"D": [1, 3], "H": [1, 9], "W": both(16)}}),
    other("stencils", "blur5", ROW_TO_ROW, {"BM=4 BN=16": {"M": [1, 3, 9, 0], "N": both(16)}, "BM=8 BN=64": {"M": [1, 19], "N": [1, 64, 193, 256]}}, derive={"F": lambda _: 5}),
    other("stencils", "filter1d", ROW_TO_ROW, {"BN=32": {"M": ROW, "N": [1, 33, 77], "K": [5, 1, 4, 0]}}),
    *(other("stencils", name, ROW_TO_ROW, GRID) for name in ("sliding_max", "torus")),
    other("sequences", "softmax_backward", [("dy", FEW_VIEWS), ("y", PLAIN), ("dx", PLAIN)], LINES),
    other("sequences", "softmax_backward", [("dy", FEW_VIEWS), ("y", PLAIN), ("dx", PLAIN)],
          {"BM=1 BN=512": {"M": [1, 3], "N": [1024, 1000, 513, 512, 1537, 2048, 3000]}}, gpus=["sm_90a"]),
    other("transforms", "polynomial", ROW_TO_ROW, {"B=32": {"N": [0, 1, 33, 77], "K": [5, 1, 0]}}),
    other("images", "average_pool", ROW_TO_ROW, PIXELS, derive=TWICE),
    other("images", "half_size", ROW_TO_ROW, {**PIXELS, "BH=4 BW=64": {"B": [1], "C": [2], "H": [1, 13], "W": [1, 64, 193, 256]}}, derive=TWICE),
    other("images", "repeat8", ROW_TO_ROW, {"BM=4 BN=256": {"M": [1, 5], "N": [0, 1, 32, 77]}}, derive={"W": lambda sizes: 8 * sizes["N"]}),
    other("images", "upsample", ROW_TO_ROW, PIXELS, derive=TWICE),
    other("images", "pixel_shuffle", ROW_TO_ROW, PIXELS, derive={"I": lambda _: 2, "J": lambda _: 2, **TWICE}),
    other("images", "im2col", ROW_TO_ROW, PIXELS, derive={"R": lambda _: 3, "S": lambda _: 3}),
    other("images", "roll", ROW_TO_ROW, {"BN=32": {"M": [1, 5], "N": [1, 33, 70], "R": [0, 2, -3], "S": [1, -5, 300]}}),
    other("images", "interleave", ROW_TO_ROW, {"BW=32": {"B": [1, 2], "H": [1, 3], "W": [1, 32, 77]}}, derive={"C": lambda _: 3}),
    other("images", "luminance", ROW_TO_ROW, {"BN=64": {"N": [0, 1, 64, 197]}}, derive={"C": lambda _: 3}),
    other("blocks", "scaled_blocks", [("x", FEW_VIEWS), ("s", PLAIN), ("y", PLAIN)],
          {"BN=96": {"M": [1, 9], "N": [0, 1, 96, 223]}, "BN=80": {"M": [5], "N": [80, 250]}}, derive={"E": lambda sizes: -(-sizes["N"] // 32)}),
    other("blocks", "turned_pairs", ROW_TO_ROW, {"BM=4": {"M": [0, 1, 9], "N": [6, 10, 24, 96]}}),
    other("blocks", "below_greatest", ROW_TO_ROW, {"BM=4": {"M": [0, 1, 9], "N": [12, 36, 60, 192]}}),
    other("images", "pad_edge", ROW_TO_ROW, {"BW=64": {"B": [1, 2], "H": [1, 4], "W": [1, 33, 130]}}, derive=SIX_MORE),
    other("images", "pad_mirror", ROW_TO_ROW, {"BW=64": {"B": [1, 2], "H": [4, 5], "W": [4, 33, 130]}}, derive=SIX_MORE),
    other("gates", "geglu", ROW_TO_ROW, LINES, derive={"W": lambda sizes: 2 * sizes["N"]}),
    other("gates", "swiglu_pair", [("gate", FEW_VIEWS), ("up", PLAIN), ("y", PLAIN)], LINES),
    other("gates", "relu_squared", ROW_TO_ROW, LINES, data=WIDE),
    other("gates", "top2", [("x", FEW_VIEWS), ("weight", PLAIN)], {"BM=4": {"M": [0, 1, 9], "E": [2, 8, 13]}},
          derive={"T": lambda _: 2}),
    other("distances", "squared_distances", DISTANCES, PAIRS, gpus=GPUS),
    other("distances", "cosines", DISTANCES, PAIRS, gpus=GPUS),
    other("distances", "nearest", [("x", FEW_VIEWS), ("centre", FEW_VIEWS)], PAIRS, gpus=GPUS),
    other("statistics", "batch_statistics", [("x", FEW_VIEWS)], {"BC=2 BP=36": {"B": [1, 3], "C": [1, 5], "P": [1, 36, 77]}}),
    other("statistics", "image_statistics", [("x", FEW_VIEWS)],
          {"BW=4 BC=16": {"B": [1, 2], "H": [1, 3], "W": [1, 4, 9], "C": [1, 16, 37]}}),
    other("statistics", "logsumexp_middle", [("x", FEW_VIEWS), ("y", PLAIN)],
          {"BS=4 BN=32": {"B": [1, 2], "S": [1, 4, 11], "N": [1, 32, 69]}}),
    other("statistics", "group_norm_last", ROW_TO_ROW, {"BP=8 BC=16": {"B": [1, 2], "P": [1, 8, 21], "C": [2, 32, 70]}}),
    *(other("statistics", name, ROW_TO_ROW, LINES) for name in ("count_nonzero", "running_max")),
    other("statistics", "confusion", [("t", FEW_VIEWS), ("count", ["contiguous", "transposed"])],
          {"BN=64": {"N": [0, 1, 64, 197], "A": [1, 3], "B": [1, 7]}}, types=["f32"], data=("normal", "hostile")),
    other("temporaries", "reversed_blocks", ROW_TO_ROW, {"BM=2 BN=32": {"M": [0, 1, 5], "N": [1, 32, 77]}}, gpus=GPUS),
    other("packed", "rounded", ROW_TO_ROW, {"BM=2 BN=32": {"M": ROW, "N": [1, 32, 77]}}, data=WIDE),
    other("packed", "mxfp4", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("c", PLAIN)],
          {"BM=16 BN=32 BH=32": {"M": [1, 16, 37], "N": [1, 31, 69], "H": [16, 32, 80]}}, types=["bf16"],
          derive={"K": lambda sizes: 2 * sizes["H"], "G": lambda sizes: sizes["H"] // 16}, gpus=GPUS),
    other("packed_tensors", "weights", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("c", PLAIN)],
          {"BM=16 BN=32 BK=64": {"M": [1, 16, 37], "N": [1, 31, 69], "H": [16, 32, 80]}}, types=["bf16"],
          derive={"K": lambda sizes: 2 * sizes["H"], "G": lambda sizes: sizes["H"] // 16}, gpus=GPUS),
    other("transforms", "hadamard", ROW_TO_ROW, {"BM=2": {"M": [0, 1, 5], "N": [2, 8, 64]}}),
    other("transforms", "walsh", ROW_TO_ROW, {"BM=8": {"M": [0, 1, 5, 17], "N": [2, 8, 64, 256]}}),
    other("transforms", "sort_rows", ROW_TO_ROW, {"BM=2": {"M": [0, 1, 5], "N": [2, 8, 32]}}),
    other("transforms", "fft_stage", [("re", FEW_VIEWS), ("re_out", ["contiguous", "rows"])],
          {"BP=4 BS=8": {"M": [1, 2], "P": [1, 4, 9], "S": [1, 8, 19]}}, derive={"X": lambda _: 2}),
    other("transforms", "rotary_interleaved", ROTARY, {"BH=2": {"B": [1, 2], "S": [1, 3], "H": [1, 2, 5], "D": [1, 8, 20]}},
          derive=HEAD),
    other("products", "dense_relu", [("w", FEW_VIEWS), ("x", FEW_VIEWS)], {"BM=4 BK=36": {"M": [0, 1, 9], "K": [0, 36, 77]}}),
    other("products", "outer_batched", [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("c", ["contiguous", "transposed"])],
          {"BM=4 BN=16": {"B": [1, 3], "M": [1, 4, 9], "N": [1, 16, 37]}}, data=WIDE),
    other("products", "head_products", [("x", FEW_VIEWS), ("y", FEW_VIEWS)],
          {"BI=16 BJ=16 BD=16": {"B": [1, 2], "H": [1, 3], "I": [1, 17], "J": [1, 16, 21], "D": [1, 16, 37]}}, gpus=GPUS),
    other("products", "lora", [("x", FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
          {"BM=16 BN=32 BK=16": {"M": [1, 16, 37], "N": [1, 69], "K": [16, 45], "R": [4, 16]},
           "-": {"M": [33], "N": [66], "K": [100, 200], "R": [8]}}, gpus=GPUS),
    other("products", "lora", [("x", FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
          {"BM=32 BN=64 BK=32 packs=1": {"M": [33, 1], "N": [77, 8], "K": [133, 32, 0], "R": [16, 3]}}, gpus=["sm_90a"]),
    *(other("products", name, [(a, FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
            {"BM=16 BN=32 BK=16": {"M": [1, 16, 37], "N": [1, 69], "K": [16, 45, 0]}}, gpus=GPUS)
      for name, a in (("gated_down", "gate"), ("normed_product", "x"), ("dequantised", "x"))),
    # Warps that copy, and what is computed on its way to wgmma.
    *(other("products", name, [(a, PLAIN), ("w", PLAIN), ("y", PLAIN)],
            {"BM=64 BN=64 BK=32": {"M": [64, 1, 130], "N": [64, 8, 72], "K": [32, 16, 80, 208]},
             "BM=128 BN=32 BK=32": {"M": [1, 128], "N": [8, 40], "K": [160, 176, 208]}}, types=["f16", "bf16"], gpus=["sm_90a"])
      for name, a in (("gated_down", "gate"), ("normed_product", "x"), ("dequantised", "x"))),
    # Few rows, which are columns of wgmma: of a tensor that has fewer, as many, or more than the tile.
    other("products", "dequantised", [("x", PLAIN), ("w", PLAIN), ("y", PLAIN)],
          {"BM=16 BN=64 BK=32": {"M": [37], "N": [130], "K": [80, 208]}, "BM=64 BN=128 BK=128": {"M": [20], "N": [72], "K": [208]}},
          types=["f16", "bf16"], data=["normal"], gpus=["sm_90a"]),
    # Rows of a tile in shared memory in two panels; and operands that are computed once, before the products.
    *(other("products", name, [(a, PLAIN), ("w", PLAIN), ("y", PLAIN)],
            {"BM=64 BN=64 BK=128": {"M": [8, 1, 64], "N": [24, 72], "K": [208, 128]}}, types=["f16", "bf16"], gpus=["sm_90a"])
      for name, a in (("normed_product", "x"), ("dequantised", "x"))),
    *(other("products", name, [(a, FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
            {"BM=64 BN=64 BK=32 packs=1": {"M": [9, 64, 1], "N": [8, 77], "K": [133, 32, 80, 0]}}, types=["f32", "f16", "bf16"],
            gpus=["sm_90a"])
      for name, a in (("gated_down", "gate"), ("normed_product", "x"), ("dequantised", "x"))),
    other("products", "grouped_weights", [("x", FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
          {"BM=16 BN=32 BH=16": {"M": [1, 16, 37], "N": [1, 69], "H": [32, 37, 0]}}, derive=GROUPS, gpus=GPUS),
    # Computed once, before the products; and at a point that the model chooses, which joins programs and iterations.
    other("products", "grouped_weights", [("x", FEW_VIEWS), ("w", FEW_VIEWS), ("y", PLAIN)],
          {"BM=64 BN=64 BH=16 packs=1": {"M": [9, 64, 1], "N": [8, 77], "H": [67, 32, 0]},
           "-": {"M": [200], "N": [136, 131], "H": [128, 151]}}, types=["f16", "bf16"], derive=GROUPS, gpus=["sm_90a"]),
    other("products", "max_plus", [("a", FEW_VIEWS), ("b", FEW_VIEWS)],
          {"BM=4 BN=16 BK=4": {"M": [1, 4, 9], "N": [1, 16, 37], "K": [0, 4, 11]}}),
    other("convolutions", "conv2d_nchw", [("x", FEW_VIEWS), ("wt", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BO=16 BW=32 BC=16": {"B": [1, 2], "H": [3, 1], "W": [32, 1, 37], "C": [16, 3, 17], "O": [16, 1, 21],
                                 "R": [3, 1, 2], "S": [3, 1, 5]}}, gpus=GPUS),
    other("convolutions", "conv2d_unrolled", [("x", FEW_VIEWS), ("wt", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BP=4 BQ=16 BO=64 BC=32": {"B": [1, 2], "H": [3, 1], "W": [16, 1, 18], "C": [16, 3, 40], "O": [16, 1, 64], "R": [3], "S": [3], "X": [1], "Y": [1], "Z": [1]}},
          derive={"P": lambda sizes: sizes["H"], "Q": lambda sizes: sizes["W"]}, gpus=GPUS),
    other("convolutions", "conv2d_grouped", [("x", FEW_VIEWS), ("wt", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BW=16 BO=16 BD=16": {"B": [1, 2], "H": [3, 1], "W": [16, 1, 21], "G": [2, 1, 3], "D": [16, 3, 17],
                                 "O": [16, 1, 21], "R": [3, 1, 2], "S": [3, 1, 5]}}, gpus=GPUS),
    other("convolutions", "conv2d_transposed", [("x", FEW_VIEWS), ("wt", FEW_VIEWS), ("y", ["contiguous", "rows"])],
          {"BQ=16 BO=16 BC=16": {"B": [1, 2], "H": [3, 1], "W": [8, 1, 11], "C": [16, 3, 17], "O": [16, 1, 21],
                                 "R": [3, 4, 1], "S": [3, 4, 1], "P": [6, 2, 7], "Q": [16, 2, 22]}}, gpus=GPUS),
    other("sequences", "resonator", [*ROW_TO_ROW, ("top", PLAIN)], {"BM=32": {"M": [0, 1, 16, 33], "N": [0, 1, 16, 37]}}),
    other("sequences", "causal_conv", ROW_TO_ROW,
          {"BS=4 BC=32": {"B": [1, 2], "S": [1, 4, 11], "C": [1, 32, 69], "K": [4, 1, 0]}}),
    other("sequences", "softmax_biased", ROW_TO_ROW, {"BM=2 BN=36": {"B": [1, 2], "M": ROW, "N": [1, 36, 77]}}),
    other("sequences", "rmsnorm_residual", [("x", FEW_VIEWS), ("residual", ["contiguous", "rows"])], LINES),
]
