/* Unloading of the library while its threads are alive, and the end of the process. */
#ifndef TILE_LAUNCH_STAY_H
#define TILE_LAUNCH_STAY_H

#include <stdbool.h>

/* From now on the code of the launcher stays mapped until the process ends, whoever closes the shared object that it is
 * part of: threads that nobody joins run in it, and what is kept for the process (the pool, the driver of GPUs) is
 * found again when the object is opened once more. */
void tile_stay_loaded(void);

/* Before and after work on a thread that nobody joins, such as a compilation: at its end the process waits for it,
 * because it uses what destructors take away. */
void tile_stay_work(void);
void tile_stay_worked(void);

/* Is the process ending, running exit handlers and destructors? Other threads may still launch then. */
bool tile_process_ends(void);

#endif
