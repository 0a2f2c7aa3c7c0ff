/* What a library says of its kernels beyond their parameters; texts of the standard library; printing threads. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tile/tile.h"

static const char text[] =
    "import nn\n"
    "fn loud(x: f32) -> f32 {\n    print(\"x\", x)\n    return x\n}\n"
    "fn quiet(x: f32) -> f32 { return nn.relu(x) }\n"
    "/// Does things.\n"
    "kernel map[T: f16 | f32, f: fn(f32) -> f32 = quiet](x: in T[N], y: out T[N], K: const i32)\n"
    "    tune BN in {64, 32}\n"
    "{\n    grid n in tiles(N, BN) { y[n] = T(f(f32(x[n]))) }\n}\n"
    "kernel row(x: in f32[M, N], y: out f32[M]) static N {\n"
    "    grid m in M { y[m] = loud(sum(x[m, :], axis = 0)) }\n}\n";

static TileLibrary *compile(TileCompiler *compiler, const TileSetting *settings, size_t count) {
    TileCompileOptions options = {.struct_size = sizeof options, .settings = settings, .setting_count = count};
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile(compiler, text, strlen(text), &options, &library, &report);
    cr_assert_eq(status, TILE_OK, "%s", tile_report_text(report, false));
    tile_report_destroy(report);
    return library;
}

static TileSettingInfo setting(const TileKernel *kernel, const char *name) {
    TileSettingInfo info = {.struct_size = sizeof info};
    for (size_t i = 0; tile_kernel_setting(kernel, i, &info); i++)
        if (strcmp(info.name, name) == 0) return info;
    cr_assert_fail("there is no setting %s", name);
    return info;
}

Test(interface, settings_doc_and_prints) {
    TileCompiler *compiler;
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    const TileSetting loud[] = {{"f", "loud"}, {"BN", "32"}};
    TileLibrary *library = compile(compiler, NULL, 0), *other = compile(compiler, loud, 2);
    TileKernel *map = tile_library_kernel_at(library, 0), *row = tile_library_kernel_at(library, 1);
    TileSettingInfo type = setting(map, "T"), function = setting(map, "f"), tune = setting(map, "BN");
    cr_assert(type.kind == TILE_SETTING_TYPE && type.type_count == 2 && type.types[1].bits == 32 && !type.value);
    cr_assert_str_eq(type.allowed, "f16 | f32");
    cr_assert(function.kind == TILE_SETTING_FUNCTION && strcmp(function.otherwise, "quiet") == 0);
    cr_assert(tune.kind == TILE_SETTING_TUNE && strcmp(tune.otherwise, "64") == 0 && !tune.family);
    cr_assert_str_eq(tune.allowed, "64, 32");
    cr_assert_eq(setting(map, "K").kind, TILE_SETTING_CONSTANT);
    cr_assert_eq(setting(row, "N").kind, TILE_SETTING_STATIC);
    cr_assert_str_eq(setting(tile_library_kernel_at(other, 0), "BN").value, "32");
    cr_assert(strstr(tile_kernel_doc(map), "Does things."));
    cr_assert_str_eq(tile_kernel_doc(row), "");
    cr_assert(!tile_kernel_prints(map) && tile_kernel_prints(row));
    cr_assert(tile_kernel_prints(tile_library_kernel_at(other, 0)), "the function that was set prints");
    tile_library_destroy(library);
    tile_library_destroy(other);
    tile_compiler_destroy(compiler);
}

Test(interface, texts_of_the_standard_library_compile) {
    TileCompiler *compiler;
    TileStandardText at;
    size_t count = 0;
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    for (; tile_standard_text_at(count, &at); count++) {
        TileCompileOptions options = {.struct_size = sizeof options, .file = at.path};
        TileLibrary *library;
        cr_assert_eq(tile_compile(compiler, at.text, at.length, &options, &library, NULL), TILE_OK, "%s", at.path);
        tile_library_destroy(library);
    }
    cr_assert_gt(count, 10);
    cr_assert(!tile_standard_text_at(0, NULL));
    tile_compiler_destroy(compiler);
}

/* ---- lines are handed over by the thread that launches, whichever thread printed them ---- */

static const char printing[] = "kernel talk(x: in f32[N], y: out f32[N]) {\n"
                               "    grid n in N {\n"
                               "        var v = x[n]\n"
                               "        for i in 0..20000 { v = v * 0.5 + 1 }\n"
                               "        print(\"v\", v)\n"
                               "        y[n] = v\n"
                               "    }\n}\n";

typedef struct Lines {
    pthread_t thread;
    int count, elsewhere;
} Lines;

static void take_line(void *host, const char *line, size_t length) {
    Lines *lines = host;
    lines->count++;
    lines->elsewhere += !pthread_equal(pthread_self(), lines->thread);
    cr_assert(length && line[length - 1] == '\n');
}

Test(interface, lines_come_on_the_thread_that_launches) {
    enum { N = 400 };
    static float x[N], y[N];
    int64_t shape[] = {N};
    TileCompiler *compiler;
    TileLibrary *library;
    TileThreadPool *pool;
    TileThreadPoolOptions four = {.struct_size = sizeof four, .threads = 4};
    cr_assert_eq(tile_compiler_create(NULL, &compiler), TILE_OK);
    cr_assert_eq(tile_compile(compiler, printing, strlen(printing), NULL, &library, NULL), TILE_OK);
    cr_assert_eq(tile_thread_pool_create(&four, &pool), TILE_OK);
    DLTensor tensors[2] = {{.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape},
                           {.data = y, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape}};
    TileArg args[] = {TILE_TENSOR(&tensors[0]), TILE_TENSOR(&tensors[1])};
    Lines lines = {.thread = pthread_self()};
    TileLaunchOptions options = {
        .struct_size = sizeof options, .threads = pool, .print = take_line, .print_host = &lines};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 2, &options), TILE_OK);
    cr_assert_eq(lines.count, 3 * N);
    cr_assert_eq(lines.elsewhere, 0);
    tile_library_destroy(library);
    tile_thread_pool_destroy(pool);
    tile_compiler_destroy(compiler);
}
