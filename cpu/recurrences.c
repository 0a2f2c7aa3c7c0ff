/* Purpose: turn squares of elements in registers where a loop goes along rows that are lanes. A loop over the elements of a row in which each
 * iteration needs the one before, as in a filter, a checksum or a compensated sum, has rows as lanes: what an iteration reads of them is apart
 * in memory, and would be gathered, from lines that the next iteration needs again. So several iterations follow one another as code: what they
 * read of a row are neighbours, a group, which is read by full vectors (vector_group.c). Stores likewise.
 *
 * Run: --passes=cpu-recurrences,canonicalise,cse,dce --target=avx2
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %row = const {value = 512} : i64
 *       %none = const {value = 0.0} : f64
 *       loop %zero, %eight {loop = parallel, extent = 8} (%i: i64) {
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %s = loop %zero, %n, %none {loop = sequential, extent = 4096} : f64 (%k: i64, %t: f64) {
 *           %b = mul %k, %eight : i64
 *           %q = ptr_add %p, %b : ptr<global>
 *           %v = load %q : f64
 *           %u = fma %t, %t, %v : f64
 *           yield %u
 *         }
 *         %c = mul %i, %eight : i64
 *         %o = ptr_add %y, %c : ptr<global>
 *         store %s, %o
 *         yield
 *       }
 *       return
 *     }
 * After:
 * Loops of few iterations stay, as does what is left over of others; loops that access with masks what would be turned, which is no group; and those
 * in which more is turned than registers hold. Each iteration does what it did, in the same order.
 * Needs: nothing. Keeps: every result. Cost: linear in the copied ops, of which there are MOST_OPS at most for each loop. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"

enum {
    WORD_BYTES = 4, /* narrower elements are moved by words */
    MOST_OPS = 512, /* compiling takes time */
    MOST_TURNED = 2, /* accesses whose elements are in registers at a time */
    FIRST_CARRIED = 2, /* operand of a loop */
};

typedef struct Recurrence {
    TilePassContext *context;
    TileModule *module;
    TileOp *lanes, *steps; /* the loop over rows, and the one along them in it */
    int64_t together;      /* how many iterations */
    unsigned turned, masked, ops, bytes;
} Recurrence;

/* ---- which loops ---- */

static bool is_access(const TileOp *op) { return op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE; }

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD;
}

static TileScalar scalar_of(const TileOp *op) {
    return op->id == TILE_OP_LOAD ? op->results[0].type->scalar : tile_op_operand(op, 0)->type->scalar;
}

/* Are the elements of neighbouring lanes apart, and those of the next iteration neighbours? */
static bool is_turned(const TileOp *op, TileStrides *of_lanes, TileStrides *of_steps) {
    TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
    int64_t bytes = tile_scalar_bytes(scalar_of(op));
    TileSlope along = tile_stride_of(of_steps, address), across = tile_stride_of(of_lanes, address);
    bool near = !across.factor && across.step >= -2 * bytes && across.step <= 2 * bytes;
    return along.kind == TILE_SLOPE_AFFINE && !along.factor && along.step == bytes && across.kind == TILE_SLOPE_AFFINE && !near;
}

/* Counts what the loop has; false: it cannot be copied. Of strides that are not known the likely ones decide: they matter for the time alone. */
static bool count(Recurrence *x) {
    TileStrides of_lanes, of_steps;
    tile_strides_init(&of_lanes, x->context, x->lanes);
    tile_strides_init(&of_steps, x->context, x->steps);
    of_lanes.assumes = of_steps.assumes = true;
    for (const TileOp *op = x->steps->regions[0].first; op != x->steps->regions[0].last; op = op->next, x->ops++) {
        if (!is_access(op) && !is_simple(op)) return false;
        if (!is_access(op) || !is_turned(op, &of_lanes, &of_steps)) continue;
        if (tile_op_has_part(op, TILE_PARTS_MASK))
            x->masked++;
        else
            x->turned++;
        if (tile_scalar_bytes(scalar_of(op)) > x->bytes) x->bytes = tile_scalar_bytes(scalar_of(op));
    }
    return x->turned + x->masked != 0;
}

/* What keeps iterations from following one another as code; NULL: nothing does. */
static const char *obstacle(const Recurrence *x) {
    if (!x->turned) return "its accesses have masks";
    if (x->turned > MOST_TURNED) return "more of its accesses are apart in memory than registers have squares for";
    if (tile_loop_extent(x->lanes) < x->together) return "a tile has less than one square of elements";
    return x->ops * (unsigned)x->together > MOST_OPS ? "copies of its body for each iteration of a square would be too long" : NULL;
}

static bool decide(Recurrence *x) {
    if (!count(x)) return false;
    x->together = x->context->target->vector_bytes / x->bytes / (x->turned > 1 ? 2 : 1);
    const char *reason = obstacle(x);
    if (reason)
        tile_pass_remark(x->context, x->steps, TILE_DECISION_NOT_TURNED, "the loop", "%s", reason);
    else
        tile_pass_remark(x->context, x->steps, TILE_DECISION_TURNED, "the loop", "%lld iterations together", (long long)x->together);
    return !reason;
}

/* ---- copies ---- */

/* An iteration at the index; `carried` are its values, and become those of the next one. */
static void copy_iteration(Recurrence *x, TileBuilder *b, TileValue *index, TileValue **carried) {
    const TileBlock *body = &x->steps->regions[0];
    TileMap map;
    tile_map_init(&map, x->context->scratch);
    tile_map_set(&map, body->arguments[0], index);
    for (unsigned i = 1; i < body->argument_count; i++) tile_map_set(&map, body->arguments[i], carried[i - 1]);
    for (const TileOp *op = body->first; op != body->last; op = op->next) tile_op_append(tile_op_clone(x->module, op, &map), b->block);
    for (unsigned i = 0; i < body->last->operand_count; i++) {
        TileValue *value = tile_op_operand(body->last, i), *copy = tile_map_get(&map, value);
        carried[i] = copy ? copy : value;
    }
}

/* The loop over squares, in front of that over iterations, which is left with the others. */
static void make_squares(Recurrence *x) {
    TileOp *steps = x->steps;
    TileBuilder b = tile_builder_before(x->module, steps);
    b.location = steps->location;
    unsigned carried = steps->result_count;
    TileValue *lo = tile_op_operand(steps, 0), *hi = tile_op_operand(steps, 1), *each = tile_build_i64(&b, x->together);
    TileValue *none = tile_build_i64(&b, 0), **values = TILE_NEW_ARRAY(x->context->scratch, TileValue *, carried + 1);
    TileValue *squares = tile_build_binary(&b, TILE_OP_DIV, tile_build_binary(&b, TILE_OP_MAX, tile_build_binary(&b, TILE_OP_SUB, hi, lo), none), each);
    TileValue *end = tile_build_binary(&b, TILE_OP_ADD, lo, tile_build_binary(&b, TILE_OP_MUL, squares, each));
    for (unsigned i = 0; i < carried; i++) values[i] = tile_loop_carried(steps, i);
    TileOp *loop = tile_build_loop(&b, TILE_LOOP_KIND_SEQUENTIAL, none, squares, tile_loop_extent(steps), values, carried);
    TileBlock *body = &loop->regions[0];
    TileBuilder inner = tile_builder_at_end(x->module, body);
    inner.location = steps->location;
    TileValue *first = tile_build_binary(&inner, TILE_OP_ADD, lo, tile_build_binary(&inner, TILE_OP_MUL, body->arguments[0], each));
    for (unsigned i = 0; i < carried; i++) values[i] = body->arguments[1 + i];
    for (int64_t k = 0; k < x->together; k++) {
        TileValue *index = k ? tile_build_binary(&inner, TILE_OP_ADD, first, tile_build_i64(&inner, k)) : first;
        copy_iteration(x, &inner, index, values);
    }
    tile_build_end(&inner, TILE_OP_YIELD, values, carried);
    tile_op_set_operand(steps, 0, end);
    for (unsigned i = 0; i < carried; i++) tile_op_set_operand(steps, FIRST_CARRIED + i, tile_op_result(loop, i));
}

TileResult tile_pass_cpu_recurrences(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (!context->target || context->target->scalable) return TILE_RESULT_UNCHANGED;
    TileOps loops = tile_find_each(&func->body, TILE_OP_LOOP, context->scratch);
    for (size_t i = 0; i < loops.count; i++) {
        TileOp *steps = loops.items[i], *lanes = steps->block->op;
        if (tile_loop_kind(steps) != TILE_LOOP_KIND_SEQUENTIAL) continue;
        if (!lanes || lanes->id != TILE_OP_LOOP || lanes->result_count || tile_loop_kind(lanes) != TILE_LOOP_KIND_PARALLEL) continue;
        Recurrence x = {.context = context, .module = context->module, .lanes = lanes, .steps = steps, .bytes = WORD_BYTES};
        if (!decide(&x)) continue;
        make_squares(&x);
        changed = true;
    }
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
