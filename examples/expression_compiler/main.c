/* Compiles a program of pointwise statements into one kernel, runs it on made-up data, and compares the results with
 * those of plain loops.
 *
 *     expression_compiler FILE [--print] [M=64 N=1000 ..]
 *
 * Prints each result with its number of elements and the largest relative difference; ends with 1 where one is too
 * large. --print shows the kernel as text of the IR instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expression.h"

enum { USUAL_EXTENT = 100, LARGEST_FILE = 1 << 16 };

/* What the program runs on. */
typedef struct Data {
    int64_t extents[MOST_DIMENSIONS]; /* of the program's dimensions */
    int64_t shapes[MOST_VARIABLES][MOST_DIMENSIONS];
    int64_t counts[MOST_VARIABLES];
    float *computed[MOST_VARIABLES], *expected[MOST_VARIABLES]; /* inputs are in both the same array */
} Data;

static int complain(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

/* NULL where it cannot be read. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = file ? calloc(1, LARGEST_FILE) : NULL;
    if (text && fread(text, 1, LARGEST_FILE - 1, file) == 0 && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (file) fclose(file);
    return text;
}

/* NAME=NUMBER for each dimension; those that are not named have the usual extent. */
static bool read_extents(const Program *program, char **words, int count, int64_t *extents) {
    for (unsigned k = 0; k < program->rank; k++)
        extents[k] = strcmp(program->dimensions[k], "1") == 0 ? 1 : USUAL_EXTENT;
    for (int i = 0; i < count; i++) {
        char *equals = strchr(words[i], '='), *end = NULL;
        size_t length = equals ? (size_t)(equals - words[i]) : 0;
        long long extent = equals ? strtoll(equals + 1, &end, 10) : -1;
        bool known = false;
        for (unsigned k = 0; k < program->rank; k++) {
            if (strncmp(program->dimensions[k], words[i], length) != 0 || program->dimensions[k][length]) continue;
            extents[k] = extent;
            known = true;
        }
        if (!known || extent < 0 || *end) return false;
    }
    return true;
}

/* ---- data ---- */

static void fill(float *data, int64_t count, unsigned seed) {
    uint32_t state = 2463534242u + seed;
    for (int64_t i = 0; i < count; i++) { /* Marsaglia's xorshift, as numbers in -2 .. 2 */
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        data[i] = (float)((double)state / 4294967296.0 * 4 - 2);
    }
}

static bool create_data(const Program *program, Data *data) {
    for (int i = 0; i < program->variable_count; i++) {
        const Variable *variable = &program->variables[i];
        data->counts[i] = 1;
        for (unsigned k = 0; k < variable->rank; k++) {
            data->shapes[i][k] = extent_of(program, data->extents, variable->dimensions[k]);
            data->counts[i] *= data->shapes[i][k];
        }
        if (variable->value && !is_result(variable)) continue;
        data->computed[i] = calloc((size_t)data->counts[i] + 1, sizeof(float));
        data->expected[i] = variable->value ? calloc((size_t)data->counts[i] + 1, sizeof(float)) : data->computed[i];
        if (!data->computed[i] || !data->expected[i]) return false;
        if (!variable->value) fill(data->computed[i], data->counts[i], (unsigned)i);
    }
    return true;
}

static void destroy_data(const Program *program, Data *data) {
    for (int i = 0; i < program->variable_count; i++) {
        if (data->expected[i] != data->computed[i]) free(data->expected[i]);
        free(data->computed[i]);
    }
}

/* ---- running ---- */

/* The kernel's parameters are the inputs, then the results. */
static size_t list_arguments(const Program *program, Data *data, DLTensor *tensors, TileArg *arguments) {
    size_t count = 0;
    for (int results = 0; results < 2; results++)
        for (int i = 0; i < program->variable_count; i++) {
            const Variable *variable = &program->variables[i];
            if (!data->computed[i] || (variable->value != NULL) != results) continue;
            tensors[count] = (DLTensor){.data = data->computed[i],
                                        .device = {kDLCPU, 0},
                                        .ndim = (int32_t)variable->rank,
                                        .dtype = {kDLFloat, 32, 1},
                                        .shape = data->shapes[i]};
            arguments[count] = TILE_TENSOR(&tensors[count]);
            count++;
        }
    return count;
}

static bool launch(TileLibrary *library, const Program *program, Data *data) {
    DLTensor tensors[MOST_VARIABLES];
    TileArg arguments[MOST_VARIABLES];
    TileKernel *kernel;
    TileError error = {.status = TILE_OK};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    size_t count = list_arguments(program, data, tensors, arguments);
    if (tile_library_kernel(library, "fused", &kernel) != TILE_OK) return false;
    if (tile_launch(kernel, arguments, count, &options) == TILE_OK) return true;
    complain("launching", error.message);
    return false;
}

/* NULL where it fails, which is said. */
static TileLibrary *compile(const Program *program, bool print) {
    TileIr *ir = NULL;
    TileCompiler *compiler = NULL;
    TileLibrary *library = NULL;
    TileReport *report = NULL;
    char *text = NULL;
    tile_status status = tile_ir_create(&ir);
    if (status == TILE_OK) build_kernel(ir, program);
    if (status == TILE_OK) status = tile_compiler_create(NULL, &compiler);
    if (status == TILE_OK) status = tile_compile_ir(compiler, ir, NULL, &library, &report);
    if (status != TILE_OK) complain("compiling", report ? tile_report_text(report, false) : tile_status_text(status));
    if (status == TILE_OK && print && tile_ir_text(ir, &text, NULL) == TILE_OK) fputs(text, stdout);
    tile_string_destroy(text);
    tile_report_destroy(report);
    tile_compiler_destroy(compiler);
    tile_ir_destroy(ir);
    return library;
}

/* ---- comparing ---- */

static bool compare(const Program *program, const Data *data) {
    bool good = true;
    for (int i = 0; i < program->variable_count; i++) {
        double worst = 0;
        if (!is_result(&program->variables[i])) continue;
        for (int64_t k = 0; k < data->counts[i]; k++) {
            double expected = data->expected[i][k], computed = data->computed[i][k];
            if (isnan(expected) && isnan(computed)) continue;
            double difference = expected == computed ? 0 : fabs(expected - computed) / fmax(fabs(expected), 1);
            if (!(difference <= worst)) worst = isnan(difference) ? INFINITY : difference;
        }
        printf("%s: %lld elements, largest difference %.1e\n", program->variables[i].name, (long long)data->counts[i],
               worst);
        good = good && worst < 2e-5;
    }
    return good;
}

static int run(const Program *program, Data *data) {
    TileLibrary *library = compile(program, false);
    bool good = library && create_data(program, data) && launch(library, program, data);
    if (good) evaluate(program, data->extents, data->expected);
    good = good && compare(program, data);
    destroy_data(program, data);
    tile_library_destroy(library);
    return good ? 0 : 1;
}

int main(int count, char **words) {
    static Program program;
    static Data data;
    char error[256];
    char *text = count > 1 ? read_file(words[1]) : NULL;
    bool print = count > 2 && strcmp(words[2], "--print") == 0;
    if (!text) return complain("usage: expression_compiler FILE [--print] [M=64 ..]", "no file that can be read");
    bool parsed = parse_program(&program, text, error, sizeof error);
    free(text);
    if (!parsed) return complain(words[1], error);
    if (!read_extents(&program, words + 2 + print, count - 2 - print, data.extents))
        return complain("extents", "NAME=NUMBER for dimensions of the program");
    if (!print) return run(&program, &data);
    TileLibrary *library = compile(&program, true);
    tile_library_destroy(library);
    return library ? 0 : 1;
}
