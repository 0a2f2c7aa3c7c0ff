/* Purpose: unroll loops whose iterations load so little that a thread waits for memory in each of them. Of several
 * iterations, loads and what depends on no carried value come first, so that their loads are in flight together; the
 * rest follows iteration by iteration, in the order that it had. The loop itself stays for the last iterations. A store whose
 * elements nothing else accesses is `apart`, and so are its copies: they need no barriers between them.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %most = const {value = -inf} : f32[128]
 *       %top = for %zero, %m, %one, %most : f32[128] (%i: i64, %before: f32[128]) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %w = max %before, %v : f32[128]
 *         yield %w
 *       }
 *       store_tile %y, %top, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %most = const {value = -inf} : f32[128]
 *       %top = for %zero, %m, %one, %most : f32[128] (%i: i64, %before: f32[128]) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %w = max %before, %v : f32[128]
 *         yield %w
 *       }
 *       store_tile %y, %top, %zero, %one, %zero, %n {access = [range]}
 *       return
 *     }
 * Needs: gpu-threads; loops whose induction variables do not overflow, so exact-loops. Keeps: tile form, and the order of
 * what is carried. Cost: linear in the ops that it makes, MOST_OPS for a loop. */
#include "lang/index/index.h"
#include "lang/ir/access.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/memory.h"
#include "ptx/passes.h"
#include "ptx/pipeline/unrolled.h"
#include "ptx/target/dot.h"

/* A thread with 64 bytes in flight needs no more from other iterations, and none if an iteration has 16. In a loop that another begins again
 * and again, and whose iterations have at most LIGHT_OPS, they are 32: such loops are there once for each number of iterations that is left,
 * and with more ptxas keeps values in memory. Elements are registers, which all iterations that are in flight need at once. */
enum { ENOUGH_BYTES = 64, FEW_BYTES = 16, LIGHT_OPS = 16, LIGHT_BYTES = 32, MOST_ELEMENTS = 64, MOST_OPS = 96, LARGEST_STEP = 1 << 20, FLIGHT_BYTES = 1 << 15 };

/* Vectors that are added to sums of tensor cores lie as the sums' columns do: of eight a thread has two. */
enum { COLUMNS_OF = 4 };

typedef struct Ahead {
    TilePassContext *context;
    TileFunc *func;
    TileIndices *indices;
    TileOp *loop;
    TileMap late; /* ops that stay with their iteration */
    int64_t step, bytes, elements;
    unsigned ops, loads, together;
    bool of_list;         /* its bounds are places that the program loads */
    bool chained;         /* an iteration loads what another of its loads says */
    unsigned slides;      /* so many iterations load from the vectors of memory of the first of them, or the next; 0: they do not */
    bool beside_products; /* for tensor cores */
    bool beside_sums;     /* of any products */
} Ahead;

/* ---- which ops come first ---- */

static bool is_of_earlier(const Ahead *a, const TileValue *value) {
    const TileBlock *body = &a->loop->regions[0];
    if (tile_value_outside(value, a->loop) || value == body->arguments[0]) return true;
    return value->op && value->op->block == body && !tile_map_get(&a->late, value->op);
}

static bool comes_first(const Ahead *a, const TileOp *op) {
    if (op->region_count) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_of_earlier(a, tile_op_operand(op, i))) return false;
    return op->id == TILE_OP_LOAD_TILE || tile_op_is_pure(op);
}

static void count_load(Ahead *a, const TileOp *load) {
    const TileType *type = load->results[0].type;
    int64_t lanes = tile_type_is_tile(type) ? tile_type_lanes(type) : 1;
    int64_t elements = (lanes + a->func->threads - 1) / a->func->threads, bytes = tile_scalar_bytes(type->scalar);
    a->loads++;
    a->bytes += elements * bytes;
    if (a->beside_products && type->rank == 1) elements = (lanes + COLUMNS_OF - 1) / COLUMNS_OF;
    a->elements += bytes > 4 ? 2 * elements : elements;
}

/* Is the place of what is loaded something that the same iteration loads? Then a thread waits twice. */
static bool follows_load(const Ahead *a, const TileValue *value) {
    const TileOp *op = value->op;
    if (tile_value_outside(value, a->loop) || !op) return false;
    if (op->id == TILE_OP_LOAD_TILE) return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (follows_load(a, tile_op_operand(op, i))) return true;
    return false;
}

static bool is_chained(const Ahead *a, const TileOp *load) {
    for (unsigned i = tile_access_first(load); i < tile_access_end(load); i++)
        if (follows_load(a, tile_op_operand(load, i))) return true;
    return false;
}

/* Does the load go along its rows with the induction variable, an element at a time, as the positions of a window do? Of elements of 16 bits a
 * thread then has two vectors for as many iterations as a vector has elements, in place of each element by itself (gpu_shift). */
static unsigned iterations_of_vectors(const Ahead *a, const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    const TileType *type = load->results[0].type;
    if (!tile_type_is_tile(type) || tile_scalar_bytes(type->scalar) != sizeof(uint16_t)) return 0;
    const TileAccessIndex *last = &indices[tile_access_read(load, indices) - 1];
    const TileOp *first = last->kind == TILE_ACCESS_RANGE ? last->first->op : NULL;
    int64_t step;
    bool shifts = first && (first->id == TILE_OP_ADD || first->id == TILE_OP_SUB) && tile_value_integer(last->step, &step) && step == 1;
    if (!shifts || last->axis + 1 != (int)type->rank || a->step != 1) return 0;
    const TileValue *induction = a->loop->regions[0].arguments[0], *x = tile_op_operand(first, 0), *y = tile_op_operand(first, 1);
    bool other = tile_value_outside(x == induction ? y : x, a->loop);
    return other && (y == induction || (x == induction && first->id == TILE_OP_ADD)) ? GPU_MOST_TOGETHER : 0;
}

/* Has an iteration more to wait for than its loads: a loop, a product, which has stages that load ahead, or lanes and warps that
 * exchange what they reduce? */
static bool has_more(const TileOp *op) {
    bool reduces = op->id == TILE_OP_DOT || op->id == TILE_OP_REDUCE || op->id == TILE_OP_ARG_REDUCE || op->id == TILE_OP_FOLD || op->id == TILE_OP_SCAN;
    if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || reduces) return true;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (has_more(inner)) return true;
    return false;
}

/* False: the loop stays as it is. */
static bool look(Ahead *a) {
    TileBlock *body = &a->loop->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        if (has_more(op)) return false;
        a->ops++;
        if (!comes_first(a, op)) {
            tile_map_set(&a->late, op, op);
        } else if (op->id == TILE_OP_LOAD_TILE) {
            count_load(a, op);
            a->chained |= is_chained(a, op);
            if (!a->slides) a->slides = iterations_of_vectors(a, op);
        }
    }
    return true;
}

/* Is it in another loop, which begins it again and again, each time with loads that nothing precedes? */
static bool is_nested(const TileOp *loop) {
    const TileOp *outer = loop->block->op;
    return outer && outer->id == TILE_OP_FOR && !tile_loop_is_of_programs(outer);
}

static bool is_part(const TileOp *loop, int64_t of) { return tile_op_integer(loop, TILE_ATTRIBUTE_PART, 0) == of; }

/* Where the blocks of a cluster share a loop it is as if each had a multiprocessor to itself, unless others compute while it waits: so many iterations of one load
 * have enough bytes in flight. */
static unsigned iterations_of_cluster(const Ahead *a) {
    unsigned together = 1;
    if (a->func->busy || a->loads != 1 || !a->bytes || is_nested(a->loop)) return 1;
    while (together < GPU_MOST_TOGETHER && a->func->threads * a->bytes * together < FLIGHT_BYTES && a->bytes * together < ENOUGH_BYTES &&
           a->elements * together * 2 <= MOST_ELEMENTS && a->ops * together * 2 <= MOST_OPS)
        together *= 2;
    return together;
}

/* How many iterations have enough bytes in flight; 1: one has. */
static unsigned iterations_together(const Ahead *a) {
    unsigned together = 1;
    bool light = is_nested(a->loop) && a->ops <= LIGHT_OPS;
    if (!light && is_part(a->loop, TILE_PART_OF_SUMS)) return 1;
    if (!light && is_part(a->loop, TILE_PART_OF_CLUSTER)) return iterations_of_cluster(a);
    if (a->of_list && !a->chained) return 1;
    if (a->slides && a->ops * a->slides <= 2 * MOST_OPS) return a->slides;
    if (!a->bytes || a->bytes >= (a->of_list ? ENOUGH_BYTES : light ? LIGHT_BYTES : FEW_BYTES)) return 1;
    while (together < GPU_MOST_TOGETHER && a->bytes * together < (light ? LIGHT_BYTES : ENOUGH_BYTES) && a->elements * together * 2 <= MOST_ELEMENTS &&
           a->ops * together * 2 <= MOST_OPS)
        together *= 2;
    return together;
}

/* ---- stores ---- */

/* Does the store go from row to row: is an index of its own the induction variable? Tiles along a row end somewhere in it, and each copy
 * would have the code for that (measured: 0.64 of the speed of softmax_groups). */
static bool goes_by_rows(const Ahead *a, const TileOp *store) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned rank = tile_access_read(store, indices);
    for (unsigned d = 0; d < rank; d++)
        if (indices[d].kind == TILE_ACCESS_INDEX && indices[d].first == a->loop->regions[0].arguments[0]) return true;
    return false;
}

/* Marks the loop's stores. Returns why loads cannot pass them; NULL: they can. */
static const char *obstacle_of_stores(const Ahead *a) {
    TileBlock *body = &a->loop->regions[0];
    if (tile_op_writes(a->loop) && !a->loop->result_count) return "it writes to memory, and carries nothing";
    for (const TileOp *op = body->first; op; op = op->next) {
        if (!tile_op_writes(op)) continue;
        if (op->id != TILE_OP_STORE_TILE) return "it writes to memory";
        if (!goes_by_rows(a, op)) return "it stores tiles along an axis";
        if (!gpu_store_is_apart(a->loop, op)) return "what it stores may be accessed by other iterations or ops";
    }
    for (TileOp *op = body->first; op; op = op->next)
        if (op->id == TILE_OP_STORE_TILE) tile_op_set_integer(a->context->module, op, TILE_ATTRIBUTE_APART, 1);
    return NULL;
}

/* ---- the pass ---- */

/* One element of a list after the other. */
static bool goes_through_list(const TileOp *loop) {
    int64_t step;
    return tile_goes_through_list(loop) && tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) && step == 1;
}

/* Bounds that differ from program to program are those of windows and of short lists: few iterations, if any; but those of
 * parts of one loop, which are alike, and of lists, where each iteration waits for one load after another. */
static bool is_counted(const TileFunc *func, const TileOp *loop, int64_t *step) {
    if (loop->id != TILE_OP_FOR) return false;
    bool outside = tile_value_block(tile_op_named(loop, TILE_OPERAND_LO)) == &func->body &&
                   tile_value_block(tile_op_named(loop, TILE_OPERAND_HI)) == &func->body;
    if (!outside && !tile_op_get(loop, TILE_ATTRIBUTE_PART) && !goes_through_list(loop)) return false;
    return !tile_loop_is_of_programs(loop) && loop->result_count <= GPU_MOST_CARRIED &&
           tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), step) && *step > 0 && *step <= LARGEST_STEP;
}

/* Does a loop of the program contain it? Its last iterations, of a window's columns perhaps all, then come again and again: half as
 * many are in flight together, and half as many of what that leaves. */
static bool is_repeated(const TileOp *loop) {
    const TileOp *around = loop->block->op;
    while (around && around->id != TILE_OP_FOR && around->id != TILE_OP_WHILE) around = around->block->op;
    return around && !tile_loop_is_of_programs(around);
}

/* Of the iterations that are left, so many or more are in flight together as well. */
static unsigned fewest_together(const Ahead *a) {
    enum { FEWEST_OF_VECTORS = 4, FEWEST_OF_CLUSTER = 4 };
    return is_repeated(a->loop) || a->of_list ? 2 : a->slides ? FEWEST_OF_VECTORS : is_part(a->loop, TILE_PART_OF_CLUSTER) ? FEWEST_OF_CLUSTER : GPU_MOST_TOGETHER;
}

static bool is_in_branch(const TileOp *loop) {
    const TileOp *around = loop->block->op;
    while (around && around->id != TILE_OP_IF && !tile_loop_is_of_programs(around)) around = around->block->op;
    return around && around->id == TILE_OP_IF;
}

/* Why loads stay in their iterations; NULL: they do not. What some programs compute beside sums of products would take registers of all. */
static const char *why_not(const Ahead *a) {
    if (a->beside_sums && is_in_branch(a->loop)) return "it is in a branch, and sums of products have the registers";
    return obstacle_of_stores(a);
}

static bool visit(TilePassContext *context, TileFunc *func, TileBlock *block, const GpuDots *dots) {
    bool changed = false;
    for (TileOp *op = block->first; op; op = op->next) {
        Ahead a = {.context = context, .func = func, .loop = op, .beside_products = dots->count && !dots->multiplied.count, .beside_sums = dots->count};
        for (unsigned r = 0; r < op->region_count; r++) changed |= visit(context, func, &op->regions[r], dots);
        if (!is_counted(func, op, &a.step)) continue;
        a.indices = tile_pass_indices(context, func);
        a.of_list = goes_through_list(op);
        tile_map_init(&a.late, context->scratch);
        if (!look(&a)) continue;
        a.together = iterations_together(&a);
        if (a.together < 2) continue;
        const char *why = why_not(&a);
        if (why) {
            tile_pass_remark(context, op, TILE_DECISION_NOT_LOADED_TOGETHER, "the loop", "%s", why);
            continue;
        }
        tile_pass_remark(context, op, TILE_DECISION_LOADED_TOGETHER, "the loop", "%u iterations", a.together);
        GpuUnrolled unrolled = {.context = context, .indices = a.indices, .loop = op, .late = &a.late, .step = a.step, .together = a.together};
        gpu_unroll(&unrolled);
        for (unrolled.together /= 2; unrolled.together >= fewest_together(&a); unrolled.together /= 2) gpu_unroll(&unrolled);
        changed = true;
    }
    return changed;
}

TileResult tile_pass_gpu_ahead(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    GpuDots dots = gpu_find_dots(func, &func->body);
    return visit(context, func, &func->body, &dots) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
