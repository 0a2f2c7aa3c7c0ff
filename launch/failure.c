#include "launch/failure.h"

#include <stdio.h>

void tile_failure_keep(void *values, const char *line, size_t length) {
    bool fits = length <= TILE_VALUES_BYTES - 8;
    snprintf(values, TILE_VALUES_BYTES, "%.*s%s", (int)(fits ? length - 1 : TILE_VALUES_BYTES - 8), line,
             fits ? "" : "...");
}

tile_status tile_failure_set(const char *kernel, const TileImagePhase *phase, int64_t number, const char *values,
                             TileError *error) {
    return tile_error_set(error, TILE_INVALID_ARGUMENT, "%s: %s%s%s", kernel, phase->assertions[number - 1],
                          *values ? ", where " : "", values);
}
