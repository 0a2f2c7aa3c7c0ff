#include "ptx/pipeline/unrolled.h"
#include "lang/ir/access.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"

/* Does the loop load what may be stored through the tensor? */
static bool is_loaded(const TileBlock *block, const TileValue *stored) {
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned r = 0; r < op->region_count; r++)
            if (is_loaded(&op->regions[r], stored)) return true;
        if (!op->region_count && tile_op_reads(op) && tile_memory_overlaps(stored, tile_memory_tensor(op))) return true;
    }
    return false;
}

bool gpu_store_is_apart(const TileOp *around, const TileOp *store) {
    const TileValue *tensor = tile_memory_tensor(store);
    for (const TileUse *use = tensor->first_use; use; use = use->next)
        if (use->user != store && !tile_op_is_pure(use->user)) return false;
    for (const TileOp *loop = store->block->op; loop; loop = loop->block->op) {
        bool repeats = loop->id == TILE_OP_WHILE || (loop->id == TILE_OP_FOR && !tile_loop_is_of_programs(loop));
        if (repeats && !tile_access_is_apart(store, loop)) return false;
    }
    return !is_loaded(&around->regions[0], tensor);
}

static TileValue *integer(TileBuilder *b, int64_t number) { return tile_build_i64(b, number); }

static TileValue *cast(TileBuilder *b, TileValue *value, TileScalar scalar) {
    const TileType *type = tile_type_scalar(b->module->context, scalar);
    return tile_op_result(tile_build_op(b, TILE_OP_BITCAST, &value, 1, NULL, 0, &type, 1), 0);
}

/* Where the last iterations begin, which are too few: behind as many as possible of so many together. From a negative
 * number to a large one it may be further than i64 reaches. */
static TileValue *first_of_rest(const GpuUnrolled *u, TileBuilder *b) {
    TileValue *lo = tile_op_named(u->loop, TILE_OPERAND_LO), *hi = tile_op_named(u->loop, TILE_OPERAND_HI);
    int64_t width = u->step * u->together, first;
    bool far = u->indices ? tile_index_range(u->indices, lo).lo < 0 : !tile_value_integer(lo, &first) || first < 0;
    TileValue *span = tile_build_binary(b, TILE_OP_SUB, tile_build_binary(b, TILE_OP_MAX, hi, lo), lo);
    if (u->step > 1) span = tile_build_binary(b, TILE_OP_ADD, span, integer(b, u->step - 1));
    TileValue *divisor = far ? tile_build_integer(b, tile_type_scalar(b->module->context, TILE_U64), width) : integer(b, width);
    TileValue *groups = tile_build_binary(b, TILE_OP_DIV, far ? cast(b, span, TILE_U64) : span, divisor);
    if (far) groups = cast(b, groups, TILE_I64);
    return tile_build_binary(b, TILE_OP_ADD, lo, tile_build_binary(b, TILE_OP_MUL, groups, integer(b, width)));
}

static void copy_op(const GpuUnrolled *u, TileBuilder *b, const TileOp *op, TileMap *map) {
    tile_builder_insert(b, tile_op_clone(u->context->module, op, map));
}

static TileValue *mapped(const TileMap *map, TileValue *value) {
    TileValue *copy = tile_map_get(map, value);
    return copy ? copy : value;
}

static bool is_in(const TileMap *ops, const TileOp *op) { return ops && tile_map_get(ops, op); }

static void fill_body(const GpuUnrolled *u, TileOp *loop) {
    TileBlock *from = &u->loop->regions[0], *body = &loop->regions[0];
    TileBuilder b = tile_builder_at_end(u->context->module, body);
    TileMap maps[GPU_MOST_TOGETHER];
    TileValue *values[GPU_MOST_CARRIED];
    b.location = loop->location;
    for (unsigned k = 0; k < u->together; k++) {
        TileValue *i = body->arguments[0];
        tile_map_init(&maps[k], u->context->scratch);
        if (k) i = tile_build_binary(&b, TILE_OP_ADD, i, integer(&b, k * u->step));
        tile_map_set(&maps[k], from->arguments[0], i);
    }
    for (const TileOp *op = from->first; op != from->last; op = op->next)
        for (unsigned k = 0; k < u->together && !is_in(u->late, op) && !is_in(u->last, op); k++) copy_op(u, &b, op, &maps[k]);
    for (unsigned v = 0; v < loop->result_count; v++) values[v] = body->arguments[1 + v];
    for (unsigned k = 0; k < u->together; k++) {
        for (unsigned v = 0; v < loop->result_count; v++) tile_map_set(&maps[k], from->arguments[1 + v], values[v]);
        for (const TileOp *op = from->first; op != from->last; op = op->next)
            if (is_in(u->late, op) && !is_in(u->last, op)) copy_op(u, &b, op, &maps[k]);
        for (unsigned v = 0; v < loop->result_count; v++)
            values[v] = mapped(&maps[k], tile_op_named_at(from->last, TILE_OPERAND_VALUES, v));
    }
    for (unsigned k = 0; k < u->together; k++)
        for (const TileOp *op = from->first; op != from->last; op = op->next)
            if (is_in(u->last, op)) copy_op(u, &b, op, &maps[k]);
    tile_build_end(&b, TILE_OP_YIELD, values, loop->result_count);
}

TileOp *gpu_unroll(const GpuUnrolled *u) {
    TileBuilder b = tile_builder_before(u->context->module, u->loop);
    TileValue *carried[GPU_MOST_CARRIED], *rest = u->rest ? u->rest : first_of_rest(u, &b);
    unsigned count, first = tile_op_operands(u->loop, TILE_OPERAND_CARRIED, &count),
                    lo = tile_op_operands(u->loop, TILE_OPERAND_LO, &count);
    b.location = u->loop->location;
    for (unsigned v = 0; v < u->loop->result_count; v++) carried[v] = tile_loop_carried(u->loop, v);
    TileOp *loop = tile_build_for(&b, tile_op_named(u->loop, TILE_OPERAND_LO), rest, integer(&b, u->step * u->together), carried,
                                  u->loop->result_count);
    for (unsigned i = 0; i < u->loop->attribute_count; i++)
        tile_op_set(u->context->module, loop, u->loop->attributes[i]);
    fill_body(u, loop);
    tile_op_set_operand(u->loop, lo, rest);
    for (unsigned v = 0; v < loop->result_count; v++) tile_op_set_operand(u->loop, first + v, &loop->results[v]);
    return loop;
}
