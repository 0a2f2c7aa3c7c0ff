"""Holds the files of a folder to its order.txt; see check_calls.sh."""
import os
import subprocess
import sys


# Folders without an order.txt, and why.
WITHOUT = {
    "bench": "its programs have one to three files, and its plain C is compiled by scripts/bench.sh alone",
    "examples/expression_compiler": "a program as a user would write it",
    "tests": "suites, which criterion finds; each program has few files",
}


RECURSION = "recursion:"


def read_order(path):
    """The files of an order, lowest first, and the functions of recursion; a line has one file."""
    with open(path, encoding="utf-8") as lines:
        words = [line.split("#")[0].split() for line in lines if line.split("#")[0].split()]
    return ([" ".join(line) for line in words if line[0] != RECURSION],
            {function for line in words if line[0] == RECURSION for function in line[1:]})


def find_objects(build, folder):
    """Name of a file without its ending, to its object."""
    top, _, below = folder.partition("/")
    found = {}
    for root, _, files in os.walk(os.path.join(build, *([top] if below else [folder]))):
        if "CMakeFiles" not in root:
            continue
        inside = root.split(".dir", 1)[-1].strip("/")
        here = os.path.join(os.path.relpath(root.split("/CMakeFiles")[0], build), inside).rstrip("/")
        for name in files:
            if name.endswith(".o") and os.path.normpath(here) == folder:
                found[name.split(".")[0]] = os.path.join(root, name)
    return found


def read_symbols(path):
    """What an object defines for others, and what it takes from them."""
    defined, used = set(), set()
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if words[-2] == "U":
            used.add(words[-1])
        elif words[-2].isupper():
            defined.add(words[-1])
    return defined, used


def find_calls(symbols, owner, recursion):
    """For each file those that it calls, with one of the functions; calls of recursion do not count."""
    return {name: {owner[s]: s for s in sorted(used - recursion, reverse=True) if owner.get(s, name) != name}
            for name, (_, used) in symbols.items()}


def find_needless(folder, symbols, owner, place, recursion):
    """Functions of recursion that no file above their own calls."""
    return [f"{folder}/order.txt: {function} is not called by a file above its own: it is no recursion"
            for function in sorted(recursion)
            if not any(function in used and place[name] < place[owner[function]]
                       for name, (_, used) in symbols.items() if function in owner)]


def check(source, build, folder):
    listed, recursion = read_order(os.path.join(source, folder, "order.txt"))
    files = {name.split(".")[0] for name in os.listdir(os.path.join(source, folder)) if name.endswith((".c", ".cc", ".re"))}
    problems = [f"{folder}/order.txt: {name} is no file of the folder" for name in listed if name not in files]
    problems += [f"{folder}/order.txt: {name} is listed twice" for name in set(listed) if listed.count(name) > 1]
    problems += [f"{folder}/order.txt: {name} is missing" for name in sorted(files - set(listed))]
    objects = find_objects(build, folder)
    problems += [f"{folder}: no object of {name} in {build}" for name in sorted(files - set(objects))]
    if problems:
        return problems
    symbols = {name: read_symbols(objects[name]) for name in files}
    owner = {symbol: name for name, (defined, _) in symbols.items() for symbol in defined}
    calls = find_calls(symbols, owner, recursion)
    place = {name: i for i, name in enumerate(listed)}
    problems = find_needless(folder, symbols, owner, place, recursion)
    for name in listed:
        problems += [f"{folder}/{name} calls {function} of {other}, which stands below it in order.txt"
                     for other, function in calls[name].items() if place[other] > place[name]]
    return problems


def find_unordered(source, ordered):
    """Folders with several sources that have neither an order nor a reason for having none."""
    listing = subprocess.run(["git", "-C", source, "ls-files", "*.c", "*.cc", "*.re"], capture_output=True, text=True, check=True)
    folders = [os.path.dirname(path) for path in listing.stdout.split()]
    return [f"{folder}: no order.txt" for folder in sorted(set(folders))
            if folders.count(folder) > 1 and folder not in ordered
            and folder not in WITHOUT and folder.partition("/")[0] not in WITHOUT]


def main():
    source, build = sys.argv[1:]
    listing = subprocess.run(["git", "-C", source, "ls-files", "*order.txt"], capture_output=True, text=True, check=True)
    folders = [os.path.dirname(path) for path in listing.stdout.split()]
    problems = [problem for folder in folders for problem in check(source, build, folder)]
    problems += find_unordered(source, folders)
    print("\n".join(problems) if problems else f"{len(folders)} folders call in their order")
    sys.exit(bool(problems) or not folders)


main()
