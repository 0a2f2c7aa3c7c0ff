/* print(..): texts and values, one line for each program that gets there. */
#include "lang/scalar.h"
#include "parser/check.h"

#include <string.h>

enum { MAX_VALUES = 16 };

typedef struct Printed {
    TileText template;
    TileValue *items[2 * MAX_VALUES + TILE_MAX_TENSOR_RANK];
    unsigned count;
} Printed;

static void add_words(TileText *text, const char *words) {
    for (; *words; words++) tile_text_format(text, *words == '{' ? "{{" : "%c", *words);
}

/* kernel[0, 3]: where the program's numbers are those of the grid. */
static void add_program(TileChecker *c, Printed *printed) {
    const TileFrame *frame = c->frame;
    while (frame->parent) frame = frame->parent;
    tile_text_format(&printed->template, "%s[", frame->item->name);
    const TileBlock *region = c->grid ? &c->grid->regions[0] : NULL; /* NULL: a function is checked by itself */
    for (uint32_t i = 0; region && i < region->argument_count; i++) {
        tile_text_add(&printed->template, i ? ", {i}" : "{i}");
        printed->items[printed->count++] = region->arguments[i];
    }
    tile_text_add(&printed->template, "]:");
}

static char kind_of(TileScalar scalar) {
    switch (tile_scalar_class(scalar)) {
    case TILE_CLASS_BOOL: return 'b';
    case TILE_CLASS_SIGNED: return 'i';
    case TILE_CLASS_UNSIGNED: return 'u';
    case TILE_CLASS_FLOAT: break;
    }
    return scalar == TILE_F64 ? 'd' : 'f';
}

/* Invalid elements hold 0, and are shown as what they are by a second item. */
static void add_value(TileChecker *c, Printed *printed, const TileMeaning *m) {
    TileScalar scalar = (TileScalar)m->scalar;
    char kind = kind_of(scalar);
    TileScalar word = kind == 'i' ? TILE_I64 : kind == 'u' || kind == 'b' ? TILE_U64 : TILE_F64;
    TileValue *zero = tile_build_bits(tile_emitter(c), tile_type_scalar(c->context, scalar), 0);
    TileValue *value = tile_emit_filled(c, m, m->valid, zero), *valid = tile_emit_valid(c, m->valid, m);
    printed->items[printed->count++] = tile_build_convert(tile_emitter(c), value, word);
    if (valid) printed->items[printed->count++] = tile_build_convert(tile_emitter(c), valid, TILE_U64);
    tile_text_format(&printed->template, "{%c", kind);
    for (unsigned i = 0; i < m->rank; i++)
        tile_text_format(&printed->template, "%c%lld", i ? 'x' : ':', (long long)tile_extent_value(c, m->extent[i]));
    tile_text_add(&printed->template, valid ? "?}" : "}");
}

TileMeaning tile_check_print(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    Printed printed = {.template = {.arena = c->arena}};
    if (!tile_check_arguments(c, call, 1, MAX_VALUES, NULL)) return tile_error_meaning();
    if (c->in_combiner) return tile_fail(c, UNSUPPORTED, call->span, "`print` in a function that folds");
    if (!c->in_grid) return tile_fail(c, HOST_STATEMENT, call->span, "`print`");
    add_program(c, &printed);
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileExpr *expr = call->arguments.items[i].value;
        tile_text_add(&printed.template, " ");
        if (expr->kind == TILE_EXPR_STRING) {
            add_words(&printed.template, expr->name);
            continue;
        }
        TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&m)) return m;
        tile_emit_at(c, call->span);
        add_value(c, &printed, &m);
    }
    TileAttribute text = {.key = TILE_ATTRIBUTE_TEXT,
                          .text = tile_intern_string(c->context->strings, tile_text_get(&printed.template))};
    tile_emit_at(c, call->span);
    tile_build_op(tile_emitter(c), TILE_OP_PRINT, printed.items, printed.count, &text, 1, NULL, 0);
    return tile_nothing();
}
