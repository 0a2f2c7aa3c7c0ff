/* The fake driver's libraries, kernels, launches and events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_state.h"

/* ---- code ---- */

/* CUlaunchConfig, and CUlaunchAttribute with its 64 bytes. */
typedef struct Attribute {
    int id, padding, value[16];
} Attribute;
typedef struct Config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const Attribute *attributes;
    unsigned attribute_count;
} Config;

/* The capability in the PTX's header; 0 if it is not PTX. */
static int made_for(const char *code) {
    const char *target = strstr(code, "\n.target sm_");
    return target ? atoi(target + strlen("\n.target sm_")) : 0;
}

static Kernel *add_kernel(Library *library, const char *name) {
    Kernel *found = library->kernels;
    while (found->name[0] && strcmp(found->name, name) != 0) found++;
    for (int i = 0; i < DEVICES && !found->name[0]; i++) found->shared[i] = PLAIN_SHARED;
    snprintf(found->name, NAME_BYTES, "%s", name);
    return found;
}

/* The clusters of PTX's kernels. */
static void find_clusters(Library *library, const char *code) {
    static const char entry[] = ".entry ", cluster[] = ".reqnctapercluster ";
    const char *next;
    for (const char *at = strstr(code, entry); at; at = next) {
        char name[NAME_BYTES] = "";
        const char *width = strstr(at, cluster);
        next = strstr(at + 1, entry);
        if (!width || (next && width > next)) continue;
        sscanf(at + strlen(entry), "%63[^( ]", name);
        add_kernel(library, name)->cluster = atoi(width + strlen(cluster));
    }
}

EXPORT int cuLibraryLoadData(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                             int *options, void **values, unsigned count) {
    enum { ERROR_LOG = 5 };
    (void)options, (void)values, (void)count;
    CALL_THAT_WAITS();
    for (unsigned i = 0; i < jit_count; i++)
        if (jit_options[i] == ERROR_LOG && strstr(code, "not ptx")) strcpy(jit_values[i], "line 1: fatal: not PTX");
    if (strstr(code, "not ptx")) return end(CUDA_ERROR_INVALID_PTX);
    if (strstr(code, "not cubin")) return end(CUDA_ERROR_NO_BINARY_FOR_GPU);
    if (made_for(code) > fake.capability) return end(CUDA_ERROR_INVALID_PTX);
    fake.state.cubins += memcmp(code, "\177ELF", 4) == 0;
    Library *made = fake.libraries;
    while (made < fake.libraries + LIBRARIES && made->serial) made++;
    if (made == fake.libraries + LIBRARIES) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Library){.serial = ++fake.last_serial};
    if (made_for(code)) find_clusters(made, code);
    fake.state.libraries++;
    *library = made;
    return end(CUDA_SUCCESS);
}

EXPORT int cuLibraryUnload(void *library) {
    CALL_THAT_WAITS();
    ((Library *)library)->serial = 0;
    fake.state.libraries--;
    return end(CUDA_SUCCESS);
}

EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    CALL();
    *kernel = add_kernel(library, name);
    return end(CUDA_SUCCESS);
}

/* That of the kernel's library; 0: it was unloaded. */
static int serial_of(const Kernel *kernel) {
    for (int i = 0; i < LIBRARIES; i++) {
        const Library *library = &fake.libraries[i];
        if (kernel >= library->kernels && kernel < library->kernels + KERNELS) return library->serial;
    }
    return 0;
}

static bool is_loaded(const Kernel *kernel) { return serial_of(kernel) != 0; }

#ifndef FAKE_CUDA_OLD /* drivers before 12.0 do not have it */
EXPORT int cuKernelGetFunction(void **function, void *kernel) {
    CALL_THAT_WAITS();
    if (!current() || !is_loaded(kernel)) return end(refuse(CUDA_ERROR_INVALID_HANDLE));
    *function = kernel;
    return end(CUDA_SUCCESS);
}
#endif

/* One block, if its shared memory is more than half of what a block may have. */
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared_bytes) {
    CALL_THAT_WAITS();
    if (!is_loaded(function) || threads < 1) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    *blocks = 2 * shared_bytes > (size_t)fake.shared ? 1 : 2;
    return end(CUDA_SUCCESS);
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function) {
    enum { CLUSTER_WIDTH = 11 };
    CALL_THAT_WAITS();
    if (!is_loaded(function) || attribute != CLUSTER_WIDTH) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    *value = ((Kernel *)function)->cluster;
    return end(CUDA_SUCCESS);
}

/* The multiprocessors make up fewer clusters than there would be room for. */
EXPORT int cuOccupancyMaxActiveClusters(int *clusters, void *function, const Config *config) {
    enum { CLUSTER_DIMENSION = 4 };
    CALL_THAT_WAITS();
    bool clustered = config->attribute_count == 1 && config->attributes->id == CLUSTER_DIMENSION;
    int width = clustered ? config->attributes->value[0] : 0;
    if (!is_loaded(function) || width != ((Kernel *)function)->cluster || width < 1) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    *clusters = width < FAKE_MULTIPROCESSORS ? FAKE_MULTIPROCESSORS / width - 1 : 1;
    return end(CUDA_SUCCESS);
}

EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
    enum { DYNAMIC_SHARED_LIMIT = 8 };
    CALL_THAT_WAITS();
    if (attribute != DYNAMIC_SHARED_LIMIT || value > fake.shared || !is_loaded(kernel))
        return end(refuse(CUDA_ERROR_INVALID_VALUE));
    if (value > PLAIN_SHARED) ((Kernel *)kernel)->shared[device] = value;
    return end(CUDA_SUCCESS);
}

static int check_launch(const Kernel *kernel, unsigned grid, unsigned block, unsigned shared, const Stream *stream) {
    if (!current()) return refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (!is_loaded(kernel) || !fits(stream)) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (kernel->cluster && grid % (unsigned)kernel->cluster) return refuse(CUDA_ERROR_INVALID_VALUE);
    if (!grid || !block || block > 1024 || shared > (unsigned)kernel->shared[current()->device])
        return refuse(CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static int launch_now(const Node *node) {
    if (serial_of(node->kernel) != node->serial) return refuse(CUDA_ERROR_INVALID_HANDLE);
    if (fake.kernel) fake.kernel(node->launch);
    return CUDA_SUCCESS;
}

static int launch_grid(void *function, unsigned blocks, unsigned threads, unsigned shared_bytes, void *stream,
                       void **parameters, bool early) {
    int result = check_launch(function, blocks, threads, shared_bytes, stream);
    if (result != CUDA_SUCCESS) return result;
    FakeCudaLaunch *launch = &fake.launches[fake.state.launches++ % LAUNCHES];
    *launch = (FakeCudaLaunch){
        ((Kernel *)function)->name, current(), stream, blocks, threads, shared_bytes, early, {0}, {{0}}};
    for (unsigned i = 0; i < fake.expected && parameters[i]; i++) memcpy(&launch->parameters[i], parameters[i], 8);
    for (unsigned i = 0; i < fake.expected_maps && parameters[fake.expected + i]; i++) {
        memcpy(&launch->maps[i], parameters[fake.expected + i], sizeof launch->maps[i]);
        if (launch->maps[i].mark != FAKE_CUDA_MAP) return refuse(CUDA_ERROR_INVALID_VALUE);
    }
    fake.clock += 1e-6 * blocks * threads;
    return fake_queue(stream, (Node){.launch = launch, .kernel = function, .serial = serial_of(function)}, launch_now);
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,
                          void **extra) {
    CALL();
    (void)extra;
    return end(launch_grid(function, grid_x * grid_y * grid_z, block_x * block_y * block_z, shared_bytes, stream,
                           parameters, false));
}


EXPORT int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    CALL();
    (void)extra;
    enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
    bool early = false;
    for (unsigned i = 0; i < config->attribute_count; i++)
        early |= config->attributes[i].id == PROGRAMMATIC_STREAM_SERIALIZATION && config->attributes[i].value[0] == 1;
    return end(launch_grid(function, config->grid[0] * config->grid[1] * config->grid[2],
                           config->block[0] * config->block[1] * config->block[2], config->shared_bytes, config->stream,
                           parameters, early));
}

/* ---- tensor maps ---- */

static unsigned bytes_of(unsigned type) {
    enum { TYPES = 13 };
    static const unsigned bytes[TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < TYPES ? bytes[type] : 0;
}

/* What the driver's reference demands of both modes. */
static bool is_map_good(const FakeCudaMap *map, const uint32_t *steps, int interleave, int fill) {
    bool good = bytes_of(map->type) && map->rank >= 1 && map->rank <= 5 && map->address && map->address % 16 == 0 &&
                map->swizzle <= 3 && map->promotion <= 3 && interleave == 0 && fill == 0;
    for (unsigned i = 0; i < map->rank && good; i++)
        good = map->extents[i] >= 1 && map->extents[i] <= UINT64_C(1) << 32 && map->box[i] >= 1 && map->box[i] <= 256 &&
               steps[i] >= 1 && steps[i] <= (i ? 8 : 1);
    for (unsigned i = 0; i + 1 < map->rank && good; i++)
        good = map->strides[i] && map->strides[i] % 16 == 0 && !(map->strides[i] >> 40);
    unsigned row = good ? map->box[0] * bytes_of(map->type) : 0;
    return good && row % 16 == 0 && (!map->swizzle || row <= 16u << map->swizzle);
}

/* The corners of a map of positions. */
static bool are_corners_good(const int *lower, const int *upper, unsigned rank) {
    int most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
    bool good = rank >= 3 && rank <= 5;
    for (unsigned i = 0; good && i < rank - 2; i++) good = lower[i] >= -most && lower[i] < most && upper[i] >= -most && upper[i] < most;
    return good;
}

static bool fill_map(FakeCudaMap *map, void *made, unsigned rank, const uint64_t *extents, const uint64_t *strides) {
    _Static_assert(sizeof *map <= 128, "a map has 128 bytes");
    if (rank > 5 || (uintptr_t)made % 64) return false;
    memcpy(map->extents, extents, rank * sizeof *extents);
    if (rank) memcpy(map->strides, strides, (rank - 1) * sizeof *strides);
    return true;
}

/* What both kinds of maps say in the same way. */
static FakeCudaMap begin_map(int type, unsigned rank, void *address, int swizzle, int promotion) {
    return (FakeCudaMap){.address = (uintptr_t)address,
                         .mark = FAKE_CUDA_MAP,
                         .type = (uint8_t)type,
                         .rank = (uint8_t)rank,
                         .swizzle = (uint8_t)swizzle,
                         .promotion = (uint8_t)promotion};
}

EXPORT int cuTensorMapEncodeTiled(void *made, int type, unsigned rank, void *address, const uint64_t *extents,
                                  const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                  int swizzle, int promotion, int fill) {
    CALL();
    FakeCudaMap map = begin_map(type, rank, address, swizzle, promotion);
    if (!fill_map(&map, made, rank, extents, strides)) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    memcpy(map.box, box, rank * sizeof *box);
    if (!is_map_good(&map, steps, interleave, fill)) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    memcpy(made, &map, sizeof map);
    return end(CUDA_SUCCESS);
}

EXPORT int cuTensorMapEncodeIm2col(void *made, int type, unsigned rank, void *address, const uint64_t *extents,
                                   const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                                   uint32_t positions, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    CALL();
    FakeCudaMap map = begin_map(type, rank, address, swizzle, promotion);
    map.box[0] = channels;
    for (int i = 1; i < 5; i++) map.box[i] = 1;
    map.positions = (uint16_t)positions;
    bool good = positions >= 1 && positions <= 1024 && are_corners_good(lower, upper, rank) && fill_map(&map, made, rank, extents, strides);
    for (unsigned i = 0; good && i < rank - 2; i++) map.lower[i] = (int16_t)lower[i], map.upper[i] = (int16_t)upper[i];
    if (!good || !is_map_good(&map, steps, interleave, fill)) return end(refuse(CUDA_ERROR_INVALID_VALUE));
    memcpy(made, &map, sizeof map);
    return end(CUDA_SUCCESS);
}

/* ---- events ---- */

EXPORT int cuEventCreate(void **event, unsigned flags) {
    CALL();
    if (!current() || flags) return end(refuse(CUDA_ERROR_INVALID_CONTEXT));
    Event *made = fake.events;
    while (made < fake.events + EVENTS && made->used) made++;
    if (made == fake.events + EVENTS) return end(CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Event){.used = true};
    fake.state.events++;
    *event = made;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventDestroy_v2(void *event) {
    CALL();
    ((Event *)event)->used = false;
    fake.state.events--;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventRecord(void *event, void *stream) {
    CALL();
    if (!fits(stream)) return end(refuse(CUDA_ERROR_INVALID_HANDLE));
    ((Event *)event)->time = fake.clock;
    return end(CUDA_SUCCESS);
}

EXPORT int cuEventSynchronize(void *event) {
    CALL_THAT_WAITS();
    return end(((Event *)event)->used ? CUDA_SUCCESS : refuse(CUDA_ERROR_INVALID_HANDLE));
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *first, void *second) {
    CALL();
    *milliseconds = (float)(((Event *)second)->time - ((Event *)first)->time);
    return end(CUDA_SUCCESS);
}
