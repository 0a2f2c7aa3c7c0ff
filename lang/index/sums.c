/* Sums: integers of the IR in the normal form of lang/affine/sum.h. Addition, subtraction, negation, multiplication and
 * shifts by a constant are followed; the results of other ops are symbols. Requires ranges for integers narrower than
 * 64 bits. */
#include "lang/index/internal.h"

#include "lang/ir/build.h"

/* ---- symbols ---- */

static const TileSum *symbol_of(TileIndices *indices, TileMap *symbols, const TileValue *value) {
    TileSymbol *symbol = tile_map_get(symbols, value);
    if (!symbol) {
        symbol = tile_symbol_value(&indices->table, NULL, (TileValue *)value);
        tile_map_set(symbols, value, symbol);
    }
    return tile_sum_symbol(&indices->table, symbol);
}

static void bound(TileIndices *indices, TileSymbol *symbol, int64_t least, int64_t most) {
    if (symbol->lower_count) return;
    tile_symbol_bound(&indices->table, symbol, tile_sum_integer(&indices->table, least),
                      tile_sum_integer(&indices->table, most));
}

/* ---- ops ---- */

/* May the result of a linear op overflow a type narrower than 64 bits? Only + and - are analysed. */
static bool may_wrap(TileIndices *indices, const TileOp *op) {
    const TileType *type = op->results[0].type;
    if (type->kind == TILE_TYPE_POINTER || type->scalar == TILE_I64) return false;
    if (op->id != TILE_OP_ADD && op->id != TILE_OP_SUB) return true;
    TileIndexRange a = tile_index_range_always(indices, tile_op_operand(op, 0)),
                   b = tile_index_range_always(indices, tile_op_operand(op, 1)), all = tile_index_range_of_type(type);
    if (op->id == TILE_OP_ADD) return (Wide)a.lo + b.lo < all.lo || (Wide)a.hi + b.hi > all.hi;
    return (Wide)a.lo - b.hi < all.lo || (Wide)a.hi - b.lo > all.hi;
}

static bool is_followed(const TileIndexView *view, const TileValue *value) {
    const TileType *type = value->type;
    if (!value->op || type->kind == TILE_TYPE_TENSOR || type->kind == TILE_TYPE_CHANNEL) return false;
    if (type->kind != TILE_TYPE_POINTER && !tile_scalar_is_int(type->scalar)) return false;
    if (type->kind != TILE_TYPE_POINTER && type->scalar == TILE_U64) return false;
    if (value->op->id == TILE_OP_CONST) return true;
    if (view->tiles && !tile_type_is_tile(type)) return false;
    return !view->inside || !tile_value_outside(value, view->inside);
}

static bool is_shape_op(const TileOp *op) {
    switch ((TileOpId)op->id) {
    case TILE_OP_SPLAT:
    case TILE_OP_BROADCAST:
    case TILE_OP_RESHAPE:
    case TILE_OP_PERMUTE: return true;
    default: return false; /* other ops do not move elements between lanes */
    }
}

static bool is_uniform_product(const TileProduct *product) {
    for (uint32_t i = 0; i < product->degree; i++) {
        const TileValue *value = product->symbols[i]->value;
        if (!value || tile_type_is_tile(value->type)) return false;
    }
    return true;
}

/* Elements move between lanes: the lanes' shared part is unchanged, and their own part is a new symbol for the result,
 * with the same range. */
static const TileSum *reshaped(TileIndexView *view, const TileOp *op) {
    TileSumTable *table = &view->indices->table;
    const TileSum *from = tile_index_sum(view, tile_op_operand(op, 0));
    const TileSum *shared = tile_sum_integer(table, from->constant), *own = tile_sum_integer(table, 0);
    for (uint32_t i = 0; i < from->count; i++) {
        const TileSum **to = is_uniform_product(&from->products[i]) ? &shared : &own;
        *to = tile_sum_add(table, *to, tile_sum_term(table, &from->products[i]));
    }
    if (!own->count) return from;
    if (!view->tiles) return symbol_of(view->indices, &view->indices->symbols, op->results);
    TileInterval interval = tile_sum_interval(table, own);
    const TileSum *lanes = symbol_of(view->indices, &view->lanes, op->results);
    if (interval.below || interval.above) return lanes; /* the symbol is the value itself, `shared` included */
    bound(view->indices, lanes->products[0].symbols[0], interval.least, interval.most);
    return tile_sum_add(table, shared, lanes);
}

static const TileSum *lane_numbers(TileIndexView *view, const TileOp *op) {
    const TileType *type = op->results[0].type;
    const TileSum *sum = symbol_of(view->indices, view->tiles ? &view->lanes : &view->indices->symbols, op->results);
    if (!type->scalable)
        bound(view->indices, sum->products[0].symbols[0], 0,
              type->extent[tile_op_integer(op, TILE_ATTRIBUTE_AXIS, 0)] - 1);
    return sum;
}

static const TileSum *scaled(TileIndexView *view, const TileSum *sum, const TileValue *by) {
    int64_t constant;
    if (!tile_value_integer(by, &constant) || constant < 0 || constant > 62) return NULL;
    return tile_sum_multiply(&view->indices->table, sum,
                             tile_sum_integer(&view->indices->table, INT64_C(1) << constant));
}

static bool is_linear(const TileOp *op) {
    switch ((TileOpId)op->id) {
    case TILE_OP_ADD:
    case TILE_OP_SUB:
    case TILE_OP_NEG:
    case TILE_OP_MUL:
    case TILE_OP_SHL:
    case TILE_OP_PTR_ADD: return true;
    default: return false;
    }
}

/* NULL where the op is not followed. */
static const TileSum *sum_of(TileIndexView *view, const TileOp *op) {
    TileSumTable *table = &view->indices->table;
    int64_t constant;
    if (op->id == TILE_OP_CONST)
        return tile_value_integer(op->results, &constant) ? tile_sum_integer(table, constant) : NULL;
    if (op->id == TILE_OP_IOTA && tile_type_is_tile(op->results[0].type)) return lane_numbers(view, op);
    if (is_shape_op(op)) return reshaped(view, op);
    if (!is_linear(op) || may_wrap(view->indices, op)) return NULL;
    const TileSum *x = tile_index_sum(view, tile_op_operand(op, 0));
    if (op->id == TILE_OP_NEG) return tile_sum_subtract(table, tile_sum_integer(table, 0), x);
    if (op->id == TILE_OP_SHL) return scaled(view, x, tile_op_operand(op, 1));
    const TileSum *y = tile_index_sum(view, tile_op_operand(op, 1));
    if (op->id == TILE_OP_MUL) return tile_sum_multiply(table, x, y);
    return op->id == TILE_OP_SUB ? tile_sum_subtract(table, x, y) : tile_sum_add(table, x, y);
}

/* ---- views ---- */

static bool is_known(void *state, const TileValue *value) {
    const TileIndexView *view = state;
    return tile_map_get(&view->sums, value) != NULL;
}

static const TileValue *needed(void *state, const TileValue *value, unsigned k) {
    if (!is_followed(state, value) || (!is_linear(value->op) && !is_shape_op(value->op))) return NULL;
    return k < value->op->operand_count ? tile_op_operand(value->op, k) : NULL;
}

static void compute(void *state, const TileValue *value) {
    TileIndexView *view = state;
    TileIndices *indices = view->indices;
    bool followed = is_followed(view, value);
    tile_sum_wrapped(&indices->table);
    const TileSum *sum = followed ? sum_of(view, value->op) : NULL;
    if (tile_sum_wrapped(&indices->table) || !sum) {
        bool lanes = view->tiles && tile_type_is_tile(value->type);
        sum = symbol_of(indices, lanes ? &view->lanes : &indices->symbols, value);
    }
    tile_map_set(&view->sums, value, (void *)sum);
}

const TileSum *tile_index_sum(TileIndexView *view, const TileValue *value) {
    const TileSum *sum = tile_map_get(&view->sums, value);
    if (sum) return sum;
    tile_index_in_order(view->indices, &(TileIndexOrder){is_known, needed, compute, view}, value);
    return tile_map_get(&view->sums, value);
}

TileSumTable *tile_index_table(TileIndices *indices) { return &indices->table; }

bool tile_index_offset(TileIndices *indices, const TileValue *a, const TileValue *b, int64_t *distance) {
    const TileSum *sum =
        tile_sum_subtract(&indices->table, tile_index_sum(&indices->view, a), tile_index_sum(&indices->view, b));
    *distance = sum->constant;
    return !sum->count;
}

const TileSum *tile_index_exact_sum(TileIndices *indices, const TileValue *value) {
    const TileSum *sum = tile_index_sum(&indices->view, value);
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++) {
            TileSymbol *symbol = sum->products[i].symbols[k];
            if (!symbol->value) return NULL; /* a product or sum that is too large for the normal form */
            TileIndexRange range = tile_index_range_always(indices, symbol->value);
            bound(indices, symbol, range.lo, range.hi);
        }
    return tile_sum_wraps(&indices->table, sum) ? NULL : sum;
}
