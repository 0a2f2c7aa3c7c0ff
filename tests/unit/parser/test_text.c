/* Properties of texts: nesting depth, bytes, size, documentation, and how other files of the repository are
 * diagnosed. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lang/ir/text.h"
#include "parser/syntax/syntax.h"
#include "running.h"

static bool reports(const char *text, size_t length, const char *code) {
    TileArena *arena = tile_arena_create(NULL);
    tile_status status;
    const char *report = check_text(arena, "text.tile", text, length, &status);
    bool found = strstr(report, tile_arena_format(arena, "[%s]", code)) != NULL;
    if (!found) fprintf(stderr, "%.2000s\n", report);
    bool ok = found && status == TILE_INVALID_SOURCE;
    tile_arena_destroy(arena);
    return ok;
}

static char *repeat(const char *before, const char *piece, unsigned count, const char *after) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    tile_text_add(&text, before);
    for (unsigned i = 0; i < count; i++) tile_text_add(&text, piece);
    tile_text_add(&text, after);
    char *copy = strdup(tile_text_get(&text));
    tile_arena_destroy(arena);
    return copy;
}

Test(text, nesting_ends_in_a_message) {
    static const struct {
        const char *before, *piece, *after;
    } texts[] = {
        {"const a = ", "(", ""},       {"const a = ", "-", "1"},
        {"const a = 1", " + 1", ""},   {"const a = ", "f(", ""},
        {"const a = x", ".T", ""},     {"const a = x", "[0]", ""},
        {"fn f() {", "if a { ", ""},   {"fn f() { if a { }", " else if a { }", " }"},
        {"fn f(a: ", "fn(", ""},       {"fn f() {", "while a { ", ""},
        {"const a = ", "if a { ", ""}, {"const a = 1 + ", "a[1](", ""},
        {"const a = ", "run ", "x"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = repeat(texts[i].before, texts[i].piece, 20000, texts[i].after);
        cr_expect(reports(text, strlen(text), "too-deep"), "%s%s..", texts[i].before, texts[i].piece);
        free(text);
    }
}

Test(text, bytes_that_are_no_text) {
    cr_expect(reports("const a = 1 // \xc3\x28\n", 19, "bad-utf8"));
    cr_expect(reports("\xff", 1, "bad-utf8"));
    cr_expect(reports("/* \xed\xa0\x80 */", 9, "bad-utf8"));
    cr_expect(reports("const a\0 = 1", 12, "bad-character"));
    cr_expect(reports("\x1b[0m", 4, "bad-character"));
}

Test(text, size_is_limited) {
    size_t size = tile_usual_limits.most[TILE_LIMIT_TEXT] + 1;
    char *text = malloc(size);
    memset(text, ' ', size);
    cr_expect(reports(text, size, "too-large"));
    free(text);
}

Test(text, code_is_limited) {
    const char *text = "kernel k(y: out f32[N]) { grid p in N { var a = 0.0\n"
                       "static for i in 0..4000 { static for j in 0..4000 { a = a * 2 + 1 } }\ny[p] = a } }";
    cr_expect(reports(text, strlen(text), "too-many-operations"));
}

Test(text, calls_are_limited) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    for (int i = 0; i < 40; i++)
        tile_text_format(&text, "fn f%d(a: f32) -> f32 { return f%d(a) + f%d(a) }\n", i, i + 1, i + 1);
    tile_text_add(&text, "fn f40(a: f32) -> f32 { return a }\n");
    cr_expect(reports(text.text, text.length, "too-many-operations"));
    tile_arena_destroy(arena);
}

Test(text, at_most_twenty_errors) {
    TileArena *arena = tile_arena_create(NULL);
    char *text = repeat("fn f() {\n", "let = 1\n", 100, "}");
    tile_status status;
    const char *report = check_text(arena, "text.tile", text, strlen(text), &status);
    unsigned count = 0;
    for (const char *at = report; (at = strstr(at, ": error:")); at++) count++;
    cr_expect_eq(count, 20, "%u", count);
    free(text);
    tile_arena_destroy(arena);
}

/* Found by libFuzzer: an item without a name after the last error that is counted. */
Test(text, items_behind_the_last_error) {
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    tile_status status;
    for (int i = 0; i < 25; i++) tile_text_format(&text, "const a%d = )\nlet b\n", i);
    const char *source = tile_text_get(&text);
    check_text(arena, "k.tile", source, strlen(source), &status);
    cr_expect_eq(status, TILE_INVALID_SOURCE);
    tile_arena_destroy(arena);
}

Test(text, what_a_message_looks_like) {
    TileArena *arena = tile_arena_create(NULL);
    const char *text = "kernel k(y: out f32[N]) {\n\tgrid n in tiles(N, 4) { y[n] = zé1 }\n\tgrid n in tiles(N, 4) { "
                       "y[n] = abc }\n}\n";
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileAst *ast;
    cr_expect_eq(tile_parse_file(arena, diagnostics, "a.tile", text, strlen(text), &ast), TILE_INVALID_SOURCE);
    TileText plain = {.arena = arena}, json = {.arena = arena}, colour = {.arena = arena};
    tile_diagnostics_render(diagnostics, &plain, false);
    cr_expect_str_eq(tile_text_get(&plain),
                     "a.tile:2:34: error: `é` begins no token [bad-character]\n"
                     "    2 | \tgrid n in tiles(N, 4) { y[n] = zé1 }\n"
                     "      | \t                                ^\n"
                     "a.tile:2:35: error: expected the end of the statement, but found a number [expected]\n"
                     "    2 | \tgrid n in tiles(N, 4) { y[n] = zé1 }\n"
                     "      | \t                                 ^\n");
    tile_diagnostics_render_json(diagnostics, &json);
    cr_expect(strstr(tile_text_get(&json),
                     "\"code\":\"bad-character\",\"file\":\"a.tile\",\"begin\":59,\"end\":61,\"line\":2,\"column\":34"),
              "%s", tile_text_get(&json));
    tile_diagnostics_render(diagnostics, &colour, true);
    cr_expect(strstr(tile_text_get(&colour), "\033[31merror: "));
    tile_arena_destroy(arena);
}

Test(text, kernels_are_described) {
    TileArena *arena = tile_arena_create(NULL);
    const char *text = "/// About the file.\n\n/// Adds.\n/// Twice.\nkernel add[T: f16 | f32, B: const = 4, f: "
                       "fn(f32) -> f32 = exp](x: in T[M,\n    2 * N],  y: inout i32[3], s: f32,\n"
                       " on: const bool) static N allow overlap(x, y)\n tune A in {1, 2, 3} where A > 1 tune gpu W in "
                       "{8, 4} { grid n in N { } }\n"
                       "export add[f16, 2], add[f32] as other\n";
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileProgramInfo info;
    TileAst *ast;
    cr_assert_eq(tile_parse_file(arena, diagnostics, "a.tile", text, strlen(text), &ast), TILE_OK);
    cr_assert_eq(tile_list_kernels(diagnostics, ast, &info), TILE_OK);
    cr_assert_eq(info.kernels.count, 1);
    const TileKernelInfo *kernel = &info.kernels.items[0];
    cr_expect_str_eq(kernel->doc, "Adds.\nTwice.");
    cr_expect_str_eq(kernel->signature, "add[T: f16 | f32, B: const = 4, f: fn(f32) -> f32 = exp](x: in T[M, 2 * N], "
                                        "y: inout i32[3], s: f32, on: const bool)");
    cr_expect_eq(kernel->generics.count, 3);
    cr_expect_eq(kernel->generics.items[0].types, 1u << TILE_F16 | 1u << TILE_F32);
    cr_expect_str_eq(kernel->generics.items[2].function, "exp");
    cr_expect_eq(kernel->parameters.count, 4);
    cr_expect_str_eq(kernel->parameters.items[0].dims[1], "2 * N");
    cr_expect(kernel->parameters.items[0].generic_type && kernel->parameters.items[0].is_tensor);
    cr_expect_eq(kernel->parameters.items[1].access, TILE_ACCESS_INOUT);
    cr_expect(kernel->parameters.items[3].is_const && !kernel->parameters.items[3].is_tensor);
    cr_expect_eq(kernel->tunes.count, 2);
    cr_expect_eq(kernel->tunes.items[0].value, 2);
    cr_expect_eq(kernel->tunes.items[1].value, 8);
    cr_expect_str_eq(info.exports.items[0].name, "add_f16_2");
    cr_expect_str_eq(info.exports.items[1].name, "other");
    cr_expect_eq(info.exports.items[0].bindings.items[1].integer, 2);
    tile_arena_destroy(arena);
}

/* Every kernel in a folder is correct, and its IR is a fixpoint of printing and reading. */
static void check_folder(const char *folder) {
    char directory[4096];
    snprintf(directory, sizeof directory, "%s/%s", source_directory(), folder);
    DIR *handle = opendir(directory);
    cr_assert_not_null(handle, "%s", directory);
    for (struct dirent *entry; (entry = readdir(handle));) {
        if (!strstr(entry->d_name, ".tile")) continue;
        TileArena *arena = tile_arena_create(NULL);
        size_t length;
        tile_status status;
        const char *text = read_file(arena, tile_arena_format(arena, "%s/%s", directory, entry->d_name), &length);
        const char *report = check_text(arena, entry->d_name, text, length, &status);
        cr_expect_eq(status, TILE_OK, "%s", report);
        cr_expect_str_eq(report, "");
        tile_arena_destroy(arena);
    }
    closedir(handle);
}

Test(text, standard_kernels_are_correct) { check_folder("stdlib"); }
Test(text, example_kernels_are_correct) { check_folder("tests/programs"); }

static void round_trip(TileArena *arena, TileContext *context, const TileModule *module) {
    TileText first = {.arena = arena}, second = {.arena = arena}, errors = {.arena = arena};
    TileModule *again = NULL;
    tile_module_print(&first, module, TILE_PRINT_LOCATIONS);
    tile_status status = tile_module_read(context, tile_text_get(&first), first.length, &again, &errors);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&errors));
    tile_module_print(&second, again, TILE_PRINT_LOCATIONS);
    cr_expect_str_eq(tile_text_get(&first), tile_text_get(&second));
    tile_module_destroy(again);
}

Test(text, tile_form_prints_and_reads) {
    TileArena *arena = tile_arena_create(NULL);
    TileContext *context = tile_ir_context_create();
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileBinding bindings[] = {tile_binding_read("T", "bf16"), tile_binding_read("D", "64"),
                              tile_binding_read("causal", "true")};
    size_t length;
    const char *path = tile_arena_format(arena, "%s/stdlib/attention.tile", source_directory());
    const char *text = read_file(arena, path, &length);
    TileModule *module;
    TileAst *ast;
    cr_assert_eq(tile_parse_file(arena, diagnostics, path, text, length, &ast), TILE_OK);
    cr_assert_eq(tile_lower_kernel(context, diagnostics, ast, "attention", bindings, 3, &module), TILE_OK);
    round_trip(arena, context, module);
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
}
