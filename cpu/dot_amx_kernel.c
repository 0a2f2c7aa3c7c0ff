/* The micro-kernel of AMX: up to 2 x 2 tile registers of c stay in place throughout the loop over groups of k. */
#include "cpu/dot.h"

/* The first registers hold c, row by row. */
enum { REGISTER_A = 4, REGISTER_B = 6, REGISTERS = 8, COLUMN_TILES = 2, GROUPS_AHEAD = 2 };

static void access_register(Dot *dot, TileOpId id, int64_t number, TileValue *pointer, TileValue *stride) {
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_TILE_REGISTERS, .count = 1, .integers = &number};
    TileValue *operands[] = {pointer, stride};
    tile_build_op(dot->builder, id, operands, 2, &attribute, 1, NULL, 0);
}

static void multiply(Dot *dot, int64_t row, int64_t column) {
    const int64_t numbers[] = {row * COLUMN_TILES + column, REGISTER_A + row, REGISTER_B + column};
    TileContext *context = dot->builder->module->context;
    const TileType *types[] = {tile_type_scalar(context, dot->a.scalar), tile_type_scalar(context, dot->b.scalar)};
    const TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_TILE_REGISTERS, .count = 3, .integers = numbers},
                                        {.key = TILE_ATTRIBUTE_TYPES, .count = 2, .types = types}};
    tile_build_op(dot->builder, TILE_OP_AMX_DOT, NULL, 0, attributes, 2, NULL, 0);
}

static void access_block(Dot *dot, TileOpId id, TileValue *c, TileValue *row, int64_t rows, int64_t vectors) {
    for (int64_t r = 0; r < rows; r++) {
        TileValue *at = dot_offset(dot, c, dot_scale(dot, row, r * DOT_AMX_ROWS));
        for (int64_t v = 0; v < vectors; v++)
            access_register(dot, id, r * COLUMN_TILES + v, dot_offset(dot, at, dot_i64(dot, v * DOT_AMX_BYTES)), row);
    }
}

/* Rows of a stay in L1 for all columns, while b's panel comes from L2, 32 bytes a cycle: its tiles are fetched ahead, a line for each row. */
static void fetch_tile(Dot *dot, const DotPanel *panel, TileValue *tile) {
    TileValue *ahead = dot_offset(dot, tile, dot_scale(dot, panel->step, GROUPS_AHEAD));
    for (int64_t l = 0; l < DOT_AMX_ROWS; l++)
        dot_prefetch(dot, dot_offset(dot, ahead, dot_i64(dot, l * DOT_AMX_BYTES)), TILE_CACHE_L1);
}

/* One group of k. Loads and products alternate: a product needs 16 cycles, a load 8. */
static void step(Dot *dot, const DotPanel *panel, TileValue *group, int64_t rows, int64_t vectors) {
    TileValue *a = dot_offset(dot, dot->a_panel, dot_scale(dot, group, DOT_AMX_BYTES));
    TileValue *b = dot_offset(dot, panel->pointer, dot_multiply(dot, group, panel->step));
    TileValue *a_row = dot_i64(dot, dot->panel_row * dot->element), *b_row = dot_i64(dot, DOT_AMX_BYTES);
    for (int64_t r = 0; r < rows; r++) {
        TileValue *at = dot_offset(dot, a, dot_i64(dot, r * DOT_AMX_ROWS * dot->panel_row * dot->element));
        access_register(dot, TILE_OP_AMX_LOAD, REGISTER_A + r, at, a_row);
        for (int64_t v = 0; v < vectors; v++) {
            TileValue *tile = dot_offset(dot, b, dot_i64(dot, v * DOT_AMX_TILE));
            if (r == 0) {
                access_register(dot, TILE_OP_AMX_LOAD, REGISTER_B + v, tile, b_row);
                fetch_tile(dot, panel, tile);
            }
            multiply(dot, r, v);
        }
    }
}

/* AMX leaves time for copies: rows of the next block of a go to its panel meanwhile. */
void dot_amx_kernel(Dot *dot, const DotPanel *panel, TileValue *c, TileValue *row, int64_t vectors, TileValue *kc) {
    int64_t rows = dot->block_rows / DOT_AMX_ROWS, ahead = dot->next_panel ? dot->rows_ahead : 0;
    DotRow copied[DOT_AMX_AHEAD];
    for (int64_t r = 0; r < ahead; r++) copied[r] = dot_amx_row_ahead(dot, r);
    access_block(dot, TILE_OP_AMX_LOAD, c, row, rows, vectors);
    TileValue *group = dot_for(dot, dot_i64(dot, 0), dot_amx_groups(dot, kc), dot_i64(dot, 1));
    dot_fetch_next(dot, group, dot->group);
    step(dot, panel, group, rows, vectors);
    for (int64_t r = 0; r < ahead; r++) dot_amx_copy_ahead(dot, &copied[r], group, kc);
    dot_end(dot);
    access_block(dot, TILE_OP_AMX_STORE, c, row, rows, vectors);
}

/* All registers have all rows and columns: panels and the spill block are padded. */
void dot_amx_configure(TileEmitter *emitter, TileFunc *func) {
    enum { WORDS = 8, WIDTHS = 2, ROWS = 6 };
    const uint64_t each_width = 0x0001000100010001, each_row = 0x0101010101010101;
    uint64_t words[WORDS] = {1 /* the palette */};
    words[WIDTHS] = words[WIDTHS + 1] = each_width * DOT_AMX_BYTES;
    words[ROWS] = each_row * DOT_AMX_ROWS;
    TileBuilder *front = &emitter->front;
    TileValue *config = tile_build_buffer(front, sizeof words, sizeof words);
    for (unsigned i = 0; i < WORDS; i++) {
        TileValue *at =
            i ? tile_build_ptr_add(front, config, tile_emit_i64(emitter, i * (int64_t)sizeof *words)) : config;
        tile_build_store(front, tile_emit_i64(emitter, (int64_t)words[i]), at, NULL, 0);
    }
    tile_build_op(front, TILE_OP_AMX_CONFIGURE, &config, 1, NULL, 0, NULL, 0);
    TileBuilder end = tile_builder_before(front->module, func->body.last);
    tile_build_op(&end, TILE_OP_AMX_RELEASE, NULL, 0, NULL, 0, NULL, 0);
}
