/* The code of a statement at one point of its loops. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"

void nest_define(Nest *n, NestStatement *s, TileValue *const *index, TileValue *result) {
    nest_remember(n, s->value, index, result);
    bool outside = !nest_is_scan(s) && !s->parallel_count; /* not inside of a loop */
    if (nest_rank(s->value->type) == 0 || (outside && nest_is_single(s->value->type)))
        nest_info(n, s->value)->mapped = result;
    if (s->buffer)
        nest_store(n, result, nest_buffer_address(n, s->buffer, nest_rank(s->value->type), index), NULL, s->op);
}

static void emit_store(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK], *mask, *value = tile_op_operand(s->op, 1);
    unsigned level;
    nest_point(n, s, nest_rank(value->type), index);
    value = nest_pull(n, value, index);
    TileValue *address = nest_address(n, s->op, index, &mask, &level);
    nest_store(n, value, address, mask, s->op);
}

static void emit_atomic(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK], *mask, *operands[4];
    unsigned level, count = tile_access_first(s->op);
    nest_point(n, s, nest_rank(s->value->type), index);
    for (unsigned i = 1; i < count; i++) operands[i] = nest_pull(n, tile_op_operand(s->op, i), index);
    operands[0] = nest_address(n, s->op, index, &mask, &level);
    int64_t part = TILE_PARTS_MASK;
    TileAttribute attributes[] = {*tile_op_get(s->op, TILE_ATTRIBUTE_UPDATE),
                                  {.key = TILE_ATTRIBUTE_PARTS, .count = 1, .integers = &part}};
    if (mask) operands[count++] = mask;
    TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
    b.location = s->op->location;
    const TileType *type = tile_type_scalar(n->module->context, s->value->type->scalar);
    TileOp *op = tile_build_op(&b, TILE_OP_ATOMIC, operands, count, attributes, mask ? 2 : 1, &type, 1);
    nest_define(n, s, index, tile_op_result(op, 0));
}

static void emit_keep(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK];
    nest_point(n, s, nest_rank(s->value->type), index);
    nest_define(n, s, index, nest_compute(n, s->value, index));
}

static void emit_copy(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK];
    unsigned rank = s->copies[0].value->type->rank;
    nest_point(n, s, rank, index);
    TileValue **values = TILE_NEW_ARRAY(n->arena, TileValue *, s->copy_count);
    for (unsigned i = 0; i < s->copy_count; i++) values[i] = nest_pull(n, s->copies[i].value, index);
    for (unsigned i = 0; i < s->copy_count; i++)
        nest_store(n, values[i], nest_buffer_address(n, s->copies[i].to, rank, index), NULL, s->op);
}

void nest_emit_scalar(Nest *n, TileOp *op) {
    TileBuilder b = tile_builder_at_end(n->module, n->open[0].block);
    b.location = op->location;
    if (op->id == TILE_OP_RESHAPE) {
        nest_info(n, tile_op_result(op, 0))->mapped = nest_first_lane(n, tile_op_operand(op, 0));
        return;
    }
    if (op->id == TILE_OP_DIM) {
        const NestTensor *tensor = nest_info(n, tile_op_operand(op, 0))->tensor;
        int64_t axis = tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0), extent = tensor->facts.facts.extent[axis];
        if (extent != TILE_UNKNOWN) n->func->parameters[tensor->pointer->index].used_extent |= 1u << axis;
        nest_info(n, tile_op_result(op, 0))->mapped =
            extent == TILE_UNKNOWN ? tensor->dim[axis] : nest_constant(n, extent);
        return;
    }
    if (op->id == TILE_OP_LOAD_TILE) {
        nest_info(n, tile_op_result(op, 0))->mapped = nest_load_scalar(n, tile_op_result(op, 0));
        return;
    }
    TileValue **operands = TILE_NEW_ARRAY(n->arena, TileValue *, op->operand_count);
    const TileType **types = TILE_NEW_ARRAY(n->arena, const TileType *, op->result_count);
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = nest_scalar(n, tile_op_operand(op, i));
    for (unsigned i = 0; i < op->result_count; i++) types[i] = op->results[i].type;
    TileOp *copy = tile_build_op(&b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count,
                                 types, op->result_count);
    for (unsigned i = 0; i < op->result_count; i++) {
        copy->results[i].name = op->results[i].name;
        nest_info(n, tile_op_result(op, i))->mapped = tile_op_result(copy, i);
    }
}

static TileValue *new_buffer(Nest *n, int64_t words) {
    TileBuilder b = tile_builder_at_end(n->module, &n->entry);
    return tile_build_buffer(&b, 8 * words, 64);
}

/* Tiles are in the buffers of the copies ahead of it; each scalar gets its own buffer. */
static void emit_print(Nest *n, NestStatement *s) {
    const TileOp *op = s->op;
    const NestStatement *copy = tile_map_get(&n->statements, op);
    TileValue **operands = TILE_NEW_ARRAY(n->arena, TileValue *, op->operand_count + 1);
    operands[0] = new_buffer(n, op->operand_count + 1);
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (tile_type_is_tile(value->type)) {
            operands[1 + i] = nest_buffer_pointer(n, copy->copies->to);
            copy = copy->next;
        } else {
            operands[1 + i] = new_buffer(n, 1);
            nest_store(n, nest_scalar(n, value), operands[1 + i], NULL, op);
        }
    }
    TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
    b.location = op->location;
    tile_build_op(&b, TILE_OP_PRINT_ITEMS, operands, op->operand_count + 1, op->attributes, op->attribute_count, NULL,
                  0);
}

void nest_emit_statement(Nest *n, NestStatement *s) {
    n->current = s;
    switch (s->kind) {
    case NEST_SCALAR: nest_emit_scalar(n, s->op); break;
    case NEST_STORE: emit_store(n, s); break;
    case NEST_ATOMIC: emit_atomic(n, s); break;
    case NEST_KEEP: emit_keep(n, s); break;
    case NEST_COPY: emit_copy(n, s); break;
    case NEST_DOT: nest_emit_dot(n, s); break;
    case NEST_PRINT: emit_print(n, s); break;
    case NEST_READ:
    case NEST_REDUCE:
    case NEST_ARG_REDUCE:
    case NEST_FOLD:
    case NEST_SCAN:
    case NEST_PART: break;
    }
}
