/* Numbers of 4 bits, two in a byte, and products of numbers with scales. They are written in terms of integers, `join` and
 * `dot`, so every target has them, and a product by an instruction where it has one for the type. */
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/formats.h"
#include "parser/check/operand.h"
#include "parser/check/packed.h"
#include "parser/check/reduce.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include "lang/scalar/scalar.h"

#include <string.h>

static bool read_format(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin, TileFormat *format) {
    const TileExpr *index = call->a;
    bool one = index->kind == TILE_EXPR_INDEX && index->items.count == 1;
    const char *word = one && index->items.items[0]->kind == TILE_EXPR_NAME ? index->items.items[0]->name : "";
    *format = tile_format_find(word);
    if (tile_format_is_packed(*format)) return true;
    const char *given = one ? tile_span_text(c, index->items.items[0]->span) : "nothing";
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, index->span, builtin->name,
                                      "`i4`, `u4` or `f4e2m1` in brackets", given);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "bytes say nothing of what they hold: `%s[i4](v)`", builtin->name);
    tile_report(c, d);
    return false;
}

/* The operand: a tile that is valid along the last axis, whose elements move. */
static bool read_operand(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin, TileMeaning *m) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return false;
    const TileExpr *expr = call->arguments.items[0].value;
    if (!tile_check_tile(c, expr, builtin->name, m)) return false;
    if (m->rank == TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, expr->span, (int)TILE_MAX_TILE_RANK), false;
    if (!tile_valid_touches(m->valid, 1u << (m->rank - 1))) return true;
    tile_fail_invalid(c, m, expr, "the axis along which bytes hold pairs");
    return false;
}

static void numbers_of(TileChecker *c, const TileMeaning *m, int64_t *extent) {
    for (unsigned i = 0; i < m->rank; i++) extent[i] = tile_extent_value(c, m->extent[i]);
}

static TileValue *binary_with(TileChecker *c, TileOpId op, TileValue *x, int64_t number) {
    TileBuilder *b = tile_emitter(c);
    return tile_build_binary(b, op, x, tile_build_integer(b, x->type, number));
}

/* The same with another last extent. */
static TileMeaning with_last(TileChecker *c, const TileMeaning *m, TileValue *value, const TileSum *last) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[] = {0, 1, 2, 3, 4};
    memcpy(extent, m->extent, sizeof extent);
    extent[m->rank - 1] = last;
    map[m->rank - 1] = -1; /* where nothing is invalid */
    return tile_value_meaning(c, value, extent, tile_valid_map(c, m->valid, map));
}

/* ---- extents ---- */

/* Twice the extent: of `B / 2` it is B, where that is even. */
static const TileSum *twice(TileChecker *c, const TileSum *extent) {
    int64_t number = 1;
    const TileSymbol *half =
        extent->count == 1 && !extent->constant && extent->products[0].degree == 1 && extent->products[0].factor == 1
            ? extent->products[0].symbols[0]
            : NULL;
    bool halved = half && half->kind == TILE_SYMBOL_DIV && tile_sum_is_literal(half->b, 2);
    if (halved && tile_sum_known(&c->sums, half->a, &number) && number % 2 == 0) return half->a;
    return tile_sum_multiply(&c->sums, tile_sum_integer(&c->sums, 2), extent);
}

/* ---- unpack ---- */

/* One of 0, 1/2, 1, 3/2, 2, 3, 4, 6 and a sign as f8e4m3: from 1 on, the exponent and the bit behind it stand 2 bits higher
 * there, and the exponent is greater by 6. */
static TileValue *decode_float4(TileChecker *c, TileValue *nibble) {
    TileBuilder *b = tile_emitter(c);
    TileValue *size = binary_with(c, TILE_OP_AND, nibble, 7), *sign = binary_with(c, TILE_OP_AND, nibble, 8);
    TileValue *bits = binary_with(c, TILE_OP_ADD, binary_with(c, TILE_OP_SHL, size, 2), 0x30);
    TileValue *half = tile_build_integer(b, bits->type, 0x30), *zero = tile_build_integer(b, bits->type, 0);
    bits = tile_emit_select(c, binary_with(c, TILE_OP_EQ, size, 1), half, bits);
    bits = tile_emit_select(c, binary_with(c, TILE_OP_EQ, size, 0), zero, bits);
    bits = tile_emit_binary(c, TILE_OP_OR, bits, binary_with(c, TILE_OP_SHL, sign, 4));
    return tile_build_bitcast(tile_emitter(c), bits, TILE_F8E4M3);
}

static TileValue *decode(TileChecker *c, TileValue *bytes, TileFormat format, bool upper) {
    if (format == TILE_FORMAT_I4) { /* the shift to the right repeats the sign */
        if (!upper) bytes = binary_with(c, TILE_OP_SHL, bytes, 4);
        return binary_with(c, TILE_OP_SHR, tile_build_bitcast(tile_emitter(c), bytes, TILE_I8), 4);
    }
    TileValue *nibble = upper ? binary_with(c, TILE_OP_SHR, bytes, 4) : binary_with(c, TILE_OP_AND, bytes, 15);
    return format == TILE_FORMAT_U4 ? nibble : decode_float4(c, nibble);
}

TileValue *tile_unpack_value(TileChecker *c, TileValue *bytes, TileFormat format) {
    int64_t extent[TILE_MAX_TILE_RANK];
    TileValue *halves[2];
    unsigned rank = bytes->type->rank;
    memcpy(extent, bytes->type->extent, rank * sizeof *extent);
    extent[rank] = 1;
    for (unsigned i = 0; i < 2; i++)
        halves[i] = tile_build_reshape(tile_emitter(c), decode(c, bytes, format, i == 1), rank + 1u, extent);
    TileValue *pairs = tile_build_cat(tile_emitter(c), halves[0], halves[1], rank);
    extent[rank - 1] *= 2;
    return tile_build_reshape(tile_emitter(c), pairs, rank, extent);
}

TileValue *tile_unpack_low(TileChecker *c, TileValue *bytes, TileFormat format) {
    return decode(c, bytes, format, false);
}

static TileMeaning fail_bytes(TileChecker *c, const TileExpr *expr, const TileBuiltin *builtin, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, expr->span, builtin->name, "u8", tile_meaning_words(c, m));
    if (m->scalar == TILE_I8) tile_diagnostic_edit(c->diagnostics, d, expr->span, "bitcast[u8](%s)", tile_span_text(c, expr->span));
    tile_report(c, d);
    return tile_error_meaning();
}

/* unpack[i4](v): u8[.., K] gives i8[.., 2 * K]; the lower half of a byte comes first. */
TileMeaning tile_check_unpack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileFormat format;
    TileMeaning m;
    if (!read_format(c, call, builtin, &format) || !read_operand(c, call, builtin, &m)) return tile_error_meaning();
    if (m.scalar != TILE_U8) return fail_bytes(c, call->arguments.items[0].value, builtin, &m);
    tile_emit_at(c, call->span);
    TileValue *value = tile_unpack_value(c, tile_emit_value(c, &m), format);
    return with_last(c, &m, value, twice(c, m.extent[m.rank - 1]));
}

/* ---- pack ---- */

/* The nearest of the eight sizes, of two the one whose last bit is 0; what is greater than 6, and NaN, becomes 6. The code
 * is the number of boundaries that are passed. */
static TileValue *encode_float4(TileChecker *c, TileValue *x) {
    static const struct {
        double at;
        TileOpId passes;
    } boundaries[] = {{0.25, TILE_OP_GT}, {0.75, TILE_OP_GE}, {1.25, TILE_OP_GT}, {1.75, TILE_OP_GE},
                      {2.5, TILE_OP_GT},  {3.5, TILE_OP_GE},  {5, TILE_OP_GT}};
    TileBuilder *b = tile_emitter(c);
    TileValue *wide = tile_build_convert(b, x, TILE_F32), *size = tile_emit_unary(c, TILE_OP_ABS, wide), *code = NULL;
    for (size_t i = 0; i < sizeof boundaries / sizeof *boundaries; i++) {
        TileValue *at = tile_build_number(tile_emitter(c), size->type, boundaries[i].at);
        TileValue *one = tile_build_convert(b, tile_emit_binary(c, boundaries[i].passes, size, at), TILE_U8);
        code = code ? tile_emit_binary(c, TILE_OP_ADD, code, one) : one;
    }
    TileValue *bits = tile_build_bitcast(tile_emitter(c), wide, TILE_U32);
    TileValue *sign = binary_with(c, TILE_OP_AND, binary_with(c, TILE_OP_SHR, bits, 28), 8);
    code = tile_emit_binary(c, TILE_OP_OR, code, tile_build_convert(tile_emitter(c), sign, TILE_U8));
    TileValue *seven = tile_build_integer(tile_emitter(c), code->type, 7);
    return tile_emit_select(c, tile_emit_unary(c, TILE_OP_ISNAN, wide), seven, code);
}

TileValue *tile_pack_value(TileChecker *c, TileValue *x, TileFormat format) {
    int64_t extent[TILE_MAX_TILE_RANK];
    unsigned rank = x->type->rank;
    memcpy(extent, x->type->extent, rank * sizeof *extent);
    x = format == TILE_FORMAT_F4E2M1
            ? encode_float4(c, x)
            : binary_with(c, TILE_OP_AND, tile_build_convert(tile_emitter(c), x, TILE_U8), 15);
    extent[rank - 1] /= 2;
    extent[rank] = 2;
    TileValue *pairs = tile_build_reshape(tile_emitter(c), x, rank + 1u, extent), *halves[2];
    for (unsigned i = 0; i < 2; i++)
        halves[i] = tile_build_reshape(tile_emitter(c), tile_build_slice(tile_emitter(c), pairs, rank, i, 1), rank, extent);
    return tile_emit_binary(c, TILE_OP_OR, halves[0], binary_with(c, TILE_OP_SHL, halves[1], 4));
}

/* pack[i4](v): [.., 2 * K] integers, of which 4 bits are kept, or for f4e2m1 floats give u8[.., K]. */
TileMeaning tile_check_pack(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TileFormat format;
    TileMeaning m;
    if (!read_format(c, call, builtin, &format) || !read_operand(c, call, builtin, &m)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileScalar scalar = (TileScalar)m.scalar;
    if (format == TILE_FORMAT_F4E2M1 ? !tile_scalar_is_float(scalar) || scalar == TILE_F64 : !tile_scalar_is_int(scalar))
        return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name,
                         format == TILE_FORMAT_F4E2M1 ? "floats of at most 32 bits" : "integers", tile_meaning_words(c, &m));
    const TileSum *had = m.extent[m.rank - 1];
    bool odd = tile_extent_value(c, had) % 2;
    if (odd) tile_about_sum(c, had);
    if (odd)
        return tile_fail(c, BAD_ARGUMENT, expr->span, builtin->name, "an even last extent", tile_meaning_words(c, &m));
    tile_emit_at(c, call->span);
    TileValue *bytes = tile_pack_value(c, tile_emit_value(c, &m), format);
    return with_last(c, &m, bytes, tile_sum_half(&c->sums, had));
}

/* ---- dot_scaled ---- */

/* 2^(e - 127) as f32, NaN for 255: a number of the format e8m0. */
TileValue *tile_power_value(TileChecker *c, TileValue *exponent) {
    TileBuilder *b = tile_emitter(c);
    TileValue *wide = tile_build_convert(b, exponent, TILE_U32), *bits = binary_with(c, TILE_OP_SHL, wide, 23);
    TileValue *least = tile_build_integer(b, bits->type, 0x00400000), *nan = tile_build_integer(b, bits->type, 0x7fc00000);
    bits = tile_emit_select(c, binary_with(c, TILE_OP_EQ, wide, 0), least, bits);
    bits = tile_emit_select(c, binary_with(c, TILE_OP_EQ, wide, 255), nan, bits);
    return tile_build_bitcast(tile_emitter(c), bits, TILE_F32);
}

/* The scales as f32, each repeated for the elements along `axis` that it belongs to. */
static TileValue *spread_scales(TileChecker *c, const TileMeaning *scales, const TileMeaning *v, unsigned axis) {
    int64_t extent[TILE_MAX_TILE_RANK], split[TILE_MAX_TILE_RANK + 1];
    TileValue *x = tile_emit_value(c, scales);
    x = scales->scalar == TILE_U8 ? tile_power_value(c, x) : tile_build_convert(tile_emitter(c), x, TILE_F32);
    unsigned rank = 0;
    for (unsigned i = 0; i < scales->rank; i++) {
        split[rank++] = tile_extent_value(c, scales->extent[i]);
        if (i == axis) split[rank++] = 1;
    }
    x = tile_build_reshape(tile_emitter(c), x, rank, split);
    numbers_of(c, v, extent);
    split[axis + 1] = extent[axis] / split[axis];
    x = tile_build_broadcast(tile_emitter(c), x, split);
    return tile_build_reshape(tile_emitter(c), x, v->rank, extent);
}

/* All other extents agree, and that of the contracted axis divides the operand's. */
static bool fits_scales(TileChecker *c, const TileMeaning *scales, const TileMeaning *v, unsigned axis) {
    if (scales->kind != TILE_MEANING_VALUE || scales->rank != v->rank) return false;
    for (unsigned i = 0; i < v->rank; i++)
        if (i != axis && scales->extent[i] != v->extent[i]) return false;
    return tile_extent_value(c, v->extent[axis]) % tile_extent_value(c, scales->extent[axis]) == 0;
}

/* The operand times its scales, rounded to `to`; its contracted axis is the last one of the left, the last but one of the
 * right. `scales` is NULL where there are none. */
static TileMeaning apply_scales(TileChecker *c, TileMeaning v, const TileExpr *scales, unsigned right, TileScalar to,
                                TileSpan span) {
    unsigned axis = v.rank - 1u - right;
    if (!scales) return tile_convert(c, v, to, span);
    if (v.rank == TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, scales->span, (int)TILE_MAX_TILE_RANK);
    TileMeaning s = tile_check_value(c, scales);
    if (tile_is_error(&s)) return s;
    bool scale = s.kind == TILE_MEANING_VALUE && s.rank &&
                 (s.scalar == TILE_U8 || (tile_scalar_is_float((TileScalar)s.scalar) && s.scalar != TILE_F64));
    if (!scale)
        return tile_fail(c, BAD_ARGUMENT, scales->span, "dot_scaled", "scales of u8 (e8m0) or of floats up to 32 bits",
                         tile_meaning_words(c, &s));
    if (!fits_scales(c, &s, &v, axis)) {
        if (s.rank == v.rank) tile_about_shapes(c, &s, &v);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, scales->span,
                                          tile_meaning_words(c, &v), tile_meaning_words(c, &s));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             right ? "the scales of `b` are [.., K / G, N]" : "the scales of `a` are [.., M, K / G]");
        TileMeaning turned = s;
        turned.extent[0] = s.extent[1];
        turned.extent[1] = s.extent[0];
        if (s.rank == 2 && v.rank == 2 && fits_scales(c, &turned, &v, axis))
            tile_diagnostic_edit(c->diagnostics, d, scales->span, "%s.T", tile_operand_text(c, scales));
        tile_report(c, d);
        return tile_error_meaning();
    }
    if (tile_valid_touches(s.valid, 1u << axis)) return tile_fail_invalid(c, &s, scales, "the axis that scales repeat along");
    tile_emit_at(c, span);
    TileMeaning wide = tile_convert(c, v, TILE_F32, span);
    TileValue *x = tile_emit_binary(c, TILE_OP_MUL, tile_emit_value(c, &wide), spread_scales(c, &s, &v, axis));
    x = tile_build_convert(tile_emitter(c), x, to);
    return tile_value_meaning(c, x, v.extent, tile_valid_union(c, v.valid, s.valid));
}

/* The type in which products are multiplied: bf16, unless another stands in brackets. */
static bool read_product(TileChecker *c, const TileExpr *call, TileScalar *scalar) {
    const TileExpr *index = call->a;
    *scalar = TILE_BF16;
    if (index->kind != TILE_EXPR_INDEX) return true;
    const TileExpr *entry = index->items.count == 1 ? index->items.items[0] : NULL;
    bool named = entry && entry->kind == TILE_EXPR_NAME && tile_find_type(c, entry->name, scalar);
    if (named && (*scalar == TILE_BF16 || *scalar == TILE_F16 || *scalar == TILE_F32)) return true;
    return tile_fail(c, BAD_ARGUMENT, index->span, "dot_scaled", "`bf16`, `f16` or `f32` in brackets",
                     entry ? tile_span_text(c, entry->span) : "nothing"),
           false;
}

/* dot_scaled(a, b, acc, a_scale = .., b_scale = ..). */
TileMeaning tile_check_dot_scaled(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    static const char *const names[] = {"a_scale", "b_scale", NULL};
    TileScalar to;
    if (!tile_check_arguments(c, call, 2, 3, names) || !read_product(c, call, &to)) return tile_error_meaning();
    TileMeaning v[3] = {0};
    const TileExpr *exprs[3] = {NULL};
    for (unsigned i = 0; i < 3; i++) {
        exprs[i] = tile_positional_argument(call, i);
        if (!exprs[i]) continue;
        v[i] = tile_check_value(c, exprs[i]);
        if (tile_is_error(&v[i])) return v[i];
    }
    for (unsigned i = 0; i < 2; i++) {
        bool narrow = v[i].kind == TILE_MEANING_VALUE && v[i].rank >= 2 && v[i].scalar != TILE_BOOL &&
                      v[i].scalar != TILE_F64 && tile_scalar_bits((TileScalar)v[i].scalar) <= 32;
        if (!narrow)
            return tile_fail(c, BAD_ARGUMENT, exprs[i]->span, builtin->name,
                             "tiles of rank 2 or more, of numbers up to 32 bits", tile_meaning_words(c, &v[i]));
        v[i] = apply_scales(c, v[i], tile_named_argument(call, i ? "b_scale" : "a_scale"), i, to, call->span);
        if (tile_is_error(&v[i])) return v[i];
    }
    return tile_apply_dot(c, v[0], v[1], exprs[2] ? &v[2] : NULL, TILE_PRECISION_IEEE, exprs, call->span);
}
