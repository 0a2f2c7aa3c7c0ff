#include "launch/variants.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/clock.h"
#include "launch/guard.h"
#include "launch/linked.h"
#include "launch/report.h"

/* ---- finding ---- */

static bool same_instance(const TileImageSignature *signature, const TileImageRequest *a, const TileImageRequest *b) {
    return memcmp(a->generics, b->generics, signature->generic_count * sizeof *a->generics) == 0 &&
           memcmp(a->statics, b->statics, signature->static_count * sizeof *a->statics) == 0;
}

/* Was the variant offered all that the arguments offer, and do they keep what it relies on? What a variant being
 * compiled will rely on is not known: it must have been offered exactly the same. */
static bool serves(const TileImageSignature *signature, const TileVariant *variant, int state,
                   const TileImageRequest *request, const uint64_t *words) {
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        uint64_t missing = request->facts[i] & ~variant->request.facts[i];
        uint64_t broken = state == TILE_VARIANT_READY ? variant->code->need[i] & ~words[i]
                                                      : variant->request.facts[i] & ~request->facts[i];
        if (missing | broken) return false;
    }
    return same_instance(signature, &variant->request, request);
}

static TileVariant *find(const TileKernel *kernel, const TileImageRequest *request, const uint64_t *words) {
    for (TileVariant *v = atomic_load_explicit(&kernel->variants, memory_order_acquire); v; v = v->next)
        if (serves(kernel->signature, v, atomic_load_explicit(&v->state, memory_order_acquire), request, words))
            return v;
    return NULL;
}

static uint32_t count_instance(const TileKernel *kernel, const TileImageRequest *request) {
    uint32_t count = 0;
    for (TileVariant *v = atomic_load(&kernel->variants); v; v = v->next)
        count += same_instance(kernel->signature, &v->request, request);
    return count;
}

/* ---- compiling ---- */

static bool lasting(tile_status status) {
    return status != TILE_OUT_OF_MEMORY && status != TILE_IO && status != TILE_NOT_FOUND && status != TILE_UNAVAILABLE;
}

/* Called with the mutex held and the state COMPILING; the mutex is let go while compiling. */
static void compile(TileKernel *kernel, TileVariant *variant) {
    TileImageSource *source = &kernel->library->source;
    variant->compiler = getpid();
    pthread_mutex_unlock(&kernel->mutex);
    uint64_t begin = tile_clock_ns();
    TileImageCode *code = NULL;
    TileReport *report = NULL;
    tile_status status = source->compile(source->state, kernel->index, &variant->request, &code, &report);
    _Atomic uint64_t *costs = status == TILE_OK ? calloc(code->phase_count + 1u, sizeof *costs) : NULL;
    if (status == TILE_OK && !costs) {
        code->destroy(code);
        status = TILE_OUT_OF_MEMORY;
    }
    atomic_fetch_add(&kernel->compile_ns, tile_clock_ns() - begin);
    atomic_fetch_add(&kernel->compiled, status == TILE_OK);
    pthread_mutex_lock(&kernel->mutex);
    tile_report_destroy(variant->report);
    variant->report = report;
    variant->status = status;
    variant->code = status == TILE_OK ? code : NULL;
    variant->costs = costs;
    int state = status == TILE_OK ? TILE_VARIANT_READY : lasting(status) ? TILE_VARIANT_FAILED : TILE_VARIANT_IDLE;
    atomic_store_explicit(&variant->state, state, memory_order_release);
    pthread_cond_broadcast(&kernel->changed);
}

static TileVariant *add_variant(TileKernel *kernel, const TileImageRequest *request) {
    TileVariant *variant = calloc(1, sizeof *variant);
    if (!variant) return NULL;
    variant->request = *request;
    variant->next = atomic_load(&kernel->variants);
    atomic_store_explicit(&kernel->variants, variant, memory_order_release);
    return variant;
}

/* The error has as much of the report as fits. */
static tile_status fail(const TileKernel *kernel, const TileVariant *variant, TileError *error, TileReport **report) {
    static const char unplaced[] = "error: ";
    const char *text = variant->report ? tile_report_text(variant->report, false) : tile_status_text(variant->status);
    if (report) *report = tile_report_hold(variant->report);
    if (strncmp(text, unplaced, sizeof unplaced - 1) == 0) text += sizeof unplaced - 1;
    size_t length = strlen(text);
    while (length && text[length - 1] == '\n') length--;
    return tile_error_set(error, variant->status, "%s: %.*s", kernel->signature->name, (int)length, text);
}

/* With the mutex held. A variant that the parent was compiling when it forked is begun anew in the child. */
static tile_status settle(TileKernel *kernel, TileVariant *variant, TileError *error, TileReport **report) {
    bool tried = false;
    for (;;) {
        int state = atomic_load(&variant->state);
        if (state == TILE_VARIANT_READY) return TILE_OK;
        if (state == TILE_VARIANT_FAILED || (state == TILE_VARIANT_IDLE && tried))
            return fail(kernel, variant, error, report);
        if (state == TILE_VARIANT_COMPILING && variant->compiler == getpid()) {
            pthread_cond_wait(&kernel->changed, &kernel->mutex);
            continue;
        }
        atomic_store(&variant->state, TILE_VARIANT_COMPILING);
        compile(kernel, variant);
        tried = true;
    }
}

static tile_status get_after_miss(TileKernel *kernel, TileImageRequest *request, const uint64_t *words,
                                  TileVariant **variant, TileError *error, TileReport **report) {
    pthread_mutex_lock(&kernel->mutex);
    tile_status status = TILE_OK;
    TileVariant *found = find(kernel, request, words);
    if (!found && count_instance(kernel, request) >= TILE_VARIANT_LIMIT) {
        memset(request->facts, 0, sizeof request->facts);
        found = find(kernel, request, words);
    }
    if (!found) found = add_variant(kernel, request);
    if (!found)
        status = tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", kernel->signature->name);
    else
        status = settle(kernel, found, error, report);
    pthread_mutex_unlock(&kernel->mutex);
    *variant = found;
    return status;
}

tile_status tile_variant_get(TileKernel *kernel, const TileView *views, TileImageRequest *request,
                             TileVariant **variant, TileError *error, TileReport **report) {
    const TileImageSignature *signature = kernel->signature;
    uint64_t words[TILE_MAX_PARAMETERS];
    for (uint32_t i = 0; i < signature->static_count; i++) {
        const TileView *view = &views[signature->statics[i].parameter];
        int16_t axis = signature->statics[i].axis;
        request->statics[i] = axis < 0 ? (int64_t)view->scalar : view->extent[axis];
    }
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        TileGuard guard = views[i].tensor ? tile_guard_read(&views[i]) : (TileGuard){0, 0};
        words[i] = guard.word;
        request->facts[i] = guard.offer;
    }
    if (!kernel->library->source.compile) return tile_linked_choose(kernel, views, request, words, variant, error);
    TileVariant *last = atomic_load_explicit(&kernel->last, memory_order_acquire);
    if (last && serves(signature, last, TILE_VARIANT_READY, request, words)) {
        *variant = last;
        return TILE_OK;
    }
    TileVariant *found = find(kernel, request, words);
    tile_status status = TILE_OK;
    if (!found || atomic_load_explicit(&found->state, memory_order_acquire) != TILE_VARIANT_READY) {
        atomic_fetch_add_explicit(&kernel->misses, 1, memory_order_relaxed);
        status = get_after_miss(kernel, request, words, &found, error, report);
    }
    if (status != TILE_OK) return status;
    atomic_store_explicit(&kernel->last, found, memory_order_release);
    *variant = found;
    return TILE_OK;
}
