#include "tests/gpu/vectors.h"

#include <stddef.h>
#include <string.h>

#define MMA(shape, a, b)                                                                                               \
    "mma.sync.aligned." shape ".row.col.f32." a "." b ".f32 {%o0,%o1,%o2,%o3}, {%i0,%i1,%i2,%i3}, {%i4,%i5}, "         \
    "{%i6,%i7,%i8,%i9};"
#define MMA_HALF(a)                                                                                                    \
    "mma.sync.aligned.m16n8k8.row.col.f32." a "." a ".f32 {%o0,%o1,%o2,%o3}, {%i0,%i1}, {%i2}, {%i3,%i4,%i5,%i6};"
/* A lane stores 16 bytes, and gives the address of the row to load. */
#define LDMATRIX(form)                                                                                                 \
    "mad.lo.u32 %a, %l, 16, %s; st.shared.v4.b32 [%a], {%i0,%i1,%i2,%i3}; bar.warp.sync -1;"                           \
    "mad.lo.u32 %a, %i4, 16, %s; ldmatrix.sync.aligned.m8n8." form ".shared.b16 {%o0,%o1,%o2,%o3}, [%a];"
#define STMATRIX(form)                                                                                                 \
    "mad.lo.u32 %a, %i4, 16, %s; stmatrix.sync.aligned.m8n8." form ".shared.b16 [%a], {%i0,%i1,%i2,%i3};"              \
    "bar.warp.sync -1; mad.lo.u32 %a, %l, 16, %s; ld.shared.v4.b32 {%o0,%o1,%o2,%o3}, [%a];"

const VectorCase vector_cases[] = {
    {"shfl.bfly.b32", 80, 2, 1, VECTOR_B32, 1, 31, "shfl.sync.bfly.b32 %o0, %i0, %i1, 31, -1;"},
    {"shfl.idx.b32", 80, 2, 1, VECTOR_B32, 1, VECTOR_LANES, "shfl.sync.idx.b32 %o0, %i0, %i1, 31, -1;"},
    {"shfl.up.b32", 80, 2, 1, VECTOR_B32, 1, 31, "shfl.sync.up.b32 %o0, %i0, %i1, 0, -1;"},
    {"shfl.down.b32", 80, 2, 1, VECTOR_B32, 1, 31, "shfl.sync.down.b32 %o0, %i0, %i1, 31, -1;"},
    {"mma.m16n8k16.f16", 80, 10, 4, VECTOR_F16, 6, 0, MMA("m16n8k16", "f16", "f16")},
    {"mma.m16n8k16.bf16", 80, 10, 4, VECTOR_BF16, 6, 0, MMA("m16n8k16", "bf16", "bf16")},
    {"mma.m16n8k8.f16", 80, 7, 4, VECTOR_F16, 3, 0, MMA_HALF("f16")},
    {"mma.m16n8k8.bf16", 80, 7, 4, VECTOR_BF16, 3, 0, MMA_HALF("bf16")},
    {"mma.m16n8k8.tf32", 80, 10, 4, VECTOR_TF32, 6, 0, MMA("m16n8k8", "tf32", "tf32")},
    {"mma.m16n8k32.s8", 80, 10, 4, VECTOR_S8, 6, 0,
     "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%o0,%o1,%o2,%o3}, {%i0,%i1,%i2,%i3}, {%i4,%i5}, "
     "{%i6,%i7,%i8,%i9};"},
    {"mma.m16n8k32.e4m3", 89, 10, 4, VECTOR_E4M3, 6, 0, MMA("m16n8k32", "e4m3", "e4m3")},
    {"mma.m16n8k32.e5m2", 89, 10, 4, VECTOR_E5M2, 6, 0, MMA("m16n8k32", "e5m2", "e5m2")},
    {"ldmatrix.x4", 80, 5, 4, VECTOR_B32, 4, VECTOR_LANES, LDMATRIX("x4")},
    {"ldmatrix.x4.trans", 80, 5, 4, VECTOR_B32, 4, VECTOR_LANES, LDMATRIX("x4.trans")},
    {"stmatrix.x4", 90, 5, 4, VECTOR_B32, 4, VECTOR_LANES, STMATRIX("x4")},
    {"stmatrix.x4.trans", 90, 5, 4, VECTOR_B32, 4, VECTOR_LANES, STMATRIX("x4.trans")},
    {"min.NaN.f32", 80, 2, 1, VECTOR_F32, 2, 0, "min.NaN.f32 %o0, %i0, %i1;"},
    {"max.NaN.f32", 80, 2, 1, VECTOR_F32, 2, 0, "max.NaN.f32 %o0, %i0, %i1;"},
    {"ex2.approx.ftz.f32", 80, 1, 1, VECTOR_F32, 1, 0, "ex2.approx.ftz.f32 %o0, %i0;"},
    {"rcp.approx.ftz.f32", 80, 1, 1, VECTOR_F32, 1, 0, "rcp.approx.ftz.f32 %o0, %i0;"},
    {"cvt.rn.tf32.f32", 90, 1, 1, VECTOR_F32, 1, 0, "cvt.rn.tf32.f32 %o0, %i0;"},
    {"cvt.rna.tf32.f32", 80, 1, 1, VECTOR_F32, 1, 0, "cvt.rna.tf32.f32 %o0, %i0;"},
};
const unsigned vector_case_count = sizeof vector_cases / sizeof *vector_cases;

/* SplitMix64. */
static uint32_t next(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(bits >> 32);
}

static uint32_t float_bits(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* -4 to 4, exact in every type. */
static uint32_t integer(uint32_t random, VectorType type) {
    static const uint16_t f16[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    static const uint8_t e4m3[] = {0, 0x38, 0x40, 0x44, 0x48}, e5m2[] = {0, 0x3c, 0x40, 0x42, 0x44};
    uint32_t size = random % 5, negative = random >> 8 & 1;
    float number = negative ? -(float)size : (float)size;
    switch (type) {
    case VECTOR_F16: return f16[size] | negative << 15;
    case VECTOR_BF16: return float_bits(number) >> 16;
    case VECTOR_S8: return (uint8_t)(negative ? -(int)size : (int)size);
    case VECTOR_E4M3: return e4m3[size] | negative << 7;
    case VECTOR_E5M2: return e5m2[size] | negative << 7;
    case VECTOR_TF32:
    case VECTOR_F32:
    case VECTOR_B32: return float_bits(number);
    }
    return 0;
}

/* Magnitudes from 2^-6 to 2^6 about. */
static uint32_t number_of(uint32_t random, VectorType type) {
    uint32_t negative = random >> 31, exponent = random >> 20 & 7;
    switch (type) {
    case VECTOR_F16: return negative << 15 | (exponent + 11) << 10 | (random & 0x3ff);
    case VECTOR_BF16: return negative << 15 | (exponent + 123) << 7 | (random & 0x7f);
    case VECTOR_S8: return random & 0xff;
    case VECTOR_E4M3: return negative << 7 | (exponent + 3) << 3 | (random & 7);
    case VECTOR_E5M2: return negative << 7 | (exponent + 11) << 2 | (random & 3);
    case VECTOR_TF32: return negative << 31 | (exponent + 123) << 23 | (random & 0x3ff) << 13;
    case VECTOR_F32:
    case VECTOR_B32: return negative << 31 | (exponent + 123) << 23 | (random & 0x7fffff);
    }
    return 0;
}

static unsigned bits_of(VectorType type) {
    switch (type) {
    case VECTOR_F16:
    case VECTOR_BF16: return 16;
    case VECTOR_S8:
    case VECTOR_E4M3:
    case VECTOR_E5M2: return 8;
    case VECTOR_TF32:
    case VECTOR_F32:
    case VECTOR_B32: return 32;
    }
    return 32;
}

/* With both signs. 2^x is subnormal from -126 on, 0 from -150, infinite from 128; 1 / x is subnormal above 2^126. */
static uint32_t special(uint32_t random) {
    static const uint32_t words[] = {0,          1,          0x007fffff, 0x00400000, 0x00800000, 0x00800001, 0x7f800000,
                                     0x7fc00000, 0x7f800001, 0x7fffffff, 0x7f7fffff, 0x3f800000, 0x3f7fffff, 0x3f800001,
                                     0x42fc0000, 0x42fc0001, 0x42fbffff, 0x42fd0000, 0x43000000, 0x42ffffff, 0x43150000,
                                     0x43160000, 0x43170000, 0x7e800000, 0x7e800001, 0x7e7fffff, 0x7f000000};
    return words[random % (sizeof words / sizeof *words)] | (random & 0x80000000);
}

static uint32_t make_word(uint64_t *state, VectorData data, VectorType type) {
    if (data == VECTOR_BITS) return next(state);
    if (data == VECTOR_SPECIALS) return special(next(state));
    uint32_t word = 0;
    for (unsigned bit = 0; bit < 32; bit += bits_of(type)) {
        uint32_t random = next(state);
        word |= (data == VECTOR_INTEGERS ? integer(random, type) : number_of(random, type)) << bit;
    }
    return word;
}

/* s8 has accumulators of 32-bit integers. */
static uint32_t make_accumulator(uint64_t *state, VectorData data, VectorType type) {
    if (type == VECTOR_S8) return (uint32_t)((int32_t)next(state) >> 16);
    return make_word(state, data, VECTOR_B32);
}

static void shuffle(uint64_t *state, uint32_t words[VECTOR_LANES][VECTOR_MOST_WORDS], unsigned at) {
    for (uint32_t lane = 0; lane < VECTOR_LANES; lane++) {
        uint32_t other = next(state) % (lane + 1);
        words[lane][at] = words[other][at];
        words[other][at] = lane;
    }
}

void vector_make(const VectorCase *item, VectorData data, unsigned number,
                 uint32_t words[VECTOR_LANES][VECTOR_MOST_WORDS]) {
    uint64_t state = (uint64_t)(item - vector_cases) << 32 | (uint64_t)data << 16 | number;
    memset(words, 0, sizeof(uint32_t[VECTOR_LANES][VECTOR_MOST_WORDS]));
    for (unsigned lane = 0; lane < VECTOR_LANES; lane++)
        for (unsigned i = 0; i < item->in; i++)
            words[lane][i] =
                i < item->operands ? make_word(&state, data, item->type) : make_accumulator(&state, data, item->type);
    if (item->parameter == VECTOR_LANES) shuffle(&state, words, item->in - 1);
    for (unsigned lane = 0; lane < VECTOR_LANES && item->parameter && item->parameter < VECTOR_LANES; lane++)
        words[lane][item->in - 1] = 1 + number % item->parameter;
}
