/* Numbers of the types of kernels' arguments: conversion from and to double, random and special numbers. Independent of
 * lang/scalar, which these tests check. */
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
/* False if no type has this name. */
bool type_find(const char *name, Type *type);
unsigned type_bytes(Type type);
DLDataType type_dlpack(Type type);
/* Half the distance from 1 to the next number: the relative error of a rounding. */
double type_roundoff(Type type);
/* The smallest positive number: the distance between subnormals. */
double type_denormal(Type type);

double value_load(Type type, const void *address);
/* Rounds to nearest even; for an integer type, the value must be in its range. */
void value_store(Type type, void *address, double value);
/* The bits, with all NaNs mapped to one. */
uint64_t value_bits(Type type, const void *address);
/* The nearest number of the type. */
double value_round(Type type, double value);
typedef struct Random {
    uint64_t state;
} Random;

Random random_create(uint64_t seed);
uint64_t random_next(Random *random);
/* In [0, 1). */
double random_unit(Random *random);
/* About normal, mean 0, variance 1, never beyond 6. */
double random_normal(Random *random);

typedef enum Special {
    SPECIAL_NONE,
    SPECIAL_FINITE, /* zeros of both signs, subnormals */
    SPECIAL_ALL     /* also infinities and NaN */
} Special;

/* An integer of the type that is almost never a valid index of a dimension with `limit` elements: negative, the limit,
 * the extremes of the type, and numbers whose low bytes or low 32 bits are valid indices. */
int64_t random_hostile(Random *random, Type type, int64_t limit);

/* A special number of the type. */
double random_special(Random *random, Type type, Special special);

#endif
