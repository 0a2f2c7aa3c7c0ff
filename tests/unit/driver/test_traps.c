/* Debug builds stop at integer division by zero and at shifts by at least the width, on every target, with the
 * location; other builds, and elements that do not exist, give the language's defined results. */
#include "effects.h"

#include <stdio.h>

static const char text[] = "kernel k(x: in %s[N], y: in %s[N], z: out %s[N]) tune B in {4} {\n"
                           "    grid n in tiles(N, B) { z[n] = x[n] %s y[n] }\n"
                           "}\n";

static const char scalar_text[] = "kernel k(x: in i32[N], y: in i32[N], z: out i64[N]) {\n"
                                  "    grid n in N { z[n] = if y[n] == -1 { 7 } else { i64(x[n]) / i64(y[n]) } }\n"
                                  "}\n";

/* Both sides of a lifted `if` are executed: operations under its condition must not trap. */
static const char lifted_text[] = "fn quotient(a: i32, b: i32) -> i32 {\n"
                                  "    if b != 0 { return a / b }\n"
                                  "    return -1\n"
                                  "}\n"
                                  "kernel k(x: in i32[N], y: in i32[N], z: out i32[N]) tune B in {4} {\n"
                                  "    grid n in tiles(N, B) { z[n] = quotient(x[n], y[n]) }\n"
                                  "}\n";

static tile_status try_launch(const char *source, Way way, const int32_t *x, const int32_t *y, void *z, int bits,
                              TileError *error) {
    Program program = compile_way(source, &way);
    Array arrays[3];
    array_of(&arrays[0], (void *)x, kDLInt, 32, 1, (int64_t[]){6});
    array_of(&arrays[1], (void *)y, kDLInt, 32, 1, (int64_t[]){6});
    array_of(&arrays[2], z, kDLInt, (uint8_t)bits, 1, (int64_t[]){6});
    TileArg args[3];
    for (int i = 0; i < 3; i++) args[i] = TILE_TENSOR(&arrays[i].dl);
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error};
    tile_status status = tile_launch(program.kernel, args, 3, &options);
    release_program(&program);
    return status;
}

static void expect_trap(const char *source, Way way, const int32_t *y, int bits, const char *words) {
    static const int32_t x[6] = {7, -7, 100, INT32_MIN, 0, 5};
    int64_t z[6];
    TileError error = {.message = ""};
    cr_expect_eq(try_launch(source, way, x, y, z, bits, &error), TILE_OK, "%s: %s", way.target, error.message);
    way.flags |= TILE_COMPILE_DEBUG;
    tile_status status = try_launch(source, way, x, y, z, bits, &error);
    if (!words)
        cr_expect_eq(status, TILE_OK, "%s: %s", way.target, error.message);
    else
        cr_expect(status == TILE_INVALID_ARGUMENT && strstr(error.message, words), "%s: %s", way.target, error.message);
}

Test(traps, of_debug_builds) {
    static const int32_t zero[6] = {1, 2, 3, 4, 0, 6}, fine[6] = {1, 2, 3, 31, 30, 1}, wide[6] = {1, 2, 3, 4, 5, 32},
                         negative[6] = {1, 2, 3, 4, 5, -1}, escaped[6] = {1, 2, 3, 4, -1, 6};
    static const char *const operators[] = {"/", "%", "<<", ">>"};
    for (int w = 0; w < WAYS_WITH_GPU; w++) {
        if (!way_usable(&all_ways[w])) continue;
        for (int o = 0; o < 4; o++) {
            char source[300];
            snprintf(source, sizeof source, text, "i32", "i32", "i32", operators[o]);
            expect_trap(source, all_ways[w], fine, 32, NULL);
            expect_trap(source, all_ways[w], zero, 32, o < 2 ? "<text>:2:36: assertion failed: `x[n]" : NULL);
            expect_trap(source, all_ways[w], o < 2 ? fine : wide, 32, o < 2 ? NULL : "y[n]` shifts past the width");
            expect_trap(source, all_ways[w], o < 2 ? fine : negative, 32, o < 2 ? NULL : "shifts past the width");
        }
        expect_trap(scalar_text, all_ways[w], zero, 64, "divides by zero");
        expect_trap(scalar_text, all_ways[w], escaped, 64, NULL);
        expect_trap(lifted_text, all_ways[w], zero, 32, NULL);
    }
}
