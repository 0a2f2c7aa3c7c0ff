/* Folds of branches, loops, accesses and host ops whose conditions are known at compile time. */
#include "base/print_line.h"
#include "lang/ir/operands.h"
#include "lowering/fold.h"

/* Moves the ops of a region, without its terminator, before the op, and replaces the region's arguments by `values`. */
static void splice_region(TileOp *op, TileBlock *region, TileValue *const *values) {
    for (unsigned i = 0; i < region->argument_count; i++) tile_value_replace(region->arguments[i], values[i]);
    while (region->first != region->last) {
        TileOp *inner = region->first;
        tile_op_detach(inner);
        tile_op_insert_before(inner, op);
    }
}

/* Replaces the op's results by the operands of that name, and erases the op. */
static void replace_results(TileOp *op, const TileOp *from, TileOperand name) {
    for (unsigned i = 0; i < op->result_count; i++)
        tile_value_replace(&op->results[i], tile_op_named_at(from, name, i));
    tile_op_erase(op);
}

static bool fold_if(TilePassContext *context, TileOp *op) {
    int64_t condition;
    if (tile_value_integer(tile_op_operand(op, 0), &condition)) {
        TileBlock *taken = &op->regions[condition ? 0 : 1];
        splice_region(op, taken, NULL);
        replace_results(op, taken->last, TILE_OPERAND_VALUES);
        return true;
    }
    bool changed = false;
    for (unsigned i = 0; i < op->result_count; i++) {
        if (!tile_value_has_uses(&op->results[i])) continue;
        TileValue *then = tile_op_operand(op->regions[0].last, i), *other = tile_op_operand(op->regions[1].last, i);
        uint64_t bits;
        if (then == other && tile_value_outside(then, op)) {
            tile_value_replace(&op->results[i], then);
            changed = true;
        } else if (tile_value_bits(then, &bits) && tile_value_is_same(then, other)) {
            TileBuilder builder = tile_builder_before(context->module, op);
            tile_value_replace(&op->results[i], tile_build_bits(&builder, then->type, bits));
            changed = true;
        }
    }
    return changed;
}

/* ---- loops ---- */

typedef enum TripCount { TRIP_COUNT_UNKNOWN, TRIP_COUNT_0, TRIP_COUNT_1 } TripCount;

static TripCount trip_count_of(TileValue *lo, TileValue *hi, int64_t step) {
    int64_t first, limit;
    if (lo == hi) return TRIP_COUNT_0;
    if (!tile_value_integer(lo, &first) || !tile_value_integer(hi, &limit)) return TRIP_COUNT_UNKNOWN;
    if (limit <= first) return TRIP_COUNT_0;
    return (uint64_t)limit - (uint64_t)first <= (uint64_t)step ? TRIP_COUNT_1 : TRIP_COUNT_UNKNOWN;
}

static bool fold_trip_count(TileOp *op, TripCount trip_count) {
    if (trip_count == TRIP_COUNT_UNKNOWN) return false;
    const TileOp *values = op;
    if (trip_count == TRIP_COUNT_1) {
        TileBlock *body = &op->regions[0];
        TileValue *lo = tile_op_operand(op, 0);
        for (unsigned i = 1; i < body->argument_count; i++)
            tile_value_replace(body->arguments[i], tile_loop_carried(op, i - 1));
        body->argument_count = 1;
        splice_region(op, body, &lo);
        values = body->last;
    }
    replace_results(op, values, trip_count == TRIP_COUNT_1 ? TILE_OPERAND_VALUES : TILE_OPERAND_CARRIED);
    return true;
}

/* A loop-carried value that no iteration changes is its initial value. */
static bool fold_carried(TileOp *op) {
    bool changed = false;
    TileBlock *body = &op->regions[0];
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *first = tile_loop_carried(op, i), *next = tile_op_operand(body->last, i);
        TileValue *argument = body->arguments[1 + i];
        if (next != argument && next != first) continue;
        changed |= next == argument || tile_value_has_uses(argument) || tile_value_has_uses(&op->results[i]);
        tile_op_set_operand(body->last, i, first);
        tile_value_replace(argument, first);
        tile_value_replace(&op->results[i], first);
    }
    return changed;
}

/* The same for a while, which passes the value through both of its regions. */
static bool fold_carried_while(TileOp *op) {
    bool changed = false;
    TileBlock *test = &op->regions[0], *body = &op->regions[1];
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *first = tile_op_operand(op, i), *next = tile_op_operand(body->last, i);
        TileValue *passed = tile_loop_carried(test->last, i);
        if (passed != test->arguments[i] && passed != first) continue;
        if (next != body->arguments[i] && next != first) continue;
        changed |= passed != first || next != first || tile_value_has_uses(test->arguments[i]) ||
                   tile_value_has_uses(body->arguments[i]) || tile_value_has_uses(&op->results[i]);
        tile_value_replace(test->arguments[i], first);
        tile_value_replace(body->arguments[i], first);
        tile_value_replace(&op->results[i], first);
    }
    return changed;
}

static bool fold_for(TileOp *op) {
    int64_t step = 1;
    TripCount trip_count = tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) && step > 0
                               ? trip_count_of(tile_op_operand(op, 0), tile_op_operand(op, 1), step)
                           : tile_op_operand(op, 0) == tile_op_operand(op, 1) ? TRIP_COUNT_0
                                                                              : TRIP_COUNT_UNKNOWN;
    return fold_trip_count(op, trip_count) || fold_carried(op);
}

/* Not reduce loops: they combine the contributions of iterations with the initial values in an order of their own. */
static bool fold_loop(TileOp *op) {
    if (tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, TILE_LOOP_KIND_REDUCE) == TILE_LOOP_KIND_REDUCE) return false;
    return fold_trip_count(op, trip_count_of(tile_op_operand(op, 0), tile_op_operand(op, 1), 1));
}

/* If the condition is constant false, only the ops of the condition run. */
static bool fold_while(TileOp *op) {
    TileBlock *test = &op->regions[0];
    if (!tile_value_is_integer(tile_op_operand(test->last, 0), 0)) return false;
    TileOp *condition = test->last;
    for (unsigned i = 0; i < test->argument_count; i++) tile_value_replace(test->arguments[i], tile_op_operand(op, i));
    test->argument_count = 0;
    splice_region(op, test, NULL);
    replace_results(op, condition, TILE_OPERAND_CARRIED);
    return true;
}

/* ---- host ops ---- */

static bool fold_dim(TileOp *op) {
    const TileOp *temp = tile_value_def(tile_op_operand(op, 0), TILE_OP_TEMP);
    if (!temp) return false;
    tile_value_replace(op->results, tile_op_operand(temp, (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)));
    tile_op_erase(op);
    return true;
}

static bool erase_if(TileOp *op, bool holds) {
    if (holds) tile_op_erase(op);
    return holds;
}

static bool is_its_own_dim(const TileOp *check) {
    const TileOp *dim = tile_value_def(tile_op_operand(check, 1), TILE_OP_DIM);
    return dim && tile_op_operand(dim, 0) == tile_op_operand(check, 0) &&
           tile_op_integer(dim, TILE_ATTRIBUTE_AXIS, 0) == tile_op_integer(check, TILE_ATTRIBUTE_AXIS, 0);
}

/* Does the print show the values of a failed assertion? */
static bool is_of_assertion(const TileOp *print) {
    return tile_print_is_assertion(tile_op_get(print, TILE_ATTRIBUTE_TEXT)->text, NULL, NULL);
}

/* A grid without programs, of a kernel that has others. */
static bool is_empty_grid(const TileOp *op) {
    bool empty = false, others = false;
    for (unsigned i = 0; i < op->operand_count; i++) empty = empty || tile_value_is_integer(tile_op_operand(op, i), 0);
    for (const TileOp *other = op->block->first; other; other = other->next)
        others = others || (other != op && other->id == TILE_OP_GRID);
    return empty && others;
}

/* The number of a program along an axis that has one program is 0. */
static bool fold_grid(TilePassContext *context, TileOp *op) {
    bool changed = false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *number = op->regions[0].arguments[i];
        if (!tile_value_is_integer(tile_op_operand(op, i), 1) || !tile_value_has_uses(number)) continue;
        TileBuilder builder = tile_builder_before(context->module, op);
        tile_value_replace(number, tile_build_integer(&builder, number->type, 0));
        changed = true;
    }
    return changed;
}

/* ---- accesses ---- */

static bool never_stores(const TileOp *op) {
    return tile_op_has_part(op, TILE_PARTS_MASK) && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_MASK), 0);
}

/* An access whose mask is true needs none, nor a fill. */
static bool fold_mask(TileOp *op) {
    const TileAttribute *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    bool masked = tile_op_has_part(op, TILE_PARTS_MASK);
    if (!masked || !tile_value_is_integer(tile_op_named(op, TILE_OPERAND_MASK), 1)) return false;
    unsigned masks, first = tile_op_operands(op, TILE_OPERAND_MASK, &masks);
    for (unsigned i = 0; i < parts->count; i++) tile_op_remove_operand(op, first);
    tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
    return true;
}

bool tile_fold_control(TilePassContext *context, TileOp *op) {
    switch (op->id) {
    case TILE_OP_IF: return fold_if(context, op);
    case TILE_OP_FOR: return fold_for(op);
    case TILE_OP_LOOP: return fold_loop(op);
    case TILE_OP_WHILE: return fold_while(op) || fold_carried_while(op);
    case TILE_OP_GRID: return erase_if(op, is_empty_grid(op)) || fold_grid(context, op);
    case TILE_OP_DIM: return fold_dim(op);
    case TILE_OP_CHECK_DIM: return erase_if(op, is_its_own_dim(op));
    case TILE_OP_REQUIRE: return erase_if(op, tile_value_is_integer(tile_op_operand(op, 0), 1));
    case TILE_OP_ASSERT:
        return erase_if(op, !context->settings.debug || tile_value_is_integer(tile_op_operand(op, 0), 1));
    case TILE_OP_PRINT: return erase_if(op, !context->settings.debug && is_of_assertion(op));
    case TILE_OP_STATEMENT: return erase_if(op, true);
    case TILE_OP_STORE:
    case TILE_OP_SCATTER: return erase_if(op, never_stores(op)) || fold_mask(op);
    case TILE_OP_LOAD:
    case TILE_OP_GATHER: return fold_mask(op);
    default: return false;
    }
}
