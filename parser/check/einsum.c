/* einsum("bij,bjk->bik", a, b): a product of two tiles whose axes have letters. It is `dot` between tiles in the order
 * [batch.., rows, contracted] and [batch.., contracted, columns], where rows, columns and contracted may be several axes, or
 * none, that are made one. */
#include <string.h>

#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/einsum.h"
#include "parser/check/emit.h"
#include "parser/check/operand.h"
#include "parser/check/reduce.h"
#include "parser/check/report.h"
#include "parser/check/shape.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

/* Letters, each once. */
typedef struct Letters {
    char at[TILE_MAX_TILE_RANK + 1];
    unsigned count;
} Letters;

typedef struct Einsum {
    Letters left, right, result;          /* as written */
    Letters batch, rows, columns, summed; /* in the result's order, `summed` in the left operand's */
    TileSpan span;                        /* of the text */
} Einsum;

static bool has(const Letters *letters, char letter) { return memchr(letters->at, letter, letters->count) != NULL; }

static void add(Letters *letters, char letter) { letters->at[letters->count++] = letter; }

/* ---- the text ---- */

static bool read_letters(const char **text, Letters *letters) {
    for (; (**text >= 'a' && **text <= 'z') || (**text >= 'A' && **text <= 'Z'); ++*text) {
        if (has(letters, **text) || letters->count == TILE_MAX_TILE_RANK) return false;
        add(letters, **text);
    }
    return true;
}

static bool read_text(const char *text, Einsum *e) {
    if (!read_letters(&text, &e->left) || *text++ != ',') return false;
    while (*text == ' ') text++;
    if (!read_letters(&text, &e->right)) return false;
    while (*text == ' ') text++;
    if (strncmp(text, "->", 2) != 0) return false;
    text += 2;
    while (*text == ' ') text++;
    return read_letters(&text, &e->result) && !*text;
}

/* `b i, i j -> b j`: axes have one letter each, so no blank is needed between them. */
static const char *without_blanks(TileArena *arena, const char *text) {
    TileText close = {.arena = arena};
    for (; *text; text++)
        if (*text != ' ') tile_text_add_char(&close, *text);
    return tile_text_get(&close);
}

/* A text that is not of the form: without `->`, as NumPy allows it, the letters that stand once are the result's. */
static TileMeaning fail_text(TileChecker *c, const TileExpr *text, const TileBuiltin *builtin, const Einsum *e) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_ARGUMENT, text->span, builtin->name,
                                      "a text such as \"bij,bjk->bik\" first", tile_span_text(c, text->span));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "each axis of an operand has a letter, which no other of it has");
    const char *close = text->kind == TILE_EXPR_STRING ? without_blanks(c->arena, text->name) : NULL;
    Einsum other = {0};
    if (close && read_text(close, &other)) {
        tile_diagnostic_edit(c->diagnostics, d, text->span, "\"%s\"", close);
        tile_report(c, d);
        return tile_error_meaning();
    }
    if (text->kind == TILE_EXPR_STRING && e->right.count && !strstr(text->name, "->") && !strchr(text->name, '.')) {
        TileText letters = {.arena = c->arena};
        for (char letter = 'A'; letter <= 'z'; letter++)
            if (has(&e->left, letter) != has(&e->right, letter)) tile_text_add_char(&letters, letter);
        tile_diagnostic_edit(c->diagnostics, d, text->span, "\"%s->%s\"", text->name, tile_text_get(&letters));
    }
    tile_report(c, d);
    return tile_error_meaning();
}

/* What is wrong with the letters, NULL if nothing is. */
static const char *sort_letters(TileChecker *c, Einsum *e) {
    for (unsigned i = 0; i < e->result.count; i++) {
        char letter = e->result.at[i];
        bool left = has(&e->left, letter), right = has(&e->right, letter);
        if (!left && !right)
            return tile_arena_format(c->arena, "letters of its operands behind `->`, and `%c` is none", letter);
        add(left && right ? &e->batch : left ? &e->rows : &e->columns, letter);
    }
    for (unsigned i = 0; i < e->left.count + e->right.count; i++) {
        char letter = i < e->left.count ? e->left.at[i] : e->right.at[i - e->left.count];
        bool shared = has(&e->left, letter) && has(&e->right, letter);
        if (has(&e->result, letter)) continue;
        if (!shared)
            return tile_arena_format(c->arena, "letters of both operands or the result, and `%c` is in one operand alone: "
                                     "`sum(v, axis = ..)` adds up along an axis", letter);
        if (i < e->left.count) add(&e->summed, letter);
    }
    return NULL;
}

/* ---- operands ---- */

static unsigned place(const Letters *letters, char letter) {
    return (unsigned)((const char *)memchr(letters->at, letter, letters->count) - letters->at);
}

static const TileSum *extent_of(const TileMeaning *m, const Letters *letters, char letter) {
    return m->extent[place(letters, letter)];
}

static bool check_extents(TileChecker *c, const Einsum *e, const TileMeaning *v, TileSpan span) {
    for (unsigned i = 0; i < e->left.count; i++) {
        char letter = e->left.at[i];
        if (!has(&e->right, letter)) continue;
        const TileSum *a = extent_of(&v[0], &e->left, letter), *b = extent_of(&v[1], &e->right, letter);
        if (a == b) continue;
        tile_about_sum(c, a);
        tile_about_sum(c, b);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span,
                                          tile_meaning_words(c, &v[0]), tile_meaning_words(c, &v[1]));
        tile_diagnostic_note(c->diagnostics, d, e->span, "the axis `%c` is %s in the first operand, %s in the second", letter,
                             tile_sum_words(c, a), tile_sum_words(c, b));
        tile_report(c, d);
        return false;
    }
    return true;
}

static void append(Letters *all, const Letters *more) {
    for (unsigned i = 0; i < more->count; i++) add(all, more->at[i]);
}

/* The axes from `first` on, `counts[0]` and then `counts[1]` of them, each as one axis. They have to be valid where they are
 * not one axis already. */
static bool merge_axes(TileChecker *c, TileMeaning *m, unsigned first, const unsigned *counts, const TileExpr *expr) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    unsigned touched = 0, axis = first;
    for (unsigned i = 0; i < first; i++) extent[i] = m->extent[i], map[i] = (int8_t)i;
    for (unsigned k = 0; k < 2; k++) {
        const TileSum *product = tile_sum_integer(&c->sums, 1);
        for (unsigned i = 0; i < counts[k]; i++, axis++) {
            product = i ? tile_sum_multiply(&c->sums, product, m->extent[axis]) : m->extent[axis];
            map[axis] = counts[k] == 1 ? (int8_t)(first + k) : -1;
            touched |= counts[k] == 1 ? 0 : 1u << axis;
        }
        extent[first + k] = product;
    }
    if (tile_valid_touches(m->valid, touched)) {
        tile_fail_invalid(c, m, expr, "an axis that `einsum` puts together with others");
        return false;
    }
    if (counts[0] == 1 && counts[1] == 1) return true;
    *m = tile_reshape_to(c, *m, first + 2, extent, map);
    return true;
}

/* The operand with its axes in the order batch, first, second. */
static bool arrange(TileChecker *c, TileMeaning *m, const Letters *written, const Letters *batch, const Letters *first,
                    const Letters *second, const TileExpr *expr) {
    Letters order = {0};
    int64_t axes[TILE_MAX_TILE_RANK];
    bool moved = false;
    append(&order, batch);
    append(&order, first);
    append(&order, second);
    for (unsigned i = 0; i < order.count; i++) {
        axes[i] = place(written, order.at[i]);
        moved = moved || axes[i] != i;
    }
    if (moved) *m = tile_transpose(c, *m, axes);
    unsigned counts[] = {first->count, second->count};
    return merge_axes(c, m, batch->count, counts, expr);
}

/* ---- the result ---- */

/* From [batch.., rows, columns] to the axes of the result. */
static TileMeaning take_apart(TileChecker *c, const Einsum *e, TileMeaning m, const TileMeaning *v) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK] = {-1, -1, -1, -1, -1};
    Letters order = {0};
    append(&order, &e->batch);
    append(&order, &e->rows);
    append(&order, &e->columns);
    for (unsigned i = 0; i < order.count; i++)
        extent[i] = has(&e->left, order.at[i]) ? extent_of(&v[0], &e->left, order.at[i])
                                               : extent_of(&v[1], &e->right, order.at[i]);
    for (unsigned i = 0; i < e->batch.count; i++) map[i] = (int8_t)i;
    if (e->rows.count == 1) map[e->batch.count] = (int8_t)e->batch.count;
    if (e->columns.count == 1) map[e->batch.count + 1] = (int8_t)(order.count - 1);
    if (e->rows.count != 1 || e->columns.count != 1) m = tile_reshape_to(c, m, order.count, extent, map);
    int64_t axes[TILE_MAX_TILE_RANK];
    bool moved = false;
    for (unsigned i = 0; i < order.count; i++) {
        axes[i] = place(&order, e->result.at[i]);
        moved = moved || axes[i] != i;
    }
    return moved ? tile_transpose(c, m, axes) : m;
}

static bool read_operand(TileChecker *c, const Einsum *e, const TileExpr *expr, const Letters *letters, TileMeaning *m) {
    *m = tile_check_value(c, expr);
    if (tile_is_error(m)) return false;
    if (m->kind == TILE_MEANING_VALUE && m->rank == letters->count && m->rank) return true;
    const char *wanted = tile_arena_format(c->arena, "an operand of rank %u for `%s`", letters->count, letters->at);
    tile_fail(c, BAD_ARGUMENT, expr->span, "einsum", wanted, tile_meaning_words(c, m));
    return false;
}

TileMeaning tile_check_einsum(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    if (!tile_check_arguments(c, call, 3, 3, NULL)) return tile_error_meaning();
    const TileExpr *text = call->arguments.items[0].value;
    const TileExpr *exprs[] = {call->arguments.items[1].value, call->arguments.items[2].value};
    Einsum e = {.span = text->span};
    TileMeaning v[2];
    if (text->kind != TILE_EXPR_STRING || !read_text(text->name, &e))
        return fail_text(c, text, builtin, &e);
    const char *wrong = sort_letters(c, &e);
    if (wrong) return tile_fail(c, BAD_ARGUMENT, text->span, builtin->name, wrong, tile_span_text(c, text->span));
    if (!read_operand(c, &e, exprs[0], &e.left, &v[0]) || !read_operand(c, &e, exprs[1], &e.right, &v[1]))
        return tile_error_meaning();
    if (!check_extents(c, &e, v, call->span)) return tile_error_meaning();
    if (e.batch.count + 2 > TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, call->span, (int)TILE_MAX_TILE_RANK);
    TileMeaning a = v[0], b = v[1];
    tile_emit_at(c, call->span);
    if (!arrange(c, &a, &e.left, &e.batch, &e.rows, &e.summed, exprs[0]) ||
        !arrange(c, &b, &e.right, &e.batch, &e.summed, &e.columns, exprs[1]))
        return tile_error_meaning();
    TileMeaning m = tile_apply_dot(c, a, b, NULL, TILE_PRECISION_IEEE, exprs, call->span);
    return tile_is_error(&m) ? m : take_apart(c, &e, m, v);
}
