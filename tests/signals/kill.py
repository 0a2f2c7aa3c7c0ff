"""Ends tilec by signals at random moments of each command that writes files: it dies of the signal, and what it was to
write is there whole, or as it was, and nothing else. usage: kill.py TILEC ROUNDS [SEED]"""
import os, pathlib, random, shutil, signal, subprocess, sys, tempfile, time

tilec, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
draw = random.Random(seed)
top = pathlib.Path(tempfile.mkdtemp())
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
TEXT = """/// y = x + 1.
kernel k(x: in f32[M, N], y: out f32[M, N]) tune BM in {1, 4}, BN in {64, 256} {
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { y[m, n] = x[m, n] + 1 }
}
export k
"""
# Writes its output in small parts, as a slow assembler would.
PTXAS = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
for i in 1 2 3 4 5 6 7 8; do echo part >>"$out"; echo note; sleep 0.02; done
"""
# name: words, files that it makes
COMMANDS = {
    "run": (["run", "k.tile", "x=zeros:f32[2000,3000]", "y=y.npy"], ["y.npy"]),
    "build": (["build", "k.tile", "--target=avx2", "-o", "k.o", "--header", "k.h", "-MD"], ["k.o", "k.h", "k.d"]),
    "cubin": (["build", "k.tile", "--target=sm_80", "-o", "g.o", "--header", "g.h"], ["g.o", "g.h"]),
    "tune": (["tune", "k.tile", "x=zeros:f32[64,300]", "y=@", "--file=t.txt", "--seconds=1"], ["t.txt"]),
    "svg": (["explain", "k.tile", "x=zeros:f32[64,300]", "y=@", "--target=sm_80", "--svg=s.svg"], ["s.svg"]),
    "doc": (["doc", "k.tile", "-o", "k.md"], ["k.md"]),
    "cache": (["run", "k.tile", "x=zeros:f32[40,300]", "y=@"], []),
    "background": (["run", "k.tile", "x=zeros:f32[40,300]", "y=@", "--repeat=400"], []),
}
wrong = []


def start(name, folder):
    for part in ("", "tmp", "cache", "home"):
        (folder / part).mkdir()
    (folder / "k.tile").write_text(TEXT)
    (folder / "ptxas").write_text(PTXAS)
    (folder / "ptxas").chmod(0o755)
    environment = dict(os.environ, TMPDIR=str(folder / "tmp"), TILE_CACHE_DIR=str(folder / "cache"),
                       TILE_PTXAS=str(folder / "ptxas"), TILE_NUM_THREADS="2")
    if name == "background":
        environment["TILE_ON_MISS"] = "background"
    return subprocess.Popen([tilec, *COMMANDS[name][0]], cwd=folder, env=environment, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)


def files(folder):
    return {str(p.relative_to(folder)): p for p in folder.rglob("*") if not p.is_dir() or not any(p.iterdir())}


def is_good(path, whole):
    """What a run that nobody disturbed has made; a tuning file has other times, but whole lines."""
    data = path.read_bytes()
    if path.name != "t.txt":
        return data == whole
    return data.startswith(b"tile-tuning 1\n") and data.endswith(b"\n") and all(
        line.startswith(b"#") or line.count(b"\t") == 9 for line in data.split(b"\n")[1:-1])


def look(name, folder, finished, wholes):
    made = COMMANDS[name][1]
    given = {"k.tile", "ptxas", "tmp", "home", "cache"}
    for file, path in files(folder).items():
        if file in given or (file.startswith("cache/") and file.endswith((".tilecode", "tuning.txt"))):
            continue
        if file not in made:
            yield f"{file} is left"
        elif not is_good(path, wholes[file]):
            yield f"{file} is not whole"
    there = [file for file in made if (folder / file).exists()]
    if there and len(there) < len(made):
        yield f"of {made} there are only {there}"
    if finished and len(there) < len(made):
        yield "it ends without its files"


def whole_run(name):
    folder = top / f"{name}.whole"
    begin = time.monotonic()
    process = start(name, folder)
    message = process.communicate()[1]
    if process.returncode:
        sys.exit(f"{name}: ends with {process.returncode}: {message.decode()}")
    return time.monotonic() - begin, {file: (folder / file).read_bytes() for file in COMMANDS[name][1]}


def one_round(name, number, seconds, wholes):
    folder = top / f"{name}.{number}"
    process = start(name, folder)
    time.sleep(seconds * draw.random())
    signals = [draw.choice(SIGNALS) for _ in range(draw.choice([1, 1, 1, 2]))]
    for which in signals:
        process.send_signal(which)
    message = process.communicate()[1].decode(errors="replace")
    status = process.returncode
    if status != 0 and -status not in signals:
        wrong.append(f"{name} {number}: ends with {status} after {signals}: {message}")
    wrong.extend(f"{name} {number}, {signals}: {what}" for what in look(name, folder, status == 0, wholes))
    shutil.rmtree(folder)
    return status != 0


try:
    killed = 0
    for name in COMMANDS:
        seconds, wholes = whole_run(name)
        killed += sum(one_round(name, i, seconds, wholes) for i in range(rounds))
    print(f"seed {seed}: {killed} of {rounds * len(COMMANDS)} processes died of signals, {len(wrong)} wrong")
finally:
    shutil.rmtree(top)
print("\n".join(wrong))
sys.exit(bool(wrong) or killed < rounds)
