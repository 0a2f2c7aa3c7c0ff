/* Emission: a tree of loops to ops. */
#include "cpu/nest.h"
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

/* Loop-carried values: initial ones, or those that the body yields. */
typedef struct Carried {
    TILE_LIST(TileValue *) values; /* initial, then yielded */
    TILE_LIST(int64_t) combine;
} Carried;

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

static bool is_reduction(const NestStatement *s) { return s && (s->kind == NEST_REDUCE || s->kind == NEST_ARG_REDUCE); }

static void emit_statement(Nest *n, NestStatement *s, Carried *carried) {
    n->current = s;
    if (is_reduction(s))
        emit_contribution(n, s, carried);
    else
        nest_emit_statement(n, s);
}

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
                                          .memo_count = (uint32_t)n->memo.count,
                                          .sum_count = (uint32_t)n->sums.count};
    return loop;
}

static void close_loop(Nest *n, const Carried *carried) {
    NestOpen *open = &n->open[n->open_count - 1];
    TileBuilder b = tile_builder_at_end(n->module, open->block);
    tile_build_end(&b, TILE_OP_YIELD, carried->values.items, (unsigned)carried->values.count);
    nest_forget(n, open->memo_count);
    n->sums.count = open->sum_count;
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
        nest_point(n, s, nest_rank(s->value->type), index);
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
    else if (node->block)
        nest_emit_block(n, node);
    else
        emit_loop(n, node);
}

/* Would a reader miss the value, which is not in memory for it? */
static void check_storage(Nest *n, const NestStatement *s) {
    bool registers;
    if (!s->value || s->kind == NEST_SCALAR || s->kind == NEST_DOT) return;
    unsigned shared = nest_loops_with_readers(s, &registers);
    if (s->buffer ? s->home == TILE_HOME_BUFFER && s->shared > shared : !registers)
        n->failure = "a tile is in registers, or in a buffer without an axis, for a reader that is in other loops";
}

void nest_flush(Nest *n) {
    for (size_t i = 0; i < n->batch.count; i++) check_storage(n, n->batch.items[i]);
    for (size_t i = 0; i < n->root.children.count && !n->failure; i++) emit_node(n, n->root.children.items[i], NULL);
    nest_end_batch(n);
    n->current = NULL;
}
