/* Arrays of tilec's arguments: views of memory with any strides. */
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

/* Number of elements, or -1 if their size in bytes does not fit 63 bits. */
int64_t tile_array_count(TileScalar scalar, unsigned rank, const int64_t *extent);
/* Allocates zeroed row-major memory; a status and a message if there is not enough. */
tile_status tile_array_create(TileArray *array, TileScalar scalar, unsigned rank, const int64_t *extent,
                              TileText *error);
void tile_array_release(TileArray *array);

/* Applies views in place. `suffix` is the rest of an argument after its source: any sequence of `[slices]`, `.T` and
 * `*[extents]`; it is read to its end. Errors have reason and location. */
tile_status tile_array_view(TileArray *array, const char *suffix, TileText *error);

/* Visits all elements in row-major order. */
typedef void (*TileElementVisitor)(void *state, char *element, int64_t index);
void tile_array_visit(const TileArray *array, TileElementVisitor visit, void *state);

/* `f32[3, 4]` */
void tile_array_describe(TileText *text, const TileArray *array);

#endif
