/* Types: their names, operands of a common type, conversions. */
#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/check/bounds.h"
#include "parser/check/emit.h"
#include "parser/check/formats.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/type.h"

/* ---- names of types ---- */

bool tile_find_type(TileChecker *c, const char *name, TileScalar *scalar) {
    if (!name) return false;
    TileBound *bound = tile_scope_find(c, name);
    if (bound) {
        *scalar = (TileScalar)bound->meaning.scalar;
        return bound->meaning.kind == TILE_MEANING_TYPE;
    }
    return tile_scalar_find(name, strlen(name), scalar);
}

bool tile_find_element(TileChecker *c, const char *name, TileScalar *scalar, TileFormat *format) {
    *format = TILE_FORMAT_PLAIN;
    if (tile_find_type(c, name, scalar)) return true;
    *format = tile_scope_find(c, name ? name : "") ? TILE_FORMAT_PLAIN : tile_format_find(name);
    if (*format) *scalar = tile_format_scalar(*format);
    return *format != TILE_FORMAT_PLAIN;
}

bool tile_fail_single(TileChecker *c, const TileTypeExpr *type, TileFormat format) {
    if (!tile_format_is_packed(format) || type->extents.count) return false;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PACKED, type->span,
                                      "two elements share a byte along the last axis, and this tensor has none");
    tile_report(c, d);
    return true;
}

TileMeaning tile_fail_format(TileChecker *c, TileSpan span, const char *name) {
    TileFormat format = tile_format_find(name);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PACKED, span,
                                      tile_arena_format(c->arena, "no value is of type %s; elements of tensors are", name));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "loaded from a tensor of %s they are %s", name,
                         tile_scalar_name(tile_format_scalar(format)));
    if (tile_format_is_packed(format))
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "of bytes that hold two each `unpack[%s](v)` makes numbers, and `pack[%s](v)` makes bytes",
                             name, name);
    tile_report(c, d);
    return tile_error_meaning();
}

bool tile_is_float8(const TileMeaning *m) {
    TileScalar scalar = (TileScalar)m->scalar;
    return m->kind == TILE_MEANING_VALUE && tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) == 8;
}

/* float32, bfloat16, int64 and uint8, as in other languages; double, and such names without a width. */
static bool propose_short_type(TileChecker *c, TileDiagnostic *d, TileSpan span, const char *name) {
    const char *own = name ? tile_foreign_type(c->arena, name) : NULL;
    if (own) tile_diagnostic_edit(c->diagnostics, d, span, "%s", own);
    return own;
}

/* A capital stands for a type that calls and launches choose, in most texts. */
static void note_generic(TileChecker *c, TileDiagnostic *d, const char *name) {
    if (name && *name >= 'A' && *name <= 'Z')
        tile_diagnostic_note(
            c->diagnostics, d, (TileSpan){0},
            "a type that each call or launch chooses is declared in brackets behind the name: `[%s: float]`", name);
}

TileMeaning tile_fail_type(TileChecker *c, TileSpan span, const char *name) {
    if (tile_format_find(name)) return tile_fail_format(c, span, name);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_TYPE, span, name ? name : "?");
    if (propose_short_type(c, d, span, name)) return tile_report(c, d), tile_error_meaning();
    TileNearest nearest = tile_nearest(name ? name : "");
    for (int s = 0; s < TILE_SCALAR_COUNT; s++) tile_nearest_try(&nearest, tile_scalar_name((TileScalar)s));
    for (size_t i = 0; i < c->bounds.count; i++)
        if (c->bounds.items[i]->meaning.kind == TILE_MEANING_TYPE) tile_nearest_try(&nearest, c->bounds.items[i]->name);
    tile_propose_nearest(c, d, span, &nearest);
    if (!nearest.best) note_generic(c, d, name);
    tile_report(c, d);
    return tile_error_meaning();
}

static bool is_any(TileScalar scalar) { return scalar < TILE_SCALAR_COUNT; }
static bool is_number(TileScalar scalar) { return tile_scalar_is_int(scalar) || tile_scalar_is_float(scalar); }
static bool is_int(TileScalar scalar) { return tile_scalar_is_int(scalar); }
static bool is_float(TileScalar scalar) { return tile_scalar_is_float(scalar); }

static const struct {
    const char *name;
    bool (*has)(TileScalar scalar);
} classes[] = {{"any", is_any}, {"num", is_number}, {"int", is_int}, {"float", is_float}};

const char *tile_class_at(size_t index) {
    return index < sizeof classes / sizeof *classes ? classes[index].name : NULL;
}

bool tile_class_types(const char *class, uint32_t *types) {
    TileScalar scalar;
    if (tile_scalar_find(class, strlen(class), &scalar)) {
        *types |= 1u << scalar;
        return true;
    }
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(class, classes[i].name) != 0) continue;
        for (int s = 0; s < TILE_SCALAR_COUNT; s++)
            if (classes[i].has((TileScalar)s)) *types |= 1u << s;
        return true;
    }
    return false;
}

/* ---- operands of a common type ---- */

/* The operand that determines the element type: the first typed one. */
static const TileMeaning *typed_operand(const TileMeaning *operands, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (operands[i].kind == TILE_MEANING_VALUE) return &operands[i];
    return NULL;
}

/* Does the conversion of b to the type of a lose what a conversion of a would keep? Of floats a number beside a tile is mostly meant to have
 * its type; and results of 8 bits are wanted where there is one. */
static bool loses(const TileMeaning *a, const TileMeaning *b) {
    TileScalar to = (TileScalar)a->scalar, from = (TileScalar)b->scalar;
    if (to == TILE_BOOL || (tile_scalar_is_int(to) && tile_scalar_is_float(from))) return is_number(from);
    bool wider = tile_scalar_bits(to) < tile_scalar_bits(from);
    if (tile_scalar_is_int(to)) return tile_scalar_is_int(from) && wider;
    return tile_scalar_is_float(from) && wider && a->rank && b->rank && tile_scalar_bits(to) > 8;
}

static void report_mismatch(TileChecker *c, const TileMeaning *operands, const TileExpr *const *exprs, unsigned at,
                            const TileMeaning *typed, TileSpan span) {
    TileSpan place = exprs ? exprs[at]->span : span;
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TYPE_MISMATCH, place, tile_scalar_name((TileScalar)typed->scalar),
                      tile_meaning_words(c, &operands[at]));
    tile_diagnostic_note(c->diagnostics, d, span, "types are never converted silently");
    bool convertible = exprs && operands[at].kind == TILE_MEANING_VALUE;
    const TileExpr *first = exprs && at > 0 ? exprs[0] : NULL;
    bool started = convertible && at == 1 && tile_scalar_is_float((TileScalar)operands[1].scalar) &&
                   tile_propose_start(c, d, first, (TileScalar)operands[1].scalar);
    size_t other = (size_t)(typed - operands);
    bool narrows = convertible && other < at && loses(typed, &operands[at]);
    if (narrows) place = exprs[other]->span;
    if (convertible && !started)
        tile_diagnostic_edit(c->diagnostics, d, place, "%s(%s)", tile_scalar_name((TileScalar)(narrows ? operands[at] : *typed).scalar),
                             tile_bare_text(c, place));
    tile_report(c, d);
}

bool tile_unify_scalars(TileChecker *c, TileMeaning *operands, const TileExpr *const *exprs, unsigned count,
                        TileSpan span) {
    for (unsigned i = 0; i < count; i++)
        if (tile_is_error(&operands[i])) return false;
    const TileMeaning *typed = typed_operand(operands, count);
    bool number = false;
    for (unsigned i = 0; i < count; i++)
        number = number || (tile_is_literal(&operands[i]) && !tile_literal_is_integer(&operands[i]));
    TileScalar scalar = typed ? (TileScalar)typed->scalar : number ? TILE_F32 : TILE_I64;
    for (unsigned i = 0; i < count; i++) {
        if (tile_is_literal(&operands[i])) {
            operands[i] = tile_literal_as(c, &operands[i], scalar, exprs ? exprs[i]->span : span);
            if (tile_is_error(&operands[i])) return false;
        } else if (operands[i].kind != TILE_MEANING_VALUE || operands[i].scalar != scalar) {
            report_mismatch(c, operands, exprs, i, typed ? typed : &operands[i], span);
            return false;
        }
    }
    return true;
}

/* ---- conversions ---- */

TileMeaning tile_convert(TileChecker *c, TileMeaning m, TileScalar to, TileSpan span) {
    if (tile_is_literal(&m)) return tile_convert_literal(c, &m, to, span);
    if (m.kind != TILE_MEANING_VALUE) return m;
    if (m.scalar == to) return m;
    int64_t known;
    if (m.sum && tile_sum_known(&c->sums, m.sum, &known)) {
        TileMeaning literal = tile_integer_meaning(known), result = tile_convert_literal(c, &literal, to, span);
        if (!tile_is_error(&result)) result.valid = m.valid;
        return result;
    }
    const TileSum *sum = tile_scalar_sum(c, &m);
    if (sum && to == TILE_I64) {
        TileMeaning wide = tile_sum_meaning(sum);
        wide.valid = m.valid;
        return wide;
    }
    TileBounds bounds = tile_bounds_as(c, &m, to);
    TileValue *value = tile_emit_value(c, &m);
    TileMeaning result = tile_value_meaning(c, tile_build_convert(tile_emitter(c), value, to), m.extent, m.valid);
    bool wider = to == TILE_I64 && tile_scalar_is_int((TileScalar)m.scalar) && m.scalar != TILE_U64;
    if (m.rank && wider) result.element = tile_element_sum(c, &m);
    if (sum && bounds.lowest)
        result.lowest = result.highest = bounds.lowest;
    else if (bounds.lowest || bounds.highest)
        return tile_bounded(c, result, bounds);
    else if (sum && tile_scalar_is_int(to) && to != TILE_U64)
        return tile_bounded(c, result, tile_bounds_truncated(c, &m));
    return result;
}
