/* The end of a unit, and the functions of what it has lowered. */
#include "driver/compile/unit.h"

#include <stdlib.h>

void tile_unit_destroy(TileUnit *unit) {
    tile_code_release(&unit->code);
    free(unit->cached);
    if (unit->bridge) tile_compiler_give_bridge(unit->input->compiler, unit->bridge);
    tile_module_destroy(unit->module);
    tile_ir_context_destroy(unit->context);
    tile_arena_destroy(unit->arena);
    free(unit);
}

TileFunc *tile_unit_kernel(const TileUnit *unit, const TileKernelInfo *kernel) {
    return tile_unit_func(unit, kernel->item ? kernel->item->name : kernel->name);
}

TileFunc *tile_unit_func(const TileUnit *unit, const char *name) {
    return tile_func_find(unit->module, tile_intern_string(unit->context->strings, name));
}
