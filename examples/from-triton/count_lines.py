"""Counts lines of code, and checks the table of README.md.

usage: count_lines.py                       checks what the table says of this folder's files
       count_lines.py TRITON LIGER          checks their columns too: folders with the tutorials of Triton (python/tutorials) and the
                                            operations of Liger-Kernel (src/liger_kernel/ops)
       count_lines.py TRITON LIGER --write  writes the table anew

A line counts if something of it is left without comments, documentation and blanks. Of a Python file the definitions count that
compute or launch: functions and classes with their decorators, without imports, and without the functions of tutorials that measure,
test or compare (LEFT_OUT)."""
import ast
import io
import pathlib
import re
import sys
import tokenize

HERE = pathlib.Path(__file__).resolve().parent
LEFT_OUT = re.compile(r"^(bench|test|validate|show_profile|naive_|torch_|triton_|device_blas|proton_|run_test|is_|num_sms$|supports_|"
                      r"initialize_block_scaled)")
# File of this folder: its origin, relative to one of the two folders.
ORIGINS = [
    ("tutorials/01_vector_add", "01-vector-add"),
    ("tutorials/02_fused_softmax", "02-fused-softmax"),
    ("tutorials/03_matrix_multiplication", "03-matrix-multiplication"),
    ("tutorials/04_low_memory_dropout", "04-low-memory-dropout"),
    ("tutorials/05_layer_norm", "05-layer-norm"),
    ("tutorials/06_fused_attention", "06-fused-attention"),
    ("tutorials/07_extern_functions", "07-extern-functions"),
    ("tutorials/08_grouped_gemm", "08-grouped-gemm"),
    ("tutorials/09_persistent_matmul", "09-persistent-matmul"),
    ("tutorials/10_block_scaled_matmul", "10-block-scaled-matmul"),
]
LIGER = ("attn_res cross_entropy dyt embedding fused_add_rms_norm fused_linear_cross_entropy fused_linear_jsd fused_moe "
         "fused_neighborhood_attention geglu group_norm grpo_loss jsd kl_div layer_norm llama4_rope mhc mlp mm_int8int2 "
         "modulated_rms_norm multi_token_attention poly_norm qwen2vl_mrope relu_squared rms_norm rope softmax sparsemax swiglu tvd "
         "vocab_parallel_cross_entropy").split()
EXPERIMENTAL = {"embedding", "mm_int8int2"}
ORIGINS += [(f"liger/{name}", f"{'experimental/' if name in EXPERIMENTAL else ''}{name}") for name in LIGER]
ORIGINS.append(("liger/element_mul", "utils"))
ALSO = {"fused_moe": "fused_moe_kernels"}  # a part of it that has a file of its own
ONLY = {"utils": {"element_mul_kernel"}}


def count_tile(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return sum(1 for line in text.splitlines() if line.split("//")[0].strip())


def documentation(tree):
    """The lines of texts that stand alone."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


def count_python(path, only=None):
    text = path.read_text()
    tree = ast.parse(text)
    written = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            written.update(range(token.start[0], token.end[0] + 1))
    written -= documentation(tree)
    count = 0
    for node in tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or (node.name not in only if only else LEFT_OUT.match(node.name)):
            continue
        first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
        count += len(written & set(range(first, node.end_lineno + 1)))
    return count


def rows_of(triton, liger):
    for ours, theirs in ORIGINS:
        folder = triton if ours.startswith("tutorials/") else liger
        number = count_python(folder / f"{theirs}.py", ONLY.get(theirs)) if folder else None
        if folder and theirs in ALSO:
            number += count_python(folder / f"{ALSO[theirs]}.py")
        yield ours, count_tile(HERE / f"{ours}.tile"), number


def main():
    folders = [pathlib.Path(argument) for argument in sys.argv[1:] if argument != "--write"]
    triton, liger = folders if len(folders) == 2 else (None, None)
    readme = HERE / "README.md"
    text = readme.read_text()
    found = {name: (int(ours), int(theirs)) for name, ours, theirs in re.findall(r"^\| \[(.*?)\]\(.*?\) \| (\d+) \| (\d+) \|", text, re.M)}
    files = {str(path.relative_to(HERE).with_suffix("")) for path in HERE.rglob("*.tile")}
    wrong = [f"{name}: no row of the table, or no file" for name in sorted(files ^ {name for name, _ in ORIGINS})]
    rows = list(rows_of(triton, liger))
    if "--write" in sys.argv[1:] and triton:
        table = "| file | lines | Triton's |\n|---|---|---|\n"
        table += "".join(f"| [{name}]({name}.tile) | {ours} | {theirs} |\n" for name, ours, theirs in rows)
        table += f"| all | {sum(row[1] for row in rows)} | {sum(row[2] for row in rows)} |\n"
        text = re.sub(r"\| file \| lines \|.*?\n(?=\n|\Z)", lambda _: table, text, flags=re.S)
        readme.write_text(text)
    else:
        for name, ours, theirs in rows:
            if name not in found or found[name][0] != ours or theirs not in (None, found[name][1]):
                wrong.append(f"{name}: {ours} and {theirs} lines, the table has {found.get(name)}")
        sums = tuple(sum(values) for values in zip(*found.values()))
        if f"| all | {sums[0]} | {sums[1]} |" not in text:
            wrong.append(f"the table's sums are {sums}")
    print("\n".join(wrong) if wrong else f"{len(rows)} files, as the table says")
    sys.exit(bool(wrong))


main()
