/* Formats of elements that tensors have and values have not: numbers of 4 bits, two in a byte, and powers of two. */
#include "parser/check/formats.h"

#include <string.h>

#include "lang/scalar/scalar.h"

static const struct {
    const char *name;
    TileScalar scalar; /* what an element is when it is loaded, exactly */
} formats[TILE_FORMAT_COUNT] = {[TILE_FORMAT_I4] = {"i4", TILE_I8},
                                [TILE_FORMAT_U4] = {"u4", TILE_U8},
                                [TILE_FORMAT_F4E2M1] = {"f4e2m1", TILE_F8E4M3},
                                [TILE_FORMAT_F8E8M0] = {"f8e8m0", TILE_F32}};

TileFormat tile_format_find(const char *name) {
    TileFormat found = TILE_FORMAT_PLAIN;
    for (int i = TILE_FORMAT_I4; name && i < TILE_FORMAT_COUNT; i++)
        if (strcmp(name, formats[i].name) == 0) found = (TileFormat)i;
    return found;
}

const char *tile_format_name(TileFormat format) { return formats[format].name; }
TileScalar tile_format_scalar(TileFormat format) { return formats[format].scalar; }
bool tile_format_is_packed(TileFormat format) { return format != TILE_FORMAT_PLAIN && format != TILE_FORMAT_F8E8M0; }

const char *tile_tensor_type_name(const TileTensor *tensor) {
    return tensor->format ? formats[tensor->format].name : tile_scalar_name(tensor->scalar);
}

const char *tile_halved_text(TileArena *arena, const TileExpr *extent, const char *text) {
    if (extent->kind != TILE_EXPR_INTEGER) return tile_arena_format(arena, "(%s + 1) / 2", text);
    return tile_arena_format(arena, "%llu", (unsigned long long)(extent->integer / 2 + extent->integer % 2));
}
