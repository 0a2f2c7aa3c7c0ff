#include "launch/packed.h"

#include <string.h>

typedef struct Format {
    uint8_t code, bits;
    const char *name, *words;
} Format;

static const Format formats[TILE_IMAGE_FORMAT_COUNT] = {
    [TILE_IMAGE_I4] = {kDLInt, 4, "i4", "u8 with two i4 in each byte along the last axis, the lower half first"},
    [TILE_IMAGE_U4] = {kDLUInt, 4, "u4", "u8 with two u4 in each byte along the last axis, the lower half first"},
    [TILE_IMAGE_F4E2M1] = {kDLFloat4_e2m1fn, 4, "f4e2m1",
                            "u8 with two f4e2m1 in each byte along the last axis, the lower half first"},
    [TILE_IMAGE_F8E8M0] = {kDLFloat8_e8m0fnu, 8, "f8e8m0", "u8 with the exponents of f8e8m0"},
};

const char *tile_packed_words(const TileImageParameter *parameter) { return formats[parameter->format].words; }

const char *tile_packed_name(DLDataType type) {
    for (size_t i = 0; i < TILE_IMAGE_FORMAT_COUNT; i++)
        if (formats[i].name && formats[i].code == type.code && formats[i].bits == type.bits) return formats[i].name;
    return NULL;
}

/* Elements of 4 bits without gaps: strides count elements, and each row has to begin with a byte. */
static const char *halve(const DLTensor *tensor, TilePackedTensor *packed) {
    int last = tensor->ndim - 1;
    int64_t count = tensor->shape[last], next = 1;
    if (tensor->strides && count > 1 && tensor->strides[last] != 1) return "are not next to one another along the last axis";
    packed->shape[last] = count / 2 + count % 2;
    packed->strides[last] = 1;
    for (int i = last; i >= 0; i--) {
        int64_t stride = tensor->strides ? tensor->strides[i] : next;
        if (__builtin_mul_overflow(next, tensor->shape[i] > 0 ? tensor->shape[i] : 1, &next)) return "are too many";
        if (i == last) continue;
        if (stride % 2 && tensor->shape[i] > 1) return "are in rows that begin with half a byte";
        packed->strides[i] = stride / 2;
    }
    return NULL;
}

bool tile_packed_read(const TileImageParameter *parameter, const DLTensor *tensor, TilePackedTensor *packed) {
    const Format *format = &formats[parameter->format];
    bool pairs = tensor->dtype.lanes == 2 && tensor->dtype.bits == 4; /* an element of the tensor is a byte */
    if (!parameter->format || tensor->dtype.code != format->code || tensor->dtype.bits != format->bits) return false;
    if ((tensor->dtype.lanes != 1 && !pairs) || tensor->ndim < 1 || tensor->ndim > TILE_MAX_RANK || !tensor->shape)
        return false;
    packed->bytes = *tensor;
    packed->bytes.dtype = (DLDataType){kDLUInt, 8, 1};
    packed->obstacle = NULL;
    if (pairs || format->bits == 8) return true;
    memcpy(packed->shape, tensor->shape, (size_t)tensor->ndim * sizeof *packed->shape);
    packed->obstacle = halve(tensor, packed);
    packed->bytes.shape = packed->shape;
    packed->bytes.strides = packed->strides;
    return true;
}
