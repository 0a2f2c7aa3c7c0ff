#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 16 * 1024, LARGEST_BLOCK = 1024 * 1024, ALIGNMENT = TILE_ARENA_ALIGNMENT };

typedef struct TileArenaBlock Block;
struct TileArenaBlock {
    Block *next;
    size_t size;
};

TileArena *tile_arena_create(TileArena *parent) {
    TileArena *arena = calloc(1, sizeof *arena);
    if (!arena) return NULL;
    arena->next_size = FIRST_BLOCK;
    if (parent) arena->guard = parent->guard;
    return arena;
}

void tile_arena_destroy(TileArena *arena) {
    if (!arena) return;
    for (Block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(arena);
}

void tile_arena_set_guard(TileArena *arena, jmp_buf *guard) { arena->guard = guard; }
void tile_arena_set_limit(TileArena *arena, size_t limit) { arena->limit = limit; }
size_t tile_arena_bytes(const TileArena *arena) { return arena->total; }

/* Only a program that set no guard, a test or a tool, ends here: the library's entry points all set one. */
static void out_of_memory(TileArena *arena) {
    if (arena->guard) longjmp(*arena->guard, 1);
    fputs("tile: out of memory\n", stderr);
    exit(2);
}

static void add_block(TileArena *arena, size_t size) {
    size_t wanted = size + sizeof(Block) + ALIGNMENT;
    if (wanted < size) out_of_memory(arena);
    if (wanted < arena->next_size) wanted = arena->next_size;
    if (arena->limit && arena->total + wanted > arena->limit) out_of_memory(arena);
    Block *block = malloc(wanted);
    if (!block) out_of_memory(arena);
    block->next = arena->blocks;
    block->size = wanted;
    arena->blocks = block;
    arena->total += wanted;
    uintptr_t start = ((uintptr_t)(block + 1) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    arena->position = (char *)start;
    arena->end = (char *)block + wanted;
    if (arena->next_size < LARGEST_BLOCK) arena->next_size *= 2;
}

void *tile_arena_begin_block(TileArena *arena, size_t size) {
    add_block(arena, size);
    void *result = arena->position;
    arena->position += size;
    return result;
}

void *tile_arena_grow(TileArena *arena, const void *old, size_t old_size, size_t new_size) {
    char *result = tile_arena_take(arena, new_size);
    size_t kept = old_size < new_size ? old_size : new_size;
    if (kept) memcpy(result, old, kept);
    if (kept < new_size) memset(result + kept, 0, new_size - kept);
    return result;
}

void *tile_arena_copy(TileArena *arena, const void *data, size_t size) {
    return tile_arena_grow(arena, data, size, size);
}

char *tile_arena_string(TileArena *arena, const char *text, size_t length) {
    char *result = tile_arena_take(arena, length + 1);
    if (length) memcpy(result, text, length);
    result[length] = 0;
    return result;
}

char *tile_arena_format_list(TileArena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return tile_arena_string(arena, "", 0);
    char *result = tile_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(result, (size_t)length + 1, format, arguments);
    return result;
}

char *tile_arena_format(TileArena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *result = tile_arena_format_list(arena, format, arguments);
    va_end(arguments);
    return result;
}
