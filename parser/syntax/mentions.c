/* Where the names of a file stand. A walk over the tree with the scopes of the language; see mentions.h. */
#include "parser/syntax/mentions.h"

#include <stdlib.h>
#include <string.h>

#include "lang/scalar/scalar.h"

/* A name in scope; `hidden` is the index, plus 1, of the one that it shadows. */
typedef struct Bound {
    TileNamed *named;
    uint32_t hidden;
} Bound;

typedef struct Walk {
    const TileAst *ast;
    TileArena *arena;
    TileMentions *out;
    TILE_LIST(Bound) bounds;
    TileMap innermost; /* by name: the index, plus 1, of the innermost one in scope */
    TileMap items;     /* TileItem to TileNamed, of this file and of others */
    TileMap headers;   /* TileItem to Header */
    TileMap exports;   /* name to TileNamed */
    const TileItem *item;
} Walk;

/* The generics, tune names, parameters and dimensions of a kernel or function. */
typedef struct Header {
    TILE_LIST(TileNamed *) list;
} Header;

/* ---- names ---- */

static void mention(Walk *walk, TileSpan span, const char *name, const TileNamed *named) {
    if (!name || !*name || span.end <= span.begin || span.file != walk->ast->file) return;
    tile_list_push(walk->arena, &walk->out->list, (TileMention){span, name, named});
}

static TileNamed *add_named(Walk *walk, TileNameKind kind, const char *name, TileSpan span, TileSpan scope) {
    TileNamed *named = TILE_NEW(walk->arena, TileNamed);
    *named = (TileNamed){.kind = kind, .name = name, .span = span, .scope = scope, .item = walk->item};
    tile_list_push(walk->arena, &walk->out->named, named);
    return named;
}

static TileNamed *item_named(Walk *walk, const TileItem *item) {
    TileNamed *named = tile_map_get(&walk->items, item);
    if (named) return named;
    TileNameKind kind = item->kind == TILE_ITEM_CONST ? TILE_NAME_CONSTANT
                        : item->kind == TILE_ITEM_FN  ? TILE_NAME_FUNCTION
                                                      : TILE_NAME_KERNEL;
    named = add_named(walk, kind, item->name, item->name_span, (TileSpan){0});
    named->item = item;
    tile_map_set(&walk->items, item, named);
    return named;
}

static void push(Walk *walk, TileNamed *named) {
    TileMapEntry *entry = tile_map_find(&walk->innermost, named->name);
    uint32_t hidden = entry ? (uint32_t)(uintptr_t)entry->value : 0;
    tile_list_push(walk->arena, &walk->bounds, (Bound){named, hidden});
    tile_map_set(&walk->innermost, named->name, (void *)(uintptr_t)walk->bounds.count);
}

static void cut(Walk *walk, size_t count) {
    while (walk->bounds.count > count) {
        const Bound *last = &walk->bounds.items[--walk->bounds.count];
        tile_map_set(&walk->innermost, last->named->name, (void *)(uintptr_t)last->hidden);
    }
}

static TileNamed *in_scope(const Walk *walk, const char *name) {
    size_t place = (size_t)(uintptr_t)tile_map_get(&walk->innermost, name);
    return place ? walk->bounds.items[place - 1].named : NULL;
}

static const TileItem *item_of(const TileAst *ast, const char *name) { return ast ? tile_map_get(&ast->named, name) : NULL; }

/* The item of the file, else of one of its imports. With `value`, what it means in an expression, where a kernel is not
 * meant unless nothing else has the name. */
static const TileItem *find_item(const Walk *walk, const char *name, bool value) {
    const TileItem *own = item_of(walk->ast, name), *found = own;
    if (own && (!value || own->kind != TILE_ITEM_KERNEL)) return own;
    for (size_t i = 0; i < walk->ast->imports.count; i++) {
        const TileItem *item = item_of(walk->ast->imports.items[i], name);
        if (item && value && item->kind == TILE_ITEM_KERNEL) continue;
        if (item) return item;
    }
    return value ? NULL : found;
}

static TileNamed *find_module(Walk *walk, const char *name) {
    size_t next = 0;
    for (size_t i = 0; i < walk->ast->items.count; i++) {
        const TileItem *item = walk->ast->items.items[i];
        if (item->kind != TILE_ITEM_IMPORT) continue;
        const TileAst *module = next < walk->ast->imports.count ? walk->ast->imports.items[next] : NULL;
        next++;
        if (item->is_path || !item->name || strcmp(item->name, name) != 0) continue;
        TileNamed *named = tile_map_get(&walk->items, item);
        if (named) return named;
        named = add_named(walk, TILE_NAME_MODULE, name, item->name_span, (TileSpan){0});
        named->item = item;
        named->module = module;
        tile_map_set(&walk->items, item, named);
        return named;
    }
    return NULL;
}

static const TileNamed *find(Walk *walk, const char *name) {
    TileNamed *bound = in_scope(walk, name);
    if (bound) return bound;
    const TileItem *item = find_item(walk, name, true);
    if (item) return item_named(walk, item);
    TileScalar scalar;
    if (tile_scalar_find(name, strlen(name), &scalar)) return NULL;
    return find_module(walk, name);
}

/* ---- expressions ---- */

static const Header *header_of(Walk *walk, const TileItem *item);
static void walk_expr(Walk *walk, const TileExpr *expr);
static void walk_sequence(Walk *walk, const TileSequence *sequence);

static void walk_arguments(Walk *walk, const TileArgumentExpr *arguments, size_t count) {
    for (size_t i = 0; i < count; i++) walk_expr(walk, arguments[i].value);
}

/* `module.name` */
static void walk_field(Walk *walk, const TileExpr *expr) {
    const TileNamed *named = expr->a->kind == TILE_EXPR_NAME ? find(walk, expr->a->name) : NULL;
    walk_expr(walk, expr->a);
    if (!named || named->kind != TILE_NAME_MODULE) return;
    const TileItem *item = item_of(named->module, expr->name);
    mention(walk, expr->op_span, expr->name, item ? item_named(walk, item) : NULL);
}

/* The text may stand behind three points: the name is at its end. */
static TileSpan last_word(TileSpan span, const char *name) {
    size_t length = strlen(name);
    if (span.end - span.begin > length) span.begin = span.end - (uint32_t)length;
    return span;
}

/* A name of the kernel's header, in `run k(name = ..)` and `export k[NAME = ..]`. */
static void mention_header(Walk *walk, const TileItem *kernel, TileSpan span, const char *name) {
    const Header *header = kernel ? header_of(walk, kernel) : NULL;
    const TileNamed *named = NULL;
    for (size_t i = 0; header && i < header->list.count && !named; i++)
        if (strcmp(header->list.items[i]->name, name) == 0) named = header->list.items[i];
    mention(walk, span, name, named);
}

/* The kernel that the name is of in a file: itself, or by an export. */
static const TileItem *kernel_in(const TileAst *ast, const char *name) {
    for (size_t i = 0; ast && i < ast->items.count; i++)
        for (size_t k = 0; k < ast->items.items[i]->exports.count; k++) {
            const TileExport *export = &ast->items.items[i]->exports.items[k];
            if (export->name == name) name = export->kernel.name;
        }
    const TileItem *item = item_of(ast, name);
    return item && item->kind == TILE_ITEM_KERNEL ? item : NULL;
}

/* What is run: an export or a kernel of the file, else of its imports. */
static const TileItem *find_run(Walk *walk, const TileExpr *callee) {
    if (callee->kind == TILE_EXPR_FIELD) {
        const TileNamed *module = callee->a->kind == TILE_EXPR_NAME ? find_module(walk, callee->a->name) : NULL;
        return module ? kernel_in(module->module, callee->name) : NULL;
    }
    if (callee->kind != TILE_EXPR_NAME) return NULL;
    const TileItem *found = kernel_in(walk->ast, callee->name);
    for (size_t i = 0; i < walk->ast->imports.count && !found && !item_of(walk->ast, callee->name); i++)
        found = kernel_in(walk->ast->imports.items[i], callee->name);
    return found;
}

/* What is exported: a kernel of the file, else of its imports, or of one module. */
static const TileItem *find_exported(Walk *walk, const TileExport *export) {
    const TileNamed *module = export->module.name ? find_module(walk, export->module.name) : NULL;
    const TileItem *found = export->module.name ? NULL : item_of(walk->ast, export->kernel.name);
    if (module) found = item_of(module->module, export->kernel.name);
    for (size_t i = 0; !export->module.name && i < walk->ast->imports.count && !found; i++)
        found = item_of(walk->ast->imports.items[i], export->kernel.name);
    return found && found->kind == TILE_ITEM_KERNEL ? found : NULL;
}

/* A kernel, or an export by its own name. */
static void walk_run(Walk *walk, const TileExpr *call) {
    if (!call || call->kind != TILE_EXPR_CALL) return walk_expr(walk, call);
    const TileItem *kernel = find_run(walk, call->a);
    if (call->a->kind == TILE_EXPR_NAME) {
        const TileNamed *export = tile_map_get(&walk->exports, call->a->name);
        bool own = kernel && kernel->name == call->a->name;
        mention(walk, call->a->span, call->a->name, export ? export : own ? item_named(walk, kernel) : NULL);
    } else {
        walk_expr(walk, call->a);
    }
    for (size_t i = 0; i < call->arguments.count; i++) {
        const TileArgumentExpr *argument = &call->arguments.items[i];
        if (argument->name) mention_header(walk, kernel, argument->name_span, argument->name);
        walk_expr(walk, argument->value);
    }
}

static void walk_expr(Walk *walk, const TileExpr *expr) {
    if (!expr) return;
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME: mention(walk, expr->span, expr->name, find(walk, expr->name)); return;
    case TILE_EXPR_SPREAD: mention(walk, last_word(expr->span, expr->name), expr->name, find(walk, expr->name)); return;
    case TILE_EXPR_UNARY: walk_expr(walk, expr->a); return;
    case TILE_EXPR_FIELD: walk_field(walk, expr); return;
    case TILE_EXPR_RUN: walk_run(walk, expr->a); return;
    case TILE_EXPR_BINARY:
        walk_expr(walk, expr->a);
        walk_expr(walk, expr->b);
        return;
    case TILE_EXPR_INDEX: walk_expr(walk, expr->a); /* fall through */
    case TILE_EXPR_TUPLE:
        for (size_t i = 0; i < expr->items.count; i++) walk_expr(walk, expr->items.items[i]);
        return;
    case TILE_EXPR_CALL:
        walk_expr(walk, expr->a);
        walk_arguments(walk, expr->arguments.items, expr->arguments.count);
        return;
    case TILE_EXPR_IF:
        walk_expr(walk, expr->a);
        walk_sequence(walk, expr->then);
        walk_sequence(walk, expr->otherwise);
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

static void walk_type(Walk *walk, const TileTypeExpr *type) {
    if (!type) return;
    if (type->name) mention(walk, type->name_span, type->name, in_scope(walk, type->name));
    for (size_t i = 0; i < type->extents.count; i++) walk_expr(walk, type->extents.items[i]);
    for (size_t i = 0; i < type->items.count; i++) walk_type(walk, type->items.items[i]);
    walk_type(walk, type->result);
}

/* ---- statements ---- */

static void bind_names(Walk *walk, const TileStatement *statement, TileNameKind kind, TileSpan scope) {
    for (size_t i = 0; i < statement->names.count; i++) {
        const TileNameRef *ref = &statement->names.items[i];
        if (!*ref->name) continue;
        TileNamed *named = add_named(walk, kind, ref->name, ref->span, scope);
        mention(walk, ref->span, ref->name, named);
        push(walk, named);
    }
}

static void walk_statement(Walk *walk, const TileStatement *statement, uint32_t end) {
    TileSpan rest = {statement->span.file, statement->span.end, end};
    size_t count = walk->bounds.count;
    walk_expr(walk, statement->target);
    walk_expr(walk, statement->value);
    walk_expr(walk, statement->step);
    walk_type(walk, statement->type);
    walk_arguments(walk, statement->arguments.items, statement->arguments.count);
    switch ((TileStatementKind)statement->kind) {
    case TILE_STATEMENT_LET: bind_names(walk, statement, TILE_NAME_LET, rest); return;
    case TILE_STATEMENT_VAR: bind_names(walk, statement, TILE_NAME_VAR, rest); return;
    case TILE_STATEMENT_TEMP: bind_names(walk, statement, TILE_NAME_TEMP, rest); return;
    case TILE_STATEMENT_FOR:
    case TILE_STATEMENT_GRID:
        if (statement->body) bind_names(walk, statement, TILE_NAME_LOOP, statement->body->span);
        break;
    case TILE_STATEMENT_WHILE:
    case TILE_STATEMENT_ASSIGN:
    case TILE_STATEMENT_EXPR:
    case TILE_STATEMENT_BREAK:
    case TILE_STATEMENT_CONTINUE:
    case TILE_STATEMENT_RETURN:
    case TILE_STATEMENT_ASSERT:
    case TILE_STATEMENT_STATIC_ASSERT: break;
    }
    walk_sequence(walk, statement->body);
    cut(walk, count);
}

static void walk_sequence(Walk *walk, const TileSequence *sequence) {
    size_t count = walk->bounds.count;
    if (!sequence) return;
    for (size_t i = 0; i < sequence->statements.count; i++)
        walk_statement(walk, sequence->statements.items[i], sequence->span.end);
    walk_expr(walk, sequence->value);
    cut(walk, count);
}

/* ---- headers ---- */

static TileNamed *add_header(Walk *walk, Header *header, TileNameKind kind, const char *name, TileSpan span) {
    if (!*name) return NULL;
    for (size_t i = 0; i < header->list.count; i++)
        if (header->list.items[i]->name == name) return NULL;
    TileNamed *named = add_named(walk, kind, name, span, walk->item->span);
    tile_list_push(walk->arena, &header->list, named);
    push(walk, named);
    return named;
}

static const TileAst *tree_of(const Walk *walk, const TileItem *item) {
    if (item_of(walk->ast, item->name) == item) return walk->ast;
    for (size_t i = 0; i < walk->ast->imports.count; i++)
        if (item_of(walk->ast->imports.items[i], item->name) == item) return walk->ast->imports.items[i];
    return NULL;
}

/* Is it an integer without a type, or an i64, as the value of a constant? Only such ones of imports are dimensions. */
static bool is_integer(const TileAst *ast, const TileExpr *expr, unsigned depth) {
    enum { DEEPEST = 32 };
    if (!expr || !ast || depth > DEEPEST) return false;
    if (expr->kind == TILE_EXPR_INTEGER) return true;
    if (expr->kind == TILE_EXPR_UNARY) return is_integer(ast, expr->a, depth + 1);
    if (expr->kind == TILE_EXPR_BINARY) return is_integer(ast, expr->a, depth + 1) && is_integer(ast, expr->b, depth + 1);
    if (expr->kind == TILE_EXPR_CALL) {
        if (expr->a->kind == TILE_EXPR_NAME && strcmp(expr->a->name, "i64") == 0) return true;
        for (size_t i = 0; i < expr->arguments.count; i++)
            if (!is_integer(ast, expr->arguments.items[i].value, depth + 1)) return false;
        return expr->arguments.count != 0;
    }
    const TileItem *item = expr->kind == TILE_EXPR_NAME ? item_of(ast, expr->name) : NULL;
    if (!item || item->kind != TILE_ITEM_CONST) return false;
    return item->type ? item->type->name && strcmp(item->type->name, "i64") == 0 : is_integer(ast, item->value, depth + 1);
}

static bool is_constant(const Walk *walk, const char *name) {
    const TileItem *item = find_item(walk, name, false);
    if (!item || item->kind != TILE_ITEM_CONST) return false;
    const TileAst *tree = tree_of(walk, item);
    if (tree == walk->ast) return true;
    return item->type ? item->type->name && strcmp(item->type->name, "i64") == 0 : is_integer(tree, item->value, 0);
}

static void bind_dimension(Walk *walk, Header *header, const TileExpr *expr) {
    if (!expr) return;
    if (expr->kind == TILE_EXPR_BINARY) bind_dimension(walk, header, expr->a), bind_dimension(walk, header, expr->b);
    if (expr->kind == TILE_EXPR_UNARY) bind_dimension(walk, header, expr->a);
    if (expr->kind != TILE_EXPR_NAME || in_scope(walk, expr->name) || is_constant(walk, expr->name)) return;
    add_header(walk, header, TILE_NAME_DIMENSION, expr->name, expr->span);
}

/* A dimension is bound where its name stands alone, else where it is solved for. */
static void bind_dimensions(Walk *walk, Header *header, const TileItem *item, bool alone) {
    for (size_t i = 0; i < item->params.count; i++) {
        const TileTypeExpr *type = item->params.items[i].type;
        for (size_t k = 0; type && k < type->extents.count; k++) {
            const TileExpr *extent = type->extents.items[k];
            if (extent && (extent->kind == TILE_EXPR_NAME || !alone)) bind_dimension(walk, header, extent);
        }
    }
}

static void bind_header(Walk *walk, const TileItem *item) {
    Header *header = TILE_NEW(walk->arena, Header);
    size_t count = walk->bounds.count;
    walk->item = item;
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileGeneric *generic = &item->generics.items[i];
        TileNamed *named = add_header(walk, header, TILE_NAME_GENERIC, generic->name, generic->span);
        if (named) named->generic = generic;
    }
    for (size_t i = 0; i < item->tunes.count; i++)
        for (size_t k = 0; k < item->tunes.items[i].names.count; k++)
            add_header(walk, header, TILE_NAME_TUNE, item->tunes.items[i].names.items[k].name,
                       item->tunes.items[i].names.items[k].span);
    for (size_t i = 0; i < item->params.count; i++) {
        const TileParam *param = &item->params.items[i];
        TileNamed *named = param->spread ? NULL : add_header(walk, header, TILE_NAME_PARAMETER, param->name, param->span);
        if (named) named->param = param;
    }
    bind_dimensions(walk, header, item, true);
    bind_dimensions(walk, header, item, false);
    tile_map_set(&walk->headers, item, header);
    cut(walk, count);
}

/* Of a kernel of this file or of an import. */
static const Header *header_of(Walk *walk, const TileItem *item) {
    const Header *header = tile_map_get(&walk->headers, item);
    const TileAst *own = walk->ast, *tree = header ? NULL : tree_of(walk, item);
    const TileItem *current = walk->item;
    if (!tree) return header;
    TileMap innermost = walk->innermost;
    tile_map_init(&walk->innermost, walk->arena); /* the names in scope here are none there */
    walk->ast = tree;
    bind_header(walk, item);
    walk->ast = own;
    walk->item = current;
    walk->innermost = innermost;
    return tile_map_get(&walk->headers, item);
}

static void mention_bound(Walk *walk, TileSpan span, const char *name) { mention(walk, span, name, in_scope(walk, name)); }

static void walk_generics(Walk *walk, const TileItem *item) {
    for (size_t i = 0; i < item->generics.count; i++) {
        const TileGeneric *generic = &item->generics.items[i];
        mention_bound(walk, generic->span, generic->name);
        for (size_t k = 0; k < generic->classes.count; k++)
            mention(walk, generic->classes.items[k].span, generic->classes.items[k].name, NULL);
        walk_type(walk, generic->type);
        walk_expr(walk, generic->value);
    }
}

static void walk_clauses(Walk *walk, const TileItem *item) {
    for (size_t i = 0; i < item->statics.count; i++)
        mention_bound(walk, item->statics.items[i].span, item->statics.items[i].name);
    for (size_t i = 0; i < item->overlaps.count; i++)
        mention_bound(walk, item->overlaps.items[i].span, item->overlaps.items[i].name);
    for (size_t i = 0; i < item->requires.count; i++)
        for (size_t k = 0; k < item->requires.items[i].conditions.count; k++)
            walk_expr(walk, item->requires.items[i].conditions.items[k]);
    for (size_t i = 0; i < item->tunes.count; i++) {
        const TileTune *tune = &item->tunes.items[i];
        for (size_t k = 0; k < tune->names.count; k++) {
            mention_bound(walk, tune->names.items[k].span, tune->names.items[k].name);
            for (size_t n = 0; n < tune->names.items[k].candidates.count; n++)
                walk_expr(walk, tune->names.items[k].candidates.items[n]);
        }
        walk_expr(walk, tune->where);
    }
}

static void walk_function(Walk *walk, const TileItem *item) {
    const Header *header = tile_map_get(&walk->headers, item);
    size_t count = walk->bounds.count;
    mention(walk, item->name_span, item->name, item_named(walk, item));
    for (size_t i = 0; i < header->list.count; i++) push(walk, header->list.items[i]);
    walk_generics(walk, item);
    for (size_t i = 0; i < item->params.count; i++) {
        const TileParam *param = &item->params.items[i];
        mention_bound(walk, last_word(param->span, param->name), param->name);
        walk_type(walk, param->type);
    }
    walk_type(walk, item->type);
    walk_clauses(walk, item);
    walk_sequence(walk, item->body);
    cut(walk, count);
}

/* ---- other items ---- */

static void walk_exports(Walk *walk, const TileItem *item) {
    for (size_t i = 0; i < item->exports.count; i++) {
        const TileExport *export = &item->exports.items[i];
        const TileItem *kernel = find_exported(walk, export);
        if (export->module.name)
            mention(walk, export->module.span, export->module.name, find_module(walk, export->module.name));
        mention(walk, export->kernel.span, export->kernel.name, kernel ? item_named(walk, kernel) : NULL);
        for (size_t k = 0; k < export->arguments.count; k++) walk_expr(walk, export->arguments.items[k]);
        for (size_t k = 0; k < export->settings.count; k++) {
            mention_header(walk, kernel, export->settings.items[k].name_span, export->settings.items[k].name);
            walk_expr(walk, export->settings.items[k].value);
        }
        if (!export->name) continue;
        mention(walk, last_word(export->span, export->name), export->name, tile_map_get(&walk->exports, export->name));
    }
}

/* The name of an export stands for its kernel. */
static void bind_exports(Walk *walk, const TileItem *item) {
    for (size_t i = 0; i < item->exports.count; i++) {
        const TileExport *export = &item->exports.items[i];
        if (!export->name || !*export->name || tile_map_get(&walk->exports, export->name)) continue;
        TileNamed *named = add_named(walk, TILE_NAME_EXPORT, export->name, last_word(export->span, export->name),
                                     (TileSpan){0});
        named->item = find_exported(walk, export);
        tile_map_set(&walk->exports, export->name, named);
    }
}

static void walk_item(Walk *walk, const TileItem *item) {
    walk->item = item;
    switch ((TileItemKind)item->kind) {
    case TILE_ITEM_IMPORT:
        if (item->is_path)
            mention(walk, item->name_span, item->name, NULL);
        else if (item->name)
            mention(walk, item->name_span, item->name, find_module(walk, item->name));
        return;
    case TILE_ITEM_CONST:
        mention(walk, item->name_span, item->name, item_named(walk, item));
        walk_type(walk, item->type);
        walk_expr(walk, item->value);
        return;
    case TILE_ITEM_FN:
    case TILE_ITEM_KERNEL: walk_function(walk, item); return;
    case TILE_ITEM_EXPORT: walk_exports(walk, item); return;
    case TILE_ITEM_TEST: walk_sequence(walk, item->body); return;
    case TILE_ITEM_STATIC_ASSERT: walk_arguments(walk, item->arguments.items, item->arguments.count); return;
    }
}

static int compare_places(const void *a, const void *b) {
    const TileMention *x = a, *y = b;
    return (x->span.begin > y->span.begin) - (x->span.begin < y->span.begin);
}

TileMentions *tile_list_mentions(const TileAst *ast) {
    Walk walk = {.ast = ast, .arena = ast->arena, .out = TILE_NEW(ast->arena, TileMentions)};
    TileMap *const maps[] = {&walk.innermost, &walk.items, &walk.headers, &walk.exports};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) tile_map_init(maps[i], ast->arena);
    for (size_t i = 0; i < ast->items.count; i++) {
        const TileItem *item = ast->items.items[i];
        if (item->kind == TILE_ITEM_FN || item->kind == TILE_ITEM_KERNEL) bind_header(&walk, item);
        if (item->kind == TILE_ITEM_EXPORT) bind_exports(&walk, item);
    }
    for (size_t i = 0; i < ast->items.count; i++) walk_item(&walk, ast->items.items[i]);
    if (walk.out->list.count) qsort(walk.out->list.items, walk.out->list.count, sizeof(TileMention), compare_places);
    return walk.out;
}

const TileMention *tile_mention_at(const TileMentions *mentions, uint32_t offset) {
    size_t low = 0, high = mentions->list.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mentions->list.items[middle].span.begin <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || mentions->list.items[low - 1].span.end < offset) return NULL;
    return &mentions->list.items[low - 1];
}

bool tile_named_reaches(const TileNamed *named, uint32_t file, uint32_t offset) {
    if (!named->scope.file) return true;
    return named->scope.file == file && named->scope.begin <= offset && offset <= named->scope.end;
}
