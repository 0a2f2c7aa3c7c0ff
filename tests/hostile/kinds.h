/* The kinds of arguments that functions of the API take: of each a sane value, and hostile ones. */
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

/* What a call has to do with a hostile value, beside living on. */
typedef enum Expected {
    REFUSES, /* the result tells */
    TAKES,   /* the header allows the value */
    EITHER   /* the value means something, or what it means depends on other arguments */
} Expected;

typedef struct Kind {
    const char *name;
    void (*make)(Value *value); /* a sane value */
    /* Makes the sane value the hostile one of this number; false past the last. */
    bool (*change)(Value *value, int number, const char **label, Expected *expected);
} Kind;

/* What sane values are made of. Handles that a call does not consume are made once and kept; the others, and what calls
 * gave, go with tile_fixture_clean. */
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
    TileReport *report_out;
    TileThreadPool *pool_out;
    TileBuild *build_out;
    TileIr *ir_out;
    char *string_out;
    void *memory_out;
} Fixture;
extern Fixture tile_fixture;

/* Ends the program where what the tests need is not to be had. */
void tile_fixture_need(bool made, const char *what);
/* Handles that are made once. */
TileCompiler *tile_fixture_compiler(void);
TileKernel *tile_fixture_kernel(void);
/* Destroys what one call made; with `all` the rest too. */
void tile_fixture_clean(bool all);

typedef void (*TileVisit)(TileIr *ir, TileIrOp *op, void *state);

#define KIND(name, type, member) extern const Kind tile_kind_##name;
#include "hostile/kinds.def"
#undef KIND

#endif
