/* From a syntax tree to verified tile form.
 *
 * tile_check_module reports the errors of all kernels and functions of the file
 * tile_list_kernels the interfaces of kernels: generics, parameters, tune names
 * tile_lower_kernel one kernel, with its generics bound, to tile form
 * tile_lower_test a test, to a plan and the functions that it computes with
 *
 * A call returns TILE_INVALID_SOURCE if it reported an error of the text, TILE_INVALID_ARGUMENT if a binding is missing
 * or wrong (also reported, at the location that it belongs to). */
#ifndef TILE_PARSER_CHECK_PROGRAM_H
#define TILE_PARSER_CHECK_PROGRAM_H

#include <stdatomic.h>

#include "lang/ir/ir.h"
#include "parser/syntax/ast.h"

/* Formats of elements that tensors have and values have not (formats.c). */
typedef enum TileFormat {
    TILE_FORMAT_PLAIN,
    TILE_FORMAT_I4, /* these three: two in a byte, the lower half first */
    TILE_FORMAT_U4,
    TILE_FORMAT_F4E2M1,
    TILE_FORMAT_F8E8M0, /* powers of two, a byte each */
    TILE_FORMAT_COUNT,
} TileFormat;

typedef enum TileBindingKind {
    TILE_BINDING_TYPE,
    TILE_BINDING_INTEGER, /* allowed for floats, too */
    TILE_BINDING_FLOAT,
    TILE_BINDING_BOOL,
    TILE_BINDING_FUNCTION
} TileBindingKind;

/* A value for a generic, const parameter, static dimension or scalar, or tune name. */
typedef struct TileBinding {
    const char *name;
    TileBindingKind kind;
    union {
        TileScalar type;
        int64_t integer;
        double number;
        bool truth;
        const char *function;
    };
} TileBinding;

/* Parses a binding: "bf16", "128", "0.5", "true" or a function, "gelu" or "nn.leaky_relu[0.3]". */
TileBinding tile_binding_read(const char *name, const char *text);
/* The function that such a text names, in the file or its imports; NULL if there is none. */
const TileItem *tile_find_function(const TileAst *ast, const char *text);
/* The file that the name of an import stands for, or NULL. */
const TileAst *tile_find_module(const TileAst *ast, const char *name);
/* The text of its value. */
void tile_binding_print(TileText *text, const TileBinding *binding);

/* ---- interfaces of kernels ---- */

typedef struct TileKernelGeneric {
    const char *name;
    TileGenericKind kind;
    uint32_t types;       /* TYPE: bit set of the TileScalars in the class */
    const char *class;    /* TYPE: as written, "float" or "f16 | bf16 | f32" */
    const char *function; /* FN: name of the default, or NULL */
    bool has_default;
} TileKernelGeneric;

typedef struct TileKernelParameter {
    const char *name;
    bool is_tensor, is_const, is_static;
    TileAccess access; /* tensors */
    const char *type;  /* element type as written: "f32", or the name of a generic */
    bool generic_type; /* `type` names a generic */
    TileScalar scalar; /* else: the element type */
    TileFormat format; /* other than PLAIN: arguments have bytes, and `scalar` is u8 */
    unsigned rank;
    const char *dims[TILE_MAX_TENSOR_RANK]; /* of arguments, as written: "M", "2 * N", "3"; of bytes "(K + 1) / 2" */
    bool dim_is_name[TILE_MAX_TENSOR_RANK];
} TileKernelParameter;

/* A parameter whose type is a format of elements that share bytes is one of bytes to a launch. */
void tile_kernel_parameter_bytes(TileKernelParameter *parameter, TileArena *arena, const TileTypeExpr *type);

typedef struct TileKernelTune {
    const char *name, *target; /* target NULL for all */
    TILE_LIST(int64_t) candidates;
    int64_t value;     /* of the default point */
    const char *where; /* of its clause, with single blanks; NULL if none */
} TileKernelTune;

typedef struct TileKernelInfo {
    const char *name, *doc;
    const char *signature; /* for messages, on one line: "softmax[T: float](x: in T[M, N], y: out T[M, N])" */
    TILE_LIST(TileKernelGeneric) generics;
    TILE_LIST(TileKernelParameter) parameters; /* without those that come from a function generic */
    TILE_LIST(TileKernelTune) tunes;
    TILE_LIST(const char *) statics;
    TILE_LIST(const char *) overlaps;
    const TileItem *item;
    const TileAst *ast;            /* the file that has it: that of the program, or one that it imports */
    bool is_export;                /* of `item`, with the bindings in `chosen` */
    TILE_LIST(TileBinding) chosen; /* by the export clause */
} TileKernelInfo;

typedef struct TileExportInfo {
    const char *name; /* "softmax_bf16", or derived from kernel and arguments; interned as all names */
    const char *kernel; /* in the program's list: `softmax`, or `nn.softmax` of an import */
    const TileItem *item;
    const TileAst *ast; /* as in TileKernelInfo */
    TileSpan span;
    TILE_LIST(TileBinding) bindings;
    TILE_LIST(TileSpan) places; /* of the bindings */
} TileExportInfo;

typedef struct TileProgramInfo {
    TILE_LIST(TileKernelInfo) kernels; /* of the file, and those of imports that it exports */
    TILE_LIST(TileExportInfo) exports;
} TileProgramInfo;

/* In the arena of the tree. */
tile_status tile_list_kernels(TileDiagnostics *diagnostics, const TileAst *ast, TileProgramInfo *out) TILE_MUST_CHECK;

/* Adds the exports to the kernels, each under its own name with its bindings; except exports with the name of a
 * kernel. */
void tile_list_exported(TileArena *arena, TileProgramInfo *program);

/* Is it a keyword of C or C++, or `main`? Then no exported function can have this name. */
bool tile_is_reserved_in_c(const char *name);
/* Is it the name of a generic, constant, static or tune name of the kernel? */
bool tile_kernel_has_setting(const TileKernelInfo *kernel, const char *name);

/* Is it the name of a dimension of a tensor? */
bool tile_kernel_has_dimension(const TileKernelInfo *kernel, const char *name);

/* ---- checking and lowering ---- */

/* Checks all items, generic ones at one or two representative instances. `verify`: also verifies the IR of kernels, in
 * which an error is a bug of the compiler; without it, lowering finds such errors. `clean` (may be NULL): of each
 * part, whether it is known to have no diagnostics (tile_check_ahead). `program` (may be NULL) gets the
 * kernels, as by tile_list_kernels, if there are no errors. */
tile_status tile_check_module(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                              const uint64_t *clean, TileProgramInfo *program) TILE_MUST_CHECK;
/* Checks the instances of all kernels of the file that these values make of them; other names have stand-ins. A dimension may
 * have a value, too: then the kernel is checked as if it were static. */
tile_status tile_check_instances(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                                 const TileBinding *bindings, size_t count) TILE_MUST_CHECK;
/* The parts of the tree that threads share: the instances of its kernels, other items as a whole, exports. */
size_t tile_check_count(const TileAst *ast);
/* For each part that no other thread has begun: sets `clean` to 1 and the work of its check if it has no diagnostics. The tree, which
 * tile_check_module then checks without those parts, with the same result, stays as it is, so that any number of threads share it;
 * each has its own context, and its own diagnostics with the same files, where what is reported is only counted. */
typedef struct TileAhead {
    atomic_bool *begun;
    uint64_t *clean;
} TileAhead;
void tile_check_ahead(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                      const TileAhead *ahead);

/* ---- annotations ---- */

/* What the checker found at a place: of an expression, or of a name where it is bound. */
typedef struct TileAnnotation {
    TileSpan span;
    TileSpan bound;         /* of a name that is used: where it is bound; file 0: in no text, or not known */
    bool binds, is_var;     /* a name that is bound here */
    uint8_t scalar;         /* VALUE: in the first instance that was checked */
    bool is_value;          /* has it a type that can be written: that of a tile or range? */
    const char *generic;    /* the generic that the element type is; NULL if it is the same in all instances */
    const char *candidate;  /* the checker's: a generic that has the element type in this instance */
    const char *type;       /* the element type, or words such as "a module" */
    const char *shape;      /* behind the type: "[BM, BN]", or "" */
    const char *value;      /* of a constant: "64"; or NULL */
    const char *instance;   /* the constants that the shape is written with: "BM = 4, BN = 1024"; or NULL */
    const char *cost;       /* "reads 4096 bytes", or NULL */
    TILE_LIST(const char *) invalid; /* where it must not be used, with the reasons; empty: valid everywhere */
} TileAnnotation;

/* Annotations of one file, the first that was made of each place. */
typedef struct TileAnnotations {
    TileArena *arena;
    uint32_t file;
    TILE_LIST(TileAnnotation) list; /* in the order of the check */
    TileMap places;                 /* begin and end to the index, plus 1 */
} TileAnnotations;

/* Checks all items as tile_check_module does, and adds what it finds to `out`, which is empty but for its arena.
 * Diagnostics are those of a second check: the caller takes them out again. */
void tile_annotate_module(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, TileAnnotations *out);
/* The annotation of this very place, or NULL. */
const TileAnnotation *tile_annotation_of(const TileAnnotations *annotations, TileSpan span);

/* `target` ("cpu", "gpu" or NULL) selects tune clauses. The module's function has the kernel's name. */
typedef struct TileLowerOptions {
    const char *target;
    const TileBinding *bindings;
    size_t binding_count;
    const TileSpan *places; /* locations of the bindings, if a text of the diagnostics has them; or NULL */
    bool debug;             /* assert that integer divisors are not zero and that shifts are below the width */
    bool statements;        /* say where the statements in grids begin, with ops `statement`, for observers */
} TileLowerOptions;
tile_status tile_lower_kernel_for(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                                  const char *kernel, const TileLowerOptions *options,
                                  TileModule **out) TILE_MUST_CHECK;
tile_status tile_lower_kernel(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                              const char *kernel, const TileBinding *bindings, size_t count,
                              TileModule **out) TILE_MUST_CHECK;

/* ---- tuning ---- */

/* Points of a kernel's tune clauses for one target: a value for each of `names`, in the order of the text. */
typedef struct TileTunePoints {
    TILE_LIST(const char *) names;
    TILE_LIST(const int64_t *) points;
} TileTunePoints;

/* The points that `where` admits, the default first, at most `most`. Names and generics that the options bind have only
 * that value. In the arena of the tree. */
tile_status tile_list_points(TileDiagnostics *diagnostics, const TileAst *ast, const TileItem *kernel,
                             const TileLowerOptions *options, size_t most, TileTunePoints *out) TILE_MUST_CHECK;

/* ---- tests ---- */

typedef enum TileTestSource {
    TILE_TEST_RAND, /* created before any run; the functions' names are in parser/check/test.c */
    TILE_TEST_RANDN,
    TILE_TEST_ZEROS,
    TILE_TEST_ONES,
    TILE_TEST_ARANGE,
    TILE_TEST_RANDINT,
    TILE_TEST_FULL,
    TILE_TEST_COMPUTED, /* by the test's own function, before run `run` */
    TILE_TEST_RESULT,   /* of run `run` */
    TILE_TEST_DETAIL,   /* operands of a comparison, for the message of an assertion */
} TileTestSource;

typedef struct TileTestTensor {
    TileTestSource source;
    TileScalar scalar;
    unsigned rank;
    int64_t extent[TILE_MAX_TENSOR_RANK];
    int64_t lo, hi; /* RANDINT */
    uint64_t bits;  /* FULL */
    uint32_t run;
} TileTestTensor;

enum { TILE_TEST_NONE = UINT32_MAX };

typedef struct TileTestArgument {
    TileScalar scalar;
    uint64_t bits;   /* of a scalar, if there is no tensor */
    uint32_t tensor; /* the input, or the initial contents of a result; TILE_TEST_NONE: none, zeros */
    uint32_t result; /* the output; TILE_TEST_NONE if the parameter is `in` or a scalar */
} TileTestArgument;

typedef struct TileTestRun {
    const char *kernel;
    uint32_t file; /* that has the kernel: of the test, or imported */
    TileSpan span;
    TILE_LIST(TileBinding) bindings;
    TILE_LIST(TileTestArgument) arguments; /* in the order of the kernel's parameters, including those of `...` */
    bool computes;                         /* some argument is COMPUTED */
} TileTestRun;

typedef struct TileTestValue {
    const char *text; /* as written */
    uint32_t tensor;
} TileTestValue;

typedef struct TileTestAssertion {
    TileSpan span;    /* of the condition */
    const char *text; /* the given one, or the text of the condition */
    uint32_t holds;   /* bool tensor: the assertion holds if all elements are true */
    const char *comparison;
    uint32_t left, right; /* the sides of a comparison, with the shape of `holds`; else TILE_TEST_NONE */
    TILE_LIST(TileTestValue) values;
} TileTestAssertion;

/* A test as a plan: its tensors, runs of kernels on them, and assertions about the results. */
typedef struct TileTest {
    TILE_LIST(TileTestTensor) tensors;
    TILE_LIST(TileTestRun) runs;
    TILE_LIST(TileTestAssertion) assertions;
} TileTest;

/* The test's own function for one stage: a kernel with one program, whose parameters are tensors of the plan. */
typedef struct TileTestStage {
    TileModule *module;
    TileFunc *func;
    TILE_LIST(uint32_t) tensors; /* of the parameters, in order */
} TileTestStage;

/* Before stage i, all runs below i have to be done; it computes the inputs of run i. Stage TILE_TEST_ASSERTIONS
 * computes the operands of the assertions; only it reports errors. The caller destroys stage->module; texts and lists
 * live as long as `arena`. */
enum { TILE_TEST_ASSERTIONS = UINT32_MAX };
tile_status tile_lower_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, uint32_t number, TileTest *test,
                            TileTestStage *stage) TILE_MUST_CHECK;

#endif
