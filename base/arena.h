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

#include "tile/status.h"

typedef struct TileArena TileArena;

/* NULL if out of memory. `parent` may be NULL; otherwise the new arena uses the parent's guard. */
TileArena *tile_arena_create(TileArena *parent);
void tile_arena_destroy(TileArena *arena);

/* Where tile_arena_alloc goes when memory runs out, or past `limit` bytes (0: none). */
void tile_arena_set_guard(TileArena *arena, jmp_buf *guard);
void tile_arena_set_limit(TileArena *arena, size_t limit);
size_t tile_arena_bytes(const TileArena *arena);

/* Zeroed memory aligned to 16 bytes; never NULL. A size of 0 gives a valid pointer. */
void *tile_arena_alloc(TileArena *arena, size_t size);
/* A larger copy of `old` (which may be NULL), the rest zeroed. The old block is not reused. */
void *tile_arena_grow(TileArena *arena, const void *old, size_t old_size, size_t new_size);
void *tile_arena_copy(TileArena *arena, const void *data, size_t size);
char *tile_arena_string(TileArena *arena, const char *text, size_t length);
char *tile_arena_format(TileArena *arena, const char *format, ...) TILE_PRINTF(2, 3);
char *tile_arena_format_list(TileArena *arena, const char *format, va_list arguments);

#define TILE_NEW(arena, Type) ((Type *)tile_arena_alloc((arena), sizeof(Type)))
#define TILE_NEW_ARRAY(arena, Type, count) ((Type *)tile_arena_alloc((arena), sizeof(Type) * (size_t)(count)))

#endif
