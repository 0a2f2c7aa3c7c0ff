/* Reads the held-out digits through the C API: the same kernels and weights as run.sh.
 *
 * usage: digits [directory of this example] [target] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "examples/npy.h"
#include "tile/tile.h"

enum { TRAINED = 1200, HELD_OUT = 597, REPEATS = 200 };

/* digits.tile with the activation of its dense layers set; prints what is wrong and ends the program otherwise. */
static TileLibrary *compile(TileCompiler *compiler, const char *folder, const char *target, const char *act) {
    char path[4096];
    snprintf(path, sizeof path, "%s/digits.tile", folder);
    TileSetting setting = {"act", act};
    TileCompileOptions options = {
        .struct_size = sizeof options, .target = target, .settings = &setting, .setting_count = 1};
    TileLibrary *library;
    TileReport *report = NULL;
    if (tile_compile_file(compiler, path, &options, &library, &report) != TILE_OK) {
        fprintf(stderr, "digits: %s: %s\n", path, report ? tile_report_text(report, false) : "cannot be compiled");
        exit(1);
    }
    tile_report_destroy(report);
    return library;
}

static void launch(const TileLibrary *library, const char *name, const TileArg *arguments, size_t count) {
    TileKernel *kernel;
    TileError error = {.message = "no such kernel"};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (tile_library_kernel(library, name, &kernel) == TILE_OK &&
        tile_launch(kernel, arguments, count, &options) == TILE_OK)
        return;
    fprintf(stderr, "digits: %s: %s\n", name, error.message);
    exit(1);
}

#define COUNT_OF(...) (sizeof((TileArg[]){__VA_ARGS__}) / sizeof(TileArg))
#define LAUNCH(library, name, ...) launch(library, name, (TileArg[]){__VA_ARGS__}, COUNT_OF(__VA_ARGS__))

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : "examples/digits", *target = count > 2 ? arguments[2] : NULL;
    TileCompiler *compiler;
    if (tile_compiler_create(NULL, &compiler) != TILE_OK) return 2;
    TileLibrary *relu = compile(compiler, folder, target, "relu"),
                *plain = compile(compiler, folder, target, "identity");

    DLTensor *image = npy_load(folder, "images", TRAINED, npy_tensor(npy_u8, HELD_OUT, 64));
    DLTensor *label = npy_load(folder, "labels", TRAINED, npy_tensor(npy_u8, HELD_OUT, 0));
    DLTensor *w1 = npy_load(folder, "w1", 0, npy_tensor(npy_f32, 64, 64));
    DLTensor *b1 = npy_load(folder, "b1", 0, npy_tensor(npy_f32, 64, 0));
    DLTensor *w2 = npy_load(folder, "w2", 0, npy_tensor(npy_f32, 64, 10));
    DLTensor *b2 = npy_load(folder, "b2", 0, npy_tensor(npy_f32, 10, 0));
    DLTensor *x = npy_tensor(npy_f32, HELD_OUT, 64), *hidden = npy_tensor(npy_f32, HELD_OUT, 64);
    DLTensor *score = npy_tensor(npy_f32, HELD_OUT, 10), *probability = npy_tensor(npy_f32, HELD_OUT, 10);
    DLTensor *digit = npy_tensor(npy_i64, HELD_OUT, 0), *equal = npy_tensor(npy_i64, 1, 0);

    double start = 0;
    for (int i = 0; i <= REPEATS; i++) {
        if (i == 1) start = now(); /* the first round compiles */
        LAUNCH(plain, "pixels", TILE_TENSOR(image), TILE_TENSOR(x));
        LAUNCH(relu, "dense", TILE_TENSOR(x), TILE_TENSOR(w1), TILE_TENSOR(b1), TILE_TENSOR(hidden));
        LAUNCH(plain, "dense", TILE_TENSOR(hidden), TILE_TENSOR(w2), TILE_TENSOR(b2), TILE_TENSOR(score));
        LAUNCH(plain, "softmax", TILE_TENSOR(score), TILE_TENSOR(probability));
        LAUNCH(plain, "argmax_rows", TILE_TENSOR(probability), TILE_TENSOR(digit));
    }
    double seconds = now() - start;
    LAUNCH(plain, "count_equal", TILE_TENSOR(digit), TILE_TENSOR(label), TILE_TENSOR(equal));
    int correct = (int)*(int64_t *)equal->data;
    printf("accuracy: %d of %d held-out images right (%.2f %%), %.0f images/s\n", correct, HELD_OUT,
           100.0 * correct / HELD_OUT, (double)HELD_OUT * REPEATS / seconds);

    DLTensor *all[] = {image, label, w1, b1, w2, b2, x, hidden, score, probability, digit, equal};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) npy_destroy(all[i]);
    tile_library_destroy(plain);
    tile_library_destroy(relu);
    tile_compiler_destroy(compiler);
    return 100 * correct >= 96 * HELD_OUT ? 0 : 1;
}
