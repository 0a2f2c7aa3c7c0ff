/* Bound calls, for bound.c and queue.c. */
#ifndef TILE_LAUNCH_BOUND_H
#define TILE_LAUNCH_BOUND_H

#include "launch/run.h"

/* Of a tensor: which addresses are like the one that it was bound with, and where they go. */
typedef struct TilePlace {
    uint64_t odd;       /* bits that an address must not have: the code relies on its alignment; and .. */
    uint64_t coarse;    /* .. of which it must have one: code for more alignment is another */
    uint64_t low, high; /* of the memory, from the address on */
    uint32_t parameter, slot;
    bool apart; /* no other argument may share its memory */
} TilePlace;

/* Tensors, by the number of their places, whose memory is apart from one another. */
typedef struct TilePair {
    uint16_t one, other;
} TilePair;

enum { TILE_BOUND_STRIDE = 4 }; /* so many words are copied at a time: there is room for these behind the last */

struct TileBound {
    TileKernel *kernel;
    TileVariant *variant; /* taken */
    TileReplayed like;
    bool placed;      /* every tensor had an address */
    bool copies;      /* slots are copied for each launch: there are no temporaries, and few enough */
    bool again;       /* a launch with addresses like these comes to the same */
    bool only_runs; /* nothing is said, allocated or interpreted: a launch runs its phases, on a GPU hands them to the driver */
    bool maps;        /* the driver gets tensor maps, which are made from the slots */
    uint32_t slot_count, place_count, pair_count;
    uint64_t *values, *slots;
    void **parameters; /* the slots' addresses, and those of the first phase's range of programs */
    int64_t first;     /* program of each grid: 0 */
    TilePlace *places; /* of each tensor */
    uint64_t *lows;    /* the lowest address of each, as they were bound */
    TilePair *pairs;
    TileView views[];
};

/* The slots and lowest addresses of a launch with such addresses. False: it goes another way. */
bool tile_bound_place(const TileBound *bound, void *const *addresses, uint64_t *slots, uint64_t *lows);

/* Does the launch only run phases, with the addresses that it was bound with or, where the options ask for no others, such
 * as are like these? */
static inline bool tile_bound_is_short(const TileBound *bound, void *const *addresses, const TileLaunchOptions *given) {
    if (!bound || !given || given->struct_size != sizeof *given || given->observer || !bound->only_runs) return false;
    if (given->stream && !bound->variant->code->gpu) return false;
    return addresses ? given->flags & TILE_LAUNCH_REMEMBERED
                     : bound->placed && !(given->flags & TILE_LAUNCH_REMEMBERED);
}
/* That launch, as tile_launch_bound. */
tile_status tile_bound_short(const TileBound *bound, void *const *addresses, const TileLaunchOptions *given);

#endif
