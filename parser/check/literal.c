/* Literals: untyped numbers, and choices between them. `where(c, 1, 0)` and `if c { 1 } else { 0 }` are literals, too:
 * they are emitted when the context determines their type. */
#include <math.h>

#include "lang/scalar/scalar.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"

/* ---- choices ---- */

typedef TileMeaning (*MakeLiteral)(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span);

/* A select between both values, converted to the type. */
static TileMeaning make_choice(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span,
                               MakeLiteral make) {
    TileMeaning v[3] = {m->items[0], make(c, &m->items[1], scalar, span), make(c, &m->items[2], scalar, span)};
    if (tile_is_error(&v[1]) || tile_is_error(&v[2])) return tile_error_meaning();
    return tile_select_meaning(c, v, span);
}

/* ---- conversion to values ---- */

static bool integer_fits(__int128 value, TileScalar scalar) {
    unsigned bits = tile_scalar_bits(scalar);
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_BOOL: return false;
    case TILE_CLASS_FLOAT: return true;
    case TILE_CLASS_SIGNED: return value >= -((__int128)1 << (bits - 1)) && value < (__int128)1 << (bits - 1);
    case TILE_CLASS_UNSIGNED: return value >= 0 && value < (__int128)1 << bits;
    }
    return false;
}

static TileMeaning literal_to_float(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span) {
    double number = m->kind == TILE_MEANING_INTEGER ? (double)m->integer : m->number;
    uint64_t bits = tile_scalar_from_double(scalar, number);
    double back = tile_scalar_to_double(scalar, bits);
    bool fits =
        isnan(number) || (isinf(number) ? isinf(back) : !isinf(back) && fabs(number - back) <= fabs(number) / 2);
    if (isfinite(number) && isfinite(back) && fabs(number) < 1) fits = true;
    if (!fits) return tile_fail(c, LITERAL_FIT, span, tile_scalar_name(scalar));
    return tile_bits_meaning(scalar, bits);
}

/* `2.0` where an integer is needed: proposes it without its point. */
static TileMeaning fail_fraction(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_LITERAL_FIT, span, tile_scalar_name(scalar));
    bool integer = isfinite(m->number) && fabs(m->number) < 1e15 && m->number == floor(m->number) && integer_fits((__int128)m->number, scalar);
    if (integer) tile_diagnostic_edit(c->diagnostics, d, span, "%.0f", m->number);
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning literal_as(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span) {
    if (m->kind == TILE_MEANING_CHOICE) return make_choice(c, m, scalar, span, tile_literal_as);
    if (tile_scalar_is_float(scalar)) return literal_to_float(c, m, scalar, span);
    bool truth = m->kind == TILE_MEANING_INTEGER && (m->integer == 0 || m->integer == 1);
    if (scalar == TILE_BOOL && truth) return tile_bool_meaning(m->integer != 0);
    if (scalar == TILE_BOOL) return tile_fail(c, NOT_BOOL, span, tile_meaning_words(c, m));
    bool whole = m->kind == TILE_MEANING_INTEGER;
    if (!whole) return fail_fraction(c, m, scalar, span);
    if (!integer_fits(m->integer, scalar)) return tile_fail(c, LITERAL_FIT, span, tile_scalar_name(scalar));
    if (scalar == TILE_I64) return tile_sum_meaning(tile_sum_integer(&c->sums, (int64_t)m->integer));
    return tile_bits_meaning(scalar, tile_scalar_from_integer(scalar, (int64_t)m->integer));
}

TileMeaning tile_literal_as(TileChecker *c, const TileMeaning *m, TileScalar scalar, TileSpan span) {
    c->about = m->open;
    TileMeaning value = literal_as(c, m, scalar, span);
    c->about = 0;
    tile_open_meaning(c, &value, m->open);
    return value;
}

TileMeaning tile_as_value(TileChecker *c, TileMeaning m, TileSpan span) {
    if (!tile_is_literal(&m)) return m;
    return tile_literal_as(c, &m, tile_literal_is_integer(&m) ? TILE_I64 : TILE_F32, span);
}

TileMeaning tile_convert_literal(TileChecker *c, const TileMeaning *m, TileScalar to, TileSpan span) {
    if (m->kind == TILE_MEANING_CHOICE) return make_choice(c, m, to, span, tile_convert_literal);
    double number = m->kind == TILE_MEANING_INTEGER ? (double)m->integer : m->number;
    if (tile_scalar_is_float(to)) return tile_bits_meaning(to, tile_scalar_from_double(to, number));
    if (to == TILE_BOOL) return tile_bool_meaning(m->kind == TILE_MEANING_INTEGER ? m->integer != 0 : m->number != 0);
    uint64_t bits = m->kind == TILE_MEANING_INTEGER ? tile_scalar_from_integer(to, (int64_t)m->integer)
                                                    : tile_scalar_from_double(to, m->number);
    if (to == TILE_I64) return tile_sum_meaning(tile_sum_integer(&c->sums, (int64_t)bits));
    return tile_bits_meaning(to, bits);
}
