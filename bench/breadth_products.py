"""Rows of the breadth table: products, convolutions, pooling and attention of the standard library."""
from breadth_table import Case, Table

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # only listed
    torch = F = None

TABLE = Table("stdlib")
add = TABLE.add
SQUARES = ((4096, 4096, 4096), (1024, 1024, 1024), (64, 4096, 4096), (2000, 1000, 3000))  # M, N, K
TINY = (21, 37, 29)


# ---- matrix products ----

def product(name, left, right, shapes=SQUARES, **settings):
    """`left`, `right`: is that factor given transposed?"""
    @add("matmul:" + name, shapes, TINY, U="T", **settings)
    def _(r, m, n, k):
        a = r.randn(*((k, m) if left else (m, k)))
        b = r.randn(*((n, k) if right else (k, n)))
        c = r.empty(m, n)

        def function(a, b):
            return (a.t() if left else a) @ (b.t() if right else b)
        return Case([a, b, c], [c], function, a, b, flops=2 * m * n * k)


product("matmul", False, False)
product("matmul_tn", True, False)
product("matmul_nt", False, True)
product("matmul_tt", True, True)
product("matmul_split_k", False, False, ((64, 4096, 16384), (128, 128, 65536), (1000, 500, 7001)))


@add("matmul:matmul/bias_relu", SQUARES, TINY, U="T", epi="bias_relu")
def _(r, m, n, k):
    a, b, c, bias = r.randn(m, k), r.randn(k, n), r.empty(m, n), r.f32(n)

    def function(a, b, bias):
        return torch.relu(torch.addmm(bias, a, b))
    return Case([a, b, c, bias], [c], function, a, b, bias.to(r.kind), flops=2 * m * n * k)


@add("matmul:matmul_swiglu", SQUARES, TINY, U="T")
def _(r, m, n, k):
    a, gate, up, c = r.randn(m, k), r.randn(k, n, scale=k**-0.5), r.randn(k, n), r.empty(m, n)
    return Case([a, gate, up, c], [c], lambda a, g, u: F.silu(a @ g) * (a @ u), a, gate, up, flops=4 * m * n * k)


@add("matmul:matmul_batched", ((64, 512, 512, 512), (512, 128, 128, 64), (7, 300, 500, 129)), (2, 21, 37, 29), U="T")
def _(r, b, m, n, k):
    x, y, c = r.randn(b, m, k), r.randn(b, k, n), r.empty(b, m, n)
    return Case([x, y, c], [c], lambda x, y: x @ y, x, y, flops=2 * b * m * n * k)


BYTES = ((4096, 4096, 4096), (1024, 1024, 1024), (64, 4096, 4096))


@add("matmul:matmul_i8", BYTES, (32, 48, 64), U="T")
def _(r, m, n, k):
    a, b = r.ints(-128, 128, m, k, kind=torch.int8), r.ints(-128, 128, k, n, kind=torch.int8)
    rows, columns, c = r.rand(m, kind=torch.float32), r.rand(n, kind=torch.float32) * 1e-3, r.empty(m, n)

    def function(a, b, rows, columns):
        return (torch._int_mm(a, b) * rows[:, None] * columns).to(c.dtype)
    turned = b.t().contiguous().t()  # as the vendor's library has it faster
    return Case([a, b, rows, columns, c], [c], function, a, b, rows, columns, flops=2 * m * n * k,
                also=[lambda a, _, rows, columns: function(a, turned, rows, columns)])


@add("matmul:matmul_f8", BYTES, (32, 48, 64), types=("bf16",), T="f8e4m3", U="T")
def _(r, m, n, k):
    a, b = (r.randn(*s, kind=torch.float32).to(torch.float8_e4m3fn) for s in ((m, k), (n, k)))
    rows, columns, c = r.rand(m, 1, kind=torch.float32) + 0.5, r.rand(1, n, kind=torch.float32) + 0.5, r.empty(m, n)

    def scaled(a, b, rows, columns):
        return torch._scaled_mm(a, b.t(), rows, columns, out_dtype=torch.bfloat16)

    def plain(a, b, rows, columns):
        return (a.float() @ b.float().t() * rows * columns).to(c.dtype)
    return Case([a, b, rows.view(m), columns.view(n), c], [c], plain if r.device == "cpu" else scaled, a, b, rows, columns,
                flops=2 * m * n * k)


def vector(name, turned):
    @add("matmul:" + name, ((8192, 8192), (32000, 4096), (4096, 14336), (1021, 1037)), (21, 37), U="T")
    def _(r, m, k):
        a, x, y = r.randn(*((k, m) if turned else (m, k))), r.randn(k), r.empty(m)
        return Case([a, x, y], [y], lambda a, x: (a.t() if turned else a) @ x, a, x)


vector("gemv", False)
vector("gemv_t", True)


# ---- windows ----

def last(x):
    """[batch, row, column, channel] as PyTorch takes it, which keeps it in its place."""
    return x.permute(0, 3, 1, 2)


LINES = ((8, 8192, 256, 256, 3), (32, 1024, 512, 512, 3), (1, 4001, 80, 384, 3))  # batch, length, channels, outputs, window


@add("conv:conv1d", LINES, (2, 20, 8, 16, 3), stride=1)
def _(r, b, w, c, o, s):
    x, wt, bias, y = r.randn(b, w, c), r.randn(s, c, o, scale=(s * c)**-0.5), r.f32(o), r.empty(b, w, o)
    turned = wt.permute(2, 1, 0).contiguous()

    def function(x, wt, bias):
        return F.conv1d(x.transpose(1, 2), wt, bias, padding=s // 2).transpose(1, 2)
    return Case([x, wt, bias, y, 1, s // 2], [y], function, x, turned, bias.to(r.kind), flops=2 * b * w * c * o * s)


@add("conv:conv1d_depthwise", ((8, 8192, 1024, 4), (32, 2048, 512, 7), (1, 4001, 777, 3)), (2, 20, 37, 3), stride=1)
def _(r, b, w, c, s):
    x, wt, bias, y = r.randn(b, w, c), r.randn(s, c), r.f32(c), r.empty(b, w - s + 1, c)
    turned = wt.t().contiguous()[:, None]

    def function(x, wt, bias):
        return F.conv1d(x.transpose(1, 2), wt, bias, groups=c).transpose(1, 2)
    return Case([x, wt, bias, y, 1, 0], [y], function, x, turned, bias.to(r.kind))


IMAGES = ((32, 56, 56, 64, 64), (16, 28, 28, 256, 256), (1, 224, 224, 3, 64), (3, 33, 35, 96, 80))


@add("conv:conv2d", IMAGES, (2, 7, 9, 8, 16), stride=1)
def _(r, b, h, w, c, o):
    x, wt, bias, y = r.randn(b, h, w, c), r.randn(3, 3, c, o, scale=(9 * c)**-0.5), r.f32(o), r.empty(b, h, w, o)
    turned = wt.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def function(x, wt, bias):
        return F.conv2d(last(x), wt, bias, padding=1).permute(0, 2, 3, 1)
    return Case([x, wt, bias, y, 1, 1], [y], function, x, turned, bias.to(r.kind), flops=18 * b * h * w * c * o)


def image_gradient(name, by_input):
    @add("conv:" + name, IMAGES, (2, 7, 9, 8, 16), stride=1)
    def _(r, b, h, w, c, o):
        x, wt, dy = r.randn(b, h, w, c), r.randn(3, 3, c, o, scale=(9 * c)**-0.5), r.randn(b, h, w, o, scale=(b * h * w)**-0.5)
        turned = wt.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

        def function(x, wt, dy):
            dx, dwt, _ = torch.ops.aten.convolution_backward(last(dy), last(x), wt, None, [1, 1], [1, 1], [1, 1], False, [0, 0],
                                                             1, [by_input, not by_input, False])
            return dx.permute(0, 2, 3, 1) if by_input else dwt.permute(2, 3, 1, 0)
        given, made = (dy, wt) if by_input else (x, dy), r.empty(*(x if by_input else wt).shape)
        return Case([*given, made, 1, 1], [made], function, x, turned, dy, flops=18 * b * h * w * c * o)


image_gradient("conv2d_input_gradient", True)
image_gradient("conv2d_weight_gradient", False)


@add("conv:conv2d_depthwise", ((64, 112, 112, 96), (64, 28, 28, 384), (1, 56, 56, 144), (3, 33, 35, 77)), (2, 7, 9, 37),
     stride=1)
def _(r, b, h, w, c):
    x, wt, bias, y = r.randn(b, h, w, c), r.randn(3, 3, c), r.f32(c), r.empty(b, h, w, c)
    turned = wt.permute(2, 0, 1).contiguous()[:, None]

    def function(x, wt, bias):
        return F.conv2d(last(x), wt, bias, padding=1, groups=c).permute(0, 2, 3, 1)
    return Case([x, wt, bias, y, 1, 1], [y], function, x, turned, bias.to(r.kind))


POOLED = ((64, 112, 112, 64), (64, 56, 56, 256), (1, 112, 112, 64), (3, 33, 35, 77))


@add("pool:max_pool2d", POOLED, (2, 7, 9, 37))
def _(r, b, h, w, c):
    x, y = r.randn(b, h, w, c), r.empty(b, (h + 1) // 2, (w + 1) // 2, c)
    return Case([x, y, 3, 2, 1], [y], lambda x: F.max_pool2d(last(x), 3, 2, 1).permute(0, 2, 3, 1), x)


@add("pool:avg_pool2d", POOLED, (2, 7, 9, 37), count_outside="true")
def _(r, b, h, w, c):
    x, y = r.randn(b, h, w, c), r.empty(b, (h + 1) // 2, (w + 1) // 2, c)
    return Case([x, y, 3, 2, 1], [y], lambda x: F.avg_pool2d(last(x), 3, 2, 1).permute(0, 2, 3, 1), x)


# ---- attention ----

ATTENTION = ((1, 32, 8, 4096, 128), (4, 16, 16, 1024, 64), (1, 8, 8, 1000, 64))  # batch, heads, key heads, length, width
TINY_ATTENTION = (1, 4, 2, 20, 16)


def heads(r, b, h, g, s, d):
    return r.randn(b, h, s, d), r.randn(b, g, s, d), r.randn(b, g, s, d), r.empty(b, h, s, d)


def attend(q, k, v, **more):
    if not k.shape[1]:  # PyTorch divides by it, and the process ends
        raise ValueError("there are no heads of keys")
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=k.shape[1] != q.shape[1], **more)


def by_cudnn(**more):
    def function(q, k, v):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
            return attend(q, k, v, **more)
    return function


def attention(variant, causal):
    @add("attention:attention" + variant, ATTENTION, TINY_ATTENTION, causal=causal)
    def _(r, b, h, g, s, d):
        q, k, v, o = heads(r, b, h, g, s, d)
        flops = 4 * b * h * s * s * d // (2 if variant else 1)
        return Case([q, k, v, o, d**-0.5], [o], lambda q, k, v: attend(q, k, v, is_causal=causal == "true"), q, k, v,
                    flops=flops, also=[by_cudnn(is_causal=causal == "true")] if r.name != "f32" else [])


attention("", "false")
attention("/causal", "true")


@add("attention:attention_lse", ATTENTION, TINY_ATTENTION, causal="true")
def _(r, b, h, g, s, d):
    q, k, v, o = heads(r, b, h, g, s, d)
    lse = r.empty(b, h, s, kind=torch.float32)
    return Case([q, k, v, o, lse, d**-0.5], [o], lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v,
                flops=2 * b * h * s * s * d)


def given(r, q, k, v):
    """What the gradients of causal attention are given: o, lse and those of o; and PyTorch's."""
    b, h, s, d = q.shape
    scores = q.float() @ k.float().repeat_interleave(h // k.shape[1], 1).transpose(2, 3) * d**-0.5
    scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool, device=q.device).triu(1), float("-inf"))
    o = (torch.softmax(scores, 3) @ v.float().repeat_interleave(h // k.shape[1], 1)).to(q.dtype)
    do, inputs = r.randn(b, h, s, d), [x.detach().requires_grad_() for x in (q, k, v)]

    def gradients(attended):
        with torch.enable_grad():
            y = attended(*inputs)
        return lambda *_: torch.autograd.grad(y, inputs, do, retain_graph=True)
    peers = [gradients(lambda q, k, v: attend(q, k, v, is_causal=True))]
    if r.name != "f32" and q.is_cuda:
        peers.append(gradients(by_cudnn(is_causal=True)))
    return o, torch.logsumexp(scores, 3), do, peers


def attention_f8(variant, causal):
    @add("attention:attention_f8" + variant, ATTENTION, TINY_ATTENTION, types=("bf16",), T="f8e4m3", U="T", causal=causal)
    def _(r, b, h, g, s, d):
        """PyTorch has no attention of 8 bits: that of what the numbers stand for, in 16."""
        q, k, v, o = heads(r, b, h, g, s, d)
        eight = [x.to(torch.float8_e4m3fn) for x in (q, k, v.transpose(2, 3).contiguous())]
        scales = [torch.full((b, n), 1.0, device=q.device) for n in (h, g, g)]
        q, k, v = (x.to(r.kind) for x in eight)
        return Case([*eight, *scales, o, d**-0.5], [o], lambda q, k, v: attend(q, k, v, is_causal=causal == "true"), q, k,
                    v.transpose(2, 3).contiguous(), flops=4 * b * h * s * s * d // (2 if variant else 1),
                    also=[by_cudnn(is_causal=causal == "true")] if q.is_cuda else [],
                    loose=5e-2)  # weights have 4 bits


attention_f8("", "false")
attention_f8("/causal", "true")


@add("attention:attention_backward", ATTENTION, TINY_ATTENTION, causal="true")
def _(r, b, h, g, s, d):
    q, k, v, _o = heads(r, b, h, g, s, d)
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    o, lse, do, peers = given(r, q, k, v)
    return Case([q, k, v, o, lse, do, dq, dk, dv, d**-0.5], [dq, dk, dv], peers[0], flops=5 * b * h * s * s * d,
                also=peers[1:])


WIDTHS = ((1, 16, 16, 4096, 192, 128), (2, 16, 16, 2048, 64, 64), (1, 8, 8, 1000, 96, 96))  # of queries, and of values
TINY_WIDTHS = (1, 4, 2, 20, 24, 16)


def scored(variant, causal, changes=lambda r, h, s: (), mask=None, cap=None, **settings):
    """PyTorch's attention has additions to scores as a mask; caps are written out."""
    @add("attention:attention_scored" + variant, WIDTHS, TINY_WIDTHS, causal=causal, **settings)
    def _(r, b, h, g, s, d, width):
        q, k, v, o = r.randn(b, h, s, d), r.randn(b, g, s, d), r.randn(b, g, s, width), r.empty(b, h, s, width)
        more, sink = changes(r, h, s), torch.full((h,), float("-inf"), device=q.device)
        flops = 2 * b * h * s * s * (d + width) // (2 if causal == "true" else 1)
        hidden = torch.ones(s, s, dtype=torch.bool, device=q.device).triu(1)
        added = mask(s, *more).to(q.dtype) if mask else None
        if added is not None and causal == "true":
            added = added.masked_fill(hidden, float("-inf"))

        def capped(q, k, v):
            scores = q @ k.repeat_interleave(h // g, 1).transpose(2, 3) * d**-0.5
            scores = (cap * torch.tanh(scores / cap)).masked_fill(hidden, float("-inf"))
            return torch.softmax(scores, 3) @ v.repeat_interleave(h // g, 1)

        def function(q, k, v):
            return attend(q, k, v, attn_mask=added, is_causal=added is None and causal == "true")
        return Case([q, k, v, sink, o, d**-0.5, *more], [o], capped if cap else function, q, k, v, flops=flops)


def slopes(r, h, _s):
    return (2.0 ** -torch.arange(1, h + 1, device=r.device, dtype=torch.float32),)


def inclined(s, slope):
    at = torch.arange(s, device=slope.device)
    return (at[None] - at[:, None]) * slope[:, None, None]


scored("", "false")
scored("/causal", "true")
scored("/soft_cap", "true", cap=30, f="soft_cap")
scored("/alibi", "true", slopes, inclined, f="alibi")
scored("/biased", "false", lambda r, h, s: (r.randn(h, s, s, kind=torch.float32),), lambda s, bias: bias, f="biased")


@add("attention:attention_window", ((1, 32, 8, 4096, 128), (4, 16, 16, 1024, 64)), TINY_ATTENTION)
def _(r, b, h, g, s, d):
    q, k, v, o = heads(r, b, h, g, s, d)
    window = max(4, s // 8)
    at = torch.arange(s, device=q.device)
    seen = (at[None] <= at[:, None]) & (at[None] > at[:, None] - window)
    return Case([q, k, v, o, d**-0.5, window], [o], lambda q, k, v, seen: attend(q, k, v, attn_mask=seen), q, k, v, seen,
                flops=4 * b * h * s * window * d)


def packed(b, s, q, k, v):
    """Causal attention of sequences of one length, end to end."""
    q, k, v = (x.view(b, s, *x.shape[1:]).transpose(1, 2) for x in (q, k, v))
    return attend(q, k, v, is_causal=True).transpose(1, 2).flatten(0, 1)


@add("attention:attention_varlen", ATTENTION, TINY_ATTENTION, causal="true")
def _(r, b, h, g, s, d):
    """Sequences of one length, which PyTorch takes as a batch."""
    q, k, v, o = r.randn(b * s, h, d), r.randn(b * s, g, d), r.randn(b * s, g, d), r.empty(b * s, h, d)
    ends = r.listed([i * s for i in range(b + 1)])

    return Case([q, k, v, ends, ends, o, s, d**-0.5], [o], lambda q, k, v: packed(b, s, q, k, v), q, k, v,
                flops=2 * b * h * s * s * d)


@add("attention:attention_varlen_lse", ATTENTION, TINY_ATTENTION, causal="true")
def _(r, b, h, g, s, d):
    q, k, v, o = r.randn(b * s, h, d), r.randn(b * s, g, d), r.randn(b * s, g, d), r.empty(b * s, h, d)
    ends, lse = r.listed([i * s for i in range(b + 1)]), r.empty(h, b * s, kind=torch.float32)
    return Case([q, k, v, ends, ends, o, lse, s, d**-0.5], [o], lambda q, k, v: packed(b, s, q, k, v), q, k, v,
                flops=2 * b * h * s * s * d)


@add("attention:attention_varlen_backward", ATTENTION, TINY_ATTENTION, causal="true")
def _(r, b, h, g, s, d):
    """Sequences of one length, which PyTorch takes as a batch."""
    def pack(x):
        return x.transpose(1, 2).reshape(b * s, -1, d)
    q, k, v, _o = heads(r, b, h, g, s, d)
    o, lse, do, peers = given(r, q, k, v)
    made = [torch.empty_like(pack(x)) for x in (q, k, v)]
    ends = r.listed([i * s for i in range(b + 1)])

    def and_packed(gradients):
        return lambda *_: tuple(pack(x) for x in gradients())
    return Case([pack(q), pack(k), pack(v), ends, ends, pack(o), lse.transpose(0, 1).reshape(h, b * s).contiguous(), pack(do),
                 *made, s, s, d**-0.5], made, and_packed(peers[0]), flops=5 * b * h * s * s * d,
                also=[and_packed(peer) for peer in peers[1:]])


@add("attention:attention_paged", ((64, 32, 8, 2048, 128), (8, 32, 8, 8192, 128)), (2, 4, 2, 32, 16))
def _(r, b, h, g, s, d):
    """Pages of 16 tokens; PyTorch gathers them first."""
    pages = s // 16
    q, o = r.randn(b, h, d), r.empty(b, h, d)
    k, v = r.randn(b * pages, 16, g, d), r.randn(b * pages, 16, g, d)
    order = torch.randperm(b * pages, device="cpu").to(torch.int32).view(b, pages)
    table = order.to(r.device)
    lengths = r.listed([s] * b)

    def function(q, k, v, table):
        keys, values = (x[table.long()].view(b, s, g, d).transpose(1, 2) for x in (k, v))
        return attend(q[:, :, None], keys, values).view(b, h, d)
    return Case([q, k, v, table, lengths, o, d**-0.5], [o], function, q, k, v, table, moved=2 * k.numel() * k.element_size())
