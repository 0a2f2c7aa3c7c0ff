"""Rows of the breadth table: the kernels of tests/programs that are of other kinds than the library's."""
import math

from breadth_table import Case, MATRICES, TINY_VECTOR, Table, VECTORS

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # only listed
    torch = F = None

TABLE = Table("tests/programs")
add = TABLE.add
TWO = ((16384, 4096), (1021, 4100))
PLANES = ((32, 64, 112, 112), (4, 3, 1000, 1001))  # batch, channels, rows, columns
TINY_PLANES = (2, 3, 5, 9)
EPS = 1e-5


# ---- stencils ----

@add("stencils:heat5", ((8192, 8192), (1021, 1037)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    taps = torch.tensor([[0, 0.2, 0], [0.2, 1 - 0.8, 0.2], [0, 0.2, 0]], device=x.device)[None, None].to(r.kind)

    def shifted(x, _):
        p = F.pad(x, (1, 1, 1, 1)).float()
        here = p[1:-1, 1:-1]
        return (here + 0.2 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * here)).to(x.dtype)
    return Case([x, y, 0.2], [y], shifted, x, taps, also=[lambda x, w: F.conv2d(x[None, None], w, padding=1)[0, 0]])


@add("stencils:laplace7", ((256, 512, 512), (63, 65, 1037)), (3, 5, 9))
def _(r, d, h, w):
    x, y = r.randn(d, h, w), r.empty(d, h, w)
    taps = torch.zeros(1, 1, 3, 3, 3, device=x.device)
    for i, j, k in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)):
        taps[0, 0, i, j, k] = 1
    taps[0, 0, 1, 1, 1] = -6

    def shifted(x, _):
        p = F.pad(x[None], (1, 1, 1, 1, 1, 1))[0].float()
        c = slice(1, -1)
        return (p[:-2, c, c] + p[2:, c, c] + p[c, :-2, c] + p[c, 2:, c] + p[c, c, :-2] + p[c, c, 2:] -
                6 * p[c, c, c]).to(x.dtype)
    return Case([x, y], [y], shifted, x, taps.to(r.kind), also=[lambda x, w: F.conv3d(x[None, None], w, padding=1)[0, 0]])


@add("stencils:blur5", ((8192, 8192), (1021, 1037)))
def _(r, m, n):
    x, taps, y = r.randn(m, n), r.f32(5), r.empty(m, n)

    def function(x, taps):
        p = F.pad(x.float(), (2, 2, 2, 2))
        return sum(taps[i] * taps[j] * p[i:i + m, j:j + n] for i in range(5) for j in range(5)).to(x.dtype)
    return Case([x, taps, y], [y], function, x, taps)


@add("stencils:filter1d", TWO)
def _(r, m, n):
    x, taps, y = r.randn(m, n), r.f32(9), r.empty(m, n)
    return Case([x, taps, y], [y], lambda x, w: F.conv1d(x[:, None], w, padding=4)[:, 0], x, taps.to(r.kind)[None, None])


@add("stencils:sobel", ((8192, 8192), (1021, 1037)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)

    def function(x):
        p = F.pad(x, (1, 1, 1, 1)).float()
        across = p[:-2] + 2 * p[1:-1] + p[2:]
        along = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        gx, gy = across[:, 2:] - across[:, :-2], along[2:] - along[:-2]
        return torch.sqrt(gx * gx + gy * gy).to(x.dtype)
    return Case([x, y], [y], function, x)


@add("stencils:sliding_max", TWO)
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: F.max_pool1d(x, 15, 1, 7), x)


@add("stencils:torus", ((8192, 8192), (1021, 1037)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)

    def function(x):
        v = x.float() if x.dtype != torch.float64 else x
        return ((torch.roll(v, 1, 0) + torch.roll(v, -1, 0) + (torch.roll(v, 1, 1) + torch.roll(v, -1, 1))) / 4).to(x.dtype)
    return Case([x, y], [y], function, x)


# ---- images ----

@add("images:average_pool", PLANES, TINY_PLANES)
def _(r, b, c, h, w):
    h, w = h // 2, w // 2
    x, y = r.randn(b, c, 2 * h, 2 * w), r.empty(b, c, h, w)
    return Case([x, y], [y], lambda x: F.avg_pool2d(x, 2), x)


@add("images:half_size", ((32, 4, 256, 256), (4, 3, 500, 501)))
def _(r, b, c, h, w):
    x, y = r.randn(b, c, 2 * h, 2 * w), r.empty(b, c, h, w)

    def function(x):
        p = F.pad(x.float(), (1, 1, 1, 1))
        return sum(k * l / 64 * p[..., i:i + 2 * h:2, j:j + 2 * w:2] for i, k in enumerate((1, 3, 3, 1)) for j, l in enumerate((1, 3, 3, 1))).to(x.dtype)
    return Case([x, y], [y], function, x)


@add("images:repeat8", ((16384, 512), (1021, 517)))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, 8 * n)
    return Case([x, y], [y], lambda x: x.repeat_interleave(8, 1), x)


@add("images:upsample", ((32, 64, 56, 56), (4, 3, 500, 501)), TINY_PLANES)
def _(r, b, c, h, w):
    x, y = r.randn(b, c, h, w), r.empty(b, c, 2 * h, 2 * w)
    return Case([x, y], [y], lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x)


@add("images:pixel_shuffle", ((32, 64, 56, 56), (4, 3, 500, 501)), TINY_PLANES)
def _(r, b, c, h, w):
    x, y = r.randn(b, c, 2, 2, h, w), r.empty(b, c, 2 * h, 2 * w)
    return Case([x, y], [y], lambda x: F.pixel_shuffle(x, 2), x.view(b, 4 * c, h, w))


@add("images:im2col", ((32, 64, 56, 56), (4, 3, 500, 501)), TINY_PLANES)
def _(r, b, c, h, w):
    x, y = r.randn(b, c, h, w), r.empty(b, c, 3, 3, h, w)
    return Case([x, y], [y], lambda x: F.unfold(x, 3, padding=1).view(b, c, 3, 3, h, w), x)


@add("images:roll", TWO)
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y, 3, -5], [y], lambda x: torch.roll(x, (3, -5), (0, 1)), x)


@add("images:interleave", ((32, 512, 512), (7, 333, 517)), (2, 5, 9))
def _(r, b, h, w):
    x, y = r.randn(b, 3, h, w), r.empty(b, h, w, 3)
    return Case([x, y], [y], lambda x: x.permute(0, 2, 3, 1).contiguous(), x)


@add("images:luminance", VECTORS, TINY_VECTOR)
def _(r, n):
    x, y = r.rand(n, 3), r.empty(n, 3)

    def converted(x):
        v = x.float() if x.dtype != torch.float64 else x
        red, green, blue = v.unbind(1)
        brightness = 0.299 * red + 0.587 * green + 0.114 * blue
        return torch.stack([brightness, (blue - brightness) * 0.493, (red - brightness) * 0.877], 1).to(x.dtype)
    return Case([x, y], [y], converted, x)


@add("blocks:scaled_blocks", ((16384, 4096), (65536, 256), (4093, 1037)), BN=96)
def _(r, m, n):
    x, s, y = r.randn(m, n), r.f32(m, -(-n // 32)), r.empty(m, n)
    return Case([x, s, y], [y], lambda x, s: x * s.to(x.dtype).repeat_interleave(32, 1)[:, :n], x, s)


@add("blocks:turned_pairs", ((65536, 96), (16384, 768)), (5, 36))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.stack((-x[:, 1::2], x[:, ::2]), 2).view(m, n), x)


@add("blocks:below_greatest", ((65536, 96), (16384, 768)), (5, 36))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)

    def lacking(x):
        groups = x.view(m, n // 12, 12)
        return (groups.amax(2, True) - groups).view(m, n)
    return Case([x, y], [y], lacking, x)


def padded(mode):
    def build(r, b, h, w):
        x, y = r.randn(b, h, w), r.empty(b, h + 6, w + 6)
        return Case([x, y], [y], lambda x: F.pad(x, (3, 3, 3, 3), mode=mode), x)
    return build


for kernel, mode in (("pad_edge", "replicate"), ("pad_mirror", "reflect")):
    add(f"images:{kernel}", ((64, 512, 512), (7, 333, 517)), (2, 5, 9))(padded(mode))


# ---- gates ----

@add("gates:geglu", TWO)
def _(r, m, n):
    x, y = r.randn(m, 2 * n), r.empty(m, n)
    return Case([x, y], [y], lambda x: F.gelu(x[:, :n], approximate="tanh") * x[:, n:], x)


@add("gates:swiglu_pair", TWO)
def _(r, m, n):
    gate, up, y = r.randn(m, n), r.randn(m, n), r.empty(m, n)
    return Case([gate, up, y], [y], lambda g, u: F.silu(g) * u, gate, up)


@add("gates:relu_squared", TWO)
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.relu(x).square(), x)


@add("gates:top2", ((131072, 64), (16384, 160), (1021, 8)), (9, 8))
def _(r, m, e):
    x, weight, expert = r.randn(m, e), r.empty(m, 2, kind=torch.float32), r.empty(m, 2, kind=torch.int64)

    def function(x):
        top, at = torch.topk(x.float(), 2, 1)
        return torch.softmax(top, 1), at
    return Case([x, weight, expert], [weight], lambda x: function(x)[0], x)


# ---- distances ----

CLOUDS = ((8192, 4096, 128), (1021, 1037, 65))


@add("distances:squared_distances", CLOUDS, (21, 37, 29))
def _(r, m, n, k):
    a, b, d = r.randn(m, k), r.randn(n, k), r.empty(m, n, kind=torch.float32)

    def function(a, b):
        u, v = a.float(), b.float()
        return (u.square().sum(1)[:, None] + v.square().sum(1) - 2 * (a @ b.t()).float()).clamp(min=0)
    return Case([a, b, d], [d], function, a, b, flops=2 * m * n * k)


@add("distances:cosines", CLOUDS, (21, 37, 29))
def _(r, m, n, k):
    a, b, c = r.randn(m, k), r.randn(n, k), r.empty(m, n, kind=torch.float32)

    def function(a, b):
        scale_a, scale_b = (torch.rsqrt(x.float().square().sum(1).clamp(min=1e-12)) for x in (a, b))
        return (a @ b.t()).float() * scale_a[:, None] * scale_b
    return Case([a, b, c], [c], function, a, b, flops=2 * m * n * k)


@add("distances:nearest", ((65536, 1024, 128), (10007, 129, 33)), (21, 37, 29))
def _(r, m, n, k):
    x, c, at = r.randn(m, k), r.randn(n, k), r.empty(m, kind=torch.int64)

    def function(x, c):
        return ((c.float().square().sum(1) - 2 * (x @ c.t()).float())).argmin(1)

    def error(results, _):  # the nearest by a distance that is about the least
        u, v = x.double(), c.double()
        d = v.square().sum(1) - 2 * u @ v.t()
        chosen, least = d.gather(1, results[0].clamp(0, n - 1)[:, None])[:, 0], d.min(1).values
        return float(((chosen - least) / (1 + least.abs())).max())
    return Case([x, c, at], [at], function, x, c, error=error, loose=1e-2, flops=2 * m * n * k)


# ---- statistics ----

@add("statistics:confusion", ((1 << 26, 64, 64), (1000003, 7, 11)), (1003, 3, 5), types=("f32",))
def _(r, n, a, b):
    t, u, count = r.ints(0, a, n, kind=torch.int32), r.ints(0, b, n, kind=torch.int32), r.zeros(a, b, kind=torch.int32)
    return Case([t, u, count], [count], lambda t, u: torch.bincount(t * b + u, minlength=a * b).view(a, b), t, u, updates=[count])


@add("statistics:batch_statistics", ((64, 256, 3136), (16, 1021, 49)), (2, 5, 37))
def _(r, b, c, p):
    x = r.randn(b, c, p)
    mean, variance = r.empty(c, kind=torch.float32), r.empty(c, kind=torch.float32)
    return Case([x, mean, variance], [variance, mean], lambda x: torch.var_mean(x.float(), (0, 2), correction=0), x,
                also=[lambda x: torch.var_mean(x, (0, 2), correction=0)], loose=1e-4)


@add("statistics:image_statistics", ((64, 56, 56, 256), (16, 33, 35, 77)), (2, 5, 7, 37))
def _(r, b, h, w, c):
    x = r.randn(b, h, w, c)
    mean, variance = r.empty(b, c, kind=torch.float32), r.empty(b, c, kind=torch.float32)
    return Case([x, mean, variance], [variance, mean], lambda x: torch.var_mean(x.float(), (1, 2), correction=0), x,
                also=[lambda x: torch.var_mean(x, (1, 2), correction=0)], loose=1e-4)


@add("statistics:logsumexp_middle", ((64, 256, 4096), (7, 1021, 1037)), (2, 11, 37))
def _(r, b, s, n):
    x, y = r.randn(b, s, n), r.empty(b, n, kind=torch.float32)
    return Case([x, y], [y], lambda x: torch.logsumexp(x.float(), 1), x, also=[lambda x: torch.logsumexp(x, 1)])


@add("statistics:group_norm_last", ((32, 3136, 256), (7, 1021, 96)), (2, 37, 64))
def _(r, b, p, c):
    x, y, gamma, beta = r.randn(b, p, c), r.empty(b, p, c), r.f32(c), r.f32(c)

    def function(x, g, b):
        return F.group_norm(x.transpose(1, 2), 32, g, b, EPS).transpose(1, 2)
    return Case([x, gamma, beta, y, 32, EPS], [y], function, x, gamma.to(r.kind), beta.to(r.kind))


@add("statistics:count_nonzero", TWO)
def _(r, m, n):
    x, count = torch.relu(r.randn(m, n)), r.empty(m, kind=torch.int64)
    return Case([x, count], [count], lambda x: torch.count_nonzero(x, 1), x)


@add("statistics:running_max", TWO)
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.cummax(x, 1).values, x)


@add("sequences:resonator", ((16384, 1024), (1021, 513)), (5, 37))
def _(r, m, n):
    x, y, top = r.randn(m, n), r.empty(m, n), r.empty(m, kind=torch.float32)

    def function(x):
        v, s, t, out = x.float().t().contiguous(), 0, 0, []
        most = torch.full((m,), -math.inf, device=x.device)
        for i in range(n):
            o = 0.5 * v[i] + s
            s, t = t - 0.25 * o, 0.125 * v[i]
            out.append(o)
            most = torch.maximum(most, v[i] - 0.5 * most.clamp(-1, 1))
        return torch.stack(out, 1).to(x.dtype), most
    return Case([x, y, top], [y, top], function, x)


# ---- transforms ----

@add("transforms:walsh", ((16384, 1024), (1021, 256)), (5, 16))
@add("transforms:hadamard", ((16384, 1024), (1021, 256)), (5, 16))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)

    def function(x):
        v, width = x.float(), 1
        while width < n:
            v = v.view(m, n // (2 * width), 2, width)
            v = torch.stack((v[:, :, 0] + v[:, :, 1], v[:, :, 0] - v[:, :, 1]), 2)
            width *= 2
        return v.view(m, n).to(x.dtype)
    return Case([x, y], [y], function, x)


@add("transforms:fft_stage", ((256, 64, 512), (1021, 16, 33)), (2, 5, 9))
def _(r, m, p, s):
    re, im = r.randn(m, 2, p, s), r.randn(m, 2, p, s)
    real, imaginary = r.empty(m, p, 2, s), r.empty(m, p, 2, s)
    angle = torch.arange(p, device=re.device) * (-math.pi / p)
    c, t = torch.cos(angle)[:, None], torch.sin(angle)[:, None]

    def function(re, im, c, t):
        ar, ai, br, bi = re[:, 0].float(), im[:, 0].float(), re[:, 1].float(), im[:, 1].float()
        dr, di = ar - br, ai - bi
        return (torch.stack((ar + br, dr * c - di * t), 2).to(re.dtype),
                torch.stack((ai + bi, dr * t + di * c), 2).to(re.dtype))
    return Case([re, im, real, imaginary], [real, imaginary], function, re, im, c, t)


@add("transforms:sort_rows", ((65536, 256), (1021, 64)), (5, 16))
def _(r, m, n):
    x, y = r.randn(m, n), r.empty(m, n)
    return Case([x, y], [y], lambda x: torch.sort(x, 1).values, x)


@add("transforms:rotary_interleaved", ((4, 4096, 32, 64), (3, 777, 9, 32)), (2, 3, 4, 8))
def _(r, b, s, h, d):
    x, c, t, y = r.randn(b, s, h, 2 * d), r.f32(s, d), r.f32(s, d), r.empty(b, s, h, 2 * d)

    def function(x, c, t):
        c, t, v = c[None, :, None], t[None, :, None], x.float()
        p, q = v[..., 0::2], v[..., 1::2]
        return torch.stack((p * c - q * t, q * c + p * t), -1).flatten(-2).to(x.dtype)
    return Case([x, c, t, y], [y], function, x, c, t)


# ---- products ----

@add("products:dense_relu", ((8192, 8192), (1021, 4100)), (21, 37))
def _(r, m, k):
    w, x, bias, y = r.randn(m, k), r.randn(k), r.f32(m), r.empty(m)
    return Case([w, x, bias, y], [y], lambda w, x, b: torch.relu(torch.addmv(b, w, x)), w, x, bias.to(r.kind))


@add("products:outer_batched", ((64, 1024, 1024), (129, 100, 1037)), (2, 9, 37))
def _(r, b, m, n):
    x, y, c = r.randn(b, m), r.randn(b, n), r.empty(b, m, n)
    return Case([x, y, c], [c], lambda x, y: x[:, :, None] * y[:, None], x, y)


@add("products:head_products", ((64, 64, 64, 16, 64), (33, 17, 49, 12, 40)), (2, 5, 7, 3, 8))
def _(r, b, i, j, h, d):
    x, y, c = r.randn(b, i, h, d), r.randn(b, j, h, d), r.empty(b, h, i, j)
    return Case([x, y, c], [c], lambda x, y: torch.einsum("bihd,bjhd->bhij", x, y), x, y, flops=2 * b * h * i * j * d)


@add("products:lora", ((4096, 4096, 4096, 16), (1021, 1000, 1026, 8)), (21, 37, 29, 4))
def _(r, m, n, k, rank):
    x, w, a, b = r.randn(m, k), r.randn(k, n), r.randn(k, rank, scale=k**-0.5), r.randn(rank, n)
    y = r.empty(m, n)
    return Case([x, w, a, b, y, 0.5], [y], lambda x, w, a, b: torch.addmm(x @ w, x @ a, b, alpha=0.5), x, w, a, b,
                flops=2 * m * k * (n + rank) + 2 * m * n * rank)


@add("products:gated_down", ((4096, 4096, 11008), (1021, 1000, 1026)), (21, 37, 29))
def _(r, m, n, k):
    gate, up, w, y = r.randn(m, k), r.randn(m, k), r.randn(k, n, scale=k**-0.5), r.empty(m, n)
    return Case([gate, up, w, y], [y], lambda gate, up, w: (F.silu(gate.float()) * up.float()).to(gate.dtype) @ w, gate, up, w,
                flops=2 * m * n * k)


@add("products:normed_product", ((4096, 4096, 4096), (1021, 1000, 1026)), (21, 37, 29))
def _(r, m, n, k):
    x, gamma, w, y = r.randn(m, k), r.randn(k), r.randn(k, n, scale=k**-0.5), r.empty(m, n)

    def function(x, gamma, w):
        v = x.float()
        return (v * torch.rsqrt((v * v).mean(1, keepdim=True) + EPS) * gamma.float()).to(x.dtype) @ w
    return Case([x, gamma, w, y, EPS], [y], function, x, gamma, w, flops=2 * m * n * k)


@add("products:dequantised", ((4096, 4096, 4096), (1021, 1000, 1026)), (21, 37, 29))
def _(r, m, n, k):
    x, w, scale, y = r.randn(m, k), r.ints(-128, 128, n, k, kind=torch.int8), r.f32(n, scale=k**-0.5 / 64), r.empty(m, n)
    return Case([x, w, scale, y], [y], lambda x, w, s: x @ (w.float() * s[:, None]).to(x.dtype).T, x, w, scale, flops=2 * m * n * k)


@add("products:grouped_weights", ((2048, 4096, 4096), (64, 4096, 4096), (1021, 1000, 1024)), (21, 37, 128))
def _(r, m, n, k):
    x, w, y = r.randn(m, k), r.ints(0, 256, n, k // 2, kind=torch.uint8), r.empty(m, n)
    scale = r.f32(n, k // 64, scale=k**-0.5 / 4)

    def function(x, w, s):
        halves = torch.stack((w & 15, w >> 4), 2).view(n, k).to(torch.int8)
        numbers = torch.where(halves > 7, halves - 16, halves).float()
        return x @ (numbers.view(n, k // 64, 64) * s[:, :, None]).view(n, k).to(x.dtype).T
    return Case([x, w, scale, y], [y], function, x, w, scale, flops=2 * m * n * k)


@add("products:max_plus", ((512, 512, 512), (127, 129, 301)), (9, 37, 11))
def _(r, m, n, k):
    a, b, c = r.randn(m, k), r.randn(k, n), r.empty(m, n)
    return Case([a, b, c], [c], lambda a, b: (a[:, :, None] + b).amax(1), a, b, flops=2 * m * n * k)


# ---- convolutions ----

IMAGES = ((32, 56, 56, 64, 64), (16, 28, 28, 256, 256), (3, 33, 35, 96, 80))  # batch, rows, columns, channels, outputs
TINY_IMAGES = (2, 7, 9, 8, 16)


@add("convolutions:conv2d_nchw", IMAGES, TINY_IMAGES)
def _(r, b, h, w, c, o):
    x, wt, y = r.randn(b, c, h, w), r.randn(o, c, 3, 3, scale=(9 * c)**-0.5), r.empty(b, o, h, w)
    return Case([x, wt, y], [y], lambda x, w: F.conv2d(x, w, padding=1), x, wt, flops=18 * b * h * w * c * o)


@add("convolutions:conv2d_unrolled", IMAGES, TINY_IMAGES)
def _(r, b, h, w, c, o):
    x, wt, y = r.randn(b, h, w, c), r.randn(3, 3, c, o, scale=(9 * c)**-0.5), r.empty(b, h, w, o)
    turned = wt.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return Case([x, wt, y], [y], lambda x, wt: F.conv2d(x.permute(0, 3, 1, 2), wt, padding=1).permute(0, 2, 3, 1), x, turned,
                flops=18 * b * h * w * c * o)


@add("convolutions:conv2d_grouped", ((32, 56, 56, 4, 64), (16, 28, 28, 32, 8), (3, 33, 35, 5, 24)), (2, 7, 9, 2, 8))
def _(r, b, h, w, g, d):
    x, wt, y = r.randn(b, h, w, g, d), r.randn(g, 3, 3, d, d, scale=(9 * d)**-0.5), r.empty(b, h, w, g, d)
    turned = wt.permute(0, 4, 3, 1, 2).reshape(g * d, d, 3, 3).contiguous(memory_format=torch.channels_last)

    def function(x, wt):
        x = x.reshape(b, h, w, g * d).permute(0, 3, 1, 2)
        return F.conv2d(x, wt, padding=1, groups=g).permute(0, 2, 3, 1).reshape(b, h, w, g, d)
    return Case([x, wt, y], [y], function, x, turned, flops=18 * b * h * w * g * d * d)


@add("convolutions:conv2d_transposed", IMAGES, TINY_IMAGES)
def _(r, b, h, w, c, o):
    x, wt, y = r.randn(b, h, w, c), r.randn(4, 4, c, o, scale=(4 * c)**-0.5), r.empty(b, 2 * h, 2 * w, o)
    turned = wt.permute(2, 3, 0, 1).contiguous()

    def function(x, wt):
        return F.conv_transpose2d(x.permute(0, 3, 1, 2), wt, stride=2, padding=1).permute(0, 2, 3, 1)
    return Case([x, wt, y], [y], function, x, turned, flops=32 * b * h * w * c * o)


# ---- sequences ----

@add("sequences:causal_conv", ((8, 4096, 2048), (3, 1021, 777)), (2, 11, 37))
def _(r, b, s, c):
    x, w, y = r.randn(b, s, c), r.randn(4, c), r.empty(b, s, c)

    def function(x, w):
        return F.conv1d(x.transpose(1, 2), w, padding=3, groups=c)[..., :s].transpose(1, 2)
    return Case([x, w, y], [y], function, x, w.t().contiguous()[:, None],
                also=[lambda x, w: sum(F.pad(x, (0, 0, 3, 0))[:, k:k + s] * w[:, 0, k] for k in range(4))])


@add("sequences:softmax_biased", ((32, 2048, 2048), (7, 1021, 1037)), (2, 5, 37))
def _(r, b, m, n):
    x, bias, y = r.randn(b, m, n), r.randn(m, n), r.empty(b, m, n)
    has = r.rand(b, n, kind=torch.float32) < 0.8
    has[:, 0] = True

    def function(x, bias, has):
        v = (x.float() * 0.5 + bias.float()).masked_fill(~has[:, None], -math.inf)
        return torch.softmax(v, -1).to(x.dtype)
    return Case([x, bias, has, y, 0.5], [y], function, x, bias, has,
                also=[lambda x, bias, has: torch.softmax(torch.add(bias, x, alpha=0.5).masked_fill(~has[:, None], -math.inf), -1)])


@add("sequences:rmsnorm_residual", TWO)
def _(r, m, n):
    x, residual, gamma, y = r.randn(m, n), r.randn(m, n), r.f32(n), r.empty(m, n)

    def function(x, residual, g):
        residual.add_(x)
        return residual, F.rms_norm(residual, (n,), g, EPS)
    return Case([x, residual, gamma, y, EPS], [residual, y], function, x, residual.clone(), gamma.to(r.kind),
                updates=[residual])


@add("sequences:softmax_backward", TWO)
def _(r, m, n):
    dy, y, dx = r.randn(m, n), torch.softmax(r.randn(m, n), 1), r.empty(m, n)

    def function(dy, y):
        d, v = (t.float() if t.dtype != torch.float64 else t for t in (dy, y))
        return (v * (d - (d * v).sum(1, keepdim=True))).to(y.dtype)
    return Case([dy, y, dx], [dx], function, dy, y, also=[lambda dy, y: torch._softmax_backward_data(dy, y, 1, dy.dtype)])


@add("transforms:polynomial", VECTORS, TINY_VECTOR)
def _(r, n):
    x, c, y = r.rand(n), r.f32(8), r.empty(n)

    def function(x, c):
        v, s = x.float() if x.dtype != torch.float64 else x, 0
        for k in range(8):
            s = s * v + c[k]
        return s.to(x.dtype)
    return Case([x, c, y], [y], function, x, c)
