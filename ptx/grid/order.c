/* Purpose: choose the order in which the blocks of a launch run the programs of a grid. Longest first: where the bound
 * of a loop grows with a program's last index, as in causal attention, the last index is counted down, for many rows
 * of programs together, so that no long program begins last and runs alone; where a loop begins later with it, it is
 * counted up. Blocks that stay take such programs in rounds: each second round the other way
 * round, so that the block with the longest program of one round has the shortest of the next. By columns: where there are no products,
 * the grid has two indices and all stores are contiguous along the first one, as in a transposition, consecutive
 * programs differ in the first index. Then stores fill whole pages of memory, which gains more than loads lose. In groups:
 * where products take one operand by the row and the other by the column of programs, some rows of programs run
 * together, so that the L2 cache serves more of what they load: as many as make the programs that are there at a time a
 * rectangle whose sides load about as much, a power of two.
 *
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %columns, %columns : i64, i64
 *         %0 = mul %j, %n : i64
 *         %1 = add %0, %n : i64
 *         %sum = for %zero, %1, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %0, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %n, %0, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %c: tensor<f32, 2, out> {noalias}, %columns: i64,
 *       %begin: i64 {role = begin}, %end: i64 {role = end}) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32[16, 16]
 *       for %begin, %end, %one (%program: i64) {
 *         %i, %j = program_id %program, %columns, %columns, %begin, %end {programs = longest_first, together = 64, uneven = 1} : i64, i64
 *         %0 = mul %j, %n : i64
 *         %1 = add %0, %n : i64
 *         %sum = for %zero, %1, %n, %none : f32[16, 16] (%k: i64, %acc: f32[16, 16]) {
 *           %x = load_tile %a, %0, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f16[16, 16]
 *           %y = dot %x, %x, %acc {instruction = mma} : f32[16, 16]
 *           yield %y
 *         }
 *         store_tile %c, %sum, %i, %one, %zero, %n, %0, %one, %zero, %n {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: the pass programs. Keeps: tile form; each program of the whole grid runs once. Cost: linear in the loops of a
 * program.
 */
#include <stdio.h>

#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/target/dot.h"
#include "ptx/target/map.h"
#include "ptx/grid/clusters.h"
#include "ptx/passes.h"

/* Rows of programs that are numbered together where these differ in length: the longest of all of them begin first, and the last group of rows begins
 * with long ones. */
enum { TOGETHER = 64 };

typedef struct Order {
    const TileOp *program_id;
    const TileBlock *program;
    TileIndices *indices;
    const TileValue *row, *column;
} Order;

/* ---- long programs ---- */

static bool rises(const Order *order, const TileOp *loop, unsigned bound) {
    return tile_index_growth(order->indices, tile_op_operand(loop, bound), order->column) == TILE_GROWTH_RISES;
}

/* Does a loop of the block run longer with a greater last index, as its end rises, or (`earlier`) shorter, as only its
 * beginning does? */
static bool has_longer(const Order *order, const TileBlock *block, bool earlier) {
    for (const TileOp *op = block->first; op; op = op->next) {
        bool loop = op->id == TILE_OP_FOR, end = loop && rises(order, op, 1);
        if (loop && (earlier ? !end && rises(order, op, 0) : end)) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (has_longer(order, &op->regions[i], earlier)) return true;
    }
    return false;
}

/* ---- stores along the first index ---- */

/* The first index of a store along the tensor's last dimension, the contiguous one. */
static const TileValue *last_index(const TileOp *store) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(store, indices);
    return rank && indices[rank - 1].kind == TILE_ACCESS_RANGE ? indices[rank - 1].first : NULL;
}

/* Do all stores of tiles depend along their last dimension on the program's first index, and not on its last? */
static bool stores_along_rows(const Order *order, const TileBlock *block, unsigned *stores) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_ATOMIC_TILE) return false;
        if (op->id == TILE_OP_STORE_TILE) {
            const TileValue *index = last_index(op);
            if (!index || !tile_index_depends(order->indices, index, order->row) ||
                tile_index_depends(order->indices, index, order->column))
                return false;
            ++*stores;
        }
        for (unsigned i = 0; i < op->region_count; i++)
            if (!stores_along_rows(order, &op->regions[i], stores)) return false;
    }
    return true;
}

static bool is_stored_along_rows(const Order *order) {
    unsigned stores = 0;
    return order->program_id->result_count == 2 && stores_along_rows(order, order->program, &stores) && stores;
}

/* ---- operands that programs share ---- */

/* Bytes of operands that programs of a row share, and of operands that those of a column share. */
typedef struct Shared {
    int64_t by_row, by_column;
} Shared;

static void look_at_loads(const Order *order, const TileBlock *block, Shared *shared) {
    for (const TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; i < op->region_count; i++) look_at_loads(order, &op->regions[i], shared);
        if (op->id != TILE_OP_LOAD_TILE || !gpu_by_map(op)) continue;
        bool row = false, column = false;
        for (unsigned i = tile_access_first(op); i < tile_access_end(op); i++) {
            row |= tile_index_depends(order->indices, tile_op_operand(op, i), order->row);
            column |= tile_index_depends(order->indices, tile_op_operand(op, i), order->column);
        }
        const TileType *tile = op->results[0].type;
        int64_t bytes = tile_type_lanes(tile) * tile_scalar_bytes(tile->scalar);
        shared->by_row += row && !column ? bytes : 0;
        shared->by_column += column && !row ? bytes : 0;
    }
}

/* Rows of programs that run together. What the multiprocessors' programs load at a time is a row's operand for each of these rows, and a column's for
 * each column that they have beside one another: more rows are taken where that makes it less by a share that was measured to matter. */
static int64_t rows_together(const TilePtxTarget *target, const Shared *shared) {
    enum { MOST_ROWS = 32 };
    const double WORTH = 0.9;
    int64_t rows = TILE_PROGRAM_ROWS;
    double least = (double)(shared->by_row * rows) + (double)(shared->by_column * target->cores) / (double)rows;
    for (int64_t more = 2 * rows; more <= MOST_ROWS; more *= 2) {
        double bytes = (double)(shared->by_row * more) + (double)(shared->by_column * target->cores) / (double)more;
        if (bytes >= WORTH * least) break;
        least = bytes;
        rows = more;
    }
    return rows;
}

/* ---- the order ---- */

static const char *const words[] = {[TILE_PROGRAMS_LONGEST_FIRST - TILE_PROGRAMS_LONGEST_FIRST] = "the longest first",
                                    [TILE_PROGRAMS_COLUMNS - TILE_PROGRAMS_LONGEST_FIRST] =
                                        "along the columns, in the order of their stores",
                                    [TILE_PROGRAMS_GROUPS - TILE_PROGRAMS_LONGEST_FIRST] =
                                        "rows together, which share the operands of a column"};

typedef struct Choice {
    TileName name;
    const char *word;
    bool uneven; /* programs take longer or shorter */
    int64_t together;
} Choice;

static Choice named(TileName name) {
    return (Choice){.name = name, .word = words[name - TILE_PROGRAMS_LONGEST_FIRST], .together = TILE_PROGRAM_ROWS};
}

/* False: that of their numbers. */
static bool choose_order(const Order *order, const TilePtxTarget *target, bool clusters, bool multiplies, Choice *chosen) {
    Shared shared = {0};
    bool later = multiplies && has_longer(order, order->program, false),
         earlier = multiplies && !later && has_longer(order, order->program, true);
    *chosen = named(later ? TILE_PROGRAMS_LONGEST_FIRST : TILE_PROGRAMS_GROUPS);
    chosen->uneven = later || earlier;
    if (earlier) chosen->word = words[0];
    if (chosen->uneven) chosen->together = TOGETHER;
    if (chosen->uneven) return true;
    *chosen = named(TILE_PROGRAMS_COLUMNS);
    if (!multiplies && is_stored_along_rows(order)) return true;
    *chosen = named(TILE_PROGRAMS_GROUPS);
    look_at_loads(order, order->program, &shared);
    if (!clusters) chosen->together = rows_together(target, &shared); /* measured: in clusters 16 rows gain nothing, or take 1.035 times as long */
    return shared.by_row && shared.by_column;
}

/* Blocks that stay take programs in rounds: no block is free earlier than another because its program was shorter. So the
 * longest programs of many rows make up the first round, and each second round goes the other way round. */
static void fold_rounds(TilePassContext *context, TileOp *program_id) {
    const TileOp *loop = program_id->block->op;
    tile_op_add_operand(context->module, program_id, tile_op_named(loop, TILE_OPERAND_STEP));
}

static TileOp *find_program_id(const TileFunc *func) {
    for (TileOp *loop = func->body.first; loop; loop = loop->next)
        for (TileOp *op = loop->id == TILE_OP_FOR ? loop->regions[0].first : NULL; op; op = op->next)
            if (op->id == TILE_OP_PROGRAM_ID && tile_op_operand(op, 0) == loop->regions[0].arguments[0]) return op;
    return NULL;
}

static TileValue *range_end(const TileFunc *func, TileParameterRole role) {
    for (uint32_t i = 0; i < func->body.argument_count; i++)
        if (func->parameters[i].role == role) return func->body.arguments[i];
    return NULL;
}

TileResult tile_pass_gpu_order(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || gpu_combines_in_cluster(&func->body)) return TILE_RESULT_UNCHANGED;
    TileOp *program_id = find_program_id(func);
    TileValue *begin = range_end(func, TILE_ROLE_BEGIN), *end = range_end(func, TILE_ROLE_END);
    if (!program_id || program_id->result_count < 2 || !begin || !end ||
        tile_op_get(program_id, TILE_ATTRIBUTE_PROGRAMS))
        return TILE_RESULT_UNCHANGED;
    Order order = {.program_id = program_id,
                   .program = program_id->block,
                   .indices = tile_pass_indices(context, func),
                   .row = tile_op_result(program_id, program_id->result_count - 2u),
                   .column = tile_op_result(program_id, program_id->result_count - 1u)};
    bool multiplies = gpu_find_dots(func, &func->body).count != 0;
    Choice chosen;
    if (!choose_order(&order, tile_ptx_target_of(context->target), func->cluster > 1, multiplies, &chosen)) return TILE_RESULT_UNCHANGED;
    bool stays = tile_op_integer(program_id->block->op, TILE_ATTRIBUTE_RESIDENT, 0) != 0, folds = stays && chosen.uneven;
    char rows[24] = "";
    if (chosen.name == TILE_PROGRAMS_GROUPS && !chosen.uneven) snprintf(rows, sizeof rows, "%d ", (int)chosen.together);
    tile_pass_remark(context, program_id, TILE_DECISION_PROGRAMS_REORDERED, "programs", "%s%s%s", rows, chosen.word,
                     folds ? ", each second round of the blocks the other way round" : "");
    tile_op_add_operand(context->module, program_id, begin);
    tile_op_add_operand(context->module, program_id, end);
    tile_op_set_integer(context->module, program_id, TILE_ATTRIBUTE_PROGRAMS, chosen.name);
    if (chosen.together != TILE_PROGRAM_ROWS) tile_op_set_integer(context->module, program_id, TILE_ATTRIBUTE_TOGETHER, chosen.together);
    if (chosen.uneven) tile_op_set_integer(context->module, program_id, TILE_ATTRIBUTE_UNEVEN, 1);
    if (folds) fold_rounds(context, program_id);
    return TILE_RESULT_CHANGED;
}
