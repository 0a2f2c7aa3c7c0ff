/* Every check of a launch, with its exact message; a failed launch writes nothing. */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "parameter.h"

static const char *const doubled[] = {"M", "2 * N"};
static const char *const plain[] = {"M", "N"};

/* scaled(x: in f32[M, 2 * N], y: out f32[M, N], a: f32, n: i32, on: bool) require N <= 8 */
static const TileImageParameter scaled_parameters[] = {F32_TENSOR("y", OUT, plain), F32_TENSOR("x", IN, doubled),
                                                       SCALAR("a", F32, "f32"), SCALAR("n", I32, "i32"),
                                                       SCALAR("on", BOOL, "bool")};
static const TileImageSignature scaled = {.name = "scaled",
                                          .text =
                                              "scaled(y: out f32[M, N], x: in f32[M, 2 * N], a: f32, n: i32, on: bool)",
                                          .parameters = scaled_parameters,
                                          .parameter_count = 5};

static uint64_t seen[16];
static void write_ones(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)scratch;
    memcpy(seen, slots, sizeof seen - 3 * 8);
    for (int64_t i = begin; i < end; i++) *(float *)(slots[0] + (uint64_t)i * slots[3]) = 1;
}

static const TileHostInstruction scaled_host[] = {
    {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0},
    {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 1},
    {.op = TILE_HOST_CONST, .type = TILE_HOST_I64, .bits = 2},
    {.op = TILE_HOST_MUL, .type = TILE_HOST_I64, .from = TILE_HOST_I64, .a = 2, .b = 1},
    {.op = TILE_HOST_CONST, .type = TILE_HOST_I64, .bits = 8},
    {.op = TILE_HOST_LE, .type = TILE_HOST_BOOL, .from = TILE_HOST_I64, .a = 1, .b = 4},
    {.op = TILE_HOST_SCALAR, .type = TILE_HOST_F32, .a = 2, .b = 2, .c = 2},
};
static const TileHostNamed named_n[] = {{"N", 1, TILE_HOST_I64}, {"a", 6, TILE_HOST_F32}};
static const TileImageDimension scaled_dimensions[] = {
    {.parameter = 1, .axis = 0, .expected = 0, .text = "M", .origin = 0},
    {.parameter = 1, .axis = 1, .expected = 3, .text = "2 * N", .origin = -1, .named = named_n, .named_count = 1},
};
static const TileImageRequire scaled_requires[] = {
    {.condition = 5, .text = "N <= 8", .named = named_n, .named_count = 2}};
static const TileImagePhase scaled_phases[] = {{.entry = write_ones, .rank = 1, .extents = {0}}};
static const uint8_t scaled_order[] = {0, 1, 2, 3, 4};
static const TileImageCode scaled_code = {.host = scaled_host,
                                          .dimensions = scaled_dimensions,
                                          .requires = scaled_requires,
                                          .phases = scaled_phases,
                                          .order = scaled_order,
                                          .host_count = 7,
                                          .dimension_count = 2,
                                          .require_count = 1,
                                          .phase_count = 1,
                                          .order_count = 5};

static float memory[4096] __attribute__((aligned(64)));

/* The same message as text and as JSON; none without an error. */
static void check_report(TileReport *report, const char *message) {
    char expected[1200];
    if (!*message) {
        cr_assert_null(report);
        return;
    }
    cr_assert_eq(tile_report_error_count(report), 1);
    snprintf(expected, sizeof expected, "error: %s\n", message);
    cr_assert_str_eq(tile_report_text(report, false), expected);
    snprintf(expected, sizeof expected, "[{\"severity\":\"error\",\"message\":\"%s\"}]\n", message);
    cr_assert_str_eq(tile_report_json(report), expected);
    tile_report_destroy(report);
}

/* Two launches of a kernel with two matrices that do not overlap. */
static void launch_well(TileKernel *kernel) {
    static float apart[2][32];
    Tensor x, y;
    make_tensor(&x, apart[0], f32_type, 2, SHAPE(4, 8), NULL);
    make_tensor(&y, apart[1], f32_type, 2, SHAPE(4, 8), NULL);
    const TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    for (int i = 0; i < 2; i++) cr_assert_eq(tile_launch(kernel, args, 2, NULL), TILE_OK);
}

static void check_one(const TileImageSignature *signature, const TileImageCode *code, const TileArg *args, size_t count,
                      tile_status expected, const char *message, bool later) {
    Compiler compiler = {.code = code};
    TileLibrary *library = make_library(signature, &compiler);
    TileKernel *kernel = NULL;
    TileError error = {.message = ""};
    TileReport *report = (TileReport *)1;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    float before[64];
    memcpy(before, memory, sizeof before);
    cr_assert_eq(tile_library_kernel(library, NULL, &kernel), TILE_OK);
    if (later) launch_well(kernel);
    char locale[256];
    snprintf(locale, sizeof locale, "%s", setlocale(LC_ALL, NULL));
    errno = EXFULL;
    tile_status status = tile_launch(kernel, args, count, &options);
    cr_assert_eq(errno, EXFULL, "errno is the caller's");
    cr_assert_str_eq(setlocale(LC_ALL, NULL), locale);
    cr_assert_str_eq(error.message, message);
    cr_assert_eq(status, expected, "%s", tile_status_text(status));
    if (status != TILE_OK) cr_assert(memcmp(before, memory, sizeof before) == 0);
    tile_library_destroy(library);
    check_report(report, message);
}

/* A launch after others, whose checks are cached, is checked like the first one. */
static void check_launch(const TileImageSignature *signature, const TileImageCode *code, const TileArg *args,
                         size_t count, tile_status expected, const char *message) {
    check_one(signature, code, args, count, expected, message, false);
    if (signature->parameter_count == 2) check_one(signature, code, args, count, expected, message, true);
}

static void check_copy(const Tensor *x, const Tensor *y, const char *message) {
    TileArg args[] = {TILE_TENSOR(&x->dl), TILE_TENSOR(&y->dl)};
    check_launch(&row_copy, row_copy_code(), args, 2, *message ? TILE_INVALID_ARGUMENT : TILE_OK, message);
}

static void make_pair(Tensor *x, Tensor *y) {
    make_tensor(x, memory, f32_type, 2, SHAPE(4, 8), NULL);
    make_tensor(y, memory + 1024, f32_type, 2, SHAPE(4, 8), NULL);
}

Test(check, fits) {
    Tensor x, y;
    make_pair(&x, &y);
    for (int i = 0; i < 32; i++) memory[i] = (float)i;
    check_copy(&x, &y, "");
    cr_assert(memcmp(memory, memory + 1024, 32 * sizeof(float)) == 0);
}

Test(check, count) {
    Tensor x, y;
    make_pair(&x, &y);
    TileArg args[] = {TILE_TENSOR(&x.dl)};
    check_launch(&row_copy, row_copy_code(), args, 1, TILE_INVALID_ARGUMENT,
                 "row_copy: 1 arguments given, expected 2: row_copy[T: f16 | f32](x: in T[M, N], y: out T[M, N])");
}

Test(check, rank) {
    Tensor x, y;
    make_pair(&x, &y);
    make_tensor(&x, memory, f32_type, 3, SHAPE(1, 4, 8), NULL);
    check_copy(&x, &y, "row_copy: x: rank is 3, expected 2");
}

Test(check, types) {
    Tensor x, y;
    make_pair(&x, &y);
    y.dl.dtype = f16_type;
    check_copy(&x, &y, "row_copy: y: type is f16, but x has T = f32");
    x.dl.dtype = i32_type;
    check_copy(&x, &y, "row_copy: x: type is i32, expected T: f16 | f32");
    x.dl.dtype = (DLDataType){kDLComplex, 64, 1};
    check_copy(&x, &y, "row_copy: x: type is DLPack code 5 with 64 bits and 1 lanes, expected one of the language");
}

Test(check, device) {
    Tensor x, y;
    make_pair(&x, &y);
    y.dl.device = (DLDevice){kDLCUDA, 3};
    check_copy(&x, &y, "row_copy: y: device is cuda:3, expected cpu");
}

Test(check, repeated_dimension) {
    Tensor x, y;
    make_pair(&x, &y);
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 16), NULL);
    check_copy(&x, &y, "row_copy: y: dimension 1 (N) is 8, but x has N = 16");
}

Test(check, negative_dimension) {
    Tensor x, y;
    make_pair(&x, &y);
    x.shape[0] = -4;
    check_copy(&x, &y, "row_copy: x: dimension 0 is -4, expected 0 to 140737488355328");
}

/* With strides of 0, addresses do not show the number of elements; the compiler relies on the limit. */
Test(check, dimension_beyond_the_limit) {
    Tensor x, y;
    make_pair(&x, &y);
    make_tensor(&x, memory, f32_type, 2, SHAPE((INT64_C(1) << 47) + 1, 8), SHAPE(0, 1));
    check_copy(&x, &y, "row_copy: x: dimension 0 is 140737488355329, expected 0 to 140737488355328");
}

Test(check, null_data) {
    Tensor x, y;
    make_pair(&x, &y);
    x.dl.data = NULL;
    check_copy(&x, &y, "row_copy: x: data is NULL, expected the address of its elements");
}

Test(check, alignment) {
    Tensor x, y;
    make_pair(&x, &y);
    x.dl.byte_offset = 2;
    check_copy(&x, &y, "row_copy: x: address is a multiple of 2 bytes, expected one of 4, the size of an element");
}

Test(check, read_only) {
    Tensor x, y;
    make_pair(&x, &y);
    DLManagedTensorVersioned managed = {.version = {1, 1}, .flags = DLPACK_FLAG_BITMASK_READ_ONLY, .dl_tensor = y.dl};
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_MANAGED(&managed)};
    check_launch(&row_copy, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: y: data is read-only, but the kernel writes it");
}

Test(check, read_only_input_is_fine) {
    Tensor x, y;
    make_pair(&x, &y);
    DLManagedTensorVersioned managed = {.version = {1, 1}, .flags = DLPACK_FLAG_BITMASK_READ_ONLY, .dl_tensor = x.dl};
    TileArg args[] = {TILE_MANAGED(&managed), TILE_TENSOR(&y.dl)};
    check_launch(&row_copy, row_copy_code(), args, 2, TILE_OK, "");
}

Test(check, overlap) {
    Tensor x, y;
    make_pair(&x, &y);
    y.dl.data = memory + 31;
    check_copy(&x, &y, "row_copy: y: shares memory with x, but the kernel writes it");
    y.dl.data = memory + 32;
    check_copy(&x, &y, "");
}

Test(check, interleaved_views_do_not_overlap) {
    Tensor x, y;
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(16, 2));
    make_tensor(&y, memory + 1, f32_type, 2, SHAPE(4, 8), SHAPE(16, 2));
    check_copy(&x, &y, "");
    y.dl.data = memory + 2;
    check_copy(&x, &y, "row_copy: y: shares memory with x, but the kernel writes it");
}

Test(check, output_overlaps_itself) {
    Tensor x, y;
    make_pair(&x, &y);
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), SHAPE(0, 1));
    check_copy(&x, &y, "row_copy: y: some elements share memory, but the kernel writes them");
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), SHAPE(7, 1));
    check_copy(&x, &y, "row_copy: y: some elements share memory, but the kernel writes them");
}

static const TileImageParameter both_parameters[] = {F32_TENSOR("x", OUT, plain), F32_TENSOR("y", INOUT, plain)};

/* Two outputs must not overlap, unless the kernel allows it; each must not overlap itself in any case. */
Test(check, outputs_overlap) {
    TileImageSignature both = {.name = "both",
                               .text = "both(x: out f32[M, N], y: inout f32[M, N])",
                               .parameters = both_parameters,
                               .parameter_count = 2};
    Tensor x, y;
    make_pair(&x, &y);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    check_launch(&both, row_copy_code(), args, 2, TILE_OK, "");
    y.dl.data = memory + 16;
    check_launch(&both, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "both: x: shares memory with y, but the kernel writes it");
    both.overlap = 3;
    check_launch(&both, row_copy_code(), args, 2, TILE_OK, "");
    make_tensor(&y, memory + 16, f32_type, 2, SHAPE(4, 8), SHAPE(1, 1));
    check_launch(&both, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "both: y: some elements share memory, but the kernel writes them");
}

Test(check, unknown_kind) {
    Tensor x, y;
    make_pair(&x, &y);
    TileArg args[] = {TILE_TENSOR(&x.dl), {.kind = (TileArgKind)17}};
    check_launch(&row_copy, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: y: the argument's kind is unknown");
    args[1].kind = TILE_ARG_NONE;
    check_launch(&row_copy, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: y: nothing is given, expected a tensor of rank 2");
    check_launch(&row_copy, row_copy_code(), NULL, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: 0 arguments given, expected 2: row_copy[T: f16 | f32](x: in T[M, N], y: out T[M, N])");
}

/* Tensors of vector types, of unsupported types, and on other devices. */
Test(check, foreign_tensors) {
    Tensor x, y;
    make_pair(&x, &y);
    y.dl.dtype = (DLDataType){kDLFloat, 32, 4};
    check_copy(&x, &y, "row_copy: y: type is DLPack code 2 with 32 bits and 4 lanes, expected one of the language");
    make_pair(&x, &y);
    x.dl.device = (DLDevice){kDLMetal, 1};
    check_copy(&x, &y, "row_copy: x: device is metal:1, expected cpu");
    x.dl.device = (DLDevice){(DLDeviceType)77, 0};
    check_copy(&x, &y, "row_copy: x: device is DLPack type 77, expected cpu");
    x.dl.device = (DLDevice){kDLCUDAHost, 0};
    check_copy(&x, &y, "");
}

Test(check, views_of_any_strides) {
    Tensor x, y;
    make_tensor(&x, memory + 31, f32_type, 2, SHAPE(4, 8), SHAPE(-8, -1));
    make_tensor(&y, memory + 1024, f32_type, 2, SHAPE(4, 8), SHAPE(1, 4));
    for (int i = 0; i < 32; i++) memory[i] = (float)i;
    check_copy(&x, &y, "");
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 8; c++) cr_assert_eq(memory[1024 + r + c * 4], memory[31 - r * 8 - c]);
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(0, 1));
    check_copy(&x, &y, "");
}

Test(check, no_elements) {
    Tensor x, y;
    make_tensor(&x, NULL, f32_type, 2, SHAPE(0, 8), NULL);
    make_tensor(&y, NULL, f32_type, 2, SHAPE(0, 8), NULL);
    check_copy(&x, &y, "");
    make_tensor(&x, NULL, f32_type, 2, SHAPE(INT64_MAX, 0), NULL);
    make_tensor(&y, NULL, f32_type, 2, SHAPE(INT64_MAX, 0), SHAPE(INT64_MAX / 4, 1));
}

Test(check, offsets_overflow) {
    Tensor x, y;
    make_pair(&x, &y);
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(INT64_MAX / 2, 1));
    check_copy(&x, &y, "row_copy: x: the tensor reaches past the address space");
    make_tensor(&x, memory, f32_type, 2, SHAPE(4, 8), SHAPE(INT64_MIN / 4, 1));
    check_copy(&x, &y, "row_copy: x: the tensor reaches past the address space");
    make_tensor(&x, memory, f32_type, 2, SHAPE(INT64_C(1) << 47, INT64_C(1) << 47), NULL);
    check_copy(&x, &y, "row_copy: x: the tensor reaches past the address space");
}

Test(check, kinds) {
    Tensor x, y;
    make_pair(&x, &y);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_INTEGER(3)};
    check_launch(&row_copy, row_copy_code(), args, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: y: a scalar is given, expected a tensor of rank 2");
    TileArg nothing[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(NULL)};
    check_launch(&row_copy, row_copy_code(), nothing, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: y: nothing is given, expected a tensor of rank 2");
    TileArg undecided[] = {TILE_INTEGER(1), TILE_INTEGER(3)};
    check_launch(&row_copy, row_copy_code(), undecided, 2, TILE_INVALID_ARGUMENT,
                 "row_copy: no argument decides the type parameter T; set it when compiling");
}

static void check_scaled(int64_t width, TileArg a, TileArg n, TileArg on, const char *message) {
    Tensor x, y;
    make_tensor(&y, memory, f32_type, 2, SHAPE(4, 4), NULL);
    make_tensor(&x, memory + 1024, f32_type, 2, SHAPE(4, width), NULL);
    TileArg args[] = {TILE_TENSOR(&y.dl), TILE_TENSOR(&x.dl), a, n, on};
    check_launch(&scaled, &scaled_code, args, 5, *message ? TILE_INVALID_ARGUMENT : TILE_OK, message);
}

Test(check, scalars) {
    check_scaled(8, TILE_NUMBER(0.1), TILE_INTEGER(-7), TILE_TRUTH(true), "");
    float a;
    int32_t n;
    memcpy(&a, &seen[10], sizeof a);
    memcpy(&n, &seen[11], sizeof n);
    cr_assert_eq(a, 0.1f);
    cr_assert_eq(n, -7);
    cr_assert_eq(seen[12], 1);
    check_scaled(8, TILE_INTEGER(3), TILE_UNSIGNED(5), TILE_TRUTH(false), "");
    check_scaled(8, TILE_NUMBER(1), TILE_INTEGER(3000000000), TILE_TRUTH(true),
                 "scaled: n: 3000000000 does not fit i32");
    check_scaled(8, TILE_NUMBER(1), TILE_INTEGER(-3000000000), TILE_TRUTH(true),
                 "scaled: n: -3000000000 does not fit i32");
    check_scaled(8, TILE_NUMBER(1), TILE_INTEGER(INT32_MIN), TILE_TRUTH(true), "");
    check_scaled(8, TILE_NUMBER(1), TILE_NUMBER(3), TILE_TRUTH(true), "scaled: n: a floating-point number is given, expected i32");
    check_scaled(8, TILE_TRUTH(true), TILE_INTEGER(3), TILE_TRUTH(true), "scaled: a: a bool is given, expected f32");
    check_scaled(8, TILE_NUMBER(1), TILE_INTEGER(3), TILE_INTEGER(1), "scaled: on: an integer is given, expected bool");
}

Test(check, dimension_expression) {
    check_scaled(7, TILE_NUMBER(1), TILE_INTEGER(3), TILE_TRUTH(true),
                 "scaled: x: dimension 1 is 7, expected 2 * N = 8 with N = 4");
}

Test(check, requirement) {
    Tensor x, y;
    make_tensor(&y, memory, f32_type, 2, SHAPE(4, 10), NULL);
    make_tensor(&x, memory + 1024, f32_type, 2, SHAPE(4, 20), NULL);
    TileArg args[] = {TILE_TENSOR(&y.dl), TILE_TENSOR(&x.dl), TILE_NUMBER(0.1), TILE_INTEGER(1), TILE_TRUTH(true)};
    check_launch(&scaled, &scaled_code, args, 5, TILE_INVALID_ARGUMENT, "scaled: requires N <= 8, but N = 10, a = 0.1");
}

Test(check, stream) {
    Tensor x, y;
    make_pair(&x, &y);
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    TileError error;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .stream = &x};
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 2, &options), TILE_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, "row_copy: a CPU has no streams");
    tile_library_destroy(library);
}

/* A caller that was compiled with a header whose options ended after `stream`. */
Test(check, shorter_options) {
    Tensor x, y;
    make_pair(&x, &y);
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    TileLaunchOptions options = {.struct_size = offsetof(TileLaunchOptions, error), .error = (void *)1};
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    cr_assert_eq(tile_launch(tile_library_kernel_at(library, 0), args, 2, &options), TILE_OK);
    tile_library_destroy(library);
}

Test(check, infer) {
    Compiler compiler = {.code = &scaled_code};
    TileLibrary *library = make_library(&scaled, &compiler);
    Tensor y;
    make_tensor(&y, memory, f32_type, 2, SHAPE(3, 5), NULL);
    TileArg args[] = {TILE_TENSOR(&y.dl), {.kind = TILE_ARG_NONE}, TILE_NUMBER(1), TILE_INTEGER(1), TILE_TRUTH(true)};
    DLDataType type;
    int64_t shape[TILE_MAX_RANK];
    uint32_t known;
    cr_assert_eq(tile_kernel_infer(tile_library_kernel_at(library, 0), args, 5, 1, &type, shape, &known, NULL),
                 TILE_OK);
    cr_assert_eq(known, 3);
    cr_assert_eq(shape[0], 3);
    cr_assert_eq(shape[1], 10);
    cr_assert_eq(type.bits, 32);
    tile_library_destroy(library);
}

Test(check, infer_types_and_names) {
    Compiler compiler = {.code = row_copy_code()};
    TileLibrary *library = make_library(&row_copy, &compiler);
    Tensor x;
    make_tensor(&x, memory, f16_type, 2, SHAPE(3, 5), NULL);
    TileArg args[] = {TILE_TENSOR(&x.dl), {.kind = TILE_ARG_NONE}}, nothing[2] = {{.kind = TILE_ARG_NONE}};
    DLDataType type;
    int64_t shape[TILE_MAX_RANK];
    uint32_t known;
    TileKernel *kernel = tile_library_kernel_at(library, 0);
    cr_assert_eq(tile_kernel_infer(kernel, args, 2, 1, &type, shape, &known, NULL), TILE_OK);
    cr_assert(known == 3 && shape[0] == 3 && shape[1] == 5 && type.bits == 16);
    cr_assert_eq(compiler.compiled, 0, "names alone decide");
    cr_assert_eq(tile_kernel_infer(kernel, nothing, 2, 1, &type, shape, &known, NULL), TILE_OK);
    cr_assert(known == 0 && type.bits == 0);
    tile_library_destroy(library);
}
