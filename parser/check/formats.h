/* Formats of elements that tensors have and values have not. */
#ifndef TILE_PARSER_CHECK_FORMATS_H
#define TILE_PARSER_CHECK_FORMATS_H

#include "parser/check/check.h"

/* The format of this name; PLAIN if there is none. */
TileFormat tile_format_find(const char *name);
const char *tile_format_name(TileFormat format);
/* The type of its elements as they are loaded. */
TileScalar tile_format_scalar(TileFormat format);
/* Are there two elements in a byte? */
bool tile_format_is_packed(TileFormat format);
/* "f32", "i4" */
const char *tile_tensor_type_name(const TileTensor *tensor);

/* The extent in bytes of an axis whose elements share bytes: "(K + 1) / 2"; the text is that of the extent. */
const char *tile_halved_text(TileArena *arena, const TileExpr *extent, const char *text);

#endif
