/* Mbarriers and bulk copies as PTX: the kernels of mbarriers.h compile for every GPU target that has the required
 * instructions, and fail with the reason for the others; ptxas, if installed, accepts the PTX; and a GPU, if there is
 * one, gives the expected results. The emulator is tested by tests/unit/lang/test_execute_mbarrier.c.
 *
 * usage: tile_mbarrier_tests [TARGET KERNEL] with both: prints the PTX of ring or turns */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"
#include "launch/cuda.h"
#include "mlir_bridge/bridge.h"
#include "ptx/target/target.h"
#include "tests/gpu/mbarriers.h"
#include "tools/ptxas.h"

enum { TILES = 5000, WORDS = TILES * MBARRIER_TILE, BLOCKS = 264, REPEATS = 20 };

typedef struct Trial {
    TileArena *arena;
    TileContext *context;
    TileBridge *bridge;
    unsigned failures, assembled;
} Trial;

static const struct {
    const char *name, *text;
    bool bulk;
} kernels[] = {{"ring", mbarrier_ring, true}, {"turns", mbarrier_alternate, false}};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static void fail(Trial *trial, const char *kernel, const char *target, const char *why) {
    printf("FAIL %s, %s: %s\n", kernel, target, why);
    trial->failures++;
}

static TileModule *read_kernel(Trial *trial, unsigned kernel) {
    TileText errors = {.arena = trial->arena};
    TileModule *module;
    const char *text = kernels[kernel].text;
    if (tile_module_read(trial->context, text, strlen(text), &module, &errors) == TILE_OK &&
        tile_module_verify(module, &errors))
        return module;
    fail(trial, kernels[kernel].name, "any", tile_text_get(&errors));
    exit(1);
}

/* NULL if the target lacks an instruction that the kernel needs, which the message has to name. */
static const char *emit(Trial *trial, unsigned kernel, const TileTarget *target) {
    TileModule *module = read_kernel(trial, kernel);
    TileCode code = {0};
    const char *ptx = NULL;
    tile_status status = tile_bridge_emit(trial->bridge, module, target, NULL, TILE_CODE_ASSEMBLY, &code);
    const char *said = tile_bridge_message(trial->bridge);
    bool lacking = kernels[kernel].bulk && !target->has_tma;
    if (status == TILE_OK) ptx = tile_arena_string(trial->arena, code.data, code.size);
    if (lacking ? status != TILE_UNSUPPORTED || !strstr(said, "sm_90a is the first") : status != TILE_OK)
        fail(trial, kernels[kernel].name, target->name, *said ? said : "compiles");
    tile_code_release(&code);
    tile_module_destroy(module);
    return lacking ? NULL : ptx;
}

static void assemble(Trial *trial, unsigned kernel, const TileTarget *target, const char *ptx) {
    TileAssembly assembly;
    TileText error = {.arena = trial->arena};
    tile_status status = tile_ptxas_run(trial->arena, ptx, false, &assembly, &error);
    if (status == TILE_NOT_FOUND) return;
    trial->assembled += status == TILE_OK;
    if (status != TILE_OK) fail(trial, kernels[kernel].name, target->name, tile_text_get(&error));
}

static void compile_all(Trial *trial) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count);
    for (unsigned kernel = 0; kernel < KERNELS; kernel++)
        for (unsigned i = 0; i < count; i++) {
            const char *ptx = emit(trial, kernel, &targets[i].target);
            if (ptx) assemble(trial, kernel, &targets[i].target, ptx);
        }
}

/* ---- on a GPU ---- */

typedef struct Device {
    void *x, *y; /* of WORDS words */
    int32_t *in, *out;
    TileError error;
} Device;

static bool launch(Device *device, const TileFunc *phase, const char *ptx) {
    void *library, *kernel;
    int64_t extent = WORDS, stride = sizeof *device->in, begin = 0, end = BLOCKS;
    void *parameters[] = {&device->x, &extent, &stride, &device->y, &extent, &stride, &begin, &end};
    char symbol[64];
    tile_bridge_symbol(phase, symbol, sizeof symbol);
    const TileCudaDriver *driver = tile_cuda_driver();
    int result = driver->library_load(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (tile_cuda_check(result, phase->name, &device->error) != TILE_OK) return false;
    result = driver->library_kernel(&kernel, library, symbol);
    for (unsigned i = 0; i < REPEATS && result == TILE_CUDA_SUCCESS; i++)
        result = driver->launch(kernel, BLOCKS, 1, 1, phase->threads, 1, 1, (unsigned)phase->scratch_bytes, NULL,
                                parameters, NULL);
    bool good = tile_cuda_check(result, phase->name, &device->error) == TILE_OK &&
                tile_device_read(0, device->out, device->y, WORDS * sizeof *device->out, &device->error) == TILE_OK;
    driver->library_unload(library);
    return good;
}

static unsigned count_wrong(const Device *device) {
    unsigned wrong = 0;
    for (int32_t i = 0; i < WORDS; i++) {
        int32_t beside = i / MBARRIER_TILE * MBARRIER_TILE + (i + 1) % MBARRIER_TILE;
        wrong += device->out[i] != device->in[i] + 10 * device->in[beside];
    }
    return wrong;
}

static void run_kernel(Trial *trial, Device *device, unsigned kernel, const TileTarget *target) {
    const char *ptx = emit(trial, kernel, target);
    if (!ptx) return;
    TileModule *module = read_kernel(trial, kernel);
    memset(device->out, 0, WORDS * sizeof *device->out);
    if (tile_device_write(0, device->y, device->out, WORDS * sizeof *device->out, &device->error) != TILE_OK ||
        !launch(device, module->first->next, ptx))
        fail(trial, kernels[kernel].name, target->name, device->error.message);
    else if (count_wrong(device))
        fail(trial, kernels[kernel].name, target->name, "other results");
    else
        printf("%s ran on the GPU as %s: %d words, %d launches\n", kernels[kernel].name, target->name, WORDS, REPEATS);
    tile_module_destroy(module);
}

/* The best target for the device. */
static const TileTarget *device_target(void) {
    unsigned count;
    const TilePtxTarget *targets = tile_ptx_targets(&count), *best = NULL;
    for (unsigned i = 0; i < count; i++) {
        const char *number = targets[i].target.name + strlen("sm_");
        bool alone = strchr(number, 'a') != NULL;
        if (tile_cuda_runs(0, (uint32_t)strtoul(number, NULL, 10), alone)) best = &targets[i];
    }
    return best ? &best->target : NULL;
}

static void run_all(Trial *trial) {
    Device device = {.in = malloc(WORDS * sizeof *device.in), .out = malloc(WORDS * sizeof *device.out)};
    TileCudaScope scope;
    const TileTarget *target = device_target();
    if (!target || !device.in || !device.out || tile_cuda_enter(0, NULL, &scope, &device.error) != TILE_OK) {
        fail(trial, "all", "the GPU", "cannot be used");
    } else {
        for (int32_t i = 0; i < WORDS; i++) device.in[i] = 7 * i - WORDS;
        if (tile_device_allocate(0, WORDS * sizeof *device.in, &device.x, &device.error) != TILE_OK ||
            tile_device_allocate(0, WORDS * sizeof *device.in, &device.y, &device.error) != TILE_OK ||
            tile_device_write(0, device.x, device.in, WORDS * sizeof *device.in, &device.error) != TILE_OK)
            fail(trial, "all", target->name, device.error.message);
        else
            for (unsigned kernel = 0; kernel < KERNELS; kernel++) run_kernel(trial, &device, kernel, target);
        tile_device_release(0, device.x);
        tile_device_release(0, device.y);
        tile_cuda_leave(&scope);
    }
    free(device.in);
    free(device.out);
}

static int print_ptx(Trial *trial, const char *target, const char *name) {
    const TilePtxTarget *found = tile_ptx_target_find(target);
    for (unsigned kernel = 0; kernel < KERNELS && found; kernel++)
        if (strcmp(kernels[kernel].name, name) == 0) {
            const char *ptx = emit(trial, kernel, &found->target);
            if (ptx) fputs(ptx, stdout);
            return ptx == NULL;
        }
    fprintf(stderr, "usage: tile_mbarrier_tests [TARGET ring|turns]\n");
    return 2;
}

int main(int count, char **arguments) {
    Trial trial = {.arena = tile_arena_create(NULL), .context = tile_ir_context_create()};
    if (!trial.arena || !trial.context || tile_bridge_create(&trial.bridge) != TILE_OK) return 2;
    int status = 0;
    if (count == 3) {
        status = print_ptx(&trial, arguments[1], arguments[2]);
    } else {
        const char *why_not = tile_cuda_why_not();
        compile_all(&trial);
        if (!why_not) run_all(&trial);
        printf("mbarriers: %u assembled; GPU: %s; %u failures\n", trial.assembled, why_not ? why_not : "used",
               trial.failures);
        status = trial.failures != 0;
    }
    tile_bridge_destroy(trial.bridge);
    tile_ir_context_destroy(trial.context);
    tile_arena_destroy(trial.arena);
    return status;
}
