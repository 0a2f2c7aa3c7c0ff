#!/usr/bin/env python3
"""Products, attention and convolutions at the sizes of models, each beside what it is held to: the best of PyTorch, cuBLAS and
cuDNN, or another kernel of Tile, in the same process, alternately.

Rows are those of breadth.py, at other shapes and beside other peers: with the compiler's own choice, caches cold, results compared.
Of a row `graph` calls follow one another in a graph, 20 of them; of `sustained` for 0.3 seconds, both with warm caches.
A row is short where Tile's speed over the peer's is below its bar. bench/gpu_goals.tile has the kernels that the library has not.

usage: gpu_goals.py [OPTION]...
  --library=PATH   libtile.so (build/release/lib/libtile.so)
  --only=A,B       rows that have one of these texts in their titles
  --part=I/N       the Ith of N parts
  --repeat=N       turns of a row at most (25)
  --runs=N         the whole N times: a row's ratio is the median (1)
  --seconds=S      no row begins later
  --sweep=N        also N points of the tune clause: the best of them stands beside
  --out=FILE       the rows go there too, as a table with tabs
  --list           prints the rows
  --dry            measures nothing: compiles each row's kernel and compares the shapes of results, without memory
  --profile        measures nothing: marks one call of each row, and one of each peer, for a profiler (scripts/gpu_profile.sh)
"""
import argparse
import statistics
import sys

import breadth
import breadth_products as products
from breadth_table import Case, Row

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:  # only listed
    torch = F = None

GOALS = []
CALLS, SUSTAINED_SECONDS, SUSTAINED_TURNS = 20, 0.3, 4
breadth.TOLERANCE.update({"f16": 2e-3, "tf32": 2e-3})


class Own:
    """Another row of Tile, on arguments of this one's."""

    def __init__(self, file, name, arguments, **settings):
        self.row, self.arguments = Row(f"{file.split('/')[-1][:-5]}:{name}", "bf16", (), None, settings, file), arguments


class Goal(Row):
    """A row that is held to `bar`, by a name that it alone has, in a mode: cold, graph or sustained; `share`: to this part of the rate at which memory is copied."""

    def __init__(self, bar, name, kind, shape, build, settings, file, mode="cold", share=False):
        super().__init__(name, kind, shape, build, settings, file)
        self.bar, self.mode, self.share = bar, mode, share

    def key(self):
        return super().key() + ("" if self.mode == "cold" else " " + self.mode)


ENTRIES = {(table.folder, name): (settings, build) for table in breadth.TABLES for name, _, _, _, settings, build in table.entries}


def known(bar, name, kind, shape, folder="stdlib", mode="cold", beside=None, **settings):
    """A row of breadth.py at another shape; `beside(case)` gives the peers of Tile in place of PyTorch's."""
    given, build = ENTRIES[folder, name]
    settings = {key: kind if value == "T" else value for key, value in {**given, **settings}.items()}

    def made(r, *shape):
        case = build(r, *shape)
        if beside:
            case.own = beside(case)
        return case
    GOALS.append(Goal(bar, name, kind, shape, made, settings, f"{folder}/{name.split(':')[0]}.tile", mode))


def goal(bar, name, kind, *shapes, file="bench/gpu_goals.tile", share=False, **settings):
    """For a function (make, *shape) -> Case."""
    def note(build):
        GOALS.extend(Goal(bar, name, kind, shape, build, settings, file, share=share) for shape in shapes)
        return build
    return note


# ---- products ----

def products_of_halves():
    for kind in ("bf16", "f16"):
        for shape in ((8192,) * 3, (4096,) * 3, (8192, 8192, 2048), (16384, 4096, 4096), (4096, 4096, 16384)):
            known(0.98, "matmul:matmul", kind, shape)
    for n in (2048, 1024, 512):
        known(0.97, "matmul:matmul", "bf16", (n, n, n))
        known(1.05, "matmul:matmul", "bf16", (n, n, n), mode="graph")
    known(1.00, "matmul:matmul", "bf16", (8192, 28672, 8192), mode="sustained")
    for m, bar in ((16, 1.08), (32, 1.08), (64, 1.08), (128, 1.03)):
        known(bar, "matmul:matmul", "bf16", (m, 8192, 8192))
    known(2.5, "matmul:matmul", "bf16", (4095, 4097, 4093))
    known(1.3, "matmul:matmul", "bf16", (1000, 1001, 1002))


def bare(case):
    """The product alone, of square matrices, whichever way they lie."""
    return [("plain", Own("stdlib/matmul.tile", "matmul", case.arguments[:3], T="bf16", U="bf16"))]


def twice_as_wide(case):
    """The product with both factors side by side."""
    a, gate, up, c = case.arguments[:4]
    return [("2N", Own("stdlib/matmul.tile", "matmul", [a, torch.cat((gate, up), 1), torch.cat((c, c), 1)], T="bf16", U="bf16"))]


def forms_of_products():
    for name in ("matmul_tn", "matmul_nt", "matmul_tt"):
        known(0.98, "matmul:" + name, "bf16", (4096,) * 3, beside=bare)
    for n, limit in ((8192, 1.04), (4096, 1.08)):
        known(1 / limit, "matmul:matmul/bias_relu", "bf16", (n,) * 3, beside=bare, epi="bias_gelu")
    known(1 / 1.06, "matmul:matmul_swiglu", "bf16", (8192, 4096, 8192), beside=twice_as_wide)
    known(0.98, "matmul:matmul_i8", "bf16", (8192,) * 3)
    known(0.98, "matmul:matmul_f8", "bf16", (8192,) * 3)
    known(0.98, "matmul:matmul_f8", "bf16", (4096,) * 3)
    known(0.95, "matmul:matmul", "f32", (4096,) * 3)
    known(1.00, "matmul:matmul_batched", "bf16", (64, 512, 512, 512))


@goal(1 / 1.04, "matmul:matmul/add_residual", "bf16", (8192,) * 3, file="stdlib/matmul.tile", epi="add_residual", T="bf16", U="bf16")
def _(r, m, n, k):
    a, b, c, more = r.randn(m, k), r.randn(k, n), r.empty(m, n), r.randn(m, n, kind=torch.float32)
    case = Case([a, b, c, more], [c], lambda a, b, more: (torch.mm(a, b, out_dtype=torch.float32) + more).to(c.dtype), a, b, more,
                flops=2 * m * n * k)
    case.own = bare(case)
    return case


def rounded(turned):
    def build(r, m, n, k):
        a, b, c = r.randn(m, k), r.randn(*((n, k) if turned else (k, n))), r.empty(m, n)

        def function(a, b):
            before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
            c = a @ (b.t() if turned else b)
            torch.backends.cuda.matmul.allow_tf32 = before
            return c
        case = Case([a, b, c], [c], function, a, b, flops=2 * m * n * k, loose=2e-3)
        if not turned:
            case.own = [("along k", Own("bench/gpu_goals.tile", "matmul_tf32_nt", [a, b, c]))]
        return case
    return build


goal(0.98, "gpu_goals:matmul_tf32_nt", "f32", (4096,) * 3)(rounded(True))
goal(0.85, "gpu_goals:matmul_tf32", "f32", (4096,) * 3)(rounded(False))


@goal(0.90, "gpu_goals:matmul_f64", "f32", (4096,) * 3)
def _(r, m, n, k):
    a, b = r.randn(m, k, kind=torch.float64), r.randn(k, n, kind=torch.float64)
    c = r.empty(m, n, kind=torch.float64)
    return Case([a, b, c], [c], lambda a, b: a @ b, a, b, flops=2 * m * n * k, loose=1e-12)


@goal(0.85, "gpu_goals:matmul_f8_blocks", "bf16", (4096,) * 3)
def _(r, m, n, k):
    a, b = (r.randn(*s, kind=torch.float32).to(torch.float8_e4m3fn) for s in ((m, k), (n, k)))
    rows, blocks = r.rand(m, k // 128, kind=torch.float32) + 0.5, r.rand(n // 128, k // 128, kind=torch.float32) + 0.5
    c, one = r.empty(m, n), torch.ones(m, device=r.device)

    def function(a, b, rows, blocks):
        left = a.float() * rows.repeat_interleave(128, 1)
        return (left @ (b.float() * blocks.repeat_interleave(128, 0).repeat_interleave(128, 1)).t()).to(c.dtype)
    case = Case([a, b, rows, blocks, c], [c], function, a, b, rows, blocks, flops=2 * m * n * k)
    case.own = [("unscaled", Own("stdlib/matmul.tile", "matmul_f8", [a, b, one, one[:1].expand(n).contiguous(), c], T="f8e4m3", U="bf16"))]
    return case


def of_bytes(r, m, n, k):
    """Weights of 8 bits beside cuBLAS with weights of 16."""
    x, w, y = r.randn(m, k), r.ints(-128, 128, n, k, kind=torch.int8), r.empty(m, n)
    scale, wide = r.f32(n, scale=k**-0.5 / 64), (w.float() * 1).to(x.dtype)
    case = Case([x, w, scale, y], [y], lambda x, w, s: x @ (w.float() * s[:, None]).to(x.dtype).T, x, w, scale, flops=2 * m * n * k)
    case.only = [("16 bits", lambda: x @ wide.T)]
    return case


goal(1.5, "products:dequantised", "bf16", (16, 8192, 8192), file="tests/programs/products.tile")(of_bytes)
goal(0.85, "products:dequantised", "bf16", (4096, 8192, 8192), file="tests/programs/products.tile")(of_bytes)


@goal(1.2, "matmul:matmul_grouped", "bf16", (8192, 64, 4096, 4096), file="stdlib/matmul.tile", U="bf16")
def _(r, m, e, n, k):
    a, w, c = r.randn(m, k), r.randn(e, k, n), r.zeros(m, n)
    begins = torch.cat([torch.zeros(1), torch.sort(torch.rand(e - 1)).values * m, torch.full((1,), m)]).int().to(r.device)
    return Case([a, w, begins, c], [c], lambda a, w: torch._grouped_mm(a, w, offs=begins[1:]), a, w, updates=[c],
                flops=2 * m * n * k)


@goal(0.8, "gpu_goals:normed_gate", "bf16", (8192, 4096, 4096))
def _(r, m, n, k):
    x, gamma, gate, up = r.randn(m, k), r.randn(k), r.randn(k, n, scale=k**-0.5), r.randn(k, n, scale=k**-0.5)
    y = r.empty(m, n)

    def function(x, gamma, gate, up):
        v = (x.float() * torch.rsqrt((x.float() * x.float()).mean(1, keepdim=True) + 1e-5) * gamma.float()).to(x.dtype)
        return F.silu(v @ gate) * (v @ up)
    case = Case([x, gamma, gate, up, y, 1e-5], [y], function, x, gamma, gate, up, flops=4 * m * n * k)
    case.own = twice_as_wide(Case([x, gate, up, y], [y], None))
    return case


# ---- attention ----

def attention():
    for d in (128, 64):
        for variant in ("", "/causal"):
            for b, s in ((4, 1024), (1, 4096), (1, 16384)):
                known(0.98, "attention:attention" + variant, "bf16", (b, 16, 16, s, d))
        known(0.98, "attention:attention/causal", "bf16", (1, 32, 8, 4096, d))
    for s in (4096, 16384):
        known(1.4, "attention:attention_f8", "bf16", (1, 16, 16, s, 128), beside=of_halves)
    known(0.9, "attention:attention_scored", "bf16", (1, 16, 16, 4096, 192, 128))
    known(0.9, "attention:attention_scored/causal", "bf16", (1, 16, 16, 4096, 192, 128))
    for d in (128, 64):
        for s in (4096, 16384):
            known(0.8, "attention:attention_backward", "bf16", (1, 16, 16, s, d))


def of_halves(case):
    q, k, v = (x.to(torch.bfloat16) for x in case.arguments[:3])
    o, scale = case.arguments[6], case.arguments[7]
    return [("bf16", Own("stdlib/attention.tile", "attention", [q, k, v.transpose(2, 3).contiguous(), o, scale], T="bf16", causal="false"))]


@goal(0.8, "attention:attention_backward/full", "bf16", *((1, 16, 16, s, d) for d in (128, 64) for s in (4096, 16384)),
      file="stdlib/attention.tile", causal="false")
def _(r, b, h, g, s, d):
    q, k, v, _o = products.heads(r, b, h, g, s, d)
    do, inputs = r.randn(b, h, s, d), [x.detach().requires_grad_() for x in (q, k, v)]
    made = [torch.empty_like(x) for x in (q, k, v)]
    o, lse = torch.empty_like(q), r.empty(b, h, s, kind=torch.float32)
    for i in range(h):  # a head after the other: all scores are 16 GB
        scores = q[:, i].float() @ k[:, i].float().transpose(1, 2) * d**-0.5
        lse[:, i], o[:, i] = torch.logsumexp(scores, 2), (torch.softmax(scores, 2) @ v[:, i].float()).to(q.dtype)

    def gradients(backend):
        with torch.enable_grad(), sdpa_kernel(backend):
            y = products.attend(*inputs)
        return lambda *_: torch.autograd.grad(y, inputs, do, retain_graph=True)
    peers = [gradients(x) for x in ((SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION) if q.is_cuda else (SDPBackend.MATH,))]
    return Case([q, k, v, o, lse, do, *made, d**-0.5], made, peers[0], flops=10 * b * h * s * s * d, also=peers[1:])


def flash(q, k, v, ends, longest, causal, left=None):
    """PyTorch's attention of sequences end to end."""
    return torch.ops.aten._flash_attention_forward(q, k, v, ends, ends, longest, longest, 0.0, causal, False, scale=q.shape[2]**-0.5,
                                                   window_size_left=left, window_size_right=0 if left else None)[0]


@goal(1.0, "attention:attention_varlen", "bf16", (16, 128), file="stdlib/attention.tile", causal="true")
def _(r, h, d):
    lengths = [8192, 100, 4096, 517, 2048, 1023, 300, 6000, 128, 3333]
    ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    q, k, v = (r.randn(ends[-1], h, d) for _ in range(3))
    o, cu = r.empty(ends[-1], h, d), r.listed(ends)
    return Case([q, k, v, cu, cu, o, max(lengths), d**-0.5], [o], lambda q, k, v: flash(q, k, v, cu, max(lengths), True), q, k, v,
                flops=sum(2 * h * s * s * d for s in lengths))


@goal(1.0, "attention:attention_window", "bf16", (1, 16, 16384, 128), file="stdlib/attention.tile")
def _(r, b, h, s, d):
    q, k, v, o = products.heads(r, b, h, h, s, d)
    ends = r.listed([0, s])

    def function(q, k, v):
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return flash(q, k, v, ends, s, True, 1023).transpose(0, 1)[None]
    return Case([q, k, v, o, d**-0.5, 1024], [o], function, q, k, v, flops=4 * b * h * s * 1024 * d)


@goal(0.85, "attention:attention_paged", "bf16", *((b, s, c) for b, s in ((64, 4096), (8, 65536)) for c in (16, 64)),
      file="stdlib/attention.tile", share=True)
def _(r, b, s, c):
    h, g, d = 32, 8, 128
    q, o = r.randn(b, h, d), r.empty(b, h, d)
    k, v = (r.randn(b * s // c, c, g, d) for _ in range(2))
    table = torch.randperm(b * s // c, device="cpu").to(torch.int32).view(b, s // c).to(r.device)

    def function(q, k, v, table):
        keys, values = (x[table.long()].view(b, s, g, d).transpose(1, 2) for x in (k, v))
        return products.attend(q[:, :, None], keys, values).view(b, h, d)
    return Case([q, k, v, table, r.listed([s] * b), o, d**-0.5], [o], function, q, k, v, table, moved=2 * k.numel() * k.element_size())


@goal(0.65, "gpu_goals:attention_capped", "bf16", (1, 16, 4096, 128))
def _(r, b, h, s, d):
    q, k, v, o = products.heads(r, b, h, h, s, d)
    bias = r.randn(h, s, s)

    def function(q, k, v, bias):
        scores = 30 * torch.tanh((q.float() @ k.float().transpose(2, 3) * d**-0.5 + bias.float()) / 30)
        return (torch.softmax(scores, 3) @ v.float()).to(q.dtype)
    case = Case([q, k, v, bias, o, d**-0.5], [o], function, q, k, v, bias, flops=4 * b * h * s * s * d)
    case.own = [("plain", Own("stdlib/attention.tile", "attention", [q, k, v, o, d**-0.5], T="bf16", causal="false"))]
    return case


# ---- convolutions ----

LAYERS = ((56, 64, 64, 3), (56, 64, 256, 1), (28, 128, 128, 3), (28, 512, 128, 1), (14, 256, 256, 3), (14, 256, 1024, 1),
          (7, 512, 512, 3), (7, 2048, 512, 1))  # extent, channels, outputs, window


def layer(of):
    """0: the layer, 1: the gradient of its input, 2: of its weights."""
    def build(r, b, n, c, o, s):
        x, wt, dy = r.randn(b, n, n, c), r.randn(s, s, c, o, scale=(s * s * c)**-0.5), r.randn(b, n, n, o, scale=(b * n * n)**-0.5)
        turned = wt.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        bias, flops = r.f32(o), 2 * b * n * n * c * o * s * s

        def forward(x, wt, bias):
            return F.conv2d(products.last(x), wt, bias, padding=s // 2).permute(0, 2, 3, 1)

        def backward(x, wt, dy):
            dx, dwt, _ = torch.ops.aten.convolution_backward(products.last(dy), products.last(x), wt, None, [1, 1], [s // 2] * 2, [1, 1],
                                                             False, [0, 0], 1, [of == 1, of == 2, False])
            return dx.permute(0, 2, 3, 1) if of == 1 else dwt.permute(2, 3, 1, 0)
        if of == 0:
            y = torch.empty_like(dy)
            return Case([x, wt, bias, y, 1, s // 2], [y], forward, x, turned, bias.to(r.kind), flops=flops)
        given, made = ((dy, wt), torch.empty_like(x)) if of == 1 else ((x, dy), torch.empty_like(wt))
        return Case([*given, made, 1, s // 2], [made], backward, x, turned, dy, flops=flops)
    return build


def convolutions():
    for of, (name, bar) in enumerate((("conv2d", 0.8), ("conv2d_input_gradient", 0.85), ("conv2d_weight_gradient", 0.85))):
        for batch in (32, 256):
            goal(bar, "conv:" + name, "bf16", *((batch, *shape) for shape in LAYERS), file="stdlib/conv.tile", stride=1)(layer(of))


products_of_halves()
forms_of_products()
attention()
convolutions()


# ---- measuring ----

class Bench(breadth.Bench):
    def peers(self, row, case):
        if hasattr(case, "own"):
            return [(name, breadth.Call(self.tile, self.tile.opened(own.row, {}), own.arguments)) for name, own in case.own]
        if hasattr(case, "only"):
            return case.only
        return super().peers(row, case)

    def prepare(self, row):
        super().prepare(row)
        try:
            for _, own in getattr(row.build(breadth.Make(row.kind, "meta"), *row.shape), "own", []):
                self.tile.opened(own.row, {})
        except Exception:  # any mistake of a row is that row's
            pass

    def measure(self, row):
        self.mode = row.mode
        fields, notes = super().measure(row)
        held = float(fields["share" if row.share else "ratio"])
        fields["ratio"], fields["bar"] = f"{held:.4f}", row.bar
        fields["kernel"] += "" if row.mode == "cold" else "/" + row.mode
        return fields, notes

    def profile(self, row):
        """One call each, behind one that compiles, in a range named by the row and who runs."""
        case, runtime = row.build(breadth.Make(row.kind, self.device), *row.shape), torch.cuda.cudart()
        for name, call in [("tile", breadth.Call(self.tile, self.tile.opened(row, {}), case.arguments)), *self.peers(row, case)]:
            call()
            torch.cuda.synchronize()
            torch.cuda.nvtx.range_push(f"{row.key()} {name}")
            runtime.cudaProfilerStart()
            call()
            torch.cuda.synchronize()
            runtime.cudaProfilerStop()
            torch.cuda.nvtx.range_pop()

    def timed(self, found, repeat):
        if self.mode == "cold":
            return super().timed(found, repeat)
        if self.mode == "graph":
            calls = {name: in_graph(call) for name, (call, _) in found.items()}
            return {name: time / CALLS for name, time in self.timer.times(calls, 15, flush=False).items()}, 15
        return sustained({name: call for name, (call, _) in found.items()}, {name: seconds for name, (_, seconds) in found.items()}), SUSTAINED_TURNS


def sustained(calls, seconds):
    """Microseconds of each call, of those that follow one another for 0.3 seconds. The power limits the clock, which takes a tenth of a second and more to settle behind a
    pause or another candidate's calls: half as many calls go in front of those that count, and each second turn has the other order."""
    times = {name: [] for name in calls}
    for turn in range(SUSTAINED_TURNS):
        for name in list(calls) if turn % 2 == 0 else reversed(calls):
            count = max(1, int(SUSTAINED_SECONDS / max(seconds[name], 1e-6)))
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            for _ in range((count + 1) // 2):
                calls[name]()
            begin.record()
            for _ in range(count):
                calls[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) * 1000 / count)
    return {name: statistics.median(values) for name, values in times.items()}


def in_graph(call):
    """So many calls, one after the other, as one."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        if isinstance(call, breadth.Call):
            before, call.options.stream = call.options.stream, torch.cuda.current_stream().cuda_stream
        for _ in range(CALLS):
            call()
        if isinstance(call, breadth.Call):
            call.options.stream = before
    return graph.replay


def report(goals, runs):
    """The medians of all runs, and what is short."""
    print("\nmedians: Tile's speed over what it is held to")
    short, families = [], {}
    for row in goals:
        found = [fields for fields in runs.get(row.key(), []) if fields["ratio"]]
        if not found:
            short.append(row)
            print(f"{row.key():58} no result")
            continue
        ratio = statistics.median(float(fields["ratio"]) for fields in found)
        best = [float(f["tile_us"]) / float(f["best_us"]) for f in found if f.get("best_us")]
        families.setdefault((row.name, row.mode), []).append(ratio)
        good = ratio >= row.bar and all(fields["status"] == "ok" for fields in found)
        if not good:
            short.append(row)
        print(f"{row.key():58} {float(found[-1]['tile_us']):10.1f} µs {found[-1]['peer']:8} {ratio:6.3f} of {row.bar:.2f}"
              f"{'' if good else '  SHORT'}{f'  best point {max(1, statistics.median(best)):.2f} x' if best else ''}", flush=True)
    print("\ngeometric means")
    for (name, mode), ratios in families.items():
        print(f"{name} {mode if mode != 'cold' else '':10} {breadth.geometric(ratios):.3f} of {len(ratios)} rows, at least {min(ratios):.3f}")
    print(f"{len(goals)} rows, {len(short)} short")
    return len(short)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name, default in (("library", str(breadth.ROOT / "build/release/lib/libtile.so")), ("only", ""), ("part", "1/1"), ("out", "")):
        parser.add_argument("--" + name, default=default)
    for name, default in (("repeat", 25), ("runs", 1), ("sweep", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    part, parts = (int(n) for n in options.part.split("/"))
    assert len({row.key() for row in GOALS}) == len(GOALS), "two rows have one name"
    goals = [row for row in GOALS if any(text in row.key() for text in options.only.split(","))][part - 1::parts]
    if options.list:
        print("\n".join(f"{row.key():58} {row.bar:.2f}" for row in goals))
        return 0
    for name, value in (("device", "cpu" if options.dry else "cuda"), ("root", str(breadth.ROOT)), ("threads", 0), ("beside", ""), ("beside_root", ""),
                        ("compile", False), ("commit", breadth.commit_of(str(breadth.ROOT)))):
        setattr(options, name, value)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        bench = Bench(options)
        if options.dry:
            wrong = [(row, what) for row in goals if (what := bench.dry(row))]
            print("\n".join(f"{row.key():58} {what}" for row, what in wrong))
            print(f"{len(goals)} rows, {len(wrong)} wrong")
            return 1 if wrong else 0
        if options.profile:
            for row in goals:
                bench.profile(row)
            return 0
        runs = {}
        for _ in range(options.runs):
            for fields, row in zip(bench.run(goals), goals):
                runs.setdefault(row.key(), []).append(fields)
    return 1 if report(goals, runs) else 0


if __name__ == "__main__":
    sys.exit(main())
