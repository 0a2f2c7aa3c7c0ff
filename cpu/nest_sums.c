/* Indices as sums: constant + the sum of scale * index over the open loops. A division or remainder of such a sum by a
 * constant is another sum wherever the terms fall apart into multiples of the divisor and a rest below it, as the
 * position of an element in the row-major order of a shape does: then changes of shape need no divisions. */
#include "cpu/nest.h"

static int64_t extent_at(const Nest *n, unsigned level) { return n->open[level].level->extent; }

static bool add_scaled(NestSum *sum, const NestSum *more, int64_t scale) {
    bool fits = !__builtin_mul_overflow(more->constant, scale, &(int64_t){0});
    sum->constant += fits ? more->constant * scale : 0;
    for (unsigned i = 1; fits && i < NEST_OPEN; i++) {
        int64_t term;
        fits = !__builtin_mul_overflow(more->scale[i], scale, &term) && term < INT32_MAX && term > INT32_MIN;
        sum->scale[i] += fits ? term : 0;
    }
    return fits && sum->constant < INT32_MAX && sum->constant > INT32_MIN;
}

static bool read_sum(const Nest *n, const TileValue *value, NestSum *sum, unsigned depth) {
    NestSum part = {0};
    *sum = (NestSum){0};
    if (tile_value_integer(value, &sum->constant)) return sum->constant < INT32_MAX && sum->constant > INT32_MIN;
    for (unsigned i = 1; i < n->open_count; i++) {
        if (n->open[i].index != value || !n->open[i].level) continue;
        sum->scale[i] = 1;
        return true;
    }
    const TileOp *op = value->op;
    if (!op || !depth || (op->id != TILE_OP_ADD && op->id != TILE_OP_MUL)) return false;
    const TileValue *x = tile_op_operand(op, 0), *y = tile_op_operand(op, 1);
    int64_t scale;
    if (op->id == TILE_OP_MUL)
        return tile_value_integer(y, &scale) && read_sum(n, x, &part, depth - 1) && add_scaled(sum, &part, scale);
    return read_sum(n, x, sum, depth - 1) && read_sum(n, y, &part, depth - 1) && add_scaled(sum, &part, 1);
}

bool nest_sum(const Nest *n, const TileValue *value, NestSum *sum) { return read_sum(n, value, sum, 2 * NEST_OPEN); }

bool nest_sum_add(NestSum *sum, const NestSum *more, int64_t scale) { return add_scaled(sum, more, scale); }

bool nest_sum_split(const Nest *n, const NestSum *sum, int64_t divisor, NestSum *quotient, NestSum *rest) {
    *quotient = *rest = (NestSum){0};
    if (divisor <= 0 || sum->constant < 0) return false;
    quotient->constant = sum->constant / divisor;
    rest->constant = sum->constant % divisor;
    int64_t greatest = rest->constant;
    for (unsigned i = 1; i < n->open_count; i++) {
        if (sum->scale[i] < 0) return false;
        if (sum->scale[i] % divisor == 0) {
            quotient->scale[i] = sum->scale[i] / divisor;
        } else {
            rest->scale[i] = sum->scale[i];
            greatest += sum->scale[i] * (extent_at(n, i) - 1);
        }
    }
    return greatest < divisor;
}

bool nest_sum_range(const Nest *n, const NestSum *sum, int64_t *least, int64_t *greatest) {
    *least = *greatest = sum->constant;
    for (unsigned i = 1; i < n->open_count; i++) {
        if (!sum->scale[i]) continue;
        if (extent_at(n, i) <= 0 || extent_at(n, i) > INT32_MAX) return false;
        *(sum->scale[i] < 0 ? least : greatest) += sum->scale[i] * (extent_at(n, i) - 1);
    }
    return true;
}

bool nest_sum_apply(const Nest *n, TileOpId id, const NestSum *x, int64_t y, NestSum *result) {
    NestSum other, constant = {.constant = y};
    bool shift = y >= 0 && y < 31;
    *result = *x;
    switch ((int)id) {
    case TILE_OP_ADD: return add_scaled(result, &constant, 1);
    case TILE_OP_SUB: return add_scaled(result, &constant, -1);
    case TILE_OP_MUL: *result = (NestSum){0}; return add_scaled(result, x, y);
    case TILE_OP_SHL: *result = (NestSum){0}; return shift && add_scaled(result, x, INT64_C(1) << y);
    case TILE_OP_SHR: return shift && nest_sum_split(n, x, INT64_C(1) << y, result, &other);
    case TILE_OP_DIV: return nest_sum_split(n, x, y, result, &other);
    case TILE_OP_REM: return nest_sum_split(n, x, y, &other, result);
    case TILE_OP_AND: return y >= 0 && (y & (y + 1)) == 0 && nest_sum_split(n, x, y + 1, &other, result);
    default: return false;
    }
}
