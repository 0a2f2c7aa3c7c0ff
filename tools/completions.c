/* tilec completions: completions for shells, from the command table. */
#include <stdio.h>
#include <string.h>

#include "driver/compile/backend.h"
#include "tools/session.h"

/* The metavariable of a value or an argument. */
typedef enum Words { WORDS_NONE, WORDS_FILE, WORDS_TILE_FILE, WORDS_LIST } Words;

static void add_word(TileText *text, const char *word) {
    if (text->length) tile_text_add_char(text, ' ');
    tile_text_add(text, word);
}

static void add_targets(TileText *text) {
    TileTargetInfo info;
    for (size_t i = 0; tile_target_at(i, &info); i++) add_word(text, info.name);
}

static void add_passes(TileText *text) {
    const TilePassTable *tables[TILE_PASS_TABLES];
    tile_pass_tables(tables);
    for (int t = 0; t < TILE_PASS_TABLES; t++)
        for (size_t i = 0; i < tables[t]->count; i++) add_word(text, tables[t]->passes[i].name);
}

static void add_commands(const TileSession *session, TileText *text) {
    size_t count = session->command_count;
    const TileCommand *commands = session->commands;
    for (size_t i = 0; i < count; i++) add_word(text, commands[i].name);
}

static void add_choices(TileText *text, const char *choices) {
    while (*choices) {
        size_t length = strcspn(choices, "|");
        if (text->length) tile_text_add_char(text, ' ');
        tile_text_add_bytes(text, choices, length);
        choices += length + (choices[length] == '|');
    }
}

/* The values of an option, from its word in the table. */
static Words value_words(const TileOption *option, TileText *list) {
    const char *value = option->value + (*option->value == ' ');
    if (strncmp(value, "TARGET", 6) == 0 || strcmp(value, "LIST") == 0)
        add_targets(list);
    else if (strcmp(value, "PASS") == 0)
        add_passes(list);
    else if (strcmp(value, "json") == 0 || (strchr(value, '|') && *value >= 'a'))
        add_choices(list, value);
    else
        return strstr(value, "FILE") ? WORDS_FILE : WORDS_NONE;
    return WORDS_LIST;
}

/* The arguments of a command: words to choose from, which files may follow. */
static Words argument_words(const TileSession *session, const TileCommand *command, TileText *list) {
    const char *arguments = command->arguments;
    if (strncmp(arguments, "KIND", 4) == 0) {
        for (int i = 0; i < TILE_STAGE_COUNT; i++) add_word(list, tile_stage_name((TileStage)i));
        add_word(list, "cubin");
        add_word(list, "json");
        return WORDS_TILE_FILE;
    }
    if (strncmp(arguments, "[COMMAND", 8) == 0) {
        add_commands(session, list);
        add_word(list, "passes");
        add_word(list, "ops");
        return WORDS_LIST;
    }
    if (strncmp(arguments, "FILE", 4) == 0) return WORDS_TILE_FILE;
    if (!*arguments) return WORDS_NONE;
    add_choices(list, arguments);
    return WORDS_LIST;
}

static bool takes_word(const TileOption *option) { return option->value && *option->value == ' '; }
static bool takes_equals(const TileOption *option) { return option->value && *option->value != ' '; }

/* ---- bash ---- */

static void print_bash_options(const TileOption *options) {
    for (; options && options->name; options++) printf(" %s%s", options->name, takes_equals(options) ? "=" : "");
}

static void print_bash_values(TileSession *session, const char *command, const TileOption *options) {
    for (; options && options->name; options++) {
        TileText list = {.arena = session->arena};
        Words words = options->value ? value_words(options, &list) : WORDS_NONE;
        if (words == WORDS_NONE) continue;
        printf("    %s\" %s\") ", command, options->name);
        if (words == WORDS_LIST)
            printf("_tilec_list \"%s\"; return ;;\n", tile_text_get(&list));
        else
            printf("COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
    }
}

static const char bash_head[] =
    "# Completions of tilec for bash; `tilec completions bash` made them.\n\n"
    "# Words of a list, of which several may stand with commas between.\n"
    "_tilec_list() {\n"
    "    local last=${word##*,}\n"
    "    COMPREPLY=($(compgen -P \"${word%\"$last\"}\" -W \"$1\" -- \"$last\"))\n"
    "}\n\n"
    "# Files of the language, and folders on the way to them.\n"
    "_tilec_files() { COMPREPLY+=($(compgen -f -X '!*.tile' -- \"$word\") $(compgen -d -- \"$word\")); }\n\n"
    "_tilec() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} command= at=0 index\n"
    "    COMPREPLY=()\n"
    "    # Bash takes the `=` of --option=value for a word of its own.\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $option == = ]]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    for ((index = 1; index < COMP_CWORD; index++)); do\n"
    "        [[ ${COMP_WORDS[index]} == -* ]] && continue\n"
    "        command=${COMP_WORDS[index]} at=$index\n"
    "        break\n"
    "    done\n"
    "    case \"$command $option\" in\n";

static int print_bash(TileSession *session) {
    size_t count = session->command_count;
    const TileCommand *commands = session->commands;
    fputs(bash_head, stdout);
    for (size_t i = 0; i < count; i++) print_bash_values(session, commands[i].name, commands[i].options);
    print_bash_values(session, "*", tile_session_options());
    printf("    esac\n    if [[ $word == -* ]]; then\n        local options=\n        case $command in\n");
    for (size_t i = 0; i < count; i++) {
        if (!commands[i].options) continue;
        printf("        %s) options=\"", commands[i].name);
        print_bash_options(commands[i].options);
        printf("\" ;;\n");
    }
    printf("        esac\n        COMPREPLY=($(compgen -W \"$options");
    print_bash_options(tile_session_options());
    printf("\" -- \"$word\"))\n"
           "        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
           "        return 0\n    fi\n    case $command in\n");
    for (size_t i = 0; i < count; i++) {
        TileText list = {.arena = session->arena};
        Words words = argument_words(session, &commands[i], &list);
        if (words == WORDS_NONE) continue;
        printf("    %s) ", commands[i].name);
        if (list.length) printf("((at + 1 == COMP_CWORD)) && _tilec_list \"%s\"", tile_text_get(&list));
        if (list.length && words == WORDS_TILE_FILE) printf(" || ");
        if (words == WORDS_TILE_FILE) printf("_tilec_files");
        printf(" ;;\n");
    }
    TileText names = {.arena = session->arena};
    add_commands(session, &names);
    printf("    \"\") _tilec_list \"%s\" ;;\n    esac\n    return 0\n}\ncomplete -o filenames -F _tilec tilec\n",
           tile_text_get(&names));
    return tile_session_finish(session);
}

/* ---- zsh ---- */

/* Adds text in single quotes; characters of `marks` are escaped with a backslash. */
static void print_quoted(const char *text, const char *marks) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(marks, *text) ? "\\" : "", *text);
    }
}

static void print_zsh_option(TileSession *session, const TileOption *option) {
    TileText list = {.arena = session->arena};
    printf(" \\\n            '%s%s[", option->name, takes_equals(option) ? "=" : "");
    print_quoted(option->help, "[]\\");
    putchar(']');
    if (option->value) {
        Words words = value_words(option, &list);
        putchar(':');
        print_quoted(option->value + takes_word(option), ":\\");
        putchar(':');
        if (words == WORDS_FILE) printf("_files");
        if (words == WORDS_LIST) printf("(%s)", tile_text_get(&list));
    }
    putchar('\'');
}

static void print_zsh_command(TileSession *session, const TileCommand *command) {
    TileText list = {.arena = session->arena};
    Words words = argument_words(session, command, &list);
    printf("    %s)\n        _arguments", command->name);
    for (const TileOption *option = command->options; option && option->name; option++)
        print_zsh_option(session, option);
    for (const TileOption *option = tile_session_options(); option->name; option++) print_zsh_option(session, option);
    if (list.length) printf(" \\\n            '1:word:(%s)'", tile_text_get(&list));
    if (words == WORDS_TILE_FILE) printf(" \\\n            '*:file:_files -g \"*.tile\"'");
    printf(" ;;\n");
}

static int print_zsh(TileSession *session) {
    size_t count = session->command_count;
    const TileCommand *commands = session->commands;
    printf("#compdef tilec\n# Completions of tilec for zsh; `tilec completions zsh` made them.\n\n"
           "_tilec() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < count; i++) {
        printf("        '%s:", commands[i].name);
        print_quoted(commands[i].summary, ":\\");
        printf("'\n");
    }
    printf("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n");
    for (size_t i = 0; i < count; i++) print_zsh_command(session, &commands[i]);
    printf("    esac\n}\n\n_tilec \"$@\"\n");
    return tile_session_finish(session);
}

/* ---- fish ---- */

static void print_fish_option(TileSession *session, const char *condition, const TileOption *option) {
    TileText list = {.arena = session->arena};
    const char *name = option->name + 1;
    char form = *name == '-' ? 'l' : name[1] ? 'o' : 's';
    printf("complete -c tilec%s -%c %s", condition, form, name + (*name == '-'));
    if (option->value) {
        Words words = value_words(option, &list);
        printf(words == WORDS_FILE ? " -r -F" : " -x");
        if (words == WORDS_LIST) printf(" -a '%s'", tile_text_get(&list));
    }
    printf(" -d '");
    print_quoted(option->help, "");
    printf("'\n");
}

static int print_fish(TileSession *session) {
    size_t count = session->command_count;
    const TileCommand *commands = session->commands;
    printf("# Completions of tilec for fish; `tilec completions fish` made them.\n\n"
           "complete -c tilec -f\n");
    for (const TileOption *option = tile_session_options(); option->name; option++)
        print_fish_option(session, "", option);
    for (size_t i = 0; i < count; i++) {
        TileText list = {.arena = session->arena};
        Words words = argument_words(session, &commands[i], &list);
        const char *seen = tile_arena_format(session->arena, " -n '__fish_seen_subcommand_from %s'", commands[i].name);
        printf("complete -c tilec -n __fish_use_subcommand -a %s -d '", commands[i].name);
        print_quoted(commands[i].summary, "");
        printf("'\n");
        if (list.length) printf("complete -c tilec%s -a '%s'\n", seen, tile_text_get(&list));
        if (words == WORDS_TILE_FILE) printf("complete -c tilec%s -F\n", seen);
        for (const TileOption *option = commands[i].options; option && option->name; option++)
            print_fish_option(session, seen, option);
    }
    return tile_session_finish(session);
}

int tile_command_completions(TileSession *session, char **words, int count) {
    if (count == 1 && strcmp(words[0], "bash") == 0) return print_bash(session);
    if (count == 1 && strcmp(words[0], "zsh") == 0) return print_zsh(session);
    if (count == 1 && strcmp(words[0], "fish") == 0) return print_fish(session);
    if (count && *words[0] == '-') return tile_session_unknown(session, words[0]);
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "name one shell: bash, zsh or fish");
}
