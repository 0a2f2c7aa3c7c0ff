"""Checks of examples/from-triton/liger, beside plain NumPy in float64."""

import numpy as np

from from_triton import (check_attention, check_layer_norm, close, family, gradients, normal, rng, same, sigmoid, silu,
                         softmax, wide)


def rms_norm_of(x, w, eps=1e-6, offset=0.0):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * (w + offset)


def rstd_of(x, eps=1e-6):
    x = wide(x)
    return 1 / np.sqrt((x * x).mean(-1) + eps)


@family("liger/rms_norm.tile", "r * r * c", "r * c")
def rms_norm(k, dtype):
    for shape, offset, gemma in (((7, 1100), 0.0, False), ((70, 33), 1.0, True)):
        x, w, dy = (normal(dtype, *s, seed=i) for i, s in enumerate((shape, shape[1:], shape)))
        y, rstd = k.rms_norm(x, w, eps=1e-6, offset=offset, wide=gemma)
        close(y, rms_norm_of(*wide(x, w), offset=offset), dtype, "y")
        close(rstd, rstd_of(x), dtype, "rstd")
        dx, dw = k.rms_norm_backward(dy, x, w, rstd, offset=offset)
        gradients(lambda x, w: (rms_norm_of(x, w, offset=offset) * wide(dy)).sum(), {"x": x, "w": w}, {"x": dx, "w": dw}, dtype)


@family("liger/layer_norm.tile", "gb += sum(g,", "gb += sum(-g,")
def liger_layer_norm(k, dtype):
    check_layer_norm(k, dtype, (7, 300))
    check_layer_norm(k, dtype, (70, 33))


@family("liger/fused_add_rms_norm.tile", "+ ds[m, :]", "- ds[m, :]")
def fused_add_rms_norm(k, dtype):
    x, r, dy, ds = (normal(dtype, 9, 130, seed=i) for i in range(4))
    w = normal(dtype, 130, seed=5)
    y, s, rstd = k.fused_add_rms_norm(x, r, w, eps=1e-6, offset=0.5)
    same(s, x + r, "the sum")
    close(y, rms_norm_of(*wide(s, w), offset=0.5), dtype, "y")
    dx, dw = k.fused_add_rms_norm_backward(dy, ds, s, w, rstd, offset=0.5)
    gradients(lambda s, w: (rms_norm_of(s, w, offset=0.5) * wide(dy) + s * wide(ds)).sum(), {"s": s, "w": w}, {"s": dx, "w": dw},
              dtype)


@family("liger/modulated_rms_norm.tile", "gw * weight", "gw * factor")
def modulated_rms_norm(k, dtype):
    b, s, n = 3, 7, 65
    x, dy = normal(dtype, b, s, n), normal(dtype, b, s, n, seed=1)
    w, scale, shift = normal(dtype, n, seed=2), normal(dtype, b, n, seed=3), normal(dtype, b, n, seed=4)

    def plain(x, w, scale, shift):
        return rms_norm_of(x, w) * (1 + scale[:, None]) + shift[:, None]

    y, rstd = k.modulated_rms_norm(x, w, scale, shift, eps=1e-6)
    close(y, plain(*wide(x, w, scale, shift)), dtype, "y")
    dx, dw, dscale, dshift = k.modulated_rms_norm_backward(dy, x, w, scale, rstd)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"x": x, "w": w, "scale": scale, "shift": shift},
              {"x": dx, "w": dw, "scale": dscale, "shift": dshift}, dtype)


@family("liger/group_norm.tile", "g * channels..", "g..")
def group_norm(k, dtype):
    b, c, n, groups = 3, 6, 37, 2
    x, dy, w, bias = normal(dtype, b, c, n), normal(dtype, b, c, n, seed=1), normal(dtype, c, seed=2), normal(dtype, c, seed=3)

    def plain(x, w, bias):
        v = x.reshape(b, groups, -1)
        d = v - v.mean(-1, keepdims=True)
        return (d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)).reshape(b, c, n) * w[:, None] + bias[:, None]

    mean, rstd = np.zeros((b, groups), np.float32), np.zeros((b, groups), np.float32)
    y = np.zeros_like(x)
    k.group_norm(x, w, bias, y, mean, rstd, eps=1e-5)
    close(y, plain(*wide(x, w, bias)), dtype, "y")
    close(mean, wide(x).reshape(b, groups, -1).mean(-1), dtype, "mean")
    dx, dw, db = k.group_norm_backward(dy, x, w, mean, rstd)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"x": x, "w": w, "bias": bias}, {"x": dx, "w": dw, "bias": db}, dtype)


@family("liger/poly_norm.tile", "* (i + 1) *", "* i *")
def poly_norm(k, dtype):
    x, dy, w, b = normal(dtype, 9, 65), normal(dtype, 9, 65, seed=1), normal(dtype, 3, seed=2), normal(dtype, 1, seed=3)

    def plain(x, w, b):
        return sum(w[2 - i] * rms_norm_of(x ** (i + 1), 1.0) for i in range(3)) + b

    y, rstd = k.poly_norm(x, w, b, eps=1e-6)
    close(y, plain(*wide(x, w, b)), dtype, "y")
    dx, dw, db = k.poly_norm_backward(dy, x, w, rstd)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"x": x, "w": w, "b": b}, {"x": dx, "w": dw, "b": db}, dtype, slack=2)


def rotate(x, c, s):
    half = x.shape[-1] // 2
    x1, x2 = x[..., :half], x[..., half:]
    c, s = c[..., :half], s[..., :half]
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], -1)


def angles(dtype, *shape):
    angle = rng(9).uniform(0, 6, shape)
    angle[..., shape[-1] // 2:] = angle[..., :shape[-1] // 2]
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


@family("liger/rope.tile", "k_out[b, h, s, second] = T(x2 * c +", "k_out[b, h, s, second] = T(x2 * c -")
def rope(k, dtype):
    q, key = normal(dtype, 2, 3, 37, 18), normal(dtype, 2, 1, 37, 18)
    cos, sin = angles(dtype, 37, 18)
    a, b = k.rope(q, key, cos, sin, backward=False)
    c, s = wide(cos, sin)
    close(a, rotate(wide(q), c, s), dtype, "q")
    close(b, rotate(wide(key), c, s), dtype, "k")
    dq, dk = normal(dtype, 2, 3, 37, 18, seed=5), normal(dtype, 2, 1, 37, 18, seed=6)
    gq, gk = k.rope(dq, dk, cos, sin, backward=True)
    gradients(lambda q, k: (rotate(q, c, s) * wide(dq)).sum() + (rotate(k, c, s) * wide(dk)).sum(), {"q": q, "k": key},
              {"q": gq, "k": gk}, dtype)


@family("liger/qwen2vl_mrope.tile", "times + heights, cos", "heights, cos")
def qwen2vl_mrope(k, dtype):
    b, s, d, times, heights = 2, 37, 18, 2, 3
    x, dy = normal(dtype, b, 3, s, d), normal(dtype, b, 3, s, d, seed=1)
    cos, sin = angles(dtype, 3, b, s, d)
    which = np.repeat([0, 1, 2], [times, heights, d // 2 - times - heights])
    c, t = (np.stack([wide(v)[kind, :, :, i] for i, kind in enumerate(which)], -1)[:, None] for v in (cos, sin))
    close(k.mrope(x, cos, sin, times=times, heights=heights, backward=False), rotate(wide(x), c, t), dtype)
    dx = k.mrope(dy, cos, sin, times=times, heights=heights, backward=True)
    gradients(lambda x: (rotate(x, c, t) * wide(dy)).sum(), {"x": x}, {"x": dx}, dtype)


@family("liger/llama4_rope.tile", "re * c - im * e", "re * c + im * e")
def llama4_rope(k, dtype):
    x, dy, angle = normal(dtype, 2, 37, 3, 10), normal(dtype, 2, 37, 3, 10, seed=1), rng().uniform(0, 6, (37, 5))
    turn = np.stack([np.cos(angle), np.sin(angle)], -1).astype(np.float32)
    z = (turn[..., 0] + 1j * turn[..., 1])[:, None]

    def plain(x):
        y = (x[..., ::2] + 1j * x[..., 1::2]) * z
        return np.stack([y.real, y.imag], -1).reshape(x.shape)

    close(k.llama4_rope(x, turn, backward=False), plain(wide(x)), dtype)
    gradients(lambda x: (plain(x) * wide(dy)).sum(), {"x": x}, {"x": k.llama4_rope(dy, turn, backward=True)}, dtype)


@family("liger/swiglu.tile", "dx[m, n + N] = T(g * v * s)", "dx[m, n + N] = T(g * s)")
def swiglu(k, dtype):
    a, b, dc = (normal(dtype, 1100, seed=i) for i in range(3))
    close(k.swiglu(a, b), silu(wide(a)) * wide(b), dtype)
    da, db = k.swiglu_backward(dc, a, b)
    gradients(lambda a, b: (silu(a) * b * wide(dc)).sum(), {"a": a, "b": b}, {"a": da, "b": db}, dtype)
    x, dc = normal(dtype, 5, 2 * 130), normal(dtype, 5, 130, seed=4)
    close(k.swiglu_halves(x), silu(wide(x)[:, :130]) * wide(x)[:, 130:], dtype)
    gradients(lambda x: (silu(x[:, :130]) * x[:, 130:] * wide(dc)).sum(), {"x": x}, {"x": k.swiglu_halves_backward(dc, x)}, dtype)


@family("liger/geglu.tile", "1 + 3 * CUBE", "1 + CUBE")
def geglu(k, dtype):
    def plain(a, b):
        return 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a ** 3))) * b

    a, b, dc = (normal(dtype, 1100, seed=i) for i in range(3))
    close(k.geglu(a, b), plain(*wide(a, b)), dtype)
    da, db = k.geglu_backward(dc, a, b)
    gradients(lambda a, b: (plain(a, b) * wide(dc)).sum(), {"a": a, "b": b}, {"a": da, "b": db}, dtype)


@family("liger/relu_squared.tile", "T(2 *", "T(1 *")
def relu_squared(k, dtype):
    x, dy = normal(dtype, 1100), normal(dtype, 1100, seed=1)
    close(k.relu_squared(x), np.maximum(wide(x), 0) ** 2, dtype)
    gradients(lambda x: (np.maximum(x, 0) ** 2 * wide(dy)).sum(), {"x": x}, {"x": k.relu_squared_backward(dy, x)}, dtype)


@family("liger/element_mul.tile", "* by[0]", "+ by[0]")
def element_mul(k, dtype):
    x = normal(dtype, 5, 300)
    y = x.copy()
    k.element_mul(y, np.array([0.3], np.float32))
    close(y, wide(x) * 0.3, dtype)


@family("liger/dyt.tile", "1 - t * t", "1 + t * t")
def dyt(k, dtype):
    x, dy = normal(dtype, 7, 600), normal(dtype, 7, 600, seed=1)
    alpha, gamma, beta = np.array([0.7], dtype), normal(dtype, 600, seed=2), normal(dtype, 600, seed=3)

    def plain(x, alpha, gamma, beta):
        return np.tanh(alpha * x) * gamma + beta

    close(k.dyt(x, alpha, gamma, beta), plain(*wide(x, alpha, gamma, beta)), dtype)
    dx, da, dg, db = k.dyt_backward(dy, x, alpha, gamma)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"x": x, "alpha": alpha, "gamma": gamma, "beta": beta},
              {"x": dx, "alpha": da, "gamma": dg, "beta": db}, dtype, slack=2)


@family("liger/softmax.tile", "- s[:, _]", "+ s[:, _]")
def liger_softmax(k, dtype):
    x, dy = normal(dtype, 5, 1100), normal(dtype, 5, 1100, seed=1, scale=30)
    y = k.softmax(x)
    close(y, softmax(wide(x)), dtype)
    gradients(lambda x: (softmax(x) * wide(dy)).sum(), {"x": x}, {"x": k.softmax_backward(dy, y)}, dtype, slack=2)


def sparsemax_of(x):
    z = -np.sort(-x, axis=1)
    c = np.cumsum(z, 1)
    k = (1 + np.arange(1, x.shape[1] + 1) * z > c).sum(1)
    return np.maximum(x - ((c[np.arange(len(x)), k - 1] - 1) / k)[:, None], 0)


@family("liger/sparsemax.tile", "+ 1)[_, :]", "+ 2)[_, :]")
def sparsemax(k, dtype):
    x, dy = normal(dtype, 5, 130, scale=0.3), normal(dtype, 5, 130, seed=1)
    y = k.sparsemax(x)
    close(y, sparsemax_of(wide(x)), dtype)
    gradients(lambda x: (sparsemax_of(x) * wide(dy)).sum(), {"x": x}, {"x": k.sparsemax_backward(dy, y)}, dtype,
              slack=1 if dtype is np.float32 else 3)


@family("liger/cross_entropy.tile", "2 * z_scale", "z_scale")
def cross_entropy(k, dtype):
    m, v, ignored = 9, 1100, -100
    x, target, weight = normal(dtype, m, v, scale=2), rng().integers(0, v, m), np.abs(normal(np.float32, v, seed=3))
    target[2] = ignored
    target[3] = v - 1
    counts = target != ignored

    def plain(x, smoothing, z_scale, cap, averaged, weighted):
        z = cap * np.tanh(x / cap) if cap else x
        top = z.max(1, keepdims=True)
        lse = np.log(np.exp(z - top).sum(1)) + top[:, 0]
        w = np.where(counts, weight[target], 0) if weighted else counts * 1.0
        share = 1 / w.sum() if averaged else 1.0
        extra = z_scale * lse ** 2 * share * counts
        t = z[np.arange(m), np.where(counts, target, 0)]
        return w * share * ((1 - smoothing) * (lse - t) + smoothing * (lse - z.mean(1))) + extra, extra, z.argmax(1)

    for smoothing, z_scale, cap, averaged, weighted in ((0.0, 0.0, 0.0, False, False), (0.1, 0.01, 5.0, True, True)):
        loss, extra, correct, predicted, dx = k.cross_entropy(
            x, target, weight, ignored=ignored, smoothing=smoothing, z_scale=z_scale, cap=cap, averaged=averaged, weighted=weighted,
            capped=cap != 0)
        expected, z_loss, best = plain(wide(x), smoothing, z_scale, cap, averaged, weighted)
        close(loss, expected, dtype, "loss")
        close(extra, z_loss, dtype, "z loss")
        same(predicted, np.where(counts, best, -1), "predicted")
        same(correct, np.where(counts, best == target, 0), "correct")
        gradients(lambda x: plain(x, smoothing, z_scale, cap, averaged, weighted)[0].sum(), {"x": x}, {"x": dx}, dtype,
                  slack=2)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@family("liger/fused_linear_cross_entropy.tile", "acc = dw[v, h]", "acc = zeros[BM, BN](f32)")
def fused_linear_cross_entropy(k, dtype):
    m, h, v, ignored, smoothing = 70, 33, 150, -100, 0.1
    x, w, bias, target = normal(dtype, m, h), normal(dtype, v, h, scale=0.3), normal(dtype, v, seed=4), rng().integers(0, v, m)
    target[5] = ignored
    counts = target != ignored
    scale = 1 / counts.sum()

    def plain(x, w, bias):
        p = log_softmax(x @ w.T + bias)
        each = -(1 - smoothing) * p[np.arange(m), np.where(counts, target, 0)] - smoothing * p.mean(1)
        return (each * counts * scale).sum()

    loss, dx = np.zeros(m, np.float32), np.zeros_like(x)
    dw, dbias = np.zeros((v, h), np.float32), np.zeros(v, np.float32)
    for part in (slice(0, 40), slice(40, m)):
        k.fused_linear_cross_entropy(x[part], w, bias, target[part], loss=loss[part], dx=dx[part], dw=dw, dbias=dbias, scale=scale,
                                     ignored=ignored, smoothing=smoothing)
    close(loss.sum(), plain(*wide(x, w, bias)), dtype, "loss")
    gradients(plain, {"x": x, "w": w, "bias": bias}, {"x": dx, "w": dw, "bias": dbias}, dtype, slack=2)


def jsd_of(s, t, beta):
    """Of logarithms of probabilities: the divergence of each row."""
    q, p = np.exp(s), np.exp(t)
    if beta in (0, 1):
        return (p * (t - s) if beta == 0 else q * (s - t)).sum(1)
    m = beta * p + (1 - beta) * q
    return (beta * p * (t - np.log(m)) + (1 - beta) * q * (s - np.log(m))).sum(1)


@family("liger/fused_linear_jsd.tile", "exp(s) * slope", "slope")
def fused_linear_jsd(k, dtype):
    m, h, i, v, ignored, beta, temperature = 40, 33, 20, 150, -100, 0.3, 1.5
    x, w, teacher, teacher_w = normal(dtype, m, h), normal(dtype, v, h), normal(dtype, m, i), normal(dtype, v, i, seed=1)
    label = rng().integers(0, v, m)
    label[7] = ignored
    counts = label != ignored

    def plain(x, w):
        s, t = log_softmax(x @ w.T / temperature), log_softmax(wide(teacher) @ wide(teacher_w).T / temperature)
        return (jsd_of(s, t, beta) * counts).sum() / counts.sum()

    dw = np.zeros((v, h), np.float32)
    loss, dx = k.fused_linear_jsd(x, w, teacher, teacher_w, label, dw=dw, scale=1 / counts.sum(), ignored=ignored, beta=beta,
                                  temperature=temperature)
    close(loss.sum(), plain(*wide(x, w)), dtype, "loss")
    gradients(plain, {"x": x, "w": w}, {"x": dx, "w": dw}, dtype, slack=2)


@family("liger/kl_div.tile", "b * (log(max(b, eps)) - a)", "b * (log(max(b, eps)) + a)")
def kl_div(k, dtype):
    y, p = log_softmax(normal(np.float64, 5, 1100)).astype(dtype), softmax(normal(np.float64, 5, 1100, seed=1)).astype(dtype)
    p[0, 0] = 0
    for logs in (False, True):
        target = np.log(np.maximum(wide(p), 1e-3)).astype(dtype) if logs else p

        def plain(y):
            t = wide(target)
            return ((np.exp(t) * (t - y) if logs else t * (np.log(np.maximum(t, 1e-10)) - y)).sum(1)) * 0.5

        close(k.kl_div(y, target, scale=0.5, eps=1e-10, logs=logs), plain(wide(y)), dtype)
        gradients(lambda y: plain(y).sum(), {"y": y}, {"y": k.kl_div_backward(target, scale=0.5, logs=logs)}, dtype)


@family("liger/jsd.tile", "q * (a - l)", "q * (a + l)")
def jsd(k, dtype):
    x, y = (log_softmax(normal(np.float64, 5, 1100, seed=i)).astype(dtype) for i in range(2))
    label = np.array([1, 2, -100, 4, 5])
    for beta in (0.0, 0.3, 1.0):
        def plain(x):
            return jsd_of(x, wide(y), beta) * (label != -100) / 4

        loss, dx = k.jsd(x, y, label, scale=0.25, ignored=-100, beta=beta)
        close(loss, plain(wide(x)), dtype, f"beta = {beta}")
        gradients(lambda x: plain(x).sum(), {"x": x}, {"x": dx}, dtype)


@family("liger/tvd.tile", "0.5, -0.5", "-0.5, 0.5")
def tvd(k, dtype):
    p, q = (softmax(normal(np.float64, 5, 1100, seed=i)).astype(dtype) for i in range(2))
    label = np.array([1, 2, -100, 4, 5])

    def plain(p):
        return 0.5 * np.abs(p - wide(q)).sum(1) * (label != -100) * 0.25

    loss, dp = k.tvd(p, q, label, scale=0.25, ignored=-100)
    close(loss, plain(wide(p)), dtype)
    gradients(lambda p: plain(p).sum(), {"p": p}, {"p": dp}, dtype, step=1e-9)


@family("liger/embedding.tile", "table[at[n], d]", "table[at[n] + 1, d]")
def embedding(k, dtype):
    table, at, dy = normal(dtype, 11, 300), rng().integers(0, 11, 6), normal(dtype, 6, 300, seed=1)
    same(k.embedding(table, at), table[at], "y")
    dtable, expected = np.zeros((11, 300), dtype), np.zeros((11, 300))
    k.embedding_backward(dy, at, dtable)
    np.add.at(expected, at, wide(dy))
    close(dtable, expected, dtype)


@family("liger/attn_res.tile", "da - sum(a * da)", "da + sum(a * da)")
def attn_res(k, dtype):
    n, m, d = 5, 70, 33
    v, query, weight, dh = normal(dtype, n, m, d), normal(dtype, d), normal(dtype, d, seed=1), normal(dtype, m, d, seed=2)

    def plain(v, query, weight):
        return np.einsum("nm,nmd->md", softmax((rms_norm_of(v, weight) * query).sum(-1), 0), v)

    h, alpha, rstd = k.attn_res(v, query, weight, eps=1e-6)
    close(h, plain(*wide(v, query, weight)), dtype, "h")
    dv, dquery, dweight = k.attn_res_backward(dh, v, query, weight, alpha, rstd)
    gradients(lambda **x: (plain(**x) * wide(dh)).sum(), {"v": v, "query": query, "weight": weight},
              {"v": dv, "query": dquery, "weight": dweight}, dtype)


@family("liger/vocab_parallel_cross_entropy.tile", "t - first, 1", "t, 1")
def vocab_parallel_cross_entropy(k, dtype):
    m, v, ranks, smoothing = 9, 60, 2, 0.1
    x, target, dloss = normal(dtype, m, v * ranks), rng().integers(0, v * ranks, m), normal(np.float32, m)
    target[1] = -100
    counts = target != -100
    top = wide(x).max(1).astype(np.float32)
    parts = [k.vocab_parallel_cross_entropy(x[:, r * v:(r + 1) * v], top, target, first=r * v, ignored=-100) for r in range(ranks)]
    total = sum(part[2] for part in parts)
    p = log_softmax(wide(x))
    close(np.log(total) - sum(part[1] for part in parts) * 1.0, np.where(counts, -p[np.arange(m), target], np.log(total)), dtype)

    def plain(x):
        p = log_softmax(x)
        each = -(1 - smoothing) * p[np.arange(m), np.where(counts, target, 0)] - smoothing * p.mean(1)
        return (each * counts * dloss).sum()

    for r, (e, _, _) in enumerate(parts):
        k.vocab_parallel_cross_entropy_backward(e, total, target, dloss, first=r * v, ignored=-100, smoothing=smoothing,
                                                each=smoothing / (v * ranks))
    gradients(plain, {"x": x}, {"x": np.concatenate([e for e, _, _ in parts], 1)}, dtype)


@family("liger/mm_int8int2.tile", "& 3) - 1", "& 3) - 2")
def mm_int8int2(k, dtype):
    m, n, h = 33, 70, 40
    a, w = rng().integers(-128, 128, (m, 4 * h)).astype(np.int8), rng(1).integers(-1, 3, (4 * h, n))
    packed = sum((w[i * h:(i + 1) * h] + 1) << 2 * i for i in range(4)).astype(np.uint8)
    same(k.mm_int8int2(a, packed), a.astype(np.int32) @ w.astype(np.int32), "c")


@family("liger/mlp.tile", "* gate)", "/ gate)")
def mlp(k, dtype):
    m, d, n, gate, down = 70, 33, 130, 1.25, 0.5
    x, wg, wu = normal(dtype, m, d), normal(dtype, n, d, scale=0.3), normal(dtype, n, d, scale=0.3, seed=1)
    wd, dy = normal(dtype, d, n, scale=0.3, seed=2), normal(dtype, m, d, seed=3)

    def hidden(x, wg, wu):
        return silu(x @ wg.T * gate) * (x @ wu.T)

    h, g, u = k.swiglu_mlp(x, wg, wu, gate=gate)
    close(h, hidden(*wide(x, wg, wu)), dtype, "h")
    dg, du = k.swiglu_mlp_backward_h(dy, wd, g, u, gate=gate, down=down)
    dx = k.swiglu_mlp_backward_x(dg, du, wg, wu)
    dwg, dwu = wide(dg).T @ wide(x), wide(du).T @ wide(x)
    gradients(lambda x, wg, wu: (hidden(x, wg, wu) @ wide(wd).T * down * wide(dy)).sum(), {"x": x, "wg": wg, "wu": wu},
              {"x": dx, "wg": dwg, "wu": dwu}, dtype)


@family("liger/grpo_loss.tile", "exp(d) - d - 1", "exp(d) - 1")
def grpo_loss(k, dtype):
    b, n, v, temperature, beta = 3, 5, 40, 0.9, 0.04
    logits, ids = normal(dtype, b, n + 1, v, scale=2), rng().integers(0, v, (b, n))
    mask = np.ones((b, n), np.int32)
    mask[1, 3:] = 0
    advantage, phi = np.array([0.7, -1.1, 0.4], np.float32), np.array([0.5, 0.8, 1.1], np.float32)
    dloss = normal(np.float32, b, n)

    def logp(x):
        return np.take_along_axis(log_softmax(x[:, :-1] / temperature), ids[..., None], 2)[..., 0]

    now = logp(wide(logits))
    old, reference = ((now + normal(np.float32, b, n, seed=i, scale=0.4)).astype(np.float32) for i in (1, 2))
    close(k.selective_log_softmax(logits, ids, mask, temperature=temperature), now * mask, dtype, "log probabilities")
    settings = {"temperature": temperature, "beta": beta, "low": 0.2, "high": 0.3, "positive": 1.0, "negative": 1.05}
    a = wide(advantage)[:, None]

    def plain(x, kind):
        p = logp(x)
        ratio = np.exp(p - old)
        held = np.exp(now - old)  # what CISPO does not differentiate
        if kind == 0:
            value = -np.minimum(ratio * a, np.clip(ratio, 0.8, 1.3) * a)
        elif kind == 1:
            value = -np.minimum(held, 0.3) * a * p
        elif kind == 2:
            t = np.where(a > 0, 1.0, 1.05)
            value = -a * sigmoid(t * (ratio - 1)) * 4 / t
        else:
            value = -wide(phi)[:, None] * a * p
        d = reference - p
        return (value + beta * (np.exp(d) - d - 1)) * mask

    for kind in range(4):
        loss, lse, _kl, clipped = k.grpo_loss(logits, old, reference, ids, mask, advantage, phi, kind=kind, **settings)
        close(loss, plain(wide(logits), kind), dtype, f"kind {kind}")
        if kind == 0:
            r = np.exp(now - old)
            same(clipped, ((r < 0.8) & (a < 0) | (r > 1.3) & (a > 0)) * mask, "clipped")
        dlogits = np.zeros_like(logits)
        k.grpo_loss_backward(dloss, logits, old, reference, ids, mask, advantage, phi, lse, dlogits, kind=kind, **settings)
        gradients(lambda x: (plain(x, kind) * dloss).sum(), {"x": logits}, {"x": dlogits}, dtype, slack=2)


@family("liger/multi_token_attention.tile", "c % C, u, v", "c % C, v, u")
def multi_token_attention(k, dtype):
    b, channels, n, groups, outputs, up, left = 2, 4, 9, 2, 6, 2, 1
    scores, dy = normal(dtype, b, channels, n, n), normal(dtype, b, outputs, n, n)
    w, bias = normal(dtype, outputs, channels // groups, 3, 3), normal(dtype, outputs)
    lower = np.tril(np.ones((n, n), bool))

    def plain(scores, w, bias):
        p = np.where(lower, softmax(np.where(lower, scores, -np.inf)), 0)
        y = np.zeros((b, outputs, n, n)) + bias[:, None, None]
        padded = np.pad(p, ((0, 0), (0, 0), (up, 3), (left, 3)))
        for o in range(outputs):
            for c in range(channels // groups):
                for u in range(3):
                    for v in range(3):
                        y[:, o] += w[o, c, u, v] * padded[:, o // (outputs // groups) * (channels // groups) + c, u:u + n, v:v + n]
        return np.where(lower, y, 0)

    p, y = k.multi_token_attention(scores, w, bias, up=up, left=left)
    close(y, plain(*wide(scores, w, bias)), dtype, "y")
    dscores, dw, dbias = k.multi_token_attention_backward(dy, p, w, up=up, left=left)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"scores": scores, "w": w, "bias": bias},
              {"scores": dscores, "w": dw, "bias": dbias}, dtype)


@family("liger/fused_neighborhood_attention.tile", "d % dilation == 0", "d % dilation != 1")
def fused_neighborhood_attention(k, dtype):
    n = 77
    distance = np.arange(n)[None] - np.arange(n)[:, None]
    for half, dilation in ((3, 1), (2, 3)):
        allowed = (abs(distance) <= half * dilation) & (distance % dilation == 0)
        check_attention(k.neighborhood_attention, k.neighborhood_attention_backward, dtype, (2, 2, n, 16), allowed, 0.3, half=half,
                        dilation=dilation)


@family("liger/fused_moe.tile", "exclusive = true", "exclusive = false")
def fused_moe(k, dtype):
    n, h, i, experts, choices = 40, 33, 21, 5, 2
    x, dy = normal(dtype, n, h), normal(dtype, n, h, seed=1)
    gate_up, down = normal(dtype, experts, 2 * i, h, scale=0.3), normal(dtype, experts, h, i, scale=0.3)
    expert = np.stack([rng(t).permutation(experts - 1)[:choices] for t in range(n)]).astype(np.int32)  # the last has none
    weight = softmax(normal(np.float64, n, choices)).astype(np.float32)
    order, place, first = (np.full(size, -1, np.int64) for size in (n * choices, n * choices, experts + 1))
    k.moe_route(expert.ravel(), order, place, first)
    same(order, np.argsort(expert.ravel(), kind="stable"), "order")
    same(place[order], np.arange(n * choices), "place")
    same(first, np.searchsorted(np.sort(expert.ravel()), np.arange(experts + 1)), "first")

    def plain(x, gate_up, down, weight):
        y = np.zeros((n, h))
        for j in range(choices):
            z = np.einsum("nih,nh->ni", gate_up[expert[:, j]], x)
            y += weight[:, j, None] * np.einsum("nhi,ni->nh", down[expert[:, j]], silu(z[:, :i]) * z[:, i:])
        return y

    gates = np.zeros((n * choices, 2 * i), dtype)
    y = k.fused_moe(x, gate_up, down, weight, order, place, first, gates)
    close(y, plain(*wide(x, gate_up, down, weight)), dtype, "y")
    dweight = np.zeros((n, choices), np.float32)
    dx, dgate_up, ddown = k.fused_moe_backward(dy, x, gate_up, down, weight, order, place, first, gates, dweight=dweight)
    gradients(lambda **v: (plain(**v) * wide(dy)).sum(), {"x": x, "gate_up": gate_up, "down": down, "weight": weight},
              {"x": dx, "gate_up": dgate_up, "down": ddown, "weight": dweight}, dtype)


@family("liger/mhc.tile", "sum(g * half, axis = 1", "sum(g, axis = 1")
def mhc(k, dtype):
    n, h, c, steps = 9, 4, 150, 6
    x, phi = normal(dtype, n, h * c), normal(dtype, h * c, h * h + 2 * h, scale=0.1)
    dmix = normal(np.float32, n, h * h + 2 * h, seed=3)

    def mixed(x, phi):
        return x @ phi / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)

    mix, rstd = k.mhc_mix(x, phi, eps=1e-6)
    close(mix, mixed(*wide(x, phi)), dtype, "mix")
    dx, dphi = k.mhc_mix_backward(dmix, x, phi, mix, rstd)
    gradients(lambda **v: (mixed(**v) * wide(dmix)).sum(), {"x": x, "phi": phi}, {"x": dx, "phi": dphi}, dtype)

    b = normal(np.float32, h * h + 2 * h, seed=5)
    dres = normal(np.float32, n, h, h, seed=6)

    def doubly(z):
        s = softmax(z) + 1e-6
        s = s / (s.sum(1, keepdims=True) + 1e-6)
        for _ in range(1, steps):
            s = s / (s.sum(2, keepdims=True) + 1e-6)
            s = s / (s.sum(1, keepdims=True) + 1e-6)
        return s

    z = (wide(mix) * 0.7 + wide(b))[:, 2 * h:].reshape(n, h, h)
    pre, post, res = (np.zeros(s, np.float32) for s in ((n, h), (n, h), (n, h, h)))
    k.mhc_coefficients(mix, b, pre=pre, post=post, res=res, a_pre=0.5, a_post=0.6, a_res=0.7, pre_eps=1e-3, eps=1e-6, times=2.0, STEPS=steps)
    close(pre, sigmoid(wide(mix)[:, :h] * 0.5 + wide(b)[:h]) + 1e-3, np.float32, "pre")
    close(post, sigmoid(wide(mix)[:, h:2 * h] * 0.6 + wide(b)[h:2 * h]) * 2, np.float32, "post")
    close(res, doubly(z), np.float32, "res")
    dz = k.mhc_coefficients_backward(mix, b, dres, a_res=0.7, eps=1e-6, STEPS=steps)
    gradients(lambda z: (doubly(z) * wide(dres)).sum(), {"z": z}, {"z": dz}, np.float32)

    streams, f = normal(dtype, n, h, c, seed=7), normal(dtype, n, c, seed=8)
    dy, dout = normal(np.float32, n, c, seed=9), normal(np.float32, n, h, c, seed=10)
    close(k.mhc_pre(streams, pre), np.einsum("nh,nhc->nc", *wide(pre, streams)), dtype, "read")
    dx, dpre = k.mhc_pre_backward(dy, streams, pre)
    gradients(lambda x, pre: (np.einsum("nh,nhc->nc", pre, x) * wide(dy)).sum(), {"x": streams, "pre": pre},
              {"x": dx, "pre": dpre}, dtype)

    def written(x, f, post, res):
        return np.einsum("nij,njc->nic", res, x) + post[:, :, None] * f[:, None]

    close(k.mhc_post(streams, f, post, res), written(*wide(streams, f, post, res)), dtype, "written")
    dx, df, dpost, dres = k.mhc_post_backward(dout, streams, f, post, res)
    gradients(lambda **v: (written(**v) * wide(dout)).sum(), {"x": streams, "f": f, "post": post, "res": res},
              {"x": dx, "f": df, "post": dpost, "res": dres}, dtype)
