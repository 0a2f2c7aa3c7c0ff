/* Files under way, which a signal that ends the program takes with it: SIGINT, SIGTERM, SIGHUP and SIGQUIT remove them,
 * and then the process dies of that signal, as its parent expects. */
#ifndef TILE_TOOLS_UNFINISHED_H
#define TILE_TOOLS_UNFINISHED_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on. Signals that are ignored, as by nohup, stay so. */
void tile_unfinished_watch(void);

/* From `true` to `false` none of these signals ends the process, whichever thread it comes to: what is done meanwhile
 * is done whole. In pairs, which may lie in one another; for as long as a small file takes to be written, or several to
 * get their names. Any thread. */
void tile_unfinished_hold(bool held);

/* A file or folder that is to go where the process ends before it is forgotten; later ones go first. Added while
 * signals are held that would come between its making and this. False where memory has run out. */
bool tile_unfinished_add(const char *path);
void tile_unfinished_forget(const char *path);

/* A process that writes such files, which ends first; 0: none any more. One at a time. */
void tile_unfinished_child(pid_t child);

/* Removes them all. */
void tile_unfinished_remove(void);
/* What the signals do, for handlers of one's own. */
void tile_unfinished_die(int number);

#endif
