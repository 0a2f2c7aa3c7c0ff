"""More rows (numpy_rows.py): windows, attention, draws."""
import numpy as np
from numpy_rows import Any, Out, row, softmax, wide


# ---- windows ----

def windows(x, size, stride, pad, fill=0.0):
    """[batch, P, Q, size, size, channels] of [batch, H, W, channels]."""
    x = np.pad(wide(x), ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    found = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]
    return found.transpose(0, 1, 2, 4, 5, 3)


@row("conv2d", stride=1)
def _(r):
    x, w, bias = r.randn(2, 7, 9, 8), r.randn(3, 3, 8, 16, scale=0.1), r.randn(16)
    return [x, w, bias, Out(np.einsum("bpqrsc,rsco->bpqo", windows(x, 3, 1, 1), wide(w)) + bias), 1, 1]


@row("conv2d_depthwise", stride=1)
def _(r):
    x, w, bias = r.randn(2, 7, 9, 37), r.randn(3, 3, 37), r.randn(37)
    return [x, w, bias, Out(np.einsum("bpqrsc,rsc->bpqc", windows(x, 3, 1, 1), wide(w)) + bias), 1, 1]


@row("conv2d_weight_gradient", stride=1)
def _(r):
    x, dy = r.randn(2, 7, 9, 8), r.randn(2, 7, 9, 16, scale=0.1)
    return [x, dy, Out(np.einsum("bpqrsc,bpqo->rsco", windows(x, 3, 1, 1), wide(dy))), 1, 1]


@row("conv2d_input_gradient", stride=1)
def _(r):
    dy, w = r.randn(2, 7, 9, 16, scale=0.1), r.randn(3, 3, 8, 16)
    return [dy, w, Out(np.einsum("bpqrso,rsco->bpqc", windows(dy, 3, 1, 1), wide(w)[::-1, ::-1])), 1, 1]


@row("conv1d", stride=1)
def _(r):
    x, w, bias = r.randn(2, 20, 8), r.randn(3, 8, 16, scale=0.2), r.randn(16)
    padded = np.pad(wide(x), ((0, 0), (1, 1), (0, 0)))
    return [x, w, bias, Out(sum(padded[:, s:s + 20] @ w[s] for s in range(3)) + bias), 1, 1]


@row("conv1d_depthwise", stride=1)
def _(r):
    x, w, bias = r.randn(2, 20, 37), r.randn(3, 37), r.randn(37)
    return [x, w, bias, Out(sum(wide(x)[:, s:s + 18] * w[s] for s in range(3)) + bias), 1, 0]


@row("max_pool2d")
def _(r):
    x = r.randn(2, 7, 9, 37)
    return [x, Out(windows(x, 3, 2, 1, -np.inf).max((3, 4))), 3, 2, 1]


@row("avg_pool2d", count_outside="true")
def _(r):
    x = r.randn(2, 7, 9, 37)
    return [x, Out(windows(x, 3, 2, 1).mean((3, 4))), 3, 2, 1]


def bilinear(x, at):
    """Of one image [H, W, C] at [.., 2], rows and columns; outside is 0."""
    low = np.floor(at).astype(int)
    found = 0.0
    for i in (0, 1):
        for k in (0, 1):
            p, q = low[..., 0] + i, low[..., 1] + k
            share = (1 - np.abs(at[..., 0] - p)) * (1 - np.abs(at[..., 1] - q))
            inside = (p >= 0) & (p < x.shape[0]) & (q >= 0) & (q < x.shape[1])
            found = found + (share * inside)[..., None] * x[np.clip(p, 0, x.shape[0] - 1), np.clip(q, 0, x.shape[1] - 1)]
    return found


@row("grid_sample")
def _(r):
    x, at = r.randn(2, 5, 7, 9), r.rand(2, 11, 2) * np.float32(2.2) - np.float32(1.1)
    place = ((wide(at)[..., ::-1] + 1) * np.array([5, 7]) - 1) / 2
    return [x, at, Out(np.stack([bilinear(wide(x[b]), place[b]) for b in range(2)]))]


@row("resize")
def _(r):
    x, p, q = r.randn(2, 3, 5, 9), 7, 4
    rows, columns = (np.clip((np.arange(n) + 0.5) * size / n - 0.5, 0, size - 1) for n, size in ((p, 3), (q, 5)))
    at = np.stack(np.meshgrid(rows, columns, indexing="ij"), -1)
    return [x, Out(np.stack([bilinear(wide(image), at) for image in x]))]


# ---- attention ----

def attend(q, k, v, scale, keeps=None):
    """[heads, S, D] by [groups, L, D]: results, and the logarithm of the sum of each row."""
    heads = q.shape[0] // k.shape[0]
    k, v = np.repeat(wide(k), heads, 0), np.repeat(wide(v), heads, 0)
    scores = wide(q) @ k.transpose(0, 2, 1) * scale
    if keeps is not None:
        scores = np.where(keeps, scores, -np.inf)
    return softmax(scores) @ v, np.log(np.exp(scores).sum(-1))


S, D, SCALE = 20, 16, 0.25
CAUSAL = np.tril(np.ones((S, S), bool))


def tensors(r, *more):
    return (r.randn(1, 4, S, D), r.randn(1, 2, S, D), r.randn(1, 2, S, D), *more)


def variants(name, **settings):
    for causal in (False, True):
        @row(name, causal=str(causal).lower(), **settings)
        def _(r, causal=causal):
            q, k, v = tensors(r)
            o, lse = attend(q[0], k[0], v[0], SCALE, CAUSAL if causal else None)
            if name == "attention_scored":
                return [q, k, v, np.full(4, -np.inf, np.float32), Out(o[None]), SCALE]
            return [q, k, v, Out(o[None]), *([Out(lse[None])] if name == "attention_lse" else []), SCALE]


variants("attention")
variants("attention_lse")
variants("attention_scored")


@row("attention_window")
def _(r):
    q, k, v = tensors(r)
    ahead = np.arange(S)[:, None] - np.arange(S)
    return [q, k, v, Out(attend(q[0], k[0], v[0], SCALE, (ahead >= 0) & (ahead < 5))[0][None]), SCALE, 5]


def attend_backward(q, k, v, do, scale, keeps):
    """Of [heads, S, D] by [groups, L, D]: o, lse, and the gradients of q, k and v."""
    o, lse = attend(q, k, v, scale, keeps)
    heads = q.shape[0] // k.shape[0]
    wide_k, wide_v = np.repeat(wide(k), heads, 0), np.repeat(wide(v), heads, 0)
    p = np.where(keeps, np.exp(wide(q) @ wide_k.transpose(0, 2, 1) * scale - lse[..., None]), 0)
    dp = wide(do) @ wide_v.transpose(0, 2, 1)
    ds = p * (dp - (wide(do) * o).sum(-1, keepdims=True)) * scale
    dq, dk, dv = ds @ wide_k, ds.transpose(0, 2, 1) @ wide(q), p.transpose(0, 2, 1) @ wide(do)
    return o, lse, dq, *(g.reshape(k.shape[0], heads, *k.shape[1:]).sum(1) for g in (dk, dv))


@row("attention_backward", causal="true")
def _(r):
    q, k, v, do = tensors(r, r.randn(1, 4, S, D))
    o, lse, *gradients = attend_backward(q[0], k[0], v[0], do[0], SCALE, CAUSAL)
    return [q, k, v, o[None].astype(np.float32), lse[None].astype(np.float32), do, *(Out(g[None]) for g in gradients), SCALE]


def packed(r):
    cu = np.array([0, 7, 7, 20], np.int32)
    q, k, v = r.randn(S, 4, D), r.randn(S, 2, D), r.randn(S, 2, D)
    return q, k, v, cu, [slice(x, y) for x, y in zip(cu, cu[1:])]


def varlen(name):
    @row(name, causal="false")
    def _(r):
        q, k, v, cu, parts = packed(r)
        found = [attend(q[p].transpose(1, 0, 2), k[p].transpose(1, 0, 2), v[p].transpose(1, 0, 2), SCALE) for p in parts if p.stop > p.start]
        o = np.concatenate([one.transpose(1, 0, 2) for one, _ in found])
        lse = np.concatenate([one for _, one in found], 1)
        return [q, k, v, cu, cu, Out(o), *([Out(lse)] if name.endswith("lse") else []), 13, SCALE]


varlen("attention_varlen")
varlen("attention_varlen_lse")


def varlen_backward(causal):
    @row("attention_varlen_backward", causal=str(causal).lower())
    def _(r):
        q, k, v, cu, parts = packed(r)
        do, found = r.randn(S, 4, D), []
        for p in parts:
            n = p.stop - p.start
            keeps = CAUSAL[:n, :n] if causal else np.ones((n, n), bool)
            if n:
                found.append(attend_backward(*(x[p].transpose(1, 0, 2) for x in (q, k, v, do)), SCALE, keeps))
        o, lse, dq, dk, dv = (np.concatenate(one, 1) for one in zip(*found))
        o, dq, dk, dv = (x.transpose(1, 0, 2) for x in (o, dq, dk, dv))
        return [q, k, v, cu, cu, np.ascontiguousarray(o, np.float32), lse.astype(np.float32), do, Out(dq), Out(dk), Out(dv), 13, 13, SCALE]


varlen_backward(False)
varlen_backward(True)


@row("attention_paged")
def _(r):
    q, k, v = r.randn(2, 4, D), r.randn(6, 8, 2, D), r.randn(6, 8, 2, D)
    table, lengths = np.array([[4, 1, 0], [3, 5, 2]], np.int32), np.array([19, 9], np.int32)
    o = []
    for b in range(2):
        keys, values = (x[table[b]].reshape(24, 2, D)[:lengths[b]].transpose(1, 0, 2) for x in (k, v))
        o.append(attend(q[b][:, None], keys, values, SCALE)[0][:, 0])
    return [q, k, v, table, lengths, Out(np.stack(o)), SCALE]


# ---- draws, of which any will do that is allowed ----

@row("dropout")
def _(r):
    x = r.rand(40, 50) + np.float32(1)

    def check(y):
        kept = y != 0
        return abs(kept.mean() - 0.9) < 0.05 and np.allclose(y, np.where(kept, x / np.float32(0.9), 0), rtol=1e-6)
    return [x, Any(check, x.shape), 0.1, 7]


@row("multinomial")
def _(r):
    w = r.rand(5, 101) * (r.rand(5, 101) < 0.1)

    def check(drawn):
        return (drawn >= 0).all() and (np.take_along_axis(w, drawn, 1) > 0).all()
    return [w, Any(check, (5, 3), np.int64), 1, 0]


def sampled(name, most):
    @row(name)
    def _(r):
        x = r.randn(5, 101)
        order = np.argsort(-x, 1, kind="stable")[:, :most]
        top = softmax(np.take_along_axis(wide(x), order, 1) / 0.7)
        kept = top.cumsum(1) - top < 0.901

        def check(token):
            return all(token[i] in order[i][kept[i]] for i in range(5))
        return [x, Any(check, (5,), np.int64), 0.7, 0.9, 1, 0]


sampled("sample_rows", 50)
sampled("sample_long", 101)


@row("route")
def _(r):
    x = r.randn(9, 8)
    at = np.argsort(-x, 1, kind="stable")[:, :2]
    taken = (np.arange(8) == at.reshape(-1)[:, None]).astype(int)
    places = np.take_along_axis(taken.cumsum(0) - taken, at.reshape(-1)[:, None], 1).reshape(9, 2)
    return [x, Out(softmax(np.take_along_axis(wide(x), at, 1))), Out(at, np.int32), Out(places, np.int32),
            Out(taken.sum(0), np.int32)]
