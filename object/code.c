#include "object/code.h"

#include <stdlib.h>

void tile_code_release(TileCode *code) {
    free(code->data);
    *code = (TileCode){0};
}
