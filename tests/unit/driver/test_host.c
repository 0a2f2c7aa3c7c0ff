/* The launcher's host program means what lang/eval.def says, for every operation, type and edge value. */
#include <criterion/criterion.h>
#include <math.h>

#include "lang/eval.h"
#include "lang/scalar/scalar.h"
#include "launch/host.h"

static const struct {
    TileOpId id;
    TileHostOp op;
    int operands;
    bool compares;
} operations[] = {
#define UNARY(id)                                                                                                      \
    { TILE_OP_##id, TILE_HOST_##id, 1, false }
#define BINARY(id)                                                                                                     \
    { TILE_OP_##id, TILE_HOST_##id, 2, false }
#define COMPARE(id)                                                                                                    \
    { TILE_OP_##id, TILE_HOST_##id, 2, true }
    UNARY(NEG),
    UNARY(NOT),
    UNARY(ABS),
    UNARY(FLOOR),
    UNARY(CEIL),
    UNARY(ROUND),
    UNARY(TRUNC),
    UNARY(SQRT),
    BINARY(ADD),
    BINARY(SUB),
    BINARY(MUL),
    BINARY(DIV),
    BINARY(REM),
    BINARY(MIN),
    BINARY(MAX),
    BINARY(AND),
    BINARY(OR),
    BINARY(XOR),
    BINARY(SHL),
    BINARY(SHR),
    BINARY(COPYSIGN),
    COMPARE(EQ),
    COMPARE(NE),
    COMPARE(LT),
    COMPARE(LE),
    COMPARE(GT),
    COMPARE(GE),
    {TILE_OP_FMA, TILE_HOST_FMA, 3, false},
    {TILE_OP_ISNAN, TILE_HOST_ISNAN, 1, true},
    {TILE_OP_ISINF, TILE_HOST_ISINF, 1, true},
};

static const double numbers[] = {0,        -0.0,          1,    -1,      2,       -3,    0.5,    2.5,
                                 7.75,     -1e-3,         100,  -128,    127,     255,   -32768, 65535,
                                 4e9,      -2147483648.0, 1e18, -9.3e18, 1e-40,   65504, 3e38,   1e300,
                                 INFINITY, -INFINITY,     NAN,  0.1,     1.0 / 3, 63,    64};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Bits of the language as a value of the host program, and a value back to bits. */
static TileHostValue host_value(TileScalar scalar, uint64_t bits) {
    if (tile_scalar_is_float(scalar)) return (TileHostValue){.number = tile_scalar_to_double(scalar, bits)};
    return (TileHostValue){.integer = tile_scalar_to_integer(scalar, bits)};
}

static uint64_t language_bits(TileScalar scalar, TileHostValue value) {
    return tile_scalar_slot((TileHostType)scalar, value.bits) & tile_scalar_mask(scalar);
}

static TileHostValue run(TileHostOp op, TileScalar type, TileScalar from, const TileHostValue *operands) {
    TileHostInstruction program[4] = {
        {.op = TILE_HOST_CONST, .bits = operands[0].bits},
        {.op = TILE_HOST_CONST, .bits = operands[1].bits},
        {.op = TILE_HOST_CONST, .bits = operands[2].bits},
        {.op = (uint8_t)op, .type = (uint8_t)type, .from = (uint8_t)from, .b = 1, .c = 2}};
    TileHostValue values[4];
    tile_host_run(program, 4, NULL, values);
    return values[3];
}

/* False where the operation is not for the type. */
static bool check_operation(size_t number, TileScalar scalar, const uint64_t *bits) {
    uint64_t expected;
    TileScalar result = operations[number].compares ? TILE_BOOL : scalar;
    if (!tile_eval(operations[number].id, scalar, result, bits, &expected)) return false;
    TileHostValue operands[3];
    for (int i = 0; i < 3; i++) operands[i] = host_value(scalar, bits[i]);
    uint64_t got = language_bits(result, run(operations[number].op, scalar, scalar, operands));
    cr_assert(tile_scalar_same(result, got, expected), "%s %s of 0x%llx, 0x%llx, 0x%llx is 0x%llx, not 0x%llx",
              tile_op_info(operations[number].id)->mnemonic, tile_scalar_name(scalar), (unsigned long long)bits[0],
              (unsigned long long)bits[1], (unsigned long long)bits[2], (unsigned long long)expected,
              (unsigned long long)got);
    return true;
}

static int check_pairs(size_t number, TileScalar scalar) {
    int checked = 0;
    for (int i = 0; i < NUMBERS; i++) {
        for (int k = 0; k < NUMBERS; k++) {
            const uint64_t bits[3] = {tile_scalar_from_double(scalar, numbers[i]),
                                      tile_scalar_from_double(scalar, numbers[k]),
                                      tile_scalar_from_double(scalar, numbers[(i + 3 * k) % NUMBERS])};
            checked += check_operation(number, scalar, bits);
        }
    }
    return checked;
}

Test(host, operations_as_the_language_defines_them) {
    int checked = 0;
    for (size_t number = 0; number < sizeof operations / sizeof *operations; number++)
        for (int scalar = 0; scalar < TILE_SCALAR_COUNT; scalar++) checked += check_pairs(number, (TileScalar)scalar);
    cr_assert_gt(checked, 300 * NUMBERS * NUMBERS);
}

Test(host, conversions_as_the_language_defines_them) {
    for (int from = 0; from < TILE_SCALAR_COUNT; from++) {
        for (int to = 0; to < TILE_SCALAR_COUNT; to++) {
            for (int i = 0; i < NUMBERS; i++) {
                uint64_t bits = tile_scalar_from_double((TileScalar)from, numbers[i]);
                uint64_t expected = tile_scalar_convert((TileScalar)from, (TileScalar)to, bits);
                TileHostValue operands[3] = {host_value((TileScalar)from, bits), {.bits = 0}, {.bits = 0}};
                uint64_t got =
                    language_bits((TileScalar)to, run(TILE_HOST_CONVERT, (TileScalar)to, (TileScalar)from, operands));
                cr_assert(tile_scalar_same((TileScalar)to, got, expected), "%s to %s of 0x%llx is 0x%llx, not 0x%llx",
                          tile_scalar_name((TileScalar)from), tile_scalar_name((TileScalar)to),
                          (unsigned long long)bits, (unsigned long long)expected, (unsigned long long)got);
            }
        }
    }
}
