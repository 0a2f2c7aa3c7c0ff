/* Kernels and the code that they have so far. */
#ifndef TILE_LAUNCH_VARIANTS_H
#define TILE_LAUNCH_VARIANTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "launch/argument.h"

/* A kernel specialises on facts about its tensors this often for one choice of types and static values; then
 * general code serves the rest. */
enum { TILE_VARIANT_LIMIT = 8 };

typedef enum TileVariantState {
    TILE_VARIANT_IDLE, /* nobody compiles it: not begun, or given up for want of memory or files */
    TILE_VARIANT_COMPILING,
    TILE_VARIANT_READY,
    TILE_VARIANT_FAILED /* and will fail again */
} TileVariantState;

typedef struct TileVariant {
    struct TileVariant *next;
    TileImageRequest request;
    _Atomic int state;   /* TileVariantState */
    pid_t compiler;      /* the process that compiles it */
    TileImageCode *code; /* READY */
    tile_status status;  /* of the last attempt; FAILED: of all others too */
    TileReport *report;  /* what the last attempt had to say; may be NULL */
    /* For each phase, what a program of it took when last measured (see launch.c). */
    _Atomic uint64_t *costs;
} TileVariant;

struct TileKernel {
    TileLibrary *library;
    uint32_t index;
    const TileImageSignature *signature;
    _Atomic(TileVariant *) variants; /* grows at its head; entries stay until the library goes */
    _Atomic(TileVariant *) last;     /* the one used last */
    pthread_mutex_t mutex;           /* guards growth and changes of state */
    pthread_cond_t changed;
    _Atomic uint64_t launches, misses, compiled, compile_ns;
};

struct TileLibrary {
    TileImageSource source;
    uint32_t kernel_count;
    TileKernel kernels[];
};

/* The code for these arguments: a variant whose demands hold and that was offered all that they offer; else
 * compiled now, or by another thread while this one waits. request->generics is given, the rest is filled in. Where
 * compiling fails *report (report may be NULL) is what the compiler says, or left alone where that is nothing. */
tile_status tile_variant_get(TileKernel *kernel, const TileView *views, TileImageRequest *request,
                             TileVariant **variant, TileError *error, TileReport **report);

#endif
