"""What the kernel matrix has of each kernel of the library: its types, tensors and their views, tune settings, and sizes of its dimensions.
make_matrix.py makes the rows of it; matrix_programs.py has the kernels of examples and of tests/programs."""

TYPES = ["f32", "f16", "bf16"]
VECTOR_BITS = [128, 256, 512, 2048]
IN_VIEWS = ["contiguous", "rows", "transposed", "strided", "negative", "broadcast", "repeated"]
OUT_VIEWS = ["contiguous", "rows", "transposed", "strided", "negative"]
VIEWS = {"in": IN_VIEWS, "out": OUT_VIEWS}


def around(block):
    return [0, 1, block - 1, block, block + 1, 2 * block + 37]


GPUS = ["sm_90a", "sm_80"]


class Kernel:
    """A kernel, its tensors (name, and "in", "out" or a list of views), and for each tune setting the values of its
    dimensions. `derive` gives further dimensions, computed from those; `budget` limits the configurations of a kernel
    that is much like another: once each value has occurred, no more are made than that. `gpus` are emulated in
    turn; where there are tensor cores the later ones have more instructions for what they multiply."""

    def __init__(self, name, tensors, tunes, types=TYPES, data=("normal", "special"), keep=lambda sizes: True,
                 derive=None, budget=None, gpus=None):
        self.name, self.tensors, self.tunes, self.types = name, tensors, tunes, types
        self.data, self.keep, self.derive, self.budget = data, keep, derive or {}, budget
        multiplies = name.startswith(("matmul:matmul", "attention:", "conv:"))
        self.gpus = gpus or (GPUS if multiplies else ["sm_80"])

    def is_by_words(self, types):
        """Has the kernel products that AMX, or AVX-512 with bf16 and VNNI, has instructions for?"""
        return self.gpus == GPUS and (types.startswith("bf16") or self.name.startswith("matmul:matmul_i8"))

    def factors(self):
        dimensions = list(next(iter(self.tunes.values())))
        result = {"types": self.types, "tune": list(self.tunes)}
        for dimension in dimensions:
            count = max(len(sizes[dimension]) for sizes in self.tunes.values())
            result[dimension] = list(range(count))
        for tensor, access in self.tensors:
            result["view " + tensor] = VIEWS[access] if isinstance(access, str) else access
        result["data"] = list(self.data)
        result["placement"] = ["begin", "end"]
        return result

    def sizes(self, configuration):
        tune = self.tunes[configuration["tune"]]
        sizes = {name: values[configuration[name] % len(values)] for name, values in tune.items()}
        sizes.update({name: compute(sizes) for name, compute in self.derive.items()})
        return sizes


def rank2(block, small, rows=(0, 1, 2, 3, 5), small_rows=(0, 1, 3, 4, 5, 9)):
    """Rows one by one in blocks of `block`, and a second tune setting with small and odd blocks."""
    return {
        "-": {"M": list(rows), "N": around(block)},
        f"BM=4 BN={small}": {"M": list(small_rows), "N": around(small)},
    }


XY = [("x", "in"), ("y", "out")]
# Rows of one vector, of which cpu-abreast computes several at a time.
SHORT_ROWS = {f"BM=6 BN={columns}": {"M": [0, 1, 2, 5, 6, 7, 13], "N": [0, 1, columns - 1, columns, columns + 1]} for columns in (16, 8)}
WIDE = ("normal", "wide", "special")
# Where a kernel that others cover as well only takes another function, a few views and sizes will do.
FEW_VIEWS = ["contiguous", "strided", "negative"]
FEW = {"BM=4 BN=100": {"M": [1, 5], "N": [1, 99, 237]}}
FEW_XY = [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])]
NN = "relu6 leaky_relu elu selu softplus logsigmoid mish hardsigmoid hardswish softsign swish square sign".split()
FUNCTIONS = "exp exp2 expm1 log log2 log1p sin cos tan tanh erf sigmoid rsqrt".split()
FUNCTIONS += "asin acos atan sinh cosh asinh acosh atanh cbrt erfc erfinv lgamma".split()
PAIR_FUNCTIONS = "atan2 hypot fmod".split()
WIDE_HOSTILE = ("normal", "hostile", "special")
INDEXED = ["f32:i64", "f32:i32", "f16:i32", "bf16:i64"]
BACKWARD = [("dy", FEW_VIEWS), ("x", "in")]
GAMMA_SUMS = {"-": {"M": [0, 1, 15, 16, 17, 257], "N": [1, 1023, 1024, 1025]},
              "BM=5 BN=36": {"M": [0, 1, 4, 5, 6, 37], "N": around(36)}}
HELD_ROWS = {"M": [0, 1, 5], "N": [1, 10, 63, 64, 65, 200]}
WHOLE = {"-": {"M": [0, 1, 15, 16, 17, 69], "N": [0, 1, 1023, 1024, 1025]},
         "BM=4 BN=36 BP=5": {"M": [0, 1, 3, 4, 5, 27], "N": around(36)}}
TAKE = {"-": {"K": [0, 1, 9], "N": [0, 1, 70], "D": [1, 1023, 1024, 1025]},
        "BD=36": {"K": [1, 9], "N": [1, 9, 70], "D": around(36)}}
HEAD = {"E": lambda sizes: 2 * sizes["D"]}
ROTARY = [("x", FEW_VIEWS), ("cosine", FEW_VIEWS), ("sine", ["contiguous"]), ("y", FEW_VIEWS)]
VOCABULARY = {"-": {"M": [0, 1, 3], "V": around(4096)}, "BV=100": {"M": [1, 5], "V": around(100)}}
# `warps` where small products of 16 bits would have one on GPUs.
MATMUL_TUNES = {
    "BM=8 BN=24 BK=16": {"M": around(8), "N": around(24), "K": around(16)},
    "BM=28 BN=64 BK=33 warps=4": {"M": [1, 27, 28, 29], "N": [1, 63, 64, 65], "K": [0, 1, 32, 33, 34, 99]},
    "-": {"M": [1, 5, 112, 113], "N": [1, 16, 33, 257], "K": [1, 7, 64, 513]},
}
# Tiles of which a thread copies more words than one after the other, where rows begin anywhere.
WORDS = {"BM=64 BN=64 BK=128": {"M": [65, 1, 64], "N": [65, 130, 7], "K": [129, 257, 131]},
         "BM=32 BN=192 BK=32": {"M": [33, 5], "N": [193, 7], "K": [65, 33]}}
# Tiles for products of warpgroups, of operands as tensor maps copy them.
WARPGROUPS = {"BM=64 BN=48 BK=32 warps=4": {"M": [1, 64, 65], "N": [9, 1, 48], "K": [48, 16, 32, 160, 33]}}
# Columns of 8-bit floats that two instructions have, whose sums are added in turn.
PROMOTED = {"BM=64 BN=144 BK=32 warps=4": {"M": [64, 65], "N": [144, 9, 200], "K": [48, 16, 160, 0]}}
# Rows that are columns of wgmma.
FEW_ROWS = {"BM=16 BN=64 BK=64": {"M": [16, 1, 40], "N": [64, 8, 136], "K": [64, 16, 200]},
            "BM=32 BN=128 BK=128": {"M": [5, 32], "N": [72, 128], "K": [128, 136]}}
# The same by programs that take turns: one, an odd number, several of each part.
TURNS = {"BM=64 BN=64 BK=32 stages=2 turns=2": {"M": [64, 1, 65, 200], "N": [8, 72, 136, 9], "K": [48, 16, 0, 160]},
         "BM=128 BN=32 BK=32 stages=2 warps=8 turns=2": {"M": [128, 1, 300], "N": [8, 72], "K": [16, 0, 96]}}
# The same by clusters of two blocks, which share a tile's panels, or its rows: one row of programs, an odd number, an even one.
CLUSTERS = {"BM=64 BN=128 BK=16 stages=2 cluster=2": {"M": [70, 130, 200], "N": [8, 16], "K": [48, 24, 16]}}
CLUSTERS_IN_TURN = {"BM=64 BN=64 BK=32 stages=2 turns=2 cluster=2": {"M": [300, 64, 1], "N": [200, 72], "K": [96, 144, 0]}}
# Products by fused multiply-adds of which a thread has 128 sums.
MANY_SUMS = {"BM=128 BN=128 BK=32": {"M": [128, 1, 140], "N": [128, 20, 137], "K": [32, 40, 0, 100]}}
PLAIN = ["contiguous"]
MATMUL = [("a", "in"), ("b", "in"), ("c", "out")]
MATMUL_TYPES = ["f32", "f16", "bf16", "bf16:f32", "f32:f16"]
ATTENTION = [("q", "in"), ("k", "in"), ("v", "in"), ("o", "out")]
KEYS = {"B": [1, 0, 2], "H": [2, 4], "G": [1, 2], "S": [1, 0, 15, 16, 17, 33], "L": [1, 15, 16, 17, 47],
        "D": [8, 5, 16]}
MORE_KEYS = {"B": [1, 2], "H": [2, 4], "G": [2, 1], "S": [1, 63, 64, 65], "L": [63, 64, 65, 129], "D": [16, 40]}
GRADIENTS = [("q", "in"), ("k", "in"), ("v", "in"), ("o", "in"), ("lse", "in"), ("do", "in"), ("dq", "out"), ("dk", "out"),
             ("dv", "out")]
GRADIENT_TUNES = {"BQ=16 BL=32 BS=32 BK=16 warps=4": KEYS, "-": MORE_KEYS}
SCORED = ATTENTION[:3] + [("sink", FEW_VIEWS), ("o", "out")]
SCORED_TUNES = {"BS=16 BL=16 warps=4": {**KEYS, "V": [16, 8, 5]}, "-": {**MORE_KEYS, "V": [24, 16]}}
ATTENTION_TUNES = {"BS=16 BL=16 warps=4": KEYS, "-": MORE_KEYS}


def rotary(tunes):
    return {tune: {"B": [1, 2], "S": [1, 0, 3], "H": [1, 2, 3, 4, 5, 9], "D": halves} for tune, halves in tunes.items()}


def causal(sizes):
    return sizes["L"] >= sizes["S"]


LARGE = 2**62
PARTS = {
    "BM=8 BN=24 BK=16 BS=48": {"M": [8, 0, 1, 7, 9], "N": [24, 0, 1, 25], "K": [48, 0, 1, 47, 49, 133]},
    "-": {"M": [1, 113], "N": [33, 257], "K": [513, 2048, 2049]},
}
BATCHES = {
    "BM=8 BN=24 BK=16": {"B": [1, 0, 2, 3], "M": [8, 0, 1, 7, 9, 21], "N": [24, 0, 1, 23, 25, 53],
                         "K": [16, 0, 1, 15, 17, 37]},
    "-": {"B": [1, 2], "M": [5, 113], "N": [16, 257], "K": [7, 64, 513]},
}
# Convolutions: X is the stride, Y the dilation, Z the padding.
LINE = {
    "BQ=8 BO=16 BC=8": {"B": [1, 0, 2], "W": [9, 0, 1, 8, 30], "C": [8, 0, 1, 7, 9], "S": [3, 0, 1, 5],
                        "O": [16, 0, 1, 15, 17], "Q": [8, 0, 1, 7, 9, 21], "X": [1, 2, 3], "Y": [1, 0, 2, -1],
                        "Z": [1, 0, 4, -2, 2**62, -2**62]},
    "-": {"B": [1, 2], "W": [57, 120], "C": [3, 65], "S": [3, 4], "O": [64, 65], "Q": [56, 57], "X": [1, 2],
          "Y": [1, 3], "Z": [0, 1]},
}
DEEP_LINE = {
    "BQ=4 BC=16": {"B": [1, 0, 2], "W": [5, 0, 1, 4, 20], "C": [16, 0, 1, 15, 17, 37], "S": [3, 0, 1, 5],
                   "Q": [4, 0, 1, 3, 5, 11], "X": [1, 2, 3], "Y": [1, 0, 2, -1], "Z": [1, 0, 4, -2, 2**62, -2**62]},
    "-": {"B": [1, 2], "W": [9, 20], "C": [64, 257], "S": [3, 4], "Q": [8, 9, 19], "X": [1, 2], "Y": [1, 3],
          "Z": [0, 1]},
}
ROWS = {"H": [5, 0, 1, 7], "R": [3, 0, 1, 2], "P": [4, 0, 1, 6]}
PLANE = {tune: {**values, **ROWS} for tune, values in LINE.items()}
# The gradients': sizes of 0 are few, since one is enough for a result that is empty or 0.
MET = {"B": [1, 2], "H": [5, 1, 7], "W": [9, 1, 8, 30], "C": [8, 1, 7, 9, 17], "R": [3, 1, 2], "S": [3, 1, 2],
       "O": [16, 0, 1, 15, 17], "P": [4, 1, 3], "Q": [8, 1, 7, 9, 21], "X": [1, 2, 3], "Y": [1, 0, 2, -1],
       "Z": [1, 0, 2, -2]}
MET_WIDE = {"B": [1, 2], "H": [3, 4], "W": [57, 60], "C": [3, 65], "R": [3, 1], "S": [3, 2], "O": [64, 65], "P": [2, 3],
            "Q": [56, 57], "X": [1, 2], "Y": [1, 2], "Z": [0, 1]}
FAR = {name: sizes[:1] for name, sizes in MET.items()} | {"B": [1, 0], "P": [4, 0], "H": [5, 0], "Z": [2**62, -2**62, 1]}
INPUT_GRADIENT = {"BH=1 BW=8 BC=16 BO=8": MET, "BH=2 BW=4 BC=8 BO=8": FAR, "-": MET_WIDE}
WEIGHT_GRADIENT = {"BC=16 BO=16 BB=4 BP=4 BQ=4": MET, "BC=8 BO=8 BB=1 BP=8 BQ=8": FAR, "-": MET_WIDE}
# Squares and steps of boxes, which tensor maps copy for wgmma: rows of 64 channels, and some more.
BOXES = {"C": [64, 72], "O": [64, 72], "H": [9, 17], "W": [12, 19], "P": [5, 8], "Q": [7, 9], "X": [2, 1, 3]}
WEIGHT_GRADIENT["BC=64 BO=64 BB=4 BP=2 BQ=8"] = MET | BOXES
# Positions of several images in one tile, squares and one of each, for the executor of wgmma: rows of as few channels as a map takes.
IMAGES = MET | {"B": [3, 2, 5], "H": [5, 2, 3], "W": [4, 1, 3], "C": [8, 16], "R": [1, 3], "S": [2, 1], "O": [8, 16], "P": [2, 1, 3],
                "Q": [3, 1, 2], "X": [1, 2]}
SQUARES = {"BB=32 BP=2 BQ=2 BO=64 BC=64 WINDOWS=2": IMAGES | {"C": [3, 1, 8]},
           "BB=4 BP=4 BQ=4 BO=64 BC=64": IMAGES, "BB=64 BP=1 BQ=1 BO=64 BC=64": IMAGES, "BB=32 BP=2 BQ=2 BO=64 BC=64": IMAGES}
SQUARES_BACK = {"BB=4 BH=4 BW=4 BC=64 BO=64": IMAGES, "BB=128 BH=1 BW=1 BC=64 BO=64": IMAGES}
# Positions of all images one after the other, which maps in mode im2col copy where they have corners for them, and boxes of one position where not: dilations and
# paddings that are too far, also of rows.
FOLLOWING = IMAGES | {"B": [3, 1, 7], "H": [5, 2, 3], "W": [4, 1, 7], "P": [5, 2, 3], "Q": [4, 1, 7], "C": [16, 72], "O": [8, 64],
                      "X": [1, 2, 3], "Y": [1, 0, 100, -1], "Z": [1, 0, 2, -2, 70, 2**62]}
FOLLOWED = {"BB=1 BP=0 BQ=64 BO=64 BC=64": FOLLOWING, "BB=1 BP=0 BQ=192 BO=64 BC=64": FOLLOWING | {"W": [150, 4], "Q": [4, 400], "B": [1, 2]}}
FOLLOWED_BACK = {"BB=1 BH=0 BW=64 BC=64 BO=64": FOLLOWING | {"C": [8, 64], "O": [8, 72]},
                 "BB=1 BH=0 BW=128 BC=64 BO=64": FOLLOWING | {"C": [64, 8], "O": [64, 8], "H": [5, 1], "W": [1, 200]}}
# Blocks that divide dy, where no position of x is left out.
DIVIDING = MET | {"X": [1, 2], "Y": [1, -1], "Z": [0, 1], "C": [8, 16], "O": [8], "R": [1, 2], "S": [1, 2]}
DIVIDED = {"BC=64 BO=64 BB=1 BP=8 BQ=8 WINDOWS=2": DIVIDING | {"B": [1, 2], "P": [8, 3], "Q": [8, 5], "C": [3, 1]},
           "BC=64 BO=64 BB=64 BP=1 BQ=1": DIVIDING | {"B": [64], "P": [1], "Q": [1], "H": [1, 2], "W": [1, 2]},
           "BC=64 BO=64 BB=32 BP=1 BQ=1": DIVIDING | {"B": [32, 64], "P": [1, 3], "Q": [1, 2], "H": [1, 2], "W": [1, 2]},
                "BC=64 BO=64 BB=1 BP=8 BQ=8": DIVIDING | {"B": [1, 2], "P": [8], "Q": [8], "H": [1, 2], "W": [4, 2]}}
DEEP_PLANE = {tune: {**values, **ROWS} for tune, values in DEEP_LINE.items()}
POOLS = {tune: {name: sizes for name, sizes in values.items() if name not in "SY"}
         for tune, values in DEEP_PLANE.items()}
CONVOLVED = [("x", "in"), ("wt", "in"), ("bias", "in"), ("y", "out")]
WINDOW = {"W": [1, 5, 16, 40, LARGE]}
WINDOWS = {"BS=16 BL=16": {**KEYS, **WINDOW}, "-": {**MORE_KEYS, **WINDOW}}
VARLEN_TUNES = {
    "BS=16 BL=16 warps=2": {"H": [2, 4], "G": [1, 2], "S": [33, 0, 1, 17, 90], "L": [33, 0, 1, 16, 70],
                            "D": [8, 5, 16], "E": [3, 1, 2, 6], "Z": [200, 0, 10, -1]},
    "-": {"H": [2], "G": [2, 1], "S": [63, 130], "L": [64, 129], "D": [16, 40], "E": [2, 4], "Z": [200, 65]},
}
VARLEN = [("q", "in"), ("k", "in"), ("v", "in"), ("cu_q", "in"), ("cu_k", "in"), ("o", "out")]
VARLEN_DERIVED = {"U": lambda sizes: sizes["S"] + 1, "V": lambda sizes: sizes["L"] + 1}
PACKED_GRADIENTS = VARLEN[:5] + GRADIENTS[3:]
PACKED_TUNES = {tune: {**VARLEN_TUNES[key], "Y": [200, 0, 10, -1]} for tune, key in
                (("BQ=16 BL=32 BS=32 BK=16 warps=4", "BS=16 BL=16 warps=2"), ("-", "-"))}
PAGED_TUNES = {
    "BH=8 BL=16": {"B": [2, 0, 1, 5], "H": [8, 4, 16, 20], "G": [1, 2, 4], "D": [8, 5, 16], "P": [7, 1, 3],
                   "C": [16, 1, 4, 17, 40], "N": [3, 0, 1, 5]},
    "-": {"B": [1, 3], "H": [8, 32], "G": [8, 2], "D": [16, 64], "P": [9], "C": [16, 64, 65], "N": [2, 4]},
}
PAGED = [("q", "in"), ("k", "in"), ("v", "in"), ("table", "in"), ("lengths", "in"), ("o", "out")]
HOSTILE = ("normal", "special", "hostile")
ROW = [1, 5]
LINES = {"BM=2 BN=36": {"M": ROW, "N": [1, 36, 77]}}
ROW_TO_ROW = [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])]
TWO_TO_LOSS = [("x", FEW_VIEWS), ("t", ["contiguous", "rows"]), ("loss", PLAIN)]
GROUPS = {"K": lambda sizes: 2 * sizes["H"], "G": lambda sizes: sizes["H"] // 32}


def library(name, tensors, tunes, types=("f32", "bf16"), **more):
    return Kernel(name, tensors, tunes, types=list(types), budget=5, **more)


LONG_SORTED = {"B=16": {"M": [0, 1, 3], "N": [1, 16, 37, 50]}}
IN_ORDER = {"B=16": {"N": [0, 1, 16, 37], "K": [0, 1, 16, 45], "W": [1, 7, 60]}}
PACKED = {"W": lambda _: 2**31 - 1, "Z": lambda sizes: -(-sizes["N"] // 8)}
SORTED = {"BM=4": {"M": [0, 1, 5], "N": [1, 2, 7, 8, 33]}, "BM=1": {"M": [1, 3], "N": [300]}}
STEPS = {"BN=64": {"N": [0, 1, 64, 197]}}
UPDATED = [("p", ["contiguous", "strided"]), ("g", FEW_VIEWS)]
LIBRARY = [
    *(library("optimisers:" + name, UPDATED, STEPS) for name in ("adam", "sgd_momentum", "lion")),
    library("optimisers:moving_average", [("average", ["contiguous", "strided"]), ("x", FEW_VIEWS)], STEPS),
    library("loss:smoothed_cross_entropy", [("x", FEW_VIEWS), ("loss", PLAIN)],
          {"BM=2 BV=36": {"M": [0, 1, 5], "V": [1, 36, 77]}}, data=HOSTILE),
    *(library("loss:" + name, TWO_TO_LOSS, LINES) for name in ("kl_divergence", "huber")),
    library("loss:cosine_loss", [("a", FEW_VIEWS), ("b", FEW_VIEWS)], LINES),
    library("updates:histogram", [("x", FEW_VIEWS), ("bins", ["contiguous", "strided"])],
          {"BN=64": {"N": [0, 1, 64, 197], "B": [1, 7]}}, types=["f32"], data=("normal", "hostile")),
    library("updates:segment_sum", [("x", FEW_VIEWS), ("y", ["contiguous", "strided"])],
          {"BN=64": {"N": [0, 1, 64, 197], "S": [1, 7]}}, data=("integers",)),
    library("updates:embedding_gradient", [("dy", FEW_VIEWS), ("dtable", ["contiguous", "transposed"])],
          {"BK=4 BD=32": {"K": [1, 4, 11], "V": [1, 5], "D": [1, 32, 69]}}, data=("integers",)),
    library("quantise:quantise_rows", [("x", FEW_VIEWS), ("q", ["contiguous", "rows"])], LINES),
    library("quantise:dequantise_rows", [("q", FEW_VIEWS), ("y", ["contiguous", "rows"])], LINES),
    library("quantise:cast_float8", ROW_TO_ROW, LINES, types=["f32:f8e4m3", "bf16:f8e4m3"], data=WIDE),
    library("quantise:matmul_int4", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("c", PLAIN)],
          {"BM=16 BN=32 BH=16": {"M": [1, 16, 37], "N": [1, 31, 69], "H": [1, 16, 37]}},
          derive={"K": lambda sizes: 2 * sizes["H"]}, gpus=GPUS),
    library("quantise:matmul_int4", [("a", PLAIN), ("w", PLAIN), ("c", PLAIN)],
          {"BM=64 BN=64 BH=64": {"M": [1, 2], "N": [8, 3], "H": [34, 80]}, "BM=16 BN=64 BH=32": {"M": [37], "N": [80], "H": [40, 104]}, "BM=64 BN=128 BH=32": {"M": [1, 2], "N": [66, 128], "H": [14, 40]}},
          types=["f16", "bf16"], derive={"K": lambda sizes: 2 * sizes["H"]}, gpus=["sm_90a"]),
    library("sort:sort_rows", ROW_TO_ROW, SORTED, types=TYPES),
    library("sort:argsort_rows", [("x", FEW_VIEWS), ("at", ["contiguous", "rows"])], SORTED, types=TYPES),
    library("sort:topk_rows", [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])],
            {"BM=2 BN=16": {"M": [0, 1, 5], "N": [1, 16, 37], "K": [1, 3, 8]},
             "BM=2 BN=16 LONG=16 GROUPS=16": {"M": [1, 5], "N": [16, 37, 200], "K": [1, 3, 8]}}),
    library("sampling:sample_rows", [("x", FEW_VIEWS)],
            {"BM=4 BV=16": {"M": [0, 1, 9], "V": [1, 7, 16, 45]},
             "BM=4 BV=16 LONG=16 GROUPS=16": {"M": [1, 9], "V": [16, 45, 200]}}, data=("normal",)),
    library("routing:route", [("x", FEW_VIEWS), ("weight", PLAIN)],
            {"BM=4 BP=16": {"M": [0, 1, 16, 37], "E": [4, 7], "K": [1, 2, 4]}}),
    library("loss:jsd", TWO_TO_LOSS, LINES, data=("normal",)),
    library("loss:focal", [("x", FEW_VIEWS), ("target", PLAIN), ("loss", PLAIN)], {"BV=36": {"M": [0, 1, 5], "V": [1, 36, 77]}},
            types=INDEXED, data=("normal", "hostile")),
    library("scan:selective_scan", [("x", FEW_VIEWS), ("b", ["contiguous", "transposed"]), ("y", ["contiguous", "rows"])],
            {"BD=4": {"B": [1, 2], "L": [0, 1, 6], "D": [1, 4, 9], "N": [1, 4, 16]}}, data=("normal",)),
    library("resample:grid_sample", [("x", FEW_VIEWS), ("at", PLAIN), ("y", ["contiguous", "rows"])],
            {"BP=4 BC=8": {"B": [1, 2], "H": [1, 3, 6], "W": [1, 5], "C": [1, 8, 19], "P": [0, 1, 4, 9]}}, derive={"X": lambda _: 2}),
    library("fourier:fft_rows", [("re", FEW_VIEWS), ("im", PLAIN), ("re_out", ["contiguous", "rows"])],
            {"BM=2": {"M": [0, 1, 5], "N": [2, 8, 64]}}, types=["f32"]),
    library("quantise:quantise_groups", [("x", FEW_VIEWS), ("q", PLAIN)], {"BP=4": {"M": [1, 3], "P": [0, 1, 4, 9], "G": [1, 8, 13]}}),
    library("quantise:dequantise_groups", [("q", FEW_VIEWS), ("y", PLAIN)], {"BP=4": {"M": [1, 3], "P": [0, 1, 4, 9], "G": [1, 8, 13]}}),
    library("radix:sort_long", ROW_TO_ROW, LONG_SORTED, types=TYPES),
    library("radix:argsort_long", [("x", FEW_VIEWS), ("at", ["contiguous", "rows"])], LONG_SORTED),
    library("radix:sort_pairs", ROW_TO_ROW, LONG_SORTED, types=["f32:f32", "bf16:f32", "f32:f16"]),
    library("radix:unique", [("x", FEW_VIEWS), ("y", PLAIN)], {"B=16": {"N": [0, 1, 16, 37, 90], "W": [1, 7, 60]}}, data=("normal",)),
    library("radix:search_long", [("s", FEW_VIEWS), ("v", FEW_VIEWS)], IN_ORDER, data=("normal",)),
    library("radix:search_long/right", [("s", PLAIN), ("v", PLAIN)], IN_ORDER, data=("normal",)),
    library("sampling:sample_long", [("x", FEW_VIEWS)], {"BV=16": {"M": [0, 1, 9], "V": [1, 7, 16, 45]}}, data=("normal",)),
    library("sampling:multinomial", [("w", FEW_VIEWS), ("drawn", PLAIN)],
            {"BK=4 BN=16 PARTS=2": {"M": [0, 1, 9], "N": [1, 16, 45], "K": [0, 1, 4, 9]}}, data=("normal",)),
    library("optimisers:muon_momentum", [("g", FEW_VIEWS), ("momentum", ["contiguous", "rows"]), ("x", PLAIN)], LINES, data=("normal",)),
    library("optimisers:newton_schulz_step", [("x", FEW_VIEWS), ("y", ["contiguous", "transposed"])],
            {"BM=8 BN=16 BK=8": {"M": [1, 8, 11], "N": [11, 16, 37]}}, types=["f32"], data=("normal",)),
    library("optimisers:muon_update", [("p", ["contiguous", "rows"]), ("x", FEW_VIEWS)], LINES, data=("normal",)),
    library("scan:gated_delta_rule", [("q", FEW_VIEWS), ("v", FEW_VIEWS), ("o", ["contiguous", "rows"])],
            {"BV=4": {"B": [1, 2], "L": [0, 1, 6], "H": [1, 3], "K": [1, 4, 16], "V": [1, 4, 9]}}, data=("normal",)),
    library("fourier:fft_long", [("re", FEW_VIEWS), ("im", PLAIN), ("re_out", ["contiguous", "rows"])],
            {"BP=2 WHOLE=2": {"M": [0, 1, 3], "A": [2, 8, 16], "B": [2, 4, 8]}}, types=["f32"]),
    library("quantise:matmul_gptq", [("a", FEW_VIEWS), ("q", FEW_VIEWS), ("c", PLAIN)],
            {"BM=16 BN=32 BH=4": {"M": [1, 16, 37], "N": [1, 31, 69], "H": [1, 4, 9], "G": [8, 16]}}, data=("normal",),
            derive={"K": lambda sizes: 8 * sizes["H"], "P": lambda sizes: -(-8 * sizes["H"] // sizes["G"]), **PACKED}, gpus=GPUS),
    library("quantise:matmul_awq", [("a", FEW_VIEWS), ("q", FEW_VIEWS), ("c", PLAIN)],
            {"BM=16 BN=32 BK=16": {"M": [1, 16, 37], "N": [1, 31, 69], "K": [1, 16, 37], "G": [5, 16]}}, data=("normal",),
            derive={"P": lambda sizes: -(-sizes["K"] // sizes["G"]), **PACKED}, gpus=GPUS),
    library("quantise:quantise_blocks", [("x", FEW_VIEWS), ("q", PLAIN)],
            {"-": {"P": [0, 1, 3], "R": [1, 4, 5], "Q": [1, 2], "C": [1, 8, 11]}}, types=["f32:f8e4m3", "bf16:f8e4m3"], data=("normal",)),
    library("quantise:dequantise_blocks", [("q", FEW_VIEWS), ("y", PLAIN)],
            {"-": {"P": [0, 1, 3], "R": [1, 4, 5], "Q": [1, 2], "C": [1, 8, 11]}}, types=["f32:f8e4m3", "bf16:f8e4m3"], data=("normal",)),
    library("quantise:dequantise_gptq", [("q", FEW_VIEWS), ("w", ["contiguous", "rows"])],
            {"BH=4 BN=16": {"N": [1, 16, 37], "H": [0, 1, 4, 9], "G": [8, 16]}}, data=("normal",),
            derive={"K": lambda sizes: 8 * sizes["H"], "P": lambda sizes: -(-8 * sizes["H"] // sizes["G"]), **PACKED}),
    library("quantise:dequantise_awq", [("q", FEW_VIEWS), ("w", ["contiguous", "rows"])],
            {"BK=4 BN=16": {"N": [1, 16, 37], "K": [0, 1, 4, 21], "G": [5, 16]}}, data=("normal",),
            derive={"P": lambda sizes: -(-sizes["K"] // sizes["G"]), **PACKED}),
    library("resample:resize", [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])],
            {"BQ=4 BC=8": {"B": [1, 2], "H": [1, 3, 6], "W": [1, 5], "C": [1, 8, 19], "P": [0, 1, 4], "Q": [1, 4, 9]}}),
    library("matmul:matmul_grouped", [("a", FEW_VIEWS), ("w", FEW_VIEWS), ("c", ["contiguous", "rows"])],
            {"BM=8 BN=24 BK=16 BR=8": {"M": [1, 8, 37], "E": [1, 2, 5], "N": [1, 24, 53], "K": [0, 1, 16, 37]}},
            types=["f32:f32", "bf16:bf16", "bf16:f32"], data=("normal",),
            derive={"X": lambda sizes: sizes["E"] + 1, "U": lambda sizes: sizes["M"] + 1}, gpus=GPUS),
]


# GPUs with tensor maps and without products of warpgroups: what is decided by those facts.
BLACKWELLS = ["sm_100a", "sm_120a"]
BLACKWELL = [
    Kernel("matmul:matmul", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN)], MATMUL_TUNES, types=MATMUL_TYPES, budget=16, gpus=BLACKWELLS),
    Kernel("matmul:matmul_nt", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN)], WARPGROUPS, types=["bf16:f32", "f16"], budget=8,
           gpus=BLACKWELLS),
    Kernel("matmul:matmul_f8", [("a", PLAIN), ("b", PLAIN), ("row_scale", PLAIN), ("column_scale", PLAIN), ("c", "out")],
           WARPGROUPS, types=["f8e4m3:f32", "f8e5m2:bf16"], budget=8, gpus=BLACKWELLS),
    Kernel("matmul:matmul_i8", [("a", PLAIN), ("b", PLAIN), ("row_scale", PLAIN), ("column_scale", PLAIN), ("c", "out")],
           MATMUL_TUNES, types=["f32:f32", "f32:bf16"], budget=8, gpus=BLACKWELLS),
    Kernel("attention:attention/causal", ATTENTION, ATTENTION_TUNES, keep=causal, budget=10, gpus=BLACKWELLS),
    Kernel("conv:conv2d", CONVOLVED, PLANE, budget=8, gpus=BLACKWELLS),
    Kernel("norm:layernorm", [("x", "in"), ("gamma", "in"), ("beta", "in"), ("y", "out")], rank2(1024, 100), budget=8, gpus=BLACKWELLS),
    Kernel("reduce:sum_columns", XY, {"-": {"M": around(16), "N": around(1024)}}, budget=6, gpus=BLACKWELLS),
    Kernel("scan:segmented_cumsum", [("begins", "in"), ("x", "in"), ("y", "out")], rank2(1024, 100, rows=(0, 1, 2)), budget=6,
           gpus=BLACKWELLS),
]

KERNELS = [
    Kernel("elementwise:add", [("x", "in"), ("y", "in"), ("z", "out")], rank2(4096, 100), data=WIDE),
    Kernel("elementwise:axpy", [("x", "in"), ("y", "out")], {"-": {"N": around(4096)}, "BN=100": {"N": around(100)}},
           data=WIDE),
    # Without gaps, where rows do not matter on GPUs.
    Kernel("elementwise:add", [("x", PLAIN), ("y", PLAIN), ("z", PLAIN)],
           {"BM=4 BN=64": {"M": [1, 3, 7, 64, 65], "N": [37, 1, 16, 63, 64, 257]}}, types=["bf16", "f32"], budget=10),
    Kernel("elementwise:map", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/relu", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/gelu", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/gelu_tanh", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/silu", XY, rank2(4096, 100), data=WIDE),
    *(Kernel("elementwise:map/" + name, FEW_XY, FEW, types=["f32"], data=WIDE) for name in NN),
    *(Kernel("elementwise:map/" + name, FEW_XY, FEW, types=["f32"], data=WIDE, budget=8) for name in FUNCTIONS),
    Kernel("elementwise:zip", [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("z", ["contiguous", "transposed"])], FEW, data=WIDE),
    *(Kernel("elementwise:zip/" + name, [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("z", ["contiguous"])], FEW,
             data=WIDE, budget=12) for name in PAIR_FUNCTIONS),
    Kernel("elementwise:chain", XY, {**rank2(4096, 100, rows=(0, 1, 2)), **SHORT_ROWS}, budget=60),
    Kernel("softmax:softmax", XY, rank2(1024, 100)),
    Kernel("softmax:softmax_passes", XY, rank2(1024, 100)),
    Kernel("softmax:softmax_row", XY, {"-": {"M": [0, 1, 3], "N": [1, 10, 63, 64, 65, 200]}, "BM=4": HELD_ROWS}),
    Kernel("softmax:softmax_wide", XY, {"BN=100": {"M": [0, 1, 3], "N": around(100)}}, budget=30),
    Kernel("softmax:softmax_groups", XY, {"BN=16": {"M": [0, 1, 3], "N": around(128)}}, budget=20),
    Kernel("softmax:log_softmax_row", XY, {"BM=4": {"M": [0, 1, 5], "N": [1, 10, 63, 64, 65, 200]}}),
    Kernel("softmax:logsumexp", XY, rank2(1024, 100)),
    Kernel("softmax:logsumexp_row", FEW_XY, {"BM=4": {"M": [0, 1, 5], "N": [1, 10, 63, 64, 65, 200]}}),
    Kernel("loss:cross_entropy", [("x", "in"), ("target", FEW_VIEWS), ("loss", FEW_VIEWS)], VOCABULARY, types=INDEXED,
           data=WIDE_HOSTILE),
    Kernel("loss:cross_entropy_backward", [("x", "in"), ("target", FEW_VIEWS), ("dx", "out")], VOCABULARY,
           types=INDEXED, data=WIDE_HOSTILE),
    Kernel("norm:layernorm", [("x", "in"), ("gamma", "in"), ("beta", "in"), ("y", "out")], rank2(1024, 100)),
    Kernel("norm:rmsnorm", [("x", "in"), ("gamma", "in"), ("y", "out")], rank2(1024, 100)),
    Kernel("norm:layernorm_row", [("x", "in"), ("gamma", FEW_VIEWS), ("beta", FEW_VIEWS), ("y", "out")],
           {"BM=4": HELD_ROWS}, types=["f32:f32", "f16:f32", "bf16:bf16"], budget=24),
    Kernel("norm:rmsnorm_row", [("x", "in"), ("gamma", FEW_VIEWS), ("y", "out")], {"BM=4": HELD_ROWS},
           types=["f32:f32", "f16:f16", "bf16:f32"], budget=24),
    Kernel("norm:layernorm_forward", XY + [("mean", FEW_VIEWS), ("rstd", ["contiguous", "strided"])], rank2(1024, 100)),
    Kernel("norm:layernorm_backward", BACKWARD + [("dx", ["contiguous", "transposed"])], rank2(1024, 100)),
    Kernel("norm:layernorm_backward_params", BACKWARD + [("dgamma", FEW_VIEWS)], GAMMA_SUMS),
    Kernel("norm:rmsnorm_forward", FEW_XY + [("rstd", ["contiguous", "strided"])], rank2(1024, 100)),
    Kernel("norm:rmsnorm_backward", BACKWARD + [("dx", ["contiguous", "transposed"])], rank2(1024, 100)),
    Kernel("norm:rmsnorm_backward_params", BACKWARD, GAMMA_SUMS),
    Kernel("norm:group_norm", XY, {"-": {"B": [1, 2], "C": [2, 6, 8, 10], "P": [1, 1023, 1024, 1025]},
                                   "BC=3 BP=100": {"B": [0, 1, 3], "C": [0, 2, 4, 6, 14], "P": around(100)}}),
    Kernel("reduce:variance_rows", [("x", "in"), ("y", FEW_VIEWS), ("mean", FEW_VIEWS)], rank2(4096, 100)),
    Kernel("reduce:variance_rows_merged", [("x", "in"), ("y", FEW_VIEWS), ("mean", FEW_VIEWS)], rank2(4096, 100)),
    Kernel("reduce:variance_rows_merged/biased", [("x", FEW_VIEWS)], FEW, types=["f32"]),
    Kernel("reduce:sum_all", [("x", "in")], WHOLE, data=WIDE),
    Kernel("reduce:mean_all", [("x", "in")], WHOLE),
    Kernel("reduce:max_all", [("x", "in")], WHOLE),
    Kernel("reduce:norm_all", [("x", "in")], WHOLE),
    Kernel("cumsum:cumsum_rows", XY, rank2(1024, 100)),
    Kernel("cumsum:cumsum_columns", XY, {"-": {"M": [0, 1, 2, 9], "N": [0, 1, 1023, 1024, 1025]},
                                         "BN=36": {"M": [1, 5, 37], "N": around(36)}}),
    Kernel("index:take_rows", [("x", "in"), ("at", FEW_VIEWS), ("y", FEW_VIEWS)], TAKE, types=INDEXED,
           data=WIDE_HOSTILE),
    Kernel("index:embedding", [("table", "in"), ("token", FEW_VIEWS), ("y", FEW_VIEWS)],
           {"-": {"B": [1, 2], "S": [0, 1, 5], "V": [0, 1, 9, 70], "D": [1, 1023, 1024, 1025]},
            "BD=36": {"B": [0, 1, 3], "S": [1, 7], "V": [1, 9, 70], "D": around(36)}}, types=INDEXED, data=WIDE_HOSTILE),
    Kernel("index:embedding_backward", [("dy", "in"), ("token", FEW_VIEWS), ("dtable", "out")],
           {"-": {"K": [0, 1, 9], "V": [0, 1, 5], "D": [1, 255, 256, 257]},
            "BD=36": {"K": [1, 9, 33], "V": [1, 5, 70], "D": around(36)},
            "BD=36 FEW=4 BP=8": {"K": [4, 5, 33, 71], "V": [1, 5], "D": [36, 37]},
            "BD=36 BP=16": {"K": [39, 71], "V": [1, 5], "D": [36, 37]}}, types=INDEXED, data=WIDE_HOSTILE),
    Kernel("index:take_along_rows", [("x", "in"), ("at", FEW_VIEWS), ("y", FEW_VIEWS)],
           {"-": {"M": [0, 1, 3], "N": [0, 1, 9, 300], "K": [0, 1, 255, 256, 257]},
            "BK=36": {"M": [1, 3], "N": [1, 9, 300], "K": around(36)}}, types=INDEXED, data=WIDE_HOSTILE),
    Kernel("index:one_hot", [("at", FEW_VIEWS), ("y", "out")],
           {"-": {"K": [0, 1, 3], "N": [0, 1, 1023, 1024, 1025]}, "BN=36": {"K": [1, 9], "N": around(36)}},
           types=INDEXED, data=("normal", "hostile")),
    Kernel("index:masked_fill", [("x", FEW_VIEWS), ("mask", "in"), ("y", FEW_VIEWS)], rank2(4096, 100)),
    Kernel("rotary:rotary_halves", ROTARY, rotary({"-": [1, 63, 64, 65], "BH=3 BD=20": [1, 19, 20, 21, 77]}), derive=HEAD),
    Kernel("rotary:rotary_pairs", ROTARY, rotary({"-": [1, 63, 64, 65], "BH=3 BD=20": [1, 19, 20, 21, 77]}), derive=HEAD),
    Kernel("dropout:dropout", FEW_XY, rank2(1024, 100)),
    Kernel("reduce:sum_rows", XY, rank2(4096, 100)),
    Kernel("reduce:sum_columns", XY, {"-": {"M": around(16), "N": around(1024)},
                                      "BM=5 BN=36": {"M": around(5), "N": around(36)}}),
    Kernel("reduce:mean_rows", XY, rank2(4096, 100)),
    Kernel("reduce:mean_columns", XY, {"-": {"M": around(16), "N": around(1024)},
                                       "BM=5 BN=36": {"M": around(5), "N": around(36)}}),
    Kernel("reduce:argmax_rows", XY, rank2(1024, 100)),
    Kernel("scan:welford_rows", [("x", "in"), ("v", "out")], rank2(1024, 100), budget=40),
    Kernel("scan:linear_recurrence", [("a", "in"), ("x", "in"), ("h", "out")], rank2(1024, 100, rows=(0, 1, 2)),
           budget=40),
    Kernel("scan:segmented_cumsum", [("begins", "in"), ("x", "in"), ("y", "out")], rank2(1024, 100, rows=(0, 1, 2)),
           budget=40),
    Kernel("transpose:transpose", XY, {"-": {"M": around(64), "N": around(64)},
                                       "BM=8 BN=12": {"M": around(8), "N": around(12)}}),
    Kernel("matmul:matmul", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("matmul:matmul/add_bias", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES, budget=24),
    Kernel("matmul:matmul/bias_relu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES, budget=24),
    Kernel("matmul:matmul/bias_gelu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES, budget=24),
    Kernel("matmul:matmul/bias_silu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES, budget=24),
    Kernel("attention:attention", ATTENTION, ATTENTION_TUNES, keep=causal),
    Kernel("attention:attention/causal", ATTENTION, ATTENTION_TUNES, keep=causal, budget=36),
    Kernel("attention:attention_lse", ATTENTION + [("lse", "out")], ATTENTION_TUNES, keep=causal, budget=20),
    Kernel("attention:attention_lse/causal", ATTENTION + [("lse", "out")], ATTENTION_TUNES, keep=causal, budget=20),
    *(Kernel("attention:attention_f8" + variant,
             [("q", "in"), ("k", "in"), ("v", "in"), ("q_scale", FEW_VIEWS), ("k_scale", ["contiguous", "broadcast"]),
              ("v_scale", FEW_VIEWS), ("o", "out")], ATTENTION_TUNES, keep=causal,
             types=["f8e4m3:bf16", "f8e5m2:f16", "f8e4m3:f32"], budget=14, gpus=gpus)
      for variant, gpus in (("", ["sm_90a"]), ("/causal", ["sm_90a", "sm_80"]))),
    Kernel("attention:attention_backward", GRADIENTS, GRADIENT_TUNES, keep=causal, budget=20),
    Kernel("attention:attention_backward/causal", GRADIENTS, GRADIENT_TUNES, keep=causal, budget=20),
    Kernel("attention:attention_scored", SCORED, SCORED_TUNES, keep=causal, budget=14),
    Kernel("attention:attention_scored/causal", SCORED, SCORED_TUNES, keep=causal, budget=14),
    Kernel("attention:attention_scored/soft_cap", SCORED, SCORED_TUNES, keep=causal, budget=14),
    Kernel("attention:attention_scored/alibi", SCORED + [("slope", FEW_VIEWS)], SCORED_TUNES, keep=causal, budget=14),
    Kernel("attention:attention_scored/biased", SCORED + [("bias", "in")], SCORED_TUNES, keep=causal, budget=14),
    Kernel("attention:attention_window", ATTENTION, WINDOWS, keep=causal, budget=32),
    Kernel("attention:attention_varlen", VARLEN, VARLEN_TUNES, data=HOSTILE, derive=VARLEN_DERIVED, budget=24),
    Kernel("attention:attention_varlen/causal", VARLEN, VARLEN_TUNES, data=HOSTILE, derive=VARLEN_DERIVED, budget=36),
    Kernel("attention:attention_varlen_lse", VARLEN + [("lse", "out")], VARLEN_TUNES, data=HOSTILE, derive=VARLEN_DERIVED,
           budget=16),
    Kernel("attention:attention_varlen_lse/causal", VARLEN + [("lse", "out")], VARLEN_TUNES, data=HOSTILE,
           derive=VARLEN_DERIVED, budget=16),
    Kernel("attention:attention_varlen_backward", PACKED_GRADIENTS, PACKED_TUNES, data=HOSTILE, derive=VARLEN_DERIVED,
           budget=20),
    Kernel("attention:attention_varlen_backward/causal", PACKED_GRADIENTS, PACKED_TUNES, data=HOSTILE,
           derive=VARLEN_DERIVED, budget=24),
    Kernel("attention:attention_paged", PAGED, PAGED_TUNES, data=HOSTILE,
           derive={"V": lambda sizes: sizes["N"] * sizes["C"] + 1}, budget=40),
    Kernel("matmul:matmul/scaled", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES, budget=12),
    Kernel("matmul:matmul/add_residual", MATMUL + [("residual", "in")], MATMUL_TUNES, types=MATMUL_TYPES, budget=16),
    Kernel("matmul:matmul_tn", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES, budget=40),
    Kernel("matmul:matmul_nt", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES, budget=40),
    Kernel("matmul:matmul_tt", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES, budget=32),
    Kernel("matmul:matmul_swiglu", [("a", "in"), ("gate", "in"), ("up", "in"), ("c", "out")], MATMUL_TUNES,
           types=MATMUL_TYPES, budget=24),
    Kernel("matmul:matmul_split_k", MATMUL, PARTS, types=MATMUL_TYPES, budget=32),
    Kernel("matmul:matmul_batched", MATMUL, BATCHES, types=MATMUL_TYPES, budget=36),
    Kernel("matmul:matmul_i8", [("a", "in"), ("b", "in"), ("row_scale", "in"), ("column_scale", "in"), ("c", "out")],
           MATMUL_TUNES, types=["f32:f32", "f32:f16", "f32:bf16"], budget=36),
    Kernel("matmul:matmul_f8", [("a", "in"), ("b", "in"), ("row_scale", "in"), ("column_scale", "in"), ("c", "out")],
           MATMUL_TUNES, types=["f8e4m3:f32", "f8e5m2:f16", "f8e4m3:bf16", "f8e5m2:f32"], budget=12, gpus=["sm_90a"]),
    Kernel("matmul:matmul_f8", [("a", PLAIN), ("b", PLAIN), ("row_scale", PLAIN), ("column_scale", PLAIN), ("c", "out")],
           WARPGROUPS, types=["f8e4m3:f32", "f8e5m2:bf16"], budget=6, gpus=["sm_90a"]),
    Kernel("matmul:matmul_f8", [("a", PLAIN), ("b", PLAIN), ("row_scale", PLAIN), ("column_scale", PLAIN), ("c", "out")],
           PROMOTED, types=["f8e4m3:f32", "f8e5m2:bf16"], budget=5, gpus=["sm_90a"]),
    Kernel("matmul:matmul_nt", [("a", PLAIN), ("b", PLAIN), ("c", "out")], WARPGROUPS, types=["bf16:f32", "f16"],
           budget=6, gpus=["sm_90a"]),
    *(Kernel(f"matmul:{name}", [("a", FEW_VIEWS), ("b", FEW_VIEWS), ("c", ["contiguous", "rows"])], MANY_SUMS, types=["f32"], budget=6,
             gpus=["sm_90a"]) for name in ("matmul", "matmul_tn", "matmul_nt", "matmul_tt")),
    Kernel("matmul:matmul", [("a", FEW_VIEWS), ("b", FEW_VIEWS), ("c", PLAIN)], WORDS, types=["f32"], budget=14, gpus=["sm_90a", "sm_80"]),
    Kernel("matmul:matmul", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN)], TURNS, types=["f16", "bf16"], budget=16, gpus=["sm_90a"]),
    *(Kernel(f"matmul:{name}", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN)], FEW_ROWS, types=["f16", "bf16"], budget=8, gpus=["sm_90a"])
      for name in ("matmul", "matmul_nt", "matmul_tn")),
    Kernel("matmul:matmul_swiglu", [("a", PLAIN), ("gate", PLAIN), ("up", PLAIN), ("c", PLAIN)], FEW_ROWS, types=["bf16"], budget=6, gpus=["sm_90a"]),
    Kernel("matmul:matmul/bias_gelu", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN), ("bias", PLAIN)], TURNS, types=["bf16"],
           budget=8, gpus=["sm_90a"]),
    *(Kernel(f"matmul:{name}", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN)], tunes, types=["f16", "bf16"], budget=9, gpus=["sm_90a"])
      for name in ("matmul", "matmul_nt", "matmul_tn") for tunes in (CLUSTERS, CLUSTERS_IN_TURN)),
    Kernel("matmul:matmul/bias_gelu", [("a", PLAIN), ("b", PLAIN), ("c", PLAIN), ("bias", PLAIN)], CLUSTERS, types=["bf16"], budget=9,
           gpus=["sm_90a"]),
    Kernel("matmul:gemv", [("a", "in"), ("x", "in"), ("y", "out")],
           {"-": {"M": [0, 1, 3, 4, 5, 9], "K": around(1024)}, "BM=3 BK=100": {"M": [1, 2, 3, 4], "K": around(100)}},
           types=MATMUL_TYPES, budget=36),
    Kernel("matmul:gemv_t", [("a", "in"), ("x", "in"), ("y", "out")],
           {"-": {"K": around(16), "N": around(1024)}, "BN=36 BK=17": {"K": around(17), "N": around(36)}},
           types=MATMUL_TYPES, budget=36),
    Kernel("conv:conv1d", CONVOLVED, LINE, budget=40),
    Kernel("conv:conv1d_depthwise", CONVOLVED, DEEP_LINE, budget=32),
    Kernel("conv:conv2d", CONVOLVED, PLANE | {"BP=4 BQ=16 BO=64 BC=64": MET | BOXES}, budget=56),
    Kernel("conv:conv2d_input_gradient", [("dy", "in"), ("wt", "in"), ("dx", "out")], INPUT_GRADIENT, budget=40),
    Kernel("conv:conv2d", [(name, PLAIN) for name, _ in CONVOLVED], SQUARES, types=["f16", "bf16"], budget=10, gpus=["sm_90a"]),
    Kernel("conv:conv2d_input_gradient", [("dy", PLAIN), ("wt", PLAIN), ("dx", PLAIN)], SQUARES_BACK, types=["f16", "bf16"],
           budget=10, gpus=["sm_90a"]),
    Kernel("conv:conv2d", [(name, PLAIN) for name, _ in CONVOLVED], FOLLOWED, types=["f16", "bf16"], budget=14, gpus=["sm_90a"]),
    Kernel("conv:conv2d_input_gradient", [("dy", PLAIN), ("wt", PLAIN), ("dx", PLAIN)], FOLLOWED_BACK, types=["f16", "bf16"],
           budget=14, gpus=["sm_90a"]),
    Kernel("conv:conv2d_weight_gradient", [("x", PLAIN), ("dy", PLAIN), ("dwt", PLAIN)], DIVIDED, types=["f16", "bf16"],
           budget=10, gpus=["sm_90a"]),
    Kernel("conv:conv2d_weight_gradient", [("x", "in"), ("dy", "in"), ("dwt", "out")], WEIGHT_GRADIENT, budget=52),
    Kernel("conv:conv2d_depthwise", CONVOLVED, DEEP_PLANE, budget=32),
    Kernel("pool:max_pool2d", XY, POOLS, budget=40),
    Kernel("pool:avg_pool2d", XY, POOLS, budget=28),
    Kernel("pool:avg_pool2d/outside", XY, POOLS, budget=16),
    *LIBRARY,
    *BLACKWELL,
]
