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
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %eight = const {value = 8} : i64
 *       %row = const {value = 512} : i64
 *       %none = const {value = 0.0} : f64
 *       loop %zero, %eight {loop = parallel, extent = 8} (%i: i64) {
 *         %a = mul %i, %row : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %0 = const {value = 4} : i64
 *         %1 = max %n, %zero : i64
 *         %2 = div %1, %0 : i64
 *         %3 = mul %2, %0 : i64
 *         %4 = loop %zero, %2, %none {loop = sequential, extent = 4096} : f64 (%5: i64, %none.1: f64) {
 *           %6 = mul %5, %0 : i64
 *           %7 = const {value = 32} : i64
 *           %b = mul %5, %7 : i64
 *           %q = ptr_add %p, %b : ptr<global>
 *           %v = load %q : f64
 *           %u = fma %none.1, %none.1, %v : f64
 *           %8 = const {value = 1} : i64
 *           %9 = add %6, %8 : i64
 *           %b.1 = mul %9, %eight : i64
 *           %q.1 = ptr_add %p, %b.1 : ptr<global>
 *           %v.1 = load %q.1 : f64
 *           %u.1 = fma %u, %u, %v.1 : f64
 *           %10 = const {value = 2} : i64
 *           %11 = add %6, %10 : i64
 *           %b.2 = mul %11, %eight : i64
 *           %q.2 = ptr_add %p, %b.2 : ptr<global>
 *           %v.2 = load %q.2 : f64
 *           %u.2 = fma %u.1, %u.1, %v.2 : f64
 *           %12 = const {value = 3} : i64
 *           %13 = add %6, %12 : i64
 *           %b.3 = mul %13, %eight : i64
 *           %q.3 = ptr_add %p, %b.3 : ptr<global>
 *           %v.3 = load %q.3 : f64
 *           %u.3 = fma %u.2, %u.2, %v.3 : f64
 *           yield %u.3
 *         }
 *         %s = loop %3, %n, %4 {loop = sequential, extent = 4096} : f64 (%k: i64, %t: f64) {
 *           %b.4 = mul %k, %eight : i64
 *           %q.4 = ptr_add %p, %b.4 : ptr<global>
 *           %v.4 = load %q.4 : f64
 *           %u.4 = fma %t, %t, %v.4 : f64
 *           yield %u.4
 *         }
 *         %c = mul %i, %eight : i64
 *         %o = ptr_add %y, %c : ptr<global>
 *         store %s, %o
 *         yield
 *       }
 *       return
 *     }
 * Loops of few iterations stay, as does what is left over of others; loops that access with masks what would be turned, which is no group; and those
 * in which more is turned than registers hold. Each iteration does what it did, in the same order.
 * Needs: nothing. Keeps: machine form, every result. Cost: linear in the copied ops, of which there are MOST_OPS at most for each loop. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"
#include <stdlib.h>

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

/* Counts what the loop has; false: it cannot be copied. Of strides that are not known the likely ones decide: they matter for the time alone. */
static bool count(Recurrence *x, const TileBlock *body) {
    TileStrides of_lanes, of_steps;
    tile_strides_init(&of_lanes, x->context, x->lanes);
    tile_strides_init(&of_steps, x->context, x->steps);
    of_lanes.assumes = of_steps.assumes = true;
    for (const TileOp *op = body->first; op != body->last; op = op->next, x->ops++) {
        if (!is_access(op) && !is_simple(op)) return false;
        if (!is_access(op) || !tile_access_is_turned(op, &of_steps, &of_lanes)) continue;
        if (tile_op_has_part(op, TILE_PARTS_MASK))
            x->masked++;
        else
            x->turned++;
        if (tile_scalar_bytes(tile_access_scalar(op)) > x->bytes) x->bytes = tile_scalar_bytes(tile_access_scalar(op));
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

/* ---- what rows keep in memory ---- */

/* The buffer or the parameter that the address is derived from. */
static const TileValue *root_of(const TileValue *pointer) {
    for (const TileOp *add; (add = tile_value_def(pointer, TILE_OP_PTR_ADD));) pointer = tile_op_operand(add, 0);
    return pointer;
}

static bool is_alone(const TileValue *root) {
    if (root->op) return root->op->id == TILE_OP_BUFFER;
    return !root->block->op && root->block->func->parameters[root->index].noalias;
}

static bool is_known(const TileValue *root) { return root->op ? root->op->id == TILE_OP_BUFFER : !root->block->op; }

/* May what is accessed be exchanged with the store: is it another memory, or the row's own element, at one place for all iterations? */
static bool may_pass(TileStrides *of_lanes, TileStrides *of_steps, const TileOp *op, const TileOp *store) {
    TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS), *to = tile_op_named(store, TILE_OPERAND_ADDRESS);
    const TileValue *from = root_of(address), *root = root_of(to);
    if (from != root) return is_known(from) && is_known(root) && (is_alone(from) || is_alone(root));
    TileSlope across = tile_stride_of(of_lanes, to), along = tile_stride_of(of_steps, to);
    bool own = across.kind == TILE_SLOPE_AFFINE && !across.factor && llabs(across.step) >= (int64_t)tile_scalar_bytes(tile_access_scalar(store));
    if (address == to && own && along.kind == TILE_SLOPE_UNIFORM) return tile_access_scalar(op) == tile_access_scalar(store) && op->block == store->block;
    return op == store && tile_access_is_turned(store, of_steps, of_lanes) && across.factor;
}

/* May the rows be taken one by one, each for several iterations? Then what a row stores is read by itself alone. */
static bool rows_are_apart(const Recurrence *x) {
    TileStrides of_lanes, of_steps;
    tile_strides_init(&of_lanes, x->context, x->lanes);
    tile_strides_init(&of_steps, x->context, x->steps);
    for (const TileOp *store = x->lanes->regions[0].first; store; store = store->next) {
        if (store->id != TILE_OP_STORE) continue;
        if (tile_op_has_part(store, TILE_PARTS_MASK)) return false;
        for (unsigned b = 0; b < 2; b++)
            for (const TileOp *op = (b ? x->lanes : x->steps)->regions[0].first; op; op = op->next)
                if (is_access(op) && (!may_pass(&of_lanes, &of_steps, op, store) || (root_of(tile_op_named(op, TILE_OPERAND_ADDRESS)) == root_of(tile_op_named(store, TILE_OPERAND_ADDRESS)) && tile_op_has_part(op, TILE_PARTS_MASK))))
                    return false;
    }
    return true;
}

/* The only loop of the body, over rows, from the same to the same; NULL: there is more than what is computed for it. */
static TileOp *rows_of(const TileOp *steps) {
    TileOp *rows = NULL;
    if (steps->result_count || !tile_value_is_integer(tile_op_named(steps, TILE_OPERAND_STEP), 1)) return NULL;
    for (TileOp *op = steps->regions[0].first; op != steps->regions[0].last; op = op->next) {
        bool loop = op->id == TILE_OP_LOOP && !op->result_count && tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL;
        if (loop && !rows)
            rows = op;
        else if (op->id != TILE_OP_LOAD && !is_simple(op))
            return NULL;
    }
    bool same = rows && tile_value_outside(tile_op_operand(rows, 0), steps) && tile_value_outside(tile_op_operand(rows, 1), steps);
    return same ? rows : NULL;
}

/* What a row keeps: an element that it loads and stores. */
static bool is_kept(const Recurrence *x, const TileOp *store) {
    for (const TileOp *op = x->lanes->regions[0].first; op; op = op->next)
        if (op->id == TILE_OP_LOAD && tile_op_named(op, TILE_OPERAND_ADDRESS) == tile_op_named(store, TILE_OPERAND_ADDRESS)) return true;
    return false;
}

/* A row's iteration: `kept` are the elements that are in registers, by the addresses at which iterations load and store them. */
static void copy_row(Recurrence *x, TileBlock *to, TileMap *map, TileMap *kept, bool last) {
    const TileBlock *body = &x->lanes->regions[0];
    for (const TileOp *op = body->first; op != body->last; op = op->next) {
        TileValue *address = is_access(op) ? tile_op_named(op, TILE_OPERAND_ADDRESS) : NULL;
        TileValue *known = address ? tile_map_get(kept, address) : NULL;
        if (op->id == TILE_OP_LOAD && known) {
            tile_map_set(map, &op->results[0], known);
            continue;
        }
        if (op->id == TILE_OP_STORE && is_kept(x, op)) {
            TileValue *value = tile_op_operand(op, 0), *copy = tile_map_get(map, value);
            tile_map_set(kept, address, copy ? copy : value);
            if (!last) continue;
        }
        tile_op_append(tile_op_clone(x->module, op, map), to);
    }
}

/* Squares of rows and iterations, in front of the loop, which is left with the other iterations. */
static void make_squares_of_rows(Recurrence *x) {
    TileOp *steps = x->steps;
    TileBuilder b = tile_builder_before(x->module, steps);
    TileValue *lo = tile_op_operand(steps, 0), *hi = tile_op_operand(steps, 1), *each = tile_build_i64(&b, x->together), *none = tile_build_i64(&b, 0);
    TileValue *squares = tile_build_binary(&b, TILE_OP_DIV, tile_build_binary(&b, TILE_OP_MAX, tile_build_binary(&b, TILE_OP_SUB, hi, lo), none), each);
    TileValue *end = tile_build_binary(&b, TILE_OP_ADD, lo, tile_build_binary(&b, TILE_OP_MUL, squares, each));
    TileOp *loop = tile_build_for(&b, lo, end, each, NULL, 0);
    TileBuilder outer = tile_builder_at_end(x->module, &loop->regions[0]);
    outer.location = steps->location;
    TileMap *maps = TILE_NEW_ARRAY(x->context->scratch, TileMap, x->together), kept;
    for (int64_t k = 0; k < x->together; k++) {
        TileValue *first = loop->regions[0].arguments[0];
        tile_map_init(&maps[k], x->context->scratch);
        tile_map_set(&maps[k], steps->regions[0].arguments[0], k ? tile_build_binary(&outer, TILE_OP_ADD, first, tile_build_i64(&outer, k)) : first);
        for (const TileOp *op = steps->regions[0].first; op != steps->regions[0].last; op = op->next)
            if (op != x->lanes) tile_op_append(tile_op_clone(x->module, op, &maps[k]), outer.block);
    }
    outer.location = x->lanes->location;
    TileOp *rows = tile_build_loop(&outer, TILE_LOOP_KIND_PARALLEL, tile_op_operand(x->lanes, 0), tile_op_operand(x->lanes, 1), tile_loop_extent(x->lanes), NULL, 0);
    tile_map_init(&kept, x->context->scratch);
    for (int64_t k = 0; k < x->together; k++) {
        tile_map_set(&maps[k], x->lanes->regions[0].arguments[0], rows->regions[0].arguments[0]);
        copy_row(x, &rows->regions[0], &maps[k], &kept, k + 1 == x->together);
    }
    TileBuilder inner = tile_builder_at_end(x->module, &rows->regions[0]);
    tile_build_end(&inner, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&outer, TILE_OP_YIELD, NULL, 0);
    tile_op_set_operand(steps, 0, end);
}

/* ---- the pass ---- */

static bool try_loop(TilePassContext *context, TileOp *steps) {
    TileOp *lanes = steps->block->op;
    Recurrence x = {.context = context, .module = context->module, .lanes = lanes, .steps = steps, .bytes = WORD_BYTES};
    if (tile_loop_kind(steps) != TILE_LOOP_KIND_SEQUENTIAL || !lanes || lanes->id != TILE_OP_LOOP || lanes->result_count) return false;
    if (tile_loop_kind(lanes) != TILE_LOOP_KIND_PARALLEL || !count(&x, &steps->regions[0]) || !decide(&x)) return false;
    make_squares(&x);
    return true;
}

static bool try_rows(TilePassContext *context, TileOp *steps) {
    Recurrence x = {.context = context, .module = context->module, .lanes = rows_of(steps), .steps = steps, .bytes = WORD_BYTES};
    if (!x.lanes || !count(&x, &x.lanes->regions[0]) || !rows_are_apart(&x) || !decide(&x)) return false;
    make_squares_of_rows(&x);
    return true;
}

TileResult tile_pass_cpu_recurrences(TilePassContext *context, TileFunc *func) {
    bool changed = false;
    if (!context->target || context->target->scalable) return TILE_RESULT_UNCHANGED;
    TileOps loops = tile_find_each(&func->body, TILE_OP_LOOP, context->scratch);
    TileOps fors = tile_find_each(&func->body, TILE_OP_FOR, context->scratch);
    for (size_t i = 0; i < loops.count; i++) changed |= try_loop(context, loops.items[i]);
    for (size_t i = 0; i < fors.count; i++) changed |= try_rows(context, fors.items[i]);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
