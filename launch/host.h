/* Runs the host program of a variant. */
#ifndef TILE_LAUNCH_HOST_H
#define TILE_LAUNCH_HOST_H

#include "launch/argument.h"
#include "launch/image.h"

/* values: room for `count` of them. The program was checked by tile_host_is_sound, or made by the driver. */
void tile_host_run(const TileHostInstruction *program, uint32_t count, const TileView *views, uint64_t *values);

/* Is each instruction valid: a known operation, on earlier values of the types that it takes, and on dimensions and
 * scalars that the kernel has? */
bool tile_host_is_sound(const TileHostInstruction *program, uint32_t count, const TileImageSignature *signature);

/* "ADD", "CONST". */
const char *tile_host_op_name(TileHostOp op);
/* TILE_HOST_OP_COUNT when no operation has this name. */
TileHostOp tile_host_op_find(const char *name);

/* The number rounded to a float type, as a double. */
double tile_host_round(TileHostType type, double number);
/* The bits of an argument or a static value, which is an integer, or for floats the bits of a double. */
uint64_t tile_host_bits(TileHostType type, uint64_t argument);
/* The value as a person writes it, into a buffer of `size` bytes. */
void tile_host_print(char *buffer, size_t size, TileHostType type, uint64_t bits);

#endif
