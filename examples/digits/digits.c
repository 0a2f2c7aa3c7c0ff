/* Reads the held-out digits through the C API: the same kernels and weights as run.sh.
 *
 * usage: digits [directory of this example] [target] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tile/tile.h"

enum { TRAINED = 1200, HELD_OUT = 597, REPEATS = 200 };

typedef struct Array {
    DLTensor tensor;
    int64_t shape[2];
} Array;

/* A dense tensor of rank 1 (columns 0) or 2. Memory that runs out shows as NULL data, which launching refuses. */
static Array *array_create(uint8_t code, uint8_t bits, int64_t rows, int64_t columns) {
    Array *array = calloc(1, sizeof *array);
    if (!array) exit(2);
    array->shape[0] = rows;
    array->shape[1] = columns;
    array->tensor = (DLTensor){.device = {kDLCPU, 0}, .ndim = columns ? 2 : 1, .dtype = {code, bits, 1}};
    array->tensor.shape = array->shape;
    array->tensor.data = calloc((size_t)(rows * (columns ? columns : 1)), bits / 8);
    return array;
}

/* The same, filled from an .npy file past its first `skip` rows. */
static Array *array_load(const char *folder, const char *name, uint8_t code, uint8_t bits, int64_t skip, int64_t rows,
                         int64_t columns) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    Array *array = array_create(code, bits, rows, columns);
    size_t row = (size_t)(columns ? columns : 1) * bits / 8;
    unsigned char header[10];
    FILE *file = fopen(path, "rb");
    /* Magic, version, then the length of the description in two bytes. */
    if (!file || fread(header, 1, 10, file) != 10 ||
        fseek(file, 10 + header[8] + 256 * header[9] + skip * (long)row, SEEK_SET) != 0 ||
        fread(array->tensor.data, row, (size_t)rows, file) != (size_t)rows) {
        fprintf(stderr, "digits: %s cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    return array;
}

static void array_destroy(Array *array) {
    free(array->tensor.data);
    free(array);
}

/* Runs a kernel on up to four arrays, or ends the program with the reason. */
static void launch(const TileLibrary *library, const char *name, Array *a, Array *b, Array *c, Array *d) {
    TileArg arguments[4];
    size_t count = 0;
    Array *arrays[] = {a, b, c, d};
    while (count < 4 && arrays[count]) {
        arguments[count] = TILE_TENSOR(&arrays[count]->tensor);
        count++;
    }
    TileKernel *kernel;
    TileError error = {.message = "no such kernel"};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (tile_library_kernel(library, name, &kernel) == TILE_OK &&
        tile_launch(kernel, arguments, count, &options) == TILE_OK)
        return;
    fprintf(stderr, "digits: %s: %s\n", name, error.message);
    exit(1);
}

/* digits.tile for one setting of `act`; NULL: its default. */
static TileLibrary *compile(TileCompiler *compiler, const char *folder, const char *target, const char *act) {
    char path[4096];
    snprintf(path, sizeof path, "%s/digits.tile", folder);
    TileSetting setting = {"act", act};
    TileCompileOptions options = {
        .struct_size = sizeof options, .target = target, .settings = &setting, .setting_count = act ? 1 : 0};
    TileLibrary *library;
    TileReport *report = NULL;
    if (tile_compile_file(compiler, path, &options, &library, &report) != TILE_OK) {
        fprintf(stderr, "digits: %s", report ? tile_report_text(report, false) : "no compiler\n");
        exit(1);
    }
    tile_report_destroy(report);
    return library;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : "examples/digits", *target = count > 2 ? arguments[2] : NULL;
    TileCompiler *compiler;
    if (tile_compiler_create(NULL, &compiler) != TILE_OK) return 2;
    TileLibrary *plain = compile(compiler, folder, target, NULL), *relu = compile(compiler, folder, target, "relu");

    Array *image = array_load(folder, "images", kDLUInt, 8, TRAINED, HELD_OUT, 64);
    Array *label = array_load(folder, "labels", kDLUInt, 8, TRAINED, HELD_OUT, 0);
    Array *w1 = array_load(folder, "w1", kDLFloat, 32, 0, 64, 64),
          *b1 = array_load(folder, "b1", kDLFloat, 32, 0, 64, 0);
    Array *w2 = array_load(folder, "w2", kDLFloat, 32, 0, 64, 10),
          *b2 = array_load(folder, "b2", kDLFloat, 32, 0, 10, 0);
    Array *x = array_create(kDLFloat, 32, HELD_OUT, 64), *hidden = array_create(kDLFloat, 32, HELD_OUT, 64);
    Array *score = array_create(kDLFloat, 32, HELD_OUT, 10), *probability = array_create(kDLFloat, 32, HELD_OUT, 10);
    Array *digit = array_create(kDLInt, 64, HELD_OUT, 0), *equal = array_create(kDLInt, 64, 1, 0);

    double start = 0;
    for (int i = 0; i <= REPEATS; i++) {
        if (i == 1) start = now(); /* the first round compiles */
        launch(plain, "pixels", image, x, NULL, NULL);
        launch(relu, "dense", x, w1, b1, hidden);
        launch(plain, "dense", hidden, w2, b2, score);
        launch(plain, "softmax", score, probability, NULL, NULL);
        launch(plain, "argmax_rows", probability, digit, NULL, NULL);
    }
    double seconds = now() - start;
    launch(plain, "count_equal", digit, label, equal, NULL);
    int correct = (int)*(int64_t *)equal->tensor.data;
    printf("accuracy: %d of %d held-out images right (%.2f %%), %.0f images/s\n", correct, HELD_OUT,
           100.0 * correct / HELD_OUT, (double)HELD_OUT * REPEATS / seconds);

    Array *all[] = {image, label, w1, b1, w2, b2, x, hidden, score, probability, digit, equal};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) array_destroy(all[i]);
    tile_library_destroy(plain);
    tile_library_destroy(relu);
    tile_compiler_destroy(compiler);
    return 100 * correct >= 96 * HELD_OUT ? 0 : 1;
}
