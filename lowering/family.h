/* A family of targets: its machines, and its pipeline of passes. cpu/ and ptx/ have one each; emitting and loading
 * code is the task of driver/compile/backend.h. */
#ifndef TILE_LOWERING_FAMILY_H
#define TILE_LOWERING_FAMILY_H

#include "lowering/pass.h"

typedef struct TileFamily {
    TileTargetKind kind;
    const char *name;            /* in tune clauses, tuning files and pipelines: "gpu" */
    const char *title, *folder;  /* for documents: "GPU", "ptx" */
    const TilePassTable *passes; /* the family's own */
    /* Targets in ascending preference; NULL past the last. */
    const TileTarget *(*target_at)(unsigned index);
    /* The pipeline from checked tile form to machine form that mlir_bridge maps 1:1: names of passes of lowering/ and
     * of the family, in order, separated by commas. `target` may be NULL: for any of them. */
    const char *(*pipeline)(const TileTarget *target);
} TileFamily;

/* NULL if the family has no target of this name. */
const TileTarget *tile_family_target(const TileFamily *family, const char *name);

/* Appends the passes of the family's pipeline. TILE_INTERNAL, with a message, if a name is no pass. */
tile_status tile_family_pipeline(const TileFamily *family, const TileTarget *target, TilePipeline *pipeline,
                                 TileArena *arena, TileText *message);

#endif
