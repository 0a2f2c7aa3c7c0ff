/* The reader of the text form: functions with their parameters and facts, and whole files. */
#include <errno.h>
#include <string.h>

#include "lang/ir/read.h"

static bool read_dimension_fact(Reader *r, const Token *name, const char *prefix, int64_t *values) {
    size_t length = strlen(prefix);
    if (name->length != length + 1 || memcmp(name->text, prefix, length) != 0) return false;
    int dimension = name->text[length] - '0';
    if (dimension < 0 || dimension >= TILE_MAX_TENSOR_RANK) return false;
    tile_read_expect(r, "=");
    values[dimension] = tile_read_integer(r);
    return true;
}

static bool read_number_fact(Reader *r, const Token *name, const char *word, uint32_t *value) {
    if (name->length != strlen(word) || memcmp(name->text, word, name->length) != 0) return false;
    tile_read_expect(r, "=");
    *value = tile_read_small(r);
    return true;
}

static bool read_value_fact(Reader *r, const Token *name, int64_t *value) {
    const char word[] = "value";
    if (name->length != sizeof word - 1 || memcmp(name->text, word, name->length) != 0) return false;
    tile_read_expect(r, "=");
    *value = tile_read_integer(r);
    return true;
}

/* `[128, 64]`: a number for each axis of a box. Returns how many there are. */
static uint32_t read_axes(Reader *r, uint32_t *numbers) {
    uint32_t count = 0;
    tile_read_expect(r, "=");
    tile_read_expect(r, "[");
    do {
        if (count == TILE_MAP_MOST_RANK) tile_read_fail(r, "a box has at most %d axes", TILE_MAP_MOST_RANK);
        if (r->failed) return 0;
        numbers[count++] = tile_read_small(r);
    } while (tile_read_accept(r, ","));
    tile_read_expect(r, "]");
    return count;
}

/* `[-1, -1]`: a corner of positions; `[2, 1, 2, 2]`: an argument and an axis of it for each axis of an image. Returns how many numbers
 * there are. */
static uint32_t read_numbers(Reader *r, int64_t *numbers, uint32_t most) {
    uint32_t count = 0;
    tile_read_expect(r, "=");
    tile_read_expect(r, "[");
    do {
        if (count == most) tile_read_fail(r, "an image has at most %d axes", TILE_MAP_MOST_IMAGE_AXES);
        if (r->failed) return 0;
        numbers[count++] = tile_read_integer(r);
    } while (tile_read_accept(r, ","));
    tile_read_expect(r, "]");
    return count;
}

static void read_corner(Reader *r, TileTensorMap *map) {
    int64_t numbers[TILE_MAP_MOST_IMAGE_AXES];
    uint32_t count = read_numbers(r, numbers, TILE_MAP_MOST_IMAGE_AXES);
    for (uint32_t d = 0; d < count; d++) map->corner[d] = numbers[d] == (int32_t)numbers[d] ? (int32_t)numbers[d] : INT32_MAX;
}

static void read_over(Reader *r, TileTensorMap *map) {
    int64_t numbers[2 * TILE_MAP_MOST_IMAGE_AXES];
    uint32_t count = read_numbers(r, numbers, 2 * TILE_MAP_MOST_IMAGE_AXES);
    if (!r->failed && count % 2) tile_read_fail(r, "an argument has no axis");
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        map->over[i / 2].argument = (uint32_t)numbers[i];
        map->over[i / 2].axis = (uint32_t)numbers[i + 1];
    }
}

static void read_role(Reader *r, TileParameter *parameter) {
    tile_read_expect(r, "=");
    Token word = r->token;
    TileParameterRole role = tile_role_find(word.text, word.length);
    if (word.kind != TOKEN_WORD || role == TILE_ROLE_COUNT) tile_read_fail(r, "no parameter has such a role");
    if (r->failed) return;
    parameter->role = role;
    tile_read_advance(r);
}

/* A fact that is a word alone. */
static bool read_word_fact(Reader *r, TileParameter *parameter) {
    const struct {
        const char *word;
        bool *fact;
    } facts[] = {{"narrow", &parameter->facts.narrow},       {"used_narrow", &parameter->used_narrow},
                 {"asked_narrow", &parameter->asked_narrow}, {"map", &parameter->facts.map},
                 {"used_map", &parameter->used_map},         {"asked_map", &parameter->asked_map},
                 {"used_value", &parameter->used_value},     {"asked_value", &parameter->asked_value},
                 {"noalias", &parameter->noalias},           {"readonly", &parameter->readonly}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (tile_read_accept_word(r, facts[i].word)) return *facts[i].fact = true;
    return false;
}

static void read_fact(Reader *r, TileParameter *parameter) {
    Token name = r->token;
    if (read_word_fact(r, parameter)) return;
    if (tile_read_accept_word(r, "role")) {
        read_role(r, parameter);
    } else if (tile_read_accept_word(r, "box")) {
        parameter->map.rank = read_axes(r, parameter->map.box);
    } else if (tile_read_accept_word(r, "steps")) {
        read_axes(r, parameter->map.step);
    } else if (tile_read_accept_word(r, "corner")) {
        read_corner(r, &parameter->map);
    } else if (tile_read_accept_word(r, "over")) {
        read_over(r, &parameter->map);
    } else if (name.kind != TOKEN_WORD) {
        tile_read_fail(r, "expected a fact about the parameter");
    } else {
        tile_read_advance(r);
        if (!read_dimension_fact(r, &name, "stride", parameter->facts.stride) &&
            !read_dimension_fact(r, &name, "extent", parameter->facts.extent) &&
            !read_dimension_fact(r, &name, "multiple", parameter->facts.multiple) &&
            !read_value_fact(r, &name, &parameter->facts.value) &&
            !read_number_fact(r, &name, "argument", &parameter->argument) &&
            !read_number_fact(r, &name, "axis", &parameter->axis) &&
            !read_number_fact(r, &name, "swizzle", &parameter->map.swizzle) &&
            !read_number_fact(r, &name, "cut", &parameter->map.cut) &&
            !read_number_fact(r, &name, "positions", &parameter->map.positions) &&
            !read_number_fact(r, &name, "align", &parameter->facts.align) &&
            !read_number_fact(r, &name, "used_align", &parameter->used_align) &&
            !read_number_fact(r, &name, "used_stride", &parameter->used_stride) &&
            !read_number_fact(r, &name, "used_extent", &parameter->used_extent) &&
            !read_number_fact(r, &name, "asked_align", &parameter->asked_align) &&
            !read_number_fact(r, &name, "asked_stride", &parameter->asked_stride) &&
            !read_number_fact(r, &name, "used_multiple", &parameter->used_multiple) &&
            !read_number_fact(r, &name, "asked_multiple", &parameter->asked_multiple) &&
            !read_number_fact(r, &name, "dense", &parameter->facts.dense) &&
            !read_number_fact(r, &name, "used_dense", &parameter->used_dense) &&
            !read_number_fact(r, &name, "asked_dense", &parameter->asked_dense) &&
            !read_number_fact(r, &name, "most", &parameter->facts.most) &&
            !read_number_fact(r, &name, "used_most", &parameter->used_most) &&
            !read_number_fact(r, &name, "asked_most", &parameter->asked_most) &&
            !read_number_fact(r, &name, "likely_stride", &parameter->likely_stride) &&
            !read_number_fact(r, &name, "likely", &parameter->likely) &&
            !read_number_fact(r, &name, "own", &parameter->own))
            tile_read_fail_at(r, name.line, name.column, "no fact about a parameter is called so");
    }
}

static void read_parameter(Reader *r) {
    Token token = tile_read_value_name(r);
    tile_read_expect(r, ":");
    const TileType *type = tile_read_type(r);
    if (r->failed) return;
    if (tile_read_is_number(&token)) {
        tile_read_fail_at(r, token.line, token.column, "a parameter needs a name");
        return;
    }
    TileValue *value = tile_func_add_parameter(r->func, tile_read_intern(r, &token), type);
    tile_read_define(r, &token, value);
    if (!tile_read_accept(r, "{")) return;
    do read_fact(r, &r->func->parameters[value->index]);
    while (tile_read_accept(r, ","));
    tile_read_expect(r, "}");
}

/* `word = number`; 0 if the word is not there. */
static uint32_t read_count(Reader *r, const char *word, int64_t most, const char *limits) {
    if (!tile_read_accept_word(r, word)) return 0;
    tile_read_expect(r, "=");
    int64_t count = tile_read_integer(r);
    if (count < 1 || count > most) tile_read_fail(r, "%s", limits);
    return (uint32_t)count;
}

/* `split_programs = n, ..`. */
static void read_splits(Reader *r) {
    const char *limits = "a grid has at least one program";
    uint32_t *splits = r->func->split_programs;
    splits[0] = read_count(r, "split_programs", INT32_MAX, limits);
    for (unsigned i = 1; splits[0] && i < TILE_MOST_SPLITS && tile_read_accept(r, ","); i++) {
        int64_t count = tile_read_integer(r);
        if (count < 1 || count > INT32_MAX) tile_read_fail(r, "%s", limits);
        splits[i] = (uint32_t)count;
    }
}

/* `blocks_together = n, ..`; not all of them are 0. */
static void read_blocks_together(Reader *r) {
    if (!tile_read_accept_word(r, "blocks_together")) return;
    tile_read_expect(r, "=");
    uint32_t any = 0;
    for (unsigned i = 0; i < TILE_MOST_SPLITS && (!i || tile_read_accept(r, ",")); i++) {
        int64_t count = tile_read_integer(r);
        if (count < 0 || count > TILE_MOST_TOGETHER) tile_read_fail(r, "a multiprocessor has up to 32 blocks at a time");
        any |= r->func->blocks_together[i] = (uint32_t)count;
    }
    if (!any) tile_read_fail(r, "one of its numbers is not 0");
}

/* `kernel = @name phase = number`; the kernel may be anywhere in the text. */
static void read_kernel(Reader *r) {
    if (!tile_read_accept_word(r, "kernel")) return;
    tile_read_expect(r, "=");
    if (r->token.kind != TOKEN_SYMBOL) tile_read_fail(r, "expected the name of a kernel");
    if (r->failed) return;
    tile_list_push(r->scratch, &r->phases, ((PhaseOf){r->func, r->token}));
    tile_read_advance(r);
    if (!tile_read_accept_word(r, "phase")) tile_read_fail(r, "expected `phase`");
    tile_read_expect(r, "=");
    r->func->phase = tile_read_small(r);
}

static void find_kernels(Reader *r) {
    for (size_t i = 0; i < r->phases.count && !r->failed; i++) {
        const PhaseOf *of = &r->phases.items[i];
        of->phase->kernel = tile_func_find(r->module, tile_read_intern(r, &of->kernel));
        if (!of->phase->kernel) tile_read_fail_at(r, of->kernel.line, of->kernel.column, "no function is called so");
    }
}

static void read_func_types(Reader *r) {
    r->types.count = 0;
    if (tile_read_accept(r, "->")) {
        do tile_list_push(r->scratch, &r->types, tile_read_type(r));
        while (tile_read_accept(r, ","));
    }
    r->func->result_count = (uint32_t)r->types.count;
    r->func->result_types = tile_arena_copy(r->module->arena, r->types.items, r->types.count * sizeof *r->types.items);
    read_kernel(r);
    r->func->bands = read_count(r, "bands", INT32_MAX, "a program has at least one band");
    r->func->least_programs = read_count(r, "least_programs", INT32_MAX, "a grid has at least one program");
    read_splits(r);
    r->func->packs = read_count(r, "packs", 1, "`packs` is 1 where it stands") != 0;
    r->func->joined_rows = read_count(r, "joined_rows", INT32_MAX, "products have at least one row");
    r->func->joined_columns = read_count(r, "joined_columns", INT32_MAX, "products have at least one column");
    r->func->joined_lanes = read_count(r, "joined_lanes", INT32_MAX, "a tile has at least one element");
    r->func->joined_axis = read_count(r, "joined_axis", TILE_MAX_TENSOR_RANK, "the last axis of a grid is 1");
    r->func->warps = read_count(r, "warps", TILE_MAX_THREADS / TILE_WARP_THREADS, "a block has 1 to 32 warps");
    r->func->stages = read_count(r, "stages", TILE_MAX_STAGES, "a loop has 1 to 16 stages");
    r->func->turns = read_count(r, "turns", TILE_MAX_TURNS, "programs take 1 to 4 turns");
    r->func->cluster = read_count(r, "cluster", TILE_MAX_CLUSTER, "a cluster has 1 to 8 blocks");
    read_blocks_together(r);
    r->func->stream = read_count(r, "stream", 1, "`stream` is 1 where it stands") != 0;
    r->func->once = read_count(r, "once", INT32_MAX, "`once` has a bit for each of 31 arguments");
    r->func->busy = read_count(r, "busy", 1, "`busy` is 1 where it stands") != 0;
    r->func->reloads = read_count(r, "reloads", 1, "`reloads` is 1 where it stands") != 0;
    r->func->keeps = read_count(r, "keeps", 1, "`keeps` is 1 where it stands") != 0;
    r->func->threads = read_count(r, "threads", TILE_MAX_THREADS, "a block has 1 to 1024 threads");
    r->func->resident = read_count(r, "resident", 1, "`resident` is 1 where it stands") != 0;
    r->func->registers = read_count(r, "registers", TILE_MAX_REGISTERS - 1, "a thread has 1 to 255 registers");
    if (!tile_read_accept_word(r, "scratch_bytes")) return;
    tile_read_expect(r, "=");
    int64_t bytes = tile_read_integer(r);
    if (bytes < 0) tile_read_fail(r, "scratch_bytes is negative");
    r->func->scratch_bytes = (uint64_t)bytes;
}

static bool at_layout_text(const Reader *r) {
    return r->token.kind == TOKEN_NUMBER || tile_read_at_word(r, "register") || tile_read_at_word(r, "lane") ||
           tile_read_at_word(r, "warp") || tile_read_at_word(r, "block");
}

/* `layout 0 = [64] register 1 lane 2 ..`, as lang/layout/layout.h writes it. */
static void read_layout(Reader *r) {
    uint32_t number = tile_read_small(r);
    if (number != r->layouts.count) tile_read_fail(r, "layouts are numbered in order, from 0 on");
    tile_read_expect(r, "=");
    size_t start = r->token.start;
    while (r->token.kind != TOKEN_END && !tile_read_at_mark(r, "]")) tile_read_advance(r);
    tile_read_expect(r, "]");
    while (at_layout_text(r)) tile_read_advance(r);
    if (r->failed) return;
    TileLayout layout;
    if (tile_layout_read(tile_arena_string(r->scratch, r->text + start, r->token.start - start), &layout))
        tile_list_push(r->scratch, &r->layouts, tile_layout_intern(r->context->types, &layout));
    else
        tile_read_fail(r, "expected a layout before this");
}

static void read_func(Reader *r) {
    static const char *const kinds[] = {"kernel", "device", "phase"};
    static const char *const forms[] = {"tile", "machine"};
    Token begin = r->token;
    if (!tile_read_accept_word(r, "func")) {
        tile_read_fail(r, "expected `func`");
        return;
    }
    unsigned kind = tile_read_choice(r, kinds, 3, "kernel, device or phase");
    unsigned form = tile_read_choice(r, forms, 2, "tile or machine");
    if (r->token.kind != TOKEN_SYMBOL) tile_read_fail(r, "expected the name of a function");
    if (r->failed) return;
    r->func = tile_func_create(r->module, tile_read_intern(r, &r->token), (TileFuncKind)kind,
                               form == 0 ? TILE_FORM_TILE : TILE_FORM_MACHINE);
    tile_map_init(&r->values, r->scratch);
    r->visible.count = r->layouts.count = 0;
    tile_read_advance(r);
    tile_read_expect(r, "(");
    if (!tile_read_at_mark(r, ")")) {
        do read_parameter(r);
        while (tile_read_accept(r, ","));
    }
    tile_read_expect(r, ")");
    read_func_types(r);
    r->func->location = tile_read_location(r, &begin);
    tile_read_expect(r, "{");
    while (tile_read_accept_word(r, "layout")) read_layout(r);
    while (!r->failed && !tile_read_at_mark(r, "}")) tile_read_op(r, &r->func->body);
    tile_read_expect(r, "}");
}

/* `file "name"`: the next entry of the list of files that locations refer to. */
static void read_file(Reader *r) {
    if (r->func) tile_read_fail(r, "files stand before functions");
    tile_read_advance(r);
    if (r->token.kind != TOKEN_STRING) tile_read_fail(r, "expected the name of a file in quotes");
    if (r->failed) return;
    tile_list_push(r->scratch, &r->files, (uint32_t)r->context->files.count);
    tile_list_push(r->context->arena, &r->context->files, tile_read_intern(r, &r->token));
    tile_read_advance(r);
}

tile_status tile_module_read_file(TileContext *context, uint32_t file, const char *text, size_t length,
                                  TileModule **module, TileText *errors) {
    *module = NULL;
    Reader r = {.context = context, .text = text, .length = length, .line = 1, .errors = errors, .file = file};
    r.module = tile_module_create(context);
    if (!r.module) return TILE_OUT_OF_MEMORY;
    r.scratch = tile_arena_create(context->arena);
    if (!r.scratch) {
        tile_module_destroy(r.module);
        return TILE_OUT_OF_MEMORY;
    }
    tile_read_advance(&r);
    while (r.token.kind != TOKEN_END) {
        if (tile_read_at_word(&r, "file"))
            read_file(&r);
        else
            read_func(&r);
    }
    find_kernels(&r);
    tile_arena_destroy(r.scratch);
    if (r.failed) {
        tile_module_destroy(r.module);
        return TILE_INVALID_SOURCE;
    }
    *module = r.module;
    return TILE_OK;
}

tile_status tile_module_read(TileContext *context, const char *text, size_t length, TileModule **module,
                             TileText *errors) {
    return tile_module_read_file(context, 0, text, length, module, errors);
}

/* `file`, or `func` before a kind: no text of the language begins like this. */
bool tile_text_is_ir(const char *text, size_t length) {
    TileArena *scratch = tile_arena_create(NULL);
    jmp_buf guard;
    if (!scratch || setjmp(guard)) {
        tile_arena_destroy(scratch);
        return false;
    }
    tile_arena_set_guard(scratch, &guard);
    Reader r = {.scratch = scratch, .text = text, .length = length, .line = 1};
    tile_read_advance(&r);
    bool func = tile_read_at_word(&r, "func"), file = tile_read_at_word(&r, "file");
    tile_read_advance(&r);
    bool is_ir = (file && r.token.kind == TOKEN_STRING) ||
                 (func && (tile_read_at_word(&r, "kernel") || tile_read_at_word(&r, "device") ||
                           tile_read_at_word(&r, "phase")));
    tile_arena_destroy(scratch);
    return is_ir;
}

/* ---- fragments of a text ---- */

const TileType *tile_type_read(TileContext *context, const char *text, TileText *errors) {
    Reader r = {.context = context, .text = text, .length = strlen(text), .line = 1, .errors = errors};
    r.scratch = tile_arena_create(context->arena);
    if (!r.scratch) return NULL;
    tile_read_advance(&r);
    const TileType *type = tile_read_type(&r);
    if (r.token.kind != TOKEN_END) tile_read_fail(&r, "expected the end of the type");
    tile_arena_destroy(r.scratch);
    return r.failed ? NULL : type;
}

bool tile_op_read_attributes(TileModule *module, TileOp *op, const char *text, TileText *errors) {
    Reader r = {.context = module->context, .module = module, .text = text, .length = strlen(text), .line = 1};
    r.errors = errors;
    r.scratch = tile_arena_create(module->arena);
    if (!r.scratch) return false;
    tile_read_advance(&r);
    if (r.token.kind != TOKEN_END) tile_read_attributes(&r);
    if (r.token.kind != TOKEN_END) tile_read_fail(&r, "expected the end of the attributes");
    if (!r.failed) tile_read_set_attributes(&r, op);
    tile_arena_destroy(r.scratch);
    return !r.failed;
}
