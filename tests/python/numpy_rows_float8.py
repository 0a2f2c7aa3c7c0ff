"""More rows (numpy_rows.py): floats of 8 bits, of which a result is a nearest one to what NumPy computes in f64."""
import ml_dtypes
import numpy as np
from numpy_rows import Out, row, wide
from numpy_rows_images import CAUSAL, SCALE, tensors

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
MOST, TOP_POWER = {E4M3: 448.0, E5M2: 57344.0}, {E4M3: 8, E5M2: 15}
NAMES = {E4M3: "f8e4m3", E5M2: "f8e5m2"}


@row("cast_float8")
def _(r):
    x = r.randn(5, 37, scale=90.0)
    return [x, Out(np.clip(wide(x) * 3.0, -448, 448), E4M3), 3.0]


@row("quantise_blocks")
def _(r):
    x = r.randn(3, 4, 2, 8)
    x[1, :, 1] = 0
    scale = np.maximum(np.abs(x).max((1, 3)), np.float32(1e-20)) / np.float32(448)
    return [x, Out(wide(x) / wide(scale)[:, None, :, None], E4M3), Out(scale)]


@row("dequantise_blocks")
def _(r):
    q, scale = r.randn(3, 4, 2, 8, scale=90.0).clip(-448, 448).astype(E4M3), r.rand(3, 2)
    return [q, scale, Out(wide(q) * wide(scale)[:, None, :, None])]


def product(kind):
    @row("matmul_f8", T=NAMES[kind], U="f32")
    def _(r):
        a, b, rows, columns = r.randn(21, 40).astype(kind), r.randn(30, 40).astype(kind), r.rand(21), r.rand(30)
        return [a, b, rows, columns, Out(wide(a) @ wide(b).T * wide(rows)[:, None] * wide(columns))]


def attention(kind, causal):
    """Weights are rounded, the greatest as the greatest power of two; their sum is of those that are not."""
    @row("attention_f8", T=NAMES[kind], U="f32", causal=str(causal).lower())
    def _(r):
        q, k, v = (x.astype(kind) for x in tensors(r))
        scales = r.rand(1, 4), r.rand(1, 2) - np.float32(0.5), r.rand(1, 2)
        units = np.abs(wide(scales[0])[0] * np.repeat(wide(scales[1])[0], 2))[:, None, None] * SCALE
        scores = wide(q)[0] @ np.repeat(wide(k)[0], 2, 0).transpose(0, 2, 1) * units
        if causal:
            scores = np.where(CAUSAL, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True)) * 2.0 ** TOP_POWER[kind]
        o = wide(weights.astype(np.float32).astype(kind)) @ np.repeat(wide(v)[0], 2, 0)
        o = o / weights.sum(-1, keepdims=True) * np.repeat(wide(scales[2])[0], 2)[:, None, None]
        return [q, k, np.ascontiguousarray(v.transpose(0, 1, 3, 2)), *scales, Out(o[None]), SCALE]


for _kind in (E4M3, E5M2):
    product(_kind)
    for _causal in (False, True):
        attention(_kind, _causal)
