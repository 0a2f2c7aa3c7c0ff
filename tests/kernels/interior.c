#include "interior.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"avx2", "avx512", "sve.256", "sm_80"};

bool interior_run(Session *session, const Row *row, char *reason) {
    size_t used = 0;
    char only[8];
    session_divide(session, false); /* a part of a program may have a mask where the program has none */
    bool all = !matrix_value(row->target, "only", only, sizeof only);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        Row one = *row;
        char target[32], why[MAX_REASON], listed[32];
        bool gpu = strncmp(targets[i], "sm_", 3) == 0;
        if (!all && gpu != (strcmp(only, "gpu") == 0)) continue;
        snprintf(target, sizeof target, "machine.%s", targets[i]);
        one.target = target;
        if (!session_run(session, &one, why)) {
            snprintf(reason, MAX_REASON, "%s: %.1900s", target, why);
            return false;
        }
        uint64_t masked = session_masked(session), most = 0;
        if (matrix_value(row->target, targets[i], listed, sizeof listed)) most = strtoull(listed, NULL, 10);
        if (masked <= most && (masked || !most)) continue;
        int length =
            snprintf(reason + used, MAX_REASON - used, "%s%s: %llu operations ran under a mask%s", used ? "; " : "",
                     target, (unsigned long long)masked, masked ? "" : ": take the target off the row");
        used += length > 0 && (size_t)length < MAX_REASON - used ? (size_t)length : 0;
    }
    return used == 0;
}
