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
 * order as before. */
#include "cpu/buffers.h"
#include "cpu/dot.h"
#include "lang/ir/operands.h"

enum { CELL_BYTES = 8, ALIGN = 64, SMALLEST_GAIN = 2 };

/* ---- which loops ---- */

/* Bounds are the same in all iterations of the outermost loop, so that the last one is known. */
static bool has_fixed_bounds(const TileOp *loop, const TileOp *outermost) {
    int64_t step;
    for (unsigned i = 0; i < 3; i++)
        if (!tile_value_outside(tile_op_operand(loop, i), outermost)) return false;
    return !loop->result_count && tile_value_integer(tile_op_operand(loop, 2), &step) && step > 0;
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

static int64_t panel_bytes(const Dot *dot, int64_t depth) {
    return (blocks(dot->m_max, dot->block_rows) * dot->block_rows + blocks(dot->n_max, dot->lanes) * dot->lanes) * depth *
           dot->bytes;
}

bool dot_join_choose(Dot *dot, int64_t deepest) {
    int64_t cache = dot->context->target->l2_bytes / 2;
    dot->depth = deepest;
    while (dot->depth > dot->k_max && panel_bytes(dot, dot->depth) > cache) dot->depth /= 2;
    return dot->depth >= SMALLEST_GAIN * dot->k_max;
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
        TileValue *ends = dot_binary(dot, TILE_OP_LE, left, tile_op_operand(loops[i], 2));
        last = last ? dot_binary(dot, TILE_OP_AND, last, ends) : ends;
    }
    return last;
}

/* The panel of the rows from i on. */
static TileValue *panel_of_rows(Dot *dot, TileValue *panels, TileValue *i) {
    return dot_offset(dot, panels, dot_scale(dot, i, dot->panel_row * dot->bytes));
}

static void pack(Dot *dot, TileValue *joined) {
    TileValue *zero = dot_i64(dot, 0), *a_panels = dot->a_panel, *b_panels = dot->b_panel;
    dot->b_panel = dot_offset(dot, b_panels, dot_multiply(dot, joined, dot_vector_bytes(dot, dot->block_vectors)));
    dot_pack_b(dot, zero, dot->n, zero, dot->k);
    dot->b_panel = b_panels;
    if (dot->a.pointer == a_panels) return;
    TileValue *a_column = dot_offset(dot, a_panels, dot_scale(dot, joined, dot->bytes));
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

static void multiply(Dot *dot, TileValue *kc) {
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

void dot_join(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count) {
    TileValue *zero = dot_i64(dot, 0);
    TileValue *cell = tile_build_buffer(&dot->emitter->front, CELL_BYTES, ALIGN);
    tile_emit_before(dot->emitter, loops[count - 1]);
    tile_build_store(dot->builder, zero, cell, NULL, 0);
    TileBlock *body = &loops[0]->regions[0];
    tile_emit_before(dot->emitter, body->first);
    TileValue *joined = tile_build_load(dot->builder, zero->type, cell, NULL, NULL, 0);
    if (dot->a.pointer == dot->a_panel) move_stores(dot, op, body, joined);
    tile_emit_before(dot->emitter, op);
    pack(dot, joined);
    TileValue *total = dot_add(dot, joined, dot->k);
    TileValue *full = dot_binary(dot, TILE_OP_LT, dot_i64(dot, dot->depth - dot->k_max), total);
    tile_build_store(dot->builder, total, cell, NULL, 0);
    dot_if(dot, dot_binary(dot, TILE_OP_OR, full, is_last(dot, loops, count)));
    multiply(dot, total);
    tile_build_store(dot->builder, zero, cell, NULL, 0);
    dot_end(dot);
}
