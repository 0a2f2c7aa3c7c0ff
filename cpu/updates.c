/* Purpose: version atomic updates. A launch whose programs all run in one call of the phase runs them on one thread, one
 * after the other: its updates take no atomic access, and lanes that never meet are updated in vectors.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, inout>, %v: f32) {
 *       %n = dim %x {axis = 0} : i64
 *       grid %n (%i: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%x: tensor<f32, 1, inout> {role = data, argument = 0}, %v: f32 {role = scalar, argument = 1},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) kernel = @k phase = 0 {
 *       %one = const {value = 1} : i64
 *       for %begin, %end, %one (%i: i64) {
 *         %old = atomic_tile %x, %v, %i {access = [index], update = add} : f32
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, inout>, %v: f32) {
 *       %n = dim %x {axis = 0} : i64
 *       grid %n (%i: i64) {
 *         yield
 *       }
 *       return
 *     }
 *     func phase tile @k.0(%x: tensor<f32, 1, inout> {role = data, argument = 0}, %v: f32 {role = scalar, argument = 1},
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) kernel = @k phase = 0 {
 *       %n = dim %x {axis = 0} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = eq %begin, %0 : bool
 *       %2 = eq %end, %n : bool
 *       %3 = and %1, %2 : bool
 *       %one = const {value = 1} : i64
 *       for %begin, %end, %one (%i: i64) {
 *         if %3 {
 *           %old = atomic_tile %x, %v, %i {access = [index], update = add, alone = 1} : f32
 *           yield
 *         } {
 *           %old.1 = atomic_tile %x, %v, %i {access = [index], update = add} : f32
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Updates of a temporary that each program has for itself need no version.
 *
 * Needs: programs, before expand-programs. Keeps: tile form. Cost: linear; the code of each update twice. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

typedef struct Updates {
    TileModule *module;
    TileFunc *func;
    TileArena *scratch;
    uint32_t grids; /* of the kernel, seen so far */
    TileOp *grid;   /* the phase's one */
    TileMap copies; /* values of the kernel to those of the phase */
    TILE_LIST(TileOp *) found;
} Updates;

static void find_update(TileOp *op, void *state) {
    Updates *updates = state;
    if (op->id == TILE_OP_ATOMIC_TILE) tile_list_push(updates->scratch, &updates->found, op);
}

static void find_grid(TileOp *op, void *state) {
    Updates *updates = state;
    if (op->id == TILE_OP_GRID && updates->grids++ == updates->func->phase) updates->grid = op;
}

static TileValue *parameter_of(const TileFunc *func, TileParameterRole role) {
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == role) return func->body.arguments[i];
    return NULL;
}

/* The value of the kernel in the phase, computed there by the same ops; NULL: it is more than arithmetic on extents and
 * parameters. */
static TileValue *copy_value(Updates *updates, TileBuilder *b, TileValue *value) {
    TileValue *known = tile_map_get(&updates->copies, value);
    TileOp *op = value->op;
    if (known || !op) return known;
    bool simple = op->id == TILE_OP_CONST || op->id == TILE_OP_DIM ||
                  tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE;
    for (unsigned i = 0; simple && i < op->operand_count; i++) simple = copy_value(updates, b, tile_op_operand(op, i)) != NULL;
    if (!simple || op->block->op) return NULL;
    tile_builder_insert(b, tile_op_clone(updates->module, op, &updates->copies));
    return tile_map_get(&updates->copies, value);
}

/* Are begin .. end all programs of the grid? */
static TileValue *build_alone(Updates *updates) {
    TileFunc *func = updates->func, *kernel = func->kernel;
    TileValue *begin = parameter_of(func, TILE_ROLE_BEGIN), *end = parameter_of(func, TILE_ROLE_END), *count = NULL;
    if (!kernel || !begin || !end) return NULL;
    tile_block_walk(&kernel->body, find_grid, updates);
    if (!updates->grid) return NULL;
    for (uint32_t i = 0; i < kernel->body.argument_count; i++)
        tile_map_set(&updates->copies, kernel->body.arguments[i], func->body.arguments[i]);
    TileBuilder b = tile_builder_before(updates->module, func->body.first);
    for (unsigned i = 0; i < updates->grid->operand_count; i++) {
        TileValue *extent = copy_value(updates, &b, tile_op_operand(updates->grid, i));
        if (!extent) return NULL;
        count = count ? tile_build_binary(&b, TILE_OP_MUL, count, extent) : extent;
    }
    TileValue *first = tile_build_binary(&b, TILE_OP_EQ, begin, tile_build_i64(&b, 0));
    return count ? tile_build_binary(&b, TILE_OP_AND, first, tile_build_binary(&b, TILE_OP_EQ, end, count)) : first;
}

static void build_version(Updates *updates, TileOp *branch, unsigned region, TileOp *op) {
    TileMap map;
    tile_map_init(&map, updates->scratch);
    TileBuilder b = tile_builder_at_end(updates->module, &branch->regions[region]);
    b.location = op->location;
    TileOp *copy = tile_op_clone(updates->module, op, &map);
    tile_builder_insert(&b, copy);
    if (region == 0) tile_op_set_integer(updates->module, copy, TILE_ATTRIBUTE_ALONE, 1);
    TileValue *old = tile_op_result(copy, 0);
    tile_build_end(&b, TILE_OP_YIELD, &old, branch->result_count);
}

static void version(Updates *updates, TileOp *op, TileValue *alone) {
    const TileType *type = op->results[0].type;
    TileBuilder b = tile_builder_before(updates->module, op);
    TileOp *branch = tile_build_if(&b, alone, &type, tile_value_has_uses(&op->results[0]) ? 1 : 0);
    build_version(updates, branch, 0, op);
    build_version(updates, branch, 1, op);
    if (branch->result_count) tile_value_replace(&op->results[0], &branch->results[0]);
    tile_op_erase(op);
}

/* Does the program alone access the tensor? It lies in memory of the thread then, and all updates of it take no atomic access. */
static bool is_own(const TileFunc *func, const TileOp *op) {
    const TileValue *tensor = tile_op_operand(op, 0);
    return !tensor->op && !tensor->block->op && func->parameters[tensor->index].own;
}

TileResult tile_pass_cpu_updates(TilePassContext *context, TileFunc *func) {
    Updates updates = {.module = context->module, .func = func, .scratch = context->scratch};
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    tile_map_init(&updates.copies, updates.scratch);
    tile_block_walk(&func->body, find_update, &updates);
    size_t shared = 0;
    for (size_t i = 0; i < updates.found.count; i++) {
        TileOp *op = updates.found.items[i];
        if (is_own(func, op))
            tile_op_set_integer(updates.module, op, TILE_ATTRIBUTE_ALONE, 1);
        else
            updates.found.items[shared++] = op;
    }
    bool changed = shared < updates.found.count;
    TileOp *before = func->body.first;
    TileValue *alone = shared ? build_alone(&updates) : NULL;
    changed |= alone || func->body.first != before;
    for (size_t i = 0; alone && i < shared; i++) version(&updates, updates.found.items[i], alone);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
