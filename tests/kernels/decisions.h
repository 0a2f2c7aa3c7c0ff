/* What was decided for a kernel and arguments, with and without passes between all others. */
#ifndef TESTS_KERNELS_DECISIONS_H
#define TESTS_KERNELS_DECISIONS_H

#include "driver/compile/explain.h"

/* canonicalise, cse and dce. */
void decisions_shake(TileCompiler *compiler, bool shake);

/* The same behind the last pass: loops of one trip that no pass looks at any more are gone then as they are in shaken
 * code, which LLVM does in any case. */
void decisions_tidy(TileCompiler *compiler, bool tidy);

enum { DECISION_KINDS = 8 };
/* "loops", "threads", "layouts", .. */
const char *decision_kind(unsigned kind);

/* What `tilec explain` says, a sorted list of lines for each kind. */
typedef struct Decisions {
    TILE_LIST(const char *) lines[DECISION_KINDS];
    const char *ptx; /* GPUs */
} Decisions;

Decisions decisions_of(TileExplanation *explanation);
/* Adds what ptxas says of registers that do not suffice, where the code differs at all, and there is one. */
void decisions_add_spills(Decisions *plain, Decisions *shaken, TileArena *arena);
bool decisions_know_spills(void);
/* The kinds that differ, a bit for each. */
unsigned decisions_compare(const Decisions *plain, const Decisions *shaken);
/* How one of them does, in `size` bytes. */
void decisions_describe(const Decisions *plain, const Decisions *shaken, unsigned kind, char *text, size_t size);

#endif
