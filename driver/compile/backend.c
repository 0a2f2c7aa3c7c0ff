#include "driver/compile/backend.h"

#include <string.h>

static const TileBackend *const backends[] = {&tile_backend_cpu, &tile_backend_ptx};

enum { BACKEND_COUNT = sizeof backends / sizeof *backends };
_Static_assert(1 + BACKEND_COUNT == TILE_PASS_TABLES, "lowering/ and each family have a table of passes");

const TileBackend *tile_backend_at(unsigned index) { return index < BACKEND_COUNT ? backends[index] : NULL; }

const TileBackend *tile_backend_of(const TileTarget *target) {
    for (unsigned i = 0; target && i < BACKEND_COUNT; i++)
        if (backends[i]->family->kind == target->kind) return backends[i];
    return NULL;
}

const TileBackend *tile_backend_named(const char *name) {
    if (!name) return &tile_backend_cpu;
    for (unsigned i = 0; i < BACKEND_COUNT; i++)
        if (strcmp(name, backends[i]->best) == 0 || tile_family_target(backends[i]->family, name)) return backends[i];
    return NULL;
}

void tile_pass_tables(const TilePassTable *tables[TILE_PASS_TABLES]) {
    tables[0] = tile_lowering_passes();
    for (unsigned i = 0; i < BACKEND_COUNT; i++) tables[1 + i] = backends[i]->family->passes;
}
