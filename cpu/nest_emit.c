/* Emission: a tree of loops to ops. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"
#include "lang/ir/eval.h"

static TileName combine_name(TileName kind, bool with_index) {
    if (with_index) return kind == TILE_KIND_MIN ? TILE_COMBINE_ARG_MIN : TILE_COMBINE_ARG_MAX;
    switch ((int)kind) {
#define REDUCTION(id, name, op, identity, order, repeats)                                                              \
    case TILE_KIND_##id: return TILE_COMBINE_##id;
#include "lang/scalar/reductions.def"
    default: return TILE_COMBINE_SUM;
    }
}

static TileName kind_of(const TileOp *op) { return (TileName)tile_op_integer(op, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM); }

static unsigned rank_of(const TileType *type) { return tile_type_is_tile(type) ? type->rank : 0; }

/* Loop-carried values: initial ones, or those that the body yields. */
typedef struct Carried {
    TILE_LIST(TileValue *) values; /* initial, then yielded */
    TILE_LIST(int64_t) combine;
} Carried;

/* ---- statements ---- */

void nest_define(Nest *n, NestStatement *s, TileValue *const *index, TileValue *result) {
    nest_remember(n, s->value, index, result);
    bool outside = !nest_is_scan(s) && !s->parallel_count; /* not inside of a loop */
    if (rank_of(s->value->type) == 0 || (outside && nest_is_single(s->value->type)))
        nest_info(n, s->value)->mapped = result;
    if (s->buffer)
        nest_store(n, result, nest_buffer_address(n, s->buffer, rank_of(s->value->type), index), NULL, s->op);
}

static void emit_store(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK], *mask, *value = tile_op_operand(s->op, 1);
    unsigned level;
    nest_point(n, s, rank_of(value->type), index);
    value = nest_pull(n, value, index);
    TileValue *address = nest_address(n, s->op, index, &mask, &level);
    nest_store(n, value, address, mask, s->op);
}

static void emit_atomic(Nest *n, NestStatement *s) {
    TileValue *index[TILE_MAX_TILE_RANK], *mask, *operands[4];
    unsigned level, count = tile_access_first(s->op);
    nest_point(n, s, rank_of(s->value->type), index);
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
    nest_point(n, s, rank_of(s->value->type), index);
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

static void emit_contribution(Nest *n, NestStatement *s, Carried *carried) {
    TileValue *index[TILE_MAX_TILE_RANK], *at[TILE_MAX_TILE_RANK];
    unsigned rank = tile_op_operand(s->op, 0)->type->rank;
    unsigned axis = (unsigned)tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    nest_point(n, s, rank - 1, at);
    for (unsigned i = 0; i < rank; i++) index[i] = at[i - (i > axis)];
    index[axis] = n->open[n->open_count - 1].index;
    for (unsigned i = 0; i < s->op->operand_count; i++)
        tile_list_push(n->arena, &carried->values, nest_pull(n, tile_op_operand(s->op, i), index));
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

static bool is_reduction(const NestStatement *s) { return s && (s->kind == NEST_REDUCE || s->kind == NEST_ARG_REDUCE); }

static void emit_statement(Nest *n, NestStatement *s, Carried *carried) {
    n->current = s;
    if (is_reduction(s))
        emit_contribution(n, s, carried);
    else
        nest_emit_statement(n, s);
}

/* ---- loops ---- */

static void add_initial(Nest *n, const NestStatement *s, Carried *carried) {
    TileName kind = kind_of(s->op);
    bool with_index = s->kind == NEST_ARG_REDUCE;
    TileScalar scalar = tile_op_operand(s->op, 0)->type->scalar;
    tile_list_push(n->arena, &carried->values, nest_bits(n, scalar, tile_eval_identity(kind, scalar)));
    tile_list_push(n->arena, &carried->combine, combine_name(kind, with_index));
    if (!with_index) return;
    tile_list_push(n->arena, &carried->values, nest_constant(n, INT64_MAX));
    tile_list_push(n->arena, &carried->combine, TILE_COMBINE_WITH);
}

/* The place of its first statement. Ops in the loop do not tell it: cse may merge them with those of other loops. */
static TileLocation place_of(const NestNode *node) {
    while (!node->statement) node = node->children.items[0];
    return node->statement->op->location;
}

static TileOp *open_loop(Nest *n, const NestNode *node, const Carried *carried) {
    TileValue *lo, *hi;
    nest_bounds(n, &node->level.atoms, node->level.extent, &lo, &hi);
    TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
    b.location = place_of(node);
    TileOp *loop = tile_build_loop(&b, node->level.kind, lo, hi, node->level.extent, carried->values.items,
                                   (unsigned)carried->values.count);
    if (carried->combine.count && node->level.kind == TILE_LOOP_KIND_REDUCE) {
        TileAttribute combine = {.key = TILE_ATTRIBUTE_COMBINE,
                                 .count = (uint32_t)carried->combine.count,
                                 .integers = carried->combine.items};
        tile_op_set(n->module, loop, combine);
        tile_op_set_integer(n->module, loop, TILE_ATTRIBUTE_ORDER, node->level.order);
    }
    n->open[n->open_count++] = (NestOpen){.block = &loop->regions[0],
                                          .loop = loop,
                                          .index = loop->regions[0].arguments[0],
                                          .level = &node->level,
                                          .memo_count = (uint32_t)n->memo.count};
    return loop;
}

static void close_loop(Nest *n, const Carried *carried) {
    NestOpen *open = &n->open[n->open_count - 1];
    TileBuilder b = tile_builder_at_end(n->module, open->block);
    tile_build_end(&b, TILE_OP_YIELD, carried->values.items, (unsigned)carried->values.count);
    nest_forget(n, open->memo_count);
    n->open_count--;
}

/* The index of an arg_reduce; 0 if there is no element. */
static TileValue *found_index(Nest *n, TileValue *index) {
    TileValue *operands[] = {index, nest_constant(n, INT64_MAX)};
    TileValue *none = nest_op(n, TILE_OP_EQ, operands, 2, TILE_BOOL, NULL);
    TileValue *arms[] = {none, nest_constant(n, 0), index};
    return nest_op(n, TILE_OP_SELECT, arms, 3, TILE_I64, NULL);
}

static void define_results(Nest *n, const NestNode *node, TileOp *loop) {
    unsigned next = 0;
    for (size_t i = 0; i < node->children.count; i++) {
        NestStatement *s = node->children.items[i]->statement;
        if (!is_reduction(s)) continue;
        TileValue *index[TILE_MAX_TILE_RANK];
        bool with_index = s->kind == NEST_ARG_REDUCE;
        TileValue *result = tile_op_result(loop, next + with_index);
        next += 1 + with_index;
        nest_point(n, s, rank_of(s->value->type), index);
        n->current = s;
        nest_define(n, s, index, with_index ? found_index(n, result) : result);
    }
}

static void emit_node(Nest *n, const NestNode *node, Carried *carried);

static void emit_loop(Nest *n, const NestNode *node) {
    if (nest_is_fold(node)) {
        nest_emit_fold(n, node);
        return;
    }
    Carried carried = {0}, yielded = {0};
    for (size_t i = 0; i < node->children.count; i++)
        if (is_reduction(node->children.items[i]->statement))
            add_initial(n, node->children.items[i]->statement, &carried);
    TileOp *loop = open_loop(n, node, &carried);
    for (size_t i = 0; i < node->children.count; i++) emit_node(n, node->children.items[i], &yielded);
    close_loop(n, &yielded);
    define_results(n, node, loop);
}

static void emit_node(Nest *n, const NestNode *node, Carried *carried) {
    if (node->statement)
        emit_statement(n, node->statement, carried);
    else
        emit_loop(n, node);
}

void nest_flush(Nest *n) {
    nest_store_batch(n);
    for (size_t i = 0; i < n->root.children.count; i++) emit_node(n, n->root.children.items[i], NULL);
    for (size_t i = 0; i < n->batch.count; i++) n->batch.items[i]->pending = false;
    n->root.children.count = 0;
    n->batch.count = 0;
    n->current = NULL;
}
