/* The verifier: every rule that holds between passes. */
#ifndef TILE_LANG_VERIFY_H
#define TILE_LANG_VERIFY_H

#include "lang/ir.h"

/* Checks structure (lists, uses, blocks, terminators), definition before use, forms, attributes, counts and type
 * rules. Reports every complaint, each on a line of its own together with the op it is about, into `errors`
 * (which may be NULL). True when there is none. */
bool tile_func_verify(const TileFunc *func, TileText *errors);
bool tile_module_verify(const TileModule *module, TileText *errors);

#endif
