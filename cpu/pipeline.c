/* The table of the CPU passes and the order in which they run. */
#include <string.h>

#include "cpu/passes.h"

enum { TILE = TILE_FORM_TILE, MACHINE = TILE_FORM_MACHINE, BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE };

static const TilePassInfo passes[] = {
#define PASS(id, name, stage, input, output, doc) {name, doc, TILE_STAGE_##stage, input, output, tile_pass_##id},
#include "cpu/passes.def"
#undef PASS
};

static const TilePassTable table = {passes, sizeof passes / sizeof *passes};

const TilePassTable *tile_cpu_passes(void) { return &table; }

/* Shared passes stand between the steps where they pay: what one step leaves behind is removed once, before the
 * next has to look at it. Loads are not filled (masks) and loops only split where tiles are reshaped: other nests are
 * trimmed to what is valid, so that only the last vector of a row has a mask, whatever tile it is in, and nothing is
 * compiled twice. */
static const char pipeline_names[] = "inline,contract,canonicalise,cse,facts,exact-loops,licm,split-loops,canonicalise,cse,dce,"
                                     "programs,expand-programs,canonicalise,cse,dce,"
                                     "cpu-nest,cse,licm,dce,"
                                     "cpu-vectorise,cpu-dot,math,atomics,"
                                     "cse,licm,dce,"
                                     "cpu-scratch,legalise";

tile_status tile_cpu_pipeline(TilePipeline *pipeline, TileArena *arena, TileText *message) {
    const TilePassTable *tables[] = {tile_lowering_passes(), &table};
    tile_status status = tile_pipeline_read(pipeline, arena, tables, 2, pipeline_names, message);
    return status == TILE_OK ? TILE_OK : TILE_INTERNAL;
}
