/* Builders for products: arithmetic on offsets, loops and branches. Where extents are constant, so are many conditions
 * and trip counts: what they exclude is not left for other passes to find. */
#include "cpu/dot.h"
#include "lowering/fold.h"
#include "lowering/rewrite.h"

TileValue *dot_i64(Dot *dot, int64_t value) { return tile_emit_i64(dot->emitter, value); }

TileValue *dot_add(Dot *dot, TileValue *x, TileValue *y) {
    if (tile_value_is_integer(y, 0)) return x;
    if (tile_value_is_integer(x, 0)) return y;
    return tile_emit_binary(dot->emitter, TILE_OP_ADD, x, y);
}

TileValue *dot_multiply(Dot *dot, TileValue *x, TileValue *y) {
    if (tile_value_is_integer(x, 0) || tile_value_is_integer(y, 1)) return x;
    if (tile_value_is_integer(y, 0) || tile_value_is_integer(x, 1)) return y;
    int64_t first, second;
    if (tile_value_integer(x, &first) && tile_value_integer(y, &second)) return dot_i64(dot, first * second);
    return tile_emit_binary(dot->emitter, TILE_OP_MUL, x, y);
}

TileValue *dot_scale(Dot *dot, TileValue *x, int64_t factor) { return dot_multiply(dot, x, dot_i64(dot, factor)); }

/* The value that canonicalise would put in the place of a new op. */
static TileValue *simplify(Dot *dot, TileValue *value) {
    TileOp *op = dot->builder->before ? dot->builder->before->previous : dot->builder->block->last;
    TileValue *simpler = tile_fold_constant(dot->builder, op);
    if (!simpler) simpler = tile_rewrite_op(dot->builder, op);
    if (!simpler) return value;
    tile_op_erase(op);
    return simpler;
}

TileValue *dot_binary(Dot *dot, TileOpId id, TileValue *x, TileValue *y) {
    return simplify(dot, tile_emit_binary(dot->emitter, id, x, y));
}

TileValue *dot_not(Dot *dot, TileValue *x) { return simplify(dot, tile_emit_unary(dot->emitter, TILE_OP_NOT, x)); }

TileValue *dot_select(Dot *dot, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_value_is_same(x, y) ? x : simplify(dot, tile_emit_select(dot->emitter, condition, x, y));
}

TileValue *dot_minimum(Dot *dot, TileValue *x, TileValue *y) { return dot_binary(dot, TILE_OP_MIN, x, y); }

TileValue *dot_offset(Dot *dot, TileValue *pointer, TileValue *bytes) {
    return tile_value_is_integer(bytes, 0) ? pointer : tile_build_ptr_add(dot->builder, pointer, bytes);
}

TileValue *dot_lanes(Dot *dot, int64_t vectors) {
    TileValue *lanes = dot_i64(dot, vectors * dot->lanes);
    return dot->scale && vectors ? dot_multiply(dot, dot->scale, lanes) : lanes;
}

TileValue *dot_vector_bytes(Dot *dot, int64_t vectors) {
    TileValue *bytes = dot_i64(dot, vectors * dot->lanes * dot->bytes);
    return dot->scale && vectors ? dot_multiply(dot, dot->scale, bytes) : bytes;
}

int64_t dot_column_bytes(const Dot *dot) {
    if (dot->amx) return dot->depth * dot->element; /* its tiles are read row by row */
    return dot->words ? dot->depth * dot->element + DOT_AMX_WORD : (dot->depth + 1) * dot->bytes;
}

int64_t dot_word_step(const Dot *dot) { return dot->amx ? DOT_AMX_BYTES : dot->block_vectors * DOT_AMX_BYTES; }

int64_t dot_vector_step(const Dot *dot) { return dot->amx ? DOT_AMX_TILE : DOT_AMX_BYTES; }

const TileType *dot_vector(Dot *dot, TileScalar scalar) {
    return tile_type_vector(dot->builder->module->context, scalar, dot->lanes, dot->scale != NULL);
}

TileValue *dot_mask(Dot *dot, TileValue *first, TileValue *limit) {
    TileValue *operands[] = {first, limit};
    const TileType *type = dot_vector(dot, TILE_BOOL);
    return tile_op_result(tile_build_op(dot->builder, TILE_OP_MASK_LT, operands, 2, NULL, 0, &type, 1), 0);
}

TileValue *dot_tf32(Dot *dot, TileValue *x) {
    TileEmitter *e = dot->emitter;
    TileValue *bits = tile_build_bitcast(dot->builder, x, TILE_U32);
    TileValue *odd = tile_emit_with_bits(e, TILE_OP_AND, tile_emit_with_bits(e, TILE_OP_SHR, bits, 13), 1);
    TileValue *up = tile_emit_binary(e, TILE_OP_ADD, tile_emit_with_bits(e, TILE_OP_ADD, bits, 0xfff), odd);
    TileValue *rounded = tile_emit_with_bits(e, TILE_OP_AND, up, 0xffffe000);
    TileValue *number = tile_build_bitcast(dot->builder, rounded, TILE_F32);
    return tile_emit_select(e, tile_emit_unary(e, TILE_OP_ISNAN, x), x, number);
}

void dot_prefetch(Dot *dot, TileValue *pointer, TileName level) {
    const TileAttribute cache = {.key = TILE_ATTRIBUTE_CACHE, .integer = level};
    tile_build_op(dot->builder, TILE_OP_PREFETCH, &pointer, 1, &cache, 1, NULL, 0);
}

void dot_fetch_next(Dot *dot, TileValue *step, int64_t each) {
    if (!dot->fetched_count) return;
    TileValue *bytes = dot_scale(dot, step, each * tile_scalar_bytes(dot->a.scalar));
    for (int64_t r = 0; r < dot->fetched_count; r++) dot_prefetch(dot, dot_offset(dot, dot->fetched[r], bytes), TILE_CACHE_L2);
}

static void enter(Dot *dot, TileBlock *block) {
    dot->builder->block = block;
    dot->builder->before = NULL;
}

static void open(Dot *dot, TileOp *op) { dot->open[dot->open_count++] = op; }

static bool has_one_trip(const TileValue *lo, const TileValue *hi, const TileValue *step) {
    int64_t first, limit, distance;
    return tile_value_integer(lo, &first) && tile_value_integer(hi, &limit) && tile_value_integer(step, &distance) &&
           first < limit && limit - first <= distance;
}

TileValue *dot_for(Dot *dot, TileValue *lo, TileValue *hi, TileValue *step) {
    bool once = has_one_trip(lo, hi, step);
    TileOp *loop = once ? NULL : tile_build_for(dot->builder, lo, hi, step, NULL, 0);
    open(dot, loop);
    if (once) return lo;
    enter(dot, &loop->regions[0]);
    return loop->regions[0].arguments[0];
}

void dot_if(Dot *dot, TileValue *condition) {
    TileOp *branch = tile_build_if(dot->builder, condition, NULL, 0);
    open(dot, branch);
    enter(dot, &branch->regions[0]);
}

void dot_else(Dot *dot) {
    tile_build_end(dot->builder, TILE_OP_YIELD, NULL, 0);
    enter(dot, &dot->builder->block->op->regions[1]);
}

void dot_end(Dot *dot) {
    TileOp *op = dot->open[--dot->open_count];
    if (!op) return;
    if (op->id == TILE_OP_IF && dot->builder->block == &op->regions[0]) dot_else(dot);
    tile_build_end(dot->builder, TILE_OP_YIELD, NULL, 0);
    dot->builder->block = op->block;
    dot->builder->before = op->next;
    tile_fold_control(dot->context, op);
}
