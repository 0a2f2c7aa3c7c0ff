"""Kernels drawn at random (products.py, attentions.py, convolutions.py, chains.py, scores.py, row_kernels.py, steps.py) on what this machine has, beside NumPy: each is compiled for itself.

usage: test_drawn.py [OPTION]...
  --kinds=LIST     of products, attentions, convolutions, chains, scores, rows, steps (all)
  --count=N        of each kind on each target (24)
  --seed=N         the first one's number (1)
  --most=N         the largest extent (200)
  --targets=LIST   avx2, avx512, .. in processes of 1 to 16 threads (a kernel's own number, or TILE_NUM_THREADS), cuda by PyTorch, emulated.sm_90a, .. by `tilec` (what there is)
  --seconds=N      for each kind on each target; what is not begun by then is left out (no limit)
  --jobs=N         this many at once (as many as there are processors)
  --digests=FILE   a line for each result, the same for the same bits: runs with another TILE_NUM_THREADS, or target, can be compared
  --print          the text of what is wrong, too"""
import argparse
import concurrent.futures
import hashlib
import math
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ["TILE_CACHE_DIR"] = ""

import numpy as np

import tile
from attentions import Attention
from chains import Chain
from convolutions import Convolution
from drawn import BF16, E4M3, E5M2, NAMES, View
from products import Product
from row_kernels import RowKernel
from scores import Scores
from steps import Steps

KINDS = {"products": Product, "attentions": Attention, "convolutions": Convolution, "chains": Chain, "scores": Scores, "rows": RowKernel, "steps": Steps}
OPTIONS = None
BITS = {BF16: np.dtype("uint16"), E4M3: np.dtype("uint8"), E5M2: np.dtype("uint8")}
TILEC = pathlib.Path(os.environ.get("TILEC", pathlib.Path(tile.__file__).resolve().parents[2] / "bin/tilec"))  # of the build that has made the package


class Failure(Exception):
    pass


def numbers(drawn):
    return [value for _, value in drawn.scalars.values()]


class Process:
    """Runs kernels on CPUs, one at a time, with a number of threads; another begins where it crashes."""

    def __init__(self, threads):
        self.threads, self.lock, self.pool = threads, threading.Lock(), None

    def run(self, *task):
        with self.lock:
            if not self.pool:
                self.pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), begin_process, (self.threads,))
            try:
                return self.pool.submit(run_here, *task).result()
            except concurrent.futures.process.BrokenProcessPool:
                self.pool = None
                raise Failure("its process has crashed") from None


THREADS = [int(os.environ["TILE_NUM_THREADS"])] if "TILE_NUM_THREADS" in os.environ else [1, 2, 3, 5, 16]
PROCESSES = {threads: Process(threads) for threads in THREADS}


def threads_of(seed):
    return random.Random(f"threads of {seed}").choice(THREADS)


def begin_process(threads):
    os.environ["TILE_NUM_THREADS"] = str(threads)
    assert tile.backends.cpu.threads == threads


def run_here(kind, seed, most, target):
    """On NumPy's arrays."""
    drawn = KINDS[kind](seed, most)
    wholes = [result.view.whole.copy() for result in drawn.results]
    kernel = tile.compile(drawn.text(), target=target).drawn
    kernel(*[drawn.inputs[name].array() for name, _, _ in drawn.parameters], *numbers(drawn),
           *[whole[result.view.index] for result, whole in zip(drawn.results, wholes)])
    return wholes


def run_cuda(drawn, _):
    """On PyTorch's tensors, which are views of the same kind."""
    import torch
    types = {"bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}

    def moved(view):
        bits = BITS.get(view.whole.dtype)
        whole = torch.from_numpy(view.whole.view(bits) if bits else view.whole).cuda()
        return whole.view(types[NAMES[view.whole.dtype]]) if bits else whole

    def seen(view):
        if min(view.steps, default=0) < 0:  # PyTorch has none of these
            view = View(view.array(), view.before, [0] * len(view.shape), [abs(step) for step in view.steps])
        return moved(view)[view.index].expand(view.shape)

    wholes = [moved(result.view) for result in drawn.results]
    kernel = tile.compile(drawn.text(), target="cuda").drawn
    inputs = [seen(drawn.inputs[name]) for name, _, _ in drawn.parameters]
    kernel(*inputs, *numbers(drawn), *[whole[result.view.index] for result, whole in zip(drawn.results, wholes)])
    torch.cuda.synchronize()
    return [whole.view(torch.uint16).cpu().numpy().view(result.kind) if result.kind in BITS else whole.cpu().numpy()
            for result, whole in zip(drawn.results, wholes)]


def write_case(drawn, folder):
    """Files of the kernel and of its arguments; the words of a command of `tilec` that take them, behind its own."""
    (folder / "drawn.tile").write_text(drawn.text())
    words = [f"{folder}/drawn.tile:drawn"]
    for parameter, kind, _ in drawn.parameters:
        view = drawn.inputs[parameter]
        bits = BITS.get(view.whole.dtype)
        np.save(folder / f"{parameter}.npy", view.whole.view(bits) if bits else view.whole)
        words.append(f"{parameter}={folder}/{parameter}.npy" + (f":{kind}" if bits else "") + view.words())
    words += [f"{key}={value}" for key, (_, value) in drawn.scalars.items()]
    for result in drawn.results:
        file, name = f"{folder}/{result.name}.npy", NAMES[result.kind]
        bits = BITS.get(result.kind)
        if result.mode == "inout":
            np.save(file, result.view.whole.view(bits) if bits else result.view.whole)
            words.append(f"{result.name}={file}" + (f":{name}" if bits else "") + result.view.words())
        else:
            words.append(f"{result.name}={file}:{name}[{','.join(map(str, result.view.array().shape))}]")
    return words


def run_emulated(drawn, target):
    """In the executor of the target's machine form, in an order of threads that is the seed's own. Operands and what is updated are views of files; other
    results are arrays of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = [str(TILEC), "run", *write_case(drawn, folder), f"--target={target.removeprefix('emulated.')}", "--emulate", "--mark-padding", "-q",
                 f"--schedule-seed={drawn.seed}", "--limit=machine-operations=500000"]  # marks are code, too
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"tilec ends with {done.returncode}: {done.stderr.strip()[-600:]}")
        wholes = []
        for result in drawn.results:
            found = np.load(folder / f"{result.name}.npy")
            found = found.view(result.kind) if result.kind in BITS else found
            whole = found if result.mode == "inout" else result.view.whole.copy()
            if result.mode != "inout":
                whole[result.view.index] = found
            wholes.append(whole)
        return wholes


# What a machine has no room for: tiles are drawn for all of them, and a refusal that says so is none of the compiler's faults.
REFUSALS = ("[tile-too-large]", "smaller tiles need less")


def check(kind, target, seed, end, digests):
    """What is wrong with one; "" if nothing is, None if it is refused as too large or time is over."""
    if time.monotonic() > end:
        return None
    drawn = KINDS[kind](seed, OPTIONS.most)
    here = not target.startswith("emulated.") and target != "cuda"
    try:
        wholes = PROCESSES[threads_of(seed)].run(kind, seed, OPTIONS.most, target) if here else (run_cuda if target == "cuda" else run_emulated)(drawn, target)
        problem = drawn.wrong(wholes)
        if OPTIONS.digests:
            digests[kind, seed] = hashlib.sha256(b"".join(whole.tobytes() for whole in wholes)).hexdigest()[:16]
    except Exception as error:  # whatever it is, the next one is run
        if any(text in str(error) for text in REFUSALS):
            return None
        problem = f"{type(error).__name__}: {error}"
    if problem and OPTIONS.print:
        problem += "\n" + drawn.text()
    if not problem:
        return ""
    problem = f"{target}, --kinds={kind} --most={OPTIONS.most} --seed={seed}: {drawn.about()}{f', {threads_of(seed)} threads' if here else ''}\n    {problem}"
    print(problem, flush=True)
    return problem


def default_targets():
    """What runs here; of GPUs that do not, the executor of their machine form."""
    usable = [target.name for target in tile.backends.targets() if target.usable]
    return [*(name for name in ("avx2", "cpu", "cuda") if name in usable), "emulated.sm_80", "emulated.sm_90a"]


class Drawn(unittest.TestCase):
    def test_drawn(self):
        digests, wrong = {}, 0
        with concurrent.futures.ThreadPoolExecutor(OPTIONS.jobs) as pool:
            for kind, target in ((kind, target) for kind in OPTIONS.kinds for target in OPTIONS.targets):
                end, seeds = time.monotonic() + OPTIONS.seconds, range(OPTIONS.seed, OPTIONS.seed + OPTIONS.count)
                found = [said for said in pool.map(lambda seed: check(kind, target, seed, end, digests), seeds) if said is not None]
                problems = [problem for problem in found if problem]
                print(f"{target}: {len(found)} {kind}, {len(problems)} wrong", flush=True)
                self.assertTrue(OPTIONS.seconds < math.inf or len(found) * 10 >= 9 * len(seeds), f"{kind} on {target}: more than one in ten is refused")
                wrong += len(problems)
        self.assertEqual(wrong, 0)
        if OPTIONS.digests:
            pathlib.Path(OPTIONS.digests).write_text("".join(f"{kind} {seed} {digest}\n" for (kind, seed), digest in sorted(digests.items())))


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(usage=__doc__)
    for name, kind, value in (("count", int, 24), ("seed", int, 1), ("most", int, 200), ("jobs", int, os.cpu_count()), ("seconds", float, math.inf)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    for name, values in (("kinds", list(KINDS)), ("targets", default_targets())):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=values)
    parser.add_argument("--digests")
    parser.add_argument("--print", action="store_true")
    OPTIONS = parser.parse_args()
    unittest.main(argv=[sys.argv[0]])


if __name__ == "__main__":
    main()
