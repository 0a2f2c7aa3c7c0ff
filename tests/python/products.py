"""Matrix products drawn at random (drawn.py): types, layouts, a batch, operands that are computed on their way, an epilogue of several
steps, and tiles."""
import numpy as np

from drawn import BF16, E4M3, E5M2, F16, F32, F64, I8, I32, NAMES, U8, UNITS, Drawn, apply, sum_error

# Operands and how they are multiplied; numbers that tf32 represents are drawn for it, so that it rounds nothing.
KINDS = [(F32, F32, "dot"), (F32, F32, "dot[tf32]"), (F32, F32, "dot[ordered]"), (F16, F16, "dot"), (BF16, BF16, "dot"),
         (F64, F64, "dot"), (E4M3, E4M3, "dot"), (E5M2, E5M2, "dot"), (I8, I8, "dot"), (U8, I8, "dot"), (I8, U8, "dot"), (U8, U8, "dot")]
FORMS = ("plain", "plain", "plain", "gated", "scales", "weights", "computed")
STEPS = ("bias", "rows", "columns", "row_bias", "residual", "relu", "gelu", "silu", "clamp", "alpha")


class Product(Drawn):
    """The product of a seed; `most` is the largest extent."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.left, self.right, self.dot = chance.choice(KINDS) if chance.random() < 0.7 else (chance.choice((F16, BF16)),) * 2 + ("dot",)
        integers = self.left in (I8, U8)
        self.sums = I32 if integers else F64 if self.left == F64 else F32
        self.form = chance.choice(FORMS)
        if self.form in ("weights", "computed") and (integers or self.left.itemsize == 1) or self.form == "scales" and integers:
            self.form = "plain"
        if self.dot == "dot[tf32]" and self.form in ("weights", "computed"):  # which tf32 would round again
            self.form = "plain"
        self.turned = [chance.random() < 0.4, chance.random() < 0.4, chance.random() < 0.15]  # a, b, c
        self.batch = chance.randint(1, 4) if chance.random() < 0.2 else 0
        self.extents = [self.extent(most, 0) for _ in range(3)]
        self.result = chance.choice((F64,) if self.sums == F64 else (I32, F32, BF16, F16) if integers else (F32, self.left, BF16, F16))
        if self.result.itemsize == 1 or self.result == I32 and self.form == "gated":
            self.result = F32
        self.steps = [] if self.result == I32 else chance.sample(STEPS, chance.choice((0, 0, 1, 1, 2, 3)))
        self.tiles = self.drawn_tiles()
        self.make_operands()
        self.compute()

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

    def make_operands(self):
        m, n, k = self.extents
        batch = (self.batch,) if self.batch else ()
        self.a, self.b = self.drawn((*batch, m, k), self.left), self.drawn((*batch, k, n), I8 if self.form == "weights" else self.right)
        self.give("a", self.a, self.turned[0])
        self.give("b", self.b, self.turned[1])
        if self.form == "gated":
            self.b2 = self.drawn((*batch, k, n), self.right)
            self.give("b2", self.b2, self.turned[1])
        more = {"scales": (-(-k // self.tiles["BK"]),), "weights": (n,), "computed": (m,)}.get(self.form)
        if more:
            self.more = self.drawn(more, F32)
            self.give("s", self.more)
        for i, step in enumerate(self.steps):
            shape = {"bias": (n,), "columns": (n,), "rows": (m,), "row_bias": (m,), "residual": (*batch, m, n)}.get(step)
            if shape:
                self.give(f"e{i}", self.drawn(shape, self.chance.choice((F32, BF16)) if self.sums != F64 else F64))
            elif step == "alpha":
                self.scalars[f"e{i}"] = ("f64" if self.sums == F64 else "f32", self.chance.choice((-2.0, 0.5, 1.25)))

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
        for i, step in enumerate(self.steps):
            with_ = self.inputs[f"e{i}"].array().astype(wide) if f"e{i}" in self.inputs else self.scalars.get(f"e{i}", (None, None))[1]
            if step in ("rows", "row_bias"):
                with_ = with_[:, None]
            value, error = apply(step, value, error, with_)
            error = error + 2 * UNITS.get(self.sums, UNITS[F32]) * np.abs(value)
        self.expect(value, error, self.result, self.turned[2])

    def sum_of(self, a, b):
        """Exact for integers. 8-bit floats are added with fewer bits within an instruction, of 32 products: gpu.md says so."""
        value = a @ b
        if self.sums == I32:
            return value, np.zeros_like(value)
        loss = 2.0**-11 * (np.abs(a) @ np.abs(b)) if self.left.itemsize == 1 else 0
        return value, sum_error(a, b, UNITS[self.sums]) + loss

    # ---- text ----

    def text(self):
        """The kernel; every number of its tune clause is a point of one."""
        lead = "i, " if self.batch else ""
        extents = {"a": "KM" if self.turned[0] else "MK", "b": "NK" if self.turned[1] else "KN"}
        extents["b2"] = extents["b"]
        for name, _, _ in self.parameters:
            if name not in extents:
                step = self.steps[int(name[1:])] if name != "s" else {"scales": "parts", "weights": "columns", "computed": "rows"}[self.form]
                extents[name] = {"bias": "N", "columns": "N", "rows": "M", "row_bias": "M", "residual": "MN", "parts": "P"}[step]
        extents["c"] = "NM" if self.turned[2] else "MN"
        extents = {name: ("B" if self.batch and (name in ("a", "b", "b2", "c") or len(axes) == 2) else "") + axes for name, axes in extents.items()}
        head = self.head(extents)
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        grid = "grid (i, m, n) in (B, tiles(M, BM), tiles(N, BN))" if self.batch else "grid (m, n) in (tiles(M, BM), tiles(N, BN))"
        require = ["    require P * BK >= K"] if self.form == "scales" else []
        lines = ["import nn", "kernel drawn(" + ", ".join(head) + ")", *require, "    tune cpu " + ", ".join(points[:3]),
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
        return f"{NAMES[self.left]} x {NAMES[self.right]} {self.dot} {self.form} {self.batch or ''} {m}x{n}x{k} {'+'.join(self.steps)} -> {NAMES[self.result]}, {self.tile_points()}"
