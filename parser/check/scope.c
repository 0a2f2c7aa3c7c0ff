/* Names: scopes, variables, and what stands at the top of files. */
#include "parser/check/check.h"

uint32_t tile_now(TileChecker *c) { return ++c->clock; }

TileScopeMark tile_scope_open(TileChecker *c) {
    TileScopeMark mark = {c->bounds.count, c->vars.count,       c->atoms.count,
                          c->cache.count,  c->sums.facts.count, c->scope_start};
    c->scope_start = c->bounds.count;
    return mark;
}

void tile_scope_close(TileChecker *c, TileScopeMark mark) {
    tile_scope_cut(c, mark.bounds);
    c->vars.count = mark.vars;
    c->atoms.count = mark.atoms;
    c->cache.count = mark.cache;
    c->sums.facts.count = mark.facts;
    c->scope_start = mark.scope_start;
}

void tile_scope_close_names(TileChecker *c, TileScopeMark mark) {
    tile_scope_cut(c, mark.bounds);
    c->vars.count = mark.vars;
    c->sums.facts.count = mark.facts;
    c->scope_start = mark.scope_start;
}

size_t tile_facts_hide(TileChecker *c) {
    size_t known = c->sums.facts.count;
    if (known > c->grid_facts) c->sums.facts.count = c->grid_facts;
    return known;
}

void tile_facts_restore(TileChecker *c, size_t hidden) { c->sums.facts.count = hidden; }

void tile_scope_push(TileChecker *c, TileBound bound) {
    TileMapEntry *entry = tile_map_find(&c->innermost, bound.name);
    bound.hidden = entry ? (uint32_t)(uintptr_t)entry->value : 0;
    tile_list_push(c->arena, &c->bounds, bound);
    void *place = (void *)(uintptr_t)c->bounds.count;
    if (entry)
        entry->value = place;
    else
        tile_map_set(&c->innermost, bound.name, place);
}

void tile_scope_cut(TileChecker *c, size_t count) {
    while (c->bounds.count > count) {
        const TileBound *last = &c->bounds.items[--c->bounds.count];
        tile_map_find(&c->innermost, last->name)->value = (void *)(uintptr_t)last->hidden;
    }
}

TileBound *tile_scope_find(TileChecker *c, const char *name) {
    size_t place = (size_t)(uintptr_t)tile_map_get(&c->innermost, name);
    return place > c->frame->scope_base ? &c->bounds.items[place - 1] : NULL;
}

/* A name may be bound anew further in, but not in the same scope, and what a kernel is given never. */
void tile_scope_bind(TileChecker *c, TileNameRef name, TileMeaning meaning, bool fixed) {
    TileBound *other = tile_scope_find(c, name.name);
    if (other && other->fixed) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NAME_FIXED, name.span, name.name);
        tile_diagnostic_note(c->diagnostics, d, other->span, "`%s` is bound here", name.name);
        tile_report(c, d);
        meaning = tile_error_meaning(); /* what is meant further on is anybody's guess */
    } else if (other && (size_t)(other - c->bounds.items) >= c->scope_start) {
        TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NAME_TAKEN, name.span, name.name);
        tile_diagnostic_note(c->diagnostics, d, other->span, "`%s` is bound here", name.name);
        tile_report(c, d);
    }
    tile_scope_push(c, (TileBound){.name = name.name, .meaning = meaning, .span = name.span, .fixed = fixed});
}

TileVar *tile_scope_flag(TileChecker *c, const char *name, TileMeaning value) {
    TileVar *var = TILE_NEW(c->arena, TileVar);
    *var = (TileVar){.name = name, .now = value, .birth = tile_now(c)};
    tile_list_push(c->arena, &c->vars, var);
    return var;
}

TileVar *tile_scope_declare(TileChecker *c, TileNameRef name, TileMeaning value) {
    TileVar *var = tile_scope_flag(c, name.name, value);
    var->span = name.span;
    tile_scope_bind(c, name, tile_nothing(), false);
    c->bounds.items[c->bounds.count - 1].var = var;
    return var;
}

/* ---- items ---- */

const TileItem *tile_find_item(const TileAst *ast, const char *name, bool imports, const TileAst **where) {
    const TileItem *found = tile_map_get(&ast->named, name);
    if (found) {
        *where = ast;
        return found;
    }
    for (size_t i = 0; imports && i < ast->imports.count; i++) {
        const TileItem *item = ast->imports.items[i] ? tile_find_item(ast->imports.items[i], name, false, where) : NULL;
        if (item) return item;
    }
    return NULL;
}

/* What looking at a constant costs, in operations. */
enum { CONSTANT_WORK = 4 };

static TileMeaning evaluate_constant(TileChecker *c, const TileItem *item, const TileAst *ast, TileSpan span) {
    for (const TileFrame *frame = c->frame; frame; frame = frame->parent)
        if (frame->item == item) return tile_fail(c, RECURSIVE, span, item->name);
    if (c->depth >= TILE_MAX_CALL_DEPTH) return tile_fail(c, TOO_DEEP, span, (unsigned)TILE_MAX_CALL_DEPTH);
    tile_spend(c, CONSTANT_WORK);
    TileFrame frame = {.parent = c->frame, .item = item, .ast = ast, .scope_base = c->bounds.count, .call = span};
    TileFrame *caller = c->frame;
    uint32_t errors = c->diagnostics->error_count;
    c->frame = &frame;
    c->depth++;
    TileMeaning value = tile_check_value(c, item->value);
    if (c->diagnostics->error_count != errors) value = tile_error_meaning();
    TileScalar scalar;
    if (item->type && !tile_is_error(&value)) {
        if (!tile_find_type(c, item->type->name, &scalar))
            value = tile_fail_type(c, item->type->name_span, item->type->name);
        else if (tile_is_literal(&value))
            value = tile_literal_as(c, &value, scalar, item->value->span);
        else if (value.scalar != scalar)
            value =
                tile_fail(c, TYPE_MISMATCH, item->value->span, tile_scalar_name(scalar), tile_meaning_words(c, &value));
    }
    if (value.kind == TILE_MEANING_VALUE) tile_make_constant(c, &value);
    bool known = (tile_is_literal(&value) && value.kind != TILE_MEANING_CHOICE) || value.constant;
    int64_t number = 0;
    if (value.kind == TILE_MEANING_VALUE && value.sum) known = tile_sum_known(&c->sums, value.sum, &number);
    if (!known && !tile_is_error(&value))
        value = tile_fail(c, NOT_CONSTANT, item->value->span, "the value of a `const`");
    if (value.kind == TILE_MEANING_VALUE && value.sum) value = tile_sum_meaning(tile_sum_integer(&c->sums, number));
    c->depth--;
    c->frame = caller;
    return value;
}

/* Each constant is evaluated once: one that uses another twice would double the work with each step. */
static TileMeaning constant_meaning(TileChecker *c, const TileItem *item, const TileAst *ast, TileSpan span) {
    for (size_t i = 0; i < c->constants.count; i++)
        if (c->constants.items[i].item == item) return c->constants.items[i].value;
    TileMeaning value = evaluate_constant(c, item, ast, span);
    value.value = NULL; /* which stands where it was evaluated */
    tile_list_push(c->arena, &c->constants, (TileConstant){item, value});
    return value;
}

bool tile_is_constant(TileChecker *c, const TileAst *ast, const char *name) {
    const TileAst *where;
    const TileItem *item = tile_find_item(ast, name, true, &where);
    if (!item || item->kind != TILE_ITEM_CONST || where == ast) return item && item->kind == TILE_ITEM_CONST;
    TileMeaning value = constant_meaning(c, item, where, item->name_span);
    return value.kind == TILE_MEANING_INTEGER || value.sum || tile_is_error(&value);
}

static const TileAst *find_module(const TileAst *ast, const char *name) {
    size_t next = 0;
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        if (!item->is_path && item->name == name && next < ast->imports.count) return ast->imports.items[next];
        next++;
    }
    return NULL;
}

void tile_propose_visible(TileChecker *c, TileDiagnostic *d, const char *name, TileSpan span) {
    if (!d) return; /* one of many: nobody reads it */
    TileNearest nearest = tile_nearest(name);
    for (size_t i = c->bounds.count; i-- > c->frame->scope_base;) tile_nearest_try(&nearest, c->bounds.items[i].name);
    for (size_t i = 0; i < c->frame->ast->items.count; i++)
        tile_nearest_try(&nearest, c->frame->ast->items.items[i]->name);
    tile_nearest_builtin(&nearest);
    tile_propose_nearest(c, d, span, &nearest);
}

static bool mentions(const TileExpr *expr, const char *name) {
    if (!expr) return false;
    return (expr->kind == TILE_EXPR_NAME && expr->name == name) || mentions(expr->a, name) || mentions(expr->b, name);
}

/* A name that stands in expressions of dimensions only is bound nowhere. What is said of it once holds everywhere. */
static void note_dimension(TileChecker *c, TileDiagnostic *d, const char *name) {
    const TileItem *item = c->frame->item;
    for (size_t i = 0; item->kind == TILE_ITEM_KERNEL && i < item->params.count; i++) {
        const TileTypeExpr *type = item->params.items[i].type;
        for (size_t k = 0; type && k < type->extents.count; k++) {
            if (!mentions(type->extents.items[k], name)) continue;
            bool solved = !tile_is_static(item, name);
            tile_diagnostic_note(c->diagnostics, d, type->extents.items[k]->span,
                                 solved ? "a dimension gets its name where that stands alone, as in `[%s]`, or is the "
                                          "only one that is not known yet, as in `[2 * %s + 1]`"
                                        : "a static dimension gets its value where its name stands alone, as in `[%s]`",
                                 name, name);
            tile_scope_push(c, (TileBound){.name = name, .meaning = tile_error_meaning(), .fixed = true});
            return;
        }
    }
}

/* A name that only the `tune` of another target binds. */
static void note_other_target(TileChecker *c, TileDiagnostic *d, const char *name) {
    const TileItem *item = c->frame->item;
    for (size_t i = 0; item->kind == TILE_ITEM_KERNEL && i < item->tunes.count; i++) {
        const TileTune *tune = &item->tunes.items[i];
        for (size_t k = 0; k < tune->names.count; k++) {
            if (tune->names.items[k].name != name || !tune->target) continue;
            const char *other = strcmp(tune->target, "gpu") == 0 ? "cpu" : "gpu";
            tile_diagnostic_note(c->diagnostics, d, tune->names.items[k].span,
                                 "it has candidates for one target only; `tune %s %s in {..}` gives them for the other",
                                 other, name);
            return;
        }
    }
}

static TileMeaning unknown_name(TileChecker *c, const char *name, TileSpan span) {
    if (tile_is_future_type(name)) return tile_fail(c, UNSUPPORTED, span, name);
    if (c->frame->ast->lost) return tile_error_meaning();
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, span, name);
    note_dimension(c, d, name);
    note_other_target(c, d, name);
    tile_propose_visible(c, d, name, span);
    tile_report(c, d);
    return tile_error_meaning();
}

bool tile_check_undeclared(TileChecker *c, const TileExpr *target) {
    const TileAst *where;
    TileScalar scalar;
    if (target->kind != TILE_EXPR_NAME || c->frame->ast->lost || tile_scope_find(c, target->name)) return false;
    bool known = tile_find_item(c->frame->ast, target->name, true, &where) || tile_find_builtin(target->name) ||
                 tile_scalar_find(target->name, strlen(target->name), &scalar) ||
                 find_module(c->frame->ast, target->name);
    if (known || tile_is_future_type(target->name)) return false;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_UNKNOWN_NAME, target->span, target->name);
    tile_propose_visible(c, d, target->name, target->span);
    if (d && !d->has_edit) {
        tile_diagnostic_note(c->diagnostics, d, (TileSpan){0}, "`let` binds a name, `var` one that is assigned again");
        tile_diagnostic_edit(c->diagnostics, d, target->span, "var %s", target->name);
    }
    tile_report(c, d);
    tile_scope_push(c, (TileBound){.name = target->name, .meaning = tile_error_meaning(), .span = target->span});
    return true;
}

/* What the name may mean in an expression. No expression can use a kernel: functions, types and built-ins that are
 * named like one of the file are meant. */
static const TileItem *find_used(const TileChecker *c, const char *name, const TileAst **where) {
    const TileItem *item = tile_find_item(c->frame->ast, name, true, where);
    if (!item || item->kind != TILE_ITEM_KERNEL || item->broken) return item;
    for (size_t i = 0; i < c->frame->ast->imports.count; i++) {
        const TileAst *module = c->frame->ast->imports.items[i];
        const TileItem *other = module ? tile_find_item(module, name, false, where) : NULL;
        if (other && other->kind != TILE_ITEM_KERNEL) return other;
    }
    return NULL;
}

TileMeaning tile_scope_meaning(TileChecker *c, const char *name, TileSpan span) {
    TileBound *bound = tile_scope_find(c, name);
    if (bound) {
        const TileMeaning *m = bound->var ? &bound->var->now : &bound->meaning;
        c->met |= (uint8_t)tile_meaning_open(m);
        return *m;
    }
    const TileAst *ast = NULL;
    const TileItem *item = find_used(c, name, &ast);
    if (item && item->broken) return tile_error_meaning();
    if (item && ast != c->frame->ast && tile_is_ambiguous(c, name)) {
        tile_fail_ambiguous(c, name, span, NULL, NULL);
        return tile_error_meaning();
    }
    if (item && item->kind == TILE_ITEM_CONST) return constant_meaning(c, item, ast, span);
    if (item) return (TileMeaning){.kind = TILE_MEANING_FUNCTION, .item = item, .ast = ast};
    TileScalar scalar;
    if (tile_scalar_find(name, __builtin_strlen(name), &scalar))
        return (TileMeaning){.kind = TILE_MEANING_TYPE, .scalar = scalar};
    const TileBuiltin *builtin = tile_find_builtin(name);
    if (builtin) return (TileMeaning){.kind = TILE_MEANING_BUILTIN, .builtin = builtin};
    const TileAst *module = find_module(c->frame->ast, name);
    if (module) return (TileMeaning){.kind = TILE_MEANING_MODULE, .ast = module};
    item = tile_find_item(c->frame->ast, name, true, &ast);
    if (item) return (TileMeaning){.kind = TILE_MEANING_FUNCTION, .item = item, .ast = ast};
    return unknown_name(c, name, span);
}

/* ---- variables ---- */

static bool report_short_lived(TileChecker *c, TileVar *var, const TileValidEntry *entry, TileSpan span) {
    uint32_t errors = c->diagnostics->error_count;
    tile_about_atom(c, entry->atom);
    TileDiagnostic *d =
        tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_INVALID_VAR, span, var->name, tile_atom_words(c, entry->atom));
    tile_diagnostic_note(c->diagnostics, d, var->span, "`%s` lives longer: it is declared here", var->name);
    tile_diagnostic_note(c->diagnostics, d, entry->atom->span, "what may be invalid begins here");
    if (entry->where.file)
        tile_diagnostic_edit(c->diagnostics, d, entry->where, "(%s else %s)", tile_span_text(c, entry->where),
                             c->fill_word);
    tile_report(c, d);
    return c->diagnostics->error_count != errors;
}

void tile_var_assign(TileChecker *c, TileVar *var, TileMeaning value, TileSpan span) {
    const TileValidity *had = var->now.valid;
    const TileValidity *joined = had;
    for (unsigned i = 0; value.valid && i < value.valid->count; i++) {
        const TileValidEntry *entry = &value.valid->entries[i];
        TileValidity *one = tile_arena_alloc(c->arena, sizeof(TileValidity) + sizeof(TileValidEntry));
        one->count = 1;
        one->entries[0] = *entry;
        if (!tile_valid_missing(one, joined)) continue;
        if (entry->atom->birth > var->birth) {
            if (report_short_lived(c, var, entry, span)) break;
            continue;
        }
        joined = tile_valid_union(c, joined, one);
    }
    var->now = value;
    var->now.valid = joined;
    tile_open_meaning(c, &var->now, tile_doubt(c) | (c->open_turns ? TILE_OPEN_NUMBER : 0));
}

/* ---- reporting ---- */

static bool is_inside(TileSpan span, TileSpan outer) {
    return span.file == outer.file && span.begin >= outer.begin && span.end <= outer.end;
}

/* Where the function is declared, unless that is shown already. */
static void note_declaration(TileChecker *c, TileDiagnostic *diagnostic, const TileItem *item) {
    if (!diagnostic || is_inside(diagnostic->span, item->span)) return;
    for (size_t i = 0; i < diagnostic->notes.count; i++)
        if (is_inside(diagnostic->notes.items[i].span, item->span)) return;
    tile_diagnostic_note(c->diagnostics, diagnostic, item->name_span, "`%s` is declared here", item->name);
}

TileDiagnostic *tile_report(TileChecker *c, TileDiagnostic *diagnostic) {
    enum { MOST_NOTES = 6 };
    if (tile_leave_open(c, diagnostic)) return NULL;
    unsigned depth = 0;
    TileFrame *frame = c->frame;
    for (; frame && frame->parent && frame->parent->item->name; frame = frame->parent) {
        if (frame->binding)
            note_declaration(c, diagnostic, frame->item);
        else if (depth++ < MOST_NOTES)
            tile_diagnostic_note(c->diagnostics, diagnostic, frame->call, "in `%s`, used here", frame->item->name);
    }
    if (frame) tile_note_instance(c, diagnostic, frame->item);
    return diagnostic;
}

static const char *count_words(TileChecker *c, unsigned least, unsigned most) {
    if (least != most) return tile_arena_format(c->arena, "%u to %u arguments", least, most);
    return most == 0 ? "no arguments" : most == 1 ? "one argument" : tile_arena_format(c->arena, "%u arguments", most);
}

TileDiagnostic *tile_report_count(TileChecker *c, TileSpan span, const char *name, unsigned least, unsigned most,
                                  unsigned given) {
    return tile_report(c, tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_NUMBER_OF_ARGUMENTS, span, name,
                                        count_words(c, least, most), given, given == 1 ? "is" : "are"));
}

bool tile_may_act(TileChecker *c, TileSpan span, const char *what) {
    if (c->masked && !c->untaken) tile_fail(c, MASKED_EFFECT, span, what);
    return !c->masked && !c->untaken;
}

const char *tile_span_text(TileChecker *c, TileSpan span) {
    const TileSourceFile *file = &c->diagnostics->files.items[span.file];
    return tile_arena_string(c->arena, file->text + span.begin, span.end - span.begin);
}

const char *tile_count_words(TileChecker *c, size_t count, const char *one, const char *more) {
    return tile_arena_format(c->arena, "%zu %s", count, count == 1 ? one : more);
}

const char *tile_sum_words(TileChecker *c, const TileSum *sum) {
    TileText text = {.arena = c->arena};
    tile_sum_print(&text, sum);
    return tile_text_get(&text);
}

static const char *value_words(TileChecker *c, const TileMeaning *m) {
    TileText text = {.arena = c->arena};
    tile_text_add(&text, tile_scalar_name((TileScalar)m->scalar));
    for (unsigned i = 0; i < m->rank; i++) {
        tile_text_add(&text, i ? ", " : "[");
        tile_sum_print(&text, m->extent[i]);
    }
    if (m->rank) tile_text_add(&text, "]");
    return tile_text_get(&text);
}

const char *tile_meaning_words(TileChecker *c, const TileMeaning *m) {
    switch ((TileMeaningKind)m->kind) {
    case TILE_MEANING_ERROR: return "an error";
    case TILE_MEANING_NOTHING: return "nothing";
    case TILE_MEANING_INTEGER: return "an integer";
    case TILE_MEANING_NUMBER:
    case TILE_MEANING_CHOICE: return "a number";
    case TILE_MEANING_VALUE: return value_words(c, m);
    case TILE_MEANING_RANGE: return tile_arena_format(c->arena, "a range of %s", tile_sum_words(c, m->range->size));
    case TILE_MEANING_TENSOR:
        return tile_arena_format(c->arena, "a tensor of %s, rank %u", tile_scalar_name(m->tensor->scalar),
                                 m->tensor->rank);
    case TILE_MEANING_TUPLE: return tile_arena_format(c->arena, "a tuple of %u", m->count);
    case TILE_MEANING_TYPE: return tile_arena_format(c->arena, "the type %s", tile_scalar_name((TileScalar)m->scalar));
    case TILE_MEANING_FUNCTION:
        return tile_arena_format(c->arena, m->item->kind == TILE_ITEM_KERNEL ? "the kernel `%s`" : "the function `%s`",
                                 m->item->name);
    case TILE_MEANING_BUILTIN: return tile_arena_format(c->arena, "the function `%s`", m->builtin->name);
    case TILE_MEANING_MODULE: return "a module";
    case TILE_MEANING_TEXT: return "a text";
    case TILE_MEANING_DOTS: return "bounds a..b";
    case TILE_MEANING_SPREAD: return "the parameters of a function";
    }
    return "something";
}
