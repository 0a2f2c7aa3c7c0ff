/* Loops whose parts the blocks of a cluster compute, which then combine them. Private to ptx/. */
#ifndef TILE_PTX_GRID_CLUSTER_PARTS_H
#define TILE_PTX_GRID_CLUSTER_PARTS_H

#include "ptx/grid/grid_parts.h"

/* Does the kernel ask for clusters, which the target has, and does the loop multiply what it loads? */
bool gpu_split_wants_cluster(const GpuSplit *split);
/* Why the blocks of a cluster cannot have the loop's parts; NULL: they can. */
const char *gpu_split_why_not_in_cluster(GpuSplit *split);
/* Gives each program's parts to the blocks of a cluster: each combines a part of what these have, and goes on with that. */
void gpu_split_in_cluster(GpuSplit *split);

#endif
