/* Folds and scans with a combiner, in the order that ops.def specifies.
 *
 * Elements are copied to cells: one for each element of a block, and some for values carried between blocks. The
 * combiner is applied to up to TILE_FOLD_BLOCK pairs of cells at once, since the values of its region have that many
 * lanes. */
#include "lang/execute/state.h"

/* The elements to fold: lanes of tiles, or the recorded values of a loop's points. */
typedef struct Line {
    ExecValue x[TILE_MAX_FOLD], init[TILE_MAX_FOLD], result[TILE_MAX_FOLD], mask;
    bool has_mask, has_init, scan, reverse, exclusive;
    unsigned count;        /* values that are folded together */
    size_t extent, stride; /* of the axis, in lanes */
    size_t first, line;    /* lane of the line's first element; of its init and of its result */
} Line;

enum {
    ACC = 2 * TILE_FOLD_BLOCK, /* after the elements of a block: the fold of all before the block, */
    AFTER = ACC + 1,           /* the scan's block or, elements in order, one of them: the fold after each */
    CELLS = AFTER + TILE_FOLD_BLOCK
};

typedef struct Cell {
    uint64_t bits[TILE_MAX_FOLD];
    uint8_t poison[TILE_MAX_FOLD];
    bool full;
} Cell;

typedef struct Folding {
    TileExecutor *e;
    const ExecCode *combiner;
    unsigned count;
    Cell *cells;
    uint32_t to[TILE_FOLD_BLOCK], queued;
} Folding;

/* ---- the combiner ---- */

static void put_lane(Folding *f, uint32_t argument, uint32_t lane, uint64_t bits, uint8_t poison) {
    ExecValue value = tile_exec_value(f->e, f->combiner->first_argument + argument);
    value.lanes[lane] = bits;
    if (poison)
        tile_exec_set_poison(f->e, value, lane, poison);
    else if (*value.any)
        value.poison[lane] = 0;
}

static void put_pair(Folding *f, uint32_t lane, const Cell *left, const Cell *right) {
    for (unsigned k = 0; k < f->count; k++) {
        put_lane(f, k, lane, left->bits[k], left->poison[k]);
        put_lane(f, f->count + k, lane, right->bits[k], right->poison[k]);
    }
}

/* Applies the combiner to the pending pairs. Lanes without a pair repeat lane 0's, so that they cannot trap. */
static bool flush(Folding *f) {
    if (!f->queued) return true;
    for (unsigned k = 0; k < 2 * f->count; k++) {
        ExecValue value = tile_exec_value(f->e, f->combiner->first_argument + k);
        for (uint32_t lane = f->queued; lane < TILE_FOLD_BLOCK; lane++)
            put_lane(f, k, lane, value.lanes[0], tile_exec_poisoned(value, 0));
    }
    const ExecInstruction *end = &f->combiner->items[f->combiner->count - 1];
    for (const ExecInstruction *in = f->combiner->items; in != end; in++)
        if (!in->run(f->e, in)) return false;
    for (unsigned k = 0; k < f->count; k++) {
        ExecValue value = tile_exec_operand(f->e, end, k);
        for (uint32_t i = 0; i < f->queued; i++) {
            f->cells[f->to[i]].bits[k] = value.lanes[i];
            f->cells[f->to[i]].poison[k] = tile_exec_poisoned(value, i);
        }
    }
    for (uint32_t i = 0; i < f->queued; i++) f->cells[f->to[i]].full = true;
    for (unsigned k = 0; k < 2 * f->count; k++)
        tile_exec_clear_poison(tile_exec_value(f->e, f->combiner->first_argument + k));
    f->queued = 0;
    return true;
}

/* Sets cell `to` to combine(left, right), now or at the next flush; if one cell is empty, to the other. */
static bool merge(Folding *f, uint32_t left, uint32_t right, uint32_t to) {
    Cell *cells = f->cells;
    if (!cells[left].full || !cells[right].full) {
        cells[to] = cells[cells[left].full ? left : right];
        return true;
    }
    put_pair(f, f->queued, &cells[left], &cells[right]);
    f->to[f->queued++] = to;
    return f->queued < TILE_FOLD_BLOCK || flush(f);
}

/* ---- elements ---- */

static void take_element(Folding *f, const Line *line, size_t lane, uint32_t to) {
    Cell *cell = &f->cells[to];
    uint8_t unknown = line->has_mask ? tile_exec_poisoned(line->mask, (uint32_t)lane) : 0;
    cell->full = !line->has_mask || unknown || line->mask.lanes[lane];
    for (unsigned k = 0; k < line->count; k++) {
        cell->bits[k] = line->x[k].lanes[lane];
        cell->poison[k] = unknown | tile_exec_poisoned(line->x[k], (uint32_t)lane);
    }
}

static void take_init(Folding *f, const Line *line, size_t lane, uint32_t to) {
    Cell *cell = &f->cells[to];
    cell->full = line->has_init;
    for (unsigned k = 0; line->has_init && k < line->count; k++) {
        cell->bits[k] = line->init[k].lanes[lane];
        cell->poison[k] = tile_exec_poisoned(line->init[k], (uint32_t)lane);
    }
}

/* `counts`: the element's own mask is true. */
static void give_result(Folding *f, const Line *line, size_t lane, uint32_t from, bool counts) {
    const Cell *cell = &f->cells[from];
    for (unsigned k = 0; k < line->count; k++) {
        line->result[k].lanes[lane] = cell->bits[k];
        uint8_t poison = !counts || !cell->full ? EXEC_POISON : cell->poison[k];
        if (poison)
            tile_exec_set_poison(f->e, line->result[k], (uint32_t)lane, poison);
        else if (*line->result[k].any)
            line->result[k].poison[lane] = 0;
    }
}

/* ---- in blocks ---- */

/* Folds cells 0 .. size into cell 0, as a tree of neighbours. */
static bool fold_neighbours(Folding *f, uint32_t size) {
    for (uint32_t half = size / 2; half; half /= 2) {
        for (uint32_t i = 0; i < half; i++)
            if (!merge(f, 2 * i, 2 * i + 1, i)) return false;
        if (!flush(f)) return false;
    }
    return true;
}

/* Each cell is combined with that at distance 1, 2, 4, .. to its left (in reverse: to its right). */
static bool scan_block(Folding *f, bool reverse) {
    for (uint32_t distance = 1; distance < TILE_SCAN_BLOCK; distance *= 2) {
        for (uint32_t i = TILE_SCAN_BLOCK - distance; i-- > 0;) {
            uint32_t to = reverse ? TILE_SCAN_BLOCK - 1 - distance - i : i + distance;
            if (!merge(f, reverse ? to + distance : to - distance, to, to)) return false;
        }
        if (!flush(f)) return false;
    }
    return true;
}

static void take_block(Folding *f, const Line *line, size_t begin, uint32_t size) {
    for (uint32_t i = 0; i < size; i++) {
        f->cells[i].full = false;
        if (begin + i < line->extent) take_element(f, line, line->first + (begin + i) * line->stride, i);
    }
}

static bool fold_line(Folding *f, const Line *line) {
    take_init(f, line, line->line, ACC);
    for (size_t begin = 0; begin < line->extent; begin += TILE_FOLD_BLOCK) {
        take_block(f, line, begin, TILE_FOLD_BLOCK);
        if (!fold_neighbours(f, TILE_FOLD_BLOCK) || !merge(f, ACC, 0, ACC) || !flush(f)) return false;
    }
    give_result(f, line, line->line, ACC, true);
    return true;
}

/* The results of one block; cell ACC is updated for the next one. */
static bool give_block(Folding *f, const Line *line, size_t begin, const bool *counts) {
    for (uint32_t i = 0; i < TILE_SCAN_BLOCK; i++)
        if (!merge(f, ACC, i, AFTER + i)) return false;
    if (!flush(f)) return false;
    for (uint32_t i = 0; i < TILE_SCAN_BLOCK && begin + i < line->extent; i++) {
        uint32_t from = AFTER + i;
        if (line->exclusive && line->reverse) from = i + 1 == TILE_SCAN_BLOCK ? ACC : from + 1;
        if (line->exclusive && !line->reverse) from = i ? from - 1 : ACC;
        give_result(f, line, line->first + (begin + i) * line->stride, from, counts[i]);
    }
    f->cells[ACC] = f->cells[AFTER + (line->reverse ? 0 : TILE_SCAN_BLOCK - 1)];
    return true;
}

static bool scan_line(Folding *f, const Line *line) {
    size_t blocks = (line->extent + TILE_SCAN_BLOCK - 1) / TILE_SCAN_BLOCK;
    take_init(f, line, line->line, ACC);
    for (size_t b = 0; b < blocks; b++) {
        bool counts[TILE_SCAN_BLOCK];
        size_t begin = (line->reverse ? blocks - 1 - b : b) * TILE_SCAN_BLOCK;
        take_block(f, line, begin, TILE_SCAN_BLOCK);
        for (uint32_t i = 0; i < TILE_SCAN_BLOCK; i++) counts[i] = f->cells[i].full;
        if (!scan_block(f, line->reverse) || !give_block(f, line, begin, counts)) return false;
    }
    return true;
}

/* ---- elements in order ---- */

/* Neighbouring lines at once: line i has its element in cell i, the fold so far in cell SIDE + i. */
enum { SIDE = TILE_FOLD_BLOCK };

static bool fold_lines_in_turn(Folding *f, const Line *line, size_t lines) {
    bool counts[TILE_FOLD_BLOCK];
    for (uint32_t i = 0; i < lines; i++) take_init(f, line, line->line + i, SIDE + i);
    for (size_t step = 0; step < line->extent; step++) {
        size_t at = line->first + (line->reverse ? line->extent - 1 - step : step) * line->stride;
        for (uint32_t i = 0; i < lines; i++) {
            take_element(f, line, at + i, i);
            counts[i] = f->cells[i].full;
            if (line->scan && line->exclusive) give_result(f, line, at + i, SIDE + i, counts[i]);
            if (!merge(f, SIDE + i, i, SIDE + i)) return false;
        }
        if (!flush(f)) return false;
        for (uint32_t i = 0; i < lines && line->scan && !line->exclusive; i++)
            give_result(f, line, at + i, SIDE + i, counts[i]);
    }
    for (uint32_t i = 0; i < lines && !line->scan; i++) give_result(f, line, line->line + i, SIDE + i, true);
    return true;
}

/* ---- tiles ---- */

static bool start_folding(TileExecutor *e, Folding *f, const ExecCode *combiner, unsigned count) {
    *f = (Folding){.e = e, .combiner = combiner, .count = count};
    f->cells = tile_exec_scratch(e, CELLS * sizeof *f->cells);
    for (unsigned k = 0; k < 2 * count; k++) tile_exec_clear_poison(tile_exec_value(e, combiner->first_argument + k));
    return f->cells != NULL;
}

static void read_flags(Line *line, const TileOp *op) {
    line->reverse = tile_op_integer(op, TILE_ATTRIBUTE_REVERSE, 0) != 0;
    line->exclusive = tile_op_integer(op, TILE_ATTRIBUTE_EXCLUSIVE, 0) != 0;
    line->has_init = tile_op_has_part(op, TILE_PARTS_INIT);
    line->has_mask = tile_op_has_part(op, TILE_PARTS_MASK);
}

bool tile_exec_fold(TileExecutor *e, const ExecInstruction *in) {
    const TileType *type = in->op->operands[0].value->type;
    int64_t axis = tile_op_integer(in->op, TILE_ATTRIBUTE_AXIS, 0);
    Line line = {.scan = in->op->id == TILE_OP_SCAN, .count = in->op->result_count, .stride = 1};
    read_flags(&line, in->op);
    line.extent = (size_t)type->extent[axis];
    for (int64_t i = axis + 1; i < type->rank; i++) line.stride *= (size_t)type->extent[i];
    if (line.has_mask) line.mask = tile_exec_operand(e, in, line.count);
    for (unsigned k = 0; k < line.count; k++) {
        line.x[k] = tile_exec_operand(e, in, k);
        if (line.has_init) line.init[k] = tile_exec_operand(e, in, line.count + line.has_mask + k);
        line.result[k] = tile_exec_value(e, in->result + k);
        tile_exec_clear_poison(line.result[k]);
    }
    Folding f;
    if (!start_folding(e, &f, &in->regions[0], line.count)) return false;
    size_t outer = line.x[0].count / (line.extent * line.stride);
    for (size_t o = 0; o < outer; o++) {
        line.first = o * line.extent * line.stride;
        line.line = o;
        if (axis + 1 == type->rank) {
            if (!(line.scan ? scan_line(&f, &line) : fold_line(&f, &line))) return false;
            continue;
        }
        for (size_t i = 0; i < line.stride; i += TILE_FOLD_BLOCK) {
            Line part = line;
            part.first += i;
            part.line = o * line.stride + i;
            size_t lines = line.stride - i < TILE_FOLD_BLOCK ? line.stride - i : TILE_FOLD_BLOCK;
            if (!fold_lines_in_turn(&f, &part, lines)) return false;
        }
    }
    for (unsigned k = 0; k < line.count && line.result[k].slack; k++)
        tile_exec_slack_fold(in, k,
                             &(ExecFolded){.x = line.x[k],
                                           .result = line.result[k],
                                           .init = line.has_init ? &line.init[k] : NULL,
                                           .mask = line.has_mask ? &line.mask : NULL,
                                           .extent = line.extent,
                                           .inner = line.stride,
                                           .scan = line.scan});
    return true;
}

/* ---- loops over points ---- */

/* Part `part` of a lane's state in a fold_loop: n values, whether the mask is true, n results. */
static ExecValue kept_part(TileExecutor *e, const ExecInstruction *in, unsigned part) {
    ExecValue all = tile_exec_value(e, in->hidden);
    uint32_t extent = (uint32_t)tile_op_integer(in->op, TILE_ATTRIBUTE_EXTENT, 0);
    return (ExecValue){all.lanes + part * extent, all.poison + part * extent, all.any, extent, NULL};
}

static void set_index(TileExecutor *e, const ExecFrame *frame) {
    tile_exec_set_scalar(tile_exec_value(e, frame->code->first_argument), (uint64_t)frame->index);
}

/* Sets the arguments of region 2 for the frame's current point. */
static void set_results(TileExecutor *e, const ExecFrame *frame, unsigned count) {
    for (unsigned k = 0; k < count; k++) {
        ExecValue kept = kept_part(e, frame->owner, count + 1 + k);
        ExecValue value = tile_exec_value(e, frame->code->first_argument + 1 + k);
        tile_exec_set_scalar(value, kept.lanes[frame->index]);
        if (kept.poison[frame->index]) tile_exec_set_poison(e, value, 0, kept.poison[frame->index]);
    }
    set_index(e, frame);
}

/* Called when all points have been recorded. */
static bool fold_points(TileExecutor *e, const ExecInstruction *in) {
    unsigned count = in->op->regions[1].argument_count / 2;
    Line line = {.scan = tile_op_integer(in->op, TILE_ATTRIBUTE_ORDER, 0) == TILE_ORDER_PREFIX,
                 .count = count,
                 .stride = 1,
                 .extent = (size_t)tile_op_integer(in->op, TILE_ATTRIBUTE_EXTENT, 0)};
    read_flags(&line, in->op);
    line.has_mask = true;
    line.mask = kept_part(e, in, count);
    for (unsigned k = 0; k < count; k++) {
        line.x[k] = kept_part(e, in, k);
        line.result[k] = line.scan ? kept_part(e, in, count + 1 + k) : tile_exec_value(e, in->result + k);
        if (line.has_init) line.init[k] = tile_exec_operand(e, in, 2 + k);
        if (!line.scan) tile_exec_clear_poison(line.result[k]);
    }
    Folding f;
    return start_folding(e, &f, &in->regions[1], count) && (line.scan ? scan_line(&f, &line) : fold_line(&f, &line));
}

bool tile_exec_fold_loop(TileExecutor *e, const ExecInstruction *in) {
    int64_t lo, hi, extent = tile_op_integer(in->op, TILE_ATTRIBUTE_EXTENT, 0);
    if (!tile_exec_integer(e, in, 0, "a bound", &lo) || !tile_exec_integer(e, in, 1, "a bound", &hi)) return false;
    ExecValue kept = tile_exec_value(e, in->hidden);
    for (uint32_t i = 0; i < kept.count; i++) kept.lanes[i] = kept.poison[i] = 0;
    *kept.any = 1;
    if (lo >= hi) return fold_points(e, in);
    if (lo < 0 || hi > extent)
        return tile_exec_fault(e, in, "runs from %lld to %lld, beyond its extent of %lld", (long long)lo, (long long)hi,
                               (long long)extent);
    const ExecFrame *outer = tile_exec_frame(e);
    ExecFrame *frame = tile_exec_push(e, &(ExecFrame){.activation = outer->activation,
                                                      .code = &in->regions[0],
                                                      .owner = in,
                                                      .active = outer->active,
                                                      .base = lo,
                                                      .index = lo,
                                                      .end = hi});
    if (frame) set_index(e, frame);
    return frame != NULL;
}

static void record_point(TileExecutor *e, const ExecFrame *frame, const ExecInstruction *yield, unsigned count) {
    ExecValue counts = kept_part(e, frame->owner, count);
    counts.lanes[frame->index] = 1;
    for (uint32_t k = 0; k < yield->operand_count; k++) {
        ExecValue value = tile_exec_operand(e, yield, k), kept = kept_part(e, frame->owner, k);
        kept.lanes[frame->index] = value.lanes[0];
        kept.poison[frame->index] = e->options.no_poison ? 0 : tile_exec_poisoned(value, 0);
    }
}

bool tile_exec_next_fold_point(TileExecutor *e, ExecFrame *frame, const ExecInstruction *yield) {
    const ExecInstruction *in = frame->owner;
    unsigned count = in->op->regions[1].argument_count / 2;
    bool records = frame->code == &in->regions[0];
    if (records) record_point(e, frame, yield, count);
    bool ends = ++frame->index == frame->end;
    if (ends && records && !fold_points(e, in)) return false;
    frame->next = 0;
    if (ends && (!records || in->op->result_count)) {
        e->depth--;
        return true;
    }
    if (ends) {
        frame->index = frame->base;
        frame->code = &in->regions[2];
    }
    if (frame->code == &in->regions[2])
        set_results(e, frame, count);
    else
        set_index(e, frame);
    return true;
}
