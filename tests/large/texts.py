#!/usr/bin/env python3
"""Texts that are large in one way each, to see what they cost: most of them no person would write.

usage: texts.py                      lists the kinds, each with the commands that it is for
       texts.py KIND SIZE FOLDER     writes FOLDER/KIND.tile, and what it imports
"""
import os
import sys

HEAD = "kernel k(x: in f32[N], y: out f32[N]) {\n    grid n in tiles(N, 64) {\n"
FOOT = "        y[n] = a\n    }\n}\n"
KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def body(lines, first="        var a = x[n]\n"):
    return HEAD + first + "".join(f"        {line}\n" for line in lines) + FOOT


# ---- what a kernel does ----


@kind
def statements(n):
    return body(f"a = a * {i % 7}.5 + x[n]" for i in range(n))


@kind
def lets(n):
    return body(f"let v{i} = {'a' if i == 0 else f'v{i - 1}'} * 0.5 + a" for i in range(n)).replace("= a\n    }", f"= v{n - 1}\n    }}")


@kind
def loads(n):
    return body(f"a += x[n] * {i}.0" for i in range(n))


@kind
def shifts(n):
    """Each load is valid elsewhere."""
    return body([f"let v{i} = x[n + {i}]" for i in range(n)] + ["a = a + (" + " + ".join(f"v{i}" for i in range(min(n, 200))) + " else 0)"])


@kind
def shifts_sum(n):
    lines = ["let s0 = x[n + 1]"] + [f"let s{i} = s{i - 1} + x[n + {i + 1}]" for i in range(1, n)]
    return body(lines + [f"a = a + (s{n - 1} else 0)"])


@kind
def masks(n):
    lines = ["let s0 = keep(a, a > 0)"] + [f"let s{i} = s{i - 1} + keep(a, a > {i})" for i in range(1, n)]
    return body(lines + [f"a = a + (s{n - 1} else 0)"])


@kind
def gathers(n):
    return body(f"a += f32(i32(gather(x, i64(a) + {i}) else 0))" for i in range(n))


@kind
def stores(n):
    return body(f"y[n] = a + {i}.0" for i in range(n))


@kind
def loops(n):
    return body(f"for i{i} in 0..N {{ a = a + f32(i{i}) }}" for i in range(n))


@kind
def carried(n):
    lines = [f"var c{i} = x[n] * {i}.0" for i in range(n)]
    lines += ["for i in 0..N {"] + [f"    c{i} = c{i} + a" for i in range(n)] + ["}"]
    return body(lines + [f"a = a + c{i}" for i in range(n)])


@kind
def carried_nested(n):
    """Variables times depth."""
    depth = 30
    lines = [f"var c{i} = x[n] * {i}.0" for i in range(n)]
    lines += [f"for i{d} in 0..N {{" for d in range(depth)]
    lines += [f"    c{i} = c{i} + a" for i in range(n)] + ["}" for d in range(depth)]
    return body(lines + [f"a = a + c{i}" for i in range(n)])


@kind
def branches(n):
    return body(f"if N > {i} {{ a = a + 1 }} else {{ a = a - 1 }}" for i in range(n))


@kind
def branches_carried(n):
    """Each branch joins each variable."""
    lines = [f"var c{i} = x[n] * {i}.0" for i in range(n)]
    lines += [f"if N > {i} {{ c{i} = c{i} + 1 }}" for i in range(n)]
    return body(lines + [f"a = a + c{i}" for i in range(n)])


@kind
def nested_loops(n):
    return body([f"for i{i} in 0..N {{" for i in range(n)] + ["a = a + 1"] + ["}"] * n)


@kind
def nested_branches(n):
    return body([f"if N > {i} {{" for i in range(n)] + ["a = a + 1"] + ["}"] * n)


@kind
def breaks(n):
    return body(["for i in 0..N {"] + [f"    if i > {i} {{ break }}\n    a = a + 1" for i in range(n)] + ["}"])


@kind
def returns(n):
    lines = [f"    if v > {i}.0 {{ return {i}.0 }}" for i in range(n)]
    return "fn f(v: f32) -> f32 {\n" + "\n".join(lines) + "\n    return v\n}\n" + body(["a = f(a)"])


@kind
def reductions(n):
    return body(f"a = a + sum(a * {i}.0)" for i in range(n))


@kind
def whiles(n):
    return body(f"while N < {i} {{ a = a + 1 }}" for i in range(n))


@kind
def grids(n):
    return "kernel k(x: in f32[N], y: out f32[N]) {\n" + "".join(
        f"    grid n in tiles(N, 64) {{ y[n] = x[n] * {i}.0 }}\n" for i in range(n)) + "}\n"


@kind
def temps(n):
    lines = [f"    temp t{i}: f32[N]\n    grid n in tiles(N, 64) {{ t{i}[n] = x[n] }}\n" for i in range(n)]
    return "kernel k(x: in f32[N], y: out f32[N]) {\n" + "".join(lines) + "    grid n in tiles(N, 64) { y[n] = t0[n] }\n}\n"


@kind
def host_lets(n):
    lines = [f"    let h{i} = {'N' if i == 0 else f'h{i - 1}'} * 3 + {i}\n" for i in range(n)]
    return "kernel k(x: in f32[N], y: out f32[N]) {\n" + "".join(lines) + f"    grid n in tiles(N, 64) {{ y[n] = x[n] + f32(h{n - 1}) }}\n}}\n"


@kind
def sums(n):
    """Index sums of many names."""
    names = [f"p{i}" for i in range(min(n, 40))]
    total = " + ".join(f"{a} * {b}" for a in names for b in names[: max(1, n // 40)])
    parameters = ", ".join(f"{p}: i64" for p in names)
    return f"kernel k(x: in f32[N], y: out f32[N], {parameters}) {{\n    grid n in tiles(N, 64) {{ y[n] = x[n] + (x[{total}] else 0) }}\n}}\n"


@kind
def prints(n):
    return body(f"print(\"{i}\", a)" for i in range(n))


@kind
def asserts(n):
    return body(f"assert(N > {i}, \"{i}\")" for i in range(n))


@kind
def atomics(n):
    return body(f"atomic_add(y[n], a * {i}.0)" for i in range(n)).replace("y: out", "y: inout")


@kind
def sorts(n):
    """Each step looks at two points of the step before."""
    lines, value = [], "a"
    for i in range(n):
        lines.append(f"let (p{i}, q{i}) = split(reshape({value}, (32, 2)))")
        lines.append(f"let v{i} = reshape(join(min(p{i}, q{i}), max(p{i}, q{i})).T, 64)")
        value = f"v{i}"
    return body(lines).replace("x[n]", "(x[n] else 0)").replace("= a\n    }", f"= {value}\n    }}")


# ---- what is computed while compiling ----


@kind
def static_for(n):
    return body([f"static for i in 0..{n} {{ a = sin(a) }}"])


@kind
def static_for_empty(n):
    return body([f"static for i in 0..{n} {{ }}"])


@kind
def static_for_nested(n):
    """4096 turns a level."""
    return body([f"static for i{i} in 0..4096 {{" for i in range(n)] + ["}"] * n)


@kind
def static_for_lets(n):
    return body([f"static for i in 0..{n} {{ static for j in 0..{n} {{ let _t = i * j }} }}"])


@kind
def doubling_calls(n):
    """2 to the power of n calls."""
    fns = ["fn f0(v: f32) -> f32 { return v + 1 }"]
    fns += [f"fn f{i}(v: f32) -> f32 {{ return f{i - 1}(f{i - 1}(v)) }}" for i in range(1, n + 1)]
    return "\n".join(fns) + "\n" + body([f"a = f{n}(a)"])


@kind
def doubling_empty_calls(n):
    fns = ["fn f0(_v: i64) { }"]
    fns += [f"fn f{i}(v: i64) {{\n    f{i - 1}(v)\n    f{i - 1}(v)\n}}" for i in range(1, n + 1)]
    return "\n".join(fns) + "\n" + body([f"f{n}(1)"])


@kind
def doubling_constants(n):
    return "const c0 = 1\n" + "".join(f"const c{i} = c{i - 1} + c{i - 1} - c{i - 1}\n" for i in range(1, n)) + body([f"a = a + f32(c{n - 1})"])


@kind
def constant_chain(n):
    return "".join(f"const c{i} = c{i + 1} + 1\n" for i in range(n)) + f"const c{n} = 1\n" + body(["a = a + f32(c0)"])


@kind
def constant_function(n):
    """A constant that a function computes in 2 to the power of n steps."""
    fns = ["fn f0(v: i64) -> i64 { return v + 1 }"]
    fns += [f"fn f{i}(v: i64) -> i64 {{ return f{i - 1}(f{i - 1}(v)) }}" for i in range(1, n + 1)]
    return "\n".join(fns) + f"\nconst C = f{n}(1)\n" + body(["a = a + f32(C)"])


@kind
def big_tile(n):
    return body(["a = a + sum(zeros[" + ", ".join(["16777216"] * min(n, 5)) + "](f32))"])


@kind
def function_values(n):
    """f[f[f[..]]]."""
    text = "g"
    for _ in range(n):
        text = f"h[{text}]"
    return ("fn g(v: f32) -> f32 { return v }\nfn h[e: fn (f32) -> f32](v: f32) -> f32 { return e(v) + 1 }\n" +
            body([f"a = {text}(a)"]))


@kind
def doubling_function_values(n):
    fns = ["fn g0(v: f32) -> f32 { return v }", "fn h[e: fn (f32) -> f32](v: f32) -> f32 { return e(e(v)) }"]
    text = "g0"
    for _ in range(n):
        text = f"h[{text}]"
    return "\n".join(fns) + "\n" + body([f"a = {text}(a)"])


# ---- what a kernel asks for ----


@kind
def parameters(n):
    return "kernel k(x: in f32[N], y: out f32[N], " + ", ".join(f"p{i}: f32" for i in range(n)) + ") {\n    grid n in tiles(N, 64) { y[n] = x[n] }\n}\n"


@kind
def tensors(n):
    names = [f"t{i}" for i in range(n)]
    lines = "".join(f"        a = a + {t}[n]\n" for t in names)
    return "kernel k(x: in f32[N], y: out f32[N], " + ", ".join(f"{t}: in f32[N]" for t in names) + ") {\n    grid n in tiles(N, 64) {\n        var a = x[n]\n" + lines + FOOT


@kind
def dimensions(n):
    return "kernel k(x: in f32[N], y: out f32[N], " + ", ".join(f"t{i}: in f32[D{i} + E{i}, D{i}, E{i}]" for i in range(n)) + ") {\n    grid n in tiles(N, 64) { y[n] = x[n] }\n}\n"


@kind
def ranks(n):
    return "kernel k(x: in f32[" + ", ".join(f"D{i}" for i in range(n)) + "], y: out f32[N]) {\n    grid n in tiles(N, 64) { y[n] = zeros[64](f32) }\n}\n"


@kind
def function_parameters(n):
    return "fn f(" + ", ".join(f"p{i}: f32" for i in range(n)) + ") -> f32 { return p0 }\n" + body(["a = f(" + ", ".join(["a"] * n) + ")"])


@kind
def generics(n):
    names = ", ".join(f"T{i}: f32 | f16" for i in range(n))
    return f"kernel k[{names}](x: in f32[N], y: out f32[N]) {{\n    grid n in tiles(N, 64) {{ y[n] = x[n] }}\n}}\n"


@kind
def function_generics(n):
    names = ", ".join(f"T{i}: const = {i}" for i in range(n))
    return f"fn f[{names}](v: f32) -> f32 {{ return v }}\n" + body(["a = f(a)"])


@kind
def statics(n):
    names = [f"D{i}" for i in range(n)]
    return "kernel k(x: in f32[N], y: out f32[N], " + ", ".join(f"t{i}: in f32[{d}]" for i, d in enumerate(names)) + ")\n    static " + ", ".join(names) + "\n{\n    grid n in tiles(N, 64) { y[n] = x[n] }\n}\n"


@kind
def requires(n):
    return HEAD.replace(" {\n    grid", "\n" + "".join(f"    require N % {i + 1} == 0\n" for i in range(n)) + "{\n    grid") + "        let a = x[n]\n" + FOOT


@kind
def tune_space(n):
    """n names of 16 values, and nothing satisfies."""
    names = ", ".join(f"A{i} in {{{', '.join(str(v + 1) for v in range(16))}}}" for i in range(n))
    return HEAD.replace(" {\n    grid", f"\n    tune {names} where A0 + A{n - 1} < 0\n{{\n    grid") + "        let a = x[n]\n" + FOOT


@kind
def tune_values(n):
    return HEAD.replace(" {\n    grid", f"\n    tune B in {{{', '.join(str(v + 1) for v in range(n))}}} where B > {n - 1}\n{{\n    grid") + "        let a = x[n]\n" + FOOT


@kind
def tune_clauses(n):
    return HEAD.replace(" {\n    grid", "\n" + "".join(f"    tune A{i} in {{1, 2}} where A{i} > 0\n" for i in range(n)) + "{\n    grid") + "        let a = x[n]\n" + FOOT


@kind
def tune_unsatisfied_clauses(n):
    return HEAD.replace(" {\n    grid", "\n" + "".join(f"    tune A{i} in {{{', '.join(str(v + 1) for v in range(1000))}}} where A{i} > 999\n" for i in range(n)) + "{\n    grid") + "        let a = x[n]\n" + FOOT


@kind
def allows(n):
    return HEAD.replace(" {\n    grid", "\n    allow " + ", ".join(["rounding"] * n) + "\n{\n    grid") + "        let a = x[n]\n" + FOOT


# ---- what a file holds ----


@kind
def kernels(n):
    return "".join(body([]).replace("kernel k", f"kernel k{i}").replace("var a", "let a") for i in range(n))


@kind
def heavy_kernels(n):
    """Each within the limits."""
    one = body(["static for i in 0..4000 { a = a * a + x[n] }"])
    return "".join(one.replace("kernel k", f"kernel k{i}") for i in range(n))


@kind
def functions(n):
    return "".join(f"fn f{i}(v: f32) -> f32 {{ return v * {i}.0 }}\n" for i in range(n))


@kind
def constants(n):
    return "".join(f"const c{i} = {i}\n" for i in range(n))


@kind
def asserts_of_file(n):
    return "".join(f"static_assert({i} >= 0)\n" for i in range(n))


@kind
def same_names(n):
    return "".join(f"const c = {i}\n" for i in range(n))


@kind
def exports(n):
    return body([]) + "".join(f"export k as e{i}\n" for i in range(n))


@kind
def exports_wrong(n):
    return body([]) + "".join(f"export k{i}\n" for i in range(n))


@kind
def tests(n):
    return body([]) + "".join(f"test \"t{i}\" {{\n    let x = arange(f32, 5)\n    let y = run k(x = x)\n    assert(all(y == x))\n}}\n" for i in range(n))


@kind
def test_runs(n):
    return body([]) + "test \"t\" {\n    let x0 = arange(f32, 5)\n" + "".join(f"    let x{i + 1} = run k(x = x{i})\n" for i in range(n)) + f"    assert(all(x{n} == x0))\n}}\n"


@kind
def test_for(n):
    return body([]) + f"test \"t\" {{\n    let x = arange(f32, 5)\n    static for i in 0..{n} {{\n        let y = run k(x = x)\n        assert(all(y == x))\n    }}\n}}\n"


@kind
def imports(n):
    return {"imports.tile": "".join(f"import \"m{i}.tile\"\n" for i in range(n)) + body([]),
            **{f"m{i}.tile": f"const c{i} = {i}\n" for i in range(n)}}


@kind
def import_chain(n):
    return {"import_chain.tile": "import \"m0.tile\"\n" + body([]),
            **{f"m{i}.tile": (f"import \"m{i + 1}.tile\"\n" if i + 1 < n else "") + f"const c{i} = {i}\n" for i in range(n)}}


@kind
def import_diamonds(n):
    return {"import_diamonds.tile": "import \"a0.tile\"\nimport \"b0.tile\"\n" + body([]),
            **{f"{s}{i}.tile": (f"import \"a{i + 1}.tile\"\nimport \"b{i + 1}.tile\"\n" if i + 1 < n else "") + f"const {s}c{i} = {i}\n" for i in range(n) for s in "ab"}}


@kind
def import_same(n):
    return {"import_same.tile": "import \"m.tile\"\n" * n + body([]), "m.tile": "const c = 1\n"}


@kind
def unknown_names(n):
    return body(f"a = a + q{i}" for i in range(n))


@kind
def unused_names(n):
    return body(f"let q{i} = a" for i in range(n))


@kind
def warnings(n):
    return body(["let h = f16(a)"] + [f"let _q{i} = h * h * h" for i in range(n)])


@kind
def syntax_errors(n):
    return "fn (\n" * n


@kind
def wrong_kernels(n):
    return "".join(body(["a = nothing"]).replace("kernel k", f"kernel k{i}") for i in range(n))


# ---- text ----


@kind
def deep_parentheses(n):
    return body(["a = " + "(" * n + "a" + ")" * n])


@kind
def deep_unary(n):
    return body(["a = " + "-" * n + "a"])


@kind
def deep_calls(n):
    return body(["a = " + "abs(" * n + "a" + ")" * n])


@kind
def deep_types(n):
    return "fn f(v: " + "(" * n + "f32" + ")" * n + ") { }\n"


@kind
def chain(n):
    return body(["a = " + " + ".join(["a"] * n)])


@kind
def else_chain(n):
    return body(["a = " + " else ".join(["a"] * n)])


@kind
def else_ifs(n):
    return body([" else ".join(f"if N > {i} {{ a = a + 1 }}" for i in range(n))])


@kind
def index_entries(n):
    return body(["a = a + x[" + ", ".join(["0"] * n) + "]"])


@kind
def arguments(n):
    return body(["a = max(" + ", ".join(["a"] * n) + ")"])


@kind
def tuple_parts(n):
    return "fn f(v: f32) -> (" + ", ".join(["f32"] * n) + ") { return (" + ", ".join(["v"] * n) + ") }\n" + body(["let (" + ", ".join(f"b{i}" for i in range(n)) + ") = f(sum(a))", "a = a + b0"])


@kind
def long_line(n):
    return body(["; ".join("a = a * 2" for _ in range(n))])


@kind
def long_name(n):
    return body([f"let {'q' * n} = a", f"a = {'q' * n} + {'q' * n}1"])


@kind
def long_text(n):
    return f"static_assert(1 > 2, \"{'q' * n}\")\n" + body([])


@kind
def long_number(n):
    return f"const c = {'1' * n}\n" + body([])


@kind
def long_float(n):
    return f"const c = 1.{'1' * n}\nconst d = {'9' * n}.0\n" + body([])


@kind
def long_comment(n):
    return "//" + "q" * n + "\n/*" + "\n*" * n + "*/\n" + body([])


@kind
def doc_comments(n):
    return "/// words\n" * n + body([])


@kind
def documented(n):
    return "".join(f"/// words\nconst c{i} = 1\n" for i in range(n))


@kind
def empty_lines(n):
    return "\n;" * n + body([])


@kind
def zero_bytes(n):
    return "\0" * n


@kind
def open_brackets(n):
    return "{([" * n


@kind
def nested_blocks(n):
    return body(["if N > 0 {" * n + "}" * n])


def main():
    if len(sys.argv) == 1:
        for name, function in KINDS.items():
            print(name, " ".join((function.__doc__ or "").split()))
        return 0
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    name, size, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    made = KINDS[name](size)
    files = made if isinstance(made, dict) else {f"{name}.tile": made}
    for path, text in files.items():
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
