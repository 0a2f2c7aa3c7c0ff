/* A growable array in an arena: TILE_LIST(int) numbers = {0}; tile_list_push(arena, &numbers, 3);
 * Items may move when the list grows; the old copies stay in the arena until it is destroyed. Room that is not used yet
 * is as it is, not zeroed. */
#ifndef TILE_BASE_LIST_H
#define TILE_BASE_LIST_H

#include "base/arena.h"

#define TILE_LIST(Type)                                                                                                \
    struct {                                                                                                           \
        Type *items;                                                                                                   \
        size_t count, capacity;                                                                                        \
    }

/* The room of a list that begins: most lists of large items have one or two. */
#define TILE_LIST_FIRST(size) ((size) <= 8 ? 8 : (size) <= 16 ? 4 : 2)

#define tile_list_reserve(arena, list, wanted)                                                                         \
    do {                                                                                                               \
        if ((list)->capacity < (wanted)) {                                                                             \
            size_t tile_list_new_ = (list)->capacity ? (list)->capacity * 2 : TILE_LIST_FIRST(sizeof *(list)->items);  \
            if (tile_list_new_ < (wanted)) tile_list_new_ = (wanted);                                                  \
            (list)->items =                                                                                            \
                tile_arena_extend((arena), (list)->items, (list)->capacity * sizeof *(list)->items,                    \
                                  (list)->count * sizeof *(list)->items, tile_list_new_ * sizeof *(list)->items);      \
            (list)->capacity = tile_list_new_;                                                                         \
        }                                                                                                              \
    } while (0)

#define tile_list_push(arena, list, ...)                                                                               \
    do {                                                                                                               \
        tile_list_reserve((arena), (list), (list)->count + 1);                                                         \
        (list)->items[(list)->count++] = (__VA_ARGS__);                                                                \
    } while (0)

#endif
