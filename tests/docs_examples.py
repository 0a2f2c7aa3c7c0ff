"""Holds the examples in docs/*.md and docs/errors/*.md to what tilec says and does.

    docs_examples.py [--update] TILEC PAGE.md..

A fenced block's first word is its language, the rest says what must hold. Blocks of a page share a directory.

    ```tile                  `tilec check` accepts it, without a warning
    ```tile softmax.tile     the same; the file keeps this name for the commands of the page
    ```tile wrong CODE       it is refused, with this code and no other; behind the code may stand a file name
    ```tile warns CODE       it is accepted with this warning
    ```sh                    each line `tilec ..` is run and succeeds; blocks run side by side, lines in turn
    ```sh fails              each line `tilec ..` is run and ends with status 1

A ```text block right behind one of these is exactly what is printed; --update writes it. Blocks of other languages,
and ``` alone, are not looked at.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FENCE = re.compile(r"^```(\S*)[ ]*(.*?)\s*$")


class Block:
    def __init__(self, page, line, words, lines):
        self.page, self.line, self.words, self.size = page, line, words, len(lines)
        self.text = "".join(line + "\n" for line in lines)
        self.output = None  # the block of text behind it
        self.printed = ""

    def problem(self, words):
        return f"{self.page}:{self.line}: {words}\n" + "".join(f"    {line}\n" for line in self.printed.splitlines())


def read_blocks(page, lines):
    blocks, last, number = [], None, 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if not fence:
            if lines[number].strip():
                last = None
            number += 1
            continue
        end = number + 1
        while end < len(lines) and lines[end].rstrip() != "```":
            end += 1
        block = Block(page, number + 1, " ".join(fence.groups()).split(), lines[number + 1:end])
        kind = block.words[0] if block.words else ""
        if kind == "text" and last:
            last.output = block
        last = block if kind in ("tile", "sh") else None
        if last:
            blocks.append(block)
        number = end + 1
    return blocks


def run(tilec, arguments, directory):
    done = subprocess.run([tilec] + arguments, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def codes(text, severity):
    return set(re.findall(rf"^\S+: {severity}: .* \[([a-z0-9-]+)\]$", text, re.M))


def read_words(block):
    """What is expected ("wrong", "warns" or None), with which code, and the file's name, where the page gives one."""
    words = block.words[1:]
    expects = words[0] if words and words[0] in ("wrong", "warns") else None
    code = words[1] if expects and len(words) > 1 else None
    names = words[2:] if expects else words
    understood = len(names) < 2 and (code or not expects)
    return expects, code, names[0] if names else None, understood


def write_file(block, directory):
    """The files that have names, written before any is compiled, since they may import each other."""
    name = read_words(block)[2]
    if name:
        with open(os.path.join(directory, name), "w") as file:
            file.write(block.text)


def check_tile(tilec, block, directory):
    """What is wrong with a block of the language, or None."""
    words = block.words[1:]
    expects, code, name, understood = read_words(block)
    if not understood:
        return block.problem("the words of this fence are not understood")
    if not name:
        name = "example.tile"
        directory = tempfile.mkdtemp(dir=directory)
        with open(os.path.join(directory, name), "w") as file:
            file.write(block.text)
    status, block.printed = run(tilec, ["check", name], directory)
    errors, warnings = codes(block.printed, "error"), codes(block.printed, "warning")
    if expects == "wrong":
        held = status == 1 and errors == {code}
    else:
        held = status == 0 and warnings == ({code} if expects else set())
    return None if held else block.problem(f"expected {' '.join(words) or 'no complaint'}, but tilec says (status {status})")


def check_commands(tilec, block, directory):
    wanted = 1 if block.words[1:] == ["fails"] else 0
    if block.words[1:] not in ([], ["fails"]):
        return block.problem("the words of this fence are not understood")
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "tilec":
            return block.problem(f"a block of commands runs only tilec, not {words[0]}")
        status, printed = run(tilec, words[1:], directory)
        block.printed += printed
        if status != wanted:
            return block.problem(f"status {status} instead of {wanted}: {line}")
    return None


def check_page(tilec, page, update):
    with open(page) as file:
        lines = file.read().splitlines()
    blocks = read_blocks(page, lines)
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(4) as pool:
        texts = [block for block in blocks if block.words[0] == "tile"]
        for block in texts:
            write_file(block, directory)
        problems = list(pool.map(lambda block: check_tile(tilec, block, directory), texts))
        commands = [block for block in blocks if block.words[0] == "sh"]
        problems += pool.map(lambda block: check_commands(tilec, block, directory), commands)
    problems = [problem for problem in problems if problem]
    for block in reversed(blocks):
        if not block.output or block.output.text.strip() == block.printed.strip():
            continue
        if not update:
            problems.append(block.problem("the text behind this block is not what is printed"))
            continue
        begin = block.output.line
        lines[begin:begin + block.output.size] = block.printed.strip().splitlines()
    if update:
        with open(page, "w") as file:
            file.write("\n".join(lines) + "\n")
    return len(blocks), problems


def main():
    arguments = sys.argv[1:]
    update = arguments[:1] == ["--update"]
    tilec, *pages = arguments[1:] if update else arguments
    total, problems = 0, []
    for page in pages:
        count, found = check_page(os.path.abspath(tilec), page, update)
        total += count
        problems += found
    print("\n".join(problems), end="")
    print(f"{total} examples in {len(pages)} pages, {len(problems)} wrong")
    return 1 if problems or not total else 0


sys.exit(main())
