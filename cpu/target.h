/* The CPUs that code is made for, and what the CPU that this process runs on can do. */
#ifndef TILE_CPU_TARGET_H
#define TILE_CPU_TARGET_H

#include "lang/target.h"

/* In order of preference, best last. */
const TileTarget *tile_cpu_targets(unsigned *count);
/* NULL when no CPU target has this name. */
const TileTarget *tile_cpu_target_find(const char *name);
/* Can code for the target run on this machine? */
bool tile_cpu_target_usable(const TileTarget *target);
/* The best usable target; NULL when none is. */
const TileTarget *tile_cpu_target_native(void);

#endif
