"""Where the elements of a kernel's tiles lie on a GPU: k.layouts(T="f32") shows a table for each layout in a notebook."""

import html
import math
import re

LANES = 32
_LAYOUT = re.compile(r"\s*layout (\d+) = \[([^\]]*)\] register([\d ]*) lane([\d ]*) warp([\d ]*) block([\d ]*)$")
_VALUE = re.compile(r"\s*%([\w.]+)(?:, %[\w.]+)* = (\w+) .*: (\w+)\[[^\]]*\] layout (\d+)")
_CELL = (46, 26)
_ROWS, _COLUMNS = 32, 64  # what is drawn of a tile


class Layout:
    """One layout: `phase`, `text`, `extents` of the tile, `tiles`: names of the values that lie so. A tile of which an axis is
    no power of two, as `3*32`, consists of equal `pieces`, which this describes one of."""

    def __init__(self, phase, match):
        self.phase, self.text, self.tiles = phase, match[0].strip().partition(" = ")[2], []
        axes = [axis.rpartition("*") for axis in match[2].split(",")]
        self.extents = tuple(int(extent) for _, _, extent in axes)
        self.pieces = math.prod(int(pieces or 1) for pieces, _, _ in axes)
        self._columns = [[int(n) for n in match[k].split()] for k in (3, 4, 5)]

    def place(self, register, lane, warp):
        """The position of the element in a thread's register, in row-major order."""
        position = 0
        for number, columns in zip((register, lane, warp), self._columns):
            for bit, column in enumerate(columns):
                position ^= column if number >> bit & 1 else 0
        return position

    def places(self):
        """For each position the first (warp, lane, register) that holds it."""
        held = {}
        counts = [1 << len(columns) for columns in self._columns]
        for warp in range(counts[2]):
            for lane in range(counts[1]):
                for register in range(counts[0]):
                    held.setdefault(self.place(register, lane, warp), (warp, lane, register))
        return held

    def __repr__(self):
        return f"{self.phase}: {', '.join(self.tiles)}: {self.text}"


class Layouts(list):
    """The layouts of a kernel's phases."""

    def __repr__(self):
        return "\n".join(map(repr, self))

    def _repr_svg_(self):
        top, width, body = 16, 640, []
        for layout in self:
            columns = layout.extents[-1]
            shown = (min(-(-max(layout.places()) // columns) or 1, _ROWS), min(columns, _COLUMNS))
            title = f"{layout.phase}: {', '.join(layout.tiles)}" + (f", a piece of {layout.pieces}" if layout.pieces > 1 else "")
            body.append(_text(16, top + 12, title, 13) + _text(16, top + 28, layout.text, 11))
            top += 36
            for position, place in layout.places().items():
                row, column = divmod(position, columns)
                if row < shown[0] and column < shown[1]:
                    body.append(_cell(16 + column * _CELL[0], top + row * _CELL[1], *place))
            top += shown[0] * _CELL[1] + 20
            width = max(width, 32 + shown[1] * _CELL[0])
        return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{top}' font-family='sans-serif' font-size='9'>"
                f"<rect width='{width}' height='{top}' fill='#ffffff'/>{''.join(body)}</svg>")


def _text(x, y, text, size):
    return f"<text x='{x}' y='{y}' font-size='{size}'>{html.escape(text)}</text>"


def _cell(x, y, warp, lane, register):
    fill = f"hsl({lane * 360 // LANES},60%,{88 - warp % 4 * 8}%)"
    return (f"<rect x='{x}' y='{y}' width='{_CELL[0]}' height='{_CELL[1]}' fill='{fill}' stroke='#888888'/>"
            f"<text x='{x + 3}' y='{y + 16}'>t{warp * LANES + lane} r{register}</text>")


def read(text):
    """The layouts of a text of the tile form in which tiles have them."""
    found, phase, here = Layouts(), "", {}
    for line in text.splitlines():
        if line.startswith("func "):
            phase, here = re.search(r"@([\w.]+)", line)[1], {}
        match, value = _LAYOUT.match(line), _VALUE.match(line)
        if match:
            here[match[1]] = Layout(phase, match)
            found.append(here[match[1]])
        elif value and value[4] in here:
            here[value[4]].tiles.append(f"{value[3]} {value[1]}")
    return found
