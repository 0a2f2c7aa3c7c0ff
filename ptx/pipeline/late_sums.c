/* Purpose: reduce behind a loop, not in each of its iterations. Where a loop adds the sums of tiles to what it carries, it
 * adds up the tiles instead, whose sum is taken once: iterations then exchange nothing between lanes and warps, wait at no
 * barrier, and may load ahead. So it is with minima and maxima. Of loops in one another the inner ones come first, and go on
 * with what the outer one has added up.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %none = const {value = 0.0} : f32
 *       %total = for %zero, %m, %one, %none : f32 (%i: i64, %before: f32) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %s = reduce %v {axis = 0, kind = sum} : f32
 *         %w = add %before, %s : f32
 *         yield %w
 *       }
 *       store_tile %y, %total, %zero {access = [index]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in> {noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 64 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 128} : i64
 *       %m = dim %x {axis = 0} : i64
 *       %none = const {value = 0.0} : f32
 *       %0 = const {value = 0.0} : f32[128]
 *       %total = for %zero, %m, %one, %0 : f32[128] (%i: i64, %before: f32[128]) {
 *         %v = load_tile %x, %i, %zero, %one, %zero, %n {access = [index, range]} : f32[128]
 *         %1 = add %before, %v : f32[128]
 *         yield %1
 *       }
 *       %s = reduce %total {axis = 0, kind = sum} : f32
 *       store_tile %y, %s, %zero {access = [index]}
 *       return
 *     }
 * Rows of one warp stay: its lanes exchange a number without a barrier. Where the tile takes too many registers of a thread, those lines
 * of it that lie in one thread are reduced in the iteration, which exchanges nothing, and what is left is added up (`Parts`). A
 * loop of one iteration has the bits that it had:
 * other variants of the code have none for such rows (gpu-short-rows).
 *
 * A loop that computes with the sums of a product by warpgroups carries, for each of its rows, what each of four lanes has of it: `total * shrink +
 * sum(e)`, as in attention, adds up what a thread has, and lanes exchange that once, behind the loop.
 *
 * Needs: gpu-threads. Keeps: tile form, all results but for the order of sums. Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/target/dot.h"

/* Of a thread: for what it adds up of one tile, of one whose lines it has added up, and of all tiles of a loop. */
enum { MOST_BYTES = 64, MOST_BYTES_OF_PART = 32, MOST_BYTES_OF_LOOP = 128, VECTOR_BYTES = 16 };

typedef struct Late {
    TilePassContext *context;
    TileFunc *func;
    TileOp *loop;
    int64_t bytes; /* of a thread, so far */
    bool changed;
} Late;

/* A carried value to which an iteration adds what it reduces. */
typedef struct Sum {
    unsigned index; /* among those of the loop */
    TileOp *add, *reduce;
    TileValue *tile;
    int64_t bytes; /* of a thread, that `late` has counted for what the loop carries in its place */
} Sum;

static TileOpId op_of(TileName kind) {
    if (kind == TILE_KIND_SUM) return TILE_OP_ADD;
    if (kind == TILE_KIND_MAX) return TILE_OP_MAX;
    return kind == TILE_KIND_MIN ? TILE_OP_MIN : TILE_OP_COUNT;
}

static bool has_one_use(const TileValue *value) { return value->first_use && !value->first_use->next; }

static TileName kind_of(const TileOp *reduce) {
    return (TileName)tile_op_integer(reduce, TILE_ATTRIBUTE_KIND, TILE_KIND_SUM);
}

/* The reduction that gives the value, if it stands in the body and nothing else takes what it gives. */
static TileOp *reduction_of(const TileBlock *body, const TileValue *value) {
    TileOp *reduce = tile_value_def(value, TILE_OP_REDUCE);
    return reduce && reduce->block == body && has_one_use(value) ? reduce : NULL;
}

/* Lines that become what changes nothing become that before they are reduced. The value is reduced then; else it is as it was. */
static TileValue *fill_first(Late *late, const TileBlock *body, TileValue *value) {
    TileOp *fill = tile_value_def(value, TILE_OP_FILL);
    TileOp *reduce = fill && fill->block == body && has_one_use(value) ? reduction_of(body, tile_op_operand(fill, 0)) : NULL;
    uint64_t bits;
    if (!reduce || !tile_value_bits(tile_op_operand(fill, 1), &bits)) return value;
    if (bits != tile_eval_identity(kind_of(reduce), value->type->scalar)) return value;
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    int64_t moved[TILE_MAX_TILE_RANK], axis = tile_op_integer(reduce, TILE_ATTRIBUTE_AXIS, 0);
    TileValue *bounds[2 * TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < axes->count; i++) {
        moved[i] = axes->integers[i] + (axes->integers[i] >= axis);
        bounds[2 * i] = tile_fill_lo(fill, i);
        bounds[2 * i + 1] = tile_fill_hi(fill, i);
    }
    TileBuilder b = tile_builder_before(late->context->module, fill);
    b.location = reduce->location;
    TileValue *filled = tile_build_fill(&b, tile_op_operand(reduce, 0), tile_op_operand(fill, 1), moved, bounds, axes->count);
    tile_op_detach(reduce);
    tile_op_insert_before(reduce, fill);
    tile_op_set_operand(reduce, 0, filled);
    tile_value_replace(value, &reduce->results[0]);
    tile_op_erase(fill);
    late->changed = true;
    return &reduce->results[0];
}

/* Is it a carried value to which only a reduced tile is added? */
static bool find_sum(Late *late, unsigned index, Sum *sum) {
    TileBlock *body = &late->loop->regions[0];
    TileValue *carried = body->arguments[1 + index], *next = tile_op_named_at(body->last, TILE_OPERAND_VALUES, index);
    *sum = (Sum){.index = index, .add = next->op};
    if (!sum->add || sum->add->block != body || !has_one_use(carried) || carried->first_use->user != sum->add) return false;
    if (sum->add->operand_count != 2 || !has_one_use(next)) return false;
    TileValue *added = tile_op_operand(sum->add, tile_op_operand(sum->add, 0) == carried);
    sum->reduce = reduction_of(body, fill_first(late, body, added));
    if (!sum->reduce) return false;
    sum->tile = tile_op_operand(sum->reduce, 0);
    return op_of(kind_of(sum->reduce)) == sum->add->id && !tile_value_outside(sum->tile, late->loop);
}

static void look_for_products(TileOp *op, void *found) {
    if (op->id == TILE_OP_DOT) *(bool *)found = true;
}

static int64_t bytes_of_thread(const Late *late, const TileType *tile) {
    int64_t threads = late->func->threads;
    return (tile_type_lanes(tile) + threads - 1) / threads * tile_scalar_bytes(tile->scalar);
}

static const char too_many[] = "it has too many registers for that";

/* NULL: it can be reduced behind the loop. */
static const char *obstacle(const Late *late, const Sum *sum) {
    const TileType *type = sum->tile->type;
    int64_t size = tile_scalar_bytes(type->scalar);
    int64_t bytes = bytes_of_thread(late, type);
    bool products = false, last = tile_op_integer(sum->reduce, TILE_ATTRIBUTE_AXIS, 0) == type->rank - 1;
    if (tile_op_integer(late->loop, TILE_ATTRIBUTE_ORDERED, 0) || tile_op_integer(sum->reduce, TILE_ATTRIBUTE_ORDERED, 0))
        return "the text gives the order";
    if (tile_scalar_is_float(type->scalar) && size < 4) return "its sums would be rounded to 16 bits in each iteration";
    if (last && late->func->threads == TILE_WARP_THREADS) return "lanes of one warp exchange what they reduce";
    tile_block_walk(&late->loop->regions[0], look_for_products, &products);
    if (products) return "it has products";
    if (bytes > MOST_BYTES || late->bytes - sum->bytes + bytes > MOST_BYTES_OF_LOOP) return too_many;
    return NULL;
}

/* An inner loop that adds up tiles from nothing on, whose result has no other use: it goes on with what there is. */
static bool continue_inner(const Sum *sum, TileValue *carried, uint64_t identity) {
    TileOp *inner = sum->tile->op;
    if (!inner || inner->id != TILE_OP_FOR || inner->block != tile_value_block(carried) || sum->tile->first_use) return false;
    unsigned index = (unsigned)(sum->tile - inner->results), count,
             first = tile_op_operands(inner, TILE_OPERAND_CARRIED, &count);
    uint64_t bits;
    if (!tile_value_bits(tile_loop_carried(inner, index), &bits) || bits != identity) return false;
    tile_op_set_operand(inner, first + index, carried);
    return true;
}

/* What the loop began with is combined with what is reduced behind it, unless that changes nothing: a loop around this one then adds up what is reduced, and nothing
 * else. */
static void combine_behind(const Sum *sum, TileValue *begin, uint64_t identity) {
    TileOp *add = sum->add, *reduce = sum->reduce;
    TileValue *reduced = &reduce->results[0];
    uint64_t bits;
    if (tile_value_bits(begin, &bits) && bits == identity) {
        tile_value_replace(&add->results[0], reduced);
        tile_op_erase(add);
        return;
    }
    tile_op_detach(add);
    tile_op_insert_after(add, reduce);
    tile_op_set_operand(add, 0, begin);
    tile_op_set_operand(add, 1, reduced);
}

/* The loop carries the tile. */
static void move_behind(Late *late, const Sum *sum) {
    TileModule *module = late->context->module;
    TileOp *loop = late->loop, *yield = loop->regions[0].last;
    TileValue *result = &loop->results[sum->index], *carried = loop->regions[0].arguments[1 + sum->index];
    uint64_t identity = tile_eval_identity(kind_of(sum->reduce), sum->tile->type->scalar);
    unsigned count, first = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    TileValue *begin = tile_loop_carried(loop, sum->index);
    TileBuilder b = tile_builder_before(module, loop);
    b.location = sum->reduce->location;
    tile_op_set_operand(loop, first + sum->index, tile_build_bits(&b, sum->tile->type, identity));
    result->type = carried->type = sum->tile->type;
    TileOp *reduce = sum->reduce;
    TileOpId combiner = (TileOpId)sum->add->id;
    tile_op_detach(reduce);
    tile_op_insert_after(reduce, loop);
    tile_value_replace(result, &sum->add->results[0]);
    tile_op_set_operand(reduce, 0, result);
    TileValue *next = sum->tile;
    if (!continue_inner(sum, carried, identity)) {
        b = tile_builder_before(module, yield);
        b.location = reduce->location;
        next = tile_build_binary(&b, combiner, carried, sum->tile);
    }
    tile_op_set_operand(yield, sum->index, next);
    combine_behind(sum, begin, identity);
    late->bytes += bytes_of_thread(late, sum->tile->type) - sum->bytes;
    late->changed = true;
}

/* ---- parts ---- */

static void find_narrowest(TileOp *op, void *found) {
    const TileType *type = op->id == TILE_OP_LOAD_TILE ? op->results[0].type : NULL;
    int64_t *bytes = found;
    if (type && tile_type_is_tile(type) && tile_scalar_bytes(type->scalar) < *bytes) *bytes = tile_scalar_bytes(type->scalar);
}

/* Lines along the first of two axes that lie in one thread: lanes and warps share the others, where each lane has a vector of a
 * line and a warp has whole lines (ptx/layouts/blocked.c). */
static int64_t lines_of_thread(const Late *late, const TileType *type) {
    int64_t bytes = tile_scalar_bytes(type->scalar), warps = late->func->threads / TILE_WARP_THREADS;
    tile_block_walk(&late->loop->regions[0], find_narrowest, &bytes);
    int64_t lanes = type->extent[1] * bytes / VECTOR_BYTES;
    if (lanes < 1 || lanes > TILE_WARP_THREADS || TILE_WARP_THREADS % lanes) return 1;
    int64_t others = TILE_WARP_THREADS / lanes * warps;
    return type->extent[0] % others ? 1 : type->extent[0] / others;
}

/* In how many parts the lines of a thread are added up, so that few enough bytes are left; 1: they cannot be. */
static int64_t count_parts(const Late *late, const Sum *sum) {
    const TileType *type = sum->tile->type;
    int64_t bytes = bytes_of_thread(late, type), left = MOST_BYTES_OF_LOOP - (late->bytes - sum->bytes), parts = 1;
    if (type->rank != 2 || tile_op_integer(sum->reduce, TILE_ATTRIBUTE_AXIS, 0) != 0) return 1;
    while (bytes / parts > MOST_BYTES_OF_PART || bytes / parts > left) parts *= 2;
    return lines_of_thread(late, type) % parts ? 1 : parts;
}

/* The lines of a thread are reduced first, and what that gives then. */
static void reduce_lines_of_thread(Late *late, Sum *sum, int64_t parts) {
    const TileType *type = sum->tile->type;
    int64_t extent[TILE_MAX_TILE_RANK] = {parts, type->extent[0] / parts};
    for (unsigned i = 1; i < type->rank; i++) extent[i + 1] = type->extent[i];
    TileBuilder b = tile_builder_before(late->context->module, sum->reduce);
    b.location = sum->reduce->location;
    TileValue *lines = tile_build_reshape(&b, sum->tile, type->rank + 1u, extent);
    sum->tile = tile_build_reduce(&b, lines, kind_of(sum->reduce), 0);
    tile_op_set_operand(sum->reduce, 0, sum->tile);
    late->changed = true;
}

/* ---- rows of a product's sums ---- */

/* A carried value for each row, times a factor of the row, to which an iteration adds the sum of the row of a tile. */
typedef struct RowSum {
    unsigned index;
    TileOp *add, *reduce;
    TileValue *factor;  /* NULL: there is none */
    int64_t neighbours; /* columns side by side in a thread */
} RowSum;

enum { LANES_OF_ROW = 4 };

/* The product by warpgroups of whose sums the tile is computed, element by element, in the body; NULL: there is none. */
static const TileOp *product_of(const TileBlock *body, const TileValue *tile, unsigned *left) {
    const TileOp *op = tile->op, *found = NULL;
    if (!op || op->block != body || !*left || tile->type->rank != 2) return NULL;
    --*left;
    if (op->id == TILE_OP_DOT) return gpu_dot_is_wgmma(op) ? op : NULL;
    for (unsigned i = 0; i < op->operand_count && !found && tile_op_is_pure(op); i++) {
        const TileType *type = tile_op_operand(op, i)->type;
        bool same = type->rank == 2 && type->extent[0] == tile->type->extent[0] && type->extent[1] == tile->type->extent[1];
        if (same) found = product_of(body, tile_op_operand(op, i), left);
    }
    return found;
}

/* carried, or carried times a factor. */
static bool is_scaled(TileValue *value, const TileValue *carried, TileValue **factor) {
    const TileOp *mul = tile_value_def(value, TILE_OP_MUL);
    *factor = NULL;
    if (value == carried) return true;
    for (unsigned i = 0; mul && i < 2; i++) {
        *factor = tile_op_operand(mul, 1 - i);
        if (tile_op_operand(mul, i) == carried) return true;
    }
    return false;
}

static bool find_row_sum(Late *late, unsigned index, RowSum *sum) {
    enum { MOST_STEPS = 256 };
    TileBlock *body = &late->loop->regions[0];
    TileValue *carried = body->arguments[1 + index], *next = tile_op_named_at(body->last, TILE_OPERAND_VALUES, index), *added = NULL;
    *sum = (RowSum){.index = index, .add = next->op};
    if (!sum->add || sum->add->block != body || !has_one_use(carried) || !has_one_use(next) || carried->type->rank != 1) return false;
    for (unsigned i = 0; i < 2 && !added; i++) {
        if (sum->add->id == TILE_OP_FMA && tile_op_operand(sum->add, i) == carried) {
            added = tile_op_named(sum->add, TILE_OPERAND_Z);
            sum->factor = tile_op_operand(sum->add, 1 - i);
        } else if (sum->add->id == TILE_OP_ADD && is_scaled(tile_op_operand(sum->add, i), carried, &sum->factor)) {
            added = tile_op_operand(sum->add, 1 - i);
        }
    }
    sum->reduce = added ? reduction_of(body, fill_first(late, body, added)) : NULL;
    if (!sum->reduce || kind_of(sum->reduce) != TILE_KIND_SUM || added->type->scalar != TILE_F32) return false;
    unsigned left = MOST_STEPS;
    const TileValue *tile = tile_op_operand(sum->reduce, 0);
    const TileOp *product = product_of(body, tile, &left);
    if (!product || tile_op_integer(sum->reduce, TILE_ATTRIBUTE_AXIS, 0) != 1) return false;
    const TileAttribute *pairs = tile_op_get(product, TILE_ATTRIBUTE_PAIRS);
    sum->neighbours = pairs && pairs->integers[1] ? 4 : 2;
    return tile->type->extent[1] % (LANES_OF_ROW * sum->neighbours) == 0 &&
           !tile_op_integer(late->loop, TILE_ATTRIBUTE_ORDERED, 0) && !tile_op_integer(sum->reduce, TILE_ATTRIBUTE_ORDERED, 0);
}

/* What the loop begins with, in the first lane of each row; the others begin with nothing. */
static TileValue *build_first_lane(TileBuilder *b, TileValue *begin, const TileType *parts) {
    const int64_t one_column[] = {parts->extent[0], 1}, one_row[] = {1, LANES_OF_ROW}, lanes[] = {LANES_OF_ROW};
    TileValue *zero = tile_build_number(b, parts, 0);
    uint64_t bits;
    if (tile_value_bits(begin, &bits) && !bits) return zero;
    TileValue *lane = tile_build_iota(b, tile_type_tile(b->module->context, TILE_I32, 1, lanes), 0);
    TileValue *first = tile_build_binary(b, TILE_OP_EQ, lane, tile_build_integer(b, lane->type, 0));
    first = tile_build_broadcast(b, tile_build_reshape(b, first, 2, one_row), parts->extent);
    TileValue *all = tile_build_broadcast(b, tile_build_reshape(b, begin, 2, one_column), parts->extent);
    return tile_build_ternary(b, TILE_OP_SELECT, first, all, zero);
}

/* What a lane has of each row is summed in the iteration, and carried; lanes exchange it once, behind the loop. */
static void carry_lanes(Late *late, const RowSum *sum) {
    TileModule *module = late->context->module;
    TileOp *loop = late->loop, *add = sum->add, *reduce = sum->reduce;
    TileValue *result = &loop->results[sum->index], *carried = loop->regions[0].arguments[1 + sum->index];
    const TileType *tile = tile_op_operand(reduce, 0)->type;
    const int64_t pieces[] = {tile->extent[0], tile->extent[1] / (LANES_OF_ROW * sum->neighbours), LANES_OF_ROW, sum->neighbours};
    const int64_t one_column[] = {tile->extent[0], 1};
    TileBuilder b = tile_builder_before(module, add), before = tile_builder_before(module, loop), behind = tile_builder_before(module, loop->next);
    b.location = before.location = behind.location = reduce->location;
    TileValue *part = tile_build_reshape(&b, tile_op_operand(reduce, 0), 4, pieces);
    part = tile_build_reduce(&b, tile_build_reduce(&b, part, TILE_KIND_SUM, 1), TILE_KIND_SUM, 2);
    unsigned count, first = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
    TileValue *begin = build_first_lane(&before, tile_loop_carried(loop, sum->index), part->type);
    TileValue *total = tile_build_reduce(&behind, begin, TILE_KIND_SUM, 1);
    tile_op_set_operand(loop, first + sum->index, begin);
    tile_value_replace(result, total);
    tile_op_set_operand(total->op, 0, result);
    result->type = carried->type = part->type;
    TileValue *next, *factor = sum->factor;
    if (factor) factor = tile_build_broadcast(&b, tile_build_reshape(&b, factor, 2, one_column), part->type->extent);
    if (add->id == TILE_OP_FMA)
        next = tile_build_ternary(&b, TILE_OP_FMA, carried, factor, part);
    else
        next = tile_build_binary(&b, TILE_OP_ADD, factor ? tile_build_binary(&b, TILE_OP_MUL, carried, factor) : carried, part);
    tile_value_replace(&add->results[0], next);
    tile_op_erase(add);
    tile_op_erase(reduce);
    late->changed = true;
}

static void look_at_rows(Late *late, unsigned index) {
    RowSum sum;
    if (!find_row_sum(late, index, &sum)) return;
    tile_pass_remark(late->context, sum.reduce, TILE_DECISION_LATE_SUM, "the reduction", "the loop carries what each lane has of a row");
    carry_lanes(late, &sum);
}

/* ---- the pass ---- */

static void look_at_sums(Late *late, unsigned index) {
    const char *why = NULL;
    int64_t parts = 1, before = late->bytes;
    for (Sum sum; !why && parts == 1 && find_sum(late, index, &sum);) { /* along each of several axes */
        sum.bytes = late->bytes - before;
        why = obstacle(late, &sum);
        if (why == too_many) parts = count_parts(late, &sum);
        if (parts > 1) {
            reduce_lines_of_thread(late, &sum, parts);
            why = obstacle(late, &sum);
        }
        TileDecision decision = why ? TILE_DECISION_NOT_LATE_SUM : TILE_DECISION_LATE_SUM;
        tile_pass_remark(late->context, sum.reduce, decision, "the reduction", "%s",
                         why ? why : parts > 1 ? "lines of a thread are reduced in it, and tiles combined" : "tiles are combined in it");
        if (!why) move_behind(late, &sum);
    }
}

static void look_at_loop(Late *late) {
    for (unsigned i = 0; i < late->loop->result_count; i++) {
        look_at_sums(late, i);
        look_at_rows(late, i);
    }
}

static void visit(Late *late, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned r = 0; r < op->region_count; r++) visit(late, &op->regions[r]);
        if (op->id != TILE_OP_FOR || tile_loop_is_of_programs(op)) continue;
        late->loop = op;
        late->bytes = 0;
        look_at_loop(late);
    }
}

TileResult tile_pass_gpu_late_sums(TilePassContext *context, TileFunc *func) {
    Late late = {.context = context, .func = func};
    if (func->kind != TILE_FUNC_PHASE || !func->threads) return TILE_RESULT_UNCHANGED;
    visit(&late, &func->body);
    return late.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
