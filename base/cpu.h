/* Which CPU targets can run on this machine. */
#ifndef TILE_BASE_CPU_H
#define TILE_BASE_CPU_H

#include <stddef.h>

/* NULL if code for the target of this name can run here, else the reason (static text). TILE_CPU_CAPABILITY, the name
 * of a target, forbids all better ones. Of `amx` it asks the operating system for permission, for the whole process:
 * whoever is about to run code asks here first. */
const char *tile_cpu_why_not(const char *target);
/* The same for a limit other than the environment's: the name of a target, or NULL for none. */
const char *tile_cpu_limit_why_not(const char *target, const char *most);
/* The target whose code is faster here though another one, which can run too, stands behind it in the table; NULL: there is none. Measured, in
 * some microseconds, where the CPU's features do not tell: whether `vdpbf16ps` takes the time of one multiply-add, or of two. */
const char *tile_cpu_surpassed_by(const char *target);
/* The names of the CPU targets; NULL past the last. */
const char *tile_cpu_name_at(size_t index);

#endif
