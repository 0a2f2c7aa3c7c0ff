"""Rows of the breadth table: kernels of the standard library."""
from breadth_table import Case, MATRICES, TINY_VECTOR, Table, VECTORS

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # only listed
    torch = F = None

TABLE = Table("stdlib")
add = TABLE.add
ROWS = ((16384, 4096), (65536, 256), (64, 8192), (4093, 1037))  # which a tile may hold whole
LONG = ((512, 131072), (4096, 16384), (32, 65536), (1021, 40009))
VOCABULARIES = ((4096, 32000), (2048, 131072), (64, 50257))
EPS = 1e-5
TWO = ((16384, 4096), (1021, 4100))


# ---- elementwise ----

@add("elementwise:add")
def _(r, m, n):
    x, y, z = r.randn(m, n), r.randn(m, n), r.empty(m, n)
    return Case([x, y, z], [z], lambda x, y: x + y, x, y)


@add("elementwise:axpy", VECTORS, TINY_VECTOR)
def _(r, n):
    x, y = r.randn(n), r.randn(n)
    return Case([x, y, 0.5], [y], lambda x, y: torch.add(y, x, alpha=0.5, out=y), x, y.clone(), updates=[y])


def mapped(function, settings, name):
    @add("elementwise:map/" + name, **settings)
    def _(r, m, n):
        x, y = r.randn(m, n), r.empty(m, n)
        return Case([x, y], [y], function, x)


mapped(lambda x: x.clone(), {}, "identity")
mapped(lambda x: torch.relu(x), {"f": "relu"}, "relu")
mapped(lambda x: F.gelu(x), {"f": "gelu"}, "gelu")
mapped(lambda x: F.gelu(x, approximate="tanh"), {"f": "gelu_tanh"}, "gelu_tanh")
mapped(lambda x: F.silu(x), {"f": "silu"}, "silu")


@add("elementwise:zip")
def _(r, m, n):
    x, y, z = r.randn(m, n), r.randn(m, n), r.empty(m, n)
    return Case([x, y, z], [z], torch.logaddexp if torch else None, x, y)


def chain(x):
    def first(v):
        v = torch.relu(torch.cos(torch.sin(v + 0.1) * 1.1) + 0.2) - 0.1
        return torch.sigmoid(torch.exp(v * 0.5) + 0.3)

    def second(v):
        v = torch.relu(torch.cos(torch.sin(v * 1.2) + 0.4) - 0.2) + 0.5
        return torch.sigmoid(torch.exp(v * 0.4) * 1.3)
    return first(second(first(x.float()))).sum(1).to(x.dtype)


@add("elementwise:chain", ((4096, 4096), (65536, 256), (1021, 1037)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m)
    return Case([x, y], [y], chain, x)


# ---- softmax ----

def softmaxes(name, shapes, function, row=False):
    @add("softmax:" + name, shapes)
    def _(r, m, n):
        x, y = r.randn(m, n), r.empty(m) if row else r.empty(m, n)
        return Case([x, y], [y], function, x)


softmaxes("softmax", MATRICES, lambda x: F.softmax(x, -1))
softmaxes("softmax_passes", MATRICES, lambda x: F.softmax(x, -1))
softmaxes("softmax_row", ROWS, lambda x: F.softmax(x, -1))
softmaxes("softmax_wide", LONG, lambda x: F.softmax(x, -1))
softmaxes("softmax_groups", LONG, lambda x: F.softmax(x, -1))
softmaxes("log_softmax_row", ROWS, lambda x: F.log_softmax(x, -1))
softmaxes("logsumexp", MATRICES, lambda x: torch.logsumexp(x, -1), row=True)
softmaxes("logsumexp_row", ROWS, lambda x: torch.logsumexp(x, -1), row=True)


# ---- losses ----

@add("loss:cross_entropy", VOCABULARIES, (5, 101), I="i64")
def _(r, m, v):
    x, t = r.randn(m, v), r.ints(0, v, m)
    loss, lse = r.empty(m, kind=torch.float32), r.empty(m, kind=torch.float32)
    return Case([x, t, loss, lse], [loss], lambda x, t: F.cross_entropy(x, t, reduction="none"), x, t)


@add("loss:cross_entropy_backward", VOCABULARIES, (5, 101), I="i64")
def _(r, m, v):
    x, t = r.randn(m, v), r.ints(0, v, m)
    lse, g, dx = torch.logsumexp(x.float(), 1), r.rand(m, kind=torch.float32), r.empty(m, v)

    def function(x, t, lse, g):
        p = torch.exp(x.float() - lse[:, None])
        p.scatter_add_(1, t[:, None], torch.full_like(lse, -1)[:, None])
        return (p * g[:, None]).to(x.dtype)
    return Case([x, t, lse, g, dx], [dx], function, x, t, lse, g)


# ---- norms ----

def norm_inputs(r, m, n):
    x, g, b = r.randn(m, n), r.f32(n), r.f32(n)
    return x, g, b, g.to(r.kind), b.to(r.kind)


def layer_norm(x, g, b):
    return F.layer_norm(x, x.shape[-1:], g, b, EPS)


def rms_norm(x, g):
    return F.rms_norm(x, x.shape[-1:], g, EPS)


@add("norm:layernorm")
def _(r, m, n):
    x, g, b, gt, bt = norm_inputs(r, m, n)
    y = r.empty(m, n)
    return Case([x, g, b, y, EPS], [y], layer_norm, x, gt, bt)


@add("norm:rmsnorm")
def _(r, m, n):
    x, g, _, gt, _ = norm_inputs(r, m, n)
    y = r.empty(m, n)
    return Case([x, g, y, EPS], [y], rms_norm, x, gt)


@add("norm:layernorm_row", ROWS, U="T")
def _(r, m, n):
    x, _, _, g, b = norm_inputs(r, m, n)
    y = r.empty(m, n)
    return Case([x, g, b, y, EPS], [y], layer_norm, x, g, b)


@add("norm:rmsnorm_row", ROWS, U="T")
def _(r, m, n):
    x, _, _, g, _ = norm_inputs(r, m, n)
    y = r.empty(m, n)
    return Case([x, g, y, EPS], [y], rms_norm, x, g)


@add("norm:layernorm_forward")
def _(r, m, n):
    x, g, b, gt, bt = norm_inputs(r, m, n)
    y, mean, rstd = r.empty(m, n), r.empty(m, kind=torch.float32), r.empty(m, kind=torch.float32)

    def function(x, g, b):
        return torch.ops.aten.native_layer_norm(x, x.shape[-1:], g, b, EPS)[0]
    return Case([x, g, b, y, mean, rstd, EPS], [y], function, x, gt, bt)


def gradients(r, m, n):
    dy, x, g, b, gt, bt = r.randn(m, n), *norm_inputs(r, m, n)
    v = x.float()
    mean = v.mean(1)
    rstd = torch.rsqrt(v.var(1, correction=0) + EPS)
    return dy, x, g, gt, bt, mean, rstd


def layernorm_gradients(mask):
    def function(dy, x, mean, rstd, g, b):
        found = torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[-1:], mean, rstd, g, b, mask)
        return tuple(f for f in found if f is not None)
    return function


def saved(r, mean):
    """Mean or rstd as PyTorch keeps them: f32 on GPUs, of the type on CPUs, a column."""
    return (mean if r.device != "cpu" else mean.to(r.kind))[:, None]


@add("norm:layernorm_backward")
def _(r, m, n):
    dy, x, g, gt, bt, mean, rstd = gradients(r, m, n)
    dx = r.empty(m, n)
    return Case([dy, x, g, mean, rstd, dx], [dx], layernorm_gradients([True, False, False]), dy, x, saved(r, mean),
                saved(r, rstd), gt, bt)


@add("norm:layernorm_backward_params")
def _(r, m, n):
    dy, x, g, gt, bt, mean, rstd = gradients(r, m, n)
    dg, db = r.empty(n, kind=torch.float32), r.empty(n, kind=torch.float32)
    return Case([dy, x, mean, rstd, dg, db], [dg, db], layernorm_gradients([False, True, True]), dy, x, saved(r, mean),
                saved(r, rstd), gt, bt)


@add("norm:rmsnorm_forward")
def _(r, m, n):
    x, g, _, gt, _ = norm_inputs(r, m, n)
    y, rstd = r.empty(m, n), r.empty(m, kind=torch.float32)
    return Case([x, g, y, rstd, EPS], [y], rms_norm, x, gt)


def rms_inputs(r, m, n):
    dy, x, g = r.randn(m, n), r.randn(m, n), r.f32(n)
    return dy, x, g, torch.rsqrt(x.float().square().mean(1) + EPS)


@add("norm:rmsnorm_backward")
def _(r, m, n):
    dy, x, g, rstd = rms_inputs(r, m, n)
    dx = r.empty(m, n)

    def function(dy, x, g, rstd):
        along, xhat = dy.float() * g, x.float() * rstd[:, None]
        return ((along - xhat * (along * xhat).mean(1, keepdim=True)) * rstd[:, None]).to(x.dtype)
    return Case([dy, x, g, rstd, dx], [dx], function, dy, x, g, rstd)


@add("norm:rmsnorm_backward_params")
def _(r, m, n):
    dy, x, _, rstd = rms_inputs(r, m, n)
    dg = r.empty(n, kind=torch.float32)
    return Case([dy, x, rstd, dg], [dg], lambda dy, x, rstd: (dy.float() * x.float() * rstd[:, None]).sum(0), dy, x, rstd)


@add("norm:group_norm", ((32, 512, 4096), (256, 64, 49), (1, 320, 16384), (7, 96, 3001)), (2, 8, 37))
def _(r, b, c, p):
    x, y, gamma, beta = r.randn(b, c, p), r.empty(b, c, p), r.f32(c), r.f32(c)
    groups = 32 if c % 32 == 0 else 4
    return Case([x, gamma, beta, y, groups, EPS], [y], lambda x, g, b: F.group_norm(x, groups, g, b, EPS), x,
                gamma.to(r.kind), beta.to(r.kind))


# ---- running sums, dropout, indices ----

@add("cumsum:cumsum_rows")
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.cumsum(x, 1), x)


@add("cumsum:cumsum_columns")
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.cumsum(x, 0), x, loose=2e-2)


@add("dropout:dropout")
def _(r, m, n):
    x, y = r.rand(m, n) + 1, r.empty(m, n)

    def error(results, _):
        kept = results[0] != 0
        share = abs(float(kept.float().mean()) - 0.9)
        right = torch.where(kept, x.float() / 0.9, 0)
        wrong = float((results[0].float() - right).abs().max())
        return wrong if share < 0.05 + 1 / x.numel() ** 0.5 else float("inf")
    return Case([x, y, 0.1, 7], [y], lambda x: F.dropout(x, 0.1, True), x, error=error, loose=2e-2)


@add("index:take_rows", ((65536, 4096), (262144, 128), (512, 4096), (4093, 1037)), (9, 37), I="i64")
def _(r, k, d):
    x, at, y = r.randn(32000 if r.device != "cpu" else 50, d), r.ints(0, 50 if r.device == "cpu" else 32000, k), r.empty(k, d)
    return Case([x, at, y], [y], lambda x, at: x.index_select(0, at), x, at, moved=2 * y.numel() * y.element_size())


@add("index:embedding", ((16, 4096, 1024), (4, 2048, 4096), (512, 128, 128), (3, 333, 1037)), (2, 5, 37), I="i64")
def _(r, b, s, d):
    table, token, y = r.randn(50257, d), r.ints(0, 50257, b, s), r.empty(b, s, d)
    return Case([table, token, y], [y], lambda t, at: F.embedding(at, t), table, token,
                moved=2 * y.numel() * y.element_size())


@add("index:embedding_backward", ((8192, 1024), (4096, 4096), (1021, 129)), (9, 37), I="i64")
def _(r, k, d):
    dy, token, table = r.randn(k, d), r.ints(0, 32000, k), r.zeros(32000, d, kind=torch.float32)

    def function(table, token, dy):
        return table.index_add_(0, token, dy.float())
    return Case([dy, token, table], [table], function, table.clone(), token, dy, updates=[table],
                moved=dy.numel() * (dy.element_size() + 8))


@add("index:take_along_rows", tiny=(5, 37), I="i64")
def _(r, m, n):
    x, at, y = r.randn(m, n), r.ints(0, n, m, n), r.empty(m, n)
    return Case([x, at, y], [y], lambda x, at: x.gather(1, at), x, at)


@add("index:one_hot", ((8192, 32000), (65536, 1000), (1021, 1037)), (5, 37), I="i64")
def _(r, k, n):
    at, y = r.ints(0, n, k), r.empty(k, n)
    return Case([at, y], [y], lambda at: F.one_hot(at, n).to(y.dtype), at,
                also=[lambda at: torch.zeros_like(y).scatter_(1, at[:, None], 1)])


@add("index:masked_fill")
def _(r, m, n):
    x, mask, y = r.randn(m, n), r.rand(m, n, kind=torch.float32) < 0.5, r.empty(m, n)
    return Case([x, mask, y, -1.0], [y], lambda x, mask: x.masked_fill(mask, -1), x, mask)


# ---- reductions ----

def reduction(name, shape, function, loose=None, out=None, extra=(), results=1):
    """`shape` (m, n) -> of the result; `out`: its type where it is not the row's; `results`: how many are compared."""
    @add("reduce:" + name)
    def _(r, m, n):
        x = r.randn(m, n) + 0.25
        outs = [r.empty(*shape(m, n), kind=out() if out else None) for _ in range(results)]
        return Case([x, *outs, *extra], outs, function, x, loose=loose)


def f32():
    return torch.float32


reduction("sum_rows", lambda m, n: (m,), lambda x: x.sum(1))
reduction("sum_columns", lambda m, n: (n,), lambda x: x.sum(0))
reduction("mean_rows", lambda m, n: (m,), lambda x: x.mean(1))
reduction("mean_columns", lambda m, n: (n,), lambda x: x.mean(0))
reduction("variance_rows", lambda m, n: (m,), lambda x: torch.var_mean(x.float(), 1), out=f32, extra=[1], results=2)
reduction("variance_rows_merged", lambda m, n: (m,), lambda x: torch.var_mean(x.float(), 1), out=f32, extra=[1], results=2)
reduction("sum_all", lambda m, n: (), lambda x: x.sum(dtype=torch.float32), out=f32, loose=1e-4)
reduction("mean_all", lambda m, n: (), lambda x: x.mean(dtype=torch.float32), out=f32, loose=1e-4)
reduction("max_all", lambda m, n: (), lambda x: x.max().float(), out=f32)
reduction("norm_all", lambda m, n: (),
          lambda x: torch.linalg.vector_norm(x, dtype=torch.promote_types(x.dtype, torch.float32)), out=f32, loose=1e-4)


@add("reduce:argmax_rows")
def _(r, m, n):
    x, at = r.randn(m, n), r.empty(m, kind=torch.int64)

    def error(results, expected):  # of equal elements any place will do
        return float((x.gather(1, results[0].clamp(0, n - 1)[:, None]) != x.gather(1, expected[0][:, None])).float().sum())
    return Case([x, at], [at], lambda x: x.argmax(1), x, error=error)


# ---- rotary, scans, transpose ----

HEADS = ((4, 4096, 32, 64), (16, 1024, 16, 32), (1, 8192, 8, 64), (3, 777, 9, 40))


def rotary(name, pairs):
    @add("rotary:" + name, HEADS, (2, 3, 4, 8))
    def _(r, b, s, h, d):
        x, c, t, y = r.randn(b, s, h, 2 * d), r.f32(s, d), r.f32(s, d), r.empty(b, s, h, 2 * d)

        def function(x, c, t):
            c, t = c[None, :, None, :], t[None, :, None, :]
            v = x.float()
            p, q = (v[..., 0::2], v[..., 1::2]) if pairs else (v[..., :d], v[..., d:])
            low, high = p * c - q * t, q * c + p * t
            return (torch.stack((low, high), -1).flatten(-2) if pairs else torch.cat((low, high), -1)).to(x.dtype)
        return Case([x, c, t, y], [y], function, x, c, t)


rotary("rotary_halves", False)
rotary("rotary_pairs", True)
SCANS = ((16384, 4096), (65536, 256), (32, 65536), (1021, 1037))


@add("scan:welford_rows")
def _(r, m, n):
    x, v = r.randn(m, n) + 0.25, r.empty(m)
    return Case([x, v], [v], lambda x: x.var(1, correction=0), x)


@add("scan:linear_recurrence", SCANS)
def _(r, m, n):
    a, x, h = r.rand(m, n), r.randn(m, n), r.empty(m, n)

    def function(a, x):  # steps are composed with those 1, 2, 4, .. before them
        p, q, step = a.float(), x.float(), 1
        while step < n:
            q = torch.cat((q[:, :step], q[:, step:] + p[:, step:] * q[:, :-step]), 1)
            p = torch.cat((p[:, :step], p[:, step:] * p[:, :-step]), 1)
            step *= 2
        return q.to(x.dtype)
    return Case([a, x, h], [h], function, a, x)


@add("scan:segmented_cumsum", SCANS)
def _(r, m, n):
    begins, x, y = r.rand(m, n, kind=torch.float32) < 0.05, r.randn(m, n), r.empty(m, n)

    def function(begins, x):
        total = torch.cumsum(x.float(), 1)
        place = torch.where(begins, torch.arange(n, device=x.device), -1)
        last = torch.cummax(place, 1).values
        before = (total - x.float()).gather(1, last.clamp(min=0))
        return (total - torch.where(last >= 0, before, 0)).to(x.dtype)
    return Case([begins, x, y], [y], function, begins, x, loose=2e-2 if r.name == "bf16" else 1e-3)


@add("transpose:transpose", ((16384, 8192), (65536, 256), (64, 65536), (4093, 1037)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(n, m)
    return Case([x, y], [y], lambda x: x.t().contiguous(), x)


# ---- optimisers ----

STEPS = ((1 << 26,), (1000003,))


@add("optimisers:adam", STEPS, TINY_VECTOR)
def _(r, n):
    p, g = r.randn(n), r.randn(n)
    m, v = r.randn(n, kind=torch.float32, scale=0.1), r.rand(n, kind=torch.float32) + 0.1
    c1, c2 = 1 - 0.9**3, 1 - 0.999**3

    def function(p, g, m, v):
        m.lerp_(g.float(), 0.1)
        v.mul_(0.999).addcmul_(g.float(), g.float(), value=0.001)
        p.sub_(0.01 / c1 * m / ((v / c2).sqrt() + 1e-8))
        return p, m, v
    return Case([p, g, m, v, 0.01, 0.9, 0.999, 1e-8, 3], [p, m, v], function, p.clone(), g, m.clone(), v.clone(),
                updates=[p, m, v])


@add("optimisers:sgd_momentum", STEPS, TINY_VECTOR)
def _(r, n):
    p, g, v = r.randn(n), r.randn(n), r.randn(n, kind=torch.float32)

    def function(p, g, v):
        v.mul_(0.9).add_(g.float() + 0.001 * p.float())
        p.sub_((0.01 * v).to(p.dtype))
        return p, v
    return Case([p, g, v, 0.01, 0.9, 0.001], [p, v], function, p.clone(), g, v.clone(), updates=[p, v])


@add("optimisers:lion", STEPS, TINY_VECTOR)
def _(r, n):
    p, g, m = r.randn(n), r.randn(n), r.randn(n, kind=torch.float32)

    def function(p, g, m):
        p.sub_((0.01 * (torch.sign(0.9 * m + 0.1 * g.float()) + 0.1 * p.float())).to(p.dtype))
        m.mul_(0.99).add_(g.float(), alpha=0.01)
        return p, m
    return Case([p, g, m, 0.01, 0.9, 0.99, 0.1], [p, m], function, p.clone(), g, m.clone(), updates=[p, m])


@add("optimisers:moving_average", STEPS, TINY_VECTOR)
def _(r, n):
    average, x = r.randn(n, kind=torch.float32), r.randn(n)
    return Case([average, x, 0.9], [average], lambda a, x: a.lerp_(x.float(), 0.1), average.clone(), x, updates=[average])


# ---- losses ----

@add("loss:smoothed_cross_entropy", ((4096, 32000), (64, 50257)), (5, 101))
def _(r, m, v):
    x, t, loss = r.randn(m, v), r.ints(0, v, m), r.empty(m, kind=torch.float32)
    return Case([x, t, loss, 0.1], [loss], lambda x, t: F.cross_entropy(x.float(), t, reduction="none", label_smoothing=0.1),
                x, t, also=[lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1)])


@add("loss:kl_divergence", TWO)
def _(r, m, n):
    x, t = (F.log_softmax(r.randn(m, n), 1) for _ in range(2))
    loss = r.empty(m, kind=torch.float32)
    return Case([x, t, loss], [loss], lambda x, t: F.kl_div(x.float(), t.float(), reduction="none", log_target=True).sum(1),
                x, t, also=[lambda x, t: F.kl_div(x, t, reduction="none", log_target=True).sum(1)])


@add("loss:huber", TWO)
def _(r, m, n):
    x, t, loss = r.randn(m, n), r.randn(m, n), r.empty(m, kind=torch.float32)
    return Case([x, t, loss, 1.0], [loss], lambda x, t: F.huber_loss(x.float(), t.float(), reduction="none").mean(1), x, t,
                also=[lambda x, t: F.huber_loss(x, t, reduction="none").mean(1)])


@add("loss:cosine_loss", TWO)
def _(r, m, n):
    a, b, loss = r.randn(m, n), r.randn(m, n), r.empty(m, kind=torch.float32)
    label = torch.where(r.rand(m, kind=torch.float32) < 0.5, 1.0, -1.0)

    def function(a, b, label):
        return F.cosine_embedding_loss(a.float(), b.float(), label, margin=0.1, reduction="none")
    return Case([a, b, label, loss, 0.1], [loss], function, a, b, label,
                also=[lambda a, b, y: F.cosine_embedding_loss(a, b, y, margin=0.1, reduction="none")])
