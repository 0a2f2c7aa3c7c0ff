"""Kernels of rows drawn at random (drawn.py), as users write them: several loops over a row whose statistics the next ones use, windows that
slide, lists of indices, updates by index, and sums over many rows; several results, and NaN and infinities among the elements."""
import numpy as np

from drawn import BF16, F16, F32, I32, NAMES, UNITS, Drawn

FORMS = ("passes", "passes", "passes", "passes", "windows", "lists", "updates", "columns", "everything")
UNIT = UNITS[F32]


class Near:
    """Numbers in f64 and how far those that f32 computes in their place may be off. Where a number is not finite, f32's has to be the same."""

    def __init__(self, value, error=0.0):
        self.value = np.asarray(value, np.float64)
        error = np.broadcast_to(np.asarray(error, np.float64), self.value.shape)
        self.error = np.where(np.isfinite(self.value), np.where(np.isnan(error), np.inf, error), 0.0)

    def rounded(self, value, error, units=1.0):
        return Near(value, error + units * UNIT * np.abs(value) + 2.0**-140)

    def __add__(self, other):
        return self.rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other):
        return self.rounded(self.value - other.value, self.error + other.error)

    def __mul__(self, other):
        a, b = np.abs(self.value), np.abs(other.value)
        return self.rounded(self.value * other.value, self.error * b + other.error * a + self.error * other.error)

    def __truediv__(self, other):
        value, b = self.value / other.value, np.abs(other.value)
        left = b - other.error
        return self.rounded(value, np.where(left > 0, (self.error + np.abs(value) * other.error) / left, np.inf), 2)

    def map(self, function, slope, units):
        """A function that grows no faster than `slope` says."""
        value = function(self.value)
        return self.rounded(value, slope * self.error, units)

    def exp(self):
        value = np.exp(self.value)
        return self.rounded(value, value * np.expm1(self.error), 8)

    def rsqrt(self):
        value, least = 1 / np.sqrt(self.value), self.value - self.error
        return self.rounded(value, np.where(least > 0, 1 / np.sqrt(least) - value, np.inf), 4)

    def sum(self, axis):
        n = np.prod([self.value.shape[i] for i in np.atleast_1d(axis)])
        off = (4 * np.sqrt(n) + n / 4 + 8) * UNIT
        return Near(self.value.sum(tuple(np.atleast_1d(axis))), (self.error * (1 + off) + off * np.abs(self.value)).sum(tuple(np.atleast_1d(axis))))

    def most(self, axis, function=np.max):
        return Near(function(self.value, axis=axis), self.error.max(axis=axis))

    def over(self):
        """As a column beside rows."""
        return Near(self.value[:, None], self.error[:, None])


def plain(value):
    return Near(value)


class RowKernel(Drawn):
    """The kernel of a seed; rows have up to 40 * `most` elements."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind = chance.choice((F32, F32, BF16, BF16, F16))
        self.result = chance.choice((self.kind, self.kind, self.kind, F32))
        self.form = chance.choice(FORMS)
        self.strange = chance.random() < 0.25  # NaN and infinities
        self.lines = []
        with np.errstate(all="ignore"):
            getattr(self, self.form)()

    def input(self, name, shape, kind=None):
        """An input of floats, as what f32 makes of it."""
        kind = self.kind if kind is None else kind
        array = self.drawn(shape, kind)
        if self.strange and array.size:
            for _ in range(self.chance.randint(0, 3)):
                array.reshape(-1)[self.chance.randrange(array.size)] = self.chance.choice((np.nan, np.inf, -np.inf, 0))
        self.give(name, array)
        return plain(array.astype(np.float64))

    def result_of(self, near, name="c", kind=None, mode="out"):
        self.expect(near.value, near.error, self.result if kind is None else kind, name=name, mode=mode)

    def shape(self, most):
        """Few rows, since each is long."""
        n = self.extent(40 * self.most) if self.chance.random() < 0.7 else self.extent(self.most)
        return max(1, min(self.extent(40), most // n)), n

    def points(self, **sizes):
        """Tiles, each the only one or, at times, the first of two; more warps than one."""
        self.tiles = dict(sizes)
        if self.chance.random() < 0.6:
            self.tiles["warps"] = self.chance.choice((1, 2, 4, 8, 16))

    # ---- several loops over a row ----

    def passes(self):
        chance = self.chance
        m, n = self.shape(24000)
        self.points(BM=chance.choice((1, 1, 1, 2, 4)), BN=chance.choice((512, 1024, 512, 2048, 128, 256)))
        if chance.random() < 0.3:  # about so many tiles
            n = max(1, min(chance.randint(1, 8), 40 * self.most // self.tiles["BN"]) * self.tiles["BN"] + chance.choice((-1, 0, 1)))
            m = max(1, min(m, 24000 // n))
        self.single = self.tiles["BM"] == 1 and chance.random() < 0.5  # a row is no tile
        self.rows, self.columns, self.number = m, n, 0
        self.names, self.stats = {"x": self.input("x", (m, n))}, []
        if chance.random() < 0.5:
            self.names["y"] = self.input("y", (m, n))
        if chance.random() < 0.5:
            self.names["w"] = self.input("w", (n,), chance.choice((F32, self.kind)))
        if chance.random() < 0.3:
            self.names["s"] = self.input("s", (m,), F32)
        for _ in range(chance.randint(1, 3)):
            self.statistic()
        made = []
        for name in ("c", "d")[:chance.choice((1, 1, 1, 2))]:
            text, near = self.element_of_rows(2)
            made.append((name, text))
            self.result_of(near, name)
        if chance.random() < 0.3 and len(made) == 2:
            for name, text in made:
                self.loop([f"{name}[m, n] = {NAMES[self.result]}({text})"])
        else:
            self.loop([f"{name}[m, n] = {NAMES[self.result]}({text})" for name, text in made])
        self.extents = {"x": "MN", "y": "MN", "w": "N", "s": "M", "c": "MN", "d": "MN"}
        for i, (name, near) in enumerate(self.stats):
            if chance.random() < 0.4:
                self.result_of(near, f"r{i}", F32)
                self.lines.append(f"r{i}[m] = {name}")
                self.extents[f"r{i}"] = "M"
        self.head_line = "grid m in M {" if self.single else "grid m in tiles(M, BM) {"

    def loop(self, body):
        self.lines += ["for n in tiles(N, BN) {", *("    " + line for line in body), "}"]

    def new(self):
        self.number += 1
        return f"t{self.number}"

    def beside(self, name):
        return name if self.single else f"{name}[:, _]"

    def leaf(self):
        name = self.chance.choice(list(self.names))
        near = self.names[name]
        if name == "w":
            return ("f32(w[n])" if self.single else "f32(w[n])[_, :]"), near
        if name == "s":
            return ("s[m]" if self.single else "s[m][:, _]"), near.over()
        return f"f32({name}[m, n])", near

    def element(self, depth):
        """An expression of an element and statistics."""
        chance = self.chance
        if depth == 0 or chance.random() < 0.1:
            return self.leaf()
        text, near = self.element(depth - 1)
        if self.stats and chance.random() < 0.6:
            name, stat = chance.choice(self.stats)
            with_, other = self.beside(name), stat.over()
        else:
            with_, other = self.element(depth - 1)
        step = chance.choice(("+", "-", "*", "*", "tanh", "square", "abs", "max", "sigmoid", "fraction"))
        if step == "+":
            return f"({text} + {with_})", near + other
        if step == "-":
            return f"({text} - {with_})", near - other
        if step == "*":
            return f"({text} * {with_})", near * other
        if step == "tanh":
            return f"tanh({text})", near.map(np.tanh, 1, 8)
        if step == "square":
            return f"({text} * {text})", near * near
        if step == "abs":
            return f"abs({text})", near.map(np.abs, 1, 0)
        if step == "max":
            return f"max({text}, 0)", near.map(lambda v: np.maximum(v, 0), 1, 0)
        if step == "sigmoid":
            return f"sigmoid({text})", near.map(lambda v: np.where(np.isnan(v), v, 0.5 * (1 + np.tanh(0.5 * v))), 0.25, 8)
        return f"({text} / (1 + abs({with_})))", near / (plain(1.0) + other.map(np.abs, 1, 0))

    def element_of_rows(self, depth):
        """One that has each element of a row in it, so that lanes beyond the row have none."""
        text, near = self.element(depth)
        if "[m, n]" in text:
            return text, near
        return f"(f32(x[m, n]) + {text})", self.names["x"] + near

    def statistic(self):
        """A loop that sums, or finds the greatest, and what becomes of that behind it."""
        chance = self.chance
        kind = chance.choice(("sum", "mean", "norm", "softmax", "most", "stripes", "pair"))
        text, near = self.element_of_rows(chance.choice((0, 1, 1, 2)))
        axis, zero, low = ("0", "0.0", "-inf") if self.single else ("1", "zeros[BM](f32)", "full[BM](-inf)")
        name, other, n = self.new(), self.new(), plain(float(self.columns))
        sums = f"{name} += sum({{}}, axis = {axis})"
        if kind == "softmax":
            self.lines.append(f"var {name} = {low}")
            self.loop([f"{name} = max({name}, max({text}, axis = {axis}))"])
            self.lines.append(f"var {other} = {zero}")
            self.loop([f"{other} = {other} + sum(exp({text} - {self.beside(name)}), axis = {axis})"])
            high = near.most(1)
            self.stats += [(name, high), (other, (near - high.over()).exp().sum(1))]
        elif kind == "most":
            self.lines.append(f"var {name} = {low}")
            self.loop([f"{name} = max({name}, max(abs({text}), axis = {axis}))"])
            self.stats.append((name, near.map(np.abs, 1, 0).most(1)))
        elif kind == "stripes":  # each element of a tile by itself
            with_ = chance.choice([key for key in self.names if key in "xy"])
            self.lines.append(f"var {name} = zeros{'[BN]' if self.single else '[BM, BN]'}(f32)")
            self.loop([f"{name} += (f32(x[m, n]) else 0) * (f32({with_}[m, n]) else 0)"])
            self.lines.append(f"let {other} = sum({name}, axis = {axis})")
            self.stats.append((other, (self.names["x"] * self.names[with_]).sum(1)))
        elif kind == "pair":
            self.lines += [f"var {name} = {zero}", f"var {other} = {zero}"]
            self.loop([f"let v{self.number} = {text}", sums.format(f"v{self.number}"), f"{other} += sum(v{self.number} * v{self.number}, axis = {axis})"])
            self.stats += [(name, near.sum(1)), (other, (near * near).sum(1))]
        else:
            self.lines.append(f"var {name} = {zero}")
            self.loop([f"let v{self.number} = {text}", sums.format(f"v{self.number} * v{self.number}" if kind == "norm" else f"v{self.number}")])
            if kind == "norm":
                self.lines.append(f"let {other} = rsqrt({name} / f32(N) + 0.5)")
                self.stats.append((other, ((near * near).sum(1) / n + plain(0.5)).rsqrt()))
            elif kind == "mean":
                self.lines.append(f"let {other} = {name} / f32(N)")
                self.stats.append((other, near.sum(1) / n))
            else:
                self.stats.append((name, near.sum(1)))

    # ---- windows ----

    def windows(self):
        """Neighbours along the row, or of rows above and below; how many is a constant or a dimension."""
        chance = self.chance
        m, n = self.shape(12000)
        k, along = chance.choice((2, 3, 5, 8, 11, 16)), chance.random() < 0.7
        self.points(BM=chance.choice((1, 1, 4)), BN=chance.choice((64, 128, 256, 512)))
        x = self.input("x", (m, n)).value
        taps, first = self.input("w", (k,), F32), chance.choice((0, -(k // 2), 1 - k))
        kind, fixed = chance.choice(("sum", "most", "sums")), chance.random() < 0.4
        low = -np.inf if kind == "most" else 0.0
        part = np.full((k, m, n), low)
        for i in range(k):
            by = i + first
            if along and abs(by) < n:
                part[i][:, max(0, -by):n - max(0, by)] = x[:, max(0, by):n + min(0, by)]
            elif not along and abs(by) < m:
                part[i][max(0, -by):m - max(0, by)] = x[max(0, by):m + min(0, by)]
        shift = f"(i + {first})" if first >= 0 else f"(i - {-first})"
        at = f"m, n + {shift}" if along else f"m + {shift}, n"
        loop = f"static for i in 0..{k} {{" if fixed else "for i in 0..K {"
        if kind == "most":
            self.lines += ["var v = full[BM, BN](-inf)", loop, f"    v = max(v, (f32(x[{at}]) else -inf))", "}"]
            near = plain(part.max(0))
        elif kind == "sum":
            self.lines += ["var v = zeros[BM, BN](f32)", loop, f"    v = v + w[i] * (f32(x[{at}]) else 0)", "}"]
            near = (plain(part) * plain(taps.value[:, None, None])).sum(0)
        else:  # two at once
            self.lines += ["var v = zeros[BM, BN](f32)", "var u = zeros[BM, BN](f32)", loop, f"    let e = f32(x[{at}]) else 0", "    v = v + e", "    u = u + e * e", "}"]
            near = plain(part).sum(0)
            self.lines.append("d[m, n] = u")
            self.result_of((plain(part) * plain(part)).sum(0), "d", F32)
        self.lines.append(f"c[m, n] = {NAMES[self.result]}(v)")
        self.result_of(near)
        self.extents = {"x": "MN", "w": [str(k) if fixed else "K"], "c": "MN", "d": "MN"}
        self.head_line = "grid (m, n) in (tiles(M, BM), tiles(N, BN)) {"

    # ---- lists ----

    def lists(self):
        """For each row those of another array that a list names."""
        chance = self.chance
        r, c, d = self.extent(60), self.extent(100), self.extent(self.most)
        counts = [chance.choice((0, 1, 2, 3, 4, 5, 7, 9, 30)) for _ in range(r)]
        begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        e = max(1, int(begins[-1]))
        self.points(BD=chance.choice((32, 64, 128, 256)))
        kind = chance.choice(("sum", "most", "mean"))
        strange, self.strange = self.strange, False  # of a NaN and a weight of 0 nothing is expected here
        self.give("first", begins)
        columns = self.numbers.integers(0, c, e).astype(np.int32)
        self.give("column", columns)
        weights, x = self.input("w", (e,), F32).value, self.input("x", (c, d)).value
        self.strange = strange
        value, error = np.zeros((r, d)), np.zeros((r, d))
        for i in range(r):
            some = np.arange(begins[i], begins[i + 1])
            rows = x[columns[some]]
            near = plain(rows) if kind == "most" else plain(rows) * plain(weights[some, None])
            if kind == "most":
                near = plain(np.maximum(rows.max(0), -9)) if len(some) else plain(np.full(d, -9.0))
            else:
                near = near.sum(0) if len(some) else plain(np.zeros(d))
                if kind == "mean":
                    near = near / plain(float(max(1, len(some))))
            value[i], error[i] = near.value, near.error
        load = "f32(x[i64(column[e] else 0), d]) else 0"
        self.lines += ["let begin = i64(first[r])", "let end = i64(first[r + 1])", "var t = full[BD](-9.0)" if kind == "most" else "var t = zeros[BD](f32)",
                       "for e in begin..end {", f"    t = max(t, ({load}))" if kind == "most" else f"    t += (w[e] else 0) * ({load})", "}",
                       f"c[r, d] = {NAMES[self.result]}(" + ("t / f32(max(end - begin, 1))" if kind == "mean" else "t") + ")"]
        self.result_of(Near(value, error))
        self.extents = {"first": ["R + 1"], "column": "E", "w": "E", "x": "CD", "c": "RD"}
        self.head_line = "grid (r, d) in (R, tiles(D, BD)) {"

    def updates(self):
        """Rows, or single elements, added to where an index says; an index that is none is left out."""
        chance = self.chance
        e, d, s = self.extent(300), self.extent(self.most), self.extent(40)
        wide = chance.random() < 0.7
        self.points(**({"BE": chance.choice((1, 4, 16)), "BD": chance.choice((32, 64, 128))} if wide else {"BE": chance.choice((32, 256))}))
        to = self.numbers.integers(-1, s + 1, e).astype(np.int32)
        self.give("to", to)
        x = self.input("x", (e, d) if wide else (e,))
        weights = self.input("w", (e,), F32)
        part = x * (weights.over() if wide else weights)
        value, error = np.zeros((s, d) if wide else (s,)), np.zeros((s, d) if wide else (s,))
        for i in range(s):
            if (to == i).any():
                near = Near(part.value[to == i], part.error[to == i]).sum(0)
                value[i], error[i] = near.value, near.error
        by = "w[e][:, _]" if wide else "w[e]"
        self.lines.append(f"atomic_add(c[to[e]{', d' if wide else ''}], f32(x[e{', d' if wide else ''}]) * {by})")
        counted = chance.random() < 0.4
        self.result_of(Near(value, error), kind=F32, mode="inout")
        if counted:
            self.lines.append("atomic_add(n[to[e]], 1)" if not wide else "if d.start == 0 { atomic_add(n[to[e]], 1) }")
            self.result_of(plain(np.array([(to == i).sum() for i in range(s)], np.float64)), "n", I32, "inout")
        self.extents = {"to": "E", "x": "ED" if wide else "E", "w": "E", "c": "SD" if wide else "S", "n": "S"}
        self.head_line = "grid (e, d) in (tiles(E, BE), tiles(D, BD)) {" if wide else "grid e in tiles(E, BE) {"

    # ---- sums over many rows ----

    def columns(self):
        chance = self.chance
        m, n = self.extent(10 * self.most), self.extent(min(100, self.most))
        m = min(m, 40000 // n)
        self.points(BM=chance.choice((4, 16, 64)), BN=chance.choice((16, 32, 64, 128)))
        x = self.input("x", (m, n))
        total, squares, high = x.sum(0), (x * x).sum(0), x.map(np.abs, 1, 0).most(0)
        count = plain(float(m))
        self.lines += ["var t = zeros[BN](f32)", "var u = zeros[BN](f32)", "var h = zeros[BN](f32)", "for m in tiles(M, BM) {", "    let v = f32(x[m, n])",
                       "    t += sum(v, axis = 0)", "    u += sum(v * v, axis = 0)", "    h = max(h, max(abs(v), axis = 0))", "}"]
        mean = total / count
        self.lines += ["c[n] = " + NAMES[self.result] + "(t / f32(M))", "d[n] = u", "g[n] = h"]
        self.result_of(mean)
        self.result_of(squares, "d", F32)
        self.result_of(high, "g", F32)
        self.extents = {"x": "MN", "c": "N", "d": "N", "g": "N", "k": "MN"}
        if chance.random() < 0.4:  # and what they are for
            scale = (squares / count + plain(1.0)).rsqrt()
            self.lines += ["let scale = rsqrt(u / f32(M) + 1)", "let mean = t / f32(M)", "for m in tiles(M, BM) {",
                           f"    k[m, n] = {NAMES[self.result]}((f32(x[m, n]) - mean[_, :]) * scale[_, :])", "}"]
            self.result_of((x - mean) * scale, "k")
        self.head_line = "grid n in tiles(N, BN) {"

    def everything(self):
        """One number of all elements, by one program."""
        chance = self.chance
        m, n = self.shape(30000)
        self.points(BM=chance.choice((1, 4, 8)), BN=chance.choice((128, 512, 1024)))
        x, y = self.input("x", (m, n)), self.input("y", (m, n))
        self.lines += ["var t = 0.0", "var h = 0.0", "for m in tiles(M, BM) {", "    for n in tiles(N, BN) {", "        let e = f32(x[m, n]) - f32(y[m, n])",
                       "        t += sum(e * e)", "        h = max(h, max(abs(e)))", "    }", "}", f"c[i] = {NAMES[self.result]}(t / f32(M * N))", "d[i] = h"]
        e = x - y
        self.result_of(Near((((e * e).sum((0, 1))) / plain(float(m * n))).value.reshape(1), ((e * e).sum((0, 1)) / plain(float(m * n))).error.reshape(1)))
        high = e.map(np.abs, 1, 0)
        self.result_of(Near(high.value.max().reshape(1), high.error.max().reshape(1)), "d", F32)
        self.extents = {"x": "MN", "y": "MN", "c": "1", "d": "1"}
        self.head_line = "grid i in 1 {"

    # ---- text ----

    def text(self):
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        lines = ["import nn", "kernel drawn(" + ", ".join(self.head(self.extents)) + ")", "    tune cpu " + ", ".join(p for p in points if "warps" not in p),
                 "    tune gpu " + ", ".join(points), "{", "    " + self.head_line]
        return "\n".join(lines + ["        " + line for line in self.lines] + ["    }", "}"]) + "\n"

    def about(self):
        shapes = " ".join("x".join(map(str, view.array().shape)) for view in self.inputs.values())
        return f"{self.form} {NAMES[self.kind]} -> {NAMES[self.result]}{' strange' if self.strange else ''} {shapes}, {self.tile_points()}"
