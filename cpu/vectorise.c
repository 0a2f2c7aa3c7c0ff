/* cpu-vectorise
 *
 * Purpose: lower each `loop` of a nest to vector loops, or to a scalar `for`.
 *
 * Run: --passes=cpu-vectorise,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       loop %zero, %n {extent = 1024, loop = parallel} (%i: i64) {
 *         %o = mul %i, %four : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %v = load %p : f32
 *         %w = neg %v : f32
 *         store %w, %p
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %0 = max %n, %zero : i64
 *       %1 = const {value = -64} : i64
 *       %2 = and %0, %1 : i64
 *       %3 = const {value = 64} : i64
 *       for %zero, %2, %3 (%4: i64) {
 *         %o = mul %4, %four : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %5 = load %p : vec<64 x f32>
 *         %6 = neg %5 : vec<64 x f32>
 *         store %6, %p
 *         yield
 *       }
 *       %7 = const {value = 16} : i64
 *       for %2, %n, %7 (%8: i64) {
 *         %9 = mask_lt %8, %n : vec<16 x bool>
 *         %o.1 = mul %8, %four : i64
 *         %p.1 = ptr_add %x, %o.1 : ptr<global>
 *         %10 = load %p.1, %9 {parts = [mask]} : vec<16 x f32>
 *         %11 = neg %10 : vec<16 x f32>
 *         store %11, %p.1, %9 {parts = [mask]}
 *         yield
 *       }
 *       return
 *     }
 * (The other passes simplify the result.) Which loop of a nest is vectorised depends on the accesses: neighbours in
 * memory should be neighbouring lanes. A reduction in stripes has 64 partial results, lane j of the elements j, j + 64,
 * .., which are halved at the end by shuffles: the language defines this order, independently of the machine's vectors.
 *
 * If extents are known to be multiples of a register's lanes, the remainder has no mask or is empty. Loops over tensors
 * with unknown strides that are likely to be one element also have a version for that stride.
 *
 * Needs: bodies without control flow other than loops with uniform bounds.
 * Keeps: machine form; no `loop` is left.
 * Cost: linear in the ops; each body is emitted at most twice, times the number of vectors of 64 stripes, and all of
 * that again for likely strides. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { MOST_WRAPS = 2 /* nested versions of a loop for quotients of its index */, MOST_TWICE = 64 /* ops of a loop around others that is there twice */ };

typedef struct Vectoriser {
    TilePassContext *context;
    TileModule *module;
    unsigned wraps;
    bool clamps; /* the loop is one of those that were split at borders */
    bool failed;
} Vectoriser;

/* ---- choosing the loop ---- */

static bool can_vectorise(Vectoriser *v, TileOp *loop) {
    TileStrides strides;
    bool serial_reduction = tile_loop_kind(loop) == TILE_LOOP_KIND_REDUCE && !tile_loop_in_stripes(loop);
    if (tile_loop_kind(loop) == TILE_LOOP_KIND_SEQUENTIAL || serial_reduction) return false;
    tile_strides_init(&strides, v->context, loop);
    strides.assumes = true;
    return tile_lanes_can(&strides, &loop->regions[0]);
}

/* The cost of accesses for each point, in 64ths: a loop with a small trip count leaves lanes idle. */
static int64_t point_cost(Vectoriser *v, TileOp *loop) {
    TileStrides strides;
    tile_strides_init(&strides, v->context, loop);
    strides.assumes = true;
    int64_t lanes = tile_loop_extent(loop) < 16 ? tile_loop_extent(loop) : 16;
    bool far = false;
    return tile_access_cost(&strides, &loop->regions[0], &far) * 64 / lanes;
}

/* Is there a loop in the block, or in a branch of it? */
static bool has_loop(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_LOOP || (op->id == TILE_OP_IF && (has_loop(&op->regions[0]) || has_loop(&op->regions[1])))) return true;
    return false;
}

static bool has_inner_loop(const TileOp *loop) { return has_loop(&loop->regions[0]); }

static int64_t inner_cost(Vectoriser *v, TileBlock *block, bool *possible);

/* The least cost of the loop or of those inside of it; false: none of them can be vectorised. */
static bool least_cost(Vectoriser *v, TileOp *loop, int64_t *cost) {
    bool can = can_vectorise(v, loop), below = has_inner_loop(loop);
    int64_t own = can ? point_cost(v, loop) : 0, inside = below ? inner_cost(v, &loop->regions[0], &below) : 0;
    *cost = !can ? inside : below && inside < own ? inside : own;
    return can || below;
}

/* The least cost of the loops in the block, one by one; *possible is false if one of them cannot be vectorised. Of a branch between versions of a loop one is for what is
 * likely: the one that costs less. */
static int64_t inner_cost(Vectoriser *v, TileBlock *block, bool *possible) {
    int64_t cost = 0;
    for (TileOp *op = block->first; op; op = op->next) {
        int64_t least = 0;
        if (op->id == TILE_OP_IF) {
            bool each[] = {has_loop(&op->regions[0]), has_loop(&op->regions[1])};
            int64_t of[] = {inner_cost(v, &op->regions[0], possible), inner_cost(v, &op->regions[1], possible)};
            least = each[0] && each[1] ? (of[0] < of[1] ? of[0] : of[1]) : of[0] + of[1];
        } else if (op->id == TILE_OP_LOOP && !least_cost(v, op, &least)) {
            *possible = false;
        }
        cost += least;
    }
    return cost;
}

/* Stripes are an order of floats; integers may be combined in any. */
static bool has_order(const TileOp *loop) {
    if (!tile_loop_in_stripes(loop)) return false;
    for (unsigned i = 0; i < loop->result_count; i++)
        if (!tile_scalar_is_int((TileScalar)loop->results[i].type->scalar)) return true;
    return false;
}

static bool is_best_here(Vectoriser *v, TileOp *loop) {
    if ((tile_loop_extent(loop) == 1 && !tile_loop_in_stripes(loop)) || !can_vectorise(v, loop)) return false;
    if (!has_inner_loop(loop) || has_order(loop)) return true;
    bool possible = true;
    int64_t inside = inner_cost(v, &loop->regions[0], &possible);
    return !possible || point_cost(v, loop) < inside;
}

/* ---- scalar loops ---- */

static void visit_block(Vectoriser *v, TileBlock *block);

static void remark_loop(Vectoriser *v, const TileOp *loop) {
    const char *why = NULL;
    if (tile_loop_kind(loop) == TILE_LOOP_KIND_SEQUENTIAL)
        why = "each iteration needs a result of the previous one";
    else if (tile_loop_kind(loop) == TILE_LOOP_KIND_REDUCE && !tile_loop_in_stripes(loop))
        why = "its reduction has to be done in order";
    else if (tile_loop_extent(loop) == 1)
        return; /* one iteration: nothing was lost */
    else if (has_inner_loop(loop))
        return; /* inner loops are vectorised, or have a remark */
    else
        why = "one of its ops has no vector form";
    tile_pass_remark(v->context, loop, TILE_DECISION_NOT_IN_VECTORS, "the loop", "%s", why);
}

/* Lowers the loop to a scalar `for`. */
static void make_for(Vectoriser *v, TileOp *loop) {
    TileModule *module = v->module;
    TileBuilder b = tile_builder_before(module, loop);
    unsigned carried = loop->result_count;
    TileValue **values = TILE_NEW_ARRAY(v->context->scratch, TileValue *, carried + 2);
    TileValue **yields = TILE_NEW_ARRAY(v->context->scratch, TileValue *, carried + 2);
    for (unsigned i = 0; i < carried; i++) values[i] = tile_loop_carried(loop, i);
    TileOp *made =
        tile_build_for(&b, tile_op_operand(loop, 0), tile_op_operand(loop, 1), tile_build_i64(&b, 1), values, carried);
    if (tile_loop_kind(loop) == TILE_LOOP_KIND_PARALLEL && !carried)
        tile_op_set_integer(module, made, TILE_ATTRIBUTE_LOOP_KIND, TILE_LOOP_KIND_PARALLEL);
    TileBlock *from = &loop->regions[0], *to = &made->regions[0];
    for (unsigned i = 0; i <= carried; i++) tile_value_replace(from->arguments[i], to->arguments[i]);
    tile_block_splice(to, from);
    const TileAttribute *combine = tile_op_get(loop, TILE_ATTRIBUTE_COMBINE);
    if (combine) {
        TileOp *yield = to->last;
        TileBuilder end = tile_builder_before(module, yield);
        for (unsigned i = 0; i < carried; i++) {
            values[i] = to->arguments[1 + i];
            yields[i] = tile_op_operand(yield, i);
        }
        for (unsigned i = 0; i < carried;)
            i += tile_combine(&end, (TileName)combine->integers[i], values + i, yields + i);
        for (unsigned i = 0; i < carried; i++) tile_op_set_operand(yield, i, values[i]);
    }
    for (unsigned i = 0; i < carried; i++) tile_value_replace(&loop->results[i], &made->results[i]);
    tile_op_erase(loop);
    visit_block(v, to);
}

static void count_op(TileOp *op, void *state) { ++*(unsigned *)state; }

/* Is it a loop around short loops that has masks of its own? */
static bool is_short_around(TileOp *loop) {
    unsigned ops = 0;
    bool masked = false;
    for (const TileOp *op = loop->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_LOOP && has_inner_loop(op)) return false;
        masked |= (op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE) && tile_op_has_part(op, TILE_PARTS_MASK);
    }
    if (masked) tile_block_walk(&loop->regions[0], count_op, &ops);
    return masked && ops <= MOST_TWICE;
}

/* A loop over single points is there twice where its masks are known before it, as one of vectors is. */
static void make_scalar(Vectoriser *v, TileOp *loop) {
    bool innermost = !has_inner_loop(loop), twice = tile_loop_extent(loop) > 1 && (innermost || is_short_around(loop));
    TileOp *unmasked = twice ? tile_vectorise_split_masks(v->context, loop) : NULL;
    if (unmasked) make_for(v, unmasked);
    make_for(v, loop);
}

static void visit_loop(Vectoriser *v, TileOp *loop);

/* A loop that was split at borders: what lies between them, the parts at them, and these where they have few iterations. */
static void visit_parts(Vectoriser *v, TileOp *between, TileOp *loop, TileOp *few) {
    v->clamps = true;
    visit_loop(v, between);
    visit_loop(v, loop);
    make_for(v, few);
    v->clamps = false;
}

static void visit_loop(Vectoriser *v, TileOp *loop) {
    if (is_best_here(v, loop)) {
        TileOp *versions[2];
        if (v->wraps < MOST_WRAPS && tile_vectorise_split_wraps(v->context, loop, versions)) {
            v->wraps++;
            for (unsigned i = 0; i < 2; i++) visit_loop(v, versions[i]);
            v->wraps--;
            make_for(v, loop);
            return;
        }
        TileOp *few, *unclamped = v->clamps ? NULL : tile_vectorise_split_clamps(v->context, loop, &few);
        if (unclamped) {
            visit_parts(v, unclamped, loop, few);
            return;
        }
        TileOp *unmasked = tile_vectorise_split_masks(v->context, loop);
        if (unmasked) tile_emit_versions(v->context, unmasked, tile_vectorise_emit, v->context);
        TileOp *other, *between = !v->clamps ? tile_vectorise_split_borders(v->context, loop, &few, &other) : NULL;
        if (between) visit_parts(v, between, loop, few);
        tile_emit_versions(v->context, between ? other : loop, tile_vectorise_emit, v->context);
    } else if (has_order(loop)) {
        v->failed = true;
        tile_pass_fail(v->context, TILE_INTERNAL, loop, "a reduction in stripes cannot be made of vectors");
    } else {
        remark_loop(v, loop);
        make_scalar(v, loop);
    }
}

static void visit_fold(Vectoriser *v, TileOp *loop) {
    TileOp *unmasked = tile_vectorise_split_masks(v->context, loop);
    if ((!unmasked || tile_vectorise_fold(v->context, unmasked)) && tile_vectorise_fold(v->context, loop)) return;
    v->failed = true;
    tile_pass_fail(v->context, TILE_INTERNAL, loop, "a fold in blocks cannot be made of vectors");
}

static void visit_block(Vectoriser *v, TileBlock *block) {
    for (TileOp *op = block->first, *next; op && !v->failed; op = next) {
        next = op->next;
        if (op->id == TILE_OP_LOOP)
            visit_loop(v, op);
        else if (op->id == TILE_OP_FOLD_LOOP)
            visit_fold(v, op);
        else
            for (unsigned i = 0; i < op->region_count; i++) visit_block(v, &op->regions[i]);
    }
}

static void find_loop(TileOp *op, void *state) {
    if (op->id == TILE_OP_LOOP || op->id == TILE_OP_FOLD_LOOP) *(bool *)state = true;
}

TileResult tile_pass_cpu_vectorise(TilePassContext *context, TileFunc *func) {
    bool found = false;
    tile_block_walk(&func->body, find_loop, &found);
    if (!found) return TILE_RESULT_UNCHANGED;
    if (!context->target) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-vectorise needs a target");
    Vectoriser v = {.context = context, .module = context->module};
    visit_block(&v, &func->body);
    return v.failed ? TILE_RESULT_FAILED : TILE_RESULT_CHANGED;
}
