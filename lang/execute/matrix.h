/* Matrices of products of warpgroups: in shared memory as descriptors describe them, or in registers. */
#ifndef TILE_LANG_EXECUTE_MATRIX_H
#define TILE_LANG_EXECUTE_MATRIX_H

#include "lang/execute/state.h"

enum { MATRIX_ROWS = 64, MATRIX_MOST_ROWS = 256, MATRIX_MOST_K = 32, MATRIX_K_BITS = 256 };

/* A matrix in the block's shared memory. */
typedef struct ExecMatrix {
    uint32_t start, leading, stride, swizzle; /* bytes */
    uint32_t rows;                            /* of b: columns */
    TileScalar scalar;
    bool transposed; /* k is not the contiguous axis */
} ExecMatrix;

/* Elements along k, one row after the other; of b, its columns are the rows. */
typedef struct ExecOperand {
    double values[MATRIX_MOST_ROWS][MATRIX_MOST_K];
    int16_t exponents[MATRIX_MOST_ROWS][MATRIX_MOST_K]; /* of floats, base 2 */
    uint8_t poison[MATRIX_MOST_ROWS];                   /* of a row: is one of its elements poison? */
} ExecOperand;

/* The matrix that operand 0 or 1 of a wgmma describes; false, and the thread stops, if it is none. */
bool tile_exec_find_matrix(TileExecutor *e, const ExecInstruction *in, unsigned operand, ExecMatrix *matrix);
/* It is going to be read: by an access that is under way until it is said to belong to an entry of clocks and a time.
 */
bool tile_exec_begin_matrix(TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix);
void tile_exec_end_matrix(const TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix, uint32_t entry,
                          uint32_t time);
/* Reads it; it was begun before. */
void tile_exec_read_matrix(TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix, ExecOperand *operand);
/* `a` from the registers of a warpgroup. */
void tile_exec_take_fragment(TileExecutor *threads, const ExecInstruction *in, ExecOperand *operand);
/* Adds the products to `count` sums of each thread of a warpgroup, in the fragments of wgmma. */
void tile_exec_multiply(const ExecInstruction *in, const ExecOperand *a, const ExecOperand *b, uint64_t *sums,
                        uint8_t *poison);

#endif
