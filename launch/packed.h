/* Tensors of elements that a kernel takes as bytes: numbers of 4 bits, two in a byte, and powers of two. */
#ifndef TILE_LAUNCH_PACKED_H
#define TILE_LAUNCH_PACKED_H

#include <stdbool.h>

#include "launch/image.h"

/* The same elements as a tensor of u8. */
typedef struct TilePackedTensor {
    DLTensor bytes;
    int64_t shape[TILE_MAX_RANK], strides[TILE_MAX_RANK];
    const char *obstacle; /* why there is none; or NULL */
} TilePackedTensor;

/* "two i4 in each byte of u8 along the last axis": what the parameter takes, NULL if it is one of plain elements. */
const char *tile_packed_words(const TileImageParameter *parameter);
/* "f4e2m1": a format that tensors alone have, by its type in DLPack; NULL if it is none. */
const char *tile_packed_name(DLDataType type);
/* False unless the tensor's type is that of the parameter's elements. */
bool tile_packed_read(const TileImageParameter *parameter, const DLTensor *tensor, TilePackedTensor *packed);

#endif
