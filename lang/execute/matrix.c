/* Matrices of products of warpgroups. PTX ISA 8.7, wgmma.mma_async: matrix descriptors, and register fragments. */
#include "lang/execute/matrix.h"

#include <math.h>
#include <string.h>

#include "lang/scalar/scalar.h"

enum { WARP_ROWS = 16, CHUNK = 16, LINES = 8, WORD_BITS = 32 };

/* ---- descriptors ---- */

enum { UNIT = 16, FIELD = 0x3fff, LEADING_SHIFT = 16, STRIDE_SHIFT = 32, MODE_SHIFT = 62 };

bool tile_exec_wgmma_descriptor(TileExecutor *e, const ExecInstruction *in) {
    ExecValue pointer = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    int64_t swizzle = tile_op_integer(in->op, TILE_ATTRIBUTE_SWIZZLE, 0);
    uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    uint64_t leading = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_LEADING, 0) / UNIT,
             stride = (uint64_t)tile_op_integer(in->op, TILE_ATTRIBUTE_STRIDE, 0) / UNIT;
    bool poison = tile_exec_poisoned(pointer, 0);
    if (!e->thread_count) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    if (!poison && pointer.lanes[0] != e->shared)
        return tile_exec_fault(e, in, "the matrix does not lie in the block's shared memory");
    tile_exec_set_scalar(result, (pointer.lanes[1] / UNIT & FIELD) | leading << LEADING_SHIFT | stride << STRIDE_SHIFT |
                                     mode << MODE_SHIFT);
    if (poison) tile_exec_set_poison(e, result, 0, pointer.poison[0]);
    return true;
}

static TileScalar scalar_of(const ExecInstruction *in, unsigned operand) {
    return tile_op_get(in->op, TILE_ATTRIBUTE_TYPES)->types[operand]->scalar;
}

bool tile_exec_find_matrix(TileExecutor *e, const ExecInstruction *in, unsigned operand, ExecMatrix *matrix) {
    static const uint32_t swizzles[] = {0, 128, 64, 32};
    const uint64_t used =
        FIELD | (uint64_t)FIELD << LEADING_SHIFT | (uint64_t)FIELD << STRIDE_SHIFT | UINT64_C(3) << MODE_SHIFT;
    const TileAttribute *transposed = tile_op_get(in->op, TILE_ATTRIBUTE_TRANSPOSED_AB);
    ExecValue value = tile_exec_operand(e, in, operand);
    if (tile_exec_poisoned(value, 0))
        return tile_exec_poison(e, in, value.poison[0], "has as an index", "a descriptor is poison");
    uint64_t bits = value.lanes[0];
    if (bits & ~used) return tile_exec_fault(e, in, "%#llx describes no matrix", (unsigned long long)bits);
    *matrix = (ExecMatrix){.start = (uint32_t)(bits & FIELD) * UNIT,
                           .leading = (uint32_t)(bits >> LEADING_SHIFT & FIELD) * UNIT,
                           .stride = (uint32_t)(bits >> STRIDE_SHIFT & FIELD) * UNIT,
                           .swizzle = swizzles[bits >> MODE_SHIFT],
                           .rows = operand ? 2 * in->lanes : MATRIX_ROWS,
                           .scalar = scalar_of(in, operand),
                           .transposed = transposed && transposed->integers[operand]};
    return true;
}

/* ---- places ---- */

/* Lines are rows of the matrix with chunks of 16 bytes along k or, transposed, the reverse. */
typedef struct Chunk {
    uint32_t line, number, offset;
} Chunk;

static uint32_t offset_of(const ExecMatrix *matrix, uint32_t line, uint32_t chunk) {
    uint32_t row = matrix->swizzle ? matrix->swizzle : CHUNK, chunks = row / CHUNK;
    uint32_t at = matrix->start + line % LINES * row + chunk % chunks * CHUNK, group = line / LINES,
             part = chunk / chunks;
    if (!matrix->swizzle && matrix->transposed)
        at += part * matrix->stride + group * matrix->leading;
    else
        at += part * matrix->leading + group * matrix->stride;
    return at ^ (at >> 3 & (row - CHUNK));
}

static uint32_t length_of(TileScalar scalar) { return MATRIX_K_BITS / tile_scalar_bits(scalar); }

/* Visits the chunks, one after the other, beginning with number 0; false: there are no more. */
static bool next_chunk(const ExecMatrix *matrix, uint32_t *number, Chunk *chunk) {
    uint32_t k = length_of(matrix->scalar), lines = matrix->transposed ? k : matrix->rows;
    uint32_t chunks = (matrix->transposed ? matrix->rows : k) * tile_scalar_bytes(matrix->scalar) / CHUNK;
    *chunk = (Chunk){.line = *number / chunks, .number = *number % chunks};
    if (chunk->line == lines) return false;
    chunk->offset = offset_of(matrix, chunk->line, chunk->number);
    ++*number;
    return true;
}

bool tile_exec_begin_matrix(TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix) {
    Chunk chunk;
    for (uint32_t number = 0; next_chunk(matrix, &number, &chunk);) {
        const ExecObject *object = tile_exec_reach(e, in, e->shared, chunk.offset, CHUNK, false);
        if (!object) return false;
        if (object->shadow && !tile_exec_share(e, in, e->shared, chunk.offset, CHUNK, false)) return false;
    }
    return true;
}

void tile_exec_end_matrix(const TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix, uint32_t entry,
                          uint32_t time) {
    Chunk chunk;
    for (uint32_t number = 0; next_chunk(matrix, &number, &chunk);)
        tile_exec_share_completed(e, in, e->shared, chunk.offset, CHUNK, entry, time);
}

/* ---- elements ---- */

static double double_of(TileScalar scalar, uint64_t bits) {
    uint64_t wide = tile_scalar_convert(scalar, TILE_F64, bits);
    double number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

/* Exponents of zeros, so low that they never count, and of what is not finite, so high that it does even with a zero. */
enum { EXPONENT_NONE = -8192, EXPONENT_SPECIAL = 3 * 8192 };

static int exponent_of(double number) {
    if (number == 0) return EXPONENT_NONE;
    return isfinite(number) ? ilogb(number) : EXPONENT_SPECIAL;
}

static void set_element(ExecOperand *operand, uint32_t row, uint32_t k, TileScalar scalar, uint64_t bits) {
    double number = double_of(scalar, scalar == TILE_F32 ? bits & ~UINT64_C(0x1fff) /* of tf32 */ : bits);
    operand->values[row][k] = number;
    operand->exponents[row][k] = (int16_t)exponent_of(number);
}

void tile_exec_read_matrix(TileExecutor *e, const ExecInstruction *in, const ExecMatrix *matrix, ExecOperand *operand) {
    const ExecObject *object = &e->objects[e->shared];
    uint32_t size = tile_scalar_bytes(matrix->scalar);
    Chunk chunk;
    memset(operand->poison, 0, sizeof operand->poison);
    for (uint32_t number = 0; next_chunk(matrix, &number, &chunk);)
        for (uint32_t i = 0; i < CHUNK / size; i++) {
            uint32_t along = chunk.number * CHUNK / size + i, at = chunk.offset + i * size;
            uint32_t row = matrix->transposed ? along : chunk.line, k = matrix->transposed ? chunk.line : along;
            uint64_t bits = 0;
            memcpy(&bits, object->base + at, size);
            set_element(operand, row, k, matrix->scalar, bits);
            operand->poison[row] |= tile_exec_read_poison(e, in, object, at, size);
        }
}

/* Elements of a register are consecutive along k, then the lanes of a group of four, then further registers. */
void tile_exec_take_fragment(TileExecutor *threads, const ExecInstruction *in, ExecOperand *operand) {
    TileScalar scalar = scalar_of(in, 0);
    uint32_t packed = WORD_BITS / tile_scalar_bits(scalar);
    memset(operand->poison, 0, sizeof operand->poison);
    for (uint32_t thread = 0; thread < TILE_WARPGROUP_THREADS; thread++) {
        ExecValue value = tile_exec_operand(&threads[thread], in, 0);
        uint32_t lane = thread % TILE_WARP_THREADS, first = thread / TILE_WARP_THREADS * WARP_ROWS + lane / 4;
        for (uint32_t i = 0; i < value.count; i++) {
            uint32_t word = i / packed, row = first + word % 2 * 8, k = lane % 4 * packed + i % packed;
            set_element(operand, row, k + word / 2 * 4 * packed, scalar, value.lanes[i]);
            operand->poison[row] |= tile_exec_poisoned(value, i);
        }
    }
}

/* ---- products ---- */

/* How a tensor core adds: every product and the sum so far are aligned with the greatest of them, where a product's
 * exponent is the sum of its factors'. `below` bits under that one are kept, the rest is cut off, towards 0; and so is
 * what the result has beyond `mantissa` bits. PTX does not say so: tests/gpu/wgmma_vectors.txt does. */
typedef struct Adder {
    int below, mantissa;
} Adder;

static Adder adder_of(TileScalar element) { return tile_scalar_bits(element) == 8 ? (Adder){13, 14} : (Adder){25, 24}; }

static double power_of_two(int exponent) { return ldexp(1, exponent); }

static uint64_t bits_of(double sum) {
    uint64_t wide;
    memcpy(&wide, &sum, sizeof wide);
    return tile_scalar_convert(TILE_F64, TILE_F32, wide);
}

static double add_exactly(const ExecOperand *a, uint32_t row, const ExecOperand *b, uint32_t column, uint32_t k,
                          double sum) {
    for (uint32_t i = 0; i < k; i++) sum += a->values[row][i] * b->values[column][i];
    return sum;
}

static double add_aligned(const ExecOperand *a, uint32_t row, const ExecOperand *b, uint32_t column, uint32_t k,
                          double c, Adder adder) {
    int most = exponent_of(c);
    for (uint32_t i = 0; i < k; i++) {
        int exponent = a->exponents[row][i] + b->exponents[column][i];
        if (exponent > most) most = exponent;
    }
    if (most >= EXPONENT_SPECIAL / 2) return add_exactly(a, row, b, column, k, c);
    if (most <= EXPONENT_NONE / 2) return 0;
    double scale = power_of_two(adder.below - most);
    int64_t sum = (int64_t)(c * scale);
    for (uint32_t i = 0; i < k; i++) sum += (int64_t)(a->values[row][i] * b->values[column][i] * scale);
    uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
    int length = magnitude ? 64 - __builtin_clzll(magnitude) : 0, drop = length - adder.mantissa;
    if (drop > 0) magnitude = magnitude >> drop << drop;
    return ldexp(sum < 0 ? -(double)magnitude : (double)magnitude, most - adder.below);
}

void tile_exec_multiply(const ExecInstruction *in, const ExecOperand *a, const ExecOperand *b, uint64_t *sums,
                        uint8_t *poison) {
    TileScalar element = scalar_of(in, 0), scalar = in->op->results[0].type->scalar;
    uint32_t k = length_of(element), at = 0;
    Adder adder = adder_of(element);
    for (uint32_t thread = 0; thread < TILE_WARPGROUP_THREADS; thread++) {
        uint32_t lane = thread % TILE_WARP_THREADS, first = thread / TILE_WARP_THREADS * WARP_ROWS + lane / 4;
        for (uint32_t i = 0; i < in->lanes; i++, at++) {
            uint32_t row = first + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            double c = double_of(scalar, sums[at]);
            poison[at] |= a->poison[row] | b->poison[column];
            if (scalar == TILE_F32)
                sums[at] = bits_of(add_aligned(a, row, b, column, k, c, adder));
            else /* integers wrap; their sums are exact in a double */
                sums[at] = (uint32_t)(int64_t)add_exactly(a, row, b, column, k, c);
        }
    }
}
