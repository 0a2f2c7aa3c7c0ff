/* Copies and stores by tensor maps as PTX: the kernels of boxes.h compile for every GPU target that has the
 * instruction, and fail with the reason for the others; ptxas, if installed, accepts the PTX; and a GPU, if there is
 * one, gives the expected bytes, with maps that the launcher makes. The emulator is tested by
 * tests/unit/lang/test_execute_tensor.c.
 *
 * usage: tile_box_tests [CASE | TARGET CASE] runs one case of boxes.h, by its number; with a target: prints the PTX of
 * its copy and its store */
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

/* Copies, or stores; with some of the attributes that they may have. */
static const char *case_text(Trial *trial, unsigned number, bool stores) {
    static const char *const options[] = {"", " {cache = stream}", " {cache = l2}"};
    static const char *const waits[] = {"store_commit\nstore_wait {pending = 0}",
                                        "store_commit\nstore_wait {pending = 0, read = 1}"};
    const char *chosen = options[number % 3];
    return stores ? boxes_store_text(trial->arena, &box_cases[number], chosen, waits[number % 2])
                  : boxes_text(trial->arena, &box_cases[number], chosen);
}

static void compile_all(Trial *trial) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    for (unsigned k = 0; k < 2 * BOX_CASES; k++)
        for (unsigned i = 0; i < count && !(k % 2 && box_cases[k / 2].positions && !boxes_are_stored(&box_cases[k / 2])); i++) {
            const char *ptx = emit(trial, k / 2, case_text(trial, k / 2, k % 2), &targets[i].target);
            if (ptx) assemble(trial, k / 2, &targets[i].target, ptx);
        }
}

/* ---- on a GPU ---- */

/* Tensors of a kernel of boxes.h: x, at, y; on the device and here. */
typedef struct Tensors {
    void *device[3];
    unsigned char *here[3], *got;
    size_t bytes[3];
    TileError error;
} Tensors;

enum { X, AT, Y, LAUNCHES = 3 };

static bool allocate(Tensors *tensors, const Boxes *boxes, bool stores) {
    tensors->bytes[X] = (size_t)boxes_tensor_bytes(boxes);
    tensors->bytes[AT] = BOX_PROGRAMS * boxes_numbers(boxes) * sizeof(int32_t);
    tensors->bytes[Y] = (size_t)BOX_PROGRAMS * boxes_bytes(boxes);
    for (unsigned i = 0; i < 3; i++) {
        tensors->here[i] = malloc(tensors->bytes[i]);
        if (!tensors->here[i] ||
            tile_device_allocate(0, tensors->bytes[i], &tensors->device[i], &tensors->error) != TILE_OK)
            return false;
    }
    for (size_t i = 0; i < tensors->bytes[X]; i++) tensors->here[X][i] = (unsigned char)(1 + i % 251);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++) {
        int32_t *at = (int32_t *)(void *)tensors->here[AT] + p * boxes_numbers(boxes);
        if (stores)
            box_coordinates_inside(boxes, p, at);
        else
            box_coordinates(boxes, p, at);
    }
    for (size_t i = 0; i < tensors->bytes[Y]; i++) tensors->here[Y][i] = (unsigned char)(7 * i % 253);
    tensors->got = malloc(tensors->bytes[X] + tensors->bytes[Y]);
    if (!tensors->got) return false;
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
    free(tensors->got);
}

/* The words of a launch of so many programs, from `first` on. */
static uint32_t fill_slots(const Boxes *boxes, const Tensors *tensors, unsigned first, unsigned programs,
                           uint64_t *slots) {
    uint32_t count = 0, word = BOX_WORD, bytes = boxes_bytes(boxes);
    slots[count++] = (uintptr_t)tensors->device[X];
    for (uint32_t d = 0; d < boxes->rank; d++) slots[count++] = (uint64_t)boxes->extent[d];
    for (uint32_t d = 0; d < boxes->rank; d++) slots[count++] = (uint64_t)boxes->stride[d];
    const uint32_t numbers = boxes_numbers(boxes);
    const uint64_t rest[] = {(uintptr_t)tensors->device[AT] + first * numbers * word,
                             programs,
                             numbers,
                             word * numbers,
                             word,
                             (uintptr_t)tensors->device[Y] + (uint64_t)first * bytes,
                             programs,
                             bytes / word,
                             bytes,
                             word};
    memcpy(slots + count, rest, sizeof rest);
    count += sizeof rest / sizeof *rest;
    if (!boxes->positions) return count;
    slots[count++] = (uintptr_t)tensors->device[Y]; /* of which nothing but extents is read */
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) slots[count++] = (uint64_t)boxes->count[d];
    for (uint32_t d = 0; d < boxes_axes(boxes); d++) slots[count++] = 1;
    return count;
}

/* Runs all programs: together and repeatedly, or, since their boxes may overlap, one after the other. */
static tile_status launch_all(TileCudaModule *module, const TileCudaStream *on, const Boxes *boxes, bool stores,
                              Tensors *tensors) {
    tile_status status = TILE_OK;
    for (unsigned i = 0; i < (stores ? BOX_PROGRAMS : LAUNCHES) && status == TILE_OK; i++) {
        uint64_t slots[32];
        unsigned programs = stores ? 1 : BOX_PROGRAMS;
        uint32_t count = fill_slots(boxes, tensors, stores ? i : 0, programs, slots);
        status = tile_cuda_launch(module, 0, on, slots, count, programs, NULL, "boxes", &tensors->error);
    }
    return status;
}

static tile_status launch(Trial *trial, const TileFunc *phase, const char *ptx, const Boxes *boxes, bool stores,
                          Tensors *tensors) {
    char symbol[64];
    uint64_t lows[1] = {0};
    TileImageSignature signature = {.name = "boxes", .gpu = true};
    TileCudaStream on = {0};
    tile_bridge_symbol(phase, symbol, sizeof symbol);
    TileCudaPhase made = {.symbol = symbol, .threads = phase->threads, .shared_bytes = phase->scratch_bytes};
    tile_image_list_maps(phase, trial->arena, &made);
    TileCudaModule *module = tile_cuda_module_create(ptx, strlen(ptx), &made, 1);
    if (!module) return TILE_OUT_OF_MEMORY;
    unsigned result = stores ? X : Y;
    tile_status status = tile_cuda_begin(module, &on, &signature, lows, &tensors->error);
    if (status == TILE_OK) {
        status = launch_all(module, &on, boxes, stores, tensors);
        if (status == TILE_OK)
            status =
                tile_device_read(0, tensors->got, tensors->device[result], tensors->bytes[result], &tensors->error);
        tile_cuda_end(&on);
    }
    tile_cuda_module_destroy(module);
    return status;
}

/* NULL, or the first difference to what a plain program computes. */
static const char *compare(Trial *trial, const Boxes *boxes, bool stores, const Tensors *tensors) {
    unsigned result = stores ? X : Y;
    unsigned char *expected = tile_arena_copy(trial->arena, tensors->here[result], tensors->bytes[result]);
    for (unsigned p = 0; p < BOX_PROGRAMS; p++) {
        const int32_t *at = (const int32_t *)(const void *)tensors->here[AT] + p * boxes_numbers(boxes);
        size_t box = (size_t)p * boxes_bytes(boxes);
        if (stores)
            boxes_expect_stored(boxes, tensors->here[Y] + box, at, expected);
        else
            boxes_expect(boxes, tensors->here[X], at, expected + box);
    }
    for (size_t i = 0; i < tensors->bytes[result]; i++)
        if (tensors->got[i] != expected[i])
            return tile_arena_format(trial->arena, "byte %zu (of boxes of %u) is %u where %u is expected", i,
                                     boxes_bytes(boxes), tensors->got[i], expected[i]);
    return NULL;
}

static void run_case(Trial *trial, unsigned number, bool stores, const TileTarget *target) {
    const Boxes *boxes = &box_cases[number];
    const char *text = case_text(trial, number, stores), *ptx = emit(trial, number, text, target), *wrong = NULL;
    Tensors tensors = {.error = {.status = TILE_OK}};
    if (!ptx) return;
    TileModule *module = read_kernel(trial, number, text);
    if (!allocate(&tensors, boxes, stores) ||
        launch(trial, module->first->next, ptx, boxes, stores, &tensors) != TILE_OK)
        fail(trial, number, target->name, tensors.error.message);
    else if ((wrong = compare(trial, boxes, stores, &tensors)))
        fail(trial, number, target->name, wrong);
    else
        printf("case %u %s on the GPU as %s\n", number, stores ? "stored" : "copied", target->name);
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
        for (unsigned number = first; number < end; number++) {
            run_case(trial, number, false, target);
            if (boxes_are_stored(&box_cases[number])) run_case(trial, number, true, target);
        }
    }
}

static int print_ptx(Trial *trial, const char *target, const char *number) {
    const TilePtxTarget *found = tile_ptx_target_find(target);
    unsigned long which = strtoul(number, NULL, 10);
    if (!found || which >= BOX_CASES) {
        fprintf(stderr, "usage: tile_box_tests [CASE | TARGET CASE]\n");
        return 2;
    }
    for (unsigned stores = 0; stores < (box_cases[which].positions && !boxes_are_stored(&box_cases[which]) ? 1 : 2); stores++) {
        const char *ptx = emit(trial, (unsigned)which, case_text(trial, (unsigned)which, stores), &found->target);
        if (!ptx) return 1;
        fputs(ptx, stdout);
    }
    return 0;
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
