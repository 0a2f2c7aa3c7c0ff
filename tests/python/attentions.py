"""Attention drawn at random (drawn.py): heads and groups, masks, biases, soft caps, layouts, widths of keys other than those of values, and
tiles; the softmax goes along the keys tile by tile, as users write it."""
import math

import numpy as np

from drawn import BF16, F16, F32, NAMES, U8, UNITS, Drawn

SCORES = ("none", "none", "bias", "cap", "bias+cap", "slopes", "table")
MASKS = ("none", "none", "causal", "causal", "window", "sinks", "lengths", "padding")
FORWARD = ("causal", "window", "sinks")  # a query sees no key behind its own
SINKS = 4  # the first keys, which every query sees beside its window


class Attention(Drawn):
    """Queries [B, H, S, D], keys [B, G, L, D], values [B, G, L, E]; `most` is the largest number of queries or keys."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind = chance.choice((F16, BF16, BF16, F32))
        self.groups, self.each = chance.randint(1, 2), chance.choice((1, 1, 2, 3))
        self.batch = chance.randint(1, 2)
        self.width = chance.choice((16, 32, 64, 64, 128, 128, 96, 80, 24))
        self.value_width = self.width if chance.random() < 0.75 else chance.choice((16, 32, 64, 128))
        self.mask, self.score = chance.choice(MASKS), chance.choice(SCORES)
        self.queries = 1 if chance.random() < 0.1 else self.extent(most)
        self.keys = self.queries + self.extent(most) * chance.randint(0, 1) if self.mask in FORWARD else self.extent(most)
        self.window = chance.choice((1, 5, 32, 100))
        self.skips = self.queries % 2 == 0  # tiles of keys in front of the window; others are masked as a whole
        self.turned = [chance.random() < 0.2, chance.random() < 0.2]  # k, v
        self.latent = self.value_width <= self.width and chance.random() < 0.15  # the values are the first numbers of the keys
        self.one_more = chance.random() < 0.15  # the sum of the weights has one of a score of 0 that belongs to no key
        self.form = chance.choice(("folded", "plain"))  # of the softmax: scaled scores in units of log 2, or exp
        self.result = chance.choice((self.kind, self.kind, F32))
        self.tiles = {"BS": chance.choice((64, 128, 64, 128, 16, 32, 192)), "BL": chance.choice((64, 128, 64, 32, 16, 48)),
                      "warps": chance.choice((0, 0, 4, 8)), "stages": chance.choice((0, 0, 2, 3))}
        if self.tiles["BS"] * max(self.width, self.value_width, self.tiles["BL"]) > 16384 or self.tiles["BS"] == 192 or self.score == "slopes":
            self.tiles["warps"] = 0
        if self.score == "table":  # each element of a tile is loaded by itself, in code that is as long
            self.tiles["BS"] = min(self.tiles["BS"], 128)
            self.tiles["BL"] = min(self.tiles["BL"], 4096 // self.tiles["BS"])
        self.make()

    def make(self):
        b, g, h, s, t = self.batch, self.groups, self.groups * self.each, self.queries, self.keys
        wide, chance = np.float64, self.chance
        q, k = self.drawn((b, h, s, self.width), self.kind), self.drawn((b, g, t, self.width), self.kind)
        v = k[..., :self.value_width] if self.latent else self.drawn((b, g, t, self.value_width), self.kind)
        for name, array, turned in (("q", q, False), ("k", k, self.turned[0]), ("v", v, self.turned[1])):
            if name != "v" or not self.latent:
                self.give(name, array, turned)
        scale = chance.choice((1.0, 0.5, 2.0)) / math.sqrt(self.width)
        self.scalars["scale"] = ("f32", float(np.float32(scale)))
        k, v = (np.repeat(x.astype(wide), self.each, 1) for x in (k, v))
        q = q.astype(wide)
        scores = q @ k.swapaxes(-1, -2) * scale
        error = 2.0**-22 * (np.abs(q) @ np.abs(k).swapaxes(-1, -2)) * scale
        if "bias" in self.score:
            bias = self.drawn((h, s, t), self.kind)
            self.give("bias", bias)
            scores = scores + bias.astype(wide)
        if "cap" in self.score:
            self.scalars["cap"] = ("f32", 5.0)
            scores, error = 5 * np.tanh(scores / 5), error + 2.0**-10  # approx.tanh
        if self.score == "slopes":
            slopes = np.abs(self.drawn((h,), F32))
            self.give("slopes", slopes)
            scores = scores - slopes.astype(wide)[:, None, None] * np.abs(np.arange(t) - np.arange(s)[:, None] - (t - s))
        if self.score == "table":
            table = self.drawn((h, s + t - 1), F32)
            self.give("table", table)
            scores = scores + table.astype(wide)[:, np.arange(t) - np.arange(s)[:, None] + (s - 1)]
        seen = np.ones((b, 1, s, t), bool)
        at, query = np.arange(t), np.arange(s)[:, None] + (t - s)
        if self.mask in FORWARD:
            seen &= at <= query
        if self.mask in ("window", "sinks"):
            seen &= (at > query - self.window) | (at < (SINKS if self.mask == "sinks" else 0))
        if self.mask == "padding":
            kept = self.numbers.integers(0, 2, (b, t)).astype(U8)
            kept[:, chance.randrange(t)] = 1  # a query without any key has no weights
            self.give("kept", kept)
            seen &= kept[:, None, None, :] != 0
        if self.mask == "lengths":
            lengths = np.array([chance.randint(1, t) for _ in range(b)], np.int32)
            self.give("lengths", lengths)
            seen &= at < lengths[:, None, None, None]
        scores = np.where(seen, scores, -np.inf)
        top = np.maximum(scores.max(-1, keepdims=True), 0 if self.one_more else -np.inf)
        weights = np.exp(scores - top)
        weights /= weights.sum(-1, keepdims=True) + (np.exp(-top) if self.one_more else 0)
        # A weight is off by its score's error, its rounding, and errors of exponentials; their sum, alike.
        off = weights * (2 * np.where(seen, error, 0) + UNITS[self.kind] + 2.0**-18 + 2.0**-20 * np.minimum(np.abs(np.where(seen, scores - top, 0)), 64))
        if self.kind == F16:  # what is less than its least number is rounded to that, or to 0
            off = off + 2.0**-25 * seen
        o, bound = weights @ v, off @ np.abs(v) + off.sum(-1, keepdims=True) * np.abs(weights @ v)
        bound = bound + 2.0**-20 * (weights @ np.abs(v))
        self.expect(o, bound, self.result)

    def text(self):
        extents = {"q": "BHSD", "k": "BGDL" if self.turned[0] else "BGLD", "v": "BGEL" if self.turned[1] else "BGLE", "bias": "HSL", "slopes": "H",
                   "table": "HR", "lengths": "B", "kept": "BL", "c": "BHSE"}
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items()]
        kind = NAMES[self.kind]
        lines = ["kernel drawn(" + ", ".join(self.head(extents)) + ")", "    static D, E", "    require H % G == 0, scale > 0" +
                 (", L >= S" if self.mask in FORWARD else ""), "    tune cpu " + ", ".join(points[:2]), "    tune gpu " + ", ".join(points), "{",
                 "    grid (b, h, s) in (B, H, tiles(S, BS)) {"]
        inner = ["let g = clamp(h / (H / G), 0, G - 1)", "let qs = q[b, h, s, :]", f"var top = full[BS]({'0.0' if self.one_more else '-inf'})",
                 f"var total = full[BS]({'1.0' if self.one_more else '0.0'})",
                 "var acc = zeros[BS, E](f32)", f"for t in tiles({self.span()}, BL) {{"]
        inner += ["    " + line for line in self.iteration(kind)]
        inner += ["}", f"c[b, h, s, :] = {NAMES[self.result]}(acc * (1 / total)[:, _])"]
        return "\n".join(lines + ["        " + line for line in inner] + ["    }", "}"]) + "\n"

    def span(self):
        if self.mask == "lengths":
            return "0..min(L, i64(lengths[b]))"
        last = "min(L, s.end + (L - S))" if self.mask in FORWARD else "L"
        first = f"max(0, s.start + (L - S) - {self.window - 1})" if self.mask == "window" and self.skips else "0"
        return f"{first}..{last}"

    def iteration(self, kind):
        keys, values = "k[b, g, :, t]" if self.turned[0] else "k[b, g, t, :].T", "v[b, g, :, t].T" if self.turned[1] else "v[b, g, t, :]"
        if self.latent:
            values = "k[b, g, span(0, E), t].T" if self.turned[0] else "k[b, g, t, span(0, E)]"
        plain = self.score == "none" and self.form == "folded"
        lines = [f"let p0 = dot(qs, {keys})" + ("" if plain else " * scale")]
        scored = "p0"
        if "bias" in self.score:
            lines.append(f"let p1 = {scored} + f32(bias[h, s, t])")
            scored = "p1"
        if "cap" in self.score:
            lines.append(f"let p2 = cap * approx.tanh({scored} / cap)")
            scored = "p2"
        if self.score == "slopes":
            lines.append(f"let p3 = {scored} - slopes[h] * f32(abs(t.idx[_, :] - s.idx[:, _] - (L - S)))")
            scored = "p3"
        if self.score == "table":
            lines.append(f"let p4 = {scored} + (gather(table, h, t.idx[_, :] - s.idx[:, _] + (S - 1)) else 0)")
            scored = "p4"
        seen = []
        if self.mask in FORWARD:
            seen.append("t.idx[_, :] <= s.idx[:, _] + (L - S)")
        if self.mask in ("window", "sinks"):
            seen.append(f"(t.idx[_, :] > s.idx[:, _] + (L - S) - {self.window}" + (f" || t.idx[_, :] < {SINKS})" if self.mask == "sinks" else ")"))
        if self.mask == "padding":
            lines.append("let there = kept[b, t] else 0")
            seen.append("(there != 0)[_, :]")
        lines.append(f"let p = where({' && '.join(seen)}, {scored}, -inf)" if seen else f"let p = {scored}")
        if self.form == "folded":
            unit = "(scale * 1.4426950408889634)" if plain else "1.4426950408889634"
            lines += [f"let next = max(top, max(p, axis = 1) * {unit})", "let base = where(next == -inf, 0, next)", "let shrink = approx.exp2(top - base)",
                      f"let e = approx.exp2(p * {unit} - base[:, _])"]
        else:
            lines += ["let next = max(top, max(p, axis = 1))", "let base = where(next == -inf, 0, next)", "let shrink = exp(top - base)", "let e = exp(p - base[:, _])"]
        return lines + ["total = total * shrink + sum(e, axis = 1)", f"acc = dot({kind}(e), {values}, acc * shrink[:, _])", "top = next"]

    def about(self):
        return (f"{NAMES[self.kind]} {self.batch}x{self.groups * self.each}/{self.groups} S={self.queries} L={self.keys} D={self.width} E={self.value_width} "
                f"{self.mask} {self.score} {self.form}"
                f"{' latent' if self.latent else ''}{' one more' if self.one_more else ''} -> {NAMES[self.result]}, {self.tile_points()}")
