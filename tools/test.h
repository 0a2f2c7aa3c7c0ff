/* Running one test: test_run.c. The command is test.c. */
#ifndef TILE_TOOLS_TEST_H
#define TILE_TOOLS_TEST_H

#include "driver/compile/unit.h"
#include "tools/array.h"

/* The kernels of a file, the tests' own or an imported one, for a target. */
typedef struct TileTestLibrary {
    uint32_t file; /* in the unit's diagnostics */
    unsigned target;
    TileLibrary *library;
} TileTestLibrary;

/* A file whose tests are run. */
typedef struct TileTestFile {
    TileUnit *unit;
    TileCompiler *compiler;
    uint32_t flags;             /* TILE_COMPILE_* */
    const char *const *targets; /* ends in NULL */
    TILE_LIST(TileTestLibrary) libraries; /* without settings; created on demand */
} TileTestFile;

enum { TILE_TEST_TARGETS = 15 };

/* Runs the test on the target of this number. Failures are added to the unit's diagnostics. TILE_OK if the test could
 * be run, whether or not its assertions hold; otherwise `message` may say what the environment lacks. */
tile_status tile_test_run(TileTestFile *file, const TileItem *item, unsigned target, TileText *message);

#endif
