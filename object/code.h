/* Code as it comes out of the compiler. */
#ifndef TILE_OBJECT_CODE_H
#define TILE_OBJECT_CODE_H

#include <stddef.h>

/* Bytes of an object file, or text, which is followed by a zero byte that `size` does not count. */
typedef struct TileCode {
    char *data;
    size_t size;
} TileCode;

/* Frees the bytes; `code` is empty then. */
void tile_code_release(TileCode *code);

#endif
