/* Messages of the language server protocol on two file descriptors: a header with the length, and so many bytes of
 * JSON. Whatever comes is survived: what is no message is skipped. */
#ifndef TILE_LSP_WIRE_H
#define TILE_LSP_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { TILE_WIRE_LARGEST = 64 << 20 };

typedef enum TileWireResult {
    TILE_WIRE_MESSAGE,  /* *body, to be freed */
    TILE_WIRE_NOTHING,  /* there is no whole message yet */
    TILE_WIRE_MALFORMED, /* what came was no message, and was skipped */
    TILE_WIRE_END,      /* the other side has closed */
} TileWireResult;

typedef struct TileWire {
    int in, out;
    char *bytes; /* read and not taken yet */
    size_t count, capacity;
    size_t skipped; /* bytes still to come of a message that is too long */
    bool closed;    /* nothing more can be read */
    bool broken;    /* nothing more can be written */
} TileWire;

void tile_wire_release(TileWire *wire);
/* The next message; waits for it if `wait`. */
TileWireResult tile_wire_read(TileWire *wire, bool wait, char **body, size_t *length);
void tile_wire_write(TileWire *wire, const char *body, size_t length);

#endif
