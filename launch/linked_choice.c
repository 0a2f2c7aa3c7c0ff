/* Choosing among the variants of a linked object. */
#include "launch/linked_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda.h"
#include "launch/host.h"

enum { LOCAL_VALUES = 128 };

static bool has_conditions(const TileImageCode *code) {
    for (uint32_t i = 0; i < code->require_count; i++)
        if (code->requires[i].chooses) return true;
    return false;
}

static bool conditions_hold(const TileImageCode *code, const TileView *views, bool *known) {
    uint64_t local[LOCAL_VALUES], *values = local;
    if (!has_conditions(code)) return true;
    if (code->host_count > LOCAL_VALUES) values = malloc(code->host_count * sizeof *values);
    *known = values != NULL;
    if (!values) return false;
    tile_host_run(code->host, code->host_count, views, values);
    bool hold = true;
    for (uint32_t i = 0; i < code->require_count; i++)
        hold &= !code->requires[i].chooses || values[code->requires[i].condition] != 0;
    if (values != local) free(values);
    return hold;
}

static bool keeps_need(const TileImageVariant *variant, const TileImageSignature *signature,
                       const TileImageRequest *request, const TileView *views) {
    uint64_t broken = 0;
    for (uint32_t i = 0; i < signature->parameter_count; i++) broken |= variant->code.need[i] & ~views[i].word;
    return !broken &&
           memcmp(variant->statics, request->statics, signature->static_count * sizeof *request->statics) == 0;
}

static bool can_run(const TileImageVariant *variant, int device) {
    const TileImageBinary *binary = variant->binary;
    return !binary || tile_cuda_runs(device, binary->capability, binary->alone);
}

static tile_status refuse_gpu(TileKernel *kernel, int device, TileError *error) {
    const char *why_not = tile_cuda_why_not();
    int capability = tile_cuda_capability(device);
    if (why_not) return tile_error_set(error, TILE_UNAVAILABLE, "%s: %s", kernel->signature->name, why_not);
    return tile_error_set(error, TILE_UNAVAILABLE,
                          "%s: the linked object has no code that can run on cuda:%d, whose compute capability is "
                          "%d.%d",
                          kernel->signature->name, device, capability / 10, capability % 10);
}

static tile_status refuse(TileKernel *kernel, const TileView *views, TileError *error) {
    char labels[512] = "";
    int device = tile_views_device(kernel->signature, views);
    bool any = false;
    for (TileVariant *v = atomic_load(&kernel->variants); v; v = v->next)
        any |= can_run((const TileImageVariant *)v->code, device);
    if (!any && kernel->signature->gpu) return refuse_gpu(kernel, device, error);
    if (!any)
        return tile_error_set(error, TILE_UNAVAILABLE, "%s: the linked object has no code that can run on this CPU",
                              kernel->signature->name);
    for (TileVariant *v = atomic_load(&kernel->variants); v; v = v->next) {
        size_t length = strlen(labels);
        snprintf(labels + length, sizeof labels - length, "%s%s", length ? "; " : "",
                 ((const TileImageVariant *)v->code)->label);
    }
    return tile_error_set(error, TILE_UNSUPPORTED,
                          "%s: the linked object has no variant that serves these arguments; it has: %s",
                          kernel->signature->name, labels[0] ? labels : "none");
}

tile_status tile_linked_choose(TileKernel *kernel, const TileView *views, const TileImageRequest *request,
                               TileVariant **variant, TileError *error) {
    bool known = true;
    int device = tile_views_device(kernel->signature, views);
    for (TileVariant *v = atomic_load_explicit(&kernel->variants, memory_order_acquire); v; v = v->next) {
        const TileImageVariant *candidate = (const TileImageVariant *)v->code;
        if (!keeps_need(candidate, kernel->signature, request, views) || !conditions_hold(v->code, views, &known) ||
            !can_run(candidate, device))
            continue;
        *variant = v;
        tile_variant_take(v);
        return TILE_OK;
    }
    atomic_fetch_add_explicit(&kernel->misses, 1, memory_order_relaxed);
    if (!known) return tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", kernel->signature->name);
    return refuse(kernel, views, error);
}
