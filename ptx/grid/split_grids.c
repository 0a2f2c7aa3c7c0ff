/* Purpose: split a loop that reduces over the programs of a grid, where a grid has fewer programs than `least_programs`
 * of its kernel. Each program becomes several, its parts: a grid before it computes each part's result of the loop into
 * a temporary, and the grid itself combines them, in order of the parts. How many parts there are is computed at the
 * launch, from the number of programs and of iterations. Loops behind it are split in turn; iterations of a last loop
 * that stores become programs of the grid itself.
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
 *       %2 = max %m, %0 : i64
 *       %3 = max %n, %one : i64
 *       %4 = const {value = 132} : i64
 *       %5 = div %4, %3 : i64
 *       %6 = const {value = 4} : i64
 *       %7 = div %2, %6 : i64
 *       %8 = min %5, %7 : i64
 *       %9 = max %8, %one : i64
 *       %10 = const {value = -1} : i64
 *       %11 = add %9, %10 : i64
 *       %12 = add %2, %11 : i64
 *       %13 = div %12, %9 : i64
 *       %14 = max %13, %one : i64
 *       %15 = add %14, %10 : i64
 *       %16 = add %2, %15 : i64
 *       %17 = div %16, %14 : i64
 *       %18 = max %17, %one : i64
 *       %19 = temp %1, %18 : tensor<f32, 2, temp>
 *       grid %n, %18 (%i: i64, %20: i64) {
 *         %21 = mul %20, %14 : i64
 *         %22 = add %21, %14 : i64
 *         %23 = min %m, %22 : i64
 *         %24 = const {value = 0.0} : f32
 *         %sum.1 = for %21, %23, %one, %24 : f32 (%k: i64, %sum.2: f32) {
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
#include "ptx/passes.h"

/* Parts of fewer iterations are not worth a grid of their own; what only stores needs no grid for that. */
enum { LEAST_TRIPS = 4, LEAST_TRIPS_STORED = 1 };

typedef struct Split {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid, *loop;
    GpuMerge merge;
    TileValue *temps[TILE_MAX_FOLD];
    TileValue *programs, *parts, *trips; /* on the host: of the grid, of each program, of each part */
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

static const char *obstacle_of_bounds(const Split *split) {
    if (tile_op_integer(split->loop, TILE_ATTRIBUTE_ORDERED, 0)) return "its iterations are ordered";
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (!is_of_host(split, tile_op_named(split->loop, bound))) return "its bounds differ from program to program";
    return NULL;
}

/* Why the loop cannot be split; NULL: it can. */
static const char *obstacle(Split *split) {
    TileOp *loop = split->loop;
    const char *why = obstacle_of_bounds(split);
    if (why) return why;
    if (loop->result_count > TILE_MAX_FOLD) return "it carries too many values";
    why = obstacle_before(split);
    if (why) return why;
    if (tile_op_writes(loop)) return "it writes to memory";
    for (unsigned i = 0; i < loop->result_count; i++) {
        const TileType *type = loop->results[i].type;
        if (type->kind != TILE_TYPE_SCALAR && !tile_type_is_tile(type)) return "what it carries is no number";
    }
    return gpu_merge_find(&split->merge, loop, split->context->scratch);
}

static TileOp *next_loop(TileOp *op) {
    while (op && op->id != TILE_OP_FOR) op = op->next;
    return op;
}

static TileOp *first_loop(const TileOp *grid) { return next_loop(grid->regions[0].first); }

/* ---- the host program ---- */

static TileValue *at_least(TileBuilder *b, TileValue *value, int64_t least) {
    return tile_build_binary(b, TILE_OP_MAX, value, tile_build_i64(b, least));
}

static TileValue *round_up_quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, y, tile_build_i64(b, 1));
    return tile_build_binary(b, TILE_OP_DIV, tile_build_binary(b, TILE_OP_ADD, x, more), y);
}

/* As many parts as the wanted programs allow, while each has enough iterations. */
static void compute_parts(Split *split, TileBuilder *b, int64_t least_trips) {
    TileValue *lo = tile_op_named(split->loop, TILE_OPERAND_LO), *hi = tile_op_named(split->loop, TILE_OPERAND_HI),
              *step = tile_op_named(split->loop, TILE_OPERAND_STEP), *programs = tile_build_i64(b, 1);
    for (unsigned i = 0; i < split->grid->operand_count; i++)
        programs = tile_build_binary(b, TILE_OP_MUL, programs, at_least(b, tile_op_operand(split->grid, i), 0));
    TileValue *trips = round_up_quotient(b, at_least(b, tile_build_binary(b, TILE_OP_SUB, hi, lo), 0), step);
    TileValue *wanted =
        tile_build_binary(b, TILE_OP_DIV, tile_build_i64(b, split->kernel->least_programs), at_least(b, programs, 1));
    TileValue *most =
        least_trips > 1 ? tile_build_binary(b, TILE_OP_DIV, trips, tile_build_i64(b, least_trips)) : trips;
    TileValue *parts = at_least(b, tile_build_binary(b, TILE_OP_MIN, wanted, most), 1);
    split->programs = programs;
    split->trips = at_least(b, round_up_quotient(b, trips, parts), 1);
    split->parts = at_least(b, round_up_quotient(b, trips, split->trips), 1);
}

/* The type of a value of each part: what the loop carries, or whether there is any. */
static const TileType *type_of(const Split *split, unsigned i) {
    const GpuMerge *merge = &split->merge;
    const TileType *type = split->loop->results[i < merge->count ? i : 0].type;
    return i < merge->count ? type : tile_type_with_scalar(split->context->module->context, type, TILE_BOOL);
}

static unsigned value_count(const Split *split) { return split->merge.count + split->merge.fold_count; }

static void build_temps(Split *split, TileBuilder *b) {
    TileContext *context = b->module->context;
    for (unsigned i = 0; i < value_count(split); i++) {
        const TileType *type = type_of(split, i);
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

enum { MOST_OPERANDS = 3 + 4 * TILE_MAX_TILE_RANK };

/* An access to whole tiles of the program's parts: its indices, behind those operands that are there, and their kinds.
 */
typedef struct Access {
    TileValue *operands[MOST_OPERANDS];
    int64_t kinds[2 + TILE_MAX_TILE_RANK];
    unsigned count, axes;
} Access;

static void add_index(Access *access, TileValue *index) {
    access->kinds[access->axes++] = TILE_ACCESS_INDEX;
    access->operands[access->count++] = index;
}

static void add_range(TileBuilder *b, Access *access, TileValue *first, TileValue *hi) {
    access->kinds[access->axes++] = TILE_ACCESS_RANGE;
    access->operands[access->count++] = first;
    access->operands[access->count++] = tile_build_i64(b, 1);
    access->operands[access->count++] = tile_build_i64(b, 0);
    access->operands[access->count++] = hi;
}

static unsigned rank_of(const TileType *type) { return tile_type_is_tile(type) ? type->rank : 0; }

static void add_tile(TileBuilder *b, Access *access, const TileType *type) {
    for (unsigned a = 0; a < rank_of(type); a++)
        add_range(b, access, tile_build_i64(b, 0), tile_build_i64(b, type->extent[a]));
}

static TileOp *build_access(TileBuilder *b, TileOpId id, const Access *access, const TileType *result) {
    TileAttribute kinds = {.key = TILE_ATTRIBUTE_ACCESS, .count = access->axes, .integers = access->kinds};
    return tile_build_op(b, id, access->operands, access->count, &kinds, 1, &result, result != NULL);
}

static void store_part(Split *split, TileBuilder *b, unsigned i, TileValue *value, TileValue *program,
                       TileValue *part) {
    Access access = {.operands = {split->temps[i], value}, .count = 2};
    add_index(&access, program);
    add_index(&access, part);
    add_tile(b, &access, value->type);
    build_access(b, TILE_OP_STORE_TILE, &access, NULL);
}

/* How many parts' tiles are loaded together: their loads overlap. */
static int64_t parts_together(const TileType *type) {
    enum { MOST_PARTS = 16, MOST_LANES = 1 << 12 };
    int64_t together = MOST_PARTS;
    while (together > 1 && together * tile_type_lanes(type) > MOST_LANES) together /= 2;
    return rank_of(type) < TILE_MAX_TILE_RANK ? together : 1;
}

/* Those of `together` parts from this one on, as a tile; what is beyond the last one is not defined. */
static TileValue *load_several(Split *split, TileBuilder *b, unsigned i, TileValue *program, TileValue *part,
                               int64_t together, TileValue *count) {
    const TileType *type = type_of(split, i);
    int64_t extent[TILE_MAX_TILE_RANK] = {together};
    Access access = {.operands = {split->temps[i]}, .count = 1};
    for (unsigned a = 0; a < rank_of(type); a++) extent[1 + a] = type->extent[a];
    add_index(&access, program);
    add_range(b, &access, part, count);
    add_tile(b, &access, type);
    const TileType *several = tile_type_tile(b->module->context, type->scalar, 1 + rank_of(type), extent);
    return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, several), 0);
}

/* Those parts, combined; what is beyond the last one counts as the identity. */
static TileValue *load_parts(Split *split, TileBuilder *b, unsigned i, TileValue *program, TileValue *part,
                             int64_t together, TileValue *count) {
    const TileType *type = type_of(split, i);
    TileName kind = split->merge.values[i].kind;
    int64_t axis = 0;
    if (together == 1) {
        Access access = {.operands = {split->temps[i]}, .count = 1};
        add_index(&access, program);
        add_index(&access, part);
        add_tile(b, &access, type);
        return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, type), 0);
    }
    TileValue *loaded = load_several(split, b, i, program, part, together, count),
              *bounds[2] = {tile_build_i64(b, 0), count};
    TileValue *none =
        tile_build_bits(b, tile_type_scalar(b->module->context, type->scalar), tile_eval_identity(kind, type->scalar));
    return tile_build_reduce(b, tile_build_fill(b, loaded, none, &axis, bounds, 1), kind, 0);
}

static void erase_after(TileOp *loop) {
    TileBlock *block = loop->block;
    while (block->last->previous != loop) tile_op_erase(block->last->previous);
}

/* The iterations of the part: so many, from the part's first on. */
static void narrow_loop(Split *split, TileBuilder *b, TileOp *loop, TileValue *part) {
    unsigned count, lo_index = tile_op_operands(loop, TILE_OPERAND_LO, &count),
                    hi_index = tile_op_operands(loop, TILE_OPERAND_HI, &count);
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *width = tile_build_binary(b, TILE_OP_MUL, split->trips, step);
    TileValue *first = tile_build_binary(b, TILE_OP_ADD, lo, tile_build_binary(b, TILE_OP_MUL, part, width));
    TileValue *end = tile_build_binary(b, TILE_OP_ADD, first, width);
    tile_op_set_operand(loop, lo_index, first);
    tile_op_set_operand(loop, hi_index, tile_build_binary(b, TILE_OP_MIN, hi, end));
}

/* What a part begins with: what changes nothing. A fold has no such value, and begins with none. */
static void begin_part(Split *split, TileBuilder *b, TileOp *loop) {
    unsigned count, carried = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; i < count; i++) {
        const GpuMerged *value = &split->merge.values[i];
        const TileType *type = loop->results[i].type;
        if (value->rule != GPU_MERGE_OP && value->rule != GPU_MERGE_RESCALED) continue;
        uint64_t none = value->rule == GPU_MERGE_OP ? tile_eval_identity(value->kind, type->scalar) : 0;
        tile_op_set_operand(loop, carried + i, tile_build_bits(b, type, none));
    }
}

/* A loop that also carries, for each fold, whether there is an element. Replaces the loop. */
static TileOp *carry_presence(Split *split, TileBuilder *b, TileOp *loop) {
    TileModule *module = b->module;
    TileBlock *body = &loop->regions[0];
    TileValue *carried[TILE_MAX_FOLD], *next[TILE_MAX_FOLD];
    unsigned count = split->merge.count;
    for (unsigned i = 0; i < value_count(split); i++)
        carried[i] = i < count ? tile_loop_carried(loop, i) : tile_build_bits(b, type_of(split, i), 0);
    TileOp *wider = tile_build_for(b, tile_op_named(loop, TILE_OPERAND_LO), tile_op_named(loop, TILE_OPERAND_HI),
                                   tile_op_named(loop, TILE_OPERAND_STEP), carried, value_count(split));
    TileBlock *to = &wider->regions[0];
    for (unsigned i = 0; i < body->argument_count; i++) tile_value_replace(body->arguments[i], to->arguments[i]);
    for (unsigned i = 0; i < count; i++) {
        next[i] = tile_op_operand(body->last, i);
        tile_value_replace(&loop->results[i], &wider->results[i]);
    }
    for (unsigned number = 0; number < split->merge.fold_count; number++) {
        unsigned first = 0; /* a value of the fold; the clone has the same one */
        while (split->merge.values[first].rule != GPU_MERGE_FOLD || split->merge.values[first].fold != number) first++;
        TileOp *fold = next[first]->op;
        TileBuilder inner = tile_builder_before(module, fold);
        fold = gpu_merge_add_presence(&inner, fold, to->arguments[1 + count + number]);
        next[count + number] = &fold->results[0];
        for (unsigned i = 0; i < count; i++)
            if (split->merge.values[i].rule == GPU_MERGE_FOLD && split->merge.values[i].fold == number)
                next[i] = &fold->results[1 + split->merge.values[i].at];
    }
    tile_op_erase(body->last);
    while (body->first) {
        TileOp *op = body->first;
        tile_op_detach(op);
        tile_op_append(op, to);
    }
    TileBuilder end = tile_builder_at_end(module, to);
    end.location = loop->location;
    tile_build_end(&end, TILE_OP_YIELD, next, value_count(split));
    tile_op_erase(loop);
    return wider;
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
    narrow_loop(split, &before, loop, part);
    begin_part(split, &before, loop);
    if (split->merge.fold_count) loop = carry_presence(split, &before, loop);
    TileBuilder b = tile_builder_before(module, body->last);
    b.location = split->loop->location;
    TileValue *program = program_number(split, &b, body);
    for (unsigned i = 0; i < value_count(split); i++) store_part(split, &b, i, &loop->results[i], program, part);
}

/* Combines what came before with the parts' values, each value for itself. */
static void combine_each(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                         int64_t together, TileValue *count) {
    for (unsigned i = 0; i < split->merge.count; i++) {
        TileValue *value = load_parts(split, b, i, program, part, together, count);
        values[i] = tile_build_binary(b, tile_eval_combiner(split->merge.values[i].kind), values[i], value);
    }
}

/* The same for values that depend on each other: by a fold. */
static void combine_all(Split *split, TileBuilder *b, TileValue **values, TileValue *program, TileValue *part,
                        int64_t together, TileValue *count) {
    TileModule *module = split->context->module;
    TileValue *several[TILE_MAX_FOLD], *merged[TILE_MAX_FOLD], *bounds[2] = {tile_build_i64(b, 0), count};
    int64_t axis = 0;
    unsigned values_count = value_count(split);
    for (unsigned i = 0; i < values_count; i++) several[i] = load_several(split, b, i, program, part, together, count);
    TileValue *all = tile_build_bits(b, tile_type_with_scalar(module->context, several[0]->type, TILE_BOOL), 1);
    TileValue *none = tile_build_bool(b, false);
    TileFoldParts parts = {.values = several,
                           .init = values,
                           .count = values_count,
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

/* Replaces the loop by one over the parts, of which those of an iteration are loaded together. Returns it. */
static TileOp *combine_parts(Split *split) {
    TileOp *loop = split->loop;
    TileBuilder b = tile_builder_before(split->context->module, loop);
    TileValue *values[TILE_MAX_FOLD], *program = program_number(split, &b, loop->block);
    int64_t together = parts_together(loop->results[0].type);
    for (unsigned i = 0; i < value_count(split); i++) {
        values[i] = i < split->merge.count ? tile_loop_carried(loop, i) : tile_build_bits(&b, type_of(split, i), 1);
        if (parts_together(values[i]->type) < together) together = parts_together(values[i]->type);
    }
    TileOp *parts = tile_build_for(&b, tile_build_i64(&b, 0), split->parts, tile_build_i64(&b, together), values,
                                   value_count(split));
    TileBuilder inner = tile_builder_at_end(split->context->module, &parts->regions[0]);
    inner.location = loop->location;
    TileValue **arguments = parts->regions[0].arguments, *part = arguments[0], *count = NULL;
    for (unsigned i = 0; i < value_count(split); i++) values[i] = arguments[1 + i];
    if (together > 1 || !split->merge.simple)
        count = tile_build_binary(&inner, TILE_OP_MIN, tile_build_binary(&inner, TILE_OP_SUB, split->parts, part),
                                  tile_build_i64(&inner, together));
    if (split->merge.simple)
        combine_each(split, &inner, values, program, part, together, count);
    else
        combine_all(split, &inner, values, program, part, together, count);
    tile_build_end(&inner, TILE_OP_YIELD, values, value_count(split));
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], &parts->results[i]);
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
    const char *why = obstacle_of_bounds(split);
    for (const TileOp *op = loop->regions[0].first; op && !why; op = op->next) {
        if (!tile_op_writes(op)) continue;
        if (op->id != TILE_OP_STORE_TILE || !is_apart(loop, op))
            why = "its iterations may write the same elements";
        else if (is_read_in_grid(split, op))
            why = "the grid may read what it writes";
    }
    for (const TileOp *op = split->grid->regions[0].first; op && !why; op = op->next) {
        if (op == loop) continue;
        if (tile_op_writes(op) && !is_left_out(split, op)) why = "the grid writes outside of it";
        for (const TileOp *inner = loop->regions[0].first; inner && tile_op_writes(op) && !why; inner = inner->next)
            if (inner->id == TILE_OP_STORE_TILE &&
                tile_memory_overlaps(tile_memory_tensor(op), tile_memory_tensor(inner)))
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
    compute_parts(split, &host, LEAST_TRIPS_STORED);
    TileOp *grid = copy_grid(split, &host, &map, &part), *loop = copy_of_loop(split, grid);
    TileBuilder before = tile_builder_before(split->context->module, loop);
    narrow_loop(split, &before, loop, part);
    store_once(split, loop, part);
    tile_op_erase(split->grid);
}

/* ---- the pass ---- */

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
    compute_parts(split, &host, LEAST_TRIPS);
    build_temps(split, &host);
    build_parts(split, &host);
    return next_loop(combine_parts(split)->next);
}

static bool try_grid(TilePassContext *context, TileFunc *kernel, TileOp *grid) {
    bool changed = false;
    for (TileOp *loop = grid->operand_count ? first_loop(grid) : NULL; loop;) {
        Split split = {.context = context, .kernel = kernel, .grid = grid, .loop = loop};
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
