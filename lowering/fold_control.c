/* Folds of control and host ops whose course is decided when compiling. */
#include "base/print_line.h"
#include "lang/ir/operands.h"
#include "lowering/fold.h"

/* Moves the ops of a region, all but its terminator, in front of its op, with `values` for its arguments. */
static void release_region(TileOp *op, TileBlock *region, TileValue *const *values) {
    for (unsigned i = 0; i < region->argument_count; i++) tile_value_replace(region->arguments[i], values[i]);
    while (region->first != region->last) {
        TileOp *inner = region->first;
        tile_op_detach(inner);
        tile_op_insert_before(inner, op);
    }
}

/* By the operands of that name. */
static void replace_results(TileOp *op, const TileOp *from, TileOperand name) {
    for (unsigned i = 0; i < op->result_count; i++)
        tile_value_replace(&op->results[i], tile_op_named_at(from, name, i));
    tile_op_erase(op);
}

static bool fold_if(TilePassContext *context, TileOp *op) {
    int64_t condition;
    if (tile_value_integer(tile_op_operand(op, 0), &condition)) {
        TileBlock *taken = &op->regions[condition ? 0 : 1];
        release_region(op, taken, NULL);
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

typedef enum Trips { TRIPS_UNKNOWN, TRIPS_NONE, TRIPS_ONE } Trips;

static Trips count_trips(TileValue *lo, TileValue *hi, int64_t step) {
    int64_t first, limit;
    if (lo == hi) return TRIPS_NONE;
    if (!tile_value_integer(lo, &first) || !tile_value_integer(hi, &limit)) return TRIPS_UNKNOWN;
    if (limit <= first) return TRIPS_NONE;
    return (uint64_t)limit - (uint64_t)first <= (uint64_t)step ? TRIPS_ONE : TRIPS_UNKNOWN;
}

static bool fold_trips(TileOp *op, Trips trips) {
    if (trips == TRIPS_UNKNOWN) return false;
    const TileOp *values = op;
    if (trips == TRIPS_ONE) {
        TileBlock *body = &op->regions[0];
        TileValue *lo = tile_op_operand(op, 0);
        for (unsigned i = 1; i < body->argument_count; i++)
            tile_value_replace(body->arguments[i], tile_loop_carried(op, i - 1));
        body->argument_count = 1;
        release_region(op, body, &lo);
        values = body->last;
    }
    replace_results(op, values, trips == TRIPS_ONE ? TILE_OPERAND_VALUES : TILE_OPERAND_CARRIED);
    return true;
}

/* A carried value that never changes is its initial one. */
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

/* The same where a while passes the value through both of its regions. */
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
    Trips trips = tile_value_integer(tile_op_named(op, TILE_OPERAND_STEP), &step) && step > 0
                      ? count_trips(tile_op_operand(op, 0), tile_op_operand(op, 1), step)
                  : tile_op_operand(op, 0) == tile_op_operand(op, 1) ? TRIPS_NONE
                                                                     : TRIPS_UNKNOWN;
    return fold_trips(op, trips) || fold_carried(op);
}

/* The contributions of a reduce loop are combined with its initial values in an order of their own. */
static bool fold_loop(TileOp *op) {
    if (tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, TILE_LOOP_KIND_REDUCE) == TILE_LOOP_KIND_REDUCE) return false;
    return fold_trips(op, count_trips(tile_op_operand(op, 0), tile_op_operand(op, 1), 1));
}

/* Where the condition is false at once, only the condition's own ops run. */
static bool fold_while(TileOp *op) {
    TileBlock *test = &op->regions[0];
    if (!tile_value_is_integer(tile_op_operand(test->last, 0), 0)) return false;
    TileOp *condition = test->last;
    for (unsigned i = 0; i < test->argument_count; i++) tile_value_replace(test->arguments[i], tile_op_operand(op, i));
    test->argument_count = 0;
    release_region(op, test, NULL);
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

/* The values that the message of an assertion shows. */
static bool is_of_assertion(const TileOp *print) {
    return tile_print_is_assertion(tile_op_get(print, TILE_ATTRIBUTE_TEXT)->text, NULL, NULL);
}

bool tile_fold_control(TilePassContext *context, TileOp *op) {
    switch (op->id) {
    case TILE_OP_IF: return fold_if(context, op);
    case TILE_OP_FOR: return fold_for(op);
    case TILE_OP_LOOP: return fold_loop(op);
    case TILE_OP_WHILE: return fold_while(op) || fold_carried_while(op);
    case TILE_OP_DIM: return fold_dim(op);
    case TILE_OP_CHECK_DIM: return erase_if(op, is_its_own_dim(op));
    case TILE_OP_REQUIRE: return erase_if(op, tile_value_is_integer(tile_op_operand(op, 0), 1));
    case TILE_OP_ASSERT:
        return erase_if(op, !context->settings.debug || tile_value_is_integer(tile_op_operand(op, 0), 1));
    case TILE_OP_PRINT: return erase_if(op, !context->settings.debug && is_of_assertion(op));
    default: return false;
    }
}
