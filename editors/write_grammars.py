#!/usr/bin/env python3
"""Writes the words of the language into the grammars of editors, or checks that they have them all.

usage: write_grammars.py TILEC [--check]

`tilec help words` prints the words from the tables of the compiler. In each grammar a line that ends in one of the marks
below, or the pattern of that name, is replaced as a whole."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTMATE = os.path.join(HERE, "vscode/syntaxes/tile.tmLanguage.json")
VIM = os.path.join(HERE, "neovim/syntax/tile.vim")
TREE_SITTER = os.path.join(HERE, "tree-sitter-tile/queries/highlights.scm")
# Keywords by what they are shown as; a keyword that is in none of these lists is shown as one of control flow.
DECLARATIONS = "kernel fn const let var temp import export test".split()
MODIFIERS = "static require allow tune in out inout unsafe".split()
LITERALS = "true false inf nan".split()


def read_words(tilec):
    words = {}
    for line in subprocess.run([tilec, "help", "words"], check=True, capture_output=True, text=True).stdout.splitlines():
        title, _, names = line.partition(":")
        words[title] = names.split()
    keywords = words["keywords"]
    other = [w for w in keywords if w not in DECLARATIONS + MODIFIERS + LITERALS]
    for known in DECLARATIONS + MODIFIERS + LITERALS:
        if known not in keywords:
            sys.exit(f"{known} is no keyword any more")
    return {
        "control": other,
        "declaration": DECLARATIONS,
        "modifier": MODIFIERS,
        "literal": LITERALS,
        "place": words["words with a meaning in some places"],
        "type": words["types"],
        "class": words["classes of types"],
        "function": words["built-in functions"],
    }


def longest_first(names):
    return sorted(names, key=lambda name: (-len(name), name))


def textmate(words, text):
    words = dict(words, type=words["type"] + words["class"])
    grammar = json.loads(text)
    forms = {"control": r"\b(?:%s)\b", "declaration": r"\b(?:%s)\b", "modifier": r"\b(?:%s)\b", "literal": r"\b(?:%s)\b",
             "place": r"\b(?:%s)\b", "type": r"\b(?:%s)\b(?!\s*=[^=])", "function": r"(?<![.\w])(?:%s)\b(?=\s*[(\[])"}
    for name, form in forms.items():
        grammar["repository"][name]["match"] = form % "|".join(longest_first(words[name]))
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"


def tree_sitter(words, text):
    for name in ("type", "class", "function"):
        quoted = " ".join(f'"{word}"' for word in words[name])
        text, count = re.subn(rf'(?m)^(  \(#any-of\? @[a-z.]+) .*\)\) ; {name}$', rf'\g<1> {quoted})) ; {name}', text)
        if count != 1:
            sys.exit(f"{TREE_SITTER}: {count} lines of {name}")
    return text


def vim(words, text):
    words = dict(words, type=words["type"] + words.pop("class"))
    for name, names in words.items():
        group = "tile" + name.capitalize()
        line = f"syntax keyword {group} {' '.join(names)}"
        text, count = re.subn(rf"(?m)^syntax keyword {group} .*$", line, text)
        if count != 1:
            sys.exit(f"{VIM}: {count} lines of {group}")
    return text


def main():
    words, wrong = read_words(sys.argv[1]), 0
    for path, write in ((TEXTMATE, textmate), (TREE_SITTER, tree_sitter), (VIM, vim)):
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after = write(words, before)
        if after == before:
            continue
        if "--check" in sys.argv:
            print(f"{path} has not the words of the language: run editors/write_grammars.py")
            wrong = 1
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(after)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
