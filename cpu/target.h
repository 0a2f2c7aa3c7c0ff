/* The CPU targets. */
#ifndef TILE_CPU_TARGET_H
#define TILE_CPU_TARGET_H

#include "lang/ir/target.h"
#include "lang/scalar/scalar.h"

/* In ascending preference. */
const TileTarget *tile_cpu_targets(unsigned *count);
/* NULL if no CPU target has this name. */
const TileTarget *tile_cpu_target_find(const char *name);

/* Has AMX an instruction for products of these elements, with sums of that type? */
bool tile_cpu_amx_multiplies(TileScalar a, TileScalar b, TileScalar sum);
/* Have the target's vectors one? Both operands unsigned bytes have none: it takes unsigned by signed ones. */
bool tile_cpu_vnni_multiplies(const TileTarget *target, TileScalar a, TileScalar b, TileScalar sum);

#endif
