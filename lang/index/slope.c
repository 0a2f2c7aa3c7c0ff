/* Slopes: how values depend on an induction variable or a program id. Requires sums. */
#include "lang/index/internal.h"

#include "lang/ir/build.h"

/* ---- dependence ---- */

bool tile_index_depends(TileIndices *indices, const TileValue *value, const TileValue *on) {
    TileMap seen;
    tile_map_init(&seen, indices->arena);
    TILE_LIST(const TileValue *) worklist = {0};
    tile_list_push(indices->arena, &worklist, value);
    while (worklist.count) {
        const TileValue *next = worklist.items[--worklist.count];
        if (next == on) return true;
        if (!next->op || next->op->region_count || tile_map_get(&seen, next)) continue;
        tile_map_set(&seen, next, (void *)next);
        for (unsigned i = 0; i < next->op->operand_count; i++)
            tile_list_push(indices->arena, &worklist, tile_op_operand(next->op, i));
    }
    return false;
}

/* ---- monotonicity ---- */

static TileGrowth reversed(TileGrowth growth) {
    if (growth == TILE_GROWTH_RISES) return TILE_GROWTH_FALLS;
    return growth == TILE_GROWTH_FALLS ? TILE_GROWTH_RISES : growth;
}

static TileGrowth growth_of_symbol(TileIndices *indices, const TileSymbol *symbol, const TileValue *on) {
    int64_t divisor;
    if (!symbol->value) return TILE_GROWTH_UNKNOWN;
    if (symbol->value == on) return TILE_GROWTH_RISES;
    if (!tile_index_depends(indices, symbol->value, on)) return TILE_GROWTH_NONE;
    const TileOp *op = symbol->value->op;
    if (op->id == TILE_OP_MIN || op->id == TILE_OP_MAX)
        return tile_index_growth(indices, tile_op_operand(op, 0), on) |
               tile_index_growth(indices, tile_op_operand(op, 1), on);
    if (op->id == TILE_OP_DIV && tile_value_integer(tile_op_operand(op, 1), &divisor) && divisor > 0)
        return tile_index_growth(indices, tile_op_operand(op, 0), on);
    return TILE_GROWTH_UNKNOWN;
}

TileGrowth tile_index_growth(TileIndices *indices, const TileValue *value, const TileValue *on) {
    const TileSum *sum = tile_index_sum(&indices->view, value);
    TileGrowth growth = TILE_GROWTH_NONE;
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        TileGrowth term = TILE_GROWTH_NONE;
        for (uint32_t k = 0; k < product->degree; k++) term |= growth_of_symbol(indices, product->symbols[k], on);
        if (term && product->degree > 1) return TILE_GROWTH_UNKNOWN; /* the other factors' signs are not known */
        growth |= product->factor < 0 ? reversed(term) : term;
    }
    return growth;
}

/* ---- slopes ---- */

void tile_slopes_init(TileSlopes *slopes, TileIndices *indices, TileOp *loop) {
    *slopes = (TileSlopes){.loop = loop};
    tile_index_view_init(&slopes->view, indices, loop, false);
    tile_map_init(&slopes->known, indices->arena);
}

static TileSlope varies(void) { return (TileSlope){TILE_SLOPE_VARYING, 0, NULL}; }

/* A fold_loop has an induction variable in each region that iterates over its lines. */
static bool is_induction_variable(const TileSlopes *slopes, const TileValue *value) {
    return !value->op && value->block->op == slopes->loop && value->index == 0 && value->type->scalar == TILE_I64;
}

static bool is_uniform(const TileSlopes *slopes, const TileValue *value) {
    const TileSlope *slope = tile_map_get(&slopes->known, value);
    return tile_value_outside(value, slopes->loop) || (slope && slope->kind == TILE_SLOPE_UNIFORM);
}

/* A product is affine if it is the induction variable times a constant and at most one value. */
static TileSlope slope_of_product(TileSlopes *slopes, const TileProduct *product) {
    TileSlope slope = {TILE_SLOPE_UNIFORM, product->factor, NULL};
    for (uint32_t i = 0; i < product->degree; i++) {
        if (!product->symbols[i]->value) return varies();
        if (!is_induction_variable(slopes, product->symbols[i]->value)) continue;
        if (slope.kind == TILE_SLOPE_AFFINE) return varies();
        slope.kind = TILE_SLOPE_AFFINE;
    }
    for (uint32_t i = 0; i < product->degree; i++) {
        TileValue *value = product->symbols[i]->value;
        int64_t number;
        if (is_induction_variable(slopes, value)) continue;
        if (!is_uniform(slopes, value)) return varies();
        if (slope.kind != TILE_SLOPE_AFFINE) continue;
        if (slopes->given && slopes->given(slopes->state, value, &number)) {
            if (__builtin_mul_overflow(slope.step, number, &slope.step)) return varies();
        } else {
            if (slope.factor) return varies();
            slope.factor = value;
        }
    }
    return slope;
}

static TileSlope slope_of_sum(TileSlopes *slopes, const TileSum *sum) {
    TileSlope total = {TILE_SLOPE_UNIFORM, 0, NULL};
    for (uint32_t i = 0; i < sum->count; i++) {
        TileSlope slope = slope_of_product(slopes, &sum->products[i]);
        if (slope.kind == TILE_SLOPE_VARYING) return slope;
        if (slope.kind == TILE_SLOPE_UNIFORM || !slope.step) continue;
        if (total.step && total.factor != slope.factor) return varies();
        if (__builtin_add_overflow(total.step, slope.step, &slope.step)) return varies();
        total = slope;
    }
    return total.step ? total : (TileSlope){TILE_SLOPE_UNIFORM, 0, NULL};
}

/* The induction variable of an inner loop is the same in all lanes; its loop-carried values need not be. */
static TileSlope slope_of_argument(const TileSlopes *slopes, const TileValue *value) {
    if (is_induction_variable(slopes, value)) return (TileSlope){TILE_SLOPE_AFFINE, 1, NULL};
    if (value->index == 0 && value->block->op != slopes->loop) return (TileSlope){TILE_SLOPE_UNIFORM, 0, NULL};
    return varies();
}

/* A value that is computed from a varying one counts as varying, even if its sum shows that the variation cancels: the
 * caller computes the value by its op. Each lane has its own buffers. */
static TileSlope slope_of_op(TileSlopes *slopes, const TileValue *value) {
    const TileOp *op = value->op;
    bool same = !op->region_count && op->id != TILE_OP_BUFFER;
    if (op->region_count) return varies();
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileSlope operand = tile_index_slope(slopes, tile_op_operand(op, i));
        if (operand.kind == TILE_SLOPE_VARYING) return operand;
        same &= operand.kind == TILE_SLOPE_UNIFORM;
    }
    return same ? (TileSlope){TILE_SLOPE_UNIFORM, 0, NULL} : slope_of_sum(slopes, tile_index_sum(&slopes->view, value));
}

static bool is_known(void *state, const TileValue *value) {
    const TileSlopes *slopes = state;
    return tile_value_outside(value, slopes->loop) || tile_map_get(&slopes->known, value);
}

static const TileValue *needed(void *state, const TileValue *value, unsigned k) {
    return value->op && !value->op->region_count && k < value->op->operand_count ? tile_op_operand(value->op, k) : NULL;
}

static void compute(void *state, const TileValue *value) {
    TileSlopes *slopes = state;
    TileSlope slope = value->op ? slope_of_op(slopes, value) : slope_of_argument(slopes, value);
    tile_map_set(&slopes->known, value, tile_arena_copy(slopes->view.indices->arena, &slope, sizeof slope));
}

TileSlope tile_index_slope(TileSlopes *slopes, TileValue *value) {
    if (tile_value_outside(value, slopes->loop)) return (TileSlope){TILE_SLOPE_UNIFORM, 0, NULL};
    if (!tile_map_get(&slopes->known, value))
        tile_index_in_order(slopes->view.indices, &(TileIndexOrder){is_known, needed, compute, slopes}, value);
    return *(const TileSlope *)tile_map_get(&slopes->known, value);
}
