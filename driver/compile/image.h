/* From the IR of a kernel to what the launcher knows of it. */
#ifndef TILE_DRIVER_COMPILE_IMAGE_H
#define TILE_DRIVER_COMPILE_IMAGE_H

#include "driver/compile/stages.h"
#include "launch/cuda.h"

/* What locations and messages call the place where the conditions of a variant were written: requirements from there
 * choose among the variants of a kernel. */
#define TILE_VARIANT_PLACE "--variant"

/* The signatures of all kernels of a program, in the arena of the unit's input; input->signatures is set.
 * Parameters and static dimensions that a setting decides are left out. */
tile_status tile_signatures_create(TileUnit *unit, const TileProgramInfo *program, uint32_t *count);

/* Host program, checks, temporaries and grids of a kernel; phases get neither entry nor scratch. Lists lie in
 * `arena`, which outlives the code. */
tile_status tile_image_describe(TileUnit *unit, TileFunc *kernel, const TileImageSignature *signature, TileArena *arena,
                                TileImageCode *code);

/* The value that the launcher has for a static, as a binding. */
TileBinding tile_static_binding(const TileImageSignature *signature, uint32_t index, int64_t value);

/* The number of the parameter of this name, or -1. */
int tile_image_parameter(const TileImageSignature *signature, const char *name);

/* Tells the parameters of the kernel what may be taken for granted: the request's facts, and that what is written
 * shares no memory with anything else, which the launcher checks. */
void tile_image_assume(TileFunc *kernel, const TileImageSignature *signature, const TileImageRequest *request);
/* Do such facts say nothing of what lies where? Then anything may come, and mostly what is contiguous. */
bool tile_image_tells_nothing(uint64_t facts);
/* What the functions of the module relied on. */
void tile_image_collect(const TileModule *module, const TileFunc *kernel, const TileImageSignature *signature,
                        TileImageCode *code);

/* Scratch and assertions of the phases, now that they are in machine form. Phase N is the function `kernel.N`. */
tile_status tile_image_describe_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, TileImageCode *code);

/* What the launcher and the cache have to know of the phases: symbols, and of GPUs the rest. */
TileCudaPhase *tile_image_list_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, uint32_t count);

/* explain.c: fills in what was decided for the machine form that unit->module is in. */
tile_status tile_unit_explain(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                              const TileImageRequest *request, const TileImageCode *code, TileExplanation *explanation);

/* Compiles the kernel for the job's request: code that runs, native or on the executor (then it takes the unit). The
 * job's code, its arena and its kind are set here. */
tile_status tile_image_build(TileImageJob *job, TileImageCode **code);

#endif
