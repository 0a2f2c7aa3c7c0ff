/* Variants: who uses them, what they serve, and what arguments ask for. */
#include "launch/variants.h"

#include <stdlib.h>
#include <string.h>

#include "launch/guard.h"

/* ---- holding on ---- */

/* A launch captured in the meantime may have pinned it. */
static void drop_code(TileVariant *variant) {
    int evicted = TILE_VARIANT_EVICTED;
    bool stays = atomic_load(&variant->captured);
    int next = stays ? TILE_VARIANT_READY : TILE_VARIANT_GOING;
    if (!atomic_compare_exchange_strong(&variant->state, &evicted, next) || stays) return;
    variant->code->destroy(variant->code);
    variant->code = NULL;
    free(variant->costs);
    variant->costs = NULL;
    atomic_store(&variant->state, TILE_VARIANT_FREE);
}

static void give(TileVariant *variant, uint64_t launches) {
    uint64_t before = atomic_fetch_add(&variant->uses, launches * TILE_VARIANT_LAUNCH - 1);
    if ((before & TILE_VARIANT_USERS) == 1 && atomic_load(&variant->state) == TILE_VARIANT_EVICTED) drop_code(variant);
}

/* An evicting thread sets the state and then looks for users; this function counts itself as a user and then looks at
 * the state. So one of the two sees the other. */
bool tile_variant_take(TileVariant *variant) {
    atomic_fetch_add(&variant->uses, 1);
    if (atomic_load(&variant->state) == TILE_VARIANT_READY) return true;
    give(variant, 0);
    return false;
}

void tile_variant_give(TileVariant *variant, bool launched) { give(variant, launched); }

void tile_variant_evict(TileVariant *variant) {
    atomic_store(&variant->state, TILE_VARIANT_EVICTED);
    if (!(atomic_load(&variant->uses) & TILE_VARIANT_USERS)) drop_code(variant);
}

/* ---- arguments ---- */

bool tile_variant_same_instance(const TileImageSignature *signature, const TileImageRequest *a,
                                const TileImageRequest *b) {
    uint64_t differ = a->tuned ^ b->tuned;
    for (uint32_t i = 0; i < signature->generic_count; i++) differ |= a->generics[i] ^ b->generics[i];
    for (uint32_t i = 0; i < signature->static_count; i++) differ |= (uint64_t)(a->statics[i] ^ b->statics[i]);
    return differ == 0;
}

/* Not 0 if the code relies on other values of scalars. */
static uint64_t differ_values(const TileImageSignature *signature, const TileVariant *variant, const TileView *views) {
    uint64_t differ = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        if (variant->request.facts[i] & TILE_GUARD_VALUE)
            differ |= (uint64_t)variant->request.values[i] ^ views[i].scalar;
    return differ;
}

bool tile_variant_serves(const TileImageSignature *signature, const TileVariant *variant, int state,
                         const TileImageRequest *request, const TileView *views) {
    uint64_t wrong = 0, any = 0;
    const uint64_t *told = variant->request.facts, *offered = request->facts;
    for (uint32_t i = 0; i < signature->parameter_count; i++) any |= offered[i];
    if (state != TILE_VARIANT_READY || !any) {
        for (uint32_t i = 0; i < signature->parameter_count; i++) wrong |= offered[i] ^ told[i];
        if (!wrong && any) wrong = differ_values(signature, variant, views);
    } else {
        const TileImageCode *code = variant->code;
        for (uint32_t i = 0; i < signature->parameter_count; i++)
            wrong |= (code->need[i] & ~views[i].word) | (code->asked[i] & offered[i] & ~told[i]);
        if (atomic_load_explicit(&variant->special, memory_order_relaxed))
            wrong |= differ_values(signature, variant, views);
    }
    return !wrong && tile_variant_same_instance(signature, &variant->request, request);
}

static void read_statics(const TileImageSignature *signature, const TileView *views, TileImageRequest *request) {
    for (uint32_t i = 0; i < signature->static_count; i++) {
        const TileView *view = &views[signature->statics[i].parameter];
        int16_t axis = signature->statics[i].axis;
        request->statics[i] = axis < 0 ? (int64_t)view->scalar : view->extent[axis];
    }
}

/* If arguments may share memory: is this one disjoint from all others, by its range of addresses? */
static bool is_apart(const TileImageSignature *signature, const TileView *views, uint32_t number) {
    bool written = signature->parameters[number].access != TILE_PARAMETER_IN;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        bool counts =
            i != number && views[i].tensor && (written || signature->parameters[i].access != TILE_PARAMETER_IN);
        if (counts && views[i].low < views[number].high && views[number].low < views[i].high) return false;
    }
    return true;
}

static void find_apart(const TileImageSignature *signature, TileView *views) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (!(signature->overlap >> i & 1) || !views[i].tensor || !is_apart(signature, views, i)) continue;
        views[i].word |= TILE_GUARD_DISJOINT;
        views[i].offer |= TILE_GUARD_DISJOINT;
    }
}

void tile_variant_find_maps(const TileImageSignature *signature, TileView *views) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        uint64_t map = views[i].tensor ? tile_guard_map(&views[i]) : 0;
        views[i].word |= map;
        views[i].offer |= map;
    }
}

void tile_variant_request(const TileKernel *kernel, TileView *views, TileImageRequest *request) {
    const TileImageSignature *signature = kernel->signature;
    const TileImageSource *source = &kernel->library->source;
    if (signature->overlap) find_apart(signature, views);
    if (atomic_load_explicit(&kernel->maps, memory_order_relaxed)) tile_variant_find_maps(signature, views);
    read_statics(signature, views, request);
    request->complete = true;
    request->tuned = source->choose ? source->choose(source->state, kernel->index, request, views) : 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) request->facts[i] = views[i].offer;
    request->provisional = request->missed = false;
}

void tile_variant_touch(TileKernel *kernel, TileVariant *variant) {
    if (atomic_load_explicit(&kernel->last, memory_order_relaxed) == variant) return;
    atomic_store_explicit(&variant->stamp, atomic_fetch_add(&kernel->clock, 1), memory_order_relaxed);
    atomic_store_explicit(&kernel->last, variant, memory_order_release);
}
