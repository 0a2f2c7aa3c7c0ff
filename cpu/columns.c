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
 * Needs: the pass programs. Keeps: tile form; each program runs once, whatever part of the grid a thread runs.
 * Cost: linear in the ops. */
#include "cpu/passes.h"
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

typedef struct Search {
    TilePassContext *context;
    TileFunc *func;
    TileIndices *indices;
    TileOp *program_id;
    unsigned passed; /* a right operand depends on the last index, and on none of so many before it */
} Search;

static void find_program_id(TileOp *op, void *state) {
    Search *search = state;
    if (op->id == TILE_OP_PROGRAM_ID && !search->program_id) search->program_id = op;
}

/* The load that the operand is, but for the order of its axes and the lanes that do not exist; NULL: it is none. */
static const TileOp *load_of(const TileValue *value) {
    const TileOp *op = value->op;
    while (op && (op->id == TILE_OP_PERMUTE || op->id == TILE_OP_FILL)) op = tile_op_operand(op, 0)->op;
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
    const TileOp *load = load_of(tile_op_operand(op, 1));
    unsigned last = search->program_id->result_count - 1u, passed = 0;
    if (!load || !depends(search, load, last)) return;
    unsigned most = last > 1 ? last - 1 : last;
    while (passed < most && !depends(search, load, last - 1 - passed)) passed++;
    if (passed > search->passed) search->passed = passed;
}

/* The last axis moves in front of those on which the operand does not depend, so that all programs of a column follow one another;
 * but of more than two not in front of the first one: what is loaded and stored for one of that, an image of a batch, stays in
 * the cache while columns change. */
static void move_axis(Search *search) {
    TileOp *op = search->program_id;
    unsigned count = op->result_count, first = count - 1 - search->passed, from[TILE_MAX_TENSOR_RANK];
    for (unsigned i = 0; i < count; i++) from[i] = i < first ? i : i == first ? count - 1 : i - 1;
    TileValue *operands[TILE_MAX_TENSOR_RANK + 1] = {tile_op_named(op, TILE_OPERAND_PROGRAM)};
    for (unsigned i = 0; i < count; i++) operands[1 + i] = tile_op_named_at(op, TILE_OPERAND_EXTENTS, from[i]);
    TileBuilder builder = tile_builder_before(search->context->module, op);
    TileOp *made = tile_build_op(&builder, TILE_OP_PROGRAM_ID, operands, count + 1, NULL, 0, NULL, count);
    for (unsigned i = 0; i < count; i++) tile_value_replace(tile_op_result(op, from[i]), tile_op_result(made, i));
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
    tile_pass_remark(context, search.program_id, TILE_DECISION_PROGRAMS_REORDERED, "programs", "%s",
                     "column by column, which share the right operand of a product");
    move_axis(&search);
    return TILE_RESULT_CHANGED;
}
