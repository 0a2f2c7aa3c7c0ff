/* Purpose: dead code elimination: remove ops without effects and uses, and loop-carried values that are used only to
 * compute themselves.
 *
 * Before:
 *     func kernel tile @k(%y: tensor<f32, 1, out>, %n: i64, %f: f32) {
 *       grid %n (%i: i64) {
 *         %lo = const {value = 0} : i64
 *         %hi = const {value = 4} : i64
 *         %step = const {value = 1} : i64
 *         %unused = exp %f : f32
 *         %a, %b = for %lo, %hi, %step, %f, %f : f32, f32 (%j: i64, %p: f32, %q: f32) {
 *           %p2 = neg %p : f32
 *           %q2 = abs %q : f32
 *           yield %p2, %q2
 *         }
 *         store_tile %y, %a, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func kernel tile @k(%y: tensor<f32, 1, out>, %n: i64, %f: f32) {
 *       grid %n (%i: i64) {
 *         %lo = const {value = 0} : i64
 *         %hi = const {value = 4} : i64
 *         %step = const {value = 1} : i64
 *         %a = for %lo, %hi, %step, %f : f32 (%j: i64, %p: f32) {
 *           %p2 = neg %p : f32
 *           yield %p2
 *         }
 *         store_tile %y, %a, %i {access = [index]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: nothing. Keeps: all effects and their order; a `while` may not terminate, which is an effect.
 * Cost: linear. */
#include "lowering/dce.h"

typedef struct Liveness {
    TileArena *arena;
    TileKeep keeps; /* NULL: ops with effects are kept */
    bool *live; /* by value number */
    TILE_LIST(TileValue *) worklist;
    bool changed;
} Liveness;

static bool is_live(const Liveness *liveness, const TileValue *value) { return liveness->live[value->number]; }

static void mark(Liveness *liveness, TileValue *value) {
    if (is_live(liveness, value)) return;
    liveness->live[value->number] = true;
    tile_list_push(liveness->arena, &liveness->worklist, value);
}

/* Is the temp passed to phases? Once grids are functions, every phase has each temp as a parameter. */
static bool is_parameter_of_phases(const TileOp *temp) {
    for (const TileFunc *func = tile_op_func(temp)->module->first; func; func = func->next)
        if (func->kind == TILE_FUNC_PHASE) return true;
    return false;
}

/* May the op be removed if its results have no uses? Ops that only read memory may, besides those of tile_op_is_pure.
 */
static bool is_removable(const TileOp *op) {
    switch (op->id) {
    case TILE_OP_LOAD_TILE:
    case TILE_OP_LOAD:
    case TILE_OP_GATHER:
    case TILE_OP_BUFFER: return true;
    case TILE_OP_TEMP: return !is_parameter_of_phases(op);
    case TILE_OP_FOR:
    case TILE_OP_IF:
    case TILE_OP_LOOP:
    case TILE_OP_FOLD_LOOP: break;
    default: return tile_op_is_pure(op);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (!is_removable(inner)) return false;
    return true;
}

static bool may_go(const Liveness *liveness, const TileOp *op) {
    if (!liveness->keeps) return is_removable(op);
    if (liveness->keeps(op)) return false;
    for (unsigned r = 0; r < op->region_count; r++)
        for (const TileOp *inner = op->regions[r].first; inner; inner = inner->next)
            if (!may_go(liveness, inner)) return false;
    return true;
}

/* The index of the first loop-carried operand or argument, behind bounds and induction variable. */
static unsigned carried_operand(const TileOp *op) { return op->id == TILE_OP_FOR ? 3 : op->id == TILE_OP_LOOP ? 2 : 0; }
static unsigned carried_argument(const TileOp *op) { return op->id == TILE_OP_WHILE ? 0 : 1; }
static bool is_loop(const TileOp *op) {
    return op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE || op->id == TILE_OP_LOOP;
}

/* The value of an arg_max and the index that follows it are live together. */
static void mark_partner(Liveness *liveness, TileOp *op, unsigned slot) {
    const TileAttribute *combine = tile_op_get(op, TILE_ATTRIBUTE_COMBINE);
    if (!combine) return;
    if (combine->integers[slot] == TILE_COMBINE_WITH) mark(liveness, tile_op_result(op, slot - 1));
    if (slot + 1 < combine->count && combine->integers[slot + 1] == TILE_COMBINE_WITH)
        mark(liveness, tile_op_result(op, slot + 1));
}

/* Removes what a list says of result `slot`: the combiner of a reduce loop, the buffer of a carried tile. */
static void drop_entry(TileOp *op, TileAttributeKey key, unsigned slot) {
    TileModule *module = tile_op_func(op)->module;
    const TileAttribute *list = tile_op_get(op, key);
    if (!list) return;
    TileAttribute shorter = *list;
    int64_t *entries = TILE_NEW_ARRAY(module->arena, int64_t, list->count);
    shorter.integers = entries;
    shorter.count = 0;
    for (unsigned i = 0; i < list->count; i++)
        if (i != slot) entries[shorter.count++] = list->integers[i];
    tile_op_set(module, op, shorter);
}

/* Loop-carried value `slot`, or result `slot` of an if, is live: so are its initial value and the values that regions
 * yield for it. */
static void mark_slot(Liveness *liveness, TileOp *op, unsigned slot) {
    mark(liveness, tile_op_result(op, slot));
    mark_partner(liveness, op, slot);
    if (is_loop(op)) mark(liveness, tile_op_operand(op, carried_operand(op) + slot));
    for (unsigned r = 0; r < op->region_count; r++) {
        TileBlock *region = &op->regions[r];
        if (is_loop(op)) mark(liveness, region->arguments[carried_argument(op) + slot]);
        mark(liveness, tile_op_operand(region->last, slot + (region->last->id == TILE_OP_CONDITION)));
    }
}

/* Are the results yielded by the regions, one by one? */
static bool has_slots(const TileOp *op) { return is_loop(op) || op->id == TILE_OP_IF; }

/* The op is live: so are its operands, but not the loop-carried ones. */
static void mark_op(Liveness *liveness, TileOp *op) {
    unsigned count = op->operand_count;
    if (is_loop(op))
        count = carried_operand(op);
    else if (op->id == TILE_OP_CONDITION)
        count = 1;
    else if (op->id == TILE_OP_YIELD && has_slots(op->block->op))
        count = 0;
    for (unsigned i = 0; i < count; i++) mark(liveness, tile_op_operand(op, i));
}

static void mark_root(TileOp *op, void *state) {
    bool terminator = (tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR) != 0;
    if (terminator || !may_go(state, op)) mark_op(state, op);
}

static void propagate(Liveness *liveness) {
    while (liveness->worklist.count) {
        TileValue *value = liveness->worklist.items[--liveness->worklist.count];
        TileOp *op = value->op ? value->op : value->block->op;
        if (!op) continue;
        if (value->op) mark_op(liveness, op);
        if (value->op && has_slots(op)) mark_slot(liveness, op, value->index);
        if (value->block && is_loop(op) && value->index >= carried_argument(op))
            mark_slot(liveness, op, value->index - carried_argument(op));
    }
}

static bool is_dead(const Liveness *liveness, const TileOp *op) {
    if (tile_op_info(op->id)->traits & TILE_TRAIT_TERMINATOR || !may_go(liveness, op)) return false;
    for (unsigned i = 0; i < op->result_count; i++)
        if (is_live(liveness, &op->results[i])) return false;
    return true;
}

static void sweep_block(Liveness *liveness, TileBlock *block);

/* Removes dead slots. Yields drop them first, so that bodies can be swept before arguments are removed. */
static void sweep_regions(Liveness *liveness, TileOp *op) {
    bool slots = has_slots(op);
    for (unsigned slot = slots ? op->result_count : 0; slot-- > 0;) {
        if (is_live(liveness, &op->results[slot])) continue;
        for (unsigned r = 0; r < op->region_count; r++) {
            TileOp *end = op->regions[r].last;
            tile_op_remove_operand(end, slot + (end->id == TILE_OP_CONDITION));
        }
    }
    for (unsigned r = 0; r < op->region_count; r++) sweep_block(liveness, &op->regions[r]);
    for (unsigned slot = slots ? op->result_count : 0; slot-- > 0;) {
        if (is_live(liveness, &op->results[slot])) continue;
        liveness->changed = true;
        if (is_loop(op)) {
            tile_op_remove_operand(op, carried_operand(op) + slot);
            for (unsigned r = 0; r < op->region_count; r++)
                tile_block_remove_argument(&op->regions[r], carried_argument(op) + slot);
        }
        drop_entry(op, TILE_ATTRIBUTE_COMBINE, slot);
        drop_entry(op, TILE_ATTRIBUTE_BUFFERS, slot);
        tile_op_remove_result(op, slot);
    }
}

static void sweep_block(Liveness *liveness, TileBlock *block) {
    for (TileOp *op = block->last, *previous; op; op = previous) {
        previous = op->previous;
        if (is_dead(liveness, op)) {
            tile_op_erase(op);
            liveness->changed = true;
        } else {
            sweep_regions(liveness, op);
        }
    }
}

static bool remove_dead(TilePassContext *context, TileFunc *func, TileBlock *block, TileKeep keeps) {
    uint32_t count = tile_func_number(func);
    Liveness liveness = {
        .arena = context->scratch, .live = TILE_NEW_ARRAY(context->scratch, bool, count), .keeps = keeps};
    tile_block_walk(block, mark_root, &liveness);
    propagate(&liveness);
    sweep_block(&liveness, block);
    return liveness.changed;
}

bool tile_dce_slice(TilePassContext *context, TileBlock *block, TileKeep keeps) {
    return remove_dead(context, block->func, block, keeps);
}

TileResult tile_pass_dce(TilePassContext *context, TileFunc *func) {
    return remove_dead(context, func, &func->body, NULL) ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
