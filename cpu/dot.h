/* Internals of cpu-dot, shared by its files:
 *   dot.c          the pass, sizes of blocks, the loops around the micro-kernel
 *   dot_build.c    arithmetic on offsets, loops and branches
 *   dot_pack.c     packing of operands into panels
 *   dot_join.c     products of several iterations that are multiplied together
 *   dot_kernel.c   the micro-kernel and partial blocks of c */
#ifndef TILE_CPU_DOT_H
#define TILE_CPU_DOT_H

#include "lowering/emit.h"

/* One operand: where it is, its byte strides and its element type. */
typedef struct DotOperand {
    TileValue *pointer, *row, *column;
    TileScalar scalar;
} DotOperand;

enum {
    DOT_DEEPEST = 16,
    DOT_JOINED = 6 /* loops whose products are joined, at most */
};

typedef struct Dot {
    TilePassContext *context;
    TileEmitter *emitter;
    TileBuilder *builder;       /* the emitter's */
    TileOp *open[DOT_DEEPEST];  /* loops and branches that are being built; NULL: a loop of one iteration, which is none */
    unsigned open_count;
    DotOperand a, b, c;   /* c.column: one element */
    TileValue *m, *n, *k;
    int64_t m_max, n_max, k_max;
    TileScalar scalar;  /* of accumulators and panels */
    TileName precision; /* TILE_PRECISION_*, of f32 */
    int64_t bytes;      /* of one such element */
    int64_t lanes;      /* of one vector; of 128 bits of a scalable one */
    TileValue *scale;   /* vscale, in units of 128 bits; NULL: vectors are fixed */
    int64_t most_scale; /* the greatest possible scale; 1 for fixed vectors */
    /* The micro-kernel's block of c: block_rows by block_columns, the latter in block_vectors vectors. */
    int64_t block_rows, block_vectors;
    TileValue *block_columns;
    int64_t narrow_vectors; /* of the last block of a full row of blocks, if it has fewer; else 0 */
    int64_t depth;          /* of the panels: how many k are packed at a time, at most */
    bool wide;              /* there are more columns than are packed at a time */
    TileValue *width;       /* if wide: columns of b packed at a time, whole blocks */
    int64_t panel_row;      /* elements from one row of a's panel to the next */
    TileValue *a_panel;     /* block_rows rows of a; dot_spare_rows unused ones before and after them */
    TileValue *b_panel;     /* block of columns by block; in each, row by row, block_columns elements */
    TileValue *spill;       /* a copy of a partial block of c; NULL: its lanes are masked */
} Dot;

/* A block of columns of b for the micro-kernel, and the bytes from one k to the next. */
typedef struct DotPanel {
    TileValue *pointer, *step;
    bool in_place; /* not packed */
} DotPanel;

/* ---- small ops ---- */

TileValue *dot_i64(Dot *dot, int64_t value);
TileValue *dot_add(Dot *dot, TileValue *x, TileValue *y);
TileValue *dot_multiply(Dot *dot, TileValue *x, TileValue *y);
TileValue *dot_scale(Dot *dot, TileValue *x, int64_t factor);
/* These are constants, or values that there are already, where they can be. */
TileValue *dot_binary(Dot *dot, TileOpId id, TileValue *x, TileValue *y);
TileValue *dot_not(Dot *dot, TileValue *x);
TileValue *dot_select(Dot *dot, TileValue *condition, TileValue *x, TileValue *y);
TileValue *dot_minimum(Dot *dot, TileValue *x, TileValue *y);
TileValue *dot_offset(Dot *dot, TileValue *pointer, TileValue *bytes);
/* The number of elements of so many vectors, and of bytes of the accumulators' type. */
TileValue *dot_lanes(Dot *dot, int64_t vectors);
TileValue *dot_vector_bytes(Dot *dot, int64_t vectors);
const TileType *dot_vector(Dot *dot, TileScalar scalar);
/* An f32 vector rounded to tf32, as tile_eval_tf32 does it. */
TileValue *dot_tf32(Dot *dot, TileValue *x);
/* Prefetches into L1. */
void dot_prefetch(Dot *dot, TileValue *pointer);
/* The lanes from `first` on that are below the limit. */
TileValue *dot_mask(Dot *dot, TileValue *first, TileValue *limit);

/* Ops are inserted into the body until the matching end. Returns the induction variable. No loop and no branch is left of
 * those whose trip count is at most 1, or whose condition is known. */
TileValue *dot_for(Dot *dot, TileValue *lo, TileValue *hi, TileValue *step);
void dot_if(Dot *dot, TileValue *condition);
void dot_else(Dot *dot);
/* Ends the innermost for, or the innermost if with or without else. */
void dot_end(Dot *dot);

/* ---- the parts ---- */

/* Packs rows i .. of a, for kc k from k0 on, into a_panel. Rows past the last repeat the last one, or are zero. */
void dot_pack_a(Dot *dot, TileValue *i, TileValue *k0, TileValue *kc);
int64_t dot_spare_rows(const Dot *dot);
/* Packs kc rows of b from k0 on, and `columns` columns from j0 on, into b_panel. The padding of the last block is
 * arbitrary. */
void dot_pack_b(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* Is this the width of the narrow last block? Requires narrow_vectors. */
TileValue *dot_is_narrow(Dot *dot, TileValue *columns);
/* The block of c at (i, j) += a_panel times the panel of b, for kc k. */
void dot_block(Dot *dot, const DotPanel *panel, TileValue *i, TileValue *j, TileValue *kc);

/* The loops around the product, the innermost first, whose products can be joined along k. */
unsigned dot_joined_loops(const Dot *dot, const TileOp *op, TileOp **loops);
/* Chooses the depth of panels for all rows and columns; false: there is nothing to gain. */
bool dot_join_choose(Dot *dot, int64_t deepest);
/* Is a computed by the loop's body for this product alone, into rows of which each has space for a panel's? Then they are
 * the panel: a_panel and panel_row are set, and dot_join has a computed in its place there. */
bool dot_join_reads_in_place(Dot *dot, const TileOp *op, const TileOp *loop);
/* Packs the operands behind those of the iterations before, and multiplies in the last one, or when panels are full. */
void dot_join(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count);

#endif
