"""Rows of the breadth table: kernels of the standard library that sort, draw, route, update, transform or have numbers of few
bits."""
from breadth_table import Case, Table

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # only listed
    torch = F = None

TABLE = Table("stdlib")
add = TABLE.add
TWO = ((16384, 4096), (1021, 4100))


# ---- updates ----

@add("updates:histogram", ((1 << 26, 256), (1000003, 65536)), (1003, 7), types=("f32",))
def _(r, n, b):
    x, bins = r.ints(0, b, n, kind=torch.int32), r.zeros(b, kind=torch.int32)
    return Case([x, bins], [bins], lambda x: torch.bincount(x, minlength=b), x, updates=[bins],
                also=[lambda x: torch.histc(x.float(), b, 0, b - 1)])


@add("updates:segment_sum", ((1 << 24, 65536), (1000003, 101)), (1003, 7))
def _(r, n, s):
    x, at, y = r.randn(n), torch.sort(r.ints(0, s, n, kind=torch.int32)).values, r.zeros(s, kind=torch.float32)
    return Case([x, at, y], [y], lambda y, at, x: y.index_add_(0, at, x.float()), y.clone(), at, x, updates=[y], loose=1e-3)


@add("updates:embedding_gradient", ((16384, 32000, 1024), (1021, 257, 129)), (9, 11, 37))
def _(r, k, v, d):
    dy, token, table = r.randn(k, d), r.ints(0, v, k), r.zeros(v, d, kind=torch.float32)

    def function(table, token, dy):
        return table.index_add_(0, token, dy.float())
    return Case([dy, token, table], [table], function, table.clone(), token, dy, updates=[table], loose=1e-4,
                also=[lambda t, at, dy: torch.ops.aten.embedding_dense_backward(dy, at, v, -1, False)],
                moved=dy.numel() * (dy.element_size() + 8))


# ---- numbers of few bits ----

@add("quantise:quantise_rows", TWO)
def _(r, m, n):
    x, q, s = r.randn(m, n), r.empty(m, n, kind=torch.int8), r.empty(m, kind=torch.float32)

    def function(x):
        v = x.float()
        scale = v.abs().amax(1).clamp(min=1e-20) / 127
        return torch.round(v / scale[:, None]).clamp(-127, 127).to(torch.int8), scale
    return Case([x, q, s], [q, s], function, x, loose=1e-3)


@add("quantise:dequantise_rows", TWO)
def _(r, m, n):
    q, s, y = r.ints(-127, 128, m, n, kind=torch.int8), r.rand(m, kind=torch.float32), r.empty(m, n)
    return Case([q, s, y], [y], lambda q, s: (q.float() * s[:, None]).to(y.dtype), q, s)


@add("quantise:cast_float8", TWO)
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n, kind=torch.float8_e4m3fn)
    return Case([x, y, 3.0], [y], lambda x: (x.float() * 3).clamp(-448, 448).to(torch.float8_e4m3fn), x, loose=2e-2)


@add("quantise:matmul_int4", ((64, 4096, 4096), (2048, 4096, 4096), (33, 1000, 1026)), (21, 37, 30))
def _(r, m, n, k):
    k -= k % 2  # what is left of a shape on a CPU may be odd
    a, w = r.randn(m, k), r.ints(0, 256, k // 2, n, kind=torch.uint8)
    scale, c = r.f32(n, scale=0.1), r.empty(m, n)

    def function(a, w, scale):
        full = torch.stack(((w & 15).to(a.dtype), (w >> 4).to(a.dtype)), 1).view(k, n) - 8
        return ((a @ full).float() * scale).to(a.dtype)
    return Case([a, w, scale, c], [c], function, a, w, scale, flops=2 * m * n * k)


@add("quantise:quantise_groups", ((16384, 128, 32), (1021, 33, 128)), (3, 5, 8))
def _(r, m, p, g):
    x, q, s = r.randn(m, p, g), r.empty(m, p, g, kind=torch.int8), r.empty(m, p, kind=torch.float32)

    def function(x):
        v = x.float()
        scale = v.abs().amax(2).clamp(min=1e-20) / 127
        return torch.round(v / scale[..., None]).clamp(-127, 127).to(torch.int8), scale
    return Case([x, q, s], [q, s], function, x, loose=1e-3)


@add("quantise:dequantise_groups", ((16384, 128, 32), (1021, 33, 128)), (3, 5, 8))
def _(r, m, p, g):
    q, s, y = r.ints(-127, 128, m, p, g, kind=torch.int8), r.rand(m, p, kind=torch.float32), r.empty(m, p, g)
    return Case([q, s, y], [y], lambda q, s: (q.float() * s[..., None]).to(y.dtype), q, s)


# ---- sorts, draws, routing ----

SORTS = ((65536, 1024), (1021, 250))


@add("sort:sort_rows", SORTS, (5, 16))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: x.sort(1).values, x)


@add("sort:argsort_rows", SORTS, (5, 16))
def _(r, m, n):
    x, at = r.randn(m, n), r.empty(m, n, kind=torch.int64)
    return Case([x, at], [at], lambda x: x.sort(dim=1, stable=True).indices, x)


@add("sort:topk_rows", ((16384, 4096, 8), (64, 131072, 64)), (5, 37, 3))
def _(r, m, n, k):
    x, y, at = r.randn(m, n), r.empty(m, k), r.empty(m, k, kind=torch.int64)
    return Case([x, y, at], [y], lambda x: x.topk(k, 1).values, x)


@add("sampling:sample_rows", ((4096, 32000), (64, 131072)), (5, 101))
def _(r, m, v):
    x, token = r.randn(m, v), r.empty(m, kind=torch.int64)

    def function(x):
        top, place = x.float().topk(50, 1) if v >= 50 else x.float().topk(v, 1)
        p = torch.softmax(top / 0.7, 1)
        p = torch.where(p.cumsum(1) - p < 0.9, p, 0)
        return place.gather(1, torch.multinomial(p, 1))[:, 0]

    def error(results, expected):  # other draws: of the greatest 50 all the same
        least = x.float().topk(min(v, 50), 1).values[:, -1]
        return float((x.float().gather(1, results[0][:, None])[:, 0] < least).float().sum())
    return Case([x, token, 0.7, 0.9, 1, 0], [token], function, x, error=error)


@add("routing:route", ((65536, 64, 8), (1021, 8, 2)), (9, 8, 2))
def _(r, m, e, k):
    x, weight, expert = r.randn(m, e), r.empty(m, k, kind=torch.float32), r.empty(m, k, kind=torch.int32)
    place, count = r.empty(m, k, kind=torch.int32), r.empty(e, kind=torch.int32)

    def function(x):
        v, i = x.float().topk(k, 1)
        taken = F.one_hot(i.flatten(), e)
        places = (taken.cumsum(0) - taken).gather(1, i.flatten()[:, None]).view(m, k)
        return torch.softmax(v, 1), i.int(), places.int(), taken.sum(0).int()
    return Case([x, weight, expert, place, count], [weight], function, x)


# ---- losses of distributions, state spaces, points, Fourier transforms ----

@add("loss:jsd", TWO)
def _(r, m, n):
    x, t = (F.log_softmax(r.randn(m, n), 1) for _ in range(2))
    loss = r.empty(m, kind=torch.float32)

    def function(x, t):
        a, b = x.float(), t.float()
        both = (0.5 * (a.exp() + b.exp())).log()
        return 0.5 * (a.exp() * (a - both) + b.exp() * (b - both)).sum(1)
    return Case([x, t, loss], [loss], function, x, t, loose=1e-3)


@add("loss:focal", ((4096, 32000), (64, 50257)), (5, 101), I="i64")
def _(r, m, v):
    x, t, loss = r.randn(m, v), r.ints(0, v, m), r.empty(m, kind=torch.float32)

    def function(x, t):
        score = -F.cross_entropy(x.float(), t, reduction="none")
        return -(1 - score.exp()) ** 2 * score
    return Case([x, t, loss, 2.0], [loss], function, x, t)


@add("scan:selective_scan", ((8, 1024, 2048, 16), (1, 333, 130, 16)), (2, 5, 9, 4))
def _(r, b, l, d, n):
    x, dt, y = r.randn(b, l, d), r.rand(b, l, d), r.empty(b, l, d)
    a, p, q, own = -r.rand(d, n, kind=torch.float32), r.randn(b, l, n), r.randn(b, l, n), r.f32(d)

    def function(x, dt, a, p, q, own):
        h, rows = torch.zeros(b, d, n, device=x.device), []
        for i in range(l):
            step, u = dt[:, i].float(), x[:, i].float()
            h = torch.exp(step[..., None] * a) * h + (step * u)[..., None] * p[:, i, None].float()
            rows.append((h * q[:, i, None].float()).sum(2) + own * u)
        return torch.stack(rows, 1).to(x.dtype)
    return Case([x, dt, a, p, q, own, y], [y], function, x, dt, a, p, q, own, loose=2e-2)


@add("resample:grid_sample", ((16, 128, 128, 64, 16384), (2, 33, 57, 19, 1001)), (2, 3, 5, 9, 7))
def _(r, b, h, w, c, p):
    x, y = r.randn(b, h, w, c), r.empty(b, p, c)
    at = r.rand(b, p, 2, kind=torch.float32) * 2.2 - 1.1

    def function(x, at):
        rows = F.grid_sample(x.float().permute(0, 3, 1, 2), at[:, :, None], align_corners=False)
        return rows[..., 0].transpose(1, 2).to(x.dtype)
    return Case([x, at, y], [y], function, x, at, loose=1e-3 if y.dtype == torch.float32 else None)


@add("fourier:fft_rows", ((16384, 1024), (1021, 256)), (5, 16), types=("f32",), inverse="false")
def _(r, m, n):
    re, im, u, v = r.f32(m, n), r.f32(m, n), r.empty(m, n, kind=torch.float32), r.empty(m, n, kind=torch.float32)

    def function(re, im):
        y = torch.fft.fft(torch.complex(re, im))
        return y.real, y.imag
    return Case([re, im, u, v], [u, v], function, re, im)


@add("fourier:fft_long", ((1024, 128, 128), (64, 256, 256)), (3, 4, 8), types=("f32",), inverse="false")
def _(r, m, a, b):
    re, im = r.f32(m, a, b), r.f32(m, a, b)
    u, v = r.empty(m, b, a, kind=torch.float32), r.empty(m, b, a, kind=torch.float32)

    def function(re, im):
        y = torch.fft.fft(torch.complex(re, im).view(m, a * b)).view(m, b, a)
        return y.real, y.imag
    return Case([re, im, u, v], [u, v], function, re, im)


# ---- rows of any length ----

LONG_ROWS = ((64, 131072), (3, 1000003))


@add("radix:sort_long", LONG_ROWS, (2, 300))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: x.sort(1).values, x)


@add("radix:argsort_long", LONG_ROWS, (2, 300))
def _(r, m, n):
    x, at = r.randn(m, n), r.empty(m, n, kind=torch.int64)
    return Case([x, at], [at], lambda x: x.sort(dim=1, stable=True).indices, x)


@add("radix:sort_pairs", LONG_ROWS, (2, 300), U="f32")
def _(r, m, n):
    x, v, y, w = r.randn(m, n), r.f32(m, n), r.empty(m, n), r.empty(m, n, kind=torch.float32)

    def function(x, v):
        order = x.sort(dim=1, stable=True)
        return order.values, v.gather(1, order.indices)
    return Case([x, v, y, w], [y, w], function, x, v)


@add("radix:unique", ((1 << 24, 65536), (1000003, 101)), (300, 7))
def _(r, n, k):
    x = r.ints(0, min(k, 256), n, kind=torch.int32).sort().values.to(r.kind)
    y, which, count = r.zeros(n), r.empty(n, kind=torch.int64), torch.empty((), dtype=torch.int64, device=x.device)
    return Case([x, y, which, count], [which], lambda x: torch.unique_consecutive(x, return_inverse=True)[1], x, updates=[y])


@add("radix:search_long", ((1 << 24, 1 << 20), (1000003, 65537)), (300, 77), right="false")
def _(r, n, k):
    s, v, at = r.randn(n).sort().values, r.randn(k), r.empty(k, kind=torch.int64)
    return Case([s, v, at], [at], lambda s, v: torch.searchsorted(s, v), s, v)


@add("sampling:sample_long", ((1024, 32000), (64, 131072)), (5, 101))
def _(r, m, v):
    x, token = r.randn(m, v), r.empty(m, kind=torch.int64)

    def function(x):
        top, place = torch.softmax(x.float() / 0.7, 1).sort(1, descending=True)
        return place.gather(1, torch.multinomial(torch.where(top.cumsum(1) - top < 0.9, top, 0), 1))[:, 0]

    def error(results, expected):  # other draws: of those that are kept all the same
        top, place = torch.softmax(x.float() / 0.7, 1).sort(1, descending=True)
        least = torch.where(top.cumsum(1) - top < 0.901, top, 2).amin(1)
        return float((torch.softmax(x.float() / 0.7, 1).gather(1, results[0][:, None])[:, 0] < least * 0.999).float().sum())
    return Case([x, token, 0.7, 0.9, 1, 0], [token], function, x, error=error)


@add("sampling:multinomial", ((1024, 32000, 64), (64, 131072, 16)), (5, 101, 3))
def _(r, m, n, k):
    w, drawn = r.rand(m, n), r.empty(m, k, kind=torch.int64)

    def error(results, expected):  # other draws: of weights above 0 all the same
        return float((w.float().gather(1, results[0].clamp(min=0)) <= 0).float().sum() + (results[0] < 0).float().sum())
    return Case([w, drawn, 1, 0], [drawn], lambda w: torch.multinomial(w.float(), k, replacement=True), w, error=error)


# ---- Muon, the delta rule ----

@add("optimisers:muon_momentum", TWO)
def _(r, m, n):
    g, momentum, x = r.randn(m, n), r.f32(m, n), r.empty(m, n, kind=torch.float32)

    def function(g, momentum):
        ahead = momentum.mul_(0.95).add_(g.float()) * 0.95 + g.float()
        return ahead / (ahead.norm() + 1e-7)
    return Case([g, momentum, x, 0.95], [x], function, g, momentum.clone(), updates=[momentum], loose=1e-3)


@add("optimisers:newton_schulz_step", ((1024, 4096), (333, 1001)), (5, 9), types=("f32",))
def _(r, m, n):
    x, y = r.f32(m, n, scale=(m * n) ** -0.5), r.empty(m, n, kind=torch.float32)

    def function(x):
        a = x @ x.T
        return 3.4445 * x + (2.0315 * a @ a - 4.775 * a) @ x
    return Case([x, y], [y], function, x, loose=1e-3, flops=2 * m * m * (2 * n + m))


@add("optimisers:muon_update", TWO)
def _(r, m, n):
    p, x = r.randn(m, n), r.f32(m, n)
    return Case([p, x, 0.5, 0.01], [p], lambda p, x: p.copy_(p.float() - 0.5 * (x + 0.01 * p.float())), p.clone(), x, updates=[p])


@add("scan:gated_delta_rule", ((4, 512, 16, 128, 128), (1, 333, 3, 64, 80)), (2, 5, 2, 8, 9))
def _(r, b, l, h, k, v):
    q, key, value = r.randn(b, l, h, k), F.normalize(r.randn(b, l, h, k).float(), dim=-1), r.randn(b, l, h, v)
    key, g, beta = key.to(q.dtype), -r.rand(b, l, h, kind=torch.float32), r.rand(b, l, h, kind=torch.float32)
    o, scale = r.empty(b, l, h, v), k ** -0.5

    def function(q, key, value, g, beta):
        state, rows = torch.zeros(b, h, k, v, device=q.device), []
        for t in range(l):
            own = key[:, t].float()[..., None]
            state = state * g[:, t, :, None, None].exp()
            lacks = (value[:, t].float() - (own * state).sum(2)) * beta[:, t, :, None]
            state = state + own * lacks[:, :, None]
            rows.append(scale * (q[:, t].float()[..., None] * state).sum(2))
        return torch.stack(rows, 1).to(q.dtype)
    return Case([q, key, value, g, beta, o, scale], [o], function, q, key, value, g, beta, loose=2e-2,
                flops=6 * b * l * h * k * v)


# ---- packed weights, blocks, rows of groups ----

def words(r, *shape):
    return r.ints(-(1 << 31), (1 << 31) - 1, *shape, kind=torch.int32)


def unpacked(q, places):
    return torch.stack([q >> 4 * p & 15 for p in places], -1)


PACKED = ((64, 4096, 4096), (1024, 4096, 4096), (33, 1000, 1024))


@add("quantise:matmul_gptq", PACKED, (5, 40, 32))
def _(r, m, n, k):
    n, k = n // 8 * 8, k // 8 * 8  # what is left of a shape on a CPU may be odd
    group = min(128, k)
    a, q, zero = r.randn(m, k), words(r, k // 8, n), words(r, -(-k // group), n // 8)
    scale, c = r.randn(-(-k // group), n, scale=0.1), r.empty(m, n)

    def function(a, q, zero, scale):
        number = unpacked(q, range(8)).permute(0, 2, 1).reshape(k, n)
        z = unpacked(zero, range(8)).reshape(-1, n) + 1
        rows = torch.arange(k, device=a.device) // group
        return a @ ((number - z[rows]) * scale[rows]).to(a.dtype)
    return Case([a, q, zero, scale, c, group], [c], function, a, q, zero, scale, flops=2 * m * n * k)


@add("quantise:matmul_awq", PACKED, (5, 40, 32))
def _(r, m, n, k):
    n, k = n // 8 * 8, k // 8 * 8
    group, order = min(128, k), (0, 4, 1, 5, 2, 6, 3, 7)
    a, q, zero = r.randn(m, k), words(r, k, n // 8), words(r, -(-k // group), n // 8)
    scale, c = r.randn(-(-k // group), n, scale=0.1), r.empty(m, n)

    def function(a, q, zero, scale):
        number, z = unpacked(q, order).reshape(k, n), unpacked(zero, order).reshape(-1, n)
        rows = torch.arange(k, device=a.device) // group
        return a @ ((number - z[rows]) * scale[rows]).to(a.dtype)
    return Case([a, q, zero, scale, c, group], [c], function, a, q, zero, scale, flops=2 * m * n * k)


@add("quantise:quantise_blocks", ((32, 128, 32, 128), (7, 64, 9, 96)), (3, 4, 2, 8))
def _(r, p, rows, q, columns):
    x, y = r.randn(p, rows, q, columns), r.empty(p, rows, q, columns, kind=torch.float8_e4m3fn)
    s = r.empty(p, q, kind=torch.float32)

    def function(x):
        v = x.float()
        scale = v.abs().amax((1, 3)).clamp(min=1e-20) / 448
        return (v / scale[:, None, :, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale
    return Case([x, y, s], [y, s], function, x, loose=0.1)


@add("quantise:dequantise_blocks", ((32, 128, 32, 128), (7, 64, 9, 96)), (3, 4, 2, 8))
def _(r, p, rows, q, columns):
    x, y = r.randn(p, rows, q, columns, kind=torch.float32).to(torch.float8_e4m3fn), r.empty(p, rows, q, columns)
    s = r.rand(p, q, kind=torch.float32)
    return Case([x, s, y], [y], lambda x, s: (x.float() * s[:, None, :, None]).to(y.dtype), x, s)


WEIGHTS = ((4096, 4096), (1000, 1024))


@add("quantise:dequantise_gptq", WEIGHTS, (40, 32))
def _(r, n, k):
    n, k = n // 8 * 8, k // 8 * 8
    group = min(128, k)
    q, zero = words(r, k // 8, n), words(r, -(-k // group), n // 8)
    scale, w = r.randn(-(-k // group), n, scale=0.1), r.empty(k, n)

    def function(q, zero, scale):
        number = unpacked(q, range(8)).permute(0, 2, 1).reshape(k, n)
        z = unpacked(zero, range(8)).reshape(-1, n) + 1
        rows = torch.arange(k, device=q.device) // group
        return ((number - z[rows]) * scale[rows].float()).to(scale.dtype)
    return Case([q, zero, scale, w, group], [w], function, q, zero, scale)


@add("quantise:dequantise_awq", WEIGHTS, (40, 32))
def _(r, n, k):
    n, k = n // 8 * 8, k // 8 * 8
    group, order = min(128, k), (0, 4, 1, 5, 2, 6, 3, 7)
    q, zero = words(r, k, n // 8), words(r, -(-k // group), n // 8)
    scale, w = r.randn(-(-k // group), n, scale=0.1), r.empty(k, n)

    def function(q, zero, scale):
        number, z = unpacked(q, order).reshape(k, n), unpacked(zero, order).reshape(-1, n)
        rows = torch.arange(k, device=q.device) // group
        return ((number - z[rows]) * scale[rows].float()).to(scale.dtype)
    return Case([q, zero, scale, w, group], [w], function, q, zero, scale)


@add("resample:resize", ((16, 128, 128, 64, 256, 256), (2, 33, 57, 19, 20, 31)), (2, 3, 5, 9, 7, 4))
def _(r, b, h, w, c, p, q):
    x, y = r.randn(b, h, w, c), r.empty(b, p, q, c)

    def function(x):
        image = F.interpolate(x.float().permute(0, 3, 1, 2), size=(p, q), mode="bilinear", align_corners=False)
        return image.permute(0, 2, 3, 1).to(x.dtype)
    return Case([x, y], [y], function, x, loose=1e-3 if y.dtype == torch.float32 else None)


@add("matmul:matmul_grouped", ((8192, 8, 2048, 2048), (1021, 5, 1000, 333)), (33, 3, 40, 21), U="f32")
def _(r, m, e, n, k):
    a, w, c = r.randn(m, k), r.randn(e, k, n), r.zeros(m, n, kind=torch.float32)
    begins = torch.cat([torch.zeros(1), torch.sort(torch.rand(e - 1)).values * m, torch.full((1,), m)]).int()
    cuts = begins.tolist()
    begins = begins.to(a.device)

    def function(a, w):
        return torch.cat([(a[x:y] @ w[i]).float() for i, (x, y) in enumerate(zip(cuts, cuts[1:]))])
    return Case([a, w, begins, c], [c], function, a, w, updates=[c], flops=2 * m * n * k)
