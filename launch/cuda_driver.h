/* The CUDA driver: its functions, looked up by name on first use, its errors as statuses, and its contexts. For the
 * files of launch/ that deal with GPUs. */
#ifndef TILE_LAUNCH_CUDA_DRIVER_H
#define TILE_LAUNCH_CUDA_DRIVER_H

#include <stdbool.h>

#include "launch/image.h"

/* From the CUDA driver API's reference: handles are pointers, CUresult and CUdevice are ints, CUdeviceptr is 64 bits.
 */
typedef struct TileCudaLaunchAttribute {
    int id;
    char padding[4];
    union {
        char bytes[64];
        int number;
        unsigned cluster[3];
    } value;
} TileCudaLaunchAttribute;

/* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: 1 lets a grid start before the previous one has ended.
 * CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: blocks of a cluster along each axis. */
enum { TILE_CUDA_CLUSTER_DIMENSION = 4, TILE_CUDA_PROGRAMMATIC_SERIALIZATION = 6 };

typedef struct TileCudaLaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    TileCudaLaunchAttribute *attributes;
    unsigned attribute_count;
} TileCudaLaunchConfig;

typedef struct TileCudaDriver {
    int (*version)(int *version);
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*device_name)(char *name, int length, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*context_current)(void **context);
    int (*context_device)(int *device);
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*primary_retain)(void **context, int device);
    int (*primary_state)(int device, unsigned *flags, int *active);
    int (*stream_context)(void *stream, void **context);
    int (*exchange_capture_mode)(int *mode);
    int (*pointer_attributes)(unsigned count, int *attributes, void **values, uint64_t pointer);
    int (*library_load)(void **library, const void *code, int *jit_options, void **jit_values, unsigned jit_count,
                        int *options, void **values, unsigned count);
    int (*library_unload)(void *library);
    int (*library_kernel)(void **kernel, void *library, const char *name);
    int (*kernel_function)(void **function, void *kernel);
    int (*kernel_set)(int attribute, int value, void *kernel, int device);
    int (*occupancy)(int *blocks, void *function, int threads, size_t shared_bytes);
    int (*cluster_occupancy)(int *clusters, void *function, const TileCudaLaunchConfig *config);
    int (*function_attribute)(int *value, int attribute, void *function);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, void **extra);
    int (*launch_with)(const TileCudaLaunchConfig *config, void *function, void **parameters, void **extra);
    int (*encode_map)(void *map, int type, unsigned rank, void *address, const uint64_t *extents,
                      const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle,
                      int promotion, int fill);
    int (*encode_positions)(void *map, int type, unsigned rank, void *address, const uint64_t *extents,
                            const uint64_t *strides, const int *lower, const int *upper, uint32_t channels, uint32_t positions,
                            const uint32_t *steps, int interleave, int swizzle, int promotion, int fill);
    int (*allocate)(uint64_t *memory, size_t bytes);
    int (*free)(uint64_t memory);
    int (*pool_create)(void **pool, const void *properties);
    int (*pool_destroy)(void *pool);
    int (*pool_set)(void *pool, int attribute, void *value);
    int (*allocate_async)(uint64_t *memory, size_t bytes, void *pool, void *stream);
    int (*free_async)(uint64_t memory, void *stream);
    int (*copy_to)(uint64_t memory, const void *host, size_t bytes);
    int (*copy_from)(void *host, uint64_t memory, size_t bytes);
    int (*copy_from_async)(void *host, uint64_t memory, size_t bytes, void *stream);
    int (*set_async)(uint64_t memory, unsigned char byte, size_t bytes, void *stream);
    int (*host_allocate)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*launch_host)(void *stream, void (*function)(void *state), void *state);
    int (*is_capturing)(void *stream, int *status);
    int (*synchronize)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_synchronize)(void *event);
    int (*event_elapsed)(float *milliseconds, void *begin, void *end);
    int (*error_name)(int result, const char **name);
    int (*error_text)(int result, const char **text);
} TileCudaDriver;

enum { TILE_CUDA_SUCCESS = 0 };

/* The driver, to be used only if tile_cuda_why_not() returned NULL. */
const TileCudaDriver *tile_cuda_driver(void);
/* The driver's handle of a device; TILE_UNAVAILABLE or TILE_INVALID_ARGUMENT if there is none. */
tile_status tile_cuda_device(int device, int *handle, TileError *error);
/* The pool for temporaries on a device that has been entered: it keeps up to a 32nd of the device's memory, at least
 * 64 MiB, through synchronisations, after which the driver's own pool would have to map memory anew. */
tile_status tile_cuda_pool(int device, void **pool, TileError *error);
/* The status of a driver call for `what`; the message has the driver's name of the error. */
tile_status tile_cuda_check(int result, const char *what, TileError *error);

/* A context of the device is current from enter to leave: the caller's where it is of that device; else the stream's,
 * where there is one; else the device's primary context. Afterwards the caller's is current again. */
typedef struct TileCudaScope {
    bool pushed;
} TileCudaScope;
tile_status tile_cuda_enter(int device, void *stream, TileCudaScope *scope, TileError *error);
void tile_cuda_leave(TileCudaScope *scope);
/* Is the current context the primary one of the device, as is most often? One question to the driver instead of two;
 * false until the device was entered once. The driver must have the device. */
bool tile_cuda_is_in_primary(int device);

/* Between relax and restore, calls are allowed that a stream capture of this thread would forbid because they might
 * wait: loading code is not part of what is captured. */
int tile_cuda_relax_capture(void);
void tile_cuda_restore_capture(int mode);

#endif
