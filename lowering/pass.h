/* Passes and the one way to run them.
 *
 * A pass is one file with one entry point of type TilePassFunction and one row in its folder's passes.def. It
 * changes one function and reports truly whether it did. Only the runner verifies, times, dumps and stops. */
#ifndef TILE_LOWERING_PASS_H
#define TILE_LOWERING_PASS_H

#include "base/diagnostic.h"
#include "base/limits.h"
#include "lang/index/index.h"
#include "lang/ir/ir.h"
#include "lang/ir/target.h"
#include "tile/status.h"

typedef enum TileResult { TILE_RESULT_UNCHANGED, TILE_RESULT_CHANGED, TILE_RESULT_FAILED } TileResult;

typedef struct TilePassInfo TilePassInfo;

/* A limit that a function exceeds, and where. */
typedef struct TilePassExcess {
    bool found;
    TileLimitId limit;
    TileDiagnosticCode code;
    TileLocation place;
    const char *words; /* of the diagnostic */
} TilePassExcess;

/* Options of the user that passes depend on. */
typedef struct TilePassSettings {
    bool no_contract; /* do not contract products and sums */
    bool debug;       /* keep assertions */
    bool split_loops; /* main and remainder loops where the last range may be partial */
    bool mark_padding; /* GPUs: padding in a thread's registers is undefined (for the executor) */
} TilePassSettings;

/* A decision of a pass on a tile or an access, for `tilec explain`. Texts live as long as the context's scratch. */
typedef enum TileRemarkKind {
    TILE_REMARK_LAYOUT,  /* the layout of a tile */
    TILE_REMARK_MOVE,    /* a conversion between layouts */
    TILE_REMARK_ACCESS,  /* the L2 cache policy of a load or store */
    TILE_REMARK_ORDER,   /* in which order elements, products or iterations are added */
    TILE_REMARK_DECISION /* what a pass has done or declined to do */
} TileRemarkKind;

typedef enum TileDecision {
#define REMARK(id, code, done, words) TILE_DECISION_##id,
#include "lowering/remarks.def"
#undef REMARK
    TILE_DECISION_COUNT
} TileDecision;

typedef struct TileDecisionInfo {
    const char *code, *words;
    bool done;
} TileDecisionInfo;

const TileDecisionInfo *tile_decision_info(TileDecision decision);

typedef struct TileRemark {
    TileRemarkKind kind;
    TileLocation place;
    const TileFunc *func; /* that the pass ran on: a phase, or a kernel before programs */
    const char *name;     /* of the tile, or else of the op that defines it; ACCESS: of the tensor; ORDER: what is
                             added; DECISION: the subject */
    TileScalar scalar;
    const char *layout, *to; /* printed (lang/layout/layout.h); not of ACCESS; `to` only of MOVE */
    const char *way;         /* MOVE, ORDER: how; ACCESS: "load" or "store"; DECISION: details or the reason */
    const char *pass;        /* DECISION */
    TileDecision decision;   /* DECISION */
    TileName cache;          /* ACCESS: TILE_CACHE_* */
    /* MOVE through shared memory: the degree of bank conflicts of a store and of a load; else 0. */
    unsigned store_conflicts, load_conflicts;
    uint64_t shared_bytes;
} TileRemark;
typedef TILE_LIST(TileRemark) TileRemarks;

/* `scratch` belongs to the caller of the runner; passes allocate temporary memory from it. */
typedef struct TilePassContext {
    TileModule *module;
    TileArena *scratch;
    const TileTarget *target; /* NULL: no target is chosen, and passes that need one fail */
    TilePassSettings settings;
    const TileLimits *limits; /* the default ones, unless the caller sets others */
    const TilePassInfo *info; /* the running pass */
    TileFunc *func;           /* the function that it runs on */
    TileRemarks *remarks;     /* the list of remarks; NULL: they are not wanted */
    tile_status failure;      /* set by tile_pass_fail */
    TileText message;         /* why a pass failed */
    TilePassExcess excess;    /* set by tile_pass_exceed */
    TileMap indices;          /* TileFunc to TileIndices: those that are valid */
    bool undeclared;          /* a pass used an analysis that its row does not need */
    uint64_t counted;         /* ops of the module when module->created was `counted_at` (lowering/excess.h) */
    uint64_t counted_at;
} TilePassContext;

/* The index analysis of the function; the row of the running pass must need it. */
TileIndices *tile_pass_indices(TilePassContext *context, TileFunc *func);

TilePassContext tile_pass_context(TileModule *module, TileArena *scratch, const TileTarget *target);
/* remarks.c: a remark on a decision of the running pass about the op. Does nothing unless remarks are wanted. */
void tile_pass_remark(TilePassContext *context, const TileOp *op, TileDecision decision, const char *subject,
                      const char *format, ...) TILE_PRINTF(5, 6);
/* `gpu-channels: a is copied to ..`, as it is printed behind the location. */
void tile_remark_print(TileText *text, const TileRemark *remark);
/* order.c: a remark on the order in which an op adds. Does nothing unless remarks are wanted. */
void tile_remark_order(TilePassContext *context, const TileFunc *func, const TileOp *op, const char *name,
                       const char *way);
/* What a reduction, fold or scan computes, for such a remark; NULL: its order makes no difference. */
const char *tile_reduction_words(TilePassContext *context, const TileOp *op);
/* A remark for each loop-carried float that the loop only adds to, multiplies, or takes the minimum or maximum of. */
void tile_remark_loop(TilePassContext *context, const TileFunc *func, const TileOp *loop);
/* The op that combines the loop-carried value with the contribution of an iteration: associative, but for rounding.
 * NULL: there is none. */
const TileOp *tile_loop_accumulation(const TileOp *loop, unsigned carried);
/* Writes the message, preceded by the location of `at` (which may be NULL), and returns TILE_RESULT_FAILED.
 * TILE_INTERNAL is an error of the compiler, TILE_UNSUPPORTED a program that it cannot compile. */
TileResult tile_pass_fail(TilePassContext *context, tile_status status, const TileOp *at, const char *format, ...)
    TILE_PRINTF(4, 5);

/* The same for a program that exceeds a limit, which is a diagnostic if the source text is known. */
TileResult tile_pass_exceed(TilePassContext *context, TileLimitId limit, TileDiagnosticCode code, TileLocation place,
                            const char *format, ...) TILE_PRINTF(5, 6);

typedef TileResult (*TilePassFunction)(TilePassContext *context, TileFunc *func);

typedef enum TilePassStage {
    TILE_STAGE_MEANING, /* part of the language's semantics: the interpreter runs it, too */
    TILE_STAGE_SHARED,  /* for any target */
    TILE_STAGE_TARGET,  /* for one target, or lowering to machine form */
    TILE_STAGE_OWN      /* of another project */
} TilePassStage;

/* Analyses of a function that are kept for later passes. */
typedef enum TilePassAnalysis {
    TILE_ANALYSIS_NONE,
    TILE_ANALYSIS_INDICES /* lang/index/index.h */
} TilePassAnalysis;

struct TilePassInfo {
    const char *name, *doc;
    TilePassStage stage;
    uint8_t input, output; /* forms (TILE_FORM_*) of the functions before and after it */
    uint8_t needs, keeps;  /* TilePassAnalysis: that it uses; that is still valid after a change */
    TilePassFunction run;
};

/* Does the pass lower functions in tile form to machine form? */
static inline bool tile_pass_lowers(const TilePassInfo *pass) {
    return pass->input == TILE_FORM_TILE && (pass->output & TILE_FORM_MACHINE);
}

/* The passes of one folder, or of another project. */
typedef struct TilePassTable {
    const TilePassInfo *passes;
    size_t count;
} TilePassTable;

typedef enum TileLoweringPass {
#define PASS(id, name, stage, input, output, needs, keeps, doc) TILE_PASS_##id,
#include "lowering/passes.def"
#undef PASS
    TILE_LOWERING_PASS_COUNT
} TileLoweringPass;

#define PASS(id, name, stage, input, output, needs, keeps, doc)                                                            \
    TileResult tile_pass_##id(TilePassContext *context, TileFunc *func);
#include "lowering/passes.def"
#undef PASS

const TilePassTable *tile_lowering_passes(void);
const TilePassInfo *tile_lowering_pass(TileLoweringPass id);

/* NULL if no table has a pass of this name. */
const TilePassInfo *tile_pass_find(const TilePassTable *const *tables, size_t table_count, const char *name,
                                   size_t length);

typedef TILE_LIST(const TilePassInfo *) TilePipeline;
/* Appends the passes of a list such as "dce,cse" to the pipeline. Otherwise TILE_NOT_FOUND, and `message` has the
 * unknown name. */
tile_status tile_pipeline_read(TilePipeline *pipeline, TileArena *arena, const TilePassTable *const *tables,
                               size_t table_count, const char *names, TileText *message);

/* Inserts other passes after each but the last of the pipeline, for tests: no pass may rely on ops that those merge,
 * move or remove. */
void tile_pipeline_interleave(TilePipeline *pipeline, TileArena *arena, const TilePassInfo *const *between, size_t count);

typedef struct TilePassOptions {
    bool verify;             /* after each pass: run the verifier, and check whether it reported its change truly */
    const char *dump_after;  /* name of a pass, or "all": the report gets the module's text after it */
    const char *stop_after;  /* name of a pass */
    const char *const *skip; /* names of passes */
    size_t skip_count;
    bool limited; /* run only the first `limit` pairs of a pass and a function, to bisect a fault */
    uint64_t limit;
    bool rename;    /* rename after each pass, seeded by `names`, and plainly at the end (lowering/rename.h) */
    uint64_t names; /* 0: only plain names at the end */
    bool restore;   /* with `names`: restore the original names at the end, for symbols and signature */
    bool counts;    /* fill in TilePassTime.ops, which takes a walk after each pass */
} TilePassOptions;

typedef struct TilePassTime {
    const TilePassInfo *pass;
    const char *func;
    double seconds;
    TileResult result;
    uint64_t ops; /* of the module after the pass, in the entry of its last function; 0 unless `counts` */
} TilePassTime;

/* The report of a run. */
typedef struct TilePassReport {
    TileArena *arena;
    TILE_LIST(TilePassTime) times;
    TileText dump;       /* see dump_after */
    TileText reproducer; /* with `verify`, on failure: the text before the pass, with the command for tile-opt */
} TilePassReport;

TilePassReport tile_pass_report(TileArena *arena);

/* Runs each pass on each function of the module that has its input form. TILE_OK, or the failure's status with
 * context->message; the module is then unusable. For a reproducer of a failure, the caller repeats the run with
 * `verify`. */
tile_status tile_passes_run(TilePassContext *context, const TilePassInfo *const *pipeline, size_t count,
                            const TilePassOptions *options, TilePassReport *report);

#endif
