/* Texts about variants: what they rely on, and why one does not serve arguments. */
#ifndef TILE_LAUNCH_EXPLAIN_H
#define TILE_LAUNCH_EXPLAIN_H

#include "launch/variants.h"

typedef struct TileExplanation {
    char text[1600]; /* cut where it is longer */
    size_t length;
} TileExplanation;

/* "T = f32, N = 64"; "" for a kernel without either. */
void tile_explain_instance(TileExplanation *text, const TileImageSignature *signature, const TileImageRequest *request);
/* "x: aligned to 64 bytes, dimension 1 contiguous; y: .."; "nothing". bits: one word a parameter; values: of
 * scalars. */
void tile_explain_facts(TileExplanation *text, const TileImageSignature *signature, const uint64_t *bits,
                        const int64_t *values);
/* Why a ready variant does not serve: "x: dimension 1 has a stride of 12 bytes, and the code relies on one element". */
void tile_explain_difference(TileExplanation *text, const TileImageSignature *signature, const TileVariant *variant,
                             const TileImageRequest *request, const TileView *views);
/* With the kernel's mutex held: the guard that failed, of the variant that nearly serves the arguments. */
void tile_explain_miss(TileExplanation *text, const TileKernel *kernel, const TileImageRequest *request,
                       const TileView *views);

#endif
