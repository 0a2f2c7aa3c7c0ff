/* A target family's struct of behaviour: beside what its passes do (lowering/family.h), how code is emitted, loaded and
 * described, and what keeps it from running here. Only the driver joins the folders that know each part, so the structs
 * are here: backend_cpu.c, backend_ptx.c. A question about a target that is none of its facts (lang/ir/target.h) is a
 * member, and not a comparison with a kind. */
#ifndef TILE_DRIVER_COMPILE_BACKEND_H
#define TILE_DRIVER_COMPILE_BACKEND_H

#include "driver/compile/image.h"
#include "lowering/family.h"
#include "mlir_bridge/load.h"

/* Code as it was emitted, or as the disk cache has it. */
typedef struct TileBackendCode {
    const char *data;
    size_t size;
    const TileCudaPhase *phases;
    uint32_t phase_count;
} TileBackendCode;

/* What it is once it can be launched: one of both. */
typedef struct TileBackendLoaded {
    TileLoaded *native; /* with the entries of the phases */
    TilePhaseEntry *entries;
    TileCudaModule *device;
} TileBackendLoaded;

typedef struct TileBackend {
    const TileFamily *family;

    /* What this machine runs. Texts are static. */
    const char *best, *best_description;               /* the name that stands for the best target that runs here */
    const char *(*obstacle)(const TileTarget *target); /* why its code cannot run here; NULL: it can */
    const char *(*limit)(const TileTarget *target,
                         const char *most); /* why not, if `most` is the best that may be used */
    const char *(*none)(const char *most);  /* why no target of the family runs here */
    unsigned most_devices;                  /* that code can run on, by their numbers */
    const char *(*device)(TileArena *arena,
                          int number); /* in tuning files, behind the target's name; NULL: no such one */

    /* Code. */
    TileStage listing; /* the stage of `tilec emit` that shows machine instructions */
    TileCodeKind code; /* what is loaded and kept on disk */
    bool linked;       /* objects have it as functions; else as data, for `assemble` and the device's driver */
    bool own_memory;   /* its tensors are in a device's memory, so that its kernels are other ones for a launch */
    bool emulated;     /* what cannot run here may run under an emulator (TileForeign) */
    bool places;       /* code for launches has lines, for profilers: where text stands is part of what it is */
    bool own_order;    /* its code adds in orders of its own, and not in that of the interpreter */
    bool has_tf32;     /* products of f32 can be those of operands that are rounded to tf32 */
    const char *(*symbol)(const TileFunc *phase, TileArena *arena);
    bool (*waits)(const TileFunc *phase, const TileTarget *target); /* for the end of the grid before it, by itself */
    tile_status (*load)(const TileBackendCode *code, TileBackendLoaded *loaded, TileText *message);
    /* What the code shows beyond decisions of passes; NULL: nothing. */
    tile_status (*explain)(TileUnit *unit, TileExplanation *explanation);
} TileBackend;

extern const TileBackend tile_backend_cpu, tile_backend_ptx;

/* Those of CPUs first; NULL behind the last. */
const TileBackend *tile_backend_at(unsigned index);
/* NULL for the interpreter, which has no target. */
const TileBackend *tile_backend_of(const TileTarget *target);
static inline const TileBackend *tile_unit_backend(const TileUnit *unit) {
    return tile_backend_of(unit->input->target);
}

/* Of the target of this name, or the best of a family (NULL: "cpu"); NULL where there is none, and for the interpreter.
 */
const TileBackend *tile_backend_named(const char *name);

/* The passes of all folders. */
enum { TILE_PASS_TABLES = 3 };
void tile_pass_tables(const TilePassTable *tables[TILE_PASS_TABLES]);

#endif
