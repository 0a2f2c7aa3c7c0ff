/* Emission of sums and values as ops. Each is emitted once per block in which it is visible. */
#include "parser/check/emit.h"
#include "parser/check/report.h"

#include "lang/scalar/scalar.h"

#include <math.h>

void tile_emit_at(TileChecker *c, TileSpan span) { c->where = span; }

void tile_spend(TileChecker *c, size_t ops) {
    bool within = !tile_is_spent(c);
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_OPERATIONS];
    c->op_count += ops;
    c->diagnostics->work += ops;
    if (!within || !tile_is_spent(c)) return;
    if (c->unrolled) c->about = TILE_OPEN_NUMBER;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TOO_MANY_OPS, c->where,
                                      c->test                                        ? "the test"
                                      : c->func && c->func->kind == TILE_FUNC_KERNEL ? "the kernel"
                                                                                     : "this",
                                      (unsigned long long)most);
    tile_diagnostic_note_limit(c->diagnostics, d, TILE_LIMIT_OPERATIONS);
    tile_report(c, d);
}

TileBuilder *tile_emitter(TileChecker *c) {
    if (c->where.begin != c->where_begin || c->where.file != c->where_file) {
        c->where_begin = c->where.begin;
        c->where_file = c->where.file;
        uint32_t line = 0, column = 0;
        if (c->where.file) tile_source_position(c->diagnostics, c->where.file, c->where.begin, &line, &column);
        c->builder.location = (TileLocation){c->where.file ? c->file_numbers[c->where.file] : 0, line, column};
    }
    tile_spend(c, 1);
    return &c->builder;
}

/* ---- the cache ---- */

TileValue *tile_cache_get(TileChecker *c, const void *key, size_t slot) {
    if (slot >= c->cache.count || c->cache.items[slot].key != key) return NULL;
    return c->cache.items[slot].value;
}

void tile_cache_set(TileChecker *c, const void *key, size_t *slot, TileValue *value) {
    *slot = c->cache.count;
    tile_list_push(c->arena, &c->cache, (TileCacheEntry){key, value});
}

void tile_discard_block(TileBlock *block) {
    while (block->last) tile_op_erase(block->last);
}

/* ---- sums ---- */

TileValue *tile_emit_unary(TileChecker *c, TileOpId id, TileValue *x) {
    return tile_build_unary(tile_emitter(c), id, x);
}

TileValue *tile_emit_binary(TileChecker *c, TileOpId id, TileValue *x, TileValue *y) {
    return tile_build_binary(tile_emitter(c), id, x, y);
}

TileValue *tile_emit_select(TileChecker *c, TileValue *condition, TileValue *x, TileValue *y) {
    return tile_build_ternary(tile_emitter(c), TILE_OP_SELECT, condition, x, y);
}

static TileValue *emit_symbol(TileChecker *c, TileSymbol *symbol) {
    bool is_value = symbol->kind == TILE_SYMBOL_VALUE;
    if (is_value && symbol->value->type->scalar == TILE_I64) return symbol->value;
    const TileSum *whole = tile_sum_symbol(&c->sums, symbol);
    TileValue *cached = tile_cache_get(c, whole, whole->cache);
    if (cached) return cached;
    if (is_value) { /* a narrower integer is widened where an i64 is needed */
        TileValue *wide = tile_build_convert(tile_emitter(c), symbol->value, TILE_I64);
        tile_cache_set(c, whole, &((TileSum *)whole)->cache, wide);
        return wide;
    }
    static const TileOpId ops[] = {[TILE_SYMBOL_MIN] = TILE_OP_MIN,
                                   [TILE_SYMBOL_MAX] = TILE_OP_MAX,
                                   [TILE_SYMBOL_DIV] = TILE_OP_DIV,
                                   [TILE_SYMBOL_REM] = TILE_OP_REM,
                                   [TILE_SYMBOL_MUL] = TILE_OP_MUL};
    TileValue *a = tile_emit_sum(c, symbol->a);
    if (!symbol->b) return a;
    TileValue *value = tile_emit_binary(c, ops[symbol->kind], a, tile_emit_sum(c, symbol->b));
    tile_cache_set(c, whole, &((TileSum *)whole)->cache, value);
    return value;
}

/* The product, with the sign of its factor dropped. */
static TileValue *emit_product(TileChecker *c, const TileProduct *product) {
    const TileSum *whole = tile_sum_product(&c->sums, product);
    TileValue *value = tile_cache_get(c, whole, whole->cache);
    if (value) return value;
    value = emit_symbol(c, product->symbols[0]);
    for (uint32_t k = 1; k < product->degree; k++)
        value = tile_emit_binary(c, TILE_OP_MUL, value, emit_symbol(c, product->symbols[k]));
    int64_t factor = whole->products[0].factor;
    if (factor != 1)
        value = tile_emit_binary(c, TILE_OP_MUL, value, tile_emit_sum(c, tile_sum_integer(&c->sums, factor)));
    tile_cache_set(c, whole, &((TileSum *)whole)->cache, value);
    return value;
}

static TileValue *emit_terms(TileChecker *c, const TileSum *sum) {
    TileValue *total = NULL;
    int64_t constant = sum->constant;
    for (uint32_t i = 0; i < sum->count; i++) {
        if (sum->products[i].factor < 0) continue;
        TileValue *term = emit_product(c, &sum->products[i]);
        total = total ? tile_emit_binary(c, TILE_OP_ADD, total, term) : term;
    }
    if (constant && (!total || constant > 0)) {
        TileValue *number = tile_emit_sum(c, tile_sum_integer(&c->sums, constant));
        total = total ? tile_emit_binary(c, TILE_OP_ADD, total, number) : number;
        constant = 0;
    }
    if (!total) total = tile_emit_sum(c, tile_sum_integer(&c->sums, 0));
    for (uint32_t i = 0; i < sum->count; i++) {
        if (sum->products[i].factor >= 0) continue;
        total = tile_emit_binary(c, TILE_OP_SUB, total, emit_product(c, &sum->products[i]));
    }
    if (!constant) return total;
    return tile_emit_binary(c, TILE_OP_ADD, total, tile_emit_sum(c, tile_sum_integer(&c->sums, constant)));
}

TileValue *tile_emit_sum(TileChecker *c, const TileSum *sum) {
    sum = tile_sum_resolve(&c->sums, sum);
    TileValue *value = tile_cache_get(c, sum, sum->cache);
    if (value) return value;
    if (sum->count == 0)
        value = tile_build_i64(tile_emitter(c), sum->constant);
    else
        value = emit_terms(c, sum);
    tile_cache_set(c, sum, &((TileSum *)sum)->cache, value);
    return value;
}

/* The sum of |factor| * |a| * |b| .. over all products, in floating point, which does not wrap. */
TileValue *tile_emit_magnitude(TileChecker *c, const TileSum *sum) {
    sum = tile_sum_resolve(&c->sums, sum);
    const TileType *type = tile_type_scalar(c->context, TILE_F64);
    TileValue *total = tile_build_number(tile_emitter(c), type, fabs((double)sum->constant));
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        TileValue *term = tile_build_number(tile_emitter(c), type, fabs((double)product->factor));
        for (uint32_t k = 0; k < product->degree; k++) {
            TileValue *symbol = tile_build_convert(tile_emitter(c), emit_symbol(c, product->symbols[k]), TILE_F64);
            term = tile_emit_binary(c, TILE_OP_MUL, term, tile_emit_unary(c, TILE_OP_ABS, symbol));
        }
        total = tile_emit_binary(c, TILE_OP_ADD, total, term);
    }
    return total;
}

int64_t tile_extent_value(TileChecker *c, const TileSum *extent) {
    int64_t value = 1;
    tile_sum_known(&c->sums, extent, &value);
    return value;
}

/* Reports the first tile that exceeds the limit of elements. */
static void check_elements(TileChecker *c, const TileType *type) {
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_TILE_ELEMENTS], count = 1;
    for (unsigned i = 0; tile_type_is_tile(type) && i < type->rank && count <= most; i++)
        if (__builtin_mul_overflow(count, (uint64_t)type->extent[i], &count)) count = UINT64_MAX;
    if (count <= most || c->has_large_tile) return;
    TileText text = {.arena = c->arena};
    c->has_large_tile = true;
    tile_type_print(&text, type);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TILE_TOO_LARGE, c->where,
                                      tile_arena_format(c->arena, "a tile of %s has more than %llu elements",
                                                        tile_text_get(&text), (unsigned long long)most));
    tile_diagnostic_note_limit(c->diagnostics, d, TILE_LIMIT_TILE_ELEMENTS);
    tile_report(c, d);
}

const TileType *tile_meaning_type(TileChecker *c, const TileMeaning *m) {
    int64_t extent[TILE_MAX_TILE_RANK];
    for (unsigned i = 0; i < m->rank; i++) extent[i] = tile_extent_value(c, m->extent[i]);
    const TileType *type = tile_type_tile(c->context, (TileScalar)m->scalar, m->rank, extent);
    check_elements(c, type);
    return type;
}

TileValue *tile_emit_value(TileChecker *c, const TileMeaning *m) {
    if (m->value) return m->value;
    if (m->sum) return tile_emit_sum(c, m->sum);
    return tile_build_bits(tile_emitter(c), tile_meaning_type(c, m), m->bits);
}

/* ---- meanings ---- */

TileSymbol *tile_value_symbol(TileChecker *c, const char *name, TileValue *value) {
    TileSymbol *symbol = tile_symbol_value(&c->sums, name, value);
    const TileOp *convert = tile_value_def(value, TILE_OP_CONVERT);
    if (convert) symbol->type = tile_op_operand(convert, 0)->type->scalar;
    if (value->type->scalar != TILE_I64) symbol->type = value->type->scalar;
    return symbol;
}

TileMeaning tile_value_meaning(TileChecker *c, TileValue *value, const TileSum *const *extent,
                               const TileValidity *valid) {
    check_elements(c, value->type);
    TileMeaning m = {.kind = TILE_MEANING_VALUE,
                     .scalar = (uint8_t)value->type->scalar,
                     .rank = value->type->rank,
                     .value = value,
                     .valid = valid};
    if (value->type->kind != TILE_TYPE_TILE) m.rank = 0;
    for (unsigned i = 0; i < m.rank; i++) m.extent[i] = extent[i];
    if (m.rank == 0 && tile_scalar_is_int((TileScalar)m.scalar)) {
        TileSymbol *symbol = tile_value_symbol(c, NULL, value);
        symbol->host = !c->in_grid;
        if (c->stands_alone) symbol->open = TILE_OPEN_NUMBER | TILE_OPEN_NAME;
        const TileSum *sum = tile_sum_symbol(&c->sums, symbol);
        if (m.scalar == TILE_I64)
            m.sum = sum;
        else
            m.lowest = m.highest = sum;
    }
    return m;
}

TileMeaning tile_scalar_meaning(TileChecker *c, TileValue *value, const TileValidity *valid) {
    return tile_value_meaning(c, value, NULL, valid);
}
