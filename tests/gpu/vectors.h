/* Instructions whose meaning in the emulator is compared with what a GPU does: for a warp of 32 lanes, words in and
 * words out of each lane. The words that go in are made here from the case's number, so that tests/gpu/vectors.txt
 * holds only what a GPU made of them (tests/gpu/record.c wrote it). */
#ifndef TILE_TESTS_VECTORS_H
#define TILE_TESTS_VECTORS_H

#include <stdint.h>

enum { VECTOR_LANES = 32, VECTOR_MOST_WORDS = 12 };

/* What the words are. */
typedef enum VectorData {
    VECTOR_BITS,     /* anything, NaN and infinity among it */
    VECTOR_INTEGERS, /* small integers in the type of the operands: sums of products are exact in any order */
    VECTOR_NUMBERS,  /* numbers of several magnitudes */
    VECTOR_SPECIALS  /* of f32: zeros, subnormals, infinities, NaN, and where results begin to be such */
} VectorData;

typedef enum VectorType {
    VECTOR_B32,
    VECTOR_F16,
    VECTOR_BF16,
    VECTOR_TF32,
    VECTOR_S8,
    VECTOR_E4M3,
    VECTOR_E5M2,
    VECTOR_F32 /* arithmetic on one lane's words */
} VectorType;

typedef struct VectorCase {
    const char *name;
    unsigned capability; /* the least that has it */
    unsigned in, out;    /* words of a lane */
    VectorType type;     /* of the first `operands` words; those behind are accumulators, f32 or, of S8, s32 */
    unsigned operands;
    unsigned parameter; /* how many values the last word of all lanes has: 0 to parameter - 1, by turns; 0: none. Of a
                         * permutation of the lanes it is VECTOR_LANES, and each lane has its own. */
    const char *ptx;    /* words %i0 .. to %o0 ..; %s is the address of 512 bytes of shared memory */
} VectorCase;

extern const VectorCase vector_cases[];
extern const unsigned vector_case_count;

/* The words of vector `number` of a case, by lane. */
void vector_make(const VectorCase *item, VectorData data, unsigned number,
                 uint32_t words[VECTOR_LANES][VECTOR_MOST_WORDS]);

#endif
