/* Merges several relocatable objects into one: 64-bit little-endian ELF as mlir_bridge emits it. */
#ifndef TILE_OBJECT_MERGE_H
#define TILE_OBJECT_MERGE_H

#include "base/string.h"
#include "object/code.h"
#include "tile/status.h"

/* The name of an input's global symbol in the result. */
typedef struct TileMergeName {
    const char *from, *to;
} TileMergeName;

typedef struct TileMergeInput {
    const void *object; /* aligned to 8 bytes */
    size_t size;
    const TileMergeName *names; /* symbols that are not in the list keep their names */
    size_t name_count;
    bool hides; /* the symbols that this input defines are hidden */
} TileMergeInput;

/* Sections are in the order of the inputs, so that the same inputs give the same bytes. References between inputs are
 * resolved by the new names. Names of source files are dropped. TILE_BACKEND, with a message, if an input is not as the
 * bridge emits it; TILE_OUT_OF_MEMORY. */
tile_status tile_objects_merge(const TileMergeInput *inputs, size_t count, TileCode *merged, TileText *message);

#endif
