#include "launch/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4096 };

void tile_printer_open(TilePrinter *printer) {
    printer->thread = pthread_self();
    printer->kept = NULL;
    printer->bytes = printer->capacity = 0;
    printer->lost = 0;
    pthread_mutex_init(&printer->mutex, NULL);
}

/* With the mutex held. */
static bool make_room(TilePrinter *printer, size_t bytes) {
    size_t capacity = printer->capacity ? printer->capacity : FIRST_CAPACITY;
    while (capacity - printer->bytes < bytes) {
        if (__builtin_mul_overflow(capacity, (size_t)2, &capacity)) return false;
    }
    if (capacity == printer->capacity) return true;
    char *larger = realloc(printer->kept, capacity);
    if (!larger) return false;
    printer->kept = larger;
    printer->capacity = capacity;
    return true;
}

static void keep_line(void *host, const char *line, size_t length) {
    TilePrinter *printer = host;
    pthread_mutex_lock(&printer->mutex);
    if (make_room(printer, sizeof length + length)) {
        memcpy(printer->kept + printer->bytes, &length, sizeof length);
        memcpy(printer->kept + printer->bytes + sizeof length, line, length);
        printer->bytes += sizeof length + length;
    } else {
        printer->lost++;
    }
    pthread_mutex_unlock(&printer->mutex);
}

void tile_printer_line(TilePrinter *printer, const char *template, const uint64_t *const *items) {
    if (!pthread_equal(pthread_self(), printer->thread)) {
        tile_print_line(template, items, keep_line, printer);
        return;
    }
    tile_printer_flush(printer);
    tile_print_line(template, items, printer->print, printer->host);
}

void tile_printer_flush(TilePrinter *printer) {
    pthread_mutex_lock(&printer->mutex);
    char *kept = printer->kept;
    size_t bytes = printer->bytes, length = 0;
    uint64_t lost = printer->lost;
    printer->kept = NULL;
    printer->bytes = printer->capacity = 0;
    printer->lost = 0;
    pthread_mutex_unlock(&printer->mutex);
    for (size_t at = 0; at < bytes; at += sizeof length + length) {
        memcpy(&length, kept + at, sizeof length);
        printer->print(printer->host, kept + at + sizeof length, length);
    }
    free(kept);
    if (!lost) return;
    char line[96];
    int written = snprintf(line, sizeof line, "(%" PRIu64 " lines are lost: there was no memory for them)\n", lost);
    printer->print(printer->host, line, (size_t)written);
}

void tile_printer_close(TilePrinter *printer) {
    tile_printer_flush(printer);
    pthread_mutex_destroy(&printer->mutex);
}
