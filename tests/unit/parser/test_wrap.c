/* Integers of a kernel wrap, exact integers do not: a proof about the one must not be used for the other. Otherwise
 * each program would access its tensor out of bounds for the value of t; the executor reports the first such access. */
#include <criterion/criterion.h>

#include "running.h"

#define SUM(body) "kernel k(x: in f32[N], y: out f32[], t: i64) { grid one in 1 {\nvar s = f32(0)\n" body "\ny[] = s\n} }"

static const struct {
    const char *text;
    int64_t t;
    float expected;
} programs[] = {
    {SUM("s = sum(x[span(max(t, 0) + 100, 8)])"), INT64_MAX, 0},
    {SUM("s = sum(x[span(max(t, 0) + 100, 8)])"), INT64_MAX - 99, 0},
    {SUM("s = x[max(t, 0) + 100] else 7"), INT64_MAX, 7},
    {SUM("s = x[min(max(t, 0) + 100, N - 1)] else 7"), INT64_MAX, 7},
    {SUM("s = x[clamp(max(t, 0) + 100, 0, N - 1)]"), INT64_MAX, 1},
    {SUM("for i in max(t, 0) + 100..N { s += x[i] else 7\nif i < 0 { break } }"), INT64_MAX, 7},
    {SUM("for i in max(t - 3, 0)..t { s += x[min(i + 5, N - 1)] else 7 }"), INT64_MAX, 21},
    {SUM("for i in max(t, 0)..t + 10 step 8 { s += x[min(i, N - 1)] else 7 }"), INT64_MAX - 10, 2},
    {SUM("s = sum(x[span(-5..3, 8) + t])"), INT64_MIN, 0},
    {SUM("s = sum(x[span(-5..3, 8) + (-9223372036854775807 - 1)])"), 0, 0},
    {SUM("s = sum(x[span(0..max(t, 0) + 8, 8)])"), INT64_MAX, 0},
    {SUM("s = x[(max(t, 0) + 8) / 4] else 7"), INT64_MAX, 7},
    {SUM("s = x[t * t * t] else 7"), INT64_C(1) << 21, 7},
    {"kernel k(x: in f32[N], y: inout f32[], t: i64) {\n"
     "grid n in tiles(1..min(t, N), 4) { y[] = sum(x[n]) } }",
     INT64_MIN, -1},
    {"kernel k(x: in f32[N], y: inout f32[], t: i64) {\n"
     "grid i in max(t, 0) + 8 { y[] = x[min(i, N - 1)] else 7 } }",
     INT64_MAX, -1},
};

Test(wrap, keeps_inside) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, y = -1;
        RunArgument of_y = {.data = &y, .bytes = 4};
        RUN(programs[i].text, "", VECTOR(x), of_y, INTEGER(programs[i].t));
        cr_expect_eq(y, programs[i].expected, "%s: %g", programs[i].text, (double)y);
    }
}

/* Three dimensions of 2^21 make 2^63. */
Test(wrap, products_of_dimensions) {
    static char a[1 << 21];
    float x[2] = {1, 1}, y[2] = {0};
    RUN("kernel k(a: in i8[A], b: in i8[B], d: in i8[D], x: in f32[N], y: out f32[N]) {\n"
        "grid i in N { y[i] = x[min(A * B * D, i)] else 7 } }",
        "", VECTOR(a), VECTOR(a), VECTOR(a), VECTOR(x), VECTOR(y));
    cr_expect(y[0] == 7 && y[1] == 7);
}
