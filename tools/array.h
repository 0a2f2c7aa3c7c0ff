/* Arrays as tilec's arguments name them: a view of memory with any strides. */
#ifndef TILE_TOOLS_ARRAY_H
#define TILE_TOOLS_ARRAY_H

#include "base/string.h"
#include "lang/ir/types.h"

/* `data` is the first element; strides are in bytes and may be zero or negative. `storage` and `storage_size` are
 * the memory that the view lies in; it is mapped from a file (`mapped`) or was allocated, and is released by
 * tile_array_release. */
typedef struct TileArray {
    char *data;
    TileScalar scalar;
    unsigned rank;
    int64_t extent[TILE_MAX_TENSOR_RANK], stride[TILE_MAX_TENSOR_RANK];
    void *storage;
    size_t storage_size;
    bool mapped, readonly;
} TileArray;

/* Number of elements, or -1 where it does not fit 63 bits together with the element size. */
int64_t tile_array_count(TileScalar scalar, unsigned rank, const int64_t *extent);
/* Zeroed row-major memory; a status and a message where there is not enough. */
tile_status tile_array_create(TileArray *array, TileScalar scalar, unsigned rank, const int64_t *extent,
                              TileText *error);
void tile_array_release(TileArray *array);

/* Views, in place. `suffix` is what follows the source of an argument: any sequence of `[slices]`, `.T` and
 * `*[extents]`; it is read to its end. Errors say what is wrong and where. */
tile_status tile_array_view(TileArray *array, const char *suffix, TileText *error);

/* Visits all elements in row-major order. */
typedef void (*TileElementVisitor)(void *state, char *element, int64_t index);
void tile_array_visit(const TileArray *array, TileElementVisitor visit, void *state);

/* `f32[3, 4]` */
void tile_array_describe(TileText *text, const TileArray *array);

#endif
