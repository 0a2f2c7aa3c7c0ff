/* Edits that several rules propose. Each finds the location in the text; if the text is not of a form that it knows, it
 * proposes nothing. */
#include <string.h>

#include "parser/check/meaning.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/validity.h"

TileNearest tile_nearest(const char *name) {
    size_t length = strlen(name);
    return (TileNearest){.name = name, .distance = length > 3 ? 3 : length > 1 ? 2 : 1};
}

void tile_nearest_try(TileNearest *nearest, const char *candidate) {
    if (!candidate || strcmp(candidate, nearest->name) == 0) return;
    unsigned far = tile_edit_distance(nearest->name, candidate);
    if (far < nearest->distance) nearest->best = candidate, nearest->distance = far;
}

void tile_propose_nearest(TileChecker *c, TileDiagnostic *d, TileSpan span, const TileNearest *nearest) {
    if (nearest->best) tile_diagnostic_edit(c->diagnostics, d, span, "%s", nearest->best);
}

void tile_propose_static(TileChecker *c, TileDiagnostic *d, const char *name) {
    const TileItem *kernel = c->frame->item;
    if (!kernel || kernel->kind != TILE_ITEM_KERNEL) return;
    TileBound *bound = tile_scope_find(c, tile_intern_string(c->names, name));
    if (!bound || !bound->fixed || bound->meaning.kind != TILE_MEANING_VALUE) return;
    TileSpan end = {kernel->signature.file, kernel->signature.end, kernel->signature.end};
    tile_diagnostic_edit(c->diagnostics, d, end, " static %s", name);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void tile_propose_inout(TileChecker *c, TileDiagnostic *d, TileSpan name, const char *word) {
    const TileSourceFile *file = &c->diagnostics->files.items[name.file];
    size_t at = name.end, length = strlen(word);
    while (at < file->length && is_blank(file->text[at])) at++;
    if (at >= file->length || file->text[at++] != ':') return;
    while (at < file->length && is_blank(file->text[at])) at++;
    bool found = at + length < file->length && memcmp(file->text + at, word, length) == 0;
    if (!found || is_word(file->text[at + length])) return;
    TileSpan span = {name.file, (uint32_t)at, (uint32_t)(at + length)};
    tile_diagnostic_edit(c->diagnostics, d, span, "inout");
}

static bool names(const TileExpr *expr, const char *name) {
    if (!expr) return false;
    if (expr->kind == TILE_EXPR_NAME) return expr->name == name;
    bool operator= expr->kind == TILE_EXPR_BINARY || expr->kind == TILE_EXPR_UNARY;
    return operator&&(names(expr->a, name) || names(expr->b, name));
}

/* The first dimension or parameter in an expression; a name alone is itself. */
static const TileExpr *fixed_name(TileChecker *c, const TileExpr *expr) {
    if (!expr || expr->kind == TILE_EXPR_NAME) return expr;
    if (expr->kind != TILE_EXPR_BINARY && expr->kind != TILE_EXPR_UNARY) return NULL;
    const TileExpr *sides[] = {fixed_name(c, expr->a), fixed_name(c, expr->b)};
    for (int i = 0; i < 2; i++) {
        const TileBound *bound = sides[i] ? tile_scope_find(c, sides[i]->name) : NULL;
        int64_t known;
        if (bound && bound->fixed && bound->meaning.sum && !tile_sum_known(&c->sums, bound->meaning.sum, &known))
            return sides[i];
    }
    return NULL;
}

void tile_propose_constant(TileChecker *c, TileDiagnostic *d, const TileExpr *expr) {
    for (const TileLoopFrame *loop = c->frame->loop; loop; loop = loop->parent) {
        const TileStatement *statement = loop->statement;
        if (statement->kind != TILE_STATEMENT_FOR || statement->is_static) continue;
        const char *name = statement->names.items[0].name;
        if (!names(expr, name)) continue;
        tile_diagnostic_note(c->diagnostics, d, statement->names.items[0].span,
                             "`%s` is known only at run time; `static for` unrolls the loop, so that it is a constant",
                             name);
        TileSpan word = {statement->span.file, statement->span.begin, statement->span.begin + 3};
        tile_diagnostic_edit(c->diagnostics, d, word, "static for");
        return;
    }
    expr = fixed_name(c, expr);
    if (!expr) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "a dimension becomes constant by the clause `static %s`",
                         expr->name);
    tile_propose_static(c, d, expr->name);
}

void tile_propose_var(TileChecker *c, TileDiagnostic *d, TileSpan name) {
    const char *text = c->diagnostics->files.items[name.file].text;
    uint32_t end = name.begin;
    while (end > 0 && is_blank(text[end - 1])) end--;
    if (end < 3 || memcmp(text + end - 3, "let", 3) != 0 || (end > 3 && is_word(text[end - 4]))) return;
    tile_diagnostic_edit(c->diagnostics, d, (TileSpan){name.file, end - 3, end}, "var");
}

const char *tile_bare_text(TileChecker *c, TileSpan span) {
    char *text = tile_arena_string(c->arena, tile_span_text(c, span), span.end - span.begin);
    size_t length = strlen(text);
    int open = 0;
    if (length < 2 || text[0] != '(') return text;
    for (size_t i = 0; i + 1 < length; i++) {
        open += (text[i] == '(') - (text[i] == ')');
        if (open == 0) return text;
    }
    text[length - 1] = 0;
    return text + 1;
}

/* Does the expression bind tighter than any operator that may be put after it? */
static bool is_postfix(const TileExpr *expr) {
    return expr->parenthesised || (expr->kind != TILE_EXPR_BINARY && expr->kind != TILE_EXPR_UNARY &&
                                   expr->kind != TILE_EXPR_IF && expr->kind != TILE_EXPR_RUN);
}

const char *tile_operand_text(TileChecker *c, const TileExpr *expr) {
    const char *text = tile_span_text(c, expr->span);
    return is_postfix(expr) ? text : tile_arena_format(c->arena, "(%s)", text);
}

/* `max(x, axis = 1)` beside x: the axis that was reduced lacks. */
static bool propose_keep(TileChecker *c, TileDiagnostic *d, const TileMeaning *reduced, const TileExpr *call,
                         const TileMeaning *whole) {
    if (!call || call->kind != TILE_EXPR_CALL || call->a->kind != TILE_EXPR_NAME || reduced->rank + 1 != whole->rank) return false;
    static const char *const names[] = {"sum", "mean", "max", "min", "prod", "all", "any", "reduce"};
    bool reduces = false, axis = false, keep = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) reduces = reduces || strcmp(call->a->name, names[i]) == 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        const char *name = call->arguments.items[i].name;
        axis = axis || (name && strcmp(name, "axis") == 0);
        keep = keep || (name && strcmp(name, "keep") == 0);
    }
    if (!reduces || !axis || keep) return false;
    TileSpan end = {call->span.file, call->span.end - 1, call->span.end};
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`keep = true` leaves the axis that is reduced, with the extent 1");
    tile_diagnostic_edit(c->diagnostics, d, end, ", keep = true)");
    return true;
}

void tile_propose_axis(TileChecker *c, TileDiagnostic *d, const TileMeaning *vector, const TileExpr *expr,
                       const TileMeaning *matrix) {
    if (propose_keep(c, d, vector, expr, matrix)) return;
    if (!expr || vector->rank != 1 || matrix->rank != 2) return;
    bool row = tile_extents_agree(vector->extent[0], matrix->extent[1]);
    bool column = tile_extents_agree(vector->extent[0], matrix->extent[0]);
    if (row && column) { /* an extent of 1 agrees with any */
        row = vector->extent[0] == matrix->extent[1];
        column = vector->extent[0] == matrix->extent[0];
    }
    if (row && column) { /* along which axis the matrix is invalid where the vector is */
        const int8_t across[] = {1}, down[] = {0};
        row = vector->valid && !tile_valid_missing(tile_valid_map(c, vector->valid, across), matrix->valid);
        column = vector->valid && !tile_valid_missing(tile_valid_map(c, vector->valid, down), matrix->valid);
    }
    if (row == column) return;
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s[%s]", tile_operand_text(c, expr), row ? "_, :" : ":, _");
}

static bool holds(TileSpan outer, TileSpan inner) {
    return outer.file == inner.file && outer.begin <= inner.begin && outer.end >= inner.end;
}

TileSpan tile_filled_place(const TileExpr *expr, TileSpan where) {
    if (!expr || !holds(expr->span, where)) return where;
    if (expr->kind == TILE_EXPR_INDEX) {
        for (size_t i = 0; i < expr->items.count; i++)
            if (holds(expr->items.items[i]->span, where)) return expr->span;
    }
    if (expr->kind == TILE_EXPR_CALL) {
        for (size_t i = 0; i < expr->arguments.count; i++)
            if (holds(expr->arguments.items[i].value->span, where))
                return tile_filled_place(expr->arguments.items[i].value, where);
    }
    bool left = expr->a && holds(expr->a->span, where);
    if (expr->kind == TILE_EXPR_BINARY || expr->kind == TILE_EXPR_UNARY || expr->kind == TILE_EXPR_FIELD ||
        expr->kind == TILE_EXPR_INDEX)
        return tile_filled_place(left ? expr->a : expr->b, where);
    return where;
}

/* The number that a variable, or a tile of `full`, begins with, where it is written as one; else the span is empty. */
static TileSpan start_number(TileChecker *c, const TileVar *var, bool filled) {
    TileSpan none = {0};
    if (!var || var->span.file == 0) return none;
    TileSpan at = var->span;
    const TileSourceFile *file = &c->diagnostics->files.items[at.file];
    const char *text = file->text;
    size_t begin = at.end;
    while (begin < file->length && (text[begin] == ' ' || text[begin] == '=')) begin++;
    if (filled && begin + 5 < file->length && memcmp(text + begin, "full[", 5) == 0) {
        while (begin < file->length && text[begin] != '(' && text[begin] != '\n') begin++;
        begin += begin < file->length;
    }
    size_t end = begin;
    while (end < file->length && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) end++;
    bool number = end > begin && end < file->length && strchr(") \n;", text[end]);
    return number ? (TileSpan){at.file, (uint32_t)begin, (uint32_t)end} : none;
}

bool tile_propose_start(TileChecker *c, TileDiagnostic *d, const TileExpr *name, TileScalar scalar) {
    const TileBound *bound = name && name->kind == TILE_EXPR_NAME ? tile_scope_find(c, name->name) : NULL;
    TileSpan place = start_number(c, bound ? bound->var : NULL, true);
    if (!place.end) return false;
    tile_diagnostic_note(c->diagnostics, d, bound->var->span,
                         "`%s` has the type of its first value, a number that nothing else gives one", name->name);
    tile_diagnostic_edit(c->diagnostics, d, place, "%s(%s)", tile_scalar_name(scalar), tile_span_text(c, place));
    return true;
}

void tile_propose_start_tile(TileChecker *c, TileDiagnostic *d, const TileVar *var, const TileMeaning *value) {
    TileSpan place = start_number(c, var, false);
    TileText extents = {.arena = c->arena};
    for (unsigned i = 0; i < value->rank; i++)
        tile_text_format(&extents, "%s%s", i ? ", " : "", tile_sum_words(c, value->extent[i]));
    if (place.end)
        tile_diagnostic_edit(c->diagnostics, d, place, "full[%s](%s)", tile_text_get(&extents), tile_span_text(c, place));
}

TileMeaning tile_fail_one_axis(TileChecker *c, const TileExpr *call, const char *name) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ONE_AXIS, call->span, name);
    bool said = false;
    for (size_t i = 0; i < call->arguments.count; i++)
        said = said || (call->arguments.items[i].name && strcmp(call->arguments.items[i].name, "axis") == 0);
    if (!said) {
        TileSpan end = {call->span.file, call->span.end - 1, call->span.end};
        tile_diagnostic_edit(c->diagnostics, d, end, ", axis = -1)");
    }
    tile_report(c, d);
    return tile_error_meaning();
}

void tile_propose_whole(TileChecker *c, TileDiagnostic *d, const TileTensor *tensor, TileSpan name, bool stored) {
    const char *text = tile_span_text(c, name);
    if (stored)
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "an index says where it is stored: `%s[..] = ..`", text);
    else
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "an index reads it: one entry for each dimension");
    TileText index = {.arena = c->arena};
    int64_t extent;
    for (unsigned i = tensor->own; i < tensor->rank; i++) {
        if (!tile_sum_known(&c->sums, tensor->dims[i], &extent) || extent < 1) return;
        tile_text_add(&index, i > tensor->own ? ", :" : ":");
    }
    bool tile = tensor->rank - tensor->own <= TILE_MAX_TILE_RANK;
    if (tile) tile_diagnostic_edit(c->diagnostics, d, name, "%s[%s]", text, tile_text_get(&index));
}

TileMeaning tile_fail_no_kernel(TileChecker *c, const TileAst *ast, TileSpan span, const char *name) {
    if (ast->lost || ast->lost_kernel) return tile_error_meaning();
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NO_KERNEL, span, name);
    if (!d) return tile_error_meaning();
    TileNearest nearest = tile_nearest(name);
    for (size_t i = 0; i < ast->items.count; i++)
        if (ast->items.items[i]->kind == TILE_ITEM_KERNEL) tile_nearest_try(&nearest, ast->items.items[i]->name);
    tile_propose_nearest(c, d, span, &nearest);
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_fail_not_bool(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_BOOL, expr->span, tile_meaning_words(c, m));
    bool number = m->kind == TILE_MEANING_VALUE || tile_is_literal(m);
    if (number) tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s != 0", tile_operand_text(c, expr));
    tile_report(c, d);
    return tile_error_meaning();
}

void tile_note_parts(TileChecker *c, TileDiagnostic *d) {
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "each of its parts has a name of its own: `let (a, b) = ..`");
}
