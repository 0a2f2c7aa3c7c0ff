/* Kernels on NVIDIA GPUs: loading their code, checking where their tensors lie, and queueing them. */
#include "launch/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "launch/cuda_blocks.h"
#include "launch/cuda_maps.h"
#include "launch/cuda_records.h"

/* ---- modules ---- */

typedef struct Phase {
    char *symbol;
    uint32_t threads;
    uint64_t shared_bytes;
    bool waits;
    /* NULL: a launch has a block for each program. Else, by device, how many blocks run at a time: set before the
     * device's bit in `prepared`. */
    uint32_t *blocks;
    TileCudaSpread *spread; /* by device, set as `blocks` is. NULL: the phase does not wait for the grid before */
    TileCudaMaps *maps;     /* NULL: none */
    void *kernel;
} Phase;

enum { KNOWN_ADDRESSES = 64, MOST_DEVICES = 64 /* bits of `prepared` */, DEVICE_SHIFT = 57 /* addresses have fewer bits */ };

struct TileCudaModule {
    const char *ptx;
    char *own;         /* the same, if it is owned */
    const void *cubin; /* borrowed; NULL: there is none */
    uint32_t capability;
    pthread_mutex_t mutex;
    void *library;             /* NULL: not loaded yet */
    _Atomic uint64_t prepared; /* set of devices where the code is loaded and its shared memory size is set */
    /* Cache of addresses that the driver said are memory of a device; the device's number less 1 is in the upper
     * bits. */
    _Atomic uint64_t known[KNOWN_ADDRESSES];
    TileCudaCaptured *captured; /* by graphs */
    uint32_t count;
    Phase phases[];
};

static TileCudaModule *create_module(const TileCudaPhase *phases, uint32_t count) {
    TileCudaModule *module = calloc(1, sizeof *module + count * sizeof *module->phases);
    if (!module) return NULL;
    pthread_mutex_init(&module->mutex, NULL);
    module->count = count;
    bool whole = true;
    for (uint32_t i = 0; i < count; i++) {
        module->phases[i] = (Phase){.symbol = strdup(phases[i].symbol),
                                    .threads = phases[i].threads,
                                    .shared_bytes = phases[i].shared_bytes,
                                    .waits = phases[i].waits};
        if (phases[i].resident) module->phases[i].blocks = calloc(MOST_DEVICES, sizeof(uint32_t));
        if (phases[i].waits) module->phases[i].spread = calloc(MOST_DEVICES, sizeof *module->phases[i].spread);
        if (phases[i].map_count) module->phases[i].maps = tile_cuda_maps_create(phases[i].maps, phases[i].map_count);
        whole &= module->phases[i].symbol && (module->phases[i].maps || !phases[i].map_count) &&
                 (module->phases[i].blocks || !phases[i].resident) && (module->phases[i].spread || !phases[i].waits);
    }
    if (whole) return module;
    tile_cuda_module_destroy(module);
    return NULL;
}

TileCudaModule *tile_cuda_module_create(const char *ptx, size_t length, const TileCudaPhase *phases, uint32_t count) {
    TileCudaModule *module = create_module(phases, count);
    if (!module) return NULL;
    module->ptx = module->own = malloc(length + 1);
    if (!module->own) {
        tile_cuda_module_destroy(module);
        return NULL;
    }
    memcpy(module->own, ptx, length);
    module->own[length] = 0;
    return module;
}

TileCudaModule *tile_cuda_module_borrow(const TileImageBinary *binary, const TileCudaPhase *phases, uint32_t count) {
    TileCudaModule *module = create_module(phases, count);
    if (!module) return NULL;
    module->ptx = binary->ptx;
    module->cubin = binary->cubin;
    module->capability = binary->capability;
    return module;
}

bool tile_cuda_has_maps(const TileCudaModule *module) {
    bool any = false;
    for (uint32_t i = 0; i < module->count; i++) any |= module->phases[i].maps != NULL;
    return any;
}

/* Unloading is allowed while streams are capturing. */
static void unload(void *library) {
    if (!library) return;
    int mode = tile_cuda_relax_capture();
    tile_cuda_driver()->library_unload(library);
    tile_cuda_restore_capture(mode);
}

void tile_cuda_module_destroy(TileCudaModule *module) {
    if (!module) return;
    tile_cuda_captured_destroy(module->captured);
    unload(module->library);
    for (uint32_t i = 0; i < module->count; i++) {
        free(module->phases[i].symbol);
        free(module->phases[i].blocks);
        free(module->phases[i].spread);
        tile_cuda_maps_destroy(module->phases[i].maps);
    }
    free(module->own);
    pthread_mutex_destroy(&module->mutex);
    free(module);
}

void tile_cuda_module_keep(TileCudaModule *module, TileCudaCaptured *captured, TileCudaCaptured **next) {
    pthread_mutex_lock(&module->mutex);
    *next = module->captured;
    module->captured = captured;
    pthread_mutex_unlock(&module->mutex);
}

/* ---- loading ---- */

/* A cubin needs no assembler in the driver, but serves one generation of GPUs. */
static bool load_cubin(const TileCudaModule *module, void **library) {
    return module->cubin && tile_cuda_all_run(module->capability) &&
           tile_cuda_driver()->library_load(library, module->cubin, NULL, NULL, 0, NULL, NULL, 0) == TILE_CUDA_SUCCESS;
}

/* The driver's assembler has a log, which says more than the error's name. */
static tile_status load_library(const TileCudaModule *module, void **library, const char *kernel, TileError *error) {
    if (load_cubin(module, library)) return TILE_OK;
    enum { ERROR_LOG = 5, ERROR_LOG_BYTES = 6, LINE_INFO = 13, OPTIONS = 3 };
    char log[512] = "";
    int options[OPTIONS] = {ERROR_LOG, ERROR_LOG_BYTES, LINE_INFO};
    void *values[OPTIONS] = {log, (void *)(uintptr_t)(sizeof log - 1), (void *)(uintptr_t)1};
    int result = tile_cuda_driver()->library_load(library, module->ptx, options, values, OPTIONS, NULL, NULL, 0);
    tile_status status = tile_cuda_check(result, kernel, error);
    if (status == TILE_OK || !*log || !error) return status;
    TileError said = *error;
    return tile_error_set(error, status, "%s: %s", said.message, log);
}

static tile_status load(TileCudaModule *module, const char *kernel, TileError *error) {
    const TileCudaDriver *driver = tile_cuda_driver();
    void *library = NULL;
    TILE_TRY(load_library(module, &library, kernel, error));
    for (uint32_t i = 0; i < module->count; i++) {
        Phase *phase = &module->phases[i];
        tile_status status =
            tile_cuda_check(driver->library_kernel(&phase->kernel, library, phase->symbol), kernel, error);
        if (status == TILE_OK) continue;
        unload(library);
        return status;
    }
    module->library = library;
    free(module->own); /* it is used for all devices from now on */
    module->ptx = module->own = NULL;
    return TILE_OK;
}

/* More than 48 KiB of shared memory must be requested. The code is copied to the device now: otherwise the driver would
 * do it at the first launch, which a stream might be capturing. */
static tile_status prepare_phase(const Phase *phase, int device, const char *kernel, TileError *error) {
    enum { SHARED_OPT_IN = 97, DYNAMIC_SHARED_LIMIT = 8 };
    const TileCudaDriver *driver = tile_cuda_driver();
    int handle, most = 0;
    void *function;
    TILE_TRY(tile_cuda_device(device, &handle, error));
    TILE_TRY(tile_cuda_check(driver->device_attribute(&most, SHARED_OPT_IN, handle), kernel, error));
    if (phase->shared_bytes > (uint64_t)most)
        return tile_error_set(
            error, TILE_UNAVAILABLE,
            "%s: a block needs %llu bytes of shared memory, and cuda:%d has %d; smaller tiles need less", kernel,
            (unsigned long long)phase->shared_bytes, device, most);
    TILE_TRY(tile_cuda_check(driver->kernel_set(DYNAMIC_SHARED_LIMIT, (int)phase->shared_bytes, phase->kernel, handle),
                             kernel, error));
    TILE_TRY(tile_cuda_check(driver->kernel_function(&function, phase->kernel), kernel, error));
    const TileCudaCode code = {function, phase->threads, phase->shared_bytes, handle, device, kernel};
    if (phase->blocks) TILE_TRY(tile_cuda_blocks_count(&code, &phase->blocks[device % MOST_DEVICES], error));
    if (!phase->spread) return TILE_OK;
    TileCudaSpread *spread = &phase->spread[device % MOST_DEVICES];
    TILE_TRY(tile_cuda_spread_find(&code, spread, error));
    uint32_t limit = tile_cuda_spread_bytes(spread, (uint32_t)phase->shared_bytes, 1);
    return tile_cuda_check(driver->kernel_set(DYNAMIC_SHARED_LIMIT, (int)limit, phase->kernel, handle), kernel, error);
}

static tile_status prepare_all(TileCudaModule *module, int device, const char *kernel, TileError *error) {
    if (!module->library) TILE_TRY(load(module, kernel, error));
    for (uint32_t i = 0; i < module->count; i++) TILE_TRY(prepare_phase(&module->phases[i], device, kernel, error));
    return TILE_OK;
}

/* Then the driver has this device. */
static bool is_prepared(const TileCudaModule *module, int device) {
    return (unsigned)device < MOST_DEVICES &&
           atomic_load_explicit(&module->prepared, memory_order_acquire) >> device & 1;
}

static tile_status prepare(TileCudaModule *module, int device, const char *kernel, TileError *error) {
    uint64_t bit = UINT64_C(1) << (device & 63);
    if (is_prepared(module, device)) return TILE_OK;
    pthread_mutex_lock(&module->mutex);
    tile_status status = TILE_OK;
    if (!(atomic_load(&module->prepared) & bit)) {
        int mode = tile_cuda_relax_capture();
        status = prepare_all(module, device, kernel, error);
        tile_cuda_restore_capture(mode);
    }
    if (status == TILE_OK) atomic_fetch_or(&module->prepared, bit);
    pthread_mutex_unlock(&module->mutex);
    return status;
}

/* ---- devices of tensors ---- */

/* A wrong address would fault in the kernel and destroy the whole context. */
static tile_status check_address(uint64_t address, int device, const char *kernel, const char *name, TileError *error) {
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9, ON_HOST = 1, ON_DEVICE = 2, ATTRIBUTES = 3 };
    int attributes[ATTRIBUTES] = {MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL};
    int type = 0, managed = 0, ordinal = -1;
    void *values[ATTRIBUTES] = {&type, &managed, &ordinal};
    int result = tile_cuda_driver()->pointer_attributes(ATTRIBUTES, attributes, values, address);
    TILE_TRY(tile_cuda_check(result, kernel, error));
    managed &= 1;                                   /* a bool is one byte */
    if (managed || type == ON_HOST) return TILE_OK; /* every device reaches it */
    if (type != ON_DEVICE)
        return tile_error_set(error, TILE_INVALID_ARGUMENT,
                              "%s: %s: data is an address of host memory, though the tensor's device is cuda:%d",
                              kernel, name, device);
    if (ordinal == device) return TILE_OK;
    return tile_error_set(error, TILE_INVALID_ARGUMENT,
                          "%s: %s: data is memory of cuda:%d, though the tensor's device is cuda:%d", kernel, name,
                          ordinal, device);
}

/* Asks the driver about it, and not again. */
static __attribute__((noinline)) tile_status check_tensor(_Atomic uint64_t *known, uint64_t entry, uint64_t low,
                                                          int device, const TileImageSignature *signature,
                                                          uint32_t parameter, TileError *error) {
    TILE_TRY(check_address(low, device, signature->name, signature->parameters[parameter].name, error));
    atomic_store_explicit(known, entry, memory_order_relaxed);
    return TILE_OK;
}

static inline _Atomic uint64_t *known_of(TileCudaModule *module, uint64_t low) {
    return &module->known[(low >> 8 ^ low >> 21) % KNOWN_ADDRESSES];
}

static tile_status check_tensors(TileCudaModule *module, int device, const TileImageSignature *signature,
                                 const uint64_t *lows, TileError *error) {
    uint64_t on_device = (uint64_t)(device + 1) << DEVICE_SHIFT;
    for (uint32_t i = 0, count = signature->parameter_count; i < count; i++) {
        uint64_t low = lows[i];
        if (!low) continue;
        _Atomic uint64_t *known = known_of(module, low);
        if (atomic_load_explicit(known, memory_order_relaxed) != (low | on_device))
            TILE_TRY(check_tensor(known, low | on_device, low, device, signature, i, error));
    }
    return TILE_OK;
}

/* ---- launching ---- */

static __attribute__((noinline)) tile_status begin_anew(TileCudaModule *module, TileCudaStream *on,
                                                        const TileImageSignature *signature, const uint64_t *lows,
                                                        TileError *error) {
    TILE_TRY(tile_cuda_enter(on->device, on->stream, &on->scope, error));
    tile_status status = prepare(module, on->device, signature->name, error);
    if (status == TILE_OK) status = check_tensors(module, on->device, signature, lows, error);
    if (status != TILE_OK) tile_cuda_leave(&on->scope);
    return status;
}

tile_status tile_cuda_begin(TileCudaModule *module, TileCudaStream *on, const TileImageSignature *signature,
                            const uint64_t *lows, TileError *error) {
    on->scope.pushed = false;
    if (!is_prepared(module, on->device) || !tile_cuda_is_in_primary(on->device))
        return begin_anew(module, on, signature, lows, error);
    return check_tensors(module, on->device, signature, lows, error);
}

bool tile_cuda_is_ready(TileCudaModule *module, int device, const uint64_t *lows, uint32_t count) {
    uint64_t on_device = (uint64_t)(device + 1) << DEVICE_SHIFT, unknown = 0;
    if (!is_prepared(module, device) || !tile_cuda_is_in_primary(device)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (lows[i]) unknown |= atomic_load_explicit(known_of(module, lows[i]), memory_order_relaxed) ^ (lows[i] | on_device);
    return !unknown;
}

void tile_cuda_end(TileCudaStream *on) { tile_cuda_leave(&on->scope); }

tile_status tile_cuda_captures(const TileCudaStream *on, const char *kernel, bool *captures, TileError *error) {
    enum { NOT_CAPTURING = 0 };
    int state = NOT_CAPTURING;
    *captures = false;
    if (!tile_cuda_may_be_captured(on)) return TILE_OK;
    TILE_TRY(tile_cuda_check(tile_cuda_driver()->is_capturing(on->stream, &state), kernel, error));
    *captures = state != NOT_CAPTURING;
    return TILE_OK;
}

/* Blocks of a grid that waits by itself may start before the previous grid of the stream has ended, evenly spread. Where that is another
 * kernel's, which knows of none that waits, they start when its last blocks have ended. */
static __attribute__((noinline)) int queue_early(const Phase *phase, const TileCudaStream *on, unsigned blocks, void **parameters) {
    const TileCudaSpread *spread = &phase->spread[on->device % MOST_DEVICES];
    unsigned shared_bytes = tile_cuda_spread_bytes(spread, (unsigned)phase->shared_bytes, blocks);
    TileCudaLaunchAttribute early = {.id = TILE_CUDA_PROGRAMMATIC_SERIALIZATION, .value.number = 1};
    TileCudaLaunchConfig config = {.grid = {blocks, 1, 1},
                                   .block = {phase->threads, 1, 1},
                                   .shared_bytes = shared_bytes,
                                   .stream = on->stream,
                                   .attributes = &early,
                                   .attribute_count = 1};
    return tile_cuda_driver()->launch_with(&config, phase->kernel, parameters, NULL);
}

static inline int queue_grid(const Phase *phase, const TileCudaStream *on, unsigned blocks, void **parameters) {
    if (phase->waits) return queue_early(phase, on, blocks, parameters);
    return tile_cuda_driver()->launch(phase->kernel, blocks, 1, 1, phase->threads, 1, 1, (unsigned)phase->shared_bytes, on->stream,
                                      parameters, NULL);
}

enum { MOST_BLOCKS = INT32_MAX / 8 * 8 /* of a launch, in whole clusters */ };

/* A block for each program, unless fewer take them in turn. */
static inline unsigned blocks_for(const Phase *phase, int device, int64_t programs) {
    int64_t most = phase->blocks ? phase->blocks[device % MOST_DEVICES] : programs;
    return (unsigned)(programs < most ? programs : most);
}

static tile_status queue_programs(const Phase *phase, const TileCudaStream *on, const TileCudaParameters *parameters,
                                  TileCudaMap *maps, int64_t programs, TileError *error) {
    int64_t begin = 0;
    void **last = parameters->list + parameters->count;
    *last++ = &begin;
    *last++ = &programs;
    for (uint32_t i = 0; maps && i < tile_cuda_maps_count(phase->maps); i++) *last++ = &maps[i];
    *last = (void *)parameters->records;
    if (!phase->blocks && programs > MOST_BLOCKS)
        return tile_error_set(error, TILE_UNSUPPORTED, "%s: a grid of %lld programs, of which a GPU launches %d at most", parameters->kernel,
                              (long long)programs, MOST_BLOCKS);
    if (programs < 1) return TILE_OK;
    int result = queue_grid(phase, on, blocks_for(phase, on->device, programs), parameters->list);
    return result == TILE_CUDA_SUCCESS ? TILE_OK : tile_cuda_check(result, parameters->kernel, error);
}

static __attribute__((noinline)) tile_status queue_with_maps(const Phase *phase, const TileCudaStream *on,
                                                             const TileCudaParameters *parameters, int64_t programs,
                                                             TileError *error) {
    TileCudaMap maps[TILE_MAX_MAPS]; /* the driver copies them, as all parameters */
    TILE_TRY(tile_cuda_maps_find(phase->maps, parameters->slots, maps, parameters->kernel, error));
    return queue_programs(phase, on, parameters, maps, programs, error);
}

tile_status tile_cuda_queue(TileCudaModule *module, uint32_t number, const TileCudaStream *on,
                            const TileCudaParameters *parameters, int64_t programs, TileError *error) {
    const Phase *phase = &module->phases[number];
    if (phase->maps) return queue_with_maps(phase, on, parameters, programs, error);
    return queue_programs(phase, on, parameters, NULL, programs, error);
}

int tile_cuda_queue_list(const TileCudaModule *module, uint32_t number, const TileCudaStream *on, void **list, int64_t programs) {
    const Phase *phase = &module->phases[number];
    if (phase->maps || programs > MOST_BLOCKS) return TILE_CUDA_NO_LIST;
    return queue_grid(phase, on, blocks_for(phase, on->device, programs), list);
}

tile_status tile_cuda_launch(TileCudaModule *module, uint32_t number, const TileCudaStream *on, const uint64_t *slots,
                             uint32_t slot_count, int64_t programs, const uint64_t *records, const char *kernel,
                             TileError *error) {
    enum { MOST_SLOTS = 512 };
    void *list[MOST_SLOTS + TILE_CUDA_MORE_PARAMETERS];
    TileCudaParameters parameters = {list, slot_count, slots, records, kernel};
    if (slot_count > MOST_SLOTS) return tile_error_set(error, TILE_UNSUPPORTED, "%s: too many parameters", kernel);
    for (uint32_t i = 0; i < slot_count; i++) list[i] = (void *)&slots[i];
    return tile_cuda_queue(module, number, on, &parameters, programs, error);
}

/* ---- memory ---- */

tile_status tile_cuda_allocate(const TileCudaStream *on, size_t bytes, const char *kernel, void **memory,
                               TileError *error) {
    uint64_t address = 0;
    void *pool;
    TILE_TRY(tile_cuda_pool(on->device, &pool, error));
    int result = tile_cuda_driver()->allocate_async(&address, bytes ? bytes : 1, pool, on->stream);
    TILE_TRY(tile_cuda_check(result, kernel, error));
    *memory = (void *)(uintptr_t)address;
    return TILE_OK;
}

void tile_cuda_free(const TileCudaStream *on, void *memory) {
    if (memory) tile_cuda_driver()->free_async((uint64_t)(uintptr_t)memory, on->stream);
}

/* ---- time ---- */

tile_status tile_cuda_timer_create(TileCudaTimer *timer, TileError *error) {
    const TileCudaDriver *driver = tile_cuda_driver();
    *timer = (TileCudaTimer){NULL, NULL};
    tile_status status = tile_cuda_check(driver->event_create(&timer->begin, 0), "timer", error);
    if (status == TILE_OK) status = tile_cuda_check(driver->event_create(&timer->end, 0), "timer", error);
    if (status != TILE_OK) tile_cuda_timer_destroy(timer);
    return status;
}

void tile_cuda_timer_destroy(TileCudaTimer *timer) {
    if (timer->begin) tile_cuda_driver()->event_destroy(timer->begin);
    if (timer->end) tile_cuda_driver()->event_destroy(timer->end);
    *timer = (TileCudaTimer){NULL, NULL};
}

tile_status tile_cuda_timer_start(const TileCudaTimer *timer, void *stream, TileError *error) {
    return tile_cuda_check(tile_cuda_driver()->event_record(timer->begin, stream), "timer", error);
}

tile_status tile_cuda_timer_stop(const TileCudaTimer *timer, void *stream, double *seconds, TileError *error) {
    const TileCudaDriver *driver = tile_cuda_driver();
    float milliseconds = 0;
    TILE_TRY(tile_cuda_check(driver->event_record(timer->end, stream), "timer", error));
    TILE_TRY(tile_cuda_check(driver->event_synchronize(timer->end), "timer", error));
    TILE_TRY(tile_cuda_check(driver->event_elapsed(&milliseconds, timer->begin, timer->end), "timer", error));
    *seconds = (double)milliseconds * 1e-3;
    return TILE_OK;
}
