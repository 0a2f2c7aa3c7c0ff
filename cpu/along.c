/* Purpose: go along whole rows. Where rows are longer than a tile, each program takes the first piece of all its rows, then
 * the second one. What memory then sees are short streams, each of which begins anew: it fetches little ahead, and at sizes
 * that no cache holds a core gets half of what it gets of one stream. Where pieces of a row only add to the row's own sums,
 * the loop over the pieces moves into the loop over the rows, so that one row after the other is read from its begin to its
 * end.
 *
 * Run: --passes=cpu-along --target=avx512
 * Before:
 *     func phase machine @k.0(%a: ptr<global>, %stride: i64, %m: i64, %k: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %piece = const {value = 1024} : i64
 *       %none = const {value = 0.0} : f32
 *       %b = buffer {bytes = 16, align = 64} : ptr<scratch>
 *       for %zero, %k, %piece (%j: i64) {
 *         %left = sub %k, %j : i64
 *         %n = min %left, %piece : i64
 *         %o = mul %j, %four : i64
 *         %p = ptr_add %a, %o : ptr<global>
 *         loop %zero, %m {loop = parallel, extent = 4} (%i: i64) {
 *           %d = mul %i, %stride : i64
 *           %row = ptr_add %p, %d : ptr<global>
 *           %s = loop %zero, %n, %none {loop = reduce, extent = 1024, combine = [sum], order = stripes} : f32 (%c: i64, %t: f32) {
 *             %e = mul %c, %four : i64
 *             %q = ptr_add %row, %e : ptr<global>
 *             %v = load %q : f32
 *             yield %v
 *           }
 *           %f = mul %i, %four : i64
 *           %r = ptr_add %b, %f : ptr<scratch>
 *           %old = load %r : f32
 *           %new = add %old, %s : f32
 *           store %new, %r
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%a: ptr<global>, %stride: i64, %m: i64, %k: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %piece = const {value = 1024} : i64
 *       %none = const {value = 0.0} : f32
 *       %b = buffer {bytes = 16, align = 64} : ptr<scratch>
 *       loop %zero, %m {loop = parallel, extent = 4} (%i: i64) {
 *         for %zero, %k, %piece (%j: i64) {
 *           %left = sub %k, %j : i64
 *           %n = min %left, %piece : i64
 *           %o = mul %j, %four : i64
 *           %p = ptr_add %a, %o : ptr<global>
 *           %d = mul %i, %stride : i64
 *           %row = ptr_add %p, %d : ptr<global>
 *           %s = loop %zero, %n, %none {loop = reduce, extent = 1024, combine = [sum], order = stripes} : f32 (%c: i64, %t: f32) {
 *             %e = mul %c, %four : i64
 *             %q = ptr_add %row, %e : ptr<global>
 *             %v = load %q : f32
 *             yield %v
 *           }
 *           %f = mul %i, %four : i64
 *           %r = ptr_add %b, %f : ptr<scratch>
 *           %old = load %r : f32
 *           %new = add %old, %s : f32
 *           store %new, %r
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * Needs: cse, since a point is loaded and stored at the same address. Keeps: the updates of each row, in their order. Cost: linear. */
#include "cpu/buffers.h"
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

typedef struct Along {
    TilePassContext *context;
    TileOp *pieces, *rows;
    bool changed;
} Along;

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST || op->id == TILE_OP_PTR_ADD ||
           op->id == TILE_OP_LOAD;
}

/* Is it the address of a point that each row has for itself, whichever the piece is? */
static bool is_point(const Along *x, const TileValue *address, int64_t bytes) {
    bool found = false;
    for (; address->op && address->op->id == TILE_OP_PTR_ADD; address = tile_op_operand(address->op, 0)) {
        const TileValue *offset = tile_op_operand(address->op, 1);
        if (tile_value_outside(offset, x->pieces)) continue;
        const TileOp *product = tile_value_def(offset, TILE_OP_MUL);
        int64_t scale = 1;
        const TileValue *index = product && tile_value_integer(tile_op_operand(product, 1), &scale) ? tile_op_operand(product, 0) : offset;
        if (found || index != x->rows->regions[0].arguments[0] || scale < bytes) return false;
        found = true;
    }
    return found;
}

/* Does the op of a row's body update a point of the row, and nothing else does anything with the buffer meanwhile? */
static bool is_update(const Along *x, const TileOp *store) {
    TileValue *address = tile_op_named(store, TILE_OPERAND_ADDRESS);
    const TileValue *buffer = tile_buffer_of(address);
    int64_t bytes = tile_scalar_bytes(tile_op_operand(store, 0)->type->scalar);
    if (!buffer || tile_buffer_uses(buffer, x->pieces) != 2 || !is_point(x, address, bytes)) return false;
    for (const TileOp *op = store->block->first; op != store; op = op->next)
        if (op->id == TILE_OP_LOAD && tile_op_named(op, TILE_OPERAND_ADDRESS) == address) return true;
    return false;
}

static bool depends(const TileValue *value, const TileOp *inside, const TileValue *on) {
    if (value == on) return true;
    if (!value->op || tile_value_outside(value, inside)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (depends(tile_op_operand(value->op, i), inside, on)) return true;
    return false;
}

/* Does the loop read elements of the row of this piece, one after the other? */
static bool goes_along(const Along *x, TileOp *loop) {
    TileStrides strides;
    bool found = false;
    if (loop->id != TILE_OP_LOOP || !tile_loop_in_stripes(loop)) return false;
    tile_strides_init(&strides, x->context, loop);
    strides.assumes = true;
    for (TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        TileValue *address = op->id == TILE_OP_LOAD ? tile_op_named(op, TILE_OPERAND_ADDRESS) : NULL;
        if (!address || tile_buffer_of(address)) continue;
        TileSlope slope = tile_stride_of(&strides, address);
        bool near = slope.kind == TILE_SLOPE_AFFINE && !slope.factor && slope.step == (int64_t)tile_scalar_bytes(op->results[0].type->scalar);
        found |= near && depends(address, x->pieces, x->pieces->regions[0].arguments[0]) &&
                 depends(address, x->pieces, x->rows->regions[0].arguments[0]);
    }
    return found;
}

static bool only_reads(const TileOp *loop) {
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next)
        if (!is_simple(op)) return false;
    return true;
}

/* The loop over rows in one over pieces, each of which goes along pieces of rows. */
static bool find_rows(Along *x, TileOp *pieces) {
    x->pieces = pieces;
    x->rows = NULL;
    if (pieces->id != TILE_OP_FOR) return false;
    for (TileOp *op = pieces->regions[0].first; op && !x->rows; op = op->next)
        if (op->id == TILE_OP_LOOP && tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL) x->rows = op;
    bool found = false;
    for (TileOp *op = x->rows ? x->rows->regions[0].first : NULL; op; op = op->next) found |= goes_along(x, op);
    return found;
}

/* Why the loops cannot be exchanged; NULL: they can. */
static const char *obstacle(const Along *x) {
    if (x->pieces->result_count) return "pieces carry values";
    for (const TileOp *op = x->pieces->regions[0].first; op != x->pieces->regions[0].last; op = op->next)
        if (op != x->rows && !is_simple(op)) return "pieces do more than one loop over rows";
    for (unsigned i = 0; i < 2; i++)
        if (!tile_value_outside(tile_op_operand(x->rows, i), x->pieces)) return "pieces have different rows";
    for (const TileOp *op = x->rows->regions[0].first; op != x->rows->regions[0].last; op = op->next) {
        bool good = op->id == TILE_OP_STORE  ? is_update(x, op)
                    : op->id == TILE_OP_LOOP ? tile_loop_in_stripes(op) && only_reads(op)
                                             : is_simple(op);
        if (!good) return "pieces do more than add to a row's own sums";
    }
    return NULL;
}

/* What stands beside the loop over the rows is computed for each row and piece. */
static void exchange(Along *x) {
    TileOp *pieces = x->pieces, *rows = x->rows;
    TileBlock *outer = &rows->regions[0], *inner = &pieces->regions[0];
    TileOp *last = outer->last, *end = inner->last;
    tile_op_detach(rows);
    tile_op_insert_before(rows, pieces);
    while (outer->first != last) {
        TileOp *op = outer->first;
        tile_op_detach(op);
        tile_op_insert_before(op, end);
    }
    tile_op_detach(pieces);
    tile_op_insert_before(pieces, last);
    x->changed = true;
}

static void visit_block(Along *x, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (find_rows(x, op)) {
            const char *reason = obstacle(x);
            if (!reason) {
                tile_pass_remark(x->context, x->rows, TILE_DECISION_ROWS_WHOLE, "the loop", "%s", "");
                exchange(x);
                continue;
            }
            tile_pass_remark(x->context, x->rows, TILE_DECISION_ROWS_IN_PIECES, "the loop", "%s", reason);
        }
        for (unsigned i = 0; i < op->region_count; i++) visit_block(x, &op->regions[i]);
    }
}

TileResult tile_pass_cpu_along(TilePassContext *context, TileFunc *func) {
    Along x = {.context = context};
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    visit_block(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
