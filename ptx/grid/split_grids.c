/* Purpose: split a loop that reduces over the programs of a grid, where a grid has fewer programs than `least_programs`
 * of its kernel. Each program becomes several, its parts: a grid before it computes each part's result of the loop into
 * a temporary, and the grid itself combines them, in order of the parts. How many parts there are is computed at the
 * launch, from the number of programs and of iterations.
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
#include "ptx/passes.h"

/* Parts of fewer iterations are not worth a grid of their own. */
enum { LEAST_TRIPS = 4 };

typedef struct Split {
    TilePassContext *context;
    TileFunc *kernel;
    TileOp *grid, *loop;
    TileName kinds[TILE_MAX_FOLD]; /* of reduction, for each value that the loop carries */
    TileValue *temps[TILE_MAX_FOLD];
    TileValue *programs, *parts, *trips; /* on the host: of the grid, of each program, of each part */
} Split;

/* ---- which loops ---- */

/* The reduction by which an op combines its operand `index` with what comes next; -1: none. */
static int kind_of(const TileOp *op, unsigned index) {
    switch ((int)op->id) {
    case TILE_OP_ADD: return TILE_KIND_SUM;
    case TILE_OP_FMA:
    case TILE_OP_DOT: return index == 2 ? TILE_KIND_SUM : -1;
    case TILE_OP_MUL: return TILE_KIND_PROD;
    case TILE_OP_MIN: return TILE_KIND_MIN;
    case TILE_OP_MAX: return TILE_KIND_MAX;
    case TILE_OP_OR: return TILE_KIND_ANY;
    case TILE_OP_AND: return TILE_KIND_ALL;
    default: return -1; /* all others combine nothing */
    }
}

/* Is the i-th value that the loop carries combined once in each iteration, and not used otherwise? */
static bool reduces(Split *split, unsigned i) {
    const TileBlock *body = &split->loop->regions[0];
    const TileValue *carried = body->arguments[1 + i], *next = tile_op_operand(body->last, i);
    if (!tile_value_has_one_use(carried) || !next->op || next->op->block != body) return false;
    const TileUse *use = carried->first_use;
    if (use->user != next->op || !tile_value_has_one_use(next)) return false;
    if (tile_op_integer(next->op, TILE_ATTRIBUTE_ORDERED, 0)) return false;
    int kind = kind_of(next->op, use->index);
    split->kinds[i] = (TileName)kind;
    return kind >= 0;
}

static bool is_of_host(const Split *split, const TileValue *value) {
    return tile_value_block(value) == &split->kernel->body;
}

/* Why the loop cannot be split; NULL: it can. */
static const char *obstacle(Split *split) {
    const TileOp *loop = split->loop;
    if (tile_op_integer(loop, TILE_ATTRIBUTE_ORDERED, 0)) return "its iterations are ordered";
    if (!loop->result_count || loop->result_count > TILE_MAX_FOLD) return "it carries no value, or too many";
    for (TileOperand bound = TILE_OPERAND_LO; bound <= TILE_OPERAND_STEP; bound++)
        if (!is_of_host(split, tile_op_named(loop, bound))) return "its bounds differ from program to program";
    for (const TileOp *op = split->grid->regions[0].first; op; op = op->next) {
        if (op == loop) break;
        if (op->region_count || tile_op_writes(op)) return "the grid writes, or branches, before it";
    }
    if (tile_op_writes(loop)) return "it writes to memory";
    for (unsigned i = 0; i < loop->result_count; i++) {
        const TileType *type = loop->results[i].type;
        if (type->kind != TILE_TYPE_SCALAR && !tile_type_is_tile(type)) return "what it carries is no number";
        if (!reduces(split, i)) return "a value that it carries is more than combined once in each iteration";
    }
    return NULL;
}

static TileOp *first_loop(const TileOp *grid) {
    TileOp *op = grid->regions[0].first;
    while (op && op->id != TILE_OP_FOR) op = op->next;
    return op;
}

/* ---- the host program ---- */

static TileValue *at_least(TileBuilder *b, TileValue *value, int64_t least) {
    return tile_build_binary(b, TILE_OP_MAX, value, tile_build_i64(b, least));
}

static TileValue *round_up_quotient(TileBuilder *b, TileValue *x, TileValue *y) {
    TileValue *more = tile_build_binary(b, TILE_OP_SUB, y, tile_build_i64(b, 1));
    return tile_build_binary(b, TILE_OP_DIV, tile_build_binary(b, TILE_OP_ADD, x, more), y);
}

/* As many parts as the wanted programs allow, while each has enough iterations. */
static void compute_parts(Split *split, TileBuilder *b) {
    TileValue *lo = tile_op_named(split->loop, TILE_OPERAND_LO), *hi = tile_op_named(split->loop, TILE_OPERAND_HI),
              *step = tile_op_named(split->loop, TILE_OPERAND_STEP), *programs = tile_build_i64(b, 1);
    for (unsigned i = 0; i < split->grid->operand_count; i++)
        programs = tile_build_binary(b, TILE_OP_MUL, programs, at_least(b, tile_op_operand(split->grid, i), 0));
    TileValue *trips = round_up_quotient(b, at_least(b, tile_build_binary(b, TILE_OP_SUB, hi, lo), 0), step);
    TileValue *wanted = tile_build_binary(b, TILE_OP_DIV, tile_build_i64(b, split->kernel->least_programs),
                                          at_least(b, programs, 1));
    TileValue *most = tile_build_binary(b, TILE_OP_DIV, trips, tile_build_i64(b, LEAST_TRIPS));
    TileValue *parts = at_least(b, tile_build_binary(b, TILE_OP_MIN, wanted, most), 1);
    split->programs = programs;
    split->trips = at_least(b, round_up_quotient(b, trips, parts), 1);
    split->parts = at_least(b, round_up_quotient(b, trips, split->trips), 1);
}

static void build_temps(Split *split, TileBuilder *b) {
    TileContext *context = b->module->context;
    for (unsigned i = 0; i < split->loop->result_count; i++) {
        const TileType *type = split->loop->results[i].type;
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

/* An access to whole tiles of the program's parts: its indices, behind those operands that are there, and their kinds. */
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
    enum { MOST_PARTS = 16, MOST_LANES = 1 << 14 };
    int64_t together = MOST_PARTS;
    while (together > 1 && together * tile_type_lanes(type) > MOST_LANES) together /= 2;
    return rank_of(type) < TILE_MAX_TILE_RANK ? together : 1;
}

/* Those of `together` parts from this one on, combined; what is beyond the last one counts as the identity. */
static TileValue *load_parts(Split *split, TileBuilder *b, unsigned i, const TileType *type, TileValue *program,
                             TileValue *part, int64_t together) {
    TileContext *context = b->module->context;
    int64_t extent[TILE_MAX_TILE_RANK] = {together}, axis = 0;
    Access access = {.operands = {split->temps[i]}, .count = 1};
    add_index(&access, program);
    if (together == 1) {
        add_index(&access, part);
        add_tile(b, &access, type);
        return tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, type), 0);
    }
    TileValue *left = tile_build_binary(b, TILE_OP_SUB, split->parts, part);
    TileValue *bounds[2] = {tile_build_i64(b, 0),
                            tile_build_binary(b, TILE_OP_MIN, left, tile_build_i64(b, together))};
    for (unsigned a = 0; a < rank_of(type); a++) extent[1 + a] = type->extent[a];
    const TileType *several = tile_type_tile(context, type->scalar, 1 + rank_of(type), extent);
    add_range(b, &access, part, bounds[1]);
    add_tile(b, &access, type);
    TileValue *loaded = tile_op_result(build_access(b, TILE_OP_LOAD_TILE, &access, several), 0);
    uint64_t identity = tile_eval_identity(split->kinds[i], type->scalar);
    TileValue *none = tile_build_bits(b, tile_type_scalar(context, type->scalar), identity);
    return tile_build_reduce(b, tile_build_fill(b, loaded, none, &axis, bounds, 1), split->kinds[i], 0);
}

static void erase_after(TileOp *loop) {
    TileBlock *block = loop->block;
    while (block->last->previous != loop) tile_op_erase(block->last->previous);
}

/* The iterations of the part: so many, from the part's first on. */
static void narrow_loop(Split *split, TileOp *loop, TileValue *part) {
    TileBuilder b = tile_builder_before(split->context->module, loop);
    unsigned count, lo_index = tile_op_operands(loop, TILE_OPERAND_LO, &count),
                    hi_index = tile_op_operands(loop, TILE_OPERAND_HI, &count);
    TileValue *lo = tile_op_named(loop, TILE_OPERAND_LO), *hi = tile_op_named(loop, TILE_OPERAND_HI),
              *step = tile_op_named(loop, TILE_OPERAND_STEP);
    TileValue *width = tile_build_binary(&b, TILE_OP_MUL, split->trips, step);
    TileValue *first = tile_build_binary(&b, TILE_OP_ADD, lo, tile_build_binary(&b, TILE_OP_MUL, part, width));
    TileValue *end = tile_build_binary(&b, TILE_OP_ADD, first, width);
    tile_op_set_operand(loop, lo_index, first);
    tile_op_set_operand(loop, hi_index, tile_build_binary(&b, TILE_OP_MIN, hi, end));
    unsigned carried = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    for (unsigned i = 0; i < count; i++) {
        const TileType *type = loop->results[i].type;
        uint64_t identity = tile_eval_identity(split->kinds[i], type->scalar);
        tile_op_set_operand(loop, carried + i, tile_build_bits(&b, type, identity));
    }
}

/* The grid of the parts, before the other one. */
static void build_parts(Split *split, TileBuilder *host) {
    TileModule *module = split->context->module;
    TileMap map;
    tile_map_init(&map, split->context->scratch);
    TileOp *grid = tile_op_clone(module, split->grid, &map);
    tile_op_add_operand(module, grid, split->parts);
    tile_builder_insert(host, grid);
    TileBlock *body = &grid->regions[0];
    TileValue *part = tile_block_add_argument(module, body, tile_type_scalar(module->context, TILE_I64), NULL);
    TileOp *loop = first_loop(grid);
    erase_after(loop);
    narrow_loop(split, loop, part);
    TileBuilder b = tile_builder_before(module, body->last);
    b.location = split->loop->location;
    TileValue *program = program_number(split, &b, body);
    for (unsigned i = 0; i < loop->result_count; i++) store_part(split, &b, i, &loop->results[i], program, part);
}

/* Replaces the loop by one over the parts, of which those of an iteration are loaded together. */
static void combine_parts(Split *split) {
    TileOp *loop = split->loop;
    TileBuilder b = tile_builder_before(split->context->module, loop);
    TileValue *carried[TILE_MAX_FOLD], *program = program_number(split, &b, loop->block);
    int64_t together = parts_together(loop->results[0].type);
    for (unsigned i = 0; i < loop->result_count; i++) {
        carried[i] = tile_loop_carried(loop, i);
        if (parts_together(carried[i]->type) < together) together = parts_together(carried[i]->type);
    }
    TileOp *parts = tile_build_for(&b, tile_build_i64(&b, 0), split->parts, tile_build_i64(&b, together), carried,
                                   loop->result_count);
    TileBuilder inner = tile_builder_at_end(split->context->module, &parts->regions[0]);
    inner.location = loop->location;
    TileValue **arguments = parts->regions[0].arguments;
    for (unsigned i = 0; i < loop->result_count; i++) {
        TileValue *value = load_parts(split, &inner, i, loop->results[i].type, program, arguments[0], together);
        carried[i] = tile_build_binary(&inner, tile_eval_combiner(split->kinds[i]), arguments[1 + i], value);
    }
    tile_build_end(&inner, TILE_OP_YIELD, carried, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], &parts->results[i]);
    tile_op_erase(loop);
}

static bool try_grid(TilePassContext *context, TileFunc *kernel, TileOp *grid) {
    Split split = {.context = context, .kernel = kernel, .grid = grid, .loop = first_loop(grid)};
    if (!split.loop || grid->operand_count == 0) return false;
    const char *why = obstacle(&split);
    if (why) {
        tile_pass_remark(context, split.loop, TILE_DECISION_NOT_IN_PARTS, "the loop", "%s", why);
        return false;
    }
    TileBuilder host = tile_builder_before(context->module, grid);
    tile_pass_remark(context, split.loop, TILE_DECISION_IN_PARTS, "the loop", "for %u programs", kernel->least_programs);
    compute_parts(&split, &host);
    build_temps(&split, &host);
    build_parts(&split, &host);
    combine_parts(&split);
    return true;
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
