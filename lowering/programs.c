/* Purpose: outline each grid of a kernel as a phase function. Its parameters are those of the kernel, its temps, and
 * `begin` and `end`: the body runs for the programs begin .. end, whose indices in the grid `program_id` computes. Host
 * ops that the body uses are cloned into the phase. Empty grids remain in the kernel, which then is the host program.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, inout>) {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       grid %m, %n (%i: i64, %j: i64) {
 *         %v = load_tile %x, %i, %j {access = [index, index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i, %j {access = [index, index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, inout>) {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       grid %m, %n (%i: i64, %j: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%x: tensor<f32, 2, inout> {role = data, argument = 0}, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) kernel = @k phase = 0 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %0 = const {value = 1} : i64
 *       for %begin, %end, %0 (%program: i64) {
 *         %i, %j = program_id %program, %m, %n : i64, i64
 *         %v = load_tile %x, %i, %j {access = [index, index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i, %j {access = [index, index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: inline. Keeps: tile form.
 * Cost: n log n in the kernel's ops, and the number of tensors for each grid. */
#include <stdlib.h>

#include "base/temp.h"
#include "base/tensor_map.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

typedef struct Programs {
    TileModule *module;
    TileFunc *kernel;
    TileArena *scratch;
    TileMap positions; /* of the ops of the kernel's body, from 1 on */
    TILE_LIST(TileOp *) temps;
} Programs;

/* The host ops that a grid depends on. */
typedef struct Needs {
    const Programs *programs;
    TileMap found;
    TILE_LIST(TileOp *) ops;
} Needs;

/* Adds a parameter for the kernel's `argument`. */
static void add_argument(TileFunc *phase, const char *name, const TileType *type, const TileParameter *like,
                         uint32_t argument) {
    TileValue *value = tile_func_add_parameter(phase, name, type);
    TileParameter *parameter = &phase->parameters[value->index];
    const char *own = parameter->name;
    *parameter = *like;
    parameter->name = own;
    bool tensor = type->kind == TILE_TYPE_TENSOR;
    tile_func_set_role(phase, value, tensor ? TILE_ROLE_DATA : TILE_ROLE_SCALAR, argument, 0);
    parameter->readonly = tensor && type->access == TILE_ACCESS_IN;
    if (tensor && type->access == TILE_ACCESS_TEMP) parameter->noalias = true;
}

/* Extents that are constants, and strides that follow from these. */
static void note_extents(const TileOp *temp, TileTensorFacts *facts) {
    enum { MOST_MULTIPLE = 16 };
    unsigned rank = temp->results[0].type->rank;
    int64_t align = tile_op_integer(temp, TILE_ATTRIBUTE_ALIGN, 0);
    for (unsigned d = rank; d-- > 0;) {
        int64_t extent, next;
        if (!tile_value_integer(tile_op_operand(temp, d), &extent) || extent < 1) return;
        facts->extent[d] = extent;
        facts->multiple[d] = (extent | MOST_MULTIPLE) & -(extent | MOST_MULTIPLE);
        if (!d || __builtin_mul_overflow(facts->stride[d], extent, &next)) return;
        facts->stride[d - 1] = d + 1 == rank ? tile_temp_row_bytes(next, align) : next;
    }
}

/* The launcher allocates temps row by row, so strides follow from extents; the innermost one is always a constant. A
 * tensor map describes those whose rows begin at multiples of 16 bytes. */
static TileParameter temp_parameter(const TileOp *temp) {
    const TileType *type = temp->results[0].type;
    bool map = type->rank > 1 && tile_op_integer(temp, TILE_ATTRIBUTE_ALIGN, 0) >= TILE_MAP_GRAIN;
    TileParameter parameter = {.facts = {.align = 64, .value = TILE_UNKNOWN, .map = map && type->rank <= TILE_MAP_MOST_RANK}};
    for (int d = 0; d < TILE_MAX_TENSOR_RANK; d++)
        parameter.facts.stride[d] = parameter.facts.extent[d] = parameter.facts.multiple[d] = TILE_UNKNOWN;
    if (type->rank) parameter.facts.stride[type->rank - 1] = tile_scalar_bytes(type->scalar);
    parameter.own = (uint32_t)tile_op_integer(temp, TILE_ATTRIBUTE_OWN, 0);
    if (!parameter.own) note_extents(temp, &parameter.facts);
    for (unsigned d = parameter.own; parameter.own && d < type->rank; d++)
        tile_value_integer(tile_op_operand(temp, d), &parameter.facts.extent[d]);
    return parameter;
}

static TileFunc *create_phase(Programs *p, unsigned number, const TileOp *grid, TileMap *map) {
    const char *name = tile_arena_format(p->scratch, "%s.%u", p->kernel->name, number);
    TileFunc *phase = tile_func_create(p->module, name, TILE_FUNC_PHASE, TILE_FORM_TILE);
    phase->kernel = p->kernel;
    phase->phase = number;
    phase->warps = p->kernel->warps;
    phase->stages = p->kernel->stages;
    phase->turns = p->kernel->turns;
    phase->cluster = (uint32_t)tile_op_integer(grid, TILE_ATTRIBUTE_MULTICAST, 0);
    phase->blocks_together[0] = number < TILE_MOST_SPLITS ? p->kernel->blocks_together[number] : 0;
    phase->stream = p->kernel->stream;
    phase->once = p->kernel->once;
    phase->busy = p->kernel->busy;
    phase->reloads = p->kernel->reloads;
    phase->keeps = p->kernel->keeps;
    phase->location = p->kernel->location;
    const TileBlock *body = &p->kernel->body;
    for (uint32_t i = 0; i < body->argument_count; i++) {
        const TileParameter *parameter = &p->kernel->parameters[i];
        add_argument(phase, parameter->name, body->arguments[i]->type, parameter, i);
        tile_map_set(map, body->arguments[i], phase->body.arguments[i]);
    }
    for (size_t i = 0; i < p->temps.count; i++) {
        TileValue *temp = tile_op_result(p->temps.items[i], 0);
        const char *label = temp->name ? temp->name : tile_arena_format(p->scratch, "temp%zu", i);
        TileParameter parameter = temp_parameter(p->temps.items[i]);
        add_argument(phase, label, temp->type, &parameter, body->argument_count + (uint32_t)i);
        tile_map_set(map, temp, phase->body.arguments[phase->body.argument_count - 1]);
    }
    const TileType *i64 = tile_type_scalar(p->module->context, TILE_I64);
    tile_func_set_role(phase, tile_func_add_parameter(phase, "begin", i64), TILE_ROLE_BEGIN, 0, 0);
    tile_func_set_role(phase, tile_func_add_parameter(phase, "end", i64), TILE_ROLE_END, 0, 0);
    return phase;
}

static void note_operands(TileOp *op, void *state) {
    Needs *needs = state;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        TileOp *def = tile_op_operand(op, i)->op;
        if (!def || def->block != &needs->programs->kernel->body || tile_map_get(&needs->found, def)) continue;
        tile_map_set(&needs->found, def, (void *)(uintptr_t)1);
        tile_list_push(needs->programs->scratch, &needs->ops, def);
    }
}

/* Adds the operands of the op and of its regions. */
static void note_needs(Needs *needs, TileOp *op) {
    note_operands(op, needs);
    for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], note_operands, needs);
}

typedef struct Placed {
    uintptr_t position;
    const TileOp *op;
} Placed;

static int compare_positions(const void *a, const void *b) {
    const Placed *x = a, *y = b;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Clones them in their order in the kernel. */
static void copy_host_ops(Programs *p, TileFunc *phase, TileOp *grid, TileMap *map) {
    Needs needs = {.programs = p};
    tile_map_init(&needs.found, p->scratch);
    note_needs(&needs, grid);
    for (size_t i = 0; i < needs.ops.count; i++) note_needs(&needs, needs.ops.items[i]);
    Placed *placed = TILE_NEW_ARRAY(p->scratch, Placed, needs.ops.count + 1);
    for (size_t i = 0; i < needs.ops.count; i++)
        placed[i] = (Placed){(uintptr_t)tile_map_get(&p->positions, needs.ops.items[i]), needs.ops.items[i]};
    qsort(placed, needs.ops.count, sizeof *placed, compare_positions);
    for (size_t i = 0; i < needs.ops.count; i++)
        if (tile_op_is_pure(placed[i].op))
            tile_op_append(tile_op_clone(p->module, placed[i].op, map), &phase->body);
}

/* Maps grid indices to ops on the program's linear index. */
static void map_indices(Programs *p, TileBuilder *b, const TileOp *grid, TileValue *program, TileMap *map) {
    const TileBlock *body = &grid->regions[0];
    unsigned axes = grid->operand_count;
    if (axes == 1) {
        tile_map_set(map, body->arguments[0], program);
        return;
    }
    TileValue **operands = TILE_NEW_ARRAY(p->scratch, TileValue *, 1 + axes);
    operands[0] = program;
    for (unsigned i = 0; i < axes; i++) operands[1 + i] = tile_map_get(map, tile_op_operand(grid, i));
    TileOp *program_id = tile_build_op(b, TILE_OP_PROGRAM_ID, operands, 1 + axes, NULL, 0, NULL, axes);
    for (unsigned i = 0; i < axes; i++) {
        tile_op_result(program_id, i)->name = body->arguments[i]->name;
        tile_map_set(map, body->arguments[i], tile_op_result(program_id, i));
    }
}

static void remap_operands(TileOp *op, void *state) {
    const TileMap *map = state;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        TileValue *with = tile_map_get(map, tile_op_operand(op, i));
        if (with) tile_op_set_operand(op, i, with);
    }
}

static void split_grid(Programs *p, TileOp *grid, unsigned number) {
    TileMap map;
    tile_map_init(&map, p->scratch);
    TileFunc *phase = create_phase(p, number, grid, &map);
    copy_host_ops(p, phase, grid, &map);
    uint32_t count = phase->body.argument_count;
    TileBuilder b = tile_builder_at_end(p->module, &phase->body);
    b.location = grid->location;
    TileOp *loop = tile_build_for(&b, phase->body.arguments[count - 2], phase->body.arguments[count - 1],
                                  tile_build_i64(&b, 1), NULL, 0);
    if (tile_op_get(grid, TILE_ATTRIBUTE_JOINED))
        tile_op_set_integer(p->module, loop, TILE_ATTRIBUTE_JOINED, tile_op_integer(grid, TILE_ATTRIBUTE_JOINED, 0));
    TileBuilder inside = tile_builder_at_end(p->module, &loop->regions[0]);
    inside.location = grid->location;
    TileValue *program = loop->regions[0].arguments[0];
    program->name = tile_intern_string(p->module->context->strings, "program");
    map_indices(p, &inside, grid, program, &map);
    tile_block_splice(&loop->regions[0], &grid->regions[0]);
    tile_block_walk(&loop->regions[0], remap_operands, &map);
    tile_build_end(&b, TILE_OP_RETURN, NULL, 0);
    TileBuilder remaining = tile_builder_at_end(p->module, &grid->regions[0]);
    tile_build_end(&remaining, TILE_OP_YIELD, NULL, 0);
}

TileResult tile_pass_programs(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    Programs p = {.module = context->module, .kernel = func, .scratch = context->scratch};
    tile_map_init(&p.positions, p.scratch);
    uintptr_t position = 0;
    for (TileOp *op = func->body.first; op; op = op->next) {
        tile_map_set(&p.positions, op, (void *)++position);
        if (op->id == TILE_OP_TEMP) tile_list_push(p.scratch, &p.temps, op);
    }
    unsigned number = 0;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) split_grid(&p, op, number++);
    return number ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
