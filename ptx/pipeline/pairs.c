/* Purpose: let what is made of a product's sums lie as the next product takes it. A thread has two neighbours of each eight columns of
 * sums, and of an operand of 8 bits in registers four of each sixteen: between the two, lanes would exchange words. Which column of sums
 * belongs to which row of the second operand is free, though. So these rows come to shared memory in another order, the even ones first
 * (`pairs` of the load), and of the sums a thread has four neighbours (`pairs` of the product).
 *
 * Before:
 *     func phase tile @k.0(%k: tensor<f8e4m3, 2, in> {noalias}, %v: tensor<f8e4m3, 2, in> {noalias}, %q: f8e4m3[64, 32]) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %32 = const {value = 32} : i64
 *       %none = const {value = 0.0} : f32[64, 32]
 *       %x = load_tile %k, %zero, %one, %zero, %32, %zero, %one, %zero, %32 {access = [range, range], tensor_map = 1} : f8e4m3[32, 32]
 *       %y = permute %x {axes = [1, 0]} : f8e4m3[32, 32]
 *       %s = dot %q, %y, %none {instruction = wgmma} : f32[64, 32]
 *       %p = convert %s : f8e4m3[64, 32]
 *       %z = load_tile %v, %zero, %one, %zero, %32, %zero, %one, %zero, %32 {access = [range, range], tensor_map = 1} : f8e4m3[32, 32]
 *       %w = permute %z {axes = [1, 0]} : f8e4m3[32, 32]
 *       %o = dot %p, %w, %none {instruction = wgmma} : f32[64, 32]
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%k: tensor<f8e4m3, 2, in> {noalias}, %v: tensor<f8e4m3, 2, in> {noalias}, %q: f8e4m3[64, 32]) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %32 = const {value = 32} : i64
 *       %none = const {value = 0.0} : f32[64, 32]
 *       %x = load_tile %k, %zero, %one, %zero, %32, %zero, %one, %zero, %32 {pairs = [1, 0], access = [range, range], tensor_map = 1} :
 *         f8e4m3[32, 32]
 *       %y = permute %x {axes = [1, 0]} : f8e4m3[32, 32]
 *       %s = dot %q, %y, %none {instruction = wgmma, pairs = [0, 1]} : f32[64, 32]
 *       %p = convert %s : f8e4m3[64, 32]
 *       %z = load_tile %v, %zero, %one, %zero, %32, %zero, %one, %zero, %32 {access = [range, range], tensor_map = 1} : f8e4m3[32, 32]
 *       %w = permute %z {axes = [1, 0]} : f8e4m3[32, 32]
 *       %o = dot %p, %w, %none {instruction = wgmma} : f32[64, 32]
 *       return
 *     }
 * Needs: gpu-warpgroups, gpu-multicast. Keeps: tile form. Cost: for each product, the ops that its first operand is computed of. */
#include "base/tensor_map.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include "ptx/passes.h"
#include "ptx/target/map.h"

enum { FIRST, SECOND, LANES_OF_A_BYTE = 8 };

/* What an operand in registers is computed of, tiles of its own shape. */
typedef struct Search {
    TileMap seen;
    const TileType *shape;
    TileOp *dot;  /* the product */
    bool others;  /* more than one product, or tiles that are loaded or carried */
} Search;

static void search(Search *s, const TileValue *value) {
    TileOp *op = value->op;
    if (!tile_type_is_tile(value->type) || !tile_type_same_shape(value->type, s->shape) || tile_map_get(&s->seen, value)) return;
    tile_map_set(&s->seen, (void *)(uintptr_t)value, s);
    if (op && op->id == TILE_OP_DOT) {
        s->others |= s->dot && s->dot != op;
        s->dot = op;
        return;
    }
    s->others |= !op || (!tile_op_is_pure(op) && op->id != TILE_OP_IF) || op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE;
    if (s->others) return;
    for (unsigned i = 0; i < op->region_count; i++) search(s, tile_op_operand(op->regions[i].last, value->index));
    for (unsigned i = 0; i < op->operand_count; i++) search(s, tile_op_operand(op, i));
}

/* The load whose rows are the columns of the product's second operand, and nothing else's; NULL: there is none. */
static TileOp *find_rows(const TileOp *dot) {
    const TileValue *operand = tile_op_operand(dot, SECOND);
    const TileOp *permute = tile_value_def(operand, TILE_OP_PERMUTE);
    if (!permute || !tile_value_has_one_use(operand) || tile_op_get(permute, TILE_ATTRIBUTE_AXES)->integers[0] != 1) return NULL;
    TileOp *load = tile_value_def(tile_op_operand(permute, 0), TILE_OP_LOAD_TILE);
    return load && tile_value_has_one_use(&load->results[0]) ? load : NULL;
}

/* Can a map copy every second row in a box, and do the boxes end where the swizzle begins anew? */
static bool fits(const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *tile = load->results[0].type;
    unsigned rank = tile_access_read(load, indices);
    int64_t rows = tile->extent[0], step = 0;
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].axis == 0) step = gpu_step_of_index(&indices[d]);
    bool plain = gpu_by_map(load) && tile->rank == 2 && step == 1 && !tile_op_get(load, TILE_ATTRIBUTE_MULTICAST) &&
                 !tile_op_has_part(load, TILE_PARTS_FILL) && !tile_op_has_part(load, TILE_PARTS_MASK);
    return plain && rows % (2 * TILE_MAP_SWIZZLE_ROWS) == 0 && rows <= TILE_MAP_MOST_EXTENT;
}

static bool try_dot(TilePassContext *context, TileOp *dot, const char **error) {
    (void)error;
    const TileType *taken = tile_op_operand(dot, FIRST)->type;
    Search s = {.shape = taken};
    if (!gpu_dot_is_wgmma(dot) || taken->rank != 2 || tile_scalar_bits(taken->scalar) != LANES_OF_A_BYTE) return false;
    tile_map_init(&s.seen, context->scratch);
    search(&s, tile_op_operand(dot, FIRST));
    if (!s.dot || s.others || !gpu_dot_is_wgmma(s.dot) || tile_op_get(s.dot, TILE_ATTRIBUTE_PAIRS) || !gpu_begins_at_zero(s.dot)) return false;
    TileOp *load = find_rows(s.dot);
    if (!load || !fits(load)) return false;
    static const int64_t ROWS[] = {1, 0}, COLUMNS[] = {0, 1};
    tile_op_set_integers(context->module, load, TILE_ATTRIBUTE_PAIRS, ROWS, 2);
    tile_op_set_integers(context->module, s.dot, TILE_ATTRIBUTE_PAIRS, COLUMNS, 2);
    tile_pass_remark(context, s.dot, TILE_DECISION_IN_PAIRS, "a product", "rows of its second operand are copied even ones first");
    return true;
}

TileResult tile_pass_gpu_pairs(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    return tile_try_each(context, func, TILE_OP_DOT, try_dot, "gpu-pairs");
}
