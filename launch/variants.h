/* Kernels and the code that they have so far.
 *
 * A launch holds on to its variant while it runs, so that variants can go while others launch. Their records stay until
 * the library goes: a pointer to one is always good, and what it holds is looked at only after it has been taken
 * (tile_variant_take). Hits lock nothing and allocate nothing. */
#ifndef TILE_LAUNCH_VARIANTS_H
#define TILE_LAUNCH_VARIANTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "launch/argument.h"

enum {
    TILE_KEPT_VARIANTS = 64,      /* of one kernel; more static values or types than this take turns */
    TILE_KEPT_GPU_VARIANTS = 256, /* which take longer to make: the driver assembles them */
    TILE_VARIANT_SLOTS = 256,     /* a power of two */
};

typedef enum TileVariantState {
    TILE_VARIANT_IDLE, /* nobody compiles it: not begun, or given up for want of memory or files */
    TILE_VARIANT_COMPILING,
    TILE_VARIANT_READY,
    TILE_VARIANT_FAILED,  /* and will fail again */
    TILE_VARIANT_EVICTED, /* goes with its last launch */
    TILE_VARIANT_GOING,   /* one thread frees the code */
    TILE_VARIANT_FREE     /* the record waits for another variant */
} TileVariantState;

/* Launches that ran, and in the low bits how many hold on to the variant now. */
enum { TILE_VARIANT_LAUNCH = 1 << 16, TILE_VARIANT_USERS = TILE_VARIANT_LAUNCH - 1 };

typedef struct TileVariant {
    struct TileVariant *next;
    TileImageRequest request;
    _Atomic int state; /* TileVariantState */
    _Atomic uint64_t uses;
    _Atomic uint64_t generation; /* how many variants the record has stood for */
    _Atomic uint64_t stamp;      /* of the kernel's clock when it was last looked up */
    _Atomic bool rest;           /* general code beyond the limit: it serves what no other variant serves */
    _Atomic bool captured;       /* a CUDA graph may hold its code, which stays as long as the library */
    pid_t compiler;              /* the process that compiles it */
    TileImageCode *code;         /* READY, EVICTED */
    tile_status status;          /* of the last attempt; FAILED: of all others too */
    TileReport *report;          /* what the last attempt had to say; may be NULL */
    uint64_t compile_ns;
    /* For each phase, what a program of it took when last measured (see launch.c). */
    _Atomic uint64_t *costs;
} TileVariant;

typedef struct TileReplay TileReplay;

struct TileKernel {
    TileLibrary *library;
    uint32_t index;
    const TileImageSignature *signature;
    struct TileKernel *twin;                          /* linked objects: the same for tensors on GPUs, or NULL */
    _Atomic(TileVariant *) last;                      /* the one used last */
    _Atomic(TileVariant *) slots[TILE_VARIANT_SLOTS]; /* by hash of what was asked of the arguments; any may be stale */
    _Atomic uint64_t asked[TILE_MAX_PARAMETERS];      /* what any variant asked; only grows */
    _Atomic(TileReplay *) replays;                    /* replay.h; NULL before the first code */
    pthread_mutex_t mutex;                            /* guards the list and changes of state */
    pthread_cond_t changed;
    _Atomic(TileVariant *) variants; /* grows at its head */
    _Atomic uint64_t clock, past_launches, misses, compiled, evicted, compile_ns;
    _Atomic uint64_t cold;                           /* launches that missed */
    _Atomic uint64_t timed_launches, timed_guard_ns; /* those hits that were timed up to their code */
    int background;                                  /* threads of the library that compile for it in this process */
    bool limited;                                    /* the limit was reached, and said so */
};

struct TileLibrary {
    TileImageSource source;
    TileSettings settings;
    uint32_t kernel_count;
    TileKernel kernels[];
};

/* The code for these arguments: a variant whose demands hold and that would not be made otherwise for them; else
 * compiled now, or by another thread while this one waits. request->generics is given, the rest is filled in.
 * Given back with tile_variant_give. Where compiling fails *report (report may be NULL) is what the compiler says, or
 * left alone where that is nothing. */
tile_status tile_variant_get(TileKernel *kernel, TileView *views, TileImageRequest *request, TileVariant **variant,
                             TileError *error, TileReport **report);
/* `launched`: it ran. */
void tile_variant_give(TileVariant *variant, bool launched);

/* ---- for variants.c, miss.c and linked.c ---- */

/* Fills in what the arguments say: values of statics, and facts; views get those that are about several of them. */
void tile_variant_request(const TileKernel *kernel, TileView *views, TileImageRequest *request);
/* Marks it as the one used last. */
void tile_variant_touch(TileKernel *kernel, TileVariant *variant);
/* False where it is not ready. */
bool tile_variant_take(TileVariant *variant);
/* With the kernel's mutex held: no launch finds the variant any more, and its code goes with the last that has it. */
void tile_variant_evict(TileVariant *variant);
/* Do the arguments keep what the variant relies on, and does the compiler get no other answers from them than it got?
 * For one that is being compiled it is not known what it will ask: it must have been told the same. A request for
 * general code, which tells nothing, is served by general code alone: that is made to be good at anything. */
bool tile_variant_serves(const TileImageSignature *signature, const TileVariant *variant, int state,
                         const TileImageRequest *request, const TileView *views);
/* After the last hit and the slots: the whole list, and then the compiler. Takes the variant. */
tile_status tile_variant_miss(TileKernel *kernel, TileImageRequest *request, const TileView *views,
                              TileVariant **variant, TileError *error, TileReport **report);

#endif
