#include "launch/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/options.h"

enum { USUAL_LIMIT = 8, MOST_VARIANTS = 32 };

static const struct {
    const char *name;
    TileOnMiss value;
} on_miss[] = {{"wait", TILE_ON_MISS_WAIT}, {"general", TILE_ON_MISS_GENERAL}, {"background", TILE_ON_MISS_BACKGROUND}};

static const struct {
    const char *name;
    TileLog value;
} logs[] = {{"guards", TILE_LOG_GUARDS}, {"compile", TILE_LOG_COMPILE}};

static const char *setting_text(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static TileOnMiss read_on_miss(void) {
    const char *text = setting_text("TILE_ON_MISS");
    for (size_t i = 0; text && i < sizeof on_miss / sizeof *on_miss; i++)
        if (strcmp(text, on_miss[i].name) == 0) return on_miss[i].value;
    return TILE_ON_MISS_WAIT;
}

/* Words between commas; `all` is all of them. */
static uint32_t read_log(void) {
    const char *text = setting_text("TILE_LOG");
    uint32_t log = 0;
    while (text && *text) {
        size_t length = strcspn(text, ",");
        for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
            if ((strlen(logs[i].name) == length && strncmp(text, logs[i].name, length) == 0) ||
                (length == 3 && strncmp(text, "all", 3) == 0))
                log |= logs[i].value;
        text += length + (text[length] == ',');
    }
    return log;
}

static int read_limit(void) {
    const char *text = setting_text("TILE_VARIANT_LIMIT");
    long limit = text ? strtol(text, NULL, 10) : 0;
    return limit < 1 ? USUAL_LIMIT : limit > MOST_VARIANTS ? MOST_VARIANTS : (int)limit;
}

static bool read_switch(const char *name) {
    const char *text = setting_text(name);
    return text && strcmp(text, "0") != 0;
}

/* Values of a caller that mean nothing are refused; those of the environment are warned of. */
static bool are_settings(const TileSettings *given) {
    const uint32_t kinds = TILE_LOG_GUARDS | TILE_LOG_COMPILE;
    return (unsigned)given->on_miss <= TILE_ON_MISS_BACKGROUND && given->variant_limit >= 0 && given->threads >= 0 &&
           !(given->log & ~kinds);
}

bool tile_settings_merge(TileSettings *settings, const TileSettings *given) {
    if (!tile_options_read(settings, sizeof *settings, given)) return false;
    if (!are_settings(settings)) return false;
    settings->struct_size = sizeof *settings;
    if (!settings->cpu_capability) settings->cpu_capability = setting_text("TILE_CPU_CAPABILITY");
    if (!settings->tuning) settings->tuning = setting_text("TILE_TUNING");
    if (!settings->on_miss) settings->on_miss = read_on_miss();
    if (settings->variant_limit < 1) settings->variant_limit = read_limit();
    if (settings->variant_limit > MOST_VARIANTS) settings->variant_limit = MOST_VARIANTS;
    if (!settings->log) settings->log = read_log();
    if (!settings->deterministic) settings->deterministic = read_switch("TILE_DETERMINISTIC");
    if (!settings->allow_tf32) settings->allow_tf32 = read_switch("TILE_ALLOW_TF32");
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

static void print_to_stderr(void *host, const char *line, size_t length) {
    (void)host;
    fwrite(line, 1, length, stderr);
}

void tile_log(const TileSettings *settings, uint32_t kinds, const char *format, ...) {
    char line[2048] = "tile: ";
    if (!(settings->log & kinds)) return;
    va_list arguments;
    va_start(arguments, format);
    size_t begin = strlen(line);
    int length = vsnprintf(line + begin, sizeof line - begin - 1, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    size_t end = begin + (size_t)length < sizeof line - 2 ? begin + (size_t)length : sizeof line - 2;
    line[end] = '\n';
    (settings->log_print ? settings->log_print : print_to_stderr)(settings->log_host, line, end + 1);
}
