/* The CPU targets. */
#ifndef TILE_CPU_TARGET_H
#define TILE_CPU_TARGET_H

#include "lang/ir/target.h"

/* In ascending preference. */
const TileTarget *tile_cpu_targets(unsigned *count);
/* NULL if no CPU target has this name. */
const TileTarget *tile_cpu_target_find(const char *name);

#endif
