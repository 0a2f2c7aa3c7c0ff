/* Folds and scans in blocks, in the order of lang/ir/ops.def: the elements of a block are lanes of vectors, shuffles
 * give neighbours and lanes to the left, and the combiner runs on vectors. Full blocks have no masks. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { FEW_OPS = 3, VECTORS_AT_A_TIME = 4 };

/* Elements, or folds of some of them. `full`: which lanes have an element; NULL: all. */
typedef struct Cells {
    TileValue *x[TILE_MAX_FOLD], *full;
} Cells;

typedef struct FoldLoop {
    TilePassContext *context;
    TileModule *module;
    TileStrides *strides;
    TileOp *loop;
    const TileBlock *combiner;
    unsigned count;
    int64_t block, width; /* elements of a block; lanes of a vector */
    bool prefix, reverse, exclusive, has_mask;
    Cells acc; /* scalars; of scans: broadcast to vectors */
} FoldLoop;

/* The active lanes of a block: from `start` and below `limit`; NULL: no such bound. */
typedef struct Bounds {
    TileValue *start, *limit;
} Bounds;

/* ---- cells ---- */

static TileValue *select(TileBuilder *b, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(b, TILE_OP_SELECT, condition, x, y);
}

/* Combines left with right; where one of them is missing, takes the other. */
static Cells merge(const FoldLoop *f, TileBuilder *b, const Cells *left, const Cells *right) {
    Cells result = {.full = NULL};
    tile_build_combined(b, f->combiner, left->x, right->x, result.x);
    for (unsigned i = 0; i < f->count; i++) {
        if (right->full) result.x[i] = select(b, right->full, result.x[i], left->x[i]);
        if (left->full) result.x[i] = select(b, left->full, result.x[i], right->x[i]);
    }
    if (left->full && right->full) result.full = tile_build_binary(b, TILE_OP_OR, left->full, right->full);
    return result;
}

static TileValue *bytes_of(TileBuilder *b, TileValue *mask) {
    const TileType *type = tile_type_vector(b->module->context, TILE_U8, mask->type->extent[0], false);
    return select(b, mask, tile_build_integer(b, type, 1), tile_build_integer(b, type, 0));
}

/* Masks are shuffled as bytes: x86 has no shuffles of its mask registers, so that LLVM moves bit by bit. */
static TileValue *shuffle(TileBuilder *b, TileValue *x, TileValue *y, const int64_t *lanes, int64_t count) {
    if (x->type->scalar != TILE_BOOL) return tile_build_shuffle(b, x, y, lanes, (unsigned)count);
    TileValue *bytes = tile_build_shuffle(b, bytes_of(b, x), bytes_of(b, y), lanes, (unsigned)count);
    return tile_build_binary(b, TILE_OP_NE, bytes, tile_build_integer(b, bytes->type, 0));
}

/* Lanes of one vector, or of two whose lanes are numbered consecutively; a single lane is a scalar. */
static TileValue *lanes_of(TileBuilder *b, TileValue *x, TileValue *y, const int64_t *lanes, int64_t count) {
    return count == 1 ? tile_build_extract(b, x, lanes[0]) : shuffle(b, x, y, lanes, count);
}

static Cells cells_at(const FoldLoop *f, TileBuilder *b, const Cells *cells, const int64_t *lanes, int64_t count) {
    Cells result = {.full = NULL};
    for (unsigned i = 0; i < f->count; i++) result.x[i] = lanes_of(b, cells->x[i], cells->x[i], lanes, count);
    if (cells->full) result.full = lanes_of(b, cells->full, cells->full, lanes, count);
    return result;
}

static const TileType *vector_type(const FoldLoop *f, TileScalar scalar) {
    return tile_type_vector(f->module->context, scalar, f->width, false);
}

/* The lanes from base on that are below limit. */
static TileValue *mask_below(const FoldLoop *f, TileBuilder *b, TileValue *base, TileValue *limit) {
    const TileType *type = vector_type(f, TILE_BOOL);
    TileValue *operands[] = {base, limit};
    return &tile_build_op(b, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1)->results[0];
}

static TileValue *in_all_lanes(const FoldLoop *f, TileBuilder *b, TileValue *scalar) {
    return f->width == 1 ? scalar : tile_build_splat(b, scalar, vector_type(f, scalar->type->scalar));
}

/* ---- points ---- */

static TileLanes start_lanes(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds) {
    TileLanes lanes;
    TileValue *mask = bounds->limit ? mask_below(f, b, base, bounds->limit) : NULL, *count = NULL;
    if (bounds->start) {
        TileValue *before = tile_build_unary(b, TILE_OP_NOT, mask_below(f, b, base, bounds->start));
        mask = tile_build_binary(b, TILE_OP_AND, mask, before);
    } else if (mask) {
        count = tile_build_binary(b, TILE_OP_SUB, bounds->limit, base);
        count = tile_build_binary(b, TILE_OP_MAX, count, tile_build_i64(b, 0));
        count = tile_build_binary(b, TILE_OP_MIN, count, tile_build_i64(b, f->width));
    }
    tile_lanes_init(&lanes, f->context, f->strides, *b, f->width, base, mask, count);
    return lanes;
}

/* The elements base .. base + width. If `forwards`, missing elements past the end need not be marked: nothing follows
 * them. */
static Cells emit_elements(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds, bool forwards) {
    TileBlock *body = &f->loop->regions[0];
    TileLanes lanes = start_lanes(f, b, base, bounds);
    Cells cells = {.full = NULL};
    tile_lanes_block(&lanes, body);
    for (unsigned i = 0; i < f->count; i++) cells.x[i] = tile_lanes_vector(&lanes, tile_op_operand(body->last, i));
    TileValue *counts = f->has_mask ? tile_lanes_vector(&lanes, tile_op_operand(body->last, f->count)) : NULL;
    *b = lanes.builder;
    if (counts && lanes.mask)
        cells.full = select(b, lanes.mask, counts, tile_build_integer(b, counts->type, 0));
    else if (counts || !forwards || bounds->start)
        cells.full = counts ? counts : lanes.mask;
    return cells;
}

static void emit_results(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds, const Cells *results) {
    TileBlock *after = &f->loop->regions[2];
    TileLanes lanes = start_lanes(f, b, base, bounds);
    tile_map_set(&lanes.scalars, after->arguments[0], base);
    for (unsigned i = 0; i < f->count; i++) tile_map_set(&lanes.vectors, after->arguments[1 + i], results->x[i]);
    tile_lanes_block(&lanes, after);
    *b = lanes.builder;
}

/* ---- folds ---- */

/* Combines each lane with its right neighbour, until one is left. */
static Cells fold_lanes(const FoldLoop *f, TileBuilder *b, Cells cells) {
    int64_t even[TILE_FOLD_BLOCK], odd[TILE_FOLD_BLOCK];
    for (int64_t width = f->width / 2; width >= 1; width /= 2) {
        for (int64_t i = 0; i < width; i++) {
            even[i] = 2 * i;
            odd[i] = 2 * i + 1;
        }
        Cells left = cells_at(f, b, &cells, even, width), right = cells_at(f, b, &cells, odd, width);
        cells = merge(f, b, &left, &right);
    }
    return cells;
}

static void emit_fold_block(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds) {
    Cells parts[TILE_FOLD_BLOCK];
    int64_t count = f->block / f->width;
    for (int64_t i = 0; i < count; i++) {
        TileValue *first = i ? tile_build_binary(b, TILE_OP_ADD, base, tile_build_i64(b, i * f->width)) : base;
        parts[i] = fold_lanes(f, b, emit_elements(f, b, first, bounds, false));
    }
    for (; count > 1; count /= 2)
        for (int64_t i = 0; i < count / 2; i++) parts[i] = merge(f, b, &parts[2 * i], &parts[2 * i + 1]);
    TileValue *full = f->acc.full;
    f->acc = merge(f, b, &f->acc, &parts[0]);
    if (full && !f->acc.full) f->acc.full = tile_build_bool(b, true);
}

/* ---- scans ---- */

/* One step of a scan: each lane i is combined with lane from[i] before it, or stays if from[i] == i. Which lanes stay
 * is static, so shuffles select them instead of masks. */
static Cells scan_step(const FoldLoop *f, TileBuilder *b, const Cells *cells, const int64_t *from) {
    int64_t either[TILE_SCAN_BLOCK];
    Cells left = cells_at(f, b, cells, from, f->width), result = {.full = NULL};
    if (cells->full) {
        for (int64_t i = 0; i < f->width; i++) either[i] = from[i] == i ? f->width + i : from[i];
        TileValue *none = tile_build_integer(b, cells->full->type, 0);
        left.full = shuffle(b, cells->full, none, either, f->width);
        return merge(f, b, &left, cells);
    }
    for (int64_t i = 0; i < f->width; i++) either[i] = from[i] == i ? f->width + i : i;
    tile_build_combined(b, f->combiner, left.x, cells->x, result.x);
    for (unsigned i = 0; i < f->count; i++)
        result.x[i] = shuffle(b, result.x[i], cells->x[i], either, f->width);
    return result;
}

/* Combines each lane with that 1, 2, 4, .. lanes before it. */
static Cells scan_lanes(const FoldLoop *f, TileBuilder *b, Cells cells) {
    for (int64_t distance = 1; distance < f->width; distance *= 2) {
        int64_t from[TILE_SCAN_BLOCK];
        for (int64_t i = 0; i < f->width; i++) {
            int64_t before = f->reverse ? i + distance : i - distance;
            from[i] = before >= 0 && before < f->width ? before : i;
        }
        cells = scan_step(f, b, &cells, from);
    }
    return cells;
}

static Cells last_in_all_lanes(const FoldLoop *f, TileBuilder *b, const Cells *cells) {
    int64_t last[TILE_SCAN_BLOCK];
    for (int64_t i = 0; i < f->width; i++) last[i] = f->reverse ? 0 : f->width - 1;
    return cells_at(f, b, cells, last, f->width);
}

/* Results of an exclusive scan: shifted by one lane, with the accumulator in front. */
static Cells shifted(const FoldLoop *f, TileBuilder *b, const Cells *cells, const Cells *before) {
    int64_t from[TILE_SCAN_BLOCK];
    Cells result = {.full = NULL};
    for (int64_t i = 0; i < f->width; i++) from[i] = f->reverse ? i + 1 : i ? i - 1 : f->width;
    for (unsigned i = 0; i < f->count; i++)
        result.x[i] = shuffle(b, cells->x[i], before->x[i], from, f->width);
    return result;
}

static bool is_cheap(const TileBlock *combiner) {
    unsigned ops = 0;
    for (const TileOp *op = combiner->first; op != combiner->last; op = op->next) ops += op->id != TILE_OP_CONST;
    return ops <= FEW_OPS;
}

/* The next block begins with this block's last result. A cheap combiner recomputes it, which shortens the dependence
 * chain from block to block. */
static void emit_scan_block(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds) {
    Cells cells = scan_lanes(f, b, emit_elements(f, b, base, bounds, !f->reverse));
    TileValue *begun = f->acc.full;
    Cells before = f->acc;
    if (begun) before.full = in_all_lanes(f, b, begun);
    Cells results = merge(f, b, &before, &cells);
    Cells wanted = f->exclusive ? shifted(f, b, &results, &before) : results;
    emit_results(f, b, base, bounds, &wanted);
    if (is_cheap(f->combiner)) {
        Cells total = last_in_all_lanes(f, b, &cells);
        f->acc = merge(f, b, &before, &total);
    } else {
        f->acc = last_in_all_lanes(f, b, &results);
    }
    if (!begun)
        f->acc.full = NULL;
    else
        f->acc.full = f->acc.full ? tile_build_extract(b, f->acc.full, 0) : tile_build_bool(b, true);
}

/* ---- loops ---- */

static void emit_block(FoldLoop *f, TileBuilder *b, TileValue *base, const Bounds *bounds) {
    if (f->prefix)
        emit_scan_block(f, b, base, bounds);
    else
        emit_fold_block(f, b, base, bounds);
}

static unsigned carried_count(const FoldLoop *f) { return f->count + (f->acc.full != NULL); }

static void get_carried(const FoldLoop *f, TileValue **values) {
    for (unsigned i = 0; i < f->count; i++) values[i] = f->acc.x[i];
    if (f->acc.full) values[f->count] = f->acc.full;
}

static void set_carried(FoldLoop *f, unsigned i, TileValue *value) {
    *(i < f->count ? &f->acc.x[i] : &f->acc.full) = value;
}

/* Blocks from lo, where one begins, to hi; backwards for a reverse scan. */
static void emit_blocks(FoldLoop *f, TileBuilder *b, TileValue *lo, TileValue *hi, const Bounds *bounds) {
    TileValue *values[TILE_MAX_FOLD + 1];
    unsigned count = carried_count(f);
    get_carried(f, values);
    TileOp *made = tile_build_for(b, lo, hi, tile_build_i64(b, f->block), values, count);
    TileBuilder inner = tile_builder_at_end(f->module, &made->regions[0]);
    inner.location = b->location;
    TileValue *base = made->regions[0].arguments[0];
    for (unsigned i = 0; i < count; i++) set_carried(f, i, made->regions[0].arguments[1 + i]);
    if (f->reverse) {
        TileValue *done = tile_build_binary(&inner, TILE_OP_SUB, base, lo);
        TileValue *last = tile_build_binary(&inner, TILE_OP_SUB, hi, tile_build_i64(&inner, f->block));
        base = tile_build_binary(&inner, TILE_OP_SUB, last, done);
    }
    emit_block(f, &inner, base, bounds);
    get_carried(f, values);
    tile_build_end(&inner, TILE_OP_YIELD, values, count);
    for (unsigned i = 0; i < count; i++) set_carried(f, i, tile_op_result(made, i));
}

/* A partial block, if there is one. */
static void emit_partial_block(FoldLoop *f, TileBuilder *b, TileValue *base, TileValue *hi) {
    TileValue *values[TILE_MAX_FOLD + 1];
    const TileType *types[TILE_MAX_FOLD + 1];
    unsigned count = f->prefix && !f->reverse ? 0 : carried_count(f); /* nothing follows the end of a scan */
    Bounds bounds = {.limit = hi};
    get_carried(f, values);
    for (unsigned i = 0; i < count; i++) types[i] = values[i]->type;
    TileOp *made = tile_build_if(b, tile_build_binary(b, TILE_OP_LT, base, hi), types, count);
    TileBuilder inner = tile_builder_at_end(f->module, &made->regions[1]);
    inner.location = b->location;
    tile_build_end(&inner, TILE_OP_YIELD, values, count);
    inner = tile_builder_at_end(f->module, &made->regions[0]);
    inner.location = b->location;
    emit_block(f, &inner, base, &bounds);
    get_carried(f, values);
    tile_build_end(&inner, TILE_OP_YIELD, values, count);
    for (unsigned i = 0; i < count; i++) set_carried(f, i, tile_op_result(made, i));
}

static TileValue *round_down(const FoldLoop *f, TileBuilder *b, TileValue *x) {
    return tile_build_binary(b, TILE_OP_AND, x, tile_build_i64(b, -f->block));
}

/* Blocks are counted from lane 0. If the elements do not begin there, every block has a mask. */
static void emit_lines(FoldLoop *f, TileBuilder *b) {
    TileValue *lo = tile_op_operand(f->loop, 0), *hi = tile_op_operand(f->loop, 1);
    int64_t last, extent = tile_op_integer(f->loop, TILE_ATTRIBUTE_EXTENT, 0);
    bool known = tile_value_integer(hi, &last);
    if (!tile_value_is_integer(lo, 0)) {
        Bounds bounds = {lo, hi};
        TileValue *begin = round_down(f, b, lo), *up = tile_build_i64(b, f->block - 1);
        TileValue *end = round_down(f, b, tile_build_binary(b, TILE_OP_ADD, hi, up));
        end = select(b, tile_build_binary(b, TILE_OP_LT, lo, hi), end, begin);
        emit_blocks(f, b, begin, end, &bounds);
        return;
    }
    bool whole = known && last % f->block == 0, single = extent <= f->block;
    TileValue *end = whole ? hi : round_down(f, b, tile_build_binary(b, TILE_OP_MAX, hi, lo));
    if (!whole && f->reverse) emit_partial_block(f, b, end, hi);
    if (whole && single && last > 0)
        emit_block(f, b, lo, &(Bounds){0});
    else if (!single || whole || extent == f->block)
        emit_blocks(f, b, lo, end, &(Bounds){0});
    if (!whole && !f->reverse) emit_partial_block(f, b, end, hi);
}

/* ---- the op ---- */

static int64_t next_power(int64_t value) {
    int64_t power = 1;
    while (power < value) power *= 2;
    return power;
}

static void choose_width(FoldLoop *f) {
    int64_t extent = next_power(tile_op_integer(f->loop, TILE_ATTRIBUTE_EXTENT, 0));
    int64_t most = f->prefix ? TILE_SCAN_BLOCK : TILE_FOLD_BLOCK;
    unsigned bytes = 1;
    if (extent < 2) extent = 2;
    f->block = extent < most ? extent : most;
    for (unsigned i = 0; i < f->count; i++) {
        unsigned own = tile_scalar_bytes(f->combiner->arguments[i]->type->scalar);
        if (own > bytes) bytes = own;
    }
    int64_t lanes = VECTORS_AT_A_TIME * (int64_t)f->context->target->vector_bytes / bytes;
    f->width = f->prefix || f->block < lanes ? f->block : lanes;
}

static void start_accumulators(FoldLoop *f, TileBuilder *b) {
    bool init = tile_op_has_part(f->loop, TILE_PARTS_INIT);
    for (unsigned i = 0; i < f->count; i++) {
        TileValue *value =
            init ? tile_loop_carried(f->loop, i) : tile_build_bits(b, f->combiner->arguments[i]->type, 0);
        f->acc.x[i] = f->prefix ? in_all_lanes(f, b, value) : value;
    }
    if (!init) f->acc.full = tile_build_bool(b, false);
}

/* Has the block no loops? Uniform stores are allowed: only arrays of at most one element have them, and the last
 * lane's value remains. */
static bool is_straight(const TileBlock *block) {
    for (const TileOp *op = block->first; op != block->last; op = op->next) {
        bool memory = op->id == TILE_OP_PTR_ADD || op->id == TILE_OP_LOAD || op->id == TILE_OP_STORE;
        if (!memory && op->id != TILE_OP_CONST && tile_op_info((TileOpId)op->id)->class != TILE_CLASS_ELEMENTWISE)
            return false;
    }
    return true;
}

static void emit_fold(void *state, TileStrides *strides, TileBuilder *b, TileValue **results) {
    FoldLoop *f = state;
    f->strides = strides;
    f->acc.full = NULL;
    start_accumulators(f, b);
    emit_lines(f, b);
    for (unsigned i = 0; i < f->loop->result_count; i++) results[i] = f->acc.x[i];
}

bool tile_vectorise_fold(TilePassContext *context, TileOp *loop) {
    FoldLoop f = {.context = context, .module = context->module, .loop = loop, .combiner = &loop->regions[1]};
    if (!is_straight(&loop->regions[0]) || !is_straight(&loop->regions[2])) return false;
    f.count = f.combiner->argument_count / 2;
    f.prefix = tile_op_integer(loop, TILE_ATTRIBUTE_ORDER, 0) == TILE_ORDER_PREFIX;
    f.reverse = tile_op_integer(loop, TILE_ATTRIBUTE_REVERSE, 0) != 0;
    f.exclusive = tile_op_integer(loop, TILE_ATTRIBUTE_EXCLUSIVE, 0) != 0;
    f.has_mask = tile_op_has_part(loop, TILE_PARTS_MASK);
    choose_width(&f);
    tile_emit_versions(context, loop, emit_fold, &f);
    return true;
}
