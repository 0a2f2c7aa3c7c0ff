#!/bin/sh
# `tilec build -g`: gdb shows lines and variables of code for CPUs, DWARF is well-formed once linked, and the code is the
# same without.
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
finish
