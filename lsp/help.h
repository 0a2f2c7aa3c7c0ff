/* What the language itself names: built-in functions, types, classes of types, keywords. */
#ifndef TILE_LSP_HELP_H
#define TILE_LSP_HELP_H

#include "base/string.h"

/* A built-in function or type, for hover: its form and what it does; NULL if the language has no such name. */
const char *tile_help_markdown(TileArena *arena, const char *name);
/* A built-in function: its form, as in `clamp(v, low, high)`, and what it gives; NULL if there is none. */
const char *tile_help_form(const char *name);
const char *tile_help_words(const char *name);

#endif
