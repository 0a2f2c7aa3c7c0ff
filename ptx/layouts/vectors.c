/* How words of a product's sums are stored in vectors. */
#include "ptx/layouts/vectors.h"

#include "lang/ir/operands.h"
#include "ptx/layouts/blocked.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"

/* The input bit that moves along the last axis by 1 << log; of a dimension. MOST_BITS: there is none, or it moves along others too. */
static unsigned bit_of_column(const TileLayout *layout, TileLayoutDim dim, unsigned log) {
    unsigned first = tile_layout_first_bit(layout, dim);
    for (unsigned i = first; i < first + layout->bits[dim]; i++)
        if (layout->map.column[i] == UINT32_C(1) << log) return i;
    return TILE_LINEAR_BITS;
}

/* Rows that the store moves in vectors of 16 bytes, if a thread has them. */
static bool has_whole_vectors(TileFunc *func, const TileOp *op, const TileType *tile) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(op, indices), last = rank - 1, bytes = tile_scalar_bytes(tile->scalar), vector = GPU_ACCESS_BYTES / bytes;
    if (tile_op_operand(op, 0)->block != &func->body || rank < 2) return false;
    TileParameter *parameter = &func->parameters[tile_op_operand(op, 0)->index];
    if (indices[last].kind != TILE_ACCESS_RANGE || indices[last].axis + 1 != (int)tile->rank || parameter->facts.stride[last] != bytes) return false;
    parameter->asked_multiple |= vector;
    int64_t multiple = parameter->facts.multiple[last];
    if (multiple == TILE_UNKNOWN || multiple % vector) return false;
    parameter->used_multiple |= vector;
    return true;
}

/* Is the value only what the loop's next product adds to, as far as `depth` ops tell? */
static bool is_only_added_to(const TileValue *value, unsigned depth) {
    enum { SUMS = 2 };
    bool only = depth != 0;
    for (const TileUse *use = value->first_use; only && use; use = use->next) {
        const TileOp *user = use->user;
        bool passes = user->id == TILE_OP_DOT_WAIT || user->id == TILE_OP_CONVERT_LAYOUT;
        only = user->id == TILE_OP_YIELD || (user->id == TILE_OP_DOT && use->index == SUMS) || (passes && is_only_added_to(&user->results[0], depth - 1));
    }
    return only;
}

typedef struct Products {
    bool warpgroups, used; /* some are theirs; a loop computes with the sums of some, or carries them around another loop */
} Products;

static void look_at_product(TileOp *op, void *state) {
    enum { DEPTH = 8 };
    Products *products = state;
    if (op->id != TILE_OP_DOT) return;
    const TileOp *loop = op->block->op;
    bool repeated = loop && loop->id == TILE_OP_FOR && !tile_loop_is_of_programs(loop), nested = repeated && tile_op_is_repeated(loop);
    products->warpgroups |= gpu_dot_is_wgmma(op);
    products->used |= nested || (repeated && !is_only_added_to(&op->results[0], DEPTH)); /* an outer loop has its sums as they are stored, and exchanges in each iteration */
}

/* Is it a store behind all products of warpgroups? A loop that computes with the sums would exchange in each iteration. */
static bool stores_after_products(TileFunc *func, const TileOp *store) {
    Products products = {0};
    tile_block_walk(&func->body, look_at_product, &products);
    return products.warpgroups && !products.used && !tile_op_is_repeated(store);
}

TileLayout gpu_widen_sums(TileFunc *func, const TileOp *op, const TileLayout *sums) {
    enum { PAIR = 1, EIGHT = 3 };
    TileLayout layout = *sums;
    const TileType *tile = op->id == TILE_OP_STORE_TILE ? tile_op_named(op, TILE_OPERAND_VALUE)->type : NULL;
    if (!tile || tile->rank != 2 || tile_scalar_bytes(tile->scalar) != sizeof(uint32_t) || gpu_by_map(op) || !stores_after_products(func, op)) return layout;
    unsigned lane = bit_of_column(&layout, TILE_LAYOUT_LANE, PAIR), own = bit_of_column(&layout, TILE_LAYOUT_REGISTER, EIGHT);
    if (lane == TILE_LINEAR_BITS || own == TILE_LINEAR_BITS || bit_of_column(&layout, TILE_LAYOUT_REGISTER, 0) != 0 || !has_whole_vectors(func, op, tile)) return layout;
    layout.map.column[lane] = UINT32_C(1) << EIGHT;
    for (unsigned i = own; i > 1; i--) layout.map.column[i] = layout.map.column[i - 1]; /* the second register has the second neighbour */
    layout.map.column[1] = UINT32_C(1) << PAIR;
    return layout;
}
