#!/usr/bin/env python3
"""What CPUs compute most, beside PyTorch (oneDNN, MKL) and, on one thread, NumPy (OpenBLAS), on one thread and on many: products of f32,
bf16 and bytes, plain, transposed and skinny, with epilogues; attention; the convolutions of ResNet-50; kernels that memory
bounds (rows of breadth.py); and small kernels on many threads beside one.

Times are medians, of the clock, or of one thread its own time, which other processes do not take from it. All candidates of a row are called in turn, each sample for half a millisecond at least, so
that data lies in the caches as far as it fits. A row's results are compared with PyTorch's, also in double precision. `ratio` is the time of the best
peer over Tile's: above 1 Tile is faster.

usage: cpu_peers.py [OPTION]...
  --threads=A,B    numbers of threads, each in processes of its own (1 and as many as there are processors)
  --sections=A,B   products, bytes, epilogue, attention, convolution, memory, small (all)
  --only=A,B       rows that have one of these texts in their names
  --shards=N       rows of one thread by N processes at a time, each on a processor of its own
  --seconds=S      no row of a process begins later
  --row-seconds=S  of timing at most (0.3)
  --most=GFLOP     no row that has more to compute (of one thread; of more threads eight times as many)
  --every=N        of the rows of `memory` the first of each N
  --compile        torch.compile too, beside the rows of `memory`: some seconds for each row's code
  --library=PATH   libtile.so (build/release/lib/libtile.so)
  --root=DIR       the folder that has stdlib/ and tests/programs/ (the repository)
  --out=FILE       all rows, as a table with tabs
"""
import argparse
import ctypes
import math
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTIONS = ("products", "bytes", "epilogue", "attention", "convolution", "memory", "small")
CUBES = tuple((n, n, n) for n in (64, 128, 256, 512, 1024, 2048, 4096))
SOME = tuple((n, n, n) for n in (64, 256, 1024, 2048))
SKINNY = ((16, 4096, 4096), (128, 4096, 4096))  # M, N, K
FIELDS = ("section", "threads", "row", "status", "tile_us", "peer", "peer_us", "ratio", "gflops", "gbs")
SAMPLE = 5e-4
TURNS = 11
# The layers of ResNet-50: extent of the image, channels, outputs, window, stride.
LAYERS = ((224, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
          (56, 256, 128, 1, 1), (56, 128, 128, 3, 2), (28, 128, 512, 1, 1), (56, 256, 512, 1, 2), (28, 512, 128, 1, 1),
          (28, 128, 128, 3, 1), (28, 512, 256, 1, 1), (28, 256, 256, 3, 2), (14, 256, 1024, 1, 1), (28, 512, 1024, 1, 2),
          (14, 1024, 256, 1, 1), (14, 256, 256, 3, 1), (14, 1024, 512, 1, 1), (14, 512, 512, 3, 2), (7, 512, 2048, 1, 1),
          (14, 1024, 2048, 1, 2), (7, 2048, 512, 1, 1), (7, 512, 512, 3, 1))
SMALL = ("elementwise:add", "elementwise:map/gelu", "elementwise:map/gelu_tanh", "elementwise:map/relu", "softmax:softmax",
         "norm:layernorm", "norm:rmsnorm", "reduce:sum_rows", "reduce:sum_columns", "reduce:argmax_rows", "softmax:logsumexp",
         "cumsum:cumsum_rows", "cumsum:cumsum_columns", "transpose:transpose", "loss:cross_entropy", "sort:sort_rows")
MEMORY_SIZES = (1 << 16, 1 << 20, 1 << 24)  # elements of the largest tensor at most: in L2, in L3, past both


class Turns:
    """Medians in microseconds, candidates in turn, a sample of as many calls as take half a millisecond."""

    def __init__(self, threads):
        self.now = time.thread_time if threads == 1 else time.perf_counter

    def times(self, calls, repeat):
        counts, now = {}, self.now
        for name, call in calls.items():
            begin = now()
            call()
            counts[name] = max(1, min(1000, int(SAMPLE / max(1e-7, now() - begin))))
        found = {name: [] for name in calls}
        order = list(calls.items())
        for turn in range(repeat):
            for name, call in order[turn % len(order):] + order[:turn % len(order)]:
                count = counts[name]
                begin = now()
                for _ in range(count):
                    call()
                found[name].append((now() - begin) / count)
        return {name: sorted(times)[len(times) // 2] * 1e6 for name, times in found.items()}


def running(calls):
    """Those that run, and the seconds of a turn."""
    found, turn = {}, 0
    for name, call in calls.items():
        try:
            call()
        except Exception:  # PyTorch has not every form for CPUs
            continue
        begin = time.perf_counter()
        call()
        turn += max(SAMPLE, time.perf_counter() - begin)
        found[name] = call
    return found, turn


def gelu_of_product(case):
    """What PyTorch computes where the epilogue is bias and gelu."""
    import torch
    case.function = lambda a, b, bias: torch.nn.functional.gelu(torch.addmm(bias, a, b), approximate="tanh")


# ---- rows ----

def entries():
    import breadth
    return {name: (table.folder, types, settings, build)
            for table in breadth.TABLES for name, _, _, types, settings, build in table.entries}


def row_of(known, name, kind, shape, **more):
    from breadth_table import Row
    folder, _, settings, build = known[name]
    chosen = {key: kind if value == "T" else value for key, value in settings.items()}
    return Row(name, kind, shape, build, {**chosen, **more}, f"{folder}/{name.split(':')[0]}.tile")


def layer(r, b, s, c, o, window, stride):
    import torch
    import torch.nn.functional as F
    from breadth_products import last
    from breadth_table import Case
    out = (s - 1) // stride + 1
    x, wt = r.randn(b, s, s, c), r.randn(window, window, c, o, scale=(window * window * c)**-0.5)
    bias, y = r.f32(o), r.empty(b, out, out, o)
    turned = wt.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def function(x, wt, bias):
        return F.conv2d(last(x), wt, bias, stride=stride, padding=window // 2).permute(0, 2, 3, 1)
    return Case([x, wt, bias, y, 1, window // 2], [y], function, x, turned, bias.to(r.kind),
                flops=2 * b * out * out * window * window * c * o)


def rows_of(section, known, threads, every):
    """Pairs of a label and a row."""
    import breadth
    from breadth_table import Row
    rows = []
    if section == "products":
        for kind in ("f32", "bf16"):
            for name, shapes in (("matmul", CUBES), ("matmul_nt", SOME), ("matmul_tn", SOME), ("matmul", SKINNY)):
                rows += [row_of(known, f"matmul:{name}", kind, shape) for shape in shapes]
            for name in ("gemv", "gemv_t"):
                rows += [row_of(known, f"matmul:{name}", kind, shape) for shape in ((1024, 1024), (4096, 4096))]
    elif section == "bytes":
        rows = [row_of(known, "matmul:matmul_i8", "f32", shape) for shape in CUBES[:-1] + SKINNY]
    elif section == "epilogue":
        rows = [row_of(known, "matmul:matmul/bias_relu", kind, (n, n, n), epi="bias_gelu") for n in (512, 1024, 2048)
                for kind in ("f32", "bf16")]
    elif section == "attention":
        rows = [row_of(known, name, kind, (1, 8, 8, length, width)) for kind in ("f32", "bf16") for length in (512, 2048, 8192)
                for width in (64, 128) for name in ("attention:attention", "attention:attention/causal")]
    elif section == "convolution":
        rows = [Row("conv:conv2d", kind, (batch, *shape), layer, {"stride": shape[-1]}, "stdlib/conv.tile")
                for kind in ("f32", "bf16") for batch in (1, 32) for shape in LAYERS]
    elif section == "small":
        rows = [row_of(known, name, kind, (64, 1024)) for name in SMALL for kind in ("f32", "bf16")]
    elif section == "memory":
        for most in MEMORY_SIZES:
            for table in breadth.TABLES:
                for row in table.rows(False):
                    row.shape = breadth.halved(row.shape, most)
                    rows.append(row)
        rows = list({row.key(): row for row in rows if not row.name.startswith(("matmul:", "conv:", "attention:"))}.values())
        rows = rows[::every]
    return rows


# ---- a process of so many threads ----

class Worker:
    def __init__(self, options, threads):
        import breadth
        import torch
        self.breadth, self.torch, self.options, self.threads = breadth, torch, options, threads
        self.begun, self.turns = time.monotonic(), Turns(threads)
        torch.set_num_threads(threads)
        self.tile = breadth.Tile(options.library, pathlib.Path(options.root), "cpu")
        self.most = options.most * (8 if threads > 1 else 1)

    def late(self):
        return time.monotonic() - self.begun > self.options.seconds

    def peers(self, section, row, case):
        import breadth_compiled
        calls = {"eager": lambda: case.function(*case.inputs)}
        for i, other in enumerate(case.also):
            calls[f"eager{i + 2}"] = lambda other=other: other(*case.inputs)
        if section == "memory" and self.options.compile:
            calls["compiled"] = breadth_compiled.peer(self.torch, case)
        if row.name.startswith("matmul:matmul") and section in ("products", "epilogue"):
            a, b, c = (tensor.clone() for tensor in case.arguments[:3])
            a, b = (x.t() if turned else x for x, turned in zip((a, b), self.turned(row.name)))
            torch = self.torch
            if section == "products":
                calls["torch.mm"] = lambda: torch.mm(a, b, out=c)
                if row.kind == "f32" and self.threads == 1:  # OpenBLAS has threads of its own, which stay in the others' way
                    import numpy
                    left, right, out = a.numpy(), b.numpy(), c.numpy()
                    calls["NumPy"] = lambda: numpy.matmul(left, right, out=out)
        if section == "bytes":
            a, b = case.inputs[:2]
            turned = b.t().contiguous().t()
            calls["_int_mm"] = lambda: self.torch._int_mm(a, b)
            calls["_int_mm t"] = lambda: self.torch._int_mm(a, turned)
        return calls

    @staticmethod
    def turned(name):
        letters = name.partition("_")[2].partition("/")[0] or "nn"
        return [letter == "t" for letter in letters]

    def measure(self, section, row):
        breadth = self.breadth
        self.torch.manual_seed(1)
        case = row.build(breadth.Make(row.kind, "cpu"), *row.shape)
        if case.flops and case.flops > self.most * 1e9:
            return None
        if section == "epilogue":
            gelu_of_product(case)
        launch = breadth.Call(self.tile, self.tile.opened(row, {}), case.arguments)
        breadth.blank(case)
        launch()
        expected = breadth.tuple_of(case.function(*case.inputs))
        error = (case.error or breadth.error_of)(case.results, expected)
        limit = case.loose or breadth.TOLERANCE[row.kind]
        if not error <= limit and not case.error:
            error = min(error, breadth.exact_error(case))
        right = error <= limit
        calls = {"Tile": launch, **self.peers(section, row, case)}
        if section == "epilogue":
            bare = row_of(entries(), "matmul:matmul", row.kind, row.shape)
            calls["Tile's product"] = breadth.Call(self.tile, self.tile.opened(bare, {}), case.arguments[:3])
        if section == "small" and self.threads > 1:
            calls["Tile on 1"] = self.on_one(row, case)
        if any(isinstance(argument, int) for argument in case.arguments):
            breadth.settle([launch], "cpu")
        calls, turn = running(calls)
        times = self.turns.times(calls, max(1, min(TURNS, int(self.options.row_seconds / turn))))
        return case, times, right, error

    def on_one(self, row, case):
        """The same launch by a pool of one thread."""
        class Options(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int), ("parallel_for", ctypes.c_void_p),
                        ("host", ctypes.c_void_p)]

        class Launch(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("stream", ctypes.c_void_p), ("error", ctypes.c_void_p),
                        ("threads", ctypes.c_void_p)]
        if not hasattr(self, "pool"):
            self.pool = ctypes.c_void_p()
            options = Options(struct_size=ctypes.sizeof(Options), threads=1)
            if self.tile.api.tile_thread_pool_create(ctypes.byref(options), ctypes.byref(self.pool)):
                raise RuntimeError("no pool of one thread")
        call = self.breadth.Call(self.tile, self.tile.opened(row, {}), case.arguments)
        call.options = Launch(struct_size=ctypes.sizeof(Launch), threads=self.pool)
        return call

    def fields(self, section, row, measured):
        case, times, right, error = measured
        mine = times["Tile"]
        rivals = {name: t for name, t in times.items() if name != "Tile"}
        if section == "epilogue":
            rivals = {"Tile's product": times["Tile's product"]}
        if "Tile on 1" in times:
            rivals = {"Tile on 1": times["Tile on 1"]}
        peer = min(rivals, key=rivals.get)
        return dict(section=section, threads=self.threads, row=row.key(), status="ok" if right else f"WRONG {error:.1e}",
                    tile_us=f"{mine:.2f}", peer=peer, peer_us=f"{rivals[peer]:.2f}", ratio=f"{rivals[peer] / mine:.4f}",
                    gflops=f"{case.flops / mine / 1e3:.1f}" if case.flops else "", gbs=f"{case.moved / mine / 1e3:.1f}")

    def run(self, part, parts):
        known, wanted = entries(), self.options.only.split(",")
        for section in self.options.sections.split(","):
            rows = rows_of(section, known, self.threads, self.options.every)
            rows = [row for row in rows if any(text in row.key() for text in wanted)][part::parts]
            for row in rows:
                if self.late():
                    print(f"# {section}: not all rows were begun", flush=True)
                    break
                try:
                    measured = self.measure(section, row)
                    if not measured:
                        continue
                    fields = self.fields(section, row, measured)
                except Exception as error:  # a row that fails says so, and the others go on
                    fields = dict.fromkeys(FIELDS, "")
                    fields.update(section=section, threads=self.threads, row=row.key(),
                                  status="error " + self.breadth.first_line(error))
                print("\t".join(str(fields[name]) for name in FIELDS), flush=True)


# ---- all processes ----

def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def by_kernel(rows):
    """The geometric mean of kernels, of each of which it is that of its rows."""
    kernels = {}
    for row in rows:
        if row["ratio"]:
            kernels.setdefault(row["row"].split()[0], []).append(float(row["ratio"]))
    return geometric([geometric(ratios) for ratios in kernels.values()])


def collect(options, threads):
    """The lines of all processes of so many threads."""
    shards = options.shards if threads == 1 else 1
    processes = []
    cores = sorted(os.sched_getaffinity(0))
    for part in range(shards):
        environment = dict(os.environ, TILE_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads),
                           OPENBLAS_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        pinned = {cores[part % len(cores)]} if threads == 1 else None
        processes.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], f"--worker={threads},{part},{shards}"],
                                          env=environment, stdout=subprocess.PIPE, text=True,
                                          preexec_fn=(lambda p=pinned: os.sched_setaffinity(0, p)) if pinned else None))
    return [line for process in processes for line in process.communicate()[0].splitlines()]


def show(rows):
    for section in SECTIONS:
        for threads in sorted({row["threads"] for row in rows}, key=int):
            mine = [row for row in rows if row["section"] == section and row["threads"] == threads]
            if not mine:
                continue
            print(f"\n## {section}, {threads} thread{'s' if threads != '1' else ''}\n\n| row | µs | Gop/s | GB/s | peer | its µs | ratio |\n"
                  "|---|---|---|---|---|---|---|")
            for row in mine:
                note = "" if row["status"] == "ok" else f" {row['status']}"
                print(f"| {row['row']}{note} | {row['tile_us']} | {row['gflops']} | {row['gbs']} | {row['peer']} | {row['peer_us']} | "
                      f"{row['ratio'][:5]} |")
            ratios = [float(row["ratio"]) for row in mine if row["ratio"]]
            if ratios:
                print(f"\n{len(ratios)} rows, geometric mean {geometric(ratios):.2f}, by kernel {by_kernel(mine):.2f}, least {min(ratios):.2f}, "
                      f"{sum(r >= 0.95 for r in ratios)} of at least 0.95, {sum(r < 0.85 for r in ratios)} below 0.85")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--threads", default=f"1,{len(os.sched_getaffinity(0))}")
    parser.add_argument("--sections", default=",".join(SECTIONS))
    parser.add_argument("--only", default="")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--row-seconds", type=float, default=0.3)
    parser.add_argument("--most", type=float, default=40)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--library", default=str(ROOT / "build/release/lib/libtile.so"))
    parser.add_argument("--root", default=str(ROOT))
    parser.add_argument("--out", default="")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        threads, part, parts = (int(n) for n in options.worker.split(","))
        worker = Worker(options, threads)
        with worker.torch.no_grad():
            worker.run(part, parts)
        return 0
    rows = []
    for threads in dict.fromkeys(int(n) for n in options.threads.split(",")):
        for line in collect(options, threads):
            if line.startswith("#"):
                print(line)
            else:
                rows.append(dict(zip(FIELDS, line.split("\t"))))
    show(rows)
    if options.out:
        with open(options.out, "w") as file:
            file.write("\n".join("\t".join(line) for line in [FIELDS, *([row[name] for name in FIELDS] for row in rows)]) + "\n")
    return 1 if any(row["status"] != "ok" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
