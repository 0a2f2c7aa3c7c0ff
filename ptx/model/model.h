/* A model of a GPU: how long a launch of a phase takes, predicted from its tile form.
 *
 * The model counts what one program moves, computes and waits for (work.c) and adds that up for the multiprocessor with
 * the most programs (time.c). It knows extents of tensors and facts of the target, no kernel and no measurement. It serves
 * to compare points of one kernel's tune clauses; its microseconds are no promise. */
#ifndef TILE_PTX_MODEL_MODEL_H
#define TILE_PTX_MODEL_MODEL_H

#include "lang/ir/ir.h"
#include "lowering/family.h"
#include "ptx/target/target.h"

/* That a multiprocessor takes from the L2 cache in a cycle, as measured, and by tensor maps. It is built for 64. */
enum { GPU_PORT_BYTES_CYCLE = 50, GPU_BOXES_BYTES_CYCLE = 64 };

enum { GPU_OTHER_REGISTERS = 28 }; /* of a thread, beside its tiles: addresses, indices, constants */

/* What a program does, on average over the grid. Cycles are those of a multiprocessor that does nothing else. */
typedef struct GpuWork {
    double instructions; /* of warps */
    double code;         /* instructions of a thread, each once however often it runs */
    double looped;       /* of these, what stands in loops */
    double tensor;       /* cycles of the tensor cores */
    double port;         /* cycles in which bytes go between the L2 cache and the multiprocessor, in sectors */
    double longest_port; /* of several programs, the most such cycles that one of them has */
    double stored;       /* bytes, in sectors */
    double latency;      /* cycles from the first load to the last store if nothing else runs */
    double beginning;    /* of them, those of a block's first program alone, where blocks stay for several */
    double beside;       /* of them, those that a thread takes to issue what stands in no loop: epilogues of products */
    double awaited;      /* cycles until what an epilogue loads is there, which `latency` has beside the products */
    bool uses_sums;      /* a loop computes with the sums of its products */
    bool kept, reloads;  /* rows stay in registers between loops; code for that is not executed */
    bool keeps;          /* of those that stay some have no class */
    bool singles;        /* rows of 16 bits that begin anywhere are loaded element by element */
    bool multiplies;     /* it has large products by fused multiply-adds */
    double registers;    /* of a thread */
    double vectors;      /* that a thread stores at once, of tensors that are gone through as they lie in memory */
    double shared;       /* bytes of a block */
    double moved[TILE_MOST_EXTENTS]; /* bytes of each tensor, by argument */
    bool narrow[TILE_MOST_EXTENTS];  /* of which a load takes less than a line of a row, between other programs' */
    bool positions;                  /* consecutive ones of images are loaded or stored: the thread that copies computes image, row and column of each box */
    double own[TILE_MOST_EXTENTS];   /* of them, those that are different ones: without what loops read again, and what several loops read */
} GpuWork;

/* The work of the phase's program of this number. False: no block can have a tile of the phase in its registers. */
bool gpu_work_count(const TilePtxTarget *target, TileFunc *phase, const TileExtents *extents, int64_t program,
                    TileArena *scratch, GpuWork *work);

#endif
