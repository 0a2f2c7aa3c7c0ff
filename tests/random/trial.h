/* Runs one program on one target, in a process of its own. */
#ifndef TESTS_RANDOM_TRIAL_H
#define TESTS_RANDOM_TRIAL_H

#include "program.h"

enum { MAX_TEXT = 1 << 16, MAX_WORDS = 1500 };

/* X(ID, words) */
#define OUTCOME_LIST(X)                                                                                                \
    X(SAME, "right")                                                                                                   \
    X(REFUSED, "refused")                                                                                              \
    X(UNDECIDED, "not judged")                                                                                         \
    X(WRONG, "wrong value")                                                                                            \
    X(OUTSIDE, "wrote outside of a tensor")                                                                            \
    X(UNCOVERED, "stored an invalid element")                                                                          \
    X(INTERNAL, "internal error")                                                                                      \
    X(FAILED, "failed")                                                                                                \
    X(CRASHED, "crashed")                                                                                              \
    X(HUNG, "hung")                                                                                                    \
    X(DISAGREED, "refused what another target accepts")

typedef enum Outcome {
#define OUTCOME_ENUM(id, words) OUTCOME_##id,
    OUTCOME_LIST(OUTCOME_ENUM)
#undef OUTCOME_ENUM
        OUTCOME_COUNT
} Outcome;

const char *outcome_words(Outcome outcome);
/* All verdicts but correct, rejected and undecided. */
bool outcome_is_bad(Outcome outcome);

typedef struct Target {
    const char *label, *name;
    uint32_t flags;
    unsigned scale;
    unsigned guest_bits; /* runs under QEMU, with vectors of so many bits */
    bool device;         /* runs on the GPU that is there */
    bool threads;        /* programs and threads run in an order that depends on a seed */
} Target;

/* NULL after the last. */
const Target *target_at(int index);
const Target *target_find(const char *label);
bool target_is_usable(const Target *target, const char **why);

/* The result of a trial, in memory that processes share. */
typedef struct Verdict {
    Outcome outcome;
    int64_t elements, unknown; /* of results: all elements, and those whose value is unknown */
    char code[40];             /* of the diagnostic, if it was rejected */
    bool unavailable;          /* the target lacks what the program needs */
    char words[MAX_WORDS];
} Verdict;

/* Is the program refused for its size, which one target has room for and another has not? */
bool verdict_is_of_target(const Verdict *verdict);

typedef struct Trial {
    Program *program;
    uint64_t schedule; /* 0: sequential */
    unsigned ranges;   /* of a CPU's programs, in the executor; 0: one */
    unsigned seconds;
    bool alone; /* in this process */
} Trial;

/* The program is unchanged afterwards, except for fields of the evaluator and the printer. */
void trial_run(const Trial *trial, const Target *target, Verdict *shared);

#endif
