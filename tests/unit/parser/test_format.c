/* The formatter: texts and their formatted forms. Each result is formatted again, and must not change. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "parser/syntax/format.h"

static const char *format(TileArena *arena, const char *text, tile_status *status) {
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileText out = {.arena = arena};
    *status = tile_format(arena, diagnostics, "text.tile", text, strlen(text), &out);
    return tile_text_get(&out);
}

static void becomes(const char *text, const char *wanted) {
    TileArena *arena = tile_arena_create(NULL);
    tile_status status;
    const char *found = format(arena, text, &status);
    cr_expect_eq(status, TILE_OK, "status %d for\n%s", status, text);
    cr_expect_str_eq(found, wanted, "found\n%s", found);
    const char *again = format(arena, found, &status);
    cr_expect_str_eq(again, found, "again\n%s", again);
    tile_arena_destroy(arena);
}

static void stays(const char *text) { becomes(text, text); }

Test(format, nothing_and_blanks) {
    becomes("", "");
    becomes("\n\n  \n", "");
    becomes("\n\nconst a=1\n\n\n\nconst b  = 2", "const a = 1\n\nconst b = 2\n");
    becomes("const a = 1 \t\r\nconst b = 2\r\n", "const a = 1\nconst b = 2\n");
    becomes("fn f() {\n\n    let a = 1\n\n\n    return\n\n}\n", "fn f() {\n    let a = 1\n\n    return\n}\n");
}

Test(format, operators) {
    becomes("const a=-1- -b*(c+!d)", "const a = -1 - -b * (c + !d)\n");
    becomes("const a = x [0 , : , _] . T", "const a = x[0, :, _].T\n");
    becomes("const a = 0 .. n*2", "const a = 0..n * 2\n");
    becomes("const a = f( b , axis=1 , ... e )", "const a = f(b, axis = 1, ...e)\n");
    becomes("const a = - inf - - nan -true", "const a = -inf - -nan - true\n");
}

Test(format, contextual_words) {
    becomes("fn f() { for i in 0..9 step (2) { } }", "fn f() { for i in 0..9 step (2) { } }\n");
    becomes("fn f() { for i in 0..9 step -2+3 { g (i) } }", "fn f() { for i in 0..9 step -2 + 3 { g(i) } }\n");
    becomes("fn f() { ordered   for i in 0 ..9 { g (i) } }", "fn f() { ordered for i in 0..9 { g(i) } }\n");
    becomes("fn f() { let ordered=1; g (ordered) }", "fn f() {\n    let ordered = 1\n    g(ordered)\n}\n");
    becomes("kernel k() tune A in{1,2} where (A)>1 {}", "kernel k()\n    tune A in {1, 2} where (A) > 1\n{ }\n");
    becomes("fn f() { return where (a,b,c) - step }", "fn f() { return where(a, b, c) - step }\n");
    becomes("test \"t\" { let y = run k (x=1) }", "test \"t\" { let y = run k(x = 1) }\n");
    becomes("export k[f32]as a,k [f16] as b", "export k[f32] as a, k[f16] as b\n");
}

Test(format, headers) {
    becomes(
        "kernel k(x:in f32[N],y:out f32[N]) static N require N>0,\"text\" allow overlap (x,y) tune cpu A in {1} {grid "
        "n in N {}}",
        "kernel k(x: in f32[N], y: out f32[N])\n    static N\n    require N > 0, \"text\"\n    allow overlap(x, y)\n"
        "    tune cpu A in {1}\n{ grid n in N { } }\n");
    becomes("fn f[T:f16|f32,g:fn(f32,...)->f32=h,B:const=1](x:T)->(T,T){return (x,x)}",
            "fn f[T: f16 | f32, g: fn(f32, ...) -> f32 = h, B: const = 1](x: T) -> (T, T) { return (x, x) }\n");
    stays("kernel k(x: in f32[])\n{\n    grid n in 1 { }\n}\n");
    stays("kernel k(x: in f32[],\n         y: out f32[])\n{\n    grid n in 1 { }\n}\n");
    stays("kernel k[T: float](\n        x: in f32[], y: out f32[])\n    tune A in {1}\n        where A > 0\n{\n    "
          "grid n in 1 { }\n}\n");
}

Test(format, blocks) {
    becomes("fn f(){let a=1;let b=2}", "fn f() {\n    let a = 1\n    let b = 2\n}\n");
    becomes("fn f() { if a { b=1 } else if c { b=2\n} else { b=3 } }",
            "fn f() {\n    if a {\n        b = 1\n    } else if c {\n        b = 2\n    } else {\n        b = 3\n    "
            "}\n}\n");
    becomes("fn f() { let a = if b { 1 }\nelse { 2 } }", "fn f() {\n    let a = if b { 1 } else { 2 }\n}\n");
    becomes("fn f() { for i in\nn { } }", "fn f() {\n    for i in n { }\n}\n");
    stays("fn f() {\n    while a {\n    }\n    while b { }\n}\n");
}

Test(format, continued_lines) {
    becomes("fn f() {\n  let a = b +\n  c\n}", "fn f() {\n    let a = b +\n        c\n}\n");
    becomes("fn f() {\n  let a = g(b,\n c +\n d)\n}",
            "fn f() {\n    let a = g(b,\n              c +\n              d)\n}\n");
    becomes("fn f() {\n  let a = g(\nb,\n c\n)\n}", "fn f() {\n    let a = g(\n        b,\n        c\n    )\n}\n");
    becomes("fn f() {\n  while a &&\nb {\nc = 1\n}\n}",
            "fn f() {\n    while a &&\n            b {\n        c = 1\n    }\n}\n");
    becomes("fn f() {\n let a = (b\n+ c\n- d)\n}",
            "fn f() {\n    let a = (b\n             + c\n             - d)\n}\n");
}

Test(format, comments) {
    becomes("   // a\n/// b\nconst a = 1// c", "// a\n/// b\nconst a = 1 // c\n");
    becomes("fn f() { // a\n// b\nlet c = 1     // d\n\n// e\n}",
            "fn f() { // a\n    // b\n    let c = 1     // d\n\n    // e\n}\n");
    becomes("const a=1   // x\nconst bcd=2 // y\nconst e = 3 // z\n",
            "const a = 1   // x\nconst bcd = 2 // y\nconst e = 3   // z\n");
    becomes("const a = f(/* b */1,2/* c */)", "const a = f(/* b */ 1, 2 /* c */)\n");
    becomes("const a = f( // b\n 1, // c\n 2)", "const a = f( // b\n    1, // c\n    2)\n");
    becomes("  /* a\n     b\n  c */\nconst d = 1", "/* a\n   b\nc */\nconst d = 1\n");
    becomes("fn f() {\n/* a */ let b = 1; /* c */ let d = 2\n}",
            "fn f() {\n    /* a */ let b = 1 /* c */\n    let d = 2\n}\n");
    becomes("fn f() { if a { } // b\nelse { c() } }",
            "fn f() {\n    if a {\n    } // b\n    else {\n        c()\n    }\n}\n");
    becomes("kernel k() // a\n// b\nstatic N // c\n// d\n{\n// e\n}",
            "kernel k() // a\n    // b\n    static N // c\n    // d\n{\n    // e\n}\n");
    stays("/// a\n\n/// b\nconst c = 1\n");
    stays("// only a comment\n");
    stays("/* only a comment */\n");
}

Test(format, long_lines) {
    becomes(
        "fn f() { for n in tiles(N, BN) { accumulator = the_accumulator_of_the_iteration_before + some_function(first, "
        "second, third_x) } }",
        "fn f() {\n    for n in tiles(N, BN) {\n"
        "        accumulator = the_accumulator_of_the_iteration_before + some_function(first, second, third_x)\n    "
        "}\n}\n");
    becomes("kernel a_kernel_of_a_long_name[T: f16 | bf16 | f32](first: in T[M, N], second: in T[M, N], third: in T[M, "
            "N], fourth: out T[M, N]) { }",
            "kernel a_kernel_of_a_long_name[T: f16 | bf16 | f32](first: in T[M, N], second: in T[M, N], third: in T[M, "
            "N],\n"
            "                                                    fourth: out T[M, N]) { }\n");
    becomes("kernel a_kernel_of_a_very_long_name[T: f16 | bf16 | f32, act: fn(f32) -> f32](first: in T[M, N], second: "
            "in T[M, N], third: in T[M, N]) { }",
            "kernel a_kernel_of_a_very_long_name[T: f16 | bf16 | f32, act: fn(f32) -> f32](\n"
            "        first: in T[M, N], second: in T[M, N], third: in T[M, N]) { }\n");
    becomes("const a = first_operand_of_the_sum * another_operand_of_the_sum + second_operand_of_the_sum - "
            "third_operand_of_the_sum * 2\n",
            "const a = first_operand_of_the_sum * another_operand_of_the_sum + second_operand_of_the_sum -\n    "
            "third_operand_of_the_sum * 2\n");
    becomes("const a = "
            "a_name_that_has_no_place_to_break_and_is_longer_than_any_line_that_the_formatter_would_ever_want_to_write_"
            "by_itself_without_need\n",
            "const a =\n    "
            "a_name_that_has_no_place_to_break_and_is_longer_than_any_line_that_the_formatter_would_ever_want_to_write_"
            "by_itself_without_need\n");
}

Test(format, errors_are_told) {
    TileArena *arena = tile_arena_create(NULL);
    tile_status status;
    cr_expect_str_empty(format(arena, "const = 1", &status));
    cr_expect_eq(status, TILE_INVALID_SOURCE);
    tile_arena_destroy(arena);
}

Test(format, large_texts_take_no_time_to_speak_of) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    tile_text_add(&text, "const a = f(0");
    for (int i = 0; i < 200000; i++) tile_text_format(&text, ", %d", i);
    tile_text_add(&text, ")\n");
    tile_status status;
    const char *out = format(arena, tile_text_get(&text), &status);
    cr_expect_eq(status, TILE_OK);
    for (const char *line = out; *line; line = strchr(line, '\n') + 1)
        cr_assert(strcspn(line, "\n") <= TILE_FORMAT_COLUMNS);
    tile_arena_destroy(arena);
}
