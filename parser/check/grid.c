/* Grids and temporaries: the part of a kernel that runs on the host. */
#include "parser/check/covered.h"
#include "parser/check/dimension.h"
#include "parser/check/constant.h"
#include "parser/check/emit.h"
#include "parser/check/grid.h"
#include "parser/check/leave.h"
#include "parser/check/meaning.h"
#include "parser/check/observed.h"
#include "parser/check/operand.h"
#include "parser/check/overwrite.h"
#include "parser/check/propose.h"
#include "parser/check/range.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/sequence.h"
#include "parser/check/type.h"

typedef struct Grid {
    const TileStatement *statement;
    const TileExpr *entries[TILE_MAX_TENSOR_RANK];
    TileTiles tiles[TILE_MAX_TENSOR_RANK];
    bool over_tiles[TILE_MAX_TENSOR_RANK];
    const TileSum *extents[TILE_MAX_TENSOR_RANK]; /* the numbers of programs */
    unsigned rank;
} Grid;

/* `a..b` as an extent of a grid. */
static bool fail_bounds(TileChecker *c, const TileExpr *entry) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, entry->span, "an extent of the grid",
                                      "`a..b`, the bounds of a loop");
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "the integers of a grid count from 0");
    if (entry->a->kind == TILE_EXPR_INTEGER && entry->a->integer == 0)
        tile_diagnostic_edit(c->diagnostics, d, entry->span, "%s", tile_span_text(c, entry->b->span));
    tile_report(c, d);
    return false;
}

/* `range(n)` and `range(0, n)` as an extent of the grid, as in Python. */
static bool fail_call_of_range(TileChecker *c, const TileExpr *call) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, call->span, "an extent of the grid",
                                      "the integers of a loop");
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "`grid i in n` counts from 0 to n - 1; `grid n in tiles(N, 64)` gives each program a range");
    const TileArgumentExpr *arguments = call->arguments.items;
    size_t count = call->arguments.count;
    bool zero = count == 2 && arguments[0].value->kind == TILE_EXPR_INTEGER && arguments[0].value->integer == 0;
    if (count == 1 || zero)
        tile_diagnostic_edit(c->diagnostics, d, call->span, "%s", tile_bare_text(c, arguments[count - 1].value->span));
    tile_report(c, d);
    return false;
}

/* The number of indices: 0 if the limit is so far below the start that the difference wraps. */
static const TileSum *covered_by(TileChecker *c, const TileTiles *tiles) {
    const TileSum *covered = tile_sum_subtract(&c->sums, tiles->hi, tiles->lo);
    if (!tile_sum_falls(&c->sums, covered)) return covered;
    return tile_sum_subtract(&c->sums, tile_sum_max(&c->sums, tiles->hi, tiles->lo), tiles->lo);
}

/* (hi - lo + size - 1) / size is the number of programs if that sum does not wrap; a launch checks it. */
static void require_countable(TileChecker *c, const TileTiles *tiles, const TileSum *covered) {
    TileSumTable *t = &c->sums;
    const TileSum *rounded, *rounding = tile_sum_subtract(t, tiles->size, tile_sum_integer(t, 1));
    int64_t size = tile_extent_value(c, tiles->size);
    if (!tile_sum_add_exceeds(t, covered, rounding, &rounded)) return;
    tile_emit_at(c, tiles->span);
    TileValue *span = tile_emit_sum(c, tile_sum_subtract(t, tiles->hi, tiles->lo));
    TileValue *most = tile_emit_sum(c, tile_sum_integer(t, INT64_MAX - (size - 1)));
    TileValue *ok = tile_emit_binary(c, TILE_OP_LE, span, most);
    if (!tile_sum_is_literal(tiles->lo, 0)) { /* a difference that wraps is negative or 0 */
        TileValue *zero = tile_emit_sum(c, tile_sum_integer(t, 0));
        TileValue *none = tile_emit_binary(c, TILE_OP_LE, tile_emit_sum(c, tiles->hi), tile_emit_sum(c, tiles->lo));
        ok = tile_emit_binary(c, TILE_OP_AND, ok, tile_emit_binary(c, TILE_OP_GT, span, zero));
        ok = tile_emit_binary(c, TILE_OP_OR, ok, none);
    }
    const char *text = tile_arena_format(c->arena, "fewer than 2^63 indices in %s", tile_span_text(c, tiles->span));
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &ok, 1, &attribute, 1, NULL, 0);
}

static bool check_entries(TileChecker *c, const TileStatement *statement, Grid *grid) {
    const TileExpr *value = statement->value;
    bool tuple = value->kind == TILE_EXPR_TUPLE;
    size_t count = tuple ? value->items.count : 1;
    if (count != statement->names.count || count > TILE_MAX_TENSOR_RANK || tuple != statement->tuple) {
        const char *extents = tile_count_words(c, count, "extent", "extents");
        if (count > TILE_MAX_TENSOR_RANK)
            extents =
                tile_arena_format(c->arena, "%s, of which there are at most %d", extents, (int)TILE_MAX_TENSOR_RANK);
        tile_fail(c, GRID_NAMES, value->span, tile_count_words(c, statement->names.count, "name", "names"), extents);
        return false;
    }
    grid->rank = (unsigned)count;
    for (unsigned i = 0; i < grid->rank; i++) {
        const TileExpr *entry = grid->entries[i] = tuple ? value->items.items[i] : value;
        grid->over_tiles[i] = tile_is_call_of(entry, "tiles");
        if (entry->kind == TILE_EXPR_BINARY && entry->op == TILE_TOKEN_DOTS) return fail_bounds(c, entry);
        if (tile_is_call_of(entry, "range") || tile_is_call_of(entry, "arange")) return fail_call_of_range(c, entry);
        if (!grid->over_tiles[i]) {
            grid->extents[i] = tile_check_integer(c, entry, "an extent of the grid");
            if (!grid->extents[i]) return false;
            TileMeaning extent = tile_sum_meaning(grid->extents[i]);
            if (!tile_check_host_value(c, &extent, entry->span)) return false;
            grid->extents[i] = extent.sum;
            continue;
        }
        TileTiles *tiles = &grid->tiles[i];
        if (!tile_check_tiles(c, entry, tiles)) return false;
        const TileSum *covered = covered_by(c, tiles);
        require_countable(c, tiles, covered);
        grid->extents[i] = tile_sum_divide_up(&c->sums, covered, tiles->size);
        TileMeaning extent = tile_sum_meaning(grid->extents[i]);
        if (!tile_check_host_value(c, &extent, entry->span)) return false;
    }
    return true;
}

/* Inside the grid, every extent is at least 1: a program runs. */
static void assume_programs(TileChecker *c, const Grid *grid) {
    TileSumTable *t = &c->sums;
    const TileSum *one = tile_sum_integer(t, 1);
    for (unsigned i = 0; i < grid->rank; i++) {
        const TileTiles *tiles = &grid->tiles[i];
        if (!grid->over_tiles[i]) {
            if (!tile_sum_falls(t, grid->extents[i])) tile_sum_assume(t, one, grid->extents[i]);
            continue;
        }
        const TileSum *covered = tile_sum_subtract(t, tiles->hi, tiles->lo);
        bool compared = !tile_sum_falls(t, tiles->hi) && !tile_sum_exceeds(t, tiles->lo);
        if (compared || !tile_sum_falls(t, covered)) tile_sum_assume(t, one, covered);
    }
    c->grid_facts = c->sums.facts.count;
}

static void bind_programs(TileChecker *c, const Grid *grid, TileOp *op) {
    for (unsigned i = 0; i < grid->rank; i++) {
        TileNameRef name = grid->statement->names.items[i];
        TileValue *number = op->regions[0].arguments[i];
        number->name = tile_intern_string(c->context->strings, name.name);
        TileSymbol *symbol = tile_symbol_value(&c->sums, name.name, number);
        const TileSum *zero = tile_sum_integer(&c->sums, 0), *one = tile_sum_integer(&c->sums, 1);
        const TileSum *last = tile_sum_subtract(&c->sums, grid->extents[i], one);
        tile_symbol_bound(&c->sums, symbol, zero, tile_sum_falls(&c->sums, grid->extents[i]) ? NULL : last);
        const TileSum *at = tile_sum_symbol(&c->sums, symbol);
        c->programs[i] = at;
        c->program_counts[i] = grid->extents[i];
        TileMeaning m = tile_sum_meaning(at);
        if (grid->over_tiles[i]) {
            const TileTiles *tiles = &grid->tiles[i];
            const TileSum *first = tile_sum_add(&c->sums, tiles->lo, tile_sum_multiply(&c->sums, at, tiles->size));
            m = tile_range_of(c, tiles, first, name);
        }
        tile_scope_bind(c, name, m, false);
        const TileSum *extent = grid->extents[i];
        if (grid->over_tiles[i]) extent = tile_sum_is_literal(grid->tiles[i].lo, 0) ? grid->tiles[i].hi : NULL;
        tile_cover_add(c, op, name.name, extent);
    }
}

/* The conditions that proofs inside the grid used and that the host can check: required only if a program runs. */
static void require_needs(TileChecker *c, const Grid *grid, TileOp *op) {
    if (!c->needs.count) return;
    TileBuilder inside = c->builder;
    c->builder = tile_builder_before(c->module, op);
    TileValue *zero = tile_emit_sum(c, tile_sum_integer(&c->sums, 0)), *empty = NULL;
    for (unsigned i = 0; i < grid->rank; i++) {
        TileValue *none = tile_emit_binary(c, TILE_OP_LE, tile_emit_sum(c, grid->extents[i]), zero);
        empty = empty ? tile_emit_binary(c, TILE_OP_OR, empty, none) : none;
    }
    for (unsigned i = 0; i < c->needs.count; i++) {
        TileValue *ok = tile_emit_binary(c, TILE_OP_GE, tile_emit_sum(c, c->needs.items[i]), zero);
        if (empty) ok = tile_emit_binary(c, TILE_OP_OR, ok, empty);
        const char *text = tile_arena_format(c->arena, "%s >= 0", tile_sum_words(c, c->needs.items[i]));
        TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
        tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &ok, 1, &attribute, 1, NULL, 0);
    }
    inside.location = c->builder.location;
    c->builder = inside;
}

void tile_check_grid(TileChecker *c, const TileStatement *statement) {
    Grid grid = {.statement = statement};
    if (c->in_grid || c->frame->item->kind != TILE_ITEM_KERNEL) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_GRID_PLACE, statement->span);
        if (c->in_grid)
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "a grid has several axes: `grid (m, n) in (tiles(M, 16), N)`; within a program, `for` counts");
        tile_report(c, d);
        return;
    }
    c->grid_count++;
    if (!check_entries(c, statement, &grid)) return;
    TileValue *extents[TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < grid.rank; i++) extents[i] = tile_emit_sum(c, grid.extents[i]);
    TileScopeMark before = tile_scope_open(c);
    tile_emit_at(c, statement->span);
    TileOp *op = tile_build_grid(tile_emitter(c), extents, grid.rank);
    TileBlock *outer = c->builder.block;
    c->builder.block = &op->regions[0];
    c->in_grid = true;
    c->grid = op;
    c->program_rank = grid.rank;
    c->host_cache = before.cache;
    c->needs.count = 0;
    c->covers.count = 0;
    c->stored.count = 0;
    TileFrame *frame = c->frame;
    frame->has_flags = tile_sequence_returns(statement->body);
    frame->returned = frame->has_flags ? tile_scope_flag(c, NULL, tile_bool_meaning(false)) : NULL;
    assume_programs(c, &grid);
    bind_programs(c, &grid, op);
    tile_check_sequence(c, statement->body);
    TileSpan end = statement->body->span; /* where what the program has stored can be looked at */
    if (end.end > end.begin) tile_observe_statement(c, (TileSpan){end.file, end.end - 1, end.end});
    tile_build_end(tile_emitter(c), TILE_OP_YIELD, NULL, 0);
    tile_overwrite_warn(c);
    frame->returned = NULL;
    c->in_grid = false;
    c->grid = NULL;
    c->builder.block = outer;
    tile_scope_close(c, before);
    c->grid_facts = 0;
    require_needs(c, &grid, op);
}

/* ---- temporaries ---- */

/* Where a temporary is made: of each program in front of the grid, where no sum that the grid has emitted is visible. */
typedef struct Place {
    TileBuilder builder;
    size_t cache;
} Place;

static Place enter_host(TileChecker *c) {
    Place place = {c->builder, c->cache.count};
    if (!c->in_grid) return place;
    c->builder = tile_builder_before(c->module, c->grid);
    c->cache.count = c->host_cache;
    return place;
}

static void leave_host(TileChecker *c, Place place) {
    place.builder.location = c->builder.location;
    c->builder = place.builder;
    if (c->cache.count < place.cache) c->cache.count = place.cache; /* what was overwritten is emitted again */
}

/* The dimensions in the text behind those of the programs; false if an error was reported. */
static bool check_dimensions(TileChecker *c, const TileTypeExpr *type, TileTensor *tensor) {
    for (unsigned d = tensor->own; d < tensor->rank; d++) {
        const TileExpr *extent = type->extents.items[d - tensor->own];
        int64_t number;
        tensor->dims[d] = c->in_grid ? tile_check_constant(c, extent, "an extent", &number)
                                     : tile_check_integer(c, extent, "an extent");
        if (!tensor->dims[d] || !tile_check_dimension(c, tensor->dims[d], extent)) return false;
    }
    return true;
}

/* A grid that counts down to below 0 has no programs. */
static TileValue *emit_program_count(TileChecker *c, unsigned d) {
    TileValue *count = tile_op_operand(c->grid, d);
    return tile_build_binary(tile_emitter(c), TILE_OP_MAX, count, tile_build_integer(tile_emitter(c), count->type, 0));
}

static void make_temp(TileChecker *c, const TileTypeExpr *type, TileTensor *tensor) {
    TileValue *extents[TILE_MAX_TENSOR_RANK];
    Place place = enter_host(c);
    for (unsigned d = 0; d < tensor->rank; d++) {
        if (d >= tensor->own) tile_require_exact(c, tensor->dims[d], type->extents.items[d - tensor->own]->span);
        extents[d] = d < tensor->own ? emit_program_count(c, d) : tile_emit_sum(c, tile_tensor_extent(c, tensor, d));
    }
    TileScalar held = tensor->format ? TILE_U8 : tensor->scalar;
    const TileType *made = tile_type_tensor(c->context, held, tensor->rank, TILE_ACCESS_TEMP);
    const TileAttribute own = {.key = TILE_ATTRIBUTE_OWN, .integer = tensor->own};
    TileOp *op = tile_build_op(tile_emitter(c), TILE_OP_TEMP, extents, tensor->rank, &own, tensor->own != 0, &made, 1);
    leave_host(c, place);
    tensor->value = tile_op_result(op, 0);
    tensor->value->name = tile_intern_string(c->context->strings, tensor->name);
}

/* At the top of a kernel, or of the body of a grid. */
static bool may_stand_here(const TileChecker *c) {
    bool top = c->regions == 0 && c->masked == 0 && !c->frame->loop;
    return c->frame->item->kind == TILE_ITEM_KERNEL && (!c->in_grid || top);
}

static TileMeaning fail_temp_type(TileChecker *c, const TileTypeExpr *type) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TEMP_TYPE, type->span);
    TileSpan word = {type->span.file, type->span.begin, type->name_span.begin};
    if (type->kind == TILE_TYPE_EXPR_NAME && type->has_extents) { /* `inout f32[N]` */
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "a temporary is always read and written");
        tile_diagnostic_edit(c->diagnostics, d, word, "%s", "");
    }
    tile_report(c, d);
    return tile_error_meaning();
}

void tile_check_temp(TileChecker *c, const TileStatement *statement) {
    const TileTypeExpr *type = statement->type;
    TileScalar scalar;
    TileFormat format = TILE_FORMAT_PLAIN;
    TileNameRef name = statement->names.items[0];
    bool fits =
        type->kind == TILE_TYPE_EXPR_NAME && type->has_extents && type->access == TILE_WORD_NONE && !type->is_const;
    if (!may_stand_here(c)) {
        tile_scope_bind(c, name, tile_fail(c, TEMP_PLACE, statement->span), true);
        return;
    }
    TileMeaning wrong = tile_nothing();
    unsigned own = c->in_grid ? c->program_rank : 0;
    if (!fits)
        wrong = fail_temp_type(c, type);
    else if (type->extents.count + own > TILE_MAX_TENSOR_RANK)
        wrong = tile_fail(c, RANK_LIMIT, type->span, (int)(TILE_MAX_TENSOR_RANK - own));
    else if (!tile_find_element(c, type->name, &scalar, &format))
        wrong = tile_fail_type(c, type->name_span, type->name);
    else if (tile_fail_single(c, type, format))
        wrong = tile_error_meaning();
    if (tile_is_error(&wrong)) {
        tile_scope_bind(c, name, wrong, true);
        return;
    }
    TileTensor *tensor = TILE_NEW(c->arena, TileTensor);
    *tensor = (TileTensor){.name = name.name,
                           .scalar = scalar,
                           .format = format,
                           .access = TILE_ACCESS_TEMP,
                           .rank = (unsigned)type->extents.count + own,
                           .own = own,
                           .span = name.span};
    for (unsigned d = 0; d < own; d++) tensor->dims[d] = c->program_counts[d];
    if (!check_dimensions(c, type, tensor)) {
        tile_scope_bind(c, name, tile_error_meaning(), true);
        return;
    }
    make_temp(c, type, tensor);
    tile_scope_bind(c, name, (TileMeaning){.kind = TILE_MEANING_TENSOR, .tensor = tensor}, true);
}
