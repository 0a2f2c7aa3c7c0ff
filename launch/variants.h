/* Kernels and the code that they have so far.
 *
 * A launch holds a reference to its variant while it runs, so that variants can be evicted while others launch. Their
 * records live as long as the library: a pointer to one is always valid, but its contents are read only after
 * tile_variant_take. Hits neither lock nor allocate. */
#ifndef TILE_LAUNCH_VARIANTS_H
#define TILE_LAUNCH_VARIANTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "launch/argument.h"
#include "launch/share.h"

enum {
    TILE_KEPT_VARIANTS = 64,      /* of one kernel; with more static values or types, variants are evicted */
    TILE_KEPT_GPU_VARIANTS = 256, /* for GPUs, where they take longer to compile: the driver assembles them */
    TILE_VARIANT_SLOTS = 256,     /* a power of two */
    TILE_VALUES_KEPT = 16,        /* launches whose values are noted; a power of two */
};

typedef enum TileVariantState {
    TILE_VARIANT_IDLE, /* nobody compiles it: not begun, or given up for lack of memory or files */
    TILE_VARIANT_COMPILING,
    TILE_VARIANT_READY,
    TILE_VARIANT_FAILED,  /* and will fail again */
    TILE_VARIANT_EVICTED, /* goes with its last launch */
    TILE_VARIANT_GOING,   /* one thread frees the code */
    TILE_VARIANT_FREE     /* the record can be reused */
} TileVariantState;

/* Number of launches, and in the low bits the number of current users. */
enum { TILE_VARIANT_LAUNCH = 1 << 16, TILE_VARIANT_USERS = TILE_VARIANT_LAUNCH - 1 };

typedef struct TileVariant {
    struct TileVariant *next;
    TileImageRequest request;
    _Atomic int state; /* TileVariantState */
    _Atomic uint64_t uses;
    _Atomic uint64_t generation; /* number of variants that the record has had */
    _Atomic uint64_t stamp;      /* the kernel's clock at its last lookup */
    _Atomic bool rest;           /* general code beyond the limit, for arguments that no other variant serves */
    _Atomic bool special;        /* for the values of scalars */
    _Atomic bool captured;       /* pinned: a CUDA graph may contain its code, which lives as long as the library */
    pid_t compiler;              /* the process that compiles it */
    TileImageCode *code;         /* READY, EVICTED */
    tile_status status;          /* of the last attempt; FAILED: also of all later ones */
    TileReport *report;          /* of the last attempt; may be NULL */
    uint64_t compile_ns;
    TilePhaseCost *costs; /* of each phase */
} TileVariant;

typedef struct TileReplay TileReplay;

struct TileKernel {
    TileLibrary *library;
    uint32_t index;
    const TileImageSignature *signature;
    struct TileKernel *twin;                          /* linked objects: the same for tensors on GPUs, or NULL */
    _Atomic(TileVariant *) last;                      /* the one used last */
    _Atomic(TileVariant *) slots[TILE_VARIANT_SLOTS]; /* by hash of the facts asked for; entries may be stale */
    _Atomic uint64_t asked[TILE_MAX_PARAMETERS];      /* facts that any variant asked for; only grows */
    _Atomic bool maps;                                /* GPUs: a variant asked for tensor maps */
    _Atomic uint32_t specials;                        /* how often code for values of scalars became ready */
    _Atomic uint64_t seen[TILE_VALUES_KEPT];          /* values.c; its lowest bit: code for them was asked for */
    _Atomic(TileReplay *) replays;                    /* replay.h; NULL before the first code */
    pthread_mutex_t mutex;                            /* guards the list and changes of state */
    pthread_cond_t changed;
    _Atomic(TileVariant *) variants; /* grows at its head */
    _Atomic uint64_t clock, past_launches, misses, compiled, evicted, compile_ns;
    _Atomic uint64_t cold;                           /* launches that missed */
    _Atomic uint64_t timed_launches, timed_guard_ns; /* hits whose lookup was timed */
    int background;                                  /* threads of this process that compile for it */
    bool limited;                                    /* the limit was reached, and logged */
};

struct TileLibrary {
    TileImageSource source;
    TileSettings settings;
    uint32_t kernel_count;
    TileKernel kernels[];
};

/* The code for these arguments: an existing variant whose guards hold and that a new compilation would not make
 * differently; else compiled now, or by another thread while this one waits. request->generics is given, the rest is
 * filled in. Released with tile_variant_give. If compiling fails, *report (report may be NULL) is the compiler's
 * report, or unchanged if there is none. */
tile_status tile_variant_get(TileKernel *kernel, TileView *views, TileImageRequest *request, TileVariant **variant,
                             TileError *error, TileReport **report);
/* `launched`: it ran. */
void tile_variant_give(TileVariant *variant, bool launched);

/* ---- for explain.c, replay.c, miss.c, linked_choice.c and lookup.c ---- */

/* Fills in the values of statics and the facts of the arguments; views get the facts about several arguments. */
void tile_variant_request(const TileKernel *kernel, TileView *views, TileImageRequest *request);
/* Adds the facts about tensor maps. Looked for where it matters only: where code asked for them, and for code that is
 * about to be made. */
void tile_variant_find_maps(const TileImageSignature *signature, TileView *views);
/* Are types, static values and the point of the tuning the same? */
bool tile_variant_same_instance(const TileImageSignature *signature, const TileImageRequest *a,
                                const TileImageRequest *b);
/* Marks it as most recently used. */
void tile_variant_touch(TileKernel *kernel, TileVariant *variant);
/* Takes a reference; false if it is not ready. */
bool tile_variant_take(TileVariant *variant);
/* With the kernel's mutex held: no launch finds the variant any more, and its code goes with the last that has it. */
void tile_variant_evict(TileVariant *variant);
/* Do the arguments keep what the variant relies on, and does the compiler get no other answers from them than it got?
 * For one that is being compiled it is not known what it will ask: it must have been told the same. A request for
 * general code, which tells nothing, is served by general code alone: that is made to be good at anything. */
bool tile_variant_serves(const TileImageSignature *signature, const TileVariant *variant, int state,
                         const TileImageRequest *request, const TileView *views);
/* Begins to compile for these arguments in the background, unless such code is there, or would be beyond half of the
 * limit of variants. */
void tile_variant_begin(TileKernel *kernel, const TileImageRequest *request, const TileView *views);
/* After the last hit and the slots: the whole list, and then the compiler. Takes the variant. */
tile_status tile_variant_miss(TileKernel *kernel, TileImageRequest *request, const TileView *views,
                              TileVariant **variant, TileError *error, TileReport **report);

#endif
