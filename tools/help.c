/* tilec help: commands, passes, operations, built-in functions and the codes of messages, each from its table. */
#include <stdio.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "lang/ir/ir.h"
#include "lang/scalar/scalar.h"
#include "lsp/help.h"
#include "lowering/pass.h"
#include "parser/check/builtin.h"
#include "parser/check/formats.h"
#include "parser/check/type.h"
#include "parser/syntax/lex.h"
#include "tools/error_pages.h"
#include "tools/session.h"

static int help_all(TileSession *session) {
    size_t count = session->command_count;
    const TileCommand *commands = session->commands;
    printf("tilec compiles, runs and looks after .tile kernels.\n\nUsage: tilec COMMAND ..\n\n");
    for (size_t i = 0; i < count; i++) printf("  %-12s %s\n", commands[i].name, commands[i].summary);
    printf("\n`tilec help COMMAND` tells more. First steps:\n"
           "  tilec check softmax.tile\n"
           "  tilec run softmax.tile x=rand:f32[4096,1000] y=@ --check\n"
           "Exit status: 0, 1 (a mistake in the source or arguments), 2 (the environment), 3 (a bug of tilec).\n");
    return tile_session_finish(session);
}

static size_t option_width(const TileOption *option) {
    return strlen(option->name) + (option->value ? strlen(option->value) + (*option->value != ' ') : 0);
}

static void print_options(const char *title, const TileOption *options, size_t width) {
    printf("\n%s:\n", title);
    for (; options->name; options++) {
        const char *value = options->value ? options->value : "";
        const char *between = !*value || *value == ' ' ? "" : "=";
        printf("  %s%s%s%*s  %s\n", options->name, between, value, (int)(width - option_width(options)), "",
               options->help);
    }
}

static int help_command(TileSession *session, const TileCommand *command) {
    size_t width = 0;
    const TileOption *lists[] = {command->options, tile_session_options()};
    for (int i = 0; i < 2; i++)
        for (const TileOption *option = lists[i]; option && option->name; option++)
            if (option_width(option) > width) width = option_width(option);
    printf("tilec %s%s%s%s\n\n%s.\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->options ? " [OPTIONS]" : "", command->summary);
    if (*command->help) printf("\n%s", command->help);
    if (command->options) print_options("Options", command->options, width);
    print_options("Options of every command", tile_session_options(), width);
    return tile_session_finish(session);
}

static void print_passes(const char *title, const TilePassTable *table) {
    printf("%s:\n", title);
    for (size_t i = 0; i < table->count; i++) printf("  %-17s %s\n", table->passes[i].name, table->passes[i].doc);
}

static int help_passes(TileSession *session) {
    print_passes("Passes shared by all targets", tile_lowering_passes());
    const TileBackend *backend;
    for (unsigned i = 0; (backend = tile_backend_at(i)); i++) {
        char title[64];
        snprintf(title, sizeof title, "Passes of %s targets", backend->family->title);
        print_passes(title, backend->family->passes);
    }
    return tile_session_finish(session);
}

static int help_ops(TileSession *session) {
    for (int id = 0; id < TILE_OP_COUNT; id++)
        printf("  %-12s %s\n", tile_op_info((TileOpId)id)->mnemonic, tile_op_info((TileOpId)id)->doc);
    return tile_session_finish(session);
}

static int help_limits(TileSession *session) {
    printf("Limits that --limit=NAME=N sets, and what each is without it:\n");
    for (int id = 0; id < TILE_LIMIT_COUNT; id++)
        printf("  %-20s %8llu  %s\n", tile_limit_name((TileLimitId)id), (unsigned long long)tile_usual_limits.most[id],
               tile_limit_words((TileLimitId)id));
    return tile_session_finish(session);
}

/* The words of the language, for the grammars of editors. */
static int help_words(TileSession *session) {
#define PRINT_KEYWORD(id, text) " " text
#define PRINT_WORD(text) " " text
    printf("keywords:" TILE_KEYWORD_LIST(PRINT_KEYWORD) "\nwords with a meaning in some places:" TILE_PLACE_WORD_LIST(
        PRINT_WORD) "\ntypes:");
    for (int s = 0; s < TILE_SCALAR_COUNT; s++) printf(" %s", tile_scalar_name((TileScalar)s));
    for (int f = TILE_FORMAT_PLAIN + 1; f < TILE_FORMAT_COUNT; f++) printf(" %s", tile_format_name((TileFormat)f));
    printf("\nclasses of types:");
    for (size_t i = 0; tile_class_at(i); i++) printf(" %s", tile_class_at(i));
    printf("\nbuilt-in functions:");
    for (size_t i = 0; tile_builtin_at(i); i++) printf(" %s", tile_builtin_at(i)->name);
    printf("\n");
    return tile_session_finish(session);
}

/* The page as plain text: without heading and code marks, with code indented. */
static void print_page(const TileStandardFile *page) {
    bool code = false;
    const char *end = page->text + page->length;
    for (const char *line = page->text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        int length = (int)((stop ? stop : end) - line);
        if (length >= 3 && memcmp(line, "```", 3) == 0) {
            code = !code;
            continue;
        }
        if (length >= 2 && memcmp(line, "# ", 2) == 0) line += 2, length -= 2;
        printf("%s%.*s\n", code && length ? "    " : "", length, line);
    }
}

static const TileStandardFile *find_page(const char *code) {
    size_t length = strlen(code);
    for (const TileStandardFile *page = tile_error_pages; page->name; page++)
        if (strncmp(page->name, code, length) == 0 && strcmp(page->name + length, ".md") == 0) return page;
    return NULL;
}

static int help_codes(TileSession *session) {
    for (int code = 0; code < TILE_DIAGNOSTIC_COUNT; code++)
        printf("  %s\n", tile_diagnostic_name((TileDiagnosticCode)code));
    return tile_session_finish(session);
}

/* What an editor shows where the pointer rests on the name. */
static int help_builtin(TileSession *session, const char *name) {
    const char *form = tile_help_form(name), *words = tile_help_words(name);
    if (form)
        printf("%s\n", form);
    else
        printf("%s(v)\n", name);
    if (words) printf("\n    %s\n", words);
    return tile_session_finish(session);
}

int tile_command_help(TileSession *session, char **words, int count) {
    if (count == 0) return help_all(session);
    if (strcmp(words[0], "passes") == 0) return help_passes(session);
    if (strcmp(words[0], "ops") == 0) return help_ops(session);
    if (strcmp(words[0], "limits") == 0) return help_limits(session);
    if (strcmp(words[0], "codes") == 0) return help_codes(session);
    if (strcmp(words[0], "words") == 0) return help_words(session);
    const TileCommand *command = tile_command_find(session, words[0]);
    if (command) return help_command(session, command);
    const TileStandardFile *page = find_page(words[0]);
    if (page) return print_page(page), tile_session_finish(session);
    if (tile_find_builtin(words[0])) return help_builtin(session, words[0]);
    command = tile_command_guess(session, words[0]);
    if (command)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no help for '%s'; is it `tilec help %s`?", words[0],
                                 command->name);
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no help for '%s'; see `tilec help`", words[0]);
}
