/* Launches like an earlier one: tensors of the same types, shapes and strides, and the same scalars. All earlier checks
 * still hold, except those of addresses, and the slots are the same but for addresses. */
#ifndef TILE_LAUNCH_REPLAY_H
#define TILE_LAUNCH_REPLAY_H

#include "launch/variants.h"

enum { TILE_REPLAY_PHASES = 16, TILE_REPLAY_SLOTS = 128 };

/* What a launch came to. */
typedef struct TileReplayed {
    TileVariant *variant; /* taken */
    uint32_t shape_key, slot_count;
    uint16_t specials; /* the kernel's, before the variant was looked for */
    int64_t programs[TILE_REPLAY_PHASES];
    int device;                         /* GPUs: that of the tensors */
    uint64_t lows[TILE_MAX_PARAMETERS]; /* GPUs: the tensors' lowest addresses, 0 for scalars */
} TileReplayed;

/* True if the kernel remembers such a launch, and addresses are aligned as before and memory is disjoint. `slots` has
 * room for TILE_REPLAY_SLOTS words; NULL: they are not needed. */
bool tile_replay_find(TileKernel *kernel, const TileArg *arguments, size_t count, uint64_t *slots,
                      TileReplayed *replayed);
/* Remembers a launch whose arguments were valid. */
void tile_replay_record(TileKernel *kernel, const TileArg *arguments, const TileView *views, const uint64_t *slots,
                        const TileReplayed *replayed);
/* Allocates the kernel's records, once; if memory runs out it remembers nothing. */
void tile_replay_prepare(TileKernel *kernel);

#endif
