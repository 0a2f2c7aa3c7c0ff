/* tilec: the command table. Each command is one file. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tools/session.h"

/* The build gives the version as bare digits. */
#define VERSION_TEXT(version) VERSION_WORDS(version)
#define VERSION_WORDS(version) #version

static const TileCommand commands[] = {
    {"run", "FILE[:KERNEL] ARG=.. [options]", "compile a kernel and run it on data",
     "Arguments, by parameter name and in any order:\n"
     "  x=a.npy                 a NumPy file (v1 to v3); y=out.npy for a result, whose shape and type are inferred\n"
     "  x=a.npy[::2, ::-1]      a view; also a.npy.T, and b.npy*[64,:] for a broadcast\n"
     "  x=a.npy:bf16            names the element type of a u2 or u1 file\n"
     "  y=out.npy:f32[10,10]    a result whose type or shape nothing else decides\n"
     "  x=rand:f32[4096,1000]   made-up data: rand randn zeros ones arange, randint:i32[9](lo,hi)\n"
     "  y=@                     a result that is not kept\n"
     "  scale=0.5 causal=true   scalars\n"
     "  T=bf16 BM=128           type, constant, function and tune parameters (const.NAME=.. where a name is both)\n"
     "Options:\n"
     "  --target=T              cpu (default), avx2, avx512, sve, interp; see `tilec backends`\n"
     "  --check                 compares the results with the reference interpreter's\n"
     "  --repeat=N              runs N times more and prints the median time\n"
     "  --seed=N                seed of rand, randn and randint (default 0)\n"
     "  --out NAME=FILE         writes an inout argument to FILE instead of in place\n"
     "  --emulate               runs the target's machine form on the executor: any target, also one that is not here\n"
     "  --debug, --no-contract  a build that checks assertions; a * b + c rounds twice\n",
     tile_command_run},
    {"build", "FILE.. -o OUT [--header H] [options]", "compile kernels ahead of time, for linking",
     "Makes one object with code for several CPU targets, chosen when it runs, and a C header with a function for "
     "each\n"
     "export. It links with libtile_launch alone. See docs/linking.md.\n"
     "Options:\n"
     "  -o OUT               the object (default: FILE with the ending .o)\n"
     "  --header H           the C header\n"
     "  --export 'k[f32]'    what to build, instead of the files' export items; `as NAME`, `k[f32, BM = 4]`\n"
     "  --variant TEXT       code for arguments that are: general; contiguous; x: align 16; N % 16 == 0; D = 64;\n"
     "                       several joined by commas (default: contiguous, and general)\n"
     "  --no-general         only the variants asked for\n"
     "  --target=LIST        CPU targets (default avx2,avx512)\n"
     "  -shared              a shared object, to be loaded as a plugin\n"
     "  --bare               only the code of the grids, for those who launch by themselves; see docs/abi.md\n"
     "  --emit=json          describes the exports on standard output\n"
     "  -g, -MD, -MF FILE    line tables; a make file of what was read, beside OUT or in FILE\n"
     "  --debug, --no-contract, NAME=value   as for `tilec run`\n",
     tile_command_build},
    {"emit", "KIND FILE[:KERNEL] [NAME=value..] [options]", "print a stage of the compilation",
     "KIND is tokens, ast, tile, machine, mlir, llvm, asm or, of GPU targets, ptx. From tile on, type parameters and static dimensions\n"
     "need a value: `tilec emit asm softmax.tile T=f32`. KIND json describes the kernels and their parameters.\n"
     "Options:\n"
     "  --target=T     see `tilec backends`\n"
     "  --after=PASS   tile and machine: the state after this pass; see `tilec help passes`\n"
     "  --general      code for any strides instead of for contiguous tensors\n"
     "  --debug, --no-contract\n",
     tile_command_emit},
    {"check", "FILE..", "report errors and warnings only", "Prints nothing where all is well.\n", tile_command_check},
    {"test", "FILE.. [options]", "run the test blocks of files",
     "Prints a line for each test and what does not hold, with the values.\n"
     "Options:\n"
     "  --target=LIST  targets with commas between (default interp,cpu); see `tilec backends`\n"
     "  --filter=TEXT  only tests whose names contain the text\n"
     "  --debug, --no-contract\n",
     tile_command_test},
    {"backends", "", "list what can run here, and why not", "", tile_command_backends},
    {"help", "[COMMAND | passes | ops]", "explain a command, list the passes or the operations", "", tile_command_help},
};

const TileCommand *tile_commands(size_t *count) {
    *count = sizeof commands / sizeof *commands;
    return commands;
}

/* Takes the session's own options out of the words. */
static int take_options(TileSession *session, char **words, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], "-q") == 0)
            session->quiet = true;
        else if (strcmp(words[i], "-v") == 0)
            session->verbose = true;
        else if (strcmp(words[i], "--error-format=json") == 0)
            session->json = true;
        else if (strcmp(words[i], "--error-format=text") == 0)
            session->json = false;
        else
            words[kept++] = words[i];
    }
    return kept;
}

static int run_command(TileSession *session, char **words, int count) {
    if (count == 0 || strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0)
        return tile_command_help(session, words, 0) | (count == 0);
    if (strcmp(words[0], "--version") == 0) {
        printf("tilec " VERSION_TEXT(TILE_VERSION) "\n");
        return tile_session_finish(session);
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(words[0], commands[i].name) != 0) continue;
        session->command = commands[i].name;
        if (count > 1 && strcmp(words[1], "--help") == 0) return tile_command_help(session, words, 1);
        return commands[i].run(session, words + 1, count - 1);
    }
    return tile_session_fail(session, TILE_INVALID_ARGUMENT, "unknown command '%s'; see `tilec help`", words[0]);
}

int main(int argc, char **argv) {
    /* A full or closed output is an error that write() reports, not a signal that ends us in the middle of a file. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    TileSession session = {.arena = tile_arena_create(NULL), .command = "help"};
    jmp_buf guard;
    if (!session.arena || setjmp(guard)) {
        fputs("tilec: error: out of memory\n", stderr);
        return tile_status_exit_code(TILE_OUT_OF_MEMORY);
    }
    tile_arena_set_guard(session.arena, &guard);
    int count = take_options(&session, argv + 1, argc - 1);
    int status = run_command(&session, argv + 1, count);
    tile_arena_destroy(session.arena);
    return status;
}
