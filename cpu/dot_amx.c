/* Sizes and loops of products of words, by AMX or by vectors: b is packed for all columns, then block after block of rows is packed and
 * multiplied with all columns. */
#include "cpu/dot.h"
#include "cpu/panel.h"
#include "lang/scalar/scalar.h"

enum {
    BLOCK_TILES = 2,          /* of rows, and of columns: with 2 x 2 registers for c each load feeds two products */
    PANEL_WIDTH = 1024,       /* columns of b: 1 MiB at full depth */
    ALIGN = 64
};

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
static int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/* Is a block of rows copied while the one before is multiplied? Then there are two panels, and each block of columns
 * copies some rows. */
static void choose_ahead(Dot *dot) {
    int64_t columns = dot->block_vectors * dot->lanes,
            blocks = round_up(at_most(dot->n_max, PANEL_WIDTH), columns) / columns;
    int64_t each = (dot->block_rows + blocks - 1) / blocks;
    if (dot->amx && dot_amx_has_rows(dot) && each <= DOT_AMX_AHEAD && dot->m_max > dot->block_rows) dot->rows_ahead = each;
}

void dot_amx_choose_block(Dot *dot) {
    int64_t block = BLOCK_TILES * DOT_AMX_ROWS;
    dot->element = tile_scalar_bytes(dot->a.scalar);
    dot->group = DOT_AMX_BYTES / dot->element;
    dot->block_rows = at_most(round_up(dot->m_max, DOT_AMX_ROWS), block);
    dot->block_vectors = at_most(round_up(dot->n_max, DOT_AMX_ROWS), block) / DOT_AMX_ROWS;
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
    if (dot->n_max % block == DOT_AMX_ROWS && dot->block_vectors > 1) dot->narrow_vectors = 1;
    TileBuilder *front = &dot->emitter->front;
    dot->staging = tile_build_buffer(front, DOT_AMX_TILE, ALIGN);
    dot->spill = tile_build_buffer(front, dot->block_rows * dot->block_vectors * dot->lanes * dot->bytes, ALIGN);
}

int64_t dot_amx_deepest(const Dot *dot) {
    return (dot->amx ? CPU_PANEL_AMX_DEPTH_BYTES : CPU_PANEL_DEPTH_BYTES) / dot->element;
}

void dot_amx_choose_panels(Dot *dot) {
    int64_t block = BLOCK_TILES * DOT_AMX_ROWS;
    dot->depth = at_most(round_up(dot->k_max, dot->group), dot_amx_deepest(dot));
    dot->panel_row = dot->depth + CPU_PANEL_PAD_BYTES / dot->element;
    dot->wide = dot->n_max > PANEL_WIDTH;
    if (dot->wide) dot->width = dot_i64(dot, PANEL_WIDTH);
    TileBuilder *front = &dot->emitter->front;
    int64_t width = round_up(at_most(dot->n_max, PANEL_WIDTH), block);
    choose_ahead(dot);
    int64_t rows = (dot->rows_ahead ? 2 : 1) * round_up(dot->block_rows, DOT_AMX_ROWS);
    if (dot->a_columns)
        dot_words_build_columns(dot);
    else
        dot->a_panel = tile_build_buffer(front, rows * dot->panel_row * dot->element, ALIGN);
    dot->slot_bytes = width * dot_column_bytes(dot);
    dot_amx_choose_slots(dot, dot->slot_bytes);
    dot->b_slots = tile_build_buffer(front, dot->slots * dot->slot_bytes, ALIGN);
}


/* How long a row of a's panel is, and how large one of all columns of b. The last group pads rows, too. */
void dot_amx_choose_joined(Dot *dot) {
    dot->depth += dot->group;
    int64_t columns = round_up(dot->n_max, dot->block_vectors * DOT_AMX_ROWS);
    dot->panel_row = dot->depth;
    dot->slot_bytes = columns * dot_column_bytes(dot);
    if (dot->a_columns) dot->a_block = dot_words_columns_block(dot);
}

/* The products of a block of rows with all columns. k0: where a's rows begin that are packed next; NULL: all are packed. */
static void emit_columns(Dot *dot, TileValue *i, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    if (dot->row_sums) dot_words_sum_rows(dot, kc);
    TileValue *j = dot_for(dot, dot_i64(dot, 0), columns, dot->block_columns);
    TileValue *at = dot_offset(dot, dot->b_panel, dot_scale(dot, j, dot_column_bytes(dot)));
    DotPanel panel = {at, dot_i64(dot, dot->amx ? dot->block_vectors * DOT_AMX_TILE : dot_word_step(dot)), false, NULL};
    TileValue *next = dot->next_panel, *row = dot->next_row;
    if (next) {
        TileValue *done = dot_scale(dot, dot_binary(dot, TILE_OP_DIV, j, dot->block_columns), dot->rows_ahead);
        dot->next_panel = dot_offset(dot, next, dot_scale(dot, done, dot->panel_row * dot->element));
        dot->next_row = dot_add(dot, row, done);
    }
    if (k0 && !dot->rows_ahead) dot_fetch_rows(dot, i, j, k0);
    dot_block(dot, &panel, i, dot_add(dot, j0, j), kc);
    dot->fetched_count = 0;
    dot->next_panel = next;
    dot->next_row = row;
    dot_end(dot);
}

/* A block, which the block before has copied, and the copy of the one behind. Fewer columns than there might be leave
 * some of its rows to be copied here. */
static void emit_ahead(Dot *dot, TileValue *i, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    int64_t rows = dot->block_rows, bytes = rows * dot->panel_row * dot->element;
    TileValue *number = dot_binary(dot, TILE_OP_DIV, i, dot_i64(dot, rows)), *panels = dot->a_panel;
    TileValue *odd = dot_binary(dot, TILE_OP_AND, number, dot_i64(dot, 1));
    TileValue *other = dot_binary(dot, TILE_OP_SUB, dot_i64(dot, 1), odd);
    TileValue *next = dot_offset(dot, panels, dot_scale(dot, other, bytes));
    dot->a_panel = dot_offset(dot, panels, dot_scale(dot, odd, bytes));
    dot->next_panel = next;
    dot->next_row = dot_add(dot, i, dot_i64(dot, rows));
    dot->next_corner = dot_offset(dot, dot->a.pointer, dot_multiply(dot, k0, dot->a.column));
    emit_columns(dot, i, j0, columns, k0, kc);
    TileValue *blocks = dot_binary(
        dot, TILE_OP_DIV, dot_add(dot, columns, dot_binary(dot, TILE_OP_SUB, dot->block_columns, dot_i64(dot, 1))),
        dot->block_columns);
    dot->a_panel = next;
    dot->next_panel = NULL;
    dot_if(dot, dot_binary(dot, TILE_OP_LT, dot->next_row, dot->m));
    dot_amx_pack_a(dot, dot->next_row, dot_scale(dot, blocks, dot->rows_ahead), dot_i64(dot, rows), k0, kc);
    dot_end(dot);
    dot->a_panel = panels;
}

/* Rows of a that lie side by side: all blocks of them, or one after the other. */
static void emit_rows_side_by_side(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *panels = dot->a_panel;
    TileValue *count = dot_binary(dot, TILE_OP_DIV, dot_add(dot, dot->m, dot_i64(dot, dot->block_rows - 1)), dot_i64(dot, dot->block_rows));
    if (dot->a_block) dot_words_pack_columns(dot, zero, count, k0, kc);
    TileValue *block = dot_for(dot, zero, count, one), *i = dot_scale(dot, block, dot->block_rows);
    if (dot->a_block)
        dot->a_panel = dot_columns_of_block(dot, panels, i);
    else
        dot_words_pack_columns(dot, block, dot_add(dot, block, one), k0, kc);
    emit_columns(dot, i, j0, columns, NULL, kc);
    dot_end(dot);
    dot->a_panel = panels;
}

/* The last block of rows may be half as high. */
void dot_amx_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    int64_t rows = dot->block_rows;
    TileValue *missing, *zero = dot_i64(dot, 0);
    dot->b_panel = dot_offset(dot, dot->b_slots, dot_amx_find_panel(dot, j0, columns, k0, kc, &missing));
    if (missing) dot_if(dot, missing);
    dot_amx_pack_b(dot, j0, columns, k0, kc);
    if (missing) dot_end(dot);
    if (dot->a_columns) {
        emit_rows_side_by_side(dot, j0, columns, k0, kc);
        return;
    }
    if (dot->rows_ahead) {
        dot_if(dot, dot_binary(dot, TILE_OP_LT, zero, dot->m));
        dot_amx_pack_a(dot, zero, zero, dot_i64(dot, rows), k0, kc);
        dot_end(dot);
    }
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, rows));
    if (!dot->rows_ahead) dot_amx_pack_a(dot, i, zero, dot_i64(dot, rows), k0, kc);
    bool halves = rows > DOT_AMX_ROWS;
    if (halves) {
        TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->m, i), *panels = dot->a_panel;
        dot_if(dot, dot_binary(dot, TILE_OP_LE, left, dot_i64(dot, DOT_AMX_ROWS)));
        if (dot->rows_ahead) {
            TileValue *odd =
                dot_binary(dot, TILE_OP_AND, dot_binary(dot, TILE_OP_DIV, i, dot_i64(dot, rows)), dot_i64(dot, 1));
            dot->a_panel = dot_offset(dot, panels, dot_scale(dot, odd, rows * dot->panel_row * dot->element));
        }
        dot->block_rows = DOT_AMX_ROWS;
        emit_columns(dot, i, j0, columns, k0, kc);
        dot->block_rows = rows;
        dot->a_panel = panels;
        dot_else(dot);
    }
    if (dot->rows_ahead)
        emit_ahead(dot, i, j0, columns, k0, kc);
    else
        emit_columns(dot, i, j0, columns, k0, kc);
    if (halves) dot_end(dot);
    dot_end(dot);
}

void dot_amx_multiply(Dot *dot, TileValue *kc) {
    int64_t rows = dot->block_rows;
    TileValue *zero = dot_i64(dot, 0), *panels = dot->a_panel;
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, rows));
    dot->a_panel = dot->a_columns ? dot_columns_of_block(dot, panels, i) : dot_offset(dot, panels, dot_scale(dot, i, dot->panel_row * dot->element));
    if (rows > DOT_AMX_ROWS) {
        TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->m, i);
        dot_if(dot, dot_binary(dot, TILE_OP_LE, left, dot_i64(dot, DOT_AMX_ROWS)));
        dot->block_rows = DOT_AMX_ROWS;
        emit_columns(dot, i, zero, dot->n, NULL, kc);
        dot->block_rows = rows;
        dot_else(dot);
    }
    emit_columns(dot, i, zero, dot->n, NULL, kc);
    if (rows > DOT_AMX_ROWS) dot_end(dot);
    dot_end(dot);
    dot->a_panel = panels;
}
