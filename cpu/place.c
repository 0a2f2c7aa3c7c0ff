/* Purpose: decide where each tile lives. A tile is recomputed at each point of its readers, or kept: computed once, by a statement
 * with loops of its own. Stores, reductions, scans and products are always statements. Any other value becomes one only if
 * recomputing it costs more than reading it: an expensive op, or a long chain of cheap ones, with more than one reader, a reader in
 * a deeper loop, or one that reads its rows again and again (factors of columns, broadcast to all rows). A load is done at its
 * readers (`view`) unless a store in between might change its result. Tiles that loops carry are in buffers, of which a product
 * adds to one in place. Chains of changes of shape are computed for several points at a time (`block`, nest_bits.c).
 *
 * Run: --passes=cpu-place --target=avx2
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in>, %y: tensor<f32, 1, out>, %begin: i64 {role = begin},
 *       %end: i64 {role = end}) {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %n = const {value = 64} : i64
 *       for %begin, %end, %one (%program: i64) {
 *         %first = mul %program, %n : i64
 *         %v = load_tile %x, %first, %one, %zero, %n {access = [range]} : f32[64]
 *         %e = exp %v : f32[64]
 *         %s = reduce %e {axis = 0, kind = sum} : f32
 *         %t = splat %s : f32[64]
 *         %w = div %e, %t : f32[64]
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
 *         %e = exp %v {home = kept} : f32[64]
 *         %s = reduce %e {axis = 0, kind = sum} : f32
 *         %t = splat %s {home = recomputed} : f32[64]
 *         %w = div %e, %t {home = recomputed} : f32[64]
 *         store_tile %y, %w, %first, %one, %zero, %n {access = [range]}
 *         yield
 *       }
 *       return
 *     }
 * Needs: programs; cse, since bounds are compared by value. Keeps: all ops, to which it adds attributes.
 * Cost: linear in the ops, and in the ops of one point of each statement. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

enum { MOST_PARTS = 6 /* of a condition, below one another */, MANY_POSITIONS = 8, DEEPEST_LOAD = 16, DEEPEST_INDEX = 8 };

/* ---- buffers of what loops carry ---- */

static bool is_carried_tile(const TileValue *value) {
    return tile_type_is_tile(value->type) && !nest_is_single(value->type);
}

/* A loop reuses the buffer of its initial value if that has no other reader. */
static NestBuffer *slot_for(Nest *n, TileValue *start) {
    NestBuffer *slot = start ? nest_info(n, start)->slot : NULL;
    return slot && tile_value_has_one_use(start) ? slot : NULL;
}

static void give_slots(Nest *n, TileOp *op) {
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *result = tile_op_result(op, i);
        if (!is_carried_tile(result)) continue;
        NestBuffer *slot = op->id == TILE_OP_IF ? NULL : slot_for(n, tile_loop_carried(op, i));
        nest_set_slot(n, op, i, slot ? slot : nest_buffer(n, result->type, 0));
    }
}

static void give_all_slots(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (!nest_has_blocks(op)) continue;
        give_slots(n, op);
        for (unsigned i = 0; i < op->region_count; i++) give_all_slots(n, &op->regions[i]);
    }
}

static void plan_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        if (op->id == TILE_OP_DOT) nest_place_dot(n, op);
        nest_plan_op(n, op);
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) plan_block(n, &op->regions[i]);
        for (unsigned i = 0; i < op->result_count; i++) nest_atoms(n, &op->results[i]);
    }
}

/* ---- which values to keep ---- */

/* A shift, or a mask of bits. */
static bool divides_by_power(const TileOp *op) {
    int64_t divisor;
    return (op->id == TILE_OP_DIV || op->id == TILE_OP_REM) && tile_value_integer(tile_op_operand(op, 1), &divisor) &&
           divisor > 0 && (divisor & (divisor - 1)) == 0;
}

static bool is_same_for_all(const TileValue *value) {
    return value->op && (value->op->id == TILE_OP_SPLAT || value->op->id == TILE_OP_CONST);
}

/* Is the value an index of its lane, moved by what is the same for all lanes? */
static bool rises(const TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth || op->id == TILE_OP_IOTA) return op && op->id == TILE_OP_IOTA;
    const TileValue *x = op->operand_count ? tile_op_operand(op, 0) : NULL, *y = op->operand_count > 1 ? tile_op_operand(op, 1) : NULL;
    if (op->id == TILE_OP_SUB) return is_same_for_all(y) && rises(x, depth - 1);
    if (op->id != TILE_OP_ADD) return false;
    return (is_same_for_all(y) && rises(x, depth - 1)) || (is_same_for_all(x) && rises(y, depth - 1));
}

/* Do all readers take the value along the last axis of a tile, for all of its rows? */
static bool is_of_columns(const TileValue *value) {
    for (const TileUse *use = value->first_use; use; use = use->next) {
        const TileType *type = use->user->result_count ? use->user->results[0].type : NULL;
        if (use->user->id != TILE_OP_RESHAPE || type->extent[type->rank - 1] != value->type->extent[0]) return false;
    }
    return true;
}

/* The place on a ring of an index that rises along columns: what is read there is contiguous, and the loop is divided where the ring begins
 * again (vectorise_wraps.c). Kept, it would be an index like any other. */
static bool goes_around(const TileOp *op) {
    const TileType *type = op->results[0].type;
    int64_t known;
    if ((op->id != TILE_OP_DIV && op->id != TILE_OP_REM) || type->rank != 1 || type->scalar != TILE_I64) return false;
    const TileValue *divisor = tile_op_operand(op, 1);
    return is_same_for_all(divisor) && !tile_value_integer(divisor, &known) && is_of_columns(&op->results[0]) &&
           rises(tile_op_operand(op, 0), DEEPEST_INDEX);
}

static bool is_expensive(const TileOp *op) {
    return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) && !divides_by_power(op) && !goes_around(op);
}

static unsigned loop_depth(const TileBlock *block) {
    unsigned depth = 0;
    for (; block->op; block = block->op->block) depth += block->op->id == TILE_OP_FOR || block->op->id == TILE_OP_WHILE;
    return depth;
}

/* One row of the value must fit into the L2 cache, with space left. */
static bool fits(const Nest *n, const TileType *type) {
    uint64_t cache = n->context->target ? n->context->target->l2_bytes : 512 * 1024;
    int64_t rows = type->rank > 1 ? type->extent[0] : 1;
    return (uint64_t)(tile_type_lanes(type) / rows * tile_scalar_bytes(type->scalar)) <= cache / 4 * 3;
}

static uint32_t points_of(const NestInfo *info) {
    uint32_t points = info->same + info->moved;
    return points ? points : 1;
}

/* `points`: at how many points the reader itself is computed for one point of the statement. Readers that do not move
 * indices all read the same point; each one that permutes, slices or concatenates the tile reads another. The number
 * of points is bounded, since it doubles with each step of a chain in which every step reads two points, such as a
 * sorting network. `bits`: the positions that are read; NULL: not known. */
typedef struct Reader {
    NestStatement *puller;
    bool many;
    uint32_t points;
    const NestBits *bits;
} Reader;

static void mark(Nest *n, TileValue *value, const Reader *reader, bool moved) {
    NestInfo *info = nest_info(n, value);
    if (!tile_type_is_tile(value->type) || info->slot) return;
    nest_bits_mark(n, value, reader->puller->block, reader->bits);
    if (info->puller && info->puller != reader->puller) info->many = true;
    info->puller = reader->puller;
    info->many |= reader->many;
    if (moved)
        info->moved += info->moved <= NEST_POINTS ? reader->points : 0;
    else if (reader->points > info->same)
        info->same = reader->points;
}

static bool moves_indices(const TileOp *op) {
    return op->id == TILE_OP_RESHAPE || op->id == TILE_OP_PERMUTE || op->id == TILE_OP_SLICE || op->id == TILE_OP_CAT ||
           op->id == TILE_OP_FLIP;
}

/* Is a row of the operand read again for each index of an axis around it? What does not change along the last axis is computed ahead
 * of that axis's loop anyway. */
static bool repeats_rows(const TileOp *op) {
    if (op->id != TILE_OP_BROADCAST) return false;
    const TileType *from = tile_op_operand(op, 0)->type, *to = op->results[0].type;
    bool repeats = false;
    for (unsigned i = 0; i < from->rank; i++) {
        if (repeats && from->extent[i] > 1) return true;
        repeats |= from->extent[i] < to->extent[i];
    }
    return false;
}

static void mark_operands(Nest *n, const TileOp *op, const Reader *reader) {
    const bool repeats = repeats_rows(op);
    for (unsigned i = 0; i < op->operand_count; i++) {
        NestBits read;
        Reader own = *reader;
        own.many |= repeats;
        own.bits = reader->bits && nest_bits_through(op, i, reader->bits, &read) ? &read : NULL;
        mark(n, tile_op_operand(op, i), &own, moves_indices(op));
    }
}

/* The statement reads the operands of its op. */
static void mark_read(Nest *n, NestStatement *s) {
    const NestBits own = nest_bits_own();
    nest_bits_start(n, s);
    if (s->kind == NEST_KEEP) nest_bits_fix(n, s->op);
    if (s->kind == NEST_STORE) {
        for (unsigned i = 0; i < s->op->operand_count; i++)
            mark(n, tile_op_operand(s->op, i), &(Reader){s, false, 1, i == 1 ? &own : NULL}, false);
    } else { /* An atomic op runs lane by lane: operands worth vectorising get their own loops. */
        mark_operands(n, s->op, &(Reader){s, s->kind == NEST_ATOMIC, 1, s->kind == NEST_KEEP ? &own : NULL});
    }
}

static void mark_statement(Nest *n, NestStatement *s) {
    const Reader reader = {s, false, 1, NULL};
    if (s->kind == NEST_COPY) {
        for (unsigned i = 0; i < s->copy_count; i++) mark(n, s->copies[i].value, &reader, false);
    } else if (s->kind == NEST_PRINT) {
        return;
    } else if (s->kind == NEST_DOT) {
        mark(n, s->a.value, &reader, false);
        mark(n, s->b.value, &reader, false);
    } else if (s->kind != NEST_PART) {
        mark_read(n, s);
    }
}

static void remark_kept(Nest *n, const TileValue *value, const char *why) {
    const char *name = value->name ? value->name : tile_op_info((TileOpId)value->op->id)->mnemonic;
    tile_pass_remark(n->context, value->op, TILE_DECISION_NOT_FUSED, name, "%s", why);
}

/* Has the op tiles as operands? A value without is as cheap to recompute as to load. */
static bool is_computed(const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type)) return true;
    return false;
}

static void keep_value(Nest *n, TileValue *value, const char *why) {
    mark_read(n, nest_statement(n, NEST_KEEP, value->op, value));
    remark_kept(n, value, why);
}

/* The op that alone reads the value and only moves its elements; NULL: there is none. */
static TileOp *moving_reader(Nest *n, const TileValue *value) {
    if (!tile_value_has_one_use(value)) return NULL;
    TileOp *op = value->first_use->user;
    bool moves = op->id == TILE_OP_RESHAPE || op->id == TILE_OP_PERMUTE;
    return moves && tile_type_is_tile(op->results[0].type) && !nest_info(n, &op->results[0])->statement ? op : NULL;
}

/* Keeps what is read of a value: after permutations up to the last change of shape, which bring the elements into the
 * order in which they are read next. Its shape is then that of the ops that compute it, whose axes end where bits are
 * constants. */
static void keep_moved(Nest *n, TileValue *value, const char *why) {
    TileValue *kept = value;
    for (TileOp *op = moving_reader(n, value); op; op = moving_reader(n, &op->results[0]))
        if (op->id == TILE_OP_RESHAPE) kept = tile_op_operand(op, 0);
    const TileOp *reader = moving_reader(n, value);
    if (kept == value && reader && reader->id == TILE_OP_PERMUTE) kept = tile_op_result(reader, 0);
    for (TileValue *between = kept; between != value;) {
        between = tile_op_operand(between->op, 0);
        NestInfo *info = nest_info(n, between);
        info->puller = NULL;
        info->bits_of = NULL;
        info->many = info->scattered = false;
        info->same = info->moved = 0;
    }
    keep_value(n, kept, why);
    for (TileOp *op = kept->op; kept != value && op != value->op;) {
        op = tile_op_operand(op, 0)->op;
        const NestInfo *info = nest_info(n, &op->results[0]);
        if (op != value->op)
            mark_operands(n, op, &(Reader){info->puller, info->many, points_of(info), info->bits_of ? info->bits : NULL});
    }
}

/* Does it choose between long computations, at positions of which no bit is known? Then both would be executed. */
static bool chooses_blindly(Nest *n, const TileOp *op) {
    const NestInfo *info = nest_info(n, &op->results[0]);
    bool known = info->bits_of && !info->scattered;
    return op->id == TILE_OP_CAT && !known && nest_bits_halves(op) && info->weight >= NEST_LONG && fits(n, op->results[0].type);
}

/* Does the condition tell indices below a bound that is not known from others? */
static bool bounds_indices(const TileValue *condition, unsigned depth) {
    const TileOp *op = condition->op;
    if (!op || !depth) return false;
    switch ((TileOpId)op->id) {
    case TILE_OP_AND: return bounds_indices(tile_op_operand(op, 0), depth - 1) || bounds_indices(tile_op_operand(op, 1), depth - 1);
    case TILE_OP_RESHAPE:
    case TILE_OP_BROADCAST: return bounds_indices(tile_op_operand(op, 0), depth - 1);
    case TILE_OP_LT:
    case TILE_OP_GE: return tile_value_def(tile_op_operand(op, 0), TILE_OP_IOTA) && tile_value_def(tile_op_operand(op, 1), TILE_OP_SPLAT);
    default: return false;
    }
}

static bool fills_open_range(const TileOp *op) {
    const TileAttribute *axes = tile_op_get(op, TILE_ATTRIBUTE_AXES);
    int64_t known;
    for (unsigned i = 0; i < axes->count; i++)
        if (!tile_value_integer(tile_fill_lo(op, i), &known) || !tile_value_integer(tile_fill_hi(op, i), &known)) return true;
    return false;
}

/* Does a point of the value load something, by ops that are computed with it? */
static bool loads(Nest *n, const TileValue *value, unsigned depth) {
    const TileOp *op = value->op;
    if (!op || !depth || !tile_type_is_tile(value->type) || nest_info(n, value)->statement) return false;
    if (op->id == TILE_OP_LOAD_TILE) return true;
    bool found = false;
    for (unsigned i = 0; i < op->operand_count && !op->region_count; i++) found = found || loads(n, tile_op_operand(op, i), depth - 1);
    return found;
}

/* Would it be asked at each of many positions whether the element that it loads exists, as by a sorting network of a tile that may not be whole? A loop
 * of its own is there twice, without the question and with it, which the network would be too long for. */
static bool asks_at_many(Nest *n, const TileOp *op) {
    const TileValue *value = &op->results[0];
    bool asks = op->id == TILE_OP_FILL ? fills_open_range(op)
                                       : op->id == TILE_OP_SELECT && bounds_indices(tile_op_operand(op, 0), MOST_PARTS);
    return asks && nest_bits_positions(n, value) >= MANY_POSITIONS && loads(n, value, DEEPEST_LOAD) && fits(n, value->type);
}

static void place_value(Nest *n, TileOp *op) {
    static const char *const questions = "its reader would ask for each of its elements whether it exists";
    static const char *const many_elements = "one element of its reader needs many of its elements";
    static const char *const choice = "a choice between its halves would compute both";
    TileValue *value = tile_op_result(op, 0);
    NestInfo *info = nest_info(n, value);
    if (!tile_type_is_tile(value->type) || info->statement || !info->puller) return;
    if (!nest_bits_fix(n, op)) keep_moved(n, value, many_elements);
    if (!info->statement && chooses_blindly(n, op)) keep_value(n, value, choice);
    if (!info->statement && asks_at_many(n, op)) keep_value(n, value, questions);
    if (info->statement) return;
    bool together = nest_bits_together(n, value);
    bool many = info->many && !together;
    uint32_t points = together ? 1 : points_of(info);
    bool recomputed = many || nest_bits_apart(n, value) || loop_depth(info->puller->op->block) > loop_depth(op->block);
    /* A value that others share is kept before it is repeated. */
    bool worth = recomputed && op->id != TILE_OP_BROADCAST && (is_expensive(op) || info->weight >= NEST_LONG) &&
                 fits(n, value->type);
    if (worth || (points > NEST_POINTS && is_computed(op))) {
        keep_value(n, value, worth ? "that is cheaper than to compute it for each reader" : many_elements);
    } else {
        nest_bits_fix(n, op);
        mark_operands(n, op, &(Reader){info->puller, many, points, info->scattered ? NULL : info->bits});
    }
}

/* An upper bound of the ops that compute a value at one point: shared operands count each time. */
static void weigh_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        bool tile = op->result_count == 1 && !op->region_count && tile_type_is_tile(op->results[0].type);
        uint32_t weight = 1;
        for (unsigned i = 0; tile && i < op->operand_count && weight < NEST_LONG; i++)
            weight += nest_info(n, tile_op_operand(op, i))->weight;
        if (tile && !nest_info(n, &op->results[0])->statement) nest_info(n, &op->results[0])->weight = weight;
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) weigh_block(n, &op->regions[i]);
    }
}

static void place_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->last; op; op = op->previous) {
        for (unsigned i = nest_has_blocks(op) ? op->region_count : 0; i-- > 0;) place_block(n, &op->regions[i]);
        NestStatement *s = tile_map_get(&n->statements, op);
        if (s && s->kind == NEST_KEEP)
            mark_read(n, s);
        else if (s)
            for (; s; s = s->next) mark_statement(n, s);
        else if (op->result_count == 1 && !op->region_count)
            place_value(n, op);
    }
}

/* ---- the pass ---- */

static void keep_deep(Nest *n, TileValue *value, const char *why) { nest_keep(n, value); }

static void keep_overwritten(Nest *n, TileValue *value, const char *why) {
    nest_keep(n, value);
    remark_kept(n, value, why);
}

TileResult tile_pass_cpu_place(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Nest n = nest_create(context, func);
    nest_describe_tensors(&n);
    give_all_slots(&n, n.body);
    nest_find_needs(&n);
    plan_block(&n, n.body);
    nest_join_dots(&n);
    weigh_block(&n, n.body);
    place_block(&n, n.body);
    nest_find_deep(&n, keep_deep);
    nest_bits_finish(&n);
    nest_analyse(&n);
    nest_find_overwritten(&n, keep_overwritten);
    nest_write_homes(&n);
    return n.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
