/* Purpose: replace a loop with a trip count of 0 or 1 by a branch, for example a loop over the one tile that a program
 * has of a sequence. A loop extends live ranges: of loop-carried values, and of loop-invariant values that are hoisted
 * out of it. An inner loop of products needs these registers.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) {
 *       %size = const {value = 8} : i64
 *       %above = add %begin, %size : i64
 *       %last = min %end, %above : i64
 *       for %begin, %last, %size (%i: i64) {
 *         %v = load_tile %x, %i {access = [index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, inout>, %begin: i64, %end: i64) {
 *       %size = const {value = 8} : i64
 *       %above = add %begin, %size : i64
 *       %last = min %end, %above : i64
 *       %0 = lt %begin, %last : bool
 *       if %0 {
 *         %v = load_tile %x, %begin {access = [index]} : f32
 *         %w = neg %v : f32
 *         store_tile %x, %w, %begin {access = [index]}
 *         yield
 *       } {
 *         yield
 *       }
 *       return
 *     }
 * In machine form, as the last pass that changes loops, it puts the body in the place of the loop over the one program of a block
 * (`one_program`, gpu-blocks), which the passes before had to know as a loop, but in functions with products for tensor cores: a launch begins with program 0 and has a block for each, so no block asks whether
 * there is a program for it, nor with which one the launch begins. What that asked came late, behind parameters that no other code reads: 0.1 us of 1.2.
 * Needs: canonicalise, cse, so that bounds are recognised. Keeps: the form, the values of all results.
 * Cost: linear. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/passes.h"

enum { FIRST_CARRIED = 3 };

typedef struct Once {
    TilePassContext *context;
    bool changed;
    bool unwraps; /* bodies take the places of loops, without a branch */
} Once;

/* Is the value at most `from` + `step`? If that sum wraps, it is below `from`, and the loop has no iteration. */
static bool is_within(TileIndices *indices, const TileValue *value, const TileValue *from, int64_t step) {
    const TileOp *min = tile_value_def(value, TILE_OP_MIN);
    if (min)
        return is_within(indices, tile_op_operand(min, 0), from, step) ||
               is_within(indices, tile_op_operand(min, 1), from, step);
    int64_t more;
    return tile_index_offset(indices, value, from, &more) && more > 0 && more <= step;
}

static bool runs_once(const Once *once, const TileOp *loop) {
    int64_t step;
    if (loop->block->func->form == TILE_FORM_MACHINE) return tile_op_integer(loop, TILE_ATTRIBUTE_ONE_PROGRAM, 0) != 0;
    return tile_value_integer(tile_op_named(loop, TILE_OPERAND_STEP), &step) &&
           is_within(tile_pass_indices(once->context, loop->block->func), tile_op_operand(loop, 1),
                     tile_op_operand(loop, 0), step);
}

/* Without an iteration the results are the loop's initial values. */
static TileOp *build_branch(Once *once, TileOp *loop) {
    TileArena *arena = once->context->scratch;
    TileBuilder b = tile_builder_before(once->context->module, loop);
    b.location = loop->location;
    TileValue *runs = tile_build_binary(&b, TILE_OP_LT, tile_op_operand(loop, 0), tile_op_operand(loop, 1));
    const TileType **types = TILE_NEW_ARRAY(arena, const TileType *, loop->result_count);
    TileValue **initial = TILE_NEW_ARRAY(arena, TileValue *, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++) {
        types[i] = loop->results[i].type;
        initial[i] = tile_op_operand(loop, FIRST_CARRIED + i);
    }
    TileOp *branch = tile_build_if(&b, runs, types, loop->result_count);
    TileBuilder otherwise = tile_builder_at_end(once->context->module, &branch->regions[1]);
    otherwise.location = loop->location;
    tile_build_end(&otherwise, TILE_OP_YIELD, initial, loop->result_count);
    return branch;
}

/* The body's ops in place of the loop, which has one iteration. */
static void unwrap(Once *once, TileOp *loop) {
    TileBlock *body = &loop->regions[0];
    TileBuilder b = tile_builder_before(once->context->module, loop);
    tile_value_replace(body->arguments[0], tile_op_operand(loop, 0));
    for (unsigned i = 0; i < loop->result_count; i++) {
        tile_value_replace(body->arguments[1 + i], tile_op_operand(loop, FIRST_CARRIED + i));
        tile_value_replace(&loop->results[i], tile_op_operand(body->last, i));
    }
    for (TileOp *op = body->first, *next; op != body->last; op = next) {
        next = op->next;
        tile_op_detach(op);
        tile_builder_insert(&b, op);
    }
    tile_op_erase(loop);
    once->changed = true;
}

/* A launch begins with program 0. */
static void begin_at_first(Once *once, TileFunc *func) {
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        TileValue *begin = func->body.arguments[i];
        if (func->parameters[i].role != TILE_ROLE_BEGIN || !tile_value_has_uses(begin)) continue;
        TileBuilder b = tile_builder_before(once->context->module, func->body.first);
        tile_value_replace(begin, tile_build_i64(&b, 0));
        once->changed = true;
    }
}

static void find_product(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_MMA; }

/* Beside products for tensor cores, which take registers as they come, the branch stays: it is no part of their time, and ptxas spills what it computes
 * ahead of them where none stands there (matmul_grouped of sm_89, 180 bytes). */
static bool multiplies(TileFunc *func) {
    bool found = false;
    tile_block_walk(&func->body, find_product, &found);
    return found;
}

static void visit(TileOp *op, void *state) {
    Once *once = state;
    if (op->id != TILE_OP_FOR || !runs_once(once, op)) return;
    if (once->unwraps) {
        unwrap(once, op);
        return;
    }
    TileOp *branch = build_branch(once, op);
    TileBlock *body = &op->regions[0];
    tile_value_replace(body->arguments[0], tile_op_operand(op, 0));
    for (unsigned i = 0; i < op->result_count; i++) {
        tile_value_replace(body->arguments[1 + i], tile_op_operand(op, FIRST_CARRIED + i));
        branch->results[i].name = op->results[i].name;
        tile_value_replace(&op->results[i], &branch->results[i]);
    }
    tile_block_splice(&branch->regions[0], body);
    tile_op_erase(op);
    once->changed = true;
    tile_block_walk(&branch->regions[0], visit, once);
}

TileResult tile_pass_gpu_once(TilePassContext *context, TileFunc *func) {
    Once once = {.context = context, .unwraps = func->form == TILE_FORM_MACHINE && !multiplies(func)};
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    tile_block_walk(&func->body, visit, &once);
    if (once.unwraps) begin_at_first(&once, func);
    return once.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
