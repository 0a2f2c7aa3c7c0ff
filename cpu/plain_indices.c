/* Purpose: take indices of lanes as they are where a mask leaves out those that are replaced. A gather's index is -1 in lanes that a tensor's last tile has not, and
 * the mask compares it with 0: an index that is no longer a number plus the lane's, so that neighbours are gathered one by one. Under a mask that is false where
 * the index is -1 the load takes the index that is there without that, and the mask asks for the lane.
 *
 * Run: --passes=cpu-plain-indices,canonicalise,cse,dce --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %first: i64, %width: i64) {
 *       %c0 = const {value = 0} : i64
 *       %c4 = const {value = 4} : i64
 *       %all = const {value = 64} : i64
 *       %out = const {value = -1} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %c0, %all {loop = parallel, extent = 64} (%i: i64) {
 *         %there = lt %i, %n : bool
 *         %place = add %i, %first : i64
 *         %index = select %there, %place, %out : i64
 *         %above = ge %index, %c0 : bool
 *         %below = lt %index, %width : bool
 *         %mask = and %above, %below : bool
 *         %o = mul %index, %c4 : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %v = load %p, %mask, %none {parts = [mask, fill]} : f32
 *         %s = mul %i, %c4 : i64
 *         %q = ptr_add %y, %s : ptr<global>
 *         store %v, %q
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %n: i64, %first: i64, %width: i64) {
 *       %c0 = const {value = 0} : i64
 *       %c4 = const {value = 4} : i64
 *       %all = const {value = 64} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %c0, %all {loop = parallel, extent = 64} (%i: i64) {
 *         %there = lt %i, %n : bool
 *         %place = add %i, %first : i64
 *         %above = ge %place, %c0 : bool
 *         %below = lt %place, %width : bool
 *         %mask = and %above, %below : bool
 *         %0 = const {value = false} : bool
 *         %1 = select %there, %mask, %0 : bool
 *         %o = mul %place, %c4 : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %v = load %p, %1, %none {parts = [mask, fill]} : f32
 *         %s = mul %i, %c4 : i64
 *         %q = ptr_add %y, %s : ptr<global>
 *         store %v, %q
 *         yield
 *       }
 *       return
 *     }
 * Needs: cse. Keeps: machine form, every result. Cost: linear in the ops of masks and addresses. */
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/each.h"

enum { MOST_DEPTH = 24 };

typedef struct Plain {
    TileModule *module;
    TileArena *scratch;
    TileOp *load;
    TileOp *choice; /* the select that replaces the index */
    TileMap follows; /* values that are computed from it */
    bool changed;
} Plain;

static bool is_pure(const TileOp *op) { return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_PURE) && !op->region_count && op->result_count == 1; }

/* Is the bool true only where both of its operands are? */
static bool is_both(const TileOp *op) {
    return op && (op->id == TILE_OP_AND || (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)));
}

/* An index that the mask wants to be at least 0, of which the load's lane may have -1 in its place. */
static TileOp *find_choice(const Plain *x, const TileValue *mask, unsigned depth) {
    const TileOp *op = mask->op;
    if (!op || depth == MOST_DEPTH || op->block != x->load->block) return NULL;
    if (is_both(op)) {
        TileOp *found = find_choice(x, tile_op_operand(op, 0), depth + 1);
        return found ? found : find_choice(x, tile_op_operand(op, 1), depth + 1);
    }
    if (op->id != TILE_OP_GE || !tile_value_is_integer(tile_op_operand(op, 1), 0)) return NULL;
    TileOp *choice = tile_value_def(tile_op_operand(op, 0), TILE_OP_SELECT);
    int64_t other;
    bool replaced = choice && choice->block == x->load->block && tile_value_integer(tile_op_named(choice, TILE_OPERAND_Y), &other) && other < 0;
    return replaced ? choice : NULL;
}

/* Marks what follows from the choice by pure ops in front of the load. */
static void mark_followers(Plain *x) {
    tile_map_init(&x->follows, x->scratch);
    tile_map_set(&x->follows, &x->choice->results[0], x->choice);
    for (TileOp *op = x->choice->next; op && op != x->load; op = op->next) {
        bool any = false;
        for (unsigned i = 0; i < op->operand_count; i++) any |= tile_map_get(&x->follows, tile_op_operand(op, i)) != NULL;
        if (any && is_pure(op)) tile_map_set(&x->follows, &op->results[0], op);
    }
}

/* The value with the index as it is, in front of `b`. */
static TileValue *with_index(Plain *x, TileBuilder *b, TileValue *value, TileMap *map) {
    TileValue *known = tile_map_get(map, value);
    if (known || !tile_map_get(&x->follows, value)) return known ? known : value;
    for (unsigned i = 0; i < value->op->operand_count; i++) {
        TileValue *operand = tile_op_operand(value->op, i);
        tile_map_set(map, operand, with_index(x, b, operand, map));
    }
    tile_builder_insert(b, tile_op_clone(x->module, value->op, map));
    return tile_map_get(map, value);
}

static bool take_plain(Plain *x) {
    TileValue *mask = tile_op_named(x->load, TILE_OPERAND_MASK), *address = tile_op_named(x->load, TILE_OPERAND_ADDRESS);
    x->choice = mask ? find_choice(x, mask, 0) : NULL;
    if (!x->choice) return false;
    mark_followers(x);
    if (!tile_map_get(&x->follows, address)) return false;
    TileMap map;
    tile_map_init(&map, x->scratch);
    tile_map_set(&map, &x->choice->results[0], tile_op_operand(x->choice, 1));
    TileBuilder b = tile_builder_before(x->module, mask->op->next);
    b.location = x->load->location;
    TileValue *there = tile_op_operand(x->choice, 0), *plain = with_index(x, &b, mask, &map);
    TileValue *own = tile_build_ternary(&b, TILE_OP_SELECT, there, plain, tile_build_bool(&b, false));
    b = tile_builder_before(x->module, x->load);
    TileValue *place = with_index(x, &b, address, &map);
    unsigned count;
    tile_op_set_operand(x->load, tile_op_operands(x->load, TILE_OPERAND_ADDRESS, &count), place);
    for (TileUse *use = mask->first_use, *next; use; use = next) {
        next = use->next;
        if (use->user != own->op) tile_op_set_operand(use->user, use->index, own);
    }
    x->changed = true;
    return true;
}

TileResult tile_pass_cpu_plain_indices(TilePassContext *context, TileFunc *func) {
    TileOps found = tile_find_each(&func->body, TILE_OP_LOAD, context->scratch);
    Plain x = {.module = context->module, .scratch = context->scratch};
    for (size_t i = 0; i < found.count; i++) {
        x.load = found.items[i];
        for (unsigned n = 0; n < MOST_DEPTH && take_plain(&x); n++) continue; /* one index after the other */
    }
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
