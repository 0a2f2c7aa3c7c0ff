/* The executor in tile form: results, validity, and messages. Machine form: test_execute_machine.c. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/lang/executing.h"

TestSuite(execute, .init = executing_set_up, .fini = executing_tear_down);

static const char copy_kernel[] =
    "func kernel tile @copy(%x: tensor<f32, 2, in>, %y: tensor<f32, 2, out>) {\n"
    "  %m = dim %x {axis = 0} : i64\n"
    "  %n = dim %x {axis = 1} : i64\n"
    "  check_dim %y, %n {axis = 1, text = \"columns of y\"}\n"
    "  %b = const {value = 4} : i64\n"
    "  %one = const {value = 1} : i64\n"
    "  %zero = const {value = 0} : i64\n"
    "  %up = add %n, %b : i64\n"
    "  %less = sub %up, %one : i64\n"
    "  %tiles = div %less, %b : i64\n"
    "  grid %m, %tiles (%i: i64, %t: i64) {\n"
    "    %first = mul %t, %b : i64\n"
    "    %left = sub %n, %first : i64\n"
    "    %hi = min %b, %left : i64\n"
    "    %v = load_tile %x, %i, %first, %one, %zero, %hi {access = [index, range]} : f32[4]\n"
    "    %w = add %v, %v : f32[4]\n"
    "    store_tile %y, %w, %i, %first, %one, %zero, %hi {access = [index, range]}\n"
    "    yield\n"
    "  }\n"
    "  return\n"
    "}\n";

Test(execute, a_kernel_over_ragged_tiles) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        float x[3 * 7], y[3 * 7 + 1];
        for (int i = 0; i < 21; i++) x[i] = (float)i;
        for (int i = 0; i < 22; i++) y[i] = -1;
        TileExecutorArgument arguments[] = {{.tensor = matrix(x, 3, 7)}, {.tensor = matrix(y, 3, 7)}};
        TileExecutorOptions options = {.seed = seed};
        expect_kernel(copy_kernel, arguments, &options, TILE_EXECUTION_DONE, "");
        for (int i = 0; i < 21; i++) cr_expect_eq(y[i], (float)(2 * i));
        cr_expect_eq(y[21], -1);
    }
}

Test(execute, negative_strides_and_empty_extents) {
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
    TileExecutorTensor reversed = matrix(x, 2, 3);
    reversed.data = x + 5;
    reversed.below = 5 * 4;
    reversed.above = 4;
    reversed.stride[0] = -12;
    reversed.stride[1] = -4;
    TileExecutorArgument arguments[] = {{.tensor = reversed}, {.tensor = matrix(y, 2, 3)}};
    expect_kernel(copy_kernel, arguments, NULL, TILE_EXECUTION_DONE, "");
    for (int i = 0; i < 6; i++) cr_expect_eq(y[i], (float)(2 * (6 - i)));
    TileExecutorArgument empty[] = {{.tensor = matrix(NULL, 0, 7)}, {.tensor = matrix(NULL, 0, 7)}};
    expect_kernel(copy_kernel, empty, NULL, TILE_EXECUTION_DONE, "");
}

Test(execute, checks_of_arguments) {
    float x[6], y[6];
    TileExecutorArgument arguments[] = {{.tensor = matrix(x, 2, 3)}, {.tensor = matrix(y, 3, 2)}};
    expect_kernel(copy_kernel, arguments, NULL, TILE_EXECUTION_CHECK_DIM,
                  "columns of y: the extent is 2 where 3 is expected");
    arguments[1].tensor = matrix(y, 2, 3);
    arguments[1].tensor.above = 20;
    expect_kernel(copy_kernel, arguments, NULL, TILE_EXECUTION_FAULT, "tensor y does not lie inside its memory");
    expect_kernel("func kernel tile @k(%x: tensor<f32, 2, in> {stride1 = 8, used_stride = 2}) {\n  return\n}\n",
                  arguments, NULL, TILE_EXECUTION_FAULT, "stride 1 of tensor x is 4 where the function assumes 8");
    expect_kernel("func kernel tile @k(%x: tensor<f32, 2, in> {most = 128, used_most = 384}) {\n  return\n}\n", arguments,
                  NULL, TILE_EXECUTION_DONE, "");
    arguments[0].tensor = matrix(x, 6, 0);
    expect_kernel("func kernel tile @k(%x: tensor<f32, 2, in> {most = 128, used_most = 256}) {\n  return\n}\n", arguments,
                  NULL, TILE_EXECUTION_FAULT, "extent 1 of tensor x is 0 where the function assumes 256");
    expect_kernel("func kernel tile @k() {\n  %c = const {value = false} : bool\n  require %c {text = \"never\"}\n"
                  "  return\n}\n",
                  NULL, NULL, TILE_EXECUTION_REQUIRE, "never");
}

/* Accesses of elements as they lie in memory, over rows of 3; the stride of a dimension of one element may be any. */
Test(execute, flat_accesses) {
    static const char kernel[] =
        "func kernel tile @k(%x: tensor<f32, 2, in> {dense = 1, used_dense = 1}, %y: tensor<f32, 1, out>, %first: i64) {\n"
        "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n  %four = const {value = 4} : i64\n"
        "  grid %one (%i: i64) {\n"
        "    %v = load_tile %x, %zero, %first, %one, %zero, %four {access = [index, range], flat = 0} : f32[4]\n"
        "    store_tile %y, %v, %zero, %one, %zero, %four {access = [range]}\n    yield\n  }\n  return\n}\n";
    static const char unasked[] =
        "func kernel tile @k(%x: tensor<f32, 2, in>, %y: tensor<f32, 1, out>, %first: i64) {\n"
        "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n"
        "  grid %one (%i: i64) {\n"
        "    %v = load_tile %x, %zero, %first {access = [index, index], flat = 0} : f32\n"
        "    store_tile %y, %v, %zero {access = [index]}\n    yield\n  }\n  return\n}\n";
    float x[6] = {0, 1, 2, 3, 4, 5}, y[4];
    TileExecutorTensor out = {.data = y, .extent = {4}, .stride = {4}, .above = sizeof y};
    TileExecutorArgument arguments[] = {{.tensor = matrix(x, 2, 3)}, {.tensor = out}, {.bits = 2}};
    expect_kernel(kernel, arguments, NULL, TILE_EXECUTION_DONE, "");
    for (int i = 0; i < 4; i++) cr_expect_eq(y[i], (float)(2 + i));
    arguments[2].bits = 3;
    expect_kernel(kernel, arguments, NULL, TILE_EXECUTION_FAULT,
                  "lane 3 lies outside of the tensor: index 6 of dimension 1, whose extent is 6");
    arguments[0].tensor.stride[0] = 16;
    arguments[0].tensor.extent[0] = 1;
    arguments[2].bits = 0;
    expect_kernel(unasked, arguments, NULL, TILE_EXECUTION_DONE, "");
    arguments[0].tensor = matrix(x, 6, 1);
    arguments[0].tensor.stride[1] = 400;
    arguments[2].bits = 2;
    expect_kernel(kernel, arguments, NULL, TILE_EXECUTION_DONE, "");
    for (int i = 0; i < 4; i++) cr_expect_eq(y[i], (float)(2 + i));
    arguments[0].tensor = matrix(x, 2, 2);
    arguments[0].tensor.above = sizeof x;
    arguments[0].tensor.stride[0] = 12;
    expect_kernel(kernel, arguments, NULL, TILE_EXECUTION_FAULT,
                  "tensor x has gaps behind dimension 0, other than the function assumes");
    expect_kernel(unasked, arguments, NULL, TILE_EXECUTION_FAULT, "the tensor has gaps behind dimension 0");
}

/* A body on x: f32[4] (lanes 2 and 3 invalid) that stores to y. */
static void expect_body(const char *body, TileExecution expected, const char *message) {
    static const char head[] = "func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {\n"
                               "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n"
                               "  %two = const {value = 2} : i64\n  %four = const {value = 4} : i64\n"
                               "  %f = const {value = 7.0} : f32\n"
                               "  grid %one (%i: i64) {\n"
                               "    %v = load_tile %x, %zero, %one, %zero, %two {access = [range]} : f32[4]\n";
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    TileExecutorArgument arguments[] = {{.tensor = matrix(x, 4, 1)}, {.tensor = matrix(y, 4, 1)}};
    expect_kernel(tile_arena_format(executing.arena, "%s%s    yield\n  }\n  return\n}\n", head, body), arguments, NULL,
                  expected, message);
}

Test(execute, poison_is_reported_where_it_matters) {
    expect_body("store_tile %y, %v, %zero, %one, %zero, %two {access = [range]}\n", TILE_EXECUTION_DONE, "");
    expect_body("store_tile %y, %v, %zero, %one, %zero, %four {access = [range]}\n", TILE_EXECUTION_FAULT,
                "stores a lane that is poison");
    expect_body("%w = fill %v, %f, %zero, %two {axes = [0]} : f32[4]\n"
                "store_tile %y, %w, %zero, %one, %zero, %four {access = [range]}\n",
                TILE_EXECUTION_DONE, "");
    expect_body("%s = reduce %v {kind = sum, axis = 0} : f32\n"
                "store_tile %y, %s, %zero {access = [index]}\n",
                TILE_EXECUTION_FAULT, "stores a lane that is poison");
    expect_body("%s = reduce %v {kind = max, axis = 0} : f32\n%c = gt %s, %f : bool\n"
                "if %c {\nyield\n} {\nyield\n}\n",
                TILE_EXECUTION_FAULT, "the condition is poison");
    expect_body("%s = reduce %v {kind = max, axis = 0} : f32\n%n = convert %s : i64\n"
                "%l = load_tile %x, %n {access = [index]} : f32\n",
                TILE_EXECUTION_FAULT, "an index of lane 0 is poison");
    expect_body("%c = isnan %v : bool[4]\n%l = load_tile %x, %zero, %one, %zero, %four, %c {access = [range], parts = "
                "[mask]} : f32[4]\n",
                TILE_EXECUTION_FAULT, "the mask is poison in lane 2");
    expect_body("%j = iota {axis = 0} : i64[4]\n%t = splat %two : i64[4]\n%c = lt %j, %t : bool[4]\n"
                "%g = splat %f : f32[4]\n%w = select %c, %v, %g : f32[4]\n"
                "store_tile %y, %w, %zero, %one, %zero, %four {access = [range]}\n",
                TILE_EXECUTION_DONE, "");
}

Test(execute, accesses_outside_of_a_tensor) {
    expect_body("%l = load_tile %x, %one, %one, %zero, %four {access = [range]} : f32[4]\n", TILE_EXECUTION_FAULT,
                "program (0): %l = load_tile %x, %one, %one, %zero, %four {access = [range]} : f32[4]: lane 3 lies "
                "outside of the tensor: index 4 of dimension 0, whose extent is 4");
    expect_body("store_tile %y, %f, %four {access = [index]}\n", TILE_EXECUTION_FAULT, "lane 0 lies outside");
    expect_body("%j = iota {axis = 0} : i64[4]\n%t = splat %two : i64[4]\n%n = sub %j, %t : i64[4]\n"
                "%l = load_tile %x, %n {access = [gather]} : f32[4]\n",
                TILE_EXECUTION_FAULT, "lane 0 lies outside of the tensor: index -2 of dimension 0");
    expect_body("%j = iota {axis = 0} : i64[4]\n%t = splat %two : i64[4]\n%n = sub %j, %t : i64[4]\n"
                "%c = ge %j, %t : bool[4]\n"
                "%l = load_tile %x, %n, %c, %f {access = [gather], parts = [mask, fill]} : f32[4]\n"
                "store_tile %y, %l, %zero, %one, %zero, %four {access = [range]}\n",
                TILE_EXECUTION_DONE, "");
    expect_body("store_tile %x, %f, %zero {access = [index]}\n", TILE_EXECUTION_FAULT,
                "writes to memory that is only read");
}

Test(execute, sums_have_a_fixed_order) {
    enum { N = 200 };
    TileFunc *func = read_func("func device tile @f(%x: f32[2, 200]) -> f32[2], f32[200] {\n"
                               "  %r = reduce %x {kind = sum, axis = 1} : f32[2]\n"
                               "  %c = reduce %x {kind = sum, axis = 0} : f32[200]\n"
                               "  return %r, %c\n}\n",
                               "f");
    float x[2][N], stripes[64];
    uint64_t bits[2 * N];
    for (int i = 0; i < 2 * N; i++) {
        x[i / N][i % N] = (float)((i * 7919) % 1000) / 7.0f - 60;
        bits[i] = float_bits(x[i / N][i % N]);
    }
    TileExecutor *e = tile_executor_create(func, NULL);
    tile_executor_bind_lanes(e, 0, bits);
    cr_assert_eq(tile_executor_run(e, 0), TILE_EXECUTION_DONE, "%s", tile_executor_message(e));
    for (int row = 0; row < 2; row++) {
        for (int j = 0; j < 64; j++) stripes[j] = 0;
        for (int i = 0; i < N; i++) stripes[i % 64] += x[row][i];
        for (int half = 32; half; half /= 2)
            for (int j = 0; j < half; j++) stripes[j] += stripes[j + half];
        cr_expect_eq(tile_executor_result(e, 0, NULL)[row], float_bits(stripes[0]));
    }
    for (int i = 0; i < N; i++) cr_expect_eq(tile_executor_result(e, 1, NULL)[i], float_bits(0 + x[0][i] + x[1][i]));
    tile_executor_destroy(e);
}

static void expect_lanes(const char *source, const double *expected, unsigned count) {
    TileExecutor *e = tile_executor_create(read_func(source, "f"), NULL);
    cr_assert_eq(tile_executor_run(e, 0), TILE_EXECUTION_DONE, "%s", tile_executor_message(e));
    TileScalar scalar = tile_func_find(executing.module, "f")->result_types[0]->scalar;
    for (unsigned i = 0; i < count; i++)
        cr_expect_eq(tile_scalar_to_double(scalar, tile_executor_result(e, 0, NULL)[i]), expected[i], "lane %u of %s",
                     i, source);
    tile_executor_destroy(e);
}

#define EXPECT_LANES(source, ...)                                                                                      \
    expect_lanes(source, (double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

Test(execute, shapes) {
    EXPECT_LANES("func device tile @f() -> i32[3, 2] {\n  %x = iota {axis = 1} : i32[2, 3]\n"
                 "  %p = permute %x {axes = [1, 0]} : i32[3, 2]\n  return %p\n}\n",
                 0, 0, 1, 1, 2, 2);
    EXPECT_LANES("func device tile @f() -> i32[2, 3] {\n  %x = iota {axis = 0} : i32[2, 1]\n"
                 "  %b = broadcast %x : i32[2, 3]\n  return %b\n}\n",
                 0, 0, 0, 1, 1, 1);
    EXPECT_LANES("func device tile @f() -> i32[2] {\n  %x = iota {axis = 0} : i32[2]\n"
                 "  %r = reshape %x : i32[1, 2]\n  %s = reshape %r : i32[2]\n  return %s\n}\n",
                 0, 1);
    EXPECT_LANES("func device tile @f() -> i32[2, 3] {\n  %x = iota {axis = 1} : i32[2, 3]\n"
                 "  %v = const {value = 9} : i32\n  %lo = const {value = 1} : i64\n  %hi = const {value = 2} : i64\n"
                 "  %b = fill %x, %v, %lo, %hi, %lo, %hi {axes = [1, 0]} : i32[2, 3]\n  return %b\n}\n",
                 9, 9, 9, 9, 1, 9);
}

Test(execute, scans_and_positions) {
    static const char scan[] = "func device tile @f() -> i32[4] {\n  %%x = iota {axis = 0} : i32[4]\n"
                               "  %%z = const {value = 0} : i32\n"
                               "  %%s = scan %%x, %%z {axis = 0, parts = [init]%s} : i32[4] (%%a: i32, %%b: i32) {\n"
                               "    %%c = add %%a, %%b : i32\n    yield %%c\n  }\n  return %%s\n}\n";
#define SCAN(words) tile_arena_format(executing.arena, scan, words)
    EXPECT_LANES(SCAN(""), 0, 1, 3, 6);
    EXPECT_LANES(SCAN(", reverse = 1"), 6, 6, 5, 3);
    EXPECT_LANES(SCAN(", exclusive = 1"), 0, 0, 1, 3);
    EXPECT_LANES(SCAN(", reverse = 1, exclusive = 1"), 6, 5, 3, 0);
    EXPECT_LANES("func device tile @f() -> i64[2] {\n  %i = iota {axis = 1} : i64[2, 3]\n"
                 "  %v = const {value = nan} : f32[2, 3]\n"
                 "  %r = arg_reduce %v, %i {kind = max, axis = 1} : i64[2]\n  return %r\n}\n",
                 0, 0);
    EXPECT_LANES("func device tile @f() -> i64 {\n  %i = iota {axis = 0} : i64[5]\n"
                 "  %two = const {value = 2} : i64[5]\n  %r = rem %i, %two : i64[5]\n"
                 "  %a = arg_reduce %r, %i {kind = max, axis = 0} : i64\n  return %a\n}\n",
                 1);
}

/* Subtraction is not associative, so the result shows the order of elements. */
Test(execute, folds_keep_the_order) {
    static const char line[] =
        "func device tile @f() -> i32 {\n  %%x = iota {axis = 0} : i32[%d]\n  %%start = const {value = 100} : i32\n"
        "  %%true = const {value = true} : bool[%d]\n  %%false = const {value = false} : bool\n"
        "  %%lo = const {value = 2} : i64\n  %%hi = const {value = %d} : i64\n"
        "  %%m = fill %%true, %%false, %%lo, %%hi {axes = [0]} : bool[%d]\n"
        "  %%s = fold %%x%s {axis = 0%s} : i32 (%%a: i32, %%b: i32) {\n    %%c = sub %%a, %%b : i32\n    yield %%c\n"
        "  }\n  return %%s\n}\n";
#define FOLD(extent, hi, operands, parts)                                                                              \
    tile_arena_format(executing.arena, line, extent, extent, hi, extent, operands, parts)
    EXPECT_LANES(FOLD(4, 4, "", ""), (0 - 1) - (2 - 3));
    EXPECT_LANES(FOLD(5, 5, "", ""), ((0 - 1) - (2 - 3)) - 4);
    EXPECT_LANES(FOLD(4, 4, ", %m", ", parts = [mask]"), 2 - 3);
    EXPECT_LANES(FOLD(5, 4, ", %m, %start", ", parts = [mask, init]"), 100 - (2 - 3));
    EXPECT_LANES(FOLD(5, 2, ", %m, %start", ", parts = [mask, init]"), 100);
    EXPECT_LANES(FOLD(66, 66, ", %start", ", parts = [init]"), 100 - 0 - (64 - 65));
    static const char columns[] =
        "func device tile @f() -> i32[2, 3] {\n  %%x = iota {axis = %d} : i32[2, 3]\n"
        "  %%z = const {value = 10} : i32[%d]\n"
        "  %%p, %%s = scan %%x, %%x, %%z, %%z {axis = %d, parts = [init]%s} : i32[2, 3], i32[2, 3] "
        "(%%a: i32, %%b: i32, %%c: i32, %%d: i32) {\n    %%e = sub %%a, %%c : i32\n    %%g = add %%b, %%e : i32\n"
        "    yield %%e, %%g\n  }\n  return %%s\n}\n";
#define COLUMNS(axis, lines, flags) tile_arena_format(executing.arena, columns, axis, lines, axis, flags)
    EXPECT_LANES(COLUMNS(0, 3, ""), 20, 20, 20, 29, 29, 29);
    EXPECT_LANES(COLUMNS(0, 3, ", reverse = 1"), 28, 28, 28, 19, 19, 19);
    EXPECT_LANES(COLUMNS(0, 3, ", exclusive = 1"), 10, 10, 10, 20, 20, 20);
}

Test(execute, products) {
    EXPECT_LANES("func device tile @f() -> f32[2, 2] {\n  %a = iota {axis = 1} : i32[2, 3]\n"
                 "  %b = iota {axis = 0} : i32[3, 2]\n  %fa = convert %a : f16[2, 3]\n  %fb = convert %b : f16[3, 2]\n"
                 "  %c = const {value = 10.0} : f32[2, 2]\n  %d = dot %fa, %fb, %c : f32[2, 2]\n  return %d\n}\n",
                 15, 15, 15, 15);
    EXPECT_LANES("func device tile @f() -> i32[1, 1, 1] {\n  %a = const {value = -128} : i8[1, 1, 4]\n"
                 "  %b = const {value = 255} : u8[1, 4, 1]\n  %c = const {value = 0} : i32[1, 1, 1]\n"
                 "  %d = dot %a, %b, %c : i32[1, 1, 1]\n  return %d\n}\n",
                 -130560);
    EXPECT_LANES("func device tile @f() -> f32[1, 1] {\n  %a = const {value = 1.0001} : f32[1, 1]\n"
                 "  %c = const {value = 0.0} : f32[1, 1]\n  %d = dot %a, %a, %c {precision = tf32} : f32[1, 1]\n"
                 "  return %d\n}\n",
                 1);
    /* Rows of the first half of k, then those of the second one. */
    EXPECT_LANES("func device tile @f() -> f32[4, 1] {\n  %a = iota {axis = 1} : i32[2, 4]\n  %i = iota {axis = 0} : i32[2, 4]\n"
                 "  %s = add %a, %i : i32[2, 4]\n  %b = iota {axis = 0} : i32[4, 1]\n  %fa = convert %s : f16[2, 4]\n  %fb = convert %b : f16[4, 1]\n"
                 "  %c = const {value = 10.0} : f32[4, 1]\n  %d = dot %fa, %fb, %c {k_parts = 2} : f32[4, 1]\n  return %d\n}\n",
                 11, 12, 23, 28);
}

Test(execute, loops_and_calls) {
    EXPECT_LANES(
        "func device tile @twice(%x: i64) -> i64, i64 {\n  %y = add %x, %x : i64\n  return %y, %x\n}\n"
        "func device tile @f() -> i64 {\n"
        "  %zero = const {value = 0} : i64\n  %ten = const {value = 10} : i64\n  %one = const {value = 1} : i64\n"
        "  %three = const {value = 3} : i64\n"
        "  %a, %b = for %zero, %ten, %three, %zero, %one : i64, i64 (%i: i64, %p: i64, %q: i64) {\n"
        "    %s = add %q, %i : i64\n    yield %s, %p\n  }\n"
        "  %t, %u = call %a {callee = \"twice\"} : i64, i64\n"
        "  %v = while %t : i64 (%w: i64) {\n    %c = gt %w, %ten : bool\n    condition %c, %w\n  } (%z: i64) {\n"
        "    %c2 = ge %z, %ten : bool\n    %k = if %c2 : i64 {\n      yield %one\n    } {\n      yield %three\n    }\n"
        "    %r = sub %z, %k : i64\n    yield %r\n  }\n"
        "  return %v\n}\n",
        10);
}

Test(execute, stops_and_goes_on) {
    const char *source = "func device tile @f(%n: i64) -> i64 {\n  %zero = const {value = 0} : i64\n"
                         "  %one = const {value = 1} : i64\n"
                         "  %s = for %zero, %n, %one, %zero : i64 (%i: i64, %a: i64) {\n"
                         "    %b = add %a, %i : i64\n    yield %b\n  }\n  return %s\n}\n";
    TileExecutor *e = tile_executor_create(read_func(source, "f"), NULL);
    tile_executor_bind_scalar(e, 0, 1000);
    unsigned rounds = 0;
    while (tile_executor_run(e, 7) == TILE_EXECUTION_PAUSED) rounds++;
    cr_expect_eq(tile_executor_result(e, 0, NULL)[0], 499500);
    cr_expect_eq(tile_executor_steps(e), 2002);
    cr_expect_eq(rounds, 285);
    tile_executor_destroy(e);
    e = tile_executor_create(read_func(source, "f"), NULL);
    cr_expect_eq(tile_executor_run(e, 0), TILE_EXECUTION_FAULT);
    cr_expect_str_eq(tile_executor_message(e), "parameter n is not bound");
    tile_executor_destroy(e);
}

Test(execute, temporaries) {
    static const char source[] = "func kernel tile @k(%%y: tensor<f32, 1, out>) {\n"
                                 "  %%n = dim %%y {axis = 0} : i64\n  %%t = temp %%n : tensor<f32, 1, temp>\n"
                                 "  %%f = const {value = 2.5} : f32\n"
                                 "  grid %%n (%%i: i64) {\n    %s\n    yield\n  }\n"
                                 "  grid %%n (%%i: i64) {\n    %%v = load_tile %%t, %%i {access = [index]} : f32\n"
                                 "    store_tile %%y, %%v, %%i {access = [index]}\n    yield\n  }\n"
                                 "  return\n}\n";
    float y[5] = {0};
    TileExecutorArgument arguments[] = {{.tensor = matrix(y, 5, 1)}};
    expect_kernel(tile_arena_format(executing.arena, source, "store_tile %t, %f, %i {access = [index]}"), arguments,
                  NULL, TILE_EXECUTION_DONE, "");
    for (int i = 0; i < 5; i++) cr_expect_eq(y[i], 2.5f);
    expect_kernel(tile_arena_format(executing.arena, source, ""), arguments, NULL, TILE_EXECUTION_UNDEFINED,
                  "stores what comes of `t[0]`: nothing has stored this element of the temporary before");
}

/* The origin of the poison determines whose mistake it is, whatever was computed from it. */
Test(execute, undefined_elements) {
    static const char source[] = "func kernel tile @k(%%y: tensor<f32, 1, inout>) {\n"
                                 "  %%n = const {value = 4} : i64\n  %%t = temp %%n : tensor<f32, 1, temp>\n"
                                 "  %%one = const {value = 1} : i64\n"
                                 "  %%false = const {value = false} : bool\n"
                                 "  grid %%one (%%i: i64) {\n    %%v = load_tile %%t, %%i {access = [index]} : f32\n"
                                 "    %%w = load_tile %%y, %%i {access = [index]} : f32\n%s\n    yield\n  }\n"
                                 "  return\n}\n";
    static const struct {
        const char *body;
        TileExecution state;
        const char *message;
    } cases[] = {
        {"%s = add %v, %w : f32\nstore_tile %y, %s, %i {access = [index]}", TILE_EXECUTION_UNDEFINED, "stores"},
        {"%s = select %false, %v, %w : f32\nstore_tile %y, %s, %i {access = [index]}", TILE_EXECUTION_DONE, ""},
        {"%c = gt %v, %w : bool\n%s = select %c, %w, %w : f32\nstore_tile %y, %s, %i {access = [index]}",
         TILE_EXECUTION_UNDEFINED, "stores"},
        {"%k = convert %v : i64\nstore_tile %y, %w, %k {access = [index]}", TILE_EXECUTION_UNDEFINED,
         "has as an index"},
        {"%c = gt %v, %w : bool\nif %c {\nyield\n} {\nyield\n}", TILE_EXECUTION_UNDEFINED, "depends on"},
        {"%p = load_tile %y, %i, %false {access = [index], parts = [mask]} : f32\n%s = add %v, %p : f32\n"
         "store_tile %y, %s, %i {access = [index]}",
         TILE_EXECUTION_FAULT, "stores a lane that is poison"},
    };
    float y[5] = {0};
    TileExecutorArgument arguments[] = {{.tensor = matrix(y, 5, 1)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_kernel(tile_arena_format(executing.arena, source, cases[i].body), arguments, NULL, cases[i].state,
                      cases[i].message);
}

Test(execute, knows_every_operation) {
    for (int id = 0; id < TILE_OP_COUNT; id++)
        cr_expect(tile_executor_knows((TileOpId)id), "%s", tile_op_info((TileOpId)id)->mnemonic);
}

/* Sums of x in rows of 4: the slack is 2 * n * 2^-24 * (sum of magnitudes), 0 for a single term. */
Test(execute, slack) {
    static const char source[] = "func kernel tile @k(%%x: tensor<f32, 2, in>, %%y: tensor<f32, 1, inout>) {\n"
                                 "  %%n = dim %%x {axis = 0} : i64\n  %%zero = const {value = 0} : i64\n"
                                 "  %%one = const {value = 1} : i64\n  %%four = const {value = 4} : i64\n"
                                 "  %%half = const {value = 0.5} : f32\n"
                                 "  grid %%n (%%i: i64) {\n"
                                 "    %%r = load_tile %%x, %%i, %%zero, %%one, %%zero, %%four {access = [index, range]} "
                                 ": f32[4]\n    %%s = reduce %%r {axis = 0, kind = sum} : f32\n%s\n    yield\n  }\n"
                                 "  return\n}\n";
    static const double u = 0x1p-24, inf = (double)INFINITY;
    static const struct {
        const char *body;
        double slack[3];
    } cases[] = {
        {"store_tile %y, %s, %i {access = [index]}", {6 * u * 6, 0, 8 * u * 0x1p21}},
        {"%t = mul %s, %half : f32\nstore_tile %y, %t, %i {access = [index]}",
         {16 * u + 2 * u * 3, 0, 4 * u * 0x1p21}},
        {"%m = reduce %r {axis = 0, kind = max} : f32\nstore_tile %y, %m, %i {access = [index]}", {0, 0, 0}},
        /* in the last row rounding decides which value is selected; 0 may be 0.25 as well */
        {"%c = gt %s, %half : bool\n%t = select %c, %half, %s : f32\nstore_tile %y, %t, %i {access = [index]}",
         {0, 0, 0.5 + 8 * u * 0x1p21}},
        {"%c = gt %s, %half : bool\nif %c {\nyield\n} {\nyield\n}\nstore_tile %y, %half, %i {access = [index]}",
         {inf, inf, inf}},
    };
    static const float rows[3][4] = {{1, 2, 3, 0}, {0, 0, 7, 0}, {0x1p19f, -0x1p19f, -0x1p19f, 0x1p19f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[12], y[3] = {0};
        double slack[3] = {0};
        memcpy(x, rows, sizeof x);
        TileExecutorArgument arguments[] = {{.tensor = matrix(x, 3, 4)}, {.tensor = matrix(y, 3, 1)}};
        arguments[1].tensor.slack = slack;
        expect_kernel(tile_arena_format(executing.arena, source, cases[i].body), arguments,
                      &(TileExecutorOptions){.slack = true}, TILE_EXECUTION_DONE, "");
        for (int k = 0; k < 3; k++)
            cr_expect(slack[k] == cases[i].slack[k] || fabs(slack[k] - cases[i].slack[k]) < 1e-9,
                      "case %zu: y[%d] has the slack %g, wanted %g", i, k, slack[k], cases[i].slack[k]);
    }
}
