/* Environment variables that library and tools read as words or numbers. For each variable, an invalid value is warned
 * of once in a process, and a default is used instead. */
#ifndef TILE_LAUNCH_ENVIRONMENT_H
#define TILE_LAUNCH_ENVIRONMENT_H

#include "tile/launch.h"

typedef enum TileVariable {
    TILE_VARIABLE_CPU_CAPABILITY,
    TILE_VARIABLE_NUM_THREADS,
    TILE_VARIABLE_OWN_THREADS,
    TILE_VARIABLE_ON_MISS,
    TILE_VARIABLE_VARIANT_LIMIT,
    TILE_VARIABLE_LOG,
    TILE_VARIABLE_DETERMINISTIC,
    TILE_VARIABLE_ALLOW_TF32,
    TILE_VARIABLE_TUNING,
    TILE_VARIABLE_CACHE_DIR,
    TILE_VARIABLE_CACHE_BYTES,
    TILE_VARIABLE_PTXAS,
    TILE_VARIABLE_DEBUGGER
} TileVariable;

const char *tile_variable_name(TileVariable variable);
/* NULL where it is not set, or empty. */
const char *tile_variable_text(TileVariable variable);

/* Logs "tile: warning: NAME is 'value': expected ..; it is taken as .."; `settings` may be NULL. Only the first warning
 * of a variable in this process. */
void tile_variable_warn(TileVariable variable, const TileSettings *settings, const char *expected, const char *taken);
/* The value if it is a decimal integer from `least` to `most`; `usual` if it is not set. An invalid value is warned of
 * and gives `usual`, one that is too large gives `most`. `usual_words` describes `usual` in the warning; NULL: its
 * digits. */
uint64_t tile_variable_number(TileVariable variable, const TileSettings *settings, uint64_t least, uint64_t most,
                              uint64_t usual, const char *usual_words);
/* 0 or 1; false if it is not set; all else is warned of and false. */
bool tile_variable_switch(TileVariable variable, const TileSettings *settings);

#endif
