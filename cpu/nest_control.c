/* Regions: loops and branches over scalars and buffers instead of tiles, and the order of the ops between them. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"

static void scalar_op(Nest *n, TileOp *op) {
    if (nest_schedule_scalar(n, op)) return;
    if (nest_ends_batch(n, op)) nest_flush(n);
    nest_emit_scalar(n, op);
}

/* ---- regions ---- */

/* Is the loop-carried value in a scalar and not in a buffer? */
static bool is_scalar(Nest *n, const TileValue *value) { return !nest_info(n, value)->slot; }

static void emit_copies(Nest *n, const TileOp *op) {
    nest_schedule_copies(n, op);
    nest_flush(n);
}

typedef TILE_LIST(TileValue *) Values;

static const TileType *element_type(Nest *n, const TileValue *value) {
    return tile_type_scalar(n->module->context, value->type->scalar);
}

/* The operands of the name for those results of `owner` that are carried in scalars. */
static void collect_carried(Nest *n, const TileOp *op, TileOperand name, const TileOp *owner, Values *values) {
    for (unsigned i = 0; i < owner->result_count; i++) {
        TileValue *value = tile_op_named_at(op, name, i);
        if (!is_scalar(n, &owner->results[i])) continue;
        tile_list_push(n->arena, values,
                       tile_type_is_tile(value->type) ? nest_first_lane(n, value) : nest_scalar(n, value));
    }
}

static void map_results(Nest *n, const TileOp *old, const TileOp *op) {
    unsigned next = 0;
    for (unsigned i = 0; i < old->result_count; i++) {
        if (!is_scalar(n, &old->results[i])) continue;
        op->results[next].name = old->results[i].name;
        nest_info(n, &old->results[i])->mapped = &op->results[next++];
    }
}

static void map_arguments(Nest *n, const TileOp *old, const TileBlock *from, const TileBlock *to, unsigned leading) {
    unsigned next = leading;
    for (unsigned i = 0; i < from->argument_count; i++) {
        TileValue *argument = from->arguments[i];
        if (i >= leading && !is_scalar(n, &old->results[i - leading])) continue;
        TileValue *mapped = to->arguments[i < leading ? i : next++];
        mapped->name = argument->name;
        nest_info(n, argument)->mapped = mapped;
    }
}

static void for_op(Nest *n, TileOp *old) {
    Values carried = {0};
    tile_remark_loop(n->context, n->func, old);
    emit_copies(n, old);
    collect_carried(n, old, TILE_OPERAND_CARRIED, old, &carried);
    TileValue *bounds[3];
    for (unsigned i = 0; i < 3; i++) bounds[i] = nest_scalar(n, tile_op_operand(old, i));
    TileBuilder b = tile_builder_at_end(n->module, n->open[0].block);
    b.location = old->location;
    TileOp *op = tile_build_for(&b, bounds[0], bounds[1], bounds[2], carried.items, (unsigned)carried.count);
    for (unsigned i = 0; i < old->attribute_count; i++) tile_op_set(n->module, op, old->attributes[i]);
    map_arguments(n, old, &old->regions[0], &op->regions[0], 1);
    nest_block(n, &old->regions[0], &op->regions[0]);
    map_results(n, old, op);
}

static void while_op(Nest *n, TileOp *old) {
    Values carried = {0};
    emit_copies(n, old);
    collect_carried(n, old, TILE_OPERAND_CARRIED, old, &carried);
    TileBuilder b = tile_builder_at_end(n->module, n->open[0].block);
    b.location = old->location;
    TileOp *op = tile_build_while(&b, carried.items, (unsigned)carried.count);
    for (unsigned r = 0; r < 2; r++) {
        map_arguments(n, old, &old->regions[r], &op->regions[r], 0);
        nest_block(n, &old->regions[r], &op->regions[r]);
    }
    map_results(n, old, op);
}

static void if_op(Nest *n, TileOp *old) {
    nest_flush(n);
    TILE_LIST(const TileType *) types = {0};
    for (unsigned i = 0; i < old->result_count; i++)
        if (is_scalar(n, &old->results[i])) tile_list_push(n->arena, &types, element_type(n, &old->results[i]));
    TileBuilder b = tile_builder_at_end(n->module, n->open[0].block);
    b.location = old->location;
    TileOp *op = tile_build_if(&b, nest_scalar(n, tile_op_operand(old, 0)), types.items, (unsigned)types.count);
    for (unsigned r = 0; r < 2; r++) nest_block(n, &old->regions[r], &op->regions[r]);
    map_results(n, old, op);
}

static void end_op(Nest *n, TileOp *old) {
    Values values = {0};
    emit_copies(n, old);
    const TileOp *owner = old->block->op;
    bool condition = old->id == TILE_OP_CONDITION;
    if (condition) tile_list_push(n->arena, &values, nest_scalar(n, tile_op_operand(old, 0)));
    if (owner) collect_carried(n, old, condition ? TILE_OPERAND_CARRIED : TILE_OPERAND_VALUES, owner, &values);
    TileBuilder b = tile_builder_at_end(n->module, n->open[0].block);
    b.location = old->location;
    tile_build_end(&b, (TileOpId)old->id, values.items, (unsigned)values.count);
}

/* ---- blocks ---- */

static void plain_op(Nest *n, TileOp *op) {
    if (nest_is_scalar_op(n, op))
        scalar_op(n, op);
    else
        nest_schedule_op(n, op);
    if (nest_batch_is_full(n)) nest_flush(n);
}

void nest_block(Nest *n, TileBlock *old, TileBlock *block) {
    NestOpen outside = n->open[0];
    n->open[0] = (NestOpen){.block = block, .memo_count = (uint32_t)n->memo.count};
    for (TileOp *op = old->first; op; op = op->next) {
        if (op->id == TILE_OP_FOR)
            for_op(n, op);
        else if (op->id == TILE_OP_WHILE)
            while_op(n, op);
        else if (op->id == TILE_OP_IF)
            if_op(n, op);
        else if (tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR)
            end_op(n, op);
        else
            plain_op(n, op);
    }
    nest_forget(n, n->open[0].memo_count);
    n->open[0] = outside;
}
