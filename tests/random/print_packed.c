/* Packed numbers, products with scales, drawn numbers, and extents as expressions, as text of the language. */
#include <inttypes.h>

#include "print.h"

static const char *const formats[] = {[PACKING_I4] = "i4", [PACKING_U4] = "u4", [PACKING_F4] = "f4e2m1"};

static void print_scaled(Printer *p, const Expr *expr) {
    int positional = expr->keep ? 3 : 2, next = positional;
    put(p, "dot_scaled");
    if (expr->to != TYPE_BF16 || expr->bare) put(p, "[%s]", type_name(expr->to));
    put(p, "(");
    print_list(p, expr->operand, positional);
    if (expr->scan) {
        put(p, ", a_scale = ");
        print_expr(p, expr->operand[next++]);
    }
    if (expr->exclusive) {
        put(p, ", b_scale = ");
        print_expr(p, expr->operand[next]);
    }
    put(p, ")");
}

void print_packed(Printer *p, const Expr *expr) {
    if (expr->kind == E_SCALED) {
        print_scaled(p, expr);
        return;
    }
    static const char *const names[] = {"randn", "randint", "randperm", "ldexp", "frexp", "pack", "unpack"};
    put(p, "%s", names[expr->kind - E_NORMAL]);
    if (expr->kind == E_SHUFFLED) print_extents(p, expr->shape.extent, 1, "[", "]");
    if (expr->kind == E_PACK || expr->kind == E_UNPACK) put(p, "[%s]", formats[expr->op]);
    put(p, "(");
    print_list(p, expr->operand, expr->count);
    put(p, ")");
}

void print_extent_written(Printer *p, const Extent *extent, int place) {
    int64_t value = extent->literal;
    bool number = extent->kind == EXTENT_LITERAL, power = number && value >= 1 && (value & (value - 1)) == 0;
    unsigned form = number ? (unsigned)(value + place) % 4 : 0;
    if (form == 1 && power)
        put(p, "1 << %d", __builtin_ctzll((uint64_t)value));
    else if (form == 2)
        put(p, "%" PRId64 " %% %" PRId64, 3 * value + 2, value + 1 + place % 2 * (value + 1));
    else if (form == 3 && power)
        put(p, "least_power(%" PRId64 ")", value / 2 + 1);
    else
        print_extent(p, extent);
}
