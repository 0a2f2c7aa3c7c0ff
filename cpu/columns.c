/* Purpose: number the programs of a grid column by column where a product takes its right operand by the column: then
 * consecutive programs, and those of one thread, multiply the same panels of it, which cpu-dot packs once for all of
 * them.
 *
 * Run: --passes=cpu-columns --target=avx2
 * Before:
 *     func phase tile @k.0(%a: tensor<bf16, 2, in>, %b: tensor<bf16, 2, in>, %c: tensor<f32, 2, out>, %rows: i64,
 *       %columns: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %none = const {value = 0.0} : f32[32, 32]
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %rows, %columns : i64, i64
 *         %0 = mul %i, %n : i64
 *         %1 = mul %j, %n : i64
 *         %x = load_tile %a, %0, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : bf16[32, 32]
 *         %y = load_tile %b, %zero, %one, %zero, %n, %1, %one, %zero, %n {access = [range, range]} : bf16[32, 32]
 *         %z = dot %x, %y, %none : f32[32, 32]
 *         store_tile %c, %z, %0, %one, %zero, %n, %1, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<bf16, 2, in>, %b: tensor<bf16, 2, in>, %c: tensor<f32, 2, out>, %rows: i64,
 *       %columns: i64, %begin: i64 {role = begin}, %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 32} : i64
 *       %none = const {value = 0.0} : f32[32, 32]
 *       for %begin, %end, %one (%program: i64) {
 *         %j, %i = program_id %program, %columns, %rows : i64, i64
 *         %0 = mul %i, %n : i64
 *         %1 = mul %j, %n : i64
 *         %x = load_tile %a, %0, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : bf16[32, 32]
 *         %y = load_tile %b, %zero, %one, %zero, %n, %1, %one, %zero, %n {access = [range, range]} : bf16[32, 32]
 *         %z = dot %x, %y, %none : f32[32, 32]
 *         store_tile %c, %z, %0, %one, %zero, %n, %1, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Of three axes and more the first stays the first, that of a batch's images: what is loaded and stored for one image stays in the cache
 * while columns change. But where the right operand's tensor is larger than L2, each image would have it packed anew: then columns
 * come before images, if what is so read again of the left operand's tensor is less than that. Which it is, is asked at run time.
 *
 * Needs: the pass programs. Keeps: tile form; each program runs once, whatever part of the grid a thread runs.
 * Cost: linear in the ops. */
#include "cpu/passes.h"
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum { AGAIN = 2 /* a byte that is packed takes as long as so many that are read again from behind L2 */ };

typedef struct Search {
    TilePassContext *context;
    TileFunc *func;
    TileIndices *indices;
    TileOp *program_id;
    unsigned passed; /* a right operand depends on the last index, and on none of so many before it */
    TileValue *left, *right; /* the tensors of a product whose right operand depends on the last of three indices and more alone; NULL: there is none */
} Search;

static void find_program_id(TileOp *op, void *state) {
    Search *search = state;
    if (op->id == TILE_OP_PROGRAM_ID && !search->program_id) search->program_id = op;
}

/* The load that the operand is, but for the order of its axes and the lanes that do not exist; NULL: it is none. */
static const TileOp *load_of(const TileValue *value) {
    const TileOp *op = value->op;
    while (op && (op->id == TILE_OP_PERMUTE || op->id == TILE_OP_FILL || op->id == TILE_OP_RESHAPE)) op = tile_op_operand(op, 0)->op;
    return op && op->id == TILE_OP_LOAD_TILE ? op : NULL;
}

static bool depends(const Search *search, const TileOp *load, unsigned axis) {
    for (unsigned i = tile_access_first(load); i < tile_access_end(load); i++)
        if (tile_index_depends(search->indices, tile_op_operand(load, i), tile_op_result(search->program_id, axis))) return true;
    return false;
}

static void look_at_dot(TileOp *op, void *state) {
    Search *search = state;
    if (op->id != TILE_OP_DOT) return;
    const TileOp *load = load_of(tile_op_operand(op, 1)), *other = load_of(tile_op_operand(op, 0));
    unsigned last = search->program_id->result_count - 1u, passed = 0;
    if (!load || !depends(search, load, last)) return;
    unsigned most = last > 1 ? last - 1 : last;
    while (passed < most && !depends(search, load, last - 1 - passed)) passed++;
    if (passed > search->passed) search->passed = passed;
    if (last < 2 || passed < most || depends(search, load, 0) || !other || !depends(search, other, 0) || depends(search, other, last)) return;
    search->left = tile_op_operand(other, 0);
    search->right = tile_op_operand(load, 0);
}

static TileValue *bytes_of(TileBuilder *b, TileValue *tensor) {
    TileValue *bytes = tile_build_i64(b, tile_scalar_bytes(tensor->type->scalar));
    for (unsigned d = 0; d < tensor->type->rank; d++) bytes = tile_build_binary(b, TILE_OP_MUL, bytes, tile_build_dim(b, tensor, d));
    return bytes;
}

/* Do columns come before images? The right operand's bytes are packed once for each image otherwise, and the left one's read once more for
 * each column but the first if they do. */
static TileValue *columns_before_images(Search *search) {
    TileOp *op = search->program_id, *outermost = op;
    while (outermost->block->op) outermost = outermost->block->op;
    TileBuilder b = tile_builder_before(search->context->module, outermost);
    TileValue *images = tile_op_named_at(op, TILE_OPERAND_EXTENTS, 0), *columns = tile_op_named_at(op, TILE_OPERAND_EXTENTS, op->result_count - 1u);
    TileValue *right = bytes_of(&b, search->right), *left = bytes_of(&b, search->left);
    TileValue *packed = tile_build_binary(&b, TILE_OP_MUL, right, images);
    TileValue *again = tile_build_binary(&b, TILE_OP_MUL, left, tile_build_binary(&b, TILE_OP_SUB, columns, tile_build_i64(&b, 1)));
    TileValue *large = tile_build_binary(&b, TILE_OP_GT, right, tile_build_i64(&b, (int64_t)search->context->target->l2_bytes));
    again = tile_build_binary(&b, TILE_OP_MUL, again, tile_build_i64(&b, AGAIN));
    return tile_build_binary(&b, TILE_OP_AND, large, tile_build_binary(&b, TILE_OP_GT, packed, again));
}

/* The two values, in the other order if the condition holds. */
static void exchange(TileBuilder *b, TileValue *condition, TileValue **x, TileValue **y) {
    TileValue *first = tile_build_ternary(b, TILE_OP_SELECT, condition, *y, *x), *second = tile_build_ternary(b, TILE_OP_SELECT, condition, *x, *y);
    *x = first;
    *y = second;
}

/* The last axis moves in front of those on which the operand does not depend, so that all programs of a column follow one another;
 * but of more than two in front of the first one only under the condition (NULL: never). */
static void move_axis(Search *search, TileValue *condition) {
    TileOp *op = search->program_id;
    unsigned count = op->result_count, first = count - 1 - search->passed, from[TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < count; i++) from[i] = i < first ? i : i == first ? count - 1 : i - 1;
    TileValue *operands[TILE_MAX_TENSOR_RANK + 1] = {tile_op_named(op, TILE_OPERAND_PROGRAM)}, *places[TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < count; i++) operands[1 + i] = tile_op_named_at(op, TILE_OPERAND_EXTENTS, from[i]);
    TileBuilder builder = tile_builder_before(search->context->module, op);
    if (condition) exchange(&builder, condition, &operands[1], &operands[2]);
    TileOp *made = tile_build_op(&builder, TILE_OP_PROGRAM_ID, operands, count + 1, NULL, 0, NULL, count);
    for (unsigned i = 0; i < count; i++) places[i] = tile_op_result(made, i);
    if (condition) exchange(&builder, condition, &places[0], &places[1]);
    for (unsigned i = 0; i < count; i++) tile_value_replace(tile_op_result(op, from[i]), places[i]);
    tile_op_erase(op);
}

TileResult tile_pass_cpu_columns(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !context->target) return TILE_RESULT_UNCHANGED;
    Search search = {.context = context, .func = func};
    tile_block_walk(&func->body, find_program_id, &search);
    const TileOp *op = search.program_id;
    bool plain = op && op->result_count >= 2 && op->result_count <= TILE_MAX_TENSOR_RANK &&
                 op->operand_count == op->result_count + 1u && !tile_op_get(op, TILE_ATTRIBUTE_PROGRAMS);
    if (!plain) return TILE_RESULT_UNCHANGED;
    search.indices = tile_pass_indices(context, func);
    tile_block_walk(&func->body, look_at_dot, &search);
    if (!search.passed) return TILE_RESULT_UNCHANGED;
    tile_pass_remark(context, search.program_id, TILE_DECISION_PROGRAMS_REORDERED, "programs", "%s%s",
                     "column by column, which share the right operand of a product",
                     search.right ? ", in front of the first axis too if that saves more packing than it costs reading" : "");
    move_axis(&search, search.right ? columns_before_images(&search) : NULL);
    return TILE_RESULT_CHANGED;
}
