/* The host program: meaning of each operation at the edges of its types. */
#include <criterion/criterion.h>
#include <math.h>

#include "launch/host.h"

static TileHostValue run(TileHostOp op, TileHostType type, TileHostValue a, TileHostValue b, TileHostValue c) {
    TileHostInstruction program[] = {
        {.op = TILE_HOST_CONST, .bits = a.bits},
        {.op = TILE_HOST_CONST, .bits = b.bits},
        {.op = TILE_HOST_CONST, .bits = c.bits},
        {.op = (uint8_t)op, .type = (uint8_t)type, .a = 0, .b = 1, .c = 2},
    };
    TileHostValue values[4];
    tile_host_run(program, 4, NULL, values);
    return values[3];
}

static int64_t of_integers(TileHostOp op, TileHostType type, int64_t a, int64_t b) {
    return run(op, type, (TileHostValue){.integer = a}, (TileHostValue){.integer = b}, (TileHostValue){.bits = 1})
        .integer;
}

static double of_numbers(TileHostOp op, TileHostType type, double a, double b) {
    return run(op, type, (TileHostValue){.number = a}, (TileHostValue){.number = b}, (TileHostValue){.number = 0})
        .number;
}

static TileHostValue converted(TileHostType from, TileHostType to, TileHostValue value) {
    TileHostInstruction program[] = {{.op = TILE_HOST_CONST, .bits = value.bits},
                                     {.op = TILE_HOST_CONVERT, .type = (uint8_t)to, .from = (uint8_t)from}};
    TileHostValue values[2];
    tile_host_run(program, 2, NULL, values);
    return values[1];
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
    cr_assert_eq(of_integers(TILE_HOST_LT, TILE_HOST_I64, -1, 1), 1);
    cr_assert_eq(of_integers(TILE_HOST_LT, TILE_HOST_U64, -1, 1), 0);
    cr_assert_eq(of_integers(TILE_HOST_MIN, TILE_HOST_U64, -1, 1), 1);
    cr_assert_eq(of_integers(TILE_HOST_MAX, TILE_HOST_I64, -1, 1), 1);
    cr_assert_eq(of_integers(TILE_HOST_GE, TILE_HOST_I64, 2, 2), 1);
    cr_assert_eq(of_integers(TILE_HOST_GT, TILE_HOST_I64, 2, 2), 0);
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
    TileHostValue big = {.number = 1e30}, nan = {.number = NAN}, minus = {.number = -3.9};
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I32, big).integer, INT32_MAX);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I64, big).integer, INT64_MAX);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_U64, big).bits, UINT64_MAX);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_I64, nan).integer, 0);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_I64, minus).integer, -3);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_U8, minus).integer, 0);
    cr_assert_eq(converted(TILE_HOST_F32, TILE_HOST_BOOL, minus).integer, 1);
    cr_assert_eq(converted(TILE_HOST_I64, TILE_HOST_I8, (TileHostValue){.integer = 300}).integer, 44);
    cr_assert_eq(converted(TILE_HOST_I64, TILE_HOST_F32, (TileHostValue){.integer = 16777217}).number, 16777216);
    cr_assert_eq(converted(TILE_HOST_U64, TILE_HOST_F64, (TileHostValue){.bits = UINT64_MAX}).number, 0x1p64);
    cr_assert_eq(converted(TILE_HOST_F64, TILE_HOST_F8E4M3, big).number, 448);
}

/* Every f16, bf16 and f8 number comes back from its slot. */
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
        TileHostValue value = {.number = rows[i].number};
        cr_assert_eq(tile_scalar_slot(rows[i].type, value.bits), rows[i].bits, "row %zu", i);
        cr_assert_eq(tile_host_round(rows[i].type, rows[i].number), rows[i].number, "row %zu", i);
    }
}

Test(host, text_of_values) {
    char text[40];
    tile_host_print(text, sizeof text, TILE_HOST_F32, (TileHostValue){.number = (double)0.1f});
    cr_assert_str_eq(text, "0.1");
    tile_host_print(text, sizeof text, TILE_HOST_U64, (TileHostValue){.bits = UINT64_MAX});
    cr_assert_str_eq(text, "18446744073709551615");
    tile_host_print(text, sizeof text, TILE_HOST_BOOL, (TileHostValue){.integer = 1});
    cr_assert_str_eq(text, "true");
    tile_host_print(text, sizeof text, TILE_HOST_I64, (TileHostValue){.integer = -3});
    cr_assert_str_eq(text, "-3");
}
