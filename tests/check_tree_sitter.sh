#!/bin/sh
# The tree-sitter grammar in editors/: it can be generated, its trees are those of its corpus, and every .tile file of the
# library, the examples and tests/programs, and every right example of the documents, is parsed without an error. Skipped
# where the `tree-sitter` command is not installed.
set -eu
cd "${TILE_SOURCE_DIR:?names the source tree}"
if ! command -v tree-sitter >/dev/null; then
    echo "skipped: tree-sitter is not installed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r editors/tree-sitter-tile "$work/grammar"
find stdlib examples tests/programs -name '*.tile' | sed "s|^|$PWD/|" >"$work/files"
# Blocks of documents that are right texts of the language: those with a kernel of the IR begin otherwise.
mkdir "$work/docs"
awk -v folder="$work/docs" '
    /^```tile/ && !/wrong/ { inside = 1; name = folder "/" ++n ".tile"; next }
    /^```/ { inside = 0 }
    inside && !begun[name]++ && /^func / { inside = 0 }
    inside { print >name }' docs/*.md docs/errors/*.md
find "$work/docs" -name '*.tile' >>"$work/files"
cd "$work/grammar"
tree-sitter generate
tree-sitter test
tree-sitter parse --quiet --paths "$work/files"
echo "$(wc -l <"$work/files") texts are parsed"
