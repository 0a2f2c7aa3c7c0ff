/* Runs code for AArch64 with SVE: linked by a cross linker, executed by tests/guest/runner.c under QEMU. */
#ifndef TESTS_KERNELS_GUEST_H
#define TESTS_KERNELS_GUEST_H

#include "driver/compile/compile.h"

typedef struct Guest Guest;

/* NULL, and `why` is set to a static text, if tools are missing or out of memory. The tools are those that the build
 * found or, if TILE_GUEST is set to a folder, qemu-aarch64, aarch64-linux-gnu-ld, guest_runner and lib/ in it. */
Guest *guest_create(const char **why);
/* TILE_REQUIRE_GUEST=1: tests fail instead of being skipped if it is not available. */
bool guest_is_required(void);
void guest_destroy(Guest *guest);

/* The argument of tile_compiler_emulate, for code that runs with vectors of this length in bits. Code that was loaded
 * before must not be run any more. */
const TileForeign *guest_start(Guest *guest, unsigned vector_bits);

/* To be called before a launch: its pool, with one thread, since every range of programs copies the memory to the guest
 * and back. */
TileThreadPool *guest_prepare(Guest *guest);

/* The error of a launch since guest_prepare; NULL: none. */
const char *guest_error(const Guest *guest);

#endif
