"""What the kernels of the standard library compute, by NumPy in f64: rows for test_numpy_stdlib.py, which needs no PyTorch.

A row makes a kernel's arguments in order: inputs as they are given, Out(what a result must be), Up(before, behind) of what is
updated, Any(checks, dtype, shape) of a result that may be one of several."""
import numpy as np

EPS = 1e-5
ROWS = []


class Out:
    def __init__(self, right, dtype=np.float32):
        self.right, self.dtype = np.asarray(right), np.dtype(dtype)


class Up(Out):
    def __init__(self, before, right):
        super().__init__(right, before.dtype)
        self.before = before


class Any:
    def __init__(self, check, shape, dtype=np.float32):
        self.check, self.shape, self.dtype = check, shape, np.dtype(dtype)


class Make:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def randn(self, *shape, scale=1.0):
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def rand(self, *shape):
        return self.random.random(shape, np.float32)

    def ints(self, low, high, *shape, dtype=np.int64):
        return self.random.integers(low, high, shape).astype(dtype)


def row(name, **settings):
    def keep(function):
        ROWS.append((name, settings, function))
        return function
    return keep


def wide(*arrays):
    found = [np.asarray(a, np.float64) for a in arrays]
    return found[0] if len(found) == 1 else found


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of_matrix(names, function, shape=(5, 37), shift=0.0, dtype=np.float32, **settings):
    """Kernels of one matrix that give one result."""
    for name in names.split():
        @row(name, **settings)
        def _(r):
            x = r.randn(*shape) + np.float32(shift)
            return [x, Out(function(wide(x)), dtype)]


# ---- elementwise, softmax, reductions, scans, sorts ----

of_matrix("softmax softmax_row softmax_passes softmax_wide softmax_groups", softmax)
of_matrix("log_softmax_row", log_softmax)
of_matrix("logsumexp logsumexp_row", lambda x: np.log(np.exp(x).sum(1)))
of_matrix("sum_rows", lambda x: x.sum(1), shift=0.25)
of_matrix("mean_rows", lambda x: x.mean(1), shift=0.25)
of_matrix("sum_columns", lambda x: x.sum(0), shift=0.25)
of_matrix("mean_columns", lambda x: x.mean(0), shift=0.25)
of_matrix("sum_all", np.sum, shift=0.25)
of_matrix("mean_all", np.mean, shift=0.25)
of_matrix("max_all", np.max)
of_matrix("norm_all", np.linalg.norm)
of_matrix("argmax_rows", lambda x: x.argmax(1), dtype=np.int64)
of_matrix("welford_rows", lambda x: x.var(1), shift=0.25)
of_matrix("cumsum_rows", lambda x: x.cumsum(1))
of_matrix("cumsum_columns", lambda x: x.cumsum(0))
of_matrix("transpose", lambda x: x.T)
of_matrix("sort_rows", lambda x: np.sort(x, 1), (5, 16))
of_matrix("argsort_rows", lambda x: np.argsort(x, 1, kind="stable"), (5, 16), dtype=np.int64)
of_matrix("sort_long", lambda x: np.sort(x, 1), (2, 300))
of_matrix("argsort_long", lambda x: np.argsort(x, 1, kind="stable"), (2, 300), dtype=np.int64)
of_matrix("map", lambda x: x)
of_matrix("map", lambda x: np.maximum(x, 0), f="relu")
of_matrix("map", lambda x: x * sigmoid(x), f="silu")
of_matrix("map", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), f="gelu_tanh")


def chain(x):
    def first(v):
        return sigmoid(np.exp((np.maximum(np.cos(np.sin(v + 0.1) * 1.1) + 0.2, 0) - 0.1) * 0.5) + 0.3)

    def second(v):
        return sigmoid(np.exp((np.maximum(np.cos(np.sin(v * 1.2) + 0.4) - 0.2, 0) + 0.5) * 0.4) * 1.3)
    return first(second(first(x))).sum(1)


of_matrix("chain", chain)
for _name in ("variance_rows", "variance_rows_merged"):
    @row(_name)
    def _(r):
        x = r.randn(5, 37) + np.float32(0.25)
        return [x, Out(wide(x).var(1, ddof=1)), Out(wide(x).mean(1)), 1]


@row("add")
def _(r):
    x, y = r.randn(5, 37), r.randn(5, 37)
    return [x, y, Out(wide(x) + y)]


@row("zip")
def _(r):
    x, y = r.randn(5, 37), r.randn(5, 37)
    return [x, y, Out(np.logaddexp(wide(x), y))]


@row("axpy")
def _(r):
    x, y = r.randn(1003), r.randn(1003)
    return [x, Up(y, y + 0.5 * wide(x)), 0.5]


@row("linear_recurrence")
def _(r):
    a, x = r.rand(5, 37), r.randn(5, 37)
    h = wide(x).copy()
    for i in range(1, 37):
        h[:, i] += a[:, i] * h[:, i - 1]
    return [a, x, Out(h)]


@row("segmented_cumsum")
def _(r):
    begins, x = r.rand(5, 37) < 0.1, r.randn(5, 37)
    y = wide(x).copy()
    for i in range(1, 37):
        y[:, i] += np.where(begins[:, i], 0, y[:, i - 1])
    return [begins, x, Out(y)]


@row("selective_scan")
def _(r):
    b, l, d, n = 2, 5, 9, 4
    x, dt, a, p, q, own = r.randn(b, l, d), r.rand(b, l, d), -r.rand(d, n), r.randn(b, l, n), r.randn(b, l, n), r.randn(d)
    h, y = np.zeros((b, d, n)), np.empty((b, l, d))
    for i in range(l):
        step, u = wide(dt[:, i], x[:, i])
        h = np.exp(step[..., None] * a) * h + (step * u)[..., None] * p[:, i, None]
        y[:, i] = (h * q[:, i, None]).sum(2) + own * u
    return [x, dt, a, p, q, own, Out(y)]


@row("gated_delta_rule")
def _(r):
    b, l, h, k, v = 2, 5, 2, 8, 9
    q, key, value = r.randn(b, l, h, k), r.randn(b, l, h, k), r.randn(b, l, h, v)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    g, beta, state, o = -r.rand(b, l, h), r.rand(b, l, h), np.zeros((b, h, k, v)), np.empty((b, l, h, v))
    for t in range(l):
        own = wide(key[:, t])[..., None]
        state = state * np.exp(wide(g[:, t]))[..., None, None]
        lacks = (value[:, t] - (own * state).sum(2)) * beta[:, t, :, None]
        state = state + own * lacks[:, :, None]
        o[:, t] = k**-0.5 * (wide(q[:, t])[..., None] * state).sum(2)
    return [q, key, value, g, beta, Out(o), k**-0.5]


@row("topk_rows")
def _(r):
    x = r.randn(5, 37)
    at = np.argsort(-x, 1, kind="stable")[:, :3]
    return [x, Out(np.take_along_axis(x, at, 1)), Out(at, np.int64)]


@row("sort_pairs", U="f32")
def _(r):
    x, v = r.randn(2, 300), r.randn(2, 300)
    at = np.argsort(x, 1, kind="stable")
    return [x, v, Out(np.take_along_axis(x, at, 1)), Out(np.take_along_axis(v, at, 1))]


@row("search_long", right="false")
def _(r):
    s, v = np.sort(r.randn(300)), r.randn(77)
    return [s, v, Out(np.searchsorted(s, v), np.int64)]


@row("unique")
def _(r):
    x = np.sort(r.ints(0, 7, 300)).astype(np.float32)
    values, which = np.unique(x, return_inverse=True)
    return [x, Up(np.zeros_like(x), np.pad(values, (0, 300 - len(values)))), Out(which, np.int64), Out(len(values), np.int64)]


# ---- products ----

def product(name, equation, a, b, **settings):
    @row(name, U="f32", **settings)
    def _(r):
        x, y = r.randn(*a), r.randn(*b)
        return [x, y, Out(np.einsum(equation, *wide(x, y)))]


M, N, K = 21, 37, 29
product("matmul", "mk,kn->mn", (M, K), (K, N))
product("matmul_nt", "mk,nk->mn", (M, K), (N, K))
product("matmul_tn", "km,kn->mn", (K, M), (K, N))
product("matmul_tt", "km,nk->mn", (K, M), (N, K))
product("matmul_split_k", "mk,kn->mn", (M, K), (K, N))
product("matmul_batched", "bmk,bkn->bmn", (2, M, K), (2, K, N))
product("gemv", "mk,k->m", (M, K), (K,))
product("gemv_t", "kn,k->n", (K, N), (K,))


@row("matmul", U="f32", epi="bias_relu")
def _(r):
    a, b, bias = r.randn(M, K), r.randn(K, N), r.randn(N)
    return [a, b, Out(np.maximum(wide(a) @ b + bias, 0)), bias]


@row("matmul_swiglu", U="f32")
def _(r):
    a, gate, up = r.randn(M, K), r.randn(K, N, scale=K**-0.5), r.randn(K, N)
    g = wide(a) @ gate
    return [a, gate, up, Out(g * sigmoid(g) * (wide(a) @ up))]


@row("matmul_grouped", U="f32")
def _(r):
    a, w, begins = r.randn(33, 21), r.randn(3, 21, 40), np.array([0, 7, 7, 33], np.int32)
    right = np.concatenate([wide(a[x:y]) @ w[i] for i, (x, y) in enumerate(zip(begins, begins[1:]))])
    return [a, w, begins, Up(np.zeros((33, 40), np.float32), right)]


@row("matmul_i8", U="f32")
def _(r):
    a, b = r.ints(-128, 128, M, K, dtype=np.int8), r.ints(-128, 128, K, N, dtype=np.int8)
    rows, columns = r.rand(M), r.rand(N)
    return [a, b, rows, columns, Out(wide(a) @ wide(b) * rows[:, None] * columns)]


@row("matmul_int4")
def _(r):
    a, w, scale = r.randn(21, 30), r.ints(0, 256, 15, 37, dtype=np.uint8), r.randn(37, scale=0.1)
    full = np.stack((w & 15, w >> 4), 1).reshape(30, 37).astype(np.float64) - 8
    return [a, w, scale, Out(wide(a) @ full * scale)]


def packed(name, k_rows, order, gptq, multiplies):
    @row(name)
    def _(r):
        n, k, group = 40, 32, 16
        q = r.ints(-(1 << 31), 1 << 31, *((k // 8, n) if gptq else (k, n // 8)), dtype=np.int32)
        zero, scale = r.ints(-(1 << 31), 1 << 31, k // group, n // 8, dtype=np.int32), r.randn(k // group, n, scale=0.1)
        number = np.stack([q >> 4 * p & 15 for p in order], -1)
        number = number.transpose(0, 2, 1).reshape(k, n) if gptq else number.reshape(k, n)
        z = np.stack([zero >> 4 * p & 15 for p in order], -1).reshape(-1, n) + (1 if gptq else 0)
        at = np.arange(k) // group
        w = (number - z[at]) * wide(scale)[at]
        if not multiplies:
            return [q, zero, scale, Out(w), group]
        a = r.randn(5, k)
        return [a, q, zero, scale, Out(wide(a) @ w), group]


for _multiplies in (False, True):
    packed("matmul_gptq" if _multiplies else "dequantise_gptq", 8, range(8), True, _multiplies)
    packed("matmul_awq" if _multiplies else "dequantise_awq", 1, (0, 4, 1, 5, 2, 6, 3, 7), False, _multiplies)


# ---- numbers of few bits ----

@row("quantise_rows")
def _(r):
    x = r.randn(5, 37)
    scale = np.abs(x).max(1) / np.float32(127)
    return [x, Out(np.round(x / scale[:, None]), np.int8), Out(scale)]


@row("quantise_groups")
def _(r):
    x = r.randn(3, 5, 8)
    scale = np.abs(x).max(2) / np.float32(127)
    return [x, Out(np.round(x / scale[..., None]), np.int8), Out(scale)]


@row("dequantise_rows")
def _(r):
    q, scale = r.ints(-127, 128, 5, 37, dtype=np.int8), r.rand(5)
    return [q, scale, Out(wide(q) * scale[:, None])]


@row("dequantise_groups")
def _(r):
    q, scale = r.ints(-127, 128, 3, 5, 8, dtype=np.int8), r.rand(3, 5)
    return [q, scale, Out(wide(q) * scale[..., None])]


# ---- norms ----

@row("layernorm")
def _(r):
    x, g, b = r.randn(5, 37), r.randn(37), r.randn(37)
    v = wide(x)
    return [x, g, b, Out((v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + EPS) * g + b), EPS]


@row("layernorm_row", U="f32")
def _(r):
    x, g, b = r.randn(5, 37), r.randn(37), r.randn(37)
    v = wide(x)
    return [x, g, b, Out((v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + EPS) * g + b), EPS]


@row("layernorm_forward")
def _(r):
    x, g, b = r.randn(5, 37), r.randn(37), r.randn(37)
    v = wide(x)
    mean, rstd = v.mean(1), 1 / np.sqrt(v.var(1) + EPS)
    return [x, g, b, Out((v - mean[:, None]) * rstd[:, None] * g + b), Out(mean), Out(rstd), EPS]


@row("layernorm_backward")
def _(r):
    dy, x, g = r.randn(5, 37), r.randn(5, 37), r.randn(37)
    mean, rstd = x.mean(1), (1 / np.sqrt(x.var(1) + EPS)).astype(np.float32)
    along, hat = wide(dy) * g, (wide(x) - mean[:, None]) * rstd[:, None]
    right = (along - along.mean(1, keepdims=True) - hat * (along * hat).mean(1, keepdims=True)) * rstd[:, None]
    return [dy, x, g, mean, rstd, Out(right)]


@row("layernorm_backward_params")
def _(r):
    dy, x = r.randn(5, 37), r.randn(5, 37)
    mean, rstd = x.mean(1), (1 / np.sqrt(x.var(1) + EPS)).astype(np.float32)
    hat = (wide(x) - mean[:, None]) * rstd[:, None]
    return [dy, x, mean, rstd, Out((dy * hat).sum(0)), Out(wide(dy).sum(0))]


def rms(x):
    return 1 / np.sqrt((wide(x)**2).mean(1) + EPS)


@row("rmsnorm")
def _(r):
    x, g = r.randn(5, 37), r.randn(37)
    return [x, g, Out(x * rms(x)[:, None] * g), EPS]


@row("rmsnorm_row", U="f32")
def _(r):
    x, g = r.randn(5, 37), r.randn(37)
    return [x, g, Out(x * rms(x)[:, None] * g), EPS]


@row("rmsnorm_forward")
def _(r):
    x, g = r.randn(5, 37), r.randn(37)
    return [x, g, Out(x * rms(x)[:, None] * g), Out(rms(x)), EPS]


@row("rmsnorm_backward")
def _(r):
    dy, x, g = r.randn(5, 37), r.randn(5, 37), r.randn(37)
    rstd = rms(x).astype(np.float32)
    along, hat = wide(dy) * g, wide(x) * rstd[:, None]
    return [dy, x, g, rstd, Out((along - hat * (along * hat).mean(1, keepdims=True)) * rstd[:, None])]


@row("rmsnorm_backward_params")
def _(r):
    dy, x = r.randn(5, 37), r.randn(5, 37)
    rstd = rms(x).astype(np.float32)
    return [dy, x, rstd, Out((wide(dy) * x * rstd[:, None]).sum(0))]


@row("group_norm")
def _(r):
    x, g, b = r.randn(2, 8, 37), r.randn(8), r.randn(8)
    v = wide(x).reshape(2, 4, -1)
    v = ((v - v.mean(2, keepdims=True)) / np.sqrt(v.var(2, keepdims=True) + EPS)).reshape(x.shape)
    return [x, g, b, Out(v * g[:, None] + b[:, None]), 4, EPS]


# ---- losses ----

def labelled(r):
    x, t = r.randn(5, 101), r.ints(0, 101, 5)
    return x, t, log_softmax(wide(x))


@row("cross_entropy", I="i64")
def _(r):
    x, t, logs = labelled(r)
    return [x, t, Out(-logs[np.arange(5), t]), Out(np.log(np.exp(wide(x)).sum(1)))]


@row("cross_entropy_backward", I="i64")
def _(r):
    x, t, logs = labelled(r)
    lse, g = np.log(np.exp(wide(x)).sum(1)).astype(np.float32), r.rand(5)
    right = np.exp(logs) - (np.arange(101) == t[:, None])
    return [x, t, lse, g, Out(right * g[:, None])]


@row("smoothed_cross_entropy")
def _(r):
    x, t, logs = labelled(r)
    return [x, t, Out(-0.9 * logs[np.arange(5), t] - 0.1 * logs.mean(1)), 0.1]


@row("focal", I="i64")
def _(r):
    x, t, logs = labelled(r)
    score = logs[np.arange(5), t]
    return [x, t, Out(-(1 - np.exp(score))**2 * score), 2.0]


@row("kl_divergence")
def _(r):
    x, t = (log_softmax(wide(r.randn(5, 37))).astype(np.float32) for _ in range(2))
    return [x, t, Out((np.exp(wide(t)) * (wide(t) - x)).sum(1))]


@row("jsd")
def _(r):
    x, t = (log_softmax(wide(r.randn(5, 37))).astype(np.float32) for _ in range(2))
    a, b = wide(x, t)
    both = np.log(0.5 * (np.exp(a) + np.exp(b)))
    return [x, t, Out(0.5 * (np.exp(a) * (a - both) + np.exp(b) * (b - both)).sum(1))]


@row("huber")
def _(r):
    x, t = r.randn(5, 37), r.randn(5, 37)
    d = np.abs(wide(x) - t)
    return [x, t, Out(np.where(d <= 1, 0.5 * d * d, d - 0.5).mean(1)), 1.0]


@row("cosine_loss")
def _(r):
    a, b, label = r.randn(5, 37), r.randn(5, 37), np.array([1, -1, 1, -1, 1], np.float32)
    c = (wide(a) * b).sum(1) / np.sqrt((wide(a)**2).sum(1) * (wide(b)**2).sum(1))
    return [a, b, label, Out(np.where(label > 0, 1 - c, np.maximum(c - 0.1, 0))), 0.1]


# ---- indices, updates, optimisers ----

@row("take_rows", I="i64")
def _(r):
    x, at = r.randn(50, 37), r.ints(0, 50, 9)
    return [x, at, Out(x[at])]


@row("embedding", I="i64")
def _(r):
    table, at = r.randn(50, 37), r.ints(0, 50, 2, 5)
    return [table, at, Out(table[at])]


def added(r, token_type=np.int64):
    dy, token, table = r.randn(9, 37), r.ints(0, 11, 9, dtype=token_type), r.randn(11, 37)
    right = wide(table).copy()
    np.add.at(right, token, dy)
    return [dy, token, Up(table, right)]


row("embedding_backward", I="i64")(added)
row("embedding_gradient")(added)


@row("take_along_rows", I="i64")
def _(r):
    x, at = r.randn(5, 37), r.ints(0, 37, 5, 37)
    return [x, at, Out(np.take_along_axis(x, at, 1))]


@row("one_hot", I="i64")
def _(r):
    at = r.ints(0, 37, 5)
    return [at, Out(np.arange(37) == at[:, None])]


@row("masked_fill")
def _(r):
    x, mask = r.randn(5, 37), r.rand(5, 37) < 0.5
    return [x, mask, Out(np.where(mask, -1, x)), -1.0]


@row("histogram")
def _(r):
    x = r.ints(0, 7, 1003, dtype=np.int32)
    return [x, Up(np.ones(7, np.int32), 1 + np.bincount(x, minlength=7))]


@row("segment_sum")
def _(r):
    x, at, y = r.randn(1003), np.sort(r.ints(0, 7, 1003, dtype=np.int32)), r.randn(7)
    return [x, at, Up(y, y + np.bincount(at, wide(x), 7))]


@row("adam")
def _(r):
    p, g, m, v = r.randn(1003), r.randn(1003), r.randn(1003, scale=0.1), r.rand(1003) + np.float32(0.1)
    m2, v2 = 0.9 * wide(m) + 0.1 * g, 0.999 * wide(v) + 0.001 * wide(g)**2
    right = p - 0.01 / (1 - 0.9**3) * m2 / (np.sqrt(v2 / (1 - 0.999**3)) + 1e-8)
    return [Up(p, right), g, Up(m, m2), Up(v, v2), 0.01, 0.9, 0.999, 1e-8, 3]


@row("sgd_momentum")
def _(r):
    p, g, v = r.randn(1003), r.randn(1003), r.randn(1003)
    v2 = 0.9 * wide(v) + g + 0.001 * wide(p)
    return [Up(p, p - 0.01 * v2), g, Up(v, v2), 0.01, 0.9, 0.001]


@row("lion")
def _(r):
    p, g, m = r.randn(1003), r.randn(1003), r.randn(1003)
    step = np.sign(0.9 * wide(m) + 0.1 * wide(g)) + 0.1 * wide(p)
    return [Up(p, p - 0.01 * step), g, Up(m, 0.99 * wide(m) + 0.01 * wide(g)), 0.01, 0.9, 0.99, 0.1]


@row("moving_average")
def _(r):
    average, x = r.randn(1003), r.randn(1003)
    return [Up(average, 0.9 * wide(average) + 0.1 * wide(x)), x, 0.9]


@row("muon_momentum")
def _(r):
    g, momentum = r.randn(5, 37), r.randn(5, 37)
    now = 0.95 * wide(momentum) + g
    ahead = 0.95 * now + g
    return [g, Up(momentum, now), Out(ahead / (np.linalg.norm(ahead) + 1e-7)), 0.95]


@row("newton_schulz_step")
def _(r):
    x = r.randn(5, 9, scale=45**-0.5)
    a = wide(x) @ x.T
    return [x, Out(3.4445 * x + (2.0315 * a @ a - 4.775 * a) @ x)]


@row("muon_update")
def _(r):
    p, x = r.randn(5, 37), r.randn(5, 37)
    return [Up(p, p - 0.5 * (wide(x) + 0.01 * wide(p))), x, 0.5, 0.01]


# ---- rotary, Fourier ----

def rotary(name, pairs):
    @row(name)
    def _(r):
        d = 8
        x, c, s = r.randn(2, 3, 4, 2 * d), r.randn(3, d), r.randn(3, d)
        p, q = (x[..., 0::2], x[..., 1::2]) if pairs else (x[..., :d], x[..., d:])
        cosine, sine = wide(c)[None, :, None], wide(s)[None, :, None]
        low, high = p * cosine - q * sine, q * cosine + p * sine
        return [x, c, s, Out(np.stack((low, high), -1).reshape(x.shape) if pairs else np.concatenate((low, high), -1))]


rotary("rotary_halves", False)
rotary("rotary_pairs", True)


@row("fft_rows", inverse="false")
def _(r):
    re, im = r.randn(5, 16), r.randn(5, 16)
    y = np.fft.fft(re + 1j * wide(im))
    return [re, im, Out(y.real), Out(y.imag)]


@row("fft_long", inverse="false")
def _(r):
    re, im = r.randn(3, 4, 8), r.randn(3, 4, 8)
    y = np.fft.fft((re + 1j * wide(im)).reshape(3, 32)).reshape(3, 8, 4)
    return [re, im, Out(y.real), Out(y.imag)]
