/* Purpose: replace loops over tiles with a small constant trip count by copies of their body. What the iterations load
 * then is seen together: neighbours become vectors, overlaps are loaded once, and what the loop carries stays in
 * registers.
 *
 * Before:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %least = const {value = -inf} : f32[8]
 *       grid %one (%p: i64) {
 *         %eight = const {value = 8} : i64
 *         %top = for %zero, %two, %one, %least : f32[8] (%k: i64, %before: f32[8]) {
 *           %v = load_tile %x, %k, %two, %zero, %eight {access = [range]} : f32[8]
 *           %w = max %before, %v : f32[8]
 *           yield %w
 *         }
 *         store_tile %y, %top, %zero, %one, %zero, %eight {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %two = const {value = 2} : i64
 *       %least = const {value = -inf} : f32[8]
 *       grid %one (%p: i64) {
 *         %eight = const {value = 8} : i64
 *         %0 = const {value = 0} : i64
 *         %v = load_tile %x, %0, %two, %zero, %eight {access = [range]} : f32[8]
 *         %w = max %least, %v : f32[8]
 *         %1 = const {value = 1} : i64
 *         %v.1 = load_tile %x, %1, %two, %zero, %eight {access = [range]} : f32[8]
 *         %w.1 = max %w, %v.1 : f32[8]
 *         store_tile %y, %w.1, %zero, %one, %zero, %eight {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Loops stay whose tiles are large, since the registers of all iterations may be live at once; those of scalars alone,
 * which LLVM unrolls; and those of products, which have stages.
 *
 * Needs: canonicalise, so that bounds are constants. Keeps: effects and their order, and the order of all sums. Cost:
 * linear in the ops that it makes, MOST_OPS for a loop. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/pass.h"

enum { MOST_ITERATIONS = 16, MOST_OPS = 192, MOST_ELEMENTS = 4096 };

typedef struct Body {
    unsigned ops;
    bool has_tiles, stays;
} Body;

static void look_at_value(const TileValue *value, Body *body) {
    if (!tile_type_is_tile(value->type)) return;
    body->has_tiles = true;
    if (tile_type_lanes(value->type) > MOST_ELEMENTS) body->stays = true;
}

static void look(TileOp *op, void *state) {
    Body *body = state;
    body->ops++;
    if (op->id == TILE_OP_DOT || op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) body->stays = true;
    for (unsigned i = 0; i < op->result_count; i++) look_at_value(&op->results[i], body);
}

static bool find_trip_count(const TileOp *loop, int64_t *lo, int64_t *step, int64_t *count) {
    int64_t hi, distance;
    if (!tile_value_integer(tile_op_operand(loop, 0), lo) || !tile_value_integer(tile_op_operand(loop, 1), &hi))
        return false;
    if (!tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), step) || *step < 1 || hi <= *lo) return false;
    if (__builtin_sub_overflow(hi, *lo, &distance)) return false;
    *count = (distance - 1) / *step + 1;
    return *count <= MOST_ITERATIONS;
}

/* The values that the loop carries, in front of an iteration and behind it. */
static void copy_iteration(TileModule *module, TileOp *loop, int64_t index, TileValue **values, TileMap *map) {
    TileBlock *body = &loop->regions[0];
    TileBuilder b = tile_builder_before(module, loop);
    b.location = loop->location;
    tile_map_set(map, body->arguments[0], tile_build_i64(&b, index));
    for (unsigned i = 0; i < loop->result_count; i++) tile_map_set(map, body->arguments[1 + i], values[i]);
    for (TileOp *op = body->first; op != body->last; op = op->next)
        tile_op_insert_before(tile_op_clone(module, op, map), loop);
    for (unsigned i = 0; i < loop->result_count; i++) {
        TileValue *yielded = tile_op_named_at(body->last, TILE_OPERAND_VALUES, i), *copy = tile_map_get(map, yielded);
        values[i] = copy ? copy : yielded;
    }
}

static bool unroll(TilePassContext *context, TileOp *loop) {
    int64_t lo, step, count;
    Body body = {0};
    if (!find_trip_count(loop, &lo, &step, &count)) return false;
    tile_block_walk(&loop->regions[0], look, &body);
    if (!body.has_tiles || body.stays || body.ops * count > MOST_OPS) return false;
    tile_pass_remark(context, loop, TILE_DECISION_UNROLLED, "the loop", "%lld iterations", (long long)count);
    TileValue **values = TILE_NEW_ARRAY(context->scratch, TileValue *, loop->result_count + 1);
    for (unsigned i = 0; i < loop->result_count; i++) values[i] = tile_loop_carried(loop, i);
    for (int64_t k = 0; k < count; k++) {
        TileMap map;
        tile_map_init(&map, context->scratch);
        copy_iteration(context->module, loop, lo + k * step, values, &map);
    }
    for (unsigned i = 0; i < loop->result_count; i++) tile_value_replace(&loop->results[i], values[i]);
    tile_op_erase(loop);
    return true;
}

/* Inner loops first: without them, an outer one may have few ops. */
static bool visit(TilePassContext *context, TileBlock *block) {
    bool changed = false;
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        for (unsigned i = 0; i < op->region_count; i++) changed |= visit(context, &op->regions[i]);
        if (op->id == TILE_OP_FOR && unroll(context, op)) changed = true;
    }
    return changed;
}

TileResult tile_pass_unroll(TilePassContext *context, TileFunc *func) {
    return visit(context, &func->body) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
