# Text of the IR where a file in the language could stand: the same commands, with the same results.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
cd "$work" || exit 1
"$tilec" emit tile "$stdlib/softmax.tile:softmax" T=f32 --general >softmax.tir
expect 0 'equal to the reference' "$tilec" run softmax.tir x=rand:f32[37,1000] y=@ --check
expect 0 'equal to the reference' "$tilec" run softmax.tir "x=rand:f32[1000,37].T" y=@ --check
expect 0 'the code relies on: dimension 1 contiguous' "$tilec" explain softmax.tir x=rand:f32[37,1000] y=@
expect 1 "dimension" "$tilec" run softmax.tir x=rand:f32[37,1000] y=@:f32[37,999]
expect 1 "softmax(x: in f32[M, N], y: out f32[M, N])" "$tilec" run softmax.tir x=rand:f32[37,1000]
expect 1 "no kernel 'none'" "$tilec" run softmax.tir:none x=rand:f32[37,1000] y=@
expect 1 "text of the IR has no stage 'ast'" "$tilec" emit ast softmax.tir
expect 0 '"name": "softmax"' "$tilec" emit json softmax.tir
expect 0 '' "$tilec" check softmax.tir
expect 0 'vec<' "$tilec" emit machine softmax.tir --target=avx2
expect 0 '.entry' "$tilec" emit ptx softmax.tir --target=sm_80
# Printed IR can be read again, including facts that held when it was printed, which launches check again.
checks=$((checks + 1))
"$tilec" emit tile softmax.tir >again.tir
"$tilec" emit tile again.tir >output && cmp again.tir output || complain "emit tile of emit tile is another text"
# A text that begins with `func` and a name is an error in the language.
echo 'func softmax(x) {}' >typo.tile
expect 1 'typo.tile:1:1: error' "$tilec" check typo.tile
sed 's/store_tile %y/store_tile %x/' softmax.tir >wrong.tir
expect 1 'writes a tensor that is `in`' "$tilec" check wrong.tir

# ---- made ahead of time ----
expect 0 '' "$tilec" build softmax.tir --target=avx2 --variant 'contiguous, x: align 64' --variant contiguous -o s.o --header s.h \
    --export 'softmax as rows'
expect 0 'tile_status rows(const TileLaunchOptions *options, const DLTensor *x, const DLTensor *y)' cat s.h
expect 1 "no file has the kernel of 'none'" "$tilec" build softmax.tir --export none -o n.o
expect 1 "'2x' is no name of a C function" "$tilec" build softmax.tir --export 'softmax as 2x' -o n.o
expect 1 "text of the IR has no conditions" "$tilec" build softmax.tir --variant 'N % 16 == 0' -o n.o
absent "$work/n.o"
cat >main.c <<'TEXT'
#include <stdio.h>
#include "s.h"
int main(void) {
    float x[6] = {1, 1, 1, 2, 2, 2}, y[6] = {0};
    int64_t shape[2] = {2, 3};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    ty.data = y;
    if (rows(NULL, &tx, &ty)) return 1;
    return printf("%.4f %.4f\n", (double)y[0], (double)y[5]) < 0;
}
TEXT
expect 0 '' "$cc" -I. -I"$source_directory/include" main.c s.o "$TILE_BINARY_DIR/lib/libtile_launch.a" ${TILE_LINK_FLAGS:-} -lm -pthread -o main
"$tilec" backends | grep -q '^ *avx2 .*lacks' || expect 0 '0.3333 0.3333' ./main
finish
