"""Runs the blocks of Python of a page of docs/, from the first to the last: they hold what they assert. usage: test_pages.py PAGE.."""
import os
import pathlib
import re
import sys

os.environ["TILE_CACHE_DIR"] = ""
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def run(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names = {"__name__": page}
    for i, block in enumerate(blocks):
        exec(compile(block, f"docs/{page}, block {i + 1}", "exec"), names)
    print(f"docs/{page}: {len(blocks)} blocks ran")
    return len(blocks) == 0


if __name__ == "__main__":
    sys.exit(max(run(page) for page in sys.argv[1:]))
