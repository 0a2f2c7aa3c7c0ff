"""Kernels drawn at random: what products.py, attentions.py, convolutions.py and row_kernels.py share. Each has a text, arguments that are views inside of
larger arrays, and what its results must be, by NumPy in f64, with a bound for each element."""
import math
import random

import ml_dtypes
import numpy as np

BF16, E4M3, E5M2 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
F16, F32, F64, I8, U8, I32 = (np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8", "int32"))
NAMES = {BF16: "bf16", E4M3: "f8e4m3", E5M2: "f8e5m2", F16: "f16", F32: "f32", F64: "f64", I8: "i8", U8: "u8", I32: "i32"}
UNITS = {BF16: 2.0**-8, F16: 2.0**-11, F32: 2.0**-24, F64: 2.0**-53}  # half of a last place


class View:
    """An array inside of a larger one, whose other elements nothing may write, nor a result depend on. Steps are of any sign; an axis along which all
    elements are one has 0."""

    def __init__(self, array, before, behind, steps):
        self.shape, self.before, self.steps = array.shape, before, steps
        counts = [min(n, 1) if step == 0 else n for n, step in zip(array.shape, steps)]
        whole = [before[i] + (n - 1) * abs(steps[i]) + 1 + behind[i] if n else before[i] + behind[i] for i, n in enumerate(counts)]
        self.whole = np.full(whole, 99, array.dtype)
        self.index = tuple(self.slice(before[i], n, steps[i]) for i, n in enumerate(counts))
        self.whole[self.index] = array[tuple(slice(0, n) for n in counts)]

    @staticmethod
    def slice(first, count, step):
        if count and step < 0:
            return slice(first - (count - 1) * step, first - 1 if first else None, step)
        return slice(first, first + count * max(step, 1), max(step, 1))

    def array(self):
        return np.broadcast_to(self.whole[self.index], self.shape) if 0 in self.steps else self.whole[self.index]

    def words(self):
        """As `tilec run` is told it, behind a file's name."""
        text = {0: lambda s: f"{s.start}", 1: lambda s: f"{s.start}:{'' if s.stop is None else s.stop}:{s.step}"}
        one = [step == 0 and n > 0 for n, step in zip(self.shape, self.steps)]
        found = "[" + ",".join(text[not alone](s) for s, alone in zip(self.index, one)) + "]"
        return found + ("*[" + ",".join(str(n) if alone else ":" for n, alone in zip(self.shape, one)) + "]" if any(one) else "")

    def kept(self, whole):
        """Are the elements of `whole` outside of the view as they were?"""
        outside = np.ones(whole.shape, bool)
        outside[self.index] = False
        return bool((whole[outside].astype(np.float64) == 99).all())


class Result:
    """A parameter that a kernel writes: the view that it gets, and what its elements must be, each within a bound."""

    def __init__(self, name, kind, value, bound, turned, view, mode):
        self.name, self.kind, self.value, self.bound, self.turned, self.view, self.mode = name, kind, value, bound, turned, view, mode

    def wrong(self, whole):
        if not self.view.kept(whole):
            return "an element outside of the result was written"
        found, right = whole[self.view.index].astype(np.float64), self.value
        if self.turned:
            found = found.swapaxes(-1, -2)
        large = (np.abs(right) > 65000) & (self.kind == F16)
        with np.errstate(invalid="ignore"):
            same = (found == right) | np.isnan(found) & np.isnan(right)
            bad = ~(same | np.isfinite(right) & (np.abs(found - right) <= self.bound) | large & (np.abs(found) > 65000))
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{bad.sum()} of {bad.size} elements, the first {at}: {found[at]}, not {right[at]} within {self.bound[at]:.3g}"


class Drawn:
    """A kernel of a seed. `most` is the largest extent; `parameters` has (name, type, rank) of each input in order, `inputs` their views,
    `scalars` the numbers that follow them, `results` what comes last."""

    def __init__(self, seed, most):
        self.seed, self.chance, self.numbers, self.most = seed, random.Random(seed), np.random.default_rng(seed), most
        self.edges = random.Random(f"edges of {seed}")
        self.parameters, self.inputs, self.scalars, self.results = [], {}, {}, []

    def extent(self, most, least=1):
        chance = self.chance
        n = round(math.exp(chance.uniform(0, math.log(most)))) if chance.random() < 0.6 else chance.randint(1, most)
        grain = chance.choice((1, 1, 8, 16, 64))
        if self.edges.random() < 0.05:
            return self.edges.choice((least, 1))
        return n if n < grain else n // grain * grain

    def drawn(self, shape, kind):
        if kind in (I8, U8):
            return self.numbers.integers(-128 if kind == I8 else 0, 128 if kind == I8 else 256, shape).astype(kind)
        values = self.numbers.standard_normal(shape)
        values = (values.astype(F32).view(I32) & -8192).view(F32) if kind == F32 else values.astype(kind)
        if values.ndim > 1 and values.size and self.edges.random() < 0.05:  # one of its rows, or columns, is all of them
            values = np.broadcast_to(values.take([0], self.edges.randrange(values.ndim)), shape)
        return values

    def give(self, name, array, turned=False):
        """An input: most lie apart from their surroundings, some with steps. A turned one has its last two axes exchanged."""
        chance = self.chance
        if turned:
            array = array.swapaxes(-1, -2)
        rank, some = array.ndim, chance.random()
        before, behind, steps = [0] * rank, [0] * rank, [1] * rank
        if some < 0.5:
            before = [chance.choice((0, 1, 3)) for _ in range(rank)]
            behind = [chance.choice((0, 1, 2, 8)) for _ in range(rank)]
        if some < 0.1:
            steps[chance.randrange(rank)] = 2
        elif some < 0.35:  # as tensor maps need it
            before[-1], behind[-1] = 16, -array.shape[-1] % 16 + 16
        if rank and self.edges.random() < 0.06:
            steps[self.edges.randrange(rank)] *= -1
        steps = [0 if array.strides[i] == 0 and array.shape[i] > 1 else step for i, step in enumerate(steps)]
        self.inputs[name] = View(array, before, behind, steps)
        self.parameters.append((name, NAMES[array.dtype], rank))

    def expect(self, value, error, kind, turned=False, name="c", mode="out"):
        """A result's value before it is rounded, and the bound of its error then. What a kernel updates holds zeros before."""
        self.result = kind
        with np.errstate(invalid="ignore"):
            bound = 1.01 * error + (0 if kind == I32 else UNITS[kind] * (np.abs(value) + error) + 2.0**-25)
        shape = value.swapaxes(-1, -2).shape if turned else value.shape
        before, behind = [self.chance.choice((0, 0, 1, 16)) for _ in shape], [self.chance.choice((0, 0, 3, 16)) for _ in shape]
        self.results.append(Result(name, kind, value, bound, turned, View(np.zeros(shape, kind), before, behind, [1] * len(shape)), mode))

    def wrong(self, wholes):
        """What is wrong with the arrays that have the results, or None."""
        for result, whole in zip(self.results, wholes):
            problem = result.wrong(whole)
            if problem:
                return f"{result.name}: {problem}"
        return None

    def head(self, extents):
        """Parameters of the kernel, as text: `extents` has the names of each one's dimensions."""
        found = [f"{name}: in {kind}[{', '.join(extents[name])}]" for name, kind, _ in self.parameters]
        return found + [f"{name}: {kind}" for name, (kind, _) in self.scalars.items()] + [
            f"{result.name}: {result.mode} {NAMES[result.kind]}[{', '.join(extents[result.name])}]" for result in self.results]

    def tile_points(self):
        return " ".join(f"{name}={value}" for name, value in self.tiles.items())


def sum_error(a, b, unit=UNITS[F32]):
    """How far sums of products along the last axis of a and the last but one of b may be from the exact ones, in any order."""
    k = a.shape[-1]
    return (4 * math.sqrt(k) + k / 4 + 8) * unit * (np.abs(a) @ np.abs(b))


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def apply(step, value, error, with_=None):
    """A step of an epilogue on a value and the bound of its error."""
    if step in ("bias", "row_bias", "residual"):
        return value + with_, error
    if step in ("rows", "columns", "alpha"):
        return value * with_, error * np.abs(with_)
    if step == "relu":
        return np.maximum(value, 0), error
    if step == "clamp":
        return np.clip(value, -3, 2), error
    inner = math.sqrt(8 / math.pi) * (value + 0.044715 * value**3) if step == "gelu" else value
    return value * sigmoid(inner), 1.13 * error + 2.0**-20 * np.abs(value)
