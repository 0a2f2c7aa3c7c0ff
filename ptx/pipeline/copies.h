/* Loads whose tiles go straight to shared memory, where tensor cores take them from. Shared by gpu-channels and
 * gpu-dot-operands; private to ptx/. */
#ifndef TILE_PTX_PIPELINE_COPIES_H
#define TILE_PTX_PIPELINE_COPIES_H

#include "lang/ir/build.h"
#include "ptx/target/dot.h"

/* May a copy_tile and a shared_tile stand for the load? It has two axes of ranges, no mask and no fill but 0, and only
 * products for mma use it, through exchanges of its axes and fills with 0 of lanes that are invalid anyway. */
bool gpu_load_is_copied(const TileOp *load);
/* A load of the product's own block of ops that the operand is computed from, NULL where none is found. `between` is
 * what stands last between the two, exchanges of axes and fills aside; NULL: nothing. For remarks: the search gives up
 * early. */
const TileOp *gpu_operand_load(const TileOp *dot, unsigned operand, const TileOp **between);
/* Shared memory that a tile takes which lies as the pointer says, up to where the next one may begin. */
int64_t gpu_place_bytes(const TileType *pointer);
/* A channel in front of which nothing is in its slots, for tiles of this type. */
TileValue *gpu_build_channel(TileBuilder *b, const TileType *tile, int64_t slots);
/* A copy through the channel, begun and waited for, takes the load's place, and what reads the slot the tile's, without
 * the fills; the load goes. */
void gpu_load_through_channel(TileBuilder *b, TileOp *load, TileValue *channel);
/* A constant whose every lane is 0 or -0. */
bool gpu_is_zero(const TileValue *value);
/* An op without operands and results. */
void gpu_build_plain(TileBuilder *b, TileOpId id);
void gpu_build_wait(TileBuilder *b, int64_t pending);
/* A buffer of shared memory of so many slots; `type` is that of pointers into it. */
TileValue *gpu_build_buffer(TileBuilder *b, const TileType *type, int64_t bytes, int64_t align, int64_t slots);

#endif
