/* A kernel with the constants of one point of its tune clauses, lowered: how far, the caller says. */
#ifndef TILE_DRIVER_COMPILE_POINT_H
#define TILE_DRIVER_COMPILE_POINT_H

#include "driver/compile/unit.h"
#include "launch/image.h"
#include "lowering/family.h"

typedef struct TilePoint {
    const TileImageSignature *signature;
    const TileImageRequest *request; /* types, static values and facts */
    const char *const *names;        /* of the constants, */
    const int64_t *values;           /* and these themselves */
    size_t count;
    TileSchedule schedule;
} TilePoint;

/* Runs the pipeline of the unit's target up to and with the pass `last`. False: the point cannot be compiled. The
 * unit's module is what it became. */
bool tile_point_lower(TileUnit *unit, const TileKernelInfo *kernel, const TilePoint *point, const char *last);

/* Lowers the point until shared memory is known, in a unit of its own. False: a block has less shared memory than it needs, or
 * it cannot be compiled. */
bool tile_point_has_room(TileInput *input, const TilePoint *point);

#endif
