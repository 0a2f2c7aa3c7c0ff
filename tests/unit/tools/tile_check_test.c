/* tile-check and tile-opt as functions. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/tile_check.h"
#include "tools/tile_opt.h"

static TileArena *arena;

static void set_up(void) { arena = tile_arena_create(NULL); }
static void tear_down(void) { tile_arena_destroy(arena); }

TestSuite(tile_check, .init = set_up, .fini = tear_down);

/* NULL if the input matches, else the error. */
static const char *complaint(const char *test, const char *input) {
    TileText errors = {.arena = arena};
    return tile_check(test, input, "CHECK", &errors) ? NULL : tile_text_get(&errors);
}

static void expect_match(const char *test, const char *input) {
    const char *text = complaint(test, input);
    cr_expect_null(text, "%s", text);
}

static void expect_complaint(const char *test, const char *input, const char *expected) {
    const char *text = complaint(test, input);
    cr_expect(text && strstr(text, expected), "wanted `%s`, got: %s", expected, text ? text : "a match");
}

Test(tile_check, plain_lines_in_order) {
    expect_match("// CHECK: a\n// CHECK: b\n", "x\na\nb\n");
    expect_complaint("// CHECK: b\n// CHECK: a\n", "a\nb\n", "line 2: CHECK: a: not found after");
    expect_match("// CHECK: f32[4] (x) = {a}\n", "f32[4]   (x) = {a}\n");
    expect_complaint("nothing\n", "a\n", "no line begins with CHECK:");
    expect_complaint("XCHECK: a\n", "a\n", "no line begins with CHECK:");
}

Test(tile_check, next_and_same_lines) {
    expect_match("CHECK: a\nCHECK-SAME: c\nCHECK-NEXT: d\n", "a b c\nd\n");
    expect_complaint("CHECK: a\nCHECK-NEXT: c\n", "a\nb\nc\n", "line 2: CHECK-NEXT: c: not found, there is: b");
    expect_complaint("CHECK: a\nCHECK-SAME: b\n", "a\nb\n", "CHECK-SAME: b: not found");
    expect_complaint("CHECK: a\nCHECK-NEXT: b\n", "a", "CHECK-NEXT: b: not found");
}

Test(tile_check, absence) {
    expect_match("CHECK: a\nCHECK-NOT: b\nCHECK: c\n", "b\na\nc\nb\n");
    expect_complaint("CHECK: a\nCHECK-NOT: b\nCHECK: c\n", "a\nb\nc\n", "line 2: CHECK-NOT: b: but there is: b");
    expect_complaint("CHECK: a\nCHECK-NOT: b\n", "a\nx\nb\n", "CHECK-NOT: b");
    expect_complaint("CHECK-NOT: b\nCHECK: c\n", "b\nc\n", "CHECK-NOT: b");
}

Test(tile_check, labels_divide) {
    const char *test = "CHECK-LABEL: @f\nCHECK: a\nCHECK-LABEL: @g\nCHECK-NOT: a\nCHECK: b\n";
    expect_match(test, "@f\na\n@g\nb\n");
    expect_complaint(test, "@f\n@g\na\nb\n", "line 2: CHECK: a: not found");
    expect_complaint(test, "@f\na\n", "line 3: CHECK-LABEL: @g: not found");
}

Test(tile_check, expressions_and_names) {
    expect_match("CHECK: %{{[a-z]+}} = add\n", "%abc = add\n");
    expect_match("CHECK: [[X:%[a-z]+]] = neg\nCHECK: add [[X]], [[X]]\n", "%v = neg\nadd %v, %v\n");
    expect_complaint("CHECK: [[X:%[a-z]+]] = neg\nCHECK: add [[X]]\n", "%v = neg\nadd %w\n", "CHECK: add [[X]]");
    expect_match("CHECK: [[X:.]] [[X]]\n", "a b b\n");
    expect_match("CHECK: {{(a|b)}} [[X:c(d)]] [[X]]\n", "b cd cd\n");
    expect_complaint("CHECK: [[X]]\n", "a\n", "nothing is called X");
    expect_complaint("CHECK: {{(}}\n", "a\n", "faulty expression");
    expect_complaint("CHECK: [[X:a\n", "a\n", "[[ without ]]");
}

static int run(const char *const *arguments, int count, TileText *output, TileText *errors) {
    *output = *errors = (TileText){.arena = arena};
    return tile_opt(count, arguments, output, errors);
}

Test(tile_check, tile_opt_says_what_is_wrong_with_its_arguments) {
    static const char *const cases[][2] = {{"--passes=dce", "no file given"},
                                           {"--frob", "`--frob` is not understood"},
                                           {"--target=z80", "is not understood"},
                                           {"--limit=x", "is not understood"},
                                           {"/nowhere/at/all", "No such file"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TileText output, errors;
        cr_expect_neq(run(cases[i], 1, &output, &errors), 0);
        cr_expect(strstr(tile_text_get(&errors), cases[i][1]), "%s", tile_text_get(&errors));
    }
    TileText output, errors;
    cr_expect_eq(run((const char *const[]){"--help"}, 1, &output, &errors), 0);
    cr_expect(strstr(tile_text_get(&output), "usage: tile-opt"));
}
