/* tests/matrix.tsv: one row for each run of a kernel. */
#ifndef TESTS_KERNELS_MATRIX_H
#define TESTS_KERNELS_MATRIX_H

#include "cases.h"

typedef struct Row {
    int line;
    char *text;   /* the line, split into the fields below */
    char *kernel; /* a case's name */
    char *types;  /* T, or T:U where the output's type differs */
    char *target; /* interp, avx2, avx512, sve.256 (bits), machine.avx2, machine.sve.256, machine.sm_80, cuda */
    char *sizes;  /* M=3 N=1025 */
    char *views;  /* x=rows y=strided; the default is contiguous */
    char *data; /* normal, wide (many magnitudes), integers (-8 to 8: sums are exact in any order), special (infinities,
                 * NaN, subnormals), hostile (indices) */
    char *placement; /* begin, end: which end of an array touches a guard page */
    char *tune;      /* BM=1 BN=1024, or - for the defaults */
} Row;

typedef struct Matrix {
    Row *rows;
    size_t count;
} Matrix;

/* False, after a message, if the file cannot be read or a row has a wrong number of fields. */
bool matrix_read(Matrix *matrix, const char *path);
void matrix_destroy(Matrix *matrix);

/* "3" for "N" in "M=2 N=3"; false if it is not there. */
bool matrix_value(const char *settings, const char *name, char *value, size_t size);

/* Does every kernel that a file of `directory` (the standard library) exports or defines have a row? False, after
 * listing those without. */
bool matrix_covers(const Matrix *matrix, const char *directory);

#endif
