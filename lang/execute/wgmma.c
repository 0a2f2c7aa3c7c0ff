/* Products of warpgroups, executed once its 128 threads have arrived. PTX ISA 8.7, wgmma.mma_async. */
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

enum {
    ROWS = 64,
    WARP_ROWS = 16,
    MOST_COLUMNS = 256,
    MOST_K = 32,
    CHUNK = 16,
    LINES = 8,
    K_BITS = 256,
    WORD_BITS = 32
};

/* ---- descriptors ---- */

/* A matrix in the block's shared memory. */
typedef struct Matrix {
    uint32_t start, leading, stride, swizzle; /* bytes */
    bool transposed;
} Matrix;

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

static bool read_descriptor(TileExecutor *e, const ExecInstruction *in, unsigned operand, Matrix *matrix) {
    static const uint32_t swizzles[] = {0, 128, 64, 32};
    const uint64_t unused =
        ~(FIELD | (uint64_t)FIELD << LEADING_SHIFT | (uint64_t)FIELD << STRIDE_SHIFT | UINT64_C(3) << MODE_SHIFT);
    const TileAttribute *transposed = tile_op_get(in->op, TILE_ATTRIBUTE_TRANSPOSED_AB);
    ExecValue value = tile_exec_operand(e, in, operand);
    if (tile_exec_poisoned(value, 0))
        return tile_exec_poison(e, in, value.poison[0], "has as an index", "a descriptor is poison");
    uint64_t bits = value.lanes[0];
    if (bits & unused) return tile_exec_fault(e, in, "%#llx describes no matrix", (unsigned long long)bits);
    *matrix = (Matrix){.start = (uint32_t)(bits & FIELD) * UNIT,
                       .leading = (uint32_t)(bits >> LEADING_SHIFT & FIELD) * UNIT,
                       .stride = (uint32_t)(bits >> STRIDE_SHIFT & FIELD) * UNIT,
                       .swizzle = swizzles[bits >> MODE_SHIFT],
                       .transposed = transposed && transposed->integers[operand]};
    return true;
}

/* The offset of a chunk of 16 bytes. Lines are rows of the matrix with chunks along k or, transposed, the reverse. */
static uint32_t offset_of(const Matrix *matrix, uint32_t line, uint32_t chunk) {
    uint32_t row = matrix->swizzle ? matrix->swizzle : CHUNK, chunks = row / CHUNK;
    uint32_t inside = matrix->start + line % LINES * row, group = line / LINES, part = chunk / chunks;
    uint32_t at = inside + chunk % chunks * CHUNK;
    if (!matrix->swizzle && matrix->transposed)
        at += part * matrix->stride + group * matrix->leading;
    else
        at += part * matrix->leading + group * matrix->stride;
    return at ^ (at >> 3 & (row - CHUNK));
}

/* ---- operands ---- */

/* Elements along k, one row after the other; of b, its columns are the rows. */
typedef struct Operand {
    double values[MOST_COLUMNS][MOST_K];
    uint8_t poison[MOST_COLUMNS]; /* of a row: is one of its elements poison? */
} Operand;

static double double_of(TileScalar scalar, uint64_t bits) {
    uint64_t wide = tile_scalar_convert(scalar, TILE_F64, bits);
    double number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

static double number_of(TileScalar scalar, uint64_t bits) {
    return double_of(scalar, scalar == TILE_F32 ? bits & ~UINT64_C(0x1fff) /* of tf32 */ : bits);
}

static bool read_chunk(TileExecutor *e, const ExecInstruction *in, const Matrix *matrix, uint32_t line, uint32_t chunk,
                       TileScalar scalar, Operand *operand) {
    uint32_t at = offset_of(matrix, line, chunk), size = tile_scalar_bytes(scalar);
    const ExecObject *object = tile_exec_reach(e, in, e->shared, at, CHUNK, false);
    if (!object) return false;
    for (uint32_t i = 0; i < CHUNK / size; i++) {
        uint32_t along = chunk * CHUNK / size + i, row = matrix->transposed ? along : line;
        uint64_t bits = 0;
        memcpy(&bits, object->base + at + i * size, size);
        operand->values[row][matrix->transposed ? line : along] = number_of(scalar, bits);
        operand->poison[row] |= tile_exec_read_poison(e, in, object, at + i * size, size);
    }
    return true;
}

static bool read_matrix(TileExecutor *e, const ExecInstruction *in, unsigned number, uint32_t rows, TileScalar scalar,
                        Operand *operand) {
    Matrix matrix = {0};
    if (!read_descriptor(e, in, number, &matrix)) return false;
    uint32_t size = tile_scalar_bytes(scalar), k = K_BITS / tile_scalar_bits(scalar);
    uint32_t lines = matrix.transposed ? k : rows, chunks = (matrix.transposed ? rows : k) * size / CHUNK;
    memset(operand->poison, 0, sizeof operand->poison);
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            if (!read_chunk(e, in, &matrix, line, chunk, scalar, operand)) return false;
    return true;
}

/* Elements of a register are consecutive along k, then the lanes of a group of four, then further registers. */
static void take_fragment(TileExecutor *threads, TileScalar scalar, Operand *operand) {
    uint32_t packed = WORD_BITS / tile_scalar_bits(scalar);
    memset(operand->poison, 0, sizeof operand->poison);
    for (uint32_t thread = 0; thread < TILE_WARPGROUP_THREADS; thread++) {
        ExecValue value = tile_exec_operand(&threads[thread], threads[thread].meeting, 0);
        uint32_t lane = thread % TILE_WARP_THREADS, first = thread / TILE_WARP_THREADS * WARP_ROWS + lane / 4;
        for (uint32_t i = 0; i < value.count; i++) {
            uint32_t word = i / packed, row = first + word % 2 * 8, k = lane % 4 * packed + i % packed;
            operand->values[row][k + word / 2 * 4 * packed] = number_of(scalar, value.lanes[i]);
            operand->poison[row] |= tile_exec_poisoned(value, i);
        }
    }
}

/* ---- products ---- */

static uint64_t add_up(const double *a, const double *b, uint32_t k, TileScalar scalar, uint64_t c) {
    double sum = double_of(scalar, c);
    for (uint32_t i = 0; i < k; i++) sum += a[i] * b[i];
    if (scalar != TILE_F32) return (uint32_t)(int64_t)sum; /* integers wrap; their sums are exact in a double */
    uint64_t wide;
    memcpy(&wide, &sum, sizeof wide);
    return tile_scalar_convert(TILE_F64, TILE_F32, wide);
}

static void give_sums(TileExecutor *e, uint32_t thread, const Operand *a, const Operand *b, uint32_t k) {
    const ExecInstruction *in = e->meeting;
    ExecValue result = tile_exec_result(e, in), sum = result;
    bool adds = in->operand_count > 2;
    TileScalar scalar = in->op->results[0].type->scalar;
    uint32_t lane = thread % TILE_WARP_THREADS, first = thread / TILE_WARP_THREADS * WARP_ROWS + lane / 4;
    if (adds) sum = tile_exec_operand(e, in, 2);
    for (uint32_t i = 0; i < result.count; i++) {
        uint32_t row = first + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        uint8_t poison = (uint8_t)((adds ? tile_exec_poisoned(sum, i) : 0) | a->poison[row] | b->poison[column]);
        result.lanes[i] = add_up(a->values[row], b->values[column], k, scalar, adds ? sum.lanes[i] : 0);
        if (i == 0) *result.any = 0;
        if (poison)
            tile_exec_set_poison(e, result, i, poison);
        else if (*result.any)
            result.poison[i] = 0;
    }
}

static bool check_same(TileExecutor *threads, unsigned operand, uint32_t *failed) {
    ExecValue first = tile_exec_operand(&threads[0], threads->meeting, operand);
    for (uint32_t i = 1; i < TILE_WARPGROUP_THREADS; i++) {
        ExecValue value = tile_exec_operand(&threads[i], threads[i].meeting, operand);
        *failed = i;
        if (value.lanes[0] != first.lanes[0] && !tile_exec_poisoned(value, 0) && !tile_exec_poisoned(first, 0))
            return tile_exec_fault(&threads[i], threads[i].meeting,
                                   "the threads of the warpgroup have different descriptors");
    }
    *failed = 0;
    return true;
}

static bool multiply(TileExecutor *threads, uint32_t *failed) {
    const ExecInstruction *in = threads->meeting;
    const TileAttribute *types = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES);
    TileScalar a = types->types[0]->scalar, b = types->types[1]->scalar;
    bool registers = tile_op_operand(in->op, 0)->type->kind == TILE_TYPE_VECTOR;
    Operand *operands = tile_exec_scratch(threads, 2 * sizeof *operands);
    if (!operands || (!registers && !check_same(threads, 0, failed)) || !check_same(threads, 1, failed)) return false;
    if (registers)
        take_fragment(threads, a, &operands[0]);
    else if (!read_matrix(threads, in, 0, ROWS, a, &operands[0]))
        return false;
    if (!read_matrix(threads, in, 1, 2 * in->lanes, b, &operands[1])) return false;
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS; i++)
        give_sums(&threads[i], i, &operands[0], &operands[1], K_BITS / tile_scalar_bits(a));
    return true;
}

static void pass_sums(TileExecutor *e, const ExecInstruction *in) {
    for (uint32_t i = 0; i < in->operand_count; i++)
        tile_exec_copy(tile_exec_operand(e, in, i), tile_exec_value(e, in->result + i));
}

bool tile_exec_warpgroup(TileExecutor *threads, uint32_t *failed) {
    bool done = true;
    *failed = 0;
    if (threads->meeting->op->id == TILE_OP_WGMMA) done = multiply(threads, failed);
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS && threads->meeting->op->id == TILE_OP_WGMMA_WAIT; i++)
        pass_sums(&threads[i], threads[i].meeting);
    for (uint32_t i = 0; i < TILE_WARPGROUP_THREADS && done; i++) threads[i].meeting = NULL;
    return done;
}

bool tile_exec_fence_async(TileExecutor *e, const ExecInstruction *in) {
    if (!e->thread_count) return tile_exec_fault(e, in, "this function is not run by a block of threads");
    return true;
}
