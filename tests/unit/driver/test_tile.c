/* Messages and output of compilations; compilers, libraries and kernels shared by threads. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "launches.h"

/* ---- threads ---- */

typedef struct Racer {
    TileKernel *kernel;
    int number;
    bool good;
} Racer;

/* Shapes and strides in alternation, so that all threads miss at the same time, and again later. */
static void *race(void *state) {
    Racer *racer = state;
    float *memory = calloc(30000, sizeof *memory);
    racer->good = memory != NULL;
    for (int round = 0; round < 12 && racer->good; round++) {
        int64_t rows = 3 + racer->number % 4, columns = 60 + round, step = 1 + (round + racer->number) % 3;
        View x, y, z;
        float *a = memory, *b = memory + 10000, *c = memory + 20000;
        for (int i = 0; i < 10000; i++) a[i] = number_at(i + racer->number), b[i] = number_at(i * 3);
        make_view(&x, a, rows, columns, columns * step, step);
        make_view(&y, b, rows, columns, columns, 1);
        make_view(&z, c, rows, columns, columns * step, step);
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_TENSOR(&z.dl)};
        racer->good = tile_launch(racer->kernel, args, 3, NULL) == TILE_OK;
        for (int64_t i = 0; i < rows * columns; i++) racer->good &= c[i * step] == a[i * step] + b[i];
    }
    free(memory);
    return NULL;
}

Test(tile, sixteen_threads_launch_and_miss_at_once) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, add_text, NULL, 0);
    pthread_t threads[16];
    Racer racers[16];
    for (int i = 0; i < 16; i++) {
        racers[i] = (Racer){only_kernel(library), i, false};
        pthread_create(&threads[i], NULL, race, &racers[i]);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(racers[i].good, "thread %d", i);
    }
    TileKernelStats stats;
    tile_kernel_stats(only_kernel(library), &stats);
    cr_assert_eq(stats.launches, 16 * 12);
    cr_assert_leq(stats.variants, 9, "%llu variants", (unsigned long long)stats.variants);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

static void *compile_apart(void *compiler) {
    for (int i = 0; i < 3; i++) {
        TileLibrary *library = NULL;
        if (tile_compile(compiler, softmax_text, strlen(softmax_text), NULL, &library, NULL) != TILE_OK) return NULL;
        float in[6] = {1, 2, 3, 4, 5, 6}, out[6];
        View x, y;
        make_view(&x, in, 2, 3, 3, 1);
        make_view(&y, out, 2, 3, 3, 1);
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
        bool good = tile_launch(tile_library_kernel_at(library, 0), args, 2, NULL) == TILE_OK;
        tile_library_destroy(library);
        if (!good || fabsf(out[0] + out[1] + out[2] - 1) > 1e-6f) return NULL;
    }
    return compiler;
}

Test(tile, threads_compile_with_one_compiler) {
    TileCompiler *compiler = make_compiler();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, compile_apart, compiler);
    for (int i = 0; i < 8; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        cr_assert_not_null(result);
    }
    tile_compiler_destroy(compiler);
}

/* ---- messages of compilations ---- */

static tile_status try_compile(const char *text, const TileCompileOptions *options, char *words, size_t size) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    tile_status status = tile_compile(compiler, text, strlen(text), options, &library, &report);
    snprintf(words, size, "%s", report ? tile_report_text(report, false) : "");
    if (report && status != TILE_OK) {
        cr_assert_gt(tile_report_error_count(report), 0);
        cr_assert_eq(tile_report_json(report)[0], '[');
    }
    tile_report_destroy(report);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    return status;
}

Test(tile, errors_of_the_text) {
    char words[4096];
    TileCompileOptions options = {.struct_size = sizeof options, .file = "wrong.tile"};
    cr_assert_eq(
        try_compile("kernel k(x: in f32[N]) { grid n in tiles(N, 8) { y[n] = x[n] } }", &options, words, sizeof words),
        TILE_INVALID_SOURCE);
    cr_assert(strstr(words, "wrong.tile:1:50: error:"), "%s", words);
    cr_assert_eq(try_compile("import nothing_of_this_name\n", &options, words, sizeof words), TILE_INVALID_SOURCE);
}

Test(tile, targets_and_settings_that_do_not_exist) {
    char words[4096];
    TileCompileOptions options = {.struct_size = sizeof options, .target = "abacus"};
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: there is no target 'abacus'; targets are cpu, avx2, avx512, avx512vnni, avx512bf16, amx, sve, cuda, "
                            "sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_120a, interp\n");
    TileSetting unknown = {"XYZ", "3"}, wrong = {"T", "i32"};
    options = (TileCompileOptions){.struct_size = sizeof options, .settings = &unknown, .setting_count = 1};
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: there is nothing called 'XYZ' that a setting could decide\n");
    options.settings = &wrong;
    cr_assert_eq(try_compile(add_text, &options, words, sizeof words), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(words, "error: add: T must be float, not i32\n");
}

/* ---- messages of launches ---- */

static const char narrow_text[] = "kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                                  "    static D\n"
                                  "    require D <= 64, \"a row fits\"\n"
                                  "{\n"
                                  "    static_assert(D % 4 == 0, \"rows of four\")\n"
                                  "    static_assert(D >= 8)\n"
                                  "    grid m in tiles(M, 4) { y[m, :] = x[m, :] / 2 }\n"
                                  "}\n";

typedef tile_status (*Ask)(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options);
static tile_status ask_launch(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    return tile_launch(kernel, args, 2, options);
}
static tile_status ask_prepare(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    return tile_prepare(kernel, args, 2, options);
}
static tile_status ask_infer(TileKernel *kernel, const TileArg *args, const TileLaunchOptions *options) {
    DLDataType type;
    int64_t shape[TILE_MAX_RANK];
    uint32_t known;
    TileArg partial[] = {args[0], {.kind = TILE_ARG_NONE}};
    return tile_kernel_infer(kernel, partial, 2, 1, &type, shape, &known, options);
}

static void check_instance_report(Ask ask, int64_t width, tile_status expected, size_t errors, const char *text,
                                  const char *json) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = compile(compiler, narrow_text, NULL, 0);
    TileReport *report = NULL;
    TileError error = {.message = ""};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    View x, y;
    make_view(&x, x_memory, 3, width, width, 1);
    make_view(&y, y_memory, 6, width, width, 1);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(ask(only_kernel(library), args, &options), expected);
    cr_assert_eq(error.status, expected);
    cr_assert(strncmp(error.message, "narrow: <text>:", 15) == 0, "%s", error.message);
    cr_assert_eq(tile_report_error_count(report), errors);
    cr_assert_str_eq(tile_report_text(report, false), text);
    cr_assert_not_null(strstr(tile_report_json(report), json), "%s", tile_report_json(report));
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
    cr_assert_str_eq(tile_report_text(report, false), text, "a report outlives the library");
    tile_report_destroy(report);
}

/* Errors that exist only for these types and static values: all are reported, with locations and notes. */
Test(tile, errors_of_an_instance) {
    static const Ask ways[] = {ask_launch, ask_prepare, ask_infer};
    static const char two[] = "<text>:5:19: error: the assertion does not hold: rows of four [assertion-failed]\n"
                              "    5 |     static_assert(D % 4 == 0, \"rows of four\")\n"
                              "      |                   ^~~~~~~~~~\n"
                              "note: here D = 7\n"
                              "<text>:1:8: note: in the instance `narrow[T = f32, D = 7]`\n"
                              "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                              "      |        ^~~~~~\n"
                              "<text>:6:19: error: the assertion does not hold: D >= 8 [assertion-failed]\n"
                              "    6 |     static_assert(D >= 8)\n"
                              "      |                   ^~~~~~\n"
                              "note: here D = 7\n"
                              "<text>:1:8: note: in the instance `narrow[T = f32, D = 7]`\n"
                              "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
                              "      |        ^~~~~~\n";
    static const char required[] =
        "<text>:3:13: error: this requirement does not hold: D <= 64: a row fits [require-failed]\n"
        "    3 |     require D <= 64, \"a row fits\"\n"
        "      |             ^~~~~~~\n"
        "note: here D = 72\n"
        "<text>:1:8: note: in the instance `narrow[T = f32, D = 72]`\n"
        "    1 | kernel narrow[T: float](x: in T[M, D], y: out T[2 * M, D])\n"
        "      |        ^~~~~~\n";
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        check_instance_report(ways[i], 7, TILE_INVALID_SOURCE, 2, two,
                              "\"line\":6,\"column\":19,\"end_line\":6,\"end_column\":25,\"message\":\"the assertion");
        check_instance_report(ways[i], 72, TILE_INVALID_ARGUMENT, 1, required, "\"code\":\"require-failed\"");
    }
}

Test(tile, files) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    errno = 55;
    cr_assert_eq(tile_compile_file(compiler, "/nowhere/nothing.tile", NULL, &library, &report), TILE_NOT_FOUND);
    cr_assert_str_eq(tile_report_text(report, false),
                     "error: cannot read /nowhere/nothing.tile: there is no such file\n");
    cr_assert_eq(errno, 55);
    tile_report_destroy(report);
    tile_compiler_destroy(compiler);
}

Test(tile, standard_library_is_inside) {
    TileCompiler *compiler = make_compiler();
    TileLibrary *library =
        compile(compiler,
                "import nn\n"
                "kernel k(x: in f32[N], y: out f32[N]) { grid n in tiles(N, 8) { y[n] = relu(x[n]) } }",
                NULL, 0);
    float in[3] = {-1, 0, 2}, out[3] = {9, 9, 9};
    View x, y;
    make_view(&x, in, 3, 0, 1, 0);
    make_view(&y, out, 3, 0, 1, 0);
    x.dl.ndim = y.dl.ndim = 1;
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    launch(only_kernel(library), args, 2);
    cr_assert(out[0] == 0 && out[1] == 0 && out[2] == 2);
    tile_library_destroy(library);
    tile_compiler_destroy(compiler);
}

/* ---- stages ---- */

static char *emit(TileCompiler *compiler, const char *target, TileStage stage, const char *after,
                  tile_status expected) {
    char *output = NULL;
    TileSetting type = {"T", "f32"};
    TileCompileOptions options = {
        .struct_size = sizeof options, .target = target, .settings = &type, .setting_count = 1};
    TileEmitOptions what = {.struct_size = sizeof what, .stage = stage, .after = after};
    TileReport *report = NULL;
    tile_status status = tile_emit_stage(compiler, add_text, strlen(add_text), &options, &what, &output, &report);
    cr_assert_eq(status, expected, "%s: %s", tile_stage_name(stage), report ? tile_report_text(report, false) : "");
    tile_report_destroy(report);
    return output;
}

Test(tile, stages) {
    static const char *const marks[TILE_STAGE_COUNT] = {"1:1 keyword kernel",
                                                        "(kernel add",
                                                        "func kernel tile @add",
                                                        "func phase machine @add.0",
                                                        "llvm.func",
                                                        "define ",
                                                        "vaddps",
                                                        ".visible .entry add$0"};
    TileCompiler *compiler = make_compiler();
    for (int stage = 0; stage < TILE_STAGE_COUNT; stage++) {
        char *output = emit(compiler, stage == TILE_STAGE_PTX ? "sm_80" : "avx2", (TileStage)stage, NULL, TILE_OK);
        cr_assert(strstr(output, marks[stage]), "%s:\n%s", tile_stage_name((TileStage)stage), output);
        tile_string_destroy(output);
    }
    char *output = emit(compiler, "avx2", TILE_STAGE_MACHINE, "programs", TILE_OK);
    cr_assert(strstr(output, "func phase tile @add.0"), "%s", output);
    tile_string_destroy(output);
    cr_assert_null(emit(compiler, "avx2", TILE_STAGE_MACHINE, "cpu-magic", TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "avx2", TILE_STAGE_PTX, NULL, TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "sm_80", TILE_STAGE_ASM, NULL, TILE_INVALID_ARGUMENT));
    cr_assert_null(emit(compiler, "interp", TILE_STAGE_MACHINE, NULL, TILE_INVALID_ARGUMENT));
    tile_compiler_destroy(compiler);
}

static const char comma_text[] = "kernel quarter(x: in f32[N], y: out f32[N], a: f32)\n"
                                 "    require a < 2.5\n"
                                 "{\n"
                                 "    grid n in tiles(N, 16) { y[n] = 0.25 * x[n] + C }\n"
                                 "}\n"
                                 "const C = 1.5\n";

/* A locale of the system with a decimal comma; if there is none, one that is created here. */
static bool take_comma_locale(void) {
    char folder[] = P_tmpdir "/tile-locale-XXXXXX", command[160];
    if (setlocale(LC_ALL, "de_DE.UTF-8")) return true;
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null", folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 && made;
}

/* Numbers in texts, settings and messages have a decimal point, even if the host's locale has a comma. */
Test(tile, locale_does_not_matter) {
    if (!take_comma_locale()) {
        cr_assert_null(getenv("TILE_REQUIRE_LOCALE"), "localedef makes no locale with a decimal comma");
        cr_skip("there is no locale with a decimal comma, and localedef cannot make one");
    }
    char before[256], number[16];
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    snprintf(number, sizeof number, "%.1f", 0.5);
    cr_assert_str_eq(number, "0,5");
    TileCompiler *compiler = make_compiler();
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        TileLibrary *library = compile(compiler, comma_text, targets[t], 0);
        View x, y;
        fill();
        make_view(&x, x_memory, 40, 0, 1, 0);
        make_view(&y, y_memory, 40, 0, 1, 0);
        x.dl.ndim = y.dl.ndim = 1;
        TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl), TILE_NUMBER(0.5)};
        launch(only_kernel(library), args, 3);
        for (int i = 0; i < 40; i++) cr_assert_eq(y_memory[i], 0.25f * x_memory[i] + 1.5f);
        TileError error = {.message = ""};
        TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
        args[2] = TILE_NUMBER(3.5);
        cr_assert_eq(tile_launch(only_kernel(library), args, 3, &options), TILE_INVALID_ARGUMENT);
        cr_assert_str_eq(error.message, "quarter: requires a < 2.5, but a = 3.5");
        tile_library_destroy(library);
    }
    tile_compiler_destroy(compiler);
    cr_assert_str_eq(setlocale(LC_ALL, NULL), before);
}

Test(tile, targets) {
    TileTargetInfo info;
    size_t count = 0;
    bool interpreter = false;
    while (tile_target_at(count, &info)) {
        cr_assert(info.name && info.description);
        cr_assert_eq(info.usable, info.why_not == NULL);
        interpreter |= strcmp(info.name, "interp") == 0 && info.usable;
        count++;
    }
    cr_assert(interpreter && count >= 4);
}
