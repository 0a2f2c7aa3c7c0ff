# Products of each type by wgmma, on the emulated GPU, held to the reference interpreter within what other sums explain.
. "$TILE_SOURCE_DIR/tests/cli_common.sh"

cat >"$work/k.tile" <<'TEXT'
kernel bytes[T: i8 | u8, V: i8 | u8](a: in T[M, K], b: in V[N, K], c: out i32[M, N])
    tune BM in {64}, BN in {48}, BK in {64}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](i32)
        for k in tiles(K, BK) { acc = dot(a[m, k], b[n, k].T, acc) }
        c[m, n] = acc
    }
}
kernel floats[T: f16 | bf16 | f8e4m3 | f8e5m2](a: in T[M, K], b: in T[N, K], c: out f32[M, N])
    tune BM in {64}, BN in {48}, BK in {64}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot(a[m, k], b[n, k].T, acc) }
        c[m, n] = acc
    }
}
kernel tf32(a: in f32[M, K], b: in f32[N, K], c: out f32[M, N])
    tune BM in {64}, BN in {48}, BK in {32}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot[tf32](a[m, k], b[n, k].T, acc) }
        c[m, n] = acc
    }
}
/// An operand that is computed is taken from registers.
kernel doubled[T: i8 | u8](a: in T[M, K], b: in T[N, K], c: out i32[M, N])
    tune BM in {64}, BN in {48}, BK in {64}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](i32)
        for k in tiles(K, BK) { acc = dot(a[m, k] + a[m, k], b[n, k].T, acc) }
        c[m, n] = acc
    }
}
kernel tf32_tripled(a: in f32[M, K], b: in f32[N, K], c: out f32[M, N])
    tune BM in {64}, BN in {48}, BK in {32}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot[tf32](a[m, k] * 3, b[n, k].T, acc) }
        c[m, n] = acc
    }
}
kernel f16_tripled[T: f16 | bf16](a: in T[M, K], b: in T[N, K], c: out f32[M, N])
    tune BM in {64}, BN in {48}, BK in {64}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot(a[m, k] * 3, b[n, k].T, acc) }
        c[m, n] = acc
    }
}
kernel f8_doubled[T: f8e4m3 | f8e5m2](a: in T[M, K], b: in T[N, K], c: out f32[M, N])
    tune BM in {64}, BN in {48}, BK in {64}, warps in {4}, stages in {3}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        var acc = zeros[BM, BN](f32)
        for k in tiles(K, BK) { acc = dot(T(f32(a[m, k]) * 2), b[n, k].T, acc) }
        c[m, n] = acc
    }
}
TEXT

# multiplies INSTRUCTION WORDS KERNEL SETTINGS..: computes it by wgmma of this form, and `run --check` says the words.
multiplies() {
    instruction=$1 words=$2 kernel=$3
    shift 3
    expect 0 "$instruction" sh -c '"$@" | grep -m 1 mma_async' sh "$tilec" emit ptx "$kernel" --target=sm_90a $types
    for seed in 0 3; do
        expect 0 "$words" "$tilec" run "$kernel" "$@" c=@ --target=sm_90a --emulate --check --schedule-seed=$seed
    done
}

equal='bit for bit'
near='each by no more than its sums in another order can'
types='T=i8 V=u8'
multiplies wgmma.mma_async.sync.aligned.m64n48k32.s32.s8.u8 "$equal" "$work/k.tile:bytes" \
    "a=randint:i8[70,208](-128,128)" "b=randint:u8[50,208](0,256)"
types='T=u8 V=u8 BM=128 BN=16 BK=128'
multiplies wgmma.mma_async.sync.aligned.m64n16k32.s32.u8.u8 "$equal" "$work/k.tile:bytes" \
    "a=randint:u8[130,272](0,256)" "b=randint:u8[50,272](0,256)" BM=128 BN=16 BK=128
types=
multiplies wgmma.mma_async.sync.aligned.m64n48k8.f32.tf32.tf32 "$near" "$work/k.tile:tf32" \
    "a=randn:f32[70,100]" "b=rand:f32[50,100]"
types='T=f8e4m3'
multiplies wgmma.mma_async.sync.aligned.m64n48k32.f32.e4m3.e4m3 "$near" "$work/k.tile:floats" \
    "a=randn:f8e4m3[70,208]" "b=randn:f8e4m3[50,208]"
types='T=f8e5m2 BM=128 BN=160 BK=128'
multiplies wgmma.mma_async.sync.aligned.m64n80k32.f32.e5m2.e5m2 "$near" "$work/k.tile:floats" \
    "a=randn:f8e5m2[130,208]" "b=randn:f8e5m2[150,208]" BM=128 BN=160 BK=128

# Sums of more than 14 bits: those of 128 products of small integers have no more, and the others are added in f32. Each
# warpgroup has several instructions, one after the other.
types='T=f8e4m3 BM=128 BN=192 BK=128'
multiplies wgmma.mma_async.sync.aligned.m64n96k32.f32.e4m3.e4m3 "$equal" "$work/k.tile:floats" \
    "a=randint:f8e4m3[130,2000](1,8)" "b=randint:f8e4m3[200,2000](1,8)" BM=128 BN=192 BK=128

# Columns that two instructions share; rows of which a warpgroup has several times 64.
types='T=f16 BN=320'
multiplies wgmma.mma_async.sync.aligned.m64n160k16.f32.f16.f16 "$near" "$work/k.tile:floats" \
    "a=randn:f16[70,80]" "b=randn:f16[330,80]" BN=320
types='T=f16 BM=320 BN=32'
multiplies wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "$near" "$work/k.tile:floats" \
    "a=randn:f16[330,80]" "b=randn:f16[40,80]" BM=320 BN=32

# A warp's fragments of `a` are made of what its threads have computed.
types=T=i8
multiplies wgmma.mma_async.sync.aligned.m64n48k32.s32.s8.s8 "$equal" "$work/k.tile:doubled" \
    "a=randint:i8[70,208](-64,64)" "b=randint:i8[50,208](-128,128)"
types=
multiplies wgmma.mma_async.sync.aligned.m64n48k8.f32.tf32.tf32 "$near" "$work/k.tile:tf32_tripled" \
    "a=randn:f32[70,100]" "b=rand:f32[50,100]"
types=T=f16
multiplies wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 "$near" "$work/k.tile:f16_tripled" \
    "a=randn:f16[70,208]" "b=randn:f16[50,208]"
types=T=f8e5m2
multiplies wgmma.mma_async.sync.aligned.m64n48k32.f32.e5m2.e5m2 "$near" "$work/k.tile:f8_doubled" \
    "a=randn:f8e5m2[70,208]" "b=randn:f8e5m2[50,208]"

# by_warpgroups KERNEL SETTINGS..: of the library, by wgmma as well; results of 16 bits may all be equal.
by_warpgroups() {
    kernel=$TILE_SOURCE_DIR/stdlib/$1
    shift
    expect 0 'products are computed by wgmma' "$tilec" explain "$kernel" "$@" --target=sm_90a
    for seed in 0 3; do
        expect 0 '' "$tilec" run "$kernel" "$@" --target=sm_90a --emulate --check --schedule-seed=$seed
    done
}

# Windows that are met by every second position alone; ranges that end before the tensor does.
by_warpgroups conv.tile:conv2d_input_gradient dy=randn:bf16[2,3,5,24] wt=randn:bf16[3,2,40,24] dx=@:bf16[2,5,9,40] stride=1 \
    dilation=1 pad=1 BH=2 BW=32 BC=32 BO=16
by_warpgroups conv.tile:conv2d_input_gradient dy=randn:f16[1,3,5,24] wt=randn:f16[3,3,40,24] dx=@:f16[1,6,9,40] stride=2 \
    dilation=1 pad=1 BH=2 BW=32 BC=32 BO=16
by_warpgroups conv.tile:conv2d_weight_gradient x=randn:bf16[2,4,37,24] dy=randn:bf16[2,3,19,40] dwt=@:bf16[3,2,24,40] stride=1 \
    dilation=1 pad=1 BC=64 BO=32 BQ=16
# Rows of 32, 64 and 128 bytes times an odd number: several panels of each swizzle, read along k and across it.
for width in 80 96 192; do
    by_warpgroups attention.tile:attention "q=randn:bf16[1,2,70,$width]" "k=randn:bf16[1,1,90,$width]" \
        "v=randn:bf16[1,1,90,$width]" o=@ scale=0.1 causal=true BS=64 BL=64
done

# Three warpgroups: the rows of four, the last of which does not exist.
for length in 192 250; do
    rows="q=randn:bf16[1,2,$length,64] k=randn:bf16[1,1,270,64] v=randn:bf16[1,1,270,64] o=@ scale=0.1 causal=true BS=192 BL=64"
    # shellcheck disable=SC2086 # a word for each argument
    by_warpgroups attention.tile:attention $rows
    # shellcheck disable=SC2086
    by_warpgroups attention.tile:attention_lse $rows lse=@
done
expect 0 '3 warpgroups multiply' "$tilec" explain "$TILE_SOURCE_DIR/stdlib/attention.tile:attention" q=ones:f16[1,2,200,64] \
    k=ones:f16[1,2,200,64] v=ones:f16[1,2,200,64] o=@ scale=0.1 causal=false BS=192 BL=128 --target=sm_90a

# Few rows, which are columns where weights are computed on their way: with an end of k within a step, rows that the tensor does not have, and
# several blocks of them.
for rows in 1 16 37; do
    by_warpgroups ../tests/programs/products.tile:dequantised "x=randn:bf16[$rows,208]" "w=randint:i8[130,208](-99,99)" scale=rand:f32[130] \
        y=@ BM=16 BN=64 BK=32
    by_warpgroups ../tests/programs/products.tile:dequantised "x=randn:f16[$rows,208]" "w=randint:i8[72,208](-99,99)" scale=rand:f32[72] \
        y=@ BM=64 BN=128 BK=128
    by_warpgroups quantise.tile:matmul_int4 "a=randn:bf16[$rows,144]" "w=randint:u8[72,80](0,255)" scale=rand:f32[80] c=@ BM=16 BN=64 BH=32
    by_warpgroups matmul.tile:matmul_nt "a=randn:f16[$rows,144]" "b=randn:f16[40,144]" c=@:f16 BM=64 BN=32 BK=64 stages=2
done

# Values of another width, sinks, and scores that a function changes.
by_warpgroups attention.tile:attention_scored q=randn:bf16[1,2,70,96] k=randn:bf16[1,1,90,96] v=randn:bf16[1,1,90,64] sink=rand:f32[2] \
    o=@ scale=0.1 causal=true BS=64 BL=64
by_warpgroups attention.tile:attention_scored q=randn:f16[1,2,70,64] k=randn:f16[1,1,90,64] v=randn:f16[1,1,90,64] sink=rand:f32[2] \
    o=@ scale=0.1 causal=true f=alibi slope=rand:f32[2] BS=64 BL=64

# Gradients: several products of a loop are under way, and vectors beside them are copied by maps, or loaded where these lie odd.
for length in 72 71; do
    by_warpgroups attention.tile:attention_backward "q=randn:bf16[1,2,$length,64]" k=randn:bf16[1,1,90,64] v=randn:bf16[1,1,90,64] \
        "o=randn:bf16[1,2,$length,64]" "lse=rand:f32[1,2,$length]" "do=randn:bf16[1,2,$length,64]" dq=@ dk=@ dv=@ scale=0.1 \
        causal=true BL=64 BS=64 BK=64
done

# 8-bit floats, whose keys lie side by side in both products.
expect 0 'products are computed by wgmma' "$tilec" explain "$TILE_SOURCE_DIR/stdlib/attention.tile:attention_f8" \
    q=ones:f8e4m3[1,4,70,32] k=ones:f8e4m3[1,2,96,32] v=ones:f8e4m3[1,2,32,96] q_scale=ones:f32[1,4] k_scale=ones:f32[1,2] \
    v_scale=ones:f32[1,2] o=@:bf16 scale=0.1 causal=false BS=64 BL=64 --target=sm_90a
expect 0 ' 0 failed' "$tilec" test "$TILE_SOURCE_DIR/stdlib/conv.tile" --target=sm_90a --emulate
expect 0 ' 0 failed' "$tilec" test "$TILE_SOURCE_DIR/stdlib/attention.tile" --filter='16 bits' --target=sm_90a --emulate
expect 0 ' 0 failed' "$tilec" test "$TILE_SOURCE_DIR/stdlib/attention.tile" --filter='8-bit' --target=sm_90a --emulate
finish
