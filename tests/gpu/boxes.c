/* Copies by tensor maps as PTX: the kernels of boxes.h compile for every GPU target that has the instruction, and fail
 * with the reason for the others; and ptxas, if installed, accepts the PTX. The emulator is tested by
 * tests/unit/lang/test_execute_tensor.c.
 *
 * usage: tile_box_tests [TARGET CASE] with both: prints the PTX of a case of boxes.h, by its number */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"
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

static int print_ptx(Trial *trial, const char *target, const char *number) {
    const TilePtxTarget *found = tile_ptx_target_find(target);
    unsigned long which = strtoul(number, NULL, 10);
    if (!found || which >= BOX_CASES) {
        fprintf(stderr, "usage: tile_box_tests [TARGET CASE]\n");
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
        compile_all(&trial);
        printf("boxes: %u assembled; %u failures\n", trial.assembled, trial.failures);
        status = trial.failures != 0;
    }
    tile_bridge_destroy(trial.bridge);
    tile_ir_context_destroy(trial.context);
    tile_arena_destroy(trial.arena);
    return status;
}
