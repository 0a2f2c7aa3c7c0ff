/* Purpose: compute neighbouring programs together that have pieces of the same rows. A program of 64 x 64 elements goes through pieces of 64 elements,
 * each a row away from the one before: what memory sees are 64 short streams, and a loop of four vectors begins 64 times. Where nothing but elements
 * of their own is computed, programs along the last axis of what they access become one until a row has as many bytes as `BYTES`. Threads share
 * the rows of such a program (cpu-bands), of which there are as many whatever the columns are.
 *
 * Programs of one row each are computed together, too, some tens of them: then cpu-flatten goes through short rows as through one. Where a row is longer
 * than a program, each program has a long piece of it first, so that none of many rows is gone along in short ones.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %64 = const {value = 64} : i64
 *       %up = const {value = 63} : i64
 *       %r = add %M, %up : i64
 *       %rows = div %r, %64 : i64
 *       %c = add %N, %up : i64
 *       %columns = div %c, %64 : i64
 *       grid %rows, %columns (%m: i64, %n: i64) {
 *         %i = mul %m, %64 : i64
 *         %below = sub %M, %i : i64
 *         %height = min %below, %64 : i64
 *         %j = mul %n, %64 : i64
 *         %left = sub %N, %j : i64
 *         %width = min %left, %64 : i64
 *         %v = load_tile %x, %i, %one, %zero, %height, %j, %one, %zero, %width {access = [range, range]} : f32[64, 64]
 *         %w = add %v, %v : f32[64, 64]
 *         store_tile %y, %w, %i, %one, %zero, %height, %j, %one, %zero, %width {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 2, out> {noalias}) {
 *       %M = dim %x {axis = 0} : i64
 *       %N = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 64} : i64
 *       %up = const {value = 63} : i64
 *       %r = add %M, %up : i64
 *       %rows = div %r, %0 : i64
 *       %c = add %N, %up : i64
 *       %columns = div %c, %0 : i64
 *       %1 = const {value = 31} : i64
 *       %2 = add %columns, %1 : i64
 *       %3 = const {value = 32} : i64
 *       %4 = div %2, %3 : i64
 *       grid %rows, %4 {joined = 32} (%m: i64, %n: i64) {
 *         %5 = const {value = 2048} : i64
 *         %j = mul %n, %5 : i64
 *         %i = mul %m, %0 : i64
 *         %below = sub %M, %i : i64
 *         %height = min %below, %0 : i64
 *         %left = sub %N, %j : i64
 *         %width = min %left, %5 : i64
 *         %v = load_tile %x, %i, %one, %zero, %height, %j, %one, %zero, %width {access = [range, range]} : f32[64, 2048]
 *         %w = add %v, %v : f32[64, 2048]
 *         store_tile %y, %w, %i, %one, %zero, %height, %j, %one, %zero, %width {access = [range, range]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=cpu-join-rows,cse,dce --target=avx512
 * Needs: inline, cse; bounds in the form that facts gives them. Keeps: tile form; each element. Cost: linear for each axis of a grid. */
#include "cpu/lines.h"
#include "cpu/passes.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/joined.h"

enum {
    BYTES = 8192, /* of a row: its loop takes far longer than to begin it, memory sees streams of two pages, and what rows have in common stays in L1 */
    STREAMS = 32, /* rows of all tensors along which a processor fetches ahead at the same time: pieces of so few are as fast as whole rows */
    ROWS = 32,    /* of programs of one row each: cpu-flatten goes through short rows as through one */
    WORK = 2048   /* lanes of a program's ops: where there are fewer, and the tensor has no more columns than a program, their bounds take a tenth of the time */
};

typedef struct JoinRows {
    TilePassContext *context;
    TileFunc *func;
    TileOp *grid;
    TileLines lines;
    TILE_LIST(TileOp *) accesses; /* loads and stores */
    TILE_LIST(TileOp *) costly;   /* functions */
    TILE_LIST(TileOp *) fills;
    int64_t lanes;                /* of the largest tile */
    int64_t longest;              /* axis of a tile */
    int64_t work;                 /* lanes of all that is loaded and computed */
    int64_t bytes;                /* of an element in memory, at most */
    const char *why;              /* NULL: nothing stands in the way so far */
} JoinRows;

static void decline(JoinRows *rows, const char *why) {
    if (!rows->why) rows->why = why;
}

/* ---- what a program does ---- */

/* Each lane of the result is computed from lanes at its own place. */
static bool is_of_each(const TileOp *op) {
    if (tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE) return true;
    switch (op->id) {
    case TILE_OP_CONST:
    case TILE_OP_SPLAT:
    case TILE_OP_IOTA:
    case TILE_OP_FILL:
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return true;
    }
    return false;
}

static bool is_work(const TileOp *op) {
    return op->id == TILE_OP_LOAD_TILE || tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE;
}

/* Could threads share what is stored by bands of lanes? */
static bool is_apart(const JoinRows *rows, const TileOp *store) {
    const TileValue *tensor = tile_op_named(store, TILE_OPERAND_TENSOR);
    return tensor->block == &rows->func->body && rows->func->parameters[tensor->index].noalias;
}

static void visit(TileOp *op, void *state) {
    JoinRows *rows = state;
    for (unsigned i = 0; i < op->result_count; i++) {
        const TileType *type = op->results[i].type;
        int64_t lanes = tile_type_is_tile(type) ? tile_type_lanes(type) : 0;
        if (lanes > rows->lanes) rows->lanes = lanes;
        for (unsigned k = 0; lanes && k < type->rank; k++)
            if (type->extent[k] > rows->longest) rows->longest = type->extent[k];
        if (is_work(op)) rows->work += lanes;
    }
    bool access = op->id == TILE_OP_LOAD_TILE || op->id == TILE_OP_STORE_TILE;
    if (op->region_count) decline(rows, "it has loops or branches");
    if (access) {
        const TileValue *value = op->result_count ? tile_op_result(op, 0) : tile_op_named(op, TILE_OPERAND_VALUE);
        int64_t bytes = (int64_t)tile_scalar_bytes(value->type->scalar);
        if (bytes > rows->bytes) rows->bytes = bytes;
        tile_list_push(rows->context->scratch, &rows->accesses, op);
    } else if (!(tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_TERMINATOR) && !is_of_each(op))
        decline(rows, "lanes of a program depend on one another");
    if (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) tile_list_push(rows->context->scratch, &rows->costly, op);
    if (op->id == TILE_OP_FILL) tile_list_push(rows->context->scratch, &rows->fills, op);
    if (op->id == TILE_OP_STORE_TILE && !is_apart(rows, op)) decline(rows, "what it stores to may be loaded through another tensor");
    if (!tile_lines_add(&rows->lines, op)) decline(rows, "its lanes are not followed here");
}

/* ---- along which axis ---- */

/* The range of the access whose lanes are followed by those of the neighbours; NULL: it has none. */
static const TileAccessIndex *range_of(const TileJoin *join, const TileOp *op, TileAccessIndex indices[TILE_MAX_TENSOR_RANK], bool *is_last) {
    unsigned rank = tile_access_read(op, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_RANGE && tile_joined_part(join, indices[d].first) == TILE_JOIN_FIRST) {
            *is_last = d + 1 == rank;
            return &indices[d];
        }
    return NULL;
}

/* Does each band load of what is stored only what it stores itself? */
static bool is_own(const JoinRows *rows, const TileJoin *join, const TileOp *store) {
    TileAccessIndex own[TILE_MAX_TENSOR_RANK], other[TILE_MAX_TENSOR_RANK];
    bool last;
    const TileAccessIndex *stored = range_of(join, store, own, &last);
    for (size_t i = 0; i < rows->accesses.count; i++) {
        const TileOp *load = rows->accesses.items[i];
        if (load->id != TILE_OP_LOAD_TILE || tile_op_named(load, TILE_OPERAND_TENSOR) != tile_op_named(store, TILE_OPERAND_TENSOR)) continue;
        const TileAccessIndex *loaded = range_of(join, load, other, &last);
        if (!loaded || loaded - other != stored - own || !tile_value_is_same(loaded->first, stored->first)) return false;
    }
    return true;
}

/* Are there lanes along the rows that a tensor has not? A program inside of the tensor has no masks for them, a whole row has. */
static bool is_filled(const TileJoin *join, const TileOp *fill) {
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    for (unsigned i = 0; i < axes->count; i++)
        if (tile_joined_grows(join, tile_op_result(fill, 0), (unsigned)axes->integers[i])) return true;
    return false;
}

/* Is the tile one row that all rows have in common? Its functions are computed once and wait in memory, which of a long row takes longer. */
static bool is_in_common(const JoinRows *rows, const TileJoin *join, const TileValue *tile) {
    if (!tile_type_is_tile(tile->type) || tile_type_lanes(tile->type) == rows->lanes) return false;
    for (unsigned i = 0; i < tile->type->rank; i++)
        if (tile_joined_grows(join, tile, i)) return true;
    return false;
}

/* The rows of all tensors that a program goes along. */
static int64_t count_streams(const JoinRows *rows, const TileJoin *join) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t streams = 0;
    for (size_t i = 0; i < rows->accesses.count; i++) {
        const TileOp *op = rows->accesses.items[i];
        bool last, again = false;
        if (!range_of(join, op, indices, &last)) continue;
        const TileValue *value = op->result_count ? tile_op_result(op, 0) : tile_op_named(op, TILE_OPERAND_VALUE);
        for (size_t k = 0; k < i; k++) again |= tile_op_named(rows->accesses.items[k], TILE_OPERAND_TENSOR) == tile_op_named(op, TILE_OPERAND_TENSOR);
        if (!again) streams += tile_type_lanes(value->type) / join->size;
    }
    return streams;
}

/* Do neighbours access neighbouring elements, and could the lanes be divided among threads again? */
static const char *obstacle_of_pieces(JoinRows *rows, const TileJoin *join) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    for (size_t i = 0; i < rows->accesses.count; i++) {
        const TileOp *op = rows->accesses.items[i];
        bool last = true, stores = op->id == TILE_OP_STORE_TILE;
        const TileAccessIndex *range = range_of(join, op, indices, &last);
        if (!last) return "neighbours are rows of a tensor";
        if (!stores) continue;
        if (!range || !is_own(rows, join, op)) return "it loads what its neighbours store";
        const TileValue *value = tile_op_named(op, TILE_OPERAND_VALUE);
        if (tile_lines_is_mixed(&rows->lines, tile_lines_of(&rows->lines, value, (unsigned)range->axis))) return "lanes of a program depend on one another";
    }
    for (size_t i = 0; i < rows->fills.count; i++)
        if (is_filled(join, rows->fills.items[i])) return "rows are filled at their ends";
    for (size_t i = 0; i < rows->costly.count; i++)
        if (is_in_common(rows, join, tile_op_result(rows->costly.items[i], 0))) return "a function is computed for all rows";
    return NULL;
}

/* Do all accesses have a row of neighbours behind that of a program? */
static const char *obstacle_of_whole_rows(JoinRows *rows, const TileJoin *join) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    for (size_t i = 0; i < rows->accesses.count; i++) {
        const TileOp *op = rows->accesses.items[i];
        bool last;
        const TileAccessIndex *range = range_of(join, op, indices, &last);
        unsigned rank = tile_access_read(op, indices);
        if (!range || range - indices != (ptrdiff_t)rank - 2 || indices[rank - 1].kind != TILE_ACCESS_RANGE) return "neighbours are no rows of all tensors";
        if (op->id == TILE_OP_STORE_TILE && !is_own(rows, join, op)) return "it loads what its neighbours store";
    }
    return NULL;
}

/* So many programs, and not more than there are, where that is known. */
static int64_t at_most(const TileValue *programs, int64_t wanted) {
    int64_t known;
    return tile_value_integer(programs, &known) && known < wanted ? known : wanted;
}

/* What can be joined along an axis: pieces of rows, or rows of one program each (size 1). */
typedef struct Candidate {
    TileJoin join;
    TileValue *programs;
    unsigned axis;
    int64_t factor;
} Candidate;

static bool find_axis(JoinRows *rows, bool whole, Candidate *found) {
    TileOp *grid = rows->grid;
    for (unsigned axis = grid->operand_count; axis-- > 0;) {
        TileValue *number = grid->regions[0].arguments[axis];
        int64_t size = tile_range_size(number);
        if (whole != !size) continue;
        *found = (Candidate){.programs = tile_op_operand(grid, axis), .axis = axis};
        found->join = (TileJoin){.context = rows->context, .around = grid, .number = number, .size = whole ? 1 : size, .numbers = true};
        found->factor = at_most(found->programs, whole ? ROWS : BYTES / rows->bytes / size);
        if (found->factor < 2) continue;
        const char *why = !tile_can_join(&found->join) ? found->join.why : whole ? obstacle_of_whole_rows(rows, &found->join) : obstacle_of_pieces(rows, &found->join);
        if (!why) return true;
        decline(rows, why);
    }
    return false;
}

static void join_axis(JoinRows *rows, Candidate *found) {
    tile_pass_remark(rows->context, rows->grid, TILE_DECISION_PROGRAMS_JOINED, "the grid", "%lld along its axis %u", (long long)found->factor, found->axis);
    tile_join_neighbours(&found->join, found->factor, found->programs);
    tile_op_set_integer(rows->context->module, rows->grid, TILE_ATTRIBUTE_JOINED, found->factor);
}

/* Programs of one row each: their rows become long first, so that none of many is gone along in pieces. */
static bool join_whole_rows(JoinRows *rows) {
    Candidate pieces, whole;
    bool is_short = rows->longest * rows->bytes < BYTES / 2;
    if (!find_axis(rows, true, &whole) || (is_short && !find_axis(rows, false, &pieces))) return false;
    if (is_short) join_axis(rows, &pieces);
    if (find_axis(rows, true, &whole)) join_axis(rows, &whole);
    return true;
}

static bool join_pieces(JoinRows *rows) {
    Candidate pieces;
    if (rows->work < WORK) decline(rows, "they have little to do");
    if (rows->work < WORK || !find_axis(rows, false, &pieces)) return false;
    if (count_streams(rows, &pieces.join) <= STREAMS) {
        decline(rows, "they have few rows");
        return false;
    }
    join_axis(rows, &pieces);
    return true;
}

static bool visit_grid(TilePassContext *context, TileFunc *func, TileOp *grid) {
    JoinRows rows = {.context = context, .func = func, .grid = grid, .bytes = 1};
    if (tile_find_products(&grid->regions[0]).count) return false; /* cpu-join-programs */
    tile_lines_init(&rows.lines, func, context->scratch);
    tile_block_walk(&grid->regions[0], visit, &rows);
    if (!rows.why && (rows.longest == rows.lanes ? join_whole_rows(&rows) : join_pieces(&rows))) return true;
    if (rows.why) tile_pass_remark(context, grid, TILE_DECISION_NOT_JOINED, "the grid", "%s", rows.why);
    return false;
}

TileResult tile_pass_cpu_join_rows(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first; op; op = op->next)
        if (op->id == TILE_OP_GRID) changed |= visit_grid(context, func, op);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
