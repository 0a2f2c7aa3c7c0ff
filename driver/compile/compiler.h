/* What compilations share, and the input of one. */
#ifndef TILE_DRIVER_COMPILE_COMPILER_H
#define TILE_DRIVER_COMPILE_COMPILER_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver/cache/cache.h"
#include "driver/compile/compile.h"
#include "driver/compile/explain.h"
#include "lang/ir/target.h"
#include "launch/image.h"
#include "mlir_bridge/bridge.h"
#include "parser/check/program.h"

enum { TILE_IDLE_BRIDGES = 4 };

struct TileCompiler {
    _Atomic int references;
    TileArena *arena;
    const char *const *import_paths;
    size_t import_path_count;
    TileSettings settings;
    TileLimits limits;
    pthread_mutex_t mutex;
    TileBridge *idle[TILE_IDLE_BRIDGES]; /* unused bridges, each with an initialised MLIR context */
    int idle_count;
    TileCodeCache *cache;       /* on disk, or NULL */
    const TileForeign *foreign; /* see tile_compiler_emulate */
    unsigned vector_scale;
    uint64_t schedule_seed;
    unsigned ranges; /* see tile_compiler_divide */
    bool mark_padding;
    const char *warn_of;                       /* see tile_compiler_warn_of */
    void (*hold)(bool held);                   /* see tile_compiler_hold; or NULL */
    uint64_t names;                            /* see tile_compiler_rename */
    const struct TilePassInfo *const *between; /* see tile_compiler_between */
    size_t between_count;
    const struct TilePassInfo *const *behind; /* see tile_compiler_behind */
    size_t behind_count;
    const TileSlack *slack;
    bool debugger;                          /* code for CPUs is shown to debuggers */
    TileExplanation *explanation;           /* see tile_compiler_explain */
    const struct TileExecutionObserver *observer;    /* see tile_compiler_observe */
    TILE_LIST(struct TileOwnPass *) passes; /* of other projects; see driver/compile/own_pass.h */
    TILE_LIST(void *) plugins;              /* handles of their shared objects */
};

void tile_compiler_retain(TileCompiler *compiler);
/* A bridge for the calling thread alone, returned with tile_compiler_give_bridge. */
tile_status tile_compiler_take_bridge(TileCompiler *compiler, TileBridge **bridge);
void tile_compiler_give_bridge(TileCompiler *compiler, TileBridge *bridge);

/* Text and options of tile_compile, copied: what a library needs to compile its kernels later. Immutable but for times
 * and counters. */
typedef struct TileInput {
    TileArena *arena;
    TileCompiler *compiler;
    const char *file, *text;
    size_t length;
    bool is_ir;                  /* text of the IR, not of the language */
    const TileBinding *bindings; /* of the settings */
    size_t binding_count;
    const TileTarget *target; /* NULL: the reference interpreter */
    uint32_t flags;           /* TILE_COMPILE_* */
    bool lines;               /* native code with DWARF */
    bool ahead;               /* for an object: GPU code has line information only with `lines` */
    const TileForeign *foreign;
    unsigned vector_scale;
    uint64_t schedule_seed;
    unsigned ranges; /* see tile_compiler_divide */
    bool mark_padding;
    const TileSlack *slack;
    const TileImageSignature *signatures;
    const struct TileTunedKernel *tuned; /* for each signature, from tuning files; NULL: there are none */
    struct TileChoices *choices;         /* for each signature, by the target's model; NULL: there are none */
    _Atomic uint64_t step_ns[TILE_STEP_COUNT];
    _Atomic uint64_t masked_lanes, masked_data; /* TileMaskedCounts of the executor */
} TileInput;

/* Limit on a text, so that offsets into it stay below 2**31. */
enum { TILE_MOST_SOURCE_BYTES = 256 << 20 };

/* Has each of them a name and a value? */
bool tile_are_settings(const TileSetting *settings, size_t count);
/* On failure *report has the reason, if there is a message for it. */
tile_status tile_input_create(TileCompiler *compiler, const char *text, size_t length,
                              const TileCompileOptions *options, TileInput **input, TileReport **report);
void tile_input_destroy(TileInput *input);
/* Adds bindings to those of the settings; names and functions are borrowed. May run out of memory as an arena does. */
void tile_input_bind(TileInput *input, const TileBinding *bindings, size_t count);
/* Adds the time since `*clock` to the step, and sets `*clock` to now. */
void tile_input_step(TileInput *input, TileStep step, uint64_t *clock);

/* The target of this name (NULL: "cpu"); *target is NULL for the interpreter. On failure `why` has the reason. "cpu" is
 * at most `capability`, the name of a target or NULL. */
tile_status tile_target_choose(const char *name, const char *capability, const TileTarget **target, TileText *why);
/* Why code for the target cannot run here, NULL when it can. The text is static. */
const char *tile_target_obstacle(const TileTarget *target);
/* Why it may not be used if `most` is the best target allowed (NULL: any); NULL when it may. */
const char *tile_target_limit(const TileTarget *target, const char *most);

#endif
