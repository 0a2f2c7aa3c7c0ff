# tilec build for GPUs: objects that bring PTX and cubin, in programs that have libtile_launch and a CUDA driver
# (tests/gpu/fake), and no compiler.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
flags=${TILE_LINK_FLAGS:-}
cd "$work" || exit 1

cat >k.tile <<'TEXT'
/// y = by * x
kernel scale(x: in f32[M, N], y: out f32[M, N], by: f32)
    tune BM in {1, 4}, BN in {128, 256}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) { y[m, n] = x[m, n] * by }
}
TEXT
kernel_of_two_grids >>k.tile
cat >>k.tile <<'TEXT'
kernel fill(y: out f32[N], value: f32) {
    grid n in tiles(N, 256) { y[n] = full[256](value) }
}
export scale, centred, fill
TEXT

# An assembler whose cubins say which PTX they are of.
cat >ptxas <<'TEXT'
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -o) out=$2; shift ;;
    *.ptx) ptx=$1 ;;
    esac
    shift
done
grep -q 'sm_80' "$ptx" && what='not cubin'
printf '\177ELF %s %s' "${what:-cubin}" "$(cksum <"$ptx")" >"$out"
TEXT
chmod +x ptxas

# usage: main OFFSET [cpu]: launches scale on tensors so many floats behind a boundary, three times, centred, and fill,
# whose only tensor is its first argument.
cat >main.c <<'TEXT'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k.h"
#include "tests/gpu/fake/fake_cuda.h"

enum { M = 5, N = 77, FLOATS = M * N + 64 };
static int fail(const char *what, const TileError *error) { return printf("%s: %s\n", what, error->message), 1; }

int main(int count, char **words) {
    bool cpu = count > 2;
    int64_t shape[2] = {M, N};
    static float host[2][FLOATS] __attribute__((aligned(128)));
    void *memory[2] = {host[0], host[1]};
    TileError error = {.status = TILE_OK};
    for (int i = 0; i < 2 && !cpu; i++)
        if (tile_device_allocate(0, sizeof host[0], &memory[i], &error)) return fail("memory", &error);
    DLTensor x = {memory[0], {cpu ? kDLCPU : kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, y = x;
    y.data = memory[1];
    x.byte_offset = y.byte_offset = sizeof(float) * (size_t)atoi(words[1]);
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    for (int i = 0; i < 3; i++)
        if (scale(&options, &x, &y, 2)) return fail("scale", &error);
    if (centred(&options, &x, &y)) return fail("centred", &error);
    int64_t elements = M * N;
    y.ndim = 1, y.shape = &elements;
    if (fill(&options, &y, 2)) return fail("fill", &error);
    printf("fine");
    for (int i = 0; i < 2 && !cpu; i++) tile_device_release(0, memory[i]);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    FakeCudaState (*state)(void);
    const FakeCudaLaunch *(*launch)(int number);
    if (!driver) return puts(""), 0;
    *(void **)&state = dlsym(driver, "fake_cuda_state");
    *(void **)&launch = dlsym(driver, "fake_cuda_launch");
    printf(", %d launches, %d libraries, %d cubins, %d violations;", state().launches, state().libraries, state().cubins,
           state().violations);
    for (int i = 0; launch(i); i++) printf(" %s %u x %u", launch(i)->kernel, launch(i)->grid, launch(i)->block);
    puts("");
    return 0;
}
TEXT

link() { # OBJECT PROGRAM
    $cc -I"$source_directory/include" -I"$source_directory" -I. main.c "$1" "$TILE_BINARY_DIR/lib/libtile_launch.a" $flags \
        -lm -pthread -ldl -o "$2"
}

TILE_PTXAS=$work/ptxas
export TILE_PTXAS
expect 0 '' "$tilec" build k.tile --target=sm_90a,avx2,sm_80 -o k.o --header k.h
expect 0 'queued on options->stream; NAME_kernel is the one for CPUs' cat k.h
expect 0 '' link k.o main
expect 0 'fine, 6 launches, 3 libraries, 3 cubins, 0 violations; scale$0 5 x' fake 'devices=1 capability=90' ./main 0
expect 0 'centred$0 2 x' fake 'devices=1 capability=90' ./main 0
expect 0 'centred$1 4 x' fake 'devices=1 capability=90' ./main 0
expect 0 'fine, 6 launches, 3 libraries, 0 cubins, 0 violations' fake 'devices=1 capability=86' ./main 0 # not cubin
expect 0 'fine, 6 launches' fake 'devices=1 capability=100' ./main 0 # sm_90a is for 9.0 alone: the PTX of sm_80
expect 0 'fine, 6 launches' fake 'devices=2 capability=90' ./main 1
expect 1 'scale: the linked object has no code that can run on cuda:0, whose compute capability is 7.5' \
    fake 'devices=1 capability=75' ./main 0
expect 1 'memory: there is no CUDA driver' ./main 0
expect 1 'scale: the CUDA driver (12.8) says CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES' fake 'devices=1 fail=cuLaunchKernel:1:701' ./main 0
"$tilec" backends | grep -q '^ *avx2 .*lacks' || {
    expect 0 'fine' ./main 0 cpu
    expect 0 'fine' fake devices=1 ./main 0 cpu
}

# ---- which variant: all load four floats at once, and the aligned one relies on the address ----
expect 0 '' "$tilec" build k.tile --export scale --target=sm_90a --emit=json -o json.o
cat >describe.py <<'TEXT'
import json, sys
kernel, = json.load(sys.stdin)["kernels"]
names = [v["variant"] for v in kernel["variants"]]
assert names == ["contiguous, align 16", "contiguous", "general"], names
for v in kernel["variants"]:
    assert v["target"] == "sm_90a" and v["capability"] == 90 and v["alone"] and v["cubin_bytes"], v
    grid, = v["grids"]
    assert grid["symbol"] == "scale$0" and grid["threads"] % 32 == 0 and grid["shared_bytes"] == 0 and not grid["maps"], grid
    assert ".entry scale$0" in v["ptx"].replace("scale_0", "scale$0") and ".loc" not in v["ptx"]
    assert "v4" in v["ptx"] and (".ptr .global .align 16" in v["ptx"]) == (v["variant"] == names[0]), v["variant"]
assert kernel["variants"][0]["need"][0] == {"parameter": 0, "align": 16, "map": False, "strides": ["any", "unit"]}
print("as it should be")
TEXT
describe() { "$tilec" build k.tile --export scale --target=sm_90a --emit=json -o json.o | python3 describe.py; }
expect 0 'as it should be' describe

# ---- tensor maps: the object says what they are of, and the launcher has the driver make them ----
cat >product.c <<'TEXT'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "product.h"

/* usage: product K STRIDE: a product of 512 x K by K x 512 values, a's rows being so many apart, three times; prints how
 * often the driver made a map after the first launch and in the end. */
int main(int count, char **words) {
    int64_t k = atoi(words[1]), shape[3][2] = {{512, k}, {k, 512}, {512, 512}}, strides[2] = {atoi(words[2]), 1};
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    DLTensor t[3];
    int (*calls)(const char *) = NULL;
    int first = 0;
    for (int i = 0; i < 3; i++) {
        t[i] = (DLTensor){NULL, {kDLCUDA, 0}, 2, {kDLFloat, 16, 1}, shape[i], i ? NULL : strides, 0};
        if (tile_device_allocate(0, 1 << 20, &t[i].data, &error)) return 1;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&calls = dlsym(driver, "fake_cuda_calls");
    for (int i = 0; i < 3; i++) {
        if (product(&options, &t[0], &t[1], &t[2])) return printf("%s\n", error.message), 1;
        if (!i) first = calls("cuTensorMapEncodeTiled");
    }
    printf("%d maps, then %d\n", first, calls("cuTensorMapEncodeTiled") - first);
    return 0;
}
TEXT
expect 0 '"maps": [{"slot": 0, "element_bytes": 2, "swizzle": 128, "box": [' "$tilec" build \
    "$source_directory/stdlib/matmul.tile" --export 'matmul[f16, f16] as product' --target=sm_90a --emit=json \
    -o product.o --header product.h
link_product() {
    $cc -I"$source_directory/include" -I. product.c product.o "$TILE_BINARY_DIR/lib/libtile_launch.a" $flags -lm -pthread \
        -ldl -o product
}
expect 0 '' link_product
expect 0 '2 maps, then 0' fake 'devices=1 capability=90' ./product 256 256
expect 0 '2 maps, then 0' fake 'devices=1 capability=90' ./product 256 264
expect 0 '0 maps, then 0' fake 'devices=1 capability=90' ./product 256 260 # rows 520 bytes apart: other code
expect 1 'the CUDA driver (12.8) says CUDA_ERROR_INVALID_VALUE' \
    fake 'devices=1 capability=90 fail=cuTensorMapEncodeTiled:2:1' ./product 256 256

# ---- GPUs alone, without ptxas, plugins ----
expect 0 '' "$tilec" build k.tile --target=sm_80 --no-cubin -o gpu.o --header k.h
expect 0 'there is no code for CPUs' cat k.h
expect 0 '' link gpu.o gpu
expect 0 'fine, 6 launches, 3 libraries, 0 cubins' fake 'devices=1 capability=90' ./gpu 0
expect 1 'scale: x: device is cpu, expected cuda' ./gpu 0 cpu
expect 0 '' "$tilec" build k.tile --target=avx2,sm_80 -shared -o k.so
expect 0 '' $cc -I"$source_directory/include" -I"$source_directory" -I. main.c k.so -L"$TILE_BINARY_DIR/lib" -ltile_launch \
    -Wl,-rpath,"$TILE_BINARY_DIR/lib":"$work" $flags -ldl -o plugin
shared() { FAKE_CUDA='devices=1' LD_LIBRARY_PATH=$TILE_FAKE_CUDA:$work "$@"; }
expect 0 'fine, 6 launches' shared ./plugin 0
expect 1 '--bare is code of CPUs: `tilec emit ptx` prints that of' "$tilec" build k.tile --target=avx2,sm_80 --bare -o no.o
expect 1 'are for different kinds of CPU' "$tilec" build k.tile --target=avx2,sm_80,sve -o no.o
expect 2 'refuses the code' env TILE_PTXAS=/bin/false "$tilec" build k.tile --target=sm_80 -o no.o
absent "$work/no.o"

# ---- the same bytes, whatever the folder, the order and what surrounds it ----
mkdir other
cp k.tile other
(cd other && TMPDIR=$work/other "$tilec" build k.tile --target=avx2,sm_80,sm_90a -o k.o)
expect 0 '' cmp k.o other/k.o
[ ! -x /usr/local/cuda/bin/ptxas ] || {
    TILE_PTXAS=/usr/local/cuda/bin/ptxas
    "$tilec" build k.tile --target=sm_90a -o one.o
    (cd other && TMPDIR=$work/other "$tilec" build k.tile --target=sm_90a -o two.o)
    expect 0 '' cmp one.o other/two.o
}
lacks_paths() { ! grep -qF -e "$work" -e '.loc' k.o; }
expect 0 '' lacks_paths
finish
