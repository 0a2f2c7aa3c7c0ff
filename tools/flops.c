/* Counting FLOPs of dots: the scalars of tile form are interpreted, tiles are not. A dot's extents are traced through
 * the ops that define its operands to the loads, whose ranges tell which lanes exist. */
#include "tools/flops.h"

#include <string.h>

#include "driver/compile/compile.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "tools/file.h"

/* A parameter's argument: extents of a tensor, or bits of a scalar. */
typedef struct Argument {
    int64_t extent[TILE_MAX_TENSOR_RANK];
    uint64_t bits;
} Argument;

typedef struct Counter {
    const Argument *arguments;
    uint64_t *bits; /* by the number of the value */
    bool *known;
    uint64_t *next_bits; /* see carry */
    bool *next_known;
    bool has_dot;
    TileMap dots; /* ops with a dot inside */
    uint64_t steps;
    double flops;
    bool lost;
} Counter;

/* About a second's worth. */
static const uint64_t most_steps = (uint64_t)1 << 26;

static void walk_block(Counter *c, const TileBlock *block);

static void set(Counter *c, const TileValue *value, bool known, uint64_t bits) {
    c->known[value->number] = known;
    c->bits[value->number] = bits;
}

static bool get(const Counter *c, const TileValue *value, int64_t *integer) {
    *integer = (int64_t)c->bits[value->number];
    return c->known[value->number];
}

static void copy(Counter *c, const TileValue *to, const TileValue *from) {
    set(c, to, c->known[from->number], c->bits[from->number]);
}

/* ---- lanes that exist ---- */

static int64_t existing(const Counter *c, const TileValue *value, unsigned axis);

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Number of lanes in [lo, hi), at most `extent`. */
static int64_t range_lanes(const Counter *c, const TileValue *lo, const TileValue *hi, int64_t extent) {
    int64_t first, last;
    if (!get(c, lo, &first) || !get(c, hi, &last)) return extent;
    int64_t count = last - first;
    return count < 0 ? 0 : least(count, extent);
}

static int64_t loaded_lanes(const Counter *c, const TileOp *load, unsigned axis, int64_t extent) {
    TileValue *lo, *hi;
    return tile_access_bounds(load, axis, &lo, &hi) ? range_lanes(c, lo, hi, extent) : extent;
}

static int64_t filled_lanes(const Counter *c, const TileOp *fill, unsigned axis, int64_t extent) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    int64_t lanes = existing(c, tile_op_operand(fill, 0), axis);
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->integers[i] == (int64_t)axis)
            lanes = least(lanes,
                          range_lanes(c, tile_fill_lo(fill, i), tile_fill_hi(fill, i), extent));
    return lanes;
}

/* The operand's axis that corresponds to the result's: with as many lanes before it. */
static int64_t reshaped_lanes(const Counter *c, const TileOp *reshape, unsigned axis, int64_t extent) {
    const TileType *to = reshape->results[0].type, *from = tile_op_operand(reshape, 0)->type;
    int64_t before = 1, seen = 1;
    for (unsigned i = 0; i < axis; i++) before *= to->extent[i];
    for (unsigned i = 0; i < from->rank; i++) {
        if (seen == before && from->extent[i] == extent) return existing(c, tile_op_operand(reshape, 0), i);
        seen *= from->extent[i];
    }
    return extent;
}

static int64_t elementwise_lanes(const Counter *c, const TileOp *op, unsigned axis, int64_t extent) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const TileValue *operand = tile_op_operand(op, i);
        if (operand->type->kind == TILE_TYPE_TILE) extent = least(extent, existing(c, operand, axis));
    }
    return extent;
}

static int64_t existing(const Counter *c, const TileValue *value, unsigned axis) {
    int64_t extent = value->type->extent[axis];
    const TileOp *op = value->op;
    if (!op) return extent;
    if (op->id == TILE_OP_LOAD_TILE) return loaded_lanes(c, op, axis, extent);
    if (op->id == TILE_OP_FILL) return filled_lanes(c, op, axis, extent);
    if (op->id == TILE_OP_RESHAPE && extent > 1) return reshaped_lanes(c, op, axis, extent);
    if (op->id == TILE_OP_PERMUTE)
        return existing(c, tile_op_operand(op, 0), (unsigned)tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[axis]);
    if (op->id == TILE_OP_BROADCAST && tile_op_operand(op, 0)->type->extent[axis] == extent)
        return existing(c, tile_op_operand(op, 0), axis);
    if (op->id == TILE_OP_DOT) {
        const TileValue *side = tile_op_operand(op, axis + 1 == value->type->rank ? 1 : 0);
        return existing(c, side, axis);
    }
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return elementwise_lanes(c, op, axis, extent);
    return extent;
}

static void count_dot(Counter *c, const TileOp *dot) {
    const TileValue *a = tile_op_operand(dot, 0), *b = tile_op_operand(dot, 1);
    unsigned rank = a->type->rank;
    double work = 2;
    for (unsigned i = 0; i + 2 < rank; i++) work *= (double)least(existing(c, a, i), existing(c, b, i));
    work *= (double)existing(c, a, rank - 2) * (double)existing(c, b, rank - 1);
    c->flops += work * (double)least(existing(c, a, rank - 1), existing(c, b, rank - 2));
}

/* ---- scalars and control ---- */

static void forget_results(Counter *c, const TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) set(c, &op->results[i], false, 0);
}

/* Hands the yielded values to the next iteration: all are read before any is set. */
static void carry(Counter *c, const TileBlock *body, unsigned carried) {
    const TileOp *yield = body->last;
    for (unsigned i = 0; i < carried; i++) {
        const TileValue *from = tile_op_operand(yield, i);
        c->next_bits[i] = c->bits[from->number];
        c->next_known[i] = c->known[from->number];
    }
    for (unsigned i = 0; i < carried; i++) set(c, body->arguments[1 + i], c->next_known[i], c->next_bits[i]);
}

static void walk_for(Counter *c, const TileOp *op) {
    const TileBlock *body = &op->regions[0];
    unsigned carried = op->result_count;
    int64_t at, end, step;
    bool begins = get(c, tile_op_operand(op, 0), &at), ends = get(c, tile_op_operand(op, 1), &end);
    bool counts = get(c, tile_op_named(op, TILE_OPERAND_STEP), &step) && begins && ends;
    forget_results(c, op);
    if (!tile_map_get(&c->dots, op)) return;
    c->lost |= !counts || step <= 0;
    for (unsigned i = 0; i < carried; i++) copy(c, body->arguments[1 + i], tile_loop_carried(op, i));
    for (; !c->lost && at < end; at += step) {
        set(c, body->arguments[0], true, (uint64_t)at);
        walk_block(c, body);
        carry(c, body, carried);
    }
    for (unsigned i = 0; i < carried; i++) copy(c, &op->results[i], body->arguments[1 + i]);
}

static void walk_if(Counter *c, const TileOp *op) {
    int64_t truth;
    bool known = get(c, tile_op_operand(op, 0), &truth);
    forget_results(c, op);
    if (!known) {
        c->lost |= tile_map_get(&c->dots, op) != NULL;
        return;
    }
    const TileBlock *taken = &op->regions[truth ? 0 : 1];
    walk_block(c, taken);
    for (unsigned i = 0; i < op->result_count; i++) copy(c, &op->results[i], tile_op_operand(taken->last, i));
}

static void walk_grid(Counter *c, const TileOp *op) {
    const TileBlock *body = &op->regions[0];
    int64_t extent[TILE_MAX_TENSOR_RANK], programs = 1;
    if (!tile_map_get(&c->dots, op)) return;
    for (unsigned i = 0; i < op->operand_count; i++) {
        c->lost |= !get(c, tile_op_operand(op, i), &extent[i]) ||
                   __builtin_mul_overflow(programs, extent[i] < 0 ? 0 : extent[i], &programs);
    }
    for (int64_t program = 0; !c->lost && program < programs; program++) {
        int64_t rest = program;
        for (unsigned i = op->operand_count; i-- > 0; rest /= extent[i])
            set(c, body->arguments[i], true, (uint64_t)(rest % extent[i]));
        walk_block(c, body);
    }
}

static void evaluate(Counter *c, const TileOp *op) {
    uint64_t operands[TILE_EVAL_MOST_OPERANDS] = {0}, result = 0;
    bool known = op->operand_count && op->operand_count <= TILE_EVAL_MOST_OPERANDS;
    const TileType *type = op->results[0].type;
    for (uint32_t i = 0; known && i < op->operand_count; i++) {
        const TileValue *operand = tile_op_operand(op, i);
        known = operand->type->kind == TILE_TYPE_SCALAR && c->known[operand->number];
        operands[i] = c->bits[operand->number];
    }
    known = known && tile_eval((TileOpId)op->id, tile_eval_operand_type(op), type->scalar, operands, &result);
    set(c, &op->results[0], known, result);
}

static void read_dim(Counter *c, const TileOp *op) {
    const TileValue *tensor = tile_op_operand(op, 0);
    int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), extent = 0;
    const TileOp *temp = tile_value_def(tensor, TILE_OP_TEMP);
    bool known = temp ? get(c, tile_op_operand(temp, (unsigned)axis), &extent) : tensor->block != NULL;
    if (!temp && known) extent = c->arguments[tensor->index].extent[axis];
    set(c, &op->results[0], known, (uint64_t)extent);
}

static void walk_op(Counter *c, const TileOp *op) {
    if (op->id == TILE_OP_DOT) return count_dot(c, op);
    if (op->id == TILE_OP_FOR) return walk_for(c, op);
    if (op->id == TILE_OP_IF) return walk_if(c, op);
    if (op->id == TILE_OP_GRID) return walk_grid(c, op);
    if (op->id == TILE_OP_DIM) return read_dim(c, op);
    if (op->region_count) c->lost |= tile_map_get(&c->dots, op) != NULL;
    if (op->result_count != 1 || op->results[0].type->kind != TILE_TYPE_SCALAR) return forget_results(c, op);
    if (op->id == TILE_OP_CONST)
        set(c, &op->results[0], true, tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits);
    else if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE)
        evaluate(c, op);
    else
        set(c, &op->results[0], false, 0);
}

static void walk_block(Counter *c, const TileBlock *block) {
    for (const TileOp *op = block->first; op && !c->lost; op = op->next) {
        if (++c->steps > most_steps) c->lost = true;
        walk_op(c, op);
    }
}

static void mark_dots(TileOp *op, void *state) {
    Counter *c = state;
    if (op->id != TILE_OP_DOT) return;
    c->has_dot = true;
    for (TileOp *outer = op->block->op; outer; outer = outer->block->op) tile_map_set(&c->dots, outer, outer);
}

static TileFlopsKnown count_dots(TileArena *arena, TileFunc *func, const Argument *arguments, double *flops) {
    uint32_t count = tile_func_number(func);
    Counter c = {.arguments = arguments,
                 .bits = TILE_NEW_ARRAY(arena, uint64_t, count),
                 .known = TILE_NEW_ARRAY(arena, bool, count),
                 .next_bits = TILE_NEW_ARRAY(arena, uint64_t, count),
                 .next_known = TILE_NEW_ARRAY(arena, bool, count)};
    tile_map_init(&c.dots, arena);
    tile_block_walk(&func->body, mark_dots, &c);
    if (!c.has_dot) return TILE_FLOPS_NONE;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileValue *argument = func->body.arguments[i];
        if (argument->type->kind == TILE_TYPE_SCALAR) set(&c, argument, true, arguments[i].bits);
    }
    walk_block(&c, &func->body);
    *flops = c.flops;
    return c.lost ? TILE_FLOPS_UNKNOWN : TILE_FLOPS_COUNTED;
}

/* ---- of a program ---- */

/* The settings that the arguments determine: type parameters, static dimensions, constants. */
static void add_setting(TileProgram *program, const char *name, const char *value) {
    if (!tile_library_has_setting(program->library, name)) return;
    for (size_t i = 0; i < program->settings.count; i++)
        if (strcmp(program->settings.items[i].name, name) == 0) return;
    tile_list_push(program->session->arena, &program->settings, (TileSetting){name, value});
}

static void add_settings(TileProgram *program) {
    TileArena *arena = program->session->arena;
    for (size_t i = 0; i < program->argument_count; i++) {
        const TileProgramArgument *argument = &program->arguments[i];
        if (argument->info.kind == TILE_PARAMETER_SCALAR) {
            add_setting(program, argument->info.name, argument->text);
            continue;
        }
        add_setting(program, argument->info.type, tile_scalar_name(argument->view.scalar));
        for (int d = 0; d < argument->info.rank; d++)
            add_setting(program, argument->info.dimensions[d],
                        tile_arena_format(arena, "%lld", (long long)argument->view.extent[d]));
    }
}

/* The parameters of tile form are the kernel's without those that settings bind. */
static bool bind_arguments(const TileProgram *program, const TileFunc *func, Argument *arguments) {
    for (uint32_t p = 0; p < func->body.argument_count; p++) {
        const TileProgramArgument *found = NULL;
        for (size_t i = 0; i < program->argument_count && !found; i++)
            if (strcmp(program->arguments[i].info.name, func->parameters[p].name) == 0) found = &program->arguments[i];
        if (!found) return false;
        const TileType *type = func->body.arguments[p]->type;
        if (type->kind == TILE_TYPE_TENSOR) memcpy(arguments[p].extent, found->view.extent, sizeof arguments[p].extent);
        if (type->kind != TILE_TYPE_SCALAR) continue;
        bool number = found->arg.kind == TILE_ARG_NUMBER;
        bool is_float = tile_scalar_is_float(type->scalar);
        double value = number ? found->arg.value.number : (double)found->arg.value.integer;
        arguments[p].bits =
            is_float ? tile_scalar_from_double(type->scalar, value) : (uint64_t)found->arg.value.integer;
    }
    return true;
}

static TileFlopsKnown count_text(TileProgram *program, const char *text, double *flops) {
    TileArena *arena = program->session->arena;
    TileContext *context = tile_ir_context_create();
    TileText errors = {.arena = arena};
    TileModule *module = NULL;
    TileFlopsKnown known = TILE_FLOPS_UNKNOWN;
    if (context && tile_module_read(context, text, strlen(text), &module, &errors) == TILE_OK) {
        TileFunc *func = tile_func_find(module, tile_kernel_name(program->kernel));
        Argument *arguments = func ? TILE_NEW_ARRAY(arena, Argument, func->body.argument_count + 1) : NULL;
        if (func && bind_arguments(program, func, arguments)) known = count_dots(arena, func, arguments, flops);
    }
    if (module) tile_module_destroy(module);
    if (context) tile_ir_context_destroy(context);
    return known;
}

TileFlopsKnown tile_flops_of_program(TileProgram *program, double *flops) {
    TileArena *arena = program->session->arena;
    TileText error = {.arena = arena};
    char *text, *form = NULL;
    size_t length, settings = program->settings.count;
    if (tile_file_read(arena, program->path, &text, &length, &error) != TILE_OK) return TILE_FLOPS_UNKNOWN;
    add_settings(program);
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = program->path,
                                  .target = "interp",
                                  .settings = program->settings.items,
                                  .setting_count = program->settings.count};
    TileEmitOptions emit = {
        .struct_size = sizeof emit, .stage = TILE_STAGE_TILE, .kernel = tile_kernel_name(program->kernel)};
    TileReport *report = NULL;
    tile_status status = tile_emit_stage(program->compiler, text, length, &options, &emit, &form, &report);
    tile_report_destroy(report);
    program->settings.count = settings;
    if (status != TILE_OK) return TILE_FLOPS_UNKNOWN;
    TileFlopsKnown known = count_text(program, form, flops);
    tile_string_destroy(form);
    return known;
}

/* ---- memory ---- */

/* Each element counts once, also if it is broadcast. */
double tile_traffic_of_program(const TileProgram *program) {
    double total = 0;
    for (size_t i = 0; i < program->argument_count; i++) {
        const TileProgramArgument *argument = &program->arguments[i];
        if (argument->info.kind != TILE_PARAMETER_TENSOR) continue;
        double bytes = tile_scalar_bytes(argument->view.scalar);
        for (unsigned d = 0; d < argument->view.rank; d++)
            if (argument->view.stride[d] || !argument->view.extent[d]) bytes *= (double)argument->view.extent[d];
        total += argument->info.access == TILE_PARAMETER_INOUT ? 2 * bytes : bytes;
    }
    return total;
}
