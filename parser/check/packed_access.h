/* Accesses to tensors whose elements are packed, in terms of their bytes. */
#ifndef TILE_PARSER_CHECK_PACKED_ACCESS_H
#define TILE_PARSER_CHECK_PACKED_ACCESS_H

#include "parser/check/access.h"

/* Does a range along the last axis, by this entry, consist of bytes? False if an error was reported. */
bool tile_packed_check_entries(TileChecker *c, const TileAccessed *access, const TileExpr *entry);
/* Does a store where `valid` holds write whole bytes? False if an error was reported. */
bool tile_packed_may_store(TileChecker *c, const TileAccessed *access, const TileValidity *valid);
/* The access to the bytes that hold the elements. */
void tile_packed_bytes(TileChecker *c, const TileAccessed *access, TileAccessed *bytes);
/* The elements, of what the access to the bytes has loaded. */
TileMeaning tile_packed_decode(TileChecker *c, const TileAccessed *access, const TileMeaning *loaded);
/* The bytes that hold the value, which is stored where `valid` holds. */
TileMeaning tile_packed_encode(TileChecker *c, const TileAccessed *access, const TileAccessed *bytes, TileMeaning value,
                               const TileValidity *valid);

#endif
