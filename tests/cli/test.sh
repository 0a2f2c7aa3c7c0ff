#!/bin/sh
# tilec test: what is run on which target, messages of failures, exit statuses.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
programs=$TILE_SOURCE_DIR/tests/programs
cd "$work" || exit 2

expect 0 'scalars, settings and epilogues: ok (interp, cpu)' "$tilec" test "$programs/tests.tile"
expect 0 '5 tests, 0 failed' "$tilec" test "$programs/tests.tile"
expect 0 '10 tests, 0 failed' "$tilec" test "$programs/values.tile" --target=interp,cpu
expect 0 '7 tests, 0 failed' "$tilec" test "$programs/sorts.tile" --target=interp,cpu
expect 0 '7 tests, 0 failed' "$tilec" test "$programs/sorts.tile" --target=sm_80 --emulate
expect 0 '2 tests, 0 failed' "$tilec" test "$programs/convolutions.tile" --target=interp,cpu
expect 0 '2 tests, 0 failed' "$tilec" test "$programs/convolutions.tile" --target=sm_90a --emulate
expect 0 '4 tests, 0 failed' "$tilec" test "$programs/float8.tile" --target=interp,cpu
expect 0 '4 tests, 0 failed' "$tilec" test "$programs/float8.tile" --target=sm_80 --emulate
for target in interp,cpu 'sm_80 --emulate' 'sm_90a --emulate'; do
    expect 0 '4 tests, 0 failed' "$tilec" test "$programs/packed.tile" --target=$target
    expect 0 '2 tests, 0 failed' "$tilec" test "$programs/temporaries.tile" --target=$target
done
expect 0 '1 test, 0 failed' "$tilec" test "$programs/tests.tile" --filter=sizes --target=interp
expect 1 "no test's name contains 'nonesuch'" "$tilec" test "$programs/tests.tile" --filter=nonesuch

# A folder stands for the files in it, one beneath the other; those that begin with a dot are no part of it.
mkdir -p folder/inner folder/.hidden none
echo 'test "outer" { assert(true) }' >folder/b.tile
echo 'test "inner" { assert(true) }' >folder/inner/a.tile
echo 'neither tile' | tee folder/.hidden/c.tile folder/.d.tile >folder/e.txt
ln -s .. folder/inner/up
expect 0 '2 tests, 0 failed' "$tilec" test folder --target=interp
expect 0 'folder/inner/a.tile: inner: ok (interp)' "$tilec" test folder/ --target=interp
expect 0 '' "$tilec" check folder
expect 2 'none: there is no .tile file in this folder' "$tilec" test none
echo 'test  "inner" {assert(true)}' >folder/inner/a.tile
expect 1 'folder/inner/a.tile' "$tilec" fmt --check folder
expect 0 '' "$tilec" fmt folder
expect 0 '' "$tilec" fmt --check folder

cat >wrong.tile <<'END'
kernel double(x: in f32[N], y: out f32[N]) require N < 9, "few" { grid n in tiles(N, 4) { y[n] = x[n] * 2 } }
test "fine" { let y = run double(x = ones(f32, 3)); assert(all(y == 2)) }
test "not so" {
    let x = arange(f32, 2, 3)
    let y = run double(x = arange(f32, 6))
    assert(all(reshape(y, (2, 3)) < 2 * x + 1 && x >= 0))
    assert(all(reshape(y, (2, 3)) <= x), "at most", sum(y), y[1])
    assert(y[2] == 5)
}
test "refused" { let y = run double(x = ones(f32, 10)) }
END
expect 1 'wrong.tile:7:12: error: test "not so" on interp: the assertion does not hold: at most [test-failed]' "$tilec" test wrong.tile
expect 1 'note: 5 of 6 elements, the first at [0, 1]: 2 <= 1 is false' "$tilec" test wrong.tile
expect 1 'note: sum(y) = 30' "$tilec" test wrong.tile
expect 1 'note: y[1] = 2' "$tilec" test wrong.tile
expect 1 'note: 4 == 5 is false' "$tilec" test wrong.tile
expect 1 'wrong.tile: fine: ok (interp, cpu)' "$tilec" test wrong.tile
expect 1 'wrong.tile: not so: FAILED (interp, cpu)' "$tilec" test wrong.tile
expect 1 'error: test "refused" on cpu: double: requires N < 9: few, but N = 10' "$tilec" test wrong.tile
expect 1 '3 tests, 2 failed' "$tilec" test wrong.tile
expect 1 '"code":"test-failed","file":"wrong.tile"' "$tilec" test wrong.tile --error-format=json
expect 1 "unknown target 'z80'" "$tilec" test wrong.tile --target=interp,z80
expect 1 'no file' "$tilec" test
expect 2 'missing.tile' "$tilec" test missing.tile
printf 'test "open" { let y = run }\n' >broken.tile
expect 1 'broken.tile:1' "$tilec" test broken.tile

# `run` is a value like any other: a following postfix applies to its result, and an export has its settings.
printf '%s\n' 'kernel twice[B: const = 8](x: in f32[N], y: out f32[N]) { grid n in tiles(N, B) { y[n] = 2 * x[n] } }' \
    'export twice[4] as by_four' 'test "inside" {' '    let x = zeros[6](f32) + 1' \
    '    assert(all(abs(run twice(x = x) - 2 * x) < 1e-6), "minus")' \
    '    assert(sum(run by_four(x = x)) == 12, "sum")' '}' >inside.tile
expect 0 '1 test, 0 failed' "$tilec" test inside.tile

# A file of tests alone: kernels of imports, by their names, by names of exports, and as members of a module. The kernel's own
# file says what its functions, constants and dimensions are.
mkdir -p parts
printf '%s\n' 'const WIDE = 3' 'fn twice(a: f32) -> f32 { return 2 * a }' \
    'kernel map[f: fn(f32) -> f32 = twice](x: in f32[N], y: out f32[N]) { grid n in tiles(N, 64) { y[n] = f(x[n]) } }' \
    'kernel wide(x: in f32[N, WIDE], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = sum(x[n, :], axis = 1) } }' \
    'kernel half(x: in f32[2 * N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] } }' \
    'export map[twice] as doubled' >parts/lib.tile
printf '%s\n' 'import softmax' 'import "parts/lib.tile"' 'const WIDE = 4' 'fn other(a: f32) -> f32 { return 3 * a }' \
    'test "map" { let y = run map(x = ones(f32, 5)); assert(all(y == 2)) }' \
    'test "doubled" { let y = run doubled(x = ones(f32, 5)); assert(all(y == 2)) }' \
    'test "wide" { let y = run wide(x = ones(f32, 2, 3)); assert(all(y == 3)) }' \
    'test "half" { let y = run half(x = arange(f32, 6)); assert(y[2] == 2 && sum(y) == 3) }' \
    'test "exp" { let y = run map(x = zeros(f32, 5), f = exp); assert(all(y == 1)) }' \
    'test "module" { let y = run softmax.softmax(x = ones(f32, 2, 5)); assert(all(abs(sum(y, axis = 1) - 1) < 1e-5)) }' >apart.tile
expect 0 '6 tests, 0 failed' "$tilec" test apart.tile
expect 0 'wide: ok (interp, cpu)' "$tilec" test apart.tile
printf 'test "no" { let y = run map(x = ones(f32, 5), f = other) }\n' | cat apart.tile - >foreign.tile
expect 1 "nothing is named \`other\` here" "$tilec" test foreign.tile
expect 1 'is compiled from its own file, and in parts/lib.tile nothing has this name' "$tilec" test foreign.tile
printf '%s\n' 'import "parts/lib.tile"' 'import "parts/same.tile"' 'test "which" { let y = run map(x = ones(f32, 5)) }' >two.tile
cp parts/lib.tile parts/same.tile
expect 1 'ambiguous-name' "$tilec" test two.tile
printf 'import softmax\ntest "none" { let y = run softmax.hardmax(x = ones(f32, 2, 2)) }\n' >none.tile
expect 1 'no-kernel' "$tilec" test none.tile

# Targets that are not here: their machine form on the executor.
expect 0 'map: ok (interp, sm_80, sm_90a, sve)' "$tilec" test apart.tile --target=interp,sm_80,sm_90a,sve --emulate

# JUnit: a case for each test and target, those that fail with what is said; files that are wrong.
expect 2 '4 tests, 2 failed' "$tilec" test wrong.tile inside.tile missing.tile broken.tile --junit=results.xml
expect 0 'as expected' python3 - <<'END'
import xml.etree.ElementTree as xml
root = xml.parse("results.xml").getroot()
assert root.tag == "testsuites" and [s.get("name") for s in root] == ["wrong.tile", "inside.tile", "missing.tile", "broken.tile"]
cases = {(c.get("classname"), c.get("name")): c for c in root.iter("testcase")}
assert cases["wrong.tile", "fine [interp]"].find("failure") is None
failure = cases["wrong.tile", "not so [cpu]"].find("failure")
assert "not so" in failure.get("message") and "sum(y) = 30" in failure.text, failure.text
assert cases["missing.tile", "the file"].find("error") is not None
assert "broken.tile:1" in cases["broken.tile", "the file"].find("error").text
assert root.get("tests") == str(len(cases)) and root.get("failures") == "4" and root.get("errors") == "2", root.attrib
print("as expected")
END
expect 2 'cannot' "$tilec" test inside.tile --junit=no/such/folder/results.xml

# What `tilec new` writes passes, and is in the house style.
expect 0 'tilec test scale-rows.tile' "$tilec" new scale-rows
expect 0 '2 tests, 0 failed' "$tilec" test scale-rows.tile
expect 0 '' "$tilec" fmt --check scale-rows.tile
expect 1 'scale-rows.tile is there already' "$tilec" new scale-rows
expect 1 'no kernel can be named after' "$tilec" new 3d
expect 1 'no kernel can be named after' "$tilec" new kernel
expect 1 'one name is needed' "$tilec" new
expect 2 'no/such' "$tilec" new no/such/folder/k

finish
