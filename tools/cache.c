/* tilec cache: lists, verifies or clears the disk cache of compiled code. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "driver/cache/cache.h"
#include "tools/session.h"

typedef struct Totals {
    unsigned count, bad;
    uint64_t bytes;
    bool verify;
} Totals;

static void show(void *state, const TileCodeEntry *entry) {
    Totals *totals = state;
    char day[32];
    time_t used = (time_t)entry->used;
    struct tm local;
    strftime(day, sizeof day, "%Y-%m-%d %H:%M", localtime_r(&used, &local));
    totals->count++;
    totals->bad += !entry->good;
    totals->bytes += entry->bytes;
    if (!totals->verify)
        printf("%.16s %10llu  %s  %s\n", entry->name, (unsigned long long)entry->bytes, day,
               entry->good ? entry->label : "damaged");
    else if (!entry->good)
        printf("%.16s is damaged and goes\n", entry->name);
}

static int list(TileSession *session, TileCodeCache *cache, bool verify) {
    Totals totals = {.verify = verify};
    tile_code_cache_list(cache, verify, show, &totals);
    if (verify) tile_code_cache_remove(cache, false);
    printf("%u %s, %.1f MB in %s%s", totals.count, totals.count == 1 ? "file" : "files", (double)totals.bytes * 1e-6,
           tile_code_cache_folder(cache), verify ? "" : "\n");
    if (verify) printf(": %u damaged\n", totals.bad);
    return tile_session_finish(session);
}

int tile_command_cache(TileSession *session, char **words, int count) {
    const char *what = count ? words[0] : "ls";
    bool clear = strcmp(what, "clear") == 0, verify = strcmp(what, "verify") == 0;
    if (count > 1 || (!clear && !verify && strcmp(what, "ls") != 0))
        return tile_session_fail(session, TILE_INVALID_ARGUMENT, "'%s' is not one of ls, clear, verify",
                                 words[count > 1]);
    TileCodeCache *cache = tile_code_cache_open(NULL, NULL, 0);
    if (!cache) {
        printf("there is no cache: TILE_CACHE_DIR is empty, or its folder is not this user's alone\n");
        return tile_session_finish(session);
    }
    int status;
    if (clear) {
        printf("%u files removed from %s\n", tile_code_cache_remove(cache, true), tile_code_cache_folder(cache));
        status = tile_session_finish(session);
    } else {
        status = list(session, cache, verify);
    }
    tile_code_cache_close(cache);
    return status;
}
