/* The number of floating-point operations of a kernel's dots, for the loaded arguments: 2 M N K for each, over lanes
 * that exist (not those beyond the edges of tensors), summed over all programs and loops of tile form. Everything else,
 * exponentials, sums and epilogues, is not counted. */
#ifndef TILE_TOOLS_FLOPS_H
#define TILE_TOOLS_FLOPS_H

#include "tools/program.h"

typedef enum TileFlopsKnown {
    TILE_FLOPS_NONE,    /* the kernel has no dot */
    TILE_FLOPS_COUNTED, /* *flops is right */
    TILE_FLOPS_UNKNOWN  /* it depends on data, or counting would take too long */
} TileFlopsKnown;

/* Compiles the program once more, up to tile form. */
TileFlopsKnown tile_flops_of_program(TileProgram *program, double *flops);

/* Compulsory traffic: each element of each tensor once, `inout` ones twice, what a broadcast repeats once. */
double tile_traffic_of_program(const TileProgram *program);

#endif
