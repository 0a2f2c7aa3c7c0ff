/* Folds and scans by a combiner that is associative but not commutative: elements are combined in their order. Along
 * the axis, a thread has contiguous elements, lanes and then warps are in ascending order, and a tile may consist of
 * several such segments, one behind the other. A tile with another layout is converted to one with a single segment.
 * 1. Each thread folds its own elements. 2. Lanes exchange the folds of groups that double in size; of two groups,
 * the later one receives what is before it. 3. Warps exchange their folds through shared memory, for all segments at
 * once. 4. Segments are combined in registers. 5. A scan passes once more over the thread's own elements, beginning
 * with what is before them. The layout alone determines the order. A combiner that is one op, such as a sum or a
 * maximum, is commutative and has an identity element: then lanes need not know which group is the left one, and the
 * fold of no elements is the identity element. What the combiner computes of constants is constant at once: such values,
 * the number of elements of an average, say, are the same in all threads and are not exchanged. */
#include "ptx/lowering/machine.h"
#include "lang/ir/operands.h"
#include "lowering/fold.h"
#include "ptx/grid/scans.h"
#include "ptx/layouts/blocked.h"

/* The fold of some elements, or empty: of none. */
typedef struct Cell {
    TileValue *values[TILE_MAX_FOLD];
    TileValue *full; /* at run time: is there an element? NULL: certainly */
    bool empty;      /* certainly there is none */
} Cell;

typedef struct Fold {
    Gpu *gpu;
    const TileOp *op;
    unsigned count, axis;
    bool scan, reverse, exclusive;
    bool simple;         /* the combiner is commutative and has: */
    TileValue *identity; /* its identity element */
    bool kept;           /* the tile is folded in its own layout */
    GpuLines lines;
    uint32_t registers, line_count; /* of the tile; of the result of a fold */
    uint32_t segments;              /* of a line */
    uint32_t group_count;           /* a group is a segment of a line: number segment * line_count + line */
    uint32_t *order;                /* of each group: its registers in the order of the fold */
    uint32_t length;                /* registers of a group */
    Cell *elements, *totals, *before;
} Fold;

/* ---- combining ---- */

static TileValue *select(Gpu *gpu, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(&gpu->b, TILE_OP_SELECT, condition, x, y);
}

static bool is_constant(const TileValue *value) {
    uint64_t bits;
    return tile_value_bits(value, &bits);
}

/* As tile_build_combined, of scalars, with constants folded. */
static void build_combined(const Fold *f, TileValue *const *left, TileValue *const *right, TileValue **result) {
    Gpu *gpu = f->gpu;
    const TileBlock *body = &f->op->regions[0];
    TileMap map;
    tile_map_init(&map, gpu->arena);
    for (unsigned k = 0; k < f->count; k++) {
        tile_map_set(&map, body->arguments[k], left[k]);
        tile_map_set(&map, body->arguments[f->count + k], right[k]);
    }
    for (const TileOp *op = body->first; op != body->last; op = op->next) {
        TileValue *operands[3];
        for (unsigned i = 0; i < op->operand_count; i++) operands[i] = tile_map_get(&map, tile_op_operand(op, i));
        TileOp *made = tile_build_op(&gpu->b, (TileOpId)op->id, operands, op->operand_count, op->attributes,
                                     op->attribute_count, &op->results[0].type, 1);
        TileValue *folded = tile_fold_constant(&gpu->b, made);
        tile_map_set(&map, &op->results[0], folded ? folded : &made->results[0]);
        if (folded) tile_op_erase(made);
    }
    for (unsigned k = 0; k < f->count; k++) result[k] = tile_map_get(&map, tile_op_operand(body->last, k));
}

/* Combines left with right; if one of them is empty, returns the other. */
static Cell combine(const Fold *f, const Cell *left, const Cell *right) {
    if (left->empty) return *right;
    if (right->empty) return *left;
    Gpu *gpu = f->gpu;
    Cell result = {0};
    build_combined(f, left->values, right->values, result.values);
    for (unsigned k = 0; k < f->count; k++) {
        if (right->full) result.values[k] = select(gpu, right->full, result.values[k], left->values[k]);
        if (left->full) result.values[k] = select(gpu, left->full, result.values[k], right->values[k]);
    }
    if (left->full && right->full) result.full = gpu_binary(gpu, TILE_OP_OR, left->full, right->full);
    return result;
}

/* The cell if the condition holds, else an empty one. */
static Cell only_where(const Fold *f, const Cell *cell, TileValue *condition) {
    Cell result = *cell;
    if (f->simple)
        result.values[0] = select(f->gpu, condition, cell->values[0], f->identity);
    else
        result.full = gpu_and(f->gpu, cell->full, condition);
    return result;
}

/* ---- the layout ---- */

static uint8_t take(unsigned *left, unsigned at_most) {
    unsigned taken = *left < at_most ? *left : at_most;
    *left -= taken;
    return (uint8_t)taken;
}

/* Distributes `bits` over the axes, from the last one on; the rest are copies, along the last axis. */
static void take_all(uint8_t *taken, unsigned *left, unsigned rank, unsigned bits) {
    for (unsigned a = rank; a-- > 0;) {
        taken[a] = take(&left[a], bits);
        bits -= taken[a];
    }
    unsigned last = (rank - 1) % TILE_MAX_TILE_RANK;
    taken[last] = (uint8_t)(taken[last] + bits);
}

/* A layout of one segment: each thread has as many elements along the axis as are left over when all lanes and warps
 * are used, so that no register bit of the axis is above a lane's. */
static TileLayout layout_in_order(const Gpu *gpu, const TileType *tile, unsigned axis) {
    TileLayoutShape shape = tile_layout_shape(tile);
    while (shape.extent[axis] & (shape.extent[axis] - 1))
        shape.extent[axis] += shape.extent[axis] & -shape.extent[axis];
    TileLayoutBlocked blocked = {0};
    for (unsigned a = 0; a < tile->rank; a++) blocked.order[a] = (uint8_t)(tile->rank - 1u - a);
    TileLayout plain = tile_layout_blocked(&shape, &blocked);
    unsigned left[TILE_MAX_TILE_RANK], sum = 0, threads = TILE_LANE_BITS + gpu->log_warps;
    for (unsigned a = 0; a < tile->rank; a++) sum += left[a] = plain.log_extent[a];
    blocked.elements[axis] = take(&left[axis], sum > threads ? sum - threads : 0);
    take_all(blocked.lanes, left, tile->rank, TILE_LANE_BITS);
    take_all(blocked.warps, left, tile->rank, gpu->log_warps);
    return tile_layout_blocked(&shape, &blocked);
}

static TileLayout choose_layout(Fold *f, const TileType *tile) {
    TileLayout own = *tile->layout;
    unsigned log_segments;
    f->kept = gpu_is_in_order(&own, f->axis, &log_segments);
    f->segments = f->kept ? 1u << log_segments : 1;
    return f->kept ? own : layout_in_order(f->gpu, tile, f->axis);
}

/* Writes the registers of a line of the result to its groups, in the order of the fold. */
static void order_line(Fold *f, uint32_t line) {
    const TileLayout *layout = &f->lines.layout, *result = &f->lines.result;
    uint32_t length = f->length * f->segments, found = 0, *order = TILE_NEW_ARRAY(f->gpu->arena, uint32_t, length);
    for (uint32_t r = 0; r < f->registers && found < length; r++) {
        bool same = true;
        for (unsigned a = 0, left = 0; a < layout->rank; a++)
            if (a != f->axis) same &= gpu_register_index(layout, a, r) == gpu_register_index(result, left++, line);
        if (!same) continue;
        uint32_t at = found++;
        for (; at && gpu_register_index(layout, f->axis, order[at - 1]) > gpu_register_index(layout, f->axis, r); at--)
            order[at] = order[at - 1];
        order[at] = r;
    }
    for (uint32_t i = 0; i < length; i++) {
        uint32_t group = i / f->length * f->line_count + line;
        f->order[(size_t)group * f->length + i % f->length] = order[f->reverse ? length - 1 - i : i];
    }
}

/* ---- operands ---- */

static TileValue *operand_in_order(const Fold *f, unsigned number) {
    TileValue *old = tile_op_operand(f->op, number);
    TileLayout have = *old->type->layout;
    return gpu_move(f->gpu, gpu_value(f->gpu, old), old->type, &have, &f->lines.layout);
}

/* Is the register's element one of the tile's, and not excluded by the mask? NULL: certainly. */
static TileValue *is_included(const Fold *f, TileValue *mask, uint32_t reg) {
    Gpu *gpu = f->gpu;
    int64_t extent = tile_op_operand(f->op, 0)->type->extent[f->axis];
    TileValue *full = mask ? gpu_register(gpu, mask, reg) : NULL;
    if (tile_layout_extent(&f->lines.layout, f->axis) == extent) return full;
    TileValue *index = gpu_binary(gpu, TILE_OP_ADD, gpu_thread_index(gpu, &f->lines.layout, f->axis),
                                  gpu_i64(gpu, gpu_register_index(&f->lines.layout, f->axis, reg)));
    return gpu_both(gpu, gpu_binary(gpu, TILE_OP_LT, index, gpu_i64(gpu, extent)), full);
}

static void read_elements(Fold *f) {
    TileValue *values[TILE_MAX_FOLD], *constants[TILE_MAX_FOLD] = {NULL}, *mask = NULL;
    for (unsigned k = 0; k < f->count; k++) {
        TileValue *old = tile_op_operand(f->op, k);
        uint64_t bits;
        if (tile_value_bits(old, &bits))
            constants[k] = tile_build_bits(&f->gpu->b, f->op->regions[0].arguments[k]->type, bits);
        else
            values[k] = operand_in_order(f, k);
    }
    if (tile_op_has_part(f->op, TILE_PARTS_MASK)) mask = operand_in_order(f, f->count);
    for (uint32_t r = 0; r < f->registers; r++) {
        Cell *element = &f->elements[r];
        for (unsigned k = 0; k < f->count; k++)
            element->values[k] = constants[k] ? constants[k] : gpu_register(f->gpu, values[k], r);
        element->full = is_included(f, mask, r);
        if (!element->full || !f->simple) continue;
        *element = only_where(f, element, element->full);
        element->full = NULL;
    }
}

/* The initial value of each line. */
static void read_init(const Fold *f, Cell *init) {
    Gpu *gpu = f->gpu;
    bool has_init = tile_op_has_part(f->op, TILE_PARTS_INIT);
    for (uint32_t line = 0; line < f->line_count; line++) init[line] = (Cell){.empty = !has_init};
    for (unsigned k = 0; has_init && k < f->count; k++) {
        const TileValue *old = tile_op_named_at(f->op, TILE_OPERAND_INIT, k);
        TileValue *value = gpu_value(gpu, old);
        if (tile_type_is_tile(old->type)) {
            TileLayout have = *old->type->layout;
            value = gpu_move(gpu, value, old->type, &have, &f->lines.result);
        }
        for (uint32_t line = 0; line < f->line_count; line++) init[line].values[k] = gpu_register(gpu, value, line);
    }
}

/* ---- from threads to blocks ---- */

static void fold_registers(Fold *f) {
    for (uint32_t group = 0; group < f->group_count; group++) {
        const uint32_t *order = f->order + (size_t)group * f->length;
        f->totals[group] = f->elements[order[0]];
        for (uint32_t i = 1; i < f->length; i++)
            f->totals[group] = combine(f, &f->totals[group], &f->elements[order[i]]);
    }
}

/* x where the condition holds, else y. */
static TileValue *choose(Gpu *gpu, TileValue *condition, TileValue *x, TileValue *y) {
    uint64_t bits[2];
    bool same = x == y || (tile_value_bits(x, &bits[0]) && tile_value_bits(y, &bits[1]) && bits[0] == bits[1]);
    return same ? x : select(gpu, condition, x, y);
}

static Cell choose_cell(const Fold *f, TileValue *condition, const Cell *x, const Cell *y) {
    Cell result = *x;
    for (unsigned k = 0; k < f->count; k++)
        result.values[k] = choose(f->gpu, condition, x->values[k], y->values[k]);
    if (x->full) result.full = choose(f->gpu, condition, x->full, y->full);
    return result;
}

/* The cell of the lane whose number differs in these bits. */
static Cell exchange_cell(const Fold *f, const Cell *mine, uint32_t lanes) {
    Cell other = *mine;
    for (unsigned k = 0; k < f->count; k++)
        if (!is_constant(mine->values[k])) other.values[k] = gpu_exchange(f->gpu, mine->values[k], lanes);
    if (mine->full) other.full = gpu_exchange(f->gpu, mine->full, lanes);
    return other;
}

/* Combines the lane's own cell with that of the other one; `later`: the own one is the later along the axis. */
static Cell combine_lanes(const Fold *f, const Cell *mine, const Cell *other, TileValue *later) {
    if (f->simple) return combine(f, mine, other);
    Cell left = choose_cell(f, later, other, mine), right = choose_cell(f, later, mine, other);
    return combine(f, &left, &right);
}

/* Exchanges folds between groups of lanes whose numbers differ in one bit; `later` is true in the group that is later
 * along the axis. */
static void exchange_lanes(Fold *f, uint32_t groups, uint32_t lanes, TileValue *later) {
    for (uint32_t group = 0; group < groups; group++) {
        Cell mine = f->totals[group], other = exchange_cell(f, &mine, lanes);
        f->totals[group] = combine_lanes(f, &mine, &other, later);
        if (!f->scan) continue;
        Cell received = only_where(f, &other, later);
        f->before[group] = combine(f, &received, &f->before[group]);
    }
}

/* Of two lanes one combines the first half of the groups, the other the second: each sends what it does not combine. */
static void exchange_halves(Fold *f, uint32_t half, uint32_t lanes, TileValue *later) {
    for (uint32_t i = 0; i < half; i++) {
        Cell mine = choose_cell(f, later, &f->totals[half + i], &f->totals[i]),
             sent = choose_cell(f, later, &f->totals[i], &f->totals[half + i]),
             other = exchange_cell(f, &sent, lanes);
        f->totals[i] = combine_lanes(f, &mine, &other, later);
    }
}

/* Each of two lanes gets the half that the other one combined. */
static void return_halves(Fold *f, uint32_t half, uint32_t lanes, TileValue *later) {
    for (uint32_t i = 0; i < half; i++) {
        Cell mine = f->totals[i], other = exchange_cell(f, &mine, lanes);
        f->totals[i] = choose_cell(f, later, &other, &mine);
        f->totals[half + i] = choose_cell(f, later, &mine, &other);
    }
}

/* A scan needs what is before each lane, for all groups. Otherwise lanes share the groups while there are several, and at
 * least two exchanges: G groups then take 2 G exchanges and some, not G for each bit. */
static void fold_lanes(Fold *f) {
    Gpu *gpu = f->gpu;
    uint32_t bits = gpu_axis_bits(&f->lines.layout, TILE_LAYOUT_LANE, f->axis), groups = f->group_count;
    TileValue *later[TILE_LANE_BITS];
    bool halved[TILE_LANE_BITS] = {false};
    for (unsigned i = 0; i < TILE_LANE_BITS; i++) {
        if (!(bits >> i & 1)) continue;
        TileValue *bit = gpu_binary(gpu, TILE_OP_AND, gpu->thread, gpu_i64(gpu, INT64_C(1) << i));
        later[i] = gpu_binary(gpu, f->reverse ? TILE_OP_EQ : TILE_OP_NE, bit, gpu_i64(gpu, 0));
        halved[i] = !f->scan && groups % 2 == 0 && bits >> i > 1;
        if (halved[i])
            exchange_halves(f, groups /= 2, 1u << i, later[i]);
        else
            exchange_lanes(f, groups, 1u << i, later[i]);
    }
    for (unsigned i = TILE_LANE_BITS; i-- > 0;) {
        if (!halved[i]) continue;
        return_halves(f, groups, 1u << i, later[i]);
        groups *= 2;
    }
}

/* The lines of the tile, with an axis of segments in front. */
static GpuLines lines_of_groups(const Fold *f) {
    GpuLines lines = f->lines;
    if (f->segments == 1) return lines;
    lines.result = tile_layout_expand(&lines.result, 0);
    lines.result.pieces[0] = (uint8_t)f->segments;
    return lines;
}

static TileValue **cell_value(Cell *cell, unsigned k, const Fold *f) {
    return k < f->count ? &cell->values[k] : &cell->full;
}

static bool is_constant_total(const Fold *f, unsigned k) {
    bool constant = true;
    for (uint32_t group = 0; group < f->group_count; group++)
        constant &= is_constant(*cell_value(&f->totals[group], k, f));
    return constant;
}

/* The totals of all warps that share a line: index w * group_count + group. */
static Cell *gather_totals(const Fold *f, uint32_t warps) {
    TileArena *arena = f->gpu->arena;
    Cell *gathered = TILE_NEW_ARRAY(arena, Cell, (size_t)warps * f->group_count);
    TileValue **own[GPU_MOST_GATHERED], **all[GPU_MOST_GATHERED];
    unsigned numbers[GPU_MOST_GATHERED], count = 0;
    GpuLines lines = lines_of_groups(f);
    for (uint32_t i = 0; i < warps * f->group_count; i++) gathered[i] = f->totals[i % f->group_count];
    for (unsigned k = 0; k < f->count + (f->totals[0].full != NULL); k++) {
        if (is_constant_total(f, k)) continue;
        own[count] = TILE_NEW_ARRAY(arena, TileValue *, f->group_count);
        for (uint32_t group = 0; group < f->group_count; group++)
            own[count][group] = *cell_value(&f->totals[group], k, f);
        numbers[count++] = k;
    }
    gpu_gather_lines(&lines, own, count, all);
    for (unsigned k = 0; k < count; k++)
        for (uint32_t i = 0; i < warps * f->group_count; i++) *cell_value(&gathered[i], numbers[k], f) = all[k][i];
    return gathered;
}

static void fold_warps(Fold *f) {
    Gpu *gpu = f->gpu;
    uint32_t warps = gpu_line_warps(&f->lines);
    if (warps == 1) return;
    TileValue *rank = gpu_warp_rank(gpu, gpu_axis_bits(&f->lines.layout, TILE_LAYOUT_WARP, f->axis));
    TileOpId earlier = f->reverse ? TILE_OP_GT : TILE_OP_LT;
    const Cell *gathered = gather_totals(f, warps);
    for (uint32_t group = 0; group < f->group_count; group++) {
        Cell all = {.empty = true}, before = {.empty = true};
        for (uint32_t i = 0; i < warps; i++) {
            uint32_t w = f->reverse ? warps - 1 - i : i;
            const Cell *next = &gathered[w * f->group_count + group];
            all = combine(f, &all, next);
            if (!f->scan || i + 1 == warps) continue; /* nothing is after the last one */
            Cell counted = only_where(f, next, gpu_binary(gpu, earlier, gpu_i64(gpu, w), rank));
            before = combine(f, &before, &counted);
        }
        f->totals[group] = all;
        if (f->scan) f->before[group] = combine(f, &before, &f->before[group]);
    }
}

/* Computes what is before each segment of a line; the total of a line is stored in its first group. Of a scan nobody may want it. */
static void fold_segments(Fold *f, const Cell *init) {
    for (uint32_t line = 0; line < f->line_count; line++) {
        Cell sum = init[line];
        for (uint32_t segment = 0; segment < f->segments; segment++) {
            uint32_t group = segment * f->line_count + line;
            f->before[group] = combine(f, &sum, &f->before[group]);
            sum = combine(f, &sum, &f->totals[group]);
        }
        f->totals[line] = sum;
    }
}

/* The totals of whole lines, without the initial value: a reduction of the same elements by the same op reuses them. */
static TileValue **totals_of_lines(const Fold *f) {
    Gpu *gpu = f->gpu;
    if (!f->simple || !f->kept || tile_op_has_part(f->op, TILE_PARTS_MASK)) return NULL;
    TileValue **totals = TILE_NEW_ARRAY(gpu->arena, TileValue *, f->line_count);
    for (uint32_t line = 0; line < f->line_count; line++) {
        Cell sum = f->totals[line];
        for (uint32_t segment = 1; segment < f->segments; segment++)
            sum = combine(f, &sum, &f->totals[segment * f->line_count + line]);
        totals[line] = sum.values[0];
    }
    return totals;
}

/* Is the fold what the last scan ends with? Then there is nothing left to compute. */
static bool take_ends(Fold *f) {
    const GpuScanned *scanned = &f->gpu->scanned;
    if (f->scan || !scanned->ends || !gpu_scan_matches_fold(scanned->scan, f->op, f->gpu->arena)) return false;
    for (uint32_t line = 0; line < f->line_count; line++)
        for (unsigned k = 0; k < f->count; k++) f->totals[line].values[k] = scanned->ends[k * f->line_count + line];
    return true;
}

/* What a fold of the same elements comes to: the totals behind the last segment. */
static TileValue **ends_of_lines(const Fold *f) {
    if (f->reverse) return NULL;
    TileValue **ends = TILE_NEW_ARRAY(f->gpu->arena, TileValue *, (size_t)f->count * f->line_count);
    for (uint32_t line = 0; line < f->line_count; line++)
        for (unsigned k = 0; k < f->count; k++) ends[k * f->line_count + line] = f->totals[line].values[k];
    return ends;
}

/* ---- results ---- */

/* Each element becomes the fold of all elements up to it. If there is nothing before an element, an exclusive scan
 * leaves it undefined. */
static void scan_registers(Fold *f) {
    for (uint32_t group = 0; group < f->group_count; group++) {
        Cell sum = f->before[group];
        for (uint32_t i = 0; i < f->length; i++) {
            Cell *element = &f->elements[f->order[(size_t)group * f->length + i]];
            Cell next = combine(f, &sum, element);
            if (!f->exclusive)
                *element = next;
            else if (!sum.empty)
                *element = sum;
            sum = next;
        }
    }
}

static void write_results(const Fold *f) {
    Gpu *gpu = f->gpu;
    uint32_t count = f->scan ? f->registers : f->line_count;
    const Cell *cells = f->scan ? f->elements : f->totals;
    const TileLayout *have = f->scan ? &f->lines.layout : &f->lines.result;
    TileValue **registers = TILE_NEW_ARRAY(gpu->arena, TileValue *, count);
    for (unsigned k = 0; k < f->count; k++) {
        const TileType *type = f->op->results[k].type;
        for (uint32_t i = 0; i < count; i++) registers[i] = cells[i].values[k];
        TileValue *value = gpu_join(gpu, registers, count);
        if (tile_type_is_tile(type)) {
            TileLayout want = *type->layout;
            value = gpu_move(gpu, value, type, have, &want);
        }
        tile_map_set(&gpu->values, &f->op->results[k], value);
    }
}

void gpu_lower_fold(Gpu *gpu, TileOp *op) {
    const TileType *tile = tile_op_operand(op, 0)->type;
    Fold f = {.gpu = gpu,
              .op = op,
              .count = op->result_count,
              .axis = (unsigned)tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0),
              .scan = op->id == TILE_OP_SCAN,
              .reverse = tile_op_integer(op, TILE_ATTRIBUTE_REVERSE, 0) != 0,
              .exclusive = tile_op_integer(op, TILE_ATTRIBUTE_EXCLUSIVE, 0) != 0};
    uint64_t bits;
    f.simple = gpu_scan_op(op, &bits) != TILE_OP_COUNT;
    if (f.simple) f.identity = tile_build_bits(&gpu->b, tile_type_scalar(gpu->module->context, tile->scalar), bits);
    TileLayout layout = choose_layout(&f, tile), slice = tile_layout_slice(&layout, f.axis);
    f.lines = (GpuLines){gpu, layout, tile_layout_without_copies(&slice), f.axis};
    f.registers = tile_layout_registers(&layout);
    f.line_count = tile_layout_registers(&f.lines.result);
    f.group_count = f.line_count * f.segments;
    f.length = f.registers / f.group_count;
    f.order = TILE_NEW_ARRAY(gpu->arena, uint32_t, f.registers);
    f.elements = TILE_NEW_ARRAY(gpu->arena, Cell, f.registers);
    f.totals = TILE_NEW_ARRAY(gpu->arena, Cell, f.group_count);
    f.before = TILE_NEW_ARRAY(gpu->arena, Cell, f.group_count);
    if (take_ends(&f)) {
        write_results(&f);
        return;
    }
    gpu_remark_reduction(gpu, op, &layout, f.axis);
    Cell *init = TILE_NEW_ARRAY(gpu->arena, Cell, f.line_count);
    for (uint32_t line = 0; line < f.line_count; line++) order_line(&f, line);
    for (uint32_t group = 0; group < f.group_count; group++) f.before[group] = (Cell){.empty = true};
    read_elements(&f);
    read_init(&f, init);
    fold_registers(&f);
    fold_lanes(&f);
    fold_warps(&f);
    TileValue **totals = f.scan ? totals_of_lines(&f) : NULL;
    fold_segments(&f, init);
    if (f.scan) gpu->scanned = (GpuScanned){op, totals, ends_of_lines(&f)};
    if (f.scan) scan_registers(&f);
    write_results(&f);
}
