/* Loads that are copied to shared memory asynchronously, from where products read them. Shared by passes of this
 * folder; private to ptx/. */
#ifndef TILE_PTX_PIPELINE_COPIES_H
#define TILE_PTX_PIPELINE_COPIES_H

#include "lang/ir/build.h"
#include "ptx/target/dot.h"

/* What a map copies is 0 outside of its tensor, along an index too: the index that is loaded of where it lies in the tensor, all lanes being
 * invalid elsewhere; NULL: it is no such. And a range's bound without the tests of such indices. */
TileValue *gpu_index_of_map(const TileOp *load, unsigned d);
TileValue *gpu_bound_of_map(const TileOp *load, TileValue *hi);

/* Can a copy_tile and a shared_tile replace the load? It has two axes of ranges, or more that a reshape makes rows of, no
 * mask and no fill but 0, and only products use it that read shared memory, possibly through transpositions and fills with 0
 * of lanes that are invalid anyway. */
bool gpu_load_is_copied(const TileOp *load);
/* Does a product for tensor cores behind the load, in the same block, take what is computed of its tile, alone or with others?
 * Such a tile can be copied as well; it comes to registers from shared memory. The search is limited. */
bool gpu_load_is_computed(const TileOp *load);
/* Is the op, or is in one of its regions, a product for tensor cores with sums of this shape? */
bool gpu_gives_sums(const TileOp *op, const TileType *type);
/* Is the load's tile computed with the sums of a loop of products in front of it, in the same block, to be stored, as a residual is? A map can
 * copy it while the loop runs. Of at most 16 bits an element: f32 takes half of the shared memory, and was no faster so. The search is limited. */
bool gpu_load_is_added(const TileOp *load);
/* Does the product take the operand from registers, where it is computed: is it no tile as it is copied to shared memory? */
bool gpu_operand_is_computed(const TileOp *dot, unsigned operand);
/* A second operand that is computed on its way to wgmma passes through shared memory, where all warpgroups read it. Slots: 3 if
 * products stay under way until the next iteration's have begun, in the text of their loop; else 2. */
int64_t gpu_put_slots(const TileOp *dot);
/* What is put there: the operand, or what it is the transposed tile of. `permuted`: it is so. */
TileValue *gpu_put_source(const TileOp *dot, bool *permuted);
/* Bytes of shared memory of all slots; 0: nothing is put there. */
int64_t gpu_put_bytes(TileContext *context, const TileOp *dot);
/* Can threads copy such a tile in chunks of 16 bytes? Only where rows are known to be contiguous and multiples of that:
 * elements are not copied ahead one by one to be computed with. Asks for the fact. */
bool gpu_load_has_whole_chunks(TileFunc *func, const TileOp *load);
/* Is it a vector that a loop loads beside the operands of its products? Warps that copy these can have it copied, too; all lanes
 * read it from shared memory. */
bool gpu_load_is_vector(const TileOp *load);
/* Can warps that copy have the tile copied by a map: as an operand, what one is computed of, a vector, or what is computed with sums? */
bool gpu_load_is_moved(const TileOp *load);
/* A load in the product's block that the operand depends on; NULL: there is none. `between` is the last op between
 * the two, except transpositions and fills; NULL: there is none. For remarks: the search is limited. */
const TileOp *gpu_operand_load(const TileOp *dot, unsigned operand, const TileOp **between);
/* The bytes of shared memory of a tile of the pointer's type, with padding up to the next tile. */
int64_t gpu_shared_bytes(const TileType *pointer);
/* The bytes of shared memory through which a tile of results passes. */
int64_t gpu_stored_bytes(const TileType *tile);
/* Of one that a tensor map stores, for all of so many programs that take turns: if there are several, the tile passes in
 * parts, one box's columns each, through room for one of them. They wait for one another, but beside other programs'
 * products, and slots for these are the better use of shared memory. */
int64_t gpu_stored_parts(int64_t turns, const TileType *tile); /* 1: as a whole */
int64_t gpu_map_stored_bytes(int64_t turns, const TileType *tile);
/* How many slots a loop's tiles need so that a copy by a map comes while the products of the iterations ahead of it run on the tensor
 * cores; 0: the loop itself has no products. */
int64_t gpu_slots_of_products(const TilePtxTarget *target, const TileBlock *loop);
/* The type of pointers to the load's tile in shared memory. */
/* Do rows of the tile, of two axes, become columns in its slots, copied word by word? */
bool gpu_load_is_turned(const TileOp *load);
const TileType *gpu_slot_type(TileContext *context, const TileOp *load);
/* Builds a channel for the load's tile, with empty slots. */
TileValue *gpu_build_channel(TileBuilder *b, const TileOp *load, int64_t slots);
/* Replaces the load by a copy through the channel, with a commit and a wait, and uses of its tile by reads of the
 * slot, without the fills. */
void gpu_load_through_channel(TileBuilder *b, TileOp *load, TileValue *channel);
/* Is the value a constant of 0 or -0 in every lane? */
bool gpu_is_zero(const TileValue *value);
/* Builds an op without operands and results. */
void gpu_build_plain(TileBuilder *b, TileOpId id);
void gpu_build_wait(TileBuilder *b, int64_t pending);
/* How many programs a block has in hand at a time. */
static inline int64_t gpu_turns(const TileFunc *func) { return func->turns > 1 ? func->turns : 1; }
/* Builds a buffer of shared memory with so many slots; `type` is that of pointers into it. */
TileValue *gpu_build_buffer(TileBuilder *b, const TileType *type, int64_t bytes, int64_t align, int64_t slots);

#endif
