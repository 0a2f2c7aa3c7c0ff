#include "launch/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "launch/environment.h"
#include "launch/options.h"
#include "launch/threads.h"

enum { USUAL_LIMIT = 8, MOST_VARIANTS = 32 };

static const struct {
    const char *name;
    TileOnMiss value;
} on_miss[] = {{"wait", TILE_ON_MISS_WAIT}, {"general", TILE_ON_MISS_GENERAL}, {"background", TILE_ON_MISS_BACKGROUND}};

static const struct {
    const char *name;
    TileLog value;
} logs[] = {{"guards", TILE_LOG_GUARDS}, {"compile", TILE_LOG_COMPILE}};

static TileOnMiss read_on_miss(const TileSettings *settings) {
    const char *text = tile_variable_text(TILE_VARIABLE_ON_MISS);
    for (size_t i = 0; text && i < sizeof on_miss / sizeof *on_miss; i++)
        if (strcmp(text, on_miss[i].name) == 0) return on_miss[i].value;
    tile_variable_warn(TILE_VARIABLE_ON_MISS, settings, "wait, general or background", "wait");
    return TILE_ON_MISS_WAIT;
}

static uint32_t find_log(const char *word, size_t length) {
    if (length == 3 && memcmp(word, "all", 3) == 0) return TILE_LOG_GUARDS | TILE_LOG_COMPILE;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        if (strlen(logs[i].name) == length && memcmp(word, logs[i].name, length) == 0) return logs[i].value;
    return 0;
}

/* Words separated by commas; `all` stands for all of them. */
static uint32_t read_log(const TileSettings *settings) {
    static const char *const taken[] = {[0] = "nothing",
                                        [TILE_LOG_GUARDS] = "guards",
                                        [TILE_LOG_COMPILE] = "compile",
                                        [TILE_LOG_GUARDS | TILE_LOG_COMPILE] = "guards,compile"};
    const char *text = tile_variable_text(TILE_VARIABLE_LOG);
    uint32_t log = 0;
    bool odd = false;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        uint32_t kind = find_log(text, length);
        log |= kind;
        odd |= length && !kind;
        text += length + (text[length] == ',');
    }
    if (odd) tile_variable_warn(TILE_VARIABLE_LOG, settings, "guards, compile or all, with commas between", taken[log]);
    return log;
}

/* If the limit is no known name, code for CPUs is refused, so that no better code than intended runs. */
static const char *read_capability(const TileSettings *settings) {
    const char *text = tile_variable_text(TILE_VARIABLE_CPU_CAPABILITY), *name;
    char expected[160] = "the name of a CPU target:";
    for (size_t i = 0; (name = tile_cpu_name_at(i)); i++) {
        if (text && strcmp(name, text) == 0) return text;
        size_t length = strlen(expected);
        snprintf(expected + length, sizeof expected - length, "%s %s", i ? "," : "", name);
    }
    tile_variable_warn(TILE_VARIABLE_CPU_CAPABILITY, settings, expected, "one that forbids all of them");
    return text;
}

/* Invalid values of a caller are refused; those of the environment are warned of. */
static bool are_settings(const TileSettings *given) {
    const uint32_t kinds = TILE_LOG_GUARDS | TILE_LOG_COMPILE;
    return (unsigned)given->on_miss <= TILE_ON_MISS_BACKGROUND && given->variant_limit >= 0 && given->threads >= 0 &&
           !(given->log & ~kinds);
}

bool tile_settings_merge(TileSettings *settings, const TileSettings *given) {
    if (!tile_options_read(settings, sizeof *settings, given)) return false;
    if (!are_settings(settings)) return false;
    settings->struct_size = sizeof *settings;
    if (!settings->cpu_capability) settings->cpu_capability = read_capability(settings);
    if (!settings->tuning) settings->tuning = tile_variable_text(TILE_VARIABLE_TUNING);
    if (!settings->on_miss) settings->on_miss = read_on_miss(settings);
    if (!settings->variant_limit)
        settings->variant_limit =
            (int)tile_variable_number(TILE_VARIABLE_VARIANT_LIMIT, settings, 1, MOST_VARIANTS, USUAL_LIMIT, NULL);
    if (settings->variant_limit > MOST_VARIANTS) settings->variant_limit = MOST_VARIANTS;
    if (!settings->log) settings->log = read_log(settings);
    if (!settings->deterministic) settings->deterministic = tile_variable_switch(TILE_VARIABLE_DETERMINISTIC, settings);
    if (!settings->allow_tf32) settings->allow_tf32 = tile_variable_switch(TILE_VARIABLE_ALLOW_TF32, settings);
    tile_default_threads(settings); /* the pool is created later, without settings */
    return true;
}

tile_status tile_settings_read(TileSettings *settings) {
    TileSettings own;
    if (!settings || !tile_settings_merge(&own, NULL)) return TILE_INVALID_ARGUMENT;
    own.threads = tile_thread_pool_size(NULL);
    return tile_options_write(settings, &own, sizeof own) ? TILE_OK : TILE_INVALID_ARGUMENT;
}

const char *tile_on_miss_name(TileOnMiss value) {
    for (size_t i = 0; i < sizeof on_miss / sizeof *on_miss; i++)
        if (on_miss[i].value == value) return on_miss[i].name;
    return NULL;
}
