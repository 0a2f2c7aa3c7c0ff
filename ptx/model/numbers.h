/* Integers of a function, as far as they follow from the extents of its tensors and constants. Private to ptx/model. */
#ifndef TILE_PTX_MODEL_NUMBERS_H
#define TILE_PTX_MODEL_NUMBERS_H

#include "lang/ir/operands.h"
#include "lowering/family.h"

/* What a length is taken to be that does not follow from them, as one that the kernel is given or loads. */
enum { GPU_UNKNOWN_LENGTH = 1024 };

typedef struct GpuNumbers {
    TileFunc *func;
    const TileExtents *extents;
    int64_t *values; /* by TileValue.number */
    bool *known;
    int64_t *parts;    /* of a number that is computed of what a tensor holds: the tensor's elements; 0: of others */
    uint64_t *sources; /* a set of bits: the loads that it is computed of */
} GpuNumbers;

/* Numbers the function's values. */
GpuNumbers gpu_numbers_create(TileFunc *func, const TileExtents *extents, TileArena *scratch);
void gpu_number_set(GpuNumbers *numbers, const TileValue *value, int64_t number);
bool gpu_number_get(const GpuNumbers *numbers, const TileValue *value, int64_t *number);
int64_t gpu_number_or(const GpuNumbers *numbers, const TileValue *value, int64_t otherwise);
/* In what share of the iterations of the loops around it, as far as these are few, the branch takes its first region: 0 to 1; negative: that
 * does not follow from the numbers. */
double gpu_number_share(const GpuNumbers *numbers, const TileOp *branch);
/* From lo to hi. Where these are places of which a tensor holds several, as those of segments, they are known to lie below a bound, but not
 * how far apart: segments are taken to share what is below it. False: unknown. */
bool gpu_number_length(const GpuNumbers *numbers, const TileValue *lo, const TileValue *hi, int64_t *length);
/* Computes the op's results from its operands' numbers. */
void gpu_number_op(GpuNumbers *numbers, const TileOp *op);

#endif
