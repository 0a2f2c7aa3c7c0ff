/* Instructions whose semantics in the emulator are compared with a GPU's: for a warp of 32 lanes, input and output
 * words of each lane. The inputs are generated here from the case's number, so tests/gpu/vectors.txt has only the GPU's
 * outputs (recorded by tests/gpu/record.c). */
#ifndef TILE_TESTS_VECTORS_H
#define TILE_TESTS_VECTORS_H

#include <stdint.h>

enum { VECTOR_LANES = 32, VECTOR_MOST_WORDS = 12 };

/* The kinds of input data. */
typedef enum VectorData {
    VECTOR_BITS,     /* arbitrary, including NaN and infinity */
    VECTOR_INTEGERS, /* small integers in the type of the operands: sums of products are exact in any order */
    VECTOR_NUMBERS,  /* numbers of several magnitudes */
    VECTOR_SPECIALS  /* of f32: zeros, subnormals, infinities, NaN, and arguments with such results */
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
    unsigned capability; /* the minimum that has it */
    unsigned in, out;    /* words per lane */
    VectorType type;     /* of the first `operands` words; the others are accumulators, f32 or, for S8, s32 */
    unsigned operands;
    unsigned parameter; /* if not 0, the last word of all lanes has values 0 to parameter - 1, one after the other in
                         * successive vectors. For a permutation of the lanes it is VECTOR_LANES, and each lane has its
                         * own. */
    const char *ptx;    /* from words %i0 .. to %o0 ..; %s is the address of 512 bytes of shared memory */
} VectorCase;

extern const VectorCase vector_cases[];
extern const unsigned vector_case_count;

/* The words of vector `number` of a case, by lane. */
void vector_make(const VectorCase *item, VectorData data, unsigned number,
                 uint32_t words[VECTOR_LANES][VECTOR_MOST_WORDS]);

#endif
