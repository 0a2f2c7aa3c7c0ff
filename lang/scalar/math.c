#include "lang/scalar/math.h"

#include <math.h>
#include <string.h>

typedef float F;
typedef double D;
typedef int32_t I;
typedef uint64_t U;
typedef bool M;
typedef struct {
    D radians;
    U quarters;
} ANGLE;
typedef struct {
    D high, low;
} PAIR;

static inline I bits_of_float(F x) {
    I bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline F float_of_bits(I bits) {
    F x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline U bits_of_double(D x) {
    U bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline D double_of_bits(U bits) {
    D x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define K(number) (number)
#define KI(number) ((I)(number))
#define KD(number) ((D)(number))
#define KU(number) ((U)(number))
#define BITS(x) bits_of_float(x)
#define FLOAT(x) float_of_bits(x)
#define DBITS(x) bits_of_double(x)
#define DOUBLE(x) double_of_bits(x)
#define WIDE(x) ((D)(x))
#define NARROW(x) ((F)(x))

#define ADD(x, y) ((x) + (y))
#define SUB(x, y) ((x) - (y))
#define MUL(x, y) ((x) * (y))
#define DIV(x, y) ((x) / (y))
#define NEG(x) (-(x))
#define FMA(x, y, z) _Generic((x), F : fmaf, D : fma)(x, y, z)
#define SQRT(x) _Generic((x), F : sqrtf, D : sqrt)(x)
#define ABS(x) _Generic((x), F : fabsf, D : fabs)(x)
#define FLOOR(x) _Generic((x), F : floorf, D : floor)(x)
#define ROUND(x) _Generic((x), F : rintf, D : rint)(x)
#define COPYSIGN(x, y) _Generic((x), F : copysignf, D : copysign)(x, y)

#define LT(x, y) ((x) < (y))
#define LE(x, y) ((x) <= (y))
#define EQ(x, y) ((x) == (y))
#define NE(x, y) ((x) != (y))
#define MAND(x, y) ((x) & (y))
#define SELECT(m, x, y) ((m) ? (x) : (y))
#define MNOT(x) (!(x))
#define RARE(m, x, y) ((m) ? (x) : (y))
#define RARE_IN_PARTS(m, program, x, y) ((m) ? f32_##program(x) : (y))
#define UNUSUAL(m, x, y) ((m) && false ? (y) : (x)) /* the form for all arguments, to which others are held */
#define WHERE_POSITIVE(x, y) (false ? (x) : (y)) /* the same */
#define WHERE_NEGATIVE(x, y) (false ? (x) : (y))
#define AVOIDING_SUBNORMALS(m, x, y, z) ((m) && false ? (x) : false ? (y) : (z))
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))
#define AT_MOST(x, high) ((high) < (x) ? (high) : (x))
#define RECIPROCAL(x) (1 / (x))
#define QUOTIENT(x, y) ((x) / (y))

#define IADD(x, y) ((I)((uint32_t)(x) + (uint32_t)(y)))
#define ISUB(x, y) ((I)((uint32_t)(x) - (uint32_t)(y)))
#define IAND(x, y) ((x) & (y))
#define IXOR(x, y) ((x) ^ (y))
#define INOT(x) (~(x))
#define ISHL(x, count) ((I)((uint32_t)(x) << (count)))
#define ISHR(x, count) ((x) >> (count))

#define UADD(x, y) ((x) + (y))
#define UMUL(x, y) ((x) * (y))
#define ULT(x, y) ((x) < (y))
#define USUB(x, y) ((x) - (y))
#define UAND(x, y) ((x) & (y))
#define UOR(x, y) ((x) | (y))
#define UXOR(x, y) ((x) ^ (y))
#define UEQ(x, y) ((x) == (y))
#define USHL(x, count) ((x) << (count))
#define USHR(x, count) ((x) >> (count))

#define PARAMETERS(...) __VA_ARGS__

#define PROGRAM(name, R, parameters) static inline R f64_##name(PARAMETERS parameters)
#define CALL(name, ...) f64_##name(__VA_ARGS__)
#include "lang/scalar/math_f64.def"
#undef PROGRAM
#undef CALL

#define PROGRAM(name, R, parameters) static inline R f32_##name(PARAMETERS parameters)
#define CALL(name, ...) f32_##name(__VA_ARGS__)
#define CALL_F64(name, ...) f64_##name(__VA_ARGS__)
#include "lang/scalar/math_f32.def"
#undef PROGRAM
#undef CALL
#undef CALL_F64

typedef uint32_t W;
typedef struct {
    W word[4];
} BLOCK;

#define KW(number) ((W)(number))
#define PRODUCT(x, y) ((U)(x) * (y))
#define HIGH(x) ((W)((x) >> 32))
#define LOW(x) ((W)(x))
#define WADD(x, y) ((W)((x) + (y)))
#define WXOR(x, y) ((x) ^ (y))
#define WSHR(x, count) ((x) >> (count))
#define SIGNED(x) ((F)(I)(x))

#define PROGRAM(name, R, parameters) static inline R random_##name(PARAMETERS parameters)
#define CALL(name, ...) random_##name(__VA_ARGS__)
#include "lang/scalar/random.def"
#undef PROGRAM
#undef CALL

bool tile_math_has(TileEvalOp op) {
    switch ((int)op) {
#define MATH(id, name, operands, approx) case TILE_EVAL_##id:
#include "lang/scalar/math.def"
#undef MATH
        return true;
    default: return false;
    }
}

#define ARGUMENTS_1 (x)
#define ARGUMENTS_2 (x, y)

float tile_math_f32(TileEvalOp op, bool approx, float x, float y) {
    switch ((int)op) {
#define MATH(id, name, operands, approx_name)                                                                          \
    case TILE_EVAL_##id:                                                                                                 \
        return approx ? f32_##approx_name ARGUMENTS_##operands : f32_##name ARGUMENTS_##operands;
#include "lang/scalar/math.def"
#undef MATH
    default: return NAN;
    }
}

double tile_math_f64(TileEvalOp op, double x, double y) {
    switch ((int)op) {
#define MATH(id, name, operands, approx_name)                                                                          \
    case TILE_EVAL_##id:                                                                                                 \
        return f64_##name ARGUMENTS_##operands;
#include "lang/scalar/math.def"
#undef MATH
    default: return NAN;
    }
}

float tile_math_rand(uint64_t seed, uint64_t index) { return random_number(random_word_at(seed, index)); }
uint32_t tile_math_rand_word(uint64_t seed, uint64_t index) { return random_word_at(seed, index); }
