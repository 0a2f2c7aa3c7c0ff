/* tilec: the command table. Each command is one file. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/stack.h"
#include "tools/session.h"
#include "tools/unfinished.h"

#define TARGET_OPTION                                                                                                  \
    { "--target", "TARGET", "what to compile for: cpu (the default), .. ; `tilec backends` lists them" }
#define PLUGIN_OPTION                                                                                                  \
    { "--load-pass", "FILE", "a shared object with passes, which run too; docs/passes-of-your-own.md" }
#define BUILD_OPTIONS                                                                                                  \
    {"--debug", NULL, "a build that checks assertions"}, { "--no-contract", NULL, "rounds a * b + c twice, no fma" }

static const TileOption run_options[] = {
    TARGET_OPTION,
    {"--check", NULL, "compares the results with the reference interpreter's: bit for bit, on GPUs as near as their order of sums allows"},
    {"--repeat", "N", "runs N times more, on copies of what is written, and prints the median time"},
    {"--seed", "N", "seed of rand, randn and randint; 0 if not given"},
    {"--out", " NAME=FILE", "writes the inout argument NAME to FILE instead of in place"},
    {"--emulate", NULL, "runs the target's machine form on the executor: any target, also one that is not here"},
    {"--schedule-seed", "N",
     "with --emulate: runs programs, blocks and threads in an order made from N; 0, as without it: one after the other"},
    {"--mark-padding", NULL,
     "with --emulate, of GPUs: an error where a result depends on what threads hold beyond a tile's own elements"},
    PLUGIN_OPTION,
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption emit_options[] = {
    TARGET_OPTION,
    {"--after", "PASS", "tile and machine: the state after this pass; `tilec help passes` lists them"},
    {"--general", NULL, "code for any strides instead of for contiguous tensors"},
    PLUGIN_OPTION,
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption build_options[] = {
    {"-o", " FILE", "the object, or an archive where FILE ends in .a; without it, the file's name with the ending .o"},
    {"--header", " FILE", "the C header to write"},
    {"--export", " 'k[f32]'", "what to build instead of the files' export items; also `as NAME`, `k[f32, BM = 4]`"},
    {"--variant", " TEXT",
     "arguments to have code for: general, contiguous, align 16, x: align 64, N % 16 == 0, D = 64, joined by `,`"},
    {"--no-general", NULL, "only the variants asked for"},
    {"--target", "LIST", "CPU and GPU targets with commas between; avx2,avx512 if not given"},
    {"--no-cubin", NULL, "GPU targets: PTX alone, also where ptxas is installed"},
    {"-shared", NULL, "a shared object, to be loaded as a plugin"},
    {"--bare", NULL, "only the code of the grids, for those who launch by themselves; see docs/abi.md"},
    {"--emit", "json", "describes the exports on the standard output"},
    {"-g", NULL, "lines and variables for debuggers; the code is the same"},
    {"-MD", NULL, "a make file of what was read, beside the object"},
    {"-MF", " FILE", "the make file goes to FILE"},
    PLUGIN_OPTION,
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption test_options[] = {
    {"--target", "LIST", "targets with commas between; interp,cpu if not given"},
    {"--filter", "TEXT", "only tests whose names contain the text; an error if there is none"},
    {"--emulate", NULL, "runs the targets' machine form on the executor: GPUs and CPUs that are not here, too"},
    {"--junit", "FILE", "writes the results as JUnit's XML, too: a case for each test and target"},
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption lsp_options[] = {
    {"--stdio", NULL, "standard input and output, which it takes anyway: some editors say so"},
    {NULL, NULL, NULL},
};

static const TileOption fmt_options[] = {
    {"--check", NULL, "changes nothing, lists the files that are not in the house style, and ends with 1 if there are"},
    {NULL, NULL, NULL},
};

static const TileOption doc_options[] = {
    {"-o", " FILE",
     "where the page goes, instead of the standard output; a folder gets a page for each file, and index.md"},
    {"--title", "TEXT", "the page's heading; `Reference` if not given, of one file its name"},
    {NULL, NULL, NULL},
};

#define FOLDER_HELP "Of a folder, all .tile files in it and in its folders are taken.\n"

/* Options of `run` and of the commands that measure. */
#define ARGUMENT_HELP                                                                                                  \
    "Arguments follow the file, by parameter name and in any order:\n"                                                \
    "  x=a.npy                a NumPy file (v1 to v3); y=out.npy for a result, whose shape and type are inferred\n"    \
    "  x=a.npy[::2, ::-1]     a view; also a.npy.T, and b.npy*[64,:] for a broadcast\n"                                \
    "  x=a.npy:bf16           names the element type of a u2 or u1 file\n"                                             \
    "  y=out.npy:f32[10,10]   a result whose type or shape nothing else decides\n"                                     \
    "  x=rand:f32[4096,1000]  made-up data: rand randn zeros ones arange, randint:i32[9](lo,hi)\n"                     \
    "  y=@                    a result that is not kept\n"                                                             \
    "  scale=0.5 causal=true  scalars\n"                                                                               \
    "  T=bf16 BM=128          type, constant, function and tune parameters (const.NAME=.. where a name is both)\n"

static const TileOption bench_options[] = {
    TARGET_OPTION,
    {"--against", "TARGET|FILE:KERNEL",
     "what to compare with, measured alternately: another target, or another kernel on the same arguments"},
    {"--seconds", "N", "how long to measure each size, in seconds; 1 if not given"},
    {"--seed", "N", "seed of rand, randn and randint; 0 if not given"},
    {"--format", "text|json", "the form of the results"},
    {"--plot", "FILE", "draws an SVG: a roofline for kernels with dots, and rates by size for what is swept"},
    {"--emulate", NULL, "runs the target's machine form on the executor: any target, also one that is not here"},
    PLUGIN_OPTION,
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption tune_options[] = {
    TARGET_OPTION,
    {"--seconds", "N", "ends after so many seconds, and the next run goes on; 600 if not given"},
    {"--again", NULL, "measures anew what was measured before"},
    {"--file", "FILE", "the tuning file, instead of the one beside the compiled code"},
    {"--list", NULL, "shows what the tuning file has"},
    {"--export", "FILE", "writes the tuning file's rows to FILE"},
    {"--import", "FILE", "adds the rows of FILE"},
    {"--pin", "FILE", "adds the rows of FILE, and no search replaces them"},
    {"--forget", "KERNEL", "removes the kernel's rows"},
    {"--seed", "N", "seed of rand, randn and randint; 0 if not given"},
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileOption debug_options[] = {
    {"--program", "N", "the program of the grid to stop in, an index for each name of the grid: 2 or 2,0"},
    {"--command", "TEXT", "a command instead of those from the standard input; may be repeated"},
    {"--seed", "N", "seed of rand, randn and randint; 0 if not given"},
    {"--debug", NULL, "checks divisors and shifts, too"},
    {"--no-contract", NULL, "rounds a * b + c twice, no fma"},
    {NULL, NULL, NULL},
};

static const TileOption explain_options[] = {
    TARGET_OPTION,
    {"--format", "text|json", "the form of what is said"},
    {"--html", "FILE", "one page for a browser: the source beside tile form, machine form and code, lines following one another"},
    {"--svg", "FILE", "GPUs: draws the layouts, with the thread and register of each element and its bank"},
    PLUGIN_OPTION,
    BUILD_OPTIONS,
    {NULL, NULL, NULL},
};

static const TileCommand commands[] = {
    {"run", "FILE[:KERNEL] ARG=..", "compile a kernel and run it on data",
     ARGUMENT_HELP "A file with one kernel needs no :KERNEL. Results are written whole or not at all.\n"
                   "Example: tilec run stdlib/softmax.tile:softmax x=rand:f32[4096,1000] y=@ --check\n",
     tile_command_run, run_options},
    {"new", "FILE", "write a kernel with its tests, to begin from",
     "FILE.tile must not be there yet; the kernel is named after it. What comes next is printed.\n", tile_command_new,
     NULL},
    {"check", "FILE|FOLDER.. [NAME=value..]", "report errors and warnings only",
     "Prints nothing where all is well. NAME=value is a type, constant, tune name or dimension: instances of the\n"
     "kernels that have the name are checked with it too.\n" FOLDER_HELP,
     tile_command_check, NULL},
    {"test", "FILE|FOLDER..", "run the test blocks of files",
     "Prints a line for each test and what does not hold, with the values. A file may have tests alone, of kernels that\n"
     "it imports.\n" FOLDER_HELP, tile_command_test, test_options},
    {"debug", "FILE[:KERNEL] ARG=..", "run a kernel statement by statement, and look at its values",
     ARGUMENT_HELP "Runs in the reference interpreter, one program after the other. It stops at the first statement, and\n"
                   "commands from the standard input say how it goes on; `help` lists them. Results are not written.\n"
                   "Example: tilec debug softmax.tile x=rand:f32[4,8] y=@\n",
     tile_command_debug, debug_options},
    {"bench", "FILE[:KERNEL] ARG=..", "measure a kernel beside another and beside the machine's limits",
     ARGUMENT_HELP
     "  N=1024                 a name to use as a size in brackets: x=rand:f32[64,N]; or a parameter, as above\n"
     "  N=1024,4096,16384      the same, measured with each value\n"
     "Prints the median time of a launch; GB/s, each element of the tensors counted once, and twice if it is inout; "
     "for\n"
     "kernels with dots GFLOP/s, 2 M N K for each dot over the lanes that exist and nothing for the other operations;\n"
     "and the share of the limit: the time that copying as many bytes or, if that is longer, as many f32 "
     "multiply-adds\n"
     "take on the same threads. The measurements alternate, so that a slow period of the machine affects all. Where caches serve a\n"
     "kernel better than a copy, or its dots are narrower than f32, the share may be above 100 %. Limits of GPUs are "
     "not\n"
     "measured. With TILE_NUM_THREADS=1, time is the thread's processor time. Nothing is written to files of "
     "arguments;\n"
     "data that a kernel updates in place carries over from run to run.\n"
     "Example: tilec bench stdlib/softmax.tile:softmax x=rand:f32[N,1000] y=@ N=16,256,4096 --plot=softmax.svg\n",
     tile_command_bench, bench_options},
    {"tune", "FILE[:KERNEL] ARG=..", "measure the choices of a tune clause and keep the best",
     ARGUMENT_HELP
     "Each point of the clause that `where` admits is compiled, and measured alternately with the best so far until the\n"
     "difference is certain or too small to matter. The best is kept for such types, static values, sizes up\n"
     "to the next power of two, and device, and later launches use it: see docs/tuning.md. Ctrl-C ends a\n"
     "search, and the next run goes on. GPUs are measured by their own clock. Nothing is written to files of\n"
     "arguments; data that a kernel updates in place carries over from run to run.\n"
     "Example: tilec tune stdlib/softmax.tile:softmax x=rand:f32[4096,1000] y=@\n",
     tile_command_tune, tune_options},
    {"explain", "FILE[:KERNEL] ARG=..", "say what was decided for a kernel, a target and arguments",
     ARGUMENT_HELP
     "Nothing runs, so any target will do. Says what the arguments offer and what of it the code relies on; on\n"
     "CPUs, for each loop without another one in it, its vectors, its loads and stores, and unrolling; on GPUs\n"
     "threads, shared memory, barriers, the layout of each tile, and how tiles pass from one to another, with\n"
     "predicted bank conflicts; registers and spills where ptxas of the CUDA toolkit is installed.\n"
     "Example: tilec explain stdlib/softmax.tile:softmax x=zeros:f32[64,1000] y=@ --target=sm_90a\n",
     tile_command_explain, explain_options},
    {"build", "FILE.. -o OUT [--header H] [NAME=value..]", "compile kernels ahead of time, for linking",
     "Makes one object with code for several CPUs and GPUs, chosen when it runs, and a C header with a function for "
     "each\n"
     "export. It links with libtile_launch alone. See docs/linking.md.\n",
     tile_command_build, build_options},
    {"fmt", "FILE|FOLDER..", "write files in the house style",
     "Spaces, indentation, braces, clauses and blank lines follow the style; comments stay where they are, and lines\n"
     "of more than 120 columns are broken. Formatting twice changes nothing more. A file with errors of syntax is\n"
     "left as it is. `-` formats the standard input to the standard output; -v lists the files that were changed.\n" FOLDER_HELP,
     tile_command_fmt, fmt_options},
    {"lsp", "", "serve an editor: diagnostics, hover, completion, renaming",
     "The language server protocol on standard input and output, for editors, which start it themselves: see\n"
     "docs/editors.md. It ends when the editor says so or closes its side.\n",
     tile_command_lsp, lsp_options},
    {"doc", "FILE..", "write reference pages from /// comments",
     "The page is Markdown: an index, and each kernel, function and constant in the order of the text, with its "
     "header,\n"
     "its /// comment, and what the header says of types, dimensions, requirements, tuning and exports. The /// lines\n"
     "at the top of a file describe the whole file if a blank line follows them. Comments are Markdown too.\n"
     "Example: tilec doc stdlib/*.tile --title='The standard library' -o stdlib.md\n",
     tile_command_doc, doc_options},
    {"emit", "KIND FILE[:KERNEL] [NAME=value..]", "print a stage of the compilation",
     "KIND is tokens, ast, tile, machine, mlir, llvm, asm or, of GPU targets, ptx. From tile on, type parameters and "
     "static dimensions\n"
     "need a value: `tilec emit asm softmax.tile T=f32`. KIND cubin is what ptxas of the CUDA toolkit makes of the "
     "PTX,\n"
     "where it is installed or TILE_PTXAS names it. KIND json describes the kernels and their parameters.\n",
     tile_command_emit, emit_options},
    {"backends", "", "list what can run here, and why not", "", tile_command_backends, NULL},
    {"cache", "[ls|clear|verify]", "list, empty or check the disk cache of compiled code",
     "Code that was compiled for a launch is kept in $TILE_CACHE_DIR, else $XDG_CACHE_HOME/tile, else ~/.cache/tile, "
     "and\n"
     "is loaded by later processes. Files beyond $TILE_CACHE_BYTES, 1 GiB if not given, go, the longest unused first.\n"
     "An empty TILE_CACHE_DIR keeps nothing. ls shows key, bytes, last use, kernel and target of each file; verify "
     "reads\n"
     "all of them and removes those that are damaged, which a launch would do too.\n",
     tile_command_cache, NULL},
    {"completions", "bash|zsh|fish", "print a shell's completions of tilec",
     "For this session: source <(tilec completions bash). Installed packages have them already.\n",
     tile_command_completions, NULL},
    {"man", "", "print the manual page", "To read it: tilec man | man -l -\n", tile_command_man, NULL},
    {"help", "[COMMAND|CODE|FUNCTION|codes|passes|ops|limits|words]",
     "explain a command, an error or a built-in function, list codes, passes, operations, limits or the language's words",
     "CODE is the word in brackets at the end of a message, as in `tilec help invalid-store`.\n", tile_command_help, NULL},
};



static bool take_colour(TileSession *session, const char *word) {
    static const char *const words[] = {"auto", "always", "never"};
    const char *value = tile_option_value(word, "--color");
    for (int i = 0; value && i < 3; i++)
        if (strcmp(value, words[i]) == 0) return session->colour = (TileColour)i, true;
    return false;
}

/* Takes the session's own options out of the words; their number is less then. Returns an exit status. */
static int take_options(TileSession *session, char **words, int *count) {
    int kept = 0, status = 0;
    for (int i = 0; i < *count && !status; i++) {
        const char *limit = tile_option_value(words[i], "--limit");
        const char *names = tile_option_value(words[i], "--rename");
        const char *between = tile_option_value(words[i], "--between");
        if (strcmp(words[i], "-q") == 0)
            session->quiet = true;
        else if (strcmp(words[i], "-v") == 0)
            session->verbose = true;
        else if (strcmp(words[i], "--error-format=json") == 0)
            session->json = true;
        else if (strcmp(words[i], "--error-format=text") == 0)
            session->json = false;
        else if (limit)
            status = tile_session_limit(session, limit);
        else if (names)
            status = tile_session_rename(session, names);
        else if (between)
            status = tile_session_between(session, between);
        else if (!take_colour(session, words[i]))
            words[kept++] = words[i];
    }
    *count = kept;
    return status;
}

static int run_command(TileSession *session, char **words, int count) {
    if (count == 0 || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)
        return tile_command_help(session, words, 0) | (count == 0);
    if (strcmp(words[0], "--version") == 0) {
        printf("tilec %s\n", tile_version());
        return tile_session_finish(session);
    }
    const TileCommand *command = tile_command_find(session, words[0]);
    if (command) {
        session->command = command->name;
        if (count > 1 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0))
            return tile_command_help(session, words, 1);
        return command->run(session, words + 1, count - 1);
    }
    command = tile_command_guess(session, words[0]);
    if (command)
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown command '%s'; is it `tilec %s`?", words[0],
                                 command->name);
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown command '%s'; see `tilec help`", words[0]);
}

/* Each instance of a kernel allocates and frees arenas: their pages are kept instead of returned to the system. */
static void keep_pages(void) {
#ifdef __GLIBC__
    enum { KEPT = 64 << 20 };
    mallopt(M_MMAP_THRESHOLD, KEPT / 2);
    mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
}

/* A command under way. */
typedef struct Program {
    int word_count;
    char **words;
    int status;
} Program;

static void run_program(void *state) {
    Program *program = state;
    TileSession session = {.arena = tile_arena_create(NULL),
                           .commands = commands,
                           .command_count = sizeof commands / sizeof *commands,
                           .command = "help",
                           .limits = tile_usual_limits};
    jmp_buf guard;
    if (!session.arena || setjmp(guard)) {
        tile_unfinished_remove();
        fputs("tilec: error: out of memory\n", stderr);
        program->status = tile_status_exit_code(TILE_OUT_OF_MEMORY);
        return;
    }
    tile_arena_set_guard(session.arena, &guard);
    int count = program->word_count;
    program->status = take_options(&session, program->words, &count);
    if (!program->status) program->status = run_command(&session, program->words, count);
    tile_arena_destroy(session.arena);
}

int main(int argc, char **argv) {
    Program program = {argc - 1, argv + 1, 0};
    keep_pages();
    /* A full or closed output is an error that write() reports, not a signal that ends us in the middle of a file. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    tile_unfinished_watch();
    if (tile_stack_run(run_program, &program)) return program.status;
    fputs("tilec: error: out of memory: there is none for a stack, and that of `ulimit -s` is too small\n", stderr);
    return tile_status_exit_code(TILE_OUT_OF_MEMORY);
}
