/* Name lookup: bound names, items of the file or of imports, constants. And assignment to variables. */
#include "parser/check/formats.h"
#include "parser/check/builtin.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/foreign.h"
#include "parser/check/item.h"
#include "parser/check/lacks.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

/* The cost of evaluating a constant, in ops. */
enum { CONSTANT_WORK = 4 };

static TileMeaning evaluate_constant(TileChecker *c, const TileItem *item, const TileAst *ast, TileSpan span) {
    for (const TileFrame *frame = c->frame; frame; frame = frame->parent)
        if (frame->item == item) return tile_fail(c, RECURSIVE, span, item->name);
    if (c->depth >= TILE_MAX_CALL_DEPTH) return tile_fail(c, TOO_DEEP, span, (unsigned)TILE_MAX_CALL_DEPTH);
    tile_spend(c, CONSTANT_WORK);
    TileFrame frame = {.parent = c->frame, .item = item, .ast = ast, .scope_base = c->bounds.count, .call = span};
    TileFrame *caller = c->frame;
    uint32_t errors = c->diagnostics->error_count;
    c->frame = &frame;
    c->depth++;
    TileMeaning value = tile_check_value(c, item->value);
    if (c->diagnostics->error_count != errors) value = tile_error_meaning();
    TileScalar scalar;
    if (item->type && !tile_is_error(&value)) {
        if (!tile_find_type(c, item->type->name, &scalar))
            value = tile_fail_type(c, item->type->name_span, item->type->name);
        else if (tile_is_literal(&value))
            value = tile_literal_as(c, &value, scalar, item->value->span);
        else if (value.scalar != scalar)
            value =
                tile_fail(c, TYPE_MISMATCH, item->value->span, tile_scalar_name(scalar), tile_meaning_words(c, &value));
    }
    if (value.kind == TILE_MEANING_VALUE) tile_make_constant(c, &value);
    bool known = (tile_is_literal(&value) && value.kind != TILE_MEANING_CHOICE) || value.constant;
    int64_t number = 0;
    if (value.kind == TILE_MEANING_VALUE && value.sum) known = tile_sum_known(&c->sums, value.sum, &number);
    if (!known && !tile_is_error(&value))
        value = tile_fail(c, NOT_CONSTANT, item->value->span, "the value of a `const`");
    if (value.kind == TILE_MEANING_VALUE && value.sum) value = tile_sum_meaning(tile_sum_integer(&c->sums, number));
    c->depth--;
    c->frame = caller;
    return value;
}

/* Each constant is evaluated once: otherwise a chain of constants that use another one twice takes exponential time. */
static TileMeaning constant_meaning(TileChecker *c, const TileItem *item, const TileAst *ast, TileSpan span) {
    for (size_t i = 0; i < c->constants.count; i++)
        if (c->constants.items[i].item == item) return c->constants.items[i].value;
    TileMeaning value = evaluate_constant(c, item, ast, span);
    value.value = NULL; /* an op, where it was evaluated */
    tile_list_push(c->arena, &c->constants, (TileConstant){item, value});
    return value;
}

bool tile_is_constant(TileChecker *c, const TileAst *ast, const char *name) {
    const TileAst *where;
    const TileItem *item = tile_find_item(ast, name, true, &where);
    if (!item || item->kind != TILE_ITEM_CONST || where == ast) return item && item->kind == TILE_ITEM_CONST;
    TileMeaning value = constant_meaning(c, item, where, item->name_span);
    return value.kind == TILE_MEANING_INTEGER || value.sum || tile_is_error(&value);
}

void tile_propose_visible(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span) {
    if (!d) return; /* one of several candidates, whose errors are not shown */
    TileNearest nearest = tile_nearest(name);
    for (size_t i = c->bounds.count; i-- > c->frame->scope_base;) tile_nearest_try(&nearest, c->bounds.items[i]->name);
    for (size_t i = 0; i < c->frame->ast->items.count; i++)
        tile_nearest_try(&nearest, c->frame->ast->items.items[i]->name);
    tile_nearest_builtin(&nearest);
    tile_propose_nearest(c, d, span, &nearest);
}

static bool mentions(const TileExpr *expr, const char *name) {
    if (!expr) return false;
    return (expr->kind == TILE_EXPR_NAME && expr->name == name) || mentions(expr->a, name) || mentions(expr->b, name);
}

/* A name that only occurs in expressions of dimensions is bound nowhere. The message does not depend on the
 * instance. */
static void note_dimension(TileChecker *c, TileDiagnostic *d, const char *name) {
    const TileItem *item = c->frame->item;
    for (size_t i = 0; item->kind == TILE_ITEM_KERNEL && i < item->params.count; i++) {
        const TileTypeExpr *type = item->params.items[i].type;
        for (size_t k = 0; type && k < type->extents.count; k++) {
            if (!mentions(type->extents.items[k], name)) continue;
            bool solved = !tile_is_static(item, name);
            tile_diagnostic_note(c->diagnostics, d, type->extents.items[k]->span,
                                 solved ? "a dimension gets its name where that stands alone, as in `[%s]`, or is the "
                                          "only one that is not known yet, with a number as its factor, as in `[2 * %s + 1]`"
                                        : "a static dimension gets its value where its name stands alone, as in `[%s]`",
                                 name, name);
            tile_scope_push(c, (TileBound){.name = name, .meaning = tile_error_meaning(), .fixed = true});
            return;
        }
    }
}

/* A name that is bound only by `tune` clauses of another target. */
static void note_other_target(TileChecker *c, TileDiagnostic *d, const char *name) {
    const TileItem *item = c->frame->item;
    for (size_t i = 0; item->kind == TILE_ITEM_KERNEL && i < item->tunes.count; i++) {
        const TileTune *tune = &item->tunes.items[i];
        for (size_t k = 0; k < tune->names.count; k++) {
            if (tune->names.items[k].name != name || !tune->target) continue;
            const char *other = strcmp(tune->target, "gpu") == 0 ? "cpu" : "gpu";
            tile_diagnostic_note(c->diagnostics, d, tune->names.items[k].span,
                                 "it has candidates for one target only; `tune %s %s in {..}` gives them for the other",
                                 other, name);
            return;
        }
    }
}

/* A `tune` clause is evaluated before there are arguments. */
static bool note_in_tune(TileChecker *c, TileDiagnostic *d, TileSpan span) {
    const TileItem *item = c->frame->item;
    for (size_t i = 0; item->kind == TILE_ITEM_KERNEL && i < item->tunes.count; i++) {
        TileSpan clause = item->tunes.items[i].span;
        if (clause.file != span.file || span.begin < clause.begin || span.end > clause.end) continue;
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "a `tune` clause is made of numbers, constants, constant generics and names of `tune` clauses; no dimension is known there");
        return true;
    }
    return false;
}

static TileMeaning unknown_name(TileChecker *c, const char *name, TileSpan span) {
    if (tile_format_find(name)) return tile_fail_format(c, span, name);
    if (c->frame->ast->lost) return tile_error_meaning();
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, span, name);
    if (!note_in_tune(c, d, span)) note_dimension(c, d, name);
    note_other_target(c, d, name);
    if (!tile_propose_foreign(c, d, name, span)) tile_propose_visible(c, d, name, span);
    tile_report(c, d);
    return tile_error_meaning();
}

static bool is_known(TileChecker *c, const char *name) {
    const TileAst *where;
    TileScalar scalar;
    return tile_scope_find(c, name) || tile_find_item(c->frame->ast, name, true, &where) || tile_find_builtin(name) ||
           tile_scalar_find(name, strlen(name), &scalar) || tile_find_module(c->frame->ast, name) ||
           tile_format_find(name);
}

bool tile_check_foreign_member(TileChecker *c, const TileExpr *field) {
    const TileExpr *module = field->a;
    if (module->kind == TILE_EXPR_FIELD) module = module->a; /* tl.math.exp */
    if (module->kind != TILE_EXPR_NAME || !tile_is_foreign_module(module->name) || is_known(c, module->name))
        return false;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, module->span, module->name);
    TileScalar scalar;
    bool own = tile_find_builtin(field->name) || tile_scalar_find(field->name, strlen(field->name), &scalar);
    if (own) tile_diagnostic_edit(c->diagnostics, d, field->span, "%s", field->name);
    if (!own) tile_propose_foreign(c, d, field->name, field->span);
    tile_report(c, d);
    return true;
}

bool tile_check_undeclared(TileChecker *c, const TileExpr *target) {
    if (target->kind != TILE_EXPR_NAME || c->frame->ast->lost || is_known(c, target->name)) return false;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, target->span, target->name);
    tile_propose_visible(c, d, target->name, target->span);
    if (d && !d->has_edit) {
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`let` binds a name, `var` one that is assigned again");
        tile_diagnostic_edit(c->diagnostics, d, target->span, "var %s", target->name);
    }
    tile_report(c, d);
    tile_scope_push(c, (TileBound){.name = target->name, .meaning = tile_error_meaning(), .span = target->span});
    return true;
}

/* The meanings of a name in an expression. A kernel is not one: a function, type or built-in of the same name is
 * meant. */
static const TileItem *find_used(const TileChecker *c, const char *name, const TileAst **where) {
    const TileItem *item = tile_find_item(c->frame->ast, name, true, where);
    if (!item || item->kind != TILE_ITEM_KERNEL || item->broken) return item;
    for (size_t i = 0; i < c->frame->ast->imports.count; i++) {
        const TileAst *module = c->frame->ast->imports.items[i];
        const TileItem *other = module ? tile_find_item(module, name, false, where) : NULL;
        if (other && other->kind != TILE_ITEM_KERNEL) return other;
    }
    return NULL;
}

/* Names are interned, and most calls are of a few functions. */
static const TileBuiltin *builtin_of(TileChecker *c, const char *name) {
    const TileBuiltin *builtin = tile_map_get(&c->builtins, name);
    if (!builtin && (builtin = tile_find_builtin(name))) tile_map_set(&c->builtins, name, (void *)builtin);
    return builtin;
}

TileMeaning tile_scope_meaning(TileChecker *c, const char *name, TileSpan span) {
    TileBound *bound = tile_scope_find(c, name);
    if (bound) {
        const TileMeaning *m = bound->var ? &bound->var->now : &bound->meaning;
        c->met |= (uint8_t)tile_meaning_open(m);
        return *m;
    }
    const TileAst *ast = NULL;
    const TileItem *item = find_used(c, name, &ast);
    if (item && item->broken) return tile_error_meaning();
    if (item && ast != c->frame->ast && tile_is_ambiguous(c, name)) {
        TileCandidate found[TILE_MAX_CANDIDATES];
        tile_fail_candidates(c, name, span, found, tile_find_candidates(c, name, found), NULL);
        return tile_error_meaning();
    }
    if (item && item->kind == TILE_ITEM_CONST) return constant_meaning(c, item, ast, span);
    if (item) return (TileMeaning){.kind = TILE_MEANING_FUNCTION, .item = item, .ast = ast};
    TileScalar scalar;
    if (tile_scalar_find(name, __builtin_strlen(name), &scalar))
        return (TileMeaning){.kind = TILE_MEANING_TYPE, .scalar = scalar};
    const TileBuiltin *builtin = builtin_of(c, name);
    if (builtin) return (TileMeaning){.kind = TILE_MEANING_BUILTIN, .builtin = builtin};
    const TileAst *module = tile_find_module(c->frame->ast, name);
    if (module) return (TileMeaning){.kind = TILE_MEANING_MODULE, .ast = module};
    item = tile_find_item(c->frame->ast, name, true, &ast);
    if (item) return (TileMeaning){.kind = TILE_MEANING_FUNCTION, .item = item, .ast = ast};
    return unknown_name(c, name, span);
}

/* ---- variables ---- */

static bool report_short_lived(TileChecker *c, TileVar *var, const TileValidEntry *entry, TileSpan span) {
    uint32_t errors = c->diagnostics->error_count;
    tile_about_atom(c, entry->atom);
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_VAR, span, var->name, tile_atom_words(c, entry->atom));
    tile_diagnostic_note(c->diagnostics, d, var->span, "`%s` lives longer: it is declared here", var->name);
    tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
    tile_note_lacks(c, d, entry->atom);
    if (entry->where.file)
        tile_diagnostic_edit(c->diagnostics, d, entry->where, "(%s else %s)", tile_span_text(c, entry->where),
                             c->fill_word);
    tile_report(c, d);
    return c->diagnostics->error_count != errors;
}

void tile_var_assign(TileChecker *c, TileVar *var, TileMeaning value, TileSpan span) {
    const TileValidity *had = var->now.valid;
    const TileValidity *joined = had;
    if (tile_valid_missing(value.valid, had)) value.valid = tile_valid_settled(c, value.valid);
    for (unsigned i = 0; value.valid && i < value.valid->count; i++) {
        const TileValidEntry *entry = &value.valid->entries[i];
        TileValidity *one = tile_arena_alloc(c->arena, sizeof(TileValidity) + sizeof(TileValidEntry));
        one->count = 1;
        one->entries[0] = *entry;
        if (!tile_valid_missing(one, joined)) continue;
        if (entry->atom->birth > var->birth) {
            if (report_short_lived(c, var, entry, span)) break;
            continue;
        }
        joined = tile_valid_union(c, joined, one);
    }
    var->now = value;
    var->now.valid = joined;
    tile_open_meaning(c, &var->now, tile_doubt(c) | (c->open_loops ? TILE_OPEN_NUMBER : 0));
}
