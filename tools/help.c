/* tilec help: commands, passes and operations, each from its table. */
#include <stdio.h>
#include <string.h>

#include "cpu/passes.h"
#include "lang/ir.h"
#include "lowering/pass.h"
#include "tools/session.h"

static int help_all(TileSession *session) {
    size_t count;
    const TileCommand *commands = tile_commands(&count);
    printf("tilec compiles and runs .tile kernels.\n\n");
    for (size_t i = 0; i < count; i++) printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("\n`tilec help COMMAND` tells more. Every command takes -q (less), -v (more) and --error-format=json.\n"
           "Exit status: 0, 1 (a mistake in the source or arguments), 2 (the environment), 3 (a bug of tilec).\n");
    return tile_session_finish(session);
}

static int help_command(TileSession *session, const TileCommand *command) {
    printf("tilec %s %s\n\n%s.\n", command->name, command->arguments, command->summary);
    if (*command->help) printf("\n%s", command->help);
    return tile_session_finish(session);
}

static void print_passes(const TilePassTable *table) {
    for (size_t i = 0; i < table->count; i++) printf("  %-14s %s\n", table->passes[i].name, table->passes[i].doc);
}

static int help_passes(TileSession *session) {
    printf("Passes shared by all targets:\n");
    print_passes(tile_lowering_passes());
    printf("Passes of CPU targets:\n");
    print_passes(tile_cpu_passes());
    return tile_session_finish(session);
}

static int help_ops(TileSession *session) {
    for (int id = 0; id < TILE_OP_COUNT; id++)
        printf("  %-12s %s\n", tile_op_info((TileOpId)id)->mnemonic, tile_op_info((TileOpId)id)->doc);
    return tile_session_finish(session);
}

int tile_command_help(TileSession *session, char **words, int count) {
    size_t command_count;
    const TileCommand *commands = tile_commands(&command_count);
    if (count == 0) return help_all(session);
    if (strcmp(words[0], "passes") == 0) return help_passes(session);
    if (strcmp(words[0], "ops") == 0) return help_ops(session);
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(words[0], commands[i].name) == 0) return help_command(session, &commands[i]);
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "no help for '%s'; see `tilec help`", words[0]);
}
