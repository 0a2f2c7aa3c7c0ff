#!/usr/bin/env python3
"""How the work of each pass grows with the program: texts that are large in one way each (texts.py), in two sizes.

usage: growth.py BIN OPS TARGETS [KIND..]     BIN: the folder with tilec and tile-opt; OPS: 100000; TARGETS: avx2,sm_80

The larger size is the one of which the pipeline makes about OPS operations, the smaller a quarter of it. Work is counted
in instructions, by valgrind's callgrind: times depend on caches and on what else the machine does. Prints the passes that
take more than a twentieth of the pipeline's instructions, with the milliseconds of a run without valgrind, and the exponent
of the growth: 1 is linear. Ends with failure where it is above 1.15, which is n log n, for a pass that does more than a
hundredth."""
import collections
import math
import os
import re
import subprocess
import sys
import tempfile

TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts.py")
KINDS = ["statements", "lets", "loads", "shifts_sum", "masks", "gathers", "stores", "loops", "carried", "branches",
         "branches_carried", "reductions", "whiles", "grids", "atomics", "prints"]
LIMITS = ["--limit=operations=100000000", "--limit=file-operations=100000000", "--limit=text=1000000000"]
FIRST_SIZE = 100
STEEP, NOTABLE, SHOWN = 1.15, 0.01, 0.05


class Failed(Exception):
    pass


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode:
        raise Failed((done.stderr.strip() or "no message").splitlines()[0][-160:])
    return done.stdout


def measure(folder, programs, kind, size, target, counted):
    """Operations, the pipeline's instructions (0 unless counted), and for each pass its instructions and milliseconds."""
    run(sys.executable, TEXTS, kind, str(size), folder)
    ir, profile = os.path.join(folder, kind + ".tir"), os.path.join(folder, "profile")
    with open(ir, "w", encoding="utf-8") as out:
        out.write(run(programs + "/tilec", "emit", "tile", os.path.join(folder, kind + ".tile"), *LIMITS))
    command = [programs + "/tile-opt", ir, "--pipeline=" + ("gpu" if target.startswith("sm_") else "cpu"),
               "--target=" + target, "--times"]
    ops, milliseconds, instructions = 0, collections.Counter(), {}
    for line in run(*command).splitlines():
        count, nanoseconds, name = line.split()
        ops = max(ops, int(count))
        milliseconds[name] += int(nanoseconds) * 1e-6
    if not counted:
        return ops, 0, {}
    run("valgrind", "--tool=callgrind", "--callgrind-out-file=" + profile, *command)
    for line in run("callgrind_annotate", "--inclusive=yes", "--threshold=100", profile).splitlines():
        found = re.match(r"\s*([\d,]+) .*:(tile_pass\w+)", line)
        if found:
            instructions.setdefault(found[2], int(found[1].replace(",", "")))
    work = {}
    for name, time in milliseconds.items():
        work[name] = (instructions.get("tile_pass_" + name.replace("-", "_"), 0), time)
    return ops, instructions.get("tile_passes_run", 0), work


def compare(folder, programs, kind, target, wanted):
    ops = measure(folder, programs, kind, FIRST_SIZE, target, False)[0]
    size = max(10, FIRST_SIZE * wanted // ops // 4)
    small_ops, _, small = measure(folder, programs, kind, size, target, True)
    ops, whole, large = measure(folder, programs, kind, 4 * size, target, True)
    print(f"     {kind:20} {target:8} {small_ops} to {ops} ops, {whole * 1e-6:.0f} million instructions", flush=True)
    failed = 0  # the text is four times as long, whatever comes of it
    for name, (instructions, milliseconds) in large.items():
        before = small[name][0]
        if not before or instructions < NOTABLE * whole:
            continue
        exponent = math.log(instructions / before) / math.log(max(ops / small_ops, 4))
        failed += exponent > STEEP
        if exponent > STEEP or instructions > SHOWN * whole:
            print(f"{'FAIL' if exponent > STEEP else '    '}     {name:20} {instructions * 1e-6:8.1f} million, "
                  f"{milliseconds:8.2f} ms, exponent {exponent:.2f}", flush=True)
    return failed


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    programs, wanted, targets = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in sys.argv[4:] or KINDS:
            for target in targets:
                try:
                    failed += compare(folder, programs, kind, target, wanted)
                except Failed as reason:
                    failed += 1
                    print(f"FAIL {kind:20} {target:8} {reason}", flush=True)
    print(f"{failed} failures")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
