/* Calls, by what is called: a built-in function, a function, a type. */
#include "parser/check/arguments.h"
#include "parser/check/arrange.h"
#include "parser/check/builtin.h"
#include "parser/check/call.h"
#include "parser/check/callee.h"
#include "parser/check/candidates.h"
#include "parser/check/count.h"
#include "parser/check/draw.h"
#include "parser/check/einsum.h"
#include "parser/check/elementwise.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/fold.h"
#include "parser/check/foreign.h"
#include "parser/check/item.h"
#include "parser/check/join.h"
#include "parser/check/maker.h"
#include "parser/check/operand.h"
#include "parser/check/packed.h"
#include "parser/check/print.h"
#include "parser/check/range.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"
#include "parser/check/scope.h"
#include "parser/check/sort.h"
#include "parser/check/type.h"

#include <string.h>

/* ---- built-in functions ---- */

/* `tiles` where there is no loop or grid: proposes `span`. */
static TileMeaning fail_tiles(TileChecker *c, const TileExpr *call) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TILES_PLACE, call->span);
    if (call->arguments.count == 2) {
        const TileExpr *bounds = call->arguments.items[0].value, *size = call->arguments.items[1].value;
        bool whole = bounds->kind != TILE_EXPR_BINARY || bounds->op != TILE_TOKEN_DOTS;
        tile_diagnostic_edit(c->diagnostics, d, call->span, "span(%s%s, %s)", whole ? "0.." : "",
                             tile_span_text(c, bounds->span), tile_span_text(c, size->span));
    }
    tile_report(c, d);
    return tile_error_meaning();
}

static TileMeaning fail_iota(TileChecker *c, const TileExpr *call) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CALLABLE, call->span, "`iota[B]` is a tile: it");
    TileSpan parentheses = {call->span.file, call->a->span.end, call->span.end};
    bool sized = call->a->kind == TILE_EXPR_NAME && call->arguments.count == 1;
    const char *size = sized ? tile_span_text(c, call->arguments.items[0].value->span) : NULL;
    if (sized)
        tile_diagnostic_edit(c->diagnostics, d, parentheses, "[%s]", size);
    else if (call->a->kind == TILE_EXPR_INDEX)
        tile_diagnostic_edit(c->diagnostics, d, parentheses, "%s", "");
    tile_report(c, d);
    return tile_error_meaning();
}

/* A call of a built-in function. */
static TileMeaning check_builtin(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    switch (builtin->rule) {
    case TILE_BUILTIN_ELEMENTWISE: return tile_check_elementwise(c, call, builtin);
    case TILE_BUILTIN_EXTREMUM: return tile_check_extremum(c, call, builtin);
    case TILE_BUILTIN_CLAMP: return tile_check_clamp(c, call, builtin);
    case TILE_BUILTIN_CDIV: return tile_check_cdiv(c, call, builtin);
    case TILE_BUILTIN_WHERE: return tile_check_where(c, call, builtin);
    case TILE_BUILTIN_KEEP: return tile_check_keep(c, call, builtin);
    case TILE_BUILTIN_REDUCTION: return tile_check_reduction(c, call, builtin);
    case TILE_BUILTIN_MEAN: return tile_check_mean(c, call, builtin);
    case TILE_BUILTIN_ARG_REDUCTION: return tile_check_arg_reduction(c, call, builtin);
    case TILE_BUILTIN_CUMULATIVE: return tile_check_cumulative(c, call, builtin);
    case TILE_BUILTIN_DOT: return tile_check_dot(c, call, builtin);
    case TILE_BUILTIN_PERMUTE: return tile_check_permute(c, call, builtin);
    case TILE_BUILTIN_RESHAPE: return tile_check_reshape(c, call, builtin);
    case TILE_BUILTIN_ZEROS: return tile_check_zeros(c, call, builtin);
    case TILE_BUILTIN_FULL: return tile_check_full(c, call, builtin);
    case TILE_BUILTIN_IOTA: return fail_iota(c, call);
    case TILE_BUILTIN_BITCAST: return tile_check_bitcast(c, call, builtin);
    case TILE_BUILTIN_GATHER: return tile_check_gather(c, call);
    case TILE_BUILTIN_SCATTER: tile_check_scatter(c, call); return tile_nothing();
    case TILE_BUILTIN_SPAN: return tile_check_span(c, call);
    case TILE_BUILTIN_TILES: return fail_tiles(c, call);
    case TILE_BUILTIN_FOLD: return tile_check_fold(c, call, builtin);
    case TILE_BUILTIN_SORT: return tile_check_sort(c, call, builtin);
    case TILE_BUILTIN_ARGSORT: return tile_check_argsort(c, call, builtin);
    case TILE_BUILTIN_TOPK: return tile_check_topk(c, call, builtin);
    case TILE_BUILTIN_HISTOGRAM: return tile_check_histogram(c, call, builtin);
    case TILE_BUILTIN_SEARCHSORTED: return tile_check_searchsorted(c, call, builtin);
    case TILE_BUILTIN_SPLIT: return tile_check_split(c, call, builtin);
    case TILE_BUILTIN_JOIN: return tile_check_join(c, call, builtin);
    case TILE_BUILTIN_CAT: return tile_check_cat(c, call, builtin);
    case TILE_BUILTIN_RAND: return tile_check_rand(c, call, builtin);
    case TILE_BUILTIN_RANDN: return tile_check_randn(c, call, builtin);
    case TILE_BUILTIN_RANDINT: return tile_check_randint(c, call, builtin);
    case TILE_BUILTIN_RANDPERM: return tile_check_randperm(c, call, builtin);
    case TILE_BUILTIN_LDEXP: return tile_check_ldexp(c, call, builtin);
    case TILE_BUILTIN_FREXP: return tile_check_frexp(c, call, builtin);
    case TILE_BUILTIN_BROADCAST: return tile_check_broadcast(c, call, builtin);
    case TILE_BUILTIN_SHIFT: return tile_check_shift(c, call, builtin);
    case TILE_BUILTIN_VALID: return tile_check_valid(c, call, builtin);
    case TILE_BUILTIN_EINSUM: return tile_check_einsum(c, call, builtin);
    case TILE_BUILTIN_UNPACK: return tile_check_unpack(c, call, builtin);
    case TILE_BUILTIN_PACK: return tile_check_pack(c, call, builtin);
    case TILE_BUILTIN_DOT_SCALED: return tile_check_dot_scaled(c, call, builtin);
    case TILE_BUILTIN_ATOMIC: return tile_check_atomic(c, call, builtin);
    case TILE_BUILTIN_PRINT: return tile_check_print(c, call, builtin);
    }
    return tile_error_meaning();
}

/* ---- all callees ---- */

/* A call by a name that several imports have, if nothing in an inner scope has it. */
static bool is_ambiguous_call(TileChecker *c, const TileExpr *callee) {
    const TileAst *where;
    if (callee->kind != TILE_EXPR_NAME || tile_scope_find(c, callee->name)) return false;
    return !tile_find_item(c->frame->ast, callee->name, false, &where) && tile_is_ambiguous(c, callee->name);
}

static TileMeaning check_conversion(TileChecker *c, const TileExpr *call, const TileMeaning *type) {
    if (!tile_check_arguments(c, call, 1, 1, NULL)) return tile_error_meaning();
    const TileExpr *expr = call->arguments.items[0].value;
    TileMeaning m = tile_check_value(c, expr);
    tile_emit_at(c, call->span);
    return tile_convert(c, m, (TileScalar)type->scalar, expr->span);
}

/* Does something stand in brackets before the arguments, as in `zeros[4](f32)`? */
static bool takes_brackets(const TileBuiltin *builtin) {
    switch (builtin->rule) {
    case TILE_BUILTIN_ZEROS:
    case TILE_BUILTIN_FULL:
    case TILE_BUILTIN_IOTA:
    case TILE_BUILTIN_BITCAST:
    case TILE_BUILTIN_DOT:
    case TILE_BUILTIN_DOT_SCALED:
    case TILE_BUILTIN_PACK:
    case TILE_BUILTIN_UNPACK:
    case TILE_BUILTIN_RANDPERM: return true;
    default: return false;
    }
}

static TileMeaning fail_brackets(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    const TileExpr *index = call->a;
    const char *maker = tile_maker_meant(c, call);
    unsigned count = (unsigned)index->items.count;
    TileSpan brackets = {index->span.file, index->a->span.end, index->span.end};
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_GENERIC_COUNT, brackets, builtin->name,
                                      "no generics", count, count == 1 ? "is" : "are");
    tile_diagnostic_edit(c->diagnostics, d, maker ? call->span : brackets, "%s", maker ? maker : "");
    tile_report(c, d);
    return tile_error_meaning();
}

/* What is called is no function; a name of the kernel's may have hidden a built-in one. `x(n)` of a tensor is `x[n]`. */
static TileMeaning fail_callee(TileChecker *c, const TileExpr *call, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_CALLABLE, call->a->span, tile_meaning_words(c, m));
    size_t count = call->arguments.count;
    bool indexes = m->kind == TILE_MEANING_TENSOR && call->a->kind == TILE_EXPR_NAME && count;
    for (size_t i = 0; i < count; i++) indexes = indexes && !call->arguments.items[i].name;
    if (indexes) {
        TileSpan all = {call->span.file, call->arguments.items[0].value->span.begin,
                        call->arguments.items[count - 1].value->span.end};
        tile_diagnostic_edit(c->diagnostics, d, call->span, "%s[%s]", call->a->name, tile_span_text(c, all));
    }
    const TileBound *bound = call->a->kind == TILE_EXPR_NAME ? tile_scope_find(c, call->a->name) : NULL;
    if (bound && tile_find_builtin(call->a->name))
        tile_diagnostic_note(c->diagnostics, d, bound->span, "`%s` is bound here, which hides the built-in function of that name",
                             call->a->name);
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_check_call(TileChecker *c, const TileExpr *expr) {
    const TileExpr *callee = expr->a;
    bool approximate =
        callee->kind == TILE_EXPR_FIELD && callee->a->kind == TILE_EXPR_NAME && strcmp(callee->a->name, "approx") == 0;
    if (approximate && !tile_scope_find(c, callee->a->name)) return tile_check_approximate(c, expr);
    if (tile_is_maker(c, expr)) return tile_check_maker(c, expr);
    const TileExpr *index = callee->kind == TILE_EXPR_INDEX ? callee : NULL;
    const TileExpr *named = index ? index->a : callee;
    if (is_ambiguous_call(c, named)) {
        tile_fail_ambiguous(c, named->name, named->span, expr, index);
        return tile_error_meaning();
    }
    TileMeaning m = tile_check_expr(c, named);
    switch (m.kind) {
    case TILE_MEANING_ERROR:
        if (!index && (named->kind == TILE_EXPR_NAME || named->kind == TILE_EXPR_FIELD)) {
            const TileExpr *first = named->kind == TILE_EXPR_FIELD ? named->a : named;
            tile_propose_access(c, tile_reported_last(c, TILE_DIAGNOSTIC_UNKNOWN_NAME, first->span), expr);
        }
        if (named->kind == TILE_EXPR_FIELD && !index)
            tile_propose_call_of_method(c, tile_reported_last(c, TILE_DIAGNOSTIC_NO_FIELD, named->op_span), expr);
        return m;
    case TILE_MEANING_BUILTIN:
        if (index && !takes_brackets(m.builtin)) return fail_brackets(c, expr, m.builtin);
        return check_builtin(c, expr, m.builtin);
    case TILE_MEANING_FUNCTION: return tile_check_function_call(c, expr, &m, index);
    case TILE_MEANING_TYPE:
        if (!index) return check_conversion(c, expr, &m);
        break;
    default: break;
    }
    return fail_callee(c, expr, &m);
}
