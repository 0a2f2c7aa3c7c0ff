/* A test on one target: its tensors are made, its kernels launched as any caller would, and its own function, which
 * computes arguments and assertions, runs on the executor. */
#include "tools/test.h"

#include <math.h>
#include <string.h>

#include "lang/ir/assertion.h"
#include "lang/execute/execute.h"
#include "lang/scalar/scalar.h"
#include "tools/program.h"
#include "tools/source.h"

typedef struct Bench {
    TileTestFile *file;
    const TileItem *item;
    unsigned target;
    TileTest plan;
    TileTestStage last; /* the assertions */
    TileArray *arrays;  /* of the plan's tensors; storage is NULL until they exist */
    TileText *message;
} Bench;

static tile_status stop(Bench *bench, TileSpan span, const char *why) {
    tile_diagnose(bench->file->unit->diagnostics, TILE_DIAGNOSTIC_TEST_STOPPED, span, bench->item->name,
                  bench->file->targets[bench->target], why);
    return TILE_OK;
}

/* ---- tensors ---- */

static tile_status make_array(Bench *bench, uint32_t number) {
    static const TileGenerator generators[] = {
        [TILE_TEST_RAND] = TILE_GENERATOR_RAND,     [TILE_TEST_RANDN] = TILE_GENERATOR_RANDN,
        [TILE_TEST_ZEROS] = TILE_GENERATOR_ZEROS,   [TILE_TEST_ONES] = TILE_GENERATOR_ONES,
        [TILE_TEST_ARANGE] = TILE_GENERATOR_ARANGE, [TILE_TEST_RANDINT] = TILE_GENERATOR_RANDINT,
    };
    const TileTestTensor *made = &bench->plan.tensors.items[number];
    TileArray *array = &bench->arrays[number], view;
    if (made->source >= TILE_TEST_FULL) {
        TILE_TRY(tile_array_create(array, made->scalar, made->rank, made->extent, bench->message));
        size_t bytes = tile_scalar_bytes(made->scalar);
        int64_t count = made->source == TILE_TEST_FULL ? tile_array_count(made->scalar, made->rank, made->extent) : 0;
        for (int64_t i = 0; i < count; i++) memcpy(array->data + (size_t)i * bytes, &made->bits, bytes);
        return TILE_OK;
    }
    TileSource source = {.kind = TILE_SOURCE_GENERATED,
                         .generator = generators[made->source],
                         .type = made->scalar,
                         .suffix = "",
                         .lo = made->lo,
                         .hi = made->hi,
                         .rank = made->rank};
    memcpy(source.extent, made->extent, sizeof made->extent);
    return tile_source_load(&source, 0, number, array, &view, bench->message);
}

/* ---- the test's own function ---- */

static void bind(const TileArray *array, TileExecutorArgument *argument) {
    TileExecutorTensor *tensor = &argument->tensor;
    int64_t count = tile_array_count(array->scalar, array->rank, array->extent);
    *tensor = (TileExecutorTensor){.data = array->data, .above = (uint64_t)count * tile_scalar_bytes(array->scalar)};
    memcpy(tensor->extent, array->extent, sizeof tensor->extent);
    memcpy(tensor->stride, array->stride, sizeof tensor->stride);
}

/* The shared passes that are part of what a program means. */
static tile_status prepare(Bench *bench, TileTestStage *stage) {
    TileUnit *unit = bench->file->unit;
    TilePipeline pipeline = {0};
    unit->module = stage->module;
    tile_status status = tile_unit_pipeline(unit, &pipeline);
    if (status == TILE_OK) status = tile_unit_passes(unit, pipeline.items, pipeline.count);
    unit->module = NULL;
    stage->func = tile_func_find(stage->module, "test");
    return status;
}

static tile_status compute(Bench *bench, TileTestStage *stage, bool *stopped) {
    TileUnit *unit = bench->file->unit;
    size_t count = stage->tensors.count;
    TileExecutorArgument *arguments = TILE_NEW_ARRAY(unit->arena, TileExecutorArgument, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = stage->tensors.items[i];
        if (!bench->arrays[number].storage) TILE_TRY(make_array(bench, number));
        bind(&bench->arrays[number], &arguments[i]);
    }
    const TileOp *assertion = NULL;
    TileText message = {.arena = unit->arena}, values = {.arena = unit->arena};
    TileExecutorOptions options = {.assertion = &assertion, .values = &values};
    TileExecution execution = tile_execute_kernel(stage->func, arguments, &options, &message);
    if (execution == TILE_EXECUTION_ASSERT) {
        message.length = 0;
        tile_assertion_describe(&message, assertion, tile_text_get(&values));
    }
    *stopped = execution != TILE_EXECUTION_DONE;
    if (execution == TILE_EXECUTION_OUT_OF_MEMORY) return TILE_OUT_OF_MEMORY;
    return *stopped ? stop(bench, bench->item->name_span, tile_text_get(&message)) : TILE_OK;
}

static tile_status compute_arguments(Bench *bench, uint32_t run, bool *stopped) {
    TileUnit *unit = bench->file->unit;
    TileTest again;
    TileTestStage stage;
    TILE_TRY(
        tile_lower_test(unit->context, unit->diagnostics, unit->arena, unit->ast, bench->item, run, &again, &stage));
    tile_status status = prepare(bench, &stage);
    if (status == TILE_OK) status = compute(bench, &stage, stopped);
    tile_module_destroy(stage.module);
    return status;
}

/* ---- runs ---- */

static const char *binding_text(TileArena *arena, const TileBinding *b) {
    switch (b->kind) {
    case TILE_BINDING_TYPE: return tile_scalar_name(b->type);
    case TILE_BINDING_INTEGER: return tile_arena_format(arena, "%lld", (long long)b->integer);
    case TILE_BINDING_FLOAT: return tile_arena_format(arena, "%.17g", b->number);
    case TILE_BINDING_BOOL: return b->truth ? "true" : "false";
    case TILE_BINDING_FUNCTION: return b->function;
    }
    return "";
}

static TileLibrary *shared_library(const Bench *bench, uint32_t file) {
    for (size_t i = 0; i < bench->file->libraries.count; i++) {
        const TileTestLibrary *known = &bench->file->libraries.items[i];
        if (known->file == file && known->target == bench->target) return known->library;
    }
    return NULL;
}

/* The library for the run: one of its own if it has settings that the arguments do not determine. */
static tile_status open_library(Bench *bench, const TileTestRun *run, TileLibrary **library, TileReport **report) {
    TileUnit *unit = bench->file->unit;
    const TileSourceFile *source = &unit->diagnostics->files.items[run->file];
    TileCompileOptions options = {.struct_size = sizeof options,
                                  .file = source->name,
                                  .target = bench->file->targets[bench->target],
                                  .flags = bench->file->flags,
                                  .setting_count = run->bindings.count};
    TileSetting *settings = TILE_NEW_ARRAY(unit->arena, TileSetting, run->bindings.count);
    for (size_t i = 0; i < run->bindings.count; i++)
        settings[i] = (TileSetting){run->bindings.items[i].name, binding_text(unit->arena, &run->bindings.items[i])};
    options.settings = settings;
    *library = options.setting_count ? NULL : shared_library(bench, run->file);
    if (*library) return TILE_OK;
    tile_status status = tile_compile(bench->file->compiler, source->text, source->length, &options, library, report);
    if (status == TILE_OK && !options.setting_count)
        tile_list_push(unit->arena, &bench->file->libraries, (TileTestLibrary){run->file, bench->target, *library});
    return status;
}

static TileArg scalar_arg(const TileTestArgument *argument) {
    if (argument->scalar == TILE_BOOL) return TILE_TRUTH(argument->bits != 0);
    if (tile_scalar_is_float(argument->scalar))
        return TILE_NUMBER(tile_scalar_to_double(argument->scalar, argument->bits));
    if (tile_scalar_class(argument->scalar) == TILE_CLASS_UNSIGNED) return TILE_UNSIGNED(argument->bits);
    unsigned unused = 64 - tile_scalar_bits(argument->scalar);
    return TILE_INTEGER((int64_t)(argument->bits << unused) >> unused);
}

/* A result is initialised with a copy of the given value: the values of a test are immutable. */
static tile_status make_argument(Bench *bench, const TileTestArgument *argument, TileProgramArgument *made) {
    if (argument->tensor == TILE_TEST_NONE && argument->result == TILE_TEST_NONE) {
        made->arg = scalar_arg(argument);
        return TILE_OK;
    }
    const TileArray *given = argument->tensor == TILE_TEST_NONE ? NULL : &bench->arrays[argument->tensor];
    if (argument->result != TILE_TEST_NONE) {
        TileArray *result = &bench->arrays[argument->result];
        TILE_TRY(make_array(bench, argument->result));
        if (given) memcpy(result->data, given->data, result->storage_size);
        given = result;
    }
    tile_program_bind(made, given);
    return TILE_OK;
}

static tile_status launch(Bench *bench, const TileTestRun *run, TileKernel *kernel, TileError *error) {
    size_t count = run->arguments.count;
    TileProgramArgument *made = TILE_NEW_ARRAY(bench->file->unit->arena, TileProgramArgument, count);
    TileArg *args = TILE_NEW_ARRAY(bench->file->unit->arena, TileArg, count);
    for (size_t i = 0; i < count; i++) {
        tile_status status = make_argument(bench, &run->arguments.items[i], &made[i]);
        if (status != TILE_OK) return tile_error_set(error, status, "%s", tile_text_get(bench->message));
        args[i] = made[i].arg;
    }
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error};
    return tile_launch(kernel, args, count, &options);
}

static bool is_users_mistake(tile_status status) { return tile_status_exit_code(status) == 1; }

static tile_status run_kernel(Bench *bench, const TileTestRun *run, bool *stopped) {
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    TileKernel *kernel = NULL;
    TileError error = {0};
    tile_status status = open_library(bench, run, &library, &report);
    const char *why = report ? tile_arena_format(bench->file->unit->arena, "%s", tile_report_text(report, false)) : "";
    tile_report_destroy(report);
    if (status == TILE_OK) status = tile_library_kernel(library, run->kernel, &kernel);
    if (status == TILE_OK) {
        status = launch(bench, run, kernel, &error);
        why = error.message;
    }
    if (library != shared_library(bench, run->file)) tile_library_destroy(library);
    *stopped = status != TILE_OK;
    if (is_users_mistake(status)) return stop(bench, run->span, *why ? why : tile_status_text(status));
    if (status != TILE_OK && *why) tile_text_add(bench->message, why);
    return status;
}

/* ---- assertions ---- */

static uint64_t element(const TileArray *array, int64_t index) {
    uint64_t bits = 0;
    size_t bytes = tile_scalar_bytes(array->scalar);
    memcpy(&bits, array->data + (size_t)index * bytes, bytes);
    return bits;
}

static void add_element(TileText *text, const TileArray *array, int64_t index) {
    uint64_t bits = element(array, index);
    double number = tile_scalar_to_double(array->scalar, bits);
    unsigned unused = 64 - tile_scalar_bits(array->scalar);
    if (array->scalar == TILE_BOOL)
        tile_text_add(text, bits ? "true" : "false");
    else if (isnan(number))
        tile_text_add(text, "nan");
    else if (tile_scalar_is_float(array->scalar))
        tile_text_format(text, "%.9g", number);
    else if (tile_scalar_class(array->scalar) == TILE_CLASS_UNSIGNED)
        tile_text_format(text, "%llu", (unsigned long long)bits);
    else
        tile_text_format(text, "%lld", (long long)((int64_t)(bits << unused) >> unused));
}

/* " at [2, 0]" */
static void add_place(TileText *text, const TileArray *array, int64_t index) {
    int64_t at[TILE_MAX_TENSOR_RANK];
    if (!array->rank) return;
    for (unsigned d = array->rank; d-- > 0;) {
        at[d] = index % array->extent[d];
        index /= array->extent[d];
    }
    for (unsigned d = 0; d < array->rank; d++) tile_text_format(text, d ? ", %lld" : " at [%lld", (long long)at[d]);
    tile_text_add(text, "]");
}

static const char *value_text(Bench *bench, const TileArray *array) {
    enum { SHOWN = 8 };
    TileText text = {.arena = bench->file->unit->arena};
    int64_t count = tile_array_count(array->scalar, array->rank, array->extent);
    if (array->rank) tile_array_describe(&text, array);
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        if (array->rank) tile_text_add(&text, i ? " " : " = ");
        add_element(&text, array, i);
    }
    if (count > SHOWN) tile_text_add(&text, " ..");
    return tile_text_get(&text);
}

static void add_comparison(Bench *bench, const TileTestAssertion *assertion, TileDiagnostic *d, int64_t first,
                           int64_t failures, int64_t count) {
    const TileArray *left = &bench->arrays[assertion->left], *right = &bench->arrays[assertion->right];
    TileText text = {.arena = bench->file->unit->arena};
    if (left->rank) tile_text_format(&text, "%lld of %lld elements, the first", (long long)failures, (long long)count);
    add_place(&text, left, first);
    if (left->rank) tile_text_add(&text, ": ");
    add_element(&text, left, first);
    tile_text_format(&text, " %s ", assertion->comparison);
    add_element(&text, right, first);
    tile_text_add(&text, " is false");
    tile_diagnostic_note(bench->file->unit->diagnostics, d, (TileSpan){0}, "%s", tile_text_get(&text));
}

static void judge(Bench *bench, const TileTestAssertion *assertion) {
    const TileArray *holds = &bench->arrays[assertion->holds];
    int64_t count = tile_array_count(holds->scalar, holds->rank, holds->extent), first = -1, failures = 0;
    for (int64_t i = 0; i < count; i++) {
        if (element(holds, i)) continue;
        if (!failures++) first = i;
    }
    if (!failures) return;
    TileDiagnostics *list = bench->file->unit->diagnostics;
    TileDiagnostic *d = tile_diagnose(list, TILE_DIAGNOSTIC_TEST_FAILED, assertion->span, bench->item->name,
                                      bench->file->targets[bench->target], assertion->text);
    if (assertion->left != TILE_TEST_NONE) add_comparison(bench, assertion, d, first, failures, count);
    for (size_t i = 0; i < assertion->values.count; i++) {
        const TileTestValue *value = &assertion->values.items[i];
        tile_diagnostic_note(list, d, (TileSpan){0}, "%s = %s", value->text,
                             value_text(bench, &bench->arrays[value->tensor]));
    }
}

/* ---- all ---- */

static tile_status run_plan(Bench *bench) {
    bool stopped = false;
    for (uint32_t i = 0; i < bench->plan.tensors.count; i++)
        if (bench->plan.tensors.items[i].source <= TILE_TEST_FULL) TILE_TRY(make_array(bench, i));
    for (uint32_t i = 0; i < bench->plan.runs.count; i++) {
        const TileTestRun *run = &bench->plan.runs.items[i];
        if (run->computes) TILE_TRY(compute_arguments(bench, i, &stopped));
        if (!stopped) TILE_TRY(run_kernel(bench, run, &stopped));
        if (stopped) return TILE_OK;
    }
    TILE_TRY(prepare(bench, &bench->last));
    TILE_TRY(compute(bench, &bench->last, &stopped));
    for (size_t i = 0; i < bench->plan.assertions.count && !stopped; i++)
        judge(bench, &bench->plan.assertions.items[i]);
    return TILE_OK;
}

tile_status tile_test_run(TileTestFile *file, const TileItem *item, unsigned target, TileText *message) {
    TileUnit *unit = file->unit;
    Bench bench = {.file = file, .item = item, .target = target, .message = message};
    TILE_TRY(tile_lower_test(unit->context, unit->diagnostics, unit->arena, unit->ast, item, TILE_TEST_ASSERTIONS,
                             &bench.plan, &bench.last));
    bench.arrays = TILE_NEW_ARRAY(unit->arena, TileArray, bench.plan.tensors.count);
    tile_status status = run_plan(&bench);
    for (size_t i = 0; i < bench.plan.tensors.count; i++)
        if (bench.arrays[i].storage) tile_array_release(&bench.arrays[i]);
    tile_module_destroy(bench.last.module);
    return status;
}
