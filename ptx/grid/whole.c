/* Purpose: test once for a whole block whether a mask has any effect (loop unswitching, for masks). Few blocks have
 * lanes past the end of a range, or keys that a query must not see; all others skip the fill or select, and the ops
 * that serve it alone.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %v = const {value = 1.0} : f32[32, 32]
 *       %w = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *       store_tile %x, %w, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, out> {noalias}, %begin: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %f = const {value = 0.0} : f32
 *       %v = const {value = 1.0} : f32[32, 32]
 *       %0 = const {value = 32} : i64
 *       %1 = ge %end, %0 : bool
 *       %w = if %1 : f32[32, 32] {
 *         yield %v
 *       } {
 *         %w.1 = fill %v, %f, %zero, %end {axes = [1]} : f32[32, 32]
 *         yield %w.1
 *       }
 *       store_tile %x, %w, %begin, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * A select is skipped where its comparisons of indices hold for all lanes. This is tested with the bounds of both
 * sides: for x < y the greatest x is compared with the least y. Later uses of the tile take it filled where that
 * changes no result, so that the unfilled tile is not live beside the filled one.
 *
 * A scan or fold whose combiner is one op, such as a sum, and whose mask excludes elements past a range's end, gets its
 * excluded elements filled with the identity element instead; that fill is then skipped like the others.
 *
 * Needs: gpu-dot-operands, which looks for fills. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/grid/scans.h"

enum { LEAST_LANES = 256, MOST_TERMS = 8, MOST_DEPTH = 16, MOST_USES = 64 };

#define MOST_NUMBER (INT64_C(1) << 40) /* bound of the part that differs between lanes: far below where sums wrap */

/* The range of an index tile's lanes: each lane is the sum of terms that all lanes share, each added or subtracted,
 * and a number of its own between least and most; modulo 2^64. */
typedef struct Span {
    TileValue *terms[MOST_TERMS];
    bool minus[MOST_TERMS];
    unsigned count;
    int64_t least, most;
} Span;

typedef struct Whole {
    TilePassContext *context;
    TileIndexView view; /* index sums of tiles */
    TileBuilder b;
} Whole;

/* ---- the range of a tile's lanes ---- */

static bool is_shared(const TileProduct *product) {
    return product->degree == 1 && product->symbols[0]->value && !tile_type_is_tile(product->symbols[0]->value->type);
}

/* False if a term's factor is not 1 or -1, or if the part that differs between lanes has no bounds. */
static bool find_span(Whole *whole, const TileValue *value, Span *span) {
    TileSumTable *table = tile_index_table(whole->view.indices);
    if (value->type->scalar != TILE_I64) return false;
    const TileSum *sum = tile_index_sum(&whole->view, value), *own = tile_sum_integer(table, sum->constant);
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

static TileValue *binary(Whole *whole, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(&whole->b, id, x, y);
}

static TileValue *build_and(Whole *whole, TileValue *x, TileValue *y) {
    if (!x || !y) return x ? x : y;
    return binary(whole, TILE_OP_AND, x, y);
}

/* Builds the least and the greatest lane, and returns the condition that they are ordered, which fails if the sums
 * wrap; NULL: they are constants. */
static TileValue *build_ends(Whole *whole, const Span *span, TileValue **least, TileValue **most) {
    TileValue *base = NULL;
    for (unsigned i = 0; i < span->count; i++) {
        if (base)
            base = binary(whole, span->minus[i] ? TILE_OP_SUB : TILE_OP_ADD, base, span->terms[i]);
        else
            base = span->minus[i] ? tile_build_unary(&whole->b, TILE_OP_NEG, span->terms[i]) : span->terms[i];
    }
    *least = tile_build_i64(&whole->b, span->least);
    *most = tile_build_i64(&whole->b, span->most);
    if (!base) return NULL;
    *least = binary(whole, TILE_OP_ADD, base, *least);
    *most = binary(whole, TILE_OP_ADD, base, *most);
    return binary(whole, TILE_OP_LE, *least, *most);
}

/* ---- does a condition hold for all lanes? ---- */

static bool can_build_test(Whole *whole, const TileValue *condition, unsigned depth) {
    const TileOp *op = condition->op;
    Span left = {0}, right = {0};
    if (!op || !depth) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE: return can_build_test(whole, tile_op_operand(op, 0), depth - 1);
    case TILE_OP_AND:
        return can_build_test(whole, tile_op_operand(op, 0), depth - 1) &&
               can_build_test(whole, tile_op_operand(op, 1), depth - 1);
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE:
        return find_span(whole, tile_op_operand(op, 0), &left) && find_span(whole, tile_op_operand(op, 1), &right);
    default: return false;
    }
}

/* Requires can_build_test. */
static TileValue *build_test(Whole *whole, const TileValue *condition) {
    const TileOp *op = condition->op;
    if (op->id == TILE_OP_BROADCAST || op->id == TILE_OP_RESHAPE) return build_test(whole, tile_op_operand(op, 0));
    if (op->id == TILE_OP_AND) {
        TileValue *first = build_test(whole, tile_op_operand(op, 0));
        return build_and(whole, first, build_test(whole, tile_op_operand(op, 1)));
    }
    Span left = {0}, right = {0};
    find_span(whole, tile_op_operand(op, 0), &left);
    find_span(whole, tile_op_operand(op, 1), &right);
    TileValue *low[2], *high[2];
    TileValue *ordered = build_ends(whole, &left, &low[0], &high[0]);
    ordered = build_and(whole, ordered, build_ends(whole, &right, &low[1], &high[1]));
    bool less = op->id == TILE_OP_LT || op->id == TILE_OP_LE;
    return build_and(whole, ordered, binary(whole, (TileOpId)op->id, less ? high[0] : low[0], less ? low[1] : high[1]));
}

/* The condition that the fill changes no lane; NULL: constant bounds keep all lanes, or there is no bound to test. */
static TileValue *build_fill_is_idle(Whole *whole, const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    TileValue *idle = NULL;
    for (unsigned i = 0; i < axes->count; i++) {
        int64_t extent = fill->results[0].type->extent[axes->integers[i]], constant;
        TileValue *lo = tile_fill_lo(fill, i), *hi = tile_fill_hi(fill, i);
        if (!tile_value_integer(lo, &constant) || constant > 0)
            idle = build_and(whole, idle, binary(whole, TILE_OP_LE, lo, tile_build_i64(&whole->b, 0)));
        if (!tile_value_integer(hi, &constant) || constant < extent)
            idle = build_and(whole, idle, binary(whole, TILE_OP_GE, hi, tile_build_i64(&whole->b, extent)));
    }
    return idle;
}

/* ---- the branch ---- */

/* Sinks ops whose only use is this op. */
static void sink_operands(TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        TileOp *source = value->op;
        bool own = source && source->block && !source->region_count && source->result_count == 1 &&
                   tile_value_has_one_use(value) && tile_op_is_pure(source) && tile_type_is_tile(value->type);
        if (!own || i == (op->id == TILE_OP_SELECT ? 1u : 0u)) continue;
        tile_op_detach(source);
        tile_op_insert_before(source, op);
        sink_operands(source);
    }
}

/* Does the op, or an op around it, follow `first` in the block of `first`? */
static bool runs_after(const TileOp *op, const TileOp *first) {
    while (op && op->block != first->block) op = op->block->op;
    for (const TileOp *next = first->next; op && next; next = next->next)
        if (next == op) return true;
    return false;
}

/* ---- undefined lanes ---- */

/* The lanes lo .. hi along an axis of a tile. */
typedef struct Bounds {
    unsigned axis;
    const TileValue *lo, *hi;
} Bounds;

/* A load leaves the lanes outside of its range undefined. Is its range along the axis equal to the bounds? */
static bool load_is_bounded(const TileOp *load, const Bounds *bounds) {
    TileValue *lo, *hi;
    if (tile_op_has_part(load, TILE_PARTS_FILL)) return false;
    return tile_access_bounds(load, bounds->axis, &lo, &hi) && lo == bounds->lo && hi == bounds->hi;
}

/* Is every lane outside of the bounds undefined? Such lanes come from loads, and elementwise ops propagate them. Of a
 * select both arms must have them. */
static bool is_bounded(const TileValue *value, const Bounds *bounds, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth) return false;
    if (op->id == TILE_OP_LOAD_TILE) return load_is_bounded(op, bounds);
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    bool both_arms = op->id == TILE_OP_SELECT;
    for (unsigned i = both_arms; i < op->operand_count; i++) {
        bool bounded = is_bounded(tile_op_operand(op, i), bounds, depth - 1);
        if (bounded != both_arms) return bounded;
    }
    return both_arms;
}

static bool fills_along(const TileOp *fill, const Bounds *bounds) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (axes->integers[i] == bounds->axis && tile_fill_lo(fill, i) == bounds->lo &&
            tile_fill_hi(fill, i) == bounds->hi)
            return true;
    return false;
}

/* Does no result depend on the lanes outside of the bounds that the use reads? A fill with the same bounds replaces
 * them. `budget` is how many more uses are examined. */
static bool ignores_outside(const TileUse *use, const Bounds *bounds, unsigned *budget) {
    const TileOp *user = use->user;
    if (!*budget) return false;
    --*budget;
    if (user->id == TILE_OP_FILL) return use->index == 0 && fills_along(user, bounds);
    if (tile_op_info(user->id)->class != TILE_CLASS_ELEMENTWISE) return false;
    for (const TileUse *next = user->results[0].first_use; next; next = next->next)
        if (!ignores_outside(next, bounds, budget)) return false;
    return true;
}

/* Replaces uses after the fill by the filled value where the filled lanes make no difference: these are undefined in
 * the tile, or another fill replaces what is computed from them. Otherwise a thread would keep both values. */
static void use_filled(TileValue *value, const TileOp *fill, TileValue *filled) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    bool undefined = true;
    Bounds bounds[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < axes->count; i++) {
        bounds[i] =
            (Bounds){(unsigned)axes->integers[i], tile_fill_lo(fill, i), tile_fill_hi(fill, i)};
        undefined &= is_bounded(value, &bounds[i], MOST_DEPTH);
    }
    for (TileUse *use = value->first_use, *next; use; use = next) {
        unsigned budget = MOST_USES, ignored = 0;
        next = use->next;
        if (!runs_after(use->user, filled->op)) continue;
        while (ignored < axes->count && ignores_outside(use, &bounds[ignored], &budget)) ignored++;
        if (undefined || ignored == axes->count) tile_op_set_operand(use->user, use->index, filled);
    }
}

static void build_branch(Whole *whole, TileOp *op, TileValue *idle, unsigned kept) {
    const TileType *type = op->results[0].type;
    TileOp *branch = tile_build_if(&whole->b, idle, &type, 1);
    branch->results[0].name = op->results[0].name;
    tile_value_replace(&op->results[0], &branch->results[0]);
    TileValue *value = tile_op_operand(op, kept);
    TileBuilder b = tile_builder_at_end(whole->context->module, &branch->regions[0]);
    b.location = op->location;
    tile_build_end(&b, TILE_OP_YIELD, &value, 1);
    tile_op_detach(op);
    tile_op_append(op, &branch->regions[1]);
    b.block = &branch->regions[1];
    value = &op->results[0];
    tile_build_end(&b, TILE_OP_YIELD, &value, 1);
    sink_operands(op);
    if (op->id == TILE_OP_FILL) use_filled(tile_op_operand(op, kept), op, &branch->results[0]);
}

/* The fill that computes the mask of a scan or fold, and the identity element of its combiner; NULL: there is none. */
static TileOp *find_mask(const TileOp *op, uint64_t *identity) {
    if ((op->id != TILE_OP_SCAN && op->id != TILE_OP_FOLD) || !tile_op_has_part(op, TILE_PARTS_MASK)) return NULL;
    uint64_t kept, filled;
    TileOp *mask = tile_value_def(tile_op_named(op, TILE_OPERAND_MASK), TILE_OP_FILL);
    bool plain = mask && tile_value_bits(tile_op_operand(mask, 0), &kept) && kept &&
                 tile_value_bits(tile_op_operand(mask, 1), &filled) && !filled;
    return plain && gpu_scan_op(op, identity) != TILE_OP_COUNT ? mask : NULL;
}

static bool fill_elements(TilePassContext *context, TileOp *op) {
    uint64_t identity;
    TileOp *mask = find_mask(op, &identity);
    if (!mask) return false;
    TileBuilder b = tile_builder_before(context->module, op);
    const TileAttribute *axes = tile_op_get(mask, TILE_ATTRIBUTE_AXES);
    TileValue *elements = tile_op_operand(op, 0), *bounds[2 * TILE_MAX_TILE_RANK];
    const TileType *scalar = tile_type_scalar(context->module->context, elements->type->scalar);
    for (unsigned i = 0; i < 2 * axes->count; i++) bounds[i] = tile_op_named_at(mask, TILE_OPERAND_BOUNDS, i);
    TileValue *with = tile_build_bits(&b, scalar, identity);
    tile_op_set_operand(op, 0, tile_build_fill(&b, elements, with, axes->integers, bounds, axes->count));
    tile_op_remove_operand(op, 1);
    if (tile_op_has_part(op, TILE_PARTS_INIT)) {
        const int64_t init = TILE_PARTS_INIT;
        tile_op_set_integers(context->module, op, TILE_ATTRIBUTE_PARTS, &init, 1);
    } else {
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
    }
    if (!mask->results[0].first_use) tile_op_erase(mask);
    return true;
}

static bool fill_scans(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) changed |= fill_scans(context, &op->regions[i]);
        changed |= fill_elements(context, op);
    }
    return changed;
}

/* Does the condition compare indices? Other selects are not masks. */
static bool compares_indices(const TileValue *condition, unsigned depth) {
    const TileOp *op = condition->op;
    if (!op || !depth || !tile_type_is_tile(condition->type)) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_LT:
    case TILE_OP_LE:
    case TILE_OP_GT:
    case TILE_OP_GE:
    case TILE_OP_EQ:
    case TILE_OP_NE: return tile_op_operand(op, 0)->type->scalar == TILE_I64;
    case TILE_OP_AND:
    case TILE_OP_OR:
        return compares_indices(tile_op_operand(op, 0), depth - 1) ||
               compares_indices(tile_op_operand(op, 1), depth - 1);
    case TILE_OP_NOT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE: return compares_indices(tile_op_operand(op, 0), depth - 1);
    default: return false;
    }
}

static void remark_select(TilePassContext *context, const TileOp *select) {
    if (compares_indices(tile_op_operand(select, 0), MOST_DEPTH))
        tile_pass_remark(context, select, TILE_DECISION_MASK_BY_ELEMENT, "the mask", "%s",
                         "it is more than the `and` of `<`, `<=`, `>` and `>=` between sums of indices");
}

static bool try_op(Whole *whole, TileOp *op) {
    if (!op->result_count || !tile_type_is_tile(op->results[0].type)) return false;
    if (tile_type_lanes(op->results[0].type) < LEAST_LANES) return false;
    const char *error = whole->b.error;
    whole->b = tile_builder_before(whole->context->module, op);
    whole->b.error = error;
    TileValue *idle = NULL;
    if (op->id == TILE_OP_FILL) idle = build_fill_is_idle(whole, op);
    if (op->id == TILE_OP_SELECT && can_build_test(whole, tile_op_operand(op, 0), MOST_DEPTH))
        idle = build_test(whole, tile_op_operand(op, 0));
    else if (op->id == TILE_OP_SELECT)
        remark_select(whole->context, op);
    if (idle) build_branch(whole, op, idle, op->id == TILE_OP_SELECT ? 1 : 0);
    return idle != NULL;
}

static bool walk(Whole *whole, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= walk(whole, &op->regions[i]);
        changed |= try_op(whole, op);
    }
    return changed;
}

TileResult tile_pass_gpu_whole(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    bool changed = fill_scans(context, &func->body);
    Whole whole = {.context = context};
    tile_index_view_init(&whole.view, tile_pass_indices(context, func), NULL, true);
    changed |= walk(&whole, &func->body);
    if (whole.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-whole: %s", whole.b.error);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
