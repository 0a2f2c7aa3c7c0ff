#!/bin/sh
# `tilec build -g`: gdb shows lines and variables of code for CPUs, DWARF is well-formed once linked, and the code is the
# same without. With TILE_DEBUGGER=1 it shows them in a process that launches, too.
. "${TILE_SOURCE_DIR:?}/tests/cli_common.sh"
cd "$work" || exit 2
cc=${CC:-cc}
flags=${TILE_LINK_FLAGS:-}

cat >sums.tile <<'END'
/// y[m] is the sum of k times row m.
kernel sums(x: in f32[M, N], y: out f32[M], k: f32) {
    grid m in M {
        var total = f32(0)
        for n in tiles(N, 64) {
            let part = sum(x[m, n])
            total = total + part * k
        }
        y[m] = total
    }
}
export sums
END

# The same code, whatever is said about it.
for level in avx2 avx512; do
    for file in sums.tile "$stdlib/softmax.tile" "$stdlib/norm.tile"; do
        expect 0 '' "$tilec" build "$file" --target=$level -o without.o --header sums.h
        expect 0 '' "$tilec" build "$file" --target=$level -g -o with.o --header sums.h
        objdump -d -j .text without.o | sed 1,3d >without
        objdump -d -j .text with.o | sed 1,3d >with
        checks=$((checks + 1))
        cmp with without >"$work/output" 2>&1 && [ -s with ] || complain "-g changes the code of $file for $level"
    done
done

if ! command -v gdb >/dev/null; then
    echo "skipped: gdb is not installed"
    [ -z "${TILE_REQUIRE_DEBUGGER:-}" ] || failed=$((failed + 1))
    finish
    exit
fi
"$tilec" backends | grep -q '^ *avx2 .*lacks' && { echo "skipped: this CPU has no AVX2"; finish; exit; }

prefix=$work/prefix
expect 0 '' cmake --install "$TILE_BINARY_DIR" --prefix "$prefix" --component libraries
libraries=$(dirname "$(find "$prefix" -name libtile_launch.a)")
cat >main.c <<'END'
#include <stdio.h>
#include <tile/launch.h>
#include "sums.h"
int main(void) {
    static float x[3 * 100], y[3];
    for (int i = 0; i < 300; i++) x[i] = (float)(i % 100);
    int64_t shape[2] = {3, 100}, rows[1] = {3};
    DLTensor a = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
    DLTensor b = {.data = y, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = rows};
    tile_status status = sums(NULL, &a, &b, 2);
    printf("%d %g %g %g\n", status, y[0], y[1], y[2]);
    return status;
}
END
expect 0 '' "$tilec" build sums.tile --target=avx2 -g -o sums.o --header sums.h
expect 0 '' $cc -g main.c sums.o -I. -I"$prefix/include" $flags "$libraries/libtile_launch.a" -lpthread -lm -ldl -o main
expect 0 '0 9900 9900 9900' ./main
dwarf=$(command -v llvm-dwarfdump || command -v llvm-dwarfdump-22)
[ -z "$dwarf" ] || expect 0 'No errors' "$dwarf" --verify main

cat >commands <<'END'
set debuginfod enabled off
set breakpoint pending on
break sums.tile:7
run
bt 1
info locals
print x[3]
print *x@4
ptype total
continue
print n
print total
delete
break sums.tile:9
continue
print total
continue
print program
kill
END
TILE_NUM_THREADS=1 gdb -q -nx -batch -x commands ./main >printed 2>&1
# shows 'line': gdb has printed it.
shows() {
    checks=$((checks + 1))
    cp printed "$work/output"
    grep -qxF -e "$1" printed || complain "gdb does not print: $1"
}
# What `commands` print of sums.tile: of the AOT object, and of code that a launch has compiled.
shows_all() {
    shows "7	            total = total + part * k"
    shows 'k = 2'
    shows '$1 = 3'
    shows '$2 = {0, 1, 2, 3}'
    shows 'type = f32'
    shows '$3 = 64'
    shows '$4 = 4032'
    shows "9	        y[m] = total"
    shows '$5 = 9900'
    shows '$6 = 1'
}
shows_all

# Code in memory.
TILE_DEBUGGER=1 TILE_NUM_THREADS=1 gdb -q -nx -batch -x commands --args "$tilec" run sums.tile --target=avx2 \
    x=arange:f32[3,100] y=@ k=2 >printed 2>&1
shows_all

# A program that compiles: debuggers are shown what is loaded, as long as it is, and nothing unless they ask. Linked with
# libtile as users do.
cat >compiles.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <tile/tile.h>
typedef struct Entry Entry;
struct Entry { Entry *next, *previous; const char *object; uint64_t size; };
typedef struct Descriptor { uint32_t version, action; Entry *relevant, *first; } Descriptor;
static int shown(void) {
    const Descriptor *descriptor = dlsym(RTLD_DEFAULT, "__jit_debug_descriptor");
    int count = 0;
    if (!descriptor) return -1;
    for (const Entry *entry = descriptor->first; entry; entry = entry->next) count++;
    return count;
}
static int launch(TileLibrary *library) {
    static float x[3 * 100];
    float y[3];
    int64_t shape[2] = {3, 100}, rows[1] = {3};
    DLTensor a = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
    DLTensor b = {.data = y, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = rows};
    TileKernel *kernel;
    TileArg args[3] = {tile_arg_tensor(&a), tile_arg_tensor(&b), tile_arg_number(2)};
    if (tile_library_kernel(library, "sums", &kernel) != TILE_OK) return 1;
    return tile_launch(kernel, args, 3, NULL) != TILE_OK;
}
static void *loads(void *state) {
    TileCompileOptions options = {.struct_size = sizeof options, .target = "avx2"};
    for (int i = 0; i < 5; i++) {
        TileLibrary *library;
        if (tile_compile_file(state, "sums.tile", &options, &library, NULL) != TILE_OK || launch(library)) return state;
        tile_library_destroy(library);
    }
    return NULL;
}
int main(void) {
    TileCompiler *compiler;
    TileLibrary *libraries[2];
    TileCompileOptions options = {.struct_size = sizeof options, .target = "avx2"};
    pthread_t threads[4];
    void *failed = NULL, *one;
    if (tile_compiler_create(NULL, &compiler) != TILE_OK) return 2;
    for (int i = 0; i < 2; i++)
        if (tile_compile_file(compiler, "sums.tile", &options, &libraries[i], NULL) != TILE_OK || launch(libraries[i])) return 2;
    int both = shown();
    tile_library_destroy(libraries[1]);
    int last = shown();
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, loads, compiler);
    for (int i = 0; i < 4; i++) failed = pthread_join(threads[i], &one) == 0 && !one ? failed : compiler;
    int same = shown();
    tile_library_destroy(libraries[0]);
    tile_compiler_destroy(compiler);
    printf("%s: %d %d %d %d\n", failed ? "failed" : "launched", both, last, same, shown());
    return 0;
}
END
expect 0 '' $cc compiles.c -I"$prefix/include" $flags -L"$libraries" -ltile -lpthread -ldl -Wl,-rpath,"$libraries" -o compiles
expect 0 'launched: 2 1 1 0' env TILE_DEBUGGER=1 ./compiles
expect 0 'launched: 0 0 0 0' ./compiles
TILE_DEBUGGER=1 TILE_NUM_THREADS=1 gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'set breakpoint pending on' \
    -ex 'break sums.tile:9' -ex run -ex 'print k' -ex kill ./compiles >printed 2>&1
shows "9	        y[m] = total"
shows '$1 = 2'
finish
