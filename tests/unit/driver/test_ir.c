/* Kernels built with tile/ir.h and written in the IR's text form, up to their results. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tile/ir.h"

enum { COUNT = 2500 };

static TileIr *create(void) {
    TileIr *ir = NULL;
    cr_assert_eq(tile_ir_create(&ir), TILE_OK);
    return ir;
}

static TileCompiler *compiler(void) {
    TileCompiler *created = NULL;
    cr_assert_eq(tile_compiler_create(NULL, &created), TILE_OK);
    return created;
}

static DLTensor vector(float *data, int64_t *count) {
    return (DLTensor){data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, count, NULL, 0};
}

/* y = by * x + x, in blocks. */
static void build_scale(TileIr *ir, const char *name, int64_t block) {
    const char *dimensions[] = {"N"};
    char type[32];
    snprintf(type, sizeof type, "f32[%lld]", (long long)block);
    tile_ir_kernel(ir, name);
    TileIrValue *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_IN, "f32", dimensions, 1);
    TileIrValue *y = tile_ir_tensor(ir, "y", TILE_PARAMETER_OUT, "f32", dimensions, 1);
    TileIrValue *by = tile_ir_scalar(ir, "by", "f32");
    TileIrValue *blocks = tile_ir_tiles(ir, tile_ir_dimension(ir, "N"), block);
    tile_ir_begin(ir, "grid", &blocks, 1, NULL, NULL, 0);
    TileIrIndex at = {tile_ir_binary(ir, "mul", tile_ir_argument(ir, 0), tile_ir_integer(ir, "i64", block)), block};
    TileIrValue *v = tile_ir_load(ir, x, &at, 1, NULL);
    TileIrValue *scale = tile_ir_broadcast(ir, by, tile_ir_type(ir, type));
    tile_ir_store(ir, y, tile_ir_binary(ir, "add", tile_ir_binary(ir, "mul", v, scale), v), &at, 1);
    tile_ir_end(ir);
    tile_ir_kernel_end(ir);
}

static void run_scale(TileLibrary *library, int64_t count, int64_t x_count) {
    static float x[COUNT], y[COUNT + 1];
    TileKernel *kernel = NULL;
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert_eq(tile_library_kernel(library, "scale", &kernel), TILE_OK);
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i % 77) - 30;
    for (int i = 0; i <= COUNT; i++) y[i] = -7;
    DLTensor tx = vector(x, &x_count), ty = vector(y, &count);
    TileArg args[] = {TILE_TENSOR(&tx), TILE_TENSOR(&ty), TILE_NUMBER(3)};
    tile_status status = tile_launch(kernel, args, 3, &options);
    if (x_count != count) {
        cr_assert_eq(status, TILE_INVALID_ARGUMENT);
        cr_assert(strstr(error.message, "N"), "%s", error.message);
        return;
    }
    cr_assert_eq(status, TILE_OK, "%s", error.message);
    for (int i = 0; i < count; i++) cr_assert_float_eq(y[i], 4 * x[i], 0, "element %d", i);
    cr_assert_float_eq(y[count], -7, 0);
}

Test(ir, builds_what_runs) {
    static const char *const targets[] = {"cpu", "interp"};
    for (int t = 0; t < 2; t++) {
        TileIr *ir = create();
        TileCompiler *c = compiler();
        TileLibrary *library = NULL;
        TileReport *report = NULL;
        TileCompileOptions options = {.struct_size = sizeof options, .target = targets[t]};
        build_scale(ir, "scale", 64);
        tile_status status = tile_compile_ir(c, ir, &options, &library, &report);
        cr_assert_eq(status, TILE_OK, "%s", report ? tile_report_text(report, false) : tile_ir_message(ir));
        tile_ir_destroy(ir);
        tile_compiler_destroy(c);
        cr_assert_str_eq(tile_kernel_signature(tile_library_kernel_at(library, 0)),
                         "scale(x: in f32[N], y: out f32[N], by: f32)");
        static const int64_t counts[] = {0, 1, 63, 64, 65, 2499};
        for (int i = 0; i < 6; i++) run_scale(library, counts[i], counts[i]);
        run_scale(library, 10, 11);
        tile_library_destroy(library);
    }
}

/* The built kernel is printed; the text compiles as well, and prints the same again. */
Test(ir, text_is_the_same_kernel) {
    TileIr *ir = create();
    TileCompiler *c = compiler();
    TileLibrary *library = NULL;
    char *text = NULL;
    build_scale(ir, "scale", 128);
    build_scale(ir, "other", 32);
    cr_assert_eq(tile_ir_text(ir, &text, NULL), TILE_OK);
    cr_assert_eq(tile_compile(c, text, strlen(text), NULL, &library, NULL), TILE_OK);
    cr_assert_eq(tile_library_kernel_count(library), 2);
    run_scale(library, 1000, 1000);
    tile_library_destroy(library);
    tile_string_destroy(text);
    tile_compiler_destroy(c);
    tile_ir_destroy(ir);
}

/* ---- errors ---- */

static void expect_mistake(TileIr *ir, const char *words) {
    TileReport *report = NULL;
    char *text = NULL;
    cr_assert_neq(tile_ir_status(ir), TILE_OK, "no mistake was noticed instead of: %s", words);
    cr_assert(strstr(tile_ir_message(ir), words), "'%s' is not in: %s", words, tile_ir_message(ir));
    cr_assert_eq(tile_ir_text(ir, &text, &report), TILE_INVALID_ARGUMENT);
    cr_assert_not_null(report);
    cr_assert(strstr(tile_report_text(report, false), words));
    tile_report_destroy(report);
    tile_ir_destroy(ir);
}

static TileIr *begin(TileIrValue **x, TileIrValue **v) {
    TileIr *ir = create();
    TileIrValue *one;
    tile_ir_kernel(ir, "k");
    *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_INOUT, "f32", (const char *[]){"N"}, 1);
    one = tile_ir_integer(ir, "i64", 1);
    tile_ir_begin(ir, "grid", &one, 1, NULL, NULL, 0);
    TileIrIndex at = {tile_ir_argument(ir, 0), 16};
    *v = tile_ir_load(ir, *x, &at, 1, NULL);
    return ir;
}

Test(ir, mistakes_have_place_and_reason) {
    TileIrValue *x, *v, *y, *w;
    TileIr *ir = begin(&x, &v);
    tile_ir_binary(ir, "adn", v, v);
    expect_mistake(ir, "(adn): there is no such operation; did you mean ");
    ir = begin(&x, &v);
    tile_ir_binary(ir, "add", v, tile_ir_integer(ir, "f32", 1));
    expect_mistake(ir, "k: op 12 (add): ");
    ir = begin(&x, &v);
    tile_ir_binary(ir, "add", v, NULL);
    expect_mistake(ir, "operand 1 is NULL");
    ir = begin(&x, &v);
    TileIr *other = begin(&y, &w);
    tile_ir_binary(ir, "add", v, w);
    tile_ir_destroy(other);
    expect_mistake(ir, "operand 1 is a value of another TileIr");
    ir = begin(&x, &v);
    tile_ir_end(ir);
    tile_ir_binary(ir, "add", v, v);
    expect_mistake(ir, "operand 0 belongs to a region or kernel that has ended");
    ir = begin(&x, &v);
    tile_ir_reduce(ir, "sum", v, 3);
    expect_mistake(ir, "(reduce): ");
    ir = begin(&x, &v);
    tile_ir_reduce(ir, "average", v, 0);
    expect_mistake(ir, "expected a word that `kind` may be");
    ir = begin(&x, &v);
    tile_ir_op(ir, "grid", NULL, 0, NULL, NULL);
    expect_mistake(ir, "has regions: tile_ir_begin makes it");
    ir = begin(&x, &v);
    tile_ir_yield(ir, NULL, 0);
    tile_ir_binary(ir, "add", v, v);
    expect_mistake(ir, "stands behind the end of its region");
}

Test(ir, mistakes_outside_of_operations) {
    TileIrValue *x, *v;
    TileIr *ir = begin(&x, &v);
    tile_ir_kernel_end(ir);
    expect_mistake(ir, "the kernel ends before its grid");
    ir = begin(&x, &v);
    expect_mistake((tile_ir_type(ir, "f33[4]"), ir), "'f33[4]' is no type");
    ir = begin(&x, &v);
    expect_mistake((tile_ir_dimension(ir, "M"), ir), "no tensor has a dimension 'M'");
    ir = begin(&x, &v);
    expect_mistake((tile_ir_argument(ir, 1), ir), "the region has no argument 1");
    ir = begin(&x, &v);
    expect_mistake((tile_ir_next(ir), ir), "grid has 1 regions");
    ir = begin(&x, &v);
    expect_mistake((tile_ir_scalar(ir, "x", "f32"), ir), "a parameter stands at the top of a kernel");
    ir = create();
    expect_mistake((tile_ir_end(ir), ir), "tile_ir_end: no operation has begun");
    ir = create();
    expect_mistake((tile_ir_integer(ir, "i64", 1), ir), "op 1 (const): stands outside of a kernel");
    ir = create();
    tile_ir_kernel(ir, "k");
    expect_mistake((tile_ir_kernel(ir, "l"), ir), "another kernel begins");
}

/* ---- damaged text ---- */

static void expect_refusal(const char *text, tile_status wanted, const char *words) {
    TileCompiler *c = compiler();
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    cr_assert_eq(tile_compile(c, text, strlen(text), NULL, &library, &report), wanted, "%s", text);
    cr_assert_not_null(report, "%s", text);
    cr_assert(strstr(tile_report_text(report, false), words), "no '%s' in: %s", words, tile_report_text(report, false));
    tile_report_destroy(report);
    tile_compiler_destroy(c);
}

#define KERNEL(body) "func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {\n" body "return\n}\n"

Test(ir, wrong_text_is_refused_with_its_place) {
    expect_refusal(KERNEL("%v = lod %x : f32\n"), TILE_INVALID_SOURCE, "<text>:2:6: error: expected an operation");
    expect_refusal(KERNEL("%i = const {value = 0} : i64\n%v = load_tile %x, %i {access = [index]} : f32\n"),
                   TILE_INVALID_SOURCE, "<text>:3:1: error: k: load_tile: stands outside of a grid");
    expect_refusal(KERNEL("%i = const {value = 1} : i64\ngrid %i (%p: i64) {\n"
                          "%v = load_tile %y, %p {access = [index]} : f32\nyield\n}\n"),
                   TILE_INVALID_SOURCE, "reads a tensor that is `out`");
    expect_refusal(KERNEL("%i = const {value = 1} : i64\ngrid %i (%p: i64) {\nbarrier\nyield\n}\n"),
                   TILE_INVALID_SOURCE, "only the compiler's own passes make it");
    expect_refusal(KERNEL("%i = const {value = 1} : i64\ngrid %i (%p: i64) {\n}\n"), TILE_INVALID_SOURCE,
                   "a block has to end in yield");
    expect_refusal("func phase machine @k(%x: ptr<global>) {\nreturn\n}\n", TILE_INVALID_SOURCE, "in tile form");
    expect_refusal("func device tile @f(%x: f32) -> f32 {\n%y = call %x {callee = \"f\"} : f32\nreturn %y\n}\n"
                   "func kernel tile @k() {\nreturn\n}\n",
                   TILE_INVALID_SOURCE, "f calls itself");
    expect_refusal("func device tile @f() {\nreturn\n}\n", TILE_INVALID_SOURCE, "the module has no kernel");
}

/* Messages have the given source locations. */
Test(ir, places_of_the_source) {
    expect_refusal("file \"model.net\"\n" KERNEL("%i = const {value = 1} : i64\ngrid %i (%p: i64) {\n"
                                                 "barrier @1:30:7\nyield\n}\n"),
                   TILE_INVALID_SOURCE, "model.net:30:7: k: barrier: only the compiler's own passes make it");
    TileIr *ir = create();
    char *text = NULL;
    tile_ir_place(ir, "model.net", 12, 3);
    build_scale(ir, "scale", 64);
    cr_assert_eq(tile_ir_text(ir, &text, NULL), TILE_OK, "%s", tile_ir_message(ir));
    cr_assert(strstr(text, "file \"model.net\"\n") && strstr(text, "@12:3"), "%s", text);
    tile_string_destroy(text);
    tile_ir_destroy(ir);
}

/* Truncated texts, and texts with a changed byte, are rejected or compiled; whatever compiles is run on the
 * executor. */
Test(ir, mutated_texts_end_in_a_message_or_a_kernel) {
    TileIr *ir = create();
    TileCompiler *c = compiler();
    TileCompileOptions options = {.struct_size = sizeof options, .target = "avx2", .flags = TILE_COMPILE_EMULATE};
    char *text = NULL;
    uint32_t state = 1;
    unsigned compiled = 0, refused = 0;
    build_scale(ir, "scale", 64);
    cr_assert_eq(tile_ir_text(ir, &text, NULL), TILE_OK);
    size_t length = strlen(text);
    for (int i = 0; i < 400; i++) {
        static const char marks[] = "%0123456789,:{}()[]xyfi \n";
        state = state * 1664525 + 1013904223;
        size_t at = (state >> 8) % length;
        char old = text[at];
        TileLibrary *library = NULL;
        TileReport *report = NULL;
        text[at] = marks[(state >> 3) % (sizeof marks - 1)];
        tile_status status = tile_compile(c, text, i % 4 ? length : at, &options, &library, &report);
        text[at] = old;
        cr_assert(status == TILE_OK || (report && tile_report_error_count(report)), "status %d without a word", status);
        cr_assert_neq(status, TILE_INTERNAL, "%s", report ? tile_report_text(report, false) : "");
        if (status == TILE_OK && tile_library_kernel_count(library) == 1) {
            TileKernel *kernel = tile_library_kernel_at(library, 0);
            static float x[COUNT], y[COUNT];
            int64_t count = 100;
            DLTensor tx = vector(x, &count), ty = vector(y, &count);
            TileArg args[] = {TILE_TENSOR(&tx), TILE_TENSOR(&ty), TILE_NUMBER(3)};
            TileLaunchOptions launching = {.struct_size = sizeof launching};
            if (tile_prepare(kernel, args, tile_kernel_parameter_count(kernel) == 3 ? 3 : 0, &launching)) refused++;
            compiled++;
        }
        refused += status != TILE_OK;
        tile_library_destroy(library);
        tile_report_destroy(report);
    }
    cr_expect_gt(compiled, 5);
    cr_expect_gt(refused, 100);
    tile_string_destroy(text);
    tile_compiler_destroy(c);
    tile_ir_destroy(ir);
}
