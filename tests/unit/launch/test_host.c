/* The host program: semantics of each operation for the extreme values of its types. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "lang/scalar/scalar.h"
#include "launch/host.h"

/* The program's only operation, on three constants. */
static uint64_t run(TileHostOp op, TileHostType from, TileHostType type, uint64_t a, uint64_t b, uint64_t c) {
    TileHostInstruction program[] = {
        {.op = TILE_HOST_CONST, .type = (uint8_t)from, .bits = a},
        {.op = TILE_HOST_CONST, .type = (uint8_t)from, .bits = b},
        {.op = TILE_HOST_CONST, .type = (uint8_t)from, .bits = c},
        {.op = (uint8_t)op, .type = (uint8_t)type, .from = (uint8_t)from, .a = 0, .b = 1, .c = 2},
    };
    uint64_t values[4];
    tile_host_run(program, 4, NULL, values);
    return values[3];
}

/* A value as the argument of a launch, and back. */
static uint64_t argument_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static int64_t integer_of(TileHostType type, uint64_t bits) { return tile_scalar_to_integer((TileScalar)type, bits); }

static int64_t of_integers(TileHostOp op, TileHostType type, int64_t a, int64_t b) {
    return integer_of(type,
                      run(op, type, type, tile_host_bits(type, (uint64_t)a), tile_host_bits(type, (uint64_t)b), 1));
}

static bool compared(TileHostOp op, TileHostType type, int64_t a, int64_t b) {
    return run(op, type, TILE_HOST_BOOL, tile_host_bits(type, (uint64_t)a), tile_host_bits(type, (uint64_t)b), 1) != 0;
}

static double of_numbers(TileHostOp op, TileHostType type, double a, double b) {
    uint64_t bits = run(op, type, type, tile_host_bits(type, argument_of(a)), tile_host_bits(type, argument_of(b)), 0);
    return tile_scalar_to_double((TileScalar)type, bits);
}

static int64_t converted(TileHostType from, TileHostType to, double number) {
    return integer_of(to, run(TILE_HOST_CONVERT, from, to, tile_host_bits(from, argument_of(number)), 0, 0));
}

static double converted_integer(TileHostType from, TileHostType to, uint64_t integer) {
    return tile_scalar_to_double((TileScalar)to, run(TILE_HOST_CONVERT, from, to, integer, 0, 0));
}

Test(host, integers_floor_and_wrap) {
    cr_assert_eq(of_integers(TILE_HOST_DIV, TILE_HOST_I64, -7, 2), -4);
    cr_assert_eq(of_integers(TILE_HOST_REM, TILE_HOST_I64, -7, 2), 1);
    cr_assert_eq(of_integers(TILE_HOST_DIV, TILE_HOST_I64, 7, -2), -4);
    cr_assert_eq(of_integers(TILE_HOST_REM, TILE_HOST_I64, 7, -2), -1);
    cr_assert_eq(of_integers(TILE_HOST_DIV, TILE_HOST_I64, 7, 0), 0);
    cr_assert_eq(of_integers(TILE_HOST_REM, TILE_HOST_U32, 7, 0), 0);
    cr_assert_eq(of_integers(TILE_HOST_DIV, TILE_HOST_I64, INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(of_integers(TILE_HOST_REM, TILE_HOST_I64, INT64_MIN, -1), 0);
    cr_assert_eq(of_integers(TILE_HOST_ADD, TILE_HOST_I8, 127, 1), -128);
    cr_assert_eq(of_integers(TILE_HOST_SUB, TILE_HOST_U8, 0, 1), 255);
    cr_assert_eq(of_integers(TILE_HOST_MUL, TILE_HOST_I64, INT64_MAX, 2), -2);
    cr_assert_eq(of_integers(TILE_HOST_NEG, TILE_HOST_I16, -32768, 0), -32768);
    cr_assert_eq(of_integers(TILE_HOST_ABS, TILE_HOST_I64, -5, 0), 5);
    cr_assert_eq(of_integers(TILE_HOST_NOT, TILE_HOST_BOOL, 1, 0), 0);
}

Test(host, shifts) {
    cr_assert_eq(of_integers(TILE_HOST_SHL, TILE_HOST_I32, 1, 31), INT32_MIN);
    cr_assert_eq(of_integers(TILE_HOST_SHL, TILE_HOST_I32, 1, 32), 0);
    cr_assert_eq(of_integers(TILE_HOST_SHL, TILE_HOST_I64, 1, -1), 0);
    cr_assert_eq(of_integers(TILE_HOST_SHR, TILE_HOST_I32, -8, 1), -4);
    cr_assert_eq(of_integers(TILE_HOST_SHR, TILE_HOST_I32, -8, 99), -1);
    cr_assert_eq(of_integers(TILE_HOST_SHR, TILE_HOST_U32, 8, 99), 0);
}

Test(host, comparisons_by_sign) {
    cr_assert_eq(compared(TILE_HOST_LT, TILE_HOST_I64, -1, 1), 1);
    cr_assert_eq(compared(TILE_HOST_LT, TILE_HOST_U64, -1, 1), 0);
    cr_assert_eq(of_integers(TILE_HOST_MIN, TILE_HOST_U64, -1, 1), 1);
    cr_assert_eq(of_integers(TILE_HOST_MAX, TILE_HOST_I64, -1, 1), 1);
    cr_assert_eq(compared(TILE_HOST_GE, TILE_HOST_I64, 2, 2), 1);
    cr_assert_eq(compared(TILE_HOST_GT, TILE_HOST_I64, 2, 2), 0);
}

Test(host, floats_round_to_their_type) {
    cr_assert_eq(of_numbers(TILE_HOST_ADD, TILE_HOST_F32, 16777216, 1), 16777216);
    cr_assert_eq(of_numbers(TILE_HOST_DIV, TILE_HOST_F32, 1, 3), (double)(1.0f / 3.0f));
    cr_assert_eq(of_numbers(TILE_HOST_MUL, TILE_HOST_F16, 300, 300), INFINITY);
    cr_assert_eq(of_numbers(TILE_HOST_ADD, TILE_HOST_F16, 2048, 1), 2048);
    cr_assert_eq(of_numbers(TILE_HOST_ADD, TILE_HOST_BF16, 256, 1), 256);
    cr_assert_eq(of_numbers(TILE_HOST_REM, TILE_HOST_F32, -1, 3), 2);
    cr_assert(isnan(of_numbers(TILE_HOST_MAX, TILE_HOST_F32, 1, NAN)));
    cr_assert(isnan(of_numbers(TILE_HOST_MIN, TILE_HOST_F64, NAN, 1)));
    cr_assert_eq(of_numbers(TILE_HOST_ROUND, TILE_HOST_F32, 2.5, 0), 2);
    cr_assert_eq(of_integers(TILE_HOST_SELECT, TILE_HOST_I64, 1, 7), 7);
}

Test(host, conversions) {
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I32, 1e30), INT32_MAX);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I64, 1e30), INT64_MAX);
    cr_assert_eq((uint64_t)converted(TILE_HOST_F64, TILE_HOST_U64, 1e30), UINT64_MAX);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I64, NAN), 0);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_I64, -3.9), -3);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_U8, -3.9), 0);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_BOOL, -3.9), 1);
    cr_assert_eq(integer_of(TILE_HOST_I8, run(TILE_HOST_CONVERT, TILE_HOST_I64, TILE_HOST_I8, 300, 0, 0)), 44);
    cr_assert_eq(converted_integer(TILE_HOST_I64, TILE_HOST_F32, 16777217), 16777216);
    cr_assert_eq(converted_integer(TILE_HOST_U64, TILE_HOST_F64, UINT64_MAX), 0x1p64);
    cr_assert_eq(of_numbers(TILE_HOST_ADD, TILE_HOST_F8E4M3, 1e30, 0), 448);
    cr_assert_eq(run(TILE_HOST_BITCAST, TILE_HOST_F32, TILE_HOST_U32, 0x7f800001, 0, 0),
                 0x7f800001); /* stays signaling */
}

/* Every f16, bf16 and f8 number survives the way through its slot. */
Test(host, slots_of_small_floats) {
    static const struct {
        TileHostType type;
        double number;
        uint64_t bits;
    } rows[] = {
        {TILE_HOST_F16, 1, 0x3c00},
        {TILE_HOST_F16, -2, 0xc000},
        {TILE_HOST_F16, 65504, 0x7bff},
        {TILE_HOST_F16, 0x1p-24, 1},
        {TILE_HOST_F16, 0x1p-15, 0x200},
        {TILE_HOST_F16, 0x1p-14, 0x400},
        {TILE_HOST_F16, -INFINITY, 0xfc00},
        {TILE_HOST_F16, -0.0, 0x8000},
        {TILE_HOST_BF16, 1, 0x3f80},
        {TILE_HOST_BF16, 0x1p-133, 1},
        {TILE_HOST_F8E4M3, 448, 0x7e},
        {TILE_HOST_F8E4M3, 0x1p-9, 1},
        {TILE_HOST_F8E4M3, -1, 0xb8},
        {TILE_HOST_F8E5M2, 57344, 0x7b},
        {TILE_HOST_F8E5M2, 0x1p-16, 1},
        {TILE_HOST_F32, 0.5, 0x3f000000},
        {TILE_HOST_F64, 2, UINT64_C(0x4000000000000000)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(tile_scalar_slot(rows[i].type, argument_of(rows[i].number)), rows[i].bits, "row %zu", i);
        cr_assert_eq(tile_host_round(rows[i].type, rows[i].number), rows[i].number, "row %zu", i);
    }
}

Test(host, text_of_values) {
    char text[40];
    tile_host_print(text, sizeof text, TILE_HOST_F32, 0x3dcccccd);
    cr_assert_str_eq(text, "0.1");
    tile_host_print(text, sizeof text, TILE_HOST_U64, UINT64_MAX);
    cr_assert_str_eq(text, "18446744073709551615");
    tile_host_print(text, sizeof text, TILE_HOST_BOOL, 1);
    cr_assert_str_eq(text, "true");
    tile_host_print(text, sizeof text, TILE_HOST_I64, (uint64_t)-3);
    cr_assert_str_eq(text, "-3");
    tile_host_print(text, sizeof text, TILE_HOST_I8, 0xfd);
    cr_assert_str_eq(text, "-3");
}

/* ---- invalid programs ---- */

static const TileImageParameter parameters[] = {
    {.name = "x", .rank = 2, .kind = TILE_PARAMETER_TENSOR, .type = TILE_HOST_F32, .generic = -1},
    {.name = "s", .kind = TILE_PARAMETER_SCALAR, .type = TILE_HOST_F32, .generic = -1}};
static const TileImageSignature signature = {.parameters = parameters, .parameter_count = 2};

#define ROW(...)                                                                                                       \
    (TileHostInstruction) { __VA_ARGS__ }

/* Each of these would read out of bounds of arguments, values or a table, or give bits that are not of the type. */
Test(host, programs_that_are_not_sound) {
    enum { I = TILE_HOST_I64, F = TILE_HOST_F32, B = TILE_HOST_BOOL };
    const TileHostInstruction sound[] = {{.op = TILE_HOST_DIM, .type = I, .a = 0, .b = 1},
                                         {.op = TILE_HOST_SCALAR, .type = F, .a = 1},
                                         {.op = TILE_HOST_CONST, .type = B, .bits = 1},
                                         {.op = TILE_HOST_SELECT, .type = I, .from = I, .a = 2},
                                         {.op = TILE_HOST_EXP, .type = F, .from = F, .a = 1, .b = 1, .c = 1},
                                         {.op = TILE_HOST_LT, .type = B, .from = F, .a = 4, .b = 1, .c = 4}};
    const TileHostInstruction wrong[] = {
        ROW(.op = TILE_HOST_OP_COUNT, .type = I, .from = I),
        ROW(.op = 255, .type = I, .from = I),
        ROW(.op = TILE_HOST_NEG, .type = TILE_HOST_TYPE_COUNT, .from = I),
        ROW(.op = TILE_HOST_NEG, .type = I, .from = 255),
        ROW(.op = TILE_HOST_CONST, .type = 200),
        ROW(.op = TILE_HOST_CONST, .type = TILE_HOST_I8, .bits = 256),
        ROW(.op = TILE_HOST_DIM, .type = I, .a = 2, .b = 0),
        ROW(.op = TILE_HOST_DIM, .type = I, .a = 0, .b = 2),
        ROW(.op = TILE_HOST_DIM, .type = I, .a = 1, .b = 0),
        ROW(.op = TILE_HOST_DIM, .type = F, .a = 0, .b = 0),
        ROW(.op = TILE_HOST_SCALAR, .type = F, .a = 0),
        ROW(.op = TILE_HOST_SCALAR, .type = I, .a = 1),
        ROW(.op = TILE_HOST_SCALAR, .type = F, .a = UINT32_MAX),
        ROW(.op = TILE_HOST_ADD, .type = I, .from = I, .a = 0, .b = 6),          /* itself */
        ROW(.op = TILE_HOST_ADD, .type = I, .from = I, .a = 0, .b = UINT32_MAX), /* none */
        ROW(.op = TILE_HOST_ADD, .type = I, .from = I, .a = 0, .b = 0, .c = 6),  /* one that it does not take */
        ROW(.op = TILE_HOST_ADD, .type = I, .from = I, .a = 0, .b = 1),          /* of another type */
        ROW(.op = TILE_HOST_ADD, .type = TILE_HOST_I32, .from = I, .a = 0, .b = 0),
        ROW(.op = TILE_HOST_LT, .type = I, .from = I, .a = 0, .b = 0),
        ROW(.op = TILE_HOST_EXP, .type = I, .from = I, .a = 0, .b = 0),
        ROW(.op = TILE_HOST_AND, .type = F, .from = F, .a = 1, .b = 1, .c = 1),
        ROW(.op = TILE_HOST_SELECT, .type = I, .from = I, .a = 0),
        ROW(.op = TILE_HOST_BITCAST, .type = F, .from = I, .a = 0),
        ROW(.op = TILE_HOST_RAND, .type = F, .from = F, .a = 1, .b = 1, .c = 1),
    };
    enum { SOUND = sizeof sound / sizeof *sound };
    TileHostInstruction program[SOUND + 1];
    memcpy(program, sound, sizeof sound);
    cr_assert(tile_host_is_sound(program, SOUND, &signature));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        program[SOUND] = wrong[i];
        cr_expect(!tile_host_is_sound(program, SOUND + 1, &signature), "row %zu", i);
    }
}

Test(host, names_of_operations) {
    for (int op = 0; op < TILE_HOST_OP_COUNT; op++)
        cr_expect_eq((int)tile_host_op_find(tile_host_op_name((TileHostOp)op)), op);
    cr_expect_eq(tile_host_op_find("NONE"), TILE_HOST_OP_COUNT);
    cr_expect_eq(tile_host_op_find(""), TILE_HOST_OP_COUNT);
}
