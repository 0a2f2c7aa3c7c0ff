/* What the walk over a phase counts with. Private to ptx/model. */
#ifndef TILE_PTX_MODEL_WALK_H
#define TILE_PTX_MODEL_WALK_H

#include "ptx/model/model.h"
#include "ptx/model/numbers.h"

enum { GPU_VECTOR_BYTES = 16 };

/* Cycles until a result can be used, beyond those of issuing. */
enum { GPU_OF_OPERATION = 4, GPU_OF_MEMORY = 700, GPU_OF_EXCHANGE = 30, GPU_OF_BARRIER = 80, GPU_OF_CHANNEL = 30 };

/* Instructions of a warp for a vector with its address and predicate. */
enum { GPU_OF_VECTOR = 5 };

/* A loop around the current block, other than that of the programs. */
typedef struct GpuAround {
    const TileOp *op;
    double trips;
    const struct GpuAround *outer;
} GpuAround;

typedef struct GpuWalk {
    const TilePtxTarget *target;
    GpuNumbers numbers;
    GpuWork *work;
    double *ready;  /* by TileValue.number: the cycle from which a value can be used */
    double times;   /* that the ops of the current block run in a program */
    double warps;   /* of the block, those with work of their own */
    double busy;    /* warps of one scheduler */
    double cluster; /* blocks of one; 0: there is none */
    double carried; /* registers of a thread that surrounding loops carry */
    double copied;  /* bytes that the current loop copies ahead in an iteration */
    double slots;   /* that they have, at least */
    double fill;    /* cycles until the first tiles come that warps of their own copy, once for a program */
    bool flows;     /* they copy for the current loop, and for the next loop while this one ends */
    int64_t program;
    const GpuAround *around; /* the innermost loop, or NULL */
    const TileBlock *last[TILE_MOST_EXTENTS]; /* where each tensor was last moved, */
    double beside[TILE_MOST_EXTENTS];         /* and the bytes of it that all of that block's accesses move */
    unsigned loops; /* around the current block, beside that of the programs */
    double sums;    /* of a thread, of the products so far */
    bool turns;     /* programs of a block multiply in turn */
    bool wgmma;     /* computed the last products so far */
    bool tensor_cores, products, neighbours, fits;
} GpuWalk;

static inline double gpu_most(double a, double b) { return a > b ? a : b; }

/* ---- walk.c ---- */
double gpu_walk_lanes(const TileType *type);
/* Elements that a thread has; where a tile has fewer than there are threads, some threads repeat others' work. */
double gpu_walk_elements(const GpuWalk *walk, const TileType *type);
/* Is it computed again wherever it is used, or does it lie in shared memory? */
bool gpu_walk_takes_no_registers(const TileValue *value);
double gpu_walk_registers(GpuWalk *walk, const TileValue *value);
/* Those that are live at the op. */
void gpu_walk_count_registers(GpuWalk *walk, const TileOp *op);
bool gpu_walk_feeds_products(const TileValue *value);
/* The cycle from which the op's operands can be used, or `begin`, if that is later. */
double gpu_walk_ready(const GpuWalk *walk, const TileOp *op, double begin);
/* Each thread issues so many instructions, and the result is ready `latency` cycles after the last one. */
double gpu_walk_issue(GpuWalk *walk, const TileOp *op, double begin, double instructions, double latency);

/* ---- accesses.c ---- */
/* Until the op's result can be used. */
double gpu_walk_load(GpuWalk *walk, const TileOp *op, double begin);
double gpu_walk_store(GpuWalk *walk, const TileOp *op, double begin);

#endif
