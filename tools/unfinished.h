/* Files being written, which are removed if a signal ends the program: SIGINT, SIGTERM, SIGHUP and SIGQUIT remove them,
 * and then the process dies of that signal, as its parent expects. */
#ifndef TILE_TOOLS_UNFINISHED_H
#define TILE_TOOLS_UNFINISHED_H

#include <stdbool.h>
#include <sys/types.h>

/* Installs the handlers. Signals that are ignored, as by nohup, stay ignored. */
void tile_unfinished_watch(void);

/* Between `true` and `false` none of these signals ends the process, in any thread, so that what is done in between is
 * done completely. Calls are paired, and may be nested; for as long as it takes to write a small file, or to rename
 * several. Any thread. */
void tile_unfinished_hold(bool held);

/* Adds a file or folder that is removed if the process ends before it is forgotten; later ones are removed first. Call
 * it while signals are held, so that none arrives between its creation and this. False if memory runs out. */
bool tile_unfinished_add(const char *path);
void tile_unfinished_forget(const char *path);

/* A child process that writes such files, and is ended first; 0: none. One at a time. */
void tile_unfinished_child(pid_t child);

/* Removes them all. */
void tile_unfinished_remove(void);
/* The action of the signals, for other handlers. */
void tile_unfinished_die(int number);

#endif
