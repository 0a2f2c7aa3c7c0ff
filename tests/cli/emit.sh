#!/bin/sh
# tilec emit, check, backends, help: every stage of every standard kernel file can be shown.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"

for stage in tokens ast tile machine mlir llvm asm; do
    expect 0 'softmax' "$tilec" emit $stage "$stdlib/softmax.tile:softmax" T=f32
done
expect 0 'load_tile' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=bf16
expect 0 'vec<' "$tilec" emit machine "$stdlib/softmax.tile:softmax" T=f32 --target=avx512
expect 0 'zmm' "$tilec" emit asm "$stdlib/softmax.tile:softmax" T=f32 --target=avx512
expect 0 'ymm' "$tilec" emit asm "$stdlib/softmax.tile:softmax" T=f32 --target=avx2 --general
# What moves between lanes and registers is shuffled.
programs=$(dirname "$stdlib")/tests/programs
for target in avx2 avx512; do
    expect 0 'vaddps' "$tilec" emit asm "$programs/transforms.tile:hadamard" T=f32 N=1024 --target=$target
    for kernel in 'transforms.tile:hadamard N=1024' 'transforms.tile:sort_rows N=256'; do
        expect 1 '' sh -c '"$0" emit asm $1 T=f32 --target='"$target"' | grep -E "gather|div"' "$tilec" "$programs/$kernel"
    done
done
# A transposed convolution, element by element: a condition of tiles, behind one of a number, is no branch.
cat >"$work/up.tile" <<'EOF'
kernel up(x: in f32[C, H, W], k: in f32[C, 4, 4], y: out f32[2 * H, 2 * W])
    tune BW in {32}
{
    grid (oh, ow) in (2 * H, tiles(2 * W, BW)) {
        var s = zeros[BW](f32)
        for c in 0..C {
            for i in 0..4 {
                for j in 0..4 {
                    let h = oh + 1 - i
                    let w = ow.idx + 1 - j
                    let v = gather(x, c, h / 2, w / 2) else 0
                    s += where(h % 2 == 0 && w % 2 == 0, v, 0) * k[c, i, j]
                }
            }
        }
        y[oh, ow] = s
    }
}
EOF
expect 1 '' sh -c '"$0" emit tile "$1" | grep " = if "' "$tilec" "$work/up.tile:up"
# So are factors of Fourier transforms, of which each step reads those that it needs one behind the other.
for length in 128 256 512 1024 2048 4096; do
    for target in avx2 avx512; do
        expect 1 '' sh -c '"$0" emit asm "$1" N='$length' inverse=false --target='$target' | grep gather' "$tilec" "$stdlib/fourier.tile:fft_rows"
    done
done
# A sort whose vectors hold the highest bits of the lanes' numbers has fewer shuffles than minima and maxima.
sorted='"$0" emit asm "$1" T=f32 N=1024 BM=1 --target=avx512'
expect 1 '' sh -c "$sorted | grep -E 'gather|div'" "$tilec" "$stdlib/sort.tile:sort_rows"
expect 0 '' sh -c "$sorted | awk '/vpermt2|vpermi2|vunpck|vshuf/ { moved++ } /vpminsd|vpmaxsd/ { ordered++ } END { exit moved >= ordered }'" \
    "$tilec" "$stdlib/sort.tile:sort_rows"
expect 0 'vfmadd' "$tilec" emit asm "$stdlib/matmul.tile:matmul" T=f32 U=f32 --target=avx2
# In a sum over both axes, rows past the end are excluded when their axis is reduced: rows are not loaded under a mask of
# their own.
expect 1 '' sh -c '"$0" emit machine "$1" T=f32 --target=avx512 | grep "splat .*x bool>"' "$tilec" "$stdlib/reduce.tile:sum_all"
expect 1 'T' "$tilec" emit tile "$stdlib/softmax.tile:softmax"
expect 1 'goes with the stages tile and machine' "$tilec" emit mlir "$stdlib/softmax.tile:softmax" T=f32 --after=inline
expect 1 "nothing called 'FOO'" "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 FOO=3
expect 1 'nonesuch' "$tilec" emit nonesuch "$stdlib/softmax.tile:softmax" T=f32
expect 1 'nonesuch' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --after=nonesuch
for file in "$stdlib"/*.tile "$source_directory"/examples/*/*.tile; do expect 0 '' "$tilec" check "$file"; done
expect 0 'whilelo' "$tilec" emit asm "$stdlib/softmax.tile:softmax" T=bf16 --target=sve
expect 0 'vec<[4] x f32>' "$tilec" emit machine "$stdlib/matmul.tile:matmul" T=f32 U=f32 --target=sve

# The number of warps is that of the tune clause, or the compiler's choice if that is 0.
layernorm="$stdlib/norm.tile:layernorm_row"
expect 0 '.reqntid 256' "$tilec" emit ptx "$layernorm" T=f32 U=f32 N=1000 warps=8 --target=sm_80
expect 0 '.reqntid 32' "$tilec" emit ptx "$layernorm" T=f32 U=f32 N=1000 --target=sm_80
expect 0 '.reqntid 128' "$tilec" emit ptx "$layernorm" T=f32 U=f32 N=4000 --target=sm_80

# PTX has line information, also for imported functions. The assembler prints its arguments.
expect 0 '.file	1 "' "$tilec" emit ptx "$stdlib/elementwise.tile:chain" T=f32 --target=sm_80
expect 0 'nn.tile"' "$tilec" emit ptx "$stdlib/elementwise.tile:chain" T=f32 --target=sm_80
expect 0 '.loc	1 11 19' "$tilec" emit ptx "$stdlib/elementwise.tile:add" T=f32 --target=sm_80
cat >"$work/widen.tile" <<'END'
kernel widen(x: in f8e4m3[N], y: out f32[N], z: out f16[N]) {
    grid n in N { y[n] = f32(x[n]) }
    grid n in tiles(N, 96) { z[n] = f16(x[n]) }
}
END
expect 0 'cvt.rn.f16x2.e4m3x2' "$tilec" emit ptx "$work/widen.tile" --target=sm_89
expect 1 '' sh -c '"$0" emit ptx "$1" --target=sm_80 | grep -F e4m3' "$tilec" "$work/widen.tile"
# The upper half of a word that has two bf16 is a float without its lower half; only the lower one is shifted.
cat >"$work/halves.tile" <<'END'
kernel halves(x: in bf16[N], y: out f32[N]) {
    grid n in tiles(N, 1024) { y[n] = f32(x[n]) + 1.0 }
}
END
halves='"$0" emit ptx "$1" --target=sm_80 | grep -c'
expect 0 '4' sh -c "$halves 'and.b32.*, -65536;'" "$tilec" "$work/halves.tile"
expect 0 '4' sh -c "$halves 'shl.b32.*, 16;'" "$tilec" "$work/halves.tile"
# Bytes become floats where they lie, two instructions each: with a sign 128 more, which is taken off again.
cat >"$work/bytes.tile" <<'END'
kernel bytes(x: in i8[N], y: out f32[N], z: in u8[N], w: out bf16[N]) {
    grid n in tiles(N, 1024) { y[n] = f32(x[n]) }
    grid n in tiles(N, 1024) { w[n] = bf16(z[n]) }
}
END
expect 0 ', 255, ' sh -c '"$0" emit ptx "$1" --target=sm_80 | grep "lop3.*0x6a"' "$tilec" "$work/bytes.tile"
expect 0 ', 65280, ' sh -c '"$0" emit ptx "$1" --target=sm_80 | grep "lop3.*0x6a"' "$tilec" "$work/bytes.tile"
expect 0 '0f4B000080' "$tilec" emit ptx "$work/bytes.tile" --target=sm_80
expect 0 '0f47008000' "$tilec" emit ptx "$work/bytes.tile" --target=sm_80
expect 0 '0f4B000000' "$tilec" emit ptx "$work/bytes.tile" --target=sm_80
expect 0 '0f47000000' "$tilec" emit ptx "$work/bytes.tile" --target=sm_80
expect 1 '' sh -c '"$0" emit ptx "$1" --target=sm_80 | grep -E "cvt.rn.f32.[su](8|16|32)"' "$tilec" "$work/bytes.tile"
# Products of an unrolled window are a loop where the number is in places alone: not with an order of their own, nor with another use of it.
cat >"$work/window.tile" <<'END'
kernel window(x: in f32[M], wt: in f32[3, 2, 2], y: out f32[M]) {
    grid m in tiles(M, 2) {
        var acc = zeros[2, 2](f32)
        static for i in 0..3 {
            let v = x[m + i] else 0
            acc = DOT(join(v, v)OTHER, (wt[i, :, :] else 0), acc)
        }
        y[m] = sum(acc, axis = 1)
    }
}
END
products_of() { sed "s/DOT/$1/; s/OTHER/$2/" "$work/window.tile" >"$work/some.tile" && "$tilec" emit tile "$work/some.tile" | grep -c ' = dot '; }
expect 0 '1' products_of dot ''
expect 0 '3' products_of 'dot[ordered]' ''
expect 0 '3' products_of dot ' * f32(i)'
# Additions of floats are instructions, of vectors where rows are contiguous: no compare-and-swap, no order of memory.
cat >"$work/sums.tile" <<'END'
kernel sums[T: f16 | bf16 | f32 | f64](ids: in i32[M], x: in T[M, N], table: inout T[V, N]) tune BM in {4}, BN in {128} {
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { atomic_add(table[ids[m], n], x[m, n]) }
}
kernel olds[T: f16 | bf16 | f32 | f64](x: in T[N], y: inout T[N], old: out T[N]) tune BN in {512} {
    grid n in tiles(N, BN) { old[n] = atomic_add(y[n], x[n]) }
}
kernel tops(x: in f32[N], y: inout f32[N], count: inout i32[N]) tune BN in {512} {
    grid n in tiles(N, BN) {
        atomic_max(y[n], x[n])
        atomic_min(count[n], i32(x[n]))
    }
}
END
emit_sums() { "$tilec" emit ptx "$work/sums.tile:$1" $2 --target="$3"; }
expect 0 'red.relaxed.gpu.global.add.v4.f32' emit_sums sums T=f32 sm_90a
expect 0 'red.relaxed.gpu.global.add.noftz.v4.bf16x2' emit_sums sums T=bf16 sm_90a
expect 0 'red.relaxed.gpu.global.add.noftz.f16x2' emit_sums sums T=f16 sm_80
expect 0 'red.relaxed.gpu.global.add.f64' emit_sums sums T=f64 sm_80
expect 0 'atom.global.add.f32' emit_sums olds T=f32 sm_80
expect 0 'atom.global.add.noftz.bf16' emit_sums olds T=bf16 sm_90a
expect 0 'atom.relaxed.gpu.global.cas.b32' emit_sums tops '' sm_90a
expect 0 'red.relaxed.gpu.global.min.s32' emit_sums tops '' sm_90a
for type in f16 bf16 f32 f64; do
    for kernel in sums olds; do
        emit_sums $kernel T=$type sm_90a >"$work/sums.ptx"
        expect 1 '' grep -E 'cas|[.](sys|acq_rel|acquire|release)[.]' "$work/sums.ptx"
    done
done
# The register of each policy of the L2 cache is made once, where the function begins.
"$tilec" emit ptx "$stdlib/softmax.tile:softmax" T=f32 --target=sm_90a >"$work/policies.ptx"
expect 0 '' awk '/^\$L__BB/ { blocks++ } /createpolicy/ { found++; late += blocks > 0 } END { exit found != 2 || late }' "$work/policies.ptx"

cat >"$work/ptxas" <<'END'
#!/bin/sh
for word; do case $word in -o) ;; -*) ;; *.cubin) output=$word ;; *) input=$word ;; esac; done
grep -q refused "$input" && { echo "line 1 is wrong"; exit 255; }
echo "$1" >"$output"
END
chmod +x "$work/ptxas"
mkdir "$work/temporary"
cubin() { TMPDIR=$work/temporary TILE_PTXAS=$work/ptxas "$tilec" emit cubin "$@"; }
expect 0 '-arch=sm_90a' cubin "$stdlib/elementwise.tile:add" T=f32 --target=sm_90a
echo 'kernel refused(x: inout f32[N]) { grid n in tiles(N, 32) { x[n] = x[n] * 2.0 } }' >"$work/k.tile"
expect 2 'refuses the code: line 1 is wrong' cubin "$work/k.tile" --target=sm_80
expect 1 "the target 'avx2' has no stage 'ptx'" cubin "$work/k.tile" --target=avx2
expect 0 '' rmdir "$work/temporary"
expect 2 'which is no program' env TILE_PTXAS="$work/none" "$tilec" emit cubin "$work/k.tile" --target=sm_80
expect 0 'avx512' "$tilec" backends
expect 0 'no AArch64 with SVE' "$tilec" backends
# f32 is rounded to tf32 where the setting allows it, on GPUs.
expect 0 'TILE_ALLOW_TF32      1' env TILE_ALLOW_TF32=1 "$tilec" backends
expect 1 '' sh -c '"$0" emit ptx "$1" T=f32 U=f32 --target=sm_80 | grep -F .tf32.tf32.' "$tilec" "$stdlib/matmul.tile:matmul"
expect 0 '.tf32.tf32.' env TILE_ALLOW_TF32=1 "$tilec" emit ptx "$stdlib/matmul.tile:matmul" T=f32 U=f32 --target=sm_80
expect 0 'tilec run' "$tilec" help run
# Options for tests: errors for invalid values.
# What tests check in passes' results: errors for unknown names.
expect 1 '--rename needs a number: --rename=1' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --rename=x
expect 1 "no pass 'nonsense' runs; passes are inline, contract, " "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --after=nonsense
expect 1 '--between: there is no pass `nonsense`' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --between=cse,nonsense
expect 0 '@softmax' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --rename=7 --between=cse

finish
