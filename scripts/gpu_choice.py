#!/usr/bin/env python3
"""How good the model's choice is for products at shapes drawn at random, beside the best of its candidates.

Three steps, since only the second needs a GPU and its times serve for many changes of the model:

  plan FILE       draws shapes (log-uniform; half of them ragged), asks `tilec explain` for the candidates of each, and writes the
                  choice and the others of least predicted time, with some of the rest
  measure FILE    times each of these, and cuBLAS, and adds the times to the file; needs PyTorch
  judge FILE      what is predicted now: the time of the chosen candidate over that of the best one, in the geometric mean

Times are those of bench/gpu_turns.py. A candidate is a point of the tune clause and what the model decides beside it: programs of a
split grid, packs, turns, the warps of a program, and the blocks of a cluster.

usage: gpu_choice.py plan|measure|judge FILE [OPTION]...
  --tilec=PATH     (build/release/bin/tilec)
  --library=PATH   (build/release/lib/libtile.so)
  --root=DIR       the folder that has stdlib/
  --shapes=N       how many to draw (60)
  --points=N       candidates of a shape (48)
  --seed=N         what shapes follow from
  --type=TYPE      of the operands and the result: bf16, f16 or f32 (bf16)
  --part=I/N       measure: the Ith of N parts
  --most=X         judge: fails where the mean is above X, or more than a tenth of the choices have no time
  -v               judge: a line for each shape
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ("matmul", "matmul_nt", "matmul_tn", "matmul_tt")
DECIDED = ("least_programs", "packs", "turns", "warps", "cluster")
LEAST, MOST = 32, 8192
LEAST_PRODUCTS, MOST_PRODUCTS = 1 << 24, 1 << 35


def drawn(count, seed):
    """Kernels and shapes: every second of multiples of 64; of the others, half are multiples of 8, as tensor maps need."""
    chance, found = random.Random(seed), []
    while len(found) < count:
        shape = [round(math.exp(chance.uniform(math.log(LEAST), math.log(MOST)))) for _ in range(3)]
        grain = (64, 8, 64, 1)[len(found) % 4]
        shape = [max(grain, (extent + grain // 2) // grain * grain) | (grain == 1) for extent in shape]
        if LEAST_PRODUCTS <= math.prod(shape) <= MOST_PRODUCTS:
            found.append((KERNELS[len(found) // 4 % 4], shape))
    return found


def extents_of(kernel, shape):
    """Of a and b, as the kernel has them."""
    m, n, k = shape
    layout = kernel.split("_")[1] if "_" in kernel else "nn"
    return ((m, k) if layout[0] == "n" else (k, m)), ((k, n) if layout[1] == "n" else (n, k))


def predict(options, kernel, shape):
    """Candidates by name of point, with their predicted times; and the chosen one."""
    a, b = (f"zeros:{options.type}[{rows},{columns}]" for rows, columns in extents_of(kernel, shape))
    command = [options.tilec, "explain", f"{options.root}/stdlib/matmul.tile:{kernel}", f"a={a}", f"b={b}", "c=@", f"U={options.type}",
               "--target=sm_90a", "--format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TILE_PTXAS": "none"})
    said, found, chosen = json.loads(done.stdout), {}, None
    for candidate in said["candidates"]:
        name = ":".join(map(str, candidate["values"][:3] + [int(candidate[key]) for key in DECIDED]))
        if "time" in candidate:
            found[name] = candidate
        if candidate["chosen"]:
            chosen = name
    return found, chosen


def plan(options):
    chance, lines = random.Random(options.seed + 1), []
    for kernel, shape in drawn(options.shapes, options.seed):
        found, chosen = predict(options, kernel, shape)
        order = sorted(found, key=lambda name: (name != chosen, found[name]["time"]))
        first = order[:options.points * 2 // 3]
        slow = [name for name in order[len(first):] if found[name]["time"] < 4 * found[order[0]]["time"]]
        points = first + chance.sample(slow, min(len(slow), options.points - len(first)))
        lines.append("\t".join((kernel, "x".join(map(str, shape)), " ".join(points))))
    pathlib.Path(options.file).write_text("\n".join(lines) + "\n")


def whole(name):
    """A point's name, with the cluster that older files leave out: none."""
    return name + ":0" * (2 + len(DECIDED) - name.count(":"))


def read(path):
    for line in pathlib.Path(path).read_text().splitlines():
        if not line.startswith("#"):
            kernel, shape, points, *cublas = line.split("\t")
            times = {whole(name): float(time or 0) for name, _, time in (point.partition("=") for point in points.split())}
            yield kernel, [int(extent) for extent in shape.split("x")], times, float(cublas[0]) if cublas else 0


# ---- measuring ----

def settings_of(name):
    """What a point's name says, as settings of the kernel."""
    bm, bn, bk, programs, packs, turns, warps, cluster = map(int, name.split(":"))
    return {"BM": bm, "BN": bn, "BK": bk, "warps": warps, "stages": 0, "turns": turns or 1, "cluster": cluster or 1, "programs": programs,
            "packs": packs}


def open_text(root, folder):
    """The library's products, with `programs` and `packs` in their clauses."""
    text = (root / "stdlib/matmul.tile").read_text()
    for kernel in KERNELS:
        begin = re.search(rf"^kernel {kernel}\[", text, re.M).start()
        end = text.index("\n{", begin)
        text = text[:begin] + text[begin:end].replace("tune gpu ", "tune gpu programs in {0}, packs in {0}, ") + text[end:]
    (folder / "nn.tile").write_text((root / "stdlib/nn.tile").read_text())
    (folder / "matmul.tile").write_text(text)
    return folder


class Row:
    """What `breadth.Tile` asks of a row."""
    file = "matmul.tile"

    def __init__(self, kernel, kind):
        self.name, self.kind, self.settings = kernel, kind, {"U": kind}

    def kernel(self):
        return self.name


TYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}


def call_of(options, tile, kernel, name, arguments):
    import breadth
    return breadth.Call(tile, tile.opened(Row(kernel, options.type), settings_of(name)), arguments)


def prepare(options, tile, job):
    import torch
    kernel, shape, name = job
    kind = getattr(torch, TYPES[options.type])
    a, b = (torch.empty(extents, dtype=kind, device="meta") for extents in extents_of(kernel, shape))
    try:
        call_of(options, tile, kernel, name, [a, b, torch.empty(shape[:2], dtype=kind, device="meta")]).prepare()
    except RuntimeError:  # is said when it is measured
        pass


def measure_row(options, tile, timer, kernel, shape, names):
    """Times by name, of those that run and are right; those that may be the best are measured again."""
    import breadth
    import torch
    kind = getattr(torch, TYPES[options.type])
    a, b = (torch.randn(extents, device="cuda").to(kind) for extents in extents_of(kernel, shape))
    left, right = (a.T if kernel[-2:] in ("tn", "tt") else a), (b.T if kernel[-2:] in ("nt", "tt") else b)
    c, expected = torch.empty(shape[:2], dtype=kind, device="cuda"), left @ right
    calls = {}
    for name in names:
        try:
            call = call_of(options, tile, kernel, name, [a, b, c])
            c.fill_(float("nan"))
            call()
            torch.cuda.synchronize()
            error = float((c.float() - expected.float()).norm() / expected.float().norm())
            if error < 1e-2:
                calls[name] = call
            else:
                print(f"    {name}: WRONG, {error}", flush=True)
        except RuntimeError as error:
            print(f"    {name}: {breadth.first_line(error)}", flush=True)
    times = timer.times(calls, 3)
    good = [name for name in times if times[name] < 1.25 * min(times.values()) or name == names[0]]
    again = timer.times({name: calls[name] for name in good if name in calls} | {"cuBLAS": lambda: torch.mm(left, right, out=c)}, 11)
    return times | again


def measure(options):
    sys.path.insert(0, str(options.root / "bench"))
    import breadth
    import torch
    from gpu_turns import Timer
    part, parts = map(int, options.part.split("/"))
    rows, lines = list(read(options.file))[part - 1::parts], []
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tile, timer = breadth.Tile(options.library, open_text(options.root, pathlib.Path(folder)), "cuda"), Timer()
        jobs = [(kernel, shape, name) for kernel, shape, times, _ in rows for name in times]
        list(pool.map(lambda job: prepare(options, tile, job), jobs))
        print(f"{len(jobs)} points are prepared", flush=True)
        for kernel, shape, times, _ in rows:
            names = list(times)
            times = measure_row(options, tile, timer, kernel, shape, names)
            cublas = times.pop("cuBLAS")
            points = " ".join(f"{name}={time:.2f}" for name, time in sorted(times.items(), key=lambda item: item[1]))
            lines.append("\t".join((kernel, "x".join(map(str, shape)), points, f"{cublas:.2f}")))
            best = min(times, key=times.get)
            print(f"{kernel:10} {'x'.join(map(str, shape)):16} chosen {names[0]} {times.get(names[0], 0):.1f} best {best} {times[best]:.1f} "
                  f"{times.get(names[0], 0) / times[best]:.3f} cuBLAS {cublas:.1f} {cublas / times.get(names[0], 1):.2f}", flush=True)
            pathlib.Path(options.out or options.file).write_text("\n".join(lines) + "\n")


# ---- judging ----

def judge_row(options, row):
    kernel, shape, times, _ = row
    found, chosen = predict(options, kernel, shape)
    return found, chosen, times.get(chosen)


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def judge(options):
    rows, groups = list(read(options.file)), {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda row: judge_row(options, row), rows))
    for (kernel, shape, times, cublas), (candidates, chosen, time) in zip(rows, found):
        best = min(times, key=times.get)
        grain = next(g for g in (64, 8, 1) if all(extent % g == 0 for extent in shape))
        if time:
            groups.setdefault(grain, []).append((time / times[best], cublas / time, cublas / times[best]))
        if options.v:
            known = candidates.get(best, {}).get("time", 0)
            print(f"{kernel:10}{'x'.join(map(str, shape)):>15} {chosen:>24} {time or 0:8.2f} (predicted {candidates[chosen]['time']:.1f}); best "
                  f"{best:>24} {times[best]:8.2f} ({known:.1f}): {(time or 0) / times[best]:.3f}; cuBLAS {cublas:.2f}, "
                  f"{cublas / (time or 1):.2f}, best {cublas / times[best]:.2f}")
    for grain, values in sorted(groups.items(), reverse=True):
        print(f"multiples of {grain}: {len(values)} shapes, {geometric([v[0] for v in values]):.3f} of the best candidates' times, at most "
              f"{max(v[0] for v in values):.2f}; cuBLAS takes {geometric([v[1] for v in values]):.3f} of the choice, "
              f"{geometric([v[2] for v in values]):.3f} of the best")
    everything = [value for values in groups.values() for value in values]
    print(f"all: {len(everything)} shapes, {geometric([v[0] for v in everything]):.3f}; {len(rows) - len(everything)} choices were not measured")
    return geometric([value[0] for value in everything]) > options.most or len(everything) < 0.9 * len(rows)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("step", choices=("plan", "measure", "judge"))
    parser.add_argument("file")
    parser.add_argument("--tilec", default=str(ROOT / "build/release/bin/tilec"))
    parser.add_argument("--library", default=str(ROOT / "build/release/lib/libtile.so"))
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--shapes", type=int, default=60)
    parser.add_argument("--points", type=int, default=48)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", choices=TYPES, default="bf16")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--out", default="")
    parser.add_argument("--most", type=float, default=math.inf)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    sys.exit({"plan": plan, "measure": measure, "judge": judge}[options.step](options))


if __name__ == "__main__":
    main()
