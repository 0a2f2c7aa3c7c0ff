#!/bin/sh
# docs/architecture.md agrees with the sources: its stages are those of driver/compile/stages.def, its rooms and what each
# may include those of tests/check_includes.sh, the passes and attributes of its decisions are in passes.def and
# attributes.def, and files of the pass's folder use the attribute. With --stages it prints the table of the stages.
set -eu
cd "$(dirname "$0")/.."
page=docs/architecture.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One row for each STAGE: a stage includes the times of the following steps, and the forms that `tilec emit` prints after it.
stages() {
    awk '
        function field(n) { split($0, part, /", *"|"/); return part[n] }
        /^STAGE\(/ { id = $0; sub(/^STAGE\(/, "", id); sub(/,.*/, "", id)
                     order[++count] = id; assumes[id] = field(2); gives[id] = field(3); pending = pending " " id }
        /^STEP\(/ { if (pending == "") pending = " " order[count]
                    n = split(pending, ids, " ")
                    for (i = 1; i <= n; i++) steps[ids[i]] = steps[ids[i]] (steps[ids[i]] ? ", " : "") "`" field(2) "`"
                    pending = "" }
        /^FORM\(/ { at = $0; sub(/.*, */, "", at); sub(/\).*/, "", at)
                    forms[at] = forms[at] (forms[at] ? ", " : "") "`" field(2) "`" }
        END { for (i = 1; i <= count; i++)
                  printf "| %s | %s | %s | %s | %s |\n", order[i], assumes[order[i]], gives[order[i]], steps[order[i]],
                         forms[order[i]] }' driver/compile/stages.def
}
# section TITLE: the rows of the table below the heading, without their head
section() {
    awk -v title="## $1" '/^## / { on = $0 == title } on && /^\|/' "$page" | tail -n +3
}
# folders of the passes, by name
passes() {
    for folder in lowering cpu ptx; do
        sed -n "s/^PASS([a-z_0-9]*, \"\([a-z-]*\)\".*/\1 $folder/p" "$folder/passes.def"
    done
}
words() { echo "$1" | grep -o '`[^`]*`' | tr -d '`' || true; }

# decision CARRIED DECIDED DONE: a row of the table
decision() {
    for pass in $(words "$2$3"); do
        folder=$(sed -n "s/^$pass //p" "$work/passes")
        [ -n "$folder" ] || { echo "$page: there is no pass '$pass'"; continue; }
        for word in $(words "$1"); do
            key=$(sed -n "s/^ATTRIBUTE(\([A-Z_]*\), \"$word\".*/TILE_ATTRIBUTE_\1/p" lang/ir/attributes.def)
            [ -n "$key" ] || key=$(sed -n "s/^OP(\([A-Z_0-9]*\), \"$word\".*/TILE_OP_\1/p" lang/ir/ops.def)
            [ -n "$key" ] || { grep -qE "[ *]$word(\\[[A-Z_]*\\])?[,;]" lang/ir/ir.h lang/ir/types.h && key="->$word"; }
            [ -n "$key" ] || { echo "$page: '$word' is no attribute, op or member of a function or type"; continue; }
            # A word may be an attribute of one op and a member of a function.
            grep -rqe "$key\b" -e "->$word\b" --include='*.[ch]' "$folder" || echo "$page: nothing in $folder/ has '$word', but '$pass' is said to"
        done
    done
}

[ "${1:-}" != --stages ] || { stages; exit; }
passes >"$work/passes"
report=$(
    stages >"$work/stages"
    section Stages | diff "$work/stages" - | sed -n -e 's/^</Stages lack:/p' -e 's/^>/Stages have wrongly:/p'

    sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}' tests/check_includes.sh | sed -n 's/^ *allow \([a-z]\)/\1/p' |
        while read -r room others; do echo "| \`$room/\` | $(echo "$others" | sed 's/  */, /g') |"; done |
        sed 's/| *|$/| |/' >"$work/rooms"
    section Rooms | awk -F'|' '{ print "|" $2 "|" $4 "|" }' |
        diff "$work/rooms" - | sed -n -e 's/^</Rooms lack:/p' -e 's/^>/Rooms have wrongly:/p'

    section Decisions >"$work/decisions"
    [ -s "$work/decisions" ] || echo "$page: no decisions"
    while IFS='|' read -r _ _ carried decided done _; do decision "$carried" "$decided" "$done"; done <"$work/decisions"

    # Each attribute belongs to a decision, or is listed as a plain part of an op.
    { cut -d'|' -f3 "$work/decisions" | grep -o '`[a-z_]*`'; sed -n '/^The other attributes/,/^$/p' "$page" | grep -o '`[a-z_]*`'; } |
        tr -d '`' | sort -u >"$work/attributes"
    for word in $(sed -n 's/^ATTRIBUTE([A-Z_]*, "\([a-z_]*\)".*/\1/p' lang/ir/attributes.def); do
        grep -qx "$word" "$work/attributes" || echo "$page: the attribute '$word' is neither in a decision nor in the list of the others"
    done
    for word in $(sed -n '/^The other attributes/,/^$/p' "$page" | grep -o '`[a-z_]*`' | tr -d '`'); do
        grep -q "^ATTRIBUTE([A-Z_]*, \"$word\"" lang/ir/attributes.def || echo "$page: there is no attribute '$word'"
    done

    for file in README.md CONTRIBUTING.md; do grep -q 'docs/architecture\.md' "$file" || echo "$file does not name $page"; done
)
if [ -n "$report" ]; then
    echo "$report"
    exit 1
fi
echo "$page: $(wc -l <"$work/stages" 2>/dev/null || echo) stages, $(wc -l <"$work/rooms") rooms, $(wc -l <"$work/decisions") decisions are those of the sources"
