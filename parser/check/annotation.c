/* Annotations: findings in words. The first finding of a place is kept; a later instance of a generic only tells whether
 * the element type is one of its generics. */
#include "parser/check/formats.h"
#include "parser/check/annotation.h"
#include "parser/check/listing.h"
#include "parser/check/meaning.h"
#include "parser/check/report.h"
#include "parser/check/validity.h"

#include "lang/scalar/scalar.h"

static void *place_key(TileSpan span) { return (void *)(uintptr_t)((uint64_t)span.begin << 32 | span.end); }

const TileAnnotation *tile_annotation_of(const TileAnnotations *annotations, TileSpan span) {
    size_t at = (size_t)(uintptr_t)tile_map_get(&annotations->places, place_key(span));
    return at && span.file == annotations->file ? &annotations->list.items[at - 1] : NULL;
}

/* "[BM, BN]" */
static void add_extents(TileText *text, const TileSum *const *extents, unsigned rank) {
    for (unsigned i = 0; i < rank; i++) {
        tile_text_add(text, i ? ", " : "[");
        tile_sum_print(text, extents[i]);
    }
    if (rank) tile_text_add(text, "]");
}

static const char *access_word(TileAccess access) {
    switch (access) {
    case TILE_ACCESS_IN: return "in ";
    case TILE_ACCESS_OUT: return "out ";
    case TILE_ACCESS_INOUT: return "inout ";
    case TILE_ACCESS_TEMP: return "temp ";
    }
    return "";
}

/* What stands before the shape, for the scalar's name or that of a generic. */
static const char *type_words(TileChecker *c, const TileMeaning *m, const char *scalar) {
    if (m->kind == TILE_MEANING_TENSOR)
        return tile_arena_format(c->annotations->arena, "%s%s", access_word(m->tensor->access), scalar);
    if (m->kind == TILE_MEANING_VALUE) return tile_arena_format(c->annotations->arena, "%s", scalar);
    return m->kind == TILE_MEANING_RANGE ? "range"
                                         : tile_arena_format(c->annotations->arena, "%s", tile_meaning_words(c, m));
}

static const char *scalar_name(const TileMeaning *m) {
    return m->kind == TILE_MEANING_TENSOR ? tile_tensor_type_name(m->tensor) : tile_scalar_name((TileScalar)m->scalar);
}

static const char *shape_words(TileChecker *c, const TileMeaning *m) {
    TileText text = {.arena = c->annotations->arena};
    if (m->kind == TILE_MEANING_VALUE) add_extents(&text, m->extent, m->rank);
    if (m->kind == TILE_MEANING_RANGE) add_extents(&text, &m->range->size, 1);
    if (m->kind == TILE_MEANING_TENSOR) add_extents(&text, m->tensor->dims + m->tensor->own, m->tensor->rank - m->tensor->own);
    if (m->kind == TILE_MEANING_TENSOR && m->tensor->rank == m->tensor->own) tile_text_add(&text, "[]");
    return tile_text_get(&text);
}

static void add_known(TileChecker *c, TileText *text, const TileSum *sum) {
    const TileSymbol *symbol = sum->count == 1 && !sum->constant && sum->products[0].degree == 1
                                   ? sum->products[0].symbols[0]
                                   : NULL;
    int64_t known;
    if (!symbol || symbol->kind != TILE_SYMBOL_KNOWN || !symbol->name || !tile_sum_known(&c->sums, sum, &known)) return;
    const char *pair = tile_arena_format(c->arena, "%s = %lld", symbol->name, (long long)known);
    if (text->length && strstr(tile_text_get(text), pair)) return;
    tile_text_format(text, "%s%s", text->length ? ", " : "", pair);
}

/* The named constants in the shape, with the values that this instance has. */
static const char *instance_words(TileChecker *c, const TileMeaning *m) {
    TileText text = {.arena = c->annotations->arena};
    for (unsigned i = 0; m->kind == TILE_MEANING_VALUE && i < m->rank; i++) add_known(c, &text, m->extent[i]);
    if (m->kind == TILE_MEANING_RANGE) add_known(c, &text, m->range->size);
    return text.length ? tile_text_get(&text) : NULL;
}

static const char *value_words(TileChecker *c, const TileMeaning *m) {
    TileText text = {.arena = c->annotations->arena};
    uint64_t bits;
    if (m->kind == TILE_MEANING_INTEGER) return tile_arena_format(text.arena, "%lld", (long long)m->integer);
    if (m->kind == TILE_MEANING_NUMBER) return tile_arena_format(text.arena, "%.17g", m->number);
    if (m->kind != TILE_MEANING_VALUE || !tile_constant_bits(c, m, (TileScalar)m->scalar, &bits)) return NULL;
    tile_scalar_print(&text, (TileScalar)m->scalar, bits);
    return tile_text_get(&text);
}

static void add_reason(TileChecker *c, TileAnnotation *annotation, const TileAtom *atom, int axis, TileSpan where) {
    TileArena *arena = c->annotations->arena;
    const char *at = axis >= 0 ? tile_arena_format(c->arena, " (axis %d)", axis) : "";
    const char *from = where.file && where.end > where.begin
                           ? tile_arena_format(c->arena, ", since `%s`", tile_span_text(c, where))
                           : "";
    const char *line = tile_arena_format(arena, "%s%s%s", tile_atom_words(c, atom), at, from);
    for (size_t i = 0; i < annotation->invalid.count; i++)
        if (strcmp(annotation->invalid.items[i], line) == 0) return;
    tile_list_push(arena, &annotation->invalid, line);
}

static void add_validity(TileChecker *c, TileAnnotation *annotation, const TileMeaning *m) {
    const TileValidity *valid = m->kind == TILE_MEANING_VALUE ? m->valid : NULL;
    for (unsigned i = 0; valid && i < valid->count; i++) {
        const TileValidEntry *entry = &valid->entries[i];
        bool interval = entry->atom->kind == TILE_ATOM_INTERVAL;
        add_reason(c, annotation, entry->atom, interval ? entry->axes[0] : -1, entry->where);
    }
    if (m->kind == TILE_MEANING_RANGE && m->range->lanes) add_reason(c, annotation, m->range->lanes, -1, (TileSpan){0});
}

static TileAnnotation describe(TileChecker *c, const TileFinding *finding) {
    const TileMeaning *m = &finding->meaning;
    bool has_scalar = m->kind == TILE_MEANING_VALUE || m->kind == TILE_MEANING_TENSOR;
    TileAnnotation annotation = {.span = finding->span,
                                 .bound = finding->bound,
                                 .binds = finding->binds,
                                 .is_var = finding->is_var,
                                 .is_value = m->kind == TILE_MEANING_VALUE || m->kind == TILE_MEANING_RANGE,
                                 .candidate = finding->candidate,
                                 .type = type_words(c, m, has_scalar ? scalar_name(m) : ""),
                                 .shape = shape_words(c, m),
                                 .value = value_words(c, m),
                                 .instance = instance_words(c, m)};
    annotation.scalar = (uint8_t)(m->kind == TILE_MEANING_TENSOR ? m->tensor->scalar : m->scalar);
    if (finding->cost) annotation.cost = tile_arena_format(c->annotations->arena, "%s", finding->cost);
    add_validity(c, &annotation, m);
    return annotation;
}

/* Another instance of a place that has an annotation: an element type that differs as a generic does is that generic. */
static void compare(TileChecker *c, TileAnnotation *first, const TileFinding *finding) {
    const TileMeaning *m = &finding->meaning;
    if (m->kind != TILE_MEANING_VALUE && m->kind != TILE_MEANING_TENSOR) return;
    TileScalar scalar = m->kind == TILE_MEANING_TENSOR ? m->tensor->scalar : (TileScalar)m->scalar;
    if (first->generic || !first->candidate || first->candidate != finding->candidate || first->scalar == scalar) return;
    first->generic = first->candidate;
    first->type = type_words(c, m, first->generic);
    first->value = NULL;
}

void tile_annotate_item(TileChecker *c) {
    TileAnnotations *all = c->annotations;
    if (!all) return;
    for (size_t i = 0; i < c->findings.count; i++) {
        const TileFinding *finding = &c->findings.items[i];
        size_t at = (size_t)(uintptr_t)tile_map_get(&all->places, place_key(finding->span));
        if (at) {
            compare(c, &all->list.items[at - 1], finding);
            continue;
        }
        tile_list_push(all->arena, &all->list, describe(c, finding));
        tile_map_set(&all->places, place_key(finding->span), (void *)(uintptr_t)all->list.count);
    }
    c->findings.count = 0;
}
