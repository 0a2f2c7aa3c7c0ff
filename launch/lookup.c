/* Code for arguments: what exists, else what the compiler makes, or the choice of a linked object. */
#include "launch/linked_choice.h"
#include "launch/values.h"

static bool take_serving(const TileKernel *kernel, TileVariant *variant, const TileImageRequest *request,
                         const TileView *views) {
    if (!variant || !tile_variant_take(variant)) return false;
    if (tile_variant_serves(kernel->signature, variant, TILE_VARIANT_READY, request, views)) return true;
    tile_variant_give(variant, false);
    return false;
}

/* Beyond the limit, for arguments that no other code serves: general code relies on no facts. */
static bool take_rest(const TileKernel *kernel, TileVariant *variant, const TileImageRequest *request) {
    if (!variant || !tile_variant_take(variant)) return false;
    bool rest = atomic_load_explicit(&variant->rest, memory_order_relaxed);
    if (rest && tile_variant_same_instance(kernel->signature, &variant->request, request)) return true;
    tile_variant_give(variant, false);
    return false;
}

/* The slot for such arguments, by a hash of their facts without those that no variant asked for. */
static _Atomic(TileVariant *) *find_slot(TileKernel *kernel, const TileImageRequest *request, const TileView *views) {
    const TileImageSignature *signature = kernel->signature;
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = request->tuned;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        uint64_t asked = atomic_load_explicit(&kernel->asked[i], memory_order_relaxed);
        hash = (hash ^ (views[i].word & asked)) * factor;
        hash ^= hash >> 32;
    }
    for (uint32_t i = 0; i < signature->generic_count; i++) hash = (hash ^ request->generics[i]) * factor;
    for (uint32_t i = 0; i < signature->static_count; i++) hash = (hash ^ (uint64_t)request->statics[i]) * factor;
    return &kernel->slots[hash >> 32 & (TILE_VARIANT_SLOTS - 1)];
}

tile_status tile_variant_get(TileKernel *kernel, TileView *views, TileImageRequest *request, TileVariant **variant,
                             TileError *error, TileReport **report) {
    tile_variant_request(kernel, views, request);
    if (!kernel->library->source.compile) return tile_linked_choose(kernel, views, request, variant, error);
    TileVariant *found = tile_values_find(kernel, request, views);
    if (found) {
        tile_variant_touch(kernel, found);
        *variant = found;
        return TILE_OK;
    }
    found = atomic_load_explicit(&kernel->last, memory_order_acquire);
    if (take_serving(kernel, found, request, views)) {
        *variant = found;
        return TILE_OK;
    }
    found = atomic_load_explicit(find_slot(kernel, request, views), memory_order_acquire);
    if (!take_serving(kernel, found, request, views) && !take_rest(kernel, found, request)) {
        if (kernel->signature->maps) tile_variant_find_maps(kernel->signature, views);
        for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) request->facts[i] = views[i].offer;
        TILE_TRY(tile_variant_miss(kernel, request, views, &found, error, report));
        /* The set of facts asked for may have grown, which changes the hash. */
        atomic_store_explicit(find_slot(kernel, request, views), found, memory_order_release);
    }
    tile_variant_touch(kernel, found);
    *variant = found;
    return TILE_OK;
}
