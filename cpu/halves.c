/* Purpose: widen bf16 by halves of words. Two neighbouring bf16 are a word of 32 bits, and each is an f32 by one operation: the lower one
 * shifted up, the upper one without the lower bits. In the order of memory each vector of f32 takes a shuffle and a shift. So vectors
 * that a loop only adds up (or combines otherwise lane by lane) hold the even elements before the odd ones; behind the loop
 * what it has carried comes back to the order of memory. Each lane computes what it did.
 *
 * Run: --passes=cpu-halves,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64, %y: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %two = const {value = 2} : i64
 *       %step = const {value = 32} : i64
 *       %none = const {value = 0.0} : vec<32 x f32>
 *       %sum = for %zero, %n, %step, %none : vec<32 x f32> (%i: i64, %acc: vec<32 x f32>) {
 *         %o = mul %i, %two : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %v = load %p : vec<32 x bf16>
 *         %w = convert %v : vec<32 x f32>
 *         %next = add %acc, %w : vec<32 x f32>
 *         yield %next
 *       }
 *       store %sum, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64, %y: ptr<global>) {
 *       %zero = const {value = 0} : i64
 *       %two = const {value = 2} : i64
 *       %step = const {value = 32} : i64
 *       %none = const {value = 0.0} : vec<32 x f32>
 *       %0 = lt %zero, %n : bool
 *       %sum = if %0 : vec<32 x f32> {
 *         %sum.1 = for %zero, %n, %step, %none : vec<32 x f32> (%i: i64, %acc: vec<32 x f32>) {
 *           %o = mul %i, %two : i64
 *           %p = ptr_add %x, %o : ptr<global>
 *           %1 = load %p {align = 2} : vec<16 x u32>
 *           %2 = const {value = 16} : vec<16 x u32>
 *           %3 = shl %1, %2 : vec<16 x u32>
 *           %4 = bitcast %3 : vec<16 x f32>
 *           %5 = const {value = 4294901760} : vec<16 x u32>
 *           %6 = and %1, %5 : vec<16 x u32>
 *           %7 = bitcast %6 : vec<16 x f32>
 *           %w = shuffle %4, %7 {axes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]} : vec<32 x f32>
 *           %next = add %acc, %w : vec<32 x f32>
 *           yield %next
 *         }
 *         %sum.2 = shuffle %sum.1, %sum.1 {axes = [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31]} : vec<32 x f32>
 *         yield %sum.2
 *       } {
 *         yield %none
 *       }
 *       store %sum, %y
 *       return
 *     }
 * What else such vectors meet has to be the same in all lanes, or come from outside of the loop, in front of which it is put into their
 * order. Vectors that are stored in the loop, or meet others that it loads, stay as they are.
 *
 * A loop of few iterations stays as it is, since what it carries has to come back, and what comes from a loop around has to be put into the
 * order as well; one without any is branched around.
 *
 * Needs: vectors, and bf16 that is still converted: ahead of legalise. Keeps: every bit. Cost: linear times the depth of loops. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"

enum { MOST_LANES = 256, MOST_CARRIED = 16, WORD_BYTES = 4, HALF_BITS = 16 };
enum { LEAST_GAIN = 8 }; /* vectors that are widened for each that comes back to the order of memory; four would be as fast */
#define UPPER_HALF 0xffff0000u

typedef struct Halves {
    TilePassContext *context;
    TileModule *module;
    TileOp *loop;
    TileMap in;      /* values of the loop that hold even elements first; which of them is not known before all are asked */
    TileMap ordered; /* values from outside to what they are in this order */
    TileValue *met;  /* the last one that cannot, of those that are widened; NULL: none is widened */
    unsigned widened, carried;
    bool changed;
} Halves;

static bool is_in(const Halves *h, const TileValue *value) { return tile_map_get(&h->in, value) != NULL; }

/* A vector of more than one register, of even and odd elements. */
static bool is_long(const Halves *h, const TileType *type) {
    int64_t lanes = type->kind == TILE_TYPE_VECTOR && !type->scalable ? type->extent[0] : 0;
    return lanes % 2 == 0 && lanes <= MOST_LANES && lanes / 2 * WORD_BYTES >= h->context->target->vector_bytes;
}

/* What shuffles move as it is: masks are bits of other registers. */
static bool is_moved(const Halves *h, const TileType *type) { return is_long(h, type) && tile_scalar_bits(type->scalar) == 8 * WORD_BYTES; }

static bool is_uniform(const TileValue *value) {
    return tile_value_def(value, TILE_OP_CONST) || tile_value_def(value, TILE_OP_SPLAT);
}

/* bf16 in the loop, all of it loaded for this, to f32. */
static bool is_widening(const Halves *h, const TileOp *op) {
    if (op->id != TILE_OP_CONVERT || op->results->type->scalar != TILE_F32 || !is_long(h, op->results->type)) return false;
    const TileValue *x = tile_op_operand(op, 0);
    const TileOp *load = tile_value_def(x, TILE_OP_LOAD);
    return x->type->scalar == TILE_BF16 && load && load->block == op->block && load->operand_count == 1 &&
           tile_value_has_one_use(x);
}

static bool is_lane_by_lane(const Halves *h, const TileOp *op) {
    const TileOpInfo *info = tile_op_info((TileOpId)op->id);
    return info->class == TILE_CLASS_ELEMENTWISE && (info->traits & TILE_TRAIT_PURE) && op->result_count == 1 &&
           is_long(h, op->results->type);
}

/* ---- which values can hold even elements first ---- */

static void begin_with_all(Halves *h) {
    TileBlock *body = &h->loop->regions[0];
    for (unsigned i = 1; i < body->argument_count; i++)
        if (is_moved(h, body->arguments[i]->type)) tile_map_set(&h->in, body->arguments[i], h);
    for (TileOp *op = body->first; op; op = op->next)
        if (is_widening(h, op) || is_lane_by_lane(h, op)) tile_map_set(&h->in, op->results, h);
}

/* Is each operand in this order too, or can be put there ahead of the loop? */
static bool operands_allow(const Halves *h, const TileOp *op) {
    bool some = is_widening(h, op);
    for (unsigned i = 0; i < op->operand_count && !is_widening(h, op); i++) {
        const TileValue *x = tile_op_operand(op, i);
        some |= is_in(h, x);
        if (!is_in(h, x) && !is_uniform(x) && !(tile_value_outside(x, h->loop) && is_moved(h, x->type))) return false;
        if (x->type->kind != TILE_TYPE_VECTOR || x->type->extent[0] != op->results->type->extent[0]) return false;
    }
    return some;
}

/* Does nobody but lanes in this order, and what is carried in it, take the value? */
static bool users_allow(const Halves *h, const TileValue *value) {
    TileBlock *body = &h->loop->regions[0];
    for (const TileUse *use = value->first_use; use; use = use->next) {
        if (use->user->block != body) return false;
        if (use->user == body->last ? !is_in(h, body->arguments[use->index + 1]) : !is_in(h, use->user->results)) return false;
    }
    return true;
}

static bool drop(Halves *h, TileValue *value, bool keeps) {
    if (!is_in(h, value) || keeps) return false;
    if (value->op && is_widening(h, value->op)) h->met = value;
    tile_map_set(&h->in, value, NULL);
    return true;
}

/* What remains is the greatest set whose values only meet one another. */
static void find_values(Halves *h) {
    TileBlock *body = &h->loop->regions[0];
    begin_with_all(h);
    for (bool again = true; again;) {
        again = false;
        for (TileOp *op = body->first; op != body->last; op = op->next)
            for (unsigned i = 0; i < op->result_count; i++) {
                TileValue *value = tile_op_result(op, i);
                again |= is_in(h, value) && drop(h, value, operands_allow(h, op) && users_allow(h, value));
            }
        for (unsigned i = 1; i < body->argument_count; i++) {
            TileValue *next = tile_op_operand(body->last, i - 1);
            again |= drop(h, body->arguments[i], users_allow(h, body->arguments[i]) && is_in(h, next));
        }
    }
    for (TileOp *op = body->first; op; op = op->next) h->widened += is_widening(h, op) && is_in(h, op->results);
    for (unsigned i = 1; i < body->argument_count; i++) h->carried += is_in(h, body->arguments[i]);
}

/* Are there iterations enough to pay for what comes back behind the loop? A number that is not known is large, unless values come
 * from a loop around: then this one is likely a row of a window, and has to have so many for certain. */
static bool pays(const Halves *h) {
    int64_t step, entering = 0;
    TileBlock *body = &h->loop->regions[0];
    TileIndexRange range = tile_index_difference(tile_pass_indices(h->context, tile_op_func(h->loop)),
                                                 tile_op_named(h->loop, TILE_OPERAND_HI), tile_op_named(h->loop, TILE_OPERAND_LO));
    for (unsigned i = 1; i < body->argument_count; i++)
        entering += is_in(h, body->arguments[i]) && !is_uniform(tile_loop_carried(h->loop, i - 1));
    if (!tile_value_integer(tile_op_named(h->loop, TILE_OPERAND_STEP), &step)) return !entering;
    int64_t iterations = (entering ? range.lo : range.hi) / step;
    return iterations >= LEAST_GAIN * ((int64_t)h->carried + entering) / h->widened;
}

/* ---- putting them there ---- */

/* Lane l of the result is lane (l % a) * b + l / a: with a = 2 from even elements first to the order of memory. */
static TileValue *reordered(TileBuilder *b, TileValue *x, int64_t a) {
    int64_t lanes[MOST_LANES], count = x->type->extent[0], others = count / a;
    for (int64_t i = 0; i < count; i++) lanes[i] = i % a * others + i / a;
    return tile_build_shuffle(b, x, x, lanes, (unsigned)count);
}

static void widen(Halves *h, TileOp *op) {
    TileValue *x = tile_op_operand(op, 0);
    TileOp *load = x->op;
    TileBuilder b = tile_builder_before(h->module, load);
    int64_t lanes[MOST_LANES], count = x->type->extent[0], align = tile_op_integer(load, TILE_ATTRIBUTE_ALIGN, 2);
    const TileType *words = tile_type_vector(h->module->context, TILE_U32, count / 2, false);
    TileValue *both = tile_build_load(&b, words, tile_op_named(load, TILE_OPERAND_ADDRESS), NULL, NULL, align);
    TileValue *even = tile_build_binary(&b, TILE_OP_SHL, both, tile_build_bits(&b, words, HALF_BITS));
    even = tile_build_bitcast(&b, even, TILE_F32);
    TileValue *odd = tile_build_binary(&b, TILE_OP_AND, both, tile_build_bits(&b, words, UPPER_HALF));
    odd = tile_build_bitcast(&b, odd, TILE_F32);
    for (int64_t i = 0; i < count; i++) lanes[i] = i;
    TileValue *made = tile_build_shuffle(&b, even, odd, lanes, (unsigned)count);
    tile_map_set(&h->in, made, h);
    tile_value_replace(op->results, made);
    tile_op_erase(op);
    tile_op_erase(load);
}

/* The value from outside of the loop, in the order of its lanes. */
static TileValue *ordered(Halves *h, TileValue *x) {
    TileValue *made = tile_map_get(&h->ordered, x);
    if (made || is_uniform(x) || x->type->kind != TILE_TYPE_VECTOR) return made ? made : x;
    TileBuilder b = tile_builder_before(h->module, h->loop);
    made = reordered(&b, x, x->type->extent[0] / 2);
    tile_map_set(&h->ordered, x, made);
    return made;
}

static void order_operands(Halves *h) {
    for (TileOp *op = h->loop->regions[0].first, *next; op; op = next) {
        next = op->next;
        if (op->result_count != 1 || !is_in(h, op->results)) continue;
        if (is_widening(h, op)) {
            widen(h, op);
            continue;
        }
        for (unsigned i = 0; i < op->operand_count; i++)
            if (!is_in(h, tile_op_operand(op, i))) tile_op_set_operand(op, i, ordered(h, tile_op_operand(op, i)));
    }
}

/* A loop without iterations has nothing that would have to come back: what it carries stays what it is, in a branch. */
static void branch_around(Halves *h) {
    const TileType *types[MOST_CARRIED];
    TileValue *init[MOST_CARRIED], *made[MOST_CARRIED];
    TileBuilder b = tile_builder_before(h->module, h->loop);
    TileValue *lo = tile_op_named(h->loop, TILE_OPERAND_LO), *hi = tile_op_named(h->loop, TILE_OPERAND_HI);
    unsigned count = h->loop->result_count;
    for (unsigned i = 0; i < count; i++) {
        types[i] = tile_op_result(h->loop, i)->type;
        init[i] = tile_loop_carried(h->loop, i);
        made[i] = tile_op_result(h->loop, i);
    }
    TileOp *branch = tile_build_if(&b, tile_build_binary(&b, TILE_OP_LT, lo, hi), types, count);
    for (unsigned i = 0; i < count; i++) tile_value_replace(made[i], tile_op_result(branch, i));
    tile_op_detach(h->loop);
    tile_op_append(h->loop, &branch->regions[0]);
    TileBuilder then = tile_builder_at_end(h->module, &branch->regions[0]);
    tile_build_end(&then, TILE_OP_YIELD, made, count);
    TileBuilder other = tile_builder_at_end(h->module, &branch->regions[1]);
    tile_build_end(&other, TILE_OP_YIELD, init, count);
}

/* What the loop carries begins in this order, and comes back behind it. */
static void order_carried(Halves *h) {
    TileBlock *body = &h->loop->regions[0];
    unsigned carried = tile_op_operands(h->loop, TILE_OPERAND_CARRIED, &(unsigned){0});
    for (unsigned i = 1; i < body->argument_count; i++, carried++) {
        TileValue *result = tile_op_result(h->loop, i - 1);
        if (!is_in(h, body->arguments[i])) continue;
        tile_op_set_operand(h->loop, carried, ordered(h, tile_op_operand(h->loop, carried)));
        TileBuilder b = tile_builder_before(h->module, h->loop->next);
        TileValue *made = reordered(&b, result, 2);
        tile_value_replace(result, made);
        tile_op_set_operand(made->op, 0, result);
        tile_op_set_operand(made->op, 1, result);
    }
}

static void look_at(Halves *h, TileOp *loop) {
    h->loop = loop;
    h->met = NULL;
    h->widened = h->carried = 0;
    tile_map_init(&h->in, h->context->scratch);
    tile_map_init(&h->ordered, h->context->scratch);
    find_values(h);
    if (h->met)
        tile_pass_remark(h->context, h->met->op, TILE_DECISION_NOT_IN_HALVES, "bf16", "%s",
                         "what is computed of it is stored in the loop, or meets what is loaded there");
    if (!h->widened) return;
    if (!pays(h) || h->loop->result_count > MOST_CARRIED) {
        tile_pass_remark(h->context, loop, TILE_DECISION_NOT_IN_HALVES, "bf16", "%s", "the loop has few iterations for what it carries");
        return;
    }
    tile_pass_remark(h->context, loop, TILE_DECISION_IN_HALVES, "bf16", "%s", "in vectors that the loop combines lane by lane");
    branch_around(h);
    order_operands(h);
    order_carried(h);
    h->changed = true;
}

TileResult tile_pass_cpu_halves(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || !context->target || context->target->scalable) return TILE_RESULT_UNCHANGED;
    Halves halves = {.context = context, .module = func->module};
    TileOps loops = tile_find_each(&func->body, TILE_OP_FOR, context->scratch);
    for (size_t i = loops.count; i-- > 0;) look_at(&halves, loops.items[i]);
    return halves.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
