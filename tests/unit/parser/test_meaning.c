/* Semantics of programs: each kernel is run by the executor, which also reports poison that reaches a result. */
#include <criterion/criterion.h>
#include <math.h>

#include "running.h"

#define EXPECT(array, ...)                                                                                             \
    do {                                                                                                               \
        const __typeof__(*(array)) wanted_[] = {__VA_ARGS__};                                                          \
        for (size_t i_ = 0; i_ < sizeof wanted_ / sizeof *wanted_; i_++)                                               \
            cr_expect_eq((array)[i_], wanted_[i_], "[%zu] is %g, not %g", i_, (double)(array)[i_],                     \
                         (double)wanted_[i_]);                                                                         \
    } while (0)

Test(meaning, ragged_add) {
    float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
    RUN("kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] + 1 } }", "", VECTOR(x),
        VECTOR(y));
    EXPECT(y, 2, 3, 4, 5, 6);
}

Test(meaning, shift_reads_the_neighbour_and_fills) {
    float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
    RUN("kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) {\n"
        "y[n] = (x[n - 1] else 10) * 100 + (x[n + 2] else -1) } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 1003, 104, 205, 299, 399);
}

Test(meaning, strides_of_either_sign) {
    float x[7] = {0, 1, 2, 3, 4, 5, 6}, y[5] = {0}, z[5] = {0};
    RUN("kernel k(x: in f32[N], y: out f32[M], z: out f32[M]) { grid m in tiles(M, 4) {\n"
        "y[m] = x[2 * m - 1] else -1\nz[m] = x[5 - m * 3] else -2 } }",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, -1, 1, 3, 5, -1);
    EXPECT(z, 5, 2, -2, -2, -2);
}

Test(meaning, integer_index_outside_makes_all_invalid) {
    float x[3][2] = {{1, 2}, {3, 4}, {5, 6}}, y[4][2];
    RUN("kernel k(x: in f32[M, N], y: out f32[P, N]) { grid (p, n) in (P, tiles(N, 4)) {\n"
        "y[p, n] = x[p - 1, n] else 9 } }",
        "", MATRIX(x), MATRIX(y));
    EXPECT(y[0], 9, 9);
    EXPECT(y[1], 1, 2);
    EXPECT(y[3], 5, 6);
}

Test(meaning, else_skip_leaves_elements) {
    float x[2] = {1, 2}, y[4] = {7, 7, 7, 7};
    RUN("kernel k(x: in f32[N], y: out f32[M]) { grid m in tiles(M, 4) { y[m] = x[m - 1] else skip } }", "", VECTOR(x),
        VECTOR(y));
    EXPECT(y, 7, 1, 2, 7);
}

Test(meaning, update_in_place) {
    float y[3] = {1, 2, 3};
    RUN("kernel k(y: inout f32[N]) { grid n in tiles(N, 2) { y[n] += 2; y[n] *= 10 } }", "", VECTOR(y));
    EXPECT(y, 30, 40, 50);
}

Test(meaning, reductions_skip_what_is_invalid) {
    float x[2][3] = {{-1, -2, -3}, {-4, -5, -6}}, top[2], low[2], mean[2], product[2];
    int64_t at[2];
    RUN("kernel k(x: in f32[M, N], a: out f32[M], b: out f32[M], c: out f32[M], d: out f32[M], e: out i64[M]) {\n"
        "grid m in tiles(M, 4) { let v = x[m, span(0..N, 8)]\n"
        "a[m] = max(v, axis = 1); b[m] = min(v, axis = 1); c[m] = mean(v, axis = 1); d[m] = prod(v, axis = 1)\n"
        "e[m] = argmax(x[m, span(0..N, 8) - 5], axis = 1) } }",
        "", MATRIX(x), VECTOR(top), VECTOR(low), VECTOR(mean), VECTOR(product), VECTOR(at));
    EXPECT(top, -1, -4);
    EXPECT(low, -3, -6);
    EXPECT(mean, -2, -5);
    EXPECT(product, -6, -120);
}

Test(meaning, argmax_of_a_shifted_range) {
    float x[5] = {3, 9, 1, 9, 2};
    int64_t y[2];
    RUN("kernel k(x: in f32[N], y: out i64[M]) { grid p in 2 {\n"
        "y[p] = argmax(x[span(0..N, 8) - 2]) + argmin(x[span(p, 4) * 2]) } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 3 + 1, 3 + 0);
}

Test(meaning, whole_reduction_and_keep) {
    float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, y[2][3], z[1];
    RUN("kernel k(x: in f32[M, N], y: out f32[M, N], z: out f32[P]) { grid p in P { \n"
        "let m = span(0..M, 4)\nlet n = span(0..N, 4)\nlet v = x[m, n]\n"
        "y[m, n] = v - sum(v, axis = 1, keep = true)\nz[p] = sum(v) } }",
        "", MATRIX(x), MATRIX(y), VECTOR(z));
    EXPECT(y[0], -5, -4, -3);
    EXPECT(y[1], -11, -10, -9);
    EXPECT(z, 21);
}

Test(meaning, loops_break_and_continue) {
    int32_t y[4];
    RUN("kernel k(y: out i32[N]) { grid p in N {\nvar total = i32(0)\n"
        "for i in 0..10 {\nif i == 2 { continue }\nif i > p + 3 { break }\ntotal += i32(i) }\n"
        "y[p] = total } }",
        "", VECTOR(y));
    EXPECT(y, 1 + 3, 1 + 3 + 4, 1 + 3 + 4 + 5, 1 + 3 + 4 + 5 + 6);
}

Test(meaning, steps_while_and_return) {
    int32_t y[4] = {-1, -1, -1, -1};
    RUN("kernel k(y: out i32[N]) { grid p in N {\nvar a = i32(0)\nvar k = i32(0)\n"
        "for i in p..10 step 3 { a += i32(i) }\n"
        "while true { k += 1\nif k * k > a { break } }\n"
        "if p == 2 { return }\ny[p] = k } }",
        "", VECTOR(y));
    EXPECT(y, 5, 4, -1, 5);
}

Test(meaning, return_out_of_a_loop) {
    int64_t x[5] = {4, 8, 15, 16, 23}, y[2] = {-1, -1};
    RUN("fn find(x: in i64[N], v: i64) -> i64 {\nfor i in 0..8 {\nif (x[i] else v) == v { return i }\n}\nreturn -7 }\n"
        "kernel k(x: in i64[N], y: out i64[M]) { grid p in M { y[p] = find(x, p + 15) } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 2, 3);
}

Test(meaning, functions_with_branches_lift) {
    float x[5] = {-2, -1, 0, 1, 2}, y[5];
    RUN("fn f[T: float](x: T) -> T {\nif x < -1 { return -1 }\nvar r = x * 2\nif x > 0 { r = r + 0.5 } else { r = r - "
        "0.5 }\nreturn r }\n"
        "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = f(x[n]) } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, -1, -2.5, -0.5, 2.5, 4.5);
}

Test(meaning, branches_join_variables_and_values) {
    int32_t y[4];
    RUN("kernel k(y: out i32[N]) { grid p in N {\nvar a = i32(1)\nvar b = i32(1)\n"
        "if p < 2 { a = 10 } else if p == 2 { b = 20\na = 3 } else { }\n"
        "let v = if p % 2 == 0 { a + b } else { a - b }\ny[p] = v } }",
        "", VECTOR(y));
    EXPECT(y, 11, 9, 23, 0);
}

Test(meaning, lazy_conditions) {
    int32_t y[3];
    RUN("kernel k(x: in i32[N], y: out i32[N]) { grid p in N {\n"
        "y[p] = if p > 0 && sum(x[span(0..p, 4)]) > 3 || p == 0 && (x[0] else 0) < 100 { i32(1) } else { 0 } } }",
        "", VECTOR(((int32_t[]){2, 2, 0})), VECTOR(y));
    EXPECT(y, 1, 0, 1);
}

Test(meaning, static_for_and_constants) {
    int32_t y[2];
    RUN("const K = 3\nkernel k[B: const = 4](y: out i32[N], on: const bool, n: i64) static n\ntune A in {7, 8} where A "
        "> 7 {\n"
        "grid p in N {\nvar t = i32(0)\nstatic for i in 0..K { t = t + i32(i * B + A) }\nif on { t = -t }\ny[p] = t + "
        "i32(n) } }",
        "on=true,n=1000", VECTOR(y), INTEGER(1000));
    EXPECT(y, 1000 - (8 + 12 + 16), 1000 - 36);
}

Test(meaning, gather_and_scatter) {
    float x[5] = {0, 10, 20, 30, 40}, y[4] = {-1, -1, -1, -1};
    int32_t i[4] = {3, -1, 9, 1};
    float z[4] = {0};
    RUN("kernel k(x: in f32[N], i: in i32[M], y: out f32[M], z: inout f32[M]) { grid m in tiles(M, 4) {\n"
        "let at = i[m] else 0\ny[m] = x[at] else 7\nscatter(z, 1.0, (at + 1)) } }",
        "", VECTOR(x), VECTOR(i), VECTOR(y), VECTOR(z));
    EXPECT(y, 30, 7, 7, 10);
    EXPECT(z, 1, 0, 1, 0);
}

Test(meaning, stores_skip_where_their_index_tile_is_invalid) {
    float x[5] = {10, 20, 30, 40, 50}, y[6] = {0}, z[6] = {0}, w[2][6] = {{0}};
    int64_t at[5] = {5, 0, 7, 2, 1};
    RUN("kernel k(x: in f32[K], at: in i64[K], y: inout f32[N], z: inout f32[N], w: inout f32[P, N]) {\n"
        "grid k in tiles(K, 4) { y[at[k]] = x[k]; scatter(z, x[k] + 1, at[k])\n"
        "let row = i64(x[0] > 5)\nscatter(w, x[k], row, at[k])\nw[0, at[k]] = x[k] * 2 } }",
        "", VECTOR(x), VECTOR(at), VECTOR(y), VECTOR(z), MATRIX(w));
    EXPECT(y, 20, 50, 40, 0, 0, 10);
    EXPECT(z, 21, 51, 41, 0, 0, 11);
    EXPECT(w[0], 40, 100, 80, 0, 0, 20);
    EXPECT(w[1], 20, 50, 40, 0, 0, 10);
}

Test(meaning, an_index_tile_kept_in_part_is_another_index) {
    float x[4] = {1, 2, 3, 4}, y[4] = {0}, z[4] = {0};
    int64_t at[4] = {3, 2, 1, 0};
    RUN("kernel k(x: in f32[N], at: in i64[N], y: inout f32[N], z: inout f32[N]) { grid n in tiles(N, 4) {\n"
        "let i = at[n]\nlet few = keep(i, n.idx < 2)\ny[i] = x[n]; z[few] = x[n]; z[few] += x[few] * 10 } }",
        "", VECTOR(x), VECTOR(at), VECTOR(y), VECTOR(z));
    EXPECT(y, 4, 3, 2, 1);
    EXPECT(z, 0, 0, 2 + 30, 1 + 40);
}

Test(meaning, shapes_move_their_validity) {
    float x[3][2] = {{1, 2}, {3, 4}, {5, 6}}, y[2][3], z[3][2];
    RUN("kernel k(x: in f32[M, N], y: out f32[N, M], z: out f32[M, N]) { grid (m, n) in (tiles(M, 2), tiles(N, 4)) {\n"
        "y[n, m] = x[m, n].T\nz[m, n] = reshape(permute(x[m, n][_, :, :], (2, 0, 1)), (4, 2)).T } }",
        "", MATRIX(x), MATRIX(y), MATRIX(z));
    EXPECT(y[0], 1, 3, 5);
    EXPECT(y[1], 2, 4, 6);
    EXPECT(z[2], 5, 6);
}

Test(meaning, scans_and_masks) {
    float x[5] = {1, 2, 3, 4, 5}, y[5], z[5];
    RUN("kernel k(x: in f32[N], y: out f32[N], z: out f32[N]) { grid n in tiles(N, 8) {\n"
        "y[n] = cumsum(x[n], reverse = true)\nz[n] = keep(x[n], n.idx % 2 == 0) else 0 } }",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, 15, 14, 12, 9, 5);
    EXPECT(z, 1, 0, 3, 0, 5);
}

Test(meaning, two_grids_and_a_temporary) {
    float x[5] = {1, 2, 3, 4, 5}, y[1];
    RUN("kernel k(x: in f32[N], y: out f32[M]) tune B in {2} {\nlet parts = cdiv(N, B)\ntemp part: f32[parts]\n"
        "grid p in parts { part[p] = sum(x[span(p * B..N, B)]) }\ngrid m in M { y[m] = sum(part[span(0..parts, 4)]) } "
        "}",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 15);
}

Test(meaning, dot_ignores_what_is_past_the_contraction) {
    float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {1, 1}}, c[2][2];
    RUN("kernel k(a: in f32[M, K], b: in f32[K, N], c: out f32[M, N]) { grid (m, n) in (tiles(M, 4), tiles(N, 4)) {\n"
        "var acc = zeros[4, 4](f32)\nfor k in tiles(K, 2) { acc = dot(a[m, k], b[k, n], acc) }\nc[m, n] = acc } }",
        "", MATRIX(a), MATRIX(b), MATRIX(c));
    EXPECT(c[0], 4, 5);
    EXPECT(c[1], 10, 11);
}

Test(meaning, integers_floor_and_wrap) {
    int32_t x[4] = {-7, 7, 5, INT32_MIN}, y[4] = {2, -2, 0, -1}, d[4], r[4];
    RUN("kernel k(x: in i32[N], y: in i32[N], d: out i32[N], r: out i32[N]) { grid n in tiles(N, 4) {\n"
        "d[n] = x[n] / y[n]\nr[n] = x[n] % y[n] } }",
        "", VECTOR(x), VECTOR(y), VECTOR(d), VECTOR(r));
    EXPECT(d, -4, -4, 0, INT32_MIN);
    EXPECT(r, 1, -1, 0, 0);
}

Test(meaning, clamp_is_checked_where_the_host_must) {
    float x[1] = {5}, y[2];
    const char *text = "kernel k(x: in f32[G], y: out f32[N]) { grid n in N { y[n] = x[clamp(n - 7, 0, G - 1)] } }";
    RUN(text, "", VECTOR(x), VECTOR(y));
    EXPECT(y, 5, 5);
    RunArgument none[] = {{.data = x, .bytes = 4, .rank = 1, .extent = {0}}, VECTOR(y)};
    cr_expect_eq(run_named(text, "k", "", none, 2), TILE_EXECUTION_REQUIRE);
}

/* Constant folding does not matter: the first argument, tune names in it, the clamp as a whole. */
Test(meaning, clamp_to_a_dimension_lies_inside) {
    float x[5] = {1, 2, 3, 4, 5}, y[5], z[5];
    RUN("kernel k(x: in f32[N], y: out f32[N], z: inout f32[N]) tune B in {2} { grid n in tiles(N, B) {\n"
        "y[n] = x[clamp(n.start - 1, 0, N - 1)] + 10 * x[clamp(n.start + 1, 0, N - 1)]\n"
        "z[n] = x[clamp(n.end - 1, 0, N - 1)] + 10 * x[clamp(N, 0, N - 1)] + 100 * x[clamp(0, 0, N - 1)]\n"
        "z[n] += 1000 * x[clamp(n.start * B, 0, N - 1)] + 10000 * x[clamp(-B, 0, N - 1)] } }",
        "B=2", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, 21, 21, 42, 42, 54);
    EXPECT(z, 11152, 11152, 15154, 15154, 15155);
    const char *text = "kernel k(x: in f32[G], y: out f32[N]) tune B in {2} { grid n in tiles(N, B) {\n"
                       "y[n] = x[clamp(n.start - 1, 0, G - 1)] + x[clamp(G, 0, G - 1)] } }";
    RUN(text, "B=2", VECTOR(x), VECTOR(y));
    EXPECT(y, 6, 6, 7, 7, 9);
    RunArgument none[] = {{.data = x, .bytes = 4, .rank = 1, .extent = {0}}, VECTOR(y)};
    cr_expect_eq(run_named(text, "k", "B=2", none, 2), TILE_EXECUTION_REQUIRE);
}

Test(meaning, offsets_one_past_the_end) {
    int32_t offsets[3] = {0, 2, 5};
    int64_t y[2];
    RUN("kernel k(offsets: in i32[B + 1], y: out i64[B]) { grid b in B { y[b] = i64(offsets[b + 1] - offsets[b]) } }",
        "", VECTOR(offsets), VECTOR(y));
    EXPECT(y, 2, 3);
}

Test(meaning, dimensions_are_checked) {
    float x[3], y[4];
    RunArgument arguments[] = {VECTOR(x), VECTOR(y)};
    const char *text = "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 4) { y[n] = x[n] } }";
    cr_expect_eq(run_named(text, "k", "", arguments, 2), TILE_EXECUTION_CHECK_DIM);
}

Test(meaning, tuples) {
    float x[2] = {3, 4}, y[2];
    RUN("fn both(x: f32) -> (f32, f32) { return (x + 1, x * x) }\n"
        "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 2) { let (a, b) = both(x[n])\nvar (c, d) = "
        "both(a)\n"
        "c = c + d\ny[n] = b + c } }",
        "", VECTOR(x), VECTOR(y));
    EXPECT(y, 9 + 5 + 16, 16 + 6 + 25);
}

Test(meaning, invalid_indices_reach_nothing) {
    float x[3] = {1, 2, 3}, y[5], z[5];
    int32_t at[3] = {2, 7, 0};
    RUN("kernel k(x: in f32[N], at: in i32[P], y: out f32[M], z: inout f32[M]) { grid m in tiles(M, 4) {\n"
        "let i = at[m]\ny[m] = x[i] else -1\nz[m] = gather(x, i64(i) + 0) else -2\n"
        "let j = i64(at[m.start + 2])\nz[m] += x[j] else 100\nz[m] += keep(zeros[4](f32), x[m] > 1) else 1000 } }",
        "", VECTOR(x), VECTOR(at), VECTOR(y), ((RunArgument){.data = z, .bytes = 4, .rank = 1, .extent = {5}}));
    EXPECT(y, 3, -1, 1, -1, -1);
    EXPECT(z, 3 + 1 + 1000, -2 + 1, 1 + 1, -2 + 1 + 1000, -2 + 100 + 1000);
}

/* The data structures per axis have room for exactly these five. */
Test(meaning, masks_over_as_many_axes_as_there_can_be) {
    int64_t i[4] = {0, 1, 2, 3};
    float x[3] = {1, 2, 3}, z[3] = {10, 20, 30}, y[12] = {0};
    RUN("kernel k(i: in i64[A, B, C, D, 1], x: in f32[N], z: in f32[F], y: out f32[A, B, C, D, F]) {\n"
        "grid (a, b, c, d, f) in (tiles(A, 2), tiles(B, 2), tiles(C, 2), tiles(D, 2), tiles(F, 2)) {\n"
        "for e in tiles(1, 1) { let v = gather(x, i[a, b, c, d, e])\n"
        "y[a, b, c, d, f] = v + z[f][_, _, _, _, :] else -1 } } }",
        "", ((RunArgument){.data = i, .bytes = sizeof *i, .rank = 5, .extent = {1, 2, 1, 2, 1}}), VECTOR(x), VECTOR(z),
        ((RunArgument){.data = y, .bytes = sizeof *y, .rank = 5, .extent = {1, 2, 1, 2, 3}}));
    EXPECT(y, 11, 21, 31, 12, 22, 32, 13, 23, 33, -1, -1, -1);
}

Test(meaning, limits_of_ranges_are_any_expressions) {
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, z[12] = {0};
    RUN("kernel k(x: in f32[N], y: out f32[N], z: out f32[2 * N]) {\n"
        "grid n in tiles(N - 2, 4) { y[n] = x[n + 1] }\n"
        "grid n in tiles(2 * N, 4) { z[n] = 7 }\n"
        "grid n in tiles(1..N / 2, 4) { z[n] = x[n] } }",
        "", VECTOR(x), VECTOR(y), VECTOR(z));
    EXPECT(y, 2, 3, 4, 5, 0, 0);
    EXPECT(z, 7, 2, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7);
}

Test(meaning, one_lane_that_is_stretched_is_missing_in_all) {
    float x[2] = {1, 2}, z[3] = {10, 20, 30}, y[3][3];
    RUN("kernel k(x: in f32[M], z: in f32[N], y: out f32[P, N]) {\n"
        "grid (p, n) in (tiles(P, 1), tiles(N, 4)) {\n"
        "let v = x[p - 1] + z[n]\nlet w = x[p - 1] * z[n]\n"
        "y[p, n] = (v + w)[_, :] else -1 } }",
        "", VECTOR(x), VECTOR(z), MATRIX(y));
    EXPECT(y[0], -1, -1, -1);
    EXPECT(y[1], 21, 41, 61);
    EXPECT(y[2], 32, 62, 92);
}
