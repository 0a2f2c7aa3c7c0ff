"""Runs the blocks of Python of a page of docs/, from the first to the last: they hold what they assert. usage: test_pages.py PAGE.."""
import os
import pathlib
import re
import sys
import types

os.environ["TILE_CACHE_DIR"] = ""
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def run(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    module = types.ModuleType(page.removesuffix(".md").replace("-", "_"))
    sys.modules[module.__name__] = module  # torch.compile imports what it traces by this name
    for i, block in enumerate(blocks):
        exec(compile(block, f"docs/{page}, block {i + 1}", "exec"), module.__dict__)
    print(f"docs/{page}: {len(blocks)} blocks ran")
    return len(blocks) == 0


if __name__ == "__main__":
    sys.exit(max(run(page) for page in sys.argv[1:]))
