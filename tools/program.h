/* A kernel that a command works on: the file, its settings and its arguments by name. */
#ifndef TILE_TOOLS_PROGRAM_H
#define TILE_TOOLS_PROGRAM_H

#include "base/list.h"
#include "tools/session.h"
#include "tools/source.h"

typedef struct TileNamedValue {
    const char *name, *value;
} TileNamedValue;

/* An argument of the kernel, in the order of its parameters. */
typedef struct TileProgramArgument {
    TileParameterInfo info;
    const char *text; /* as given; NULL while missing */
    TileSource source;
    bool has_data;        /* tensors: view is set */
    TileArray base, view; /* tensors */
    void *on_device;      /* tensors of GPU kernels: a copy of the base's storage */
    DLTensor tensor;
    int64_t shape[TILE_MAX_RANK], strides[TILE_MAX_RANK]; /* in elements, behind `tensor` */
    TileArg arg;
} TileProgramArgument;

typedef struct TileProgram {
    TileSession *session;
    const char *path, *kernel_name; /* kernel_name may be NULL */
    TileCompileOptions options;
    uint64_t schedule_seed; /* of the executor: see tile_compiler_schedule */
    bool mark_padding;      /* likewise, see tile_compiler_mark_padding */
    TILE_LIST(const char *) plugins; /* shared objects with passes */
    TILE_LIST(TileNamedValue) given; /* NAME=value words, not yet classified */
    TILE_LIST(TileSetting) settings;
    TileCompiler *compiler;
    TileLibrary *library;
    TileKernel *kernel;
    TileProgramArgument *arguments;
    size_t argument_count;
} TileProgram;

/* Reads one word: FILE[:KERNEL] (the first), NAME=value, --target=, --load-pass=, --debug or --no-contract. *taken says whether it
 * was one of these. Returns an exit status. */
int tile_program_word(TileProgram *program, char *word, bool *taken);
/* Creates the compiler, with the requested passes. Returns an exit status. */
int tile_program_compiler(TileProgram *program);
/* Compiles, finds the kernel, and classifies words as arguments or settings. Returns an exit status. */
int tile_program_open(TileProgram *program, TileSession *session);
/* Creates all arguments: inputs are loaded, scalars parsed, results allocated. Returns an exit status. */
int tile_program_load(TileProgram *program, uint64_t seed);
/* Prints the parameters of the library's kernels as JSON: `emit json`. Returns an exit status. */
int tile_program_describe(TileProgram *program);
/* The arguments for tile_launch, in the session's arena. */
TileArg *tile_program_args(const TileProgram *program);
/* Sets the argument's tensor to a view of an array. */
void tile_program_bind(TileProgramArgument *argument, const TileArray *view);
/* Fails with a launch's report, which is released; errors in arguments are shown with the signature. */
int tile_program_refuse(TileProgram *program, tile_status status, const TileError *error, TileReport *report);
void tile_program_close(TileProgram *program);

/* device.c, for GPU kernels: copies the arguments to the GPU, for the kernel to use; copies back what it wrote; frees
 * the copies, also after a failure. */
tile_status tile_program_send(TileProgram *program, TileProgramArgument *arguments, TileError *error);
tile_status tile_program_fetch(TileProgram *program, TileProgramArgument *arguments, TileError *error);
void tile_program_forget(TileProgram *program, TileProgramArgument *arguments);

static inline bool tile_argument_is_written(const TileProgramArgument *argument) {
    return argument->info.kind == TILE_PARAMETER_TENSOR && argument->info.access != TILE_PARAMETER_IN;
}

#endif
