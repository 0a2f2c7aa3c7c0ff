/* A target family's struct of behaviour: in addition to its passes (lowering/family.h), how code is emitted, loaded and
 * described, and what prevents it from running here. The structs are in backend_cpu.c and backend_ptx.c, because only
 * the driver may include all folders involved. A question about a target that is no fact of it (lang/ir/target.h) is a
 * member here, not a comparison of kinds. */
#ifndef TILE_DRIVER_COMPILE_BACKEND_H
#define TILE_DRIVER_COMPILE_BACKEND_H

#include "driver/compile/image.h"
#include "lowering/family.h"
#include "mlir_bridge/load.h"

/* Code as emitted, or as read from the disk cache. */
typedef struct TileBackendCode {
    const char *data;
    size_t size;
    const TileCudaPhase *phases;
    uint32_t phase_count;
    bool shown; /* to debuggers, where the code is for CPUs */
} TileBackendCode;

/* Loaded code: either member is set. */
typedef struct TileBackendLoaded {
    TileLoaded *native; /* with the entries of the phases */
    TilePhaseEntry *entries;
    TileCudaModule *device;
} TileBackendLoaded;

typedef struct TileBackend {
    const TileFamily *family;

    /* What this machine runs. Texts are static. */
    const char *best, *best_description;               /* alias of the best target that runs here */
    const char *(*obstacle)(const TileTarget *target); /* why its code cannot run here; NULL: it can */
    const char *(*limit)(const TileTarget *target,
                         const char *most); /* why not, if `most` is the best that may be used */
    const char *(*surpassed)(const TileTarget *target); /* the target whose code is faster here; NULL: there is none, or no function */
    const char *(*none)(const char *most);  /* why no target of the family runs here */
    unsigned most_devices;                  /* number of devices that code can run on */
    const char *(*device)(TileArena *arena,
                          int number); /* its name in tuning files; NULL: there is no such device */

    /* Code. */
    TileStage listing; /* the stage of `tilec emit` that shows machine instructions */
    TileCodeKind code; /* what is loaded and kept on disk */
    bool linked;       /* code is functions of an object; else data, for `assemble` and the device's driver */
    bool own_memory;   /* its tensors are in a device's memory: launches choose kernels by that */
    bool emulated;     /* code that cannot run here may run under an emulator (TileForeign) */
    bool places;       /* code for launches has line information, for profilers: it depends on source locations */
    bool explained;    /* its code has what no remark shows, so that explanations show the code itself */
    bool has_tf32;     /* products of f32 may round their operands to tf32 */
    const char *(*symbol)(const TileFunc *phase, TileArena *arena);
    tile_status (*load)(const TileBackendCode *code, TileBackendLoaded *loaded, TileText *message);
} TileBackend;

extern const TileBackend tile_backend_cpu, tile_backend_ptx;

/* CPUs first; NULL past the last. */
const TileBackend *tile_backend_at(unsigned index);
/* NULL for the interpreter, which has no target. */
const TileBackend *tile_backend_of(const TileTarget *target);
static inline const TileBackend *tile_unit_backend(const TileUnit *unit) {
    return tile_backend_of(unit->input->target);
}

/* Of the target, or alias of a family's best target, of this name (NULL: "cpu"); NULL where there is none, and for the
 * interpreter. */
const TileBackend *tile_backend_named(const char *name);

/* The passes of all folders. */
enum { TILE_PASS_TABLES = 3 };
void tile_pass_tables(const TilePassTable *tables[TILE_PASS_TABLES]);

#endif
