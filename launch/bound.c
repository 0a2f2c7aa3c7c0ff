/* Bound calls: what is known of the arguments but for their addresses is checked once. A bound call holds its variant,
 * so that nothing evicts it. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "launch/bound.h"
#include "launch/check.h"
#include "launch/guard.h"
#include "launch/host.h"
#include "launch/observe.h"
#include "launch/options.h"
#include "launch/report.h"
#include "launch/run.h"

typedef TileLaunchRun Launch;

/* ---- binding ---- */

static void free_memory(TileBound *bound) {
    free(bound->values);
    free(bound->slots);
    free(bound->places);
    free(bound->lows);
    free(bound->pairs);
    free(bound->parameters);
    free(bound);
}

void tile_bound_destroy(TileBound *bound) {
    if (!bound) return;
    tile_variant_give(bound->variant, false);
    free_memory(bound);
}

/* The bits of an address that are 0 where it has the greatest of these alignments. */
static uint64_t bits_below(uint64_t alignments) {
    return alignments ? (UINT64_C(2) << (63 - __builtin_clzll(alignments))) - 1 : 0;
}

/* An empty tensor has no address to compare; where memory is shared, a launch has other code than where it is not. */
static bool note_place(const TileBound *bound, uint32_t i, TilePlace *place) {
    const TileView *view = &bound->views[i];
    const TileImageCode *code = bound->variant->code;
    uint64_t missed = code->asked[i] & ~bound->variant->request.facts[i], address = (uint64_t)(uintptr_t)view->data;
    place->parameter = i;
    place->apart = bound->kernel->signature->parameters[i].access != TILE_PARAMETER_IN ||
                   (code->need[i] & TILE_GUARD_DISJOINT);
    place->odd = bits_below((code->need[i] & TILE_GUARD_ALIGN) | tile_guard_align(tile_host_type_bytes((TileHostType)view->type)));
    uint64_t unmet = missed & TILE_GUARD_ALIGN;
    place->coarse = unmet ? bits_below(unmet & -unmet) : UINT64_MAX;
    place->low = view->low - address;
    place->high = view->high - address;
    return view->low != view->high && !(missed & TILE_GUARD_DISJOINT);
}

/* Two arguments whose memory must not be shared: each pair once. */
static void note_pairs(TileBound *bound) {
    for (uint32_t i = 0; i < bound->place_count; i++)
        for (uint32_t k = i + 1; k < bound->place_count; k++)
            if (bound->places[i].apart || bound->places[k].apart)
                bound->pairs[bound->pair_count++] = (TilePair){(uint16_t)i, (uint16_t)k};
}

/* What prints or has assertions needs more than its slots. */
static bool only_runs(const TileBound *bound) {
    const TileImageCode *code = bound->variant->code;
    bool only = !code->interpret && bound->copies && code->phase_count <= TILE_REPLAY_PHASES;
    for (uint32_t i = 0; i < code->phase_count && only; i++)
        only = !code->phases[i].print_count && !code->phases[i].assertion_count;
    return only;
}

static bool note_places(TileBound *bound) {
    const TileImageCode *code = bound->variant->code;
    bool all = bound->copies;
    uint32_t slot = 0, place_of[TILE_MAX_PARAMETERS];
    for (uint32_t i = 0; i < bound->kernel->signature->parameter_count; i++) {
        if (!bound->views[i].tensor) continue;
        place_of[i] = bound->place_count++;
        bound->lows[place_of[i]] = bound->like.lows[i];
        all &= note_place(bound, i, &bound->places[place_of[i]]);
    }
    for (uint32_t i = 0; i < code->order_count; i++) {
        const TileView *view = &bound->views[code->order[i]];
        if (view->tensor) bound->places[place_of[code->order[i]]].slot = slot;
        slot += view->tensor ? 1 + 2u * view->rank : 1;
    }
    note_pairs(bound);
    return all;
}

/* Keeps what the launch has found out. Takes its variant on success. */
static tile_status keep(Launch *launch, TileBound **made) {
    const TileImageCode *code = launch->code;
    uint32_t count = launch->kernel->signature->parameter_count;
    TileBound *bound = calloc(1, sizeof *bound + count * sizeof *bound->views);
    if (!bound) return tile_run_out_of_memory(launch);
    bound->values = calloc(code->host_count + 1u, sizeof *bound->values);
    bound->copies = !code->temp_count && launch->slot_count <= TILE_LOCAL_SLOTS;
    bound->slot_count = launch->slot_count;
    bound->slots = calloc(launch->slot_count + (unsigned)TILE_BOUND_STRIDE, sizeof *bound->slots);
    bound->parameters = calloc(launch->slot_count + 2u + (unsigned)TILE_BOUND_STRIDE, sizeof *bound->parameters);
    bound->places = calloc(count + 1u, sizeof *bound->places);
    bound->lows = calloc(count + 1u, sizeof *bound->lows);
    bound->pairs = calloc(count * count / 2 + 1u, sizeof *bound->pairs);
    bound->kernel = launch->kernel;
    bound->like = launch->like;
    bound->placed = true;
    if (!bound->values || !bound->slots || !bound->places || !bound->lows || !bound->pairs ||
        !bound->parameters) {
        free_memory(bound);
        return tile_run_out_of_memory(launch);
    }
    memcpy(bound->values, launch->values, code->host_count * sizeof *bound->values);
    memcpy(bound->slots, launch->slots, launch->slot_count * sizeof *bound->slots);
    for (uint32_t i = 0; i < count; i++) {
        bound->views[i] = launch->views[i];
        bound->placed &= !launch->views[i].imagined;
    }
    bound->variant = launch->variant;
    bound->again = note_places(bound);
    bound->only_runs = only_runs(bound);
    bound->maps = code->gpu && tile_cuda_has_maps(code->gpu);
    for (uint32_t i = 0; i < bound->slot_count; i++) bound->parameters[i] = &bound->slots[i];
    bound->parameters[bound->slot_count] = &bound->first;
    bound->parameters[bound->slot_count + 1] = &bound->like.programs[0];
    *made = bound;
    return TILE_OK;
}

static tile_status check(Launch *launch, TileBound **bound) {
    const TileImageSignature *signature = launch->kernel->signature;
    tile_host_run(launch->code->host, launch->code->host_count, launch->views, launch->values);
    TILE_TRY(tile_check_dimensions(signature, launch->code, launch->views, launch->values, launch->error));
    TILE_TRY(tile_check_requires(signature, launch->code, launch->values, launch->error));
    TILE_TRY(tile_check_overlap(signature, launch->views, launch->error));
    TILE_TRY(tile_run_count_programs(launch));
    tile_run_shape_key(launch);
    tile_run_find_lows(launch, launch->like.lows);
    launch->like.device = tile_views_device(signature, launch->views);
    tile_status status = tile_run_make_slots_here(launch);
    if (status == TILE_OK) status = keep(launch, bound);
    tile_run_release(launch);
    return status;
}

static tile_status bind(TileKernel *kernel, const TileArg *arguments, size_t count, const TileLaunchOptions *options,
                        TileBound **bound) {
    Launch launch;
    TileImageRequest request;
    TILE_TRY(tile_run_begin(&launch, kernel, options));
    TILE_TRY(tile_arguments_read(kernel->signature, arguments, count, TILE_READ_SHAPES, launch.views, &request,
                                 launch.error));
    request.waits = true;
    TILE_TRY(tile_variant_get(kernel, launch.views, &request, &launch.variant, launch.error, options->report));
    launch.code = launch.variant->code;
    launch.like = (TileReplayed){.variant = launch.variant};
    launch.values = calloc(launch.code->host_count + 1u, sizeof *launch.values);
    tile_status status = launch.values ? check(&launch, bound) : tile_run_out_of_memory(&launch);
    free(launch.values);
    if (status != TILE_OK) tile_variant_give(launch.variant, false);
    return status;
}

tile_status tile_bind(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                      const TileLaunchOptions *given, TileBound **bound) {
    TileCall call;
    int saved = errno;
    if (!kernel || !bound || !tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    tile_status status = tile_call_end(&call, bind(kernel, arguments, argument_count, &call.options, bound));
    errno = saved;
    return status;
}

/* ---- new addresses ---- */

static tile_status refuse_address(const Launch *launch, uint32_t parameter, TileErrorCode code, const char *why) {
    tile_error_set(launch->error, TILE_INVALID_ARGUMENT, "%s: %s: %s", launch->kernel->signature->name,
                   launch->kernel->signature->parameters[parameter].name, why);
    tile_error_about(launch->error, TILE_OK, (int)parameter, code);
    return TILE_INVALID_ARGUMENT;
}

static tile_status place_view(const Launch *launch, const TileBound *bound, uint32_t i, void *address, TileView *view) {
    const TileView *before = &bound->views[i];
    view->data = address;
    view->low = view->high = (uint64_t)(uintptr_t)address;
    view->imagined = false;
    if (before->low == before->high) return TILE_OK; /* without elements */
    uint64_t place = (uint64_t)(uintptr_t)address, was = (uint64_t)(uintptr_t)before->data;
    uint64_t align = tile_guard_align_of(place);
    uint64_t need = bound->variant->code->need[i] | tile_guard_align(tile_host_type_bytes((TileHostType)view->type));
    if (!address) return refuse_address(launch, i, TILE_ERROR_ADDRESS, "the address is NULL");
    if (need & TILE_GUARD_ALIGN & ~align)
        return refuse_address(launch, i, TILE_ERROR_ADDRESS,
                              "the address is not aligned as the code relies on since it was bound");
    view->low = place + (before->low - was);
    view->high = place + (before->high - was);
    if (view->high > INT64_MAX || view->low > view->high)
        return refuse_address(launch, i, TILE_ERROR_ADDRESS, "the tensor reaches past the address space");
    return TILE_OK;
}

/* Code may rely on disjoint memory where the kernel allows that it is shared. */
static tile_status check_disjoint(const Launch *launch) {
    const TileImageSignature *signature = launch->kernel->signature;
    for (uint32_t i = 0; i < signature->parameter_count; i++) {
        const TileView *view = &launch->views[i];
        if (!view->tensor || !(launch->code->need[i] & TILE_GUARD_DISJOINT)) continue;
        for (uint32_t k = 0; k < signature->parameter_count; k++)
            if (k != i && launch->views[k].tensor && view->low < launch->views[k].high &&
                launch->views[k].low < view->high)
                return refuse_address(launch, i, TILE_ERROR_OVERLAP,
                                      "memory is shared with another argument, as it was not when it was bound");
    }
    return tile_check_overlap(signature, launch->views, launch->error);
}

static tile_status place(Launch *launch, const TileBound *bound, void *const *addresses) {
    uint32_t count = bound->kernel->signature->parameter_count;
    memcpy(launch->views, bound->views, count * sizeof *launch->views);
    for (uint32_t i = 0; addresses && i < count; i++)
        if (launch->views[i].tensor) TILE_TRY(place_view(launch, bound, i, addresses[i], &launch->views[i]));
    if (addresses) TILE_TRY(check_disjoint(launch));
    tile_run_find_lows(launch, launch->like.lows);
    return TILE_OK;
}

static void fill_addresses(Launch *launch, const TileBound *bound) {
    uint64_t *slot = launch->local_slots;
    memcpy(slot, bound->slots, bound->slot_count * sizeof *slot);
    for (uint32_t i = 0; i < launch->code->order_count; i++) {
        const TileView *view = &launch->views[launch->code->order[i]];
        if (view->tensor) *slot = (uint64_t)(uintptr_t)view->data;
        slot += view->tensor ? 1 + 2u * view->rank : 1;
    }
    launch->slots = launch->local_slots;
}

/* ---- launching ---- */

static tile_status run_on_gpu(Launch *launch, const TileBound *bound) {
    launch->on.device = bound->like.device;
    TILE_TRY(
        tile_cuda_begin(launch->code->gpu, &launch->on, launch->kernel->signature, launch->like.lows, launch->error));
    tile_status status = bound->copies ? TILE_OK : tile_run_make_slots(launch);
    if (status == TILE_OK) status = tile_run_phases(launch);
    tile_run_release(launch);
    tile_cuda_end(&launch->on);
    return status;
}

static tile_status run(Launch *launch, const TileBound *bound) {
    if (launch->code->gpu) return run_on_gpu(launch, bound);
    tile_status status = bound->copies ? TILE_OK : tile_run_make_slots(launch);
    if (status == TILE_OK) status = tile_run_phases(launch);
    tile_run_release(launch);
    return status;
}

static tile_status launch_bound(const TileBound *bound, void *const *addresses, const TileLaunchOptions *options) {
    Launch launch;
    TILE_TRY(tile_run_begin(&launch, bound->kernel, options));
    launch.variant = bound->variant;
    launch.code = bound->variant->code;
    size_t lows = bound->kernel->signature->parameter_count * sizeof *launch.like.lows; /* of many more that there may be */
    memcpy(&launch.like, &bound->like, offsetof(TileReplayed, lows) + lows);
    launch.values = bound->values;
    launch.slot_count = bound->slot_count;
    launch.slots = bound->slots;
    if (!addresses && !bound->placed)
        return tile_error_set(options->error, TILE_INVALID_ARGUMENT, "%s: it was bound without addresses",
                              bound->kernel->signature->name);
    if (options->flags & TILE_LAUNCH_REMEMBERED) {
        launch.slots = launch.local_slots;
        if (!addresses || !tile_bound_place(bound, addresses, launch.local_slots, launch.like.lows)) return TILE_NOT_FOUND;
    } else {
        if (addresses || !bound->copies) TILE_TRY(place(&launch, bound, addresses));
        if (addresses && bound->copies) fill_addresses(&launch, bound);
    }
    tile_status status = run(&launch, bound);
    if (launch.began) atomic_fetch_add_explicit(&bound->variant->uses, TILE_VARIANT_LAUNCH, memory_order_relaxed);
    return status;
}

static tile_status launch_seen(const TileBound *bound, void *const *addresses, const TileLaunchOptions *options) {
    TileLaunchEvent event = {.struct_size = sizeof event, .kernel = bound->kernel, .stream = options->stream};
    if (!options->observer) return launch_bound(bound, addresses, options);
    tile_observe_before(options->observer, &event);
    event.status = launch_bound(bound, addresses, options);
    tile_observe_after(options->observer, &event);
    return event.status;
}

static tile_status launch_steps(TileCall *call, const TileLaunchStep *steps, size_t count) {
    int saved = errno;
    tile_status status = TILE_OK;
    for (size_t i = 0; i < count && status == TILE_OK; i++)
        status = steps[i].bound ? launch_seen(steps[i].bound, steps[i].addresses, &call->options)
                                : tile_error_set(&call->error, TILE_INVALID_ARGUMENT, "step %zu has no bound call", i);
    status = tile_call_end(call, status);
    errno = saved;
    return status;
}

static __attribute__((noinline)) tile_status launch_slowly(const TileBound *bound, void *const *addresses,
                                                           const TileLaunchOptions *given) {
    TileCall call;
    TileLaunchStep step = {bound, addresses};
    return tile_call_begin(&call, given) ? launch_steps(&call, &step, 1) : TILE_INVALID_ARGUMENT;
}

tile_status tile_launch_bound(const TileBound *bound, void *const *addresses, const TileLaunchOptions *given) {
    return tile_bound_is_short(bound, addresses, given) ? tile_bound_short(bound, addresses, given)
                                                        : launch_slowly(bound, addresses, given);
}

/* All of a plan runs, so none of it depends on what is remembered. */
tile_status tile_launch_steps(const TileLaunchStep *steps, size_t count, const TileLaunchOptions *given) {
    TileCall call;
    if (!tile_is_list(steps, count) || !tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    call.options.flags &= ~(uint32_t)TILE_LAUNCH_REMEMBERED;
    return launch_steps(&call, steps, count);
}
