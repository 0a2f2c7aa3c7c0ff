/* Internals of cpu-dot, shared by its files:
 *   dot.c          the pass, sizes of blocks, the loops around the micro-kernel
 *   dot_build.c    arithmetic on offsets, loops and branches
 *   dot_pack.c     packing of operands into panels
 *   dot_join.c     products of several iterations that are multiplied together
 *   dot_direct.c   products whose sums go to a tensor as they are
 *   dot_finish.c   what is computed of a product's sums, block by block
 *   dot_amx_pack.c packing for AMX
 *   dot_amx_kernel.c  the micro-kernel of AMX, and the configuration of tile registers
 *   dot_amx.c      sizes and loops for AMX
 *   dot_words.c    products of words by vectors: their block, and the sign of bytes
 *   dot_amx_keep.c panels that are packed once for several programs
 *   dot_unpacked.c right operands that are read where they are, since few rows are multiplied with them
 *   dot_kernel.c   the micro-kernel of vectors, and partial blocks of c */
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
    DOT_FETCHED = 8,
    DOT_JOINED = 6, /* loops whose products are joined, at most */
    DOT_PANEL_AHEAD = 1024, /* bytes of b's panel that are fetched ahead: 8 steps of 32 columns, which take longer than a line from L2 */
    DOT_FINISHED = 16 /* loads, loops and stores of what is computed of the sums, at most of each */
};

/* The loop over rows that computes something of the sums, and what of it is different for a part of its rows and columns (dot_finish.c). */
typedef struct DotFinish {
    TileOp *rows;          /* NULL: there is none */
    TileValue *first, *first_row; /* its column of c's first one, and its row */
    int64_t span;          /* columns of a part */
    TileValue *part;       /* their sums, row by row */
    TileOp *loads[DOT_FINISHED]; /* of sums, */
    TileValue *indices[DOT_FINISHED]; /* from these columns on */
    TileOp *loops[DOT_FINISHED]; /* over columns */
    TileOp *rests[DOT_FINISHED]; /* branches to what is behind the last whole vector, */
    TileValue *rest_columns[DOT_FINISHED]; /* from these columns on */
    unsigned load_count, loop_count, rest_count;
    bool all_rows;         /* they are those of the product, no more */
} DotFinish;

typedef struct Dot {
    TilePassContext *context;
    const TileOp *op; /* the dot_block */
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
    bool a_columns;         /* a's panel has for each k the rows of the block, side by side; else row after row */
    int64_t a_block;        /* then the panel has all blocks of rows, each so many bytes behind the one before; 0: one block */
    TileValue *a_near;      /* do rows of such an a lie so near to one another that full blocks are read where they are? NULL: they never are */
    TileValue *a_step;      /* then the bytes from one k to the next of the block that is multiplied; NULL: those of its panel */
    TileValue *a_panel;     /* block_rows rows of a; dot_spare_rows unused ones before and after them */
    TileValue *b_panel;     /* block of columns by block; in each, row by row, block_columns elements */
    int64_t b_row;          /* bytes from one row of b's panel to the next, if that has whole rows; 0: it has blocks */
    TileValue *spill;       /* a copy of a partial block of c; NULL: its lanes are masked */
    bool words;             /* panels have the operands' types, in words of 4 bytes along k (dot_amx_pack.c) */
    bool amx;               /* tile registers multiply them; else vectors */
    bool flips;             /* the right operand's bytes are signed, and packed with 128 added to each */
    TileValue *row_sums;    /* then 128 times the sums of the rows of a's block; else NULL */
    int64_t element;        /* its bytes */
    int64_t group;          /* elements of a tile register's row */
    TileValue *b_word;      /* where b is packed behind other products: so many words before it; NULL: at the front */
    TileValue *staging;     /* a tile register's worth of memory */
    int64_t rows_ahead;     /* rows of the next block that are copied during a block; 0: none is */
    TileValue *fetched[DOT_FETCHED]; /* rows of a's next block that the micro-kernel fetches: of each the element of its k */
    int64_t fetched_count;
    TileValue *next_panel;  /* where they go to; NULL: there is no next block */
    TileValue *next_row;    /* the first of them, */
    TileValue *next_corner; /* counted from here, a's first row */
    int64_t slots;          /* panels of b that are kept; 1: none is */
    int64_t slot_bytes;     /* of one panel of b */
    TileValue *b_slots, *keys; /* the panels; which they are */
    TileValue *unpacked;    /* are there so few rows that b is read where it is (dot_unpacked.c)? NULL: it never is */
    TileValue *near;        /* and do its rows lie so near to one another that all k are read at once? */
    TileValue *rest_panel;  /* then its last columns, which are less than a block, */
    TileValue *packs;       /* is that to be packed, or b's panel? */
    TileValue *slot;        /* else where its panel begins, in bytes from the first one on */
    TileValue *split, *rows_end; /* the first row of the last block, and the one behind those of the block that is being multiplied; NULL: blocks are full but for the last one */
    /* Where sums begin in registers and are stored to a tensor (dot_direct.c): is it the loop's first iteration, and the last one? NULL: they do not. */
    TileValue *first, *last;
    bool begins;               /* sums begin in registers, and there is one multiplication */
    TileValue *out, *out_row;  /* the tensor's first element, and the bytes to its next row */
    TileOp *clears, *copies;   /* what does so without */
    DotFinish finish;          /* then `out` and `out_row` are its part's */
} Dot;

/* A block of columns of b for the micro-kernel, and the bytes from one k to the next. */
typedef struct DotPanel {
    TileValue *pointer, *step;
    bool in_place;    /* not packed */
    TileValue *ahead; /* bytes to what is fetched for steps to come; NULL: it is packed, which says how far it is, or in place */
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
/* What a column of b's panel takes: its depth, and for vectors one element or word more, so that a row's blocks of columns are packed to
 * different cache sets. */
int64_t dot_column_bytes(const Dot *dot);
const TileType *dot_vector(Dot *dot, TileScalar scalar);
/* An f32 vector rounded to tf32, as tile_eval_tf32 does it. */
TileValue *dot_tf32(Dot *dot, TileValue *x);
/* To TILE_CACHE_L1 or TILE_CACHE_L2. */
void dot_prefetch(Dot *dot, TileValue *pointer, TileName level);
/* The lanes from `first` on that are below the limit. */
TileValue *dot_mask(Dot *dot, TileValue *first, TileValue *limit);

/* Ops are inserted into the body until the matching end. Returns the induction variable. No loop and no branch is left of
 * those whose trip count is at most 1, or whose condition is known. */
TileValue *dot_for(Dot *dot, TileValue *lo, TileValue *hi, TileValue *step);
void dot_if(Dot *dot, TileValue *condition);
void dot_else(Dot *dot);
/* Ends the innermost for, or the innermost if with or without else. */
void dot_end(Dot *dot);

/* ---- AMX, and words by vectors ---- */

/* A group of k is what a tile register holds of a row: 64 bytes. Panels of a have rows of groups; those of b have for
 * each group two tiles of 16 columns, in which row i has the elements of the i-th 4 bytes along k, column by column. What a
 * group has past the last k is zero. For vectors the rows of both tiles alternate, so that words follow one another. */
enum { DOT_AMX_ROWS = 16, DOT_AMX_BYTES = 64, DOT_AMX_TILE = DOT_AMX_ROWS * DOT_AMX_BYTES, DOT_AMX_WORD = 4,
       DOT_AMX_AHEAD = 8 /* rows that are copied during a block, at most */ };

/* A vector of elements, of which those from `limit` on are zero (NULL: all are loaded); and of rows of them, one for each k of a word, 16 words from
 * column `first` on. */
TileValue *dot_amx_load(Dot *dot, TileValue *pointer, int64_t lanes, TileValue *limit);
TileValue *dot_amx_words_of(Dot *dot, TileValue *const *rows, int64_t first);
/* Packs rows i + first .. i + rows of a, and b, as dot_pack_a and dot_pack_b. */
void dot_amx_pack_a(Dot *dot, TileValue *i, TileValue *first, TileValue *rows, TileValue *k0, TileValue *kc);
/* Are rows of a known to be contiguous? Then a block's can be copied one group at a time: dot_amx_row_ahead begins a row, r
 * behind next_row, and dot_amx_copy_ahead copies a group of it. */
typedef struct DotRow {
    TileValue *from, *to;
} DotRow;
bool dot_amx_has_rows(const Dot *dot);
DotRow dot_amx_row_ahead(Dot *dot, int64_t r);
void dot_amx_copy_ahead(Dot *dot, const DotRow *row, TileValue *group, TileValue *kc);
/* Zeros behind k elements of all rows of a, which begin at `panel`, up to a multiple of `unit`. */
void dot_amx_fill_rows(Dot *dot, TileValue *panel, TileValue *k, int64_t unit);
/* The number of words that so many k take. */
TileValue *dot_amx_word(Dot *dot, TileValue *k);
/* Zeros behind the k, a number of whole words, that the panels have, up to the end of the last group. */
void dot_amx_clear_tail(Dot *dot, TileValue *k);
void dot_amx_pack_b(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* How many panels of b are kept, each of so many bytes; and the memory for their keys. */
void dot_amx_choose_slots(Dot *dot, int64_t panel_bytes);
/* Where the panel of b from (k0, j0) on is or goes to, in bytes from the first one on, and whether it has to be packed (NULL: it always has). */
TileValue *dot_amx_find_panel(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc,
                              TileValue **missing);
/* Does a slot have it? NULL: none is kept. */
TileValue *dot_amx_has_panel(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* The number of groups of so many k. */
TileValue *dot_amx_groups(Dot *dot, TileValue *kc);
/* The block of the micro-kernel; the panels of one product, or those of joined ones, once the depth is chosen. A joined product
 * begins at a word; a group is packed as a whole, so that there is space for one behind the last k. */
void dot_amx_choose_block(Dot *dot);
void dot_amx_choose_panels(Dot *dot);
void dot_amx_choose_joined(Dot *dot);
/* How deep panels are at most. */
int64_t dot_amx_deepest(const Dot *dot);
/* Bytes from a word of b's panel to the next one of its column, and from a vector of columns to the next. */
int64_t dot_word_step(const Dot *dot);
int64_t dot_vector_step(const Dot *dot);
/* By vectors: the block of the micro-kernel; what the bytes of the operands need; and the sums of the rows of a's panel. */
void dot_words_choose_block(Dot *dot);
/* Where a's rows lie side by side: its panel, or how large each block of it is; blocks of rows from number `first` to `end` are packed. */
bool dot_words_has_columns(const Dot *dot);
int64_t dot_words_columns_block(const Dot *dot);
void dot_words_build_columns(Dot *dot);
void dot_words_pack_columns(Dot *dot, TileValue *first, TileValue *end, TileValue *k0, TileValue *kc);
void dot_words_sum_rows(Dot *dot, TileValue *kc);
/* sum + the products of a word of a, the same for all lanes, with one of b for each lane. */
TileValue *dot_words_multiply(Dot *dot, TileValue *a, TileValue *b, TileValue *sum);
/* The micro-kernel, on block_rows of c and `vectors` vectors of 16 columns. */
void dot_amx_kernel(Dot *dot, const DotPanel *panel, TileValue *c, TileValue *row, int64_t vectors, TileValue *kc);
/* All rows, for some columns and some k. */
void dot_amx_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* c += a_panel times b_panel, which have all rows and columns, for kc k. */
void dot_amx_multiply(Dot *dot, TileValue *kc);
/* Configures tile registers at the front of the function, and releases them at its end. */
void dot_amx_configure(TileEmitter *emitter, TileFunc *func);

/* ---- the parts ---- */

/* Packs rows i .. of a, for kc k from k0 on, into a_panel. Rows past the last repeat the last one, or are zero. */
void dot_pack_a(Dot *dot, TileValue *i, TileValue *k0, TileValue *kc);
/* While the block of rows from i on is multiplied with the block of columns at j, the micro-kernel fetches some of the next block's
 * rows, if they are known to be contiguous. */
void dot_fetch_rows(Dot *dot, TileValue *i, TileValue *j, TileValue *k0);
/* Fetches what of these rows belongs to step number `step` of the micro-kernel, which takes so many k. */
void dot_fetch_next(Dot *dot, TileValue *step, int64_t each);
/* Where a_block is set: all rows; and where the block that begins with row i lies. */
TileValue *dot_columns_of_block(Dot *dot, TileValue *panels, TileValue *i);
void dot_pack_all_columns(Dot *dot, TileValue *k0, TileValue *kc);
/* The block from row i on, which is the last one and has fewer. */
void dot_pack_last_columns(Dot *dot, TileValue *i, TileValue *k0, TileValue *kc);
int64_t dot_spare_rows(const Dot *dot);
/* Do a's rows lie side by side for each k, so many that a vector has a block's? */
bool dot_has_columns(const Dot *dot);
/* Packs kc rows of b from k0 on, and `columns` columns from j0 on, into b_panel. The padding of the last block is
 * arbitrary. */
void dot_pack_b(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* May it read a where it is, whose rows lie side by side for each k? Then `a_near` says at run time whether it does. */
void dot_unpacked_choose_a(Dot *dot);
/* Packs what is not read there, in front of the loop over blocks of rows and for one of them; in `a_panel` is then where that begins. */
void dot_unpacked_all_columns(Dot *dot, TileValue *k0, TileValue *kc);
void dot_unpacked_columns(Dot *dot, TileValue *panels, TileValue *i, TileValue *k0, TileValue *kc);
/* May the product read b where it is? Then `unpacked` says at run time whether it does. */
void dot_unpacked_choose(Dot *dot);
/* For these columns, in front of the loop over k: what is packed already is read from there. */
void dot_unpacked_begin(Dot *dot, TileValue *j0, TileValue *columns);
/* Are the k then multiplied in parts, and how many at a time? */
bool dot_unpacked_has_parts(const Dot *dot);
TileValue *dot_unpacked_depth(Dot *dot);
/* The panel of b from (k0, j0) on, packed unless b is read where it is. */
void dot_unpacked_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc);
/* Its block of columns from j on; where it is not packed, b's own. */
DotPanel dot_unpacked_block(Dot *dot, TileValue *j0, TileValue *j, TileValue *columns, TileValue *k0);
/* Is this the width of the narrow last block? Requires narrow_vectors. */
TileValue *dot_is_narrow(Dot *dot, TileValue *columns);
/* Blocks of rows: all are full but for the last one; but where that has so few rows that a smaller micro-kernel takes them together with some of the last full block, and
 * a second one the others, these two divide them. dot_split_rows is called in front of the loop over rows by blocks, dot_begin_rows in it, with its induction
 * variable, for the block's first row. */
void dot_split_rows(Dot *dot);
TileValue *dot_begin_rows(Dot *dot, TileValue *i);
/* The block of c at (i, j) += a_panel times the panel of b, for kc k. */
void dot_block(Dot *dot, const DotPanel *panel, TileValue *i, TileValue *j, TileValue *kc);

/* Can the micro-kernel begin with zeros in the first iteration of the loops (then `first` is to be set; where there is no loop that adds, `begins` is)? Can it store to a tensor in the last
 * one as well? Then `out` and `out_row` are set, to be used with `last`. dot_direct_finish leaves what clears and copies the sums to loops without iterations. */
bool dot_direct_find(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count);
void dot_direct_finish(Dot *dot, TileOp *const *loops, unsigned count);
/* Is something computed of the sums by the loop over rows, behind the outermost loop around the product, that can be computed block by block? */
bool dot_finish_find(Dot *dot, const TileOp *product, TileOp *rows);
/* Where the sums of the block at column j go to, and the bytes to their next row. */
TileValue *dot_finish_part(Dot *dot, TileValue *j);
TileValue *dot_finish_row(Dot *dot);
/* Behind the block at (i, j): computes what there is of the rows and columns that have all of their products now. */
void dot_finish_block(Dot *dot, TileValue *i, TileValue *j);
/* The same number, where it is positive. */
bool dot_is_count(const TileValue *count, const TileValue *value);
bool dot_is_same_index(const TileValue *x, const TileValue *y);
/* Are there so many from the first one to the end, where that is behind it? */
bool dot_is_range(const TileValue *count, const TileValue *first, const TileValue *end);
/* The row and the column of c's first element, if `from` points to row 0 and column 0 of the memory that c is in. */
bool dot_place_in(const Dot *dot, const TileValue *from, TileValue **row, TileValue **column);
/* base + index * bytes: the same base and bytes in all accesses. */
bool dot_is_step(const TileValue *pointer, const TileValue *index, const TileValue **base, const TileValue **bytes);
/* The parameter that the pointer is derived from, if no other tensor has its memory; else NULL. Is it accessed in the loop? */
const TileValue *dot_tensor_of(const TileValue *pointer);
bool dot_is_accessed(const TileValue *pointer, const TileOp *loop);
/* Is this the last iteration of all these loops? */
TileValue *dot_is_last(Dot *dot, TileOp *const *loops, unsigned count);
/* The loops around the product, the innermost first, whose products can be joined along k. */
unsigned dot_joined_loops(const Dot *dot, const TileOp *op, TileOp **loops);
/* Chooses the depth of panels for all rows and columns; false: there is nothing to gain. */
bool dot_join_choose(Dot *dot, int64_t deepest);
/* Is a computed by the loop's body for this product alone, into rows of which each has space for a panel's? Then they are
 * the panel: a_panel and panel_row are set, and dot_join has a computed in its place there. */
bool dot_join_reads_in_place(Dot *dot, const TileOp *op, TileOp *const *loops, unsigned count);
/* The same for b, whose rows follow one another: b_panel and b_row are set. */
bool dot_join_reads_b_in_place(Dot *dot, const TileOp *op, TileOp *const *loops, unsigned count);
/* Packs the operands behind those of the iterations before, and multiplies in the last one, or when panels are full. Builds as
 * many panels of b as pay, of slot_bytes each. */
void dot_join(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count);

#endif
