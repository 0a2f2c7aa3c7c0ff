#!/bin/sh
# Every pass has golden tests. The opening comment of a pass shows a function before and after it: the pass must transform
# the former to the latter; a line `Run:` has the options if that requires a target, or cleanup passes. Set TILE_SHOW=1 to
# see the pass's output.
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
optimise="$TILE_BINARY_DIR/bin/tile-opt"
failed=0
checked=0

# part FILE FROM: the indented lines of the opening comment after the line FROM
part() {
    awk -v from=" * $2:" '
        /\*\/$/ { exit }
        on && !/^ \*     / { exit }
        on { sub(/^ \*     /, ""); print }
        $0 == from { on = 1 }' "$1"
}

for folder in lowering cpu ptx; do
    for file in $(find "$TILE_SOURCE_DIR/$folder" -name '*.c' | sort); do
        id=$(sed -n 's/^TileResult tile_pass_\([a-z_0-9]*\)(.*/\1/p' "$file" | head -n 1)
        [ -n "$id" ] || continue
        name=$(sed -n "s/^PASS($id, \"\([^\"]*\)\".*/\1/p" "$TILE_SOURCE_DIR/$folder/passes.def")
        [ -n "$name" ] || continue
        part "$file" Before >"$here/before.tir"
        part "$file" After >"$here/after.tir"
        if ! ls "$TILE_SOURCE_DIR/tests/golden/$name/"*.tir >/dev/null 2>&1; then
            echo "${file#"$TILE_SOURCE_DIR/"}: no test in tests/golden/$name"
            failed=1
        fi
        grep -q '^func' "$here/before.tir" || {
            echo "${file#"$TILE_SOURCE_DIR/"}: no example"
            failed=1
            continue
        }
        checked=$((checked + 1))
        run=$(sed -n 's/^ \* Run: //p; /\*\/$/q' "$file")
        if "$optimise" "$here/before.tir" ${run:-"--passes=$name"} >"$here/made.tir" 2>"$here/errors" &&
            "$optimise" "$here/after.tir" >"$here/wanted.tir" 2>>"$here/errors" &&
            diff -u "$here/wanted.tir" "$here/made.tir" >"$here/diff"; then
            continue
        fi
        echo "${file#"$TILE_SOURCE_DIR/"}: the comment's example does not hold:"
        cat "$here/errors" "$here/diff" 2>/dev/null || true
        [ -z "${TILE_SHOW:-}" ] || cat "$here/made.tir"
        failed=1
    done
done
[ "$checked" -gt 0 ] || { echo "no pass has an example"; exit 1; }
echo "$checked examples"
exit $failed
