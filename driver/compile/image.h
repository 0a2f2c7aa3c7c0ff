/* From the IR of a kernel to the launcher's description of it. */
#ifndef TILE_DRIVER_COMPILE_IMAGE_H
#define TILE_DRIVER_COMPILE_IMAGE_H

#include "driver/compile/stages.h"
#include "launch/cuda.h"

/* The file name in locations and messages of the conditions of a variant; requirements with this file name choose among
 * the variants of a kernel. */
#define TILE_VARIANT_PLACE "--variant"

/* Creates the signatures of all kernels of a program, in the arena of the unit's input: input->signatures. Parameters
 * and static dimensions that a setting binds are left out. `described`: also what they say of the kernels beyond their
 * parameters, which costs a look at all of the text. */
tile_status tile_signatures_create(TileUnit *unit, const TileProgramInfo *program, bool described, uint32_t *count);

/* Fills in what the signature says of the kernel beyond its parameters. */
void tile_interface_describe(TileUnit *unit, const TileKernelInfo *kernel, TileImageSignature *signature);

/* Describes host program, checks, temporaries and grids of a kernel; phases get neither entry nor scratch yet. Lists
 * are allocated in `arena`, which outlives the code. */
tile_status tile_image_describe(TileUnit *unit, TileFunc *kernel, const TileImageSignature *signature, TileArena *arena,
                                TileImageCode *code);

/* A static's value in the launcher's encoding, as a binding. */
TileBinding tile_static_binding(const TileImageSignature *signature, uint32_t index, int64_t value);

/* The index of the parameter of this name, or -1. */
int tile_image_parameter(const TileImageSignature *signature, const char *name);

/* What the model decided; where it decided nothing, the kernel stays as the text has it. */
void tile_image_schedule(TileFunc *kernel, TileSchedule schedule);
/* Sets the facts on the kernel's parameters: those of the request, and that tensors that are written do not alias
 * others, which the launcher checks. */
void tile_image_assume(TileFunc *kernel, const TileImageSignature *signature, const TileImageRequest *request);
/* Do the facts say nothing about strides and alignment? Then any tensor may come, most likely a contiguous one. */
bool tile_image_tells_nothing(uint64_t facts);
/* Collects the facts that the functions of the module asked for and used. */
void tile_image_collect(const TileModule *module, const TileFunc *kernel, const TileImageSignature *signature,
                        TileImageCode *code);

/* Describes scratch, assertions and prints of the phases, which are in machine form. */
tile_status tile_image_describe_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, TileImageCode *code);

/* The tensor maps among the parameters of a phase that has a kernel. */
void tile_image_list_maps(const TileFunc *func, TileArena *arena, TileCudaPhase *phase);
/* Symbols of the phases, and for GPUs their launch parameters. */
TileCudaPhase *tile_image_list_phases(TileUnit *unit, const TileFunc *kernel, TileArena *arena, uint32_t count);

/* explain.c: fills in the decisions behind unit->module, which is in machine form. */
tile_status tile_unit_explain(TileUnit *unit, const TileFunc *kernel, const TileImageSignature *signature,
                              const TileImageRequest *request, const TileImageCode *code, TileExplanation *explanation);

/* Compiles the kernel for the job's request: code that runs, native or on the executor (then it takes the unit). The
 * job's code, its arena and its kind are set here. */
tile_status tile_image_build(TileImageJob *job, TileImageCode **code);

#endif
