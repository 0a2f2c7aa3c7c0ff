/* The code of a statement at one point of its loops. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

void nest_define(Nest *n, NestStatement *s, TileValue *const *index, TileValue *result) {
    nest_remember(n, s->value, index, result);
    bool outside = !nest_is_scan(s) && !s->parallel_count; /* not inside of a loop */
    if (nest_rank(s->value->type) == 0 || (outside && nest_is_single(s->value->type)))
        nest_info(n, s->value)->mapped = result;
    if (s->buffer && s->buffer->scalar != result->type->scalar) /* of a dot's panel */
        result = nest_op(n, TILE_OP_CONVERT, &result, 1, s->buffer->scalar, NULL);
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

/* What an update stores. operands: address, value, expected. */
static TileValue *updated(TileBuilder *b, TileName update, TileValue *old, TileValue *const *operands) {
    TileValue *value = operands[1];
    TileScalar scalar = value->type->scalar;
    if (update == TILE_UPDATE_CAS) {
        static const TileScalar words[] = {TILE_U8, TILE_U16, TILE_U32, TILE_U64};
        TileScalar bits = words[__builtin_ctz(tile_scalar_bytes(scalar))];
        TileValue *same = tile_build_binary(b, TILE_OP_EQ, tile_build_bitcast(b, old, bits),
                                            tile_build_bitcast(b, operands[2], bits));
        return tile_build_ternary(b, TILE_OP_SELECT, same, value, old);
    }
    TileOpId id = update == TILE_UPDATE_ADD ? TILE_OP_ADD : update == TILE_UPDATE_MIN ? TILE_OP_MIN : TILE_OP_MAX;
    return tile_build_binary(b, id, old, value);
}

/* The same without atomic accesses: returns the old value. */
static TileValue *emit_alone(Nest *n, const NestStatement *s, TileValue *const *operands, TileValue *mask) {
    TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
    b.location = s->op->location;
    const TileType *type = tile_type_scalar(n->module->context, s->value->type->scalar);
    TileValue *old = tile_build_load(&b, type, operands[0], mask, NULL, 0);
    TileName update = (TileName)tile_op_integer(s->op, TILE_ATTRIBUTE_UPDATE, TILE_UPDATE_ADD);
    TileOp *store = tile_build_store(&b, updated(&b, update, old, operands), operands[0], mask, 0);
    tile_op_set_integer(n->module, old->op, TILE_ATTRIBUTE_ALONE, 1);
    tile_op_set_integer(n->module, store, TILE_ATTRIBUTE_ALONE, 1);
    return old;
}

static void emit_atomic(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK], *mask, *operands[4];
    unsigned level, count = tile_access_first(s->op);
    nest_point(n, s, nest_rank(s->value->type), index);
    for (unsigned i = 1; i < count; i++) operands[i] = nest_pull(n, tile_op_operand(s->op, i), index);
    operands[0] = nest_address(n, s->op, index, &mask, &level);
    if (tile_op_get(s->op, TILE_ATTRIBUTE_ALONE)) {
        nest_define(n, s, index, emit_alone(n, s, operands, mask));
        return;
    }
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
        if (extent != TILE_UNKNOWN) n->func->parameters[tensor->parameter->index].used_extent |= 1u << axis;
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

/* ---- blocks of points ---- */

static void open_runs(Nest *n, const NestBlock *block, TileLocation location) {
    for (unsigned i = 0; i < block->run_count; i++) {
        const NestLevel *level = &block->runs[i];
        TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
        b.location = location;
        TileOp *loop = tile_build_loop(&b, level->kind, nest_constant(n, 0), nest_constant(n, level->extent), level->extent,
                                       NULL, 0);
        n->open[n->open_count++] = (NestOpen){.block = &loop->regions[0],
                                              .loop = loop,
                                              .index = loop->regions[0].arguments[0],
                                              .level = level,
                                              .memo_count = (uint32_t)n->memo.count,
                                              .sum_count = (uint32_t)n->sums.count};
    }
}

static void close_runs(Nest *n, unsigned count) {
    for (; n->open_count > count; n->open_count--) {
        TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
        tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    }
}

/* The bits of the number, at the places of those of the set. */
static uint32_t spread(uint32_t number, uint32_t set) {
    uint32_t bits = 0;
    for (; set; set &= set - 1, number >>= 1) bits |= (number & 1u) * (set & -set);
    return bits;
}

/* The indices of a point, whose fixed bits are given. `first`: the level of the outermost run. */
static void point_of_block(Nest *n, const NestStatement *s, unsigned first, uint32_t fixed, TileValue **index) {
    const NestBlock *block = s->block;
    unsigned low = 0;
    nest_point(n, s, block->type->rank, index);
    for (unsigned axis = block->type->rank; axis-- > block->first_axis;) {
        unsigned bits = (unsigned)__builtin_ctzll((uint64_t)block->type->extent[axis]);
        NestSum sum = {.constant = (int64_t)(fixed >> low) & (block->type->extent[axis] - 1)};
        for (unsigned i = 0; i < block->run_count; i++)
            if (block->shift[i] >= low && block->shift[i] < low + bits)
                sum.scale[first + i] = INT64_C(1) << (block->shift[i] - low);
        index[axis] = nest_sum_value(n, &sum);
        low += bits;
    }
}

static TileValue *compute_point(Nest *n, NestStatement *s, TileValue *const *index) {
    n->current = s;
    return s->kind == NEST_KEEP ? nest_compute(n, s->value, index) : nest_pull(n, tile_op_operand(s->op, 1), index);
}

static void store_point(Nest *n, NestStatement *s, TileValue *const *index, TileValue *value) {
    TileValue *mask;
    unsigned level;
    n->current = s;
    if (s->kind == NEST_KEEP) {
        nest_define(n, s, index, value);
        return;
    }
    TileValue *address = nest_address(n, s->op, index, &mask, &level);
    nest_store(n, value, address, mask, s->op);
}

void nest_emit_block(Nest *n, const NestNode *node) {
    const NestBlock *block = node->children.items[0]->statement->block;
    unsigned count = n->open_count, points = 1u << __builtin_popcount(block->fixed);
    uint32_t memo_count = (uint32_t)n->memo.count;
    size_t sum_count = n->sums.count, statements = node->children.count;
    TileValue **values = TILE_NEW_ARRAY(n->arena, TileValue *, points * statements);
    TileValue *index[TILE_MAX_TILE_RANK];
    open_runs(n, block, node->children.items[0]->statement->op->location);
    for (unsigned p = 0; p < points; p++)
        for (size_t i = 0; i < statements; i++) {
            NestStatement *s = node->children.items[i]->statement;
            point_of_block(n, s, count, spread(p, block->fixed), index);
            values[p * statements + i] = compute_point(n, s, index);
        }
    for (size_t i = 0; i < statements; i++)
        for (unsigned p = 0; p < points; p++) {
            NestStatement *s = node->children.items[i]->statement;
            point_of_block(n, s, count, spread(p, block->fixed), index);
            store_point(n, s, index, values[p * statements + i]);
        }
    close_runs(n, count);
    nest_forget(n, memo_count);
    n->sums.count = sum_count;
}
