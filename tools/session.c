#include "tools/session.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/compile/backend.h"
#include "driver/compile/compile.h"
#include "lowering/pass.h"
#include "tile/pass.h"
#include "tools/unfinished.h"

/* The build gives the version as bare digits. */
#define VERSION_TEXT(version) VERSION_WORDS(version)
#define VERSION_WORDS(version) #version

static const TileOption session_options[] = {
    {"-q", NULL, "prints less"},
    {"-v", NULL, "prints more"},
    {"--error-format", "text|json", "the form of errors: for people (the default), or one JSON array for editors"},
    {"--color", "auto|always|never", "colours in messages: on a terminal unless NO_COLOR is set (auto), or not so"},
    {"--limit", "NAME=N", "another limit on the compiler's work; `tilec help limits` lists them"},
    {"--rename", "N",
     "for tests of tilec: renames all values after each pass, by names made from N; the code must not change"},
    {"--between", "LIST",
     "for tests of tilec: runs these passes after each other pass; results must not change; `tilec help passes`"},
    {NULL, NULL, NULL},
};

const char *tile_version(void) { return VERSION_TEXT(TILE_VERSION); }

const TileOption *tile_session_options(void) { return session_options; }

const TileCommand *tile_command_find(const TileSession *session, const char *name) {
    for (size_t i = 0; i < session->command_count; i++)
        if (strcmp(name, session->commands[i].name) == 0) return &session->commands[i];
    return NULL;
}

const TileCommand *tile_command_guess(const TileSession *session, const char *name) {
    const TileCommand *best = NULL;
    unsigned least = 3;
    for (size_t i = 0; i < session->command_count; i++) {
        unsigned far = tile_edit_distance(name, session->commands[i].name);
        if (far < least) least = far, best = &session->commands[i];
    }
    return best;
}

void tile_print_json_string(FILE *file, const char *text) {
    fputc('"', file);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else if (*at == '\n')
            fputs("\\n", file);
        else if (*at < 0x20)
            fprintf(file, "\\u%04x", *at);
        else
            fputc(*at, file);
    }
    fputc('"', file);
}

bool tile_session_colour(const TileSession *session) {
    if (session->colour != TILE_COLOUR_AUTO) return session->colour == TILE_COLOUR_ALWAYS;
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    bool refused = (none && *none) || (terminal && strcmp(terminal, "dumb") == 0);
    return !refused && isatty(STDERR_FILENO);
}

static void show(TileSession *session, const char *text) {
    if (session->json) {
        fputs("[{\"severity\":\"error\",\"message\":", stderr);
        tile_print_json_string(stderr, text);
        fputs("}]\n", stderr);
    } else {
        fprintf(stderr, tile_session_colour(session) ? "tilec: \033[1;31merror:\033[0m %s\n" : "tilec: error: %s\n",
                text);
    }
}

int tile_session_fail(TileSession *session, tile_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    show(session, tile_arena_format_list(session->arena, format, arguments));
    va_end(arguments);
    return tile_status_exit_code(status);
}

bool tile_report_is_placed(TileReport *report) { return strncmp(tile_report_text(report, false), "error: ", 7) != 0; }

/* Warnings of a text that a command compiles several times, for another target or size, are shown once. */
static bool is_shown(TileSession *session, const TileReport *report) {
    const char *json = tile_report_json((TileReport *)report);
    for (size_t i = 0; i < session->shown.count; i++)
        if (strcmp(session->shown.items[i], json) == 0) return true;
    tile_list_push(session->arena, &session->shown, tile_arena_string(session->arena, json, strlen(json)));
    return false;
}

int tile_session_report(TileSession *session, tile_status status, TileReport *report) {
    if (report && status == TILE_OK && is_shown(session, report)) {
        tile_report_destroy(report);
    } else if (report) {
        if (!session->json && !tile_report_is_placed(report))
            fputs("tilec: ", stderr); /* like all diagnostics without a location in a file */
        fputs(session->json ? tile_report_json(report) : tile_report_text(report, tile_session_colour(session)),
              stderr);
        tile_report_destroy(report);
    } else if (status != TILE_OK) {
        show(session, tile_status_text(status));
    }
    return tile_status_exit_code(status);
}

int tile_session_diagnostics(TileSession *session, tile_status status, TileArena *arena, TileDiagnostics *diagnostics) {
    TileText text = {.arena = arena};
    if (session->json)
        tile_diagnostics_render_json(diagnostics, &text);
    else
        tile_diagnostics_render(diagnostics, &text, tile_session_colour(session));
    fputs(tile_text_get(&text), stderr);
    return tile_status_exit_code(status);
}

int tile_session_limit(TileSession *session, const char *text) {
    size_t length = strcspn(text, "=");
    TileLimitId id;
    char *end;
    if (!tile_limit_find(text, length, &id))
        return tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                 "there is no limit '%.*s'; `tilec help limits` lists them", (int)length, text);
    errno = 0;
    unsigned long long value = strtoull(text + length + (text[length] == '='), &end, 10);
    if (!text[length] || !isdigit((unsigned char)text[length + 1]) || *end || errno)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--limit=%.*s needs a number: --limit=%.*s=%llu",
                                 (int)length, text, (int)length, text, (unsigned long long)tile_usual_limits.most[id]);
    session->limits.most[id] = value;
    return 0;
}

int tile_session_rename(TileSession *session, const char *text) {
    char *end;
    errno = 0;
    session->names = strtoull(text, &end, 10);
    if (isdigit((unsigned char)*text) && !*end && !errno) return 0;
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--rename needs a number: --rename=1");
}

int tile_session_between(TileSession *session, const char *text) {
    const TilePassTable *tables[TILE_PASS_TABLES];
    tile_pass_tables(tables);
    TilePipeline between = {0};
    TileText message = {.arena = session->arena};
    tile_status status =
        tile_pipeline_read(&between, session->arena, tables, TILE_PASS_TABLES, text, &message);
    if (status != TILE_OK)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "--between: %s; `tilec help passes` lists them",
                                 tile_text_get(&message));
    session->between = between.items;
    session->between_count = between.count;
    return 0;
}

tile_status tile_session_create_compiler(const TileSession *session, TileCompiler **compiler) {
    TileLimit limits[TILE_LIMIT_COUNT];
    for (int id = 0; id < TILE_LIMIT_COUNT; id++)
        limits[id] = (TileLimit){tile_limit_name((TileLimitId)id), session->limits.most[id]};
    TileCompilerOptions options = {.struct_size = sizeof options, .limits = limits, .limit_count = TILE_LIMIT_COUNT};
    TILE_TRY(tile_compiler_create(&options, compiler));
    tile_compiler_rename(*compiler, session->names);
    tile_compiler_between(*compiler, session->between, session->between_count);
    return TILE_OK;
}

int tile_session_compiler(TileSession *session, const char *const *plugins, size_t count, TileCompiler **compiler) {
    TileReport *report = NULL;
    tile_status status = tile_session_create_compiler(session, compiler);
    if (status == TILE_OK) tile_compiler_hold(*compiler, tile_unfinished_hold);
    for (size_t i = 0; i < count && status == TILE_OK; i++)
        status = tile_compiler_load_passes(*compiler, plugins[i], &report);
    return tile_session_report(session, status, report);
}

int tile_session_finish(TileSession *session) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    if (errno == EPIPE) return tile_status_exit_code(TILE_IO); /* a reader that closed the pipe needs no message */
    return tile_session_fail(session, TILE_IO, "cannot write the output: %s", strerror(errno));
}

const char *tile_option_value(const char *word, const char *name) {
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0 || word[length] != '=') return NULL;
    return word + length + 1;
}

static const TileOption *find_option(const TileOption *options, const char *word, size_t length) {
    for (; options && options->name; options++)
        if (strlen(options->name) == length && memcmp(options->name, word, length) == 0) return options;
    return NULL;
}

static void guess_option(const TileOption *options, const char *name, unsigned *least, const char **best) {
    for (; options && options->name; options++) {
        unsigned far = tile_edit_distance(name, options->name);
        bool alike = strlen(options->name) > 2 || strlen(name) == 2; /* any word is near `-q` */
        if (alike && far < *least) *least = far, *best = options->name;
    }
}

int tile_session_unknown(TileSession *session, const char *word) {
    const TileCommand *command = tile_command_find(session, session->command);
    const TileOption *options = command ? command->options : NULL;
    size_t length = strcspn(word, "=");
    const TileOption *known = find_option(options, word, length);
    if (!known) known = find_option(tile_session_options(), word, length);
    if (known && known->value && !word[length])
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s needs a value: write %s%s%s; see `tilec help %s`",
                                 word, word, *known->value == ' ' ? "" : "=", known->value, session->command);
    if (known)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "%s takes %s%s; see `tilec help %s`", known->name,
                                 known->value ? "one of " : "no value", known->value ? known->value : "",
                                 session->command);
    const char *name = tile_arena_string(session->arena, word, length), *best = NULL;
    unsigned least = 3;
    guess_option(options, name, &least, &best);
    guess_option(tile_session_options(), name, &least, &best);
    if (best)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown option '%s'; is it %s? See `tilec help %s`",
                                 word, best, session->command);
    bool argument = command && strstr(command->arguments, "ARG=");
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown option '%s'%s; see `tilec help %s`", word,
                             argument ? ", and arguments of a kernel have no dashes: x=a.npy" : "", session->command);
}
