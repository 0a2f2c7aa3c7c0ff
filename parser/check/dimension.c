/* Dimensions of the tensors of a kernel: names that they bind or are solved for, and expressions that are compared. */
#include "parser/check/bindings.h"
#include "parser/check/dimension.h"
#include "parser/check/emit.h"
#include "parser/check/formats.h"
#include "parser/check/item.h"
#include "parser/check/meaning.h"
#include "parser/check/names.h"
#include "parser/check/operand.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"

static bool is_new_name(TileChecker *c, const TileExpr *expr) {
    return expr->kind == TILE_EXPR_NAME && !tile_scope_find(c, expr->name) &&
           !tile_is_constant(c, c->frame->ast, expr->name);
}

/* ---- packed elements ---- */

static bool is_halved(const TileTensor *tensor, unsigned d) {
    return tile_format_is_packed(tensor->format) && d + 1 == tensor->rank;
}

const TileSum *tile_tensor_extent(TileChecker *c, const TileTensor *tensor, unsigned d) {
    if (!is_halved(tensor, d)) return tensor->dims[d];
    return tile_sum_half(&c->sums, tile_sum_add(&c->sums, tensor->dims[d], tile_sum_integer(&c->sums, 1)));
}

/* The number of elements that the argument has room for. */
static TileValue *emit_room(TileChecker *c, const TileTensor *tensor, unsigned d) {
    TileValue *extent = tile_build_dim(tile_emitter(c), tensor->value, d);
    if (!is_halved(tensor, d)) return extent;
    return tile_emit_binary(c, TILE_OP_MUL, extent, tile_build_i64(tile_emitter(c), 2));
}

/* ---- names ---- */

/* A single name is bound by the first dimension that consists of it. */
static bool bind_dimension(TileChecker *c, const TileBoundParams *kernel, TileTensor *tensor, unsigned d,
                           const TileExpr *expr) {
    TileMeaning m;
    bool is_static = tile_is_static(kernel->item, expr->name);
    if (is_static) {
        m = tile_bound_constant(c, expr->name, TILE_I64, expr->span);
        int64_t value;
        if (m.sum && tile_sum_known(&c->sums, m.sum, &value) && value < 0)
            m = tile_fail(c, WRONG_BINDING, expr->span, expr->name, "an extent, at least 0");
    } else {
        tile_emit_at(c, expr->span);
        TileValue *extent = emit_room(c, tensor, d);
        extent->name = tile_intern_string(c->context->strings, expr->name);
        TileSymbol *symbol = tile_symbol_value(&c->sums, expr->name, extent);
        symbol->host = true;
        symbol->even = is_halved(tensor, d);
        tile_symbol_bound(&c->sums, symbol, tile_sum_integer(&c->sums, 0), tile_sum_integer(&c->sums, TILE_MAX_EXTENT));
        m = tile_sum_meaning(tile_sum_symbol(&c->sums, symbol));
    }
    tensor->dims[d] = m.sum ? m.sum : tile_sum_integer(&c->sums, 1);
    tile_scope_push(c, (TileBound){.name = expr->name, .meaning = m, .span = expr->span, .fixed = true});
    return !is_static && m.sum;
}

/* An extent that is a product of several names may wrap, and then be less than the indices below the exact product. */
void tile_require_exact(TileChecker *c, const TileSum *extent, TileSpan span) {
    if (!tile_sum_wraps(&c->sums, extent)) return;
    tile_emit_at(c, span);
    TileValue *ok =
        tile_emit_binary(c, TILE_OP_LT, tile_emit_magnitude(c, extent),
                         tile_build_number(tile_emitter(c), tile_type_scalar(c->context, TILE_F64), 0x1p62));
    const char *text = tile_arena_format(c->arena, "%s without overflow", tile_span_text(c, span));
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &ok, 1, &attribute, 1, NULL, 0);
    tile_sum_trust(&c->sums, extent);
}

bool tile_check_dimension(TileChecker *c, const TileSum *extent, const TileExpr *expr) {
    int64_t known;
    if (!tile_sum_known(&c->sums, extent, &known) || (known >= 0 && known <= TILE_MAX_EXTENT)) return true;
    tile_about_sum(c, extent);
    return tile_fail(c, BAD_DIMENSION, expr->span, (long long)known, (long long)TILE_MAX_EXTENT), false;
}

/* Names that only occur in erroneous parameters: uses of them are not reported. */
static void bind_lost_dimensions(TileChecker *c, const TileItem *item) {
    for (size_t i = 0; i < item->params.count; i++) {
        const TileTypeExpr *type = item->params.items[i].type;
        for (size_t d = 0; type && d < type->extents.count; d++) {
            const TileExpr *expr = type->extents.items[d];
            if (is_new_name(c, expr))
                tile_scope_push(
                    c, (TileBound){
                           .name = expr->name, .meaning = tile_error_meaning(), .span = expr->span, .fixed = true});
        }
    }
}

static void check_dimension(TileChecker *c, TileTensor *tensor, unsigned d, const TileExpr *expr) {
    tensor->dims[d] = tile_check_integer(c, expr, "a dimension");
    if (!tensor->dims[d]) {
        tensor->dims[d] = tile_sum_integer(&c->sums, 1);
        return;
    }
    if (!tile_check_dimension(c, tensor->dims[d], expr)) return;
    tile_require_exact(c, tensor->dims[d], expr->span);
    tile_emit_at(c, expr->span);
    TileValue *operands[] = {tensor->value, tile_emit_sum(c, tile_tensor_extent(c, tensor, d))};
    const char *text = is_halved(tensor, d) ? tile_halved_text(c->arena, expr, tile_span_text(c, expr->span))
                                            : tile_span_text(c, expr->span);
    text = tile_intern_string(c->context->strings, text);
    TileAttribute attributes[] = {{.key = TILE_ATTRIBUTE_AXIS, .integer = d},
                                  {.key = TILE_ATTRIBUTE_TEXT, .text = text}};
    tile_build_op(tile_emitter(c), TILE_OP_CHECK_DIM, operands, 2, attributes, 2, NULL, 0);
}

/* ---- names that occur in expressions only ---- */

/* The only unbound name of the expression; NULL if there is none, *more if there are several. */
static const TileExpr *free_name(TileChecker *c, const TileExpr *expr, const TileExpr *found, bool *more) {
    if (!expr) return found;
    if (is_new_name(c, expr)) {
        *more = *more || (found && found->name != expr->name);
        return expr;
    }
    if (expr->kind != TILE_EXPR_BINARY && expr->kind != TILE_EXPR_UNARY) return found;
    return free_name(c, expr->b, free_name(c, expr->a, found, more), more);
}

/* May the sum depend on the symbol? A VALUE that is newer than the symbol may be computed from it. */
static bool depends_on(const TileSum *sum, const TileSymbol *symbol) {
    for (uint32_t i = 0; sum && i < sum->count; i++)
        for (uint32_t k = 0; k < sum->products[i].degree; k++) {
            const TileSymbol *other = sum->products[i].symbols[k];
            if (other == symbol || (other->kind == TILE_SYMBOL_VALUE && other->id > symbol->id)) return true;
            if (depends_on(other->a, symbol) || depends_on(other->b, symbol)) return true;
        }
    return false;
}

/* sum = factor * symbol + rest, with a factor that is not 0? */
static bool is_linear(TileChecker *c, const TileSum *sum, const TileSymbol *symbol, int64_t *factor,
                      const TileSum **rest) {
    const TileProduct *term = NULL;
    for (uint32_t i = 0; i < sum->count; i++)
        if (sum->products[i].degree == 1 && sum->products[i].symbols[0] == symbol) term = &sum->products[i];
    if (!term) return false;
    *factor = term->factor;
    const TileSum *whole = tile_sum_multiply(&c->sums, tile_sum_symbol(&c->sums, (TileSymbol *)symbol),
                                             tile_sum_integer(&c->sums, *factor));
    *rest = tile_sum_subtract(&c->sums, sum, whole);
    return !depends_on(*rest, symbol);
}

/* Solves the expression for the name: its value for which the expression is the tensor's extent, rounded down. A launch
 * checks that it is at least 0 and gives the extent exactly. False if the expression is not linear. */
static bool solve_dimension(TileChecker *c, const TileTensor *tensor, unsigned d, const TileExpr *expr,
                            const TileExpr *name) {
    size_t bounds = c->bounds.count;
    tile_emit_at(c, name->span);
    TileValue *extent = emit_room(c, tensor, d);
    TileSymbol *symbol = tile_symbol_value(&c->sums, name->name, extent);
    TileMeaning m = tile_sum_meaning(tile_sum_symbol(&c->sums, symbol));
    TileBound bound = {.name = name->name, .meaning = m, .span = name->span, .fixed = true};
    int64_t factor;
    const TileSum *rest, *zero = tile_sum_integer(&c->sums, 0);
    symbol->host = true;
    tile_scope_push(c, bound);
    const TileSum *sum = tile_check_integer(c, expr, "a dimension");
    tile_scope_cut(c, bounds);
    if (!sum || !is_linear(c, tile_sum_resolve(&c->sums, sum), symbol, &factor, &rest)) return false;
    tile_emit_at(c, name->span);
    TileValue *value = tile_emit_binary(c, TILE_OP_SUB, extent, tile_emit_sum(c, rest));
    value = tile_emit_binary(c, TILE_OP_DIV, value, tile_build_i64(tile_emitter(c), factor));
    value->name = tile_intern_string(c->context->strings, name->name);
    symbol->value = value;
    const TileSum *most = tile_sum_integer(&c->sums, TILE_MAX_EXTENT);
    bool limited = factor > 0 && tile_sum_at_most(&c->sums, zero, rest);
    tile_symbol_bound(&c->sums, symbol, zero, limited ? most : NULL);
    TileValue *ok = tile_emit_binary(c, TILE_OP_GE, value, tile_emit_sum(c, zero));
    const char *text = tile_arena_format(c->arena, "%s >= 0", name->name);
    TileAttribute attribute = {.key = TILE_ATTRIBUTE_TEXT, .text = tile_intern_string(c->context->strings, text)};
    tile_build_op(tile_emitter(c), TILE_OP_REQUIRE, &ok, 1, &attribute, 1, NULL, 0);
    tile_scope_push(c, bound);
    return true;
}

/* Solving for one name may leave a single unbound name in another expression. */
static void solve_dimensions(TileChecker *c, const TileBoundParams *kernel) {
    bool found = true;
    while (found) {
        found = false;
        for (size_t i = 0; i < kernel->params.count; i++) {
            const TileBoundParam *param = &kernel->params.items[i];
            for (unsigned d = 0; param->tensor && d < param->tensor->rank; d++) {
                const TileExpr *expr = param->param->type->extents.items[d];
                bool more = false;
                const TileExpr *name = free_name(c, expr, NULL, &more);
                if (!name || more || tile_is_static(kernel->item, name->name)) continue;
                found = solve_dimension(c, param->tensor, d, expr, name) || found;
            }
        }
    }
}

/* ---- all dimensions ---- */

static void fail_static(TileChecker *c, const TileTensor *tensor, const TileExpr *expr) {
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_PACKED, expr->span,
                                      tile_arena_format(c->arena, "`%s` is static, and only `%s`, which has two elements in a byte, has such a dimension",
                                                        expr->name, tensor->name));
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "a static dimension gets its value from a tensor with as many elements, or is a constant or generic");
    tile_report(c, d);
}

/* In which order tensors bind names: of packed elements an argument tells only a number that is even. So where there are
 * some, those come first that are read and have as many elements, and those behind that are only written; a static name,
 * whose value is known, is bound by others than packed ones. */
typedef enum Turn { TURN_OTHERS, TURN_PACKED, TURN_WRITTEN, TURN_LEFT, TURN_COUNT } Turn;

static Turn turn_of(const TileBoundParams *kernel, const TileTensor *tensor, unsigned d, const TileExpr *expr) {
    bool packed = false;
    for (size_t i = 0; i < kernel->params.count; i++)
        packed = packed || (kernel->params.items[i].tensor && kernel->params.items[i].tensor->format);
    if (is_halved(tensor, d)) return expr->kind == TILE_EXPR_NAME && tile_is_static(kernel->item, expr->name) ? TURN_LEFT : TURN_PACKED;
    return packed && tensor->access == TILE_ACCESS_OUT ? TURN_WRITTEN : TURN_OTHERS;
}

static void bind_names(TileChecker *c, const TileBoundParams *kernel, Turn turn, uint32_t *bound) {
    for (size_t i = 0; i < kernel->params.count; i++) {
        const TileBoundParam *param = &kernel->params.items[i];
        for (unsigned d = 0; param->tensor && d < param->tensor->rank; d++) {
            const TileExpr *expr = param->param->type->extents.items[d];
            if (!is_new_name(c, expr) || turn_of(kernel, param->tensor, d, expr) != turn) continue;
            if (turn == TURN_LEFT)
                fail_static(c, param->tensor, expr);
            else if (bind_dimension(c, kernel, param->tensor, d, expr))
                bound[i] |= 1u << d;
        }
    }
}

void tile_bind_dimensions(TileChecker *c, const TileBoundParams *kernel) {
    uint32_t *bound = TILE_NEW_ARRAY(c->arena, uint32_t, kernel->params.count);
    for (Turn turn = TURN_OTHERS; turn < TURN_COUNT; turn++) bind_names(c, kernel, turn, bound);
    solve_dimensions(c, kernel);
    bind_lost_dimensions(c, kernel->item);
    for (size_t i = 0; i < kernel->params.count; i++) {
        const TileBoundParam *param = &kernel->params.items[i];
        for (unsigned d = 0; param->tensor && d < param->tensor->rank; d++)
            if (!(bound[i] >> d & 1u)) check_dimension(c, param->tensor, d, param->param->type->extents.items[d]);
    }
}
