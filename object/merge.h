/* Several relocatable objects become one: 64-bit little-endian ELF as mlir_bridge emits it. */
#ifndef TILE_OBJECT_MERGE_H
#define TILE_OBJECT_MERGE_H

#include "base/string.h"
#include "object/code.h"
#include "tile/status.h"

/* What a global symbol of an input is called in the result. */
typedef struct TileMergeName {
    const char *from, *to;
} TileMergeName;

typedef struct TileMergeInput {
    const void *object; /* aligned to 8 bytes */
    size_t size;
    const TileMergeName *names; /* symbols that are not listed keep their names */
    size_t name_count;
    bool hides; /* nobody outside of the result sees what this input defines */
} TileMergeInput;

/* Sections stand in the order of the inputs, so the same inputs give the same bytes. References between inputs are
 * resolved by the new names. Names of source files are left out. TILE_BACKEND, with a message, where an input is not
 * what the bridge emits; TILE_OUT_OF_MEMORY. */
tile_status tile_objects_merge(const TileMergeInput *inputs, size_t count, TileCode *merged, TileText *message);

#endif
