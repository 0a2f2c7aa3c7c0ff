/* Ops of one kind, one after the other. */
#ifndef TILE_LOWERING_EACH_H
#define TILE_LOWERING_EACH_H

#include "lang/ir/build.h"
#include "lowering/pass.h"

/* True where something changed; the op may be gone then. *error is set where it could not be built. */
typedef bool (*TileTry)(TilePassContext *context, TileOp *op, const char **error);
/* Tries it on all ops of the kind, those inside of others first. `pass` stands in front of an error. */
TileResult tile_try_each(TilePassContext *context, TileFunc *func, TileOpId id, TileTry try, const char *pass);

#endif
