/* Tiles of indices in words, for the passes gpu-words and cpu-words. Where the numbers of a tile of 64 bits are known to be words, as the
 * places in a tensor are whose extents are words, it is computed of words: sums, products, minima, what a condition chooses. A number that
 * a clamp cuts to words may be cut before: the conversion of a float to a word does so by itself. Who reads such a tile as a word, a
 * comparison or a conversion, reads that one; for others it is extended. Passes of CPUs take no tiles that are sums of the lanes' own indices,
 * whose neighbours are neighbours in memory (`data`). */
#include "lang/index/index.h"
#include "lang/ir/build.h"
#include "lang/ir/operands.h"
#include "lowering/words.h"

typedef struct Words {
    TilePassContext *context;
    TileIndices *indices;
    TileMap made; /* values of 64 bits to their words */
    bool data;    /* only what comes from data: indices of lanes stay as they are */
    bool changed;
} Words;

static bool is_long(const TileValue *value) {
    const TileType *type = value->type;
    return type->kind != TILE_TYPE_TENSOR && type->kind != TILE_TYPE_POINTER && type->kind != TILE_TYPE_CHANNEL && type->scalar == TILE_I64;
}

/* Are all numbers words? Whoever relies on that says so. */
static bool fits(Words *words, const TileValue *value) {
    TileIndexRange range = tile_index_range(words->indices, value);
    if (range.lo < INT32_MIN || range.hi > INT32_MAX) return false;
    tile_index_use(words->indices, range.because);
    return true;
}

static const TileType *in_words(const Words *words, const TileType *type) { return tile_type_with_scalar(words->context->module->context, type, TILE_I32); }

static TileBuilder before(const Words *words, TileOp *op) {
    TileBuilder b = tile_builder_before(words->context->module, op);
    b.location = op->location;
    return b;
}

/* ---- numbers that are cut to words ---- */

/* Is the number, cut to the nearest word, at hand without 64 bits? */
static bool can_be_cut(Words *words, const TileValue *value) {
    const TileOp *op = value->op;
    if (fits(words, value)) return true;
    if (op && op->id == TILE_OP_CONVERT) return tile_scalar_is_float(tile_op_operand(op, 0)->type->scalar);
    return op && (op->id == TILE_OP_MIN || op->id == TILE_OP_MAX) && can_be_cut(words, tile_op_operand(op, 0)) && can_be_cut(words, tile_op_operand(op, 1));
}

/* The value's word, in front of the op that reads it. */
static TileValue *word_of(Words *words, TileBuilder *b, TileValue *value) {
    TileValue *made = tile_map_get(&words->made, value);
    return made ? made : tile_build_convert(b, value, TILE_I32);
}

/* Requires can_be_cut. Minima and maxima of what is cut are cut minima and maxima. */
static TileValue *cut(Words *words, TileBuilder *b, TileValue *value) {
    if (fits(words, value)) return word_of(words, b, value);
    if (value->op->id == TILE_OP_CONVERT) return tile_build_convert(b, tile_op_operand(value->op, 0), TILE_I32);
    TileValue *x = cut(words, b, tile_op_operand(value->op, 0)), *y = cut(words, b, tile_op_operand(value->op, 1));
    return tile_build_binary(b, (TileOpId)value->op->id, x, y);
}

/* ---- ops ---- */

/* Does a reduction take it? It goes to the bound of the fill, and no further, as long as nothing is between them. */
static bool is_reduced(const TileOp *fill) {
    for (const TileUse *use = fill->results[0].first_use; use; use = use->next)
        if (use->user->id == TILE_OP_REDUCE) return true;
    return false;
}

/* Do words as operands give the word of the result? */
static bool takes_words(Words *words, const TileOp *op) {
    switch (op->id) {
    case TILE_OP_MIN:
    case TILE_OP_MAX: return can_be_cut(words, tile_op_operand(op, 0)) && can_be_cut(words, tile_op_operand(op, 1));
    case TILE_OP_ADD:
    case TILE_OP_SUB:
    case TILE_OP_MUL:
    case TILE_OP_NEG:
    case TILE_OP_ABS:
    case TILE_OP_SELECT:
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE:
        for (unsigned i = op->id == TILE_OP_SELECT; i < op->operand_count; i++)
            if (!fits(words, tile_op_operand(op, i))) return false;
        return true;
    case TILE_OP_CONVERT: {
        TileScalar from = tile_op_operand(op, 0)->type->scalar;
        return !tile_scalar_is_float(from) && tile_scalar_bits(from) <= 32;
    }
    case TILE_OP_FILL: return words->data && !is_reduced(op) && fits(words, tile_op_operand(op, 0)) && fits(words, tile_op_operand(op, 1));
    case TILE_OP_IOTA:
    case TILE_OP_CONST: return true;
    }
    return false;
}

static TileValue *make(Words *words, TileBuilder *b, TileOp *op) {
    const TileType *type = in_words(words, op->results[0].type);
    TileValue *operands[2 + 2 * TILE_MAX_TILE_RANK] = {NULL};
    int64_t number;
    if (op->id == TILE_OP_CONST) return tile_value_integer(op->results, &number) ? tile_build_integer(b, type, number) : NULL;
    if (op->id == TILE_OP_CONVERT) {
        TileValue *from = tile_op_operand(op, 0);
        return from->type->scalar == TILE_I32 ? from : tile_build_convert(b, from, TILE_I32);
    }
    for (unsigned i = 0; i < op->operand_count; i++) {
        TileValue *operand = tile_op_operand(op, i);
        bool chooses = (op->id == TILE_OP_SELECT && i == 0) || (op->id == TILE_OP_FILL && i > 1);
        operands[i] = chooses ? operand : op->id == TILE_OP_MIN || op->id == TILE_OP_MAX ? cut(words, b, operand) : word_of(words, b, operand);
    }
    return tile_op_result(tile_build_op(b, (TileOpId)op->id, operands, op->operand_count, op->attributes, op->attribute_count, &type, 1), 0);
}

/* Is one of the operands a word that was made, or cut? */
static bool has_made(Words *words, const TileOp *op) {
    for (unsigned i = 0; i < op->operand_count; i++)
        if (tile_map_get(&words->made, tile_op_operand(op, i))) return true;
    return false;
}

/* Does it come from data, or from a number that comes from data? */
static bool is_data(Words *words, const TileOp *op) {
    bool clamps = op->id == TILE_OP_MIN || op->id == TILE_OP_MAX;
    if (has_made(words, op)) return true;
    if (op->id == TILE_OP_CONVERT) return tile_op_operand(op, 0)->type->scalar != TILE_BOOL; /* what is counted is no index */
    for (unsigned i = 0; clamps && i < op->operand_count; i++)
        if (!fits(words, tile_op_operand(op, i))) return true;
    return false;
}

/* Numbers that all threads share keep their 64 bits, in which bounds and addresses are computed, unless they come from a float. */
static bool is_worth_it(Words *words, const TileOp *op) {
    if (words->data && !is_data(words, op)) return false;
    if (tile_type_is_tile(op->results[0].type)) return true;
    bool clamps = op->id == TILE_OP_MIN || op->id == TILE_OP_MAX;
    return clamps && (!fits(words, tile_op_operand(op, 0)) || !fits(words, tile_op_operand(op, 1)));
}

/* What compares or converts reads words, if all that it reads are. */
static void read_words(Words *words, TileOp *op) {
    bool tile = op->operand_count && tile_type_is_tile(tile_op_operand(op, 0)->type);
    bool compares = op->id == TILE_OP_EQ || op->id == TILE_OP_NE || op->id == TILE_OP_LT || op->id == TILE_OP_LE || op->id == TILE_OP_GT || op->id == TILE_OP_GE;
    if (!compares && op->id != TILE_OP_CONVERT) return;
    if (!tile && (compares || !tile_scalar_is_float(op->results[0].type->scalar))) return;
    if (words->data && !has_made(words, op)) return;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!is_long(tile_op_operand(op, i)) || !fits(words, tile_op_operand(op, i))) return;
    TileBuilder b = before(words, op);
    for (unsigned i = 0; i < op->operand_count; i++) tile_op_set_operand(op, i, word_of(words, &b, tile_op_operand(op, i)));
    words->changed = true;
}

static void visit(TileOp *op, void *state) {
    Words *words = state;
    if (op->region_count) return;
    read_words(words, op);
    if (op->result_count != 1 || !is_long(op->results) || !op->results[0].first_use) return;
    if (!fits(words, op->results) || !takes_words(words, op) || !is_worth_it(words, op)) return;
    TileBuilder b = before(words, op);
    TileValue *word = make(words, &b, op);
    if (!word) return;
    if (op->id == TILE_OP_CONVERT && tile_op_operand(op, 0) == word) { /* it is one already */
        tile_map_set(&words->made, op->results, word);
        return;
    }
    TileValue *wide = tile_build_convert(&b, word, TILE_I64);
    wide->name = op->results[0].name;
    tile_map_set(&words->made, wide, word);
    tile_value_replace(op->results, wide);
    tile_op_erase(op);
    words->changed = true;
}

/* How many parameters have been asked for what they are, or are relied on. */
static unsigned count_notes(const TileFunc *func) {
    unsigned count = 0;
    for (uint32_t i = 0; i < func->body.argument_count; i++) {
        const TileParameter *parameter = &func->parameters[i];
        count += parameter->asked_narrow + parameter->used_narrow + (unsigned)__builtin_popcount(parameter->used_extent);
    }
    return count;
}

TileResult tile_compute_in_words(TilePassContext *context, TileFunc *func, bool data) {
    if (func->kind != TILE_FUNC_PHASE) return TILE_RESULT_UNCHANGED;
    Words words = {.context = context, .indices = tile_indices_in_words(context->scratch, func), .data = data};
    tile_map_init(&words.made, context->scratch);
    unsigned notes = count_notes(func);
    tile_block_walk(&func->body, visit, &words);
    return words.changed || count_notes(func) != notes ? TILE_RESULT_CHANGED : TILE_RESULT_UNCHANGED;
}
