/* Arena: memory that is released all at once.
 *
 * Compiler code never frees single objects. An arena has one owner and is not thread safe; any number of
 * arenas live side by side. When memory runs out an arena does not return NULL: it jumps to the guard that
 * the API entry point set (TILE_ARENA_GUARD), so that compiler code needs no check at each allocation and the
 * host process lives on. */
#ifndef TILE_BASE_ARENA_H
#define TILE_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tile/status.h"

/* Public only for the inline functions below. */
typedef struct TileArena {
    struct TileArenaBlock *blocks; /* in use, the newest first */
    struct TileArenaBlock *spare;  /* kept by a reset, in order of first use */
    char *position, *end;
    size_t next_size, total, limit;
    jmp_buf *guard;
} TileArena;

/* NULL if out of memory. `parent` may be NULL; otherwise the new arena uses the parent's guard. */
TileArena *tile_arena_create(TileArena *parent);
void tile_arena_destroy(TileArena *arena);
/* Releases all allocations and keeps the memory for the next ones. */
void tile_arena_reset(TileArena *arena);

/* The longjmp target when memory runs out, or more than `limit` bytes (0: any) are allocated. */
void tile_arena_set_guard(TileArena *arena, jmp_buf *guard);
void tile_arena_set_limit(TileArena *arena, size_t limit);
size_t tile_arena_bytes(const TileArena *arena);

enum { TILE_ARENA_ALIGNMENT = 16 };
/* `size` uninitialised bytes of a new block; size is already rounded. */
void *tile_arena_begin_block(TileArena *arena, size_t size);

/* Uninitialised memory, aligned to 16 bytes; never NULL. A size of 0 gives a valid pointer. */
static inline void *tile_arena_take(TileArena *arena, size_t size) {
    size_t mask = TILE_ARENA_ALIGNMENT - 1;
    size_t rounded = size == 0                ? TILE_ARENA_ALIGNMENT
                     : size > SIZE_MAX - mask ? SIZE_MAX - mask
                                              : (size + mask) & ~mask;
    char *result = arena->position;
    if ((size_t)(arena->end - result) < rounded) return tile_arena_begin_block(arena, rounded);
    arena->position = result + rounded;
    return result;
}

/* Zeroed memory. An impossible size jumps to the guard before anything is cleared. */
static inline void *tile_arena_alloc(TileArena *arena, size_t size) {
    void *result = tile_arena_take(arena, size);
    return size <= PTRDIFF_MAX ? memset(result, 0, size) : result;
}

/* A larger copy of `old` (which may be NULL), the rest zeroed. The old block is not reused. */
void *tile_arena_grow(TileArena *arena, const void *old, size_t old_size, size_t new_size);
/* Grows `old` from `old_size` to `new_size` bytes: in place if it was the last allocation, else as a copy of its first
 * `used` bytes. The rest is uninitialised. */
void *tile_arena_extend(TileArena *arena, void *old, size_t old_size, size_t used, size_t new_size);
void *tile_arena_copy(TileArena *arena, const void *data, size_t size);
char *tile_arena_string(TileArena *arena, const char *text, size_t length);
char *tile_arena_format(TileArena *arena, const char *format, ...) TILE_PRINTF(2, 3);
char *tile_arena_format_list(TileArena *arena, const char *format, va_list arguments);

#define TILE_NEW(arena, Type) ((Type *)tile_arena_alloc((arena), sizeof(Type)))
#define TILE_NEW_ARRAY(arena, Type, count) ((Type *)tile_arena_alloc((arena), sizeof(Type) * (size_t)(count)))

#endif
