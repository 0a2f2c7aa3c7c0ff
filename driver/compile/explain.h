/* What was decided for a kernel, a target and arguments: for `tilec explain`. */
#ifndef TILE_DRIVER_COMPILE_EXPLAIN_H
#define TILE_DRIVER_COMPILE_EXPLAIN_H

#include "driver/compile/compile.h"
#include "lowering/family.h"

typedef struct TileExplainedTensor {
    const char *name;
    unsigned rank, scalar_bytes;
    uint64_t offered, used; /* bits of launch/guard.h: what the arguments offer, and what the code relies on */
} TileExplainedTensor;

/* Tiles that lie alike. */
typedef struct TileExplainedLayout {
    const char *layout; /* as lang/layout/layout.h writes it */
    TILE_LIST(TileRemark) tiles;
} TileExplainedLayout;

/* A loop without another one in it. */
typedef struct TileExplainedLoop {
    TileLocation place;
    const TileType *widest;    /* of the vectors that it works on; NULL: none */
    unsigned vectors, scalars; /* loads and stores of each kind */
    unsigned masked;           /* of them, through a mask */
    int64_t unroll;
} TileExplainedLoop;

/* A name of the tune clauses. */
typedef struct TileExplainedTune {
    const char *name;
    int64_t value;
    enum { TILE_TUNE_DEFAULT, TILE_TUNE_SET, TILE_TUNE_MEASURED, TILE_TUNE_PINNED, TILE_TUNE_PREDICTED } origin;
    const char *file; /* the tuning file; else NULL */
} TileExplainedTune;

/* What the GPU's L2 cache is asked for by an access: "evict_first", "evict_last", "evict_normal" */
const char *tile_cache_policy(const TileRemark *access);

/* "the default", "set", "measured", "pinned", "predicted" */
const char *tile_tune_origin(const TileExplainedTune *tune);

/* A point of the tune clauses, with a value for each of TileExplanation.tunes, as the target's model sees it. */
typedef struct TilePrediction {
    const int64_t *values;
    TileSchedule schedule;
    bool fits;             /* else there can be no such code */
    TileEstimate estimate; /* for the arguments' sizes, as far as four bits tell them apart */
} TilePrediction;

typedef struct TileExplainedPhase {
    const char *name;
    uint32_t threads;      /* of a block on a GPU; 0 on a CPU */
    uint64_t memory_bytes; /* shared memory of a block; scratch of a CPU's thread */
    TILE_LIST(TileLocation) barriers;
    TILE_LIST(TileExplainedLayout) layouts;
    TILE_LIST(TileRemark) moves;
    TILE_LIST(TileRemark) accesses; /* in vectors on a GPU: each line, tensor and way once */
    TILE_LIST(TileRemark) orders;   /* of sums: each line, sum and order once */
    TILE_LIST(TileRemark) decisions; /* of passes: each place, pass and text once, in order of places */
    TILE_LIST(TileExplainedLoop) loops;
} TileExplainedPhase;

/* Texts and lists lie in the arena, which is the caller's. */
typedef struct TileExplanation {
    TileArena *arena;
    bool done; /* something was compiled, and the rest is filled in */
    const char *kernel, *target;
    const char *const *files; /* by the number of a location */
    unsigned vector_bytes;    /* of the target's vectors */
    TILE_LIST(TileExplainedTensor) tensors;
    TILE_LIST(const char *) scalars; /* those that decide strides, bounds or steps: code for their values pays */
    TILE_LIST(TileExplainedTune) tunes;
    TILE_LIST(TilePrediction) candidates; /* the text's own first; none: nothing was chosen by a model */
    size_t chosen;                       /* of them */
    TILE_LIST(TileExplainedPhase) phases;
    char *ptx; /* GPUs */
    bool texts;                            /* asked for: what follows */
    const char *tile_form, *machine_form;  /* with places, in front of and behind the target's passes */
    const char *decided_form;              /* tile form, in which the target's passes have noted what they decided */
    const char *code;                      /* assembly or PTX, with line information */
    const char *const *sources;            /* the texts of `files`; NULL: not known */
    unsigned file_count;
} TileExplanation;

/* The next code that is compiled for a library of this compiler is explained. Borrowed; NULL: no more. Not while
 * another thread compiles. */
void tile_compiler_explain(TileCompiler *compiler, TileExplanation *explanation);

#endif
