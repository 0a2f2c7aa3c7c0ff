/* Which loops cpu-interchange moves: those around the points of a tile, what the points begin with, and what is done with them behind
 * the loops. */
#include "cpu/interchange.h"

#include "cpu/buffers.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

static int64_t extent_of(const TileOp *loop) { return tile_op_integer(loop, TILE_ATTRIBUTE_EXTENT, 0); }

/* The only loop in the block, if all else in it may be moved: *plain is false if there is something that may not. */
static TileOp *only_loop(const TileBlock *block, bool *plain) {
    TileOp *found = NULL;
    for (TileOp *op = block->first; op != block->last; op = op->next) {
        bool loop = op->id == TILE_OP_FOR || op->id == TILE_OP_LOOP;
        bool pure = (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count;
        if (loop && found) *plain = false;
        if (loop) found = op;
        if (!loop && !pure && op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) *plain = false;
    }
    return found;
}

static bool has_store(const TileBlock *block) {
    for (const TileOp *op = block->first; op; op = op->next)
        if (op->id == TILE_OP_STORE) return true;
    return false;
}

static bool find_chain(TileOp *op, Chain *chain) {
    bool plain = true;
    for (TileOp *next; op; op = next) {
        bool loop = op->id == TILE_OP_LOOP;
        if (op->result_count || (loop ? chain->loop_count == INTERCHANGE_LOOPS : chain->for_count == INTERCHANGE_FORS)) return false;
        if (loop && tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, 0) != TILE_LOOP_KIND_PARALLEL) return false;
        if (!loop && (chain->loop_count || !tile_value_is_integer(tile_op_named(op, TILE_OPERAND_STEP), 1))) return false;
        if (loop)
            chain->loops[chain->loop_count++] = op;
        else
            chain->fors[chain->for_count++] = op;
        next = only_loop(&op->regions[0], &plain);
        if (!plain || (next && has_store(&op->regions[0]))) return false;
    }
    for (unsigned i = 0; i < chain->loop_count; i++)
        for (unsigned k = 0; k < 2; k++)
            if (!tile_value_outside(tile_op_operand(chain->loops[i], k), chain->fors[0])) return false;
    return chain->for_count && chain->loop_count;
}

/* The loop whose index it is; NULL: none of these. */
static TileOp *loop_of(TileOp *const *loops, unsigned count, const TileValue *index) {
    for (unsigned i = 0; i < count; i++)
        if (loops[i]->regions[0].arguments[0] == index) return loops[i];
    return NULL;
}

TileOp *interchange_loop_of(const Chain *chain, const TileValue *index) { return loop_of(chain->loops, chain->loop_count, index); }

unsigned interchange_point_of(const Chain *chain, const TileOp *op) {
    for (unsigned i = 0; i < chain->points; i++)
        if (chain->load[i] == op) return i + 1;
    if (!chain->after[0] || op->id != TILE_OP_LOAD) return 0;
    const TileValue *buffer = tile_buffer_of(tile_op_named(op, TILE_OPERAND_ADDRESS));
    for (unsigned i = 0; buffer && i < chain->points; i++)
        if (tile_buffer_of(tile_op_named(chain->store[i], TILE_OPERAND_ADDRESS)) == buffer) return i + 1;
    return 0;
}

/* The bytes between neighbouring points along the loop of this offset. */
static TileOp *scaled_index(TileOp *const *loops, unsigned count, const TileValue *offset, int64_t *scale) {
    const TileOp *product = tile_value_def(offset, TILE_OP_MUL);
    *scale = 1;
    if (!product) return loop_of(loops, count, offset);
    return tile_value_integer(tile_op_operand(product, 1), scale) ? loop_of(loops, count, tile_op_operand(product, 0)) : NULL;
}

/* Where the points of loops are in a buffer. */
typedef struct Places {
    int64_t stride[INTERCHANGE_LOOPS]; /* bytes from one iteration to the next */
    bool shifted; /* by offsets that are no loop's */
} Places;

/* Has each point of the loops its own element at the address, and the innermost loop neighbours? */
static bool has_points(TileOp *const *loops, unsigned count, const TileValue *address, int64_t bytes, const TileOp *outermost, Places *places) {
    int64_t scale, element = bytes;
    *places = (Places){.shifted = false};
    for (; address->op && address->op->id == TILE_OP_PTR_ADD; address = tile_op_operand(address->op, 0)) {
        const TileValue *offset = tile_op_operand(address->op, 1);
        const TileOp *loop = scaled_index(loops, count, offset, &scale);
        for (unsigned i = 0; loop && i < count; i++)
            if (loops[i] == loop) places->stride[i] += scale;
        if (!loop && !tile_value_outside(offset, outermost)) return false;
        places->shifted |= !loop;
    }
    for (unsigned i = count; i-- > 0;) {
        if (places->stride[i] < bytes) return false;
        bytes = places->stride[i] * extent_of(loops[i]);
    }
    return places->stride[count - 1] == element;
}

/* Finds the load that reads what the store overwrites. */
static bool add_point(Chain *chain, TileOp *store) {
    TileValue *address = tile_op_named(store, TILE_OPERAND_ADDRESS);
    const TileValue *buffer = tile_buffer_of(address);
    int64_t bytes = tile_scalar_bytes(tile_op_operand(store, 0)->type->scalar);
    if (!buffer || chain->points == INTERCHANGE_POINTS || tile_op_has_part(store, TILE_PARTS_MASK)) return false;
    Places places;
    if (!has_points(chain->loops, chain->loop_count, address, bytes, chain->fors[0], &places) || tile_buffer_uses(buffer, chain->fors[0]) != 2) return false;
    for (TileOp *op = store->block->first; op != store; op = op->next) {
        if (op->id != TILE_OP_LOAD || tile_op_operand(op, 0) != address || tile_op_has_part(op, TILE_PARTS_MASK)) continue;
        chain->load[chain->points] = op;
        chain->store[chain->points++] = store;
        return true;
    }
    return false;
}

static bool find_points(Chain *chain) {
    TileBlock *body = &chain->loops[chain->loop_count - 1]->regions[0];
    for (TileOp *op = body->first; op; op = op->next)
        if (op->id == TILE_OP_STORE && !add_point(chain, op)) return false;
    return chain->points > 0;
}

bool interchange_find(TileOp *op, Chain *chain) {
    *chain = (Chain){.for_count = 0};
    return find_chain(op, chain) && find_points(chain);
}

/* ---- what stands before and behind them ---- */

static bool is_pure(const TileOp *op) { return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count; }

/* The loops over points from this one inward, as many as the chain has, of which only the innermost has stores; false: there are
 * others, or more is done in them. */
static bool find_loops(const Chain *chain, TileOp *op, TileOp **loops) {
    for (unsigned i = 0; i < chain->loop_count; i++) {
        bool plain = true, parallel = op && op->id == TILE_OP_LOOP && !op->result_count && !tile_op_get(op, TILE_ATTRIBUTE_VECTOR);
        if (!parallel || tile_op_integer(op, TILE_ATTRIBUTE_LOOP_KIND, 0) != TILE_LOOP_KIND_PARALLEL) return false;
        loops[i] = op;
        op = only_loop(&op->regions[0], &plain);
        if (!plain || (op && has_store(&loops[i]->regions[0]))) return false;
    }
    return !op;
}

/* All uses of a pointer, and of what is computed from it. */
static unsigned count_uses(const TileValue *pointer) {
    unsigned count = 0;
    for (const TileUse *use = pointer->first_use; use; use = use->next)
        count += use->user->id == TILE_OP_PTR_ADD ? count_uses(&use->user->results[0]) : 1;
    return count;
}

/* Is the address that of the chain's point number `point`, in other loops over the same points? */
static bool is_same_point(const Chain *chain, unsigned point, TileOp *const *loops, const TileValue *address) {
    const TileValue *own = tile_op_named(chain->store[point], TILE_OPERAND_ADDRESS);
    int64_t bytes = tile_scalar_bytes(chain->load[point]->results[0].type->scalar);
    Places places, others;
    if (tile_buffer_of(own) != tile_buffer_of(address)) return false;
    bool found = has_points(chain->loops, chain->loop_count, own, bytes, chain->fors[0], &places) &&
                 has_points(loops, chain->loop_count, address, bytes, loops[0], &others);
    for (unsigned i = 0; found && i < chain->loop_count; i++) found = places.stride[i] == others.stride[i];
    return found && !places.shifted && !others.shifted;
}

/* Do these loops go over all points of the chain's? */
static bool covers(const Chain *chain, TileOp *const *loops) {
    int64_t lo, hi;
    for (unsigned i = 0; i < chain->loop_count; i++) {
        const TileValue *first = tile_op_operand(loops[i], 0), *end = tile_op_operand(loops[i], 1);
        bool from = first == tile_op_operand(chain->loops[i], 0) || (tile_value_integer(first, &lo) && lo <= 0);
        bool to = end == tile_op_operand(chain->loops[i], 1) || (tile_value_integer(end, &hi) && hi >= extent_of(chain->loops[i]));
        if (!from || !to) return false;
    }
    return true;
}

/* What loops ahead of the chain store to all points, if it is one value. */
static void find_start(Chain *chain, unsigned point) {
    const TileValue *buffer = tile_buffer_of(tile_op_named(chain->store[point], TILE_OPERAND_ADDRESS));
    TileOp *loops[INTERCHANGE_LOOPS], *store = NULL;
    unsigned stores = 0;
    for (TileOp *op = chain->fors[0]->previous; op; op = op->previous) {
        if (is_pure(op)) continue;
        if (!find_loops(chain, op, loops)) return;
        if (!tile_buffer_uses(buffer, op)) continue;
        for (TileOp *inner = loops[chain->loop_count - 1]->regions[0].first; inner; inner = inner->next)
            if (inner->id == TILE_OP_STORE) store = inner, stores++;
        bool fills = stores == 1 && tile_buffer_uses(buffer, op) == 1 && !tile_op_has_part(store, TILE_PARTS_MASK) && covers(chain, loops) &&
                     tile_value_outside(tile_op_operand(store, 0), op) &&
                     is_same_point(chain, point, loops, tile_op_named(store, TILE_OPERAND_ADDRESS));
        if (!fills) return;
        chain->start[point] = tile_op_operand(store, 0);
        chain->fill[point] = op;
        return;
    }
}

/* Where the pointer comes from. */
static const TileValue *base_of(const TileValue *pointer) {
    while (pointer->op && pointer->op->id == TILE_OP_PTR_ADD) pointer = tile_op_operand(pointer->op, 0);
    return pointer;
}

typedef struct Accesses {
    const Chain *chain;
    TileOp *const *loops; /* behind the chain */
    unsigned points;      /* of the chain that are read in them */
    bool apart;           /* no load reads what is stored behind the chain, and all are of memory that is known */
} Accesses;

static void look(TileOp *op, void *state) {
    Accesses *found = state;
    if (op->id != TILE_OP_LOAD && op->id != TILE_OP_STORE) return;
    const TileValue *address = tile_op_named(op, TILE_OPERAND_ADDRESS), *base = base_of(address);
    for (unsigned i = 0; op->id == TILE_OP_LOAD && found->loops && i < found->chain->points; i++) {
        if (!is_same_point(found->chain, i, found->loops, address) || tile_op_has_part(op, TILE_PARTS_MASK)) continue;
        found->points++;
        return;
    }
    const TileParameter *parameter = base->op ? NULL : &base->block->func->parameters[base->index];
    bool store = op->id == TILE_OP_STORE, own = tile_buffer_of(address) != NULL;
    if (found->loops || !own) found->apart &= parameter && parameter->noalias && (store || parameter->readonly);
}

/* Loops behind the chain over the same points, which are the only ones that read them, and store elsewhere. */
static void find_after(Chain *chain) {
    TileOp *op = chain->fors[0]->next, *loops[INTERCHANGE_LOOPS];
    while (op && is_pure(op)) op = op->next;
    if (!op || !find_loops(chain, op, loops)) return;
    for (unsigned i = 0; i < chain->loop_count; i++)
        for (unsigned k = 0; k < 2; k++)
            if (tile_op_operand(loops[i], k) != tile_op_operand(chain->loops[i], k)) return;
    Accesses found = {.chain = chain, .apart = true};
    tile_block_walk(&chain->fors[0]->regions[0], look, &found);
    found.loops = loops;
    tile_block_walk(&loops[0]->regions[0], look, &found);
    unsigned uses = 0;
    for (unsigned i = 0; i < chain->points; i++) {
        if (!chain->start[i]) return;
        uses += count_uses(tile_buffer_of(tile_op_named(chain->store[i], TILE_OPERAND_ADDRESS)));
    }
    /* of each buffer its fill, the load and the store of the chain, and the loads behind it */
    if (!found.apart || !found.points || uses != 3 * chain->points + found.points) return;
    for (unsigned i = 0; i < chain->loop_count; i++) chain->after[i] = loops[i];
}

void interchange_find_ends(Chain *chain) {
    for (unsigned i = 0; i < chain->points; i++) find_start(chain, i);
    find_after(chain);
}

