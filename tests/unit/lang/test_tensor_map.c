/* Parameters that are tensor maps: how they are added, what they are of, and what the verifier says of wrong ones. */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/ir/tensor_map.h"
#include "lang/ir/text.h"
#include "tests/unit/lang/executing.h"

TestSuite(tensor_map, .init = executing_set_up, .fini = executing_tear_down);

static const char kernel[] = "func kernel tile @k(%s: f32, %x: tensor<f16, 2, in>) {\n  %n = const {value = 1} : i64\n"
                             "  %t = temp %n, %n, %n : tensor<f32, 3, temp>\n  grid %n (%i: i64) {\n    yield\n  }\n"
                             "  return\n}\n";
#define X                                                                                                              \
    "%s: f32 {role = scalar, argument = 0}, %x: ptr<global> {role = data, argument = 1}, "                             \
    "%x.dim0: i64 {role = extent, argument = 1, axis = 0}, %x.dim1: i64 {role = extent, argument = 1, axis = 1}, "     \
    "%x.stride0: i64 {role = stride, argument = 1, axis = 0}, %x.stride1: i64 {role = stride, argument = 1, axis = 1}"
#define RANGE ", %begin: i64 {role = begin}, %end: i64 {role = end}"
#define MAP "{role = map, argument = 1, box = [8, 64], swizzle = 128}"
#define SHARED ", %shared: ptr<shared> {role = scratch}"

static const char *phase(const char *parameters, const char *body) {
    return tile_arena_format(executing.arena,
                             "%sfunc phase machine @k.0(%s) kernel = @k phase = 0 threads = 32 {\n%s  return\n}\n",
                             kernel, parameters, body);
}

/* ---- adding ---- */

/* The module of the function is printed with these words, read back, and printed the same. */
static void expect_same_text(TileFunc *func, const char *words) {
    TileText text = {.arena = executing.arena}, second = {.arena = executing.arena}, errors = {.arena = executing.arena};
    TileModule *again = NULL;
    tile_module_print(&text, func->module, 0);
    tile_status status = tile_module_read(executing.context, tile_text_get(&text), text.length, &again, &errors);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&errors));
    tile_module_print(&second, again, 0);
    cr_expect_str_eq(tile_text_get(&second), tile_text_get(&text));
    cr_expect(strstr(tile_text_get(&text), words), "%s is not in %s", words, tile_text_get(&text));
}

Test(tensor_map, a_map_stands_before_the_shared_memory) {
    TileFunc *func = read_func(phase(X RANGE SHARED, "  %a = ptr_add %x, %begin : ptr<global>\n"), "k.0");
    TileTensorMap map = {2, {8, 64}, 128, {0}, 0, 0, {0}, {{0, 0}}}, other = {2, {8, 64}, 0, {0}, 0, 0, {0}, {{0, 0}}};
    TileValue *shared = func->body.arguments[8], *added = tile_func_add_map(func, 1, &map);
    cr_assert(added && added->index == 8 && shared->index == 9 && func->body.arguments[9] == shared);
    cr_expect_str_eq(func->parameters[8].name, "x.map");
    cr_expect_str_eq(func->parameters[9].name, "shared");
    cr_expect(func->parameters[9].role == TILE_ROLE_SCRATCH && func->parameters[1].used_map);
    cr_expect_eq(tile_func_add_map(func, 1, &map), added, "it is there already");
    const TileValue *second = tile_func_add_map(func, 1, &other);
    cr_expect(second != added && second->index == 9 && shared->index == 10);
    cr_expect_str_eq(func->parameters[9].name, "x.map1");
    TileText errors = {.arena = executing.arena};
    cr_expect(tile_module_verify(func->module, &errors), "%s", tile_text_get(&errors));
    cr_expect(tile_value_map(added)->swizzle == 128 && !tile_value_map(shared));
    for (uint32_t i = 2; i < TILE_MAX_MAPS; i++) cr_expect(tile_func_add_map(func, 1, &(TileTensorMap){2, {20 + i, 64}, 0, {0}, 0, 0, {0}, {{0, 0}}}));
    cr_expect_null(tile_func_add_map(func, 1, &(TileTensorMap){2, {100, 64}, 0, {0}, 0, 0, {0}, {{0, 0}}}), "there are as many as may be");
    cr_expect(tile_module_verify(func->module, &errors), "%s", tile_text_get(&errors));
}

Test(tensor_map, boxes_have_steps) {
    TileFunc *func = read_func(phase(X RANGE SHARED, "  %a = ptr_add %x, %begin : ptr<global>\n"), "k.0");
    const TileType *tensor = tile_func_argument_type(func, 1);
    TileTensorMap map = {2, {8, 64}, 128, {3, 1}, 0, 0, {0}, {{0, 0}}}, other = {2, {8, 64}, 128, {0, 0}, 0, 0, {0}, {{0, 0}}}, same = {2, {8, 64}, 128, {1, 1}, 0, 0, {0}, {{0, 0}}};
    const TileValue *stepped = tile_func_add_map(func, 1, &map), *plain = tile_func_add_map(func, 1, &other);
    cr_assert(stepped && plain && stepped != plain && tile_func_add_map(func, 1, &same) == plain, "a step of 0 is 1");
    cr_expect_null(tile_map_misfit(&map, tensor));
    cr_expect_str_eq(tile_map_misfit(&(TileTensorMap){2, {8, 64}, 128, {9, 1}, 0, 0, {0}, {{0, 0}}}, tensor), "a step of the box is more than 8");
    cr_expect_str_eq(tile_map_misfit(&(TileTensorMap){2, {33, 64}, 128, {8, 1}, 0, 0, {0}, {{0, 0}}}, tensor), "the box reaches over more than 256 elements");
    cr_expect_str_eq(tile_map_misfit(&(TileTensorMap){2, {8, 64}, 128, {1, 2}, 0, 0, {0}, {{0, 0}}}, tensor), "the last axis of the box has a step");
    expect_same_text(func, "steps = [3, 1]");
}

Test(tensor_map, boxes_end_with_the_tensor) {
    TileFunc *func = read_func(phase(X RANGE SHARED, "  %a = ptr_add %x, %begin : ptr<global>\n"), "k.0");
    const TileType *tensor = tile_func_argument_type(func, 1);
    TileTensorMap map = {2, {64, 64}, 128, {0}, 1, 0, {0}, {{0, 0}}}, other = {2, {64, 64}, 128, {0}, 0, 0, {0}, {{0, 0}}};
    const TileValue *cut = tile_func_add_map(func, 1, &map), *whole = tile_func_add_map(func, 1, &other);
    cr_assert(cut && whole && cut != whole && tile_func_add_map(func, 1, &map) == cut);
    cr_expect_null(tile_map_misfit(&map, tensor));
    cr_expect_str_eq(tile_map_misfit(&(TileTensorMap){2, {64, 64}, 128, {0}, 2, 0, {0}, {{0, 0}}}, tensor), "a row of the box is cut");
    cr_expect(tile_map_cut(64, 16) == 16 && tile_map_cut(64, 64) == 64 && tile_map_cut(64, 65) == 64 && tile_map_cut(64, UINT64_C(1) << 32) == 64);
    cr_expect_eq(tile_map_cut(64, 0), 1, "a box has an element");
    expect_same_text(func, "swizzle = 128, cut = 1");
}

/* ---- positions ---- */

#define IMAGES                                                                                                         \
    "%x: ptr<global> {role = data, argument = 0}, %x.dim0: i64 {role = extent, argument = 0, axis = 0}, "              \
    "%x.dim1: i64 {role = extent, argument = 0, axis = 1}, %x.dim2: i64 {role = extent, argument = 0, axis = 2}, "     \
    "%x.dim3: i64 {role = extent, argument = 0, axis = 3}, %x.stride0: i64 {role = stride, argument = 0, axis = 0}, "  \
    "%x.stride1: i64 {role = stride, argument = 0, axis = 1}, %x.stride2: i64 {role = stride, argument = 0, axis = 2}, "\
    "%x.stride3: i64 {role = stride, argument = 0, axis = 3}"

static const char *images(const char *map, const char *body) {
    return tile_arena_format(executing.arena,
                             "func kernel tile @k(%%x: tensor<f16, 4, in>) {\n  %%n = const {value = 1} : i64\n"
                             "  grid %%n (%%i: i64) {\n    yield\n  }\n  return\n}\n"
                             "func phase machine @k.0(%s%s%s%s%s) kernel = @k phase = 0 threads = 32 {\n  %%c = const {value = 0} : i32\n%s  return\n}\n",
                             IMAGES, RANGE, *map ? ", %m: ptr<map> " : "", map, SHARED, body);
}

#define POSITIONS "{role = map, argument = 0, box = [1, 1, 1, 64], swizzle = 128, positions = 192, corner = [-1, -64], over = [0, 1, 0, 2]}"

Test(tensor_map, boxes_of_positions) {
    TileFunc *func = read_func(images(POSITIONS, ""), "k.0");
    TileText errors = {.arena = executing.arena};
    cr_assert(tile_module_verify(func->module, &errors), "%s", tile_text_get(&errors));
    expect_same_text(func, POSITIONS);
    const TileTensorMap *map = &func->parameters[11].map;
    TileTensorMap other = *map, same = *map;
    uint32_t counts[TILE_MAP_MOST_IMAGE_AXES];
    cr_expect(tile_map_image_axes(map) == 2 && tile_map_box_bytes(map, TILE_F16) == 192 * 128);
    cr_expect(tile_func_map_counts(func, 11, counts) && counts[0] == 2 && counts[1] == 3);
    cr_expect_eq(tile_func_add_map(func, 0, &same), func->body.arguments[11]);
    other.corner[1] = -63;
    cr_expect_neq(tile_func_add_map(func, 0, &other), func->body.arguments[11], "another corner");
    other = *map;
    other.over[1].axis = 1;
    cr_expect_neq(tile_func_add_map(func, 0, &other), func->body.arguments[11], "of another extent");
    other = *map;
    other.positions = 0;
    cr_expect(tile_map_image_axes(&other) == 0 && tile_func_add_map(func, 0, &other) != func->body.arguments[11]);
}

Test(tensor_map, corners_that_a_map_has) {
    cr_expect(tile_map_corner_fits(4, -128) && tile_map_corner_fits(4, 127) && !tile_map_corner_fits(4, 128) && !tile_map_corner_fits(4, -129));
    cr_expect(tile_map_corner_fits(3, -32768) && !tile_map_corner_fits(3, 32768) && tile_map_corner_fits(5, 15) && !tile_map_corner_fits(5, 16));
    cr_expect(tile_map_offset_fits(4, 255) && !tile_map_offset_fits(4, 256) && !tile_map_offset_fits(4, -1) && !tile_map_offset_fits(5, 32));
    cr_expect(tile_map_far_corner(-1, 7, 1, 7) == -1 && tile_map_far_corner(-1, 4, 2, 7) == -1 && tile_map_far_corner(0, 5, 1, 7) == -2);
    cr_expect(tile_map_far_corner(0, 0, 1, 7) == INT32_MAX && tile_map_far_corner(0, UINT64_MAX, 1, 7) == INT32_MAX);
}

Test(tensor_map, a_fact_is_asked_and_used) {
    TileParameter parameter = {.name = "x"};
    cr_expect(!tile_parameter_fits_map(&parameter, 0) && !tile_parameter_fits_map(&parameter, 6));
    cr_expect(!parameter.asked_map, "no map has such a rank, whatever is known");
    cr_expect(!tile_parameter_fits_map(&parameter, 2) && parameter.asked_map && !parameter.used_map);
    parameter.facts.map = true;
    cr_expect(tile_parameter_fits_map(&parameter, 5) && parameter.used_map);
}

Test(tensor_map, the_tensor_of_an_argument) {
    const TileFunc *func = read_func(phase(X RANGE SHARED, ""), "k.0");
    cr_expect_null(tile_func_argument_type(func, 0));
    cr_expect(tile_func_argument_type(func, 1)->scalar == TILE_F16);
    cr_expect(tile_func_argument_type(func, 2)->rank == 3, "the temporary");
    cr_expect_null(tile_func_argument_type(func, 3));
}

/* ---- what a tensor has to be like ---- */

Test(tensor_map, tensors_that_have_maps) {
    static const struct {
        uint64_t address;
        unsigned rank, bytes;
        int64_t extent[6], stride[6];
        bool fits;
    } cases[] = {
        {1024, 2, 2, {5, 7}, {16, 2}, true},
        {1040, 2, 2, {5, 7}, {48, 2}, true},
        {1032, 2, 2, {5, 7}, {48, 2}, false},
        {1024, 2, 2, {5, 7}, {24, 2}, false},
        {1024, 2, 2, {5, 7}, {0, 2}, false},
        {1024, 2, 2, {5, 7}, {-48, 2}, false},
        {1024, 2, 2, {5, 7}, {48, 4}, false},
        {1024, 2, 2, {1, 7}, {-3, 2}, true},
        {1024, 2, 2, {5, 1}, {48, 17}, true},
        {1024, 2, 2, {5, 0}, {48, 2}, false},
        {1024, 1, 1, {INT64_C(1) << 32}, {1}, true},
        {1024, 1, 1, {(INT64_C(1) << 32) + 1}, {1}, false},
        {1024, 2, 1, {2, 2}, {(INT64_C(1) << 40) - 16, 1}, true},
        {1024, 2, 1, {2, 2}, {INT64_C(1) << 40, 1}, false},
        {1024, 0, 4, {0}, {0}, false},
        {1024, 6, 4, {1, 1, 1, 1, 1, 1}, {16, 16, 16, 16, 16, 4}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(tile_map_fits(cases[i].address, cases[i].rank, cases[i].bytes, cases[i].extent, cases[i].stride),
                     cases[i].fits, "case %zu", i);
}

/* ---- the verifier ---- */

static void expect_complaint(const char *source, const char *expected) {
    TileText errors = {.arena = executing.arena};
    TileModule *module = NULL;
    cr_assert_eq(tile_module_read(executing.context, source, strlen(source), &module, &errors), TILE_OK, "%s",
                 tile_text_get(&errors));
    tile_list_push(executing.arena, &executing.modules, module);
    cr_expect_not(tile_module_verify(module, &errors), "wanted `%s`", expected);
    cr_expect(strstr(tile_text_get(&errors), expected), "wanted `%s`, got: %s", expected, tile_text_get(&errors));
}

Test(tensor_map, wrong_parameters) {
    static const char *const cases[][2] = {
        {X ", %m: ptr<map> " MAP RANGE SHARED, "stands before other parameters than `scratch`"},
        {X RANGE SHARED ", %m: ptr<map> " MAP, "stands before other parameters than `scratch`"},
        {X RANGE ", %m: ptr<map>" SHARED, "is no none"},
        {X RANGE ", %m: ptr<global> " MAP SHARED, "is no map"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1}" SHARED, "is no map"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 0, box = [8, 64], swizzle = 0}" SHARED, "is no map"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 2, box = [1, 8, 64], swizzle = 0}" SHARED, "are not there"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [64], swizzle = 0}" SHARED, "as many axes"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [0, 64], swizzle = 0}" SHARED, "is not 1 .. 256"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [257, 64], swizzle = 0}" SHARED, "is not 1 .. 256"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [8, 12], swizzle = 0}" SHARED, "no multiple of 16"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [8, 8], swizzle = 16}" SHARED,
         "not of 32, 64 or 128"},
        {X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [8, 32], swizzle = 128}" SHARED,
         "not as many bytes as the swizzle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_complaint(phase(cases[i][0], ""), cases[i][1]);
    expect_complaint("func device machine @f(%m: ptr<map>) {\n  return\n}\n", "is no none");
}

Test(tensor_map, wrong_uses) {
    static const char *const cases[][2] = {
        {"copy_tensor %shared, %m, %shared, %c", "needs 2 coordinates, one for each axis"},
        {"copy_tensor %shared, %m, %shared, %c, %c, %c", "needs 2 coordinates"},
        {"copy_tensor %shared, %m, %shared, %c, %begin", "a coordinate is not i32"},
        {"copy_tensor %x, %m, %shared, %c, %c", "copies by a tensor map to shared memory"},
        {"copy_tensor %shared, %x, %shared, %c, %c", "copies by a tensor map to shared memory"},
        {"copy_tensor %shared, %m, %x, %c, %c", "an mbarrier lies in shared memory"},
        {"store_tensor %m, %x, %c, %c", "stores by a tensor map from shared memory"},
        {"store_tensor %m, %shared, %c", "needs 2 coordinates"},
        {"prefetch_tensor %x", "asks for boxes of a tensor map"},
        {"prefetch_tensor %m, %c", "needs 2 coordinates"},
        {"store_wait {pending = -1}", "pending is negative"},
        {"%v = load %m : i32", "needs a pointer"},
        {"%v = ptr_add %m, %begin : ptr<map>", "needs a pointer"},
        {"%v = for %begin, %end, %end, %m : ptr<map> (%i: i64, %p: ptr<map>) {\n    yield %p\n  }",
         "a tensor map is carried or taken"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_complaint(
            phase(X RANGE ", %m: ptr<map> " MAP SHARED,
                  tile_arena_format(executing.arena, "  %%c = const {value = 0} : i32\n  %s\n", cases[i][0])),
            cases[i][1]);
}

/* A map of positions with one thing changed, and its use. */
Test(tensor_map, wrong_positions) {
    static const char *const cases[][3] = {
        {"positions = 192", "positions = 1025", "a box has more than 1024 positions"},
        {"box = [1, 1, 1, 64]", "box = [1, 2, 1, 64]", "a box of positions has an extent"},
        {"box = [1, 1, 1, 64]", "box = [1, 1, 1, 64], steps = [2, 1, 1, 1]", "the axis of the images has a step"},
        {"swizzle = 128", "swizzle = 128, cut = 1", "a box of positions is cut"},
        {"corner = [-1, -64]", "corner = [-129, -64]", "a corner is not one that a map has"},
        {"corner = [-1, -64]", "corner = [-1, 128]", "a corner is not one that a map has"},
        {"over = [0, 1, 0, 2]", "over = [0, 1, 0, 4]", "of which nothing says how many there are"},
        {"over = [0, 1, 0, 2]", "over = [0, 1, 3, 1]", "of which nothing says how many there are"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(POSITIONS, cases[i][0]);
        const char *map = tile_arena_format(executing.arena, "%.*s%s%s", (int)(at - POSITIONS), POSITIONS, cases[i][1], at + strlen(cases[i][0]));
        expect_complaint(images(map, ""), cases[i][2]);
    }
    expect_complaint(phase(X RANGE ", %m: ptr<map> {role = map, argument = 1, box = [1, 64], swizzle = 128, positions = 8}" SHARED, ""),
                     "a batch of images has at least three axes");
    expect_complaint(images(POSITIONS, "  copy_tensor %shared, %m, %shared, %c, %c, %c, %c\n"), "needs 4 coordinates, and 2 offsets of positions");
    expect_complaint(images(POSITIONS, "  copy_tensor %shared, %m, %shared, %c, %c, %c, %c, %c, %begin\n"), "a coordinate is not i32");
    expect_complaint(images(POSITIONS, "  prefetch_tensor %m, %c, %c, %c, %c\n"), "needs 4 coordinates, and 2 offsets of positions");
    expect_complaint(images(POSITIONS, "  store_tensor %m, %shared, %c, %c, %c, %c, %c, %c\n"), "needs 4 coordinates, one for each axis");
}
