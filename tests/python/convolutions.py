"""Convolutions drawn at random (drawn.py), of images or of rows: windows, strides, dilations, borders, a step behind the sum, and tiles."""
import numpy as np

from drawn import BF16, F16, F32, NAMES, UNITS, Drawn, apply, sum_error


class Convolution(Drawn):
    """Images [B, H, W, C] by weights [R, S, C, O]; of rows, H and R are 1. `most` is the largest extent of an image or of channels, about."""

    def __init__(self, seed, most):
        super().__init__(seed, most)
        chance = self.chance
        self.kind = chance.choice((F16, BF16, BF16, F32))
        self.batch, self.form = chance.randint(1, 3), chance.choice(("plain", "plain", "depthwise"))
        self.window = [chance.choice((1, 2, 3, 3, 5)), chance.choice((1, 2, 3, 3, 5, 7))]
        self.stride = [chance.choice((1, 1, 1, 2, 3)) for _ in range(2)]
        self.dilation = [chance.choice((1, 1, 1, 2)) for _ in range(2)]
        self.pad = [chance.choice((0, n // 2, n // 2, n - 1)) for n in self.window]
        if chance.random() < 0.2:
            self.window[0], self.stride[0], self.dilation[0], self.pad[0] = 1, 1, 1, 0
        small = max(4, most // 6)
        least = [(n - 1) * d + 1 for n, d in zip(self.window, self.dilation)]
        self.image = [max(n, self.extent(small)) for n in least]
        self.channels = self.extent(most) if self.form == "depthwise" else self.extent(most // 2 + 1)
        self.outputs = self.channels if self.form == "depthwise" else self.extent(most // 2 + 1)
        self.steps = chance.sample(("bias", "relu", "silu", "residual"), chance.choice((0, 1, 1, 2)))
        self.literal = chance.random() < 0.7  # strides, dilations and borders are in the text
        self.result = chance.choice((self.kind, self.kind, F32))
        bp, bq = chance.choice(((1, 64), (2, 32), (4, 32), (8, 16), (4, 16), (1, 16), (2, 8), (1, 128), (7, 8), (8, 8)))
        self.tiles = {"BP": bp, "BQ": bq, "BO": chance.choice((64, 128, 32, 16)), "BC": chance.choice((64, 32, 16)), "warps": chance.choice((0, 0, 4, 8)),
                      "stages": chance.choice((0, 0, 2, 3))}
        self.make()

    def make(self):
        wide = np.float64
        b, (h, w), c, o = self.batch, self.image, self.channels, self.outputs
        (r, s), stride, dilation, pad = self.window, self.stride, self.dilation, self.pad
        x = self.drawn((b, h, w, c), self.kind)
        weights = self.drawn((r, s, c) if self.form == "depthwise" else (r, s, c, o), self.kind)
        self.give("x", x)
        self.give("w", weights)
        rows, columns = (1 + (n + 2 * p - (k - 1) * d - 1) // t for n, p, k, d, t in zip(self.image, pad, self.window, dilation, stride))
        full = np.zeros((b, h + 2 * pad[0], w + 2 * pad[1], c))
        full[:, pad[0]:pad[0] + h, pad[1]:pad[1] + w] = x.astype(wide)
        patches = np.stack([full[:, i * dilation[0]:i * dilation[0] + (rows - 1) * stride[0] + 1:stride[0],
                                 j * dilation[1]:j * dilation[1] + (columns - 1) * stride[1] + 1:stride[1]] for i in range(r) for j in range(s)], 3)
        if self.form == "depthwise":
            flat = weights.astype(wide).reshape(r * s, c)
            value, error = (patches * flat).sum(3), (r * s + 4) * UNITS[F32] * (np.abs(patches) * np.abs(flat)).sum(3)
        else:
            patches = patches.reshape(b, rows, columns, r * s * c)
            flat = weights.astype(wide).reshape(r * s * c, o)
            value, error = patches @ flat, sum_error(patches, flat)
        for i, step in enumerate(self.steps):
            with_ = None
            if step in ("bias", "residual"):
                self.give(f"e{i}", self.drawn((o,) if step == "bias" else value.shape, self.kind))
                with_ = self.inputs[f"e{i}"].array().astype(wide)
            value, error = apply(step, value, error, with_)
            error = error + 2 * UNITS[F32] * np.abs(value)
        if not self.literal:
            for name, numbers in (("stride", stride), ("dilation", dilation), ("pad", pad)):
                for axis, number in zip("hw", numbers):
                    self.scalars[f"{name}_{axis}"] = ("i64", number)
        self.expect(value, error, self.result)

    def text(self):
        extents = {"x": "BHWC", "w": "RSC" if self.form == "depthwise" else "RSCO", "c": "BPQC" if self.form == "depthwise" else "BPQO"}
        for i, step in enumerate(self.steps):
            extents[f"e{i}"] = extents["c"][-1] if step == "bias" else extents["c"]
        points = [f"{name} in {{{value}}}" for name, value in self.tiles.items() if self.form == "plain" or name not in ("BC", "warps", "stages")]
        number = lambda name, axis: str(getattr(self, name)["hw".index(axis)]) if self.literal else f"{name}_{axis}"
        last = "C" if self.form == "depthwise" else "O"
        lines = ["import nn", "kernel drawn(" + ", ".join(self.head(extents)) + ")"]
        if not self.literal:
            lines.append("    require stride_h >= 1, stride_w >= 1")
        lines += ["    tune cpu " + ", ".join(points[:4]), "    tune gpu " + ", ".join(points), "{",
                  f"    grid (b, p, q, o) in (B, tiles(P, BP), tiles(Q, BQ), tiles({last}, BO)) {{"]
        inner = ["var acc = zeros[BP, BQ, BO](f32)" if self.form == "depthwise" else "var acc = zeros[BP * BQ, BO](f32)", "for i in 0..R {",
                 f"    let h = span(p.start, BP) * {number('stride', 'h')} + (i * {number('dilation', 'h')} - {number('pad', 'h')})", "    for j in 0..S {",
                 f"        let v = span(q.start, BQ) * {number('stride', 'w')} + (j * {number('dilation', 'w')} - {number('pad', 'w')})"]
        if self.form == "depthwise":
            inner.append("        acc = acc + f32(x[b, h, v, o] else 0) * f32(w[i, j, o])[_, _, :]")
        else:
            inner += ["        for k in tiles(C, BC) { acc = dot(reshape((x[b, h, v, k] else 0), (BP * BQ, BC)), w[i, j, k, o], acc) }"]
        inner += ["    }", "}", *self.epilogue()]
        return "\n".join(lines + ["        " + line for line in inner] + ["    }", "}"]) + "\n"

    def epilogue(self):
        lines = ["let v0 = acc" if self.form == "depthwise" else "let v0 = reshape(acc, (BP, BQ, BO))"]
        for i, step in enumerate(self.steps):
            lines.append(f"let v{i + 1} = " + {"bias": f"v{i} + f32(e{i}[o])[_, _, :]", "residual": f"v{i} + f32(e{i}[b, p, q, o])",
                                               "relu": f"relu(v{i})", "silu": f"silu(v{i})"}[step])
        return lines + [f"c[b, p, q, o] = {NAMES[self.result]}(v{len(self.steps)})"]

    def about(self):
        return (f"{NAMES[self.kind]} {self.form} {self.batch}x{self.image[0]}x{self.image[1]}x{self.channels} by {self.window[0]}x{self.window[1]}x{self.outputs}, "
                f"strides {self.stride}, dilations {self.dilation}, borders {self.pad}{'' if self.literal else ' as parameters'} {'+'.join(self.steps)} -> "
                f"{NAMES[self.result]}, {self.tile_points()}")
