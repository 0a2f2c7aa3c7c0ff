/* Early exits: unrolled loops, functions lifted over tiles; and untyped literals. */
#include <criterion/criterion.h>
#include <math.h>

#include "running.h"

static void expect(const float *found, const float *wanted, size_t count) {
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(found[i], wanted[i], "[%zu] is %g, not %g", i, (double)found[i], (double)wanted[i]);
}
#define EXPECT(array, ...)                                                                                             \
    expect((array), (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

Test(flow, break_and_continue_leave_an_unrolled_loop) {
    float x[6] = {0, 1, 2, 3, 4, 5}, y[6];
    RUN("kernel k(x: in f32[N], y: out f32[N]) { grid i in N {\n"
        "var t = f32(0)\n"
        "static for k in 0..4 {\n"
        "if x[i] == f32(k) { continue }\n"
        "if f32(k) > x[i] + 1 { break }\n"
        "t += f32(10 * k + 1)\n"
        "}\n"
        "y[i] = t } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 11, 22, 43, 33, 64, 64);
}

Test(flow, an_unrolled_break_that_is_known_ends_the_loop) {
    float y[1];
    RUN("kernel k(y: out f32[1]) { grid i in 1 {\n"
        "var t = f32(0)\n"
        "static for k in 0..4000 {\n"
        "if k == 3 { break }\n"
        "t += 1\n"
        "}\n"
        "y[i] = t } }",
        "", VECTOR(y));
    EXPECT(y, 3);
}

Test(flow, return_out_of_an_unrolled_loop) {
    float x[4] = {0, 1, 2, 3}, y[4] = {9, 9, 9, 9};
    RUN("kernel k(x: in f32[N], y: out f32[N]) { grid i in N {\n"
        "static for k in 1..3 { if x[i] == f32(k) { return } }\n"
        "y[i] = x[i] } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 0, 9, 9, 3);
}

Test(flow, an_unrolled_loop_over_tiles) {
    float x[2][10], y[2];
    for (int i = 0; i < 20; i++) x[i / 10][i % 10] = (float)i;
    RUN("kernel k(x: in f32[M, 10], y: out f32[M]) { grid m in tiles(M, 4) {\n"
        "var t = zeros[4](f32)\n"
        "static for n in tiles(1..10, 4) { t += sum(x[m, n], axis = 1) }\n"
        "y[m] = t } }",
        "", MATRIX(x), VECTOR(y));
    EXPECT(y, 45, 135);
}

#define STEPS                                                                                                          \
    "fn steps(x: f32) -> (f32, i32) {\n"                                                                               \
    "var v = x\n"                                                                                                      \
    "var count = 0\n"                                                                                                  \
    "while v > 1 {\n"                                                                                                  \
    "count += 1\n"                                                                                                     \
    "if count > 3 { return (-1, 99) }\n"                                                                               \
    "if v == 3 { break }\n"                                                                                            \
    "v = v / 2 }\n"                                                                                                    \
    "return (v, i32(count)) }\n"

/* One text for scalars and tiles: the loop ends for each element separately, also for those beyond the limit. */
Test(flow, a_loop_in_a_function_that_stands_for_tiles) {
    float x[7] = {0, 1, 2, 3, 6, 40, 8}, v[7], c[7];
    RUN(STEPS "kernel k(x: in f32[N], v: out f32[N], c: out f32[N]) { grid n in tiles(N, 4) {\n"
              "let (a, b) = steps(x[n])\nv[n] = a\nc[n] = f32(b) } }",
        "", VECTOR(x), VECTOR(v), VECTOR(c));
    EXPECT(v, 0, 1, 1, 3, 3, -1, 1);
    EXPECT(c, 0, 0, 1, 1, 2, 99, 3);
    RUN(STEPS "kernel k(x: in f32[N], v: out f32[N], c: out f32[N]) { grid n in N {\n"
              "let (a, b) = steps(x[n])\nv[n] = a\nc[n] = f32(b) } }",
        "", VECTOR(x), VECTOR(v), VECTOR(c));
    EXPECT(v, 0, 1, 1, 3, 3, -1, 1);
    EXPECT(c, 0, 0, 1, 1, 2, 99, 3);
}

Test(flow, a_counted_loop_that_returns_from_a_lifted_function) {
    float x[5] = {0.5f, 1.5f, 2.5f, 7, -1}, y[5];
    RUN("fn first(x: f32) -> f32 {\nfor i in 0..4 { if x < f32(i) { return f32(10 * i) } }\nreturn -1 }\n"
        "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = first(x[n]) } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 10, 20, 30, -1, 0);
}

/* ---- untyped numbers ---- */

Test(flow, a_choice_between_numbers_takes_the_type_that_is_needed) {
    float x[4] = {-1, 0, 1, 2}, y[4], z[4];
    RUN("const LOW = -0.5\n"
        "fn pick(x: f32) -> f32 { return 1 - where(x > 0, 1, where(x < 0, LOW, 0)) }\n"
        "kernel k(x: in f32[N], y: out f32[N], z: out f32[N]) { grid n in tiles(N, 8) {\n"
        "var h = f16(x[n])\n"
        "h = where(x[n] > 0, 3, 2) + h\n"
        "y[n] = f32(h) * -where(x[n] == 0, 10, 1)\n"
        "z[n] = pick(x[n]) } }",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, -1, -20, -4, -5);
    EXPECT(z, 1.5f, 1, 0, 0);
}

Test(flow, a_branch_between_numbers_takes_the_type_that_is_needed) {
    float x[4] = {-1, 0, 1, 2}, y[4], z[4];
    RUN("kernel k(x: in f32[N], y: out f32[N], z: out f32[N]) { grid n in N {\n"
        "let v = x[n] * if x[n] > 1 { 0.5 } else if x[n] > 0 { 4 } else { let q = x[n] < 0\n where(q, 8, 16) }\n"
        "y[n] = v\n"
        "z[n] = if x[n] > 0 { where(x[n] > 1, 1, 2) } else { x[n] } } }",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, -8, 0, 4, 1);
    EXPECT(z, -1, 0, 2, 1);
}

Test(flow, alone_a_choice_is_an_integer_or_an_f32) {
    float y[2];
    RUN("kernel k(y: out f32[2]) { grid i in 2 {\n"
        "let a = where(i == 0, 3, 4) / 2\n"
        "let b = where(i == 0, 3, 4.5) / 2\n"
        "let c = sum(where(iota[4] < i + 2, 1, 0))\n"
        "y[i] = f32(a) + b + f32(c) * 100 } }",
        "", VECTOR(y));
    EXPECT(y, 202.5f, 304.25f);
}

/* ---- indices proven in bounds ---- */

Test(flow, indices_that_are_inside_because_a_program_runs) {
    float x[5] = {1, 2, 3, 4, 5}, y[5], z[5];
    RUN("kernel k(x: in f32[N], y: out f32[N], z: out f32[N]) {\n"
        "grid n in tiles(N, 4) { y[n] = x[n] + 10 * x[0] + 100 * x[N - 1] + 1000 * x[n.start] + 10000 * x[n.end - 1] "
        "}\n"
        "grid i in N { z[i] = x[(i + 1) % N] + 10 * x[min(i + 2, N - 1)] + 100 * x[max(i - 1, 0)] + 1000 * x[i / 2] }\n"
        "}",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, 41511, 41512, 41513, 41514, 55515);
    EXPECT(z, 1132, 1143, 2254, 2355, 3451);
}

/* A load that is proven in bounds inside a loop is not executed if the trip count is 0. */
Test(flow, a_proof_holds_where_its_loop_runs) {
    float x[1] = {7}, y[3] = {1, 1, 1};
    RunArgument empty = VECTOR(x);
    empty.extent[0] = 0;
    RUN("kernel k(x: in f32[N], y: out f32[M]) { grid i in M {\n"
        "var t = f32(0)\n"
        "for k in 0..N { t += x[0] + x[5 % N] + sum(x[span(0, 1)]) }\n"
        "y[i] = t } }",
        "", empty, VECTOR(y));
    EXPECT(y, 0, 0, 0);
}

/* In another grid the same expression has to be proven again. */
Test(flow, what_one_grid_proves_another_does_not) {
    float x[1] = {7}, y[3] = {1, 1, 1};
    RunArgument empty = VECTOR(x);
    empty.extent[0] = 0;
    RUN("kernel k(x: inout f32[N], y: out f32[M]) {\n"
        "grid i in N { x[i] = x[5 % N] + x[0] }\n"
        "grid i in M { y[i] = x[5 % N] + x[0] else 3 } }",
        "", empty, VECTOR(y));
    EXPECT(y, 3, 3, 3);
}

/* ---- products of unrolled windows ---- */

#define WINDOW(PLACE)                                                                                                  \
    "kernel k(x: in f32[M], wt: in f32[3, 2, 2], y: out f32[M]) { grid m in tiles(M, 2) {\n"                           \
    "var acc = zeros[2, 2](f32)\n"                                                                                     \
    "let row = i32(m.start) + i32(iota[2])\n"                                                                          \
    "static for i in 0..3 {\n"                                                                                         \
    "let v = x[" PLACE "] else 0\n"                                                                                    \
    "acc = dot(join(v, v), (wt[i, :, :] else 0), acc)\n"                                                  \
    "}\n"                                                                                                              \
    "y[m] = sum(acc, axis = 1) } }"

/* A loop where the number is in places alone, and unrolled where it has to be an i32: both give these. */
Test(flow, products_of_an_unrolled_window) {
    float x[5] = {1, 2, 3, 4, 5}, wt[3][4] = {{1, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 0, 4}}, y[5];
    RunArgument weights = {.data = wt, .bytes = sizeof **wt, .rank = 3, .extent = {3, 2, 2}};
    static const char *const places[] = {WINDOW("m + (i - 1)"), WINDOW("m.idx + i - 1"), WINDOW("row + (i - 1)")};
    for (unsigned k = 0; k < 3; k++) {
        RUN(places[k], "", VECTOR(x), weights, VECTOR(y));
        EXPECT(y, 1 * 2 + 2 * 4, 1 + 2 * 2 + 3 * 4, 2 + 3 * 2 + 4 * 4, 3 + 4 * 2 + 5 * 4, 4 + 5 * 2);
    }
}
