#!/usr/bin/env python3
"""Writes matrix.tsv: for each kernel a set of configurations in which every pair of values of two factors occurs
(types, sizes, views, data, placement, tune constants), and each configuration on every target.

usage: make_matrix.py [SEED] > matrix.tsv     with a seed, other configurations
"""
import itertools
import random
import sys

TYPES = ["f32", "f16", "bf16"]
IN_VIEWS = ["contiguous", "rows", "transposed", "strided", "negative", "broadcast", "repeated"]
OUT_VIEWS = ["contiguous", "rows", "transposed", "strided", "negative"]
VIEWS = {"in": IN_VIEWS, "out": OUT_VIEWS}


def around(block):
    return [0, 1, block - 1, block, block + 1, 2 * block + 37]


class Kernel:
    """A kernel, its tensors (name, and "in", "out" or a list of views), and for each tune setting the values of its
    dimensions."""

    def __init__(self, name, tensors, tunes, types=TYPES, data=("normal", "special"), keep=lambda sizes: True):
        self.name, self.tensors, self.tunes, self.types = name, tensors, tunes, types
        self.data, self.keep = data, keep

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
        return {name: values[configuration[name] % len(values)] for name, values in tune.items()}


def rank2(block, small, rows=(0, 1, 2, 3, 5), small_rows=(0, 1, 3, 4, 5, 9)):
    """Rows one by one in blocks of `block`, and a second tune setting with small and odd blocks."""
    return {
        "-": {"M": list(rows), "N": around(block)},
        f"BM=4 BN={small}": {"M": list(small_rows), "N": around(small)},
    }


XY = [("x", "in"), ("y", "out")]
WIDE = ("normal", "wide", "special")
# Where a kernel that others cover as well only takes another function, a few views and sizes will do.
FEW_VIEWS = ["contiguous", "strided", "negative"]
FEW = {"BM=4 BN=100": {"M": [1, 5], "N": [1, 99, 237]}}
FEW_XY = [("x", FEW_VIEWS), ("y", ["contiguous", "rows"])]
NN = "relu6 leaky_relu elu selu softplus logsigmoid mish hardsigmoid hardswish softsign swish square sign".split()
WIDE_HOSTILE = ("normal", "hostile", "special")
INDEXED = ["f32:i64", "f32:i32", "f16:i32", "bf16:i64"]
VOCABULARY = {"-": {"M": [0, 1, 3], "V": around(4096)}, "BV=100": {"M": [1, 5], "V": around(100)}}
MATMUL_TUNES = {
    "BM=8 BN=24 BK=16": {"M": around(8), "N": around(24), "K": around(16)},
    "BM=28 BN=64 BK=33": {"M": [1, 27, 28, 29], "N": [1, 63, 64, 65], "K": [0, 1, 32, 33, 34, 99]},
    "-": {"M": [1, 5, 112, 113], "N": [1, 16, 33, 257], "K": [1, 7, 64, 513]},
}
MATMUL = [("a", "in"), ("b", "in"), ("c", "out")]
MATMUL_TYPES = ["f32", "f16", "bf16", "bf16:f32", "f32:f16"]
ATTENTION = [("q", "in"), ("k", "in"), ("v", "in"), ("o", "out")]
ATTENTION_TUNES = {
    "BS=16 BL=16": {"B": [1, 0, 2], "H": [2, 4], "G": [1, 2], "S": [1, 0, 15, 16, 17, 33], "L": [1, 15, 16, 17, 47],
                    "D": [8, 5, 16]},
    "-": {"B": [1, 2], "H": [2, 4], "G": [2, 1], "S": [1, 63, 64, 65], "L": [63, 64, 65, 129], "D": [16, 40]},
}


def causal(sizes):
    return sizes["L"] >= sizes["S"]


KERNELS = [
    Kernel("elementwise:add", [("x", "in"), ("y", "in"), ("z", "out")], rank2(4096, 100), data=WIDE),
    Kernel("elementwise:axpy", [("x", "in"), ("y", "out")], {"-": {"N": around(4096)}, "BN=100": {"N": around(100)}},
           data=WIDE),
    Kernel("elementwise:map", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/relu", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/gelu", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/gelu_tanh", XY, rank2(4096, 100), data=WIDE),
    Kernel("elementwise:map/silu", XY, rank2(4096, 100), data=WIDE),
    *(Kernel("elementwise:map/" + name, FEW_XY, FEW, types=["f32"], data=WIDE) for name in NN),
    Kernel("elementwise:zip", [("x", FEW_VIEWS), ("y", FEW_VIEWS), ("z", ["contiguous", "transposed"])], FEW, data=WIDE),
    Kernel("elementwise:chain", XY, rank2(4096, 100, rows=(0, 1, 2))),
    Kernel("softmax:softmax", XY, rank2(1024, 100)),
    Kernel("softmax:softmax_passes", XY, rank2(1024, 100)),
    Kernel("softmax:softmax_row", XY, {"-": {"M": [0, 1, 3], "N": [1, 10, 63, 64, 65, 200]}}),
    Kernel("softmax:log_softmax_row", XY, {"BM=4": {"M": [0, 1, 5], "N": [1, 10, 63, 64, 65, 200]}}),
    Kernel("softmax:logsumexp", XY, rank2(1024, 100)),
    Kernel("softmax:logsumexp_row", FEW_XY, {"BM=4": {"M": [0, 1, 5], "N": [1, 10, 63, 64, 65, 200]}}),
    Kernel("loss:cross_entropy", [("x", "in"), ("target", FEW_VIEWS), ("loss", FEW_VIEWS)], VOCABULARY, types=INDEXED,
           data=WIDE_HOSTILE),
    Kernel("loss:cross_entropy_backward", [("x", "in"), ("target", FEW_VIEWS), ("dx", "out")], VOCABULARY,
           types=INDEXED, data=WIDE_HOSTILE),
    Kernel("norm:layernorm", [("x", "in"), ("gamma", "in"), ("beta", "in"), ("y", "out")], rank2(1024, 100)),
    Kernel("norm:rmsnorm", [("x", "in"), ("gamma", "in"), ("y", "out")], rank2(1024, 100)),
    Kernel("reduce:sum_rows", XY, rank2(4096, 100)),
    Kernel("reduce:sum_columns", XY, {"-": {"M": around(16), "N": around(1024)},
                                      "BM=5 BN=36": {"M": around(5), "N": around(36)}}),
    Kernel("reduce:mean_rows", XY, rank2(4096, 100)),
    Kernel("reduce:mean_columns", XY, {"-": {"M": around(16), "N": around(1024)},
                                       "BM=5 BN=36": {"M": around(5), "N": around(36)}}),
    Kernel("reduce:argmax_rows", XY, rank2(1024, 100)),
    Kernel("transpose:transpose", XY, {"-": {"M": around(64), "N": around(64)},
                                       "BM=8 BN=12": {"M": around(8), "N": around(12)}}),
    Kernel("matmul:matmul", MATMUL, MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("matmul:matmul/add_bias", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("matmul:matmul/bias_relu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("matmul:matmul/bias_gelu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("matmul:matmul/bias_silu", MATMUL + [("bias", "in")], MATMUL_TUNES, types=MATMUL_TYPES),
    Kernel("attention:attention", ATTENTION, ATTENTION_TUNES, keep=causal),
    Kernel("attention:attention/causal", ATTENTION, ATTENTION_TUNES, keep=causal),
]


def pairs(configuration):
    return {pair for pair in itertools.combinations(sorted(configuration.items(), key=lambda item: item[0]), 2)}


def configurations(kernel, rng):
    """Greedily: of some random configurations, each holding a pair not seen yet, the one with the most new pairs."""
    factors = kernel.factors()
    missing = set()
    for (a, values_a), (b, values_b) in itertools.combinations(sorted(factors.items()), 2):
        missing |= {((a, u), (b, v)) for u in values_a for v in values_b}
    while missing:
        best, gain = None, 0
        seeds = sorted(missing, key=str)
        for _ in range(60):
            candidate = {name: rng.choice(values) for name, values in factors.items()}
            candidate.update(dict(rng.choice(seeds)))
            new = len(pairs(candidate) & missing) if kernel.keep(kernel.sizes(candidate)) else 0
            if new > gain:
                best, gain = candidate, new
        if best is None:  # what is left contradicts `keep`
            return
        missing -= pairs(best)
        yield best


def rows(kernel, seed):
    rng = random.Random(kernel.name + seed)
    chosen = {}
    for configuration in configurations(kernel, rng):
        sizes = " ".join(f"{name}={size}" for name, size in kernel.sizes(configuration).items())
        views = " ".join(f"{tensor}={configuration['view ' + tensor]}" for tensor, _ in kernel.tensors)
        chosen.setdefault(configuration["types"], []).append(
            (sizes, views, configuration["data"], configuration["placement"], configuration["tune"]))
    for types in kernel.types:
        for number, (sizes, views, data, placement, tune) in enumerate(dict.fromkeys(chosen[types])):
            machine = ["machine.avx2", "machine.avx512"][number % 2]
            for target in ["interp", machine, "avx2", "avx512"]:
                yield "\t".join([kernel.name, types, target, sizes, views, data, placement, tune])


def main():
    print("# Made by make_matrix.py; fields are separated by tabs.")
    print("# kernel\ttypes\ttarget\tsizes\tviews\tdata\tplacement\ttune")
    seed = sys.argv[1] if len(sys.argv) > 1 else ""
    for kernel in KERNELS:
        for row in rows(kernel, seed):
            print(row)


if __name__ == "__main__":
    main()
