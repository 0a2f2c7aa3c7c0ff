# tilec build: objects that programs link with libtile_launch alone, and what is wrong with a request for one.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
cxx=${CXX:-c++}
library=$TILE_BINARY_DIR/lib
flags=${TILE_LINK_FLAGS:-}
cd "$work" || exit 1

# link OUTPUT SOURCES..: with the static library alone.
link_c() {
    output=$1
    shift
    $cc -std=c11 -Wall -Wextra -Werror -I"$source_directory/include" -I. "$@" "$library/libtile_launch.a" $flags -lm \
        -pthread -o "$output"
}

cat >k.tile <<'TEXT'
import math

/// Scaled copy. A comment that ends in */ and goes on.
kernel scale[T: f16 | f32](x: in T[M, N], y: out T[M, N], by: f32, twice: bool, shift: i8)
    tune BM in {1, 4}, BN in {64, 256}
{
    grid (m, n) in (tiles(M, BM), tiles(N, BN)) {
        let factor = if twice { by * 2 } else { by }
        y[m, n] = T(f32(x[m, n]) * factor + f32(shift))
    }
}

/// Sum of each row; a row is one tile.
kernel rows(x: in f32[M, N], y: out f32[M])
    static N
    require N >= 1, "a row has elements"
{
    grid m in M { y[m] = sum(x[m, :]) }
}
TEXT
kernel_of_two_grids >>k.tile
echo "export scale[f32], scale[f16] as half, centred" >>k.tile

cat >main.c <<'TEXT'
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "k.h"

enum { M = 13, N = 77 };
static float x[M * (N + 3)], y[M * (N + 3)];

static DLTensor tensor(float *data, int64_t *shape, int64_t *strides) {
    DLTensor made = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    return made;
}

static int close_to(double got, double wanted) { return fabs(got - wanted) <= 1e-5 * (1 + fabs(wanted)); }

/* stride: between the rows of x and y; step: between their columns */
static int run(int64_t stride, int64_t step) {
    int64_t shape[2] = {M, N}, strides[2] = {stride, step};
    DLTensor tx = tensor(x, shape, strides), ty = tensor(y, shape, strides);
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    for (int i = 0; i < M * (N + 3); i++) x[i] = (float)((i * 37) % 101) / 8;
    if (scale_f32(&options, &tx, &ty, 1.5f, true, -3)) return printf("%s\n", error.message), 1;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            if (y[m * stride + n * step] != x[m * stride + n * step] * 3 - 3) return printf("scale %d %d\n", m, n), 1;
    if (centred(&options, &tx, &ty)) return printf("%s\n", error.message), 1;
    for (int m = 0; m < M; m++) {
        double mean = 0;
        for (int n = 0; n < N; n++) mean += x[m * stride + n * step];
        for (int n = 0; n < N; n++)
            if (!close_to(y[m * stride + n * step], x[m * stride + n * step] - mean / N))
                return printf("centred %d %d\n", m, n), 1;
    }
    return 0;
}

static void refused(tile_status status, const TileError *error) { printf("%d %s\n", status, error->message); }

static void mistakes(void) {
    int64_t shape[2] = {M, N}, other[2] = {M, N - 1}, none[2] = {0, N};
    DLTensor tx = tensor(x, shape, NULL), ty = tensor(y, shape, NULL);
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    ty.shape = other;
    refused(scale_f32(&options, &tx, &ty, 1, false, 0), &error);
    ty.shape = shape;
    ty.data = x;
    refused(scale_f32(&options, &tx, &ty, 1, false, 0), &error);
    ty.data = y;
    ty.dtype.bits = 64;
    refused(scale_f32(&options, &tx, &ty, 1, false, 0), &error);
    ty.dtype.bits = 32;
    ty.ndim = 1;
    refused(scale_f32(&options, &tx, &ty, 1, false, 0), &error);
    ty.ndim = 2;
    tx.shape = ty.shape = none;
    error.message[0] = 0;
    refused(scale_f32(&options, &tx, &ty, 1, false, 0), &error);
}

int main(void) {
    TileKernel *kernel;
    TileKernelStats stats;
    if (run(N, 1) || run(N + 3, 1) || run(1, M)) return 1;
    mistakes();
    if (scale_f32_kernel(&kernel, NULL) != TILE_OK) return 1;
    tile_kernel_stats(kernel, &stats);
    printf("%s of %s: %d launches\n", tile_kernel_name(kernel), tile_kernel_signature(kernel), (int)stats.launches);
    return 0;
}
TEXT

# ---- a program in C, on each target ----
expect 0 '' "$tilec" build k.tile -o k.o --header k.h -MD
expect 0 '' link_c main main.c k.o
expect 0 '' "$tilec" build k.tile -o libk.a
expect 0 'kernels.o' ar t libk.a
expect 0 ' in kernels.o' nm -s libk.a
expect 0 '' link_c archived main.c libk.a
expect 0 '' ar x libk.a
expect 0 '' cmp k.o kernels.o
expect 1 'libk.a is the name of an archive' "$tilec" build k.tile -shared -o libk.a
absent g.o
for target in avx2 avx512; do
    "$tilec" backends | grep -q "^$target .*usable" || "$tilec" backends | grep "^ *$target " | grep -qv lacks || continue
    expect 0 'scale of scale[' env TILE_CPU_CAPABILITY=$target ./main
    expect 0 '1 scale: y: dimension 1 (N) is 76, but x has N = 77' env TILE_CPU_CAPABILITY=$target ./main
    expect 0 '1 scale: y: shares memory with x, but the kernel writes it' env TILE_CPU_CAPABILITY=$target ./main
    expect 0 '4 launches' env TILE_CPU_CAPABILITY=$target ./main
done
# The messages are those of compiled-in-memory kernels.
./main >ahead.txt
grep -q 'scale: y: .*f64' ahead.txt || complain "dtype mistake is not told"
grep -q 'scale: y: .*rank' ahead.txt || complain "rank mistake is not told"
expect 1 'TILE_CPU_CAPABILITY is not the name of a CPU target' env TILE_CPU_CAPABILITY=best ./main

# ---- nothing of a compiler comes in ----
checks=$((checks + 2))
nm -u main >"$work/output"
grep -qiE 'llvm|mlir|_Z' "$work/output" && complain "the program refers to a compiler or to C++"
nm k.o | grep ' U ' | grep -vE ' (tile_linked_launch|tile_linked_kernel|memcpy|memset|memmove)$' >"$work/output" &&
    complain "the object refers to more than the launcher"
nm k.o | grep ' [TDBR] ' | grep -vE ' (scale_f32|half|centred)(_kernel)?$' >"$work/output" &&
    complain "the object defines more than its functions"

# ---- C++ reads the header, and several objects go into one program ----
printf '#include "k.h"\nint main() { TileKernel *k; return half_kernel(&k, nullptr); }\n' >main.cc
expect 0 '' $cxx -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$source_directory/include" main.cc k.o \
    "$library/libtile_launch.a" $flags -lm -pthread -o maincc
expect 0 '' ./maincc
expect 0 '' "$tilec" build "$stdlib/softmax.tile" --export 'softmax[f32]' --target=avx2 -o s.o --header s.h
printf '#include "k.h"\n#include "s.h"\nint main(void) { TileKernel *k; return scale_f32_kernel(&k, NULL) || softmax_f32_kernel(&k, NULL); }\n' >two.c
expect 0 '' link_c two two.c k.o s.o
expect 0 '' ./two

# ---- the same input gives the same bytes ----
mkdir -p elsewhere && cp k.tile elsewhere
expect 0 '' "$tilec" build k.tile -o again.o --header again.h
expect 0 '' cmp k.o again.o
(cd elsewhere && "$tilec" build k.tile -o k.o --header k.h)
expect 0 '' cmp k.o elsewhere/k.o
expect 0 '' cmp k.h elsewhere/k.h
checks=$((checks + 1))
strings -a k.o >"$work/output"
grep -qE '/|\.tile' "$work/output" && grep -E '/|\.tile' "$work/output" | grep -qvE '^[^a-z]*$' &&
    grep -qF "$work" "$work/output" && complain "a path is in the object"
expect 0 '' "$tilec" build k.tile -g -o g.o
expect 0 'k.tile' strings -a g.o

# ---- make file ----
cat >u.tile <<'TEXT'
import "lib.tile"
kernel f(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 64) { y[n] = double(x[n]) } }
export f
TEXT
echo 'fn double(x: f32) -> f32 { return x * 2 }' >lib.tile
expect 0 '' "$tilec" build u.tile -o 'out u.o' -MD
expect 0 'out\ u.o: u.tile' cat 'out u.d'
expect 0 'lib.tile' cat 'out u.d'
expect 0 '' "$tilec" build u.tile -o u.o -MF deps.mk
expect 0 'u.o: u.tile' cat deps.mk

# ---- exports and settings ----
expect 0 '' "$tilec" build k.tile --export 'rows[N = 40]' --target=avx2 -o r.o --header r.h
expect 0 'tile_status rows_N40(const TileLaunchOptions *options, const DLTensor *x, const DLTensor *y)' cat r.h
expect 0 '' "$tilec" build k.tile --export rows N=40 --target=avx2 -o r.o --header r.h
expect 0 'tile_status rows(' cat r.h
expect 0 '' "$tilec" build k.tile --export 'scale[f32, BN = 128] as wide' --target=avx2 -o r.o --header r.h
expect 0 'tile_status wide(' cat r.h
# A float that the text fixes, given as an integer and as a float.
cat >lift.tile <<'TEXT'
kernel lift(x: in f32[N], y: out f32[N], by: const f32) { grid n in tiles(N, 64) { y[n] = x[n] + by } }
TEXT
cat >lift.c <<'TEXT'
#include "lift.h"
int main(void) {
    float x[3] = {1, 2, 3}, y[3], z[3];
    int64_t shape[1] = {3}, strides[1] = {1};
    DLTensor from = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0}, to = from, other = from;
    to.data = y;
    other.data = z;
    if (two(NULL, &from, &to) || more(NULL, &from, &other)) return 1;
    return y[2] == 5 && z[2] == 5.5f ? 0 : 2;
}
TEXT
expect 0 '' "$tilec" build lift.tile --export 'lift[by = 2] as two' --export 'lift[by = 2.5] as more' --target=avx2 -o lift.o --header lift.h
expect 0 '' link_c lift lift.c lift.o
expect 0 '' ./lift

# Kernels of imports: of the library and of a file, of two texts at once, and by the option, with a condition on a dimension.
cat >own.tile <<'TEXT'
import softmax
import "lift.tile"
kernel half(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 64) { y[n] = x[n] / 2 } }
export softmax.softmax[f32] as rows_of_one, lift[by = 3], half
TEXT
cat >own.c <<'TEXT'
#include "own.h"
int main(void) {
    float x[3] = {2, 2, 2}, y[3], z[3], w[3];
    int64_t shape[2] = {1, 3}, strides[2] = {3, 1};
    DLTensor from = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape + 1, strides + 1, 0}, to = from, other = from, row = from, out;
    to.data = y;
    other.data = z;
    row.ndim = 2, row.shape = shape, row.strides = strides;
    out = row;
    out.data = w;
    if (half(NULL, &from, &to) || lift_by3(NULL, &from, &other) || rows_of_one(NULL, &row, &out)) return 1;
    return y[2] == 1 && z[2] == 5 && w[0] == w[2] && w[0] > 0.33f && w[0] < 0.34f ? 0 : 2;
}
TEXT
expect 0 '' "$tilec" build own.tile --target=avx2 -o own.o --header own.h -MF own.d
expect 0 'lift.tile' cat own.d
expect 0 '' link_c own own.c own.o
expect 0 '' ./own
expect 0 '' "$tilec" build own.tile k.tile --export 'softmax.softmax[f32]' --export 'scale[f32]' --variant 'N % 16 == 0' --target=avx2 -o r.o --header r.h
expect 0 'tile_status softmax_f32(' cat r.h
expect 1 'rows_of_one: softmax.softmax[T: f16 | bf16 | f32]' "$tilec" run own.tile:rows_of_one

expect 1 'export-open' "$tilec" build k.tile --export rows -o no.o
expect 1 'write `rows[N = ..]`' "$tilec" build k.tile --export rows -o no.o
expect 1 'export-open' "$tilec" build k.tile --export scale -o no.o
expect 1 'export-setting' "$tilec" build k.tile --export 'rows[Q = 4]' -o no.o
expect 1 'no-kernel' "$tilec" build k.tile --export 'nothing[f32]' -o no.o
expect 1 'class-mismatch' "$tilec" build k.tile --export 'scale[i32]' -o no.o
expect 1 'expected' "$tilec" build k.tile --export 'scale[f32' -o no.o
expect 1 'export-name' "$tilec" build k.tile --export 'scale[f32] as double' -o no.o
expect 1 'is the name of two exports' "$tilec" build k.tile --export 'scale[f32]' --export 'scale[f32]' -o no.o
expect 1 "tune name 'BQ'" "$tilec" build k.tile BQ=4 -o no.o
expect 1 'nothing is exported' "$tilec" build lib.tile -o no.o
expect 1 "no file has the kernel of 'gone'" "$tilec" build k.tile u.tile --export gone -o no.o
expect 0 '' "$tilec" build k.tile u.tile --export f --export 'scale[f32]' --target=avx2 -o r.o

# ---- variants ----
expect 1 "'x: align 3'" "$tilec" build k.tile --variant 'x: align 3' -o no.o
# Commas in parentheses and brackets are the condition's own; what stands behind them is a demand again.
expect 1 "'min(M, N) >= 4, x: align 3': 'x: align 3'" "$tilec" build k.tile --variant 'min(M, N) >= 4, x: align 3' -o no.o
expect 1 "'N[0, 1] == 1, x: align 3': 'x: align 3'" "$tilec" build k.tile --variant 'N[0, 1] == 1, x: align 3' -o no.o
expect 1 "is neither 'NAME: align BYTES'" "$tilec" build k.tile --variant 'x: quick' -o no.o
expect 1 "has no tensor 'q'" "$tilec" build k.tile --variant 'q: align 16' -o no.o
expect 1 'N % % 16' "$tilec" build k.tile --variant 'N % % 16' -o no.o
expect 1 'unknown-name' "$tilec" build k.tile --variant 'Q % 16 == 0' -o no.o
expect 1 'says nothing' "$tilec" build k.tile --variant 'contiguous,' -o no.o
expect 1 "a condition is written 'N == 4'" "$tilec" build k.tile --export 'scale[f32]' --variant 'N = 4' -o no.o

# The variant that holds is chosen, and without a general one the rest is refused.
cat >choose.c <<'TEXT'
#include <stdio.h>
#include "v.h"
int main(void) {
    static float x[64], y[64];
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    for (int64_t n = 15; n <= 17; n++) {
        int64_t shape[2] = {2, n};
        DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
        for (int i = 0; i < 64; i++) x[i] = (float)i;
        ty.data = y;
        ty.ndim = RANK;
        error.message[0] = 0;
        tile_status status = CALL(&options, &tx, &ty);
        printf("%d: %d %s\n", (int)n, status, status ? error.message : y[1] == WANTED ? "right" : "wrong");
    }
    return 0;
}
TEXT
rows='-DRANK=1 -DCALL(o,x,y)=rows(o,x,y) -DWANTED=(float)((3*n-1)*n/2)'
scale='-DRANK=2 -DCALL(o,x,y)=scale_f32(o,x,y,1,true,5) -DWANTED=7'
expect 0 '' "$tilec" build k.tile --export rows --variant 'N = 16' --variant 'contiguous, N = 17' -o v.o --header v.h
# shellcheck disable=SC2086
expect 0 '' link_c choose $rows choose.c v.o
expect 0 '15: 3 rows: the linked object has no variant that serves these arguments; it has: ' ./choose
expect 0 '16: 0 right' ./choose
expect 0 '17: 0 right' ./choose
expect 1 "needs a value for 'N'" "$tilec" build k.tile --export rows --variant 'N = 16' --variant general -o no.o
expect 1 "needs a value of type i64" "$tilec" build k.tile --export rows --variant 'N = f32' -o no.o
expect 0 '' "$tilec" build k.tile --export 'scale[f32]' --variant 'contiguous, N % 16 == 0' --no-general -o v.o --header v.h
# shellcheck disable=SC2086
expect 0 '' link_c choose $scale choose.c v.o
expect 0 '15: 3 scale: the linked object has no variant' ./choose
expect 0 'it has: contiguous, N % 16 == 0' ./choose
expect 0 '16: 0 right' ./choose

# ---- scalars outside of grids: by any op, in a program that has no compiler; an f16, whose bits it takes ----
cat >host.tile <<'TEXT'
kernel fill(by: f16, y: out f32[N])
    require exp(by) > 2.0, sin(f32(by)) < 2.0, bitcast[u16](by) >> 10 == 15
{
    grid n in i64(exp2(f32(by)) * 1.5) { y[n] = f32(n + 1) else skip }
}
export fill
TEXT
cat >host.c <<'TEXT'
#include <stdio.h>

#include "host.h"

int main(void) {
    float memory[5] = {0};
    int64_t shape[1] = {5};
    DLTensor y = {memory, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (fill(&options, 1.0f, &y)) return printf("%s\n", error.message), 1;
    printf("%g %g %g %g %g\n", memory[0], memory[1], memory[2], memory[3], memory[4]);
    for (int i = 0; i < 2; i++)
        if (fill(&options, i ? 2.0f : 0.5f, &y) != TILE_OK) printf("%s\n", error.message);
    return 0;
}
TEXT
expect 0 '' "$tilec" build host.tile -o host.o --header host.h
expect 0 '' link_c host host.c host.o
expect 0 '1 2 3 0 0' ./host
expect 0 'fill: requires exp(by) > 2.0, but by = 0.5' ./host
expect 0 'fill: requires bitcast[u16](by) >> 10 == 15, but by = 2' ./host
expect 0 '"op": "exp", "type": "f16", "a": ' "$tilec" build host.tile --emit=json -o -
expect 0 '"op": "gt", "type": "bool", "from": "f16", "a": ' "$tilec" build host.tile --emit=json -o -
expect 0 '"op": "bitcast", "type": "u16", "from": "f16", "a": ' "$tilec" build host.tile --emit=json -o -
expect 0 '{"version": 13, ' "$tilec" build host.tile --emit=json -o -

# ---- targets, outputs ----
expect 1 "there is no target 'avx9'" "$tilec" build k.tile --target=avx9 -o no.o
expect 1 "has no code to link" "$tilec" build k.tile --target=interp -o no.o
expect 2 'cannot write' "$tilec" build k.tile -o /nonexistent/k.o
expect 2 'cannot write' "$tilec" build k.tile -o no.o --header /nonexistent/k.h
expect 2 'No such file' "$tilec" build missing.tile -o no.o
expect 1 'no file' "$tilec" build -o no.o
expect 1 'needs a value' "$tilec" build k.tile -o
expect 1 'unknown option' "$tilec" build k.tile --colour -o no.o
absent "$work/no.o"
finish
