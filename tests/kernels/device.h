/* Arrays in GPU memory: copies of all bytes of an array's pages, between margins that no kernel may access. */
#ifndef TESTS_KERNELS_DEVICE_H
#define TESTS_KERNELS_DEVICE_H

#include "array.h"

typedef struct DeviceCopy {
    unsigned char *memory; /* margin, the array's pages, margin; NULL: not allocated */
    DLTensor tensor;       /* the array's, with device addresses */
} DeviceCopy;

/* To be released whatever the status. */
tile_status device_send(DeviceCopy *copy, const Array *array, TileError *error);
/* Waits for the GPU, and copies back to the array's pages. Adds the number of changed bytes in the margins to
 * `outside`. */
tile_status device_fetch(const DeviceCopy *copy, const Array *array, size_t *outside, TileError *error);
void device_release(DeviceCopy *copy);

#endif
