/* What was decided for a kernel and arguments, with and without passes between all others. */
#ifndef TESTS_KERNELS_DECISIONS_H
#define TESTS_KERNELS_DECISIONS_H

#include "driver/explain.h"

/* canonicalise, cse and dce. */
void decisions_shake(TileCompiler *compiler, bool shake);

enum { DECISION_KINDS = 7 };
/* "loops", "threads", "layouts", .. */
const char *decision_kind(unsigned kind);

/* What `tilec explain` says, a sorted list of lines for each kind. */
typedef struct Decisions {
    TILE_LIST(const char *) lines[DECISION_KINDS];
} Decisions;

Decisions decisions_of(TileExplanation *explanation);
/* The kinds that differ, a bit for each; `first` gets a line of one of them that one side alone has. */
unsigned decisions_compare(const Decisions *plain, const Decisions *shaken, const char **first);

#endif
