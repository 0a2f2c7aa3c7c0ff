# Programs outside of this project: the libraries as they are installed, the example of docs/linking.md, a CMake project,
# plugins.
. "$(dirname "$0")/../cli_common.sh"
cc=${CC:-cc}
flags=${TILE_LINK_FLAGS:-}
prefix=$work/prefix
expect 0 '' cmake --install "$TILE_BINARY_DIR" --prefix "$prefix" --component libraries
libraries=$(dirname "$(find "$prefix" -name libtile_launch.a)")
cd "$work" || exit 1

# blocks LANGUAGE: the fenced blocks of these languages.
blocks() { awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } /^```/ { inside = 0 } inside' "$page"; }

# ---- the page's example ----
page=$source_directory/docs/linking.md
blocks 'tile scale.tile' >scale.tile
blocks 'c main.c' >main.c
PKG_CONFIG_PATH=$libraries/pkgconfig
export PKG_CONFIG_PATH
{ blocks sh; blocks shell; } | sed "s|^tilec |\"$tilec\" |; s|^cc .*|& $flags|" >commands.sh
if command -v pkg-config >/dev/null; then
    expect 0 '0.5 1 1.5 2 2.5 3' sh -e commands.sh
    expect 0 '-ltile_launch' pkg-config --libs tile_launch
    expect 0 '-ltile' pkg-config --libs tile
else
    echo "skipped: pkg-config is not installed"
fi
checks=$((checks + 1))
blocks c | sed -n 's/^\(tile_status.*\);/\1/p' >declaration
"$tilec" build scale.tile --header scale.h -o scale.o
grep -qF "$(cat declaration)" scale.h || complain "the page's function is not that of the header"

# ---- a CMake project finds the package ----
mkdir project
cp main.c scale.o scale.h project
cat >project/CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(tile 0.1 REQUIRED)
foreach(kind launch launch_static)
  add_executable(user_${kind} main.c)
  target_include_directories(user_${kind} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(user_${kind} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/scale.o tile::${kind})
endforeach()
TEXT
expect 0 '' cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags"
expect 0 '' cmake --build project/build
expect 0 '0.5 1 1.5 2 2.5 3' project/build/user_launch
expect 0 '0.5 1 1.5 2 2.5 3' project/build/user_launch_static

# ---- a project that compiles: kernels built in memory, and a pass from a shared object ----
mkdir compiling
cat >compiling/compiling.c <<'TEXT'
#include <stdio.h>
#include <string.h>
#include <tile/pass.h>
static void build(TileIr *ir) {
    const char *dimensions[] = {"N"};
    tile_ir_kernel(ir, "triple");
    TileIrValue *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_INOUT, "f32", dimensions, 1);
    TileIrValue *blocks = tile_ir_tiles(ir, tile_ir_dimension(ir, "N"), 16);
    tile_ir_begin(ir, "grid", &blocks, 1, NULL, NULL, 0);
    TileIrIndex at = {tile_ir_binary(ir, "mul", tile_ir_argument(ir, 0), tile_ir_integer(ir, "i64", 16)), 16};
    TileIrValue *v = tile_ir_load(ir, x, &at, 1, NULL);
    tile_ir_store(ir, x, tile_ir_binary(ir, "mul", v, tile_ir_number(ir, "f32[16]", 3)), &at, 1);
    tile_ir_end(ir);
    tile_ir_kernel_end(ir);
}
int main(int count, char **words) {
    TileCompiler *compiler;
    TileLibrary *library;
    TileReport *report;
    TileIr *ir;
    float x[20];
    int64_t n = 20;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
    TileArg argument = TILE_TENSOR(&tx);
    for (int i = 0; i < 20; i++) x[i] = (float)i;
    if (tile_ir_create(&ir) || tile_compiler_create(NULL, &compiler)) return 1;
    if (count > 1 && tile_compiler_load_passes(compiler, words[1], &report)) return puts(tile_report_text(report, 0)), 1;
    build(ir);
    if (tile_compile_ir(compiler, ir, NULL, &library, &report)) return puts(tile_report_text(report, 0)), 1;
    if (tile_launch(tile_library_kernel_at(library, 0), &argument, 1, NULL)) return 1;
    printf("%g %g\n", (double)x[1], (double)x[19]);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    tile_ir_destroy(ir);
    return 0;
}
TEXT
cat >compiling/negate.c <<'TEXT'
#include <string.h>
#include <tile/pass.h>
static void visit(TileIr *ir, TileIrOp *op, void *state) {
    double three;
    (void)state;
    if (strcmp(tile_ir_op_name(op), "mul") || !tile_ir_constant(tile_ir_operand(op, 1), &three) || three != 3) return;
    tile_ir_before(ir, op);
    tile_ir_replace(ir, op, tile_ir_unary(ir, "neg", tile_ir_operand(op, 0)));
    tile_ir_erase(ir, op);
}
static void run(TileIr *ir, void *host) { tile_ir_walk(ir, visit, host); }
static const TilePass pass = {.struct_size = sizeof pass, .name = "negate", .after = "contract", .run = run};
static const TilePass *const passes[] = {&pass, NULL};
TILE_DEFINE_PASSES(passes)
TEXT
cat >compiling/CMakeLists.txt <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(compiling C)
find_package(Tile 0.1 REQUIRED)
add_executable(compiling compiling.c)
target_link_libraries(compiling PRIVATE tile::tile)
TEXT
expect 0 '' cmake -S compiling -B compiling/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags"
expect 0 '' cmake --build compiling/build
expect 0 '3 57' compiling/build/compiling
expect 0 '' $cc -shared -fPIC -I"$prefix/include" compiling/negate.c -o compiling/negate.so
expect 0 '-1 -19' compiling/build/compiling compiling/negate.so
if command -v pkg-config >/dev/null; then
    # shellcheck disable=SC2046
    expect 0 '' $cc compiling/compiling.c $(pkg-config --cflags --libs tile) $flags -o compiling/plain
    expect 0 '3 57' env LD_LIBRARY_PATH="$libraries" compiling/plain
fi

# ---- the launcher brings no compiler along ----
checks=$((checks + 4))
stated=$(sed -n 's/^| `libtile_launch.so`.*: \([0-9]*\) KB.*/\1/p' "$page")
bytes=$(wc -c <"$(readlink -f "$libraries/libtile_launch.so")")
[ -n "$flags" ] || { [ $((bytes / 1000)) -le $((stated * 5 / 4)) ] && [ $((bytes / 1000)) -ge $((stated * 3 / 4)) ]; } ||
    complain "docs/linking.md says that libtile_launch has $stated KB, but it has $((bytes / 1000))"
nm "$libraries/libtile_launch.a" 2>/dev/null >"$work/output"
grep -E ' U ' "$work/output" | grep -qiE 'llvm|mlir|_ZN' && [ -z "$flags" ] && complain "libtile_launch.a refers to a compiler"
ldd "$libraries/libtile_launch.so" >"$work/output"
grep -qiE 'llvm|mlir|stdc\+\+' "$work/output" && [ -z "$flags" ] && complain "libtile_launch needs a compiler's libraries"
nm -D --undefined-only "$libraries/libtile_launch.so" >"$work/output"
grep -qiE 'llvm|mlir|_ZN' "$work/output" && [ -z "$flags" ] && complain "libtile_launch refers to a compiler"

# ---- plugins ----
cat >plugin.c <<'TEXT'
#include <dlfcn.h>
#include <stdio.h>
#include <tile/launch.h>
typedef tile_status (*Scale)(const TileLaunchOptions *, const DLTensor *, const DLTensor *, float);
int main(int count, char **words) {
    float x[40], y[40];
    int64_t shape[2] = {5, 8};
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    ty.data = y;
    for (int round = 0; round < 100; round++) {
        void *plugin = dlopen(words[count - 1], RTLD_NOW | RTLD_LOCAL);
        if (!plugin) return puts(dlerror()), 1;
        Scale scale;
        *(void **)&scale = dlsym(plugin, "scale_f32");
        if (!scale) return puts("no function"), 1;
        for (int i = 0; i < 40; i++) x[i] = (float)(i + round);
        if (scale(NULL, &tx, &ty, 3)) return puts("failed"), 1;
        for (int i = 0; i < 40; i++)
            if (y[i] != 3 * (float)(i + round)) return puts("wrong"), 1;
        if (dlsym(plugin, "tile.state")) return puts("the state is not hidden"), 1;
        if (dlclose(plugin)) return puts(dlerror()), 1;
    }
    return puts("100 rounds") < 0;
}
TEXT
expect 0 '' "$tilec" build scale.tile -shared -o scale.so
expect 0 '' $cc -I"$prefix/include" plugin.c -L"$libraries" -Wl,--no-as-needed -ltile_launch -Wl,-rpath,"$libraries" \
    $flags -o plugin
expect 0 '100 rounds' ./plugin ./scale.so
expect 0 '' "$tilec" build scale.tile -shared -o again.so
expect 0 'libtile_launch.so.0' readelf -dW scale.so
checks=$((checks + 1))
readelf -lW scale.so >"$work/output"
grep -E 'LOAD.* RWE ' "$work/output" && complain "a segment is writable and executable"
expect 0 '' $cc -I"$prefix/include" -I. main.c scale.so -L"$libraries" -ltile_launch $flags -o shared
expect 0 '0.5 1 1.5 2 2.5 3' env LD_LIBRARY_PATH=.:"$libraries" ./shared
expect 1 'build without -g' "$tilec" build scale.tile -g -shared -o no.so
expect 1 'does not go with --bare' "$tilec" build scale.tile --bare -shared -o no.so
absent "$work/no.so"

# ---- bare code, called as docs/abi.md says ----
expect 0 '' "$tilec" build scale.tile --export 'scale[f32]' --target=avx2 --bare -o bare.o --header bare.h
expect 0 'void scale_f32_avx2_general_0(' cat bare.h
cat >bare.c <<'TEXT'
#include <stdio.h>
#include <string.h>
#include "bare.h"
int main(void) {
    enum { M = 5, N = 70 };
    static float x[M][N], y[M][N];
    float by = 3;
    for (int i = 0; i < M * N; i++) x[i / N][i % N] = (float)i;
    uint64_t slots[11] = {(uint64_t)(uintptr_t)x, M, N, sizeof x[0], 4, (uint64_t)(uintptr_t)y, M, N, sizeof y[0], 4};
    memcpy(&slots[10], &by, sizeof by);
    int64_t programs = ROWS * COLUMNS * BANDS; /* two ranges, the second one first */
    scale_f32_avx2_general_0(slots, programs / 2, programs, NULL);
    scale_f32_avx2_general_0(slots, 0, programs / 2, NULL);
    for (int i = 0; i < M * N; i++)
        if (y[i / N][i % N] != 3 * (float)i) return printf("wrong at %d\n", i), 1;
    return 0;
}
TEXT
"$tilec" build scale.tile --export 'scale[f32]' --target=avx2 --bare --emit=json >bare.json
cat >describe.py <<'TEXT'
import json, sys
variant = [v for v in json.load(open("bare.json"))["kernels"][0]["variants"] if v["variant"] == "general"][0]
assert variant["slots"] == [0, 1, 2] and not variant["need"] and not variant["temps"], variant
assert variant["grids"][0]["symbol"] == "scale_f32_avx2_general_0" and not variant["grids"][0]["scratch_bytes"], variant
arguments, values = [[5, 70], [5, 70], None], []
for at in variant["host"]:
    a, b = (values[at[k]] if k in at else None for k in "ab")
    values.append({"dim": lambda: arguments[at["parameter"]][at["axis"]], "const": lambda: at["value"],
                   "add": lambda: a + b, "div": lambda: a // b, "sub": lambda: a - b, "mul": lambda: a * b}[at["op"]]())
for check in variant["dimensions"]:
    assert arguments[check["parameter"]][check["axis"]] == values[check["value"]], check
rows, columns = (values[i] for i in variant["grids"][0]["extents"])
print(f"-DROWS={rows} -DCOLUMNS={columns} -DBANDS={variant['grids'][0].get('bands', 1)}")
TEXT
expect 0 '-DROWS=' python3 describe.py
# shellcheck disable=SC2046
expect 0 '' $cc $(python3 describe.py) -I. bare.c bare.o $flags -o bare
"$tilec" backends | grep -q '^ *avx2 .*lacks' || expect 0 '' ./bare
checks=$((checks + 1))
nm bare.o | grep ' U ' | grep -vE ' mem(cpy|set|move)$' >"$work/output" && complain "bare code refers to something"
finish
