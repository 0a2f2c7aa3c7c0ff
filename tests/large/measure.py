#!/usr/bin/env python3
"""What `tilec check` needs for texts that are large in one way each (texts.py).

usage: measure.py TILEC SIZES [KIND..]     SIZES: 100,1000

Prints processor time and memory beyond that of an empty text. Ends with failure where the compiler does not end by itself
with status 0 or 1, or takes more than 256 MiB. Time is only shown: machines differ; what runs for a minute has no bound.
"""
import os
import resource
import subprocess
import sys
import tempfile

TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts.py")
MOST_KIB = 256 * 1024
MOST_SECONDS = 60


def limit_time():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(tilec, path):
    """Status, seconds of the processor, KiB, and the first line that is said."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([tilec, "check", path], stdout=subprocess.DEVNULL, stderr=said, preexec_fn=limit_time)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.readline().decode("utf-8", "replace").strip()
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, words.replace(path, "")[-90:]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tilec, sizes = sys.argv[1], [int(size) for size in sys.argv[2].split(",")]
    listed = subprocess.run([sys.executable, TEXTS], check=True, capture_output=True, text=True).stdout
    kinds = sys.argv[3:] or [line.split()[0] for line in listed.splitlines()]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        empty = os.path.join(folder, "empty.tile")
        open(empty, "w", encoding="utf-8").close()
        _, _, base, _ = run(tilec, empty)
        for kind in kinds:
            for size in sizes:
                subprocess.run([sys.executable, TEXTS, kind, str(size), folder], check=True)
                status, seconds, kib, words = run(tilec, os.path.join(folder, kind + ".tile"))
                wrong = status not in (0, 1) or kib - base > MOST_KIB
                failed += wrong
                print(f"{'FAIL' if wrong else '    '} {kind:24} {size:7} status {status:3} {seconds:6.2f} s "
                      f"{(kib - base) / 1024:6.0f} MiB  {words}", flush=True)
    print(f"{len(kinds)} kinds of texts, {failed} failures")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
