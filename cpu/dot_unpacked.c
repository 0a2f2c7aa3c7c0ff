/* Operands that are read where they are.
 *
 * A panel of b is packed so that what the micro-kernel reads lies side by side, and is read for each block of rows. It is packed as fast as ten rows are
 * multiplied with it: a product of 16 rows took twice as long as reading b from memory does. Where a program has few rows, the
 * micro-kernel reads b itself, a part of the k at a time, so that the next block of rows finds in L2 what the first one has read, and the hardware few
 * enough pages; rows of b are fetched ahead. How many rows there are is known at run time, and it is the same micro-kernel: the address of its
 * panel and the bytes from one row to the next are values. Columns behind the last whole block are packed, since vectors reach over them.
 * Of a left operand whose rows lie side by side for each k, a panel has the rows of a block; where neighbouring k are near, so that pages and sets of the cache do
 * for a block's k, full blocks are read where they are. */
#include "cpu/dot.h"

enum {
    MOST_ROWS = 64,
    NEAR_ROW = 1024, /* bytes: rows of which a page has some */
    SHORT_ROW = 4096, /* bytes: rows of one page each */
    SHORT_DEPTH = 128, /* of which 256 columns take 128 KiB, */
    LONG_DEPTH = 64,   /* and 64 KiB */
    SHORT_AHEAD = 8, /* rows */
    LONG_AHEAD = 16,
    WORD = 8,
    ALIGN = 64
};

static bool is_adjacent(const Dot *dot) {
    int64_t column;
    return tile_value_integer(dot->b.column, &column) && column == dot->bytes;
}

/* Why it is packed in any case; NULL: it need not be. */
static const char *obstacle(const Dot *dot) {
    if (dot->b.scalar != dot->scalar || dot->precision == TILE_PRECISION_TF32) return "its elements are converted for the sums";
    if (dot->words || dot->scale) return "that was not measured for such vectors";
    return is_adjacent(dot) ? NULL : "its columns are not known to lie side by side";
}

void dot_unpacked_choose(Dot *dot) {
    const char *why = obstacle(dot);
    if (why) {
        tile_pass_remark(dot->context, dot->op, TILE_DECISION_NOT_UNPACKED, "the right operand", "%s", why);
        return;
    }
    tile_pass_remark(dot->context, dot->op, TILE_DECISION_UNPACKED, "the right operand", "in programs of at most %d rows, or where its own are at most %d bytes apart", MOST_ROWS, NEAR_ROW);
    dot->near = dot_binary(dot, TILE_OP_LE, dot->b.row, dot_i64(dot, NEAR_ROW));
    dot->unpacked = dot->near; /* it is known in front of each panel: dot_unpacked_begin */
    dot->rest_panel = tile_build_buffer(&dot->emitter->front, dot->depth * dot->block_vectors * dot->lanes * dot->bytes, ALIGN);
    dot->packs = tile_build_buffer(&dot->emitter->front, WORD, ALIGN);
    if (dot->slots > 1) dot->slot = tile_build_buffer(&dot->emitter->front, WORD, ALIGN);
}

void dot_unpacked_begin(Dot *dot, TileValue *j0, TileValue *columns) {
    if (!dot->unpacked) return;
    TileValue *known = dot_amx_has_panel(dot, j0, columns, dot_i64(dot, 0), dot_minimum(dot, dot->k, dot_i64(dot, dot->depth)));
    dot->unpacked = dot_binary(dot, TILE_OP_OR, dot->near, dot_binary(dot, TILE_OP_LE, dot->m, dot_i64(dot, MOST_ROWS)));
    if (known) dot->unpacked = dot_binary(dot, TILE_OP_AND, dot->unpacked, dot_not(dot, known));
}

bool dot_unpacked_has_parts(const Dot *dot) { return dot->unpacked && dot->k_max > SHORT_DEPTH; }

static TileValue *by_row(Dot *dot, int64_t of_short, int64_t of_long) {
    return dot_select(dot, dot_binary(dot, TILE_OP_LE, dot->b.row, dot_i64(dot, SHORT_ROW)), dot_i64(dot, of_short), dot_i64(dot, of_long));
}

TileValue *dot_unpacked_depth(Dot *dot) {
    TileValue *far = dot_binary(dot, TILE_OP_AND, dot->unpacked, dot_not(dot, dot->near));
    return dot_select(dot, far, by_row(dot, SHORT_DEPTH, LONG_DEPTH), dot_i64(dot, dot->depth));
}

static void store_word(Dot *dot, TileValue *value, TileValue *at) { tile_build_store(dot->builder, value, at, NULL, 0); }

static TileValue *load_word(Dot *dot, TileValue *at) { return tile_build_load(dot->builder, dot_i64(dot, 0)->type, at, NULL, NULL, 0); }

/* What is to be packed, from column `from` on, and whether it has to be: one piece of code packs panels and what is left of columns that are not packed. */
typedef struct Packing {
    TileValue *panel, *from, *columns, *needed;
} Packing;

static Packing find_packing(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *rest = dot_binary(dot, TILE_OP_REM, columns, dot->block_columns), *missing;
    dot_if(dot, dot->unpacked);
    store_word(dot, dot_minimum(dot, rest, one), dot->packs);
    dot_else(dot);
    TileValue *slot = dot_amx_find_panel(dot, j0, columns, k0, kc, &missing);
    if (dot->slot) store_word(dot, slot, dot->slot);
    store_word(dot, missing ? dot_select(dot, missing, one, zero) : one, dot->packs);
    dot_end(dot);
    dot->b_panel = dot->slot ? dot_offset(dot, dot->b_slots, load_word(dot, dot->slot)) : dot->b_slots;
    TileValue *from = dot_add(dot, j0, dot_binary(dot, TILE_OP_SUB, columns, rest));
    return (Packing){dot_select(dot, dot->unpacked, dot->rest_panel, dot->b_panel), dot_select(dot, dot->unpacked, from, j0),
                     dot_select(dot, dot->unpacked, rest, columns), dot_binary(dot, TILE_OP_LT, zero, load_word(dot, dot->packs))};
}

void dot_unpacked_panels(Dot *dot, TileValue *j0, TileValue *columns, TileValue *k0, TileValue *kc) {
    Packing all = {.from = j0, .columns = columns};
    if (dot->unpacked) {
        all = find_packing(dot, j0, columns, k0, kc);
    } else {
        dot->b_panel = dot_offset(dot, dot->b_slots, dot_amx_find_panel(dot, j0, columns, k0, kc, &all.needed));
        all.panel = dot->b_panel;
    }
    TileValue *panel = dot->b_panel;
    dot->b_panel = all.panel;
    if (all.needed) dot_if(dot, all.needed);
    dot_pack_b(dot, all.from, all.columns, k0, kc);
    if (all.needed) dot_end(dot);
    dot->b_panel = panel;
}

DotPanel dot_unpacked_block(Dot *dot, TileValue *j0, TileValue *j, TileValue *columns, TileValue *k0) {
    TileValue *row = dot_vector_bytes(dot, dot->block_vectors);
    DotPanel packed = {dot_offset(dot, dot->b_panel, dot_scale(dot, j, dot_column_bytes(dot))), row, false, NULL};
    if (!dot->unpacked) return packed;
    TileValue *whole = dot_binary(dot, TILE_OP_LE, dot_add(dot, j, dot->block_columns), columns);
    TileValue *in_place = dot_binary(dot, TILE_OP_AND, dot->unpacked, whole);
    TileValue *own = dot_offset(dot, dot->b.pointer, dot_multiply(dot, k0, dot->b.row));
    own = dot_offset(dot, own, dot_scale(dot, dot_add(dot, j0, j), dot->bytes));
    packed.pointer = dot_select(dot, in_place, own, dot_select(dot, dot->unpacked, dot->rest_panel, packed.pointer));
    packed.step = dot_select(dot, in_place, dot->b.row, row);
    packed.ahead = dot_select(dot, in_place, dot_multiply(dot, dot->b.row, by_row(dot, SHORT_AHEAD, LONG_AHEAD)), dot_i64(dot, DOT_PANEL_AHEAD));
    return packed;
}

/* ---- a ---- */

void dot_unpacked_choose_a(Dot *dot) {
    bool same = dot->a.scalar == dot->scalar && dot->precision != TILE_PRECISION_TF32;
    if (!same || !dot->a_columns) return;
    tile_pass_remark(dot->context, dot->op, TILE_DECISION_UNPACKED, "the left operand", "where neighbouring k are at most %d bytes apart", NEAR_ROW);
    dot->a_near = dot_binary(dot, TILE_OP_LE, dot->a.column, dot_i64(dot, NEAR_ROW));
}

void dot_unpacked_all_columns(Dot *dot, TileValue *k0, TileValue *kc) {
    if (!dot->a_block) return;
    if (dot->a_near) dot_if(dot, dot_not(dot, dot->a_near));
    dot_pack_all_columns(dot, k0, kc);
    if (dot->a_near) dot_end(dot);
}

void dot_unpacked_columns(Dot *dot, TileValue *panels, TileValue *i, TileValue *k0, TileValue *kc) {
    dot->a_panel = dot->a_block ? dot_columns_of_block(dot, panels, i) : panels;
    if (!dot->a_near) {
        if (!dot->a_block) dot_pack_a(dot, i, k0, kc);
        return;
    }
    TileValue *full = dot_binary(dot, TILE_OP_LE, dot_add(dot, i, dot_i64(dot, dot->block_rows)), dot->m);
    TileValue *in_place = dot_binary(dot, TILE_OP_AND, dot->a_near, full), *packs = dot_not(dot, in_place);
    if (dot->a_block) packs = dot_binary(dot, TILE_OP_AND, packs, dot->a_near);
    dot_if(dot, packs);
    if (dot->a_block)
        dot_pack_last_columns(dot, i, k0, kc);
    else
        dot_pack_a(dot, i, k0, kc);
    dot_end(dot);
    TileValue *own = dot_offset(dot, dot->a.pointer, dot_multiply(dot, i, dot->a.row));
    own = dot_offset(dot, own, dot_multiply(dot, k0, dot->a.column));
    dot->a_panel = dot_select(dot, in_place, own, dot->a_panel);
    dot->a_step = dot_select(dot, in_place, dot->a.column, dot_i64(dot, dot->block_rows * dot->bytes));
}
