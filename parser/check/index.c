/* Indexing: loads and stores of tensors, axes added to tiles, gathers.
 *
 * An access keeps, beside the operands of its op, the atoms of its validity: lanes of ranges past their limit, and
 * indices that are not proven to lie inside their dimension. */
#include "parser/check/check.h"

#include <string.h>

typedef struct Access {
    const TileTensor *tensor;
    TileSpan span;
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    const TileRange *ranges[TILE_MAX_TENSOR_RANK]; /* RANGE */
    const TileSum *indices[TILE_MAX_TENSOR_RANK];  /* INDEX */
    TileValue *gathers[TILE_MAX_TENSOR_RANK];      /* GATHER: i64 tiles */
    bool agree[TILE_MAX_TENSOR_RANK];              /* GATHER: all indices that are valid are certainly equal */
    bool poisoned[TILE_MAX_TENSOR_RANK];           /* INDEX: a value that may itself be invalid */
    int axis_of[TILE_MAX_TENSOR_RANK];             /* RANGE, GATHER */
    int gather_axis;                               /* -1 when none */
    unsigned rank;
    const TileSum *extent[TILE_MAX_TILE_RANK];
    const TileValidity *valid;
    bool stores;                 /* as a whole: no mask chooses among the lanes */
    const TileValidity *implied; /* by the masks of the index tiles: where those are valid themselves */
} Access;

/* What a launch must check for a proof is kept for the grid; only what the host can compute may be asked. */
static bool proven_inside(TileChecker *c, const TileSum *lowest, const TileSum *highest, const TileSum *dim) {
    TileSumNeeds needs = {0};
    if (!lowest || !highest) return false;
    const TileSum *last = tile_sum_subtract(&c->sums, dim, tile_sum_integer(&c->sums, 1));
    TileSumNeeds *asked = c->in_grid ? &needs : NULL;
    if (!tile_sum_proves(&c->sums, tile_sum_integer(&c->sums, 0), lowest, asked)) return false;
    if (!tile_sum_proves(&c->sums, highest, last, asked)) return false;
    for (unsigned i = 0; i < needs.count; i++) {
        bool there = false;
        for (unsigned k = 0; k < c->needs.count; k++) there = there || c->needs.items[k] == needs.items[i];
        if (there) continue;
        if (c->needs.count == sizeof c->needs.items / sizeof *c->needs.items) return false;
        c->needs.items[c->needs.count++] = needs.items[i];
    }
    return true;
}

/* ---- entries ---- */

/* Steps that dimensions and distances from them can be added to. */
static bool is_ordinary(int64_t step) { return step != 0 && step > -((int64_t)1 << 48) && step < (int64_t)1 << 48; }

/* Lanes of first + l * step inside 0 .. dim, where the step is an ordinary number. */
static void inside_known(TileChecker *c, const TileRange *range, const TileSum *dim, int64_t step, TileAtom *atom) {
    TileSumTable *t = &c->sums;
    const TileSum *zero = tile_sum_integer(t, 0), *one = tile_sum_integer(t, 1);
    const TileSum *stride = tile_sum_integer(t, step > 0 ? step : -step), *lo, *hi;
    if (step > 0) {
        lo = tile_sum_divide_up(t, tile_sum_subtract(t, zero, range->first), stride);
        hi = tile_sum_divide_up(t, tile_sum_subtract(t, dim, range->first), stride);
    } else {
        lo = tile_sum_add(t, tile_sum_divide(t, tile_sum_subtract(t, range->first, dim), stride), one);
        hi = tile_sum_add(t, tile_sum_divide(t, range->first, stride), one);
    }
    lo = tile_sum_max(t, zero, lo);
    hi = tile_sum_min(t, range->size, hi);
    atom->lo = tile_sum_is_literal(lo, 0) ? NULL : lo;
    atom->hi = hi == range->size ? NULL : hi;
}

/* The same of any step: whichever of two lanes comes first, and all lanes or none where it is 0. Modulo 2^64 this is
 * right as well: where the bounds wrap no lane is inside, or those are whose index wraps to one that is. */
static void inside_any(TileChecker *c, const TileRange *range, const TileSum *dim, TileAtom *atom) {
    TileValue *first = tile_emit_sum(c, range->first), *step = tile_emit_sum(c, range->step),
              *size = tile_emit_sum(c, range->size), *limit = tile_emit_sum(c, dim);
    TileValue *zero = tile_emit_sum(c, tile_sum_integer(&c->sums, 0)),
              *one = tile_emit_sum(c, tile_sum_integer(&c->sums, 1));
    TileValue *up = tile_emit_binary(c, TILE_OP_GT, step, zero), *flat = tile_emit_binary(c, TILE_OP_EQ, step, zero);
    TileValue *short_of = tile_emit_select(c, up, one, zero); /* the lane before, upwards */
    TileValue *lanes[2], *ends[] = {zero, limit};
    for (unsigned i = 0; i < 2; i++) {
        TileValue *distance = tile_emit_binary(c, TILE_OP_SUB, ends[i], first);
        TileValue *before = tile_emit_binary(c, TILE_OP_SUB, distance, short_of);
        lanes[i] = tile_emit_binary(c, TILE_OP_ADD, tile_emit_binary(c, TILE_OP_DIV, before, step), one);
    }
    TileValue *inside = tile_emit_binary(c, TILE_OP_AND, tile_emit_binary(c, TILE_OP_GE, first, zero),
                                         tile_emit_binary(c, TILE_OP_LT, first, limit));
    TileValue *lo = tile_emit_select(c, flat, zero, tile_emit_select(c, up, lanes[0], lanes[1]));
    TileValue *hi =
        tile_emit_select(c, flat, tile_emit_select(c, inside, size, zero), tile_emit_select(c, up, lanes[1], lanes[0]));
    atom->lo = tile_scalar_meaning(c, tile_emit_binary(c, TILE_OP_MAX, zero, lo), NULL).sum;
    atom->hi = tile_scalar_meaning(c, tile_emit_binary(c, TILE_OP_MIN, size, hi), NULL).sum;
}

static void find_inside(TileChecker *c, const TileRange *range, const TileSum *dim, TileAtom *atom) {
    int64_t step;
    if (tile_sum_known(&c->sums, range->step, &step) && is_ordinary(step))
        inside_known(c, range, dim, step, atom);
    else
        inside_any(c, range, dim, atom);
}

static void add_interval(TileChecker *c, Access *access, unsigned d, const TileRange *range, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    int8_t axis[] = {(int8_t)access->rank};
    access->kinds[d] = TILE_ACCESS_RANGE;
    access->ranges[d] = range;
    access->axis_of[d] = (int)access->rank;
    access->extent[access->rank++] = range->size;
    if (range->lanes) access->valid = tile_valid_add(c, access->valid, range->lanes, axis, access->span);
    if (proven_inside(c, range->lowest, range->highest, dim)) return;
    TileAtom atom = {
        .root = range->root, .first = range->first, .step = range->step, .dim = dim, .size = range->size, .span = span};
    if (!tile_atom_same(c, &atom)) {
        find_inside(c, range, dim, &atom);
        if (!atom.lo && !atom.hi) return;
    }
    bool unshifted = range->first == range->root->first && range->step == range->root->step;
    atom.birth = unshifted ? range->root->birth : range->birth;
    access->valid = tile_valid_add(c, access->valid, tile_atom_interval(c, atom), axis, access->span);
}

static void add_range(TileChecker *c, Access *access, unsigned d, const TileRange *range, TileSpan span) {
    size_t hidden = tile_facts_hide(c);
    add_interval(c, access, d, range, span);
    tile_facts_restore(c, hidden);
}

/* Literals and constants of the file, so that the number stands there, whatever the instance and the turn of a loop. */
static bool is_written(TileChecker *c, const TileExpr *expr) {
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_INTEGER: return true;
    case TILE_EXPR_UNARY: return is_written(c, expr->a);
    case TILE_EXPR_BINARY: return is_written(c, expr->a) && is_written(c, expr->b);
    case TILE_EXPR_NAME: return !tile_scope_find(c, expr->name) && tile_is_constant(c, c->frame->ast, expr->name);
    default: return false;
    }
}

/* An element that cannot exist: the access would do nothing wherever the kernel runs. */
static bool check_inside(TileChecker *c, const Access *access, unsigned d, const TileSum *index,
                         const TileExpr *entry) {
    const TileSum *dim = access->tensor->dims[d];
    bool below = index->constant < 0, above = dim->count == 0 && index->constant >= dim->constant;
    if (index->count || (!below && !above) || c->frame->parent || !is_written(c, entry)) return true;
    TileDiagnostic *diagnostic =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INDEX_OUTSIDE, entry->span, (long long)index->constant,
                      tile_sum_words(c, dim), access->tensor->name);
    if (below) tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0}, "an index does not count from the end");
    const TileSum *meant = tile_sum_add(&c->sums, dim, below ? index : tile_sum_integer(&c->sums, -1));
    if (meant->count || meant->constant >= 0)
        tile_diagnostic_edit(c->diagnostics, diagnostic, entry->span, "%s", tile_sum_words(c, meant));
    tile_report(c, diagnostic);
    return false;
}

static void add_integer(TileChecker *c, Access *access, unsigned d, const TileMeaning *m, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    access->kinds[d] = TILE_ACCESS_INDEX;
    access->indices[d] = m->sum;
    access->poisoned[d] = m->valid != NULL;
    access->valid = tile_valid_union(c, access->valid, m->valid);
    if (proven_inside(c, m->sum, m->sum, dim)) return;
    access->poisoned[d] = true;
    access->valid =
        tile_valid_add(c, access->valid, tile_atom_condition(c, m->sum, dim, m->valid, span), NULL, access->span);
}

/* Inside of the dimension? */
static TileValue *index_mask(TileChecker *c, const TileMeaning *index, const TileSum *dim) {
    TileValue *value = index->value;
    TileValue *zero = tile_build_integer(tile_emitter(c), value->type, 0);
    TileValue *limit = tile_emit_sum(c, dim);
    limit = tile_build_splat(tile_emitter(c), limit, value->type);
    TileValue *ok = tile_emit_binary(c, TILE_OP_AND, tile_emit_binary(c, TILE_OP_GE, value, zero),
                                     tile_emit_binary(c, TILE_OP_LT, value, limit));
    return ok;
}

/* Where an index is itself invalid it becomes -1, which lies outside of every dimension. */
static TileMeaning sound_index(TileChecker *c, TileMeaning m) {
    if (!m.valid) return m;
    TileValue *sound = tile_emit_filled(c, &m, m.valid, tile_emit_sum(c, tile_sum_integer(&c->sums, -1)));
    return m.rank ? tile_value_meaning(c, sound, m.extent, m.valid) : tile_scalar_meaning(c, sound, m.valid);
}

static bool add_gather(TileChecker *c, Access *access, unsigned d, TileMeaning m, TileSpan span) {
    const TileSum *dim = access->tensor->dims[d];
    TileValue *key = m.value;
    access->agree[d] = tile_lanes_agree(&m, 0);
    m = sound_index(c, tile_convert(c, m, TILE_I64, span));
    if (access->gather_axis < 0) {
        access->gather_axis = (int)access->rank;
        access->extent[access->rank++] = m.extent[0];
    } else if (access->extent[access->gather_axis] != m.extent[0]) {
        TileMeaning first = m;
        first.extent[0] = access->extent[access->gather_axis];
        tile_about_shapes(c, &first, &m);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span,
                                          tile_meaning_words(c, &first), tile_meaning_words(c, &m));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                             "index tiles of one access share an axis; `gather(%s, ..)` takes any that broadcast",
                             access->tensor->name);
        tile_report(c, d);
        return false;
    }
    access->kinds[d] = TILE_ACCESS_GATHER;
    access->gathers[d] = m.value;
    access->axis_of[d] = access->gather_axis;
    const int8_t map[] = {(int8_t)access->gather_axis};
    TileAtom *atom = tile_atom_mask(c, index_mask(c, &m, dim), key, dim, m.valid, span, NULL);
    access->implied = tile_valid_union(c, access->implied, tile_valid_map(c, m.valid, map));
    access->valid = tile_valid_add(c, access->valid, atom, map, access->span);
    return true;
}

static bool add_entry(TileChecker *c, Access *access, unsigned d, const TileExpr *entry) {
    const TileSum *dim = access->tensor->dims[d];
    bool full = access->rank == TILE_MAX_TILE_RANK;
    if (entry->kind == TILE_EXPR_COLON) {
        int64_t extent;
        if (full) return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
        if (!tile_sum_known(&c->sums, dim, &extent)) {
            tile_about_unknown(c, dim);
            TileDiagnostic *diagnostic =
                tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_STATIC, entry->span, tile_sum_words(c, dim));
            tile_diagnostic_note(c->diagnostics, diagnostic, access->tensor->span,
                                 "add the clause `static %s` to the kernel, or index with a range of tiles",
                                 tile_sum_words(c, dim));
            tile_propose_static(c, diagnostic, tile_sum_words(c, dim));
            tile_report(c, diagnostic);
            return false;
        }
        TileMeaning whole = tile_whole_range(c, dim, entry->span);
        add_range(c, access, d, whole.range, entry->span);
        return true;
    }
    if (entry->kind == TILE_EXPR_NEWAXIS) return tile_fail(c, NEWAXIS_TENSOR, entry->span), false;
    TileMeaning m = tile_check_expr(c, entry);
    if (tile_is_error(&m)) return false;
    if (m.kind == TILE_MEANING_RANGE) {
        if (full) return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
        add_range(c, access, d, m.range, entry->span);
        return true;
    }
    bool tile = m.kind == TILE_MEANING_VALUE && m.rank > 0 && tile_scalar_is_int((TileScalar)m.scalar);
    if (tile && m.rank == 1 && full && access->gather_axis < 0)
        return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK), false;
    if (tile && m.rank == 1) return add_gather(c, access, d, m, entry->span);
    if (tile)
        return tile_fail(c, BAD_RANK, entry->span, tile_span_text(c, entry->span), "1 as an index (`gather` takes any)",
                         tile_meaning_words(c, &m)),
               false;
    TileMeaning index = m;
    index.valid = NULL;
    const TileSum *sum = tile_integer_of(c, index, entry->span, "an index", false);
    if (!sum || !check_inside(c, access, d, sum, entry)) return false;
    index = tile_sum_meaning(sum);
    index.valid = m.valid;
    add_integer(c, access, d, &index, entry->span);
    return true;
}

static bool check_entries(TileChecker *c, const TileExpr *expr, Access *access) {
    const TileTensor *tensor = access->tensor;
    if (expr->items.count != tensor->rank) {
        tile_fail(c, ENTRY_COUNT, expr->span, tensor->name,
                  tile_count_words(c, tensor->rank, "dimension", "dimensions"),
                  tile_count_words(c, expr->items.count, "entry", "entries"));
        return false;
    }
    bool ok = true;
    access->gather_axis = -1;
    for (unsigned d = 0; d < tensor->rank; d++) ok = add_entry(c, access, d, expr->items.items[d]) && ok;
    return ok;
}

/* ---- operands ---- */

typedef struct Operands {
    TileValue *items[4 * TILE_MAX_TENSOR_RANK + 4];
    unsigned count;
    int64_t parts[1];
    unsigned part_count;
} Operands;

static void push(Operands *operands, TileValue *value) { operands->items[operands->count++] = value; }

/* All lanes of a range that does not move store to one place, and the last one wins: it is the only one that stores. */
static TileValue *last_of_one_place(TileChecker *c, const TileRange *range, TileValue *low, TileValue *high) {
    int64_t step;
    if (tile_sum_known(&c->sums, range->step, &step) && step != 0) return low;
    const TileSum *zero = tile_sum_integer(&c->sums, 0), *one = tile_sum_integer(&c->sums, 1);
    TileValue *flat = tile_emit_binary(c, TILE_OP_EQ, tile_emit_sum(c, range->step), tile_emit_sum(c, zero));
    TileValue *last = tile_emit_binary(c, TILE_OP_SUB, high, tile_emit_sum(c, one));
    return tile_emit_select(c, flat, tile_emit_binary(c, TILE_OP_MAX, low, last), low);
}

/* Conditions empty the range of axis 0, as in a fill; where there is none they join the mask. `valid` may hold more
 * atoms than the access brought: a store that skips. */
static void add_operands(TileChecker *c, const Access *access, const TileValidity *valid, Operands *operands) {
    const TileSum *zero = tile_sum_integer(&c->sums, 0);
    TileValue *conditions = tile_emit_conditions(c, valid);
    TileValue *pending = conditions;
    for (unsigned d = 0; d < access->tensor->rank; d++) {
        if (access->kinds[d] == TILE_ACCESS_INDEX) {
            TileValue *index = tile_emit_sum(c, access->indices[d]);
            if (access->poisoned[d] && conditions)
                index = tile_emit_select(c, conditions, index, tile_emit_sum(c, zero));
            push(operands, index);
        } else if (access->kinds[d] == TILE_ACCESS_GATHER) {
            push(operands, access->gathers[d]);
        } else {
            const TileRange *range = access->ranges[d];
            const TileSum *lo, *hi;
            tile_valid_bounds(c, valid, access->axis_of[d], &lo, &hi);
            push(operands, tile_emit_sum(c, range->first));
            push(operands, tile_emit_sum(c, range->step));
            TileValue *low = tile_emit_sum(c, lo ? lo : zero), *high = tile_emit_sum(c, hi ? hi : range->size);
            push(operands, access->stores ? last_of_one_place(c, range, low, high) : low);
            if (pending && access->axis_of[d] == 0) {
                high = tile_emit_select(c, pending, high, tile_emit_sum(c, zero));
                pending = NULL;
            }
            push(operands, high);
        }
    }
    TileMeaning shape = {.kind = TILE_MEANING_VALUE, .scalar = TILE_BOOL, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    /* Intervals of a gathered axis have no range to carry them. */
    unsigned gathered = access->gather_axis >= 0 ? 1u << access->gather_axis : 0;
    const TileValidity *masked =
        tile_valid_union(c, tile_valid_masks(c, valid), tile_valid_select(c, valid, gathered, false));
    TileValue *mask = tile_emit_valid(c, masked, &shape);
    if (pending) {
        TileValue *all =
            access->rank ? tile_build_splat(tile_emitter(c), pending, tile_meaning_type(c, &shape)) : pending;
        mask = mask ? tile_emit_binary(c, TILE_OP_AND, all, mask) : all;
    }
    if (!mask) return;
    push(operands, mask);
    operands->parts[operands->part_count++] = TILE_PARTS_MASK;
}

static unsigned access_attributes(const Access *access, const Operands *operands, TileAttribute *attributes) {
    attributes[0] =
        (TileAttribute){.key = TILE_ATTRIBUTE_ACCESS, .count = access->tensor->rank, .integers = access->kinds};
    attributes[1] =
        (TileAttribute){.key = TILE_ATTRIBUTE_PARTS, .count = operands->part_count, .integers = operands->parts};
    return operands->part_count ? 2 : 1;
}

/* ---- loads ---- */

static TileMeaning emit_load(TileChecker *c, Access *access) {
    Operands operands = {0};
    TileAttribute attributes[2];
    push(&operands, access->tensor->value);
    tile_emit_at(c, access->span);
    add_operands(c, access, access->valid, &operands);
    TileMeaning shape = {
        .kind = TILE_MEANING_VALUE, .scalar = (uint8_t)access->tensor->scalar, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    const TileType *type = tile_meaning_type(c, &shape);
    unsigned count = access_attributes(access, &operands, attributes);
    tile_emit_at(c, access->span);
    TileOp *op =
        tile_build_op(tile_emitter(c), TILE_OP_LOAD_TILE, operands.items, operands.count, attributes, count, &type, 1);
    return tile_value_meaning(c, tile_op_result(op, 0), access->extent, access->valid);
}

static bool fail_host_access(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_HOST_ACCESS, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "what stands here is computed before anything runs; a `grid` before this one may store what "
                         "its programs need, to a `temp`");
    tile_report(c, d);
    return false;
}

static bool may_read(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    if (!c->in_grid) return fail_host_access(c, tensor, span);
    if (tensor->access != TILE_ACCESS_OUT) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_WRITE_ONLY, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, tensor->span, "`inout` makes it readable");
    tile_propose_inout(c, d, tensor->span, "out");
    tile_report(c, d);
    return false;
}

TileMeaning tile_check_load(TileChecker *c, const TileExpr *expr, const TileMeaning *tensor) {
    Access access = {.tensor = tensor->tensor, .span = expr->span};
    if (!may_read(c, tensor->tensor, expr->span) || !check_entries(c, expr, &access)) return tile_error_meaning();
    return emit_load(c, &access);
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
    return tile_value_meaning(c, tile_build_iota(tile_emitter(c), type, 0), &extent, NULL);
}

/* An index of `:` and nothing else. */
static TileExpr *whole_index(TileChecker *c, unsigned rank, TileSpan span) {
    TileExpr *index = TILE_NEW(c->arena, TileExpr);
    *index = (TileExpr){.kind = TILE_EXPR_INDEX, .span = span};
    TileExpr *colon = TILE_NEW(c->arena, TileExpr);
    *colon = (TileExpr){.kind = TILE_EXPR_COLON, .span = span};
    for (unsigned d = 0; d < rank; d++) tile_list_push(c->arena, &index->items, colon);
    return index;
}

TileMeaning tile_load_whole(TileChecker *c, const TileMeaning *tensor, TileSpan span) {
    return tile_check_load(c, whole_index(c, tensor->tensor->rank, span), tensor);
}

/* In a test a result is a tile, and its tensor can be indexed as in a kernel. */
static bool indexes_tensor(const TileExpr *expr, const TileMeaning *m) {
    bool axes = true;
    for (size_t i = 0; i < expr->items.count; i++)
        axes =
            axes && (expr->items.items[i]->kind == TILE_EXPR_COLON || expr->items.items[i]->kind == TILE_EXPR_NEWAXIS);
    return m->tensor && !axes;
}

TileMeaning tile_check_index(TileChecker *c, const TileExpr *expr) {
    TileMeaning m = tile_check_expr(c, expr->a);
    if (m.kind == TILE_MEANING_VALUE && indexes_tensor(expr, &m)) return tile_check_load(c, expr, &m);
    switch (m.kind) {
    case TILE_MEANING_ERROR: return m;
    case TILE_MEANING_TENSOR: return tile_check_load(c, expr, &m);
    case TILE_MEANING_VALUE: return add_axes(c, expr, &m);
    case TILE_MEANING_FUNCTION: return tile_check_filled(c, expr, &m);
    case TILE_MEANING_BUILTIN:
        if (strcmp(m.builtin->name, "iota") == 0) return check_iota(c, expr);
        return tile_fail(c, NOT_VALUE, expr->span, tile_meaning_words(c, &m));
    default: return tile_fail(c, NOT_INDEXABLE, expr->a->span, tile_meaning_words(c, &m));
    }
}

/* ---- stores ---- */

static bool may_write(TileChecker *c, const TileTensor *tensor, TileSpan span) {
    if (!tile_may_act(c, span, "a store")) return false;
    if (!c->in_grid) return fail_host_access(c, tensor, span);
    if (tensor->access != TILE_ACCESS_IN) return true;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_READ_ONLY, span, tensor->name);
    tile_diagnostic_note(c->diagnostics, d, tensor->span, "`out` or `inout` makes it writable");
    tile_propose_inout(c, d, tensor->span, "in");
    tile_report(c, d);
    return false;
}

/* The value as the tensor's element type and the access's shape. */
static bool fit_value(TileChecker *c, const Access *access, TileMeaning *value, const TileExpr *expr) {
    TileSpan span = expr->span;
    TileScalar scalar = access->tensor->scalar;
    if (tile_is_literal(value)) *value = tile_literal_as(c, value, scalar, span);
    if (tile_is_error(value)) return false;
    if (value->scalar != scalar) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_STORE_TYPE, span,
                                          tile_meaning_words(c, value), access->tensor->name, tile_scalar_name(scalar));
        tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", tile_scalar_name(scalar), tile_bare_text(c, span));
        tile_report(c, d);
        return false;
    }
    TileMeaning shape = {.kind = TILE_MEANING_VALUE, .scalar = (uint8_t)scalar, .rank = (uint8_t)access->rank};
    memcpy(shape.extent, access->extent, sizeof access->extent);
    bool fits = value->rank == 0 || value->rank == access->rank;
    for (unsigned i = 0; fits && i < value->rank; i++)
        fits = value->extent[i] == access->extent[i] || tile_sum_is_literal(value->extent[i], 1);
    if (!fits) {
        if (value->rank == shape.rank) tile_about_shapes(c, value, &shape);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_SHAPE_MISMATCH, span,
                                          tile_meaning_words(c, &shape), tile_meaning_words(c, value));
        tile_diagnostic_note(c->diagnostics, d, access->span, "it is stored here");
        tile_propose_axis(c, d, value, expr, &shape);
        bool turned = value->rank == 2 && shape.rank == 2 && value->extent[0] == shape.extent[1] &&
                      value->extent[1] == shape.extent[0];
        if (turned) tile_diagnostic_edit(c->diagnostics, d, span, "%s.T", tile_operand_text(c, expr));
        tile_report(c, d);
        return false;
    }
    *value = tile_stretch(c, *value, access->rank, access->extent);
    return true;
}

static void emit_store(TileChecker *c, const Access *target, const TileMeaning *value, const TileValidity *valid) {
    Operands operands = {0};
    Access stored = *target, *access = &stored;
    stored.stores = !tile_valid_masks(c, valid);
    TileAttribute attributes[2];
    tile_emit_at(c, access->span);
    push(&operands, access->tensor->value);
    push(&operands, tile_emit_value(c, value));
    add_operands(c, access, valid, &operands);
    unsigned count = access_attributes(access, &operands, attributes);
    tile_emit_at(c, access->span);
    tile_build_op(tile_emitter(c), TILE_OP_STORE_TILE, operands.items, operands.count, attributes, count, NULL, 0);
}

/* Is the value valid wherever the destination is? Else `valid` becomes where both are, if that is what `skip` asks
 * for. */
static bool check_covers(TileChecker *c, const Access *access, const TileMeaning *value, const TileExpr *expr,
                         bool skip, const TileValidity **valid) {
    const TileValidity *within = tile_valid_union(c, access->valid, access->implied);
    const TileValidEntry *missing = tile_valid_missing(value->valid, within);
    if (missing && !skip) {
        tile_about_atom(c, missing->atom);
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_STORE, expr->span,
                                          access->tensor->name, tile_atom_words(c, missing->atom));
        tile_diagnostic_note(c->diagnostics, d, missing->atom->span,
                             "what may be invalid begins here; `else skip` leaves those elements as they were");
        TileSpan place = missing->where.file ? missing->where : expr->span;
        tile_diagnostic_edit(c->diagnostics, d, place, "(%s else 0)", tile_span_text(c, place));
        tile_report(c, d);
        return false;
    }
    if (missing) *valid = tile_valid_union(c, *valid, value->valid);
    return true;
}

/* Do all lanes along this dimension certainly stand at one element? */
static bool lanes_meet(TileChecker *c, const Access *access, unsigned d) {
    int64_t step;
    switch (access->kinds[d]) {
    case TILE_ACCESS_RANGE: return tile_sum_known(&c->sums, access->ranges[d]->step, &step) && step == 0;
    case TILE_ACCESS_GATHER: return access->agree[d];
    default: return false;
    }
}

static void report_meeting(TileChecker *c, TileSpan span) {
    if (!tile_warns(c, TILE_WARN_LANES_MEET)) return;
    TileDiagnostic *diagnostic = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_LANES_MEET, span);
    tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0},
                         "`sum`, `max` and the like make one value of the lanes; `atomic_add` adds each of them");
    tile_report(c, diagnostic);
}

/* Of lanes that store different values to one element: which of them stays is up to the target. */
static void warn_of_meeting(TileChecker *c, const Access *access, const TileMeaning *value) {
    for (unsigned d = 0; d < access->tensor->rank; d++) {
        if (access->kinds[d] == TILE_ACCESS_INDEX || !lanes_meet(c, access, d)) continue;
        unsigned axis = (unsigned)access->axis_of[d];
        bool alone = tile_sum_is_literal(access->extent[axis], 1), other = false;
        for (unsigned k = 0; k < access->tensor->rank; k++)
            other = other || (access->kinds[k] == TILE_ACCESS_GATHER && (unsigned)access->axis_of[k] == axis &&
                              !lanes_meet(c, access, k));
        if (alone || other || tile_lanes_agree(value, axis)) continue;
        report_meeting(c, access->span);
        return;
    }
}

static void store(TileChecker *c, const Access *access, TileMeaning value, const TileExpr *expr, bool skip) {
    const TileValidity *valid = access->valid;
    TileMeaning given = value;
    if (!fit_value(c, access, &value, expr)) return;
    warn_of_meeting(c, access, &given);
    if (check_covers(c, access, &value, expr, skip, &valid)) emit_store(c, access, &value, valid);
}

static bool target_access(TileChecker *c, const TileExpr *target, Access *access) {
    TileMeaning m = target->kind == TILE_EXPR_INDEX ? tile_check_expr(c, target->a) : tile_check_expr(c, target);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_TENSOR || target->kind != TILE_EXPR_INDEX) {
        tile_fail(c, NOT_ASSIGNABLE, target->span, tile_meaning_words(c, &m));
        return false;
    }
    *access = (Access){.tensor = m.tensor, .span = target->span};
    return may_write(c, m.tensor, target->span) && check_entries(c, target, access);
}

void tile_check_store(TileChecker *c, const TileExpr *target, TileMeaning value, const TileExpr *value_expr,
                      const TileValidity *loaded, bool skip) {
    Access access;
    if (!target_access(c, target, &access) || tile_is_error(&value)) return;
    access.implied = tile_valid_union(c, access.implied, loaded);
    store(c, &access, value, value_expr, skip);
}

/* ---- gather and scatter ---- */

/* The indices, broadcast together and laid out as one axis; *meeting is the set of axes along which they are equal. */
static bool check_flat_indices(TileChecker *c, const TileExpr *call, unsigned first, Access *access, TileMeaning *shape,
                               unsigned *meeting) {
    const TileTensor *tensor = access->tensor;
    TileMeaning indices[TILE_MAX_TENSOR_RANK], given[TILE_MAX_TENSOR_RANK];
    if (call->arguments.count != first + tensor->rank) {
        tile_fail(c, ENTRY_COUNT, call->span, tensor->name,
                  tile_count_words(c, tensor->rank, "dimension", "dimensions"),
                  tile_count_words(c, call->arguments.count - first, "entry", "entries"));
        return false;
    }
    for (unsigned d = 0; d < tensor->rank; d++) {
        const TileExpr *expr = call->arguments.items[first + d].value;
        TileMeaning m = tile_check_value(c, expr);
        if (tile_is_error(&m)) return false;
        m = tile_as_value(c, m, expr->span);
        if (!tile_scalar_is_int((TileScalar)m.scalar))
            return tile_fail(c, NOT_INTEGER, expr->span, "an index", tile_meaning_words(c, &m)), false;
        given[d] = tile_convert(c, m, TILE_I64, expr->span);
        indices[d] = sound_index(c, given[d]);
    }
    tile_emit_at(c, call->span);
    if (!tile_unify_shapes(c, indices, tensor->rank, call->span)) return false;
    *shape = indices[0];
    if (shape->rank == 0)
        return tile_fail(c, BAD_RANK, call->span, "the indices of a gather", "at least 1", "integers"), false;
    int64_t lanes = tile_type_lanes(tile_meaning_type(c, shape));
    for (unsigned axis = 0; axis < shape->rank; axis++) {
        bool agree = !tile_sum_is_literal(shape->extent[axis], 1);
        for (unsigned d = 0; d < tensor->rank; d++) agree = agree && tile_lanes_agree(&given[d], axis);
        if (agree) *meeting |= 1u << axis;
    }
    TileValue *mask = NULL;
    for (unsigned d = 0; d < tensor->rank; d++) {
        TileValue *ok = index_mask(c, &indices[d], tensor->dims[d]);
        mask = mask ? tile_emit_binary(c, TILE_OP_AND, mask, ok) : ok;
        access->implied = tile_valid_union(c, access->implied, indices[d].valid);
        access->kinds[d] = TILE_ACCESS_GATHER;
        access->gathers[d] = tile_build_reshape(tile_emitter(c), indices[d].value, 1, &lanes);
    }
    access->rank = 1;
    access->extent[0] = tile_sum_integer(&c->sums, lanes);
    access->gather_axis = 0;
    const char *words = tile_arena_format(c->arena, "the indices outside `%s`", tensor->name);
    static const int8_t axes[] = {0, 1, 2, 3, 4};
    TileAtom *atom = tile_atom_mask(c, mask, mask, NULL, NULL, call->span, words);
    shape->valid = tile_valid_add(c, NULL, atom, axes, call->span);
    TileValue *flat = tile_build_reshape(tile_emitter(c), mask, 1, &lanes);
    access->valid =
        tile_valid_add(c, NULL, tile_atom_mask(c, flat, flat, NULL, NULL, call->span, words), axes, call->span);
    return true;
}

static bool tensor_argument(TileChecker *c, const TileExpr *call, Access *access) {
    if (!call->arguments.count) return tile_report_count(c, call->span, "gather", 2, 9, 0), false;
    TileMeaning m = tile_check_expr(c, call->arguments.items[0].value);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_TENSOR) {
        tile_fail(c, NOT_TENSOR, call->arguments.items[0].value->span, tile_meaning_words(c, &m));
        return false;
    }
    *access = (Access){.tensor = m.tensor, .span = call->span};
    return true;
}

TileMeaning tile_check_gather(TileChecker *c, const TileExpr *call) {
    Access access;
    TileMeaning shape;
    if (!tensor_argument(c, call, &access) || !may_read(c, access.tensor, call->span)) return tile_error_meaning();
    unsigned meeting = 0;
    if (!check_flat_indices(c, call, 1, &access, &shape, &meeting)) return tile_error_meaning();
    TileMeaning flat = emit_load(c, &access);
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < shape.rank; i++) extent[i] = tile_extent_value(c, shape.extent[i]);
    TileValue *value = tile_build_reshape(tile_emitter(c), flat.value, shape.rank, extent);
    return tile_value_meaning(c, value, shape.extent, shape.valid);
}

void tile_check_scatter(TileChecker *c, const TileExpr *call) {
    Access access;
    TileMeaning shape;
    if (!tensor_argument(c, call, &access) || !may_write(c, access.tensor, call->span)) return;
    if (call->arguments.count < 2) {
        tile_report_count(c, call->span, "scatter", 3, 10, (unsigned)call->arguments.count);
        return;
    }
    const TileExpr *value_expr = call->arguments.items[1].value;
    TileMeaning value = tile_check_value(c, value_expr);
    unsigned meeting = 0;
    if (tile_is_error(&value) || !check_flat_indices(c, call, 2, &access, &shape, &meeting)) return;
    TileMeaning given = value;
    Access wide = access;
    wide.rank = shape.rank;
    memcpy(wide.extent, shape.extent, sizeof wide.extent);
    if (!fit_value(c, &wide, &value, value_expr)) return;
    if (tile_valid_missing(value.valid, tile_valid_union(c, shape.valid, access.implied))) {
        tile_fail_invalid(c, &value, value_expr, "the value of a scatter");
        return;
    }
    bool differ = false;
    for (unsigned axis = 0; axis < shape.rank; axis++)
        differ = differ || (meeting >> axis & 1u && !tile_lanes_agree(&given, axis));
    if (differ) report_meeting(c, call->span);
    int64_t lanes = tile_extent_value(c, access.extent[0]);
    TileValue *flat = tile_build_reshape(tile_emitter(c), tile_emit_value(c, &value), 1, &lanes);
    TileMeaning stored = tile_value_meaning(c, flat, access.extent, NULL);
    emit_store(c, &access, &stored, access.valid);
}

void tile_store_whole(TileChecker *c, TileTensor *tensor, TileMeaning value, const TileExpr *expr) {
    Access access = {.tensor = tensor, .span = expr->span};
    if (check_entries(c, whole_index(c, tensor->rank, expr->span), &access)) store(c, &access, value, expr, false);
}

/* ---- atomics ---- */

/* f8 is not computed with, and a bool is no number. */
static bool takes_atomics(TileScalar scalar) {
    return scalar != TILE_BOOL && !(tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) < 16);
}

/* A value of an atomic op: as a store's, `else skip` included. */
static bool check_update(TileChecker *c, const Access *access, const TileExpr *expr, TileMeaning *value,
                         const TileValidity **valid) {
    bool skip = expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_ELSE && expr->b->kind == TILE_EXPR_SKIP;
    if (skip) expr = expr->a;
    *value = tile_check_value(c, expr);
    if (tile_is_error(value) || !fit_value(c, access, value, expr)) return false;
    return check_covers(c, access, value, expr, skip, valid);
}

/* What the access of the target may lack, the old values lack: there it is the call that `else` stands behind. */
static const TileValidity *brought_by(TileChecker *c, const TileValidity *valid, TileSpan target, TileSpan call) {
    if (!valid) return NULL;
    size_t size = sizeof *valid + valid->count * sizeof *valid->entries;
    TileValidity *moved = tile_arena_copy(c->arena, valid, size);
    for (unsigned i = 0; i < moved->count; i++)
        if (memcmp(&moved->entries[i].where, &target, sizeof target) == 0) moved->entries[i].where = call;
    return moved;
}

TileMeaning tile_check_atomic(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    unsigned count = builtin->kind == TILE_UPDATE_CAS ? 3 : 2;
    if (!tile_check_arguments(c, call, count, count, NULL)) return tile_error_meaning();
    const TileExpr *target = call->arguments.items[0].value;
    Access access;
    if (!target_access(c, target, &access) || !may_read(c, access.tensor, target->span)) return tile_error_meaning();
    if (!takes_atomics(access.tensor->scalar))
        return tile_fail(c, BAD_ARGUMENT, target->span, builtin->name,
                         "elements that are integers or floats of 16 bits and more",
                         tile_scalar_name(access.tensor->scalar));
    const TileValidity *valid = access.valid;
    TileMeaning values[2]; /* the new one last in the text, first in the op */
    for (unsigned i = 0; i + 1 < count; i++)
        if (!check_update(c, &access, call->arguments.items[1 + i].value, &values[i], &valid))
            return tile_error_meaning();
    Operands operands = {0};
    TileAttribute attributes[3];
    tile_emit_at(c, call->span);
    push(&operands, access.tensor->value);
    for (unsigned i = count - 1; i-- > 0;) push(&operands, tile_emit_value(c, &values[i]));
    add_operands(c, &access, valid, &operands);
    unsigned attribute_count = access_attributes(&access, &operands, attributes);
    attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_UPDATE, .integer = builtin->kind};
    tile_emit_at(c, call->span);
    TileOp *op = tile_build_op(tile_emitter(c), TILE_OP_ATOMIC_TILE, operands.items, operands.count, attributes,
                               attribute_count, NULL, 1);
    return tile_value_meaning(c, tile_op_result(op, 0), access.extent, brought_by(c, valid, target->span, call->span));
}
