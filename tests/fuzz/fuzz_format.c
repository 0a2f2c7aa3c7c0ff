/* Random texts of the language's syntax, spaced in a random way, through the formatter: it never refuses one, the
 * result means the same (tile_format compares tokens, comments and trees), formatting it again changes nothing, and no
 * line has blanks at its end.
 *
 *     fuzz_format COUNT [SEED]
 *
 * A text that fails is printed and ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parser/syntax/format.h"

typedef struct Maker {
    TileText text;
    uint64_t random;
    unsigned depth;
    unsigned brackets; /* open ( [ within the innermost braces: newlines are ignored there */
    bool header;
    unsigned comments; /* percent of the gaps that have a comment */
} Maker;

static unsigned below(Maker *m, unsigned limit) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (unsigned)(m->random >> 11) % limit;
}

static bool chance(Maker *m, unsigned percent) { return below(m, 100) < percent; }

static void add(Maker *m, const char *text) { tile_text_add(&m->text, text); }

static void add_comment(Maker *m, bool may_break) {
    static const char *const lines[] = {" // a note\n", " //\n", "\n/// told\n", " // \xc3\xa9t\xc3\xa9\n   // more\n"};
    static const char *const blocks[] = {" /* b */ ", "/**/", " /*/ x */"};
    if (may_break)
        add(m, chance(m, 20) ? "/* one\n     two\n */" : lines[below(m, 4)]);
    else
        add(m, blocks[below(m, 3)]);
}

/* The gap between two tokens. `free`: a newline would not end the statement here. */
static void gap(Maker *m, bool free) {
    static const char *const blanks[] = {" ", "  ", "\t", " \r"};
    free |= m->brackets || m->header;
    if (chance(m, m->comments)) {
        add(m, " "); /* a `/` before a comment would change the token */
        add_comment(m, free && chance(m, 50));
    }
    if (free && chance(m, 6)) add(m, below(m, 3) ? "\n  " : "\n\n\n");
    add(m, blanks[chance(m, 80) ? 0 : below(m, 4)]);
}

/* A token and the gap after it, which is free if the token cannot end a statement. */
static void token(Maker *m, const char *text, bool free) {
    add(m, text);
    gap(m, free);
}

static void name(Maker *m) {
    static const char *const names[] = {"a",     "b",    "x1",    "where", "step", "as",      "cpu",
                                        "total", "f32",  "T",     "BM",    "k1",   "overlap", "a_name_of_some_length",
                                        "tiles", "axis", "range_"};
    token(m, names[below(m, 17)], false);
}

static void open(Maker *m, const char *text) {
    token(m, text, true);
    m->brackets++;
}

static void close(Maker *m, const char *text) {
    m->brackets--;
    token(m, text, false);
}

static void expression(Maker *m);
static void sequence(Maker *m, bool value);

static void list(Maker *m, void (*item)(Maker *), unsigned most) {
    for (unsigned i = 0, count = below(m, most + 1); i < count; i++) {
        if (i) token(m, ",", true);
        item(m);
    }
}

static void index_entry(Maker *m) {
    if (chance(m, 60))
        expression(m);
    else
        token(m, chance(m, 50) ? ":" : "_", true);
}

static void argument(Maker *m) {
    if (chance(m, 15)) {
        token(m, "axis", true);
        token(m, "=", true);
    }
    expression(m);
}

static void atom(Maker *m) {
    static const char *const literals[] = {"1", "0xff", "1_000", "2.5", "1e-3", "inf", "nan", "true", "false"};
    if (m->depth > 4 || chance(m, 55)) {
        if (chance(m, 50))
            token(m, literals[below(m, 9)], false);
        else
            token(m, below(m, 2) ? "q" : "a_name_of_some_length", false);
    } else if (chance(m, 25)) {
        open(m, "(");
        expression(m);
        close(m, ")");
    } else if (chance(m, 15)) {
        token(m, "if", true);
        expression(m);
        sequence(m, true);
        token(m, "else", true);
        sequence(m, true);
    } else {
        name(m);
    }
}

static void postfix(Maker *m) {
    atom(m);
    for (unsigned i = below(m, 3); i > 0 && m->depth < 5; i--) {
        switch (below(m, 3)) {
        case 0:
            token(m, ".", true);
            name(m);
            break;
        case 1:
            open(m, "[");
            index_entry(m);
            for (unsigned k = below(m, 3); k > 0; k--) {
                token(m, ",", true);
                index_entry(m);
            }
            close(m, "]");
            break;
        default:
            open(m, "(");
            list(m, argument, 4);
            close(m, ")");
        }
    }
}

static void unary(Maker *m) {
    static const char *const signs[] = {"-", "!", "~"};
    while (chance(m, 15)) token(m, signs[below(m, 3)], true);
    postfix(m);
}

static void expression(Maker *m) {
    static const char *const operators[] = {"+",  "-", "*", "/", "%",  "@",  "<<",
                                            ">>", "&", "|", "^", "&&", "||", "else"};
    m->depth++;
    unary(m);
    for (unsigned i = below(m, m->depth < 3 ? 4 : 2); i > 0; i--) {
        token(m, operators[below(m, 14)], true);
        unary(m);
    }
    m->depth--;
}

static void type(Maker *m) {
    static const char *const access[] = {"in", "out", "inout", "const"};
    if (chance(m, 50)) token(m, access[below(m, 4)], true);
    if (chance(m, 10)) {
        token(m, "fn", true);
        open(m, "(");
        if (chance(m, 50)) {
            token(m, "f32", true);
            token(m, ",", true);
        }
        token(m, "...", true);
        close(m, ")");
        token(m, "->", true);
    }
    token(m, "f32", true);
    if (chance(m, 60)) {
        open(m, "[");
        list(m, expression, 3);
        close(m, "]");
    }
}

static void parameter(Maker *m) {
    token(m, "p", true);
    token(m, ":", true);
    type(m);
}

static void separator(Maker *m) {
    static const char *const ends[] = {"\n", ";", "\n\n\n", " ; \n", "\n\t"};
    if (chance(m, m->comments)) add(m, " // why\n");
    add(m, ends[below(m, 5)]);
}

static void binding(Maker *m) {
    token(m, chance(m, 50) ? "let" : "var", true);
    if (chance(m, 20)) {
        open(m, "(");
        name(m);
        token(m, ",", true);
        name(m);
        close(m, ")");
    } else {
        name(m);
    }
    token(m, "=", true);
    expression(m);
}

static void loop(Maker *m) {
    if (chance(m, 30)) token(m, "static", true);
    token(m, "for", true);
    token(m, "i", false);
    token(m, "in", true);
    expression(m);
    token(m, "..", true);
    unary(m);
    if (chance(m, 30)) {
        token(m, "step", false);
        unary(m);
    }
    sequence(m, false);
}

static void assignment(Maker *m) {
    static const char *const operators[] = {"=", "+=", "<<=", "/="};
    token(m, "y", false);
    if (chance(m, 70)) {
        open(m, "[");
        index_entry(m);
        close(m, "]");
    }
    token(m, operators[below(m, 4)], true);
    expression(m);
}

static void branch(Maker *m) {
    token(m, "if", true);
    expression(m);
    sequence(m, false);
    while (chance(m, 40)) {
        if (chance(m, 20)) add(m, "\n");
        token(m, "else", true);
        if (chance(m, 40)) {
            token(m, "if", true);
            expression(m);
            sequence(m, false);
        } else {
            sequence(m, false);
            break;
        }
    }
}

static void statement(Maker *m) {
    switch (m->depth > 4 ? 0 : below(m, 6)) {
    case 0:
    case 1: binding(m); break;
    case 2: loop(m); break;
    case 3: branch(m); break;
    case 4:
        token(m, "while", true);
        expression(m);
        sequence(m, false);
        break;
    default: assignment(m);
    }
}

static void sequence(Maker *m, bool value) {
    unsigned brackets = m->brackets;
    bool header = m->header;
    m->brackets = 0;
    m->header = false;
    m->depth++;
    token(m, "{", true);
    for (unsigned i = below(m, 3); i > 0; i--) {
        if (chance(m, 20)) add_comment(m, true);
        statement(m);
        separator(m);
    }
    if (value) expression(m);
    if (chance(m, 30)) separator(m);
    m->depth--;
    m->brackets = brackets;
    m->header = header;
    token(m, "}", false);
}

static void clauses(Maker *m) {
    if (chance(m, 30)) {
        token(m, "static", true);
        token(m, "N", true);
    }
    if (chance(m, 30)) {
        token(m, "require", true);
        expression(m);
        token(m, ",", true);
        token(m, "\"a \\\" text // of it\"", true);
    }
    while (chance(m, 40)) {
        token(m, chance(m, 30) ? "tune cpu" : "tune", true);
        token(m, "BM", true);
        token(m, "in", true);
        open(m, "{");
        expression(m);
        token(m, ",", true);
        expression(m);
        close(m, "}");
        if (chance(m, 30)) {
            token(m, "where", true);
            expression(m);
        }
    }
}

static void item(Maker *m) {
    bool kernel = chance(m, 50);
    if (chance(m, 30)) add(m, "/// A doc comment.\n");
    if (chance(m, 15)) {
        token(m, "const A =", true);
        expression(m);
        separator(m);
        return;
    }
    m->header = true;
    token(m, kernel ? "kernel" : "fn", true);
    name(m);
    if (chance(m, 40)) {
        open(m, "[");
        token(m, "T : f16 | f32 , g : fn(f32)->f32 = h", true);
        close(m, "]");
    }
    open(m, "(");
    list(m, parameter, 5);
    close(m, ")");
    if (!kernel && chance(m, 50)) {
        token(m, "->", true);
        type(m);
    }
    if (kernel) clauses(m);
    m->header = false;
    sequence(m, false);
    separator(m);
}

static bool check(TileArena *arena, const TileText *text) {
    TileDiagnostics *diagnostics = tile_diagnostics_create(arena);
    TileText once = {.arena = arena}, twice = {.arena = arena}, errors = {.arena = arena};
    const char *what = NULL;
    if (tile_format(arena, diagnostics, "fuzz.tile", tile_text_get(text), text->length, &once) != TILE_OK)
        what = "refused";
    else if (tile_format(arena, diagnostics, "once.tile", tile_text_get(&once), once.length, &twice) != TILE_OK)
        what = "refused when formatted once";
    else if (strcmp(tile_text_get(&once), tile_text_get(&twice)) != 0)
        what = "changes when formatted again";
    else if (strstr(tile_text_get(&once), " \n") || strstr(tile_text_get(&once), "\n\n\n"))
        what = "has blanks at an end, or two empty lines";
    if (!what) return true;
    tile_diagnostics_render(diagnostics, &errors, false);
    fprintf(stderr, "%s\n---- %s:\n%s\n---- once:\n%s\n---- twice:\n%s\n", tile_text_get(&errors), what,
            tile_text_get(text), tile_text_get(&once), tile_text_get(&twice));
    return false;
}

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (unsigned i = 0; i < count; i++) {
        TileArena *arena = tile_arena_create(NULL);
        Maker m = {.text = {.arena = arena}, .random = (seed + i) * 0x9e3779b97f4a7c15u + 1};
        m.comments = i % 3 * 4;
        for (unsigned k = 1 + below(&m, 3); k > 0; k--) item(&m);
        bool good = check(arena, &m.text);
        tile_arena_destroy(arena);
        if (!good) {
            fprintf(stderr, "fuzz_format: text %llu failed\n", (unsigned long long)(seed + i));
            return 1;
        }
    }
    printf("%u texts formatted\n", count);
    return 0;
}
