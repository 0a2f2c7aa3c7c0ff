/* sort: the elements of each line, in runs that are merged, which keeps equal keys in order. */
#include <math.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

typedef struct Sorting {
    TileScalar scalar; /* of the keys */
    bool descending, has_mask;
    size_t extent, kept, stride; /* lanes of a line, those of a result's line, from lane to lane */
    ExecValue keys, mask;
} Sorting;

static bool compare(TileOpId id, TileScalar scalar, uint64_t x, uint64_t y) {
    uint64_t operands[] = {x, y}, result = 0;
    tile_eval(id, scalar, TILE_BOOL, operands, &result);
    return result;
}

/* Is x before y? NaNs are behind all numbers; of two zeros the negative one is less. */
static bool is_before(const Sorting *s, uint64_t x, uint64_t y) {
    bool x_nan = tile_scalar_is_nan(s->scalar, x), y_nan = tile_scalar_is_nan(s->scalar, y);
    if (x_nan || y_nan) return !x_nan;
    if (compare(TILE_OP_LT, s->scalar, x, y)) return !s->descending;
    if (compare(TILE_OP_GT, s->scalar, x, y)) return s->descending;
    if (!tile_scalar_is_float(s->scalar) || x == y) return false;
    bool negative = x >> (tile_scalar_bits(s->scalar) - 1) & 1;
    return negative != s->descending;
}

static bool is_left_out(const Sorting *s, size_t lane) { return s->has_mask && !s->mask.lanes[lane]; }

/* Must `later`, which stands behind `earlier`, come before it? */
static bool overtakes(const Sorting *s, size_t later, size_t earlier) {
    if (is_left_out(s, later) || is_left_out(s, earlier)) return !is_left_out(s, later) && is_left_out(s, earlier);
    uint64_t x = s->keys.lanes[later], y = s->keys.lanes[earlier];
    bool y_nan = tile_scalar_is_nan(s->scalar, y);
    return !(tile_scalar_is_nan(s->scalar, x) && y_nan) && is_before(s, x, y);
}

/* Merges order[lo .. middle] and order[middle .. hi]. */
static void merge(const Sorting *s, const uint32_t *order, uint32_t *merged, size_t lo, size_t middle, size_t hi) {
    size_t left = lo, right = middle;
    for (size_t i = lo; i < hi; i++) {
        bool takes_right = left == middle || (right < hi && overtakes(s, order[right], order[left]));
        merged[i] = takes_right ? order[right++] : order[left++];
    }
}

/* The lanes of a line in order; `order` has space for two lines. */
static const uint32_t *sort_line(const Sorting *s, size_t first, uint32_t *order) {
    uint32_t *other = order + s->extent;
    for (size_t i = 0; i < s->extent; i++) order[i] = (uint32_t)(first + i * s->stride);
    for (size_t run = 1; run < s->extent; run *= 2) {
        for (size_t lo = 0; lo < s->extent; lo += 2 * run) {
            size_t middle = lo + run < s->extent ? lo + run : s->extent;
            size_t hi = middle + run < s->extent ? middle + run : s->extent;
            merge(s, order, other, lo, middle, hi);
        }
        uint32_t *swapped = order;
        order = other;
        other = swapped;
    }
    return order;
}

/* If keys may be others, those of a line keep their order as far as they are further apart; the i-th number of a line
 * changes by no more than the numbers do. */
static double slack_of(const Sorting *s, const uint32_t *order, size_t at, bool is_key, double own) {
    double most = 0;
    for (size_t i = 0; i < s->extent; i++) most = fmax(most, s->keys.slack[order[i]]);
    if (!(most > 0) || is_key) return is_key ? most : own;
    double x = tile_scalar_to_double(s->scalar, s->keys.lanes[order[at]]);
    for (size_t i = 0; i < s->extent; i++) {
        double y = tile_scalar_to_double(s->scalar, s->keys.lanes[order[i]]);
        if (i != at && !(fabs(x - y) > 2 * most)) return (double)INFINITY;
    }
    return own;
}

/* Moves the elements of a tile into the order of the keys. */
static void move_line(TileExecutor *e, const Sorting *s, const uint32_t *order, ExecValue from, ExecValue to,
                      size_t first, uint8_t poison, bool is_key) {
    for (size_t i = 0; i < s->kept; i++) {
        size_t at = first + i * s->stride;
        to.lanes[at] = from.lanes[order[i]];
        uint8_t own = is_left_out(s, order[i]) ? EXEC_POISON : tile_exec_poisoned(from, order[i]);
        if (poison | own) tile_exec_set_poison(e, to, (uint32_t)at, poison | own);
        if (to.slack) to.slack[at] = slack_of(s, order, i, is_key, from.slack[order[i]]);
    }
}

/* The poison of what decides the order. */
static uint8_t line_poison(const Sorting *s, size_t first) {
    uint8_t poison = 0;
    for (size_t i = 0; i < s->extent; i++) {
        uint32_t at = (uint32_t)(first + i * s->stride);
        if (s->has_mask) poison |= tile_exec_poisoned(s->mask, at);
        if (!is_left_out(s, at)) poison |= tile_exec_poisoned(s->keys, at);
    }
    return poison;
}

bool tile_exec_sort(TileExecutor *e, const ExecInstruction *in) {
    const TileType *type = in->op->operands[0].value->type;
    int64_t axis = tile_op_integer(in->op, TILE_ATTRIBUTE_AXIS, 0);
    unsigned count = in->op->result_count;
    Sorting s = {.scalar = type->scalar, .extent = (size_t)type->extent[axis], .stride = 1};
    s.kept = (size_t)in->op->results[0].type->extent[axis];
    s.descending = tile_op_integer(in->op, TILE_ATTRIBUTE_DESCENDING, 0) != 0;
    s.has_mask = tile_op_has_part(in->op, TILE_PARTS_MASK);
    s.keys = tile_exec_operand(e, in, 0);
    if (s.has_mask) s.mask = tile_exec_operand(e, in, count);
    for (int64_t i = axis + 1; i < type->rank; i++) s.stride *= (size_t)type->extent[i];
    uint32_t *scratch = tile_exec_scratch(e, 2 * s.extent * sizeof *scratch);
    if (!scratch) return false;
    for (unsigned k = 0; k < count; k++) tile_exec_clear_poison(tile_exec_value(e, in->result + k));
    for (size_t line = 0; line < s.keys.count / s.extent; line++) {
        size_t outer = line / s.stride, inner = line % s.stride, first = outer * s.extent * s.stride + inner;
        const uint32_t *order = sort_line(&s, first, scratch);
        uint8_t poison = line_poison(&s, first);
        for (unsigned k = 0; k < count; k++)
            move_line(e, &s, order, tile_exec_operand(e, in, k), tile_exec_value(e, in->result + k),
                      outer * s.kept * s.stride + inner, poison, k == 0);
    }
    return true;
}
