/* Loads whose lanes are two elements apart, or go backward. What lies between the lanes' elements belongs to the same row, so
 * that two vectors and a shuffle take the place of a gather, which loads element by element (and for 16 bits does not exist):
 *     v0 = elements 0 .. w - 1, v1 = elements w - 1 .. 2 w - 2; lanes 0, 2, .. of v0, lanes 1, 3, .. of v1
 * Nothing behind the last lane's element is loaded. A lane that is masked loads nothing: the mask is spread as the lanes are. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { LEAST_BYTES = 2 };

bool tile_stride_is_short(const TileTarget *target, TileSlope slope, TileScalar scalar) {
    int64_t bytes = tile_scalar_bytes(scalar);
    return slope.kind == TILE_SLOPE_AFFINE && !slope.factor && bytes >= LEAST_BYTES && target && !target->scalable &&
           (slope.step == 2 * bytes || slope.step == -bytes);
}

static TileValue *shuffle(TileBuilder *b, TileValue *x, TileValue *y, int64_t first, int64_t step, int64_t second) {
    int64_t lanes[TILE_STRIPES], width = x->type->extent[0];
    for (int64_t i = 0; i < width; i++) lanes[i] = first + step * i + (2 * i >= width ? second : 0);
    return tile_build_shuffle(b, x, y, lanes, (unsigned)width);
}

/* The mask of the elements of vector `part`, of which every second one is a lane's, or which are the lanes' in reverse. It is
 * shuffled as a vector of integers: LLVM's shuffles of masks are not to be trusted (mlir_bridge/masks.c). */
static TileValue *spread(TileLanes *lanes, TileValue *mask, int64_t part, bool backward, TileScalar scalar) {
    TileBuilder *b = &lanes->builder;
    int64_t places[TILE_STRIPES], width = lanes->width;
    TileScalar integer = tile_scalar_bytes(scalar) == 2 ? TILE_U16 : tile_scalar_bytes(scalar) == 4 ? TILE_U32 : TILE_U64;
    const TileType *type = tile_type_vector(lanes->context->module->context, integer, width, false);
    TileValue *none = tile_build_integer(b, type, 0), *set = tile_build_integer(b, type, 1);
    TileValue *words = tile_build_ternary(b, TILE_OP_SELECT, mask, set, none);
    for (int64_t i = 0; i < width; i++)
        places[i] = backward ? width - 1 - i : (part * width + i) / 2 + (i & 1) * width;
    words = tile_build_shuffle(b, words, none, places, (unsigned)width);
    return tile_build_binary(b, TILE_OP_NE, words, none);
}

static TileValue *part_at(TileLanes *lanes, const TileType *type, TileValue *pointer, int64_t element, TileValue *mask) {
    TileBuilder *b = &lanes->builder;
    TileValue *bytes = tile_build_i64(b, element * (int64_t)tile_scalar_bytes(type->scalar));
    TileValue *address = element ? tile_build_ptr_add(b, pointer, bytes) : pointer;
    return tile_build_load(b, type, address, mask, mask ? tile_build_bits(b, type, 0) : NULL, 0);
}

TileValue *tile_lanes_load_short(TileLanes *lanes, const TileType *type, TileValue *pointer, bool backward, TileValue *mask,
                                 TileValue *fill) {
    TileBuilder *b = &lanes->builder;
    int64_t width = lanes->width;
    TileValue *value;
    if (mask && !lanes->context->target->has_masks && tile_scalar_bytes(type->scalar) < 4) return NULL;
    if (backward) {
        TileValue *own = mask ? spread(lanes, mask, 0, true, type->scalar) : NULL;
        value = part_at(lanes, type, pointer, 1 - width, own);
        value = shuffle(b, value, value, width - 1, -1, 0);
    } else if (mask) {
        TileValue *low = part_at(lanes, type, pointer, 0, spread(lanes, mask, 0, false, type->scalar));
        TileValue *high = part_at(lanes, type, pointer, width, spread(lanes, mask, 1, false, type->scalar));
        value = shuffle(b, low, high, 0, 2, 0);
    } else {
        TileValue *low = part_at(lanes, type, pointer, 0, NULL), *high = part_at(lanes, type, pointer, width - 1, NULL);
        value = shuffle(b, low, high, 0, 2, 1);
    }
    return mask && fill ? tile_build_ternary(b, TILE_OP_SELECT, mask, value, fill) : value;
}
