#!/usr/bin/env python3
"""Matrix products and attention on the NVIDIA GPU of this machine beside PyTorch (cuBLAS, cuBLASLt, cuDNN's attention).

Needs a release build of tilec, PyTorch and the driver; no toolkit. Each kernel is compiled by `tilec emit`, loaded by the
driver and launched on PyTorch's stream. Results go into outputs full of NaN and are compared with PyTorch's in float32.
Times are those of bench/gpu_turns.py.

usage: gpu_products.py [--tilec=PATH] [--stdlib=DIR] [--sweep] [--only=TEXT] [--repeat=N]
  --sweep    also other tiles, warps and stages than the default ones: which are the best
"""
import argparse
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
from gpu_turns import Timer

TF32 = """
kernel matmul_tf32(a: in f32[M, K], b: in f32[K, N], c: out f32[M, N])
    tune BM in {128}, BN in {128}, BK in {32}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot[tf32](a[m, k], b[k, n], acc) }
        c[m, n] = acc
    }
}
kernel matmul_tf32_nt(a: in f32[M, K], b: in f32[N, K], c: out f32[M, N])
    tune BM in {128}, BN in {128}, BK in {32}, warps in {0}, stages in {0}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot[tf32](a[m, k], b[n, k].T, acc) }
        c[m, n] = acc
    }
}
"""
# Points of the tune clauses: BM, BN, BK, warps and stages (0: the compiler's own); of attention BS, BL, warps and stages.
HALF = """128 256 64 0 0
    256 128 64 0 0
    128 192 64 0 0
    128 64 64 0 0
    64 128 128 0 0
    128 128 128 0 0
    128 128 64 4 0
    64 64 128 0 0"""
TF32_POINTS = """128 256 32 8 3
    128 128 32 8 3
    128 128 16 4 4
    256 128 32 8 3
    128 256 16 8 4"""
TF32_NT_POINTS = """128 256 32 0 0
    256 128 32 0 0"""
BYTES = """128 256 128 0 0
    256 128 128 0 0
    128 128 128 4 2
    128 128 128 4 3
    128 128 64 4 3
    128 128 64 4 4
    128 128 128 8 3
    128 256 64 8 3
    128 256 128 8 2
    128 256 128 8 3
    256 128 128 8 3
    128 256 64 8 4"""
ATTENTION = """128 128 0 0
    128 64 0 0
    64 128 0 0
    128 64 4 2
    128 32 4 2"""
cuda = ctypes.CDLL("libcuda.so.1")
DYNAMIC_SHARED = 8
MAP_BYTES, MAP_ALIGN = 128, 64
MAP_TYPES = {torch.float16: 6, torch.float32: 7, torch.bfloat16: 9}  # others are copied as bytes
MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


def check(status):
    if status:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(name.value.decode())


class Kernel:
    """One grid of one instance of a kernel."""

    def __init__(self, tilec, file, settings, target):
        def emit(kind):
            command = [tilec, "emit", kind, file, *settings, f"--target={target}"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr.strip().splitlines()[0][:150])
            return done.stdout

        ptx = emit("ptx")
        header = re.search(r"^func phase .*$", emit("machine"), re.M).group(0)
        self.parameters = re.findall(r"%[\w.]+: (\S+) \{([^}]*)\}", header)
        self.resident = "resident = 1" in header
        self.threads = int(re.search(r"threads = (\d+)", header).group(1))
        found = re.search(r"scratch_bytes = (\d+)", header)
        self.shared = int(found.group(1)) if found else 0
        symbol = re.search(r"\.visible \.entry ([^\s(]+)", ptx).group(1)
        module, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        check(cuda.cuModuleLoadData(ctypes.byref(module), ptx.encode()))
        check(cuda.cuModuleGetFunction(ctypes.byref(self.handle), module, symbol.encode()))
        check(cuda.cuFuncSetAttribute(self.handle, DYNAMIC_SHARED, self.shared))
        registers, local = ctypes.c_int(), ctypes.c_int()
        cuda.cuFuncGetAttribute(ctypes.byref(registers), 4, self.handle)
        cuda.cuFuncGetAttribute(ctypes.byref(local), 3, self.handle)
        self.facts = f"{self.threads} threads, {registers.value} registers, {self.shared >> 10} KiB"
        if local.value:
            self.facts += f", {local.value} bytes spilled"

    def blocks(self, programs):
        """One for each program, or as many as run at a time where blocks stay."""
        if not self.resident:
            return programs
        each = ctypes.c_int()
        check(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(each), self.handle, self.threads,
                                                               ctypes.c_size_t(self.shared)))
        return min(programs, each.value * torch.cuda.get_device_properties(0).multi_processor_count)

    @staticmethod
    def word(kind, facts, arguments, programs):
        """The parameter of this type and role: a tensor's address, an extent, a stride in bytes, a map, a scalar."""
        facts = dict(re.findall(r"(\w+) = (\[[^\]]*\]|\w+)", facts))
        role, axis = facts["role"], int(facts.get("axis", 0))
        argument = arguments[int(facts["argument"])] if "argument" in facts else None
        if role == "map":
            return tensor_map(argument, [int(n) for n in facts["box"][1:-1].split(",")], int(facts.get("swizzle", 0)))
        value = {"data": lambda: argument.data_ptr(), "extent": lambda: argument.shape[axis],
                 "stride": lambda: argument.stride(axis) * argument.element_size(), "begin": lambda: 0,
                 "end": lambda: programs, "scalar": lambda: argument}[role]()
        return ctypes.c_float(value) if kind == "f32" else ctypes.c_int64(value)

    def bind(self, arguments, programs):
        values = [self.word(kind, facts, arguments, programs) for kind, facts in self.parameters
                  if "role = scratch" not in facts]
        pointers = (ctypes.c_void_p * len(values))(
            *(v[1] if isinstance(v, tuple) else ctypes.addressof(v) for v in values))
        blocks = self.blocks(programs)

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(cuda.cuLaunchKernel(self.handle, blocks, 1, 1, self.threads, 1, 1, self.shared, stream, pointers, None))

        launch.keep = (values, pointers, arguments)
        return launch


def tensor_map(tensor, box, swizzle):
    """A map of the tensor, and its address: 128 bytes at a multiple of 64. The driver counts axes from the last one."""
    memory = (ctypes.c_uint8 * (MAP_BYTES + MAP_ALIGN))()
    address = (ctypes.addressof(memory) + MAP_ALIGN - 1) & -MAP_ALIGN
    rank = tensor.dim()
    extents = (ctypes.c_uint64 * rank)(*reversed(tensor.shape))
    strides = (ctypes.c_uint64 * rank)(*reversed([s * tensor.element_size() for s in tensor.stride()[:-1]]))
    check(cuda.cuTensorMapEncodeTiled(ctypes.c_void_p(address), MAP_TYPES.get(tensor.dtype, 0), rank,
                                      ctypes.c_void_p(tensor.data_ptr()), extents, strides,
                                      (ctypes.c_uint32 * rank)(*reversed(box)), (ctypes.c_uint32 * rank)(*[1] * rank),
                                      0, MAP_SWIZZLES[swizzle], 2, 0))
    return memory, address


def cdiv(a, b):
    return (a + b - 1) // b


def first_tuned(file):
    """The values that a kernel takes where nothing is set: the first ones of its GPU's tune clause."""
    path, _, kernel = file.partition(":")
    text = open(path).read()
    text = text[re.search(rf"^kernel {kernel or ''}", text, re.M).start():]
    clauses = re.findall(r"^    tune (?:gpu )?((?!cpu)[^\n]*(?:\n        [^\n]*)*)", text[:text.index("\n{")], re.M)
    return {name: int(value) for name, value in re.findall(r"(\w+) in \{(\d+)", clauses[0])}


def settings_of(point):
    return [f"{name}={value}" for name, value in point.items()]


class Bench:
    def __init__(self, options, target, tf32_file):
        self.options, self.target, self.tf32_file = options, target, tf32_file
        self.timer = Timer()

    def compare(self, title, flops, peer_name, peer, expected, points, make):
        """`make(point)` gives a kernel, its launch and its output."""
        if self.options.only and self.options.only not in title:
            return
        calls, facts = {peer_name: peer}, {}
        for point in points:
            name = " ".join(settings_of(point)) or "default"
            try:
                kernel, launch, output = make(point)
                output.fill_(float("nan"))
                launch()
                torch.cuda.synchronize()
            except RuntimeError as error:
                print(f"{title:34} {name:46} {error}", flush=True)
                continue
            wrong = (output.float() - expected.float()).abs().max().item() / expected.float().abs().max().item()
            facts[name] = (kernel.facts, wrong)
            calls[name] = launch
        times = self.timer.times(calls, self.options.repeat)
        rate = {name: flops / time / 1e6 for name, time in times.items()}
        print(f"{title:34} {peer_name:46} {times[peer_name]:9.1f} µs {rate[peer_name]:7.1f} TFLOP/s", flush=True)
        for name in sorted(facts, key=lambda n: times[n]):
            wrong = facts[name][1]
            verdict = "WRONG" if not wrong < 0.02 else f"error {wrong:.1e}"
            print(f"{title:34} {name:46} {times[name]:9.1f} µs {rate[name]:7.1f} TFLOP/s "
                  f"{times[peer_name] / times[name]:5.2f} x  {verdict}, {facts[name][0]}", flush=True)

    def matmul(self, kind, size, points, file, generic, transposed=False):
        """`transposed`: the kernel takes b as [N, K]."""
        usual = first_tuned(file)
        a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
        c = torch.empty(size, size, device="cuda", dtype=kind)

        def make(point):
            kernel = Kernel(self.options.tilec, file, generic + settings_of(point), self.target)
            bm, bn = (point.get(name, usual[name]) for name in ("BM", "BN"))
            return kernel, kernel.bind([a, b, c], cdiv(size, bm) * cdiv(size, bn)), c

        name, factor = ("matmul_nt", b.T) if transposed else ("matmul", b)
        title = f"{name} {size} {str(kind)[6:]}" + (" as tf32" if kind == torch.float32 else "")
        peer = lambda: torch.matmul(a, factor)
        self.compare(title, 2 * size**3, "cuBLAS", peer, peer(), points, make)

    def bytes(self, text, kind, size, points):
        """Products of 8 bits with a scale for each row and column, beside cuBLASLt's plain i32 sums of i8, or with its
        one scale for all in f8. There b lies transposed, as cuBLASLt wants it, which matmul_f8 takes too."""
        floats = kind.is_floating_point
        file = f"{self.options.stdlib}/matmul.tile:matmul_{'f8' if floats else 'i8'}"
        usual = first_tuned(file)
        if floats:
            a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
            ones, generic = torch.ones((), device="cuda"), [f"T={text}", "U=bf16"]
            c = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
            peer = lambda: torch._scaled_mm(a, b.T, ones, ones, out_dtype=torch.bfloat16, use_fast_accum=True)
        else:
            a, b = (torch.randint(-128, 128, (size, size), device="cuda", dtype=kind) for _ in range(2))
            turned, generic = b.T.contiguous(), ["U=f32"]
            c = torch.empty(size, size, device="cuda")
            peer = lambda: torch._int_mm(a, turned.T)
        rows, columns = (torch.rand(size, device="cuda") + 0.5 for _ in range(2))
        expected = peer().float() * rows[:, None] * columns[None, :]

        def make(point):
            kernel = Kernel(self.options.tilec, file, generic + settings_of(point), self.target)
            bm, bn = (point.get(name, usual[name]) for name in ("BM", "BN"))
            return kernel, kernel.bind([a, b, rows, columns, c], cdiv(size, bm) * cdiv(size, bn)), c

        self.compare(f"matmul {size} {text}", 2 * size**3, "cuBLASLt", peer, expected, points, make)

    def attention(self, kind, heads, length, width, causal, points):
        file = f"{self.options.stdlib}/attention.tile:attention"
        rows = first_tuned(file)["BS"]
        q, k, v = (torch.randn(1, heads, length, width, device="cuda").to(kind) for _ in range(3))
        o = torch.empty_like(q)
        scale = width**-0.5

        def peer():
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)

        def make(point):
            generic = [f"T={'bf16' if kind == torch.bfloat16 else 'f16'}", f"D={width}", f"causal={str(causal).lower()}"]
            kernel = Kernel(self.options.tilec, file, generic + settings_of(point), self.target)
            return kernel, kernel.bind([q, k, v, o, scale], heads * cdiv(length, point.get("BS", rows))), o

        flops = 4 * heads * length * length * width / (2 if causal else 1)
        title = f"attention {length} D={width} {str(kind)[6:]}{' causal' if causal else ''}"
        self.compare(title, flops, "cuDNN", peer, peer(), points, make)


def points(names, text, sweep):
    """The default, then with --sweep rows of values."""
    rows = [dict(zip(names, map(int, row.split()))) for row in text.strip().splitlines()] if sweep else []
    return [{}] + rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tilec", default="build/release/bin/tilec")
    parser.add_argument("--stdlib", default="stdlib")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    major, minor = torch.cuda.get_device_capability()
    target = "sm_90a" if major == 9 else f"sm_{major}{minor}"
    with tempfile.NamedTemporaryFile("w", suffix=".tile") as file:
        file.write(TF32)
        file.flush()
        bench = Bench(options, target, file.name)
        names = ["BM", "BN", "BK", "warps", "stages"]
        half = points(names, HALF, options.sweep)
        for kind, text in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
            for size in (8192, 4096, 2048, 1024):
                bench.matmul(kind, size, half, f"{options.stdlib}/matmul.tile:matmul", [f"T={text}", f"U={text}"])
        tf32 = f"{bench.tf32_file}:matmul_tf32"
        bench.matmul(torch.float32, 4096, points(names, TF32_POINTS, options.sweep), tf32, [])
        turned = points(names, TF32_NT_POINTS, options.sweep)
        bench.matmul(torch.float32, 4096, turned, f"{tf32}_nt", [], transposed=True)
        whole = points(names, BYTES, options.sweep)
        for kind, text in ((torch.int8, "i8"), (torch.float8_e4m3fn, "f8e4m3")):
            for size in (4096, 2048):
                bench.bytes(text, kind, size, whole)
        rows = points(["BS", "BL", "warps", "stages"], ATTENTION, options.sweep)
        for causal in (False, True):
            for heads, length in ((32, 4096), (16, 16384)):
                bench.attention(torch.bfloat16, heads, length, 128, causal, rows)


if __name__ == "__main__":
    sys.exit(main())
