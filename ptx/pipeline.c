/* The table of the GPU passes and the order in which they run. */
#include "ptx/passes.h"

enum { TILE = TILE_FORM_TILE, MACHINE = TILE_FORM_MACHINE, BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE };

static const TilePassInfo passes[] = {
#define PASS(id, name, stage, input, output, doc) {name, doc, TILE_STAGE_##stage, input, output, tile_pass_##id},
#include "ptx/passes.def"
#undef PASS
};

static const TilePassTable table = {passes, sizeof passes / sizeof *passes};

const TilePassTable *tile_ptx_passes(void) { return &table; }

const char *tile_ptx_pipeline(void) {
    return "inline,contract,canonicalise,cse,facts,exact-loops,licm,canonicalise,cse,dce,"
           "cpu-programs,gpu-blocks,gpu-once,gpu-target,gpu-order,canonicalise,cse,dce,"
           "gpu-channels,gpu-stages,gpu-expand,gpu-dot-operands,gpu-copy-groups,gpu-whole,gpu-cache,expand-programs,canonicalise,cse,dce,"
           "gpu-anchor,gpu-propagate,gpu-rematerialise,dce,"
           "gpu-machine,gpu-shared,gpu-barriers,canonicalise,cse,licm,dce,gpu-schedule,gpu-expand,gpu-spread,gpu-lanes,dce,"
           "cpu-atomic,gpu-math,cpu-math,cse,licm,dce,"
           "cpu-machine,dce";
}
