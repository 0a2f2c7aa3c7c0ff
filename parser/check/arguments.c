/* Arguments of built-in functions: their number, their names, operands of a common type. */
#include "parser/check/arguments.h"
#include "parser/check/emit.h"
#include "parser/check/foreign.h"
#include "parser/check/forms.h"
#include "parser/check/literal.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"

#include <string.h>

const TileExpr *tile_named_argument(const TileExpr *call, const char *name) {
    for (size_t i = 0; i < call->arguments.count; i++)
        if (call->arguments.items[i].name && strcmp(call->arguments.items[i].name, name) == 0)
            return call->arguments.items[i].value;
    return NULL;
}

static bool name_allowed(const char *name, const char *const *names) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

const char *tile_callee_name(const TileExpr *call) {
    const TileExpr *callee = call->a;
    if (callee->kind == TILE_EXPR_INDEX) callee = callee->a;
    return callee->kind == TILE_EXPR_NAME || callee->kind == TILE_EXPR_FIELD ? callee->name : "the function";
}

/* `sum(v, 1)`: proposes `sum(v, axis = 1)`. */
static void propose_axis_name(TileChecker *c, TileDiagnostic *d, const TileExpr *call, unsigned place) {
    const TileArgumentExpr *argument = place < call->arguments.count ? &call->arguments.items[place] : NULL;
    const TileExpr *given = tile_named_argument(call, "axis");
    if (given && given->kind == TILE_EXPR_INTEGER) { /* sum(v, axis = 0, 1) */
        const TileExpr *last = call->arguments.items[call->arguments.count - 1].value;
        TileSpan both = {given->span.file, given->span.begin, last->span.end};
        if (last->kind == TILE_EXPR_INTEGER && last->span.begin > given->span.end)
            tile_diagnostic_edit(c->diagnostics, d, both, "(%s)", tile_span_text(c, both));
        return;
    }
    bool axes = argument && !argument->name && !given &&
                (argument->value->kind == TILE_EXPR_INTEGER || argument->value->kind == TILE_EXPR_TUPLE);
    if (!axes) return;
    tile_diagnostic_edit(c->diagnostics, d, argument->value->span, "axis = %s",
                         tile_span_text(c, argument->value->span));
}

/* `reshape(v, 4, 8)`: the second argument is a tuple. */
static void propose_tuple(TileChecker *c, TileDiagnostic *d, const TileExpr *call) {
    static const char *const takers[] = {"reshape", "permute", "broadcast"};
    const char *name = tile_callee_name(call);
    bool takes = false;
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) takes = takes || strcmp(name, takers[i]) == 0;
    if (!takes) return;
    TileSpan all = call->arguments.items[1].value->span;
    all.end = call->arguments.items[call->arguments.count - 1].value->span.end;
    tile_diagnostic_edit(c->diagnostics, d, all, "(%s)", tile_span_text(c, all));
}

/* What other languages call an argument, or an argument by name that has none here. */
static void propose_argument(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const TileArgumentExpr *argument,
                             unsigned least, unsigned most, const char *const *names) {
    const char *own = tile_foreign_argument(c, d, argument->name);
    unsigned named = 0;
    for (size_t i = 0; i < call->arguments.count; i++) named += call->arguments.items[i].name != NULL;
    if (own && name_allowed(own, names)) {
        tile_diagnostic_edit(c->diagnostics, d, argument->name_span, "%s", own);
    } else if (!own && !names && named > 1 && call->arguments.count >= least && call->arguments.count <= most) {
        TileText values = {.arena = c->arena};
        TileSpan all = {argument->name_span.file, argument->name_span.begin, 0};
        for (size_t i = 0; i < call->arguments.count; i++) {
            TileSpan value = call->arguments.items[i].value->span;
            if (value.begin < all.begin) continue;
            tile_text_format(&values, "%s%s", values.length ? ", " : "", tile_span_text(c, value));
            all.end = value.end;
        }
        tile_diagnostic_edit(c->diagnostics, d, all, "%s", tile_text_get(&values));
    } else if (!own && named == 1 && argument->value->kind != TILE_EXPR_STRING && call->arguments.count >= least &&
               call->arguments.count <= most) {
        TileSpan name = {argument->name_span.file, argument->name_span.begin, argument->value->span.begin};
        tile_diagnostic_edit(c->diagnostics, d, name, "%s", "");
    }
}

bool tile_check_arguments(TileChecker *c, const TileExpr *call, unsigned least, unsigned most,
                          const char *const *names) {
    unsigned count = 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileArgumentExpr *argument = &call->arguments.items[i];
        if (argument->name && !name_allowed(argument->name, names)) {
            TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ARGUMENT_NAME, argument->name_span,
                                              tile_callee_name(call), argument->name);
            TileNearest nearest = tile_nearest(argument->name);
            tile_nearest_form(c, &nearest, tile_callee_name(call));
            tile_propose_nearest(c, d, argument->name_span, &nearest);
            if (!nearest.best) propose_argument(c, d, call, argument, least, most, names);
            tile_note_forms(c, tile_report(c, d), call, tile_callee_name(call));
            return false;
        }
        for (size_t k = 0; argument->name && k < i; k++)
            if (call->arguments.items[k].name && strcmp(call->arguments.items[k].name, argument->name) == 0)
                return tile_fail(c, GIVEN_TWICE, argument->name_span, argument->name, tile_callee_name(call)), false;
        count += !argument->name;
    }
    if (count >= least && count <= most) return true;
    TileDiagnostic *d = tile_report_count(c, call->span, tile_callee_name(call), least, most, count);
    if (count == most + 1 && name_allowed("axis", names)) propose_axis_name(c, d, call, most);
    if (count > most && !names) propose_tuple(c, d, call);
    tile_note_forms(c, d, call, tile_callee_name(call));
    return false;
}

bool tile_check_operands(TileChecker *c, const TileExpr *call, unsigned count, TileMeaning *operands) {
    const TileExpr *exprs[3];
    if (!tile_check_arguments(c, call, count, count, NULL)) return false;
    for (unsigned i = 0; i < count; i++) {
        exprs[i] = call->arguments.items[i].value;
        operands[i] = tile_check_value(c, exprs[i]);
    }
    tile_emit_at(c, call->span);
    return tile_unify_scalars(c, operands, exprs, count, call->span);
}

const TileExpr *tile_positional_argument(const TileExpr *call, unsigned index) {
    unsigned next = 0;
    for (size_t i = 0; i < call->arguments.count; i++)
        if (!call->arguments.items[i].name && next++ == index) return call->arguments.items[i].value;
    return NULL;
}

bool tile_check_flag(TileChecker *c, const TileExpr *call, const char *name, bool *flag) {
    const TileExpr *expr = tile_named_argument(call, name);
    *flag = false;
    if (!expr) return true;
    TileMeaning m = tile_check_value(c, expr);
    if (tile_is_error(&m)) return false;
    if (!m.constant) tile_about_constant(c, &m);
    if (!m.constant || m.scalar != TILE_BOOL) return tile_fail(c, NOT_CONSTANT, expr->span, name), false;
    *flag = m.bits;
    return true;
}

bool tile_check_tile(TileChecker *c, const TileExpr *expr, const char *name, TileMeaning *m) {
    *m = tile_as_value(c, tile_check_value(c, expr), expr->span);
    if (tile_is_error(m)) return false;
    if (m->kind == TILE_MEANING_VALUE && m->rank) return true;
    return tile_fail(c, BAD_RANK, expr->span, name, "at least 1", tile_meaning_words(c, m)), false;
}
