#include "parser/syntax/print.h"

static const char *kind_name(TileTokenKind kind) {
    switch (kind) {
    case TILE_TOKEN_NAME: return "name";
    case TILE_TOKEN_INTEGER: return "integer";
    case TILE_TOKEN_FLOAT: return "float";
    case TILE_TOKEN_STRING: return "string";
    default: return kind >= TILE_TOKEN_LEFT_PAREN ? "mark" : "keyword";
    }
}

void tile_tokens_print(TileArena *arena, TileDiagnostics *diagnostics, uint32_t file, TileText *text) {
    TileTokens tokens = {.list = {0}};
    tile_lex(arena, diagnostics, file, &tokens);
    const char *source = diagnostics->files.items[file].text;
    for (size_t i = 0; i < tokens.list.count && tokens.list.items[i].kind != TILE_TOKEN_END; i++) {
        const TileToken *token = &tokens.list.items[i];
        uint32_t line, column;
        tile_source_position(diagnostics, file, token->begin, &line, &column);
        tile_text_format(text, "%u:%u %s ", line, column, kind_name(token->kind));
        tile_text_add_bytes(text, source + token->begin, token->end - token->begin);
        tile_text_add_char(text, '\n');
    }
}

/* ---- the tree ---- */

typedef struct Printer {
    TileText *text;
    int depth;
} Printer;

static void print_expr(Printer *p, const TileExpr *expr);
static void print_type(Printer *p, const TileTypeExpr *type);
static void print_sequence(Printer *p, const TileSequence *sequence);

static void add(Printer *p, const char *text) { tile_text_add(p->text, text); }

static void add_quoted(Printer *p, const char *string) {
    tile_text_add_char(p->text, '"');
    for (const char *c = string; *c; c++) {
        if (*c == '"' || *c == '\\') tile_text_add_char(p->text, '\\');
        if (*c == '\n')
            add(p, "\\n");
        else
            tile_text_add_char(p->text, *c);
    }
    tile_text_add_char(p->text, '"');
}

static void new_line(Printer *p) {
    tile_text_add_char(p->text, '\n');
    for (int i = 0; i < p->depth; i++) add(p, "  ");
}

/* " child", nothing if the child is absent. */
static void print_child(Printer *p, const TileExpr *expr) {
    if (!expr) return;
    add(p, " ");
    print_expr(p, expr);
}

static void print_argument(Printer *p, const TileArgumentExpr *argument) {
    add(p, " ");
    if (argument->name) tile_text_format(p->text, "%s = ", argument->name);
    print_expr(p, argument->value);
}

static void print_if(Printer *p, const TileExpr *expr) {
    add(p, "(if");
    print_child(p, expr->a);
    print_sequence(p, expr->then);
    if (expr->otherwise) print_sequence(p, expr->otherwise);
    add(p, ")");
}

static void print_expr(Printer *p, const TileExpr *expr) {
    switch ((TileExprKind)expr->kind) {
    case TILE_EXPR_NAME: add(p, expr->name); return;
    case TILE_EXPR_INTEGER: tile_text_format(p->text, "%llu", (unsigned long long)expr->integer); return;
    case TILE_EXPR_FLOAT: tile_text_format(p->text, "%.17g", expr->number); return;
    case TILE_EXPR_BOOL: add(p, expr->truth ? "true" : "false"); return;
    case TILE_EXPR_STRING: add_quoted(p, expr->name); return;
    case TILE_EXPR_COLON: add(p, ":"); return;
    case TILE_EXPR_NEWAXIS: add(p, "_"); return;
    case TILE_EXPR_SKIP: add(p, "skip"); return;
    case TILE_EXPR_SPREAD: tile_text_format(p->text, "...%s", expr->name); return;
    case TILE_EXPR_IF: print_if(p, expr); return;
    case TILE_EXPR_FIELD:
        add(p, "(field");
        print_child(p, expr->a);
        tile_text_format(p->text, " %s)", expr->name);
        return;
    case TILE_EXPR_UNARY:
    case TILE_EXPR_BINARY: tile_text_format(p->text, "(%s", tile_token_text(expr->op)); break;
    case TILE_EXPR_TUPLE: add(p, "(tuple"); break;
    case TILE_EXPR_INDEX: add(p, "(index"); break;
    case TILE_EXPR_CALL: add(p, "(call"); break;
    case TILE_EXPR_RUN: add(p, "(run"); break;
    }
    print_child(p, expr->a);
    print_child(p, expr->b);
    if (expr->kind == TILE_EXPR_TUPLE || expr->kind == TILE_EXPR_INDEX)
        for (size_t i = 0; i < expr->items.count; i++) print_child(p, expr->items.items[i]);
    if (expr->kind == TILE_EXPR_CALL)
        for (size_t i = 0; i < expr->arguments.count; i++) print_argument(p, &expr->arguments.items[i]);
    add(p, ")");
}

/* ---- types ---- */

static void print_extents(Printer *p, const TileTypeExpr *type) {
    add(p, "[");
    for (size_t i = 0; i < type->extents.count; i++) {
        if (i) add(p, ", ");
        print_expr(p, type->extents.items[i]);
    }
    add(p, "]");
}

static void print_types(Printer *p, const TileTypeExpr *type) {
    add(p, "(");
    for (size_t i = 0; i < type->items.count; i++) {
        if (i) add(p, ", ");
        print_type(p, type->items.items[i]);
    }
    if (type->open) add(p, type->items.count ? ", ..." : "...");
    add(p, ")");
}

static void print_type(Printer *p, const TileTypeExpr *type) {
    static const char *const access[] = {"", "in ", "out ", "inout "};
    add(p, access[type->access]);
    if (type->is_const) add(p, "const ");
    switch ((TileTypeExprKind)type->kind) {
    case TILE_TYPE_EXPR_NAME:
        add(p, type->name ? type->name : "");
        if (type->has_extents) print_extents(p, type);
        return;
    case TILE_TYPE_EXPR_RANGE:
        add(p, "range");
        print_extents(p, type);
        return;
    case TILE_TYPE_EXPR_TUPLE: print_types(p, type); return;
    case TILE_TYPE_EXPR_FN:
        add(p, "fn");
        print_types(p, type);
        if (!type->result) return;
        add(p, " -> ");
        print_type(p, type->result);
        return;
    }
}

/* ---- statements ---- */

static const char *statement_word(const TileStatement *statement) {
    static const char *const words[] = {"let",      "var",    "assign", "do",   "for",    "while",        "break",
                                        "continue", "return", "grid",   "temp", "assert", "static_assert"};
    return words[statement->kind];
}

static void print_statement(Printer *p, const TileStatement *statement) {
    tile_text_format(p->text, "(%s%s", statement->is_static ? "static " : statement->is_ordered ? "ordered " : "", statement_word(statement));
    if (statement->kind == TILE_STATEMENT_ASSIGN) tile_text_format(p->text, " %s", tile_token_text(statement->op));
    for (size_t i = 0; i < statement->names.count; i++)
        tile_text_format(p->text, " %s", statement->names.items[i].name);
    print_child(p, statement->target);
    if (statement->type) {
        add(p, ": ");
        print_type(p, statement->type);
    }
    print_child(p, statement->value);
    print_child(p, statement->step);
    for (size_t i = 0; i < statement->arguments.count; i++) print_argument(p, &statement->arguments.items[i]);
    if (statement->body) print_sequence(p, statement->body);
    add(p, ")");
}

static void print_sequence(Printer *p, const TileSequence *sequence) {
    p->depth++;
    for (size_t i = 0; i < sequence->statements.count; i++) {
        new_line(p);
        print_statement(p, sequence->statements.items[i]);
    }
    if (sequence->value) {
        new_line(p);
        print_expr(p, sequence->value);
    }
    p->depth--;
}

/* ---- items ---- */

static void print_generic(Printer *p, const TileGeneric *generic) {
    new_line(p);
    tile_text_format(p->text, "(generic %s", generic->name);
    for (size_t i = 0; i < generic->classes.count; i++)
        tile_text_format(p->text, "%s%s", i ? " | " : ": ", generic->classes.items[i].name);
    if (generic->type) {
        add(p, ": ");
        print_type(p, generic->type);
    }
    print_child(p, generic->value);
    add(p, ")");
}

static void print_param(Printer *p, const TileParam *param) {
    new_line(p);
    tile_text_format(p->text, "(param %s%s", param->spread ? "..." : "", param->name);
    if (param->type) {
        add(p, ": ");
        print_type(p, param->type);
    }
    add(p, ")");
}

static void print_tune(Printer *p, const TileTune *tune) {
    new_line(p);
    tile_text_format(p->text, "(tune%s%s", tune->target ? " " : "", tune->target ? tune->target : "");
    for (size_t i = 0; i < tune->names.count; i++) {
        tile_text_format(p->text, " (%s", tune->names.items[i].name);
        for (size_t k = 0; k < tune->names.items[i].candidates.count; k++)
            print_child(p, tune->names.items[i].candidates.items[k]);
        add(p, ")");
    }
    if (tune->where) add(p, " where");
    print_child(p, tune->where);
    add(p, ")");
}

static void print_clauses(Printer *p, const TileItem *item) {
    for (size_t i = 0; i < item->statics.count; i++) {
        new_line(p);
        tile_text_format(p->text, "(static %s)", item->statics.items[i].name);
    }
    for (size_t i = 0; i < item->requires.count; i++) {
        const TileRequire *require = &item->requires.items[i];
        new_line(p);
        add(p, "(require");
        for (size_t k = 0; k < require->conditions.count; k++) print_child(p, require->conditions.items[k]);
        if (require->text) add(p, " ");
        if (require->text) add_quoted(p, require->text);
        add(p, ")");
    }
    for (size_t i = 0; i < item->overlaps.count; i++) {
        new_line(p);
        tile_text_format(p->text, "(overlap %s)", item->overlaps.items[i].name);
    }
    for (int i = 0; i < TILE_WARN_COUNT; i++) {
        if (!(item->allows >> i & 1u)) continue;
        new_line(p);
        tile_text_format(p->text, "(%s)", tile_warning_words[i]);
    }
    for (size_t i = 0; i < item->tunes.count; i++) print_tune(p, &item->tunes.items[i]);
}

static void print_exports(Printer *p, const TileItem *item) {
    for (size_t i = 0; i < item->exports.count; i++) {
        const TileExport *export = &item->exports.items[i];
        new_line(p);
        tile_text_format(p->text, "(%s%s%s", export->module.name ? export->module.name : "", export->module.name ? "." : "",
                         export->kernel.name);
        for (size_t k = 0; k < export->arguments.count; k++) print_child(p, export->arguments.items[k]);
        for (size_t k = 0; k < export->settings.count; k++) {
            tile_text_format(p->text, " %s =", export->settings.items[k].name);
            print_child(p, export->settings.items[k].value);
        }
        if (export->name) tile_text_format(p->text, " as %s", export->name);
        add(p, ")");
    }
}

static void print_item(Printer *p, const TileItem *item) {
    static const char *const words[] = {"import", "const", "fn", "kernel", "export", "test", "static_assert"};
    tile_text_format(p->text, "(%s", words[item->kind]);
    if (item->name) add(p, " ");
    if (item->name && (item->kind == TILE_ITEM_TEST || item->is_path))
        add_quoted(p, item->name);
    else if (item->name)
        add(p, item->name);
    p->depth++;
    for (size_t i = 0; i < item->generics.count; i++) print_generic(p, &item->generics.items[i]);
    for (size_t i = 0; i < item->params.count; i++) print_param(p, &item->params.items[i]);
    if (item->type) {
        new_line(p);
        add(p, "(type ");
        print_type(p, item->type);
        add(p, ")");
    }
    print_child(p, item->value);
    print_clauses(p, item);
    print_exports(p, item);
    for (size_t i = 0; i < item->arguments.count; i++) print_argument(p, &item->arguments.items[i]);
    p->depth--;
    if (item->body) print_sequence(p, item->body);
    add(p, ")\n");
}

void tile_ast_print(const TileAst *ast, TileText *text) {
    Printer printer = {.text = text};
    for (size_t i = 0; i < ast->items.count; i++) print_item(&printer, ast->items.items[i]);
}
