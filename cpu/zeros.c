/* Purpose: multiply no zeros. A left operand that is where(condition, x, 0) is all zero if a part of the condition that is the same
 * for all lanes is false, as in every second row of a transposed convolution. The loops that add up its products then run only where
 * that part is true. Else each product is a zero of the right operand's sign, or no number if that is none: such a sum stays what it
 * is, but -0 becomes 0 by the first positive element, and everything NaN by an infinity or a NaN. The bits of the right operand
 * tell which, by their minimum and maximum, which take a fraction of the time.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 2, in>, %w: tensor<f32, 2, in>, %y: tensor<f32, 2, out>, %even: bool) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8, 8]
 *       %depth = dim %x {axis = 1} : i64
 *       %mask = splat %even : bool[8, 8]
 *       %sum = for %zero, %depth, %n, %none : f32[8, 8] (%k: i64, %acc: f32[8, 8]) {
 *         %a = load_tile %x, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *         %b = load_tile %w, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *         %v = select %mask, %a, %none : f32[8, 8]
 *         %c = dot %v, %b, %acc : f32[8, 8]
 *         yield %c
 *       }
 *       store_tile %y, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 2, in>, %w: tensor<f32, 2, in>, %y: tensor<f32, 2, out>, %even: bool) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 8} : i64
 *       %none = const {value = 0.0} : f32[8, 8]
 *       %depth = dim %x {axis = 1} : i64
 *       %mask = splat %even : bool[8, 8]
 *       %0 = const {value = true} : bool
 *       %sum = if %even : f32[8, 8] {
 *         %sum.1 = for %zero, %depth, %n, %none : f32[8, 8] (%k: i64, %acc: f32[8, 8]) {
 *           %a = load_tile %x, %zero, %one, %zero, %n, %k, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *           %b = load_tile %w, %k, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *           %v = select %mask, %a, %none : f32[8, 8]
 *           %c = dot %v, %b, %acc : f32[8, 8]
 *           yield %c
 *         }
 *         yield %sum.1
 *       } {
 *         %1 = const {value = 4294967295} : u32[8]
 *         %2 = const {value = 0} : u32[8]
 *         %3, %4 = for %zero, %depth, %n, %1, %2 : u32[8], u32[8] (%5: i64, %6: u32[8], %7: u32[8]) {
 *           %b.1 = load_tile %w, %5, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]} : f32[8, 8]
 *           %8 = bitcast %b.1 : u32[8, 8]
 *           %9 = const {value = 2147483647} : u32[8, 8]
 *           %10 = and %8, %9 : u32[8, 8]
 *           %11 = reduce %8 {axis = 0, kind = min} : u32[8]
 *           %12 = min %6, %11 : u32[8]
 *           %13 = reduce %10 {axis = 0, kind = max} : u32[8]
 *           %14 = max %7, %13 : u32[8]
 *           yield %12, %14
 *         }
 *         %15 = const {value = 2147483648} : u32[8]
 *         %16 = ge %3, %15 : bool[8]
 *         %17 = const {value = 2139095040} : u32[8]
 *         %18 = ge %4, %17 : bool[8]
 *         %19 = const {value = 0.0} : f32[8]
 *         %20 = const {value = -0.0} : f32[8]
 *         %21 = select %16, %20, %19 : f32[8]
 *         %22 = const {value = nan} : f32[8]
 *         %23 = select %18, %22, %21 : f32[8]
 *         %24 = reshape %23 : f32[1, 8]
 *         %25 = broadcast %24 : f32[8, 8]
 *         %26 = add %none, %25 : f32[8, 8]
 *         yield %26
 *       }
 *       store_tile %y, %sum, %zero, %one, %zero, %n, %zero, %one, %zero, %n {access = [range, range]}
 *       return
 *     }
 * Needs: licm ahead of it, which moves conditions out of loops; behind it too. Keeps: every bit of a sum that is a number.
 * Cost: linear; what the right operand is computed from is there twice. */
#include "cpu/buffers.h"
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"
#include "lowering/each.h"
#include "lowering/zero_operand.h"

enum {
    MOST_LOOPS = 6,
    DEEPEST = 24,             /* ops that an operand is looked for behind */
    INFINITE = 0x7f800000,    /* the bits of f32 without the sign: from here on, no number */
    NOT_A_NUMBER = 0x7fc00000,
    MAGNITUDE = 0x7fffffff
};

/* The loops around a product that only add it up, from the innermost on. */
typedef struct Chain {
    TileOp *dot, *loops[MOST_LOOPS];
    unsigned count;
} Chain;

typedef struct Zeros {
    TilePassContext *context;
    TileModule *module;
    TileMap map; /* values of the loops to their copies */
    bool changed;
} Zeros;

/* ---- what is copied ---- */

static bool can_copy(const TileValue *value, const TileOp *outermost, unsigned depth) {
    const TileOp *op = value->op;
    if (tile_value_outside(value, outermost)) return true;
    if (!op) return value->index == 0; /* the number of an iteration */
    bool pure = (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) || op->id == TILE_OP_LOAD_TILE;
    if (!pure || op->region_count || depth == DEEPEST) return false;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!can_copy(tile_op_operand(op, i), outermost, depth + 1)) return false;
    return true;
}

/* What the right operand is within its fill along the contracted axis, and that fill; NULL: it has none. */
static TileValue *inside_of(TileValue *b, const TileOp **fill) {
    *fill = tile_value_def(b, TILE_OP_FILL);
    if (!*fill) return b;
    const TileAttribute *axes = tile_op_get(*fill, TILE_ATTRIBUTE_AXES);
    return axes->count == 1 && axes->integers[0] == 0 ? tile_op_operand(*fill, 0) : NULL;
}

static bool is_filled_with_zero(const TileOp *fill, bool *negative) {
    uint64_t bits;
    if (!tile_value_bits(tile_op_operand(fill, 1), &bits)) return false;
    *negative = bits != 0;
    return tile_scalar_to_double(fill->results[0].type->scalar, bits) == 0;
}

/* Are both operands filled beyond the same bounds, so that their products are -0 there? Or is none? */
static bool is_plain(const TileOp *dot, const TileOp *fill) {
    const TileOp *other = tile_value_def(tile_op_operand(dot, 0), TILE_OP_FILL);
    bool a, b;
    if (!fill || !other) return !fill && !other;
    const TileAttribute *axes = tile_op_get(other, TILE_ATTRIBUTE_AXES);
    return axes->count == 1 && axes->integers[0] == 1 && tile_fill_lo(fill, 0) == tile_fill_lo(other, 0) &&
           tile_fill_hi(fill, 0) == tile_fill_hi(other, 0) && is_filled_with_zero(fill, &b) &&
           is_filled_with_zero(other, &a) && a != b;
}

static bool is_candidate(const Chain *chain) {
    const TileOp *dot = chain->dot;
    TileValue *b = tile_op_operand(dot, 1);
    const TileOp *fill;
    if (!chain->count || dot->results[0].type->rank != 2 || dot->results[0].type->scalar != TILE_F32) return false;
    if (tile_op_integer(dot, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_IEEE) != TILE_PRECISION_IEEE) return false;
    return tile_scalar_is_float(b->type->scalar) && inside_of(b, &fill) && is_plain(dot, fill);
}

/* ---- code ---- */

static const TileType *bits_type(Zeros *z, const TileType *row) { return tile_type_with_scalar(z->module->context, row, TILE_U32); }

/* The minimum or maximum over k of these bits, and of those before. */
static TileValue *more(TileBuilder *b, TileValue *bits, const TileOp *fill, bool most, TileValue *const *bounds, TileValue *before) {
    static const int64_t axes[] = {0};
    const TileType *scalar = tile_type_scalar(b->module->context, TILE_U32);
    if (fill) bits = tile_build_fill(b, bits, tile_build_bits(b, scalar, most ? 0 : UINT32_MAX), axes, bounds, 1);
    TileValue *own = tile_build_reduce(b, bits, most ? TILE_KIND_MAX : TILE_KIND_MIN, 0);
    return tile_build_binary(b, most ? TILE_OP_MAX : TILE_OP_MIN, before, own);
}

/* The loops once more, from number `depth` inward, which find the least bits of b and the greatest without the sign. */
static void build_loops(Zeros *z, TileBuilder *outer, const Chain *chain, unsigned depth, TileValue **found) {
    const TileOp *old = chain->loops[depth], *outermost = chain->loops[chain->count - 1];
    TileValue *range[3];
    for (unsigned i = 0; i < 3; i++) range[i] = tile_build_again(outer, &z->map, tile_op_operand(old, i), outermost);
    TileOp *loop = tile_build_for(outer, range[0], range[1], range[2], found, 2);
    TileBuilder b = tile_builder_at_end(z->module, &loop->regions[0]);
    b.location = old->location;
    tile_map_set(&z->map, old->regions[0].arguments[0], loop->regions[0].arguments[0]);
    TileValue *own[] = {loop->regions[0].arguments[1], loop->regions[0].arguments[2]};
    if (depth) {
        build_loops(z, &b, chain, depth - 1, own);
    } else {
        const TileOp *fill;
        TileValue *inside = inside_of(tile_op_operand(chain->dot, 1), &fill), *bounds[2] = {NULL};
        TileValue *value = tile_build_again(&b, &z->map, inside, outermost);
        for (unsigned i = 0; fill && i < 2; i++)
            bounds[i] = tile_build_again(&b, &z->map, i ? tile_fill_hi(fill, 0) : tile_fill_lo(fill, 0), outermost);
        TileValue *bits = tile_build_bitcast(&b, tile_build_convert(&b, value, TILE_F32), TILE_U32);
        TileValue *size = tile_build_binary(&b, TILE_OP_AND, bits, tile_build_integer(&b, bits->type, MAGNITUDE));
        own[0] = more(&b, bits, fill, false, bounds, own[0]);
        own[1] = more(&b, size, fill, true, bounds, own[1]);
    }
    tile_build_end(&b, TILE_OP_YIELD, own, 2);
    for (unsigned i = 0; i < 2; i++) found[i] = tile_op_result(loop, i);
}

/* The sum if all of a is 0. */
static TileValue *build_sum(Zeros *z, TileBuilder *b, const Chain *chain, TileValue *start) {
    const int64_t *extent = start->type->extent, row[] = {1, extent[1]};
    const TileType *type = tile_type_tile(z->module->context, TILE_F32, 1, &extent[1]), *bits = bits_type(z, type);
    TileValue *found[] = {tile_build_bits(b, bits, UINT32_MAX), tile_build_bits(b, bits, 0)};
    build_loops(z, b, chain, chain->count - 1, found);
    TileValue *negative = tile_build_binary(b, TILE_OP_GE, found[0], tile_build_bits(b, bits, (uint64_t)MAGNITUDE + 1));
    TileValue *infinite = tile_build_binary(b, TILE_OP_GE, found[1], tile_build_bits(b, bits, INFINITE));
    TileValue *sign = tile_build_ternary(b, TILE_OP_SELECT, negative, tile_build_number(b, type, -0.0), tile_build_number(b, type, 0));
    TileValue *sum = tile_build_ternary(b, TILE_OP_SELECT, infinite, tile_build_bits(b, type, NOT_A_NUMBER), sign);
    sum = tile_build_broadcast(b, tile_build_reshape(b, sum, 2, row), extent);
    return tile_build_binary(b, TILE_OP_ADD, start, sum);
}

static void branch(Zeros *z, const Chain *chain, TileValue *condition) {
    TileOp *outermost = chain->loops[chain->count - 1];
    TileValue *start = tile_loop_carried(outermost, 0), *old = tile_op_result(outermost, 0);
    TileBuilder b = tile_builder_before(z->module, outermost);
    b.location = outermost->location;
    tile_map_init(&z->map, z->context->scratch);
    TileOp *made = tile_build_if(&b, condition, &old->type, 1);
    tile_value_replace(old, tile_op_result(made, 0));
    tile_op_detach(outermost);
    tile_op_append(outermost, &made->regions[0]);
    TileBuilder first = tile_builder_at_end(z->module, &made->regions[0]);
    tile_build_end(&first, TILE_OP_YIELD, &old, 1);
    TileBuilder second = tile_builder_at_end(z->module, &made->regions[1]);
    second.location = b.location;
    TileValue *sum = build_sum(z, &second, chain, start);
    tile_build_end(&second, TILE_OP_YIELD, &sum, 1);
    TileBuilder front = tile_builder_before(z->module, made);
    TileValue *yes = tile_build_bool(&front, true);
    for (TileUse *use = condition->first_use, *next; use; use = next) {
        next = use->next;
        if (tile_op_inside(use->user, outermost)) tile_op_set_operand(use->user, use->index, yes);
    }
    z->changed = true;
}

/* ---- the pass ---- */

/* The most loops that one condition is outside of. */
static void look(Zeros *z, TileOp *dot) {
    Chain chain = {.dot = dot};
    chain.count = tile_adding_loops(dot, chain.loops, MOST_LOOPS);
    for (; is_candidate(&chain); chain.count--) {
        const TileOp *outermost = chain.loops[chain.count - 1], *fill;
        TileValue *condition = tile_zero_unless(tile_op_operand(dot, 0), outermost);
        bool can = condition && can_copy(inside_of(tile_op_operand(dot, 1), &fill), outermost, 0);
        for (unsigned i = 0; can && fill && i < 2; i++)
            can = can_copy(i ? tile_fill_hi(fill, 0) : tile_fill_lo(fill, 0), outermost, 0);
        for (unsigned i = 0; can && i + 1 < chain.count; i++)
            for (unsigned k = 0; k < 3; k++) can = can && can_copy(tile_op_operand(chain.loops[i], k), outermost, 0);
        if (!can) continue;
        branch(z, &chain, condition);
        return;
    }
}

TileResult tile_pass_cpu_zeros(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Zeros z = {.context = context, .module = context->module};
    TileOps found = tile_find_each(&func->body, TILE_OP_DOT, context->scratch);
    for (size_t i = 0; i < found.count; i++) look(&z, found.items[i]);
    return z.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
