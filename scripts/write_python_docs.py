"""Prints docs/python-api.md from the docstrings of the package. usage: write_python_docs.py > docs/python-api.md"""
import inspect

import tile
import tile.bench
from tile import _kernel


def text(doc):
    return inspect.cleandoc(doc or "")


def show(title, thing, doc=None):
    """A heading and the docstring, of which paragraphs with aligned columns or indented code are shown as they are."""
    print(f"\n### `{title}`")
    for paragraph in text(doc or thing.__doc__).split("\n\n"):
        form = any(line.startswith("    ") or "  " in line.strip() for line in paragraph.split("\n"))
        print(f"\n```\n{paragraph}\n```" if form else f"\n{paragraph}")


def signature(function, name):
    return f"{name}{inspect.signature(function)}".replace("(self, ", "(").replace("(self)", "()")


def main():
    print("# The Python package\n\nMade by scripts/write_python_docs.py from docstrings; [python.md](python.md) introduces them.")
    print("\n## tile\n\n" + text(tile.__doc__).split("\n")[0])
    for name in ("compile", "load", "plan"):
        show(signature(getattr(tile, name), f"tile.{name}"), getattr(tile, name))
    show("tile.stdlib", type(tile.stdlib))
    for name in ("observe", "config"):
        show(f"tile.{name}", getattr(tile, name))
    show("tile.backends", type(tile.backends))
    show("tile.backends.cpu", type(tile.backends.cpu))
    show("tile.backends.cuda", type(tile.backends.cuda))
    print("\n## Kernels and modules")
    show("tile.Module", tile.Module)
    show("Module.with_settings(**settings)", tile.Module.with_settings)
    print("\n### `tile.Kernel`\n\nCalled with arrays; see [python.md](python.md).\n\n| member | |\n|---|---|")
    for name in ("name", "signature", "doc", "prints", "is_gpu", "parameters", "settings", "stats"):
        print(f"| `{name}` | {getattr(tile.Kernel, name).__doc__} |")
    show("Kernel.bind(*arrays)", None, tile.Kernel.bind.__doc__)
    for name in ("with_settings", "prepare", "explain", "emit", "layouts"):
        show(signature(getattr(_kernel, name), f"Kernel.{name}"), getattr(_kernel, name))
    for name in ("Parameter", "Setting", "Stats"):
        show(name, getattr(_kernel, name))
    print("\n## Measuring\n\n" + text(tile.bench.__doc__))
    show("Kernel.bench(*arrays, flops=None, seconds=0.5)", tile.bench.run)
    show("Result", tile.bench.Result)
    show("Kernel.tune(*arrays, progress=False, seconds=0.05, most=256)", tile.bench.tune)
    show("Tuned", tile.bench.Tuned)
    print("\n## Exceptions")
    for name in ("Error", "CompileError", "ArgumentError", "SettingError"):
        show(f"tile.{name}", getattr(tile, name))
    print("\n## Frameworks\n\n`tile.torch.op(name, kernel, ..)` has a page of its own, [python-torch.md](python-torch.md), and so has "
          "`tile.jax.call(kernel, *arguments)`, [python-jax.md](python-jax.md).")


if __name__ == "__main__":
    main()
