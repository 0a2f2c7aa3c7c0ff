/* One launch: read the arguments, find the code, check, run. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "launch/check.h"
#include "launch/clock.h"
#include "launch/cuda_records.h"
#include "launch/failure.h"
#include "launch/replay.h"
#include "launch/report.h"
#include "launch/threads.h"
#include "launch/variants.h"

enum {
    LOCAL_VALUES = 128, /* values of the host program that need no memory of their own */
    LOCAL_SLOTS = 2 * TILE_REPLAY_SLOTS,
    SHARE_NS = 20000, /* less work than this is not worth sharing */
    TIMED_LAUNCH = 64 /* one of so many of a variant is timed up to its code: two looks at the clock cost half a hit */
};

typedef struct Launch {
    TileKernel *kernel;
    TileVariant *variant;
    const TileImageCode *code;
    TileThreadPool *pool;
    TileError *error;
    TilePrintLine print;
    void *print_host;
    pthread_mutex_t printing; /* held while a line is handed over */
    TileView views[TILE_MAX_PARAMETERS];
    uint64_t *values;
    uint64_t *slots;
    uint32_t slot_count;
    TileReplayed like;   /* what the launch comes to, also where an earlier one was like it */
    bool began;          /* a phase was run */
    bool provisional;    /* other code will serve such arguments once it is there */
    uint64_t timed_from; /* 0: it is not timed */
    TileCudaStream on;   /* GPUs */
    void *device_temps;  /* GPUs: memory of the temporaries */
    TileScratch *memory; /* temporaries, and values and slots that are too many for the stack */
    uint64_t local_values[LOCAL_VALUES];
    uint64_t local_slots[LOCAL_SLOTS];
} Launch;

static const char *kernel_name(const Launch *launch) { return launch->kernel->signature->name; }

/* ---- memory of the launch ---- */

static tile_status out_of_memory(const Launch *launch) {
    return tile_error_set(launch->error, TILE_OUT_OF_MEMORY, "%s: out of memory", kernel_name(launch));
}

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Bytes of a temporary, rounded up to whole cache lines. */
static tile_status temp_bytes(const Launch *launch, const TileImageTemp *temp, size_t *bytes) {
    size_t total = tile_host_type_bytes((TileHostType)temp->type);
    for (int i = 0; i < temp->rank; i++) {
        int64_t extent = (int64_t)launch->values[temp->extents[i]];
        if (extent < 0 || extent > TILE_MAX_EXTENT)
            return tile_error_set(launch->error, TILE_INVALID_ARGUMENT, "%s: %s: dimension %d is %" PRId64,
                                  kernel_name(launch), temp->name, i, extent);
        if (__builtin_mul_overflow(total, (size_t)extent, &total) || total > SIZE_MAX / 4) return out_of_memory(launch);
    }
    *bytes = round_up(total);
    return TILE_OK;
}

static void put_tensor(uint64_t **slot, const void *data, unsigned rank, const int64_t *extent, const int64_t *stride) {
    *(*slot)++ = (uint64_t)(uintptr_t)data;
    for (unsigned i = 0; i < rank; i++) *(*slot)++ = (uint64_t)extent[i];
    for (unsigned i = 0; i < rank; i++) *(*slot)++ = (uint64_t)stride[i];
}

static void put_temp(const Launch *launch, uint64_t **slot, const TileImageTemp *temp, const char *data) {
    int64_t extent[TILE_MAX_RANK], stride[TILE_MAX_RANK];
    int64_t next = tile_host_type_bytes((TileHostType)temp->type);
    for (int i = temp->rank - 1; i >= 0; i--) {
        extent[i] = (int64_t)launch->values[temp->extents[i]];
        stride[i] = next;
        next *= extent[i] ? extent[i] : 1;
    }
    put_tensor(slot, data, temp->rank, extent, stride);
}

static uint32_t count_slots(const Launch *launch) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->code->order_count; i++) {
        const TileView *view = &launch->views[launch->code->order[i]];
        count += view->tensor ? 1 + 2u * view->rank : 1;
    }
    for (uint32_t i = 0; i < launch->code->temp_count; i++) count += 1 + 2u * launch->code->temps[i].rank;
    return count;
}

/* Takes memory for temporaries and, where they are many, slots; fills the slots. */
static tile_status make_slots(Launch *launch) {
    const TileImageCode *code = launch->code;
    uint32_t count = launch->slot_count = count_slots(launch);
    size_t slot_bytes = count > LOCAL_SLOTS ? round_up(count * sizeof(uint64_t)) : 0, total = slot_bytes;
    for (uint32_t i = 0; i < code->temp_count; i++) {
        size_t bytes = 0;
        TILE_TRY(temp_bytes(launch, &code->temps[i], &bytes));
        if (__builtin_add_overflow(total, bytes, &total)) return out_of_memory(launch);
    }
    bool on_gpu = launch->kernel->signature->gpu;
    size_t here = on_gpu ? slot_bytes : total;
    if (here && !(launch->memory = tile_scratch_take(tile_thread_pool_scratch(launch->pool), here)))
        return out_of_memory(launch);
    char *next = launch->memory ? launch->memory->memory : NULL;
    launch->slots = slot_bytes ? (uint64_t *)(void *)next : launch->local_slots;
    next += slot_bytes;
    if (on_gpu && total > slot_bytes) {
        TILE_TRY(tile_cuda_allocate(&launch->on, total - slot_bytes, kernel_name(launch), &launch->device_temps,
                                    launch->error));
        next = launch->device_temps;
    }
    uint64_t *slot = launch->slots;
    for (uint32_t i = 0; i < code->order_count; i++) {
        const TileView *view = &launch->views[code->order[i]];
        if (view->tensor)
            put_tensor(&slot, view->data, view->rank, view->extent, view->stride);
        else
            *slot++ = tile_scalar_slot((TileHostType)view->type, view->scalar);
    }
    for (uint32_t i = 0; i < code->temp_count; i++) {
        size_t bytes = 0;
        TILE_TRY(temp_bytes(launch, &code->temps[i], &bytes));
        put_temp(launch, &slot, &code->temps[i], next);
        next += bytes;
    }
    return TILE_OK;
}

/* ---- running ---- */

typedef struct PhaseRun {
    Launch *launch;
    const TileImagePhase *phase;
    int64_t first;             /* program that range number 0 stands for */
    _Atomic bool failed;       /* no memory for some thread's scratch */
    _Atomic int64_t assertion; /* number of the one that failed, or 0; of several the first that came to be known */
    char values[TILE_VALUES_BYTES]; /* what it shows of values; written by whoever sets the number */
} PhaseRun;

/* One call of a phase's code. */
typedef struct EntryRun {
    PhaseRun *run;
    unsigned line, column; /* of the first assertion that showed values; 0: none did */
    char values[TILE_VALUES_BYTES];
} EntryRun;

static void print_to_stderr(void *host, const char *line, size_t length) {
    (void)host;
    fwrite(line, 1, length, stderr);
}

/* Called by the phase's code, on any thread. */
static void print_items(void *context, int64_t number, const uint64_t *const *items) {
    EntryRun *entry = context;
    Launch *launch = entry->run->launch;
    const char *template = entry->run->phase->prints[number - 1];
    unsigned line, column;
    if (tile_print_is_assertion(template, &line, &column)) {
        if (entry->line) return; /* an earlier one failed */
        tile_print_line(template, items, tile_failure_keep, entry->values);
        entry->line = line;
        entry->column = column;
        return;
    }
    pthread_mutex_lock(&launch->printing);
    tile_print_line(template, items, launch->print, launch->print_host);
    pthread_mutex_unlock(&launch->printing);
}

static void prepare_scratch(EntryRun *entry, unsigned char *scratch) {
    const TileImagePhase *phase = entry->run->phase;
    int64_t none = 0;
    TilePhasePrint print = print_items;
    void *context = entry;
    if (phase->assertion_count) memcpy(scratch, &none, sizeof none);
    if (!phase->print_count) return;
    memcpy(scratch + 8, &print, sizeof print);
    memcpy(scratch + 16, &context, sizeof context);
}

/* Are the values those of the assertion with this text, which says where it stands? */
static bool are_values_of(const EntryRun *entry, const char *text) {
    char place[64];
    snprintf(place, sizeof place, "%u:%u: assertion failed: ", entry->line, entry->column);
    const char *at = strstr(text, place);
    return entry->line && at && (at == text || at[-1] == ':');
}

static void run_entry(PhaseRun *run, int64_t begin, int64_t end, void *scratch) {
    const TileImagePhase *phase = run->phase;
    int64_t number = 0, none = 0;
    EntryRun entry;
    entry.run = run;
    entry.line = 0;
    if (scratch) prepare_scratch(&entry, scratch);
    phase->entry(run->launch->slots, run->first + begin, run->first + end, scratch);
    if (!phase->assertion_count) return;
    memcpy(&number, scratch, sizeof number);
    if (!number || !atomic_compare_exchange_strong(&run->assertion, &none, number)) return;
    if (are_values_of(&entry, phase->assertions[number - 1])) strcpy(run->values, entry.values);
}

static void run_programs(void *state, int64_t begin, int64_t end) {
    PhaseRun *run = state;
    TileScratchCache *cache = tile_thread_pool_scratch(run->launch->pool);
    TileScratch *scratch = NULL;
    if (run->phase->scratch_bytes && !(scratch = tile_scratch_take(cache, run->phase->scratch_bytes))) {
        atomic_store(&run->failed, true);
        return;
    }
    run_entry(run, begin, end, scratch ? scratch->memory : NULL);
    if (scratch) tile_scratch_give(cache, scratch);
}

/* Extents decide what a program costs: a number that is the same for the same extents, never 0. */
static uint32_t shape_key(Launch *launch) {
    uint64_t key = 1;
    if (launch->like.shape_key) return launch->like.shape_key;
    for (uint32_t i = 0; i < launch->code->order_count; i++) {
        const TileView *view = &launch->views[launch->code->order[i]];
        for (unsigned k = 0; view->tensor && k < view->rank; k++)
            key = (key ^ (uint64_t)view->extent[k]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return launch->like.shape_key = (uint32_t)(key >> 32) | 1;
}

static void keep_cost(_Atomic uint64_t *cost, uint32_t key, double ns) {
    float single = (float)ns;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    atomic_store_explicit(cost, (uint64_t)key << 32 | bits, memory_order_relaxed);
}

static double cost_ns(uint64_t cost) {
    uint32_t bits = (uint32_t)cost;
    float single;
    memcpy(&single, &bits, sizeof single);
    return (double)single;
}

/* Runs the programs here or shares them, by what one took last time with the same extents (`cost`: a key of the
 * extents and the nanoseconds of a program as a float); where that is not known, measures the first few. */
static void run_phase(PhaseRun *run, _Atomic uint64_t *cost, int64_t programs) {
    int threads = tile_thread_pool_size(run->launch->pool);
    if (programs == 1 || threads == 1) {
        run_programs(run, 0, programs);
        return;
    }
    uint32_t key = shape_key(run->launch);
    uint64_t known = atomic_load_explicit(cost, memory_order_relaxed);
    double each = cost_ns(known);
    if (known >> 32 != key) {
        int64_t some = programs / (8 * (int64_t)threads) + 1;
        uint64_t start = tile_clock_ns();
        run_programs(run, 0, some);
        each = (double)(tile_clock_ns() - start) / (double)some;
        keep_cost(cost, key, each);
        run->first = some;
    }
    int64_t rest = programs - run->first;
    if (each * (double)rest < SHARE_NS) {
        if (rest) run_programs(run, 0, rest);
        return;
    }
    uint64_t start = tile_clock_ns();
    tile_thread_pool_run(run->launch->pool, rest, run_programs, run);
    keep_cost(cost, key, (double)(tile_clock_ns() - start) * threads / (double)rest);
}

static tile_status phase_status(const PhaseRun *run) {
    if (atomic_load(&run->failed)) return out_of_memory(run->launch);
    int64_t number = atomic_load(&run->assertion);
    if (!number) return TILE_OK;
    return tile_failure_set(kernel_name(run->launch), run->phase, number, run->values, run->launch->error);
}

/* The number of programs of a phase; 0 where an extent is not positive. */
static tile_status count_programs(const Launch *launch, const TileImagePhase *phase, int64_t *programs) {
    *programs = 1;
    bool overflow = false, empty = false;
    for (int i = 0; i < phase->rank; i++) {
        int64_t extent = (int64_t)launch->values[phase->extents[i]];
        empty |= extent <= 0;
        overflow |= __builtin_mul_overflow(*programs, extent, programs);
    }
    if (empty) *programs = 0;
    if (overflow && !empty)
        return tile_error_set(launch->error, TILE_INVALID_ARGUMENT, "%s: the grid has more than 2**63 programs",
                              kernel_name(launch));
    return TILE_OK;
}

/* The same for a phase that may be remembered. */
static tile_status find_programs(const Launch *launch, uint32_t phase, int64_t *programs) {
    if (phase >= TILE_REPLAY_PHASES) return count_programs(launch, &launch->code->phases[phase], programs);
    *programs = launch->like.programs[phase];
    return TILE_OK;
}

static tile_status listen_on_gpu(Launch *launch, uint32_t phase, int64_t programs) {
    const TileImageCode *code = launch->code;
    TileCudaListener listener = {&code->phases[phase], kernel_name(launch), launch->print, launch->print_host};
    return tile_cuda_launch_listening(code->gpu, phase, &launch->on, launch->slots, launch->slot_count, programs,
                                      &listener, launch->error);
}

/* A graph holds the code beyond this launch, and nobody says until when. Code that nothing evicts, or that stays
 * already, need not be asked about. */
static tile_status note_capture(Launch *launch) {
    TileVariant *variant = launch->variant;
    bool captures;
    if (!launch->kernel->library->source.compile) return TILE_OK;
    if (atomic_load_explicit(&variant->captured, memory_order_relaxed)) return TILE_OK;
    TILE_TRY(tile_cuda_captures(&launch->on, kernel_name(launch), &captures, launch->error));
    if (captures) atomic_store(&variant->captured, true);
    return TILE_OK;
}

/* Phases of one stream run in order; nobody waits for them here, but for those that have something to say. */
static tile_status run_on_gpu(Launch *launch) {
    const TileImageCode *code = launch->code;
    int64_t programs;
    TILE_TRY(note_capture(launch));
    launch->began = true;
    launch->on.grid_before = false;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        TILE_TRY(find_programs(launch, i, &programs));
        if (programs == 0) continue;
        bool listens = tile_cuda_listens(&code->phases[i]); /* copies of what it says come before and behind it */
        launch->on.grid_before &= !listens;
        if (listens)
            TILE_TRY(listen_on_gpu(launch, i, programs));
        else
            TILE_TRY(tile_cuda_launch(code->gpu, i, &launch->on, launch->slots, launch->slot_count, programs, NULL,
                                      kernel_name(launch), launch->error));
        launch->on.grid_before = !listens;
    }
    return TILE_OK;
}

static bool prints(const TileImageCode *code) {
    bool any = false;
    for (uint32_t i = 0; i < code->phase_count; i++) any |= code->phases[i].print_count != 0;
    return any;
}

static tile_status run_phases(Launch *launch) {
    const TileImageCode *code = launch->code;
    launch->began = true;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        int64_t programs = 0;
        TILE_TRY(find_programs(launch, i, &programs));
        if (programs == 0) continue;
        PhaseRun run = {.launch = launch, .phase = &code->phases[i]};
        run_phase(&run, &launch->variant->costs[i], programs);
        TILE_TRY(phase_status(&run));
    }
    return TILE_OK;
}

static tile_status run_here(Launch *launch) {
    bool printing = prints(launch->code);
    if (printing) pthread_mutex_init(&launch->printing, NULL);
    tile_status status = run_phases(launch);
    if (printing) pthread_mutex_destroy(&launch->printing);
    return status;
}

static tile_status run(Launch *launch, const TileArg *arguments) {
    const TileImageCode *code = launch->code;
    TILE_TRY(make_slots(launch));
    for (uint32_t i = 0; i < code->phase_count; i++) {
        int64_t programs;
        TILE_TRY(count_programs(launch, &code->phases[i], &programs));
        if (i < TILE_REPLAY_PHASES) launch->like.programs[i] = programs;
    }
    launch->began = code->interpret;
    if (code->interpret) return code->interpret(code, launch->slots, launch->print, launch->print_host, launch->error);
    shape_key(launch);
    launch->like.slot_count = launch->slot_count;
    if (!launch->provisional)
        tile_replay_record(launch->kernel, arguments, launch->views, launch->slots, &launch->like);
    return code->gpu ? run_on_gpu(launch) : run_here(launch);
}

/* ---- the whole way ---- */

/* Where the tensors of a GPU's kernel lie. */
static void find_lows(const Launch *launch, uint64_t *lows) {
    for (uint32_t i = 0; i < launch->kernel->signature->parameter_count; i++) {
        const TileView *view = &launch->views[i];
        lows[i] = view->tensor && view->low != view->high ? view->low : 0;
    }
}

static tile_status begin_on_gpu(Launch *launch) {
    uint64_t lows[TILE_MAX_PARAMETERS];
    find_lows(launch, lows);
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

static tile_status check_and_run(Launch *launch, const TileArg *arguments, bool runs) {
    const TileImageSignature *signature = launch->kernel->signature;
    tile_host_run(launch->code->host, launch->code->host_count, launch->views, launch->values);
    TILE_TRY(tile_check_dimensions(signature, launch->code, launch->views, launch->values, launch->error));
    TILE_TRY(tile_check_requires(signature, launch->code, launch->values, launch->error));
    TILE_TRY(tile_check_overlap(signature, launch->views, launch->error));
    TileCudaModule *gpu = launch->code->gpu;
    if (gpu) TILE_TRY(begin_on_gpu(launch));
    keep_time(launch);
    tile_status status = runs ? run(launch, arguments) : TILE_OK;
    if (launch->device_temps) tile_cuda_free(&launch->on, launch->device_temps);
    if (gpu) tile_cuda_end(&launch->on);
    if (launch->memory) tile_scratch_give(tile_thread_pool_scratch(launch->pool), launch->memory);
    return status;
}

/* Values of the host program that are too many for the stack. */
static tile_status run_with_memory(Launch *launch, const TileArg *arguments, bool runs) {
    TileScratchCache *cache = tile_thread_pool_scratch(launch->pool);
    TileScratch *memory = tile_scratch_take(cache, launch->code->host_count * sizeof(uint64_t));
    if (!memory) return out_of_memory(launch);
    launch->values = memory->memory;
    tile_status status = check_and_run(launch, arguments, runs);
    tile_scratch_give(cache, memory);
    return status;
}

static tile_status launch_anew(Launch *launch, const TileArg *arguments, size_t count, const TileLaunchOptions *options,
                               bool runs) {
    TileImageRequest request;
    TileKernel *kernel = launch->kernel;
    TILE_TRY(tile_arguments_read(kernel->signature, arguments, count, false, launch->views, &request, launch->error));
    for (uint32_t i = 0; i < kernel->signature->parameter_count && kernel->signature->gpu; i++)
        if (launch->views[i].tensor) launch->on.device = launch->views[i].device;
    TILE_TRY(tile_variant_get(kernel, launch->views, &request, &launch->variant, launch->error, options->report));
    launch->provisional = request.provisional;
    if (request.missed) launch->timed_from = 0;
    launch->like.variant = launch->variant;
    launch->like.shape_key = 0;
    launch->code = launch->variant->code;
    launch->values = launch->local_values;
    tile_status status = launch->code->host_count <= LOCAL_VALUES ? check_and_run(launch, arguments, runs)
                                                                  : run_with_memory(launch, arguments, runs);
    if (request.missed && launch->began) atomic_fetch_add_explicit(&kernel->cold, 1, memory_order_relaxed);
    tile_variant_give(launch->variant, launch->began);
    return status;
}

static tile_status run_again_on_gpu(Launch *launch, bool runs) {
    launch->on.device = launch->like.device;
    launch->slot_count = launch->like.slot_count;
    TILE_TRY(
        tile_cuda_begin(launch->code->gpu, &launch->on, launch->kernel->signature, launch->like.lows, launch->error));
    tile_status status = runs ? run_on_gpu(launch) : TILE_OK;
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
        status = run_here(launch);
    tile_variant_give(launch->variant, launch->began);
    return status;
}

static tile_status launch_with(TileKernel *kernel, const TileArg *arguments, size_t count,
                               const TileLaunchOptions *options, bool runs) {
    Launch launch;
    launch.kernel = kernel;
    launch.error = options->error;
    launch.print = options->print ? options->print : print_to_stderr;
    launch.print_host = options->print_host;
    launch.memory = NULL;
    launch.began = false;
    launch.timed_from = runs && is_timed(kernel) ? tile_clock_ns() : 0;
    launch.pool = options->threads ? options->threads : tile_thread_pool_default();
    if (!launch.pool) return out_of_memory(&launch);
    launch.device_temps = NULL;
    launch.on = (TileCudaStream){.stream = options->stream};
    if (options->stream && !kernel->signature->gpu)
        return tile_error_set(launch.error, TILE_INVALID_ARGUMENT, "%s: a CPU has no streams", kernel_name(&launch));
    if (tile_replay_find(kernel, arguments, count, runs ? launch.local_slots : NULL, &launch.like))
        return launch_again(&launch, runs);
    return launch_anew(&launch, arguments, count, options, runs);
}

static tile_status launch_kernel(TileKernel *kernel, const TileArg *arguments, size_t count,
                                 const TileLaunchOptions *given, bool run) {
    TileCall call;
    int saved = errno;
    if (!kernel || !tile_call_begin(&call, given)) return TILE_INVALID_ARGUMENT;
    tile_status status = tile_call_end(&call, launch_with(kernel, arguments, count, &call.options, run));
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
