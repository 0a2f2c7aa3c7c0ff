/* A family of targets as passes see it: its machines, and how kernels become machine form for them. cpu/ and ptx/ have
 * one each; what emits and loads the code of a family is driver/compile/backend.h's. */
#ifndef TILE_LOWERING_FAMILY_H
#define TILE_LOWERING_FAMILY_H

#include "lowering/pass.h"

typedef struct TileFamily {
    TileTargetKind kind;
    const char *name;            /* in tune clauses, in tuning files and of the pipeline: "gpu" */
    const char *title, *folder;  /* for documents: "GPU", "ptx" */
    const TilePassTable *passes; /* the family's own */
    /* Better ones later; NULL behind the last. */
    const TileTarget *(*target_at)(unsigned index);
    /* The way from checked tile form to machine form that mlir_bridge maps 1:1: names of passes of lowering/ and of the
     * family, in order and separated by commas. `target` may be NULL: for any of them. */
    const char *(*pipeline)(const TileTarget *target);
} TileFamily;

/* NULL when the family has no target of this name. */
const TileTarget *tile_family_target(const TileFamily *family, const char *name);

/* Adds the passes of the family's pipeline. TILE_INTERNAL, with a message, when a name in it is no pass. */
tile_status tile_family_pipeline(const TileFamily *family, const TileTarget *target, TilePipeline *pipeline,
                                 TileArena *arena, TileText *message);

#endif
