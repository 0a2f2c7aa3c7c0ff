/* Tensors of elements that a kernel takes as bytes. */
#include <criterion/criterion.h>

#include <string.h>

#include "launch/packed.h"

static TileImageParameter parameter_of(TileImageFormat format) {
    return (TileImageParameter){.name = "w", .type_text = "", .kind = TILE_PARAMETER_TENSOR, .generic = -1, .format = (uint8_t)format};
}

static DLTensor tensor_of(int code, int bits, int lanes, int rank, int64_t *shape, int64_t *strides) {
    return (DLTensor){.dtype = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes}, .ndim = rank, .shape = shape, .strides = strides};
}

Test(packed, reads_elements_of_four_bits) {
    TileImageParameter parameter = parameter_of(TILE_IMAGE_I4);
    TilePackedTensor packed;
    int64_t shape[] = {3, 10}, strides[] = {32, 1};
    DLTensor tensor = tensor_of(kDLInt, 4, 1, 2, shape, NULL);
    cr_assert(tile_packed_read(&parameter, &tensor, &packed) && !packed.obstacle);
    cr_assert(packed.bytes.dtype.code == kDLUInt && packed.bytes.dtype.bits == 8 && packed.bytes.dtype.lanes == 1);
    cr_assert(packed.bytes.shape[0] == 3 && packed.bytes.shape[1] == 5);
    cr_assert(packed.bytes.strides[0] == 5 && packed.bytes.strides[1] == 1);
    tensor.strides = strides;
    cr_assert(tile_packed_read(&parameter, &tensor, &packed) && !packed.obstacle && packed.bytes.strides[0] == 16);
}

Test(packed, refuses_rows_that_begin_within_a_byte) {
    TileImageParameter parameter = parameter_of(TILE_IMAGE_U4);
    TilePackedTensor packed;
    int64_t shape[] = {3, 7}, strides[] = {8, 2};
    DLTensor tensor = tensor_of(kDLUInt, 4, 1, 2, shape, NULL);
    cr_assert(tile_packed_read(&parameter, &tensor, &packed) && packed.obstacle);
    shape[0] = 1; /* one row has an end of its own */
    cr_assert(tile_packed_read(&parameter, &tensor, &packed) && !packed.obstacle && packed.bytes.shape[1] == 4);
    tensor.strides = strides;
    cr_assert(tile_packed_read(&parameter, &tensor, &packed) && packed.obstacle, "elements apart");
}

Test(packed, takes_pairs_and_exponents_as_they_are) {
    TileImageParameter pairs = parameter_of(TILE_IMAGE_F4E2M1), powers = parameter_of(TILE_IMAGE_F8E8M0), plain = parameter_of(TILE_IMAGE_PLAIN);
    TilePackedTensor packed;
    int64_t shape[] = {3, 7};
    DLTensor tensor = tensor_of(kDLFloat4_e2m1fn, 4, 2, 2, shape, NULL);
    cr_assert(tile_packed_read(&pairs, &tensor, &packed) && !packed.obstacle && packed.bytes.shape == shape);
    cr_assert_not(tile_packed_read(&powers, &tensor, &packed));
    cr_assert_not(tile_packed_read(&plain, &tensor, &packed));
    tensor = tensor_of(kDLFloat8_e8m0fnu, 8, 1, 2, shape, NULL);
    cr_assert(tile_packed_read(&powers, &tensor, &packed) && !packed.obstacle && packed.bytes.shape == shape);
    cr_assert_not(tile_packed_read(&pairs, &tensor, &packed));
    cr_assert(strstr(tile_packed_words(&pairs), "two f4e2m1") && !tile_packed_words(&plain));
}
