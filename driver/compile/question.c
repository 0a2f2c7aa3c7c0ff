#include "driver/compile/question.h"

#include "driver/compile/image.h"
#include "launch/guard.h"
#include "launch/variants.h"

enum { SIZE_BITS = 4 };

/* The finaliser of MurmurHash3. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* Four significant bits. What lies between two such numbers becomes the middle, so that it stays no multiple of much. */
static int64_t rounded(int64_t extent) {
    if (extent < 1 << SIZE_BITS) return extent < 0 ? 0 : extent;
    int shift = 64 - __builtin_clzll((uint64_t)extent) - SIZE_BITS;
    int64_t low = extent >> shift << shift;
    return low == extent ? extent : low + (INT64_C(1) << shift >> 1);
}

uint64_t tile_question_maps(const TileImageSignature *signature, const TileView *views) {
    uint64_t set = 0;
    for (uint32_t i = 0; signature->maps && i < signature->parameter_count; i++)
        if (views[i].tensor && (views[i].offer & TILE_GUARD_ALIGN) >= tile_guard_align(TILE_MAP_GRAIN))
            set |= (uint64_t)(tile_guard_map(&views[i]) != 0) << i;
    return set;
}

uint64_t tile_question_dense(const TileImageSignature *signature, const TileView *views) {
    uint64_t set = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        if (views[i].tensor && views[i].rank > 1)
            set |= (uint64_t)((views[i].offer & tile_guard_dimension(0, TILE_GUARD_DENSE)) != 0) << i;
    return set;
}

uint64_t tile_question_rows(const TileImageSignature *signature, const TileView *views) {
    uint64_t rows = UINT64_MAX;
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        if (views[i].tensor && views[i].rank > 1) rows &= tile_guard_rows(views[i].extent[views[i].rank - 1u]);
    return rows == UINT64_MAX ? 0 : rows;
}

/* The power of two, up to 128, that divides the tensor's strides, but for those of one element; and, up to 16, its address: what
 * begins somewhere in a line of the cache has rows that do so in any case only if strides say so. */
static uint8_t grain_of(const TileView *view) {
    int64_t element = tile_host_type_bytes((TileHostType)view->type), odd = (int64_t)(uintptr_t)view->data & (TILE_MAP_GRAIN - 1),
            bits = odd | TILE_LINE_BYTES;
    for (unsigned k = 0; k < view->rank; k++)
        if (view->extent[k] > 1 && view->stride[k] != element) bits |= view->stride[k];
    return (uint8_t)(bits & -bits);
}

static int64_t rounded_number(int64_t number) { return number < 0 ? -rounded(number == INT64_MIN ? INT64_MAX : -number) : rounded(number); }

uint64_t tile_question_exact(const TileImageSignature *signature, const TileView *views, uint64_t set) {
    uint64_t exact = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        int64_t value = (int64_t)views[i].scalar;
        bool small = !views[i].tensor && value < 1 << SIZE_BITS && value > -(1 << SIZE_BITS); /* rounded_number leaves them as they are */
        exact |= (set >> i & small) << i;
    }
    return exact;
}

uint64_t tile_instance_key(const TileImageSignature *signature, const TileImageRequest *request, const TileView *views, uint64_t known) {
    uint64_t hash = mix(mix(tile_question_maps(signature, views) + 1) ^ tile_question_dense(signature, views)), exact = tile_question_exact(signature, views, known);
    hash = mix(mix(hash ^ tile_question_rows(signature, views)) ^ exact);
    for (uint32_t i = 0; i < signature->parameter_count; i++)
        if (exact >> i & 1) hash = mix(hash ^ views[i].scalar);
    for (uint32_t i = 0; i < signature->generic_count; i++) hash = mix(hash ^ request->generics[i]);
    for (uint32_t i = 0; i < signature->static_count; i++) hash = mix(hash ^ (uint64_t)request->statics[i]);
    return hash;
}

uint64_t tile_question_key(const TileImageSignature *signature, const TileView *views, uint64_t deciding, uint64_t instance) {
    uint64_t hash = instance;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        if (deciding >> i & 1) hash = mix(hash ^ (uint64_t)rounded_number((int64_t)views[i].scalar));
        if (!views[i].tensor) continue;
        hash = mix(hash ^ grain_of(&views[i]));
        for (unsigned k = 0; k < views[i].rank; k++) hash = mix(hash ^ (uint64_t)rounded(views[i].extent[k]));
    }
    return hash;
}

void tile_question_extents(const TileFunc *func, const TileImageSignature *signature, const TileView *views, TileExtents *extents) {
    *extents = (TileExtents){.count = func->body.argument_count};
    for (uint32_t i = 0; i < extents->count; i++) {
        int number = tile_image_parameter(signature, func->parameters[i].name);
        if (number < 0) continue;
        extents->is_number[i] = func->parameters[i].asked_value;
        if (extents->is_number[i]) extents->extent[i][0] = rounded_number((int64_t)views[number].scalar);
        if (!views[number].tensor) continue;
        extents->rank[i] = views[number].rank;
        extents->grain[i] = grain_of(&views[number]);
        for (unsigned k = 0; k < views[number].rank; k++) extents->extent[i][k] = rounded(views[number].extent[k]);
    }
}
