/* Purpose: compute products of few rows transposed, whose weights are computed on their way. wgmma takes its first operand from registers, where
 * its second one has to lie in shared memory; an instruction has 64 rows, and any number of columns from 8 on. So what has few rows is put on the
 * side of the columns: the sums of `dot a, b` become those of `dot b', a'`, and loops carry them so. Weights of bytes, for instance, then come to
 * the tensor cores from the registers in which they are computed.
 *
 * A function's products are transposed if all of them can be computed by wgmma then.
 *
 * Run: --passes=gpu-transpose --target=sm_90a
 * Before:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %w: tensor<i8, 2, in> {noalias}, %c: tensor<f32,
 *             2, out> {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %m = const {value = 16} : i64
 *       %n = const {value = 64} : i64
 *       %acc = const {value = 0.0} : f32[16, 64]
 *       %sum = for %begin, %end, %n, %acc : f32[16, 64] (%k: i64, %acc.1: f32[16, 64]) {
 *         %x = load_tile %a, %zero, %one, %zero, %m, %k, %one, %zero, %n {access = [range, range], tensor_map
 *                 = 1} : f16[16, 64]
 *         %y = load_tile %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], tensor_map
 *                 = 1} : i8[64, 64]
 *         %y.1 = convert %y : f16[64, 64]
 *         %y.2 = permute %y.1 {axes = [1, 0]} : f16[64, 64]
 *         %acc.2 = dot %x, %y.2, %acc.1 {instruction = mma} : f32[16, 64]
 *         yield %acc.2
 *       }
 *       store_tile %c, %sum, %zero, %one, %zero, %m, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%a: tensor<f16, 2, in> {noalias}, %w: tensor<i8, 2, in> {noalias}, %c: tensor<f32,
 *             2, out> {noalias}, %begin: i64, %end: i64) threads = 128 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %m = const {value = 16} : i64
 *       %n = const {value = 64} : i64
 *       %0 = const {value = 0.0} : f32[64, 16]
 *       %sum = for %begin, %end, %n, %0 : f32[64, 16] (%k: i64, %acc.1: f32[64, 16]) {
 *         %x = load_tile %a, %zero, %one, %zero, %m, %k, %one, %zero, %n {access = [range, range], tensor_map
 *                 = 1} : f16[16, 64]
 *         %y = load_tile %w, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range], tensor_map
 *                 = 1} : i8[64, 64]
 *         %y.1 = convert %y : f16[64, 64]
 *         %1 = permute %x {axes = [1, 0]} : f16[64, 16]
 *         %acc.2 = dot %y.1, %1, %acc.1 {instruction = mma} : f32[64, 16]
 *         yield %acc.2
 *       }
 *       %2 = permute %sum {axes = [1, 0]} : f32[16, 64]
 *       store_tile %c, %2, %zero, %one, %zero, %m, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: gpu-tensor-maps, gpu-threads. Keeps: tile form. Cost: that of what gpu-warpgroups looks at, three times. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"
#include "ptx/pipeline/copies.h"
#include "ptx/pipeline/warpgroups.h"

enum { GROUP_ROWS = 64 };
enum { FIRST, SECOND, SUM, OPERANDS };

/* What has been changed: an operand, which was this value, or the type of a value. */
typedef struct Change {
    TileOp *op;
    unsigned operand;
    TileValue *value;
    const TileType *type; /* NULL: it is an operand */
} Change;

typedef struct Transpose {
    TilePassContext *context;
    TileFunc *func;
    TILE_LIST(TileOp *) dots; /* for tensor cores */
    const TileOp *wanted;     /* one that should be transposed; NULL: there is none */
    TILE_LIST(Change) changes;
    TILE_LIST(TileOp *) built;
    TILE_LIST(TileOp *) left; /* ops that lost a use */
} Transpose;

/* ---- changes, which can be taken back ---- */

static void set_operand(Transpose *t, TileOp *op, unsigned operand, TileValue *value) {
    TileValue *before = tile_op_operand(op, operand);
    tile_list_push(t->context->scratch, &t->changes, (Change){.op = op, .operand = operand, .value = before});
    if (before->op) tile_list_push(t->context->scratch, &t->left, before->op);
    tile_op_set_operand(op, operand, value);
}

static const TileType *transposed_type(TileContext *context, const TileType *type) {
    return tile_type_tile(context, type->scalar, 2, (int64_t[]){type->extent[1], type->extent[0]});
}

static void transpose_type(Transpose *t, TileValue *value) {
    tile_list_push(t->context->scratch, &t->changes, (Change){.value = value, .type = value->type});
    value->type = transposed_type(t->context->module->context, value->type);
}

static TileValue *built(Transpose *t, TileValue *value) {
    tile_list_push(t->context->scratch, &t->built, value->op);
    return value;
}

static void take_back(Transpose *t) {
    for (size_t i = t->changes.count; i-- > 0;) {
        const Change *change = &t->changes.items[i];
        if (change->type) change->value->type = change->type;
        else tile_op_set_operand(change->op, change->operand, change->value);
    }
    for (size_t i = t->built.count; i-- > 0;) tile_op_erase(t->built.items[i]);
}

/* Ops without uses go, and so do those whose results they alone took. */
static void erase_unused(TileOp *op) {
    while (op && op->block && (op->id == TILE_OP_PERMUTE || op->id == TILE_OP_CONST || op->id == TILE_OP_FILL) &&
           !tile_value_has_uses(&op->results[0])) {
        TileOp *before = op->operand_count ? tile_op_operand(op, 0)->op : NULL;
        tile_op_erase(op);
        op = before;
    }
}

static void keep(Transpose *t) {
    for (size_t i = 0; i < t->left.count; i++) erase_unused(t->left.items[i]);
    for (size_t i = 0; i < t->built.count; i++) erase_unused(t->built.items[i]);
}

/* ---- transposed tiles ---- */

static TileOp *transposition(const TileValue *value) {
    TileOp *op = tile_value_def(value, TILE_OP_PERMUTE);
    return op && value->type->rank == 2 && tile_op_get(op, TILE_ATTRIBUTE_AXES)->integers[0] ? op : NULL;
}

static bool is_transposition(const TileOp *op) { return op->id == TILE_OP_PERMUTE && transposition(&op->results[0]); }

static TileValue *transposed(Transpose *t, TileBuilder *b, TileValue *value);

/* The fill of the other tile. */
static TileValue *transposed_fill(Transpose *t, TileBuilder *b, const TileOp *fill) {
    enum { AXES = 2 };
    const TileAttribute *axes = tile_op_get(fill, TILE_ATTRIBUTE_AXES);
    int64_t others[AXES];
    TileValue *bounds[2 * AXES], *filled = transposed(t, b, tile_op_operand(fill, 0));
    for (unsigned i = 0; i < axes->count; i++) {
        others[i] = 1 - axes->integers[i];
        bounds[2 * i] = tile_fill_lo(fill, i);
        bounds[2 * i + 1] = tile_fill_hi(fill, i);
    }
    return built(t, tile_build_fill(b, filled, tile_op_operand(fill, 1), others, bounds, axes->count));
}

static TileValue *transposed(Transpose *t, TileBuilder *b, TileValue *value) {
    const TileOp *before = transposition(value), *constant = tile_value_def(value, TILE_OP_CONST);
    if (before) return tile_op_operand(before, 0);
    if (constant)
        return built(t, tile_build_bits(b, transposed_type(b->module->context, value->type), tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits));
    const TileOp *fill = tile_value_def(value, TILE_OP_FILL);
    return fill ? transposed_fill(t, b, fill) : built(t, tile_build_permute(b, value, (int64_t[]){1, 0}));
}

/* All who take the value take the other one. */
static void replace_uses(Transpose *t, const TileValue *value, TileValue *with) {
    for (TileUse *use = value->first_use, *next; use; use = next) {
        next = use->next;
        set_operand(t, use->user, use->index, with);
    }
}

/* The result is the transposed tile of what it was: those who transposed it take it as it is, all others get what they took from a transposition,
 * which is returned. */
static TileValue *transpose_result(Transpose *t, TileValue *result, TileOp *behind) {
    TileBuilder b = tile_builder_before(t->context->module, behind);
    transpose_type(t, result);
    TileValue *back = built(t, tile_build_permute(&b, result, (int64_t[]){1, 0}));
    for (TileUse *use = result->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != back->op && !is_transposition(use->user)) set_operand(t, use->user, use->index, back);
    }
    for (TileUse *use = result->first_use, *next; use; use = next) {
        next = use->next;
        TileOp *user = use->user;
        if (user == back->op || !is_transposition(user)) continue;
        replace_uses(t, &user->results[0], result);
        tile_list_push(t->context->scratch, &t->left, user);
    }
    return back;
}

/* ---- loops ---- */

static const TileUse *yield_of(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (use->user->id == TILE_OP_YIELD && tile_op_is(use->user->block->op, TILE_OP_FOR)) return use;
    return NULL;
}

static bool is_only_transposed(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!is_transposition(use->user)) return false;
    return true;
}

/* A loop that carries a tile which it transposes at both ends of an iteration carries the transposed one; so do loops around it. */
static void carry_transposed(Transpose *t, TileValue *value) {
    for (const TileUse *use; (use = yield_of(value)) != NULL;) {
        TileOp *yield = use->user, *loop = yield->block->op;
        unsigned slot = use->index, count, first = tile_op_operands(loop, TILE_OPERAND_CARRIED, &count);
        TileValue *carried = loop->regions[0].arguments[1 + slot];
        if (tile_loop_is_of_programs(loop) || !is_only_transposed(carried)) return;
        TileBuilder b = tile_builder_before(t->context->module, loop);
        set_operand(t, loop, first + slot, transposed(t, &b, tile_loop_carried(loop, slot)));
        set_operand(t, yield, slot, tile_op_operand(value->op, 0));
        transpose_result(t, carried, loop->regions[0].first);
        value = transpose_result(t, &loop->results[slot], loop->next);
    }
}

/* ---- products ---- */

static void transpose_dot(Transpose *t, TileOp *dot) {
    static const unsigned sides[OPERANDS] = {SECOND, FIRST, SUM};
    TileBuilder b = tile_builder_before(t->context->module, dot);
    TileValue *values[OPERANDS];
    for (unsigned i = 0; i < OPERANDS; i++) values[i] = transposed(t, &b, tile_op_operand(dot, sides[i]));
    for (unsigned i = 0; i < OPERANDS; i++) set_operand(t, dot, i, values[i]);
    carry_transposed(t, transpose_result(t, &dot->results[0], dot->next));
}

/* Has the product few rows, which can be columns, and is its second operand computed on its way, where its first one is copied? */
static bool is_wanted(const TileOp *dot) {
    const TileType *sums = dot->results[0].type;
    bool few = sums->extent[0] <= GROUP_ROWS && sums->extent[1] % GROUP_ROWS == 0;
    return few && gpu_operand_is_computed(dot, SECOND) && !gpu_operand_is_computed(dot, FIRST);
}

static void look_at_dot(TileOp *dot, void *state) {
    Transpose *t = state;
    if (dot->id != TILE_OP_DOT || !gpu_dot_is_mma(dot)) return;
    if (is_wanted(dot)) t->wanted = dot;
    tile_list_push(t->context->scratch, &t->dots, dot);
}

/* Are the sums of a product, which a loop carries, transposed in each iteration? */
static bool is_carried_as_it_was(const TileOp *dot) {
    const TileOp *loop = dot->block->op;
    if (!tile_op_is(loop, TILE_OP_FOR) || tile_loop_is_of_programs(loop)) return false;
    for (const TileUse *use = dot->results[0].first_use; use; use = use->next)
        if (use->user->id == TILE_OP_PERMUTE && tile_value_has_uses(&use->user->results[0])) return true;
    return transposition(tile_op_operand(dot, SUM)) != NULL;
}

/* NULL: all products can be computed by wgmma as they are now. */
static const char *why_not(Transpose *t) {
    for (size_t i = 0; i < t->dots.count; i++)
        if (is_carried_as_it_was(t->dots.items[i])) return "a loop carries its sums in another way";
    return gpu_why_not_transposed(t->context, t->func);
}

TileResult tile_pass_gpu_transpose(TilePassContext *context, TileFunc *func) {
    Transpose t = {.context = context, .func = func};
    if (func->kind != TILE_FUNC_PHASE || !context->target || !context->target->has_wgmma) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, look_at_dot, &t);
    if (!t.wanted) return TILE_RESULT_UNCHANGED;
    const char *why = gpu_loops_use_sums(&func->body) ? "a loop computes with the sums of products" : NULL;
    for (size_t i = 0; i < t.dots.count && !why; i++) transpose_dot(&t, t.dots.items[i]);
    if (!why) why = why_not(&t);
    tile_pass_remark(context, t.wanted, why ? TILE_DECISION_NOT_TRANSPOSED : TILE_DECISION_TRANSPOSED, "a product", "%s",
                     why ? why : "what has few rows lies along the columns of wgmma");
    (why ? take_back : keep)(&t);
    return why ? TILE_RESULT_UNCHANGED : TILE_RESULT_CHANGED;
}
