/* How many cores a process may use, by the quotas of cgroups as files show them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/cores.h"

static char folder[200];

static void write_file(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(mkdir(path, 0700), 0);
}

static int quota(const char *groups) {
    char path[256];
    write_file("groups", groups);
    snprintf(path, sizeof path, "%s/groups", folder);
    return tile_cores_of_quota(path, folder);
}

static void remove_all(void) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

Test(cores, quotas) {
    snprintf(folder, sizeof folder, "%s/tile-cores-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(folder));
    make_folder("a");
    make_folder("a/b");
    cr_assert_eq(quota("0::/a/b\n"), 0); /* no file says anything */
    write_file("a/b/cpu.max", "max 100000\n");
    cr_assert_eq(quota("0::/a/b\n"), 0);
    write_file("a/cpu.max", "1600000 100000\n");
    cr_assert_eq(quota("0::/a/b\n"), 16);
    write_file("a/b/cpu.max", "250000 100000\n");
    cr_assert_eq(quota("0::/a/b\n"), 2);
    cr_assert_eq(quota("0::/a\n"), 16);
    cr_assert_eq(quota("0::/gone/c\n"), 0);
    write_file("cpu.max", "300000 100000\n"); /* of a container that sees its own group only */
    cr_assert_eq(quota("0::/gone/c\n"), 3);
    cr_assert_eq(quota("0::/\n"), 3);
    write_file("cpu.max", "50000 100000\n");
    cr_assert_eq(quota("0::/a/b\n"), 1);
    cr_assert_eq(quota("nonsense\n"), 0);
    make_folder("cpu");
    make_folder("cpu/a");
    write_file("cpu/a/cpu.cfs_quota_us", "-1\n");
    write_file("cpu/a/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(quota("4:memory:/a\n3:cpuacct,cpu:/a\n"), 0);
    write_file("cpu/a/cpu.cfs_quota_us", "400000\n");
    cr_assert_eq(quota("4:memory:/a\n3:cpuacct,cpu:/a\n"), 4);
    cr_assert_eq(quota("4:memory:/a\n3:cpuset:/a\n"), 0);
    cr_assert_eq(tile_cores_of_quota("/nowhere/at/all", folder), 0);
    remove_all();
}

Test(cores, there_is_one_at_least) { cr_assert_geq(tile_cores_count(), 1); }
