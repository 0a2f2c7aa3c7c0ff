/* Visits all ops of one kind, or lists them. */
#ifndef TILE_LOWERING_EACH_H
#define TILE_LOWERING_EACH_H

#include "base/list.h"
#include "lang/ir/build.h"
#include "lowering/pass.h"

/* Returns whether it changed anything; it may erase the op. *error is set if an op could not be built. */
typedef bool (*TileTry)(TilePassContext *context, TileOp *op, const char **error);
/* Calls it for all ops of the kind, nested ones first. `pass` is the prefix of an error. */
TileResult tile_try_each(TilePassContext *context, TileFunc *func, TileOpId id, TileTry try, const char *pass);

typedef TILE_LIST(TileOp *) TileOps;
/* All ops of the kind in the block, in the order of the text: for passes that change what stands around them. The list is the
 * arena's. */
TileOps tile_find_each(TileBlock *block, TileOpId id, TileArena *arena);

#endif
