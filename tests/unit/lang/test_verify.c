/* The verifier's complaints about invalid modules. */
#include <criterion/criterion.h>

#include "lang/ir/build.h"
#include "tests/unit/lang/executing.h"

TestSuite(verify, .init = executing_set_up, .fini = executing_tear_down);

static TileModule *read_module(const char *source) {
    TileText errors = {.arena = executing.arena};
    TileModule *module = NULL;
    cr_assert_eq(tile_module_read(executing.context, source, strlen(source), &module, &errors), TILE_OK, "%s",
                 tile_text_get(&errors));
    tile_list_push(executing.arena, &executing.modules, module);
    return module;
}

static void expect_complaint(const TileModule *module, const char *expected) {
    TileText errors = {.arena = executing.arena};
    cr_expect_not(tile_module_verify(module, &errors), "wanted `%s`", expected);
    cr_expect(strstr(tile_text_get(&errors), expected), "wanted `%s`, got: %s", expected, tile_text_get(&errors));
    cr_expect_not(tile_module_verify(module, NULL));
}

static void expect_body(const char *form, const char *body, const char *expected) {
    static const char source[] = "func device %s @f(%%a: f32, %%i: i64, %%c: bool%s) {\n%s\n  return\n}\n";
    const char *more = form[0] == 't' ? ", %t: f32[2, 3], %x: tensor<f32, 2, in>"
                                      : ", %v: vec<4 x f32>, %p: ptr<global>, %o: vec<4 x i64>, %m: vec<4 x bool>";
    expect_complaint(read_module(tile_arena_format(executing.arena, source, form, more, body)), expected);
}

Test(verify, tile_form) {
    static const char *const cases[][2] = {
        {"%r = add %a, %i : f32", "operand 1 is i64, but operand 0 is f32"},
        {"%r = add %a, %a : f64", "result 0 has type f64 where the rule gives f32"},
        {"%r = add %a : f32", "wrong number of operands"},
        {"%r, %s = add %a, %a : f32, f32", "wrong number of results"},
        {"%r = add %a, %a {axis = 1} : f32", "an attribute that this op does not have"},
        {"%r = const : f32", "a required attribute is missing"},
        {"%r = reduce %t {kind = 300, axis = 7} : f32", "an attribute holds a word of another one"},
        {"%r = floor %i : i64", "needs a floating-point element type"},
        {"%r = and %a, %a : f32", "needs an integer or bool element type"},
        {"%r = neg %x : tensor<f32, 2, in>", "needs a scalar, tile or vector"},
        {"%r = select %i, %a, %a : f32", "the condition is not bool"},
        {"%r = bitcast %a : i64", "the element types differ in width"},
        {"%r = convert %a : f32[2]", "another shape than the operand"},
        {"%r = splat %a : i32[4]", "the element types differ"},
        {"%r = iota {axis = 2} : i64[4]", "no such axis"},
        {"%r = broadcast %t : f32[2, 4]", "axis 1 stretches from 3"},
        {"%r = reshape %t : f32[7]", "the number of elements changes"},
        {"%r = permute %t {axes = [1, 1]} : f32[3, 2]", "axes is no permutation"},
        {"%r = permute %t {axes = [1, 0]} : f32[2, 3]", "has type f32[2, 3] where the rule gives f32[3, 2]"},
        {"%r = fill %t, %a, %i {axes = [0]} : f32[2, 3]", "two bounds for each axis"},
        {"%r = reduce %t {kind = any, axis = 0} : f32[3]", "any and all reduce bool"},
        {"%r = reduce %t {kind = sum, axis = 2} : f32[3]", "no such axis"},
        {"%r = fold %t {axis = 2} : f32[2] (%p: f32, %q: f32) {\n  yield %p\n}", "no such axis"},
        {"%r = fold %t {axis = 1} : f32[3] (%p: f32, %q: f32) {\n  yield %p\n}", "where the rule gives f32[2]"},
        {"%r = fold %t {axis = 1} : f32[2] (%p: f32) {\n  yield %p\n}", "takes two scalars for each value"},
        {"%r = fold %t {axis = 1} : f32[2] (%p: f64, %q: f64) {\n  yield %p\n}", "takes other scalars"},
        {"%r = fold %t {axis = 1} : f32[2] (%p: f32, %q: f32) {\n  yield\n}", "carries 0 values where 1 are expected"},
        {"%r = fold %t {axis = 1} : f32[2] (%p: f32, %q: f32) {\n  yield %a\n}", "from outside of its combiner"},
        {"%r = fold %t {axis = 1} : f32[2] (%p: f32, %q: f32) {\n  %l = load_tile %x, %i, %i {access = [index, index]} "
         ": "
         "f32\n  yield %l\n}",
         "stands in a combiner"},
        {"%r = fold %t, %t {axis = 1, parts = [mask]} : f32[2] (%p: f32, %q: f32) {\n  yield %p\n}",
         "the mask is no bool tile"},
        {"%r = fold %t, %a {axis = 1, parts = [init]} : f32[2] (%p: f32, %q: f32) {\n  yield %p\n}",
         "an init has the wrong type"},
        {"%r = scan %t, %t {axis = 1} : f32[2, 3] (%p: f32, %q: f32) {\n  yield %p\n}",
         "the number of operands is not what parts says"},
        {"%r = dot %t, %t, %t : f32[2, 3]", "the extents do not fit"},
        {"%r = load_tile %x, %i {access = [index]} : f32", "one entry for each dimension"},
        {"%r = load_tile %x, %i, %i {access = [index, index]} : f16", "element type is not the tensor's"},
        {"%r = load_tile %x, %i, %i {access = [index, index]} : f32[4]", "rank is not the number of kept axes"},
        {"%r = load_tile %x, %i, %i, %a {access = [index, index], parts = [mask]} : f32", "the mask is not bool"},
        {"%r = dim %x {axis = 2} : i64", "no such dimension"},
        {"%r = temp %i : tensor<f32, 1, temp>", "stands only at the top of a kernel"},
        {"%r = load %a : f32", "is not legal in tile form"},
        {"%r = const {value = 1.0} : vec<4 x f32>", "has a type of the other form"},
        {"for %i, %i, %i (%j: i64) {\n}", "a block has to end in yield"},
        {"for %i, %i, %i (%j: i64) {\n  yield\n  yield\n}", "stands before the end of its block"},
        {"%r = for %i, %i, %i, %a : f32 (%j: i64) {\n  yield %a\n}", "wrong number of arguments"},
        {"%r = for %i, %i, %i, %a : f32 (%j: i64, %k: f32) {\n  yield\n}", "carries 0 values where 1 are expected"},
        {"%r = if %c : f32 {\n  yield %a\n} {\n  yield %i\n}", "value 0 differs in type from the result"},
        {"while (%q: i64) {\n  condition %i\n} {\n  yield\n}", "the condition is not a bool scalar"},
        {"call %a {callee = \"nobody\"}", "no function of this name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("tile", cases[i][0], cases[i][1]);
}

Test(verify, flat_accesses) {
    static const char *const cases[][2] = {
        {"%r = load_tile %x, %i, %i {access = [index, index], flat = 0} : f32",
         "an index that flat makes none is not 0"},
        {"%z = const {value = 0} : i64\n%r = load_tile %x, %z, %i {access = [index, index], flat = 1} : f32",
         "flat is no dimension in front of the last"},
        {"%z = const {value = 0} : i64\n%j = iota {axis = 0} : i64[4]\n"
         "%r = load_tile %x, %z, %j {access = [index, gather], flat = 0} : f32[4]",
         "a flat access has no gather as its last index"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("tile", cases[i][0], cases[i][1]);
}

Test(verify, plans_of_products) {
    static const char *const cases[][2] = {
        {"%r = dot %t, %t, %t {warps = [2]} : f32[2, 3]", "warps has a number for rows and one for columns"},
        {"%r = dot %t, %t, %t {warps = [3, 1]} : f32[2, 3]", "no power of two up to 32"},
        {"%r = dot %t, %t, %t {pairs = [0, 1]} : f32[2, 3]", "beside warps"},
        {"%r = dot %t, %t, %t {k_parts = 2} : f32[2, 3]", "k_parts does not divide the depth"},
        {"%r = dot %t, %t, %t {k_parts = 0} : f32[2, 3]", "k_parts does not divide the depth"},
        {"%u = permute %t {axes = [1, 0]} : f32[3, 2]\n%r = dot %u, %t, %t {k_parts = 2} : f32[2, 3]", "the extents do not fit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("tile", cases[i][0], cases[i][1]);
}

Test(verify, machine_form) {
    static const char *const cases[][2] = {
        {"fold_loop %i, %i {extent = 0, order = prefix} (%j: i64) {\n  yield %a\n} (%b: f32, %d: f32) {\n  yield %b\n} "
         "(%k: i64, %r: f32) {\n  yield\n}",
         "the extent has to be known"},
        {"fold_loop %i, %i {extent = 4, order = prefix} (%j: i64) {\n  yield %a\n} (%b: f32, %d: f32) {\n  yield %b\n} "
         "(%k: i64) {\n  yield\n}",
         "the last region takes index and results"},
        {"%r = fold_loop %i, %i {extent = 4, order = neighbours, parts = [mask]} : f32 (%j: i64) {\n  yield %a\n} (%b: "
         "f32, %d: f32) {\n  yield %b\n} {\n  yield\n}",
         "carries 1 values where 2 are expected"},
        {"%r = ptr_add %i, %i : ptr<global>", "needs a pointer and i64 bytes"},
        {"%r = is_aligned %i {align = 4} : bool", "needs a pointer"},
        {"%r = is_aligned %p {align = 12} : bool", "align is no power of two"},
        {"%r = is_aligned %p {align = 4} : i64", "where the rule gives bool"},
        {"%r = buffer {bytes = 0, align = 4} : ptr<scratch>", "bytes is not positive"},
        {"%r = buffer {bytes = 4, align = 3} : ptr<scratch>", "align is no power of two"},
        {"%r = buffer {bytes = 4, align = 4} : ptr<global>", "where the rule gives ptr<scratch>"},
        {"%r = load %p, %m {parts = [mask]} : vec<8 x f32>", "the mask is not bool of the value's shape"},
        {"%r = load %p, %i {parts = [fill]} : f32", "the fill is neither"},
        {"store %v, %i", "needs a value and a pointer"},
        {"%r = gather %p, %v : vec<4 x f32>", "the offsets are no i64 vector"},
        {"scatter %v, %p, %o, %o {parts = [mask]}", "the mask is not bool"},
        {"%r = extract %v {axis = 4} : f32", "no such lane"},
        {"%r = insert %v, %i {axis = 0} : vec<4 x f32>", "the scalar is not of the element type"},
        {"%r = shuffle %v, %v {axes = [8]} : f32", "no such lane"},
        {"grid_wait", "stands only at the top of a phase"},
        {"%r = mask_lt %i, %i : vec<4 x i64>", "no vector of bool"},
        {"%r = reduce %v {kind = sum, axis = 0} : f32", "is not legal in machine form"},
        {"loop %i, %i {loop = reduce, extent = 0, combine = [sum]} (%j: i64) {\n  yield\n}", "in one way"},
        {"%r = loop %i, %i, %a {loop = parallel, extent = 0} : f32 (%j: i64, %k: f32) {\n  yield %k\n}",
         "a parallel loop carries nothing"},
        {"%r = loop %i, %i, %a {loop = reduce, extent = 0, combine = [with]} : f32 (%j: i64, %k: f32) {\n  yield %k\n}",
         "`with` follows arg_max or arg_min"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("machine", cases[i][0], cases[i][1]);
}

/* A wait for the grid before comes before all accesses to memory. */
Test(verify, order_of_grids) {
    static const char *const cases[][2] = {
        {"%c = const {value = true} : bool\n  if %c {\n  grid_wait\n  yield\n} {\n  yield\n}",
         "stands only at the top of a phase"},
        {"%v = load %x : f32\n  grid_wait", "stands behind `load`, which may access memory"},
        {"warp_barrier\n  grid_launch\n  grid_wait", "stands behind `warp_barrier`"},
        {"%c = const {value = true} : bool\n  if %c {\n  mbarrier_init %s {count = 1}\n  %v = load %x : f32\n  yield\n} {\n  yield\n}\n  grid_wait",
         "stands behind `if`, which may access memory"},
        {"%c = const {value = true} : bool\n  if %c {\n  %v = load %x : f32\n  yield\n} {\n  yield\n}\n  grid_wait",
         "stands behind `if`, which may access memory"},
        {"partitions {warps = [1, 1]} {\n  %v = load %x : f32\n  grid_wait\n  yield\n} {\n  grid_wait\n  %w = load %x : f32\n  yield\n}",
         "may access memory, and no `grid_wait` stands in front of it"},
        {"%c = const {value = true} : bool\n  partitions {warps = [1, 1]} {\n  grid_wait\n  yield\n} {\n  if %c {\n  grid_wait\n  yield\n} {\n  yield\n}\n  %w = load %x : f32\n  yield\n}",
         "may access memory, and no `grid_wait` stands in front of it"},
    };
    static const char source[] =
        "func phase machine @k.1(%%x: ptr<global> {role = data, argument = 0}, %%s: ptr<shared> {role = "
        "scratch}) kernel = @k phase = 1 threads = 32 {\n  %s\n  return\n}\nfunc kernel tile @k(%%x: "
        "tensor<f32, 1, in>) {\n  return\n}\n";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_complaint(read_module(tile_arena_format(executing.arena, source, cases[i][0])), cases[i][1]);
    TileText errors = {.arena = executing.arena};
    static const char body[] = "grid_launch\n  %t = thread : i32\n  %c = const {value = true} : bool\n  %u = if %c : i32 {\n  yield %t\n} {\n  yield %t\n}\n"
                               "  if %c {\n  mbarrier_init %s {count = 1}\n  fence_async\n  yield\n} {\n  yield\n}\n  barrier\n  grid_wait";
    const TileModule *good = read_module(tile_arena_format(executing.arena, source, body));
    cr_expect(tile_module_verify(good, &errors), "%s", tile_text_get(&errors));
    static const char apart[] = "grid_launch\n  %c = const {value = true} : bool\n  partitions {warps = [1, 1]} {\n  %u = load %s : f32\n  grid_wait\n  %v = load %x : f32\n  yield\n} {\n"
                                "  if %c {\n  grid_wait\n  %w = load %x : f32\n  yield\n} {\n  yield\n}\n  yield\n}";
    const TileModule *each = read_module(tile_arena_format(executing.arena, source, apart));
    cr_expect(tile_module_verify(each, &errors), "%s", tile_text_get(&errors));
}

/* A slot has one owner, from acquire or wait to commit or release. */
Test(verify, channels) {
#define SLOT "ptr<shared, f32[2, 8], swizzle 32 rows>"
#define FILL "%p = channel_acquire %ch : " SLOT "\n  "
#define COPY "copy_tile %x, %p, %i, %i, %i, %i, %i, %i, %i, %i {access = [range, range], types = [f32[2, 3]]}\n  "
#define READ "%q = channel_wait %ch : " SLOT "\n  %s = shared_tile %q : f32[2, 3]\n  "
    static const char *const cases[][2] = {
        {FILL COPY, "the slot is never committed"},
        {FILL "channel_commit %p\n  " COPY, "used where it is no longer in hand"},
        {FILL "channel_commit %p\n  channel_commit %p", "given away twice"},
        {FILL "if %c {\n  channel_commit %p\n  yield\n} {\n  yield\n}", "neither copies to it nor reads it"},
        {FILL "channel_release %p", "neither copies to it nor reads it"},
        {FILL "%s = shared_tile %p : f32[2, 3]\n  channel_commit %p", "neither copies to it nor reads it"},
        {READ "", "the slot is never released"},
        {READ "channel_release %q\n  %r = add %s, %t : f32[2, 3]", "used where it is no longer in hand"},
        {READ "%u = permute %s {axes = [1, 0]} : f32[3, 2]\n  channel_release %q\n  %r = neg %u : f32[3, 2]",
         "used where it is no longer in hand"},
        {"%b = buffer {bytes = 64, align = 16} : " SLOT "\n  channel_commit %b", "needs the slot of an acquire"},
        {READ "channel_release %q {pending = 1}", "pending is 1, in a loop"},
        {"%p = channel_acquire %ch, %a : " SLOT "\n  channel_commit %p", "the number of the slot is not i64"},
        {"%p = channel_acquire %ch : ptr<shared>\n  channel_commit %p", "where the rule gives " SLOT},
        {"%r = channel {slots = 17} : channel<f32[2, 8]>", "has 1 to 16 slots"},
        {"%r = channel {slots = 1} : f32", "the result is no channel"},
        {"%b = buffer {bytes = 16, align = 16} : " SLOT, "bytes do not hold what lies there"},
        {"%b = buffer {bytes = 64, align = 16} : ptr<shared>\n  %s = shared_tile %b : f32[2, 3]",
         "says how a tile lies"},
        {"%b = buffer {bytes = 64, align = 16} : " SLOT "\n  %s = shared_tile %b : f32[3, 8]", "one of another tile"},
        {"%r = for %i, %i, %i, %ch : channel<f32[2, 8], swizzle 32 rows> (%j: i64, %k: channel<f32[2, 8], swizzle 32 "
         "rows>) "
         "{\n  yield %k\n}",
         "a channel is carried or taken"},
    };
    static const char channel[] = "%ch = channel {slots = 2} : channel<f32[2, 8], swizzle 32 rows>\n  ";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_body("tile", tile_arena_format(executing.arena, "%s%s", channel, cases[i][0]), cases[i][1]);
#undef SLOT
#undef FILL
#undef COPY
#undef READ
}

/* A turn begins and ends in one block of ops, in a partition whose programs take turns. */
Test(verify, turns) {
#define PARTS(turns, first, second) \
    "partitions {warps = [8, 4], turns = " turns "} {\n" first "  yield\n} {\n" second "  yield\n}"
#define BEGIN "turn_begin %i\n"
#define END "turn_end %i\n"
#define OTHER "%j = const {value = 3} : i64\n"
    static const char nowhere[] = "stands in no partition whose programs take turns",
                      open[] = "the turn does not end in its block of ops", none[] = "no such turn has begun";
    static const char *const cases[][2] = {
        {BEGIN END, nowhere},
        {PARTS("1", BEGIN END, ""), nowhere},
        {PARTS("2", "", "%m = turn %i : bool\n"), nowhere},
        {PARTS("2", BEGIN, ""), open},
        {PARTS("2", BEGIN BEGIN END, ""), open},
        {PARTS("2", BEGIN "if %c {\n" END "  yield\n} {\n  yield\n}\n", ""), open},
        {PARTS("2", OTHER BEGIN "turn_end %j\n", ""), open},
        {PARTS("2", END BEGIN, ""), none},
        {PARTS("2", BEGIN END END, ""), none},
        {PARTS("3", BEGIN END, ""), "turns does not divide the warps"},
        {PARTS("2", "%m = turn %c : bool\n", ""), "the place of a program is i64"},
        {"barrier {turns = 2}", "turns are not those of 15 named barriers"},
        {"barrier {number = 15, threads = 32, turns = 2}", "turns are not those of 15 named barriers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("tile", cases[i][0], cases[i][1]);
#undef PARTS
#undef BEGIN
#undef END
#undef OTHER
}

/* Ops that reach into other blocks stand where blocks are clusters, of so many. */
Test(verify, clusters) {
    static const char *const cases[][2] = {
        {"cluster_barrier", "the block is in no cluster"},
        {"%r = cluster_rank : i32", "the block is in no cluster"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_body("machine", cases[i][0], cases[i][1]);
    expect_complaint(read_module("func kernel tile @k() {\n  %n = const {value = 2} : i64\n  grid %n {multicast = 2} (%i: i64) {\n    yield\n  }\n  return\n}\n"),
                     "the block is in no cluster");
    expect_complaint(read_module("func kernel tile @k() {\n  return\n}\nfunc phase machine @k.0(%shared: ptr<shared>) kernel = @k phase = 0 "
                                 "cluster = 2 threads = 128 scratch_bytes = 64 {\n  mbarrier_arrive %shared {multicast = 4}\n  return\n}\n"),
                     "the cluster has another number of blocks");
    expect_complaint(read_module("func kernel tile @k() {\n  return\n}\nfunc phase machine @k.0(%shared: ptr<shared>) kernel = @k phase = 0 "
                                 "cluster = 2 threads = 128 scratch_bytes = 64 {\n  mbarrier_arrive %shared {bytes = 16, multicast = 2}\n  return\n}\n"),
                     "bytes are expected in one block only");
#define LOOP(cluster, row)                                                                                             \
    "func kernel tile @k(%n: i64, %x: tensor<f32, 2, in>)" cluster " {\n  %one = const {value = 1} : i64\n  grid %n (%i: i64) {\n"   \
    "    for %one, %n, %one {part = 4, row = " row "} (%k: i64) {\n      yield\n    }\n    yield\n  }\n  return\n}\n"
    static const char *const none = "`row` is an argument and its dimension";
    cr_expect(tile_module_verify(read_module(LOOP(" cluster = 4", "[1, 0]")), NULL));
    expect_complaint(read_module(LOOP("", "[1, 0]")), "the block is in no cluster");
    expect_complaint(read_module(LOOP(" cluster = 4", "[0, 0]")), none);
    expect_complaint(read_module(LOOP(" cluster = 4", "[2, 0]")), none);
    expect_complaint(read_module(LOOP(" cluster = 4", "[1, 2]")), none);
    expect_complaint(read_module(LOOP(" cluster = 4", "[1]")), none);
#undef LOOP
}

Test(verify, functions) {
    expect_complaint(read_module("func device tile @f() {\n  return\n}\nfunc device tile @f() {\n  return\n}\n"),
                     "f: two functions of this name");
    expect_complaint(read_module("func device tile @f() -> f32 {\n  return\n}\n"),
                     "carries 0 values where 1 are expected");
    expect_complaint(read_module("func device tile @f() {\n}\n"), "a block has to end in return");
    expect_complaint(read_module("func device tile @f(%x: f32 {role = scalar, argument = 0}) {\n  return\n}\n"),
                     "parameter 0 has a role, which only phases' have");
    expect_complaint(read_module("func phase machine @f(%x: i32 {role = extent, argument = 0}) {\n  return\n}\n"),
                     "parameter 0 is no extent");
    expect_complaint(read_module("func device tile @k() {\n  return\n}\n"
                                 "func phase machine @f() kernel = @k phase = 0 {\n  return\n}\n"),
                     "only a phase is of a kernel");
    static const char axis[] = "func kernel tile @k(%x: tensor<f32, 1, in>) {\n  return\n}\n"
                               "func phase machine @f(%n: i64 {role = extent, argument = 0, axis = 1}) kernel = @k "
                               "phase = 0 {\n  return\n}\n";
    expect_complaint(read_module(axis), "parameter 0 is no extent");
}

/* Errors in the data structure, which no text can express. */
Test(verify, structure) {
    TileModule *module =
        read_module("func device tile @f(%a: f32) {\n  %b = neg %a : f32\n  %c = neg %b : f32\n  return\n}\n");
    TileFunc *func = module->first;
    TileOp *first = func->body.first, *second = first->next;
    TileText errors = {.arena = executing.arena};
    cr_assert(tile_module_verify(module, &errors), "%s", tile_text_get(&errors));
    tile_op_detach(first);
    tile_op_insert_after(first, second);
    expect_complaint(module, "operand 0 is not defined before its use");
    tile_op_detach(first);
    tile_op_insert_before(first, second);
    cr_expect(tile_module_verify(module, NULL));
    first->operands[0].user = second;
    expect_complaint(module, "the use list of operand 0 is broken");
    first->operands[0].user = first;
    second->previous = NULL;
    expect_complaint(module, "the list of its block is broken");
    second->previous = first;
    cr_expect(tile_module_verify(module, NULL));
}

/* The verifier accepts the types that the builder infers; the builder keeps the first complaint. */
Test(verify, builder) {
    TileModule *module = read_module("func device tile @f(%a: f32, %i: i64) -> f32 {\n  return %a\n}\n");
    TileFunc *func = module->first;
    TileBuilder builder = tile_builder_before(module, func->body.last);
    TileValue *a = func->body.arguments[0], *i = func->body.arguments[1];
    TileValue *sum = tile_build_binary(&builder, TILE_OP_ADD, a, a);
    TileValue *test = tile_build_binary(&builder, TILE_OP_LT, sum, a);
    cr_expect_eq(test->type->scalar, TILE_BOOL);
    int64_t extents[] = {2, 3};
    const TileType *tile = tile_type_tile(executing.context, TILE_F32, 2, extents);
    TileValue *splat = tile_build_splat(&builder, sum, tile);
    TileValue *reduced = tile_build_reduce(&builder, splat, TILE_KIND_SUM, 0);
    cr_expect_eq(reduced->type->extent[0], 3);
    int64_t integer = 0;
    cr_expect(tile_value_integer(tile_build_i64(&builder, -5), &integer));
    cr_expect_eq(integer, -5);
    cr_expect_null(builder.error);
    cr_expect(tile_module_verify(module, NULL));
    tile_build_binary(&builder, TILE_OP_ADD, a, i);
    cr_expect_str_eq(builder.error, "add: operand 1 is i64, but operand 0 is f32");
    expect_complaint(module, "operand 1 is i64, but operand 0 is f32");
}

/* ---- warpgroups ---- */

static void expect_phase(const char *header, const char *body, const char *expected) {
    static const char source[] =
        "func phase machine @f(%%d: i64, %%i: i32, %%w: vec<4 x f32>, %%n: vec<2 x f32>, %%h: vec<8 x f16>, "
        "%%e: vec<16 x f8e4m3>, %%p: ptr<global>, %%shared: ptr<shared>) %s {\n  %s\n  return\n}\n";
    const TileModule *module = read_module(tile_arena_format(executing.arena, source, header, body));
    TileText errors = {.arena = executing.arena};
    if (expected)
        expect_complaint(module, expected);
    else
        cr_expect(tile_module_verify(module, &errors), "%s: %s", body, tile_text_get(&errors));
}

static const char *const warpgroup_cases[][2] = {
    {"%r = wgmma %d, %d {types = [f16, f16]} : vec<4 x f32>", NULL},
    {"%r = wgmma %h, %d, %w {types = [f16, f16], parts = [init], transposed_ab = [0, 1]} : vec<4 x f32>", NULL},
    {"%r = wgmma %e, %d {types = [f8e4m3, f8e5m2]} : vec<128 x f32>", NULL},
    {"%r = wgmma %d, %d {types = [u8, i8]} : vec<12 x i32>", NULL},
    {"%r = wgmma %d, %d {types = [u8, i8]} : vec<20 x i32>", "40 columns are no multiple of 16 from 8 to 256"},
    {"%r = wgmma %d, %d {types = [f16, f16]} : vec<132 x f32>", "264 columns are no multiple of 8"},
    {"%r = wgmma %d, %d {types = [f16, f16]} : vec<2 x f32>", "4 columns are no multiple of 8"},
    {"%r = wgmma %d, %d {types = [f16, f16]} : vec<4 x f16>", "the result is no vector of f32"},
    {"%r = wgmma %d, %d {types = [i8, i8]} : vec<4 x f32>", "the result is no vector of i32"},
    {"%r = wgmma %d, %d {types = [f16, bf16]} : vec<4 x f32>", "multiplies f16, bf16 or f32 with its like"},
    {"%r = wgmma %d, %d {types = [f8e4m3, i8]} : vec<4 x f32>", "multiplies f16, bf16 or f32 with its like"},
    {"%r = wgmma %d, %d {types = [f16]} : vec<4 x f32>", "types names the element types of a and b"},
    {"%r = wgmma %h, %d {types = [bf16, bf16]} : vec<4 x f32>", "a is neither a descriptor nor 4 registers"},
    {"%r = wgmma %n, %d {types = [f32, f32]} : vec<4 x f32>", "a is neither a descriptor nor 4 registers"},
    {"%r = wgmma %d, %h {types = [f16, f16]} : vec<4 x f32>", "b is no descriptor"},
    {"%r = wgmma %d, %d, %w {types = [f16, f16]} : vec<4 x f32>", "takes a and b, and perhaps sums"},
    {"%r = wgmma %d, %d, %n {types = [f16, f16], parts = [init]} : vec<4 x f32>", "where the rule gives vec<2 x f32>"},
    {"%r = wgmma %d, %d {types = [f16, f16], transposed_ab = [1]} : vec<4 x f32>", "not one number for a and one"},
    {"%r = wgmma %d, %d {types = [f16, f16], transposed_ab = [2, 0]} : vec<4 x f32>", "transposed_ab is not 0 or 1"},
    {"%r = wgmma %h, %d {types = [f16, f16], transposed_ab = [1, 0]} : vec<4 x f32>", "registers are not transposed"},
    {"%r = wgmma %d, %d {types = [f32, f32], transposed_ab = [0, 1]} : vec<4 x f32>", "only elements of 16 bits"},
    {"%r = wgmma_descriptor %shared {swizzle = 32, stride = 256, leading = 0} : i64", NULL},
    {"%r = wgmma_descriptor %p {swizzle = 32, stride = 256, leading = 0} : i64", "lies in shared memory"},
    {"%r = wgmma_descriptor %shared {swizzle = 16, stride = 256, leading = 0} : i64", "swizzle is not 0, 32, 64"},
    {"%r = wgmma_descriptor %shared {swizzle = 0, stride = 8, leading = 0} : i64", "stride or leading is no multiple"},
    {"%r = wgmma_descriptor %shared {swizzle = 0, stride = 16, leading = 262144} : i64", "is no multiple of 16 up to"},
    {"%a, %b = wgmma_wait %w, %n {pending = 7} : vec<4 x f32>, vec<2 x f32>", NULL},
    {"wgmma_wait {pending = 0}", NULL},
    {"wgmma_wait {pending = 8}", "pending is not 0 .. 7"},
    {"wgmma_wait %w {pending = 0}", "has not one result for each operand"},
    {"%r = wgmma_wait %h {pending = 0} : vec<8 x f16>", "an operand is no vector of sums"},
    {"set_registers {registers = 232}", NULL},
    {"set_registers {registers = 20}", "registers is no multiple of 8 from 24 to 256"},
    {"set_registers {registers = 264}", "registers is no multiple of 8 from 24 to 256"},
    {"set_registers {registers = 100, release = 1}", "registers is no multiple of 8 from 24 to 256"},
    {"barrier {number = 15, threads = 96}", NULL},
    {"barrier {number = 16, threads = 96}", "number is not 1 .. 15"},
    {"barrier {number = 0, threads = 96}", "number is not 1 .. 15"},
    {"barrier {number = 1, threads = 48}", "threads is no multiple of 32 up to 1024"},
    {"barrier {number = 1}", "a named barrier has a number, and threads"},
    {"barrier {threads = 32}", "a named barrier has a number, and threads"},
};

Test(verify, warpgroups) {
    for (size_t i = 0; i < sizeof warpgroup_cases / sizeof *warpgroup_cases; i++)
        expect_phase("threads = 256 registers = 168", warpgroup_cases[i][0], warpgroup_cases[i][1]);
    expect_phase("threads = 160", "wgmma_fence", "stands in a block of 160 threads, which are no warpgroups of 128");
    expect_phase("threads = 128", "set_registers {registers = 40, release = 1}",
                 "does not say with how many registers its threads begin");
    /* A named barrier is for those who come there. */
    static const char apart[] =
        "%%z = const {value = 0} : i32\n  %%c = eq %%i, %%z : bool\n  if %%c {divergent = 1} {\n%s\nyield\n"
        "} {\nyield\n}";
    expect_phase("threads = 256", tile_arena_format(executing.arena, apart, "barrier {number = 1, threads = 128}"),
                 NULL);
    expect_phase("threads = 256", tile_arena_format(executing.arena, apart, "barrier"),
                 "threads of a block go different ways");
}
