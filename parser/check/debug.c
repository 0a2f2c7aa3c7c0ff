/* Additional checks of debug builds: integer division by zero and shifts by at least the width. They become assertions
 * here, where validity of elements is known; later passes see only these assertions. */
#include "lang/scalar/scalar.h"
#include "parser/check/debug.h"
#include "parser/check/emit.h"
#include "parser/check/report.h"
#include "parser/check/validity.h"

/* Is the right operand known to be in range? */
static bool is_harmless(TileChecker *c, const TileMeaning *y, bool divides, int64_t width) {
    int64_t number;
    bool known = y->sum && tile_sum_known(&c->sums, y->sum, &number);
    uint64_t bits;
    TileOp *splat = y->value ? tile_value_def(y->value, TILE_OP_SPLAT) : NULL;
    const TileValue *value = splat ? tile_op_operand(splat, 0) : y->value;
    if (!known && y->constant) bits = y->bits;
    if (!known && !y->constant && (!value || !tile_value_bits(value, &bits))) return false;
    if (!known) number = tile_scalar_to_integer((TileScalar)y->scalar, bits);
    return divides ? number != 0 : number >= 0 && number < width;
}

static TileValue *constant_like(TileChecker *c, const TileValue *value, int64_t number) {
    return tile_build_integer(tile_emitter(c), value->type, number);
}

/* For each element: is the right operand in range? */
static TileValue *emit_harmless(TileChecker *c, TileValue *y, bool divides, int64_t width) {
    if (divides) return tile_emit_binary(c, TILE_OP_NE, y, constant_like(c, y, 0));
    TileValue *below = tile_emit_binary(c, TILE_OP_LT, y, constant_like(c, y, width));
    if (tile_scalar_class(y->type->scalar) != TILE_CLASS_SIGNED) return below;
    return tile_emit_binary(c, TILE_OP_AND, below, tile_emit_binary(c, TILE_OP_GE, y, constant_like(c, y, 0)));
}

void tile_check_traps(TileChecker *c, TileTokenKind op, const TileMeaning *x, const TileMeaning *y,
                      const TileExpr *expr) {
    bool divides = op == TILE_TOKEN_SLASH || op == TILE_TOKEN_PERCENT;
    bool shifts = op == TILE_TOKEN_SHL || op == TILE_TOKEN_SHR;
    int64_t width = tile_scalar_bits((TileScalar)x->scalar);
    if (!c->options->debug || !c->in_grid || c->masked || c->untaken || c->in_combiner || (!divides && !shifts)) return;
    if (!tile_scalar_is_int((TileScalar)x->scalar) || is_harmless(c, y, divides, width)) return;
    tile_emit_at(c, expr->span);
    TileValue *yes = tile_build_bool(tile_emitter(c), true);
    TileMeaning ok = *y;
    ok.scalar = TILE_BOOL;
    ok.sum = NULL;
    ok.constant = false;
    ok.value = emit_harmless(c, tile_emit_value(c, y), divides, width);
    TileValue *all = tile_emit_filled(c, &ok, tile_valid_union(c, x->valid, y->valid), yes);
    for (unsigned axis = y->rank; axis-- > 0;) all = tile_build_reduce(tile_emitter(c), all, TILE_KIND_ALL, axis);
    const char *text = tile_arena_format(c->arena, divides ? "`%s` divides by zero" : "`%s` shifts past the width",
                                         tile_span_text(c, expr->span));
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_emit_at(c, expr->span);
    tile_build_op(tile_emitter(c), TILE_OP_ASSERT, &all, 1, &attribute, 1, NULL, 0);
}
