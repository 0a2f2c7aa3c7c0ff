#!/bin/sh
# Work is limited: exceeding a limit is an error with a location and the option that raises the limit.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

# `--limit` itself.
expect 0 'machine-operations' "$tilec" help limits
expect 1 "there is no limit 'machine'" "$tilec" check --limit=machine=3 "$stdlib/elementwise.tile"
expect 1 '--limit=machine-operations needs a number' "$tilec" check --limit=machine-operations "$stdlib/elementwise.tile"
expect 1 '--limit=machine-operations needs a number' "$tilec" check --limit=machine-operations=-1 "$stdlib/elementwise.tile"
expect 1 '--limit=machine-operations needs a number' "$tilec" check --limit=machine-operations=9x "$stdlib/elementwise.tile"

# Limits of LLVM's input: the line that most of it comes from.
cat >unrolled.tile <<'TILE'
kernel k(x: in f32[N], y: out f32[N]) {
    grid n in tiles(N, 64) {
        var a = x[n]
        static for i in 0..4096 {
            a = sin(a)
        }
        y[n] = a + 1
    }
}
TILE
for target in avx2 avx512 sve sm_80; do
    expect 1 'unrolled.tile:5:17: error: the kernel becomes' "$tilec" emit machine unrolled.tile --target=$target
    expect 1 'the limit is 65536 [too-much-code]' "$tilec" emit machine unrolled.tile --target=$target
done
sed 's/4096/3/' unrolled.tile >short.tile
expect 1 'the limit is 100 [too-much-code]' "$tilec" emit machine short.tile --limit=machine-operations=100
expect 0 '' "$tilec" emit machine short.tile --limit=machine-operations=1000
expect 1 '`--limit=machine-operations=N` raises the limit' "$tilec" run unrolled.tile x=ones:f32[3] y=@
expect 1 '"code":"too-much-code"' "$tilec" emit asm unrolled.tile --error-format=json

# A tile that does not fit into the registers of a GPU's threads, which depends on their number.
cat >rows.tile <<'TILE'
kernel k(x: in f32[N], y: out f32[N]) tune B in {8192, 16384}, warps in {1} {
    grid n in tiles(N, B) { y[n] = x[n] * 2 }
}
TILE
expect 1 'rows.tile:2:36: error: a tile of f32[8192] takes 8192 registers, and the 32 threads of a block have 8160 on sm_80 [tile-too-large]' \
    "$tilec" emit machine rows.tile --target=sm_80
expect 0 '' "$tilec" emit machine rows.tile --target=sm_80 warps=2
expect 0 '' "$tilec" emit machine rows.tile --target=sm_80 --limit=tile-registers=8192
expect 1 'f32[16384]' "$tilec" emit machine rows.tile --target=sm_80 --limit=tile-registers=8192 B=16384
expect 0 '' "$tilec" emit machine rows.tile --target=avx2

# Parser and checker: one text for each limit, and the option that raises it. LIMIT=SMALLER allows a short text.
cat >small.tile <<'TILE'
import "other.tile"

kernel k(x: in f32[N], y: out f32[N]) tune B in {1, 2, 4, 8}, C in {1, 2} where B * C == 16 {
    grid n in tiles(N, B) {
        var a = x[n] + C0
        static for i in 0..8 { a += x[n] }
        y[n] = a + sum(zeros[C, 64](f32) + sum(x[n]))
    }
}
TILE
echo 'const C0 = 1' >other.tile
limited() {
    expect 1 "$3" "$tilec" check small.tile --limit="$1=$2"
    expect 1 "\`--limit=$1=N\` raises the limit" "$tilec" check small.tile --limit="$1=$2"
}
expect 0 '' "$tilec" check small.tile
limited text 100 'the file has more than 100 bytes [too-large]'
limited files 0 'small.tile:1:8: error: more than 0 files are imported [many-files]'
limited header 9 'small.tile:3:8: error: k has 10 generics, parameters and entries of clauses; at most 9 are allowed [long-header]'
limited tune-points 7 'small.tile:3:44: error: more than 7 points of the search space would have to be tried [tune-points]'
limited iterations 7 'small.tile:6:25: error: `static for` unrolls at most 7 iterations [unroll-limit]'
limited operations 20 'error: the kernel takes more than 20 operations [too-many-operations]'
limited file-operations 50 'small.tile:3:8: error: the file takes more than 50 operations [too-many-operations]'
limited tile-elements 127 'small.tile:7:24: error: a tile of f32[2, 64] has more than 127 elements [tile-too-large]'
for limit in header=10 tune-points=8 iterations=8 files=1 tile-elements=128; do
    expect 0 '' "$tilec" check small.tile --limit=$limit
done

# Beyond the limits of a launch, the IR and a phase's parameters.
text() { python3 "$source_directory/tests/large/texts.py" "$1" "$2" .; }
text parameters 100
expect 1 'parameters.tile:1:8: error: k has 102 parameters; a launch takes 64 [many-parameters]' "$tilec" emit asm parameters.tile
text nested_loops 200
expect 1 'nested more than 128 deep [too-deep]' "$tilec" emit machine nested_loops.tile
text nested_loops 120
expect 0 '' "$tilec" emit machine nested_loops.tile --target=avx2
text temps 500
for target in avx2 sm_80; do
    expect 1 'operations of machine code for' "$tilec" emit machine temps.tile --target=$target
done

# Pathological texts terminate quickly, in little memory: see tests/large.
checks=$((checks + 1))
python3 "$source_directory/tests/large/measure.py" "$tilec" 2000 >"$work/output" 2>&1 ||
    complain 'texts that are large in one way take too much'

finish
