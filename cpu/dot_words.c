/* Products of words by vectors: an instruction adds to each lane the products of a word of a, two bf16 or four bytes along k,
 * with a word of b. Panels are those of AMX (dot_amx_pack.c), blocks and the micro-kernel those of fused multiply-adds.
 *
 * The instruction for bytes takes unsigned ones times signed ones. Where both operands are signed, b is packed with 128 added
 * to each byte, and the sums begin at -128 times the sum of their row of a. */
#include "cpu/dot.h"
#include "lang/scalar/scalar.h"

enum {
    ACCUMULATORS = 28, /* of 32 registers: two have b, and one a */
    WIDEST = 2,        /* vectors of a block: so many are packed at a time */
    LANES = 16,
    ALIGN = 64
};

static int64_t at_most(int64_t x, int64_t limit) { return x < limit ? x : limit; }
static int64_t blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

static bool is_signed(const DotOperand *operand) { return tile_scalar_class(operand->scalar) == TILE_CLASS_SIGNED; }

/* The number of rows with the fewest in a partial block, as for fused multiply-adds. */
static int64_t choose_rows(const Dot *dot) {
    int64_t most = ACCUMULATORS / WIDEST, best = at_most(dot->m_max, most);
    for (int64_t r = best; 2 * r >= most; r--)
        if (blocks(dot->m_max, r) * r < blocks(dot->m_max, best) * best) best = r;
    return best;
}

void dot_words_choose_block(Dot *dot) {
    int64_t vectors = blocks(dot->n_max, LANES);
    dot->element = tile_scalar_bytes(dot->a.scalar);
    dot->group = DOT_AMX_BYTES / dot->element;
    dot->block_rows = choose_rows(dot);
    dot->block_vectors = at_most(vectors, WIDEST);
    dot->block_columns = dot_lanes(dot, dot->block_vectors);
    if (dot->n_max % LANES == 0) dot->narrow_vectors = vectors % dot->block_vectors;
    TileBuilder *front = &dot->emitter->front;
    dot->staging = tile_build_buffer(front, DOT_AMX_TILE, ALIGN);
    dot->flips = is_signed(&dot->a) && is_signed(&dot->b);
    if (dot->flips) dot->row_sums = tile_build_buffer(front, dot->block_rows * dot->bytes, ALIGN);
}

static TileValue *multiply(Dot *dot, TileValue *a, TileValue *b, TileValue *sum, TileScalar left, TileScalar right) {
    TileContext *context = dot->builder->module->context;
    const TileType *types[] = {tile_type_scalar(context, left), tile_type_scalar(context, right)};
    const TileAttribute attribute = {.key = TILE_ATTRIBUTE_TYPES, .count = 2, .types = types};
    TileValue *operands[] = {a, b, sum};
    return tile_op_result(tile_build_op(dot->builder, TILE_OP_DOT_WORDS, operands, 3, &attribute, 1, &sum->type, 1), 0);
}

TileValue *dot_words_multiply(Dot *dot, TileValue *a, TileValue *b, TileValue *sum) {
    if (dot->a.scalar == TILE_BF16) return multiply(dot, a, b, sum, TILE_BF16, TILE_BF16);
    return is_signed(&dot->a) ? multiply(dot, b, a, sum, TILE_U8, TILE_I8) : multiply(dot, a, b, sum, TILE_U8, TILE_I8);
}

/* Each lane becomes the sum of all. */
static TileValue *sum_lanes(Dot *dot, TileValue *lanes) {
    int64_t order[LANES];
    for (int64_t distance = LANES / 2; distance; distance /= 2) {
        for (int64_t l = 0; l < LANES; l++) order[l] = l ^ distance;
        TileValue *others = tile_build_shuffle(dot->builder, lanes, lanes, order, LANES);
        lanes = tile_emit_binary(dot->emitter, TILE_OP_ADD, lanes, others);
    }
    return lanes;
}

/* Of rows that a does not have, too: nobody stores what is made of these. */
void dot_words_sum_rows(Dot *dot, TileValue *kc) {
    const TileType *sums = dot_vector(dot, dot->scalar), *words = dot_vector(dot, TILE_U32);
    TileValue *zero = dot_i64(dot, 0), *one = dot_i64(dot, 1), *each = tile_emit_bits(dot->emitter, words, 0x80808080);
    TileValue *r = dot_for(dot, zero, dot_i64(dot, dot->block_rows), one);
    TileValue *row = dot_offset(dot, dot->a_panel, dot_scale(dot, r, dot->panel_row * dot->element));
    TileValue *start = tile_emit_bits(dot->emitter, sums, 0);
    TileOp *loop = tile_build_for(dot->builder, zero, dot_amx_groups(dot, kc), one, &start, 1);
    TileBuilder outer = *dot->builder;
    *dot->builder = tile_builder_at_end(outer.module, &loop->regions[0]);
    dot->builder->location = outer.location;
    TileValue *at = dot_offset(dot, row, dot_scale(dot, loop->regions[0].arguments[0], DOT_AMX_BYTES));
    TileValue *a = tile_build_load(dot->builder, words, at, NULL, NULL, 0);
    TileValue *next = multiply(dot, each, a, loop->regions[0].arguments[1], TILE_U8, TILE_I8);
    tile_build_end(dot->builder, TILE_OP_YIELD, &next, 1);
    if (!outer.error) outer.error = dot->builder->error;
    *dot->builder = outer;
    const TileAttribute lane = {.key = TILE_ATTRIBUTE_AXIS, .integer = 0};
    const TileType *scalar = tile_type_scalar(dot->builder->module->context, dot->scalar);
    TileValue *total = sum_lanes(dot, tile_op_result(loop, 0));
    total = tile_op_result(tile_build_op(dot->builder, TILE_OP_EXTRACT, &total, 1, &lane, 1, &scalar, 1), 0);
    tile_build_store(dot->builder, total, dot_offset(dot, dot->row_sums, dot_scale(dot, r, dot->bytes)), NULL, 0);
    dot_end(dot);
}
