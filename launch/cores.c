/* Cores that may be used: affinity masks, and quotas of time, which containers have in place of them. More threads than the quota
 * has cores for use it up in a part of each period, and then all of them stand still until the next one begins. */
#define _GNU_SOURCE
#include "launch/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 4096 };

static int lower(int a, int b) { return !a || (b && b < a) ? b : a; }

/* The first line of a file of this folder. */
static bool read_line(const char *folder, const char *name, char *line, int size) {
    char path[2 * LINE];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && length < (int)sizeof path ? fopen(path, "re") : NULL;
    bool read = file && fgets(line, size, file);
    if (file) fclose(file);
    return read;
}

/* "1600000 100000" is 16 cores, "max 100000" no limit; where cgroups are of the first version, both numbers have files of their own,
 * and a quota of -1 is no limit. */
static int quota_of(const char *folder) {
    char quota[64], period[64], *end;
    long long time, each;
    if (read_line(folder, "cpu.max", quota, sizeof quota)) {
        time = strtoll(quota, &end, 10);
        each = end != quota ? strtoll(end, NULL, 10) : 0;
    } else {
        if (!read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota)) return 0;
        if (!read_line(folder, "cpu.cfs_period_us", period, sizeof period)) return 0;
        time = strtoll(quota, NULL, 10);
        each = strtoll(period, NULL, 10);
    }
    if (time <= 0 || each <= 0) return 0;
    long long cores = time / each;
    return cores < 1 ? 1 : cores < INT_MAX ? (int)cores : 0;
}

/* The least quota of the group and of those around it. A container may see its own group as the mounted folder itself. */
static int least_quota(const char *mounted, const char *controller, char *group) {
    char folder[2 * LINE];
    int least = 0;
    for (;;) {
        char *last = strrchr(group, '/');
        int length = snprintf(folder, sizeof folder, "%s%s%s", mounted, controller, group);
        if (length > 0 && length < (int)sizeof folder) least = lower(least, quota_of(folder));
        if (!last) return least;
        *last = '\0';
    }
}

/* Is "cpu" one of the words, which commas separate? */
static bool names_cpu(const char *words, size_t length) {
    for (const char *at = words, *end = words + length; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t size = (size_t)((comma ? comma : end) - at);
        if (size == 3 && !memcmp(at, "cpu", 3)) return true;
        at += size + 1;
    }
    return false;
}

int tile_cores_of_quota(const char *groups, const char *mounted) {
    char line[LINE];
    int least = 0;
    FILE *file = fopen(groups, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *words = strchr(line, ':'), *group = words ? strchr(words + 1, ':') : NULL;
        if (!group) continue;
        words++;
        bool first_version = words != group;
        if (first_version && !names_cpu(words, (size_t)(group - words))) continue;
        least = lower(least, least_quota(mounted, first_version ? "/cpu" : "", group + 1));
    }
    fclose(file);
    return least;
}

int tile_cores_count(void) {
    cpu_set_t mask;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : online < INT_MAX ? (int)online : INT_MAX;
    int quota = tile_cores_of_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota && quota < cores) cores = quota;
    return cores < 1 ? 1 : cores;
}
