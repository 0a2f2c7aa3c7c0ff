/* Purpose: compute what goes through windows without masks where all of a program's windows lie inside of their tensors. Each position of a window has bounds of its
 * own, as `x[h + i, w + j] else 0` has; asked for one by one they are as many branches as loads, none of which is under way while another is waited for. One test
 * asks for all of them. Where it does not hold, as at the borders, everything is as before.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {readonly, noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %f = const {value = 0.0} : f32
 *       %u = load_tile %x, %begin, %one, %begin, %all {access = [range]} : f32[256]
 *       %a = fill %u, %f, %begin, %all {axes = [0]} : f32[256]
 *       %v = load_tile %x, %zero, %one, %zero, %all {access = [range]} : f32[256]
 *       %b = add %a, %v : f32[256]
 *       %w = load_tile %x, %end, %one, %zero, %end {access = [range]} : f32[256]
 *       %c = fill %w, %f, %zero, %end {axes = [0]} : f32[256]
 *       %d = add %b, %c : f32[256]
 *       store_tile %y, %d, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias, readonly}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %f = const {value = 0.0} : f32
 *       %0 = const {value = 0} : i64
 *       %1 = le %begin, %0 : bool
 *       %2 = const {value = 256} : i64
 *       %3 = ge %end, %2 : bool
 *       %4 = and %1, %3 : bool
 *       %d = if %4 : f32[256] {
 *         %5 = const {value = 0} : i64
 *         %6 = const {value = 256} : i64
 *         %7 = load_tile %x, %begin, %one, %5, %6 {access = [range]} : f32[256]
 *         %8 = load_tile %x, %zero, %one, %zero, %all {access = [range]} : f32[256]
 *         %9 = add %7, %8 : f32[256]
 *         %10 = const {value = 0} : i64
 *         %11 = const {value = 256} : i64
 *         %12 = load_tile %x, %end, %one, %10, %11 {access = [range]} : f32[256]
 *         %13 = add %9, %12 : f32[256]
 *         yield %13
 *       } {
 *         %u = load_tile %x, %begin, %one, %begin, %all {access = [range]} : f32[256]
 *         %a = fill %u, %f, %begin, %all {axes = [0]} : f32[256]
 *         %v = load_tile %x, %zero, %one, %zero, %all {access = [range]} : f32[256]
 *         %b = add %a, %v : f32[256]
 *         %w = load_tile %x, %end, %one, %zero, %end {access = [range]} : f32[256]
 *         %c = fill %w, %f, %zero, %end {axes = [0]} : f32[256]
 *         %d.1 = add %b, %c : f32[256]
 *         yield %d.1
 *       }
 *       store_tile %y, %d, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * Needs: gpu-threads. Keeps: tile form; each element is computed by the same ops. Cost: linear in the ops between the first of a window's loads and what is stored. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/masks.h"
#include "ptx/layouts/beside.h"
#include "ptx/passes.h"

#include <stdlib.h>

/* Without branches between them, what all positions load is in registers together. Measured: of 108 elements of a thread a stencil of 27 positions takes 0.84 of the time, of 120
 * the greatest of 15 neighbours 1.57 times as long. Positions of a row share what they load (gpu_load_beside). Elements of 16 bits that neither begin at vectors nor share a row are two
 * vectors for each position, of which parts are chosen: 0.88 to 2.2 times as long. */
enum { LEAST_LOADS = 2, MOST_OPS = 512, MOST_RESULTS = 16, MOST_ELEMENTS = 112, LEAST_BYTES = 4, VECTOR_BYTES = 16, VECTOR = 8, MOST_DISTANCE = 8 };

typedef struct Inside {
    TilePassContext *context;
    TileFunc *func;
    GpuMasks masks;
    const char *error;
    bool changed;
} Inside;

/* Ops that follow one another, all pure or loads of what nobody writes. */
typedef struct Segment {
    TileOp *first, *last;
    unsigned loads, ops; /* loads: with bounds */
    bool halves, shared; /* some are of 16 bits; and lie beside another one */
    bool begins;         /* before the tensor, one of them may: it is no range that ends at its end alone */
    int64_t elements;    /* that a thread loads */
    const TileValue *tensor;
} Segment;

/* ---- what a segment is ---- */

static bool reads_constant(const Inside *inside, const TileOp *op) {
    const TileValue *tensor = op->id == TILE_OP_LOAD_TILE ? tile_op_operand(op, 0) : NULL;
    return tensor && tensor->block == &inside->func->body && inside->func->parameters[tensor->index].readonly;
}

static bool may_be_within(const Inside *inside, const TileOp *op) {
    return !op->region_count && op->result_count == 1 && (tile_op_is_pure(op) || reads_constant(inside, op));
}

/* The least distance along its row to a load that lies beside it, before `end`; MOST_DISTANCE: there is none. */
static int64_t nearest(const Inside *inside, const TileOp *load, const TileOp *first, const TileOp *end) {
    int64_t least = MOST_DISTANCE, distance;
    for (const TileOp *op = first; op && op != end; op = op->next)
        if (op != load && gpu_lies_beside(tile_pass_indices(inside->context, inside->func), load, op, &distance) && llabs(distance) < least)
            least = llabs(distance);
    return least;
}

/* Does the load of elements of 16 bits begin at vectors, or share them with others of its row? Else it takes two, of which it chooses parts. */
static bool takes_vectors(const Inside *inside, const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    unsigned last = tile_access_read(load, indices) - 1;
    TileIndexRange range = tile_index_range(tile_pass_indices(inside->context, inside->func), indices[last].first);
    if (!range.because && range.multiple % VECTOR == 0) return true;
    return gpu_has_beside(tile_pass_indices(inside->context, inside->func), load, MOST_DISTANCE);
}

/* A load by ranges alone, whose bounds may leave something out. */
static bool has_bounds(const Inside *inside, const TileOp *op) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    if (!reads_constant(inside, op) || !gpu_mask_is_large(op) || op->attribute_count != 1 || !gpu_access_has_test(op)) return false;
    if (tile_scalar_bytes(op->results[0].type->scalar) < LEAST_BYTES && !takes_vectors(inside, op)) return false;
    for (unsigned d = tile_access_read(op, indices); d-- > 0;)
        if (indices[d].kind == TILE_ACCESS_GATHER) return false;
    return true;
}

static bool may_begin_before(const TileOp *load) {
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    int64_t lo;
    for (unsigned d = tile_access_read(load, indices); d-- > 0;)
        if (indices[d].kind == TILE_ACCESS_RANGE && !tile_value_integer(indices[d].lo, &lo)) return true;
    return false;
}

/* How many elements a thread loads for it that it has not loaded for another position of the row; two of 16 bits are a register. */
static int64_t loaded(const Inside *inside, const TileOp *load, const TileOp *first) {
    int64_t bytes = tile_scalar_bytes(load->results[0].type->scalar), elements = tile_type_lanes(load->results[0].type) / inside->func->threads;
    int64_t run = elements * bytes < VECTOR_BYTES ? elements : VECTOR_BYTES / bytes, distance = nearest(inside, load, first, load);
    if (distance < run) elements = elements / run * distance;
    return bytes < LEAST_BYTES ? elements / 2 : elements;
}

static Segment segment_from(const Inside *inside, TileOp *first) {
    Segment segment = {.first = first, .tensor = tile_op_operand(first, 0)};
    for (TileOp *op = first; op && may_be_within(inside, op); op = op->next) {
        bool bounded = has_bounds(inside, op) && tile_op_operand(op, 0) == segment.tensor;
        segment.loads += bounded;
        segment.begins |= bounded && may_begin_before(op);
        segment.halves |= bounded && tile_scalar_bytes(op->results[0].type->scalar) < LEAST_BYTES;
        segment.shared |= bounded && gpu_has_beside(tile_pass_indices(inside->context, inside->func), op, MOST_DISTANCE);
        if (has_bounds(inside, op)) segment.elements += loaded(inside, op, first);
        segment.last = op;
        segment.ops++;
    }
    return segment;
}

/* ---- what stands in front of it ---- */

static bool is_behind(const TileOp *op, const TileOp *first) {
    for (const TileOp *next = first; next; next = next->next)
        if (next == op) return true;
    return false;
}

/* Numbers, of which the bounds are computed, come in front of the segment, unless tiles are reduced to them. */
static void bring_numbers(Segment *segment) {
    TileOp *end = segment->last->next;
    for (TileOp *op = segment->first, *next; op != end; op = next) {
        next = op->next;
        bool moves = !tile_type_is_tile(op->results[0].type) && op != segment->first;
        for (unsigned i = 0; moves && i < op->operand_count; i++) {
            const TileOp *source = tile_op_operand(op, i)->op;
            moves = !source || source->block != segment->first->block || !is_behind(source, segment->first);
        }
        if (!moves) continue;
        if (op == segment->last) segment->last = op->previous;
        tile_op_detach(op);
        tile_op_insert_before(op, segment->first);
    }
}

static TileValue *build_test(Inside *inside, const Segment *segment) {
    TileValue *holds = NULL;
    for (TileOp *op = segment->first; op != segment->last->next; op = op->next)
        if (has_bounds(inside, op)) holds = gpu_access_build_test(&inside->masks, op, segment->first, holds);
    return holds;
}

/* ---- both versions ---- */

static bool is_used_behind(const TileValue *value, const Segment *segment) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        while (user->block != segment->first->block) user = user->block->op;
        const TileOp *behind = segment->last->next;
        while (behind && behind != user) behind = behind->next;
        if (behind) return true;
    }
    return false;
}

/* The segment once more, at the end of the block, with all lanes. */
static void copy_whole(Inside *inside, const Segment *segment, const TileValue *holds, TileBlock *block, TileMap *map) {
    TileModule *module = inside->context->module;
    TileBuilder b = tile_builder_at_end(module, block);
    for (TileOp *op = segment->first; op != segment->last->next; op = op->next) {
        if (gpu_fill_is_idle_where(op, holds)) {
            TileValue *filled = tile_op_operand(op, 0), *copy = tile_map_get(map, filled);
            tile_map_set(map, &op->results[0], copy ? copy : filled);
            continue;
        }
        TileOp *copy = tile_op_clone(module, op, map);
        copy->results[0].name = NULL;
        tile_builder_insert(&b, copy);
        if (has_bounds(inside, op)) gpu_access_make_whole(&inside->masks, copy);
    }
}

static bool build_versions(Inside *inside, Segment *segment) {
    TileModule *module = inside->context->module;
    TileValue *results[MOST_RESULTS], *values[MOST_RESULTS];
    const TileType *types[MOST_RESULTS];
    unsigned count = 0;
    for (TileOp *op = segment->first; op != segment->last->next; op = op->next) {
        if (!is_used_behind(&op->results[0], segment)) continue;
        if (count == MOST_RESULTS) return false;
        types[count] = op->results[0].type;
        results[count++] = &op->results[0];
    }
    TileValue *holds = build_test(inside, segment);
    if (!holds || !count) return false;
    TileBuilder b = tile_builder_before(module, segment->first);
    TileOp *choice = tile_build_if(&b, holds, types, count);
    TileMap map;
    tile_map_init(&map, inside->context->scratch);
    copy_whole(inside, segment, holds, &choice->regions[0], &map);
    TileBuilder then = tile_builder_at_end(module, &choice->regions[0]), otherwise = tile_builder_at_end(module, &choice->regions[1]);
    for (unsigned i = 0; i < count; i++) {
        TileValue *copy = tile_map_get(&map, results[i]);
        values[i] = copy ? copy : results[i];
    }
    tile_build_end(&then, TILE_OP_YIELD, values, count);
    TileOp *end = segment->last->next;
    for (TileOp *op = segment->first, *next; op != end; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_builder_insert(&otherwise, op);
    }
    for (unsigned i = 0; i < count; i++) {
        choice->results[i].name = results[i]->name;
        tile_value_replace(results[i], &choice->results[i]);
        for (TileUse *use = choice->results[i].first_use, *next; use; use = next) {
            next = use->next;
            if (tile_block_inside(use->user->block, &choice->regions[1])) tile_op_set_operand(use->user, use->index, results[i]);
        }
    }
    tile_build_end(&otherwise, TILE_OP_YIELD, results, count);
    const char *errors[] = {b.error, then.error, otherwise.error, inside->masks.b.error};
    for (unsigned i = 0; i < 4; i++)
        if (errors[i]) inside->error = errors[i];
    tile_pass_remark(inside->context, choice, TILE_DECISION_INSIDE, "what goes through windows", "%u loads", segment->loads);
    return true;
}

/* Is it worth it? */
static bool is_window(const Segment *segment) {
    if (segment->halves && !segment->shared) return false; /* measured: 1.06 times as long for five rows of 16 bits, and a power of their sum */
    return segment->loads >= LEAST_LOADS && segment->begins && segment->ops <= MOST_OPS && segment->elements <= MOST_ELEMENTS;
}

static void visit_block(Inside *inside, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) visit_block(inside, &op->regions[i]);
        if (!has_bounds(inside, op)) continue;
        Segment segment = segment_from(inside, op);
        next = segment.last->next;
        if (!is_window(&segment)) continue;
        bring_numbers(&segment);
        inside->changed = true;
        build_versions(inside, &segment);
    }
}

TileResult tile_pass_gpu_inside(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Inside inside = {.context = context, .func = func};
    gpu_masks_init(&inside.masks, context, func);
    visit_block(&inside, &func->body);
    if (inside.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-inside: %s", inside.error);
    return inside.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
