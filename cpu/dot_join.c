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
 * order as before. By AMX, too, whose instruction adds a group of k to c at a time, word by word: each product begins a word of
 * its own, with zeros behind its last k, and the last group is filled with zeros before it is multiplied. */
#include "cpu/buffers.h"
#include "cpu/dot.h"
#include "cpu/panel.h"
#include "lang/ir/operands.h"

enum {
    ALIGN = 64,
    SMALLEST_GAIN = 2,
    WORD = 8,
    ENTRY = 4, /* words that say which product a part of a panel is of */
    /* What is known of an operand's panels, in words: how many products they have that are multiplied next; in which panel
     * those are; which panel is the next to be replaced; */
    PRODUCTS = 0,
    CURRENT,
    NEXT,
    MISSES, /* how many times in a row no panel had what was asked for */
    TURNS,  /* how many panels take turns: few at first, all where one is asked for again behind more than these */
    SINCE,  /* how many panels were asked for since the one that is remembered; below 0: none is */
    REMEMBERED, /* an entry, of what no panel had */
    WORDS = REMEMBERED + ENTRY,
    /* Of each panel: of how many products its part is known, and each of these by ENTRY words. The last entry is of
     * all that are too many. */
    KNOWN = 0,
    ENTRIES,
    MOST_KNOWN = 64,
    PANEL_WORDS = ENTRIES + (MOST_KNOWN + 1) * ENTRY,
    MOST_PANELS = 32,
    MOST_BYTES = 4 << 20 /* of them: to read them from the cache behind L2 is faster than to pack them again */
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
static int64_t element_bytes(const Dot *dot) { return dot->words ? dot->element : dot->bytes; }

/* How much of the panels a product takes, at most. */
static int64_t most_of_product(const Dot *dot) {
    int64_t unit = dot->words ? DOT_AMX_WORD / dot->element : 1;
    return blocks(dot->k_max, unit) * unit;
}

/* How many k the panels take before they are multiplied. */
static int64_t capacity(const Dot *dot) { return dot->words ? dot->depth - dot->group : dot->depth; }

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

/* Is each use of the pointer, and of those that are computed from it, the address of a store in the loop (NULL: there are
 * none), or the product's? */
static bool is_only_stored(const TileValue *pointer, const TileOp *op, const TileOp *loop) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        const TileOp *user = use->user, *within = loop && tile_op_inside(user, loop) ? loop : NULL;
        bool stores = user->id == TILE_OP_STORE && tile_op_named(user, TILE_OPERAND_ADDRESS) == pointer && within;
        bool moves = user->id == TILE_OP_PTR_ADD && is_only_stored(&user->results[0], op, within);
        if (user != op && !stores && !moves) return false;
    }
    return true;
}

/* Does the operand lie in a buffer as a panel would: with elements of the panel's type, side by side, in rows of a known size? */
static bool is_panel(const Dot *dot, const DotOperand *operand, const TileValue **root, int64_t *row) {
    int64_t column;
    *root = tile_buffer_of(operand->pointer);
    if ((operand->scalar != dot->scalar && !dot->words) || dot->precision == TILE_PRECISION_TF32 || !*root) return false;
    return tile_value_integer(operand->row, row) && tile_value_integer(operand->column, &column) && column == element_bytes(dot);
}

/* Rows of a may begin behind the first that the buffer has, if it is the same row in all iterations. */
bool dot_join_reads_in_place(Dot *dot, const TileOp *op, TileOp *const *loops, unsigned count) {
    const DotOperand *a = &dot->a;
    const TileValue *root;
    int64_t row;
    if (!is_panel(dot, a, &root, &row)) return false;
    int64_t rows = dot->m_max + (dot->words ? DOT_AMX_ROWS : dot->block_rows), bytes = element_bytes(dot);
    if (row < dot->depth * bytes || tile_op_integer(root->op, TILE_ATTRIBUTE_BYTES, 0) < rows * row) return false;
    if (!tile_value_outside(a->pointer, loops[count - 1]) || !is_only_stored(root, op, loops[0])) return false;
    dot->a_panel = a->pointer;
    dot->panel_row = row / bytes;
    return true;
}

bool dot_join_reads_b_in_place(Dot *dot, const TileOp *op, TileOp *const *loops, unsigned count) {
    const DotOperand *b = &dot->b;
    const TileValue *root;
    int64_t row;
    if (!is_panel(dot, b, &root, &row)) return false;
    int64_t bytes = tile_op_integer(root->op, TILE_ATTRIBUTE_BYTES, 0) - CPU_PANEL_TAIL_BYTES;
    if (row < dot->n_max * dot->bytes || bytes < dot->depth * row) return false;
    if (!tile_value_outside(b->pointer, loops[count - 1]) || !is_only_stored(root, op, loops[0])) return false;
    dot->b_panel = b->pointer;
    dot->b_row = row;
    return true;
}

/* ---- code ---- */

/* Has the body compute the operand behind what its panel has. */
static void move_stores(Dot *dot, TileValue *panel, TileBlock *body, TileValue *bytes) {
    TileValue *root = &tile_buffer_of(panel)->op->results[0], *moved = dot_offset(dot, root, bytes);
    for (TileUse *use = root->first_use, *next; use; use = next) {
        next = use->next;
        bool own = use->user->id == TILE_OP_DOT_BLOCK || use->user == moved->op;
        if (!own && tile_op_inside(use->user, body->op)) tile_op_set_operand(use->user, use->index, moved);
    }
}

TileValue *dot_is_last(Dot *dot, TileOp *const *loops, unsigned count) {
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
    if (dot->a_columns) return dot_columns_of_block(dot, panels, i);
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

/* What is kept of an operand in panels, one of which has what is being multiplied. */
typedef struct Kept {
    const DotOperand *operand;
    TileValue *cells, *panels; /* words; the first panel */
    int64_t count, bytes;      /* how many panels there are; 0: one, of which nothing can be known. Of each */
    int64_t turns;             /* as many as take turns before one is known to be asked for again */
} Kept;

typedef struct Join {
    Dot *dot;
    Kept a, b;
    TileValue *cell;  /* how many k the panels have */
    TileValue *begun; /* have sums begun? NULL: nobody asks */
} Join;

/* Is the operand in memory that does not change while the function runs, with strides that do not either? */
static bool is_fixed_memory(const DotOperand *operand) {
    const TileValue *root = operand->pointer, *strides[] = {operand->row, operand->column};
    while (root->op && root->op->id == TILE_OP_PTR_ADD) root = tile_op_operand(root->op, 0);
    if (root->op || root->block->op) return false;
    const TileParameter *parameter = &root->block->func->parameters[root->index];
    for (unsigned i = 0; i < 2; i++)
        if (tile_value_block(strides[i])->op) return false;
    return parameter->readonly && parameter->noalias;
}

/* The bytes from the tensor's first element to the operand's. */
static TileValue *place_of(Dot *dot, const DotOperand *operand) {
    TileValue *bytes = dot_i64(dot, 0);
    for (const TileValue *at = operand->pointer; at->op; at = tile_op_operand(at->op, 0))
        bytes = dot_add(dot, bytes, tile_op_operand(at->op, 1));
    return bytes;
}

/* What is known of the panel of this number. */
static TileValue *cells_of(Dot *dot, const Kept *kept, TileValue *number) {
    return dot_offset(dot, word(dot, kept->cells, WORDS), dot_scale(dot, number, PANEL_WORDS * WORD));
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

static TileValue *has_in_front(Dot *dot, const Kept *kept, TileValue *number, TileValue *const *now) {
    TileValue *own = cells_of(dot, kept, number);
    TileValue *some = dot_binary(dot, TILE_OP_LT, dot_i64(dot, 0), load_word(dot, word(dot, own, KNOWN)));
    return if_known(dot, some, is_entry(dot, word(dot, own, ENTRIES), now));
}

/* Of the panels that take turns, whose number is a power of two. */
static TileValue *after(Dot *dot, const Kept *kept, TileValue *number) {
    TileValue *last = dot_binary(dot, TILE_OP_SUB, load_word(dot, word(dot, kept->cells, TURNS)), dot_i64(dot, 1));
    return dot_binary(dot, TILE_OP_AND, dot_add(dot, number, dot_i64(dot, 1)), last);
}

/* CURRENT becomes the panel that has the product in front, or -1. Programs ask for one panel again and again, or for one
 * after the other: all are looked at only if it is neither the last one nor the one behind it. */
static void find_panel(Dot *dot, const Kept *kept, TileValue *const *now) {
    TileValue *none = dot_i64(dot, -1), *zero = dot_i64(dot, 0), *at = word(dot, kept->cells, CURRENT);
    TileValue *last = load_word(dot, at), *next = after(dot, kept, last);
    TileValue *found = dot_select(dot, has_in_front(dot, kept, next, now), next, none);
    found = dot_select(dot, has_in_front(dot, kept, last, now), last, found);
    store_word(dot, found, at);
    dot_if(dot, dot_binary(dot, TILE_OP_LT, found, zero));
    TileValue *number = dot_for(dot, zero, dot_i64(dot, kept->count), dot_i64(dot, 1));
    dot_if(dot, has_in_front(dot, kept, number, now));
    store_word(dot, number, at);
    dot_end(dot);
    dot_end(dot);
    dot_end(dot);
}

/* What no panel has: if it is what is remembered, panels have come round, and as many take turns as there are. Something is
 * remembered until as many panels as there are have been asked for behind it. */
static void remember(Dot *dot, const Kept *kept, TileValue *const *now) {
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *cells = kept->cells, *entry = word(dot, cells, REMEMBERED);
    TileValue *since = load_word(dot, word(dot, cells, SINCE)), *all = dot_i64(dot, kept->count);
    TileValue *none = dot_binary(dot, TILE_OP_LT, since, zero), *again = if_known(dot, dot_not(dot, none), is_entry(dot, entry, now));
    TileValue *turns = word(dot, cells, TURNS), *misses = word(dot, cells, MISSES);
    store_word(dot, dot_select(dot, again, all, load_word(dot, turns)), turns);
    store_word(dot, dot_select(dot, again, zero, load_word(dot, misses)), misses);
    TileValue *forgets = dot_binary(dot, TILE_OP_OR, none, dot_binary(dot, TILE_OP_LT, all, since));
    store_word(dot, dot_select(dot, forgets, zero, dot_add(dot, since, one)), word(dot, cells, SINCE));
    dot_if(dot, forgets);
    for (unsigned i = 0; i < ENTRY; i++) store_word(dot, now[i], word(dot, entry, i));
    dot_end(dot);
}

/* The first product chooses the panel that has it in front. If none has, the panels take turns; but if none had for as long as
 * there are panels twice, nobody comes back to them, and one that stays in the cache takes all. */
static void choose_panel(Dot *dot, const Kept *kept, TileValue *const *now) {
    TileValue *zero = dot_i64(dot, 0), *cells = kept->cells;
    dot_if(dot, dot_binary(dot, TILE_OP_EQ, load_word(dot, word(dot, cells, PRODUCTS)), zero));
    find_panel(dot, kept, now);
    TileValue *missing = dot_binary(dot, TILE_OP_LT, load_word(dot, word(dot, cells, CURRENT)), zero);
    dot_if(dot, missing);
    remember(dot, kept, now);
    dot_end(dot);
    TileValue *misses = load_word(dot, word(dot, cells, MISSES));
    TileValue *most = dot_scale(dot, load_word(dot, word(dot, cells, TURNS)), 2), *more = dot_minimum(dot, dot_add(dot, misses, dot_i64(dot, 1)), most);
    store_word(dot, dot_select(dot, missing, more, zero), word(dot, cells, MISSES));
    dot_if(dot, missing);
    TileValue *next = load_word(dot, word(dot, cells, NEXT));
    TileValue *turn = dot_select(dot, dot_binary(dot, TILE_OP_LT, misses, most), after(dot, kept, next), next);
    store_word(dot, turn, word(dot, cells, NEXT));
    store_word(dot, next, word(dot, cells, CURRENT));
    store_word(dot, zero, word(dot, cells_of(dot, kept, next), KNOWN));
    dot_end(dot);
    dot_end(dot);
}

static TileValue *current_panel(Dot *dot, const Kept *kept) {
    if (!kept->count) return kept->panels;
    return dot_offset(dot, kept->panels, dot_scale(dot, load_word(dot, word(dot, kept->cells, CURRENT)), kept->bytes));
}

/* Begins the branch in which the product's part of the panel is packed, since the panel has something else there. What is
 * behind it is not known any more. */
static void if_unknown(Dot *dot, const Kept *kept, TileValue *joined, TileValue *extent) {
    TileValue *now[ENTRY] = {place_of(dot, kept->operand), joined, dot->k, extent}, *cells = kept->cells;
    if (kept->count > 1) choose_panel(dot, kept, now);
    TileValue *own = cells_of(dot, kept, load_word(dot, word(dot, cells, CURRENT)));
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
 * groups: it is packed only where no panel has it. The same for a, since weights that are [output, channel] are the first
 * operand. */
static void pack_b(Join *join, TileValue *joined) {
    Dot *dot = join->dot;
    TileValue *zero = dot_i64(dot, 0);
    if (dot->b_row) return;
    if (join->b.count) if_unknown(dot, &join->b, joined, dot->n);
    dot->b_panel = current_panel(dot, &join->b);
    if (dot->words) {
        dot->b_word = dot_amx_word(dot, joined);
        dot_amx_pack_b(dot, zero, dot->n, zero, dot->k);
    } else {
        TileValue *row = dot_vector_bytes(dot, dot->block_vectors);
        dot->b_panel = dot_offset(dot, dot->b_panel, dot_multiply(dot, joined, row));
        dot_pack_b(dot, zero, dot->n, zero, dot->k);
    }
    if (join->b.count) dot_end(dot);
}

/* Rows of a that lie side by side, behind those of the iterations before. */
static void pack_columns(Dot *dot) {
    TileValue *zero = dot_i64(dot, 0), *rows = dot_i64(dot, dot->block_rows);
    if (dot->words) {
        TileValue *count = dot_binary(dot, TILE_OP_DIV, dot_add(dot, dot->m, dot_i64(dot, dot->block_rows - 1)), rows);
        dot_words_pack_columns(dot, zero, count, zero, dot->k);
        return;
    }
    dot_if(dot, dot_binary(dot, TILE_OP_LE, dot->m, rows)); /* one block: no loop over blocks for each k */
    dot_pack_a(dot, zero, zero, dot->k);
    dot_else(dot);
    dot_pack_all_columns(dot, zero, dot->k);
    dot_end(dot);
}

static void pack_a(Join *join, TileValue *joined) {
    Dot *dot = join->dot;
    TileValue *zero = dot_i64(dot, 0);
    if (dot->a.pointer == join->a.panels) {
        TileValue *own = dot_offset(dot, dot->a_panel, dot_scale(dot, joined, element_bytes(dot)));
        if (dot->words) dot_amx_fill_rows(dot, own, dot->k, DOT_AMX_WORD / dot->element);
        return;
    }
    if (join->a.count) if_unknown(dot, &join->a, joined, dot->m);
    if (dot->a_columns) {
        TileValue *before = dot->words ? dot_amx_word(dot, joined) : joined;
        dot->a_panel = dot_offset(dot, current_panel(dot, &join->a), dot_scale(dot, before, dot->block_rows * dot->bytes));
        pack_columns(dot);
        if (join->a.count) dot_end(dot);
        return;
    }
    TileValue *a_column = dot_offset(dot, current_panel(dot, &join->a), dot_scale(dot, joined, element_bytes(dot)));
    if (dot->words) {
        TileValue *rows = dot_add(dot, dot->m, dot_i64(dot, DOT_AMX_ROWS - 1)), *step = dot_i64(dot, DOT_AMX_ROWS);
        rows = dot_multiply(dot, dot_binary(dot, TILE_OP_DIV, rows, step), step);
        dot->a_panel = a_column;
        dot_amx_pack_a(dot, zero, zero, rows, zero, dot->k);
    } else {
        TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows));
        dot->a_panel = panel_of_rows(dot, a_column, i);
        dot_pack_a(dot, i, zero, dot->k);
        dot_end(dot);
    }
    if (join->a.count) dot_end(dot);
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

static void multiply_panels(Join *join, TileValue *kc) {
    Dot *dot = join->dot;
    TileValue *zero = dot_i64(dot, 0), *a_panels = dot->a_panel;
    if (dot->a.pointer == a_panels) clear_rows(dot, kc);
    TileValue *i = dot_for(dot, zero, dot->m, dot_i64(dot, dot->block_rows));
    dot->a_panel = panel_of_rows(dot, a_panels, i);
    TileValue *j = dot_for(dot, zero, dot->n, dot->block_columns);
    TileValue *row = dot->b_row ? dot_i64(dot, dot->b_row) : dot_vector_bytes(dot, dot->block_vectors);
    TileValue *begin = dot_scale(dot, j, dot->b_row ? dot->bytes : dot_column_bytes(dot));
    DotPanel panel = {dot_offset(dot, dot->b_panel, begin), row, false, NULL};
    dot_block(dot, &panel, i, j, kc);
    dot_end(dot);
    dot_end(dot);
}

/* What lies behind the products of the current panel has been overwritten. */
static void forget_rest(Dot *dot, const Kept *kept) {
    if (!kept->count) return;
    TileValue *known = word(dot, cells_of(dot, kept, load_word(dot, word(dot, kept->cells, CURRENT))), KNOWN);
    TileValue *products = load_word(dot, word(dot, kept->cells, PRODUCTS));
    store_word(dot, dot_minimum(dot, load_word(dot, known), products), known);
}

static void multiply(Join *join, TileValue *kc) {
    Dot *dot = join->dot;
    dot->a_panel = current_panel(dot, &join->a);
    dot->b_panel = current_panel(dot, &join->b);
    if (dot->words) {
        dot_amx_clear_tail(dot, kc);
        forget_rest(dot, &join->a);
        forget_rest(dot, &join->b);
        dot_amx_multiply(dot, kc);
    } else {
        multiply_panels(join, kc);
    }
}

/* The panels have nothing. */
static void clear(Join *join) {
    Dot *dot = join->dot;
    const Kept *kept[] = {&join->a, &join->b};
    store_word(dot, dot_i64(dot, 0), join->cell);
    for (unsigned i = 0; i < 2; i++)
        if (kept[i]->count) store_word(dot, dot_i64(dot, 0), word(dot, kept[i]->cells, PRODUCTS));
}

/* The words at the front of the function, where nothing is known of the operand. */
static void create_cells(Dot *dot, Kept *kept) {
    TileBuilder *front = &dot->emitter->front;
    if (!kept->count) return;
    kept->cells = tile_build_buffer(front, (WORDS + kept->count * PANEL_WORDS) * WORD, ALIGN);
    int64_t cleared[5 + MOST_PANELS] = {CURRENT, NEXT, MISSES, TURNS, SINCE}, first[5 + MOST_PANELS] = {0, 0, 0, kept->turns, -1};
    for (int64_t i = 0; i < kept->count; i++) cleared[5 + i] = WORDS + i * PANEL_WORDS + KNOWN;
    for (int64_t i = 0; i < 5 + kept->count; i++)
        tile_build_store(front, tile_build_i64(front, first[i]),
                         tile_build_ptr_add(front, kept->cells, tile_build_i64(front, cleared[i] * WORD)), NULL, 0);
}

static const char *side_of(const Dot *dot, const DotOperand *operand) {
    return operand == &dot->a ? "the left operand" : "the right operand";
}

static void remark_kept(Dot *dot, const Kept *kept, bool worth) {
    const char *side = side_of(dot, kept->operand);
    if (kept->count)
        tile_pass_remark(dot->context, dot->op, TILE_DECISION_KEPT, side, "%lld panels of %lld bytes", (long long)kept->count,
                         (long long)kept->bytes);
    else if (tile_buffer_of(kept->operand->pointer))
        tile_pass_remark(dot->context, dot->op, TILE_DECISION_NOT_IN_PANEL, side,
                         "its rows have no space for a panel's, or another type, or it is read elsewhere");
    else
        tile_pass_remark(dot->context, dot->op, TILE_DECISION_NOT_KEPT, side, "%s",
                         worth ? "what it is loaded from may change, or its strides do"
                               : "its elements lie side by side, which are copied as fast as they are looked for");
}

/* The operand in as many panels as pay; in one if nothing can be known of it, or it is not worth it. */
static Kept keep(Dot *dot, const DotOperand *operand, int64_t bytes, bool worth) {
    Kept kept = {.operand = operand, .bytes = bytes, .count = worth && is_fixed_memory(operand)};
    int64_t used = bytes / dot->depth * capacity(dot); /* the end is for zeros alone */
    int64_t few = dot->amx ? (int64_t)dot->context->target->l2_bytes / 2 : MOST_BYTES;
    while (kept.count && kept.count < MOST_PANELS && 2 * kept.count * used <= MOST_BYTES) kept.count *= 2;
    kept.turns = kept.count;
    while (kept.turns > 1 && kept.turns * used > few) kept.turns /= 2;
    create_cells(dot, &kept);
    remark_kept(dot, &kept, worth);
    return kept;
}

static bool is_one_element(const TileValue *stride, TileScalar scalar) {
    int64_t bytes;
    return tile_value_integer(stride, &bytes) && bytes == (int64_t)tile_scalar_bytes(scalar);
}

/* Panels of a have spare rows around them. Rows and columns without gaps are copied as fast as they are looked for. */
static Kept keep_a(Dot *dot) {
    bool near = is_one_element(dot->a.row, dot->a.scalar) || is_one_element(dot->a.column, dot->a.scalar);
    if (dot->a.pointer == dot->a_panel) return (Kept){.operand = &dot->a, .panels = dot->a_panel};
    int64_t spare = dot->words || dot->a_columns ? 0 : dot_spare_rows(dot), row = dot->panel_row * element_bytes(dot);
    int64_t count = blocks(dot->m_max, dot->block_rows), rows = count * dot->block_rows + 2 * spare;
    if (dot->words) rows = blocks(rows, DOT_AMX_ROWS) * DOT_AMX_ROWS; /* they are packed by so many */
    Kept kept = keep(dot, &dot->a, dot->a_columns ? count * dot->a_block : rows * row, !near);
    kept.panels = tile_build_buffer(&dot->emitter->front, (kept.count ? kept.count : 1) * kept.bytes, ALIGN);
    kept.panels = dot_offset(dot, kept.panels, dot_i64(dot, spare * row));
    return kept;
}

/* Rows of b are computed up to the last column that there is, but multiplied in whole vectors: what lies behind it might be
 * denormal in memory that nobody has written to. */
static void clear_b(Dot *dot) {
    TileValue *panel = &tile_buffer_of(dot->b_panel)->op->results[0];
    TileBuilder front = tile_builder_before(dot->builder->module, panel->op->next);
    int64_t bytes = dot->depth * dot->b_row + CPU_PANEL_TAIL_BYTES, step = dot->lanes * dot->bytes;
    TileOp *loop = tile_build_for(&front, tile_build_i64(&front, 0), tile_build_i64(&front, bytes / step * step),
                                  tile_build_i64(&front, step), NULL, 0);
    TileBuilder body = tile_builder_at_end(front.module, &loop->regions[0]);
    const TileType *type = tile_type_vector(front.module->context, dot->scalar, dot->lanes, false);
    tile_build_store(&body, tile_build_bits(&body, type, 0), tile_build_ptr_add(&body, panel, loop->regions[0].arguments[0]), NULL, 0);
    tile_build_end(&body, TILE_OP_YIELD, NULL, 0);
}

static Kept keep_b(Dot *dot) {
    if (dot->b_row) {
        clear_b(dot);
        return (Kept){.operand = &dot->b, .panels = dot->b_panel};
    }
    Kept kept = keep(dot, &dot->b, dot->slot_bytes, true);
    kept.panels = tile_build_buffer(&dot->emitter->front, (kept.count ? kept.count : 1) * kept.bytes, ALIGN);
    return kept;
}

static void remark_joined(Dot *dot, unsigned loops) {
    tile_pass_remark(dot->context, dot->op, TILE_DECISION_PRODUCTS_JOINED, "the product", "of %u loops, up to %lld k at a time%s", loops,
                     (long long)capacity(dot), dot->words ? ", a word of each row after the other" : "");
    const DotOperand *computed[] = {dot->a.pointer == dot->a_panel ? &dot->a : NULL, dot->b_row ? &dot->b : NULL};
    for (unsigned i = 0; i < 2; i++)
        if (computed[i]) tile_pass_remark(dot->context, dot->op, TILE_DECISION_IN_PANEL, side_of(dot, computed[i]), "%s", "");
}

void dot_join(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count) {
    remark_joined(dot, count);
    Join join = {.dot = dot, .a = keep_a(dot), .b = keep_b(dot)};
    join.cell = tile_build_buffer(&dot->emitter->front, WORD, ALIGN);
    bool direct = dot_direct_find(dot, op, loops, count);
    if (direct) join.begun = tile_build_buffer(&dot->emitter->front, WORD, ALIGN);
    tile_emit_before(dot->emitter, loops[count - 1]);
    clear(&join);
    if (direct) store_word(dot, dot_i64(dot, 0), join.begun);
    TileBlock *body = &loops[0]->regions[0];
    tile_emit_before(dot->emitter, body->first);
    TileValue *joined = load_word(dot, join.cell);
    if (dot->a.pointer == dot->a_panel) move_stores(dot, dot->a_panel, body, dot_scale(dot, joined, element_bytes(dot)));
    if (dot->b_row) move_stores(dot, dot->b_panel, body, dot_scale(dot, joined, dot->b_row));
    tile_emit_before(dot->emitter, op);
    pack_b(&join, joined);
    pack_a(&join, joined);
    TileValue *k = dot->words ? dot_scale(dot, dot_amx_word(dot, dot->k), DOT_AMX_WORD / dot->element) : dot->k;
    TileValue *total = dot_add(dot, joined, k);
    TileValue *full = dot_binary(dot, TILE_OP_LT, dot_i64(dot, capacity(dot) - most_of_product(dot)), total);
    store_word(dot, total, join.cell);
    TileValue *last = dot_is_last(dot, loops, count);
    dot_if(dot, dot_binary(dot, TILE_OP_OR, full, last));
    if (direct) {
        if (dot->out) dot->last = last;
        dot->first = dot_binary(dot, TILE_OP_EQ, load_word(dot, join.begun), dot_i64(dot, 0));
    }
    multiply(&join, total);
    clear(&join);
    if (direct) store_word(dot, dot_i64(dot, 1), join.begun);
    dot_end(dot);
    if (direct) dot_direct_finish(dot, loops, count);
}
