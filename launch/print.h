/* Lines that programs of a launch print. Only the thread that launches hands them over, so that a lock which it holds,
 * and which the receiver takes, never makes a thread of the pool wait: lines of other threads are kept until the
 * launching one prints a line itself, or has ended a phase. */
#ifndef TILE_LAUNCH_PRINT_H
#define TILE_LAUNCH_PRINT_H

#include <pthread.h>

#include "base/print_line.h"

typedef struct TilePrinter {
    TilePrintLine print;
    void *host;
    pthread_t thread;      /* that launches */
    pthread_mutex_t mutex; /* guards what follows */
    char *kept;            /* the lines' lengths, each before its text */
    size_t bytes, capacity;
    uint64_t lost; /* lines for which there was no memory */
} TilePrinter;

/* Before the phases of code that prints; on the thread that launches. */
void tile_printer_open(TilePrinter *printer);
/* From any thread. */
void tile_printer_line(TilePrinter *printer, const char *template, const uint64_t *const *items);
/* After each phase, on the thread that launches. */
void tile_printer_flush(TilePrinter *printer);
void tile_printer_close(TilePrinter *printer);

#endif
