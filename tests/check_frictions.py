#!/usr/bin/env python3
"""Each place that tests/frictions.tsv names is there: a kernel has rows in the matrix, a test has its name, a file its text.

usage: check_frictions.py [FILE]
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def read(*parts):
    try:
        with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, IsADirectoryError):
        return ""


def has_word(text, word):
    return re.search(r"\b" + re.escape(word) + r"\b", text) is not None


def texts_of(folder, ending):
    names = sorted(os.listdir(os.path.join(HERE, folder)))
    return "\n".join(read("tests", folder, name) for name in names if name.endswith(ending))


MATRIX = {line.split("\t")[0].split("/tests/programs/")[-1].split("/")[0]
          for line in read("tests", "matrix.tsv").splitlines() if not line.startswith("#")}
RANDOM, LSP = texts_of("random", (".c", ".h")), texts_of("lsp", ".py")


def is_regression(place):
    name, _, kernel = place.partition(":")
    text = read("tests", "regressions", name + ".tile")
    return bool(text) and (not kernel or re.search(rf"^kernel {kernel}\b", text, re.MULTILINE) is not None)


def is_test(place):
    name, _, title = place.partition(": ")
    return f'test "{title}"' in read("tests", "programs", name)


def is_unit_test(place):
    name, _, test = place.partition(": ")
    return re.search(rf"^Test\(\w+, {test}\b", read("tests", "unit", name), re.MULTILINE) is not None


def says(place):
    name, _, text = place.partition(": ")
    return bool(text) and text in read(name)


KINDS = {
    "matrix": lambda place: place in MATRIX,
    "test": is_test,
    "regression": is_regression,
    "error": lambda place: bool(read("tests", "errors", place + ".tile")),
    "random": lambda place: has_word(RANDOM, place),
    "unit": is_unit_test,
    "cli": lambda place: says("tests/cli/" + place.replace(":", ".sh:", 1)),
    "lsp": lambda place: f"def {place}(" in LSP,
    "file": lambda place: os.path.exists(os.path.join(ROOT, place)),
    "says": says,
}


def faults_of(line):
    fields = line.split("\t")
    if len(fields) != 3:
        return [f"{len(fields)} fields in place of 3"]
    found = []
    for place in fields[2].split("; "):
        kind, _, what = place.partition(" ")
        if kind not in KINDS:
            found.append(f"`{kind}` is no kind of place")
        elif not KINDS[kind](what):
            found.append(f"there is no {kind} `{what}`")
    return found


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "frictions.tsv")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    faults, clauses = 0, 0
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        clauses += 1
        for fault in faults_of(line):
            print(f"{os.path.relpath(path, ROOT)}:{number}: {fault}")
            faults += 1
    if not clauses:
        sys.exit(f"{path} has no clauses")
    print(f"{clauses} clauses, {faults} faults")
    sys.exit(faults != 0)


main()
