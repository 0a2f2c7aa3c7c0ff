/* Accesses to tensors whose elements are packed: loads and stores of their bytes, which a tensor of u8 holds.
 *
 * Along the last axis two elements share a byte. A range that begins at an even element and has an even extent is a range
 * of bytes; its lanes that are valid lie in the bytes from the first such lane's to the last one's, and half a byte more
 * than is valid may be read there. An element, or elements by an index tile, are bytes that are shifted. A store of half a
 * byte would write the other half, too, which may be another program's: so only whole bytes are stored, and the half
 * behind the last of an odd number of elements, which is 0. */
#include "parser/check/emit.h"
#include "parser/check/formats.h"
#include "parser/check/meaning.h"
#include "parser/check/packed.h"
#include "parser/check/packed_access.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/stand_in.h"
#include "parser/check/validity.h"

#include <string.h>

static unsigned last_of(const TileAccessed *access) { return access->tensor->rank - 1; }

static bool is_packed(const TileAccessed *access) { return tile_format_is_packed(access->tensor->format); }

/* ---- what is allowed ---- */

static TileDiagnostic *report(TileChecker *c, TileSpan span, const char *message) {
    return tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PACKED, span, message);
}

/* Why the range is none of whole bytes; NULL if it is one. */
static const char *why_not_bytes(TileChecker *c, const TileRange *range) {
    int64_t size, step;
    if (!tile_sum_known(&c->sums, range->step, &step) || step != 1) return "its step is not 1";
    if (!tile_sum_known(&c->sums, range->size, &size) || size % 2) return "its extent is not even";
    if (tile_sum_is_even(tile_sum_resolve(&c->sums, range->first))) return NULL;
    return tile_arena_format(c->arena, "its start, %s, is not known to be even", tile_sum_words(c, range->first));
}

bool tile_packed_check_entries(TileChecker *c, const TileAccessed *access, const TileExpr *entry) {
    unsigned d = last_of(access);
    if (!is_packed(access)) return true;
    if (access->rank == TILE_MAX_TILE_RANK && access->kinds[d] == TILE_ACCESS_RANGE)
        return tile_fail(c, RANK_LIMIT, entry->span, (int)TILE_MAX_TILE_RANK - 1), false;
    const char *why = access->kinds[d] == TILE_ACCESS_RANGE ? why_not_bytes(c, access->ranges[d]) : NULL;
    if (!why) return true;
    tile_about_sum(c, access->ranges[d]->first);
    tile_about_sum(c, access->ranges[d]->size);
    TileDiagnostic *diagnostic =
        report(c, entry->span, tile_arena_format(c->arena, "`%s` has two elements in a byte, and this range does not consist of bytes: %s",
                                                 access->tensor->name, why));
    if (access->target)
        tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0},
                             "a program that stores half of a byte would write the other half, too");
    else if (entry->kind != TILE_EXPR_COLON) {
        tile_diagnostic_note(c->diagnostics, diagnostic, (TileSpan){0}, "a load by an index tile takes any elements");
        tile_diagnostic_edit(c->diagnostics, diagnostic, entry->span, "%s.idx", tile_operand_text(c, entry));
    }
    tile_report(c, diagnostic);
    return false;
}

/* Does the interval end with a byte? The half behind the tensor's last element is nobody's, where the lanes are those elements:
 * of x[n + 1], whose lanes are stored to y[n], the last ones end before. */
static bool ends_with_byte(TileChecker *c, const TileAccessed *access, const TileAtom *atom) {
    const TileSum *dim = access->tensor->dims[last_of(access)], *limit = atom->dim ? atom->dim : atom->limit;
    bool begins = !atom->lo || tile_sum_is_even(tile_sum_resolve(&c->sums, atom->lo));
    bool last = limit == dim && tile_sum_resolve(&c->sums, atom->first) ==
                                    tile_sum_resolve(&c->sums, access->ranges[last_of(access)]->first);
    if (!atom->hi || last || tile_sum_is_even(tile_sum_resolve(&c->sums, atom->hi))) return begins;
    bool even = limit && tile_sum_is_even(tile_sum_resolve(&c->sums, limit));
    return begins && even && tile_sum_is_even(tile_sum_resolve(&c->sums, atom->first));
}

/* Why the store may write half a byte; NULL if it does not. */
static const char *why_half_stored(TileChecker *c, const TileAccessed *access, const TileValidity *valid) {
    unsigned d = last_of(access);
    if (access->kinds[d] != TILE_ACCESS_RANGE) return "an element is half of one";
    int axis = access->axis_of[d];
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        bool along = entry->atom->kind == TILE_ATOM_INTERVAL && entry->axes[0] == axis, masked = false;
        for (int k = 0; entry->atom->kind == TILE_ATOM_MASK && k < TILE_MAX_TILE_RANK; k++)
            masked = masked || entry->axes[k] == axis;
        if (masked) return "a mask may choose one of the two";
        if (along && !ends_with_byte(c, access, entry->atom)) return "the lanes that are stored may begin or end within one";
    }
    return NULL;
}

bool tile_packed_may_store(TileChecker *c, const TileAccessed *access, const TileValidity *valid) {
    const TileTensor *tensor = access->tensor;
    if (tensor->format == TILE_FORMAT_PLAIN) return true;
    const char *why = is_packed(access) ? why_half_stored(c, access, valid) : NULL;
    if (!why && is_packed(access)) return true;
    TileDiagnostic *d;
    if (why) {
        d = report(c, access->span, tile_arena_format(c->arena, "`%s` has two elements in a byte, and only whole bytes are stored: %s",
                                                      tensor->name, why));
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "a program that stores the other half would write this one, too");
    } else {
        d = report(c, access->span,
                   tile_arena_format(c->arena, "`%s` has elements of %s, which are only loaded", tensor->name,
                                     tile_format_name(tensor->format)));
        tile_diagnostic_note(c->diagnostics, d, tensor->span, "a tensor of u8 takes the exponents, which are 127 more than those of 2");
    }
    tile_report(c, d);
    return false;
}

/* ---- bytes ---- */

void tile_packed_bytes(TileChecker *c, const TileAccessed *access, TileAccessed *bytes) {
    unsigned d = last_of(access);
    TileTensor *tensor = tile_arena_copy(c->arena, access->tensor, sizeof *tensor);
    tensor->scalar = TILE_U8;
    tensor->format = TILE_FORMAT_PLAIN;
    *bytes = *access;
    bytes->tensor = tensor;
    if (!is_packed(access)) return;
    if (access->kinds[d] == TILE_ACCESS_INDEX) {
        bytes->indices[d] = tile_sum_half(&c->sums, access->indices[d]);
    } else if (access->kinds[d] == TILE_ACCESS_GATHER) {
        TileValue *one = tile_build_integer(tile_emitter(c), access->gathers[d]->type, 1);
        bytes->gathers[d] = tile_emit_binary(c, TILE_OP_SHR, access->gathers[d], one);
    } else {
        TileRange *range = tile_arena_copy(c->arena, access->ranges[d], sizeof *range);
        range->first = tile_sum_half(&c->sums, range->first);
        range->size = tile_sum_half(&c->sums, range->size);
        bytes->ranges[d] = range;
        bytes->extent[access->axis_of[d]] = range->size;
        bytes->halved = true;
    }
}

/* ---- loads ---- */

/* The shift that makes the element's half the lower one: 0 or 4, for a scalar index or each of an index tile. */
static TileValue *shift_of(TileChecker *c, const TileAccessed *access, const TileType *loaded) {
    unsigned d = last_of(access);
    TileSumTable *t = &c->sums;
    if (access->kinds[d] == TILE_ACCESS_INDEX) {
        const TileSum *odd = tile_sum_remainder(t, access->indices[d], tile_sum_integer(t, 2));
        TileValue *shift = tile_emit_sum(c, tile_sum_multiply(t, odd, tile_sum_integer(t, 4)));
        shift = tile_build_convert(tile_emitter(c), shift, TILE_U8);
        return loaded->rank ? tile_build_splat(tile_emitter(c), shift, loaded) : shift;
    }
    TileValue *index = access->gathers[d];
    TileValue *odd = tile_emit_binary(c, TILE_OP_AND, index, tile_build_integer(tile_emitter(c), index->type, 1));
    odd = tile_emit_binary(c, TILE_OP_SHL, odd, tile_build_integer(tile_emitter(c), index->type, 2));
    odd = tile_build_convert(tile_emitter(c), odd, TILE_U8);
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < loaded->rank; i++) extent[i] = (int)i == access->gather_axis ? loaded->extent[i] : 1;
    odd = tile_build_reshape(tile_emitter(c), odd, loaded->rank, extent);
    return tile_build_broadcast(tile_emitter(c), odd, loaded->extent);
}

TileMeaning tile_packed_decode(TileChecker *c, const TileAccessed *access, const TileMeaning *loaded) {
    tile_emit_at(c, access->span);
    TileValue *value = tile_emit_value(c, loaded);
    TileFormat format = access->tensor->format;
    if (format == TILE_FORMAT_F8E8M0)
        value = tile_power_value(c, value);
    else if (access->kinds[last_of(access)] == TILE_ACCESS_RANGE)
        value = tile_unpack_value(c, value, format);
    else
        value = tile_unpack_low(c, tile_emit_binary(c, TILE_OP_SHR, value, shift_of(c, access, value->type)), format);
    return tile_value_meaning(c, value, access->extent, loaded->valid);
}

/* ---- stores ---- */

TileMeaning tile_packed_encode(TileChecker *c, const TileAccessed *access, const TileAccessed *bytes, TileMeaning value,
                               const TileValidity *valid) {
    int axis = access->axis_of[last_of(access)];
    const TileValidity *along = tile_valid_select(c, valid, 1u << axis, false);
    bool odd = false;
    for (unsigned i = 0; along && i < along->count; i++) {
        const TileSum *hi = along->entries[i].atom->hi;
        odd = odd || (hi && !tile_sum_is_even(tile_sum_resolve(&c->sums, hi)));
    }
    tile_emit_at(c, access->span);
    TileValue *x = tile_emit_value(c, &value);
    if (odd) {
        TileMeaning zero = tile_bits_meaning(access->tensor->scalar, 0);
        x = tile_emit_filled(c, &value, along, tile_emit_value(c, &zero));
    }
    return tile_value_meaning(c, tile_pack_value(c, x, access->tensor->format), bytes->extent, NULL);
}
