/* Each map of a phase has a few entries, by the tensor's address: what it was made from, and the map. An entry is a
 * seqlock, as a record of replay.c is. */
#include "launch/cuda_maps.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda_driver.h"

enum { ENTRIES = 16, MOST_KEYS = 1 + 2 * TILE_MAP_MOST_RANK + TILE_MAP_MOST_IMAGE_AXES, MAP_WORDS = TILE_MAP_BYTES / 8 };

typedef struct Entry {
    _Atomic uint64_t sequence;        /* 0: nothing is written yet; odd: it is being written */
    _Atomic uint64_t keys[MOST_KEYS]; /* address, extents, strides: the slots; numbers of positions */
    _Atomic uint64_t words[MAP_WORDS];
} Entry;

typedef struct Map {
    TileImageMap image;
    Entry entries[ENTRIES];
} Map;

struct TileCudaMaps {
    uint32_t count;
    Map maps[];
};

TileCudaMaps *tile_cuda_maps_create(const TileImageMap *images, uint32_t count) {
    TileCudaMaps *maps = calloc(1, sizeof *maps + count * sizeof *maps->maps);
    if (!maps) return NULL;
    maps->count = count;
    for (uint32_t i = 0; i < count; i++) maps->maps[i].image = images[i];
    return maps;
}

void tile_cuda_maps_destroy(TileCudaMaps *maps) { free(maps); }

uint32_t tile_cuda_maps_count(const TileCudaMaps *maps) { return maps->count; }

/* ---- remembering ---- */

static Entry *entry_of(Map *map, const uint64_t *keys) {
    uint64_t hash = (keys[0] >> 4 ^ keys[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &map->entries[hash >> 60];
}

static bool recall(Entry *entry, const uint64_t *keys, uint32_t key_count, TileCudaMap *made) {
    uint64_t sequence = atomic_load_explicit(&entry->sequence, memory_order_acquire), differ = 0;
    if (!sequence || (sequence & 1)) return false;
    for (uint32_t i = 0; i < key_count; i++)
        differ |= keys[i] ^ atomic_load_explicit(&entry->keys[i], memory_order_relaxed);
    if (differ) return false;
    for (unsigned i = 0; i < MAP_WORDS; i++)
        made->words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&entry->sequence, memory_order_relaxed) == sequence;
}

static void remember(Entry *entry, const uint64_t *keys, uint32_t key_count, const TileCudaMap *made) {
    uint64_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    if ((sequence & 1) || !atomic_compare_exchange_strong_explicit(&entry->sequence, &sequence, sequence + 1,
                                                                   memory_order_acquire, memory_order_relaxed))
        return; /* another thread is writing */
    atomic_thread_fence(memory_order_release);
    for (uint32_t i = 0; i < key_count; i++) atomic_store_explicit(&entry->keys[i], keys[i], memory_order_relaxed);
    for (unsigned i = 0; i < MAP_WORDS; i++)
        atomic_store_explicit(&entry->words[i], made->words[i], memory_order_relaxed);
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

/* ---- making ---- */

/* The stride of an axis of one element is never used, but the driver checks it: that of a contiguous tensor. */
static uint64_t usual_stride(uint64_t inner_extent, uint64_t inner_stride) {
    const uint64_t grain = TILE_MAP_GRAIN;
    uint64_t span = (inner_extent * inner_stride + grain - 1) / grain * grain;
    return span >> TILE_MAP_STRIDE_BITS ? grain : span;
}

/* The unsigned integer of so many bytes, by the driver's numbers: elements are moved as they are. */
static int element_type(unsigned bytes) {
    enum { UINT8 = 0, UINT16 = 1, UINT32 = 2, UINT64 = 4 };
    return bytes == 1 ? UINT8 : bytes == 2 ? UINT16 : bytes == 4 ? UINT32 : UINT64;
}

enum { NO_INTERLEAVE = 0, PROMOTE_TO_128_BYTES = 2, FILL_WITH_ZEROS = 0 };

/* What both modes ask for. The driver counts axes from the contiguous one. */
typedef struct Encoding {
    uint64_t dimensions[TILE_MAP_MOST_RANK], strides[TILE_MAP_MOST_RANK];
    uint32_t steps[TILE_MAP_MOST_RANK];
    int type, swizzle;
} Encoding;

static Encoding encoding_of(const TileImageMap *image, const uint64_t *keys) {
    unsigned rank = image->rank;
    const uint64_t *extents = keys + 1, *strides = keys + 1 + rank;
    Encoding made = {.type = element_type(image->element_bytes), .swizzle = image->swizzle ? __builtin_ctz(image->swizzle) - 4 : 0};
    for (unsigned i = 0; i < rank; i++) {
        unsigned axis = rank - 1 - i;
        made.dimensions[i] = extents[axis];
        made.steps[i] = image->step[axis] ? image->step[axis] : 1;
        if (!i) continue;
        uint64_t inner = i > 1 ? made.strides[i - 2] : image->element_bytes;
        made.strides[i - 1] = extents[axis] > 1 ? strides[axis] : usual_stride(made.dimensions[i - 1], inner);
    }
    return made;
}

static int encode_tiled(const TileImageMap *image, const uint64_t *keys, TileCudaMap *made) {
    unsigned rank = image->rank;
    Encoding of = encoding_of(image, keys);
    uint32_t box[TILE_MAP_MOST_RANK];
    for (unsigned i = 0; i < rank; i++) {
        unsigned axis = rank - 1 - i;
        uint32_t elements = image->cut >> axis & 1 ? tile_map_cut(image->box[axis], of.dimensions[i]) : image->box[axis];
        box[i] = tile_map_reach(elements, of.steps[i]);
    }
    return tile_cuda_driver()->encode_map(made, of.type, rank, (void *)(uintptr_t)keys[0], of.dimensions, of.strides, box, of.steps,
                                          NO_INTERLEAVE, of.swizzle, PROMOTE_TO_128_BYTES, FILL_WITH_ZEROS);
}

/* Code asks whether maps have corners for so many positions, and uses none that has not: it is made all the same, with the nearest ones. */
static int nearest_corner(unsigned rank, int64_t corner) {
    int64_t most = INT64_C(1) << (tile_map_corner_bits(rank) - 1);
    return (int)(corner < -most ? -most : corner >= most ? most - 1 : corner);
}

static int encode_positions(const TileImageMap *image, const uint64_t *keys, TileCudaMap *made) {
    unsigned rank = image->rank, axes = tile_image_map_axes(image);
    const uint64_t *counts = keys + 1 + 2 * rank;
    Encoding of = encoding_of(image, keys);
    int lower[TILE_MAP_MOST_IMAGE_AXES], upper[TILE_MAP_MOST_IMAGE_AXES];
    for (unsigned i = 0; i < axes; i++) {
        unsigned axis = axes - 1 - i;
        int64_t far = tile_map_far_corner(image->corner[axis], counts[axis], of.steps[1 + i], of.dimensions[1 + i]);
        lower[i] = image->corner[axis];
        upper[i] = nearest_corner(rank, far);
    }
    return tile_cuda_driver()->encode_positions(made, of.type, rank, (void *)(uintptr_t)keys[0], of.dimensions, of.strides, lower, upper,
                                                image->box[rank - 1], image->positions, of.steps, NO_INTERLEAVE, of.swizzle,
                                                PROMOTE_TO_128_BYTES, FILL_WITH_ZEROS);
}

/* Those of the tensor, as they lie in the slots, and how many positions there are. */
static uint32_t read_keys(const TileImageMap *image, const uint64_t *slots, uint64_t *keys) {
    uint32_t count = 1 + 2u * image->rank;
    memcpy(keys, slots + image->slot, count * sizeof *keys);
    for (unsigned d = 0; d < tile_image_map_axes(image); d++) keys[count++] = slots[image->over[d]];
    return count;
}

tile_status tile_cuda_maps_find(TileCudaMaps *maps, const uint64_t *slots, TileCudaMap *made, const char *kernel,
                                TileError *error) {
    for (uint32_t i = 0; i < maps->count; i++) {
        Map *map = &maps->maps[i];
        uint64_t keys[MOST_KEYS];
        uint32_t key_count = read_keys(&map->image, slots, keys);
        Entry *entry = entry_of(map, keys);
        if (recall(entry, keys, key_count, &made[i])) continue;
        int code = map->image.positions ? encode_positions(&map->image, keys, &made[i]) : encode_tiled(&map->image, keys, &made[i]);
        TILE_TRY(tile_cuda_check(code, kernel, error));
        remember(entry, keys, key_count, &made[i]);
    }
    return TILE_OK;
}
