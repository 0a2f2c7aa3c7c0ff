/* Indexing: loads and stores of tensors, new axes of tiles. */
#include "parser/check/builtin.h"
#include "parser/check/covered.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/function.h"
#include "parser/check/index.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"
#include "parser/check/scope.h"
#include "parser/check/shape.h"
#include "parser/check/validity.h"
#include "parser/check/warn.h"


/* ---- loads ---- */

/* One integer of a tensor that is only read: it is the same wherever it is loaded, so that what a condition tells of it
 * holds where it is written again. */
static bool is_lasting(const TileChecker *c, const TileAccessed *access) {
    bool scalar = access->rank == 0 && tile_scalar_is_int(access->tensor->scalar);
    return scalar && access->tensor->access == TILE_ACCESS_IN && !c->overlaps;
}

static TileMeaning load_once(TileChecker *c, TileAccessed *access) {
    enum { MOST = 32 };
    const TileLoaded *items = c->loaded.items;
    size_t bytes = access->tensor->rank * sizeof *access->indices;
    for (size_t i = c->loaded.count; i-- > 0 && i + MOST >= c->loaded.count;) {
        if (items[i].tensor != access->tensor || memcmp(items[i].indices, access->indices, bytes) != 0) continue;
        TileMeaning same = items[i].value;
        same.valid = access->valid;
        return same;
    }
    TileLoaded loaded = {.tensor = access->tensor, .value = tile_access_emit_load(c, access)};
    memcpy(loaded.indices, access->indices, bytes);
    tile_list_push(c->arena, &c->loaded, loaded);
    return loaded.value;
}

/* In a function that lifts to several axes: its numbers are tiles, which `gather` takes. False if an entry is no number. */
static bool check_numbers(TileChecker *c, const TileExpr *expr, const TileTensor *tensor, TileMeaning *entries, bool *flat) {
    bool numbers = c->frame->lifted && c->frame->shape.rank > 1 && expr->items.count == tensor->rank - tensor->own;
    for (size_t i = 0; numbers && i < expr->items.count; i++)
        numbers = expr->items.items[i]->kind != TILE_EXPR_COLON && expr->items.items[i]->kind != TILE_EXPR_NEWAXIS;
    for (size_t i = 0; numbers && i < expr->items.count; i++) {
        entries[i] = tile_check_expr(c, expr->items.items[i]);
        *flat = *flat || (entries[i].kind == TILE_MEANING_VALUE && entries[i].rank > 1);
    }
    for (size_t i = 0; numbers && i < expr->items.count; i++) *flat = *flat && entries[i].kind != TILE_MEANING_RANGE;
    return numbers;
}

TileMeaning tile_check_load(TileChecker *c, const TileExpr *expr, const TileMeaning *tensor) {
    TileAccessed access = {.tensor = tensor->tensor, .span = expr->span};
    TileMeaning entries[TILE_MAX_TENSOR_RANK];
    bool flat = false;
    if (check_numbers(c, expr, tensor->tensor, entries, &flat)) access.given = entries;
    if (flat && tile_access_may_read(c, tensor->tensor, expr->span)) return tile_gather_lifted(c, expr, tensor->tensor, entries);
    if (!tile_access_may_read(c, tensor->tensor, expr->span) || !tile_access_check_entries(c, expr, &access))
        return tile_error_meaning();
    return is_lasting(c, &access) ? load_once(c, &access) : tile_access_emit_load(c, &access);
}

/* ---- axes of tiles ---- */

static TileMeaning add_axes(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    const TileSum *extent[TILE_MAX_TILE_RANK];
    int8_t map[TILE_MAX_TILE_RANK];
    unsigned rank = 0, kept = 0;
    for (size_t i = 0; i < expr->items.count; i++) {
        const TileExpr *entry = expr->items.items[i];
        if (rank == TILE_MAX_TILE_RANK) return tile_fail(c, RANK_LIMIT, expr->span, (int)TILE_MAX_TILE_RANK);
        if (entry->kind == TILE_EXPR_NEWAXIS) {
            extent[rank++] = tile_sum_integer(&c->sums, 1);
        } else if (entry->kind == TILE_EXPR_COLON && kept < m->rank) {
            extent[rank] = m->extent[kept];
            map[kept++] = (int8_t)rank++;
        } else if (entry->kind != TILE_EXPR_COLON) {
            TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TILE_INDEX, entry->span);
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "elements of a tile are not addressed one by one; load them from the tensor");
            bool none = (entry->kind == TILE_EXPR_NAME && strcmp(entry->name, "None") == 0) ||
                        ((entry->kind == TILE_EXPR_NAME || entry->kind == TILE_EXPR_FIELD) &&
                         strcmp(entry->name, "newaxis") == 0);
            if (none) tile_diagnostic_edit(c->diagnostics, d, entry->span, "_");
            tile_report(c, d);
            return tile_error_meaning();
        } else {
            kept++;
        }
    }
    if (kept != m->rank)
        return tile_fail(c, ENTRY_COUNT, expr->span, tile_meaning_words(c, m),
                         tile_count_words(c, m->rank, "dimension", "dimensions"),
                         tile_count_words(c, kept, "entry", "entries"));
    tile_emit_at(c, expr->span);
    return tile_reshape_to(c, *m, rank, extent, map);
}

static TileMeaning check_iota(TileChecker *c, const TileExpr *expr) {
    if (expr->items.count != 1)
        return tile_report_count(c, expr->span, "iota", 1, 1, (unsigned)expr->items.count), tile_error_meaning();
    const TileSum *extent = tile_check_extent(c, expr->items.items[0]);
    if (!extent) return tile_error_meaning();
    int64_t lanes = tile_extent_value(c, extent);
    tile_emit_at(c, expr->span);
    const TileType *type = tile_type_tile(c->context, TILE_I64, 1, &lanes);
    TileMeaning m = tile_value_meaning(c, tile_build_iota(tile_emitter(c), type, 0), &extent, NULL);
    m.lowest = tile_sum_integer(&c->sums, 0);
    m.highest = tile_sum_subtract(&c->sums, extent, tile_sum_integer(&c->sums, 1));
    return m;
}

TileMeaning tile_load_whole(TileChecker *c, const TileMeaning *tensor, TileSpan span) {
    return tile_check_load(c, tile_access_whole_index(c, tensor->tensor->rank - tensor->tensor->own, span), tensor);
}

/* In a test a result is a tile; its tensor can be indexed as in a kernel. */
static bool indexes_tensor(const TileExpr *expr, const TileMeaning *m) {
    bool axes = true;
    for (size_t i = 0; i < expr->items.count; i++)
        axes =
            axes && (expr->items.items[i]->kind == TILE_EXPR_COLON || expr->items.items[i]->kind == TILE_EXPR_NEWAXIS);
    return m->tensor && !axes;
}

/* `x[m][n]`, as in C and NumPy, and `x.shape[1]`: what was reported of the inner expression gets an edit. */
static void propose_index(TileChecker *c, const TileExpr *expr) {
    const TileExpr *inner = expr->a, *tensor = inner->a;
    bool field = inner->kind == TILE_EXPR_FIELD;
    if ((!field && inner->kind != TILE_EXPR_INDEX) || tensor->kind != TILE_EXPR_NAME) return;
    const TileBound *bound = tile_scope_find(c, tensor->name);
    if (!bound || bound->meaning.kind != TILE_MEANING_TENSOR || !expr->items.count) return;
    const TileTensor *t = bound->meaning.tensor;
    if (!field) {
        TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_ENTRY_COUNT, inner->span);
        if (!d || inner->items.count + expr->items.count != t->rank - t->own) return;
        TileSpan last = {expr->span.file, expr->items.items[0]->span.begin, expr->span.end};
        TileSpan first = {expr->span.file, inner->span.begin, inner->span.end - 1};
        tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s, %s", tile_span_text(c, first),
                             tile_span_text(c, last));
        return;
    }
    TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_NO_FIELD, inner->op_span);
    const TileExpr *entry = expr->items.items[0];
    if (entry->kind != TILE_EXPR_INTEGER || entry->integer >= t->rank - t->own) return;
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s", tile_sum_words(c, t->dims[t->own + entry->integer]));
}

/* A range has no axes; the tile of its indices has. */
static TileMeaning fail_indexed(TileChecker *c, const TileExpr *expr, const TileMeaning *m) {
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INDEXABLE, expr->a->span, tile_meaning_words(c, m));
    bool axes = m->kind == TILE_MEANING_RANGE;
    for (size_t i = 0; i < expr->items.count; i++)
        axes =
            axes && (expr->items.items[i]->kind == TILE_EXPR_NEWAXIS || expr->items.items[i]->kind == TILE_EXPR_COLON);
    if (axes) tile_diagnostic_edit(c->diagnostics, d, expr->a->span, "%s.idx", tile_operand_text(c, expr->a));
    if (m->kind == TILE_MEANING_TUPLE) tile_note_parts(c, d);
    tile_report(c, d);
    return tile_error_meaning();
}

TileMeaning tile_check_index(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = tile_check_expr(c, expr->a);
    if (m.kind == TILE_MEANING_VALUE && indexes_tensor(expr, &m)) return tile_check_load(c, expr, &m);
    switch (m.kind) {
    case TILE_MEANING_ERROR: propose_index(c, expr); return m;
    case TILE_MEANING_TENSOR: return tile_check_load(c, expr, &m);
    case TILE_MEANING_VALUE: return add_axes(c, expr, &m);
    case TILE_MEANING_FUNCTION: return tile_check_filled(c, expr, &m);
    case TILE_MEANING_BUILTIN:
        if (strcmp(m.builtin->name, "iota") == 0) return check_iota(c, expr);
        return tile_fail(c, NOT_VALUE, expr->span, tile_meaning_words(c, &m));
    default: return fail_indexed(c, expr, &m);
    }
}

/* ---- stores ---- */

void tile_check_store(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *value_expr,
                      const TileValidity *loaded, bool skip) {
    TileAccessed access;
    if (!tile_access_target(c, target, &access) || tile_is_error(&value)) return;
    access.implied = tile_valid_union(c, access.implied, loaded);
    tile_access_store(c, &access, value, value_expr, skip);
}
