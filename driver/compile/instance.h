/* A kernel for certain types, static values, small integers that decide bounds, maps, tensors without gaps and short rows: the functions that the model reads, of
 * each point of the tune clauses with each schedule that makes a difference. Private to driver/. */
#ifndef TILE_DRIVER_COMPILE_INSTANCE_H
#define TILE_DRIVER_COMPILE_INSTANCE_H

#include "driver/compile/tuned.h"
#include "driver/compile/unit.h"

typedef struct TileInstancePoint {
    const int64_t *values;
    TileSchedule schedule;  /* of zeros: as the text has it */
    TileModule *module;     /* in tile form; NULL: the point cannot be compiled, or a block has no room for it */
    uint64_t code;          /* a hash, of those whose programs are computed together */
    bool has_room;          /* this was seen in machine form */
    size_t base;            /* of one with another number of warps: the point that it is otherwise, plus 1; else 0 */
} TileInstancePoint;

typedef struct TileInstance {
    uint64_t key, used; /* used: when, for those that make room */
    TileUnit *unit;     /* owns names and values; NULL: the model can say nothing */
    TILE_LIST(const char *) names;
    TileInstancePoint *points; /* allocated, and grows */
    size_t count, capacity;
    TileUnit **others; /* which own the modules of points with another number of warps */
    size_t other_count;
    TileImageRequest request; /* by which points are lowered */
    uint64_t known;           /* the set of integers whose value that has */
} TileInstance;

/* NULL: out of memory. */
TileInstance *tile_instance_create(TileInput *input, const TileImageSignature *signature, const TileImageRequest *request,
                                   const TileView *views, uint64_t key);
void tile_instance_destroy(TileInstance *instance);

/* The number of the point that is like point `base`, but for its blocks of so many warps; SIZE_MAX: it would not differ, or memory
 * has run out. It is made when it is first asked for. */
size_t tile_instance_with_warps(TileInput *input, const TileImageSignature *signature, TileInstance *instance, size_t base,
                                uint32_t warps);

/* The set of integers that decide bounds, steps or strides of some point, as bits. */
uint64_t tile_instance_find_deciding(const TileImageSignature *signature, const TileInstance *instance);

const TileFunc *tile_instance_kernel(const TileModule *module);

#endif
