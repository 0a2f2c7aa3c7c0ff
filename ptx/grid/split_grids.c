/* Purpose: split a loop that reduces over the programs of a grid, where a grid has fewer programs than `least_programs`
 * of its kernel. Each program becomes several, its parts: a grid before it computes each part's result of the loop into
 * a temporary, and the grid itself combines them, in order of the parts. How many parts there are is computed at the
 * launch, from the number of programs and of iterations. Loops behind it are split in turn; iterations of a last loop that
 * stores become programs of the grid itself.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) least_programs = 132 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       grid %n (%i: i64) {
 *         %sum = const {value = 0.0} : f32
 *         %sum.1 = for %zero, %m, %one, %sum : f32 (%k: i64, %sum.2: f32) {
 *           %v = load_tile %x, %k, %i {access = [index, index]} : f32
 *           %sum.3 = add %sum.2, %v : f32
 *           yield %sum.3
 *         }
 *         store_tile %y, %sum.1, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}) least_programs = 132 {
 *       %m = dim %x {axis = 0} : i64
 *       %n = dim %x {axis = 1} : i64
 *       %one = const {value = 1} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = max %n, %0 : i64
 *       %2 = max %n, %one : i64
 *       %3 = const {value = 132} : i64
 *       %4 = div %3, %2 : i64
 *       %5 = max %m, %0 : i64
 *       %6 = const {value = 4} : i64
 *       %7 = div %5, %6 : i64
 *       %8 = min %4, %7 : i64
 *       %9 = max %8, %one : i64
 *       %10 = const {value = -1} : i64
 *       %11 = add %9, %10 : i64
 *       %12 = add %5, %11 : i64
 *       %13 = div %12, %9 : i64
 *       %14 = max %13, %one : i64
 *       %15 = add %14, %10 : i64
 *       %16 = add %5, %15 : i64
 *       %17 = div %16, %14 : i64
 *       %18 = max %17, %one : i64
 *       %19 = temp %1, %18 : tensor<f32, 2, temp>
 *       grid %n, %18 (%i: i64, %20: i64) {
 *         %21 = const {value = 0.0} : f32
 *         %22 = mul %20, %14 : i64
 *         %23 = add %22, %14 : i64
 *         %24 = min %m, %23 : i64
 *         %sum.1 = for %22, %24, %one, %21 : f32 (%k: i64, %sum.2: f32) {
 *           %v = load_tile %x, %k, %i {access = [index, index]} : f32
 *           %sum.3 = add %sum.2, %v : f32
 *           yield %sum.3
 *         }
 *         store_tile %19, %sum.1, %i, %20 {access = [index, index]}
 *         yield
 *       }
 *       grid %n (%i.1: i64) {
 *         %sum = const {value = 0.0} : f32
 *         %25 = const {value = 16} : i64
 *         %sum.1.1 = for %0, %18, %25, %sum : f32 (%26: i64, %sum.4: f32) {
 *           %27 = sub %18, %26 : i64
 *           %28 = min %27, %25 : i64
 *           %29 = load_tile %19, %i.1, %26, %one, %0, %28 {access = [index, range]} : f32[16]
 *           %30 = fill %29, %sum, %0, %28 {axes = [0]} : f32[16]
 *           %31 = reduce %30 {axis = 0, kind = sum} : f32
 *           %32 = add %sum.4, %31 : f32
 *           yield %32
 *         }
 *         store_tile %y, %sum.1.1, %i.1 {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Run: --passes=gpu-split-grids,canonicalise,cse,dce
 * Needs: inline; loops whose bounds are known outside of the grid, so licm. Keeps: tile form. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/grid/merges.h"
#include "ptx/grid/part_values.h"
#include "ptx/grid/slices.h"
#include "ptx/passes.h"

enum { MOST_NESTED = 3 };

typedef struct Split {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid, *loop;
    GpuMerge merge;
    TileValue *temps[TILE_MAX_FOLD];
    int64_t slices; /* of a program that combines parts */
    bool uneven; /* its bounds differ from program to program */
    TileValue *programs, *parts; /* on the host: of the grid, of each program */
    unsigned depth;              /* of the nest: the loop, one that all it carries goes through, .. */
    TileOp *nest[MOST_NESTED];
    TileValue *shares[MOST_NESTED], *trips[MOST_NESTED]; /* of each loop: how many parts share its iterations, and how many each has; uneven: unknown */
} Split;

/* ---- which loops ---- */

static bool is_of_host(const Split *split, const TileValue *value) {
    return tile_value_block(value) == &split->kernel->body;
}

/* May the op read what a store to the tensor writes? */
static bool may_read(const TileOp *op, const TileValue *written) {
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (may_read(inner, written)) return true;
    return !op->region_count && tile_op_reads(op) && tile_memory_overlaps(written, tile_memory_tensor(op));
}

static bool is_read_in_grid(const Split *split, const TileOp *store) {
    for (const TileOp *op = split->grid->regions[0].first; op; op = op->next)
        if (may_read(op, tile_memory_tensor(store))) return true;
    return false;
}

/* A store whose tensor the program does not read: parts leave it to the grid itself. */
static bool is_left_out(const Split *split, const TileOp *op) {
    return op->id == TILE_OP_STORE_TILE && !is_read_in_grid(split, op);
}

/* Loops in front of it are those over parts that have been computed. */
static const char *obstacle_before(const Split *split) {
    for (const TileOp *op = split->grid->regions[0].first; op != split->loop; op = op->next) {
        if (op->id == TILE_OP_WHILE) return "the grid has another loop before it";
        if (tile_op_writes(op) && !is_left_out(split, op)) return "the grid writes before it";
    }
    return NULL;
}

static bool has_bounds_of_host(const Split *split, const TileOp *loop) {
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (!is_of_host(split, tile_op_named(loop, bound))) return false;
    return true;
}

static bool is_ordered(const TileOp *loop) { return tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0) != 0; }

/* Why the loop cannot be split; NULL: it can. */
static const char *obstacle(Split *split) {
    TileOp *loop = split->loop;
    if (is_ordered(loop)) return "its iterations are ordered";
    if (loop->result_count > TILE_MAX_FOLD) return "it carries too many values";
    const char *why = obstacle_before(split);
    if (why) return why;
    if (tile_op_writes(loop)) return "it writes to memory";
    for (unsigned i = 0; i < loop->result_count; i++) {
        const TileType *type = loop->results[i].type;
        if (type->kind != TILE_TYPE_SCALAR && !tile_type_is_tile(type)) return "what it carries is no number";
    }
    return gpu_merge_find(&split->merge, loop, split->context->scratch);
}

/* The loop in its body that all it carries goes through, each value at its own place; NULL: there is none. */
static TileOp *inner_loop(const TileOp *loop) {
    const TileBlock *body = &loop->regions[0];
    TileOp *inner = loop->result_count ? tile_op_operand(body->last, 0)->op : NULL;
    if (!inner || inner->id != TILE_OP_FOR || inner->block != body || inner->result_count != loop->result_count) return NULL;
    for (unsigned i = 0; i < loop->result_count; i++) {
        if (tile_op_operand(body->last, i) != &inner->results[i]) return NULL;
        if (tile_loop_carried(inner, i) != body->arguments[1 + i]) return NULL;
    }
    return inner;
}

/* Iterations of the whole nest are shared out where each only combines, and the launcher can count them. */
static void find_nest(Split *split) {
    split->nest[0] = split->loop;
    split->depth = 1;
    if (!split->merge.simple || split->merge.inductions || !has_bounds_of_host(split, split->loop)) return;
    while (split->depth < MOST_NESTED) {
        TileOp *inner = inner_loop(split->nest[split->depth - 1]);
        if (!inner || !has_bounds_of_host(split, inner)) return;
        split->nest[split->depth++] = inner;
    }
}

static TileOp *next_loop(TileOp *op) {
    while (op && op->id != TILE_OP_FOR) op = op->next;
    return op;
}

static TileOp *first_loop(const TileOp *grid) { return next_loop(grid->regions[0].first); }

/* Parts of fewer iterations are not worth a grid of their own; what only stores needs none. */
static int64_t least_trips(const Split *split) {
    enum { LEAST_TRIPS = 4 };
    return split->merge.least_trips > LEAST_TRIPS ? split->merge.least_trips : LEAST_TRIPS;
}

/* ---- the host program ---- */

static TileValue *at_least(TileBuilder *b, TileValue *value, int64_t least) {
    return tile_build_binary(b, TILE_OP_MAX, value, tile_build_i64(b, least));
}

static TileValue *round_up_quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, y, tile_build_i64(b, 1));
    return tile_build_binary(b, TILE_OP_DIV, tile_build_binary(b, TILE_OP_ADD, x, more), y);
}

static TileValue *trip_count(TileBuilder *b, const TileOp *loop) {
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI);
    TileValue *range = at_least(b, tile_build_binary(b, TILE_OP_SUB, hi, lo), 0);
    return round_up_quotient(b, range, tile_op_named(loop, TILE_OPERAND_STEP));
}

/* How many of the parts share the loop's iterations, the outer loops first. */
static TileValue *share_loop(Split *split, TileBuilder *b, unsigned k, TileValue *trips, TileValue *parts) {
    TileValue *shares = split->depth > 1 ? at_least(b, tile_build_binary(b, TILE_OP_MIN, parts, trips), 1) : parts;
    split->trips[k] = at_least(b, round_up_quotient(b, trips, shares), 1);
    split->shares[k] = at_least(b, round_up_quotient(b, trips, split->trips[k]), 1);
    return k + 1 < split->depth ? at_least(b, tile_build_binary(b, TILE_OP_DIV, parts, split->shares[k]), 1) : NULL;
}

/* As many parts as the wanted programs allow, while each has enough iterations, if those are known on the host. */
static void compute_parts(Split *split, TileBuilder *b, int64_t least_trips) {
    TileValue *programs = tile_build_i64(b, 1), *trips[MOST_NESTED], *most = NULL;
    for (unsigned i = 0; i < split->grid->operand_count; i++)
        programs = tile_build_binary(b, TILE_OP_MUL, programs, at_least(b, tile_op_operand(split->grid, i), 0));
    split->programs = programs;
    TileValue *wanted = tile_build_binary(b, TILE_OP_DIV, tile_build_i64(b, split->kernel->least_programs),
                                          at_least(b, programs, 1));
    split->uneven = !has_bounds_of_host(split, split->loop);
    if (split->uneven) {
        split->parts = at_least(b, wanted, 1);
        return;
    }
    for (unsigned k = 0; k < split->depth; k++) {
        trips[k] = trip_count(b, split->nest[k]);
        most = most ? tile_build_binary(b, TILE_OP_MUL, most, trips[k]) : trips[k];
    }
    if (least_trips > 1) most = tile_build_binary(b, TILE_OP_DIV, most, tile_build_i64(b, least_trips));
    TileValue *parts = at_least(b, tile_build_binary(b, TILE_OP_MIN, wanted, most), 1);
    for (unsigned k = 0; k < split->depth; k++) {
        parts = share_loop(split, b, k, trips[k], parts);
        split->parts = k ? tile_build_binary(b, TILE_OP_MUL, split->parts, split->shares[k]) : split->shares[k];
    }
}

/* Induction variables follow from the bounds. */
static bool is_stored(const Split *split, unsigned i) {
    return i >= split->merge.count || split->merge.values[i].rule != GPU_MERGE_INDUCTION;
}

static void build_temps(Split *split, TileBuilder *b) {
    TileContext *context = b->module->context;
    for (unsigned i = 0; i < gpu_merge_value_count(&split->merge); i++) {
        const TileType *type = gpu_merge_type(&split->merge, context, i);
        if (!is_stored(split, i)) continue;
        TileValue *extents[2 + TILE_MAX_TILE_RANK] = {split->programs, split->parts};
        unsigned rank = 2 + (tile_type_is_tile(type) ? type->rank : 0);
        for (unsigned a = 2; a < rank; a++) extents[a] = tile_build_i64(b, type->extent[a - 2]);
        const TileType *temp = tile_type_tensor(context, type->scalar, rank, TILE_ACCESS_TEMP);
        split->temps[i] = tile_op_result(tile_build_op(b, TILE_OP_TEMP, extents, rank, NULL, 0, &temp, 1), 0);
    }
}

/* ---- the grids ---- */

/* The program's number in the grid of these ids, rows one after the other. */
static TileValue *program_number(Split *split, TileBuilder *b, const TileBlock *body) {
    TileValue *number = body->arguments[0];
    for (unsigned i = 1; i < split->grid->operand_count; i++) {
        number = tile_build_binary(b, TILE_OP_MUL, number, tile_op_operand(split->grid, i));
        number = tile_build_binary(b, TILE_OP_ADD, number, body->arguments[i]);
    }
    return number;
}

/* Those parts, combined; what is beyond the last one counts as the identity. */
static TileValue *load_parts(Split *split, TileBuilder *b, unsigned i, TileValue *program, TileValue *part,
                             int64_t together, TileValue *count) {
    const TileType *type = gpu_merge_type(&split->merge, b->module->context, i);
    TileName kind = split->merge.values[i].kind;
    int64_t axis = 0;
    if (together == 1) return gpu_part_load(b, split->temps[i], type, program, part);
    TileValue *loaded = gpu_parts_load(b, split->temps[i], type, program, part, together, count),
              *bounds[2] = {tile_build_i64(b, 0), count};
    TileValue *none = tile_build_bits(b, tile_type_scalar(b->module->context, type->scalar),
                                      tile_eval_identity(kind, type->scalar));
    return tile_build_reduce(b, tile_build_fill(b, loaded, none, &axis, bounds, 1), kind, 0);
}

static void erase_after(TileOp *loop) {
    TileBlock *block = loop->block;
    while (block->last->previous != loop) tile_op_erase(block->last->previous);
}

/* The iterations of the part: so many, from the part's first on. */
static void narrow_loop(TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips) {
    unsigned count, lo_index = tile_op_operands(loop, TILE_OPERAND_LO, &count),
                    hi_index = tile_op_operands(loop, TILE_OPERAND_HI, &count);
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *width = tile_build_binary(b, TILE_OP_MUL, trips, step);
    TileValue *first = tile_build_binary(b, TILE_OP_ADD, lo, tile_build_binary(b, TILE_OP_MUL, part, width));
    TileValue *end = tile_build_binary(b, TILE_OP_ADD, first, width);
    tile_op_set_operand(loop, lo_index, first);
    tile_op_set_operand(loop, hi_index, tile_build_binary(b, TILE_OP_MIN, hi, end));
}

/* How many iterations a part has. */
static TileValue *trips_of_part(Split *split, TileBuilder *b, const TileOp *loop) {
    if (!split->uneven) return split->trips[0];
    return at_least(b, round_up_quotient(b, trip_count(b, loop), split->parts), least_trips(split));
}

/* The i-th value that the loop carries, an induction variable, after so many iterations. */
static TileValue *value_after(TileBuilder *b, const TileOp *loop, unsigned i, TileValue *trips) {
    const TileOp *step = tile_op_operand(loop->regions[0].last, i)->op;
    bool first = tile_value_outside(tile_op_operand(step, 0), loop);
    TileValue *all = tile_build_binary(b, TILE_OP_MUL, trips, tile_op_operand(step, !first));
    return tile_build_binary(b, (TileOpId)step->id, tile_loop_carried(loop, i), all);
}

/* The part's iterations of each loop of the nest; the innermost ones change fastest from part to part. */
static void narrow_nest(const Split *split, TileBuilder *b, TileOp *loop, TileValue *part, TileValue *trips) {
    TileOp *nest[MOST_NESTED] = {loop};
    for (unsigned k = 1; k < split->depth; k++) nest[k] = inner_loop(nest[k - 1]);
    for (unsigned k = split->depth; --k;) {
        narrow_loop(b, nest[k], tile_build_binary(b, TILE_OP_REM, part, split->shares[k]), split->trips[k]);
        part = tile_build_binary(b, TILE_OP_DIV, part, split->shares[k]);
    }
    narrow_loop(b, loop, part, trips);
}

/* What a part begins with: what changes nothing. A fold has no such value, and begins with none. */
static void begin_part(Split *split, TileBuilder *b, TileOp *loop, TileValue *before) {
    unsigned count, carried = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; i < count; i++) {
        const GpuMerged *value = &split->merge.values[i];
        const TileType *type = loop->results[i].type;
        if (value->rule == GPU_MERGE_INDUCTION)
            tile_op_set_operand(loop, carried + i, value_after(b, loop, i, before));
        if (value->rule != GPU_MERGE_OP && value->rule != GPU_MERGE_RESCALED) continue;
        uint64_t none = value->rule == GPU_MERGE_OP ? tile_eval_identity(value->kind, type->scalar) : 0;
        tile_op_set_operand(loop, carried + i, tile_build_bits(b, type, none));
    }
}

/* A copy of the grid with a program for each part, which is its last id. */
static TileOp *copy_grid(Split *split, TileBuilder *host, TileMap *map, TileValue **part) {
    TileModule *module = split->context->module;
    tile_map_init(map, split->context->scratch);
    TileOp *grid = tile_op_clone(module, split->grid, map);
    tile_op_add_operand(module, grid, split->parts);
    tile_builder_insert(host, grid);
    *part = tile_block_add_argument(module, &grid->regions[0], tile_type_scalar(module->context, TILE_I64), NULL);
    return grid;
}

/* The loop's copy in a copy of its grid: as many ops are in front of it. */
static TileOp *copy_of_loop(const Split *split, const TileOp *grid) {
    TileOp *copy = grid->regions[0].first;
    for (const TileOp *op = split->grid->regions[0].first; op != split->loop; op = op->next) copy = copy->next;
    return copy;
}

/* The grid of the parts, before the other one. */
static void build_parts(Split *split, TileBuilder *host) {
    TileModule *module = split->context->module;
    TileMap map;
    TileValue *part;
    TileOp *grid = copy_grid(split, host, &map, &part), *loop = copy_of_loop(split, grid);
    TileBlock *body = &grid->regions[0];
    erase_after(loop);
    for (TileOp *op = body->first, *next; op != loop; op = next) {
        next = op->next;
        if (op->id == TILE_OP_STORE_TILE) tile_op_erase(op);
    }
    TileBuilder before = tile_builder_before(module, loop);
    TileValue *trips = trips_of_part(split, &before, loop);
    begin_part(split, &before, loop, tile_build_binary(&before, TILE_OP_MUL, part, trips));
    narrow_nest(split, &before, loop, part, trips);
    gpu_merge_guard(&split->merge, module, &map, tile_build_binary(&before, TILE_OP_EQ, part, tile_build_i64(&before, 0)));
    if (split->merge.fold_count) loop = gpu_merge_carry_presence(&split->merge, &before, loop);
    TileBuilder b = tile_builder_before(module, body->last);
    b.location = split->loop->location;
    TileValue *program = program_number(split, &b, body);
    for (unsigned i = 0; i < gpu_merge_value_count(&split->merge); i++)
        if (is_stored(split, i)) gpu_part_store(&b, split->temps[i], &loop->results[i], program, part);
}

/* Combines what came before with the parts' values, each value for itself. */
static void combine_each(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                         int64_t together, TileValue *count) {
    for (unsigned i = 0; i < split->merge.count; i++) {
        if (!is_stored(split, i)) continue;
        TileValue *value = load_parts(split, b, i, program, part, together, count);
        values[i] = tile_build_binary(b, tile_eval_combiner(split->merge.values[i].kind), values[i], value);
    }
}

/* The same for values that depend on each other and differ in shape: those of one part. */
static void combine_tiles(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part) {
    TileValue *right[TILE_MAX_FOLD], *merged[TILE_MAX_FOLD];
    for (unsigned i = 0; i < split->merge.count; i++) {
        merged[i] = values[i];
        if (is_stored(split, i)) right[i] = load_parts(split, b, i, program, part, 1, NULL);
    }
    gpu_merge_build(&split->merge, b, split->context->scratch, values, right, merged);
    for (unsigned i = 0; i < split->merge.count; i++) values[i] = merged[i];
}

/* The same for values of one shape: by a fold. */
static void combine_all(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                        int64_t together, TileValue *count) {
    TileModule *module = split->context->module;
    TileValue *several[TILE_MAX_FOLD], *merged[TILE_MAX_FOLD], *bounds[2] = {tile_build_i64(b, 0), count};
    int64_t axis = 0;
    unsigned values_count = gpu_merge_value_count(&split->merge);
    for (unsigned i = 0; i < values_count; i++)
        several[i] = gpu_parts_load(b, split->temps[i], gpu_merge_type(&split->merge, module->context, i), program, part,
                                    together, count);
    TileValue *all = tile_build_bits(b, tile_type_with_scalar(module->context, several[0]->type, TILE_BOOL), 1);
    TileValue *none = tile_build_bool(b, false);
    TileFoldParts parts = {.values = several, .init = values, .count = values_count,
                           .mask = tile_build_fill(b, all, none, &axis, bounds, 1)};
    TileOp *fold = tile_build_fold(b, TILE_OP_FOLD, &parts);
    TileBlock *body = &fold->regions[0];
    TileBuilder inner = tile_builder_at_end(module, body);
    inner.location = b->location;
    gpu_merge_build(&split->merge, &inner, split->context->scratch, body->arguments, body->arguments + values_count,
                    merged);
    tile_build_end(&inner, TILE_OP_YIELD, merged, values_count);
    for (unsigned i = 0; i < values_count; i++) values[i] = &fold->results[i];
}

/* How many parts are loaded at once. */
static int64_t together_in_combination(const Split *split) {
    int64_t least = split->merge.tiles ? 1 : INT64_MAX;
    for (unsigned i = 0; i < split->merge.count; i++) {
        int64_t together = gpu_parts_together(split->loop->results[i].type, split->slices);
        if (together < least) least = together;
    }
    return least;
}

/* Combines the values with those of so many parts from this one on. */
static void combine_some(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                         int64_t together) {
    const GpuMerge *merge = &split->merge;
    TileValue *count = NULL;
    if (together > 1 || !(merge->simple || merge->tiles))
        count = tile_build_binary(b, TILE_OP_MIN, tile_build_binary(b, TILE_OP_SUB, split->parts, part),
                                  tile_build_i64(b, together));
    if (merge->simple)
        combine_each(split, b, values, program, part, together, count);
    else if (merge->tiles)
        combine_tiles(split, b, values, program, part);
    else
        combine_all(split, b, values, program, part, together, count);
}

/* Replaces the loop by one over the parts, of which those of an iteration are loaded together. Returns it. */
static TileOp *combine_parts(Split *split) {
    TileOp *loop = split->loop;
    const GpuMerge *merge = &split->merge;
    TileModule *module = split->context->module;
    TileBuilder b = tile_builder_before(module, loop);
    TileValue *values[TILE_MAX_FOLD], *program = program_number(split, &b, loop->block);
    unsigned all = gpu_merge_value_count(merge);
    int64_t together = together_in_combination(split);
    for (unsigned i = 0; i < all; i++)
        values[i] = i < merge->count ? tile_loop_carried(loop, i)
                                     : tile_build_bits(&b, gpu_merge_type(merge, module->context, i), 1);
    TileOp *parts = tile_build_for(&b, tile_build_i64(&b, 0), split->parts, tile_build_i64(&b, together), values, all);
    TileBuilder inner = tile_builder_at_end(module, &parts->regions[0]);
    inner.location = loop->location;
    for (unsigned i = 0; i < all; i++) values[i] = parts->regions[0].arguments[1 + i];
    combine_some(split, &inner, values, program, parts->regions[0].arguments[0], together);
    tile_build_end(&inner, TILE_OP_YIELD, values, all);
    for (unsigned i = 0; i < merge->count; i++) {
        bool induction = merge->values[i].rule == GPU_MERGE_INDUCTION && tile_value_has_uses(&loop->results[i]);
        TileValue *result = induction ? value_after(&b, loop, i, trip_count(&b, loop)) : &parts->results[i];
        tile_value_replace(&loop->results[i], result);
    }
    tile_op_erase(loop);
    return parts;
}

/* ---- loops that only store ---- */

/* Is the axis of the access from the value on, by no more elements than a step? */
static bool is_within(const TileAccessIndex *index, const TileType *type, const TileValue *first, int64_t step) {
    if (index->first != first) return false;
    if (index->kind == TILE_ACCESS_INDEX) return step > 0;
    return index->kind == TILE_ACCESS_RANGE && index->axis >= 0 && tile_value_is_integer(index->step, 1) &&
           type->extent[index->axis] <= step;
}

/* Do stores of different iterations write different elements: has some axis the loop's variable as its first index, and
 * no more elements from there than a step? */
static bool is_apart(const TileOp *loop, const TileOp *store) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *stored = tile_op_named(store, TILE_OPERAND_VALUE)->type;
    unsigned axes = tile_access_read(store, indices);
    int64_t step;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step)) return false;
    for (unsigned a = 0; a < axes; a++)
        if (is_within(&indices[a], stored, loop->regions[0].arguments[0], step)) return true;
    return false;
}

static const char *obstacle_of_stores(Split *split) {
    const TileOp *loop = split->loop;
    const char *why = is_ordered(loop)              ? "its iterations are ordered"
                      : !has_bounds_of_host(split, loop) ? "its bounds differ from program to program"
                                                   : NULL;
    for (const TileOp *op = loop->regions[0].first; op && !why; op = op->next) {
        if (!tile_op_writes(op)) continue;
        if (op->id != TILE_OP_STORE_TILE || !is_apart(loop, op)) why = "its iterations may write the same elements";
        else if (is_read_in_grid(split, op)) why = "the grid may read what it writes";
    }
    for (const TileOp *op = split->grid->regions[0].first; op && !why; op = op->next) {
        if (op == loop) continue;
        if (tile_op_writes(op) && !is_left_out(split, op)) why = "the grid writes outside of it";
        for (const TileOp *inner = loop->regions[0].first; inner && tile_op_writes(op) && !why; inner = inner->next)
            if (inner->id == TILE_OP_STORE_TILE && tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(inner)))
                why = "the grid writes the same tensor outside of it";
    }
    return why ? why : next_loop(loop->next) ? "the grid has another loop behind it" : NULL;
}

/* One part alone stores what is stored outside of the loop. */
static void store_once(Split *split, TileOp *loop, TileValue *part) {
    TileModule *module = split->context->module;
    for (TileOp *op = loop->block->first, *next; op; op = next) {
        next = op->next;
        if (op->id != TILE_OP_STORE_TILE) continue;
        TileBuilder b = tile_builder_before(module, op);
        TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_EQ, part, tile_build_i64(&b, 0)), NULL, 0);
        tile_op_detach(op);
        tile_op_append(op, &branch->regions[0]);
        for (unsigned r = 0; r < 2; r++) {
            TileBuilder end = tile_builder_at_end(module, &branch->regions[r]);
            tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
        }
    }
}

/* The parts of a loop that stores are programs of the grid itself. */
static void spread_stores(Split *split) {
    TileBuilder host = tile_builder_before(split->context->module, split->grid);
    TileMap map;
    TileValue *part;
    split->nest[0] = split->loop;
    split->depth = 1;
    compute_parts(split, &host, 1);
    TileOp *grid = copy_grid(split, &host, &map, &part), *loop = copy_of_loop(split, grid);
    TileBuilder before = tile_builder_before(split->context->module, loop);
    narrow_loop(&before, loop, part, split->trips[0]);
    store_once(split, loop, part);
    tile_op_erase(split->grid);
}

/* ---- the pass ---- */

/* Programs that combine parts are few, and have nothing to wait for but these: each element by itself. So they are divided, along the
 * first axis of what they store. */
static int64_t count_slices(Split *split) {
    GpuSlices slices;
    if (!split->merge.simple || next_loop(split->loop->next)) return 1;
    return gpu_slices_find(&slices, split->context, split->grid, split->loop);
}

/* Splits the loop; returns the next one to look at, NULL if it was the last or cannot be split. */
static TileOp *try_loop(Split *split, bool *changed) {
    bool stores = !split->loop->result_count;
    const char *why = stores ? obstacle_of_stores(split) : obstacle(split);
    if (why) {
        tile_pass_remark(split->context, split->loop, TILE_DECISION_NOT_IN_PARTS, "the loop", "%s", why);
        return NULL;
    }
    *changed = true;
    tile_pass_remark(split->context, split->loop, TILE_DECISION_IN_PARTS, "the loop", "for %u programs",
                     split->kernel->least_programs);
    if (stores) {
        spread_stores(split);
        return NULL;
    }
    TileBuilder host = tile_builder_before(split->context->module, split->grid);
    find_nest(split);
    compute_parts(split, &host, least_trips(split));
    build_temps(split, &host);
    build_parts(split, &host);
    split->slices = count_slices(split);
    TileOp *next = next_loop(combine_parts(split)->next);
    GpuSlices slices;
    if (split->slices > 1) gpu_slices_divide(&slices, split->context, split->grid, split->slices);
    return next;
}

static bool try_grid(TilePassContext *context, TileFunc *kernel, TileOp *grid) {
    bool changed = false;
    for (TileOp *loop = grid->operand_count ? first_loop(grid) : NULL; loop;) {
        Split split = {.context = context, .kernel = kernel, .grid = grid, .loop = loop, .slices = 1};
        loop = try_loop(&split, &changed);
    }
    return changed;
}

TileResult tile_pass_gpu_split_grids(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (func->kind != TILE_FUNC_KERNEL || !func->least_programs) return TILE_RESULT_UNCHANGED;
    for (TileOp *op = func->body.first, *next; op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_GRID) changed |= try_grid(context, func, op);
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
