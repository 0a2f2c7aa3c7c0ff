/* histogram and searchsorted: each counts how many elements of a tile fulfil a condition, for every lane of another. Elements
 * that are not valid are not counted.
 *
 * All pairs of lanes are compared, a part of the elements at a time, so that no tile of all pairs has to be held. Few elements that have just been loaded
 * are loaded again one by one, and each is compared with all lanes as a number: then nothing is added up across lanes. */
#include "lang/ir/operands.h"
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/count.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

enum { MOST_PAIRS = 1 << 13, MOST_SINGLES = 64 };

typedef enum Condition { IS_EQUAL, IS_BEFORE, IS_NOT_BEHIND } Condition;

/* `elements` and `places` are tiles of rank 1 and one type; `counted` is bool, NULL: all. */
typedef struct Count {
    TileBuilder *b;
    TileValue *elements, *counted, *places;
    Condition condition;
} Count;

static TileValue *is_nan(const Count *n, TileValue *x) {
    return tile_scalar_is_float(x->type->scalar) ? tile_build_unary(n->b, TILE_OP_ISNAN, x) : NULL;
}

/* NaN is behind all numbers. */
static TileValue *compare(const Count *n, TileValue *element, TileValue *place) {
    TileOpId id = n->condition == IS_EQUAL ? TILE_OP_EQ : n->condition == IS_BEFORE ? TILE_OP_LT : TILE_OP_LE;
    TileValue *holds = tile_build_binary(n->b, id, element, place), *last = is_nan(n, place);
    if (!last || n->condition == IS_EQUAL) return holds;
    if (n->condition == IS_BEFORE)
        last = tile_build_binary(n->b, TILE_OP_AND, last, tile_build_unary(n->b, TILE_OP_NOT, is_nan(n, element)));
    return tile_build_binary(n->b, TILE_OP_OR, holds, last);
}

/* Elements first .. first + extent as a column, beside all places. */
static TileValue *part(const Count *n, TileValue *x, int64_t first, const int64_t *extent) {
    if (x->type->extent[0] != extent[0]) x = tile_build_slice(n->b, x, 0, first, extent[0]);
    x = tile_build_reshape(n->b, x, 2, (const int64_t[]){extent[0], 1});
    return tile_build_broadcast(n->b, x, extent);
}

static TileValue *count_of(const Count *n) {
    int64_t elements = n->elements->type->extent[0], places = n->places->type->extent[0], step = 1;
    while (2 * step * places <= MOST_PAIRS && 2 * step <= elements) step *= 2;
    TileValue *row = tile_build_reshape(n->b, n->places, 2, (const int64_t[]){1, places}), *sum = NULL;
    for (int64_t first = 0; first < elements; first += step) {
        const int64_t extent[] = {elements - first < step ? elements - first : step, places};
        TileValue *holds = compare(n, part(n, n->elements, first, extent), tile_build_broadcast(n->b, row, extent));
        if (n->counted) /* what is compared with an element that is not valid is no bool */
            holds = tile_build_ternary(n->b, TILE_OP_SELECT, part(n, n->counted, first, extent), holds,
                                       tile_build_bits(n->b, holds->type, false));
        holds = tile_build_reduce(n->b, tile_build_convert(n->b, holds, TILE_I32), TILE_KIND_SUM, 0);
        sum = sum ? tile_build_binary(n->b, TILE_OP_ADD, sum, holds) : holds;
    }
    return sum;
}

/* The load of few elements that follow one another, behind which nothing has been stored; NULL: they are something else. */
static const TileOp *load_of_few(const Count *n) {
    const TileOp *load = tile_value_def(n->elements, TILE_OP_LOAD_TILE);
    TileAccessIndex index[TILE_MAX_TENSOR_RANK];
    int64_t step, lo, hi, extent = load ? n->elements->type->extent[0] : 0;
    if (!load || n->counted || extent > MOST_SINGLES || load->block != n->b->block || tile_op_get(load, TILE_ATTRIBUTE_PARTS)) return NULL;
    if (tile_access_read(load, index) != 1 || index[0].kind != TILE_ACCESS_RANGE) return NULL;
    bool whole = tile_value_integer(index[0].lo, &lo) && tile_value_integer(index[0].hi, &hi) && lo <= 0 && hi >= extent;
    if (!whole || !tile_value_integer(index[0].step, &step) || step != 1) return NULL;
    for (const TileOp *op = load->next; op; op = op->next)
        if (!tile_op_is_pure(op) && op->id != TILE_OP_LOAD_TILE) return NULL;
    return load;
}

/* The same as count_of, of elements that a load has; `places` may have any shape. */
static TileValue *count_singles(const Count *n, const TileOp *load) {
    const int64_t index = TILE_ACCESS_INDEX;
    const TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = 1, .integers = (int64_t *)&index};
    TileAccessIndex from[TILE_MAX_TENSOR_RANK];
    TileContext *context = n->b->module->context;
    const TileType *scalar = tile_type_scalar(context, n->elements->type->scalar);
    TileValue *sum = NULL;
    tile_access_read(load, from);
    for (int64_t i = 0; i < n->elements->type->extent[0]; i++) {
        TileValue *operands[] = {tile_op_operand(load, 0), tile_build_binary(n->b, TILE_OP_ADD, from[0].first, tile_build_i64(n->b, i))};
        TileValue *element = tile_op_result(tile_build_op(n->b, TILE_OP_LOAD_TILE, operands, 2, &access, 1, &scalar, 1), 0);
        if (tile_type_is_tile(n->places->type)) element = tile_build_splat(n->b, element, n->places->type);
        TileValue *holds = tile_build_convert(n->b, compare(n, element, n->places), TILE_I32);
        sum = sum ? tile_build_binary(n->b, TILE_OP_ADD, sum, holds) : holds;
    }
    return sum;
}

/* Which elements are counted, as a tile of rank 1; NULL: all. Conditions stay with the result. */
static TileValue *counted(TileChecker *c, const TileMeaning *m) {
    const TileValidity *skipped = tile_valid_select(c, m->valid, (1u << m->rank) - 1, false);
    TileValue *mask = skipped ? tile_emit_valid(c, skipped, m) : NULL;
    int64_t lanes = tile_type_lanes(tile_meaning_type(c, m));
    return mask ? tile_build_reshape(tile_emitter(c), mask, 1, &lanes) : NULL;
}

static TileValue *flat(TileChecker *c, const TileMeaning *m) {
    int64_t lanes = tile_type_lanes(tile_meaning_type(c, m));
    return tile_build_reshape(tile_emitter(c), tile_emit_value(c, m), 1, &lanes);
}

/* The work that every step of a count is. */
static void spend(TileChecker *c, int64_t elements, int64_t places) {
    enum { OPS = 8 };
    tile_spend(c, (size_t)(OPS * (1 + elements * places / MOST_PAIRS)));
}

/* histogram(v, bins): how many elements are i, for each i below `bins`. */
TileMeaning tile_check_histogram(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 2, 2, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m;
    if (!tile_check_tile(c, expr, builtin->name, &m)) return tile_error_meaning();
    if (!tile_scalar_is_int((TileScalar)m.scalar))
        return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "integers", tile_meaning_words(c, &m));
    const TileSum *bins = tile_check_extent(c, call->arguments.items[1].value);
    if (!bins) return tile_error_meaning();
    int64_t places = tile_extent_value(c, bins);
    spend(c, tile_type_lanes(tile_meaning_type(c, &m)), places);
    tile_emit_at(c, call->span);
    Count n = {.b = tile_emitter(c), .elements = flat(c, &m), .counted = counted(c, &m), .condition = IS_EQUAL};
    /* A u64 of 2^63 and more is a negative number, which is none of the bins, too. */
    bool wide = tile_scalar_bits((TileScalar)m.scalar) >= 32 && m.scalar != TILE_I32;
    TileScalar scalar = wide ? TILE_I64 : TILE_I32;
    if (m.scalar != scalar) n.elements = tile_build_convert(n.b, n.elements, scalar);
    n.places = tile_build_iota(n.b, tile_type_tile(c->context, scalar, 1, &places), 0);
    int8_t none[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    return tile_value_meaning(c, count_of(&n), &bins, tile_valid_map(c, m.valid, none));
}

/* searchsorted(sorted, v): before how many elements of `sorted` each element of v stands; with `right`, behind how many. */
TileMeaning tile_check_searchsorted(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    static const char *const names[] = {"right", NULL};
    TileMeaning v[2];
    const TileExpr *exprs[2];
    bool right;
    if (!tile_check_arguments(c, call, 2, 2, names) || !tile_check_flag(c, call, "right", &right)) return tile_error_meaning();
    for (unsigned i = 0; i < 2; i++) {
        exprs[i] = tile_positional_argument(call, i);
        v[i] = tile_check_value(c, exprs[i]);
        if (tile_is_error(&v[i])) return v[i];
    }
    if (!tile_unify_scalars(c, v, exprs, 2, call->span)) return tile_error_meaning();
    if (v[0].kind != TILE_MEANING_VALUE || v[0].rank != 1)
        return tile_fail(c, BAD_RANK, exprs[0]->span, builtin->name, "1", tile_meaning_words(c, &v[0]));
    if (v[0].scalar == TILE_BOOL)
        return tile_fail(c, BAD_ARGUMENT, exprs[0]->span, builtin->name, "numbers", tile_meaning_words(c, &v[0]));
    for (unsigned i = 0; i < 2; i++) {
        bool narrow = tile_scalar_is_float((TileScalar)v[i].scalar) && tile_scalar_bits((TileScalar)v[i].scalar) == 8;
        if (narrow) v[i] = tile_convert(c, v[i], TILE_F32, exprs[i]->span);
    }
    tile_emit_at(c, call->span);
    const TileType *type = tile_meaning_type(c, &v[1]);
    int64_t places = tile_type_is_tile(type) ? tile_type_lanes(type) : 1;
    spend(c, tile_extent_value(c, v[0].extent[0]), places);
    Count n = {.b = tile_emitter(c), .elements = tile_emit_value(c, &v[0]), .counted = counted(c, &v[0])};
    n.condition = right ? IS_NOT_BEHIND : IS_BEFORE;
    n.places = tile_emit_value(c, &v[1]);
    const TileOp *load = load_of_few(&n);
    TileValue *count = load ? count_singles(&n, load) : NULL;
    if (!load) {
        n.places = tile_build_reshape(n.b, n.places, 1, &places);
        count = tile_build_reshape(n.b, count_of(&n), v[1].rank, type->extent);
    }
    count = tile_build_convert(n.b, count, TILE_I64);
    const int8_t none[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    const TileValidity *valid = tile_valid_union(c, v[1].valid, tile_valid_map(c, v[0].valid, none));
    return tile_value_meaning(c, count, v[1].extent, valid);
}
