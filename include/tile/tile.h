/* Compiling .tile text into a library of kernels that tile/launch.h runs.
 *
 *     TileCompiler *compiler;
 *     TileLibrary *library;
 *     TileKernel *softmax;
 *     TILE_TRY(tile_compiler_create(NULL, &compiler));
 *     TILE_TRY(tile_compile(compiler, text, strlen(text), NULL, &library, NULL));
 *     TILE_TRY(tile_library_kernel(library, "softmax", &softmax));
 *     TileArg args[] = {TILE_TENSOR(&x), TILE_TENSOR(&y)};
 *     TILE_TRY(tile_launch(softmax, args, 2, NULL));
 */
#ifndef TILE_TILE_H
#define TILE_TILE_H

#include "tile/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What compilations share. Any number of threads may compile with one compiler at once. */
typedef struct TileCompiler TileCompiler;

/* A pass of the caller's own: tile/pass.h. */
typedef struct TilePass TilePass;

/* A limit on the compiler's work that differs from the default: a name of tile_limit_at. */
typedef struct TileLimit {
    const char *name;
    uint64_t value;
} TileLimit;

/* Members after struct_size may be left zero. */
typedef struct TileCompilerOptions {
    size_t struct_size;
    const char *const *import_paths; /* searched for imports after the importing file's folder, before the stdlib */
    size_t import_path_count;
    const TileSettings *settings;  /* copied; NULL: those of the environment */
    const TilePass *const *passes; /* copied, except what `host` points to */
    size_t pass_count;
    const TileLimit *limits;
    size_t limit_count;
} TileCompilerOptions;

/* options may be NULL. TILE_INVALID_ARGUMENT: a pass is invalid, for a reason that tile_compiler_add_pass reports, or
 * no limit has the name. TILE_OUT_OF_MEMORY. */
TILE_API tile_status tile_compiler_create(const TileCompilerOptions *options, TileCompiler **compiler) TILE_MUST_CHECK;
/* Its libraries stay usable: they keep what they need. NULL is allowed. */
TILE_API void tile_compiler_destroy(TileCompiler *compiler);

/* NAME=value: a type parameter ("T", "bf16"), a constant or tune parameter ("BM", "128"), a function parameter
 * ("epi", "bias_gelu"), a static dimension ("D", "64"). */
typedef struct TileSetting {
    const char *name, *value;
} TileSetting;

enum {
    TILE_COMPILE_NO_CONTRACT = 1, /* a * b + c is rounded twice instead of fused */
    TILE_COMPILE_DEBUG = 2,       /* assertions hold */
    TILE_COMPILE_EMULATE = 4      /* runs the target's last machine form on the executor instead of as native code */
};

/* Members after struct_size may be left zero. */
typedef struct TileCompileOptions {
    size_t struct_size;
    const char *file;   /* names the text in diagnostics; imports are looked up beside it; NULL: "<text>" */
    const char *target; /* a name of tile_target_at; NULL: "cpu", the best of this machine */
    const TileSetting *settings;
    size_t setting_count;
    uint32_t flags;
} TileCompileOptions;

/* Checks the text, and makes a library of its kernels. Machine code is made when a kernel is first launched or
 * prepared with arguments of a new kind: type parameters that no setting decides take the types of the arguments,
 * static dimensions their extents.
 *
 * text: UTF-8, `length` bytes, not kept. options may be NULL. *library is set on success only. *report (report may
 * be NULL) is set whenever there is something to say, also warnings on success, else to NULL; the caller destroys it.
 *
 * TILE_INVALID_SOURCE: the report has errors, a missing import among them. TILE_INVALID_ARGUMENT: unknown target, or a
 * setting that does not fit. TILE_UNAVAILABLE: the target cannot run here. TILE_OUT_OF_MEMORY. TILE_INTERNAL: a bug of
 * ours; the report names a file that shows it. */
TILE_API tile_status tile_compile(TileCompiler *compiler, const char *text, size_t length,
                                  const TileCompileOptions *options, TileLibrary **library,
                                  TileReport **report) TILE_MUST_CHECK;

/* The same for a file; TILE_NOT_FOUND or TILE_IO if it cannot be read. */
TILE_API tile_status tile_compile_file(TileCompiler *compiler, const char *path, const TileCompileOptions *options,
                                       TileLibrary **library, TileReport **report) TILE_MUST_CHECK;

/* A file of the standard library, which is part of libtile: texts may import it, and tile_compile takes it as any text,
 * with the path as its file. */
typedef struct TileStandardText {
    const char *path; /* "softmax.tile" */
    const char *text;
    size_t length;
} TileStandardText;
/* All files, in order; false past the end. Texts are static. */
TILE_API bool tile_standard_text_at(size_t index, TileStandardText *text);

/* ---- the stages of a compilation, as text ---- */

typedef enum TileStage {
    TILE_STAGE_TOKENS,
    TILE_STAGE_AST,
    TILE_STAGE_TILE,    /* tile form, after the shared passes */
    TILE_STAGE_MACHINE, /* machine form, after the target's passes */
    TILE_STAGE_MLIR,
    TILE_STAGE_LLVM,
    TILE_STAGE_ASM,
    TILE_STAGE_PTX, /* of GPU targets */
    TILE_STAGE_COUNT
} TileStage;

/* "tokens", "ast", ..; NULL past the end. */
TILE_API const char *tile_stage_name(TileStage stage);

typedef struct TileEmitOptions {
    size_t struct_size;
    TileStage stage;
    const char *kernel; /* may be NULL where the text has one kernel */
    const char *after;  /* TILE and MACHINE: the state after this pass; NULL: after the last */
    bool general;       /* code for any strides; otherwise for contiguous tensors on 64-byte boundaries */
} TileEmitOptions;

/* The text of a stage; destroy it with tile_string_destroy. From the tile form on, every type parameter and static
 * dimension needs a setting. Errors as for tile_compile, and TILE_INVALID_ARGUMENT for an unknown kernel or pass. */
TILE_API tile_status tile_emit_stage(TileCompiler *compiler, const char *text, size_t length,
                                     const TileCompileOptions *options, const TileEmitOptions *emit, char **output,
                                     TileReport **report) TILE_MUST_CHECK;
TILE_API void tile_string_destroy(char *string);

/* ---- limits ---- */

typedef struct TileLimitInfo {
    const char *name;   /* "machine-operations", .. */
    const char *counts; /* what it counts, in words */
    uint64_t usual;
} TileLimitInfo;

/* All limits that may be set, in order; false past the end. Texts are static. Exceeding a limit is an error in the
 * report, with its location. */
TILE_API bool tile_limit_at(size_t index, TileLimitInfo *info);

/* ---- targets ---- */

typedef struct TileTargetInfo {
    const char *name;        /* "cpu", "avx512", .. */
    const char *description; /* one line */
    bool usable;             /* can run here */
    const char *why_not;     /* NULL when usable */
} TileTargetInfo;

/* All targets, in order; false past the end. Texts are static. */
TILE_API bool tile_target_at(size_t index, TileTargetInfo *info);

#ifdef __cplusplus
}
#endif
#endif
