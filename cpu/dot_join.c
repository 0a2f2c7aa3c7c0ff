/* Products that are joined along k.
 *
 * A convolution, or a product whose loop takes few k at a time, adds one small product after another to the same block of
 * c: for each position of the window, for each part of the channels. A micro-kernel that loads and stores its block for a
 * few k, and panels that are packed for a few k, take longer than the multiplications. Where nothing else reads or writes
 * c in the loops around a product, its operands are packed behind those of the iterations before, and multiplied when the
 * panels are full, or in the last iteration:
 *     joined = 0
 *     for .. for .. {
 *       pack a and b behind `joined` k; joined += k
 *       if joined > depth - k's maximum, or this is the last iteration { multiply; joined = 0 }
 *     }
 * So the packing of a convolution gathers the rows of its window (im2col), and each element of c sums up in the same
 * order as before. By AMX, too, whose instruction adds a group of k to c at a time: each product begins a group of its own,
 * with zeros behind its last k. */
#include "cpu/buffers.h"
#include "cpu/dot.h"
#include "lang/ir/operands.h"

enum {
    ALIGN = 64,
    SMALLEST_GAIN = 2,
    WORD = 8,
    /* What the panels have, in words: how many k; from how many products; which of b's panels has them; which is the next to be
     * replaced; */
    JOINED = 0,
    PRODUCTS,
    CURRENT,
    NEXT,
    MISSES, /* how many times in a row no panel had what was asked for */
    WORDS,
    /* Of each of b's panels: of how many products its part is known, and each of these by ENTRY words. The last entry is of
     * all that are too many. */
    KNOWN = 0,
    ENTRIES,
    ENTRY = 4,
    MOST_KNOWN = 64,
    PANEL_WORDS = ENTRIES + (MOST_KNOWN + 1) * ENTRY,
    MOST_PANELS = 8,
    MOST_BYTES = 512 << 10 /* of all of b's panels */
};

/* ---- which loops ---- */

/* Bounds are the same in all iterations of the outermost loop, so that the last one is known. */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *outermost) {
    int64_t step;
    for (unsigned i = 0; i < 3; i++)
        if (!tile_value_outside(tile_op_operand(loop, i), outermost)) return false;
    return !loop->result_count && tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) && step > 0;
}

static bool is_fixed(const Dot *dot, const TileOp *loop) {
    const TileValue *values[] = {dot->c.pointer, dot->c.row, dot->m, dot->n};
    for (unsigned i = 0; i < 4; i++)
        if (!tile_value_outside(values[i], loop)) return false;
    return true;
}

unsigned dot_joined_loops(const Dot *dot, const TileOp *op, TileOp **loops) {
    const TileValue *root = tile_buffer_of(dot->c.pointer);
    unsigned count = 0;
    for (TileOp *loop = op->block->op; root && loop && loop->id == TILE_OP_FOR && count < DOT_JOINED;
         loop = loop->block->op) {
        bool fixed = is_fixed(dot, loop) && tile_buffer_uses(root, loop) == 1;
        for (unsigned i = 0; i < count; i++) fixed = fixed && has_fixed_bounds(loops[i], loop);
        if (!fixed || !has_fixed_bounds(loop, loop)) break;
        loops[count++] = loop;
    }
    return count;
}

/* ---- panels ---- */

static int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

/* The bytes of an element of the panels. */
static int64_t element_bytes(const Dot *dot) { return dot->amx ? dot->element : dot->bytes; }

/* How much of the panels a product takes, at most. */
static int64_t most_of_product(const Dot *dot) { return dot->amx ? dot_amx_padded(dot, dot->k_max) : dot->k_max; }

static int64_t panel_bytes(const Dot *dot, int64_t depth) {
    return (blocks(dot->m_max, dot->block_rows) * dot->block_rows + blocks(dot->n_max, dot->lanes) * dot->lanes) * depth *
           element_bytes(dot);
}

bool dot_join_choose(Dot *dot, int64_t deepest) {
    int64_t cache = dot->context->target->l2_bytes / 2;
    dot->depth = deepest;
    while (dot->depth > dot->k_max && panel_bytes(dot, dot->depth) > cache) dot->depth /= 2;
    return dot->depth >= SMALLEST_GAIN * most_of_product(dot);
}

/* Is each use of the pointer, and of those that are computed from it, the address of a store in the loop, or the product's? */
static bool is_only_stored(const TileValue *pointer, const TileOp *op, const TileOp *loop) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        const TileOp *user = use->user;
        if (user == op) continue;
        if (!tile_op_inside(user, loop)) return false;
        if (user->id == TILE_OP_PTR_ADD ? !is_only_stored(&user->results[0], op, loop)
                                        : user->id != TILE_OP_STORE || tile_op_named(user, TILE_OPERAND_ADDRESS) != pointer)
            return false;
    }
    return true;
}

bool dot_join_reads_in_place(Dot *dot, const TileOp *op, const TileOp *loop) {
    const DotOperand *a = &dot->a;
    int64_t row, column;
    if (a->scalar != dot->scalar || dot->precision == TILE_PRECISION_TF32 || tile_buffer_of(a->pointer) != a->pointer) return false;
    if (!tile_value_integer(a->row, &row) || !tile_value_integer(a->column, &column) || column != dot->bytes) return false;
    int64_t rows = blocks(dot->m_max, dot->block_rows) * dot->block_rows;
    if (row < dot->depth * dot->bytes || tile_op_integer(a->pointer->op, TILE_ATTRIBUTE_BYTES, 0) < rows * row) return false;
    if (!is_only_stored(a->pointer, op, loop)) return false;
    dot->a_panel = a->pointer;
    dot->panel_row = row / dot->bytes;
    return true;
}

/* ---- code ---- */

/* Has the body compute a behind what the panel has. */
static void move_stores(Dot *dot, TileOp *op, TileBlock *body, TileValue *joined) {
    TileValue *moved = dot_offset(dot, dot->a_panel, dot_scale(dot, joined, dot->bytes));
    for (TileUse *use = dot->a_panel->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != op && use->user != moved->op && tile_op_inside(use->user, body->op))
            tile_op_set_operand(use->user, use->index, moved);
    }
}

static TileValue *is_last(Dot *dot, TileOp *const *loops, unsigned count) {
    TileValue *last = NULL;
    for (unsigned i = 0; i < count; i++) {
        TileValue *left = dot_binary(dot, TILE_OP_SUB, tile_op_operand(loops[i], 1), loops[i]->regions[0].arguments[0]);
        TileValue *ends = dot_binary(dot, TILE_OP_LE, left, tile_op_named(loops[i], TILE_OPERAND_STEP));
        last = last ? dot_binary(dot, TILE_OP_AND, last, ends) : ends;
    }
    return last;
}

/* The panel of the rows from i on. */
static TileValue *panel_of_rows(Dot *dot, TileValue *panels, TileValue *i) {
    return dot_offset(dot, panels, dot_scale(dot, i, dot->panel_row * dot->bytes));
}

static TileValue *word(Dot *dot, TileValue *cells, int64_t index) {
    return dot_offset(dot, cells, dot_i64(dot, index * WORD));
}

static TileValue *load_word(Dot *dot, TileValue *address) {
    return tile_build_load(dot->builder, tile_emit_i64(dot->emitter, 0)->type, address, NULL, NULL, 0);
}

static void store_word(Dot *dot, TileValue *value, TileValue *address) {
    tile_build_store(dot->builder, value, address, NULL, 0);
}

/* Is b in memory that does not change while the function runs, with strides that do not either? */
static bool is_fixed_memory(const Dot *dot) {
    const TileValue *root = dot->b.pointer, *strides[] = {dot->b.row, dot->b.column};
    while (root->op && root->op->id == TILE_OP_PTR_ADD) root = tile_op_operand(root->op, 0);
    if (root->op || root->block->op) return false;
    const TileParameter *parameter = &root->block->func->parameters[root->index];
    for (unsigned i = 0; i < 2; i++)
        if (tile_value_block(strides[i])->op) return false;
    return parameter->readonly && parameter->noalias;
}

/* The bytes from the tensor's first element to b's. */
static TileValue *place_of_b(Dot *dot) {
    TileValue *bytes = dot_i64(dot, 0);
    for (const TileValue *at = dot->b.pointer; at->op; at = tile_op_operand(at->op, 0))
        bytes = dot_add(dot, bytes, tile_op_operand(at->op, 1));
    return bytes;
}

/* What is known of b's panel of this number. */
static TileValue *cells_of(Dot *dot, TileValue *cells, TileValue *number) {
    return dot_offset(dot, word(dot, cells, WORDS), dot_scale(dot, number, PANEL_WORDS * WORD));
}

/* Is this what the entry says? */
static TileValue *is_entry(Dot *dot, TileValue *entry, TileValue *const *now) {
    TileValue *all = NULL;
    for (unsigned i = 0; i < ENTRY; i++) {
        TileValue *same = dot_binary(dot, TILE_OP_EQ, load_word(dot, word(dot, entry, i)), now[i]);
        all = all ? dot_binary(dot, TILE_OP_AND, all, same) : same;
    }
    return all;
}

/* Entries that have nothing yet are nothing's: what is read from them is arbitrary. */
static TileValue *if_known(Dot *dot, TileValue *known, TileValue *same) {
    return tile_emit_select(dot->emitter, known, same, tile_emit_bits(dot->emitter, same->type, 0));
}

/* The first product chooses the panel that has it in front. If none has, the panels take turns; but if none had for as long as
 * there are panels twice, nobody comes back to them, and one that stays in the cache takes all. */
static void choose_panel(Dot *dot, TileValue *cells, int64_t panels, TileValue *const *now) {
    TileValue *zero = dot_i64(dot, 0), *found = dot_i64(dot, -1);
    dot_if(dot, dot_binary(dot, TILE_OP_EQ, load_word(dot, word(dot, cells, PRODUCTS)), zero));
    for (int64_t i = 0; i < panels; i++) {
        TileValue *number = dot_i64(dot, i), *own = cells_of(dot, cells, number);
        TileValue *some = dot_binary(dot, TILE_OP_LT, zero, load_word(dot, word(dot, own, KNOWN)));
        TileValue *same = if_known(dot, some, is_entry(dot, word(dot, own, ENTRIES), now));
        found = dot_select(dot, same, number, found);
    }
    TileValue *missing = dot_binary(dot, TILE_OP_LT, found, zero), *misses = load_word(dot, word(dot, cells, MISSES));
    TileValue *most = dot_i64(dot, 2 * panels), *more = dot_minimum(dot, dot_add(dot, misses, dot_i64(dot, 1)), most);
    store_word(dot, found, word(dot, cells, CURRENT));
    store_word(dot, dot_select(dot, missing, more, zero), word(dot, cells, MISSES));
    dot_if(dot, missing);
    TileValue *next = load_word(dot, word(dot, cells, NEXT));
    TileValue *after = dot_binary(dot, TILE_OP_AND, dot_add(dot, next, dot_i64(dot, 1)), dot_i64(dot, panels - 1));
    after = dot_select(dot, dot_binary(dot, TILE_OP_LT, misses, most), after, next);
    store_word(dot, after, word(dot, cells, NEXT));
    store_word(dot, next, word(dot, cells, CURRENT));
    store_word(dot, zero, word(dot, cells_of(dot, cells, next), KNOWN));
    dot_end(dot);
    dot_end(dot);
}

static TileValue *current_panel(Dot *dot, TileValue *cells) {
    return dot_offset(dot, dot->b_panel, dot_scale(dot, load_word(dot, word(dot, cells, CURRENT)), dot->slot_bytes));
}

/* Begins the branch in which the product's part of the panel is packed, since the panel has something else there. What is
 * behind it is not known any more. */
static void if_unknown(Dot *dot, TileValue *cells, TileValue *const *now) {
    TileValue *own = cells_of(dot, cells, load_word(dot, word(dot, cells, CURRENT)));
    TileValue *products = load_word(dot, word(dot, cells, PRODUCTS)), *most = dot_i64(dot, MOST_KNOWN);
    TileValue *slot = dot_minimum(dot, products, most);
    TileValue *entry = dot_offset(dot, word(dot, own, ENTRIES), dot_scale(dot, slot, ENTRY * WORD));
    TileValue *known = load_word(dot, word(dot, own, KNOWN)), *same = is_entry(dot, entry, now);
    same = if_known(dot, dot_binary(dot, TILE_OP_LT, products, known), same);
    store_word(dot, dot_add(dot, products, dot_i64(dot, 1)), word(dot, cells, PRODUCTS));
    dot_if(dot, dot_not(dot, same));
    for (unsigned i = 0; i < ENTRY; i++) store_word(dot, now[i], word(dot, entry, i));
    store_word(dot, dot_minimum(dot, dot_add(dot, slot, dot_i64(dot, 1)), most), word(dot, own, KNOWN));
}

/* Programs that follow one another mostly multiply the same few b in turn, such as the weights of a convolution and its
 * groups: it is packed only where no panel has it. */
static void pack_b(Dot *dot, TileValue *cells, int64_t count, TileValue *joined) {
    TileValue *zero = dot_i64(dot, 0), *panels = dot->b_panel;
    if (count) {
        TileValue *now[ENTRY] = {place_of_b(dot), joined, dot->k, dot->n};
        if (count > 1) choose_panel(dot, cells, count, now);
        if_unknown(dot, cells, now);
    }
    int64_t group = dot->block_vectors * DOT_AMX_TILE;
    TileValue *row = dot->amx ? dot_i64(dot, group / dot->group) : dot_vector_bytes(dot, dot->block_vectors);
    dot->b_panel = dot_offset(dot, current_panel(dot, cells), dot_multiply(dot, joined, row));
    if (dot->amx)
        dot_amx_pack_b(dot, zero, dot->n, zero, dot->k);
    else
        dot_pack_b(dot, zero, dot->n, zero, dot->k);
    dot->b_panel = panels;
    if (count) dot_end(dot);
}

static void pack_a(Dot *dot, TileValue *joined) {
    TileValue *zero = dot_i64(dot, 0), *a_panels = dot->a_panel;
    if (dot->a.pointer == a_panels) return;
    TileValue *a_column = dot_offset(dot, a_panels, dot_scale(dot, joined, element_bytes(dot)));
    if (dot->amx) {
        TileValue *rows = dot_add(dot, dot->m, dot_i64(dot, DOT_AMX_ROWS - 1)), *step = dot_i64(dot, DOT_AMX_ROWS);
        rows = dot_multiply(dot, dot_binary(dot, TILE_OP_DIV, rows, step), step);
        dot->a_panel = a_column;
        dot_amx_pack_a(dot, zero, zero, rows, zero, dot->k);
        dot->a_panel = a_panels;
        return;
    }
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows));
    dot->a_panel = panel_of_rows(dot, a_column, i);
    dot_pack_a(dot, i, zero, dot->k);
    dot_end(dot);
    dot->a_panel = a_panels;
}

/* Clears the rows of the last block that a does not have: stale values there might be denormal, which makes multiplications
 * a hundred times slower. */
static void clear_rows(Dot *dot, TileValue *kc) {
    TileValue *zero = tile_emit_bits(dot->emitter, dot_vector(dot, dot->scalar), 0);
    TileValue *rows = dot_i64(dot, dot->block_rows), *rest = dot_binary(dot, TILE_OP_REM, dot->m, rows);
    TileValue *missing = dot_select(dot, dot_binary(dot, TILE_OP_EQ, rest, dot_i64(dot, 0)), dot->m,
                                    dot_add(dot, dot_binary(dot, TILE_OP_SUB, dot->m, rest), rows));
    TileValue *row = panel_of_rows(dot, dot->a_panel, dot_for(dot, dot->m, missing, dot_i64(dot, 1)));
    TileValue *k = dot_for(dot, dot_i64(dot, 0), kc, dot_lanes(dot, 1));
    tile_build_store(dot->builder, zero, dot_offset(dot, row, dot_scale(dot, k, dot->bytes)), NULL, 0);
    dot_end(dot);
    dot_end(dot);
}

static void multiply_panels(Dot *dot, TileValue *kc) {
    TileValue *zero = dot_i64(dot, 0), *a_panels = dot->a_panel;
    if (dot->a.pointer == a_panels) clear_rows(dot, kc);
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows));
    dot->a_panel = panel_of_rows(dot, a_panels, i);
    TileValue *j = dot_for(dot, zero, dot->n, dot->block_columns);
    DotPanel panel = {dot_offset(dot, dot->b_panel, dot_scale(dot, j, dot->depth * dot->bytes)),
                      dot_vector_bytes(dot, dot->block_vectors), false};
    dot_block(dot, &panel, i, j, kc);
    dot_end(dot);
    dot_end(dot);
    dot->a_panel = a_panels;
}

static void multiply(Dot *dot, TileValue *cells, TileValue *kc) {
    TileValue *panels = dot->b_panel;
    dot->b_panel = current_panel(dot, cells);
    if (dot->amx)
        dot_amx_multiply(dot, kc);
    else
        multiply_panels(dot, kc);
    dot->b_panel = panels;
}

/* The panels have nothing. */
static void clear(Dot *dot, TileValue *cells) {
    store_word(dot, dot_i64(dot, 0), word(dot, cells, JOINED));
    store_word(dot, dot_i64(dot, 0), word(dot, cells, PRODUCTS));
}

/* At the front of the function, where nothing is known of b. */
static TileValue *create_cells(Dot *dot, int64_t panels) {
    TileBuilder *front = &dot->emitter->front;
    TileValue *cells = tile_build_buffer(front, (WORDS + panels * PANEL_WORDS) * WORD, ALIGN);
    int64_t cleared[3 + MOST_PANELS] = {CURRENT, NEXT, MISSES};
    for (int64_t i = 0; i < panels; i++) cleared[3 + i] = WORDS + i * PANEL_WORDS + KNOWN;
    for (int64_t i = 0; i < 3 + panels; i++)
        tile_build_store(front, tile_build_i64(front, 0),
                         tile_build_ptr_add(front, cells, tile_build_i64(front, cleared[i] * WORD)), NULL, 0);
    return cells;
}

/* How many panels of b there are; 0: one, of which nothing can be known. */
static int64_t count_panels(const Dot *dot) {
    int64_t count = is_fixed_memory(dot);
    while (count && count < MOST_PANELS && 2 * count * dot->slot_bytes <= MOST_BYTES) count *= 2;
    return count;
}

void dot_join(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count) {
    int64_t panels = count_panels(dot);
    dot->b_panel = tile_build_buffer(&dot->emitter->front, (panels ? panels : 1) * dot->slot_bytes, ALIGN);
    TileValue *cells = create_cells(dot, panels);
    tile_emit_before(dot->emitter, loops[count - 1]);
    clear(dot, cells);
    TileBlock *body = &loops[0]->regions[0];
    tile_emit_before(dot->emitter, body->first);
    TileValue *joined = load_word(dot, word(dot, cells, JOINED));
    if (dot->a.pointer == dot->a_panel) move_stores(dot, op, body, joined);
    tile_emit_before(dot->emitter, op);
    pack_b(dot, cells, panels, joined);
    pack_a(dot, joined);
    TileValue *k = dot->amx ? dot_scale(dot, dot_amx_groups(dot, dot->k), dot->group) : dot->k;
    TileValue *total = dot_add(dot, joined, k);
    TileValue *full = dot_binary(dot, TILE_OP_LT, dot_i64(dot, dot->depth - most_of_product(dot)), total);
    store_word(dot, total, word(dot, cells, JOINED));
    dot_if(dot, dot_binary(dot, TILE_OP_OR, full, is_last(dot, loops, count)));
    multiply(dot, cells, total);
    clear(dot, cells);
    dot_end(dot);
}
