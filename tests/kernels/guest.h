/* Running code for AArch64 with SVE: linked by the cross linker, run by tests/guest/runner.c under QEMU. */
#ifndef TESTS_KERNELS_GUEST_H
#define TESTS_KERNELS_GUEST_H

#include "driver/compile/compile.h"

typedef struct Guest Guest;

/* NULL, and `why` (a static text), where tools or memory for it are missing. The tools are those that the build found,
 * or where TILE_GUEST names a folder, qemu-aarch64, aarch64-linux-gnu-ld, guest_runner and lib/ in it. */
Guest *guest_create(const char **why);
/* TILE_REQUIRE_GUEST=1: without it tests fail, instead of saying that they skip it. */
bool guest_is_required(void);
void guest_destroy(Guest *guest);

/* What a compiler is to be given (tile_compiler_emulate), for code that runs with vectors of so many bits. Code that
 * was loaded before must not be run any more. */
const TileForeign *guest_start(Guest *guest, unsigned vector_bits);

/* Before a launch: its pool, which has one thread, since every range of programs takes the memory there and back. */
TileThreadPool *guest_prepare(Guest *guest);

/* What went wrong in a launch since guest_prepare; NULL: nothing. */
const char *guest_error(const Guest *guest);

#endif
