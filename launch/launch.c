/* One launch: read the arguments, find the code, check, run. */
#include <errno.h>

#include "launch/check.h"
#include "launch/clock.h"
#include "launch/host.h"
#include "launch/observe.h"
#include "launch/report.h"
#include "launch/run.h"
#include "launch/values.h"

enum {
    TIMED_LAUNCH = 64 /* one of so many of a variant is timed up to its code: two looks at the clock cost half a hit */
};

typedef TileLaunchRun Launch;

static tile_status run(Launch *launch, const TileArg *arguments) {
    TILE_TRY(tile_run_make_slots(launch));
    TILE_TRY(tile_run_count_programs(launch));
    tile_run_shape_key(launch);
    launch->like.slot_count = launch->slot_count;
    if (!launch->provisional && launch->remembered)
        tile_replay_record(launch->kernel, arguments, launch->views, launch->slots, &launch->like);
    return tile_run_phases(launch);
}

/* ---- the whole way ---- */

static tile_status begin_on_gpu(Launch *launch) {
    uint64_t lows[TILE_MAX_PARAMETERS];
    tile_run_find_lows(launch, lows);
    return tile_cuda_begin(launch->code->gpu, &launch->on, launch->kernel->signature, lows, launch->error);
}

/* One launch of many, by the number of those that the variant used last has had; the first one made it. */
static bool is_timed(const TileKernel *kernel) {
    const TileVariant *last = atomic_load_explicit(&kernel->last, memory_order_acquire);
    return last && atomic_load_explicit(&last->uses, memory_order_relaxed) / TILE_VARIANT_LAUNCH % TIMED_LAUNCH == 1;
}

/* The guards are behind the launch, and its code comes. */
static void keep_time(const Launch *launch) {
    TileKernel *kernel = launch->kernel;
    if (!launch->timed_from) return;
    atomic_fetch_add_explicit(&kernel->timed_guard_ns, tile_clock_ns() - launch->timed_from, memory_order_relaxed);
    atomic_fetch_add_explicit(&kernel->timed_launches, 1, memory_order_relaxed);
}

/* The second launch with values of which code would make use asks for such code, unless a graph captures the launch:
 * then a later one does. Until then such launches are not remembered. */
static bool settle_values(Launch *launch, const TileImageRequest *request) {
    bool captures = false;
    TileValuesSeen seen = tile_values_note(launch->kernel, launch->variant, request, launch->views);
    if (seen != TILE_VALUES_AGAIN) return seen == TILE_VALUES_SETTLED;
    bool asks = !launch->code->gpu ||
                tile_cuda_captures(&launch->on, launch->kernel->signature->name, &captures, NULL) == TILE_OK;
    if (!asks || captures) return false;
    tile_values_ask(launch->kernel, launch->variant, request, launch->views);
    return true;
}

static tile_status check_and_run(Launch *launch, const TileArg *arguments, const TileImageRequest *request, bool runs) {
    const TileImageSignature *signature = launch->kernel->signature;
    tile_host_run(launch->code->host, launch->code->host_count, launch->views, launch->values);
    TILE_TRY(tile_check_dimensions(signature, launch->code, launch->views, launch->values, launch->error));
    TILE_TRY(tile_check_requires(signature, launch->code, launch->values, launch->error));
    TILE_TRY(tile_check_overlap(signature, launch->views, launch->error));
    TileCudaModule *gpu = launch->code->gpu;
    if (gpu) TILE_TRY(begin_on_gpu(launch));
    keep_time(launch);
    launch->remembered = runs && settle_values(launch, request);
    tile_status status = runs ? run(launch, arguments) : TILE_OK;
    tile_run_release(launch);
    if (gpu) tile_cuda_end(&launch->on);
    return status;
}

/* Values of the host program that are too many for the stack. */
static tile_status run_with_memory(Launch *launch, const TileArg *arguments, const TileImageRequest *request,
                                   bool runs) {
    TileScratchCache *cache = tile_thread_pool_scratch(launch->pool);
    TileScratch *memory = tile_scratch_take(cache, launch->code->host_count * sizeof(uint64_t));
    if (!memory) return tile_run_out_of_memory(launch);
    launch->values = memory->memory;
    tile_status status = check_and_run(launch, arguments, request, runs);
    tile_scratch_give(cache, memory);
    return status;
}

static tile_status launch_anew(Launch *launch, const TileArg *arguments, size_t count, const TileLaunchOptions *options,
                               bool runs) {
    TileImageRequest request;
    TileKernel *kernel = launch->kernel;
    TILE_TRY(tile_arguments_read(kernel->signature, arguments, count, runs ? 0 : TILE_READ_SHAPES, launch->views,
                                 &request, launch->error));
    for (uint32_t i = 0; i < kernel->signature->parameter_count && kernel->signature->gpu; i++)
        if (launch->views[i].tensor) launch->on.device = launch->views[i].device;
    launch->like.specials = (uint16_t)atomic_load_explicit(&kernel->specials, memory_order_acquire);
    TILE_TRY(tile_variant_get(kernel, launch->views, &request, &launch->variant, launch->error, options->report));
    launch->provisional = request.provisional;
    if (request.missed) launch->timed_from = 0;
    launch->like.variant = launch->variant;
    launch->like.shape_key = 0;
    launch->code = launch->variant->code;
    launch->values = launch->local_values;
    bool few = launch->code->host_count <= TILE_LOCAL_VALUES;
    tile_status status =
        few ? check_and_run(launch, arguments, &request, runs) : run_with_memory(launch, arguments, &request, runs);
    if (request.missed && launch->began) atomic_fetch_add_explicit(&kernel->cold, 1, memory_order_relaxed);
    tile_variant_give(launch->variant, launch->began);
    return status;
}

static tile_status run_again_on_gpu(Launch *launch, bool runs) {
    launch->on.device = launch->like.device;
    launch->slot_count = launch->like.slot_count;
    TILE_TRY(
        tile_cuda_begin(launch->code->gpu, &launch->on, launch->kernel->signature, launch->like.lows, launch->error));
    tile_status status = runs ? tile_run_phases(launch) : TILE_OK;
    tile_cuda_end(&launch->on);
    return status;
}

static tile_status launch_again(Launch *launch, bool runs) {
    launch->variant = launch->like.variant;
    launch->code = launch->variant->code;
    launch->slots = launch->local_slots;
    keep_time(launch);
    tile_status status = TILE_OK;
    if (launch->code->gpu)
        status = run_again_on_gpu(launch, runs);
    else if (runs)
        status = tile_run_phases(launch);
    tile_variant_give(launch->variant, launch->began);
    return status;
}

static tile_status launch_with(TileKernel *kernel, const TileArg *arguments, size_t count,
                               const TileLaunchOptions *options, bool runs) {
    Launch launch;
    launch.timed_from = runs && is_timed(kernel) ? tile_clock_ns() : 0;
    TILE_TRY(tile_run_begin(&launch, kernel, options));
    if (tile_replay_find(kernel, arguments, count, runs ? launch.local_slots : NULL, &launch.like))
        return launch_again(&launch, runs);
    if (options->flags & TILE_LAUNCH_REMEMBERED) return TILE_NOT_FOUND;
    return launch_anew(&launch, arguments, count, options, runs);
}

static tile_status launch_seen(TileKernel *kernel, const TileArg *arguments, size_t count,
                               const TileLaunchOptions *options) {
    TileLaunchEvent event = {sizeof event, kernel, arguments, count, options->stream, TILE_OK};
    tile_observe_before(options->observer, &event);
    event.status = launch_with(kernel, arguments, count, options, true);
    tile_observe_after(options->observer, &event);
    return event.status;
}

static tile_status launch_kernel(TileKernel *kernel, const TileArg *arguments, size_t count,
                                 const TileLaunchOptions *given, bool run) {
    TileCall call;
    int saved = errno;
    if (!kernel || !tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    tile_status status = run && call.options.observer ? launch_seen(kernel, arguments, count, &call.options)
                                                      : launch_with(kernel, arguments, count, &call.options, run);
    status = tile_call_end(&call, status);
    errno = saved;
    return status;
}

tile_status tile_launch(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                        const TileLaunchOptions *options) {
    return launch_kernel(kernel, arguments, argument_count, options, true);
}

tile_status tile_prepare(TileKernel *kernel, const TileArg *arguments, size_t argument_count,
                         const TileLaunchOptions *options) {
    return launch_kernel(kernel, arguments, argument_count, options, false);
}
