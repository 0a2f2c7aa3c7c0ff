/* Scopes: bound names, and what ends with a scope. */
#include "parser/check/annotate.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"

uint32_t tile_now(TileChecker *c) { return ++c->clock; }

TileScopeMark tile_scope_open(TileChecker *c) {
    TileScopeMark mark = {c->bounds.count, c->vars.count,  c->atoms.count,      c->ranges.count,
                          c->loaded.count, c->cache.count, c->sums.facts.count, c->scope_start};
    c->scope_start = c->bounds.count;
    return mark;
}

void tile_scope_close(TileChecker *c, TileScopeMark mark) {
    tile_scope_cut(c, mark.bounds);
    c->vars.count = mark.vars;
    c->atoms.count = mark.atoms;
    c->ranges.count = mark.ranges;
    c->loaded.count = mark.loaded;
    c->cache.count = mark.cache;
    c->sums.facts.count = mark.facts;
    c->scope_start = mark.scope_start;
}

void tile_scope_close_names(TileChecker *c, TileScopeMark mark) {
    tile_scope_cut(c, mark.bounds);
    c->vars.count = mark.vars;
    c->sums.facts.count = mark.facts;
    c->scope_start = mark.scope_start;
}

size_t tile_facts_hide(TileChecker *c) {
    size_t known = c->sums.facts.count;
    if (known > c->grid_facts) c->sums.facts.count = c->grid_facts;
    return known;
}

void tile_facts_restore(TileChecker *c, size_t hidden) { c->sums.facts.count = hidden; }

/* A binding is large, and a program may have many: where the list grows, they stay. Those that a scope has left are used again. */
static TileBound *next_bound(TileChecker *c) {
    if (c->bounds.count < c->bounds_made) return c->bounds.items[c->bounds.count++];
    tile_list_push(c->arena, &c->bounds, tile_arena_take(c->arena, sizeof(TileBound)));
    c->bounds_made = c->bounds.count;
    return c->bounds.items[c->bounds.count - 1];
}

void tile_scope_push(TileChecker *c, TileBound bound) {
    TileMapEntry *entry = tile_map_find(&c->innermost, bound.name);
    bound.hidden = entry ? (uint32_t)(uintptr_t)entry->value : 0;
    bound.place = (uint32_t)c->bounds.count;
    if (c->annotations) tile_annotate_binding(c, bound.span, &bound.meaning, false);
    *next_bound(c) = bound;
    void *place = (void *)(uintptr_t)c->bounds.count;
    if (entry)
        entry->value = place;
    else
        tile_map_set(&c->innermost, bound.name, place);
}

void tile_scope_cut(TileChecker *c, size_t count) {
    while (c->bounds.count > count) {
        const TileBound *last = c->bounds.items[--c->bounds.count];
        tile_map_find(&c->innermost, last->name)->value = (void *)(uintptr_t)last->hidden;
    }
}

TileBound *tile_scope_find(TileChecker *c, const char *name) {
    size_t place = (size_t)(uintptr_t)tile_map_get(&c->innermost, name);
    return place > c->frame->scope_base ? c->bounds.items[place - 1] : NULL;
}

/* A name may be shadowed in an inner scope, but not bound twice in one; parameters, dimensions and tune names cannot be
 * shadowed. */
void tile_scope_bind(TileChecker *c, TileNameRef name, TileMeaning meaning, bool fixed) {
    TileBound *other = tile_scope_find(c, name.name);
    if (other && other->fixed) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NAME_FIXED, name.span, name.name);
        tile_diagnostic_note(c->diagnostics, d, other->span, "`%s` is bound here", name.name);
        tile_report(c, d);
        meaning = tile_error_meaning(); /* which of the two is meant later is unknown */
    } else if (other && other->place >= c->scope_start) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NAME_TAKEN, name.span, name.name);
        tile_diagnostic_note(c->diagnostics, d, other->span, "`%s` is bound here", name.name);
        tile_report(c, d);
    }
    tile_scope_push(c, (TileBound){.name = name.name, .meaning = meaning, .span = name.span, .fixed = fixed});
}

TileVar *tile_scope_flag(TileChecker *c, const char *name, TileMeaning value) {
    TileVar *var = TILE_NEW(c->arena, TileVar);
    *var = (TileVar){.name = name, .now = value, .birth = tile_now(c)};
    tile_list_push(c->arena, &c->vars, var);
    return var;
}

TileVar *tile_scope_declare(TileChecker *c, TileNameRef name, TileMeaning value) {
    TileVar *var = tile_scope_flag(c, name.name, value);
    var->span = name.span;
    tile_scope_bind(c, name, tile_nothing(), false);
    c->bounds.items[c->bounds.count - 1]->var = var;
    if (c->annotations) tile_annotate_binding(c, name.span, &value, true);
    return var;
}

const char *tile_spread_name(TileChecker *c, const char *name) {
    return tile_intern_string(c->names, tile_arena_format(c->arena, "...%s", name));
}
