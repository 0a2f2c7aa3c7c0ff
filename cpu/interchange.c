/* Purpose: move loops over tiles into the points of the tile. A loop that carries a tile whose points do not meet, such as the
 * sum over a window of a depthwise convolution, loads and stores the whole tile in each iteration. Where all that its body
 * does is to update each point of a buffer by itself, the loop runs for each point, and the point stays in a register; for
 * several rows together, so that they share what depends on the loop alone.
 *
 * Run: --passes=cpu-interchange --target=avx512
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %b = buffer {bytes = 64, align = 64} : ptr<scratch>
 *       for %zero, %n, %one (%i: i64) {
 *         %s = mul %i, %four : i64
 *         %p = ptr_add %x, %s : ptr<global>
 *         loop %zero, %four {loop = parallel, extent = 16} (%c: i64) {
 *           %o = mul %c, %four : i64
 *           %q = ptr_add %p, %o : ptr<global>
 *           %v = load %q : f32
 *           %a = ptr_add %b, %o : ptr<scratch>
 *           %old = load %a : f32
 *           %new = add %old, %v : f32
 *           store %new, %a
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %n: i64) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %four = const {value = 4} : i64
 *       %b = buffer {bytes = 64, align = 64} : ptr<scratch>
 *       loop %zero, %four {loop = parallel, extent = 16, vector = 64} (%0: i64) {
 *         %1 = mul %0, %four : i64
 *         %2 = ptr_add %b, %1 : ptr<scratch>
 *         %3 = load %2 : f32
 *         %4 = loop %zero, %n, %3 {loop = sequential, extent = 9223372036854775807} : f32 (%5: i64, %6: f32) {
 *           %7 = mul %5, %four : i64
 *           %8 = ptr_add %x, %7 : ptr<global>
 *           %9 = mul %0, %four : i64
 *           %10 = ptr_add %8, %9 : ptr<global>
 *           %11 = load %10 : f32
 *           %12 = add %6, %11 : f32
 *           yield %12
 *         }
 *         store %4, %2
 *         yield
 *       }
 *       return
 *     }
 * Needs: cse, since a point is loaded and stored at the same address. Keeps: the value of each point: its updates in order.
 * Cost: linear; the body as often as rows are updated together. */
#include "cpu/interchange.h"
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lang/scalar/scalar.h"

enum {
    MOST_ROWS = 4,
    MOST_SUMS = 8, /* registers that hold sums, of 32 */
    MOST_REPEATED = 8,
    SHORT_ROW = 64 /* of which each iteration reads all */
};

typedef struct Interchange {
    TilePassContext *context;
    TileModule *module;
    Chain chain;
    TileMap needed;  /* values that the updates need */
    TileMap by_row;  /* those that differ from row to row */
    TileMap by_lane; /* those that differ from point to point of a row */
    TileMap shared;  /* old values to new ones, of all rows */
    TileMap rows[MOST_ROWS]; /* of one row */
    unsigned row_count;
    TileValue *row_index;        /* of the loop over rows, */
    TileValue *number[MOST_ROWS]; /* what it is in each row of a block, */
    TileValue *limited[MOST_ROWS]; /* and at most that of the last row that there is */
    TileValue *full; /* has the block all its rows? NULL: certainly */
    TileValue *sums[MOST_ROWS * INTERCHANGE_POINTS];
    bool whole; /* all rows exist, and all that they load */
    TileOp *behind; /* the op behind what has been moved */
    bool changed;
} Interchange;

static int64_t extent_of(const TileOp *loop) { return tile_op_integer(loop, TILE_ATTRIBUTE_EXTENT, 0); }

/* ---- what is moved ---- */

static bool is_outside(const Interchange *x, const TileValue *value) {
    const Chain *chain = &x->chain;
    return tile_value_outside(value, chain->fors[0]) && (!chain->after[0] || tile_value_outside(value, chain->after[0]));
}

static void mark_needed(Interchange *x, TileValue *value) {
    TileOp *op = value->op;
    if (!op || is_outside(x, value) || tile_map_get(&x->needed, value)) return;
    tile_map_set(&x->needed, value, value);
    if (interchange_point_of(&x->chain, op)) return;
    for (unsigned i = 0; i < op->operand_count; i++) mark_needed(x, tile_op_operand(op, i));
}

static bool differs(Interchange *x, const TileMap *map, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_map_get(map, tile_op_operand(op, i))) return true;
    return interchange_point_of(&x->chain, op);
}

static void mark_loops(Interchange *x, TileOp *const *loops) {
    unsigned count = x->chain.loop_count;
    if (count > 1) tile_map_set(&x->by_row, loops[count - 2]->regions[0].arguments[0], x->chain.fors[0]);
    tile_map_set(&x->by_lane, loops[count - 1]->regions[0].arguments[0], x->chain.fors[0]);
    for (unsigned l = 0; l < count; l++)
        for (TileOp *op = loops[l]->regions[0].first; op; op = op->next) {
            if (op->result_count != 1) continue;
            if (differs(x, &x->by_lane, op)) tile_map_set(&x->by_lane, &op->results[0], op);
            if (differs(x, &x->by_row, op)) tile_map_set(&x->by_row, &op->results[0], op);
        }
}

/* Finds the values that are needed, and those that differ from row to row. */
static void mark(Interchange *x) {
    const Chain *chain = &x->chain;
    for (unsigned i = 0; i < chain->points; i++) mark_needed(x, tile_op_operand(chain->store[i], 0));
    for (unsigned i = 0; i < chain->for_count; i++)
        for (unsigned k = 0; k < 2; k++) mark_needed(x, tile_op_operand(chain->fors[i], k));
    mark_loops(x, chain->loops);
    if (!chain->after[0]) return;
    for (TileOp *op = chain->after[chain->loop_count - 1]->regions[0].first; op; op = op->next)
        for (unsigned i = 0; op->id == TILE_OP_STORE && i < op->operand_count; i++) mark_needed(x, tile_op_operand(op, i));
    mark_loops(x, chain->after);
}

/* Marks what changes from one iteration of the loops to the next. True: it is where points are loaded from. */
static bool moves_on(Interchange *x, TileMap *by_step, const TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool changes = false;
        for (unsigned i = 0; i < op->operand_count; i++) changes |= tile_map_get(by_step, tile_op_operand(op, i)) != NULL;
        for (unsigned i = 0; changes && i < op->result_count; i++) tile_map_set(by_step, &op->results[i], op);
        if (changes && op->id == TILE_OP_LOAD && tile_map_get(&x->by_lane, tile_op_named(op, TILE_OPERAND_ADDRESS))) return true;
        for (unsigned i = 0; i < op->region_count; i++)
            if (moves_on(x, by_step, &op->regions[i])) return true;
    }
    return false;
}

/* Long rows of which each iteration loads another one would be read piece by piece, far apart; and loops over them have full vectors
 * without masks. */
static bool is_worth(Interchange *x) {
    const Chain *chain = &x->chain;
    if (extent_of(chain->loops[chain->loop_count - 1]) <= SHORT_ROW) return true;
    TileMap by_step;
    tile_map_init(&by_step, x->context->scratch);
    for (unsigned i = 0; i < chain->for_count; i++)
        tile_map_set(&by_step, chain->fors[i]->regions[0].arguments[0], chain->fors[i]);
    return !moves_on(x, &by_step, &chain->fors[0]->regions[0]);
}

/* ---- code ---- */

static TileMap *map_of(Interchange *x, const TileValue *value, unsigned row) {
    return tile_map_get(&x->by_row, value) ? &x->rows[row] : &x->shared;
}

static TileValue *new_value(Interchange *x, TileValue *value, unsigned row) {
    TileValue *found = tile_map_get(map_of(x, value, row), value);
    return found ? found : value;
}

static TileOp *copy_op(Interchange *x, TileBuilder *b, const TileOp *op, unsigned row) {
    TileValue *operands[4];
    b->location = op->location;
    for (unsigned i = 0; i < op->operand_count; i++) operands[i] = new_value(x, tile_op_operand(op, i), row);
    const TileType *type = op->results[0].type;
    return tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1);
}

static bool is_masked_row(Interchange *x, const TileOp *op) {
    TileValue *mask = op->id == TILE_OP_LOAD ? tile_op_named(op, TILE_OPERAND_MASK) : NULL;
    return mask && tile_map_get(&x->needed, &op->results[0]) && tile_map_get(&x->by_row, mask) &&
           !interchange_point_of(&x->chain, op);
}

/* Is the bool true where both of its operands are? */
static bool is_both(const TileOp *op) {
    return op && (op->id == TILE_OP_AND ||
                  (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)));
}

/* The part of a row's mask that differs from point to point; NULL: there is none. */
static TileValue *mask_of_points(Interchange *x, TileBuilder *b, TileValue *mask, unsigned row) {
    if (!tile_map_get(&x->by_lane, mask)) return NULL;
    if (!is_both(mask->op)) return new_value(x, mask, row);
    TileValue *first = mask_of_points(x, b, tile_op_operand(mask->op, 0), row);
    TileValue *second = mask_of_points(x, b, tile_op_operand(mask->op, 1), row);
    return first && second && first != second ? tile_build_binary(b, TILE_OP_AND, first, second) : first ? first : second;
}

/* A load of a row; where all rows are known to be inside of what is loaded, only points are masked. */
static TileValue *row_load(Interchange *x, TileBuilder *b, const TileOp *op, unsigned row) {
    TileValue *mask = tile_op_named(op, TILE_OPERAND_MASK), *fill = tile_op_named(op, TILE_OPERAND_FILLING);
    const TileType *type = op->results[0].type;
    int64_t align = tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0);
    TileValue *own = mask ? new_value(x, mask, row) : NULL;
    if (x->whole && is_masked_row(x, op)) own = mask_of_points(x, b, mask, row);
    TileValue *address = new_value(x, tile_op_named(op, TILE_OPERAND_ADDRESS), row);
    return tile_build_load(b, type, address, own, own && fill ? new_value(x, fill, row) : NULL, align);
}

static void copy_block(Interchange *x, TileBuilder *b, const TileBlock *block, bool by_row, unsigned row) {
    for (const TileOp *op = block->first; op; op = op->next) {
        if (op->result_count != 1 || !tile_map_get(&x->needed, &op->results[0]) || interchange_point_of(&x->chain, op)) continue;
        if ((tile_map_get(&x->by_row, &op->results[0]) != NULL) != by_row) continue;
        TileValue *made = by_row && op->id == TILE_OP_LOAD ? row_load(x, b, op, row) : &copy_op(x, b, op, row)->results[0];
        tile_map_set(by_row ? &x->rows[row] : &x->shared, &op->results[0], made);
    }
}

static void copy_rows(Interchange *x, TileBuilder *b, TileValue *const *from, TileValue **to) {
    const Chain *chain = &x->chain;
    for (unsigned row = 0; row < x->row_count; row++) {
        for (unsigned i = 0; i < chain->points; i++)
            tile_map_set(&x->rows[row], &chain->load[i]->results[0], from[row * chain->points + i]);
        for (unsigned l = 0; l < chain->loop_count; l++) copy_block(x, b, &chain->loops[l]->regions[0], true, row);
        for (unsigned i = 0; i < chain->points; i++)
            to[row * chain->points + i] = new_value(x, tile_op_operand(chain->store[i], 0), row);
    }
}

/* ---- masks of rows ---- */

static void add_condition(TileBuilder *b, TileValue **all, TileValue *more) {
    *all = *all && more ? tile_build_binary(b, TILE_OP_AND, *all, more) : *all ? *all : more;
}

/* The value in a row, with all that it is computed from. */
static TileValue *copy_tree(Interchange *x, TileBuilder *b, TileValue *value, unsigned row) {
    const TileOp *op = value->op;
    if (!op || !tile_map_get(&x->by_row, value)) return new_value(x, value, row);
    for (unsigned i = 0; i < op->operand_count; i++)
        tile_map_set(map_of(x, tile_op_operand(op, i), row), tile_op_operand(op, i), copy_tree(x, b, tile_op_operand(op, i), row));
    return &copy_op(x, b, op, row)->results[0];
}

/* That the row is below the bound, or more than that. Of a minimum each part is asked by itself; of what is 0 unless a condition holds, the
 * condition too: so that parts that are the same in all iterations stand by themselves. */
static void add_below(Interchange *x, TileBuilder *b, TileValue *row, TileValue *bound, TileValue **all) {
    const TileOp *op = tile_map_get(&x->needed, bound) ? bound->op : NULL;
    if (op && op->id == TILE_OP_MIN) {
        add_below(x, b, row, tile_op_operand(op, 0), all);
        add_below(x, b, row, tile_op_operand(op, 1), all);
    } else if (op && op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0)) {
        add_condition(b, all, new_value(x, tile_op_operand(op, 0), 0));
        add_below(x, b, row, tile_op_operand(op, 1), all);
    } else {
        add_condition(b, all, tile_build_binary(b, TILE_OP_LT, row, new_value(x, bound, 0)));
    }
}

/* Only if these conditions hold, the bool is true for each row. A bound is tested for the first row or the last one: an index rises from row to row. */
static void add_rows(Interchange *x, TileBuilder *b, TileValue *mask, TileValue **all) {
    const TileOp *op = mask->op;
    unsigned last = x->row_count - 1;
    bool both = is_both(op);
    if (!both && tile_map_get(&x->by_lane, mask)) return; /* it stays a mask */
    if (!tile_map_get(&x->by_row, mask) && !tile_map_get(&x->by_lane, mask)) {
        add_condition(b, all, new_value(x, mask, 0));
        return;
    }
    if (both) {
        add_rows(x, b, tile_op_operand(op, 0), all);
        if (tile_op_operand(op, 1) != tile_op_operand(op, 0)) add_rows(x, b, tile_op_operand(op, 1), all);
        return;
    }
    TileValue *bound = tile_op_operand(op, 1);
    bool index = interchange_loop_of(&x->chain, tile_op_operand(op, 0)) && !tile_map_get(&x->by_row, bound);
    if (index && op->id == TILE_OP_LT) {
        add_below(x, b, new_value(x, tile_op_operand(op, 0), last), bound, all);
        return;
    }
    if (index && op->id == TILE_OP_GE) last = 0;
    for (unsigned row = 0; row <= last; row++) add_condition(b, all, copy_tree(x, b, mask, row));
}

/* The condition that all rows exist, and all that they load; NULL: no load has a mask that differs from row to row. */
static TileValue *all_rows(Interchange *x, TileBuilder *b) {
    TileValue *all = NULL;
    bool found = false;
    for (unsigned l = 0; l < x->chain.loop_count; l++)
        for (const TileOp *op = x->chain.loops[l]->regions[0].first; op; op = op->next) {
            if (!is_masked_row(x, op)) continue;
            add_rows(x, b, tile_op_named(op, TILE_OPERAND_MASK), &all);
            found = true;
        }
    if (found && x->full) add_condition(b, &all, x->full);
    return found ? all : NULL;
}

/* The updates of one iteration: first what all rows share; then rows without masks, if they need none. */
static void copy_body(Interchange *x, TileBuilder *b) {
    const Chain *chain = &x->chain;
    unsigned count = x->row_count * chain->points;
    const TileType *types[MOST_ROWS * INTERCHANGE_POINTS];
    TileValue *sums[MOST_ROWS * INTERCHANGE_POINTS];
    for (unsigned l = 0; l < chain->loop_count; l++) copy_block(x, b, &chain->loops[l]->regions[0], false, 0);
    TileValue *all = all_rows(x, b);
    if (!all) {
        copy_rows(x, b, x->sums, x->sums);
        return;
    }
    for (unsigned i = 0; i < count; i++) types[i] = x->sums[i]->type;
    TileOp *branch = tile_build_if(b, all, types, count);
    tile_op_set_integer(x->module, branch, TILE_ATTRIBUTE_MASKED, 1);
    for (unsigned r = 0; r < 2; r++) {
        TileBuilder inner = tile_builder_at_end(x->module, &branch->regions[r]);
        inner.location = b->location;
        x->whole = r == 0;
        for (unsigned row = 0; x->row_index && row < x->row_count; row++)
            tile_map_set(&x->rows[row], x->row_index, x->whole ? x->number[row] : x->limited[row]);
        copy_rows(x, &inner, x->sums, sums);
        tile_build_end(&inner, TILE_OP_YIELD, sums, count);
    }
    x->whole = false;
    for (unsigned i = 0; i < count; i++) x->sums[i] = &branch->results[i];
}

/* Is the value computed from the index, in the loops? */
static bool depends_on(const Interchange *x, const TileValue *value, const TileValue *index) {
    if (value == index) return true;
    if (!value->op || is_outside(x, value)) return false;
    for (unsigned i = 0; i < value->op->operand_count; i++)
        if (depends_on(x, tile_op_operand(value->op, i), index)) return true;
    return false;
}

/* How often a short window's innermost loop, whose masks of points differ from iteration to iteration alone, is repeated as code: masks are then known in front
 * of the loops around it, and take longer than what they mask. 0: it stays a loop. */
static int64_t repetitions(Interchange *x) {
    const Chain *chain = &x->chain;
    const TileOp *last = chain->fors[chain->for_count - 1];
    int64_t lo, hi;
    bool known = tile_value_integer(tile_op_operand(last, 0), &lo) && tile_value_integer(tile_op_operand(last, 1), &hi);
    if (!known || chain->for_count < 2 || hi - lo < 2 || hi - lo > MOST_REPEATED) return 0;
    for (unsigned l = 0; l < chain->loop_count; l++)
        for (const TileOp *op = chain->loops[l]->regions[0].first; op; op = op->next) {
            TileValue *mask = op->id == TILE_OP_LOAD ? tile_op_named(op, TILE_OPERAND_MASK) : NULL;
            bool needed = mask && tile_map_get(&x->needed, &op->results[0]) && tile_map_get(&x->by_lane, mask);
            if (needed && depends_on(x, mask, last->regions[0].arguments[0])) return hi - lo;
        }
    return 0;
}

/* The innermost loop as code, iteration by iteration. */
static void repeat(Interchange *x, TileBuilder *b, int64_t count) {
    const TileOp *old = x->chain.fors[x->chain.for_count - 1];
    int64_t lo;
    tile_value_integer(tile_op_operand(old, 0), &lo);
    for (int64_t i = 0; i < count; i++) {
        tile_map_set(&x->shared, old->regions[0].arguments[0], tile_build_i64(b, lo + i));
        copy_block(x, b, &old->regions[0], false, 0);
        copy_body(x, b);
    }
}

/* The fors from number `depth` on, which carry the sums. */
static void copy_fors(Interchange *x, TileBuilder *outer, unsigned depth) {
    const Chain *chain = &x->chain;
    if (depth == chain->for_count) {
        copy_body(x, outer);
        return;
    }
    const TileOp *old = chain->fors[depth];
    int64_t repeated = depth + 1 == chain->for_count ? repetitions(x) : 0;
    if (repeated) {
        repeat(x, outer, repeated);
        return;
    }
    unsigned count = x->row_count * chain->points;
    TileValue *lo = new_value(x, tile_op_operand(old, 0), 0), *hi = new_value(x, tile_op_operand(old, 1), 0);
    TileOp *loop = tile_build_loop(outer, TILE_LOOP_KIND_SEQUENTIAL, lo, hi, INT64_MAX, x->sums, count);
    TileBuilder b = tile_builder_at_end(x->module, &loop->regions[0]);
    b.location = old->location;
    tile_map_set(&x->shared, old->regions[0].arguments[0], loop->regions[0].arguments[0]);
    for (unsigned i = 0; i < count; i++) x->sums[i] = loop->regions[0].arguments[1 + i];
    copy_block(x, &b, &old->regions[0], false, 0);
    copy_fors(x, &b, depth + 1);
    tile_build_end(&b, TILE_OP_YIELD, x->sums, count);
    for (unsigned i = 0; i < count; i++) x->sums[i] = &loop->results[i];
}

/* The address of a point, at its place before the fors. */
static TileValue *copy_address(Interchange *x, TileBuilder *b, TileValue *value, unsigned row) {
    TileValue *known = tile_map_get(map_of(x, value, row), value);
    if (known || tile_value_outside(value, x->chain.fors[0])) return known ? known : value;
    TileValue *operands[2];
    for (unsigned i = 0; i < 2; i++) operands[i] = copy_address(x, b, tile_op_operand(value->op, i), row);
    return tile_build_binary(b, (TileOpId)value->op->id, operands[0], operands[1]);
}

static TileValue *address_of(Interchange *x, TileBuilder *b, unsigned point, unsigned row) {
    TileValue *address = tile_op_named(x->chain.store[point], TILE_OPERAND_ADDRESS);
    TileValue *chain[INTERCHANGE_LOOPS * 2 + 8];
    unsigned count = 0;
    for (; address->op && address->op->id == TILE_OP_PTR_ADD && !tile_value_outside(address, x->chain.fors[0]);
         address = tile_op_operand(address->op, 0))
        chain[count++] = tile_op_operand(address->op, 1);
    while (count-- > 0) address = tile_build_ptr_add(b, address, copy_address(x, b, chain[count], row));
    return address;
}

/* What the loops behind do with the points of each row. */
static void copy_after(Interchange *x, TileBuilder *b) {
    const Chain *chain = &x->chain;
    unsigned count = chain->loop_count;
    for (unsigned l = 0; l < count; l++) {
        const TileValue *own = chain->after[l]->regions[0].arguments[0], *old = chain->loops[l]->regions[0].arguments[0];
        for (unsigned row = 0; row < x->row_count; row++) {
            TileMap *map = map_of(x, old, row);
            tile_map_set(map, own, l + 2 == count ? x->limited[row] : tile_map_get(map, old));
        }
    }
    for (unsigned l = 0; l < count; l++) copy_block(x, b, &chain->after[l]->regions[0], false, 0);
    for (unsigned row = 0; row < x->row_count; row++) {
        const TileBlock *body = &chain->after[count - 1]->regions[0];
        for (const TileOp *op = body->first; op; op = op->next) {
            unsigned point = interchange_point_of(chain, op);
            if (point) tile_map_set(&x->rows[row], &op->results[0], x->sums[row * chain->points + point - 1]);
        }
        for (unsigned l = 0; l < count; l++) copy_block(x, b, &chain->after[l]->regions[0], true, row);
        for (const TileOp *op = body->first; op; op = op->next) {
            if (op->id != TILE_OP_STORE) continue;
            TileValue *mask = tile_op_named(op, TILE_OPERAND_MASK), *address = tile_op_named(op, TILE_OPERAND_ADDRESS);
            tile_build_store(b, new_value(x, tile_op_operand(op, 0), row), new_value(x, address, row),
                             mask ? new_value(x, mask, row) : NULL, tile_op_integer(op, TILE_ATTRIBUTE_ALIGN, 0));
        }
    }
}

static void copy_points(Interchange *x, TileBuilder *b) {
    const Chain *chain = &x->chain;
    TileValue *addresses[MOST_ROWS * INTERCHANGE_POINTS];
    for (unsigned row = 0; row < x->row_count; row++)
        for (unsigned i = 0; i < chain->points; i++) {
            TileValue *address = chain->after[0] ? NULL : address_of(x, b, i, row), *start = chain->start[i];
            addresses[row * chain->points + i] = address;
            x->sums[row * chain->points + i] = start ? start : tile_build_load(b, chain->load[i]->results[0].type, address, NULL, NULL, 0);
        }
    copy_fors(x, b, 0);
    for (unsigned row = 0; row < x->row_count && !chain->after[0]; row++)
        for (unsigned i = 0; i < chain->points; i++)
            tile_build_store(b, x->sums[row * chain->points + i], addresses[row * chain->points + i], NULL, 0);
    if (chain->after[0]) copy_after(x, b);
}

/* Lanes of the innermost loop: several registers at a time, so that latencies overlap, and what an iteration of the fors has
 * to test and count is shared by more of them; no more than a row has. */
static int64_t choose_lanes(const Interchange *x) {
    int64_t bytes = 1, extent = extent_of(x->chain.loops[x->chain.loop_count - 1]);
    for (unsigned i = 0; i < x->chain.points; i++) {
        int64_t own = tile_scalar_bytes(x->chain.load[i]->results[0].type->scalar);
        if (own > bytes) bytes = own;
    }
    int64_t lanes = x->context->target->vector_bytes / bytes, registers = MOST_SUMS / (x->row_count * x->chain.points);
    while (registers > 1 && (registers * lanes > extent || x->context->target->vector_registers < 4 * MOST_SUMS)) registers /= 2;
    return registers > 1 ? registers * lanes : lanes * (MOST_ROWS / x->row_count);
}

/* A loop over blocks of rows, whose builder becomes *b. Where too few rows are left, the last block begins earlier if nothing but the
 * results of its rows is stored, twice then; a row that there is not is the last one once more, which is updated to the same values. */
static void open_rows(Interchange *x, TileBuilder *b, const TileOp *old) {
    TileValue *lo = tile_op_operand(old, 0), *hi = tile_op_operand(old, 1), *index = old->regions[0].arguments[0];
    int64_t first, last;
    bool whole = tile_value_integer(lo, &first) && tile_value_integer(hi, &last) && (last - first) % x->row_count == 0;
    TileValue *end = whole ? NULL : tile_build_binary(b, TILE_OP_SUB, hi, tile_build_i64(b, 1));
    x->row_index = index;
    TileValue *latest = end && x->chain.after[0] ? tile_build_binary(b, TILE_OP_SUB, hi, tile_build_i64(b, x->row_count)) : NULL;
    if (latest) latest = tile_build_binary(b, TILE_OP_MAX, latest, lo);
    TileOp *loop = tile_build_for(b, lo, hi, tile_build_i64(b, x->row_count), NULL, 0);
    *b = tile_builder_at_end(x->module, &loop->regions[0]);
    TileValue *first_row = loop->regions[0].arguments[0];
    if (latest) first_row = tile_build_binary(b, TILE_OP_MIN, first_row, latest);
    for (unsigned row = 0; row < x->row_count; row++) {
        TileValue *own = first_row;
        if (row) own = tile_build_binary(b, TILE_OP_ADD, own, tile_build_i64(b, row));
        x->number[row] = x->limited[row] = own;
        if (row && end) x->limited[row] = tile_build_binary(b, TILE_OP_MIN, own, end);
        tile_map_set(&x->rows[row], index, x->limited[row]);
        x->full = end && row ? tile_build_binary(b, TILE_OP_LT, own, hi) : NULL;
    }
}

static void build_loops(Interchange *x, TileBuilder *outer, unsigned depth) {
    const Chain *chain = &x->chain;
    if (depth == chain->loop_count) {
        copy_points(x, outer);
        return;
    }
    const TileOp *old = chain->loops[depth];
    TileBuilder b = *outer;
    b.location = old->location;
    if (depth + 2 == chain->loop_count) {
        open_rows(x, &b, old);
    } else {
        TileOp *loop = tile_build_loop(&b, TILE_LOOP_KIND_PARALLEL, tile_op_operand(old, 0), tile_op_operand(old, 1),
                                       extent_of(old), NULL, 0);
        if (depth + 1 == chain->loop_count) tile_op_set_integer(x->module, loop, TILE_ATTRIBUTE_VECTOR, choose_lanes(x));
        b = tile_builder_at_end(x->module, &loop->regions[0]);
        tile_map_set(&x->shared, old->regions[0].arguments[0], loop->regions[0].arguments[0]);
    }
    build_loops(x, &b, depth + 1);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
}

/* ---- the pass ---- */

/* Half of the registers hold sums. */
static unsigned choose_rows(const Interchange *x) {
    const Chain *chain = &x->chain;
    if (chain->loop_count < 2) return 1;
    unsigned rows = MOST_ROWS;
    while (rows > 1 && 2 * rows * chain->points > x->context->target->vector_registers) rows /= 2;
    int64_t extent = extent_of(chain->loops[chain->loop_count - 2]);
    return extent < rows ? (unsigned)extent : rows;
}

static bool interchange(Interchange *x, TileOp *op) {
    if (!interchange_find(op, &x->chain)) return false;
    interchange_find_ends(&x->chain);
    TileMap *maps[] = {&x->needed, &x->by_row, &x->by_lane, &x->shared};
    for (unsigned i = 0; i < 4; i++) tile_map_init(maps[i], x->context->scratch);
    for (unsigned i = 0; i < MOST_ROWS; i++) tile_map_init(&x->rows[i], x->context->scratch);
    x->row_index = x->full = NULL;
    mark(x);
    if (!is_worth(x)) return false;
    x->row_count = choose_rows(x);
    const Chain *chain = &x->chain;
    while (chain->after[0] && op->next != chain->after[0]) { /* what is computed between the loops */
        TileOp *between = op->next;
        tile_op_detach(between);
        tile_op_insert_before(between, op);
    }
    TileBuilder b = tile_builder_before(x->module, op);
    build_loops(x, &b, 0);
    x->behind = chain->after[0] ? chain->after[0]->next : op->next;
    tile_op_erase(op);
    if (!chain->after[0]) return true;
    tile_op_erase(chain->after[0]);
    for (unsigned i = 0; i < chain->points; i++) tile_op_erase(chain->fill[i]);
    return true;
}

static void visit(Interchange *x, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        bool moved = op->id == TILE_OP_FOR && interchange(x, op);
        if (moved) next = x->behind;
        x->changed |= moved;
        for (unsigned r = 0; !moved && r < op->region_count; r++) visit(x, &op->regions[r]);
    }
}

TileResult tile_pass_cpu_interchange(TilePassContext *context, TileFunc *func) {
    Interchange x = {.context = context, .module = context->module};
    if (!context->target) return tile_pass_fail(context, TILE_INVALID_ARGUMENT, NULL, "cpu-interchange needs a target");
    visit(&x, &func->body);
    return x.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
