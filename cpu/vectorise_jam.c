/* Unroll-and-jam of loops that read tensors across their rows, as a transposition does.
 *
 * Before:
 *     loop %lo, %hi {..} (%n: i64) {
 *       %p, %q = addresses of %n
 *       loop %first, %last {..} (%m: i64) {
 *         %v = load %p + %m * a row
 *         store %v, %q + %m * an element
 * After:
 *     for %n = %lo, .. by 16 to %end, the last multiple of 16 before %hi
 *       %p0, %q0, .. %p15, %q15 = addresses of %n, .. %n + 15
 *       loop %first, %last {..} (%m: i64) {
 *         %v0 = load %p0 + %m * a row
 *         store %v0, %q0 + %m * an element
 *         ..
 *         store %v15, %q15 + %m * an element
 *     loop %end, %hi {..} (%n: i64) {
 *       as before
 * Where vectors take neighbouring %m, one load is a gather from as many rows. Sixteen of them are the neighbours of each row, so
 * that the rows are loaded as vectors and transposed (vector_group.c), and each line of the cache is used while it is there. */
#include "cpu/vectorise.h"
#include "lang/ir/operands.h"

enum { TOGETHER = 16, MOST_OPS = 32 };

typedef struct Jam {
    TilePassContext *context;
    TileOp *outer, *inner;
    TileStrides along_outer, along_inner;
} Jam;

static bool is_parallel(const TileOp *loop) {
    return tile_loop_kind(loop) == TILE_LOOP_KIND_PARALLEL && !loop->result_count && !tile_op_get(loop, TILE_ATTRIBUTE_VECTOR);
}

/* The only loop in the loop, beside which there are but a few ops without regions that store nothing; NULL: there is none. */
static TileOp *find_inner(const TileOp *outer) {
    TileOp *inner = NULL;
    unsigned count = 0;
    for (TileOp *op = outer->regions[0].first; op != outer->regions[0].last; op = op->next, count++) {
        if (op->id == TILE_OP_LOOP ? inner != NULL : op->region_count || op->id == TILE_OP_STORE) return NULL;
        if (op->id == TILE_OP_LOOP) inner = op;
    }
    if (!inner || !is_parallel(inner)) return NULL;
    for (const TileOp *op = inner->regions[0].first; op; op = op->next, count++)
        if (op->region_count) return NULL;
    bool fixed = tile_value_outside(tile_op_operand(inner, 0), outer) && tile_value_outside(tile_op_operand(inner, 1), outer);
    return fixed && count <= MOST_OPS ? inner : NULL;
}

static bool is_next(TileStrides *strides, const TileOp *access, TileScalar scalar) {
    TileSlope slope = tile_stride_of(strides, tile_op_named(access, TILE_OPERAND_ADDRESS));
    return slope.kind == TILE_SLOPE_AFFINE && !slope.factor && slope.step == (int64_t)tile_scalar_bytes(scalar);
}

/* Is it stored side by side, and for each iteration of the outer loop elsewhere? A row of scratch memory may be that of all
 * iterations. */
static bool is_row_store(Jam *jam, const TileOp *store) {
    TileSlope slope = tile_stride_of(&jam->along_outer, tile_op_named(store, TILE_OPERAND_ADDRESS));
    return slope.kind == TILE_SLOPE_AFFINE && is_next(&jam->along_inner, store, tile_op_operand(store, 0)->type->scalar);
}

/* Is it loaded across rows, while the outer loop goes along them? */
static bool is_turned_load(Jam *jam, const TileOp *load) {
    TileScalar scalar = load->results[0].type->scalar;
    TileSlope slope = tile_stride_of(&jam->along_inner, tile_op_named(load, TILE_OPERAND_ADDRESS));
    return slope.kind == TILE_SLOPE_AFFINE && !is_next(&jam->along_inner, load, scalar) &&
           is_next(&jam->along_outer, load, scalar) && !tile_op_has_part(load, TILE_PARTS_MASK);
}

static bool is_worth(Jam *jam) {
    bool turned = false;
    for (const TileOp *op = jam->inner->regions[0].first; op; op = op->next) {
        if (op->id == TILE_OP_STORE && !is_row_store(jam, op)) return false;
        if (op->id == TILE_OP_LOAD) turned |= is_turned_load(jam, op);
    }
    return turned;
}

/* Appends what the outer loop computes in one iteration, without the inner loop. */
static void copy_outer(Jam *jam, TileBuilder *b, TileMap *map, TileValue *index) {
    tile_map_init(map, jam->context->scratch);
    tile_map_set(map, jam->outer->regions[0].arguments[0], index);
    for (const TileOp *op = jam->outer->regions[0].first; op != jam->outer->regions[0].last; op = op->next)
        if (op != jam->inner) tile_builder_insert(b, tile_op_clone(jam->context->module, op, map));
}

/* Adds the inner loop's body to its copy. */
static void copy_inner(Jam *jam, TileOp *copy, TileMap *map) {
    TileBuilder b = tile_builder_before(jam->context->module, copy->regions[0].last);
    tile_map_set(map, jam->inner->regions[0].arguments[0], copy->regions[0].arguments[0]);
    for (const TileOp *op = jam->inner->regions[0].first; op != jam->inner->regions[0].last; op = op->next)
        tile_builder_insert(&b, tile_op_clone(jam->context->module, op, map));
}

/* The loop over blocks of iterations, from lo to end; returns the loop over the points of their rows. */
static TileOp *build_blocks(Jam *jam, TileBuilder *before, TileValue *lo, TileValue *end) {
    TileMap maps[TOGETHER];
    TileModule *module = jam->context->module;
    TileOp *blocks = tile_build_for(before, lo, end, tile_build_i64(before, TOGETHER), NULL, 0);
    TileBuilder b = tile_builder_at_end(module, &blocks->regions[0]);
    b.location = before->location;
    for (int64_t i = 0; i < TOGETHER; i++) {
        TileValue *index = blocks->regions[0].arguments[0];
        if (i) index = tile_build_binary(&b, TILE_OP_ADD, index, tile_build_i64(&b, i));
        copy_outer(jam, &b, &maps[i], index);
    }
    TileOp *rows = tile_op_clone(module, jam->inner, &maps[0]);
    tile_builder_insert(&b, rows);
    for (unsigned i = 1; i < TOGETHER; i++) copy_inner(jam, rows, &maps[i]);
    tile_build_end(&b, TILE_OP_YIELD, NULL, 0);
    return rows;
}

TileOp *tile_vectorise_jam(TilePassContext *context, TileOp *outer) {
    Jam jam = {.context = context, .outer = outer};
    if (!is_parallel(outer) || tile_loop_extent(outer) < TOGETHER || !(jam.inner = find_inner(outer))) return NULL;
    tile_strides_init(&jam.along_outer, context, outer);
    tile_strides_init(&jam.along_inner, context, jam.inner);
    jam.along_outer.assumes = jam.along_inner.assumes = true;
    if (!is_worth(&jam)) return NULL;
    TileBuilder b = tile_builder_before(context->module, outer);
    b.location = outer->location;
    TileValue *lo = tile_op_operand(outer, 0), *count = tile_build_binary(&b, TILE_OP_SUB, tile_op_operand(outer, 1), lo);
    count = tile_build_binary(&b, TILE_OP_MAX, count, tile_build_i64(&b, 0));
    count = tile_build_binary(&b, TILE_OP_AND, count, tile_build_i64(&b, -TOGETHER));
    TileValue *end = tile_build_binary(&b, TILE_OP_ADD, lo, count);
    TileOp *rows = build_blocks(&jam, &b, lo, end);
    tile_op_set_operand(outer, 0, end);
    return rows;
}
