/* Purpose: load first, and compute meanwhile what all programs have in common. Numbers that a text computes outside of its grid, as powers and quotients of parameters,
 * are computed by each thread in front of all else: hundreds of cycles in which nothing is loaded. They move behind the first op that loads, if nobody needs them before. A few ops stay:
 * what is loaded would be in registers over the branches of a division.
 * Where a grid waits for the one before, they are computed meanwhile, and stay.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global> {role = data}, %y: ptr<global> {role = data}, %rate: f32, %n: i64) threads = 32 {
 *       %p1 = mul %rate, %rate : f32
 *       %p2 = mul %p1, %rate : f32
 *       %p3 = mul %p2, %rate : f32
 *       %p4 = mul %p3, %rate : f32
 *       %p5 = mul %p4, %rate : f32
 *       %p6 = mul %p5, %rate : f32
 *       %p7 = mul %p6, %rate : f32
 *       %p8 = mul %p7, %rate : f32
 *       %at = ptr_add %x, %n : ptr<global>
 *       %v = load %at : f32
 *       %w = mul %v, %p8 : f32
 *       store %w, %y
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global> {role = data, argument = 0}, %y: ptr<global> {role = data, argument = 0}, %rate: f32, %n: i64) threads = 32 {
 *       %at = ptr_add %x, %n : ptr<global>
 *       %v = load %at : f32
 *       %p1 = mul %rate, %rate : f32
 *       %p2 = mul %p1, %rate : f32
 *       %p3 = mul %p2, %rate : f32
 *       %p4 = mul %p3, %rate : f32
 *       %p5 = mul %p4, %rate : f32
 *       %p6 = mul %p5, %rate : f32
 *       %p7 = mul %p6, %rate : f32
 *       %p8 = mul %p7, %rate : f32
 *       %w = mul %v, %p8 : f32
 *       store %w, %y
 *       return
 *     }
 * Needs: to come behind the last licm and cse, which undo it. Keeps: machine form, and the order of all that is not pure. Cost: linear in the ops and uses. */
#include "lang/ir/operands.h"
#include "ptx/passes.h"

/* Fewer numbers than these are computed where they are. */
enum { FEW = 8 };

static void find_load(TileOp *op, void *found) { *(bool *)found |= op->id == TILE_OP_LOAD; }

/* The first op of the block that loads, or whose regions do; NULL: none does. */
static TileOp *first_load(TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool found = false;
        find_load(op, &found);
        for (unsigned i = 0; i < op->region_count; i++) tile_block_walk(&op->regions[i], find_load, &found);
        if (found) return op;
    }
    return NULL;
}

/* The op of the block that the op is in, or is. */
static const TileOp *in_block(const TileOp *op, const TileBlock *block) {
    while (op && op->block != block) op = op->block->op;
    return op;
}

static bool is_number(const TileType *type) { return type->kind == TILE_TYPE_SCALAR || type->kind == TILE_TYPE_VECTOR; }

/* Is the op needed only by what has moved, which `late` has, or comes behind the load? One without floats is moved only for others. */
static bool can_wait(const TileOp *op, const TileMap *late, const TileMap *early) {
    if (op->result_count != 1 || op->region_count || !tile_op_is_pure(op) || !is_number(op->results[0].type)) return false;
    bool feeds = tile_scalar_is_float(op->results[0].type->scalar) && op->operand_count;
    for (const TileUse *use = op->results[0].first_use; use; use = use->next) {
        const TileOp *user = in_block(use->user, op->block);
        if (!user || tile_map_get(early, user)) return false;
        feeds |= tile_map_get(late, user) != NULL;
    }
    return feeds && op->results[0].first_use;
}

/* Finds what can wait, and moves it if asked to. Returns how many floats that is. */
static unsigned visit(TilePassContext *context, TileOp *load, bool moves) {
    TileMap late, early;
    unsigned count = 0;
    tile_map_init(&late, context->scratch);
    tile_map_init(&early, context->scratch);
    for (TileOp *op = load; op; op = op->previous) tile_map_set(&early, op, op);
    for (TileOp *op = load->previous, *previous; op; op = previous) {
        previous = op->previous;
        if (!can_wait(op, &late, &early)) continue;
        tile_map_set(&early, op, NULL);
        tile_map_set(&late, op, op);
        count += tile_scalar_is_float(op->results[0].type->scalar) && op->operand_count;
        if (!moves) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, load->next);
    }
    return count;
}

TileResult tile_pass_gpu_late_numbers(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE || func->form != TILE_FORM_MACHINE) return TILE_RESULT_UNCHANGED;
    TileOp *load = first_load(&func->body);
    for (TileOp *op = load; op; op = op->previous)
        if (op->id == TILE_OP_GRID_WAIT) return TILE_RESULT_UNCHANGED;
    if (!load || visit(context, load, false) < FEW) return TILE_RESULT_UNCHANGED;
    visit(context, load, true);
    return TILE_RESULT_CHANGED;
}
