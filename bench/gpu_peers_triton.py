"""Triton's side of gpu_peers.py: kernels in the customary style, and the configurations that are tried of each."""
import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def add_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    inside = i < n
    tl.store(o + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def _first_ten(x):
    x = tl.maximum(tl.cos(tl.sin(x + 0.1) * 1.1) + 0.2, 0.0) - 0.1
    return tl.sigmoid(tl.exp(x * 0.5) + 0.3)


@triton.jit
def _second_ten(x):
    x = tl.maximum(tl.cos(tl.sin(x * 1.2) + 0.4) - 0.2, 0.0) + 0.5
    return tl.sigmoid(tl.exp(x * 0.4) * 1.3)


@triton.jit
def chain_kernel(x, o, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    inside = i < n
    v = tl.load(x + i, mask=inside, other=0.0)
    tl.store(o + i, _first_ten(_second_ten(_first_ten(v))), mask=inside)


@triton.jit
def softmax_kernel(x, o, columns, R: tl.constexpr, C: tl.constexpr):
    c = tl.arange(0, C)
    at = (tl.program_id(0) * R + tl.arange(0, R))[:, None] * columns + c[None, :]
    v = tl.load(x + at, mask=c[None, :] < columns, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 1)[:, None])
    v = v * (1.0 / tl.sum(v, 1))[:, None]
    tl.store(o + at, v.to(o.dtype.element_ty), mask=c[None, :] < columns)


@triton.jit
def softmax_wide_kernel(x, o, columns, B: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    c = tl.arange(0, B)
    most = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, columns, B):
        v = tl.load(x + base + k + c, eviction_policy="evict_last").to(tl.float32) * LOG2E
        next_most = tl.maximum(most, v)
        total = total * tl.exp2(most - next_most) + tl.exp2(v - next_most)
        most = next_most
    top = tl.max(most, 0)
    scale = 1.0 / tl.sum(total * tl.exp2(most - top), 0)
    for k in range(0, columns, B):
        v = tl.load(x + base + k + c, eviction_policy="evict_first").to(tl.float32) * LOG2E
        tl.store(o + base + k + c, (tl.exp2(v - top) * scale).to(o.dtype.element_ty))


@triton.jit
def norm_kernel(x, gamma, beta, o, columns, eps, R: tl.constexpr, C: tl.constexpr, RMS: tl.constexpr):
    c = tl.arange(0, C)
    at = (tl.program_id(0) * R + tl.arange(0, R))[:, None] * columns + c[None, :]
    inside = c[None, :] < columns
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(gamma + c, mask=c < columns).to(tl.float32)
    if RMS:
        y = v * tl.rsqrt(tl.sum(v * v, 1) / columns + eps)[:, None] * g[None, :]
    else:
        d = tl.where(inside, v - (tl.sum(v, 1) / columns)[:, None], 0.0)
        y = d * tl.rsqrt(tl.sum(d * d, 1) / columns + eps)[:, None] * g[None, :]
        y += tl.load(beta + c, mask=c < columns).to(tl.float32)[None, :]
    tl.store(o + at, y.to(o.dtype.element_ty), mask=inside)


@triton.jit
def cross_entropy_kernel(x, target, loss, columns, B: tl.constexpr, LANE: tl.constexpr):
    row = tl.program_id(0)
    base = x + row.to(tl.int64) * columns
    c = tl.arange(0, B)
    if LANE:
        most = tl.full((B,), -float("inf"), tl.float32)
        sums = tl.zeros((B,), tl.float32)
        for k in range(0, columns, B):
            v = tl.load(base + k + c).to(tl.float32) * LOG2E
            next_most = tl.maximum(most, v)
            sums = sums * tl.exp2(most - next_most) + tl.exp2(v - next_most)
            most = next_most
        top = tl.max(most, 0)
        total = tl.sum(sums * tl.exp2(most - top), 0)
    else:
        top = -float("inf")
        total = 0.0
        for k in range(0, columns, B):
            v = tl.load(base + k + c).to(tl.float32) * LOG2E
            next_top = tl.maximum(top, tl.max(v, 0))
            total = total * tl.exp2(top - next_top) + tl.sum(tl.exp2(v - next_top), 0)
            top = next_top
    hit = tl.load(base + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, (top + tl.log2(total)) / LOG2E - hit)


@triton.jit
def sum_parts_kernel(x, part, n, B: tl.constexpr, STEP: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for k in range(tl.program_id(0) * B, n, STEP * B):
        i = k + tl.arange(0, B)
        total += tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(part + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def sum_last_kernel(part, o, P: tl.constexpr, ROUNDED: tl.constexpr):
    i = tl.arange(0, ROUNDED)
    tl.store(o, tl.sum(tl.load(part + i, mask=i < P, other=0.0), 0))


@triton.jit
def sum_rows_kernel(x, o, columns, B: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros((B,), tl.float32)
    for k in range(0, columns, B):
        total += tl.load(x + base + k + tl.arange(0, B)).to(tl.float32)
    tl.store(o + tl.program_id(0), tl.sum(total, 0).to(o.dtype.element_ty))


@triton.jit
def cumsum_kernel(x, o, columns, B: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    before = 0.0
    for k in range(0, columns, B):
        i = base + k + tl.arange(0, B)
        v = tl.load(x + i).to(tl.float32)
        tl.store(o + i, (tl.cumsum(v, 0) + before).to(o.dtype.element_ty))
        before += tl.sum(v, 0)


@triton.jit
def transpose_kernel(x, o, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(1).to(tl.int64) * BR + tl.arange(0, BR)
    c = tl.program_id(0).to(tl.int64) * BC + tl.arange(0, BC)
    v = tl.load(x + r[:, None] * columns + c[None, :])
    tl.store(o + c[:, None] * rows + r[None, :], tl.trans(v))


def add(x, y, o):
    n = x.numel()

    def make(block, warps):
        return lambda: add_kernel[(triton.cdiv(n, block),)](x, y, o, n, B=block, num_warps=warps)
    return [(f"B{b} w{w}", make(b, w)) for b, w in ((1024, 8), (1024, 4), (2048, 8), (256, 4))]


def chain(x, o):
    n = x.numel()

    def make(block, warps):
        return lambda: chain_kernel[(triton.cdiv(n, block),)](x, o, n, B=block, num_warps=warps)
    return [(f"B{b} w{w}", make(b, w)) for b, w in ((1024, 8), (1024, 4), (512, 4))]


def softmax(x, o):
    rows, columns = x.shape
    if columns > 16384:
        def wide(block, warps):
            return lambda: softmax_wide_kernel[(rows,)](x, o, columns, B=block, num_warps=warps)
        return [(f"B{b} w{w}", wide(b, w)) for b, w in ((16384, 32), (8192, 16))]

    def make(r, warps):
        return lambda: softmax_kernel[(rows // r,)](x, o, columns, R=r, C=columns, num_warps=warps)
    tried = ((4, 4), (2, 4), (2, 8)) if columns <= 1024 else ((1, 4), (1, 8)) if columns <= 4096 else ((1, 16), (1, 32))
    return [(f"R{r} w{w}", make(r, w)) for r, w in tried]


def norm(x, gamma, beta, o, eps, rms):
    rows, columns = x.shape

    def make(r, warps):
        return lambda: norm_kernel[(rows // r,)](x, gamma, gamma if beta is None else beta, o, columns, eps, R=r,
                                                 C=columns, RMS=rms, num_warps=warps)
    tried = ((2, 4), (1, 1), (4, 4)) if columns <= 1024 else ((1, 4), (1, 8), (1, 16))
    return [(f"R{r} w{w}", make(r, w)) for r, w in tried]


def cross_entropy(x, target, loss, mean):
    rows, columns = x.shape

    def make(block, warps, lane):
        def call():
            cross_entropy_kernel[(rows,)](x, target, loss, columns, B=block, LANE=lane, num_warps=warps)
            torch.mean(loss, 0, out=mean)
        return call
    return [(f"B{b} w{w} lane{int(lane)}", make(b, w, lane))
            for b, w, lane in ((16384, 8, False), (8192, 8, False), (8192, 8, True))]


def sum_all(x, o):
    n = x.numel()
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    part = torch.empty(cores * 8, device="cuda")

    def make(block, warps, blocks):
        def call():
            sum_parts_kernel[(blocks,)](x, part, n, B=block, STEP=blocks, num_warps=warps)
            sum_last_kernel[(1,)](part, o, P=blocks, ROUNDED=triton.next_power_of_2(blocks), num_warps=4)
        return call
    tried = ((4096, 8, 8), (8192, 8, 8)) if n >= 1 << 24 else ((4096, 8, 1), (2048, 4, 1))
    return [(f"B{b} w{w} x{k}", make(b, w, k * cores)) for b, w, k in tried]


def sum_rows(x, o):
    rows, columns = x.shape

    def make(block, warps):
        return lambda: sum_rows_kernel[(rows,)](x, o, columns, B=block, num_warps=warps)
    return [(f"B{b} w{w}", make(b, w)) for b, w in ((4096, 4), (4096, 8), (2048, 4))]


def cumsum(x, o):
    rows, columns = x.shape

    def make(block, warps):
        return lambda: cumsum_kernel[(rows,)](x, o, columns, B=block, num_warps=warps)
    return [(f"B{b} w{w}", make(b, w)) for b, w in ((8192, 4), (8192, 8), (4096, 4))]


def transpose(x, o):
    rows, columns = x.shape

    def make(r, c, warps):
        return lambda: transpose_kernel[(columns // c, rows // r)](x, o, rows, columns, BR=r, BC=c, num_warps=warps)
    return [(f"{r}x{c} w{w}", make(r, c, w)) for r, c, w in ((64, 64, 8), (128, 64, 4), (64, 64, 4), (64, 128, 8))]
