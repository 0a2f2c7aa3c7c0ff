#include "tools/tile_check.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "base/list.h"

typedef enum Kind { PLAIN, NEXT, SAME, NOT, LABEL, KIND_COUNT } Kind;
static const char *const kind_words[KIND_COUNT] = {"", "-NEXT", "-SAME", "-NOT", "-LABEL"};

typedef struct Directive {
    Kind kind;
    const char *pattern;
    unsigned line;
} Directive;

typedef TILE_LIST(Directive) Directives;

enum { MOST_GROUPS = 32 };

typedef struct Variable {
    const char *name, *value;
} Variable;

typedef struct Checker {
    TileArena *arena;
    TileText *errors;
    const char *prefix, *input;
    TILE_LIST(Variable) variables;
} Checker;

/* A pattern as a regular expression, and the names of its groups. */
typedef struct Expression {
    TileText text;
    const char *group_names[MOST_GROUPS];
    unsigned groups;
} Expression;

typedef struct Match {
    size_t start, end; /* in the input; start is SIZE_MAX if there is none */
} Match;

static const Match no_match = {SIZE_MAX, SIZE_MAX};

static bool fail(Checker *c, const Directive *directive, const char *reason, const char *detail) {
    tile_text_format(c->errors, "line %u: %s%s: %s: %s", directive->line, c->prefix, kind_words[directive->kind],
                     directive->pattern, reason);
    if (detail) tile_text_format(c->errors, ": %s", detail);
    tile_text_add(c->errors, "\n");
    return false;
}

/* ---- reading directives ---- */

static bool read_directive(Checker *c, const char *line, size_t length, Directive *directive) {
    char *copy = tile_arena_string(c->arena, line, length);
    for (char *at = copy; (at = strstr(at, c->prefix)); at++) {
        if (at > copy && (isalnum((unsigned char)at[-1]) || at[-1] == '-' || at[-1] == '_')) continue;
        char *rest = at + strlen(c->prefix);
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            size_t word = strlen(kind_words[kind]);
            if (strncmp(rest, kind_words[kind], word) != 0 || rest[word] != ':') continue;
            char *pattern = rest + word + 1, *end = copy + length;
            while (isspace((unsigned char)*pattern)) pattern++;
            while (end > pattern && isspace((unsigned char)end[-1])) *--end = 0;
            directive->kind = (Kind)kind;
            directive->pattern = pattern;
            return true;
        }
    }
    return false;
}

static void read_directives(Checker *c, const char *test, Directives *directives) {
    unsigned line = 1;
    for (; *test; line++) {
        size_t length = strcspn(test, "\n");
        Directive directive = {.line = line};
        if (read_directive(c, test, length, &directive)) tile_list_push(c->arena, directives, directive);
        test += length + (test[length] != 0);
    }
}

/* ---- patterns ---- */

static void add_literal(Expression *e, char character) {
    if (strchr("\\^$.[]|()*+?{}", character)) tile_text_add_char(&e->text, '\\');
    tile_text_add_char(&e->text, character);
}

/* A group of its own around an expression, counting the groups inside it. */
static bool add_group(Expression *e, const char *name, const char *text, size_t length) {
    if (e->groups + 1 >= MOST_GROUPS) return false;
    e->group_names[++e->groups] = name;
    tile_text_add(&e->text, "(");
    tile_text_add_bytes(&e->text, text, length);
    tile_text_add(&e->text, ")");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            i++;
        else if (text[i] == '(' && ++e->groups >= MOST_GROUPS)
            return false;
    }
    return true;
}

static const char *find_variable(const Checker *c, const char *name) {
    for (size_t i = c->variables.count; i-- > 0;)
        if (strcmp(c->variables.items[i].name, name) == 0) return c->variables.items[i].value;
    return NULL;
}

/* [[NAME]] refers to a group of the same pattern, or else to the match of an earlier one. */
static const char *add_use(Checker *c, Expression *e, const char *name) {
    for (unsigned g = 1; g <= e->groups && g < 10; g++)
        if (e->group_names[g] && strcmp(e->group_names[g], name) == 0) {
            tile_text_format(&e->text, "\\%u", g);
            return NULL;
        }
    const char *value = find_variable(c, name);
    if (!value) return tile_arena_format(c->arena, "nothing is called %s", name);
    for (; *value; value++) add_literal(e, *value);
    return NULL;
}

/* Reads what begins with `[[`; sets `length` to its length. */
static const char *add_variable(Checker *c, Expression *e, const char *text, size_t *length) {
    const char *end = strstr(text, "]]");
    size_t name = strspn(text + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    if (!end) return "[[ without ]]";
    while (end[2] == ']') end++;
    *length = (size_t)(end + 2 - text);
    const char *word = tile_arena_string(c->arena, text + 2, name), *body = text + 2 + name;
    if (body == end) return add_use(c, e, word);
    if (*body != ':') return "expected [[NAME:expression]] or [[NAME]]";
    return add_group(e, word, body + 1, (size_t)(end - body - 1)) ? NULL : "too many groups";
}

static const char *compile(Checker *c, const char *pattern, Expression *e) {
    while (*pattern) {
        const char *end = strncmp(pattern, "{{", 2) == 0 ? strstr(pattern, "}}") : NULL, *error = NULL;
        if (end) {
            if (!add_group(e, NULL, pattern + 2, (size_t)(end - pattern - 2))) return "too many groups";
            pattern = end + 2;
        } else if (strncmp(pattern, "[[", 2) == 0) {
            size_t length = 0;
            error = add_variable(c, e, pattern, &length);
            if (error) return error;
            pattern += length;
        } else if (isblank((unsigned char)*pattern)) {
            tile_text_add(&e->text, "[[:blank:]]+");
            while (isblank((unsigned char)*pattern)) pattern++;
        } else {
            add_literal(e, *pattern++);
        }
    }
    return NULL;
}

static void remember(Checker *c, const Expression *e, const char *text, const regmatch_t *groups) {
    for (unsigned g = 1; g <= e->groups; g++) {
        if (!e->group_names[g] || groups[g].rm_so < 0) continue;
        size_t length = (size_t)(groups[g].rm_eo - groups[g].rm_so);
        Variable variable = {e->group_names[g], tile_arena_string(c->arena, text + groups[g].rm_so, length)};
        tile_list_push(c->arena, &c->variables, variable);
    }
}

/* The first match in input[from, to). False if the pattern is malformed. */
static bool search(Checker *c, const Directive *directive, size_t from, size_t to, Match *match) {
    *match = no_match;
    Expression e = {.text = {.arena = c->arena}};
    const char *error = compile(c, directive->pattern, &e);
    if (error) return fail(c, directive, error, NULL);
    regex_t regex;
    int code = regcomp(&regex, tile_text_get(&e.text), REG_EXTENDED | REG_NEWLINE);
    if (code) {
        char reason[128];
        regerror(code, &regex, reason, sizeof reason);
        return fail(c, directive, "faulty expression", reason);
    }
    const char *text = tile_arena_string(c->arena, c->input + from, to - from);
    regmatch_t groups[MOST_GROUPS];
    if (regexec(&regex, text, MOST_GROUPS, groups, 0) == 0) {
        *match = (Match){from + (size_t)groups[0].rm_so, from + (size_t)groups[0].rm_eo};
        if (directive->kind != NOT) remember(c, &e, text, groups);
    }
    regfree(&regex);
    return true;
}

/* ---- checking ---- */

static size_t line_end(const Checker *c, size_t at) { return at + strcspn(c->input + at, "\n"); }

/* The part of the input in which the pattern was searched. */
static bool fail_at(Checker *c, const Directive *directive, const char *reason, size_t at) {
    while (c->input[at] == '\n') at++;
    return fail(c, directive, reason, tile_arena_string(c->arena, c->input + at, line_end(c, at) - at));
}

static bool check_nots(Checker *c, const Directive *first, const Directive *last, size_t from, size_t to) {
    for (; first < last; first++) {
        Match match;
        if (!search(c, first, from, to, &match)) return false;
        if (match.start != SIZE_MAX) return fail_at(c, first, "but there is", match.start);
    }
    return true;
}

static bool check_one(Checker *c, const Directive *directive, size_t from, size_t to, Match *match) {
    size_t begin = from, end = to, newline = line_end(c, from);
    if (directive->kind == NEXT) {
        begin = newline < to ? newline + 1 : to;
        end = line_end(c, begin);
    } else if (directive->kind == SAME) {
        end = newline;
    }
    if (end > to) end = to;
    if (!search(c, directive, begin, end, match)) return false;
    if (match->start != SIZE_MAX) return true;
    return fail_at(c, directive, directive->kind == PLAIN ? "not found after" : "not found, there is", begin);
}

/* The directives between two labels, on the input between them. */
static bool check_section(Checker *c, const Directive *first, const Directive *last, size_t from, size_t to) {
    const Directive *nots = first;
    for (; first < last; first++) {
        if (first->kind == NOT) continue;
        Match match;
        if (!check_one(c, first, from, to, &match) || !check_nots(c, nots, first, from, match.start)) return false;
        from = match.end;
        nots = first + 1;
    }
    return check_nots(c, nots, last, from, to);
}

static bool check_all(Checker *c, const Directives *directives) {
    size_t from = 0, all = strlen(c->input), first = 0;
    Match label = {0, 0};
    for (size_t i = 0; i <= directives->count; i++) {
        bool end = i == directives->count;
        if (!end && directives->items[i].kind != LABEL) continue;
        size_t to = all;
        if (!end) {
            if (!search(c, &directives->items[i], label.end, all, &label)) return false;
            if (label.start == SIZE_MAX) return fail(c, &directives->items[i], "not found", NULL);
            to = label.start;
        }
        if (!check_section(c, directives->items + first, directives->items + i, from, to)) return false;
        from = label.end;
        first = i + 1;
    }
    return true;
}

bool tile_check(const char *test, const char *input, const char *prefix, TileText *errors) {
    Checker c = {.errors = errors, .prefix = prefix, .input = input, .arena = tile_arena_create(errors->arena)};
    if (!c.arena) return false;
    Directives directives = {0};
    read_directives(&c, test, &directives);
    bool good = directives.count > 0;
    if (!good) tile_text_format(errors, "no line begins with %s:\n", prefix);
    good = good && check_all(&c, &directives);
    tile_arena_destroy(c.arena);
    return good;
}
