/* The stages that a kernel passes from text to image: one list, which launches, objects made ahead and `tilec emit` run
 * as far as each needs it. */
#ifndef TILE_DRIVER_COMPILE_STAGES_H
#define TILE_DRIVER_COMPILE_STAGES_H

#include "driver/compile/unit.h"

typedef enum TileImageStage {
#define STAGE(id, function, assumes, gives) TILE_IMAGE_##id,
#include "driver/compile/stages.def"
    TILE_IMAGE_STAGE_COUNT
} TileImageStage;

/* A kernel's image in the making: what is wanted, and what the stages have made of it so far. */
typedef struct TileImageJob {
    TileUnit *unit;
    const TileKernelInfo *kernel;
    const TileImageSignature *signature;
    const TileImageRequest *request;
    const TileBinding *bindings; /* in addition to the input's that concern the kernel */
    size_t binding_count;
    TileSchedule schedule;    /* of zeros: as the text has it */
    TileCodeKind kind;        /* what EMIT gives: unit->code */
    TileImageCode *code;      /* what the launcher knows of it; NULL: nobody launches it, nothing is described */
    TileArena *arena;         /* of lists in `code`, which it outlives */
    TileFunc *func;           /* CHECK: the kernel in unit->module */
    TilePipeline pipeline;    /* ASSUME: the passes; who runs stages one by one may shorten the list */
    size_t shared_pass_count; /* ASSUME: of them, those before the first that is the target's own */
} TileImageJob;

/* Runs the stages that unit->stages has not passed yet, up to this one. */
tile_status tile_image_run(TileImageJob *job, TileImageStage last);

/* The stage behind which there is what `tilec emit` shows under the name. */
TileImageStage tile_stage_end(TileStage stage);

/* LOAD, in load.c: job->code is one that tile_image_build has made. */
tile_status tile_image_load(TileImageJob *job);

#endif
