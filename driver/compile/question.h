/* What of a launch's arguments a choice of the model depends on (choice.h). */
#ifndef TILE_DRIVER_COMPILE_QUESTION_H
#define TILE_DRIVER_COMPILE_QUESTION_H

#include "launch/argument.h"
#include "launch/image.h"
#include "lowering/family.h"

/* The set of parameters that a map describes. */
uint64_t tile_question_maps(const TileImageSignature *signature, const TileView *views);
/* The set of parameters without gaps. */
uint64_t tile_question_dense(const TileImageSignature *signature, const TileView *views);
/* The facts that rows are short, those that hold of all tensors of several dimensions. */
uint64_t tile_question_rows(const TileImageSignature *signature, const TileView *views);
/* Of a set of integers, those whose value a question has to the last unit, so that no two values share an answer. */
uint64_t tile_question_exact(const TileImageSignature *signature, const TileView *views, uint64_t set);
/* A hash of what a kernel is compiled for, its points by themselves. `known`: the set of integers whose value its code knows, if the question has it
 * exactly. */
uint64_t tile_instance_key(const TileImageSignature *signature, const TileImageRequest *request, const TileView *views, uint64_t known);
/* A hash of that, and of sizes. `deciding`: the set of integers that decide bounds, steps or strides. Others, as a seed of random numbers, may
 * be another in each launch. */
uint64_t tile_question_key(const TileImageSignature *signature, const TileView *views, uint64_t deciding, uint64_t instance);
/* By the parameters of the kernel's function, of which the signature has those that no setting binds. */
void tile_question_extents(const TileFunc *func, const TileImageSignature *signature, const TileView *views, TileExtents *extents);

#endif
