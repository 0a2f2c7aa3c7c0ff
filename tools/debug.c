/* tilec debug: runs a kernel in the interpreter, statement by statement as commands say. The executor tells of each
 * statement before it executes it; what is asked then is read from the values that it has. Programs run one after the
 * other, in row-major order. */
#include "tools/debug.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/compile/compile.h"
#include "tools/program.h"

typedef enum Going {
    GOING_ON,     /* to a breakpoint or a change of what is watched */
    GOING_STEP,   /* to the next statement */
    GOING_NEXT,   /* the same, but not into calls: in at most `depth` of them */
    GOING_FINISH, /* out of a call: in fewer than `depth` of them */
    GOING_ENTER,  /* to the first statement of the chosen program */
} Going;

typedef struct Debugger {
    TileSession *session;
    TileProgram *program;
    uint64_t seed;
    TILE_LIST(const char *) given; /* --command */
    size_t next_given;
    TILE_LIST(TileDebugStop) stops;
    unsigned last_number;
    Going going;
    int64_t depth;
    uint64_t times; /* that `step` and `next` still go */
    bool chosen;    /* a program: it stops in no other one */
    unsigned chosen_rank;
    int64_t program_at[TILE_DEBUG_MOST_RANK];
    TILE_LIST(const TileOp *) frames; /* the statement under way in each function, the kernel's first */
    size_t frame;                     /* that names are read in */
    const TileExecutor *executor;
    bool failed, quit, mistaken, asked;
    TileArena *arena; /* of the command */
    char *line;       /* getline's */
    size_t line_size;
} Debugger;

static const TileOp *here(const Debugger *d) { return d->frames.items[d->frame]; }

static const TileOp *innermost(const Debugger *d) { return d->frames.items[d->frames.count - 1]; }

/* A mistake in a command. */
static bool complain(Debugger *d, const char *format, const char *words) {
    printf(format, words);
    putchar('\n');
    d->mistaken = true;
    return false;
}

/* ---- where it is ---- */

static void print_program(const Debugger *d) {
    TileBlock *body;
    int64_t at[TILE_DEBUG_MOST_RANK], count[TILE_DEBUG_MOST_RANK];
    unsigned rank = tile_debug_program(d->executor, innermost(d), &body, at, count);
    fputs("program ", stdout);
    for (unsigned i = 0; i < rank; i++) printf("%s%lld", i ? ", " : rank > 1 ? "(" : "", (long long)at[i]);
    fputs(rank > 1 ? ") of (" : " of ", stdout);
    for (unsigned i = 0; i < rank; i++) printf("%s%lld", i ? ", " : "", (long long)count[i]);
    fputs(rank > 1 ? ")" : "", stdout);
}

static void print_frame(const Debugger *d, size_t frame) {
    const TileOp *statement = d->frames.items[frame];
    TileDebugPlace place = tile_debug_place(statement);
    printf("#%zu %s at %s:%u", d->frames.count - 1 - frame, tile_debug_function(statement, d->arena), place.file,
           place.line);
    if (frame == 0) {
        fputs(", ", stdout);
        print_program(d);
    }
    putchar('\n');
}

static void print_line(const Debugger *d) {
    TileDebugPlace place = tile_debug_place(here(d));
    tile_debug_list(d->arena, place.file, place.line, place.line, place.line);
}

static void print_stop(const Debugger *d, const char *why) {
    TileDebugPlace place = tile_debug_place(here(d));
    printf("%s%s at %s:%u, ", why, tile_debug_function(here(d), d->arena), place.file, place.line);
    print_program(d);
    putchar('\n');
    print_line(d);
}

/* ---- breakpoints and watches ---- */

static bool command_break(Debugger *d, const char *words) {
    TileText error = {.arena = d->arena};
    TileDebugStop stop = {0};
    if (!*words) {
        for (size_t i = 0; i < d->stops.count; i++) {
            const TileDebugStop *one = &d->stops.items[i];
            if (one->expression)
                printf("%u: watches %s of %s\n", one->number, one->expression, one->function);
            else
                printf("%u: stops at %s:%u\n", one->number, one->place.file, one->place.line);
        }
        return false;
    }
    if (!tile_debug_find_place(innermost(d), words, d->arena, &stop.place, &error))
        return complain(d, "%s", tile_text_get(&error));
    stop.number = ++d->last_number;
    tile_list_push(d->session->arena, &d->stops, stop);
    printf("breakpoint %u at %s:%u\n", stop.number, stop.place.file, stop.place.line);
    return false;
}

static bool command_watch(Debugger *d, const char *words) {
    TileText error = {.arena = d->arena};
    TileDebugStop stop = {.has_value = true, .arena = tile_arena_create(NULL)};
    bool read = stop.arena && tile_debug_read(d->executor, here(d), words, stop.arena, &stop.value, &error);
    if (!read) {
        if (stop.arena) tile_arena_destroy(stop.arena);
        return complain(d, "%s", stop.arena ? tile_text_get(&error) : "out of memory");
    }
    stop.number = ++d->last_number;
    stop.expression = tile_arena_string(d->session->arena, words, strlen(words));
    stop.function = tile_debug_function(here(d), d->session->arena);
    tile_list_push(d->session->arena, &d->stops, stop);
    printf("watch %u of %s\n", stop.number, stop.expression);
    return false;
}

static bool command_delete(Debugger *d, const char *words) {
    size_t kept = 0, count = d->stops.count;
    for (size_t i = 0; i < count; i++) {
        TileDebugStop stop = d->stops.items[i];
        if (*words && stop.number != strtoul(words, NULL, 10))
            d->stops.items[kept++] = stop;
        else if (stop.arena)
            tile_arena_destroy(stop.arena);
    }
    d->stops.count = kept;
    return kept == count && *words ? complain(d, "there is no breakpoint or watch %s", words) : false;
}

/* Reads it anew; true if it has changed, which is said. Where the name is not in scope, as in another iteration before
 * it is bound, nothing has changed. */
static bool has_changed(Debugger *d, TileDebugStop *stop) {
    TileText error = {.arena = d->arena}, text = {.arena = d->arena};
    if (strcmp(stop->function, tile_debug_function(innermost(d), d->arena)) != 0) return false;
    TileArena *arena = tile_arena_create(NULL);
    TileDebugValue now;
    bool read = arena && tile_debug_read(d->executor, innermost(d), stop->expression, arena, &now, &error);
    bool changed = read && tile_debug_differ(&stop->value, &now);
    if (!changed) {
        if (arena) tile_arena_destroy(arena);
        return false;
    }
    tile_debug_print(&text, stop->expression, &stop->value, false);
    tile_text_add(&text, "\nis now\n");
    tile_debug_print(&text, stop->expression, &now, false);
    printf("watch %u: %s\n", stop->number, tile_text_get(&text));
    tile_arena_destroy(stop->arena);
    stop->arena = arena;
    stop->value = now;
    return true;
}

/* ---- looking ---- */

static bool command_print(Debugger *d, const char *words) {
    TileText error = {.arena = d->arena}, text = {.arena = d->arena};
    TileDebugValue value;
    if (!*words) return complain(d, "print %s", "needs a name, as in `print x` or `print x[0, :4]`");
    if (!tile_debug_read(d->executor, here(d), words, d->arena, &value, &error))
        return complain(d, "%s", tile_text_get(&error));
    tile_debug_print(&text, words, &value, d->session->verbose);
    puts(tile_text_get(&text));
    return false;
}

static bool command_locals(Debugger *d, const char *words) {
    TileDebugNames names = {0};
    tile_debug_names(d->executor, here(d), d->arena, &names);
    for (size_t i = 0; i < names.count; i++) command_print(d, names.items[i].text);
    return false;
}

static bool command_where(Debugger *d, const char *words) {
    for (size_t i = d->frames.count; i-- > 0;) print_frame(d, i);
    return false;
}

static bool command_frame(Debugger *d, const char *words) {
    unsigned long number = strtoul(words, NULL, 10);
    if (number >= d->frames.count) return complain(d, "there is no frame %s; `where` lists them", words);
    d->frame = d->frames.count - 1 - number;
    print_frame(d, d->frame);
    print_line(d);
    return false;
}

static bool command_list(Debugger *d, const char *words) {
    enum { AROUND = 5 };
    TileDebugPlace place = tile_debug_place(here(d));
    uint32_t middle = *words ? (uint32_t)strtoul(words, NULL, 10) : place.line;
    uint32_t from = middle > AROUND ? middle - AROUND : 1;
    if (!tile_debug_list(d->arena, place.file, from, middle + AROUND, place.line))
        return complain(d, "the text of %s is not there", place.file);
    return false;
}

/* ---- going on ---- */

static bool go(Debugger *d, Going going, const char *words) {
    if (d->failed)
        return complain(d, "%s", "the kernel has failed: its values can be looked at, but it goes no further");
    d->going = going;
    d->depth = tile_op_integer(innermost(d), TILE_ATTRIBUTE_DEPTH, 0);
    d->times = *words ? strtoull(words, NULL, 10) : 1;
    return true;
}

static bool command_continue(Debugger *d, const char *words) { return go(d, GOING_ON, ""); }
static bool command_step(Debugger *d, const char *words) { return go(d, GOING_STEP, words); }
static bool command_next(Debugger *d, const char *words) { return go(d, GOING_NEXT, words); }

static bool command_finish(Debugger *d, const char *words) {
    if (d->frames.count == 1) return complain(d, "%s", "this is the kernel itself: `continue` goes on to a breakpoint");
    return go(d, GOING_FINISH, "");
}

static bool read_program(Debugger *d, const char *words) {
    d->chosen_rank = 0;
    for (char *end; *words; words = end) {
        while (isspace((unsigned char)*words) || *words == ',') words++;
        if (!*words) break;
        int64_t index = strtoll(words, &end, 10);
        if (end == words || d->chosen_rank == TILE_DEBUG_MOST_RANK) return false;
        d->program_at[d->chosen_rank++] = index;
    }
    return d->chosen = d->chosen_rank > 0;
}

static bool is_chosen(const Debugger *d) {
    TileBlock *body;
    int64_t at[TILE_DEBUG_MOST_RANK], count[TILE_DEBUG_MOST_RANK];
    unsigned rank = tile_debug_program(d->executor, innermost(d), &body, at, count);
    return !d->chosen || (rank == d->chosen_rank && memcmp(at, d->program_at, rank * sizeof *at) == 0);
}

static bool command_program(Debugger *d, const char *words) {
    if (!*words || strcmp(words, "all") == 0) {
        d->chosen = d->chosen && !*words;
        print_program(d);
        puts(d->chosen ? ", and stops in no other one" : "");
        return false;
    }
    if (!read_program(d, words))
        return complain(d, "'%s' is no program: give an index for each name of the grid", words);
    return is_chosen(d) ? false : go(d, GOING_ENTER, "");
}

static bool command_quit(Debugger *d, const char *words) { return d->quit = true; }

static bool command_help(Debugger *d, const char *words);

/* `run` returns true where the kernel goes on. */
static const struct {
    const char *name, *brief, *arguments, *help;
    bool (*run)(Debugger *d, const char *words);
} commands[] = {
    {"break", "b", "[LINE|FILE:LINE|FUNCTION]", "stops there, in any program; alone: lists breakpoints and watches",
     command_break},
    {"watch", "w", "NAME", "stops where the value changes, also of elements, as in y[0, :4]", command_watch},
    {"delete", "d", "[N]", "removes a breakpoint or watch; alone: all", command_delete},
    {"step", "s", "[N]", "to the next statement, into calls", command_step},
    {"next", "n", "[N]", "to the next statement, over calls", command_next},
    {"finish", "f", "", "out of this function", command_finish},
    {"continue", "c", "", "to the next breakpoint or change", command_continue},
    {"program", "", "[I, J, ..|all]", "to this program of the grid, and stops in no other one", command_program},
    {"print", "p", "NAME", "a scalar, range, tile or tensor, or a part, as in v[0, :4]", command_print},
    {"locals", "", "", "all names in scope", command_locals},
    {"where", "bt", "", "the functions under way, and the program", command_where},
    {"frame", "", "N", "reads names in this function of `where`", command_frame},
    {"list", "l", "[LINE]", "the source around this place", command_list},
    {"help", "h", "", "lists the commands", command_help},
    {"quit", "q", "", "ends the kernel", command_quit},
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static bool command_help(Debugger *d, const char *words) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s %s", commands[i].name, *commands[i].brief ? ", " : "", commands[i].brief,
                 commands[i].arguments);
        printf("%-36s %s\n", left, commands[i].help);
    }
    return false;
}

/* ---- reading commands ---- */

/* NULL: there are no more. */
static const char *read_command(Debugger *d) {
    bool terminal = isatty(STDIN_FILENO);
    if (d->next_given < d->given.count) return d->given.items[d->next_given++];
    if (d->given.count && !terminal) return NULL;
    if (terminal) fputs("(tile) ", stdout);
    fflush(stdout);
    return getline(&d->line, &d->line_size, stdin) < 0 ? NULL : d->line;
}

static bool run_command(Debugger *d, const char *text) {
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1])) length--;
    const char *line = tile_arena_string(d->arena, text, length);
    size_t word = strcspn(line, " \t");
    const char *rest = line + word + strspn(line + word, " \t");
    if (!*line || *line == '#') return false;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        bool is_name = strlen(commands[i].name) == word && strncmp(line, commands[i].name, word) == 0;
        bool is_brief = strlen(commands[i].brief) == word && strncmp(line, commands[i].brief, word) == 0;
        if (is_name || is_brief) return commands[i].run(d, rest);
    }
    return complain(d, "there is no command '%s'; `help` lists them", line);
}

/* Until a command lets the kernel go on. */
static void ask(Debugger *d) {
    bool goes = false;
    d->asked = true;
    d->frame = d->frames.count - 1;
    while (!goes) {
        const char *text = read_command(d);
        goes = text ? run_command(d, text) : command_quit(d, "");
    }
}

/* ---- what the executor tells ---- */

/* Is this statement where the last command wanted to go? */
static bool has_arrived(Debugger *d, int64_t depth) {
    bool arrived = d->going == GOING_STEP || d->going == GOING_ENTER || (d->going == GOING_NEXT && depth <= d->depth) ||
                   (d->going == GOING_FINISH && depth < d->depth);
    return arrived && (d->going == GOING_FINISH || d->going == GOING_ENTER || --d->times == 0);
}

static void look(Debugger *d, int64_t depth) {
    const TileDebugStop *breakpoint = NULL;
    bool stops = has_arrived(d, depth);
    for (size_t i = 0; i < d->stops.count; i++) {
        TileDebugStop *stop = &d->stops.items[i];
        if (stop->expression)
            stops |= has_changed(d, stop);
        else if (tile_debug_is_at(stop->place, tile_debug_place(innermost(d))))
            breakpoint = stop;
    }
    if (!stops && !breakpoint) return;
    d->frame = d->frames.count - 1;
    print_stop(d, breakpoint ? tile_arena_format(d->arena, "breakpoint %u, ", breakpoint->number) : "");
    ask(d);
}

static bool see_statement(void *host, const TileExecutor *executor, const TileOp *statement) {
    Debugger *d = host;
    size_t depth = (size_t)tile_op_integer(statement, TILE_ATTRIBUTE_DEPTH, 0);
    d->executor = executor;
    if (depth < d->frames.count) d->frames.count = depth;
    tile_list_push(d->session->arena, &d->frames, statement);
    if (!is_chosen(d)) return true;
    if (!(d->arena = tile_arena_create(NULL))) return false;
    jmp_buf guard;
    if (setjmp(guard)) {
        fputs("out of memory\n", stdout);
        d->quit = true;
    } else {
        tile_arena_set_guard(d->arena, &guard);
        look(d, (int64_t)depth);
    }
    tile_arena_destroy(d->arena);
    return !d->quit;
}

static void see_failure(void *host, const TileExecutor *executor, TileExecution state) {
    Debugger *d = host;
    if (!d->frames.count || !(d->arena = tile_arena_create(NULL))) return;
    d->executor = executor;
    d->failed = true;
    d->frame = d->frames.count - 1;
    jmp_buf guard;
    if (!setjmp(guard)) {
        tile_arena_set_guard(d->arena, &guard);
        printf("failed: %s\n", tile_executor_message(executor));
        print_stop(d, "");
        ask(d);
    }
    tile_arena_destroy(d->arena);
}

/* ---- the command ---- */

static int read_words(Debugger *d, char **words, int count) {
    for (int i = 0; i < count; i++) {
        const char *command = tile_option_value(words[i], "--command"),
                   *program = tile_option_value(words[i], "--program");
        const char *seed = tile_option_value(words[i], "--seed");
        bool taken = true;
        int failed = 0;
        char *end = NULL;
        if (seed) d->seed = strtoull(seed, &end, 0);
        if (command)
            tile_list_push(d->session->arena, &d->given, command);
        else if (program && !read_program(d, program))
            return tile_session_fail(d->session, TILE_INVALID_ARGUMENT,
                                     "--program needs an index for each name of the grid, as in 2,0");
        else if (seed && (end == seed || *end))
            return tile_session_fail(d->session, TILE_INVALID_ARGUMENT, "--seed needs a number");
        else if (!program && !seed)
            failed = tile_program_word(d->program, words[i], &taken);
        if (failed) return failed;
        if (!taken) return tile_session_unknown(d->session, words[i]);
    }
    return 0;
}

static int launch(Debugger *d) {
    TileError error = {0};
    TileReport *report = NULL;
    TileLaunchOptions options = {.struct_size = sizeof options, .error = &error, .report = &report};
    tile_status status =
        tile_launch(d->program->kernel, tile_program_args(d->program), d->program->argument_count, &options);
    fflush(stdout);
    if (status != TILE_OK) return tile_program_refuse(d->program, status, &error, report);
    if (!d->quit) puts(d->asked ? "the kernel has ended" : "the kernel has ended, and stopped nowhere");
    int failed = tile_session_finish(d->session);
    return failed ? failed : d->mistaken && !isatty(STDIN_FILENO);
}

static int debug(Debugger *d) {
    TileExecutionObserver observer = {.statement = see_statement, .failure = see_failure, .host = d};
    int failed = tile_program_open(d->program, d->session);
    if (failed) return failed;
    tile_compiler_observe(d->program->compiler, &observer);
    failed = tile_program_load(d->program, d->seed);
    if (!failed) failed = launch(d);
    tile_compiler_observe(d->program->compiler, NULL);
    for (size_t i = 0; i < d->stops.count; i++)
        if (d->stops.items[i].arena) tile_arena_destroy(d->stops.items[i].arena);
    return failed;
}

int tile_command_debug(TileSession *session, char **words, int count) {
    TileProgram program = {.session = session, .options.target = "interp"};
    Debugger d = {.session = session, .program = &program, .going = GOING_ENTER};
    int failed = read_words(&d, words, count);
    if (!failed && strcmp(program.options.target, "interp") != 0)
        failed = tile_session_fail(session, TILE_INVALID_ARGUMENT,
                                   "the debugger runs the reference interpreter; gdb shows code of `tilec build -g`");
    if (!failed) failed = debug(&d);
    tile_program_close(&program);
    free(d.line);
    return failed;
}
