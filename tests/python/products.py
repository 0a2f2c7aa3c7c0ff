"""Products drawn at random: the text of a kernel, its arguments, and what each result must be, by NumPy in f64.

A product has types, layouts, a batch, an epilogue of several steps, and tiles; its operands are views. What it must be has a bound
for each element: sums of f32 in any order, and one rounding of the result."""
import math
import random

import ml_dtypes
import numpy as np

BF16, E4M3, E5M2 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
F16, F32, F64, I8, U8, I32 = (np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8", "int32"))
NAMES = {BF16: "bf16", E4M3: "f8e4m3", E5M2: "f8e5m2", F16: "f16", F32: "f32", F64: "f64", I8: "i8", U8: "u8", I32: "i32"}
UNITS = {BF16: 2.0**-8, F16: 2.0**-11, F32: 2.0**-24, F64: 2.0**-53}  # half of a last place
# Operands and how they are multiplied; numbers that tf32 represents are drawn for it, so that it rounds nothing.
KINDS = [(F32, F32, "dot"), (F32, F32, "dot[tf32]"), (F32, F32, "dot[ordered]"), (F16, F16, "dot"), (BF16, BF16, "dot"),
         (F64, F64, "dot"), (E4M3, E4M3, "dot"), (E5M2, E5M2, "dot"), (I8, I8, "dot"), (U8, I8, "dot"), (I8, U8, "dot"), (U8, U8, "dot")]
FORMS = ("plain", "plain", "plain", "gated", "scales", "weights", "computed")
STEPS = ("bias", "rows", "columns", "row_bias", "residual", "relu", "gelu", "silu", "clamp", "alpha")


class View:
    """An array inside of a larger one, whose other elements nothing may write, nor a result depend on."""

    def __init__(self, array, before, behind, steps):
        whole = [before[i] + (n - 1) * steps[i] + 1 + behind[i] if n else before[i] + behind[i] for i, n in enumerate(array.shape)]
        self.whole = np.full(whole, 99, array.dtype)
        self.index = tuple(slice(before[i], before[i] + n * steps[i] if n else before[i], steps[i]) for i, n in enumerate(array.shape))
        self.whole[self.index] = array

    def array(self):
        return self.whole[self.index]

    def kept(self, whole):
        """Are the elements of `whole` outside of the view as they were?"""
        outside = np.ones(whole.shape, bool)
        outside[self.index] = False
        return bool((whole[outside].astype(np.float64) == 99).all())


class Product:
    """The product of a seed; `most` is the largest extent."""

    def __init__(self, seed, most):
        chance = self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.left, self.right, self.dot = chance.choice(KINDS) if chance.random() < 0.7 else (chance.choice((F16, BF16)),) * 2 + ("dot",)
        integers = self.left.kind in "iu" and self.left != BF16
        self.sums = I32 if integers else F64 if self.left == F64 else F32
        self.form = chance.choice(FORMS)
        if self.form in ("weights", "computed") and (integers or self.left.itemsize == 1) or self.form == "scales" and integers:
            self.form = "plain"
        if self.dot == "dot[tf32]" and self.form in ("weights", "computed"):  # which tf32 would round again
            self.form = "plain"
        self.turned = [chance.random() < 0.4, chance.random() < 0.4, chance.random() < 0.15]  # a, b, c
        self.batch = chance.randint(1, 4) if chance.random() < 0.2 else 0
        self.extents = [self.extent(most) for _ in range(3)]
        self.result = chance.choice((F64,) if self.sums == F64 else (I32, F32, BF16, F16) if integers else (F32, self.left, BF16, F16))
        if self.result.itemsize == 1 or self.result == I32 and self.form == "gated":
            self.result = F32
        self.steps = [] if self.result == I32 else chance.sample(STEPS, chance.choice((0, 0, 1, 1, 2, 3)))
        self.tiles = self.drawn_tiles()
        self.inputs, self.scalars = {}, {}
        self.make_operands()
        self.compute()

    def extent(self, most):
        chance = self.chance
        n = round(math.exp(chance.uniform(0, math.log(most)))) if chance.random() < 0.6 else chance.randint(1, most)
        grain = chance.choice((1, 1, 8, 16, 64))
        return n if n < grain else n // grain * grain

    def drawn_tiles(self):
        chance = self.chance
        sizes = (16, 32, 64, 64, 128, 128, 192, 256) if chance.random() < 0.85 else (1, 7, 20, 24, 48, 80, 112)
        while True:
            bm, bn = chance.choice(sizes), chance.choice(sizes)
            bk = chance.choice((16, 32, 64, 128) if chance.random() < 0.85 else (1, 5, 24, 40, 96))
            deep = 1 if self.form == "gated" else 0
            if bm * bn <= 32768 >> deep >> (self.sums == F64) and (bm + (bn << deep)) * bk * max(self.left.itemsize, self.right.itemsize) <= 98304:
                break
        few = (0, 4) if bm * bn << deep << (self.sums == F64) <= 16384 else (0,)  # 4 warps have registers for so many sums
        found = {"BM": bm, "BN": bn, "BK": bk, "warps": chance.choice((*few, 0, 8)), "stages": chance.choice((0, 0, 2, 3, 4)),
                 "turns": chance.choice((0, 0, 1)), "cluster": chance.choice((0, 0, 1, 2))}
        if chance.random() < 0.3:
            found["programs"] = chance.choice((0, 2, 64, 300))
        return found

    # ---- operands ----

    def drawn(self, shape, kind):
        if kind in (I8, U8):
            return self.numbers.integers(-128 if kind == I8 else 0, 128 if kind == I8 else 256, shape).astype(kind)
        values = self.numbers.standard_normal(shape)
        return (values.astype(F32).view(I32) & -8192).view(F32) if kind == F32 else values.astype(kind)

    def view(self, name, array, turned=False):
        """Of the parameter of this name: most lie apart from their surroundings, some with steps."""
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
        self.inputs[name] = View(np.ascontiguousarray(array), before, behind, steps)
        return name, NAMES[array.dtype], array.ndim

    def make_operands(self):
        m, n, k = self.extents
        batch = (self.batch,) if self.batch else ()
        self.a = self.drawn((*batch, m, k), self.left)
        kept = I8 if self.form == "weights" else self.right
        self.b = self.drawn((*batch, k, n), kept)
        self.parameters = [self.view("a", self.a, self.turned[0]), self.view("b", self.b, self.turned[1])]
        if self.form == "gated":
            self.b2 = self.drawn((*batch, k, n), self.right)
            self.parameters.append(self.view("b2", self.b2, self.turned[1]))
        blocks = -(-k // self.tiles["BK"])
        more = {"scales": (blocks,), "weights": (n,), "computed": (m,)}.get(self.form)
        if more:
            self.more = self.drawn(more, F32)
            self.parameters.append(self.view("s", self.more))
        for i, step in enumerate(self.steps):
            shape = {"bias": (n,), "columns": (n,), "rows": (m,), "row_bias": (m,), "residual": (*batch, m, n)}.get(step)
            if shape:
                kind = self.chance.choice((F32, BF16)) if self.sums != F64 else F64
                self.parameters.append(self.view(f"e{i}", self.drawn(shape, kind)))
            elif step == "alpha":
                self.scalars[f"e{i}"] = self.chance.choice((-2.0, 0.5, 1.25))

    # ---- what the result must be ----

    def compute(self):
        wide = np.float64
        a, b = self.a.astype(wide), self.b.astype(wide)
        if self.form == "weights":
            b = (b.astype(F32) * self.more).astype(self.right).astype(wide)
        elif self.form == "computed":
            a = (a.astype(F32) * self.more[:, None]).astype(self.left).astype(wide)
        elif self.form == "scales":
            a = a * np.repeat(self.more.astype(wide), self.tiles["BK"])[:a.shape[-1]]
        value, error = self.sum_of(a, b)
        if self.form == "gated":
            value, error = apply("silu", value, error)
            other, more = self.sum_of(a, self.b2.astype(wide))
            value, error = value * other, error * np.abs(other) + more * np.abs(value) + error * more
        unit = UNITS.get(self.sums, UNITS[F32])
        for i, step in enumerate(self.steps):
            with_ = self.inputs[f"e{i}"].array().astype(wide) if f"e{i}" in self.inputs else self.scalars.get(f"e{i}")
            if step in ("rows", "row_bias"):
                with_ = with_[:, None]
            value, error = apply(step, value, error, with_)
            error = error + 2 * unit * np.abs(value)
        self.right_value, self.bound = value, 1.01 * error + (0 if self.result == I32 else UNITS[self.result] * (np.abs(value) + error) + 2.0**-25)
        shape = value.swapaxes(-1, -2).shape if self.turned[2] else value.shape
        before, behind = [self.chance.choice((0, 0, 1, 16)) for _ in shape], [self.chance.choice((0, 0, 3, 16)) for _ in shape]
        self.out = View(np.zeros(shape, self.result), before, behind, [1] * len(shape))

    def sum_of(self, a, b):
        """Exact for integers. 8-bit floats are added with fewer bits within an instruction, of 32 products: gpu.md says so."""
        value = a @ b
        if self.sums == I32:
            return value, np.zeros_like(value)
        k = a.shape[-1]
        unit = UNITS[self.sums]
        places = 4 * math.sqrt(k) + k / 4 + 8
        loss = places * unit + (2.0**-13 if self.left.itemsize == 1 else 0)
        return value, loss * (np.abs(a) @ np.abs(b))

    def wrong(self, whole):
        """What is wrong with the array that has the result, or None."""
        if not self.out.kept(whole):
            return "an element outside of the result was written"
        found = whole[self.out.index].astype(np.float64)
        if self.turned[2]:
            found = found.swapaxes(-1, -2)
        right = self.right_value
        if self.result == F16:
            right = np.where(np.abs(right) > 65504, np.copysign(np.inf, right), right)
        with np.errstate(invalid="ignore"):
            bad = ~((found == right) | (np.abs(found - right) <= self.bound) | (np.abs(self.right_value) > 65000) & (self.result == F16))
        if not bad.any():
            return None
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return f"{bad.sum()} of {bad.size} elements, the first {at}: {found[at]}, not {self.right_value[at]} within {self.bound[at]:.3g}"

    # ---- text ----

    def text(self):
        """The kernel; every number of its tune clause is a point of one."""
        lead = "i, " if self.batch else ""
        extents = {"a": "KM" if self.turned[0] else "MK", "b": "NK" if self.turned[1] else "KN"}
        extents["b2"] = extents["b"]
        head = []
        for name, kind, rank in self.parameters:
            names = extents.get(name)
            if names is None:
                step = self.steps[int(name[1:])] if name != "s" else {"scales": "P", "weights": "columns", "computed": "rows"}[self.form]
                names = {"bias": "N", "columns": "N", "rows": "M", "row_bias": "M", "residual": "MN", "P": "P"}[step]
            names = ["B"] * (rank - len(names)) + list(names)
            head.append(f"{name}: in {kind}[{', '.join(names)}]")
        head += [f"{name}: {NAMES[self.sums] if self.sums != I32 else 'f32'}" for name in self.scalars]
        names = (["B"] if self.batch else []) + (["N", "M"] if self.turned[2] else ["M", "N"])
        head.append(f"c: out {NAMES[self.result]}[{', '.join(names)}]")
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        grid = "grid (i, m, n) in (B, tiles(M, BM), tiles(N, BN))" if self.batch else "grid (m, n) in (tiles(M, BM), tiles(N, BN))"
        require = ["    require P * BK >= K"] if self.form == "scales" else []
        lines = ["import nn", "kernel product(" + ", ".join(head) + ")", *require, "    tune cpu " + ", ".join(points[:3]),
                 "    tune gpu " + ", ".join(points), "{", "    " + grid + " {", *self.loop(lead), *self.epilogue(lead), "    }", "}"]
        return "\n".join(lines) + "\n"

    def loop(self, lead):
        sums = NAMES[self.sums]
        a = f"a[{lead}k, m].T" if self.turned[0] else f"a[{lead}m, k]"
        b = f"b[{lead}n, k].T" if self.turned[1] else f"b[{lead}k, n]"
        if self.form == "weights":
            b = f"{NAMES[self.right]}(f32({b}) * s[n][_, :])"
        elif self.form == "computed":
            a = f"{NAMES[self.left]}(f32({a}) * s[m][:, _])"
        inner = f"acc = {self.dot}({a}, {b}, acc)"
        if self.form == "scales":
            inner = f"acc = acc + {self.dot}({a}, {b}) * {sums}(s[k.start / BK])"
        found = [f"var acc = zeros[BM, BN]({sums})", f"for k in tiles(K, BK) {{ {inner} }}"]
        if self.form == "gated":
            found = [found[0], f"var up = zeros[BM, BN]({sums})",
                     f"for k in tiles(K, BK) {{\n            acc = {self.dot}({a}, {b}, acc)\n            up = {self.dot}({a}, {b.replace('b[', 'b2[')}, up)\n        }}"]
        return ["        " + line for line in found]

    def epilogue(self, lead):
        kind = "f64" if self.sums == F64 else "f32"
        value = "acc" if self.sums != I32 or self.result == I32 else "f32(acc)"
        if self.form == "gated":
            value = f"silu({value}) * {'up' if self.sums != I32 else 'f32(up)'}"
        found = [f"let v0 = {value}"]
        for i, step in enumerate(self.steps):
            with_ = f"{kind}(e{i}[{lead if step == 'residual' else ''}{ {'bias': 'n', 'columns': 'n', 'rows': 'm', 'row_bias': 'm', 'residual': 'm, n'}.get(step)}])"
            found.append(f"let v{i + 1} = " + {
                "bias": f"v{i} + {with_}[_, :]", "columns": f"v{i} * {with_}[_, :]", "rows": f"v{i} * {with_}[:, _]",
                "row_bias": f"v{i} + {with_}[:, _]", "residual": f"v{i} + {with_}", "relu": f"relu(v{i})", "gelu": f"gelu_tanh(v{i})",
                "silu": f"silu(v{i})", "clamp": f"clamp(v{i}, -3, 2)", "alpha": f"v{i} * e{i}"}[step])
        at = f"{lead}n, m" if self.turned[2] else f"{lead}m, n"
        found.append(f"c[{at}] = {NAMES[self.result]}(v{len(self.steps)}{'.T' if self.turned[2] else ''})")
        return ["        " + line for line in found]

    def about(self):
        m, n, k = self.extents
        tiles = " ".join(f"{name}={value}" for name, value in self.tiles.items())
        return f"{NAMES[self.left]} x {NAMES[self.right]} {self.dot} {self.form} {self.batch or ''} {m}x{n}x{k} {'+'.join(self.steps)} -> {NAMES[self.result]}, {tiles}"


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def apply(step, value, error, with_=None):
    """A step of an epilogue on a value and the bound of its error."""
    if step in ("bias", "row_bias", "residual"):
        return value + with_, error + 2.0**-22 * np.abs(with_) * (np.abs(error) > 0)
    if step in ("rows", "columns", "alpha"):
        return value * with_, error * np.abs(with_)
    if step == "relu":
        return np.maximum(value, 0), error
    if step == "clamp":
        return np.clip(value, -3, 2), error
    inner = math.sqrt(8 / math.pi) * (value + 0.044715 * value**3) if step == "gelu" else value
    return value * sigmoid(inner), 1.13 * error + (2.0**-20 * (np.abs(value) + 1) if error.any() else 0)
