/* Parameters of phases that are tensor maps: which tensor they are of, and whether a box is one that hardware copies.
 */
#ifndef TILE_LANG_IR_TENSOR_MAP_H
#define TILE_LANG_IR_TENSOR_MAP_H

#include "lang/ir/ir.h"

/* Adds a map of the tensor to a phase in machine form whose parameters are complete, before its last one, `scratch`;
 * or finds it there. The tensor is the kernel's parameter `argument`, whose address, extents and strides the phase has,
 * and for which tile_parameter_fits_map holds. Indices of parameters behind the map grow by one. NULL if the phase has
 * as many maps as it may have. */
TileValue *tile_func_add_map(TileFunc *phase, uint32_t argument, const TileTensorMap *map);

/* May code rely on it that a tensor map describes the tensor? Records that it was asked, and used where it holds. Asked
 * of the parameter of the kernel, or of a phase's parameter that is the tensor or its address. The rank is the
 * tensor's. */
bool tile_parameter_fits_map(TileParameter *parameter, unsigned rank);

/* The map that the value is; NULL: it is no parameter with this role. */
const TileTensorMap *tile_value_map(const TileValue *value);

/* The index of the parameter with the address of the tensor that parameter `index`, a map, is of; the tensor's extents
 * and strides stand behind it in order. False if they do not. */
bool tile_func_map_tensor(const TileFunc *phase, uint32_t index, uint32_t *data);
/* Mode im2col: the indices of the parameters that say how many positions there are along each axis of the images; false if they are not
 * there. */
bool tile_func_map_counts(const TileFunc *phase, uint32_t index, uint32_t counts[TILE_MAP_MOST_IMAGE_AXES]);
/* The type of the kernel's tensor, a parameter or a temporary; NULL: not known, or no tensor. */
const TileType *tile_func_argument_type(const TileFunc *phase, uint32_t argument);

/* The step along an axis, at least 1. */
static inline uint32_t tile_map_step(const TileTensorMap *map, uint32_t d) { return map->step[d] ? map->step[d] : 1; }

/* The axes of an image: all but the first and the last. 0: the mode is tiled. */
static inline uint32_t tile_map_image_axes(const TileTensorMap *map) { return map->positions && map->rank > 2 ? map->rank - 2 : 0; }

/* Bytes of a box. */
int64_t tile_map_box_bytes(const TileTensorMap *map, TileScalar scalar);
/* NULL, or what is wrong with a map of tensors of this type. */
const char *tile_map_misfit(const TileTensorMap *map, const TileType *tensor);

#endif
