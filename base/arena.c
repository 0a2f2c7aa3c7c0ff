#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 16 * 1024, LARGEST_BLOCK = 1024 * 1024, ALIGNMENT = 16 };

typedef struct Block Block;
struct Block {
    Block *next;
    size_t size;
};

struct TileArena {
    Block *blocks;
    char *position, *end;
    size_t next_size, total, limit;
    jmp_buf *guard;
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

/* Most blocks are small, and a call of memset would cost more than the stores. */
static void clear(void *memory, size_t size) {
    typedef struct Unit {
        uint64_t halves[2];
    } Unit;
    static const Unit zero;
    _Static_assert(sizeof(Unit) == ALIGNMENT, "blocks are whole units");
    Unit *units = memory;
    switch (size / ALIGNMENT) {
    case 12: units[11] = zero; __attribute__((fallthrough));
    case 11: units[10] = zero; __attribute__((fallthrough));
    case 10: units[9] = zero; __attribute__((fallthrough));
    case 9: units[8] = zero; __attribute__((fallthrough));
    case 8: units[7] = zero; __attribute__((fallthrough));
    case 7: units[6] = zero; __attribute__((fallthrough));
    case 6: units[5] = zero; __attribute__((fallthrough));
    case 5: units[4] = zero; __attribute__((fallthrough));
    case 4: units[3] = zero; __attribute__((fallthrough));
    case 3: units[2] = zero; __attribute__((fallthrough));
    case 2: units[1] = zero; __attribute__((fallthrough));
    case 1: units[0] = zero; return;
    default: memset(memory, 0, size);
    }
}

void *tile_arena_alloc(TileArena *arena, size_t size) {
    if (size > SIZE_MAX - ALIGNMENT) out_of_memory(arena);
    size = size ? (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
    if (!arena->position || (size_t)(arena->end - arena->position) < size) add_block(arena, size);
    void *result = arena->position;
    arena->position += size;
    clear(result, size);
    return result;
}

void *tile_arena_grow(TileArena *arena, const void *old, size_t old_size, size_t new_size) {
    void *result = tile_arena_alloc(arena, new_size);
    if (old_size) memcpy(result, old, old_size < new_size ? old_size : new_size);
    return result;
}

void *tile_arena_copy(TileArena *arena, const void *data, size_t size) {
    return tile_arena_grow(arena, data, size, size);
}

char *tile_arena_string(TileArena *arena, const char *text, size_t length) {
    char *result = tile_arena_alloc(arena, length + 1);
    if (length) memcpy(result, text, length);
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
