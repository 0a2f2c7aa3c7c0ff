#!/usr/bin/env python3
"""Kernels drawn at random (tests/python/test_drawn.py), compiled for their arguments by the compiler's own choice, and what ptxas spills of them.

usage: PYTHONPATH=build/release/python drawn_spills.py [--kinds=products,..] [--count=100] [--seed=1] [--most=1500] [--target=sm_90a] [--least=1] [--jobs=N]
Prints a line for each kernel of which a grid spills `least` bytes or more: bytes, registers, threads, and what it is. Needs ptxas."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/python"))
import test_drawn  # noqa: E402


def spilled(kind, seed, options):
    """(bytes, registers, threads) of the grid that spills most; None: it is refused."""
    drawn = test_drawn.KINDS[kind](seed, options.most)
    with tempfile.TemporaryDirectory() as folder:
        words = [str(test_drawn.TILEC), "explain", *test_drawn.write_case(drawn, pathlib.Path(folder)), f"--target={options.target}", "--emulate"]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return drawn, None
    grids = re.findall(r"(\d+) threads a block.*ptxas: (\d+) registers a thread, (\d+) bytes spilled", done.stdout)
    return drawn, max(((int(bytes_), int(registers), int(threads)) for threads, registers, bytes_ in grids), default=None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--kinds", default="products")
    parser.add_argument("--target", default="sm_90a")
    for name, value in (("count", 100), ("seed", 1), ("most", 1500), ("least", 1), ("jobs", os.cpu_count())):
        parser.add_argument(f"--{name}", type=int, default=value)
    options, counts = parser.parse_args(), {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for kind in options.kinds.split(","):
            seeds = range(options.seed, options.seed + options.count)
            for seed, (drawn, found) in zip(seeds, pool.map(lambda seed: spilled(kind, seed, options), seeds)):
                what = "refused" if found is None else "spills" if found[0] >= options.least else "none"
                counts[what] = counts.get(what, 0) + 1
                if found and found[0] >= options.least:
                    print(f"{found[0]} bytes, {found[1]} registers, {found[2]} threads: --kinds={kind} --most={options.most} --seed={seed}: {drawn.about()}", flush=True)
    print(", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
