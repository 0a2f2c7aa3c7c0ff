/* Gathers and scatters by flat index tiles, and atomics. */
#include "parser/check/access.h"
#include "parser/check/arguments.h"
#include "parser/check/bounds.h"
#include "parser/check/claim.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/expression.h"
#include "parser/check/formats.h"
#include "parser/check/element.h"
#include "parser/check/forms.h"
#include "parser/check/lacks.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/meet.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scatter.h"
#include "parser/check/scope.h"
#include "parser/check/shape.h"
#include "parser/check/type.h"
#include "parser/check/validity.h"

#include <string.h>

/* ---- gather and scatter ---- */

/* Which of the elements that the indices select are proven to exist. */
typedef enum Inside {
    INSIDE_NOT,
    INSIDE_CHOSEN, /* those that a branch around chooses; the others become 0 */
    INSIDE_ALL,
} Inside;

/* An index of a gather or scatter. */
typedef struct FlatIndex {
    TileMeaning given, value; /* as it is written; of the common shape, where what is not valid is outside */
    TileSpan span;
    bool inside; /* it is proven to be */
} FlatIndex;

static const int8_t own_axes[] = {0, 1, 2, 3, 4};

/* Adds what the index may select outside of the dimension, with what is known of it. */
static const TileValidity *add_outside(TileChecker *c, const TileValidity *valid, const FlatIndex *index, TileValue *ok,
                                       const TileSum *dim, TileSpan span) {
    TileAtom *atom = tile_atom_mask(c, ok, index->value.value, dim, index->value.valid, index->span, NULL);
    TileBounds bounds = tile_bounds_of(c, &index->given);
    const TileSum *element = tile_element_sum(c, &index->given);
    size_t known = tile_claim_assume_chosen(c);
    tile_keep_known(c, atom, element ? element : bounds.lowest, element ? element : bounds.highest);
    tile_facts_restore(c, known);
    return tile_valid_add(c, valid, atom, own_axes, span);
}

/* Where the access is valid: over the axes of the indices' shape, and over the one axis of what is accessed. */
static void mark_accessed(TileChecker *c, TileAccessed *access, const FlatIndex *indices, Inside where,
                          TileMeaning *shape, TileSpan span) {
    const TileTensor *tensor = access->tensor;
    const char *words = tile_arena_format(c->arena, "the indices outside `%s`", tensor->name);
    int64_t lanes = tile_type_lanes(tile_meaning_type(c, shape));
    const TileValidity *valid = NULL, *found = NULL, *inside = NULL;
    TileValue *mask = NULL;
    for (unsigned d = 0; d < tensor->rank; d++) {
        const TileMeaning *index = &indices[d].value;
        valid = tile_valid_union(c, valid, index->valid);
        access->kinds[d] = TILE_ACCESS_GATHER;
        access->gathers[d] = tile_build_reshape(tile_emitter(c), index->value, 1, &lanes);
        if (where == INSIDE_ALL) continue;
        if (indices[d].inside) {
            inside = tile_valid_union(c, inside, index->valid);
            continue;
        }
        TileValue *ok = tile_access_index_mask(c, index, tensor->dims[d]);
        mask = mask ? tile_emit_binary(c, TILE_OP_AND, mask, ok) : ok;
        found = add_outside(c, found, &indices[d], ok, tensor->dims[d], span);
    }
    access->rank = 1;
    access->extent[0] = tile_sum_integer(&c->sums, lanes);
    access->gather_axis = 0;
    shape->valid = where == INSIDE_NOT ? tile_valid_union(c, found, valid) : valid; /* an index that is invalid stays so, along its own axes */
    TileValue *there_is = where == INSIDE_ALL ? NULL : tile_emit_valid(c, inside, shape);
    if (there_is) mask = tile_emit_binary(c, TILE_OP_AND, there_is, mask);
    if (where == INSIDE_ALL) {
        mask = tile_emit_valid(c, valid, shape);
        if (!mask) return;
    } else {
        access->implied = valid;
    }
    TileValue *flat = tile_build_reshape(tile_emitter(c), mask, 1, &lanes);
    const TileValidity *there =
        tile_valid_add(c, NULL, tile_atom_mask(c, flat, flat, NULL, NULL, span, words), own_axes, span);
    *(where == INSIDE_CHOSEN ? &access->chosen : &access->valid) = there;
}

/* Integers for indices: they index the tensor itself. */
static void fail_scalar_indices(TileChecker *c, const TileExpr *call, unsigned first, const TileTensor *tensor) {
    const char *name = tile_callee_name(call);
    TileSpan all = call->arguments.items[first].value->span;
    all.end = call->arguments.items[call->arguments.count - 1].value->span.end;
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BAD_RANK, all, name, "at least 1 of one index", "integers");
    if (first == 1)
        tile_diagnostic_edit(c->diagnostics, d, call->span, "%s[%s]", tensor->name, tile_span_text(c, all));
    else
        tile_diagnostic_edit(c->diagnostics, d, call->span, "%s[%s] = %s", tensor->name, tile_span_text(c, all),
                             tile_span_text(c, call->arguments.items[1].value->span));
    tile_report(c, d);
}

static bool check_flat_index(TileChecker *c, const TileExpr *call, const TileExpr *expr, TileMeaning m, FlatIndex *index) {
    if (tile_is_error(&m)) return false;
    m = tile_as_value(c, m, expr->span);
    if (!tile_scalar_is_int((TileScalar)m.scalar)) {
        TileDiagnostic *diagnostic = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_INTEGER, expr->span, "an index",
                                                   tile_meaning_words(c, &m));
        diagnostic = tile_report(c, diagnostic);
        if (call) tile_note_forms(c, diagnostic, call, tile_callee_name(call));
        return false;
    }
    *index = (FlatIndex){.given = tile_convert(c, m, TILE_I64, expr->span), .span = expr->span};
    return true;
}

/* The indices, broadcast to a common shape and reshaped to one axis; *meeting is the set of axes along which they are
 * all equal. */
static bool join_flat_indices(TileChecker *c, FlatIndex *indices, TileAccessed *access, TileMeaning *shape, unsigned *meeting) {
    const TileTensor *tensor = access->tensor;
    Inside where = INSIDE_ALL;
    TileMeaning values[TILE_MAX_TENSOR_RANK];
    for (unsigned d = 0; d < tensor->own; d++)
        indices[d] = (FlatIndex){.given = tile_sum_meaning(c->programs[d]), .span = access->span, .inside = true};
    for (unsigned d = tensor->own; d < tensor->rank; d++) {
        FlatIndex *index = &indices[d];
        index->inside = tile_elements_inside(c, &index->given, tensor->dims[d]);
        if (where == INSIDE_ALL && !index->inside) where = INSIDE_CHOSEN;
        if (where == INSIDE_CHOSEN && !tile_chosen_inside(c, &index->given, tensor->dims[d])) where = INSIDE_NOT;
    }
    for (unsigned d = 0; d < tensor->rank; d++)
        values[d] = indices[d].inside ? indices[d].given : tile_access_sound_index(c, indices[d].given);
    tile_emit_at(c, access->span);
    if (!tile_unify_shapes(c, values, tensor->rank, access->span)) return false;
    *shape = values[0];
    if (shape->rank == 0) return true;
    for (unsigned axis = 0; axis < shape->rank; axis++) {
        bool agree = !tile_sum_is_literal(shape->extent[axis], 1);
        for (unsigned d = 0; d < tensor->rank; d++) agree = agree && tile_lanes_agree(&indices[d].given, axis);
        if (agree) *meeting |= 1u << axis;
    }
    for (unsigned d = 0; d < tensor->rank; d++) indices[d].value = values[d];
    mark_accessed(c, access, indices, where, shape, access->span);
    return true;
}

static bool check_flat_indices(TileChecker *c, const TileExpr *call, unsigned first, TileAccessed *access, TileMeaning *shape,
                               unsigned *meeting) {
    const TileTensor *tensor = access->tensor;
    FlatIndex indices[TILE_MAX_TENSOR_RANK] = {0};
    if (call->arguments.count != first + tensor->rank - tensor->own) {
        tile_fail(c, ENTRY_COUNT, call->span, tensor->name,
                  tile_count_words(c, tensor->rank - tensor->own, "dimension", "dimensions"),
                  tile_count_words(c, call->arguments.count - first, "entry", "entries"));
        return false;
    }
    for (unsigned d = tensor->own; d < tensor->rank; d++) {
        const TileExpr *expr = call->arguments.items[first + d - tensor->own].value;
        if (!check_flat_index(c, call, expr, tile_check_value(c, expr), &indices[d])) return false;
    }
    if (!join_flat_indices(c, indices, access, shape, meeting)) return false;
    if (shape->rank == 0) fail_scalar_indices(c, call, first, tensor);
    return shape->rank > 0;
}

static bool tensor_argument(TileChecker *c, const TileExpr *call, unsigned least, TileAccessed *access) {
    if (!tile_check_arguments(c, call, least, least + TILE_MAX_TENSOR_RANK - 1, NULL)) return false;
    TileMeaning m = tile_check_expr(c, call->arguments.items[0].value);
    if (tile_is_error(&m)) return false;
    if (m.kind != TILE_MEANING_TENSOR) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NOT_TENSOR,
                                          call->arguments.items[0].value->span, tile_meaning_words(c, &m));
        if (m.kind == TILE_MEANING_VALUE)
            tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                                 "elements of a tile are not addressed one by one; load them from the tensor");
        tile_report(c, d);
        return false;
    }
    *access = (TileAccessed){.tensor = m.tensor, .span = call->span};
    return true;
}

/* The elements, in the shape of the indices. */
static TileMeaning load_flat(TileChecker *c, const TileAccessed *access, const TileMeaning *shape) {
    TileMeaning flat = tile_access_emit_load(c, access);
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < shape->rank; i++) extent[i] = tile_extent_value(c, shape->extent[i]);
    TileValue *value = tile_build_reshape(tile_emitter(c), flat.value, shape->rank, extent);
    return tile_value_meaning(c, value, shape->extent, shape->valid);
}

TileMeaning tile_gather_lifted(TileChecker *c, const TileExpr *expr, const TileTensor *tensor, const TileMeaning *entries) {
    TileAccessed access = {.tensor = tensor, .span = expr->span};
    FlatIndex indices[TILE_MAX_TENSOR_RANK] = {0};
    TileMeaning shape;
    unsigned meeting = 0;
    for (unsigned d = tensor->own; d < tensor->rank; d++)
        if (!check_flat_index(c, NULL, expr->items.items[d - tensor->own], entries[d - tensor->own], &indices[d]))
            return tile_error_meaning();
    bool ok = join_flat_indices(c, indices, &access, &shape, &meeting);
    return ok ? load_flat(c, &access, &shape) : tile_error_meaning();
}

TileMeaning tile_check_gather(TileChecker *c, const TileExpr *call) {
    TileAccessed access;
    TileMeaning shape;
    if (!tensor_argument(c, call, 2, &access) || !tile_access_may_read(c, access.tensor, call->span))
        return tile_error_meaning();
    unsigned meeting = 0;
    if (!check_flat_indices(c, call, 1, &access, &shape, &meeting)) return tile_error_meaning();
    return load_flat(c, &access, &shape);
}

void tile_check_scatter(TileChecker *c, const TileExpr *call) {
    TileAccessed access;
    TileMeaning shape;
    if (!tensor_argument(c, call, 3, &access) || !tile_access_may_write(c, access.tensor, call->span)) return;
    const TileExpr *value_expr = call->arguments.items[1].value;
    TileMeaning value = tile_check_value(c, value_expr);
    unsigned meeting = 0;
    if (tile_is_error(&value) || !check_flat_indices(c, call, 2, &access, &shape, &meeting)) return;
    TileMeaning given = value;
    TileAccessed wide = access;
    wide.rank = shape.rank;
    memcpy(wide.extent, shape.extent, sizeof wide.extent);
    if (!tile_access_fit_value(c, &wide, &value, value_expr)) return;
    if (tile_valid_missing(value.valid, tile_valid_union(c, shape.valid, access.implied))) {
        tile_fail_invalid(c, &value, value_expr, "the value of a scatter");
        return;
    }
    bool differ = false;
    for (unsigned axis = 0; axis < shape.rank; axis++)
        differ = differ || (meeting >> axis & 1u && !tile_lanes_agree(&given, axis));
    if (differ) tile_access_report_meeting(c, call->span);
    int64_t lanes = tile_extent_value(c, access.extent[0]);
    TileValue *flat = tile_build_reshape(tile_emitter(c), tile_emit_value(c, &value), 1, &lanes);
    TileMeaning stored = tile_value_meaning(c, flat, access.extent, NULL);
    tile_access_emit_store(c, &access, &stored, access.valid);
}

void tile_store_whole(TileChecker *c, TileTensor *tensor, TileMeaning value, const TileExpr *expr) {
    TileAccessed access = {.tensor = tensor, .span = expr->span};
    if (tile_access_check_entries(c, tile_access_whole_index(c, tensor->rank - tensor->own, expr->span), &access))
        tile_access_store(c, &access, value, expr, false);
}

/* ---- atomics ---- */

/* f8 has no arithmetic, and bool is not a number. */
static bool takes_atomics(TileScalar scalar) {
    return scalar != TILE_BOOL && !(tile_scalar_is_float(scalar) && tile_scalar_bits(scalar) < 16);
}

/* A value of an atomic op: as in a store, `else skip` is allowed. */
static bool check_update(TileChecker *c, const TileAccessed *access, int kind, const TileExpr *expr, TileMeaning *value,
                         const TileValidity **valid) {
    bool skip = expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_ELSE && expr->b->kind == TILE_EXPR_SKIP;
    if (skip) expr = expr->a;
    *value = tile_check_value(c, expr);
    if (tile_is_error(value)) return false;
    if (!tile_access_fit_value(c, access, value, expr)) {
        static const char *const folds[] = {
            [TILE_UPDATE_ADD] = "sum", [TILE_UPDATE_MAX] = "max", [TILE_UPDATE_MIN] = "min"};
        TileDiagnostic *d = tile_reported_last(c, TILE_DIAGNOSTIC_SHAPE_MISMATCH, expr->span);
        bool folded = access->rank == 0 && kind != TILE_UPDATE_CAS;
        if (folded)
            tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s(%s)", folds[kind], tile_bare_text(c, expr->span));
        return false;
    }
    return tile_access_check_covers(c, access, value, expr, skip, valid);
}

/* The old values have the atoms of the target's access: `else` follows the call. */
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
    TileAccessed access;
    if (!tile_access_target(c, target, &access) || !tile_access_may_read(c, access.tensor, target->span))
        return tile_error_meaning();
    if (access.tensor->format || !takes_atomics(access.tensor->scalar))
        return tile_fail(c, BAD_ARGUMENT, target->span, builtin->name,
                         "elements that are integers or floats of 16 bits and more",
                         tile_tensor_type_name(access.tensor));
    const TileValidity *valid = access.valid;
    TileMeaning values[2]; /* the new value is last in the text, and first in the op */
    for (unsigned i = 0; i + 1 < count; i++)
        if (!check_update(c, &access, builtin->kind, call->arguments.items[1 + i].value, &values[i], &valid))
            return tile_error_meaning();
    TileAccessOperands operands = {0};
    TileAttribute attributes[3];
    tile_emit_at(c, call->span);
    tile_access_push(&operands, access.tensor->value);
    for (unsigned i = count - 1; i-- > 0;) tile_access_push(&operands, tile_emit_value(c, &values[i]));
    tile_access_add_operands(c, &access, valid, &operands);
    unsigned attribute_count = tile_access_attributes(&access, &operands, attributes);
    attributes[attribute_count++] = (TileAttribute){.key = TILE_ATTRIBUTE_UPDATE, .integer = builtin->kind};
    tile_emit_at(c, call->span);
    TileOp *op = tile_build_op(tile_emitter(c), TILE_OP_ATOMIC_TILE, operands.items, operands.count, attributes,
                               attribute_count, NULL, 1);
    return tile_value_meaning(c, tile_op_result(op, 0), access.extent, brought_by(c, valid, target->span, call->span));
}
