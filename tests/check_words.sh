#!/bin/sh
# Comments of sources and documents use the terms of docs/glossary.md: the words of the last column of its second table are
# not used. `rooms` are the folders whose comments are looked at, without code and strings, and without blocks and `quotations`
# of documents; `texts` those whose strings are, which users may read.
set -eu
cd "$(dirname "$0")/.."
rooms='base docs driver include lang launch lowering lsp editors mlir_bridge object parser ptx cpu bench python scripts tests tools'
texts='base lang parser lowering cpu ptx mlir_bridge object driver launch lsp tools'
# These are made from tables, or have the words themselves.
made='^docs/(passes|ops|stdlib|glossary)\.md$|^tests/check_words\.sh$'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk '/^## / { on = $0 == "## One term for one thing" } on' docs/glossary.md | awk -F'|' '/^\|/ { print $4 }' |
    grep -o '`[^`]*`' | tr -d '`' | sort -u >"$work/words"
[ -s "$work/words" ] || { echo "docs/glossary.md: no words that are not used"; exit 1; }
words=$(paste -sd'|' "$work/words")

# comments FILE: each comment as one line, behind the file and the number of its first line
comments() {
    awk -v file="$1" '
        function flush() { if (text != "") print file ":" first ": " text; text = "" }
        { line = $0
          if (!inside) gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
          while (line != "") {
              if (inside) {
                  end = index(line, "*/")
                  part = end ? substr(line, 1, end - 1) : line
                  sub(/^ *\*? */, "", part); text = text " " part
                  if (!end) break
                  inside = 0; flush(); line = substr(line, end + 2)
                  gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
              } else {
                  begin = index(line, "/*"); slashes = index(line, "//")
                  if (slashes && (!begin || slashes < begin)) { first = FNR; text = substr(line, slashes + 2); flush(); break }
                  if (!begin) break
                  inside = 1; first = FNR; line = substr(line, begin + 2)
              }
          }
        }' "$1"
}
# hashes FILE: comments behind # and what stands between """, line by line
hashes() {
    awk -v file="$1" '
        { text = ""; count = gsub(/"""/, "\001") }
        inside || count { text = $0; if (count % 2) inside = !inside }
        !text && match($0, /(^|[ \t])#/) { text = substr($0, RSTART + RLENGTH) }
        text { gsub(/`[^`]*`/, "``", text); print file ":" FNR ": " text }' "$1"
}
# prose FILE: each paragraph of a document as one line, without blocks of code and quotations
prose() {
    awk -v file="$1" '
        function flush() { gsub(/`[^`]*`/, "``", text); if (text != "") print file ":" first ": " text; text = "" }
        /^ *```/ { flush(); code = !code; next }
        code { next }
        /^    / && text == "" { next }
        /^ *$/ { flush(); next }
        /^\|/ { flush() }
        { if (text == "") first = FNR; text = text " " $0 }
        END { flush() }' "$1"
}

for room in $rooms; do
    find "$room" -name '*.[ch]' -o -name '*.cc' -o -name '*.re' -o -name '*.def' -o -name '*.md' \
        -o -name '*.sh' -o -name '*.py'
done | sort | grep -vE "$made" | while read -r file; do
    case $file in *.md) prose "$file" ;; *.sh | *.py) hashes "$file" ;; *) comments "$file" ;; esac
done >"$work/text"
# shellcheck disable=SC2086
find $texts -name '*.c' -o -name '*.cc' -o -name '*.re' -o -name '*.def' | sort |
    xargs grep -noE '"([^"\\]|\\.)*"' | grep ' ' | sed 's/:"/: "/' >"$work/strings"
[ "$(wc -l <"$work/strings")" -gt 1000 ] || { echo "there are hardly any strings: the scan is wrong"; exit 1; }
[ "$(wc -l <"$work/text")" -gt 1000 ] || { echo "there are hardly any comments: the scan is wrong"; exit 1; }

# What has such a word as part of another term.
sed -E 's/\b(round[ -]trips?|trip[ -]counts?|called one another)\b//gI' "$work/text" "$work/strings" | grep -iE "\b($words)\b" | while IFS= read -r line; do
    found=$(printf '%s\n' "$line" | grep -ioE "\b($words)\b" | sort -u | paste -sd, -)
    echo "${line%%: *}: '$found' is not a term here; docs/glossary.md has the one that is"
done >"$work/report"
if [ -s "$work/report" ]; then
    cat "$work/report"
    exit 1
fi
echo "$(wc -l <"$work/text") comments and paragraphs of $rooms, $(wc -l <"$work/strings") strings: the words are those of docs/glossary.md"
