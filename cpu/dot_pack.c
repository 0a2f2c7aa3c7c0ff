/* Packing: operands are converted to panels of the accumulators' type, in the order in which the micro-kernel reads
 * them. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

/* Elements along one direction: contiguous or strided. */
typedef struct Run {
    TileScalar scalar;
    TileValue *stride;  /* bytes */
    TileValue *offsets; /* of the lanes of a vector, in bytes; NULL: contiguous */
    int64_t lanes;      /* of a vector that is not scalable; 0: those of the product's vectors */
} Run;

static const TileType *run_type(Dot *dot, const Run *run, TileScalar scalar) {
    return run->lanes ? tile_type_vector(dot->builder->module->context, scalar, run->lanes, false) : dot_vector(dot, scalar);
}

static Run adjacent_run(Dot *dot, TileScalar scalar) {
    return (Run){scalar, dot_i64(dot, tile_scalar_bytes(scalar)), NULL, 0};
}

static Run strided_run(Dot *dot, TileScalar scalar, TileValue *stride, int64_t lanes) {
    Run run = {scalar, stride, NULL, lanes};
    const TileType *type = run_type(dot, &run, TILE_I64);
    TileValue *numbers = tile_build_iota(dot->builder, type, 0), *step = tile_build_splat(dot->builder, stride, type);
    run.offsets = tile_emit_binary(dot->emitter, TILE_OP_MUL, numbers, step);
    return run;
}

static TileValue *gather(Dot *dot, const Run *run, TileValue *pointer, TileValue *mask, TileValue *zero) {
    static const int64_t parts[] = {TILE_PARTS_MASK, TILE_PARTS_FILL};
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_PARTS, .count = 2, .integers = parts};
    TileValue *operands[] = {pointer, run->offsets, mask, zero};
    const TileType *type = run_type(dot, run, run->scalar);
    return tile_op_result(
        tile_build_op(dot->builder, TILE_OP_GATHER, operands, mask ? 4 : 2, &attribute, mask != NULL, &type, 1), 0);
}

/* Loads a vector and converts it to the panels' type; lanes outside of the mask (NULL: there is none) are zero. */
static TileValue *load_run(Dot *dot, const Run *run, TileValue *pointer, TileValue *mask) {
    const TileType *type = run_type(dot, run, run->scalar);
    TileValue *zero = mask ? tile_emit_bits(dot->emitter, type, 0) : NULL;
    TileValue *value = run->offsets ? gather(dot, run, pointer, mask, zero)
                                    : tile_build_load(dot->builder, type, pointer, mask, zero, 0);
    value = tile_build_convert(dot->builder, value, dot->scalar);
    return dot->precision == TILE_PRECISION_TF32 ? dot_tf32(dot, value) : value;
}

/* Emits the body for a contiguous and for a strided run, with a test of the stride at run time unless it is constant.
 */
typedef void (*PackBody)(Dot *dot, const Run *run, void *state);

static void pack_by_stride(Dot *dot, const DotOperand *operand, TileValue *stride, PackBody body, void *state) {
    int64_t size = tile_scalar_bytes(operand->scalar), known;
    bool is_known = tile_value_integer(stride, &known);
    if (!is_known) dot_if(dot, dot_binary(dot, TILE_OP_EQ, stride, dot_i64(dot, size)));
    if (!is_known || known == size) {
        Run run = adjacent_run(dot, operand->scalar);
        body(dot, &run, state);
    }
    if (!is_known) dot_else(dot);
    if (!is_known || known != size) {
        Run run = strided_run(dot, operand->scalar, stride, 0);
        body(dot, &run, state);
    }
    if (!is_known) dot_end(dot);
}

/* ---- squares ---- */

enum { MOST_LANES = 16, COLUMNS_AHEAD = 8 /* k whose rows are fetched ahead of their copy */ };

/* Transposes a square of vectors by log2(lanes) stages of shuffles; each stage interleaves lanes at half the distance
 * of the one before. */
static void transpose(Dot *dot, TileValue **rows) {
    TileValue *next[MOST_LANES];
    int64_t half = dot->lanes / 2, low[MOST_LANES], high[MOST_LANES];
    for (int64_t l = 0; l < dot->lanes; l++) {
        low[l] = l / 2 + (l % 2) * dot->lanes;
        high[l] = low[l] + half;
    }
    for (int64_t stage = 1; stage < dot->lanes; stage *= 2) {
        for (int64_t r = 0; r < half; r++) {
            next[2 * r] = tile_build_shuffle(dot->builder, rows[r], rows[r + half], low, (unsigned)dot->lanes);
            next[2 * r + 1] = tile_build_shuffle(dot->builder, rows[r], rows[r + half], high, (unsigned)dot->lanes);
        }
        for (int64_t r = 0; r < dot->lanes; r++) rows[r] = next[r];
    }
}

/* ---- a: rows are copied ---- */

typedef struct PackA {
    TileValue *i, *k0, *kc;
} PackA;

/* Of a vector that is not scalable. */
static TileValue *fixed_mask(Dot *dot, int64_t lanes, TileValue *first, TileValue *limit) {
    TileValue *operands[] = {first, limit};
    const TileType *type = tile_type_vector(dot->builder->module->context, TILE_BOOL, lanes, false);
    return tile_op_result(tile_build_op(dot->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1), 0);
}

static void copy_vector(Dot *dot, const Run *run, TileValue *from, TileValue *to, TileValue *k, TileValue *limit) {
    TileValue *mask = !limit ? NULL : run->lanes ? fixed_mask(dot, run->lanes, k, limit) : dot_mask(dot, k, limit);
    TileValue *value = load_run(dot, run, dot_offset(dot, from, dot_multiply(dot, k, run->stride)), mask);
    tile_build_store(dot->builder, value, dot_offset(dot, to, dot_scale(dot, k, dot->bytes)), NULL, 0);
}

/* Rounds down to a multiple of a vector's lanes, a power of two. */
static TileValue *round_to_vectors(Dot *dot, TileValue *count) {
    TileValue *lanes = dot_lanes(dot, 1);
    int64_t known;
    TileValue *mask =
        tile_value_integer(lanes, &known) ? dot_i64(dot, -known) : tile_build_unary(dot->builder, TILE_OP_NEG, lanes);
    return dot_binary(dot, TILE_OP_AND, count, mask);
}

/* Full vectors, then one with a mask. */
static void copy_rows(Dot *dot, const Run *run, TileValue *from, TileValue *to, TileValue *kc) {
    TileValue *whole = round_to_vectors(dot, kc);
    TileValue *k = dot_for(dot, dot_i64(dot, 0), whole, dot_lanes(dot, 1));
    copy_vector(dot, run, from, to, k, NULL);
    dot_end(dot);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, whole, kc));
    copy_vector(dot, run, from, to, whole, kc);
    dot_end(dot);
}

/* One vector of few lanes, with a mask where there are still fewer k. */
static void copy_short_rows(Dot *dot, const Run *run, TileValue *from, TileValue *to, TileValue *kc) {
    TileValue *first = dot_i64(dot, 0);
    dot_if(dot, dot_binary(dot, TILE_OP_EQ, kc, dot_i64(dot, run->lanes)));
    copy_vector(dot, run, from, to, first, NULL);
    dot_else(dot);
    copy_vector(dot, run, from, to, first, kc);
    dot_end(dot);
}

/* How many lanes a vector needs for all k, where one of the product's vectors may have more; else 0. */
static int64_t lanes_for_short_rows(const Dot *dot) {
    int64_t lanes = 2;
    bool fits = dot->k_max > 1 && !dot->words && (dot->scale ? dot->k_max <= dot->lanes : dot->k_max < dot->lanes);
    while (lanes < dot->k_max) lanes *= 2;
    return fits ? lanes : 0;
}

static void pack_rows(Dot *dot, const Run *run, void *state) {
    const PackA *pack = state;
    int64_t lanes = lanes_for_short_rows(dot);
    Run narrow = *run;
    if (lanes && run->offsets) narrow = strided_run(dot, run->scalar, run->stride, lanes);
    narrow.lanes = lanes;
    TileValue *last = dot_binary(dot, TILE_OP_SUB, dot->m, dot_i64(dot, 1));
    TileValue *column = dot_offset(dot, dot->a.pointer, dot_multiply(dot, pack->k0, run->stride));
    TileValue *row = dot_for(dot, dot_i64(dot, 0), dot_i64(dot, dot->block_rows), dot_i64(dot, 1));
    TileValue *source = dot_minimum(dot, dot_add(dot, pack->i, row), last);
    TileValue *from = dot_offset(dot, column, dot_multiply(dot, source, dot->a.row));
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, row, dot->panel_row * dot->bytes));
    if (lanes)
        copy_short_rows(dot, &narrow, from, to, pack->kc);
    else
        copy_rows(dot, run, from, to, pack->kc);
    dot_end(dot);
}

/* A square of as many k and rows as a vector has lanes (of a scalable one: 128 bits of it). */
typedef struct Square {
    TileValue *k;
    TileValue *row, *offset; /* the first row, and its offset in the block */
    TileValue *mask;         /* the rows that exist in a; NULL: all */
} Square;

/* Rows are contiguous along i: loaded k by k, stored row by row. The k past the last repeat the last one, and are not
 * used. */
static void pack_row_square(Dot *dot, const PackA *pack, const Square *square, int64_t count) {
    Run run = adjacent_run(dot, dot->a.scalar);
    run.lanes = dot->lanes;
    TileValue *rows[MOST_LANES], *last = dot_binary(dot, TILE_OP_SUB, pack->kc, dot_i64(dot, 1));
    TileValue *corner = dot_offset(dot, dot->a.pointer, dot_multiply(dot, square->row, dot->a.row));
    for (int64_t l = 0; l < dot->lanes; l++) {
        TileValue *source = dot_minimum(dot, dot_add(dot, square->k, dot_i64(dot, l)), last);
        TileValue *bytes = dot_multiply(dot, dot_add(dot, pack->k0, source), dot->a.column);
        rows[l] = load_run(dot, &run, dot_offset(dot, corner, bytes), square->mask);
    }
    transpose(dot, rows);
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, square->k, dot->bytes));
    to = dot_offset(dot, to, dot_scale(dot, square->offset, dot->panel_row * dot->bytes));
    for (int64_t l = 0; l < count; l++)
        tile_build_store(dot->builder, rows[l], dot_offset(dot, to, dot_i64(dot, l * dot->panel_row * dot->bytes)),
                         NULL, 0);
}

/* All rows of the block exist in a. The last squares overlap with rows of other squares instead of exceeding the
 * block; if a block has fewer rows than a square, the square begins earlier so that it does not exceed a's last row,
 * and the panel has spare rows around the block's. */
static void pack_full_squares(Dot *dot, const PackA *pack) {
    int64_t spare = dot->block_rows - dot->lanes;
    Square square = {.k = dot_for(dot, dot_i64(dot, 0), pack->kc, dot_i64(dot, dot->lanes))};
    for (int64_t row = 0; row < dot->block_rows; row += dot->lanes) {
        square.offset = dot_i64(dot, spare < 0 || row < spare ? row : spare);
        square.row = dot_add(dot, pack->i, square.offset);
        if (spare < 0) {
            TileValue *most = dot_binary(dot, TILE_OP_SUB, dot->m, dot_i64(dot, dot->lanes));
            square.row = dot_minimum(dot, square.row, most);
            square.offset = dot_binary(dot, TILE_OP_SUB, square.row, pack->i);
        }
        pack_row_square(dot, pack, &square, dot->lanes);
    }
    dot_end(dot);
}

/* Rows past the last one are zero. */
static void pack_partial_squares(Dot *dot, const PackA *pack) {
    Square square = {.k = dot_for(dot, dot_i64(dot, 0), pack->kc, dot_i64(dot, dot->lanes))};
    for (int64_t row = 0; row < dot->block_rows; row += dot->lanes) {
        int64_t left = dot->block_rows - row;
        square.offset = dot_i64(dot, row);
        square.row = dot_add(dot, pack->i, square.offset);
        square.mask = fixed_mask(dot, dot->lanes, square.row, dot->m);
        pack_row_square(dot, pack, &square, left < dot->lanes ? left : dot->lanes);
    }
    dot_end(dot);
}

static void pack_squares(Dot *dot, const PackA *pack) {
    TileValue *end = dot_add(dot, pack->i, dot_i64(dot, dot->block_rows));
    TileValue *whole = dot_binary(dot, TILE_OP_LE, end, dot->m);
    if (dot->block_rows < dot->lanes)
        whole =
            dot_binary(dot, TILE_OP_AND, whole, dot_binary(dot, TILE_OP_LE, dot_i64(dot, dot->lanes), dot->m));
    bool possible = dot->block_rows >= dot->lanes || dot->m_max >= dot->lanes;
    if (possible) {
        dot_if(dot, whole);
        pack_full_squares(dot, pack);
        dot_else(dot);
    }
    pack_partial_squares(dot, pack);
    if (possible) dot_end(dot);
}

static bool is_adjacent(const TileValue *stride, TileScalar scalar) {
    int64_t known;
    return tile_value_integer(stride, &known) && known == tile_scalar_bytes(scalar);
}

int64_t dot_spare_rows(const Dot *dot) {
    return is_adjacent(dot->a.row, dot->a.scalar) && dot->block_rows < dot->lanes ? dot->lanes - dot->block_rows : 0;
}

static void pack_any_rows(Dot *dot, const Run *run, void *state) {
    if (run->offsets && is_adjacent(dot->a.row, dot->a.scalar))
        pack_squares(dot, state);
    else
        pack_rows(dot, run, state);
}

bool dot_has_columns(const Dot *dot) {
    return is_adjacent(dot->a.row, dot->a.scalar) && !is_adjacent(dot->a.column, dot->a.scalar) && !dot->scale && !dot->words &&
           dot->block_rows <= dot->lanes;
}

/* A block of a single row, or of as many as a vector has lanes, is no case of its own. */
static bool has_exact_columns(const Dot *dot) { return dot->block_rows > 1 && dot->block_rows < dot->lanes; }

/* How a block's rows of one k are copied. WHOLE: by a vector, of which that of the next k replaces the lanes behind the rows. EXACT: all rows are there, but less than
 * a vector: by one or two vectors that have no others. PARTIAL: by a vector under a mask; rows past the last one are zero. */
typedef enum Columns { COLUMNS_WHOLE, COLUMNS_EXACT, COLUMNS_PARTIAL } Columns;

static void copy_block_of_columns(Dot *dot, TileValue *from, TileValue *to, TileValue *mask, Columns how) {
    Run run = adjacent_run(dot, dot->a.scalar);
    int64_t last = 0;
    if (how == COLUMNS_EXACT) {
        for (run.lanes = 1; 2 * run.lanes <= dot->block_rows;) run.lanes *= 2;
        last = dot->block_rows - run.lanes;
    }
    tile_build_store(dot->builder, load_run(dot, &run, from, mask), to, NULL, 0);
    if (!last) return;
    TileValue *value = load_run(dot, &run, dot_offset(dot, from, dot_scale(dot, run.stride, last)), NULL);
    tile_build_store(dot->builder, value, dot_offset(dot, to, dot_i64(dot, last * dot->bytes)), NULL, 0);
}

static void copy_columns(Dot *dot, const PackA *pack, TileValue *mask, Columns how) {
    TileValue *corner = dot_offset(dot, dot->a.pointer, dot_multiply(dot, pack->i, dot->a.row));
    TileValue *k = dot_for(dot, dot_i64(dot, 0), pack->kc, dot_i64(dot, 1));
    TileValue *from = dot_offset(dot, corner, dot_multiply(dot, dot_add(dot, pack->k0, k), dot->a.column));
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, k, dot->block_rows * dot->bytes));
    dot_prefetch(dot, dot_offset(dot, from, dot_scale(dot, dot->a.column, COLUMNS_AHEAD)), TILE_CACHE_L1);
    copy_block_of_columns(dot, from, to, mask, how);
    dot_end(dot);
}

/* The block, if so many rows are there; what follows is done otherwise. */
static void copy_if_there(Dot *dot, const PackA *pack, TileValue *rows, Columns how) {
    dot_if(dot, dot_binary(dot, TILE_OP_LE, dot_add(dot, pack->i, rows), dot->m));
    copy_columns(dot, pack, NULL, how);
    dot_else(dot);
}

static void pack_columns(Dot *dot, const PackA *pack) {
    TileValue *mask = dot_mask(dot, pack->i, dot->m);
    bool vectors = dot->m_max >= dot->lanes, blocks = dot->m_max >= dot->block_rows && has_exact_columns(dot);
    if (vectors) copy_if_there(dot, pack, dot_i64(dot, dot->lanes), COLUMNS_WHOLE);
    if (blocks) copy_if_there(dot, pack, dot_i64(dot, dot->block_rows), COLUMNS_EXACT);
    copy_columns(dot, pack, mask, COLUMNS_PARTIAL);
    if (blocks) dot_end(dot);
    if (vectors) dot_end(dot);
}

void dot_pack_last_columns(Dot *dot, TileValue *i, TileValue *k0, TileValue *kc) {
    const PackA pack = {i, k0, kc};
    copy_columns(dot, &pack, dot_mask(dot, i, dot->m), COLUMNS_PARTIAL);
}

/* Blocks of rows from number `first` to `end`, of one k. */
static void copy_blocks_of_columns(Dot *dot, TileValue *from, TileValue *to, TileValue *first, TileValue *end, Columns how) {
    TileValue *block = dot_for(dot, first, end, dot_i64(dot, 1)), *row = dot_scale(dot, block, dot->block_rows);
    TileValue *at = dot_offset(dot, from, dot_multiply(dot, row, dot->a.row));
    to = dot_offset(dot, to, dot_scale(dot, block, dot->a_block));
    dot_prefetch(dot, dot_offset(dot, at, dot_scale(dot, dot->a.column, COLUMNS_AHEAD)), TILE_CACHE_L1);
    TileValue *mask = how == COLUMNS_PARTIAL ? dot_mask(dot, row, dot->m) : NULL;
    copy_block_of_columns(dot, at, to, mask, how);
    dot_end(dot);
}

/* All rows of one k before those of the next, since these lie as far apart as a's columns: one page is looked up for all of them, and no line of the cache is read for two
 * blocks at different times. */
void dot_pack_all_columns(Dot *dot, TileValue *k0, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0), *rows = dot_i64(dot, dot->block_rows), *last = dot_i64(dot, dot->block_rows - 1);
    TileValue *count = dot_binary(dot, TILE_OP_DIV, dot_add(dot, dot->m, last), rows);
    TileValue *past = dot_binary(dot, TILE_OP_SUB, dot_add(dot, dot->m, rows), dot_i64(dot, dot->lanes)); /* those whose vectors do not reach over the last row */
    TileValue *whole = dot_binary(dot, TILE_OP_DIV, dot_binary(dot, TILE_OP_MAX, past, zero), rows), *exact = whole;
    if (has_exact_columns(dot)) exact = dot_binary(dot, TILE_OP_DIV, dot->m, rows);
    TileValue *k = dot_for(dot, zero, kc, dot_i64(dot, 1));
    TileValue *from = dot_offset(dot, dot->a.pointer, dot_multiply(dot, dot_add(dot, k0, k), dot->a.column));
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, k, dot->block_rows * dot->bytes));
    copy_blocks_of_columns(dot, from, to, zero, whole, COLUMNS_WHOLE);
    if (exact != whole) copy_blocks_of_columns(dot, from, to, whole, exact, COLUMNS_EXACT);
    copy_blocks_of_columns(dot, from, to, exact, count, COLUMNS_PARTIAL);
    dot_end(dot);
}

TileValue *dot_columns_of_block(Dot *dot, TileValue *panels, TileValue *i) {
    return dot_offset(dot, panels, dot_scale(dot, dot_binary(dot, TILE_OP_DIV, i, dot_i64(dot, dot->block_rows)), dot->a_block));
}

/* A block's rows lie apart, each too short for the hardware to fetch ahead of the copy. All at once they would take the places in
 * which cores keep what they wait for, so that b's panel waits. */
void dot_fetch_rows(Dot *dot, TileValue *i, TileValue *j, TileValue *k0) {
    int64_t columns = dot->block_vectors * dot->lanes * dot->most_scale, size = tile_scalar_bytes(dot->a.scalar);
    int64_t blocks = (dot->n_max + columns - 1) / columns, each = (dot->block_rows + blocks - 1) / blocks;
    dot->fetched_count = 0;
    if (!is_adjacent(dot->a.column, dot->a.scalar) || dot->m_max <= dot->block_rows || each > DOT_FETCHED) return;
    TileValue *last = dot_binary(dot, TILE_OP_SUB, dot->m, dot_i64(dot, 1));
    TileValue *first = dot_scale(dot, dot_binary(dot, TILE_OP_DIV, j, dot->block_columns), each);
    first = dot_add(dot, dot_add(dot, i, dot_i64(dot, dot->block_rows)), first);
    TileValue *corner = dot_offset(dot, dot->a.pointer, dot_scale(dot, k0, size));
    for (int64_t r = 0; r < each; r++) {
        TileValue *row = dot_minimum(dot, dot_add(dot, first, dot_i64(dot, r)), last);
        dot->fetched[r] = dot_offset(dot, corner, dot_multiply(dot, row, dot->a.row));
    }
    dot->fetched_count = each;
}

void dot_pack_a(Dot *dot, TileValue *i, TileValue *k0, TileValue *kc) {
    PackA pack = {i, k0, kc};
    if (dot->a_columns) {
        pack_columns(dot, &pack);
        return;
    }
    pack_by_stride(dot, &dot->a, dot->a.column, pack_any_rows, &pack);
}

/* ---- b: blocks of columns become contiguous ---- */

enum { ROWS_AHEAD = 4 };

typedef struct PackB {
    TileValue *panels, *j0, *columns, *k0, *kc;
} PackB;

/* Copies row k of `vectors` vectors of the block that begins at column j0 + j; lanes outside of the masks (NULL:
 * there are none) are zero. */
static void copy_block_row(Dot *dot, const Run *run, const PackB *pack, TileValue *k, TileValue *j, int64_t vectors,
                           TileValue *const *masks) {
    TileValue *from = dot_offset(dot, dot->b.pointer, dot_multiply(dot, dot_add(dot, pack->k0, k), dot->b.row));
    from = dot_offset(dot, from, dot_multiply(dot, dot_add(dot, pack->j0, j), run->stride));
    TileValue *to = dot_offset(dot, pack->panels, dot_scale(dot, j, dot_column_bytes(dot)));
    to = dot_offset(dot, to, dot_multiply(dot, k, dot_vector_bytes(dot, dot->block_vectors)));
    TileValue *ahead = dot_scale(dot, dot->b.row, ROWS_AHEAD);
    for (int64_t v = 0; v < vectors; v++) {
        TileValue *at = dot_offset(dot, from, dot_multiply(dot, run->stride, dot_lanes(dot, v)));
        if (!run->offsets) dot_prefetch(dot, dot_offset(dot, at, ahead), TILE_CACHE_L1);
        TileValue *value = load_run(dot, run, at, masks ? masks[v] : NULL);
        tile_build_store(dot->builder, value, dot_offset(dot, to, dot_vector_bytes(dot, v)), NULL, 0);
    }
}

/* The last block, at j, which is partial; rows from k on. If it is the narrow block, only its own vectors are read. */
static void pack_last_block(Dot *dot, const Run *run, const PackB *pack, TileValue *k, TileValue *j) {
    TileValue *masks[8], *one = dot_i64(dot, 1);
    if (dot->narrow_vectors) {
        TileValue *columns = dot_binary(dot, TILE_OP_SUB, pack->columns, j);
        dot_if(dot, dot_is_narrow(dot, columns));
        copy_block_row(dot, run, pack, dot_for(dot, k, pack->kc, one), j, dot->narrow_vectors, NULL);
        dot_end(dot);
        dot_else(dot);
    }
    for (int64_t v = 0; v < dot->block_vectors; v++)
        masks[v] = dot_mask(dot, dot_add(dot, j, dot_lanes(dot, v)), pack->columns);
    copy_block_row(dot, run, pack, dot_for(dot, k, pack->kc, one), j, dot->block_vectors, masks);
    dot_end(dot);
    if (dot->narrow_vectors) dot_end(dot);
}

/* Rows from `first` on, at least one: full blocks, row by row if rows are contiguous in memory, then the last block. */
static void pack_block_rows(Dot *dot, const Run *run, const PackB *pack, TileValue *first) {
    TileValue *rest = dot_binary(dot, TILE_OP_REM, pack->columns, dot->block_columns);
    TileValue *whole = dot_binary(dot, TILE_OP_SUB, pack->columns, rest);
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *k, *j;
    if (run->offsets) {
        j = dot_for(dot, zero, whole, dot->block_columns);
        k = dot_for(dot, first, pack->kc, one);
    } else {
        k = dot_for(dot, first, pack->kc, one);
        j = dot_for(dot, zero, whole, dot->block_columns);
    }
    copy_block_row(dot, run, pack, k, j, dot->block_vectors, NULL);
    dot_end(dot);
    dot_end(dot);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, whole, pack->columns));
    pack_last_block(dot, run, pack, first, whole);
    dot_end(dot);
}

/* Loads a square: as many columns of b, and k of each, as a vector has lanes (of a scalable one: 128 bits of it).
 * Columns past the last repeat the last one. */
static void load_square(Dot *dot, const PackB *pack, TileValue *k, TileValue *j, TileValue **rows) {
    Run run = adjacent_run(dot, dot->b.scalar);
    run.lanes = dot->lanes;
    TileValue *last = dot_binary(dot, TILE_OP_SUB, dot->n, dot_i64(dot, 1));
    TileValue *first = dot_offset(dot, dot->b.pointer, dot_multiply(dot, dot_add(dot, pack->k0, k), dot->b.row));
    for (int64_t l = 0; l < dot->lanes; l++) {
        TileValue *column = dot_minimum(dot, dot_add(dot, dot_add(dot, pack->j0, j), dot_i64(dot, l)), last);
        rows[l] = load_run(dot, &run, dot_offset(dot, first, dot_multiply(dot, column, dot->b.column)), NULL);
    }
}

static void pack_square(Dot *dot, const PackB *pack, TileValue *k, TileValue *j) {
    TileValue *rows[MOST_LANES];
    load_square(dot, pack, k, j, rows);
    transpose(dot, rows);
    TileValue *inside = dot_binary(dot, TILE_OP_REM, j, dot->block_columns);
    TileValue *begin = dot_binary(dot, TILE_OP_SUB, j, inside);
    TileValue *to = dot_offset(dot, pack->panels, dot_scale(dot, begin, dot_column_bytes(dot)));
    TileValue *row_bytes = dot_vector_bytes(dot, dot->block_vectors);
    to = dot_offset(dot, to, dot_multiply(dot, k, row_bytes));
    to = dot_offset(dot, to, dot_scale(dot, inside, dot->bytes));
    for (int64_t l = 0; l < dot->lanes; l++) {
        TileValue *row = dot_offset(dot, to, dot_scale(dot, row_bytes, l));
        tile_build_store(dot->builder, rows[l], row, NULL, 0);
    }
}

/* Clears vectors of the last block that squares of columns do not cover: stale values there might be denormal, which
 * makes multiplications a hundred times slower. */
static void clear_rest(Dot *dot, const PackB *pack, TileValue *rows) {
    TileValue *zero = tile_emit_bits(dot->emitter, dot_vector(dot, dot->scalar), 0);
    TileValue *rest = dot_binary(dot, TILE_OP_REM, pack->columns, dot->block_columns);
    TileValue *begin = dot_binary(dot, TILE_OP_SUB, pack->columns, rest);
    TileValue *to = dot_offset(dot, pack->panels, dot_scale(dot, begin, dot_column_bytes(dot)));
    for (int64_t v = 1; v < dot->block_vectors; v++) {
        TileValue *reached = dot_binary(dot, TILE_OP_LT, dot_lanes(dot, v), rest);
        TileValue *missing = dot_select(dot, reached, dot_i64(dot, 0), rows);
        missing = dot_select(dot, dot_binary(dot, TILE_OP_EQ, rest, dot_i64(dot, 0)), dot_i64(dot, 0), missing);
        TileValue *k = dot_for(dot, dot_i64(dot, 0), missing, dot_i64(dot, 1));
        TileValue *at = dot_offset(dot, to, dot_multiply(dot, k, dot_vector_bytes(dot, dot->block_vectors)));
        tile_build_store(dot->builder, zero, dot_offset(dot, at, dot_vector_bytes(dot, v)), NULL, 0);
        dot_end(dot);
    }
}

/* A transposed b, contiguous along k: full squares; the remainder of k is gathered. */
static void pack_transposed(Dot *dot, const Run *run, const PackB *pack) {
    TileValue *zero = dot_i64(dot, 0);
    TileValue *whole = dot_binary(dot, TILE_OP_AND, pack->kc, dot_i64(dot, -dot->lanes));
    TileValue *j = dot_for(dot, zero, pack->columns, dot_i64(dot, dot->lanes));
    pack_square(dot, pack, dot_for(dot, zero, whole, dot_i64(dot, dot->lanes)), j);
    dot_end(dot);
    dot_end(dot);
    clear_rest(dot, pack, whole);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, whole, pack->kc));
    pack_block_rows(dot, run, pack, whole);
    dot_end(dot);
}

static void pack_blocks(Dot *dot, const Run *run, void *state) {
    const PackB *pack = state;
    if (run->offsets && is_adjacent(dot->b.row, dot->b.scalar))
        pack_transposed(dot, run, pack);
    else
        pack_block_rows(dot, run, pack, dot_i64(dot, 0));
}

void dot_pack_b(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    PackB pack = {dot->b_panel, j0, columns, k0, kc};
    pack_by_stride(dot, &dot->b, dot->b.column, pack_blocks, &pack);
}
