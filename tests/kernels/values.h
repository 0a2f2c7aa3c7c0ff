/* Numbers of the types that kernels take: to and from double, random, special. Written apart from lang/eval, which
 * is what these tests are to check. */
#ifndef TESTS_KERNELS_VALUES_H
#define TESTS_KERNELS_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "tile/dlpack.h"

typedef enum Type {
    TYPE_F32,
    TYPE_F16,
    TYPE_BF16,
    TYPE_F8E4M3,
    TYPE_F8E5M2,
    TYPE_F64,
    TYPE_I8,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_U8,
    TYPE_U16,
    TYPE_U32,
    TYPE_U64,
    TYPE_BOOL,
    TYPE_COUNT
} Type;

const char *type_name(Type type);
/* False when no type has this name. */
bool type_find(const char *name, Type *type);
unsigned type_bytes(Type type);
DLDataType type_dlpack(Type type);
/* Half the distance from 1 to the next number: the relative error of one rounding. */
double type_roundoff(Type type);
/* The least number above zero: the distance between denormals. */
double type_denormal(Type type);

double value_load(Type type, const void *address);
/* Rounds to nearest even; the value must be in the range of an integer type. */
void value_store(Type type, void *address, double value);
/* The bits, any NaN as one and the same. */
uint64_t value_bits(Type type, const void *address);
/* The nearest number of the type. */
double value_round(Type type, double value);
typedef struct Random {
    uint64_t state;
} Random;

Random random_create(uint64_t seed);
uint64_t random_next(Random *random);
/* In 0 .. 1. */
double random_unit(Random *random);
/* About normal, mean 0, variance 1, never beyond 6. */
double random_normal(Random *random);

typedef enum Special {
    SPECIAL_NONE,
    SPECIAL_FINITE, /* zeros of both signs, denormals */
    SPECIAL_ALL     /* also infinities and NaN */
} Special;

/* An integer of the type that is no index into a dimension of `limit` elements, or nearly none: negative, the limit,
 * the ends of the type, and numbers that would fall inside if bytes or 32 bits of them were all that counted. */
int64_t random_hostile(Random *random, Type type, int64_t limit);

/* A special number of the type. */
double random_special(Random *random, Type type, Special special);

#endif
