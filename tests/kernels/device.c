#include "device.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE = 0, MARGIN = 4096, MARGIN_BYTE = 0xA5 };

tile_status device_send(DeviceCopy *copy, const Array *array, TileError *error) {
    size_t bytes = array->pages_size + 2 * MARGIN;
    void *memory = NULL;
    unsigned char *whole = malloc(bytes);
    if (!whole) return TILE_OUT_OF_MEMORY;
    memset(whole, MARGIN_BYTE, bytes);
    memcpy(whole + MARGIN, array->pages, array->pages_size);
    tile_status status = tile_device_allocate(DEVICE, bytes, &memory, error);
    copy->memory = memory;
    if (status == TILE_OK) status = tile_device_write(DEVICE, memory, whole, bytes, error);
    free(whole);
    copy->tensor = array->tensor;
    copy->tensor.data = copy->memory + MARGIN + (array->lowest - array->pages);
    copy->tensor.device = (DLDevice){kDLCUDA, DEVICE};
    return status;
}

tile_status device_fetch(const DeviceCopy *copy, const Array *array, size_t *outside, TileError *error) {
    size_t bytes = array->pages_size + 2 * MARGIN;
    unsigned char *whole = malloc(bytes);
    if (!whole) return TILE_OUT_OF_MEMORY;
    tile_status status = tile_device_synchronize(DEVICE, NULL, error);
    if (status == TILE_OK) status = tile_device_read(DEVICE, whole, copy->memory, bytes, error);
    for (size_t i = 0; i < MARGIN && status == TILE_OK; i++)
        *outside += (whole[i] != MARGIN_BYTE) + (whole[bytes - 1 - i] != MARGIN_BYTE);
    if (status == TILE_OK) memcpy(array->pages, whole + MARGIN, array->pages_size);
    free(whole);
    return status;
}

void device_release(DeviceCopy *copy) {
    if (copy->memory) tile_device_release(DEVICE, copy->memory);
    copy->memory = NULL;
}
