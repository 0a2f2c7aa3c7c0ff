#!/usr/bin/env python3
"""How long it takes from a keystroke to the diagnostics, and to a hover behind it, for files of so many lines.

usage: measure.py TILEC [LINES..]"""
import statistics
import sys
import time

from client import Client

KERNEL = """\
/// Row softmax.
kernel softmax%d[T: f16 | bf16 | f32](x: in T[M, N], y: out T[M, N])
    tune BM in {1, 4}, BN in {1024, 4096}
{
    grid m in tiles(M, BM) {
        var top = full[BM](-inf)
        var total = zeros[BM](f32)
        for n in tiles(N, BN) {
            let v = f32(x[m, n])
            let next = max(top, max(v, axis = 1))
            total = total * exp(top - next) + sum(exp(v - next[:, _]), axis = 1)
            top = next
        }
        for n in tiles(N, BN) { y[m, n] = T(exp(f32(x[m, n]) - top[:, _]) / total[:, _]) }
    }
}

"""


def measure(client, lines):
    text = "".join(KERNEL % i for i in range(lines // KERNEL.count("\n") + 1))
    uri, line = f"file:///texts/measure{lines}.tile", text.count("\n") // 2
    client.open(uri, text)
    client.diagnostics(uri, 1)
    shown, hovered = [], []
    for version in range(2, 32):
        place = {"line": line, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": "/" if version > 3 else "//"}
        start = time.perf_counter()
        client.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]})
        client.diagnostics(uri, version)
        shown.append(time.perf_counter() - start)
        start = time.perf_counter()
        client.place("textDocument/hover", uri, 8, 16)
        hovered.append(time.perf_counter() - start)
    milliseconds = [f"{1e3 * f(times):.1f}" for times in (shown, hovered) for f in (statistics.median, max)]
    print(f"{text.count(chr(10)):6} lines: diagnostics {milliseconds[0]} ms (at most {milliseconds[1]}), "
          f"hover {milliseconds[2]} ms (at most {milliseconds[3]})")


def main():
    client = Client(sys.argv[1], capabilities={})
    for lines in sys.argv[2:] or ["1000", "10000"]:
        measure(client, int(lines))
    client.leave()


if __name__ == "__main__":
    main()
