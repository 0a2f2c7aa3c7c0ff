/* print(..): texts and values, one line for each program that executes it. */
#include "lang/scalar/scalar.h"
#include "parser/check/arguments.h"
#include "parser/check/builtin.h"
#include "parser/check/emit.h"
#include "parser/check/literal.h"
#include "parser/check/operand.h"
#include "parser/check/print.h"
#include "parser/check/report.h"
#include "parser/check/validity.h"

#include <string.h>

void tile_print_words(TilePrinted *printed, const char *words) {
    for (; *words; words++) tile_text_format(&printed->text, *words == '{' ? "{{" : "%c", *words);
}

/* The prefix kernel[0, 3], if the program's indices are those of the grid. */
static void add_program(TileChecker *c, TilePrinted *printed) {
    const TileFrame *frame = c->frame;
    while (frame->parent) frame = frame->parent;
    tile_text_format(&printed->text, "%s[", frame->item->name);
    const TileBlock *region = c->grid ? &c->grid->regions[0] : NULL; /* NULL: a function is checked without a call */
    for (uint32_t i = 0; region && i < region->argument_count; i++) {
        tile_text_add(&printed->text, i ? ", {i}" : "{i}");
        printed->items[printed->count++] = region->arguments[i];
    }
    tile_text_add(&printed->text, "]:");
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

/* One word of 64 bits for each element. */
static TileScalar word_of(char kind) {
    return kind == 'i' ? TILE_I64 : kind == 'u' || kind == 'b' ? TILE_U64 : TILE_F64;
}

/* {f:4x8?}; `mark` is the kind of the following item, which belongs to this one; 0: there is none. */
static void add_place(TileChecker *c, TilePrinted *printed, const TileMeaning *m, char mark) {
    tile_text_format(&printed->text, "{%c", kind_of((TileScalar)m->scalar));
    for (unsigned i = 0; i < m->rank; i++)
        tile_text_format(&printed->text, "%c%lld", i ? 'x' : ':', (long long)tile_extent_value(c, m->extent[i]));
    if (mark) tile_text_add_char(&printed->text, mark);
    tile_text_add_char(&printed->text, '}');
}

/* Invalid elements are replaced by 0; a second item tells which ones they are. */
void tile_print_value(TileChecker *c, TilePrinted *printed, const TileMeaning *m) {
    TileScalar scalar = (TileScalar)m->scalar;
    TileValue *zero = tile_build_bits(tile_emitter(c), tile_type_scalar(c->context, scalar), 0);
    TileValue *value = tile_emit_filled(c, m, m->valid, zero), *valid = tile_emit_valid(c, m->valid, m);
    printed->items[printed->count++] = tile_build_convert(tile_emitter(c), value, word_of(kind_of(scalar)));
    if (valid) printed->items[printed->count++] = tile_build_convert(tile_emitter(c), valid, TILE_U64);
    add_place(c, printed, m, valid ? '?' : 0);
}

void tile_print_first(TileChecker *c, TilePrinted *printed, const TileMeaning *m, TileValue *chosen) {
    TileScalar word = word_of(kind_of((TileScalar)m->scalar));
    printed->items[printed->count++] = tile_build_convert(tile_emitter(c), tile_emit_value(c, m), word);
    printed->items[printed->count++] = tile_build_convert(tile_emitter(c), chosen, TILE_U64);
    add_place(c, printed, m, '!');
}

void tile_print_emit(TileChecker *c, TilePrinted *printed) {
    TileAttribute text = {.key = TILE_ATTRIBUTE_TEXT,
                          .text = tile_intern_string(c->context->strings, tile_text_get(&printed->text))};
    tile_build_op(tile_emitter(c), TILE_OP_PRINT, printed->items, printed->count, &text, 1, NULL, 0);
}

TileMeaning tile_check_print(TileChecker *c, const TileExpr *call, const TileBuiltin *builtin) {
    TilePrinted printed = {.text = {.arena = c->arena}};
    if (!tile_check_arguments(c, call, 1, TILE_MAX_PRINTED, NULL)) return tile_error_meaning();
    if (c->in_combiner) return tile_fail(c, UNSUPPORTED, call->span, "`print` in a function that folds");
    if (!c->in_grid) return tile_fail(c, HOST_STATEMENT, call->span, "`print`");
    add_program(c, &printed);
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileExpr *expr = call->arguments.items[i].value;
        tile_print_words(&printed, " ");
        if (expr->kind == TILE_EXPR_STRING) {
            tile_print_words(&printed, expr->name);
            continue;
        }
        TileMeaning m = tile_as_value(c, tile_check_value(c, expr), expr->span);
        if (tile_is_error(&m)) return m;
        tile_emit_at(c, call->span);
        tile_print_value(c, &printed, &m);
    }
    tile_emit_at(c, call->span);
    if (!c->untaken) tile_print_emit(c, &printed);
    return tile_nothing();
}
