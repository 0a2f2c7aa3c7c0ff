/* Ops of one kind, one after the other. Private to ptx/. */
#ifndef TILE_PTX_EACH_H
#define TILE_PTX_EACH_H

#include "lang/build.h"
#include "lowering/pass.h"

/* True where something changed; the op may be gone then. *error is set where it could not be built. */
typedef bool (*GpuTry)(TilePassContext *context, TileOp *op, const char **error);
/* Tries it on all ops of the kind, those inside of others first. `pass` stands in front of an error. */
TileResult gpu_try_each(TilePassContext *context, TileFunc *func, TileOpId id, GpuTry try, const char *pass);

#endif
