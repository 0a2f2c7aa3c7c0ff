/* Finding code that does not exist yet: one thread compiles it, and others wait. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stack.h"
#include "launch/clock.h"
#include "launch/explain.h"
#include "launch/guard.h"
#include "launch/replay.h"
#include "launch/report.h"
#include "launch/settings.h"
#include "launch/stay.h"
#include "launch/variants.h"

/* ---- records ---- */

static TileVariant *first_of(const TileKernel *kernel) {
    return atomic_load_explicit(&kernel->variants, memory_order_relaxed);
}

static TileVariant *find(const TileKernel *kernel, const TileImageRequest *request, const TileView *views) {
    for (TileVariant *v = first_of(kernel); v; v = v->next) {
        int state = atomic_load(&v->state);
        if (state < TILE_VARIANT_EVICTED && tile_variant_serves(kernel->signature, v, state, request, views)) return v;
    }
    return NULL;
}

static uint32_t count_instance(const TileKernel *kernel, const TileImageRequest *request) {
    uint32_t count = 0;
    for (TileVariant *v = first_of(kernel); v; v = v->next)
        count += atomic_load(&v->state) < TILE_VARIANT_EVICTED &&
                 tile_variant_same_instance(kernel->signature, &v->request, request);
    return count;
}

static uint32_t count_specials(const TileKernel *kernel, const TileImageRequest *request) {
    uint32_t count = 0;
    for (TileVariant *v = first_of(kernel); v; v = v->next)
        count += atomic_load(&v->state) < TILE_VARIANT_EVICTED && atomic_load(&v->special) &&
                 tile_variant_same_instance(kernel->signature, &v->request, request);
    return count;
}

/* Launches with values whose code goes may ask for it again. */
static void forget_values(TileKernel *kernel) {
    for (uint32_t i = 0; i < TILE_VALUES_KEPT; i++) atomic_store(&kernel->seen[i], 0);
}

/* If there are too many variants, not counting pinned ones, evicts the least recently used one. */
static void evict_oldest(TileKernel *kernel) {
    TileVariant *oldest = NULL;
    uint32_t kept = 0, most = kernel->signature->gpu ? TILE_KEPT_GPU_VARIANTS : TILE_KEPT_VARIANTS;
    for (TileVariant *v = first_of(kernel); v; v = v->next) {
        int state = atomic_load(&v->state);
        if (state >= TILE_VARIANT_EVICTED || atomic_load(&v->captured)) continue;
        kept++;
        if (state != TILE_VARIANT_COMPILING && (!oldest || atomic_load(&v->stamp) < atomic_load(&oldest->stamp)))
            oldest = v;
    }
    if (kept < most || !oldest) return;
    atomic_fetch_add(&kernel->evicted, 1);
    if (atomic_load(&oldest->special)) forget_values(kernel);
    if (atomic_load(&oldest->state) == TILE_VARIANT_READY)
        tile_variant_evict(oldest);
    else
        atomic_store(&oldest->state, TILE_VARIANT_FREE);
}

/* Reuses the record of an evicted variant without users, else allocates one. */
static TileVariant *take_record(TileKernel *kernel) {
    for (TileVariant *v = first_of(kernel); v; v = v->next) {
        if (atomic_load(&v->state) != TILE_VARIANT_FREE) continue;
        uint64_t launches = atomic_load(&v->uses) / TILE_VARIANT_LAUNCH;
        atomic_fetch_sub(&v->uses, launches * TILE_VARIANT_LAUNCH);
        atomic_fetch_add(&kernel->past_launches, launches);
        atomic_fetch_add(&v->generation, 1);
        return v;
    }
    TileVariant *variant = calloc(1, sizeof *variant);
    if (!variant) return NULL;
    variant->next = first_of(kernel);
    atomic_store_explicit(&kernel->variants, variant, memory_order_release);
    return variant;
}

static bool tells_values(const TileKernel *kernel, const TileImageRequest *request) {
    uint64_t told = 0;
    for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) told |= request->facts[i];
    return told & TILE_GUARD_VALUE;
}

static TileVariant *add_variant(TileKernel *kernel, const TileImageRequest *request) {
    evict_oldest(kernel);
    TileVariant *variant = take_record(kernel);
    if (!variant) return NULL;
    variant->request = *request;
    variant->compile_ns = 0;
    atomic_store(&variant->rest, false);
    atomic_store(&variant->special, tells_values(kernel, request));
    atomic_store(&variant->stamp, atomic_fetch_add(&kernel->clock, 1));
    tile_report_destroy(variant->report);
    variant->report = NULL;
    atomic_store(&variant->state, TILE_VARIANT_IDLE);
    return variant;
}

/* ---- compiling ---- */

static bool lasting(tile_status status) {
    return status != TILE_OUT_OF_MEMORY && status != TILE_IO && status != TILE_NOT_FOUND && status != TILE_UNAVAILABLE;
}

static void learn_questions(TileKernel *kernel, const TileImageCode *code) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) {
        atomic_fetch_or_explicit(&kernel->asked[i], code->asked[i] | code->need[i], memory_order_relaxed);
        all |= code->asked[i] | code->need[i];
    }
    if (kernel->signature->maps && (all & TILE_GUARD_MAP))
        atomic_store_explicit(&kernel->maps, true, memory_order_relaxed);
}

static void log_compile(const TileKernel *kernel, const TileVariant *variant, tile_status status,
                        const TileImageCode *code) {
    TileExplanation what = {.length = 0}, relies = {.length = 0};
    if (!(kernel->library->settings.log & (TILE_LOG_GUARDS | TILE_LOG_COMPILE))) return;
    tile_explain_instance(&what, kernel->signature, &variant->request);
    if (code) tile_explain_facts(&relies, kernel->signature, code->need, variant->request.values);
    tile_log(&kernel->library->settings, TILE_LOG_GUARDS | TILE_LOG_COMPILE, "%s%s%s%s: compiled in %.1f ms%s%s",
             kernel->signature->name, what.length ? "[" : "", what.text, what.length ? "]" : "",
             (double)variant->compile_ns * 1e-6, code ? ", relies on: " : ": ",
             code ? relies.text : tile_status_text(status));
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
    TilePhaseCost *costs = status == TILE_OK ? calloc(code->phase_count + 1u, sizeof *costs) : NULL;
    if (status == TILE_OK && !costs) {
        code->destroy(code);
        status = TILE_OUT_OF_MEMORY;
    }
    variant->compile_ns = tile_clock_ns() - begin;
    atomic_fetch_add(&kernel->compile_ns, variant->compile_ns);
    if (status == TILE_OK) learn_questions(kernel, code);
    if (status == TILE_OK) tile_replay_prepare(kernel);
    pthread_mutex_lock(&kernel->mutex);
    log_compile(kernel, variant, status, code);
    tile_report_destroy(variant->report);
    variant->report = report;
    variant->status = status;
    variant->code = status == TILE_OK ? code : NULL;
    variant->costs = costs;
    int state = status == TILE_OK ? TILE_VARIANT_READY : lasting(status) ? TILE_VARIANT_FAILED : TILE_VARIANT_IDLE;
    atomic_store_explicit(&variant->state, state, memory_order_release);
    if (status == TILE_OK && atomic_load(&variant->special)) atomic_fetch_add(&kernel->specials, 1);
    atomic_fetch_add(&kernel->compiled, status == TILE_OK); /* readers of the number find the variant */
    pthread_cond_broadcast(&kernel->changed);
}

/* Copies as much of the report into the error as fits. */
static tile_status fail(const TileKernel *kernel, const TileVariant *variant, TileError *error, TileReport **report) {
    static const char unplaced[] = "error: ";
    const char *text = variant->report ? tile_report_text(variant->report, false) : tile_status_text(variant->status);
    if (report) *report = tile_report_hold(variant->report);
    if (strncmp(text, unplaced, sizeof unplaced - 1) == 0) text += sizeof unplaced - 1;
    size_t length = strlen(text);
    while (length && text[length - 1] == '\n') length--;
    return tile_error_set(error, variant->status, "%s: %.*s", kernel->signature->name, (int)length, text);
}

/* ---- a thread that compiles ---- */

typedef struct Background {
    TileKernel *kernel;
    TileVariant *variant;
} Background;

static void *compile_in_background(void *state) {
    Background job = *(Background *)state;
    free(state);
    pthread_mutex_lock(&job.kernel->mutex);
    compile(job.kernel, job.variant);
    job.kernel->background--;
    pthread_cond_broadcast(&job.kernel->changed);
    pthread_mutex_unlock(&job.kernel->mutex);
    tile_stay_worked();
    return NULL;
}

/* With the mutex held and the state IDLE. False if no thread can be started. */
static bool begin_background(TileKernel *kernel, TileVariant *variant) {
    Background *job = malloc(sizeof *job);
    pthread_t thread;
    if (!job || tile_process_ends()) return free(job), false;
    *job = (Background){kernel, variant};
    tile_stay_work(); /* the thread ends after the library that waits for it */
    atomic_store(&variant->state, TILE_VARIANT_COMPILING);
    variant->compiler = getpid();
    kernel->background++;
    bool started = tile_thread_create(&thread, compile_in_background, job) == 0;
    if (started) {
        pthread_detach(thread);
        return true;
    }
    tile_stay_worked();
    kernel->background--;
    atomic_store(&variant->state, TILE_VARIANT_IDLE);
    free(job);
    return false;
}

/* ---- the way ---- */

static bool is_general(const TileKernel *kernel, const TileImageRequest *request) {
    uint64_t facts = 0;
    for (uint32_t i = 0; i < kernel->signature->parameter_count; i++) facts |= request->facts[i];
    return !facts;
}

static void ask_for_general(TileImageRequest *request) { memset(request->facts, 0, sizeof request->facts); }

static void say_limit(TileKernel *kernel) {
    if (!kernel->limited)
        tile_log(
            &kernel->library->settings, TILE_LOG_GUARDS,
            "%s: %d variants for the same types and static values, which is the limit (TILE_VARIANT_LIMIT): general "
            "code serves what else comes",
            kernel->signature->name, kernel->library->settings.variant_limit);
    kernel->limited = true;
}

/* The variant's record, created on demand; beyond the limit, that of the general variant. */
static TileVariant *find_or_add(TileKernel *kernel, TileImageRequest *request, const TileView *views) {
    TileVariant *found = find(kernel, request, views);
    bool beyond = !found && !is_general(kernel, request) &&
                  count_instance(kernel, request) >= (uint32_t)kernel->library->settings.variant_limit;
    if (beyond) {
        say_limit(kernel);
        ask_for_general(request);
        found = find(kernel, request, views);
    }
    if (!found) found = add_variant(kernel, request);
    if (found && beyond) atomic_store(&found->rest, true);
    return found;
}

/* May general code serve while this variant is compiled? If so, its compilation has been started. */
static bool made_by_others(TileKernel *kernel, TileVariant *variant, const TileImageRequest *request) {
    TileOnMiss on_miss = kernel->library->settings.on_miss;
    int state = atomic_load(&variant->state);
    if (on_miss == TILE_ON_MISS_WAIT || request->waits || is_general(kernel, request)) return false;
    if (state == TILE_VARIANT_COMPILING) return variant->compiler == getpid();
    return on_miss == TILE_ON_MISS_BACKGROUND && state == TILE_VARIANT_IDLE && begin_background(kernel, variant);
}

/* With the mutex held. While it is released the record may be reused for another variant, so it is looked up again each
 * time. A compilation that the parent had begun before fork is begun again in the child. */
static tile_status settle(TileKernel *kernel, TileImageRequest *request, const TileView *views, TileVariant **variant,
                          TileError *error, TileReport **report) {
    for (bool tried = false;;) {
        TileVariant *found = find_or_add(kernel, request, views);
        if (!found) return tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", kernel->signature->name);
        int state = atomic_load(&found->state);
        *variant = found;
        if (state == TILE_VARIANT_READY && tile_variant_take(found)) return TILE_OK;
        if (state == TILE_VARIANT_FAILED || (state == TILE_VARIANT_IDLE && tried))
            return fail(kernel, found, error, report);
        if (made_by_others(kernel, found, request)) {
            ask_for_general(request);
            request->provisional = true;
            tried = false;
            continue;
        }
        if (state == TILE_VARIANT_COMPILING && found->compiler == getpid()) {
            pthread_cond_wait(&kernel->changed, &kernel->mutex);
            continue;
        }
        atomic_store(&found->state, TILE_VARIANT_COMPILING);
        compile(kernel, found);
        tried = true;
    }
}

/* Half of the limit is left to code for other facts, without which launches would have to take the general one. */
void tile_variant_begin(TileKernel *kernel, const TileImageRequest *request, const TileView *views) {
    uint32_t limit = (uint32_t)kernel->library->settings.variant_limit;
    pthread_mutex_lock(&kernel->mutex);
    TileVariant *found = find(kernel, request, views);
    if (!found) {
        bool room = count_specials(kernel, request) < limit / 2 && count_instance(kernel, request) < limit;
        found = room ? add_variant(kernel, request) : NULL;
    }
    if (found && atomic_load(&found->state) == TILE_VARIANT_IDLE) begin_background(kernel, found);
    pthread_mutex_unlock(&kernel->mutex);
}

static void log_miss(const TileKernel *kernel, const TileImageRequest *request, const TileView *views) {
    TileExplanation why = {.length = 0}, what = {.length = 0};
    if (!(kernel->library->settings.log & TILE_LOG_GUARDS)) return;
    tile_explain_miss(&why, kernel, request, views);
    tile_explain_instance(&what, kernel->signature, request);
    tile_log(&kernel->library->settings, TILE_LOG_GUARDS, "%s%s%s%s: miss: %s", kernel->signature->name,
             what.length ? "[" : "", what.text, what.length ? "]" : "", why.text);
}

tile_status tile_variant_miss(TileKernel *kernel, TileImageRequest *request, const TileView *views,
                              TileVariant **variant, TileError *error, TileReport **report) {
    pthread_mutex_lock(&kernel->mutex);
    TileVariant *found = find(kernel, request, views);
    if (!found || atomic_load(&found->state) != TILE_VARIANT_READY) {
        atomic_fetch_add(&kernel->misses, 1);
        request->missed = true;
        log_miss(kernel, request, views);
    }
    tile_status status = settle(kernel, request, views, variant, error, report);
    pthread_mutex_unlock(&kernel->mutex);
    return status;
}
