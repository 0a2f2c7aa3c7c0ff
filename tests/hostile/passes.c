/* What tile_compiler_load_passes loads. */
#include "tile/pass.h"

static void run(TileIr *ir, void *host) { (void)ir, (void)host; }
static const TilePass pass = {.struct_size = sizeof pass, .name = "loaded", .after = "dce", .run = run};
static const TilePass *const passes[] = {&pass, NULL};
TILE_DEFINE_PASSES(passes)
