/* Purpose: decide which statements share loops, and which of the tiles that are kept are in registers between them. A statement has a
 * loop for each axis of its tile, in their order, and for the axis of a reduction; it joins the loops of an earlier one if their
 * extents and bounds are equal, and if each value or buffer that both access is accessed at the same index of the loop (schedule.c).
 * `nest` numbers the loops around it. Where all readers of a value are in some of these loops, its buffer has no axis for them
 * (`shared`), and none at all where they are in all of them.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %first = mul %program, %n : i64
 *         %v = load_tile %x, %first, %one, %zero, %n {access = [range], home = view} : f32[64]
 *         %e = exp %v {home = kept} : f32[64]
 *         %s = reduce %e {axis = 0, kind = sum} : f32
 *         %t = splat %s {home = recomputed} : f32[64]
 *         %w = div %e, %t {home = recomputed} : f32[64]
 *         store_tile %y, %w, %first, %one, %zero, %n {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %first = mul %program, %n : i64
 *         %v = load_tile %x, %first, %one, %zero, %n {access = [range], home = view} : f32[64]
 *         %e = exp %v {home = buffer, nest = [0], shared = [0]} : f32[64]
 *         %s = reduce %e {axis = 0, kind = sum, nest = [0]} : f32
 *         %t = splat %s {home = recomputed} : f32[64]
 *         %w = div %e, %t {home = recomputed} : f32[64]
 *         store_tile %y, %w, %first, %one, %zero, %n {access = [range], nest = [1]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: cpu-place; cse, since bounds are compared by value. Keeps: all ops, to which it adds attributes.
 * Cost: linear in the ops, quadratic in the statements of a block (64 at a time). */
#include "cpu/nest.h"

static TileName home_of(Nest *n, const NestStatement *s, bool registers) {
    if (registers) return TILE_HOME_REGISTERS;
    return nest_dot_panel(n, s) ? TILE_HOME_PANEL : TILE_HOME_BUFFER;
}

/* Ends the batch: nothing that follows joins its loops. */
static void end_batch(Nest *n) {
    for (size_t i = 0; i < n->batch.count; i++) {
        NestStatement *s = n->batch.items[i];
        bool registers;
        if (!s->value || s->kind == NEST_SCALAR || s->kind == NEST_DOT) continue;
        s->shared = nest_loops_with_readers(s, &registers);
        s->home = home_of(n, s, registers);
    }
    nest_end_batch(n);
}

static void fuse_block(Nest *n, TileBlock *block);

static void fuse_around(Nest *n, TileOp *op) {
    nest_schedule_copies(n, op);
    end_batch(n);
    for (unsigned r = 0; nest_has_blocks(op) && r < op->region_count; r++) fuse_block(n, &op->regions[r]);
}

static void fuse_scalar(Nest *n, TileOp *op) {
    if (!nest_schedule_scalar(n, op) && nest_ends_batch(n, op)) end_batch(n);
}

/* The walk is that of cpu-nest (nest_control.c): what is emitted between statements ends their batch. */
static void fuse_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool ends = nest_has_blocks(op) || (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_TERMINATOR);
        if (ends)
            fuse_around(n, op);
        else if (nest_is_scalar_op(n, op))
            fuse_scalar(n, op);
        else
            nest_schedule_op(n, op);
        if (nest_batch_is_full(n)) end_batch(n);
    }
}

TileResult tile_pass_cpu_fuse(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Nest n = nest_create(context, func);
    nest_describe_tensors(&n);
    nest_find_needs(&n);
    nest_read_homes(&n);
    if (n.failure) return tile_pass_fail(context, TILE_INTERNAL, NULL, "cpu-fuse: %s", n.failure);
    fuse_block(&n, n.body);
    nest_write_loops(&n);
    return n.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
