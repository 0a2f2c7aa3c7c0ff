/* Differences: bounds of x - y that ranges alone do not give, since x and y have something in common: a loop's bound
 * and its induction variable, a sum and one of its terms, a number and the multiple of a block size below it. Requires
 * ranges and sums. */
#include "lang/index/internal.h"

#include "lang/ir/build.h"

enum { MAX_DEPTH = 6, MAX_STEPS = 256 }; /* of the search, and choices between the operands of min and max */

/* The lower bound of a difference. */
typedef struct Least {
    Wide least;
    uint64_t because;
} Least;

static Least greater(Least a, Least b) { return b.least > a.least ? b : a; }
static Least smaller(Least a, Least b) { return (Least){a.least < b.least ? a.least : b.least, a.because | b.because}; }

/* x >= y + 1 if y is an induction variable with the upper bound x. */
static bool is_below_bound(const TileValue *y, const TileValue *x) {
    if (!y->block || !y->block->op) return false;
    const TileOp *op = y->block->op;
    if (op->id == TILE_OP_GRID) return tile_value_is_same(tile_op_operand(op, y->index), x);
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && y->index == 0 &&
           tile_value_is_same(tile_op_operand(op, 1), x);
}

static bool starts_at(const TileValue *x, const TileValue *y) {
    if (!x->block || !x->block->op || x->index != 0) return false;
    const TileOp *op = x->block->op;
    return (op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP) && tile_value_is_same(tile_op_operand(op, 0), y);
}

/* y = p * B where p iterates over the (x + B - 1) / B blocks of x: a block starts before x. */
static bool is_block_start(const TileValue *y, const TileValue *x) {
    const TileOp *mul = tile_value_def(y, TILE_OP_MUL);
    int64_t size, above, divisor;
    if (!mul || !tile_value_integer(tile_op_operand(mul, 1), &size) || size < 1) return false;
    const TileValue *p = tile_op_operand(mul, 0);
    if (!p->block || !p->block->op || p->block->op->id != TILE_OP_GRID) return false;
    const TileOp *blocks = tile_value_def(tile_op_operand(p->block->op, p->index), TILE_OP_DIV);
    const TileOp *sum = blocks ? tile_value_def(tile_op_operand(blocks, 0), TILE_OP_ADD) : NULL;
    return sum && tile_value_integer(tile_op_operand(blocks, 1), &divisor) && divisor == size &&
           tile_value_is_same(tile_op_operand(sum, 0), x) && tile_value_integer(tile_op_operand(sum, 1), &above) &&
           above == size - 1;
}

/* y = x / size * size, without wrapping. */
static bool is_rounded_down(TileIndices *indices, const TileValue *y, const TileValue *x, int64_t *size) {
    const TileOp *mul = tile_value_def(y, TILE_OP_MUL);
    const TileOp *div = mul ? tile_value_def(tile_op_operand(mul, 0), TILE_OP_DIV) : NULL;
    if (!div || !tile_value_is_same(tile_op_operand(div, 0), x) ||
        !tile_value_is_same(tile_op_operand(div, 1), tile_op_operand(mul, 1)))
        return false;
    bool known = tile_value_integer(tile_op_operand(mul, 1), size) && *size > 0;
    return known && (Wide)tile_index_range(indices, x).lo - *size >= tile_index_range_of_type(x->type).lo;
}

static Least difference(TileIndices *indices, const TileValue *x, const TileValue *y, unsigned depth);

/* min and max of one operand of the difference: either of their operands may be the result. */
static Least by_choice(TileIndices *indices, const TileValue *x, const TileValue *y, Least best, unsigned depth) {
    const TileOp *op;
    if ((op = tile_value_def(y, TILE_OP_MIN)) || (op = tile_value_def(y, TILE_OP_MAX))) {
        Least a = difference(indices, x, tile_op_operand(op, 0), depth),
              b = difference(indices, x, tile_op_operand(op, 1), depth);
        best = greater(best, op->id == TILE_OP_MIN ? greater(a, b) : smaller(a, b));
    }
    if ((op = tile_value_def(x, TILE_OP_MIN)) || (op = tile_value_def(x, TILE_OP_MAX))) {
        Least a = difference(indices, tile_op_operand(op, 0), y, depth),
              b = difference(indices, tile_op_operand(op, 1), y, depth);
        best = greater(best, op->id == TILE_OP_MAX ? greater(a, b) : smaller(a, b));
    }
    return best;
}

/* The lower bound of one product; false if it is not a 64-bit integer. */
static bool least_product(TileIndices *indices, const TileProduct *product, Least *sum) {
    Wide lo = product->factor, hi = product->factor;
    for (uint32_t i = 0; i < product->degree; i++) {
        TileIndexRange range = tile_index_range(indices, product->symbols[i]->value);
        Wide corners[] = {lo * range.lo, lo * range.hi, hi * range.lo, hi * range.hi};
        lo = hi = corners[0];
        for (unsigned k = 1; k < 4; k++) {
            if (corners[k] < lo) lo = corners[k];
            if (corners[k] > hi) hi = corners[k];
        }
        if (lo < INT64_MIN || hi > INT64_MAX) return false;
        sum->because |= range.because;
    }
    sum->least += lo;
    return true;
}

static bool is_plain(const TileProduct *product, int64_t factor) {
    return product->degree == 1 && product->factor == factor && product->symbols[0]->value;
}

/* x - y as a sum, in which common terms cancel; NULL if x or y may wrap. */
static const TileSum *exact_difference(TileIndices *indices, const TileValue *x, const TileValue *y) {
    const TileSum *a = tile_index_exact_sum(indices, x), *b = tile_index_exact_sum(indices, y);
    if (!a || !b) return NULL;
    tile_sum_wrapped(&indices->table);
    const TileSum *sum = tile_sum_subtract(&indices->table, a, b);
    return tile_sum_wrapped(&indices->table) ? NULL : sum;
}

/* A symbol may be compared with one that is subtracted; for the other terms ranges are used. */
static Least by_sum(TileIndices *indices, const TileValue *x, const TileValue *y, Least best, unsigned depth) {
    const TileSum *sum = exact_difference(indices, x, y);
    if (!sum) return best;
    Least total = {sum->constant, 0};
    bool bounded = true;
    for (uint32_t i = 0; i < sum->count && bounded; i++) bounded = least_product(indices, &sum->products[i], &total);
    if (bounded) best = greater(best, total);
    if (sum->count != 2) return best;
    for (unsigned i = 0; i < 2; i++) {
        if (!is_plain(&sum->products[i], 1) || !is_plain(&sum->products[1 - i], -1)) continue;
        const TileValue *more = sum->products[i].symbols[0]->value, *less = sum->products[1 - i].symbols[0]->value;
        if (more == x && less == y) continue;
        Least inner = difference(indices, more, less, depth);
        inner.least += sum->constant;
        best = greater(best, inner);
    }
    return best;
}

static Least difference(TileIndices *indices, const TileValue *x, const TileValue *y, unsigned depth) {
    if (tile_value_is_same(x, y)) return (Least){0, 0};
    TileIndexRange a = tile_index_range(indices, x), b = tile_index_range(indices, y);
    Least best = {(Wide)a.lo - b.hi, a.because | b.because};
    if (is_below_bound(y, x) || is_block_start(y, x)) best = greater(best, (Least){1, 0});
    int64_t size;
    if (starts_at(x, y) || is_rounded_down(indices, y, x, &size)) best = greater(best, (Least){0, 0});
    if (is_rounded_down(indices, x, y, &size)) best = greater(best, (Least){1 - size, 0});
    if (!depth || !indices->steps) return best;
    indices->steps--;
    best = by_choice(indices, x, y, best, depth - 1);
    return by_sum(indices, x, y, best, depth - 1);
}

/* The bounds of x - y without wrapping. */
static void bound_difference(TileIndices *indices, const TileValue *x, const TileValue *y, Wide *lo, Wide *hi,
                             uint64_t *because) {
    unsigned outer = indices->steps; /* differences and comparisons may be nested */
    indices->steps = MAX_STEPS;
    Least least = difference(indices, x, y, MAX_DEPTH);
    indices->steps = MAX_STEPS;
    Least opposite = difference(indices, y, x, MAX_DEPTH);
    indices->steps = outer;
    *lo = least.least;
    *hi = -opposite.least;
    *because = least.because | opposite.because;
}

TileIndexRange tile_index_subtraction(TileIndices *indices, const TileOp *op, const TileType *type) {
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    TileIndexRange a = tile_index_range(indices, x), b = tile_index_range(indices, y);
    Wide lo, hi;
    uint64_t because;
    bound_difference(indices, x, y, &lo, &hi, &because);
    return tile_index_in_type(type, lo, hi, tile_index_common_divisor(a.multiple, b.multiple),
                              because | a.because | b.because);
}

static int64_t saturated(Wide number) {
    return number < INT64_MIN ? INT64_MIN : number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

TileIndexRange tile_index_difference(TileIndices *indices, const TileValue *x, const TileValue *y) {
    Wide lo, hi;
    uint64_t because;
    bound_difference(indices, x, y, &lo, &hi, &because);
    return (TileIndexRange){saturated(lo), saturated(hi), 1, because};
}
