/* Facts of integers: ranges and divisors on random programs, assumptions that were used. */
#include <string.h>

#include <criterion/criterion.h>

#include "lang/execute/execute.h"
#include "lang/ir/text.h"
#include "lowering/facts.h"
#include "random_program.h"

enum { FUNCTIONS = 500, PARAMETERS = 7 };

static int64_t to_integer(TileScalar scalar, uint64_t bits) {
    unsigned unused = 64 - tile_scalar_bits(scalar);
    bool is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    return is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

/* Makes every top-level integer value a result, so that the executor shows it. */
static void return_integers(TileFunc *func) {
    TileModule *module = func->module;
    TileOp *end = func->body.last;
    while (end->operand_count) tile_op_remove_operand(end, end->operand_count - 1);
    for (TileOp *op = func->body.first; op != end; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            if (!tile_scalar_is_float(op->results[i].type->scalar)) tile_op_add_operand(module, end, &op->results[i]);
    func->result_count = end->operand_count;
    func->result_types = TILE_NEW_ARRAY(module->arena, const TileType *, end->operand_count);
    for (unsigned i = 0; i < end->operand_count; i++) func->result_types[i] = tile_op_operand(end, i)->type;
}

static void check_values(TileFunc *func, TileFacts *facts, const TileExecutor *executor) {
    for (unsigned r = 0; r < func->result_count; r++) {
        const TileType *type = func->result_types[r];
        if (type->scalar == TILE_U64) continue;
        const uint8_t *poison;
        const uint64_t *bits = tile_executor_result(executor, r, &poison);
        TileFact fact = tile_facts_get(facts, tile_op_operand(func->body.last, r));
        for (int64_t lane = 0; lane < tile_type_lanes(type); lane++) {
            if (poison && poison[lane]) continue;
            int64_t value = to_integer(type->scalar, bits[lane]);
            bool divides = fact.multiple ? value % fact.multiple == 0 : value == 0;
            if (value >= fact.lo && value <= fact.hi && divides) continue;
            TileText text = {.arena = func->module->arena};
            tile_func_print(&text, func, 0);
            cr_assert(false, "operand %u of return is %lld, not in [%lld, %lld] or no multiple of %lld\n%s", r,
                      (long long)value, (long long)fact.lo, (long long)fact.hi, (long long)fact.multiple,
                      tile_text_get(&text));
        }
    }
}

Test(facts, hold_on_random_programs) {
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        TileContext *context = tile_ir_context_create();
        TileModule *module = tile_module_create(context);
        uint64_t state = i * UINT64_C(0x9e3779b97f4a7c15) + 777;
        TileFunc *func = random_function(module, &state);
        return_integers(func);
        TileFacts *facts = tile_facts_create(module->arena, func);
        for (int run = 0; run < 3; run++) {
            TileExecutor *executor = tile_executor_create(func, &(TileExecutorOptions){0});
            for (unsigned p = 0; p < PARAMETERS; p++)
                tile_executor_bind_scalar(executor, p, random_bits(func->body.arguments[p]->type->scalar, &state));
            if (tile_executor_run(executor, 0) == TILE_EXECUTION_DONE) check_values(func, facts, executor);
            tile_executor_destroy(executor);
        }
        tile_module_destroy(module);
        tile_ir_context_destroy(context);
    }
}

/* ---- assumptions ---- */

typedef struct Kernel {
    TileContext *context;
    TileModule *module;
    TileFunc *func;
} Kernel;

static Kernel read_kernel(const char *text) {
    Kernel kernel = {.context = tile_ir_context_create()};
    TileText errors = {.arena = kernel.context->arena};
    cr_assert_eq(tile_module_read(kernel.context, text, strlen(text), &kernel.module, &errors), TILE_OK, "%s",
                 tile_text_get(&errors));
    kernel.func = kernel.module->first;
    return kernel;
}

static void release(Kernel *kernel) {
    tile_module_destroy(kernel->module);
    tile_ir_context_destroy(kernel->context);
}

/* The value of this name at the top level. */
static TileValue *value_of(const Kernel *kernel, const char *name) {
    for (TileOp *op = kernel->func->body.first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            if (op->results[i].name && strcmp(op->results[i].name, name) == 0) return &op->results[i];
    cr_assert(false, "no %s", name);
    return NULL;
}

Test(facts, name_the_assumptions_that_they_rest_on) {
    Kernel kernel = read_kernel("func kernel tile @k(%x: tensor<f32, 2, in> {extent0 = 64}, %y: tensor<f32, 1, in> "
                                "{extent0 = 8}) {\n"
                                "  %m = dim %x {axis = 0} : i64\n"
                                "  %n = dim %x {axis = 1} : i64\n"
                                "  %k = dim %y {axis = 0} : i64\n"
                                "  %product = mul %m, %m : i64\n"
                                "  %sum = add %m, %n : i64\n"
                                "  return\n"
                                "}\n");
    TileFacts *facts = tile_facts_create(kernel.module->arena, kernel.func);
    TileFact m = tile_facts_get(facts, value_of(&kernel, "m")), n = tile_facts_get(facts, value_of(&kernel, "n"));
    TileFact k = tile_facts_get(facts, value_of(&kernel, "k"));
    cr_expect(tile_fact_is_constant(m) && m.lo == 64 && m.multiple == 64);
    cr_expect(n.lo == 0 && n.hi == TILE_MAX_EXTENT && n.because == 0);
    cr_expect_neq(m.because, k.because);
    TileFact sum = tile_facts_get(facts, value_of(&kernel, "sum"));
    cr_expect(sum.lo == 64 && sum.hi == TILE_MAX_EXTENT + 64 && sum.because == m.because);
    cr_expect_eq(tile_facts_get(facts, value_of(&kernel, "product")).because, m.because);
    cr_expect_eq(kernel.func->parameters[0].used_extent, 0, "asking is not using");
    tile_facts_use(facts, sum.because);
    cr_expect_eq(kernel.func->parameters[0].used_extent, 1);
    cr_expect_eq(kernel.func->parameters[1].used_extent, 0);
    release(&kernel);
}

Test(facts, ask_whether_extents_are_multiples) {
    Kernel kernel = read_kernel("func phase machine @k.0(%x: ptr<global>, %x.dim0: i64 {role = extent, argument = 0, "
                                "axis = 0, multiple0 = 8}, %x.dim1: i64 {role = extent, argument = 0, axis = 1}, "
                                "%n: i64) {\n"
                                "  %c64 = const {value = 64} : i64\n"
                                "  %blocks = mul %n, %c64 : i64\n"
                                "  %left = sub %x.dim0, %blocks : i64\n"
                                "  %some = min %left, %c64 : i64\n"
                                "  %both = add %some, %x.dim1 : i64\n"
                                "  %half = div %x.dim0, %n : i64\n"
                                "  return\n"
                                "}\n");
    TileFacts *facts = tile_facts_create(kernel.module->arena, kernel.func);
    tile_facts_suppose(facts, 8);
    TileFact some = tile_facts_get(facts, value_of(&kernel, "some")),
             both = tile_facts_get(facts, value_of(&kernel, "both"));
    cr_expect(some.multiple == 8 && some.because && both.multiple == 8 && both.because != some.because);
    cr_expect_eq(tile_facts_get(facts, value_of(&kernel, "half")).multiple, 1);
    const TileParameter *parameters = kernel.func->parameters;
    cr_expect(!tile_facts_ask(facts, both.because), "of dimension 1 nothing is known");
    cr_expect(parameters[1].asked_multiple == 8 && parameters[2].asked_multiple == 8 && !parameters[3].asked_multiple);
    cr_expect_eq(parameters[1].used_multiple, 0, "asking in vain is not using");
    cr_expect(tile_facts_ask(facts, some.because));
    cr_expect(parameters[1].used_multiple == 8 && parameters[2].used_multiple == 0);
    TileFacts *more = tile_facts_create(kernel.module->arena, kernel.func);
    tile_facts_suppose(more, 16);
    cr_expect(!tile_facts_ask(more, tile_facts_get(more, value_of(&kernel, "some")).because));
    cr_expect_eq(parameters[1].asked_multiple, 24);
    release(&kernel);
}

Test(facts, of_differences) {
    Kernel kernel = read_kernel("func kernel tile @k(%x: tensor<f32, 1, in>, %free: i64) {\n"
                                "  %n = dim %x {axis = 0} : i64\n"
                                "  %eight = const {value = 8} : i64\n"
                                "  %some = div %n, %eight : i64\n"
                                "  %full = mul %some, %eight : i64\n"
                                "  %more = add %n, %eight : i64\n"
                                "  %least = min %free, %n : i64\n"
                                "  %wraps = add %free, %eight : i64\n"
                                "  return\n"
                                "}\n");
    TileFacts *facts = tile_facts_create(kernel.module->arena, kernel.func);
    const TileValue *n = value_of(&kernel, "n");
    TileFact left = tile_facts_difference(facts, n, value_of(&kernel, "full"));
    cr_expect(left.lo == 0 && left.hi == 7, "[%lld, %lld]", (long long)left.lo, (long long)left.hi);
    TileFact more = tile_facts_difference(facts, value_of(&kernel, "more"), n);
    cr_expect(more.lo == 8 && more.hi == 8);
    cr_expect_eq(tile_facts_difference(facts, n, value_of(&kernel, "least")).lo, 0);
    TileFact wraps = tile_facts_difference(facts, value_of(&kernel, "wraps"), kernel.func->body.arguments[1]);
    cr_expect(wraps.lo == INT64_MIN && wraps.hi == INT64_MAX, "a sum that may wrap says nothing");
    release(&kernel);
}
