/* Purpose: split loops over rows where a mask begins and ends. A tile that reaches over the border of its tensor has rows that lie
 * inside of it, between rows that are filled. Which they are is known before the loop, where the mask compares the number of
 * the row with bounds. So the rows inside are loaded without a test of each, and the rows before and after them are filled
 * without a load.
 *
 * Before:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %first: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32
 *       loop %zero, %n {loop = parallel, extent = 16} (%r: i64) {
 *         %begun = ge %r, %first : bool
 *         %left = lt %r, %end : bool
 *         %inside = and %begun, %left : bool
 *         %o = mul %r, %n : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %q = ptr_add %y, %o : ptr<global>
 *         loop %zero, %four {loop = parallel, extent = 4} (%c: i64) {
 *           %d = mul %c, %four : i64
 *           %from = ptr_add %p, %d : ptr<global>
 *           %v = load %from, %inside, %none {parts = [mask, fill]} : f32
 *           %to = ptr_add %q, %d : ptr<global>
 *           store %v, %to
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * After:
 *     func phase machine @k.0(%x: ptr<global>, %y: ptr<global>, %first: i64, %end: i64) {
 *       %zero = const {value = 0} : i64
 *       %four = const {value = 4} : i64
 *       %n = const {value = 16} : i64
 *       %none = const {value = 0.0} : f32
 *       %0 = max %zero, %first : i64
 *       %1 = min %n, %end : i64
 *       %2 = min %0, %n : i64
 *       %3 = max %1, %2 : i64
 *       %inside = const {value = true} : bool
 *       %inside.1 = const {value = false} : bool
 *       loop %zero, %2 {loop = parallel, extent = 16} (%r: i64) {
 *         %begun = ge %r, %first : bool
 *         %left = lt %r, %end : bool
 *         %o = mul %r, %n : i64
 *         %p = ptr_add %x, %o : ptr<global>
 *         %q = ptr_add %y, %o : ptr<global>
 *         loop %zero, %four {loop = parallel, extent = 4} (%c: i64) {
 *           %d = mul %c, %four : i64
 *           %from = ptr_add %p, %d : ptr<global>
 *           %to = ptr_add %q, %d : ptr<global>
 *           store %none, %to
 *           yield
 *         }
 *         yield
 *       }
 *       loop %2, %3 {loop = parallel, extent = 16} (%r.1: i64) {
 *         %begun.1 = ge %r.1, %first : bool
 *         %left.1 = lt %r.1, %end : bool
 *         %o.1 = mul %r.1, %n : i64
 *         %p.1 = ptr_add %x, %o.1 : ptr<global>
 *         %q.1 = ptr_add %y, %o.1 : ptr<global>
 *         loop %zero, %four {loop = parallel, extent = 4} (%c.1: i64) {
 *           %d.1 = mul %c.1, %four : i64
 *           %from.1 = ptr_add %p.1, %d.1 : ptr<global>
 *           %v = load %from.1 : f32
 *           %to.1 = ptr_add %q.1, %d.1 : ptr<global>
 *           store %v, %to.1
 *           yield
 *         }
 *         yield
 *       }
 *       loop %3, %n {loop = parallel, extent = 16} (%r.2: i64) {
 *         %begun.2 = ge %r.2, %first : bool
 *         %left.2 = lt %r.2, %end : bool
 *         %o.2 = mul %r.2, %n : i64
 *         %p.2 = ptr_add %x, %o.2 : ptr<global>
 *         %q.2 = ptr_add %y, %o.2 : ptr<global>
 *         loop %zero, %four {loop = parallel, extent = 4} (%c.2: i64) {
 *           %d.2 = mul %c.2, %four : i64
 *           %from.2 = ptr_add %p.2, %d.2 : ptr<global>
 *           %to.2 = ptr_add %q.2, %d.2 : ptr<global>
 *           store %none, %to.2
 *           yield
 *         }
 *         yield
 *       }
 *       return
 *     }
 * A loop whose own iterations become lanes stays whole.
 * Needs: cpu-interchange before it, which looks for whole loops; canonicalise behind it, for what the constants leave. Keeps: the
 * order of the iterations, and each access that happens.
 * Cost: linear; a loop's body is there up to three times, if it has at most MOST_OPS ops. */
#include "cpu/borders.h"
#include "cpu/passes.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"

enum {
    FEWEST_ROWS = 4, /* loops of fewer would take longer to begin than tests do */
    MOST_OPS = 64,
    DEEPEST_MASK = 8
};

typedef struct Borders {
    TilePassContext *context;
    TileModule *module;
    bool changed;
} Borders;

/* ---- which loops ---- */

static bool is_both(const TileOp *op) {
    return op->id == TILE_OP_AND ||
           (op->id == TILE_OP_SELECT && tile_value_is_integer(tile_op_named(op, TILE_OPERAND_Y), 0));
}

/* Is the mask true only where the bool is? */
static bool implies(const TileValue *mask, const TileValue *value, unsigned depth) {
    if (mask == value) return true;
    if (!mask->op || !is_both(mask->op) || depth == DEEPEST_MASK) return false;
    return implies(tile_op_operand(mask->op, 0), value, depth + 1) ||
           implies(tile_op_operand(mask->op, 1), value, depth + 1);
}

typedef struct Look {
    const TileOp *loop;
    const TileValue *value;
    unsigned ops, loads; /* all; and loads of points that only happen where the bool is true */
} Look;

static bool is_parallel(const TileOp *loop) {
    return loop->id == TILE_OP_LOOP && tile_op_integer(loop, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_PARALLEL;
}

/* Loads in a loop over the points of a row: without such a loop, the rows are what vectors have in their lanes. */
static void look(TileOp *op, void *state) {
    Look *found = state;
    const TileOp *owner = op->block->op;
    found->ops++;
    if (op->id == TILE_OP_LOAD && owner != found->loop && is_parallel(owner) && tile_op_has_part(op, TILE_PARTS_MASK))
        found->loads += implies(tile_op_named(op, TILE_OPERAND_MASK), found->value, 0);
}

static bool is_worth(const TileOp *loop, const TileOp *mask) {
    Look found = {.loop = loop, .value = &mask->results[0]};
    tile_block_walk(&loop->regions[0], look, &found);
    return found.loads && found.ops <= MOST_OPS;
}

/* Is it row < bound or row >= bound? */
static bool is_bound(const TileOp *loop, const TileOp *op) {
    return (op->id == TILE_OP_GE || op->id == TILE_OP_LT) && tile_op_operand(op, 0) == loop->regions[0].arguments[0] &&
           tile_value_outside(tile_op_operand(op, 1), loop);
}

static bool add(TileValue **list, unsigned *count, TileValue *value) {
    for (unsigned i = 0; i < *count; i++)
        if (list[i] == value) return true;
    if (*count == TILE_ROW_BOUNDS) return false;
    list[(*count)++] = value;
    return true;
}

static bool read_mask(const TileOp *loop, TileValue *mask, TileRowMask *read, unsigned depth) {
    const TileOp *op = mask->op;
    if (tile_value_outside(mask, loop)) return add(read->all, &read->all_count, mask);
    if (!op || depth == DEEPEST_MASK) return false;
    if (is_bound(loop, op)) {
        TileValue *bound = tile_op_operand(op, 1);
        return op->id == TILE_OP_GE ? add(read->first, &read->first_count, bound) : add(read->end, &read->end_count, bound);
    }
    return is_both(op) && read_mask(loop, tile_op_operand(op, 0), read, depth + 1) &&
           read_mask(loop, tile_op_operand(op, 1), read, depth + 1);
}

bool tile_row_mask_read(const TileOp *loop, TileValue *mask, TileRowMask *read) {
    *read = (TileRowMask){.all_count = 0};
    return read_mask(loop, mask, read, 0);
}

/* The mask of rows that says most: ops follow those that they read. */
static TileOp *find_mask(const TileOp *loop, TileRowMask *read) {
    TileOp *found = NULL;
    for (TileOp *op = loop->regions[0].first; op; op = op->next)
        if (op->result_count == 1 && tile_row_mask_read(loop, &op->results[0], read) && is_worth(loop, op)) found = op;
    return found && tile_row_mask_read(loop, &found->results[0], read) ? found : NULL;
}

/* The parts follow one another, so that iterations may need results of earlier ones. */
static bool is_rows(const TileOp *loop) {
    bool ordered = loop->id == TILE_OP_LOOP && tile_op_integer(loop, TILE_ATTRIBUTE_LOOP_KIND, 0) == TILE_LOOP_KIND_SEQUENTIAL;
    return !loop->result_count && (is_parallel(loop) || ordered) && !tile_op_get(loop, TILE_ATTRIBUTE_VECTOR) && tile_op_integer(loop, TILE_ATTRIBUTE_EXTENT, 0) >= FEWEST_ROWS;
}

/* ---- code ---- */

/* Is the bool this constant, whatever the others are? */
static bool is_known(const TileValue *value, bool constant, unsigned depth) {
    if (tile_value_is_integer(value, constant)) return true;
    if (!value->op || !is_both(value->op) || depth == DEEPEST_MASK) return false;
    bool x = is_known(tile_op_operand(value->op, 0), constant, depth + 1),
         y = is_known(tile_op_operand(value->op, 1), constant, depth + 1);
    return constant ? x && y : x || y;
}

/* A load whose mask is true has none, and one whose mask is false is what it fills with. */
static void simplify(TileOp *op, void *state) {
    (void)state;
    if (op->id != TILE_OP_LOAD || !tile_op_has_part(op, TILE_PARTS_MASK)) return;
    const TileValue *mask = tile_op_named(op, TILE_OPERAND_MASK);
    TileValue *fill = tile_op_named(op, TILE_OPERAND_FILLING);
    if (is_known(mask, true, 0)) {
        while (op->operand_count > 1) tile_op_remove_operand(op, 1);
        tile_op_clear(op, TILE_ATTRIBUTE_PARTS);
    } else if (fill && is_known(mask, false, 0)) {
        tile_value_replace(&op->results[0], fill);
        tile_op_erase(op);
    }
}

/* Has the loop run from lo to hi, where the mask has this value. */
static void narrow(TileOp *loop, TileValue *lo, TileValue *hi, TileOp *mask, TileValue *value) {
    tile_op_set_operand(loop, 0, lo);
    tile_op_set_operand(loop, 1, hi);
    tile_value_replace(&mask->results[0], value);
    tile_op_erase(mask);
    tile_block_walk(&loop->regions[0], simplify, NULL);
}

/* A copy of the loop, and of the mask in it. */
static TileOp *copy(Borders *borders, const TileOp *loop, TileOp **mask) {
    TileMap map;
    tile_map_init(&map, borders->context->scratch);
    TileOp *made = tile_op_clone(borders->module, loop, &map);
    *mask = ((TileValue *)tile_map_get(&map, &(*mask)->results[0]))->op;
    return made;
}

static void split(Borders *borders, TileOp *loop, TileOp *mask, const TileRowMask *read) {
    TileBuilder b = tile_builder_before(borders->module, loop);
    b.location = loop->location;
    TileValue *lo = tile_op_operand(loop, 0), *hi = tile_op_operand(loop, 1), *first = lo, *end = hi, *all = NULL;
    for (unsigned i = 0; i < read->first_count; i++) first = tile_build_binary(&b, TILE_OP_MAX, first, read->first[i]);
    for (unsigned i = 0; i < read->end_count; i++) end = tile_build_binary(&b, TILE_OP_MIN, end, read->end[i]);
    for (unsigned i = 0; i < read->all_count; i++)
        all = all ? tile_build_binary(&b, TILE_OP_AND, all, read->all[i]) : read->all[i];
    bool begins = first != lo, ends = end != hi || all;
    if (begins) first = tile_build_binary(&b, TILE_OP_MIN, first, hi);
    if (end != hi || (begins && ends)) end = tile_build_binary(&b, TILE_OP_MAX, end, first);
    if (all) end = tile_build_ternary(&b, TILE_OP_SELECT, all, end, first);
    TileValue *yes = tile_build_bool(&b, true), *no = tile_build_bool(&b, false);
    TileOp *own = mask;
    TileOp *before = begins ? copy(borders, loop, &own) : NULL;
    if (before) {
        tile_op_insert_before(before, loop);
        narrow(before, lo, first, own, no);
    }
    own = mask;
    TileOp *after = ends ? copy(borders, loop, &own) : NULL;
    if (after) {
        tile_op_insert_after(after, loop);
        narrow(after, end, hi, own, no);
    }
    narrow(loop, first, end, mask, yes);
    borders->changed = true;
}

/* ---- the pass ---- */

static void visit(Borders *borders, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        TileRowMask read;
        TileOp *mask = is_rows(op) ? find_mask(op, &read) : NULL;
        if (mask) split(borders, op, mask, &read);
        for (unsigned r = 0; r < op->region_count; r++) visit(borders, &op->regions[r]);
    }
}

TileResult tile_pass_cpu_borders(TilePassContext *context, TileFunc *func) {
    Borders borders = {.context = context, .module = context->module};
    visit(&borders, &func->body);
    return borders.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
