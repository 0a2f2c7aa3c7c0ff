/* Which targets of a build are linked into its object, and which are data. */
#include "driver/ahead/ahead.h"
#include "driver/compile/backend.h"

bool tile_ahead_is_linked(const TileTarget *target) { return tile_backend_of(target)->linked; }

bool tile_ahead_has_data(const TileBuild *build) {
    return build->targets.count && !tile_ahead_is_linked(build->targets.items[build->targets.count - 1]);
}

bool tile_ahead_has_linked(const TileBuild *build) { return tile_ahead_is_linked(build->targets.items[0]); }
