/* Threads that build, compile and run concurrently: each with its own compiler, and all with one. No machine code is
 * generated: code is run on the executor, so that scripts/test_compiler_threads.sh can observe all accesses. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tile/pass.h"

enum { USUAL_THREADS = 4, MOST_THREADS = 64, ROUNDS = 3, COUNT = 70 };

static const char text[] = "kernel scale(x: in f32[N], y: out f32[N], by: f32) {\n"
                           "    grid n in tiles(N, 64) { y[n] = x[n] * by }\n"
                           "}\n";

typedef struct Job {
    TileCompiler *shared; /* or NULL */
    int number, visits;   /* of the thread's own pass */
    bool good;
} Job;

static void count_visit(TileIr *ir, void *host) {
    int *visits = host;
    if (*tile_ir_function_name(ir)) ++*visits;
}

static void build(TileIr *ir) {
    const char *dimensions[] = {"N"};
    tile_ir_kernel(ir, "scale");
    TileIrValue *x = tile_ir_tensor(ir, "x", TILE_PARAMETER_IN, "f32", dimensions, 1);
    TileIrValue *y = tile_ir_tensor(ir, "y", TILE_PARAMETER_OUT, "f32", dimensions, 1);
    TileIrValue *by = tile_ir_scalar(ir, "by", "f32");
    TileIrValue *blocks = tile_ir_tiles(ir, tile_ir_dimension(ir, "N"), 64);
    tile_ir_begin(ir, "grid", &blocks, 1, NULL, NULL, 0);
    TileIrIndex at = {tile_ir_binary(ir, "mul", tile_ir_argument(ir, 0), tile_ir_integer(ir, "i64", 64)), 64};
    TileIrValue *v = tile_ir_load(ir, x, &at, 1, NULL);
    tile_ir_store(ir, y, tile_ir_binary(ir, "mul", v, tile_ir_broadcast(ir, by, tile_ir_type_of(v))), &at, 1);
    tile_ir_end(ir);
    tile_ir_kernel_end(ir);
}

static tile_status compile(TileCompiler *compiler, bool from_text, TileLibrary **library) {
    TileCompileOptions options = {.struct_size = sizeof options, .target = "avx2", .flags = TILE_COMPILE_EMULATE};
    TileIr *ir = NULL;
    if (from_text) return tile_compile(compiler, text, strlen(text), &options, library, NULL);
    TILE_TRY(tile_ir_create(&ir));
    build(ir);
    tile_status status = tile_compile_ir(compiler, ir, &options, library, NULL);
    tile_ir_destroy(ir);
    return status;
}

static bool run_once(TileCompiler *compiler, bool from_text, float by) {
    float x[COUNT], y[COUNT];
    int64_t count = COUNT;
    DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &count, NULL, 0}, ty = tx;
    TileArg args[] = {TILE_TENSOR(&tx), TILE_TENSOR(&ty), TILE_NUMBER((double)by)};
    TileLibrary *library = NULL;
    TileKernel *kernel = NULL;
    ty.data = y;
    for (int i = 0; i < COUNT; i++) x[i] = (float)i;
    bool good = compile(compiler, from_text, &library) == TILE_OK &&
                tile_library_kernel(library, "scale", &kernel) == TILE_OK &&
                tile_launch(kernel, args, 3, NULL) == TILE_OK;
    for (int i = 0; i < COUNT && good; i++) good = y[i] == by * x[i];
    tile_library_destroy(library);
    return good;
}

static void *work(void *state) {
    Job *job = state;
    TilePass pass = {.struct_size = sizeof pass,
                     .name = "count-visits",
                     .after = "contract",
                     .run = count_visit,
                     .host = &job->visits};
    const TilePass *passes[] = {&pass};
    TileCompilerOptions options = {.struct_size = sizeof options, .passes = passes, .pass_count = 1};
    TileCompiler *own = job->shared;
    job->good = own || tile_compiler_create(&options, &own) == TILE_OK;
    for (int round = 0; round < ROUNDS && job->good; round++)
        job->good = run_once(own, (job->number + round) % 2, (float)(job->number + round));
    if (!job->shared) tile_compiler_destroy(own);
    return NULL;
}

/* The number of threads is TILE_SOAK_THREADS. */
static void run_threads(TileCompiler *shared) {
    pthread_t threads[MOST_THREADS];
    Job jobs[MOST_THREADS];
    const char *wanted = getenv("TILE_SOAK_THREADS");
    int count = wanted ? atoi(wanted) : USUAL_THREADS;
    cr_assert(count > 0 && count <= MOST_THREADS);
    for (int i = 0; i < count; i++) {
        jobs[i] = (Job){.shared = shared, .number = i};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++) {
        cr_assert(jobs[i].good, "thread %d", i);
        cr_assert(shared ? jobs[i].visits == 0 : jobs[i].visits >= ROUNDS, "thread %d: %d visits", i, jobs[i].visits);
    }
}

Test(ir_threads, a_compiler_each) { run_threads(NULL); }

Test(ir_threads, one_compiler) {
    TileCompiler *shared = NULL;
    cr_assert_eq(tile_compiler_create(NULL, &shared), TILE_OK);
    run_threads(shared);
    tile_compiler_destroy(shared);
}
