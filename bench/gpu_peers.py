#!/usr/bin/env python3
"""Kernels that memory bounds, and products, on the NVIDIA GPU of this machine beside Triton and PyTorch (eager and
compiled).

Needs libtile of a release build, PyTorch, Triton and the driver. Tile's kernels are compiled and launched through the
C API (tile/tile.h), on tensors that PyTorch hands over by DLPack, on its stream. Of each kernel the values of its `tune`
that are named here are tried in a short first pass, of Triton's kernels (gpu_peers_triton.py) their configurations, and
the best of each is measured: all candidates of a row interleaved (gpu_turns.py). Results go into outputs full of NaN and are
compared with double precision.

A row passes where Tile takes no longer than the best other one over 0.97 (0.98 and Triton for sums of vectors; 0.90 where a
call takes less than 20 µs; the chain 1.5 times as fast as Triton's at an error no larger).

usage: gpu_peers.py [OPTION]...
  --library=PATH   libtile.so (build/release/lib/libtile.so)
  --stdlib=DIR     (stdlib)
  --only=A,B       rows that have one of these texts in their names
  --repeat=N       turns of a row (75)
  --no-compile     without torch.compile
  --general        instead: the general variant of each kernel beside the one for contiguous tensors
  --json=FILE      the rows go there too
  --limit=SECONDS  no row begins later
"""
import argparse
import ctypes
import json
import sys
import time

import torch
import torch.nn.functional as F

from gpu_turns import Timer
from tile_api import (ARG_INTEGER, ARG_NUMBER, ARG_TENSOR, Argument, Error, LaunchOptions, compile_options, create_compiler,
                      open_library)

SHORT_CALL = 20.0  # microseconds


# ---- Tile ----

ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tile:
    """A compiler. With `variant_limit` 1 a kernel has one special variant; all arguments that it does not serve get the
    general one."""

    def __init__(self, library, stdlib, variant_limit=8):
        self.api, self.stdlib, self.kept = open_library(library), stdlib, []
        self.compiler = create_compiler(self.api, variant_limit)

    def kernel(self, file, name, values):
        options = compile_options("cuda", values)
        library, report, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        status = self.api.tile_compile_file(self.compiler, f"{self.stdlib}/{file}.tile".encode(), ctypes.byref(options),
                                            ctypes.byref(library), ctypes.byref(report))
        if status:
            raise RuntimeError(self.api.tile_report_text(report, False).decode() or f"status {status}")
        if self.api.tile_library_kernel(library, name.encode(), ctypes.byref(kernel)):
            raise RuntimeError(f"no kernel {name} in {file}")
        return kernel

    def bind(self, kernel, arguments):
        """A function that launches the kernel; once, so that a mistake shows and code is made."""
        words, kept = (Argument * len(arguments))(), []
        for word, argument in zip(words, arguments):
            if isinstance(argument, torch.Tensor):
                capsule = argument.__dlpack__()
                kept.append((argument, capsule))
                word.kind = ARG_TENSOR
                word.value.tensor = ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")
            elif isinstance(argument, float):
                word.kind, word.value.number = ARG_NUMBER, argument
            else:
                word.kind, word.value.integer = ARG_INTEGER, argument
        error = Error()
        options = LaunchOptions(struct_size=ctypes.sizeof(LaunchOptions), error=ctypes.pointer(error),
                                stream=torch.cuda.current_stream().cuda_stream or None)
        launch, count, pointer = self.api.tile_launch, ctypes.c_size_t(len(arguments)), ctypes.byref(options)

        def call():
            if launch(kernel, words, count, pointer):
                raise RuntimeError(error.message.decode())

        self.kept.append(kept)
        call()
        return call


# ---- measuring ----

def memory_peak():
    """Bytes a second."""
    cuda, clock, width = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
    cuda.cuDeviceGetAttribute(ctypes.byref(clock), 36, 0)
    cuda.cuDeviceGetAttribute(ctypes.byref(width), 37, 0)
    return clock.value * 1e3 * 2 * width.value / 8


def error_of(result, expected):
    """Relative, of all elements together; inf where there is a NaN."""
    wrong, whole = 0.0, 0.0
    for r, e in zip(result.reshape(-1).split(1 << 26), expected.reshape(-1).split(1 << 26)):
        e = e.double()
        wrong += float((r.double() - e).square().sum())
        whole += float(e.square().sum())
    error = (wrong / whole) ** 0.5
    return error if error == error else float("inf")


# ---- rows ----

class Row:
    """make() gives an environment of tensors; tile(env) the arguments of a kernel, triton(env) pairs of name and
    call, eager(env) the result. `out` names the tensor that kernels write, `unfinished` that before finish(env)."""

    def __init__(self, name, kind, shape, **facts):
        self.name, self.kind, self.shape = name, kind, shape
        self.out, self.tolerance, self.least = "o", 1e-5, None
        self.most_autotune = False
        self.finish, self.unfinished = None, None
        self.compare_error = False
        self.__dict__.update(facts)

    def title(self):
        return f"{self.name} {NAMES[self.kind]} {'x'.join(map(str, self.shape))}"


NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
F32, BF16 = torch.float32, torch.bfloat16


def random(*shape, kind):
    return torch.randn(*shape, device="cuda", dtype=kind)


def empty(*shape, kind):
    return torch.empty(*shape, device="cuda", dtype=kind)


def tolerance_of(kind):
    return 1e-5 if kind == F32 else 8e-3


def chain(x):
    def first(v):
        v = torch.relu(torch.cos(torch.sin(v + 0.1) * 1.1) + 0.2) - 0.1
        return torch.sigmoid(torch.exp(v * 0.5) + 0.3)

    def second(v):
        v = torch.relu(torch.cos(torch.sin(v * 1.2) + 0.4) - 0.2) + 0.5
        return torch.sigmoid(torch.exp(v * 0.4) * 1.3)
    return first(second(first(x)))


def exact_chain(x):
    return torch.cat([chain(part.double()).float() for part in x.split(1 << 24)])


def vectors(kind, n, peers):
    size = kind.itemsize
    blocks = [{"BM": 1, "BN": b} for b in ((1024, 2048, 4096) if n > 1 << 20 else (256, 512, 1024))]
    return Row("vector add", kind, (n,), bytes=3 * n * size, file="elementwise:add", values=blocks,
               make=lambda: dict(x=random(n, kind=kind), y=random(n, kind=kind), o=empty(n, kind=kind)),
               tile=lambda e: [e["x"][None], e["y"][None], e["o"][None]],
               triton=lambda e: peers.add(e["x"], e["y"], e["o"]), eager=lambda e: e["x"] + e["y"],
               pure=(lambda x, y: x + y, "xy"), exact=lambda e: e["x"] + e["y"], tolerance=0.0, least=("triton", 0.98))


def chains(n, peers):
    return Row("chain of 30", F32, (n,), bytes=8 * n, file="elementwise:map", generic={"f": "chain30_approx"},
               values=[{"BM": 1, "BN": b} for b in (512, 1024, 2048)],
               make=lambda: dict(x=random(n, kind=F32), o=empty(n, kind=F32)), tile=lambda e: [e["x"][None], e["o"][None]],
               triton=lambda e: peers.chain(e["x"], e["o"]), eager=lambda e: chain(e["x"]), pure=(chain, "x"),
               exact=lambda e: exact_chain(e["x"]), least=("triton", 1.5), compare_error=True)


def softmaxes(kind, rows, columns, peers):
    held = columns <= 16384
    values = [{"BM": b} for b in ((1, 2, 4) if columns <= 1024 else (1,))] if held else \
        [{"BN": b, "warps": w} for b, w in ((4096, 32), (4096, 16), (2048, 32), (2048, 16))]
    return Row("softmax", kind, (rows, columns), bytes=2 * rows * columns * kind.itemsize,
               file="softmax:softmax_row" if held else "softmax:softmax_groups", values=values,
               make=lambda: dict(x=random(rows, columns, kind=kind), o=empty(rows, columns, kind=kind)),
               tile=lambda e: [e["x"], e["o"]], triton=lambda e: peers.softmax(e["x"], e["o"]),
               eager=lambda e: F.softmax(e["x"], -1), pure=(lambda x: F.softmax(x, -1), "x"),
               exact=lambda e: F.softmax(e["x"].double(), -1), tolerance=tolerance_of(kind))


def norms(kind, rows, columns, rms, peers):
    epsilon = 1e-5
    names = "xg" if rms else "xgb"

    def pure(x, g, b=None):
        return F.rms_norm(x, (columns,), g, epsilon) if rms else F.layer_norm(x, (columns,), g, b, epsilon)

    def make():
        env = dict(x=random(rows, columns, kind=kind), g=random(columns, kind=kind), o=empty(rows, columns, kind=kind))
        if not rms:
            env["b"] = random(columns, kind=kind)
        return env

    def tile(e):
        return [e["x"], e["g"], e["o"], epsilon] if rms else [e["x"], e["g"], e["b"], e["o"], epsilon]
    file = "norm:rmsnorm_row" if rms else "norm:layernorm_row"
    values = [{"BM": b} for b in ((1, 2, 4) if columns <= 1024 else (1, 2))]
    if kind == F32 and columns > 1024:
        values = [*values, {"BM": 1, "warps": 16}]
    if rms and kind == F32:  # a row of f32 is read again from the cache sooner than kept in registers
        file, values = "norm:rmsnorm", [{"BM": 1, "BN": b} for b in (4096, 1024)]
    return Row("rmsnorm" if rms else "layernorm", kind, (rows, columns), bytes=2 * rows * columns * kind.itemsize,
               file=file, values=values, make=make, tile=tile,
               triton=lambda e: peers.norm(e["x"], e["g"], e.get("b"), e["o"], epsilon, rms),
               eager=lambda e: pure(*(e[k] for k in names)), pure=(pure, names),
               exact=lambda e: pure(*(e[k].double() for k in names)), tolerance=tolerance_of(kind),
               most_autotune=kind == BF16 and rows > 1000)


def losses(kind, rows, columns, peers):
    def tile(e):
        return [e["x"], e["t"], e["loss"], e["lse"]]

    def exact(e):
        return torch.stack([F.cross_entropy(x.double(), t) for x, t in
                            zip(e["x"].split(rows // 16), e["t"].split(rows // 16))]).mean()
    return Row("cross-entropy", kind, (rows, columns), bytes=rows * columns * kind.itemsize, file="loss:cross_entropy",
               values=[{"BV": b, "warps": w} for b, w in ((2048, 8), (1024, 4), (1024, 8), (2048, 16), (4096, 16))],
               make=lambda: dict(x=random(rows, columns, kind=kind), t=torch.randint(0, columns, (rows,), device="cuda"),
                                 loss=empty(rows, kind=F32), lse=empty(rows, kind=F32), o=empty((), kind=F32)),
               tile=tile, finish=lambda e: torch.mean(e["loss"], 0, out=e["o"]), unfinished="loss",
               triton=lambda e: peers.cross_entropy(e["x"], e["t"], e["loss"], e["o"]),
               eager=lambda e: F.cross_entropy(e["x"], e["t"]), pure=(F.cross_entropy, "xt"), exact=exact,
               tolerance=1e-5 if kind == F32 else 2e-3)


def sums(kind, n, peers):
    columns = 8192
    return Row("sum of all", kind, (n,), bytes=n * kind.itemsize, file="reduce:sum_all",
               values=[{"BM": m, "BN": b, "BP": p} for m, b, p in
                       (((4, 4096, 8192), (8, 4096, 8192)) if n > 1 << 20 else
                        ((1, 4096, 128), (1, 8192, 128), (1, 4096, 256), (1, 8192, 256), (2, 2048, 256)))],
               make=lambda: dict(x=random(n, kind=kind) + 0.25, o=empty((), kind=F32)),
               tile=lambda e: [e["x"].view(-1, columns), e["o"]], triton=lambda e: peers.sum_all(e["x"], e["o"]),
               eager=lambda e: e["x"].sum(dtype=F32), pure=(lambda x: x.sum(dtype=F32), "x"),
               exact=lambda e: torch.stack([x.sum(dtype=torch.float64) for x in e["x"].split(1 << 26)]).sum(),
               tolerance=1e-4)


def row_sums(kind, rows, columns, peers):
    return Row("sums of rows", kind, (rows, columns), bytes=rows * columns * kind.itemsize, file="reduce:sum_rows",
               values=[{"BM": m, "BN": 4096, "warps": w, "stream": s} for m, w, s in
                       ((1, 8, 1), (1, 16, 1), (2, 16, 1), (1, 8, 0))],
               make=lambda: dict(x=random(rows, columns, kind=kind) + 0.25, o=empty(rows, kind=kind)),
               tile=lambda e: [e["x"], e["o"]], triton=lambda e: peers.sum_rows(e["x"], e["o"]),
               eager=lambda e: e["x"].sum(1), pure=(lambda x: x.sum(1), "x"),
               exact=lambda e: e["x"].double().sum(1), tolerance=tolerance_of(kind))


def cumsums(kind, rows, columns, peers):
    return Row("cumsum of rows", kind, (rows, columns), bytes=2 * rows * columns * kind.itemsize,
               file="cumsum:cumsum_rows", values=[{"BM": 1, "BN": b, "warps": w} for b, w in ((8192, 8), (2048, 4), (1024, 8), (1024, 4), (4096, 8))],
               make=lambda: dict(x=random(rows, columns, kind=kind), o=empty(rows, columns, kind=kind)),
               tile=lambda e: [e["x"], e["o"]], triton=lambda e: peers.cumsum(e["x"], e["o"]),
               eager=lambda e: torch.cumsum(e["x"], 1), pure=(lambda x: torch.cumsum(x, 1), "x"),
               exact=lambda e: torch.cumsum(e["x"].double(), 1), tolerance=tolerance_of(kind))


def transposes(kind, n, peers):
    return Row("transpose", kind, (n, n), bytes=2 * n * n * kind.itemsize, file="transpose:transpose",
               values=[{"BM": m, "BN": b} for m, b in ((64, 64), (32, 64), (64, 128), (128, 64), (128, 128))],
               make=lambda: dict(x=random(n, n, kind=kind), o=empty(n, n, kind=kind)), tile=lambda e: [e["x"], e["o"]],
               triton=lambda e: peers.transpose(e["x"], e["o"]), eager=lambda e: e["x"].t().contiguous(),
               pure=(lambda x: x.t().contiguous(), "x"), exact=lambda e: e["x"].t(), tolerance=0.0, most_autotune=True)


def table(peers):
    yield from (vectors(kind, 1 << 28, peers) for kind in (F32, BF16))
    yield from (vectors(F32, 1 << k, peers) for k in (16, 20, 22))
    yield chains(1 << 26, peers)
    for kind in (F32, BF16):
        for rows, columns in ((8192, 1024), (4096, 4096), (2048, 16384), (512, 131072)):
            yield softmaxes(kind, rows, columns, peers)
    yield softmaxes(F32, 256, 1024, peers)
    for kind, rows, columns in ((BF16, 16384, 4096), (F32, 16384, 4096), (BF16, 65536, 1024), (BF16, 512, 4096)):
        yield norms(kind, rows, columns, False, peers)
    for kind, rows, columns in ((BF16, 16384, 4096), (F32, 16384, 4096), (BF16, 512, 4096)):
        yield norms(kind, rows, columns, True, peers)
    yield from (losses(kind, 4096, 131072, peers) for kind in (BF16, F32))
    yield from (sums(kind, n, peers) for kind, n in ((F32, 1 << 29), (BF16, 1 << 29), (F32, 1 << 20)))
    yield from (row_sums(kind, 16384, 4096, peers) for kind in (F32, BF16))
    yield from (cumsums(kind, 16384, 8192, peers) for kind in (F32, BF16))
    yield from (transposes(kind, 16384, peers) for kind in (F32, BF16))


def matmuls(kind, n):
    return Row("matmul", kind, (n, n), file="matmul:matmul", values=[{}],
               make=lambda: dict(a=random(n, n, kind=kind), b=random(n, n, kind=kind), o=empty(n, n, kind=kind)),
               tile=lambda e: [e["a"], e["b"], e["o"]], tolerance=tolerance_of(kind))


def attentions(kind, length, causal):
    shape = (1, 16, length, 128)
    return Row("causal attention" if causal else "attention", kind, shape, file="attention:attention",
               generic={"causal": str(causal).lower()}, values=[{}],
               make=lambda: dict(o=empty(*shape, kind=kind), **{x: random(*shape, kind=kind) for x in "qkv"}),
               tile=lambda e: [e["q"], e["k"], e["v"], e["o"], 128 ** -0.5], tolerance=tolerance_of(kind))


def convolutions(kind):
    return Row("conv2d", kind, (16, 56, 56, 128), file="conv:conv2d", generic={"stride": 1}, values=[{}],
               make=lambda: dict(x=random(16, 56, 56, 128, kind=kind), w=random(3, 3, 128, 128, kind=kind),
                                 b=random(128, kind=F32), o=empty(16, 56, 56, 128, kind=kind)),
               tile=lambda e: [e["x"], e["w"], e["b"], e["o"], 1, 1], tolerance=tolerance_of(kind))


def products():
    """Of which --general has rows too; beside other libraries scripts/gpu_products.py measures them."""
    yield from (matmuls(kind, 4096) for kind in (BF16, torch.float16))
    yield matmuls(F32, 2048)
    yield from (attentions(BF16, 4096, causal) for causal in (False, True))
    yield from (convolutions(kind) for kind in (BF16, F32))


# ---- the table ----

def text_of(values):
    return " ".join(f"{key}={value}" for key, value in values.items()) or "-"


class Bench:
    def __init__(self, options):
        self.options, self.timer, self.peak, self.begun = options, Timer(), memory_peak(), time.monotonic()
        self.tile = Tile(options.library, options.stdlib)
        self.rows, self.short = [], 0

    def kernel(self, tile, row, values):
        file, name = row.file.split(":")
        return tile.kernel(file, name, {**getattr(row, "generic", {}), **values})

    def checked(self, row, env, expected, name, call):
        """The call's error; None, and a line, where it fails or its result is wrong."""
        try:
            env[row.out].fill_(float("nan"))
            call()
            torch.cuda.synchronize()
        except Exception as error:  # a candidate that does not run says so and is left out
            print(f"    {row.title()}: {name}: {str(error).strip().splitlines()[0][:150]}", flush=True)
            return None
        error = error_of(env[row.out], expected)
        if error <= row.tolerance:
            return error
        print(f"    {row.title()}: {name}: WRONG, error {error:.1e}", flush=True)
        return None

    def tile_candidates(self, row, env, expected):
        found, errors = [], {}
        for values in row.values:
            name = "Tile " + text_of(values)
            try:
                launch = self.tile.bind(self.kernel(self.tile, row, values), row.tile(env))
            except RuntimeError as error:
                print(f"    {row.title()}: {name}: {str(error).strip().splitlines()[0][:150]}", flush=True)
                continue

            def call(launch=launch):
                launch()
                if row.finish:
                    row.finish(env)
            errors[name] = self.checked(row, env, expected, name, call)
            if errors[name] is not None:
                found.append((name, call))
        return found, errors

    def triton_candidates(self, row, env, expected):
        found, errors = [], {}
        for name, call in row.triton(env):
            name = "Triton " + name
            errors[name] = self.checked(row, env, expected, name, call)
            if errors[name] is not None:
                found.append((name, call))
        return found, errors

    def compiled(self, row, env, calls):
        function, names = row.pure
        arguments = tuple(env[name] for name in names)
        modes = [("compiled", {})]
        if row.most_autotune:
            modes.append(("compiled, max-autotune", {"mode": "max-autotune-no-cudagraphs"}))
        for name, mode in modes:
            torch._dynamo.reset()
            try:
                compiled = torch.compile(function, dynamic=False, **mode)
                compiled(*arguments)
            except Exception as error:
                print(f"    {row.title()}: {name}: {str(error).strip().splitlines()[0][:150]}", flush=True)
                continue
            calls[name] = lambda compiled=compiled: compiled(*arguments)

    def measure(self, row):
        env = row.make()
        expected = row.exact(env)
        calls = {}
        tiles, errors = self.tile_candidates(row, env, expected)
        others, other_errors = self.triton_candidates(row, env, expected)
        del expected
        errors.update(other_errors)
        for candidates in (tiles, others):
            if candidates:
                best = self.timer.best(candidates)
                calls[best] = dict(candidates)[best]
        calls["eager"] = lambda: row.eager(env)
        if not self.options.no_compile:
            self.compiled(row, env, calls)
        return self.timer.times(calls, self.options.repeat), errors

    def report(self, row, times, errors):
        mine = next((name for name in times if name.startswith("Tile")), None)
        triton = next((name for name in times if name.startswith("Triton")), None)
        others = {name: time for name, time in times.items() if name != mine}
        if not mine:
            print(f"{row.title():34} no kernel of Tile's ran", flush=True)
            self.short += 1
            return
        best = min(others, key=others.get)
        against, least = best, 0.9 if times[mine] < SHORT_CALL else 0.97
        if row.least and triton and times[mine] >= SHORT_CALL:
            against, least = triton, row.least[1]
        ratio = others[against] / times[mine]
        passes = ratio >= least and not (row.compare_error and triton and errors[mine] > errors[triton])
        self.short += not passes
        rate = row.bytes / times[mine] * 1e6
        other = "; ".join(f"{name} {time:.1f}" for name, time in sorted(others.items(), key=lambda pair: pair[1]))
        errors_text = f"error {errors[mine]:.1e}" + (f" ({errors[triton]:.1e})" if row.compare_error and triton else "")
        print(f"{row.title():34} {times[mine]:8.1f} µs {rate / 1e9:6.0f} GB/s {100 * rate / self.peak:3.0f}% "
              f"{ratio:5.2f} {'ok   ' if passes else 'SHORT'} {mine[5:]:14} | {other} | {errors_text}", flush=True)
        self.rows.append(dict(row=row.title(), bytes=row.bytes, times=times, ratio=ratio, least=least, passes=passes,
                              errors={name: error for name, error in errors.items() if name in times}))

    def general(self, row):
        """Strided tensors take the one special variant that there may be; contiguous ones then get the general code."""
        env = row.make()
        limited = Tile(self.options.library, self.options.stdlib, variant_limit=1)
        values = row.values[0]
        special = self.tile.bind(self.kernel(self.tile, row, values), row.tile(env))
        kernel = self.kernel(limited, row, values)
        strided = [a.repeat_interleave(2, -1)[..., ::2] if isinstance(a, torch.Tensor) and a.dim() else a
                   for a in row.tile(env)]
        limited.bind(kernel, strided)
        calls = {"special": special, "general": limited.bind(kernel, row.tile(env))}
        written = env[row.unfinished or row.out]
        special()
        expected = written.clone()
        written.fill_(float("nan"))
        calls["general"]()
        wrong = not error_of(written, expected) <= row.tolerance
        times = self.timer.times(calls, self.options.repeat)
        ratio = times["general"] / times["special"]
        self.short += ratio > 2 or wrong
        verdict = "WRONG" if wrong else "ok" if ratio <= 2 else "MORE THAN TWICE"
        print(f"{row.title():34} special {times['special']:8.1f} µs, general {times['general']:8.1f} µs, {ratio:5.2f} x "
              f"{verdict}", flush=True)
        self.rows.append(dict(row=row.title(), general=times))

    def run(self, rows):
        wanted = self.options.only.split(",")
        for row in rows:
            if not any(text in row.title() for text in wanted):
                continue
            if time.monotonic() - self.begun > self.options.limit:
                print(f"{row.title():34} not begun: the time is up", flush=True)
                self.short += 1
                continue
            try:
                if self.options.general:
                    self.general(row)
                else:
                    self.report(row, *self.measure(row))
            except RuntimeError as error:
                print(f"{row.title():34} {str(error).strip().splitlines()[0][:150]}", flush=True)
                self.short += 1
            torch.cuda.empty_cache()
        if self.options.json:
            with open(self.options.json, "w") as file:
                json.dump(self.rows, file, indent=1)
        print(f"{len(self.rows)} rows, {self.short} short; peak {self.peak / 1e9:.0f} GB/s; "
              f"{time.monotonic() - self.begun:.0f} s")
        return 1 if self.short else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--library", default="build/release/lib/libtile.so")
    parser.add_argument("--stdlib", default="stdlib")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=75)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--general", action="store_true")
    parser.add_argument("--json", default="")
    parser.add_argument("--limit", type=float, default=1e9)
    options = parser.parse_args()
    torch.cuda.init()
    import gpu_peers_triton as peers
    with torch.no_grad():
        rows = table(peers)
        return Bench(options).run([*rows, *products()] if options.general else rows)


if __name__ == "__main__":
    sys.exit(main())
