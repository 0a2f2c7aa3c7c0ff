/* Linked objects: their bytes, the selection of variants, and the first call. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "fixture.h"
#include "launch/guard.h"
#include "launch/image_bytes.h"
#include "tile/linked.h"

enum { ROWS = 4, COLUMNS = 8, VARIANTS = 4 };
static _Atomic int ran[VARIANTS]; /* how often each variant's code was called */

#define ENTRY(number)                                                                                                  \
    static void run_##number(const uint64_t *slots, int64_t begin, int64_t end, void *scratch) {                       \
        (void)slots, (void)begin, (void)end, (void)scratch;                                                            \
        atomic_fetch_add(&ran[number], 1);                                                                             \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
static const TilePhaseEntry entries[VARIANTS] = {run_0, run_1, run_2, run_3};

static const char *const matrix[] = {"M", "N"};
static const TileImageParameter parameters[] = {
    {.name = "x", .type_text = "f32", .dimensions = matrix, .rank = 2, .type = TILE_HOST_F32, .generic = -1},
    {.name = "y",
     .type_text = "f32",
     .dimensions = matrix,
     .access = TILE_PARAMETER_OUT,
     .rank = 2,
     .type = TILE_HOST_F32,
     .generic = -1},
};

static const TileHostInstruction host[] = {
    {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 0},
    {.op = TILE_HOST_DIM, .type = TILE_HOST_I64, .a = 0, .b = 1},
    {.op = TILE_HOST_CONST, .type = TILE_HOST_I64, .bits = 4},
    {.op = TILE_HOST_REM, .type = TILE_HOST_I64, .from = TILE_HOST_I64, .a = 1, .b = 2, .c = 1},
    {.op = TILE_HOST_CONST, .type = TILE_HOST_I64, .bits = 0},
    {.op = TILE_HOST_EQ, .type = TILE_HOST_BOOL, .from = TILE_HOST_I64, .a = 3, .b = 4, .c = 3},
};
static const TileHostNamed shown[] = {{"N", 1, TILE_HOST_I64}};
static const TileImageDimension dimensions[] = {
    {.parameter = 1, .axis = 0, .expected = 0, .text = "M", .origin = 0},
    {.parameter = 1, .axis = 1, .expected = 1, .text = "N", .origin = 0, .named = shown, .named_count = 1},
};
static const TileImageRequire requires[] = {{.condition = 5, .text = "N % 4 == 0", .chooses = true}};
static const char *const assertions[] = {"k.tile:1:2: assertion failed: x > 0"};
static const TileImagePhase phases[] = {
    {.scratch_bytes = 64, .rank = 1, .extents = {0}, .assertions = assertions, .assertion_count = 1}};
static const TileImageTemp temps[] = {{.name = "sum", .type = TILE_HOST_F32, .rank = 1, .extents = {0}}};
static const uint8_t order[] = {0, 1};

static TileImageVariant make_variant(const char *label, bool contiguous, bool aligned, bool divisible) {
    TileImageVariant variant = {.label = label};
    variant.code = (TileImageCode){.host = host,
                                   .dimensions = dimensions,
                                   .requires = requires,
                                   .temps = temps,
                                   .phases = phases,
                                   .order = order,
                                   .host_count = 6,
                                   .dimension_count = 2,
                                   .require_count = divisible,
                                   .temp_count = 1,
                                   .phase_count = 1,
                                   .order_count = 2};
    for (int i = 0; i < 2; i++) {
        if (contiguous) variant.code.need[i] |= tile_guard_dimension(1, TILE_GUARD_STRIDE_UNIT);
        if (aligned) variant.code.need[i] |= tile_guard_align(64);
    }
    return variant;
}

static const TileImageMap gpu_maps[] = {{.slot = 5, .box = {8, 64}, .rank = 2, .element_bytes = 4, .swizzle = 32},
                                        {.slot = 10, .box = {256}, .rank = 1, .element_bytes = 8},
                                        {.slot = 0, .box = {1, 1, 32}, .rank = 3, .element_bytes = 4, .positions = 100, .corner = {-300}, .over = {6}}};
static const TileImageEntry gpu_entries[] = {{.symbol = "copy$0", .threads = 64, .map_count = 3, .maps = gpu_maps}};
static const TileImageBinary binary = {.ptx = "// PTX",
                                       .cubin = "cubin",
                                       .ptx_bytes = 6,
                                       .cubin_bytes = 5,
                                       .capability = 90,
                                       .alone = true,
                                       .entries = gpu_entries,
                                       .entry_count = 1};

/* An object, described as the generated code does. */
typedef struct Object {
    TileArena *arena;
    TileText bytes;
    void *state;
    TileLinked linked;
} Object;

/* Variants: aligned and divisible; aligned; divisible; general (omitted without `general`); with `gpu`, one for
 * GPUs. */
static void make_object(Object *object, const char *target, bool general, bool gpu) {
    static TileImageVariant variants[VARIANTS], on_gpu;
    const char *targets[] = {target, "sm_90a"};
    variants[0] = make_variant("aligned, N % 4 == 0", true, true, true);
    variants[1] = make_variant("aligned", true, true, false);
    variants[2] = make_variant("N % 4 == 0", true, false, true);
    variants[3] = make_variant("general", false, false, false);
    TileImageKernel kernel = {.symbol = "copy_f32",
                              .signature = {.name = "copy",
                                            .text = "copy(x: in f32[M, N], y: out f32[M, N])",
                                            .parameters = parameters,
                                            .parameter_count = 2},
                              .variants = variants,
                              .variant_count = general ? VARIANTS : VARIANTS - 1};
    on_gpu = make_variant("general", false, false, false);
    on_gpu.binary = &binary;
    on_gpu.target = 1;
    TileImageKernel twin = kernel;
    twin.signature.gpu = true;
    twin.variants = &on_gpu;
    twin.variant_count = 1;
    TileImageKernel kernels[] = {kernel, twin};
    TileImage image = {
        .targets = targets, .kernels = kernels, .target_count = gpu ? 2 : 1, .kernel_count = gpu ? 2 : 1};
    *object = (Object){.arena = tile_arena_create(NULL)};
    object->bytes.arena = object->arena;
    tile_image_write(&image, &object->bytes);
    object->linked = (TileLinked){.version = TILE_IMAGE_VERSION,
                                  .entry_count = kernel.variant_count,
                                  .image = object->bytes.text,
                                  .image_bytes = object->bytes.length,
                                  .entries = (const void *const *)(const void *)entries,
                                  .state = &object->state};
    for (int i = 0; i < VARIANTS; i++) atomic_store(&ran[i], 0);
}

static void destroy_object(Object *object) {
    tile_linked_release(&object->linked);
    tile_arena_destroy(object->arena);
}

static float memory[2][1 << 12] __attribute__((aligned(128)));

/* Launches on tensors whose first element is `offset` elements after a multiple of 128 bytes. */
static tile_status launch(Object *object, int64_t columns, int64_t column_stride, size_t offset, TileError *error) {
    Tensor x, y;
    const int64_t strides[] = {columns * column_stride, column_stride};
    make_tensor(&x, memory[0] + offset, f32_type, 2, SHAPE(ROWS, columns), strides);
    make_tensor(&y, memory[1] + offset, f32_type, 2, SHAPE(ROWS, columns), strides);
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = error};
    return tile_linked_launch(&object->linked, 0, args, &options);
}

static bool runs_here(void) { return tile_cpu_why_not("avx2") == NULL; }

/* The number of the variant that was called since the last query; -1 for none. */
static int which_ran(void) {
    int found = -1;
    for (int i = 0; i < VARIANTS; i++)
        if (atomic_exchange(&ran[i], 0)) found = found < 0 ? i : VARIANTS;
    return found;
}

Test(linked, the_most_specialised_that_holds) {
    static const struct {
        int64_t columns, stride;
        size_t offset;
        int variant;
    } calls[] = {{8, 1, 0, 0}, {7, 1, 0, 1}, {8, 1, 4, 2}, {7, 1, 4, 3}, {8, 2, 0, 3},
                 {8, 1, 0, 0}, {1, 5, 0, 1}, {4, 1, 8, 2}, {8, 1, 16, 0}};
    Object object;
    if (!runs_here()) return;
    make_object(&object, "avx2", true, true);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cr_assert_eq(launch(&object, calls[i].columns, calls[i].stride, calls[i].offset, NULL), TILE_OK);
        cr_assert_eq(which_ran(), calls[i].variant, "call %d", (int)i);
    }
    destroy_object(&object);
}

Test(linked, a_miss_names_the_variants) {
    Object object;
    TileError error = {.status = TILE_OK};
    if (!runs_here()) return;
    make_object(&object, "avx2", false, true);
    cr_assert_eq(launch(&object, 7, 1, 4, &error), TILE_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "copy: the linked object has no variant that serves these arguments; it "
                                             "has: aligned, N % 4 == 0; aligned; N % 4 == 0"));
    cr_assert_eq(launch(&object, 8, 1, 4, &error), TILE_OK);
    TileKernel *kernel;
    TileKernelStats stats;
    cr_assert_eq(tile_linked_kernel(&object.linked, 0, &kernel, NULL), TILE_OK);
    tile_kernel_stats(kernel, &stats);
    cr_assert_eq(stats.misses, 1);
    cr_assert_eq(stats.launches, 1);
    cr_assert_eq(tile_linked_kernel(&object.linked, 2, &kernel, &error), TILE_NOT_FOUND);
    destroy_object(&object);
}

Test(linked, what_cannot_be_used_is_told) {
    Object object;
    TileError error = {.status = TILE_OK};
    make_object(&object, "z80", true, false);
    cr_assert_eq(launch(&object, 8, 1, 0, &error), TILE_UNAVAILABLE);
    cr_assert_not_null(strstr(error.message, "z80 (this CPU lacks"));
    cr_assert_null(object.state);
    destroy_object(&object);
    make_object(&object, "avx2", true, true);
    object.linked.version = TILE_IMAGE_VERSION + 1;
    cr_assert_eq(launch(&object, 8, 1, 0, &error), TILE_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "build it again"));
    destroy_object(&object);
}

typedef struct Caller {
    Object *object;
    pthread_t thread;
    tile_status status;
} Caller;

static void *call(void *state) {
    Caller *caller = state;
    for (int i = 0; i < 50 && caller->status == TILE_OK; i++)
        caller->status = launch(caller->object, COLUMNS - i % 2, 1, 0, NULL);
    return NULL;
}

/* Tensors on a GPU select the code for GPUs, which needs a driver. */
Test(linked, tensors_on_a_gpu_are_for_the_twin) {
    Object object;
    TileError error = {.status = TILE_OK};
    TileKernel *kernel = NULL;
    make_object(&object, "avx2", true, true);
    Tensor x, y;
    make_tensor(&x, memory[0], f32_type, 2, SHAPE(ROWS, COLUMNS), NULL);
    make_tensor(&y, memory[1], f32_type, 2, SHAPE(ROWS, COLUMNS), NULL);
    x.dl.device = y.dl.device = (DLDevice){kDLCUDA, 0};
    TileArg args[] = {TILE_TENSOR(&x.dl), TILE_TENSOR(&y.dl)};
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error};
    cr_assert_neq(tile_linked_launch(&object.linked, 0, args, &options), TILE_OK);
    cr_assert(strstr(error.message, "GPU") || strstr(error.message, "CUDA") || strstr(error.message, "cuda"), "%s",
              error.message);
    cr_assert_eq(tile_linked_kernel(&object.linked, 0, &kernel, &error), TILE_OK);
    cr_assert(!tile_kernel_is_gpu(kernel));
    cr_assert_eq(tile_linked_kernel(&object.linked, 1, &kernel, &error), TILE_OK);
    cr_assert(tile_kernel_is_gpu(kernel));
    cr_assert_eq(which_ran(), -1);
    destroy_object(&object);
}

Test(linked, first_calls_of_many_threads) {
    enum { CALLERS = 8 };
    Object object;
    Caller callers[CALLERS];
    if (!runs_here()) return;
    make_object(&object, "avx2", true, true);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){.object = &object, .status = TILE_OK};
        cr_assert_eq(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        cr_assert_eq(callers[i].status, TILE_OK);
    }
    cr_assert(atomic_load(&ran[0]) > 0 && atomic_load(&ran[1]) > 0);
    destroy_object(&object);
}

/* ---- the bytes ---- */

static tile_status read_bytes(TileArena *arena, const char *bytes, size_t size, size_t entry_count, TileImage *image) {
    jmp_buf guard;
    if (setjmp(guard)) return TILE_OUT_OF_MEMORY;
    tile_arena_set_guard(arena, &guard);
    return tile_image_read(arena, bytes, size, entries, entry_count, image);
}

Test(linked, bytes_read_back_the_same) {
    Object object;
    TileImage image;
    make_object(&object, "avx2", true, true);
    cr_assert_eq(read_bytes(object.arena, object.bytes.text, object.bytes.length, VARIANTS, &image), TILE_OK);
    TileText again = {.arena = object.arena};
    tile_image_write(&image, &again);
    cr_assert_eq(again.length, object.bytes.length);
    cr_assert_eq(memcmp(again.text, object.bytes.text, again.length), 0);
    const TileImageVariant *first = &image.kernels[0].variants[0];
    cr_assert_eq(first->code.phases[0].entry, run_0);
    cr_assert_eq(image.kernels[0].variants[3].code.phases[0].entry, run_3);
    cr_assert_eq(first->code.need[1], tile_guard_align(64) | tile_guard_dimension(1, TILE_GUARD_STRIDE_UNIT));
    cr_assert_eq(image.kernels[0].signature.parameters[1].generic, -1);
    cr_assert_eq(strcmp(first->code.phases[0].assertions[0], assertions[0]), 0);
    const TileImageBinary *read = image.kernels[1].variants[0].binary;
    cr_assert(read && !first->binary && read->capability == 90 && read->alone && read->entry_count == 1);
    cr_assert_str_eq(read->ptx, binary.ptx);
    cr_assert(read->cubin_bytes == 5 && memcmp(read->cubin, "cubin", 5) == 0);
    cr_assert(strcmp(read->entries[0].symbol, "copy$0") == 0 && read->entries[0].threads == 64);
    const TileImageMap *maps = read->entries[0].maps;
    cr_assert(read->entries[0].map_count == 3 && maps[0].slot == 5 && maps[0].rank == 2 && maps[0].box[1] == 64);
    cr_assert(maps[0].swizzle == 32 && maps[1].element_bytes == 8 && maps[1].box[0] == 256);
    cr_assert(maps[2].positions == 100 && maps[2].corner[0] == -300 && maps[2].over[0] == 6 && maps[0].positions == 0);
    destroy_object(&object);
}

Test(linked, bytes_that_are_cut_or_changed) {
    Object object;
    TileImage image;
    make_object(&object, "avx2", true, true);
    size_t size = object.bytes.length;
    cr_assert_neq(read_bytes(object.arena, object.bytes.text, size, VARIANTS - 1, &image), TILE_OK);
    cr_assert_neq(read_bytes(object.arena, object.bytes.text, size, VARIANTS + 1, &image), TILE_OK);
    for (size_t length = 0; length < size; length++) {
        TileArena *arena = tile_arena_create(NULL);
        char *copy = malloc(length + 1); /* allocated with this size, so that a sanitizer detects reads beyond it */
        memcpy(copy, object.bytes.text, length);
        cr_assert_eq(read_bytes(arena, copy, length, VARIANTS, &image), TILE_INTERNAL, "cut to %zu", length);
        free(copy);
        tile_arena_destroy(arena);
    }
    for (size_t at = 0; at < size; at++) { /* some changes cannot be detected; none may cause an invalid access */
        TileArena *arena = tile_arena_create(NULL);
        char *copy = malloc(size);
        memcpy(copy, object.bytes.text, size);
        copy[at] = (char)0xff;
        tile_status status = read_bytes(arena, copy, size, VARIANTS, &image);
        cr_assert(status == TILE_OK || status == TILE_INTERNAL, "changed at %zu", at);
        free(copy);
        tile_arena_destroy(arena);
    }
    destroy_object(&object);
}

/* A valid image, with one number changed at a time: each would cause an invalid read. */
Test(linked, images_whose_code_is_not_sound) {
    Object object;
    make_object(&object, "avx2", true, true);
    for (int change = 0; change < 12; change++) {
        TileImage image;
        cr_assert_eq(read_bytes(object.arena, object.bytes.text, object.bytes.length, VARIANTS, &image), TILE_OK);
        TileImageCode *code = (TileImageCode *)&image.kernels[0].variants[0].code;
        TileImageDimension *dimension = (TileImageDimension *)&code->dimensions[1];
        TileHostInstruction *program = (TileHostInstruction *)code->host;
        switch (change) {
        case 0: program[3].a = 3; break;
        case 1: program[3].type = TILE_HOST_F32; break;
        case 2: program[0].b = 2; break;
        case 3: program[0].a = 2; break;
        case 4: dimension->expected = code->host_count; break;
        case 5: dimension->parameter = 2; break;
        case 6: dimension->axis = 2; break;
        case 7: dimension->origin = 2; break;
        case 8: ((TileHostNamed *)dimension->named)->value = code->host_count; break;
        case 9: ((TileImageRequire *)code->requires)->condition = 0; break;
        case 10: ((TileImageTemp *)code->temps)->extents[0] = code->host_count; break;
        case 11: ((TileImagePhase *)code->phases)->extents[0] = 5; break;
        }
        TileText bytes = {.arena = object.arena};
        tile_image_write(&image, &bytes);
        TileArena *arena = tile_arena_create(NULL);
        cr_assert_eq(read_bytes(arena, bytes.text, bytes.length, VARIANTS, &image), TILE_INTERNAL, "change %d", change);
        tile_arena_destroy(arena);
    }
    destroy_object(&object);
}

/* The same for the tensor maps of a GPU's grid. */
Test(linked, images_whose_maps_are_not_sound) {
    Object object;
    make_object(&object, "avx2", true, true);
    for (int change = 0; change < 9; change++) {
        TileImage image;
        cr_assert_eq(read_bytes(object.arena, object.bytes.text, object.bytes.length, VARIANTS, &image), TILE_OK);
        TileImageMap *maps = (TileImageMap *)image.kernels[1].variants[0].binary->entries[0].maps;
        switch (change) {
        case 0: maps[0].slot = 9; break;
        case 1: maps[1].slot = UINT32_MAX; break;
        case 2: maps[0].rank = 6; break;
        case 3: maps[0].rank = 0; break;
        case 4: maps[0].element_bytes = 3; break;
        case 5: maps[0].swizzle = 16; break;
        case 6: maps[2].positions = 1025; break;
        case 7: maps[0].positions = 8; break;
        case 8: maps[2].over[0] = 99; break;
        }
        TileText bytes = {.arena = object.arena};
        tile_image_write(&image, &bytes);
        TileArena *arena = tile_arena_create(NULL);
        cr_assert_eq(read_bytes(arena, bytes.text, bytes.length, VARIANTS, &image), TILE_INTERNAL, "change %d", change);
        tile_arena_destroy(arena);
    }
    destroy_object(&object);
}

/* The name of an operation that this library does not have. */
Test(linked, operations_of_later_libraries) {
    Object object;
    TileImage image;
    make_object(&object, "avx2", true, true);
    unsigned found = 0;
    for (size_t i = 0; i + 3 <= object.bytes.length; i++) {
        if (memcmp(object.bytes.text + i, "REM", 3) != 0) continue;
        memcpy(object.bytes.text + i, "RIM", 3);
        found++;
    }
    cr_assert_gt(found, 0);
    cr_assert_eq(read_bytes(object.arena, object.bytes.text, object.bytes.length, VARIANTS, &image), TILE_INTERNAL);
    destroy_object(&object);
}
