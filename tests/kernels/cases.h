/* The kernels under test: where each is, what it takes, and the reference for it. */
#ifndef TESTS_KERNELS_CASES_H
#define TESTS_KERNELS_CASES_H

#include <stddef.h>

#include "reference.h"
#include "tile/tile.h"

typedef enum Role { ROLE_NONE, ROLE_IN, ROLE_OUT, ROLE_INOUT, ROLE_NUMBER, ROLE_INTEGER, ROLE_TRUTH } Role;

/* The type of a tensor: the row's first, the row's second, or fixed. */
typedef enum Kind { KIND_T, KIND_U, KIND_F32, KIND_I8, KIND_I32, KIND_I64, KIND_BOOL } Kind;

typedef struct Parameter {
    const char *name;
    Role role;
    const char *dimensions; /* tensors: a letter each; an integer may take its value from the row's sizes, by letter */
    Kind kind;
    Special special; /* the wildest numbers it may be given */
    char indexes;    /* the dimension that its integers are indices into; 0: it holds no indices */
    bool ascending;  /* indices: from the first to the last of the dimension */
} Parameter;

enum { MAX_PARAMETERS = 9, MAX_SETTINGS = 2 };

typedef struct Case {
    const char *name; /* as in tests/matrix.tsv: file:kernel, or file:kernel/variant; the file from stdlib/ */
    Parameter parameters[MAX_PARAMETERS];
    double scalar[MAX_SCALARS]; /* values of the scalar parameters, in their order */
    Reference *reference;
    TileSetting settings[MAX_SETTINGS];
    bool elementwise; /* special numbers may be everywhere without drowning the rest */
} Case;

typedef struct CaseTable {
    const Case *items;
    size_t count;
} CaseTable;

extern const CaseTable product_cases, example_cases; /* cases_products.c, cases_examples.c */

/* Of all tables; NULL when there is none. */
const Case *case_find(const char *name);

#endif
