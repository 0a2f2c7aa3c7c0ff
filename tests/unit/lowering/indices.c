/* Index analysis: ranges, divisors, sums and differences on random programs; slopes; assumptions that were used. */
#include <string.h>

#include <criterion/criterion.h>

#include "lang/execute/execute.h"
#include "lang/ir/text.h"
#include "lang/index/index.h"
#include "random_program.h"

enum { FUNCTIONS = 500, PARAMETERS = 7 };

static int64_t to_integer(TileScalar scalar, uint64_t bits) {
    unsigned unused = 64 - tile_scalar_bits(scalar);
    bool is_signed = tile_scalar_class(scalar) == TILE_CLASS_SIGNED;
    return is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

/* Makes every top-level integer value a result, so that its value in the executor is known. */
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

static void check_values(TileFunc *func, TileIndices *indices, const TileExecutor *executor) {
    for (unsigned r = 0; r < func->result_count; r++) {
        const TileType *type = func->result_types[r];
        if (type->scalar == TILE_U64) continue;
        const uint8_t *poison;
        const uint64_t *bits = tile_executor_result(executor, r, &poison);
        TileIndexRange fact = tile_index_range(indices, tile_op_operand(func->body.last, r));
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

/* ---- values in the executor ---- */

typedef struct Results {
    const TileFunc *func;
    const TileExecutor *executor;
    const uint64_t *parameters;
} Results;

/* False if the lane is undefined, or the value is not among the results. */
static bool lane_of(const Results *results, const TileValue *value, int64_t lane, int64_t *number) {
    if (!value->op) {
        *number = to_integer(value->type->scalar, results->parameters[value->index]);
        return value->block == &results->func->body;
    }
    for (unsigned r = 0; r < results->func->result_count; r++) {
        if (tile_op_operand(results->func->body.last, r) != value) continue;
        const uint8_t *poison;
        const uint64_t *bits = tile_executor_result(results->executor, r, &poison);
        int64_t at = tile_type_is_tile(value->type) ? lane : 0;
        *number = to_integer(value->type->scalar, bits[at]);
        return !poison || !poison[at];
    }
    return false;
}

/* The value of the sum, modulo 2^64. */
static bool evaluate(const Results *results, const TileSum *sum, int64_t lane, uint64_t *total) {
    *total = (uint64_t)sum->constant;
    for (uint32_t i = 0; i < sum->count; i++) {
        uint64_t product = (uint64_t)sum->products[i].factor;
        for (uint32_t k = 0; k < sum->products[i].degree; k++) {
            const TileSymbol *symbol = sum->products[i].symbols[k];
            int64_t number;
            if (!symbol->value || !lane_of(results, symbol->value, lane, &number)) return false;
            product *= (uint64_t)number;
        }
        *total += product;
    }
    return true;
}

typedef struct Counts {
    unsigned sums, related; /* sums that are not just the value itself; differences with bounds that ranges alone do not
                             * give */
} Counts;

static void check_sums(const Results *results, TileIndexView *view, Counts *counts) {
    for (unsigned r = 0; r < results->func->result_count; r++) {
        const TileValue *value = tile_op_operand(results->func->body.last, r);
        if (value->type->scalar == TILE_U64) continue;
        const TileSum *sum = tile_index_sum(view, value);
        counts->sums += sum->count != 1 || sum->products[0].symbols[0]->value != value;
        for (int64_t lane = 0; lane < tile_type_lanes(value->type); lane++) {
            int64_t number;
            uint64_t total;
            if (!lane_of(results, value, lane, &number) || !evaluate(results, sum, lane, &total)) continue;
            cr_assert_eq((int64_t)total, number, "operand %u of return", r);
        }
    }
}

static void check_difference(const Results *results, TileIndices *indices, const TileValue *x, const TileValue *y,
                             Counts *counts) {
    TileIndexRange a = tile_index_range(indices, x), b = tile_index_range(indices, y);
    TileIndexRange d = tile_index_difference(indices, x, y);
    __int128 lo = (__int128)a.lo - b.hi;
    counts->related += d.lo > lo && d.lo != INT64_MIN;
    for (int64_t lane = 0; lane < tile_type_lanes(x->type); lane++) {
        int64_t left, right;
        if (!lane_of(results, x, lane, &left) || !lane_of(results, y, lane, &right)) continue;
        __int128 difference = (__int128)left - right;
        bool above = difference >= d.lo || d.lo == INT64_MIN, below = difference <= d.hi || d.hi == INT64_MAX;
        cr_assert(above && below, "%lld - %lld is not in [%lld, %lld]", (long long)left, (long long)right,
                  (long long)d.lo, (long long)d.hi);
    }
}

static void check_differences(const Results *results, TileIndices *indices, Counts *counts) {
    const TileOp *end = results->func->body.last;
    for (unsigned i = 0; i < end->operand_count; i++)
        for (unsigned k = 0; k < end->operand_count; k++) {
            const TileValue *x = tile_op_operand(end, i), *y = tile_op_operand(end, k);
            if (i != k && x->type == y->type && x->type->scalar != TILE_U64)
                check_difference(results, indices, x, y, counts);
        }
}

Test(indices, hold_on_random_programs) {
    Counts counts = {0};
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        TileContext *context = tile_ir_context_create();
        TileModule *module = tile_module_create(context);
        uint64_t state = i * UINT64_C(0x9e3779b97f4a7c15) + 777;
        TileFunc *func = random_function(module, &state);
        return_integers(func);
        TileIndices *indices = tile_indices_create(module->arena, func);
        TileIndexView view;
        tile_index_view_init(&view, indices, NULL, false);
        for (int run = 0; run < 3; run++) {
            TileExecutor *executor = tile_executor_create(func, &(TileExecutorOptions){0});
            uint64_t parameters[PARAMETERS];
            for (unsigned p = 0; p < PARAMETERS; p++) {
                parameters[p] = random_bits(func->body.arguments[p]->type->scalar, &state);
                tile_executor_bind_scalar(executor, p, parameters[p]);
            }
            if (tile_executor_run(executor, 0) == TILE_EXECUTION_DONE) {
                Results results = {func, executor, parameters};
                check_values(func, indices, executor);
                check_sums(&results, &view, &counts);
                check_differences(&results, indices, &counts);
            }
            tile_executor_destroy(executor);
        }
        tile_module_destroy(module);
        tile_ir_context_destroy(context);
    }
    cr_expect(counts.sums >= 12000 && counts.related >= 5000, "%u sums, %u differences", counts.sums, counts.related);
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

/* The top-level value with this name. */
static TileValue *value_of(const Kernel *kernel, const char *name) {
    for (TileOp *op = kernel->func->body.first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            if (op->results[i].name && strcmp(op->results[i].name, name) == 0) return &op->results[i];
    cr_assert(false, "no %s", name);
    return NULL;
}

Test(indices, name_the_assumptions_that_they_rest_on) {
    Kernel kernel = read_kernel("func kernel tile @k(%x: tensor<f32, 2, in> {extent0 = 64}, %y: tensor<f32, 1, in> "
                                "{extent0 = 8}) {\n"
                                "  %m = dim %x {axis = 0} : i64\n"
                                "  %n = dim %x {axis = 1} : i64\n"
                                "  %k = dim %y {axis = 0} : i64\n"
                                "  %product = mul %m, %m : i64\n"
                                "  %sum = add %m, %n : i64\n"
                                "  return\n"
                                "}\n");
    TileIndices *indices = tile_indices_create(kernel.module->arena, kernel.func);
    TileIndexRange m = tile_index_range(indices, value_of(&kernel, "m")),
                   n = tile_index_range(indices, value_of(&kernel, "n"));
    TileIndexRange k = tile_index_range(indices, value_of(&kernel, "k"));
    cr_expect(tile_index_is_constant(m) && m.lo == 64 && m.multiple == 64);
    cr_expect(n.lo == 0 && n.hi == TILE_MAX_EXTENT && n.because == 0);
    cr_expect_neq(m.because, k.because);
    TileIndexRange sum = tile_index_range(indices, value_of(&kernel, "sum"));
    cr_expect(sum.lo == 64 && sum.hi == TILE_MAX_EXTENT + 64 && sum.because == m.because);
    cr_expect_eq(tile_index_range(indices, value_of(&kernel, "product")).because, m.because);
    cr_expect_eq(kernel.func->parameters[0].used_extent, 0, "asking is not using");
    tile_index_use(indices, sum.because);
    cr_expect_eq(kernel.func->parameters[0].used_extent, 1);
    cr_expect_eq(kernel.func->parameters[1].used_extent, 0);
    release(&kernel);
}

Test(indices, ask_whether_extents_are_multiples) {
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
    TileIndices *indices = tile_indices_suppose(kernel.module->arena, kernel.func, 8);
    TileIndexRange some = tile_index_range(indices, value_of(&kernel, "some")),
                   both = tile_index_range(indices, value_of(&kernel, "both"));
    cr_expect(some.multiple == 8 && some.because && both.multiple == 8 && both.because != some.because);
    cr_expect_eq(tile_index_range(indices, value_of(&kernel, "half")).multiple, 1);
    const TileParameter *parameters = kernel.func->parameters;
    cr_expect(!tile_index_ask(indices, both.because), "of dimension 1 nothing is known");
    cr_expect(parameters[1].asked_multiple == 8 && parameters[2].asked_multiple == 8 && !parameters[3].asked_multiple);
    cr_expect_eq(parameters[1].used_multiple, 0, "asking in vain is not using");
    cr_expect(tile_index_ask(indices, some.because));
    cr_expect(parameters[1].used_multiple == 8 && parameters[2].used_multiple == 0);
    TileIndices *more = tile_indices_suppose(kernel.module->arena, kernel.func, 16);
    cr_expect(!tile_index_ask(more, tile_index_range(more, value_of(&kernel, "some")).because));
    cr_expect_eq(parameters[1].asked_multiple, 24);
    release(&kernel);
}

Test(indices, of_differences) {
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
    TileIndices *indices = tile_indices_create(kernel.module->arena, kernel.func);
    const TileValue *n = value_of(&kernel, "n");
    TileIndexRange left = tile_index_difference(indices, n, value_of(&kernel, "full"));
    cr_expect(left.lo == 0 && left.hi == 7, "[%lld, %lld]", (long long)left.lo, (long long)left.hi);
    TileIndexRange more = tile_index_difference(indices, value_of(&kernel, "more"), n);
    cr_expect(more.lo == 8 && more.hi == 8);
    cr_expect_eq(tile_index_difference(indices, n, value_of(&kernel, "least")).lo, 0);
    TileIndexRange wraps = tile_index_difference(indices, value_of(&kernel, "wraps"), kernel.func->body.arguments[1]);
    cr_expect(wraps.lo == INT64_MIN && wraps.hi == INT64_MAX, "a sum that may wrap says nothing");
    release(&kernel);
}

/* ---- slopes ---- */

/* The value with this name in the body of the function's single loop. */
static TileValue *inside(const Kernel *kernel, TileOp **loop, const char *name) {
    for (*loop = kernel->func->body.first; (*loop)->id != TILE_OP_FOR;) *loop = (*loop)->next;
    for (TileOp *op = (*loop)->regions[0].first; op; op = op->next)
        if (op->result_count && op->results[0].name && strcmp(op->results[0].name, name) == 0) return op->results;
    cr_assert(false, "no %s", name);
    return NULL;
}

Test(indices, have_slopes) {
    Kernel kernel = read_kernel("func device machine @f(%base: ptr<global>, %n: i64, %s: i64, %t: i64) {\n"
                                "  %zero = const {value = 0} : i64\n"
                                "  %three = const {value = 3} : i64\n"
                                "  for %zero, %n, %three (%i: i64) {\n"
                                "    %twice = add %i, %i : i64\n"
                                "    %row = mul %i, %s : i64\n"
                                "    %both = add %row, %row : i64\n"
                                "    %mixed = add %row, %i : i64\n"
                                "    %gone = sub %row, %row : i64\n"
                                "    %fixed = mul %s, %t : i64\n"
                                "    %square = mul %i, %i : i64\n"
                                "    %far = mul %row, %t : i64\n"
                                "    %rest = div %i, %three : i64\n"
                                "    %shifted = shl %i, %three : i64\n"
                                "    %down = neg %row : i64\n"
                                "    %end = sub %n, %i : i64\n"
                                "    %place = ptr_add %base, %both : ptr<global>\n"
                                "    %each = load %place : i64\n"
                                "    %cancels = sub %each, %each : i64\n"
                                "    %left = add %cancels, %i : i64\n"
                                "    yield\n"
                                "  }\n"
                                "  return\n"
                                "}\n");
    static const struct {
        const char *name;
        TileSlopeKind kind;
        int64_t step;
        int factor; /* the parameter's index, or 0 */
    } rows[] = {
        {"twice", TILE_SLOPE_AFFINE, 2, 0},   {"row", TILE_SLOPE_AFFINE, 1, 2},   {"both", TILE_SLOPE_AFFINE, 2, 2},
        {"mixed", TILE_SLOPE_VARYING, 0, 0},  {"gone", TILE_SLOPE_UNIFORM, 0, 0}, {"fixed", TILE_SLOPE_UNIFORM, 0, 0},
        {"square", TILE_SLOPE_VARYING, 0, 0}, {"far", TILE_SLOPE_VARYING, 0, 0},  {"rest", TILE_SLOPE_VARYING, 0, 0},
        {"shifted", TILE_SLOPE_AFFINE, 8, 0}, {"down", TILE_SLOPE_AFFINE, -1, 2}, {"end", TILE_SLOPE_AFFINE, -1, 0},
        {"place", TILE_SLOPE_AFFINE, 2, 2},   {"each", TILE_SLOPE_VARYING, 0, 0},
                {"cancels", TILE_SLOPE_VARYING, 0, 0}, {"left", TILE_SLOPE_VARYING, 0, 0}};
    TileIndices *indices = tile_indices_create(kernel.module->arena, kernel.func);
    TileSlopes slopes;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        TileOp *loop;
        TileValue *value = inside(&kernel, &loop, rows[i].name);
        tile_slopes_init(&slopes, indices, loop);
        TileSlope slope = tile_index_slope(&slopes, value);
        const TileValue *factor = rows[i].factor ? kernel.func->body.arguments[rows[i].factor] : NULL;
        cr_expect(slope.kind == rows[i].kind, "%s", rows[i].name);
        if (slope.kind != TILE_SLOPE_AFFINE) continue;
        cr_expect(slope.step == rows[i].step && slope.factor == factor, "%s", rows[i].name);
    }
    TileOp *loop;
    const TileValue *end = inside(&kernel, &loop, "end"), *index = loop->regions[0].arguments[0];
    cr_expect_eq(tile_index_growth(indices, end, index), TILE_GROWTH_FALLS);
    cr_expect_eq(tile_index_growth(indices, inside(&kernel, &loop, "rest"), index), TILE_GROWTH_RISES);
    cr_expect_eq(tile_index_growth(indices, inside(&kernel, &loop, "row"), index), TILE_GROWTH_UNKNOWN);
    cr_expect_eq(tile_index_growth(indices, inside(&kernel, &loop, "fixed"), index), TILE_GROWTH_NONE);
    release(&kernel);
}
