/* How many cores the process may use. */
#ifndef TILE_LAUNCH_CORES_H
#define TILE_LAUNCH_CORES_H

/* Those of its affinity mask, at most as many as its cgroup's quota of time allows; 1 at least. */
int tile_cores_count(void);

/* How many cores' time the process's cgroup and those around it have, rounded down, 1 at least; 0: there is no limit. `groups` is
 * the file /proc/self/cgroup, `mounted` the folder in which cgroups are seen. */
int tile_cores_of_quota(const char *groups, const char *mounted);

#endif
