#include "lang/scalar/types.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t length, class;
} scalars[TILE_SCALAR_COUNT] = {
#define TILE_SCALAR_ROW(id, mnemonic, bits, class) {mnemonic, sizeof mnemonic - 1, TILE_CLASS_##class},
    TILE_SCALAR_LIST(TILE_SCALAR_ROW)
#undef TILE_SCALAR_ROW
};

const char *tile_scalar_name(TileScalar scalar) { return scalars[scalar].name; }
unsigned tile_scalar_bytes(TileScalar scalar) { return (tile_scalar_bits(scalar) + 7u) / 8u; }
TileScalarClass tile_scalar_class(TileScalar scalar) { return (TileScalarClass)scalars[scalar].class; }

bool tile_scalar_find(const char *name, size_t length, TileScalar *scalar) {
    for (int i = 0; i < TILE_SCALAR_COUNT; i++) {
        if (scalars[i].length == length && *scalars[i].name == *name && memcmp(scalars[i].name, name, length) == 0) {
            *scalar = (TileScalar)i;
            return true;
        }
    }
    return false;
}
