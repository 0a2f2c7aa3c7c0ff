/* Which constants of tune clauses serve a launch: those that were measured for such arguments (tuned.h), else those that
 * the target's model chooses for the sizes, else the text's own, the first ones.
 *
 * A choice of the model depends on the kernel, its types and static values, the target's facts, the tensors' extents, and integers that decide
 * bounds, steps or strides, as far as four bits tell them apart, on which tensors a map describes and which lie at odd addresses: on nothing that was launched before, and not on the
 * machine at hand. */
#ifndef TILE_DRIVER_COMPILE_CHOICE_H
#define TILE_DRIVER_COMPILE_CHOICE_H

#include "driver/compile/tuned.h"

typedef struct TileChoices TileChoices;

/* Makes input->choices, one for each signature; none where the input's target has no model, or settings turn choices
 * off. */
tile_status tile_choices_create(TileUnit *unit, const TileProgramInfo *program);
/* NULL is allowed. */
void tile_choices_destroy(TileChoices *choices);

/* For TileImageSource: the number, from 1, of the row that serves the arguments; 0: the text's own constants. Thread
 * safe. Compiles the candidates as far as the model wants, when it meets an instance of a kernel for the first time. */
uint32_t tile_choose(void *input, uint32_t kernel, const TileImageRequest *request, const TileView *views);
/* The row of this number; NULL for 0. */
const TileTunedRow *tile_chosen_row(const TileInput *input, uint32_t kernel, uint32_t number);
/* What the code of launches with this number is compiled with, beside the constants. */
TileSchedule tile_chosen_schedule(const TileInput *input, uint32_t kernel, uint32_t number);
/* The row that a launch with these arguments uses, or NULL. */
const TileTunedRow *tile_chosen_for(const TileLibrary *library, const TileKernel *kernel, const TileArg *arguments,
                                    size_t count);

#endif
