/* Numbers and bits of every scalar type. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "lang/scalar/scalar.h"

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ *state >> 29;
}

static uint64_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

Test(scalar, every_small_float_round_trips) {
    static const TileScalar types[] = {TILE_F8E4M3, TILE_F8E5M2, TILE_F16, TILE_BF16};
    TileArena *arena = tile_arena_create(NULL);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint64_t bits = 0; bits <= tile_scalar_mask(types[t]); bits++) {
            double value = tile_scalar_to_double(types[t], bits);
            bool saturates = types[t] == TILE_F8E5M2 && isinf(value);
            uint64_t expected = saturates ? bits - 1 : bits;
            cr_assert(tile_scalar_same(types[t], tile_scalar_from_double(types[t], value), expected));
            cr_assert_eq(tile_scalar_is_nan(types[t], bits), isnan(value) != 0);
            TileText text = {.arena = arena};
            uint64_t back = 0;
            tile_scalar_print(&text, types[t], bits);
            cr_assert(tile_scalar_read(types[t], tile_text_get(&text), text.length, &back));
            cr_assert_eq(back, bits, "%s: %s", tile_scalar_name(types[t]), tile_text_get(&text));
        }
    tile_arena_destroy(arena);
}

/* The nearest number of the type, found by exhaustive search. */
static double nearest(TileScalar type, double value) {
    double best = 0, best_distance = HUGE_VAL;
    bool best_even = true;
    for (uint64_t bits = 0; bits <= tile_scalar_mask(type); bits++) {
        double candidate = tile_scalar_to_double(type, bits), distance = fabs(candidate - value);
        if (isnan(candidate) || isinf(candidate)) continue;
        if (distance > best_distance || (distance == best_distance && (best_even || (bits & 1)))) continue;
        best = candidate;
        best_distance = distance;
        best_even = !(bits & 1);
    }
    return best;
}

Test(scalar, eight_bit_floats_round_to_nearest_and_saturate) {
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        double value = ldexp((double)(int64_t)next_random(&state), (int)(next_random(&state) % 40) - 82);
        for (TileScalar type = TILE_F8E4M3; type <= TILE_F8E5M2; type++)
            cr_assert_eq(tile_scalar_to_double(type, tile_scalar_from_double(type, value)), nearest(type, value), "%a",
                         value);
    }
    cr_expect_eq(tile_scalar_from_double(TILE_F8E4M3, INFINITY), 0x7e);
    cr_expect_eq(tile_scalar_from_double(TILE_F8E5M2, -1e9), 0xfb);
    cr_expect_eq(tile_scalar_from_double(TILE_F8E4M3, NAN) & 0x7f, 0x7f);
}

Test(scalar, agrees_with_the_machine) {
    uint64_t state = 7;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = next_random(&state);
        int64_t integer = (int64_t)bits >> (next_random(&state) % 64);
        cr_assert_eq(tile_scalar_from_signed(TILE_F32, integer), float_bits((float)integer));
        cr_assert_eq(tile_scalar_from_unsigned(TILE_F32, bits), float_bits((float)bits));
        double wide = (double)integer;
        uint64_t wide_bits;
        memcpy(&wide_bits, &wide, sizeof wide_bits);
        cr_assert_eq(tile_scalar_from_signed(TILE_F64, integer), wide_bits);
        float value = tile_scalar_to_float(TILE_F32, bits & UINT32_MAX);
        cr_assert(tile_scalar_same(TILE_BF16, tile_scalar_from_float(TILE_BF16, value),
                                   tile_scalar_from_double(TILE_BF16, (double)value)));
    }
}

Test(scalar, conversions) {
    cr_expect_eq(tile_scalar_from_double(TILE_I8, -300), 0x80);
    cr_expect_eq(tile_scalar_from_double(TILE_I8, 127.9), 127);
    cr_expect_eq(tile_scalar_from_double(TILE_U8, -1), 0);
    cr_expect_eq(tile_scalar_from_double(TILE_U64, 1e30), UINT64_MAX);
    cr_expect_eq(tile_scalar_from_double(TILE_I64, 1e30), INT64_MAX);
    cr_expect_eq(tile_scalar_from_double(TILE_I32, NAN), 0);
    cr_expect_eq(tile_scalar_from_double(TILE_BOOL, NAN), 1);
    cr_expect_eq(tile_scalar_convert(TILE_I32, TILE_I8, 0x1ff), 0xff);
    cr_expect_eq(tile_scalar_convert(TILE_I8, TILE_I64, 0xff), UINT64_MAX);
    cr_expect_eq(tile_scalar_convert(TILE_U8, TILE_I64, 0xff), 255);
    cr_expect_eq(tile_scalar_convert(TILE_F32, TILE_BOOL, float_bits(-0.0f)), 0);
    cr_expect_eq(tile_scalar_convert(TILE_BOOL, TILE_F16, 1), 0x3c00);
    /* 2^24 + 1 + epsilon: rounding to f32 first would lose the epsilon. */
    cr_expect_eq(tile_scalar_convert(TILE_I64, TILE_F16, 65519), 0x7bff);
    cr_expect_eq(tile_scalar_convert(TILE_I64, TILE_F16, 65520), 0x7c00);
    cr_expect_eq(tile_scalar_convert(TILE_I64, TILE_BF16, 0x1010000000000001), 0x5d81);
}

Test(scalar, text_that_is_no_number_is_refused) {
    static const char *const texts[] = {"",    "-",  "x",        "0x",          "1.5.2", "1e",
                                        "256", "-1", "bits(0x)", "bits(0x1ff)", "tru"};
    uint64_t bits;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_not(tile_scalar_read(TILE_U8, texts[i], strlen(texts[i]), &bits), "%s", texts[i]);
    cr_expect_not(tile_scalar_read(TILE_F32, "1.5.2", 5, &bits));
    cr_expect_not(tile_scalar_read(TILE_F32, "--1", 3, &bits));
    cr_expect_not(tile_scalar_read(TILE_BOOL, "1", 1, &bits));
}
