/* tilec man: the manual page, from the command table. */
#include <stdio.h>
#include <string.h>

#include "tools/session.h"

/* Escapes for roff: `\`, `.` and `'` at the start of a line, and `-`, which would be a hyphen. */
static void print_text(const char *text) {
    bool first = true;
    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        first = *text == '\n';
    }
}

static void print_options(const TileOption *options) {
    for (; options && options->name; options++) {
        printf(".TP\n.B ");
        print_text(options->name);
        if (options->value) {
            if (*options->value != ' ') putchar('=');
            print_text(options->value);
        }
        putchar('\n');
        print_text(options->help);
        putchar('\n');
    }
}

static void print_command(const TileCommand *command) {
    printf(".SS tilec ");
    print_text(command->name);
    if (*command->arguments) putchar(' ');
    print_text(command->arguments);
    putchar('\n');
    print_text(command->summary);
    printf(".\n");
    if (*command->help) {
        printf(".PP\n.nf\n");
        print_text(command->help);
        printf(".fi\n");
    }
    print_options(command->options);
}

int tile_command_man(TileSession *session, char **words, int count) {
    if (count && *words[0] == '-') return tile_session_unknown(session, words[0]);
    if (count) return tile_session_fail(session, TILE_INVALID_ARGUMENT, "`tilec man` takes no arguments");
    printf(
        ".\\\" Made by `tilec man` from the command table.\n"
        ".TH TILEC 1 \"\" \"tilec %s\" \"User Commands\"\n"
        ".SH NAME\ntilec \\- compile, run and look after .tile kernels\n"
        ".SH SYNOPSIS\n.B tilec\n.I COMMAND\n[ARGUMENTS] [OPTIONS]\n"
        ".SH DESCRIPTION\nTile is a language of kernels over blocks of tensors. tilec compiles them, runs them on "
        "data, and makes objects of\nthem to link. Options and arguments may follow the command in any order.\n"
        ".SH OPTIONS\nEvery command takes these.\n",
        tile_version());
    print_options(tile_session_options());
    printf(".SH COMMANDS\n");
    for (size_t i = 0; i < session->command_count; i++) print_command(&session->commands[i]);
    printf(".SH ENVIRONMENT\n.TP\n.B TILE_NUM_THREADS\nthreads that run a kernel; the cores that the process may use, "
           "if not set\n"
           ".TP\n.B TILE_OWN_THREADS\n1: kernels never run on the threads of the process's OpenMP runtime\n"
           ".TP\n.B TILE_PTXAS\nthe PTX assembler of the CUDA toolkit, where it is not found by itself\n"
           ".SH EXIT STATUS\n.TP\n.B 0\nsuccess\n.TP\n.B 1\na mistake in the source or the arguments, or a test that "
           "failed\n.TP\n.B 2\nthe environment: a file, memory, a device\n.TP\n.B 3\na bug of tilec\n");
    return tile_session_finish(session);
}
