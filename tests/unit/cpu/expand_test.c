/* random, math and legalise: after the passes, every elementwise op at every type, as scalar and as vector, gives the same as
 * lang/scalar, and the back end has all ops. */
#include <stdio.h>
#include <string.h>

#include "lang/ir/eval.h"
#include "lang/scalar/math.h"
#include "lang/scalar/scalar.h"
#include "tests/unit/cpu/passing.h"

enum { VALUES = 64, LANES = 8, OPERANDS = 3 };

typedef struct Case {
    TileOpId id;
    TileScalar from, to;
    int lanes;
    bool approx;
} Case;

static const char *type_name(char *text, size_t size, TileScalar scalar, int lanes) {
    if (lanes == 1)
        snprintf(text, size, "%s", tile_scalar_name(scalar));
    else
        snprintf(text, size, "vec<%d x %s>", lanes, tile_scalar_name(scalar));
    return text;
}

static TileScalar operand_scalar(const Case *test, int operand) {
    return test->id == TILE_OP_SELECT && operand == 0 ? TILE_BOOL : test->from;
}

/* Operands are loaded from %p0, %p1, %p2 and results stored to %r, each with `lanes` contiguous elements. */
static void write_case(TileText *text, const Case *test) {
    const TileOpInfo *info = tile_op_info(test->id);
    char type[32];
    tile_text_add(text,
                  "func phase machine @e(%p0: ptr<global>, %p1: ptr<global>, %p2: ptr<global>, %r: ptr<global>) {\n");
    for (int i = 0; i < info->operands; i++)
        tile_text_format(text, "  %%x%d = load %%p%d : %s\n", i, i,
                         type_name(type, sizeof type, operand_scalar(test, i), test->lanes));
    tile_text_format(text, "  %%y = %s %%x0", info->mnemonic);
    for (int i = 1; i < info->operands; i++) tile_text_format(text, ", %%x%d", i);
    tile_text_format(text, "%s : %s\n  store %%y, %%r\n  return\n}\n", test->approx ? " {approx = 1}" : "",
                     type_name(type, sizeof type, test->to, test->lanes));
}

static void check_left_op(TileOp *op, void *state) {
    cr_expect(!tile_math_has(tile_eval_op_of(op->id)), "%s is left", tile_op_info(op->id)->mnemonic);
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE) return;
    if (op->id == TILE_OP_SELECT || op->id == TILE_OP_BITCAST) return;
    TileScalar scalar = tile_op_operand(op, 0)->type->scalar;
    cr_expect(scalar != TILE_BF16 && tile_scalar_bits(scalar) > 8u * (unsigned)tile_scalar_is_float(scalar),
              "%s of %s is left", tile_op_info(op->id)->mnemonic, tile_scalar_name(scalar));
    bool extreme = op->id == TILE_OP_MIN || op->id == TILE_OP_MAX || op->id == TILE_OP_REM;
    cr_expect(!extreme || !tile_scalar_is_float(scalar), "%s of floats is left", tile_op_info(op->id)->mnemonic);
    (void)state;
}

static void run_values(const Passing *passing, const Case *test, uint64_t *random) {
    const TileOpInfo *info = tile_op_info(test->id);
    uint64_t values[OPERANDS][LANES], expected[LANES];
    uint64_t memory[OPERANDS + 1][LANES] = {{0}};
    TileExecutor *executor = passing_executor(passing, 1);
    for (int i = 0; i < info->operands; i++) {
        unsigned size = tile_scalar_bytes(operand_scalar(test, i));
        for (int l = 0; l < test->lanes; l++) {
            values[i][l] = passing_bits(random, operand_scalar(test, i));
            memcpy((char *)memory[i] + (size_t)l * size, &values[i][l], size);
        }
    }
    for (unsigned i = 0; i <= OPERANDS; i++)
        tile_executor_bind_pointer(executor, i, memory[i], 0, sizeof memory[i], true);
    passing_execute(executor);
    const uint64_t *in[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) in[i] = values[i < info->operands ? i : 0];
    tile_eval_loop(test->id, test->from, test->to, test->approx)(test->from, test->to, in, expected,
                                                                 (size_t)test->lanes);
    for (int l = 0; l < test->lanes; l++) {
        uint64_t got = 0;
        memcpy(&got, (char *)memory[OPERANDS] + (size_t)l * tile_scalar_bytes(test->to), tile_scalar_bytes(test->to));
        cr_expect(tile_scalar_same(test->to, got, expected[l]), "%s %s to %s, %d lanes: %llx, %llx gave %llx, not %llx",
                  info->mnemonic, tile_scalar_name(test->from), tile_scalar_name(test->to), test->lanes,
                  (unsigned long long)in[0][l], (unsigned long long)in[1][l], (unsigned long long)got,
                  (unsigned long long)expected[l]);
    }
}

static void check_case(const Case *test, uint64_t *random) {
    if (!tile_eval_loop(test->id, test->from, test->to, test->approx)) return;
    TileArena *arena = tile_arena_create(NULL);
    TileText text = {.arena = arena};
    write_case(&text, test);
    Passing passing = passing_read(tile_text_get(&text));
    passing_run(&passing, "random,math,legalise", tile_cpu_target_find("avx2"));
    tile_block_walk(&passing.module->first->body, check_left_op, NULL);
    for (int done = 0; done < VALUES; done += test->lanes) run_values(&passing, test, random);
    passing_release(&passing);
    tile_arena_destroy(arena);
}

static bool takes(const TileOpInfo *info, TileScalar scalar) {
    bool is_float = tile_scalar_is_float(scalar);
    return !((info->traits & TILE_TRAIT_FLOAT_ONLY) && !is_float) &&
           !((info->traits & TILE_TRAIT_INT_ONLY) && is_float);
}

static bool gives_bool(TileOpId id) {
    return (id >= TILE_OP_EQ && id <= TILE_OP_GE) || id == TILE_OP_ISNAN || id == TILE_OP_ISINF;
}

static void check_type(TileOpId id, TileScalar from, int lanes, uint64_t *random) {
    if (id == TILE_OP_RAND) {
        if (from == TILE_I64) check_case(&(Case){id, from, TILE_F32, lanes, false}, random);
        return;
    }
    if (id == TILE_OP_CONVERT) {
        for (int to = 0; to < TILE_SCALAR_COUNT; to++)
            check_case(&(Case){id, from, (TileScalar)to, lanes, false}, random);
        return;
    }
    check_case(&(Case){id, from, gives_bool(id) ? TILE_BOOL : from, lanes, false}, random);
    if (tile_math_has(tile_eval_op_of(id))) check_case(&(Case){id, from, from, lanes, true}, random);
}

Test(expand, every_op_at_every_type) {
    uint64_t random = 88172645463325252u;
    for (int id = 0; id < TILE_OP_COUNT; id++) {
        const TileOpInfo *info = tile_op_info((TileOpId)id);
        if (info->class != TILE_CLASS_ELEMENTWISE || id == TILE_OP_OPAQUE || id == TILE_OP_BITCAST) continue;
        for (int from = 0; from < TILE_SCALAR_COUNT; from++)
            for (int lanes = 1; lanes <= LANES && takes(info, (TileScalar)from); lanes *= LANES)
                check_type((TileOpId)id, (TileScalar)from, lanes, &random);
    }
}
