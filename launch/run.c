#include "launch/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/temp.h"
#include "launch/clock.h"
#include "launch/cuda_records.h"
#include "launch/failure.h"
#include "launch/host.h"
#include "launch/share.h"


typedef TileLaunchRun Launch;

static const char *kernel_name(const Launch *launch) { return launch->kernel->signature->name; }

/* ---- memory of the launch ---- */

tile_status tile_run_out_of_memory(const Launch *launch) {
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
    }
    for (int i = temp->rank - 1; i >= 0; i--) {
        if (__builtin_mul_overflow(total, (size_t)launch->values[temp->extents[i]], &total) || total > SIZE_MAX / 4)
            return tile_run_out_of_memory(launch);
        if (i + 1 == temp->rank) total = (size_t)tile_temp_row_bytes((int64_t)total, temp->align);
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
        if (i + 1 == temp->rank) next = tile_temp_row_bytes(next, temp->align);
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

static void fill_slots(Launch *launch, uint64_t *slot) {
    for (uint32_t i = 0; i < launch->code->order_count; i++) {
        const TileView *view = &launch->views[launch->code->order[i]];
        if (view->tensor)
            put_tensor(&slot, view->data, view->rank, view->extent, view->stride);
        else
            *slot++ = tile_scalar_slot((TileHostType)view->type, view->scalar);
    }
}

/* Behind the arguments' slots. */
static tile_status fill_temps(Launch *launch, uint64_t *slot, char *next) {
    const TileImageCode *code = launch->code;
    for (uint32_t i = 0; i < code->temp_count; i++) slot -= 1 + 2u * code->temps[i].rank;
    for (uint32_t i = 0; i < code->temp_count; i++) {
        size_t bytes = 0;
        TILE_TRY(temp_bytes(launch, &code->temps[i], &bytes));
        put_temp(launch, &slot, &code->temps[i], next);
        next += bytes;
    }
    return TILE_OK;
}

/* temp_total: bytes of memory for temporaries. */
static tile_status take_slots(Launch *launch, size_t temp_total, char **temps) {
    uint32_t count = launch->slot_count = count_slots(launch);
    bool on_gpu = launch->kernel->signature->gpu;
    size_t slot_bytes = count > TILE_LOCAL_SLOTS ? round_up(count * sizeof(uint64_t)) : 0;
    size_t here = on_gpu ? slot_bytes : slot_bytes + temp_total;
    if (here && !(launch->memory = tile_scratch_take(tile_thread_pool_scratch(launch->pool), here)))
        return tile_run_out_of_memory(launch);
    char *memory = launch->memory ? launch->memory->memory : NULL;
    uint64_t *slots = slot_bytes ? (uint64_t *)(void *)memory : launch->local_slots;
    launch->slots = slots;
    *temps = memory + slot_bytes;
    fill_slots(launch, slots);
    if (!on_gpu || !temp_total) return TILE_OK;
    TILE_TRY(tile_cuda_allocate(&launch->on, temp_total, kernel_name(launch), &launch->device_temps, launch->error));
    *temps = launch->device_temps;
    return TILE_OK;
}

tile_status tile_run_make_slots(Launch *launch) {
    const TileImageCode *code = launch->code;
    size_t total = 0;
    char *temps = NULL;
    for (uint32_t i = 0; i < code->temp_count; i++) {
        size_t bytes = 0;
        TILE_TRY(temp_bytes(launch, &code->temps[i], &bytes));
        if (__builtin_add_overflow(total, bytes, &total) || total > SIZE_MAX / 4) return tile_run_out_of_memory(launch);
    }
    TILE_TRY(take_slots(launch, total, &temps));
    return code->temp_count ? fill_temps(launch, (uint64_t *)launch->slots + launch->slot_count, temps) : TILE_OK;
}

tile_status tile_run_make_slots_here(Launch *launch) {
    char *temps = NULL;
    return take_slots(launch, 0, &temps);
}

/* ---- running ---- */

typedef struct PhaseRun {
    Launch *launch;
    const TileImagePhase *phase;
    int64_t grain;             /* programs of a piece */
    _Atomic bool failed;       /* no memory for some thread's scratch */
    _Atomic int64_t assertion; /* number of the one that failed, or 0; of several the first that came to be known */
    char values[TILE_VALUES_BYTES]; /* what it shows of values; written by whoever sets the number */
} PhaseRun;

/* One call of a phase's code. */
typedef struct EntryRun {
    PhaseRun *run;
    const unsigned char *scratch;   /* its first 8 bytes have the number of the first assertion that failed, or 0 */
    char values[TILE_VALUES_BYTES]; /* what that one shows; "": nothing */
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
    int64_t failed = 0;
    if (!tile_print_is_assertion(template, NULL, NULL)) {
        tile_printer_line(&launch->printer, template, items);
        return;
    }
    /* An assertion shows values before it notes its number. */
    memcpy(&failed, entry->scratch, sizeof failed);
    if (!failed && !*entry->values) tile_print_line(template, items, tile_failure_keep, entry->values);
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

static void run_entry(PhaseRun *run, int64_t begin, int64_t end, void *scratch) {
    const TileImagePhase *phase = run->phase;
    int64_t number = 0, none = 0;
    EntryRun entry;
    entry.run = run;
    entry.scratch = scratch;
    *entry.values = '\0';
    if (scratch) prepare_scratch(&entry, scratch);
    phase->entry(run->launch->slots, begin * run->grain, end * run->grain, scratch);
    if (!phase->assertion_count) return;
    memcpy(&number, scratch, sizeof number);
    if (!number || !atomic_compare_exchange_strong(&run->assertion, &none, number)) return;
    strcpy(run->values, entry.values);
}

/* Pieces begin .. end-1. */
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

uint32_t tile_run_shape_key(Launch *launch) {
    uint64_t key = 1;
    if (launch->like.shape_key) return launch->like.shape_key;
    for (uint32_t i = 0; i < launch->code->order_count; i++) {
        const TileView *view = &launch->views[launch->code->order[i]];
        for (unsigned k = 0; view->tensor && k < view->rank; k++)
            key = (key ^ (uint64_t)view->extent[k]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return launch->like.shape_key = (uint32_t)(key >> 32) | 1;
}

static tile_status phase_status(const PhaseRun *run) {
    if (atomic_load(&run->failed)) return tile_run_out_of_memory(run->launch);
    int64_t number = atomic_load(&run->assertion);
    if (!number) return TILE_OK;
    return tile_failure_set(kernel_name(run->launch), run->phase, number, run->values, run->launch->error);
}

/* The number of programs of a phase, or of their bands; 0 where an extent is not positive. */
static tile_status count_programs(const Launch *launch, const TileImagePhase *phase, int64_t *programs) {
    *programs = 1;
    bool overflow = false, empty = false;
    for (int i = 0; i < phase->rank; i++) {
        int64_t extent = (int64_t)launch->values[phase->extents[i]];
        empty |= extent <= 0;
        overflow |= __builtin_mul_overflow(*programs, extent, programs);
    }
    if (phase->bands) overflow |= __builtin_mul_overflow(*programs, (int64_t)phase->bands, programs);
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
    TileCudaListener listener = {&code->phases[phase], kernel_name(launch), launch->printer.print,
                                 launch->printer.host};
    return tile_cuda_launch_listening(code->gpu, phase, &launch->on, launch->slots, launch->slot_count, programs,
                                      &listener, launch->error);
}

/* A graph holds the code beyond this launch, and nobody says until when. Code that nothing evicts, or that stays
 * already, need not be asked about. */
tile_status tile_run_note_capture(const TileKernel *kernel, TileVariant *variant, const TileCudaStream *on,
                                  TileError *error) {
    bool captures;
    if (!kernel->library->source.compile) return TILE_OK;
    if (atomic_load_explicit(&variant->captured, memory_order_relaxed)) return TILE_OK;
    TILE_TRY(tile_cuda_captures(on, kernel->signature->name, &captures, error));
    if (captures) atomic_store(&variant->captured, true);
    return TILE_OK;
}

/* Phases of one stream run in order; nobody waits for them here, but for those that have something to say. */
static tile_status run_on_gpu(Launch *launch) {
    const TileImageCode *code = launch->code;
    int64_t programs;
    TILE_TRY(tile_run_note_capture(launch->kernel, launch->variant, &launch->on, launch->error));
    launch->began = true;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        TILE_TRY(find_programs(launch, i, &programs));
        if (programs == 0) continue;
        bool listens = tile_cuda_listens(&code->phases[i]); /* copies of what it says come before and behind it */
        if (listens)
            TILE_TRY(listen_on_gpu(launch, i, programs));
        else
            TILE_TRY(tile_cuda_launch(code->gpu, i, &launch->on, launch->slots, launch->slot_count, programs, NULL,
                                      kernel_name(launch), launch->error));
    }
    return TILE_OK;
}

static bool prints(const TileImageCode *code) {
    bool any = false;
    for (uint32_t i = 0; i < code->phase_count; i++) any |= code->phases[i].print_count != 0;
    return any;
}

static tile_status run_each_phase(Launch *launch, bool printing) {
    const TileImageCode *code = launch->code;
    launch->began = true;
    for (uint32_t i = 0; i < code->phase_count; i++) {
        int64_t programs = 0;
        TILE_TRY(find_programs(launch, i, &programs));
        if (programs == 0) continue;
        PhaseRun run; /* of whose values the first byte says enough */
        run.launch = launch;
        run.phase = &code->phases[i];
        run.grain = 1;
        run.values[0] = '\0';
        atomic_init(&run.failed, false);
        atomic_init(&run.assertion, 0);
        if (run.phase->bands) run.grain = tile_share_grain(programs, run.phase->bands, tile_thread_pool_size(launch->pool));
        tile_share_run(launch->pool, &launch->variant->costs[i], tile_run_shape_key(launch), programs / run.grain,
                       run_programs, &run);
        if (printing) tile_printer_flush(&launch->printer);
        TILE_TRY(phase_status(&run));
    }
    return TILE_OK;
}

static tile_status run_here(Launch *launch) {
    bool printing = prints(launch->code);
    if (printing) tile_printer_open(&launch->printer);
    tile_status status = run_each_phase(launch, printing);
    if (printing) tile_printer_close(&launch->printer);
    return status;
}

/* ---- phases that only compute ---- */

typedef struct PlainRun {
    const TileImagePhase *phase;
    const uint64_t *slots;
    TileThreadPool *pool;
    int64_t grain;
    _Atomic bool failed;
} PlainRun;

static void run_plain(void *state, int64_t begin, int64_t end) {
    PlainRun *run = state;
    const TileImagePhase *phase = run->phase;
    if (!phase->scratch_bytes) {
        phase->entry(run->slots, begin * run->grain, end * run->grain, NULL);
        return;
    }
    TileScratchCache *cache = tile_thread_pool_scratch(run->pool);
    TileScratch *scratch = tile_scratch_take(cache, phase->scratch_bytes);
    if (!scratch) {
        atomic_store(&run->failed, true);
        return;
    }
    phase->entry(run->slots, begin * run->grain, end * run->grain, scratch->memory);
    tile_scratch_give(cache, scratch);
}

bool tile_run_plain(TileThreadPool *pool, const TileImagePhase *phase, TilePhaseCost *cost, uint32_t shape_key,
                    const uint64_t *slots, int64_t programs) {
    PlainRun run = {.phase = phase, .slots = slots, .pool = pool, .grain = 1};
    atomic_init(&run.failed, false);
    if (phase->bands) {
        run.grain = tile_share_grain(programs, phase->bands, tile_thread_pool_size(pool));
        programs /= run.grain;
    }
    tile_share_run(pool, cost, shape_key, programs, run_plain, &run);
    return !atomic_load_explicit(&run.failed, memory_order_relaxed);
}

tile_status tile_run_begin(Launch *launch, TileKernel *kernel, const TileLaunchOptions *options) {
    launch->kernel = kernel;
    launch->error = options->error;
    launch->printer.print = options->print ? options->print : print_to_stderr;
    launch->printer.host = options->print_host;
    launch->memory = NULL;
    launch->began = false;
    launch->pool = options->threads ? options->threads : tile_thread_pool_default();
    launch->device_temps = NULL;
    launch->on = (TileCudaStream){.stream = options->stream};
    if (!launch->pool) return tile_run_out_of_memory(launch);
    if (options->stream && !kernel->signature->gpu)
        return tile_error_set(launch->error, TILE_INVALID_ARGUMENT, "%s: a CPU has no streams", kernel_name(launch));
    return TILE_OK;
}

tile_status tile_run_count_programs(Launch *launch) {
    for (uint32_t i = 0; i < launch->code->phase_count; i++) {
        int64_t programs;
        TILE_TRY(count_programs(launch, &launch->code->phases[i], &programs));
        if (i < TILE_REPLAY_PHASES) launch->like.programs[i] = programs;
    }
    return TILE_OK;
}

void tile_run_find_lows(const Launch *launch, uint64_t *lows) {
    for (uint32_t i = 0; i < launch->kernel->signature->parameter_count; i++) {
        const TileView *view = &launch->views[i];
        lows[i] = view->tensor && view->low != view->high && !view->imagined ? view->low : 0;
    }
}

tile_status tile_run_phases(Launch *launch) {
    const TileImageCode *code = launch->code;
    if (code->interpret) {
        launch->began = true;
        return code->interpret(code, launch->slots, launch->printer.print, launch->printer.host, launch->error);
    }
    return code->gpu ? run_on_gpu(launch) : run_here(launch);
}

void tile_run_release(Launch *launch) {
    if (launch->device_temps) tile_cuda_free(&launch->on, launch->device_temps);
    if (launch->memory) tile_scratch_give(tile_thread_pool_scratch(launch->pool), launch->memory);
    launch->device_temps = NULL;
    launch->memory = NULL;
}
