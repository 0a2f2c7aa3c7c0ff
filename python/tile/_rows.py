"""Do the rows of a kernel's results depend each on the same row of its arguments alone? Then a batch of calls is one call
with more rows, as under vmap.

This is read from the tile form of the kernel, the text in which every op has one meaning (docs/ops.md). Each value is
uniform (the same for all rows), of rows (one axis of it counts rows, or all of it is of one row), or an extent (computed
of the number of rows or the number of a row). Extents may only place tiles and end them. Whatever is not known here makes
the answer no: then each element of a batch is a call."""

import math
import re

from tile import _errors

ELEMENTWISE = frozenset("""neg not abs floor ceil round trunc sqrt rsqrt exp exp2 expm1 log log2 log1p sin cos tan tanh erf sigmoid
    add sub mul div rem min max and or xor shl shr eq ne lt le gt ge fma select convert bitcast is_nan""".split())
OF_ONE_ROW = frozenset("reduce arg_reduce scan fold sort slice cat flip dot permute".split())
_OP = re.compile(r"(?:(?P<results>%[\w.]+(?:, %[\w.]+)*) = )?(?P<name>\w+)(?P<operands>(?:,? %[\w.]+)*)"
                 r"(?: \{(?P<attributes>[^{}\"]*(?:\"[^\"]*\"[^{}\"]*)*)\})?(?: : (?P<types>[^(){}]+?))?(?: \((?P<arguments>%[^()]*)\))?"
                 r"(?P<opens> \{)?$")
_NAME = re.compile(r"%[\w.]+")


class _Unknown(Exception):
    """The form says nothing that is known here."""


class _Op:
    def __init__(self, match):
        self.name = match["name"]
        self.results = _NAME.findall(match["results"] or "")
        self.operands = _NAME.findall(match["operands"])
        self.attributes = match["attributes"] or ""
        self.types = re.findall(r"\w+(?:\[[^\]]*\])?", match["types"] or "")
        self.arguments = _NAME.findall(match["arguments"] or "")
        self.regions = []

    def number(self, key):
        return int(re.search(rf"\b{key} = (-?\d+)", self.attributes)[1])

    def words(self, key):
        found = re.search(rf"\b{key} = \[([^\]]*)\]", self.attributes)
        return [word.strip() for word in found[1].split(",")] if found and found[1].strip() else []

    def keys(self):
        return set(re.findall(r"(\w+) = ", re.sub(r'"[^"]*"', "", self.attributes)))


def _parse(lines):
    """The ops of a region, up to its closing brace; takes them from the iterator."""
    ops = []
    for line in lines:
        line = line.strip()
        if line in ("}", "} {"):
            return ops, line == "} {"
        match = _OP.match(line)
        if not match:
            raise _Unknown(line)
        op, more = _Op(match), bool(match["opens"])
        while more:
            region, more = _parse(lines)
            op.regions.append(region)
        ops.append(op)
    raise _Unknown("the text ends")


def _extents(type):
    inside = type.partition("[")[2].rstrip("]")
    return [int(n) for n in inside.split(",")] if inside else []


# ---- values ----
# ("uniform", axes along which it may vary, value or None)   ("rows", axis that counts rows; None: all of it is of one row)
# ("extent", what, number): "rows" M; "more" M + number; "count" of programs; "index" of a program, each of `number` rows;
# "base" its first row; "rest" M less that; "end" of its rows, at most `number`

_PLAIN = ("uniform", frozenset(), None)


def _join(a, b):
    if a[0] == "uniform" and b[0] == "uniform":
        return ("uniform", a[1] | b[1], a[2] if a == b else None)
    if a[0] == "uniform":
        a, b = b, a
    if a[0] == "rows" and (a == b or (b[0] == "uniform" and (a[1] is None or a[1] not in b[1]))):
        return a
    raise _Unknown("values of different kinds")


class _Walk:
    def __init__(self, lead):
        self.lead = lead  # names of tensors whose first dimension counts rows
        self.values, self.types, self.step = {}, {}, None  # step: rows of a program, within a grid

    def value(self, name):
        return self.values[name]

    def uniform(self, name):
        if self.values[name][0] != "uniform":
            raise _Unknown(f"{name} depends on the row")

    def is_number(self, name, number):
        return self.values[name] == ("uniform", frozenset(), number)

    def run(self, ops):
        for op in ops:
            if op.name in ("yield", "return"):
                return [self.values[name] for name in op.operands]
            states = getattr(self, "_" + op.name, self._other)(op)
            self.types.update(zip(op.results, op.types))
            self.values.update(zip(op.results, states))
        return []

    def _other(self, op):
        states = [self.value(name) for name in op.operands]
        if op.regions or any(state[0] == "extent" for state in states):
            raise _Unknown(op.name)
        if op.name in ELEMENTWISE:
            joined = _PLAIN
            for state in states:
                joined = _join(joined, ("uniform", state[1], None) if state[0] == "uniform" else state)
            return [joined]
        if op.name not in OF_ONE_ROW or any(state[0] == "rows" and state[1] is not None for state in states):
            raise _Unknown(op.name)
        return [self._whole(type, states) for type in op.types]

    def _whole(self, type, states):
        """What an op makes that may mix all elements of its operands."""
        if any(state[0] == "rows" for state in states):
            return ("rows", None)
        return ("uniform", frozenset(range(len(_extents(type)))), None)

    # extents

    def _dim(self, op):
        return [("extent", "rows", 0) if op.operands[0] in self.lead and op.number("axis") == 0 else _PLAIN]

    def _check_dim(self, op):
        if op.operands[0] in self.lead and op.number("axis") == 0:
            if self.value(op.operands[1]) != ("extent", "rows", 0):
                raise _Unknown("an extent")
        else:
            self.uniform(op.operands[1])
        return []

    def _const(self, op):
        found = re.search(r"value = (-?\d+)$", op.attributes)
        return [("uniform", frozenset(), int(found[1]) if found else None)]

    def _two(self, op):
        a, b = (self.value(name) for name in op.operands)
        return (a, b) if a[0] == "extent" else (b, a)

    def _add(self, op):
        a, b = self._two(op)
        if a == ("extent", "rows", 0) and b[0] == "uniform" and b[2] is not None:
            return [("extent", "more", b[2])]
        if a[:2] == ("extent", "count") and b[0] == "uniform" and b[2] is not None:
            return [("extent", "programs", (a[2], b[2]))]
        return self._other(op)

    def _div(self, op):
        a, b = (self.value(name) for name in op.operands)
        if a[:2] == ("extent", "more") and b[0] == "uniform" and b[2] == a[2] + 1:
            return [("extent", "count", b[2])]
        if a[:2] == ("extent", "programs") and b[0] == "uniform" and b[2] == a[2][1] + 1:  # programs that are computed together
            return [("extent", "count", a[2][0] * b[2])]
        return self._other(op)

    def _mul(self, op):
        a, b = self._two(op)
        if a[:2] == ("extent", "index") and b[0] == "uniform" and b[2] == a[2]:
            return [("extent", "base", a[2])]
        return self._other(op)

    def _sub(self, op):
        a, b = (self.value(name) for name in op.operands)
        if a == ("extent", "rows", 0) and (b[:2] == ("extent", "base") or b == ("extent", "index", 1)):
            return [("extent", "rest", b[2])]
        return self._other(op)

    def _min(self, op):
        a, b = self._two(op)
        if a[:2] == ("extent", "rest") and b[0] == "uniform" and b[2] == a[2]:
            return [("extent", "end", a[2])]
        return self._other(op)

    # control

    def _grid(self, op):
        if self.step is not None:
            raise _Unknown("a grid in a grid")
        for extent, index in zip(op.operands, op.arguments):
            state = self.value(extent)
            self.values[index] = _PLAIN
            if state[0] != "extent":
                self.uniform(extent)
            elif self.step is None and (state[1] == "count" or state == ("extent", "rows", 0)):
                self.step = state[2] or 1
                self.values[index] = ("extent", "index", self.step)
            else:
                raise _Unknown("the grid's extents")
        if self.step is None:
            raise _Unknown("a grid that does not go over rows")
        self.run(op.regions[0])
        self.step = None
        return []

    def _for(self, op):
        for name in op.operands[:3]:
            self.same_in_program(name)
        states = [self.value(name) for name in op.operands[3:]]
        self.types.update(zip(op.arguments[1:], op.types))
        while True:
            self.values[op.arguments[0]] = self._whole("", [self.value(name) for name in op.operands[:3]])
            self.values.update(zip(op.arguments[1:], states))
            joined = [_join(a, b) for a, b in zip(states, self.run(op.regions[0]))]
            if joined == states:
                return states
            states = joined

    def _if(self, op):
        self.same_in_program(op.operands[0])
        one, other = (self.run(region) for region in op.regions)
        joined = [_join(a, b) for a, b in zip(one, other)]
        if self.value(op.operands[0])[0] == "uniform":
            return joined
        if any(state[0] == "extent" for state in joined):
            raise _Unknown("an extent of a row's choice")
        return [("rows", None) for _ in joined]

    def same_in_program(self, name):
        if self.value(name) != ("rows", None):
            self.uniform(name)

    # tiles

    def _splat(self, op):
        state = self.value(op.operands[0])
        if state[0] == "extent":
            raise _Unknown("a tile of extents")
        return [("rows", None) if state[0] == "rows" else ("uniform", frozenset(), state[2])]

    def _iota(self, op):
        axis = op.number("axis") if "axis" in op.keys() else 0
        return [("uniform", frozenset([axis]), None)]

    def _broadcast(self, op):
        state = self.value(op.operands[0])
        if state[0] == "uniform":
            extents = _extents(self.types[op.operands[0]])
            state = ("uniform", frozenset(a for a in state[1] if extents[a] > 1), None)
        return [state]

    def _reshape(self, op):
        state, before, after = self.value(op.operands[0]), _extents(self.types[op.operands[0]]), _extents(op.types[0])
        if state[0] == "uniform":
            return [("uniform", frozenset(range(len(after))) if state[1] else state[1], None)]
        if state == ("rows", None):
            return [state]
        axis = state[1]
        for k, extent in enumerate(after):
            if extent == before[axis] and math.prod(after[:k]) == math.prod(before[:axis]):
                return [("rows", k)]
        raise _Unknown("rows that are divided")

    def _reduce(self, op):
        state, axis = self.value(op.operands[0]), op.number("axis")
        if state[0] == "rows" and state[1] is not None and state[1] != axis:
            return [("rows", state[1] - (axis < state[1]))]
        return self._other(op)

    def _dot(self, op):
        a, b, sum = (self.value(name) for name in op.operands)
        if a == ("rows", len(_extents(self.types[op.operands[0]])) - 2) and b[0] == "uniform":
            return [_join(a, sum)]
        return self._other(op)

    def _fill(self, op):
        state = self.value(op.operands[0])
        self.same_in_program(op.operands[1])
        for k, axis in enumerate(op.words("axes")):
            lo, hi = op.operands[2 + 2 * k: 4 + 2 * k]
            self.same_in_program(lo)
            if state == ("rows", int(axis)):
                self.is_end(hi)
            else:
                self.same_in_program(hi)
        others = [self.value(name) for name in op.operands[1:]]
        return [("rows", None) if state[0] == "uniform" and ("rows", None) in others else state]

    def is_end(self, name):
        if not self.is_number(name, self.step) and self.value(name) != ("extent", "end", self.step):
            raise _Unknown("a bound of rows")

    def access(self, op, first):
        """Checks an access of a tensor: of the program's own rows, where it has rows. True if it keeps their axis."""
        lead, at, keeps = op.operands[0] in self.lead, first, False
        if op.keys() - {"access", "cache"}:
            raise _Unknown(op.attributes)
        for axis, kind in enumerate(op.words("access")):
            count = {"index": 1, "range": 4}.get(kind, 0)
            names = op.operands[at: at + count]
            at += count
            if not count:
                raise _Unknown(kind)
            if not lead or axis:
                for name in names:
                    self.same_in_program(name)
                continue
            state = self.value(names[0])
            if state[0] != "extent" or state[2] != self.step or (state[1] != "base" and state != ("extent", "index", 1)):
                raise _Unknown("another row")
            if kind == "range":
                if not self.is_number(names[1], 1) or not self.is_number(names[2], 0):
                    raise _Unknown("rows that are apart")
                self.is_end(names[3])
                keeps = True
        if at != len(op.operands):
            raise _Unknown("a masked access")
        return keeps

    def _load_tile(self, op):
        keeps, extents = self.access(op, 1), _extents(op.types[0])
        if op.operands[0] not in self.lead:
            of_row = any(self.value(name)[0] == "rows" for name in op.operands[1:])
            return [self._whole(op.types[0], [("rows", None)] if of_row else [])]
        if self.step == 1:
            return [("rows", None)]
        if not keeps or extents[0] != self.step:
            raise _Unknown("one row of several")
        return [("rows", 0)]

    def _store_tile(self, op):
        keeps = self.access(op, 2)
        if op.operands[0] not in self.lead:
            raise _Unknown("a result without rows")
        state = self.value(op.operands[1])
        if self.step == 1 and state[0] in ("rows", "uniform"):
            return []
        if not keeps or _join(("rows", 0), state) != ("rows", 0):
            raise _Unknown("a result of all rows")
        return []


# ---- a kernel ----


def _candidates(kernel):
    """The name of the dimension that would count rows, and the tensors that have it first; None: there is none."""
    tensors = [p for p in kernel.parameters if p.access is not None]
    outs = [p for p in tensors if p.access == "out"]
    if not outs or any(not p.dimensions or p.access == "inout" for p in outs):
        return None
    rows = outs[0].dimensions[0]
    if not re.fullmatch(r"[A-Za-z_]\w*", rows):
        return None
    lead = {p.name for p in tensors if p.dimensions and p.dimensions[0] == rows}
    for p in tensors:
        rest = p.dimensions[1:] if p.name in lead else p.dimensions
        if any(re.search(rf"\b{rows}\b", text) for text in rest) or p.access == "inout":
            return None
    return lead if all(p.name in lead for p in outs) else None


def _ask(kernel, types):
    lead = _candidates(kernel)
    if not lead:
        return None
    unset = {s.name for s in kernel.settings if s.kind == "type" and s.value is None}
    settings = {p.type: type for p, type in zip((p for p in kernel.parameters if p.access not in ("out", None)), types)
                if p.type in unset}
    try:
        lines = iter(kernel.emit("tile", **settings).splitlines())
        head = next(line for line in lines if line.startswith("func kernel"))
        walk = _Walk({"%" + name for name in lead})
        for name in re.findall(r"(%[\w.]+): (?!tensor)", head):
            walk.values[name] = _PLAIN
        walk.run(_parse(lines)[0])
    except (_Unknown, _errors.Error, StopIteration, KeyError, IndexError, ValueError, TypeError):
        return None
    return frozenset(lead)


def leading(kernel, types):
    """The names of the tensors whose first dimension counts rows that are independent, or None. types: of the language, of
    the tensors that are not `out`, in order."""
    known = kernel.__dict__.setdefault("_rows", {})
    types = tuple(types)
    if types not in known:
        known[types] = _ask(kernel, types)
    return known[types]
