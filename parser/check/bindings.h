/* Bindings, which determine an instance of a kernel: types, constants, functions, static values, tune names. */
#ifndef TILE_PARSER_CHECK_BINDINGS_H
#define TILE_PARSER_CHECK_BINDINGS_H

#include "parser/check/check.h"

bool tile_bind_generics(TileChecker *c, const TileItem *kernel);
bool tile_bind_tunes(TileChecker *c, const TileItem *kernel);
/* See tile_list_points; requires that generics are bound. */
bool tile_search_points(TileChecker *c, const TileItem *kernel, size_t most, TileTunePoints *found);
TileScalar tile_stand_in_type(uint32_t types, bool second);
const TileBinding *tile_find_binding(const TileChecker *c, const char *name);
/* The value of a const or static scalar, converted to the type; an error if it is not bound. */
TileMeaning tile_bound_constant(TileChecker *c, const char *name, TileScalar scalar, TileSpan span);
bool tile_check_all_used(TileChecker *c, const TileItem *kernel);

#endif
