/* What compilations share, and what one was asked for. */
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
    TileBridge *idle[TILE_IDLE_BRIDGES]; /* bridges at rest, each with an MLIR context that is ready */
    int idle_count;
    TileCodeCache *cache;       /* on disk, or NULL */
    const TileForeign *foreign; /* see tile_compiler_emulate */
    unsigned vector_scale;
    uint64_t schedule_seed;
    bool mark_padding;
    void (*hold)(bool held);                   /* see tile_compiler_hold; or NULL */
    uint64_t names;                            /* see tile_compiler_rename */
    const struct TilePassInfo *const *between; /* see tile_compiler_between */
    size_t between_count;
    const struct TilePassInfo *const *behind; /* see tile_compiler_behind */
    size_t behind_count;
    const TileSlack *slack;
    TileExplanation *explanation;           /* see tile_compiler_explain */
    TILE_LIST(struct TileOwnPass *) passes; /* of other projects; see driver/compile/own_pass.h */
    TILE_LIST(void *) plugins;              /* the shared objects of some */
};

void tile_compiler_retain(TileCompiler *compiler);
/* A bridge for the calling thread alone, given back with tile_compiler_give_bridge. */
tile_status tile_compiler_take_bridge(TileCompiler *compiler, TileBridge **bridge);
void tile_compiler_give_bridge(TileCompiler *compiler, TileBridge *bridge);

/* Text and options of tile_compile, copied: what a library needs to compile its kernels later. Not changed after it
 * was made, but for the times. */
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
    bool lines;               /* native code with line tables */
    bool ahead;               /* for an object: the code of GPUs has lines where `lines` wants them */
    const TileForeign *foreign;
    unsigned vector_scale;
    uint64_t schedule_seed;
    bool mark_padding;
    const TileSlack *slack;
    const TileImageSignature *signatures;
    const struct TileTunedKernel *tuned; /* for each signature, from tuning files; NULL: there are none */
    _Atomic uint64_t step_ns[TILE_STEP_COUNT];
    _Atomic uint64_t masked; /* operations that the executor ran under a mask */
} TileInput;

/* Of a text: all positions in it stay below 2**31. */
enum { TILE_MOST_SOURCE_BYTES = 256 << 20 };

/* Has each of them a name and a value? */
bool tile_are_settings(const TileSetting *settings, size_t count);
/* On failure *report says what is wrong, where there are words for it. */
tile_status tile_input_create(TileCompiler *compiler, const char *text, size_t length,
                              const TileCompileOptions *options, TileInput **input, TileReport **report);
void tile_input_destroy(TileInput *input);
/* Adds bindings to those of the settings; names and functions are borrowed. May run out of memory as an arena does. */
void tile_input_bind(TileInput *input, const TileBinding *bindings, size_t count);
/* Adds the time since `*clock`, which becomes now. */
void tile_input_step(TileInput *input, TileStep step, uint64_t *clock);

/* The target of this name (NULL: "cpu"), which must be usable here; *target is NULL for the interpreter. Otherwise
 * `why` says why not. "cpu" is no better than `capability`, the name of a target or NULL. */
tile_status tile_target_choose(const char *name, const char *capability, const TileTarget **target, TileText *why);
/* Why code for the target cannot run here, NULL when it can. The text is static. */
const char *tile_target_obstacle(const TileTarget *target);
/* Why it may not be used where `most` is the best that may be (NULL: no limit); NULL when it may. */
const char *tile_target_limit(const TileTarget *target, const char *most);

#endif
