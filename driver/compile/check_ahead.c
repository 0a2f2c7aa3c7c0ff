/* Checks a long text on several threads, before it is checked on one.
 *
 * The threads share the tree, which none of them changes, and take the instances of its kernels and its other items one after
 * the other, as each has time, in memory of their own. They record which are clean, but not their diagnostics: the check proper, on the
 * caller's thread, skips what is clean and reports on all else, in order. So diagnostics do not depend on the number of
 * threads. */
#include <stdlib.h>

#include "driver/compile/unit.h"
#include "launch/threads.h"

/* A thread has to be worth its start, which takes about as long as the check of a hundred lines. */
enum { LEAST_BYTES = 32 * 1024, LEAST_BYTES_A_THREAD = 16 * 1024, MOST_THREADS = 16 };

typedef struct Ahead {
    const TileUnit *unit;
    TileAhead parts;
} Ahead;

/* Files with tables of lines of their own, which are made when a place is first asked for. */
static TileDiagnostics *own_diagnostics(TileArena *arena, const TileDiagnostics *shared) {
    TileDiagnostics *own = tile_diagnostics_create(arena);
    own->limits = shared->limits;
    own->files.count = 0;
    for (size_t i = 0; i < shared->files.count; i++) {
        const TileSourceFile *file = &shared->files.items[i];
        tile_list_push(arena, &own->files, (TileSourceFile){.name = file->name, .text = file->text, .length = file->length});
    }
    return own;
}

/* If memory runs out, what the thread is checking is not marked clean. */
static void look_guarded(const Ahead *ahead, TileUnit *own) {
    if (setjmp(own->guard)) return;
    tile_arena_set_guard(own->arena, &own->guard);
    own->context = tile_ir_context_create();
    if (!own->context) return;
    tile_arena_set_guard(own->context->arena, &own->guard);
    tile_check_ahead(own->context, own_diagnostics(own->arena, ahead->unit->diagnostics), ahead->unit->ast, ahead->unit->verify,
                     &ahead->parts);
}

static void look_at_share(void *state, int64_t begin, int64_t end) {
    const Ahead *ahead = state;
    if (end - begin > 1) return; /* the pool is busy: the check proper takes no longer */
    TileUnit *own = calloc(1, sizeof *own);
    if (!own) return;
    own->arena = tile_arena_create(NULL);
    if (own->arena) look_guarded(ahead, own);
    tile_unit_destroy(own);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

const uint64_t *tile_unit_check_ahead(TileUnit *unit) {
    size_t bytes = unit->input->length, parts = tile_check_count(unit->ast);
    TileThreadPool *pool = bytes < LEAST_BYTES ? NULL : tile_thread_pool_default();
    if (!pool || tile_thread_pool_size(pool) < 2) return NULL;
    size_t threads = smaller(smaller(bytes / LEAST_BYTES_A_THREAD, parts), smaller(MOST_THREADS, (size_t)tile_thread_pool_size(pool)));
    Ahead ahead = {unit, {TILE_NEW_ARRAY(unit->arena, atomic_bool, parts), TILE_NEW_ARRAY(unit->arena, uint64_t, parts)}};
    tile_thread_pool_run(pool, (int64_t)threads, look_at_share, &ahead);
    return ahead.parts.clean;
}
