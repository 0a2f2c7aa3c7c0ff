#include "tools/tile_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/scalar/scalar.h"

enum { MARGIN = 64 }; /* guard bytes around each tensor, which must not change */

typedef struct Argument {
    const TileType *type;
    TileScalar scalar;
    unsigned char *memory, *initial; /* `size` bytes */
    size_t size;
    bool whole; /* floats are integers */
    TileExecutorTensor tensor;
    uint64_t *lanes;
} Argument;

struct TileRun {
    TileArena *arena;
    const char *name;
    Argument *arguments;
    unsigned count, result_count;
    const TileType *const *result_types;
    uint64_t random;
    TileText *errors;
    const char *position; /* in the text */
};

/* ---- random data ---- */

static uint64_t next_random(TileRun *run) {
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    return run->random >> 20;
}

/* Wide integers are small, so that they can be indices. */
static uint64_t random_bits(TileRun *run, TileScalar scalar) {
    uint64_t random = next_random(run);
    if (tile_scalar_is_float(scalar)) return tile_scalar_from_double(scalar, (double)(random % 4000001) / 1e6 - 2);
    if (scalar == TILE_BOOL) return random & 1;
    return tile_scalar_bits(scalar) < 32 ? random & tile_scalar_mask(scalar) : random % 4;
}

static void *make_memory(TileRun *run, size_t size) {
    char *memory = tile_arena_alloc(run->arena, size + 64);
    return memory + (64 - (uintptr_t)memory % 64) % 64;
}

static void fill_memory(TileRun *run, Argument *argument) {
    size_t bytes = tile_scalar_bytes(argument->scalar);
    argument->memory = make_memory(run, argument->size);
    argument->initial = make_memory(run, argument->size);
    for (size_t at = 0; at + bytes <= argument->size; at += bytes) {
        uint64_t bits = random_bits(run, argument->scalar);
        if (argument->whole) bits = tile_scalar_from_double(argument->scalar, floor(tile_scalar_to_double(argument->scalar, bits)));
        for (size_t b = 0; b < bytes; b++) argument->initial[at + b] = (unsigned char)(bits >> 8 * b);
    }
}

/* ---- reading arguments ---- */

static bool fail(TileRun *run, const char *reason) {
    tile_text_format(run->errors, "--run: %s, at `%s`\n", reason, run->position);
    return false;
}

static bool read_count(TileRun *run, int64_t *count) {
    char *end;
    if (*run->position < '0' || *run->position > '9') return fail(run, "expected a number");
    *count = strtoll(run->position, &end, 10);
    run->position = end;
    return *count <= 1 << 24 ? true : fail(run, "the number is too large");
}

static void make_strides(Argument *argument, char layout) {
    unsigned rank = argument->type->rank;
    int64_t next = tile_scalar_bytes(argument->scalar) * (layout == 's' ? 2 : 1);
    for (unsigned i = 0; i < rank; i++) {
        unsigned d = layout == 't' ? i : rank - 1 - i;
        argument->tensor.stride[d] = layout == 'r' ? -next : next;
        next *= argument->tensor.extent[d];
    }
    argument->size = (size_t)next + 2 * MARGIN;
}

static bool read_tensor(TileRun *run, Argument *argument) {
    unsigned rank = argument->type->rank;
    for (unsigned d = 0; d < rank; d++) {
        if (d && *run->position++ != 'x') return fail(run, "expected extents such as 3x70, one for each dimension");
        if (!read_count(run, &argument->tensor.extent[d])) return false;
    }
    if (!rank && *run->position++ != '-') return fail(run, "expected - for a tensor of rank 0");
    char layout = 0;
    if (*run->position == '/') {
        layout = run->position[1];
        if (!layout || !strchr("trs", layout)) return fail(run, "expected /t, /r or /s");
        run->position += 2;
    }
    make_strides(argument, layout);
    fill_memory(run, argument);
    size_t start = MARGIN;
    if (layout == 'r') start = argument->size - MARGIN - tile_scalar_bytes(argument->scalar);
    argument->tensor.data = argument->memory + start;
    argument->tensor.below = start;
    argument->tensor.above = argument->size - start;
    return true;
}

static bool read_pointer(TileRun *run, Argument *argument) {
    size_t length = strcspn(run->position, "*,");
    int64_t count;
    if (run->position[length] != '*' || !tile_scalar_find(run->position, length, &argument->scalar))
        return fail(run, "expected an element type and a count such as f32*64");
    run->position += length + 1;
    if (!read_count(run, &count)) return false;
    argument->whole = strncmp(run->position, "/i", 2) == 0 && tile_scalar_is_float(argument->scalar);
    if (argument->whole) run->position += 2;
    argument->size = (size_t)count * tile_scalar_bytes(argument->scalar);
    fill_memory(run, argument);
    return true;
}

static bool read_value(TileRun *run, Argument *argument) {
    int64_t lanes = tile_type_lanes(argument->type);
    size_t length = strcspn(run->position, ",");
    argument->lanes = TILE_NEW_ARRAY(run->arena, uint64_t, lanes);
    if (*run->position == '?') {
        for (int64_t i = 0; i < lanes; i++) argument->lanes[i] = random_bits(run, argument->scalar);
    } else if (lanes != 1 || !tile_scalar_read(argument->scalar, run->position, length, argument->lanes)) {
        return fail(run, "expected a number of the parameter's type, or ?");
    }
    run->position += length;
    return true;
}

static bool read_argument(TileRun *run, Argument *argument, const TileType *type) {
    argument->type = type;
    argument->scalar = type->scalar;
    if (type->kind == TILE_TYPE_TENSOR) return read_tensor(run, argument);
    if (type->kind == TILE_TYPE_POINTER) return read_pointer(run, argument);
    return read_value(run, argument);
}

static bool read_arguments(TileRun *run, const TileFunc *func) {
    run->count = func->body.argument_count;
    run->result_count = func->result_count;
    run->result_types = func->result_types;
    run->arguments = TILE_NEW_ARRAY(run->arena, Argument, run->count);
    for (unsigned i = 0; i < run->count; i++) {
        if (i && *run->position++ != ',') return fail(run, "expected a comma and another argument");
        if (!read_argument(run, &run->arguments[i], func->body.arguments[i]->type)) return false;
    }
    return *run->position ? fail(run, "too many arguments") : true;
}

TileRun *tile_run_create(TileArena *arena, TileModule *module, const char *text, TileText *errors) {
    TileRun *run = TILE_NEW(arena, TileRun);
    size_t length = strcspn(text, ":");
    *run = (TileRun){.arena = arena, .errors = errors, .random = 1, .name = tile_arena_string(arena, text, length)};
    run->position = text + length + (text[length] == ':');
    const TileFunc *func = tile_func_find(module, run->name);
    if (!func) tile_text_format(errors, "--run: there is no function %s\n", run->name);
    return func && read_arguments(run, func) ? run : NULL;
}

/* ---- running ---- */

static void bind(TileRun *run, TileExecutor *executor) {
    for (unsigned i = 0; i < run->count; i++) {
        Argument *argument = &run->arguments[i];
        if (argument->memory) memcpy(argument->memory, argument->initial, argument->size);
        switch (argument->type->kind) {
        case TILE_TYPE_TENSOR: tile_executor_bind_tensor(executor, i, &argument->tensor); break;
        case TILE_TYPE_POINTER:
            tile_executor_bind_pointer(executor, i, argument->memory, 0, argument->size, true);
            break;
        case TILE_TYPE_SCALAR:
        case TILE_TYPE_TILE:
        case TILE_TYPE_VECTOR: tile_executor_bind_lanes(executor, i, argument->lanes); break;
        case TILE_TYPE_CHANNEL: break; /* the verifier allows no such parameter */
        }
    }
}

static void keep_outcome(TileRun *run, const TileFunc *func, const TileExecutor *executor, TileRunOutcome *outcome) {
    outcome->memory = TILE_NEW_ARRAY(run->arena, unsigned char *, run->count);
    for (unsigned i = 0; i < run->count; i++)
        if (run->arguments[i].memory)
            outcome->memory[i] = tile_arena_copy(run->arena, run->arguments[i].memory, run->arguments[i].size);
    if (outcome->state != TILE_EXECUTION_DONE) return;
    outcome->results = TILE_NEW_ARRAY(run->arena, uint64_t *, func->result_count);
    outcome->poison = TILE_NEW_ARRAY(run->arena, uint8_t *, func->result_count);
    for (unsigned i = 0; i < func->result_count; i++) {
        const uint8_t *poison;
        size_t lanes = (size_t)tile_type_lanes(func->result_types[i]);
        const uint64_t *values = tile_executor_result(executor, i, &poison);
        outcome->results[i] = tile_arena_copy(run->arena, values, lanes * sizeof *values);
        outcome->poison[i] = tile_arena_copy(run->arena, poison, lanes);
    }
}

bool tile_run_execute(TileRun *run, TileModule *module, const TileExecutorOptions *options, TileRunOutcome *outcome,
                      TileText *errors) {
    *outcome = (TileRunOutcome){0};
    TileFunc *func = tile_func_find(module, run->name);
    if (!func || func->body.argument_count != run->count || func->result_count != run->result_count) {
        tile_text_format(errors, "--run: %s is gone, or takes other arguments\n", run->name);
        return false;
    }
    TileExecutorOptions own = *options;
    own.phases = tile_func_phase(func, 0) != NULL;
    TileExecutor *executor = tile_executor_create(func, &own);
    if (!executor) {
        tile_text_add(errors, "--run: out of memory\n");
        return false;
    }
    bind(run, executor);
    outcome->state = tile_executor_run(executor, 0);
    outcome->message = tile_arena_format(run->arena, "%s", tile_executor_message(executor));
    keep_outcome(run, func, executor, outcome);
    tile_executor_destroy(executor);
    bool wrong = outcome->state == TILE_EXECUTION_FAULT || outcome->state == TILE_EXECUTION_RACE ||
                 outcome->state == TILE_EXECUTION_UNDEFINED;
    if (!wrong) return true;
    tile_text_format(errors, "--run: %s\n", outcome->message);
    return false;
}

/* ---- comparing ---- */

static uint64_t element(const unsigned char *memory, size_t bytes) {
    uint64_t bits = 0;
    for (size_t b = 0; b < bytes; b++) bits |= (uint64_t)memory[b] << 8 * b;
    return bits;
}

static bool report(TileText *errors, TileScalar scalar, const char *what, unsigned number, size_t at, uint64_t before,
                   uint64_t after) {
    tile_text_format(errors, "--run: element %zu of %s %u was ", at, what, number);
    tile_scalar_print(errors, scalar, before);
    tile_text_add(errors, " and is now ");
    tile_scalar_print(errors, scalar, after);
    tile_text_add(errors, "\n");
    return false;
}

static bool same_memory(const Argument *argument, unsigned number, const unsigned char *before,
                        const unsigned char *after, TileText *errors) {
    size_t bytes = tile_scalar_bytes(argument->scalar);
    for (size_t at = 0; at + bytes <= argument->size; at += bytes) {
        uint64_t x = element(before + at, bytes), y = element(after + at, bytes);
        if (!tile_scalar_same(argument->scalar, x, y))
            return report(errors, argument->scalar, "argument", number, at / bytes, x, y);
    }
    return true;
}

static bool same_result(const TileType *type, unsigned number, const TileRunOutcome *before,
                        const TileRunOutcome *after, TileText *errors) {
    for (size_t i = 0; i < (size_t)tile_type_lanes(type); i++) {
        uint64_t x = before->results[number][i], y = after->results[number][i];
        if (before->poison[number][i]) continue;
        if (after->poison[number][i] || !tile_scalar_same(type->scalar, x, y))
            return report(errors, type->scalar, after->poison[number][i] ? "poisoned result" : "result", number, i, x,
                          y);
    }
    return true;
}

bool tile_run_same(const TileRun *run, const TileRunOutcome *before, const TileRunOutcome *after, TileText *errors) {
    if (before->state != after->state) {
        tile_text_format(errors, "--run: ended in another way: `%s`, and now `%s`\n", before->message, after->message);
        return false;
    }
    for (unsigned i = 0; i < run->count; i++)
        if (before->memory[i] && !same_memory(&run->arguments[i], i, before->memory[i], after->memory[i], errors))
            return false;
    for (unsigned i = 0; before->results && i < run->result_count; i++)
        if (!same_result(run->result_types[i], i, before, after, errors)) return false;
    return true;
}
