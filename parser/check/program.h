/* From a syntax tree to verified tile form.
 *
 * tile_check_module      reports what is wrong with any kernel or function of the file
 * tile_list_kernels      what the kernels ask for: generics, parameters, tune names
 * tile_lower_kernel      one kernel, with its generics bound, to tile form
 * tile_lower_test        a test, to a plan and what it computes itself
 *
 * A call returns TILE_INVALID_SOURCE when it reported an error of the text, TILE_INVALID_ARGUMENT when a binding
 * is missing or wrong (also reported, at the place that it concerns). */
#ifndef TILE_PARSER_CHECK_PROGRAM_H
#define TILE_PARSER_CHECK_PROGRAM_H

#include "lang/ir/ir.h"
#include "parser/syntax/ast.h"

typedef enum TileBindingKind {
    TILE_BINDING_TYPE,
    TILE_BINDING_INTEGER, /* also taken where a float is wanted */
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

/* Reads "bf16", "128", "0.5", "true" or a function, "gelu" or "nn.leaky_relu[0.3]", as a binding. */
TileBinding tile_binding_read(const char *name, const char *text);
/* The function of such a text among those of the file and its imports; NULL where there is none. */
const TileItem *tile_find_function(const TileAst *ast, const char *text);
/* Its value, as it is written. */
void tile_binding_print(TileText *text, const TileBinding *binding);

/* ---- what a kernel asks for ---- */

typedef struct TileKernelGeneric {
    const char *name;
    TileGenericKind kind;
    uint32_t types;       /* TYPE: bit set of the TileScalars that the class admits */
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
    TileScalar scalar; /* else what it is */
    unsigned rank;
    const char *dims[TILE_MAX_TENSOR_RANK]; /* as written: "M", "2 * N", "3" */
    bool dim_is_name[TILE_MAX_TENSOR_RANK];
} TileKernelParameter;

typedef struct TileKernelTune {
    const char *name, *target; /* target NULL for all */
    TILE_LIST(int64_t) candidates;
    int64_t value;     /* of the default point */
    const char *where; /* of its clause, on one line; NULL for none */
} TileKernelTune;

typedef struct TileKernelInfo {
    const char *name, *doc;
    const char *signature; /* one line for messages: "softmax[T: float](x: in T[M, N], y: out T[M, N])" */
    TILE_LIST(TileKernelGeneric) generics;
    TILE_LIST(TileKernelParameter) parameters; /* without those that a function generic adds */
    TILE_LIST(TileKernelTune) tunes;
    TILE_LIST(const char *) statics;
    TILE_LIST(const char *) overlaps;
    const TileItem *item;
    bool is_export;                /* of `item` with what the export chose */
    TILE_LIST(TileBinding) chosen; /* by the export */
} TileKernelInfo;

typedef struct TileExportInfo {
    const char *name; /* "softmax_bf16", or made from kernel and arguments; interned as all names */
    const char *kernel;
    TileSpan span;
    TILE_LIST(TileBinding) bindings;
    TILE_LIST(TileSpan) places; /* of the bindings */
} TileExportInfo;

typedef struct TileProgramInfo {
    TILE_LIST(TileKernelInfo) kernels;
    TILE_LIST(TileExportInfo) exports;
} TileProgramInfo;

/* In the arena of the tree. */
tile_status tile_list_kernels(TileDiagnostics *diagnostics, const TileAst *ast, TileProgramInfo *out) TILE_MUST_CHECK;

/* Adds the exports to the kernels, each under its own name with what it chooses; not those that have the name of a
 * kernel. */
void tile_list_exported(TileArena *arena, TileProgramInfo *program);

/* A word of C or C++, or `main`: no name for a function that they are to call. */
bool tile_is_reserved_in_c(const char *name);
/* Can a setting of this name decide something about the kernel: a generic, constant, static or tune name? */
bool tile_kernel_has_setting(const TileKernelInfo *kernel, const char *name);

/* ---- checking and lowering ---- */

/* Checks all items, generic ones at one or two representative instances. `verify`: what becomes of kernels, too, in
 * which an error is ours; where it is off, lowering finds them. `clean` (may be NULL): for each item, is it known that
 * there is nothing to say of it (tile_check_ahead)? `program` (may be NULL): its kernels, as
 * tile_list_kernels lists them, where all is right. */
tile_status tile_check_module(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                              const uint64_t *clean, TileProgramInfo *program) TILE_MUST_CHECK;
/* Sets clean[i], to the work that the check of it takes, for those of the items first, first + step, .. of which there
 * is nothing to say. A tree of the same
 * text in another context may then be checked without them, with the same result; so several threads can look at a long
 * file, each with a tree and a context of its own. Diagnostics that come up here are only to be counted. */
typedef struct TileItemRange {
    size_t first, step;
} TileItemRange;
void tile_check_ahead(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast, bool verify,
                      const TileItemRange *range, uint64_t *clean);

/* `target` ("cpu", "gpu" or NULL) chooses among tune clauses. The function of the module has the kernel's name. */
typedef struct TileLowerOptions {
    const char *target;
    const TileBinding *bindings;
    size_t binding_count;
    const TileSpan *places; /* of the bindings, where a text of the diagnostics has them; or NULL */
    bool debug;             /* integer division by zero and shifts past the width are assertions */
} TileLowerOptions;
tile_status tile_lower_kernel_for(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                                  const char *kernel, const TileLowerOptions *options,
                                  TileModule **out) TILE_MUST_CHECK;
tile_status tile_lower_kernel(TileContext *context, TileDiagnostics *diagnostics, const TileAst *ast,
                              const char *kernel, const TileBinding *bindings, size_t count,
                              TileModule **out) TILE_MUST_CHECK;

/* ---- what can be tuned ---- */

/* Points of a kernel's tune clauses for one target: for each of `names`, in the order of the text, a value. */
typedef struct TileTunePoints {
    TILE_LIST(const char *) names;
    TILE_LIST(const int64_t *) points;
} TileTunePoints;

/* Those that `where` admits, the default first, and no more than `most`; of names and generics that the options bind
 * only the value that they have. In the arena of the tree. */
tile_status tile_list_points(TileDiagnostics *diagnostics, const TileAst *ast, const TileItem *kernel,
                             const TileLowerOptions *options, size_t most, TileTunePoints *out) TILE_MUST_CHECK;

/* ---- tests ---- */

typedef enum TileTestSource {
    TILE_TEST_RAND, /* made before anything runs; names in parser/check/test.c */
    TILE_TEST_RANDN,
    TILE_TEST_ZEROS,
    TILE_TEST_ONES,
    TILE_TEST_ARANGE,
    TILE_TEST_RANDINT,
    TILE_TEST_FULL,
    TILE_TEST_COMPUTED, /* by the test's own function, before run number `run` */
    TILE_TEST_RESULT,   /* of run number `run` */
    TILE_TEST_DETAIL,   /* what an assertion compared */
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
    uint64_t bits;   /* of a scalar, where there is no tensor */
    uint32_t tensor; /* what is read, or the contents that a result begins with; TILE_TEST_NONE: none, zeros */
    uint32_t result; /* what is written; TILE_TEST_NONE where the parameter is `in` or a scalar */
} TileTestArgument;

typedef struct TileTestRun {
    const char *kernel;
    TileSpan span;
    TILE_LIST(TileBinding) bindings;
    TILE_LIST(TileTestArgument) arguments; /* in the order of the kernel's parameters, those of `...` included */
    bool computes;                         /* some argument is COMPUTED */
} TileTestRun;

typedef struct TileTestValue {
    const char *text; /* as written */
    uint32_t tensor;
} TileTestValue;

typedef struct TileTestAssertion {
    TileSpan span;    /* of the condition */
    const char *text; /* given, or the condition as written */
    uint32_t holds;   /* bool tensor: true everywhere */
    const char *comparison;
    uint32_t left, right; /* of a comparison: its sides, of the shape of `holds`; else TILE_TEST_NONE */
    TILE_LIST(TileTestValue) values;
} TileTestAssertion;

/* A test as a plan: which tensors there are, which kernels run on them, what must then hold. */
typedef struct TileTest {
    TILE_LIST(TileTestTensor) tensors;
    TILE_LIST(TileTestRun) runs;
    TILE_LIST(TileTestAssertion) assertions;
} TileTest;

/* The test's own function for one stage: as a kernel of one program whose parameters are tensors of the plan. */
typedef struct TileTestStage {
    TileModule *module;
    TileFunc *func;
    TILE_LIST(uint32_t) tensors; /* of the parameters, in order */
} TileTestStage;

/* Before stage i run all runs up to, but without, i; it computes what run i is given. Stage TILE_TEST_ASSERTIONS
 * computes what the assertions say, and only it reports. The caller destroys stage->module; texts and lists live as
 * long as `arena`. */
enum { TILE_TEST_ASSERTIONS = UINT32_MAX };
tile_status tile_lower_test(TileContext *context, TileDiagnostics *diagnostics, TileArena *arena, const TileAst *ast,
                            const TileItem *item, uint32_t number, TileTest *test,
                            TileTestStage *stage) TILE_MUST_CHECK;

#endif
