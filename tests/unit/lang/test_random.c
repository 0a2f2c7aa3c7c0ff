/* `rand` compared with an implementation of Philox4x32 from the paper's definition, which is checked against the test
 * vectors in Random123 (kat_vectors). */
#include <criterion/criterion.h>
#include <string.h>

#include "lang/ir/eval.h"
#include "lang/scalar/math.h"

typedef struct Block {
    uint32_t word[4];
} Block;

static Block philox(Block counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)counter.word[0] * 0xD2511F53u, b = (uint64_t)counter.word[2] * 0xCD9E8D57u;
        counter = (Block){{(uint32_t)(b >> 32) ^ counter.word[1] ^ key0, (uint32_t)b,
                           (uint32_t)(a >> 32) ^ counter.word[3] ^ key1, (uint32_t)a}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

static void expect_block(Block counter, uint32_t key0, uint32_t key1, Block expected) {
    Block got = philox(counter, key0, key1);
    cr_expect_eq(memcmp(&got, &expected, sizeof got), 0, "%08x..", got.word[0]);
}

Test(random, known_answers) {
    expect_block((Block){{0}}, 0, 0, (Block){{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    uint32_t ones = UINT32_MAX;
    expect_block((Block){{ones, ones, ones, ones}}, ones, ones,
                 (Block){{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    expect_block((Block){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
                 (Block){{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
    static const uint32_t first[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (uint64_t i = 0; i < 4; i++) cr_expect_eq(tile_math_rand(0, i), (float)(first[i] >> 8) / 16777216);
}

Test(random, equals_the_definition) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        uint64_t operands[2], bits;
        for (int k = 0; k < 2; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            operands[k] = i % 3 == 0 ? state % 5 - 2 : state;
        }
        uint64_t block_number = operands[1] / 4;
        Block counter = {{(uint32_t)block_number, (uint32_t)(block_number >> 32), 0, 0}};
        Block block = philox(counter, (uint32_t)operands[0], (uint32_t)(operands[0] >> 32));
        float expected = (float)(block.word[operands[1] % 4] >> 8) * 0x1p-24f, got;
        cr_assert(tile_eval(TILE_OP_RAND, TILE_I64, TILE_F32, operands, &bits));
        memcpy(&got, &bits, sizeof got);
        cr_assert_eq(got, expected, "seed %llx, index %llx", (unsigned long long)operands[0],
                     (unsigned long long)operands[1]);
        cr_assert(got >= 0 && got < 1);
    }
}

/* The error of a mean of n uniform numbers exceeds 5 / sqrt(12 n) with a probability of 1 in two million. */
Test(random, is_spread_evenly) {
    double sum = 0;
    unsigned bins[16] = {0};
    enum { COUNT = 160000 };
    for (uint64_t i = 0; i < COUNT; i++) {
        float x = tile_math_rand(7, i);
        sum += x;
        bins[(int)(x * 16)]++;
    }
    cr_expect_float_eq(sum / COUNT, 0.5, 5 * 0.2887 / 400);
    for (int b = 0; b < 16; b++) cr_expect(bins[b] > 9500 && bins[b] < 10500, "bin %d: %u", b, bins[b]);
}
