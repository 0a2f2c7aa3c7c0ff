/* Purpose: the strides of tensors whose rows are constants. Where an access steps from row to row, of which it takes an element
 * or, where they are short, all, and all extents behind are constants, a tensor without gaps has a constant stride there: neighbouring lanes are a known distance apart, so that
 * what they load and store together is neither gathered nor scattered. The fact that there are no gaps is asked for, and
 * where it is known the stride becomes one.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {stride1 = 4, dense = 1}, %y: tensor<f32, 1, out>) {
 *       %two = const {value = 2} : i64
 *       check_dim %x, %two {axis = 1, text = "2"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       grid %one (%p: i64) {
 *         %v = load_tile %x, %p, %one, %zero, %two, %one {access = [range, index]} : f32[2]
 *         store_tile %y, %v, %p, %one, %zero, %two {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {stride0 = 8, stride1 = 4, dense = 1, used_dense = 1, asked_dense = 1}, %y: tensor<f32, 1, out>) {
 *       %two = const {value = 2} : i64
 *       check_dim %x, %two {axis = 1, text = "2"}
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       grid %one (%p: i64) {
 *         %v = load_tile %x, %p, %one, %zero, %two, %one {access = [range, index]} : f32[2]
 *         store_tile %y, %v, %p, %one, %zero, %two {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: canonicalise, so that constant extents are constants. Keeps: every op; records in the parameters what was asked
 * and used. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

enum { SHORT = 64 /* bytes: longer rows are vectors of their own, which may lie anywhere */ };

typedef struct Strides {
    TileFunc *kernel;
    bool changed;
} Strides;

/* The extent that launches are checked to have; 0: it is no constant. */
static int64_t constant_extent(const TileFunc *kernel, const TileValue *tensor, unsigned axis) {
    int64_t extent = kernel->parameters[tensor->index].facts.extent[axis];
    if (extent != TILE_UNKNOWN) return 0; /* a fact that would have to be marked as used: no launcher grants it */
    for (const TileUse *use = tensor->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (op->id != TILE_OP_CHECK_DIM || tile_op_integer(op, TILE_ATTRIBUTE_AXIS, -1) != (int64_t)axis) continue;
        if (tile_value_integer(tile_op_operand(op, 1), &extent) && extent > 0) return extent;
    }
    return 0;
}

/* The bytes from the dimension's element to the next one, if there are no gaps behind it; 0: not known. */
static int64_t constant_stride(const TileFunc *kernel, const TileValue *tensor, unsigned dimension) {
    int64_t bytes = (int64_t)tile_scalar_bytes(tensor->type->scalar);
    for (unsigned d = dimension + 1; d < tensor->type->rank && bytes; d++)
        if (__builtin_mul_overflow(bytes, constant_extent(kernel, tensor, d), &bytes)) return 0;
    return bytes;
}

/* Is the whole dimension accessed, whose extent is a constant? */
static bool is_whole(const TileFunc *kernel, const TileOp *op, const TileAccessIndex *index, unsigned axis) {
    const TileType *type = op->result_count ? op->results[0].type : tile_op_operand(op, 1)->type;
    if (index->kind != TILE_ACCESS_RANGE || !tile_type_is_tile(type)) return false;
    return type->extent[index->axis] == constant_extent(kernel, tile_op_operand(op, 0), axis);
}

/* The last dimension in which lanes step from row to row: single elements of rows, or whole rows of which a vector holds several;
 * -1: none, or the last dimension of all. */
static int stepping_dimension(const TileFunc *kernel, const TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *tensor = tile_op_operand(op, 0)->type;
    unsigned count = tile_access_read(op, indices), rank = tensor->rank;
    if (count != rank || !rank) return -1;
    int d = (int)rank - 1;
    int64_t bytes = (int64_t)tile_scalar_bytes(tensor->scalar);
    for (; d >= 0; d--) {
        if (indices[d].kind == TILE_ACCESS_INDEX) continue;
        if (!is_whole(kernel, op, &indices[d], (unsigned)d)) break;
        bytes *= constant_extent(kernel, tile_op_operand(op, 0), (unsigned)d);
        if (bytes >= SHORT) return -1;
    }
    return d == (int)rank - 1 ? -1 : d;
}

static void look(TileOp *op, void *state) {
    Strides *strides = state;
    const TileValue *tensor = tile_op_get(op, TILE_ATTRIBUTE_ACCESS) ? tile_op_operand(op, 0) : NULL;
    if (!tensor || tensor->op || tensor->type->kind != TILE_TYPE_TENSOR || tensor->type->access == TILE_ACCESS_TEMP) return;
    int d = stepping_dimension(strides->kernel, op);
    TileParameter *parameter = &strides->kernel->parameters[tensor->index];
    if (d < 0 || parameter->facts.stride[d] != TILE_UNKNOWN) return;
    int64_t stride = constant_stride(strides->kernel, tensor, (unsigned)d);
    if (!stride) return;
    strides->changed |= !(parameter->asked_dense >> d & 1);
    parameter->asked_dense |= 1u << d;
    if (!(parameter->facts.dense >> d & 1)) return;
    parameter->used_dense |= 1u << d;
    parameter->facts.stride[d] = stride;
    strides->changed = true;
}

TileResult tile_pass_strides(TilePassContext *context, TileFunc *func) {
    Strides strides = {.kernel = func};
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, look, &strides);
    return strides.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
