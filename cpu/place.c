/* Placement: which tile values are recomputed at their uses, and which are stored in buffers. Stores, reductions,
 * scans and dots are always statements. Any other value becomes one only if recomputing it costs more than reading
 * it: an expensive op, or a long chain of cheap ones, with more than one reader or a reader in a deeper loop. A load
 * is done at its uses unless a store in between might change its result. Loop-carried tiles are in buffers. */
#include <string.h>

#include "cpu/nest.h"
#include "lang/ir/operands.h"

/* ---- positions and slots ---- */

static bool is_carried_tile(const TileValue *value) {
    return tile_type_is_tile(value->type) && !nest_is_single(value->type);
}

/* A loop reuses the buffer of its initial value if that has no other reader. */
static NestBuffer *slot_for(Nest *n, TileValue *start) {
    NestBuffer *slot = start ? nest_info(n, start)->slot : NULL;
    return slot && tile_value_has_one_use(start) ? slot : NULL;
}

static void give_slots(Nest *n, TileOp *op) {
    unsigned leading = op->id == TILE_OP_FOR ? 1 : 0;
    for (unsigned i = 0; i < op->result_count; i++) {
        TileValue *result = tile_op_result(op, i);
        if (!is_carried_tile(result)) continue;
        NestBuffer *slot = op->id == TILE_OP_IF ? NULL : slot_for(n, tile_loop_carried(op, i));
        if (!slot) slot = nest_buffer(n, result->type, 0);
        nest_info(n, result)->slot = slot;
        for (unsigned r = 0; op->id != TILE_OP_IF && r < op->region_count; r++)
            nest_info(n, op->regions[r].arguments[leading + i])->slot = slot;
    }
}

static void note_write(Nest *n, const TileValue *tensor, uint32_t position) {
    size_t i = 0;
    while (i < n->writes.count && n->writes.items[i].tensor != tensor) i++;
    if (i == n->writes.count) tile_list_push(n->arena, &n->writes, (NestWrites){.tensor = tensor});
    tile_list_push(n->arena, &n->writes.items[i].positions, position);
}

static void number_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        uint32_t position = ++n->position;
        for (unsigned i = 0; i < op->result_count; i++) nest_info(n, &op->results[i])->position = position;
        if (op->id == TILE_OP_STORE_TILE || op->id == TILE_OP_ATOMIC_TILE)
            note_write(n, tile_op_operand(op, 0), position);
        if (nest_has_blocks(op)) give_slots(n, op);
        NestSpan *span = TILE_NEW(n->arena, NestSpan);
        span->first = position;
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) number_block(n, &op->regions[i]);
        span->last = n->position;
        tile_map_set(&n->spans, op, span);
    }
}

/* ---- initial statements ---- */

static void plan_reads(Nest *n, TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_type_is_tile(tile_op_operand(op, i)->type) && nest_is_single(tile_op_operand(op, i)->type)) {
            nest_statement(n, NEST_READ, op, NULL);
            return;
        }
}

static bool same_extents(const TileType *a, const TileType *b) {
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

/* Values of one shape are copied in one nest, so that at each point all are read before any is written. */
static void plan_copy(Nest *n, TileOp *at, TileValue *value, NestBuffer *to) {
    if (nest_info(n, value)->slot == to) return;
    NestStatement *s = tile_map_get(&n->statements, at);
    while (s && (s->kind != NEST_COPY || !same_extents(s->copies[0].value->type, value->type))) s = s->next;
    if (!s) s = nest_statement(n, NEST_COPY, at, NULL);
    size_t bytes = s->copy_count * sizeof(NestCopy);
    if ((s->copy_count & (s->copy_count - 1)) == 0) /* full: the capacity is a power of two */
        s->copies = tile_arena_grow(n->arena, s->copies, bytes, bytes ? 2 * bytes : sizeof(NestCopy));
    s->copies[s->copy_count++] = (NestCopy){value, to};
}

static void plan_copies(Nest *n, TileOp *at, TileOperand name, const TileOp *owner) {
    for (unsigned i = 0; i < owner->result_count; i++) {
        NestBuffer *slot = nest_info(n, &owner->results[i])->slot;
        if (slot) plan_copy(n, at, tile_op_named_at(at, name, i), slot);
    }
}

/* Tiles are copied to buffers, in program order. */
static void plan_print(Nest *n, TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *value = tile_op_operand(op, i);
        if (!tile_type_is_tile(value->type)) continue;
        NestStatement *copy = nest_statement(n, NEST_COPY, op, NULL);
        copy->copies = TILE_NEW(n->arena, NestCopy);
        *copy->copies = (NestCopy){value, nest_buffer(n, value->type, 0)};
        copy->copy_count = 1;
    }
    nest_statement(n, NEST_PRINT, op, NULL);
}

static void plan_region_op(Nest *n, TileOp *op) {
    plan_reads(n, op);
    if (op->id == TILE_OP_FOR || op->id == TILE_OP_WHILE) plan_copies(n, op, TILE_OPERAND_CARRIED, op);
    for (unsigned r = 0; r < op->region_count; r++) {
        TileOp *end = op->regions[r].last;
        plan_reads(n, end);
        if (end->id == TILE_OP_YIELD || end->id == TILE_OP_CONDITION)
            plan_copies(n, end, end->id == TILE_OP_CONDITION ? TILE_OPERAND_CARRIED : TILE_OPERAND_VALUES, op);
    }
}

static void plan_fold(Nest *n, TileOp *op) {
    NestStatement *whole = nest_statement(n, op->id == TILE_OP_SCAN ? NEST_SCAN : NEST_FOLD, op, tile_op_result(op, 0));
    for (unsigned i = 1; i < op->result_count; i++)
        nest_statement(n, NEST_PART, op, tile_op_result(op, i))->whole = whole;
}

static void plan_block(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        TileValue *result = op->result_count ? tile_op_result(op, 0) : NULL;
        if (op->id == TILE_OP_STORE_TILE) nest_statement(n, NEST_STORE, op, NULL);
        if (op->id == TILE_OP_ATOMIC_TILE) nest_statement(n, NEST_ATOMIC, op, result);
        if (op->id == TILE_OP_REDUCE) nest_statement(n, NEST_REDUCE, op, result);
        if (op->id == TILE_OP_ARG_REDUCE) nest_statement(n, NEST_ARG_REDUCE, op, result);
        if (tile_op_combiner(op)) plan_fold(n, op);
        if (op->id == TILE_OP_DOT) nest_plan_dot(n, op);
        if (op->id == TILE_OP_PRINT) plan_print(n, op);
        if (op->id == TILE_OP_RESHAPE && !tile_type_is_tile(result->type)) nest_statement(n, NEST_SCALAR, op, result);
        if (nest_has_blocks(op)) plan_region_op(n, op);
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

static bool is_expensive(const TileOp *op) {
    return (tile_op_info((TileOpId)op->id)->traits & TILE_TRAIT_COSTLY) && !divides_by_power(op);
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

static void mark_operands(Nest *n, const TileOp *op, const Reader *reader) {
    for (unsigned i = 0; i < op->operand_count; i++) {
        NestBits read;
        Reader own = *reader;
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

static void place_value(Nest *n, TileOp *op) {
    static const char *const many_elements = "one element of its reader needs many of its elements";
    static const char *const choice = "a choice between its halves would compute both";
    TileValue *value = tile_op_result(op, 0);
    NestInfo *info = nest_info(n, value);
    if (!tile_type_is_tile(value->type) || info->statement || !info->puller) return;
    if (!nest_bits_fix(n, op)) keep_moved(n, value, many_elements);
    if (!info->statement && chooses_blindly(n, op)) keep_value(n, value, choice);
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

/* ---- values that have to be kept ---- */

/* The depth of a virtual value is that of the recursion here and of live values in the code, so it is limited. */
static void limit_depth(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        uint32_t depth = 0;
        for (unsigned i = 0; i < op->operand_count; i++) {
            const NestInfo *info = nest_info(n, tile_op_operand(op, i));
            if (!info->statement && info->depth > depth) depth = info->depth;
        }
        if (op->result_count == 1 && tile_type_is_tile(op->results[0].type)) {
            nest_info(n, &op->results[0])->depth = depth + 1;
            if (depth + 1 >= NEST_DEPTH) nest_keep(n, &op->results[0]);
        }
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) limit_depth(n, &op->regions[i]);
    }
}

/* Does the load read, at each point, only the element that the store writes there? */
static bool same_access(const TileOp *load, const TileOp *store) {
    const TileAttribute *a = tile_op_get(load, TILE_ATTRIBUTE_ACCESS), *b = tile_op_get(store, TILE_ATTRIBUTE_ACCESS);
    if (a->count != b->count || memcmp(a->integers, b->integers, a->count * sizeof *a->integers) != 0) return false;
    TileAccessIndex dimensions[TILE_MAX_TENSOR_RANK], stored[TILE_MAX_TENSOR_RANK];
    unsigned count = tile_access_read(load, dimensions);
    tile_access_read(store, stored);
    for (unsigned d = 0; d < count; d++)
        if (dimensions[d].kind == TILE_ACCESS_GATHER || dimensions[d].first != stored[d].first ||
            dimensions[d].step != stored[d].step)
            return false;
    return true;
}

/* A store may read the element that it overwrites at the same point, unless points alias: gathered indices may be
 * equal, and all loads must precede the first store. */
static bool reads_what_it_writes(Nest *n, const NestStatement *s, const NestLeaf *leaf) {
    if (s->kind != NEST_STORE && s->kind != NEST_ATOMIC) return false;
    const TileOp *load = leaf->value->op;
    const TileValue *tensor = tile_op_operand(load, 0), *target = tile_op_operand(s->op, 0);
    if (!nest_tensors_overlap(n, tensor, target)) return false;
    return s->kind == NEST_ATOMIC || tensor != target || !same_access(load, s->op) ||
           !nest_map_is_identity(s, &leaf->map, leaf->value->type->rank);
}

static bool keep_clobbered_loads(Nest *n) {
    bool changed = false;
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        for (size_t l = 0; l < s->leaves.count; l++) {
            TileValue *value = s->leaves.items[l].value;
            if (!tile_value_def(value, TILE_OP_LOAD_TILE) || nest_info(n, value)->statement) continue;
            if (s->value == value) continue;
            if (!nest_is_clobbered(n, value, s->op) && !reads_what_it_writes(n, s, &s->leaves.items[l])) continue;
            nest_keep(n, value);
            remark_kept(n, value, "a store in between may change what it reads");
            changed = true;
        }
    }
    return changed;
}

/* Loop-carried tiles are overwritten at the end of a loop's body, shape by shape: a value that reads one of them at
 * another point or in another nest than the overwriting one is computed before. */
static bool keep_crossing_copies(Nest *n) {
    bool changed = false;
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        if (s->kind != NEST_COPY || nest_has_blocks(s->op)) continue;
        for (unsigned c = 0; c < s->copy_count; c++) {
            TileValue *value = s->copies[c].value;
            if (!nest_copy_crosses(n, s, c) || nest_info(n, value)->statement || !value->op) continue;
            nest_keep(n, value);
            remark_kept(n, value, "it reads elements of a loop-carried tile that may be overwritten before");
            changed = true;
        }
    }
    return changed;
}

/* ---- the pass ---- */

static void set_levels(Nest *n, NestStatement *s) {
    s->level_count = s->parallel_count = 0;
    switch (s->kind) {
    case NEST_SCALAR:
    case NEST_READ:
    case NEST_DOT:
    case NEST_PRINT: break;
    case NEST_STORE: nest_store_levels(s); break;
    case NEST_ATOMIC: nest_atomic_levels(s); break;
    case NEST_KEEP: nest_levels(s, s->value->type, nest_atoms(n, s->value), -1); break;
    case NEST_COPY: nest_copy_levels(n, s); break;
    case NEST_REDUCE:
    case NEST_ARG_REDUCE: nest_reduce_levels(n, s); break;
    case NEST_FOLD:
    case NEST_SCAN: nest_fold_levels(n, s); break;
    case NEST_PART:
        s->level_count = s->whole->level_count;
        s->parallel_count = s->whole->parallel_count;
        memcpy(s->levels, s->whole->levels, sizeof s->levels);
        memcpy(s->axis, s->whole->axis, sizeof s->axis);
        break;
    }
}

/* The loops of a block of points are inside of the others. */
static void leave_to_block(NestStatement *s) {
    unsigned kept = 0;
    while (kept < s->level_count && (!s->block || s->axis[kept] < (int)s->block->first_axis)) kept++;
    if (s->block) s->level_count = s->parallel_count = kept;
}

/* In program order, so that the recursion is shallow. */
static void find_atoms(Nest *n, TileBlock *block) {
    for (TileOp *op = block->first; op; op = op->next) {
        for (unsigned i = 0; nest_has_blocks(op) && i < op->region_count; i++) find_atoms(n, &op->regions[i]);
        for (unsigned i = 0; i < op->result_count; i++) nest_atoms(n, &op->results[i]);
    }
}

static void analyse(Nest *n) {
    for (uint32_t i = 0; i < n->value_count; i++) n->infos[i].atoms = NULL;
    find_atoms(n, &n->old);
    for (size_t i = 0; i < n->all.count; i++) {
        set_levels(n, n->all.items[i]);
        leave_to_block(n->all.items[i]);
        nest_collect_leaves(n, n->all.items[i]);
    }
}

static void collect_consumers(Nest *n) {
    for (size_t i = 0; i < n->all.count; i++) {
        NestStatement *s = n->all.items[i];
        for (size_t l = 0; l < s->leaves.count; l++) {
            NestStatement *source = nest_info(n, s->leaves.items[l].value)->statement;
            if (source && source != s) tile_list_push(n->arena, &source->consumers, s);
        }
    }
}

void nest_place(Nest *n) {
    number_block(n, &n->old);
    nest_find_needs(n);
    plan_block(n, &n->old);
    nest_join_dots(n);
    weigh_block(n, &n->old);
    place_block(n, &n->old);
    limit_depth(n, &n->old);
    nest_bits_finish(n);
    analyse(n);
    bool changed = keep_clobbered_loads(n);
    if (keep_crossing_copies(n) || changed) analyse(n);
    collect_consumers(n);
}
