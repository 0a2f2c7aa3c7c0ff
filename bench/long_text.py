#!/usr/bin/env python3
"""Writes a long .tile file, for the time that `tilec check` takes.

usage: long_text.py many STDLIB LINES   copies of all items of the standard library, under new names
       long_text.py one LINES           one kernel: steps of a network on a tile, each different
"""
import os
import random
import re
import sys

ITEM = re.compile(r"^(?:kernel|fn|const) (\w+)", re.MULTILINE)
KERNEL = re.compile(r"^kernel (\w+)", re.MULTILINE)
# What the other files import stands before them.
FIRST = ["math", "nn", "sort"]


def names_of(text):
    return set(ITEM.findall(text))


def renamed(text, names, shared, suffix, own):
    """The text without imports, every item under a new name: `own` stands before the suffix of those that other files do
    not use. Words in comments and texts follow, which is no harm."""
    lines = [line for line in text.splitlines() if not line.startswith("import ")]
    words = re.compile(r"\b(?:" + "|".join(names) + r")\b|(?<=\] as )\w+")
    # A kernel may have the name of a built-in function, which is what a call without `run` means.
    kernels = set(KERNEL.findall(text))
    called = re.compile(r"\s*\(")
    launched = ("kernel ", "run ")

    def rename(match):
        word = match.group(0)
        if word in kernels and called.match(match.string, match.end()):
            if not match.string.endswith(launched, 0, match.start()):
                return word
        return word + ("" if word in shared else own) + suffix

    return words.sub(rename, "\n".join(lines)).splitlines()


def many(directory, lines):
    files = sorted(name for name in os.listdir(directory) if name.endswith(".tile"))
    files.sort(key=lambda name: name[:-5] not in FIRST)
    texts = [open(os.path.join(directory, name), encoding="utf-8").read() for name in files]
    names = {name[:-5]: names_of(text) for name, text in zip(files, texts)}
    shared = set().union(*(names[module] for module in FIRST))
    result, copy = [], 0
    while True:
        for name, text in zip(files, texts):
            visible = names[name[:-5]].union(*(names[module] for module in FIRST if f"import {module}\n" in text))
            added = renamed(text, visible, shared, f"_{copy}", f"_{name[:-5]}")
            if len(result) + len(added) > lines:
                return result + ["// the end"] * (lines - len(result))
            result += added
        copy += 1


FORMS = [
    "let {new} = {a} + {b} * {c}",
    "let {new} = {a} * {b}",
    "let {new} = {a} - {number}",
    "let {new} = max({a}, {b}) - exp({c} - {top}[:, _])",
    "let {new} = where({a} > {b}, {a}, {number} * {b})",
    "let {new} = sigmoid({a}) * f32({x}[m, n])",
    "let {new} = max({a} + {row}[n][_, :], 0) / (1 + abs({b}))",
    "let {new} = {a} - mean({b}, axis = 1)[:, _]",
    "let {new} = clamp({a}, {number}, 6) + tanh({b}) * rsqrt({c} * {c} + eps)",
    "let {new} = fma({a}, {b}, f32({x}[m, n]) - {number})",
]


def one(lines):
    chance = random.Random(1)
    tensors, rows = [f"x{i}" for i in range(8)], [f"w{i}" for i in range(8)]
    result = ["kernel long[T: f16 | bf16 | f32](",
              "        " + ", ".join(f"{name}: in T[M, N]" for name in tensors) + ",",
              "        " + ", ".join(f"{name}: in f32[N]" for name in rows) + ", y: out T[M, N], eps: f32)",
              "    tune BM in {1, 4}, BN in {256, 1024}", "{", "    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {"]
    result += [f"        let v{i} = f32({name}[m, n])" for i, name in enumerate(tensors)]
    result += ["        var top = full[BM](-inf)"]
    count = len(tensors)
    while len(result) < lines - 3:
        recent = [f"v{i}" for i in range(max(0, count - 12), count)]
        if chance.random() < 0.02:
            result.append(f"        top = max(top, max({chance.choice(recent)} else -inf, axis = 1))")
            continue
        a, b, c = (chance.choice(recent) for _ in range(3))
        result.append("        " + chance.choice(FORMS).format(
            new=f"v{count}", a=a, b=b, c=c, top="top", x=chance.choice(tensors), row=chance.choice(rows),
            number=round(chance.random(), 3)))
        count += 1
    return result + [f"        y[m, n] = T(v{count - 1})", "    }", "}"]


if len(sys.argv) == 4 and sys.argv[1] == "many":
    print("\n".join(many(sys.argv[2], int(sys.argv[3]))))
elif len(sys.argv) == 3 and sys.argv[1] == "one":
    print("\n".join(one(int(sys.argv[2]))))
else:
    sys.exit(__doc__)
