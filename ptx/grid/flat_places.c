/* The tile is taken apart into sums of what changes along one axis, each times numbers from outside of the grid: it is a tile of places if along each axis
 * these are the extents of the axes behind it. */
#include "ptx/grid/flat_places.h"

#include "lang/ir/operands.h"

enum { MOST_FACTORS = 8, MOST_TERMS = 2 * TILE_MAX_TENSOR_RANK, MOST_STEPS = 24 };

/* Numbers that are multiplied with each other: values, and constants, whose product is `number`. */
typedef struct Factors {
    const TileValue *values[MOST_FACTORS];
    unsigned count;
    int64_t number;
} Factors;

typedef struct Term {
    const TileValue *first; /* a scalar; NULL: indices of lanes along `axis` of the tile */
    unsigned axis;
    int64_t extent; /* of the tile, along the axis */
    Factors factors;
} Term;

typedef struct Sum {
    GpuFlatPlaces *places;
    Term terms[MOST_TERMS];
    unsigned count, steps;
    TILE_LIST(const TileValue *) tiles;
    TileArena *scratch;
} Sum;

/* Of each axis of a part, which axis of the whole tile it is; -1: none. */
typedef struct Axes {
    int whole[TILE_MAX_TILE_RANK];
} Axes;

static bool multiply(Factors *factors, const TileValue *value) {
    int64_t number;
    if (tile_value_integer(value, &number)) return !__builtin_mul_overflow(factors->number, number, &factors->number);
    const TileOp *product = tile_value_def(value, TILE_OP_MUL);
    if (product) return multiply(factors, tile_op_operand(product, 0)) && multiply(factors, tile_op_operand(product, 1));
    if (factors->count == MOST_FACTORS) return false;
    factors->values[factors->count++] = value;
    return true;
}

static bool are_equal(const Factors *a, const Factors *b) {
    bool taken[MOST_FACTORS] = {false};
    if (a->count != b->count || a->number != b->number) return false;
    for (unsigned i = 0; i < a->count; i++) {
        unsigned k = 0;
        while (k < b->count && (taken[k] || !tile_value_is_same(a->values[i], b->values[k]))) k++;
        if (k == b->count) return false;
        taken[k] = true;
    }
    return true;
}

static bool add_term(Sum *sum, Term term) {
    if (sum->count == MOST_TERMS) return false;
    sum->terms[sum->count++] = term;
    return true;
}

static bool take_apart(Sum *sum, const TileValue *value, const Axes *axes, const Factors *factors);

/* The only axis that is longer than 1; the first, if none is. False: several are. */
static bool only_axis(const TileType *type, unsigned *axis) {
    unsigned longer = 0;
    *axis = 0;
    for (unsigned a = 0; a < type->rank; a++)
        if (type->extent[a] > 1) *axis = a, longer++;
    return longer < 2;
}

static bool take_reshape(Sum *sum, const TileOp *reshape, const Axes *axes, const Factors *factors) {
    Axes from = {{0}};
    unsigned to_axis, from_axis;
    const TileValue *operand = tile_op_operand(reshape, 0);
    if (!only_axis(reshape->results[0].type, &to_axis) || !only_axis(operand->type, &from_axis)) return false;
    for (unsigned a = 0; a < TILE_MAX_TILE_RANK; a++) from.whole[a] = a == from_axis ? axes->whole[to_axis] : -1;
    return take_apart(sum, operand, &from, factors);
}

static bool take_product(Sum *sum, const TileOp *product, const Axes *axes, const Factors *factors) {
    for (unsigned k = 0; k < 2; k++) {
        const TileValue *by = tile_op_operand(product, k);
        const TileOp *splat = tile_value_def(by, TILE_OP_SPLAT);
        int64_t number;
        Factors more = *factors;
        bool constant = tile_value_integer(by, &number);
        if (splat) by = tile_op_operand(splat, 0);
        if (!constant && !(tile_type_is_scalar(by->type) && tile_value_outside(by, sum->places->grid))) continue;
        if (tile_type_is_tile(product->results[0].type)) tile_list_push(sum->scratch, &sum->tiles, tile_op_operand(product, k));
        return multiply(&more, by) && take_apart(sum, tile_op_operand(product, !k), axes, &more);
    }
    return false;
}

static bool is_scalar_leaf(const Sum *sum, const TileValue *value) {
    for (unsigned a = 0; a < sum->places->count; a++) {
        const GpuFlatAxis *axis = &sum->places->axes[a];
        const TileOp *product = tile_value_def(value, TILE_OP_MUL);
        if (value == axis->program) return true;
        for (unsigned k = 0; product && k < 2; k++)
            if (tile_op_operand(product, k) == axis->program && tile_value_is_integer(tile_op_operand(product, !k), axis->size)) return true;
    }
    return false;
}

static bool take_apart(Sum *sum, const TileValue *value, const Axes *axes, const Factors *factors) {
    const TileOp *op = value->op;
    bool tile = tile_type_is_tile(value->type);
    if (value->type->scalar != TILE_I64 || !sum->steps--) return false;
    if (!tile && is_scalar_leaf(sum, value)) return add_term(sum, (Term){.first = value, .factors = *factors});
    if (!op || tile_value_outside(value, sum->places->grid)) return false;
    if (tile) tile_list_push(sum->scratch, &sum->tiles, value);
    switch ((int)op->id) {
    case TILE_OP_ADD: return take_apart(sum, tile_op_operand(op, 0), axes, factors) && take_apart(sum, tile_op_operand(op, 1), axes, factors);
    case TILE_OP_MUL: return take_product(sum, op, axes, factors);
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST: return take_apart(sum, tile_op_operand(op, 0), axes, factors);
    case TILE_OP_RESHAPE: return take_reshape(sum, op, axes, factors);
    case TILE_OP_IOTA: break;
    default: return false;
    }
    unsigned along = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0);
    Term term = {.axis = (unsigned)axes->whole[along], .extent = value->type->extent[along], .factors = *factors};
    return (value->type->extent[along] == 1 || axes->whole[along] >= 0) && add_term(sum, term);
}

/* Is there just one such term, and none else with its axis? */
static bool has_term(Sum *sum, const GpuFlatAxis *axis, int tile_axis, const Factors *factors) {
    for (unsigned i = 0; i < sum->count; i++) {
        Term *term = &sum->terms[i];
        const TileOp *product = term->first ? tile_value_def(term->first, TILE_OP_MUL) : NULL;
        bool starts = term->first && (axis->size == 1 ? term->first == axis->program
                                                      : product && (tile_op_operand(product, 0) == axis->program || tile_op_operand(product, 1) == axis->program));
        bool lanes = !term->first && tile_axis >= 0 && term->axis == (unsigned)tile_axis && term->extent == axis->size;
        if (!(tile_axis < 0 ? starts : lanes) || !are_equal(&term->factors, factors)) continue;
        *term = sum->terms[--sum->count];
        return true;
    }
    return false;
}

/* Do the terms number the elements row by row? */
static bool numbers_elements(Sum *sum) {
    const GpuFlatPlaces *places = sum->places;
    Factors behind = {.number = 1};
    int tile_axis = -1;
    for (unsigned a = 0; a < places->count; a++) tile_axis += places->axes[a].tiled;
    for (unsigned a = places->count; a-- > 0;) {
        const GpuFlatAxis *axis = &places->axes[a];
        if (!has_term(sum, axis, -1, &behind)) return false;
        if (axis->tiled && axis->size > 1 && !has_term(sum, axis, tile_axis, &behind)) return false;
        tile_axis -= axis->tiled;
        if (!a) break;
        if (axis->extent ? !multiply(&behind, axis->extent) : __builtin_mul_overflow(behind.number, axis->number, &behind.number)) return false;
    }
    for (unsigned i = 0; i < sum->count; i++)
        if (sum->terms[i].first || sum->terms[i].extent > 1) return false;
    return true;
}

static bool is_whole_tile(const GpuFlatPlaces *places, const TileType *type) {
    unsigned axis = 0;
    if (!tile_type_is_tile(type) || type->scalar != TILE_I64) return false;
    for (unsigned a = 0; a < places->count; a++)
        if (places->axes[a].tiled && (axis == type->rank || type->extent[axis++] != places->axes[a].size)) return false;
    return axis == type->rank;
}

/* Does nothing but the place itself use its parts? */
static bool are_parts_its_own(const Sum *sum, const TileValue *place) {
    for (size_t i = 0; i < sum->tiles.count; i++)
        for (const TileUse *use = sum->tiles.items[i]->first_use; use && sum->tiles.items[i] != place; use = use->next) {
            bool own = false;
            for (size_t k = 0; k < sum->tiles.count; k++) own |= use->user->result_count && sum->tiles.items[k] == &use->user->results[0];
            if (!own) return false;
        }
    return true;
}

static void look_at_value(GpuFlatPlaces *places, TileValue *value, TileArena *scratch) {
    Sum sum = {.places = places, .steps = MOST_STEPS, .scratch = scratch};
    Axes axes;
    Factors none = {.number = 1};
    for (unsigned a = 0; a < TILE_MAX_TILE_RANK; a++) axes.whole[a] = (int)a;
    if (!is_whole_tile(places, value->type) || !take_apart(&sum, value, &axes, &none)) return;
    if (!numbers_elements(&sum) || !are_parts_its_own(&sum, value)) return;
    for (size_t i = 0; i < sum.tiles.count; i++) tile_map_set(&places->parts, sum.tiles.items[i], value);
    tile_list_push(scratch, &places->found, value);
}

static void look_at_block(GpuFlatPlaces *places, TileBlock *block, TileArena *scratch) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) look_at_block(places, &op->regions[i], scratch);
        if (op->id == TILE_OP_ADD) look_at_value(places, &op->results[0], scratch);
    }
}

void gpu_find_flat_places(GpuFlatPlaces *places, TileArena *scratch) {
    tile_map_init(&places->parts, scratch);
    for (unsigned a = 0; a < places->count; a++)
        if (!places->axes[a].known) return;
    look_at_block(places, (TileBlock *)(uintptr_t)&places->grid->regions[0], scratch);
}
