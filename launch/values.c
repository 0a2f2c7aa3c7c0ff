#include "launch/values.h"

TileVariant *tile_values_find(TileKernel *kernel, const TileImageRequest *request, const TileView *views) {
    if (!atomic_load_explicit(&kernel->specials, memory_order_acquire)) return NULL;
    for (TileVariant *v = atomic_load_explicit(&kernel->variants, memory_order_acquire); v; v = v->next) {
        if (!atomic_load_explicit(&v->special, memory_order_relaxed) || !tile_variant_take(v)) continue;
        if (atomic_load_explicit(&v->special, memory_order_relaxed) &&
            tile_variant_serves(kernel->signature, v, TILE_VARIANT_READY, request, views))
            return v;
        tile_variant_give(v, false);
    }
    return NULL;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* A number for launches that the same code for values serves, with its lowest bit 0 and not 0; 0: there is nothing to
 * be known. */
static uint64_t key_of(const TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                       const TileView *views) {
    const TileImageSignature *signature = kernel->signature;
    uint64_t hash = request->tuned, any = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        uint64_t want = tile_values_wanted(kernel->signature, variant, i);
        any |= want;
        hash = mix(hash, want ? views[i].scalar : views[i].word & variant->code->asked[i]);
    }
    for (uint32_t i = 0; i < signature->generic_count; i++) hash = mix(hash, request->generics[i]);
    for (uint32_t i = 0; i < signature->static_count; i++) hash = mix(hash, (uint64_t)request->statics[i]);
    return any ? (hash << 1) | 2 : 0;
}

static _Atomic uint64_t *place_of(TileKernel *kernel, uint64_t key) {
    return &kernel->seen[key >> 32 & (TILE_VALUES_KEPT - 1)];
}

TileValuesSeen tile_values_note(TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                                const TileView *views) {
    if (!kernel->library->source.compile) return TILE_VALUES_SETTLED;
    uint64_t key = key_of(kernel, variant, request, views);
    if (!key || request->provisional) return TILE_VALUES_SETTLED;
    _Atomic uint64_t *place = place_of(kernel, key);
    uint64_t before = atomic_load_explicit(place, memory_order_relaxed);
    if (before == (key | 1)) return TILE_VALUES_SETTLED;
    if (before == key) return TILE_VALUES_AGAIN;
    atomic_store_explicit(place, key, memory_order_relaxed);
    return TILE_VALUES_FIRST;
}

void tile_values_ask(TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                     const TileView *views) {
    TileImageRequest told = *request;
    uint64_t key = key_of(kernel, variant, request, views);
    for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) {
        uint64_t want = tile_values_wanted(kernel->signature, variant, i);
        told.facts[i] |= want;
        told.values[i] = want ? (int64_t)views[i].scalar : 0;
    }
    atomic_store_explicit(place_of(kernel, key), key | 1, memory_order_relaxed);
    tile_variant_begin(kernel, &told, views);
}
