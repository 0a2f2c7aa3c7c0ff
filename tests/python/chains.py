"""Kernels of products drawn at random (drawn.py) that products.py has none of: chains, two weights that lie differently, groups of uneven sizes, parts
of K that a second grid adds up, packed weights, rows that a list names, sums added to where an index says, and programs with several tiles."""
import numpy as np

from drawn import BF16, F16, F32, I8, NAMES, U8, UNITS, Drawn, apply, sum_error

FORMS = ("chain", "chain", "gated", "grouped", "parts", "packed", "lists", "updates", "several")
STEPS = ("none", "relu", "silu", "clamp")
GROUP = 32  # rows of packed weights that have one scale


class Chain(Drawn):
    """The kernel of a seed; `most` is the largest extent."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind, self.form = chance.choice((F16, BF16, BF16, F32)), chance.choice(FORMS)
        self.stores = chance.choice((self.kind, F32))
        self.step, self.turned = chance.choice(STEPS), [chance.random() < 0.4 for _ in range(3)]
        self.extents = [self.extent(most, 0) for _ in range(3)]
        self.points()
        self.names, self.note = {}, ""
        getattr(self, self.form)()

    def points(self):
        chance, few = self.chance, (16, 32, 64, 64, 128) if self.chance.random() < 0.85 else (1, 5, 24, 48, 80)
        self.tiles = {"BM": chance.choice(few), "BN": chance.choice(few), "BK": chance.choice((16, 32, 64)), "warps": chance.choice((0, 0, 0, 4, 8)),
                      "stages": chance.choice((0, 0, 2, 3)), "turns": chance.choice((0, 0, 1)), "cluster": chance.choice((0, 0, 2))}

    # ---- inputs and what is computed of them ----

    def input(self, name, shape, axes, kind=None, turned=False):
        """In f64; `axes` are the dimensions' names."""
        array = self.drawn(shape, self.kind if kind is None else kind)
        self.give(name, array, turned)
        self.names[name] = [*axes[:-2], axes[-1], axes[-2]] if turned else axes
        return array.astype(np.float64)

    def integers(self, name, array, axes):
        self.give(name, np.asarray(array, np.int32))
        self.names[name] = axes

    def at(self, name, first, second):
        """The element tile of a matrix, which lies turned or not."""
        axes = self.names[name]
        return f"{name}[{second}, {first}].T" if axes[-2:] == [second.upper(), first.upper()] else f"{name}[{first}, {second}]"

    def rounded(self, value, error):
        """As the next product's operand."""
        unit = UNITS[self.kind] if self.kind != F32 else 0
        return value, error + unit * (np.abs(value) + error) + (2.0**-25 if self.kind == F16 else 0)

    def second(self, value, error, w):
        """The product of what is known within an error and of weights."""
        return value @ w, error @ np.abs(w) + sum_error(np.abs(value) + error, w)

    def stepped(self, value, error):
        return (value, error) if self.step == "none" else apply(self.step, value, error)

    def step_of(self, text):
        return {"none": text, "relu": f"relu({text})", "silu": f"silu({text})", "clamp": f"clamp({text}, -3, 2)"}[self.step]

    def result_of(self, value, error, name="c", kind=None, axes=("M", "N"), mode="out"):
        self.expect(value, error + 2 * UNITS[F32] * np.abs(value), self.stores if kind is None else kind, name=name, mode=mode)
        self.names[name] = list(axes)

    def stored(self, text):
        return f"{NAMES[self.stores]}({text})"

    # ---- forms ----

    def chain(self):
        """c = step(a b) w: what is computed of a product is the next one's operand, tile by tile."""
        chance = self.chance
        m, n, k = self.extents
        e, whole = chance.choice((16, 32, 64, 64, 128, 80, 24)), chance.random() < 0.5
        k = chance.choice((16, 32, 64, 128)) if whole else k
        a, b = self.input("a", (m, k), ["M", "K"], turned=self.turned[0]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        w = self.input("w", (n, e), ["N", "E"], turned=self.turned[2])
        value, error = self.stepped(a @ b, sum_error(a, b))
        scaled = chance.random() < 0.3
        if scaled:
            s = self.input("s", (n,), ["N"], F32)
            value, error = value * s, error * np.abs(s)
        value, error = self.rounded(value, error + 2 * UNITS[F32] * np.abs(value))
        self.result_of(*self.second(value, error, w), axes=("M", "E"))
        inside = ["let s0 = dot(" + ("a[:, m].T" if self.turned[0] else "a[m, :]") + ", " + ("b[n, :].T" if self.turned[1] else "b[:, n]") + ")"] if whole else [
            "var s0 = zeros[BM, BN](f32)", f"for k in tiles(K, BK) {{ s0 = dot({self.at('a', 'm', 'k')}, {self.at('b', 'k', 'n')}, s0) }}"]
        scores = self.step_of("s0") + (" * s[n][_, :]" if scaled else "")
        weights = "w[:, n].T" if self.turned[2] else "w[n, :]"
        self.clauses = ["static E, K" if whole else "static E"]
        self.lines = ["grid m in tiles(M, BM) {", "    var acc = zeros[BM, E](f32)", "    for n in tiles(N, BN) {", *("        " + line for line in inside),
                      f"        acc = dot({NAMES[self.kind]}({scores}), {weights}, acc)", "    }", f"    c[m, :] = {self.stored('acc')}", "}"]

    def gated(self):
        """c = step(a b) * (a v), where v has another layout, or is of 8 bits with scales."""
        m, n, k = self.extents
        a, b = self.input("a", (m, k), ["M", "K"]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        narrow = self.kind != F32 and self.chance.random() < 0.4
        v = self.input("v", (k, n), ["K", "N"], I8 if narrow else None, turned=not self.turned[1])
        other = self.at("v", "k", "n")
        if narrow:
            s = self.input("s", (n,), ["N"], F32)
            v, other = (v.astype(F32) * s.astype(F32)).astype(self.kind).astype(np.float64), f"{NAMES[self.kind]}(f32({other}) * s[n][_, :])"
        left, off = self.stepped(a @ b, sum_error(a, b))
        right, more = a @ v, sum_error(a, v)
        self.result_of(left * right, off * np.abs(right) + more * np.abs(left) + off * more)
        self.clauses = []
        together = self.chance.random() < 0.6
        first, second = f"g = dot(a[m, k], {self.at('b', 'k', 'n')}, g)", f"u = dot(a[m, k], {other}, u)"
        loops = ["for k in tiles(K, BK) {", "    " + first, "    " + second, "}"] if together else [f"for k in tiles(K, BK) {{ {first} }}", f"for k in tiles(K, BK) {{ {second} }}"]
        self.product(["var g = zeros[BM, BN](f32)", "var u = zeros[BM, BN](f32)", *loops, f"c[m, n] = {self.stored(self.step_of('g') + ' * u')}"])

    def product(self, lines, grid="grid (m, n) in (tiles(M, BM), tiles(N, BN)) {"):
        self.lines = [grid, *("    " + line for line in lines), "}"]

    def sums(self, a, b):
        return ["var acc = zeros[BM, BN](f32)", f"for k in tiles(K, BK) {{ acc = dot({a}, {b}, acc) }}"]

    def grouped(self):
        """Rows of each group by weights of its own; a program looks for its tile, and those in excess find none."""
        chance = self.chance
        _, n, k = self.extents
        counts = [chance.choice((0, 1, 3, 17, 64, self.tiles["BM"], chance.randint(0, self.most))) for _ in range(chance.randint(1, 5))]
        begins, m = np.concatenate([[0], np.cumsum(counts)]), max(1, sum(counts))
        a, w = self.input("a", (m, k), ["M", "K"]), self.input("w", (len(counts), k, n), ["E", "K", "N"], turned=self.turned[1])
        self.integers("begins", begins, ["E + 1"])
        value, error = np.zeros((m, n)), np.zeros((m, n))
        for e, (lo, hi) in enumerate(zip(begins[:-1], begins[1:])):
            value[lo:hi], error[lo:hi] = self.stepped(a[lo:hi] @ w[e], sum_error(a[lo:hi], w[e]))
        self.result_of(value, error, mode="inout")
        self.clauses = []
        weights = "w[e, n, k].T" if self.turned[1] else "w[e, k, n]"
        self.product(["var (e, lo, hi, before) = (0, 0, 0, 0)", "for i in 0..E {", "    let (from, to) = (i64(begins[i]), i64(begins[i + 1]))",
                      "    let count = cdiv(to - from, BM)", "    let mine = t >= before && t < before + count", "    e = where(mine, i, e)",
                      "    lo = where(mine, from + (t - before) * BM, lo)", "    hi = where(mine, to, hi)", "    before += count", "}",
                      "if lo < hi {", "    e = clamp(e, 0, E - 1)", "    for m in tiles(clamp(lo, 0, M)..clamp(min(hi, lo + BM), 0, M), BM) {",
                      *("        " + line for line in self.sums("a[m, k]", weights)), f"        c[m, n] = {self.stored(self.step_of('acc'))}", "    }", "}"],
                     "grid (t, n) in (M / BM + E, tiles(N, BN)) {")

    def parts(self):
        """Parts of K by programs of their own, added up by a second grid, with what comes behind the sum."""
        m, n, k = self.extents
        k *= self.chance.choice((1, 4))
        self.tiles["BS"] = self.tiles["BK"] * self.chance.choice((1, 2, 3, 8))
        a, b = self.input("a", (m, k), ["M", "K"], turned=self.turned[0]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        bias = self.input("s", (n,), ["N"], F32)
        value, error = self.stepped(a @ b + bias, 2 * sum_error(a, b))
        self.result_of(value, error)
        self.clauses = []
        self.lines = ["let parts = cdiv(K, BS)", "temp part: f32[parts, M, N]", "grid (p, m, n) in (parts, tiles(M, BM), tiles(N, BN)) {", "    var acc = zeros[BM, BN](f32)",
                      f"    for k in tiles(p * BS..min(K, p * BS + BS), BK) {{ acc = dot({self.at('a', 'm', 'k')}, {self.at('b', 'k', 'n')}, acc) }}",
                      "    part[p, m, n] = acc", "}", "grid (m, n) in (tiles(M, BM), tiles(N, BN)) {", "    var t = zeros[BM, BN](f32)",
                      "    for p in 0..parts { t += part[p, m, n] }", "    let v = t + s[n][_, :]", f"    c[m, n] = {self.stored(self.step_of('v'))}", "}"]

    def packed(self):
        """Weights of 4 bits along K, with a scale for each 32 of a row and, at times, zero points."""
        m, n, k = self.extents
        k += k % 2 if self.chance.random() < 0.7 else 0
        kind, zeros = self.chance.choice(("i4", "u4")), self.chance.random() < 0.5
        a = self.input("a", (m, k), ["M", "K"])
        groups = -(-k // GROUP)
        numbers = self.numbers.integers(-8 if kind == "i4" else 0, 8 if kind == "i4" else 16, (n, k))
        nibbles = np.pad(numbers & 15, ((0, 0), (0, k % 2)))
        self.give("w", (nibbles[:, ::2] | nibbles[:, 1::2] << 4).astype(U8))
        self.parameters[-1] = ("w", kind, 2)
        s = self.input("s", (n, groups), ["N", "G"], F32)
        if zeros:
            numbers = numbers - np.repeat(self.numbers_of("z", n, groups), GROUP, 1)[:, :k]
        self.names["w"] = ["N", "K"]
        self.tiles["BK"] = min(self.tiles["BK"], GROUP)  # one scale of a row in an iteration
        w = (numbers.astype(F32) * np.repeat(s, GROUP, 1)[:, :k].astype(F32)).astype(self.kind).astype(np.float64).T
        self.result_of(*self.stepped(a @ w, sum_error(a, w)))
        self.clauses = [f"require G == cdiv(K, {GROUP})"]
        number = "f32(w[n, k])" + (f" - f32(z[n, k.start / {GROUP}])[:, _]" if zeros else "")
        self.product(self.sums("a[m, k]", f"({NAMES[self.kind]}(({number}) * s[n, k.start / {GROUP}][:, _])).T") + [f"c[m, n] = {self.stored(self.step_of('acc'))}"])

    def numbers_of(self, name, n, groups):
        array = self.numbers.integers(-4, 5, (n, groups)).astype(I8)
        self.give(name, array)
        self.names[name] = ["N", "G"]
        return array.astype(np.int64)

    def lists(self):
        """Rows of a that a list names, some of which do not exist."""
        m, n, k = self.extents
        r = self.extent(self.most)
        rows = self.numbers.integers(-1, r + 1, m)
        a, b = self.input("a", (r, k), ["R", "K"]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        self.integers("rows", rows, ["M"])
        taken = np.where(((rows >= 0) & (rows < r))[:, None], a[np.clip(rows, 0, r - 1)], 0.0)
        self.result_of(*self.stepped(taken @ b, sum_error(taken, b)))
        self.clauses = []
        self.product(self.sums("(a[rows[m], k] else 0)", self.at("b", "k", "n")) + [f"c[m, n] = {self.stored(self.step_of('acc'))}"])

    def updates(self):
        """Rows of the product are added to rows that an index names; an index that is none is left out."""
        m, n, k = self.extents
        r = self.extent(40)
        to = self.numbers.integers(-1, r + 1, m)
        a, b = self.input("a", (m, k), ["M", "K"], turned=self.turned[0]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        self.integers("to", to, ["M"])
        part, off = self.stepped(a @ b, sum_error(a, b))
        value, error = np.zeros((r, n)), np.zeros((r, n))
        for i in range(r):
            some = to == i
            value[i] = part[some].sum(0)
            error[i] = off[some].sum(0) + some.sum() * UNITS[F32] * np.abs(part[some]).sum(0)
        self.result_of(value, error, kind=F32, axes=("R", "N"), mode="inout")
        self.clauses = []
        self.product(self.sums(self.at("a", "m", "k"), self.at("b", "k", "n")) + [f"atomic_add(c[to[m], n], {self.step_of('acc')})"])

    def several(self):
        """A program has the columns' tiles of a row of tiles one after the other, and what the rows of all of them come to."""
        m, n, k = self.extents
        a, b = self.input("a", (m, k), ["M", "K"], turned=self.turned[0]), self.input("b", (k, n), ["K", "N"], turned=self.turned[1])
        value, error = self.stepped(a @ b, sum_error(a, b))
        most = self.chance.random() < 0.5
        self.result_of(value, error)
        more = error + 2 * UNITS[F32] * np.abs(value)
        if most:
            self.result_of(value.max(1), more.max(1), "r", F32, ("M",))
        else:
            self.result_of(value.sum(1), more.sum(1) + n * UNITS[F32] * np.abs(value).sum(1), "r", F32, ("M",))
        self.clauses = []
        begin, step = ("full[BM](-inf)", "max(r0, max(v, axis = 1))") if most else ("zeros[BM](f32)", "r0 + sum(v, axis = 1)")
        self.lines = ["grid m in tiles(M, BM) {", f"    var r0 = {begin}", "    for n in tiles(N, BN) {",
                      *("        " + line for line in self.sums(self.at("a", "m", "k"), self.at("b", "k", "n"))), f"        let v = {self.step_of('acc')}",
                      f"        c[m, n] = {self.stored('v')}", f"        r0 = {step}", "    }", "    r[m] = r0", "}"]

    # ---- text ----

    def text(self):
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        body = "\n".join(self.lines)
        on_cpus = [point for point in points if point[:2] in ("BM", "BN", "BK", "BS") and point[:2] in body]
        on_gpus = [point for point in points if point[0] != "B" or point[:2] in body]
        lines = ["import nn", "kernel drawn(" + ", ".join(self.head(self.names)) + ")", *("    " + clause for clause in self.clauses),
                 "    tune cpu " + ", ".join(on_cpus), "    tune gpu " + ", ".join(on_gpus), "{"]
        return "\n".join(lines + ["    " + line for line in self.lines] + ["}"]) + "\n"

    def about(self):
        shapes = " ".join("x".join(map(str, view.array().shape)) for view in self.inputs.values())
        return f"{self.form} {NAMES[self.kind]} {self.step} {shapes} -> {NAMES[self.stores]}, {self.tile_points()}"
