/* Copies by tensor maps as PTX: the kernels of boxes.h compile for every GPU target that has the instruction, and fail
 * with the reason for the others; ptxas, if installed, accepts the PTX; and a GPU, if there is one, gives the expected
 * bytes, with maps that the launcher makes. The emulator is tested by tests/unit/lang/test_execute_tensor.c.
 *
 * usage: tile_box_tests [CASE | TARGET CASE] runs one case of boxes.h, by its number; with a target: prints its PTX */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/compile/image.h"
#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "launch/cuda.h"
#include "mlir_bridge/bridge.h"
#include "ptx/target/target.h"
#include "tests/gpu/boxes.h"
#include "tools/ptxas.h"

typedef struct Trial {
    TileArena *arena;
    TileContext *context;
    TileBridge *bridge;
    unsigned failures, assembled;
} Trial;

static void fail(Trial *trial, unsigned number, const char *target, const char *why) {
    printf("FAIL case %u, %s: %s\n", number, target, why);
    trial->failures++;
}

static TileModule *read_kernel(Trial *trial, unsigned number, const char *text) {
    TileText errors = {.arena = trial->arena};
    TileModule *module;
    if (tile_module_read(trial->context, text, strlen(text), &module, &errors) == TILE_OK &&
        tile_module_verify(module, &errors))
        return module;
    fail(trial, number, "any", tile_text_get(&errors));
    exit(1);
}

/* NULL if the target lacks the instruction, which the message has to name. */
static const char *emit(Trial *trial, unsigned number, const char *text, const TileTarget *target) {
    TileModule *module = read_kernel(trial, number, text);
    TileCode code = {0};
    const char *ptx = NULL;
    tile_status status = tile_bridge_emit(trial->bridge, module, target, NULL, TILE_CODE_ASSEMBLY, &code);
    const char *said = tile_bridge_message(trial->bridge);
    if (status == TILE_OK) ptx = tile_arena_string(trial->arena, code.data, code.size);
    bool good = target->has_tma ? status == TILE_OK : status == TILE_UNSUPPORTED && strstr(said, "sm_90a is the first");
    if (!good) fail(trial, number, target->name, *said ? said : "compiles");
    tile_code_release(&code);
    tile_module_destroy(module);
    return target->has_tma ? ptx : NULL;
}

static void assemble(Trial *trial, unsigned number, const TileTarget *target, const char *ptx) {
    TileAssembly assembly;
    TileText error = {.arena = trial->arena};
    tile_status status = tile_ptxas_run(trial->arena, ptx, false, &assembly, &error);
    if (status == TILE_NOT_FOUND) return;
    trial->assembled += status == TILE_OK;
    if (status != TILE_OK) fail(trial, number, target->name, tile_text_get(&error));
}

static void compile_all(Trial *trial) {
    static const char *const options[] = {"", " {cache = stream}", " {cache = l2}"};
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    for (unsigned number = 0; number < BOX_CASES; number++)
        for (unsigned i = 0; i < count; i++) {
            const TileTarget *target = &targets[i].target;
            const char *ptx =
                emit(trial, number, boxes_text(trial->arena, &box_cases[number], options[number % 3]), target);
            if (ptx) assemble(trial, number, target, ptx);
        }
}

/* ---- on a GPU ---- */

/* Tensors of a kernel of boxes.h: x, at, y; on the device and here. */
typedef struct Tensors {
    void *device[3];
    unsigned char *here[3];
    size_t bytes[3];
    TileError error;
} Tensors;

enum { X, AT, Y, LAUNCHES = 3 };

static bool allocate(Tensors *tensors, const Boxes *boxes) {
    tensors->bytes[X] = (size_t)boxes_tensor_bytes(boxes);
    tensors->bytes[AT] = BOX_PROGRAMS * boxes->rank * sizeof(int32_t);
    tensors->bytes[Y] = (size_t)BOX_PROGRAMS * boxes_bytes(boxes);
    for (unsigned i = 0; i < 3; i++) {
        tensors->here[i] = malloc(tensors->bytes[i]);
        if (!tensors->here[i] ||
            tile_device_allocate(0, tensors->bytes[i], &tensors->device[i], &tensors->error) != TILE_OK)
            return false;
    }
    for (size_t i = 0; i < tensors->bytes[X]; i++) tensors->here[X][i] = (unsigned char)(1 + i % 251);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++)
        box_coordinates(boxes, p, (int32_t *)(void *)tensors->here[AT] + p * boxes->rank);
    memset(tensors->here[Y], 0xaa, tensors->bytes[Y]);
    for (unsigned i = 0; i < 3; i++)
        if (tile_device_write(0, tensors->device[i], tensors->here[i], tensors->bytes[i], &tensors->error) != TILE_OK)
            return false;
    return true;
}

static void release(Tensors *tensors) {
    for (unsigned i = 0; i < 3; i++) {
        tile_device_release(0, tensors->device[i]);
        free(tensors->here[i]);
    }
}

/* The words of a launch. */
static uint32_t fill_slots(const Boxes *boxes, const Tensors *tensors, uint64_t *slots) {
    uint32_t count = 0, word = BOX_WORD;
    slots[count++] = (uintptr_t)tensors->device[X];
    for (uint32_t d = 0; d < boxes->rank; d++) slots[count++] = (uint64_t)boxes->extent[d];
    for (uint32_t d = 0; d < boxes->rank; d++) slots[count++] = (uint64_t)boxes->stride[d];
    const uint64_t rest[] = {(uintptr_t)tensors->device[AT],
                             BOX_PROGRAMS,
                             boxes->rank,
                             word * boxes->rank,
                             word,
                             (uintptr_t)tensors->device[Y],
                             BOX_PROGRAMS,
                             boxes_bytes(boxes) / word,
                             boxes_bytes(boxes),
                             word};
    memcpy(slots + count, rest, sizeof rest);
    return count + sizeof rest / sizeof *rest;
}

static tile_status launch(Trial *trial, const TileFunc *phase, const char *ptx, const Boxes *boxes, Tensors *tensors) {
    char symbol[64];
    uint64_t slots[32], lows[3] = {0};
    TileImageSignature signature = {.name = "boxes", .gpu = true};
    TileCudaStream on = {0};
    tile_bridge_symbol(phase, symbol, sizeof symbol);
    TileCudaPhase made = {.symbol = symbol, .threads = phase->threads, .shared_bytes = phase->scratch_bytes};
    tile_image_list_maps(phase, trial->arena, &made);
    TileCudaModule *module = tile_cuda_module_create(ptx, strlen(ptx), &made, 1);
    if (!module) return TILE_OUT_OF_MEMORY;
    uint32_t count = fill_slots(boxes, tensors, slots);
    tile_status status = tile_cuda_begin(module, &on, &signature, lows, &tensors->error);
    for (unsigned i = 0; i < LAUNCHES && status == TILE_OK; i++)
        status = tile_cuda_launch(module, 0, &on, slots, count, BOX_PROGRAMS, NULL, "boxes", &tensors->error);
    if (status == TILE_OK)
        status = tile_device_read(0, tensors->here[Y], tensors->device[Y], tensors->bytes[Y], &tensors->error);
    tile_cuda_end(&on);
    tile_cuda_module_destroy(module);
    return status;
}

/* NULL, or the first difference. */
static const char *compare(Trial *trial, const Boxes *boxes, const Tensors *tensors) {
    uint32_t bytes = boxes_bytes(boxes);
    unsigned char *expected = tile_arena_alloc(trial->arena, bytes);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++) {
        const int32_t *at = (const int32_t *)(const void *)tensors->here[AT] + p * boxes->rank;
        const unsigned char *got = tensors->here[Y] + (size_t)p * bytes;
        boxes_expect(boxes, tensors->here[X], at, expected);
        for (uint32_t i = 0; i < bytes; i++)
            if (got[i] != expected[i])
                return tile_arena_format(trial->arena, "program %u, byte %u is %u where %u is expected", p, i, got[i],
                                         expected[i]);
    }
    return NULL;
}

static void run_case(Trial *trial, unsigned number, const TileTarget *target) {
    const Boxes *boxes = &box_cases[number];
    const char *text = boxes_text(trial->arena, boxes, ""), *ptx = emit(trial, number, text, target);
    Tensors tensors = {.error = {.status = TILE_OK}};
    TileModule *module = read_kernel(trial, number, text);
    if (!ptx) return;
    const char *wrong = NULL;
    if (!allocate(&tensors, boxes) || launch(trial, module->first->next, ptx, boxes, &tensors) != TILE_OK)
        fail(trial, number, target->name, tensors.error.message);
    else if ((wrong = compare(trial, boxes, &tensors)))
        fail(trial, number, target->name, wrong);
    else
        printf("case %u ran on the GPU as %s: %zu bytes\n", number, target->name, tensors.bytes[Y]);
    release(&tensors);
    tile_module_destroy(module);
}

/* The target that has tensor maps, if the device runs it. */
static void run_cases(Trial *trial, unsigned first, unsigned end) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    for (unsigned i = 0; i < count; i++) {
        const TileTarget *target = &targets[i].target;
        if (!target->has_tma || !tile_cuda_runs(0, target->compute_capability, target->exact_capability)) continue;
        for (unsigned number = first; number < end; number++) run_case(trial, number, target);
    }
}

static int print_ptx(Trial *trial, const char *target, const char *number) {
    const TilePtxTarget *found = tile_ptx_target_find(target);
    unsigned long which = strtoul(number, NULL, 10);
    if (!found || which >= BOX_CASES) {
        fprintf(stderr, "usage: tile_box_tests [CASE | TARGET CASE]\n");
        return 2;
    }
    const char *text = boxes_text(trial->arena, &box_cases[which], "");
    const char *ptx = emit(trial, (unsigned)which, text, &found->target);
    if (ptx) fputs(ptx, stdout);
    return ptx == NULL;
}

int main(int count, char **arguments) {
    Trial trial = {.arena = tile_arena_create(NULL), .context = tile_ir_context_create()};
    if (!trial.arena || !trial.context || tile_bridge_create(&trial.bridge) != TILE_OK) return 2;
    int status = 0;
    if (count == 3) {
        status = print_ptx(&trial, arguments[1], arguments[2]);
    } else {
        const char *why_not = tile_cuda_why_not();
        unsigned long first = count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
        if (count == 1) compile_all(&trial);
        if (!why_not && first < BOX_CASES)
            run_cases(&trial, (unsigned)first, count == 2 ? (unsigned)first + 1 : BOX_CASES);
        printf("boxes: %u assembled; GPU: %s; %u failures\n", trial.assembled, why_not ? why_not : "used",
               trial.failures);
        status = trial.failures != 0;
    }
    tile_bridge_destroy(trial.bridge);
    tile_ir_context_destroy(trial.context);
    tile_arena_destroy(trial.arena);
    return status;
}
