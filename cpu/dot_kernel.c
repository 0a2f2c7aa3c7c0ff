/* The micro-kernel: a block of c stays in registers throughout the loop over k; each k loads the vectors of one row
 * of b's panel, and broadcasts one element of each row of a's. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

enum { BLOCK_LIMIT = 32 }; /* accumulators */

static TileValue *multiply_add(Dot *dot, TileValue *x, TileValue *y, TileValue *sum) {
    if (dot->words) return dot_words_multiply(dot, x, y, sum);
    if (tile_scalar_is_float(dot->scalar)) return tile_build_ternary(dot->builder, TILE_OP_FMA, x, y, sum);
    return tile_emit_binary(dot->emitter, TILE_OP_ADD, sum, tile_emit_binary(dot->emitter, TILE_OP_MUL, x, y));
}

enum {
    WIDEST = 8,
    WIDE_REGISTER = 64, /* bytes */
    LINE = 64,
    FEWEST_FETCHED = 5, /* rows: fewer are as many streams as the hardware follows */
    MOST_FEW = 2, /* micro-kernels for few rows */
    FEWEST_HALVED = 6 /* rows of a block, of which half are worth a micro-kernel of their own */
};

/* The rows of other micro-kernels, for what is left of c's rows, the fewest first; how many there are. Half of the block's, since what is left of extents
 * that nothing is known of is mostly that or less, or more than the next; and a power of two from there on, since that is what is left of
 * extents that are multiples of powers of two. */
static unsigned choose_few(const Dot *dot, int64_t *few) {
    int64_t half = dot->block_rows / 2, power = 1, m;
    if (dot->block_rows < FEWEST_HALVED || (tile_value_integer(dot->m, &m) && m % dot->block_rows == 0)) return 0;
    while (power < half) power *= 2;
    few[0] = half;
    few[1] = power;
    return power == half || power == dot->block_rows ? 1 : 2;
}

void dot_split_rows(Dot *dot) {
    int64_t few[MOST_FEW], block = dot->block_rows;
    unsigned count = dot->spill || dot->a_columns ? 0 : choose_few(dot, few);
    int64_t most = count ? few[count - 1] : 0;
    dot->split = dot->rows_end = NULL;
    if (2 * most <= block) return;
    TileValue *rest = dot_binary(dot, TILE_OP_REM, dot->m, dot_i64(dot, block)), *last = dot_binary(dot, TILE_OP_SUB, dot->m, rest), *zero = dot_i64(dot, 0);
    TileValue *two = dot_binary(dot, TILE_OP_AND, dot_binary(dot, TILE_OP_LT, zero, rest), dot_binary(dot, TILE_OP_LE, rest, dot_i64(dot, 2 * most - block)));
    two = dot_binary(dot, TILE_OP_AND, two, dot_binary(dot, TILE_OP_LT, zero, last));
    dot->split = dot_binary(dot, TILE_OP_SUB, last, dot_select(dot, two, dot_i64(dot, block - most), zero));
}

TileValue *dot_begin_rows(Dot *dot, TileValue *i) {
    if (!dot->split) return i;
    i = dot_minimum(dot, i, dot->split);
    dot->rows_end = dot_select(dot, dot_binary(dot, TILE_OP_LT, i, dot->split), dot->split, dot->m);
    return i;
}

/* A block of c, which begins at `pointer`. */
typedef struct Block {
    TileValue *pointer, *row;
    TileValue *out; /* the same block of the tensor, where sums go there */
    int64_t rows, vectors; /* of a full block, or of a smaller one */
    /* Of a partial block: the rows and columns that c has. Rows past them are its last row once more; since rows are stored
     * from the last one upward, the true one is stored last. */
    TileValue *last_row, *columns;
} Block;

/* Pointers to the vectors of a block of c. */
static void build_block_pointers(Dot *dot, const Block *c, TileValue **pointers) {
    TileValue *block = c->pointer;
    for (int64_t r = 0; r < c->rows; r++) {
        if (c->last_row) {
            TileValue *row = dot_minimum(dot, dot_i64(dot, r), c->last_row);
            block = dot_offset(dot, c->pointer, dot_multiply(dot, row, c->row));
        }
        for (int64_t v = 0; v < c->vectors; v++) *pointers++ = dot_offset(dot, block, dot_vector_bytes(dot, v));
        if (!c->last_row) block = dot_offset(dot, block, c->row);
    }
}

/* Masks of the block's columns, by vector; NULL: all of them exist. */
static void build_masks(Dot *dot, const Block *c, TileValue **masks) {
    for (int64_t v = 0; v < c->vectors; v++)
        masks[v] = c->columns ? dot_mask(dot, dot_lanes(dot, v), c->columns) : NULL;
}

/* What the steps that follow read: a row of b's panel some steps ahead, and of a's rows in turn the line behind the one that the step reads. Both come from L2,
 * or b from behind it, where another thread of the core has taken its part of L1, or panels are larger: then steps wait for what nobody has asked for in time. */
static void fetch_ahead(Dot *dot, const DotPanel *panel, const Block *c, TileValue *k, TileValue *row) {
    if (panel->in_place || dot->scale) return;
    TileValue *ahead = dot_offset(dot, row, panel->ahead ? panel->ahead : dot_i64(dot, DOT_PANEL_AHEAD));
    for (int64_t bytes = 0; bytes < c->vectors * dot->lanes * dot->bytes; bytes += LINE)
        dot_prefetch(dot, dot_offset(dot, ahead, dot_i64(dot, bytes)), TILE_CACHE_L1);
    int64_t steps = LINE / dot->bytes, each = (c->rows + steps - 1) / steps;
    if (c->rows < FEWEST_FETCHED || dot->a_columns) return;
    TileValue *within = dot_binary(dot, TILE_OP_AND, k, dot_i64(dot, steps - 1));
    int64_t row_bytes = dot->panel_row * (dot->words ? dot->element : dot->bytes);
    TileValue *line = dot_offset(dot, dot_offset(dot, dot->a_panel, dot_scale(dot, k, dot->bytes)), dot_scale(dot, within, each * row_bytes - dot->bytes));
    for (int64_t r = 0; r < each; r++) dot_prefetch(dot, dot_offset(dot, line, dot_i64(dot, r * row_bytes + LINE)), TILE_CACHE_L1);
}

/* Adds the products of one k, or of a word of them, to the accumulators. */
static void step(Dot *dot, const DotPanel *panel, const Block *c, TileValue *k, TileValue *const *sums,
                 TileValue **next) {
    int64_t vectors = c->vectors;
    TileScalar element_type = dot->words ? TILE_U32 : dot->scalar;
    const TileType *vector = dot_vector(dot, element_type), *scalar = tile_emit_i64(dot->emitter, 0)->type;
    scalar = tile_type_with_scalar(dot->builder->module->context, scalar, element_type);
    int64_t row_bytes = dot->a_columns ? dot->bytes : dot->panel_row * (dot->words ? dot->element : dot->bytes);
    TileValue *b[8];
    TileValue *row = dot_offset(dot, panel->pointer, dot_multiply(dot, k, panel->step));
    for (int64_t v = 0; v < vectors; v++) {
        TileValue *at = dot_offset(dot, row, dot_vector_bytes(dot, v));
        /* Prefetches the row for the next block of columns: there are too many rows for the hardware's prefetcher. */
        if (panel->in_place) dot_prefetch(dot, dot_offset(dot, at, dot_vector_bytes(dot, dot->block_vectors)), TILE_CACHE_L1);
        b[v] = tile_build_load(dot->builder, vector, at, NULL, NULL, panel->in_place || panel->ahead || dot->b_row ? 0 : dot->lanes * dot->bytes);
    }
    fetch_ahead(dot, panel, c, k, row);
    dot_fetch_next(dot, k, dot->words ? DOT_AMX_WORD / dot->element : 1);
    TileValue *each = dot->a_step ? dot->a_step : dot_i64(dot, dot->a_columns ? dot->block_rows * dot->bytes : dot->bytes);
    TileValue *column = dot_offset(dot, dot->a_panel, dot_multiply(dot, k, each));
    for (int64_t r = 0; r < c->rows; r++) {
        TileValue *at = dot_offset(dot, column, dot_i64(dot, r * row_bytes));
        TileValue *element = tile_build_load(dot->builder, scalar, at, NULL, NULL, 0);
        TileValue *a = tile_build_splat(dot->builder, element, vector);
        for (int64_t v = 0; v < vectors; v++) *next++ = multiply_add(dot, a, b[v], *sums++);
    }
}

/* Bytes of b have 128 added, so each sum gets 128 times that of its row of a too much. */
static void subtract_row_sums(Dot *dot, TileValue **sums, unsigned count, unsigned vectors) {
    const TileType *type = dot_vector(dot, dot->scalar), *scalar = tile_emit_i64(dot->emitter, 0)->type;
    scalar = tile_type_with_scalar(dot->builder->module->context, scalar, dot->scalar);
    TileValue *row = NULL;
    for (unsigned i = 0; i < count; i++) {
        TileValue *at = dot_offset(dot, dot->row_sums, dot_i64(dot, i / vectors * dot->bytes));
        if (i % vectors == 0) row = tile_build_splat(dot->builder, tile_build_load(dot->builder, scalar, at, NULL, NULL, 0), type);
        sums[i] = tile_emit_binary(dot->emitter, TILE_OP_SUB, sums[i], row);
    }
}

/* Ops are inserted into the region. */
static TileBuilder enter_region(Dot *dot, TileOp *op, unsigned region) {
    TileBuilder outer = *dot->builder;
    *dot->builder = tile_builder_at_end(outer.module, &op->regions[region]);
    dot->builder->location = outer.location;
    return outer;
}

static void leave_region(Dot *dot, TileBuilder outer) {
    if (!outer.error) outer.error = dot->builder->error;
    *dot->builder = outer;
}

static void load_sums(Dot *dot, const Block *block, TileValue *const *pointers, TileValue *const *masks, TileValue *zero, TileValue **sums) {
    const TileType *type = dot_vector(dot, dot->scalar);
    for (int64_t i = 0; i < block->rows * block->vectors; i++)
        sums[i] = tile_build_load(dot->builder, type, pointers[i], masks[i % block->vectors], zero, 0);
}

/* What is in c, or zeros in the first iteration of a loop that begins with them. */
static void begin_sums(Dot *dot, const Block *block, TileValue *const *pointers, TileValue *const *masks, TileValue *zero, TileValue **sums) {
    if (!dot->first && !dot->begins) {
        load_sums(dot, block, pointers, masks, zero, sums);
        return;
    }
    unsigned count = (unsigned)(block->rows * block->vectors);
    const TileType *types[BLOCK_LIMIT];
    TileValue *zeros[BLOCK_LIMIT], *none = tile_emit_bits(dot->emitter, dot_vector(dot, dot->scalar), 0);
    for (unsigned i = 0; i < count; i++) {
        types[i] = none->type;
        zeros[i] = none;
    }
    if (!dot->first) {
        for (unsigned i = 0; i < count; i++) sums[i] = none;
        return;
    }
    TileOp *branch = tile_build_if(dot->builder, dot->first, types, count);
    TileBuilder outer = enter_region(dot, branch, 0);
    tile_build_end(dot->builder, TILE_OP_YIELD, zeros, count);
    leave_region(dot, outer);
    outer = enter_region(dot, branch, 1);
    load_sums(dot, block, pointers, masks, zero, sums);
    tile_build_end(dot->builder, TILE_OP_YIELD, sums, count);
    leave_region(dot, outer);
    for (unsigned i = 0; i < count; i++) sums[i] = tile_op_result(branch, i);
}

static void store_sums(Dot *dot, const Block *block, TileValue *const *pointers, TileValue *const *masks, const TileOp *loop) {
    unsigned vectors = (unsigned)block->vectors;
    for (unsigned row = (unsigned)block->rows; row-- > 0;)
        for (unsigned i = row * vectors; i < (row + 1) * vectors; i++)
            tile_build_store(dot->builder, tile_op_result(loop, i), pointers[i], masks[i % vectors], 0);
}

/* To c, or to the tensor in the last iteration of a loop whose sums go there. */
static void end_sums(Dot *dot, const Block *block, TileValue *const *pointers, TileValue *const *masks, const TileOp *loop) {
    if (!dot->last) {
        store_sums(dot, block, pointers, masks, loop);
        return;
    }
    TileValue *to[BLOCK_LIMIT];
    Block out = *block;
    out.pointer = block->out;
    out.row = dot->out_row;
    TileOp *branch = tile_build_if(dot->builder, dot->last, NULL, 0);
    for (unsigned region = 0; region < 2; region++) {
        TileBuilder outer = enter_region(dot, branch, region);
        if (region == 0) build_block_pointers(dot, &out, to);
        store_sums(dot, block, region ? pointers : to, masks, loop);
        tile_build_end(dot->builder, TILE_OP_YIELD, NULL, 0);
        leave_region(dot, outer);
    }
}

static void run_kernel(Dot *dot, const DotPanel *panel, const Block *block, TileValue *kc) {
    if (dot->amx) {
        dot_amx_kernel(dot, panel, block->pointer, block->row, block->vectors, kc);
        return;
    }
    TileValue *pointers[BLOCK_LIMIT], *sums[BLOCK_LIMIT], *next[BLOCK_LIMIT], *masks[WIDEST];
    unsigned vectors = (unsigned)block->vectors, count = (unsigned)block->rows * vectors;
    const TileType *type = dot_vector(dot, dot->scalar);
    TileValue *zero = block->columns ? tile_emit_bits(dot->emitter, type, 0) : NULL;
    build_block_pointers(dot, block, pointers);
    build_masks(dot, block, masks);
    begin_sums(dot, block, pointers, masks, zero, sums);
    if (dot->row_sums) subtract_row_sums(dot, sums, count, vectors);
    if (dot->words) kc = dot_amx_word(dot, kc);
    TileOp *loop = tile_build_for(dot->builder, dot_i64(dot, 0), kc, dot_i64(dot, 1), sums, count);
    TileBuilder outer = *dot->builder;
    *dot->builder = tile_builder_at_end(outer.module, &loop->regions[0]);
    dot->builder->location = outer.location;
    step(dot, panel, block, loop->regions[0].arguments[0], loop->regions[0].arguments + 1, next);
    tile_build_end(dot->builder, TILE_OP_YIELD, next, count);
    if (!outer.error) outer.error = dot->builder->error;
    *dot->builder = outer;
    end_sums(dot, block, pointers, masks, loop);
}

/* ---- partial blocks ---- */

/* A partial block: its rows and columns of c are copied to the spill block and back. */
typedef struct Edge {
    TileValue *block;          /* in c */
    TileValue *out;            /* and in the tensor, where sums go there */
    TileValue *rows, *columns; /* of c in the block; columns NULL: all */
    bool whole;                /* columns are those of a block, or of a narrow one: no vector needs a mask */
} Edge;

/* So many vectors exist; to the spill block come zeros for the others. */
static void copy_row(Dot *dot, const Edge *edge, int64_t vectors, TileValue *inside, TileValue *outside, bool back) {
    const TileType *type = dot_vector(dot, dot->scalar);
    for (int64_t v = 0; v < (back ? vectors : dot->block_vectors); v++) {
        TileValue *bytes = dot_vector_bytes(dot, v);
        TileValue *mask = edge->columns && !edge->whole ? dot_mask(dot, dot_lanes(dot, v), edge->columns) : NULL;
        TileValue *in = dot_offset(dot, inside, bytes), *out = dot_offset(dot, outside, bytes);
        if (back) {
            tile_build_store(dot->builder, tile_build_load(dot->builder, type, out, NULL, NULL, 0), in, mask, 0);
        } else {
            TileValue *zero = mask || v >= vectors ? tile_emit_bits(dot->emitter, type, 0) : NULL;
            TileValue *value = v < vectors ? tile_build_load(dot->builder, type, in, mask, zero, 0) : zero;
            tile_build_store(dot->builder, value, out, NULL, 0);
        }
    }
}

static void copy_rows(Dot *dot, const Edge *edge, int64_t vectors, bool back) {
    TileValue *row = dot_for(dot, dot_i64(dot, 0), back ? edge->rows : dot_i64(dot, dot->block_rows), dot_i64(dot, 1));
    TileValue *source = row;
    if (!back) source = dot_minimum(dot, row, dot_binary(dot, TILE_OP_SUB, edge->rows, dot_i64(dot, 1)));
    TileValue *inside = dot_offset(dot, edge->block, dot_multiply(dot, source, dot->c.row));
    TileValue *outside = dot_offset(dot, dot->spill, dot_multiply(dot, row, dot_vector_bytes(dot, dot->block_vectors)));
    copy_row(dot, edge, vectors, inside, outside, back);
    dot_end(dot);
}

/* The copy to the spill block fills all of its rows, repeating c's last one. */
static void copy_block(Dot *dot, const Edge *edge, bool back) {
    if (edge->whole) {
        dot_if(dot, dot_is_narrow(dot, edge->columns));
        copy_rows(dot, edge, dot->narrow_vectors, back);
        dot_else(dot);
    }
    copy_rows(dot, edge, dot->block_vectors, back);
    if (edge->whole) dot_end(dot);
}

/* Runs the micro-kernel on a full block of c, or for a partial one, on the spill block. */
static void run_full_or_partial(Dot *dot, const DotPanel *panel, const Edge *edge, TileValue *partial, TileValue *kc) {
    dot_if(dot, partial);
    copy_block(dot, edge, false);
    dot_end(dot);
    Block block = {.pointer = dot_select(dot, partial, dot->spill, edge->block),
                   .row = dot_select(dot, partial, dot_vector_bytes(dot, dot->block_vectors), dot->c.row),
                   .rows = dot->block_rows,
                   .vectors = dot->block_vectors};
    run_kernel(dot, panel, &block, kc);
    dot_if(dot, partial);
    copy_block(dot, edge, true);
    dot_end(dot);
}

/* Runs the micro-kernel on the rows and columns that there are of a partial block, at most so many. */
static void run_masked(Dot *dot, const DotPanel *panel, const Edge *edge, int64_t rows, int64_t vectors, TileValue *kc) {
    Block block = {.pointer = edge->block, .row = dot->c.row, .out = edge->out, .rows = rows, .vectors = vectors};
    if (!edge->whole) block.columns = edge->columns;
    if (rows > 1) block.last_row = dot_binary(dot, TILE_OP_SUB, edge->rows, dot_i64(dot, 1));
    run_kernel(dot, panel, &block, kc);
}

/* Where half a register holds all columns, vectors have half the lanes: processors that compute wide vectors in two halves take half the time, and no
 * access crosses a line of the cache for lanes that there are not. */
static bool has_half_registers(const Dot *dot, int64_t vectors) {
    return vectors == 1 && !dot->amx && !dot->scale && dot->lanes * dot->bytes == WIDE_REGISTER;
}

static void run_masked_or_half(Dot *dot, const DotPanel *panel, const Edge *edge, int64_t rows, int64_t vectors, TileValue *kc) {
    bool half = edge->columns && !edge->whole && !panel->in_place && has_half_registers(dot, vectors);
    if (half) {
        dot_if(dot, dot_binary(dot, TILE_OP_LE, edge->columns, dot_i64(dot, dot->lanes / 2)));
        dot->lanes /= 2;
        run_masked(dot, panel, edge, rows, vectors, kc);
        dot->lanes *= 2;
        dot_else(dot);
    }
    run_masked(dot, panel, edge, rows, vectors, kc);
    if (half) dot_end(dot);
}

/* Few columns have a micro-kernel of half the width. */
static void run_narrow_or_wide(Dot *dot, const DotPanel *panel, const Edge *edge, int64_t rows, TileValue *kc) {
    int64_t narrow = dot->narrow_vectors ? dot->narrow_vectors : dot->block_vectors / 2;
    bool has_narrow = edge->columns && narrow && (dot->narrow_vectors || !panel->in_place);
    if (has_narrow) {
        dot_if(dot, dot_binary(dot, TILE_OP_LE, edge->columns, dot_lanes(dot, narrow)));
        run_masked_or_half(dot, panel, edge, rows, narrow, kc);
        dot_else(dot);
    }
    run_masked_or_half(dot, panel, edge, rows, dot->block_vectors, kc);
    if (has_narrow) dot_end(dot);
}

/* Few rows of all columns of a block. */
static void run_whole_columns(Dot *dot, const DotPanel *panel, const Edge *edge, int64_t rows, TileValue *kc) {
    Edge whole = *edge;
    whole.columns = NULL;
    run_masked(dot, panel, &whole, rows, dot->block_vectors, kc);
}

/* A full block, or a partial one in place, with other micro-kernels for few rows. */
static void run_full_or_masked(Dot *dot, const DotPanel *panel, const Edge *edge, TileValue *partial, TileValue *kc) {
    int64_t few[MOST_FEW];
    unsigned count = choose_few(dot, few);
    dot_if(dot, partial);
    for (unsigned i = 0; i < count; i++) {
        bool last = i + 1 == count; /* few columns as well as few rows are left to it: micro-kernels take time to compile */
        TileValue *fits = dot_binary(dot, TILE_OP_LE, edge->rows, dot_i64(dot, few[i]));
        if (!last && edge->columns) fits = dot_binary(dot, TILE_OP_AND, fits, dot_binary(dot, TILE_OP_LE, dot->block_columns, edge->columns));
        dot_if(dot, fits);
        if (last)
            run_narrow_or_wide(dot, panel, edge, few[i], kc);
        else
            run_whole_columns(dot, panel, edge, few[i], kc);
        dot_else(dot);
    }
    run_narrow_or_wide(dot, panel, edge, dot->block_rows, kc);
    for (unsigned i = 0; i < count; i++) dot_end(dot);
    dot_else(dot);
    Block block = {.pointer = edge->block, .row = dot->c.row, .out = edge->out, .rows = dot->block_rows, .vectors = dot->block_vectors};
    run_kernel(dot, panel, &block, kc);
    dot_end(dot);
}

TileValue *dot_is_narrow(Dot *dot, TileValue *columns) {
    return dot_binary(dot, TILE_OP_EQ, columns, dot_lanes(dot, dot->narrow_vectors));
}

/* Is the number of columns known, and one of whole blocks, but for so many vectors? */
static bool has_columns_of_blocks(const Dot *dot, int64_t rest) {
    int64_t columns;
    return !dot->scale && tile_value_integer(dot->n, &columns) &&
           columns % (dot->block_vectors * dot->lanes) == rest * dot->lanes;
}

static void build_block(Dot *dot, const DotPanel *panel, TileValue *i, TileValue *j, TileValue *kc) {
    Edge edge = {.rows = dot_binary(dot, TILE_OP_SUB, dot->rows_end ? dot->rows_end : dot->m, i)};
    TileValue *few_rows = dot_binary(dot, TILE_OP_LT, edge.rows, dot_i64(dot, dot->block_rows)), *partial = few_rows;
    if (!has_columns_of_blocks(dot, 0)) { /* else only rows may be few */
        edge.whole = dot->narrow_vectors && has_columns_of_blocks(dot, dot->narrow_vectors);
        edge.columns = dot_binary(dot, TILE_OP_SUB, dot->n, j);
        partial = dot_binary(dot, TILE_OP_OR, few_rows, dot_binary(dot, TILE_OP_LT, edge.columns, dot->block_columns));
    }
    edge.rows = dot_minimum(dot, edge.rows, dot_i64(dot, dot->block_rows));
    edge.block = dot_offset(dot, dot->c.pointer, dot_multiply(dot, i, dot->c.row));
    edge.block = dot_offset(dot, edge.block, dot_scale(dot, j, dot->bytes));
    if (dot->finish.rows) {
        edge.out = dot_finish_part(dot, j);
    } else if (dot->last) {
        edge.out = dot_offset(dot, dot->out, dot_multiply(dot, i, dot->out_row));
        edge.out = dot_offset(dot, edge.out, dot_scale(dot, j, dot->bytes));
    }
    if (!dot->spill) {
        run_full_or_masked(dot, panel, &edge, partial, kc);
        if (dot->finish.rows) dot_finish_block(dot, i, j);
        return;
    }
    if (dot->narrow_vectors) {
        TileValue *all_rows = dot_not(dot, few_rows);
        dot_if(dot, dot_binary(dot, TILE_OP_AND, all_rows, dot_is_narrow(dot, edge.columns)));
        Block block = {.pointer = edge.block, .row = dot->c.row, .rows = dot->block_rows, .vectors = dot->narrow_vectors};
        run_kernel(dot, panel, &block, kc);
        dot_else(dot);
    }
    run_full_or_partial(dot, panel, &edge, partial, kc);
    if (dot->narrow_vectors) dot_end(dot);
}

/* By AMX, the left half of a block, where c has no more columns. */
static void build_half(Dot *dot, const DotPanel *panel, TileValue *i, TileValue *j, TileValue *kc) {
    int64_t vectors = dot->block_vectors, narrow = dot->narrow_vectors;
    TileValue *columns = dot->block_columns;
    dot->block_vectors = vectors / 2;
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
    dot->narrow_vectors = 0;
    build_block(dot, panel, i, j, kc);
    dot->block_vectors = vectors;
    dot->block_columns = columns;
    dot->narrow_vectors = narrow;
}

void dot_block(Dot *dot, const DotPanel *panel, TileValue *i, TileValue *j, TileValue *kc) {
    if (!dot->amx || dot->block_vectors == 1) {
        build_block(dot, panel, i, j, kc);
        return;
    }
    TileValue *left = dot_binary(dot, TILE_OP_SUB, dot->n, j), *half = dot_lanes(dot, dot->block_vectors / 2);
    dot_if(dot, dot_binary(dot, TILE_OP_LE, left, half));
    build_half(dot, panel, i, j, kc);
    dot_else(dot);
    build_block(dot, panel, i, j, kc);
    dot_end(dot);
}
