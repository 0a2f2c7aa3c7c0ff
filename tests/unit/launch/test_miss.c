/* Behaviour and messages of a miss: waiting, general code meanwhile, compilation in a thread of the library; the log
 * and tile_explain. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"
#include "launch/guard.h"
#include "launch/settings.h"

static float memory[1 << 12] __attribute__((aligned(128)));

typedef struct Lines {
    char text[8192];
    pthread_mutex_t mutex;
} Lines;

static void keep_line(void *host, const char *line, size_t length) {
    Lines *lines = host;
    pthread_mutex_lock(&lines->mutex);
    size_t begin = strlen(lines->text);
    if (begin + length < sizeof lines->text) {
        memcpy(lines->text + begin, line, length);
        lines->text[begin + length] = 0;
    }
    pthread_mutex_unlock(&lines->mutex);
}

static bool said(Lines *lines, const char *text) {
    pthread_mutex_lock(&lines->mutex);
    bool found = strstr(lines->text, text) != NULL;
    pthread_mutex_unlock(&lines->mutex);
    if (!found) fprintf(stderr, "no '%s' in:\n%s", text, lines->text);
    return found;
}

static tile_status copy(TileLibrary *library, const int64_t *strides) {
    Tensor x, y;
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), strides);
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    for (int i = 0; i < 32; i++) memory[1024 + i] = -1;
    tile_status status = tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL);
    for (int64_t i = 0; i < 32 && status == TILE_OK; i++) {
        int64_t at = strides ? i / 8 * strides[0] + i % 8 * strides[1] : i;
        if (memory[1024 + i] != memory[at]) return TILE_INTERNAL;
    }
    return status;
}

static void fill(void) {
    for (int i = 0; i < 1024; i++) memory[i] = (float)i;
}

static TileKernelStats stats_of(TileLibrary *library) {
    TileKernelStats stats;
    tile_kernel_stats(tile_library_kernel_at(library, 0), &stats);
    return stats;
}

Test(miss, the_log_says_which_guard) {
    static Lines lines;
    TileSettings settings = {.struct_size = sizeof settings,
                             .log = TILE_LOG_GUARDS,
                             .log_print = keep_line,
                             .log_host = &lines,
                             .variant_limit = 2};
    Compiler compiler = {.code = row_copy_code(), .relies = true, .settings = &settings};
    TileLibrary *library = make_library(&row_copy, &compiler);
    fill();
    cr_assert_eq(copy(library, NULL), TILE_OK);
    cr_assert(said(&lines, "tile: row_copy[T = f32]: miss: there is no code yet\n"));
    cr_assert(said(
        &lines,
        "relies on: x: aligned to 128 bytes, offsets below 2**31, rows of 1 to 128 elements, dimension 1 contiguous, "
        "no gaps, dimension 0 a multiple of 4, dimension 1 a multiple of 8; y: aligned"));
    cr_assert_eq(copy(library, SHAPE(16, 2)), TILE_OK);
    cr_assert(said(&lines, "miss: x: dimension 1 has a stride of 8 bytes, and the code relies on one element\n"));
    cr_assert_eq(copy(library, SHAPE(0, 1)), TILE_OK);
    cr_assert(said(&lines, "2 variants for the same types and static values, which is the limit"));
    cr_assert_eq(copy(library, SHAPE(1, 0)), TILE_OK);
    cr_assert_eq(strstr(strstr(lines.text, "which is the limit") + 1, "which is the limit") == NULL, true, "said once");
    TileSettings own = {.struct_size = sizeof own};
    cr_assert_eq(tile_library_settings(library, &own), TILE_OK);
    cr_assert(own.variant_limit == 2 && own.on_miss == TILE_ON_MISS_WAIT && own.threads > 0);
    tile_library_destroy(library);
}

Test(miss, explain) {
    static Lines lines;
    Compiler compiler = {.code = row_copy_code(), .relies = true};
    TileLibrary *library = make_library(&row_copy, &compiler);
    fill();
    cr_assert_eq(copy(library, NULL), TILE_OK);
    Tensor x, y;
    make_tensor(&x, memory + 1, f32_type, 2, SHAPE(4, 8), SHAPE(8, 3));
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileKernel *kernel = tile_library_kernel_at(library, 0);
    cr_assert_eq(tile_explain(kernel, args, 2, keep_line, &lines, NULL), TILE_OK);
    cr_assert(said(&lines, "row_copy: 1 launches, 0 hits, 1 misses, 1 variants compiled in"));
    cr_assert(said(&lines, "  T = f32: 1 launches, compiled in"));
    cr_assert(said(&lines, "    x: the address is a multiple of 4 bytes, and the code relies on 128; "
                           "x: dimension 1 has a stride of 12 bytes, and the code relies on one element\n"));
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(INT64_C(1) << 29, 1));
    cr_assert_eq(tile_explain(kernel, args, 2, keep_line, &lines, NULL), TILE_OK);
    cr_assert(said(&lines,
                   "    x: offsets reach 6442450976 bytes, and the code relies on less than 2**31; x: there are gaps "
                   "behind dimension 0, and the code relies on none\n"));
    make_tensor(&x, memory + 64, f32_type, 2, SHAPE(4, 8), SHAPE(-8, 1));
    cr_assert_eq(tile_explain(kernel, args, 2, keep_line, &lines, NULL), TILE_OK);
    cr_assert(said(&lines, "x: elements lie before the first one, and the code relies on offsets below 2**31"));
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), NULL);
    cr_assert_eq(tile_explain(kernel, args, 2, keep_line, &lines, NULL), TILE_OK);
    cr_assert(said(&lines, "    serves these arguments\n"));
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert_eq(tile_explain(kernel, args, 1, keep_line, &lines, &options), TILE_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(error.message, "1 arguments given, expected 2"));
    cr_assert_eq(compiler.compiled, 1, "explaining compiles nothing");
    tile_library_destroy(library);
}

/* The general code is used until the special one is there, which is used from then on. */
Test(miss, background) {
    TileSettings settings = {.struct_size = sizeof settings, .on_miss = TILE_ON_MISS_BACKGROUND};
    Compiler compiler = {.code = row_copy_code(), .relies = true, .settings = &settings};
    TileLibrary *library = make_library(&row_copy, &compiler);
    fill();
    cr_assert_eq(copy(library, SHAPE(16, 2)), TILE_OK);
    while (stats_of(library).variants < 2) { /* the general and the special one */
        cr_assert_eq(copy(library, SHAPE(16, 2)), TILE_OK);
        usleep(1000);
    }
    uint64_t misses = stats_of(library).misses;
    for (int i = 0; i < 10; i++) cr_assert_eq(copy(library, SHAPE(16, 2)), TILE_OK);
    cr_assert_eq(stats_of(library).misses, misses, "hits");
    cr_assert_eq(compiler.compiled, 2);
    /* Destroying a library waits for its threads. */
    compiler.delay_ms = 100;
    cr_assert_eq(copy(library, SHAPE(0, 1)), TILE_OK);
    tile_library_destroy(library);
}

typedef struct Launcher {
    TileLibrary *library;
    tile_status status;
} Launcher;

static void *launch_strided(void *state) {
    Launcher *launcher = state;
    Tensor x, y;
    static float target[32];
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(16, 2));
    make_tensor(&y, target, f32_type, 2, SHAPE(4, 8), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launcher->status = tile_launch(tile_library_kernel_at(launcher->library, 0), args, 2, NULL);
    return NULL;
}

/* While one thread compiles, another one uses existing general code. */
Test(miss, general_meanwhile) {
    TileSettings settings = {.struct_size = sizeof settings, .on_miss = TILE_ON_MISS_GENERAL, .variant_limit = 1};
    Compiler compiler = {.code = row_copy_code(), .relies = true, .settings = &settings};
    TileLibrary *library = make_library(&row_copy, &compiler);
    fill();
    cr_assert_eq(copy(library, SHAPE(0, 0)), TILE_OK);
    cr_assert_eq(copy(library, SHAPE(0, 1)), TILE_OK); /* beyond the limit: general */
    cr_assert_eq(compiler.compiled, 2);
    Launcher launcher = {library, TILE_INTERNAL};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, launch_strided, &launcher), 0);
    cr_assert_eq(copy(library, SHAPE(16, 2)), TILE_OK);
    pthread_join(thread, NULL);
    cr_assert_eq(launcher.status, TILE_OK);
    cr_assert_eq(compiler.compiled, 2);
    tile_library_destroy(library);
}

static void take_warning(void *host, const char *line, size_t length) {
    char *lines = host;
    strncat(lines, line, length);
}

/* A host's log hook gets the warnings, too, each once for all libraries. */
Test(miss, odd_values_of_the_environment) {
    char lines[2000] = "";
    TileSettings given = {.struct_size = sizeof given, .log_print = take_warning, .log_host = lines}, settings;
    setenv("TILE_VARIANT_LIMIT", "-7", 1);
    for (int i = 0; i < 3; i++) cr_assert(tile_settings_merge(&settings, &given));
    const char *warning = strstr(lines, "TILE_VARIANT_LIMIT is '-7'");
    cr_assert(warning && !strstr(warning + 1, "TILE_VARIANT_LIMIT"), "%s", lines);
}

Test(miss, settings_of_the_environment) {
    setenv("TILE_ON_MISS", "background", 1);
    setenv("TILE_VARIANT_LIMIT", "3", 1);
    setenv("TILE_LOG", "guards,compile", 1);
    setenv("TILE_DETERMINISTIC", "1", 1);
    setenv("TILE_ALLOW_TF32", "1", 1);
    setenv("TILE_CPU_CAPABILITY", "avx2", 1);
    TileSettings settings = {.struct_size = sizeof settings};
    cr_assert_eq(tile_settings_read(&settings), TILE_OK);
    cr_assert(settings.on_miss == TILE_ON_MISS_BACKGROUND && settings.variant_limit == 3 && settings.deterministic);
    cr_assert(settings.allow_tf32);
    cr_assert_eq(settings.log, TILE_LOG_GUARDS | TILE_LOG_COMPILE);
    cr_assert_str_eq(settings.cpu_capability, "avx2");
    cr_assert_str_eq(tile_on_miss_name(settings.on_miss), "background");
    setenv("TILE_ON_MISS", "never", 1);
    setenv("TILE_LOG", "", 1);
    cr_assert_eq(tile_settings_read(&settings), TILE_OK);
    cr_assert(settings.on_miss == TILE_ON_MISS_WAIT && settings.log == 0);
    settings.struct_size = 0;
    cr_assert_eq(tile_settings_read(&settings), TILE_INVALID_ARGUMENT);
    for (const char *const *name =
             (const char *const[]){"TILE_ON_MISS", "TILE_VARIANT_LIMIT", "TILE_LOG", "TILE_DETERMINISTIC",
                                   "TILE_ALLOW_TF32", "TILE_CPU_CAPABILITY", NULL};
         *name; name++)
        unsetenv(*name);
}
