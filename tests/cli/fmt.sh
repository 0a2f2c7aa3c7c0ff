#!/bin/sh
# tilec fmt: every .tile file of the repository is formatted; files are replaced atomically.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"

# Formatting a copy of any file changes nothing. Those with syntax errors (some of tests/errors) are left alone.
(cd "$source_directory" && find . -path ./build -prune -o -name '*.tile' -print | sort) >"$work/names"
mkdir "$work/copies"
while read -r name; do
    mkdir -p "$work/copies/$(dirname "$name")"
    cp "$source_directory/$name" "$work/copies/$name"
done <"$work/names"
cd "$work/copies" || exit 2
xargs "$tilec" fmt <"$work/names" >"$work/messages" 2>&1
case $? in 0 | 123) ;; *) cat "$work/messages"; failed=1 ;; esac # xargs: some were refused
grep -E '^(tilec|\./(stdlib|examples|tests/programs))' "$work/messages" >"$work/output" && complain 'these should be formatted without a word'
while read -r name; do
    checks=$((checks + 1))
    diff -u "$source_directory/$name" "$name" >"$work/output" || complain "not in the house style: $name; run tilec fmt"
done <"$work/names"
cd "$work" || exit 2

ugly='kernel k[T:float](x:in T[N],y:out T[N])tune B in{4}{grid n in tiles(N,B){y[n]=x[n];}}'
pretty='kernel k[T: float](x: in T[N], y: out T[N])
    tune B in {4}
{ grid n in tiles(N, B) { y[n] = x[n] } }'
echo "$ugly" >ugly.tile
echo "$pretty" >pretty.tile
broken='kernel k( {'
echo "$broken" >broken.tile

# --check changes nothing and lists what would change.
expect 1 'ugly.tile' "$tilec" fmt --check ugly.tile pretty.tile
expect 1 '' grep -q pretty.tile "$work/output"
expect 0 '' "$tilec" fmt --check pretty.tile
expect 0 "$ugly" cat ugly.tile

# Standard input.
expect 0 '    tune B in {4}' "$tilec" fmt - <ugly.tile
expect 1 '<stdin>' "$tilec" fmt --check - <ugly.tile
expect 1 '<stdin>:1:' "$tilec" fmt - <broken.tile

# A file with errors is not changed, and the others are formatted nevertheless.
chmod 640 ugly.tile
ln -s ugly.tile link.tile
expect 1 'broken.tile:1:' "$tilec" fmt broken.tile link.tile
expect 0 "$broken" cat broken.tile
expect 0 '' cmp ugly.tile pretty.tile
expect 0 'link.tile' find . -name link.tile -type l
expect 0 'ugly.tile' find . -name ugly.tile -perm 640
expect 0 '' "$tilec" fmt -v ugly.tile
[ ! -s "$work/output" ] || complain 'nothing was to be changed'
expect 1 '"line"' "$tilec" fmt --error-format=json broken.tile

# A file that cannot be written is not changed, and no temporary file is left.
mkdir full
echo "$ugly" >full/kept.tile
expect 2 '' sh -c 'ulimit -f 0; exec "$@"' sh "$tilec" fmt full/kept.tile
expect 0 "$ugly" cat full/kept.tile
expect 0 'kept.tile' ls -A full
[ "$(wc -l <"$work/output")" = 1 ] || complain 'something is left in full/'
expect 2 'missing.tile' "$tilec" fmt missing.tile
expect 1 'no file' "$tilec" fmt --check
expect 1 'is it --check' "$tilec" fmt --chek ugly.tile
finish
