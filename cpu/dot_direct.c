/* Products whose sums go to a tensor as they are.
 *
 * A program's block of c is cleared in scratch memory, a loop adds products to it, and what it has in the end is copied to the
 * tensor. What is more than L1 is written, read and written again by the way of L2, and the copy waits for memory while nothing is multiplied: of 512 k a
 * fifteenth of all time. Where nothing else reads or writes the block, the micro-kernel begins with zeros in registers in the loop's first
 * iteration, and stores to the tensor in the last one. What clears and what copies is left for loops without iterations:
 *     for rows { block = 0 }                   if there are no k { for rows { block = 0 } }
 *     for k { block += a * b }                 for k { sums = first ? 0 : block; sums += a * b; if last { tensor = sums } else { block = sums } }
 *     for rows { tensor = block }              if there are no k { for rows { tensor = block } } */
#include "cpu/buffers.h"
#include "cpu/dot.h"
#include "lang/ir/operands.h"

static bool is_pure(const TileOp *op) {
    return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count;
}

/* ---- what clears ---- */

static bool is_zero(const TileValue *value) {
    const TileOp *constant = tile_value_def(value, TILE_OP_CONST);
    return constant && tile_op_get(constant, TILE_ATTRIBUTE_VALUE)->bits == 0;
}

/* Are there only stores of zeros to the buffer in the loop, and in those inside of it? */
static bool only_clears(const TileOp *loop, const TileValue *buffer) {
    if (loop->result_count) return false;
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        bool clears = op->id == TILE_OP_STORE && is_zero(tile_op_operand(op, 0)) && tile_buffer_of(tile_op_named(op, TILE_OPERAND_ADDRESS)) == buffer;
        if (!clears && !is_pure(op) && (op->id != TILE_OP_FOR || !only_clears(op, buffer))) return false;
    }
    return true;
}

/* ---- what copies ---- */

typedef struct Copy {
    const TileOp *rows;
    const TileValue *from, *to, *from_row, *to_row; /* the first row's elements of both, and the bytes to the next row */
    TileValue *first, *end;                         /* columns */
    TileValue *first_row;                           /* of those that are copied */
} Copy;

static bool copies_vector(const TileOp *store, const TileValue *column, const TileValue **from, const TileValue **to, const TileValue **size) {
    const TileOp *load = tile_value_def(tile_op_operand(store, 0), TILE_OP_LOAD);
    if (!load || tile_op_named(load, TILE_OPERAND_MASK) != tile_op_named(store, TILE_OPERAND_MASK)) return false;
    return dot_is_step(tile_op_named(load, TILE_OPERAND_ADDRESS), column, from, size) && dot_is_step(tile_op_named(store, TILE_OPERAND_ADDRESS), column, to, size);
}

/* Columns of one row: loops that follow one another, of full vectors and of one with a mask. */
static bool copies_columns(Copy *copy, const TileOp *loop, const TileValue **from, const TileValue **to, int64_t bytes) {
    const TileValue *size = NULL;
    unsigned stores = 0;
    int64_t element;
    if (loop->result_count || (copy->end && tile_op_operand(loop, 0) != copy->end)) return false;
    if (!copy->first) copy->first = tile_op_operand(loop, 0);
    copy->end = tile_op_operand(loop, 1);
    for (const TileOp *op = loop->regions[0].first; op != loop->regions[0].last; op = op->next) {
        if (op->id == TILE_OP_STORE) {
            if (++stores > 1 || !copies_vector(op, loop->regions[0].arguments[0], from, to, &size)) return false;
        } else if (op->id != TILE_OP_LOAD && !is_pure(op)) {
            return false;
        }
    }
    return stores == 1 && tile_value_integer(size, &element) && element == bytes;
}

static bool copies_rows(Copy *copy, int64_t bytes) {
    const TileOp *rows = copy->rows;
    const TileValue *from = NULL, *to = NULL;
    if (rows->result_count || !tile_value_is_integer(tile_op_named(rows, TILE_OPERAND_STEP), 1)) return false;
    for (const TileOp *op = rows->regions[0].first; op != rows->regions[0].last; op = op->next) {
        bool columns = op->id == TILE_OP_FOR && copies_columns(copy, op, &from, &to, bytes);
        if (!columns && !is_pure(op)) return false;
    }
    const TileValue *row = rows->regions[0].arguments[0];
    return from && to && dot_is_step(from, row, &copy->from, &copy->from_row) && dot_is_step(to, row, &copy->to, &copy->to_row);
}

/* Are the product's rows and columns those that are copied? */
static bool is_all(const Dot *dot, Copy *copy) {
    TileValue *row, *column;
    if (!tile_value_is_same(copy->from_row, dot->c.row) || !dot_place_in(dot, copy->from, &row, &column)) return false;
    copy->first_row = tile_op_operand(copy->rows, 0);
    return dot_is_same_index(row, copy->first_row) && dot_is_same_index(column, copy->first) &&
           dot_is_range(dot->m, row, tile_op_operand(copy->rows, 1)) && dot_is_range(dot->n, column, copy->end);
}

/* ---- the block's loops ---- */

/* Is each use of the buffer in one of the three loops? */
static bool has_no_other(const TileValue *pointer, TileOp *const *loops) {
    for (const TileUse *use = pointer->first_use; use; use = use->next) {
        bool moves = use->user->id == TILE_OP_PTR_ADD && has_no_other(&use->user->results[0], loops), inside = false;
        for (unsigned i = 0; i < 3; i++) inside |= tile_op_inside(use->user, loops[i]);
        if (!moves && (!inside || use->user->id == TILE_OP_PTR_ADD)) return false;
    }
    return true;
}

static TileOp *next_loop(TileOp *op) {
    do op = op->next;
    while (op && is_pure(op));
    return op && op->id == TILE_OP_FOR ? op : NULL;
}

/* Has the op nothing to do with the buffer? */
static bool is_apart(const TileOp *op, const TileValue *buffer) {
    if (op->id == TILE_OP_FOR) return !tile_buffer_uses(buffer, op);
    const TileValue *own = op->id == TILE_OP_STORE ? tile_buffer_of(tile_op_named(op, TILE_OPERAND_ADDRESS)) : buffer;
    return is_pure(op) || (own && own != buffer);
}

/* What clears the buffer in front of the op; behind it others may be cleared. */
static TileOp *find_clears(TileOp *op, const TileValue *buffer) {
    do op = op->previous;
    while (op && is_apart(op, buffer));
    return tile_op_is(op, TILE_OP_FOR) && only_clears(op, buffer) ? op : NULL;
}

static bool has_steps(const TileOp *loop) {
    int64_t step;
    return !loop->result_count && tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) && step > 0;
}

/* Is the value, which an op behind this one takes, there in front of this one, too? */
static bool is_there(const TileValue *value, const TileOp *before) {
    if (!tile_block_inside(before->block, tile_value_block(value))) return false;
    if (!value->op || value->op->block != before->block) return true;
    for (const TileOp *op = value->op; op; op = op->next)
        if (op == before) return true;
    return false;
}

/* Moves pure ops to the front of the op, so that the value is there; false: it depends on more. */
static bool move_before(TileValue *value, TileOp *before) {
    if (is_there(value, before)) return true;
    TileOp *op = value->op;
    bool movable = op && op->block == before->block && is_pure(op);
    for (unsigned i = 0; movable && i < op->operand_count; i++) movable = move_before(tile_op_operand(op, i), before);
    if (!movable) return false;
    tile_op_detach(op);
    tile_op_insert_before(op, before);
    return true;
}

/* Also bounds that are computed between what clears and the loops, as those of a window's positions that are taken together. */
static bool move_bounds(TileOp *const *loops, unsigned count, TileOp *before) {
    bool there = true;
    for (unsigned i = 0; i < count; i++) there = there && move_before(tile_op_operand(loops[i], 0), before) && move_before(tile_op_operand(loops[i], 1), before);
    return there;
}

/* Do sums begin as zeros in front of the loops, which only add to them? */
static const char *find_begin(Dot *dot, TileOp *const *loops, unsigned count) {
    TileOp *loop = loops[count - 1];
    const TileValue *buffer = tile_buffer_of(dot->c.pointer), *fixed[] = {dot->c.pointer, dot->c.row, dot->m, dot->n};
    bool adds = buffer && tile_buffer_uses(buffer, loop) == 1;
    for (unsigned i = 0; i < count; i++) adds = adds && has_steps(loops[i]);
    for (unsigned i = 0; i < 4; i++) adds = adds && tile_value_outside(fixed[i], loop);
    if (!adds) return "the loop around it does more with its sums than to add to them";
    dot->clears = find_clears(loop, buffer);
    if (!dot->clears) return "its sums do not begin as zeros";
    return move_bounds(loops, count, dot->clears) ? NULL : "how many iterations there are depends on what is computed behind where its sums are cleared";
}

/* Do all sums go to a tensor behind the loops? */
static const char *find_out(Dot *dot, TileOp *const *loops, unsigned count, Copy *copy) {
    TileOp *loop = loops[count - 1];
    if (dot->a_columns && !dot->a_block) return "rows of its left operand lie side by side, which is slower by that";
    dot->copies = next_loop(loop);
    copy->rows = dot->copies;
    if (!copy->rows || !copies_rows(copy, dot->bytes) || !is_all(dot, copy)) return "more is done with its sums than to store them";
    if (!has_no_other(tile_buffer_of(dot->c.pointer), (TileOp *[]){loop, dot->clears, dot->copies})) return "its sums are read elsewhere";
    const TileValue *tensor = dot_tensor_of(copy->to);
    return tensor && !dot_is_accessed(tensor, loop) ? NULL : "what the loop reads may be in the tensor that they go to";
}

/* Has the buffer as many bytes as the greatest block that the product may have? Then a block of that size is all of it, and is stored. */
static bool is_whole_buffer(Dot *dot) {
    const TileValue *buffer = tile_buffer_of(dot->c.pointer);
    int64_t row = dot->n_max * dot->bytes;
    return tile_value_is_integer(dot->c.row, row) && tile_op_integer(buffer->op, TILE_ATTRIBUTE_BYTES, 0) == dot->m_max * row &&
           move_before(dot->m, dot->clears) && move_before(dot->n, dot->clears);
}

/* A product that is all that is added to its sums. */
static bool find_single(Dot *dot, TileOp *op) {
    const TileValue *buffer = tile_buffer_of(dot->c.pointer);
    dot->clears = buffer ? find_clears(op, buffer) : NULL;
    dot->begins = dot->clears && is_whole_buffer(dot);
    return dot->begins;
}

/* What is computed between the loops, such as the tensor's address. */
static void move_to_front(const Dot *dot, TileOp *loop) {
    for (TileOp *between = loop->next, *next; between != dot->copies; between = next) {
        next = between->next;
        tile_op_detach(between);
        tile_op_insert_before(between, loop);
    }
}

static void go_out(Dot *dot, const Copy *copy, TileOp *loop) {
    move_to_front(dot, loop);
    TileValue *row = dot_multiply(dot, copy->first_row, (TileValue *)copy->to_row);
    dot->out = dot_offset(dot, dot_offset(dot, (TileValue *)copy->to, row), dot_scale(dot, copy->first, dot->bytes));
    dot->out_row = (TileValue *)copy->to_row;
}

/* Is what is computed of the sums behind the loops computed block by block? Rows that have no products are left to their own loop, and read zeros. */
static bool find_finish(Dot *dot, TileOp *loop) {
    TileOp *rows = next_loop(loop);
    const TileValue *buffer = tile_buffer_of(dot->c.pointer);
    if (!rows || !has_no_other(buffer, (TileOp *[]){loop, dot->clears, rows}) || !dot_finish_find(dot, loop, rows)) return false;
    if (!dot->finish.all_rows && !is_whole_buffer(dot)) {
        dot->finish.rows = NULL;
        return false;
    }
    dot->copies = rows;
    move_to_front(dot, loop);
    dot->out = dot->finish.part;
    dot->out_row = dot_finish_row(dot);
    return true;
}

bool dot_direct_find(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count) {
    Copy copy = {0};
    if (dot->amx || !dot->context->target->has_masks) return false;
    if (dot->words && count > 1) { /* measured: convolutions of few channels took 3 % longer by it */
        tile_pass_remark(dot->context, op, TILE_DECISION_NOT_STORED_FROM_REGISTERS, "the product", "%s", "words of a window are too few to gain from it");
        return false;
    }
    const char *why = tile_op_is(op->block->op, TILE_OP_FOR) ? find_begin(dot, loops, count) : "";
    bool begins = !why;
    if (begins) why = find_out(dot, loops, count, &copy);
    if (!why) {
        tile_pass_remark(dot->context, op, TILE_DECISION_STORED_FROM_REGISTERS, "the product", "%s", "");
        go_out(dot, &copy, loops[count - 1]);
        return true;
    }
    dot->copies = NULL;
    if (begins && find_finish(dot, loops[count - 1])) {
        tile_pass_remark(dot->context, op, TILE_DECISION_FINISHED_BY_BLOCKS, "the product", "%lld columns at a time", (long long)dot->finish.span);
        return true;
    }
    if (*why) tile_pass_remark(dot->context, op, TILE_DECISION_NOT_STORED_FROM_REGISTERS, "the product", "%s", why);
    begins = begins ? is_whole_buffer(dot) : find_single(dot, op);
    if (begins) tile_pass_remark(dot->context, op, TILE_DECISION_BEGINS_IN_REGISTERS, "the product", "%s", "");
    return begins;
}

/* ---- loops without iterations ---- */

/* Are there no iterations, or for what clears is the block less than the buffer? */
static TileValue *is_needed(Dot *dot, TileOp *const *loops, unsigned count, bool clears) {
    TileValue *needed = NULL;
    for (unsigned i = 0; i < count && !dot->begins; i++) {
        TileValue *own = tile_build_binary(dot->builder, TILE_OP_LE, tile_op_operand(loops[i], 1), tile_op_operand(loops[i], 0));
        needed = needed ? tile_build_binary(dot->builder, TILE_OP_OR, needed, own) : own;
    }
    TileValue *extents[] = {dot->m, dot->n};
    int64_t most[] = {dot->m_max, dot->n_max};
    bool others = !dot->out || (dot->finish.rows && !dot->finish.all_rows);
    for (unsigned i = 0; clears && others && i < 2; i++) {
        if (tile_value_is_integer(extents[i], most[i])) continue;
        TileValue *own = tile_build_binary(dot->builder, TILE_OP_LT, extents[i], dot_i64(dot, most[i]));
        needed = needed ? tile_build_binary(dot->builder, TILE_OP_OR, needed, own) : own;
    }
    return needed;
}

static void put_into_branch(Dot *dot, TileOp *op, TileOp *const *loops, unsigned count) {
    TileModule *module = dot->builder->module;
    TileBuilder before = *dot->builder;
    *dot->builder = tile_builder_before(module, op);
    dot->builder->location = op->location;
    TileValue *needed = is_needed(dot, loops, count, op == dot->clears);
    if (needed) {
        TileOp *branch = tile_build_if(dot->builder, needed, NULL, 0);
        TileBuilder inside = tile_builder_at_end(module, &branch->regions[0]), outside = tile_builder_at_end(module, &branch->regions[1]);
        tile_op_detach(op);
        tile_builder_insert(&inside, op);
        tile_build_end(&inside, TILE_OP_YIELD, NULL, 0);
        tile_build_end(&outside, TILE_OP_YIELD, NULL, 0);
    } else {
        tile_op_erase(op);
    }
    *dot->builder = before;
}

/* The rows behind those of the product, or all, if there are no iterations. */
static void leave_other_rows(Dot *dot, TileOp *const *loops, unsigned count) {
    TileBuilder before = *dot->builder;
    *dot->builder = tile_builder_before(dot->builder->module, dot->copies);
    TileValue *none = is_needed(dot, loops, count, false), *first = tile_op_operand(dot->copies, 0);
    TileValue *other = dot_binary(dot, TILE_OP_MAX, dot_add(dot, dot->finish.first_row, dot->m), first);
    tile_op_set_operand(dot->copies, 0, dot_select(dot, none, first, other));
    *dot->builder = before;
}

void dot_direct_finish(Dot *dot, TileOp *const *loops, unsigned count) {
    put_into_branch(dot, dot->clears, loops, count);
    if (dot->finish.rows && !dot->finish.all_rows) {
        leave_other_rows(dot, loops, count);
        return;
    }
    if (dot->copies) put_into_branch(dot, dot->copies, loops, count);
}
