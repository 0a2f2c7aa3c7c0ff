/* Packing for AMX. Elements keep their type; they are moved as unsigned integers of their width, and in words of 4
 * bytes along k. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

enum { LANES = 16, MOST_PACK = 4, BLOCK_COLUMNS = 32 };

static TileScalar unit_of(const Dot *dot) { return dot->element == 2 ? TILE_U16 : TILE_U8; }
static int64_t pack_of(const Dot *dot) { return DOT_AMX_WORD / dot->element; }

static const TileType *vector_of(Dot *dot, TileScalar scalar, int64_t lanes) {
    return tile_type_vector(dot->builder->module->context, scalar, lanes, false);
}

TileValue *dot_amx_groups(Dot *dot, TileValue *kc) {
    TileValue *padded = dot_add(dot, kc, dot_i64(dot, dot->group - 1));
    return dot_binary(dot, TILE_OP_DIV, padded, dot_i64(dot, dot->group));
}

TileValue *dot_amx_load(Dot *dot, TileValue *pointer, int64_t lanes, TileValue *limit) {
    const TileType *type = vector_of(dot, unit_of(dot), lanes), *mask_type = vector_of(dot, TILE_BOOL, lanes);
    if (!limit) return tile_build_load(dot->builder, type, pointer, NULL, NULL, 0);
    TileValue *operands[] = {dot_i64(dot, 0), limit};
    TileValue *mask =
        tile_op_result(tile_build_op(dot->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &mask_type, 1), 0);
    return tile_build_load(dot->builder, type, pointer, mask, tile_emit_bits(dot->emitter, type, 0), 0);
}

/* Lanes first .. first + count of the operands, alternately `run` lanes of x and of y. */
static TileValue *interleave(Dot *dot, TileValue *x, TileValue *y, int64_t first, int64_t count, int64_t run) {
    int64_t lanes[2 * BLOCK_COLUMNS], width = x->type->extent[0];
    for (int64_t l = 0; l < 2 * count; l++) {
        int64_t from = first + l / (2 * run) * run + l % run;
        lanes[l] = l / run % 2 ? width + from : from;
    }
    return tile_build_shuffle(dot->builder, x, y, lanes, (unsigned)(2 * count));
}

/* Of four rows of bytes: words of four columns go to the 16 bytes where the words of these columns will be, by one instruction that moves words of two
 * registers, and their bytes are exchanged by one that moves bytes within 16. */
static TileValue *words_of_bytes(Dot *dot, TileValue *const *rows, int64_t first) {
    int64_t columns = rows[0]->type->extent[0], words[DOT_AMX_BYTES], bytes[DOT_AMX_BYTES];
    TileValue *low = interleave(dot, rows[0], rows[1], 0, columns, columns), *high = interleave(dot, rows[2], rows[3], 0, columns, columns);
    for (int64_t l = 0; l < DOT_AMX_BYTES; l++) {
        int64_t row = l % LANES / MOST_PACK;
        words[l] = row * columns + first + l / LANES * MOST_PACK + l % MOST_PACK;
        bytes[l] = l / LANES * LANES + l % MOST_PACK * MOST_PACK + row;
    }
    TileValue *moved = tile_build_shuffle(dot->builder, low, high, words, DOT_AMX_BYTES);
    moved = tile_build_unary(dot->builder, TILE_OP_OPAQUE, moved); /* else the back end makes one shuffle of both, for which it has no instruction */
    return tile_build_shuffle(dot->builder, moved, moved, bytes, DOT_AMX_BYTES);
}

TileValue *dot_amx_words_of(Dot *dot, TileValue *const *rows, int64_t first) {
    return pack_of(dot) == 2 ? interleave(dot, rows[0], rows[1], first, LANES, 1) : words_of_bytes(dot, rows, first);
}

/* Transposes a square of 16 x 16 words. */
static void transpose(Dot *dot, TileValue **rows) {
    TileValue *next[LANES];
    int64_t low[LANES], high[LANES];
    for (int64_t l = 0; l < LANES; l++) {
        low[l] = l / 2 + (l % 2) * LANES;
        high[l] = low[l] + LANES / 2;
    }
    for (int64_t stage = 1; stage < LANES; stage *= 2) {
        for (int64_t r = 0; r < LANES / 2; r++) {
            next[2 * r] = tile_build_shuffle(dot->builder, rows[r], rows[r + LANES / 2], low, LANES);
            next[2 * r + 1] = tile_build_shuffle(dot->builder, rows[r], rows[r + LANES / 2], high, LANES);
        }
        for (int64_t r = 0; r < LANES; r++) rows[r] = next[r];
    }
}

/* Bytes, of which each has 128 added: signed ones as unsigned ones. */
static TileValue *flip(Dot *dot, TileValue *words) {
    const TileType *type = words->type;
    if (type->scalar == TILE_U32) return tile_emit_with_bits(dot->emitter, TILE_OP_XOR, words, 0x80808080);
    return tile_emit_with_bits(dot->emitter, TILE_OP_XOR, words, 0x80);
}

/* Where the rows of a square go to: rows of memory that are `row` bytes apart, or those of a group of b. */
typedef struct Rows {
    TileValue *first;
    int64_t row;
    bool flips;      /* 128 is added to each byte */
    TileValue *used; /* of words that are packed behind others: how many words the first tile has already; else NULL */
} Rows;

/* A group's second tile of columns lies between its first one and the next group's. */
static TileValue *row_at(Dot *dot, const Rows *to, int64_t l) {
    TileValue *at = dot_offset(dot, to->first, dot_i64(dot, l * to->row)), *zero = dot_i64(dot, 0);
    if (!to->used || dot->block_vectors == 1 || !dot->amx) return at;
    TileValue *fits = dot_binary(dot, TILE_OP_LT, dot_add(dot, to->used, dot_i64(dot, l)), dot_i64(dot, LANES));
    return dot_offset(dot, at, dot_select(dot, fits, zero, dot_i64(dot, (dot->block_vectors - 1) * DOT_AMX_TILE)));
}

/* Transposes a square, whose rows begin at `from`. */
static void move_square(Dot *dot, TileValue *const *from, const Rows *to) {
    TileValue *rows[LANES];
    const TileType *type = vector_of(dot, TILE_U32, LANES);
    for (int64_t l = 0; l < LANES; l++)
        rows[l] = tile_build_load(dot->builder, type, from[l], NULL, NULL, dot->element);
    transpose(dot, rows);
    for (int64_t l = 0; l < LANES; l++)
        tile_build_store(dot->builder, to->flips ? flip(dot, rows[l]) : rows[l], row_at(dot, to, l), NULL, 0);
}

/* Transposes what is in the staging memory. */
static void move_staged(Dot *dot, const Rows *to) {
    TileValue *from[LANES];
    for (int64_t l = 0; l < LANES; l++) from[l] = dot_offset(dot, dot->staging, dot_i64(dot, l * DOT_AMX_BYTES));
    move_square(dot, from, to);
}

/* The limit, or 0 if k is not below kc. */
static TileValue *limit_at(Dot *dot, TileValue *k, TileValue *kc, TileValue *limit) {
    return dot_select(dot, dot_binary(dot, TILE_OP_LT, k, kc), limit, dot_i64(dot, 0));
}

/* Where k lies, or the last one that there is: a load of no lanes is slow where no memory is. */
static TileValue *last_of(Dot *dot, TileValue *k, TileValue *kc) {
    return dot_minimum(dot, k, dot_binary(dot, TILE_OP_SUB, kc, dot_i64(dot, 1)));
}

/* How many words of a group have any k. */
static TileValue *words_in(Dot *dot, TileValue *group, TileValue *kc) {
    TileValue *left = dot_binary(dot, TILE_OP_SUB, kc, dot_scale(dot, group, dot->group)), *pack = dot_i64(dot, pack_of(dot));
    TileValue *words = dot_binary(dot, TILE_OP_DIV, dot_add(dot, left, dot_i64(dot, pack_of(dot) - 1)), pack);
    return dot_minimum(dot, words, dot_i64(dot, LANES));
}

static TileValue *is_whole(Dot *dot, TileValue *group, TileValue *kc) {
    TileValue *end = dot_scale(dot, dot_add(dot, group, dot_i64(dot, 1)), dot->group);
    return dot_binary(dot, TILE_OP_LE, end, kc);
}

static TileValue *is_adjacent(Dot *dot, TileValue *stride) {
    return dot_binary(dot, TILE_OP_EQ, stride, dot_i64(dot, dot->element));
}

/* Copies `units` elements along k that are any bytes apart, one by one, to `to`; those from `limit` on are zero. */
static void gather_units(Dot *dot, TileValue *from, TileValue *stride, TileValue *to, int64_t step, TileValue *limit) {
    const TileType *type = tile_type_scalar(dot->builder->module->context, unit_of(dot));
    TileValue *zero = tile_emit_bits(dot->emitter, type, 0);
    TileValue *one = dot_i64(dot, 1);
    TileValue *unit = dot_for(dot, dot_i64(dot, 0), limit, one);
    TileValue *value =
        tile_build_load(dot->builder, type, dot_offset(dot, from, dot_multiply(dot, unit, stride)), NULL, NULL, 0);
    tile_build_store(dot->builder, value, dot_offset(dot, to, dot_scale(dot, unit, step)), NULL, 0);
    dot_end(dot);
    unit = dot_for(dot, limit, dot_i64(dot, dot->group), one);
    tile_build_store(dot->builder, zero, dot_offset(dot, to, dot_scale(dot, unit, step)), NULL, 0);
    dot_end(dot);
}

/* How many k a group has, at most all. */
static TileValue *left_in(Dot *dot, TileValue *group, TileValue *kc) {
    TileValue *left = dot_binary(dot, TILE_OP_SUB, kc, dot_scale(dot, group, dot->group));
    return dot_minimum(dot, left, dot_i64(dot, dot->group));
}

/* ---- a ---- */

typedef struct PackA {
    TileValue *i, *first, *rows, *corner, *kc; /* corner: a's first row, at k0 */
    int64_t row_bytes;
} PackA;

static TileValue *source_row(Dot *dot, const PackA *pack, TileValue *row) {
    TileValue *last = dot_binary(dot, TILE_OP_SUB, dot->m, dot_i64(dot, 1));
    TileValue *source = dot_minimum(dot, dot_add(dot, pack->i, row), last);
    return dot_offset(dot, pack->corner, dot_multiply(dot, source, dot->a.row));
}

/* Rows are contiguous: whole groups, then one that is filled with zeros. */
static void copy_rows(Dot *dot, const PackA *pack) {
    TileValue *row = dot_for(dot, pack->first, pack->rows, dot_i64(dot, 1));
    TileValue *from = source_row(dot, pack, row);
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, row, pack->row_bytes));
    TileValue *whole = dot_binary(dot, TILE_OP_DIV, pack->kc, dot_i64(dot, dot->group));
    TileValue *bytes = dot_scale(dot, dot_for(dot, dot_i64(dot, 0), whole, dot_i64(dot, 1)), DOT_AMX_BYTES);
    TileValue *value = dot_amx_load(dot, dot_offset(dot, from, bytes), dot->group, NULL);
    tile_build_store(dot->builder, value, dot_offset(dot, to, bytes), NULL, 0);
    dot_end(dot);
    TileValue *done = dot_scale(dot, whole, dot->group);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, done, pack->kc));
    TileValue *rest = dot_binary(dot, TILE_OP_SUB, pack->kc, done);
    bytes = dot_scale(dot, whole, DOT_AMX_BYTES);
    value = dot_amx_load(dot, dot_offset(dot, from, bytes), dot->group, rest);
    tile_build_store(dot->builder, value, dot_offset(dot, to, bytes), NULL, 0);
    dot_end(dot);
    dot_end(dot);
}

/* Columns are contiguous: for each 16 rows and each group, the words of all rows at one place of k are a vector. */
static void transpose_rows(Dot *dot, const PackA *pack) {
    TileValue *row = dot_for(dot, dot_i64(dot, 0), pack->rows, dot_i64(dot, LANES));
    TileValue *first = dot_add(dot, pack->i, row), *left = dot_binary(dot, TILE_OP_SUB, dot->m, first);
    TileValue *column = dot_offset(dot, pack->corner, dot_multiply(dot, first, dot->a.row));
    TileValue *group = dot_for(dot, dot_i64(dot, 0), dot_amx_groups(dot, pack->kc), dot_i64(dot, 1));
    TileValue *word = dot_for(dot, dot_i64(dot, 0), dot_i64(dot, LANES), dot_i64(dot, 1));
    TileValue *units[MOST_PACK];
    TileValue *k = dot_add(dot, dot_scale(dot, group, dot->group), dot_scale(dot, word, pack_of(dot)));
    for (int64_t p = 0; p < pack_of(dot); p++) {
        TileValue *at = dot_add(dot, k, dot_i64(dot, p));
        TileValue *place = dot_multiply(dot, last_of(dot, at, pack->kc), dot->a.column);
        units[p] = dot_amx_load(dot, dot_offset(dot, column, place), LANES,
                              limit_at(dot, at, pack->kc, left));
    }
    TileValue *line = dot_offset(dot, dot->staging, dot_scale(dot, word, DOT_AMX_BYTES));
    tile_build_store(dot->builder, dot_amx_words_of(dot, units, 0), line, NULL, 0);
    dot_end(dot);
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, row, pack->row_bytes));
    Rows square = {dot_offset(dot, to, dot_scale(dot, group, DOT_AMX_BYTES)), pack->row_bytes, false, NULL};
    move_staged(dot, &square);
    dot_end(dot);
    dot_end(dot);
}

static void gather_rows(Dot *dot, const PackA *pack) {
    TileValue *row = dot_for(dot, dot_i64(dot, 0), pack->rows, dot_i64(dot, 1));
    TileValue *group = dot_for(dot, dot_i64(dot, 0), dot_amx_groups(dot, pack->kc), dot_i64(dot, 1));
    TileValue *k = dot_scale(dot, group, dot->group);
    TileValue *from = dot_offset(dot, source_row(dot, pack, row), dot_multiply(dot, k, dot->a.column));
    TileValue *to = dot_offset(dot, dot->a_panel, dot_scale(dot, row, pack->row_bytes));
    gather_units(dot, from, dot->a.column, dot_offset(dot, to, dot_scale(dot, group, DOT_AMX_BYTES)), dot->element,
                 left_in(dot, group, pack->kc));
    dot_end(dot);
    dot_end(dot);
}

static TileValue *corner_of(Dot *dot, TileValue *k0) {
    return dot_offset(dot, dot->a.pointer, dot_multiply(dot, k0, dot->a.column));
}

void dot_amx_pack_a(Dot *dot, TileValue *i, TileValue *first, TileValue *rows, TileValue *k0, TileValue *kc) {
    PackA pack = {i, first, rows, corner_of(dot, k0), kc, dot->panel_row * dot->element};
    dot_if(dot, is_adjacent(dot, dot->a.column));
    copy_rows(dot, &pack);
    dot_else(dot);
    dot_if(dot, is_adjacent(dot, dot->a.row));
    transpose_rows(dot, &pack);
    dot_else(dot);
    gather_rows(dot, &pack);
    dot_end(dot);
    dot_end(dot);
}

void dot_amx_fill_rows(Dot *dot, TileValue *panel, TileValue *k, int64_t unit) {
    TileValue *above = dot_binary(dot, TILE_OP_AND, dot_add(dot, k, dot_i64(dot, unit - 1)), dot_i64(dot, -unit));
    TileValue *missing = dot_binary(dot, TILE_OP_SUB, above, k), *end = dot_offset(dot, panel, dot_scale(dot, k, dot->element));
    const TileType *type = vector_of(dot, unit_of(dot), unit), *mask_type = vector_of(dot, TILE_BOOL, unit);
    TileValue *operands[] = {dot_i64(dot, 0), missing}, *zero = tile_emit_bits(dot->emitter, type, 0);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, operands[0], missing));
    TileValue *mask = tile_op_result(tile_build_op(dot->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &mask_type, 1), 0);
    TileValue *row = dot_for(dot, operands[0], dot->m, dot_i64(dot, 1));
    tile_build_store(dot->builder, zero, dot_offset(dot, end, dot_scale(dot, row, dot->panel_row * dot->element)), mask, 0);
    dot_end(dot);
    dot_end(dot);
}

bool dot_amx_has_rows(const Dot *dot) {
    int64_t known;
    return tile_value_integer(dot->a.column, &known) && known == dot->element;
}

DotRow dot_amx_row_ahead(Dot *dot, int64_t r) {
    PackA pack = {.i = dot->next_row, .corner = dot->next_corner};
    TileValue *to = dot_offset(dot, dot->next_panel, dot_i64(dot, r * dot->panel_row * dot->element));
    return (DotRow){source_row(dot, &pack, dot_i64(dot, r)), to};
}

void dot_amx_copy_ahead(Dot *dot, const DotRow *row, TileValue *group, TileValue *kc) {
    TileValue *bytes = dot_scale(dot, group, DOT_AMX_BYTES);
    TileValue *value = dot_amx_load(dot, dot_offset(dot, row->from, bytes), dot->group, left_in(dot, group, kc));
    tile_build_store(dot->builder, value, dot_offset(dot, row->to, bytes), NULL, 0);
}

/* ---- b ---- */

typedef struct PackB {
    TileValue *j0, *columns, *k0, *kc;
} PackB;

/* Where b's element (k0 + k, j0 + j) lies. */
static TileValue *source_of(Dot *dot, const PackB *pack, TileValue *k, TileValue *j) {
    TileValue *row = dot_offset(dot, dot->b.pointer, dot_multiply(dot, dot_add(dot, pack->k0, k), dot->b.row));
    return dot_offset(dot, row, dot_multiply(dot, dot_add(dot, pack->j0, j), dot->b.column));
}

/* The first tile of a group, in the block of columns that begins at j. */
static TileValue *tile_at(Dot *dot, TileValue *group, TileValue *j) {
    TileValue *block = dot_offset(dot, dot->b_panel, dot_scale(dot, j, dot_column_bytes(dot)));
    return dot_offset(dot, block, dot_scale(dot, group, dot->block_vectors * DOT_AMX_TILE));
}

/* The row of the first tile that has this word of a group, of those that are packed now. */
static TileValue *word_at(Dot *dot, TileValue *group, TileValue *word, TileValue *j) {
    if (dot->b_word) {
        word = dot_add(dot, dot_add(dot, dot->b_word, dot_scale(dot, group, LANES)), word);
        group = dot_binary(dot, TILE_OP_DIV, word, dot_i64(dot, LANES));
        word = dot_binary(dot, TILE_OP_AND, word, dot_i64(dot, LANES - 1));
    }
    return dot_offset(dot, tile_at(dot, group, j), dot_scale(dot, word, dot_word_step(dot)));
}

/* The words at one place of k, of a block of columns. If not `whole`, columns and k may end in the block. */
static void pack_words(Dot *dot, const PackB *pack, TileValue *group, TileValue *word, TileValue *j, bool whole) {
    enum { AHEAD = 4 /* words whose rows are prefetched */ };
    TileValue *k = dot_add(dot, dot_scale(dot, group, dot->group), dot_scale(dot, word, pack_of(dot)));
    TileValue *units[MOST_PACK], *left = dot_binary(dot, TILE_OP_SUB, pack->columns, j);
    int64_t columns = dot->block_vectors * LANES;
    for (int64_t p = 0; p < pack_of(dot); p++) {
        TileValue *at = dot_add(dot, k, dot_i64(dot, p)), *further = dot_scale(dot, dot->b.row, p);
        /* a load of no lanes is slow where no memory is */
        if (!whole) further = dot_select(dot, dot_binary(dot, TILE_OP_LT, at, pack->kc), further, dot_i64(dot, 0));
        TileValue *from = dot_offset(dot, source_of(dot, pack, k, j), further);
        if (whole) dot_prefetch(dot, dot_offset(dot, from, dot_scale(dot, dot->b.row, AHEAD * pack_of(dot))), TILE_CACHE_L1);
        units[p] = dot_amx_load(dot, from, columns, whole ? NULL : limit_at(dot, at, pack->kc, left));
    }
    TileValue *to = word_at(dot, group, word, j);
    for (int64_t v = 0; v < dot->block_vectors; v++) {
        TileValue *words = dot_amx_words_of(dot, units, v * LANES);
        tile_build_store(dot->builder, dot->flips ? flip(dot, words) : words,
                         dot_offset(dot, to, dot_i64(dot, v * dot_vector_step(dot))), NULL, 0);
    }
}

/* The words of a group behind its last k. */
static void clear_words(Dot *dot, TileValue *columns, TileValue *group, TileValue *words) {
    TileValue *zero = tile_emit_bits(dot->emitter, vector_of(dot, TILE_U32, LANES), 0);
    TileValue *word = dot_for(dot, words, dot_i64(dot, LANES), dot_i64(dot, 1));
    TileValue *j = dot_for(dot, dot_i64(dot, 0), columns, dot->block_columns);
    TileValue *to = dot_offset(dot, tile_at(dot, group, j), dot_scale(dot, word, dot_word_step(dot)));
    for (int64_t v = 0; v < dot->block_vectors; v++)
        tile_build_store(dot->builder, zero, dot_offset(dot, to, dot_i64(dot, v * dot_vector_step(dot))), NULL, 0);
    dot_end(dot);
    dot_end(dot);
}

/* Rows are contiguous: row by row in memory. */
static void pack_rows(Dot *dot, const PackB *pack) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1);
    TileValue *rest = dot_binary(dot, TILE_OP_REM, pack->columns, dot->block_columns);
    TileValue *full = dot_binary(dot, TILE_OP_SUB, pack->columns, rest);
    TileValue *group = dot_for(dot, zero, dot_amx_groups(dot, pack->kc), one);
    TileValue *whole = is_whole(dot, group, pack->kc);
    TileValue *last = dot_select(dot, whole, full, zero);
    TileValue *words = words_in(dot, group, pack->kc), *word = dot_for(dot, zero, words, one);
    pack_words(dot, pack, group, word, dot_for(dot, zero, last, dot->block_columns), true);
    dot_end(dot);
    pack_words(dot, pack, group, word, dot_for(dot, last, pack->columns, dot->block_columns), false);
    dot_end(dot);
    dot_end(dot);
    if (!dot->b_word) clear_words(dot, pack->columns, group, words);
    dot_end(dot);
}

/* Copies 16 columns of a group that is not whole to the staging memory, with zeros behind them. */
static void stage_group(Dot *dot, TileValue *const *from, TileValue *left) {
    for (int64_t l = 0; l < LANES; l++)
        tile_build_store(dot->builder, dot_amx_load(dot, from[l], dot->group, left),
                         dot_offset(dot, dot->staging, dot_i64(dot, l * DOT_AMX_BYTES)), NULL, 0);
}

/* Columns are contiguous, a transposed b: squares of 16 columns and a group of k. Columns past the last repeat the last
 * one. */
static void pack_columns(Dot *dot, const PackB *pack) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1);
    TileValue *last = dot_binary(dot, TILE_OP_SUB, pack->columns, one);
    TileValue *j = dot_for(dot, zero, pack->columns, dot_i64(dot, LANES));
    TileValue *inside = dot_binary(dot, TILE_OP_REM, j, dot->block_columns);
    TileValue *begin = dot_binary(dot, TILE_OP_SUB, j, inside);
    TileValue *group = dot_for(dot, zero, dot_amx_groups(dot, pack->kc), one);
    TileValue *from[LANES], *k = dot_scale(dot, group, dot->group);
    for (int64_t l = 0; l < LANES; l++)
        from[l] = source_of(dot, pack, k, dot_minimum(dot, dot_add(dot, j, dot_i64(dot, l)), last));
    TileValue *vector = dot_scale(dot, dot_binary(dot, TILE_OP_DIV, inside, dot_i64(dot, LANES)), dot_vector_step(dot));
    Rows to = {dot_offset(dot, word_at(dot, group, zero, begin), vector), dot_word_step(dot), dot->flips, NULL};
    if (dot->b_word) to.used = dot_binary(dot, TILE_OP_AND, dot->b_word, dot_i64(dot, LANES - 1));
    dot_if(dot, is_whole(dot, group, pack->kc));
    move_square(dot, from, &to);
    dot_else(dot);
    stage_group(dot, from, left_in(dot, group, pack->kc));
    move_staged(dot, &to);
    dot_end(dot);
    dot_end(dot);
    dot_end(dot);
}

/* Any strides: column by column, a group at a time by way of the staging memory, whose rows are words of the column. */
static void gather_columns(Dot *dot, const PackB *pack) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1);
    const TileType *type = tile_type_scalar(dot->builder->module->context, TILE_U32);
    TileValue *j = dot_for(dot, zero, pack->columns, one);
    TileValue *inside = dot_binary(dot, TILE_OP_REM, j, dot->block_columns);
    TileValue *group = dot_for(dot, zero, dot_amx_groups(dot, pack->kc), one);
    TileValue *from = source_of(dot, pack, dot_scale(dot, group, dot->group), j);
    gather_units(dot, from, dot->b.row, dot->staging, dot->element, left_in(dot, group, pack->kc));
    TileValue *begin = dot_binary(dot, TILE_OP_SUB, j, inside);
    TileValue *vector = dot_binary(dot, TILE_OP_DIV, inside, dot_i64(dot, LANES));
    TileValue *lane = dot_binary(dot, TILE_OP_REM, inside, dot_i64(dot, LANES));
    TileValue *column = dot_add(dot, dot_scale(dot, vector, dot_vector_step(dot)), dot_scale(dot, lane, DOT_AMX_WORD));
    TileValue *word = dot_for(dot, zero, dot_i64(dot, LANES), one);
    TileValue *value = tile_build_load(
        dot->builder, type, dot_offset(dot, dot->staging, dot_scale(dot, word, DOT_AMX_WORD)), NULL, NULL, 0);
    if (dot->flips) value = flip(dot, value);
    tile_build_store(dot->builder, value, dot_offset(dot, word_at(dot, group, word, begin), column), NULL, 0);
    dot_end(dot);
    dot_end(dot);
    dot_end(dot);
}

void dot_amx_pack_b(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    PackB pack = {j0, columns, k0, kc};
    dot_if(dot, is_adjacent(dot, dot->b.column));
    pack_rows(dot, &pack);
    dot_else(dot);
    dot_if(dot, is_adjacent(dot, dot->b.row));
    pack_columns(dot, &pack);
    dot_else(dot);
    gather_columns(dot, &pack);
    dot_end(dot);
    dot_end(dot);
}

TileValue *dot_amx_word(Dot *dot, TileValue *k) {
    return dot_binary(dot, TILE_OP_DIV, dot_add(dot, k, dot_i64(dot, pack_of(dot) - 1)), dot_i64(dot, pack_of(dot)));
}

void dot_amx_clear_tail(Dot *dot, TileValue *k) {
    TileValue *words = dot_amx_word(dot, k), *used = dot_binary(dot, TILE_OP_AND, words, dot_i64(dot, LANES - 1));
    if (!dot->a_columns) dot_amx_fill_rows(dot, dot->a_panel, k, dot->group);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, dot_i64(dot, 0), used));
    clear_words(dot, dot->n, dot_binary(dot, TILE_OP_DIV, words, dot_i64(dot, LANES)), used);
    dot_end(dot);
}
