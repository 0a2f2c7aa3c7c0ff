/* Finding existing code for arguments. */
#include "launch/variants.h"

#include <stdlib.h>
#include <string.h>

#include "launch/guard.h"
#include "launch/linked.h"

/* ---- holding on ---- */

/* A launch captured in the meantime may have pinned it. */
static void drop_code(TileVariant *variant) {
    int evicted = TILE_VARIANT_EVICTED;
    bool stays = atomic_load(&variant->captured);
    int next = stays ? TILE_VARIANT_READY : TILE_VARIANT_GOING;
    if (!atomic_compare_exchange_strong(&variant->state, &evicted, next) || stays) return;
    variant->code->destroy(variant->code);
    variant->code = NULL;
    free((void *)variant->costs);
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

/* ---- finding ---- */

static bool same_instance(const TileImageSignature *signature, const TileImageRequest *a, const TileImageRequest *b) {
    uint64_t differ = a->tuned ^ b->tuned;
    for (uint32_t i = 0; i < signature->generic_count; i++) differ |= a->generics[i] ^ b->generics[i];
    for (uint32_t i = 0; i < signature->static_count; i++) differ |= (uint64_t)(a->statics[i] ^ b->statics[i]);
    return differ == 0;
}

bool tile_variant_serves(const TileImageSignature *signature, const TileVariant *variant, int state,
                         const TileImageRequest *request, const TileView *views) {
    uint64_t wrong = 0, any = 0;
    const uint64_t *told = variant->request.facts, *offered = request->facts;
    for (uint32_t i = 0; i < signature->parameter_count; i++) any |= offered[i];
    if (state != TILE_VARIANT_READY || !any) {
        for (uint32_t i = 0; i < signature->parameter_count; i++) wrong |= offered[i] ^ told[i];
    } else {
        const TileImageCode *code = variant->code;
        for (uint32_t i = 0; i < signature->parameter_count; i++)
            wrong |= (code->need[i] & ~views[i].word) | (code->asked[i] & offered[i] & ~told[i]);
    }
    return !wrong && same_instance(signature, &variant->request, request);
}

static bool take_serving(const TileKernel *kernel, TileVariant *variant, const TileImageRequest *request,
                         const TileView *views) {
    if (!variant || !tile_variant_take(variant)) return false;
    if (tile_variant_serves(kernel->signature, variant, TILE_VARIANT_READY, request, views)) return true;
    give(variant, 0);
    return false;
}

/* Beyond the limit, for arguments that no other code serves: general code relies on no facts. */
static bool take_rest(const TileKernel *kernel, TileVariant *variant, const TileImageRequest *request) {
    if (!variant || !tile_variant_take(variant)) return false;
    bool rest = atomic_load_explicit(&variant->rest, memory_order_relaxed);
    if (rest && same_instance(kernel->signature, &variant->request, request)) return true;
    give(variant, 0);
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

/* Looked for where it matters only: where code asked for it, and for code that is about to be made. */
static void find_maps(const TileImageSignature *signature, TileView *views) {
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
    if (atomic_load_explicit(&kernel->maps, memory_order_relaxed)) find_maps(signature, views);
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

tile_status tile_variant_get(TileKernel *kernel, TileView *views, TileImageRequest *request, TileVariant **variant,
                             TileError *error, TileReport **report) {
    tile_variant_request(kernel, views, request);
    if (!kernel->library->source.compile) return tile_linked_choose(kernel, views, request, variant, error);
    TileVariant *found = atomic_load_explicit(&kernel->last, memory_order_acquire);
    if (take_serving(kernel, found, request, views)) {
        *variant = found;
        return TILE_OK;
    }
    found = atomic_load_explicit(find_slot(kernel, request, views), memory_order_acquire);
    if (!take_serving(kernel, found, request, views) && !take_rest(kernel, found, request)) {
        if (kernel->signature->maps) find_maps(kernel->signature, views);
        for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) request->facts[i] = views[i].offer;
        TILE_TRY(tile_variant_miss(kernel, request, views, &found, error, report));
        /* The set of facts asked for may have grown, which changes the hash. */
        atomic_store_explicit(find_slot(kernel, request, views), found, memory_order_release);
    }
    tile_variant_touch(kernel, found);
    *variant = found;
    return TILE_OK;
}
