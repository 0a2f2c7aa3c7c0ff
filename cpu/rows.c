/* Purpose: make rows lanes. Where a loop goes through many rows, and all that it does for each of them is to go through a
 * few points, vectors along the row would be mostly empty, and each row would end with shuffles that combine its lanes. So
 * the short loops are unrolled: the points of a row become values of their own, a reduction is a tree of them, and
 * cpu-vectorise takes the loop over rows, whose lanes are all alike. Accesses of neighbouring points are a group, which is
 * read or written by full vectors (vector_group.c).
 *
 * Run: --passes=cpu-rows --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %two = const {value = 2} : i64
 *       %four = const {value = 4} : i64
 *       %eight = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %zero, %n {extent = 64, loop = parallel} (%i: i64) {
 *         %a = mul %i, %eight : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %s = loop %zero, %two, %none {loop = reduce, extent = 2, combine = [sum], order = stripes} : f32 (%j: i64, %t: f32) {
 *           %b = mul %j, %four : i64
 *           %q = ptr_add %p, %b : ptr<global>
 *           %v = load %q : f32
 *           yield %v
 *         }
 *         %o = mul %i, %four : i64
 *         %r = ptr_add %y, %o : ptr<global>
 *         store %s, %r
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %two = const {value = 2} : i64
 *       %four = const {value = 4} : i64
 *       %eight = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %zero, %n {extent = 64, loop = parallel} (%i: i64) {
 *         %a = mul %i, %eight : i64
 *         %p = ptr_add %x, %a : ptr<global>
 *         %0 = const {value = 0} : i64
 *         %1 = const {value = 0} : i64
 *         %q = ptr_add %p, %1 : ptr<global>
 *         %v = load %q : f32
 *         %2 = const {value = 1} : i64
 *         %3 = const {value = 4} : i64
 *         %q.1 = ptr_add %p, %3 : ptr<global>
 *         %v.1 = load %q.1 : f32
 *         %4 = add %v, %v.1 : f32
 *         %s = add %none, %4 : f32
 *         %o = mul %i, %four : i64
 *         %r = ptr_add %y, %o : ptr<global>
 *         store %s, %r
 *         yield
 *       }
 *       return
 *     }
 * A point that need not exist, where the length of rows is known at run time only, is in an `if`; rows that have all
 * points of their tile have a version without, in which they are read in vectors. What a row keeps in
 * scratch memory for its next loop becomes values. Programs of a row each are rows, too: they may run in any order.
 * Needs: nothing. Keeps: the order of sums (lang/ir/ops.def): accumulator j has one point at most, and the tree is the same.
 * Cost: linear in the unrolled ops, of which there are MOST_OPS at most. */
#include "cpu/buffers.h"
#include "cpu/vectorise.h"
#include "lang/ir/eval.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum {
    MOST_POINTS = 32,
    ROW_BYTES = 64, /* longer rows fill vectors */
    LEAST_ROWS = 8, /* of a tile: fewer would be few lanes */
    MOST_OPS = 768, /* of a row, unrolled: compiling takes time */
    COSTLY_OPS = 16 /* of a transcendental function */
};

static const int64_t MOST_PROGRAMS = INT64_C(1) << 62; /* their number is not known */

typedef struct Rows {
    TilePassContext *context;
    TileModule *module;
    TileStrides strides; /* with respect to the loop over rows */
    TileMap values;      /* of the points that are unrolled */
    bool changed;
} Rows;

/* ---- which loops ---- */

static bool is_simple(const TileOp *op) {
    return tile_op_info((TileOpId)op->id)->class == TILE_CLASS_ELEMENTWISE || op->id == TILE_OP_CONST ||
           op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE;
}

/* Has the loop as many points as its tile has lanes? */
static bool is_full(const TileOp *loop) {
    return tile_value_is_integer(tile_op_operand(loop, 1), tile_loop_extent(loop));
}

static bool uses_carried(const TileOp *loop) {
    const TileBlock *body = &loop->regions[0];
    for (unsigned i = 1; i < body->argument_count; i++)
        if (body->arguments[i]->first_use) return true;
    return false;
}

/* The points of a buffer that are accessed in the loop over rows: at its pointer, or at a multiple of an unrolled
 * index. */
static bool is_point_of(const TileOp *rows, const TileValue *address) {
    const TileOp *add = tile_value_def(address, TILE_OP_PTR_ADD);
    if (!add) return true;
    if (tile_value_def(tile_op_operand(add, 0), TILE_OP_PTR_ADD)) return false;
    const TileValue *offset = tile_op_operand(add, 1);
    const TileOp *product = tile_value_def(offset, TILE_OP_MUL);
    int64_t scale;
    if (product && tile_value_integer(tile_op_operand(product, 1), &scale)) offset = tile_op_operand(product, 0);
    if (tile_value_integer(offset, &scale)) return true;
    const TileOp *loop = offset->op ? NULL : offset->block->op;
    return loop && loop->id == TILE_OP_LOOP && loop->block->op == rows && is_full(loop);
}

static bool is_point_access(const TileOp *rows, const TileOp *op) {
    return (op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE) && !tile_op_has_part(op, TILE_PARTS_MASK) &&
           is_point_of(rows, tile_op_named(op, TILE_OPERAND_ADDRESS));
}

/* Is all that uses the pointer the accesses of a row's points? Stores of the pointer itself are none. */
static bool is_kept(const TileOp *rows, const TileValue *pointer) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        const TileOp *op = use->user;
        if (op->id == TILE_OP_PTR_ADD ? !is_kept(rows, &op->results[0])
                                      : !tile_op_inside(op, rows) || !is_point_access(rows, op) ||
                                            tile_op_named(op, TILE_OPERAND_ADDRESS) != pointer)
            return false;
    }
    return true;
}

/* Rows at addresses without any order are read and written faster along each row. A store at the same address in all
 * rows is to a buffer of the row's own points. */
static bool can_access(Rows *x, const TileOp *op) {
    if (op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) return true;
    TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
    TileSlope slope = tile_stride_of(&x->strides, address);
    if (slope.kind != TILE_SLOPE_UNIFORM || op->id == TILE_OP_LOAD) return slope.kind != TILE_SLOPE_VARYING;
    const TileValue *buffer = tile_buffer_of(address);
    return buffer && is_kept(x->strides.loop, buffer);
}

/* Is a row too short for a vector? Elements of 8 bits are shuffled slowly, and take as many lanes as wider ones in the
 * end. */
static bool is_short(const TileOp *loop) {
    unsigned bytes = 2;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        bool load = op->id == TILE_OP_LOAD && !tile_buffer_of(tile_op_operand(op, 0));
        unsigned own = load ? tile_scalar_bytes(op->results[0].type->scalar) : 0;
        if (load && own != 2) bytes = 4;
    }
    return tile_loop_extent(loop) <= MOST_POINTS && tile_loop_extent(loop) * bytes <= ROW_BYTES;
}

static bool can_unroll(Rows *x, const TileOp *loop, unsigned *ops) {
    bool reduces = tile_loop_in_stripes(loop), full = is_full(loop);
    if (!reduces && tile_loop_kind(loop) != TILE_LOOP_KIND_PARALLEL) return false;
    if (!tile_value_is_integer(tile_op_operand(loop, 0), 0) || !is_short(loop)) return false;
    if ((!reduces && !full) || uses_carried(loop)) return false;
    if (tile_stride_of(&x->strides, tile_op_operand(loop, 1)).kind != TILE_SLOPE_UNIFORM) return false;
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        if (!is_simple(op) || !can_access(x, op) || (op->id == TILE_OP_STORE && !full)) return false;
        bool costly = tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY;
        *ops += (unsigned)tile_loop_extent(loop) * (costly ? COSTLY_OPS : 1);
    }
    return *ops <= MOST_OPS;
}

/* Is it the loop over programs, which may run in any order? */
static bool is_over_programs(const TileOp *op) {
    if (op->id != TILE_OP_FOR || op->block->op || op->result_count ||
        !tile_value_is_integer(tile_op_named(op, TILE_OPERAND_STEP), 1))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        const TileValue *bound = tile_op_operand(op, i);
        if (bound->op || op->block->func->parameters[bound->index].role != (i ? TILE_ROLE_END : TILE_ROLE_BEGIN))
            return false;
    }
    return true;
}

static bool is_of_many(const TileOp *op) {
    if (op->id != TILE_OP_LOOP) return is_over_programs(op);
    return tile_loop_kind(op) == TILE_LOOP_KIND_PARALLEL && tile_loop_extent(op) >= LEAST_ROWS;
}

/* Is the loop over rows, each of which is some short loops, one of which combines points? */
static bool is_over_rows(Rows *x, TileOp *rows) {
    bool reduces = false;
    unsigned ops = 0;
    if (!is_of_many(rows)) return false;
    tile_strides_init(&x->strides, x->context, rows);
    for (TileOp *op = rows->regions[0].first; op != rows->regions[0].last; op = op->next) {
        if (op->id == TILE_OP_LOOP) {
            if (!can_unroll(x, op, &ops)) return false;
            reduces |= tile_loop_in_stripes(op);
        } else if (!is_simple(op) || !can_access(x, op)) {
            return false;
        }
    }
    return reduces;
}

/* ---- points ---- */

static TileValue *value_of(Rows *x, TileValue *value) {
    TileValue *found = tile_map_get(&x->values, value);
    return found ? found : value;
}

/* Offsets of points are constants, so that their distances are known. */
static TileValue *fold_integer(TileBuilder *b, const TileOp *op, TileValue *const *operands) {
    int64_t left, right, result;
    if ((op->id != TILE_OP_ADD && op->id != TILE_OP_MUL) || op->results[0].type->scalar != TILE_I64) return NULL;
    if (!tile_value_integer(operands[0], &left) || !tile_value_integer(operands[1], &right)) return NULL;
    bool wraps = op->id == TILE_OP_ADD ? __builtin_add_overflow(left, right, &result)
                                       : __builtin_mul_overflow(left, right, &result);
    return wraps ? NULL : tile_build_i64(b, result);
}

static void copy_point(Rows *x, TileBuilder *b, const TileOp *loop, int64_t point) {
    const TileBlock *body = &loop->regions[0];
    tile_map_set(&x->values, body->arguments[0], tile_build_i64(b, point));
    for (const TileOp *op = body->first; op != body->last; op = op->next) {
        TileValue *operands[4], *folded = NULL;
        b->location = op->location;
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = value_of(x, tile_op_operand(op, i));
        if (op->result_count == 1 && op->operand_count == 2) folded = fold_integer(b, op, operands);
        if (!folded) {
            TileOp *copy = tile_op_clone(x->module, op, &x->values);
            tile_builder_insert(b, copy);
        } else {
            tile_map_set(&x->values, &op->results[0], folded);
        }
    }
}

/* The point's contributions, combined with the initial values; these alone, if there is no such point. */
static void guarded_point(Rows *x, TileBuilder *b, TileOp *loop, int64_t point, TileValue **cell) {
    unsigned carried = loop->result_count;
    const TileType **types = TILE_NEW_ARRAY(x->context->scratch, const TileType *, carried);
    for (unsigned i = 0; i < carried; i++) types[i] = loop->results[i].type;
    TileValue *there = tile_build_binary(b, TILE_OP_LT, tile_build_i64(b, point), tile_op_operand(loop, 1));
    TileOp *made = tile_build_if(b, there, types, carried);
    for (unsigned i = 0; i < carried; i++) cell[i] = tile_loop_carried(loop, i);
    TileBuilder inner = tile_builder_at_end(x->module, &made->regions[1]);
    tile_build_end(&inner, TILE_OP_YIELD, cell, carried);
    inner = tile_builder_at_end(x->module, &made->regions[0]);
    copy_point(x, &inner, loop, point);
    TileValue **yields = TILE_NEW_ARRAY(x->context->scratch, TileValue *, carried + 1);
    for (unsigned i = 0; i < carried; i++) yields[i] = value_of(x, tile_op_operand(loop->regions[0].last, i));
    const TileAttribute *combine = tile_op_get(loop, TILE_ATTRIBUTE_COMBINE);
    for (unsigned i = 0; i < carried;) i += tile_combine(&inner, (TileName)combine->integers[i], cell + i, yields + i);
    tile_build_end(&inner, TILE_OP_YIELD, cell, carried);
    for (unsigned i = 0; i < carried; i++) cell[i] = &made->results[i];
}

/* ---- reductions ---- */

static bool is_pair(TileName how) { return how == TILE_COMBINE_ARG_MAX || how == TILE_COMBINE_ARG_MIN; }

/* Does the initial value, combined with any other, give the other one? For sums of floats, from 0 on, but for the sign
 * of zero: a sum of -0 alone is +0 with an initial value, whichever point it was added to, so it is added to the
 * result. */
static bool is_neutral(TileName how, const TileValue *init) {
    uint64_t bits;
    return !is_pair(how) && tile_value_bits(init, &bits) && bits == tile_eval_identity(how, init->type->scalar);
}

/* Combines accumulator j with j + half, from half of a power of two on, for one combiner. NULL: a neutral one. */
static void combine_cells(TileBuilder *b, TileName how, TileValue **cells, unsigned carried, int64_t count) {
    int64_t half = 1;
    while (half < count) half *= 2;
    for (half /= 2; half >= 1; half /= 2)
        for (int64_t i = 0; i < half; i++) {
            TileValue **left = cells + i * carried, **right = cells + (i + half) * carried;
            if (*right) tile_combine(b, how, left, right);
        }
}

static void finish_combiner(Rows *x, TileBuilder *b, TileOp *loop, unsigned at, TileValue **cells) {
    unsigned carried = loop->result_count;
    TileName how = (TileName)tile_op_get(loop, TILE_ATTRIBUTE_COMBINE)->integers[at];
    TileValue *init = tile_loop_carried(loop, at);
    int64_t count = tile_loop_extent(loop), padded = 1;
    bool full = is_full(loop), neutral = is_neutral(how, init), pair = is_pair(how);
    while (padded < count) padded *= 2;
    for (int64_t j = 0; j < padded; j++) {
        TileValue **cell = cells + j * carried + at, *own[2] = {cell[0], pair ? cell[1] : NULL};
        if ((full && !neutral) || j >= count)
            for (unsigned k = 0; k < 1u + pair; k++) cell[k] = tile_loop_carried(loop, at + k);
        if (j >= count && neutral) cell[0] = NULL;
        if (full && !neutral && j < count) tile_combine(b, how, cell, own);
    }
    combine_cells(b, how, cells + at, carried, padded);
    bool signless = how == TILE_COMBINE_SUM && tile_scalar_is_float((TileScalar)init->type->scalar);
    TileValue *result = cells[at];
    if (full && neutral && signless) result = tile_build_binary(b, TILE_OP_ADD, init, result);
    tile_value_replace(&loop->results[at], result);
    if (pair) tile_value_replace(&loop->results[at + 1], cells[at + 1]);
}

static void unroll(Rows *x, TileOp *loop) {
    unsigned carried = loop->result_count;
    int64_t count = tile_loop_extent(loop);
    bool full = is_full(loop);
    TileBuilder b = tile_builder_before(x->module, loop);
    TileValue **cells = TILE_NEW_ARRAY(x->context->scratch, TileValue *, 2 * MOST_POINTS * (carried + 1));
    for (int64_t j = 0; j < count; j++) {
        if (full) copy_point(x, &b, loop, j);
        if (!full) guarded_point(x, &b, loop, j, cells + j * carried);
        for (unsigned i = 0; full && i < carried; i++)
            cells[j * carried + i] = value_of(x, tile_op_operand(loop->regions[0].last, i));
    }
    const TileAttribute *combine = tile_op_get(loop, TILE_ATTRIBUTE_COMBINE);
    for (unsigned i = 0; combine && i < carried; i += 1u + is_pair((TileName)combine->integers[i]))
        finish_combiner(x, &b, loop, i, cells);
    tile_op_erase(loop);
}

/* ---- buffers of a row ---- */

/* The constant offset of an address in a buffer of the row. */
static bool constant_offset(const TileValue *address, int64_t *offset) {
    const TileOp *add = tile_value_def(address, TILE_OP_PTR_ADD);
    *offset = 0;
    return !add || tile_value_integer(tile_op_operand(add, 1), offset);
}

static bool is_at(const TileOp *op, const TileValue *buffer, int64_t offset) {
    int64_t own;
    if (op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) return false;
    const TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
    return tile_buffer_of(address) == buffer && constant_offset(address, &own) && own == offset;
}

/* What the load reads: the value of the last store before it to its address, in the same row. */
static TileValue *stored_value(const TileOp *load, const TileValue *buffer) {
    int64_t offset;
    if (!constant_offset(tile_op_operand(load, 0), &offset)) return NULL;
    for (const TileOp *op = load->previous; op; op = op->previous)
        if (op->id == TILE_OP_STORE && is_at(op, buffer, offset))
            return tile_op_operand(op, 0)->type == load->results[0].type ? tile_op_operand(op, 0) : NULL;
    return NULL;
}

/* Replaces the loads of a row's buffer by what was stored, and removes the stores once nothing reads them. */
static void keep_values(TileOp *rows, const TileValue *buffer) {
    TileBlock *body = &rows->regions[0];
    bool all = true;
    for (TileOp *op = body->first, *next; op; op = next) {
        next = op->next;
        if (op->id != TILE_OP_LOAD || tile_buffer_of(tile_op_operand(op, 0)) != buffer) continue;
        TileValue *value = stored_value(op, buffer);
        if (!value) {
            all = false;
            continue;
        }
        tile_value_replace(&op->results[0], value);
        tile_op_erase(op);
    }
    for (TileOp *op = body->first, *next; all && op; op = next) {
        next = op->next;
        if (op->id == TILE_OP_STORE && tile_buffer_of(tile_op_operand(op, 1)) == buffer) tile_op_erase(op);
    }
}

static void keep_buffers(Rows *x, TileOp *rows) {
    TILE_LIST(const TileValue *) buffers = {0};
    for (const TileOp *op = rows->regions[0].first; op; op = op->next) {
        const TileValue *buffer = op->id == TILE_OP_STORE ? tile_buffer_of(tile_op_operand(op, 1)) : NULL;
        if (buffer && is_kept(rows, buffer)) tile_list_push(x->context->scratch, &buffers, buffer);
    }
    for (size_t i = 0; i < buffers.count; i++) keep_values(rows, buffers.items[i]);
}

/* ---- rows whose length is known at run time only ---- */

/* Is each of the row's loops full, or as long for all rows, and one of them not full? */
static bool has_lengths(const TileOp *rows) {
    bool some = false;
    for (const TileOp *op = rows->regions[0].first; op && rows->id == TILE_OP_LOOP; op = op->next) {
        if (op->id != TILE_OP_LOOP || is_full(op)) continue;
        if (!tile_value_outside(tile_op_operand(op, 1), rows)) return false;
        some = true;
    }
    return some;
}

/* A version of the rows for tiles that have all points: in front of `rows`, in a branch, the other side of which has `rows`. */
static TileOp *branch_of_whole(Rows *x, TileOp *rows) {
    TileBuilder b = tile_builder_before(x->module, rows);
    TileValue *whole = NULL;
    TileMap map;
    tile_map_init(&map, x->context->scratch);
    for (const TileOp *op = rows->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_LOOP || is_full(op)) continue;
        TileValue *extent = tile_build_i64(&b, tile_loop_extent(op));
        TileValue *here = tile_build_binary(&b, TILE_OP_EQ, tile_op_operand(op, 1), extent);
        whole = whole ? tile_build_binary(&b, TILE_OP_AND, whole, here) : here;
    }
    TileOp *branch = tile_build_if(&b, whole, NULL, 0), *copy = tile_op_clone(x->module, rows, &map);
    for (unsigned side = 0; side < 2; side++) {
        if (side) tile_op_detach(rows);
        tile_op_append(side ? rows : copy, &branch->regions[side]);
        TileBuilder end = tile_builder_at_end(x->module, &branch->regions[side]);
        tile_build_end(&end, TILE_OP_YIELD, NULL, 0);
    }
    for (TileOp *op = copy->regions[0].first; op; op = op->next) {
        if (op->id != TILE_OP_LOOP || is_full(op)) continue;
        TileBuilder inside = tile_builder_before(x->module, op);
        tile_op_set_operand(op, 1, tile_build_i64(&inside, tile_loop_extent(op)));
    }
    return branch;
}

/* ---- the pass ---- */

/* Programs whose points are unrolled are the points of a nest. */
static void make_nest(Rows *x, TileOp *programs) {
    TileBuilder b = tile_builder_before(x->module, programs);
    TileOp *made = tile_build_loop(&b, TILE_LOOP_KIND_PARALLEL, tile_op_operand(programs, 0),
                                   tile_op_operand(programs, 1), MOST_PROGRAMS, NULL, 0);
    TileBlock *from = &programs->regions[0], *to = &made->regions[0];
    tile_value_replace(from->arguments[0], to->arguments[0]);
    tile_block_splice(to, from);
    tile_op_erase(programs);
}

static void unroll_rows(Rows *x, TileOp *rows) {
    for (TileOp *inner = rows->regions[0].first, *next; inner; inner = next) {
        next = inner->next;
        if (inner->id == TILE_OP_LOOP) unroll(x, inner);
    }
    keep_buffers(x, rows);
    if (rows->id == TILE_OP_FOR) make_nest(x, rows);
    x->changed = true;
}

static void visit_block(Rows *x, TileBlock *block) {
    for (TileOp *op = block->first, *following; op; op = following) {
        following = op->next;
        if (!is_over_rows(x, op)) {
            for (unsigned i = 0; i < op->region_count; i++) visit_block(x, &op->regions[i]);
        } else if (has_lengths(op)) {
            TileOp *branch = branch_of_whole(x, op);
            for (unsigned side = 0; side < 2; side++)
                if (is_over_rows(x, branch->regions[side].first)) unroll_rows(x, branch->regions[side].first);
        } else {
            unroll_rows(x, op);
        }
    }
}

TileResult tile_pass_cpu_rows(TilePassContext *context, TileFunc *func) {
    Rows rows = {.context = context, .module = context->module};
    tile_map_init(&rows.values, context->scratch);
    visit_block(&rows, &func->body);
    return rows.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
