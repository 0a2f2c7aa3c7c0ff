"""Checks of examples/from-triton/tutorials, beside plain NumPy in float64."""

import ml_dtypes
import numpy as np

from from_triton import check_attention, check_layer_norm, close, family, normal, rng, softmax, wide


@family("tutorials/01_vector_add.tile", "+ y[n]", "- y[n]")
def vector_add(k, dtype):
    for n in (1, 1023, 2500):
        x, y = normal(dtype, n), normal(dtype, n, seed=1)
        close(k.vector_add(x, y), wide(x) + wide(y), dtype)


@family("tutorials/02_fused_softmax.tile", "/ sum(e", "/ max(e")
def fused_softmax(k, dtype):
    for shape in ((5, 7), (3, 1000)):
        x = normal(dtype, *shape, scale=3)
        close(k.softmax(x), softmax(wide(x)), dtype)


@family("tutorials/03_matrix_multiplication.tile", "0.01 * x", "0.1 * x")
def matrix_multiplication(k, dtype):
    for m, n, p in ((70, 65, 129), (3, 200, 33)):
        a, b = normal(dtype, m, p), normal(dtype, p, n, seed=1)
        c = wide(a) @ wide(b)
        close(k.matmul(a, b), c, dtype)
        close(k.matmul(a, b, act="leaky_relu"), np.where(c >= 0, c, 0.01 * c), dtype)


def philox(seed, index):
    """Philox4x32-10, as docs/language.md defines rand."""
    seed, index = np.uint64(seed), np.asarray(index, np.uint64)
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    block = index >> np.uint64(2)
    c = [block & low, block >> shift, np.zeros_like(block), np.zeros_like(block)]
    key = [seed & low, seed >> shift]
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> shift) ^ c[1] ^ key[0], q & low, (p >> shift) ^ c[3] ^ key[1], p & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    word = np.choose((index & np.uint64(3)).astype(np.int64), c)
    return (word >> np.uint64(8)).astype(np.float64) * 2.0 ** -24


@family("tutorials/04_low_memory_dropout.tile", "n.idx) > p", "n.idx) < p")
def low_memory_dropout(k, dtype):
    n, p = 1500, 0.3
    x = normal(dtype, n)
    kept = (rng(3).random(n) > 0.5).astype(np.int32)
    close(k.dropout(x, kept, p=p), np.where(kept != 0, wide(x) / (1 - np.float32(p)), 0), dtype)
    close(k.seeded_dropout(x, p=p, seed=123), np.where(philox(123, np.arange(n)) > np.float32(p), wide(x) / (1 - p), 0), dtype)
    x, seeds = normal(dtype, 5, 300), np.array([3, 1, 4, 1, 5], np.int32)
    kept = np.stack([philox(seed, np.arange(300)) > np.float32(p) for seed in seeds])
    close(k.seeded_dropout_rows(x, seeds, p=p), np.where(kept, wide(x) / (1 - p), 0), dtype)


@family("tutorials/05_layer_norm.tile", "c1[:, _] + c2", "c1[:, _] - c2")
def layer_norm(k, dtype):
    check_layer_norm(k, dtype, (7, 1100))
    check_layer_norm(k, dtype, (70, 33))


@family("tutorials/06_fused_attention.tile", "- delta[b, h, m]", "+ delta[b, h, m]")
def fused_attention(k, dtype):
    for causal in (False, True):
        n = 77
        allowed = np.tril(np.ones((n, n), bool)) if causal else np.ones((n, n), bool)
        check_attention(k.attention, k.attention_backward, dtype, (2, 2, n, 16), allowed, 0.3, causal=causal)


@family("tutorials/07_extern_functions.tile", "asin", "acos")
def extern_functions(k, dtype):
    x = rng().uniform(-1, 1, 1100).astype(dtype)
    close(k.arc_sine(x), np.arcsin(wide(x)), dtype)


@family("tutorials/08_grouped_gemm.tile", "% P", "% 7")
def grouped_gemm(k, dtype):
    size = np.array([(70, 65, 40), (1, 1, 1), (5, 200, 33), (0, 3, 2), (33, 9, 64)], np.int64)
    rows, columns, depth = size.T
    a, b = normal(dtype, int((rows * depth).sum())), normal(dtype, int((depth * columns).sum()), seed=1)
    at = np.stack([np.cumsum(v) - v for v in (rows * depth, depth * columns, rows * columns)], 1)
    c = np.zeros(int((rows * columns).sum()), dtype)
    for programs in (64, 2):
        c[:] = 0
        k.grouped_matmul(a, b, c, at, size, P=programs)
        parts = [(wide(a[i:i + m * p]).reshape(m, p) @ wide(b[j:j + p * n]).reshape(p, n)).ravel()
                 for (m, n, p), (i, j, _) in zip(size, at)]
        close(c, np.concatenate(parts), dtype)


@family("tutorials/09_persistent_matmul.tile", "p..count step P", "p..count - 1 step P")
def persistent_matmul(k, dtype):
    a, b = normal(dtype, 150, 70), normal(dtype, 130, 70, seed=1)
    for programs in (3, 132):
        close(k.persistent_matmul(a, b, P=programs, U="f32"), wide(a) @ wide(b).T, np.float32 if dtype is np.float32 else dtype)
    a, b = a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn)
    close(k.persistent_matmul(a, b, U="f32"), wide(a) @ wide(b).T, np.float32)


E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


@family("tutorials/10_block_scaled_matmul.tile", "BK / 32)\n            acc", "BK / 32) + 1\n            acc")
def block_scaled_matmul(k, dtype):
    m, n, p = 33, 70, 192
    f8 = ml_dtypes.float8_e4m3fn

    def four(rows, seed):
        bits = rng(seed).integers(0, 16, (rows, p)).astype(np.uint8)
        return bits[:, ::2] | bits[:, 1::2] << 4, E2M1[bits]

    def powers(rows, seed):
        exponent = rng(seed).integers(124, 130, (rows, p // 32)).astype(np.uint8)
        return exponent, np.repeat(2.0 ** (exponent.astype(int) - 127), 32, 1)

    (sa, fa), (sb, fb) = powers(m, 1), powers(n, 2)
    a8, b8 = normal(f8, m, p), normal(f8, n, p, seed=1)
    (a4, va), (b4, vb) = four(m, 3), four(n, 4)
    close(k.mxfp8_matmul(a8, sa, b8, sb, U="f32"), (wide(a8) * fa) @ (wide(b8) * fb).T, dtype, "mxfp8")
    close(k.mxfp4_matmul(a4, sa, b4, sb, U="f32"), (va * fa) @ (vb * fb).T, dtype, "mxfp4")
    close(k.mixed_matmul(a8, sa, b4, sb, U="f32"), (wide(a8) * fa) @ (vb * fb).T, dtype, "mixed")
    sa, sb = (np.abs(normal(f8, rows, p // 16, seed=rows)) for rows in (m, n))
    fa, fb = (np.repeat(wide(s), 16, 1) for s in (sa, sb))
    close(k.nvfp4_matmul(a4, sa, b4, sb, U="f32"), (va * fa) @ (vb * fb).T, dtype, "nvfp4")
