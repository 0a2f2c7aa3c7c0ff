#include "tests/unit/lang/executing.h"

Executing executing;

void executing_set_up(void) {
    executing.context = tile_ir_context_create();
    executing.arena = tile_arena_create(NULL);
}

void executing_tear_down(void) {
    for (size_t i = 0; i < executing.modules.count; i++) tile_module_destroy(executing.modules.items[i]);
    tile_ir_context_destroy(executing.context);
    tile_arena_destroy(executing.arena);
}

TileFunc *read_func(const char *source, const char *name) {
    TileText errors = {.arena = executing.arena};
    tile_status status = tile_module_read(executing.context, source, strlen(source), &executing.module, &errors);
    cr_assert_eq(status, TILE_OK, "%s", tile_text_get(&errors));
    tile_list_push(executing.arena, &executing.modules, executing.module);
    cr_assert(tile_module_verify(executing.module, &errors), "%s", tile_text_get(&errors));
    return name ? tile_func_find(executing.module, name) : executing.module->first;
}

TileExecutorTensor matrix(void *data, int64_t rows, int64_t columns) {
    return (TileExecutorTensor){.data = data,
                                .above = (uint64_t)(rows * columns) * sizeof(float),
                                .extent = {rows, columns},
                                .stride = {columns * (int64_t)sizeof(float), sizeof(float)}};
}

uint64_t float_bits(float value) { return tile_scalar_from_float(TILE_F32, value); }

void expect_kernel(const char *source, const TileExecutorArgument *arguments, const TileExecutorOptions *options,
                   TileExecution expected, const char *message) {
    TileText text = {.arena = executing.arena};
    TileExecution state = tile_execute_kernel(read_func(source, NULL), arguments, options, &text);
    cr_expect_eq(state, expected, "%d: %s", state, tile_text_get(&text));
    cr_expect(strstr(tile_text_get(&text), message), "wanted `%s`, got: %s", message, tile_text_get(&text));
}
