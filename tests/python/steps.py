"""Kernels drawn at random (drawn.py) whose values go from step to step: running sums and maxima with a carry, sorted rows, loops that data end, windows
over several axes, elements gathered from where indices say and updates of all kinds, and values that later ones use again."""
import numpy as np

from drawn import BF16, F16, F32, I32, NAMES, Drawn
from row_kernels import Near, plain

FORMS = ("scan", "scan", "sorted", "loops", "search", "pool", "pool", "gathered", "updates", "values", "values", "values")
I64 = np.dtype("int64")


class Steps(Drawn):
    """The kernel of a seed."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind, self.form = chance.choice((F32, F32, BF16, F16)), chance.choice(FORMS)
        self.stores = chance.choice((self.kind, F32))
        self.tiles, self.names, self.clauses = {}, {}, []
        with np.errstate(all="ignore"):
            self.lines = getattr(self, self.form)()
        if chance.random() < 0.5:
            self.tiles["warps"] = chance.choice((1, 2, 4, 8, 16))

    def input(self, name, array, axes):
        self.give(name, array)
        self.names[name] = list(axes)
        return array.astype(np.float64)

    def floats(self, name, shape, axes, kind=None):
        return self.input(name, self.drawn(shape, self.kind if kind is None else kind), axes)

    def integers(self, name, shape, axes, low, high):
        return self.input(name, self.numbers.integers(low, high, shape).astype(I32), axes).astype(np.int64)

    def result_of(self, near, name, axes, kind=None, mode="out"):
        near = near if isinstance(near, Near) else plain(near)
        self.expect(near.value, near.error, self.stores if kind is None else kind, name=name, mode=mode)
        self.names[name] = list(axes)

    def stored(self, text):
        return f"{NAMES[self.stores]}({text})"

    # ---- running sums ----

    def scan(self):
        """Along rows in tiles with a carry, from the left, or as a whole from either end."""
        chance = self.chance
        m, n = self.extent(20, 0), self.extent(10 * self.most, 0)
        whole = chance.random() < 0.4
        n = min(n, 500) if whole else n
        kind = chance.choice(("sum", "sum", "max", "sums of two"))
        backwards, exclusive = whole and chance.random() < 0.5, chance.random() < 0.3
        self.tiles = {"BM": chance.choice((1, 1, 2, 4)), **({} if whole else {"BN": chance.choice((32, 64, 256, 100))})}
        x = self.floats("x", (m, n), "MN")
        turned = x[:, ::-1] if backwards else x
        function = np.maximum.accumulate if kind == "max" else np.cumsum
        low = -np.inf if kind == "max" else 0.0

        def running(values):
            found = function(values, axis=1)
            error = 0 if kind == "max" else 2.0**-24 * (np.sqrt(n) * 4 + n / 4 + 8) * np.cumsum(np.abs(values), axis=1)
            if exclusive:
                found = np.concatenate([np.full((m, 1), low), found[:, :-1]], 1)
            found, error = (v[:, ::-1] if backwards and np.ndim(v) else v for v in (found, error))
            return Near(found, error)

        named = (", reverse = true" if backwards else "") + (", exclusive = true" if exclusive else "")
        scan = f"scan({{}}, axis = 1, max{named}{', init = -inf' if exclusive else ''})" if kind == "max" else f"cumsum({{}}, axis = 1{named})"
        self.result_of(running(turned), "c", "MN", F32)
        at = ":" if whole else "n"
        body = [f"let v = f32(x[m, {at}])"]
        if kind == "sums of two":
            self.result_of(running(turned * turned), "d", "MN", F32)
        if whole:
            self.clauses = ["static N"]
            body.append(f"c[m, :] = {scan.format('v')}")
            if kind == "sums of two":
                body.append(f"d[m, :] = {scan.format('v * v')}")
            return ["grid m in tiles(M, BM) {", *("    " + line for line in body), "}"]
        join = "max({}[:, _], {})" if kind == "max" else "{}[:, _] + {}"
        body += [f"c[m, n] = {join.format('t', scan.format('v'))}", f"t = {'max(t, max(v, axis = 1))' if kind == 'max' else 't + sum(v, axis = 1)'}"]
        if kind == "sums of two":
            body += [f"d[m, n] = {join.format('u', scan.format('v * v'))}", "u += sum(v * v, axis = 1)"]
        more = ["    var u = zeros[BM](f32)"] if kind == "sums of two" else []
        return ["grid m in tiles(M, BM) {", f"    var t = full[BM]({'-inf' if kind == 'max' else '0.0'})", *more, "    for n in tiles(N, BN) {",
                *("        " + line for line in body), "    }", "}"]

    def sorted(self):
        """Rows in order, with what belongs to the elements, or the greatest of them and their places."""
        chance = self.chance
        m, n = self.extent(20), min(self.extent(self.most), 200)
        self.tiles, self.clauses = {"BM": chance.choice((1, 2, 4))}, ["static N"]
        few, down = chance.random() < 0.4, chance.random() < 0.5
        if chance.random() < 0.5:  # with equal ones
            x = self.input("x", self.numbers.integers(-9, 9, (m, n)).astype(self.kind), "MN")
        else:
            x = self.floats("x", (m, n), "MN")
        order = np.argsort(-x if down or few else x, axis=1, kind="stable")
        values = np.take_along_axis(x, order, 1)
        if few:
            k = chance.choice([i for i in (1, 2, 5, 8, 17) if i <= n])
            self.result_of(values[:, :k], "c", ["M", str(k)], self.kind)
            self.result_of(order[:, :k], "d", ["M", str(k)], I32)
            self.clauses.append(f"require N >= {k}")
            return ["grid m in tiles(M, BM) {", f"    let (v, i) = topk(x[m, :], {k})", f"    c[m, span(0, {k})] = v", f"    d[m, span(0, {k})] = i32(i)", "}"]
        other = self.integers("y", (m, n), "MN", -1000, 1000)
        self.result_of(values, "c", "MN", self.kind)
        self.result_of(np.take_along_axis(other, order, 1), "d", "MN", I32)
        return ["grid m in tiles(M, BM) {", f"    let (v, i) = sort(x[m, :], y[m, :]{', descending = true' if down else ''})", "    c[m, :] = v", "    d[m, :] = i", "}"]

    # ---- loops ----

    def loops(self):
        """Halved until no element of the tile, or of the row, is above 1: a loop whose end data decide, with elements that are done."""
        chance = self.chance
        n, least = self.extent(10 * self.most, 0), chance.choice((0.5, 1.0, 3.0))
        self.tiles = {"BN": chance.choice((1, 32, 128, 256))}
        x = self.input("x", (self.numbers.integers(-40, 40, n) * 2.0 ** self.numbers.integers(-3, 6, n)).astype(F32), "N")
        times = np.maximum(0, np.ceil(np.log2(np.maximum(np.abs(x), 2.0**-60) / least))).astype(np.int64)
        self.result_of(x / 2.0**times, "c", "N", F32)
        self.result_of(times, "d", "N", I32)
        lines = ["var v = x[n] else 0", "var t = zeros[BN](i32)"]
        form = chance.choice(("while", "for", "most"))
        step = [f"let more = abs(v) > {least}", "v = where(more, v * 0.5, v)", "t = t + i32(more)"]
        if form == "while":
            lines += [f"while any(abs(v) > {least}) {{", *("    " + line for line in step), "}"]
        elif form == "for":
            lines += ["for i in 0..100 {", f"    if !any(abs(v) > {least}) {{ break }}", *("    " + line for line in step), "}"]
        else:
            lines += [f"while max(abs(v)) > {least} {{", *("    " + line for line in step), "    if min(t) > 90 { break }", "}"]
        return ["grid n in tiles(N, BN) {", *("    " + line for line in lines), "    c[n] = v", "    d[n] = t", "}"]

    def search(self):
        """By each program in a list of its own length: the first place of a number, and how many it has passed."""
        chance = self.chance
        r = self.extent(100)
        counts = np.array([chance.choice((0, 1, 2, 5, 9, 40)) for _ in range(r)])
        begins = np.concatenate([[0], np.cumsum(counts)])
        e = max(1, int(begins[-1]))
        self.input("first", begins.astype(I32), ["R + 1"])
        keys, wanted = self.integers("key", (e,), "E", 0, 9), self.integers("wanted", (r,), "R", 0, 9)
        w = self.floats("w", (e,), "E", F32)
        found, passed, sums, error = (np.zeros(r) for _ in range(4))
        for i in range(r):
            found[i] = -1
            some = range(begins[i], begins[i + 1])
            for at in some:
                if keys[at] == wanted[i]:
                    found[i] = at
                    break
                if keys[at] == 0:
                    continue
                passed[i] += 1
                sums[i] += w[at]
                error[i] += 2.0**-24 * (np.abs(w[begins[i]:begins[i + 1]]).sum())
        self.result_of(found, "c", "R", I32)
        self.result_of(passed, "d", "R", I32)
        self.result_of(Near(sums, error), "g", "R", F32)
        lines = ["var at = -1", "var passed = 0", "var t = 0.0"]
        if chance.random() < 0.5:
            lines += ["for e in i64(first[r])..i64(first[r + 1]) {", "    let k = key[e] else -1", "    if k == wanted[r] {", "        at = e", "        break", "    }",
                      "    if k == 0 { continue }", "    passed += 1", "    t += w[e] else 0", "}"]
        else:
            lines += ["var e = i64(first[r])", "var more = true", "while more && e < i64(first[r + 1]) {", "    let k = key[e] else -1", "    if k == wanted[r] {",
                      "        at = e", "        more = false", "    } else if k != 0 {", "        passed += 1", "        t += w[e] else 0", "    }", "    e += 1", "}"]
        return ["grid r in R {", *("    " + line for line in lines), "    c[r] = i32(at)", "    d[r] = i32(passed)", "    g[r] = t", "}"]

    # ---- windows and places ----

    def pool(self):
        """Sums, means or the greatest of windows over one to three axes of [B, X, Y, Z, C], the last channels or none."""
        chance = self.chance
        axes, channels = chance.randint(1, 3), chance.random() < 0.5
        most = (self.most, 40, 14)[axes - 1]
        image = [self.extent(most) for _ in range(axes)]
        window = [chance.choice((1, 2, 3, 3)) for _ in range(axes)]
        stride, pad = [chance.choice((1, 1, 2, 3)) for _ in range(axes)], [chance.choice((0, n // 2, n - 1)) for n in window]
        image = [max(n, k) for n, k in zip(image, window)]
        shape = [chance.randint(1, 3), *image, *([self.extent(40)] if channels else [])]
        x = self.floats("x", shape, ["B", *"XYZ"[:axes], *(["C"] if channels else [])])
        kind = chance.choice(("most", "sum", "mean"))
        outs = [1 + (n + 2 * p - k) // s for n, p, k, s in zip(image, pad, window, stride)]
        wide = np.pad(x, [(0, 0), *((p, p) for p in pad), *([(0, 0)] if channels else [])], constant_values=-np.inf if kind == "most" else 0.0)
        parts = np.stack([wide[(slice(None), *(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(at, outs, stride)))] for at in np.ndindex(*window)])
        count = float(np.prod(window))
        near = plain(parts.max(0)) if kind == "most" else plain(parts).sum(0)
        near = near * plain(1 / count) if kind == "mean" else near
        self.result_of(near, "c", ["B", *"PQR"[:axes], *(["C"] if channels else [])])
        sizes = [chance.choice(((32, 64, 128), (4, 8, 16), (2, 4, 5))[axes - 1]) for _ in range(axes)]
        self.tiles = {f"B{name}": size for name, size in zip("PQR", sizes)}
        if channels:
            self.tiles["BC"] = chance.choice((8, 16, 32))
        extents = ", ".join(self.tiles)
        ranges = [f"tiles({name}, B{name})" for name in "PQR"[:axes]] + (["tiles(C, BC)"] if channels else [])
        names = [*"pqr"[:axes], *(["c0"] if channels else [])]
        lines = [f"var v = full[{extents}]({'-inf' if kind == 'most' else '0.0'})"]
        fixed = chance.random() < 0.4
        for i in range(axes):
            lines.append("    " * i + f"{'static ' if fixed else ''}for i{i} in 0..{window[i]} {{")
        at = [f"span({name}.start, B{name.upper()}) * {s} + (i{i} - {p})" for i, (name, s, p) in enumerate(zip("pqr", stride, pad))]
        load = f"f32(x[{', '.join(['b', *at, *(['c0'] if channels else [])])}])"
        lines.append("    " * axes + (f"v = max(v, ({load} else -inf))" if kind == "most" else f"v += {load} else 0"))
        lines += ["    " * i + "}" for i in reversed(range(axes))]
        value = f"v * {1 / count!r}" if kind == "mean" else "v"
        lines.append(f"c[{', '.join(['b', *names])}] = {self.stored(value)}")
        return [f"grid (b, {', '.join(names)}) in (B, {', '.join(ranges)}) {{", *("    " + line for line in lines), "}"]

    def gathered(self):
        """An element for each, from where two lists or a computed place says; what does not exist is 0."""
        chance = self.chance
        r, c, m, n = self.extent(60), self.extent(self.most), self.extent(60), self.extent(self.most)
        x, w = self.floats("x", (r, c), "RC"), self.floats("w", (n,), "N", F32)
        self.tiles = {"BM": chance.choice((1, 2, 8)), "BN": chance.choice((16, 64, 128))}
        kind = chance.choice(("both", "row", "computed"))
        if kind == "both":
            i, j = self.integers("i", (m, n), "MN", -1, r + 1), self.integers("j", (m, n), "MN", -2, c + 2)
            load = "gather(x, i[m, n], j[m, n])"
        elif kind == "row":
            i, j = self.integers("i", (m,), "M", -1, r + 1)[:, None] + np.zeros((1, n), int), self.integers("j", (n,), "N", -1, c + 1)[None, :] + np.zeros((m, 1), int)
            load = "gather(x, i[m][:, _], j[n][_, :])"
        else:
            a = chance.choice((1, 2, 3))
            i, j = (np.arange(m)[:, None] * a + np.arange(n)[None, :]) % (r + 1), np.abs(np.arange(n)[None, :] - np.arange(m)[:, None])
            load = f"gather(x, (m.idx[:, _] * {a} + n.idx[_, :]) % (R + 1), abs(n.idx[_, :] - m.idx[:, _]))"
        there = (i >= 0) & (i < r) & (j >= 0) & (j < c)
        value = np.where(there, x[np.clip(i, 0, r - 1), np.clip(j, 0, c - 1)], 0.0)
        self.result_of(plain(value) * plain(w[None, :]), "c", "MN")
        return ["grid (m, n) in (tiles(M, BM), tiles(N, BN)) {", f"    c[m, n] = {self.stored(f'f32({load} else 0) * w[n][_, :]')}", "}"]

    def updates(self):
        """The greatest, the least and the sum of what belongs to each index, of floats and integers."""
        chance = self.chance
        n, s = self.extent(4 * self.most, 0), self.extent(30, 0)
        self.tiles = {"BN": chance.choice((1, 32, 256))}
        to = self.integers("to", (n,), "N", -1, s + 1)
        x, y = self.floats("x", (n,), "N", F32), self.integers("y", (n,), "N", -50, 50)
        most, least, total = np.zeros(s), np.zeros(s), np.zeros(s)
        for at in range(s):
            most[at] = max([0.0, *x[to == at]])
            least[at] = min([0, *y[to == at]])
            total[at] = y[to == at].sum()
        self.result_of(most, "c", "S", F32, "inout")
        self.result_of(least, "d", "S", I32, "inout")
        self.result_of(total, "g", "S", I32, "inout")
        return ["grid n in tiles(N, BN) {", "    atomic_max(c[to[n]], x[n])", "    atomic_min(d[to[n]], y[n])", "    atomic_add(g[to[n]], y[n])", "}"]

    # ---- values that are used again ----

    def values(self):
        """A tile of whole rows, or of a part of them, and what is computed of it, of reductions over either axis, and of all these again."""
        chance = self.chance
        m, n = self.extent(60), min(self.extent(self.most), 160)
        self.tiles, self.clauses = {"BM": chance.choice((1, 2, 4, 8, 16))}, ["static N"]
        found = [("f32(x[m, :])", plain(self.floats("x", (m, n), "MN")), True)]
        if chance.random() < 0.6:
            found.append(("f32(y[m, :])", plain(self.floats("y", (m, n), "MN")), True))
        if chance.random() < 0.6:
            found.append(("f32(w[:])[_, :]", Near(self.floats("w", (n,), "N")[None, :] + np.zeros((m, 1))), False))
        lines = []
        for number in range(chance.randint(3, 9)):
            text, near, whole = self.value_of(found)
            lines.append(f"let v{number} = {text}")
            found.append((f"v{number}", near, whole))
        tiles = [value for value in found if value[0][0] == "v" and value[2]] or [found[0]]
        for name, value in zip("cd", [tiles[-1], *chance.sample(tiles[:-1], min(len(tiles) - 1, chance.randint(0, 1)))]):
            self.result_of(value[1], name, "MN")
            lines.append(f"{name}[m, :] = {self.stored(value[0])}")
        if chance.random() < 0.5:
            self.result_of(tiles[-1][1].sum(1), "g", "M", F32)
            lines.append(f"g[m] = sum({tiles[-1][0]}, axis = 1)")
        return ["grid m in tiles(M, BM) {", *("    " + line for line in lines), "}"]

    def value_of(self, found):
        """(text, what it is, does it have the rows' shape and not that of what stretches to it?) of one or two earlier ones, mostly of late ones."""
        chance = self.chance
        (a, x, first), (b, y, second) = (chance.choice(found[-4:] if chance.random() < 0.7 else found) for _ in range(2))
        rows = [value for value in found if value[2]]
        if not first and not second:
            a, x, first = rows[-1]
        step = chance.choice(("+", "-", "*", "max", "where", "tanh", "abs", "row sum", "row most", "row mean", "shift", "running"))
        if step in ("tanh", "abs", "row sum", "row most", "row mean", "shift", "running") and not first:
            a, x, first = chance.choice(rows[-3:])
        if step in ("+", "-", "*"):
            return f"{a} {step} {b}", {"+": x + y, "-": x - y, "*": x * y}[step], True
        if step == "max":
            return f"max({a}, {b})", Near(np.maximum(x.value, y.value), np.maximum(x.error, y.error)), True
        if step == "where":
            place = chance.choice((3, 2, 7))
            odd = np.arange(x.value.shape[1]) % place == 0
            return f"where((iota[N] % {place} == 0)[_, :], {a}, {b})", Near(np.where(odd, x.value, y.value), np.where(odd, x.error, y.error)), True
        if step == "tanh":
            return f"tanh({a})", x.map(np.tanh, 1, 8), True
        if step == "abs":
            return f"abs({a})", x.map(np.abs, 1, 0), True
        n = x.value.shape[1]
        if step == "shift":
            by = chance.choice([by for by in (-3, -1, 1, 2, 0) if abs(by) < n])
            moved = [np.zeros_like(v) for v in (x.value, x.error)]
            for to, of in zip(moved, (x.value, x.error)):
                to[:, max(0, by):n + min(0, by)] = of[:, max(0, -by):n - max(0, by)]
            return f"(shift({a}, 1, {by}) else 0)", Near(*moved), True
        if step == "running":
            off = 2.0**-24 * (4 * np.sqrt(n) + n / 4 + 8)
            return f"cumsum({a}, axis = 1)", Near(np.cumsum(x.value, 1), (1 + off) * np.cumsum(x.error, 1) + off * np.cumsum(np.abs(x.value), 1)), True
        near, text = {"row sum": lambda: (x.sum(1), "sum"), "row most": lambda: (x.most(1), "max"), "row mean": lambda: (x.sum(1) * plain(1 / n), "mean")}[step]()
        wide = Near(near.value[:, None] + np.zeros((1, n)), near.error[:, None] + np.zeros((1, n)))
        return f"{text}({a}, axis = 1)[:, _]", wide, False

    # ---- text ----

    def text(self):
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        on_cpus = [point for point in points if "warps" not in point]
        lines = ["kernel drawn(" + ", ".join(self.head(self.names)) + ")", *("    " + clause for clause in self.clauses)]
        lines += (["    tune cpu " + ", ".join(on_cpus)] if on_cpus else []) + (["    tune gpu " + ", ".join(points)] if points else []) + ["{"]
        return "\n".join(lines + ["    " + line for line in self.lines] + ["}"]) + "\n"

    def about(self):
        shapes = " ".join("x".join(map(str, view.array().shape)) for view in self.inputs.values())
        return f"{self.form} {NAMES[self.kind]} {shapes} -> {NAMES[self.stores]}, {self.tile_points()}"
