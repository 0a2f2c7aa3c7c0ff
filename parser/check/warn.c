/* Warnings: valid code that is probably a mistake. */
#include <string.h>

#include "parser/check/builtin.h"
#include "parser/check/item.h"
#include "parser/check/listing.h"
#include "parser/check/propose.h"
#include "parser/check/report.h"
#include "parser/check/scope.h"
#include "parser/check/type.h"
#include "parser/check/warn.h"

bool tile_warns(const TileChecker *c, TileWarning warning) {
    const TileFrame *root = c->frame;
    while (root->parent) root = root->parent;
    return !(root->item->allows >> warning & 1u);
}

/* ---- 16-bit arithmetic with a rounding in each operation ---- */

static bool is_arithmetic(const TileExpr *expr) {
    if (expr->kind != TILE_EXPR_BINARY) return false;
    return expr->op == TILE_TOKEN_PLUS || expr->op == TILE_TOKEN_MINUS || expr->op == TILE_TOKEN_STAR ||
           expr->op == TILE_TOKEN_SLASH || expr->op == TILE_TOKEN_PERCENT;
}

static bool is_negation(const TileExpr *expr) { return expr->kind == TILE_EXPR_UNARY && expr->op == TILE_TOKEN_MINUS; }

/* A call of exp, sqrt and the like by name. */
static bool is_rounding_call(TileChecker *c, const TileExpr *expr) {
    const TileAst *where;
    if (expr->kind != TILE_EXPR_CALL || expr->a->kind != TILE_EXPR_NAME) return false;
    const char *name = expr->a->name;
    if (tile_scope_find(c, name) || tile_find_item(c->frame->ast, name, true, &where)) return false;
    const TileBuiltin *builtin = tile_find_builtin(name);
    if (!builtin || builtin->op == TILE_OP_COUNT) return false;
    unsigned traits = tile_op_info(builtin->op)->traits, wanted = TILE_TRAIT_FLOAT_ONLY | TILE_TRAIT_COSTLY;
    return (traits & wanted) == wanted || builtin->op == TILE_OP_FMA;
}

static bool is_written_out(const TileExpr *expr) {
    if (is_negation(expr)) return is_written_out(expr->a);
    if (is_arithmetic(expr)) return is_written_out(expr->a) && is_written_out(expr->b);
    return expr->kind == TILE_EXPR_INTEGER || expr->kind == TILE_EXPR_FLOAT;
}

static bool is_product(const TileExpr *expr) {
    return is_negation(expr) ? is_product(expr->a) : expr->kind == TILE_EXPR_BINARY && expr->op == TILE_TOKEN_STAR;
}

/* The number of roundings of the value up to the expression's end; a product and the sum that it is an operand of are
 * rounded once. */
static unsigned count_roundings(TileChecker *c, const TileExpr *expr) {
    if (is_written_out(expr)) return 0;
    if (is_negation(expr)) return count_roundings(c, expr->a);
    if (is_arithmetic(expr)) {
        bool adds = expr->op == TILE_TOKEN_PLUS || expr->op == TILE_TOKEN_MINUS;
        bool fused = adds && (is_product(expr->a) || is_product(expr->b));
        return count_roundings(c, expr->a) + count_roundings(c, expr->b) + !fused;
    }
    if (!is_rounding_call(c, expr)) return 0;
    unsigned count = 1;
    for (size_t i = 0; i < expr->arguments.count; i++) count += count_roundings(c, expr->arguments.items[i].value);
    return count;
}

/* The text of the expression with its operands converted to f32. */
static void add_converted(TileChecker *c, TileText *text, uint32_t *at, const TileExpr *expr) {
    const char *source = c->diagnostics->files.items[expr->span.file].text;
    if (is_written_out(expr)) return;
    if (is_negation(expr)) return add_converted(c, text, at, expr->a);
    if (is_arithmetic(expr)) {
        add_converted(c, text, at, expr->a);
        add_converted(c, text, at, expr->b);
        return;
    }
    if (is_rounding_call(c, expr)) {
        for (size_t i = 0; i < expr->arguments.count; i++) add_converted(c, text, at, expr->arguments.items[i].value);
        return;
    }
    tile_text_add_bytes(text, source + *at, expr->span.begin - *at);
    tile_text_format(text, "f32(%s)", tile_bare_text(c, expr->span));
    *at = expr->span.end;
}

/* The type's name in this function; NULL if it is a generic that may be wider than f32, or has two candidates. */
static const char *type_text(TileChecker *c, TileScalar scalar) {
    const TileItem *item = c->frame->item;
    const char *text = tile_scalar_name(scalar);
    unsigned found = 0;
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileGeneric *generic = &item->generics.items[i];
        const TileBound *bound = tile_scope_find(c, generic->name);
        uint32_t types = 0;
        if (generic->kind != TILE_GENERIC_TYPE || !bound || bound->meaning.scalar != scalar) continue;
        for (size_t k = 0; k < generic->classes.count; k++) tile_class_types(generic->classes.items[k].name, &types);
        text = types >> TILE_F64 & 1u || found++ ? NULL : generic->name;
        if (!text) return NULL;
    }
    return text;
}

static bool is_warned_of(const TileChecker *c) {
    const TileFrame *root = c->frame;
    while (root->parent) root = root->parent;
    return root->item->kind == TILE_ITEM_KERNEL && tile_warns(c, TILE_WARN_ROUNDING);
}

static bool is_half(const TileMeaning *m) {
    return m->kind == TILE_MEANING_VALUE && (m->scalar == TILE_F16 || m->scalar == TILE_BF16) && !m->constant;
}

/* Removes warnings since the mark, which are about parts of the expression. */
static bool only_parts_since(const TileChecker *c, TileDiagnosticsMark mark) {
    for (size_t i = mark.count; i < c->diagnostics->list.count; i++)
        if (c->diagnostics->list.items[i]->code != TILE_DIAGNOSTIC_ROUNDING) return false;
    return true;
}

/* Warns at the location, or, if it is in an imported file, at the call in the user's file that leads there. */
static TileDiagnostic *warn_at(TileChecker *c, TileSpan place, const char *how, TileScalar scalar) {
    const TileFrame *inside = NULL, *root = c->frame;
    for (; root->parent; root = root->parent)
        if (root->ast != c->ast) inside = root;
    TileDiagnostic *d = tile_diagnose(c->diagnostics, TILE_DIAGNOSTIC_ROUNDING, inside ? inside->call : place, how,
                                      tile_scalar_name(scalar));
    if (!inside) return tile_report(c, d);
    tile_diagnostic_note(c->diagnostics, d, place, "in `%s`, here", c->frame->item->name);
    tile_note_instance(c, d, root->item);
    return d;
}

static void propose_single_rounding(TileChecker *c, TileDiagnostic *d, const TileExpr *expr, TileScalar scalar) {
    const char *type = type_text(c, scalar);
    if (!type || c->frame->ast != c->ast) return;
    TileText text = {.arena = c->arena};
    uint32_t at = expr->span.begin;
    add_converted(c, &text, &at, expr);
    tile_text_add_bytes(&text, c->diagnostics->files.items[expr->span.file].text + at, expr->span.end - at);
    tile_diagnostic_edit(c->diagnostics, d, expr->span, "%s(%s)", type, tile_text_get(&text));
}

void tile_warn_rounding(TileChecker *c, const TileExpr *expr, const TileMeaning *m, TileDiagnosticsMark before) {
    if (!is_half(m) || !is_arithmetic(expr) || !is_warned_of(c)) return;
    unsigned count = count_roundings(c, expr);
    if (count < 2 || !only_parts_since(c, before)) return;
    tile_diagnostics_rewind(c->diagnostics, before);
    TileScalar scalar = (TileScalar)m->scalar;
    TileDiagnostic *d = warn_at(c, expr->span, tile_arena_format(c->arena, "%u times, at each step", count), scalar);
    tile_diagnostic_note(c->diagnostics, d, (TileSpan){0},
                         "in f32, converted at the end, it is rounded once; `allow rounding` behind the parameters of "
                         "the kernel says that this is meant");
    propose_single_rounding(c, d, expr, scalar);
}

/* Does the sum, difference or product have this name as an operand? */
static bool adds_to(const TileExpr *expr, const char *name) {
    if (expr->kind == TILE_EXPR_NAME) return expr->name == name;
    if (is_negation(expr)) return adds_to(expr->a, name);
    return is_arithmetic(expr) && (adds_to(expr->a, name) || adds_to(expr->b, name));
}

void tile_warn_accumulation(TileChecker *c, const TileVar *var, const TileStatement *statement,
                            TileDiagnosticsMark before) {
    const TileLoopFrame *loop = c->frame->loop;
    bool updates = statement->op == TILE_TOKEN_PLUS_ASSIGN || statement->op == TILE_TOKEN_MINUS_ASSIGN ||
                   statement->op == TILE_TOKEN_STAR_ASSIGN || statement->op == TILE_TOKEN_SLASH_ASSIGN;
    bool adds = updates || (is_arithmetic(statement->value) && adds_to(statement->value, var->name));
    if (!loop || var->birth > loop->birth || !adds || !is_half(&var->now) || !is_warned_of(c)) return;
    if (!only_parts_since(c, before)) return;
    tile_diagnostics_rewind(c->diagnostics, before);
    TileScalar scalar = (TileScalar)var->now.scalar;
    TileDiagnostic *d = warn_at(c, statement->span, "in each iteration of the loop,", scalar);
    tile_diagnostic_note(c->diagnostics, d, var->span,
                         "as an f32 that is converted after the loop, `%s` would be rounded once; `allow rounding` "
                         "behind the parameters of the kernel says that this is meant",
                         var->name);
}

/* ---- unused names ---- */

static void use_sequence(TileMap *used, const TileSequence *sequence);

static void use_expr(TileMap *used, const TileExpr *expr) {
    if (!expr) return;
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME:
    case TILE_EXPR_SPREAD: tile_map_set(used, expr->name, (void *)expr); return;
    case TILE_EXPR_UNARY:
    case TILE_EXPR_FIELD:
    case TILE_EXPR_RUN: use_expr(used, expr->a); return;
    case TILE_EXPR_BINARY:
        use_expr(used, expr->a);
        use_expr(used, expr->b);
        return;
    case TILE_EXPR_INDEX: use_expr(used, expr->a); /* fall through */
    case TILE_EXPR_TUPLE:
        for (size_t i = 0; i < expr->items.count; i++) use_expr(used, expr->items.items[i]);
        return;
    case TILE_EXPR_CALL:
        use_expr(used, expr->a);
        for (size_t i = 0; i < expr->arguments.count; i++) use_expr(used, expr->arguments.items[i].value);
        return;
    case TILE_EXPR_IF:
        use_expr(used, expr->a);
        use_sequence(used, expr->then);
        use_sequence(used, expr->otherwise);
        return;
    case TILE_EXPR_INTEGER:
    case TILE_EXPR_FLOAT:
    case TILE_EXPR_BOOL:
    case TILE_EXPR_STRING:
    case TILE_EXPR_COLON:
    case TILE_EXPR_NEWAXIS:
    case TILE_EXPR_SKIP: return;
    }
}

/* An assignment to a whole variable is not a use. */
static void use_target(TileMap *used, const TileExpr *target) {
    if (target && target->kind == TILE_EXPR_TUPLE)
        for (size_t i = 0; i < target->items.count; i++) use_target(used, target->items.items[i]);
    else if (target && target->kind != TILE_EXPR_NAME)
        use_expr(used, target);
}

static void use_statement(TileMap *used, const TileStatement *statement) {
    use_target(used, statement->target);
    use_expr(used, statement->value);
    use_expr(used, statement->step);
    for (size_t i = 0; statement->type && i < statement->type->extents.count; i++)
        use_expr(used, statement->type->extents.items[i]);
    for (size_t i = 0; i < statement->arguments.count; i++) use_expr(used, statement->arguments.items[i].value);
    use_sequence(used, statement->body);
}

static void use_sequence(TileMap *used, const TileSequence *sequence) {
    if (!sequence) return;
    for (size_t i = 0; i < sequence->statements.count; i++) use_statement(used, sequence->statements.items[i]);
    use_expr(used, sequence->value);
}

static void find_unused(TileDiagnostics *diagnostics, const TileMap *used, const TileSequence *sequence);

static void find_unused_in(TileDiagnostics *diagnostics, const TileMap *used, const TileExpr *expr) {
    if (!expr || expr->kind != TILE_EXPR_IF) return;
    find_unused(diagnostics, used, expr->then);
    find_unused(diagnostics, used, expr->otherwise);
}

static void find_unused(TileDiagnostics *diagnostics, const TileMap *used, const TileSequence *sequence) {
    for (size_t i = 0; sequence && i < sequence->statements.count; i++) {
        const TileStatement *statement = sequence->statements.items[i];
        bool binds = statement->kind == TILE_STATEMENT_LET || statement->kind == TILE_STATEMENT_VAR;
        for (size_t k = 0; binds && k < statement->names.count; k++) {
            const TileNameRef *name = &statement->names.items[k];
            if (name->name[0] == '_' || tile_map_find((TileMap *)used, name->name)) continue;
            TileDiagnostic *d = tile_diagnose(diagnostics, TILE_DIAGNOSTIC_UNUSED_NAME, name->span, name->name);
            if (statement->kind == TILE_STATEMENT_LET)
                tile_diagnostic_edit(diagnostics, d, name->span, "_%s", name->name);
        }
        find_unused_in(diagnostics, used, statement->value);
        find_unused(diagnostics, used, statement->body);
    }
    if (sequence) find_unused_in(diagnostics, used, sequence->value);
}

static void use_clauses(TileMap *used, const TileItem *item) {
    for (size_t i = 0; i < item->tunes.count; i++) {
        use_expr(used, item->tunes.items[i].where);
        for (size_t k = 0; k < item->tunes.items[i].names.count; k++)
            for (size_t n = 0; n < item->tunes.items[i].names.items[k].candidates.count; n++)
                use_expr(used, item->tunes.items[i].names.items[k].candidates.items[n]);
    }
    for (size_t i = 0; i < item->requires.count; i++)
        for (size_t k = 0; k < item->requires.items[i].conditions.count; k++)
            use_expr(used, item->requires.items[i].conditions.items[k]);
}

/* A constant that nothing depends on is mostly one that Triton gives a meaning to. */
static void find_unused_constants(TileDiagnostics *diagnostics, const TileMap *used, const TileItem *item) {
    static const char *const own[] = {"warps",  "stages", "turns",      "programs", "packs",
                                      "stream", "group",  "persistent", "cluster"};
    static const char *const foreign[][2] = {{"num_warps", "warps"}, {"num_stages", "stages"}};
    for (size_t i = 0; i < item->tunes.count; i++)
        for (size_t k = 0; k < item->tunes.items[i].names.count; k++) {
            const TileTuneName *name = &item->tunes.items[i].names.items[k];
            bool known = name->name[0] == '_' || tile_map_find((TileMap *)used, name->name);
            for (size_t n = 0; n < sizeof own / sizeof *own; n++) known = known || strcmp(name->name, own[n]) == 0;
            if (known) continue;
            TileDiagnostic *d = tile_diagnose(diagnostics, TILE_DIAGNOSTIC_UNUSED_NAME, name->span, name->name);
            for (size_t n = 0; n < sizeof foreign / sizeof *foreign; n++)
                if (strcmp(name->name, foreign[n][0]) == 0) tile_diagnostic_edit(diagnostics, d, name->span, "%s", foreign[n][1]);
        }
}

void tile_warn_unused(TileDiagnostics *diagnostics, TileArena *arena, const TileItem *item) {
    TileMap used;
    if (item->kind != TILE_ITEM_FN && item->kind != TILE_ITEM_KERNEL) return;
    if (item->allows >> TILE_WARN_UNUSED_NAME & 1u) return;
    tile_map_init(&used, arena);
    use_sequence(&used, item->body);
    find_unused(diagnostics, &used, item->body);
    use_clauses(&used, item);
    find_unused_constants(diagnostics, &used, item);
}
