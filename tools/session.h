/* What all commands of tilec share: common options, and how errors are shown. */
#ifndef TILE_TOOLS_SESSION_H
#define TILE_TOOLS_SESSION_H

#include <stdio.h>

#include "base/diagnostic.h"
#include "base/list.h"
#include "base/string.h"
#include "tile/tile.h"

typedef enum TileColour { TILE_COLOUR_AUTO, TILE_COLOUR_ALWAYS, TILE_COLOUR_NEVER } TileColour;

typedef struct TileSession {
    TileArena *arena;
    bool json;                                 /* --error-format=json */
    TileColour colour;                         /* --color */
    bool quiet, verbose;                       /* -q, -v */
    const struct TileCommand *commands;        /* all of them */
    size_t command_count;
    const char *command;                       /* name of the command that runs */
    TileLimits limits;                         /* --limit */
    uint64_t names;                            /* --rename */
    const struct TilePassInfo *const *between; /* --between */
    size_t between_count;
    TILE_LIST(const char *) shown;             /* reports of warnings, as JSON */
} TileSession;

/* An option of a command. `value` is what stands behind `=`: NULL for a flag, TARGET, FILE, FOLDER, PASS, N, NAME=FILE,
 * or the words to choose from, as in "md|html". One that begins with a blank is a word of its own. */
typedef struct TileOption {
    const char *name, *value, *help;
} TileOption;

/* One command of the table in tilec.c, from which help, man page and completions are made. `words` are the words behind
 * the command's name, those of the session taken out; the result is the program's exit status. */
typedef struct TileCommand {
    const char *name, *arguments, *summary;
    const char *help; /* what the user must know in addition to the options; "" for nothing */
    int (*run)(TileSession *session, char **words, int count);
    const TileOption *options; /* ends in an option without a name; NULL for none */
} TileCommand;

/* "0.1.0" */
const char *tile_version(void);

/* The options that every command takes. */
const TileOption *tile_session_options(void);
/* The command of this name, or NULL. */
const TileCommand *tile_command_find(const TileSession *session, const char *name);
/* The command with the name most similar to `name`, or NULL if none is similar. */
const TileCommand *tile_command_guess(const TileSession *session, const char *name);

/* Are messages on the error stream to have colours? */
bool tile_session_colour(const TileSession *session);
/* Shows an error on the error stream, as text or JSON, and returns the exit status for it. */
int tile_session_fail(TileSession *session, tile_status status, const char *format, ...) TILE_PRINTF(3, 4);
/* Does its first diagnostic have a location in a file? */
bool tile_report_is_placed(TileReport *report);
/* Shows a report (may be NULL) and releases it. A failure without a report is shown by its status. Returns the exit
 * status. */
int tile_session_report(TileSession *session, tile_status status, TileReport *report);
/* The same for a command's own diagnostics, which are in the arena. */
int tile_session_diagnostics(TileSession *session, tile_status status, TileArena *arena, TileDiagnostics *diagnostics);
/* Reads the value of `--limit=`, NAME=N. Returns the exit status. */
int tile_session_limit(TileSession *session, const char *text);
/* Read the values of `--rename=`, a number, and `--between=`, names of passes. They return the exit status. */
int tile_session_rename(TileSession *session, const char *text);
int tile_session_between(TileSession *session, const char *text);
/* Creates a compiler with the session's limits and options of tests, without a message on failure. */
tile_status tile_session_create_compiler(const TileSession *session, TileCompiler **compiler);
/* The same with the passes of shared objects. Returns the exit status; *compiler may be set also where it fails. */
int tile_session_compiler(TileSession *session, const char *const *plugins, size_t count, TileCompiler **compiler);
/* Flushes the output stream: a full disk behind it is an error. Returns the exit status. */
int tile_session_finish(TileSession *session);

/* The text as a JSON string, in quotes. */
void tile_print_json_string(FILE *file, const char *text);

/* If `word` is `--name=value`, the value; else NULL. */
const char *tile_option_value(const char *word, const char *name);
/* Reports an unknown option, and proposes the most similar one; or an option that lacks its value. */
int tile_session_unknown(TileSession *session, const char *word);

int tile_command_run(TileSession *session, char **words, int count);
int tile_command_debug(TileSession *session, char **words, int count);
int tile_command_build(TileSession *session, char **words, int count);
int tile_command_emit(TileSession *session, char **words, int count);
int tile_command_test(TileSession *session, char **words, int count);
int tile_command_check(TileSession *session, char **words, int count);
int tile_command_new(TileSession *session, char **words, int count);
int tile_command_lsp(TileSession *session, char **words, int count);
int tile_command_fmt(TileSession *session, char **words, int count);
int tile_command_bench(TileSession *session, char **words, int count);
int tile_command_explain(TileSession *session, char **words, int count);
int tile_command_doc(TileSession *session, char **words, int count);
int tile_command_completions(TileSession *session, char **words, int count);
int tile_command_man(TileSession *session, char **words, int count);
int tile_command_backends(TileSession *session, char **words, int count);
int tile_command_tune(TileSession *session, char **words, int count);
int tile_command_cache(TileSession *session, char **words, int count);
int tile_command_help(TileSession *session, char **words, int count);

#endif
