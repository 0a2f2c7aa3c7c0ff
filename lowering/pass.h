/* Passes and the one way to run them.
 *
 * A pass is one file with one entry point of type TilePassFunction and one row in its folder's passes.def. It
 * changes one function and says truly whether it did. The runner alone verifies, times, dumps and stops. */
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

/* A limit that a function goes past, and where. */
typedef struct TilePassExcess {
    bool found;
    TileLimitId limit;
    TileDiagnosticCode code;
    TileLocation place;
    const char *words; /* as the diagnostic says it */
} TilePassExcess;

/* What the user asked of the compiler, as far as passes care. */
typedef struct TilePassSettings {
    bool no_contract; /* leave products and sums apart */
    bool debug;       /* keep assertions */
    bool split_loops; /* main and tail loops where a range may be ragged */
    bool mark_padding; /* GPUs: what a thread holds beyond a tile's own elements is undefined (for the executor) */
} TilePassSettings;

/* What a pass has decided about a tile or an access, for `tilec explain`. Texts live as long as the context's scratch.
 */
typedef enum TileRemarkKind {
    TILE_REMARK_LAYOUT, /* where the tile lies */
    TILE_REMARK_MOVE,   /* it goes from one layout to another */
    TILE_REMARK_ACCESS, /* how long the L2 cache shall keep what is loaded or stored */
    TILE_REMARK_ORDER,  /* in which order elements, products or trips are added up */
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
    const TileFunc *func; /* that the pass was given: a phase, or a kernel whose grids are none yet */
    const char *name; /* of the tile or, where it has none, of the op that makes it; ACCESS: of the tensor;
                              * ORDER: what is added up; DECISION: what it is about */
    TileScalar scalar;
    const char *layout, *to; /* as lang/layout/layout.h writes them; ACCESS has none, and `to` is MOVE's alone */
    const char *way;         /* MOVE, ORDER: how; ACCESS: "load" or "store"; DECISION: the case, or what was in the way */
    const char *pass;        /* DECISION */
    TileDecision decision;   /* DECISION */
    TileName cache;          /* ACCESS: TILE_CACHE_* */
    /* MOVE through shared memory: how often the busiest bank is asked for, by a store and by a load; else 0. */
    unsigned store_conflicts, load_conflicts;
    uint64_t shared_bytes;
} TileRemark;
typedef TILE_LIST(TileRemark) TileRemarks;

/* `scratch` belongs to the caller of the runner and holds what passes need only while they run. */
typedef struct TilePassContext {
    TileModule *module;
    TileArena *scratch;
    const TileTarget *target; /* NULL where no machine is chosen: passes that need one then fail */
    TilePassSettings settings;
    const TileLimits *limits; /* the usual ones, where the caller sets no others */
    const TilePassInfo *info; /* the running pass */
    TileFunc *func;           /* the function that it was given */
    TileRemarks *remarks;     /* where remarks go; NULL where nobody asks */
    tile_status failure;      /* set by tile_pass_fail */
    TileText message;         /* why a pass failed */
    TilePassExcess excess;    /* set by tile_pass_exceed */
    TileMap indices;          /* TileFunc to TileIndices: those that hold */
    bool undeclared;          /* a pass asked for an analysis that its row does not say that it needs */
    uint64_t counted;         /* ops of the module when module->created was `counted_at`; see lowering/excess.h */
    uint64_t counted_at;
} TilePassContext;

/* The index analysis of the function; the row of the running pass says that it needs it. */
TileIndices *tile_pass_indices(TilePassContext *context, TileFunc *func);

TilePassContext tile_pass_context(TileModule *module, TileArena *scratch, const TileTarget *target);
/* remarks.c: what the running pass has decided, or declined, about the op. Nothing where nobody asks. */
void tile_pass_remark(TilePassContext *context, const TileOp *op, TileDecision decision, const char *subject,
                      const char *format, ...) TILE_PRINTF(5, 6);
/* `gpu-channels: a is copied to ..: 1 trip ahead`, as it is printed behind the place. */
void tile_remark_print(TileText *text, const TileRemark *remark);
/* order.c: a remark of the order that a pass gave an op of the function; nothing where nobody asks. */
void tile_remark_order(TilePassContext *context, const TileFunc *func, const TileOp *op, const char *name,
                       const char *way);
/* What a reduction, fold or scan computes, for such a remark; NULL where its order makes no difference. */
const char *tile_reduction_words(TilePassContext *context, const TileOp *op);
/* A remark for each float that the loop carries and only adds to, multiplies, or takes the least or greatest of. */
void tile_remark_loop(TilePassContext *context, const TileFunc *func, const TileOp *loop);
/* The op that combines the carried value with what a trip adds: associative, but for rounding. NULL: there is none. */
const TileOp *tile_loop_accumulation(const TileOp *loop, unsigned carried);
/* Writes the message, a location in front where `at` has one (`at` may be NULL), and returns
 * TILE_RESULT_FAILED. TILE_INTERNAL says that the compiler is wrong, TILE_UNSUPPORTED that the program asks for
 * what it cannot do. */
TileResult tile_pass_fail(TilePassContext *context, tile_status status, const TileOp *at, const char *format, ...)
    TILE_PRINTF(4, 5);

/* The same for a program that goes past a limit, which is a diagnostic where the text is at hand. */
TileResult tile_pass_exceed(TilePassContext *context, TileLimitId limit, TileDiagnosticCode code, TileLocation place,
                            const char *format, ...) TILE_PRINTF(5, 6);

typedef TileResult (*TilePassFunction)(TilePassContext *context, TileFunc *func);

typedef enum TilePassStage {
    TILE_STAGE_MEANING, /* part of what a kernel computes: the interpreter sees it, too */
    TILE_STAGE_SHARED,  /* for any target */
    TILE_STAGE_TARGET,  /* of a target, or towards machine form */
    TILE_STAGE_OWN      /* of another project */
} TilePassStage;

/* What is computed of a function and kept for the passes that follow. */
typedef enum TilePassAnalysis {
    TILE_ANALYSIS_NONE,
    TILE_ANALYSIS_INDICES /* lang/index/index.h */
} TilePassAnalysis;

struct TilePassInfo {
    const char *name, *doc;
    TilePassStage stage;
    uint8_t input, output; /* forms (TILE_FORM_*) of the functions that it takes and leaves */
    uint8_t needs, keeps;  /* TilePassAnalysis: that it may ask for; that hold as before when it has changed something */
    TilePassFunction run;
};

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

/* NULL when no table has a pass of this name. */
const TilePassInfo *tile_pass_find(const TilePassTable *const *tables, size_t table_count, const char *name,
                                   size_t length);

typedef TILE_LIST(const TilePassInfo *) TilePipeline;
/* Adds the passes of a list such as "dce,cse" to the pipeline. Otherwise TILE_NOT_FOUND, and `message` names the
 * word that is no pass. */
tile_status tile_pipeline_read(TilePipeline *pipeline, TileArena *arena, const TilePassTable *const *tables,
                               size_t table_count, const char *names, TileText *message);

/* Puts the other passes behind each of the pipeline's but the last, for tests: what they merge, move or remove, no pass may
 * have relied on. */
void tile_pipeline_interleave(TilePipeline *pipeline, TileArena *arena, const TilePassInfo *const *between, size_t count);

typedef struct TilePassOptions {
    bool verify;             /* after each pass: the verifier, and whether it spoke the truth about having changed */
    const char *dump_after;  /* name of a pass, or "all": the module's text after it goes to the report */
    const char *stop_after;  /* name of a pass */
    const char *const *skip; /* names of passes */
    size_t skip_count;
    bool limited; /* run only the first `limit` times that a pass meets a function, to find a faulty one */
    uint64_t limit;
    bool rename; /* other names after each pass, by `names`, and plain ones at the end; see lowering/rename.h */
    uint64_t names; /* 0: plain ones at the end alone */
    bool restore;   /* with `names`: the names from before at the end, so that symbols and signature are as ever */
    bool counts; /* TilePassTime.ops is asked for, at the price of a walk after each pass */
} TilePassOptions;

typedef struct TilePassTime {
    const TilePassInfo *pass;
    const char *func;
    double seconds;
    TileResult result;
    uint64_t ops; /* of the module behind the pass, of the last function that it met; 0 unless `counts` */
} TilePassTime;

/* What a run leaves behind. */
typedef struct TilePassReport {
    TileArena *arena;
    TILE_LIST(TilePassTime) times;
    TileText dump;       /* see dump_after */
    TileText reproducer; /* with `verify`, on failure: the text before the pass, and how to run tile-opt on it */
} TilePassReport;

TilePassReport tile_pass_report(TileArena *arena);

/* Runs each pass on each function of the module whose form it takes. TILE_OK, or the failure's status with
 * context->message filled in; the module is then not fit for use. A caller that wants a reproducer of a failure
 * repeats the run with `verify`. */
tile_status tile_passes_run(TilePassContext *context, const TilePassInfo *const *pipeline, size_t count,
                            const TilePassOptions *options, TilePassReport *report);

#endif
