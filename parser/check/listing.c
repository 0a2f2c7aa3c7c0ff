/* Names with their values that are known at compile time, for messages; and the note that lists the bindings of the
 * instance of a kernel. */
#include "lang/scalar/scalar.h"
#include "parser/check/builtin.h"
#include "parser/check/listing.h"
#include "parser/check/meaning.h"

static bool is_listed(TileListing *listing, TileChecker *c, const char *name) {
    for (size_t i = 0; i < listing->seen.count; i++)
        if (listing->seen.items[i] == name) return true;
    tile_list_push(c->arena, &listing->seen, name);
    return false;
}

/* " 7", " f16", " gelu"; false if the name has no known value. */
static bool add_meaning(TileChecker *c, TileText *text, const TileMeaning *m) {
    uint64_t bits;
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_TYPE: tile_text_add(text, tile_scalar_name((TileScalar)m->scalar)); return true;
    case TILE_MEANING_FUNCTION: tile_text_add(text, m->item->name); return true;
    case TILE_MEANING_BUILTIN: tile_text_add(text, m->builtin->name); return true;
    case TILE_MEANING_VALUE:
        if (!tile_constant_bits(c, m, (TileScalar)m->scalar, &bits)) return false;
        tile_scalar_print(text, (TileScalar)m->scalar, bits);
        return true;
    default: return false;
    }
}

void tile_listing_add(TileChecker *c, TileListing *listing, const char *name, const TileMeaning *m) {
    TileText value = {.arena = c->arena};
    if (is_listed(listing, c, name) || !add_meaning(c, &value, m)) return;
    tile_text_format(&listing->text, "%s%s = %s", listing->text.length ? ", " : "", name, tile_text_get(&value));
}

/* ---- the instance ---- */

static void add_choice(TileChecker *c, TileListing *listing, const char *name) {
    for (size_t i = 0; i < c->bounds.count; i++) {
        if (c->bounds.items[i]->name != name) continue;
        tile_listing_add(c, listing, name, &c->bounds.items[i]->meaning);
        return;
    }
}

void tile_note_instance(TileChecker *c, TileDiagnostic *d, const TileItem *kernel) {
    TileListing listing = {.text = {.arena = c->arena}};
    if (!d || kernel->kind != TILE_ITEM_KERNEL || (!c->options->binding_count && !c->second)) return;
    for (size_t i = 0; i < kernel->generics.count; i++) add_choice(c, &listing, kernel->generics.items[i].name);
    for (size_t i = 0; i < kernel->statics.count; i++) add_choice(c, &listing, kernel->statics.items[i].name);
    for (size_t i = 0; i < kernel->params.count; i++) {
        const TileParam *param = &kernel->params.items[i];
        if (param->type && param->type->is_const) add_choice(c, &listing, param->name);
    }
    if (!listing.text.length) return;
    tile_diagnostic_note(c->diagnostics, d, kernel->name_span, "in the instance `%s[%s]`", kernel->name,
                         tile_text_get(&listing.text));
}
