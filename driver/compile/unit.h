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
    TileModule *module;        /* of the kernel that was lowered last */
    const TileItem *item;      /* which one */
    TileLowerOptions lowering; /* and what with */
    TileText message;          /* words for a failure that the diagnostics do not tell */
    jmp_buf guard;             /* where memory that has run out leads */
    TileBridge *bridge;        /* once code was emitted */
    void *cached;              /* of the disk cache; to be freed */
    TileCode code;             /* emitted last */
    unsigned stages;           /* how many are done (stages.h) */
    uint64_t clock;            /* end of the last step */
    TileRemarks remarks;       /* of the passes, where they are asked for */
    bool verify;               /* after every pass */
    bool keep;                 /* the body takes the unit: it is not destroyed */
} TileUnit;

/* Parses the input with what it imports and calls `body`, which is given a tree without syntax errors. What is to
 * be said afterwards goes into *report (may be NULL). Memory that runs out anywhere ends the body. After a
 * TILE_INTERNAL all is done a second time, with verification, which finds the pass that is to blame: the body begins
 * by releasing what it put into its state before. */
tile_status tile_unit_run(TileInput *input, tile_status (*body)(TileUnit *unit, void *state), void *state,
                          TileReport **report);
void tile_unit_destroy(TileUnit *unit);

/* PARSE: the input's text becomes unit->ast or, where it is text of the IR, unit->module. */
tile_status tile_unit_parse(TileUnit *unit);

/* Has a kernel of the file a setting of this name? */
bool tile_unit_names_setting(const TileProgramInfo *program, const char *name);
/* Says which of the input's settings nothing is called by. */
tile_status tile_unit_check_settings(TileUnit *unit, const TileProgramInfo *program);

/* The kernels of the text, exports under their own names included; in the arena of the unit. */
tile_status tile_unit_list(TileUnit *unit, TileProgramInfo *program);
/* The same, where nothing is wrong with any of them. */
tile_status tile_unit_check(TileUnit *unit, TileProgramInfo *program);

/* Looks at the items of a long text on several threads: of which of them is there nothing to say (tile_check_ahead)? In
 * the unit's arena; NULL where it is not worth it. */
const uint64_t *tile_unit_check_ahead(TileUnit *unit);

/* Lowers a kernel to tile form: unit->module. `bindings` in addition to the input's that concern the kernel. */
tile_status tile_unit_lower(TileUnit *unit, const TileKernelInfo *kernel, const TileBinding *bindings, size_t count);
/* The function of unit->module that tile_unit_lower has made of the kernel. */
TileFunc *tile_unit_kernel(const TileUnit *unit, const TileKernelInfo *kernel);
/* The function of this name. */
TileFunc *tile_unit_func(const TileUnit *unit, const char *name);

/* The passes that this unit's target runs, in order. */
tile_status tile_unit_pipeline(TileUnit *unit, TilePipeline *pipeline);
/* How many passes come before the first that is the target's own. */
size_t tile_unit_shared_passes(const TilePipeline *pipeline);
/* Runs them over unit->module. */
tile_status tile_unit_passes(TileUnit *unit, const TilePassInfo *const *passes, size_t count);

/* Emits the phases of unit->module: unit->code. */
tile_status tile_unit_emit(TileUnit *unit, TileCodeKind kind);
/* Leaves a file that shows a bug of ours, and names it in the message. */
void tile_unit_write_reproducer(TileUnit *unit, const char *text);

/* Reads files relative to the importing file, in the compiler's folders, and in the standard library. */
TileImporter tile_unit_importer(TileUnit *unit);

/* What the unit has to say; NULL when that is nothing. */
TileReport *tile_report_from_unit(TileUnit *unit);

/* A name of the standard library, NULL when there is none. */
typedef struct TileStandardFile {
    const char *name;
    const char *text;
    size_t length;
} TileStandardFile;
extern const TileStandardFile tile_standard_library[]; /* ends in a row of zeros; made from stdlib/ by the build */

#endif
