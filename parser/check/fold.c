/* reduce and scan with a function, and the named scans.
 *
 * The function is checked and emitted in the region of the op, on the region's scalar arguments. Values from outside
 * are not visible there, and there is no control flow: an `if` computes both sides, as in a lifted function. */
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/call.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/fold.h"
#include "parser/check/fold_tree.h"
#include "parser/check/forms.h"
#include "parser/check/item.h"
#include "parser/check/lacks.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

typedef struct Fold {
    const TileExpr *call, *function;
    const char *name; /* reduce or scan */
    bool scan, reverse, exclusive;
    unsigned axes, count;
    TileMeaning values[TILE_MAX_FOLD], init[TILE_MAX_FOLD];
    bool has_init;
    const TileValidity *valid; /* of all values together */
} Fold;

static const char *plural(unsigned count) { return count == 1 ? "" : "s"; }

/* ---- arguments ---- */

/* One value, or the items of a tuple. */
static bool read_tuple(TileChecker *c, const TileExpr *expr, TileMeaning *values, unsigned *count) {
    TileMeaning m = tile_check_expr(c, expr);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_TUPLE) {
        *count = 1;
        values[0] = m;
        return true;
    }
    if (m.count == 0 || m.count > TILE_MAX_FOLD)
        return tile_fail(c, FOLD_COUNT, expr->span, "the tuple", (unsigned)m.count, plural(m.count),
                         "1 to 8 are folded together"),
               false;
    *count = m.count;
    memcpy(values, m.items, m.count * sizeof *values);
    return true;
}

/* What is no value: perhaps the function, which stands last. */
static void fail_values(TileChecker *c, const Fold *fold, const TileExpr *expr, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_VALUE, expr->span, tile_meaning_words(c, m));
    const TileExpr *second = tile_positional_argument(fold->call, 1), *third = tile_positional_argument(fold->call, 2);
    bool function = m->kind == TILE_MEANING_FUNCTION || m->kind == TILE_MEANING_BUILTIN;
    if (function && third && !tile_positional_argument(fold->call, 3)) {
        TileSpan all = {expr->span.file, expr->span.begin, third->span.end};
        tile_diagnostic_edit(c->diagnostics, d, all, "%s, %s, %s", tile_span_text(c, second->span),
                             tile_span_text(c, third->span), tile_span_text(c, expr->span));
    }
    tile_note_forms(c, tile_report(c, d), fold->call, fold->name);
}

static bool read_values(TileChecker *c, Fold *fold, const TileExpr *expr) {
    if (!read_tuple(c, expr, fold->values, &fold->count)) return false;
    for (unsigned i = 0; i < fold->count; i++) {
        fold->values[i] = tile_as_value(c, fold->values[i], expr->span);
        if (tile_is_error(&fold->values[i])) return false;
        if (fold->values[i].kind != TILE_MEANING_VALUE) return fail_values(c, fold, expr, &fold->values[i]), false;
    }
    tile_emit_at(c, fold->call->span);
    if (!tile_unify_shapes(c, fold->values, fold->count, expr->span)) return false;
    if (fold->values[0].rank == 0)
        return tile_fail(c, BAD_RANK, expr->span, fold->name, "at least 1", tile_meaning_words(c, &fold->values[0])),
               false;
    for (unsigned i = 0; i < fold->count; i++) fold->valid = tile_valid_union(c, fold->valid, fold->values[i].valid);
    return true;
}

/* The shape of the values without some axes. */
static TileMeaning line_shape(const TileMeaning *value, unsigned axes) {
    TileMeaning shape = *value;
    shape.rank = 0;
    shape.value = NULL;
    shape.sum = NULL;
    for (unsigned i = 0; i < value->rank; i++)
        if (!(axes >> i & 1)) shape.extent[shape.rank++] = value->extent[i];
    return shape;
}

static bool read_init(TileChecker *c, Fold *fold) {
    const TileExpr *expr = tile_named_argument(fold->call, "init");
    unsigned count;
    fold->has_init = expr != NULL;
    if (!expr) return true;
    if (expr->kind == TILE_EXPR_TUPLE && expr->items.count == fold->count) {
        for (unsigned i = 0; i < fold->count; i++) fold->init[i] = tile_check_value(c, expr->items.items[i]);
    } else {
        if (!read_tuple(c, expr, fold->init, &count)) return false;
        if (count != fold->count)
            return tile_fail(c, FOLD_COUNT, expr->span, "`init`", count, plural(count),
                             tile_arena_format(c->arena, "%u %s folded", fold->count, fold->count == 1 ? "is" : "are")),
                   false;
    }
    for (unsigned i = 0; i < fold->count; i++) {
        TileMeaning *m = &fold->init[i], shape = line_shape(&fold->values[i], fold->axes);
        if (tile_is_literal(m)) *m = tile_literal_as(c, m, (TileScalar)shape.scalar, expr->span);
        if (tile_is_error(m)) return false;
        bool fits = m->kind == TILE_MEANING_VALUE && m->scalar == shape.scalar && (!m->rank || m->rank == shape.rank);
        for (unsigned k = 0; fits && k < m->rank; k++)
            fits = m->extent[k] == shape.extent[k] || tile_sum_is_literal(m->extent[k], 1);
        if (!fits && m->scalar == shape.scalar && m->rank == shape.rank) tile_about_shapes(c, m, &shape);
        if (!fits)
            return tile_fail(c, TYPE_MISMATCH, expr->span, tile_meaning_words(c, &shape), tile_meaning_words(c, m)),
                   false;
        *m = tile_stretch(c, *m, shape.rank, shape.extent);
    }
    return true;
}

/* ---- empty lines ---- */

/* The atoms that may leave no valid element along the axes, or NULL. */
static const TileValidEntry *may_be_empty(const TileValidity *skipped) {
    for (unsigned i = 0; skipped && i < skipped->count; i++)
        if (skipped->entries[i].atom->kind != TILE_ATOM_INTERVAL || !skipped->entries[i].atom->holds_first)
            return &skipped->entries[i];
    return NULL;
}

static const char *zeros(TileChecker *c, unsigned count) {
    TileText text = {.arena = c->arena};
    for (unsigned i = 0; i < count; i++) tile_text_add(&text, i ? ", 0" : count > 1 ? "(0" : "0");
    if (count > 1) tile_text_add(&text, ")");
    return tile_text_get(&text);
}

static bool fail_init(TileChecker *c, const Fold *fold, const TileValidEntry *entry) {
    const char *why = "an exclusive scan begins with it";
    if (entry) tile_about_atom(c, entry->atom);
    if (entry)
        why = tile_arena_format(c->arena, "a line may have no valid element: %s", tile_atom_words(c, entry->atom));
    TileSpan span = fold->call->span;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_FOLD_INIT, span, fold->name, why);
    if (entry) tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
    if (entry) tile_note_lacks(c, d, entry->atom);
    span.end--;
    tile_diagnostic_edit(c->diagnostics, d, fold->call->span, "%s, init = %s)", tile_span_text(c, span),
                         zeros(c, fold->count));
    tile_report(c, d);
    return false;
}

static bool check_init(TileChecker *c, const Fold *fold) {
    const TileValidEntry *entry = may_be_empty(tile_valid_select(c, fold->valid, fold->axes, false));
    if (fold->has_init) return true;
    if (fold->scan) return !fold->exclusive || fail_init(c, fold, NULL);
    return !entry || fail_init(c, fold, entry);
}

/* ---- the function ---- */

static const char *type_words(TileChecker *c, const Fold *fold) {
    TileText text = {.arena = c->arena};
    for (unsigned i = 0; i < fold->count; i++) {
        tile_text_add(&text, i ? ", " : fold->count > 1 ? "(" : "");
        tile_text_add(&text, tile_scalar_name((TileScalar)fold->values[i].scalar));
    }
    if (fold->count > 1) tile_text_add(&text, ")");
    return tile_text_get(&text);
}

static TileMeaning fail_function(TileChecker *c, const Fold *fold, const char *words, const TileItem *item) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_FOLD_FUNCTION, fold->function->span, fold->name, fold->count,
                      plural(fold->count), 2 * fold->count, fold->count, fold->count, words);
    if (item) tile_diagnostic_note(c->diagnostics, d, item->name_span, "`%s` is declared here", item->name);
    if (item && item->params.count > 2 * fold->count)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "it gets the elements alone; what is constant stands in brackets, `fn f[K: const](..)`, and "
                             "what is not is folded with them, in a tuple");
    tile_report(c, d);
    return tile_error_meaning();
}

/* What stands for the function is none: perhaps its call, or its name as a text. */
static TileMeaning fail_not_function(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_FUNCTION, expr->span, tile_meaning_words(c, m));
    if (expr->kind == TILE_EXPR_CALL)
        tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s", tile_span_text(c, expr->a->span));
    const TileAst *where;
    bool named = expr->kind == TILE_EXPR_STRING &&
                 (tile_find_builtin(expr->name) ||
                  tile_find_item(c->frame->ast, tile_intern_string(c->names, expr->name), true, &where));
    if (named) tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s", expr->name);
    tile_report(c, d);
    return tile_error_meaning();
}

/* A built-in function is called by its name, which is bound for this call, with two arguments. */
static TileMeaning call_builtin(TileChecker *c, const Fold *fold, const TileMeaning *function, TileMeaning *arguments) {
    if (fold->count != 1) return fail_function(c, fold, tile_meaning_words(c, function), NULL);
    static const char *const names[] = {"left", "right"};
    TileExpr *operands = TILE_NEW_ARRAY(c->arena, TileExpr, 2), *call = TILE_NEW(c->arena, TileExpr);
    TileExpr *callee = TILE_NEW(c->arena, TileExpr);
    size_t bounds = c->bounds.count;
    *callee = (TileExpr){.kind = TILE_EXPR_NAME, .span = fold->function->span};
    callee->name = tile_intern_string(c->names, function->builtin->name);
    tile_scope_push(c, (TileBound){.name = callee->name, .meaning = *function, .span = fold->function->span});
    *call = (TileExpr){.kind = TILE_EXPR_CALL, .span = fold->function->span, .a = callee};
    for (unsigned i = 0; i < 2; i++) {
        operands[i] = (TileExpr){.kind = TILE_EXPR_NAME, .span = fold->function->span};
        operands[i].name = tile_intern_string(c->names, names[i]);
        TileArgumentExpr given = {.value = &operands[i]};
        tile_list_push(c->arena, &call->arguments, given);
        TileBound bound = {.name = operands[i].name, .meaning = arguments[i], .span = fold->function->span};
        tile_scope_push(c, bound);
    }
    TileMeaning result = tile_check_expr(c, call);
    tile_scope_cut(c, bounds);
    return result;
}

static TileMeaning call_function(TileChecker *c, const Fold *fold, TileMeaning *arguments) {
    const TileExpr *expr = fold->function;
    TileMeaning function = tile_check_expr(c, expr);
    if (tile_is_error(&function)) return function;
    if (function.kind == TILE_MEANING_BUILTIN) return call_builtin(c, fold, &function, arguments);
    if (function.kind != TILE_MEANING_FUNCTION || function.item->kind != TILE_ITEM_FN)
        return fail_not_function(c, expr, &function);
    if (function.item->params.count != 2 * fold->count)
        return fail_function(c, fold,
                             tile_arena_format(c->arena, "the function `%s` of %u", function.item->name,
                                               (unsigned)function.item->params.count),
                             function.item);
    return tile_call_function(c, &function, arguments, NULL, 2 * fold->count, expr->span);
}

static const char *result_words(TileChecker *c, const TileMeaning *m) {
    if (m->kind != TILE_MEANING_TUPLE) return tile_meaning_words(c, m);
    TileText text = {.arena = c->arena};
    for (unsigned i = 0; i < m->count; i++) {
        tile_text_add(&text, i ? ", " : "(");
        tile_text_add(&text, tile_meaning_words(c, &m->items[i]));
    }
    tile_text_add(&text, ")");
    return tile_text_get(&text);
}

static bool fail_result(TileChecker *c, const Fold *fold, const TileMeaning *result) {
    const TileExpr *name = fold->function->kind == TILE_EXPR_INDEX ? fold->function->a : fold->function;
    const char *wanted = type_words(c, fold), *function = tile_span_text(c, name->span);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_FOLD_RESULT, fold->function->span, fold->name,
                                      wanted, function, result_words(c, result));
    TileMeaning m = tile_check_expr(c, name);
    if (m.kind == TILE_MEANING_FUNCTION && m.item->type)
        tile_diagnostic_note(c->diagnostics, d, m.item->type->span, "the result is declared here");
    tile_report(c, d);
    return false;
}

/* The function's results as values of the arguments' shape. */
static bool emit_results(TileChecker *c, const Fold *fold, TileMeaning *arguments, TileValue **values) {
    TileMeaning result = call_function(c, fold, arguments);
    if (tile_is_error(&result)) return false;
    bool tuple = result.kind == TILE_MEANING_TUPLE;
    bool fits = (tuple ? result.count : 1) == fold->count;
    for (unsigned i = 0; fits && i < fold->count; i++) {
        TileMeaning m = tuple ? result.items[i] : result;
        fits = m.kind == TILE_MEANING_VALUE && m.scalar == fold->values[i].scalar && (!m.rank || m.rank == arguments->rank);
        if (fits && m.rank < arguments->rank) m = tile_stretch(c, m, arguments->rank, arguments->extent);
        if (fits) values[i] = tile_emit_value(c, &m);
    }
    return fits || fail_result(c, fold, &result);
}

/* Emits the function's ops in the region, with its terminator. */
static bool emit_function(TileChecker *c, const Fold *fold, TileBlock *region) {
    TileMeaning arguments[2 * TILE_MAX_FOLD];
    TileValue *values[TILE_MAX_FOLD];
    for (unsigned i = 0; i < 2 * fold->count; i++) arguments[i] = tile_scalar_meaning(c, region->arguments[i], NULL);
    if (!emit_results(c, fold, arguments, values)) return false;
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, values, fold->count);
    return true;
}

static bool check_ops(TileChecker *c, const Fold *fold, const TileBlock *region) {
    for (const TileOp *op = region->first; op != region->last; op = op->next) {
        bool scalar = op->result_count == 1 && tile_type_is_scalar(op->results[0].type);
        if (scalar && (op->id == TILE_OP_CONST || tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE))
            continue;
        return tile_fail(c, UNSUPPORTED, fold->function->span, "a tile in a function that folds"), false;
    }
    return true;
}

/* Cached values of outer blocks are not visible in the region. */
static bool check_function(TileChecker *c, const Fold *fold, TileBlock *region) {
    TileCache outer = c->cache;
    TileBlock *block = c->builder.block;
    bool was_inside = c->in_combiner;
    c->cache = (TileCache){0};
    c->builder.block = region;
    c->in_combiner = true;
    bool ok = emit_function(c, fold, region) && check_ops(c, fold, region);
    c->in_combiner = was_inside;
    c->builder.block = block;
    c->cache = outer;
    return ok;
}

/* ---- the op ---- */

/* True where `skipped` is valid, as a tile of the shape. */
static TileValue *emit_mask(TileChecker *c, const TileMeaning *shape, const TileValidity *skipped) {
    TileMeaning all = tile_stretch(c, tile_bool_meaning(true), shape->rank, shape->extent);
    return tile_emit_filled(
        c, &all, skipped,
        tile_emit_value(c, &(TileMeaning){.kind = TILE_MEANING_VALUE, .scalar = TILE_BOOL, .constant = true}));
}

static bool apply_to_tiles(TileChecker *c, void *host, TileMeaning *arguments, TileValue **results) {
    return emit_results(c, host, arguments, results);
}

/* The results of the op, or of a tree where the function has a loop that is not unrolled. */
static bool emit_fold(TileChecker *c, Fold *fold, const TileFoldParts *parts, TileValue **results) {
    TileDiagnosticsMark mark = tile_diagnostics_mark(c->diagnostics);
    TileOp *op = tile_build_fold(tile_emitter(c), fold->scan ? TILE_OP_SCAN : TILE_OP_FOLD, parts);
    bool loops = c->combiner_loops;
    c->combiner_loops = false;
    bool good = check_function(c, fold, &op->regions[0]), by_tree = c->combiner_loops;
    c->combiner_loops = loops;
    for (unsigned i = 0; good && !by_tree && i < fold->count; i++) results[i] = tile_op_result(op, i);
    if (!by_tree) return good;
    tile_discard_block(&op->regions[0]);
    tile_op_erase(op);
    tile_diagnostics_rewind(c->diagnostics, mark);
    int8_t others[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) others[i] = i == (unsigned)parts->axis ? -1 : (int8_t)i;
    TileFoldTree tree = {.count = fold->count, .axis = (unsigned)parts->axis, .reverse = fold->reverse,
                         .exclusive = fold->exclusive, .init = (TileValue **)parts->init, .span = fold->call->span,
                         .rest = tile_valid_map(c, fold->valid, others),
                         .apply = apply_to_tiles, .host = fold};
    memcpy(results, parts->values, fold->count * sizeof *results);
    return (fold->scan ? tile_scan_by_tree : tile_fold_by_tree)(c, &tree, &fold->values[0], results, parts->mask);
}

/* Folds along one axis. `rest` is true for existing elements (or NULL: all exist), and is updated for the result. */
static bool fold_axis(TileChecker *c, Fold *fold, unsigned axis, bool last, TileValue **rest) {
    const TileValidity *skipped = tile_valid_select(c, fold->valid, 1u << axis, false);
    TileValue *values[TILE_MAX_FOLD], *init[TILE_MAX_FOLD];
    TileFoldParts parts = {.values = values, .count = fold->count, .axis = axis};
    tile_emit_at(c, fold->call->span);
    for (unsigned i = 0; i < fold->count; i++) {
        values[i] = tile_emit_value(c, &fold->values[i]);
        if (fold->has_init && last) init[i] = tile_emit_value(c, &fold->init[i]);
    }
    if (fold->has_init && last) parts.init = init;
    if (skipped) parts.mask = emit_mask(c, &fold->values[0], skipped);
    if (*rest) parts.mask = parts.mask ? tile_emit_binary(c, TILE_OP_AND, parts.mask, *rest) : *rest;
    bool empties = *rest || may_be_empty(skipped);
    *rest = empties && !last ? tile_build_reduce(tile_emitter(c), parts.mask, TILE_KIND_ANY, axis) : NULL;
    parts.reverse = fold->reverse;
    parts.exclusive = fold->exclusive;
    TileValue *results[TILE_MAX_FOLD];
    if (!emit_fold(c, fold, &parts, results)) return false;
    TileMeaning shape = fold->scan ? fold->values[0] : line_shape(&fold->values[0], 1u << axis);
    for (unsigned i = 0; i < fold->count; i++)
        fold->values[i] = tile_value_meaning(c, results[i], shape.extent, NULL);
    if (fold->scan) return true;
    int8_t map[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) map[i] = i == axis ? -1 : (int8_t)(i - (i > axis));
    fold->valid = tile_valid_map(c, fold->valid, map);
    return true;
}

/* From the innermost axis outwards. */
static bool fold_axes(TileChecker *c, Fold *fold) {
    TileValue *rest = NULL;
    for (unsigned left = fold->axes; left;) {
        unsigned axis = 31u - (unsigned)__builtin_clz(left);
        left &= ~(1u << axis);
        if (!fold_axis(c, fold, axis, !left, &rest)) return false;
    }
    return true;
}

static bool read_fold(TileChecker *c, Fold *fold) {
    const TileExpr *call = fold->call, *axis = tile_named_argument(call, "axis");
    fold->function = tile_positional_argument(call, axis ? 1 : 2);
    if (!axis) axis = tile_positional_argument(call, 1);
    if (!read_values(c, fold, tile_positional_argument(call, 0))) return false;
    if (!tile_check_axes_of(c, axis, fold->values[0].rank, &fold->axes)) return false;
    if (fold->axes == 0 || (fold->scan && (fold->axes & (fold->axes - 1))))
        return tile_fail(c, ONE_AXIS, axis->span, fold->name), false;
    if (!tile_check_flag(c, call, "reverse", &fold->reverse) || !tile_check_flag(c, call, "exclusive", &fold->exclusive))
        return false;
    return read_init(c, fold) && check_init(c, fold);
}

TileMeaning tile_check_fold(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    static const char *const fold_names[] = {"axis", "init", NULL};
    static const char *const scan_names[] = {"axis", "init", "reverse", "exclusive", NULL};
    Fold fold = {.call = call, .name = builtin->name, .scan = strcmp(builtin->name, "scan") == 0};
    unsigned places = tile_named_argument(call, "axis") ? 2 : 3;
    if (!tile_check_arguments(c, call, places, places, fold.scan ? scan_names : fold_names) || !read_fold(c, &fold))
        return tile_error_meaning();
    const TileValidity *init_valid = NULL;
    for (unsigned i = 0; fold.has_init && i < fold.count; i++)
        init_valid = tile_valid_union(c, init_valid, fold.init[i].valid);
    if (fold.scan && fold.has_init) {
        int8_t map[TILE_MAX_TILE_RANK];
        unsigned axis = (unsigned)__builtin_ctz(fold.axes);
        for (unsigned i = 0; i < TILE_MAX_TILE_RANK; i++) map[i] = (int8_t)(i + (i >= axis));
        init_valid = tile_valid_map(c, init_valid, map);
    }
    if (!fold_axes(c, &fold)) return tile_error_meaning();
    TileMeaning tuple = {.kind = TILE_MEANING_TUPLE, .count = fold.count};
    tuple.items = tile_arena_copy(c->arena, fold.values, fold.count * sizeof *fold.values);
    for (unsigned i = 0; i < fold.count; i++) tuple.items[i].valid = tile_valid_union(c, fold.valid, init_valid);
    return fold.count == 1 ? tuple.items[0] : tuple;
}

/* ---- named scans ---- */

TileMeaning tile_check_cumulative(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    static const char *const names[] = {"axis", "reverse", "exclusive", NULL};
    unsigned axes;
    bool reverse, exclusive;
    TileMeaning m = tile_check_reduced(c, call, names);
    if (tile_is_error(&m) || !tile_check_axes(c, call, m.rank, &axes)) return tile_error_meaning();
    if ((axes & (axes - 1)) != 0) return tile_fail_one_axis(c, call, builtin->name);
    if (m.scalar == TILE_BOOL) return tile_fail(c, BAD_ARGUMENT, call->span, builtin->name, "numbers", "bool");
    if (!tile_check_flag(c, call, "reverse", &reverse) || !tile_check_flag(c, call, "exclusive", &exclusive))
        return tile_error_meaning();
    bool product = builtin->kind == TILE_KIND_PROD;
    TileScalar scalar = (TileScalar)m.scalar, wide = tile_accumulator((TileName)builtin->kind, scalar);
    m = tile_convert(c, m, wide, call->span);
    TileMeaning shape = line_shape(&m, axes);
    TileMeaning identity = tile_bits_meaning(wide, product ? tile_scalar_from_integer(wide, 1) : 0);
    if (shape.rank) identity = tile_stretch(c, identity, shape.rank, shape.extent);
    TileValue *x = tile_emit_value(c, &m), *init = tile_emit_value(c, &identity);
    const TileValidity *skipped = tile_valid_select(c, m.valid, axes, false);
    TileFoldParts parts = {.values = &x, .init = &init, .count = 1, .axis = __builtin_ctz(axes)};
    parts.mask = skipped ? emit_mask(c, &m, skipped) : NULL;
    parts.reverse = reverse;
    parts.exclusive = exclusive;
    TileOp *op = tile_build_fold(tile_emitter(c), TILE_OP_SCAN, &parts);
    TileBuilder inside = tile_builder_at_end(c->module, &op->regions[0]);
    TileValue **arguments = op->regions[0].arguments;
    inside.location = c->builder.location;
    TileValue *next = tile_build_binary(&inside, product ? TILE_OP_MUL : TILE_OP_ADD, arguments[0], arguments[1]);
    tile_build_end(&inside, TILE_OP_YIELD, &next, 1);
    TileMeaning result = tile_value_meaning(c, tile_op_result(op, 0), m.extent, m.valid);
    return tile_scalar_is_float(scalar) ? tile_convert(c, result, scalar, call->span) : result;
}
