/* Bound calls that only run their phases: the short way from addresses to the driver, or to the code of a CPU.
 *
 * A launch from Python of tensors that have come before goes this way (python/src/again.c), and so does a bound call
 * without addresses. Behind a driver's launch hardly anything of the launcher is in the first caches (ADR 106), so what
 * counts is how much there is to run and to touch: no options are copied, no views are looked at, and nothing is
 * written but the list of parameters. */
#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "launch/bound.h"
#include "launch/report.h"

/* `count` words, and what there is room for behind them. */
static inline void copy_words(void *to, const void *from, uint32_t count) {
    enum { WORD = 8, BYTES = TILE_BOUND_STRIDE * WORD };
    char *end = (char *)to + (size_t)count * WORD;
    const char *next = from;
    for (char *at = to; at < end; at += BYTES, next += BYTES) memcpy(at, next, BYTES);
}

/* Are all addresses like those that it was bound with? lows: the lowest of each tensor's memory. words: gets them in the tensors'
 * slots, or, as a list, where they are. */
static inline __attribute__((always_inline)) bool place_words(const TileBound *bound, void *const *addresses, uint64_t *lows,
                                                              uint64_t *words, bool as_list) {
    uint64_t highs[TILE_MAX_PARAMETERS], differ = 0;
    if (!bound->again) return false;
    const TilePlace *place = bound->places;
    for (size_t i = 0, count = bound->place_count; i < count; i++, place++) {
        void *const *at = &addresses[place->parameter];
        uint64_t address = (uint64_t)(uintptr_t)*at, low = address + place->low, high = address + place->high;
        words[place->slot] = as_list ? (uint64_t)(uintptr_t)at : address;
        lows[i] = low;
        highs[i] = high;
        differ |= (address & place->odd) | !(address & place->coarse) | (low | high) >> TILE_ADDRESS_BITS;
    }
    const TilePair *pair = bound->pairs;
    for (const TilePair *end = pair + bound->pair_count; pair < end; pair++)
        differ |= (lows[pair->one] < highs[pair->other]) & (lows[pair->other] < highs[pair->one]);
    return !differ;
}

bool tile_bound_place(const TileBound *bound, void *const *addresses, uint64_t *slots, uint64_t *lows) {
    uint64_t found[TILE_MAX_PARAMETERS];
    memcpy(slots, bound->slots, bound->slot_count * sizeof *slots);
    if (!place_words(bound, addresses, found, slots, false)) return false;
    memset(lows, 0, bound->kernel->signature->parameter_count * sizeof *lows);
    for (uint32_t i = 0; i < bound->place_count; i++) lows[bound->places[i].parameter] = found[i];
    return true;
}

static inline void count_launch(const TileBound *bound) {
    atomic_fetch_add_explicit(&bound->variant->uses, TILE_VARIANT_LAUNCH, memory_order_relaxed);
}

/* ---- on a GPU ---- */

/* The driver is asked about addresses, or something else is to be made ready. */
static __attribute__((noinline)) tile_status begin_anew(const TileBound *bound, const uint64_t *lows, TileCudaStream *on,
                                                        TileError *error) {
    uint64_t of_parameters[TILE_MAX_PARAMETERS] = {0};
    for (uint32_t i = 0; i < bound->place_count; i++) of_parameters[bound->places[i].parameter] = lows[i];
    return tile_cuda_begin(bound->variant->code->gpu, on, bound->kernel->signature, of_parameters, error);
}

/* Grids that take more than a list: tensor maps, or so many programs that there are several. */
static __attribute__((noinline)) tile_status queue_slowly(const TileBound *bound, void *const *addresses, uint32_t phase,
                                                          const TileCudaStream *on, TileError *error) {
    uint64_t slots[TILE_LOCAL_SLOTS];
    void *list[TILE_LOCAL_SLOTS + TILE_CUDA_MORE_PARAMETERS];
    TileCudaParameters parameters = {list, bound->slot_count, slots, NULL, bound->kernel->signature->name};
    memcpy(slots, bound->slots, bound->slot_count * sizeof *slots);
    for (uint32_t i = 0; i < bound->place_count && addresses; i++)
        slots[bound->places[i].slot] = (uint64_t)(uintptr_t)addresses[bound->places[i].parameter];
    for (uint32_t i = 0; i < bound->slot_count; i++) list[i] = &slots[i];
    return tile_cuda_queue(bound->variant->code->gpu, phase, on, &parameters, bound->like.programs[phase], error);
}

/* list: what the driver reads as parameters: where the slots are, of tensors the caller's addresses, and the range of programs, which
 * is that of the first phase. */
static inline tile_status queue_grids(const TileBound *bound, void *const *addresses, void **list, TileCudaStream *on,
                                      TileError *error) {
    const TileImageCode *code = bound->variant->code;
    if (tile_cuda_may_be_captured(on)) TILE_TRY(tile_run_note_capture(bound->kernel, bound->variant, on, error));
    for (uint32_t i = 0; i < code->phase_count; i++) {
        const int64_t *programs = &bound->like.programs[i];
        if (!*programs) continue;
        if (i) list[bound->slot_count + 1] = (void *)(uintptr_t)programs;
        int result = tile_cuda_queue_list(code->gpu, i, on, list, *programs);
        if (result == TILE_CUDA_NO_LIST)
            TILE_TRY(queue_slowly(bound, addresses, i, on, error));
        else if (result != TILE_CUDA_SUCCESS)
            return tile_cuda_check(result, bound->kernel->signature->name, error);
    }
    return TILE_OK;
}

static inline tile_status queue(const TileBound *bound, void *const *addresses, void *stream, TileError *error) {
    uint64_t local_lows[TILE_MAX_PARAMETERS];
    const uint64_t *lows = bound->lows;
    void *copy[TILE_LOCAL_SLOTS + 2 + TILE_BOUND_STRIDE], **list = bound->parameters;
    TileCudaStream on = {.device = bound->like.device, .stream = stream};
    _Static_assert(sizeof *addresses == sizeof *bound->slots, "a slot is an address");
    if (addresses || bound->variant->code->phase_count > 1) copy_words(list = copy, bound->parameters, bound->slot_count + 2);
    if (addresses) {
        if (!place_words(bound, addresses, local_lows, (uint64_t *)(void *)list, true)) return TILE_NOT_FOUND;
        lows = local_lows;
    }
    if (!tile_cuda_is_ready(bound->variant->code->gpu, on.device, lows, bound->place_count))
        TILE_TRY(begin_anew(bound, lows, &on, error));
    tile_status status = queue_grids(bound, addresses, list, &on, error);
    if (on.scope.pushed) tile_cuda_end(&on);
    count_launch(bound);
    return status;
}

/* ---- on a CPU ---- */

static tile_status run_here(const TileBound *bound, void *const *addresses, TileThreadPool *threads, TileError *error) {
    uint64_t lows[TILE_MAX_PARAMETERS], copy[TILE_LOCAL_SLOTS + TILE_BOUND_STRIDE], *slots = bound->slots;
    const TileImageCode *code = bound->variant->code;
    TileThreadPool *pool = threads ? threads : tile_thread_pool_default();
    if (addresses) {
        copy_words(slots = copy, bound->slots, bound->slot_count);
        if (!place_words(bound, addresses, lows, slots, false)) return TILE_NOT_FOUND;
    }
    bool there = pool;
    for (uint32_t i = 0; i < code->phase_count && there; i++) {
        int64_t programs = bound->like.programs[i];
        if (programs)
            there = tile_run_plain(pool, &code->phases[i], &bound->variant->costs[i], bound->like.shape_key, slots, programs);
    }
    count_launch(bound);
    return there ? TILE_OK
                 : tile_error_set(error, TILE_OUT_OF_MEMORY, "%s: out of memory", bound->kernel->signature->name);
}

tile_status tile_bound_short(const TileBound *bound, void *const *addresses, const TileLaunchOptions *given) {
    TileCall call; /* of its options what tile_call_end looks at */
    int saved = errno;
    call.given = given->error;
    call.options.report = given->report;
    call.options.flags = given->flags;
    call.error.status = TILE_OK;
    call.error.message[0] = 0;
    if (given->report) *given->report = NULL;
    tile_status status = bound->variant->code->gpu ? queue(bound, addresses, given->stream, &call.error)
                                                   : run_here(bound, addresses, given->threads, &call.error);
    if (status != TILE_OK) status = tile_call_end(&call, status);
    errno = saved;
    return status;
}
