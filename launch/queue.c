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

/* Are all addresses like those that it was bound with? lows: the lowest of each parameter's memory, 0 of scalars. */
static inline bool are_like(const TileBound *bound, void *const *addresses, uint64_t *lows) {
    uint32_t count = bound->kernel->signature->parameter_count;
    uint64_t highs[TILE_MAX_PARAMETERS], differ = 0;
    if (!bound->again) return false;
    for (uint32_t i = 0; i < count; i++) {
        const TilePlace *place = &bound->places[i];
        lows[i] = 0;
        if (!place->tensor) continue;
        uint64_t address = (uint64_t)(uintptr_t)addresses[i];
        uint64_t low = address + place->low, high = address + place->high;
        lows[i] = low;
        highs[i] = high;
        differ |= (address & place->odd) | !(address & place->coarse) | (low | high) >> TILE_ADDRESS_BITS;
    }
    for (uint32_t i = 0; i < bound->pair_count; i++) {
        TilePair pair = bound->pairs[i];
        differ |= (lows[pair.one] < highs[pair.other]) & (lows[pair.other] < highs[pair.one]);
    }
    return !differ;
}

static void fill_slots(const TileBound *bound, void *const *addresses, uint64_t *slots) {
    memcpy(slots, bound->slots, bound->slot_count * sizeof *slots);
    for (uint32_t i = 0; i < bound->kernel->signature->parameter_count; i++)
        if (bound->places[i].tensor) slots[bound->places[i].slot] = (uint64_t)(uintptr_t)addresses[i];
}

bool tile_bound_place(const TileBound *bound, void *const *addresses, uint64_t *slots, uint64_t *lows) {
    if (!are_like(bound, addresses, lows)) return false;
    fill_slots(bound, addresses, slots);
    return true;
}

/* What the driver reads as parameters: the slots, where they are, and of tensors the caller's addresses. */
static inline void fill_list(const TileBound *bound, void *const *addresses, void **list) {
    uint32_t slots = bound->slot_count, count = bound->kernel->signature->parameter_count;
    _Static_assert(sizeof *addresses == sizeof *bound->slots, "a slot is an address");
    for (uint32_t i = 0; i < slots; i += TILE_BOUND_STRIDE)
        memcpy(&list[i], &bound->parameters[i], TILE_BOUND_STRIDE * sizeof *list);
    for (uint32_t i = 0; i < count && addresses; i++)
        if (bound->places[i].tensor) list[bound->places[i].slot] = (void *)(uintptr_t)&addresses[i];
}

static tile_status queue_grids(const TileBound *bound, void *const *addresses, TileCudaStream *on, TileError *error) {
    const TileImageCode *code = bound->variant->code;
    void *list[TILE_LOCAL_SLOTS + TILE_CUDA_MORE_PARAMETERS];
    uint64_t slots[TILE_LOCAL_SLOTS];
    TileCudaParameters parameters = {list, bound->slot_count, bound->slots, NULL, bound->kernel->signature->name};
    fill_list(bound, addresses, list);
    if (bound->maps && addresses) {
        fill_slots(bound, addresses, slots);
        parameters.slots = slots;
    }
    if (tile_cuda_may_be_captured(on)) TILE_TRY(tile_run_note_capture(bound->kernel, bound->variant, on, error));
    for (uint32_t i = 0; i < code->phase_count; i++) {
        if (!bound->like.programs[i]) continue;
        TILE_TRY(tile_cuda_queue(code->gpu, i, on, &parameters, bound->like.programs[i], error));
        on->grid_before = true;
    }
    return TILE_OK;
}

/* On a GPU. */
static inline tile_status queue(const TileBound *bound, void *const *addresses, void *stream, TileError *error) {
    uint64_t local_lows[TILE_MAX_PARAMETERS];
    const uint64_t *lows = bound->like.lows;
    TileCudaStream on = {.device = bound->like.device, .stream = stream};
    if (addresses) {
        if (!are_like(bound, addresses, local_lows)) return TILE_NOT_FOUND;
        lows = local_lows;
    }
    TILE_TRY(tile_cuda_begin(bound->variant->code->gpu, &on, bound->kernel->signature, lows, error));
    tile_status status = queue_grids(bound, addresses, &on, error);
    if (on.scope.pushed) tile_cuda_end(&on);
    atomic_fetch_add_explicit(&bound->variant->uses, TILE_VARIANT_LAUNCH, memory_order_relaxed);
    return status;
}

/* On a CPU: of a launch what its phases look at. */
static tile_status run_here(const TileBound *bound, void *const *addresses, TileThreadPool *threads, TileError *error) {
    uint64_t lows[TILE_MAX_PARAMETERS];
    TileLaunchRun launch;
    launch.kernel = bound->kernel;
    launch.variant = bound->variant;
    launch.code = bound->variant->code;
    launch.error = error;
    launch.pool = threads ? threads : tile_thread_pool_default();
    launch.slots = bound->slots;
    launch.slot_count = bound->slot_count;
    launch.like.shape_key = bound->like.shape_key;
    for (uint32_t i = 0; i < launch.code->phase_count; i++) launch.like.programs[i] = bound->like.programs[i];
    if (addresses) {
        if (!are_like(bound, addresses, lows)) return TILE_NOT_FOUND;
        fill_slots(bound, addresses, launch.local_slots);
        launch.slots = launch.local_slots;
    }
    if (!launch.pool) return tile_run_out_of_memory(&launch);
    tile_status status = tile_run_phases(&launch);
    atomic_fetch_add_explicit(&bound->variant->uses, TILE_VARIANT_LAUNCH, memory_order_relaxed);
    return status;
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
