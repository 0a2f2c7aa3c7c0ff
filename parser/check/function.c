/* Functions as values: partial application of generics, conversion from and to text, and comparison with the type that
 * a generic declares. */
#include "parser/check/builtin.h"
#include "parser/check/expression.h"
#include "parser/check/function.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/report.h"
#include "parser/check/type.h"

#include <string.h>

#include "lang/scalar/scalar.h"
#include "parser/syntax/parse.h"
#include "parser/syntax/syntax.h"

/* ---- partial application ---- */

static bool is_function(const TileMeaning *m) {
    return (m->kind == TILE_MEANING_FUNCTION && m->item->kind == TILE_ITEM_FN) || m->kind == TILE_MEANING_BUILTIN;
}

static TileMeaning check_given(TileChecker *c, const TileGeneric *generic, const TileExpr *expr) {
    TileMeaning m = tile_check_expr(c, expr);
    if (tile_is_error(&m)) return m;
    const char *words = tile_meaning_words(c, &m);
    switch ((TileGenericKind)generic->kind) {
    case TILE_GENERIC_TYPE: return m.kind == TILE_MEANING_TYPE ? m : tile_fail(c, NOT_TYPE, expr->span, words);
    case TILE_GENERIC_FN: return is_function(&m) ? m : tile_fail(c, NOT_FUNCTION, expr->span, words);
    case TILE_GENERIC_CONST: break;
    }
    bool value = m.kind == TILE_MEANING_VALUE || tile_is_literal(&m);
    return value ? m : tile_fail(c, NOT_VALUE, expr->span, words);
}

TileMeaning tile_check_filled(TileChecker *c, const TileExpr *expr, const TileMeaning *function) {
    const TileItem *item = function->item;
    uint32_t more = (uint32_t)expr->items.count;
    if (item->kind != TILE_ITEM_FN) return tile_fail(c, NOT_INDEXABLE, expr->a->span, tile_meaning_words(c, function));
    if (function->count + more > item->generics.count) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_GENERIC_COUNT, expr->span, item->name,
                                          tile_count_words(c, item->generics.count, "generic", "generics"),
                                          function->count + more, function->count + more == 1 ? "is" : "are");
        tile_diagnostic_note(c->diagnostics, d, item->name_span, "`%s` is declared here", item->name);
        tile_report(c, d);
        return tile_error_meaning();
    }
    TileMeaning filled = *function;
    TileMeaning *given = TILE_NEW_ARRAY(c->arena, TileMeaning, function->count + more);
    if (function->count) memcpy(given, function->given, function->count * sizeof *given);
    for (uint32_t i = 0; i < more; i++) {
        const TileGeneric *generic = &item->generics.items[function->count + i];
        given[function->count + i] = check_given(c, generic, expr->items.items[i]);
        if (tile_is_error(&given[function->count + i])) return tile_error_meaning();
    }
    filled.given = given;
    filled.count += more;
    return filled;
}

/* ---- from text ---- */

/* The text is not in a file: it is added as a file, for locations in messages. The tree, which other threads may be reading,
 * stays as it is. */
static const TileExpr *parse_text(TileChecker *c, const char *setting, const char *text) {
    size_t count = c->diagnostics->files.count;
    TileExpr *expr = NULL;
    TileAst own = {.arena = c->arena, .names = c->names};
    if (tile_parse_value(c->diagnostics, &own, setting, text, &expr) != TILE_OK) return NULL;
    uint32_t *numbers = TILE_NEW_ARRAY(c->arena, uint32_t, c->diagnostics->files.count);
    memcpy(numbers, c->file_numbers, count * sizeof *numbers);
    c->file_numbers = numbers;
    return expr;
}

TileMeaning tile_function_from_text(TileChecker *c, const char *setting, const char *text, TileSpan span) {
    if (!strpbrk(text, ".[")) return tile_scope_meaning(c, tile_intern_string(c->names, text), span);
    const TileExpr *expr = parse_text(c, setting, text);
    return expr ? tile_check_expr(c, expr) : tile_error_meaning();
}

const TileItem *tile_find_function(const TileAst *ast, const char *text) {
    size_t length = strcspn(text, "[");
    while (length && text[length - 1] == ' ') length--;
    const char *dot = memchr(text, '.', length), *name = dot ? dot + 1 : text;
    size_t next = 0;
    length -= (size_t)(name - text);
    if (!dot) {
        const TileItem *item = tile_map_get(&ast->named, tile_interned(ast->names, name, length));
        if (item && item->kind == TILE_ITEM_FN) return item;
    }
    for (size_t i = 0; i < ast->items.count && next < ast->imports.count; i++) {
        const TileItem *import = ast->items.items[i];
        if (import->kind != TILE_ITEM_IMPORT) continue;
        const TileAst *module = ast->imports.items[next++];
        size_t prefix = dot ? (size_t)(dot - text) : 0;
        bool meant = !dot || (strlen(import->name) == prefix && memcmp(import->name, text, prefix) == 0);
        const TileItem *found = module && meant ? tile_find_function(module, name) : NULL;
        if (found) return found;
    }
    return NULL;
}

/* ---- as text ---- */

static bool print_constant(TileChecker *c, TileText *text, const TileMeaning *m) {
    uint64_t bits;
    TileScalar scalar = (TileScalar)m->scalar;
    if (!tile_constant_bits(c, m, scalar, &bits)) return false;
    if (scalar == TILE_BOOL)
        tile_text_add(text, bits ? "true" : "false");
    else if (tile_scalar_is_float(scalar))
        tile_text_format(text, "%.17g", tile_scalar_to_double(scalar, bits));
    else
        tile_text_format(text, "%lld", (long long)tile_scalar_to_integer(scalar, bits));
    return true;
}

bool tile_function_print(TileChecker *c, TileText *text, const TileMeaning *m) {
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_TYPE: tile_text_add(text, tile_scalar_name((TileScalar)m->scalar)); return true;
    case TILE_MEANING_BUILTIN: tile_text_add(text, m->builtin->name); return true;
    case TILE_MEANING_INTEGER: tile_text_format(text, "%lld", (long long)m->integer); return true;
    case TILE_MEANING_NUMBER: tile_text_format(text, "%.17g", m->number); return true;
    case TILE_MEANING_VALUE: return print_constant(c, text, m);
    case TILE_MEANING_FUNCTION: break;
    default: return false;
    }
    tile_text_add(text, m->item->name);
    bool known = true;
    for (uint32_t i = 0; i < m->count; i++) {
        tile_text_add(text, i ? ", " : "[");
        known = tile_function_print(c, text, &m->given[i]) && known;
    }
    if (m->count) tile_text_add(text, "]");
    return known;
}

/* ---- comparison of types ---- */

/* A function and the type that a generic declares. For each type generic of the function, the set of types that are
 * still possible. */
typedef struct Match {
    TileChecker *c;
    const TileMeaning *function;
    uint32_t *types;
} Match;

static void read_generics(Match *match) {
    const TileItem *item = match->function->item;
    match->types = TILE_NEW_ARRAY(match->c->arena, uint32_t, item->generics.count + 1);
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileGeneric *generic = &item->generics.items[i];
        for (size_t k = 0; k < generic->classes.count; k++)
            tile_class_types(generic->classes.items[k].name, &match->types[i]);
        bool given = i < match->function->count && match->function->given[i].kind == TILE_MEANING_TYPE;
        if (given) match->types[i] &= 1u << match->function->given[i].scalar;
    }
}

/* May the function's element type be the declared one? Unknown names are reported elsewhere. */
static bool match_scalar(Match *match, const char *declared, const char *own) {
    const TileItem *item = match->function->item;
    TileScalar wanted, scalar;
    if (!tile_find_type(match->c, declared, &wanted)) return true;
    for (size_t i = 0; i < item->generics.count; i++) {
        if (item->generics.items[i].name != own || item->generics.items[i].kind != TILE_GENERIC_TYPE) continue;
        match->types[i] &= 1u << wanted;
        return match->types[i] != 0;
    }
    return !tile_scalar_find(own, strlen(own), &scalar) || scalar == wanted;
}

/* A scalar parameter accepts tiles, too. */
static bool match_parameter(Match *match, const TileTypeExpr *declared, const TileTypeExpr *own) {
    if (!own || own->kind != declared->kind || (own->access != TILE_WORD_NONE) != (declared->access != TILE_WORD_NONE))
        return false;
    if (own->kind != TILE_TYPE_EXPR_NAME) return true;
    bool lifts = !own->has_extents && !own->access;
    if (!lifts && own->extents.count != declared->extents.count) return false;
    return match_scalar(match, declared->name, own->name);
}

static bool match_result(Match *match, const TileTypeExpr *declared, const TileTypeExpr *own) {
    if (!declared || !own) return !declared == !own;
    if (declared->kind != own->kind) return false;
    if (declared->kind == TILE_TYPE_EXPR_TUPLE) {
        bool fits = declared->items.count == own->items.count;
        for (size_t i = 0; fits && i < own->items.count; i++)
            fits = match_result(match, declared->items.items[i], own->items.items[i]);
        return fits;
    }
    if (own->has_extents && own->extents.count != declared->extents.count) return false;
    return declared->kind != TILE_TYPE_EXPR_NAME || match_scalar(match, declared->name, own->name);
}

static const char *why_not_item(TileChecker *c, const TileTypeExpr *type, const TileMeaning *function) {
    const TileItem *item = function->item;
    Match match = {.c = c, .function = function};
    size_t named = type->items.count, count = item->params.count;
    if (count < named || (count > named && !type->open))
        return tile_arena_format(c->arena, "takes %s", tile_count_words(c, count, "argument", "arguments"));
    read_generics(&match);
    for (size_t i = 0; i < named; i++) {
        const TileParam *param = &item->params.items[i];
        if (!match_parameter(&match, type->items.items[i], param->type))
            return tile_arena_format(c->arena, "has the parameter `%s: %s`", param->name,
                                     param->type ? tile_span_text(c, param->type->span) : "...");
    }
    if (match_result(&match, type->result, item->type)) return NULL;
    return tile_arena_format(c->arena, "returns %s", item->type ? tile_span_text(c, item->type->span) : "nothing");
}

static const char *why_not_builtin(TileChecker *c, const TileTypeExpr *type, const TileBuiltin *builtin) {
    if (builtin->op == TILE_OP_COUNT || !builtin->arity || builtin->arity == type->items.count) return NULL;
    return tile_arena_format(c->arena, "takes %s", tile_count_words(c, builtin->arity, "argument", "arguments"));
}

bool tile_check_function_type(TileChecker *c, const TileGeneric *generic, const TileMeaning *m, TileSpan span) {
    if (tile_is_error(m)) return false;
    if (!is_function(m)) return tile_fail(c, NOT_FUNCTION, span, tile_meaning_words(c, m)), false;
    bool item = m->kind == TILE_MEANING_FUNCTION;
    const char *why = item ? why_not_item(c, generic->type, m) : why_not_builtin(c, generic->type, m->builtin);
    if (!why) return true;
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_FUNCTION_TYPE, span, generic->name,
                      tile_span_text(c, generic->type->span), item ? m->item->name : m->builtin->name, why);
    bool there = generic->value && memcmp(&generic->value->span, &span, sizeof span) == 0;
    if (!there && memcmp(&generic->span, &span, sizeof span) != 0)
        tile_diagnostic_note(c->diagnostics, d, generic->span, "`%s` is declared here", generic->name);
    if (item) tile_diagnostic_note(c->diagnostics, d, m->item->name_span, "`%s` is declared here", m->item->name);
    tile_report(c, d);
    return false;
}
