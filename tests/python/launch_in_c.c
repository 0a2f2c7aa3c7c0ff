/* The host time of launches from C, for the measurements of this folder: one kernel of three tensors of f32[n]. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "tile/launch.h"

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds of a launch, the mean of `count`; negative if one fails. */
double launch_in_c(TileKernel *kernel, void *stream, int device_type, void *const *addresses, int64_t n, int count) {
    int64_t shape[1] = {n}, strides[1] = {1};
    DLTensor tensors[3];
    TileArg arguments[3];
    TileLaunchOptions options = {.struct_size = sizeof options, .stream = stream};
    for (int i = 0; i < 3; i++) {
        tensors[i] = (DLTensor){.data = addresses[i], .device = {(DLDeviceType)device_type, 0}, .ndim = 1,
                                .dtype = {kDLFloat, 32, 1}, .shape = shape, .strides = strides};
        arguments[i] = TILE_TENSOR(&tensors[i]);
    }
    double begin = now_ns();
    for (int i = 0; i < count; i++)
        if (tile_launch(kernel, arguments, 3, &options) != TILE_OK) return -1;
    return (now_ns() - begin) / count;
}
