/* How many floating-point operations the dots of a kernel are, for the arguments that are loaded: 2 M N K for each,
 * over lanes that exist (what tiles have beyond the edges of tensors is not counted), summed over all programs and
 * loops of the tile form. Everything else, exponentials, sums and epilogues, is not counted. */
#ifndef TILE_TOOLS_FLOPS_H
#define TILE_TOOLS_FLOPS_H

#include "tools/program.h"

typedef enum TileFlopsKnown {
    TILE_FLOPS_NONE,    /* the kernel has no dot */
    TILE_FLOPS_COUNTED, /* *flops is right */
    TILE_FLOPS_UNKNOWN  /* data decides, or counting would take too long */
} TileFlopsKnown;

/* Compiles the program once more, as far as the tile form. */
TileFlopsKnown tile_flops_of_program(TileProgram *program, double *flops);

#endif
