"""Loops over several products drawn at random (drawn.py): scores of rows by columns, steps on them, and what becomes of them in the same iteration: a
second product, one by the columns that the first one took, a transposed one by its rows, sums of rows and of columns, a store. Iterations carry sums that the next ones compute with."""
import math

import numpy as np

from drawn import BF16, E4M3, F16, F32, NAMES, UNITS, Drawn, sum_error
from row_kernels import Near

STEPS = ("add", "sub", "mul", "tanh", "relu", "half", "bias", "rows", "mask", "carried", "less most", "share")
SINKS = ("sums", "sums", "sums", "again", "rows", "most", "columns", "turned", "store")


class Scores(Drawn):
    """The kernel of a seed."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind = chance.choice((F16, F16, BF16, BF16, BF16, F32, F32, E4M3))
        self.stores = F32 if self.kind == E4M3 else chance.choice((self.kind, F32))
        self.batch, self.heads = chance.choice((0, 0, 2)), chance.choice((0, 0, 0, 2, 3))
        self.m, self.n = self.extent(most), self.extent(most, 0)
        self.d, self.e = (chance.choice((16, 32, 64, 64, 128, 24, 192)) for _ in range(2))
        self.turned = [chance.random() < 0.3 for _ in range(3)]
        self.tiles = {"BM": chance.choice((16, 32, 64, 64, 128)), "BN": chance.choice((16, 32, 64, 64, 128, 48)), "warps": chance.choice((0, 0, 0, 4, 8)),
                      "stages": chance.choice((0, 0, 2, 3))}
        self.second = chance.random() < 0.4
        self.lengths = chance.random() < 0.3 and self.batch > 0
        self.triangle = not self.lengths and chance.random() < 0.2  # rows see no columns behind their tile
        self.draw_steps()
        self.make()
        self.compute()

    def draw_steps(self):
        """Steps as (name, operation, its first value, another one), and what the last ones go to."""
        chance = self.chance
        self.steps, names = [], ["s0"] + ["s1"] * self.second
        self.sinks = []
        for sink in chance.sample(SINKS, chance.randint(1, 3)):
            if sink not in self.sinks and not (sink == "most" and "rows" in self.sinks) and not (sink == "rows" and "most" in self.sinks):
                self.sinks.append(sink)
        self.carries = "rows" in self.sinks or "most" in self.sinks
        for i in range(chance.randint(0, 4)):
            step = chance.choice(STEPS)
            if step == "carried" and "rows" not in self.sinks:
                step = "tanh"
            first, other = names[-1], chance.choice(names)
            self.steps.append((f"p{i}", step, first, other))
            names.append(f"p{i}")
        if self.second and not any("s1" in step[2:] for step in self.steps):
            self.steps.append(("p9", "mul", names[-1], "s1"))
            names.append("p9")
        self.of_sink = {sink: names[-1] if chance.random() < 0.7 else chance.choice(names) for sink in self.sinks}
        self.grows = chance.choice(("plain", "plain", "halved", "by rows")) if self.carries and "rows" in self.sinks else chance.choice(("plain", "halved"))

    # ---- inputs ----

    def input(self, name, shape, axes, kind=None, turned=False):
        """With a batch in front of all, and heads of what the loop goes over."""
        array = self.drawn(shape, self.kind if kind is None else kind)
        self.give(name, array, turned)
        self.names[name] = [*axes[:-2], axes[-1], axes[-2]] if turned else list(axes)
        return array.astype(np.float64)

    def make(self):
        batch, heads = (self.batch,) * bool(self.batch), (self.heads,) * bool(self.heads)
        b, h = ["B"] * bool(self.batch), ["H"] * bool(self.heads)
        self.names, self.data = {}, {}

        def give(name, shape, axes, **more):
            self.data[name] = self.input(name, shape, axes, **more)

        give("q", (*batch, self.m, self.d), [*b, "M", "D"])
        give("k", (*batch, *heads, self.n, self.d), [*b, *h, "N", "D"], turned=self.turned[0])
        if self.second:
            give("u", (*batch, self.m, self.d), [*b, "M", "D"])
            give("l", (*batch, *heads, self.n, self.d), [*b, *h, "N", "D"], turned=self.turned[1])
        if "sums" in self.sinks:
            give("v", (*batch, *heads, self.n, self.e), [*b, *h, "N", "E"], turned=self.turned[2])
        used = [step[1] for step in self.steps]
        if "bias" in used:
            give("bias", (self.n,), ["N"])
        if "rows" in used:
            give("rows", (*batch, self.m), [*b, "M"], kind=F32)
        if self.lengths:
            lengths = np.array([self.chance.randint(0, self.n) for _ in range(self.batch)], np.int32)
            self.give("lengths", lengths)
            self.names["lengths"] = ["B"]
            self.data["lengths"] = lengths

    # ---- what the results must be ----

    def rounded(self, x):
        if self.kind == F32:
            return x
        unit, least = (2.0**-4, 2.0**-10) if self.kind == E4M3 else (UNITS[self.kind], 2.0**-25 if self.kind == F16 else 0)
        value = np.clip(x.value, -448, 448) if self.kind == E4M3 else x.value
        return Near(value, x.error + unit * (np.abs(value) + x.error) + least)

    def dot(self, x, w):
        """8-bit floats are added with fewer bits within an instruction."""
        large = np.abs(x.value) + x.error
        return Near(x.value @ w, x.error @ np.abs(w) + sum_error(large, w) + (2.0**-11 * (large @ np.abs(w)) if self.kind == E4M3 else 0))

    def step(self, step, x, y, at):
        """`at`: the rows' numbers, those of columns, and the inputs of this tile."""
        value, error = x.value, x.error
        if step in ("add", "sub", "mul"):
            return {"add": x + y, "sub": x - y, "mul": x * y}[step]
        if step in ("tanh", "relu", "half"):
            return x.map({"tanh": np.tanh, "relu": lambda v: np.maximum(v, 0), "half": lambda v: 0.5 * v}[step], 1, 8)
        if step == "bias":
            return x + Near(at["bias"][None, :])
        if step == "rows":
            return x * Near(at["rows"][:, None])
        if step == "mask":
            seen = at["columns"][None, :] <= at["numbers"][:, None]
            return Near(np.where(seen, value, 0), np.where(seen, error, 0))
        if step == "carried":
            return x - (at["t"] * Near(0.125)).over()
        if step == "less most":
            return x - x.most(1).over()
        return x / (x.map(np.abs, 1, 0).sum(1) + Near(1.0)).over()

    def compute(self):
        shape = (self.batch or 1, self.heads or 1)
        m, n = self.m, self.n
        sizes = {"sums": (shape[0], m, self.e), "again": (shape[0], m, self.d), "rows": (shape[0], m), "most": (shape[0], m), "columns": (*shape, n),
                 "turned": (*shape, n, self.d), "store": (*shape, m, n)}
        found = {sink: [np.zeros(sizes[sink]), np.zeros(sizes[sink])] for sink in self.sinks}
        size = self.tiles["BM"] if self.triangle else m
        for b in range(shape[0]):
            for first in range(0, m, size):
                rows = slice(first, min(m, first + size))
                self.program(found, b, rows, min(n, rows.stop) if self.triangle else int(self.data["lengths"][b]) if self.lengths else n)
        for sink, (value, error) in found.items():
            drop = [] if self.batch else [0]
            drop += [1] if not self.heads and sink in ("columns", "turned", "store") else []
            self.result_of(sink, value.squeeze(tuple(drop)) if drop else value, error.squeeze(tuple(drop)) if drop else error)

    def program(self, found, b, rows, end):
        """What a program computes for some rows, with columns up to the end."""
        of_rows = lambda name: (self.data[name][b] if self.batch else self.data[name])[rows]
        q, size, count = of_rows("q"), self.tiles["BN"], rows.stop - rows.start
        t = Near(np.full(count, -9.0 if "most" in self.sinks else 0.0))
        sums = {"sums": Near(np.zeros((count, self.e))), "again": Near(np.zeros((count, self.d)))}
        for h in range(self.heads or 1):
            part = lambda name: self.data[name][(*((b,) if self.batch else ()), *((h,) if self.heads else ()))]
            for lo in range(0, end, size):
                some = slice(lo, min(end, lo + size))
                at = {"numbers": np.arange(rows.start, rows.stop), "columns": np.arange(some.start, some.stop), "t": t}
                at.update({"bias": self.data["bias"][some]} if "bias" in self.data else {})
                at.update({"rows": of_rows("rows")} if "rows" in self.data else {})
                values = {"s0": self.dot(Near(q), part("k")[some].T) * Near(1 / math.sqrt(self.d))}
                if self.second:
                    values["s1"] = self.dot(Near(of_rows("u")), part("l")[some].T) * Near(1 / math.sqrt(self.d))
                for name, step, x, y in self.steps:
                    values[name] = self.step(step, values[x], values[y], at)
                for sink in self.sinks:
                    p = values[self.of_sink[sink]]
                    if sink in sums:
                        sums[sink] = self.grown(sink, sums[sink], t) + self.dot(self.rounded(p), part("v" if sink == "sums" else "k")[some])
                    elif sink in ("columns", "turned", "store"):
                        near = p.sum(0) if sink == "columns" else p if sink == "store" else self.dot(self.rounded(Near(p.value.T, p.error.T)), q)
                        place = (b, h, rows, some) if sink == "store" else (b, h, some)
                        found[sink][0][place] += near.value
                        found[sink][1][place] += near.error
                if self.carries:
                    p = values[self.of_sink["rows" if "rows" in self.sinks else "most"]]
                    high = p.most(1)
                    t = t + p.sum(1) if "rows" in self.sinks else Near(np.maximum(t.value, high.value), np.maximum(t.error, high.error))
        for sink, near in (*sums.items(), ("rows", t), ("most", t)):
            if sink in found:
                found[sink][0][b, rows], found[sink][1][b, rows] = near.value, near.error

    def grown(self, sink, sums, t):
        """What the iterations before gave, as this one takes it."""
        if sink == "again" or self.grows == "plain":
            return sums
        return sums * (Near(0.5) if self.grows == "halved" else (Near(1.0) / (t.map(np.abs, 1, 0) + Near(1.0))).over())

    def result_of(self, sink, value, error):
        b, h = ["B"] * bool(self.batch), ["H"] * bool(self.heads)
        name, axes = {"sums": ("c", [*b, "M", "E"]), "again": ("y", [*b, "M", "D"]), "rows": ("r", [*b, "M"]), "most": ("r", [*b, "M"]), "columns": ("w", [*b, *h, "N"]),
                      "turned": ("g", [*b, *h, "N", "D"]), "store": ("s", [*b, *h, "M", "N"])}[sink]
        updated = sink in ("columns", "turned")
        error = error * 1.001 + 2 * UNITS[F32] * np.abs(value) + (self.m / 8 * UNITS[F32] * error if updated else 0)
        self.expect(value, error, self.stores if sink in ("sums", "again", "store") else F32, name=name, mode="inout" if updated or sink == "store" else "out")
        self.names[name] = axes

    # ---- text ----

    def text(self):
        b, h, kind = "b, " if self.batch else "", "h, " if self.heads else "", NAMES[self.kind]
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        lines = ["kernel drawn(" + ", ".join(self.head(self.names)) + ")", "    static D" + (", E" if "sums" in self.sinks else ""), "    tune cpu " + ", ".join(points[:2]),
                 "    tune gpu " + ", ".join(points), "{", f"    grid ({b}m) in (B, tiles(M, BM)) {{" if b else "    grid m in tiles(M, BM) {"]
        inner = [f"let qs = q[{b}m, :]"] + ([f"let us = u[{b}m, :]"] if self.second else [])
        if self.carries:
            inner.append(f"var t = full[BM]({'-9.0' if 'most' in self.sinks else '0.0'})")
        if "sums" in self.sinks:
            inner.append("var acc = zeros[BM, E](f32)")
        if "again" in self.sinks:
            inner.append("var again = zeros[BM, D](f32)")
        end = "0..min(N, i64(lengths[b]))" if self.lengths else "0..min(N, m.end)" if self.triangle else "N"
        loop = [f"for n in tiles({end}, BN) {{", *("    " + line for line in self.iteration(b, h, kind)), "}"]
        inner += ["for h in 0..H {", *("    " + line for line in loop), "}"] if self.heads else loop
        if "sums" in self.sinks:
            inner.append(f"c[{b}m, :] = {NAMES[self.stores]}(acc)")
        if "again" in self.sinks:
            inner.append(f"y[{b}m, :] = {NAMES[self.stores]}(again)")
        if self.carries:
            inner.append(f"r[{b}m] = t")
        return "\n".join(lines + ["        " + line for line in inner] + ["    }", "}"]) + "\n"

    def iteration(self, b, h, kind):
        keys = lambda name, turned: f"{name}[{b}{h}:, n]" if turned else f"{name}[{b}{h}n, :].T"
        lines = [f"let s0 = dot(qs, {keys('k', self.turned[0])}) * {1 / math.sqrt(self.d)!r}"]
        if self.second:
            lines.append(f"let s1 = dot(us, {keys('l', self.turned[1])}) * {1 / math.sqrt(self.d)!r}")
        for name, step, x, y in self.steps:
            lines.append(f"let {name} = " + {
                "add": f"{x} + {y}", "sub": f"{x} - {y}", "mul": f"{x} * {y}", "tanh": f"tanh({x})", "relu": f"max({x}, 0)", "half": f"{x} * 0.5",
                "bias": f"{x} + f32(bias[n])[_, :]", "rows": f"{x} * rows[{b}m][:, _]", "mask": f"where(n.idx[_, :] <= m.idx[:, _], {x}, 0)",
                "carried": f"{x} - (t * 0.125)[:, _]", "less most": f"{x} - max({x}, axis = 1)[:, _]",
                "share": f"{x} / (sum(abs({x}), axis = 1) + 1)[:, _]"}[step])
        values = f"v[{b}{h}:, n].T" if self.turned[2] else f"v[{b}{h}n, :]"
        grown = {"plain": "acc", "halved": "acc * 0.5", "by rows": "acc * (1 / (abs(t) + 1))[:, _]"}[self.grows]
        for sink in self.sinks:
            p = self.of_sink[sink]
            keep = f"k[{b}{h}:, n].T" if self.turned[0] else f"k[{b}{h}n, :]"
            lines += {"sums": [f"acc = dot({kind}({p}), {values}, {grown})"], "again": [f"again = dot({kind}({p}), {keep}, again)"], "columns": [f"atomic_add(w[{b}{h}n], sum({p}, axis = 0))"],
                      "turned": [f"atomic_add(g[{b}{h}n, :], dot({kind}({p}).T, qs))"], "store": [f"s[{b}{h}m, n] = {NAMES[self.stores]}({p})"]}.get(sink, [])
        if self.carries:
            p = self.of_sink["rows" if "rows" in self.sinks else "most"]
            lines.append(f"t = t + sum({p}, axis = 1)" if "rows" in self.sinks else f"t = max(t, max({p}, axis = 1))")
        return lines

    def about(self):
        steps = " ".join(f"{name}={step}({x},{y})" for name, step, x, y in self.steps)
        sinks = " ".join(f"{sink}({name})" for sink, name in self.of_sink.items())
        return (f"{NAMES[self.kind]} {self.batch or ''}{'h' + str(self.heads) if self.heads else ''} M={self.m} N={self.n} D={self.d} E={self.e} {steps} -> {sinks} {self.grows}"
                f"{' lengths' if self.lengths else ' triangle' if self.triangle else ''} -> {NAMES[self.stores]}, {self.tile_points()}")
