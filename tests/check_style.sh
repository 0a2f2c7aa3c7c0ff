#!/bin/sh
# Files have at most 650 lines, functions at most 60; no unfinished work, no tabs or trailing blanks.
set -eu
cd "$(dirname "$0")/.."
files=$(find base bench cpu driver examples include lang launch lowering lsp editors mlir_bridge object parser ptx scripts stdlib tests tools \
    \( -name '*.[ch]' -o -name '*.cc' -o -name '*.def' -o -name '*.re' -o -name '*.tile' -o -name '*.sh' -o -name '*.py' \
    -o -name '*.tir' \) | grep -vE '/tree-sitter-tile/src/(parser.c|tree_sitter/)' | sort) # what tree-sitter generates
code=$(echo "$files" | grep -E '\.(c|h|cc|def|re)$')

report=$(
    for file in $code; do
        lines=$(wc -l <"$file")
        [ "$lines" -le 650 ] || echo "$file: $lines lines, at most 650 are allowed"
    done

    # A function begins with a line at column 0, or its continuation, that ends in "{", and ends with "}" at column 0.
    # The rules between re2c's marks are a table, not code.
    for file in $code; do
        awk '
            /\/\*!re2c/ { table = FNR }
            /\*\/$/ && table { tables += FNR - table; table = 0 }
            /^[A-Za-z_]/ { head = FNR; kind = $0 }
            !start && head && /\{$/ && kind !~ /^(struct|union|enum|typedef|extern)|=/ { start = head; tables = 0 }
            /^\}/ {
                lines = FNR - start + 1 - tables
                if (start && lines > 60)
                    printf "%s:%d: function of %d lines, at most 60 are allowed\n", FILENAME, start, lines
                start = 0; head = 0
            }' "$file"
    done

    # The words are split so that this file does not match itself.
    words='TO''DO|FIX''ME|XX''X|for ''now|not ''implemented|unimple''mented|place''holder'
    # shellcheck disable=SC2086
    grep -nEi "\b($words)\b" $files | sed 's/$/   (unfinished business)/'
    # shellcheck disable=SC2086
    grep -nE '[[:blank:]]+$' $files | sed 's/$/   (trailing blanks)/'
    # shellcheck disable=SC2086
    grep -nP '\t' $code | sed 's/$/   (tab)/'
    true
)
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "style: $(echo "$files" | wc -l) files looked at"
