/* Bindings, which determine an instance of a kernel: types, constants, functions, static values, tune names. */
#include "parser/check/bindings.h"
#include "parser/check/constant.h"
#include "parser/check/expression.h"
#include "parser/check/function.h"
#include "parser/check/item.h"
#include "parser/check/literal.h"
#include "parser/check/meaning.h"
#include "parser/check/operand.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/stand_in.h"
#include "parser/check/type.h"

#include <stdlib.h>
#include <string.h>

#include "lang/scalar/scalar.h"

const TileBinding *tile_find_binding(const TileChecker *c, const char *name) {
    for (size_t i = 0; i < c->options->binding_count; i++)
        if (strcmp(c->options->bindings[i].name, name) == 0) return &c->options->bindings[i];
    return NULL;
}

static void bind(TileChecker *c, const char *name, TileSpan span, TileMeaning meaning) {
    tile_scope_push(c, (TileBound){.name = name, .meaning = meaning, .span = span, .fixed = true});
}

/* A wrong binding is reported at its own location, if it has one, else where the name is declared. */
static TileSpan place_of(const TileChecker *c, const TileBinding *binding, TileSpan declared) {
    return binding && c->options->places ? c->options->places[binding - c->options->bindings] : declared;
}

static void report_binding(TileChecker *c, TileDiagnostic *d, const TileBinding *binding, TileSpan declared) {
    if (binding && c->options->places)
        tile_diagnostic_note(c->diagnostics, d, declared, "`%s` is declared here", binding->name);
    tile_report(c, d);
}

static bool wrong_binding(TileChecker *c, const TileBinding *binding, TileSpan declared, const char *wanted) {
    TileSpan place = place_of(c, binding, declared);
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_WRONG_BINDING, place, binding->name, wanted);
    report_binding(c, d, binding, declared);
    return false;
}

/* ---- generics ---- */

/* The stand-in for a type that is not bound: f32, or another one for the second check. */
TileScalar tile_stand_in_type(uint32_t types, bool second) {
    uint32_t computed = types & ~(1u << TILE_F8E4M3 | 1u << TILE_F8E5M2);
    return types >> TILE_F32 & 1u && !second ? TILE_F32 : (TileScalar)__builtin_ctz(computed ? computed : types);
}

static bool bind_type(TileChecker *c, const TileGeneric *generic) {
    uint32_t types = 0;
    for (size_t i = 0; i < generic->classes.count; i++) {
        const TileNameRef *class = &generic->classes.items[i];
        if (!tile_class_types(class->name, &types)) return tile_fail_type(c, class->span, class->name), false;
    }
    const TileBinding *binding = tile_find_binding(c, generic->name);
    TileScalar scalar = TILE_F32;
    if (binding) {
        if (binding->kind != TILE_BINDING_TYPE) return wrong_binding(c, binding, generic->span, "a type");
        scalar = binding->type;
        if (!(types >> scalar & 1u)) {
            TileDiagnostic *d =
                tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_BINDING_CLASS, place_of(c, binding, generic->span),
                              generic->name, tile_scalar_name(scalar));
            return report_binding(c, d, binding, generic->span), false;
        }
    } else if (c->representative || (types & (types - 1)) == 0) {
        scalar = tile_stand_in_type(types, c->second);
        if (types & (types - 1)) {
            tile_list_push(c->arena, &c->stand_ins, generic->name);
            c->type_stand_ins++;
        }
    } else {
        return tile_fail(c, UNBOUND, generic->span, generic->name, "a type", generic->name, tile_scalar_name(tile_stand_in_type(types, false))), false;
    }
    bind(c, generic->name, generic->span, (TileMeaning){.kind = TILE_MEANING_TYPE, .scalar = (uint8_t)scalar});
    return true;
}

/* Checks that the default of a generic is a compile-time constant of the declared type. */
static bool is_constant_of(TileChecker *c, const TileGeneric *generic, TileMeaning *m, TileScalar scalar) {
    TileSpan span = generic->value->span;
    if (tile_is_error(m)) return false;
    if (generic->type && m->scalar != scalar) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TYPE_MISMATCH, span, tile_scalar_name(scalar),
                                          tile_meaning_words(c, m));
        if (!m->rank && m->scalar != TILE_BOOL)
            tile_diagnostic_edit(c->diagnostics, d, span, "%s(%s)", generic->type->name, tile_bare_text(c, span));
        tile_report(c, d);
        return false;
    }
    if (tile_make_constant(c, m)) return true;
    return tile_fail(c, NOT_CONSTANT, span, tile_arena_format(c->arena, "the default of `%s`", generic->name)), false;
}

static bool bind_constant(TileChecker *c, const TileGeneric *generic) {
    const TileBinding *binding = tile_find_binding(c, generic->name);
    TileScalar scalar = TILE_I64;
    if (generic->type && !tile_find_type(c, generic->type->name, &scalar))
        return tile_fail_type(c, generic->type->name_span, generic->type->name), false;
    TileMeaning m;
    int64_t value;
    if (binding || !generic->value) {
        m = tile_bound_constant(c, generic->name, scalar, generic->span);
    } else {
        m = tile_check_value(c, generic->value);
        if (tile_is_literal(&m))
            m = tile_literal_as(c, &m,
                                generic->type                 ? scalar
                                : tile_literal_is_integer(&m) ? TILE_I64
                                                              : TILE_F32,
                                generic->value->span);
        if (!is_constant_of(c, generic, &m, scalar)) return false;
        if (m.sum && tile_sum_known(&c->sums, m.sum, &value))
            m = tile_sum_meaning(tile_sum_symbol(&c->sums, tile_symbol_known(&c->sums, generic->name, value)));
    }
    if (tile_is_error(&m)) return false;
    bind(c, generic->name, generic->span, m);
    return true;
}

static bool bind_function(TileChecker *c, const TileGeneric *generic) {
    const TileBinding *binding = tile_find_binding(c, generic->name);
    TileMeaning m;
    if (binding) {
        if (binding->kind != TILE_BINDING_FUNCTION)
            return wrong_binding(c, binding, generic->span, "the name of a function");
        m = tile_function_from_text(c, generic->name, binding->function, place_of(c, binding, generic->span));
    } else if (generic->value) {
        m = tile_check_expr(c, generic->value);
    } else if (c->representative) {
        c->incomplete = true; /* callers are checked when it is given */
        bind(c, generic->name, generic->span, tile_error_meaning());
        return true;
    } else {
        return tile_fail(c, UNBOUND, generic->span, generic->name, "a function", generic->name, "nn.relu"), false;
    }
    TileSpan place = binding ? place_of(c, binding, generic->span) : generic->value->span;
    if (!tile_check_function_type(c, generic, &m, place)) return false;
    bind(c, generic->name, generic->span, m);
    return true;
}

bool tile_bind_generics(TileChecker *c, const TileItem *kernel) {
    bool ok = true;
    for (size_t i = 0; i < kernel->generics.count; i++) {
        const TileGeneric *generic = &kernel->generics.items[i];
        switch ((TileGenericKind)generic->kind) {
        case TILE_GENERIC_TYPE: ok = bind_type(c, generic) && ok; break;
        case TILE_GENERIC_CONST: ok = bind_constant(c, generic) && ok; break;
        case TILE_GENERIC_FN: ok = bind_function(c, generic) && ok; break;
        }
    }
    return ok;
}

/* ---- constants ---- */

static TileMeaning constant_of(TileChecker *c, const TileBinding *binding, TileScalar scalar, TileSpan span) {
    bool given = binding == tile_find_binding(c, binding->name);
    if (scalar == TILE_BOOL) {
        if (binding->kind != TILE_BINDING_BOOL)
            return wrong_binding(c, binding, span, "true or false"), tile_error_meaning();
        return tile_bool_meaning(binding->truth);
    }
    if (tile_scalar_is_float(scalar)) {
        bool number = binding->kind == TILE_BINDING_FLOAT || binding->kind == TILE_BINDING_INTEGER;
        if (!number) return wrong_binding(c, binding, span, "a number"), tile_error_meaning();
        double value = binding->kind == TILE_BINDING_FLOAT ? binding->number : (double)binding->integer;
        return tile_bits_meaning(scalar, tile_scalar_from_double(scalar, value));
    }
    if (binding->kind != TILE_BINDING_INTEGER)
        return wrong_binding(c, binding, span, "an integer"), tile_error_meaning();
    TileMeaning literal = tile_integer_meaning(binding->integer);
    TileMeaning m = tile_literal_as(c, &literal, scalar, given ? place_of(c, binding, span) : span);
    if (scalar == TILE_I64)
        m = tile_sum_meaning(tile_sum_symbol(&c->sums, tile_symbol_known(&c->sums, binding->name, binding->integer)));
    return m;
}

TileMeaning tile_bound_constant(TileChecker *c, const char *name, TileScalar scalar, TileSpan span) {
    enum { STAND_IN = 64 };
    const TileBinding *binding = tile_find_binding(c, name);
    if (binding) return constant_of(c, binding, scalar, span);
    if (!c->representative) return tile_fail(c, UNBOUND, span, name, "a value", name, scalar == TILE_BOOL ? "true" : "64");
    TileBinding stand_in = {.name = name, .kind = TILE_BINDING_INTEGER, .integer = STAND_IN};
    if (scalar == TILE_BOOL) stand_in = (TileBinding){.name = name, .kind = TILE_BINDING_BOOL, .truth = !c->second};
    tile_list_push(c->arena, &c->stand_ins, name);
    TileMeaning m = constant_of(c, &stand_in, scalar, span);
    if (m.sum)
        m.sum->products[0].symbols[0]->open = TILE_OPEN_NUMBER;
    else
        tile_open_meaning(c, &m, scalar == TILE_BOOL ? TILE_OPEN_CHOICE : TILE_OPEN_NUMBER);
    return m;
}

/* ---- tune ---- */

typedef struct Point {
    const TileTune *tune;
    int64_t *values[TILE_MAX_TUNE_NAMES];
    size_t counts[TILE_MAX_TUNE_NAMES], at[TILE_MAX_TUNE_NAMES];
} Point;

/* Of the names that control execution on a GPU, `stream` is yes or no; the others are limited to valid values. */
static bool check_target_name(TileChecker *c, const TileTuneName *name, const TileBinding *binding,
                              const int64_t *values, size_t count) {
    for (size_t k = 0; k < count && strcmp(name->name, "stream") == 0; k++) {
        if (values[k] == 0 || values[k] == 1) continue;
        TileSpan place = binding ? place_of(c, binding, name->span) : name->candidates.items[k]->span;
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TUNE_STREAM, place, (long long)values[k]);
        return report_binding(c, d, binding, name->span), false;
    }
    return true;
}

static bool read_candidates(TileChecker *c, const TileTune *tune, Point *point) {
    point->tune = tune;
    if (tune->names.count > TILE_MAX_TUNE_NAMES)
        return tile_fail(c, TUNE_LIMIT, tune->span, (int)TILE_MAX_TUNE_NAMES), false;
    for (size_t i = 0; i < tune->names.count; i++) {
        const TileTuneName *name = &tune->names.items[i];
        const TileBinding *binding = tile_find_binding(c, name->name);
        size_t count = binding ? 1 : name->candidates.count;
        point->values[i] = TILE_NEW_ARRAY(c->arena, int64_t, count);
        point->counts[i] = count;
        point->at[i] = 0;
        if (binding) {
            if (binding->kind != TILE_BINDING_INTEGER) return wrong_binding(c, binding, name->span, "an integer");
            point->values[i][0] = binding->integer;
        } else {
            for (size_t k = 0; k < count; k++)
                if (!tile_check_constant(c, name->candidates.items[k], "a candidate", &point->values[i][k]))
                    return false;
        }
        if (!check_target_name(c, name, binding, point->values[i], count)) return false;
    }
    return true;
}

static void bind_point(TileChecker *c, const Point *point) {
    for (size_t i = 0; i < point->tune->names.count; i++) {
        const TileTuneName *name = &point->tune->names.items[i];
        TileSymbol *symbol = tile_symbol_known(&c->sums, name->name, point->values[i][point->at[i]]);
        bind(c, name->name, name->span, tile_sum_meaning(tile_sum_symbol(&c->sums, symbol)));
    }
}

/* The last name varies fastest. */
static bool next_point(Point *point) {
    for (size_t i = point->tune->names.count; i-- > 0;) {
        if (++point->at[i] < point->counts[i]) return true;
        point->at[i] = 0;
    }
    return false;
}

static uint32_t limited(int64_t value, int64_t most) { return (uint32_t)(value < 0 ? 0 : value > most ? most : value); }

/* Names that control execution on a GPU. 0 warps, stages, turns, cluster, programs or packs: the compiler chooses. */
static void note_target_names(TileChecker *c, const Point *point) {
    for (size_t i = 0; i < point->tune->names.count && c->func; i++) {
        const char *name = point->tune->names.items[i].name;
        int64_t value = point->values[i][point->at[i]];
        if (strcmp(name, "warps") == 0) c->func->warps = limited(value, TILE_MAX_THREADS / TILE_WARP_THREADS);
        if (strcmp(name, "stages") == 0) c->func->stages = limited(value, TILE_MAX_STAGES);
        if (strcmp(name, "turns") == 0) c->func->turns = limited(value, TILE_MAX_TURNS);
        if (strcmp(name, "cluster") == 0) c->func->cluster = limited(value, TILE_MAX_CLUSTER);
        if (strcmp(name, "programs") == 0) c->func->least_programs = limited(value, INT32_MAX);
        if (strcmp(name, "packs") == 0) c->func->packs = value != 0;
        if (strcmp(name, "stream") == 0) c->func->stream = value != 0;
    }
}

/* False if an error was reported. */
static bool check_where(TileChecker *c, const TileTune *tune, bool *holds) {
    *holds = true;
    if (!tune->where) return true;
    TileMeaning m = tile_check_condition(c, tune->where);
    if (tile_is_error(&m)) return false;
    if (!m.constant) return tile_fail(c, NOT_CONSTANT, tune->where->span, "`where` of a tune clause"), false;
    *holds = m.bits != 0;
    return true;
}

/* Counts the points that are tried, of all clauses. False if an error was reported. */
static bool try_point(TileChecker *c, const TileTune *tune) {
    uint64_t most = c->diagnostics->limits->most[TILE_LIMIT_TUNE_POINTS];
    if (c->points++ < most) return true;
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_TUNE_POINTS, tune->span, (unsigned long long)most);
    tile_diagnostic_note_limit(c->diagnostics, d, TILE_LIMIT_TUNE_POINTS);
    tile_report(c, d);
    return false;
}

static bool bind_tune(TileChecker *c, const TileTune *tune) {
    Point point;
    bool holds;
    if (!read_candidates(c, tune, &point)) return false;
    size_t bounds = c->bounds.count;
    do {
        if (!try_point(c, tune)) return false;
        bind_point(c, &point);
        note_target_names(c, &point);
        if (!check_where(c, tune, &holds)) return false;
        if (holds) return true;
        tile_scope_cut(c, bounds);
    } while (next_point(&point));
    return tile_fail(c, TUNE_EMPTY, tune->where->span), false;
}

static bool for_target(const TileChecker *c, const TileTune *tune) {
    const char *target = c->options->target ? c->options->target : "cpu";
    return !tune->target || strcmp(tune->target, target) == 0;
}

bool tile_bind_tunes(TileChecker *c, const TileItem *kernel) {
    bool ok = true;
    c->points = 0;
    for (size_t i = 0; i < kernel->tunes.count; i++) {
        const TileTune *tune = &kernel->tunes.items[i];
        for (size_t k = 0; k < tune->names.count; k++) {
            bool twice = false;
            const TileBound *other = for_target(c, tune) ? tile_scope_find(c, tune->names.items[k].name) : NULL;
            for (size_t j = 0; j < k && for_target(c, tune); j++)
                twice = twice || tune->names.items[j].name == tune->names.items[k].name;
            if (other || twice)
                ok = (tile_fail(c, NAME_TAKEN, tune->names.items[k].span, tune->names.items[k].name), false);
        }
        if (ok && for_target(c, tune)) ok = bind_tune(c, tune) && ok;
    }
    return ok;
}

/* ---- all points ---- */

typedef struct Search {
    TileChecker *checker;
    const TileItem *kernel;
    size_t most;
    TileTunePoints *found;
    TILE_LIST(int64_t) values; /* of the preceding clauses */
} Search;

/* Enumerates the points of this clause and the following ones that `where` admits. */
static bool search_points(Search *search, size_t clause) {
    TileChecker *c = search->checker;
    const TileItem *kernel = search->kernel;
    while (clause < kernel->tunes.count && !for_target(c, &kernel->tunes.items[clause])) clause++;
    if (clause == kernel->tunes.count) {
        size_t bytes = search->values.count * sizeof *search->values.items;
        tile_list_push(c->arena, &search->found->points, tile_arena_copy(c->arena, search->values.items, bytes));
        return true;
    }
    const TileTune *tune = &kernel->tunes.items[clause];
    size_t bounds = c->bounds.count, values = search->values.count;
    Point point;
    bool holds;
    if (!read_candidates(c, tune, &point)) return false;
    do {
        if (!try_point(c, tune)) return false;
        bind_point(c, &point);
        if (!check_where(c, tune, &holds)) return false;
        for (size_t i = 0; i < tune->names.count; i++)
            tile_list_push(c->arena, &search->values, point.values[i][point.at[i]]);
        if (holds && !search_points(search, clause + 1)) return false;
        tile_scope_cut(c, bounds);
        search->values.count = values;
    } while (search->found->points.count < search->most && next_point(&point));
    return true;
}

bool tile_search_points(TileChecker *c, const TileItem *kernel, size_t most, TileTunePoints *found) {
    Search search = {.checker = c, .kernel = kernel, .most = most, .found = found};
    *found = (TileTunePoints){.names = {0}};
    c->points = 0;
    for (size_t i = 0; i < kernel->tunes.count; i++) {
        const TileTune *tune = &kernel->tunes.items[i];
        for (size_t k = 0; k < tune->names.count && for_target(c, tune); k++)
            tile_list_push(c->arena, &found->names, tune->names.items[k].name);
    }
    return search_points(&search, 0);
}

/* ---- unused bindings ---- */

bool tile_check_all_used(TileChecker *c, const TileItem *kernel) {
    bool ok = true;
    for (size_t i = 0; i < c->options->binding_count; i++) {
        const char *name = c->options->bindings[i].name;
        if (!tile_names_setting(kernel, name))
            ok = (tile_fail(c, NO_SUCH_BINDING, kernel->name_span, kernel->name, name), false);
    }
    return ok;
}

/* ---- as text ---- */

static bool is_function_name(const char *text) {
    bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '_';
    return letter && strcmp(text, "inf") != 0 && strcmp(text, "nan") != 0;
}

TileBinding tile_binding_read(const char *name, const char *text) {
    TileBinding binding = {.name = name};
    char *end;
    if (tile_scalar_find(text, strlen(text), &binding.type)) {
        binding.kind = TILE_BINDING_TYPE;
    } else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        binding.kind = TILE_BINDING_BOOL;
        binding.truth = *text == 't';
    } else if (is_function_name(text)) {
        binding.kind = TILE_BINDING_FUNCTION;
        binding.function = text;
    } else {
        binding.kind = TILE_BINDING_INTEGER;
        binding.integer = strtoll(text, &end, 0);
        if (!*end && end != text) return binding;
        binding.kind = TILE_BINDING_FLOAT;
        binding.number = tile_read_number(text, &end);
        if (!*end && end != text) return binding;
        binding.kind = TILE_BINDING_FUNCTION;
        binding.function = text;
    }
    return binding;
}

void tile_binding_print(TileText *text, const TileBinding *binding) {
    switch (binding->kind) {
    case TILE_BINDING_TYPE: tile_text_add(text, tile_scalar_name(binding->type)); break;
    case TILE_BINDING_INTEGER: tile_text_format(text, "%lld", (long long)binding->integer); break;
    case TILE_BINDING_FLOAT: tile_text_format(text, "%.17g", binding->number); break;
    case TILE_BINDING_BOOL: tile_text_add(text, binding->truth ? "true" : "false"); break;
    case TILE_BINDING_FUNCTION: tile_text_add(text, binding->function); break;
    }
}
