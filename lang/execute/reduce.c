/* Reductions and dot, in the order that ops.def specifies. */
#include <math.h>
#include <string.h>

#include "lang/execute/state.h"
#include "lang/scalar/scalar.h"

/* A tile as outer x extent x inner lanes around the axis. */
typedef struct Lines {
    size_t outer, extent, inner;
    bool last;
} Lines;

static Lines lines_of(const ExecInstruction *in) {
    const TileType *type = in->op->operands[0].value->type;
    int64_t axis = tile_op_integer(in->op, TILE_ATTRIBUTE_AXIS, 0);
    Lines lines = {1, (size_t)type->extent[axis], 1, axis + 1 == type->rank};
    for (int64_t i = 0; i < axis; i++) lines.outer *= (size_t)type->extent[i];
    for (int64_t i = axis + 1; i < type->rank; i++) lines.inner *= (size_t)type->extent[i];
    return lines;
}

/* acc = op(acc, x), for each lane. */
static void combine(const ExecInstruction *in, uint64_t *acc, const uint64_t *x, size_t count) {
    const uint64_t *operands[] = {acc, x};
    in->loop(in->from, in->from, operands, acc, count);
}

static uint64_t reduce_stripes(const ExecInstruction *in, uint64_t identity, const uint64_t *x, size_t count) {
    uint64_t stripes[TILE_STRIPES];
    for (int j = 0; j < TILE_STRIPES; j++) stripes[j] = identity;
    for (size_t i = 0; i < count; i += TILE_STRIPES)
        combine(in, stripes, x + i, count - i < TILE_STRIPES ? count - i : TILE_STRIPES);
    for (size_t half = TILE_STRIPES / 2; half; half /= 2) combine(in, stripes, stripes + half, half);
    return stripes[0];
}

static void add_poison(TileExecutor *e, ExecValue result, size_t lane, uint8_t poison) {
    tile_exec_set_poison(e, result, (uint32_t)lane, poison | tile_exec_poisoned(result, (uint32_t)lane));
}

/* A result is poison if any lane of its line is. */
static void join_lines(TileExecutor *e, ExecValue x, ExecValue result, const Lines *lines) {
    *result.any = 0;
    if (!*x.any) return;
    for (size_t i = 0; i < x.count; i++)
        if (x.poison[i])
            add_poison(e, result, i / (lines->extent * lines->inner) * lines->inner + i % lines->inner, x.poison[i]);
}

bool tile_exec_reduce(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), result = tile_exec_result(e, in);
    Lines lines = lines_of(in);
    uint64_t identity = tile_eval_identity(tile_op_integer(in->op, TILE_ATTRIBUTE_KIND, 0), in->from);
    for (size_t o = 0; o < lines.outer; o++) {
        const uint64_t *line = x.lanes + o * lines.extent * lines.inner;
        uint64_t *acc = result.lanes + o * lines.inner;
        if (lines.last) {
            acc[0] = reduce_stripes(in, identity, line, lines.extent);
            continue;
        }
        for (size_t i = 0; i < lines.inner; i++) acc[i] = identity;
        for (size_t k = 0; k < lines.extent; k++) combine(in, acc, line + k * lines.inner, lines.inner);
    }
    join_lines(e, x, result, &lines);
    if (result.slack) tile_exec_slack_reduce(in, x, result, lines.extent, lines.inner);
    return true;
}

/* Compares the values: NaN is before all others, then the greater (or the lesser); the index decides between equal
 * ones. */
bool tile_exec_is_better(bool maximum, TileScalar scalar, uint64_t x, int64_t i, uint64_t best, int64_t best_index) {
    bool x_nan = tile_scalar_is_nan(scalar, x), best_nan = tile_scalar_is_nan(scalar, best);
    if (x_nan != best_nan) return x_nan;
    uint64_t operands[] = {x, best}, above = 0, below = 0;
    tile_eval(maximum ? TILE_OP_GT : TILE_OP_LT, scalar, TILE_BOOL, operands, &above);
    tile_eval(maximum ? TILE_OP_LT : TILE_OP_GT, scalar, TILE_BOOL, operands, &below);
    return above || (!below && i < best_index);
}

bool tile_exec_arg_reduce(TileExecutor *e, const ExecInstruction *in) {
    ExecValue x = tile_exec_operand(e, in, 0), index = tile_exec_operand(e, in, 1), result = tile_exec_result(e, in);
    bool maximum = tile_op_integer(in->op, TILE_ATTRIBUTE_KIND, 0) == TILE_KIND_MAX;
    Lines lines = lines_of(in);
    for (size_t r = 0; r < lines.outer * lines.inner; r++) {
        size_t first = r / lines.inner * lines.extent * lines.inner + r % lines.inner, best = first;
        for (size_t k = 1; k < lines.extent; k++) {
            size_t at = first + k * lines.inner;
            if (tile_exec_is_better(maximum, in->from, x.lanes[at], (int64_t)index.lanes[at], x.lanes[best],
                                    (int64_t)index.lanes[best]))
                best = at;
        }
        result.lanes[r] = index.lanes[best];
    }
    join_lines(e, x, result, &lines);
    if (result.slack) tile_exec_slack_arg(in, x, index, result, lines.extent, lines.inner);
    for (size_t i = 0; *index.any && i < index.count; i++)
        if (index.poison[i])
            add_poison(e, result, i / (lines.extent * lines.inner) * lines.inner + i % lines.inner, index.poison[i]);
    return true;
}

/* ---- dot ---- */

/* tf32x3 may be less precise than f32, but is computed in f32. */
static bool rounds_to_tf32(const ExecInstruction *in) {
    return tile_op_integer(in->op, TILE_ATTRIBUTE_PRECISION, TILE_PRECISION_IEEE) == TILE_PRECISION_TF32;
}

/* c[m, n] += a[m, k] * b[k, n], in order of k; all contiguous. */
static void dot_f32(bool tf32, const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l++) {
            float x = tf32 ? tile_scalar_round_tf32(a[i * k + l]) : a[i * k + l];
            if (tf32)
                for (size_t j = 0; j < n; j++) c[i * n + j] = fmaf(x, tile_scalar_round_tf32(b[l * n + j]), c[i * n + j]);
            else
                for (size_t j = 0; j < n; j++) c[i * n + j] = fmaf(x, b[l * n + j], c[i * n + j]);
        }
}

static void dot_f64(const double *a, const double *b, double *c, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++) c[i * n + j] = fma(a[i * k + l], b[l * n + j], c[i * n + j]);
}

static void dot_i32(const int32_t *a, const int32_t *b, int32_t *c, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] = (int32_t)((uint32_t)c[i * n + j] + (uint32_t)a[i * k + l] * (uint32_t)b[l * n + j]);
}

/* Lanes to numbers of the accumulator's type, and back. */
static void unpack(TileScalar from, TileScalar acc, const uint64_t *lanes, size_t count, void *out) {
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = from == acc ? lanes[i] : tile_scalar_convert(from, acc, lanes[i]);
        if (acc == TILE_F64)
            memcpy((double *)out + i, &bits, 8);
        else
            memcpy((uint32_t *)out + i, &(uint32_t){(uint32_t)bits}, 4);
    }
}

static void pack(TileScalar acc, const void *numbers, size_t count, uint64_t *lanes) {
    for (size_t i = 0; i < count; i++) {
        if (acc == TILE_F64)
            memcpy(&lanes[i], (const double *)numbers + i, 8);
        else
            lanes[i] = ((const uint32_t *)numbers)[i];
    }
}

/* By AMX: so many k at a time. */
static void dot_amx(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l += EXEC_AMX_DEPTH) {
            size_t depth = k - l < EXEC_AMX_DEPTH ? k - l : EXEC_AMX_DEPTH;
            for (size_t j = 0; j < n; j++)
                c[i * n + j] = tile_exec_amx_sum(c[i * n + j], a + i * k + l, 1, b + l * n + j, n, depth);
        }
}

/* Word by word. */
static void dot_words(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) c[i * n + j] = tile_exec_word_sum(c[i * n + j], a + i * k, 1, b + j, n, k);
}

typedef struct Product {
    TileScalar a, b, acc;
    bool tf32;
    TileName instruction;
    size_t m, n, k;
    size_t parts; /* of k; the rows of c are those of each part */
} Product;

/* On lanes; c is read and written. `work` has room for all three matrices in the accumulator's type. */
static void multiply(const Product *p, const uint64_t *a, const uint64_t *b, uint64_t *c, void *work) {
    size_t bytes = p->acc == TILE_F64 ? 8 : 4;
    char *wa = work, *wb = wa + p->m * p->k * bytes, *wc = wb + p->k * p->n * bytes;
    unpack(p->a, p->acc, a, p->m * p->k, wa);
    unpack(p->b, p->acc, b, p->k * p->n, wb);
    unpack(p->acc, p->acc, c, p->m * p->n, wc);
    if (p->acc == TILE_F64)
        dot_f64((double *)(void *)wa, (double *)(void *)wb, (double *)(void *)wc, p->m, p->n, p->k);
    else if (p->acc == TILE_F32 && p->instruction == TILE_INSTRUCTION_AMX)
        dot_amx((float *)(void *)wa, (float *)(void *)wb, (float *)(void *)wc, p->m, p->n, p->k);
    else if (p->acc == TILE_F32 && p->instruction == TILE_INSTRUCTION_VNNI)
        dot_words((float *)(void *)wa, (float *)(void *)wb, (float *)(void *)wc, p->m, p->n, p->k);
    else if (p->acc == TILE_F32)
        dot_f32(p->tf32, (float *)(void *)wa, (float *)(void *)wb, (float *)(void *)wc, p->m, p->n, p->k);
    else
        dot_i32((int32_t *)(void *)wa, (int32_t *)(void *)wb, (int32_t *)(void *)wc, p->m, p->n, p->k);
    pack(p->acc, wc, p->m * p->n, c);
}

static size_t work_size(const Product *p) { return (2 * p->m * p->k + p->k * p->n + p->m * p->n) * 8; }

/* Each part of k by itself. `work` has room for a part of a, too. */
static void multiply_parts(const Product *p, const uint64_t *a, const uint64_t *b, uint64_t *c, void *work) {
    Product part = *p;
    part.k = p->k / p->parts;
    uint64_t *columns = (uint64_t *)work;
    for (size_t q = 0; q < p->parts; q++) {
        for (size_t i = 0; i < p->m; i++) memcpy(columns + i * part.k, a + i * p->k + q * part.k, part.k * sizeof *a);
        multiply(&part, columns, b + q * part.k * p->n, c + q * p->m * p->n, columns + p->m * part.k);
    }
}

/* An element is poison if its row of a, its column of b or its accumulator has poison. */
static void join_dot(TileExecutor *e, const Product *p, size_t batch, ExecValue a, ExecValue b, ExecValue acc,
                     ExecValue result) {
    size_t depth = p->k / p->parts;
    for (size_t row = 0; row < p->m * p->parts; row++)
        for (size_t j = 0; j < p->n; j++) {
            size_t at = (batch * p->m * p->parts + row) * p->n + j, i = row % p->m, first = row / p->m * depth;
            uint8_t poison = tile_exec_poisoned(acc, (uint32_t)at);
            for (size_t l = first; l < first + depth; l++)
                poison |= tile_exec_poisoned(a, (uint32_t)((batch * p->m + i) * p->k + l)) |
                          tile_exec_poisoned(b, (uint32_t)((batch * p->k + l) * p->n + j));
            if (poison) tile_exec_set_poison(e, result, (uint32_t)at, poison);
        }
}

bool tile_exec_dot(TileExecutor *e, const ExecInstruction *in) {
    ExecValue a = tile_exec_operand(e, in, 0), b = tile_exec_operand(e, in, 1), acc = tile_exec_operand(e, in, 2);
    ExecValue result = tile_exec_result(e, in);
    const TileType *a_type = in->op->operands[0].value->type, *b_type = in->op->operands[1].value->type;
    unsigned rank = a_type->rank;
    Product p = {a_type->scalar,
                 b_type->scalar,
                 in->to,
                 rounds_to_tf32(in),
                 false,
                 (size_t)a_type->extent[rank - 2],
                 (size_t)b_type->extent[rank - 1],
                 (size_t)a_type->extent[rank - 1],
                 (size_t)tile_op_integer(in->op, TILE_ATTRIBUTE_K_PARTS, 1)};
    void *work = tile_exec_scratch(e, work_size(&p));
    if (!work) return false;
    memcpy(result.lanes, acc.lanes, acc.count * sizeof *acc.lanes);
    *result.any = 0;
    for (size_t batch = 0; batch < result.count / (p.parts * p.m * p.n); batch++) {
        multiply_parts(&p, a.lanes + batch * p.m * p.k, b.lanes + batch * p.k * p.n, result.lanes + batch * p.m * p.n, work);
        if (*a.any || *b.any || *acc.any) join_dot(e, &p, batch, a, b, acc, result);
    }
    if (result.slack) tile_exec_slack_dot(in, a, b, acc, result, p.m, p.k, p.n, p.tf32 ? 0x1p-9 : 0x1p-20);
    return true;
}

/* Here products are complete at once. */
bool tile_exec_dot_wait(TileExecutor *e, const ExecInstruction *in) {
    tile_exec_copy(tile_exec_operand(e, in, 0), tile_exec_result(e, in));
    return true;
}

/* ---- dot_block ---- */

/* A matrix in memory: a pointer and the bytes from row to row and from column to column. */
typedef struct Matrix {
    ExecValue pointer;
    TileScalar scalar;
    int64_t row, column, first_row, first_column;
    size_t rows, columns;
} Matrix;

static int64_t element_offset(const Matrix *x, size_t row, size_t column) {
    return (int64_t)x->pointer.lanes[1] + (x->first_row + (int64_t)row) * x->row +
           (x->first_column + (int64_t)column) * x->column;
}

/* The lanes of a matrix, and whether each is poison. */
typedef struct Copy {
    uint64_t *lanes;
    uint8_t *poison;
    bool any;
} Copy;

static bool read_matrix(TileExecutor *e, const ExecInstruction *in, const Matrix *x, const char *name, Copy *copy) {
    uint8_t address = tile_exec_poisoned(x->pointer, 0);
    if (address) return tile_exec_poison(e, in, address, "has as an index", "the address of %s is poison", name);
    copy->any = false;
    for (size_t i = 0; i < x->rows; i++)
        for (size_t j = 0; j < x->columns; j++) {
            size_t at = i * x->columns + j;
            uint8_t poison;
            if (!tile_exec_load_element(e, in, x->pointer.lanes[0], element_offset(x, i, j), x->scalar,
                                        &copy->lanes[at], &poison))
                return false;
            copy->poison[at] = poison;
            copy->any |= poison != 0;
        }
    return true;
}

static bool write_matrix(TileExecutor *e, const ExecInstruction *in, const Matrix *x, const Copy *copy) {
    for (size_t i = 0; i < x->rows; i++)
        for (size_t j = 0; j < x->columns; j++) {
            size_t at = i * x->columns + j;
            if (!tile_exec_store_element(e, in, x->pointer.lanes[0], element_offset(x, i, j), x->scalar,
                                         copy->lanes[at], copy->poison[at]))
                return false;
        }
    return true;
}

/* Like join_dot. */
static void join_copies(const Product *p, const Copy *a, const Copy *b, Copy *c) {
    if (!a->any && !b->any) return;
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            for (size_t l = 0; l < p->k; l++)
                c->poison[i * p->n + j] |= a->poison[i * p->k + l] | b->poison[l * p->n + j];
}

/* Sizes and offsets: m, n, k, m0, n0, k0, checked against the extents that the op declares. */
static bool read_sizes(TileExecutor *e, const ExecInstruction *in, int64_t *sizes) {
    const TileAttribute *extents = tile_op_get(in->op, TILE_ATTRIBUTE_EXTENTS);
    for (unsigned i = 0; i < 6; i++)
        if (!tile_exec_integer(e, in, 8 + i, "a size", &sizes[i])) return false;
    for (unsigned i = 0; i < 3; i++) {
        if (sizes[i] < 0) sizes[i] = 0;
        if (sizes[i] > extents->integers[i])
            return tile_exec_fault(e, in, "size %u is %lld, beyond its extent of %lld", i, (long long)sizes[i],
                                   (long long)extents->integers[i]);
    }
    return true;
}

bool tile_exec_dot_block(TileExecutor *e, const ExecInstruction *in) {
    const TileAttribute *types = tile_op_get(in->op, TILE_ATTRIBUTE_TYPES);
    int64_t strides[8] = {0}, sizes[6];
    for (unsigned i = 0; i < 8; i++)
        if (i != 0 && i != 3 && i != 6 && !tile_exec_integer(e, in, i, "a stride", &strides[i])) return false;
    if (!read_sizes(e, in, sizes)) return false;
    TileName instruction = (TileName)tile_op_integer(in->op, TILE_ATTRIBUTE_INSTRUCTION, TILE_INSTRUCTION_FMA);
    Product p = {types->types[0]->scalar, types->types[1]->scalar, types->types[2]->scalar, rounds_to_tf32(in), instruction,
                 (size_t)sizes[0],        (size_t)sizes[1],        (size_t)sizes[2],        1};
    Matrix a = {tile_exec_operand(e, in, 0), p.a, strides[1], strides[2], sizes[3], sizes[5], p.m, p.k};
    Matrix b = {tile_exec_operand(e, in, 3), p.b, strides[4], strides[5], sizes[5], sizes[4], p.k, p.n};
    Matrix c = {tile_exec_operand(e, in, 6), p.acc, strides[7], tile_scalar_bytes(p.acc), sizes[3], sizes[4], p.m, p.n};
    size_t lanes = p.m * p.k + p.k * p.n + p.m * p.n;
    uint64_t *work = tile_exec_scratch(e, lanes * (sizeof *work + 1) + work_size(&p));
    if (!work) return false;
    uint8_t *poison = (uint8_t *)(work + lanes) + work_size(&p);
    Copy ca = {work, poison, false};
    Copy cb = {ca.lanes + p.m * p.k, ca.poison + p.m * p.k, false};
    Copy cc = {cb.lanes + p.k * p.n, cb.poison + p.k * p.n, false};
    if (!read_matrix(e, in, &a, "a", &ca) || !read_matrix(e, in, &b, "b", &cb) || !read_matrix(e, in, &c, "c", &cc))
        return false;
    multiply(&p, ca.lanes, cb.lanes, cc.lanes, work + lanes);
    join_copies(&p, &ca, &cb, &cc);
    return write_matrix(e, in, &c, &cc);
}
