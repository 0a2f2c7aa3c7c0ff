/* Products of words by vectors: an instruction adds to each lane the products of a word of a, two bf16 or four bytes along k,
 * with a word of b. Panels are those of AMX (dot_amx_pack.c), blocks and the micro-kernel those of fused multiply-adds.
 *
 * The instruction for bytes takes unsigned ones times signed ones. Where both operands are signed, b is packed with 128 added
 * to each byte, and the sums begin at -128 times the sum of their row of a.
 *
 * Rows of a that lie side by side (a transposed left operand) need not be transposed: for each word along k its panel has those of a block's rows side by
 * side, as that of fused multiply-adds has elements. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

enum {
    ACCUMULATORS = 28, /* of 32 registers: two have b, and one a */
    COLUMNS_SHARE = 4, /* of L2 for all of a's rows that lie side by side, as of elements */
    COLUMNS_AHEAD = 4, /* words whose rows are fetched ahead of their copy */
    WIDEST = 2,        /* vectors of a block: so many are packed at a time */
    LANES = 16,
    ALIGN = 64
};

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
static int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

static bool is_signed(const DotOperand *operand) { return tile_scalar_class(operand->scalar) == TILE_CLASS_SIGNED; }

/* The number of rows with the fewest in a partial block, as for fused multiply-adds. */
static int64_t choose_rows(const Dot *dot) {
    int64_t most = ACCUMULATORS / WIDEST, best = at_most(dot->m_max, most);
    for (int64_t r = best; 2 * r >= most; r--)
        if (blocks(dot->m_max, r) * r < blocks(dot->m_max, best) * best) best = r;
    return best;
}

void dot_words_choose_block(Dot *dot) {
    int64_t vectors = blocks(dot->n_max, LANES);
    dot->element = tile_scalar_bytes(dot->a.scalar);
    dot->group = DOT_AMX_BYTES / dot->element;
    dot->block_rows = choose_rows(dot);
    dot->block_vectors = at_most(vectors, WIDEST);
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
    if (dot->n_max % LANES == 0) dot->narrow_vectors = vectors % dot->block_vectors;
    TileBuilder *front = &dot->emitter->front;
    dot->staging = tile_build_buffer(front, DOT_AMX_TILE, ALIGN);
    dot->flips = is_signed(&dot->a) && is_signed(&dot->b);
    if (dot->flips) dot->row_sums = tile_build_buffer(front, LANES * dot->bytes, ALIGN);
    dot->a_columns = dot_words_has_columns(dot);
}

static TileValue *multiply(Dot *dot, TileValue *a, TileValue *b, TileValue *sum, TileScalar left, TileScalar right) {
    TileContext *context = dot->builder->module->context;
    const TileType *types[] = {tile_type_scalar(context, left), tile_type_scalar(context, right)};
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_TYPES, .count = 2, .types = types};
    TileValue *operands[] = {a, b, sum};
    return tile_op_result(tile_build_op(dot->builder, TILE_OP_DOT_WORDS, operands, 3, &attribute, 1, &sum->type, 1), 0);
}

TileValue *dot_words_multiply(Dot *dot, TileValue *a, TileValue *b, TileValue *sum) {
    if (dot->a.scalar == TILE_BF16) return multiply(dot, a, b, sum, TILE_BF16, TILE_BF16);
    return is_signed(&dot->a) ? multiply(dot, b, a, sum, TILE_U8, TILE_I8) : multiply(dot, a, b, sum, TILE_U8, TILE_I8);
}

/* ---- rows of a that lie side by side ---- */

bool dot_words_has_columns(const Dot *dot) {
    int64_t row, column;
    bool side_by_side = tile_value_integer(dot->a.row, &row) && row == dot->element;
    return side_by_side && !(tile_value_integer(dot->a.column, &column) && column == dot->element) && !dot->amx;
}

/* Each block of rows; a vector of the last word reaches over them. */
int64_t dot_words_columns_block(const Dot *dot) {
    int64_t words = blocks(dot->depth * dot->element, DOT_AMX_WORD);
    return blocks((words * dot->block_rows + LANES) * DOT_AMX_WORD, ALIGN) * ALIGN;
}

/* The panel of one product: of all blocks, if they take no more than a part of L2. */
void dot_words_build_columns(Dot *dot) {
    int64_t block = dot_words_columns_block(dot), all = blocks(dot->m_max, dot->block_rows);
    bool fits = all > 1 && all * block <= (int64_t)dot->context->target->l2_bytes / COLUMNS_SHARE;
    dot->a_block = fits ? block : 0;
    dot->a_panel = tile_build_buffer(&dot->emitter->front, fits ? all * block : block, ALIGN);
}

/* Blocks of rows from number `first` to `end`, of the k that a word has, which begins at `from` and goes to `to`. */
static void copy_words(Dot *dot, TileValue *k, TileValue *kc, TileValue *from, TileValue *to, TileValue *first, TileValue *end, bool whole) {
    TileValue *units[DOT_AMX_WORD], *block = dot_for(dot, first, end, dot_i64(dot, 1)), *row = dot_scale(dot, block, dot->block_rows);
    int64_t pack = DOT_AMX_WORD / dot->element;
    TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->m, row), *corner = dot_offset(dot, from, dot_scale(dot, row, dot->element));
    for (int64_t p = 0; p < pack; p++) {
        TileValue *at = dot_add(dot, k, dot_i64(dot, p)), *there = dot_binary(dot, TILE_OP_LT, at, kc);
        TileValue *further = whole ? dot_scale(dot, dot->a.column, p) : dot_select(dot, there, dot_scale(dot, dot->a.column, p), dot_i64(dot, 0));
        TileValue *source = dot_offset(dot, corner, further);
        if (whole) dot_prefetch(dot, dot_offset(dot, source, dot_scale(dot, dot->a.column, COLUMNS_AHEAD * pack)), TILE_CACHE_L1);
        units[p] = dot_amx_load(dot, source, LANES, whole ? NULL : dot_select(dot, there, left, dot_i64(dot, 0)));
    }
    TileValue *at = dot->a_block ? dot_offset(dot, to, dot_scale(dot, block, dot->a_block)) : to;
    tile_build_store(dot->builder, dot_amx_words_of(dot, units, 0), at, NULL, 0);
    dot_end(dot);
}

/* Blocks from number `first` to `end`. Rows past the last one, and k past kc, are zero. */
void dot_words_pack_columns(Dot *dot, TileValue *first, TileValue *end, TileValue *k0, TileValue *kc) {
    int64_t pack = DOT_AMX_WORD / dot->element;
    TileValue *zero = dot_i64(dot, 0), *rows = dot_i64(dot, dot->block_rows);
    TileValue *past = dot_binary(dot, TILE_OP_SUB, dot_add(dot, dot->m, rows), dot_i64(dot, LANES)); /* those whose vectors do not reach over the last row */
    TileValue *whole = dot_binary(dot, TILE_OP_DIV, dot_binary(dot, TILE_OP_MAX, past, zero), rows);
    whole = dot_binary(dot, TILE_OP_MAX, dot_minimum(dot, whole, end), first);
    TileValue *word = dot_for(dot, zero, dot_amx_word(dot, kc), dot_i64(dot, 1)), *k = dot_scale(dot, word, pack);
    TileValue *from = dot_offset(dot, dot->a.pointer, dot_multiply(dot, dot_add(dot, k0, k), dot->a.column));
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, word, dot->block_rows * DOT_AMX_WORD));
    TileValue *all = dot_binary(dot, TILE_OP_LE, dot_add(dot, k, dot_i64(dot, pack)), kc), *middle = dot_select(dot, all, whole, first);
    copy_words(dot, k, kc, from, to, first, middle, true);
    copy_words(dot, k, kc, from, to, middle, end, false);
    dot_end(dot);
}

/* The sums of a block's rows. */
static void sum_columns(Dot *dot, TileValue *kc) {
    const TileType *sums = dot_vector(dot, dot->scalar), *words = dot_vector(dot, TILE_U32);
    TileValue *start = tile_emit_bits(dot->emitter, sums, 0), *each = tile_emit_bits(dot->emitter, words, 0x80808080);
    TileOp *loop = tile_build_for(dot->builder, dot_i64(dot, 0), dot_amx_word(dot, kc), dot_i64(dot, 1), &start, 1);
    TileBuilder outer = *dot->builder;
    *dot->builder = tile_builder_at_end(outer.module, &loop->regions[0]);
    dot->builder->location = outer.location;
    TileValue *at = dot_offset(dot, dot->a_panel, dot_scale(dot, loop->regions[0].arguments[0], dot->block_rows * DOT_AMX_WORD));
    TileValue *a = tile_build_load(dot->builder, words, at, NULL, NULL, 0);
    TileValue *next = multiply(dot, each, a, loop->regions[0].arguments[1], TILE_U8, TILE_I8);
    tile_build_end(dot->builder, TILE_OP_YIELD, &next, 1);
    if (!outer.error) outer.error = dot->builder->error;
    *dot->builder = outer;
    tile_build_store(dot->builder, tile_op_result(loop, 0), dot->row_sums, NULL, 0);
}

/* ---- sums of rows ---- */

/* Each lane becomes the sum of all. */
static TileValue *sum_lanes(Dot *dot, TileValue *lanes) {
    int64_t order[LANES];
    for (int64_t distance = LANES / 2; distance; distance /= 2) {
        for (int64_t l = 0; l < LANES; l++) order[l] = l ^ distance;
        TileValue *others = tile_build_shuffle(dot->builder, lanes, lanes, order, LANES);
        lanes = tile_emit_binary(dot->emitter, TILE_OP_ADD, lanes, others);
    }
    return lanes;
}

/* Of rows that a does not have, too: nobody stores what is made of these. */
void dot_words_sum_rows(Dot *dot, TileValue *kc) {
    if (dot->a_columns) {
        sum_columns(dot, kc);
        return;
    }
    const TileType *sums = dot_vector(dot, dot->scalar), *words = dot_vector(dot, TILE_U32);
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *each = tile_emit_bits(dot->emitter, words, 0x80808080);
    TileValue *r = dot_for(dot, zero, dot_i64(dot, dot->block_rows), one);
    TileValue *row = dot_offset(dot, dot->a_panel, dot_scale(dot, r, dot->panel_row * dot->element));
    TileValue *start = tile_emit_bits(dot->emitter, sums, 0);
    TileOp *loop = tile_build_for(dot->builder, zero, dot_amx_groups(dot, kc), one, &start, 1);
    TileBuilder outer = *dot->builder;
    *dot->builder = tile_builder_at_end(outer.module, &loop->regions[0]);
    dot->builder->location = outer.location;
    TileValue *at = dot_offset(dot, row, dot_scale(dot, loop->regions[0].arguments[0], DOT_AMX_BYTES));
    TileValue *a = tile_build_load(dot->builder, words, at, NULL, NULL, 0);
    TileValue *next = multiply(dot, each, a, loop->regions[0].arguments[1], TILE_U8, TILE_I8);
    tile_build_end(dot->builder, TILE_OP_YIELD, &next, 1);
    if (!outer.error) outer.error = dot->builder->error;
    *dot->builder = outer;
    const TileAttribute lane = {.key = TILE_ATTRIBUTE_AXIS, .integer = 0};
    const TileType *scalar = tile_type_scalar(dot->builder->module->context, dot->scalar);
    TileValue *total = sum_lanes(dot, tile_op_result(loop, 0));
    total = tile_op_result(tile_build_op(dot->builder, TILE_OP_EXTRACT, &total, 1, &lane, 1, &scalar, 1), 0);
    tile_build_store(dot->builder, total, dot_offset(dot, dot->row_sums, dot_scale(dot, r, dot->bytes)), NULL, 0);
    dot_end(dot);
}
