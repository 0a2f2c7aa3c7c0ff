/* What masks depend on, found in the machine form: whether they tell lanes that exist from such that do not. */
#include "lang/execute/execute.h"
#include "lang/execute/state.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum { MOST_STEPS = 256, MOST_OPERANDS = 3, MOST_DEPTH = 64 };

typedef struct Place {
    const TileValue *base;
    int64_t offset;
} Place;

typedef struct Write {
    Place place;
    TileValue *value;
} Write;

/* ---- threads ---- */

/* The bits of a scalar that is computed from this thread's number and constants only; false if it is not, or if that
 * takes too many steps. */
static bool evaluate_at(const TileValue *value, uint64_t thread, unsigned *steps, uint64_t *bits) {
    const TileOp *op = value->op;
    if (!op || value->type->kind != TILE_TYPE_SCALAR || ++*steps > MOST_STEPS) return false;
    TileScalar to = value->type->scalar;
    if (op->id == TILE_OP_THREAD) return *bits = thread, true;
    if (op->id == TILE_OP_CONST)
        return *bits = tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits & tile_scalar_mask(to), true;
    if (tile_op_info(op->id)->class != TILE_CLASS_ELEMENTWISE || op->operand_count > MOST_OPERANDS) return false;
    uint64_t operands[MOST_OPERANDS];
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!evaluate_at(op->operands[i].value, thread, steps, &operands[i])) return false;
    return tile_eval(op->id, tile_eval_operand_type(op), to, operands, bits);
}

/* Is it true for the same threads of every block, and false for others: not for all? */
static bool chooses_threads(const TileFunc *func, const TileValue *mask) {
    uint32_t chosen = 0;
    for (uint32_t thread = 0; thread < func->threads; thread++) {
        unsigned steps = 0;
        uint64_t bits;
        if (!evaluate_at(mask, thread, &steps, &bits)) return false;
        chosen += bits != 0;
    }
    return chosen > 0 && chosen < func->threads;
}

/* ---- data ---- */

/* What is found out of a function's values, for all of its masks. */
struct ExecMasks {
    const TileFunc *func;
    TileMap data, other; /* values that come of data, and such that do not */
    TileMap seen;        /* of this question */
    TILE_LIST(Write) writes;
};

/* Memory of the compiler's own: what a pointer is added to, and the first constant that is added. */
static Place place_of(const TileValue *pointer) {
    Place place = {pointer, 0};
    for (const TileOp *op; (op = tile_value_def(place.base, TILE_OP_PTR_ADD)); place.base = tile_op_operand(op, 0))
        if (!tile_value_integer(tile_op_operand(op, 1), &place.offset)) place.offset = 0;
    return place;
}

static bool is_global(const TileValue *value) { return value->type->kind == TILE_TYPE_POINTER && value->type->space == TILE_SPACE_GLOBAL; }

/* An op that writes to memory of the compiler's own puts there what its other operands are, or point to. */
static void list_writes(TileOp *op, void *state) {
    ExecMasks *masks = state;
    for (unsigned i = 0; tile_op_writes(op) && !op->region_count && i < op->operand_count; i++) {
        TileValue *to = tile_op_operand(op, i);
        if (to->type->kind != TILE_TYPE_POINTER || is_global(to)) continue;
        for (unsigned k = 0; k < op->operand_count; k++)
            if (k != i) tile_list_push(masks->data.arena, &masks->writes, (Write){place_of(to), tile_op_operand(op, k)});
    }
}

static bool comes_of_data(ExecMasks *masks, TileValue *value);

/* Does the op read memory that kernels see, or where data was put? Other memory of the compiler's own may hold anything, masks too. */
static bool reads_data(ExecMasks *masks, const TileOp *op) {
    if (!tile_op_reads(op) || op->region_count || !op->operand_count) return false;
    const TileValue *from = tile_op_operand(op, 0);
    if (from->type->kind != TILE_TYPE_POINTER || is_global(from)) return is_global(from);
    Place place = place_of(from);
    for (size_t i = 0; i < masks->writes.count; i++) {
        const Write *write = &masks->writes.items[i];
        bool same = write->place.base == place.base && write->place.offset == place.offset;
        if (same && (is_global(write->value) || comes_of_data(masks, write->value))) return true;
    }
    return false;
}

/* What a region yields, or a loop begins with, at a place. */
static bool yields_data(ExecMasks *masks, const TileOp *op, unsigned place) {
    for (unsigned r = 0; r < op->region_count; r++) {
        const TileOp *end = op->regions[r].last;
        if (end && place < end->operand_count && comes_of_data(masks, tile_op_operand(end, place))) return true;
    }
    return false;
}

/* The argument of a loop: an index, where data decides how far the loop goes; what is carried is what the loop begins with, or what an
 * iteration gives it, and how many there are. */
static bool loop_has_data(ExecMasks *masks, const TileValue *argument) {
    const TileOp *loop = argument->block->op;
    if (tile_op_is(loop, TILE_OP_WHILE)) {
        TileValue *again = tile_op_operand(loop->regions[0].last, 0);
        return comes_of_data(masks, again) || comes_of_data(masks, tile_op_operand(loop, argument->index)) ||
               yields_data(masks, loop, argument->index);
    }
    if (!loop || loop->region_count != 1 || argument->index > loop->result_count) return false;
    unsigned first = loop->operand_count - loop->result_count;
    if (argument->index > 0)
        return comes_of_data(masks, tile_op_operand(loop, first + argument->index - 1)) || yields_data(masks, loop, argument->index - 1);
    for (unsigned i = 0; i < first && loop->id == TILE_OP_FOR; i++)
        if (comes_of_data(masks, tile_op_operand(loop, i))) return true;
    return false;
}

static bool find_data(ExecMasks *masks, TileValue *value) {
    const TileOp *op = value->op;
    if (!op) return loop_has_data(masks, value);
    if (reads_data(masks, op)) return true;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (comes_of_data(masks, tile_op_operand(op, i))) return true;
    return op->region_count && yields_data(masks, op, value->index);
}

/* Is it computed from what the op, or an op around it, has read? */
static bool comes_of_data(ExecMasks *masks, TileValue *value) {
    if (tile_map_get(&masks->data, value)) return true;
    if (tile_map_get(&masks->other, value) || tile_map_get(&masks->seen, value)) return false;
    tile_map_set(&masks->seen, value, value);
    bool found = find_data(masks, value);
    if (found) tile_map_set(&masks->data, value, value);
    return found;
}

/* If it does not come of data, nothing does that it is computed from. */
static bool ask_for_data(ExecMasks *masks, TileValue *value) {
    tile_map_init(&masks->seen, masks->data.arena);
    bool found = comes_of_data(masks, value);
    for (size_t i = 0; !found && i < masks->seen.count; i++) tile_map_set(&masks->other, masks->seen.entries[i].key, value);
    return found;
}

static ExecMasks *masks_of(TileExecutor *e, TileFunc *func) {
    if (e->masks && e->masks->func == func) return e->masks;
    e->masks = TILE_NEW(e->arena, ExecMasks);
    e->masks->func = func;
    tile_map_init(&e->masks->data, e->arena);
    tile_map_init(&e->masks->other, e->arena);
    tile_block_walk(&func->body, list_writes, e->masks);
    return e->masks;
}

/* ---- conjunctions ---- */

static bool is_conjunction(const TileOp *op) {
    if (op->id == TILE_OP_SELECT) return tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0);
    return op->id == TILE_OP_AND;
}

/* `select(c, x, n) ? m`, which does not hold for the number n, is a conjunction of c and of what is asked of x: that c does not hold is
 * told by an index that is nowhere. NULL: it is another mask. */
static const TileOp *hidden_choice(const TileOp *op) {
    const TileOp *choice = op->operand_count == 2 ? tile_value_def(tile_op_operand(op, 0), TILE_OP_SELECT) : NULL;
    uint64_t operands[2], holds;
    if (!choice || tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE || op->results[0].type->scalar != TILE_BOOL) return NULL;
    if (!tile_value_bits(tile_op_named(choice, TILE_OPERAND_Y), &operands[0])) return NULL;
    if (!tile_value_bits(tile_op_operand(op, 1), &operands[1]) || !tile_eval(op->id, tile_eval_operand_type(op), TILE_BOOL, operands, &holds))
        return NULL;
    return holds ? NULL : choice;
}

/* Do all that it is a conjunction of depend on data, or choose among threads? */
static bool is_decided(ExecMasks *masks, TileValue *mask, bool *data, unsigned depth) {
    const TileOp *op = mask->op;
    if (op && depth < MOST_DEPTH) {
        if (is_conjunction(op))
            return is_decided(masks, tile_op_operand(op, 0), data, depth + 1) &&
                   is_decided(masks, tile_op_operand(op, 1), data, depth + 1);
        const TileOp *choice = hidden_choice(op);
        if (choice && !is_decided(masks, tile_op_operand(choice, 0), data, depth + 1)) return false;
        if (choice) return ask_for_data(masks, tile_op_named(choice, TILE_OPERAND_X)) ? *data = true : false;
        bool moves = tile_op_info((TileOpId)op->id)->class == TILE_CLASS_SHAPE || op->id == TILE_OP_SPLAT;
        if (moves && op->operand_count == 1) return is_decided(masks, tile_op_operand(op, 0), data, depth + 1);
    }
    if (mask->type->kind == TILE_TYPE_SCALAR && chooses_threads(masks->func, mask)) return true;
    return ask_for_data(masks, mask) ? *data = true : false;
}

/* Is the update left out where it would add nothing, whichever lane that is? */
static bool skips_nothing(const TileOp *op, const TileValue *mask) {
    const TileOp *differs = tile_value_def(mask, TILE_OP_NE);
    uint64_t bits;
    if (op->id != TILE_OP_ATOMIC_UPDATE || !differs || !tile_value_bits(tile_op_operand(differs, 1), &bits)) return false;
    const TileValue *value = tile_op_operand(differs, 0), *added = tile_op_operand(op, 1);
    uint64_t sign = (tile_scalar_mask(added->type->scalar) >> 1) + 1;
    if (tile_value_def(value, TILE_OP_BITCAST)) value = tile_op_operand(value->op, 0);
    return value == added && (!bits || (tile_scalar_is_float(added->type->scalar) && bits == sign)); /* -0 is none of a sum of floats */
}

ExecMask tile_exec_mask_of(TileExecutor *e, const TileOp *op, TileValue *mask) {
    bool data = skips_nothing(op, mask);
    if (!data && !is_decided(masks_of(e, tile_op_func(op)), mask, &data, 0)) return EXEC_MASK_LANES;
    return data ? EXEC_MASK_DATA : EXEC_MASK_THREADS;
}

void tile_exec_count_mask(TileExecutor *e, const ExecInstruction *in) {
    if (!e->options.masked) return;
    e->options.masked->lanes += in->reason == EXEC_MASK_LANES;
    e->options.masked->data += in->reason == EXEC_MASK_DATA;
}
