#include "example.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_AXES = 8, MOST_TENSORS = 64, MOST_ARGUMENTS = 16 };

/* A tensor and its shape in one piece. */
typedef struct Tensor {
    DLTensor tensor;
    int64_t shape[MOST_AXES];
} Tensor;

struct Example {
    const char *folder;
    TileCompiler *compiler;
    TileLibrary *library;
    Tensor *tensors[MOST_TENSORS];
    int count;
    double seconds; /* of launches */
};

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) fail("out of memory");
    return memory;
}

Example *example_open(const char *folder, const char *file, const char *target) {
    Example *example = allocate(1, sizeof *example);
    TileCompileOptions options = {.struct_size = sizeof options, .target = target};
    TileReport *report = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    example->folder = folder;
    tile_status status = tile_compiler_create(NULL, &example->compiler);
    if (status == TILE_OK) status = tile_compile_file(example->compiler, path, &options, &example->library, &report);
    if (status != TILE_OK) fail("%s: %s", path, report ? tile_report_text(report, false) : tile_status_text(status));
    tile_report_destroy(report);
    return example;
}

void example_close(Example *example) {
    for (int i = 0; i < example->count; i++) {
        free(example->tensors[i]->tensor.data);
        free(example->tensors[i]);
    }
    tile_library_destroy(example->library);
    tile_compiler_destroy(example->compiler);
    free(example);
}

static size_t size_of(const DLTensor *tensor) {
    size_t size = tensor->dtype.bits / 8;
    for (int i = 0; i < tensor->ndim; i++) size *= (size_t)tensor->shape[i];
    return size;
}

static DLTensor *make_tensor(Example *example, DLDataType type, int rank, const int64_t *shape) {
    if (example->count == MOST_TENSORS || rank > MOST_AXES) fail("an example has at most %d tensors", MOST_TENSORS);
    Tensor *made = example->tensors[example->count++] = allocate(1, sizeof *made);
    memcpy(made->shape, shape, (size_t)rank * sizeof *shape);
    made->tensor = (DLTensor){.device = {kDLCPU, 0}, .ndim = rank, .dtype = type, .shape = made->shape};
    made->tensor.data = allocate(1, size_of(&made->tensor));
    return &made->tensor;
}

/* The description in an .npy file: {'descr': '<f4', 'fortran_order': False, 'shape': (1797, 64), } */
static DLDataType read_description(const char *path, const char *text, int *rank, int64_t *shape) {
    static const uint8_t codes[] = {['f'] = kDLFloat, ['i'] = kDLInt, ['u'] = kDLUInt, ['b'] = kDLBool};
    const char *type = strstr(text, "'descr': '"), *axes = strstr(text, "'shape': (");
    char order, kind;
    unsigned bytes;
    bool known = type && axes && strstr(text, "'fortran_order': False") &&
                 sscanf(type, "'descr': '%c%c%u'", &order, &kind, &bytes) == 3 && order != '>' && strchr("fiub", kind);
    if (!known) fail("%s holds no array that the examples read", path);
    axes += strlen("'shape': (");
    for (*rank = 0; *rank < MOST_AXES && *axes >= '0' && *axes <= '9'; ++*rank) {
        char *end;
        shape[*rank] = strtoll(axes, &end, 10);
        axes = end + strspn(end, ", ");
    }
    return (DLDataType){codes[(unsigned char)kind], (uint8_t)(8 * bytes), 1};
}

DLTensor *example_load(Example *example, const char *name, int64_t first) {
    unsigned char start[10]; /* magic, version, then the length of the description in two bytes */
    char path[4096], text[4096] = "";
    int64_t shape[MOST_AXES] = {0};
    int rank;
    snprintf(path, sizeof path, "%s/%s.npy", example->folder, name);
    FILE *file = fopen(path, "rb");
    size_t length = file && fread(start, 1, sizeof start, file) == sizeof start ? start[8] + 256u * start[9] : 0;
    if (!length || length >= sizeof text || fread(text, 1, length, file) != length) fail("%s cannot be read", path);
    DLDataType type = read_description(path, text, &rank, shape);
    if (first > 0 && (rank == 0 || first > shape[0])) fail("%s has fewer than %lld rows", path, (long long)first);
    if (rank) shape[0] -= first;
    DLTensor *tensor = make_tensor(example, type, rank, shape);
    size_t size = size_of(tensor), row = rank && shape[0] ? size / (size_t)shape[0] : 0;
    if (fseek(file, (long)((size_t)first * row), SEEK_CUR) != 0 || fread(tensor->data, 1, size, file) != size)
        fail("%s is cut short", path);
    fclose(file);
    return tensor;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The last argument: what the others say of it has to be all of it. */
static DLTensor *make_result(Example *example, TileKernel *kernel, const TileArg *arguments, size_t count,
                             TileError *error) {
    TileParameterInfo info;
    DLDataType type;
    int64_t shape[TILE_MAX_RANK];
    uint32_t known;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error};
    if (!tile_kernel_parameter(kernel, count - 1, &info))
        fail("%s takes other arguments", tile_kernel_signature(kernel));
    if (tile_kernel_infer(kernel, arguments, count, count - 1, &type, shape, &known, &options) != TILE_OK)
        fail("%s", error->message);
    if (!type.bits || known != (1u << info.rank) - 1)
        fail("%s: nothing says what its result is", tile_kernel_signature(kernel));
    return make_tensor(example, type, info.rank, shape);
}

DLTensor *example_run(Example *example, const char *name, DLTensor *const *tensors, size_t count) {
    TileKernel *kernel;
    TileArg arguments[MOST_ARGUMENTS + 1] = {{0}};
    TileError error = {.message = "no such kernel"};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    if (count > MOST_ARGUMENTS || tile_library_kernel(example->library, name, &kernel) != TILE_OK)
        fail("there is no kernel '%s' for %zu tensors", name, count);
    for (size_t i = 0; i < count; i++) arguments[i] = TILE_TENSOR(tensors[i]);
    DLTensor *result = make_result(example, kernel, arguments, count + 1, &error);
    arguments[count] = TILE_TENSOR(result);
    tile_status status = tile_prepare(kernel, arguments, count + 1, &options);
    double start = now();
    if (status == TILE_OK) status = tile_launch(kernel, arguments, count + 1, &options);
    example->seconds += now() - start;
    if (status != TILE_OK) fail("%s", error.message);
    return result;
}

double example_seconds(const Example *example) { return example->seconds; }
