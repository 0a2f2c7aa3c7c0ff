#include "lowering/pipeline.h"

/* Products are contracted first, while each stands in the one sum that the text put it in. Facts want the canonical
 * form of bounds, masks want equal bounds to be one value, and split loops leave work for all of them. */
static const TileLoweringPass shared[] = {
    TILE_PASS_inline,      TILE_PASS_contract,     TILE_PASS_canonicalise, TILE_PASS_cse,         TILE_PASS_facts,
    TILE_PASS_exact_loops, TILE_PASS_canonicalise, TILE_PASS_licm,         TILE_PASS_split_loops, TILE_PASS_cse,
    TILE_PASS_facts,       TILE_PASS_canonicalise, TILE_PASS_cse,          TILE_PASS_masks,       TILE_PASS_licm,
    TILE_PASS_cse,         TILE_PASS_dce,
};

void tile_lowering_pipeline(TilePipeline *pipeline, TileArena *arena) {
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        tile_list_push(arena, pipeline, tile_lowering_pass(shared[i]));
}
