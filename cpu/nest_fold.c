/* Folds and scans by combiners. Serial ones become a loop with loop-carried accumulators; along the last axis they
 * become a fold_loop, which is vectorised in blocks. Statements that are fused with a scan run after its step at each
 * point. */
#include "cpu/nest.h"
#include "lang/ir/operands.h"

typedef struct NestFold {
    NestStatement *s;
    unsigned count;
    bool has_init;
    TileValue *acc[TILE_MAX_FOLD + 1]; /* accumulators, then, if needed, whether there has been an element */
    unsigned carried;
} NestFold;

bool nest_is_fold(const NestNode *node) {
    const NestStatement *s = node->children.items[0]->statement;
    return s && (s->kind == NEST_FOLD || s->kind == NEST_SCAN);
}

static TileBuilder here(Nest *n, const NestStatement *s) {
    TileBuilder b = tile_builder_at_end(n->module, n->open[n->open_count - 1].block);
    b.location = s->op->location;
    return b;
}

/* The index of a line; the points of a scan also have its own axis, which is dropped. */
static void line_index(Nest *n, const NestStatement *s, TileValue **index) {
    unsigned rank = tile_op_operand(s->op, 0)->type->rank;
    unsigned axis = (unsigned)tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    nest_point(n, s, nest_is_scan(s) ? rank : rank - 1, index);
    for (unsigned i = axis; nest_is_scan(s) && i + 1 < rank; i++) index[i] = index[i + 1];
}

static NestFold start_fold(Nest *n, NestStatement *s) {
    NestFold fold = {.s = s, .count = s->op->result_count, .has_init = tile_op_has_part(s->op, TILE_PARTS_INIT)};
    TileValue *index[TILE_MAX_TILE_RANK];
    n->current = s;
    line_index(n, s, index);
    for (unsigned i = 0; i < fold.count; i++)
        fold.acc[i] = fold.has_init ? nest_pull(n, tile_op_named_at(s->op, TILE_OPERAND_INIT, i), index)
                                    : nest_bits(n, tile_op_operand(s->op, i)->type->scalar, 0);
    fold.carried = fold.count;
    if (s->masked && !fold.has_init) fold.acc[fold.carried++] = nest_bits(n, TILE_BOOL, 0);
    return fold;
}

/* The elements at the point, and their mask (NULL: all are included). */
static TileValue *pull_elements(Nest *n, const NestFold *fold, TileValue **x) {
    TileValue *index[TILE_MAX_TILE_RANK], *at[TILE_MAX_TILE_RANK];
    const NestStatement *s = fold->s;
    unsigned rank = tile_op_operand(s->op, 0)->type->rank;
    unsigned axis = (unsigned)tile_op_integer(s->op, TILE_ATTRIBUTE_AXIS, 0);
    n->current = s;
    nest_point(n, s, nest_is_scan(s) ? rank : rank - 1, at);
    for (unsigned i = 0; i < rank; i++) index[i] = nest_is_scan(s) ? at[i] : at[i - (i > axis)];
    index[axis] = n->open[n->open_count - 1].index;
    for (unsigned i = 0; i < fold->count; i++) x[i] = nest_pull(n, tile_op_operand(s->op, i), index);
    return s->masked ? nest_pull(n, tile_op_named(s->op, TILE_OPERAND_MASK), index) : NULL;
}

static void define_parts(Nest *n, const NestFold *fold, TileValue *const *results) {
    TileValue *index[TILE_MAX_TILE_RANK];
    nest_point(n, fold->s, nest_rank(fold->s->value->type), index);
    for (unsigned i = 0; i < fold->count; i++) {
        NestStatement *part = nest_info(n, tile_op_result(fold->s->op, i))->statement;
        n->current = part;
        nest_define(n, part, index, results[i]);
    }
}

static void emit_others(Nest *n, const NestNode *node) {
    for (size_t i = 1; i < node->children.count; i++) nest_emit_statement(n, node->children.items[i]->statement);
}

static void open_block(Nest *n, const NestNode *node, TileOp *loop, unsigned region) {
    n->open[n->open_count++] = (NestOpen){.block = &loop->regions[region],
                                          .loop = loop,
                                          .index = loop->regions[region].arguments[0],
                                          .level = &node->level,
                                          .memo_count = (uint32_t)n->memo.count,
                                          .sum_count = (uint32_t)n->sums.count};
}

static void close_block(Nest *n, TileValue *const *values, unsigned count) {
    NestOpen *open = &n->open[n->open_count - 1];
    TileBuilder b = tile_builder_at_end(n->module, open->block);
    tile_build_end(&b, TILE_OP_YIELD, values, count);
    nest_forget(n, open->memo_count);
    n->sums.count = open->sum_count;
    n->open_count--;
}

/* ---- serial ---- */

static TileValue *select(TileBuilder *b, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(b, TILE_OP_SELECT, condition, x, y);
}

/* Combines fold->acc with the elements. */
static void step(Nest *n, NestFold *fold, TileOp *loop, TileValue *const *x, TileValue *counts) {
    TileBuilder b = here(n, fold->s);
    TileValue *next[TILE_MAX_FOLD], *begun = NULL;
    tile_build_combined(&b, tile_op_combiner(fold->s->op), fold->acc, x, next);
    if (!fold->has_init && counts) begun = fold->acc[fold->count];
    if (!fold->has_init && !counts)
        begun = tile_build_binary(&b, TILE_OP_NE, loop->regions[0].arguments[0], tile_op_operand(loop, 0));
    for (unsigned i = 0; i < fold->count; i++) {
        if (begun) next[i] = select(&b, begun, next[i], x[i]);
        fold->acc[i] = counts ? select(&b, counts, next[i], fold->acc[i]) : next[i];
    }
    if (fold->carried > fold->count) fold->acc[fold->count] = tile_build_binary(&b, TILE_OP_OR, begun, counts);
}

/* A reverse scan: the loop counts up, and the index down. */
static void reverse_index(Nest *n, TileOp *loop) {
    NestOpen *open = &n->open[n->open_count - 1];
    TileValue *last = nest_binary(n, TILE_OP_ADD, tile_op_operand(loop, 0), tile_op_operand(loop, 1));
    last = nest_binary(n, TILE_OP_SUB, last, nest_constant(n, 1));
    open->index = nest_binary(n, TILE_OP_SUB, last, open->index);
}

static void emit_serial(Nest *n, const NestNode *node, NestStatement *s) {
    TileValue *lo, *hi, *x[TILE_MAX_FOLD], *before[TILE_MAX_FOLD];
    NestFold fold = start_fold(n, s);
    nest_bounds(n, &node->level.atoms, node->level.extent, &lo, &hi);
    TileBuilder b = here(n, s);
    TileOp *loop = tile_build_loop(&b, TILE_LOOP_KIND_SEQUENTIAL, lo, hi, node->level.extent, fold.acc, fold.carried);
    open_block(n, node, loop, 0);
    for (unsigned i = 0; i < fold.carried; i++) fold.acc[i] = loop->regions[0].arguments[1 + i];
    if (tile_op_integer(s->op, TILE_ATTRIBUTE_REVERSE, 0)) reverse_index(n, loop);
    for (unsigned i = 0; i < fold.count; i++) before[i] = fold.acc[i];
    TileValue *counts = pull_elements(n, &fold, x);
    step(n, &fold, loop, x, counts);
    if (s->kind == NEST_SCAN) {
        define_parts(n, &fold, tile_op_integer(s->op, TILE_ATTRIBUTE_EXCLUSIVE, 0) ? before : fold.acc);
        emit_others(n, node);
    }
    close_block(n, fold.acc, fold.carried);
    for (unsigned i = 0; i < fold.count; i++) fold.acc[i] = tile_op_result(loop, i);
    if (s->kind == NEST_FOLD) define_parts(n, &fold, fold.acc);
}

/* ---- in blocks ---- */

static void emit_in_blocks(Nest *n, const NestNode *node, NestStatement *s) {
    TileValue *lo, *hi, *x[TILE_MAX_FOLD + 1];
    NestFold fold = start_fold(n, s);
    nest_bounds(n, &node->level.atoms, node->level.extent, &lo, &hi);
    TileBuilder b = here(n, s);
    TileOp *loop = tile_build_fold_loop(&b, lo, hi, node->level.extent, fold.has_init ? fold.acc : NULL, s->op);
    const int64_t parts[] = {TILE_PARTS_MASK, TILE_PARTS_INIT};
    if (s->masked) tile_op_set_integers(n->module, loop, TILE_ATTRIBUTE_PARTS, parts, 1 + fold.has_init);
    open_block(n, node, loop, 0);
    x[fold.count] = pull_elements(n, &fold, x);
    close_block(n, x, fold.count + s->masked);
    if (s->kind == NEST_SCAN) {
        open_block(n, node, loop, 2);
        define_parts(n, &fold, loop->regions[2].arguments + 1);
        emit_others(n, node);
        close_block(n, NULL, 0);
        return;
    }
    b = tile_builder_at_end(n->module, &loop->regions[2]);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    for (unsigned i = 0; i < fold.count; i++) fold.acc[i] = tile_op_result(loop, i);
    define_parts(n, &fold, fold.acc);
}

void nest_emit_fold(Nest *n, const NestNode *node) {
    NestStatement *s = node->children.items[0]->statement;
    if (node->level.order == TILE_ORDER_SERIAL)
        emit_serial(n, node, s);
    else
        emit_in_blocks(n, node, s);
}
