#!/usr/bin/env python3
"""Fourier transforms of rows beside SciPy's pocketfft, and sorts of rows beside np.sort, on one thread. Needs NumPy, SciPy and
the Python package (PYTHONPATH=build/release/python).

Each is measured at a size that stays in a cache of level 2 and at one that does not, interleaved, after a call of each that does
not count; `ratio` is the peer's median over Tile's: above 1 Tile is faster. Tile reads and writes pairs of arrays, real and
imaginary parts, the peer complex numbers: the same bytes. Results are compared before they are measured.

usage: rows_numpy.py [--turns=N] [--bytes=A,B]
"""
import argparse
import os
import statistics
import time

os.environ.update(TILE_CACHE_DIR="", TILE_NUM_THREADS="1")

import numpy
import scipy.fft

import tile


def interleave(calls, turns):
    """The median seconds of each call, interleaved; several calls at a time where one is short."""
    repeats = []
    for call in calls:
        call()
        begin = time.perf_counter()
        call()
        repeats.append(max(1, int(2e-4 / (time.perf_counter() - begin))))
    found = [[] for _ in calls]
    for turn in range(turns):
        for at in range(len(calls)) if turn % 2 else reversed(range(len(calls))):
            begin = time.perf_counter()
            for _ in range(repeats[at]):
                calls[at]()
            found[at].append((time.perf_counter() - begin) / repeats[at])
    return [statistics.median(times) for times in found]


def show(what, rows, ours, peer):
    print(f"{what:24} {rows:7} rows {ours * 1e6:11.1f} µs {peer * 1e6:11.1f} µs {peer / ours:7.2f}", flush=True)


def transform(rows, bits, generator, turns):
    n = 1 << bits
    shape = (rows, n)
    re, im = (generator.standard_normal(shape, dtype=numpy.float32) for _ in range(2))
    if bits <= 12:
        kernel, inputs, outputs = tile.stdlib.fft_rows, (re, im), tuple(numpy.empty(shape, numpy.float32) for _ in range(2))
    else:
        a = 1 << bits // 2
        kernel, inputs = tile.stdlib.fft_long, tuple(part.reshape(rows, a, n // a) for part in (re, im))
        outputs = tuple(numpy.empty((rows, n // a, a), numpy.float32) for _ in range(2))
    together = re + 1j * im

    def ours():
        kernel(*inputs, *outputs, inverse=False)

    ours()
    wanted = scipy.fft.fft(together.astype(numpy.complex128))
    got = outputs[0].reshape(shape) + 1j * outputs[1].reshape(shape)
    error = numpy.linalg.norm(got - wanted) / numpy.linalg.norm(wanted)
    assert error < 1e-6, f"2^{bits}: a relative error of {error:.1e}"
    show(f"fft 2^{bits}", rows, *interleave((ours, lambda: scipy.fft.fft(together, workers=1)), turns))


def sort(rows, n, generator, turns):
    x = generator.standard_normal((rows, n), dtype=numpy.float32)
    y = numpy.empty_like(x)

    def ours():
        tile.stdlib.sort_rows(x, y)

    ours()
    assert numpy.array_equal(y, numpy.sort(x))
    show(f"sort {n}", rows, *interleave((ours, lambda: numpy.sort(x)), turns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=41)
    parser.add_argument("--bytes", default="262144,16777216")
    options = parser.parse_args()
    generator = numpy.random.default_rng(1)
    for size in map(int, options.bytes.split(",")):
        for bits in range(8, 17):
            transform(max(1, size // (8 << bits)), bits, generator, options.turns)
        sort(max(1, size // 4096), 1024, generator, options.turns)


if __name__ == "__main__":
    main()
