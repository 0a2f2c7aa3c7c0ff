/* Tile registers of AMX, and products of words by vectors. Intel's Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILESTORED,
 * TILEZERO, TDPBF16PS, TDPBSSD and its like, VDPBF16PS, VPDPBUSD. What the manual leaves open was measured, see tests/unit/mlir_bridge. */
#include <math.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

enum { REGISTERS = 8, MOST_ROWS = 16, MOST_BYTES = 64, CONFIG_BYTES = 64, CONFIG_WIDTHS = 16, CONFIG_ROWS = 48 };

typedef struct Register {
    uint32_t rows, bytes;
    uint8_t data[MOST_ROWS][MOST_BYTES], poison[MOST_ROWS][MOST_BYTES];
} Register;

struct ExecAmx {
    bool configured;
    Register registers[REGISTERS];
};

/* ---- numbers ---- */

/* Subnormals count as 0. */
static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }

/* A result is flushed if, rounded as if exponents had no bound, it is below the least normal number. Such a result may
 * be that number when it is rounded as a subnormal; then the same sum of numbers 2**64 times as great tells. */
static float add_product(float x, float y, float sum) {
    x = flush(x);
    y = flush(y);
    float result = fmaf(x, y, sum);
    bool least = fabsf(result) == 0x1p-126f;
    if (least && fabsf(fmaf(x * 0x1p32f, y * 0x1p32f, sum * 0x1p64f)) < 0x1p-62f) return copysignf(0, result);
    return flush(result);
}

/* Sums of normal numbers are exact where they are subnormal. */
static float add(float x, float y) { return flush(flush(x) + flush(y)); }

float tile_exec_word_sum(float c, const float *a, size_t a_step, const float *b, size_t b_step, size_t k) {
    for (size_t l = 0; l < k; l += EXEC_WORD_BF16) {
        bool pair = l + 1 < k;
        c = add_product(pair ? a[(l + 1) * a_step] : 0, pair ? b[(l + 1) * b_step] : 0, flush(c));
        c = add_product(a[l * a_step], b[l * b_step], c);
    }
    return c;
}

float tile_exec_amx_sum(float c, const float *a, size_t a_step, const float *b, size_t b_step, size_t k) {
    float sums[2] = {0, 0};
    for (size_t l = 0; l < k; l++) sums[l % 2] = add_product(a[l * a_step], b[l * b_step], sums[l % 2]);
    return add(c, add(sums[0], sums[1]));
}

/* ---- registers ---- */

static Register *find(TileExecutor *e, const ExecInstruction *in, unsigned index) {
    if (e->amx && e->amx->configured)
        return &e->amx->registers[tile_op_get(in->op, TILE_ATTRIBUTE_TILE_REGISTERS)->integers[index]];
    tile_exec_fault(e, in, "no tile registers have been configured");
    return NULL;
}

static void clear(Register *r) {
    memset(r->data, 0, sizeof r->data);
    memset(r->poison, 0, sizeof r->poison);
}

/* The address of operand 0; false, and the executor stops, if it is poison. */
static bool find_address(TileExecutor *e, const ExecInstruction *in, uint64_t *object, int64_t *offset) {
    ExecValue pointer = tile_exec_operand(e, in, 0);
    uint8_t poison = tile_exec_poisoned(pointer, 0);
    *object = pointer.lanes[0];
    *offset = (int64_t)pointer.lanes[1];
    return !poison || tile_exec_poison(e, in, poison, "has as an index", "the address is poison");
}

static bool read_config(TileExecutor *e, const ExecInstruction *in, uint8_t *config) {
    uint64_t object;
    int64_t offset;
    if (!find_address(e, in, &object, &offset)) return false;
    for (int64_t i = 0; i < CONFIG_BYTES; i++) {
        uint64_t bits;
        uint8_t poison;
        if (!tile_exec_load_element(e, in, object, offset + i, TILE_U8, &bits, &poison)) return false;
        if (poison) return tile_exec_poison(e, in, poison, "configures with", "a shape of a tile register is poison");
        config[i] = (uint8_t)bits;
    }
    return true;
}

bool tile_exec_amx_configure(TileExecutor *e, const ExecInstruction *in) {
    uint8_t config[CONFIG_BYTES];
    if (!read_config(e, in, config)) return false;
    if (!e->amx) e->amx = TILE_NEW(e->arena, ExecAmx);
    bool valid = config[0] == 1;
    for (unsigned i = 1; i < CONFIG_BYTES; i++)
        if (i < CONFIG_WIDTHS || (i >= CONFIG_WIDTHS + 2 * REGISTERS && i < CONFIG_ROWS) ||
            i >= CONFIG_ROWS + REGISTERS)
            valid &= config[i] == 0;
    for (unsigned i = 0; i < REGISTERS; i++) {
        Register *r = &e->amx->registers[i];
        r->rows = config[CONFIG_ROWS + i];
        r->bytes = config[CONFIG_WIDTHS + 2 * i] | (uint32_t)config[CONFIG_WIDTHS + 2 * i + 1] << 8;
        valid &= r->rows <= MOST_ROWS && r->bytes <= MOST_BYTES && !r->rows == !r->bytes;
        clear(r);
    }
    if (!valid) return tile_exec_fault(e, in, "tile registers cannot have these shapes");
    e->amx->configured = true;
    return true;
}

bool tile_exec_amx_release(TileExecutor *e, const ExecInstruction *in) {
    (void)in;
    if (e->amx) e->amx->configured = false;
    return true;
}

bool tile_exec_amx_zero(TileExecutor *e, const ExecInstruction *in) {
    Register *r = find(e, in, 0);
    if (r) clear(r);
    return r != NULL;
}

typedef struct Place {
    uint64_t object;
    int64_t offset, stride;
} Place;

static bool find_place(TileExecutor *e, const ExecInstruction *in, Place *place) {
    return find_address(e, in, &place->object, &place->offset) &&
           tile_exec_integer(e, in, 1, "a stride", &place->stride);
}

bool tile_exec_amx_load(TileExecutor *e, const ExecInstruction *in) {
    Register *r = find(e, in, 0);
    Place place;
    if (!r || !find_place(e, in, &place)) return false;
    clear(r);
    for (uint32_t row = 0; row < r->rows; row++)
        for (uint32_t i = 0; i < r->bytes; i++) {
            uint64_t bits;
            int64_t at = place.offset + row * place.stride + i;
            if (!tile_exec_load_element(e, in, place.object, at, TILE_U8, &bits, &r->poison[row][i])) return false;
            r->data[row][i] = (uint8_t)bits;
        }
    return true;
}

bool tile_exec_amx_store(TileExecutor *e, const ExecInstruction *in) {
    Register *r = find(e, in, 0);
    Place place;
    if (!r || !find_place(e, in, &place)) return false;
    for (uint32_t row = 0; row < r->rows; row++)
        for (uint32_t i = 0; i < r->bytes; i++)
            if (!tile_exec_store_element(e, in, place.object, place.offset + row * place.stride + i, TILE_U8,
                                         r->data[row][i], r->poison[row][i]))
                return false;
    return true;
}

/* ---- products ---- */

enum { WORD = 4 /* bytes of a sum, and of the elements of one k of b's row */ };

/* Of so many elements. */
static void read_row(const Register *r, uint32_t row, TileScalar scalar, float *floats, int32_t *integers) {
    uint32_t size = tile_scalar_bytes(scalar);
    for (uint32_t i = 0; i < r->bytes / size; i++) {
        uint64_t bits = 0;
        memcpy(&bits, &r->data[row][i * size], size);
        bits = tile_scalar_convert(scalar, scalar == TILE_BF16 ? TILE_F32 : TILE_I32, bits);
        uint32_t word = (uint32_t)bits;
        memcpy(scalar == TILE_BF16 ? (void *)&floats[i] : (void *)&integers[i], &word, sizeof word);
    }
}

typedef struct Operand {
    float floats[MOST_ROWS][MOST_BYTES];
    int32_t integers[MOST_ROWS][MOST_BYTES];
} Operand;

static void read_operand(const Register *r, TileScalar scalar, Operand *operand) {
    for (uint32_t row = 0; row < r->rows; row++) read_row(r, row, scalar, operand->floats[row], operand->integers[row]);
}

/* The sum of row i and column j, of b's elements column by column. */
static uint32_t add_products(const Operand *a, const Operand *b, uint32_t i, uint32_t j, uint32_t pack, uint32_t rows,
                             uint32_t sum, bool floats) {
    if (floats) {
        float column[EXEC_AMX_DEPTH], c;
        for (uint32_t l = 0; l < rows * pack; l++) column[l] = b->floats[l / pack][j * pack + l % pack];
        memcpy(&c, &sum, sizeof c);
        c = tile_exec_amx_sum(c, a->floats[i], 1, column, 1, (size_t)rows * pack);
        memcpy(&sum, &c, sizeof c);
        return sum;
    }
    for (uint32_t l = 0; l < rows * pack; l++)
        sum += (uint32_t)a->integers[i][l] * (uint32_t)b->integers[l / pack][j * pack + l % pack];
    return sum;
}

static uint8_t poison_of(const Register *a, const Register *b, uint32_t i, uint32_t j) {
    uint8_t poison = 0;
    for (uint32_t l = 0; l < a->bytes; l++) poison |= a->poison[i][l] | b->poison[l / WORD][j * WORD + l % WORD];
    return poison;
}

bool tile_exec_amx_dot(TileExecutor *e, const ExecInstruction *in) {
    Register *c = find(e, in, 0), *a = find(e, in, 1), *b = find(e, in, 2);
    if (!c) return false;
    bool fits = c->rows == a->rows && c->bytes == b->bytes && a->bytes == b->rows * WORD && c->bytes % WORD == 0;
    if (!fits || !c->rows || !a->bytes) return tile_exec_fault(e, in, "the shapes of the tile registers do not fit");
    const TileAttribute *types = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES);
    TileScalar scalar = types->types[0]->scalar;
    Operand *operands = tile_exec_scratch(e, 2 * sizeof *operands);
    if (!operands) return false;
    read_operand(a, scalar, &operands[0]);
    read_operand(b, types->types[1]->scalar, &operands[1]);
    for (uint32_t i = 0; i < c->rows; i++)
        for (uint32_t j = 0; j < c->bytes / WORD; j++) {
            uint32_t sum;
            memcpy(&sum, &c->data[i][j * WORD], WORD);
            sum = add_products(&operands[0], &operands[1], i, j, WORD / tile_scalar_bytes(scalar), b->rows, sum,
                               scalar == TILE_BF16);
            memcpy(&c->data[i][j * WORD], &sum, WORD);
            uint8_t poison = poison_of(a, b, i, j);
            for (uint32_t l = 0; l < WORD; l++) c->poison[i][j * WORD + l] |= poison;
        }
    return true;
}

/* ---- words in vectors ---- */

static uint64_t element(TileScalar from, TileScalar to, uint64_t word, unsigned index) {
    uint64_t mask = ((uint64_t)1 << tile_scalar_bits(from)) - 1;
    return tile_scalar_convert(from, to, word >> index * tile_scalar_bits(from) & mask);
}

static uint32_t add_pair(uint64_t a, uint64_t b, uint32_t sum) {
    float x[EXEC_WORD_BF16], y[EXEC_WORD_BF16], c;
    for (unsigned i = 0; i < EXEC_WORD_BF16; i++) {
        uint32_t p = (uint32_t)element(TILE_BF16, TILE_F32, a, i), q = (uint32_t)element(TILE_BF16, TILE_F32, b, i);
        memcpy(&x[i], &p, sizeof p);
        memcpy(&y[i], &q, sizeof q);
    }
    memcpy(&c, &sum, sizeof c);
    c = tile_exec_word_sum(c, x, 1, y, 1, EXEC_WORD_BF16);
    memcpy(&sum, &c, sizeof c);
    return sum;
}

bool tile_exec_dot_words(TileExecutor *e, const ExecInstruction *in) {
    ExecValue a = tile_exec_operand(e, in, 0), b = tile_exec_operand(e, in, 1), c = tile_exec_operand(e, in, 2),
              result = tile_exec_result(e, in);
    bool floats = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES)->types[0]->scalar == TILE_BF16;
    *result.any = 0;
    for (uint32_t l = 0; l < result.count; l++) {
        uint32_t sum = (uint32_t)c.lanes[l];
        uint8_t poison = tile_exec_poisoned(a, l) | tile_exec_poisoned(b, l) | tile_exec_poisoned(c, l);
        if (floats)
            sum = add_pair(a.lanes[l], b.lanes[l], sum);
        else
            for (unsigned i = 0; i < WORD; i++)
                sum += (uint32_t)element(TILE_U8, TILE_I32, a.lanes[l], i) * (uint32_t)element(TILE_I8, TILE_I32, b.lanes[l], i);
        result.lanes[l] = sum;
        if (poison) tile_exec_set_poison(e, result, l, poison);
    }
    return true;
}
