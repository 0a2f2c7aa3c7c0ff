/* One compilation: a text with its syntax tree (NULL where it is text of the IR) and, once lowered, the IR of one
 * kernel. */
#ifndef TILE_DRIVER_COMPILE_UNIT_H
#define TILE_DRIVER_COMPILE_UNIT_H

#include "driver/compile/compiler.h"
#include "launch/report.h"
#include "lowering/pass.h"
#include "parser/syntax/syntax.h"

typedef struct TileUnit {
    TileInput *input;
    TileArena *arena;
    TileDiagnostics *diagnostics;
    TileAst *ast;
    TileContext *context;
    TileModule *module;           /* of the last kernel that was lowered */
    const TileKernelInfo *kernel; /* which one */
    TileLowerOptions lowering;    /* and what with */
    TileText message;             /* reason of a failure without a diagnostic */
    jmp_buf guard;                /* longjmp target when memory runs out */
    TileBridge *bridge;           /* once code was emitted */
    void *cached;                 /* a file of the disk cache, allocated */
    TileCode code;                /* emitted last */
    unsigned stages;              /* number of stages done (stages.h) */
    uint64_t clock;               /* end of the last step */
    TileRemarks remarks;          /* of the passes, if requested */
    bool verify;                  /* after every pass */
    bool keep;                    /* the body takes the unit: it is not destroyed */
} TileUnit;

/* Parses the input with its imports and calls `body`, which gets a tree without syntax errors. Diagnostics go into
 * *report (may be NULL). If memory runs out anywhere, the body ends. After TILE_INTERNAL everything runs a second time,
 * with verification, which finds the faulty pass: the body begins by releasing what a first run put into its state. */
tile_status tile_unit_run(TileInput *input, tile_status (*body)(TileUnit *unit, void *state), void *state,
                          TileReport **report);
void tile_unit_destroy(TileUnit *unit);

/* PARSE: the input's text becomes unit->ast or, where it is text of the IR, unit->module. */
tile_status tile_unit_parse(TileUnit *unit);

/* Has a kernel of the file a setting of this name? */
bool tile_unit_names_setting(const TileProgramInfo *program, const char *name);
/* Refuses a setting of the input that no kernel has. */
tile_status tile_unit_check_settings(TileUnit *unit, const TileProgramInfo *program);

/* Lists the kernels of the text, including exports under their own names; in the arena of the unit. */
tile_status tile_unit_list(TileUnit *unit, TileProgramInfo *program);
/* The same after checking all of them. */
tile_status tile_unit_check(TileUnit *unit, TileProgramInfo *program);

/* Checks the parts of a long text on several threads: which of them need no diagnostic (tile_check_ahead)? In the
 * unit's arena; NULL where it does not pay. */
const uint64_t *tile_unit_check_ahead(TileUnit *unit);

/* Lowers a kernel to tile form: unit->module. `bindings` in addition to the input's that concern the kernel. */
tile_status tile_unit_lower(TileUnit *unit, const TileKernelInfo *kernel, const TileBinding *bindings, size_t count);
/* The function of unit->module that tile_unit_lower has made of the kernel. */
TileFunc *tile_unit_kernel(const TileUnit *unit, const TileKernelInfo *kernel);
/* The function of unit->module with this name. */
TileFunc *tile_unit_func(const TileUnit *unit, const char *name);

/* The passes that this unit's target runs, in order. */
tile_status tile_unit_pipeline(TileUnit *unit, TilePipeline *pipeline);
/* How many passes come before the first that is the target's own. */
size_t tile_unit_shared_passes(const TilePipeline *pipeline);
/* Runs them over unit->module. */
tile_status tile_unit_passes(TileUnit *unit, const TilePassInfo *const *passes, size_t count);

/* Emits the phases of unit->module: unit->code. */
tile_status tile_unit_emit(TileUnit *unit, TileCodeKind kind);
/* Writes a file that reproduces a compiler bug, and adds its name to the message. */
void tile_unit_write_reproducer(TileUnit *unit, const char *text);

/* Reads files relative to the importing file, in the compiler's folders, and in the standard library. */
TileImporter tile_unit_importer(TileUnit *unit);

/* The unit's diagnostics and message; NULL if there are none. */
TileReport *tile_report_from_unit(TileUnit *unit);

/* A file of the standard library. */
typedef struct TileStandardFile {
    const char *name;
    const char *text;
    size_t length;
} TileStandardFile;
extern const TileStandardFile tile_standard_library[]; /* ends in a row of zeros; made from stdlib/ by the build */

#endif
