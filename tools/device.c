/* The data of a GPU kernel: whole storages are copied, so that views stay valid. */
#include "tools/program.h"

enum { DEVICE = 0 };

tile_status tile_program_send(TileProgram *program, TileProgramArgument *arguments, TileError *error) {
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &arguments[i];
        if (argument->info.kind == TILE_PARAMETER_SCALAR) continue;
        char *storage = (char *)argument->base.storage;
        size_t bytes = argument->base.storage_size;
        argument->on_device = NULL;
        TILE_TRY(tile_device_allocate(DEVICE, bytes, &argument->on_device, error));
        TILE_TRY(tile_device_write(DEVICE, argument->on_device, storage, bytes, error));
        argument->tensor.data = (char *)argument->on_device + ((char *)argument->view.data - storage);
        argument->tensor.device = (DLDevice){kDLCUDA, DEVICE};
    }
    return TILE_OK;
}

tile_status tile_program_fetch(TileProgram *program, TileProgramArgument *arguments, TileError *error) {
    TILE_TRY(tile_device_synchronize(DEVICE, NULL, error));
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &arguments[i];
        if (!tile_argument_is_written(argument)) continue;
        TILE_TRY(tile_device_read(DEVICE, (char *)argument->base.storage, argument->on_device,
                                  argument->base.storage_size, error));
    }
    return TILE_OK;
}

void tile_program_forget(TileProgram *program, TileProgramArgument *arguments) {
    for (size_t i = 0; i < program->argument_count; i++) {
        TileProgramArgument *argument = &arguments[i];
        if (!argument->on_device) continue;
        tile_device_release(DEVICE, argument->on_device);
        argument->on_device = NULL;
        tile_program_bind(argument, &argument->view);
    }
}
