/* Purpose: take several positions of a window at a time where a product has few k for each. What a convolution of three
 * channels multiplies at neighbouring positions follows one another in memory: 7 positions of 3 channels are a row of 21
 * elements, which is copied by two vectors, where each position by itself takes one, and as many operations around it. So a loop
 * around a block product takes as many iterations at a time as fit into the product's k, if an iteration has fewer than a vector and both
 * operands of the next one begin where those of this one end. Whether they do is tested ahead of the loops, at run time: it depends on strides. If they do
 * not, it takes one.
 *
 * Run: --passes=cpu-windows,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %w: ptr<global>, %c: ptr<scratch>, %k: i64, %s: i64, %xb: i64, %wb: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %m = const {value = 12} : i64
 *       %n = const {value = 16} : i64
 *       %line = const {value = 64} : i64
 *       for %zero, %s, %one (%j: i64) {
 *         %jx = mul %j, %xb : i64
 *         %a = ptr_add %x, %jx : ptr<global>
 *         %jw = mul %j, %wb : i64
 *         %b = ptr_add %w, %jw : ptr<global>
 *         dot_block %a, %xb, %four, %b, %line, %four, %c, %line, %m, %n, %k, %zero, %zero, %zero {types = [f32, f32, f32], extents = [12, 16, 64]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %w: ptr<global>, %c: ptr<scratch>, %k: i64, %s: i64, %xb: i64, %wb: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %m = const {value = 12} : i64
 *       %n = const {value = 16} : i64
 *       %line = const {value = 64} : i64
 *       %0 = mul %k, %four : i64
 *       %1 = eq %xb, %0 : bool
 *       %2 = mul %k, %line : i64
 *       %3 = eq %wb, %2 : bool
 *       %4 = and %1, %3 : bool
 *       %5 = lt %k, %n : bool
 *       %6 = and %4, %5 : bool
 *       %7 = max %k, %one : i64
 *       %8 = div %line, %7 : i64
 *       %9 = max %8, %one : i64
 *       %10 = select %6, %9, %one : i64
 *       %11 = add %s, %10 : i64
 *       %12 = const {value = -1} : i64
 *       %13 = add %11, %12 : i64
 *       %14 = div %13, %10 : i64
 *       %15 = max %14, %zero : i64
 *       for %zero, %15, %one (%j: i64) {
 *         %j.1 = mul %j, %10 : i64
 *         %16 = sub %s, %j.1 : i64
 *         %17 = min %16, %10 : i64
 *         %jx = mul %j.1, %xb : i64
 *         %a = ptr_add %x, %jx : ptr<global>
 *         %jw = mul %j.1, %wb : i64
 *         %b = ptr_add %w, %jw : ptr<global>
 *         %18 = mul %k, %17 : i64
 *         dot_block %a, %xb, %four, %b, %line, %four, %c, %line, %m, %n, %18, %zero, %zero, %zero {types = [f32, f32, f32], extents = [12, 16, 64]}
 *         yield
 *       }
 *       return
 *     }
 * In general, of an image of w columns:
 *     for j in 0 .. s by 1 {
 *       loop r in 0 .. rows {
 *         loop c in 0 .. channels { a[r, c] = load x[r + j, c] where r + j < w, else 0 }
 *       }
 *       dot_block a, b[j], sums, k = channels
 *     }
 * becomes
 *     group = channels of x and of b follow one another from j to j + 1, and are fewer than a vector has ? 64 / channels : 1
 *     for g in 0 .. s / group by 1 {
 *       j = g * group, n = min(group, s - j)
 *       if n > 1 {
 *         for both sides of the rows that are inside at all n positions, for t in 0 .. n: the rows as they were, for j + t, to
 *           a[r, channels * t + c]
 *         rows that are inside at all of them: loop c in 0 .. channels * n { a[r, c] = load x[r + j, c] }
 *       } else { the loop over rows as it was }
 *       dot_block a, b[j], sums, k = channels * n
 *     }
 * An operand a that is read where it lies has no loop over rows, and needs none.
 * Needs: a target; cpu-interchange before it, which looks for whole loops; cpu-borders behind it, which splits the loop of one position.
 * Keeps: each product, and the order in which they are added.
 * Cost: linear; loops over rows of at most MOST_OPS ops are there three times. */
#include "cpu/borders.h"
#include "cpu/buffers.h"
#include "cpu/passes.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/each.h"

enum { MOST_OPS = 64, DEEPEST = 24 };

typedef struct Window {
    TilePassContext *context;
    TileModule *module;
    TileOp *dot;
    TileOp *taps;       /* the loop whose iterations are positions of the window */
    TileOp *parts;      /* in it, a loop over parts of k; NULL: there is none */
    TileOp *outer;      /* the outermost loop that adds to the same sums */
    TileOp *rows, *run; /* the loops that compute a, over its rows and over k; NULL: a is read in place */
    TileOp *load, *store;
    TileRowMask mask; /* of the load, for which rows */
    bool masked;
    TileValue *index; /* of the loop over positions */
    TileMap moved;    /* values to what they are ahead of the outermost loop, in the first iteration over parts of k */
} Window;

/* ---- which loops ---- */

static bool is_pure(const TileOp *op) { return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count; }

static bool is_counting(const TileOp *op) { return tile_op_is(op, TILE_OP_FOR) && !op->result_count; }

static bool is_parallel(const TileOp *op) {
    return op->id == TILE_OP_LOOP && !op->result_count && !tile_op_get(op, TILE_ATTRIBUTE_VECTOR) &&
           tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_PARALLEL;
}

/* Does the block have only ops without effects, but for these two (NULL: any one loop, which it becomes)? */
static bool has_only(const TileBlock *block, const TileOp *known, TileOp **loop) {
    for (TileOp *op = block->first; op != block->last; op = op->next) {
        if (op == known || is_pure(op)) continue;
        if (!loop || *loop || !is_parallel(op)) return false;
        *loop = op;
    }
    return true;
}

static bool is_around_sums(const Window *w, const TileOp *loop) {
    const TileOperand fixed[] = {TILE_OPERAND_C, TILE_OPERAND_C_ROW, TILE_OPERAND_M, TILE_OPERAND_N};
    for (unsigned i = 0; i < 4; i++)
        if (!tile_value_outside(tile_op_named(w->dot, fixed[i]), loop)) return false;
    return is_counting(loop);
}

static bool find_loops(Window *w) {
    TileOp *inner = w->dot->block->op;
    if (!is_counting(inner)) return false;
    bool single = tile_value_is_integer(tile_op_named(inner, TILE_OPERAND_STEP), 1);
    w->taps = single ? inner : inner->block->op;
    w->parts = single ? NULL : inner;
    if (!is_counting(w->taps) || !tile_value_is_integer(tile_op_named(w->taps, TILE_OPERAND_STEP), 1)) return false;
    if (!is_around_sums(w, w->taps) || !has_only(w->dot->block, w->dot, &w->rows)) return false;
    if (w->parts && !has_only(w->parts->block, w->parts, NULL)) return false;
    for (w->outer = w->taps; w->outer->block->op && is_around_sums(w, w->outer->block->op);) w->outer = w->outer->block->op;
    w->index = w->taps->regions[0].arguments[0];
    return true;
}

/* ---- how a is computed ---- */

static bool is_constant(const Window *w, TileOperand operand, int64_t *value) {
    return tile_value_integer(tile_op_named(w->dot, operand), value);
}

/* Does the address move by this many bytes along the loop over k? */
static bool moves_by(Window *w, TileValue *address, int64_t bytes) {
    TileSlopes slopes;
    tile_slopes_init(&slopes, tile_pass_indices(w->context, tile_op_func(w->run)), w->run);
    TileSlope slope = tile_index_slope(&slopes, address);
    return slope.kind == TILE_SLOPE_AFFINE && !slope.factor && slope.step == bytes;
}

static int64_t element_bytes(const TileValue *value) { return tile_scalar_bytes(value->type->scalar); }

/* Is the value the one that is loaded, or computed from it and from what is the same at all positions? */
static bool is_of_load(const Window *w, const TileValue *value, unsigned depth) {
    if (value == &w->load->results[0] || tile_value_outside(value, w->taps)) return true;
    if (!value->op || !is_pure(value->op) || depth == DEEPEST) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (!is_of_load(w, tile_op_operand(value->op, i), depth + 1)) return false;
    return true;
}

static bool find_accesses(Window *w) {
    const TileBlock *body = &w->run->regions[0];
    for (TileOp *op = body->first; op != body->last; op = op->next) {
        TileOp **found = op->id == TILE_OP_LOAD ? &w->load : op->id == TILE_OP_STORE ? &w->store : NULL;
        if (found ? *found != NULL : !is_pure(op)) return false;
        if (found) *found = op;
    }
    return w->load && w->store && !tile_op_has_part(w->store, TILE_PARTS_MASK);
}

static bool reads_mask(Window *w) {
    TileValue *mask = tile_op_has_part(w->load, TILE_PARTS_MASK) ? tile_op_named(w->load, TILE_OPERAND_MASK) : NULL;
    w->masked = mask != NULL;
    if (!mask) return true;
    const TileValue *fill = tile_op_named(w->load, TILE_OPERAND_FILLING);
    return fill && tile_value_outside(fill, w->taps) && tile_value_outside(mask, w->run) &&
           tile_row_mask_read(w->rows, mask, &w->mask);
}

static void count_op(TileOp *op, void *state) {
    (void)op;
    ++*(unsigned *)state;
}

static bool depends(Window *w, const TileValue *value) {
    return tile_index_depends(tile_pass_indices(w->context, tile_op_func(w->run)), value, w->index);
}

/* Do the loops store rows of a, element behind element, the same at all positions but for what they load? Rows have space for as
 * many k as the product may have. */
static bool computes_rows(Window *w) {
    int64_t column, row, k_max = tile_op_get(w->dot, TILE_ATTRIBUTE_EXTENTS)->integers[2];
    unsigned ops = 0;
    if (!has_only(&w->rows->regions[0], NULL, &w->run) || !w->run || !find_accesses(w)) return false;
    tile_block_walk(&w->rows->regions[0], count_op, &ops);
    TileValue *to = tile_op_named(w->store, TILE_OPERAND_ADDRESS), *from = tile_op_named(w->load, TILE_OPERAND_ADDRESS);
    const TileValue *value = tile_op_operand(w->store, 0), *buffer = tile_buffer_of(to);
    int64_t bytes = element_bytes(value);
    if (ops > MOST_OPS || !buffer || buffer != tile_buffer_of(tile_op_named(w->dot, TILE_OPERAND_A))) return false;
    if (!is_constant(w, TILE_OPERAND_A_COLUMN, &column) || column != bytes) return false;
    if (!is_constant(w, TILE_OPERAND_A_ROW, &row) || row < k_max * bytes) return false;
    if (!tile_value_is_integer(tile_op_operand(w->run, 0), 0) || !tile_value_outside(tile_op_operand(w->run, 1), w->rows)) return false;
    if (tile_op_integer(w->run, TILE_ATTRIBUTE_EXTENT, 0) < k_max) return false;
    return moves_by(w, to, bytes) && moves_by(w, from, element_bytes(&w->load->results[0])) && !depends(w, to) &&
           is_of_load(w, value, 0) && reads_mask(w);
}

/* ---- values ahead of the loops ---- */

/* A division by what may be 0 stays where it is. */
static bool may_trap(const TileOp *op) {
    int64_t divisor;
    bool divides = op->id == TILE_OP_DIV || op->id == TILE_OP_REM;
    return divides && !(tile_value_integer(tile_op_operand(op, 1), &divisor) && divisor > 0);
}

/* The value ahead of the outermost loop, in the first iteration over parts of k; NULL: it is another one in each iteration. */
static TileValue *move_ahead(Window *w, TileBuilder *b, TileValue *value, unsigned depth) {
    TileValue *known = tile_map_get(&w->moved, value);
    if (known || tile_value_outside(value, w->outer)) return known ? known : value;
    if (w->parts && value == w->parts->regions[0].arguments[0]) return move_ahead(w, b, tile_op_operand(w->parts, 0), depth + 1);
    if (!value->op || !is_pure(value->op) || value->op->result_count != 1 || may_trap(value->op) || depth == DEEPEST) return NULL;
    for (unsigned i = 0; i < value->op->operand_count; i++) {
        TileValue *operand = tile_op_operand(value->op, i), *moved = move_ahead(w, b, operand, depth + 1);
        if (!moved) return NULL;
        if (moved != operand) tile_map_set(&w->moved, operand, moved);
    }
    TileOp *copy = tile_op_clone(w->module, value->op, &w->moved);
    tile_builder_insert(b, copy);
    return &copy->results[0];
}

/* By how much a value grows from one position to the next. */
typedef struct Step {
    bool known;
    TileValue *value; /* NULL: not at all */
} Step;

static Step step_of(Window *w, TileBuilder *b, TileValue *value, unsigned depth);

static Step combined(Window *w, TileBuilder *b, const TileOp *op, unsigned depth) {
    TileValue *left = tile_op_operand(op, 0), *right = tile_op_operand(op, 1);
    Step x = step_of(w, b, left, depth + 1), y = step_of(w, b, right, depth + 1), unknown = {false, NULL};
    if (!x.known || !y.known || (!x.value && !y.value)) return (Step){x.known && y.known, NULL};
    if (op->id == TILE_OP_MUL) {
        TileValue *factor = x.value && y.value ? NULL : move_ahead(w, b, x.value ? right : left, 0);
        return factor ? (Step){true, tile_build_binary(b, TILE_OP_MUL, x.value ? x.value : y.value, factor)} : unknown;
    }
    if (op->id == TILE_OP_SUB && !x.value) x.value = tile_build_i64(b, 0);
    if (!x.value || !y.value) return x.value ? x : y;
    return (Step){true, tile_build_binary(b, op->id == TILE_OP_SUB ? TILE_OP_SUB : TILE_OP_ADD, x.value, y.value)};
}

static Step step_of(Window *w, TileBuilder *b, TileValue *value, unsigned depth) {
    if (value == w->index) return (Step){true, tile_build_i64(b, 1)};
    if (tile_value_outside(value, w->taps) || !value->op) return (Step){true, NULL};
    const TileOp *op = value->op;
    bool integer = value->type->kind == TILE_TYPE_POINTER || value->type->scalar == TILE_I64;
    bool linear = op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_ADD || op->id == TILE_OP_SUB || op->id == TILE_OP_MUL;
    if (linear && integer && depth < DEEPEST) return combined(w, b, op, depth);
    bool fixed = is_pure(op) && !tile_index_depends(tile_pass_indices(w->context, tile_op_func(w->taps)), value, w->index);
    return (Step){fixed, NULL};
}

/* ---- code ---- */

static TileValue *binary(TileBuilder *b, TileOpId id, TileValue *x, TileValue *y) { return tile_build_binary(b, id, x, y); }

static TileValue *both(TileBuilder *b, TileValue *x, TileValue *y) { return x ? binary(b, TILE_OP_AND, x, y) : y; }

/* Is the step of both operands what the product's k take, and is there no other part of k? NULL: nothing can be said. */
static TileValue *follow_one_another(Window *w, TileBuilder *b, TileValue *k) {
    TileValue *pointers[] = {w->run ? tile_op_named(w->load, TILE_OPERAND_ADDRESS) : tile_op_named(w->dot, TILE_OPERAND_A),
                             tile_op_named(w->dot, TILE_OPERAND_B)};
    TileValue *own = w->run ? tile_build_i64(b, element_bytes(&w->load->results[0]))
                            : move_ahead(w, b, tile_op_named(w->dot, TILE_OPERAND_A_COLUMN), 0);
    TileValue *each[] = {own, move_ahead(w, b, tile_op_named(w->dot, TILE_OPERAND_B_ROW), 0)}, *all = NULL;
    for (unsigned i = 0; i < 2; i++) {
        Step step = step_of(w, b, pointers[i], 0);
        if (!step.known || !step.value || !each[i]) return NULL;
        all = both(b, all, binary(b, TILE_OP_EQ, step.value, binary(b, TILE_OP_MUL, k, each[i])));
    }
    if (w->run) {
        TileValue *end = move_ahead(w, b, tile_op_operand(w->run, 1), 0);
        if (!end) return NULL;
        all = both(b, all, binary(b, TILE_OP_EQ, end, k));
    }
    if (!w->parts) return all;
    TileValue *lo = move_ahead(w, b, tile_op_operand(w->parts, 0), 0), *hi = move_ahead(w, b, tile_op_operand(w->parts, 1), 0);
    TileValue *step = move_ahead(w, b, tile_op_named(w->parts, TILE_OPERAND_STEP), 0);
    return lo && hi && step ? both(b, all, binary(b, TILE_OP_LE, binary(b, TILE_OP_SUB, hi, lo), step)) : NULL;
}

/* How many positions are taken at a time, ahead of the outermost loop; NULL: it cannot be said. Rows of at least a vector are copied as fast
 * by themselves. */
static TileValue *group_of(Window *w, TileBuilder *b) {
    TileValue *one = tile_build_i64(b, 1), *k = move_ahead(w, b, tile_op_named(w->dot, TILE_OPERAND_K), 0);
    TileValue *follow = k ? follow_one_another(w, b, k) : NULL;
    if (!follow) return NULL;
    int64_t element = tile_scalar_bytes(tile_op_get(w->dot, TILE_ATTRIBUTE_TYPES)->types[0]->scalar);
    TileValue *lanes = tile_build_i64(b, (int64_t)w->context->target->vector_bytes / element);
    follow = both(b, follow, binary(b, TILE_OP_LT, k, lanes));
    TileValue *most = tile_build_i64(b, tile_op_get(w->dot, TILE_ATTRIBUTE_EXTENTS)->integers[2]);
    TileValue *fit = binary(b, TILE_OP_MAX, binary(b, TILE_OP_DIV, most, binary(b, TILE_OP_MAX, k, one)), one);
    return tile_build_ternary(b, TILE_OP_SELECT, follow, fit, one);
}

/* Values of the loop over positions, computed again with another index. */
typedef struct Again {
    Window *w;
    TileBuilder *b;
    TileMap map;
} Again;

static TileValue *again(Again *a, TileValue *value) { return tile_build_again(a->b, &a->map, value, a->w->taps); }

static void begin_again(Again *a, Window *w, TileBuilder *b, TileValue *first, TileValue *t) {
    *a = (Again){.w = w, .b = b};
    tile_map_init(&a->map, w->context->scratch);
    tile_map_set(&a->map, first, binary(b, TILE_OP_ADD, first, t));
}

/* The rows that are inside at all n positions from `first` on. */
static void find_inside(Window *w, TileBuilder *b, TileValue *first, TileValue *n, TileValue **begin, TileValue **end) {
    TileValue *lo = tile_op_operand(w->rows, 0), *hi = tile_op_operand(w->rows, 1), *carried[] = {lo, hi};
    TileOp *loop = tile_build_for(b, tile_build_i64(b, 0), n, tile_build_i64(b, 1), carried, 2);
    TileBuilder body = tile_builder_at_end(w->module, &loop->regions[0]);
    TileValue **arguments = loop->regions[0].arguments, *bounds[] = {arguments[1], arguments[2]};
    Again a;
    begin_again(&a, w, &body, first, arguments[0]);
    for (unsigned i = 0; i < w->mask.first_count; i++) bounds[0] = binary(&body, TILE_OP_MAX, bounds[0], again(&a, w->mask.first[i]));
    for (unsigned i = 0; i < w->mask.end_count; i++) bounds[1] = binary(&body, TILE_OP_MIN, bounds[1], again(&a, w->mask.end[i]));
    for (unsigned i = 0; i < w->mask.all_count; i++)
        bounds[1] = tile_build_ternary(&body, TILE_OP_SELECT, again(&a, w->mask.all[i]), bounds[1], lo);
    tile_build_end(&body, TILE_OP_YIELD, bounds, 2);
    *begin = binary(b, TILE_OP_MIN, &loop->results[0], hi);
    *end = binary(b, TILE_OP_MAX, &loop->results[1], *begin);
}

static void compute_operands(TileOp *op, void *state) {
    Again *a = state;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (tile_value_outside(value, a->w->rows)) again(a, value);
    }
}

static void find_access(TileOp *op, void *state) {
    TileOp **found = state;
    if (op->id == TILE_OP_LOAD) found[0] = op;
    if (op->id == TILE_OP_STORE) found[1] = op;
    if (op->id == TILE_OP_LOOP) found[2] = op;
}

/* A copy of the loops over rows, from lo to hi. */
typedef struct Copy {
    TileOp *load, *run;
} Copy;

static Copy copy_loops(Window *w, TileBuilder *b, TileMap *map, TileValue *lo, TileValue *hi) {
    TileOp *copy = tile_op_clone(w->module, w->rows, map), *found[3];
    tile_builder_insert(b, copy);
    tile_op_set_operand(copy, 0, lo);
    tile_op_set_operand(copy, 1, hi);
    tile_block_walk(&copy->regions[0], find_access, found);
    return (Copy){found[0], found[2]};
}

/* The rows before `begin` and those from `end` on, position by position. They are few, so their loop is none that is split at
 * borders. */
static void build_sides(Window *w, TileBuilder *b, TileValue *first, TileValue *n, TileValue *begin, TileValue *end) {
    TileValue *zero = tile_build_i64(b, 0), *one = tile_build_i64(b, 1);
    TileOp *sides = tile_build_for(b, zero, tile_build_i64(b, 2), one, NULL, 0);
    TileBuilder side = tile_builder_at_end(w->module, &sides->regions[0]);
    TileValue *behind = binary(&side, TILE_OP_EQ, sides->regions[0].arguments[0], one);
    TileValue *lo = tile_build_ternary(&side, TILE_OP_SELECT, behind, end, tile_op_operand(w->rows, 0));
    TileValue *hi = tile_build_ternary(&side, TILE_OP_SELECT, behind, tile_op_operand(w->rows, 1), begin);
    TileOp *positions = tile_build_for(&side, zero, n, one, NULL, 0);
    TileBuilder position = tile_builder_at_end(w->module, &positions->regions[0]);
    TileValue *t = positions->regions[0].arguments[0];
    int64_t bytes = element_bytes(tile_op_operand(w->store, 0));
    TileValue *k = binary(&position, TILE_OP_MUL, tile_op_operand(w->run, 1), tile_build_i64(&position, bytes));
    TileValue *behind_others = binary(&position, TILE_OP_MUL, k, t);
    Again a;
    begin_again(&a, w, &position, first, t);
    tile_block_walk(&w->rows->regions[0], compute_operands, &a);
    TileOp *rows = tile_build_for(&position, lo, hi, one, NULL, 0), *found[3];
    TileBuilder row = tile_builder_at_end(w->module, &rows->regions[0]);
    tile_map_set(&a.map, w->rows->regions[0].arguments[0], rows->regions[0].arguments[0]);
    for (const TileOp *op = w->rows->regions[0].first; op; op = op->next) tile_builder_insert(&row, tile_op_clone(w->module, op, &a.map));
    tile_block_walk(&rows->regions[0], find_access, found);
    TileBuilder before = tile_builder_before(w->module, found[1]);
    tile_op_set_operand(found[1], 1, tile_build_ptr_add(&before, tile_op_operand(found[1], 1), behind_others));
    tile_build_end(&position, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&side, TILE_OP_YIELD, NULL, 0);
}

/* Where several positions are taken together: the rows inside at all of them, and the others. */
static void build_together(Window *w, TileBuilder *b, TileValue *first, TileValue *n) {
    TileValue *begin = tile_op_operand(w->rows, 0), *end = tile_op_operand(w->rows, 1);
    TileMap map;
    tile_map_init(&map, w->context->scratch);
    if (w->masked) {
        find_inside(w, b, first, n, &begin, &end);
        build_sides(w, b, first, n, begin, end);
    }
    Copy copy = copy_loops(w, b, &map, begin, end);
    while (copy.load->operand_count > 1) tile_op_remove_operand(copy.load, 1);
    tile_op_clear(copy.load, TILE_ATTRIBUTE_PARTS);
    TileBuilder in_rows = tile_builder_before(w->module, copy.run);
    tile_op_set_operand(copy.run, 1, binary(&in_rows, TILE_OP_MUL, tile_op_operand(copy.run, 1), n));
}

/* One position has the loops that there were. */
static void copy_rows(Window *w, TileValue *first, TileValue *n) {
    TileBuilder b = tile_builder_before(w->module, w->rows);
    b.location = w->rows->location;
    TileOp *several = tile_build_if(&b, binary(&b, TILE_OP_LT, tile_build_i64(&b, 1), n), NULL, 0);
    TileBuilder together = tile_builder_at_end(w->module, &several->regions[0]);
    TileBuilder apart = tile_builder_at_end(w->module, &several->regions[1]);
    TileMap map;
    tile_map_init(&map, w->context->scratch);
    build_together(w, &together, first, n);
    copy_loops(w, &apart, &map, tile_op_operand(w->rows, 0), tile_op_operand(w->rows, 1));
    tile_build_end(&together, TILE_OP_YIELD, NULL, 0);
    tile_build_end(&apart, TILE_OP_YIELD, NULL, 0);
    tile_op_erase(w->rows);
}

static void take_together(Window *w, TileBuilder *b, TileValue *group) {
    TileValue *lo = tile_op_operand(w->taps, 0), *hi = tile_op_operand(w->taps, 1), *one = tile_build_i64(b, 1);
    TileValue *span = binary(b, TILE_OP_SUB, hi, lo), *zero = tile_build_i64(b, 0);
    TileValue *count = binary(b, TILE_OP_DIV, binary(b, TILE_OP_SUB, binary(b, TILE_OP_ADD, span, group), one), group);
    tile_op_set_operand(w->taps, 0, zero);
    tile_op_set_operand(w->taps, 1, binary(b, TILE_OP_MAX, count, zero));
    TileBlock *body = &w->taps->regions[0];
    TileBuilder in = tile_builder_before(w->module, body->first);
    TileValue *product = binary(&in, TILE_OP_MUL, w->index, group), *first = binary(&in, TILE_OP_ADD, product, lo);
    tile_value_replace(w->index, first);
    tile_op_set_operand(product->op, 0, w->index);
    TileValue *n = binary(&in, TILE_OP_MIN, binary(&in, TILE_OP_SUB, hi, first), group);
    if (w->run) copy_rows(w, first, n);
    TileBuilder at = tile_builder_before(w->module, w->dot);
    unsigned one_operand, k = tile_op_operands(w->dot, TILE_OPERAND_K, &one_operand);
    tile_op_set_operand(w->dot, k, binary(&at, TILE_OP_MUL, tile_op_operand(w->dot, k), n));
}

/* ---- the pass ---- */

static bool stays(Window *w, const char *why) {
    tile_pass_remark(w->context, w->dot, TILE_DECISION_POSITIONS_APART, "the product", "%s", why);
    return false;
}

static bool is_zero(const Window *w, TileOperand operand) { return tile_value_is_integer(tile_op_named(w->dot, operand), 0); }

static bool join(TilePassContext *context, TileOp *dot) {
    Window w = {.context = context, .module = context->module, .dot = dot};
    if (!find_loops(&w)) return false;
    if (!is_zero(&w, TILE_OPERAND_K0)) return stays(&w, "its k begin behind the first");
    if (w.rows && !computes_rows(&w)) return stays(&w, "an operand is computed from more than a row of elements");
    TileValue *bounds[] = {tile_op_operand(w.taps, 0), tile_op_operand(w.taps, 1)};
    for (unsigned i = 0; i < 2; i++)
        if (!tile_value_outside(bounds[i], w.outer)) return stays(&w, "the number of positions varies");
    tile_map_init(&w.moved, context->scratch);
    TileBuilder b = tile_builder_before(w.module, w.outer);
    b.location = dot->location;
    TileOp *before = w.outer->previous;
    TileValue *group = group_of(&w, &b);
    while (!group && w.outer->previous != before) tile_op_erase(w.outer->previous);
    if (!group) return stays(&w, "how far apart its operands are varies from position to position");
    take_together(&w, &b, group);
    tile_pass_remark(context, dot, TILE_DECISION_POSITIONS_TOGETHER, "the product", "%s", "");
    return true;
}

TileResult tile_pass_cpu_windows(TilePassContext *context, TileFunc *func) {
    TileOps found = tile_find_each(&func->body, TILE_OP_DOT_BLOCK, context->scratch);
    bool changed = false;
    if (found.count && !context->target) return tile_pass_fail(context, TILE_INVALID_ARGUMENT, NULL, "cpu-windows needs a target");
    for (size_t i = 0; i < found.count; i++) changed |= join(context, found.items[i]);
    return changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
