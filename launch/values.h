/* Code for the values of integer scalars: where code asked for them (they decide strides, bounds or steps), and
 * launches are equal, it is compiled in the background. The first launch is noted, the second one asks. */
#ifndef TILE_LAUNCH_VALUES_H
#define TILE_LAUNCH_VALUES_H

#include "launch/guard.h"
#include "launch/variants.h"

typedef enum TileValuesSeen {
    TILE_VALUES_SETTLED, /* the code asked for no values, was told them, or has been asked for already */
    TILE_VALUES_FIRST,   /* such a launch is new */
    TILE_VALUES_AGAIN    /* it is the second one */
} TileValuesSeen;

/* TILE_GUARD_VALUE for a scalar whose value the code asked for and was not told, else 0. */
static inline uint64_t tile_values_wanted(const TileImageSignature *signature, const TileVariant *variant,
                                          uint32_t parameter) {
    bool scalar = signature->parameters[parameter].kind != TILE_PARAMETER_TENSOR;
    uint64_t asked = variant->code->asked[parameter] & ~variant->request.facts[parameter];
    return scalar ? asked & TILE_GUARD_VALUE : 0;
}
/* Code for these values that is there; NULL: none is. Taken. */
TileVariant *tile_values_find(TileKernel *kernel, const TileImageRequest *request, const TileView *views);
/* Notes a launch that this variant serves. A launch whose values are not settled is not remembered (replay.h). */
TileValuesSeen tile_values_note(TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                                const TileView *views);
/* Begins to compile for the values that the variant's code asked for, and settles them. */
void tile_values_ask(TileKernel *kernel, const TileVariant *variant, const TileImageRequest *request,
                     const TileView *views);

#endif
