/* Sums as text for users. */
#include "lang/affine/sum.h"

static void print_symbol(TileText *text, const TileSymbol *symbol) {
    static const char *const words[] = {[TILE_SYMBOL_MIN] = "min", [TILE_SYMBOL_MAX] = "max"};
    if (symbol->kind == TILE_SYMBOL_MIN || symbol->kind == TILE_SYMBOL_MAX) {
        tile_text_format(text, "%s(", words[symbol->kind]);
        tile_sum_print(text, symbol->a);
        tile_text_add(text, ", ");
        tile_sum_print(text, symbol->b);
        tile_text_add(text, ")");
    } else if (symbol->a) {
        tile_text_add(text, "(");
        tile_sum_print(text, symbol->a);
        if (symbol->b) {
            static const char *const operators[] = {
                [TILE_SYMBOL_DIV] = ") / (",  [TILE_SYMBOL_REM] = ") % (",  [TILE_SYMBOL_MUL] = ") * (",
                [TILE_SYMBOL_SHL] = ") << (", [TILE_SYMBOL_SHR] = ") >> (", [TILE_SYMBOL_AND] = ") & (",
                [TILE_SYMBOL_OR] = ") | (",   [TILE_SYMBOL_XOR] = ") ^ ("};
            tile_text_add(text, operators[symbol->kind]);
            tile_sum_print(text, symbol->b);
        }
        tile_text_add(text, ")");
    } else {
        tile_text_add(text, symbol->name ? symbol->name : "a value");
    }
}

void tile_sum_print(TileText *text, const TileSum *sum) {
    for (uint32_t i = 0; i < sum->count; i++) {
        const TileProduct *product = &sum->products[i];
        int64_t factor = product->factor;
        if (i) tile_text_add(text, factor < 0 ? " - " : " + ");
        if (i == 0 && factor < 0) tile_text_add(text, "-");
        uint64_t size = factor < 0 ? 0 - (uint64_t)factor : (uint64_t)factor;
        if (size != 1) tile_text_format(text, "%llu * ", (unsigned long long)size);
        for (uint32_t k = 0; k < product->degree; k++) {
            if (k) tile_text_add(text, " * ");
            print_symbol(text, product->symbols[k]);
        }
    }
    if (sum->count == 0)
        tile_text_format(text, "%lld", (long long)sum->constant);
    else if (sum->constant)
        tile_text_format(
            text, sum->constant < 0 ? " - %llu" : " + %llu",
            (unsigned long long)(sum->constant < 0 ? 0 - (uint64_t)sum->constant : (uint64_t)sum->constant));
}
