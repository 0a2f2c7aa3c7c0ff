#include "launch/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/settings.h"

static const char *const names[] = {[TILE_VARIABLE_CPU_CAPABILITY] = "TILE_CPU_CAPABILITY",
                                    [TILE_VARIABLE_NUM_THREADS] = "TILE_NUM_THREADS",
                                    [TILE_VARIABLE_OWN_THREADS] = "TILE_OWN_THREADS",
                                    [TILE_VARIABLE_ON_MISS] = "TILE_ON_MISS",
                                    [TILE_VARIABLE_VARIANT_LIMIT] = "TILE_VARIANT_LIMIT",
                                    [TILE_VARIABLE_LOG] = "TILE_LOG",
                                    [TILE_VARIABLE_DETERMINISTIC] = "TILE_DETERMINISTIC",
                                    [TILE_VARIABLE_ALLOW_TF32] = "TILE_ALLOW_TF32",
                                    [TILE_VARIABLE_TUNING] = "TILE_TUNING",
                                    [TILE_VARIABLE_CACHE_DIR] = "TILE_CACHE_DIR",
                                    [TILE_VARIABLE_CACHE_BYTES] = "TILE_CACHE_BYTES",
                                    [TILE_VARIABLE_PTXAS] = "TILE_PTXAS",
                                    [TILE_VARIABLE_DEBUGGER] = "TILE_DEBUGGER"};

/* The variables that were warned of: once each, however many libraries read them. */
static _Atomic uint32_t warned;

const char *tile_variable_name(TileVariable variable) { return names[variable]; }

const char *tile_variable_text(TileVariable variable) {
    const char *text = getenv(names[variable]);
    return text && *text ? text : NULL;
}

void tile_variable_warn(TileVariable variable, const TileSettings *settings, const char *expected, const char *taken) {
    const char *text = tile_variable_text(variable);
    uint32_t bit = UINT32_C(1) << variable;
    if (!text || (atomic_fetch_or(&warned, bit) & bit)) return;
    tile_warn(settings, "%s is '%.200s': expected %s; it is taken as %s", names[variable], text, expected, taken);
}

static bool read_number(const char *text, uint64_t *number) {
    char *end;
    int saved = errno;
    if (*text < '0' || *text > '9') return false; /* strtoull accepts signs and blanks */
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *number = errno == ERANGE ? UINT64_MAX : value;
    errno = saved;
    return !*end;
}

uint64_t tile_variable_number(TileVariable variable, const TileSettings *settings, uint64_t least, uint64_t most,
                              uint64_t usual, const char *usual_words) {
    const char *text = tile_variable_text(variable);
    char expected[80], taken[80];
    uint64_t number = 0;
    if (!text) return usual;
    bool is_number = read_number(text, &number);
    if (is_number && number >= least && number <= most) return number;
    uint64_t used = is_number && number > most ? most : usual;
    snprintf(expected, sizeof expected, "a number from %" PRIu64 " to %" PRIu64, least, most);
    if (used == usual && usual_words)
        snprintf(taken, sizeof taken, "%s", usual_words);
    else
        snprintf(taken, sizeof taken, "%" PRIu64, used);
    tile_variable_warn(variable, settings, expected, taken);
    return used;
}

bool tile_variable_switch(TileVariable variable, const TileSettings *settings) {
    const char *text = tile_variable_text(variable);
    bool on = text && strcmp(text, "1") == 0;
    if (text && !on && strcmp(text, "0") != 0) tile_variable_warn(variable, settings, "0 or 1", "0");
    return on;
}
