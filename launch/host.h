/* Runs the host program of a variant. */
#ifndef TILE_LAUNCH_HOST_H
#define TILE_LAUNCH_HOST_H

#include "launch/argument.h"
#include "launch/image.h"

/* A value of the host program (see TileHostOp). */
typedef union TileHostValue {
    int64_t integer;
    uint64_t bits;
    double number;
} TileHostValue;

/* values: room for `count` of them. */
void tile_host_run(const TileHostInstruction *program, uint32_t count, const TileView *views, TileHostValue *values);

/* A number rounded to a float type, as a double. */
double tile_host_round(TileHostType type, double number);
/* The value as a person writes it, into a buffer of `size` bytes. */
void tile_host_print(char *buffer, size_t size, TileHostType type, TileHostValue value);

#endif
