/* A map from pointers (interned strings, values, ops) to pointers, in an arena. Insertion order is kept, so
 * that whatever walks a map is deterministic. No removal. */
#ifndef TILE_BASE_MAP_H
#define TILE_BASE_MAP_H

#include "base/arena.h"

typedef struct TileMapEntry {
    const void *key;
    void *value;
} TileMapEntry;

typedef struct TileMap {
    TileArena *arena;
    TileMapEntry *entries; /* in order of insertion */
    size_t count, capacity;
    uint32_t *slots; /* index into entries + 1, or 0 */
    size_t slot_count;
} TileMap;

void tile_map_init(TileMap *map, TileArena *arena);
/* NULL when absent. */
void *tile_map_get(const TileMap *map, const void *key);
TileMapEntry *tile_map_find(const TileMap *map, const void *key);
/* Adds or replaces. */
void tile_map_set(TileMap *map, const void *key, void *value);

#endif
