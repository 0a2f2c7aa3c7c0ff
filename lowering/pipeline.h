/* The part of the way that all targets share: from checked tile form to tile form that is simple and fast. */
#ifndef TILE_LOWERING_PIPELINE_H
#define TILE_LOWERING_PIPELINE_H

#include "lowering/pass.h"

/* Adds the shared passes, in order. */
void tile_lowering_pipeline(TilePipeline *pipeline, TileArena *arena);

#endif
