#include "lang/ir/types.h"

#include <string.h>

#include "base/list.h"
#include "lang/layout/layout.h"

struct TileTypeTable {
    TileArena *arena;
    TileType **slots;
    size_t capacity, count;
    const TileType *scalars[TILE_SCALAR_COUNT]; /* NULL until first used */
    TILE_LIST(const TileLayout *) layouts;
};

TileTypeTable *tile_type_table_create(TileArena *arena) {
    TileTypeTable *table = TILE_NEW(arena, TileTypeTable);
    table->arena = arena;
    table->capacity = 128;
    table->slots = TILE_NEW_ARRAY(arena, TileType *, table->capacity);
    return table;
}

static bool equal_types(const TileType *a, const TileType *b) {
    return a->kind == b->kind && a->scalar == b->scalar && a->rank == b->rank && a->access == b->access &&
           a->space == b->space && a->scalable == b->scalable && a->layout == b->layout && a->swizzle == b->swizzle &&
           a->log_chunks == b->log_chunks && memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

static uint64_t hash_type(const TileType *type) {
    const uint8_t key[8] = {type->kind,  type->scalar,   type->rank,    type->access,
                            type->space, type->scalable, type->swizzle, type->log_chunks};
    uint64_t hash;
    memcpy(&hash, key, sizeof hash);
    hash ^= (uintptr_t)type->layout;
    for (unsigned i = 0;; i++) {
        hash *= 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
        if (i == type->rank || i == TILE_MAX_TILE_RANK) return hash; /* tensors have a rank, but no extents */
        hash ^= (uint64_t)type->extent[i];
    }
}

static TileType **find_slot(TileType **slots, size_t capacity, const TileType *type) {
    size_t slot = (size_t)hash_type(type) & (capacity - 1);
    while (slots[slot] && !equal_types(slots[slot], type)) slot = (slot + 1) & (capacity - 1);
    return &slots[slot];
}

const TileType *tile_type_intern(TileTypeTable *table, const TileType *type) {
    if (table->count * 2 >= table->capacity) {
        TileType **slots = TILE_NEW_ARRAY(table->arena, TileType *, table->capacity * 2);
        for (size_t i = 0; i < table->capacity; i++)
            if (table->slots[i]) *find_slot(slots, table->capacity * 2, table->slots[i]) = table->slots[i];
        table->slots = slots;
        table->capacity *= 2;
    }
    TileType **slot = find_slot(table->slots, table->capacity, type);
    if (!*slot) {
        *slot = tile_arena_copy(table->arena, type, sizeof *type);
        table->count++;
    }
    return *slot;
}

const TileType *tile_type_intern_scalar(TileTypeTable *table, TileScalar scalar) {
    const TileType **known = &table->scalars[scalar];
    if (!*known) *known = tile_type_intern(table, &(TileType){.kind = TILE_TYPE_SCALAR, .scalar = scalar});
    return *known;
}

const TileLayout *tile_layout_intern(TileTypeTable *table, const TileLayout *layout) {
    for (size_t i = 0; i < table->layouts.count; i++)
        if (tile_layout_equal(table->layouts.items[i], layout)) return table->layouts.items[i];
    tile_list_push(table->arena, &table->layouts, tile_arena_copy(table->arena, layout, sizeof *layout));
    return table->layouts.items[table->layouts.count - 1];
}

int64_t tile_type_lanes(const TileType *type) {
    if (type->kind == TILE_TYPE_VECTOR) return type->extent[0];
    int64_t lanes = 1;
    if (type->kind == TILE_TYPE_TILE)
        for (int i = 0; i < type->rank; i++) lanes *= type->extent[i];
    return lanes;
}

bool tile_type_same_shape(const TileType *a, const TileType *b) {
    return a->kind == b->kind && a->rank == b->rank && a->scalable == b->scalable &&
           memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

static const char *const access_names[] = {"in", "out", "inout", "temp"};
static const char *const space_names[] = {"global", "shared", "scratch", "map"};
static const char *const swizzle_names[] = {"none", "rows", "words", "bytes", "panels", "columns"};

static void print_extents(TileText *text, const TileType *type) {
    for (int i = 0; i < type->rank; i++) tile_text_format(text, "%s%lld", i ? ", " : "[", (long long)type->extent[i]);
    tile_text_add(text, "]");
}

/* `f16[64, 32], swizzle 64 rows` */
static void print_stored(TileText *text, const TileType *type) {
    tile_text_add(text, tile_scalar_name(type->scalar));
    print_extents(text, type);
    if (type->swizzle)
        tile_text_format(text, ", swizzle %u %s", TILE_CHUNK_BYTES << type->log_chunks, swizzle_names[type->swizzle]);
}

static void print_pointer(TileText *text, const TileType *type) {
    tile_text_format(text, "ptr<%s", space_names[type->space]);
    if (type->rank) {
        tile_text_add(text, ", ");
        print_stored(text, type);
    }
    tile_text_add(text, ">");
}

void tile_type_print(TileText *text, const TileType *type) {
    switch (type->kind) {
    case TILE_TYPE_SCALAR: tile_text_add(text, tile_scalar_name(type->scalar)); return;
    case TILE_TYPE_TILE:
        tile_text_add(text, tile_scalar_name(type->scalar));
        print_extents(text, type);
        return;
    case TILE_TYPE_TENSOR:
        tile_text_format(text, "tensor<%s, %d, %s>", tile_scalar_name(type->scalar), type->rank,
                         access_names[type->access]);
        return;
    case TILE_TYPE_POINTER: print_pointer(text, type); return;
    case TILE_TYPE_CHANNEL:
        tile_text_add(text, "channel<");
        print_stored(text, type);
        tile_text_add(text, ">");
        return;
    case TILE_TYPE_VECTOR:
        tile_text_format(text, type->scalable ? "vec<[%lld] x %s>" : "vec<%lld x %s>", (long long)type->extent[0],
                         tile_scalar_name(type->scalar));
        return;
    }
}
