#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)0)
#endif

/* The largest block has the size of a huge page on most machines. */
enum { FIRST_BLOCK = 16 * 1024, LARGEST_BLOCK = 2 * 1024 * 1024, ALIGNMENT = TILE_ARENA_ALIGNMENT };

typedef struct TileArenaBlock Block;
struct TileArenaBlock {
    Block *next;
    size_t size;
};

/* An arena with a block of the largest size, or a single large thing, will need more: the system is asked for huge pages, since the first use of each
 * page costs about as much as the compiler needs to fill it. The system may refuse; the memory is the same. */
static void *take_huge(size_t size) {
    void *memory = aligned_alloc(LARGEST_BLOCK, size);
#ifdef MADV_HUGEPAGE
    if (memory) (void)madvise(memory, size, MADV_HUGEPAGE);
#endif
    return memory;
}

TileArena *tile_arena_create(TileArena *parent) {
    TileArena *arena = calloc(1, sizeof *arena);
    if (!arena) return NULL;
    arena->next_size = FIRST_BLOCK;
    if (parent) arena->guard = parent->guard;
    return arena;
}

static void free_blocks(Block *first) {
    for (Block *block = first, *next; block; block = next) {
        next = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block, block->size);
        free(block);
    }
}

void tile_arena_destroy(TileArena *arena) {
    if (!arena) return;
    free_blocks(arena->blocks);
    free_blocks(arena->spare);
    free(arena);
}

void tile_arena_reset(TileArena *arena) {
    for (Block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        block->next = arena->spare;
        arena->spare = block;
        ASAN_POISON_MEMORY_REGION(block + 1, block->size - sizeof *block);
    }
    arena->blocks = NULL;
    arena->position = arena->end = NULL;
    arena->total = 0;
    arena->next_size = FIRST_BLOCK;
}

void tile_arena_set_guard(TileArena *arena, jmp_buf *guard) { arena->guard = guard; }
void tile_arena_set_limit(TileArena *arena, size_t limit) { arena->limit = limit; }
size_t tile_arena_bytes(const TileArena *arena) { return arena->total; }

/* Reached only without a guard, in tests and tools: the library's entry points all set one. */
static void out_of_memory(TileArena *arena) {
    if (arena->guard) longjmp(*arena->guard, 1);
    fputs("tile: out of memory\n", stderr);
    exit(2);
}

/* The first kept block that is large enough, or NULL. */
static Block *take_spare(TileArena *arena, size_t wanted) {
    Block **place = &arena->spare;
    while (*place && (*place)->size < wanted) place = &(*place)->next;
    Block *block = *place;
    if (!block) return NULL;
    *place = block->next;
    ASAN_UNPOISON_MEMORY_REGION(block, block->size);
    return block;
}

static Block *new_block(TileArena *arena, size_t wanted) {
    bool huge = wanted % LARGEST_BLOCK == 0;
    Block *block = huge ? take_huge(wanted) : malloc(wanted);
    if (!block) out_of_memory(arena);
    block->size = wanted;
    return block;
}

static void add_block(TileArena *arena, size_t size) {
    size_t needed = size + sizeof(Block) + ALIGNMENT;
    if (needed < size) out_of_memory(arena);
    size_t wanted = needed < arena->next_size ? arena->next_size : needed;
    if (wanted > LARGEST_BLOCK && wanted < SIZE_MAX - LARGEST_BLOCK && !arena->limit)
        wanted = (wanted + LARGEST_BLOCK - 1) / LARGEST_BLOCK * LARGEST_BLOCK;
    if (arena->limit && (wanted > arena->limit || arena->total > arena->limit - wanted)) out_of_memory(arena);
    Block *block = take_spare(arena, needed);
    if (!block) block = new_block(arena, wanted);
    block->next = arena->blocks;
    arena->blocks = block;
    arena->total += block->size;
    uintptr_t start = ((uintptr_t)(block + 1) + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    arena->position = (char *)start;
    arena->end = (char *)block + block->size;
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

void *tile_arena_extend(TileArena *arena, void *old, size_t old_size, size_t used, size_t new_size) {
    size_t mask = ALIGNMENT - 1;
    char *start = old, *end = start + ((old_size + mask) & ~mask);
    bool last = old_size && end == arena->position;
    if (last && new_size >= old_size && (size_t)(arena->end - start) >= new_size) {
        size_t room = (size_t)(arena->end - start), rounded = (new_size + mask) & ~mask;
        arena->position = start + (rounded < room ? rounded : room);
        return old;
    }
    char *result = tile_arena_take(arena, new_size);
    if (used) memcpy(result, old, used);
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
