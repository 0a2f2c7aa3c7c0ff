/* The text form: exact round trips, names, facts, errors with their location. */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/ir/text.h"

static TileContext *context;
static TileArena *arena;

static void set_up(void) {
    context = tile_ir_context_create();
    arena = tile_arena_create(NULL);
}

static void tear_down(void) {
    tile_ir_context_destroy(context);
    tile_arena_destroy(arena);
}

TestSuite(text, .init = set_up, .fini = tear_down);

static const char *printed(const char *source, unsigned options) {
    TileModule *module;
    TileText errors = {.arena = arena}, text = {.arena = arena};
    tile_status status = tile_module_read(context, source, strlen(source), &module, &errors);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&errors));
    tile_module_print(&text, module, options);
    tile_module_destroy(module);
    return tile_text_get(&text);
}

static void expect_same(const char *source) { cr_expect_str_eq(printed(source, 0), source); }

static void expect_error(const char *source, const char *expected) {
    TileModule *module;
    TileText errors = {.arena = arena};
    cr_expect_eq(tile_module_read(context, source, strlen(source), &module, &errors), TILE_INVALID_SOURCE);
    cr_expect_null(module);
    cr_expect(strstr(tile_text_get(&errors), expected), "wanted `%s` in: %s", expected, tile_text_get(&errors));
}

Test(text, tile_form) {
    expect_same(
        "func kernel tile @softmax(%x: tensor<f32, 2, in> {align = 64, stride0 = -8, stride1 = 4, extent1 = 1000, "
        "multiple1 = 8, used_align = 32, used_stride = 3, used_extent = 2, asked_align = 16, asked_stride = 3, "
        "used_multiple = 8, asked_multiple = 24, dense = 1, used_dense = 3, asked_dense = 2, most = 512, used_most = "
        "1024, asked_most = 3072, likely_stride = 2, likely = 4, narrow, "
        "used_narrow, asked_narrow, map, used_map, asked_map, noalias, readonly}, "
        "%\"odd name\": i64) {\n"
        "  %m = dim %x {axis = 0} : i64\n"
        "  grid %m (%i: i64) {\n"
        "    %0 = const {value = 1.5} : f32[1, 64]\n"
        "    %t = load_tile %x, %i, %i, %i, %m, %m {access = [index, range]} : f32[64]\n"
        "    %a, %b = for %m, %i, %m, %i, %m : i64, i64 (%j: i64, %p: i64, %q: i64) {\n"
        "      yield %p, %q\n"
        "    }\n"
        "    yield\n"
        "  }\n"
        "  require %m {text = \"a \\\"quoted\\\" \\\\ \\n \\x01 text\"}\n"
        "  return\n"
        "}\n"
        "\n"
        "func device tile @\"f[f32, 4]\"() -> f32, vec<[4] x f32> {\n"
        "  return\n"
        "}\n");
}

Test(text, tensor_maps) {
    expect_same("func phase machine @k.0(%x: ptr<global> {role = data, argument = 0, map, used_map}, "
                "%x.map: ptr<map> {role = map, argument = 0, box = [128, 64], swizzle = 128}, "
                "%x.map1: ptr<map> {role = map, argument = 0, box = [16], swizzle = 0}, "
                "%shared: ptr<shared> {role = scratch}) threads = 32 {\n"
                "  %i = const {value = 0} : i32\n"
                "  copy_tensor %shared, %x.map, %shared, %i, %i {cache = l2}\n"
                "  prefetch_tensor %x.map1\n"
                "  prefetch_tensor %x.map, %i, %i\n"
                "  store_tensor %x.map1, %shared, %i\n"
                "  store_commit\n"
                "  store_wait {pending = 1, read = 1}\n"
                "  return\n"
                "}\n");
    expect_error("func phase machine @k.0(%m: ptr<map> {role = map, argument = 0, box = [1, 2, 3, 4, 5, 6]}) {",
                 "a box has at most 5 axes");
    expect_error("func phase machine @k.0(%m: ptr<map> {box = 4}) {", "expected `[`");
    expect_error("func phase machine @k.0(%m: ptr<map> {corner = [1, 2, 3, 4]}) {", "an image has at most 3 axes");
    expect_error("func phase machine @k.0(%m: ptr<map> {over = [1, 2, 3]}) {", "an argument has no axis");
    expect_error("func phase machine @k.0(%m: ptr<local>) {", "global, shared, scratch or map");
}

Test(text, machine_form) {
    expect_same(
        "func phase machine @k.0(%x: ptr<global>, %x.dim0: i64) scratch_bytes = 4096 {\n"
        "  %0 = buffer {bytes = 64, align = 64} : ptr<scratch>\n"
        "  loop %x.dim0, %x.dim0 {loop = reduce, extent = 0, combine = [arg_max, with], order = stripes} (%i: i64) "
        "{\n"
        "    %c = eq %i, %i : bool\n"
        "    if %c {\n"
        "      yield\n"
        "    } {\n"
        "      yield\n"
        "    }\n"
        "    yield\n"
        "  }\n"
        "  %v = load %x {parts = [mask, fill], align = 4, cache = stream} : vec<16 x f32>\n"
        "  dot_block %x {types = [f16, f16, f32], extents = [1, 2, 3]}\n"
        "  return\n"
        "}\n");
}

Test(text, words_for_gpus) {
    expect_same("func phase tile @k.0(%x: tensor<f32, 1, in>) warps = 8 stages = 3 stream = 1 busy = 1 reloads = 1 keeps = 1 threads = 256 "
                "scratch_bytes = 64 {\n"
                "  return\n"
                "}\n");
    expect_same("func kernel tile @k(%x: tensor<f32, 1, in>) least_programs = 132 split_programs = 16, 1 packs = 1 {\n"
                "  return\n"
                "}\n");
    expect_error("func kernel tile @k() split_programs = 0 { return }", "a grid has at least one program");
    expect_same("func kernel tile @k(%x: tensor<f32, 1, in>) split_programs = 16 warps = 4 blocks_together = 4, 0, 2 stream = 1 {\n"
                "  return\n"
                "}\n");
    expect_error("func kernel tile @k() blocks_together = 0, 0 { return }", "one of its numbers is not 0");
    expect_error("func kernel tile @k() blocks_together = 4, 33 { return }", "a multiprocessor has up to 32 blocks at a time");
    expect_error("func phase tile @k.0() stream = 0 { return }", "`stream` is 1 where it stands");
    expect_error("func phase tile @k.0() stream = 2 { return }", "`stream` is 1 where it stands");
    expect_error("func phase tile @k.0() busy = 0 { return }", "`busy` is 1 where it stands");
    expect_error("func phase tile @k.0() reloads = 2 { return }", "`reloads` is 1 where it stands");
    expect_error("func phase tile @k.0() keeps = 2 { return }", "`keeps` is 1 where it stands");
    expect_error("func phase tile @k.0() warps = 33 { return }", "a block has 1 to 32 warps");
}

Test(text, constants_of_every_type) {
    static const char *const types[] = {"bool", "i8",   "i64",    "u8",     "u64", "u64",  "f8e4m3", "f8e5m2",
                                        "f16",  "bf16", "f32",    "f32",    "f32", "f64",  "f64",    "f8e5m2",
                                        "f16",  "f32",  "f8e4m3", "f32[7]", "f32", "bf16", "f32"};
    static const char *const values[] = {"true",
                                         "-128",
                                         "-9223372036854775808",
                                         "255",
                                         "0",
                                         "18446744073709551615",
                                         "448.0",
                                         "-57344.0",
                                         "6e-08",
                                         "0.1",
                                         "0.1",
                                         "1e+30",
                                         "-0.0",
                                         "0.1",
                                         "5e-324",
                                         "inf",
                                         "-inf",
                                         "nan",
                                         "nan",
                                         "3.14159",
                                         "1e-45",
                                         "-nan",
                                         "bits(0x7f800001)"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        expect_same(tile_arena_format(arena, "func device tile @f() {\n  %%0 = const {value = %s} : %s\n  return\n}\n",
                                      values[i], types[i]));
}

Test(text, names_become_unique) {
    cr_expect_str_eq(printed("func device tile @f(%a: i64, %\"0\": i64) { %0 = add %a, %\"0\" : i64 // comment\n"
                             "%a.1 = add %0, %0 : i64 %b = add %a.1, %0 : i64 return }",
                             0),
                     "func device tile @f(%a: i64, %\"0\": i64) {\n"
                     "  %0 = add %a, %\"0\" : i64\n"
                     "  %a.1 = add %0, %0 : i64\n"
                     "  %b = add %a.1, %0 : i64\n"
                     "  return\n"
                     "}\n");
    TileModule *module = tile_module_create(context);
    TileFunc *func = tile_func_create(module, "f", TILE_FUNC_DEVICE, TILE_FORM_TILE);
    const TileType *type = tile_type_scalar(context, TILE_I64);
    TileValue *a = tile_func_add_parameter(func, "a", type);
    for (int i = 0; i < 3; i++) {
        TileOp *op = tile_op_create(module, TILE_OP_NEG, (TileLocation){0}, &a, 1, &type, 1);
        op->results[0].name = i == 0 ? "a.1" : i == 1 ? "a" : "not a name";
        tile_op_append(op, &func->body);
    }
    TileText text = {.arena = arena};
    tile_module_print(&text, module, 0);
    cr_expect_str_eq(tile_text_get(&text), "func device tile @f(%a: i64) {\n  %a.1 = neg %a : i64\n"
                                           "  %a.2 = neg %a : i64\n  %0 = neg %a : i64\n}\n");
    TileText line = {.arena = arena};
    tile_op_print(&line, func->body.last, TILE_PRINT_NO_REGIONS);
    cr_expect_str_eq(tile_text_get(&line), "%0 = neg %a : i64");
    tile_module_destroy(module);
}

Test(text, locations) {
    tile_list_push(context->arena, &context->files, "a.tile");
    tile_list_push(context->arena, &context->files, "b.tile");
    const char *source = "func device tile @f() @1:2 {\n  %0 = const {value = 1} : i64 @2:3:4\n  return @5:6\n}\n";
    cr_expect_str_eq(printed(source, TILE_PRINT_LOCATIONS), source);
    cr_expect_str_eq(printed(source, 0), "func device tile @f() {\n  %0 = const {value = 1} : i64\n  return\n}\n");
}

Test(text, errors_say_where) {
    expect_error("func", "1:5: expected kernel, device or phase");
    expect_error("func device tile @f() {\n  %a = add %b, %b : i64\n}", "2:12: %b is not defined");
    expect_error("func device tile @f() {\n  %a = frob\n}", "2:8: expected an operation");
    expect_error("func device tile @f(%a: i64) {\n  %a = neg %a : i64\n}", "2:3: %a is defined twice");
    expect_error(
        "func device tile @f(%c: bool) {\n  if %c {\n    %a = neg %c : bool\n    yield\n  } {\n    yield %a\n  }\n}",
        "6:11: %a is not defined");
    expect_error("func device tile @f() {\n  %a = const {value = 300} : i8\n}", "2:23: no value of type i8");
    expect_error("func device tile @f() {\n  %a = const {value = 3, value = 4} : i8\n}", "`value` is given twice");
    expect_error("func device tile @f(%a: f32[1, 2, 3, 4, 5, 6]) {}", "at most 5 axes");
    expect_error("func device tile @f(%a: f32[65536, 65536]) {}", "too many elements");
    expect_error("func device tile @f(%a: f32[0]) {}", "1:30: an extent lies between 1");
    expect_error("func device tile @f(%a: tensor<f32, 9, in>) {}", "at most 8 dimensions");
    expect_error("func device tile @f() {\n  %a, %b = neg : i64\n}", "has 2 results, but 1 types");
    expect_error("func device tile @f() { return", "1:31: expected an operation");
    expect_error("func device tile @f() { assert {text = \"abc", "does not end on its line");
    expect_error("func device tile @f(%a: i64 {width = 3}) {}", "no fact about a parameter");
}

Test(text, nesting_is_limited) {
    TileText source = {.arena = arena};
    tile_text_add(&source, "func device tile @f(%c: bool) {");
    for (int i = 0; i < 100000; i++) tile_text_add(&source, "if %c {");
    expect_error(tile_text_get(&source), "nested too deeply");
}
