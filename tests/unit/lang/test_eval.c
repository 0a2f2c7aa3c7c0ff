/* Scalar meaning of the elementwise operations. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"

static uint64_t eval(TileOpId id, TileScalar type, TileScalar result_type, uint64_t x, uint64_t y, uint64_t z) {
    uint64_t operands[] = {x, y, z}, result = 0;
    cr_assert(tile_eval(id, type, result_type, operands, &result), "%s %s", tile_op_info(id)->mnemonic,
              tile_scalar_name(type));
    cr_assert_eq(result & ~tile_scalar_mask(result_type), 0, "%s %s", tile_op_info(id)->mnemonic,
                 tile_scalar_name(type));
    return result;
}

static int64_t integer(TileOpId id, TileScalar type, int64_t x, int64_t y) {
    uint64_t mask = tile_scalar_mask(type);
    return tile_scalar_to_integer(type, eval(id, type, type, (uint64_t)x & mask, (uint64_t)y & mask, 0));
}

static double number(TileOpId id, TileScalar type, double x, double y, double z) {
    uint64_t result = eval(id, type, type, tile_scalar_from_double(type, x), tile_scalar_from_double(type, y),
                           tile_scalar_from_double(type, z));
    return tile_scalar_to_double(type, result);
}

static bool test_f32(TileOpId id, double x, double y) {
    return eval(id, TILE_F32, TILE_BOOL, tile_scalar_from_double(TILE_F32, x), tile_scalar_from_double(TILE_F32, y), 0);
}

/* Compared with the definition in wide integers, for all pairs of 8-bit values. */
Test(eval, bytes_exhaustively) {
    for (int type = TILE_I8; type <= TILE_U8; type += TILE_U8 - TILE_I8)
        for (int a = 0; a < 256; a++)
            for (int b = 0; b < 256; b++) {
                int x = type == TILE_I8 ? (int8_t)a : a, y = type == TILE_I8 ? (int8_t)b : b;
                int quotient = y ? (int)floor((double)x / y) : 0, shift = b < 8 ? b : 31;
#define CUT(value) (type == TILE_I8 ? (int8_t)(value) : (uint8_t)(value))
                cr_assert_eq(integer(TILE_OP_ADD, type, x, y), CUT(x + y));
                cr_assert_eq(integer(TILE_OP_SUB, type, x, y), CUT(x - y));
                cr_assert_eq(integer(TILE_OP_MUL, type, x, y), CUT(x * y));
                cr_assert_eq(integer(TILE_OP_DIV, type, x, y), CUT(quotient));
                cr_assert_eq(integer(TILE_OP_REM, type, x, y), y ? CUT(x - quotient * y) : 0);
                cr_assert_eq(integer(TILE_OP_MIN, type, x, y), x < y ? x : y);
                cr_assert_eq(integer(TILE_OP_MAX, type, x, y), x > y ? x : y);
                cr_assert_eq(integer(TILE_OP_SHL, type, x, y), b < 8 ? CUT((unsigned)x << b) : 0);
                cr_assert_eq(integer(TILE_OP_SHR, type, x, y), x >> shift);
                cr_assert_eq(integer(TILE_OP_NEG, type, x, 0), CUT(-x));
                cr_assert_eq(integer(TILE_OP_ABS, type, x, 0), CUT(x < 0 ? -x : x));
                cr_assert_eq(integer(TILE_OP_NOT, type, x, 0), CUT(~x));
                cr_assert_eq(eval(TILE_OP_LT, type, TILE_BOOL, (uint8_t)a, (uint8_t)b, 0), x < y);
                cr_assert_eq(eval(TILE_OP_GE, type, TILE_BOOL, (uint8_t)a, (uint8_t)b, 0), x >= y);
            }
}

Test(eval, wide_integers_do_not_trap) {
    cr_expect_eq(integer(TILE_OP_DIV, TILE_I64, INT64_MIN, -1), INT64_MIN);
    cr_expect_eq(integer(TILE_OP_REM, TILE_I64, INT64_MIN, -1), 0);
    cr_expect_eq(integer(TILE_OP_DIV, TILE_I64, -7, 2), -4);
    cr_expect_eq(integer(TILE_OP_REM, TILE_I64, -7, 2), 1);
    cr_expect_eq(integer(TILE_OP_REM, TILE_I32, 7, -2), -1);
    cr_expect_eq(integer(TILE_OP_DIV, TILE_I32, 7, 0), 0);
    cr_expect_eq(integer(TILE_OP_SHR, TILE_I64, -1, 64), -1);
    cr_expect_eq(integer(TILE_OP_SHL, TILE_I64, 1, 64), 0);
    cr_expect_eq(integer(TILE_OP_SHL, TILE_I32, 1, -1), 0);
    cr_expect_eq((uint64_t)integer(TILE_OP_SHR, TILE_U64, -1, 63), 1);
    cr_expect_eq(eval(TILE_OP_NOT, TILE_BOOL, TILE_BOOL, 1, 0, 0), 0);
}

Test(eval, bits_of_integers) {
    for (TileScalar type = TILE_I8; type <= TILE_U64; type++) {
        int width = (int)tile_scalar_bits(type);
        cr_expect_eq(integer(TILE_OP_POPCOUNT, type, -1, 0), width);
        cr_expect_eq(integer(TILE_OP_POPCOUNT, type, 0x51, 0), 3);
        cr_expect_eq(integer(TILE_OP_CLZ, type, 0, 0), width);
        cr_expect_eq(integer(TILE_OP_CLZ, type, 1, 0), width - 1);
        cr_expect_eq(integer(TILE_OP_CLZ, type, -1, 0), 0);
        cr_expect_eq(integer(TILE_OP_CTZ, type, 0, 0), width);
        cr_expect_eq(integer(TILE_OP_CTZ, type, 0x50, 0), 4);
        cr_expect_eq(integer(TILE_OP_MULHI, type, 1, 3), 0);
    }
    cr_expect_eq(integer(TILE_OP_MULHI, TILE_I8, -128, -128), 64);
    cr_expect_eq(integer(TILE_OP_MULHI, TILE_I64, -1, 1), -1);
    cr_expect_eq(integer(TILE_OP_MULHI, TILE_I64, INT64_MIN, INT64_MIN), INT64_C(1) << 62);
    cr_expect_eq(integer(TILE_OP_MULHI, TILE_U64, -1, -1), -2);
    cr_expect_eq(integer(TILE_OP_MULHI, TILE_U32, 0xffffffff, 0xffffffff), 0xfffffffe);
    cr_expect_eq(eval(TILE_OP_CLZ, TILE_BOOL, TILE_BOOL, 0, 0, 0), 1);
}

Test(eval, neighbours) {
    static const TileScalar types[] = {TILE_F8E5M2, TILE_F16, TILE_BF16, TILE_F32, TILE_F64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        TileScalar type = types[i];
        uint64_t sign = UINT64_C(1) << (tile_scalar_bits(type) - 1), zero = 0, one = tile_scalar_from_double(type, 1);
        uint64_t infinite = tile_scalar_greatest(type);
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, zero, one, 0), 1);
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, zero, one | sign, 0), sign | 1);
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, sign | 1, one, 0), sign, "the sign is that of x");
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, one, infinite, 0), one + 1);
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, infinite, zero, 0), infinite - 1);
        cr_expect_eq(eval(TILE_OP_NEXTAFTER, type, type, zero, sign, 0), sign, "of equals, y");
    }
    cr_expect_eq(number(TILE_OP_NEXTAFTER, TILE_F32, FLT_MAX, INFINITY, 0), INFINITY);
    cr_expect_eq(number(TILE_OP_NEXTAFTER, TILE_F64, -INFINITY, 0, 0), -DBL_MAX);
    cr_expect(isnan(number(TILE_OP_NEXTAFTER, TILE_F16, NAN, 0, 0)));
    cr_expect(isnan(number(TILE_OP_NEXTAFTER, TILE_F16, 0, NAN, 0)));
}

Test(eval, minimum_and_maximum) {
    for (TileScalar type = TILE_F8E4M3; type <= TILE_F64; type++) {
        cr_expect(isnan(number(TILE_OP_MAX, type, NAN, 1, 0)));
        cr_expect(isnan(number(TILE_OP_MAX, type, 1, NAN, 0)));
        cr_expect(isnan(number(TILE_OP_MIN, type, NAN, 1, 0)));
        cr_expect(isnan(number(TILE_OP_MIN, type, 1, NAN, 0)));
        cr_expect(signbit(number(TILE_OP_MAX, type, -0.0, 0.0, 0)));
        cr_expect(!signbit(number(TILE_OP_MIN, type, 0.0, -0.0, 0)));
        cr_expect_eq(number(TILE_OP_MAX, type, -2, 3, 0), 3);
    }
}

Test(eval, comparisons_with_nan) {
    cr_expect(!test_f32(TILE_OP_EQ, NAN, NAN));
    cr_expect(test_f32(TILE_OP_NE, NAN, 1));
    cr_expect(!test_f32(TILE_OP_LT, NAN, 1));
    cr_expect(!test_f32(TILE_OP_GE, 1, NAN));
    cr_expect(test_f32(TILE_OP_ISNAN, NAN, 0));
    cr_expect(!test_f32(TILE_OP_ISNAN, INFINITY, 0));
    cr_expect(test_f32(TILE_OP_ISINF, -INFINITY, 0));
    cr_expect(test_f32(TILE_OP_EQ, 0.0, -0.0));
}

Test(eval, floats_round_once) {
    cr_expect_eq(number(TILE_OP_ROUND, TILE_F32, 2.5, 0, 0), 2);
    cr_expect_eq(number(TILE_OP_REM, TILE_F32, -7.5, 2, 0), 0.5);
    cr_expect_eq(number(TILE_OP_ADD, TILE_F16, 2048, 1, 0), 2048);
    cr_expect_eq(number(TILE_OP_ADD, TILE_BF16, 256, 1, 0), 256);
    cr_expect_eq(number(TILE_OP_MUL, TILE_F8E4M3, 448, 2, 0), 448);
    float x = 1 + 0x1p-12f, product = x * x;
    cr_expect_eq(number(TILE_OP_FMA, TILE_F32, (double)x, (double)x, (double)-product), 0x1p-24);
    cr_expect_eq(number(TILE_OP_FMA, TILE_F64, 1 + 0x1p-30, 1 + 0x1p-30, -(1 + 0x1p-29)), 0x1p-60);
    cr_expect(signbit(number(TILE_OP_NEG, TILE_F32, 0.0, 0, 0)));
    cr_expect(!signbit(number(TILE_OP_ABS, TILE_BF16, -0.0, 0, 0)));
    cr_expect_eq(number(TILE_OP_COPYSIGN, TILE_F16, 2, -0.0, 0), -2);
}

Test(eval, every_float_has_every_transcendental) {
    for (TileScalar type = TILE_F8E4M3; type <= TILE_F64; type++) {
        double tolerance = type == TILE_F8E5M2 ? 0.2 : type == TILE_F8E4M3 ? 0.1 : type == TILE_BF16 ? 0.01 : 0.001;
        cr_expect_float_eq(number(TILE_OP_EXP, type, 1, 0, 0), 2.71828, 3 * tolerance);
        cr_expect_float_eq(number(TILE_OP_SIGMOID, type, 0, 0, 0), 0.5, tolerance);
        cr_expect_float_eq(number(TILE_OP_POW, type, 2, 3, 0), 8, 8 * tolerance);
        cr_expect_float_eq(number(TILE_OP_RSQRT, type, 4, 0, 0), 0.5, tolerance);
    }
}

Test(eval, moves_of_bits) {
    cr_expect_eq(eval(TILE_OP_SELECT, TILE_F32, TILE_F32, 1, 5, 6), 5);
    cr_expect_eq(eval(TILE_OP_SELECT, TILE_F32, TILE_F32, 0, 5, 6), 6);
    cr_expect_eq(eval(TILE_OP_BITCAST, TILE_F32, TILE_I32, 0x7f800001, 0, 0), 0x7f800001);
    cr_expect_eq(eval(TILE_OP_CONVERT, TILE_F32, TILE_I8, tile_scalar_from_double(TILE_F32, 1e9), 0, 0), 127);
    uint64_t result, operand = 0;
    cr_expect_not(tile_eval(TILE_OP_BITCAST, TILE_F32, TILE_I8, &operand, &result));
    cr_expect_not(tile_eval(TILE_OP_EXP, TILE_I32, TILE_I32, &operand, &result));
    cr_expect_not(tile_eval(TILE_OP_LOAD, TILE_I32, TILE_I32, &operand, &result));
}

/* Exactly the combinations that the op table allows are defined. */
Test(eval, covers_the_op_table) {
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        const TileOpInfo *info = tile_op_info(id);
        if (info->class != TILE_CLASS_ELEMENTWISE || id == TILE_OP_RAND) continue; /* i64 to f32 only: test_random.c */
        for (TileScalar type = 0; type < TILE_SCALAR_COUNT; type++) {
            bool is_float = tile_scalar_is_float(type);
            bool allowed = is_float ? !(info->traits & TILE_TRAIT_INT_ONLY) : !(info->traits & TILE_TRAIT_FLOAT_ONLY);
            cr_expect_eq(tile_eval_loop(id, type, type, false) != NULL, allowed, "%s %s", info->mnemonic,
                         tile_scalar_name(type));
        }
    }
}

/* Which reductions depend on the order of elements. */
static bool order_matters(TileOpId op, TileScalar type, const uint64_t *x, int count) {
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            if (eval(op, type, type, x[a], x[b], 0) != eval(op, type, type, x[b], x[a], 0)) return true;
            for (int c = 0; c < count; c++)
                if (eval(op, type, type, eval(op, type, type, x[a], x[b], 0), x[c], 0) !=
                    eval(op, type, type, x[a], eval(op, type, type, x[b], x[c], 0), 0))
                    return true;
        }
    return false;
}

static bool repeats_matter(TileOpId op, TileScalar type, const uint64_t *x, int count) {
    for (int a = 0; a < count; a++)
        if (eval(op, type, type, x[a], x[a], 0) != x[a]) return true;
    return false;
}

Test(eval, reductions_are_what_their_rows_say) {
    static const double numbers[] = {0, -0.0, 1, 3, 0.1, 7, -2, 100, 1.3};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (int r = 0; r < TILE_REDUCTION_COUNT; r++)
        for (TileScalar type = TILE_I8; type < TILE_SCALAR_COUNT; type++) {
            TileOpId op = tile_eval_op_id(tile_reduction_op((TileReduction)r));
            if (!tile_eval_loop(op, type, type, false)) continue;
            uint64_t x[COUNT];
            for (int i = 0; i < COUNT; i++) x[i] = tile_scalar_from_double(type, numbers[i]);
            const char *name = tile_scalar_name(type);
            cr_expect_eq(tile_reduction_is_ordered((TileReduction)r, type), order_matters(op, type, x, COUNT), "%d %s",
                         r, name);
            cr_expect_eq(tile_reduction_is_idempotent((TileReduction)r), !repeats_matter(op, type, x, COUNT), "%d %s",
                         r, name);
        }
}

Test(eval, identities_do_not_change_anything) {
    for (int kind = TILE_KIND_SUM; kind <= TILE_KIND_MAX; kind++)
        for (TileScalar type = TILE_I8; type < TILE_SCALAR_COUNT; type++) {
            uint64_t x = tile_scalar_from_signed(type, 3), identity = tile_eval_identity(kind, type);
            cr_expect_eq(eval(tile_eval_combiner(kind), type, type, identity, x, 0), x);
        }
    cr_expect_eq(tile_eval_identity(TILE_KIND_ANY, TILE_BOOL), 0);
    cr_expect_eq(tile_eval_identity(TILE_KIND_ALL, TILE_BOOL), 1);
}

static uint64_t round_tf32(TileOpId id, uint64_t bits) {
    uint64_t result = 0;
    cr_assert(tile_eval(id, TILE_F32, TILE_F32, &bits, &result));
    return result;
}

/* Random words hardly ever are ties, so the recorded vectors do not test these. */
Test(eval, tf32_halves) {
    static const uint32_t rows[][3] = {/* bits, ties to even, ties away from zero */
                                       {0x3f800fff, 0x3f800000, 0x3f800000}, {0x3f801000, 0x3f800000, 0x3f802000},
                                       {0x3f801001, 0x3f802000, 0x3f802000}, {0x3f802fff, 0x3f802000, 0x3f802000},
                                       {0x3f803000, 0x3f804000, 0x3f804000}, {0xbf801000, 0xbf800000, 0xbf802000},
                                       {0x7f7fffff, 0x7f800000, 0x7f800000}, {0x00001000, 0x00000000, 0x00002000},
                                       {0xff800000, 0xff800000, 0xff800000}, {0x7f800001, 0x7fffe000, 0x7f800000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(round_tf32(TILE_OP_ROUND_TF32, rows[i][0]), rows[i][1], "%x", rows[i][0]);
        cr_expect_eq(round_tf32(TILE_OP_ROUND_TF32_AWAY, rows[i][0]), rows[i][2], "%x", rows[i][0]);
    }
}
