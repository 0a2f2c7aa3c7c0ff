"""Measuring kernels: kernel.bench(arrays..) and kernel.tune(arrays..).

Times are medians of batches of bound calls, taken in turns with a copy of as many bytes on the same threads, so that a slow
period of the machine affects both. On a GPU each batch is waited for once."""

import itertools
import statistics
import sys
import time

from tile import _errors

__all__ = ["Result", "Tuned", "run", "tune"]


def _bytes(array):
    if hasattr(array, "nbytes"):
        return array.nbytes
    return memoryview(array).nbytes if not hasattr(array, "__float__") else 0


def _moved(kernel, arguments):
    """Bytes read and written: each element once, and twice where it is inout."""
    return sum(_bytes(a) * (2 if p.access == "inout" else 1)
               for p, a in zip(kernel.parameters, arguments) if p.access is not None)


def _waiter(arguments):
    """A function that waits for the device of the arrays."""
    for array in arguments:
        if type(array).__module__.startswith("torch") and getattr(array, "is_cuda", False):
            import torch

            return torch.cuda.synchronize
        if type(array).__module__.startswith("cupy"):
            import cupy

            return cupy.cuda.get_current_stream().synchronize
    return lambda: None


def _copier(size, arguments):
    """Copies half as many bytes as `size`, which reads and writes as many as the kernel does; and the bytes."""
    half = max(size // 2, 64)
    for array in arguments:
        if type(array).__module__.startswith("torch"):
            import torch

            source = torch.zeros(half, dtype=torch.uint8, device=array.device)
            target = torch.empty_like(source)
            return lambda: target.copy_(source), 2 * half
    import numpy

    source = numpy.zeros(half, numpy.uint8)
    target = numpy.empty_like(source)
    return lambda: numpy.copyto(target, source), 2 * half


def _batch(function, wait, count):
    start = time.perf_counter()
    for _ in range(count):
        function()
    wait()
    return (time.perf_counter() - start) / count


def _measure(functions, wait, seconds):
    """The median seconds of a call of each, in turns."""
    counts = []
    for function in functions:
        _batch(function, wait, 1)
        counts.append(max(1, int(seconds / 40 / max(_batch(function, wait, 3), 1e-8))))
    samples = [[] for _ in functions]
    end = time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end or len(samples[0]) < 5:
        for function, count, times in zip(functions, counts, samples):
            times.append(_batch(function, wait, count))
    return [statistics.median(times) for times in samples]


class Result:
    """What a measurement says: `seconds` a launch, `bytes` moved, `rate` in bytes a second, `copy_rate` that copying as many
    bytes reaches, `share` of it; where the operations were given, `flops` and `flop_rate`, `peak` of a product of matrices
    on this machine, and `share` of whatever limits: copying or computing."""

    def __init__(self, kernel, seconds, moved, copy_rate, flops, peak):
        self.kernel, self.seconds, self.bytes, self.copy_rate, self.flops, self.peak = (
            kernel, seconds, moved, copy_rate, flops, peak)
        self.rate = moved / seconds
        self.flop_rate = flops / seconds if flops else None
        copying, computing = moved / copy_rate, flops / peak if flops and peak else 0.0
        self.limit = "computing" if computing > copying else "copying"
        self.share = max(copying, computing) / seconds

    def __repr__(self):
        text = (f"{self.kernel.name}: {self.seconds * 1e6:.2f} us, {self.rate * 1e-9:.2f} GB/s, {self.share * 100:.0f} % of "
                f"{self.limit} ({self.copy_rate * 1e-9:.2f} GB/s)")
        return text + (f", {self.flop_rate * 1e-9:.2f} GFLOP/s" if self.flops else "")

    def _repr_svg_(self):
        from tile import _notebook

        return _notebook.roofline_svg(self)


def _peak(like):
    """FLOP a second of a product of matrices of the standard library, on the device of the arrays."""
    from tile import stdlib

    n = 512
    if like is not None and type(like).__module__.startswith("torch"):
        import torch

        a, b = (torch.ones(n, n, device=like.device) for _ in range(2))
    else:
        import numpy

        a, b = (numpy.ones((n, n), numpy.float32) for _ in range(2))
    product = stdlib.matmul.with_settings(U="f32").bind(a, b)
    seconds, = _measure([product], _waiter((a,)), 0.1)
    return 2 * n ** 3 / seconds


def run(kernel, arguments, *, flops=None, seconds=0.5):
    """Measures a kernel on these arrays; results that are not given are allocated once. flops: operations of a launch, if
    the roofline is to have them."""
    bound = kernel.bind(*arguments)
    arrays = bound.arguments
    moved = _moved(kernel, arrays)
    copy, copied = _copier(moved, arrays)
    mine, copying = _measure([bound, copy], _waiter(arrays), seconds)
    tensors = [a for a in arrays if hasattr(a, "shape")]
    peak = _peak(tensors[0] if tensors else None) if flops else None
    return Result(kernel, mine, moved, copied / copying, flops, peak)


class Tuned:
    """What a search found: `kernel` with the best values, `best` the values, `points` all of them with their seconds (None:
    no code), fastest first."""

    def __init__(self, kernel, best, points):
        self.kernel, self.best, self.points = kernel, best, points

    def __repr__(self):
        return f"<{self.kernel.name}: {', '.join(f'{n}={v}' for n, v in self.best.items())}, {len(self.points)} points>"

    def __call__(self, *arguments, **keywords):
        return self.kernel(*arguments, **keywords)


def _points(kernel):
    family = "gpu" if kernel.is_gpu else "cpu"
    names = {}
    for setting in kernel.settings:
        if setting.kind == "tune" and setting.family in (None, family) and setting.value is None:
            names[setting.name] = [int(text) for text in setting.allowed.split(",")]
    return [dict(zip(names, values)) for values in itertools.product(*names.values())]


def tune(kernel, arguments, *, progress=False, seconds=0.05, most=256):
    """Measures the points of the kernel's `tune` clauses on these arrays, in turns for those that are near the best, and
    gives the kernel with the best. Points that its `where` clauses or the machine do not allow are left out. Results are not
    written to a tuning file: `tilec tune` does that."""
    points = _points(kernel)[:most]
    calls, seen = [], []
    for number, point in enumerate(points):
        if progress:
            print(f"\r{kernel.name}: {number + 1} of {len(points)}", end="", file=sys.stderr, flush=True)
        try:
            calls.append((point, kernel.with_settings(**point).bind(*arguments)))
        except _errors.Error:
            seen.append((point, None))
    if not calls:
        raise _errors.Error(f"{kernel.name}: no point of its tune clauses has code for these arrays")
    wait = _waiter(arguments)
    times = _measure([bound for _, bound in calls], wait, seconds)
    near = sorted(range(len(calls)), key=times.__getitem__)[:4]
    for i, again in zip(near, _measure([calls[i][1] for i in near], wait, 2 * seconds)):
        times[i] = again
    ranked = sorted(zip(times, range(len(calls))))
    rows = [(calls[i][0], t) for t, i in ranked] + seen
    if progress:
        print(f"\r{kernel.name}: {rows[0][0]} {rows[0][1] * 1e6:.2f} us", file=sys.stderr)
    return Tuned(kernel.with_settings(**rows[0][0]), rows[0][0], rows)
