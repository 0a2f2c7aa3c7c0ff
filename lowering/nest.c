/* One loop in place of several of which each goes through the next one and nothing else. */
#include "lowering/nest.h"

#include "lang/ir/operands.h"

TileOp *tile_nest_next(const TileOp *outer) {
    const TileBlock *body = &outer->regions[0];
    const TileOp *yield = body->last;
    TileOp *inner = NULL;
    for (TileOp *op = body->first; op != yield; op = op->next) {
        if (op->id == TILE_OP_FOR && !inner) {
            inner = op;
            continue;
        }
        if (!tile_op_is_pure(op) || op->region_count) return NULL;
        for (unsigned i = 0; i < op->result_count; i++)
            if (tile_type_is_tile(op->results[i].type)) return NULL;
    }
    if (!inner || inner->result_count != outer->result_count || !outer->result_count) return NULL;
    for (unsigned i = 0; i < outer->result_count; i++) {
        const TileValue *carried = body->arguments[1 + i];
        bool passed = tile_loop_carried(inner, i) == carried && carried->first_use && !carried->first_use->next &&
                      tile_op_named_at(yield, TILE_OPERAND_VALUES, i) == &inner->results[i] &&
                      inner->results[i].first_use && !inner->results[i].first_use->next;
        if (!passed) return NULL;
    }
    return inner;
}

static TileValue *integer(TileBuilder *b, int64_t number) {
    return tile_build_integer(b, tile_type_scalar(b->module->context, TILE_I64), number);
}

/* x / y of integers that are not negative. */
static TileValue *quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *of = tile_build_bitcast(b, x, TILE_U64), *by = tile_build_bitcast(b, y, TILE_U64);
    return tile_build_bitcast(b, tile_build_binary(b, TILE_OP_DIV, of, by), TILE_I64);
}

/* lo + number * step */
static TileValue *index_of(TileBuilder *b, const TileOp *loop, TileValue *number) {
    TileValue *lo = tile_op_operand(loop, 0), *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *index = tile_value_is_integer(step, 1) ? number : tile_build_binary(b, TILE_OP_MUL, number, step);
    return tile_value_is_integer(lo, 0) ? index : tile_build_binary(b, TILE_OP_ADD, lo, index);
}

/* The loops' numbers are the digits of the joined loop's, the innermost the lowest. Divisors are at least 1, also where
 * the loop has no iteration: its body may be computed ahead of the test for that. */
TileValue *tile_nest_build_indices(TileBuilder *b, const TileNest *nest, TileValue *const *divisors, TileValue *number) {
    for (unsigned i = nest->count; i-- > 0;) {
        TileOp *loop = nest->loops[i];
        TileValue *digit = number;
        if (i) {
            TileValue *rest = quotient(b, number, divisors[i]);
            digit = tile_build_binary(b, TILE_OP_SUB, number, tile_build_binary(b, TILE_OP_MUL, rest, divisors[i]));
            number = rest;
        }
        TileValue *index = index_of(b, loop, digit);
        index->name = index->op == digit->op ? index->name : loop->regions[0].arguments[0]->name;
        tile_value_replace(loop->regions[0].arguments[0], index);
    }
    return number;
}

void tile_nest_move_bodies(const TileNest *nest, TileBlock *body) {
    for (unsigned i = 0; i < nest->count; i++) {
        TileBlock *from = &nest->loops[i]->regions[0];
        for (TileOp *op = from->first, *next; op; op = next) {
            next = op->next;
            bool is_rest = i + 1 < nest->count && (op == nest->loops[i + 1] || !next);
            if (is_rest) continue;
            tile_op_detach(op);
            tile_op_append(op, body);
        }
    }
}

TileOp *tile_nest_join(TileNest *nest, TileModule *module, TileArena *scratch, TileBuilder *bounds) {
    TileOp *outermost = nest->loops[0], *innermost = nest->loops[nest->count - 1];
    TileValue *divisors[TILE_MOST_NESTED], *all = NULL;
    TileValue **carried = TILE_NEW_ARRAY(scratch, TileValue *, outermost->result_count);
    for (unsigned i = 0; i < nest->count; i++) {
        all = all ? tile_build_binary(bounds, TILE_OP_MUL, all, nest->trips[i]) : nest->trips[i];
        divisors[i] = tile_build_binary(bounds, TILE_OP_MAX, nest->trips[i], integer(bounds, 1));
    }
    for (unsigned i = 0; i < outermost->result_count; i++) carried[i] = tile_loop_carried(outermost, i);
    TileBuilder b = tile_builder_before(module, outermost);
    b.location = innermost->location;
    TileOp *joined = tile_build_for(&b, integer(bounds, 0), all, integer(bounds, 1), carried, outermost->result_count);
    for (unsigned i = 0; i < outermost->attribute_count; i++) tile_op_set(module, joined, outermost->attributes[i]);
    TileBlock *body = &joined->regions[0];
    TileBuilder inside = tile_builder_at_end(module, body);
    inside.location = innermost->location;
    tile_nest_build_indices(&inside, nest, divisors, body->arguments[0]);
    for (unsigned i = 0; i < outermost->result_count; i++)
        tile_value_replace(innermost->regions[0].arguments[1 + i], body->arguments[1 + i]);
    tile_nest_move_bodies(nest, body);
    for (unsigned i = 0; i < outermost->result_count; i++) {
        joined->results[i].name = outermost->results[i].name;
        tile_value_replace(&outermost->results[i], &joined->results[i]);
    }
    tile_op_erase(outermost);
    return joined;
}
