/* Eviction of variants while others launch; a hit does not allocate. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "fixture.h"
#include "launch/variants.h"

enum { ROWS = 2, WIDEST = 3 * TILE_KEPT_VARIANTS };

/* row_copy with one variant for each N. */
static TileImageSignature with_static_columns(void) {
    static const TileImageStatic columns = {"N", 0, 1};
    TileImageSignature signature = row_copy;
    signature.statics = &columns;
    signature.static_count = 1;
    return signature;
}

typedef struct Copy {
    float from[ROWS * WIDEST], to[ROWS * WIDEST];
} Copy;

static bool copy_columns(TileLibrary *library, Copy *copy, int64_t columns) {
    Tensor x, y;
    make_tensor(&x, copy->from, f32_type, 2, SHAPE(ROWS, columns), NULL);
    make_tensor(&y, copy->to, f32_type, 2, SHAPE(ROWS, columns), NULL);
    for (int64_t i = 0; i < ROWS * columns; i++) copy->from[i] = (float)(columns + i), copy->to[i] = -1;
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    if (tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL) != TILE_OK) return false;
    return memcmp(copy->from, copy->to, sizeof(float) * (size_t)(ROWS * columns)) == 0;
}

Test(evict, the_one_used_longest_ago_goes) {
    TileImageSignature signature = with_static_columns();
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&signature, &compiler);
    static Copy copy;
    for (int64_t n = 1; n <= TILE_KEPT_VARIANTS; n++) cr_assert(copy_columns(library, &copy, n));
    for (int64_t n = 1; n <= TILE_KEPT_VARIANTS; n++) cr_assert(copy_columns(library, &copy, n));
    cr_assert_eq(compiler.compiled, TILE_KEPT_VARIANTS, "all are kept");
    cr_assert(copy_columns(library, &copy, 1)); /* now variant 2 is the least recently used one */
    cr_assert(copy_columns(library, &copy, TILE_KEPT_VARIANTS + 1));
    cr_assert(copy_columns(library, &copy, 1));
    cr_assert_eq(compiler.compiled, TILE_KEPT_VARIANTS + 1);
    cr_assert(copy_columns(library, &copy, 2));
    cr_assert_eq(compiler.compiled, TILE_KEPT_VARIANTS + 2, "2 had gone");
    TileKernelStats stats;
    tile_kernel_stats(tile_library_kernel_at(library, 0), &stats);
    cr_assert_eq(stats.launches, 2 * TILE_KEPT_VARIANTS + 4, "those of variants that went count too");
    cr_assert_eq(stats.evictions, 2);
    tile_library_destroy(library);
}

typedef struct Racer {
    TileLibrary *library;
    unsigned seed;
    bool good;
} Racer;

/* Mostly one size, sometimes a random one: hits, misses and evictions at the same time. */
static void *race(void *state) {
    Racer *racer = state;
    Copy *copy = malloc(sizeof *copy);
    racer->good = copy != NULL;
    for (int i = 0; i < 400 && racer->good; i++) {
        racer->seed = racer->seed * 1103515245u + 12345u;
        unsigned number = racer->seed >> 16;
        racer->good = copy_columns(racer->library, copy, number % 3 ? 7 : 1 + number / 3 % WIDEST);
    }
    free(copy);
    return NULL;
}

Test(evict, sixteen_threads_launch_miss_and_evict) {
    TileImageSignature signature = with_static_columns();
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&signature, &compiler);
    pthread_t threads[16];
    Racer racers[16];
    for (int i = 0; i < 16; i++) {
        racers[i] = (Racer){library, 1u + (unsigned)i * 7919u, true};
        cr_assert_eq(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(racers[i].good);
    }
    TileKernelStats stats;
    tile_kernel_stats(tile_library_kernel_at(library, 0), &stats);
    cr_assert_eq(stats.launches, 16 * 400);
    cr_assert_gt(stats.evictions, 0);
    tile_library_destroy(library);
}

/* A failed compilation is cached, but not for ever. */
Test(evict, failures_do_not_pile_up) {
    TileImageSignature signature = with_static_columns();
    Compiler compiler = {.code = row_copy_code(), .status = TILE_INVALID_SOURCE, .message = "row_copy: wrong"};
    TileLibrary *library = make_library(&signature, &compiler);
    static Copy copy;
    for (int64_t n = 1; n <= WIDEST; n++) cr_assert(!copy_columns(library, &copy, n));
    unsigned records = 0;
    const TileKernel *kernel = tile_library_kernel_at(library, 0);
    for (const TileVariant *v = atomic_load(&kernel->variants); v; v = v->next) records++;
    cr_assert(records <= TILE_KEPT_VARIANTS);
    tile_library_destroy(library);
}
