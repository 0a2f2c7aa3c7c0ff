#include "support.h"

#include <string.h>

#include "lang/ir/text.h"
#include "lang/ir/verify.h"

const TileTarget avx2 = {.name = "avx2",
                         .triple = "x86_64-unknown-linux-gnu",
                         .llvm_cpu = "x86-64-v3",
                         .llvm_features = "",
                         .vector_bytes = 32};
const TileTarget avx512 = {.name = "avx512",
                           .triple = "x86_64-unknown-linux-gnu",
                           .llvm_cpu = "x86-64-v4",
                           .llvm_features = "",
                           .vector_bytes = 64,
                           .has_masks = true};

const TileTarget *const *usable_targets(void) {
    static const TileTarget *const both[] = {&avx2, &avx512, NULL};
    bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    static const TileTarget *const small[] = {&avx2, NULL};
    return has_avx512 ? both : small;
}

TileModule *read_module(TileContext *context, const char *text) {
    TileText errors = {.arena = context->arena};
    TileModule *module = NULL;
    tile_status status = tile_module_read(context, text, strlen(text), &module, &errors);
    cr_assert(status == TILE_OK, "%s", tile_text_get(&errors));
    cr_assert(tile_module_verify(module, &errors), "%s", tile_text_get(&errors));
    return module;
}

Compiled compile_text(const char *text, const TileTarget *target) {
    Compiled compiled = {.context = tile_ir_context_create()};
    compiled.module = read_module(compiled.context, text);
    cr_assert_eq(tile_bridge_create(&compiled.bridge), TILE_OK);
    TileCode code;
    tile_status status = tile_bridge_emit(compiled.bridge, compiled.module, target, NULL, TILE_CODE_OBJECT, &code);
    cr_assert(status == TILE_OK, "%s", tile_bridge_message(compiled.bridge));
    TileText message = {.arena = compiled.context->arena};
    status = tile_object_load(code.data, code.size, &compiled.loaded, &message);
    cr_assert(status == TILE_OK, "%s", tile_text_get(&message));
    tile_code_release(&code);
    return compiled;
}

Entry find_entry(const Compiled *compiled, const char *name) {
    void *address;
    TileText message = {.arena = compiled->context->arena};
    tile_status status = tile_loaded_find(compiled->loaded, name, &address, &message);
    cr_assert(status == TILE_OK, "%s", tile_text_get(&message));
    return (Entry)address;
}

void release_compiled(Compiled *compiled) {
    tile_loaded_release(compiled->loaded);
    tile_bridge_destroy(compiled->bridge);
    tile_module_destroy(compiled->module);
    tile_ir_context_destroy(compiled->context);
}

TileCode emit_text(const char *text, const TileTarget *target, const TileBridgeOptions *options, TileCodeKind kind) {
    TileContext *context = tile_ir_context_create();
    TileModule *module = read_module(context, text);
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    TileCode code;
    tile_status status = tile_bridge_emit(bridge, module, target, options, kind, &code);
    cr_assert(status == TILE_OK, "%s", tile_bridge_message(bridge));
    tile_bridge_destroy(bridge);
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
    return code;
}

void expect_failure(const char *text, const TileTarget *target, tile_status expected, const char *word) {
    TileContext *context = tile_ir_context_create();
    TileModule *module = read_module(context, text);
    TileBridge *bridge;
    cr_assert_eq(tile_bridge_create(&bridge), TILE_OK);
    TileCode code;
    tile_status status = tile_bridge_emit(bridge, module, target, NULL, TILE_CODE_OBJECT, &code);
    cr_expect_eq(status, expected, "status %d: %s", status, tile_bridge_message(bridge));
    cr_expect(strstr(tile_bridge_message(bridge), word), "the message is: %s", tile_bridge_message(bridge));
    cr_expect_null(code.data);
    tile_bridge_destroy(bridge);
    tile_module_destroy(module);
    tile_ir_context_destroy(context);
}

uint64_t next_random(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
