/* Overloads of built-in functions, for messages about a call that has none of their forms. */
#include "parser/check/builtin.h"
#include "parser/check/forms.h"
#include "parser/check/print.h"
#include "parser/check/propose.h"

#include <string.h>

typedef struct Form {
    const char *name, *text;
    unsigned least, most; /* positional arguments */
    const char *names;    /* "axis keep" */
} Form;

#define ALONG "axis keep"
static const Form forms[] = {
    {"min", "min(a, b)", 2, 2, ""},
    {"min", "min(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"max", "max(a, b)", 2, 2, ""},
    {"max", "max(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"clamp", "clamp(x, lo, hi)", 3, 3, ""},
    {"cdiv", "cdiv(a, b)", 2, 2, ""},
    {"where", "where(condition, a, b)", 3, 3, ""},
    {"keep", "keep(v, condition)", 2, 2, ""},
    {"sum", "sum(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"prod", "prod(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"mean", "mean(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"any", "any(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"all", "all(v, axis = .., keep = ..)", 1, 1, ALONG},
    {"argmin", "argmin(v, axis = ..)", 1, 1, "axis"},
    {"argmax", "argmax(v, axis = ..)", 1, 1, "axis"},
    {"cumsum", "cumsum(v, axis = .., reverse = .., exclusive = ..)", 1, 1, "axis reverse exclusive"},
    {"cumprod", "cumprod(v, axis = .., reverse = .., exclusive = ..)", 1, 1, "axis reverse exclusive"},
    {"reduce", "reduce(v, axis, f, init = ..)", 3, 3, "init"},
    {"reduce", "reduce(v, f, axis = .., init = ..)", 2, 2, "axis init"},
    {"scan", "scan(v, axis, f, init = .., reverse = .., exclusive = ..)", 3, 3, "init reverse exclusive"},
    {"scan", "scan(v, f, axis = .., init = .., reverse = .., exclusive = ..)", 2, 2, "axis init reverse exclusive"},
    {"dot", "dot(a, b)", 2, 2, ""},
    {"dot", "dot(a, b, acc)", 3, 3, ""},
    {"dot_scaled", "dot_scaled(a, b, a_scale = .., b_scale = ..)", 2, 2, "a_scale b_scale"},
    {"dot_scaled", "dot_scaled(a, b, acc, a_scale = .., b_scale = ..)", 3, 3, "a_scale b_scale"},
    {"einsum", "einsum(\"bij,bjk->bik\", a, b)", 3, 3, ""},
    {"unpack", "unpack[i4](v)", 1, 1, ""},
    {"pack", "pack[i4](v)", 1, 1, ""},
    {"permute", "permute(v, (1, 0, ..))", 2, 2, ""},
    {"reshape", "reshape(v, (A, B, ..))", 2, 2, ""},
    {"zeros", "zeros[A, B](f32)", 1, 1, ""},
    {"full", "full[A, B](x)", 1, 1, ""},
    {"bitcast", "bitcast[i32](v)", 1, 1, ""},
    {"gather", "gather(x, i, j, ..)", 2, 9, ""},
    {"scatter", "scatter(y, v, i, j, ..)", 3, 10, ""},
    {"print", "print(\"text\", v, ..)", 1, TILE_MAX_PRINTED, ""},
    {"split", "split(v)", 1, 1, ""},
    {"join", "join(a, b)", 2, 2, ""},
    {"shift", "shift(v, axis, by)", 3, 3, ""},
    {"broadcast", "broadcast(v, (A, B, ..))", 2, 2, ""},
    {"valid", "valid(v)", 1, 1, ""},
    {"ldexp", "ldexp(x, n)", 2, 2, ""},
    {"cat", "cat(a, b, .., axis = ..)", 2, 8, "axis"},
    {"sort", "sort(keys, v, .., axis = .., descending = ..)", 1, TILE_MAX_FOLD, "axis descending"},
    {"argsort", "argsort(v, axis = .., descending = ..)", 1, 1, "axis descending"},
    {"topk", "topk(v, k, axis = ..)", 2, 2, "axis"},
    {"histogram", "histogram(v, bins)", 2, 2, ""},
    {"searchsorted", "searchsorted(sorted, v, right = ..)", 2, 2, "right"},
    {"rand", "rand(seed, index)", 2, 2, ""},
    {"randn", "randn(seed, index)", 2, 2, ""},
    {"randint", "randint(seed, index, low, high)", 4, 4, ""},
    {"randperm", "randperm[B](seed, index)", 2, 2, ""},
    {"span", "span(start, B)", 2, 2, ""},
    {"span", "span(lo..hi, B)", 2, 2, ""},
    {"tiles", "tiles(N, B)", 2, 2, ""},
    {"tiles", "tiles(lo..hi, B)", 2, 2, ""},
    {"atomic_add", "atomic_add(y[..], v)", 2, 2, ""},
    {"atomic_max", "atomic_max(y[..], v)", 2, 2, ""},
    {"atomic_min", "atomic_min(y[..], v)", 2, 2, ""},
    {"atomic_cas", "atomic_cas(y[..], expected, v)", 3, 3, ""},
};
#undef ALONG
enum { FORM_COUNT = sizeof forms / sizeof *forms };

/* The next name in a list of names, NULL at its end. */
static const char *next_name(TileChecker *c, const char **at) {
    const char *begin = *at + strspn(*at, " ");
    *at = begin + strcspn(begin, " ");
    return *at > begin ? tile_arena_string(c->arena, begin, (size_t)(*at - begin)) : NULL;
}

static bool has_name(TileChecker *c, const Form *form, const char *name) {
    const char *at = form->names;
    for (const char *one = next_name(c, &at); one; one = next_name(c, &at))
        if (strcmp(one, name) == 0) return true;
    return false;
}

static const char *count_words(TileChecker *c, const Form *form) {
    const char *named = *form->names ? " without a name" : "";
    if (form->least != form->most)
        return tile_arena_format(c->arena, "%u to %u arguments%s", form->least, form->most, named);
    return form->least == 1 ? tile_arena_format(c->arena, "one argument%s", named)
                            : tile_arena_format(c->arena, "%u arguments%s", form->least, named);
}

/* NULL if the number and names of the arguments match. */
static const char *why_not_form(TileChecker *c, const Form *form, const TileExpr *call) {
    unsigned count = 0;
    for (size_t i = 0; i < call->arguments.count; i++) {
        const char *name = call->arguments.items[i].name;
        if (name && !has_name(c, form, name)) return tile_arena_format(c->arena, "has no argument named `%s`", name);
        count += !name;
    }
    if (count >= form->least && count <= form->most) return NULL;
    return tile_arena_format(c->arena, "takes %s, and %u %s given", count_words(c, form), count,
                             count == 1 ? "is" : "are");
}

/* All elementwise functions have the same forms. */
static void note_operands(TileChecker *c, TileDiagnostic *d, const TileBuiltin *builtin) {
    static const char *const lists[] = {"", "x", "x, y", "x, y, z"};
    if (builtin->arity > 3) return;
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "it is written `%s(%s)`", builtin->name,
                         lists[builtin->arity]);
}

void tile_note_forms(TileChecker *c, TileDiagnostic *d, const TileExpr *call, const char *name) {
    unsigned count = 0;
    for (int i = 0; i < FORM_COUNT; i++) count += strcmp(forms[i].name, name) == 0;
    const TileBuiltin *builtin = tile_find_builtin(name);
    if (!count && builtin && builtin->op != TILE_OP_COUNT) note_operands(c, d, builtin);
    for (int i = 0; i < FORM_COUNT; i++) {
        if (strcmp(forms[i].name, name)) continue;
        const char *reason = count > 1 ? why_not_form(c, &forms[i], call) : NULL;
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, reason ? "`%s` %s" : "it is written `%s`", forms[i].text,
                             reason);
    }
}

void tile_nearest_form(TileChecker *c, TileNearest *nearest, const char *name) {
    for (int i = 0; i < FORM_COUNT; i++) {
        const char *at = forms[i].names;
        if (strcmp(forms[i].name, name)) continue;
        for (const char *one = next_name(c, &at); one; one = next_name(c, &at)) tile_nearest_try(nearest, one);
    }
}
