/* The table of the CPU passes and their order. */
#include "cpu/passes.h"
#include "cpu/target.h"

enum { TILE = TILE_FORM_TILE, MACHINE = TILE_FORM_MACHINE, BOTH = TILE_FORM_TILE | TILE_FORM_MACHINE };

static const TilePassInfo passes[] = {
#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    {name, doc, TILE_STAGE_##stage, input, output, TILE_ANALYSIS_##needs, TILE_ANALYSIS_##keeps, tile_pass_##id},
#include "cpu/passes.def"
#undef PASS
};

static const TilePassTable table = {passes, sizeof passes / sizeof *passes};

/* Shared passes run between the steps where they pay: what one step leaves behind is removed once, before the next
 * step analyses it. Loops are split only where tiles are reshaped. Other nests iterate over valid lanes only, so just
 * the last vector of a row has a mask, in any tile, and no code is duplicated. */
static const char *pipeline(const TileTarget *target) {
    return "inline,contract,approximate,specialise,sort,canonicalise,cse,strides,facts,exact-loops,unroll,canonicalise,cse,cpu-axes,canonicalise,cse,remainders,licm,canonicalise,cse,dce,cpu-join-programs,cpu-join-rows,canonicalise,cse,cpu-zeros-ahead,split-loops,canonicalise,cse,dce,"
           "programs,cpu-bands,cpu-updates,cpu-columns,expand-programs,canonicalise,cse,licm,cpu-zeros,canonicalise,licm,cse,cpu-steps,dce,cpu-words,canonicalise,cse,dce,"
           "cpu-place,cpu-fuse,cpu-nest,canonicalise,cse,facts,canonicalise,cse,cpu-counts,cpu-plain-indices,canonicalise,cse,cpu-digits,canonicalise,cse,licm,canonicalise,cse,dce,cpu-interchange,cpu-inside,cpu-windows,cpu-borders,cpu-squares,cpu-recurrences,canonicalise,"
           "dce,cpu-slide,cpu-rows,cpu-along,cpu-jam,cpu-flatten,cse,"
           "cpu-vectorise,canonicalise,facts,canonicalise,cse,cpu-halves,cpu-abreast,cpu-dot,random,math,atomics,"
           "cse,licm,dce,"
           "cpu-prefetch,cpu-stream,cpu-by-axes,licm,dce,cpu-scratch,legalise";
}

static const TileTarget *target_at(unsigned index) {
    unsigned count;
    const TileTarget *targets = tile_cpu_targets(&count);
    return index < count ? &targets[index] : NULL;
}

const TileFamily tile_cpu_family = {.kind = TILE_TARGET_CPU,
                                    .name = "cpu",
                                    .title = "CPU",
                                    .folder = "cpu",
                                    .passes = &table,
                                    .target_at = target_at,
                                    .pipeline = pipeline};
