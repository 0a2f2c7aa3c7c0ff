/* Purpose: load by ranges what is gathered along indices that follow one another but at a border: on a ring, `x[(n.idx - 1) % N]`, or where places
 * outside of a tensor are replaced by those at its border, `x[clamp(n.idx - 1, 0, N - 1)]`. One test asks whether that is so for all loads of a program, as it is
 * for all but a few; these then compute no index for each element.
 *
 * Before:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {readonly, noalias}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %n = dim %x {axis = 0} : i64
 *       %lanes = iota {axis = 0} : i64[256]
 *       %first = splat %begin : i64[256]
 *       %at = add %lanes, %first : i64[256]
 *       %ring = splat %n : i64[256]
 *       %place = rem %at, %ring : i64[256]
 *       %v = load_tile %x, %place {access = [gather]} : f32[256]
 *       store_tile %y, %v, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * After:
 *     func phase tile @k.0(%x: tensor<f32, 1, in> {noalias, readonly}, %y: tensor<f32, 1, out> {noalias}, %begin: i64, %end: i64) threads = 32 {
 *       %zero = const {value = 0} : i64
 *       %one = const {value = 1} : i64
 *       %all = const {value = 256} : i64
 *       %n = dim %x {axis = 0} : i64
 *       %0 = const {value = 0} : i64
 *       %1 = add %0, %begin : i64
 *       %2 = const {value = 255} : i64
 *       %3 = add %2, %begin : i64
 *       %4 = le %1, %3 : bool
 *       %5 = const {value = 0} : i64
 *       %6 = ge %1, %5 : bool
 *       %7 = and %4, %6 : bool
 *       %8 = lt %3, %n : bool
 *       %9 = and %7, %8 : bool
 *       %v = if %9 : f32[256] {
 *         %10 = const {value = 0} : i64
 *         %11 = add %10, %begin : i64
 *         %12 = const {value = 1} : i64
 *         %13 = const {value = 0} : i64
 *         %14 = const {value = 256} : i64
 *         %15 = load_tile %x, %11, %12, %13, %14 {access = [range]} : f32[256]
 *         yield %15
 *       } {
 *         %lanes = iota {axis = 0} : i64[256]
 *         %first = splat %begin : i64[256]
 *         %at = add %lanes, %first : i64[256]
 *         %ring = splat %n : i64[256]
 *         %place = rem %at, %ring : i64[256]
 *         %v.1 = load_tile %x, %place {access = [gather]} : f32[256]
 *         yield %v.1
 *       }
 *       store_tile %y, %v, %zero, %one, %zero, %all {access = [range]}
 *       return
 *     }
 * The index of a lane rises by one from lane to lane where nothing clips it and it begins nowhere again; whether that is so, the first and the last lane tell. A mask that compares
 * indices is part of the test.
 *
 * Needs: gpu-threads. Keeps: tile form. Cost: linear in the ops, times those of the lines. */
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "ptx/grid/masks.h"
#include "ptx/passes.h"

enum { MOST_LOADS = 32, MOST_DEPTH = 16, MOST_ELEMENTS = 96 /* of a thread, that are loaded together */ };

/* A tile of indices along one axis of what is loaded. */
typedef struct Line {
    TileValue *index; /* of all lanes: a tile of that axis alone, or one that is repeated along the others */
    int axis;         /* -1: all lanes have the same index */
} Line;

typedef struct Straight {
    TileOp *load;
    const TileType *shape; /* rows and columns, where one index tile of one axis stands for both; else the load's own */
    TileAccessIndex indices[TILE_MAX_TENSOR_RANK];
    Line lines[TILE_MAX_TENSOR_RANK]; /* of gathers */
    bool follows[TILE_MAX_TENSOR_RANK]; /* the indices follow one another but at a border */
    unsigned rank;
} Straight;

typedef struct Search {
    TilePassContext *context;
    TileFunc *func;
    GpuMasks masks;
    TileBuilder b;
    Straight found[MOST_LOADS];
    unsigned count;
    int64_t elements;
    bool changed;
} Search;

/* ---- what the indices are ---- */

static bool is_uniform(const TileValue *value) {
    const TileOp *op = value->op;
    if (!op || !tile_type_is_tile(value->type)) return false;
    if (op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST) return is_uniform(tile_op_operand(op, 0));
    return op->id == TILE_OP_SPLAT || op->id == TILE_OP_CONST;
}

/* The axis of a tile that is longer than 1; -1: none or several are. */
static int long_axis(const TileType *type) {
    int axis = -1;
    for (unsigned a = 0; a < type->rank; a++) {
        if (type->extent[a] == 1) continue;
        if (axis >= 0) return -1;
        axis = (int)a;
    }
    return axis;
}

/* Is the operand what changes from lane to lane, and the other one the same for all? */
static unsigned changing_operand(const TileOp *op) { return op->operand_count > 1 && is_uniform(tile_op_operand(op, 0)) ? 1 : 0; }

static bool clips(TileOpId id) { return id == TILE_OP_MIN || id == TILE_OP_MAX || id == TILE_OP_REM; }

static bool is_number(const TileValue *uniform, int64_t *number) {
    const TileOp *splat = tile_value_def(uniform, TILE_OP_SPLAT);
    return tile_value_integer(splat ? tile_op_operand(splat, 0) : uniform, number);
}

/* Does the index rise by one from lane to lane, but where it is clipped or begins again? */
static bool is_line(const TileValue *value) {
    for (unsigned depth = 0; depth < MOST_DEPTH; depth++) {
        const TileOp *op = value->op;
        if (!op || !tile_type_is_tile(value->type) || value->type->scalar != TILE_I64 || long_axis(value->type) < 0) return false;
        if (op->id == TILE_OP_IOTA) return tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0) == long_axis(value->type);
        unsigned changing = changing_operand(op);
        bool moves = op->id == TILE_OP_RESHAPE || op->id == TILE_OP_BROADCAST;
        bool sums = op->id == TILE_OP_ADD || op->id == TILE_OP_SUB || clips((TileOpId)op->id);
        if (!moves && !(sums && is_uniform(tile_op_operand(op, 1 - changing)))) return false;
        bool ordered = op->id == TILE_OP_SUB || op->id == TILE_OP_REM;
        int64_t ring;
        if (ordered && changing) return false;
        if (op->id == TILE_OP_REM && is_number(tile_op_operand(op, 1), &ring) && ring < tile_type_lanes(value->type)) return false;
        value = tile_op_operand(op, moves ? 0 : changing);
    }
    return false;
}

/* The index tile, of one axis that stands for those of `shape`, and the one of these along which it changes. */
static bool find_line(const TileType *shape, TileValue *index, Line *line) {
    const TileOp *reshape = tile_value_def(index, TILE_OP_RESHAPE);
    *line = (Line){index, -1};
    if (is_uniform(index)) return true;
    if (!reshape || !tile_type_same_shape(tile_op_operand(reshape, 0)->type, shape)) return false;
    const TileOp *repeated = tile_value_def(tile_op_operand(reshape, 0), TILE_OP_BROADCAST);
    TileValue *once = repeated ? tile_op_operand(repeated, 0) : NULL;
    if (!once || !tile_type_is_tile(once->type) || once->type->rank != shape->rank) return false;
    *line = (Line){once, long_axis(once->type)};
    return line->axis >= 0 && once->type->extent[line->axis] == shape->extent[line->axis];
}

/* The shape of what is gathered along index tiles of one axis, which stands for several; its own, if it has no other. */
static const TileType *shape_of(TileContext *context, const Straight *s) {
    const TileType *own = s->load->results[0].type;
    for (unsigned d = 0; own->rank == 1 && d < s->rank; d++) {
        if (s->indices[d].kind == TILE_ACCESS_RANGE) return own;
        const TileOp *reshape = s->indices[d].kind == TILE_ACCESS_GATHER ? tile_value_def(s->indices[d].first, TILE_OP_RESHAPE) : NULL;
        const TileType *type = reshape ? tile_op_operand(reshape, 0)->type : NULL;
        if (type && tile_type_is_tile(type)) return tile_type_tile(context, own->scalar, type->rank, type->extent);
    }
    return own;
}

/* Every axis of the shape is that of one dimension, in their order. */
static bool has_axes_in_order(const Straight *s) {
    int next = 0, gathers = 0;
    for (unsigned d = 0; d < s->rank; d++) {
        bool gather = s->indices[d].kind == TILE_ACCESS_GATHER;
        int axis = gather ? s->lines[d].axis : s->indices[d].axis;
        if (axis < 0) continue;
        if (axis != next++) return false;
        gathers += gather && !s->follows[d];
    }
    return next == (int)s->shape->rank && gathers < 2;
}

/* Loads that nothing but a mask of indices limits, of a tensor that nobody writes. */
static bool is_plain(Search *search, const TileOp *load) {
    const TileValue *tensor = tile_op_operand(load, 0);
    bool masked = tile_op_has_part(load, TILE_PARTS_MASK);
    for (unsigned i = 0; i < load->attribute_count; i++)
        if (load->attributes[i].key != TILE_ATTRIBUTE_ACCESS && load->attributes[i].key != TILE_ATTRIBUTE_PARTS) return false;
    if (tensor->block != &search->func->body || !search->func->parameters[tensor->index].readonly) return false;
    return !tile_op_has_part(load, TILE_PARTS_FILL) && (!masked || gpu_load_mask_is_testable(&search->masks, load));
}

static bool read_load(Search *search, TileOp *load, Straight *s) {
    *s = (Straight){.load = load};
    if (load->id != TILE_OP_LOAD_TILE || !gpu_mask_is_large(load) || !is_plain(search, load)) return false;
    s->rank = tile_access_read(load, s->indices);
    s->shape = shape_of(search->context->module->context, s);
    for (unsigned d = 0; d < s->rank; d++) {
        if (s->indices[d].kind != TILE_ACCESS_GATHER) continue;
        TileValue *index = s->indices[d].first;
        bool own = s->shape == load->results[0].type;
        if (own ? is_uniform(index) : !find_line(s->shape, index, &s->lines[d])) return false;
        if (own) s->lines[d] = (Line){index, s->indices[d].axis};
        s->follows[d] = s->lines[d].axis >= 0 && is_line(s->lines[d].index);
    }
    return s->indices[s->rank - 1].kind == TILE_ACCESS_GATHER && s->follows[s->rank - 1] && has_axes_in_order(s);
}

/* ---- the test ---- */

static TileValue *scalar_of(TileBuilder *b, const TileValue *uniform) {
    const TileOp *op = uniform->op;
    if (op->id == TILE_OP_CONST) return tile_build_i64(b, (int64_t)tile_op_get(op, TILE_ATTRIBUTE_VALUE)->bits);
    return op->id == TILE_OP_SPLAT ? tile_op_operand(op, 0) : scalar_of(b, tile_op_operand(op, 0));
}

/* The index of a lane, as if nothing clipped it. */
static TileValue *index_at(TileBuilder *b, const TileValue *line, int64_t lane) {
    const TileOp *op = line->op;
    if (op->id == TILE_OP_IOTA) return tile_build_i64(b, lane);
    unsigned changing = changing_operand(op);
    TileValue *changes = index_at(b, tile_op_operand(op, changing), lane);
    if (op->operand_count == 1 || clips((TileOpId)op->id)) return changes;
    TileValue *same = scalar_of(b, tile_op_operand(op, 1 - changing));
    return changing ? tile_build_binary(b, (TileOpId)op->id, same, changes) : tile_build_binary(b, (TileOpId)op->id, changes, same);
}

static TileValue *both(TileBuilder *b, TileValue *x, TileValue *y) { return x && y ? tile_build_binary(b, TILE_OP_AND, x, y) : x ? x : y; }

/* That nothing clips the indices of the lanes up to `last`, which rise from lane to lane. */
static TileValue *test_line(TileBuilder *b, const TileValue *line, int64_t last, TileValue *holds) {
    const TileOp *op = line->op;
    if (op->id == TILE_OP_IOTA) return holds;
    unsigned changing = changing_operand(op);
    const TileValue *inner = tile_op_operand(op, changing);
    holds = test_line(b, inner, last, holds);
    if (!clips((TileOpId)op->id)) return holds;
    TileValue *from = index_at(b, inner, 0), *to = index_at(b, inner, last), *bound = scalar_of(b, tile_op_operand(op, 1 - changing));
    holds = both(b, holds, tile_build_binary(b, TILE_OP_LE, from, to)); /* no sum wraps */
    if (op->id == TILE_OP_MAX) return both(b, holds, tile_build_binary(b, TILE_OP_GE, from, bound));
    if (op->id == TILE_OP_MIN) return both(b, holds, tile_build_binary(b, TILE_OP_LE, to, bound));
    holds = both(b, holds, tile_build_binary(b, TILE_OP_GE, from, tile_build_i64(b, 0)));
    return both(b, holds, tile_build_binary(b, TILE_OP_LT, to, bound));
}

static TileValue *build_test(Search *search, TileOp *before) {
    TileValue *holds = NULL;
    for (unsigned i = 0; i < search->count; i++) {
        const Straight *s = &search->found[i];
        if (tile_op_has_part(s->load, TILE_PARTS_MASK)) {
            TileValue *kept = gpu_mask_build_test(&search->masks, s->load, before);
            holds = both(&search->b, holds, kept);
        }
        for (unsigned d = 0; d < s->rank; d++)
            if (s->follows[d]) holds = test_line(&search->b, s->lines[d].index, s->shape->extent[s->lines[d].axis] - 1, holds);
    }
    return holds;
}

/* ---- both versions ---- */

static TileValue *row_index(TileBuilder *b, const Line *line) {
    return line->index->type->rank == 1 ? line->index : tile_build_reshape(b, line->index, 1, &line->index->type->extent[line->axis]);
}

/* The load by ranges; its result has the type of the gather. */
static TileValue *build_ranges(TileBuilder *b, const Straight *s) {
    enum { MOST_OPERANDS = 1 + 4 * TILE_MAX_TENSOR_RANK };
    TileValue *operands[MOST_OPERANDS];
    int64_t kinds[TILE_MAX_TENSOR_RANK];
    unsigned count = 0;
    operands[count++] = tile_op_operand(s->load, 0);
    for (unsigned d = 0; d < s->rank; d++) {
        const TileAccessIndex *index = &s->indices[d];
        const Line *line = &s->lines[d];
        kinds[d] = (int64_t)index->kind;
        if (index->kind == TILE_ACCESS_RANGE) {
            for (unsigned i = 0; i < 4; i++) operands[count++] = tile_op_operand(s->load, index->operand + i);
        } else if (index->kind == TILE_ACCESS_INDEX || (line->axis >= 0 && !s->follows[d])) {
            operands[count++] = index->kind == TILE_ACCESS_INDEX ? index->first : row_index(b, line);
        } else if (line->axis < 0) {
            kinds[d] = TILE_ACCESS_INDEX;
            operands[count++] = scalar_of(b, line->index);
        } else {
            kinds[d] = TILE_ACCESS_RANGE;
            operands[count++] = index_at(b, line->index, 0);
            operands[count++] = tile_build_i64(b, 1);
            operands[count++] = tile_build_i64(b, 0);
            operands[count++] = tile_build_i64(b, s->shape->extent[line->axis]);
        }
    }
    TileAttribute access = {.key = TILE_ATTRIBUTE_ACCESS, .count = s->rank, .integers = kinds};
    TileValue *loaded = tile_op_result(tile_build_op(b, TILE_OP_LOAD_TILE, operands, count, &access, 1, &s->shape, 1), 0);
    const TileType *own = s->load->results[0].type;
    return s->shape == own ? loaded : tile_build_reshape(b, loaded, own->rank, own->extent);
}

static void keep_error(Search *search, const TileBuilder *b) {
    if (b->error) search->b.error = b->error;
}

/* Is the result used in the block alone? */
static bool is_used_within(const TileValue *value, const TileBlock *block) {
    for (const TileUse *use = value->first_use; use; use = use->next)
        if (!tile_block_inside(use->user->block, block)) return false;
    return value->first_use != NULL;
}

/* What only the gathers take is computed where they are. */
static void sink_indices(TileOp *choice) {
    TileBlock *gathers = &choice->regions[1];
    for (TileOp *op = choice->previous, *next; op; op = next) {
        next = op->previous;
        bool moves = op->result_count == 1 && !op->region_count && tile_op_is_pure(op) && tile_type_is_tile(op->results[0].type);
        if (!moves || !is_used_within(&op->results[0], gathers)) continue;
        tile_op_detach(op);
        tile_op_insert_before(op, gathers->first);
    }
}

static void build_versions(Search *search) {
    TileModule *module = search->context->module;
    TileOp *first = search->found[0].load;
    const TileType *types[MOST_LOADS];
    TileValue *values[MOST_LOADS];
    search->b = tile_builder_before(module, first);
    TileValue *holds = build_test(search, first);
    if (!holds) holds = tile_build_bool(&search->b, true);
    for (unsigned i = 0; i < search->count; i++) types[i] = search->found[i].load->results[0].type;
    TileOp *choice = tile_build_if(&search->b, holds, types, search->count);
    TileBuilder b = tile_builder_at_end(module, &choice->regions[0]);
    b.location = first->location;
    for (unsigned i = 0; i < search->count; i++) values[i] = build_ranges(&b, &search->found[i]);
    tile_build_end(&b, TILE_OP_YIELD, values, search->count);
    keep_error(search, &b);
    b = tile_builder_at_end(module, &choice->regions[1]);
    for (unsigned i = 0; i < search->count; i++) {
        TileOp *load = search->found[i].load;
        choice->results[i].name = load->results[0].name;
        tile_value_replace(&load->results[0], &choice->results[i]);
        tile_op_detach(load);
        tile_builder_insert(&b, load);
        values[i] = &load->results[0];
    }
    tile_build_end(&b, TILE_OP_YIELD, values, search->count);
    keep_error(search, &b);
    keep_error(search, &search->masks.b);
    sink_indices(choice);
    tile_pass_remark(search->context, choice, TILE_DECISION_STRAIGHT, "what is gathered", "%u loads", search->count);
    search->changed = true;
}

/* ---- which loads are together ---- */

static bool stands_behind(const TileOp *op, const TileOp *first) {
    for (const TileOp *next = first->next; next; next = next->next)
        if (next == op) return true;
    return false;
}

/* Can what the op is computed of stand in front of `first`? Moves it there, where `moves`. */
static bool bring_operands(TileOp *op, TileOp *first, bool moves, unsigned depth) {
    if (!depth) return false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileOp *source = tile_op_operand(op, i)->op;
        if (!source || source->block != first->block || !stands_behind(source, first)) continue;
        if (!tile_op_is_pure(source) || source->region_count || !bring_operands(source, first, moves, depth - 1)) return false;
        if (!moves || !stands_behind(source, first)) continue;
        tile_op_detach(source);
        tile_op_insert_before(source, first);
    }
    return true;
}

static void end_group(Search *search) {
    if (search->count) build_versions(search);
    search->count = 0;
    search->elements = 0;
}

static void visit_block(Search *search, TileBlock *block);

static void visit_op(Search *search, TileOp *op) {
    enum { DEPTH = 24 };
    Straight straight;
    if (!read_load(search, op, &straight)) return;
    int64_t elements = tile_type_lanes(straight.shape) / search->func->threads;
    bool fits = search->count < MOST_LOADS && search->elements + elements <= MOST_ELEMENTS;
    if (search->count && (!fits || !bring_operands(op, search->found[0].load, false, DEPTH))) end_group(search);
    if (search->count) bring_operands(op, search->found[0].load, true, DEPTH);
    search->found[search->count++] = straight;
    search->elements += elements;
}

static void visit_block(Search *search, TileBlock *block) {
    for (TileOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (op->region_count) {
            end_group(search);
            for (unsigned i = 0; i < op->region_count; i++) visit_block(search, &op->regions[i]);
        } else {
            visit_op(search, op);
        }
    }
    end_group(search);
}

TileResult tile_pass_gpu_straight(TilePassContext *context, TileFunc *func) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Search search = {.context = context, .func = func};
    gpu_masks_init(&search.masks, context, func);
    visit_block(&search, &func->body);
    if (search.b.error) return tile_pass_fail(context, TILE_INTERNAL, NULL, "gpu-straight: %s", search.b.error);
    return search.changed ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
