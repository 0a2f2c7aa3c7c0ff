#include "base/map.h"

static size_t slot_of(const TileMap *map, const void *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(hash >> 32) & (map->slot_count - 1);
    while (map->slots[slot] && map->entries[map->slots[slot] - 1].key != key) slot = (slot + 1) & (map->slot_count - 1);
    return slot;
}

void tile_map_init(TileMap *map, TileArena *arena) { *map = (TileMap){.arena = arena}; }

TileMapEntry *tile_map_find(const TileMap *map, const void *key) {
    if (!map->slot_count) return NULL;
    uint32_t index = map->slots[slot_of(map, key)];
    return index ? &map->entries[index - 1] : NULL;
}

void *tile_map_get(const TileMap *map, const void *key) {
    TileMapEntry *entry = tile_map_find(map, key);
    return entry ? entry->value : NULL;
}

static void grow_map(TileMap *map) {
    size_t capacity = map->capacity ? map->capacity * 2 : 16;
    map->entries =
        tile_arena_grow(map->arena, map->entries, map->count * sizeof(TileMapEntry), capacity * sizeof(TileMapEntry));
    map->capacity = capacity;
    map->slot_count = capacity * 2;
    map->slots = TILE_NEW_ARRAY(map->arena, uint32_t, map->slot_count);
    for (size_t i = 0; i < map->count; i++) map->slots[slot_of(map, map->entries[i].key)] = (uint32_t)i + 1;
}

void tile_map_set(TileMap *map, const void *key, void *value) {
    if (map->count == map->capacity) grow_map(map);
    size_t slot = slot_of(map, key);
    if (map->slots[slot]) {
        map->entries[map->slots[slot] - 1].value = value;
        return;
    }
    map->entries[map->count++] = (TileMapEntry){key, value};
    map->slots[slot] = (uint32_t)map->count;
}
