/* Names of other languages: what is written instead. The words are in foreign.def. */
#include <string.h>
#include <strings.h>

#include "parser/check/builtin.h"
#include "parser/check/foreign.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"

typedef struct Word {
    const char *name, *own, *note;
} Word;

static const Word words[] = {
#define WORD(name, own, note) {name, own, note},
#include "parser/check/foreign.def"
#undef WORD
};

/* By its whole name, or without `f` or `l`, with which C marks functions of other types. */
static const Word *find_word(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(words[i].name, name, length) == 0 && !words[i].name[length]) return &words[i];
    return NULL;
}

/* The modules of the library whose function `name` is, in the order of the alphabet, as a note. */
static bool note_library(TileChecker *c, TileDiagnostic *d, const char *name) {
    static const char *const functions[][2] = {
#define FUNCTION(module, name) {module, name},
#include "library_functions.inc"
#undef FUNCTION
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *own = functions[i][1];
        bool same = strcmp(own, name) == 0 || (strlen(name) > 1 && strcasecmp(own, name) == 0); /* pi for PI */
        if (!same) continue;
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`import %s` brings `%s.%s`", functions[i][0],
                             functions[i][0], own);
        return true;
    }
    return false;
}

bool tile_propose_foreign(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span) {
    if (note_library(c, d, name)) return true;
    size_t length = strlen(name);
    const Word *word = find_word(name, length);
    bool marked = length > 3 && (name[length - 1] == 'f' || name[length - 1] == 'l');
    if (!word && marked) {
        const char *bare = tile_arena_string(c->arena, name, length - 1);
        word = find_word(bare, length - 1);
        const TileBuiltin *builtin = word ? NULL : tile_find_builtin(bare);
        if (builtin) return tile_diagnostic_edit(c->diagnostics, d, span, "%s", bare), true;
    }
    if (word && word->note) tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "%s", word->note);
    if (word && word->own) tile_diagnostic_edit(c->diagnostics, d, span, "%s", word->own);
    if (word) return true;
    const char *type = tile_foreign_type(c->arena, name);
    if (type) tile_diagnostic_edit(c->diagnostics, d, span, "%s", type);
    return type;
}

static const Word arguments[] = {
#define ARGUMENT(name, own, note) {name, own, note},
#include "parser/check/foreign_arguments.def"
#undef ARGUMENT
};

const char *tile_foreign_argument(TileChecker *c, TileDiagnostic *d, const char *name) {
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        if (strcmp(arguments[i].name, name) != 0) continue;
        if (arguments[i].note) tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "%s", arguments[i].note);
        return arguments[i].own;
    }
    return NULL;
}

bool tile_is_foreign_module(const char *name) {
    static const char *const modules[] = {"tl",        "np",  "numpy", "torch", "triton",
                                          "libdevice", "jnp", "cp",    "std",   "math", "F", "jax"};
    bool is = false;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) is = is || strcmp(name, modules[i]) == 0;
    return is;
}

static bool is_one_of(const char *name, const char *const *list, size_t count) {
    bool is = false;
    for (size_t i = 0; i < count; i++) is = is || strcmp(name, list[i]) == 0;
    return is;
}

const char *tile_type_text(TileChecker *c, const TileExpr *expr) {
    const char *text = expr->kind == TILE_EXPR_FIELD ? expr->name : tile_span_text(c, expr->span);
    const char *own = tile_foreign_type(c->arena, text);
    return own ? own : text;
}

/* `cast(v, f32)` */
static bool propose_cast(TileChecker *c, TileDiagnostic *d, const TileExpr *call) {
    static const char *const casts[] = {"cast", "convert", "astype"};
    TileScalar scalar;
    if (!d || call->arguments.count != 2 || !is_one_of(call->a->name, casts, sizeof casts / sizeof *casts)) return false;
    const char *type = tile_type_text(c, call->arguments.items[1].value);
    if (!tile_scalar_find(type, strlen(type), &scalar)) return false;
    tile_diagnostic_edit(c->diagnostics, d, call->span, "%s(%s)", type,
                         tile_bare_text(c, call->arguments.items[0].value->span));
    return true;
}

/* `float("inf")`, of which the name alone was reported, with the edit of a conversion. */
static bool propose_number(TileChecker *c, const TileExpr *call) {
    size_t count = c->diagnostics->list.count;
    TileDiagnostic *d = count ? c->diagnostics->list.items[count - 1] : NULL;
    static const char *const numbers[] = {"inf", "-inf", "nan"};
    const TileExpr *text = call->arguments.count == 1 ? call->arguments.items[0].value : NULL;
    if (!d || !text || text->kind != TILE_EXPR_STRING || strcmp(call->a->name, "float") != 0) return false;
    if (d->code != TILE_DIAGNOSTIC_UNKNOWN_NAME || d->span.begin != call->a->span.begin) return false;
    if (!is_one_of(text->name, numbers, sizeof numbers / sizeof *numbers)) return false;
    tile_diagnostic_edit(c->diagnostics, d, call->span, "%s", text->name);
    return true;
}

void tile_propose_access(TileChecker *c, TileDiagnostic *d, const TileExpr *call) {
    const char *name = call->a->name;
    if (propose_cast(c, d, call) || propose_number(c, call)) return;
    bool loads = strcmp(name, "load") == 0, stores = strcmp(name, "store") == 0;
    const TileExpr *pointer = call->arguments.count ? call->arguments.items[0].value : NULL;
    bool added = pointer && pointer->kind == TILE_EXPR_BINARY && pointer->op == TILE_TOKEN_PLUS &&
                 pointer->a->kind == TILE_EXPR_NAME;
    const TileBound *bound = added ? tile_scope_find(c, pointer->a->name) : NULL;
    if (!d || (!loads && !stores) || !bound || bound->meaning.kind != TILE_MEANING_TENSOR) return;
    if (bound->meaning.tensor->rank - bound->meaning.tensor->own != 1) return;
    const char *index = tile_bare_text(c, pointer->b->span);
    const TileExpr *value = stores && call->arguments.count > 1 ? call->arguments.items[1].value : NULL;
    for (size_t i = 1; loads && i < call->arguments.count; i++)
        if (call->arguments.items[i].name && strcmp(call->arguments.items[i].name, "other") == 0)
            value = call->arguments.items[i].value;
    if (stores && !value) return;
    const char *text = value ? tile_span_text(c, value->span) : "";
    tile_diagnostic_edit(c->diagnostics, d, call->span,
                         stores  ? "%s[%s] = %s"
                         : value ? "(%s[%s] else %s)"
                                 : "%s[%s]%s",
                         pointer->a->name, index, text);
}

void tile_propose_call_of_method(TileChecker *c, TileDiagnostic *d, const TileExpr *call) {
    static const char *const converts[] = {"to", "astype", "type", "cast", "as"};
    const TileExpr *field = call->a;
    const Word *word = tile_find_builtin(field->name) ? NULL : find_word(field->name, strlen(field->name));
    const char *name = word && word->own ? word->own : field->name;
    const TileBuiltin *builtin = tile_find_builtin(name);
    size_t count = call->arguments.count;
    const TileExpr *first = count ? call->arguments.items[0].value : NULL;
    bool named = count && call->arguments.items[0].name;
    const char *value = tile_bare_text(c, field->a->span);
    bool typed = count == 1 && (!named || strcmp(call->arguments.items[0].name, "dtype") == 0);
    if (is_one_of(field->name, converts, sizeof converts / sizeof *converts) && typed) {
        tile_diagnostic_edit(c->diagnostics, d, call->span, "%s(%s)", tile_type_text(c, first), value);
        return;
    }
    if (!builtin) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`%s` is a function: its operands stand in parentheses", name);
    bool alone = count == 1 || (count > 1 && call->arguments.items[1].name);
    bool axis = alone && !named && first->kind != TILE_EXPR_TUPLE &&
                (builtin->rule == TILE_BUILTIN_REDUCTION || builtin->rule == TILE_BUILTIN_MEAN ||
                 builtin->rule == TILE_BUILTIN_EXTREMUM || builtin->rule == TILE_BUILTIN_ARG_REDUCTION ||
                 builtin->rule == TILE_BUILTIN_CUMULATIVE || builtin->rule == TILE_BUILTIN_SORT);
    TileSpan rest = {call->span.file, count ? first->span.begin : 0, call->span.end};
    if (named) rest.begin = call->arguments.items[0].name_span.begin;
    bool sizes = builtin->rule == TILE_BUILTIN_BROADCAST && count && !named && first->kind != TILE_EXPR_TUPLE; /* v.expand(4, 8) */
    tile_diagnostic_edit(c->diagnostics, d, call->span, "%s(%s%s%s%s%s", name, value, count ? ", " : ")",
                         axis ? "axis = " : sizes ? "(" : "", count ? tile_span_text(c, rest) : "", sizes ? ")" : "");
}
