/* Warp-level ops, executed once all lanes have arrived: shuffles, and matrices in fragments. PTX ISA 8.7, ldmatrix,
 * stmatrix, and mma.m16n8k16 and the like. */
#include <math.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

enum { ROW_BYTES = 16, ROWS = 8, WORD_BITS = 32, MOST_MATRICES = 4, M = 16, N = 8, MOST_K = 32 };

/* ---- exchange ---- */

/* Reading a lane that does not exist gives poison. */
static bool exchange(TileExecutor *threads, uint32_t count, uint32_t *failed) {
    uint64_t bits[TILE_WARP_THREADS];
    uint8_t poison[TILE_WARP_THREADS];
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &threads[lane];
        ExecValue value = tile_exec_operand(e, e->meeting, 0);
        bits[lane] = value.lanes[0];
        poison[lane] = tile_exec_poisoned(value, 0);
    }
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &threads[lane];
        int64_t mask;
        *failed = lane;
        if (!tile_exec_integer(e, e->meeting, 1, "the lane", &mask)) return false;
        int64_t from = (int64_t)lane ^ mask;
        ExecValue result = tile_exec_result(e, e->meeting);
        if (from < 0 || from >= TILE_WARP_THREADS) return tile_exec_fault(e, e->meeting, "no lane of a warp");
        tile_exec_set_scalar(result, from < count ? bits[from] : 0);
        uint8_t why = from < count ? poison[from] : EXEC_POISON;
        if (why) tile_exec_set_poison(e, result, 0, why);
    }
    return true;
}

/* The lanes of a half of x or of y: what they have, and why it is poison. */
typedef struct Half {
    uint64_t bits[2];
    uint8_t poison[2];
} Half;

static Half half_of(TileExecutor *e, unsigned operand, bool upper) {
    ExecValue value = tile_exec_operand(e, e->meeting, operand);
    int64_t count = tile_type_lanes(tile_op_operand(e->meeting->op, operand)->type) / 2;
    Half half = {{0}, {0}};
    for (int64_t i = 0; i < count; i++) {
        half.bits[i] = value.lanes[i + upper * count];
        half.poison[i] = tile_exec_poisoned(value, i + upper * count);
    }
    return half;
}

static void set_half(TileExecutor *e, unsigned number, bool upper, const Half *half) {
    ExecValue result = tile_exec_value(e, e->meeting->result + number);
    int64_t count = tile_type_lanes(e->meeting->op->results[number].type) / 2;
    for (int64_t i = 0; i < count; i++) {
        result.lanes[i + upper * count] = half->bits[i];
        tile_exec_set_poison(e, result, i + upper * count, half->poison[i]);
    }
}

static bool exchange_halves(TileExecutor *threads, uint32_t count, uint32_t *failed) {
    Half sent[TILE_WARP_THREADS][2], kept[TILE_WARP_THREADS][2];
    bool upper[TILE_WARP_THREADS];
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &threads[lane];
        ExecValue own = tile_exec_operand(e, e->meeting, 2);
        *failed = lane;
        if (tile_exec_poisoned(own, 0)) return tile_exec_poison(e, e->meeting, own.poison[0], "takes as `upper`", "it is poison");
        upper[lane] = own.lanes[0] & 1;
        for (unsigned i = 0; i < 2; i++) {
            sent[lane][i] = half_of(e, i, !upper[lane]);
            kept[lane][i] = half_of(e, i, upper[lane]);
        }
    }
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &threads[lane];
        int64_t mask;
        *failed = lane;
        if (!tile_exec_integer(e, e->meeting, 3, "the lane", &mask)) return false;
        int64_t from = (int64_t)lane ^ mask;
        if (from < 0 || from >= count) return tile_exec_fault(e, e->meeting, "no lane of a warp");
        for (unsigned i = 0; i < 2; i++) {
            set_half(e, i, upper[lane], &kept[lane][i]);
            set_half(e, i, !upper[lane], &sent[from][i]);
        }
    }
    return true;
}

/* ---- uniform, elect ---- */

static bool uniform(TileExecutor *threads, uint32_t count, uint32_t *failed) {
    ExecValue first = tile_exec_operand(&threads[0], threads->meeting, 0);
    for (uint32_t lane = 0; lane < count; lane++) {
        TileExecutor *e = &threads[lane];
        ExecValue x = tile_exec_operand(e, e->meeting, 0);
        *failed = lane;
        if (x.lanes[0] != first.lanes[0] || tile_exec_poisoned(x, 0) != tile_exec_poisoned(first, 0))
            return tile_exec_fault(e, e->meeting, "lane %u has %lld, and lane 0 has %lld", lane, (long long)x.lanes[0],
                                   (long long)first.lanes[0]);
        tile_exec_copy(x, tile_exec_result(e, e->meeting));
    }
    return true;
}

static bool elect(TileExecutor *threads, uint32_t count) {
    for (uint32_t lane = 0; lane < count; lane++) tile_exec_set_scalar(tile_exec_result(&threads[lane], threads[lane].meeting), lane == 0);
    return true;
}

/* ---- load_matrix ---- */

typedef struct Row {
    unsigned char bytes[ROW_BYTES];
    uint8_t poison[ROW_BYTES];
} Row;

/* The memory of the row whose address this lane has. Four lanes get the row's values when it is read; to detect a race
 * it suffices that one of them is another lane than the one with the address. A row is stored once, by the lane with
 * its address. */
static ExecObject *reach_row(TileExecutor *threads, uint32_t lane, bool write, int64_t *offset) {
    TileExecutor *e = &threads[lane], *other = &threads[lane ^ 1];
    const ExecInstruction *in = e->meeting;
    ExecValue pointer = tile_exec_operand(e, in, write);
    if (tile_exec_poisoned(pointer, 0)) {
        tile_exec_poison(e, in, pointer.poison[0], "has as an index", "the address is poison");
        return NULL;
    }
    uint64_t number = pointer.lanes[0];
    *offset = (int64_t)pointer.lanes[1];
    ExecObject *object = tile_exec_reach(e, in, number, *offset, ROW_BYTES, write);
    if (!object) return NULL;
    if (((uintptr_t)object->base + (uintptr_t)*offset) % ROW_BYTES) {
        tile_exec_fault(e, in, "the address is not aligned to %d bytes", ROW_BYTES);
        return NULL;
    }
    if (!object->shadow) return object;
    if (!tile_exec_share(e, in, number, *offset, ROW_BYTES, write)) return NULL;
    if (write || tile_exec_share(other, in, number, *offset, ROW_BYTES, false)) return object;
    e->state = other->state;
    e->message = other->message;
    return NULL;
}

static bool read_row(TileExecutor *threads, uint32_t lane, Row *row) {
    int64_t offset;
    const ExecObject *object = reach_row(threads, lane, false, &offset);
    if (!object) return false;
    memcpy(row->bytes, object->base + offset, ROW_BYTES);
    for (int i = 0; i < ROW_BYTES; i++)
        row->poison[i] = tile_exec_read_poison(&threads[lane], threads[lane].meeting, object, offset + i, 1);
    return true;
}

/* The offset of a byte of a lane's register in the matrix. */
static void locate(bool transposed, uint32_t lane, uint32_t byte, uint32_t *row, uint32_t *column) {
    *row = lane / 4;
    *column = 4 * (lane % 4) + byte;
    if (!transposed) return;
    *row = 2 * (lane % 4) + byte / 2;
    *column = 2 * (lane / 4) + byte % 2;
}

static void give_rows(TileExecutor *e, uint32_t lane, const Row rows[MOST_MATRICES][ROWS]) {
    ExecValue result = tile_exec_result(e, e->meeting);
    TileScalar scalar = e->meeting->op->results[0].type->scalar;
    bool transposed = tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_TRANSPOSED, 0) != 0;
    uint32_t bytes = tile_scalar_bytes(scalar);
    *result.any = 0;
    for (uint32_t i = 0; i < result.count; i++) {
        uint64_t bits = 0;
        uint8_t poison = 0;
        for (uint32_t b = 0; b < bytes; b++) {
            uint32_t at = i * bytes + b, row, column;
            locate(transposed, lane, at % 4, &row, &column);
            bits |= (uint64_t)rows[at / 4][row].bytes[column] << 8 * b;
            poison |= rows[at / 4][row].poison[column];
        }
        result.lanes[i] = bits;
        if (poison)
            tile_exec_set_poison(e, result, i, poison);
        else if (*result.any)
            result.poison[i] = 0;
    }
}

static uint32_t count_matrices(const TileType *type) {
    return (uint32_t)tile_type_lanes(type) * tile_scalar_bits(type->scalar) / WORD_BITS;
}

static bool load_matrix(TileExecutor *threads, uint32_t *failed) {
    uint32_t matrices = count_matrices(threads->meeting->op->results[0].type);
    Row rows[MOST_MATRICES][ROWS];
    for (uint32_t i = 0; i < matrices * ROWS; i++) {
        *failed = i;
        if (!read_row(threads, i, &rows[i / ROWS][i % ROWS])) return false;
    }
    for (uint32_t lane = 0; lane < TILE_WARP_THREADS; lane++) give_rows(&threads[lane], lane, rows);
    return true;
}

/* ---- store_matrix ---- */

static void take_rows(TileExecutor *e, uint32_t lane, Row rows[MOST_MATRICES][ROWS]) {
    ExecValue value = tile_exec_operand(e, e->meeting, 0);
    bool transposed = tile_op_integer(e->meeting->op, TILE_ATTRIBUTE_TRANSPOSED, 0) != 0;
    uint32_t bytes = tile_scalar_bytes(tile_op_operand(e->meeting->op, 0)->type->scalar);
    for (uint32_t i = 0; i < value.count; i++)
        for (uint32_t b = 0; b < bytes; b++) {
            uint32_t at = i * bytes + b, row, column;
            locate(transposed, lane, at % 4, &row, &column);
            rows[at / 4][row].bytes[column] = (unsigned char)(value.lanes[i] >> 8 * b);
            rows[at / 4][row].poison[column] = tile_exec_poisoned(value, i);
        }
}

static bool write_row(TileExecutor *threads, uint32_t lane, const Row *row) {
    int64_t offset;
    const TileExecutor *e = &threads[lane];
    ExecObject *object = reach_row(threads, lane, true, &offset);
    if (!object) return false;
    uint8_t poison = 0;
    for (int i = 0; i < ROW_BYTES; i++) poison |= row->poison[i];
    if (!object->keeps_poison && poison)
        return tile_exec_poison(&threads[lane], e->meeting, poison, "stores", "stores a lane that is poison");
    memcpy(object->base + offset, row->bytes, ROW_BYTES);
    if (object->poison) memcpy(object->poison + offset, row->poison, ROW_BYTES);
    return true;
}

static bool store_matrix(TileExecutor *threads, uint32_t *failed) {
    Row rows[MOST_MATRICES][ROWS];
    uint32_t matrices = count_matrices(tile_op_operand(threads->meeting->op, 0)->type);
    for (uint32_t lane = 0; lane < TILE_WARP_THREADS; lane++) take_rows(&threads[lane], lane, rows);
    for (uint32_t i = 0; i < matrices * ROWS; i++) {
        *failed = i;
        if (!write_row(threads, i, &rows[i / ROWS][i % ROWS])) return false;
    }
    return true;
}

/* ---- mma ---- */

typedef struct Product {
    double a[M][MOST_K], b[MOST_K][N];
    uint8_t a_poison[M], b_poison[N]; /* does the row, or the column, have a poison element? */
} Product;

static double number_of(TileScalar scalar, uint64_t bits) {
    uint64_t wide = tile_scalar_convert(scalar, TILE_F64, bits);
    double number;
    memcpy(&number, &wide, sizeof number);
    return number;
}

/* Elements of a register are consecutive along k, then the lanes of a group of four, then further registers. */
static void take_operands(TileExecutor *e, uint32_t lane, Product *product) {
    for (unsigned operand = 0; operand < 2; operand++) {
        ExecValue value = tile_exec_operand(e, e->meeting, operand);
        TileScalar scalar = tile_op_operand(e->meeting->op, operand)->type->scalar;
        uint32_t packed = tile_scalar_bits(scalar) < WORD_BITS ? WORD_BITS / tile_scalar_bits(scalar) : 1, group = lane / 4;
        for (uint32_t i = 0; i < value.count; i++) {
            uint32_t word = i / packed, k = lane % 4 * packed + i % packed;
            uint64_t bits = scalar == TILE_F32 ? value.lanes[i] & ~UINT64_C(0x1fff) /* of tf32 */ : value.lanes[i];
            double number = number_of(scalar, bits);
            uint8_t poison = tile_exec_poisoned(value, i);
            if (operand) {
                product->b[k + word * 4 * packed][group] = number;
                product->b_poison[group] |= poison;
            } else {
                uint32_t row = group + word % 2 * 8;
                product->a[row][k + word / 2 * 4 * packed] = number;
                product->a_poison[row] |= poison;
            }
        }
    }
}

static uint64_t add_up(const Product *product, TileScalar scalar, uint64_t c, uint32_t row, uint32_t column,
                       uint32_t length) {
    double sum = number_of(scalar, c);
    for (uint32_t k = 0; k < length; k++) sum = fma(product->a[row][k], product->b[k][column], sum);
    if (tile_scalar_is_float(scalar)) {
        uint64_t wide;
        memcpy(&wide, &sum, sizeof wide);
        return tile_scalar_convert(TILE_F64, scalar, wide);
    }
    return (uint32_t)(int64_t)sum; /* integers wrap; their sums are exact in a double */
}

static void give_sums(TileExecutor *e, uint32_t lane, const Product *product, uint32_t length) {
    ExecValue c = tile_exec_operand(e, e->meeting, 2), result = tile_exec_result(e, e->meeting);
    TileScalar scalar = e->meeting->op->results[0].type->scalar;
    uint8_t poison[4];
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        poison[i] = tile_exec_poisoned(c, i) | product->a_poison[row] | product->b_poison[column];
        result.lanes[i] = add_up(product, scalar, c.lanes[i], row, column, length);
    }
    *result.any = 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (poison[i])
            tile_exec_set_poison(e, result, i, poison[i]);
        else if (*result.any)
            result.poison[i] = 0;
    }
}

static void multiply(TileExecutor *threads) {
    Product product = {0};
    uint32_t length = 256 / tile_scalar_bits(tile_op_operand(threads->meeting->op, 0)->type->scalar);
    for (uint32_t lane = 0; lane < TILE_WARP_THREADS; lane++) take_operands(&threads[lane], lane, &product);
    for (uint32_t lane = 0; lane < TILE_WARP_THREADS; lane++) give_sums(&threads[lane], lane, &product, length);
}

bool tile_exec_warp(TileExecutor *threads, uint32_t count, uint32_t *failed) {
    bool done = true;
    *failed = 0;
    if (threads->meeting->op->id == TILE_OP_EXCHANGE)
        done = exchange(threads, count, failed);
    else if (threads->meeting->op->id == TILE_OP_EXCHANGE_HALVES)
        done = exchange_halves(threads, count, failed);
    else if (threads->meeting->op->id == TILE_OP_UNIFORM)
        done = uniform(threads, count, failed);
    else if (threads->meeting->op->id == TILE_OP_ELECT)
        done = elect(threads, count);
    else if (count < TILE_WARP_THREADS)
        done = tile_exec_fault(threads, threads->meeting, "a warp of %u threads cannot do this", count);
    else if (threads->meeting->op->id == TILE_OP_LOAD_MATRIX)
        done = load_matrix(threads, failed);
    else if (threads->meeting->op->id == TILE_OP_STORE_MATRIX)
        done = store_matrix(threads, failed);
    else
        multiply(threads);
    for (uint32_t lane = 0; lane < count && done; lane++) threads[lane].meeting = NULL;
    return done;
}
