/* Each pass, and all of them in order, on random programs: the executor gives the same results before and after (all
 * NaNs are equal), and no lane becomes poison that was not before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "cpu/passes.h"
#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "ptx/passes.h"
#include "random_program.h"

/* MOST_STEPS is far more than any of the programs needs: the trip counts of their loops are at most three. */
enum { FUNCTIONS = 400, KERNELS = 60, RUNS = 3, PARAMETERS = 7, MOST_STEPS = 1000000 };

typedef struct Case {
    TileContext *context;
    TileArena *arena;
    TileModule *before, *after;
    const char *text, *pass;
    uint64_t seed;
} Case;

static TileModule *read_module(Case *test) {
    TileModule *module = NULL;
    TileText errors = {.arena = test->arena};
    cr_assert_eq(tile_module_read(test->context, test->text, strlen(test->text), &module, &errors), TILE_OK, "%s",
                 tile_text_get(&errors));
    return module;
}

static void start(Case *test, TileFunc *(*make)(TileModule *, uint64_t *), uint64_t seed) {
    *test = (Case){.context = tile_ir_context_create(), .arena = tile_arena_create(NULL), .seed = seed};
    test->before = tile_module_create(test->context);
    make(test->before, &seed);
    TileText text = {.arena = test->arena};
    cr_assert(tile_module_verify(test->before, &text), "seed %llu: %s", (unsigned long long)test->seed,
              tile_text_get(&text));
    tile_module_print(&text, test->before, 0);
    test->text = tile_text_get(&text);
}

static void stop(Case *test) {
    tile_module_destroy(test->before);
    tile_arena_destroy(test->arena);
    tile_ir_context_destroy(test->context);
}

/* A copy of the program after the passes. */
static void transform(Case *test, const TilePassInfo *const *pipeline, size_t count, const char *name) {
    test->after = read_module(test);
    test->pass = name;
    TilePassContext context = tile_pass_context(test->after, test->arena, NULL);
    context.settings.split_loops = true;
    TilePassReport report = tile_pass_report(test->arena);
    TilePassOptions options = {.verify = true};
    cr_assert_eq(tile_passes_run(&context, pipeline, count, &options, &report), TILE_OK, "%s, seed %llu: %s\n%s", name,
                 (unsigned long long)test->seed, tile_text_get(&context.message), tile_text_get(&report.reproducer));
}

static bool same_bits(TileScalar scalar, uint64_t a, uint64_t b) {
    if (a == b) return true;
    return tile_scalar_is_float(scalar) && isnan(tile_scalar_to_double(scalar, a)) &&
           isnan(tile_scalar_to_double(scalar, b));
}

static void explain(const Case *test, const char *what) {
    TileText after = {.arena = test->arena};
    tile_module_print(&after, test->after, 0);
    cr_assert(false, "%s, seed %llu: %s differs\n%s---- became ----\n%s", test->pass, (unsigned long long)test->seed,
              what, test->text, tile_text_get(&after));
}

/* ---- functions ---- */

static TileExecutor *run_function(TileFunc *func, const uint64_t *arguments, TileExecution *end) {
    TileExecutorOptions options = {0};
    TileExecutor *executor = tile_executor_create(func, &options);
    for (unsigned i = 0; i < PARAMETERS; i++) tile_executor_bind_scalar(executor, i, arguments[i]);
    *end = tile_executor_run(executor, MOST_STEPS);
    return executor;
}

static void compare_results(Case *test, TileExecutor *a, TileExecutor *b) {
    TileFunc *func = test->before->first;
    for (unsigned r = 0; r < func->result_count; r++) {
        const uint8_t *poison_a, *poison_b;
        const uint64_t *x = tile_executor_result(a, r, &poison_a), *y = tile_executor_result(b, r, &poison_b);
        int64_t lanes = tile_type_lanes(func->result_types[r]);
        for (int64_t lane = 0; lane < lanes; lane++) {
            if (poison_a && poison_a[lane]) continue;
            if (poison_b && poison_b[lane]) explain(test, "poison");
            if (!same_bits(func->result_types[r]->scalar, x[lane], y[lane])) explain(test, "a result");
        }
    }
}

static void compare_functions(Case *test) {
    uint64_t state = test->seed * 77 + 1;
    for (int run = 0; run < RUNS; run++) {
        uint64_t arguments[PARAMETERS];
        for (unsigned i = 0; i < PARAMETERS; i++)
            arguments[i] = random_bits(test->before->first->body.arguments[i]->type->scalar, &state);
        TileExecution end_a, end_b;
        TileExecutor *a = run_function(test->before->first, arguments, &end_a);
        TileExecutor *b = run_function(test->after->first, arguments, &end_b);
        cr_assert_neq(end_a, TILE_EXECUTION_PAUSED, "seed %llu: no end\n%s", (unsigned long long)test->seed,
                      test->text);
        if (end_a == TILE_EXECUTION_DONE) {
            if (end_b == TILE_EXECUTION_PAUSED) explain(test, "the end, which does not come: it");
            if (end_b != TILE_EXECUTION_DONE) explain(test, tile_executor_message(b));
            compare_results(test, a, b);
        }
        tile_executor_destroy(a);
        tile_executor_destroy(b);
    }
}

/* ---- kernels ---- */

typedef struct Data {
    float *x, *y, *s;
    int64_t m, n;
} Data;

static Data make_data(int64_t m, int64_t n, uint64_t seed) {
    uint64_t state = seed | 1;
    size_t size = (size_t)(m * n + 1);
    Data data = {calloc(size, sizeof(float)), calloc(size, sizeof(float)), calloc((size_t)m + 1, sizeof(float)), m, n};
    for (int64_t i = 0; i < m * n; i++) data.x[i] = (float)((double)(random_next(&state) % 2001) / 1000 - 1);
    return data;
}

static void free_data(Data *data) {
    free(data->x);
    free(data->y);
    free(data->s);
}

static TileExecutorArgument argument(float *values, int64_t m, int64_t n, bool matrix) {
    TileExecutorTensor tensor = {.data = values, .above = (uint64_t)(m * (matrix ? n : 1)) * sizeof(float)};
    tensor.extent[0] = m;
    tensor.stride[0] = (matrix ? n : 1) * (int64_t)sizeof(float);
    tensor.extent[1] = n;
    tensor.stride[1] = sizeof(float);
    return (TileExecutorArgument){.tensor = tensor};
}

static void run_kernel(Case *test, TileFunc *func, Data *data) {
    TileExecutorArgument arguments[] = {argument(data->x, data->m, data->n, true),
                                        argument(data->y, data->m, data->n, true),
                                        argument(data->s, data->m, data->n, false)};
    TileExecutorOptions options = {.phases = tile_func_phase(func, 0) != NULL};
    TileText message = {.arena = test->arena};
    if (tile_execute_kernel(func, arguments, &options, &message) != TILE_EXECUTION_DONE)
        cr_assert(false, "%s, seed %llu: %s\n%s", test->pass, (unsigned long long)test->seed, tile_text_get(&message),
                  test->text);
}

static void compare_kernels(Case *test) {
    static const int64_t widths[] = {0, 1, 7, 8, 9, 16, 27};
    for (unsigned i = 0; i < sizeof widths / sizeof *widths; i++) {
        Data a = make_data(1 + i % 3, widths[i], test->seed), b = make_data(1 + i % 3, widths[i], test->seed);
        run_kernel(test, test->before->first, &a);
        run_kernel(test, test->after->first, &b);
        if (memcmp(a.y, b.y, (size_t)(a.m * a.n) * sizeof(float)) != 0) explain(test, "y");
        if (memcmp(a.s, b.s, (size_t)a.m * sizeof(float)) != 0) explain(test, "s");
        free_data(&a);
        free_data(&b);
    }
}

/* ---- all passes ---- */

/* scripts/soak.sh selects other programs with TILE_SOAK_SEED. */
static uint64_t seed_of(uint64_t program, uint64_t start) {
    const char *seed = getenv("TILE_SOAK_SEED");
    return ((seed ? strtoull(seed, NULL, 10) << 32 : 0) + program) * UINT64_C(0x9e3779b97f4a7c15) + start;
}

static void compare_all(Case *test, void (*compare)(Case *)) {
    const TilePassTable *table = tile_lowering_passes();
    for (size_t i = 0; i < table->count; i++) {
        const TilePassInfo *pass = &table->passes[i];
        transform(test, &pass, 1, pass->name);
        compare(test);
        tile_module_destroy(test->after);
    }
    static const TileFamily *const families[] = {&tile_cpu_family, &tile_ptx_family};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        TilePipeline pipeline = {0};
        TileText message = {.arena = test->arena};
        cr_assert_eq(tile_family_pipeline(families[i], NULL, &pipeline, test->arena, &message), TILE_OK, "%s",
                     tile_text_get(&message));
        size_t shared = 0;
        while (pipeline.items[shared]->stage != TILE_STAGE_TARGET) shared++;
        transform(test, pipeline.items, shared, families[i]->title);
        compare(test);
        tile_module_destroy(test->after);
    }
}

Test(equivalence, functions) {
    for (uint64_t i = 0; i < FUNCTIONS; i++) {
        Case test;
        start(&test, random_function, seed_of(i, 12345));
        compare_all(&test, compare_functions);
        stop(&test);
    }
}

Test(equivalence, kernels) {
    for (uint64_t i = 0; i < KERNELS; i++) {
        Case test;
        start(&test, random_kernel, seed_of(i, 54321));
        compare_all(&test, compare_kernels);
        stop(&test);
    }
}
