"""Holds the choice of constants by the model of a GPU (ptx/model) to measurements.

measured.tsv has, for kernels of the standard library and sizes, the times of points of a tune clause. Each kernel gets a
clause with just the values of these points; `tilec explain` says what is predicted for each. The time of the point with the
least predicted time is compared with that of the fastest one. turns.tsv has points of products with and without turns, which the
model adds to those of the clause, splits.tsv points of reductions with the number of programs that their loops are split for. Nothing is
timed here.

usage: choice.py TILEC STDLIB [-v]     -v: a line for each row, to see what a change of the model does
"""
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

MOST_OF_A_ROW, MOST_OF_A_KERNEL, MOST_OF_ALL = 1.15, 1.06, 1.021
TARGET = "sm_90a"
MANY, MANY_WORTH = 528, 0.95  # grids that are split for more programs have to be worth it (driver/compile/choice.c)
TURNS, PROGRAMS = ("turns", "warps"), "programs"  # decided by the model, beside the values of a clause


def read_rows(path):
    for line in open(path):
        if line.startswith("#"):
            continue
        kernel, arguments, names, points = line.rstrip("\n").split("\t")
        times = {}
        for point in points.split():
            values, time = point.split("=")
            times[tuple(map(int, values.split(":")))] = float(time)
        yield kernel, arguments.split(), names.split(), times


def with_clause(text, kernel, names, points):
    """The file's text, the kernel's tune clauses replaced by one with the points' values. Others keep their first value."""
    begin = re.search(rf"^kernel {kernel}\b", text, re.M).start()
    end = text.index("\n{", begin)
    header = text[begin:end]
    clause = re.search(r"\n    tune (?:gpu )?(?!cpu)(.*(?:\n        .*)*)", header).group(1)
    lists = [f"{name} in {{{', '.join(map(str, sorted({point[i] for point in points})))}}}" for i, name in enumerate(names)]
    lists += [f"{name} in {{{value}}}" for name, value in re.findall(r"(\w+) in \{(\d+)", clause) if name not in names]
    header = re.sub(r"\n    tune .*(?:\n        .*)*", "", header) + "\n    tune " + ", ".join(lists)
    return text[:begin] + header + text[end:]


def predict(tilec, file, kernel, arguments, turns, splits):
    """Predicted times by values of the constants and of what the model decides, of split grids with the choice before all others (many programs
    have to be worth it); without grids whose programs are computed together, or by the blocks of a cluster, which
    were not measured, and without turns and split grids unless they are asked for."""
    command = [tilec, "explain", f"{file}:{kernel}", *arguments, f"--target={TARGET}", "--format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"TILE_PTXAS": "none"})
    said = json.loads(done.stdout)
    names = [constant["name"] for constant in said["constants"]]
    found = [candidate for candidate in said["candidates"] if (splits or not candidate["least_programs"]) and not candidate["packs"]
             and not candidate["joined_lanes"] and (turns or not (candidate["turns"] or candidate["cluster"])) and "time" in candidate]
    return [(dict(zip(names, candidate["values"])) | {name: candidate[name] for name in TURNS if turns}
             | {PROGRAMS: candidate["least_programs"]}, (splits and not candidate["chosen"], candidate["time"] / (MANY_WORTH if candidate["least_programs"] > MANY else 1)))
            for candidate in found]


def judge(tilec, stdlib, folder, number, row):
    """How much longer than the best point the chosen one takes."""
    kernel, arguments, names, times = row
    texts = [*sorted(stdlib.glob("*.tile")), *sorted((pathlib.Path(__file__).parent.parent / "programs").glob("*.tile"))]
    text = next(t for t in (p.read_text() for p in texts) if re.search(rf"^kernel {kernel}\b", t, re.M))
    file = folder / f"row{number}.tile"
    turns, splits = "turns" in names, PROGRAMS in names
    named = [name for name in names if name != PROGRAMS and not (turns and name in TURNS)]
    places = [names.index(name) for name in named]
    file.write_text(with_clause(text, kernel, named, [tuple(point[i] for i in places) for point in times]))
    known = [(predicted, tuple(values[name] for name in names)) for values, predicted in predict(tilec, file, kernel, arguments, turns, splits)]
    known = [(predicted, values) for predicted, values in known if values in times]
    chosen = min(known)[1]
    return times[chosen] / min(times[values] for _, values in known), chosen


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    tilec, stdlib = sys.argv[1], pathlib.Path(sys.argv[2])
    rows = [row for name in ("measured.tsv", "turns.tsv", "splits.tsv") for row in read_rows(pathlib.Path(__file__).parent / name)]
    kernels, failed = {}, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        found = pool.map(judge, itertools.repeat(tilec), itertools.repeat(stdlib), itertools.repeat(pathlib.Path(folder)),
                         range(len(rows)), rows)
        for row, (ratio, chosen) in zip(rows, found):
            name = "reductions that are split" if PROGRAMS in row[2] else row[0] + (" with turns" if "turns" in row[2] else "")
            kernels.setdefault(name, []).append(ratio)
            failed += ratio > MOST_OF_A_ROW
            if ratio > MOST_OF_A_ROW or "-v" in sys.argv:
                print(f"{row[0]} {' '.join(row[1])}: {' '.join(f'{n}={v}' for n, v in zip(row[2], chosen))} takes "
                      f"{ratio:.2f} of the best point's time")
    for kernel, ratios in kernels.items():
        print(f"{kernel}: {mean(ratios):.3f} of the best points' times in {len(ratios)} rows, at most {max(ratios):.2f}")
        failed += mean(ratios) > MOST_OF_A_KERNEL
    everything = mean([mean(ratios) for ratios in kernels.values()])
    print(f"all: {everything:.3f}, {failed} too slow")
    sys.exit(failed > 0 or everything > MOST_OF_ALL)


if __name__ == "__main__":
    main()
