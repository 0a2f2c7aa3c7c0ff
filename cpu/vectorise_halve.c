/* The end of a reduction: the lanes of all registers are combined until one is left, stripe j with stripe j + n / 2. */
#include "cpu/vectorise.h"
#include "lang/scalar/scalar.h"

enum { FEWEST_LOOKED_AT = 2 /* lanes, from which on one look at all of them takes less than one in each step */ };

static TileValue *half_of(TileBuilder *b, TileValue *vector, int64_t first, int64_t count) {
    int64_t lanes[TILE_STRIPES];
    for (int64_t i = 0; i < count; i++) lanes[i] = first + i;
    if (count == 1) return tile_build_extract(b, vector, first);
    return tile_build_shuffle(b, vector, vector, lanes, (unsigned)count);
}

/* `numbers`: of the greatest or least, that nothing is NaN: x where it is beyond acc, else acc. */
static void combine(TileBuilder *b, TileName how, bool numbers, TileValue **acc, TileValue *const *x) {
    if (!numbers) {
        tile_combine(b, how, acc, x);
        return;
    }
    TileValue *beyond = tile_build_binary(b, how == TILE_COMBINE_MAX ? TILE_OP_GT : TILE_OP_LT, x[0], acc[0]);
    acc[0] = tile_build_ternary(b, TILE_OP_SELECT, beyond, x[0], acc[0]);
}

static void halve(TileBuilder *b, TileName how, const TileHalving *h, bool numbers) {
    for (int64_t g = h->groups / 2; g >= 1; g /= 2)
        for (int64_t i = 0; i < g; i++) combine(b, how, numbers, h->parts + i * h->used, h->parts + (i + g) * h->used);
    for (int64_t half = h->width / 2; half >= 1; half /= 2) {
        TileValue *upper[2] = {NULL, NULL}, *lower[2] = {NULL, NULL};
        for (unsigned k = 0; k < h->used; k++) {
            lower[k] = half_of(b, h->parts[k], 0, half);
            upper[k] = half_of(b, h->parts[k], half, half);
        }
        combine(b, how, numbers, lower, upper);
        for (unsigned k = 0; k < h->used; k++) h->parts[k] = lower[k];
    }
}

static TileValue *some_nan(TileBuilder *b, const TileHalving *h) {
    TileValue *some = NULL;
    for (int64_t g = 0; g < h->groups; g++) {
        TileValue *own = tile_build_unary(b, TILE_OP_ISNAN, h->parts[g]);
        some = some ? tile_build_binary(b, TILE_OP_OR, some, own) : own;
    }
    return tile_op_result(tile_build_op(b, TILE_OP_ANY_LANE, &some, 1, NULL, 0, NULL, 1), 0);
}

/* The greatest or least float: of numbers a comparison and a choice are one instruction, and NaN takes two more in each step. So all lanes are looked at
 * once, and where one is NaN the steps are taken that know it. */
static void halve_extreme(TileBuilder *b, TileName how, const TileHalving *h) {
    const TileType *type = tile_type_scalar(b->module->context, h->parts[0]->type->scalar);
    TileOp *branch = tile_build_if(b, some_nan(b, h), &type, 1);
    for (unsigned r = 0; r < 2; r++) {
        TileBuilder inside = tile_builder_at_end(b->module, &branch->regions[r]);
        TileValue *parts[TILE_STRIPES];
        TileHalving own = *h;
        inside.location = b->location;
        own.parts = parts;
        for (int64_t g = 0; g < h->groups; g++) parts[g] = h->parts[g];
        halve(&inside, how, &own, r == 1);
        tile_build_end(&inside, TILE_OP_YIELD, parts, 1);
    }
    h->parts[0] = tile_op_result(branch, 0);
}

void tile_halve(TileBuilder *builder, TileName how, const TileHalving *halving) {
    TileScalar scalar = halving->parts[0]->type->scalar;
    bool extreme = (how == TILE_COMBINE_MAX || how == TILE_COMBINE_MIN) && (scalar == TILE_F32 || scalar == TILE_F64);
    if (extreme && halving->groups * halving->width > FEWEST_LOOKED_AT)
        halve_extreme(builder, how, halving);
    else
        halve(builder, how, halving, false);
}
