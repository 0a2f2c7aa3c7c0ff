"""Where the campaign of scripts/mutate.py can put a fault, and which: found in clang's syntax trees of the sources.

Every fault is an expression that takes the place of another one. It has two texts: `plain`, which is what a programmer
would have written, and `switched`, which is chosen when the program runs: several faults are compiled into one program.
`switched` says beside it whether the fault makes a difference at this moment, so that a test in which it never does
need not be run with it: all that such a test computes is the same by definition."""
import json
import os
import re
import subprocess

# Passes, what they share, the launcher, and those files elsewhere that lower, emit masks or decide what code may rely on.
FOLDERS = ["lowering", "cpu", "ptx", "launch"]
FILES = ["lang/layout/layout.c", "lang/ir/layout_rules.c", "parser/check/validity.c", "parser/check/index.c", "parser/check/range.c",
         "parser/check/reduce.c", "parser/check/fold.c", "parser/check/join.c", "parser/check/emit.c", "driver/compile/facts.c",
         "driver/compile/unit.c", "driver/compile/lower.c", "driver/compile/passes.c", "driver/compile/run.c",
         "driver/compile/phases.c", "driver/compile/load.c", "driver/compile/execute.c", "driver/compile/build.c", "driver/ahead/variant.c"]
# Words for people: `tests/cli` compares them, and no result depends on them.
WORDS = {"launch/explain.c", "launch/report.c", "launch/failure.c", "ptx/lowering/print.c", "ptx/lowering/remark.c"}
SAYS = re.compile(r"(^|_)(fail|error|refuse|complain|print|say|describe|explain|remark|report|warn|snprintf|message)")
# A check of what another fault would have to cause first.
GIVES_UP = re.compile(r"TILE_INTERNAL|tile_pass_fail|OUT_OF_MEMORY|_fail\(")

INTEGERS = {prefix + name for name in ("char", "short", "int", "long", "long long", "__int128")
            for prefix in ("", "unsigned ", "signed ")} | {"_Bool", "bool"}
LESS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
OTHER = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<"}
OPS = dict([("LT", "LE"), ("LE", "LT"), ("GT", "GE"), ("GE", "GT"), ("EQ", "NE"), ("NE", "EQ"), ("ADD", "SUB"),
            ("SUB", "ADD"), ("MUL", "ADD"), ("MIN", "MAX"), ("MAX", "MIN"), ("AND", "OR"), ("OR", "AND"), ("SHL", "SHR"),
            ("SHR", "SHL"), ("DIV", "MUL"), ("MOD", "DIV")])
MAY_BE_NULL = re.compile(r"^(mask|fill|passthru|init|valid|exists|guard|with|old)$")
# Who is told of an alignment relies on it; others are asked for it, or whether it holds.
CLAIMS = re.compile(r"load|store|copy|access")
WAITS = re.compile(r"barrier|wait|commit|fence|BARRIER|_WAIT|COMMIT")
STANDIN = "\x01"  # the number of the fault, in `switched`


class Site:
    """A fault at a place: bytes `begin` to `end` of the file, in a function that begins at `start`."""

    def __init__(self, path, function, start, line, operator, begin, end, original, plain, switched):
        self.path, self.function, self.line, self.operator = path, function, line, operator
        self.start = start
        self.begin, self.end, self.original, self.plain, self.switched = begin, end, original, plain, switched

    def key(self):
        words = [" ".join(text.split()) for text in (self.original, self.plain)]
        return (f"{self.path}:{self.function}", self.operator, words[0], words[1])


def sources(root):
    files = [os.path.relpath(os.path.join(path, name), root) for folder in FOLDERS
             for path, _, names in sorted(os.walk(os.path.join(root, folder))) for name in sorted(names)
             if name.endswith(".c")]
    return [path for path in files + FILES if path not in WORDS]


def plain_type(node):
    return re.sub(r"\b(const|volatile|restrict)\b ?", "", node.get("type", {}).get("qualType", "")).strip()


def is_integer(node):
    kind = node.get("type", {})
    name = re.sub(r"\b(const|volatile) ", "", kind.get("desugaredQualType", kind.get("qualType", "")))
    return name in INTEGERS or name.startswith("enum ")


def is_pointer(node):
    name = plain_type(node)
    return name.endswith("*") and "(" not in name


def inner(node):
    return [child for child in node.get("inner", [])]


def bare(node):
    """Without the casts and parentheses around it."""
    while node.get("kind") in ("ImplicitCastExpr", "ParenExpr", "ConstantExpr", "ExprWithCleanups") and inner(node):
        node = inner(node)[0]
    return node


def does_something(node):
    kind, code = node.get("kind"), node.get("opcode", "")
    if kind in ("CallExpr", "StmtExpr", "CompoundAssignOperator") or code in ("=", "++", "--"):
        return True
    return any(does_something(child) for child in inner(node))


def callee(node):
    return bare(inner(node)[0]).get("referencedDecl", {}) if inner(node) else {}


class Finder:
    def __init__(self, root, path, tree):
        self.path, self.sites = path, []
        with open(os.path.join(root, path), "rb") as file:
            self.text = file.read()
        self.parameters = {}
        for node in inner(tree):
            if node.get("kind") == "FunctionDecl":
                names = [child.get("name", "") for child in inner(node) if child.get("kind") == "ParmVarDecl"]
                known = self.parameters.setdefault(node.get("name"), names)
                if len(known) == len(names) and any(names) and not any(known):
                    self.parameters[node.get("name")] = names
        for node in inner(tree):
            body = [child for child in inner(node) if child.get("kind") == "CompoundStmt"]
            if node.get("kind") != "FunctionDecl" or not body or not self.extent(body[0]):
                continue
            self.function, self.start = node["name"], self.extent(node)
            self.gives = node["type"]["qualType"].split(" (")[0]
            if self.start and not SAYS.search(self.function):
                self.statement(body[0])

    # ---- text ----

    def extent(self, node):
        places = []
        for which in ("begin", "end"):
            place = node.get("range", {}).get(which, {})
            macro = "expansionLoc" in place
            place = place.get("expansionLoc", place)
            if "offset" not in place or "includedFrom" in place:
                return None
            begin, end = place["offset"], place["offset"] + place["tokLen"]
            if macro and self.text[end:end + 1] == b"(":
                return None
            places.append(begin if which == "begin" else end)
        return tuple(places) if places[0] < places[1] else None

    def source(self, node):
        extent = self.extent(node)
        return self.text[extent[0]:extent[1]].decode() if extent else None

    def add(self, operator, node, plain, switched):
        extent = self.extent(node)
        if not extent or any(part is None for part in (plain, switched)):
            return
        original = self.text[extent[0]:extent[1]].decode()
        line = self.text.count(b"\n", 0, extent[0]) + 1
        switched = " ".join(switched.split("\n")) if "//" not in switched else switched
        place = (self.path, self.function, self.start[0], line, operator, *extent)
        self.sites.append(Site(*place, original, plain, f"({switched})"))

    # ---- faults ----

    def force(self, operator, node, value, plain=None):
        text = self.source(node)
        if text:
            word = "true" if value else "false"
            self.add(operator, node, plain or word, f"{{ _Bool t{STANDIN} = !!({text}); "
                     f"TILE_MUTANT({STANDIN}, t{STANDIN} != {word}) ? {word} : t{STANDIN}; }}")

    def compute(self, operator, node, left, right, was, now):
        """An operation on two numbers as another one: `was` and `now` speak of a and b."""
        texts = [self.source(left), self.source(right)]
        if None in texts or (does_something(left) and does_something(right)):
            return

        def said(form, a, b):
            return re.sub(r"\b[ab]\b", lambda match: a if match[0] == "a" else b, form)

        a, b = f"a{STANDIN}", f"b{STANDIN}"
        old, new = said(was, a, b), said(now, a, b)
        self.add(operator, node, said(now, f"({texts[0]})", f"({texts[1]})"),
                 f"{{ {plain_type(left)} {a} = ({texts[0]}); {plain_type(right)} {b} = ({texts[1]}); "
                 f"TILE_MUTANT({STANDIN}, ({old}) != ({new})) ? ({new}) : ({old}); }}")

    def instead(self, operator, node, now):
        """A number or pointer as another one: `now` speaks of v."""
        text = self.source(node)
        if text:
            v = f"v{STANDIN}"
            kind = plain_type(node)
            new = re.sub(r"\bv\b", v, now)
            differs = f"TILE_MUTANT({STANDIN}, {v} != ({kind})({new}))"
            self.add(operator, node, re.sub(r"\bv\b", f"({text})", now),
                     f"{{ {kind} {v} = ({text}); {differs} ? ({kind})({new}) : {v}; }}")

    def leave_out(self, operator, node):
        text = self.source(node)
        if text:
            self.add(operator, node, "(void)0", f"TILE_MUTANT({STANDIN}, 1) ? (void)0 : (void)({text})")

    # ---- the walk ----

    def statement(self, node):
        """A place where an expression stands for what it does."""
        kind = node.get("kind")
        if kind == "CallExpr" and not SAYS.search(callee(node).get("name", "")):
            waits = WAITS.search(self.source(node) or "")
            self.leave_out("wait left out" if waits else "call left out", node)
        if kind == "CompoundAssignOperator" or (kind == "BinaryOperator" and node.get("opcode") == "="):
            self.leave_out("assignment left out", node)
        self.walk(node)

    def walk(self, node):
        kind = node.get("kind")
        visit = getattr(self, f"on_{kind}", None)
        if kind in ("UnaryExprOrTypeTraitExpr", "StaticAssertDecl", "EnumDecl", "RecordDecl", "ConstantExpr"):
            return
        if kind == "VarDecl" and node.get("storageClass") == "static":
            return
        if kind == "CallExpr" and SAYS.search(callee(node).get("name", "")):
            return
        if visit:
            visit(node)
        children = inner(node)
        statements = {"CompoundStmt": children, "IfStmt": children[1:], "ForStmt": children[-1:],
                      "WhileStmt": children[-1:], "CaseStmt": children[-1:], "DefaultStmt": children,
                      "LabelStmt": children}.get(kind, [])
        skipped = children[:1] if kind == "CaseStmt" or (kind == "IfStmt" and self.gives_up(children)) else []
        for child in children:
            if any(child is one for one in skipped):
                continue
            if any(child is one for one in statements):
                self.statement(child)
            else:
                self.walk(child)

    def gives_up(self, children):
        return GIVES_UP.search(self.source(children[1]) or "") is not None

    def on_IfStmt(self, node):
        if not self.gives_up(inner(node)):
            self.force("condition fixed", inner(node)[0], True)
            self.force("condition fixed", inner(node)[0], False)

    def on_ConditionalOperator(self, node):
        self.force("condition fixed", inner(node)[0], True)
        self.force("condition fixed", inner(node)[0], False)

    def on_ForStmt(self, node):
        parts = inner(node)
        if len(parts) != 5:
            return
        until = bare(parts[2])
        if until.get("opcode") == "<" and all(map(is_integer, inner(until))):
            self.compute("loop shortened", until, *inner(until), "a < b", "a + 1 < b")
        for variable in inner(parts[0]) if parts[0].get("kind") == "DeclStmt" else []:
            first = bare(inner(variable)[0]) if inner(variable) else {}
            if first.get("kind") == "IntegerLiteral":
                self.instead("loop shortened", first, "v + 1")

    def on_BinaryOperator(self, node):
        code, (left, right) = node["opcode"], inner(node)
        numbers = is_integer(left) and is_integer(right)
        texts = self.source(left), self.source(right)
        if code in LESS and numbers:
            self.compute("bound off by one", node, left, right, f"a {code} b", f"a {LESS[code]} b")
        if code in ("==", "!="):
            self.compute_not(node, texts, "!=" if code == "==" else "==")
        if code in ("&&", "||") and None not in texts:
            self.force("operand dropped", left, code == "&&")
            self.force("operand dropped", right, code == "&&")
        if code in OTHER and numbers:
            self.compute("arithmetic", node, left, right, f"a {code} b", f"a {OTHER[code]} b")
        if code in ("&", "|") and numbers:
            self.compute("bits ignored", node, left, right, f"a {code} b", "a")
            self.compute("bits ignored", node, left, right, f"a {code} b", "b")

    def compute_not(self, node, texts, code):
        whole = self.source(node)
        if None not in texts and whole:
            self.add("comparison inverted", node, f"({texts[0]}) {code} ({texts[1]})",
                     f"{{ _Bool t{STANDIN} = ({whole}); TILE_MUTANT({STANDIN}, 1) ? !t{STANDIN} : t{STANDIN}; }}")

    def on_ReturnStmt(self, node):
        if self.gives not in ("_Bool", "bool") or not inner(node):
            return
        value = bare(inner(node)[0])
        if value.get("kind") in ("IntegerLiteral", "CXXBoolLiteralExpr"):
            self.force("answer fixed", value, value.get("value") in ("0", False))
        else:
            self.force("answer fixed", inner(node)[0], True)
            self.force("answer fixed", inner(node)[0], False)

    def on_CallExpr(self, node):
        name, given = callee(node).get("name", ""), inner(node)[1:]
        names = self.parameters.get(name, [])
        for i, argument in enumerate(given):
            parameter = names[i] if i < len(names) else ""
            value = bare(argument)
            null = (self.source(argument) or "NULL") == "NULL"
            if MAY_BE_NULL.match(parameter) and is_pointer(argument) and not null:
                self.instead("mask or fill forgotten", argument, "NULL")
            if parameter == "align" and is_integer(argument) and value.get("value") != "0":
                self.instead("alignment wrong", argument, "v * 2" if CLAIMS.search(name) else "v / 2")
            if value.get("kind") == "IntegerLiteral" and is_integer(argument):
                self.instead("constant wrong", argument, "v + 1")
            self.on_op(value)
            self.on_swap(given, i)
        if "identity" in name and is_integer(node):
            self.instead("identity wrong", node, "~v")

    def on_op(self, value):
        if value.get("kind") == "ConditionalOperator":
            for side in inner(value)[1:]:
                self.on_op(bare(side))
        name = value.get("referencedDecl", {}).get("name", "")
        if name.startswith("TILE_OP_") and name[8:] in OPS:
            now = "TILE_OP_" + OPS[name[8:]]
            self.add("op exchanged", value, now, f"TILE_MUTANT({STANDIN}, 1) ? {now} : {name}")

    def on_swap(self, given, i):
        if i + 1 == len(given):
            return
        pair = given[i:i + 2]
        texts = [self.source(one) for one in pair]
        if None in texts or texts[0] == texts[1] or plain_type(pair[0]) != plain_type(pair[1]):
            return
        if any(map(does_something, pair)) or not all(is_pointer(one) or is_integer(one) for one in pair):
            return
        if all(bare(one).get("kind") == "DeclRefExpr" and bare(one)["referencedDecl"].get("kind") == "EnumConstantDecl"
               for one in pair):
            return
        both = {"range": {"begin": pair[0]["range"]["begin"], "end": pair[1]["range"]["end"]}}
        choice = "TILE_MUTANT(%s, (%s) != (%s)) ? (%s) : (%s)"
        self.add("operands exchanged", both, f"{texts[1]}, {texts[0]}",
                 choice % (STANDIN, *texts, texts[1], texts[0]) + "), (" + choice % (STANDIN, *texts, *texts))


def find_sites(root, path):
    command = ["clang-22", "-I.", "-Iinclude", "-std=gnu17", "-DTILE_LAUNCH_LIBRARY=\"\"", "-fsyntax-only", "-w",
               "-Xclang", "-ast-dump=json", path]
    dumped = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True)
    return Finder(root, path, json.loads(dumped.stdout)).sites
