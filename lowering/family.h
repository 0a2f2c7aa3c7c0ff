/* A family of targets: its machines, and its pipeline of passes. cpu/ and ptx/ have one each; emitting and loading
 * code is the task of driver/compile/backend.h. */
#ifndef TILE_LOWERING_FAMILY_H
#define TILE_LOWERING_FAMILY_H

#include "lowering/pass.h"

/* TILE_LINE_BYTES: of the L2 cache of a GPU. */
enum { TILE_MOST_EXTENTS = 64, TILE_LINE_BYTES = 128 };

/* Extents of the tensors that a kernel is called with, by the kernel's parameters; of scalars, rank 0. Of an integer that decides bounds,
 * steps or strides its value, as extent 0 of one that `is_number`. */
typedef struct TileExtents {
    uint32_t count, rank[TILE_MOST_EXTENTS];
    int64_t extent[TILE_MOST_EXTENTS][TILE_MAX_TENSOR_RANK];
    bool is_number[TILE_MOST_EXTENTS];
    uint8_t grain[TILE_MOST_EXTENTS]; /* the power of two, up to TILE_LINE_BYTES, that divides strides in bytes, and, up to 16, the address; 0: as much as that */
} TileExtents;

/* What a launch would take, and most of it for what: times in microseconds. They compare points of one kernel. */
typedef struct TileEstimate {
    double time, launch; /* launch: what of it any launch takes */
    double memory, compute, waiting; /* if each were all there is */
    double programs, together;       /* of the grid that takes longest, and how many of them run at a time */
    bool streams; /* loads of what each program reads for itself, and once, had better leave the cache first (TileFunc.stream) */
    uint32_t once; /* arguments, as bits, that products read once, and had better leave the cache first (TileFunc.once) */
    bool busy; /* while a program waits, others compute or the memory is busy (TileFunc.busy) */
    bool alone; /* each of these programs has a multiprocessor to itself */
    bool few; /* or two of them, as blocks of clusters that share programs */
    bool spills; /* threads of some grid have fewer registers than they would use */
    bool kept, reloads; /* rows that several loops go over stay in registers; code for that has no rows (TileFunc.reloads) */
    bool keeps;         /* of those that stay some have no class (TileFunc.keeps) */
    bool singles;       /* rows are loaded element by element */
    uint32_t split_programs[TILE_MOST_SPLITS]; /* of the first grids whose last loop is split (TileFunc.split_programs); 0: no other is */
    uint32_t blocks_together[TILE_MOST_SPLITS]; /* blocks of the first grids of which a multiprocessor has to have room for so many, and would not surely (TileFunc.blocks_together) */
    bool splits; /* a grid has several parts of a program's sums (gpu-split-grids), and the one that takes longest has enough programs without */
    bool tight; /* whether a block has room for all its tiles, only machine form says (TileFamily.has_room) */
} TileEstimate;

/* What the model decides beside the values of a tune clause: a kernel's function has members of the same names. */
typedef struct TileSchedule {
    uint32_t least_programs; /* grids with fewer are split; 0: none */
    uint32_t split_programs[TILE_MOST_SPLITS]; /* that the first of these grids have; 0: no other is split */
    uint32_t blocks_together[TILE_MOST_SPLITS]; /* so many blocks of the first of these grids a multiprocessor has room for; 0: as it comes */
    bool packs;              /* operands of products are copied to where a tensor map can describe them */
    bool stream;             /* what each program reads for itself, and once, leaves the cache first */
    uint32_t once;           /* arguments, as bits: what products read of them, once, leaves the cache first */
    bool busy;               /* while a program waits, others compute or the memory is busy */
    bool reloads;            /* rows that several loops go over are loaded again by each */
    bool keeps;              /* such rows stay in registers though they have no class */
    uint32_t joined_rows, joined_columns; /* programs are computed together, up to so many of products; 0: none are */
    uint32_t joined_lanes, joined_axis; /* programs without products, up to so many elements of a tile, along an axis; 0: none are */
    uint32_t turns;          /* so many programs of a block multiply in turn; 0: none do */
    uint32_t warps;          /* of one of these programs, or of a block without products; 0: as the tune clause has it */
    uint32_t cluster;        /* so many blocks load together what they share; 0: each for itself */
} TileSchedule;

typedef struct TileFamily {
    TileTargetKind kind;
    const char *name;            /* in tune clauses, tuning files and pipelines: "gpu" */
    const char *title, *folder;  /* for documents: "GPU", "ptx" */
    const TilePassTable *passes; /* the family's own */
    /* Targets in ascending preference; NULL past the last. */
    const TileTarget *(*target_at)(unsigned index);
    /* The pipeline from checked tile form to machine form that mlir_bridge maps 1:1: names of passes of lowering/ and
     * of the family, in order, separated by commas. `target` may be NULL: for any of them. */
    const char *(*pipeline)(const TileTarget *target);
    /* The pass behind which `estimate` reads the kernel and its phases, in tile form; NULL: the family has no model. */
    const char *estimated_behind;
    /* Numbers of programs, ascending, for which a grid with fewer may be split (TileFunc.least_programs); 0 past the
     * last. `plain` is the kernel without that, behind that pass. NULL: grids are not split. */
    uint32_t (*least_programs)(const TileTarget *target, const TileModule *plain, unsigned index);
    bool packs; /* operands of products may be packed (TileFunc.packs) */
    /* Rows and columns of products for which programs may be computed together (TileFunc.joined_rows), in an order of
     * preference; false past the last. NULL: none are. */
    bool (*joined)(unsigned index, uint32_t *rows, uint32_t *columns);
    /* The same of programs without products, which may go through lists (tile_goes_through_list): elements of their largest tile, and the grid's axis
     * (TileFunc.joined_lanes). */
    bool (*joined_lanes)(unsigned index, bool lists, uint32_t *lanes, uint32_t *axis);
    /* Numbers of warps, ascending, for a program of those of a block that take turns (TileFunc.turns); 0 past the last. NULL:
     * none do. */
    uint32_t (*turning_warps)(unsigned index);
    uint32_t most_warps; /* that a schedule may ask for where nothing is multiplied (TileFunc.warps); 0: none does */
    uint32_t cluster; /* blocks that may be a cluster (TileFunc.cluster); 0: none are */
    /* Blocks that may be a cluster where nothing is multiplied, ascending, and share the loops of a program; 0 past the last. NULL: none do. */
    uint32_t (*sharing)(unsigned index);
    /* False: the kernel cannot be compiled for the target. Numbers the functions' values. */
    bool (*estimate)(const TileTarget *target, TileFunc *kernel, const TileExtents *extents, TileArena *scratch,
                     TileEstimate *estimate);
    /* The pass behind which a phase knows the bytes of shared memory of a block; and has a block of the target so many?
     * NULL where `estimate` is. */
    const char *measured_behind;
    bool (*has_room)(const TileTarget *target, const TileFunc *phase);
} TileFamily;

/* NULL if the family has no target of this name. */
const TileTarget *tile_family_target(const TileFamily *family, const char *name);

/* Appends the passes of the family's pipeline. TILE_INTERNAL, with a message, if a name is no pass. */
tile_status tile_family_pipeline(const TileFamily *family, const TileTarget *target, TilePipeline *pipeline,
                                 TileArena *arena, TileText *message);

#endif
