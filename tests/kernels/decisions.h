/* The decisions of passes for a kernel and arguments, with and without other passes between them. */
#ifndef TESTS_KERNELS_DECISIONS_H
#define TESTS_KERNELS_DECISIONS_H

#include "driver/compile/explain.h"

/* Adds canonicalise, cse and dce between passes. */
void decisions_shake(TileCompiler *compiler, bool shake);

/* The same after the last pass: removes loops with trip count 1 that no pass looks at any more, which are also removed
 * between passes, and which LLVM removes anyway. */
void decisions_tidy(TileCompiler *compiler, bool tidy);

enum { DECISION_KINDS = 8 };
/* "loops", "threads", "layouts", .. */
const char *decision_kind(unsigned kind);

/* The output of `tilec explain`: a sorted list of lines for each kind. */
typedef struct Decisions {
    TILE_LIST(const char *) lines[DECISION_KINDS];
    const char *ptx; /* GPUs */
} Decisions;

Decisions decisions_of(TileExplanation *explanation);
/* Adds spills as reported by ptxas, if it is installed and the code differs. */
void decisions_add_spills(Decisions *plain, Decisions *shaken, TileArena *arena);
bool decisions_know_spills(void);
/* The kinds that differ, as a bit set. */
unsigned decisions_compare(const Decisions *plain, const Decisions *shaken);
/* Describes a difference, in `size` bytes. */
void decisions_describe(const Decisions *plain, const Decisions *shaken, unsigned kind, char *text, size_t size);

#endif
