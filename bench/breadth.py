#!/usr/bin/env python3
"""Every kernel of the standard library and the programs of tests/programs beside PyTorch, at several shapes and types.

Needs libtile of a release build, PyTorch and, for GPUs, the driver. For each row (kernel, type, shape) the kernel is
compiled and launched through the C API (tile/tile.h) on PyTorch's tensors and stream, at the default point of its `tune`
clause. Beside it stands the best of what PyTorch offers: one or several eager forms and, with --compile, torch.compile in
the mode max-autotune-no-cudagraphs. f32 is multiplied in full on both sides.

On a GPU times are medians of events on the device, all candidates of a row interleaved, in another order each time, each
call after a buffer larger than the L2 cache was overwritten (gpu_turns.py), with the device kept busy ahead of it: of eager
forms that launch dozens of kernels the host's time counts. On a CPU they are medians of the clock, interleaved. Slow rows are
repeated less often, so that a row takes about half a second, without torch.compile.

Outputs are filled with NaN, and compared with PyTorch's: a row is WRONG where the error, relative and of all elements
together, is above 5e-5 in f32 or 1.2e-2 in bf16 (a few kernels say otherwise), against PyTorch in double precision too.
`ratio` is PyTorch's time over Tile's: above 1 Tile is faster. GB/s are bytes that have to be read and written at least,
`share` is their part of the rate at which this device copies, measured at the start; products have TFLOP/s beside it. The
geometric mean is of kernels, of each of which it is the geometric mean of its rows.

Code is compiled by as many threads as there are processors, before a few rows at a time are measured. A row
that fails is an error, and the others go on; where it took the device with it, in a new process.

usage: breadth.py [OPTION]...
  --device=NAME    cuda, or cpu: small shapes, for a test of the table itself; with --full the shapes of GPUs
  --full           on a CPU too
  --elements=N     on a CPU the shapes of GPUs, their largest extent halved (odd ones stay odd) until the product of the
                   extents is N at most
  --threads=N      on a CPU, Tile's and PyTorch's
  --library=PATH   libtile.so (build/release/lib/libtile.so)
  --root=DIR       the folder that has stdlib/ and tests/programs/ (the repository)
  --only=A,B       rows that have one of these texts in their names
  --types=A,B      f32, bf16
  --part=I/N       the Ith of N parts; a kernel's rows are in one part
  --every=N        of each kernel's rows the first of N
  --seconds=S      no row begins later
  --repeat=N       turns of a row at most (15)
  --compile        torch.compile too, whose code is made by as many processes as there are processors before the first row
                   is measured: about a second for a row, and as much memory of the device for each process
  --beside=PATH    another libtile.so, of an earlier commit, takes PyTorch's place as the peer
  --beside-root=DIR  the texts that it compiles (--root)
  --sweep=N        also N points of the tune clause: the best of them stands beside the default
  --out=FILE       the rows go there too, as a table with tabs; rows of other commits stay, the same ones are replaced
  --missing        only rows that FILE has not, or has as errors, of this commit
  --commit=TEXT    what rows are kept under; without it what git says
  --behind=ROW     only rows behind this one
  --list           prints the rows
  --dry            measures nothing: compiles each row's kernel and compares the shapes of results, without memory
  --report=FILE    measures nothing: what a table says, of --commit or of the last commit in it
"""
import argparse
import concurrent.futures
import ctypes
import itertools
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

import breadth_compiled
import breadth_products
import breadth_library
import breadth_programs
import breadth_stdlib
from breadth_table import Make
from tile_api import (ARG_INTEGER, ARG_NUMBER, ARG_TENSOR, Argument, DLTensor, Error, LaunchOptions, compile_options,
                      create_compiler, open_library)

try:
    import torch
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLES = (breadth_stdlib.TABLE, breadth_library.TABLE, breadth_products.TABLE, breadth_programs.TABLE)
FIELDS = ("commit", "device", "kernel", "type", "shape", "status", "tile_us", "peer", "peer_us", "ratio", "gbs", "share",
          "tflops", "error", "best", "best_us", "repeats")
TOLERANCE = {"f32": 5e-5, "bf16": 1.2e-2}
SETTLE_SECONDS = 0.4
TOGETHER = 48        # rows whose code is made before the first of them is measured
ROW_SECONDS = 0.35   # of timing, without the first call of each candidate
SHORT = 10.0         # microseconds
COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 26}
CODES = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16), "float64": (2, 64), "int8": (0, 8), "int32": (0, 32),
         "int64": (0, 64), "uint8": (1, 8), "bool": (6, 8), "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8)}


# ---- Tile ----

def described(tensor, device):
    """A DLTensor of the tensor, and what has to outlive it. Tensors without memory have NULL as their address."""
    rank = tensor.dim()
    shape, strides = (ctypes.c_int64 * rank)(*tensor.shape), (ctypes.c_int64 * rank)(*tensor.stride())
    code, bits = CODES[str(tensor.dtype)[6:]]
    address = None if tensor.device.type == "meta" else tensor.data_ptr()
    view = DLTensor(data=address, device_type=2 if device == "cuda" else 1, device_id=0, ndim=rank, code=code, bits=bits,
                    lanes=1, shape=shape, strides=strides, byte_offset=0)
    return view, (shape, strides, tensor)


class Call:
    """A kernel and its arguments."""

    def __init__(self, tile, kernel, arguments):
        self.tile, self.kernel, self.kept = tile, kernel, []
        self.words = (Argument * len(arguments))()
        for word, argument in zip(self.words, arguments):
            if isinstance(argument, float):
                word.kind, word.value.number = ARG_NUMBER, argument
            elif isinstance(argument, int):
                word.kind, word.value.integer = ARG_INTEGER, argument
            else:
                view, kept = described(argument, tile.device)
                self.kept.append((view, kept))
                word.kind, word.value.tensor = ARG_TENSOR, ctypes.addressof(view)
        self.count, self.error = ctypes.c_size_t(len(arguments)), Error()
        self.options = LaunchOptions(struct_size=ctypes.sizeof(LaunchOptions), error=ctypes.pointer(self.error))
        if tile.device == "cuda":
            self.options.stream = torch.cuda.current_stream().cuda_stream or None

    def run(self, function):
        if function(self.kernel, self.words, self.count, ctypes.byref(self.options)):
            raise RuntimeError(self.error.message.decode())

    def prepare(self):
        self.run(self.tile.api.tile_prepare)

    def __call__(self):
        self.run(self.tile.api.tile_launch)


class Tile:
    def __init__(self, library, root, device):
        self.api, self.root, self.device, self.kernels = open_library(library), root, device, {}
        self.compiler = create_compiler(self.api)

    def opened(self, row, point):
        values = {"T": row.kind, **row.settings, **point}
        header = header_of(self.root / row.file, row.kernel())
        values = {name: value for name, value in values.items() if re.search(rf"\b{name}\b", header)}
        key = (row.file, row.kernel(), tuple(values.items()))
        if key not in self.kernels:
            options = compile_options(self.device, values)
            library, report, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
            status = self.api.tile_compile_file(self.compiler, str(self.root / row.file).encode(), ctypes.byref(options),
                                                ctypes.byref(library), ctypes.byref(report))
            if status:
                raise RuntimeError(self.api.tile_report_text(report, False).decode() or f"status {status}")
            if self.api.tile_library_kernel(library, row.kernel().encode(), ctypes.byref(kernel)):
                raise RuntimeError(f"no kernel {row.kernel()} in {row.file}")
            self.kernels[key] = kernel
        return self.kernels[key]

    def prepare(self, row, points):
        """Compiles without memory; what is wrong shows again, and is said, when the row is measured."""
        for point in points:
            try:
                Call(self, self.opened(row, point), row.build(Make(row.kind, "meta"), *row.shape).arguments).prepare()
            except Exception:  # any mistake of a row is that row's
                pass


def header_of(path, kernel):
    text = path.read_text()
    text = text[re.search(rf"^kernel {kernel}\b", text, re.M).start():]
    return text[:text.index("\n{")] if "\n{" in text else text


def points_of(path, kernel, device, count):
    """Points of the tune clause for this device, the default first; the others from all over the space."""
    clauses = re.findall(r"^    tune (cpu |gpu |)([^\n]*(?:\n        [^\n]*)*)", header_of(path, kernel), re.M)
    mine = "gpu " if device == "cuda" else "cpu "
    names = {}
    for kind, text in clauses:
        if kind in ("", mine):
            names.update({name: values.split(",") for name, values in re.findall(r"(\w+) in \{([^}]*)\}", text)})
    space = [dict(zip(names, (v.strip() for v in values))) for values in itertools.product(*names.values())][1:]
    if count >= len(space):
        return [{}, *space]
    return [{}, *(space[i * len(space) // count] for i in range(count))]


# ---- measuring ----

class Clock:
    """Medians of the clock, calls interleaved, for CPUs."""

    def __init__(self):
        self.order = random.Random(1)

    def times(self, calls, repeat):
        found = {name: [] for name in calls}
        for _ in range(repeat):
            for name, call in self.order.sample(list(calls.items()), len(calls)):
                begin = time.perf_counter()
                call()
                found[name].append(time.perf_counter() - begin)
        return {name: statistics.median(times) * 1e6 for name, times in found.items()}


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(call, device):
    synchronize(device)
    begin = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - begin


def settle(calls, device):
    """Code for the values of integers is compiled in the background once they come again (docs/launching.md)."""
    for call in calls:
        call()
        call()
    synchronize(device)
    time.sleep(SETTLE_SECONDS)


def copy_rate(timer, device):
    """Bytes a second, read and written."""
    source = torch.empty(COPY_BYTES[device], dtype=torch.int8, device=device).zero_()
    target = torch.empty_like(source)
    time_of = timer.times({"copy": lambda: target.copy_(source)}, 9)["copy"]
    return 2 * source.numel() / time_of * 1e6


def error_of(results, expected):
    """Relative, of all elements of a result together, the greatest of all results; inf where there is a NaN."""
    worst = 0.0
    for result, right in zip(results, expected):
        wrong = whole = 0.0
        if result.numel() != right.numel():
            return float("inf")
        for r, e in zip(result.reshape(-1).split(1 << 26), right.reshape(-1).split(1 << 26)):
            r, e = (v.float() if v.element_size() == 1 and v.is_floating_point() else v for v in (r, e))
            e = e.double()
            wrong += float((r.double() - e).square().sum())
            whole += float(e.square().sum())
        error = (wrong / whole) ** 0.5 if whole else wrong
        worst = max(worst, error if error == error else float("inf"))
    return worst


def exact_error(case):
    """The error against PyTorch in double precision: what it adds up in 16 bits may be further off than Tile."""
    wide = [v.double() if v.is_floating_point() and v.element_size() > 1 else v for v in case.inputs]
    try:
        return error_of(case.results, tuple_of(case.function(*wide)))
    except (RuntimeError, TypeError, NotImplementedError):
        return float("inf")


def blank(case):
    """Results hold what no kernel computes, unless they are read too."""
    for result in case.results:
        if not any(result is update for update in case.updates) and result.element_size() > 1:
            result.fill_(float("nan") if result.is_floating_point() else -99)


def tuple_of(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:150]


class Bench:
    def __init__(self, options):
        self.options, self.device, self.begun = options, options.device, time.monotonic()
        self.root = pathlib.Path(options.root)
        if options.threads:
            torch.set_num_threads(options.threads)
            os.environ["TILE_NUM_THREADS"] = str(options.threads)
        self.tile = Tile(options.library, self.root, self.device)
        root = pathlib.Path(options.beside_root) if options.beside_root else self.root
        self.beside = Tile(options.beside, root, self.device) if options.beside else None
        if self.device == "cuda":
            from gpu_turns import Timer
            torch.cuda.init()
            self.name, self.timer = torch.cuda.get_device_name(), Timer()
        else:
            self.name, self.timer = f"cpu, {torch.get_num_threads()} threads", Clock()
        self.plain = set()  # rows without torch.compile
        self.rate = copy_rate(self.timer, self.device)
        print(f"{self.name}: copies {self.rate / 1e9:.0f} GB/s; PyTorch {torch.__version__}", flush=True)

    def peers(self, row, case):
        """Pairs of name and call."""
        if self.beside:
            return [("beside", Call(self.beside, self.beside.opened(row, {}), case.arguments))]
        calls = [("eager", lambda: case.function(*case.inputs))]
        calls += [(f"eager{i + 2}", lambda other=other: other(*case.inputs)) for i, other in enumerate(case.also)]
        if self.options.compile and row.key() not in self.plain:
            calls.append(("compiled", breadth_compiled.peer(torch, case)))
        return calls

    def running(self, calls, notes):
        """Those that run, with the seconds of a call that is not the first."""
        found = {}
        for name, call in calls:
            try:
                call()
                found[name] = (call, seconds_of(call, self.device))
            except Exception as error:  # a candidate that does not run says so and is left out
                notes.append(f"{name}: {first_line(error)}")
        return found

    def timed(self, found, repeat):
        """Medians; where a turn takes long, of fewer turns, and of one call where that is over a second."""
        turn = sum(seconds for _, seconds in found.values()) + 3e-4 * len(found)
        if turn > 1:
            return {name: seconds * 1e6 for name, (_, seconds) in found.items()}, 1
        repeat = max(1, min(repeat, int(ROW_SECONDS / turn)))
        return self.timer.times({name: call for name, (call, _) in found.items()}, repeat), repeat

    def swept(self, row, case, notes):
        """The best other point of the tune clause, as (name, (call, seconds)), or None."""
        points = points_of(self.root / row.file, row.kernel(), self.device, self.options.sweep)[1:]
        calls = []
        for point in points:
            name = " ".join(f"{key}={value}" for key, value in point.items())
            try:
                calls.append((name, Call(self.tile, self.tile.opened(row, point), case.arguments)))
            except RuntimeError as error:
                notes.append(f"{name}: {first_line(error)}")
        found = self.running(calls, notes)
        if not found:
            return None
        times, _ = self.timed(found, 5)
        best = min(times, key=times.get)
        return best, found[best]

    def measure(self, row):
        """The row's fields; and notes."""
        fields, notes = dict.fromkeys(FIELDS, ""), []
        fields.update(commit=self.options.commit, device=self.name, kernel=row.name, type=row.kind,
                      shape="x".join(map(str, row.shape)), status="error")
        torch.manual_seed(1)
        case = row.build(Make(row.kind, self.device), *row.shape)
        launch = Call(self.tile, self.tile.opened(row, {}), case.arguments)
        launch.prepare()
        blank(case)
        seconds = seconds_of(launch, self.device)
        expected = tuple_of(case.function(*case.inputs))
        error, limit = (case.error or error_of)(case.results, expected), case.loose or TOLERANCE[row.kind]
        del expected
        if not error <= limit and not case.error:
            error = min(error, exact_error(case))
        right = error <= limit
        found = {"Tile": (launch, seconds if seconds > 1 else seconds_of(launch, self.device))}
        found.update(self.running(self.peers(row, case), notes))
        if any(isinstance(argument, int) for argument in case.arguments):
            settle([found[name][0] for name in ("Tile", "beside") if name in found], self.device)
        best = self.swept(row, case, notes) if self.options.sweep else None
        if best:
            found[best[0]] = best[1]
        times, repeats = self.timed(found, self.options.repeat)
        mine = times.pop("Tile")
        other = times.pop(best[0]) if best else None
        peer = min(times, key=times.get)
        moved = case.moved / mine * 1e6
        fields.update(status="ok" if right else "WRONG", tile_us=f"{mine:.2f}", peer=peer, peer_us=f"{times[peer]:.2f}",
                      ratio=f"{times[peer] / mine:.4f}", gbs=f"{moved / 1e9:.1f}", share=f"{moved / self.rate:.3f}",
                      error=f"{error:.1e}", repeats=str(repeats))
        if case.flops:
            fields["tflops"] = f"{case.flops / mine / 1e6:.2f}"
        if best:
            fields.update(best=best[0], best_us=f"{other:.2f}")
        return fields, notes

    def dry(self, row):
        """What is wrong with the row, as far as shapes and code tell; or None."""
        try:
            case = row.build(Make(row.kind, "meta"), *row.shape)
            Call(self.tile, self.tile.opened(row, {}), case.arguments).prepare()
            expected = tuple_of(case.function(*case.inputs))
        except NotImplementedError:  # by PyTorch, without memory
            return None
        except Exception as error:  # any mistake of a row is that row's
            return first_line(error)
        same = case.error or [r.numel() for r in case.results] == [e.numel() for e in expected]
        return None if same else f"results are {[tuple(r.shape) for r in case.results]}, PyTorch's {[tuple(e.shape) for e in expected]}"

    def show(self, row, fields, notes):
        if fields["status"] == "error":
            print(f"{row.key():58} ERROR {notes[-1]}", flush=True)
            return
        tflops = f" {float(fields['tflops']):6.1f} TFLOP/s" if fields["tflops"] else ""
        best = ""
        if fields["best"]:
            best = f" | {fields['best']} {float(fields['best_us']):.1f} µs, {float(fields['tile_us']) / float(fields['best_us']):.2f} x"
        print(f"{row.key():58} {float(fields['tile_us']):10.1f} µs {fields['peer']:8} {float(fields['peer_us']):10.1f} µs "
              f"{float(fields['ratio']):6.2f} {float(fields['gbs']):7.0f} GB/s {float(fields['share']):5.2f}{tflops} "
              f"{fields['status']} {fields['error']}{best}", flush=True)
        for note in notes:
            print(f"    {note}", flush=True)

    def late(self):
        return time.monotonic() - self.begun > self.options.seconds

    def prepare(self, row):
        self.tile.prepare(row, points_of(self.root / row.file, row.kernel(), self.device, self.options.sweep))
        if self.beside:
            self.beside.prepare(row, [{}])

    def run(self, rows):
        done = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for first in range(0, len(rows), TOGETHER):
                some = rows[first:first + TOGETHER]
                if not self.late():
                    list(pool.map(self.prepare, some))
                for row in some:
                    if self.late():
                        print(f"{len(rows) - len(done)} rows were not begun: the time is up", flush=True)
                        return done
                    done.append(self.row(row))
                    if done[-1]["status"] == "error" and self.lost():
                        self.begin_anew(row)
        return done

    def lost(self):
        """Does the device answer nothing but errors from now on?"""
        try:
            synchronize(self.device)
        except RuntimeError:
            return True
        return False

    def begin_anew(self, row):
        """The rows behind this one, in another process instead of this one."""
        print("the device is lost: the other rows in a new process", flush=True)
        left = self.options.seconds - (time.monotonic() - self.begun)
        same = [a for a in sys.argv if not a.startswith(("--seconds", "--behind"))]
        os.execv(sys.executable, [sys.executable, *same, f"--seconds={left}", f"--behind={row.key()}"])

    def row(self, row):
        try:
            fields, notes = self.measure(row)
        except Exception as error:  # a row that fails says so, and the others go on
            fields, notes = dict.fromkeys(FIELDS, ""), [first_line(error)]
            fields.update(commit=self.options.commit, device=self.name, kernel=row.name, type=row.kind,
                          shape="x".join(map(str, row.shape)), status="error", error=first_line(error))
        self.show(row, fields, notes)
        if self.options.out:
            keep(self.options.out, fields)
        if self.device == "cuda":
            torch.cuda.empty_cache()
        return fields


# ---- tables ----

def read_table(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    return [dict(zip(lines[0], line)) for line in lines[1:]] if lines else []


def key_of(fields):
    return tuple(fields[name] for name in ("commit", "device", "kernel", "type", "shape"))


def keep(path, fields):
    """Adds the row, in place of the same one."""
    rows = [row for row in read_table(path) if key_of(row) != key_of(fields)] + [fields]
    text = "\n".join("\t".join(str(row[name]).replace("\t", " ") for name in FIELDS) for row in rows)
    with open(path + ".new", "w") as file:
        file.write("\t".join(FIELDS) + "\n" + text + "\n")
    os.replace(path + ".new", path)


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summary(rows):
    """Means by kernel, the slowest first, and of each folder's kernels."""
    by_kernel = {}
    for row in rows:
        by_kernel.setdefault(row["kernel"], []).append(row)
    folders = {name: table.folder for table in TABLES for name in table.names()}
    means = {name: geometric([float(row["ratio"]) for row in group if row["ratio"]]) for name, group in by_kernel.items()}
    print("\ngeometric mean of each kernel's rows, the least row, how many")
    for name in sorted(means, key=lambda name: means[name] if means[name] == means[name] else -1):
        ratios = [float(row["ratio"]) for row in by_kernel[name] if row["ratio"]]
        bad = [row["status"] for row in by_kernel[name] if row["status"] != "ok"]
        print(f"{name:42} {means[name]:7.3f} {min(ratios, default=float('nan')):7.3f} {len(by_kernel[name]):3}  {' '.join(bad)}")
    for folder in dict.fromkeys(folders.values()):
        mine = [name for name in means if folders.get(name) == folder]
        group = [row for name in mine for row in by_kernel[name]]
        ratios = [float(row["ratio"]) for row in group if row["ratio"]]
        if not ratios:
            continue
        good = sum(float(row["ratio"]) >= (0.90 if float(row["tile_us"]) < SHORT else 0.95) for row in group if row["ratio"])
        best = [float(row["ratio"]) * max(1, float(row["tile_us"]) / float(row["best_us"])) for row in group
                if row.get("best_us") and row["ratio"]]
        print(f"{folder}: {len(mine)} kernels, {len(group)} rows, geometric mean "
              f"{geometric([means[name] for name in mine if means[name] == means[name]]):.3f}; "
              f"{good} rows >= 0.95 (0.90 under {SHORT:.0f} µs), {sum(r >= 0.8 for r in ratios)} >= 0.8, "
              f"{sum(r < 0.85 for r in ratios)} < 0.85, {sum(r < 0.5 for r in ratios)} < 0.5; "
              f"{sum(row['status'] == 'WRONG' for row in group)} wrong, {sum(row['status'] == 'error' for row in group)} errors"
              + (f"; {geometric(best):.3f} at the best of the points, rows alike" if best else ""))


def commit_of(root):
    done = subprocess.run(["git", "-C", root, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def halved(shape, most):
    """The shape with at most so many elements; extents that are odd stay so."""
    shape = list(shape)
    while math.prod(shape) > most and max(shape) > 1:
        i = shape.index(max(shape))
        shape[i] = shape[i] // 2 | shape[i] & 1
    return tuple(shape)


def chosen(options):
    """The rows that the options ask for."""
    part, parts = (int(n) for n in options.part.split("/"))
    wanted, types = options.only.split(","), options.types.split(",")
    names = list(dict.fromkeys(name for table in TABLES for name in table.names()))
    mine = set(names[part - 1::parts])
    small = options.device == "cpu" and not options.full and not options.elements
    rows = [row for table in TABLES for row in table.rows(small)]
    if options.elements:
        for row in rows:
            row.shape = halved(row.shape, options.elements)
        rows = list({row.key(): row for row in rows}.values())
    rows = [row for row in rows if row.name in mine and row.kind in types and any(text in row.key() for text in wanted)]
    if options.every > 1:
        of_kernel = {}
        for row in rows:
            of_kernel.setdefault(row.name, []).append(row)
        rows = [row for group in of_kernel.values() for row in group[::options.every]]
    keys = [row.key() for row in rows]
    if options.behind in keys:
        rows = rows[keys.index(options.behind) + 1:]
    if options.missing and options.out:
        had = {(r["kernel"], r["type"], r["shape"]) for r in read_table(options.out)
               if r["commit"] == options.commit and r["status"] != "error"}
        rows = [row for row in rows if (row.name, row.kind, "x".join(map(str, row.shape))) not in had]
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--elements", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--library", default=str(ROOT / "build/release/lib/libtile.so"))
    parser.add_argument("--root", default=str(ROOT))
    parser.add_argument("--only", default="")
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--fill", default="", help=argparse.SUPPRESS)  # breadth_compiled.py's
    parser.add_argument("--beside", default="")
    parser.add_argument("--beside-root", default="")
    parser.add_argument("--sweep", type=int, default=0)
    parser.add_argument("--out", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--commit", default="")
    parser.add_argument("--behind", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--report", default="")
    options = parser.parse_args()
    if options.report:
        rows = read_table(options.report)
        commit = options.commit or (rows[-1]["commit"] if rows else "")
        summary([row for row in rows if row["commit"] == commit])
        return 0
    options.commit = options.commit or commit_of(options.root)
    rows = chosen(options)
    if options.list:
        print("\n".join(row.key() for row in rows))
        return 0
    if not torch:
        print("breadth: PyTorch is not installed", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        if options.fill:
            part, parts = (int(n) for n in options.fill.split("/"))
            breadth_compiled.fill(rows[part - 1::parts], lambda row: breadth_compiled.peer(
                torch, row.build(Make(row.kind, options.device), *row.shape)))
            return 0
        bench = Bench(options)
        if options.compile:
            bench.plain = breadth_compiled.fill_all(sys.argv[1:])
        if options.dry:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                wrong = [(row, what) for row, what in zip(rows, pool.map(bench.dry, rows)) if what]
            print("\n".join(f"{row.key():58} {what}" for row, what in wrong))
            print(f"{len(rows)} rows, {len(wrong)} wrong, {time.monotonic() - bench.begun:.0f} s")
            return 1 if wrong else 0
        done = bench.run(rows)
    summary(done)
    print(f"{len(done)} of {len(rows)} rows, {time.monotonic() - bench.begun:.0f} s")
    return 1 if any(row["status"] != "ok" for row in done) else 0


if __name__ == "__main__":
    sys.exit(main())
