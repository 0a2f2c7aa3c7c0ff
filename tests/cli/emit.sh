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
expect 0 'vfmadd' "$tilec" emit asm "$stdlib/matmul.tile:matmul" T=f32 U=f32 --target=avx2
# Rows past the end are left out of a sum over both axes when their axis goes: no row is read through a mask of its own.
expect 1 '' sh -c '"$0" emit machine "$1" T=f32 --target=avx512 | grep "splat .*x bool>"' "$tilec" "$stdlib/reduce.tile:sum_all"
expect 1 'T' "$tilec" emit tile "$stdlib/softmax.tile:softmax"
expect 1 'goes with the stages tile and machine' "$tilec" emit mlir "$stdlib/softmax.tile:softmax" T=f32 --after=inline
expect 1 'nonesuch' "$tilec" emit nonesuch "$stdlib/softmax.tile:softmax" T=f32
expect 1 'nonesuch' "$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --after=nonesuch
for file in "$stdlib"/*.tile "$source_directory"/examples/*/*.tile; do expect 0 '' "$tilec" check "$file"; done
expect 0 'whilelo' "$tilec" emit asm "$stdlib/softmax.tile:softmax" T=bf16 --target=sve
expect 0 'vec<[4] x f32>' "$tilec" emit machine "$stdlib/matmul.tile:matmul" T=f32 U=f32 --target=sve
expect 0 'avx512' "$tilec" backends
expect 0 'no AArch64 with SVE' "$tilec" backends
expect 0 'tilec run' "$tilec" help run
expect 0 'run' "$tilec" help
finish
