#!/bin/sh
# tilec run: data in and out, views, settings, --check.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2

expect 0 'z: f32[2, 3] = 0 2 4 6 8 10' "$tilec" run "$stdlib/elementwise.tile:add" x=arange:f32[2,3] y=arange:f32[2,3] z=@
expect 0 'z: f32[2, 3] -> z.npy' "$tilec" run "$stdlib/elementwise.tile:add" x=arange:f32[2,3] y=ones:f32[2,3] z=z.npy
expect 0 'y: f32[3, 2] = 1 4 2 5 3 6' "$tilec" run "$stdlib/transpose.tile" x=z.npy y=@
expect 0 'y: f32[2, 3] = 1 2 3 4 5 6' "$tilec" run "$stdlib/transpose.tile" x=z.npy.T y=@
expect 0 'y: f32[2] = 6 15' "$tilec" run "$stdlib/reduce.tile:sum_rows" x=z.npy y=@
expect 0 'y: f32[2] = 11 5' "$tilec" run "$stdlib/reduce.tile:sum_rows" "x=z.npy[::-1, 1:]" y=@
expect 0 'y: i64[2] = 2 2' "$tilec" run "$stdlib/reduce.tile:argmax_rows" x=z.npy y=@
expect 0 'y: f32[3] = 3 5 7' "$tilec" run "$stdlib/elementwise.tile:axpy" "x=z.npy[0]" y=ones:f32[3] a=2
expect 0 'y: f32[2, 3] = 0 0 0 0 0 0' "$tilec" run "$stdlib/elementwise.tile:map" x=zeros:f32[2,3] f=relu y=@
cat >nibbles.tile <<'TEXT'
kernel wide(x: in i4[N, K], y: out i8[N, K]) {
    grid (n, k) in (tiles(N, 4), tiles(K, 8)) { y[n, k] = x[n, k] }
}
TEXT
expect 0 'y: i8[2, 4] = 0 0 0 0 0 0 0 0' "$tilec" run nibbles.tile x=zeros:i4[2,4] y=@
expect 0 'y: i8[1, 4] = -6 -6 -6 -6' "$tilec" run nibbles.tile 'x=randint:u8[1,2](170,171)' y=@
expect 1 'type is i8, expected u8 with two i4 in each byte along the last axis' "$tilec" run nibbles.tile x=zeros:i8[2,6] y=@
expect 1 'made up as zeros only' "$tilec" run nibbles.tile x=rand:i4[2,6] y=@
expect 1 'dimension 1 is 5, expected K = 6' "$tilec" run nibbles.tile x=zeros:i4[2,6] y=@:i8[2,5]
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=randn:f32[7,1030] y=@ --check
expect 0 'equal to the reference' "$tilec" run "$stdlib/softmax.tile:softmax" x=randn:bf16[7,1030] y=@ --check
# Tensors of 16 MB and more are written past the caches, whole lines of them.
expect 0 'equal to the reference' "$tilec" run "$stdlib/elementwise.tile:map" f=relu x=rand:f32[4,1048592] y=@ --check
expect 0 'equal to the reference' "$tilec" run "$stdlib/elementwise.tile:map" f=relu x=rand:f32[3,1400003] y=@ --check
expect 0 'equal to the reference' "$tilec" run "$stdlib/matmul.tile:matmul" a=randn:f16[33,65] b=randn:f16[65,17] c=@:f32 --check \
    --target=avx2 BM=16 BN=32 BK=32
# An out-of-bounds index makes a whole tile invalid, also along an axis that is otherwise always valid: the replacement value
# is used in all rows, of a stored tile and of an operand of dot.
cat >outside.tile <<'EOF'
kernel kept(x: in f32[B, D, N], y: out f32[P, D, N])
    static D
{
    grid (p, n) in (P, tiles(N, 8)) {
        let v = exp(x[p - 1, :, n] else 2)
        y[p, :, n] = v / max(v, axis = 1)[:, _]
    }
}

kernel multiplied(x: in f32[B, D, N], w: in f32[N, M], y: out f32[P, D, M])
    static D
{
    grid (p, m) in (P, tiles(M, 8)) {
        var acc = zeros[D, 8](f32)
        for n in tiles(N, 8) { acc = dot((x[p - 1, :, n] else 2), w[n, m], acc) }
        y[p, :, m] = acc
    }
}
EOF
expect 0 'equal to the reference' "$tilec" run outside.tile:kept x=rand:f32[2,5,11] y=@:f32[4,5,11] --check --emulate --target=avx2
expect 0 'equal to the reference' "$tilec" run outside.tile:multiplied x=rand:f32[2,5,11] w=rand:f32[11,7] y=@:f32[4,5,7] \
    --check --emulate --target=sve
expect 0 'median' "$tilec" run "$stdlib/softmax.tile:softmax" x=randn:f32[4,64] y=@ --repeat=3
expect 0 'c: f32[0, 3]' "$tilec" run "$stdlib/matmul.tile:matmul" a=zeros:f32[0,5] b=zeros:f32[5,3] c=@:f32
expect 0 'c: f32[2, 2] = 0 0 0 0' "$tilec" run "$stdlib/matmul.tile:matmul" a=zeros:f32[2,0] b=zeros:f32[0,2] c=@:f32

# An inout file is rewritten in place, or elsewhere.
cp z.npy w.npy
expect 0 '' "$tilec" run "$stdlib/elementwise.tile:axpy" "x=ones:f32[3]" "y=w.npy[1]" a=10
expect 0 'y: f32[2] = 6 45' "$tilec" run "$stdlib/reduce.tile:sum_rows" x=w.npy y=@
expect 0 '' "$tilec" run "$stdlib/elementwise.tile:axpy" "x=ones:f32[3]" "y=w.npy[0]" a=1 --out y=v.npy
expect 0 'y: f32[2] = 9 45' "$tilec" run "$stdlib/reduce.tile:sum_rows" x=v.npy y=@
expect 0 'y: f32[2] = 6 45' "$tilec" run "$stdlib/reduce.tile:sum_rows" x=w.npy y=@

# An assertion that fails in machine code is an error of the launch; the process lives.
printf '%s\n' 'kernel f(x: in f32[N], y: out f32[N]) {' '    grid n in tiles(N, 16) {' \
    '        assert(all((x[n] else 0) < 5), "small")' '        y[n] = x[n]' '    }' '}' >f.tile
expect 1 'f.tile:3:9: error: assertion failed: small, where (x[n] else 0) = 5 at [5] [assertion-failed]' \
    "$tilec" run f.tile x=arange:f32[9] y=@ --debug
expect 0 '' "$tilec" run "$stdlib/elementwise.tile:axpy" "x=ones:f32[3]" "y=w.npy[0]" a=1 --out y=@
expect 0 'y: f32[2] = 6 45' "$tilec" run "$stdlib/reduce.tile:sum_rows" x=w.npy y=@
expect 1 '' test -e @

# Traps of debug builds are errors, too; other builds define these operations.
printf 'kernel k(x: in i32[N], z: out i32[N]) { grid n in tiles(N, 4) { z[n] = 7 / x[n] } }\n' >divide.tile
expect 0 'z: i32[3] = 0 7 3' "$tilec" run divide.tile x=arange:i32[3] z=@
for target in interp avx2; do
    expect 1 'divide.tile:1:72: error: assertion failed: `7 / x[n]` divides by zero' "$tilec" run divide.tile x=arange:i32[3] z=@ \
        --debug --target=$target
done

# An index tile takes a stride that is known at run time only, of any sign.
printf 'kernel k(x: in f32[N], y: out f32[M], s: i64, first: i64) tune B in {4} {\n    grid m in tiles(M, B) {' >stride.tile
printf ' y[m] = x[first + m.idx * s] else -1 }\n}\n' >>stride.tile
for target in interp avx2; do
    expect 0 'y: f32[6] = 0 2 4 6 8 -1' "$tilec" run stride.tile x=arange:f32[9] y=@:f32[6] s=2 first=0 --target=$target
    expect 0 'y: f32[6] = 8 5 2 -1 -1 -1' "$tilec" run stride.tile x=arange:f32[9] y=@:f32[6] s=-3 first=8 --target=$target
    expect 0 'y: f32[6] = 8 8 8 8 8 8' "$tilec" run stride.tile x=arange:f32[9] y=@:f32[6] s=0 first=8 --target=$target
done

# Sums of floats whose order is not deterministic are rejected if determinism is requested.
printf 'kernel h(x: in i32[N], y: inout f32[B]) { grid n in tiles(N, 4) { atomic_add(y[x[n]], 1.0) } }\n' >sums.tile
expect 0 'y: f32[2] = 5 0' "$tilec" run sums.tile x=zeros:i32[5] y=zeros:f32[2]
expect 1 'floats are added atomically at sums.tile:1:67' env TILE_DETERMINISTIC=1 "$tilec" run sums.tile x=zeros:i32[5] \
    y=zeros:f32[2]
printf 'kernel h(x: in i32[N], y: inout i32[B]) { grid n in tiles(N, 4) { atomic_add(y[x[n]], 1) } }\n' >sums.tile
expect 0 'y: i32[2] = 5 0' env TILE_DETERMINISTIC=1 "$tilec" run sums.tile x=zeros:i32[5] y=zeros:i32[2]

# The sign of a NaN is not shown.
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = -(x[n] / x[n]) } }\n' >nan.tile
expect 0 'y: f32[2] = nan nan' "$tilec" run nan.tile x=zeros:f32[2] y=@
printf 'kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] / x[n] } }\n' >nan.tile
expect 0 'y: f32[2] = nan nan' "$tilec" run nan.tile x=zeros:f32[2] y=@

# A dimension that only an expression knows.
cat >halves.tile <<'END'
kernel halves(x: in f32[M, 2 * N - 1], y: out f32[M, N], z: out f32[N + M]) {
    grid (m, n) in (M, tiles(N, 8)) { y[m, n] = x[m, n] }
    grid k in tiles(N + M, 8) { z[k] = 1 }
}
END
expect 0 'y: f32[2, 3] = 0 1 2 5 6 7' "$tilec" run halves.tile x=arange:f32[2,5] y=@ z=@
expect 0 'z: f32[5] = 1 1 1 1 1' "$tilec" run halves.tile x=arange:f32[2,5] y=@ z=@
expect 1 "nothing decides dimension 1 (N) of 'y'; give the shape, as in y=@:f32[2,10]" "$tilec" run halves.tile x=arange:f32[2,4] y=@ z=@

# The name of a dimension may be equal to the number of a value in a module.
printf 'import math\nkernel k(x: in f32[E], y: out f32[E]) { grid n in tiles(E, 4) { y[n] = x[n] + math.E } }\n' >named.tile
expect 0 'y: f32[2] = 2.71828175 3.71828175' "$tilec" run named.tile x=arange:f32[2] y=@

# The executor's schedule: the same results in any order, and each schedule finds an existing race.
for seed in 0 1 77; do
    expect 0 's: f32[] = 3000' "$tilec" run "$stdlib/reduce.tile:sum_all" x=ones:f32[30,100] s=@ --target=sm_80 --emulate \
        --schedule-seed=$seed
done
printf 'kernel last(x: in f32[N], y: inout f32[1]) {\n    grid i in N { y[0] = x[i] }\n}\n' >race.tile
for seed in 0 5; do
    expect 1 'nothing orders the blocks of a launch' "$tilec" run race.tile x=arange:f32[9] y=zeros:f32[1] --out y=@ \
        --target=sm_80 --emulate --schedule-seed $seed
done
expect 1 'native code has no schedule' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[2,9] y=@ --schedule-seed=3
expect 1 '--schedule-seed needs a number' "$tilec" run "$stdlib/softmax.tile:softmax" x=rand:f32[2,9] y=@ --emulate \
    --target=sm_80 --schedule-seed=x

# Rows shorter than the number of threads in a tune clause; their sums are exact in any order.
for warps in 0 8 16; do
    expect 0 'equal to the reference' "$tilec" run "$stdlib/norm.tile:layernorm_row" x=arange:f32[5,200] gamma=rand:f32[200] \
        beta=rand:f32[200] y=@ eps=0.1 BM=2 warps=$warps --check --target=sm_80 --emulate
done

# Of the digits' kernels those over bytes, which the kernel matrix has no type for, on the emulated GPU.
digits=$source_directory/examples/digits
expect 0 'equal to the reference' "$tilec" run "$digits/digits.tile:pixels" image="$digits/images.npy[1200:1233]" x=@ --check \
    --target=sm_80 --emulate
expect 0 'equal to the reference' "$tilec" run "$digits/digits.tile:count_equal" digit="$digits/predicted.npy" \
    label="$digits/labels.npy[1200:]" count=@ --check --target=sm_80 --emulate

# Neighbours in rows of which some consist of vectors but do not begin at them, or end within one, in an array that ends with the last row.
cat >sides.tile <<'TEXT'
kernel sides(x: in f16[M, N], y: out f16[M, N]) {
    grid (m, n) in (tiles(M, 4), tiles(N, 64)) { y[m, n] = (x[m, n - 1] else 7) + (x[m, n + 2] else 5) }
}
TEXT
for columns in 201 264; do
    expect 0 '' "$tilec" run "$stdlib/elementwise.tile:map" x=randn:f16[9,$columns] f=relu y=sides.$columns.npy T=f16
done
for view in '201.npy[:, :192]' '201.npy[:, 8:200]' '264.npy[:, 3:259]' '264.npy[:, 8:264]' '264.npy[:, 5:255]' '264.npy[:, ::2]'; do
    expect 0 'equal to the reference' "$tilec" run sides.tile "x=sides.$view" y=@ --check --target=sm_80 --emulate
done

# The matrix has no f64.
for target in sm_80 sm_90a; do
    expect 0 'equal to the reference' "$tilec" run "$source_directory/examples/link_cpp/blend.tile:blend" T=f64 x=randn:f64[5,67] \
        y=randn:f64[5,67] --out y=@ a=0.25 --check --target=$target --emulate
done

# An export is a kernel under its name, with its bindings. A file with one kernel needs no name.
printf '%s\n' 'fn twice(x: f32) -> f32 { return 2 * x }' 'kernel m[T: float, f: fn(f32) -> f32 = twice, B: const = 8](x: in T[N], y: out T[N]) {' \
    '    grid n in tiles(N, B) { y[n] = T(f(f32(x[n]))) }' '}' 'export m[bf16] as half, m[f32, abs, B = 4] as size' >exports.tile
expect 0 'y: f32[3] = 0 2 4' "$tilec" run exports.tile x=arange:f32[3] y=@
expect 0 'y: f32[2] = 1 1' "$tilec" run exports.tile:size x=ones:f32[2] y=@
expect 0 'y: bf16[2] = 2 2' "$tilec" run exports.tile:half x=ones:bf16[2] y=@
expect 0 'y: bf16[2] = 2 2' "$tilec" run exports.tile:half x=ones:bf16[2] y=@ T=bf16 B=16
expect 1 'half: T is bf16, as exported, and cannot be set to f32' "$tilec" run exports.tile:half x=ones:f32[2] y=@ T=f32
expect 1 'size: B is 4, as exported, and cannot be set to 8' "$tilec" run exports.tile:size x=ones:f32[2] y=@ B=8
expect 1 '' "$tilec" run exports.tile:half x=ones:f32[2] y=@
expect 0 'bf16' "$tilec" emit tile exports.tile:half
expect 1 'T is bf16, as exported, and cannot be set to f32' "$tilec" emit tile exports.tile:half T=f32
expect 0 '"name": "half"' "$tilec" emit json exports.tile

# Terminal escape sequences are shown, not sent.
printf 'static_assert(1 == 2, "a\033[31m")\n' >bytes.tile
expect 1 'a\x1b[31m' "$tilec" check bytes.tile
expect 1 'a\\x1b[31m' "$tilec" check bytes.tile --error-format=json

# An error in several instances is reported once.
printf '%s\n' 'kernel q[B: const = 64](y: out f32[N]) { grid n in tiles(N, 8) { y[n] = sum(zeros[B - 8](f32)) } }' \
    'export q[8] as a, q[4] as b, q[2] as c' >repeated.tile
expect 0 '1' sh -c '"$0" check repeated.tile 2>&1 | grep -c "error: "' "$tilec"
expect 1 '' sh -c '"$0" check repeated.tile 2>&1 | grep internal' "$tilec"

finish
