/* Checks a long text on several threads, before it is checked on one.
 *
 * Each thread reads and parses the text by itself and checks every n-th item and export, in memory of its own, so that only the
 * text is shared. It records which items are clean, but not their diagnostics: the check proper, on the caller's
 * thread, skips clean items and reports on all others, in order. So diagnostics do not depend on the number of
 * threads. */
#include <stdlib.h>
#include <string.h>

#include "driver/compile/unit.h"
#include "launch/threads.h"
#include "parser/syntax/syntax.h"

/* A thread takes about as long to parse a text as to check a tenth of it. */
enum { LEAST_ITEMS = 128, LEAST_ITEMS_A_THREAD = 32, MOST_THREADS = 16 };

typedef struct Ahead {
    const TileUnit *unit;
    uint64_t *clean;
    size_t threads;
} Ahead;

/* An import may have been modified in the meantime. */
static bool same_files(const TileDiagnostics *a, const TileDiagnostics *b) {
    if (a->files.count != b->files.count) return false;
    for (size_t i = 1; i < a->files.count; i++) {
        const TileSourceFile *x = &a->files.items[i], *y = &b->files.items[i];
        if (x->length != y->length || memcmp(x->text, y->text, x->length) != 0) return false;
    }
    return true;
}

static void look(const Ahead *ahead, TileUnit *own, const TileItemRange *range) {
    const TileInput *input = own->input;
    own->diagnostics = tile_diagnostics_create(own->arena);
    own->diagnostics->limits = ahead->unit->diagnostics->limits;
    TileImporter importer = tile_unit_importer(own);
    if (tile_parse_file(own->arena, own->diagnostics, input->file, input->text, input->length, &own->ast) != TILE_OK ||
        tile_resolve_imports(own->diagnostics, own->ast, &importer) != TILE_OK ||
        !same_files(own->diagnostics, ahead->unit->diagnostics))
        return;
    size_t items = own->ast->items.count, count = tile_check_count(own->ast);
    uint64_t *clean = TILE_NEW_ARRAY(own->arena, uint64_t, count);
    tile_check_ahead(own->context, own->diagnostics, own->ast, own->verify, range, clean);
    for (size_t i = range->first; i < items; i += range->step) ahead->clean[i] = clean[i];
    for (size_t i = items + range->first; i < count; i += range->step) ahead->clean[i] = clean[i];
}

/* If memory runs out, no item is marked clean. */
static void look_guarded(const Ahead *ahead, TileUnit *own, const TileItemRange *range) {
    if (setjmp(own->guard)) return;
    tile_arena_set_guard(own->arena, &own->guard);
    own->context = tile_ir_context_create();
    if (!own->context) return;
    tile_arena_set_guard(own->context->arena, &own->guard);
    look(ahead, own, range);
}

static void look_at_share(void *state, int64_t begin, int64_t end) {
    const Ahead *ahead = state;
    if (end - begin > 1) return; /* the pool is busy: the check proper takes no longer */
    TileUnit *own = calloc(1, sizeof *own);
    if (!own) return;
    own->input = ahead->unit->input;
    own->verify = ahead->unit->verify;
    own->arena = tile_arena_create(NULL);
    if (own->arena) look_guarded(ahead, own, &(TileItemRange){(size_t)begin, ahead->threads});
    tile_unit_destroy(own);
}

const uint64_t *tile_unit_check_ahead(TileUnit *unit) {
    TileThreadPool *pool = unit->ast->items.count < LEAST_ITEMS ? NULL : tile_thread_pool_default();
    if (!pool || tile_thread_pool_size(pool) < 2) return NULL;
    Ahead ahead = {.unit = unit, .threads = unit->ast->items.count / LEAST_ITEMS_A_THREAD};
    if (ahead.threads > MOST_THREADS) ahead.threads = MOST_THREADS;
    if (ahead.threads > (size_t)tile_thread_pool_size(pool)) ahead.threads = (size_t)tile_thread_pool_size(pool);
    ahead.clean = TILE_NEW_ARRAY(unit->arena, uint64_t, tile_check_count(unit->ast));
    tile_thread_pool_run(pool, (int64_t)ahead.threads, look_at_share, &ahead);
    return ahead.clean;
}
