/* Code made ahead of time: what the parts of a build share. */
#ifndef TILE_DRIVER_AHEAD_AHEAD_H
#define TILE_DRIVER_AHEAD_AHEAD_H

#include "driver/compile/image.h"
#include "object/merge.h"
#include "tile/build.h"

/* One item of a variant's text. */
typedef struct TileAheadDemand {
    enum { TILE_AHEAD_CONTIGUOUS, TILE_AHEAD_ALIGN, TILE_AHEAD_VALUE, TILE_AHEAD_CONDITION } kind;
    const char *name;  /* of a tensor (NULL: all of them), or of the static that has the value */
    unsigned align;    /* ALIGN */
    const char *value; /* VALUE; CONDITION: its text */
} TileAheadDemand;

typedef struct TileAheadVariant {
    const char *label; /* its text */
    TILE_LIST(TileAheadDemand) demands;
} TileAheadVariant;

/* Code of an export for one variant and target. */
typedef struct TileAheadCode {
    TileImageVariant variant;
    TileCode object;
    size_t asked;         /* demands of the variant's text */
    const char **symbols; /* of the phases, in the object; for GPUs, in the PTX */
} TileAheadCode;

typedef struct TileAheadExport {
    const TileBuildSource *source;
    const char *symbol, *kernel, *doc;
    const char *function; /* of the IR, which has the name of the kernel alone */
    TILE_LIST(TileBinding) bindings;
    TileImageSignature signature;
    TILE_LIST(TileAheadCode) made; /* the most specialised first */
} TileAheadExport;

struct TileBuild {
    TileArena *arena;
    jmp_buf *guard; /* guards the arena outside of units */
    TileCompiler *compiler;
    TileBuildOptions options;
    size_t source_count;
    bool *setting_used, *export_found;     /* for each of the options' settings and exports: a text uses it */
    TILE_LIST(const TileTarget *) targets; /* better ones later */
    TILE_LIST(TileAheadVariant) variants;
    TILE_LIST(TileAheadExport *) exports;
    TILE_LIST(const char *) dependencies;
    TILE_LIST(TileInput *) inputs; /* own the signatures */
    TileCode object;
    const char *header, *json;
    TileText message; /* a failure without a diagnostic */
};

/* targets.c: is the target's code linked into the object, or data in its image? */
bool tile_ahead_is_linked(const TileTarget *target);
/* Is there a target of this kind? After targets were chosen. */
bool tile_ahead_has_data(const TileBuild *build);
bool tile_ahead_has_linked(const TileBuild *build);

/* The file name in messages about exports that were requested by options. */
#define TILE_EXPORT_PLACE "--export"

/* variant.c: reads the texts of the variants; errors go into the build's message. */
tile_status tile_ahead_variants(TileBuild *build);
/* The value that the variant gives to the name, or NULL. */
const char *tile_ahead_value(const TileAheadVariant *variant, const char *name);
/* The binding of a static as the launcher compares it. TILE_INVALID_ARGUMENT where it is of another type. */
tile_status tile_ahead_static(TileUnit *unit, const TileImageSignature *signature, uint32_t index,
                              const TileBinding *binding, int64_t *value);
/* The facts that the variant grants to code for these parameters. TILE_INVALID_ARGUMENT where it names anything
 * else. */
tile_status tile_ahead_grant(TileUnit *unit, const TileAheadVariant *variant, const TileImageSignature *signature,
                             TileImageRequest *request);

/* compile.c: adds the exports of a text; compiles one for all variants and targets. */
tile_status tile_ahead_list(TileBuild *build, const TileBuildSource *source, TileReport **report);
tile_status tile_ahead_compile(TileBuild *build, TileAheadExport *made, TileReport **report);

/* header.c, json.c: fill in build->header and build->json. */
void tile_ahead_write_header(TileBuild *build);
void tile_ahead_write_json(TileBuild *build);

/* A scalar parameter's type in C; types that C lacks are passed as float. */
const char *tile_ahead_scalar_type(TileHostType type);

#endif
