/* Arrays in the memory of the GPU that is there: a copy of all bytes that an array's pages hold, between margins that
 * no kernel may touch. */
#ifndef TESTS_KERNELS_DEVICE_H
#define TESTS_KERNELS_DEVICE_H

#include "array.h"

typedef struct DeviceCopy {
    unsigned char *memory; /* margin, the array's pages, margin; NULL: none */
    DLTensor tensor;       /* the array's, there */
} DeviceCopy;

/* Whatever the status, the copy may be released. */
tile_status device_send(DeviceCopy *copy, const Array *array, TileError *error);
/* Waits for the GPU; the array's pages then hold what the copy's do. Adds the changed bytes of the margins to
 * `outside`. */
tile_status device_fetch(const DeviceCopy *copy, const Array *array, size_t *outside, TileError *error);
void device_release(DeviceCopy *copy);

#endif
