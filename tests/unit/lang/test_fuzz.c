/* Random input: bytes, mutated texts and random modules. Reader, verifier, printer and executor must not crash; modules
 * that can be read print and read back the same. Each test runs a fixed number of rounds, about two seconds, or for
 * TILE_SOAK_SECONDS seconds, then with the seed TILE_SOAK_SEED. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/lang/executing.h"

static uint64_t state;
static uint64_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 24;
}
static uint64_t below(uint64_t limit) { return next_random() % limit; }

TestSuite(fuzz, .init = executing_set_up, .fini = executing_tear_down);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The duration of a test. */
typedef struct Span {
    unsigned rounds;
    double end; /* 0: a fixed number of rounds */
} Span;

static Span rounds_or_seconds(unsigned rounds) {
    const char *seconds = getenv("TILE_SOAK_SECONDS");
    return (Span){rounds, seconds ? now() + strtod(seconds, NULL) : 0};
}

static bool goes_on(const Span *span, unsigned round) {
    return span->end > 0 ? now() < span->end : round < span->rounds;
}

static void seed_round(unsigned round) {
    const char *seed = getenv("TILE_SOAK_SEED");
    state = round + (seed ? strtoull(seed, NULL, 10) << 32 : 0);
}

static const char *const sources[] = {
    "func kernel tile @k(%x: tensor<f32, 2, in> {align = 64, stride1 = 4, extent0 = 3, used_stride = 2}, "
    "%y: tensor<f32, 2, out>) {\n"
    "  %m = dim %x {axis = 0} : i64\n  %n = dim %x {axis = 1} : i64\n  check_dim %y, %m {axis = 0, text = \"y\"}\n"
    "  %t = temp %m, %n : tensor<f16, 2, temp>\n  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n"
    "  %three = const {value = 3} : i64\n  %f = const {value = 0.5} : f32\n  %h = const {value = 1.5} : f16[1, 4]\n"
    "  %c = lt %zero, %m : bool\n  require %c {text = \"not empty\"}\n"
    "  grid %m (%i: i64) {\n"
    "    %v = load_tile %x, %i, %zero, %one, %zero, %three, %f {access = [index, range], parts = [fill]} : f32[4]\n"
    "    %j = iota {axis = 0} : i64[4]\n    %g = load_tile %x, %j, %j, %k {access = [gather, gather], parts = [mask]} "
    ": "
    "f32[4]\n"
    "    %w = fma %v, %v, %v : f32[4]\n    %e = exp %w {approx = 1} : f32[4]\n    %r = reduce %e {kind = max, axis = "
    "0} : f32\n"
    "    %a = arg_reduce %e, %j {kind = min, axis = 0} : i64\n    %s = scan %e, %r {axis = 0, parts = "
    "[init], reverse = 1} : f32[4] (%left: f32, %right: f32) {\n      %both = add %left, %right : f32\n      yield "
    "%both\n    }\n"
    "    %q = reshape %s : f32[1, 4]\n    %p = permute %q {axes = [1, 0]} : f32[4, 1]\n"
    "    %b = broadcast %q : f32[2, 4]\n    %z = const {value = 0.0} : f32[2, 1]\n    %d = dot %b, %p, %z : f32[2, 1]\n"
    "    %l = fill %q, %r, %zero, %one {axes = [1]} : f32[1, 4]\n    %u = convert %l : f16[1, 4]\n"
    "    %o = for %zero, %three, %one, %r : f32 (%n1: i64, %acc: f32) {\n      %x1 = add %acc, %r : f32\n      yield "
    "%x1\n    }\n"
    "    store_tile %y, %r, %i, %zero {access = [index, index]}\n    yield\n  }\n  return\n}\n",
    "func phase machine @f(%p: ptr<global>, %n: i64) -> f32 scratch_bytes = 64 {\n"
    "  %zero = const {value = 0} : i64\n  %one = const {value = 1} : i64\n  %four = const {value = 4} : i64\n"
    "  %f = const {value = -inf} : f32\n  %b = buffer {bytes = 64, align = 64} : ptr<scratch>\n"
    "  %m = mask_lt %zero, %four : vec<8 x bool>\n  %v = load %p, %m, %f {parts = [mask, fill], align = 4} : vec<8 x "
    "f32>\n"
    "  store %v, %b\n  %s = shuffle %v, %v {axes = [0, 9, 1]} : vec<3 x f32>\n  %e = extract %s {axis = 2} : f32\n"
    "  %w = insert %v, %e {axis = 0} : vec<8 x f32>\n  %o = iota : vec<8 x i64>\n  %g = gather %b, %o : vec<8 x f32>\n"
    "  scatter %w, %p, %o, %m {parts = [mask]}\n"
    "  %r, %t = loop %zero, %four, %f, %zero {loop = reduce, extent = 4, combine = [arg_max, with], order = stripes} : "
    "f32, "
    "i64 (%i: i64, %x: f32, %y: i64) {\n    %z = convert %i : f32\n    yield %z, %i\n  }\n"
    "  loop %zero, %n {loop = parallel, extent = 0, vector = 8} (%i: i64) {\n    yield\n  }\n"
    "  %h = while %zero : i64 (%a: i64) {\n    %c = lt %a, %four : bool\n    condition %c, %a\n  } (%a: i64) {\n"
    "    %d = add %a, %one : i64\n    yield %d\n  }\n"
    "  %k = if %m1 : f32 {\n    yield %f\n  } {\n    yield %r\n  }\n"
    "  dot_block %p, %four, %four, %b, %four, %four, %b, %four, %one, %one, %one, %zero, %zero, %zero {types = [f32, "
    "f32, "
    "f32], extents = [1, 1, 1]}\n  return %k\n}\n"};

/* The first source requires that masks are created first, the second that conditions are. */
static const char *whole_source(unsigned number) {
    const char *source = sources[number];
    const char *from = number ? "  %k = if" : "    %g = load_tile", *line = strstr(source, from);
    const char *added = number ? "  %m1 = lt %zero, %n : bool\n" : "    %k = lt %j, %j : bool[4]\n";
    return tile_arena_format(executing.arena, "%.*s%s%s", (int)(line - source), source, added, line);
}

static const char *print(const TileModule *module) {
    TileText text = {.arena = executing.arena};
    tile_module_print(&text, module, TILE_PRINT_LOCATIONS);
    return tile_text_get(&text);
}

static void expect_round_trip(const TileModule *module) {
    const char *text = print(module);
    TileModule *again;
    TileText errors = {.arena = executing.arena};
    cr_assert_eq(tile_module_read(executing.context, text, strlen(text), &again, &errors), TILE_OK, "%s\n%s",
                 tile_text_get(&errors), text);
    cr_assert_str_eq(print(again), text);
    tile_module_destroy(again);
}

/* ---- execution of verified modules ---- */

static void bind(TileExecutor *e, const TileFunc *func, void *memory, uint64_t bytes) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileType *type = func->body.arguments[i]->type;
        TileExecutorTensor tensor = {.data = memory, .above = bytes};
        for (int d = 0; d < type->rank && d < TILE_MAX_TENSOR_RANK; d++) {
            tensor.extent[d] = 3;
            tensor.stride[d] = type->rank < 4 ? (d + 1 == type->rank ? 4 : 12) : 4;
        }
        if (type->kind == TILE_TYPE_TENSOR)
            tile_executor_bind_tensor(e, i, &tensor);
        else if (type->kind == TILE_TYPE_POINTER)
            tile_executor_bind_pointer(e, i, memory, 0, bytes, true);
        else if (type->kind == TILE_TYPE_SCALAR)
            tile_executor_bind_scalar(e, i, below(5));
    }
}

static bool is_small(const TileBlock *block, uint64_t *lanes) {
    for (uint32_t i = 0; i < block->argument_count; i++) *lanes += (uint64_t)tile_type_lanes(block->arguments[i]->type);
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++) *lanes += (uint64_t)tile_type_lanes(op->results[i].type);
        for (unsigned i = 0; i < op->region_count; i++)
            if (!is_small(&op->regions[i], lanes)) return false;
        if (*lanes > 20000) return false;
    }
    return true;
}

static void execute(TileModule *module) {
    unsigned char memory[512] = {0};
    for (TileFunc *func = module->first; func; func = func->next) {
        uint64_t lanes = 0;
        if (!is_small(&func->body, &lanes)) continue;
        TileExecutorOptions options = {.seed = below(2), .most_bytes = 1 << 22};
        TileExecutor *e = tile_executor_create(func, &options);
        if (!e) continue;
        bind(e, func, memory, sizeof memory);
        tile_executor_run(e, 2000);
        tile_executor_destroy(e);
    }
}

/* Verifies, prints, reads and executes a module that was read. True if it is valid. */
static bool try_text(const char *text, size_t length) {
    TileModule *module;
    TileText errors = {.arena = executing.arena};
    if (tile_module_read(executing.context, text, length, &module, &errors) != TILE_OK) {
        cr_assert_gt(errors.length, 0);
        return false;
    }
    expect_round_trip(module);
    bool good = tile_module_verify(module, &errors);
    if (good) execute(module);
    tile_module_destroy(module);
    return good;
}

static void renew_arenas(unsigned round) {
    if (round % 500 != 499) return;
    executing_tear_down();
    executing = (Executing){0};
    executing_set_up();
}

Test(fuzz, the_sources_run) {
    for (unsigned i = 0; i < 2; i++)
        cr_expect(try_text(whole_source(i), strlen(whole_source(i))), "%s", whole_source(i));
}

Test(fuzz, random_bytes) {
    static const char *const words[] = {"func ", "kernel ",  "tile ", "@f",  "(",     ")",    "{",   "}",  "%a",
                                        " = ",   "const ",   "value", ":",   "f32",   "[",    "]",   "4",  "-1.5e+9",
                                        ",",     "return\n", "\"",    "\\",  "yield", "for ", "i64", "->", "tensor<",
                                        "vec<",  "ptr<",     ">",     "%\"", "//",    "bits("};
    char text[400];
    Span span = rounds_or_seconds(150000);
    for (unsigned round = 0; goes_on(&span, round); round++) {
        seed_round(round);
        size_t length = 0;
        while (length < sizeof text - 16 && below(60)) {
            const char *word = words[below(sizeof words / sizeof *words)];
            if (below(8) == 0)
                text[length++] = (char)next_random();
            else
                for (; *word; word++) text[length++] = *word;
        }
        try_text(text, length);
        renew_arenas(round);
    }
}

/* One random change: a byte, a word from elsewhere, a number, a line. */
static size_t mutate(char *text, size_t length, size_t capacity) {
    size_t at = below(length), from = below(length), count = 1 + below(12);
    switch (below(6)) {
    case 0: text[at] = (char)next_random(); return length;
    case 1: text[at] = (char)('0' + below(10)); return length;
    case 2:
        if (at + count > length) return length;
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    case 3:
        if (from + count > length || length + count > capacity) return length;
        memmove(text + at + count, text + at, length - at);
        memmove(text + at, text + from, count);
        return length + count;
    default:
        while (at < length && text[at] != '%') at++;
        while (from < length && text[from] != '%') from++;
        for (size_t i = 0; at + i < length && from + i < length && text[from + i] != ',' && text[from + i] != ' '; i++)
            text[at + i] = text[from + i];
        return length;
    }
}

Test(fuzz, mutated_texts) {
    enum { CAPACITY = 16384 };
    char *text = malloc(CAPACITY);
    Span span = rounds_or_seconds(12000);
    unsigned verified = 0;
    for (unsigned round = 0; goes_on(&span, round); round++) {
        seed_round(round);
        const char *source = whole_source(round % 2);
        size_t length = strlen(source);
        memcpy(text, source, length);
        for (uint64_t n = 1 + below(3); n; n--) length = mutate(text, length, CAPACITY);
        verified += try_text(text, length);
        renew_arenas(round);
    }
    free(text);
    cr_expect(span.end > 0 || verified > 100);
}

/* ---- random modules, valid or not ---- */

typedef TILE_LIST(TileValue *) Values;

static const TileType *random_type(void) {
    TileContext *context = executing.context;
    TileScalar scalar = (TileScalar)below(TILE_SCALAR_COUNT);
    int64_t extent[TILE_MAX_TILE_RANK];
    for (int i = 0; i < TILE_MAX_TILE_RANK; i++) extent[i] = 1 + (int64_t)below(9);
    switch (below(6)) {
    case 0: return tile_type_tensor(context, scalar, (unsigned)below(TILE_MAX_TENSOR_RANK + 1), (TileAccess)below(4));
    case 1: return tile_type_pointer(context, (TileSpace)below(3));
    case 2: return tile_type_vector(context, scalar, 2 + (int64_t)below(64), below(2));
    case 3: return tile_type_tile(context, scalar, 1 + (unsigned)below(TILE_MAX_TILE_RANK), extent);
    default: return tile_type_scalar(context, scalar);
    }
}

static const char *random_hint(void) {
    static const char *const hints[] = {"a", "a", "a.1", "b", "_x.9", "x y", "7", "", "a.2"};
    return below(2) ? NULL : hints[below(sizeof hints / sizeof *hints)];
}

static void random_attribute(TileModule *module, TileOp *op, TileAttributeKey key) {
    static const char *const texts[] = {"x", "", "a \"b\", c]", "\xc3\xa9"};
    TileAttribute attribute = {.key = key};
    int64_t integers[4];
    const TileType *types[4];
    unsigned count = (unsigned)below(4);
    for (unsigned i = 0; i < count; i++) {
        integers[i] = (int64_t)(next_random() << below(24)) - (int64_t)next_random();
        types[i] = random_type();
    }
    switch (tile_attribute_storage(key)) {
    case TILE_STORAGE_BITS:
        attribute.bits = next_random() << below(30);
        attribute.bits &= tile_scalar_mask(op->result_count ? op->results[0].type->scalar : TILE_U64);
        break;
    case TILE_STORAGE_INT: attribute.integer = (int64_t)next_random() - (1 << 20); break;
    case TILE_STORAGE_NAME: attribute.integer = (int64_t)below(TILE_NAME_COUNT); break;
    case TILE_STORAGE_TEXT: attribute.text = below(2) ? "plain" : "\"quotes\"\\ \n \t \x7f \xc3\xa9"; break;
    case TILE_STORAGE_TEXTS:
        attribute.texts = texts;
        attribute.count = count;
        break;
    case TILE_STORAGE_NAMES:
        for (unsigned i = 0; i < count; i++) integers[i] = (int64_t)below(TILE_NAME_COUNT);
        attribute.integers = integers;
        attribute.count = count;
        break;
    case TILE_STORAGE_INTS:
        attribute.integers = integers;
        attribute.count = count;
        break;
    case TILE_STORAGE_TYPES:
        attribute.types = types;
        attribute.count = count;
        break;
    }
    tile_op_set(module, op, attribute);
}

static void random_block(TileModule *module, TileBlock *block, Values *values, unsigned depth);

static void random_op(TileModule *module, TileBlock *block, Values *values, unsigned depth) {
    TileOpId id = (TileOpId)below(TILE_OP_COUNT);
    TileValue *operands[5];
    const TileType *types[3];
    unsigned operand_count = values->count ? (unsigned)below(6) : 0, result_count = (unsigned)below(4);
    for (unsigned i = 0; i < operand_count; i++) operands[i] = values->items[below(values->count)];
    for (unsigned i = 0; i < result_count; i++) types[i] = random_type();
    TileLocation location = {0, (uint32_t)below(3), (uint32_t)below(100)};
    TileOp *op = tile_op_create(module, id, location, operands, operand_count, types, result_count);
    if (!location.line) op->location.column = 0;
    for (TileAttributeKey key = 0; key < TILE_ATTRIBUTE_COUNT; key++)
        if (tile_op_allows(id, key) && below(2)) random_attribute(module, op, key);
    tile_op_append(op, block);
    size_t outside = values->count;
    for (unsigned i = 0; i < op->region_count; i++) {
        random_block(module, &op->regions[i], values, depth + 1);
        values->count = outside;
    }
    for (unsigned i = 0; i < result_count; i++) {
        op->results[i].name = random_hint();
        tile_list_push(executing.arena, values, &op->results[i]);
    }
}

static void random_block(TileModule *module, TileBlock *block, Values *values, unsigned depth) {
    for (uint64_t i = block->op ? below(3) : 0; i; i--)
        tile_list_push(executing.arena, values, tile_block_add_argument(module, block, random_type(), random_hint()));
    for (uint64_t i = depth < 4 ? below(8) : 0; i; i--) random_op(module, block, values, depth);
}

static void random_facts(TileParameter *parameter) {
    if (below(2)) parameter->facts.align = (uint32_t)below(65);
    for (int d = 0; d < TILE_MAX_TENSOR_RANK; d++) {
        if (below(4) == 0) parameter->facts.stride[d] = (int64_t)below(100) - 50;
        if (below(4) == 0) parameter->facts.extent[d] = (int64_t)below(100);
    }
    parameter->used_align = (uint32_t)below(3);
    parameter->used_stride = (uint32_t)below(300) / 2;
    parameter->used_extent = (uint32_t)below(4);
    parameter->asked_align = (uint32_t)below(3);
    parameter->asked_stride = (uint32_t)below(4);
    if (below(4) == 0) parameter->facts.multiple[below(4)] = 1 << below(5);
    parameter->used_multiple = (uint32_t)below(3) * 8;
    parameter->asked_multiple = (uint32_t)below(3) * 8;
    parameter->facts.dense = (uint32_t)below(4);
    parameter->used_dense = (uint32_t)below(4);
    parameter->asked_dense = (uint32_t)below(4);
    parameter->facts.most = (uint32_t)below(3) * 128;
    parameter->used_most = (uint32_t)below(3) * 128;
    parameter->asked_most = (uint32_t)below(3) * 128;
    parameter->likely_stride = (uint32_t)below(4);
    parameter->likely = (uint32_t)below(3) * 4;
    parameter->facts.narrow = below(2);
    parameter->used_narrow = below(2);
    parameter->asked_narrow = below(2);
    parameter->facts.map = below(2);
    parameter->used_map = below(2);
    parameter->asked_map = below(2);
    parameter->noalias = below(2);
    parameter->readonly = below(2);
    if (below(4)) return;
    parameter->role = TILE_ROLE_MAP;
    parameter->map = (TileTensorMap){.rank = 1 + (uint32_t)below(TILE_MAP_MOST_RANK), .swizzle = (uint32_t)below(200)};
    for (unsigned d = 0; d < parameter->map.rank; d++) parameter->map.box[d] = (uint32_t)below(300);
    if (below(2) || parameter->map.rank < TILE_MAP_LEAST_IMAGE_RANK) return;
    parameter->map.positions = 1 + (uint32_t)below(1000);
    for (unsigned d = 0; d + 2 < parameter->map.rank; d++) {
        parameter->map.corner[d] = (int32_t)below(300) - 150;
        parameter->map.over[d].argument = (uint32_t)below(4);
        parameter->map.over[d].axis = (uint32_t)below(4);
    }
}

static void random_func(TileModule *module, unsigned number) {
    static const char *const names[] = {"f", "softmax.0", "f[f32, 4]", "", "9"};
    const char *name = tile_arena_format(executing.arena, "%s%.*u", names[below(5)], (int)number, 0u);
    TileFunc *func =
        tile_func_create(module, name, (TileFuncKind)below(3), below(2) ? TILE_FORM_TILE : TILE_FORM_MACHINE);
    Values values = {0};
    for (uint64_t i = below(5); i; i--) {
        const char *parameter =
            tile_arena_format(executing.arena, below(2) ? "p%llu" : "%llu p", (unsigned long long)i);
        tile_list_push(executing.arena, &values, tile_func_add_parameter(func, parameter, random_type()));
        random_facts(&func->parameters[func->body.argument_count - 1]);
    }
    func->result_count = (uint32_t)below(3);
    func->result_types = TILE_NEW_ARRAY(module->arena, const TileType *, func->result_count);
    for (uint32_t i = 0; i < func->result_count; i++) func->result_types[i] = random_type();
    func->scratch_bytes = below(2) * next_random();
    random_block(module, &func->body, &values, 0);
}

Test(fuzz, random_modules_round_trip) {
    Span span = rounds_or_seconds(4500);
    for (unsigned round = 0; goes_on(&span, round); round++) {
        seed_round(round);
        TileModule *module = tile_module_create(executing.context);
        for (unsigned i = 0; i < 1 + round % 2; i++) random_func(module, i + 1);
        expect_round_trip(module);
        TileText errors = {.arena = executing.arena};
        tile_module_verify(module, &errors);
        tile_module_destroy(module);
        renew_arenas(round);
    }
}
