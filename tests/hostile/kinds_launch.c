/* Arguments of tile/launch.h and tile/linked.h. */
#include <stdio.h>
#include <string.h>

#include "hostile/define.h"
#include "launch/image_bytes.h"

/* ---- numbers and texts ---- */

DEFINE_KIND(status, v->integer = TILE_IO, TAKE("-1", v->integer = -1) TAKE("99", v->integer = 99))
DEFINE_KIND(flag, v->integer = 0, TAKE("true", v->integer = 1))
DEFINE_KIND(argument_count, v->integer = 3,
            REFUSE("0", v->integer = 0) REFUSE("SIZE_MAX", v->integer = -1)
                REFUSE("2**32 + 3", v->integer = 4294967299))
DEFINE_KIND(index, v->integer = 0, REFUSE("SIZE_MAX", v->integer = -1) REFUSE("INT64_MIN", v->integer = INT64_MIN))
DEFINE_KIND(tensor_number, v->integer = 1,
            REFUSE("SIZE_MAX", v->integer = -1) REFUSE("2", v->integer = 2) REFUSE("99", v->integer = 99))
DEFINE_KIND(kernel_number, v->integer = 0, REFUSE("UINT32_MAX", v->integer = UINT32_MAX) REFUSE("1", v->integer = 1))
DEFINE_KIND(on_miss, v->integer = TILE_ON_MISS_GENERAL,
            REFUSE("0", v->integer = 0) REFUSE("-1", v->integer = -1) REFUSE("99", v->integer = 99))
DEFINE_KIND(kernel_name, v->pointer = "scale",
            TAKE_NULL REFUSE("empty", v->pointer = "") REFUSE("another", v->pointer = "no such kernel"))

/* ---- handles ---- */

DEFINE_KIND(kernel, v->pointer = tile_fixture_kernel(), REFUSE_NULL)
DEFINE_KIND(library, tile_fixture_kernel(); v->pointer = tile_fixture.library, REFUSE_NULL)

static TileReport *make_report_of_errors(void) {
    TileReport *report = NULL;
    TileLibrary *library = NULL;
    static const char text[] = "kernel k(";
    tile_status status = tile_compile(tile_fixture_compiler(), text, sizeof text - 1, NULL, &library, &report);
    tile_fixture_need(status == TILE_INVALID_SOURCE && report, "a report");
    return report;
}

static TileReport *kept_report(void) {
    if (!tile_fixture.report) tile_fixture.report = make_report_of_errors();
    return tile_fixture.report;
}

DEFINE_KIND(report, v->pointer = kept_report(), REFUSE_NULL)
DEFINE_KIND(own_report, v->pointer = make_report_of_errors(), tile_report_destroy(v->pointer); TAKE_NULL)

static TileLibrary *make_library(void) {
    static const char text[] = "kernel k(x: inout f32[N]) { grid n in tiles(N, 16) { x[n] = x[n] + 1 } }";
    TileLibrary *library = NULL;
    tile_status status = tile_compile(tile_fixture_compiler(), text, sizeof text - 1, NULL, &library, NULL);
    tile_fixture_need(status == TILE_OK, "a library");
    return library;
}

DEFINE_KIND(own_library, v->pointer = make_library(), tile_library_destroy(v->pointer); TAKE_NULL)

static TileThreadPool *make_pool(void) {
    TileThreadPoolOptions options = {.struct_size = sizeof options, .threads = 2};
    TileThreadPool *pool = NULL;
    tile_fixture_need(tile_thread_pool_create(&options, &pool) == TILE_OK, "a pool");
    return pool;
}

static TileThreadPool *kept_pool(void) {
    if (!tile_fixture.pool) tile_fixture.pool = make_pool();
    return tile_fixture.pool;
}

DEFINE_KIND(own_pool, v->pointer = make_pool(), tile_thread_pool_destroy(v->pointer); TAKE_NULL)
DEFINE_KIND(pool, v->pointer = kept_pool(), TAKE_NULL)

/* ---- where results go ---- */

static TileError given_error;
static TileKernel *found_kernel;
static int64_t found_shape[TILE_MAX_RANK];
static uint32_t found_known;
DEFINE_KIND(error, v->pointer = &given_error, TAKE_NULL)
DEFINE_KIND(kernel_out, v->pointer = &found_kernel, REFUSE_NULL)
DEFINE_KIND(shape_out, v->pointer = found_shape, REFUSE_NULL)
DEFINE_KIND(known_out, v->pointer = &found_known, REFUSE_NULL)
DEFINE_KIND(pool_out, v->pointer = &tile_fixture.pool_out, REFUSE_NULL)
DEFINE_STRUCT_KIND(parameter_info, TileParameterInfo, (TileParameterInfo){0}, REFUSE_NULL)
DEFINE_STRUCT_KIND(dtype_out, DLDataType, (DLDataType){0}, REFUSE_NULL)
DEFINE_STRUCT_KIND(stats_out, TileKernelStats, (TileKernelStats){0}, TAKE_NULL)
DEFINE_STRUCT_KIND(settings_out, TileSettings, (TileSettings){.struct_size = sizeof(TileSettings)},
                   REFUSE_NULL REFUSE_SIZES)

static void print_nothing(void *host, const char *line, size_t length) { (void)host, (void)line, (void)length; }

static void *pointer_of(TilePrint print) {
    void *pointer;
    memcpy(&pointer, &print, sizeof pointer);
    return pointer;
}

DEFINE_KIND(print, v->pointer = pointer_of(print_nothing), REFUSE_NULL)
DEFINE_KIND(host, v->pointer = &given_error, TAKE_NULL)

/* ---- options ---- */

#define SANE_LAUNCH ((TileLaunchOptions){.struct_size = sizeof(TileLaunchOptions), .error = &given_error})
#define HOSTILE_LAUNCH                                                                                                 \
    TAKE_NULL REFUSE_SIZES TAKE("no error", s->error = NULL) TAKE("a report", s->report = &tile_fixture.report_out)    \
        TAKE("a struct_size of its first member", s->struct_size = sizeof(size_t))
DEFINE_STRUCT_KIND(launch_options, TileLaunchOptions, SANE_LAUNCH,
                   HOSTILE_LAUNCH REFUSE("a stream of a CPU", s->stream = s))
DEFINE_STRUCT_KIND(asking_options, TileLaunchOptions, SANE_LAUNCH,
                   HOSTILE_LAUNCH TAKE("a stream of a CPU", s->stream = s))
DEFINE_STRUCT_KIND(pool_options, TileThreadPoolOptions,
                   (TileThreadPoolOptions){.struct_size = sizeof(TileThreadPoolOptions)},
                   TAKE_NULL REFUSE_SIZES REFUSE("-1 threads", s->threads = -1)
                       REFUSE("INT_MIN threads", s->threads = INT32_MIN)
                           REFUSE("INT_MAX threads", s->threads = INT32_MAX) REFUSE("1025 threads", s->threads = 1025)
                               TAKE("1024 threads", s->threads = 1024))

/* ---- devices: tests/gpu/fake is the driver ---- */

static char host_bytes[64];
static void *device_bytes(void) {
    if (!tile_fixture.device_memory)
        tile_fixture_need(tile_device_allocate(0, sizeof host_bytes, &tile_fixture.device_memory, NULL) == TILE_OK,
                          "a GPU; the tests bring a driver of their own");
    return tile_fixture.device_memory;
}

DEFINE_KIND(device, v->integer = 0,
            REFUSE("-1", v->integer = -1) REFUSE("INT_MIN", v->integer = INT32_MIN)
                REFUSE("INT_MAX", v->integer = INT32_MAX) REFUSE("99", v->integer = 99))
DEFINE_KIND(bytes, v->integer = 64, TAKE("0", v->integer = 0) REFUSE("SIZE_MAX", v->integer = -1))
DEFINE_KIND(few_bytes, v->integer = 64, TAKE("0", v->integer = 0))
DEFINE_KIND(memory_out, v->pointer = &tile_fixture.memory_out, REFUSE_NULL)
DEFINE_KIND(device_memory, v->pointer = device_bytes(), REFUSE_NULL)
DEFINE_KIND(device_memory_or_null,
            tile_fixture_need(tile_device_allocate(0, 8, &v->pointer, NULL) == TILE_OK, "memory"),
            tile_device_release(0, v->pointer);
            TAKE_NULL)
DEFINE_KIND(host_memory, v->pointer = host_bytes, REFUSE_NULL)
DEFINE_KIND(stream, v->pointer = NULL, )

/* ---- arguments of launches: x, y and a scalar ---- */

enum { ROWS = 4, COLUMNS = 8 };
static float memory[3][ROWS * COLUMNS] __attribute__((aligned(128)));
static int64_t shapes[3][2], strides[3][2];
static DLTensor tensors[3];
static TileArg given[3];

/* Arguments that an earlier launch had are checked on another path: hostile values follow valid ones. */
static TileArg *make_arguments(int tensor_count) {
    for (int i = 0; i < tensor_count; i++) {
        shapes[i][0] = ROWS;
        shapes[i][1] = COLUMNS;
        strides[i][0] = COLUMNS;
        strides[i][1] = 1;
        tensors[i] = (DLTensor){memory[i], {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shapes[i], strides[i], 0};
        given[i] = TILE_TENSOR(&tensors[i]);
    }
    if (tensor_count < 3) given[2] = TILE_NUMBER(2);
    return given;
}

static bool change_numbers(DLTensor *t, int number, const char **label, Expected *expected) {
    REFUSE("ndim -1", t->ndim = -1)
    REFUSE("ndim 1", t->ndim = 1)
    REFUSE("ndim 9", t->ndim = 9)
    REFUSE("ndim INT_MAX", t->ndim = INT32_MAX)
    REFUSE("ndim INT_MIN", t->ndim = INT32_MIN)
    REFUSE("lanes 0", t->dtype.lanes = 0)
    REFUSE("lanes 4", t->dtype.lanes = 4)
    REFUSE("lanes 65535", t->dtype.lanes = 65535)
    REFUSE("bits 0", t->dtype.bits = 0)
    REFUSE("bits 255", t->dtype.bits = 255)
    REFUSE("bits 16", t->dtype.bits = 16)
    REFUSE("type code 255", t->dtype.code = 255)
    REFUSE("type code of a handle", t->dtype.code = kDLOpaqueHandle)
    REFUSE("no device", t->device.device_type = 0)
    REFUSE("device type 99", *(int *)&t->device.device_type = 99)
    REFUSE("device type -1", *(int *)&t->device.device_type = -1)
    MAY("device number INT_MIN", t->device.device_id = INT32_MIN)
    REFUSE("data NULL", t->data = NULL)
    REFUSE("data at an odd address", t->data = (char *)t->data + 1)
    REFUSE("data at the end of memory", t->data = (void *)(UINTPTR_MAX - 63))
    REFUSE("data in the upper half", t->data = (void *)(uintptr_t)(INT64_MAX - 63))
    REFUSE("byte_offset 1", t->byte_offset = 1)
    REFUSE("byte_offset UINT64_MAX", t->byte_offset = UINT64_MAX)
    REFUSE("byte_offset that wraps to an aligned address", t->byte_offset = UINT64_MAX - 127)
    REFUSE("byte_offset 2**63", t->byte_offset = UINT64_C(1) << 63)
    REFUSE("byte_offset 2**57", t->byte_offset = UINT64_C(1) << 57)
    return false;
}

enum { NUMBERS = 26 };

static bool change_lists(DLTensor *t, int number, const char **label, Expected *expected) {
    REFUSE("shape NULL", t->shape = NULL)
    REFUSE("shape and strides NULL", t->shape = t->strides = NULL)
    TAKE("strides NULL", t->strides = NULL)
    REFUSE("extent -1", t->shape[0] = -1)
    REFUSE("last extent -1", t->shape[1] = -1)
    REFUSE("extent INT64_MIN", t->shape[0] = INT64_MIN)
    REFUSE("last extent INT64_MIN", t->shape[1] = INT64_MIN)
    REFUSE("extent INT64_MAX", t->shape[0] = INT64_MAX)
    REFUSE("extent 2**48", t->shape[0] = INT64_C(1) << 48)
    REFUSE("extents INT64_MIN without strides", t->shape[0] = t->shape[1] = INT64_MIN; t->strides = NULL)
    REFUSE("extents -1 without strides", t->shape[0] = t->shape[1] = -1; t->strides = NULL)
    REFUSE("extent 2**47 without strides", t->shape[0] = t->shape[1] = INT64_C(1) << 47; t->strides = NULL)
    REFUSE("stride INT64_MIN", t->strides[0] = INT64_MIN)
    REFUSE("stride INT64_MAX", t->strides[0] = INT64_MAX)
    REFUSE("stride -2**62", t->strides[0] = -(INT64_C(1) << 62))
    REFUSE("stride 2**60", t->strides[0] = INT64_C(1) << 60)
    REFUSE("last stride INT64_MIN", t->strides[1] = INT64_MIN)
    REFUSE("last stride INT64_MAX", t->strides[1] = INT64_MAX)
    return false;
}

enum { LISTS = 18 };

static bool change_argument(TileArg *arg, int number, const char **label, Expected *expected) {
    REFUSE("tensor NULL", arg->value.tensor = NULL)
    REFUSE("kind -1", *(int *)&arg->kind = -1)
    REFUSE("kind 99", *(int *)&arg->kind = 99)
    REFUSE("a number for a tensor", *arg = TILE_NUMBER(1))
    REFUSE("all flags", arg->flags = UINT32_MAX)
    return false;
}

enum { ARGUMENTS = 5, OF_TENSOR = NUMBERS + LISTS + ARGUMENTS };

/* Of one tensor. */
static bool change_tensor(int which, int number, const char **label, Expected *expected) {
    static char text[128];
    bool made = number < NUMBERS           ? change_numbers(&tensors[which], number, label, expected)
                : number < NUMBERS + LISTS ? change_lists(&tensors[which], number - NUMBERS, label, expected)
                                           : change_argument(&given[which], number - NUMBERS - LISTS, label, expected);
    if (made) snprintf(text, sizeof text, "tensor %d: %s", which, *label), *label = text;
    return made;
}

static bool change_list(Value *v, int tensor_count, int number, const char **label, Expected *expected) {
    if (number < tensor_count * OF_TENSOR)
        return change_tensor(number / OF_TENSOR, number % OF_TENSOR, label, expected);
    number -= tensor_count * OF_TENSOR;
    REFUSE_NULL
    REFUSE("y is read-only", given[1].flags = TILE_ARG_READ_ONLY)
    if (tensor_count == 3) return false;
    REFUSE("a tensor for a number", given[2] = TILE_TENSOR(&tensors[0]))
    REFUSE("a bool for a number", given[2] = TILE_TRUTH(true))
    REFUSE("a number of no kind", *(int *)&given[2].kind = 77)
    TAKE("the least integer for a number", given[2] = TILE_INTEGER(INT64_MIN))
    return false;
}

static void make_launch(Value *v) { v->pointer = make_arguments(2); }
static bool change_launch(Value *v, int number, const char **label, Expected *expected) {
    if (change_list(v, 2, number, label, expected)) return true;
    number -= 2 * OF_TENSOR + 6;
    REFUSE("x is nothing", given[0].kind = TILE_ARG_NONE)
    REFUSE("y is nothing", given[1].kind = TILE_ARG_NONE)
    return false;
}
/* Tensors that overlap are rejected if the kernel runs. */
static bool change_run(Value *v, int number, const char **label, Expected *expected) {
    if (change_launch(v, number, label, expected)) return true;
    number -= 2 * OF_TENSOR + 8;
    REFUSE("y is x", given[1] = given[0])
    return false;
}
static bool change_infer(Value *v, int number, const char **label, Expected *expected) {
    return change_list(v, 2, number, label, expected);
}
/* Without memory nothing runs, but shapes are enough to prepare. */
static bool change_shapes(Value *v, int number, const char **label, Expected *expected) {
    if (!change_run(v, number, label, expected)) return false;
    if (strstr(*label, ": data NULL")) *expected = TAKES;
    return true;
}
const Kind tile_kind_arguments = {"arguments", make_launch, change_run};
const Kind tile_kind_shape_arguments = {"arguments", make_launch, change_shapes};
const Kind tile_kind_explain_arguments = {"arguments", make_launch, change_launch};
const Kind tile_kind_infer_arguments = {"arguments", make_launch, change_infer};

/* ---- bound calls ---- */

static TileBound *make_bound(void) {
    TileBound *bound = NULL;
    tile_fixture_need(tile_bind(tile_fixture_kernel(), make_arguments(2), 3, NULL, &bound) == TILE_OK, "a bound call");
    return bound;
}

static TileBound *kept_bound(void) {
    if (!tile_fixture.bound) tile_fixture.bound = make_bound();
    return tile_fixture.bound;
}

static void *given_addresses[3];
static TileLaunchStep given_steps[2];

static void make_addresses(Value *v) {
    for (int i = 0; i < 2; i++) given_addresses[i] = memory[i];
    v->pointer = given_addresses;
}

static void make_steps(Value *v) {
    for (int i = 0; i < 2; i++) given_steps[i] = (TileLaunchStep){kept_bound(), NULL};
    v->pointer = given_steps;
}

DEFINE_KIND(bound_out, v->pointer = &tile_fixture.bound_out, REFUSE_NULL)
DEFINE_KIND(own_bound, v->pointer = make_bound(), tile_bound_destroy(v->pointer); TAKE_NULL)
DEFINE_KIND(bound, v->pointer = kept_bound(), REFUSE_NULL)
DEFINE_KIND(addresses, make_addresses(v),
            TAKE_NULL REFUSE("x NULL", given_addresses[0] = NULL) REFUSE("y NULL", given_addresses[1] = NULL)
                REFUSE("y is x", given_addresses[1] = given_addresses[0])
                    REFUSE("an odd address", given_addresses[0] = (char *)memory[0] + 1)
                        REFUSE("the end of memory", given_addresses[0] = (void *)(UINTPTR_MAX - 63))
                            REFUSE("the upper half", given_addresses[1] = (void *)(uintptr_t)(INT64_MAX - 63)))
DEFINE_KIND(steps, make_steps(v), REFUSE_NULL REFUSE("no bound call", given_steps[1].bound = NULL))
DEFINE_KIND(step_count, v->integer = 2,
            TAKE("0", v->integer = 0) REFUSE("SIZE_MAX", v->integer = -1) REFUSE("2**32", v->integer = 4294967296))
DEFINE_STRUCT_KIND(setting_out, TileSettingInfo, (TileSettingInfo){.struct_size = sizeof(TileSettingInfo)},
                   REFUSE_NULL REFUSE_SIZES)
DEFINE_STRUCT_KIND(standard_out, TileStandardText, (TileStandardText){0}, REFUSE_NULL)

/* ---- a linked object, as tilec emits it ---- */

static void run_nothing(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {
    (void)slots, (void)begin, (void)end, (void)scratch;
}

static const TilePhaseEntry entries[] = {run_nothing};
static void *linked_state;
static TileArena *linked_arena;

static TileLinked make_object(void) {
    static const char *const matrix[] = {"M", "N"}, *const targets[] = {"avx2"};
    static const TileImageParameter parameters[] = {
        {.name = "x", .type_text = "f32", .dimensions = matrix, .rank = 2, .type = TILE_HOST_F32, .generic = -1},
        {.name = "y",
         .type_text = "f32",
         .dimensions = matrix,
         .access = TILE_PARAMETER_OUT,
         .rank = 2,
         .type = TILE_HOST_F32,
         .generic = -1},
        {.name = "z", .type_text = "f32", .dimensions = matrix, .rank = 2, .type = TILE_HOST_F32, .generic = -1}};
    static const TileHostInstruction host[] = {{.op = TILE_HOST_DIM, .type = TILE_HOST_I64}};
    static const TileImagePhase phases[] = {{.rank = 1, .extents = {0}}};
    static const uint8_t order[] = {0, 1, 2};
    static const TileImageVariant variants[] = {
        {.label = "general",
         .code = {
             .host = host, .host_count = 1, .phases = phases, .phase_count = 1, .order = order, .order_count = 3}}};
    static const TileImageKernel kernels[] = {
        {.symbol = "k",
         .signature = {.name = "k", .text = "k(x, y, z)", .parameters = parameters, .parameter_count = 3},
         .variants = variants,
         .variant_count = 1}};
    static const TileImage image = {.targets = targets, .kernels = kernels, .target_count = 1, .kernel_count = 1};
    static TileText bytes;
    if (linked_state) tile_linked_release(&(TileLinked){.state = &linked_state});
    tile_arena_destroy(linked_arena);
    bytes = (TileText){.arena = linked_arena = tile_arena_create(NULL)};
    tile_image_write(&image, &bytes);
    return (TileLinked){.version = TILE_IMAGE_VERSION,
                        .entry_count = 1,
                        .image = bytes.text,
                        .image_bytes = bytes.length,
                        .entries = (const void *const *)(const void *)entries,
                        .state = &linked_state};
}

DEFINE_STRUCT_KIND(linked, TileLinked, make_object(),
                   REFUSE_NULL REFUSE("version 0", s->version = 0) REFUSE("version UINT32_MAX", s->version = UINT32_MAX)
                       REFUSE("image NULL", s->image = NULL) REFUSE("no image", s->image_bytes = 0)
                           REFUSE("a cut image", s->image_bytes /= 2) REFUSE("entries NULL", s->entries = NULL)
                               REFUSE("no entries", s->entry_count = 0) REFUSE("state NULL", s->state = NULL))

static void make_linked(Value *v) { v->pointer = make_arguments(3); }
static bool change_linked_arguments(Value *v, int number, const char **label, Expected *expected) {
    return change_list(v, 3, number, label, expected);
}
const Kind tile_kind_linked_arguments = {"arguments", make_linked, change_linked_arguments};
