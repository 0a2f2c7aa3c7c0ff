/* Threads with small stacks: functions that recurse as deeply as a text is nested use a stack of their own. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "base/stack.h"
#include "tile/build.h"

enum { ROWS = 6, COLUMNS = 40, SMALL = 256 << 10 }; /* sanitizers make frames larger, and use half of it */

static void on_small_stack(void *(*body)(void *state), void *state) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, SMALL), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, body, state), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

static const char text[] = "kernel k(x: in f32[M, N], y: out f32[2 * M, N]) {\n"
                           "    grid (m, n) in (tiles(M, 2), tiles(N, 16)) {\n"
                           "        y[m, n] = x[m, n] + ((((((((1 + exp(x[m, n])))))))))\n"
                           "    }\n"
                           "}\n";

static void quiet(void *host, const char *line, size_t length) { *(size_t *)host += length + (line == NULL); }

/* All functions of the API that compile, with the target in `state`. */
static void *use(void *state) {
    static float x[ROWS][COLUMNS], y[2 * ROWS][COLUMNS];
    int64_t shape[] = {ROWS, COLUMNS}, other[] = {2 * ROWS, COLUMNS}, found[TILE_MAX_RANK];
    DLTensor tx = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, ty = tx;
    TileCompiler *compiler;
    TileLibrary *library;
    TileReport *report = NULL;
    DLDataType type;
    uint32_t known;
    size_t said = 0;
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    TileCompileOptions given = {.struct_size = sizeof given, .target = state};
    ty.data = y;
    ty.shape = other;
    TileArg args[] = {TILE_TENSOR(&tx), TILE_TENSOR(&ty)}, partial[] = {TILE_TENSOR(&tx), {.kind = TILE_ARG_NONE}};
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    tile_status status = tile_compile(compiler, text, strlen(text), &given, &library, &report);
    cr_assert_eq(status, TILE_OK, "%s", tile_report_text(report, false));
    TileKernel *kernel = tile_library_kernel_at(library, 0);
    status = tile_kernel_infer(kernel, partial, 2, 1, &type, found, &known, &options);
    cr_assert_eq(status, TILE_OK, "%s", error.message);
    cr_assert_eq(found[0], 2 * ROWS);
    for (int i = 0; i < 3; i++) cr_assert_eq(tile_launch(kernel, args, 2, &options), TILE_OK, "%s", error.message);
    cr_assert_float_eq(y[0][0], 2, 0);
    cr_assert_eq(tile_explain(kernel, args, 2, quiet, &said, NULL), TILE_OK);
    cr_assert(said > 0);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    return NULL;
}

Test(stack, small_ones_will_do) {
    on_small_stack(use, "cpu");
    on_small_stack(use, "interp");
}

static void note_thread(void *state) { *(pthread_t *)state = pthread_self(); }

static void *run_noting(void *state) {
    pthread_t where = 0;
    cr_assert(tile_stack_run(note_thread, &where));
    *(bool *)state = where == pthread_self();
    return NULL;
}

Test(stack, a_thread_is_made_where_it_has_to_be) {
    bool here = true;
    on_small_stack(run_noting, &here);
    cr_assert(!here);
    run_noting(&here); /* the main thread's stack has the usual size */
    cr_assert(here);
}
