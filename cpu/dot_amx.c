/* Sizes and loops of products by AMX: b is packed for all columns, then block after block of rows is packed and
 * multiplied with all columns. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

enum {
    BLOCK_TILES = 2,         /* of rows, and of columns: with 2 x 2 registers for c each load feeds two products */
    PANEL_DEPTH_BYTES = 1024, /* of one row of a's panel: 32 rows take 32 KiB of L1 */
    PANEL_PAD_BYTES = 64,    /* rows of a's panel are in different cache sets */
    PANEL_WIDTH = 1024,      /* columns of b: 1 MiB at full depth */
    ALIGN = 64
};

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
static int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

void dot_amx_choose(Dot *dot) {
    int64_t block = BLOCK_TILES * DOT_AMX_ROWS;
    dot->element = tile_scalar_bytes(dot->a.scalar);
    dot->group = DOT_AMX_BYTES / dot->element;
    dot->block_rows = at_most(round_up(dot->m_max, DOT_AMX_ROWS), block);
    dot->block_vectors = at_most(round_up(dot->n_max, DOT_AMX_ROWS), block) / DOT_AMX_ROWS;
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
    if (dot->n_max % block == DOT_AMX_ROWS && dot->block_vectors > 1) dot->narrow_vectors = 1;
    dot->depth = at_most(round_up(dot->k_max, dot->group), PANEL_DEPTH_BYTES / dot->element);
    dot->panel_row = dot->depth + PANEL_PAD_BYTES / dot->element;
    dot->wide = dot->n_max > PANEL_WIDTH;
    if (dot->wide) dot->width = dot_i64(dot, PANEL_WIDTH);
    TileBuilder *front = &dot->emitter->front;
    int64_t width = round_up(at_most(dot->n_max, PANEL_WIDTH), block);
    dot->a_panel = tile_build_buffer(front, dot->block_rows * dot->panel_row * dot->element, ALIGN);
    dot->slot_bytes = width * dot->depth * dot->element;
    dot_amx_choose_slots(dot, dot->slot_bytes);
    dot->b_slots = tile_build_buffer(front, dot->slots * dot->slot_bytes, ALIGN);
    dot->staging = tile_build_buffer(front, DOT_AMX_TILE, ALIGN);
    dot->spill = tile_build_buffer(front, dot->block_rows * dot->block_vectors * dot->lanes * dot->bytes, ALIGN);
}

/* A block of rows, with all columns. */
static void emit_rows(Dot *dot, TileValue *i, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    dot_amx_pack_a(dot, i, dot_i64(dot, dot->block_rows), k0, kc);
    TileValue *j = dot_for(dot, dot_i64(dot, 0), columns, dot->block_columns);
    TileValue *at = dot_offset(dot, dot->b_panel, dot_scale(dot, j, dot->depth * dot->element));
    DotPanel panel = {at, dot_i64(dot, dot->block_vectors * DOT_AMX_TILE), false};
    dot_block(dot, &panel, i, dot_add(dot, j0, j), kc);
    dot_end(dot);
}

/* The last block of rows may be half as high. */
void dot_amx_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    int64_t rows = dot->block_rows;
    TileValue *missing;
    dot->b_panel = dot_amx_find_panel(dot, j0, columns, k0, kc, &missing);
    if (missing) dot_if(dot, missing);
    dot_amx_pack_b(dot, j0, columns, k0, kc);
    if (missing) dot_end(dot);
    TileValue *i = dot_for(dot, dot_i64(dot, 0), dot->m, dot_i64(dot, rows));
    bool halves = rows > DOT_AMX_ROWS;
    if (halves) {
        TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->m, i);
        dot_if(dot, dot_binary(dot, TILE_OP_LE, left, dot_i64(dot, DOT_AMX_ROWS)));
        dot->block_rows = DOT_AMX_ROWS;
        emit_rows(dot, i, j0, columns, k0, kc);
        dot->block_rows = rows;
        dot_else(dot);
    }
    emit_rows(dot, i, j0, columns, k0, kc);
    if (halves) dot_end(dot);
    dot_end(dot);
}
