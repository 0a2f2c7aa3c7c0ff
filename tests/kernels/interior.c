#include "interior.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"avx2", "avx512", "sve.256", "sm_80"};

/* Adds to the reason where a count is above the row's, which is 0 where there is none, or where it is 0 and the row has one. */
static void compare(const Row *row, const char *target, const char *kind, uint64_t masked, char *reason, size_t *used) {
    char name[32], listed[32];
    snprintf(name, sizeof name, "%s%s", target, kind);
    uint64_t most = matrix_value(row->target, name, listed, sizeof listed) ? strtoull(listed, NULL, 10) : 0;
    if (masked <= most && (masked || !most)) return;
    int length = snprintf(reason + *used, MAX_REASON - *used, "%smachine.%s: %llu operations ran under a mask%s%s",
                          *used ? "; " : "", target, (unsigned long long)masked, *kind ? " that data decides" : "",
                          masked ? "" : ": take this off the row");
    *used += length > 0 && (size_t)length < MAX_REASON - *used ? (size_t)length : 0;
}

bool interior_run(Session *session, const Row *row, char *reason) {
    size_t used = 0;
    char only[8];
    session_divide(session, false); /* a part of a program may have a mask where the program has none */
    bool all = !matrix_value(row->target, "only", only, sizeof only);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        Row one = *row;
        char target[32], why[MAX_REASON];
        bool gpu = strncmp(targets[i], "sm_", 3) == 0;
        if (!all && gpu != (strcmp(only, "gpu") == 0)) continue;
        snprintf(target, sizeof target, "machine.%s", targets[i]);
        one.target = target;
        if (!session_run(session, &one, why)) {
            snprintf(reason, MAX_REASON, "%s: %.1900s", target, why);
            return false;
        }
        TileMaskedCounts masked = session_masked(session);
        compare(row, targets[i], "", masked.lanes, reason, &used);
        compare(row, targets[i], ".data", masked.data, reason, &used);
    }
    return used == 0;
}
