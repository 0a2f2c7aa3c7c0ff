/* Results of tests as JUnit's XML, which CI systems read: a suite for each file, a case for each test and target. */
#ifndef TILE_TOOLS_JUNIT_H
#define TILE_TOOLS_JUNIT_H

#include "base/list.h"
#include "base/string.h"

typedef struct TileJunitCase {
    const char *suite, *name, *target; /* target NULL: the file itself, which could not be tested */
    const char *failure;               /* what is wrong, or NULL */
    double seconds;
} TileJunitCase;

typedef struct TileJunit {
    TileArena *arena;
    TILE_LIST(TileJunitCase) cases; /* those of a file one after the other */
} TileJunit;

/* The texts are copied. */
void tile_junit_add(TileJunit *junit, const TileJunitCase *given);
void tile_junit_print(const TileJunit *junit, TileText *text);

#endif
