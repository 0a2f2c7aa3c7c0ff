#include "launch/log.h"

#include <stdarg.h>
#include <stdio.h>

static void print_to_stderr(void *host, const char *line, size_t length) {
    (void)host;
    fwrite(line, 1, length, stderr);
}

static void TILE_PRINTF(3, 0)
    say(const TileSettings *settings, const char *begin, const char *format, va_list arguments) {
    char line[2048];
    int head = snprintf(line, sizeof line, "tile: %s", begin);
    int length = vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
    if (length < 0) return;
    size_t end = (size_t)head + (size_t)length;
    if (end > sizeof line - 2) end = sizeof line - 2;
    line[end] = '\n';
    bool own = settings && settings->log_print;
    (own ? settings->log_print : print_to_stderr)(own ? settings->log_host : NULL, line, end + 1);
}

void tile_log(const TileSettings *settings, uint32_t kinds, const char *format, ...) {
    va_list arguments;
    if (!(settings->log & kinds)) return;
    va_start(arguments, format);
    say(settings, "", format, arguments);
    va_end(arguments);
}

void tile_warn(const TileSettings *settings, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(settings, "warning: ", format, arguments);
    va_end(arguments);
}
