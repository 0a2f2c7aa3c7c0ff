#!/bin/sh
# Each code of base/diagnostics.def has a page in docs/errors with its message and a corrected text, each page has a code,
# and the index lists all of them.
set -eu
cd "$(dirname "$0")/.."
sed -n 's/^DIAGNOSTIC([A-Z_0-9]*, "\([a-z0-9-]*\)".*/\1/p' base/diagnostics.def | sort >"${TMPDIR:-/tmp}/codes.$$"
trap 'rm -f "${TMPDIR:-/tmp}/codes.$$"' EXIT
codes=${TMPDIR:-/tmp}/codes.$$
# Codes that no short text can cause.
without_example=' long-header many-parameters many-files tune-points too-much-code too-large bad-utf8 too-deep too-many-operations no-such-binding internal '

report=$(
    ls docs/errors | sed -n 's/\.md$//p' | grep -v README | sort | diff "$codes" - |
        sed -n -e 's/^< \(.*\)/no page for the code \1/p' -e 's/^> \(.*\)/no code for the page docs\/errors\/\1.md/p'
    while read -r code; do
        page=docs/errors/$code.md
        [ -f "$page" ] || continue
        [ "$(head -n 1 "$page")" = "# $code" ] || echo "$page: the first line is not '# $code'"
        grep -q "($code.md)" docs/errors/README.md || echo "docs/errors/README.md: no line for $code"
        case $without_example in *" $code "*) continue ;; esac
        grep -q "\[$code\]" "$page" || echo "$page: no message with the code"
    done <"$codes"
)
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "$(wc -l <"$codes") codes, each with a page"
