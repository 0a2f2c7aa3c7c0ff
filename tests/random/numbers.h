/* Results of scalar operations, written from docs/language.md independently of the compiler, and bounds of their
 * errors. */
#ifndef TESTS_RANDOM_NUMBERS_H
#define TESTS_RANDOM_NUMBERS_H

#include <stddef.h>

#include "../kernels/values.h"

/* X(ID, word): operators, then functions. */
#define OP_LIST(X)                                                                                                     \
    X(ADD, "+")                                                                                                        \
    X(SUB, "-")                                                                                                        \
    X(MUL, "*")                                                                                                        \
    X(DIV, "/")                                                                                                        \
    X(REM, "%%")                                                                                                       \
    X(AND, "&")                                                                                                        \
    X(OR, "|")                                                                                                         \
    X(XOR, "^")                                                                                                        \
    X(SHL, "<<")                                                                                                       \
    X(SHR, ">>")                                                                                                       \
    X(EQ, "==")                                                                                                        \
    X(NE, "!=")                                                                                                        \
    X(LT, "<")                                                                                                         \
    X(LE, "<=")                                                                                                        \
    X(GT, ">")                                                                                                         \
    X(GE, ">=")                                                                                                        \
    X(BOTH, "&&")                                                                                                      \
    X(EITHER, "||")                                                                                                    \
    X(NEG, "-")                                                                                                        \
    X(NOT, "~")                                                                                                        \
    X(UNTRUE, "!")                                                                                                     \
    X(ABS, "abs")                                                                                                      \
    X(FLOOR, "floor")                                                                                                  \
    X(CEIL, "ceil")                                                                                                    \
    X(ROUND, "round")                                                                                                  \
    X(TRUNC, "trunc")                                                                                                  \
    X(SQRT, "sqrt")                                                                                                    \
    X(MIN, "min")                                                                                                      \
    X(MAX, "max")                                                                                                      \
    X(COPYSIGN, "copysign")                                                                                            \
    X(ISNAN, "isnan")                                                                                                  \
    X(ISINF, "isinf")                                                                                                  \
    X(CDIV, "cdiv")                                                                                                    \
    X(FMA, "fma")                                                                                                      \
    X(RSQRT, "rsqrt")                                                                                                  \
    X(EXP, "exp")                                                                                                      \
    X(EXP2, "exp2")                                                                                                    \
    X(EXPM1, "expm1")                                                                                                  \
    X(LOG, "log")                                                                                                      \
    X(LOG2, "log2")                                                                                                    \
    X(LOG1P, "log1p")                                                                                                  \
    X(SIN, "sin")                                                                                                      \
    X(COS, "cos")                                                                                                      \
    X(TAN, "tan")                                                                                                      \
    X(TANH, "tanh")                                                                                                    \
    X(ERF, "erf")                                                                                                      \
    X(SIGMOID, "sigmoid")                                                                                              \
    X(ASIN, "asin")                                                                                                    \
    X(ACOS, "acos")                                                                                                    \
    X(ATAN, "atan")                                                                                                    \
    X(SINH, "sinh")                                                                                                    \
    X(COSH, "cosh")                                                                                                    \
    X(ASINH, "asinh")                                                                                                  \
    X(ACOSH, "acosh")                                                                                                  \
    X(ATANH, "atanh")                                                                                                  \
    X(CBRT, "cbrt")                                                                                                    \
    X(ERFC, "erfc")                                                                                                    \
    X(ERFINV, "erfinv")                                                                                                \
    X(LGAMMA, "lgamma")                                                                                                \
    X(POW, "pow")                                                                                                      \
    X(ATAN2, "atan2")                                                                                                  \
    X(HYPOT, "hypot")                                                                                                  \
    X(FMOD, "fmod")                                                                                                    \
    X(NEXTAFTER, "nextafter")                                                                                          \
    X(MULHI, "mulhi")                                                                                                  \
    X(POPCOUNT, "popcount")                                                                                            \
    X(CLZ, "clz")                                                                                                      \
    X(CTZ, "ctz")

typedef enum Op {
#define OP_ENUM(id, word) OP_##id,
    OP_LIST(OP_ENUM)
#undef OP_ENUM
        OP_COUNT
} Op;

const char *op_word(Op op);

bool type_is_float(Type type);
bool type_is_int(Type type);
bool type_is_signed(Type type);
bool type_is_f8(Type type);

/* `off`: 0: exactly these bits; SIGN: if it is zero, its sign is unknown; above 0: a bound on the error; infinite:
 * unknown. */
typedef struct Number {
    uint64_t bits;
    double off;
} Number;

#define SIGN (-1.0)

typedef __int128 Wide;

double number_value(Type type, uint64_t bits);         /* of a float */
uint64_t number_from(Type type, double value);         /* rounds once, to nearest even */
Wide number_integer(Type type, uint64_t bits);         /* of an integer or bool */
uint64_t number_from_integer(Type type, Wide integer); /* integers wrap; floats are rounded */
bool number_is_nan(Type type, uint64_t bits);
Number number_unknown(void);
/* A number with an error of `off`, rounded to the type. */
Number number_off(Type type, double value, double off);
double number_ulp(Type type, double value);

Number number_unary(Op op, Type type, Number x);
Number number_binary(Op op, Type type, Number x, Number y);
Number number_fma(Type type, Number x, Number y, Number z);
Number number_convert(Type to, Type from, Number x);
Number number_bitcast(Type to, Type from, Number x);
Number number_random(int64_t seed, int64_t index);
uint32_t number_word(int64_t seed, int64_t index); /* what it is made of */
/* Do the bits of a result agree with the number? */
bool number_agrees(Type type, Number expected, uint64_t bits);

/* For messages. */
void number_say(char *words, size_t size, Type type, uint64_t bits);

/* A sum of many numbers: exact if every order of the additions gives the same. */
typedef struct Sum {
    double total, size; /* size: the sum of magnitudes */
    int least;          /* the least exponent of a 1 bit in any term */
    int64_t count;
    bool up, down, nan, unknown;
    double off;
} Sum;

void sum_add(Sum *sum, Type type, Number x);
void sum_add_product(Sum *sum, Type type, Number x, Number y);
/* For a type whose sums are accumulated in `accumulator`, and rounded once to `type`. `spread`: the error per term due
 * to another order, in ulp of the sum of magnitudes. */
Number sum_result(const Sum *sum, Type accumulator, Type type);

/* The same for products. */
typedef struct Product {
    double total;
    int bits, low, high; /* the sum of significant bits; exponents of the least and the greatest possible product */
    bool nan, zero, infinite, negative, unknown, sign; /* sign: the sign of a zero is unknown */
} Product;

void product_times(Product *product, Type type, Number x);
Number product_result(const Product *product, Type accumulator, Type type, int64_t count);

#endif
