#include "ptx/lowering/swizzle.h"

enum { WORD_BYTES = 4, BANK_BYTES = 128, LARGEST_ACCESS = 16 };

static unsigned log2_of(unsigned power) { return (unsigned)__builtin_ctz(power); }

static TileLinearSpan span_of(const TileLayout *layout, TileLayoutDim dim, unsigned count) {
    TileLinearSpan span = {0};
    unsigned first = tile_layout_first_bit(layout, dim);
    for (unsigned i = 0; i < count && i < layout->bits[dim]; i++) tile_span_add(&span, layout->map.column[first + i]);
    return span;
}

/* The bits of an offset, from the lowest on, and the space that they span. */
typedef struct Offsets {
    TileLinear map;
    TileLinearSpan span;
    unsigned outputs;
} Offsets;

static bool add_offset_bit(Offsets *offsets, uint32_t vector) {
    if (offsets->span.dimension == offsets->outputs || !tile_span_add(&offsets->span, vector)) return false;
    offsets->map.column[offsets->map.inputs++] = vector;
    return true;
}

static void add_span(Offsets *offsets, const TileLinearSpan *span, unsigned limit) {
    for (unsigned i = 0; i < span->dimension && offsets->map.inputs < limit; i++)
        add_offset_bit(offsets, span->vector[i]);
}

/* The vectors of `span` that extend `known`, which they are added to. */
static TileLinearSpan beyond(const TileLinearSpan *span, TileLinearSpan *known) {
    TileLinearSpan result = {0};
    for (unsigned i = 0; i < span->dimension; i++)
        if (tile_span_add(known, span->vector[i])) result.vector[result.dimension++] = span->vector[i];
    return result;
}

/* The span modulo `known`. */
static TileLinearSpan modulo(const TileLinearSpan *span, const TileLinearSpan *known) {
    TileLinearSpan result = {0};
    for (unsigned i = 0; i < span->dimension; i++) tile_span_add(&result, tile_span_reduce(known, span->vector[i]));
    return result;
}

static void fill(Offsets *offsets, unsigned limit) {
    for (unsigned i = 0; i < offsets->outputs && offsets->map.inputs < limit; i++)
        add_offset_bit(offsets, UINT32_C(1) << i);
}

/* The lowest bits are a vector: elements that are in one thread on both sides, up to 16 bytes. If that is less than a
 * word, it is completed from one side. */
static void add_vector(Offsets *offsets, const TileLayout *from, const TileLayout *to, unsigned scalar_bytes,
                       uint8_t *log_vector) {
    TileLinearSpan a = span_of(from, TILE_LAYOUT_REGISTER, TILE_LINEAR_BITS),
                   b = span_of(to, TILE_LAYOUT_REGISTER, TILE_LINEAR_BITS), both = {0};
    /* Contiguous elements first, so that what is a vector in global memory stays one. */
    for (unsigned i = 0; i < offsets->outputs; i++)
        if (tile_span_has(&a, UINT32_C(1) << i) && tile_span_has(&b, UINT32_C(1) << i))
            tile_span_add(&both, UINT32_C(1) << i);
    TileLinearSpan rest = tile_span_intersect(&a, &b);
    for (unsigned i = 0; i < rest.dimension; i++) tile_span_add(&both, rest.vector[i]);
    add_span(offsets, &both, log2_of(LARGEST_ACCESS / scalar_bytes));
    *log_vector = offsets->map.inputs;
    unsigned word = scalar_bytes < WORD_BYTES ? log2_of(WORD_BYTES / scalar_bytes) : 0;
    add_span(offsets, &b, word > offsets->map.inputs ? word : offsets->map.inputs);
    add_span(offsets, &a, word > offsets->map.inputs ? word : offsets->map.inputs);
}

/* The bits that select the bank. Lanes that are served together must differ in them, on both sides: first the vectors
 * that the lanes of both sides span, then, of the vectors that only one side spans, those of one side; sums with
 * those of the other side are in the bits above. */
static void add_banks(Offsets *offsets, const TileLayout *from, const TileLayout *to, unsigned scalar_bytes) {
    unsigned unit = scalar_bytes << offsets->map.inputs, lanes = log2_of(BANK_BYTES / unit);
    TileLinearSpan p = span_of(from, TILE_LAYOUT_LANE, lanes), q = span_of(to, TILE_LAYOUT_LANE, lanes);
    p = modulo(&p, &offsets->span);
    q = modulo(&q, &offsets->span);
    TileLinearSpan both = tile_span_intersect(&p, &q), known = both;
    TileLinearSpan only_p = beyond(&p, &known);
    known = both;
    TileLinearSpan only_q = beyond(&q, &known), sums = {0}, single = {0};
    for (unsigned i = 0; i < only_p.dimension || i < only_q.dimension; i++) {
        bool in_p = i < only_p.dimension, in_q = i < only_q.dimension;
        single.vector[single.dimension++] = in_p ? only_p.vector[i] : only_q.vector[i];
        if (in_p && in_q) sums.vector[sums.dimension++] = only_p.vector[i] ^ only_q.vector[i];
    }
    unsigned limit = offsets->map.inputs + lanes;
    add_span(offsets, &both, limit);
    add_span(offsets, &single, limit);
    /* Bank bits that no lane needs get vectors outside of the span of these sums, which otherwise would be missing
     * above. */
    TileLinearSpan kept = offsets->span;
    for (unsigned i = 0; i < sums.dimension; i++) tile_span_add(&kept, sums.vector[i]);
    for (unsigned i = 0; i < offsets->outputs && offsets->map.inputs < limit; i++)
        if (tile_span_add(&kept, UINT32_C(1) << i)) add_offset_bit(offsets, UINT32_C(1) << i);
    fill(offsets, limit);
    add_span(offsets, &sums, offsets->outputs);
}

TileSharedLayout tile_shared_swizzle(const TileLayout *from, const TileLayout *to, unsigned scalar_bytes) {
    Offsets offsets = {.map = tile_linear_zero(0, from->map.outputs), .outputs = from->map.outputs};
    TileSharedLayout shared = {.scalar_bytes = (uint8_t)scalar_bytes};
    add_vector(&offsets, from, to, scalar_bytes, &shared.log_vector);
    add_banks(&offsets, from, to, scalar_bytes);
    fill(&offsets, offsets.outputs);
    shared.map = offsets.map;
    return shared;
}

/* ---- matrices ---- */

enum { LOG_ROWS = 3, LOG_MATRICES = 2 }; /* of a matrix; of one access */

/* The bits of an access by matrices, by what they select. */
typedef struct MatrixBits {
    uint32_t row[LOG_ROWS], column[4]; /* of the tile's index: the row of a matrix, the element of a row */
    unsigned columns;
} MatrixBits;

/* The elements of a word are the lowest register bits that `held` has; a word that is not transposed is along the
 * row. */
static bool choose_words(const TileLayout *layout, const TileLinearSpan *held, TileSharedMatrices *matrices) {
    unsigned count = log2_of(matrices->packed), found = 0;
    for (unsigned i = 0; i < layout->bits[TILE_LAYOUT_REGISTER] && found < count; i++) {
        uint32_t column = layout->map.column[i];
        if (column && (matrices->transposed || tile_span_has(held, column))) matrices->word[found++] = UINT32_C(1) << i;
    }
    return found == count;
}

/* Lane 4 i + j has word j of row i; transposed, the elements of column i in rows 2 j and 2 j + 1. */
static MatrixBits bits_of(const TileLayout *layout, const TileSharedMatrices *matrices) {
    unsigned lane = tile_layout_first_bit(layout, TILE_LAYOUT_LANE), words = log2_of(matrices->packed), at = 0;
    MatrixBits bits = {0};
    uint32_t inner[4];
    for (unsigned i = 0; i < words; i++) inner[at++] = tile_linear_apply(&layout->map, matrices->word[i]);
    for (unsigned i = 0; i < 2; i++) inner[at++] = layout->map.column[lane + i];
    const uint32_t *outer = &layout->map.column[lane + 2];
    bits.columns = matrices->transposed ? LOG_ROWS : at;
    for (unsigned i = 0; i < bits.columns; i++) bits.column[i] = matrices->transposed ? outer[i] : inner[i];
    for (unsigned i = 0; i < LOG_ROWS; i++) bits.row[i] = matrices->transposed ? inner[i] : outer[i];
    return bits;
}

/* The layout in which each lane has the rows whose addresses it supplies, a row in its lowest registers. */
static TileLayout layout_of_rows(const TileLayout *layout, const MatrixBits *bits, TileSharedMatrices *matrices) {
    TileLayout rows = *layout;
    unsigned registers = layout->bits[TILE_LAYOUT_REGISTER], count = bits->columns, more = 0;
    uint32_t used = 0;
    for (unsigned i = 0; i < log2_of(matrices->packed); i++) used |= matrices->word[i];
    rows.map.inputs = 0;
    for (unsigned i = 0; i < bits->columns; i++) rows.map.column[rows.map.inputs++] = bits->column[i];
    for (unsigned i = 0; i < registers; i++) {
        uint32_t bit = UINT32_C(1) << i;
        if (used & bit) continue;
        if (more < LOG_MATRICES) {
            matrices->matrix[more++] = bit;
        } else {
            matrices->rest[count - bits->columns] = bit;
            rows.map.column[rows.map.inputs++] = layout->map.column[i];
            count++;
        }
    }
    matrices->log_count = (uint8_t)more;
    rows.bits[TILE_LAYOUT_REGISTER] = (uint8_t)count;
    for (unsigned i = 0; i < LOG_ROWS; i++) rows.map.column[rows.map.inputs++] = bits->row[i];
    for (unsigned i = 0; i < LOG_MATRICES; i++)
        rows.map.column[rows.map.inputs++] = i < more ? tile_linear_apply(&layout->map, matrices->matrix[i]) : 0;
    for (unsigned i = tile_layout_first_bit(layout, TILE_LAYOUT_WARP); i < layout->map.inputs; i++)
        rows.map.column[rows.map.inputs++] = layout->map.column[i];
    return rows;
}

/* Is each row contiguous and aligned? */
static bool are_rows_aligned(const TileSharedLayout *shared, const TileLayout *rows, unsigned columns) {
    TileLinear offsets = tile_shared_offsets(shared, rows);
    for (unsigned i = columns; i < offsets.inputs; i++)
        if (offsets.column[i] & ((UINT32_C(1) << columns) - 1)) return false;
    return true;
}

static bool find_matrices(const TileLayout *layout, const TileLayout *other, TileSharedMatrices *matrices) {
    unsigned scalar_bytes = WORD_BYTES / matrices->packed;
    TileLinearSpan held = span_of(other, TILE_LAYOUT_REGISTER, TILE_LINEAR_BITS);
    if (!choose_words(layout, &held, matrices)) return false;
    MatrixBits bits = bits_of(layout, matrices);
    Offsets offsets = {.map = tile_linear_zero(0, layout->map.outputs), .outputs = layout->map.outputs};
    for (unsigned i = 0; i < bits.columns; i++)
        if (!tile_span_has(&held, bits.column[i]) || !add_offset_bit(&offsets, bits.column[i])) return false;
    matrices->rows = layout_of_rows(layout, &bits, matrices);
    matrices->shared = (TileSharedLayout){.scalar_bytes = (uint8_t)scalar_bytes, .log_vector = offsets.map.inputs};
    add_banks(&offsets, &matrices->rows, other, scalar_bytes);
    fill(&offsets, offsets.outputs);
    matrices->shared.map = offsets.map;
    return are_rows_aligned(&matrices->shared, &matrices->rows, bits.columns);
}

bool tile_shared_matrices(const TileLayout *layout, const TileLayout *other, unsigned scalar_bytes,
                          TileSharedMatrices *matrices) {
    if (scalar_bytes > WORD_BYTES || layout->bits[TILE_LAYOUT_LANE] != TILE_LANE_BITS) return false;
    for (unsigned transposed = 0; transposed < 2; transposed++) {
        *matrices = (TileSharedMatrices){.packed = (uint8_t)(WORD_BYTES / scalar_bytes), .transposed = transposed != 0};
        if ((!transposed || scalar_bytes == 2) && find_matrices(layout, other, matrices)) return true;
    }
    return false;
}

uint32_t tile_shared_matrices_register(const TileSharedMatrices *matrices, uint32_t access, uint32_t element) {
    uint32_t reg = 0;
    unsigned words = log2_of(matrices->packed);
    for (unsigned i = 0; i < words + matrices->log_count; i++)
        if (element >> i & 1) reg ^= i < words ? matrices->word[i] : matrices->matrix[i - words];
    for (unsigned i = 0; access >> i; i++)
        if (access >> i & 1) reg ^= matrices->rest[i];
    return reg;
}

/* ---- vectors and conflicts ---- */

TileSharedLayout tile_shared_linear(const TileLayout *layout, unsigned scalar_bytes) {
    TileSharedLayout shared = {.map = tile_linear_identity(layout->map.outputs), .scalar_bytes = (uint8_t)scalar_bytes};
    while ((scalar_bytes << shared.log_vector) < LARGEST_ACCESS && shared.log_vector < layout->map.outputs)
        shared.log_vector++;
    return shared;
}

TileLinear tile_shared_offsets(const TileSharedLayout *shared, const TileLayout *layout) {
    TileLinear inverse = tile_linear_pseudo_inverse(&shared->map);
    return tile_linear_compose(&inverse, &layout->map);
}

unsigned tile_shared_vector(const TileSharedLayout *shared, const TileLayout *layout, TileLinear *registers) {
    TileLinear offsets = tile_shared_offsets(shared, layout), columns = offsets;
    columns.inputs = layout->bits[TILE_LAYOUT_REGISTER];
    unsigned count = 0;
    TileLinear found = tile_linear_zero(0, columns.inputs);
    while (((unsigned)shared->scalar_bytes << count) < LARGEST_ACCESS && count < offsets.outputs) {
        TileLinear wanted = tile_linear_zero(1, offsets.outputs), source;
        wanted.column[0] = UINT32_C(1) << count;
        if (!tile_linear_divide(&columns, &wanted, &source)) break;
        found.column[found.inputs++] = source.column[0];
        count++;
    }
    if (registers) *registers = found;
    return 1u << count;
}

/* Lanes that are served together access the words base + L(lane), where L is linear: 2^rank(L) words, in 2^r banks,
 * where r is the rank of L's lowest bits, evenly distributed. */
unsigned tile_shared_conflicts(const TileSharedLayout *shared, const TileLayout *layout) {
    unsigned unit = shared->scalar_bytes * tile_shared_vector(shared, layout, NULL);
    unsigned elements = unit < WORD_BYTES ? WORD_BYTES / shared->scalar_bytes : unit / shared->scalar_bytes;
    if (unit < WORD_BYTES) unit = WORD_BYTES;
    unsigned lanes = log2_of(BANK_BYTES / unit), first = tile_layout_first_bit(layout, TILE_LAYOUT_LANE);
    TileLinear offsets = tile_shared_offsets(shared, layout);
    TileLinearSpan units = {0}, banks = {0};
    for (unsigned i = 0; i < lanes && i < layout->bits[TILE_LAYOUT_LANE]; i++) {
        uint32_t at = offsets.column[first + i] >> log2_of(elements);
        tile_span_add(&units, at);
        tile_span_add(&banks, at & ((UINT32_C(1) << lanes) - 1));
    }
    return 1u << (units.dimension - banks.dimension);
}
