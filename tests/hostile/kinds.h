/* The kinds of arguments of the API's functions: for each a valid value, and hostile ones. */
#ifndef TILE_TESTS_HOSTILE_KINDS_H
#define TILE_TESTS_HOSTILE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "tile/build.h"
#include "tile/linked.h"
#include "tile/pass.h"

typedef struct Value {
    void *pointer;
    int64_t integer;
    double number;
} Value;

/* The required reaction to a hostile value, besides not crashing. */
typedef enum Expected {
    REFUSES, /* the result is an error */
    TAKES,   /* the header allows the value */
    EITHER   /* either: the value may be valid, or its validity depends on other arguments */
} Expected;

typedef struct Kind {
    const char *name;
    void (*make)(Value *value); /* a sane value */
    /* Changes the valid value to the hostile one of this number; false after the last. */
    bool (*change)(Value *value, int number, const char **label, Expected *expected);
} Kind;

/* The context of valid values. Handles that a call does not consume are created once; the others, and results of calls,
 * are destroyed by tile_fixture_clean. */
typedef struct Fixture {
    TileCompiler *compiler;
    TileLibrary *library;
    TileKernel *kernel;
    TileReport *report;
    TileBuild *build;
    TileThreadPool *pool;
    void *device_memory;
    /* of one call */
    TileIr *ir, *other;
    TileIrValue *x, *y, *extent, *first, *tile, *scalar, *truth, *foreign;
    TileIrOp *done;
    TileCompiler *own_compiler, *compiler_out;
    TileLibrary *library_out;
    TileBound *bound, *bound_out;
    TileReport *report_out;
    TileThreadPool *pool_out;
    TileBuild *build_out;
    TileIr *ir_out;
    char *string_out;
    void *memory_out;
} Fixture;
extern Fixture tile_fixture;

/* Ends the program if a prerequisite of the tests is missing. */
void tile_fixture_need(bool made, const char *what);
/* Handles that are created once. */
TileCompiler *tile_fixture_compiler(void);
TileKernel *tile_fixture_kernel(void);
/* Destroys the objects of one call; with `all` the others, too. */
void tile_fixture_clean(bool all);

typedef void (*TileVisit)(TileIr *ir, TileIrOp *op, void *state);

#define KIND(name, type, member) extern const Kind tile_kind_##name;
#include "hostile/kinds.def"
#undef KIND

#endif
