#!/bin/sh
# tilec doc: docs/stdlib.md is what it makes of stdlib/; pages to files and folders; links that lead somewhere.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

"$tilec" doc --title='The standard library' "$stdlib"/*.tile >made.md 2>"$work/messages"
checks=$((checks + 1))
diff -u "$source_directory/docs/stdlib.md" made.md >"$work/output" ||
    complain 'docs/stdlib.md is out of date: tilec doc stdlib/*.tile --title="The standard library" -o docs/stdlib.md'

# Every kernel, function and constant of the library has its heading, in the order of the text.
sed -n 's/^\(kernel\|fn\|const\) \([A-Za-z0-9_]*\).*/\2/p' "$stdlib"/*.tile >names
sed -n 's/^### //p' made.md >headings
expect 0 '' diff names headings

# Links lead to headings: the nth heading of a name has the anchor name-(n - 1).
sed -n 's/^##* //p' made.md | tr 'A-Z ' 'a-z-' | tr -d '.' | awk '{ n = seen[$0]++; print n ? $0 "-" n : $0 }' | sort >anchors
grep -o '](#[^)]*)' made.md | sed 's/](#\(.*\))/\1/' | sort >links
expect 1 'the-standard-library' sh -c 'comm -3 anchors links | grep -v "^the-standard-library$" || { cat anchors; exit 1; }'

cat >one.tile <<'END'
/// About the file. More of it.

/// Half of x.
/// And a list:
///
/// - an item
kernel half[T: f16 | f32, f: fn(f32) -> f32 = same, K: const i64 = 2](x: in T[N, D], y: out T[N, 2 * D], z: inout T[n])
    static D
    require N >= 1, D % 4 == 0, "whole blocks"
    allow overlap(z)
    tune cpu B in {32, 64}, C in {1, 2} where B > C
{
    grid n in tiles(N, B) { y[n, 0..D] = x[n, :] }
}

fn same(x: f32) -> f32 { return x }
const n = 4
export half[f32] as half_f32, half[f16]
test "none" { }
END
"$tilec" doc one.tile >page.md 2>"$work/output" || complain 'a page of one file'
has() {
    checks=$((checks + 1))
    grep -qxF -e "$1" page.md || { cp page.md "$work/output"; complain "no line '$1' in the page"; }
}
has '# one.tile'
has 'About the file. More of it.'
has '- [half](#half), kernel: Half of x.'
has '- [same](#same), function'
has '## half'
has '    tune cpu B in {32, 64}, C in {1, 2} where B > C'
has 'And a list:'
has '- an item'
has '- type `T`: `f16`, `f32`'
has '- function `f`: `fn(f32) -> f32`, `same` if not given'
has '- dimension `N`, bound by the arguments'
has '- dimension `D`, compiled for each value'
has '- requires `N >= 1`, `D % 4 == 0`: whole blocks'
has '- programs may write the same elements of `z`'
has '- tuned (cpu) `B`: `32`, `64`; `C`: `1`, `2`, where `B > C`'
has '- exported: `half[f32] as half_f32`, `half[f16]`'
expect 1 '' grep -q 'none\|grid' page.md

# Files, folders, standard input.
expect 0 '' "$tilec" doc one.tile -o out.md
expect 0 '' cmp out.md page.md
printf '/// Two.\nfn two() -> i64 { return 2 }\n' >two.tile
expect 0 '' "$tilec" doc one.tile two.tile -o pages/ --title=All
expect 0 '' cmp pages/one.md page.md
expect 0 '  - [two](two.md#two), function: Two.' cat pages/index.md
expect 0 '# All' cat pages/index.md
expect 0 'pages/two.md' "$tilec" doc -v one.tile two.tile -o pages
expect 0 '## two' "$tilec" doc - <two.tile

# Errors: nothing is written.
echo 'kernel k( {' >broken.tile
expect 1 'broken.tile:1:' "$tilec" doc one.tile broken.tile -o none.md
absent "$work/none.md"
expect 1 '"line"' "$tilec" doc broken.tile --error-format=json
expect 1 'two pages would be' "$tilec" doc one.tile ./one.tile -o pages
expect 2 'missing.tile' "$tilec" doc missing.tile
expect 1 'no file' "$tilec" doc
expect 1 '-o needs a value' "$tilec" doc one.tile -o
expect 1 'is it --title' "$tilec" doc one.tile --titel=x
expect 2 '' "$tilec" doc one.tile -o none/page.md
expect 2 '' sh -c '"$1" doc one.tile >/dev/full' sh "$tilec"
finish
