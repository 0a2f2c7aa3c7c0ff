/* Compiles IR text to code in this process, for the tests of the bridge. */
#ifndef TILE_TESTS_MLIR_BRIDGE_SUPPORT_H
#define TILE_TESTS_MLIR_BRIDGE_SUPPORT_H

#include <criterion/criterion.h>

#include "mlir_bridge/bridge.h"
#include "mlir_bridge/load.h"

typedef void (*Entry)(const uint64_t *slots, int64_t begin, int64_t end, void *scratch);

typedef struct Compiled {
    TileContext *context;
    TileModule *module;
    TileBridge *bridge;
    TileLoaded *loaded;
} Compiled;

extern const TileTarget avx2, avx512;
/* The targets whose code runs on this machine; ends with NULL. */
const TileTarget *const *usable_targets(void);

/* Reads and verifies; the test fails on an error. */
TileModule *read_module(TileContext *context, const char *text);
Compiled compile_text(const char *text, const TileTarget *target);
Entry find_entry(const Compiled *compiled, const char *name);
void release_compiled(Compiled *compiled);

/* Emits an output of this kind, to be released by tile_code_release; the test fails on an error. */
TileCode emit_text(const char *text, const TileTarget *target, const TileBridgeOptions *options, TileCodeKind kind);
/* Expects that emission fails with this status, and a message that contains the word. */
void expect_failure(const char *text, const TileTarget *target, tile_status status, const char *word);

/* A repeatable sequence. */
uint64_t next_random(uint64_t *state);

#define PARAMETERS "%begin: i64, %end: i64, %scratch: ptr<scratch>"
#define SLOT(pointer) ((uint64_t)(uintptr_t)(pointer))

#endif
