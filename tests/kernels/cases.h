/* The kernels under test: their files, arguments and references. */
#ifndef TESTS_KERNELS_CASES_H
#define TESTS_KERNELS_CASES_H

#include <stddef.h>

#include "reference.h"
#include "tile/tile.h"

typedef enum Role { ROLE_NONE, ROLE_IN, ROLE_OUT, ROLE_INOUT, ROLE_NUMBER, ROLE_INTEGER, ROLE_TRUTH } Role;

/* The type of a tensor: the row's first or second one, or a fixed one. */
typedef enum Kind { KIND_T, KIND_U, KIND_F32, KIND_I8, KIND_U8, KIND_I32, KIND_I64, KIND_BOOL } Kind;

typedef struct Parameter {
    const char *name;
    Role role;
    const char *dimensions; /* tensors: a letter for each; an integer may be one of the row's sizes, by letter */
    Kind kind;
    Special special; /* the most unusual numbers that it may be given */
    char indexes;    /* the dimension that its elements are indices of; 0: they are not indices */
    bool ascending;  /* indices: from the first to the last of the dimension */
} Parameter;

enum { MAX_PARAMETERS = 15, MAX_SETTINGS = 2 };

typedef struct Case {
    const char *name; /* as in tests/matrix.tsv: file:kernel, or file:kernel/variant; the file in stdlib/ */
    Parameter parameters[MAX_PARAMETERS];
    double scalar[MAX_SCALARS]; /* values of the scalar parameters, in order */
    Reference *reference;
    TileSetting settings[MAX_SETTINGS];
    bool elementwise; /* special values in any number still leave other results to compare */
} Case;

typedef struct CaseTable {
    const Case *items;
    size_t count;
} CaseTable;

extern const CaseTable product_cases, library_cases, example_cases, program_cases, form_cases; /* cases_products.c, .. */

/* In all tables; NULL if there is none. */
const Case *case_find(const char *name);

#endif
