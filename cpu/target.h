/* The CPUs that code is made for. */
#ifndef TILE_CPU_TARGET_H
#define TILE_CPU_TARGET_H

#include "lang/ir/target.h"

/* In order of preference, best last. */
const TileTarget *tile_cpu_targets(unsigned *count);
/* NULL when no CPU target has this name. */
const TileTarget *tile_cpu_target_find(const char *name);

#endif
