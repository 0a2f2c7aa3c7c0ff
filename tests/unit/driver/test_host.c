/* The launcher's host program has the semantics of lang/scalar/eval.def, for every operation, type and edge value. */
#include <criterion/criterion.h>
#include <math.h>

#include "lang/ir/eval.h"
#include "lang/scalar/scalar.h"
#include "launch/host.h"

static const double numbers[] = {0,        -0.0,          1,    -1,      2,       -3,    0.5,    2.5,
                                 7.75,     -1e-3,         100,  -128,    127,     255,   -32768, 65535,
                                 4e9,      -2147483648.0, 1e18, -9.3e18, 1e-40,   65504, 3e38,   1e300,
                                 INFINITY, -INFINITY,     NAN,  0.1,     1.0 / 3, 63,    64};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t run(TileHostOp op, TileScalar type, TileScalar from, bool approx, const uint64_t *operands) {
    TileScalar first = op == TILE_HOST_SELECT ? TILE_BOOL : from;
    TileHostInstruction program[4] = {
        {.op = TILE_HOST_CONST, .type = (uint8_t)first, .bits = operands[0] & tile_scalar_mask(first)},
        {.op = TILE_HOST_CONST, .type = (uint8_t)from, .bits = operands[1]},
        {.op = TILE_HOST_CONST, .type = (uint8_t)from, .bits = operands[2]},
        {.op = (uint8_t)op, .type = (uint8_t)type, .from = (uint8_t)from, .approx = approx}};
    unsigned count = tile_eval_op_operands((TileEvalOp)(op - TILE_HOST_FIRST_EVAL));
    program[3].b = count > 1 ? 1 : 0;
    program[3].c = count > 2 ? 2 : 0;
    uint64_t values[4];
    cr_assert(tile_host_is_sound(program, 4, &(TileImageSignature){.name = "none"}));
    tile_host_run(program, 4, NULL, values);
    return values[3];
}

/* The executor's result for one lane, by the IR's op. */
static void check_case(TileOpId id, TileScalar from, TileScalar to, bool approx, const uint64_t *bits) {
    uint64_t expected = 0, first = id == TILE_OP_SELECT ? bits[0] & 1 : bits[0];
    const uint64_t *const lanes[3] = {&first, &bits[1], &bits[2]};
    tile_eval_loop(id, from, to, approx)(from, to, lanes, &expected, 1);
    uint64_t got = run((TileHostOp)(TILE_HOST_FIRST_EVAL + (int)tile_eval_op_of(id)), to, from, approx, bits);
    cr_assert_eq(got, expected, "%s %s to %s of 0x%llx, 0x%llx, 0x%llx is 0x%llx, not 0x%llx",
                 tile_op_info(id)->mnemonic, tile_scalar_name(from), tile_scalar_name(to), (unsigned long long)bits[0],
                 (unsigned long long)bits[1], (unsigned long long)bits[2], (unsigned long long)expected,
                 (unsigned long long)got);
}

static int check_pairs(TileOpId id, TileScalar from, TileScalar to) {
    int checked = 0;
    bool approximates = tile_op_allows(id, TILE_ATTRIBUTE_APPROX);
    for (int i = 0; i < NUMBERS; i++) {
        for (int k = 0; k < NUMBERS; k++, checked++) {
            const uint64_t bits[3] = {tile_scalar_from_double(from, numbers[i]),
                                      tile_scalar_from_double(from, numbers[k]),
                                      tile_scalar_from_double(from, numbers[(i + 3 * k) % NUMBERS])};
            check_case(id, from, to, false, bits);
            if (approximates) check_case(id, from, to, true, bits);
        }
    }
    return checked;
}

/* Every elementwise op of the language on every type that it allows exists, and gives the executor's bits. */
Test(host, operations_as_the_language_defines_them) {
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        TileEvalOp op = tile_eval_op_of((TileOpId)id);
        bool elementwise = tile_op_info((TileOpId)id)->class == TILE_CLASS_ELEMENTWISE;
        int checked = 0;
        cr_assert_eq(op < TILE_EVAL_COUNT, elementwise, "%s", tile_op_info((TileOpId)id)->mnemonic);
        if (!elementwise) continue;
        cr_assert_eq((int)tile_eval_op_id(op), id);
        cr_assert_eq((int)tile_eval_op_operands(op), tile_op_info((TileOpId)id)->operands);
        for (int from = 0; from < TILE_SCALAR_COUNT; from++)
            for (int to = 0; to < TILE_SCALAR_COUNT; to++)
                if (tile_eval_op_allows(op, (TileScalar)from, (TileScalar)to))
                    checked += check_pairs((TileOpId)id, (TileScalar)from, (TileScalar)to);
        cr_assert_gt(checked, 0, "%s", tile_op_info((TileOpId)id)->mnemonic);
    }
}
