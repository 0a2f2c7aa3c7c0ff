/* Loop versioning for masks that are true in all iterations of a loop.
 *
 * Before:
 *     loop %lo, %hi {..} (%j: i64) {
 *       %below = lt %j, %n : bool
 *       %m = and %row_inside, %below : bool
 *       %v = load %p, %m, %zero {parts = [mask, fill]} : f32
 * After:
 *     if %row_inside and %hi <= %n {
 *       loop %lo, %hi {..} (%j: i64) {
 *         %v = load %p : f32
 *     } {
 *       the original loop
 *     }
 * A mask can be evaluated before the loop if it only compares what rises or falls with the indices of loops with bounds (`%j * 8 + 3`, `%j / 32`,
 * `min(%n, %m - %k)`) and is otherwise loop-invariant: for x < y the greatest x with the least y. Where only some parts of a conjunction can be, as that a row exists whose number is looked up, the first
 * loop has the others as its masks. Folds and scans (`fold_loop`) are loops in this sense. A tile that is inside of its tensor is then loaded in full vectors, after one test ahead of the loop.
 */
#include "cpu/vectorise.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"

enum { DEEPEST = 6 /* ops of what is compared */, COMBINER = 1 /* region of a fold or scan */ };

typedef struct Masks {
    TilePassContext *context;
    TileIndices *indices;
    TileOp *loop;
    TileBuilder *builder;
    TileMap seen;
    TileValue *condition; /* all of them are true in all iterations; NULL: there are no masks */
} Masks;

/* ---- masks that can be evaluated ---- */

/* Has the loop bounds that are invariant in `around`? */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *around) {
    return (loop->id == TILE_OP_LOOP || loop == around) && tile_value_outside(tile_op_operand(loop, 0), around) &&
           tile_value_outside(tile_op_operand(loop, 1), around);
}

/* The loop whose induction variable the value is: `loop` or one inside of it; else NULL. */
static TileOp *loop_of_index(const TileOp *loop, const TileValue *value) {
    TileOp *owner = value->op ? NULL : value->block->op;
    if (!owner || value->index != 0 || tile_value_outside(value, loop)) return NULL;
    return has_fixed_bounds(owner, loop) ? owner : NULL;
}

static bool is_conjunction(const TileOp *op) {
    return op->id == TILE_OP_AND || (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0));
}

/* May the sum or product wrap? A range that ends before its type does is that of integers. */
static bool may_wrap(TileIndices *indices, const TileValue *value) {
    TileIndexRange range = tile_index_range(indices, value);
    return value->type->scalar != TILE_I64 || range.because || range.lo == INT64_MIN || range.hi == INT64_MAX;
}

/* A remainder of what it may be: at least 0, and less than the number that divides. */
static bool is_remainder(const TileValue *value, int64_t *by) {
    const TileOp *op = tile_value_def(value, TILE_OP_REM);
    return op && tile_value_integer(tile_op_operand(op, 1), by) && *by > 0;
}

/* By a number that is known: of a product or quotient, whose other operand decides whether it rises. */
static bool is_scaled(const TileOp *op, int64_t *by) {
    bool scales = op->id == TILE_OP_MUL || op->id == TILE_OP_DIV || op->id == TILE_OP_SHR;
    return scales && tile_value_integer(tile_op_operand(op, 1), by) && *by > 0;
}

/* Do its iterations give numbers whose distance is a number, too? Then a sum or difference of it and of what does not change wraps only if its ends are
 * not in order. */
static bool is_short(TileIndices *indices, const TileValue *value) {
    TileIndexRange range = tile_index_range(indices, value);
    return value->type->scalar == TILE_I64 && !range.because && (range.lo >= 0 || range.hi < INT64_MAX + range.lo);
}

/* The operand of a sum or difference that changes, where that may wrap and the other one does not change; NULL: it is none. */
static TileValue *changing_operand(const Masks *masks, const TileOp *op) {
    TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    if ((op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) || !may_wrap(masks->indices, op->results)) return NULL;
    bool first = tile_value_outside(x, masks->loop), second = tile_value_outside(y, masks->loop);
    return first == second ? NULL : first ? y : x;
}

static bool combines_ends(const TileOp *op) {
    return op->id == TILE_OP_ADD || op->id == TILE_OP_SUB || op->id == TILE_OP_MIN || op->id == TILE_OP_MAX;
}

/* Is it made of loops' indices, times or divided by positive numbers, and of what does not change, by sums, differences, minima and maxima? Then
 * its ends are computed from theirs. A remainder counts as all that it may be. */
static bool has_ends(const Masks *masks, TileValue *value, unsigned depth) {
    int64_t factor;
    if (tile_value_outside(value, masks->loop) || loop_of_index(masks->loop, value)) return true;
    if (tile_value_integer(value, &factor) || is_remainder(value, &factor)) return true;
    TileOp *op = value->op;
    if (!op || depth == DEEPEST || value->type->scalar != TILE_I64) return false;
    if (is_scaled(op, &factor)) return !may_wrap(masks->indices, value) && has_ends(masks, tile_op_operand(op, 0), depth + 1);
    if (!combines_ends(op)) return false;
    const TileValue *changing = changing_operand(masks, op);
    bool sum = op->id == TILE_OP_ADD || op->id == TILE_OP_SUB;
    if (sum && may_wrap(masks->indices, value) && (!changing || !is_short(masks->indices, changing))) return false;
    return has_ends(masks, tile_op_operand(op, 0), depth + 1) && has_ends(masks, tile_op_operand(op, 1), depth + 1);
}

/* Is it < or >=, of numbers whose ends are known? */
static bool is_comparison(const Masks *masks, const TileOp *op) {
    if (op->id != TILE_OP_LT && op->id != TILE_OP_GE) return false;
    return has_ends(masks, tile_op_operand(op, 0), 0) && has_ends(masks, tile_op_operand(op, 1), 0);
}

static bool is_known_before(const Masks *masks, const TileValue *mask) {
    if (tile_value_outside(mask, masks->loop)) return true;
    const TileOp *op = mask->op;
    if (!op) return false;
    if (is_conjunction(op))
        return is_known_before(masks, tile_op_operand(op, 0)) && is_known_before(masks, tile_op_operand(op, 1));
    return is_comparison(masks, op);
}

/* Is the op in loops that have bounds before this one? */
static bool is_counted(const Masks *masks, const TileOp *op) {
    for (const TileOp *owner = op->block->op; owner != masks->loop; owner = owner->block->op)
        if (!has_fixed_bounds(owner, masks->loop)) return false;
    return true;
}

static TileValue *mask_of(const Masks *masks, const TileOp *op) {
    bool access = (op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE) && tile_op_has_part(op, TILE_PARTS_MASK);
    return access && is_counted(masks, op) ? tile_op_named(op, TILE_OPERAND_MASK) : NULL;
}

/* The mask of an access, if it can be evaluated before the loop; else NULL. */
static TileValue *known_mask(const Masks *masks, const TileOp *op) {
    TileValue *mask = mask_of(masks, op);
    return mask && is_known_before(masks, mask) ? mask : NULL;
}

/* `select(c, x, n) ? m`, which does not hold for the number n, is a conjunction, too: of c and `x ? m`. NULL: it is no such mask. */
static const TileOp *hidden_choice(const TileOp *op) {
    const TileOp *choice = op->operand_count == 2 ? tile_value_def(tile_op_operand(op, 0), TILE_OP_SELECT) : NULL;
    uint64_t operands[2], holds;
    if (!choice || tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->results[0].type->scalar != TILE_BOOL) return NULL;
    if (!tile_value_bits(tile_op_named(choice, TILE_OPERAND_Y), &operands[0]) || !tile_value_bits(tile_op_operand(op, 1), &operands[1]))
        return NULL;
    return tile_eval((TileOpId)op->id, tile_eval_operand_type(op), TILE_BOOL, operands, &holds) && !holds ? choice : NULL;
}

/* ---- before the loop ---- */

/* x && y, where y may be poison if x is false. */
static TileValue *build_and(TileBuilder *b, TileValue *x, TileValue *y) {
    if (!x || !y || x == y) return x ? x : y;
    return tile_build_ternary(b, TILE_OP_SELECT, x, y, tile_build_bool(b, false));
}

/* The greatest number in all iterations, or the least one. */
static TileValue *end_of(TileBuilder *b, const TileOp *loop, TileValue *value, bool greatest) {
    if (tile_value_outside(value, loop)) return value;
    const TileOp *counts = loop_of_index(loop, value);
    if (counts && greatest) return tile_build_binary(b, TILE_OP_SUB, tile_op_operand(counts, 1), tile_build_i64(b, 1));
    if (counts) return tile_op_operand(counts, 0);
    int64_t factor;
    if (tile_value_integer(value, &factor)) return tile_build_i64(b, factor);
    if (is_remainder(value, &factor)) return tile_build_i64(b, greatest ? factor - 1 : 0);
    TileValue *x = end_of(b, loop, tile_op_operand(value->op, 0), greatest), *y = tile_op_operand(value->op, 1);
    y = tile_value_integer(y, &factor) ? tile_build_i64(b, factor) : end_of(b, loop, y, (value->op->id == TILE_OP_SUB) != greatest);
    return tile_build_binary(b, (TileOpId)value->op->id, x, y);
}

/* The condition that no sum or difference wraps in any iteration; NULL: none does. */
static TileValue *build_ordered(const Masks *masks, TileValue *value) {
    TileOp *op = value->op;
    if (!op || tile_value_outside(value, masks->loop) || (!combines_ends(op) && op->id != TILE_OP_MUL && op->id != TILE_OP_DIV && op->id != TILE_OP_SHR))
        return NULL;
    TileValue *ordered = NULL;
    for (unsigned i = 0; i < op->operand_count; i++) ordered = build_and(masks->builder, ordered, build_ordered(masks, tile_op_operand(op, i)));
    if (!changing_operand(masks, op)) return ordered;
    TileValue *least = end_of(masks->builder, masks->loop, value, false), *greatest = end_of(masks->builder, masks->loop, value, true);
    return build_and(masks->builder, ordered, tile_build_binary(masks->builder, TILE_OP_LE, least, greatest));
}

/* Is the mask true in all iterations? The trip count is not 0. */
static TileValue *holds_throughout(const Masks *masks, TileValue *mask) {
    TileBuilder *b = masks->builder;
    const TileOp *loop = masks->loop;
    if (tile_value_outside(mask, loop)) return mask;
    TileValue *x = tile_op_operand(mask->op, 0), *y = tile_op_operand(mask->op, 1);
    if (is_conjunction(mask->op)) return build_and(b, holds_throughout(masks, x), holds_throughout(masks, y));
    const TileOp *counts = loop_of_index(loop, x);
    bool below = mask->op->id == TILE_OP_LT;
    TileValue *ordered = build_and(b, build_ordered(masks, x), build_ordered(masks, y)), *bound = end_of(b, loop, y, !below);
    if (counts && below) return build_and(b, ordered, tile_build_binary(b, TILE_OP_LE, tile_op_operand(counts, 1), bound));
    return build_and(b, ordered, tile_build_binary(b, below ? TILE_OP_LT : TILE_OP_GE, end_of(b, loop, x, below), bound));
}

static TileValue *has_iterations(TileBuilder *b, const TileOp *loop) {
    TileValue *lo = tile_op_operand(loop, 0), *hi = tile_op_operand(loop, 1);
    int64_t first, last;
    if (tile_value_integer(lo, &first) && tile_value_integer(hi, &last) && first < last) return NULL;
    return tile_build_binary(b, TILE_OP_LT, lo, hi);
}

/* Adds a part that can be evaluated to what is tested. In a loop without iterations nobody asks. */
static void add_part(Masks *masks, const TileOp *op, TileValue *part) {
    TileValue *runs = NULL;
    if (tile_map_get(&masks->seen, part)) return;
    tile_map_set(&masks->seen, part, part);
    for (const TileOp *owner = op->block->op; owner != masks->loop; owner = owner->block->op)
        runs = build_and(masks->builder, runs, has_iterations(masks->builder, owner));
    TileValue *condition = holds_throughout(masks, part);
    if (runs) condition = tile_build_ternary(masks->builder, TILE_OP_SELECT, runs, condition, tile_build_bool(masks->builder, true));
    masks->condition = build_and(masks->builder, masks->condition, condition);
}

static void find_parts(Masks *masks, const TileOp *op, TileValue *mask, unsigned depth) {
    if (is_known_before(masks, mask)) return add_part(masks, op, mask);
    const TileOp *own = mask->op;
    if (!own || depth == DEEPEST) return;
    if (is_conjunction(own))
        for (unsigned i = 0; i < 2; i++) find_parts(masks, op, tile_op_operand(own, i), depth + 1);
    const TileOp *choice = hidden_choice(own);
    if (choice) find_parts(masks, op, tile_op_operand(choice, 0), depth + 1);
}

static void find_mask(TileOp *op, void *state) {
    Masks *masks = state;
    TileValue *mask = mask_of(masks, op);
    if (mask) find_parts(masks, op, mask, 0);
}

/* A fold or scan may leave elements out: whether it does is a mask, too. */
static TileValue *mask_of_fold(const Masks *masks) {
    const TileOp *end = masks->loop->regions[0].last;
    if (masks->loop->id != TILE_OP_FOLD_LOOP || !tile_op_has_part(masks->loop, TILE_PARTS_MASK)) return NULL;
    unsigned values;
    tile_op_operands(end, TILE_OPERAND_VALUES, &values);
    TileValue *mask = tile_op_named_at(end, TILE_OPERAND_VALUES, values - 1);
    return is_known_before(masks, mask) ? mask : NULL;
}

static void walk_points(Masks *masks, void (*visit)(TileOp *op, void *state)) {
    for (unsigned r = 0; r < masks->loop->region_count; r++)
        if (r != COMBINER) tile_block_walk(&masks->loop->regions[r], visit, masks);
}

static void find_masks(Masks *masks) {
    tile_map_init(&masks->seen, masks->context->scratch);
    walk_points(masks, find_mask);
    TileValue *mask = mask_of_fold(masks);
    if (mask) add_part(masks, masks->loop->regions[0].last, mask);
}

/* Removes the mask of an access, which is true, and its fill. */
static void remove_mask(TileOp *op, void *state) {
    const Masks *masks = state;
    if (!known_mask(masks, op)) return;
    unsigned first = op->id == TILE_OP_LOAD ? 1 : 2;
    while (op->operand_count > first) tile_op_remove_operand(op, first);
    tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
}

void tile_value_set_true(TileValue *value, TileValue *yes) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        TileOp *op = use->user;
        bool both = op->id == TILE_OP_AND && tile_op_operand(op, 0) != tile_op_operand(op, 1);
        if (both) tile_value_replace(&op->results[0], tile_op_operand(op, use->index == 0));
        if (op->id == TILE_OP_SELECT && use->index == 0)
            tile_value_replace(&op->results[0], tile_op_named(op, TILE_OPERAND_X));
    }
    tile_value_replace(value, yes);
}

/* What is chosen by the mask, of the copy of the loop, or by what it is a conjunction of, is chosen. */
static void set_true(TileModule *module, TileOp *copy, TileValue *mask) {
    if (tile_value_outside(mask, copy) || !mask->op) return;
    TileBuilder b = tile_builder_before(module, copy);
    tile_value_set_true(mask, tile_build_bool(&b, true));
    for (unsigned i = 0; is_conjunction(mask->op) && i < 2; i++) set_true(module, copy, tile_op_operand(mask->op, i));
}

TileOp *tile_vectorise_split_masks(TilePassContext *context, TileOp *loop) {
    TileBuilder b = tile_builder_before(context->module, loop);
    Masks masks = {.context = context, .indices = tile_indices_create(context->scratch, loop->block->func) /* the pass has changed loops since it began */, .loop = loop, .builder = &b};
    find_masks(&masks);
    if (!masks.condition) return NULL;
    const TileType **types = TILE_NEW_ARRAY(context->scratch, const TileType *, loop->result_count + 1u);
    TileValue **results = TILE_NEW_ARRAY(context->scratch, TileValue *, loop->result_count + 1u);
    for (unsigned i = 0; i < loop->result_count; i++) types[i] = loop->results[i].type;
    TileValue *condition = build_and(&b, has_iterations(&b, loop), masks.condition);
    TileOp *branch = tile_build_if(&b, condition, types, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], &branch->results[i]);
    TileMap map;
    tile_map_init(&map, context->scratch);
    TileOp *loops[] = {tile_op_clone(context->module, loop, &map), loop};
    tile_op_detach(loop);
    for (unsigned r = 0; r < 2; r++) {
        tile_op_append(loops[r], &branch->regions[r]);
        TileBuilder end = tile_builder_at_end(context->module, &branch->regions[r]);
        for (unsigned i = 0; i < loop->result_count; i++) results[i] = &loops[r]->results[i];
        tile_build_end(&end, TILE_OP_YIELD, results, loop->result_count);
    }
    masks.loop = loops[0];
    walk_points(&masks, remove_mask);
    for (size_t i = 0; i < masks.seen.count; i++) {
        const TileValue *mask = masks.seen.entries[i].value;
        TileValue *copy = mask ? tile_map_get(&map, mask) : NULL;
        if (copy) set_true(context->module, loops[0], copy);
    }
    return loops[0];
}
