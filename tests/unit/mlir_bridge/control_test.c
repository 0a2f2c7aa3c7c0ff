/* Loops, branches and lanes of vectors. */
#include <stdio.h>
#include <string.h>

#include "support.h"

Test(control, loops_carry_values) {
    static const char text[] = "func phase machine @fib(%y: ptr<global>, %n: i64, " PARAMETERS ") {\n"
                               "  %c0 = const {value = 0} : i64\n"
                               "  %c1 = const {value = 1} : i64\n"
                               "  %a, %b = for %c0, %n, %c1, %c0, %c1 : i64, i64 (%i: i64, %p: i64, %q: i64) {\n"
                               "    %s = add %p, %q : i64\n"
                               "    yield %q, %s\n"
                               "  }\n"
                               "  store %a, %y\n"
                               "  return\n}\n";
    Compiled compiled = compile_text(text, &avx2);
    static const int64_t expected[] = {0, 1, 1, 2, 3, 5, 8};
    for (int64_t n = -2; n < 7; n++) {
        int64_t y = -1;
        find_entry(&compiled, "fib")((uint64_t[]){SLOT(&y), (uint64_t)n}, 0, 1, NULL);
        cr_expect_eq(y, n < 0 ? 0 : expected[n]);
    }
    release_compiled(&compiled);
}

Test(control, while_and_if) {
    static const char text[] = "func phase machine @collatz(%y: ptr<global>, %n: u32, " PARAMETERS ") {\n"
                               "  %c0 = const {value = 0} : i64\n"
                               "  %c1 = const {value = 1} : i64\n"
                               "  %u0 = const {value = 0} : u32\n"
                               "  %u1 = const {value = 1} : u32\n"
                               "  %u3 = const {value = 3} : u32\n"
                               "  %steps, %last = while %c0, %n : i64, u32 (%k: i64, %x: u32) {\n"
                               "    %more = gt %x, %u1 : bool\n"
                               "    condition %more, %k, %x\n"
                               "  } (%j: i64, %v: u32) {\n"
                               "    %odd = and %v, %u1 : u32\n"
                               "    %is_odd = ne %odd, %u0 : bool\n"
                               "    %w = if %is_odd : u32 {\n"
                               "      %t = mul %v, %u3 : u32\n"
                               "      %t1 = add %t, %u1 : u32\n"
                               "      yield %t1\n"
                               "    } {\n"
                               "      %h = shr %v, %u1 : u32\n"
                               "      yield %h\n"
                               "    }\n"
                               "    %next = add %j, %c1 : i64\n"
                               "    yield %next, %w\n"
                               "  }\n"
                               "  store %steps, %y\n"
                               "  return\n}\n";
    Compiled compiled = compile_text(text, &avx2);
    static const struct {
        uint64_t n;
        int64_t steps;
    } rows[] = {{1, 0}, {2, 1}, {3, 7}, {27, 111}, {97, 118}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t y = -1;
        find_entry(&compiled, "collatz")((uint64_t[]){SLOT(&y), rows[i].n}, 0, 1, NULL);
        cr_expect_eq(y, rows[i].steps, "%lu: %ld", rows[i].n, y);
    }
    release_compiled(&compiled);
}

/* A branch without results, and the entry's begin, end and scratch. */
Test(control, range_and_scratch) {
    static const char text[] = "func phase machine @mark(%n: i64, " PARAMETERS ") {\n"
                               "  %c1 = const {value = 1} : i64\n"
                               "  for %begin, %end, %c1 (%i: i64) {\n"
                               "    %low = lt %i, %n : bool\n"
                               "    if %low {\n"
                               "      %p = ptr_add %scratch, %i : ptr<scratch>\n"
                               "      store %low, %p\n"
                               "      yield\n"
                               "    } {\n"
                               "      yield\n"
                               "    }\n"
                               "    yield\n"
                               "  }\n"
                               "  return\n}\n";
    Compiled compiled = compile_text(text, &avx2);
    unsigned char scratch[16] = {0};
    find_entry(&compiled, "mark")((uint64_t[]){9}, 3, 14, scratch);
    for (int i = 0; i < 16; i++) cr_expect_eq(scratch[i], i >= 3 && i < 9);
    release_compiled(&compiled);
}

Test(control, lanes) {
    static const char text[] =
        "func phase machine @lanes(%x: ptr<global>, %y: ptr<global>, %f: f32, " PARAMETERS ") {\n"
        "  %v = load %x : vec<8 x f32>\n"
        "  %s = splat %f : vec<8 x f32>\n"
        "  %a = extract %v {axis = 7} : f32\n"
        "  %b = insert %s, %a {axis = 3} : vec<8 x f32>\n"
        "  %c = shuffle %b, %v {axes = [0, 8, 3, 15]} : vec<4 x f32>\n"
        "  %d = opaque %c : vec<4 x f32>\n"
        "  %e = opaque %f : f32\n"
        "  %g = splat %e : vec<4 x f32>\n"
        "  %h = add %d, %g : vec<4 x f32>\n"
        "  store %h, %y\n"
        "  return\n}\n";
    for (const TileTarget *const *target = usable_targets(); *target; target++) {
        Compiled compiled = compile_text(text, *target);
        float x[8] = {10, 11, 12, 13, 14, 15, 16, 17}, y[4], half = 0.5f;
        uint64_t bits = 0;
        memcpy(&bits, &half, sizeof half);
        find_entry(&compiled, "lanes")((uint64_t[]){SLOT(x), SLOT(y), bits}, 0, 1, NULL);
        cr_expect(y[0] == 1 && y[1] == 10.5f && y[2] == 17.5f && y[3] == 17.5f);
        release_compiled(&compiled);
    }
}

/* Opaque vectors of any size, in one register or several, keep their value. */
Test(control, opaque_vectors) {
    for (unsigned lanes = 4; lanes <= 64; lanes *= 2) {
        char text[512];
        snprintf(text, sizeof text,
                 "func phase machine @f(%%x: ptr<global>, %%y: ptr<global>, %s) {\n"
                 "  %%v = load %%x : vec<%u x i32>\n  %%o = opaque %%v : vec<%u x i32>\n"
                 "  store %%o, %%y\n  return\n}\n",
                 PARAMETERS, lanes, lanes);
        for (const TileTarget *const *target = usable_targets(); *target; target++) {
            Compiled compiled = compile_text(text, *target);
            int32_t x[64], y[64] = {0};
            for (int i = 0; i < 64; i++) x[i] = i + 1;
            find_entry(&compiled, "f")((uint64_t[]){SLOT(x), SLOT(y)}, 0, 1, NULL);
            for (unsigned i = 0; i < 64; i++) cr_expect_eq(y[i], i < lanes ? x[i] : 0);
            release_compiled(&compiled);
        }
    }
}

/* Opaque values keep groups of vectors in step: the square roots of both vectors precede both divisions. */
Test(control, opaque_keeps_the_order) {
    static const char text[] = "func phase machine @step(%x: ptr<global>, %y: ptr<global>, " PARAMETERS ") {\n"
                               "  %c32 = const {value = 32} : i64\n"
                               "  %x1 = ptr_add %x, %c32 : ptr<global>\n"
                               "  %y1 = ptr_add %y, %c32 : ptr<global>\n"
                               "  %a = load %x : vec<8 x f32>\n"
                               "  %b = load %x1 : vec<8 x f32>\n"
                               "  %sa = sqrt %a : vec<8 x f32>\n"
                               "  %sb = sqrt %b : vec<8 x f32>\n"
                               "  %oa = opaque %sa : vec<8 x f32>\n"
                               "  %ob = opaque %sb : vec<8 x f32>\n"
                               "  %da = div %a, %oa : vec<8 x f32>\n"
                               "  %db = div %b, %ob : vec<8 x f32>\n"
                               "  %pa = opaque %da : vec<8 x f32>\n"
                               "  %pb = opaque %db : vec<8 x f32>\n"
                               "  store %pa, %y\n"
                               "  store %pb, %y1\n"
                               "  return\n}\n";
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_ASSEMBLY);
    const char *first = strstr(code.data, "vsqrtps"), *second = first ? strstr(first + 1, "vsqrtps") : NULL;
    const char *division = strstr(code.data, "vdivps");
    cr_expect(second && division && second < division, "%s", code.data);
    tile_code_release(&code);
}

static unsigned count_words(const char *text, const char *word) {
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) count++;
    return count;
}

/* Only loops with an unroll attribute are unrolled, and by its factor. */
Test(control, unrolling) {
    for (int times = 1; times <= 8; times *= 2) {
        char text[1024];
        snprintf(text, sizeof text,
                 "func phase machine @f(%%y: ptr<global>, %s) {\n"
                 "  %%c0 = const {value = 0} : i64\n"
                 "  %%c1 = const {value = 1} : i64\n"
                 "  %%c64 = const {value = 64} : i64\n"
                 "  for %%c0, %%c64, %%c1 {unroll = %d} (%%i: i64) {\n"
                 "    %%p = ptr_add %%y, %%i : ptr<global>\n"
                 "    %%a = load %%p : f32\n"
                 "    %%b = sqrt %%a : f32\n"
                 "    store %%b, %%p\n"
                 "    yield\n"
                 "  }\n"
                 "  return\n}\n",
                 PARAMETERS, times);
        TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_ASSEMBLY);
        cr_expect_eq(count_words(code.data, "vsqrtss"), (unsigned)times, "%s", code.data);
        tile_code_release(&code);
    }
}

#define CHECK_BODY                                                                                                     \
    " {\n"                                                                                                             \
    "  %c0 = const {value = 0} : i64\n"                                                                                \
    "  %c1 = const {value = 1} : i64\n"                                                                                \
    "  %c5 = const {value = 5} : i64\n"                                                                                \
    "  for %c0, %n, %c1 (%i: i64) {\n"                                                                                 \
    "    %few = lt %i, %c5 : bool\n"                                                                                   \
    "    assert %few {text = \"i is small\"}\n"                                                                        \
    "    yield\n"                                                                                                      \
    "  }\n"                                                                                                            \
    "  %some = ge %n, %c1 : bool\n"                                                                                    \
    "  assert %some {text = \"n is positive\"}\n"                                                                      \
    "  store %n, %y\n"                                                                                                 \
    "  return\n}\n"

/* The first failed assertion records its number, and the program continues. */
Test(control, asserts_record) {
    static const char text[] =
        "func phase machine @check(%y: ptr<global>, %n: i64, " PARAMETERS ") scratch_bytes = 64" CHECK_BODY;
    static const struct { int64_t n, number; } cases[] = {{5, 0}, {6, 1}, {9, 1}, {1, 0}, {0, 2}, {-3, 2}};
    Compiled compiled = compile_text(text, &avx2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        _Alignas(64) int64_t scratch[8] = {0};
        int64_t y = 77;
        find_entry(&compiled, "check")((uint64_t[]){SLOT(&y), (uint64_t)cases[i].n}, 0, 1, scratch);
        cr_expect_eq(scratch[0], cases[i].number, "n = %ld: %ld", cases[i].n, scratch[0]);
        cr_expect_eq(y, cases[i].n);
    }
    release_compiled(&compiled);
    TileCode code = emit_text(text, &avx2, NULL, TILE_CODE_ASSEMBLY);
    cr_expect_null(strstr(code.data, "ud2"));
    tile_code_release(&code);
}

Test(control, asserts_need_scratch) {
    expect_failure("func phase machine @check(%y: ptr<global>, %n: i64, " PARAMETERS ")" CHECK_BODY, &avx2,
                   TILE_INTERNAL, "cpu-scratch");
}
