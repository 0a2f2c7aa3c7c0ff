#include "ptx/grid/masks.h"

#include "lang/ir/layout_rules.h"
#include "lang/ir/operands.h"

enum { LEAST_LANES = 256, MOST_TERMS = 8, MOST_DEPTH = 16 };

#define MOST_NUMBER (INT64_C(1) << 40) /* bound of the part that differs between lanes: far below where sums wrap */

/* The range of an index tile's lanes: each lane is the sum of terms that all lanes share, each added or subtracted,
 * and a number of its own between least and most; modulo 2^64. Or the quotient of that by a number. Where there is a fill, it is that only if this
 * changes no lane. */
typedef struct Span {
    TileValue *terms[MOST_TERMS];
    bool minus[MOST_TERMS];
    unsigned count;
    int64_t least, most, divisor; /* 1: no quotient */
    const TileOp *fill;
} Span;

/* ---- the range of a tile's lanes ---- */

static bool is_shared(const TileProduct *product) {
    return product->degree == 1 && product->symbols[0]->value && !tile_type_is_tile(product->symbols[0]->value->type);
}

/* What the lanes are computed from: elements that are moved, that a fill leaves where it changes none, and that are divided by a number greater than 0. The
 * greater one has the greater quotient, however it is rounded. */
static const TileValue *undivided(const TileValue *value, Span *span) {
    for (const TileOp *op; (op = value->op) && tile_type_is_tile(value->type); value = tile_op_operand(op, 0)) {
        int64_t divisor;
        if (op->id == TILE_OP_FILL && !span->fill) {
            span->fill = op;
        } else if (op->id == TILE_OP_DIV) {
            if (span->divisor > 1 || !tile_value_integer(tile_op_operand(op, 1), &divisor) || divisor < 1) return value;
            span->divisor = divisor;
        } else if (op->id != TILE_OP_BROADCAST && op->id != TILE_OP_RESHAPE) {
            return value;
        }
    }
    return value;
}

/* False if a term's factor is not 1 or -1, or if the part that differs between lanes has no bounds. */
static bool find_span(GpuMasks *masks, const TileValue *lanes, Span *span) {
    TileSumTable *table = tile_index_table(masks->view.indices);
    *span = (Span){.divisor = 1};
    if (lanes->type->scalar != TILE_I64) return false;
    const TileValue *value = undivided(lanes, span);
    const TileSum *sum = tile_index_sum(&masks->view, value), *own = tile_sum_integer(table, sum->constant);
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        if (!is_shared(product)) {
            own = tile_sum_add(table, own, tile_sum_term(table, product));
            continue;
        }
        if (span->count == MOST_TERMS || (product->factor != 1 && product->factor != -1)) return false;
        span->minus[span->count] = product->factor < 0;
        span->terms[span->count++] = product->symbols[0]->value;
    }
    TileInterval interval = tile_sum_interval(table, own);
    span->least = interval.least;
    span->most = interval.most;
    return interval.least > -MOST_NUMBER && interval.most < MOST_NUMBER;
}

static TileValue *binary(GpuMasks *masks, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&masks->b, id, x, y);
}

static TileValue *build_and(GpuMasks *masks, TileValue *x, TileValue *y) {
    if (!x || !y) return x ? x : y;
    return binary(masks, TILE_OP_AND, x, y);
}

static TileValue *build_fill_is_idle(GpuMasks *masks, const TileOp *fill);

static TileValue *divided(GpuMasks *masks, TileValue *value, int64_t divisor) {
    return divisor == 1 ? value : binary(masks, TILE_OP_DIV, value, tile_build_i64(&masks->b, divisor));
}

/* Builds the least and the greatest lane, and returns the condition that they are these: they are ordered, unless the sums
 * wrap, and no lane is filled; NULL: they are constants. */
static TileValue *build_ends(GpuMasks *masks, const Span *span, TileValue **least, TileValue **most) {
    TileValue *base = NULL, *idle = span->fill ? build_fill_is_idle(masks, span->fill) : NULL;
    for (unsigned i = 0; i < span->count; i++) {
        if (base)
            base = binary(masks, span->minus[i] ? TILE_OP_SUB : TILE_OP_ADD, base, span->terms[i]);
        else
            base = span->minus[i] ? tile_build_unary(&masks->b, TILE_OP_NEG, span->terms[i]) : span->terms[i];
    }
    *least = tile_build_i64(&masks->b, span->least);
    *most = tile_build_i64(&masks->b, span->most);
    if (base) {
        *least = binary(masks, TILE_OP_ADD, base, *least);
        *most = binary(masks, TILE_OP_ADD, base, *most);
        idle = build_and(masks, idle, binary(masks, TILE_OP_LE, *least, *most));
    }
    *least = divided(masks, *least, span->divisor);
    *most = divided(masks, *most, span->divisor);
    return idle;
}

/* ---- does a condition hold for all lanes? ---- */

static bool fill_can_be_idle(const TileOp *fill);

bool gpu_says_lanes(const TileOp *fill) {
    uint64_t inside, outside;
    bool lanes = fill->id == TILE_OP_FILL && fill->results[0].type->scalar == TILE_BOOL && fill_can_be_idle(fill);
    return lanes && tile_value_bits(tile_op_operand(fill, 0), &inside) && tile_value_bits(tile_op_operand(fill, 1), &outside) && inside && !outside;
}

static bool can_build_test(GpuMasks *masks, const TileValue *condition, unsigned depth) {
    const TileOp *op = condition->op;
    Span left, right;
    if (!op || !depth) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE: return can_build_test(masks, tile_op_operand(op, 0), depth - 1);
    case TILE_OP_AND:
        return can_build_test(masks, tile_op_operand(op, 0), depth - 1) &&
               can_build_test(masks, tile_op_operand(op, 1), depth - 1);
    case TILE_OP_FILL: return gpu_says_lanes(op);
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE:
        return find_span(masks, tile_op_operand(op, 0), &left) && find_span(masks, tile_op_operand(op, 1), &right);
    default: return false;
    }
}

/* Requires can_build_test. */
static TileValue *build_test(GpuMasks *masks, const TileValue *condition) {
    const TileOp *op = condition->op;
    if (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE) return build_test(masks, tile_op_operand(op, 0));
    if (op->id == TILE_OP_FILL) return build_fill_is_idle(masks, op);
    if (op->id == TILE_OP_AND) {
        TileValue *first = build_test(masks, tile_op_operand(op, 0));
        return build_and(masks, first, build_test(masks, tile_op_operand(op, 1)));
    }
    Span left, right;
    find_span(masks, tile_op_operand(op, 0), &left);
    find_span(masks, tile_op_operand(op, 1), &right);
    TileValue *low[2], *high[2];
    TileValue *ordered = build_ends(masks, &left, &low[0], &high[0]);
    ordered = build_and(masks, ordered, build_ends(masks, &right, &low[1], &high[1]));
    bool less = op->id == TILE_OP_LT || op->id == TILE_OP_LE;
    return build_and(masks, ordered, binary(masks, (TileOpId)op->id, less ? high[0] : low[0], less ? low[1] : high[1]));
}

/* Does a condition whose parts all have to hold have a part that can be tested, or (`tests` is false) one that cannot? */
static bool has_part(GpuMasks *masks, const TileValue *condition, bool tests, unsigned depth) {
    if (can_build_test(masks, condition, depth)) return tests;
    const TileOp *both = depth ? tile_value_def(condition, TILE_OP_AND) : NULL;
    if (!both) return !tests;
    return has_part(masks, tile_op_operand(both, 0), tests, depth - 1) || has_part(masks, tile_op_operand(both, 1), tests, depth - 1);
}

/* The parts that can be tested, or (`tests` is false) a tile of the others; NULL: there are none. */
static TileValue *build_parts(GpuMasks *masks, TileValue *condition, bool tests, unsigned depth) {
    if (can_build_test(masks, condition, depth)) return tests ? build_test(masks, condition) : NULL;
    const TileOp *both = depth ? tile_value_def(condition, TILE_OP_AND) : NULL;
    if (!both) return tests ? NULL : condition;
    if (!tests && !has_part(masks, condition, true, depth)) return condition;
    TileValue *first = build_parts(masks, tile_op_operand(both, 0), tests, depth - 1);
    return build_and(masks, first, build_parts(masks, tile_op_operand(both, 1), tests, depth - 1));
}

/* The condition that the fill changes no lane. */
static TileValue *build_fill_is_idle(GpuMasks *masks, const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    TileValue *idle = NULL;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t extent = fill->results[0].type->extent[axes->integers[i]], constant;
        TileValue *lo = tile_fill_lo(fill, i), *hi = tile_fill_hi(fill, i);
        if (!tile_value_integer(lo, &constant) || constant > 0)
            idle = build_and(masks, idle, binary(masks, TILE_OP_LE, lo, tile_build_i64(&masks->b, 0)));
        if (!tile_value_integer(hi, &constant) || constant < extent)
            idle = build_and(masks, idle, binary(masks, TILE_OP_GE, hi, tile_build_i64(&masks->b, extent)));
    }
    return idle;
}

/* ---- masks ---- */

void gpu_masks_init(GpuMasks *masks, TilePassContext *context, TileFunc *func) {
    *masks = (GpuMasks){.context = context};
    tile_index_view_init(&masks->view, tile_pass_indices(context, func), NULL, true);
}

static bool fill_can_be_idle(const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t extent = fill->results[0].type->extent[axes->integers[i]], constant;
        if (!tile_value_integer(tile_fill_lo(fill, i), &constant) || constant > 0) return true;
        if (!tile_value_integer(tile_fill_hi(fill, i), &constant) || constant < extent) return true;
    }
    return false;
}

bool gpu_mask_is_large(const TileOp *op) {
    return op->result_count && tile_type_is_tile(op->results[0].type) &&
           tile_type_lanes(op->results[0].type) >= LEAST_LANES;
}

bool gpu_mask_has_test(GpuMasks *masks, const TileOp *op) {
    if (!gpu_mask_is_large(op)) return false;
    if (op->id == TILE_OP_FILL) return fill_can_be_idle(op);
    return op->id == TILE_OP_SELECT && can_build_test(masks, tile_op_operand(op, 0), MOST_DEPTH);
}

bool gpu_load_mask_is_testable(GpuMasks *masks, const TileOp *op) {
    return op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) && tile_op_has_part(op, TILE_PARTS_MASK) &&
           can_build_test(masks, tile_op_named(op, TILE_OPERAND_MASK), MOST_DEPTH);
}

bool gpu_update_mask_has_test(GpuMasks *masks, const TileOp *op) {
    return op->id == TILE_OP_ATOMIC_TILE && !tile_op_get(op, TILE_ATTRIBUTE_COLLECTED) && !tile_value_has_uses(&op->results[0]) &&
           tile_op_has_part(op, TILE_PARTS_MASK) && has_part(masks, tile_op_named(op, TILE_OPERAND_MASK), true, MOST_DEPTH);
}

bool gpu_load_mask_has_test(GpuMasks *masks, const TileOp *op) {
    bool masked = op->id == TILE_OP_LOAD_TILE && tile_type_is_tile(op->results[0].type) && tile_op_has_part(op, TILE_PARTS_MASK);
    if (!masked || !has_part(masks, tile_op_named(op, TILE_OPERAND_MASK), true, MOST_DEPTH)) return false;
    int64_t threads = tile_op_func(op)->threads, lanes = tile_type_lanes(op->results[0].type);
    return !tile_op_is_repeated(op) || lanes <= GPU_MOST_BRANCHED * threads;
}

unsigned gpu_mask_kept(const TileOp *op) { return op->id == TILE_OP_SELECT ? 1 : 0; }

TileValue *gpu_mask_build_test(GpuMasks *masks, const TileOp *op, TileOp *before) {
    const char *error = masks->b.error;
    masks->b = tile_builder_before(masks->context->module, before);
    masks->b.error = error;
    if (op->id == TILE_OP_FILL) return build_fill_is_idle(masks, op);
    bool accesses = op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_ATOMIC_TILE;
    if (accesses) return build_parts(masks, tile_op_named(op, TILE_OPERAND_MASK), true, MOST_DEPTH);
    return build_test(masks, tile_op_operand(op, 0));
}

TileValue *gpu_mask_build_rest(GpuMasks *masks, const TileOp *op, TileOp *before) {
    const char *error = masks->b.error;
    masks->b = tile_builder_before(masks->context->module, before);
    masks->b.error = error;
    return build_parts(masks, tile_op_named(op, TILE_OPERAND_MASK), false, MOST_DEPTH);
}

void gpu_mask_remove(TileModule *module, TileOp *op) {
    const TileAttribute *parts = tile_op_get(op, TILE_ATTRIBUTE_PARTS);
    int64_t *others = TILE_NEW_ARRAY(module->arena, int64_t, parts->count);
    unsigned count, kept = 0;
    for (unsigned i = 0; i < parts->count; i++)
        if (parts->integers[i] != TILE_PARTS_MASK) others[kept++] = parts->integers[i];
    tile_op_remove_operand(op, tile_op_operands(op, TILE_OPERAND_MASK, &count));
    if (kept)
        tile_op_set_integers(module, op, TILE_ATTRIBUTE_PARTS, others, kept);
    else
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
}

/* ---- accesses ---- */

typedef struct Bound {
    TileValue *lo, *hi; /* NULL: the constant does not matter */
    int64_t extent;
    unsigned operand; /* of lo; that of hi follows */
} Bound;

/* What the ranges of an access ask. False: its tile is never whole, or it is no access of a tile. */
static bool read_bounds(const TileOp *op, Bound bounds[TILE_MAX_TENSOR_RANK], unsigned *count) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileValue *tile = tile_accessed_tile(op);
    *count = 0;
    if ((op->id != TILE_OP_LOAD_TILE && op->id != TILE_OP_STORE_TILE) || !tile) return false;
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++) {
        if (indices[d].kind != TILE_ACCESS_RANGE) continue;
        int64_t extent = tile->type->extent[indices[d].axis], lo, hi;
        bool begins = tile_value_integer(indices[d].lo, &lo), ends = tile_value_integer(indices[d].hi, &hi);
        if ((extent & (extent - 1)) || (begins && lo > 0) || (ends && hi < extent)) return false;
        if (begins && ends) continue;
        bounds[(*count)++] = (Bound){begins ? NULL : indices[d].lo, ends ? NULL : indices[d].hi, extent, indices[d].operand + 2};
    }
    return true;
}

bool gpu_access_has_test(const TileOp *op) {
    Bound bounds[TILE_MAX_TENSOR_RANK];
    unsigned count;
    return read_bounds(op, bounds, &count) && count;
}

/* Is the comparison of a value with a number a part of the condition? */
static bool is_tested(const TileValue *idle, TileOpId id, const TileValue *value, int64_t number) {
    while (idle) {
        const TileOp *both = tile_value_def(idle, TILE_OP_AND), *own = both ? tile_op_operand(both, 1)->op : idle->op;
        if (own && own->id == id && tile_op_operand(own, 0) == value && tile_value_is_integer(tile_op_operand(own, 1), number))
            return true;
        idle = both ? tile_op_operand(both, 0) : NULL;
    }
    return false;
}

static TileValue *with_test(GpuMasks *masks, TileValue *idle, TileOpId id, TileValue *value, int64_t number) {
    if (is_tested(idle, id, value, number)) return idle;
    return build_and(masks, idle, binary(masks, id, value, tile_build_i64(&masks->b, number)));
}

bool gpu_fill_is_idle_where(const TileOp *op, const TileValue *idle) {
    if (op->id != TILE_OP_FILL) return false;
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t extent = op->results[0].type->extent[axes->integers[i]], constant;
        const TileValue *lo = tile_fill_lo(op, i), *hi = tile_fill_hi(op, i);
        bool begins = tile_value_integer(lo, &constant) ? constant <= 0 : is_tested(idle, TILE_OP_LE, lo, 0);
        bool ends = tile_value_integer(hi, &constant) ? constant >= extent : is_tested(idle, TILE_OP_GE, hi, extent);
        if (!begins || !ends) return false;
    }
    return true;
}

TileValue *gpu_access_build_test(GpuMasks *masks, const TileOp *op, TileOp *before, TileValue *idle) {
    Bound bounds[TILE_MAX_TENSOR_RANK];
    unsigned count;
    const char *error = masks->b.error;
    masks->b = tile_builder_before(masks->context->module, before);
    masks->b.error = error;
    read_bounds(op, bounds, &count);
    for (unsigned i = 0; i < count; i++) {
        if (bounds[i].lo) idle = with_test(masks, idle, TILE_OP_LE, bounds[i].lo, 0);
        if (bounds[i].hi) idle = with_test(masks, idle, TILE_OP_GE, bounds[i].hi, bounds[i].extent);
    }
    return idle;
}

void gpu_access_make_whole(GpuMasks *masks, TileOp *op) {
    Bound bounds[TILE_MAX_TENSOR_RANK];
    unsigned count;
    if (!read_bounds(op, bounds, &count)) return;
    TileBuilder b = tile_builder_before(masks->context->module, op);
    for (unsigned i = 0; i < count; i++) {
        tile_op_set_operand(op, bounds[i].operand, tile_build_i64(&b, 0));
        tile_op_set_operand(op, bounds[i].operand + 1, tile_build_i64(&b, bounds[i].extent));
    }
    if (b.error) masks->b.error = b.error;
}
