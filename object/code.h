/* Code as the compiler emits it. */
#ifndef TILE_OBJECT_CODE_H
#define TILE_OBJECT_CODE_H

#include <stddef.h>

/* The bytes of an object file, or text, which is followed by a zero byte that `size` does not include. */
typedef struct TileCode {
    char *data;
    size_t size;
} TileCode;

/* Frees the bytes and sets `code` to empty. */
void tile_code_release(TileCode *code);

#endif
