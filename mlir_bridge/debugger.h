/* Code in memory, for debuggers: the interface of GDB, which LLDB and others read as well. */
#ifndef TILE_MLIR_BRIDGE_DEBUGGER_H
#define TILE_MLIR_BRIDGE_DEBUGGER_H

#include "object/place.h"

typedef struct BridgeShown BridgeShown;

/* Shows debuggers a copy of the object, which was loaded where the places say. Thread-safe. */
tile_status bridge_show(const void *object, size_t size, const TilePlace *places, size_t count, BridgeShown **result,
                        TileText *message);
/* NULL is allowed. */
void bridge_hide(BridgeShown *shown);

#endif
