#!/bin/sh
# tilec test: what is run on which target, messages of failures, exit statuses.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
programs=$TILE_SOURCE_DIR/tests/programs
cd "$work" || exit 2

expect 0 'scalars, settings and epilogues: ok (interp, cpu)' "$tilec" test "$programs/tests.tile"
expect 0 '5 tests, 0 failed' "$tilec" test "$programs/tests.tile"
expect 0 '9 tests, 0 failed' "$tilec" test "$programs/values.tile" --target=interp,cpu
expect 0 '1 test, 0 failed' "$tilec" test "$programs/tests.tile" --filter=sizes --target=interp
expect 0 '0 tests, 0 failed' "$tilec" test "$programs/tests.tile" --filter=nonesuch

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

finish
